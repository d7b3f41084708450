
/*
 * Copyright (C) The nginx-dsa authors
 *
 */


#ifndef _DSA_T_SERVING_H_INCLUDED_
#define _DSA_T_SERVING_H_INCLUDED_


/*
 * The scheduler on a real forward pass, of SERVING_BACKEND in
 * SERVING_PRECISION.  A sequence may be computed beside others, in chunks,
 * after a prefix that was found again, or again after a preemption: the
 * probabilities of its tokens are those that it has alone, up to
 * SERVING_BOUND.  SERVING_OPEN opens the backend, if dsa_backend_open() does
 * not.
 */

#ifndef SERVING_OPEN
#define SERVING_OPEN    dsa_backend_open
#endif

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/cpu/model.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/schedule/scheduler.h"


#define ANSWER  100
#define CLIENTS 4


typedef struct {
    uint32_t            prompt[256];
    uint32_t            n_prompt;
    uint32_t            n;
    dsa_sample_t        sample[ANSWER];
    dsa_sched_usage_t   usage;
    int                 ended;

    /* what a test may set; 0 and NULL otherwise */

    float               temperature;
    float               top_p;
    float               presence_penalty;
    uint64_t            seed;
    uint32_t            n_resume;       /* of prompt */
    dsa_sched_draft_pt  draft;
    dsa_sched_mask_pt   mask;
    dsa_sched_ready_pt  ready;
    dsa_sched_rollout_pt  rollout;
    uint32_t            reports;
} client_t;


typedef struct {
    dsa_backend_t      *backend;
    dsa_sched_t        *sched;
} engine_t;


static const char  *model;              /* of the group of tests that runs */
static client_t     alone[CLIENTS];
static uint32_t     greedy[16];         /* of the model a-fp8 */
static uint32_t     drafts;             /* of the draft layer, in a step */
static uint32_t     gpus = 1;
static uint32_t     number[2];          /* of the GPU of each rank */
static dsa_attention_e  attention;
static dsa_backend_t *(*around)(dsa_backend_t *backend);    /* NULL, or opens
                                           the backend that is used, around the
                                           one that is tested */


static int
on_tokens(void *owner, const dsa_sample_t *samples, uint32_t n)
{
    uint32_t   i;
    client_t  *c = owner;

    for (i = 0; i < n; i++) {
        assert_true(c->n < ANSWER);
        c->sample[c->n++] = samples[i];
    }

    return 0;
}


static void
on_done(void *owner, const dsa_sched_usage_t *usage)
{
    client_t  *c = owner;

    c->usage = *usage;
    c->ended = 1;
}


