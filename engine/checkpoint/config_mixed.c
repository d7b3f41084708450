
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <string.h>

#include "base/escape.h"
#include "engine/checkpoint/config_parts.h"


#define DSA_MIXED_EXPERTS   ".mlp.experts"
#define DSA_MIXED_PREFIX    256


static int dsa_mixed_top(uint32_t *mixed, const dsa_fields_t *top);
static int dsa_mixed_layers_top(const dsa_model_config_t *config,
    const dsa_fields_t *top);
static int dsa_mixed_modules(const dsa_fields_t *layers);
static int dsa_mixed_module(const dsa_fields_t *module, uint32_t experts);
static int dsa_mixed_experts(const dsa_model_config_t *config,
    const dsa_fields_t *layers);
static int dsa_mixed_fixed(const dsa_fields_t *f,
    const dsa_config_fixed_t *field, size_t n);
static uint32_t dsa_mixed_is_experts(dsa_str_t name);


#define dsa_nelts(a)    (sizeof(a) / sizeof((a)[0]))
#define dsa_text(x)     dsa_text_of(x)
#define dsa_text_of(x)  #x

static const dsa_config_fixed_t  dsa_mixed_fixeds[] = {
    { "quant_algo", "\"" DSA_MIXED_PRECISION "\"", DSA_CONFIG_REQUIRED },
    { "kv_cache_quant_algo", "null", DSA_CONFIG_OPTIONAL }
};

/*
 * The script writes only quant_algo.  TensorRT-LLM reads these fields, too, and
 * other tools write them: pre_quant_scale is true if the checkpoint has a
 * factor for each column of the activations.
 */

static const dsa_config_fixed_t  dsa_mixed_module_fixeds[] = {
    { "group_size", dsa_text(DSA_INT4_COLUMNS), DSA_CONFIG_OPTIONAL },
    { "has_zero_point", "false", DSA_CONFIG_OPTIONAL },
    { "pre_quant_scale", "false", DSA_CONFIG_OPTIONAL }
};

static const dsa_config_fixed_t  dsa_mixed_int4 = {
    "quant_algo", "\"W4A8_AWQ\"", DSA_CONFIG_REQUIRED
};

static const dsa_config_fixed_t  dsa_mixed_fp8 = {
    "quant_algo", "\"FP8_BLOCK_SCALES\"", DSA_CONFIG_REQUIRED
};

static const char  *const dsa_mixed_top_names[] = { "quantization", NULL };

static const char  *const dsa_mixed_names[] = {
    "quant_algo", "kv_cache_quant_algo", NULL
};

static const char  *const dsa_mixed_layers_names[] = {
    "quant_algo", "kv_cache_quant_algo", "quantized_layers", NULL
};

static const char  *const dsa_mixed_module_names[] = {
    "quant_algo", "group_size", "has_zero_point", "pre_quant_scale", NULL
};


int
dsa_config_mixed(uint32_t *mixed, const char *name, dsa_str_t json,
    dsa_err_t *err)
{
    int           rc;
    dsa_fields_t  top;

    *mixed = 0;

    rc = dsa_fields_open(&top, name, json, err);

    if (rc == DSA_OK) {
        rc = dsa_mixed_top(mixed, &top);
    }

    dsa_fields_close(&top);

    return rc;
}


static int
dsa_mixed_top(uint32_t *mixed, const dsa_fields_t *top)
{
    dsa_fields_t       f;
    const dsa_json_t  *v;

    if (dsa_fields_inner(&f, top, "quantization", "quantization.") != DSA_OK) {
        return DSA_ERROR;
    }

    v = dsa_field(&f, "quant_algo");

    if (v == NULL) {
        return DSA_OK;
    }

    if (!dsa_field_is(&f, "quant_algo", DSA_MIXED_PRECISION)) {
        return dsa_field_reject(&f, "quant_algo", v, "\"" DSA_MIXED_PRECISION
                                "\", or " DSA_FORMATS_EXPECTED);
    }

    *mixed = 1;

    return dsa_fields_known(&f, dsa_mixed_names) == DSA_OK
           && dsa_mixed_fixed(&f, dsa_mixed_fixeds,
                              dsa_nelts(dsa_mixed_fixeds))
              == DSA_OK
           ? dsa_fields_known(top, dsa_mixed_top_names) : DSA_ERROR;
}


