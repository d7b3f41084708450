
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_MODEL_PARTS_H_INCLUDED_
#define _DSA_MODEL_PARTS_H_INCLUDED_


#include <stddef.h>

#include "base/threads.h"
#include "engine/cpu/model.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/cache.h"
#include "kernels/gemm/gemm.h"
#include "kernels/moe/moe.h"


/*
 * Shared by the files of the CPU backend.  A forward pass is a sequence of
 * jobs for the thread pool.  How a job is cut into pieces depends on the
 * constants below and on the step, not on the number of threads, and each
 * element of a result is computed within one piece.  So results are the same
 * for any number of threads.
 */

#define DSA_ROW_TOKENS      16      /* tokens of a piece of elementwise work */
#define DSA_LINEAR_TOKENS   64      /* tokens of a piece of a product */
#define DSA_LINEAR_OUTPUTS  256     /* outputs of it, whole panels */
#define DSA_LINEAR_SMALL    65536   /* products with fewer multiply-adds run in
                                       the caller's thread */
#define DSA_INDEX_TOKENS    64      /* tokens that are scored together */
#define DSA_INDEX_KEYS      256     /* keys that are scored at a time */
#define DSA_MQA_TOKENS      128     /* tokens of absorbed MQA at a time */
#define DSA_MQA_ROWS        128     /* tokens times heads of a piece of its
                                       attention */
#define DSA_MQA_EXCESS      2       /* keys of a piece, at most so many times
                                       topk */
#define DSA_EXPERT_TOKENS   64      /* tokens of a piece of an expert */
#define DSA_PRODUCTS        4       /* products of a job, at most */

_Static_assert(DSA_LINEAR_OUTPUTS % DSA_GEMM_PANEL == 0,
               "a piece of a product begins at a panel");


/*
 * A matrix or a part of one: as the products use it, and as it is in the
 * checkpoint.
 */

typedef struct {
    dsa_gemm_weight_t   weight;     /* packed, or the same as tensor */
    dsa_gemm_weight_t   tensor;
} dsa_matrix_t;


/* Returns 1 if the published code multiplies e4m3 activations by the matrix. */

static inline int
dsa_matrix_e4m3(const dsa_matrix_t *m)
{
    return m->tensor.dtype == DSA_GEMM_E4M3
           || m->tensor.dtype == DSA_GEMM_INT4;
}


/*
 * A slice of the columns of a matrix is a dsa_matrix_t of its own.  Its
 * tensor.ld is the number of columns of the whole matrix, and so of the tokens
 * that are multiplied with it.
 */

typedef struct {
    dsa_matrix_t        gate;
    dsa_matrix_t        up;
    dsa_matrix_t       *down;       /* [slices] */
    float               input[2];   /* INT4 with DSA_SCALES_STORED: the scales
                                       of the activations of gate and up, and
                                       of down; else 0 */
} dsa_model_mlp_t;


/* The parts of kv_b_proj for one head. */

typedef struct {
    dsa_matrix_t        k_t;        /* W_UK^T: q_nope to the latent's space */
    dsa_matrix_t        v;          /* W_UV: latent to v */
} dsa_model_kv_t;


/* As dsa_layer_t, with the same parts; vectors are float32. */

typedef struct {
    const float        *input_layernorm;
    const float        *post_attention_layernorm;
    const float        *q_a_layernorm;
    const float        *kv_a_layernorm;
    const float        *index_k_norm_weight;
    const float        *index_k_norm_bias;
    const float        *router_bias;
    dsa_matrix_t        q_a_proj;
    dsa_matrix_t        q_b_proj;
    dsa_matrix_t        kv_a_proj;
    dsa_matrix_t       *o_proj;     /* [slices] */
    dsa_matrix_t        index_wq_b;
    dsa_matrix_t        index_wk;
    dsa_matrix_t        index_weights_proj;
    dsa_matrix_t        router;
    dsa_model_kv_t     *kv_b;       /* [heads] */
    dsa_model_mlp_t     mlp;
    dsa_model_mlp_t     shared;
    dsa_model_mlp_t    *expert;     /* [experts] */
    uint32_t            moe;
} dsa_model_layer_t;


/* As dsa_draft_weights_t; the decoder layer is the last one of the model's. */

typedef struct {
    const float        *enorm;
    const float        *hnorm;
    const float        *norm;
    dsa_matrix_t        eh_proj;
} dsa_model_draft_t;


