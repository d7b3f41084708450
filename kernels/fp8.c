
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>

#include "kernels/fp8.h"


#define DSA_E4M3(c)                                                           \
    (((c) & 0x7f) == 0x7f ? NAN                                               \
     : ((c) & 0x80 ? -1.0f : 1.0f)                                            \
       * (((c) & 0x78) != 0                                                   \
          ? (float) ((8 + ((c) & 7)) << ((c) >> 3 & 15)) / 1024.0f            \
          : (float) ((c) & 7) / 512.0f))

#define DSA_E4M3_4(c)                                                         \
    DSA_E4M3(c), DSA_E4M3(c + 1), DSA_E4M3(c + 2), DSA_E4M3(c + 3)

#define DSA_E4M3_16(c)                                                        \
    DSA_E4M3_4(c), DSA_E4M3_4(c + 4), DSA_E4M3_4(c + 8), DSA_E4M3_4(c + 12)

#define DSA_E4M3_64(c)                                                        \
    DSA_E4M3_16(c), DSA_E4M3_16(c + 16), DSA_E4M3_16(c + 32),                 \
    DSA_E4M3_16(c + 48)


const float  dsa_e4m3_value[256] = {
    DSA_E4M3_64(0), DSA_E4M3_64(64), DSA_E4M3_64(128), DSA_E4M3_64(192)
};


float
dsa_fp8_scale(const float *x, size_t n, int ue8m0)
{
    float   amax, a, s;
    size_t  i;

    amax = 1e-4f;

    for (i = 0; i < n; i++) {
        a = fabsf(x[i]);
        amax = a > amax ? a : amax;
    }

    s = amax / DSA_E4M3_MAX;

    return ue8m0 ? dsa_ue8m0(s) : s;
}


void
dsa_fp8_simulate(float *y, const float *x, size_t rows, size_t cols,
    int ue8m0)
{
    float   s;
    size_t  i, j, r, n;

    for (r = 0; r < rows; r++) {
        for (i = 0; i < cols; i += DSA_FP8_GROUP) {
            n = cols - i < DSA_FP8_GROUP ? cols - i : DSA_FP8_GROUP;
            s = dsa_fp8_scale(x + i, n, ue8m0);

            for (j = i; j < i + n; j++) {
                y[j] = s * dsa_e4m3_round(x[j] / s);
            }
        }

        x += cols;
        y += cols;
    }
}


void
dsa_fp8_round(float *x, float *scale, size_t n, size_t dim)
{
    float   s;
    size_t  i, j;

    for (i = 0; i < n; i++) {
        s = dsa_fp8_scale(x, dim, 1);

        for (j = 0; j < dim; j++) {
            x[j] = dsa_e4m3_round(x[j] / s);
        }

        scale[i] = s;
        x += dim;
    }
}


void
dsa_fp8_encode(uint8_t *q, float *scale, const float *x, size_t n,
    size_t group)
{
    float   s;
    size_t  i, j, len;

    for (i = 0; i < n; i += group) {
        len = n - i < group ? n - i : group;
        s = dsa_fp8_scale(x + i, len, 1);

        for (j = i; j < i + len; j++) {
            q[j] = dsa_e4m3_code(dsa_e4m3_round(x[j] / s));
        }

        *scale++ = s;
    }
}


void
dsa_fp8_decode_weight(float *w, const void *q, const float *scale,
    size_t first, size_t n, size_t cols)
{
    float           s;
    size_t          r, i, j, end, blocks;
    const float    *row;
    const uint8_t  *p;

    blocks = (cols + DSA_FP8_GROUP - 1) / DSA_FP8_GROUP;
    p = (const uint8_t *) q + first * cols;

    for (r = first; r < first + n; r++) {
        row = scale + r / DSA_FP8_GROUP * blocks;

        for (i = 0; i < cols; i = end) {
            end = cols - i < DSA_FP8_GROUP ? cols : i + DSA_FP8_GROUP;
            s = row[i / DSA_FP8_GROUP];

            for (j = i; j < end; j++) {
                w[j] = s * dsa_e4m3_value[p[j]];
            }
        }

        p += cols;
        w += cols;
    }
}
