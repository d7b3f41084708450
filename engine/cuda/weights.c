
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/backend.h"
#include "engine/cuda/loader.h"
#include "engine/cuda/weights.h"
#include "kernels/core/fp8.h"
#include "kernels/core/int4.h"


#define DSA_RANDOM_STORED   0.01f       /* of activations of up to 4.5 */


/*
 * The layer that is visited.  Without files, file is a layer without tensors.
 */

typedef struct {
    dsa_loader_t               *ld;
    const dsa_model_config_t   *config;
    const dsa_layer_config_t   *shape;
    const dsa_layer_t          *file;
    uint32_t                    number;
} dsa_load_layer_t;


static void dsa_load_layer(const dsa_load_layer_t *v, dsa_cuda_layer_t *l,
    uint32_t *routes);
static void dsa_load_draft(dsa_load_layer_t *v, dsa_cuda_weights_t *w,
    const dsa_draft_weights_t *file, uint32_t *routes);
static void dsa_load_norms(const dsa_load_layer_t *v, dsa_cuda_layer_t *l);
static void dsa_load_attention(const dsa_load_layer_t *v,
    dsa_cuda_layer_t *l);
static void dsa_load_indexer(const dsa_load_layer_t *v, dsa_cuda_layer_t *l);
static void dsa_load_mlp(const dsa_load_layer_t *v, dsa_cuda_layer_t *l);
static void dsa_load_experts(const dsa_load_layer_t *v, dsa_cuda_layer_t *l);


/* Returns 1 if the layer has an indexer of its own. */

static int
dsa_load_indexed(const dsa_load_layer_t *v)
{
    return v->shape->selection == DSA_SELECTION_OWN;
}


/* Describes one matrix [rows, cols] of one tensor. */

static void
dsa_load_one(dsa_load_matrix_t *m, const dsa_load_layer_t *v,
    const dsa_tensor_t **t, dsa_matrices_e kind, dsa_cut_e cut, uint32_t rows,
    uint32_t cols, const char *name)
{
    memset(m, 0, sizeof(dsa_load_matrix_t));

    m->tensor = t;
    m->format = v->config->format[kind];
    m->rows[0] = rows;
    m->parts = 1;
    m->cols = cols;
    m->n = 1;
    m->cut = cut;
    m->name = name;
    m->layer = v->number;
}


/*
 * Visits all weights.  The order determines the address and the random numbers
 * of each.  files is NULL if nothing is read.
 */

static void
dsa_load_all(dsa_loader_t *ld, dsa_cuda_weights_t *w,
    const dsa_model_config_t *s, const dsa_weights_t *files)
{
    uint32_t          i, routes;
    dsa_load_layer_t  v;

    static const dsa_layer_t  none;

    w->embed = dsa_load_bf16(ld, files != NULL ? &files->embed : NULL,
                             DSA_CUT_VOCAB_ROWS, s->vocab_size,
                             s->hidden_size, 1.0f, "embed_tokens", 0);
    w->norm = dsa_load_vector(ld, files != NULL ? &files->norm : NULL,
                              s->hidden_size, 1.0f, 0.1f);

    v.ld = ld;
    v.config = s;
    routes = 0;

    for (i = 0; i < s->num_hidden_layers; i++) {
        v.shape = &s->layer[i];
        v.file = files != NULL ? &files->layer[i] : &none;
        v.number = i;

        dsa_load_layer(&v, &w->layer[i], &routes);
    }

    w->at_kv = (s->q_lora_rank + DSA_FP8_GROUP - 1) / DSA_FP8_GROUP
               * DSA_FP8_GROUP;
    w->at_k = w->at_kv + (s->kv_lora_rank + s->qk_rope_head_dim
                          + DSA_FP8_GROUP - 1) / DSA_FP8_GROUP
                         * DSA_FP8_GROUP;

    /* in front of it is a norm, and a uniform number has a third of variance */

    w->head = dsa_load_bf16(ld, files != NULL ? &files->head : NULL,
                            DSA_CUT_VOCAB_ROWS, s->vocab_size, s->hidden_size,
                            DSA_RANDOM_LOGITS
                            * sqrtf(3.0f / (float) s->hidden_size),
                            "lm_head", 0);

    /* behind the others, which are the same with and without it */

    if (w->drafts) {
        dsa_load_draft(&v, w, files != NULL ? &files->draft : NULL, &routes);
    }
}


