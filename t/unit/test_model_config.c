
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Reading config.json and generation_config.json: the values of the published
 * model, of other models, and of other forms of the same text.
 */


#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "t/unit/model_config.h"


/* What the description of GLM-5.2 and GLM-4.7-Flash depends on. */

static const char  glm_5_2[] =
    "{\"model_type\": \"glm_moe_dsa\", \"attention_bias\": false,"
    "\"eos_token_id\": [154820, 154827, 154829], \"head_dim\": 192,"
    "\"first_k_dense_replace\": 3, \"hidden_act\": \"silu\","
    "\"hidden_size\": 6144, \"index_head_dim\": 128, \"index_n_heads\": 32,"
    "\"index_topk\": 2048, \"index_topk_freq\": 4,"
    "\"index_skip_topk_offset\": 3, \"index_topk_pattern\": null,"
    "\"index_share_for_mtp_iteration\": true, \"intermediate_size\": 12288,"
    "\"kv_lora_rank\": 512, \"max_position_embeddings\": 1048576,"
    "\"moe_intermediate_size\": 2048, \"n_group\": 1,"
    "\"n_routed_experts\": 256, \"n_shared_experts\": 1,"
    "\"norm_topk_prob\": true, \"num_attention_heads\": 64,"
    "\"num_experts_per_tok\": 8, \"num_hidden_layers\": 78,"
    "\"num_nextn_predict_layers\": 1, \"q_lora_rank\": 2048,"
    "\"qk_nope_head_dim\": 192, \"qk_rope_head_dim\": 64,"
    "\"rms_norm_eps\": 1e-05, \"rope_interleave\": true,"
    "\"rope_parameters\": {\"rope_theta\": 8000000,"
    "\"rope_type\": \"default\"}, \"routed_scaling_factor\": 2.5,"
    "\"scoring_func\": \"sigmoid\", \"topk_group\": 1,"
    "\"v_head_dim\": 256, \"vocab_size\": 154880,"
    "\"quantization_config\": {\"activation_scheme\": \"dynamic\","
    "\"fmt\": \"e4m3\", \"quant_method\": \"fp8\","
    "\"weight_block_size\": [128, 128]}}";

static const char  glm_4_7_flash[] =
    "{\"model_type\": \"glm4_moe_lite\", \"attention_bias\": false,"
    "\"eos_token_id\": [154820, 154827, 154829], \"pad_token_id\": 154820,"
    "\"first_k_dense_replace\": 1, \"hidden_act\": \"silu\","
    "\"hidden_size\": 2048, \"intermediate_size\": 10240,"
    "\"kv_lora_rank\": 512, \"max_position_embeddings\": 202752,"
    "\"moe_intermediate_size\": 1536, \"n_group\": 1, \"topk_group\": 1,"
    "\"n_routed_experts\": 64, \"n_shared_experts\": 1,"
    "\"norm_topk_prob\": true, \"num_attention_heads\": 20,"
    "\"num_experts_per_tok\": 4, \"num_hidden_layers\": 47,"
    "\"num_nextn_predict_layers\": 1, \"q_lora_rank\": 768,"
    "\"qk_nope_head_dim\": 192, \"qk_rope_head_dim\": 64,"
    "\"partial_rotary_factor\": 1.0, \"rms_norm_eps\": 1e-05,"
    "\"rope_scaling\": null, \"rope_theta\": 1000000,"
    "\"routed_scaling_factor\": 1.8, \"topk_method\": \"noaux_tc\","
    "\"v_head_dim\": 256, \"vocab_size\": 154880}";

static const char  joyai[] =
    "{\"model_type\": \"joyai_llm_flash\", \"attention_bias\": false,"
    "\"bos_token_id\": 0, \"eos_token_id\": 1,"
    "\"first_k_dense_replace\": 1, \"hidden_act\": \"silu\","
    "\"hidden_size\": 2048, \"intermediate_size\": 7168,"
    "\"kv_lora_rank\": 512, \"max_position_embeddings\": 131072,"
    "\"moe_intermediate_size\": 768, \"moe_layer_freq\": 1,"
    "\"n_group\": 1, \"topk_group\": 1, \"n_routed_experts\": 256,"
    "\"n_shared_experts\": 1, \"norm_topk_prob\": true,"
    "\"num_attention_heads\": 32, \"num_experts_per_tok\": 8,"
    "\"num_hidden_layers\": 40, \"num_nextn_predict_layers\": 1,"
    "\"q_lora_rank\": 1536, \"qk_nope_head_dim\": 128,"
    "\"qk_rope_head_dim\": 64, \"rms_norm_eps\": 1e-06,"
    "\"rope_theta\": 32000000, \"routed_scaling_factor\": 2.5,"
    "\"scoring_func\": \"sigmoid\", \"topk_method\": \"noaux_tc\","
    "\"v_head_dim\": 128, \"vocab_size\": 129280}";


