
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/cpu/model.h"
#include "engine/schedule/scheduler.h"
#include "t/unit/numbers.h"


/*
 * The CPU backend computes the same bits for the same tokens, however the
 * scheduler gets them computed.  Each prompt is first answered alone, in one
 * step for the prompt and one for each token of the answer.  Then all are
 * answered again, under each condition below and under each two of them.  The
 * tokens are the same, and the logprobs have the same bits; a logprob depends
 * on all logits.
 */

typedef enum {
    CACHED = 0,         /* pages of the prompt are found in the cache */
    CHUNKED,            /* the prompt is computed in several steps */
    BESIDE,             /* the steps have other sequences */
    PREEMPTED,          /* a sequence is computed again */
    RESUMED,            /* the first tokens of the answer are given */
    DRAFTED,            /* a step samples several tokens */
    CONDITIONS
} condition_e;

static const char  *names[] = {
    "cached", "chunked", "beside others", "preempted", "resumed", "drafted"
};


#define GOLDEN      "t/data/golden/"
#define PROMPTS     250         /* of each model and precision */
#define PROMPT      200         /* most tokens of a prompt */
#define ANSWER      16
#define RUNNING     4
#define PAGES       64
#define FEW_PAGES   7
#define BUDGET      1024
#define RUNS        3           /* of each two conditions */
#define TRIES       400         /* for them */
#define ALPHABET    7           /* so that prompts begin alike */


typedef struct {
    uint32_t            prompt[PROMPT];
    uint32_t            n_prompt;
    uint32_t            max_tokens;
    float               temperature;
    float               penalty;
    float               top_p;
    uint64_t            seed;
    dsa_sample_t        sample[ANSWER];     /* alone */
} prompt_t;


/* A request with a prompt, or with its beginning. */

typedef struct {
    const prompt_t     *p;
    uint32_t            n_prompt;
    uint32_t            n_resume;
    uint32_t            drafts;             /* of them, wrong: one */
    uint32_t            n;
    dsa_sample_t        sample[ANSWER];
    dsa_sched_usage_t   usage;
    uint32_t            ended;
} client_t;


typedef struct {
    char                name[64];
    const char         *model;
    dsa_precision_e     precision;
    dsa_backend_t      *plain;              /* for the answers alone: as wide,
                                               and without drafts */
    dsa_backend_t      *wide;               /* with PAGES */
    dsa_backend_t      *small;              /* with FEW_PAGES */
    prompt_t            prompts[PROMPTS];
    uint32_t            tested[PROMPTS];    /* times */
    uint32_t            answers;
    uint32_t            met[CONDITIONS][CONDITIONS];
} fixture_t;


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


static const dsa_sched_handler_t  handler = { on_tokens, on_done, NULL };


/* Right drafts, and behind them a wrong one. */

static uint32_t
on_draft(void *owner, const uint32_t *tokens, uint32_t n_tokens,
    uint32_t *drafts, uint32_t most)
{
    uint32_t         i, n, at;
    const client_t  *c = owner;

    n = c->drafts < most ? c->drafts : most;

    for (i = 0; i < n; i++) {
        at = n_tokens - c->n_prompt + i;
        drafts[i] = at < ANSWER ? c->p->sample[at].token : 0;

        if (i == c->drafts - 1) {
            drafts[i] ^= 1;
        }
    }

    return n;
}


/*
 * The threads of a backend, instead of as many as there are CPUs.  Steps are so
 * small that threads spend most of their time in waiting for each other, so
 * only the backend on which sequences preempt one another has two.
 */

uint32_t __wrap_dsa_threads_cpus(void);

static uint32_t  threads;


uint32_t
__wrap_dsa_threads_cpus(void)
{
    return threads;
}


