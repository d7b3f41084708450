
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/file.h"
#include "engine/checkpoint/fingerprint.h"
#include "engine/checkpoint/shards.h"
#include "engine/checkpoint/tensor_table.h"
#include "engine/checkpoint/weights.h"


_Static_assert(sizeof(((dsa_weights_t *) NULL)->sampled_fingerprint)
               > DSA_SAMPLED_LEN
               && sizeof(((dsa_weights_t *) NULL)->config_hash)
                  == DSA_LEAF_HASH,
               "a fingerprint does not fit dsa_weights_t");


/* dsa_weights_t, and the data to which it points. */

typedef struct {
    dsa_weights_t               weights;        /* first: the public part has
                                                   the address of the whole */
    dsa_shards_t                shards;
    dsa_mlp_t                  *experts;        /* of all layers */
} dsa_checkpoint_t;


static dsa_weights_t *dsa_weights_open_as(const char *dir, uint32_t unread,
    dsa_err_t *err);
static int dsa_weights_load(dsa_checkpoint_t *ck, const char *dir,
    uint32_t unread, dsa_err_t *err);
static uint32_t dsa_weights_layers(const dsa_model_config_t *config);
static int dsa_weights_tensors(dsa_checkpoint_t *ck, const char *dir,
    dsa_str_t config, uint32_t unread, dsa_err_t *err);
static int dsa_weights_model(dsa_checkpoint_t *ck, dsa_tensor_table_t *t);
static void dsa_weights_layer(dsa_tensor_table_t *t,
    const dsa_model_config_t *s, const dsa_layer_config_t *config,
    dsa_layer_t *layer, uint32_t n, dsa_mlp_t *experts);
static void dsa_weights_attention(dsa_tensor_table_t *t,
    const dsa_model_config_t *s, dsa_layer_t *layer, uint32_t n);
static void dsa_weights_indexer(dsa_tensor_table_t *t,
    const dsa_model_config_t *s, dsa_layer_t *layer, uint32_t n);
static void dsa_weights_draft(dsa_tensor_table_t *t,
    const dsa_model_config_t *s, dsa_draft_weights_t *draft,
    dsa_mlp_t *experts);
static void dsa_weights_mtp_extras(dsa_tensor_table_t *t,
    const dsa_model_config_t *s, dsa_draft_weights_t *draft, uint32_t n);
static void dsa_weights_mlp(dsa_tensor_table_t *t, const dsa_model_config_t *s,
    dsa_mlp_t *mlp, uint32_t inter, dsa_matrices_e kind);


dsa_weights_t *
dsa_weights_open(const char *dir, dsa_err_t *err)
{
    return dsa_weights_open_as(dir, 0, err);
}


dsa_weights_t *
dsa_weights_open_unread(const char *dir, dsa_err_t *err)
{
    return dsa_weights_open_as(dir, 1, err);
}


static dsa_weights_t *
dsa_weights_open_as(const char *dir, uint32_t unread, dsa_err_t *err)
{
    dsa_checkpoint_t  *ck;

    ck = calloc(1, sizeof(dsa_checkpoint_t));
    if (ck == NULL) {
        (void) dsa_error(err, "%s: out of memory", dir);
        return NULL;
    }

    ck->weights.shards = &ck->shards;

    if (dsa_weights_load(ck, dir, unread, err) != DSA_OK) {
        dsa_weights_close(&ck->weights);
        return NULL;
    }

    return &ck->weights;
}


void
dsa_weights_close(dsa_weights_t *w)
{
    dsa_checkpoint_t  *ck;

    if (w == NULL) {
        return;
    }

    ck = (dsa_checkpoint_t *) w;

    dsa_shards_close(&ck->shards);

    if (w->made != NULL) {
        (void) munmap(w->made, w->made_size);
    }

    free(ck->experts);
    free(w->layer);
    free(ck);
}


void
dsa_weights_stored(float scale[2], const dsa_mlp_t *expert, uint32_t n)
{
    uint32_t  e;

    scale[0] = 0;
    scale[1] = 0;

    for (e = 0; e < n; e++) {
        scale[0] = fmaxf(scale[0], fmaxf(expert[e].gate.input,
                                         expert[e].up.input));
        scale[1] = fmaxf(scale[1], expert[e].down.input);
    }
}