static int
formats(const dsa_model_config_t *s, dsa_format_e format)
{
    size_t  i;

    for (i = 0; i < DSA_MATRICES; i++) {
        if (s->format[i] != format) {
            return 0;
        }
    }

    return 1;
}


/*
 * ffn has a letter for each layer, D (dense) or M (experts); from the layer
 * whose selection each layer uses, in a list that ends with -1, or NULL if all
 * layers have indexers of their own.
 */

static void
check_layers(const dsa_model_config_t *s, const char *ffn, const int *from)
{
    uint32_t  i, n, moe;

    n = (uint32_t) strlen(ffn);
    moe = 0;

    assert_int_equal(s->num_hidden_layers, n);

    for (i = 0; i < n; i++) {
        assert_int_equal(dsa_model_config_moe(s, i), ffn[i] == 'M');
        moe += ffn[i] == 'M';

        assert_int_equal(s->layer[i].from, from != NULL ? from[i] : (int) i);
        assert_int_equal(s->layer[i].selection,
                         from != NULL && from[i] != (int) i
                         ? DSA_SELECTION_SHARED : DSA_SELECTION_OWN);
    }

    assert_true(from == NULL || from[n] == -1);
    assert_int_equal(dsa_model_config_moe_layers(s), moe);
}


static void
test_published(void **state)
{
    dsa_err_t           err;
    dsa_model_config_t  s;

    assert_int_equal(dsa_model_config_parse(&s, "c", published,
                                            strlen(published), &err), DSA_OK);

    assert_int_equal(s.vocab_size, 129280);
    assert_int_equal(s.hidden_size, 7168);
    assert_int_equal(s.num_hidden_layers, 61);
    assert_int_equal(s.num_nextn_predict_layers, 1);
    assert_int_equal(s.first_k_dense_replace, 3);
    assert_int_equal(s.intermediate_size, 18432);
    assert_int_equal(s.moe_intermediate_size, 2048);
    assert_int_equal(s.num_attention_heads, 128);
    assert_int_equal(s.q_lora_rank, 1536);
    assert_int_equal(s.kv_lora_rank, 512);
    assert_int_equal(s.qk_nope_head_dim, 128);
    assert_int_equal(s.qk_rope_head_dim, 64);
    assert_int_equal(s.v_head_dim, 128);
    assert_int_equal(s.n_routed_experts, 256);
    assert_int_equal(s.n_shared_experts, 1);
    assert_int_equal(s.num_experts_per_tok, 8);
    assert_int_equal(s.n_group, 8);
    assert_int_equal(s.topk_group, 4);
    assert_int_equal(s.norm_topk_prob, 1);
    assert_true(s.routed_scaling_factor == 2.5f);
    assert_int_equal(s.index_n_heads, 64);
    assert_int_equal(s.index_head_dim, 128);
    assert_int_equal(s.index_topk, 2048);
    assert_true(s.rms_norm_eps == 1e-6f);
    assert_true(s.rope_theta == 10000);
    assert_int_equal(s.max_position_embeddings, 163840);
    assert_int_equal(s.bos_token_id, 0);
    assert_int_equal(s.ends.n, 1);
    assert_int_equal(s.ends.id[0], 1);
    assert_true(s.yarn_factor == 40);
    assert_true(s.yarn_beta_fast == 32);
    assert_true(s.yarn_beta_slow == 1);
    assert_true(s.yarn_mscale == 1);
    assert_true(s.yarn_mscale_all_dim == 0.5);
    assert_int_equal(s.yarn_original_max_position, 4096);
    assert_true(formats(&s, DSA_FORMAT_FP8));
    assert_int_equal(s.ue8m0, 1);

    /* what the published code has and the file has not */

    assert_string_equal(s.prompt.name, "deepseek");
    assert_string_equal(s.prompt.think_end, "</think>");
    assert_string_equal(s.prompt.tool, "｜DSML｜");
    assert_true(s.latent_norm_eps == 1e-6f);
    assert_true(s.index_norm_eps == 1e-6f);
    assert_int_equal(s.index_rope_interleaved, 0);

    /* 1.1844440 is 0.1 * 0.5 * ln 40 + 1 */

    assert_float_equal(s.softmax_scale, 1.1844440 * 1.1844440 / sqrt(192),
                       1e-7);

    check_layers(&s, "DDD" "M" "MMMMMMMMM" "MMMMMMMMMM" "MMMMMMMMMM"
                     "MMMMMMMMMM" "MMMMMMMMMM" "MMMMMMMM", NULL);
    assert_int_equal(s.draft.moe, 1);
    assert_int_equal(s.draft.selection, DSA_SELECTION_OWN);
}