/*
 * Workspace of a step of up to R = max_tokens tokens; float32 unless noted.
 * Names with 8: the same values rounded as an FP8 operand, in served
 * precision.
 */

typedef struct {
    dsa_rows_t  *seq;           /* [R] the sequences of the step, those with
                                   copies cut into the parts of the ranks */

    float       *x;             /* [R, hidden] input and output of a block */
    float       *x8;
    float       *residual;      /* [R, hidden] */
    float       *y;             /* [slices, R, hidden] */
    float       *part;          /* [ranks or slices, R, hidden] partial sums,
                                   if there is more than one */

    uint32_t    *owner;         /* [R] the token's sequence */
    uint32_t    *position;      /* [R] */
    float       *cos;           /* [R, rope / 2] */
    float       *sin;

    float       *qr;            /* [R, q_lora] */
    float       *qr8;
    float       *q;             /* [R, heads, nope + rope] */
    float       *kv;            /* [R, kv_lora + rope] */
    float       *o;             /* [R, heads, v] */

    float       *index_k;       /* [R, index_dim] */
    float       *index_q;       /* [R, index_heads, index_dim] */
    float       *index_w;       /* [R, index_heads] */
    float       *index_scale;   /* [R, index_heads] */
    float       *hidden;        /* [R, hidden] of the last forward pass */
    float       *draft_in;      /* [R, 2 * hidden] operand of eh_proj */

    int32_t     *selected;      /* [R, topk] positions, rising */
    uint32_t    *n_selected;    /* [R] */
    float       *margin;        /* [R] */

    uint32_t    *mark;          /* [a context] keys of a piece of absorbed MQA
                                   have the number marks */
    uint32_t     marks;
    float       *q_latent;      /* [DSA_MQA_TOKENS, heads, kv_lora] */
    float       *u;             /* [DSA_MQA_TOKENS, heads, kv_lora] */

    float       *gate;          /* [R, the dense MLP] */
    float       *up;
    float       *router;        /* [R, experts] */
    int32_t     *expert;        /* [R, k] */
    float       *expert_weight; /* [R, k] */
    uint32_t    *pair;          /* [R * k] */
    int32_t     *place;         /* [R, k] of a pair in pair */
    uint32_t    *offset;        /* [experts + 1] */
    uint32_t    *piece;         /* [experts + 2] first piece of an expert */
    float       *expert_y;      /* [slices, R * k, hidden] */
} dsa_workspace_t;


/*
 * Scratch memory of a thread.  The parts for indexing, for absorbed MQA, for an
 * expert and for the router use the same bytes, because only one of them is in
 * use at a time.
 */

typedef struct {
    float       *index_dots;    /* [DSA_INDEX_TOKENS, index_heads,
                                    DSA_INDEX_KEYS] */
    float       *score;         /* [DSA_INDEX_TOKENS, DSA_INDEX_KEYS] */
    uint64_t    *candidate;     /* [DSA_INDEX_TOKENS, 2 * index_topk] */
    float       *key;           /* [DSA_INDEX_KEYS, index_dim] */
    float       *key_scale;     /* [DSA_INDEX_KEYS] */

    float       *c;             /* [dsa_model_mqa_keys(), kv_lora] */
    float       *k_rope;        /* [dsa_model_mqa_keys(), rope] */
    float       *mqa_dots;      /* [dsa_model_mqa_together(), heads,
                                    dsa_model_mqa_keys()] */
    int32_t     *keys;          /* [dsa_model_mqa_keys()] */
    int32_t     *index;         /* [dsa_model_mqa_together(), topk] */
    uint64_t    *bits;          /* [a context / 64] */
    int32_t     *rank;          /* [a context] of a position in keys */

    float       *expert_x;      /* [DSA_EXPERT_TOKENS, hidden] */
    float       *expert_x8;
    float       *expert_gate;   /* [DSA_EXPERT_TOKENS, an expert's width] */
    float       *expert_up;

    float       *route;         /* dsa_route()'s scratch */
} dsa_scratch_t;


struct dsa_model_s {
    const dsa_weights_t       *weights;
    const dsa_model_config_t  *config;
    int                        served;
    uint32_t                   max_tokens;
    uint32_t                   topk;       /* dsa_model_config_topk() */