static int
dsa_weights_load(dsa_checkpoint_t *ck, const char *dir, uint32_t unread,
    dsa_err_t *err)
{
    int        rc;
    char       path[PATH_MAX];
    dsa_buf_t  config;

    if (dsa_file_path(path, dir, dsa_strz("config.json"), err) != DSA_OK) {
        return DSA_ERROR;
    }

    memset(&config, 0, sizeof(dsa_buf_t));

    rc = dsa_file_read(path, DSA_MODEL_CONFIG_MAX, &config, err);

    if (rc == DSA_OK) {
        rc = dsa_model_config_parse(&ck->weights.config, path, config.data,
                                    config.len, err);
    }

    /*
     * The fingerprints cover the formats that other files describe.  A JSON
     * text has an end, so the texts one after another are not another one.
     */

    if (rc == DSA_OK) {
        rc = dsa_model_config_beside(&ck->weights.config, dir, &config, err);
    }

    if (rc == DSA_OK && config.failed) {
        rc = dsa_error(err, "%s: out of memory", dir);
    }

    if (rc == DSA_OK) {
        rc = dsa_fingerprint_leaf(ck->weights.config_hash, config.data,
                                  config.len, err);
    }

    if (rc == DSA_OK) {
        rc = dsa_shards_open(&ck->shards, dir,
                             dsa_weights_layers(&ck->weights.config), err);
    }

    if (rc == DSA_OK) {
        rc = dsa_weights_tensors(ck, dir, dsa_str(config.data, config.len),
                                 unread, err);
    }

    dsa_buf_free(&config);

    return rc;
}


/*
 * Returns the layers whose tensors must be where the index says.  The script of
 * TensorRT-LLM names those of multi-token prediction in the index and leaves
 * them out.
 */

static uint32_t
dsa_weights_layers(const dsa_model_config_t *config)
{
    return config->format[DSA_MATRICES_EXPERTS] == DSA_FORMAT_INT4
           && config->expert_scales == DSA_SCALES_STORED
           ? config->num_hidden_layers : DSA_SHARDS_ALL;
}


static int
dsa_weights_tensors(dsa_checkpoint_t *ck, const char *dir, dsa_str_t config,
    uint32_t unread, dsa_err_t *err)
{
    int                 rc;
    dsa_tensor_table_t  table;

    rc = dsa_tensors_open(&table, &ck->shards, dir, err);

    if (rc == DSA_OK) {
        table.unread = unread;

        if (dsa_weights_model(ck, &table) != DSA_OK) {
            rc = dsa_error(err, "%s: out of memory", dir);
        }
    }

    if (rc == DSA_OK) {
        rc = dsa_tensors_report(&table, dir, err);
    }

    if (rc == DSA_OK && !unread) {
        rc = dsa_fingerprint_sampled(ck->weights.sampled_fingerprint, dir,
                                     config, &ck->shards, &table, err);
    }

    dsa_tensors_close(&table);

    return rc;
}


/* Looks up every tensor of a model.  DSA_ERROR: out of memory. */

static int
dsa_weights_model(dsa_checkpoint_t *ck, dsa_tensor_table_t *t)
{
    uint32_t                   n, moe;
    dsa_mlp_t                 *experts, *draft;
    dsa_weights_t             *w;
    const dsa_model_config_t  *s;

    w = &ck->weights;
    s = &w->config;

    w->layer = calloc(s->num_hidden_layers, sizeof(dsa_layer_t));
    if (w->layer == NULL) {
        return DSA_ERROR;
    }

    moe = dsa_model_config_moe_layers(s);

    /* one more set of experts, that of the draft layer */

    ck->experts = calloc((size_t) (moe + 1) * s->n_routed_experts,
                         sizeof(dsa_mlp_t));
    if (ck->experts == NULL) {
        return DSA_ERROR;
    }

    draft = ck->experts;
    experts = draft + s->n_routed_experts;

    dsa_tensors_prefix(t, "model.");
    dsa_tensors_matrix(t, &w->embed, "embed_tokens", s->vocab_size,
                       s->hidden_size);

    for (n = 0; n < s->num_hidden_layers; n++) {
        dsa_weights_layer(t, s, &s->layer[n], &w->layer[n], n, experts);

        if (w->layer[n].moe) {
            experts += s->n_routed_experts;
        }
    }

    dsa_tensors_prefix(t, "model.");
    dsa_tensors_vector(t, &w->norm, "norm.weight", s->hidden_size);

    dsa_tensors_prefix(t, "%s", "");
    dsa_tensors_matrix(t, &w->head, "lm_head", s->vocab_size, s->hidden_size);

    dsa_weights_draft(t, s, &w->draft, draft);

    return DSA_OK;
}


