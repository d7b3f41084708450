
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <string.h>

#include "engine/checkpoint/config_parts.h"


static int dsa_config_ffns(dsa_model_config_t *config,
    const dsa_fields_t *top);
static int dsa_config_selections(dsa_model_config_t *config,
    const dsa_fields_t *top);
static int dsa_config_types(const dsa_model_config_t *config,
    const dsa_fields_t *top, const char *field, const char *first,
    const char *second, uint8_t *is_second);
static int dsa_config_pattern(const dsa_model_config_t *config,
    const dsa_fields_t *top, uint8_t *shared);
static int dsa_config_frequency(const dsa_model_config_t *config,
    const dsa_fields_t *top, uint8_t *shared);


int
dsa_config_layers(dsa_model_config_t *config,
    const dsa_model_family_t *family, const dsa_fields_t *top)
{
    uint32_t  i;

    config->draft.moe = !family->dense_draft;
    config->draft.selection = family->indexed ? DSA_SELECTION_OWN
                                              : DSA_SELECTION_ALL;

    for (i = 0; i < config->num_hidden_layers; i++) {
        config->layer[i].from = (uint16_t) i;
        config->layer[i].selection = config->draft.selection;
    }

    if (dsa_config_ffns(config, top) != DSA_OK) {
        return DSA_ERROR;
    }

    return family->indexed ? dsa_config_selections(config, top) : DSA_OK;
}


/*
 * Layers with experts follow from first_k_dense_replace and moe_layer_freq.
 * Files that were written by transformers 5 repeat them in mlp_layer_types.
 */

static int
dsa_config_ffns(dsa_model_config_t *config, const dsa_fields_t *top)
{
    uint32_t  i, freq;
    uint8_t   sparse[DSA_MODEL_LAYERS];

    freq = 1;

    if (dsa_field(top, "moe_layer_freq") != NULL
        && dsa_field_integer(top, "moe_layer_freq", 1, 1024, &freq) != DSA_OK)
    {
        return DSA_ERROR;
    }

    for (i = 0; i < config->num_hidden_layers; i++) {
        config->layer[i].moe = i >= config->first_k_dense_replace
                               && i % freq == 0;
    }

    if (dsa_field(top, "mlp_layer_types") == NULL) {
        return DSA_OK;
    }

    if (dsa_config_types(config, top, "mlp_layer_types", "dense", "sparse",
                         sparse)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    for (i = 0; i < config->num_hidden_layers; i++) {
        if (sparse[i] != config->layer[i].moe) {
            return dsa_error(top->err, "%s: \"mlp_layer_types[%u]\" is \"%s\"; "
                             "expected what follows from "
                             "first_k_dense_replace, which is %u, and "
                             "moe_layer_freq, which is %u", top->file, i,
                             sparse[i] ? "sparse" : "dense",
                             config->first_k_dense_replace, freq);
        }
    }

    return DSA_OK;
}


/*
 * Which layers share a selection is in the first of these fields that the file
 * has: indexer_types, index_topk_pattern, index_topk_freq.  A shared layer uses
 * that of the nearest layer below it that has an indexer.
 */

static int
dsa_config_selections(dsa_model_config_t *config, const dsa_fields_t *top)
{
    int                  rc;
    uint8_t              shared[DSA_MODEL_LAYERS];
    uint32_t             i, from;
    const char          *field;
    dsa_layer_config_t  *layer;

    memset(shared, 0, sizeof(shared));

    if (dsa_field(top, "indexer_types") != NULL) {
        field = "indexer_types";
        rc = dsa_config_types(config, top, field, "full", "shared", shared);

    } else if (dsa_field(top, "index_topk_pattern") != NULL) {
        field = "index_topk_pattern";
        rc = dsa_config_pattern(config, top, shared);

    } else {
        field = "index_topk_freq";
        rc = dsa_config_frequency(config, top, shared);
    }

    if (rc != DSA_OK) {
        return DSA_ERROR;
    }

    if (shared[0]) {
        return dsa_error(top->err, "%s: by \"%s\", layer 0 shares a "
                         "selection; expected that it has an indexer, because "
                         "no layer is below it", top->file, field);
    }

    from = 0;

    for (i = 0; i < config->num_hidden_layers; i++) {
        layer = &config->layer[i];
        from = shared[i] ? from : i;

        layer->from = (uint16_t) from;
        layer->selection = shared[i] ? DSA_SELECTION_SHARED
                                     : DSA_SELECTION_OWN;
    }

    return DSA_OK;
}


/* Reads a list with one of two words for each layer. */

static int
dsa_config_types(const dsa_model_config_t *config, const dsa_fields_t *top,
    const char *field, const char *first, const char *second,
    uint8_t *is_second)
{
    char               expected[96];
    uint32_t           i;
    const dsa_json_t  *list, *v;

    list = dsa_field(top, field);

    if (list->type != DSA_JSON_ARRAY || list->n != config->num_hidden_layers) {
        goto rejected;
    }

    for (v = list->first, i = 0; v != NULL; v = v->next, i++) {
        if (v->type != DSA_JSON_STRING
            || (!dsa_str_eqz(v->text, first) && !dsa_str_eqz(v->text, second)))
        {
            goto rejected;
        }

        is_second[i] = (uint8_t) dsa_str_eqz(v->text, second);
    }

    return DSA_OK;

rejected:

    (void) snprintf(expected, sizeof(expected), "a list of num_hidden_layers, "
                    "%u, times \"%s\" or \"%s\"", config->num_hidden_layers,
                    first, second);

    return dsa_field_reject(top, field, list, expected);
}


/* index_topk_pattern: a letter for each layer, F (full) or S (shared). */

static int
dsa_config_pattern(const dsa_model_config_t *config, const dsa_fields_t *top,
    uint8_t *shared)
{
    char               expected[96];
    uint32_t           i;
    const dsa_json_t  *v;

    v = dsa_field(top, "index_topk_pattern");

    if (v->type != DSA_JSON_STRING
        || v->text.len != config->num_hidden_layers)
    {
        goto rejected;
    }

    for (i = 0; i < config->num_hidden_layers; i++) {
        if (v->text.data[i] != 'F' && v->text.data[i] != 'S') {
            goto rejected;
        }

        shared[i] = v->text.data[i] == 'S';
    }

    return DSA_OK;

rejected:

    (void) snprintf(expected, sizeof(expected), "a string of "
                    "num_hidden_layers, %u, letters \"F\" or \"S\"",
                    config->num_hidden_layers);

    return dsa_field_reject(top, "index_topk_pattern", v, expected);
}


/*
 * A layer is full if max(layer - offset + 1, 0) is a multiple of the
 * frequency, as in transformers' glm_moe_dsa.
 */

static int
dsa_config_frequency(const dsa_model_config_t *config, const dsa_fields_t *top,
    uint8_t *shared)
{
    uint32_t  i, freq, offset;

    freq = 1;
    offset = 0;

    if (dsa_field(top, "index_topk_freq") != NULL
        && dsa_field_integer(top, "index_topk_freq", 1, DSA_MODEL_LAYERS,
                             &freq)
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    /* with a frequency of 1 every layer is full, whatever the offset is */

    if (freq > 1
        && dsa_field_integer(top, "index_skip_topk_offset", 0,
                             DSA_MODEL_LAYERS, &offset)
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    for (i = 0; i < config->num_hidden_layers; i++) {
        shared[i] = i + 1 > offset && (i + 1 - offset) % freq != 0;
    }

    return DSA_OK;
}
