
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <float.h>
#include <math.h>

#include "bf16.h"
#include "int4.h"
#include "simd.h"


#define DSA_INT4_BYTES      (DSA_INT4_GROUP / 2)
#define DSA_INT4_LANES      8           /* partial sums, added in order */
#define DSA_INT4_TRIES      16          /* candidates for a scale */
#define DSA_INT4_TRY        32.0f       /* parts of max(|w|) between two */


void
dsa_int4_codes(int8_t *out, const uint8_t *q)
{
    uint32_t  i;

    for (i = 0; i < DSA_INT4_BYTES; i++) {
        out[2 * i] = (int8_t) ((int8_t) (q[i] << 4) >> 4);
        out[2 * i + 1] = (int8_t) ((int8_t) q[i] >> 4);
    }
}


DSA_CLONES void
dsa_int4_decode(float *out, const uint8_t *q, float scale)
{
    uint32_t  i;

    for (i = 0; i < DSA_INT4_BYTES; i++) {
        out[2 * i] = scale * (float) ((int8_t) (q[i] << 4) >> 4);
        out[2 * i + 1] = scale * (float) ((int8_t) q[i] >> 4);
    }
}


/* q = the integers nearest to w / scale, ties to even, as floats. */

static DSA_INLINE void
dsa_int4_round(float *q, const float *w, float scale)
{
    float     v, inverse;
    uint32_t  i;

    inverse = 1.0f / scale;

    for (i = 0; i < DSA_INT4_GROUP; i++) {
        v = w[i] * inverse;
        v = v > DSA_INT4_MAX ? DSA_INT4_MAX : v;
        v = v < DSA_INT4_MIN ? DSA_INT4_MIN : v;

        /* 1.5 * 2^23 rounds to an integer */

        q[i] = (v + 12582912.0f) - 12582912.0f;
    }
}


/* Returns the sum of a * b in float64. */

static DSA_INLINE double
dsa_int4_dot(const float *a, const float *b)
{
    double    s, lane[DSA_INT4_LANES] = { 0 };
    uint32_t  i, j;

    for (i = 0; i < DSA_INT4_GROUP; i += DSA_INT4_LANES) {
        for (j = 0; j < DSA_INT4_LANES; j++) {
            lane[j] += (double) a[i + j] * (double) b[i + j];
        }
    }

    s = 0;

    for (j = 0; j < DSA_INT4_LANES; j++) {
        s += lane[j];
    }

    return s;
}


/* Returns the BF16 number nearest to v, or 0 if that is not finite. */

static float
dsa_int4_scale(double v)
{
    float  s;

    s = dsa_bf16_decode(dsa_bf16_encode((float) v));

    return s > 0 && s <= FLT_MAX && 1.0f / s <= FLT_MAX ? s : 0;
}


/*
 * Fits the scale to q = round(w / scale), and sets q for the new scale, which
 * is returned.  0: it is too small or too large.  The error is the sum of
 * squares of w - scale * q without the constant sum of w * w.
 */

static DSA_INLINE float
dsa_int4_fit(double *error, float *q, const float *w, float scale)
{
    double  wq, qq;

    if (scale == 0) {
        return 0;
    }

    dsa_int4_round(q, w, scale);

    qq = dsa_int4_dot(q, q);
    scale = qq > 0 ? dsa_int4_scale(dsa_int4_dot(w, q) / qq) : 0;

    if (scale == 0) {
        return 0;
    }

    dsa_int4_round(q, w, scale);

    wq = dsa_int4_dot(w, q);
    qq = dsa_int4_dot(q, q);
    *error = (double) scale * ((double) scale * qq - 2 * wq);

    return scale;
}


static void
dsa_int4_write(uint8_t *q, const float *v)
{
    uint32_t  i;

    for (i = 0; i < DSA_INT4_BYTES; i++) {
        q[i] = (uint8_t) (((int32_t) v[2 * i] & 0xf)
                          | ((int32_t) v[2 * i + 1] & 0xf) << 4);
    }
}


DSA_CLONES float
dsa_int4_encode(uint8_t *q, const float *w)
{
    float     most, start, scale, best, v[DSA_INT4_GROUP];
    double    error, least;
    uint32_t  i;

    most = 0;

    for (i = 0; i < DSA_INT4_GROUP; i++) {
        if (!isfinite(w[i])) {
            return NAN;
        }

        most = fabsf(w[i]) > most ? fabsf(w[i]) : most;
    }

    best = 0;
    least = 0;

    for (i = 0; i < DSA_INT4_TRIES; i++) {
        start = dsa_int4_scale((double) most / DSA_INT4_MAX
                               * (1 - (double) i / DSA_INT4_TRY));
        scale = dsa_int4_fit(&error, v, w, start);

        if (scale != 0 && error < least) {
            least = error;
            best = scale;
        }
    }

    /* zeros, or numbers that are too small for a scale */

    if (best == 0) {
        for (i = 0; i < DSA_INT4_BYTES; i++) {
            q[i] = 0;
        }

        return 1;
    }

    dsa_int4_round(v, w, best);
    dsa_int4_write(q, v);

    return best;
}
