
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The number of drafts, with costs of steps and shares of accepted drafts that
 * are simulated.  The oracle is the expected speed of a fixed number of drafts,
 * which follows from both.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/schedule/drafts.h"


#define SEQS    128
#define MOST    DSA_SPEC_MOST


/* The duration of a step, us. */

typedef double (*cost_pt)(uint32_t sequences, uint32_t verified,
    uint32_t made);


typedef struct {
    dsa_spec_t          d;
    cost_pt             cost;
    uint32_t            n;              /* sequences */
    uint32_t            most;           /* drafts of a sequence */
    double              share[SEQS];    /* of first drafts, accepted */
    double              later;          /* the same of draft k + 1, by that of
                                           draft k */
    uint32_t            outliers;       /* of 1000 steps */
    double              scale;          /* of all durations */
    dsa_spec_rates_t    rates[SEQS];
    uint32_t            number[SEQS];   /* of drafts in the next step */

    double              time;
    double              tokens;
    uint64_t            drafts;
    uint64_t            of[SEQS];       /* drafts of a sequence */
} sim_t;


static uint64_t  seed;


static double
chance(void)
{
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;

    return (double) (seed >> 11) / 9007199254740992.0;
}


/* As measured on a CPU: a draft costs most of what a row costs. */

static double
dear(uint32_t sequences, uint32_t verified, uint32_t made)
{
    return 1000.0 * sequences + 950.0 * verified + 200.0 * made;
}


/* As on a GPU that reads its weights: rows are nearly free. */

static double
cheap(uint32_t sequences, uint32_t verified, uint32_t made)
{
    return 20000 + 150.0 * (sequences + verified) + 400.0 * made / sequences;
}


/* Rows are free up to 8, and then cost as much as others. */

static double
stairs(uint32_t sequences, uint32_t verified, uint32_t made)
{
    return 10000 * (double) ((sequences + verified + 7) / 8) + 10.0 * made;
}


/*
 * An H200 with the weights of one GPU of eight of DeepSeek-V3.2, by streams and
 * drafts, and without a draft layer (bench/results/2026-11-24-drafts.md; the
 * context is 1K).
 */

#define STREAMS 7

static const struct {
    uint32_t  n;
    double    without;
    double    with[4];
} h200[STREAMS] = {
    { 1, 13920, { 14242, 18729, 22252, 25235 } },
    { 4, 22667, { 23157, 28193, 30857, 32612 } },
    { 8, 27219, { 27715, 30771, 32801, 34522 } },
    { 16, 29712, { 30286, 32499, 34069, 36035 } },
    { 32, 31375, { 32014, 33946, 43203, 44528 } },
    { 64, 32649, { 33417, 42699, 52546, 59740 } },
    { 128, 40820, { 41760, 57389, 74945, 93467 } },
};

static double
measured(uint32_t sequences, uint32_t verified, uint32_t made)
{
    double    drafts;
    uint32_t  i, k;

    (void) made;

    for (i = 0; h200[i].n != sequences; i++) {
        assert_true(i + 1 < STREAMS);
    }

    drafts = (double) verified / sequences;
    k = drafts < 3 ? (uint32_t) drafts : 2;

    return h200[i].with[k]
           + (h200[i].with[k + 1] - h200[i].with[k]) * (drafts - k);
}


/* Cheap for few sequences, and dear for many. */

static double
mixed(uint32_t sequences, uint32_t verified, uint32_t made)
{
    return sequences < 8 ? cheap(sequences, verified, made)
                         : dear(sequences, verified, made);
}


static void
sim_init(sim_t *s, cost_pt cost, uint32_t n, double share, double later)
{
    uint32_t  i;

    memset(s, 0, sizeof(sim_t));
    dsa_spec_init(&s->d, MOST, 1);

    s->cost = cost;
    s->n = n;
    s->most = MOST;
    s->later = later;
    s->scale = 1;

    for (i = 0; i < n; i++) {
        s->share[i] = share;
    }

    seed = 1;
}


static uint32_t
sim_accept(const sim_t *s, uint32_t i)
{
    double    share;
    uint32_t  k;

    share = s->share[i];

    for (k = 0; k < s->number[i] && chance() < share; k++) {
        share *= s->later;
    }

    return k;
}


static void
sim_run(sim_t *s, uint32_t steps)
{
    double    y;
    uint32_t  i, made, verified, accepted[SEQS], before[SEQS];

    s->time = 0;
    s->tokens = 0;
    s->drafts = 0;
    memset(s->of, 0, sizeof(s->of));

    while (steps-- > 0) {
        dsa_spec_begin(&s->d);
        verified = 0;
        made = 0;

        for (i = 0; i < s->n; i++) {
            accepted[i] = sim_accept(s, i);
            before[i] = s->number[i];
            verified += s->number[i];
            dsa_spec_add(&s->d, &s->rates[i], MOST);
        }

        dsa_spec_choose(&s->d);

        for (i = 0; i < s->n; i++) {
            s->number[i] = dsa_spec_number(&s->d, &s->rates[i], MOST);
            made += s->number[i];
            s->of[i] += s->number[i];

            if (before[i] != 0) {
                dsa_spec_verified(&s->d, &s->rates[i], before[i],
                                    accepted[i]);
            }

            s->tokens += 1 + accepted[i];
        }

        y = s->scale * s->cost(s->n, verified, made);
        s->time += y;
        s->drafts += made;

        /* a step that waits, and noise of 10 % */

        y *= 0.95 + 0.1 * chance();
        y *= chance() * 1000 < s->outliers ? 50 : 1;

        dsa_spec_measure(&s->d, (uint64_t) y, s->n, verified, made);
    }
}


