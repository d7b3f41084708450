
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SHARD_H_INCLUDED_
#define _DSA_SHARD_H_INCLUDED_


#include <stdint.h>

#include "base/error.h"
#include "engine/checkpoint/config.h"


/*
 * The part of the weights that a rank holds.  A rank is one of the GPUs that
 * compute a model together; the CPU backend has ranks for tests.  This file is
 * arithmetic only: it calls neither CUDA nor the checkpoint, so that it can be
 * tested on machines without a GPU.
 *
 * With DSA_ATTENTION_DATA a sequence is computed on one rank.  Every rank has
 * all of the attention, the dense and shared MLPs, the embedding and the head,
 * and an equal number of whole routed experts.
 *
 * With DSA_ATTENTION_TENSOR all ranks compute every token.  Each has a part of
 * the heads, of the width of every MLP and routed expert, and of the
 * vocabulary.  Latents, the indexer and the router are replicated.  The
 * outputs of o_proj and of down_proj are then partial sums that the ranks have
 * to add up.
 *
 * Rank 0 of 1 holds everything in both cases.
 */

typedef enum {
    DSA_ATTENTION_DATA = 0,
    DSA_ATTENTION_TENSOR
} dsa_attention_e;


/* Parts first .. first+n-1 of a dimension that is cut into of equal parts. */

typedef struct {
    uint32_t            first;
    uint32_t            n;
    uint32_t            of;
} dsa_range_t;


typedef struct {
    uint32_t            rank;
    uint32_t            ranks;
    dsa_attention_e     attention;
    dsa_range_t         heads;          /* of attention */
    dsa_range_t         experts;        /* whole routed experts */
    dsa_range_t         width;          /* of every MLP and routed expert */
    dsa_range_t         vocab;          /* ids of the embedding and the head */
} dsa_shard_t;


/*
 * Sets shard to the part of a rank, which is below ranks.  DSA_ERROR with err
 * if the config cannot be split into equal parts that begin at multiples of an
 * FP8 block (128):
 *
 *     data     ranks must divide n_routed_experts
 *     tensor   ranks must divide the number of heads, vocab_size / 8, and
 *              every width / 128; the q_b_proj rows of a rank's heads must be
 *              a multiple of 128, and so must their o_proj columns in an FP8
 *              checkpoint
 *
 * With 1 rank every config is accepted.
 */
int dsa_shard_init(dsa_shard_t *shard, const dsa_model_config_t *config,
    uint32_t rank, uint32_t ranks, dsa_attention_e attention, dsa_err_t *err);


/*
 * The dimension in which a matrix [rows, cols] (output features, input
 * features) is cut.  shard.experts selects the routed experts of a rank, and
 * DSA_CUT_WIDTH_ROWS and _COLS cut each of them.
 */

typedef enum {
    DSA_CUT_NONE = 0,                   /* every rank has all of it */
    DSA_CUT_HEAD_ROWS,                  /* q_b_proj, kv_b_proj */
    DSA_CUT_HEAD_COLS,                  /* o_proj */
    DSA_CUT_WIDTH_ROWS,                 /* gate_proj, up_proj */
    DSA_CUT_WIDTH_COLS,                 /* down_proj */
    DSA_CUT_VOCAB_ROWS                  /* embed_tokens, lm_head */
} dsa_cut_e;


/* A rectangle of a matrix. */

typedef struct {
    uint32_t            row;            /* its first row and column */
    uint32_t            col;
    uint32_t            rows;
    uint32_t            cols;
} dsa_slice_t;


/* Sets slice to the rank's part of a matrix [rows, cols]. */
void dsa_shard_slice(dsa_slice_t *slice, const dsa_shard_t *shard,
    dsa_cut_e cut, uint32_t rows, uint32_t cols);


/*
 * The bytes of a slice in the memory of its matrix: runs pieces of run bytes
 * each.  The first piece is at offset from, and the distance of two pieces is
 * stride bytes.  At the destination they are contiguous.  pieces.h computes
 * the part of them that is in a block of a file.
 */

typedef struct {
    uint64_t            from;
    uint64_t            stride;
    uint64_t            run;
    uint64_t            runs;
} dsa_slice_copy_t;


/* Sets copy for a slice of a matrix with cols columns of size bytes each. */
void dsa_slice_copy_values(dsa_slice_copy_t *copy, const dsa_slice_t *slice,
    uint32_t cols, uint32_t size);

/*
 * Sets copy for the float32 scales [ceil(rows/128), ceil(cols/128)] of a slice
 * of an FP8 matrix with cols columns.  The slice begins at multiples of 128.
 */
void dsa_slice_copy_scales(dsa_slice_copy_t *copy, const dsa_slice_t *slice,
    uint32_t cols);


#endif /* _DSA_SHARD_H_INCLUDED_ */
