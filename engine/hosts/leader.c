
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/hosts/connect.h"
#include "engine/hosts/leader_parts.h"


#define DSA_HOSTS_BLAME_MS  500         /* for the reason of another host */


static int dsa_hosts_lead_open(dsa_backend_t *b, dsa_backend_e kind,
    const dsa_backend_conf_t *conf, dsa_err_t *err);
static int dsa_hosts_lead_connect(dsa_backend_leader_t *h, uint64_t begin,
    dsa_err_t *err);
static int dsa_hosts_lead_plan(dsa_backend_leader_t *h, dsa_backend_e kind,
    const dsa_backend_conf_t *conf, dsa_err_t *err);
static int dsa_hosts_lead_ready(dsa_backend_t *b, uint64_t begin,
    dsa_err_t *err);
static int dsa_hosts_lead_flights(dsa_backend_leader_t *h, dsa_err_t *err);
static void dsa_hosts_lead_limit(dsa_backend_leader_t *h, uint64_t limit_ms);
static int dsa_hosts_lead_start(dsa_backend_t *b, dsa_batch_seq_t *seq,
    uint32_t n_seqs, dsa_err_t *err);
static int dsa_hosts_lead_send(dsa_backend_leader_t *h,
    const dsa_batch_seq_t *seq, uint32_t n_seqs, dsa_err_t *err);
static void dsa_hosts_lead_slots(dsa_backend_leader_t *h,
    const dsa_batch_seq_t *seq, uint32_t n_seqs);
static int dsa_hosts_lead_wait(dsa_backend_t *b, dsa_err_t *err);
static void dsa_hosts_lead_blame(dsa_backend_leader_t *h, int rc,
    dsa_err_t *err);
static int dsa_hosts_lead_results(dsa_backend_leader_t *h, dsa_err_t *err);
static int dsa_hosts_lead_result(dsa_backend_leader_t *h, uint32_t host,
    dsa_hosts_early_t *result, dsa_err_t *err);
static int dsa_hosts_lead_copy(dsa_backend_t *b, const dsa_page_copy_t *copy,
    uint32_t n, dsa_err_t *err);
static int dsa_hosts_lead_check(dsa_backend_t *b, dsa_err_t *err);
static void dsa_hosts_lead_close(dsa_backend_t *b);


dsa_backend_t *
dsa_hosts_lead(dsa_backend_e kind, const dsa_backend_conf_t *conf,
    const dsa_hosts_leader_t *leader, dsa_err_t *err)
{
    uint32_t               i;
    dsa_backend_t         *b;
    dsa_backend_leader_t  *h;

    assert(leader->n >= 1 && leader->n < DSA_MAX_GPUS && leader->step_ms > 0);

    b = calloc(1, sizeof(dsa_backend_t));
    h = calloc(1, sizeof(dsa_backend_leader_t));

    if (b == NULL || h == NULL) {
        (void) dsa_error(err, "out of memory");
        free(b);
        free(h);
        return NULL;
    }

    b->data = h;
    h->conf = leader;
    h->limits.hosts = leader->n + 1;
    h->limits.gpus = conf->gpus;
    h->exchange.n = leader->n + 1;
    h->exchange.wire = h->wire;
    h->host_memory = conf->host_memory;

    for (i = 0; i < DSA_MAX_GPUS; i++) {
        h->wire[i].fd = -1;
    }

    h->far = dsa_hosts_far_create(h->wire, h->limits.hosts, conf->gpus);

    if (h->far == NULL) {
        (void) dsa_error(err, "out of memory");
        dsa_hosts_lead_close(b);
        return NULL;
    }

    if (dsa_hosts_lead_open(b, kind, conf, err) != DSA_OK) {
        dsa_hosts_lead_close(b);
        return NULL;
    }

    return b;
}


