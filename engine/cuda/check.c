
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cuda_runtime_api.h>
#include <stdio.h>

#include "engine/cuda/rank.h"


static int dsa_check_shape(const dsa_model_config_t *s, dsa_err_t *err);
static int dsa_check_formats(const dsa_model_config_t *s, dsa_err_t *err);
static int dsa_check_layers(const dsa_model_config_t *s, dsa_err_t *err);


int
dsa_cuda_check_config(const dsa_model_config_t *s, dsa_err_t *err)
{
    uint32_t  i;

    const struct {
        const char  *name;
        uint32_t     value;
        uint32_t     expected;
        uint32_t     used;
    } geometry[] = {
        { "kv_lora_rank", s->kv_lora_rank, DSA_CUDA_LATENT, 1 },
        { "qk_rope_head_dim", s->qk_rope_head_dim, DSA_CUDA_ROPE, 1 },
        { "index_head_dim", s->index_head_dim, DSA_CUDA_INDEX,
          !dsa_model_config_dense(s) }
    };

    const struct {
        const char  *name;
        uint32_t     value;
        uint32_t     unit;
        uint32_t     most;
    } size[] = {
        { "hidden_size", s->hidden_size, 128, 16384 },
        { "q_lora_rank", s->q_lora_rank, 128, 16384 },
        { "intermediate_size", s->intermediate_size, 128, 1 << 20 },
        { "moe_intermediate_size", s->moe_intermediate_size, 128, 1 << 20 },
        { "num_attention_heads", s->num_attention_heads, 1, 128 },
        { "index_n_heads", s->index_n_heads, 1, 64 },
        { "index_topk", s->index_topk, 8, 2048 },
        { "vocab_size", s->vocab_size, 8, 524288 },
        { "n_routed_experts", s->n_routed_experts, 8, DSA_CUDA_EXPERTS },
        { "num_experts_per_tok", s->num_experts_per_tok, 1, DSA_CUDA_CHOICES }
    };

    if (dsa_check_formats(s, err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (dsa_check_layers(s, err) != DSA_OK) {
        return DSA_ERROR;
    }

    for (i = 0; i < sizeof(geometry) / sizeof(geometry[0]); i++) {
        if (geometry[i].value != geometry[i].expected && geometry[i].used) {
            return dsa_error(err, "config.json: \"%s\" is %u; \"backend "
                             "cuda\" expects %u", geometry[i].name,
                             geometry[i].value, geometry[i].expected);
        }
    }

    if (dsa_check_shape(s, err) != DSA_OK) {
        return DSA_ERROR;
    }

    for (i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
        if (size[i].value % size[i].unit != 0 || size[i].value > size[i].most)
        {
            return dsa_error(err, "config.json: \"%s\" is %u; \"backend "
                             "cuda\" expects a multiple of %u up to %u",
                             size[i].name, size[i].value, size[i].unit,
                             size[i].most);
        }
    }

    return DSA_OK;
}


/* There are kernels for a head of these sizes. */

static int
dsa_check_shape(const dsa_model_config_t *s, dsa_err_t *err)
{
    char                           list[256];
    size_t                         i, n;
    const dsa_cuda_heads_shape_t  *shape;

    if (dsa_cuda_heads_find(s->qk_nope_head_dim, s->v_head_dim) != NULL) {
        return DSA_OK;
    }

    for (i = 0, n = 0; n < sizeof(list); i++) {
        shape = dsa_cuda_heads_shape(i);

        if (shape == NULL) {
            break;
        }

        n += (size_t) snprintf(list + n, sizeof(list) - n, "%s%u and %u",
                               i > 0 ? ", or " : "", shape->nope, shape->v);
    }

    return dsa_error(err, "config.json: \"qk_nope_head_dim\" is %u and "
                     "\"v_head_dim\" is %u; \"backend cuda\" expects %s",
                     s->qk_nope_head_dim, s->v_head_dim, list);
}


static int
dsa_check_formats(const dsa_model_config_t *s, dsa_err_t *err)
{
    /* these are parts of one product, or have the same workspace */

    if (s->format[DSA_MATRICES_INDEXER] != s->format[DSA_MATRICES_ATTENTION]
        || s->format[DSA_MATRICES_DENSE] != s->format[DSA_MATRICES_SHARED])
    {
        return dsa_error(err, "config.json: the weights of the indexer and of "
                         "attention, or of dense MLPs and of shared experts, "
                         "differ in format; \"backend cuda\" expects FP8 in "
                         "128x128 blocks for both, or BF16 for both");
    }

    return DSA_OK;
}


/*
 * Each layer attends to positions that it or an earlier layer selects, or all
 * layers attend to all positions.
 */

static int
dsa_check_layers(const dsa_model_config_t *s, dsa_err_t *err)
{
    uint32_t                   i;
    const dsa_layer_config_t  *layer;

    for (i = 0; i < s->num_hidden_layers; i++) {
        layer = &s->layer[i];

        if (layer->selection == DSA_SELECTION_ALL
            && !dsa_model_config_dense(s))
        {
            return dsa_error(err, "config.json: layer %u attends to all "
                             "positions, and others do not; \"backend cuda\" "
                             "expects an indexer in this or in an earlier "
                             "layer, or in none", i);
        }
    }

    return DSA_OK;
}


int
dsa_cuda_check_limits(const dsa_cuda_rank_t *rank, dsa_err_t *err)
{
    if (rank->drafts && rank->config.num_nextn_predict_layers == 0) {
        return dsa_error(err, "config.json: \"num_nextn_predict_layers\" is "
                         "missing or 0, so that there is no draft layer; "
                         "\"speculate\" expects 1 or more");
    }

    if (rank->drafts && !rank->dense
        && rank->config.draft.selection != DSA_SELECTION_OWN)
    {
        return dsa_error(err, "config.json: the draft layer attends to all "
                         "positions, and others do not; \"backend cuda\" "
                         "expects an indexer in it");
    }

    if (rank->kv_bf16 && !rank->dense) {
        return dsa_error(err, "\"kv bf16\" is for models whose layers attend "
                         "to all positions; this model has an indexer, and "
                         "\"backend cuda\" expects kv fp8");
    }

    if (rank->context > DSA_CUDA_CONTEXT) {
        return dsa_error(err, "a context of %u tokens is too long for "
                         "\"backend cuda\"; \"context_length\" can limit it "
                         "to at most %u", rank->context, DSA_CUDA_CONTEXT);
    }

    if (rank->max_seqs == 0 || rank->max_seqs > rank->max_tokens) {
        return dsa_error(err, "a step cannot have %u sequences and %u tokens; "
                         "expected at least one sequence, and at least as "
                         "many tokens as sequences", rank->max_seqs,
                         rank->max_tokens);
    }

    return DSA_OK;
}


int
dsa_cuda_check_device(uint32_t device, dsa_err_t *err)
{
    int                    rc, n;
    struct cudaDeviceProp  prop;

    n = 0;
    rc = cudaGetDeviceCount(&n);

    if (rc != 0 || n == 0) {
        return dsa_error(err, "no GPU can be used: %s",
                         rc != 0 ? dsa_cuda_error(rc)
                                 : "this machine has none");
    }

    if (device >= (uint32_t) n) {
        return dsa_error(err, "GPU %u does not exist; expected a number below "
                         "%d (\"gpus\" and \"replicas\" of engine.conf)",
                         device, n);
    }

    rc = cudaGetDeviceProperties(&prop, (int) device);

    if (rc != 0) {
        return dsa_error(err, "GPU %u: %s", device, dsa_cuda_error(rc));
    }

    if (prop.major != 9 || prop.minor != 0) {
        return dsa_error(err, "GPU %u is a %s of compute capability %d.%d; "
                         "expected 9.0 (H100, H200)", device, prop.name,
                         prop.major, prop.minor);
    }

    return DSA_OK;
}
