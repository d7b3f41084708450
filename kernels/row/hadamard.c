
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>

#include "kernels/core/bf16.h"
#include "kernels/core/simd.h"
#include "hadamard.h"


/* Elements that the compiler keeps in registers. */
#define DSA_LANES  16


/*
 * A step of the transform within DSA_LANES elements: x[j] and x[j + half]
 * become their sum and their difference.  Each lane selects its two operands,
 * so that all lanes do the same.
 */

static DSA_INLINE void
dsa_hadamard_lanes(float *x, const size_t half)
{
    float   low[DSA_LANES], high[DSA_LANES];
    size_t  j;

    for (j = 0; j < DSA_LANES; j++) {
        low[j] = x[j & ~half];
        high[j] = x[j | half];
    }

    for (j = 0; j < DSA_LANES; j++) {
        x[j] = (j & half) != 0 ? low[j] - high[j] : low[j] + high[j];
    }
}


DSA_CLONES void
dsa_hadamard(float *x, size_t n, size_t dim, int bf16)
{
    float   a, b, scale;
    size_t  i, j, v, half;

    scale = 1.0f / sqrtf((float) dim);

    for (v = 0; v < n; v++) {
        half = 1;

        if (dim % DSA_LANES == 0) {
            for (i = 0; i < dim; i += DSA_LANES) {
                dsa_hadamard_lanes(x + i, 1);
                dsa_hadamard_lanes(x + i, 2);
                dsa_hadamard_lanes(x + i, 4);
                dsa_hadamard_lanes(x + i, 8);
            }

            half = DSA_LANES;
        }

        for ( /* void */ ; half < dim; half *= 2) {
            for (i = 0; i < dim; i += 2 * half) {
                for (j = i; j < i + half; j++) {
                    a = x[j];
                    b = x[j + half];
                    x[j] = a + b;
                    x[j + half] = a - b;
                }
            }
        }

        for (i = 0; i < dim; i++) {
            x[i] *= scale;
        }

        if (bf16) {
            dsa_bf16_round_rows(x, dim);
        }

        x += dim;
    }
}
