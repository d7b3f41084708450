
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A Redis that sends any replies to the commands for responses, of which most
 * are for those in progress.  Each reply is passed to every function that reads
 * one.  What they accept has the form that they promise, and lies within the
 * reply; an error has a text without control characters.  The events of all
 * chunks are those that a plain search finds in all their bytes.  The first
 * byte of the input is the number of the event that the client has.
 */


#include <stdlib.h>
#include <string.h>

#include "redis_schema/progress_stream.h"
#include "redis_schema/resp.h"
#include "redis_schema/responses.h"


#define MEMORY  (1024 * 1024)
#define OWNERS  3


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void
check_error(const dsa_err_t *err)
{
    const char  *p;

    if (err->text[0] == '\0') {
        abort();
    }

    for (p = err->text; *p != '\0'; p++) {
        if (*p < ' ' || *p > '~') {
            abort();
        }
    }
}


/* Reads all bytes, which are those of a string of the reply, or are none. */

static void
check_text(const redisReply *reply, dsa_str_t text)
{
    size_t  i;

    if (text.len == 0) {
        return;
    }

    for (i = 0; i < reply->elements; i++) {
        if (reply->element[i]->type == REDIS_REPLY_STRING
            && reply->element[i]->str == text.data
            && reply->element[i]->len == text.len)
        {
            return;
        }
    }

    abort();
}


static void
check_number(const redisReply *reply)
{
    int64_t    n, bytes;
    dsa_err_t  err;

    if (dsa_schema_over_quota(reply, &bytes, &n)) {
        if (reply->type != REDIS_REPLY_ERROR) {
            abort();
        }

        return;
    }

    if (dsa_schema_integer(reply, &n, &err) != DSA_OK) {
        check_error(&err);

    } else if (reply->type != REDIS_REPLY_INTEGER || reply->integer != n) {
        abort();
    }
}


static void
check_view(const redisReply *reply)
{
    dsa_err_t            err;
    dsa_progress_view_t  v;

    if (dsa_progress_view(&v, reply, &err) != DSA_OK) {
        check_error(&err);
        return;
    }

    if (reply->type != REDIS_REPLY_ARRAY || reply->element[0]->integer < 0
        || reply->element[0]->integer > DSA_PROGRESS_ATTACHED
        || reply->element[0]->integer != (long long) v.state
        || (v.state != DSA_PROGRESS_STORED && v.output.len != 0)
        || (v.state == DSA_PROGRESS_STORED && v.error.len != 0)
        || (v.state >= DSA_PROGRESS_UNKNOWN
            && v.before.len + v.after.len + v.error.len != 0))
    {
        abort();
    }

    check_text(reply, v.before);
    check_text(reply, v.output);
    check_text(reply, v.after);
    check_text(reply, v.error);
}


static void
check_node(const redisReply *reply)
{
    int                     rc;
    uint32_t                i, n;
    dsa_err_t               err;
    dsa_str_t               fields[3], *lists;
    dsa_arena_t            *arena;
    dsa_response_items_t    items[OWNERS];
    dsa_response_result_e   result;

    for (n = 1; n <= 3; n += 2) {
        rc = dsa_response_fields(fields, n, reply, &err);

        if (rc == DSA_ERROR) {
            check_error(&err);
        }

        for (i = 0; rc == DSA_OK && i < n; i++) {
            check_text(reply, fields[i]);
        }
    }

    arena = dsa_arena_create(MEMORY);
    if (arena == NULL) {
        abort();
    }

    if (dsa_response_chain_read(&result, &lists, &n, arena, reply, &err)
        != DSA_OK)
    {
        check_error(&err);
        n = 0;

    } else if (n != reply->elements - 1) {
        abort();
    }

    for (i = 0; i < n; i++) {
        check_text(reply, lists[i]);
    }

    rc = dsa_response_items_read(items, OWNERS, arena, reply, &err);

    if (rc == DSA_ERROR) {
        check_error(&err);
    }

    for (i = 0; rc == DSA_OK && i < OWNERS; i++) {
        check_text(reply, items[i].input);
        check_text(reply, items[i].output);

        for (n = 0; n < items[i].n; n++) {
            check_text(reply, items[i].entries[n]);
        }
    }

    dsa_arena_destroy(arena);
}