/* Tokens per us that are expected of this number of drafts. */

static double
fixed(const sim_t *s, uint32_t number)
{
    double    q, share, tokens;
    uint32_t  i, k;

    tokens = 0;

    for (i = 0; i < s->n; i++) {
        q = 1;
        share = s->share[i];

        for (k = 0; k <= number; k++) {
            tokens += q;
            q *= share;
            share *= s->later;
        }
    }

    return tokens / (s->scale * s->cost(s->n, number * s->n, number * s->n));
}


static double
best(const sim_t *s)
{
    double    most, speed;
    uint32_t  number;

    most = 0;

    for (number = 0; number <= s->most; number++) {
        speed = fixed(s, number);
        most = speed > most ? speed : most;
    }

    return most;
}


/* Runs steps, and expects at least this share of the best fixed number. */

static void
expect(sim_t *s, uint32_t steps, double share)
{
    double  speed;

    sim_run(s, steps);
    speed = s->tokens / s->time;

    if (speed < share * best(s)) {
        fail_msg("%u sequences that accept %.2f: %.3f of the best speed, %.3f "
                 "of that without drafts; expected %.3f of the best",
                 s->n, s->share[0], speed / best(s), speed / fixed(s, 0),
                 share);
    }
}


/*
 * Each share of accepted drafts with each cost, from the first step on and
 * afterwards.  Where no draft pays, the trials cost a 64th of the most that a
 * draft costs here.  A line does not describe stairs: there the number need not
 * be the best, but must be worth having.
 */

static void
test_speed(void **state)
{
    size_t  i, j, k;
    sim_t   s;

    static const cost_pt   costs[] = { dear, cheap, stairs };
    static const uint32_t  n[] = { 1, 2, 5, 12, 64 };
    static const double    share[] = { 0, 0.2, 0.5, 0.7, 0.9, 1 };

    (void) state;

    for (i = 0; i < sizeof(costs) / sizeof(costs[0]); i++) {
        for (j = 0; j < sizeof(n) / sizeof(n[0]); j++) {
            for (k = 0; k < sizeof(share) / sizeof(share[0]); k++) {
                sim_init(&s, costs[i], n[j], share[k], 0.95);
                expect(&s, 2048, costs[i] == stairs ? 0.7 : 0.9);
                expect(&s, 20480, costs[i] == stairs ? 0.7 : 0.95);

                assert_true(s.tokens / s.time >= 0.98 * fixed(&s, 0));
            }
        }
    }
}


/*
 * With shares of accepted drafts from those of a trained draft layer to none,
 * against the best number and an engine without the draft layer.  Where no
 * draft pays, what is lost is the first row of the draft layer, which every
 * step computes, and the trials.
 */

static void
test_measured(void **state)
{
    size_t  i, k;
    sim_t   s;
    double  gain;

    static const double  share[] = { 0.85, 0.6, 0.3, 0 };

    (void) state;

    for (i = 0; i < STREAMS; i++) {
        for (k = 0; k < sizeof(share) / sizeof(share[0]); k++) {
            sim_init(&s, measured, h200[i].n, share[k], 0.985);
            s.most = 3;
            dsa_spec_init(&s.d, s.most, 1);
            sim_run(&s, 2048);
            expect(&s, 20480, 0.9);

            gain = s.tokens / s.time / s.n * h200[i].without;

            if (gain < 0.965) {
                fail_msg("%u streams that accept %.2f: %.3f of the speed "
                         "without a draft layer", s.n, share[k], gain);
            }
        }
    }
}


/* Where no draft pays, only the steps of the trials have drafts. */

static void
test_trials(void **state)
{
    sim_t  s;

    (void) state;

    sim_init(&s, dear, 3, 0.5, 0.9);
    sim_run(&s, 4 * DSA_SPEC_PERIOD);
    assert_true(s.drafts < s.n * DSA_SPEC_TRIAL * 8);

    sim_run(&s, 40 * DSA_SPEC_PERIOD);
    assert_int_equal(s.drafts, s.n * DSA_SPEC_TRIAL * 40);
}


/* Sequences have as many drafts as theirs are accepted. */

static void
test_sequences(void **state)
{
    sim_t     s;
    uint32_t  i;

    (void) state;

    sim_init(&s, cheap, 16, 0.95, 1);

    for (i = 0; i < s.n; i += 2) {
        s.share[i] = 0.05;
    }

    sim_run(&s, 1024);
    expect(&s, 20480, 1.25);

    for (i = 0; i < s.n; i += 2) {
        assert_true(s.of[i] < 2048);
        assert_true(s.of[i + 1] > 4 * 20480);
    }
}


