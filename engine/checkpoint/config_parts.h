
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CONFIG_PARTS_H_INCLUDED_
#define _DSA_CONFIG_PARTS_H_INCLUDED_


#include "base/fields.h"
#include "engine/checkpoint/config.h"


/* Inside engine/checkpoint: the files that read config.json. */

/* What the value of model_type means and no other field of the file has. */

typedef struct {
    const char          *type;          /* model_type */
    uint32_t             indexed;       /* 1: layers have indexers; 0: they
                                           attend to all positions */
    uint32_t             interleaved;   /* indexer_rope_interleave, if that
                                           field is missing */
    uint32_t             dense_draft;   /* 1: the draft layer has a dense MLP;
                                           0: experts */
    float                latent_eps;    /* latent_norm_eps of the published
                                           code; 0: that is rms_norm_eps */
    dsa_prompt_family_t  prompt;
} dsa_model_family_t;


/*
 * Finds the family of a file by its model_type.  NULL with top->err: the field
 * is missing or has another value.
 */
const dsa_model_family_t *dsa_config_family(const dsa_fields_t *top);

/*
 * Sets layer and draft from the other members of config and from the fields
 * mlp_layer_types, moe_layer_freq, indexer_types, index_topk_pattern,
 * index_topk_freq and index_skip_topk_offset.
 */
int dsa_config_layers(dsa_model_config_t *config,
    const dsa_model_family_t *family, const dsa_fields_t *top);


/* The values of quantization_config.quant_method, as errors name them. */

#define DSA_FORMATS_METHODS     "\"fp8\" or \"w4afp8\""

/* What is accepted instead of a file that describes another quantization. */

#define DSA_FORMATS_EXPECTED                                                  \
    "\"quantization_config\" in config.json, with the quant_method "          \
    DSA_FORMATS_METHODS

#define DSA_CONFIG_REQUIRED      0
#define DSA_CONFIG_OPTIONAL      1

typedef struct {
    const char          *name;
    const char          *json;          /* the only value that is supported */
    uint32_t             optional;
} dsa_config_fixed_t;

/* DSA_ERROR with f->err: the field is missing or has another value. */
int dsa_config_fixed(const dsa_fields_t *f, const dsa_config_fixed_t *field);

/* Sets format, ue8m0 and expert_scales from quantization_config. */
int dsa_config_quantization(dsa_model_config_t *config,
    const dsa_fields_t *top);

/*
 * Sets them as a quantization_config with nothing but quant_method w4afp8 does.
 * DSA_ERROR with err: dsa_config_check_int4() has failed, for dir/config.json.
 */
int dsa_config_as_w4afp8(dsa_model_config_t *config, const char *dir,
    dsa_err_t *err);

/*
 * DSA_ERROR with err, which begins with file: a group of INT4 columns would
 * have a remainder.
 */
int dsa_config_check_int4(const dsa_model_config_t *config, const char *file,
    dsa_err_t *err);


/*
 * For a directory whose config.json has no quantization_config.  Some tools
 * describe a quantization in files of its own instead; without this check,
 * the weights would be rejected one by one for names or dtypes that nothing
 * explains.
 *
 *     hf_quant_config.json    NVIDIA's Model Optimizer and TensorRT-LLM.  A
 *                             quantization.quant_algo that is null or missing
 *                             means that weights are not quantized.  With
 *                             MIXED_PRECISION, formats are set in config
 *     quant_config.json       AutoAWQ
 *     quantize_config.json    AutoGPTQ
 *
 * The bytes of the files that have changed config are appended to text, unless
 * it is NULL.  DSA_ERROR: dir has another such file, which err names.
 */
int dsa_config_formats(dsa_model_config_t *config, const char *dir,
    dsa_buf_t *text, dsa_err_t *err);


/*
 * What TensorRT-LLM's script quantize_mixed_precision_moe.py writes instead of
 * a quantization_config: hf_quant_config.json has the quant_algo
 * MIXED_PRECISION, and quant_cfg.json the one of each module.  Only the formats
 * that the script writes are accepted: routed experts W4A8_AWQ in groups of 128
 * without zero points and without scales of columns, all else FP8_BLOCK_SCALES.
 */

#define DSA_MIXED_PRECISION     "MIXED_PRECISION"

/*
 * Parses hf_quant_config.json in memory.  Sets *mixed to 1 if it has this
 * quant_algo, and to 0 if it has none.  DSA_ERROR: it has another one, or is
 * invalid; err begins with name.
 */
int dsa_config_mixed(uint32_t *mixed, const char *name, dsa_str_t json,
    dsa_err_t *err);

/*
 * Parses quant_cfg.json in memory, for the layers of config.  DSA_ERROR: a
 * module has a format that the engine does not read, or the experts of a layer
 * have none; err begins with name.
 */
int dsa_config_mixed_layers(const dsa_model_config_t *config,
    const char *name, dsa_str_t json, dsa_err_t *err);


#endif /* _DSA_CONFIG_PARTS_H_INCLUDED_ */
