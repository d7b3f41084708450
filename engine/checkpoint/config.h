
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_MODEL_CONFIG_H_INCLUDED_
#define _DSA_MODEL_CONFIG_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "engine/checkpoint/ends.h"


#define DSA_MODEL_CONFIG_MAX    (1024 * 1024)   /* bytes of config.json */
#define DSA_FP8_BLOCK           128             /* of weight_block_size */
#define DSA_INT4_COLUMNS        128             /* of group_size */


#define DSA_MODEL_LAYERS        1024            /* most num_hidden_layers */
#define DSA_MODEL_NO_TOKEN      UINT32_MAX      /* the model has no such id */


/* The positions that the attention of a layer reads. */

typedef enum {
    DSA_SELECTION_OWN = 0,      /* index_topk, chosen by the layer's indexer */
    DSA_SELECTION_SHARED,       /* those that an earlier layer has chosen for
                                   the same token; this layer has neither an
                                   indexer nor index keys */
    DSA_SELECTION_ALL           /* all up to that of the token */
} dsa_selection_e;


/*
 * What differs between the layers of a model.  All layers have the same
 * attention shape, and all layers with experts have the same router.
 */

typedef struct {
    uint16_t    from;           /* the layer that has chosen the positions:
                                   with SHARED an earlier one with an indexer
                                   of its own, otherwise the layer itself */
    uint8_t     selection;      /* dsa_selection_e */
    uint8_t     moe;            /* 1: routed and shared experts; 0: a dense
                                   MLP */
} dsa_layer_config_t;


/* The matrices of a layer, by what may be stored in a format of its own. */

typedef enum {
    DSA_MATRICES_ATTENTION = 0,
    DSA_MATRICES_INDEXER,       /* but weights_proj, which is always FLOAT */
    DSA_MATRICES_DENSE,
    DSA_MATRICES_SHARED,
    DSA_MATRICES_EXPERTS,
    DSA_MATRICES
} dsa_matrices_e;


typedef enum {
    DSA_FORMAT_FLOAT = 0,       /* F32 or BF16 */
    DSA_FORMAT_FP8,             /* these, or e4m3 in blocks of 128x128 with a
                                   float32 scale each */
    DSA_FORMAT_INT4             /* routed experts: INT4 in groups of 128
                                   columns with a BF16 scale each */
} dsa_format_e;


/* The scales of the e4m3 activations that INT4 experts multiply. */

typedef enum {
    DSA_SCALES_GROUP = 0,       /* one for each group of 128 of a token, as for
                                   FP8 weights */
    DSA_SCALES_STORED           /* one for gate_proj and up_proj of a layer,
                                   and one for down_proj: the greatest of those
                                   that the checkpoint has for its experts */
} dsa_scales_e;


/*
 * How prompts for the model are written.  The names are those of the families
 * in context/, or that of several versions, of which dsa_prompts_resolve()
 * finds one.  The texts are control tokens of the model's tokenizer.
 */

typedef struct {
    const char  *name;
    const char  *think_end;     /* ends the reasoning of an answer */
    const char  *tool;          /* in the syntax of tool calls, the first
                                   control token of a call */
} dsa_prompt_family_t;


/*
 * The model description.  It is made from config.json, here only: no other
 * code compares the name of a model or of a kind of models, so that a backend
 * accepts or rejects a model by what it has.  All values are checked, alone
 * and in combination, so that users need not check them.  Names that are
 * fields of config.json have the meaning that they have there.
 */

