
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "base/file.h"
#include "engine/checkpoint/config_parts.h"


static int dsa_config_w4afp8(dsa_model_config_t *config,
    const dsa_fields_t *f);
static void dsa_config_int4_experts(dsa_model_config_t *config,
    dsa_scales_e scales);


#define dsa_text(x)     dsa_text_of(x)
#define dsa_text_of(x)  #x

static const dsa_config_fixed_t  dsa_config_fp8[] = {
    { "fmt", "\"e4m3\"", DSA_CONFIG_OPTIONAL },
    { "weight_block_size", "[" dsa_text(DSA_FP8_BLOCK) ", "
      dsa_text(DSA_FP8_BLOCK) "]", DSA_CONFIG_REQUIRED },
    { "activation_scheme", "\"dynamic\"", DSA_CONFIG_REQUIRED },
    { "scale_fmt", "\"ue8m0\"", DSA_CONFIG_OPTIONAL }
};


/*
 * quant_method w4afp8: routed experts in INT4, other matrices as with fp8.  The
 * names of modules that are not quantized are not used, because the dtype of
 * each tensor says the same.
 */

static const dsa_config_fixed_t  dsa_config_int4[] = {
    { "fmt", "\"e4m3\"", DSA_CONFIG_OPTIONAL },
    { "group_size", dsa_text(DSA_INT4_COLUMNS), DSA_CONFIG_OPTIONAL },
    { "weight_block_size", "[" dsa_text(DSA_FP8_BLOCK) ", "
      dsa_text(DSA_FP8_BLOCK) "]", DSA_CONFIG_OPTIONAL },
    { "activation_scheme", "\"dynamic\"", DSA_CONFIG_OPTIONAL },
    { "linear_activation_scheme", "\"dynamic\"", DSA_CONFIG_OPTIONAL },
    { "scale_fmt", "\"ue8m0\"", DSA_CONFIG_OPTIONAL }
};

static const char  *const dsa_config_int4_names[] = {
    "quant_method", "fmt", "group_size", "weight_block_size",
    "activation_scheme", "linear_activation_scheme", "moe_activation_scheme",
    "scale_fmt", "modules_to_not_convert", "ignored_layers", "ignore", NULL
};


#define dsa_nelts(a)    (sizeof(a) / sizeof((a)[0]))


int
dsa_config_quantization(dsa_model_config_t *config, const dsa_fields_t *top)
{
    uint32_t           i;
    dsa_fields_t       f;
    const dsa_json_t  *v;

    /* an older name, under which other libraries read the same object */

    v = dsa_field(top, "compression_config");

    if (v != NULL) {
        return dsa_field_reject(top, "compression_config", v,
                                "none, and quantization_config instead, with "
                                "the quant_method " DSA_FORMATS_METHODS);
    }

    if (dsa_fields_inner(&f, top, "quantization_config",
                         "quantization_config.")
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (f.object == NULL) {
        return DSA_OK;
    }

    if (dsa_field_is(&f, "quant_method", "w4afp8")) {
        return dsa_config_w4afp8(config, &f);
    }

    if (!dsa_field_is(&f, "quant_method", "fp8")) {
        return dsa_field_reject(&f, "quant_method",
                                dsa_field(&f, "quant_method"),
                                DSA_FORMATS_METHODS);
    }

    for (i = 0; i < dsa_nelts(dsa_config_fp8); i++) {
        if (dsa_config_fixed(&f, &dsa_config_fp8[i]) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    memset(config->format, DSA_FORMAT_FP8, sizeof(config->format));
    config->ue8m0 = dsa_field(&f, "scale_fmt") != NULL;

    return DSA_OK;
}


/*
 * The format of SGLang's W4AFp8Config.  Without moe_activation_scheme the
 * scales of activations are stored, which is all that SGLang reads; "dynamic"
 * has the meaning of activation_scheme.
 */

static int
dsa_config_w4afp8(dsa_model_config_t *config, const dsa_fields_t *f)
{
    uint32_t      i;
    dsa_scales_e  scales;

    if (dsa_fields_known(f, dsa_config_int4_names) != DSA_OK) {
        return DSA_ERROR;
    }

    for (i = 0; i < dsa_nelts(dsa_config_int4); i++) {
        if (dsa_config_fixed(f, &dsa_config_int4[i]) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    scales = DSA_SCALES_STORED;

    if (dsa_field_is(f, "moe_activation_scheme", "dynamic")) {
        scales = DSA_SCALES_GROUP;

    } else if (dsa_field(f, "moe_activation_scheme") != NULL
               && !dsa_field_is(f, "moe_activation_scheme", "static"))
    {
        return dsa_field_reject(f, "moe_activation_scheme",
                                dsa_field(f, "moe_activation_scheme"),
                                "\"static\" or \"dynamic\"");
    }

    dsa_config_int4_experts(config, scales);
    config->ue8m0 = dsa_field(f, "scale_fmt") != NULL;

    return DSA_OK;
}


int
dsa_config_as_w4afp8(dsa_model_config_t *config, const char *dir,
    dsa_err_t *err)
{
    char  path[PATH_MAX];

    if (dsa_file_path(path, dir, dsa_strz("config.json"), err) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_config_int4_experts(config, DSA_SCALES_STORED);

    return dsa_config_check_int4(config, path, err);
}


static void
dsa_config_int4_experts(dsa_model_config_t *config, dsa_scales_e scales)
{
    memset(config->format, DSA_FORMAT_FP8, sizeof(config->format));
    config->format[DSA_MATRICES_EXPERTS] = DSA_FORMAT_INT4;
    config->expert_scales = scales;
}


/* Groups of columns have no remainder. */

int
dsa_config_check_int4(const dsa_model_config_t *c, const char *file,
    dsa_err_t *err)
{
    uint32_t  i;

    const struct {
        const char  *name;
        uint32_t     value;
    } size[] = {
        { "hidden_size", c->hidden_size },
        { "moe_intermediate_size", c->moe_intermediate_size }
    };

    for (i = 0; i < dsa_nelts(size); i++) {
        if (size[i].value % DSA_INT4_COLUMNS != 0) {
            return dsa_error(err, "%s: \"%s\" is %u; expected a multiple of "
                             "%d, the columns of a scale of INT4 experts",
                             file, size[i].name, size[i].value,
                             DSA_INT4_COLUMNS);
        }
    }

    return DSA_OK;
}