/*
 * Looks up the layers of multi-token prediction.  The draft layer is the first
 * one.
 */

static void
dsa_weights_draft(dsa_tensor_table_t *t, const dsa_model_config_t *s,
    dsa_draft_weights_t *draft, dsa_mlp_t *experts)
{
    uint32_t             n, end;
    dsa_draft_weights_t  unused;

    n = s->num_hidden_layers;
    end = n + s->num_nextn_predict_layers;

    if (n == end) {
        (void) snprintf(draft->fault, sizeof(draft->fault),
                        "\"num_nextn_predict_layers\" of config.json is 0; "
                        "expected 1 or more");
        return;
    }

    dsa_tensors_try(t);
    dsa_weights_layer(t, s, &s->draft, &draft->layer, n, experts);
    dsa_weights_mtp_extras(t, s, draft, n);
    dsa_tensors_tried(t, draft->fault, sizeof(draft->fault));

    t->unused = 1;

    for (n++; n < end; n++) {
        dsa_weights_layer(t, s, &s->draft, &unused.layer, n, experts);
        dsa_weights_mtp_extras(t, s, &unused, n);
    }
}


static void
dsa_weights_layer(dsa_tensor_table_t *t, const dsa_model_config_t *s,
    const dsa_layer_config_t *config, dsa_layer_t *layer, uint32_t n,
    dsa_mlp_t *experts)
{
    uint32_t  i;

    memset(layer, 0, sizeof(dsa_layer_t));
    layer->moe = config->moe;

    dsa_tensors_prefix(t, "model.layers.%u.", n);

    dsa_tensors_vector(t, &layer->input_layernorm, "input_layernorm.weight",
                       s->hidden_size);
    dsa_tensors_vector(t, &layer->post_attention_layernorm,
                       "post_attention_layernorm.weight", s->hidden_size);

    dsa_weights_attention(t, s, layer, n);

    if (config->selection == DSA_SELECTION_OWN) {
        dsa_weights_indexer(t, s, layer, n);
    }

    dsa_tensors_prefix(t, "model.layers.%u.mlp.", n);

    if (!layer->moe) {
        dsa_weights_mlp(t, s, &layer->mlp, s->intermediate_size,
                        DSA_MATRICES_DENSE);
        return;
    }

    dsa_tensors_matrix(t, &layer->router, "gate", s->n_routed_experts,
                       s->hidden_size);
    dsa_tensors_vector(t, &layer->router_bias, "gate.e_score_correction_bias",
                       s->n_routed_experts);

    dsa_tensors_prefix(t, "model.layers.%u.mlp.shared_experts.", n);
    dsa_weights_mlp(t, s, &layer->shared,
                    s->n_shared_experts * s->moe_intermediate_size,
                    DSA_MATRICES_SHARED);

    layer->expert = experts;

    for (i = 0; i < s->n_routed_experts; i++) {
        dsa_tensors_prefix(t, "model.layers.%u.mlp.experts.%u.", n, i);
        dsa_weights_mlp(t, s, &experts[i], s->moe_intermediate_size,
                        DSA_MATRICES_EXPERTS);
    }
}


