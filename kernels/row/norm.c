
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>

#include "kernels/core/bf16.h"
#include "kernels/core/simd.h"
#include "norm.h"


/* The number of partial sums, which the compiler keeps in vector registers. */
#define DSA_LANES  16


static DSA_INLINE float
dsa_sum(const float *x, size_t n, float mean, int power)
{
    float   v, sum, lane[DSA_LANES];
    size_t  i, j;

    for (j = 0; j < DSA_LANES; j++) {
        lane[j] = 0;
    }

    for (i = 0; i + DSA_LANES <= n; i += DSA_LANES) {
        for (j = 0; j < DSA_LANES; j++) {
            v = x[i + j] - mean;
            lane[j] += power == 2 ? v * v : v;
        }
    }

    sum = 0;

    for ( /* void */ ; i < n; i++) {
        v = x[i] - mean;
        sum += power == 2 ? v * v : v;
    }

    for (j = 0; j < DSA_LANES; j++) {
        sum += lane[j];
    }

    return sum;
}


DSA_CLONES void
dsa_rmsnorm(float *y, size_t ld_y, const float *x, size_t ld_x,
    const float *w, size_t rows, size_t cols, float eps, int bf16)
{
    float   r;
    size_t  i, j;

    for (i = 0; i < rows; i++) {
        r = 1.0f / sqrtf(dsa_sum(x, cols, 0, 2) / (float) cols + eps);

        for (j = 0; j < cols; j++) {
            y[j] = w[j] * (x[j] * r);
        }

        if (bf16) {
            dsa_bf16_round_rows(y, cols);
        }

        x += ld_x;
        y += ld_y;
    }
}


DSA_CLONES void
dsa_add_rmsnorm(float *y, const float *x, float *residual, const float *w,
    size_t rows, size_t cols, float eps, int bf16)
{
    size_t  i, j;

    for (i = 0; i < rows; i++) {
        for (j = 0; j < cols; j++) {
            residual[j] += x[j];
        }

        dsa_rmsnorm(y, cols, residual, cols, w, 1, cols, eps, bf16);

        if (bf16) {
            dsa_bf16_round_rows(residual, cols);
        }

        x += cols;
        y += cols;
        residual += cols;
    }
}


DSA_CLONES void
dsa_layernorm(float *x, const float *w, const float *b, size_t rows,
    size_t cols, float eps, int bf16)
{
    float   mean, r;
    size_t  i, j;

    for (i = 0; i < rows; i++) {
        mean = dsa_sum(x, cols, 0, 1) / (float) cols;
        r = 1.0f / sqrtf(dsa_sum(x, cols, mean, 2) / (float) cols + eps);

        for (j = 0; j < cols; j++) {
            x[j] = (x[j] - mean) * r * w[j] + b[j];
        }

        if (bf16) {
            dsa_bf16_round_rows(x, cols);
        }

        x += cols;
    }
}
