
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The errors of reading config.json: one for each field whose value is wrong.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "t/unit/model_config.h"


#define ENDS    "expected an integer from 0 to 16777215, or a list of 1 to "   \
                "16 of them"


static void
test_layers_rejected(void **state)
{
    char               *small, *text;
    size_t              i;
    dsa_err_t           err;
    dsa_model_config_t  s;

    static const struct {
        const char  *fields;
        const char  *error;
    } t[] = {
        { "\"moe_layer_freq\": 0,", "\"moe_layer_freq\" is 0; expected an "
          "integer from 1 to 1024" },
        { "\"mlp_layer_types\": [\"sparse\", \"sparse\", \"sparse\"],",
          "\"mlp_layer_types[0]\" is \"sparse\"; expected what follows from "
          "first_k_dense_replace, which is 3, and moe_layer_freq, which is "
          "1" },
        { "\"mlp_layer_types\": [\"dense\"],",
          "\"mlp_layer_types\" is [\"dense\"]; expected a list of "
          "num_hidden_layers, 3, times \"dense\" or \"sparse\"" },
        { "\"indexer_types\": [\"full\", \"none\", \"full\"],",
          "\"indexer_types\" is [\"full\", \"none\", \"full\"]; expected a "
          "list of num_hidden_layers, 3, times \"full\" or \"shared\"" },
        { "\"indexer_types\": \"full\",",
          "\"indexer_types\" is \"full\"; expected a list of "
          "num_hidden_layers, 3, times \"full\" or \"shared\"" },
        { "\"indexer_types\": [\"shared\", \"full\", \"full\"],",
          "by \"indexer_types\", layer 0 shares a selection; expected that it "
          "has an indexer, because no layer is below it" },
        { "\"index_topk_pattern\": \"FSf\",",
          "\"index_topk_pattern\" is \"FSf\"; expected a string of "
          "num_hidden_layers, 3, letters \"F\" or \"S\"" },
        { "\"index_topk_pattern\": \"FSFF\",",
          "\"index_topk_pattern\" is \"FSFF\"; expected a string of "
          "num_hidden_layers, 3, letters \"F\" or \"S\"" },
        { "\"index_topk_freq\": 2,",
          "\"index_skip_topk_offset\" is missing; expected an integer from 0 "
          "to 1024" },
        { "\"index_topk_freq\": 2, \"index_skip_topk_offset\": 0,",
          "by \"index_topk_freq\", layer 0 shares a selection; expected that "
          "it has an indexer, because no layer is below it" }
    };

    text = edit(published, "\"num_hidden_layers\": 61",
                "\"num_hidden_layers\": 3");
    small = edit(text, "\"moe_layer_freq\": 1,", "");
    free(text);

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        text = edit(small, "\"use_cache\": true,", t[i].fields);

        assert_int_equal(dsa_model_config_parse(&s, "c", text, strlen(text),
                                                &err), DSA_ERROR);
        assert_string_equal(err.text + 3, t[i].error);
        free(text);
    }

    free(small);
}


