
/*
 * Copyright (C) The nginx-dsa authors
 *
 * config.json to a config: the published model's values, and every field
 * broken in turn.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/checkpoint/config.h"


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


/* The text with one place replaced; the place has to be there once. */

static char *
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
    assert_int_equal(s.moe_layer_freq, 1);
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
    assert_int_equal(s.eos_token_id, 1);
    assert_true(s.yarn_factor == 40);
    assert_true(s.yarn_beta_fast == 32);
    assert_true(s.yarn_beta_slow == 1);
    assert_true(s.yarn_mscale == 1);
    assert_true(s.yarn_mscale_all_dim == 0.5);
    assert_int_equal(s.yarn_original_max_position, 4096);
    assert_int_equal(s.fp8, 1);
    assert_int_equal(s.ue8m0, 1);
}


/* What is accepted beside the published text. */

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
        assert_int_equal(s.moe_layer_freq, 1);

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
    assert_int_equal(s.fp8, 0);
    assert_int_equal(s.ue8m0, 0);
    assert_int_equal(s.num_nextn_predict_layers, 0);
    assert_int_equal(s.norm_topk_prob, 0);
    free(text);
    free(more);

    text = edit(published, "\"scale_fmt\": \"ue8m0\",", "");
    assert_int_equal(dsa_model_config_parse(&s, "c", text, strlen(text), &err),
                     DSA_OK);
    assert_int_equal(s.fp8, 1);
    assert_int_equal(s.ue8m0, 0);
    free(text);
}


