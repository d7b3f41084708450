
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A Redis that sends any bytes in pieces of any size.  The result must be
 * replies within the limits or an error, and it must not depend on the pieces.
 * Each reply is passed to every function of the schema that reads replies.  The
 * first byte of the input seeds the sizes of the pieces.
 */


#include <stdlib.h>

#include "context/conversation.h"
#include "redis_schema/idempotency.h"
#include "redis_schema/memory.h"
#include "redis_schema/resp.h"
#include "redis_schema/schema.h"
#include "redis_schema/window.h"


#define MAX_BYTES     4096
#define MAX_ELEMENTS  64


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static uint64_t
mix(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * 0x100000001b3ULL;
}


static uint64_t
walk(const redisReply *reply, uint64_t hash, size_t *elements)
{
    size_t  i;

    hash = mix(hash, reply->type);

    switch (reply->type) {

#if (HIREDIS_MAJOR >= 1)
    case REDIS_REPLY_DOUBLE:

        /* hiredis 1.0.0 does not terminate its text */

        return mix(hash, reply->len);

    case REDIS_REPLY_BIGNUM:
    case REDIS_REPLY_VERB:
#endif
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
    case REDIS_REPLY_ERROR:
        if (reply->str == NULL || reply->str[reply->len] != '\0') {
            abort();
        }

        for (i = 0; i < reply->len; i++) {
            hash = mix(hash, (uint8_t) reply->str[i]);
        }

        return mix(hash, reply->len);

#if (HIREDIS_MAJOR >= 1)
    case REDIS_REPLY_BOOL:
#endif
    case REDIS_REPLY_INTEGER:
        return mix(hash, reply->integer);

    case REDIS_REPLY_NIL:
        return hash;

#if (HIREDIS_MAJOR >= 1)
    case REDIS_REPLY_MAP:
    case REDIS_REPLY_SET:
    case REDIS_REPLY_ATTR:
    case REDIS_REPLY_PUSH:
#endif
    case REDIS_REPLY_ARRAY:
        *elements += reply->elements;

        for (i = 0; i < reply->elements; i++) {
            hash = walk(reply->element[i], hash, elements);
        }

        return mix(hash, reply->elements);
    }

    abort();
}


/*
 * The entries of a conversation as messages, as items, and without each item.
 * What is left of an entry is an entry.
 */

static uint64_t
entries(dsa_arena_t *arena, const dsa_schema_conversation_t *c)
{
    uint32_t                  i, n;
    dsa_buf_t                 b;
    dsa_err_t                 err;
    dsa_chat_t                chat;
    dsa_refusal_t             refusal;
    dsa_json_writer_t         w;
    dsa_conversation_t        list;
    dsa_conversation_item_t  *items;

    static const dsa_chat_limits_t  limits = { .max_messages = 64,
                                               .hosted = 1 };

    list.owner = dsa_strz("0123456789abcdef0123456789abcdef");
    list.entries = c->messages;
    list.numbers = c->numbers;
    list.n = c->n_messages;

    memset(&chat, 0, sizeof(dsa_chat_t));
    memset(&b, 0, sizeof(dsa_buf_t));

    if (dsa_conversation_insert(&chat, arena, &list, &limits, &refusal)
        == DSA_OK && chat.n_messages != chat.n_stored)
    {
        abort();
    }

    dsa_json_writer(&w, &b);
    (void) dsa_conversation_messages(&w, arena, &list, &err);
    dsa_buf_free(&b);

    if (dsa_conversation_items(&items, &n, arena, &list, &err) != DSA_OK) {
        return 0;
    }

    for (i = 0; i < n; i++) {
        memset(&b, 0, sizeof(dsa_buf_t));

        if (dsa_conversation_items(&items, &n, arena, &list, &err) != DSA_OK) {
            break;
        }

        if (dsa_conversation_without(&b, &items[i]) == DSA_OK && b.len != 0
            && dsa_json_parse(arena, b.data, b.len, DSA_CHAT_DEPTH, &err)
               == NULL
            && !dsa_arena_exceeded(arena))
        {
            abort();
        }

        dsa_buf_free(&b);
    }

    return n;
}


