
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_T_GPU_ROPE_H_INCLUDED_
#define _DSA_T_GPU_ROPE_H_INCLUDED_


#include "kernels/row/rope.h"
#include "t/gpu/rows.h"


/* What the tests of rotated queries and of cached keys share. */


#define ROPE_ROWS      131073


static const dsa_rope_conf_t  rope_conf = {
    10000, 40, 32, 1, 1, 1, 4096
};

static float  rope_frequency[32];


/* Positions of rows, with the ends of the table among them, and the table. */

static inline float *
rope_table(int32_t *position, uint32_t rows)
{
    float     *table, *device;
    uint32_t   i;

    dsa_rope_frequencies(rope_frequency, 64, &rope_conf);
    table = get((size_t) ROPE_ROWS * 64 * sizeof(float));

    for (i = 0; i < rows; i++) {
        position[i] = i == 0 ? 0 : i == 1 ? ROPE_ROWS - 1
                      : (int32_t) dsa_t_random(ROPE_ROWS);

        dsa_rope_angles(table + (size_t) position[i] * 64,
                        table + (size_t) position[i] * 64 + 32,
                        rope_frequency, 64, (uint32_t) position[i], 1);
    }

    device = gpu_upload(table, (size_t) ROPE_ROWS * 64 * sizeof(float));
    free(table);

    return device;
}


/* In float64, except for the angle; out [64]. */

static inline void
rope_float64(double *out, const float *x, int32_t position, int half)
{
    double  angle, a, b;
    size_t  i, j, k;

    for (i = 0; i < 32; i++) {
        j = half ? i : 2 * i;
        k = half ? i + 32 : 2 * i + 1;
        angle = (double) ((float) position * rope_frequency[i]);
        a = x[j];
        b = x[k];

        out[j] = a * cos(angle) - b * sin(angle);
        out[k] = a * sin(angle) + b * cos(angle);
    }
}


/* The Hadamard transform of x [128] in float64, by its definition. */

static inline void
hadamard_float64(double *x)
{
    double  sum, out[128];
    size_t  i, j;

    for (i = 0; i < 128; i++) {
        sum = 0;

        for (j = 0; j < 128; j++) {
            sum += __builtin_popcount((unsigned) (i & j)) % 2 ? -x[j] : x[j];
        }

        out[i] = sum / sqrt(128);
    }

    memcpy(x, out, sizeof(out));
}


static inline void
index_rope(float *x, const float *cos, const float *sin, int interleaved)
{
    if (interleaved) {
        dsa_rope_interleaved(x, 1, 128, cos, sin, 64, 1);

    } else {
        dsa_rope_half(x, 1, 128, cos, sin, 64, 1);
    }
}


#endif /* _DSA_T_GPU_ROPE_H_INCLUDED_ */