/* all: the bytes of the chunks. */

static void
check_chunks(const redisReply *reply, dsa_progress_stream_t *s, dsa_buf_t *out,
    dsa_buf_t *all, int64_t after)
{
    uint32_t               i;
    dsa_err_t              err;
    dsa_progress_events_t  events;

    if (dsa_progress_events(&events, reply, &err) != DSA_OK) {
        check_error(&err);
        return;
    }

    if (events.n > DSA_PROGRESS_CHUNKS || events.n + 4 != reply->elements) {
        abort();
    }

    for (i = 0; i < events.n; i++) {
        if (events.chunk[i].len == 0
            || events.chunk[i].len > DSA_PROGRESS_CHUNK)
        {
            abort();
        }

        check_text(reply, events.chunk[i]);

        if (dsa_progress_stream_add(s, out, events.chunk[i], after, &err)
            != DSA_OK)
        {
            abort();
        }

        dsa_buf_add(all, events.chunk[i].data, events.chunk[i].len);
    }
}


/* The number of an event, or -1 if it has none. */

static int64_t
number(const char *text, size_t len)
{
    size_t         i, k;
    int64_t        n;

    static const char  name[] = "\"sequence_number\":";

    for (i = 0; i + sizeof(name) - 1 <= len; i++) {
        if (memcmp(text + i, name, sizeof(name) - 1) != 0) {
            continue;
        }

        n = 0;

        for (k = i + sizeof(name) - 1; text[k] >= '0' && text[k] <= '9'; k++) {
            if (n < INT32_MAX) {
                n = 10 * n + text[k] - '0';
            }
        }

        return text[0] == ':' ? -1 : n;
    }

    return -1;
}


static void
check_events(const dsa_progress_stream_t *s, const dsa_buf_t *out,
    const dsa_buf_t *all, int64_t after)
{
    size_t   i, start, at;
    int64_t  n, last;

    at = 0;
    last = -1;

    for (start = 0, i = 0; i + 1 < all->len; i++) {
        if (all->data[i] != '\n' || all->data[i + 1] != '\n') {
            continue;
        }

        i += 2;
        n = number(all->data + start, i - start);
        last = n >= 0 ? n : last;

        if (n >= 0 && n > after) {
            if (out->len - at < i - start
                || memcmp(out->data + at, all->data + start, i - start) != 0)
            {
                abort();
            }

            at += i - start;
        }

        start = i;
        i--;
    }

    if (at != out->len || last != s->last || s->bytes != all->len
        || s->rest.len != all->len - start)
    {
        abort();
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t                 after;
    dsa_buf_t               out, all;
    dsa_err_t               err;
    dsa_resp_t             *resp;
    redisReply             *reply;
    dsa_progress_stream_t   s;

    if (size == 0) {
        return 0;
    }

    after = (int8_t) data[0];

    memset(&out, 0, sizeof(dsa_buf_t));
    memset(&all, 0, sizeof(dsa_buf_t));
    dsa_progress_stream_init(&s);

    resp = dsa_resp_create(DSA_SCHEMA_MAX_REPLY, DSA_SCHEMA_MAX_ELEMENTS);
    if (resp == NULL) {
        abort();
    }

    if (dsa_resp_feed(resp, data + 1, size - 1, &err) == DSA_OK) {
        while (dsa_resp_next(resp, &reply, &err) == DSA_OK) {
            check_number(reply);
            check_view(reply);
            check_node(reply);
            check_chunks(reply, &s, &out, &all, after);
            freeReplyObject(reply);
        }
    }

    check_events(&s, &out, &all, after);

    dsa_resp_destroy(resp);
    dsa_progress_stream_free(&s);
    dsa_buf_free(&out);
    dsa_buf_free(&all);

    return 0;
}
