
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Both targets on two simulated GPUs (gpu_cost.h): which one gives way, for
 * whom, and how often.
 */


#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "t/unit/gpu_cost.h"
#include "t/unit/scheduler.h"


#define BUDGET      8192
#define ANSWERS     32                  /* of tenant 0 all the time */
#define CLIENTS     160
#define TARGET      100                 /* ms */


/* What the tests look at: the steps with answers, and when tokens came. */

typedef struct {
    fake_t             *f;
    client_t           *c;              /* [CLIENTS] */
    dsa_sched_t        *s;
    double              first[CLIENTS]; /* ms; 0: not yet */
    double              start[CLIENTS];
    uint32_t            n;              /* clients so far */
    uint32_t            seen;           /* tokens of client 0 */
    double              last;           /* ms, when client 0 had a token */
    double              longest;        /* ms between two of its tokens */
    uint64_t            tokens;         /* between which a time was measured, */
    uint64_t            late;           /* and which were later than the
                                           target by a tenth, */
    uint64_t            very_late;      /* or twice as late as it */
} server_t;


static double    speed;                 /* of the GPUs; 1: as measured */
static uint32_t  gpus = 2;


static uint64_t
gpu_cost(fake_t *f, const dsa_batch_seq_t *seq, uint32_t n)
{
    return (uint64_t) (1000 * gpu_step_ms(seq, n) / speed);
}


static double
now(const server_t *v)
{
    return v->f->now_us / 1000.0;
}


static void
ask(server_t *v, uint32_t tenant, uint32_t prompt, uint32_t answer,
    uint32_t weight)
{
    assert_true(v->n < CLIENTS);

    v->c[v->n].seed = v->n;
    v->start[v->n] = now(v);
    submit(v->s, &v->c[v->n], tenant, v->n, prompt, answer, weight);
    v->n++;
}


/*
 * A step.  All answers of tenant 0 have a token in each one, so that client 0
 * stands for all of them.
 */

static void
serve(server_t *v)
{
    double    ms;
    uint32_t  i;

    step(v->s);

    for (i = 0; i < v->n; i++) {
        if (v->first[i] == 0 && v->c[i].n != 0) {
            v->first[i] = now(v);
        }
    }

    if (v->c[0].n == v->seen) {
        return;
    }

    ms = now(v) - v->last;

    if (v->seen != 0 && v->last != 0) {
        v->longest = ms > v->longest ? ms : v->longest;
        v->tokens += ANSWERS;
        v->late += ms > 1.1 * TARGET ? ANSWERS : 0;
        v->very_late += ms > 2 * TARGET ? ANSWERS : 0;
    }

    v->seen = v->c[0].n;
    v->last = now(v);
}


static void
server_start(server_t *v, uint32_t first_token)
{
    uint32_t  i;

    memset(v, 0, sizeof(server_t));

    token_target_ms = TARGET;
    first_token_target_ms = first_token;
    ranks = gpus;
    rank_tokens = BUDGET;
    speed = 1;

    v->c = calloc(CLIENTS, sizeof(client_t));
    assert_non_null(v->c);

    v->s = start(&v->f, 4000, 64, BUDGET);
    v->f->cost = gpu_cost;

    for (i = 0; i < ANSWERS; i++) {
        ask(v, 0, 500, 1800, 1);
    }

    /* all of them are written, and costs are known */

    for (i = 0; i < 100; i++) {
        serve(v);
    }

    v->longest = 0;
    v->tokens = 0;
    v->late = 0;
    v->very_late = 0;
}


static void
server_finish(server_t *v)
{
    uint32_t  i;

    for (i = 0; i < v->n; i++) {
        if (v->c[i].seq != NULL) {
            dsa_sched_cancel(v->s, v->c[i].seq, DSA_FINISH_CANCELLED);
        }

        check_answer(&v->c[i]);
        free(v->c[i].prompt);
    }

    run(v->s);
    check_free(v->s);
    finish(v->s, v->f);
    free(v->c);

    token_target_ms = 0;
    first_token_target_ms = 0;
    ranks = 1;
    rank_tokens = UINT32_MAX;
}