static void
dsa_load_layer(const dsa_load_layer_t *v, dsa_cuda_layer_t *l,
    uint32_t *routes)
{
    l->moe = v->shape->moe;
    l->routes = *routes;
    *routes += l->moe;

    dsa_load_norms(v, l);
    dsa_load_attention(v, l);

    if (dsa_load_indexed(v)) {
        dsa_load_indexer(v, l);
    }

    dsa_load_mlp(v, l);

    if (l->moe) {
        dsa_load_experts(v, l);
    }
}


/* Places the draft layer, whose embedding and head are the model's. */

static void
dsa_load_draft(dsa_load_layer_t *v, dsa_cuda_weights_t *w,
    const dsa_draft_weights_t *file, uint32_t *routes)
{
    uint32_t                   hidden;
    const dsa_model_config_t  *s;

    static const dsa_draft_weights_t  none;

    s = v->config;
    hidden = s->hidden_size;
    file = file != NULL ? file : &none;

    v->shape = &s->draft;
    v->file = &file->layer;
    v->number = s->num_hidden_layers;

    w->draft.enorm = dsa_load_vector(v->ld, &file->enorm, hidden, 1.0f, 0.1f);
    w->draft.hnorm = dsa_load_vector(v->ld, &file->hnorm, hidden, 1.0f, 0.1f);
    w->draft.norm = dsa_load_vector(v->ld, &file->norm, hidden, 1.0f, 0.1f);
    w->draft.eh_proj = dsa_load_bf16(v->ld, &file->eh_proj, DSA_CUT_NONE,
                                     hidden, 2 * hidden, 0.02f, "eh_proj",
                                     v->number);

    dsa_load_layer(v, &w->layer[v->number], routes);
}


static void
dsa_load_norms(const dsa_load_layer_t *v, dsa_cuda_layer_t *l)
{
    const dsa_layer_t         *f;
    const dsa_model_config_t  *s;

    f = v->file;
    s = v->config;

    l->input_norm = dsa_load_vector(v->ld, &f->input_layernorm,
                                    s->hidden_size, 1.0f, 0.1f);
    l->post_norm = dsa_load_vector(v->ld, &f->post_attention_layernorm,
                                   s->hidden_size, 1.0f, 0.1f);

    if (s->q_lora_rank != 0) {
        l->q_norm = dsa_load_vector(v->ld, &f->q_a_layernorm, s->q_lora_rank,
                                    1.0f, 0.1f);
    }

    l->kv_norm = dsa_load_vector(v->ld, &f->kv_a_layernorm, s->kv_lora_rank,
                                 1.0f, 0.1f);

    if (!dsa_load_indexed(v)) {
        return;
    }

    l->k_norm = dsa_load_vector(v->ld, &f->index_k_norm_weight,
                                s->index_head_dim, 1.0f, 0.1f);
    l->k_bias = dsa_load_vector(v->ld, &f->index_k_norm_bias,
                                s->index_head_dim, 0, 0.1f);
}


/* Places the projections of the hidden state, one behind the other. */

static void
dsa_load_down(const dsa_load_layer_t *v, dsa_cuda_layer_t *l)
{
    dsa_load_matrix_t          m;
    const dsa_layer_t         *f;
    const dsa_tensor_t        *t[3];
    const dsa_model_config_t  *s;

    f = v->file;
    s = v->config;

    dsa_load_one(&m, v, t, DSA_MATRICES_ATTENTION, DSA_CUT_NONE, 0,
                 s->hidden_size, "q_a_proj, kv_a_proj_with_mqa or indexer.wk");
    m.parts = 0;

    if (s->q_lora_rank != 0) {
        t[m.parts] = &f->q_a_proj;
        m.rows[m.parts++] = s->q_lora_rank;
    }

    t[m.parts] = &f->kv_a_proj_with_mqa;
    m.rows[m.parts++] = s->kv_lora_rank + s->qk_rope_head_dim;

    if (dsa_load_indexed(v)) {
        t[m.parts] = &f->index_wk;
        m.rows[m.parts++] = s->index_head_dim;
    }

    dsa_load_matrix(v->ld, &l->qkv_a, &m);
}


