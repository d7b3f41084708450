
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_MODEL_CONFIG_H_INCLUDED_
#define _DSA_MODEL_CONFIG_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>

#include "base/error.h"


#define DSA_MODEL_CONFIG_MAX    (1024 * 1024)   /* bytes of config.json */
#define DSA_FP8_BLOCK           128             /* of weight_block_size */


/*
 * The model config, read from config.json.  All values are checked, alone and
 * in combination, so that users need not check them.  The names are those of
 * config.json in deepseek_v32 checkpoints.
 */

typedef struct {
    uint32_t    vocab_size;
    uint32_t    hidden_size;
    uint32_t    num_hidden_layers;
    uint32_t    num_nextn_predict_layers;
    uint32_t    first_k_dense_replace;
    uint32_t    moe_layer_freq;
    uint32_t    intermediate_size;
    uint32_t    moe_intermediate_size;
    uint32_t    num_attention_heads;
    uint32_t    q_lora_rank;
    uint32_t    kv_lora_rank;
    uint32_t    qk_nope_head_dim;
    uint32_t    qk_rope_head_dim;
    uint32_t    v_head_dim;
    uint32_t    n_routed_experts;
    uint32_t    n_shared_experts;
    uint32_t    num_experts_per_tok;
    uint32_t    n_group;
    uint32_t    topk_group;
    uint32_t    norm_topk_prob;
    float       routed_scaling_factor;
    uint32_t    index_n_heads;
    uint32_t    index_head_dim;
    uint32_t    index_topk;
    float       rms_norm_eps;
    double      rope_theta;
    uint32_t    max_position_embeddings;
    uint32_t    bos_token_id;
    uint32_t    eos_token_id;

    /* of rope_scaling or rope_parameters; without them the factor is 1 */
    double      yarn_factor;
    double      yarn_beta_fast;
    double      yarn_beta_slow;
    double      yarn_mscale;
    double      yarn_mscale_all_dim;
    uint32_t    yarn_original_max_position;

    /* quantization_config: 1 for FP8 e4m3 in blocks of 128x128 weights */
    uint32_t    fp8;
    uint32_t    ue8m0;          /* activation scales are powers of two */
} dsa_model_config_t;


/* Returns 1 if a layer has routed experts. */

static inline uint32_t
dsa_model_config_moe(const dsa_model_config_t *config, uint32_t layer)
{
    return layer >= config->first_k_dense_replace
           && layer % config->moe_layer_freq == 0;
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
 * Reads dir/config.json.  DSA_ERROR: err names the file, the field, its value
 * and the values that are supported.
 */
int dsa_model_config_read(dsa_model_config_t *config, const char *dir,
    dsa_err_t *err);

/* The same for a config.json in memory; errors begin with name. */
int dsa_model_config_parse(dsa_model_config_t *config, const char *name,
    const void *json, size_t len, dsa_err_t *err);


#endif /* _DSA_MODEL_CONFIG_H_INCLUDED_ */