static void
start(engine_t *e, uint32_t pages, uint32_t budget)
{
    dsa_err_t           err;
    dsa_sched_conf_t    sched;
    dsa_model_config_t  config;
    dsa_backend_conf_t  conf;

    static const dsa_sched_handler_t  handler = { on_tokens, on_done, NULL };

    if (dsa_model_config_read(&config, model, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }

    memset(&conf, 0, sizeof(conf));
    conf.model = model;
    conf.precision = SERVING_PRECISION;
    conf.gpus = gpus;
    memcpy(conf.gpu, number, sizeof(number));
    conf.attention = attention;
    conf.drafts = drafts;
    conf.max_tokens = budget;
    conf.max_seqs = CLIENTS;
    conf.allowed = config.vocab_size;
    conf.context = 1024;

#ifdef SERVING_PAGE
    conf.kv_memory = pages * SERVING_PAGE(&conf, &config);
#else
    conf.kv_memory = dsa_model_kv_memory(&config, SERVING_PRECISION,
                                         drafts != 0, 64 * pages);
#endif

    e->backend = SERVING_OPEN(SERVING_BACKEND, &conf, &err);
    if (e->backend == NULL) {
        fail_msg("%s", err.text);
    }

    assert_int_equal(e->backend->pages, pages);

    e->backend = around != NULL ? around(e->backend) : e->backend;

    memset(&sched, 0, sizeof(sched));
    sched.max_running = CLIENTS;
    sched.token_budget = budget;
    sched.max_waiting = CLIENTS;
    sched.max_waiting_per_tenant = CLIENTS;
    sched.context = 1024;

    e->sched = dsa_sched_create(e->backend, &sched, &handler, &err);
    if (e->sched == NULL) {
        fail_msg("%s", err.text);
    }
}


static void
finish(engine_t *e)
{
    dsa_sched_destroy(e->sched);
    e->backend->close(e->backend);
}


static void
submit(engine_t *e, client_t *c, uint8_t tenant)
{
    dsa_sched_request_t  r;

    c->n = 0;
    c->ended = 0;

    memset(&r, 0, sizeof(r));
    r.tokens = malloc(sizeof(c->prompt));
    assert_non_null(r.tokens);
    memcpy(r.tokens, c->prompt, sizeof(c->prompt));

    r.n_tokens = c->n_prompt;
    r.max_tokens = ANSWER;
    r.weight = 1;
    r.priority = c->seed % DSA_PRIORITIES;
    r.ignore_eos = 1;
    r.n_resume = c->n_resume;
    r.draft = c->draft;
    r.mask = c->mask;
    r.ready = c->ready;
    r.rollout = c->rollout;
    r.reports = c->reports;
    r.sampling.temperature = c->temperature;
    r.sampling.presence_penalty = c->presence_penalty;
    r.sampling.seed = c->seed;
    r.sampling.top_p = c->top_p != 0 ? c->top_p : 1;
    r.sampling.logprobs = 1;
    r.sampling.top_logprobs = DSA_SAMPLE_MAX_TOP;
    r.tenant[0] = tenant;
    r.owner = c;

    assert_non_null(dsa_sched_add(e->sched, &r, NULL));
}


static void
run(engine_t *e)
{
    dsa_err_t  err;

    while (dsa_sched_busy(e->sched)) {
        if (dsa_sched_step(e->sched, &err) != DSA_OK) {
            fail_msg("%s", err.text);
        }
    }
}


/* The same tokens and logprobs, from a token of the answer on. */

static void
same_from(const client_t *c, const client_t *want, uint32_t first)
{
    double               diff, norm;
    uint32_t             i, j;
    const dsa_sample_t  *a, *b;

    assert_true(c->ended);
    assert_int_equal(c->n, ANSWER - first);

    for (i = first; i < ANSWER; i++) {
        a = &c->sample[i - first];
        b = &want->sample[i];
        diff = 0;
        norm = 0;

        assert_int_equal(a->token, b->token);
        assert_int_equal(b->n_top, DSA_SAMPLE_MAX_TOP);
        assert_int_equal(a->n_top, b->n_top);

        for (j = 0; j < b->n_top; j++) {
            diff += pow(a->top_logprob[j] - b->top_logprob[j], 2);
            norm += pow(b->top_logprob[j], 2);
        }

        if (!(sqrt(diff / norm) <= SERVING_BOUND)) {
            fail_msg("token %u: %g from what it is alone", i,
                     sqrt(diff / norm));
        }
    }
}


static void
same(const client_t *c, const client_t *want)
{
    same_from(c, want, 0);
}


/*
 * Prompts of t/data/golden/NAME, and what each has alone.  The first is the
 * published prompt of a-fp8; the others are from the same text.
 */

static int
setup_model(const char *path)
{
    char                    file[256];
    size_t                  n;
    uint32_t                i, len;
    engine_t                e;
    dsa_st_t               *st;
    dsa_err_t               err;
    const dsa_st_tensor_t  *t;

    model = path;
    (void) snprintf(file, sizeof(file), "%s/golden.safetensors", path);

    st = dsa_st_open(file, &err);
    if (st == NULL) {
        return -1;
    }

    len = 80;
    t = dsa_st_find(st, dsa_strz("greedy"));

    if (t != NULL) {
        memcpy(greedy, t->data, 64);
        memcpy(&len, dsa_st_find(st, dsa_strz("greedy_prompt_len"))->data, 4);
    }

    t = dsa_st_find(st, dsa_strz("tokens"));
    n = t->shape[0];

    memset(alone, 0, sizeof(alone));

    for (i = 0; i < CLIENTS; i++) {
        alone[i].n_prompt = i == 0 ? len : 80 + 30 * i;

        if (alone[i].n_prompt + 7 * i > n || alone[i].n_prompt > 256) {
            return -1;
        }

        memcpy(alone[i].prompt, (const uint32_t *) t->data + 7 * i,
               alone[i].n_prompt * sizeof(uint32_t));
    }

    dsa_st_close(st);

    for (i = 0; i < CLIENTS; i++) {
        start(&e, 64, 256);
        submit(&e, &alone[i], 0);
        run(&e);
        finish(&e);
    }

    return 0;
}


static inline int
setup(void **state)
{
    return setup_model("t/data/golden/a-fp8");
}


/* Layer 2 attends to what layer 1 has selected. */

static inline int
setup_glm(void **state)
{
    return setup_model("t/data/golden/glm-5.2");
}


static inline void
test_together(void **state)
{
    uint32_t           i;
    client_t           c[CLIENTS];
    engine_t           e;
    dsa_sched_stats_t  stats;

    memcpy(c, alone, sizeof(c));
    start(&e, 64, 40);

    for (i = 0; i < CLIENTS; i++) {
        submit(&e, &c[i], (uint8_t) i);
    }

    run(&e);

    for (i = 0; i < CLIENTS; i++) {
        same(&c[i], &alone[i]);
    }

    dsa_sched_stats(e.sched, &stats);
    assert_int_equal(stats.preemptions, 0);

    finish(&e);
}


static inline void
test_preempted(void **state)
{
    uint32_t           i;
    client_t           c[CLIENTS];
    engine_t           e;
    dsa_sched_stats_t  stats;

    memcpy(c, alone, sizeof(c));
    start(&e, 8, 100);

    for (i = 0; i < CLIENTS; i++) {
        submit(&e, &c[i], (uint8_t) i);
    }

    run(&e);

    for (i = 0; i < CLIENTS; i++) {
        same(&c[i], &alone[i]);
    }

    dsa_sched_stats(e.sched, &stats);
    assert_true(stats.preemptions > 0);

    finish(&e);
}


static inline void
test_prefix(void **state)
{
    uint32_t  i;
    client_t  c[CLIENTS];
    engine_t  e;

    memcpy(c, alone, sizeof(c));
    start(&e, 64, 100);

    for (i = 1; i < CLIENTS; i++) {
        submit(&e, &c[i], 0);
        run(&e);
        assert_int_equal(c[i].usage.cached_tokens, 0);

        submit(&e, &c[i], 0);
        run(&e);
        assert_int_equal(c[i].usage.cached_tokens,
                         (c[i].n_prompt - 1) / 64 * 64);
        same(&c[i], &alone[i]);
    }

    finish(&e);
}


#endif /* _DSA_T_SERVING_H_INCLUDED_ */
