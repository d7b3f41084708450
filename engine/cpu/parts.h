
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_MODEL_PARTS_H_INCLUDED_
#define _DSA_MODEL_PARTS_H_INCLUDED_


#include <stddef.h>

#include "engine/cpu/model.h"
#include "kernels/attention.h"
#include "kernels/cache.h"
#include "kernels/moe.h"


/* What model.c, model_weights.c, model_attention.c and model_ffn.c share. */

#define DSA_TILE            256     /* keys scored at a time */
#define DSA_SCORE_ROWS      64      /* rows scored at a time */
#define DSA_HEADS_TOKENS    16384   /* longest context in multi-head form */
#define DSA_HEAD_ROWS       64      /* rows of a head at a time */
#define DSA_ABSORB_ROWS     32      /* rows absorbed at a time */
#define DSA_WEIGHT_ROWS     512     /* rows of a weight at a time */


/* A weight as the forward pass uses it. */

typedef struct {
    dsa_tensor_t        tensor;
    const float        *f32;        /* [rows, cols] dequantized, or NULL */
} dsa_matrix_t;


typedef struct {
    dsa_matrix_t        gate;
    dsa_matrix_t        up;
    dsa_matrix_t        down;
} dsa_model_mlp_t;


/* As dsa_layer_t; vectors are float32. */

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
    dsa_matrix_t        kv_b_proj;
    dsa_matrix_t        o_proj;
    dsa_matrix_t        index_wq_b;
    dsa_matrix_t        index_wk;
    dsa_matrix_t        index_weights_proj;
    dsa_matrix_t        router;
    dsa_model_mlp_t     mlp;
    dsa_model_mlp_t     shared;
    dsa_model_mlp_t    *expert;
    uint32_t            moe;
} dsa_model_layer_t;


/* Workspace; R rows of a step, all float32 but where said. */

typedef struct {
    float       *x;             /* [R, hidden] what a block reads, writes */
    float       *residual;      /* [R, hidden] */
    float       *y;             /* [R, hidden] */
    float       *q8;            /* an operand as FP8 has it */
    float       *weight;        /* [DSA_WEIGHT_ROWS, .] a dequantized weight */

    uint32_t    *owner;         /* [R] the row's sequence */
    float       *cos;           /* [R, rope / 2] */
    float       *sin;

    float       *qr;            /* [R, q_lora] */
    float       *q;             /* [R, heads, nope + rope] */
    float       *kv;            /* [R, kv_lora + rope] */
    float       *o;             /* [R, heads, v] */

    float       *index_k;       /* [R, index_dim] */
    float       *index_q;       /* [R, index_heads, index_dim] */
    float       *index_w;       /* [R, index_heads] */
    float       *index_scale;   /* [R, index_heads] */
    float       *index_dots;    /* [DSA_SCORE_ROWS, index_heads, DSA_TILE] */
    float       *score;         /* [DSA_SCORE_ROWS, DSA_TILE] */
    uint64_t    *candidate;     /* [DSA_SCORE_ROWS, 2 * topk] */
    int32_t     *pick;          /* [R, topk] chosen positions, rising */
    uint32_t    *n_pick;        /* [R] */
    float       *gap;           /* [R] */

    float       *c;             /* [max(a context, topk), kv_lora] */
    float       *k_rope;        /* [the same, rope] */
    float       *head_kv;       /* [a context, nope + v] of one head */
    float       *dots;          /* [DSA_HEAD_ROWS, a context], or
                                   [heads, topk] */
    float       *key;           /* [DSA_TILE, index_dim] */
    float       *key_scale;     /* [DSA_TILE] */
    float       *q_latent;      /* [DSA_ABSORB_ROWS, heads, kv_lora] */
    float       *u;             /* [DSA_ABSORB_ROWS, heads, kv_lora] */

    float       *gate;          /* [R, the widest MLP] */
    float       *up;
    float       *router;        /* [R, experts] */
    float       *route;         /* dsa_route()'s scratch */
    int32_t     *expert;        /* [R, k] */
    float       *expert_weight; /* [R, k] */
    uint32_t    *pair;          /* [R * k] */
    uint32_t    *offset;        /* [experts + 1] */
    float       *expert_x;      /* [R, hidden] */
    float       *expert_y;      /* [R, hidden] */
} dsa_workspace_t;


struct dsa_model_s {
    const dsa_weights_t       *weights;
    const dsa_model_config_t  *config;
    int                        served;
    uint32_t                   max_rows;
    uint32_t                   topk;       /* index_topk, or the context */

    dsa_model_layer_t      *layer;
    dsa_model_mlp_t        *expert;     /* of all layers */
    dsa_matrix_t            head;
    const float            *norm;
    void                   *decoded;    /* dequantized weights */
    uint64_t                decoded_size;

    float                  *frequency;  /* [rope / 2] */
    double                  magnitude;  /* of cos and sin */
    dsa_attention_t         attention;
    dsa_router_t            router;

    dsa_cache_t             cache;
    void                   *page;       /* page 0 */
    uint64_t                page_size;  /* bytes of all */
    uint32_t                pages;

    dsa_workspace_t         work;
    void                   *work_memory;
    uint64_t                work_size;

    dsa_trace_pt            trace;
    void                   *trace_ctx;
    dsa_select_pt           select;
    void                   *select_ctx;
};


/*
 * Lays out m->layer, head and norm, dequantizing matrices to float32 while
 * they fit a quarter of the machine's memory; the others are dequantized
 * piece by piece whenever they are used.  Results do not depend on it: products
 * are taken over the same pieces either way.
 */
int dsa_model_weights(dsa_model_t *m, dsa_err_t *err);
void dsa_model_weights_free(dsa_model_t *m);

/* out [n, cols] float32 from rows first .. first+n-1 of a tensor. */
void dsa_model_decode_rows(float *out, const dsa_tensor_t *t, uint32_t first,
    uint32_t n);

/*
 * The same without a copy where the matrix is float32 already, else in the
 * workspace until the next call; n is at most DSA_WEIGHT_ROWS or a head's.
 */
const float *dsa_model_weight_rows(dsa_model_t *m, const dsa_matrix_t *w,
    uint32_t first, uint32_t n);

/*
 * y [rows, out] = x [rows, in] . w^T.  In served precision an e4m3 weight takes
 * its operand in FP8, and y is rounded to BF16; dsa_model_linear_f32 does
 * neither.
 */
void dsa_model_linear(dsa_model_t *m, float *y, const dsa_matrix_t *w,
    const float *x, uint32_t rows);
void dsa_model_linear_f32(dsa_model_t *m, float *y, const dsa_matrix_t *w,
    const float *x, uint32_t rows);

/* w.x becomes Attn(w.x) of a layer; its cache entries are written. */
void dsa_model_attention(dsa_model_t *m, uint32_t layer,
    const dsa_rows_t *seq, uint32_t n_seqs, uint32_t rows);

/* w.x becomes FFN(w.x) of a layer. */
void dsa_model_ffn(dsa_model_t *m, uint32_t layer, uint32_t rows);

/* Calls the trace, if there is one. */
void dsa_model_tell(dsa_model_t *m, const char *name, uint32_t layer,
    uint32_t rows, uint32_t cols, const void *data);


#endif /* _DSA_MODEL_PARTS_H_INCLUDED_ */