static dsa_backend_t *
backend_open(const char *model, dsa_precision_e precision, uint32_t drafts,
    uint32_t pages)
{
    char                 path[64];
    dsa_err_t            err;
    dsa_backend_t       *b;
    dsa_model_config_t   config;
    dsa_backend_conf_t   conf;

    (void) snprintf(path, sizeof(path), GOLDEN "%s", model);

    if (dsa_model_config_read(&config, path, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }

    memset(&conf, 0, sizeof(conf));
    conf.model = path;
    conf.precision = precision;
    conf.kv_memory = dsa_model_kv_memory(&config, precision, drafts != 0,
                                         64 * pages);
    conf.drafts = drafts;
    conf.gpus = 1;
    conf.max_tokens = BUDGET;
    conf.max_seqs = RUNNING;
    conf.allowed = config.vocab_size;
    threads = pages == FEW_PAGES ? 2 : 1;

    b = dsa_backend_cpu_open(&conf, &err);

    if (b == NULL) {
        fail_msg("%s", err.text);
    }

    return b;
}


static dsa_sched_t *
sched_open(dsa_backend_t *b, uint32_t budget)
{
    dsa_err_t          err;
    dsa_sched_t       *s;
    dsa_sched_conf_t   conf;

    memset(&conf, 0, sizeof(conf));
    conf.max_running = RUNNING;
    conf.token_budget = budget;
    conf.max_waiting = 2 * RUNNING;
    conf.max_waiting_per_tenant = 2 * RUNNING;
    conf.context = PROMPT + ANSWER;

    s = dsa_sched_create(b, &conf, &handler, &err);

    if (s == NULL) {
        fail_msg("%s", err.text);
    }

    return s;
}


static void
submit(dsa_sched_t *s, client_t *c, uint32_t max_tokens)
{
    uint32_t             i;
    dsa_sched_request_t  r;

    memset(&r, 0, sizeof(r));

    r.tokens = malloc((PROMPT + ANSWER) * sizeof(uint32_t));
    assert_non_null(r.tokens);
    memcpy(r.tokens, c->p->prompt, c->n_prompt * sizeof(uint32_t));

    for (i = 0; i < c->n_resume; i++) {
        r.tokens[c->n_prompt + i] = c->p->sample[i].token;
    }

    r.n_tokens = c->n_prompt + c->n_resume;
    r.n_resume = c->n_resume;
    r.max_tokens = max_tokens;
    r.weight = 1;
    r.ignore_eos = 1;
    r.draft = c->drafts != 0 ? on_draft : NULL;
    r.sampling.temperature = c->p->temperature;
    r.sampling.seed = c->p->seed;
    r.sampling.top_p = c->p->top_p;
    r.sampling.presence_penalty = c->p->penalty;
    r.sampling.logprobs = 1;
    r.sampling.top_logprobs = DSA_SAMPLE_MAX_TOP;
    r.owner = c;

    c->n = 0;
    c->ended = 0;

    assert_non_null(dsa_sched_add(s, &r, NULL));
}


static void
step(dsa_sched_t *s)
{
    dsa_err_t  err;

    if (dsa_sched_step(s, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }
}


static void
run(dsa_sched_t *s)
{
    while (dsa_sched_busy(s)) {
        step(s);
    }
}


/*
 * Prompts of all lengths.  Half of them end shortly before a page, so that an
 * answer needs another page while others have them.
 */

static void
make_prompts(fixture_t *f)
{
    uint32_t      i, j, vocab;
    client_t      c;
    prompt_t     *p;
    dsa_sched_t  *s;

    vocab = f->plain->config.vocab_size;

    for (i = 0; i < PROMPTS; i++) {
        p = &f->prompts[i];

        p->n_prompt = dsa_t_random(2) ? 1 + dsa_t_random(PROMPT)
                                      : 64 * (1 + dsa_t_random(3))
                                        - dsa_t_random(8);
        p->max_tokens = 2 + dsa_t_random(ANSWER - 1);
        p->temperature = dsa_t_random(2) ? 0.0f : 1.0f;
        p->penalty = dsa_t_random(4) == 0 ? 1.5f : 0.0f;
        p->top_p = dsa_t_random(4) == 0 ? 0.8f : 1.0f;
        p->seed = i;

        for (j = 0; j < p->n_prompt; j++) {
            p->prompt[j] = j % 64 == 0 ? dsa_t_random(ALPHABET)
                                       : dsa_t_random(vocab);
        }

        memset(&c, 0, sizeof(c));
        c.p = p;
        c.n_prompt = p->n_prompt;

        s = sched_open(f->plain, BUDGET);
        submit(s, &c, p->max_tokens);
        run(s);
        dsa_sched_destroy(s);

        assert_int_equal(c.n, p->max_tokens);
        memcpy(p->sample, c.sample, sizeof(p->sample));
    }
}


static void
describe(char *text, size_t size, uint32_t conditions)
{
    uint32_t  i;

    text[0] = '\0';

    for (i = 0; i < CONDITIONS; i++) {
        if (conditions >> i & 1) {
            (void) snprintf(text + strlen(text), size - strlen(text), " %s",
                            names[i]);
        }
    }
}


static void
compare(const fixture_t *f, const client_t *c, uint32_t conditions)
{
    char                 text[128];
    uint32_t             i;
    const dsa_sample_t  *a, *b;

    describe(text, sizeof(text), conditions);

    assert_int_equal(c->ended, 1);
    assert_int_equal(c->n + c->n_resume, c->p->max_tokens);

    for (i = 0; i < c->n; i++) {
        a = &c->sample[i];
        b = &c->p->sample[c->n_resume + i];

        if (a->token != b->token
            || memcmp(&a->logprob, &b->logprob, sizeof(float)) != 0
            || a->n_top != b->n_top
            || memcmp(a->top, b->top, a->n_top * sizeof(uint32_t)) != 0
            || memcmp(a->top_logprob, b->top_logprob,
                      a->n_top * sizeof(float)) != 0)
        {
            fail_msg("%s,%s: token %u of the answer to prompt %u of %u tokens "
                     "is %u with logprob %.9g, and alone %u with %.9g",
                     f->name, text, c->n_resume + i,
                     (uint32_t) (c->p - f->prompts), c->n_prompt, a->token,
                     a->logprob, b->token, b->logprob);
        }
    }
}


/* Brings the beginnings of prompts into the cache. */

static void
warm(dsa_sched_t *s, const client_t *c, uint32_t n)
{
    uint32_t  i;
    client_t  w;

    for (i = 0; i < n; i++) {
        memset(&w, 0, sizeof(w));
        w.p = c[i].p;
        w.n_prompt = c[i].n_prompt - dsa_t_random(c[i].n_prompt - 64);

        submit(s, &w, 1);
        run(s);
    }
}


/*
 * A prompt of which pages are found has more than one.  Sequences preempt one
 * another if their answers need another page while the others still run.
 */

static int
suits(const prompt_t *p, uint32_t conditions)
{
    return (p->n_prompt > 64 || !(conditions >> CACHED & 1))
           && ((p->n_prompt / 64 != (p->n_prompt + p->max_tokens) / 64
                && p->max_tokens > ANSWER / 2)
               || !(conditions >> PREEMPTED & 1));
}


/* Returns the prompt that has been tested the fewest times and suits. */

static const prompt_t *
choose(fixture_t *f, uint32_t conditions)
{
    uint32_t  i, best;

    best = PROMPTS;

    for (i = 0; i < PROMPTS; i++) {
        if (suits(&f->prompts[i], conditions)
            && (best == PROMPTS || f->tested[i] < f->tested[best]))
        {
            best = i;
        }
    }

    assert_int_not_equal(best, PROMPTS);
    f->tested[best]++;

    return &f->prompts[best];
}


static void
check(fixture_t *f, uint32_t conditions)
{
    uint32_t            i, j, n, budget, cached, longest, joined;
    client_t            c[RUNNING];
    dsa_sched_t        *s;
    dsa_backend_t      *b;
    dsa_sched_stats_t   stats;

    n = conditions >> PREEMPTED & 1 ? RUNNING
        : conditions >> BESIDE & 1 ? 2 + dsa_t_random(RUNNING - 1) : 1;
    budget = !(conditions >> CHUNKED & 1) ? BUDGET
             : conditions >> PREEMPTED & 1 ? 128 - dsa_t_random(16)
                                           : RUNNING + dsa_t_random(60);
    b = conditions >> PREEMPTED & 1 ? f->small : f->wide;
    s = sched_open(b, budget);

    memset(c, 0, sizeof(c));

    for (i = 0; i < n; i++) {
        c[i].p = choose(f, conditions);
        c[i].n_prompt = c[i].p->n_prompt;

        if (conditions >> RESUMED & 1) {
            c[i].n_resume = 1;

            if (!(conditions >> PREEMPTED & 1)) {
                c[i].n_resume += dsa_t_random(c[i].p->max_tokens - 1);
            }
        }

        if (conditions >> DRAFTED & 1) {
            c[i].drafts = 1 + dsa_t_random(3);
        }
    }

    if (conditions >> CACHED & 1) {
        warm(s, c, conditions >> PREEMPTED & 1 ? 1 : n);
    }

    for (joined = 0; joined < n || dsa_sched_busy(s); /* void */ ) {
        if (joined < n && (conditions >> PREEMPTED & 1 || !dsa_sched_busy(s)
                           || dsa_t_random(3) != 0))
        {
            submit(s, &c[joined], c[joined].p->max_tokens);
            joined++;
            continue;
        }

        step(s);
    }

    dsa_sched_stats(s, &stats);
    dsa_sched_destroy(s);

    cached = 0;
    longest = 0;

    for (i = 0; i < n; i++) {
        compare(f, &c[i], conditions);
        cached += c[i].usage.cached_tokens;
        longest = c[i].n_prompt > longest ? c[i].n_prompt : longest;
    }

    /* what really happened */

    conditions &= (cached != 0 ? 1U << CACHED : 0)
                  | (longest > budget ? 1U << CHUNKED : 0)
                  | (n > 1 ? 1U << BESIDE : 0)
                  | (stats.preemptions != 0 ? 1U << PREEMPTED : 0)
                  | 1U << RESUMED
                  | (stats.accepted_tokens != 0 ? 1U << DRAFTED : 0);

    for (i = 0; i < CONDITIONS; i++) {
        for (j = 0; j < CONDITIONS; j++) {
            f->met[i][j] += (conditions >> i & conditions >> j & 1);
        }
    }

    f->answers += n;
}


/* Prompts with the answers that they have alone, which have no drafts. */

static fixture_t *
fixture_open(const char *model, dsa_precision_e precision)
{
    fixture_t  *f;

    f = calloc(1, sizeof(fixture_t));
    assert_non_null(f);

    f->model = model;
    f->precision = precision;
    f->plain = backend_open(model, precision, 0, PAGES);

    make_prompts(f);

    return f;
}


static void
fixture_close(fixture_t *f)
{
    f->plain->close(f->plain);
    free(f);
}


static void
check_drafts(fixture_t *f, uint32_t drafts)
{
    uint32_t  i, j, k, met;

    (void) snprintf(f->name, sizeof(f->name), "%s, %s, %u drafts", f->model,
                    f->precision == DSA_EXACT ? "exact" : "served", drafts);

    f->wide = backend_open(f->model, f->precision, drafts, PAGES);
    f->small = backend_open(f->model, f->precision, drafts, FEW_PAGES);
    f->answers = 0;
    memset(f->tested, 0, sizeof(f->tested));
    memset(f->met, 0, sizeof(f->met));

    for (i = 0; i < CONDITIONS; i++) {
        for (j = i; j < CONDITIONS; j++) {
            met = f->met[i][j];

            for (k = 0; k < TRIES && f->met[i][j] < met + RUNS; k++) {
                check(f, 1U << i | 1U << j);
            }

            if (k == TRIES) {
                fail_msg("%s: only %u of %u runs were %s and %s", f->name,
                         f->met[i][j] - met, k, names[i], names[j]);
            }
        }
    }

    /* a prompt that was tested is chosen only if none is left */

    for (i = 0; i < PROMPTS; i++) {
        while (f->tested[i] == 0) {
            check(f, 1U << CHUNKED | 1U << BESIDE);
        }
    }

    print_message("%s: %u answers to %u prompts\n", f->name, f->answers,
                  PROMPTS);

    f->wide->close(f->wide);
    f->small->close(f->small);
}


static void
check_model(const char *model, dsa_precision_e precision, uint32_t drafts)
{
    fixture_t  *f;

    f = fixture_open(model, precision);
    check_drafts(f, drafts);
    fixture_close(f);
}


static void
test_served_fp8(void **state)
{
    check_model("a-fp8", DSA_SERVED, 0);
}


static void
test_served_bf16(void **state)
{
    check_model("b-bf16", DSA_SERVED, 0);
}


static void
test_exact_fp8(void **state)
{
    check_model("a-fp8", DSA_EXACT, 0);
}


static void
test_exact_bf16(void **state)
{
    check_model("b-bf16", DSA_EXACT, 0);
}


/* drafts of the draft layer, in one and in up to all outputs of a step */

static void
test_drafts_exact(void **state)
{
    fixture_t  *f;

    f = fixture_open("drafts", DSA_EXACT);

    check_drafts(f, 1);
    check_drafts(f, 3);
    check_drafts(f, 7);

    fixture_close(f);
}


static void
test_drafts_served(void **state)
{
    check_model("drafts", DSA_SERVED, 2);
}


/* models that attend to all positions */

static void
test_dense(void **state)
{
    check_model("v3", DSA_SERVED, 0);
    check_model("joyai", DSA_EXACT, 0);
    check_model("joyai", DSA_SERVED, 0);
    check_model("glm-4.7-flash", DSA_EXACT, 0);
    check_model("moonlight", DSA_SERVED, 0);
    check_model("drafts-v3", DSA_SERVED, 3);
    check_model("drafts-joyai", DSA_SERVED, 3);
    check_model("drafts-glm-4.7-flash", DSA_EXACT, 3);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_served_fp8),
        cmocka_unit_test(test_served_bf16),
        cmocka_unit_test(test_exact_fp8),
        cmocka_unit_test(test_exact_bf16),
        cmocka_unit_test(test_drafts_exact),
        cmocka_unit_test(test_drafts_served),
        cmocka_unit_test(test_dense)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
