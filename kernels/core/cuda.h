
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CUDA_H_INCLUDED_
#define _DSA_CUDA_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>


/*
 * Shared by the CUDA versions of the ops.  dsa_cuda_NAME() is declared beside
 * its CPU twin in the op's header.  It computes the same function with the
 * roundings of "precision served" on NVIDIA Hopper (sm_90a).
 *
 * All pointers are device memory unless stated otherwise.  An op does not
 * allocate memory and does not wait for the GPU.  It enqueues kernels in a
 * stream of the current device and can be captured in a graph, because the
 * host does not read values that the GPU computes.  The same input gives the
 * same bits.
 *
 * Ops have no global state: everything is passed in arguments.  Each device
 * needs one dsa_cuda_init() before the first op runs on it.  Several threads
 * may run ops at the same time if each has its own state and stream.
 *
 * Return value: 0, or a cudaError_t for dsa_cuda_error();
 * cudaErrorInvalidValue if arguments are outside of the ranges in an op's
 * comment.
 */

typedef struct CUstream_st  *dsa_stream_t;      /* a cudaStream_t */

typedef uint16_t            dsa_bf16_t;
typedef uint8_t             dsa_e4m3_t;


/*
 * Counters in device memory by which the blocks of a launch draw work.  All
 * are 0 before a launch, and its last block resets them; nothing else writes
 * them.  Two launches with the same counters must not overlap, because both
 * would draw from one count, and work would be left out.
 */

typedef struct {
    uint32_t            index_drawn;    /* index scores of a decode step:
                                           tickets that blocks drew */
    uint32_t            index_done;     /* blocks that have finished */
    int32_t             moe_drawn;      /* dsa_cuda_moe_gemm(), prefill: tiles
                                           that clusters drew */
    uint32_t            heads_drawn;    /* dsa_cuda_attention_heads(): items
                                           that blocks drew */
    uint32_t            heads_stored;   /* warps that have stored the sums of
                                           the first half of an item */
    uint32_t            heads_loaded;   /* warps that have waited for these */
} dsa_cuda_counters_t;


/*
 * The state of a GPU for ops, the first argument of some.  Only one stream at
 * a time may use a state, because of its counters.  Ops do not change the
 * struct.
 */

typedef struct {
    int                     device;
    uint32_t                processors; /* multiprocessors of the GPU */
    void                   *encode;     /* the driver's
                                           cuTensorMapEncodeTiled() */
    dsa_cuda_counters_t    *counters;   /* device memory of the caller */
} dsa_cuda_state_t;


/*
 * Prepares the current device: sets the maximum of dynamic shared memory of
 * each kernel, finds the driver's function for tensor maps, fills state, and
 * zeroes counters, which is device memory of the caller and must exist as long
 * as state.  Waits for the GPU.  Several threads may call it at the same time,
 * for the same or for different devices.
 */
int dsa_cuda_init(dsa_cuda_state_t *state, dsa_cuda_counters_t *counters);

/* Returns the text for a return value of an op. */
const char *dsa_cuda_error(int error);


/*
 * Rows [rows, cols] of e4m3 with a float32 scale for every group of 128
 * columns: the scale of row r and group g is scale[g * ld + r].  The scales of
 * a group are contiguous, as Hopper's FP8 products read them; ld is a multiple
 * of 4 and at least rows.  q is row-major without gaps, 16-byte aligned.  Ops
 * that only copy rows also take BF16 rows in this struct: see their comments.
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
    uint32_t            rows;           /* output features */
    uint32_t            cols;           /* input features, a multiple of 128 */
} dsa_fp8_weight_t;


/* A weight [rows, cols] BF16. */

typedef struct {
    const dsa_bf16_t   *w;              /* [rows, cols], 16-byte aligned */
    uint32_t            rows;           /* output features */
    uint32_t            cols;           /* input features, a multiple of 8 */
} dsa_bf16_weight_t;


/*
 * Sizes that have one value in all models that the CUDA ops support.  Sizes
 * that differ between models are arguments, or select a kernel from the list
 * of an op: see dsa_cuda_heads_find().
 */

#define DSA_CUDA_LATENT     512         /* kv_lora_rank */
#define DSA_CUDA_ROPE       64          /* qk_rope_head_dim */
#define DSA_CUDA_INDEX      128         /* index_head_dim */
#define DSA_CUDA_RECORD     656         /* bytes of a latent */
#define DSA_CUDA_RECORD_BF16  1152      /* the same in BF16 */


/*
 * A layer's part of the paged cache (kernels/attention/cache.h) in the
 * published dimensions: 656-byte latent records, then 64 x 128 e4m3 index keys
 * and 64 float32 scales.  A token's slot is page * 64 + position % 64, an
 * int32_t:
 *
 *     latent   base + (slot / 64) * page + (slot % 64) * 656
 *     key      base + (slot / 64) * page + keys + (slot % 64) * 128
 *     scale    base + (slot / 64) * page + keys + 8192 + (slot % 64) * 4
 *
 * With bf16 set, records are 576 BF16 values, 1,152 bytes, and there are no
 * index keys: layers that attend to all positions have none.
 */

typedef struct {
    uint8_t            *base;           /* of page 0; 128-byte aligned */
    uint64_t            page;           /* bytes from one page to the next, a
                                           multiple of 128 */
    uint64_t            keys;           /* 64 * 656 */
    uint32_t            pages;          /* number of pages */
    uint32_t            bf16;           /* 1: latents are BF16 */
} dsa_cuda_cache_t;


/* The bytes of a latent record; a macro, because kernels use it, too. */
#define dsa_cuda_record(bf16)                                                 \
    ((bf16) ? DSA_CUDA_RECORD_BF16 : DSA_CUDA_RECORD)


#endif /* _DSA_CUDA_H_INCLUDED_ */
