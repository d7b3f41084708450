
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/hosts/exchange.h"
#include "engine/hosts/follower.h"
#include "engine/hosts/plan.h"
#include "engine/hosts/step.h"


#define DSA_HOSTS_DEPTH     2           /* most steps in flight */
#define DSA_HOSTS_POLL_NS   20000       /* between two looks at a step */


typedef struct {
    const dsa_hosts_follower_t *f;
    dsa_hosts_wire_t       *w;
    dsa_backend_t          *b;
    dsa_hosts_limits_t      limits;
    dsa_hosts_exchange_t    exchange;
    dsa_hosts_memory_t     *memory;
    uint32_t                moves;      /* 1: there is host memory */
    uint64_t                limit_ms;   /* of a step */
    dsa_hosts_step_t        step[DSA_HOSTS_DEPTH + 1];  /* one more, which
                                           entries in flight follow */
    uint32_t                started;    /* steps, modulo 2^32 */
    uint32_t                ended;
    dsa_buf_t               result;
} dsa_hosts_following_t;


static int dsa_hosts_follow_run(dsa_hosts_following_t *s, dsa_err_t *err);
static int dsa_hosts_follow_open(dsa_hosts_following_t *s, dsa_err_t *err);
static int dsa_hosts_follow_ready(dsa_hosts_following_t *s, dsa_err_t *err);
static int dsa_hosts_follow_memory(dsa_hosts_following_t *s,
    const dsa_hosts_plan_t *plan, dsa_err_t *err);
static int dsa_hosts_follow_idle(dsa_hosts_following_t *s, dsa_err_t *err);
static int dsa_hosts_follow_message(dsa_hosts_following_t *s, dsa_err_t *err);
static int dsa_hosts_follow_step(dsa_hosts_following_t *s,
    const dsa_hosts_head_t *head, dsa_err_t *err);
static int dsa_hosts_follow_copy(dsa_hosts_following_t *s,
    const dsa_hosts_head_t *head, dsa_err_t *err);
static int dsa_hosts_follow_wait(dsa_hosts_following_t *s, dsa_err_t *err);
static void dsa_hosts_follow_busy(dsa_hosts_following_t *s);


int
dsa_hosts_follow(dsa_hosts_wire_t *w, const dsa_hosts_follower_t *f,
    dsa_err_t *err)
{
    int                      rc;
    uint32_t                 i;
    dsa_hosts_following_t   *s;

    s = calloc(1, sizeof(dsa_hosts_following_t));

    if (s == NULL) {
        return dsa_error(err, "out of memory");
    }

    s->f = f;
    s->w = w;

    rc = dsa_hosts_follow_run(s, err);

    if (rc != DSA_OK) {
        dsa_hosts_wire_fault(w, err->text);

    } else {
        dsa_hosts_memory_end_tiers(s->memory);
        s->b->close(s->b);
        dsa_hosts_memory_close(s->memory);
    }

    for (i = 0; i <= DSA_HOSTS_DEPTH; i++) {
        dsa_hosts_step_close(&s->step[i]);
    }

    dsa_hosts_exchange_close(&s->exchange);
    dsa_buf_free(&s->result);
    free(s);

    return rc;
}


