
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "fp8.h"
#include "simd.h"


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


/*
 * Returns the scale for x [n].  The greatest magnitude, at least 1e-4, is
 * found by comparing bits, because without signs the bits of floats have the
 * order of the floats.  A NaN is ignored.
 */

static DSA_INLINE float
dsa_fp8_scale_of(const float *x, size_t n, int ue8m0)
{
    float    s;
    size_t   i;
    int32_t  bits, max;

    max = (int32_t) dsa_float_bits(1e-4f);

    for (i = 0; i < n; i++) {
        bits = (int32_t) (dsa_float_bits(x[i]) & 0x7fffffff);
        bits = bits > 0x7f800000 ? 0 : bits;
        max = bits > max ? bits : max;
    }

    s = dsa_bits_float((uint32_t) max) / DSA_E4M3_MAX;

    return ue8m0 ? dsa_ue8m0(s) : s;
}


DSA_CLONES float
dsa_fp8_scale(const float *x, size_t n, int ue8m0)
{
    return dsa_fp8_scale_of(x, n, ue8m0);
}


DSA_CLONES void
dsa_fp8_simulate(float *y, const float *x, size_t rows, size_t cols,
    int ue8m0)
{
    float   s;
    size_t  i, j, r, n;

    for (r = 0; r < rows; r++) {
        for (i = 0; i < cols; i += DSA_FP8_GROUP) {
            n = cols - i < DSA_FP8_GROUP ? cols - i : DSA_FP8_GROUP;
            s = dsa_fp8_scale_of(x + i, n, ue8m0);

            for (j = i; j < i + n; j++) {
                y[j] = s * dsa_e4m3_round(x[j] / s);
            }
        }

        x += cols;
        y += cols;
    }
}


DSA_CLONES void
dsa_fp8_simulate_by(float *y, const float *x, size_t n, float scale)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        y[i] = scale * dsa_e4m3_round(x[i] / scale);
    }
}


DSA_CLONES void
dsa_fp8_round(float *x, float *scale, size_t n, size_t dim)
{
    float   s;
    size_t  i, j;

    for (i = 0; i < n; i++) {
        s = dsa_fp8_scale_of(x, dim, 1);

        for (j = 0; j < dim; j++) {
            x[j] = dsa_e4m3_round(x[j] / s);
        }

        scale[i] = s;
        x += dim;
    }
}


DSA_CLONES void
dsa_fp8_encode(uint8_t *q, float *scale, const float *x, size_t n,
    size_t group)
{
    float   s;
    size_t  i, j, len;

    for (i = 0; i < n; i += group) {
        len = n - i < group ? n - i : group;
        s = dsa_fp8_scale_of(x + i, len, 1);

        for (j = i; j < i + len; j++) {
            q[j] = dsa_e4m3_code(dsa_e4m3_round(x[j] / s));
        }

        *scale++ = s;
    }
}


#if defined(__x86_64__)

/*
 * Moving the exponent and the fraction of an e4m3 code to those of a half
 * gives its value times 2^-8, also below the normal range, but not NaN, all
 * ones.  So these decode until a NaN is near and return the number of codes
 * done.  scale times 2^8 is exact in the range in which they are used.
 */

DSA_AVX512 static size_t
dsa_fp8_decode_avx512(float *out, const uint8_t *q, size_t n, float scale)
{
    size_t   i;
    __m512   s;
    __m512i  codes, low, high;

    const __m512i  ones = _mm512_set1_epi8(0x7f);
    const __m512i  keep = _mm512_set1_epi16((short) 0xbfff);

    s = _mm512_set1_ps(scale * 256.0f);

    for (i = 0; i + 64 <= n; i += 64) {
        codes = _mm512_loadu_si512(q + i);

        if (_mm512_cmpeq_epi8_mask(_mm512_and_si512(codes, ones), ones) != 0) {
            break;
        }

        low = _mm512_cvtepi8_epi16(_mm512_castsi512_si256(codes));
        high = _mm512_cvtepi8_epi16(_mm512_extracti64x4_epi64(codes, 1));
        low = _mm512_and_si512(_mm512_slli_epi16(low, 7), keep);
        high = _mm512_and_si512(_mm512_slli_epi16(high, 7), keep);

        _mm512_storeu_ps(out + i, _mm512_mul_ps(s,
                         _mm512_cvtph_ps(_mm512_castsi512_si256(low))));
        _mm512_storeu_ps(out + i + 16, _mm512_mul_ps(s,
                         _mm512_cvtph_ps(_mm512_extracti64x4_epi64(low, 1))));
        _mm512_storeu_ps(out + i + 32, _mm512_mul_ps(s,
                         _mm512_cvtph_ps(_mm512_castsi512_si256(high))));
        _mm512_storeu_ps(out + i + 48, _mm512_mul_ps(s,
                         _mm512_cvtph_ps(_mm512_extracti64x4_epi64(high, 1))));
    }

    return i;
}


