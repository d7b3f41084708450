
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/core/bf16.h"
#include "kernels/core/fp8.h"
#include "kernels/core/int4.h"
#include "kernels/core/simd.h"
#include "gemm.h"


/*
 * A product is computed in blocks of the weight: DSA_GEMM_BLOCK inputs by
 * DSA_GEMM_PANEL outputs, as float32 with an input's outputs side by side.
 * Such a block is 32 KB, so it stays in the first-level cache while all rows
 * of x pass over it, DSA_GEMM_ROWS at a time.  Sums are kept in registers.
 */

#define DSA_GEMM_ROWS   6


typedef struct {
    float           w[DSA_GEMM_BLOCK * DSA_GEMM_PANEL];
} __attribute__((aligned(64))) dsa_gemm_block_t;

typedef float  dsa_v4_t __attribute__((vector_size(16), aligned(4)));

#if defined(__x86_64__)
typedef float  dsa_v8_t __attribute__((vector_size(32), aligned(4)));
typedef float  dsa_v16_t __attribute__((vector_size(64), aligned(4)));
#endif


/* What a sum does with the y that is there. */

typedef enum {
    DSA_GEMM_SET = 0,           /* y = sum */
    DSA_GEMM_ADD,               /* y = y + sum */
    DSA_GEMM_CONTINUE           /* the sum begins with y */
} dsa_gemm_to_e;

typedef void (*dsa_gemm_rows_pt)(float *y, size_t ld_y, const float *x,
    size_t ld_x, const float *w, size_t ld_w, size_t rows, size_t in,
    dsa_gemm_to_e to);


/*
 * y [rows, DSA_GEMM_PANEL] = x [rows, in] . w [in, DSA_GEMM_PANEL], for one
 * kind of vector.  R rows and n vectors are summed at a time, so that R * n
 * registers hold the sums.  The result has the same bits for all R and n,
 * because each sum adds the inputs in order.
 */

#define DSA_GEMM_KERNEL(name, target, vector, lanes, n_rows, n_row, fma)      \
                                                                              \
target static DSA_INLINE void                                                 \
name##_tile(float *y, size_t ld_y, const float *x, size_t ld_x,               \
    const float *w, size_t ld_w, const size_t rows, const size_t n,           \
    size_t in, dsa_gemm_to_e to)                                              \
{                                                                             \
    size_t   r, c, k;                                                         \
    vector   b, v[16], sum[DSA_GEMM_ROWS][16];                                \
                                                                              \
    for (r = 0; r < rows; r++) {                                              \
        for (c = 0; c < n; c++) {                                             \
            sum[r][c] = (vector) { 0 };                                       \
                                                                              \
            if (to == DSA_GEMM_CONTINUE) {                                    \
                sum[r][c] = *(vector *) (y + r * ld_y + c * (lanes));         \
            }                                                                 \
        }                                                                     \
    }                                                                         \
                                                                              \
    for (k = 0; k < in; k++) {                                                \
        for (c = 0; c < n; c++) {                                             \
            v[c] = *(const vector *) (w + c * (lanes));                       \
        }                                                                     \
                                                                              \
        w += ld_w;                                                            \
                                                                              \
        for (r = 0; r < rows; r++) {                                          \
            b = x[r * ld_x + k] - (vector) { 0 };                             \
                                                                              \
            for (c = 0; c < n; c++) {                                         \
                sum[r][c] = fma(b, v[c], sum[r][c]);                          \
            }                                                                 \
        }                                                                     \
    }                                                                         \
                                                                              \
    for (r = 0; r < rows; r++) {                                              \
        for (c = 0; c < n; c++) {                                             \
            if (to == DSA_GEMM_ADD) {                                         \
                sum[r][c] += *(vector *) (y + r * ld_y + c * (lanes));        \
            }                                                                 \
                                                                              \
            *(vector *) (y + r * ld_y + c * (lanes)) = sum[r][c];             \
        }                                                                     \
    }                                                                         \
}                                                                             \
                                                                              \
                                                                              \