    dsa_model_layer_t      *layer;
    dsa_model_mlp_t        *expert;     /* of all layers */
    dsa_model_kv_t         *kv_b;       /* of all layers */
    dsa_matrix_t           *sliced;     /* o_proj and down_proj of all */
    dsa_matrix_t            head;
    const float            *norm;
    dsa_model_draft_t       draft;
    uint32_t                drafts;     /* 1: there is a draft layer, which has
                                           the number num_hidden_layers */
    uint32_t                draft_shared;   /* 1: it computes a later step with
                                               the selection of the first */
    void                   *copies;     /* packed weights, float32 vectors */
    uint64_t                copies_size;

    float                  *frequency;  /* [rope / 2] */
    double                  magnitude;  /* of cos and sin */
    dsa_attention_t         attention;
    dsa_router_t            router;

    dsa_shard_t             shard[DSA_MAX_GPUS];
    uint32_t                ranks;      /* with own pages and experts, on all
                                           hosts; 1 with attention tensor */
    uint32_t                first;      /* of the ranks of this host */
    uint32_t                own;        /* ranks of this host */
    dsa_backend_hosts_t     hosts;
    uint32_t                tokens[DSA_MAX_GPUS];   /* of a step, on each
                                           host */
    int                     failed;     /* 1: the exchange, with err */
    dsa_err_t               err;
    uint32_t                slices;     /* of o_proj and each down_proj: 1 with
                                           attention data */

    dsa_cache_t             cache;
    void                   *page;       /* page 0 of rank 0 */
    uint64_t                page_size;  /* bytes of all */
    uint32_t                pages;      /* of each rank */

    dsa_threads_t          *pool;
    dsa_workspace_t         work;
    dsa_scratch_t          *scratch;    /* [threads] */
    void                   *work_memory;
    uint64_t                work_size;

    dsa_trace_pt            trace;
    void                   *trace_ctx;
    dsa_select_pt           select;
    void                   *select_ctx;
};


/*
 * Checks the sequences of a step and copies those of this host to m->work.seq.
 * A sequence with copies is cut into a contiguous part for each rank; the parts
 * differ by at most one token, and the sequence's own rank has the last one.
 * Sets m->tokens, *n to the number of sequences in m->work.seq, and *tokens to
 * that of their tokens: with several hosts they may be 0.  DSA_ERROR with err
 * if the step is not valid.
 */
int dsa_model_input(dsa_model_t *m, const dsa_rows_t *seq, uint32_t n_seqs,
    uint32_t *n, uint32_t *tokens, dsa_err_t *err);

/* Returns 1 if a rank is one of this host. */

static inline int
dsa_model_own(const dsa_model_t *m, uint32_t rank)
{
    return rank - m->first < m->own;
}

/*
 * The exchange of a layer with experts between hosts.  dsa_model_gather()
 * receives x, expert and expert_weight of the tokens of the other hosts, behind
 * those of this one and hosts rising, and returns the number of all tokens.
 * dsa_model_scatter() sends the sums of this host's ranks for them, and
 * receives those of the other ranks for the tokens of this host, in part.  If
 * an exchange fails, m->failed is set.
 */
uint32_t dsa_model_gather(dsa_model_t *m, uint32_t tokens);
void dsa_model_scatter(dsa_model_t *m);

/* Copies a page from a rank to one of another host. */
int dsa_model_copy_far(dsa_model_t *m, const dsa_page_copy_t *copy,
    dsa_err_t *err);

/* Returns the number of layers, with the draft layer. */
uint32_t dsa_model_layers(const dsa_model_t *m);

/* Returns the layer's config, that of the draft layer as well. */
const dsa_layer_config_t *dsa_model_layer(const dsa_model_t *m, uint32_t layer);

/*
 * Parts of the forward pass.  dsa_model_embed() sets x to the embeddings of the
 * tokens, residual to zeros, and owner, position, cos and sin.
 * dsa_model_norm() sets residual to x + residual, x to the norm of that, and x8
 * from x.  dsa_model_decoder() replaces x by the output of a decoder layer,
 * without residual.  dsa_model_last() moves the rows with logits to the front
 * of x and residual, and returns their number.  dsa_model_head() computes the
 * logits of the first rows of x.
 */
void dsa_model_embed(dsa_model_t *m, const dsa_rows_t *seq, uint32_t n_seqs,
    uint32_t tokens);
