
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CUDA_WEIGHTS_H_INCLUDED_
#define _DSA_CUDA_WEIGHTS_H_INCLUDED_


#include "engine/checkpoint/shard.h"
#include "engine/checkpoint/weights.h"
#include "engine/cuda/matrix.h"
#include "engine/cuda/reader.h"
#include "kernels/core/cuda.h"


/*
 * The weights of one rank in its GPU's memory.  Sizes in comments are those of
 * rank 0 of 1; nope and v are qk_nope_head_dim and v_head_dim; heads, iheads
 * (dsa_cuda_index_heads()), inter, experts and vocab are the rank's part where
 * a shard cuts them.
 */

typedef struct {
    float              *input_norm;         /* [hidden] */
    float              *post_norm;          /* [hidden] */
    float              *q_norm;             /* [q_lora] */
    float              *kv_norm;            /* [512] */
    float              *k_norm;             /* [128]; NULL: the layer has no
                                               indexer, and so none of its
                                               weights */
    float              *k_bias;             /* [128] */
    float              *router_bias;        /* [experts], of all ranks */
    dsa_cuda_matrix_t   qkv_a;              /* q_a, kv_a and, with an indexer,
                                               index_wk; each begins at a
                                               multiple of 128 rows */
    dsa_cuda_matrix_t   q_b;                /* [heads * (nope + 64),
                                               q_lora] */
    dsa_cuda_matrix_t   kv_b;               /* [heads * (nope + v), 512] */
    const dsa_bf16_t   *kv_b_bf16;          /* the same in BF16, for
                                               absorption */
    dsa_cuda_matrix_t   o;                  /* [hidden, heads * v] */
    dsa_cuda_matrix_t   index_q;            /* [iheads * 128, q_lora] */
    dsa_bf16_t         *index_w;            /* [iheads, hidden] */
    dsa_bf16_t         *router;             /* [experts, hidden], of all
                                               ranks */
    dsa_cuda_matrix_t   gate_up;            /* dense or shared: gate, up */
    dsa_cuda_matrix_t   down;
    dsa_cuda_matrix_t   expert_gate_up;     /* of the rank's first expert; the
                                               others follow contiguously */
    dsa_cuda_matrix_t   expert_down;
    float               stored[2];          /* INT4 with DSA_SCALES_STORED: the
                                               scales of the activations of
                                               expert_gate_up and expert_down;
                                               these on the GPU: */
    float              *expert_scale;       /* NULL: a scale for each group */
    uint32_t            moe;                /* 1: has a router and experts */
    uint32_t            routes;             /* earlier layers with experts */
} dsa_cuda_layer_t;


/* The draft layer; its block is the last one of the layers. */

typedef struct {
    float              *enorm;              /* [hidden] */
    float              *hnorm;              /* [hidden] */
    float              *norm;               /* [hidden] shared_head.norm */
    dsa_bf16_t         *eh_proj;            /* [hidden, 2 * hidden] */
} dsa_cuda_draft_t;


typedef struct {
    dsa_cuda_layer_t   *layer;              /* [layers + drafts] */
    uint32_t            drafts;             /* 1: with the draft layer */
    uint32_t            experts;            /* of a layer on this rank */
    dsa_cuda_draft_t    draft;
    dsa_bf16_t         *embed;              /* [vocab, hidden] */
    dsa_bf16_t         *head;               /* [vocab, hidden] */
    float              *norm;               /* [hidden] */
    uint32_t            at_kv;              /* rows of qkv_a before kv_a */
    uint32_t            at_k;               /* and before index_wk */
    void               *memory;             /* has all of them */
    uint64_t            size;
} dsa_cuda_weights_t;


/*
 * Returns the bytes of a rank's weights on the GPU; UINT64_MAX: out of host
 * memory.  drafts 1: with the draft layer.
 */
uint64_t dsa_cuda_weights_size(const dsa_model_config_t *config,
    const dsa_shard_t *shard, uint32_t drafts);

/*
 * The weights of several ranks are loaded in three steps: each rank places its
 * weights, one call of dsa_cuda_read() reads the files for all ranks, and each
 * rank finishes its weights.  The current device must be the rank's.
 *
 * place allocates w and lists the reads for it; drafts 1: with the draft
 * layer, which weights must have (dsa_draft_weights_t.fault).  If weights is
 * NULL, it fills w with random numbers instead, and the list is empty.
 * DSA_ERROR with err: too little memory, a tensor of a dtype that the kernels
 * do not support, or an error of CUDA.  In any case the caller frees w, and
 * list->task with free().
 */
int dsa_cuda_weights_place(dsa_cuda_weights_t *w,
    const dsa_model_config_t *config, const dsa_shard_t *shard,
    uint32_t drafts, const dsa_weights_t *weights, dsa_stream_t stream,
    dsa_read_list_t *list, dsa_err_t *err);

/*
 * Lists the reads for weights that place() has allocated, so that those of
 * another checkpoint with the same config replace them at the same addresses.
 * DSA_ERROR with err as place(); in any case the caller frees list->task.
 */
int dsa_cuda_weights_list(dsa_cuda_weights_t *w,
    const dsa_model_config_t *config, const dsa_shard_t *shard,
    const dsa_weights_t *weights, dsa_read_list_t *list, dsa_err_t *err);

/*
 * Computes the weights that are derived from others, brings those of INT4
 * experts into the layout of the products, and waits for the GPU.
 */
int dsa_cuda_weights_finish(dsa_cuda_weights_t *w,
    const dsa_model_config_t *config, dsa_stream_t stream, dsa_err_t *err);

/* Frees what place() has allocated, also after an error. */
void dsa_cuda_weights_free(dsa_cuda_weights_t *w);


/*
 * Returns the heads of the indexer with padding to a multiple of 8, which its
 * kernels require.
 */

static inline uint32_t
dsa_cuda_index_heads(const dsa_model_config_t *config)
{
    return (config->index_n_heads + 7) & ~7U;
}


#endif /* _DSA_CUDA_WEIGHTS_H_INCLUDED_ */
