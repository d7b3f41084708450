
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cublasLt.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include "gemm.h"
}

#include "kernels/core/hopper.cuh"
#include "gemm_bf16.cuh"
#include "gemm_decode.cuh"
#include "gemm_fp8.cuh"


/*
 * Products with few rows are computed by gemm_decode.cu, those with many by
 * gemm_fp8.cu and gemm_bf16.cu.  BF16 products with several heads and many
 * rows are computed by cuBLASLt, unless it rejects their size.
 *
 * The library's matrices are column-major: y^T [out, rows] = w [in, out]^T .
 * x [in, rows].
 */


#define DSA_GEMM_WORKSPACE  (32 << 20)  /* as cuBLASLt advises for Hopper */
#define DSA_GEMM_KNOWN      512         /* most algorithms; a model has 2
                                           such products, of 50 sizes each */

/*
 * gemm_decode.cu computes FP8 products with up to so many rows, if in is one
 * segment and if it is two.  Measured on an H200, in us: 32768 x 512, one
 * segment, 64 (128) rows, 8.9 (14.1) with gemm_decode.cu and 6.3 (8.0) with
 * gemm_fp8.cu; 7168 x 16384, two segments, 96 (128) rows, 49.0 (48.5) and 43.1
 * (42.5).
 */
#define DSA_GEMM_FP8_ONE    32
#define DSA_GEMM_FP8_TWO    64

/*
 * gemm_decode.cu computes BF16 products with up to so many rows; with more of
 * them those with more segments than these if y is float32, or if there are at
 * most DSA_GEMM_ROWS rows.  Measured on an H200, in us: 129280 x 7168, one
 * segment, 64, 96 and 256 rows, 452, 703 and 1,055 with gemm_decode.cu and
 * 452, 465 and 667 with gemm_bf16.cu; 3072 x 2048, two segments, 96 rows, 10.2
 * and 7.6; 2048 x 10240, four segments, 96 rows, 25.1 and 29.7.
 */
#define DSA_GEMM_BF16_FEW   64
#define DSA_GEMM_BF16_PARTS 2


/*
 * The key of an algorithm.  The struct has no padding, because keys are
 * compared as bytes.  rows is rounded up by dsa_cuda_gemm_rows(), so that
 * there are few algorithms.
 */

typedef struct {
    uint64_t                ld_y, step_y;
    uint64_t                ld_x, step_x;
    uint64_t                ld_w, step_w;
    uint32_t                aligned;    /* bytes */
    uint32_t                kind;
    uint32_t                heads, rows, out, in;
} dsa_gemm_key_t;


typedef struct {
    int                     used;       /* 1: the other members are set */
    int                     refused;    /* 1: the library has no algorithm */
    dsa_gemm_key_t          key;
    cublasLtMatmulAlgo_t    algo;
} dsa_gemm_known_t;


struct dsa_cuda_gemm_s {
    cublasLtHandle_t        lt;
    const dsa_cuda_state_t *state;
    uint8_t                *work;
    int                     sealed;     /* 1: no further algorithms may be
                                           added */
    dsa_gemm_known_t        known[DSA_GEMM_KNOWN];
};


/* The library's description of a call. */

typedef struct {
    cublasLtMatmulDescOpaque_t    desc;
    cublasLtMatrixLayoutOpaque_t  w, x, y;
} dsa_gemm_call_t;


static int
dsa_gemm_error(cublasStatus_t status)
{
    switch (status) {

    case CUBLAS_STATUS_SUCCESS:
        return cudaSuccess;

    case CUBLAS_STATUS_NOT_INITIALIZED:
        return cudaErrorInitializationError;

    case CUBLAS_STATUS_ALLOC_FAILED:
        return cudaErrorMemoryAllocation;

    case CUBLAS_STATUS_INVALID_VALUE:
        return cudaErrorInvalidValue;

    case CUBLAS_STATUS_NOT_SUPPORTED:
    case CUBLAS_STATUS_ARCH_MISMATCH:
        return cudaErrorNotSupported;

    case CUBLAS_STATUS_EXECUTION_FAILED:
        return cudaErrorLaunchFailure;

    default:
        return cudaErrorUnknown;
    }
}


extern "C" int
dsa_cuda_gemm_create(dsa_cuda_gemm_t **g, const dsa_cuda_state_t *state,
    void *work)
{
    int               rc;
    dsa_cuda_gemm_t  *p;

    *g = NULL;

    p = (dsa_cuda_gemm_t *) calloc(1, sizeof(dsa_cuda_gemm_t));
    if (p == NULL) {
        return cudaErrorMemoryAllocation;
    }

    rc = dsa_gemm_error(cublasLtCreate(&p->lt));

    if (rc != 0) {
        free(p);
        return rc;
    }

    p->state = state;
    p->work = (uint8_t *) work;
    *g = p;

    return 0;
}