target static void                                                            \
name(float *y, size_t ld_y, const float *x, size_t ld_x, const float *w,      \
    size_t ld_w, size_t rows, size_t in, dsa_gemm_to_e to)                    \
{                                                                             \
    size_t  c, n;                                                             \
                                                                              \
    for ( /* void */ ; rows != 0; rows -= n) {                                \
        n = rows < DSA_GEMM_ROWS ? rows : DSA_GEMM_ROWS;                      \
                                                                              \
        if (n == 1) {                                                         \
            for (c = 0; c < DSA_GEMM_PANEL; c += (n_row) * (lanes)) {         \
                name##_tile(y + c, ld_y, x, ld_x, w + c, ld_w, 1, n_row, in,  \
                            to);                                              \
            }                                                                 \
                                                                              \
            return;                                                           \
        }                                                                     \
                                                                              \
        for (c = 0; c < DSA_GEMM_PANEL; c += (n_rows) * (lanes)) {            \
            switch (n) {                                                      \
                                                                              \
            case 2:                                                           \
                name##_tile(y + c, ld_y, x, ld_x, w + c, ld_w, 2, n_rows, in, \
                            to);                                              \
                break;                                                        \
                                                                              \
            case 3:                                                           \
                name##_tile(y + c, ld_y, x, ld_x, w + c, ld_w, 3, n_rows, in, \
                            to);                                              \
                break;                                                        \
                                                                              \
            case 4:                                                           \
                name##_tile(y + c, ld_y, x, ld_x, w + c, ld_w, 4, n_rows, in, \
                            to);                                              \
                break;                                                        \
                                                                              \
            case 5:                                                           \
                name##_tile(y + c, ld_y, x, ld_x, w + c, ld_w, 5, n_rows, in, \
                            to);                                              \
                break;                                                        \
                                                                              \
            default:                                                          \
                name##_tile(y + c, ld_y, x, ld_x, w + c, ld_w, DSA_GEMM_ROWS, \
                            n_rows, in, to);                                  \
                break;                                                        \
            }                                                                 \
        }                                                                     \
                                                                              \
        x += n * ld_x;                                                        \
        y += n * ld_y;                                                        \
    }                                                                         \
}

#define dsa_gemm_multiply_add(a, b, c)  ((a) * (b) + (c))

DSA_GEMM_KERNEL(dsa_gemm_rows_any, , dsa_v4_t, 4, 2, 8, dsa_gemm_multiply_add)

#if defined(__x86_64__)

DSA_GEMM_KERNEL(dsa_gemm_rows_avx2, DSA_AVX2, dsa_v8_t, 8, 2, 8,
                _mm256_fmadd_ps)
DSA_GEMM_KERNEL(dsa_gemm_rows_avx512, DSA_AVX512, dsa_v16_t, 16, 4, 4,
                _mm512_fmadd_ps)

#endif


static dsa_gemm_rows_pt
dsa_gemm_rows(void)
{
#if defined(__x86_64__)

    if (dsa_has_avx512()) {
        return dsa_gemm_rows_avx512;
    }

    if (dsa_has_avx2()) {
        return dsa_gemm_rows_avx2;
    }

#endif

    return dsa_gemm_rows_any;
}


/* to [., DSA_GEMM_PANEL] = from [out, in] transposed, in squares of 4. */

static void
dsa_gemm_transpose(float *to, const float *from, size_t ld, size_t out,
    size_t in)
{
    size_t        o, i, j;
    dsa_v4_t      a, b, c, d, ab, cd;
    const float  *p;

    for (o = 0; o + 4 <= out; o += 4) {
        p = from + o * ld;

        for (i = 0; i + 4 <= in; i += 4) {
            a = *(const dsa_v4_t *) (p + i);
            b = *(const dsa_v4_t *) (p + ld + i);
            c = *(const dsa_v4_t *) (p + 2 * ld + i);
            d = *(const dsa_v4_t *) (p + 3 * ld + i);

            ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
            cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);

            *(dsa_v4_t *) (to + i * DSA_GEMM_PANEL + o)
                = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
            *(dsa_v4_t *) (to + (i + 1) * DSA_GEMM_PANEL + o)
                = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);

            ab = __builtin_shufflevector(a, b, 2, 6, 3, 7);
            cd = __builtin_shufflevector(c, d, 2, 6, 3, 7);

            *(dsa_v4_t *) (to + (i + 2) * DSA_GEMM_PANEL + o)
                = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
            *(dsa_v4_t *) (to + (i + 3) * DSA_GEMM_PANEL + o)
                = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
        }

        for ( /* void */ ; i < in; i++) {
            for (j = 0; j < 4; j++) {
                to[i * DSA_GEMM_PANEL + o + j] = p[j * ld + i];
            }
        }
    }

    for ( /* void */ ; o < out; o++) {
        for (i = 0; i < in; i++) {
            to[i * DSA_GEMM_PANEL + o] = from[o * ld + i];
        }
    }
}