static void
dsa_weights_attention(dsa_tensor_table_t *t, const dsa_model_config_t *s,
    dsa_layer_t *layer, uint32_t n)
{
    uint32_t  rows;

    rows = s->num_attention_heads
           * (s->qk_nope_head_dim + s->qk_rope_head_dim);

    t->fp8 = s->format[DSA_MATRICES_ATTENTION] == DSA_FORMAT_FP8;
    dsa_tensors_prefix(t, "model.layers.%u.self_attn.", n);

    if (s->q_lora_rank != 0) {
        dsa_tensors_linear(t, &layer->q_a_proj, "q_a_proj", s->q_lora_rank,
                           s->hidden_size);
        dsa_tensors_vector(t, &layer->q_a_layernorm, "q_a_layernorm.weight",
                           s->q_lora_rank);
        dsa_tensors_linear(t, &layer->q_b_proj, "q_b_proj", rows,
                           s->q_lora_rank);

    } else {
        dsa_tensors_linear(t, &layer->q_b_proj, "q_proj", rows,
                           s->hidden_size);
    }

    dsa_tensors_linear(t, &layer->kv_a_proj_with_mqa, "kv_a_proj_with_mqa",
                       s->kv_lora_rank + s->qk_rope_head_dim, s->hidden_size);
    dsa_tensors_vector(t, &layer->kv_a_layernorm, "kv_a_layernorm.weight",
                       s->kv_lora_rank);
    dsa_tensors_linear(t, &layer->kv_b_proj, "kv_b_proj",
                       s->num_attention_heads
                       * (s->qk_nope_head_dim + s->v_head_dim),
                       s->kv_lora_rank);
    dsa_tensors_linear(t, &layer->o_proj, "o_proj", s->hidden_size,
                       s->num_attention_heads * s->v_head_dim);
}


static void
dsa_weights_indexer(dsa_tensor_table_t *t, const dsa_model_config_t *s,
    dsa_layer_t *layer, uint32_t n)
{
    t->fp8 = s->format[DSA_MATRICES_INDEXER] == DSA_FORMAT_FP8;
    dsa_tensors_prefix(t, "model.layers.%u.self_attn.indexer.", n);

    dsa_tensors_linear(t, &layer->index_wq_b, "wq_b",
                       s->index_n_heads * s->index_head_dim, s->q_lora_rank);
    dsa_tensors_linear(t, &layer->index_wk, "wk", s->index_head_dim,
                       s->hidden_size);
    dsa_tensors_vector(t, &layer->index_k_norm_weight, "k_norm.weight",
                       s->index_head_dim);
    dsa_tensors_vector(t, &layer->index_k_norm_bias, "k_norm.bias",
                       s->index_head_dim);
    dsa_tensors_matrix(t, &layer->index_weights_proj, "weights_proj",
                       s->index_n_heads, s->hidden_size);
}


/*
 * Looks up what a layer of multi-token prediction has besides a decoder layer.
 */

static void
dsa_weights_mtp_extras(dsa_tensor_table_t *t, const dsa_model_config_t *s,
    dsa_draft_weights_t *draft, uint32_t n)
{
    uint32_t      hidden, unused;
    dsa_tensor_t  copy;

    hidden = s->hidden_size;

    dsa_tensors_prefix(t, "model.layers.%u.", n);

    dsa_tensors_vector(t, &draft->enorm, "enorm.weight", hidden);
    dsa_tensors_vector(t, &draft->hnorm, "hnorm.weight", hidden);
    dsa_tensors_matrix(t, &draft->eh_proj, "eh_proj", hidden, 2 * hidden);
    dsa_tensors_vector(t, &draft->norm, "shared_head.norm.weight", hidden);

    unused = t->unused;
    t->unused = 1;

    dsa_tensors_matrix(t, &copy, "embed_tokens", s->vocab_size, hidden);
    dsa_tensors_matrix(t, &copy, "shared_head.head", s->vocab_size, hidden);

    t->unused = unused;
}


static void
dsa_weights_mlp(dsa_tensor_table_t *t, const dsa_model_config_t *s,
    dsa_mlp_t *mlp, uint32_t inter, dsa_matrices_e kind)
{
    uint32_t  hidden, stored;

    hidden = s->hidden_size;
    t->fp8 = s->format[kind] == DSA_FORMAT_FP8;

    if (s->format[kind] == DSA_FORMAT_INT4) {
        stored = s->expert_scales == DSA_SCALES_STORED;

        /* TensorRT-LLM's script names the scales of activations w1, w2, w3 */

        dsa_tensors_int4(t, &mlp->gate, "gate_proj", "w1", inter, hidden,
                         stored);
        dsa_tensors_int4(t, &mlp->up, "up_proj", "w3", inter, hidden, stored);
        dsa_tensors_int4(t, &mlp->down, "down_proj", "w2", hidden, inter,
                         stored);
        return;
    }

    dsa_tensors_linear(t, &mlp->gate, "gate_proj", inter, hidden);
    dsa_tensors_linear(t, &mlp->up, "up_proj", inter, hidden);
    dsa_tensors_linear(t, &mlp->down, "down_proj", hidden, inter);
}