/* Other forms of the published text that mean the same, and other models. */

static void
test_accepted(void **state)
{
    char               *text, *more;
    size_t              i;
    dsa_err_t           err;
    dsa_model_config_t  s;

    static const struct {
        const char  *from;
        const char  *to;
    } same[] = {
        { "\"type\": \"yarn\"", "\"rope_type\": \"yarn\"" },
        { "\"type\": \"yarn\"", "\"rope_type\": \"yarn\", \"type\": \"yarn\"" },
        { "\"type\": \"yarn\"", "\"type\": \"yarn\", \"truncate\": null" },
        { "\"beta_fast\": 32,", "" },
        { "\"beta_slow\": 1,", "\"beta_slow\": null," },
        { "\"moe_layer_freq\": 1,", "" },
        { "\"hidden_act\": \"silu\",", "" },
        { "\"num_key_value_heads\": 128,", "" },
        { "\"rope_theta\": 10000", "\"rope_theta\": 1e4" },
        { "\"use_cache\": true", "\"later_field\": [{}]" }
    };

    for (i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        text = edit(published, same[i].from, same[i].to);

        if (dsa_model_config_parse(&s, "c", text, strlen(text),
                                   &err) != DSA_OK) {
            fail_msg("%s: %s", same[i].to, err.text);
        }

        assert_true(s.yarn_factor == 40);
        assert_true(s.yarn_beta_fast == 32);
        assert_true(s.yarn_beta_slow == 1);
        assert_true(s.rope_theta == 10000);
        assert_int_equal(dsa_model_config_moe_layers(&s), 58);

        free(text);
    }

    /* no YaRN */

    text = edit(published, "\"rope_scaling\": {", "\"was\": {");
    assert_int_equal(dsa_model_config_parse(&s, "c", text, strlen(text), &err),
                     DSA_OK);
    assert_true(s.yarn_factor == 1);
    assert_true(s.rope_theta == 10000);
    free(text);

    /* transformers 5 */

    text = edit(published, "\"rope_scaling\": {",
                "\"rope_parameters\": { \"rope_theta\": 50000,");
    more = edit(text, "\"rope_theta\": 10000,", "");
    assert_int_equal(dsa_model_config_parse(&s, "c", more, strlen(more), &err),
                     DSA_OK);
    assert_true(s.yarn_factor == 40);
    assert_true(s.rope_theta == 50000);
    free(more);
    free(text);

    /* no quantization, no MTP layer, weights not normalized */

    text = edit(published, "\"quantization_config\": {", "\"was\": {");
    more = edit(text, "\"num_nextn_predict_layers\": 1,", "");
    free(text);
    text = edit(more, "\"norm_topk_prob\": true", "\"norm_topk_prob\": false");
    assert_int_equal(dsa_model_config_parse(&s, "c", text, strlen(text), &err),
                     DSA_OK);
    assert_true(formats(&s, DSA_FORMAT_FLOAT));
    assert_int_equal(s.ue8m0, 0);
    assert_int_equal(s.num_nextn_predict_layers, 0);
    assert_int_equal(s.norm_topk_prob, 0);
    free(text);
    free(more);

    text = edit(published, "\"scale_fmt\": \"ue8m0\",", "");
    assert_int_equal(dsa_model_config_parse(&s, "c", text, strlen(text), &err),
                     DSA_OK);
    assert_true(formats(&s, DSA_FORMAT_FP8));
    assert_int_equal(s.ue8m0, 0);
    free(text);

    /* YaRN with another factor changes the scale of attention scores */

    text = edit(published, "\"factor\": 40", "\"factor\": 12");
    more = edit(text, "\"mscale_all_dim\": 0.5", "\"mscale_all_dim\": 0.8");
    assert_int_equal(dsa_model_config_parse(&s, "c", more, strlen(more), &err),
                     DSA_OK);
    assert_float_equal(s.softmax_scale, 1.1987925 * 1.1987925 / sqrt(192),
                       1e-7);
    free(more);
    free(text);
}


