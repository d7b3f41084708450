
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_T_MODEL_CONFIG_H_INCLUDED_
#define _DSA_T_MODEL_CONFIG_H_INCLUDED_


#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/checkpoint/config.h"


/*
 * A config.json for tests, and changes of it.  cmocka.h must be included before
 * this file.
 */


/* The values of the published DeepSeek-V3.2. */

static const char  published[] =
    "{\n"
    "  \"architectures\": [\"DeepseekV32ForCausalLM\"],\n"
    "  \"model_type\": \"deepseek_v32\",\n"
    "  \"attention_bias\": false,\n"
    "  \"attention_dropout\": 0.0,\n"
    "  \"bos_token_id\": 0,\n"
    "  \"eos_token_id\": 1,\n"
    "  \"ep_size\": 1,\n"
    "  \"first_k_dense_replace\": 3,\n"
    "  \"hidden_act\": \"silu\",\n"
    "  \"hidden_size\": 7168,\n"
    "  \"index_head_dim\": 128,\n"
    "  \"index_n_heads\": 64,\n"
    "  \"index_topk\": 2048,\n"
    "  \"initializer_range\": 0.02,\n"
    "  \"intermediate_size\": 18432,\n"
    "  \"kv_lora_rank\": 512,\n"
    "  \"max_position_embeddings\": 163840,\n"
    "  \"moe_intermediate_size\": 2048,\n"
    "  \"moe_layer_freq\": 1,\n"
    "  \"n_group\": 8,\n"
    "  \"n_routed_experts\": 256,\n"
    "  \"n_shared_experts\": 1,\n"
    "  \"norm_topk_prob\": true,\n"
    "  \"num_attention_heads\": 128,\n"
    "  \"num_experts_per_tok\": 8,\n"
    "  \"num_hidden_layers\": 61,\n"
    "  \"num_key_value_heads\": 128,\n"
    "  \"num_nextn_predict_layers\": 1,\n"
    "  \"q_lora_rank\": 1536,\n"
    "  \"qk_nope_head_dim\": 128,\n"
    "  \"qk_rope_head_dim\": 64,\n"
    "  \"quantization_config\": {\n"
    "    \"activation_scheme\": \"dynamic\",\n"
    "    \"fmt\": \"e4m3\",\n"
    "    \"quant_method\": \"fp8\",\n"
    "    \"scale_fmt\": \"ue8m0\",\n"
    "    \"weight_block_size\": [128, 128]\n"
    "  },\n"
    "  \"rms_norm_eps\": 1e-06,\n"
    "  \"rope_scaling\": {\n"
    "    \"beta_fast\": 32,\n"
    "    \"beta_slow\": 1,\n"
    "    \"factor\": 40,\n"
    "    \"mscale\": 1.0,\n"
    "    \"mscale_all_dim\": 0.5,\n"
    "    \"original_max_position_embeddings\": 4096,\n"
    "    \"type\": \"yarn\"\n"
    "  },\n"
    "  \"rope_theta\": 10000,\n"
    "  \"routed_scaling_factor\": 2.5,\n"
    "  \"scoring_func\": \"sigmoid\",\n"
    "  \"tie_word_embeddings\": false,\n"
    "  \"topk_group\": 4,\n"
    "  \"topk_method\": \"noaux_tc\",\n"
    "  \"torch_dtype\": \"bfloat16\",\n"
    "  \"use_cache\": true,\n"
    "  \"v_head_dim\": 128,\n"
    "  \"vocab_size\": 129280\n"
    "}\n";


/* The text with from, which must occur once, replaced by to. */

static inline char *
edit(const char *text, const char *from, const char *to)
{
    char        *out;
    const char  *at;

    at = strstr(text, from);
    assert_non_null(at);
    assert_null(strstr(at + 1, from));

    out = malloc(strlen(text) + strlen(to) + 1);
    assert_non_null(out);

    (void) sprintf(out, "%.*s%s%s", (int) (at - text), text, to,
                   at + strlen(from));

    return out;
}


#endif /* _DSA_T_MODEL_CONFIG_H_INCLUDED_ */