extern "C" void
dsa_cuda_gemm_destroy(dsa_cuda_gemm_t *g)
{
    if (g != NULL) {
        (void) cublasLtDestroy(g->lt);
        free(g);
    }
}


extern "C" void
dsa_cuda_gemm_seal(dsa_cuda_gemm_t *g)
{
    g->sealed = 1;
}


extern "C" size_t
dsa_cuda_gemm_work(void)
{
    return DSA_GEMM_WORKSPACE;
}


static cublasStatus_t
dsa_gemm_layout(cublasLtMatrixLayoutOpaque_t *layout, uint64_t rows,
    uint64_t cols, size_t ld, uint32_t heads, size_t step)
{
    int32_t         count;
    int64_t         stride;
    cublasStatus_t  rc;

    rc = cublasLtMatrixLayoutInit(layout, CUDA_R_16BF, rows, cols,
                                  (int64_t) ld);

    if (rc != CUBLAS_STATUS_SUCCESS || heads == 1) {
        return rc;
    }

    count = (int32_t) heads;
    stride = (int64_t) step;

    rc = cublasLtMatrixLayoutSetAttribute(layout,
                                          CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                          &count, sizeof(count));
    if (rc != CUBLAS_STATUS_SUCCESS) {
        return rc;
    }

    return cublasLtMatrixLayoutSetAttribute(layout,
                               CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                               &stride, sizeof(stride));
}