/* INT4 experts: the formats, and where the scales of activations are. */

static void
test_int4(void **state)
{
    char                *text, *more;
    size_t               i, k;
    dsa_err_t            err;
    dsa_model_config_t   s;

    static const struct {
        const char      *method;
        dsa_scales_e     scales;
    } t[] = {
        { "\"quant_method\": \"w4afp8\"", DSA_SCALES_STORED },
        { "\"quant_method\": \"w4afp8\", \"group_size\": 128, "
          "\"moe_activation_scheme\": \"static\", "
          "\"modules_to_not_convert\": [\"lm_head\"]", DSA_SCALES_STORED },
        { "\"quant_method\": \"w4afp8\", "
          "\"moe_activation_scheme\": \"dynamic\"", DSA_SCALES_GROUP }
    };

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        text = edit(published, "\"quant_method\": \"fp8\"", t[i].method);

        assert_int_equal(dsa_model_config_parse(&s, "c", text, strlen(text),
                                                &err), DSA_OK);

        for (k = 0; k < DSA_MATRICES; k++) {
            assert_int_equal(s.format[k], k == DSA_MATRICES_EXPERTS
                                          ? DSA_FORMAT_INT4 : DSA_FORMAT_FP8);
        }

        assert_int_equal(s.expert_scales, t[i].scales);
        assert_int_equal(s.ue8m0, 1);

        free(text);
    }

    /* all that SGLang's class reads */

    text = edit(glm_5_2, "\"activation_scheme\": \"dynamic\","
                "\"fmt\": \"e4m3\", \"quant_method\": \"fp8\","
                "\"weight_block_size\": [128, 128]",
                "\"quant_method\": \"w4afp8\"");
    assert_int_equal(dsa_model_config_parse(&s, "c", text, strlen(text), &err),
                     DSA_OK);
    assert_int_equal(s.format[DSA_MATRICES_EXPERTS], DSA_FORMAT_INT4);
    assert_int_equal(s.format[DSA_MATRICES_SHARED], DSA_FORMAT_FP8);
    assert_int_equal(s.ue8m0, 0);

    more = edit(text, "\"moe_intermediate_size\": 2048",
                "\"moe_intermediate_size\": 2000");
    assert_int_equal(dsa_model_config_parse(&s, "c", more, strlen(more), &err),
                     DSA_ERROR);
    assert_string_equal(err.text, "c: \"moe_intermediate_size\" is 2000; "
                        "expected a multiple of 128, the columns of a scale "
                        "of INT4 experts");
    free(more);
    free(text);
}


/* Models of other families: layers, ends, epsilons, rotation, prompts. */