/* Steps until a client has its first token; ms that it waited. */

static double
wait_first(server_t *v, uint32_t client)
{
    uint32_t  n;

    for (n = 0; v->first[client] == 0; n++) {
        assert_true(n < 2000);
        serve(v);
    }

    return v->first[client] - v->start[client];
}


/*
 * A prompt of 4,000 tokens takes 0.6 s beside the answers if these are to keep
 * their target; it has to wait if there is no target for it, or one that it
 * meets anyway, and it does not if it would miss it.
 */

static void
test_gives_way(void **state)
{
    double    ms;
    uint32_t  i;
    server_t  v;

    static const uint32_t  relaxed[] = { 0, 2000 };

    for (i = 0; i < 2; i++) {
        server_start(&v, relaxed[i]);
        ask(&v, 1, 4000, 3, 1);
        ms = wait_first(&v, ANSWERS);
        assert_in_range((uint32_t) ms, 500, 1000);
        assert_int_equal(v.late, 0);
        assert_true(v.longest < 1.1 * TARGET);
        server_finish(&v);
    }

    server_start(&v, 450);
    ask(&v, 1, 4000, 3, 1);
    ms = wait_first(&v, ANSWERS);
    assert_in_range((uint32_t) ms, 300, 500);
    assert_in_range(v.late, ANSWERS, 2 * ANSWERS);
    server_finish(&v);
}


/*
 * One huge prompt, which cannot meet any target: few tokens are late, no more
 * than documented; no step is expected to exceed eight times the target, and
 * the prompt goes on at the speed that is left.
 */

static void
test_huge(void **state)
{
    double    ms;
    server_t  v;

    gpus = 1;
    server_start(&v, 1000);
    gpus = 2;
    ask(&v, 1, 90000, 3, 1);
    ms = wait_first(&v, ANSWERS);

    /* rows of 0.1 to 0.5 ms, for 60 ms of each 100 */

    assert_in_range((uint32_t) ms, 30000, 80000);

    /*
     * It has half of the weights, so half of the late tokens.  Few more are
     * late before it is known what its context costs.
     */

    assert_true(v.very_late > 80);
    assert_true(v.very_late <= 80 + v.tokens / 400);
    assert_true(v.late <= v.very_late + 3 * ANSWERS);
    assert_true(v.longest < 1.1 * 8 * TARGET);
    server_finish(&v);
}


/*
 * A tenant keeps 60 prompts of 4,000 tokens waiting.  Another one asks from
 * time to time: it has its tokens in time, because the first one has used up
 * its own late tokens only, and the answers of a third one keep their target.
 */

static void
test_flood(void **state)
{
    double    ms;
    uint32_t  i, n, asked;
    server_t  v;

    server_start(&v, 500);

    for (i = 0; i < 60; i++) {
        ask(&v, 1, 4000, 3, 1);
    }

    for (n = 0; n < 4; n++) {
        for (i = 0; i < 25; i++) {
            serve(&v);
        }

        asked = v.n;
        ask(&v, 2, 1500, 3, 1);
        ms = wait_first(&v, asked);
        assert_true(ms < 600);
    }

    /* the flood is still there */

    assert_true(v.first[ANSWERS + 59] == 0);
    assert_true(v.late <= 160 + v.tokens / 200);
    server_finish(&v);
}


/*
 * A weight of 3 beside 1: three of four rows, although both wait too long.
 * With several ranks a tenant also has rows of a rank on which others have
 * none.
 */

static void
test_weights(void **state)
{
    double    ratio;
    uint32_t  i;
    server_t  v;

    gpus = 1;
    server_start(&v, 500);
    gpus = 2;

    for (i = 0; i < 20; i++) {
        ask(&v, 1, 4000, 3, 3);
        ask(&v, 2, 4000, 3, 1);
    }

    memset(v.f->tenant_tokens, 0, sizeof(v.f->tenant_tokens));

    for (i = 0; i < 50; i++) {
        serve(&v);
    }

    ratio = (double) v.f->tenant_tokens[1] / v.f->tenant_tokens[2];
    assert_true(ratio > 2.7 && ratio < 3.3);
    server_finish(&v);
}