static int
dsa_hosts_lead_open(dsa_backend_t *b, dsa_backend_e kind,
    const dsa_backend_conf_t *conf, dsa_err_t *err)
{
    int                    rc;
    uint64_t               begin;
    dsa_backend_conf_t     own;
    dsa_backend_leader_t  *h = b->data;

    begin = dsa_clock_ms();

    own = *conf;
    own.hosts.n = h->limits.hosts;
    own.hosts.host = 0;
    own.hosts.exchange = dsa_hosts_exchange;
    own.hosts.data = &h->exchange;

    if (dsa_hosts_lead_connect(h, begin, err) != DSA_OK
        || dsa_hosts_lead_plan(h, kind, &own, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    h->watch = dsa_hosts_watch_start(h->conf, h->wire, err);

    if (h->watch == NULL) {
        return DSA_ERROR;
    }

    dsa_hosts_watch_open(h->watch);
    h->local = h->conf->open(kind, &own, err);
    dsa_hosts_watch_end(h->watch);

    if (h->local == NULL) {
        return DSA_ERROR;
    }

    *b = *h->local;

    b->data = h;
    b->splits = 0;
    b->rollouts = 0;
    b->drafts = 0;
    b->max_outputs = 1;
    b->start = dsa_hosts_lead_start;
    b->wait = dsa_hosts_lead_wait;
    b->copy = dsa_hosts_lead_copy;
    b->pin = dsa_hosts_lead_pin;
    b->move = dsa_hosts_lead_move;
    b->moved = dsa_hosts_lead_moved;
    b->ended = NULL;
    b->check = dsa_hosts_lead_check;
    b->close = dsa_hosts_lead_close;

    assert(b->depth <= DSA_HOSTS_DEPTH && h->local->drafts == 0);

    h->limits.context = conf->context != 0
                        ? conf->context : b->config.max_position_embeddings;
    h->limits.max_tokens = b->rank_tokens * b->ranks;
    h->limits.max_seqs = conf->max_seqs;
    h->limits.vocab = b->config.vocab_size;
    h->limits.pages = b->pages;

    if (dsa_hosts_lead_flights(h, err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (dsa_hosts_watch_begin(h->watch, "waiting for the other hosts",
                              h->conf->start_ms, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    rc = dsa_hosts_lead_ready(b, begin, err);
    dsa_hosts_watch_end(h->watch);

    return rc;
}


/* Sets the time limit of all connections, from now on. */

static void
dsa_hosts_lead_limit(dsa_backend_leader_t *h, uint64_t limit_ms)
{
    uint32_t  i;

    for (i = 1; i < h->limits.hosts; i++) {
        dsa_hosts_wire_limit(&h->wire[i], limit_ms);
    }
}


static int
dsa_hosts_lead_connect(dsa_backend_leader_t *h, uint64_t begin,
    dsa_err_t *err)
{
    uint32_t  i;

    for (i = 1; i < h->limits.hosts; i++) {
        h->wire[i].limit_ms = h->conf->start_ms;
        h->wire[i].deadline_ms = h->conf->start_ms != 0
                                 ? begin + h->conf->start_ms : UINT64_MAX;

        if (dsa_hosts_connect(&h->wire[i], h->conf->address[i - 1],
                              h->conf->secret, err) != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


static int
dsa_hosts_lead_plan(dsa_backend_leader_t *h, dsa_backend_e kind,
    const dsa_backend_conf_t *conf, dsa_err_t *err)
{
    uint32_t          i;
    struct iovec      part;
    dsa_hosts_plan_t  plan;

    part.iov_base = &plan;
    part.iov_len = sizeof(plan);

    for (i = 1; i < h->limits.hosts; i++) {
        dsa_hosts_plan(&plan, kind, conf, i, h->conf->tiers,
                       h->conf->step_ms);

        if (dsa_hosts_wire_send(&h->wire[i], DSA_HOSTS_PLAN, 0, &part, 1, err)
            != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


static int
dsa_hosts_lead_flights(dsa_backend_leader_t *h, dsa_err_t *err)
{
    uint32_t  i, most;

    most = dsa_hosts_step_most(&h->limits);

    for (i = 0; i < DSA_HOSTS_DEPTH; i++) {
        h->flight[i].slot = calloc(most, sizeof(dsa_hosts_slot_t));

        if (h->flight[i].slot == NULL) {
            return dsa_error(err, "no memory for steps of %u sequences", most);
        }
    }

    return DSA_OK;
}


/* Waits until all followers have opened their backends. */

static int
dsa_hosts_lead_ready(dsa_backend_t *b, uint64_t begin, dsa_err_t *err)
{
    uint32_t               i, j;
    dsa_hosts_head_t       head;
    dsa_hosts_wire_t      *w;
    dsa_hosts_ready_t     *ready;
    dsa_backend_leader_t  *h = b->data;

    for (i = 1; i < h->limits.hosts; i++) {
        w = &h->wire[i];
        ready = &h->ready[i];

        if (dsa_hosts_wire_expect(w, DSA_HOSTS_READY, 0,
                                  sizeof(dsa_hosts_ready_t),
                                  sizeof(dsa_hosts_ready_t), &head, err)
            != DSA_OK
            || dsa_hosts_wire_read(w, ready, sizeof(dsa_hosts_ready_t), err)
               != DSA_OK
            || dsa_hosts_ready_check(b, ready, h->limits.hosts,
                                     h->host_memory != 0, w->name, err)
               != DSA_OK)
        {
            return DSA_ERROR;
        }

        for (j = 0; j < h->limits.gpus; j++) {
            b->node[i * h->limits.gpus + j] = ready->node[j];
        }

        dsa_log(DSA_LOG_NOTICE, "%s is ready", w->name);
    }

    h->limits.pages = b->pages;

    dsa_log(DSA_LOG_NOTICE, "%u hosts are ready after %.1f s",
            h->limits.hosts, (double) (dsa_clock_ms() - begin) * 1e-3);

    return DSA_OK;
}


static void
dsa_hosts_lead_close(dsa_backend_t *b)
{
    uint32_t               i;
    dsa_err_t              err;
    dsa_backend_leader_t  *h = b->data;

    /* from now on the end of a connection is expected */

    dsa_hosts_watch_stop(h->watch);

    for (i = 1; i < h->limits.hosts; i++) {
        if (h->wire[i].fd != -1 && h->local != NULL && !h->failed) {
            dsa_hosts_wire_limit(&h->wire[i], h->conf->step_ms);
            (void) dsa_hosts_wire_send(&h->wire[i], DSA_HOSTS_BYE, 0, NULL, 0,
                                       &err);
        }

        dsa_hosts_wire_close(&h->wire[i]);
    }

    if (h->local != NULL) {
        h->local->close(h->local);
    }

    for (i = 0; i < DSA_HOSTS_DEPTH; i++) {
        free(h->flight[i].slot);
    }

    for (i = 0; i < h->limits.hosts * DSA_HOSTS_DEPTH; i++) {
        free(h->early[i / DSA_HOSTS_DEPTH][i % DSA_HOSTS_DEPTH].text);
    }

    dsa_hosts_far_destroy(h->far);
    dsa_hosts_exchange_close(&h->exchange);
    dsa_buf_free(&h->text);
    free(h);
    free(b);
}


int
dsa_hosts_lead_begin(dsa_backend_leader_t *h, const char *what, dsa_err_t *err)
{
    if (dsa_hosts_watch_begin(h->watch, what, h->conf->step_ms, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_hosts_lead_limit(h, h->conf->step_ms);

    return DSA_OK;
}


int
dsa_hosts_lead_end(dsa_backend_leader_t *h, int rc)
{
    dsa_hosts_watch_end(h->watch);
    h->failed |= rc != DSA_OK;

    return rc;
}


static int
dsa_hosts_lead_start(dsa_backend_t *b, dsa_batch_seq_t *seq, uint32_t n_seqs,
    dsa_err_t *err)
{
    int                    rc;
    dsa_backend_leader_t  *h = b->data;

    assert(h->started - h->ended < b->depth);

    if (dsa_hosts_lead_begin(h, "starting a step", err) != DSA_OK) {
        return DSA_ERROR;
    }

    rc = dsa_hosts_lead_send(h, seq, n_seqs, err);

    if (rc == DSA_OK) {
        rc = h->local->start(h->local, seq, n_seqs, err);
        dsa_hosts_lead_blame(h, rc, err);
    }

    if (dsa_hosts_lead_end(h, rc) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_hosts_lead_slots(h, seq, n_seqs);
    h->started++;

    return DSA_OK;
}


static int
dsa_hosts_lead_send(dsa_backend_leader_t *h, const dsa_batch_seq_t *seq,
    uint32_t n_seqs, dsa_err_t *err)
{
    uint32_t      i;
    struct iovec  part;

    assert(n_seqs <= dsa_hosts_step_most(&h->limits));

    for (i = 1; i < h->limits.hosts; i++) {
        h->text.len = 0;
        h->limits.host = i;

        if (dsa_hosts_step_write(&h->text, &h->limits, seq, n_seqs, err)
            != DSA_OK)
        {
            return DSA_ERROR;
        }

        part.iov_base = h->text.data;
        part.iov_len = h->text.len;

        if (dsa_hosts_wire_send(&h->wire[i], DSA_HOSTS_STEP, h->started, &part,
                                1, err) != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


/* Records where the samples of the followers belong. */

static void
dsa_hosts_lead_slots(dsa_backend_leader_t *h, const dsa_batch_seq_t *seq,
    uint32_t n_seqs)
{
    uint32_t             i;
    dsa_hosts_slot_t    *slot;
    dsa_hosts_flight_t  *f;

    f = &h->flight[h->started % DSA_HOSTS_DEPTH];
    f->n = 0;

    for (i = 0; i < n_seqs; i++) {
        if (seq[i].sampling == NULL || seq[i].rank < h->limits.gpus) {
            continue;
        }

        slot = &f->slot[f->n++];
        slot->sample = seq[i].sample;
        slot->rank = seq[i].rank;
        slot->most = seq[i].sampling->top_logprobs;
    }
}


static int
dsa_hosts_lead_wait(dsa_backend_t *b, dsa_err_t *err)
{
    int                    rc;
    dsa_backend_leader_t  *h = b->data;

    assert(h->started != h->ended);

    if (dsa_hosts_lead_begin(h, "a step", err) != DSA_OK) {
        return DSA_ERROR;
    }

    rc = h->local->wait(h->local, err);
    dsa_hosts_lead_blame(h, rc, err);
    rc = rc == DSA_OK ? dsa_hosts_lead_results(h, err) : rc;

    h->ended++;

    return dsa_hosts_lead_end(h, rc);
}


/*
 * After an error of this host's backend: it may be because another host has
 * failed, which that host reports, or at least closes its connection.  Then err
 * becomes that report.
 */

static void
dsa_hosts_lead_blame(dsa_backend_leader_t *h, int rc, dsa_err_t *err)
{
    uint32_t           i, seen[DSA_MAX_GPUS];
    uint64_t           end;
    dsa_err_t          other;
    struct timespec    pause = { 0, 10000000 };
    dsa_hosts_head_t   head;
    dsa_hosts_wire_t  *w;

    for (i = 1; i < h->limits.hosts && rc != DSA_OK; i++) {
        w = &h->wire[i];

        if (strncmp(err->text, w->name, strlen(w->name)) == 0) {

            /* err is from the connection, as in the exchange of the CPU */

            rc = DSA_OK;
        }
    }

    if (rc == DSA_OK) {
        return;
    }

    memset(seen, 0, sizeof(seen));

    for (end = dsa_clock_ms() + DSA_HOSTS_BLAME_MS; dsa_clock_ms() < end;
         (void) nanosleep(&pause, NULL))
    {
        for (i = 1; i < h->limits.hosts; i++) {
            w = &h->wire[i];

            if (seen[i] || !dsa_hosts_wire_readable(w)) {
                continue;
            }

            dsa_hosts_wire_limit(w, DSA_HOSTS_BLAME_MS);

            if (dsa_hosts_wire_head(w, &head, &other) != DSA_OK) {
                *err = other;
                return;
            }

            if (dsa_hosts_wire_is_aside(w, &head)
                && w->aside(w->aside_data, w, &head, &other) == DSA_OK)
            {
                continue;
            }

            /* the samples of an earlier step: this host did not fail first */

            seen[i] = 1;
        }
    }
}


/* Receives the samples of the oldest step from all followers. */

static int
dsa_hosts_lead_results(dsa_backend_leader_t *h, dsa_err_t *err)
{
    int                  rc;
    uint32_t             i;
    dsa_hosts_flight_t  *f;
    dsa_hosts_early_t    result;

    f = &h->flight[h->ended % DSA_HOSTS_DEPTH];

    for (i = 1; i < h->limits.hosts; i++) {
        h->limits.host = i;

        if (dsa_hosts_lead_result(h, i, &result, err) != DSA_OK) {
            return DSA_ERROR;
        }

        rc = dsa_hosts_result_read(f->slot, f->n, result.text, result.bytes,
                                   &h->limits, h->wire[i].name, err);
        free(result.text);

        if (rc != DSA_OK) {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


/* Receives the samples of a host, whose text the caller frees. */

static int
dsa_hosts_lead_result(dsa_backend_leader_t *h, uint32_t host,
    dsa_hosts_early_t *result, dsa_err_t *err)
{
    dsa_hosts_head_t    head;
    dsa_hosts_wire_t   *w;
    dsa_hosts_early_t  *early;

    w = &h->wire[host];
    early = h->early[host];

    if (h->n_early[host] != 0) {
        *result = early[0];
        early[0] = early[1];
        early[1].text = NULL;
        h->n_early[host]--;

        return DSA_OK;
    }

    if (dsa_hosts_wire_expect(w, DSA_HOSTS_RESULT, h->ended, 0,
                              dsa_hosts_result_bytes(&h->limits), &head, err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    result->bytes = head.bytes;
    result->text = malloc(head.bytes + 1);

    if (result->text == NULL) {
        return dsa_error(err, "out of memory");
    }

    if (dsa_hosts_wire_read(w, result->text, head.bytes, err) != DSA_OK) {
        free(result->text);
        return DSA_ERROR;
    }

    return DSA_OK;
}


static int
dsa_hosts_lead_copy(dsa_backend_t *b, const dsa_page_copy_t *copy, uint32_t n,
    dsa_err_t *err)
{
    int                    rc;
    uint32_t               i, part;
    struct iovec           message;
    dsa_backend_leader_t  *h = b->data;

    rc = DSA_OK;

    if (dsa_hosts_lead_begin(h, "copying pages", err) != DSA_OK) {
        return DSA_ERROR;
    }

    for ( /* void */ ; n != 0 && rc == DSA_OK; n -= part, copy += part) {
        part = n < DSA_HOSTS_COPIES ? n : DSA_HOSTS_COPIES;

        message.iov_base = (void *) (uintptr_t) copy;
        message.iov_len = part * sizeof(dsa_page_copy_t);

        for (i = 1; i < h->limits.hosts && rc == DSA_OK; i++) {
            rc = dsa_hosts_wire_send(&h->wire[i], DSA_HOSTS_COPY, 0, &message,
                                     1, err);
        }

        rc = rc == DSA_OK ? h->local->copy(h->local, copy, part, err) : rc;
    }

    return dsa_hosts_lead_end(h, rc);
}


static int
dsa_hosts_lead_check(dsa_backend_t *b, dsa_err_t *err)
{
    dsa_backend_leader_t  *h = b->data;

    if (h->err.text[0] != '\0') {
        *err = h->err;
        return DSA_ERROR;
    }

    return dsa_hosts_watch_fault(h->watch, err);
}