DSA_AVX2 static size_t
dsa_fp8_decode_avx2(float *out, const uint8_t *q, size_t n, float scale)
{
    size_t   i;
    __m128i  codes;
    __m256   s;
    __m256i  half;

    const __m128i  ones = _mm_set1_epi8(0x7f);
    const __m256i  keep = _mm256_set1_epi16((short) 0xbfff);

    s = _mm256_set1_ps(scale * 256.0f);

    for (i = 0; i + 16 <= n; i += 16) {
        codes = _mm_loadu_si128((const __m128i *) (q + i));

        if (_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_and_si128(codes, ones), ones))
            != 0)
        {
            break;
        }

        half = _mm256_cvtepi8_epi16(codes);
        half = _mm256_and_si256(_mm256_slli_epi16(half, 7), keep);

        _mm256_storeu_ps(out + i, _mm256_mul_ps(s,
                         _mm256_cvtph_ps(_mm256_castsi256_si128(half))));
        _mm256_storeu_ps(out + i + 8, _mm256_mul_ps(s,
                         _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1))));
    }

    return i;
}


static size_t
dsa_fp8_decode_most(float *out, const uint8_t *q, size_t n, float scale)
{
    if (!(scale < 0x1p100f)) {
        return 0;
    }

    if (dsa_has_avx512()) {
        return dsa_fp8_decode_avx512(out, q, n, scale);
    }

    if (dsa_has_avx2()) {
        return dsa_fp8_decode_avx2(out, q, n, scale);
    }

    return 0;
}

#else

static size_t
dsa_fp8_decode_most(float *out, const uint8_t *q, size_t n, float scale)
{
    return 0;
}

#endif


/*
 * Returns dsa_e4m3_value[] without a table, so that a loop can be vectorized.
 */

static inline float
dsa_fp8_value(uint8_t code)
{
    float    small, v;
    int32_t  mag;

    mag = code & 0x7f;

    small = (float) mag * 0x1p-9f;
    v = dsa_bits_float((uint32_t) (mag << 20) + (120U << 23));
    v = mag < 8 ? small : v;
    v = mag == 0x7f ? NAN : v;

    return dsa_bits_float(dsa_float_bits(v) | (uint32_t) (code & 0x80) << 24);
}


/* The greatest scale of a row's part is that of the greatest value. */

void
dsa_fp8_encode_weight(uint8_t *q, float *scale, const float *w, size_t n,
    size_t cols)
{
    float   s, part;
    size_t  i, j, row, width;

    for (i = 0; i < cols; i += DSA_FP8_GROUP) {
        width = cols - i < DSA_FP8_GROUP ? cols - i : DSA_FP8_GROUP;
        s = 0;

        for (row = 0; row < n; row++) {
            part = dsa_fp8_scale(w + row * cols + i, width, 0);
            s = part > s ? part : s;
        }

        for (row = 0; row < n; row++) {
            for (j = row * cols + i; j < row * cols + i + width; j++) {
                q[j] = dsa_e4m3_code(dsa_e4m3_round(w[j] / s));
            }
        }

        scale[i / DSA_FP8_GROUP] = s;
    }
}


void
dsa_fp8_decode(float *out, const uint8_t *q, size_t n, float scale)
{
    size_t  i;

    i = dsa_fp8_decode_most(out, q, n, scale);

    for ( /* void */ ; i < n; i++) {
        out[i] = scale * dsa_fp8_value(q[i]);
    }
}


void
dsa_fp8_decode_weight(float *w, const void *q, const float *scale,
    size_t first, size_t n, size_t cols)
{
    size_t          r, i, end, blocks;
    const float    *row;
    const uint8_t  *p;

    blocks = (cols + DSA_FP8_GROUP - 1) / DSA_FP8_GROUP;
    p = (const uint8_t *) q + first * cols;

    for (r = first; r < first + n; r++) {
        row = scale + r / DSA_FP8_GROUP * blocks;

        for (i = 0; i < cols; i = end) {
            end = cols - i < DSA_FP8_GROUP ? cols : i + DSA_FP8_GROUP;

            dsa_fp8_decode(w + i, p + i, end - i, row[i / DSA_FP8_GROUP]);
        }

        p += cols;
        w += cols;
    }
}