static void
test_rejected(void **state)
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
          "\"model_type\": \"kimi_k2\"",
          "\"model_type\" is \"kimi_k2\"; expected \"deepseek_v32\", "
          "\"deepseek_v3\", \"joyai_llm_flash\", \"glm_moe_dsa\" or "
          "\"glm4_moe_lite\"" },
        { "\"index_topk\": 2048,", "",
          "\"index_topk\" is missing; expected an integer from 1 to 1048576" },
        { "\"index_topk\": 2048", "\"index_topk\": 0",
          "\"index_topk\" is 0; expected an integer from 1 to 1048576" },
        { "\"index_topk\": 2048", "\"index_topk\": -1",
          "\"index_topk\" is -1; expected an integer from 1 to 1048576" },
        { "\"index_topk\": 2048", "\"index_topk\": 2048.0",
          "\"index_topk\" is 2048.0; expected an integer from 1 to 1048576" },
        { "\"index_topk\": 2048", "\"index_topk\": \"2048\"",
          "\"index_topk\" is \"2048\"; expected an integer from 1 to 1048576" },
        { "\"index_topk\": 2048", "\"index_topk\": null",
          "\"index_topk\" is missing; expected an integer from 1 to 1048576" },
        { "\"index_topk\": 2048",
          "\"index_topk\": 99999999999999999999999",
          "\"index_topk\" is 99999999999999999999999; expected an integer "
          "from 1 to 1048576" },
        { "\"hidden_size\": 7168", "\"hidden_size\": true",
          "\"hidden_size\" is true; expected an integer from 1 to 131072" },
        { "\"hidden_size\": 7168",
          "\"hidden_size\": [[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18]]",
          "\"hidden_size\" is [[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, "
          "14, 15, 16, 17,...; expected an integer from 1 to 131072" },
        { "\"hidden_size\": 7168", "\"hidden_size\": [1e999]",
          "\"hidden_size\" is beyond the range of numbers; expected an "
          "integer from 1 to 131072" },
        { "\"num_hidden_layers\": 61", "\"num_hidden_layers\": 0",
          "\"num_hidden_layers\" is 0; expected an integer from 1 to 1024" },
        { "\"first_k_dense_replace\": 3", "\"first_k_dense_replace\": 62",
          "\"first_k_dense_replace\" is 62; expected at most "
          "num_hidden_layers, which is 61" },
        { "\"vocab_size\": 129280", "\"vocab_size\": 1",
          "\"eos_token_id\" is 1; expected less than vocab_size, which is 1" },
        { "\"bos_token_id\": 0", "\"bos_token_id\": 129280",
          "\"bos_token_id\" is 129280; expected less than vocab_size, which "
          "is 129280" },
        { "\"eos_token_id\": 1", "\"eos_token_id\": [1, 129280]",
          "\"eos_token_id\" is 129280; expected less than vocab_size, which "
          "is 129280" },
        { "\"eos_token_id\": 1", "\"eos_token_id\": []",
          "\"eos_token_id\" is []; " ENDS },
        { "\"eos_token_id\": 1", "\"eos_token_id\": [1, -1]",
          "\"eos_token_id\" is [1, -1]; " ENDS },
        { "\"eos_token_id\": 1", "\"eos_token_id\": [[1]]",
          "\"eos_token_id\" is [[1]]; " ENDS },
        { "\"eos_token_id\": 1", "\"eos_token_id\": \"1\"",
          "\"eos_token_id\" is \"1\"; " ENDS },
        { "\"eos_token_id\": 1", "\"eos_token_id\": "
          "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]",
          "\"eos_token_id\" is [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, "
          "14, 15, 16, 17]; " ENDS },
        { "\"num_key_value_heads\": 128", "\"num_key_value_heads\": 8",
          "\"num_key_value_heads\" is 8; expected the value of "
          "num_attention_heads" },
        { "\"n_group\": 8", "\"n_group\": 7",
          "\"n_group\" is 7; expected a divisor of n_routed_experts, which "
          "is 256" },
        { "\"n_group\": 8", "\"n_group\": 256",
          "\"n_group\" is 256; expected at most half of n_routed_experts, "
          "which is 256" },
        { "\"topk_group\": 4", "\"topk_group\": 9",
          "\"topk_group\" is 9; expected at most n_group, which is 8" },
        { "\"num_experts_per_tok\": 8", "\"num_experts_per_tok\": 129",
          "\"num_experts_per_tok\" is 129; expected at most the experts of "
          "topk_group groups, which is 128" },
        { "\"qk_rope_head_dim\": 64", "\"qk_rope_head_dim\": 63",
          "\"qk_rope_head_dim\" is 63; expected an even number" },
        { "\"index_head_dim\": 128", "\"index_head_dim\": 96",
          "\"index_head_dim\" is 96; expected a power of two" },
        { "\"index_head_dim\": 128", "\"index_head_dim\": 32",
          "\"index_head_dim\" is 32; expected at least qk_rope_head_dim, "
          "which is 64" },
        { "\"norm_topk_prob\": true", "\"norm_topk_prob\": 1",
          "\"norm_topk_prob\" is 1; expected true or false" },
        { "\"rms_norm_eps\": 1e-06", "\"rms_norm_eps\": 0",
          "\"rms_norm_eps\" is 0; expected a number from 1e-12 to 0.1" },
        { "\"rms_norm_eps\": 1e-06", "\"rms_norm_eps\": 1e999",
          "\"rms_norm_eps\" is 1e999; expected a number from 1e-12 to 0.1" },
        { "\"routed_scaling_factor\": 2.5", "\"routed_scaling_factor\": \"\"",
          "\"routed_scaling_factor\" is \"\"; expected a number from 1e-06 "
          "to 1e+06" },
        { "\"rope_theta\": 10000", "\"rope_theta\": 1",
          "\"rope_theta\" is 1; expected a number from 1.001 to 1e+12" },
        { "\"hidden_act\": \"silu\"", "\"hidden_act\": \"gelu\"",
          "\"hidden_act\" is \"gelu\"; expected \"silu\"" },
        { "\"scoring_func\": \"sigmoid\"", "\"scoring_func\": \"softmax\"",
          "\"scoring_func\" is \"softmax\"; expected \"sigmoid\"" },
        { "\"topk_method\": \"noaux_tc\"", "\"topk_method\": \"greedy\"",
          "\"topk_method\" is \"greedy\"; expected \"noaux_tc\"" },
        { "\"attention_bias\": false", "\"attention_bias\": true",
          "\"attention_bias\" is true; expected false" },
        { "\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true",
          "\"tie_word_embeddings\" is true; expected false" },
        { "\"use_cache\": true", "\"indexer_rope_interleave\": 1",
          "\"indexer_rope_interleave\" is 1; expected true or false" },
        { "\"use_cache\": true", "\"rope_interleave\": false",
          "\"rope_interleave\" is false; expected true" },
        { "\"rope_scaling\": {", "\"rope_scaling\": 40, \"was\": {",
          "\"rope_scaling\" is 40; expected an object" },
        { "\"rope_scaling\": {", "\"rope_parameters\": {}, "
          "\"rope_scaling\": {",
          "both \"rope_scaling\" and \"rope_parameters\" are present; "
          "expected one of them" },
        { "\"rope_scaling\": {", "\"rope_parameters\": { \"rope_theta\": 5,",
          "both \"rope_theta\" and \"rope_parameters.rope_theta\" are "
          "present; expected one of them" },
        { "\"type\": \"yarn\"", "\"type\": \"linear\"",
          "\"rope_scaling.type\" is \"linear\"; expected \"yarn\" or "
          "\"default\"" },
        { ",\n    \"type\": \"yarn\"", "",
          "\"rope_scaling.type\" is missing; expected \"yarn\" or "
          "\"default\"" },
        { "\"type\": \"yarn\"",
          "\"rope_type\": \"yarn\", \"type\": \"default\"",
          "\"rope_scaling.type\" is \"default\"; expected the value of "
          "rope_type" },
        { "\"factor\": 40,", "",
          "\"rope_scaling.factor\" is missing; expected a number from 1 to "
          "1e+06" },
        { "\"factor\": 40", "\"factor\": 0.5",
          "\"rope_scaling.factor\" is 0.5; expected a number from 1 to 1e+06" },
        { "\"beta_fast\": 32", "\"beta_fast\": 1",
          "\"rope_scaling.beta_fast\" is 1; expected more than beta_slow, "
          "which is 1" },
        { "\"mscale\": 1.0,", "",
          "\"rope_scaling.mscale\" is missing; expected a number from 0.001 "
          "to 1000" },
        { "\"mscale_all_dim\": 0.5", "\"mscale_all_dim\": 0",
          "\"rope_scaling.mscale_all_dim\" is 0; expected a number from "
          "0.001 to 1000" },
        { "\"original_max_position_embeddings\": 4096,", "",
          "\"rope_scaling.original_max_position_embeddings\" is missing; "
          "expected an integer from 1 to 16777216" },
        { "\"type\": \"yarn\"",
          "\"type\": \"yarn\", \"attention_factor\": 1.2",
          "\"rope_scaling.attention_factor\" is not a supported field; "
          "expected type, rope_type, rope_theta, factor, beta_fast, "
          "beta_slow, mscale, mscale_all_dim, "
          "original_max_position_embeddings" },
        { "\"quantization_config\": {",
          "\"quantization_config\": \"fp8\", \"was\": {",
          "\"quantization_config\" is \"fp8\"; expected an object" },
        { "\"use_cache\": true",
          "\"compression_config\": { \"quant_method\": \"x\" }",
          "\"compression_config\" is {\"quant_method\": \"x\"}; expected "
          "none, and quantization_config instead, with the quant_method "
          "\"fp8\" or \"w4afp8\"" },
        { "\"quant_method\": \"fp8\"", "\"quant_method\": \"w4a8_awq\"",
          "\"quantization_config.quant_method\" is \"w4a8_awq\"; expected "
          "\"fp8\" or \"w4afp8\"" },
        { "\"quant_method\": \"fp8\"", "\"quant_method\": \"modelopt\"",
          "\"quantization_config.quant_method\" is \"modelopt\"; expected "
          "\"fp8\" or \"w4afp8\"" },
        { "\"quant_method\": \"fp8\"", "\"quant_method\": \"awq\"",
          "\"quantization_config.quant_method\" is \"awq\"; expected \"fp8\" "
          "or \"w4afp8\"" },
        { "\"quant_method\": \"fp8\"",
          "\"quant_method\": \"compressed-tensors\"",
          "\"quantization_config.quant_method\" is \"compressed-tensors\"; "
          "expected \"fp8\" or \"w4afp8\"" },
        { "\"quant_method\": \"fp8\"", "\"quant_method\": \"w4afp8\", "
          "\"group_size\": 64",
          "\"quantization_config.group_size\" is 64; expected 128" },
        { "\"quant_method\": \"fp8\"", "\"quant_method\": \"w4afp8\", "
          "\"moe_activation_scheme\": \"token\"",
          "\"quantization_config.moe_activation_scheme\" is \"token\"; "
          "expected \"static\" or \"dynamic\"" },
        { "\"quant_method\": \"fp8\"", "\"quant_method\": \"w4afp8\", "
          "\"zero_point\": true",
          "\"quantization_config.zero_point\" is not a supported field; "
          "expected quant_method, fmt, group_size, weight_block_size, "
          "activation_scheme, linear_activation_scheme, "
          "moe_activation_scheme, scale_fmt, modules_to_not_convert, "
          "ignored_layers, ignore" },
        { "\"quant_method\": \"fp8\"", "\"quant_method\": \"w4afp8\", "
          "\"moe_weight_format\": \"mxfp4\"",
          "\"quantization_config.moe_weight_format\" is not a supported "
          "field; expected quant_method, fmt, group_size, weight_block_size, "
          "activation_scheme, linear_activation_scheme, "
          "moe_activation_scheme, scale_fmt, modules_to_not_convert, "
          "ignored_layers, ignore" },
        { "\"fmt\": \"e4m3\"", "\"fmt\": \"e5m2\"",
          "\"quantization_config.fmt\" is \"e5m2\"; expected \"e4m3\"" },
        { "\"weight_block_size\": [128, 128]",
          "\"weight_block_size\": [1, 128]",
          "\"quantization_config.weight_block_size\" is [1, 128]; expected "
          "[128, 128]" },
        { "\"activation_scheme\": \"dynamic\",", "",
          "\"quantization_config.activation_scheme\" is missing; expected "
          "\"dynamic\"" },
        { "\"scale_fmt\": \"ue8m0\"", "\"scale_fmt\": \"float\"",
          "\"quantization_config.scale_fmt\" is \"float\"; expected \"ue8m0\"" }
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


/* The error names each required field that is missing. */

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
        "index_topk", "max_position_embeddings", "eos_token_id",
        "norm_topk_prob", "rms_norm_eps", "rope_theta",
        "routed_scaling_factor", "factor", "mscale", "mscale_all_dim",
        "original_max_position_embeddings", "quant_method",
        "weight_block_size", "activation_scheme"
    };

    for (i = 0; i < sizeof(required) / sizeof(required[0]); i++) {
        (void) snprintf(from, sizeof(from), " \"%s\":", required[i]);
        (void) snprintf(error, sizeof(error), "%s\" is missing; ",
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
    assert_string_equal(err.text, "c: the text is not a JSON object");

    /* a text that ends early, at any byte before its last line break */

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
        cmocka_unit_test(test_layers_rejected),
        cmocka_unit_test(test_rejected),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_no_config)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
