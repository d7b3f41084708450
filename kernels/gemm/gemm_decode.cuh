
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_GEMM_DECODE_CUH_INCLUDED_
#define _DSA_GEMM_DECODE_CUH_INCLUDED_


#include <cuda_runtime.h>
#include <stdint.h>

extern "C" {
#include "kernels/core/cuda.h"
}


/*
 * Products with few rows, whose time is that of reading the weights; see
 * gemm_decode.cu.  They are correct for any number of rows.
 */

#define DSA_GEMM_FP8        0       /* e4m3 with block scales */
#define DSA_GEMM_BF16       1       /* w [out, in] */
#define DSA_GEMM_BF16_T     2       /* w [in, out] */

/* Up to so many rows FP8 products are summed in dsa_gemm_tile()'s segments. */
#define DSA_GEMM_ROWS       128

/* y = x . w for each head; ld_ and step_ are elements, as in gemm.h. */

typedef struct {
    void               *y;
    const void         *x;
    const void         *w;
    const float        *x_scale;        /* FP8: [in / 128, ld_scale] */
    const float        *w_scale;        /* FP8: [ceil(out/128), in / 128] */
    size_t              ld_y, step_y;
    size_t              ld_x, step_x;
    size_t              ld_w, step_w;
    size_t              ld_scale;
    uint32_t            kind;
    uint32_t            f32;            /* y is float32, else bf16 */
    uint32_t            heads, rows, out, in;
} dsa_gemm_t;

/*
 * How a product is divided.  A block of threads computes features x (8 ..
 * 128) rows; a cluster of split blocks, each with parts warpgroups for every
 * 64 features, shares the sum over in.  The ring in shared memory has stages
 * of 128 bytes of in.
 */

typedef struct {
    uint32_t            features;       /* 64, 128; FP8 below 65 rows: 192 */
    uint32_t            parts;          /* 1; 64 features: 2 */
    uint32_t            split;          /* 1 .. 8 */
    uint32_t            stages;         /* 2 .. 24 */
} dsa_gemm_tile_t;

void dsa_gemm_tile(dsa_gemm_tile_t *tile, const dsa_gemm_t *g);

int dsa_gemm_decode(const dsa_cuda_state_t *state, const dsa_gemm_t *g,
    const dsa_gemm_tile_t *tile, cudaStream_t stream);


#endif /* _DSA_GEMM_DECODE_CUH_INCLUDED_ */