static void
test_families(void **state)
{
    int                 i, from[79];
    char               *text;
    dsa_err_t           err;
    dsa_model_config_t  s;

    if (dsa_model_config_parse(&s, "c", glm_5_2, strlen(glm_5_2), &err)
        != DSA_OK)
    {
        fail_msg("GLM-5.2: %s", err.text);
    }

    /* layers 0, 1, 2, 6, 10, ..., 74 have indexers */

    for (i = 0; i < 78; i++) {
        from[i] = i < 3 ? i : i - (i - 2) % 4;
    }

    from[78] = -1;
    assert_int_equal(from[75], 74);

    check_layers(&s, "DDD" "MMMMMMMMMMMMMMMMMMMMMMMMM" "MMMMMMMMMMMMMMMMMMMM"
                     "MMMMMMMMMMMMMMMMMMMMMMMMMMMMMM", from);
    assert_int_equal(s.draft.selection, DSA_SELECTION_OWN);
    assert_int_equal(s.draft.moe, 1);
    assert_int_equal(dsa_model_config_topk(&s), 2048);

    assert_int_equal(s.bos_token_id, DSA_MODEL_NO_TOKEN);
    assert_int_equal(s.ends.n, 3);
    assert_int_equal(s.ends.id[2], 154829);
    assert_string_equal(s.prompt.name, "glm");
    assert_string_equal(s.prompt.tool, "<tool_call>");

    assert_int_equal(s.index_rope_interleaved, 1);
    assert_true(s.latent_norm_eps == 1e-5f);
    assert_true(s.index_norm_eps == 1e-6f);
    assert_true(s.softmax_scale == 0.0625f);
    assert_true(s.rope_theta == 8000000);
    assert_true(s.yarn_factor == 1);
    assert_true(formats(&s, DSA_FORMAT_FP8));
    assert_int_equal(s.ue8m0, 0);

    if (dsa_model_config_parse(&s, "c", glm_4_7_flash, strlen(glm_4_7_flash),
                               &err)
        != DSA_OK)
    {
        fail_msg("GLM-4.7-Flash: %s", err.text);
    }

    for (i = 0; i < 47; i++) {
        assert_int_equal(s.layer[i].selection, DSA_SELECTION_ALL);
        assert_int_equal(s.layer[i].moe, i > 0);
    }

    assert_int_equal(s.draft.selection, DSA_SELECTION_ALL);
    assert_int_equal(s.draft.moe, 1);
    assert_int_equal(s.index_topk, 0);
    assert_int_equal(dsa_model_config_topk(&s), 202752);
    assert_true(s.softmax_scale == 0.0625f);
    assert_string_equal(s.prompt.name, "glm-4.7");
    assert_true(formats(&s, DSA_FORMAT_FLOAT));

    /* JoyAI, whose draft layer has no experts */

    if (dsa_model_config_parse(&s, "c", joyai, strlen(joyai), &err)
        != DSA_OK)
    {
        fail_msg("JoyAI: %s", err.text);
    }

    assert_int_equal(s.layer[39].selection, DSA_SELECTION_ALL);
    assert_int_equal(s.layer[39].moe, 1);
    assert_int_equal(s.draft.selection, DSA_SELECTION_ALL);
    assert_int_equal(s.draft.moe, 0);
    assert_true(s.rope_theta == 32000000);
    assert_true(fabsf(s.softmax_scale - 0.0721688f) < 1e-7f);
    assert_true(s.latent_norm_eps == 1e-6f);
    assert_string_equal(s.prompt.name, "joyai");

    /* DeepSeek-V3 with the name of its sibling; the fields are not read */

    text = edit(published, "\"deepseek_v32\"", "\"deepseek_v3\"");
    assert_int_equal(dsa_model_config_parse(&s, "c", text, strlen(text), &err),
                     DSA_OK);
    assert_int_equal(s.layer[60].selection, DSA_SELECTION_ALL);
    assert_int_equal(s.index_n_heads, 0);
    assert_string_equal(s.prompt.name, "deepseek-v3");
    free(text);
}


/* Without latents of the queries, which only an indexer needs. */

static void
test_no_q_lora(void **state)
{
    char               *text, *dense;
    dsa_err_t           err;
    dsa_model_config_t  s;

    text = edit(published, "\"q_lora_rank\": 1536", "\"q_lora_rank\": null");
    assert_int_equal(dsa_model_config_parse(&s, "c", text, strlen(text), &err),
                     DSA_ERROR);
    assert_string_equal(err.text, "c: \"q_lora_rank\" is missing; expected an "
                        "integer from 1 to 65536");

    dense = edit(text, "\"deepseek_v32\"", "\"deepseek_v3\"");
    assert_int_equal(dsa_model_config_parse(&s, "c", dense, strlen(dense),
                                            &err), DSA_OK);
    assert_int_equal(s.q_lora_rank, 0);

    free(dense);
    free(text);
}


/* The layers, by all fields that say something about them. */

