
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "kernels/exchange/exchange.h"
#include "t/unit/numbers.h"


/*
 * The sums over ranks against double precision.  Values are multiples of 1/128
 * and small, so that float32 adds them exactly in any order, and a result has
 * to be equal in every bit: what is left are the sums' terms and where they
 * are rounded.  The order of a sum is tested with values that it changes.
 */

#define TOKENS      40
#define COLS        24
#define CHOICES     3
#define EXPERTS     8               /* of all ranks */
#define UNTOUCHED   -12345.0f


static float    y[TOKENS * CHOICES][COLS];
static float    shared[TOKENS][COLS];
static float    weight[TOKENS][CHOICES];
static int32_t  expert[TOKENS][CHOICES];
static int32_t  place[TOKENS][CHOICES];
static float    part[EXPERTS][TOKENS][COLS];
static float    out[TOKENS][COLS];


/* A random multiple of 1/unit, below limit. */

static float
number(uint32_t unit, uint32_t limit)
{
    return ((float) dsa_t_random(2 * limit * unit - 1) + 1
            - (float) (limit * unit)) / (float) unit;
}


/* To 8 bits, ties to even. */

static double
bf16(double x)
{
    int  exponent;

    (void) frexp(x, &exponent);

    return ldexp(nearbyint(ldexp(x, 8 - exponent)), exponent - 8);
}


/* Tokens with different experts, some of them -1, and pairs in any order. */

static void
fill(void)
{
    uint32_t  i, j, k, swap, order[TOKENS * CHOICES];

    for (i = 0; i < TOKENS * CHOICES; i++) {
        order[i] = i;

        for (j = 0; j < COLS; j++) {
            y[i][j] = number(16, 64);
        }
    }

    for (i = TOKENS * CHOICES - 1; i > 0; i--) {
        j = dsa_t_random(i + 1);
        swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }

    for (i = 0; i < TOKENS; i++) {
        for (j = 0; j < COLS; j++) {
            shared[i][j] = number(16, 64);
        }

        for (j = 0; j < CHOICES; j++) {
            weight[i][j] = number(8, 2);
            place[i][j] = (int32_t) order[i * CHOICES + j];

            do {
                expert[i][j] = (int32_t) dsa_t_random(EXPERTS);

                for (k = 0; k < j && expert[i][k] != expert[i][j]; k++) {
                    /* void */
                }
            } while (k < j);
        }

        if (i % 7 == 0) {
            expert[i][i % CHOICES] = -1;
        }
    }
}


/* The sum of a rank for a token and column; *n: experts that it has. */

static double
partial(uint32_t token, uint32_t col, uint32_t rank, uint32_t experts,
    uint32_t *n)
{
    double    sum;
    uint32_t  j;

    for (j = 0, sum = 0, *n = 0; j < CHOICES; j++) {
        if (expert[token][j] >= 0
            && (uint32_t) expert[token][j] / experts == rank)
        {
            sum += (double) weight[token][j] * y[place[token][j]][col];
            (*n)++;
        }
    }

    return sum;
}


static void
check_experts(uint32_t ranks, int served, int with_shared)
{
    double    p, sum;
    uint32_t  r, i, j, n, experts;

    experts = EXPERTS / ranks;
    fill();

    for (r = 0; r < ranks; r++) {
        for (i = 0; i < TOKENS; i++) {
            for (j = 0; j < COLS; j++) {
                part[r][i][j] = UNTOUCHED;
            }
        }

        dsa_exchange_combine(part[r][0], y[0], weight[0], expert[0], place[0],
                             TOKENS, CHOICES, COLS, r, experts, served);
    }

    dsa_exchange_sum(out[0], part[0][0], TOKENS * COLS,
                     with_shared ? shared[0] : NULL, expert[0], TOKENS, ranks,
                     experts, CHOICES, COLS, served);

    for (i = 0; i < TOKENS; i++) {
        for (j = 0; j < COLS; j++) {
            sum = with_shared ? shared[i][j] : 0;

            for (r = 0; r < ranks; r++) {
                p = partial(i, j, r, experts, &n);
                p = served ? bf16(p) : p;
                assert_true(part[r][i][j] == (n == 0 ? UNTOUCHED : p));
                sum += n == 0 ? 0 : p;
            }

            assert_true(out[i][j] == (served ? bf16(sum) : sum));
        }
    }
}


static void
test_experts(void **state)
{
    uint32_t  ranks;

    for (ranks = 1; ranks <= EXPERTS; ranks *= 2) {
        check_experts(ranks, 0, 1);
        check_experts(ranks, 1, 1);
        check_experts(ranks, 1, 0);
    }
}


static void
test_all_reduce(void **state)
{
    int       served;
    double    sum;
    uint32_t  r, i, j, ranks;

    for (ranks = 1; ranks <= EXPERTS; ranks++) {
        for (served = 0; served <= 1; served++) {
            for (r = 0; r < EXPERTS; r++) {
                for (i = 0; i < TOKENS; i++) {
                    for (j = 0; j < COLS; j++) {
                        part[r][i][j] = number(128, 64);
                    }
                }
            }

            dsa_exchange_all_reduce(out[0], part[0][0], TOKENS * COLS,
                                    TOKENS * COLS, ranks, served);

            for (i = 0; i < TOKENS; i++) {
                for (j = 0; j < COLS; j++) {
                    for (r = 0, sum = 0; r < ranks; r++) {
                        sum += part[r][i][j];
                    }

                    assert_true(out[i][j] == (served ? bf16(sum) : sum));
                }
            }
        }
    }
}


/* 2^24 + 1 is 2^24 in float32: only the right order of these sums is 0. */

static void
test_order(void **state)
{
    uint32_t              i, j;
    float                 sum[COLS], all[3][COLS];
    float                 rows[3][COLS], ones[3] = { 1, 1, 1 };

    static const int32_t  ids[3] = { 2, 0, 1 };         /* of the experts */
    static const int32_t  places[3] = { 1, 2, 0 };
    static const float    values[3] = { 0x1p24f, 1, -0x1p24f };

    /* choice i is expert ids[i], and the values are those of experts 0, 1, 2 */

    for (i = 0; i < 3; i++) {
        for (j = 0; j < COLS; j++) {
            rows[places[i]][j] = values[ids[i]];
            all[i][j] = values[i];
        }
    }

    dsa_exchange_combine(sum, rows[0], ones, ids, places, 1, 3, COLS, 0, 3, 0);

    for (j = 0; j < COLS; j++) {
        assert_true(sum[j] == 0);
    }

    dsa_exchange_sum(sum, all[0], COLS, NULL, ids, 1, 3, 1, 3, COLS, 0);

    for (j = 0; j < COLS; j++) {
        assert_true(sum[j] == 0);
    }

    dsa_exchange_all_reduce(sum, all[0], COLS, COLS, 3, 0);

    for (j = 0; j < COLS; j++) {
        assert_true(sum[j] == 0);
    }

    /* the parts are 2^24 and 1, and the shared expert is the last term */

    dsa_exchange_sum(sum, all[0], COLS, all[2], ids, 1, 2, 1, 3, COLS, 0);

    for (j = 0; j < COLS; j++) {
        assert_true(sum[j] == 0);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_experts),
        cmocka_unit_test(test_all_reduce),
        cmocka_unit_test(test_order)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