static void
dsa_load_attention(const dsa_load_layer_t *v, dsa_cuda_layer_t *l)
{
    uint32_t                   heads;
    dsa_load_matrix_t          m;
    const dsa_layer_t         *f;
    const dsa_tensor_t        *t[1];
    const dsa_model_config_t  *s;

    f = v->file;
    s = v->config;
    heads = s->num_attention_heads;

    dsa_load_down(v, l);

    t[0] = &f->q_b_proj;
    dsa_load_one(&m, v, t, DSA_MATRICES_ATTENTION, DSA_CUT_HEAD_ROWS,
                 heads * (s->qk_nope_head_dim + s->qk_rope_head_dim),
                 s->q_lora_rank != 0 ? s->q_lora_rank : s->hidden_size,
                 s->q_lora_rank != 0 ? "q_b_proj" : "q_proj");
    dsa_load_matrix(v->ld, &l->q_b, &m);

    t[0] = &f->kv_b_proj;
    dsa_load_one(&m, v, t, DSA_MATRICES_ATTENTION, DSA_CUT_HEAD_ROWS,
                 heads * (s->qk_nope_head_dim + s->v_head_dim),
                 s->kv_lora_rank, "kv_b_proj");
    dsa_load_matrix(v->ld, &l->kv_b, &m);

    l->kv_b_bf16 = l->kv_b.bf16.w;

    if (m.format == DSA_FORMAT_FP8) {
        l->kv_b_bf16 = dsa_load_place(v->ld, (uint64_t) l->kv_b.rows
                                             * l->kv_b.cols
                                             * sizeof(dsa_bf16_t));
    }

    t[0] = &f->o_proj;
    dsa_load_one(&m, v, t, DSA_MATRICES_ATTENTION, DSA_CUT_HEAD_COLS,
                 s->hidden_size, heads * s->v_head_dim, "o_proj");
    dsa_load_matrix(v->ld, &l->o, &m);
}


/*
 * Places the weights of the indexer.  Heads that pad to a multiple of 8 are
 * zeros and have the weight 0.
 */

static void
dsa_load_indexer(const dsa_load_layer_t *v, dsa_cuda_layer_t *l)
{
    uint32_t                   spare;
    dsa_load_matrix_t          m;
    const dsa_layer_t         *f;
    const dsa_tensor_t        *t[1];
    const dsa_model_config_t  *s;

    f = v->file;
    s = v->config;
    spare = dsa_cuda_index_heads(s) - s->index_n_heads;

    t[0] = &f->index_wq_b;
    dsa_load_one(&m, v, t, DSA_MATRICES_INDEXER, DSA_CUT_NONE,
                 s->index_n_heads * s->index_head_dim, s->q_lora_rank,
                 "indexer.wq_b");
    m.spare = spare * s->index_head_dim;
    dsa_load_matrix(v->ld, &l->index_q, &m);

    l->index_w = dsa_load_bf16(v->ld, &f->index_weights_proj, DSA_CUT_NONE,
                               s->index_n_heads, s->hidden_size, 0.02f,
                               "indexer.weights_proj", v->number);
    (void) dsa_load_place(v->ld, (uint64_t) spare * s->hidden_size
                                 * sizeof(dsa_bf16_t));
}


/* Places the dense MLP or the shared expert. */

static void
dsa_load_mlp(const dsa_load_layer_t *v, dsa_cuda_layer_t *l)
{
    uint32_t                   inter;
    dsa_load_matrix_t          m;
    dsa_matrices_e             kind;
    const dsa_mlp_t           *mlp;
    const dsa_tensor_t        *t[2];
    const dsa_model_config_t  *s;

    s = v->config;
    mlp = l->moe ? &v->file->shared : &v->file->mlp;
    kind = l->moe ? DSA_MATRICES_SHARED : DSA_MATRICES_DENSE;
    inter = l->moe ? s->moe_intermediate_size * s->n_shared_experts
                   : s->intermediate_size;

    t[0] = &mlp->gate;
    t[1] = &mlp->up;
    dsa_load_one(&m, v, t, kind, DSA_CUT_WIDTH_ROWS, inter, s->hidden_size,
                 "gate_proj or up_proj");
    m.rows[1] = inter;
    m.parts = 2;
    dsa_load_matrix(v->ld, &l->gate_up, &m);

    t[0] = &mlp->down;
    dsa_load_one(&m, v, t, kind, DSA_CUT_WIDTH_COLS, s->hidden_size, inter,
                 "down_proj");
    dsa_load_matrix(v->ld, &l->down, &m);
}


/* Places the scales of the activations, which are those of all experts. */