static void
test_layers(void **state)
{
    char               *small, *text;
    size_t              i;
    dsa_err_t           err;
    dsa_model_config_t  s;

    static const int  fours[] = { 0, 1, 1, 1, 4, 4, -1 };
    static const int  glm[] = { 0, 1, 2, 2, 2, 2, -1 };

    static const struct {
        const char  *fields;
        const char  *ffn;
        const int   *from;
    } t[] = {
        { "", "DDDMMM", NULL },
        { "\"moe_layer_freq\": 2,", "DDDDMD", NULL },
        { "\"mlp_layer_types\": [\"dense\", \"dense\", \"dense\","
          "\"sparse\", \"sparse\", \"sparse\"],", "DDDMMM", NULL },
        { "\"index_topk_freq\": 1, \"index_skip_topk_offset\": 7,", "DDDMMM",
          NULL },
        { "\"index_topk_freq\": 4, \"index_skip_topk_offset\": 3,"
          "\"index_topk_pattern\": null,", "DDDMMM", glm },
        { "\"index_topk_pattern\": \"FFSSFS\", \"index_topk_freq\": 2,",
          "DDDMMM", fours },
        { "\"indexer_types\": [\"full\", \"full\", \"shared\", \"shared\","
          "\"full\", \"shared\"], \"index_topk_pattern\": \"FFFFFF\",",
          "DDDMMM", fours }
    };

    text = edit(published, "\"num_hidden_layers\": 61",
                "\"num_hidden_layers\": 6");
    small = edit(text, "\"moe_layer_freq\": 1,", "");
    free(text);

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        text = edit(small, "\"use_cache\": true,", t[i].fields);

        if (dsa_model_config_parse(&s, "c", text, strlen(text),
                                   &err) != DSA_OK) {
            fail_msg("%s: %s", t[i].fields, err.text);
        }

        check_layers(&s, t[i].ffn, t[i].from);
        free(text);
    }

    /* other numbers of layers, as in measurements */

    dsa_model_config_resize(&s, 4);
    check_layers(&s, "DDDM", (const int[]) { 0, 1, 1, 1, -1 });
    dsa_model_config_resize(&s, 6);
    check_layers(&s, "DDDMMM", (const int[]) { 0, 1, 1, 1, 1, 1, -1 });
    dsa_model_config_resize(&s, 2);
    dsa_model_config_resize(&s, 3);
    check_layers(&s, "DDD", (const int[]) { 0, 1, 2, -1 });
    assert_int_equal(s.first_k_dense_replace, 2);

    free(small);
}


static void
test_ends(void **state)
{
    char               *text;
    size_t              i, j;
    dsa_err_t           err;
    dsa_model_config_t  s;

    static const struct {
        const char  *field;
        uint32_t     n;
        uint32_t     id[3];
    } t[] = {
        { "\"eos_token_id\": [7]", 1, { 7 } },
        { "\"eos_token_id\": [154, 820, 3]", 3, { 154, 820, 3 } },
        { "\"eos_token_id\": [5, 0, 5]", 2, { 5, 0 } }
    };

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        text = edit(published, "\"eos_token_id\": 1", t[i].field);

        assert_int_equal(dsa_model_config_parse(&s, "c", text, strlen(text),
                                                &err), DSA_OK);
        assert_int_equal(s.ends.n, t[i].n);

        for (j = 0; j < t[i].n; j++) {
            assert_int_equal(s.ends.id[j], t[i].id[j]);
            assert_true(dsa_ends_has(&s.ends, t[i].id[j]));
        }

        assert_false(dsa_ends_has(&s.ends, 1));
        free(text);
    }
}


/* Writes a file of the directory dir. */

static void
put(const char *dir, const char *name, const char *text)
{
    FILE  *f;
    char   path[128];

    (void) snprintf(path, sizeof(path), "%s/%s", dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}


/* generation_config.json adds ids, as that of Kimi-K2 does. */

static void
test_generation(void **state)
{
    char                path[128];
    dsa_err_t           err;
    dsa_model_config_t  s;

    static char  dir[] = "/tmp/nginx-dsa-test-ends.XXXXXX";

    assert_non_null(mkdtemp(dir));
    put(dir, "config.json", published);

    assert_int_equal(dsa_model_config_read(&s, dir, &err), DSA_OK);
    assert_int_equal(s.ends.n, 1);

    put(dir, "generation_config.json", "{\"eos_token_id\": [163, 1]}");
    assert_int_equal(dsa_model_config_read(&s, dir, &err), DSA_OK);
    assert_int_equal(s.ends.n, 2);
    assert_int_equal(s.ends.id[0], 1);
    assert_int_equal(s.ends.id[1], 163);

    put(dir, "generation_config.json", "{\"eos_token_id\": 129280}");
    assert_int_equal(dsa_model_config_read(&s, dir, &err), DSA_ERROR);
    assert_non_null(strstr(err.text, "/generation_config.json: "
                           "\"eos_token_id\" has 129280; expected ids less "
                           "than vocab_size, which is 129280"));

    put(dir, "generation_config.json", "{\"eos_token_id\": "
        "[2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}");
    assert_int_equal(dsa_model_config_read(&s, dir, &err), DSA_ERROR);
    assert_non_null(strstr(err.text, "more than 16 ids together"));

    (void) snprintf(path, sizeof(path), "%s/generation_config.json", dir);
    assert_int_equal(unlink(path), 0);
    (void) snprintf(path, sizeof(path), "%s/config.json", dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_published),
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_int4),
        cmocka_unit_test(test_families),
        cmocka_unit_test(test_no_q_lora),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_generation)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