typedef struct {
    dsa_prompt_family_t prompt;

    uint32_t    vocab_size;
    uint32_t    hidden_size;
    uint32_t    num_hidden_layers;
    uint32_t    num_nextn_predict_layers;
    uint32_t    max_position_embeddings;
    uint32_t    bos_token_id;   /* or DSA_MODEL_NO_TOKEN */
    dsa_ends_t  ends;
    float       rms_norm_eps;   /* of the norms between blocks */

    /* FFN: scores are sigmoids, choices those with a correction bias */
    uint32_t    first_k_dense_replace;
    uint32_t    intermediate_size;
    uint32_t    moe_intermediate_size;
    uint32_t    n_routed_experts;
    uint32_t    n_shared_experts;
    uint32_t    num_experts_per_tok;
    uint32_t    n_group;
    uint32_t    topk_group;
    uint32_t    norm_topk_prob;
    float       routed_scaling_factor;

    /* attention */
    uint32_t    num_attention_heads;
    uint32_t    q_lora_rank;    /* 0: q_proj makes the queries at once */
    uint32_t    kv_lora_rank;
    uint32_t    qk_nope_head_dim;
    uint32_t    qk_rope_head_dim;
    uint32_t    v_head_dim;
    float       latent_norm_eps;        /* of q_a_layernorm, kv_a_layernorm */
    float       softmax_scale;

    /* indexer: all are 0 if no layer has one */
    uint32_t    index_n_heads;
    uint32_t    index_head_dim;
    uint32_t    index_topk;
    uint32_t    index_rope_interleaved; /* 1: it rotates the elements 2i and
                                           2i + 1; 0: i and i + rope / 2.
                                           Attention rotates the former */
    float       index_norm_eps;

    /* RoPE, of rope_scaling or rope_parameters; without them the factor is 1 */
    double      rope_theta;
    double      yarn_factor;
    double      yarn_beta_fast;
    double      yarn_beta_slow;
    double      yarn_mscale;
    double      yarn_mscale_all_dim;
    uint32_t    yarn_original_max_position;

    uint8_t     format[DSA_MATRICES];   /* dsa_format_e */
    uint32_t    ue8m0;          /* activation scales are powers of two */
    dsa_scales_e  expert_scales;        /* not used unless experts are INT4 */

    dsa_layer_config_t  layer[DSA_MODEL_LAYERS];    /* [num_hidden_layers] */
    dsa_layer_config_t  draft;  /* each of num_nextn_predict_layers; from is
                                   not used */
    uint32_t    index_share_for_mtp_iteration;  /* 1: later steps of the draft
                                   layer use the positions that its first
                                   step has selected; 0: each selects */
} dsa_model_config_t;


/* Returns 1 if a layer has routed experts. */

static inline uint32_t
dsa_model_config_moe(const dsa_model_config_t *config, uint32_t layer)
{
    return config->layer[layer].moe;
}


/* Returns the number of layers with routed experts. */

static inline uint32_t
dsa_model_config_moe_layers(const dsa_model_config_t *config)
{
    uint32_t  i, n;

    n = 0;

    for (i = 0; i < config->num_hidden_layers; i++) {
        n += dsa_model_config_moe(config, i);
    }

    return n;
}


/*
 * Sets indexed [num_hidden_layers + 1]: 1 if a layer has an indexer of its own.
 * The last one is the draft layer.
 */

static inline void
dsa_model_config_indexed(const dsa_model_config_t *config, uint8_t *indexed)
{
    uint32_t  i;

    indexed[config->num_hidden_layers]
        = config->draft.selection == DSA_SELECTION_OWN;

    for (i = 0; i < config->num_hidden_layers; i++) {
        indexed[i] = config->layer[i].selection == DSA_SELECTION_OWN;
    }
}


/* Returns 1 if every layer attends to all positions. */

static inline uint32_t
dsa_model_config_dense(const dsa_model_config_t *config)
{
    uint32_t  i;

    for (i = 0; i < config->num_hidden_layers; i++) {
        if (config->layer[i].selection != DSA_SELECTION_ALL) {
            return 0;
        }
    }

    return config->draft.selection == DSA_SELECTION_ALL
           || config->num_nextn_predict_layers == 0;
}


/* Returns the most positions that the attention of a layer reads. */

static inline uint32_t
dsa_model_config_topk(const dsa_model_config_t *config)
{
    return config->index_topk != 0
           && config->index_topk < config->max_position_embeddings
           ? config->index_topk : config->max_position_embeddings;
}


/*
 * Sets the number of layers, for measurements with random weights: the first n
 * layers, n <= DSA_MODEL_LAYERS; those that the model does not have are like
 * its last one.
 */
void dsa_model_config_resize(dsa_model_config_t *config, uint32_t n);

/*
 * Reads dir/config.json and the files beside it, of which
 * dir/generation_config.json may be missing.  DSA_ERROR: err names the file,
 * the field, its value and the values that are supported.
 */
int dsa_model_config_read(dsa_model_config_t *config, const char *dir,
    dsa_err_t *err);

/*
 * Parses a config.json in memory, and reads no other file; errors begin with
 * name.
 */
int dsa_model_config_parse(dsa_model_config_t *config, const char *name,
    const void *json, size_t len, dsa_err_t *err);

/*
 * Reads the files beside config.json: adds the ids that end an answer from
 * dir/generation_config.json, and, if there is no quantization_config, sets or
 * rejects the formats that other files describe.  The bytes of files that set
 * formats are appended to text, unless it is NULL.
 */
int dsa_model_config_beside(dsa_model_config_t *config, const char *dir,
    dsa_buf_t *text, dsa_err_t *err);


#endif /* _DSA_MODEL_CONFIG_H_INCLUDED_ */