/* Decodes n elements of a row of w's tensor from column at on to float32. */

static void
dsa_gemm_decode(float *to, const dsa_gemm_weight_t *w, size_t row, size_t at,
    size_t n)
{
    size_t        i, len, group;
    const float  *scale;

    i = row * w->ld + at;

    switch (w->dtype) {

    case DSA_GEMM_F32:
        memcpy(to, (const float *) w->data + i, n * sizeof(float));
        break;

    case DSA_GEMM_BF16:
        dsa_bf16_decode_rows(to, (const uint16_t *) w->data + i, n);
        break;

    case DSA_GEMM_E4M3:
        scale = w->scale + (w->first + row) / DSA_FP8_GROUP * w->ld_scale;

        for ( /* void */ ; n != 0; n -= len) {
            len = DSA_FP8_GROUP - at % DSA_FP8_GROUP;
            len = len < n ? len : n;

            dsa_fp8_decode(to, (const uint8_t *) w->data + i, len,
                           scale[at / DSA_FP8_GROUP]);
            to += len;
            at += len;
            i += len;
        }

        break;

    case DSA_GEMM_INT4:
        assert(at % DSA_INT4_GROUP == 0 && n % DSA_INT4_GROUP == 0);

        group = (w->first + row) * w->ld_scale + at / DSA_INT4_GROUP;

        for ( /* void */ ; n != 0; n -= DSA_INT4_GROUP) {
            dsa_int4_decode(to, (const uint8_t *) w->data + i / 2,
                            dsa_int4_group_scale(w->groups, w->scale,
                                                 group++));
            to += DSA_INT4_GROUP;
            i += DSA_INT4_GROUP;
        }

        break;
    }
}


/* Returns the scale of an e4m3 block at output out and input in. */

static float
dsa_gemm_scale(const dsa_gemm_weight_t *w, size_t out, size_t in)
{
    size_t  row, col;

    row = w->first + (w->transposed ? in : out);
    col = w->transposed ? out : in;

    return w->scale[row / DSA_FP8_GROUP * w->ld_scale + col / DSA_FP8_GROUP];
}


/*
 * Returns the block of w from output out and input in on, decoded to block if
 * necessary, and sets ld_w.
 */

static const float *
dsa_gemm_block(dsa_gemm_block_t *block, size_t *ld_w,
    const dsa_gemm_weight_t *w, size_t out, size_t n_out, size_t in,
    size_t n_in)
{
    size_t            i, at;
    dsa_gemm_block_t  rows;

    *ld_w = DSA_GEMM_PANEL;

    if (w->layout == DSA_GEMM_PANELS) {
        at = (out / DSA_GEMM_PANEL * w->in + in) * DSA_GEMM_PANEL;

        switch (w->dtype) {

        case DSA_GEMM_F32:
            return (const float *) w->data + at;

        case DSA_GEMM_BF16:
            dsa_bf16_decode_rows(block->w, (const uint16_t *) w->data + at,
                                 n_in * DSA_GEMM_PANEL);
            break;

        case DSA_GEMM_E4M3:
            dsa_fp8_decode(block->w, (const uint8_t *) w->data + at,
                           n_in * DSA_GEMM_PANEL,
                           dsa_gemm_scale(w, out, in));
            break;

        case DSA_GEMM_INT4:
            assert(0);
        }

        return block->w;
    }

    if (w->layout == DSA_GEMM_IN_OUT) {

        if (w->dtype == DSA_GEMM_F32 && n_out == DSA_GEMM_PANEL) {
            *ld_w = w->ld;
            return (const float *) w->data + in * w->ld + out;
        }

        for (i = 0; i < n_in; i++) {
            dsa_gemm_decode(block->w + i * DSA_GEMM_PANEL, w, in + i, out,
                            n_out);
            memset(block->w + i * DSA_GEMM_PANEL + n_out, 0,
                   (DSA_GEMM_PANEL - n_out) * sizeof(float));
        }

        return block->w;
    }

    if (n_out != DSA_GEMM_PANEL) {
        memset(block->w, 0, n_in * DSA_GEMM_PANEL * sizeof(float));
    }

    if (w->dtype == DSA_GEMM_F32) {
        dsa_gemm_transpose(block->w,
                           (const float *) w->data + out * w->ld + in, w->ld,
                           n_out, n_in);
        return block->w;
    }

    for (i = 0; i < n_out; i++) {
        dsa_gemm_decode(rows.w + i * DSA_GEMM_BLOCK, w, out + i, in, n_in);
    }

    dsa_gemm_transpose(block->w, rows.w, DSA_GEMM_BLOCK, n_out, n_in);

    return block->w;
}