int
dsa_config_mixed_layers(const dsa_model_config_t *config,
    const char *name, dsa_str_t json, dsa_err_t *err)
{
    int           rc;
    dsa_fields_t  top;

    rc = dsa_fields_open(&top, name, json, err);

    if (rc == DSA_OK) {
        rc = dsa_mixed_layers_top(config, &top);
    }

    dsa_fields_close(&top);

    return rc;
}


static int
dsa_mixed_layers_top(const dsa_model_config_t *config,
    const dsa_fields_t *top)
{
    dsa_fields_t  layers;

    if (dsa_fields_known(top, dsa_mixed_layers_names) != DSA_OK
        || dsa_mixed_fixed(top, dsa_mixed_fixeds, dsa_nelts(dsa_mixed_fixeds))
           != DSA_OK
        || dsa_fields_inner(&layers, top, "quantized_layers",
                            "quantized_layers.")
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (layers.object == NULL) {
        return dsa_field_reject(top, "quantized_layers", NULL, "an object of "
                                "names of modules and objects");
    }

    return dsa_mixed_modules(&layers) == DSA_OK
           ? dsa_mixed_experts(config, &layers) : DSA_ERROR;
}


static int
dsa_mixed_modules(const dsa_fields_t *layers)
{
    int                n;
    char               key[DSA_MIXED_PREFIX / 2], prefix[DSA_MIXED_PREFIX];
    dsa_fields_t       module;
    const dsa_json_t  *v;

    module = *layers;
    module.prefix = prefix;

    for (v = layers->object->first; v != NULL; v = v->next) {

        if (v->type != DSA_JSON_OBJECT) {
            return dsa_field_reject(layers, v->key.data, v, "an object");
        }

        n = (int) dsa_escape(key, sizeof(key), v->key.data, v->key.len);
        (void) snprintf(prefix, sizeof(prefix), "%s%.*s.", layers->prefix, n,
                        key);
        module.object = v;

        if (dsa_mixed_module(&module, dsa_mixed_is_experts(v->key)) != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


/*
 * The experts of a layer of multi-token prediction may have either format,
 * because their tensors say which one it is.  Those of the other layers are
 * checked by dsa_mixed_experts().
 */

static int
dsa_mixed_module(const dsa_fields_t *module, uint32_t experts)
{
    if (dsa_fields_known(module, dsa_mixed_module_names) != DSA_OK
        || dsa_mixed_fixed(module, dsa_mixed_module_fixeds,
                           dsa_nelts(dsa_mixed_module_fixeds))
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (!experts) {
        return dsa_config_fixed(module, &dsa_mixed_fp8);
    }

    if (dsa_field_is(module, "quant_algo", "W4A8_AWQ")
        || dsa_field_is(module, "quant_algo", "FP8_BLOCK_SCALES"))
    {
        return DSA_OK;
    }

    return dsa_config_fixed(module, &dsa_mixed_int4);
}


static int
dsa_mixed_experts(const dsa_model_config_t *config,
    const dsa_fields_t *layers)
{
    char          name[64], prefix[128];
    uint32_t      i;
    dsa_fields_t  module;

    for (i = 0; i < config->num_hidden_layers; i++) {

        if (!dsa_model_config_moe(config, i)) {
            continue;
        }

        (void) snprintf(name, sizeof(name), "model.layers.%u"
                        DSA_MIXED_EXPERTS, i);
        (void) snprintf(prefix, sizeof(prefix), "%s%s.", layers->prefix, name);

        if (dsa_fields_inner(&module, layers, name, prefix) != DSA_OK
            || dsa_config_fixed(&module, &dsa_mixed_int4) != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


static int
dsa_mixed_fixed(const dsa_fields_t *f, const dsa_config_fixed_t *field,
    size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (dsa_config_fixed(f, &field[i]) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


static uint32_t
dsa_mixed_is_experts(dsa_str_t name)
{
    size_t  n;

    n = strlen(DSA_MIXED_EXPERTS);

    return name.len >= n
           && memcmp(name.data + name.len - n, DSA_MIXED_EXPERTS, n) == 0;
}
