
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Requests to a scheduler with the draft layer of a model, for the tests that
 * compare their answers and accepted drafts with those of other requests.
 */


#ifndef _T_SPECULATE_H_INCLUDED_
#define _T_SPECULATE_H_INCLUDED_


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/cpu/model.h"


#define GOLDEN  "t/data/golden/"
#define PROMPT  260
#define ANSWER  65          /* one token, and 64 with drafts */
#define DRAFTS  3
#define BUDGET  512
#define PAGES   40
#define FEW_PAGES   6
#define VOCAB   256

#include "t/unit/ahead.h"
#include "t/unit/collect.h"


typedef struct {
    answer_t            answer;
    uint32_t            prompt[PROMPT + 2 * ANSWER];
    uint32_t            n_prompt;
    uint32_t            n_resume;       /* of prompt, tokens of the answer */
    uint32_t            max_tokens;
    float               temperature;
    uint64_t            seed;
    uint32_t            modulus;        /* token i of the answer has id %
                                           modulus == i % modulus; 0: any id */
    uint32_t            drafts;         /* that were verified */
    uint32_t            accepted;
    uint32_t            drafts_at[ANSWER + 1];      /* before the token that a
                                                       step begins with; else
                                                       UINT32_MAX */
    uint32_t            accepted_at[ANSWER + 1];
} client_t;


typedef struct {
    dsa_backend_t      *backend;
    dsa_host_t          host;
    dsa_sched_t        *sched;
} engine_t;


static const char   sparse[] = GOLDEN "drafts";
static const char  *model = sparse;
static uint32_t     depth;              /* of the backends: 2 as on a GPU */


/*
 * The threads of a backend, instead of as many as there are CPUs.  Steps are so
 * small that threads spend most of their time in waiting for each other, so
 * only several ranks have several.  The programs of these tests are linked with
 * --wrap=dsa_threads_cpus.
 */

uint32_t __wrap_dsa_threads_cpus(void);

static uint32_t  threads;


uint32_t
__wrap_dsa_threads_cpus(void)
{
    return threads;
}