/* The clock halves while prompts arrive, and is as before later. */

static void
test_clock(void **state)
{
    double    from;
    uint32_t  i;
    server_t  v;

    server_start(&v, 0);

    for (i = 0; i < 40; i++) {
        ask(&v, 1, 4000, 3, 1);
    }

    for (i = 0; i < 20; i++) {
        serve(&v);
    }

    assert_int_equal(v.late, 0);

    speed = 0.5;

    for (i = 0; i < 8; i++) {
        serve(&v);
    }

    for (i = 0; i < 20; i++) {
        from = now(&v);
        serve(&v);
        assert_true(now(&v) - from < 1.15 * TARGET);
    }

    speed = 1;

    for (i = 0; i < 20; i++) {
        serve(&v);
    }

    for (i = 0; i < 10; i++) {
        from = now(&v);
        serve(&v);
        assert_in_range((uint32_t) (now(&v) - from), 80, 110);
    }

    /* those before the new costs were known */

    assert_in_range(v.late, 2 * ANSWERS, 7 * ANSWERS);
    server_finish(&v);
}


/*
 * The answers alone take longer than the target: prompts still have a quarter
 * of their time, and none starves.
 */

static void
test_starve(void **state)
{
    double    from;
    uint32_t  i;
    server_t  v;

    server_start(&v, 0);
    speed = 0.2;

    for (i = 0; i < 10; i++) {
        serve(&v);
    }

    for (i = 0; i < 4; i++) {
        ask(&v, 1, 2000, 3, 1);
    }

    for (i = 0; i < 20; i++) {
        serve(&v);
    }

    for (i = 0; v.first[ANSWERS + 3] == 0; i++) {
        assert_true(i < 400);
        from = now(&v);
        serve(&v);
        assert_in_range((uint32_t) (now(&v) - from), 100, 260);
    }

    server_finish(&v);
}


/* Answers with drafts: their rows count, and steps keep the target. */

static void
test_drafts(void **state)
{
    double             ms;
    uint32_t           i;
    uint64_t           n, least, most;
    server_t           v;
    dsa_sched_stats_t  stats;

    max_outputs = 5;
    max_drafts = 4;

    server_start(&v, 0);
    v.f->next_right = 2;
    ask(&v, 1, 8000, 3, 1);
    ms = wait_first(&v, ANSWERS);
    assert_in_range((uint32_t) ms, 500, 2500);
    assert_int_equal(v.late, 0);
    assert_true(v.f->drafts > 1000);

    /* with two right drafts in each step, a token has a third of its time */

    dsa_sched_stats(v.s, &stats);
    n = 0;
    least = 0;
    most = 0;

    for (i = 0; i < DSA_TOKEN_TIMES; i++) {
        n += stats.token_times[i];
        least += i != 0 ? stats.token_times[i] * dsa_token_bounds[i - 1] : 0;
        most += stats.token_times[i] * (dsa_token_bounds[i] + 1);
    }

    assert_int_equal(n, stats.completion_tokens - ANSWERS - 1);
    assert_in_range(stats.token_us, least, most);

    ms = stats.token_us / 1000.0 / (double) n;
    assert_true(ms > 10 && ms < TARGET / 2.5);
    server_finish(&v);

    max_outputs = 1;
    max_drafts = 0;
}


int
main(void)
{
    int  failed;

    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_gives_way),
        cmocka_unit_test(test_huge),
        cmocka_unit_test(test_flood),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_clock),
        cmocka_unit_test(test_starve),
        cmocka_unit_test(test_drafts)
    };

    depth = 1;
    failed = cmocka_run_group_tests_name("one at a time", tests, NULL, NULL);

    depth = 2;
    failed += cmocka_run_group_tests_name("run ahead", tests, NULL, NULL);

    return failed;
}
