
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/schedule/state.h"


static dsa_sched_t *dsa_sched_open(dsa_backend_t *backend,
    const dsa_sched_conf_t *conf, const dsa_sched_handler_t *handler,
    dsa_err_t *err);
static int dsa_sched_check(const dsa_backend_t *backend,
    const dsa_sched_conf_t *conf, dsa_err_t *err);
static int dsa_sched_alloc(dsa_sched_t *s);
static uint64_t dsa_sched_monotonic(void *data);


dsa_sched_t *
dsa_sched_create(dsa_backend_t *backend, const dsa_sched_conf_t *conf,
    const dsa_sched_handler_t *handler, dsa_err_t *err)
{
    uint32_t           i;
    dsa_sched_t       *s;
    const dsa_tier_t  *tier;

    s = dsa_sched_open(backend, conf, handler, err);

    for (i = DSA_TIER_SLOWER; s == NULL && i < DSA_TIERS; i++) {
        tier = &conf->tier[i];

        if (tier->submit != NULL) {
            tier->close(tier->data);
        }
    }

    return s;
}


static dsa_sched_t *
dsa_sched_open(dsa_backend_t *backend, const dsa_sched_conf_t *conf,
    const dsa_sched_handler_t *handler, dsa_err_t *err)
{
    uint64_t          tokens;
    dsa_sched_t      *s;
    dsa_tiers_conf_t  tiers;

    if (dsa_sched_check(backend, conf, err) != DSA_OK) {
        return NULL;
    }

    s = calloc(1, sizeof(dsa_sched_t));

    if (s == NULL) {
        (void) dsa_error(err, "out of memory");
        return NULL;
    }

    s->backend = backend;
    s->conf = *conf;
    s->handler = *handler;
    s->next = &s->ring[0];
    s->ranks = backend->ranks;
    s->indices = backend->ranks * conf->max_running;
    s->routes = dsa_model_config_moe_layers(&backend->config)
                * backend->config.num_experts_per_tok;
    dsa_spec_init(&s->drafts, backend->drafts, conf->adapt_drafts);
    s->pace.token = 1000.0 * conf->token_target_ms;
    s->pace.first = 1000.0 * conf->first_token_target_ms;

    if (s->conf.clock_us == NULL) {
        s->conf.clock_us = dsa_sched_monotonic;
    }

    /* the last token of an answer is not computed, so it needs no page */

    tokens = (uint64_t) backend->pages * DSA_PAGE_TOKENS + 1;

    if (s->conf.context > tokens) {
        s->conf.context = (uint32_t) tokens;
    }

    dsa_policy_init(&s->policy, s->indices, backend->ranks * backend->pages);

    if (dsa_sched_alloc(s) != DSA_OK) {
        (void) dsa_error(err, "out of memory for %u pages and %u sequences "
                         "on each of %u ranks", backend->pages,
                         conf->max_running, backend->ranks);
        dsa_sched_destroy(s);
        return NULL;
    }

    if (conf->host != NULL) {
        memset(&tiers, 0, sizeof(tiers));
        tiers.backend = backend;
        tiers.pages = s->pages;
        tiers.host = conf->host;
        tiers.tier = s->conf.tier;
        tiers.clock_us = s->conf.clock_us;
        tiers.clock_data = s->conf.clock_data;

        s->tiers = dsa_tiers_create(&tiers, err);

        if (s->tiers == NULL) {
            dsa_sched_destroy(s);
            return NULL;
        }
    }

    s->stats.ranks = backend->ranks;
    s->stats.rank_pages = backend->pages;
    s->stats.pages = backend->ranks * backend->pages;

    return s;
}


static int
dsa_sched_check(const dsa_backend_t *backend, const dsa_sched_conf_t *conf,
    dsa_err_t *err)
{
    if (backend->pages == 0 || backend->pages > DSA_PAGES_MAX) {
        return dsa_error(err, "the backend has %u pages; expected 1 to %u",
                         backend->pages, DSA_PAGES_MAX);
    }

    if (conf->max_running == 0) {
        return dsa_error(err, "max_running is 0; expected 1 or more");
    }

    if (conf->token_budget < (uint64_t) backend->ranks * conf->max_running) {
        return dsa_error(err, "token_budget is %u; expected at least "
                         "max_running, %u, for each of %u ranks",
                         conf->token_budget, conf->max_running,
                         backend->ranks);
    }

    if (conf->context < 2) {
        return dsa_error(err, "the context is %u tokens; expected 2 or more",
                         conf->context);
    }

    assert(backend->ranks >= 1 && backend->ranks <= DSA_MAX_GPUS);
    assert(backend->ranks == 1 || backend->copy != NULL);
    assert(backend->rank_tokens >= conf->max_running);
    assert(backend->depth >= 1 && backend->depth <= DSA_SCHED_DEPTH);
    assert(backend->max_outputs >= 1
           && backend->max_outputs <= DSA_MAX_OUTPUTS
           && backend->drafts < backend->max_outputs);

    return DSA_OK;
}


