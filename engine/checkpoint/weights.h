
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_WEIGHTS_H_INCLUDED_
#define _DSA_WEIGHTS_H_INCLUDED_


#include "base/error.h"
#include "engine/checkpoint/config.h"
#include "engine/checkpoint/shards.h"
#include "engine/checkpoint/tensor.h"


/*
 * The weights of a checkpoint in the published layout.  They are pointers into
 * the mapped safetensors files; nothing is copied or converted here.  Only
 * dsa_weights_quantize() replaces matrices by others.
 */

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
    dsa_tensor_t    q_b_proj;                   /* [heads*(nope+rope), q_lora];
                                                   if q_lora is 0: q_proj
                                                   [heads*(nope+rope),
                                                   hidden] */
    dsa_tensor_t    kv_a_proj_with_mqa;         /* [kv_lora+rope, hidden] */
    dsa_tensor_t    kv_a_layernorm;             /* [kv_lora] */
    dsa_tensor_t    kv_b_proj;                  /* [heads*(nope+v), kv_lora] */
    dsa_tensor_t    o_proj;                     /* [hidden, heads*v] */

    /* of a layer with an indexer */
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


/*
 * The draft layer: the first layer of multi-token prediction.  Its copies of
 * embed_tokens and lm_head are not used, because they are equal to those of the
 * model.
 */

typedef struct {
    dsa_tensor_t    enorm;                      /* [hidden] */
    dsa_tensor_t    hnorm;                      /* [hidden] */
    dsa_tensor_t    eh_proj;                    /* [hidden, 2 * hidden] */
    dsa_tensor_t    norm;                       /* [hidden], shared_head.norm */
    dsa_layer_t     layer;
    char            fault[384];                 /* why the layer cannot be
                                                   used; empty: it can */
} dsa_draft_weights_t;


typedef struct {
    dsa_model_config_t  config;
    dsa_tensor_t        embed;                  /* [vocab, hidden] */
    dsa_tensor_t        norm;                   /* [hidden] */
    dsa_tensor_t        head;                   /* [vocab, hidden] */
    dsa_layer_t        *layer;                  /* [num_hidden_layers] */
    dsa_draft_weights_t draft;
    const dsa_shards_t *shards;                 /* the files */
    void               *made;                   /* memory of quantize.h, or
                                                   NULL */
    uint64_t            made_size;
    uint8_t             config_hash[32];        /* SHA-256 of config.json and
                                                   of the files beside it that
                                                   set formats */
    char                sampled_fingerprint[36];/* hex, see fingerprint.h;
                                                   empty after
                                                   dsa_weights_open_unread() */
} dsa_weights_t;


/*
 * Opens a directory with config.json and either model.safetensors.index.json
 * with the files that it names, or one model.safetensors.  NULL with err when a
 * file or tensor is missing, truncated, of another shape or dtype, or unknown;
 * err then names the first wrong tensor and the number of the others.
 *
 * Norms and biases are F32 or BF16, as are embed, head, router and
 * index_weights_proj.  The other matrices may also be F8_E4M3 with
 * weight_scale_inv, where config.format has FP8 for them, and where it has INT4
 * they are as dsa_tensors_int4() describes; scales are finite and above 0.
 * Layers of multi-token prediction follow the num_hidden_layers others.  The
 * first of them is the draft layer.  The model is usable without
 * it, so a missing or invalid tensor of this layer is not an error here:
 * draft.fault describes the first one.  The others of these layers are checked
 * for unknown tensors only.
 */
dsa_weights_t *dsa_weights_open(const char *dir, dsa_err_t *err);

/*
 * The same, but reads only config.json, the headers of the files and stored
 * scales of activations, for a caller that then reads all files with
 * dsa_scan().  The caller checks the scales of weights.  The sampled
 * fingerprint is empty.
 */
dsa_weights_t *dsa_weights_open_unread(const char *dir, dsa_err_t *err);

void dsa_weights_close(dsa_weights_t *w);           /* NULL is allowed */

/*
 * DSA_SCALES_STORED: sets scale to those of the activations of gate and up, and
 * of down, which all experts [n] of a layer have: the greatest of theirs.
 */
void dsa_weights_stored(float scale[2], const dsa_mlp_t *expert, uint32_t n);


#endif /* _DSA_WEIGHTS_H_INCLUDED_ */