static int
dsa_hosts_follow_run(dsa_hosts_following_t *s, dsa_err_t *err)
{
    int  rc;

    if (dsa_hosts_follow_open(s, err) != DSA_OK
        || dsa_hosts_follow_ready(s, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    do {
        rc = dsa_hosts_follow_idle(s, err);

        if (rc == DSA_OK) {
            rc = dsa_hosts_follow_message(s, err);

        } else if (rc == DSA_AGAIN) {
            rc = dsa_hosts_follow_wait(s, err);
        }
    } while (rc == DSA_AGAIN);

    return rc;
}


/* Receives the plan, and opens the backend. */

static int
dsa_hosts_follow_open(dsa_hosts_following_t *s, dsa_err_t *err)
{
    dsa_hosts_head_t    head;
    dsa_hosts_plan_t    plan;
    dsa_backend_conf_t  conf;

    dsa_hosts_wire_limit(s->w, 0);

    if (dsa_hosts_wire_expect(s->w, DSA_HOSTS_PLAN, 0, sizeof(plan),
                              sizeof(plan), &head, err) != DSA_OK
        || dsa_hosts_wire_read(s->w, &plan, sizeof(plan), err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    conf = s->f->backend;

    if (dsa_hosts_plan_apply(&conf, s->f->kind, &plan, err) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_log(DSA_LOG_NOTICE, "host %u of %u: follows %s", plan.host, plan.hosts,
            s->w->name);

    s->limit_ms = plan.limit_ms;
    s->exchange.n = plan.hosts;
    s->exchange.host = plan.host;
    s->exchange.wire = s->w;
    conf.hosts.exchange = dsa_hosts_exchange;
    conf.hosts.data = &s->exchange;

    s->b = s->f->open(s->f->kind, &conf, err);

    if (s->b == NULL) {
        return DSA_ERROR;
    }

    if (dsa_hosts_follow_memory(s, &plan, err) != DSA_OK) {
        return DSA_ERROR;
    }

    s->limits.hosts = plan.hosts;
    s->limits.host = plan.host;
    s->limits.gpus = plan.gpus;
    s->limits.context = conf.context != 0
                        ? conf.context : s->b->config.max_position_embeddings;
    s->limits.max_tokens = s->b->rank_tokens * s->b->ranks;
    s->limits.max_seqs = plan.max_seqs;
    s->limits.vocab = s->b->config.vocab_size;
    s->limits.pages = s->b->pages;

    return DSA_OK;
}


static int
dsa_hosts_follow_memory(dsa_hosts_following_t *s, const dsa_hosts_plan_t *plan,
    dsa_err_t *err)
{
    dsa_hosts_memory_conf_t  conf;

    memset(&conf, 0, sizeof(conf));
    conf.backend = s->b;
    conf.hosts = plan->hosts;
    conf.first_rank = plan->host * plan->gpus;
    conf.ranks = plan->gpus;
    conf.bytes = plan->host_memory;
    conf.tiers = plan->tiers;
    conf.open = s->f->tiers;
    conf.data = s->f->data;

    s->moves = plan->host_memory != 0;
    s->memory = dsa_hosts_memory_open(&conf, err);

    return s->memory != NULL ? DSA_OK : DSA_ERROR;
}


/* Allocates the steps, and sends READY. */

static int
dsa_hosts_follow_ready(dsa_hosts_following_t *s, dsa_err_t *err)
{
    uint32_t           i;
    struct iovec       part;
    const dsa_host_t  *host;
    dsa_hosts_ready_t  ready;

    for (i = 0; i <= DSA_HOSTS_DEPTH; i++) {
        if (dsa_hosts_step_open(&s->step[i], &s->limits, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    memset(&ready, 0, sizeof(ready));
    memcpy(ready.fingerprint, s->b->fingerprint, sizeof(ready.fingerprint));
    ready.pages = s->b->pages;
    ready.page_bytes = s->b->page_bytes;

    host = dsa_hosts_memory_host(s->memory);
    ready.slabs = host->slabs;

    for (i = 0; i < host->slabs; i++) {
        ready.slab_pages[i] = host->slab[i].pages;
        ready.slab_node[i] = host->slab[i].node;
    }

    memcpy(ready.node, &s->b->node[s->limits.host * s->limits.gpus],
           s->limits.gpus * sizeof(int32_t));

    part.iov_base = &ready;
    part.iov_len = sizeof(ready);

    dsa_hosts_wire_limit(s->w, s->limit_ms);

    if (dsa_hosts_wire_send(s->w, DSA_HOSTS_READY, 0, &part, 1, err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_log(DSA_LOG_NOTICE, "host %u of %u: %u pages of %d tokens on each of "
            "%u ranks", s->limits.host, s->limits.hosts, s->b->pages,
            DSA_PAGE_TOKENS, s->limits.gpus);

    return DSA_OK;
}


/*
 * Reports the pages that have moved.  Returns DSA_OK if the next message is to
 * be read, and DSA_AGAIN if the oldest step is to be waited for: when as many
 * are in flight as may be and no page can move, or when it has ended and no
 * message is there.  A step ahead is thus started, and pages move, while a step
 * runs.  DSA_ERROR with err.
 */

static int
dsa_hosts_follow_idle(dsa_hosts_following_t *s, dsa_err_t *err)
{
    uint32_t         steps;
    struct timespec  pause = { 0, DSA_HOSTS_POLL_NS };

    steps = s->started - s->ended;

    for ( ;; ) {
        dsa_hosts_wire_limit(s->w, s->limit_ms);

        if (dsa_hosts_memory_advance(s->memory, s->w, err) != DSA_OK) {
            return DSA_ERROR;
        }

        if (steps != 0 && (s->b->ended == NULL
                           || (steps == s->b->depth && !s->moves)))
        {
            return DSA_AGAIN;
        }

        if (dsa_hosts_wire_readable(s->w)) {
            return DSA_OK;
        }

        if (steps == 0) {
            dsa_hosts_memory_wait(s->memory, s->w);
            continue;
        }

        if (s->b->ended(s->b)) {
            return DSA_AGAIN;
        }

        (void) nanosleep(&pause, NULL);
    }
}


/* Handles a message.  DSA_AGAIN: more follow; DSA_OK: it was the last one. */

static int
dsa_hosts_follow_message(dsa_hosts_following_t *s, dsa_err_t *err)
{
    int               rc;
    dsa_hosts_head_t  head;

    dsa_hosts_wire_limit(s->w, 0);

    if (dsa_hosts_wire_read(s->w, &head, sizeof(head), err) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_hosts_wire_limit(s->w, s->limit_ms);

    switch (head.type) {

    case DSA_HOSTS_STEP:
        rc = dsa_hosts_follow_step(s, &head, err);
        break;

    case DSA_HOSTS_COPY:
        rc = dsa_hosts_follow_copy(s, &head, err);
        break;

    case DSA_HOSTS_MOVE:
        rc = dsa_hosts_memory_move(s->memory, s->w, head.bytes, err);
        break;

    case DSA_HOSTS_TIER:
        rc = dsa_hosts_memory_tier(s->memory, s->w, head.bytes, err);
        break;

    case DSA_HOSTS_BYE:
        if (head.bytes == 0 && s->started == s->ended) {
            return DSA_OK;
        }

        /* fall through */

    default:
        return dsa_error(err, "%s has sent %s of %llu bytes; expected STEP, "
                         "COPY, MOVE, TIER, or BYE after the last step",
                         s->w->name,
                         dsa_hosts_type(head.type),
                         (unsigned long long) head.bytes);
    }

    return rc == DSA_OK ? DSA_AGAIN : rc;
}


static int
dsa_hosts_follow_step(dsa_hosts_following_t *s, const dsa_hosts_head_t *head,
    dsa_err_t *err)
{
    char                    *text;
    dsa_hosts_step_t        *step;
    const dsa_hosts_step_t  *before;

    if (head->number != s->started || s->started - s->ended == s->b->depth
        || head->bytes > dsa_hosts_step_bytes(&s->limits))
    {
        return dsa_error(err, "%s has sent step %u of %llu bytes; expected "
                         "step %u of at most %llu, and no more than the "
                         "backend has room for", s->w->name, head->number,
                         (unsigned long long) head->bytes, s->started,
                         (unsigned long long) dsa_hosts_step_bytes(&s->limits));
    }

    step = &s->step[s->started % (DSA_HOSTS_DEPTH + 1)];

    /* a backend with one step in flight expects the tokens of all entries */

    before = s->started == 0 || s->b->depth == 1 ? NULL
             : &s->step[(s->started - 1) % (DSA_HOSTS_DEPTH + 1)];

    if (head->bytes > step->size) {
        text = realloc(step->text, head->bytes);

        if (text == NULL) {
            return dsa_error(err, "no memory for a step of %llu bytes",
                             (unsigned long long) head->bytes);
        }

        step->text = text;
        step->size = head->bytes;
    }

    if (dsa_hosts_wire_read(s->w, step->text, head->bytes, err) != DSA_OK
        || dsa_hosts_step_read(step, head->bytes, before, &s->limits, err)
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_hosts_follow_busy(s);
    dsa_log_debug("step %u: starts with %u entries", s->started, step->n);

    if (s->b->start(s->b, step->seq, step->n, err) != DSA_OK) {
        return DSA_ERROR;
    }

    s->started++;

    return DSA_OK;
}


static int
dsa_hosts_follow_copy(dsa_hosts_following_t *s, const dsa_hosts_head_t *head,
    dsa_err_t *err)
{
    uint32_t         n;
    dsa_page_copy_t  copy[DSA_HOSTS_COPIES];

    if (s->b->copy == NULL || head->bytes == 0 || head->bytes > sizeof(copy)
        || head->bytes % sizeof(copy[0]) != 0)
    {
        return dsa_error(err, "%s has sent COPY of %llu bytes; expected 1 to "
                         "%d copies of %zu", s->w->name,
                         (unsigned long long) head->bytes, DSA_HOSTS_COPIES,
                         sizeof(copy[0]));
    }

    n = (uint32_t) (head->bytes / sizeof(copy[0]));

    if (dsa_hosts_wire_read(s->w, copy, head->bytes, err) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_hosts_follow_busy(s);

    if (s->b->copy(s->b, copy, n, err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (s->started == s->ended) {
        atomic_store(s->f->step_started_ms, 0);
    }

    return DSA_OK;
}


/* Waits for the oldest step, and sends its samples. */

static int
dsa_hosts_follow_wait(dsa_hosts_following_t *s, dsa_err_t *err)
{
    struct iovec  part;

    dsa_hosts_follow_busy(s);

    if (s->b->wait(s->b, err) != DSA_OK) {
        return DSA_ERROR;
    }

    s->result.len = 0;
    dsa_hosts_result_write(&s->result, &s->limits,
                           &s->step[s->ended % (DSA_HOSTS_DEPTH + 1)]);

    if (s->result.failed) {
        return dsa_error(err, "no memory for the samples of step %u",
                         s->ended);
    }

    part.iov_base = s->result.data;
    part.iov_len = s->result.len;

    dsa_hosts_wire_limit(s->w, s->limit_ms);

    if (dsa_hosts_wire_send(s->w, DSA_HOSTS_RESULT, s->ended, &part, 1, err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_log_debug("step %u: its samples are sent", s->ended);
    s->ended++;

    if (s->started == s->ended) {
        atomic_store(s->f->step_started_ms, 0);
    }

    return DSA_AGAIN;
}


/* Records for the supervisor that a call of the backend begins. */

static void
dsa_hosts_follow_busy(dsa_hosts_following_t *s)
{
    atomic_store(s->f->step_started_ms, dsa_clock_ms());
}