static void
dsa_load_stored(const dsa_load_layer_t *v, dsa_cuda_layer_t *l)
{
    uint32_t  i;

    l->expert_scale = dsa_load_place(v->ld, sizeof(l->stored));

    if (v->file->expert != NULL) {
        dsa_weights_stored(l->stored, v->file->expert,
                           v->config->n_routed_experts);
        return;
    }

    for (i = 0; i < 2; i++) {
        l->stored[i] = DSA_RANDOM_STORED;
    }
}


/* Places the router and the rank's experts. */

static void
dsa_load_experts(const dsa_load_layer_t *v, dsa_cuda_layer_t *l)
{
    uint32_t                   e, n, inter;
    dsa_loader_t              *ld;
    dsa_load_matrix_t          m;
    const dsa_mlp_t           *mlp;
    const dsa_tensor_t       **t;
    const dsa_model_config_t  *s;

    ld = v->ld;
    s = v->config;
    n = ld->shard->experts.n;
    inter = s->moe_intermediate_size;

    l->router = dsa_load_bf16(ld, &v->file->router, DSA_CUT_NONE,
                              s->n_routed_experts, s->hidden_size, 0.02f,
                              "mlp.gate", v->number);
    l->router_bias = dsa_load_vector(ld, &v->file->router_bias,
                                     s->n_routed_experts, 0, 0.01f);

    t = calloc(2 * n, sizeof(dsa_tensor_t *));

    if (t == NULL) {
        if (!ld->failed) {
            ld->failed = 1;
            (void) dsa_error(ld->err, "no memory for a list of %u experts",
                             n);
        }

        return;
    }

    mlp = v->file->expert != NULL
          ? v->file->expert + ld->shard->experts.first : NULL;

    for (e = 0; mlp != NULL && e < n; e++) {
        t[2 * e] = &mlp[e].gate;
        t[2 * e + 1] = &mlp[e].up;
    }

    dsa_load_one(&m, v, t, DSA_MATRICES_EXPERTS, DSA_CUT_WIDTH_ROWS, inter,
                 s->hidden_size, "an expert's gate_proj or up_proj");
    m.rows[1] = inter;
    m.parts = 2;
    m.n = n;
    dsa_load_matrix(ld, &l->expert_gate_up, &m);

    for (e = 0; mlp != NULL && e < n; e++) {
        t[e] = &mlp[e].down;
    }

    dsa_load_one(&m, v, t, DSA_MATRICES_EXPERTS, DSA_CUT_WIDTH_COLS,
                 s->hidden_size, inter, "an expert's down_proj");
    m.n = n;
    dsa_load_matrix(ld, &l->expert_down, &m);

    if (m.format == DSA_FORMAT_INT4 && s->expert_scales == DSA_SCALES_STORED) {
        dsa_load_stored(v, l);
    }

    free(t);
}


uint64_t
dsa_cuda_weights_size(const dsa_model_config_t *config,
    const dsa_shard_t *shard, uint32_t drafts)
{
    dsa_err_t           err;
    dsa_loader_t        ld;
    dsa_cuda_weights_t  w;

    memset(&ld, 0, sizeof(ld));
    memset(&w, 0, sizeof(w));

    w.drafts = drafts;
    w.layer = calloc(config->num_hidden_layers + drafts,
                     sizeof(dsa_cuda_layer_t));

    if (w.layer == NULL) {
        return UINT64_MAX;
    }

    ld.shard = shard;
    ld.random = 1;
    ld.err = &err;

    dsa_load_all(&ld, &w, config, NULL);

    free(w.layer);

    return ld.failed ? UINT64_MAX : ld.used;
}


static int
dsa_cuda_weights_alloc(dsa_cuda_weights_t *w, const dsa_model_config_t *config,
    const dsa_shard_t *shard, dsa_stream_t stream, dsa_err_t *err)
{
    int  rc;

    w->size = dsa_cuda_weights_size(config, shard, w->drafts);
    w->layer = calloc(config->num_hidden_layers + w->drafts,
                      sizeof(dsa_cuda_layer_t));

    if (w->layer == NULL || w->size == UINT64_MAX) {
        return dsa_error(err, "no memory for a table of %u layers",
                         config->num_hidden_layers);
    }

    rc = cudaMalloc(&w->memory, w->size);

    /* rows that pad to a multiple of 128 have to be zeros */

    rc = rc != 0 ? rc : (int) cudaMemsetAsync(w->memory, 0, w->size, stream);
    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(stream);

    if (rc != 0) {
        return dsa_error(err, "%.1f GB for weights on the GPU: %s",
                         (double) w->size * 1e-9, dsa_cuda_error(rc));
    }

    return DSA_OK;
}


