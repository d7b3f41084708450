
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>

#include "kernels/bf16.h"
#include "kernels/hadamard.h"
#include "kernels/simd.h"


DSA_CLONES void
dsa_hadamard(float *x, size_t n, size_t dim, int bf16)
{
    float   a, b, scale;
    size_t  i, j, v, half;

    scale = 1.0f / sqrtf((float) dim);

    for (v = 0; v < n; v++) {
        for (half = 1; half < dim; half *= 2) {
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
