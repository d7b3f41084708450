
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CUDA_LOADER_H_INCLUDED_
#define _DSA_CUDA_LOADER_H_INCLUDED_


#include "engine/checkpoint/shard.h"
#include "engine/checkpoint/weights.h"
#include "engine/cuda/matrix.h"
#include "engine/cuda/reader.h"
#include "kernels/core/cuda.h"


/*
 * Places weights in one block of device memory, one after another, and lists
 * the reads for them.  The weights are visited twice in the same order: with
 * memory NULL to count the bytes, then with the memory to place them.
 */

typedef struct {
    const dsa_shard_t      *shard;
    uint8_t                *memory;     /* device; NULL while counting */
    uint64_t                used;       /* bytes placed so far */
    int                     random;     /* 1: random numbers, no files */
    uint64_t                seed;       /* of the next random numbers */
    dsa_stream_t            stream;     /* for the random numbers */
    dsa_read_list_t        *list;       /* to be read afterwards; not used
                                           while counting or for random
                                           numbers */
    int                     rc;         /* the first error of an op */
    int                     failed;     /* 1: err has another error */
    dsa_err_t              *err;
} dsa_loader_t;


/*
 * A matrix of several parts, one below the other, each from a multiple of 128
 * rows on, so that no FP8 block has two scales.  For routed experts n such
 * matrices follow one another.
 */

typedef struct {
    const dsa_tensor_t    **tensor;     /* [n * parts], matrix by matrix; not
                                           read while counting or for random
                                           numbers */
    uint8_t                 format;     /* dsa_format_e */
    uint32_t                rows[3];    /* of each part, uncut */
    uint32_t                parts;
    uint32_t                cols;       /* uncut */
    uint32_t                n;          /* matrices */
    uint32_t                spare;      /* rows of zeros below the last part */
    dsa_cut_e               cut;
    const char             *name;       /* for errors */
    uint32_t                layer;
} dsa_load_matrix_t;


/*
 * Each of these functions places one weight.  The loader keeps the first
 * error.  t is not used while counting or for random numbers.
 */

/* Returns bytes of device memory, 256-byte aligned; NULL while counting. */
void *dsa_load_place(dsa_loader_t *ld, uint64_t bytes);

/*
 * Places a vector [n], widened to float32; random: mean - spread .. mean +
 * spread.
 */
float *dsa_load_vector(dsa_loader_t *ld, const dsa_tensor_t *t, uint64_t n,
    float mean, float spread);

/* Places the rank's rows of a BF16 matrix [rows, cols]; random: around 0. */
dsa_bf16_t *dsa_load_bf16(dsa_loader_t *ld, const dsa_tensor_t *t,
    dsa_cut_e cut, uint32_t rows, uint32_t cols, float spread,
    const char *name, uint32_t layer);

/* Places the rank's part of matrices; sets w to the first one. */
void dsa_load_matrix(dsa_loader_t *ld, dsa_cuda_matrix_t *w,
    const dsa_load_matrix_t *m);


#endif /* _DSA_CUDA_LOADER_H_INCLUDED_ */