static void
test_refused(void **state)
{
    char               *text;
    size_t              i;
    dsa_err_t           err;
    dsa_model_config_t  s;

    static const struct {
        const char  *from;
        const char  *to;
        const char  *error;
    } t[] = {
        { "\"model_type\": \"deepseek_v32\"",
          "\"model_type\": \"deepseek_v3\"",
          "\"model_type\" is \"deepseek_v3\", \"deepseek_v32\" is accepted" },
        { "\"index_topk\": 2048,", "",
          "\"index_topk\" is missing, an integer from 1 to 1048576 is "
          "accepted" },
        { "\"index_topk\": 2048", "\"index_topk\": 0",
          "\"index_topk\" is 0, an integer from 1 to 1048576 is accepted" },
        { "\"index_topk\": 2048", "\"index_topk\": -1",
          "\"index_topk\" is -1, an integer from 1 to 1048576 is accepted" },
        { "\"index_topk\": 2048", "\"index_topk\": 2048.0",
          "\"index_topk\" is 2048.0, an integer from 1 to 1048576 is "
          "accepted" },
        { "\"index_topk\": 2048", "\"index_topk\": \"2048\"",
          "\"index_topk\" is \"2048\", an integer from 1 to 1048576 is "
          "accepted" },
        { "\"index_topk\": 2048", "\"index_topk\": null",
          "\"index_topk\" is missing, an integer from 1 to 1048576 is "
          "accepted" },
        { "\"index_topk\": 2048",
          "\"index_topk\": 99999999999999999999999",
          "\"index_topk\" is 99999999999999999999999, an integer from 1 to "
          "1048576 is accepted" },
        { "\"hidden_size\": 7168", "\"hidden_size\": true",
          "\"hidden_size\" is true, an integer from 1 to 131072 is "
          "accepted" },
        { "\"hidden_size\": 7168",
          "\"hidden_size\": [[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18]]",
          "\"hidden_size\" is [[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, "
          "14, 15, 16, 17,..., an integer from 1 to 131072 is accepted" },
        { "\"hidden_size\": 7168", "\"hidden_size\": [1e999]",
          "\"hidden_size\" is beyond the range of numbers, an integer from 1 "
          "to 131072 is accepted" },
        { "\"num_hidden_layers\": 61", "\"num_hidden_layers\": 0",
          "\"num_hidden_layers\" is 0, an integer from 1 to 1024 is "
          "accepted" },
        { "\"first_k_dense_replace\": 3", "\"first_k_dense_replace\": 62",
          "\"first_k_dense_replace\" is 62, at most num_hidden_layers, 61, "
          "is accepted" },
        { "\"vocab_size\": 129280", "\"vocab_size\": 1",
          "\"eos_token_id\" is 1, less than vocab_size, 1, is accepted" },
        { "\"bos_token_id\": 0", "\"bos_token_id\": 129280",
          "\"bos_token_id\" is 129280, less than vocab_size, 129280, is "
          "accepted" },
        { "\"eos_token_id\": 1", "\"eos_token_id\": [1, 2]",
          "\"eos_token_id\" is [1, 2], an integer from 0 to 16777215 is "
          "accepted" },
        { "\"num_key_value_heads\": 128", "\"num_key_value_heads\": 8",
          "\"num_key_value_heads\" is 8, the number of num_attention_heads "
          "is accepted" },
        { "\"n_group\": 8", "\"n_group\": 7",
          "\"n_group\" is 7, a divisor of n_routed_experts, 256, is "
          "accepted" },
        { "\"n_group\": 8", "\"n_group\": 256",
          "\"n_group\" is 256, at least two experts a group "
          "(n_routed_experts is 256) are accepted" },
        { "\"topk_group\": 4", "\"topk_group\": 9",
          "\"topk_group\" is 9, at most n_group, 8, is accepted" },
        { "\"num_experts_per_tok\": 8", "\"num_experts_per_tok\": 129",
          "\"num_experts_per_tok\" is 129, at most the experts of "
          "topk_group groups, 128, are accepted" },
        { "\"qk_rope_head_dim\": 64", "\"qk_rope_head_dim\": 63",
          "\"qk_rope_head_dim\" is 63, an even number is accepted" },
        { "\"index_head_dim\": 128", "\"index_head_dim\": 96",
          "\"index_head_dim\" is 96, a power of two is accepted" },
        { "\"index_head_dim\": 128", "\"index_head_dim\": 32",
          "\"index_head_dim\" is 32, at least qk_rope_head_dim, 64, is "
          "accepted" },
        { "\"norm_topk_prob\": true", "\"norm_topk_prob\": 1",
          "\"norm_topk_prob\" is 1, true or false is accepted" },
        { "\"rms_norm_eps\": 1e-06", "\"rms_norm_eps\": 0",
          "\"rms_norm_eps\" is 0, a number from 1e-12 to 0.1 is accepted" },
        { "\"rms_norm_eps\": 1e-06", "\"rms_norm_eps\": 1e999",
          "\"rms_norm_eps\" is 1e999, a number from 1e-12 to 0.1 is "
          "accepted" },
        { "\"routed_scaling_factor\": 2.5", "\"routed_scaling_factor\": \"\"",
          "\"routed_scaling_factor\" is \"\", a number from 1e-06 to 1e+06 "
          "is accepted" },
        { "\"rope_theta\": 10000", "\"rope_theta\": 1",
          "\"rope_theta\" is 1, a number from 1.001 to 1e+12 is accepted" },
        { "\"hidden_act\": \"silu\"", "\"hidden_act\": \"gelu\"",
          "\"hidden_act\" is \"gelu\", \"silu\" is accepted" },
        { "\"scoring_func\": \"sigmoid\"", "\"scoring_func\": \"softmax\"",
          "\"scoring_func\" is \"softmax\", \"sigmoid\" is accepted" },
        { "\"topk_method\": \"noaux_tc\"", "\"topk_method\": \"greedy\"",
          "\"topk_method\" is \"greedy\", \"noaux_tc\" is accepted" },
        { "\"attention_bias\": false", "\"attention_bias\": true",
          "\"attention_bias\" is true, false is accepted" },
        { "\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true",
          "\"tie_word_embeddings\" is true, false is accepted" },
        { "\"use_cache\": true", "\"indexer_rope_interleave\": true",
          "\"indexer_rope_interleave\" is true, false is accepted" },
        { "\"rope_scaling\": {", "\"rope_scaling\": 40, \"was\": {",
          "\"rope_scaling\" is 40, an object or null is accepted" },
        { "\"rope_scaling\": {", "\"rope_parameters\": {}, "
          "\"rope_scaling\": {",
          "\"rope_scaling\" and \"rope_parameters\" are both there, one of "
          "them is accepted" },
        { "\"rope_scaling\": {", "\"rope_parameters\": { \"rope_theta\": 5,",
          "\"rope_theta\" and \"rope_parameters.rope_theta\" are both there, "
          "one of them is accepted" },
        { "\"type\": \"yarn\"", "\"type\": \"linear\"",
          "\"rope_scaling.type\" is \"linear\", \"yarn\" or \"default\" is "
          "accepted" },
        { ",\n    \"type\": \"yarn\"", "",
          "\"rope_scaling.type\" is missing, \"yarn\" or \"default\" is "
          "accepted" },
        { "\"type\": \"yarn\"",
          "\"rope_type\": \"yarn\", \"type\": \"default\"",
          "\"rope_scaling.type\" is \"default\", that of rope_type is "
          "accepted" },
        { "\"factor\": 40,", "",
          "\"rope_scaling.factor\" is missing, a number from 1 to 1e+06 is "
          "accepted" },
        { "\"factor\": 40", "\"factor\": 0.5",
          "\"rope_scaling.factor\" is 0.5, a number from 1 to 1e+06 is "
          "accepted" },
        { "\"beta_fast\": 32", "\"beta_fast\": 1",
          "\"rope_scaling.beta_fast\" is 1, more than beta_slow, 1, is "
          "accepted" },
        { "\"mscale\": 1.0,", "",
          "\"rope_scaling.mscale\" is missing, a number from 0.001 to 1000 "
          "is accepted" },
        { "\"mscale_all_dim\": 0.5", "\"mscale_all_dim\": 0",
          "\"rope_scaling.mscale_all_dim\" is 0, a number from 0.001 to 1000 "
          "is accepted" },
        { "\"original_max_position_embeddings\": 4096,", "",
          "\"rope_scaling.original_max_position_embeddings\" is missing, an "
          "integer from 1 to 16777216 is accepted" },
        { "\"type\": \"yarn\"",
          "\"type\": \"yarn\", \"attention_factor\": 1.2",
          "\"rope_scaling.attention_factor\" is 1.2, YaRN without this field "
          "is accepted" },
        { "\"quantization_config\": {",
          "\"quantization_config\": \"fp8\", \"was\": {",
          "\"quantization_config\" is \"fp8\", an object or null is "
          "accepted" },
        { "\"quant_method\": \"fp8\"", "\"quant_method\": \"awq\"",
          "\"quantization_config.quant_method\" is \"awq\", \"fp8\" is "
          "accepted" },
        { "\"fmt\": \"e4m3\"", "\"fmt\": \"e5m2\"",
          "\"quantization_config.fmt\" is \"e5m2\", \"e4m3\" is accepted" },
        { "\"weight_block_size\": [128, 128]",
          "\"weight_block_size\": [1, 128]",
          "\"quantization_config.weight_block_size\" is [1, 128], "
          "[128, 128] is accepted" },
        { "\"activation_scheme\": \"dynamic\",", "",
          "\"quantization_config.activation_scheme\" is missing, \"dynamic\" "
          "is accepted" },
        { "\"scale_fmt\": \"ue8m0\"", "\"scale_fmt\": \"float\"",
          "\"quantization_config.scale_fmt\" is \"float\", \"ue8m0\" is "
          "accepted" }
    };

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        text = edit(published, t[i].from, t[i].to);

        assert_int_equal(dsa_model_config_parse(&s, "c.json", text,
                                                strlen(text), &err), DSA_ERROR);
        assert_true(strncmp(err.text, "c.json: ", 8) == 0);
        assert_string_equal(err.text + 8, t[i].error);

        free(text);
    }
}