static cublasStatus_t
dsa_gemm_describe(dsa_gemm_call_t *c, const dsa_gemm_t *g)
{
    cublasStatus_t     rc;
    cublasOperation_t  op;

    rc = cublasLtMatmulDescInit(&c->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    if (rc != CUBLAS_STATUS_SUCCESS) {
        return rc;
    }

    op = g->kind == DSA_GEMM_BF16_T ? CUBLAS_OP_N : CUBLAS_OP_T;

    rc = cublasLtMatmulDescSetAttribute(&c->desc, CUBLASLT_MATMUL_DESC_TRANSA,
                                        &op, sizeof(op));
    if (rc != CUBLAS_STATUS_SUCCESS) {
        return rc;
    }

    rc = dsa_gemm_layout(&c->w, op == CUBLAS_OP_T ? g->in : g->out,
                         op == CUBLAS_OP_T ? g->out : g->in, g->ld_w,
                         g->heads, g->step_w);
    if (rc != CUBLAS_STATUS_SUCCESS) {
        return rc;
    }

    rc = dsa_gemm_layout(&c->x, g->in, g->rows, g->ld_x, g->heads, g->step_x);
    if (rc != CUBLAS_STATUS_SUCCESS) {
        return rc;
    }

    return dsa_gemm_layout(&c->y, g->out, g->rows, g->ld_y, g->heads,
                           g->step_y);
}


/*
 * Lets the library choose an algorithm for a call.  Only reduction schemes
 * that add partial sums in float32 and in a fixed order are allowed.
 */

static cublasStatus_t
dsa_gemm_choose(dsa_cuda_gemm_t *p, dsa_gemm_known_t *k, dsa_gemm_call_t *c)
{
    int                               n;
    size_t                            size;
    uint32_t                          i, align, mask;
    cublasStatus_t                    rc;
    cublasLtMatmulHeuristicResult_t   found;
    cublasLtMatmulPreferenceOpaque_t  want;

    static const cublasLtMatmulPreferenceAttributes_t  name[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES
    };

    rc = cublasLtMatmulPreferenceInit(&want);
    if (rc != CUBLAS_STATUS_SUCCESS) {
        return rc;
    }

    size = DSA_GEMM_WORKSPACE;

    rc = cublasLtMatmulPreferenceSetAttribute(&want,
                                     CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                     &size, sizeof(size));
    if (rc != CUBLAS_STATUS_SUCCESS) {
        return rc;
    }

    for (i = 0; i < 4; i++) {
        align = k->key.aligned;

        rc = cublasLtMatmulPreferenceSetAttribute(&want, name[i], &align,
                                                  sizeof(align));
        if (rc != CUBLAS_STATUS_SUCCESS) {
            return rc;
        }
    }

    mask = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;

    rc = cublasLtMatmulPreferenceSetAttribute(&want,
                                  CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                  &mask, sizeof(mask));
    if (rc != CUBLAS_STATUS_SUCCESS) {
        return rc;
    }

    rc = cublasLtMatmulAlgoGetHeuristic(p->lt, &c->desc, &c->w, &c->x, &c->y,
                                        &c->y, &want, 1, &found, &n);

    if (rc != CUBLAS_STATUS_SUCCESS || n == 0) {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }

    k->algo = found.algo;

    return rc;
}


/* Returns the alignment of all operands; the library needs at most 16. */

static uint32_t
dsa_gemm_align(const dsa_gemm_t *g)
{
    uint32_t   n;
    uintptr_t  all;

    all = (uintptr_t) g->y | (uintptr_t) g->x | (uintptr_t) g->w;

    for (n = 16; all % n != 0; n /= 2) {
        /* void */
    }

    return n;
}


extern "C" uint32_t
dsa_cuda_gemm_rows(uint32_t rows)
{
    uint32_t  step;

    for (step = 1; step * 8 < rows; step *= 2) {
        /* void */
    }

    return (rows + step - 1) / step * step;
}


/*
 * Returns the entry of a key, or an unused one for a new key; NULL: none is
 * left.
 */

static dsa_gemm_known_t *
dsa_gemm_known(dsa_cuda_gemm_t *p, const dsa_gemm_key_t *key)
{
    size_t             i, n;
    uint64_t           hash;
    const uint32_t    *word;
    dsa_gemm_known_t  *k;

    word = (const uint32_t *) key;
    hash = 0;

    for (i = 0; i < sizeof(dsa_gemm_key_t) / sizeof(uint32_t); i++) {
        hash = (hash ^ word[i]) * 0x9e3779b97f4a7c15ULL;
        hash ^= hash >> 32;
    }

    for (n = 0; n < DSA_GEMM_KNOWN; n++) {
        k = &p->known[(hash + n) % DSA_GEMM_KNOWN];

        if (!k->used || memcmp(&k->key, key, sizeof(dsa_gemm_key_t)) == 0) {
            return k;
        }
    }

    return NULL;
}


/*
 * Returns cudaErrorNotSupported if the library has no algorithm for the call,
 * or would have to load one after dsa_cuda_gemm_seal().
 */

static int
dsa_gemm_library(dsa_cuda_gemm_t *p, const dsa_gemm_t *g, cudaStream_t stream)
{
    cublasStatus_t     rc;
    dsa_gemm_t         all;
    dsa_gemm_key_t     key;
    dsa_gemm_call_t    c;
    dsa_gemm_known_t  *k;

    static const float  one = 1, zero = 0;

    memset(&key, 0, sizeof(key));

    key.ld_y = g->ld_y;
    key.step_y = g->step_y;
    key.ld_x = g->ld_x;
    key.step_x = g->step_x;
    key.ld_w = g->ld_w;
    key.step_w = g->step_w;
    key.kind = g->kind;
    key.heads = g->heads;
    key.rows = dsa_cuda_gemm_rows(g->rows);
    key.out = g->out;
    key.in = g->in;
    key.aligned = dsa_gemm_align(g);

    k = dsa_gemm_known(p, &key);

    if (k == NULL || (k->used ? k->refused : p->sealed)) {
        return cudaErrorNotSupported;
    }

    if (!k->used) {
        k->used = 1;
        k->key = key;

        all = *g;
        all.rows = key.rows;

        rc = dsa_gemm_describe(&c, &all);
        rc = rc != CUBLAS_STATUS_SUCCESS ? rc : dsa_gemm_choose(p, k, &c);
        k->refused = rc != CUBLAS_STATUS_SUCCESS;

        if (k->refused) {
            return cudaErrorNotSupported;
        }
    }

    rc = dsa_gemm_describe(&c, g);
    if (rc != CUBLAS_STATUS_SUCCESS) {
        return dsa_gemm_error(rc);
    }

    rc = cublasLtMatmul(p->lt, &c.desc, &one, g->w, &c.w, g->x, &c.x, &zero,
                        g->y, &c.y, g->y, &c.y, &k->algo, p->work,
                        DSA_GEMM_WORKSPACE, stream);

    return dsa_gemm_error(rc);
}


extern "C" int
dsa_cuda_gemm_fp8(dsa_cuda_gemm_t *p, dsa_bf16_t *y, size_t ld_y,
    const dsa_fp8_rows_t *x, const dsa_fp8_weight_t *w, uint32_t rows,
    dsa_stream_t stream)
{
    uint32_t         segments;
    dsa_gemm_t       g;
    dsa_gemm_tile_t  tile;

    if (rows == 0 || w->rows == 0 || w->rows % 8 != 0 || w->cols == 0
        || w->cols % 128 != 0 || x->ld % 4 != 0 || x->ld < rows
        || ld_y % 8 != 0)
    {
        return cudaErrorInvalidValue;
    }

    memset(&g, 0, sizeof(g));

    g.kind = DSA_GEMM_FP8;
    g.y = y;
    g.x = x->q;
    g.w = w->q;
    g.x_scale = x->scale;
    g.w_scale = w->scale;
    g.ld_y = ld_y;
    g.ld_x = w->cols;
    g.ld_w = w->cols;
    g.ld_scale = x->ld;
    g.heads = 1;
    g.rows = rows;
    g.out = w->rows;
    g.in = w->cols;

    if (rows > DSA_GEMM_ROWS) {
        return dsa_gemm_fp8(p->state, &g, 1, stream);
    }

    dsa_gemm_tile(&tile, &g);

    segments = tile.split * tile.parts;

    if ((segments == 1 && rows > DSA_GEMM_FP8_ONE)
        || (segments == DSA_GEMM_FP8_SEGMENTS && rows > DSA_GEMM_FP8_TWO))
    {
        return dsa_gemm_fp8(p->state, &g, segments, stream);
    }

    return dsa_gemm_decode(p->state, &g, &tile, stream);
}


extern "C" int
dsa_cuda_gemm_bf16(dsa_cuda_gemm_t *p, void *y, size_t ld_y, int f32,
    const dsa_bf16_t *x, size_t ld_x, const dsa_bf16_t *w, size_t ld_w,
    uint32_t rows, uint32_t out, uint32_t in, dsa_stream_t stream)
{
    uint32_t         segments;
    dsa_gemm_t       g;
    dsa_gemm_tile_t  tile;

    if (rows == 0 || out == 0 || in == 0 || out % 8 != 0 || in % 8 != 0
        || ld_x % 8 != 0 || ld_w % 8 != 0)
    {
        return cudaErrorInvalidValue;
    }

    memset(&g, 0, sizeof(g));

    g.kind = DSA_GEMM_BF16;
    g.y = y;
    g.f32 = f32 != 0;
    g.x = x;
    g.w = w;
    g.ld_y = ld_y;
    g.ld_x = ld_x;
    g.ld_w = ld_w;
    g.heads = 1;
    g.rows = rows;
    g.out = out;
    g.in = in;

    dsa_gemm_tile(&tile, &g);

    segments = tile.split * tile.parts;

    if (ld_y % 8 == 0 && (uintptr_t) y % 16 == 0
        && ((rows > DSA_GEMM_BF16_FEW && segments <= DSA_GEMM_BF16_PARTS)
            || (rows > DSA_GEMM_ROWS && !f32)))
    {
        return dsa_gemm_bf16(p->state, &g, segments, stream);
    }

    return dsa_gemm_decode(p->state, &g, &tile, stream);
}


extern "C" int
dsa_cuda_gemm_heads(dsa_cuda_gemm_t *p, dsa_bf16_t *y, size_t ld_y,
    size_t step_y, const dsa_bf16_t *x, size_t ld_x, size_t step_x,
    const dsa_bf16_t *w, size_t ld_w, size_t step_w, int transposed,
    uint32_t heads, uint32_t rows, uint32_t out, uint32_t in,
    dsa_stream_t stream)
{
    int              rc;
    dsa_gemm_t       g;
    dsa_gemm_tile_t  tile;

    if (heads == 0 || rows == 0 || out == 0 || in == 0 || out % 8 != 0
        || in % 8 != 0 || ld_x % 8 != 0 || step_x % 8 != 0 || ld_w % 8 != 0
        || step_w % 8 != 0)
    {
        return cudaErrorInvalidValue;
    }

    memset(&g, 0, sizeof(g));

    g.kind = transposed ? DSA_GEMM_BF16_T : DSA_GEMM_BF16;
    g.y = y;
    g.x = x;
    g.w = w;
    g.ld_y = ld_y;
    g.step_y = step_y;
    g.ld_x = ld_x;
    g.step_x = step_x;
    g.ld_w = ld_w;
    g.step_w = step_w;
    g.heads = heads;
    g.rows = rows;
    g.out = out;
    g.in = in;

    if (rows > DSA_GEMM_HEADS_ROWS) {
        rc = dsa_gemm_library(p, &g, stream);

        if (rc != cudaErrorNotSupported) {
            return rc;
        }
    }

    dsa_gemm_tile(&tile, &g);

    return dsa_gemm_decode(p->state, &g, &tile, stream);
}
