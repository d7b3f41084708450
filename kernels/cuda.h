
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CUDA_H_INCLUDED_
#define _DSA_CUDA_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>


/*
 * What the CUDA versions of the ops share.  dsa_cuda_NAME() stands beside its
 * CPU twin in the op's header and computes the same function with the
 * roundings of served precision, on NVIDIA Hopper (sm_90a).
 *
 * All pointers are device memory, but where said.  Nothing is allocated and
 * nothing waits for the GPU: a call puts kernels in a stream, may be captured
 * in a graph, and reads no count on the host that the GPU computes.  The same
 * input gives the same bits.
 *
 * Return: 0, or a cudaError_t that dsa_cuda_error() tells; arguments outside
 * of what an op's comment allows are cudaErrorInvalidValue.
 */

typedef struct CUstream_st  *dsa_stream_t;      /* a cudaStream_t */

typedef uint16_t            dsa_bf16_t;
typedef uint8_t             dsa_e4m3_t;


/*
 * Rows [rows, cols] of e4m3 with a float32 scale for every group of 128
 * columns: the scale of row r and group g at scale[g * ld + r].  Rows of a
 * group stand together, as the FP8 GEMMs of Hopper read them; ld is a multiple
 * of 4 and at least rows.  q is row-major without gaps, 16-byte aligned.
 */

typedef struct {
    dsa_e4m3_t         *q;
    float              *scale;
    size_t              ld;
} dsa_fp8_rows_t;


/* A weight [rows, cols] e4m3 with a float32 scale for each 128x128 block. */

typedef struct {
    const dsa_e4m3_t   *q;              /* [rows, cols] */
    const float        *scale;          /* [ceil(rows/128), cols/128] */
    uint32_t            rows;           /* out features */
    uint32_t            cols;           /* in features, a multiple of 128 */
} dsa_fp8_weight_t;


/*
 * A layer's part of the paged cache (kernels/cache.h) in the published
 * dimensions: 656-byte latent records, then 64 x 128 e4m3 index keys and 64
 * float32 scales.  A token's slot is page * 64 + position % 64, an int32_t:
 *
 *     latent   base + (slot / 64) * page + (slot % 64) * 656
 *     key      base + (slot / 64) * page + keys + (slot % 64) * 128
 *     scale    base + (slot / 64) * page + keys + 8192 + (slot % 64) * 4
 */

typedef struct {
    uint8_t            *base;           /* of page 0; 128-byte aligned */
    uint64_t            page;           /* bytes from a page to the next, a
                                           multiple of 128 */
    uint64_t            keys;           /* 64 * 656 */
    uint32_t            pages;          /* that there are */
} dsa_cuda_cache_t;


#define DSA_CUDA_LATENT     512         /* kv_lora_rank */
#define DSA_CUDA_ROPE       64          /* qk_rope_head_dim */
#define DSA_CUDA_NOPE       128         /* qk_nope_head_dim, v_head_dim */
#define DSA_CUDA_INDEX      128         /* index_head_dim */
#define DSA_CUDA_RECORD     656         /* bytes of a latent */


/* The text of an error of an op. */
const char *dsa_cuda_error(int error);


#endif /* _DSA_CUDA_H_INCLUDED_ */
