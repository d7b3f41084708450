
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/service/journal.h"


static void dsa_journal_gap(void *data, dsa_buf_t *out, uint64_t lost);
static void dsa_journal_begin(dsa_journal_t *j, const dsa_request_t *r,
    const char *event);
static void dsa_journal_head(const dsa_journal_t *j, dsa_buf_t *out,
    const char *request);


dsa_journal_t *
dsa_journal_open(const char *path, uint32_t replica, dsa_err_t *err)
{
    dsa_journal_t  *j;

    j = calloc(1, sizeof(dsa_journal_t));

    if (j == NULL) {
        (void) dsa_error(err, "out of memory");
        return NULL;
    }

    j->replica = replica;
    j->pid = getpid();
    j->thread = dsa_journal_thread_open(path, dsa_journal_gap, j, err);

    if (j->thread == NULL) {
        free(j);
        return NULL;
    }

    return j;
}


int
dsa_journal_start(dsa_journal_t *j, int wake, dsa_err_t *err)
{
    return dsa_journal_thread_start(j->thread, wake, err);
}


void
dsa_journal_close(dsa_journal_t *j)
{
    if (j == NULL) {
        return;
    }

    dsa_buf_free(&j->lines);

    if (dsa_journal_thread_close(j->thread)) {
        free(j);
    }
}


void
dsa_journal_accepted(dsa_journal_t *j, const dsa_request_t *r)
{
    uint32_t  i;

    if (j == NULL) {
        return;
    }

    dsa_journal_begin(j, r, "accepted");
    dsa_buf_addz(&j->lines, ",\"tenant\":\"");

    for (i = 0; i < sizeof(r->sched.tenant); i++) {
        dsa_buf_printf(&j->lines, "%02x", r->sched.tenant[i]);
    }

    dsa_buf_printf(&j->lines, "\",\"prompt\":%u,\"cached\":%u,"
                   "\"skipped\":%u,\"traceparent\":\"%s\","
                   "\"client\":\"%s\"}\n",
                   r->accepted.prompt_tokens, r->accepted.cached_tokens,
                   (unsigned) r->accepted.conditions + r->accepted.schemas,
                   r->trace, r->client);
}


void
dsa_journal_tokens(dsa_journal_t *j, const dsa_request_t *r, uint32_t n)
{
    if (j == NULL || n == 0) {
        return;
    }

    dsa_journal_begin(j, r, "tokens");
    dsa_buf_printf(&j->lines, ",\"tokens\":%u}\n", n);
}


void
dsa_journal_last(dsa_journal_t *j, const dsa_request_t *r)
{
    uint32_t  i;

    static const char  *finish[] = {
        "unknown",              /* as dsa_link_finish_e */
        "stop",
        "length",
        "cancelled",
        "deadline"
    };

    /* a count is not charged */

    if (j == NULL || r->type == DSA_LINK_COUNT) {
        return;
    }

    if (r->last == DSA_LINK_ERROR) {
        dsa_journal_begin(j, r, "error");
        dsa_buf_printf(&j->lines, ",\"code\":%u}\n", r->failure.code);
        return;
    }

    assert(r->last == DSA_LINK_DONE
           && r->done.finish < sizeof(finish) / sizeof(finish[0]));

    dsa_journal_begin(j, r, "done");
    dsa_buf_printf(&j->lines, ",\"finish\":\"%s\",\"prompt\":%u,"
                   "\"cached\":%u", finish[r->done.finish],
                   r->done.prompt_tokens,
                   (unsigned) dsa_link_cached(&r->done));

    for (i = DSA_TIER_HOST; i < DSA_TIERS; i++) {
        dsa_buf_printf(&j->lines, ",\"%s\":%u", dsa_tier_names[i].name,
                       r->done.cached_tokens[i]);
    }

    dsa_buf_printf(&j->lines, ",\"completion\":%u}\n",
                   r->done.completion_tokens);
}


void
dsa_journal_left(dsa_journal_t *j, const dsa_request_t *r)
{
    if (j == NULL || r->name[0] == '\0') {
        return;
    }

    dsa_journal_begin(j, r, "left");
    dsa_buf_addz(&j->lines, "}\n");
}


void
dsa_journal_flush(dsa_journal_t *j, uint64_t now_ms)
{
    if (j != NULL) {
        dsa_journal_thread_push(j->thread, &j->lines, j->n, now_ms);
        j->n = 0;
    }
}


void
dsa_journal_commit(dsa_journal_t *j)
{
    if (j != NULL) {
        j->round++;
    }
}


int
dsa_journal_pending(dsa_journal_t *j, uint64_t now_ms)
{
    return j != NULL && dsa_journal_thread_pending(j->thread, now_ms);
}


/* Called in the thread of the journal. */

static void
dsa_journal_gap(void *data, dsa_buf_t *out, uint64_t lost)
{
    dsa_journal_head(data, out, "");
    dsa_buf_printf(out, ",\"event\":\"gap\",\"lost\":%llu}\n",
                   (unsigned long long) lost);
}


/* Writes the members that all lines of requests have. */

static void
dsa_journal_begin(dsa_journal_t *j, const dsa_request_t *r, const char *event)
{
    j->n++;

    dsa_journal_head(j, &j->lines, r->name);
    dsa_buf_printf(&j->lines, ",\"round\":%llu,\"worker\":%d,"
                   "\"slot\":\"%u.%u\",\"event\":\"%s\",\"sent\":%u",
                   (unsigned long long) j->round, (int) r->worker,
                   dsa_link_slot(r->id), dsa_link_epoch(r->id), event,
                   r->sent);
}


/* Writes the members that all lines have. */

static void
dsa_journal_head(const dsa_journal_t *j, dsa_buf_t *out, const char *request)
{
    struct timespec  now;

    (void) clock_gettime(CLOCK_REALTIME, &now);

    dsa_buf_printf(out, "{\"request\":\"%s\",\"time\":%lld.%06d,"
                   "\"replica\":%u,\"engine\":%d", request,
                   (long long) now.tv_sec, (int) (now.tv_nsec / 1000),
                   j->replica, (int) j->pid);
}