int
dsa_cuda_weights_place(dsa_cuda_weights_t *w,
    const dsa_model_config_t *config, const dsa_shard_t *shard,
    uint32_t drafts, const dsa_weights_t *weights, dsa_stream_t stream,
    dsa_read_list_t *list, dsa_err_t *err)
{
    int           rc;
    dsa_loader_t  ld;

    memset(list, 0, sizeof(dsa_read_list_t));

    rc = cudaGetDevice(&list->device);

    if (rc != 0) {
        return dsa_error(err, "placing weights: no GPU is selected: %s",
                         dsa_cuda_error(rc));
    }

    w->drafts = drafts;
    w->experts = shard->experts.n;

    if (dsa_cuda_weights_alloc(w, config, shard, stream, err) != DSA_OK) {
        return DSA_ERROR;
    }

    memset(&ld, 0, sizeof(ld));

    ld.shard = shard;
    ld.memory = w->memory;
    ld.random = weights == NULL;
    ld.seed = 1;
    ld.stream = stream;
    ld.list = list;
    ld.err = err;

    dsa_load_all(&ld, w, config, weights);

    if (ld.failed) {
        return DSA_ERROR;
    }

    if (ld.rc != 0) {
        return dsa_error(err, "random weights on GPU %d: %s", list->device,
                         dsa_cuda_error(ld.rc));
    }

    return DSA_OK;
}


/* Brings the INT4 matrices of the experts into the layout of the product. */

static int
dsa_cuda_pack(const dsa_cuda_matrix_t *w, uint32_t experts,
    dsa_stream_t stream)
{
    if (w->int4.q == NULL) {
        return 0;
    }

    return dsa_cuda_int4_pack((uint8_t *) w->int4.q,
                              (dsa_bf16_t *) w->int4.scale, w->rows, w->cols,
                              experts, stream);
}


int
dsa_cuda_weights_list(dsa_cuda_weights_t *w, const dsa_model_config_t *config,
    const dsa_shard_t *shard, const dsa_weights_t *weights,
    dsa_read_list_t *list, dsa_err_t *err)
{
    int           rc;
    dsa_loader_t  ld;

    memset(list, 0, sizeof(dsa_read_list_t));

    rc = cudaGetDevice(&list->device);

    if (rc != 0) {
        return dsa_error(err, "listing weights: no GPU is selected: %s",
                         dsa_cuda_error(rc));
    }

    memset(&ld, 0, sizeof(ld));

    ld.shard = shard;
    ld.memory = w->memory;
    ld.list = list;
    ld.err = err;

    dsa_load_all(&ld, w, config, weights);

    return ld.failed ? DSA_ERROR : DSA_OK;
}


int
dsa_cuda_weights_finish(dsa_cuda_weights_t *w,
    const dsa_model_config_t *config, dsa_stream_t stream, dsa_err_t *err)
{
    int                rc;
    uint32_t           i;
    dsa_cuda_layer_t  *l;

    for (i = 0, rc = 0; i < config->num_hidden_layers + w->drafts && rc == 0;
         i++)
    {
        l = &w->layer[i];
        rc = dsa_cuda_pack(&l->expert_gate_up, w->experts, stream);
        rc = rc != 0 ? rc : dsa_cuda_pack(&l->expert_down, w->experts, stream);

        if (rc == 0 && l->expert_scale != NULL) {
            rc = cudaMemcpyAsync(l->expert_scale, l->stored, sizeof(l->stored),
                                 cudaMemcpyHostToDevice, stream);
        }

        if (rc == 0 && l->kv_b.fp8.q != NULL) {
            rc = dsa_cuda_fp8_decode_weight((dsa_bf16_t *) l->kv_b_bf16,
                                            &l->kv_b.fp8, stream);
        }
    }

    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(stream);

    if (rc != 0) {
        return dsa_error(err, "preparing the weights on the GPU: %s",
                         dsa_cuda_error(rc));
    }

    return DSA_OK;
}


void
dsa_cuda_weights_free(dsa_cuda_weights_t *w)
{
    (void) cudaFree(w->memory);
    free(w->layer);

    w->memory = NULL;
    w->layer = NULL;
}
