
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_WEIGHTS_H_INCLUDED_
#define _DSA_WEIGHTS_H_INCLUDED_


#include "base/error.h"
#include "engine/checkpoint/config.h"


/*
 * The weights of a checkpoint in the published layout, in place in the mapped
 * safetensors files: nothing is copied or converted here.
 */

typedef enum {
    DSA_F32 = 0,
    DSA_BF16,
    DSA_E4M3
} dsa_dtype_e;


typedef struct {
    dsa_dtype_e     dtype;
    uint32_t        rows;       /* out features; 1 for a vector */
    uint32_t        cols;       /* in features */
    const void     *data;       /* [rows, cols] row-major; aligned to its
                                   element; NULL when the layer has none */
    const float    *scale;      /* e4m3: [ceil(rows/128), ceil(cols/128)],
                                   a multiplier; else NULL */
} dsa_tensor_t;


typedef struct {                /* a SwiGLU: dense, expert or shared */
    dsa_tensor_t    gate;       /* [inter, hidden] */
    dsa_tensor_t    up;         /* [inter, hidden] */
    dsa_tensor_t    down;       /* [hidden, inter] */
} dsa_mlp_t;


typedef struct {
    dsa_tensor_t    input_layernorm;            /* [hidden] */
    dsa_tensor_t    post_attention_layernorm;   /* [hidden] */
    dsa_tensor_t    q_a_proj;                   /* [q_lora, hidden] */
    dsa_tensor_t    q_a_layernorm;              /* [q_lora] */
    dsa_tensor_t    q_b_proj;                   /* [heads*192, q_lora] */
    dsa_tensor_t    kv_a_proj_with_mqa;         /* [kv_lora+rope, hidden] */
    dsa_tensor_t    kv_a_layernorm;             /* [kv_lora] */
    dsa_tensor_t    kv_b_proj;                  /* [heads*(nope+v), kv_lora] */
    dsa_tensor_t    o_proj;                     /* [hidden, heads*v] */
    dsa_tensor_t    index_wq_b;                 /* [iheads*idim, q_lora] */
    dsa_tensor_t    index_wk;                   /* [idim, hidden] */
    dsa_tensor_t    index_k_norm_weight;        /* [idim] */
    dsa_tensor_t    index_k_norm_bias;          /* [idim] */
    dsa_tensor_t    index_weights_proj;         /* [iheads, hidden] */
    dsa_mlp_t       mlp;                        /* dense layers */
    dsa_tensor_t    router;                     /* [experts, hidden] */
    dsa_tensor_t    router_bias;                /* [experts] */
    dsa_mlp_t       shared;                     /* MoE layers */
    dsa_mlp_t      *expert;                     /* [experts] */
    uint32_t        moe;                        /* 1: an MoE layer */
} dsa_layer_t;


typedef struct {
    dsa_model_config_t  config;
    dsa_tensor_t        embed;                  /* [vocab, hidden] */
    dsa_tensor_t        norm;                   /* [hidden] */
    dsa_tensor_t        head;                   /* [vocab, hidden] */
    dsa_layer_t        *layer;                  /* [num_hidden_layers] */
    char                fingerprint[36];        /* hex: config.json, every
                                                   header and file size, and
                                                   a sample of the data */
} dsa_weights_t;


/*
 * Opens dir: config.json, model.safetensors.index.json with its shards, or
 * one model.safetensors.  NULL with err when anything is missing,
 * misshapen, truncated or unknown: the line names the first such tensor and
 * the number of others.  Tensors of MTP layers (num_hidden_layers and on,
 * as many as num_nextn_predict_layers says) are accepted and left alone.
 * Norms and biases may be F32 or BF16, as may embed, head, router and
 * index_weights_proj; the other matrices also F8_E4M3 with weight_scale_inv,
 * where config.json has a quantization_config.  Scales are finite and above 0.
 */
dsa_weights_t *dsa_weights_open(const char *dir, dsa_err_t *err);
void dsa_weights_close(dsa_weights_t *w);           /* NULL is allowed */


#endif /* _DSA_WEIGHTS_H_INCLUDED_ */