void dsa_model_norm(dsa_model_t *m, const float *weights, uint32_t tokens);
void dsa_model_decoder(dsa_model_t *m, uint32_t layer, const dsa_rows_t *seq,
    uint32_t n_seqs, uint32_t tokens);
uint32_t dsa_model_last(dsa_model_t *m, const dsa_rows_t *seq,
    uint32_t n_seqs);
void dsa_model_head(dsa_model_t *m, uint32_t rows, float *logits);

/* Returns the address of page 0 of a rank. */
void *dsa_model_page(const dsa_model_t *m, uint32_t rank);


/*
 * A product of a job: y [tokens, out] = x [tokens, in] . w^T, with
 * w->tensor.ld elements from a token of x to the next.
 */

typedef struct {
    float               *y;
    const float         *x;
    const dsa_matrix_t  *w;
    int                  bf16;      /* round y to BF16 */
} dsa_product_t;


/*
 * Fills m->layer, head and norm.  Matrices are packed into panels of their own
 * dtype, until the copies take a quarter of the machine's memory.  The others
 * are used in the layout of the checkpoint, which is slower and gives the same
 * bits.
 */
int dsa_model_weights(dsa_model_t *m, dsa_err_t *err);
void dsa_model_weights_free(dsa_model_t *m);

/* out [n, cols] float32 from rows first .. first+n-1 of a tensor. */
void dsa_model_decode_rows(float *out, const dsa_tensor_t *t, uint32_t first,
    uint32_t n);

/*
 * Allocates m->work and m->scratch for m->pool's threads, as one mapping whose
 * pages the kernel provides when they are used.  Of the model's longest context
 * it has a few bytes for each token and thread.  dsa_model_workspace() in
 * workspace.c defines the parts.
 */
int dsa_model_workspace_open(dsa_model_t *m, dsa_err_t *err);

/*
 * Computes up to DSA_PRODUCTS products for the same tokens as one job.  x is
 * what dsa_model_operand() returns.
 */
void dsa_model_products(dsa_model_t *m, const dsa_product_t *p, uint32_t n,
    uint32_t tokens);

/*
 * Computes y [tokens, hidden] = x . w^T for a matrix in slices.  With several
 * slices, the result of each slice is rounded like that of a matrix, and then
 * their sum.
 */
void dsa_model_sliced(dsa_model_t *m, float *y, const float *x,
    const dsa_matrix_t *w, uint32_t tokens);

/*
 * Returns the operand for w: x8, the values rounded to FP8, for an e4m3 weight
 * in served precision; otherwise x.
 */
const float *dsa_model_operand(const dsa_model_t *m, const dsa_matrix_t *w,
    const float *x, const float *x8);

/*
 * Runs a job with pieces of DSA_ROW_TOKENS tokens; piece i begins at token i *
 * DSA_ROW_TOKENS.
 */
void dsa_model_rows(dsa_model_t *m, uint32_t tokens, dsa_threads_work_pt work,
    void *ctx);

/*
 * Replaces w.x by the attention of a layer on w.x and w.x8, and writes the
 * cache entries of the tokens.
 */
void dsa_model_attention(dsa_model_t *m, uint32_t layer,
    const dsa_rows_t *seq, uint32_t n_seqs, uint32_t tokens);

/*
 * Sets selected, n_selected and margin of all tokens: from index_q and index_w;
 * in a layer that shares a selection to what they are already; in a layer that
 * attends to all positions to these.
 */
void dsa_model_selection(dsa_model_t *m, uint32_t layer,
    const dsa_rows_t *seq, uint32_t n_seqs, uint32_t tokens);

/*
 * dsa_model_mqa() computes w.o of all tokens from w.q by absorbed MQA.  The
 * others return the most tokens and the most keys of a piece of its attention.
 */
void dsa_model_mqa(dsa_model_t *m, uint32_t layer, const dsa_rows_t *seq,
    uint32_t tokens);
uint32_t dsa_model_mqa_together(const dsa_model_t *m);
uint32_t dsa_model_mqa_keys(const dsa_model_t *m);

/* Replaces w.x by the FFN of a layer on w.x and w.x8. */
void dsa_model_ffn(dsa_model_t *m, uint32_t layer, uint32_t tokens);

/* Calls the trace, if there is one. */
void dsa_model_report(dsa_model_t *m, const char *name, uint32_t layer,
    uint32_t rows, uint32_t cols, const void *data);


#endif /* _DSA_MODEL_PARTS_H_INCLUDED_ */