static uint64_t
interpret(const redisReply *reply, uint64_t hash)
{
    int                         again, rc;
    int64_t                     n;
    uint32_t                    i;
    dsa_err_t                   err;
    dsa_arena_t                *arena;
    const char                 *why;
    dsa_schema_memory_t         memory;
    dsa_schema_result_e         result;
    dsa_idempotency_result_t    claim;
    dsa_schema_conversation_t   c;

    why = dsa_resp_refusal(reply);

    if (why != NULL && reply->type != REDIS_REPLY_ERROR) {
        abort();
    }

    if (dsa_schema_integer(reply, &n, &err) == DSA_OK) {
        if (reply->type != REDIS_REPLY_INTEGER || reply->integer != n) {
            abort();
        }

        hash = mix(hash, n);
    }

    rc = dsa_schema_recorded(reply, &result, &again, &err);

    if (rc == DSA_OK) {
        hash = mix(hash, dsa_schema_result(result)[0] + again);
    }

    if (dsa_schema_memory_reply(&memory, reply, &err) == DSA_OK) {
        hash = mix(mix(hash, memory.used), memory.limit + memory.evicts);
    }

    if (dsa_idempotency_claimed(&claim, reply, &err) == DSA_OK) {
        if (claim.state == DSA_IDEMPOTENCY_ANSWER_KEPT
            && claim.answer.len == 0)
        {
            abort();
        }

        hash = mix(hash, claim.state);

        for (i = 0; i < claim.answer.len; i++) {
            hash = mix(hash, (uint8_t) claim.answer.data[i]);
        }

        for (i = 0; i < claim.object.len; i++) {
            hash = mix(hash, (uint8_t) claim.object.data[i]);
        }
    }

    for (i = 0; i < 3; i++) {
        hash = mix(hash, dsa_schema_window_cut(reply, 3, i));
    }

    arena = dsa_arena_create(1 << 20);
    if (arena == NULL) {
        abort();
    }

    rc = dsa_schema_conversation(&c, arena, reply, &err);

    if (rc == DSA_OK) {
        if (c.version <= 0 || c.n_messages > MAX_ELEMENTS / 2) {
            abort();
        }

        hash = mix(hash, entries(arena, &c));

        for (i = 0; i < c.n_messages; i++) {
            hash = mix(hash, c.messages[i].len);
            hash = mix(hash, c.messages[i].len != 0 ? c.messages[i].data[0]
                                                    : 0);
        }
    }

    dsa_arena_destroy(arena);

    return mix(hash, rc);
}


/* A hash of the replies of the stream in pieces that cut seeds. */

static uint64_t
replies(const uint8_t *data, size_t size, uint32_t cut, size_t *n)
{
    int          rc;
    size_t       piece, elements;
    uint64_t     hash;
    dsa_err_t    err;
    dsa_resp_t  *resp;
    redisReply  *reply;

    resp = dsa_resp_create(MAX_BYTES, MAX_ELEMENTS);
    if (resp == NULL) {
        abort();
    }

    hash = 0xcbf29ce484222325ULL;
    rc = DSA_AGAIN;
    *n = 0;

    while (size != 0 && rc != DSA_ERROR) {

        cut = cut * 1664525 + 1013904223;
        piece = 1 + (cut >> 24) % 61;

        if (piece > size) {
            piece = size;
        }

        rc = dsa_resp_feed(resp, data, piece, &err);

        data += piece;
        size -= piece;

        while (rc != DSA_ERROR) {
            reply = NULL;
            rc = dsa_resp_next(resp, &reply, &err);

            if (rc != DSA_OK) {
                break;
            }

            elements = 0;
            hash = walk(reply, hash, &elements);

            if (elements > MAX_ELEMENTS) {
                abort();
            }

            hash = interpret(reply, hash);
            freeReplyObject(reply);
            (*n)++;
        }
    }

    dsa_resp_destroy(resp);

    return hash;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t    n, m;
    uint64_t  one, two;

    if (size == 0 || size > MAX_BYTES) {

        /* beyond the limit the pieces decide where the error occurs */

        return 0;
    }

    one = replies(data + 1, size - 1, data[0], &n);
    two = replies(data + 1, size - 1, data[0] + 1, &m);

    if (one != two || n != m) {
        abort();
    }

    return 0;
}