/* The same for a y with fewer than DSA_GEMM_PANEL outputs. */

static void
dsa_gemm_narrow(float *y, size_t ld_y, const float *x, size_t ld_x,
    const float *w, size_t ld_w, size_t rows, size_t out, size_t in,
    dsa_gemm_to_e to)
{
    float             sum[DSA_GEMM_ROWS * DSA_GEMM_PANEL];
    size_t            r, n;
    dsa_gemm_rows_pt  multiply;

    multiply = dsa_gemm_rows();
    memset(sum, 0, sizeof(sum));

    for ( /* void */ ; rows != 0; rows -= n) {
        n = rows < DSA_GEMM_ROWS ? rows : DSA_GEMM_ROWS;

        for (r = 0; r < n && to != DSA_GEMM_SET; r++) {
            memcpy(sum + r * DSA_GEMM_PANEL, y + r * ld_y,
                   out * sizeof(float));
        }

        multiply(sum, DSA_GEMM_PANEL, x, ld_x, w, ld_w, n, in, to);

        for (r = 0; r < n; r++) {
            memcpy(y + r * ld_y, sum + r * DSA_GEMM_PANEL,
                   out * sizeof(float));
        }

        y += n * ld_y;

        x += n * ld_x;
    }
}


static void
dsa_gemm(float *y, size_t ld_y, const float *x, size_t ld_x,
    const dsa_gemm_weight_t *w, size_t rows, size_t first, size_t n,
    dsa_gemm_to_e begin, dsa_gemm_to_e next)
{
    size_t             end, out, n_out, in, n_in, ld_w;
    const float       *p;
    dsa_gemm_block_t   block;
    dsa_gemm_rows_pt   multiply;

    assert(first % DSA_GEMM_PANEL == 0 && first + n <= w->out);

    multiply = dsa_gemm_rows();
    end = first + n;

    for (out = first; out < end; out += n_out) {
        n_out = end - out < DSA_GEMM_PANEL ? end - out : DSA_GEMM_PANEL;

        for (in = 0; in < w->in; in += n_in) {
            n_in = w->in - in < DSA_GEMM_BLOCK ? w->in - in : DSA_GEMM_BLOCK;

            p = dsa_gemm_block(&block, &ld_w, w, out, n_out, in, n_in);

            if (n_out == DSA_GEMM_PANEL) {
                multiply(y, ld_y, x + in, ld_x, p, ld_w, rows, n_in,
                         in == 0 ? begin : next);

            } else {
                dsa_gemm_narrow(y, ld_y, x + in, ld_x, p, ld_w, rows, n_out,
                                n_in, in == 0 ? begin : next);
            }
        }

        y += n_out;
    }
}


void
dsa_gemm_weight(float *y, size_t ld_y, const float *x, size_t ld_x,
    const dsa_gemm_weight_t *w, size_t rows, size_t first, size_t n)
{
    dsa_gemm(y, ld_y, x, ld_x, w, rows, first, n, DSA_GEMM_SET, DSA_GEMM_ADD);
}


void
dsa_gemm_nt(float *y, size_t ld_y, const float *x, size_t ld_x,
    const float *w, size_t ld_w, size_t rows, size_t out, size_t in, int add)
{
    const dsa_gemm_weight_t  weight = { DSA_GEMM_F32, DSA_GEMM_OUT_IN, w, NULL,
                                        NULL, 0, out, in, ld_w, 0, 0 };

    dsa_gemm(y, ld_y, x, ld_x, &weight, rows, 0, out,
             add ? DSA_GEMM_ADD : DSA_GEMM_SET, DSA_GEMM_ADD);
}