static inline dsa_backend_t *
backend_open(uint32_t gpus, uint32_t drafts, uint32_t pages)
{
    dsa_err_t           err;
    dsa_backend_t       *b;
    dsa_model_config_t   config;
    dsa_backend_conf_t   conf;

    if (dsa_model_config_read(&config, model, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }

    memset(&conf, 0, sizeof(conf));
    conf.model = model;
    conf.precision = DSA_SERVED;
    conf.kv_memory = dsa_model_kv_memory(&config, DSA_SERVED, drafts != 0,
                                         64 * pages);
    conf.gpus = gpus;
    conf.max_tokens = BUDGET;
    conf.max_seqs = 4;
    conf.allowed = config.vocab_size;
    conf.drafts = drafts;
    threads = gpus;

    b = dsa_backend_cpu_open(&conf, &err);

    if (b == NULL) {
        fail_msg("%s", err.text);
    }

    assert_int_equal(config.vocab_size, VOCAB);
    assert_int_equal(b->pages, pages);

    return depth == 2 ? ahead_open(b) : b;
}


/* A scheduler without a page in its index; host_pages: of host memory. */

static inline void
start(engine_t *e, dsa_backend_t *b, uint32_t budget, uint32_t host_pages)
{
    dsa_err_t         err;
    dsa_sched_conf_t  conf;

    memset(e, 0, sizeof(engine_t));
    e->backend = b;

    memset(&conf, 0, sizeof(conf));
    conf.max_running = 4;
    conf.token_budget = budget;
    conf.max_waiting = 8;
    conf.max_waiting_per_tenant = 8;
    conf.context = PROMPT + 2 * ANSWER;

    if (host_pages != 0) {
        if (dsa_host_open(&e->host, host_pages * (b->page_bytes
                                                  + DSA_HOST_ALIGN),
                          b->page_bytes, &err) != DSA_OK)
        {
            fail_msg("%s", err.text);
        }

        conf.host = &e->host;
    }

    e->sched = dsa_sched_create(b, &conf, &handler, &err);

    if (e->sched == NULL) {
        fail_msg("%s", err.text);
    }
}


static inline void
stop(engine_t *e)
{
    dsa_sched_destroy(e->sched);
    dsa_host_close(&e->host);
}


static inline int
on_mask(void *owner, const uint32_t *drafts, uint32_t n_drafts,
    uint32_t first, uint32_t *mask, uint32_t words)
{
    uint32_t         i, id;
    const client_t  *c = owner;

    for (i = first; i <= n_drafts; i++, mask += words) {
        for (id = 0; id < VOCAB; id++) {
            if (id % c->modulus
                != (c->n_resume + c->answer.n + i) % c->modulus)
            {
                mask[id / 32] &= ~(1U << id % 32);
            }
        }
    }

    return 1;
}


static inline dsa_seq_t *
submit(engine_t *e, client_t *c, uint8_t tenant)
{
    dsa_seq_t            *seq;
    dsa_sched_request_t   r;

    c->answer.n = 0;
    c->answer.ended = 0;

    memset(&r, 0, sizeof(r));
    r.tokens = malloc(sizeof(c->prompt));
    assert_non_null(r.tokens);
    memcpy(r.tokens, c->prompt, sizeof(c->prompt));

    r.n_tokens = c->n_prompt + c->n_resume;
    r.n_resume = c->n_resume;
    r.max_tokens = c->max_tokens;
    r.weight = 1;
    r.ignore_eos = 1;
    r.mask = c->modulus != 0 ? on_mask : NULL;
    r.sampling.temperature = c->temperature;
    r.sampling.seed = c->seed;
    r.sampling.top_p = 1;
    r.tenant[0] = tenant;
    r.owner = c;

    seq = dsa_sched_add(e->sched, &r, NULL);
    assert_non_null(seq);

    return seq;
}


static inline void
step(engine_t *e)
{
    dsa_err_t  err;

    if (dsa_sched_step(e->sched, &err) != DSA_OK
        || dsa_sched_audit(e->sched, &err) != DSA_OK)
    {
        fail_msg("%s", err.text);
    }
}


/* Answers one request alone, and counts its drafts. */

static inline void
ask(engine_t *e, client_t *c)
{
    dsa_sched_stats_t  before, after;

    dsa_sched_stats(e->sched, &before);
    memset(c->drafts_at, 0xff, sizeof(c->drafts_at));
    (void) submit(e, c, 1);

    while (dsa_sched_busy(e->sched)) {
        step(e);

        dsa_sched_stats(e->sched, &after);
        c->drafts = (uint32_t) (after.draft_tokens - before.draft_tokens);
        c->accepted = (uint32_t) (after.accepted_tokens
                                  - before.accepted_tokens);
        c->drafts_at[c->answer.n] = c->drafts;
        c->accepted_at[c->answer.n] = c->accepted;
    }

    assert_true(c->answer.ended);
}


/* A request for all tokens of an answer. */

static inline void
make(client_t *c, uint32_t n_prompt, float temperature)
{
    uint32_t  i;

    memset(c, 0, sizeof(client_t));

    for (i = 0; i < n_prompt; i++) {
        c->prompt[i] = 4 + i * i % 250;
    }

    c->n_prompt = n_prompt;
    c->max_tokens = ANSWER;
    c->temperature = temperature;
    c->seed = 7;
}


/* The answer in a cache without pages. */

static inline void
ask_alone(dsa_backend_t *b, client_t *c)
{
    engine_t  e;

    start(&e, b, BUDGET, 0);
    ask(&e, c);
    stop(&e);

    assert_int_equal(c->answer.usage.cached_tokens, 0);
}


static inline void
same_text(const client_t *c, const client_t *want)
{
    assert_int_equal(c->answer.n, want->answer.n);
    assert_memory_equal(c->answer.token, want->answer.token,
                        want->answer.n * sizeof(uint32_t));
}


/* The same text, and as many drafts of it are accepted. */

static inline void
same(const client_t *c, const client_t *want)
{
    same_text(c, want);
    assert_int_equal(c->drafts, want->drafts);
    assert_int_equal(c->accepted, want->accepted);
}


/* The test with models whose draft layer attends to all positions. */

static inline void
with_dense(void (*test)(void **state), void **state)
{
    size_t  i;

    static const char  *const models[] = {
        GOLDEN "drafts-v3", GOLDEN "drafts-joyai",
        GOLDEN "drafts-glm-4.7-flash"
    };

    for (i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        model = models[i];
        test(state);
    }

    model = sparse;
}


#endif /* _T_SPECULATE_H_INCLUDED_ */
