
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>

#include "kernels/core/bf16.h"
#include "kernels/core/simd.h"
#include "rope.h"


/* Returns the dimension that rotates r times over the original context. */

static double
dsa_rope_dimension(const dsa_rope_conf_t *conf, size_t dim, double r)
{
    return (double) dim * log(conf->original / (2 * M_PI * r))
           / (2 * log(conf->theta));
}


static double
dsa_rope_mscale(const dsa_rope_conf_t *conf, double a)
{
    return conf->factor > 1 ? 0.1 * a * log(conf->factor) + 1 : 1;
}


void
dsa_rope_frequencies(float *freq, size_t dim, const dsa_rope_conf_t *conf)
{
    double  f, low, high, ramp;
    size_t  i;

    if (conf->factor <= 1) {
        for (i = 0; i < dim / 2; i++) {
            freq[i] = (float) pow(conf->theta, -2.0 * (double) i
                                               / (double) dim);
        }

        return;
    }

    low = floor(dsa_rope_dimension(conf, dim, conf->beta_fast));
    high = ceil(dsa_rope_dimension(conf, dim, conf->beta_slow));

    low = fmax(low, 0);
    high = fmin(high, (double) dim - 1);

    if (low == high) {
        high += 0.001;          /* as in the published code; avoids a division
                                   by 0 */
    }

    for (i = 0; i < dim / 2; i++) {
        ramp = fmin(fmax(((double) i - low) / (high - low), 0), 1);
        f = pow(conf->theta, -2.0 * (double) i / (double) dim);
        freq[i] = (float) (f * (1 - ramp) + f / conf->factor * ramp);
    }
}


double
dsa_rope_magnitude(const dsa_rope_conf_t *conf)
{
    return dsa_rope_mscale(conf, conf->mscale)
           / dsa_rope_mscale(conf, conf->mscale_all_dim);
}


void
dsa_rope_angles(float *cos_out, float *sin_out, const float *freq,
    size_t dim, uint32_t position, double magnitude)
{
    float   a;
    size_t  i;

    for (i = 0; i < dim / 2; i++) {
        a = (float) position * freq[i];
        cos_out[i] = (float) (cos(a) * magnitude);
        sin_out[i] = (float) (sin(a) * magnitude);
    }
}


DSA_CLONES void
dsa_rope_interleaved(float *x, size_t n, size_t ld, const float *cos,
    const float *sin, size_t dim, int bf16)
{
    float   a, b;
    size_t  i, v;

    for (v = 0; v < n; v++) {
        for (i = 0; i < dim / 2; i++) {
            a = x[2 * i];
            b = x[2 * i + 1];

            x[2 * i] = a * cos[i] - b * sin[i];
            x[2 * i + 1] = a * sin[i] + b * cos[i];
        }

        if (bf16) {
            dsa_bf16_round_rows(x, dim);
        }

        x += ld;
    }
}


DSA_CLONES void
dsa_rope_half(float *x, size_t n, size_t ld, const float *cos,
    const float *sin, size_t dim, int bf16)
{
    float   a, b;
    size_t  i, v, half;

    half = dim / 2;

    for (v = 0; v < n; v++) {
        for (i = 0; i < half; i++) {
            a = x[i];
            b = x[half + i];

            x[i] = a * cos[i] - b * sin[i];
            x[half + i] = a * sin[i] + b * cos[i];
        }

        if (bf16) {
            dsa_bf16_round_rows(x, dim);
        }

        x += ld;
    }
}