/* Each required field is missed by its name. */

static void
test_missing(void **state)
{
    char               *text, from[64], error[96];
    size_t              i;
    dsa_err_t           err;
    dsa_model_config_t  s;

    static const char  *required[] = {
        "model_type", "vocab_size", "hidden_size", "num_hidden_layers",
        "first_k_dense_replace", "intermediate_size",
        "moe_intermediate_size", "num_attention_heads", "q_lora_rank",
        "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
        "n_routed_experts", "n_shared_experts", "num_experts_per_tok",
        "n_group", "topk_group", "index_n_heads", "index_head_dim",
        "index_topk", "max_position_embeddings", "bos_token_id",
        "eos_token_id", "norm_topk_prob", "rms_norm_eps", "rope_theta",
        "routed_scaling_factor", "factor", "mscale", "mscale_all_dim",
        "original_max_position_embeddings", "quant_method",
        "weight_block_size", "activation_scheme"
    };

    for (i = 0; i < sizeof(required) / sizeof(required[0]); i++) {
        (void) snprintf(from, sizeof(from), " \"%s\":", required[i]);
        (void) snprintf(error, sizeof(error), "%s\" is missing, ",
                        required[i]);

        text = edit(published, from, " \"was\":");

        assert_int_equal(dsa_model_config_parse(&s, "c", text, strlen(text),
                                                &err), DSA_ERROR);

        if (strstr(err.text, error) == NULL) {
            fail_msg("%s: %s", required[i], err.text);
        }

        free(text);
    }
}


static void
test_no_config(void **state)
{
    size_t              len;
    dsa_err_t           err;
    dsa_model_config_t  s;

    assert_int_equal(dsa_model_config_read(&s, "t/data/golden", &err),
                     DSA_ERROR);
    assert_string_equal(err.text, "t/data/golden/config.json: No such file "
                        "or directory");

    assert_int_equal(dsa_model_config_parse(&s, "c", "[1]", 3, &err),
                     DSA_ERROR);
    assert_string_equal(err.text, "c: the text is no object, a model's "
                        "configuration is accepted");

    /* a text that ends too early, anywhere but before the last blank */

    for (len = 0; len < strlen(published) - 1; len++) {
        memset(&err, 0, sizeof(dsa_err_t));
        assert_int_equal(dsa_model_config_parse(&s, "c", published, len, &err),
                         DSA_ERROR);
        assert_true(strncmp(err.text, "c: ", 3) == 0);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_published),
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_no_config)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
