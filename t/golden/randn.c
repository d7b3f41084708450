
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>
#include <stdlib.h>

#include "t/golden/randn.h"


#define MT_SHIFT        397


/* MT19937 of Matsumoto and Nishimura */

void
randn_seed(randn_t *r, uint32_t seed)
{
    uint32_t  i;

    r->word[0] = seed;

    for (i = 1; i < RANDN_WORDS; i++) {
        r->word[i] = 1812433253u * (r->word[i - 1] ^ (r->word[i - 1] >> 30))
                     + i;
    }

    r->next = RANDN_WORDS;
}


static uint32_t
mt_next(randn_t *r)
{
    uint32_t  i, y;

    if (r->next == RANDN_WORDS) {
        for (i = 0; i < RANDN_WORDS; i++) {
            y = (r->word[i] & 0x80000000u)
                | (r->word[(i + 1) % RANDN_WORDS] & 0x7fffffffu);
            r->word[i] = r->word[(i + MT_SHIFT) % RANDN_WORDS] ^ (y >> 1)
                       ^ ((y & 1) != 0 ? 0x9908b0dfu : 0);
        }

        r->next = 0;
    }

    y = r->word[r->next++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;

    return y ^ (y >> 18);
}


/* logf() of Cephes for 0 < x <= 1 */

static float
cephes_log(float x)
{
    int           e;
    float         y, z;
    unsigned      i;

    static const float  p[] = {
        7.0376836292E-2f, -1.1514610310E-1f, 1.1676998740E-1f,
        -1.2420140846E-1f, 1.4249322787E-1f, -1.6668057665E-1f,
        2.0000714765E-1f, -2.4999993993E-1f, 3.3333331174E-1f
    };

    x = frexpf(x, &e);

    if (x < 0.707106781186547524f) {
        e--;
        x += x - 1.0f;

    } else {
        x -= 1.0f;
    }

    z = x * x;
    y = p[0];

    for (i = 1; i < sizeof(p) / sizeof(p[0]); i++) {
        y = fmaf(y, x, p[i]);
    }

    y *= x;
    y = fmaf(y, z, (float) e * -2.12194440e-4f);
    y -= z * 0.5f;

    return fmaf((float) e, 0.693359375f, x + y);
}


/* sincosf() of Cephes for x >= 0 */

static void
cephes_sincos(float x, float *sine, float *cosine)
{
    int    octant;
    float  s, c, y, z;

    octant = ((int) (x * 1.27323954473516f) + 1) & ~1;

    y = (float) octant;
    x = fmaf(y, -0.78515625f, x);
    x = fmaf(y, -2.4187564849853515625e-4f, x);
    x = fmaf(y, -3.77489497744594108e-8f, x);
    z = x * x;

    c = 2.443315711809948E-005f;
    c = fmaf(c, z, -1.388731625493765E-003f);
    c = fmaf(c, z, 4.166664568298827E-002f);
    c *= z;
    c = fmaf(c, z, -(z * 0.5f)) + 1.0f;

    s = -1.9515295891E-4f;
    s = fmaf(s, z, 8.3321608736E-3f);
    s = fmaf(s, z, -1.6666654611E-1f);
    s *= z;
    s = fmaf(s, x, x);

    if ((octant & 2) != 0) {
        y = s;
        s = c;
        c = y;
    }

    *sine = (octant & 4) != 0 ? -s : s;
    *cosine = ((octant + 2) & 4) != 0 ? -c : c;
}


static double
uniform53(randn_t *r)
{
    uint64_t  x;

    x = (uint64_t) mt_next(r) << 32;
    x |= mt_next(r);

    return (double) (x & ((UINT64_C(1) << 53) - 1)) * 0x1p-53;
}


/* Replaces 16 numbers that are uniform in [0, 1). */

static void
normal16(float *x)
{
    float     length, sine, cosine;
    uint32_t  i;

    for (i = 0; i < 8; i++) {
        length = sqrtf(-2.0f * cephes_log(1.0f - x[i]));
        cephes_sincos((float) (2.0 * M_PI) * x[i + 8], &sine, &cosine);
        x[i] = length * cosine;
        x[i + 8] = length * sine;
    }
}


static void
uniform(randn_t *r, float *x, uint32_t n)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        x[i] = (float) (mt_next(r) & 0xffffff) * 0x1p-24f;
    }
}


/*
 * Fewer than 16 numbers are computed in double.  If n is more and no multiple
 * of 16, the last 16 are drawn once more.
 */

float *
randn(randn_t *r, uint32_t n)
{
    float     *x;
    double     angle, radius;
    uint32_t   i;

    x = malloc(n * sizeof(float));
    if (x == NULL) {
        abort();
    }

    if (n < 16) {
        for (i = 0; i < n; i += 2) {
            angle = 2.0 * M_PI * uniform53(r);
            radius = sqrt(-2.0 * log1p(-uniform53(r)));
            x[i] = (float) (radius * cos(angle));
            x[i + 1] = (float) (radius * sin(angle));
        }

        return x;
    }

    uniform(r, x, n);

    for (i = 0; i + 16 <= n; i += 16) {
        normal16(x + i);
    }

    if (n % 16 != 0) {
        uniform(r, x + n - 16, 16);
        normal16(x + n - 16);
    }

    return x;
}