static int
dsa_sched_alloc(dsa_sched_t *s)
{
    int                ok;
    size_t             n;
    uint32_t           i;
    dsa_sched_step_t  *step;

    n = s->indices;

    s->pages = dsa_pages_create(s->ranks, s->backend->pages, s->conf.host);
    s->digester = dsa_digester_create();
    s->running = calloc(n, sizeof(dsa_seq_t *));

    ok = s->pages != NULL && s->digester != NULL && s->running != NULL;

    if (s->ranks > 1) {
        s->copy = calloc((size_t) s->ranks * dsa_pages_of(s->conf.context),
                         sizeof(dsa_page_copy_t));
        ok = ok && s->copy != NULL;
    }

    for (i = 0; i < DSA_SCHED_DEPTH; i++) {
        step = &s->ring[i];

        step->batch = calloc(n, sizeof(dsa_batch_seq_t));
        step->member = calloc(n, sizeof(dsa_seq_t *));
        step->sample = calloc(n * s->backend->max_outputs,
                              sizeof(dsa_sample_t));
        step->accepted = calloc(n, sizeof(uint32_t));
        step->next = calloc(n * s->backend->max_outputs, sizeof(uint32_t));
        step->n_next = calloc(n, sizeof(uint32_t));
        step->rollout = calloc(n, sizeof(dsa_rollout_t));

        ok = ok && step->batch != NULL && step->member != NULL
             && step->sample != NULL && step->accepted != NULL
             && step->next != NULL && step->n_next != NULL
             && step->rollout != NULL;
    }

    return ok ? DSA_OK : DSA_ERROR;
}


void
dsa_sched_destroy(dsa_sched_t *s)
{
    uint32_t    i;
    dsa_seq_t  *seq;

    if (s == NULL) {
        return;
    }

    for (i = 0; i < s->n_running; i++) {
        seq = s->running[i];

        if (seq != NULL) {
            dsa_sched_stop(s, seq);
            dsa_sched_free(s, seq);
        }
    }

    while (s->policy.first != NULL) {
        seq = s->policy.first->waiting.first;
        dsa_sched_stop(s, seq);
        dsa_sched_free(s, seq);
    }

    for (i = 0; i < DSA_SCHED_DEPTH; i++) {
        free(s->ring[i].batch);
        free(s->ring[i].member);
        free(s->ring[i].sample);
        free(s->ring[i].accepted);
        free(s->ring[i].next);
        free(s->ring[i].n_next);
        free(s->ring[i].rollout);
        free(s->ring[i].rollout_memory);
    }

    dsa_tiers_destroy(s->tiers);
    dsa_policy_free(&s->policy);
    dsa_digester_destroy(s->digester);
    dsa_pages_destroy(s->pages);
    free(s->running);
    free(s->copy);
    free(s);
}


uint32_t
dsa_sched_context(const dsa_sched_t *s)
{
    return s->conf.context;
}


uint32_t
dsa_sched_cached(const dsa_sched_t *s, const dsa_seq_t *seq)
{
    int            ready;
    uint32_t       i, n;
    dsa_host_at_t  at;

    if (seq->state != DSA_SEQ_WAITING) {
        return seq->cached;
    }

    /* the last token is always computed, because the answer follows it */

    n = (seq->n_prompt - 1) / DSA_PAGE_TOKENS;

    for (i = 0; i < n; i++) {
        if (dsa_pages_ready(s->pages, &seq->digest[i]) == 0
            && !dsa_pages_host(s->pages, DSA_ANY_HOST, &seq->digest[i], &at,
                               &ready))
        {
            break;
        }
    }

    return i * DSA_PAGE_TOKENS;
}


void
dsa_sched_cancel(dsa_sched_t *s, dsa_seq_t *seq, dsa_finish_e finish)
{
    dsa_sched_finish(s, seq, finish, dsa_sched_now(s));
    s->stuck = 0;
}


int
dsa_sched_busy(const dsa_sched_t *s)
{
    if (s->in_flight != 0
        || (s->tiers != NULL && dsa_tiers_moving(s->tiers) != 0))
    {
        return 1;
    }

    return !s->stuck && (s->n_live != 0 || s->n_waiting != 0);
}


int
dsa_sched_poll(dsa_sched_t *s, dsa_err_t *err)
{
    s->stuck = 0;

    if (s->tiers == NULL) {
        return DSA_OK;
    }

    if (dsa_tiers_poll(s->tiers, 0, err) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_sched_probes(s);
    dsa_sched_loads(s);

    return DSA_OK;
}


uint64_t
dsa_sched_due_us(const dsa_sched_t *s)
{
    return dsa_sched_load_due(s);
}


uint32_t
dsa_sched_unwritten(const dsa_sched_t *s)
{
    return s->tiers != NULL ? dsa_tiers_unwritten(s->tiers) : 0;
}


void
dsa_sched_stats(const dsa_sched_t *s, dsa_sched_stats_t *stats)
{
    uint32_t  i, cached;

    *stats = s->stats;

    stats->expert_rows = s->backend->expert_rows;
    stats->fullest_rows = s->backend->fullest_rows;
    stats->running = s->n_live;
    stats->waiting = s->n_waiting;
    stats->pages_used = 0;
    cached = 0;

    for (i = 0; i < s->ranks; i++) {
        stats->rank_used[i] = dsa_pages_total(s->pages)
                              - dsa_pages_free(s->pages, i);
        stats->pages_used += stats->rank_used[i];
        cached += dsa_pages_cached(s->pages, i);
    }

    if (s->tiers != NULL) {
        dsa_tiers_stats(s->tiers, stats->tier);
    }

    stats->unwritten = dsa_sched_unwritten(s);
    stats->tier[DSA_TIER_GPU].pages = stats->pages;
    stats->tier[DSA_TIER_GPU].used = stats->pages_used + cached;
}


static uint64_t
dsa_sched_monotonic(void *data)
{
    return dsa_clock_us();
}