void
dsa_gemm_nn(float *y, size_t ld_y, const float *x, size_t ld_x,
    const float *w, size_t ld_w, size_t rows, size_t out, size_t in, int add)
{
    const dsa_gemm_weight_t  weight = { DSA_GEMM_F32, DSA_GEMM_IN_OUT, w, NULL,
                                        NULL, 0, out, in, ld_w, 0, 0 };

    dsa_gemm(y, ld_y, x, ld_x, &weight, rows, 0, out,
             add ? DSA_GEMM_ADD : DSA_GEMM_SET, DSA_GEMM_ADD);
}


void
dsa_gemm_nn_chain(float *y, size_t ld_y, const float *x, size_t ld_x,
    const float *w, size_t ld_w, size_t rows, size_t out, size_t in)
{
    const dsa_gemm_weight_t  weight = { DSA_GEMM_F32, DSA_GEMM_IN_OUT, w, NULL,
                                        NULL, 0, out, in, ld_w, 0, 0 };

    dsa_gemm(y, ld_y, x, ld_x, &weight, rows, 0, out, DSA_GEMM_SET,
             DSA_GEMM_CONTINUE);
}


static dsa_gemm_dtype_e
dsa_gemm_packed_dtype(const dsa_gemm_weight_t *w)
{
    size_t  align;

    align = w->layout == DSA_GEMM_IN_OUT ? DSA_GEMM_BLOCK : DSA_GEMM_PANEL;

    return w->dtype == DSA_GEMM_E4M3 && w->first % align != 0 ? DSA_GEMM_F32
                                                              : w->dtype;
}


size_t
dsa_gemm_packed(const dsa_gemm_weight_t *w)
{
    size_t  n;

    static const size_t  size[] = { 4, 2, 1 };      /* of a dtype */

    assert(w->dtype != DSA_GEMM_INT4);

    n = (w->out + DSA_GEMM_PANEL - 1) / DSA_GEMM_PANEL * DSA_GEMM_PANEL
        * w->in * size[dsa_gemm_packed_dtype(w)];

    return (n + 63) & ~(size_t) 63;
}


/*
 * Copies n elements of a row of w's tensor, from column at on, to their
 * panels.
 */

static void
dsa_gemm_pack_part(void *memory, const dsa_gemm_weight_t *w, size_t row,
    size_t at, size_t n)
{
    float           value[DSA_GEMM_BLOCK];
    size_t          i, out, in, from, to;
    const uint8_t   *codes;
    const uint16_t  *halves;

    codes = w->data;
    halves = w->data;

    if (dsa_gemm_packed_dtype(w) == DSA_GEMM_F32) {
        dsa_gemm_decode(value, w, row, at, n);
    }

    for (i = 0; i < n; i++) {
        out = w->layout == DSA_GEMM_IN_OUT ? at + i : row;
        in = w->layout == DSA_GEMM_IN_OUT ? row : at + i;
        from = row * w->ld + at + i;
        to = (out / DSA_GEMM_PANEL * w->in + in) * DSA_GEMM_PANEL
             + out % DSA_GEMM_PANEL;

        switch (dsa_gemm_packed_dtype(w)) {

        case DSA_GEMM_F32:
            ((float *) memory)[to] = value[i];
            break;

        case DSA_GEMM_BF16:
            ((uint16_t *) memory)[to] = halves[from];
            break;

        case DSA_GEMM_E4M3:
            ((uint8_t *) memory)[to] = codes[from];
            break;

        case DSA_GEMM_INT4:
            assert(0);
        }
    }
}


void
dsa_gemm_pack(dsa_gemm_weight_t *packed, void *memory,
    const dsa_gemm_weight_t *w)
{
    size_t  row, rows, col, cols, n;

    assert(w->layout != DSA_GEMM_PANELS && w->dtype != DSA_GEMM_INT4);

    rows = w->layout == DSA_GEMM_IN_OUT ? w->in : w->out;
    cols = w->layout == DSA_GEMM_IN_OUT ? w->out : w->in;

    memset(memory, 0, dsa_gemm_packed(w));

    for (row = 0; row < rows; row++) {
        for (col = 0; col < cols; col += n) {
            n = cols - col < DSA_GEMM_BLOCK ? cols - col : DSA_GEMM_BLOCK;
            dsa_gemm_pack_part(memory, w, row, col, n);
        }
    }

    *packed = *w;
    packed->dtype = dsa_gemm_packed_dtype(w);
    packed->layout = DSA_GEMM_PANELS;
    packed->data = memory;
    packed->transposed = w->layout == DSA_GEMM_IN_OUT;
}
