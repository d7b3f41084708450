
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdint.h>
#include <string.h>

#include "kernels/core/bf16.h"
#include "kernels/core/simd.h"
#include "exchange.h"


static uint32_t dsa_exchange_next(const int32_t *expert, uint32_t k,
    int64_t last);


/* Returns 1 if an expert of a token is one of first .. first+experts-1. */

static int
dsa_exchange_has(const int32_t *expert, uint32_t k, uint32_t first,
    uint32_t experts)
{
    uint32_t  i;

    for (i = 0; i < k; i++) {
        if (expert[i] >= 0 && (uint32_t) expert[i] - first < experts) {
            return 1;
        }
    }

    return 0;
}


DSA_CLONES void
dsa_exchange_combine(float *part, const float *y, const float *weight,
    const int32_t *expert, const int32_t *place, size_t tokens, uint32_t k,
    size_t cols, uint32_t rank, uint32_t experts, int bf16)
{
    float         w;
    size_t        t, j;
    int64_t       last;
    uint32_t      i, first;
    const float  *from;

    first = rank * experts;

    for (t = 0; t < tokens; t++) {
        if (dsa_exchange_has(expert, k, first, experts)) {
            memset(part, 0, cols * sizeof(float));

            for (last = (int64_t) first - 1; /* void */ ; last = expert[i]) {
                i = dsa_exchange_next(expert, k, last);

                if (i == k || (uint32_t) expert[i] - first >= experts) {
                    break;
                }

                w = weight[i];
                from = y + (size_t) place[i] * cols;

                for (j = 0; j < cols; j++) {
                    part[j] += w * from[j];
                }
            }

            if (bf16) {
                dsa_bf16_round_rows(part, cols);
            }
        }

        part += cols;
        weight += k;
        expert += k;
        place += k;
    }
}


/* Returns the index of the least expert above last, or k. */

static uint32_t
dsa_exchange_next(const int32_t *expert, uint32_t k, int64_t last)
{
    uint32_t  i, next;

    for (i = 0, next = k; i < k; i++) {
        if (expert[i] > last && (next == k || expert[i] < expert[next])) {
            next = i;
        }
    }

    return next;
}


DSA_CLONES void
dsa_exchange_sum(float *y, const float *part, size_t step,
    const float *shared, const int32_t *expert, size_t tokens,
    uint32_t ranks, uint32_t experts, uint32_t k, size_t cols, int bf16)
{
    size_t        t, j;
    uint32_t      r;
    const float  *from;

    for (t = 0; t < tokens; t++) {
        memset(y, 0, cols * sizeof(float));

        for (r = 0; r < ranks; r++) {
            if (!dsa_exchange_has(expert, k, r * experts, experts)) {
                continue;
            }

            from = part + r * step + t * cols;

            for (j = 0; j < cols; j++) {
                y[j] += from[j];
            }
        }

        for (j = 0; shared != NULL && j < cols; j++) {
            y[j] += shared[t * cols + j];
        }

        if (bf16) {
            dsa_bf16_round_rows(y, cols);
        }

        y += cols;
        expert += k;
    }
}


DSA_CLONES void
dsa_exchange_all_reduce(float *y, const float *part, size_t step, size_t n,
    uint32_t ranks, int bf16)
{
    size_t    i;
    uint32_t  r;

    memcpy(y, part, n * sizeof(float));

    for (r = 1; r < ranks; r++) {
        for (i = 0; i < n; i++) {
            y[i] += part[r * step + i];
        }
    }

    if (bf16) {
        dsa_bf16_round_rows(y, n);
    }
}