/*
 * A second draft is only worth its cost if the first ones are accepted, and is
 * judged by itself.
 */

static void
test_positions(void **state)
{
    sim_t  s;

    (void) state;

    /* the first drafts are good, and later ones never are */

    sim_init(&s, cheap, 4, 0.9, 0);
    sim_run(&s, 1024);
    sim_run(&s, 10240);

    assert_true(s.drafts >= 4 * 10000 && s.drafts <= 4 * 10500);
}


/* Steps that take 50 times as long, 20 of 1000, change nothing. */

static void
test_outliers(void **state)
{
    sim_t  s;

    (void) state;

    sim_init(&s, cheap, 4, 0.8, 1);
    s.outliers = 20;
    sim_run(&s, 1024);
    expect(&s, 10240, 0.93);

    sim_init(&s, dear, 4, 0.8, 1);
    s.outliers = 20;
    sim_run(&s, 1024);
    expect(&s, 10240, 0.96);
}


/* The share of accepted drafts changes, and the cost does. */

static void
test_changes(void **state)
{
    sim_t     s;
    uint32_t  i;

    (void) state;

    sim_init(&s, cheap, 2, 0, 1);
    sim_run(&s, 20480);
    assert_true(s.drafts < 1024);

    for (i = 0; i < s.n; i++) {
        s.share[i] = 0.9;
    }

    sim_run(&s, 8 * DSA_SPEC_PERIOD);
    expect(&s, 4096, 0.95);

    for (i = 0; i < s.n; i++) {
        s.share[i] = 0.02;
    }

    sim_run(&s, 512);
    expect(&s, 4096, 0.95);

    /* each step takes four times as long, and then rows are dear */

    for (i = 0; i < s.n; i++) {
        s.share[i] = 0.8;
    }

    sim_run(&s, 8 * DSA_SPEC_PERIOD);
    s.scale = 4;
    sim_run(&s, 2048);
    expect(&s, 4096, 0.95);

    s.cost = dear;
    s.scale = 1;
    sim_run(&s, 8192);
    expect(&s, 4096, 0.98);
}


/* Costs are measured for each number of sequences. */

static void
test_sizes(void **state)
{
    sim_t     s;
    uint32_t  i;
    uint64_t  drafts[2];

    (void) state;

    sim_init(&s, mixed, 64, 0.8, 1);

    for (i = 0; i < 6; i++) {
        s.n = i % 2 == 0 ? 64 : 2;
        sim_run(&s, 1024);
        expect(&s, 2048, 0.93);
    }

    /* also where it changes before costs could be measured anew */

    for (i = 0; i < 400; i++) {
        s.n = i % 2 == 0 ? 64 : 2;
        sim_run(&s, 40);
        drafts[i % 2] = s.drafts + (i < 2 ? 0 : drafts[i % 2]);
    }

    assert_true(drafts[0] < 64 * 200 * 40 / 20);
    assert_true(drafts[1] > 2 * 200 * 40 * 4);

    /* what has been measured of some holds for others until they are */

    s.n = 2;
    sim_run(&s, 512);
    s.n = 3;
    expect(&s, 256, 0.9);
}


/* A fixed number is made whatever it costs, and no more than there is room. */

static void
test_fixed(void **state)
{
    uint32_t            i, room;
    dsa_spec_t          d;
    dsa_spec_rates_t    rates;

    (void) state;

    memset(&rates, 0, sizeof(rates));
    dsa_spec_init(&d, 3, 0);

    for (i = 0; i < 1000; i++) {
        dsa_spec_begin(&d);
        dsa_spec_add(&d, &rates, 3);
        dsa_spec_choose(&d);

        for (room = 0; room < 8; room++) {
            assert_int_equal(dsa_spec_number(&d, &rates, room),
                             room < 3 ? room : 3);
        }

        dsa_spec_verified(&d, &rates, 3, 0);
        dsa_spec_measure(&d, i % 2 == 0 ? 0 : UINT64_MAX, 1, 3, 3);
    }

    /* of a number that adapts, too, also in trials */

    dsa_spec_init(&d, 3, 1);
    memset(&rates, 0, sizeof(rates));

    for (i = 0; i < 2000; i++) {
        dsa_spec_begin(&d);
        dsa_spec_add(&d, &rates, i % 4);
        dsa_spec_choose(&d);

        for (room = 0; room < 8; room++) {
            assert_true(dsa_spec_number(&d, &rates, room)
                        <= (room < 3 ? room : 3));
        }

        dsa_spec_verified(&d, &rates, 3, 3);
        dsa_spec_measure(&d, i % 2 == 0 ? 0 : UINT64_MAX, UINT32_MAX,
                           UINT32_MAX, UINT32_MAX);
    }
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_speed),
        cmocka_unit_test(test_measured),
        cmocka_unit_test(test_trials),
        cmocka_unit_test(test_sequences),
        cmocka_unit_test(test_positions),
        cmocka_unit_test(test_outliers),
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_fixed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
