
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/cpu/parts.h"
#include "kernels/core/bf16.h"
#include "kernels/core/fp8.h"
#include "kernels/core/int4.h"


/*
 * Matrices and vectors are visited twice: first to count the bytes of their
 * copies, then, with the memory allocated, to make the copies.
 */

typedef struct {
    dsa_model_t    *model;
    uint8_t        *memory;         /* NULL while counting */
    uint64_t        used;           /* bytes */
    uint64_t        limit;          /* bytes of matrices */
    uint64_t        matrices;
} dsa_copier_t;


_Static_assert((int) DSA_F32 == (int) DSA_GEMM_F32
               && (int) DSA_BF16 == (int) DSA_GEMM_BF16
               && (int) DSA_E4M3 == (int) DSA_GEMM_E4M3
               && (int) DSA_INT4 == (int) DSA_GEMM_INT4,
               "dtypes of tensors are those of the products");


void
dsa_model_decode_rows(float *out, const dsa_tensor_t *t, uint32_t first,
    uint32_t n)
{
    uint64_t  at, len;

    at = (uint64_t) first * t->cols;
    len = (uint64_t) n * t->cols;

    switch (t->dtype) {

    case DSA_F32:
        memcpy(out, (const float *) t->data + at, len * sizeof(float));
        break;

    case DSA_BF16:
        dsa_bf16_decode_rows(out, (const uint16_t *) t->data + at, len);
        break;

    case DSA_E4M3:
        dsa_fp8_decode_weight(out, t->data, t->scale, first, n, t->cols);
        break;

    case DSA_INT4:
        for ( /* void */ ; len != 0; len -= DSA_INT4_GROUP) {
            dsa_int4_decode(out, (const uint8_t *) t->data + at / 2,
                            dsa_int4_group_scale(t->groups, t->scale,
                                                 at / DSA_INT4_GROUP));
            out += DSA_INT4_GROUP;
            at += DSA_INT4_GROUP;
        }

        break;
    }
}


static const float *
dsa_copy_vector(dsa_copier_t *d, const dsa_tensor_t *t)
{
    float  *out;

    out = NULL;

    if (d->memory != NULL) {
        out = (float *) (d->memory + d->used);
        dsa_model_decode_rows(out, t, 0, t->rows);
    }

    d->used += ((uint64_t) t->rows * t->cols * sizeof(float) + 63) & ~63ULL;

    return out;
}


/* Adds a slice of a tensor as a matrix of its own, or the slice transposed. */

static void
dsa_copy_part(dsa_copier_t *d, dsa_matrix_t *m, const dsa_tensor_t *t,
    const dsa_slice_t *slice, int transposed)
{
    uint64_t            size;
    dsa_gemm_weight_t  *w;

    static const uint32_t  bits[] = { 32, 16, 8, 4 };   /* of a dtype */

    w = &m->tensor;

    memset(w, 0, sizeof(dsa_gemm_weight_t));

    w->dtype = (dsa_gemm_dtype_e) t->dtype;
    w->layout = transposed ? DSA_GEMM_IN_OUT : DSA_GEMM_OUT_IN;
    w->data = (const uint8_t *) t->data
              + ((uint64_t) slice->row * t->cols + slice->col)
                * bits[t->dtype] / 8;
    w->first = slice->row;
    w->out = transposed ? slice->cols : slice->rows;
    w->in = transposed ? slice->rows : slice->cols;
    w->ld = t->cols;

    if (t->dtype == DSA_E4M3) {

        /* the blocks of a weight are counted from its first column */

        assert(slice->col % DSA_FP8_GROUP == 0);

        w->scale = t->scale + slice->col / DSA_FP8_GROUP;
        w->ld_scale = (t->cols + DSA_FP8_GROUP - 1) / DSA_FP8_GROUP;
    }

    m->weight = m->tensor;

    if (t->dtype == DSA_INT4) {
        assert(slice->col % DSA_INT4_GROUP == 0);

        if (t->groups != NULL) {
            m->weight.groups = t->groups + slice->col / DSA_INT4_GROUP;

        } else {
            m->weight.scale = t->scale + slice->col / DSA_INT4_GROUP;
        }

        m->weight.ld_scale = t->cols / DSA_INT4_GROUP;
        m->tensor = m->weight;
        return;
    }

    size = dsa_gemm_packed(w);

    if (size > d->limit - d->matrices) {
        return;
    }

    if (d->memory != NULL) {
        dsa_gemm_pack(&m->weight, d->memory + d->used, w);
    }

    d->matrices += size;
    d->used += size;
}


static void
dsa_copy_matrix(dsa_copier_t *d, dsa_matrix_t *m, const dsa_tensor_t *t)
{
    const dsa_slice_t  all = { 0, 0, t->rows, t->cols };

    dsa_copy_part(d, m, t, &all, 0);
}


/* Adds m [slices], the parts of a matrix on the GPUs. */

static void
dsa_copy_sliced(dsa_copier_t *d, dsa_matrix_t *m, const dsa_tensor_t *t,
    dsa_cut_e cut)
{
    uint32_t     i;
    dsa_slice_t  slice;

    for (i = 0; i < d->model->slices; i++) {
        dsa_shard_slice(&slice, &d->model->shard[i], cut, t->rows, t->cols);
        dsa_copy_part(d, &m[i], t, &slice, 0);
    }
}


static void
dsa_copy_mlp(dsa_copier_t *d, dsa_model_mlp_t *m, const dsa_mlp_t *t)
{
    dsa_copy_matrix(d, &m->gate, &t->gate);
    dsa_copy_matrix(d, &m->up, &t->up);
    dsa_copy_sliced(d, m->down, &t->down, DSA_CUT_WIDTH_COLS);
}


/*
 * Adds kv_b_proj, which has for each head the rows of k_nope, then those of v.
 */

static void
dsa_copy_kv(dsa_copier_t *d, dsa_model_kv_t *m, const dsa_tensor_t *t)
{
    uint32_t                   h;
    dsa_slice_t                k, v;
    const dsa_model_config_t  *s;

    s = d->model->config;

    for (h = 0; h < s->num_attention_heads; h++) {
        k.row = h * (s->qk_nope_head_dim + s->v_head_dim);
        k.col = 0;
        k.rows = s->qk_nope_head_dim;
        k.cols = t->cols;

        v = k;
        v.row += s->qk_nope_head_dim;
        v.rows = s->v_head_dim;

        dsa_copy_part(d, &m[h].k_t, t, &k, 1);
        dsa_copy_part(d, &m[h].v, t, &v, 0);
    }
}


static void
dsa_copy_indexer(dsa_copier_t *d, dsa_model_layer_t *m, const dsa_layer_t *t)
{
    m->index_k_norm_weight = dsa_copy_vector(d, &t->index_k_norm_weight);
    m->index_k_norm_bias = dsa_copy_vector(d, &t->index_k_norm_bias);

    dsa_copy_matrix(d, &m->index_wq_b, &t->index_wq_b);
    dsa_copy_matrix(d, &m->index_wk, &t->index_wk);
    dsa_copy_matrix(d, &m->index_weights_proj, &t->index_weights_proj);
}


static void
dsa_copy_layer(dsa_copier_t *d, dsa_model_layer_t *m, const dsa_layer_t *t,
    dsa_selection_e selection)
{
    float     scale[2];
    uint32_t  e;

    m->moe = t->moe;

    m->input_layernorm = dsa_copy_vector(d, &t->input_layernorm);
    m->post_attention_layernorm = dsa_copy_vector(d,
                                                  &t->post_attention_layernorm);
    m->kv_a_layernorm = dsa_copy_vector(d, &t->kv_a_layernorm);

    if (d->model->config->q_lora_rank != 0) {
        m->q_a_layernorm = dsa_copy_vector(d, &t->q_a_layernorm);
        dsa_copy_matrix(d, &m->q_a_proj, &t->q_a_proj);
    }

    dsa_copy_matrix(d, &m->q_b_proj, &t->q_b_proj);
    dsa_copy_matrix(d, &m->kv_a_proj, &t->kv_a_proj_with_mqa);
    dsa_copy_kv(d, m->kv_b, &t->kv_b_proj);
    dsa_copy_sliced(d, m->o_proj, &t->o_proj, DSA_CUT_HEAD_COLS);

    if (selection == DSA_SELECTION_OWN) {
        dsa_copy_indexer(d, m, t);
    }

    if (!t->moe) {
        dsa_copy_mlp(d, &m->mlp, &t->mlp);
        return;
    }

    m->router_bias = dsa_copy_vector(d, &t->router_bias);

    dsa_copy_matrix(d, &m->router, &t->router);
    dsa_copy_mlp(d, &m->shared, &t->shared);

    dsa_weights_stored(scale, t->expert, d->model->config->n_routed_experts);

    for (e = 0; e < d->model->config->n_routed_experts; e++) {
        dsa_copy_mlp(d, &m->expert[e], &t->expert[e]);
        memcpy(m->expert[e].input, scale, sizeof(scale));
    }
}


static void
dsa_copy_draft(dsa_copier_t *d)
{
    dsa_model_t                *m;
    const dsa_draft_weights_t  *t;

    m = d->model;
    t = &m->weights->draft;

    m->draft.enorm = dsa_copy_vector(d, &t->enorm);
    m->draft.hnorm = dsa_copy_vector(d, &t->hnorm);
    m->draft.norm = dsa_copy_vector(d, &t->norm);

    dsa_copy_matrix(d, &m->draft.eh_proj, &t->eh_proj);
    dsa_copy_layer(d, &m->layer[m->config->num_hidden_layers], &t->layer,
                   m->config->draft.selection);
}


static void
dsa_copy_model(dsa_copier_t *d)
{
    uint32_t      l;
    dsa_model_t  *m;

    m = d->model;

    d->used = 0;
    d->matrices = 0;

    for (l = 0; l < m->config->num_hidden_layers; l++) {
        dsa_copy_layer(d, &m->layer[l], &m->weights->layer[l],
                       m->config->layer[l].selection);
    }

    m->norm = dsa_copy_vector(d, &m->weights->norm);
    dsa_copy_matrix(d, &m->head, &m->weights->head);

    if (m->drafts) {
        dsa_copy_draft(d);
    }
}


/* A layer has slices of o_proj, two MLPs and the experts. */

static int
dsa_model_tables(dsa_model_t *m, dsa_err_t *err)
{
    uint32_t            l, e, layers;
    uint64_t            experts, heads;
    dsa_matrix_t       *sliced;
    dsa_model_layer_t  *layer;

    layers = dsa_model_layers(m);
    experts = m->config->n_routed_experts;
    heads = m->config->num_attention_heads;

    m->layer = calloc(layers, sizeof(dsa_model_layer_t));
    m->expert = calloc(layers * experts, sizeof(dsa_model_mlp_t));
    m->kv_b = calloc(layers * heads, sizeof(dsa_model_kv_t));
    m->sliced = calloc(layers * (experts + 3) * m->slices,
                       sizeof(dsa_matrix_t));

    if (m->layer == NULL || m->expert == NULL || m->kv_b == NULL
        || m->sliced == NULL)
    {
        return dsa_error(err, "no memory for the tables of %u layers", layers);
    }

    sliced = m->sliced;

    for (l = 0; l < layers; l++) {
        layer = &m->layer[l];

        layer->expert = m->expert + l * experts;
        layer->kv_b = m->kv_b + l * heads;
        layer->o_proj = sliced;
        layer->mlp.down = sliced + m->slices;
        layer->shared.down = sliced + 2 * m->slices;
        sliced += 3 * m->slices;

        for (e = 0; e < experts; e++) {
            layer->expert[e].down = sliced;
            sliced += m->slices;
        }
    }

    return DSA_OK;
}


int
dsa_model_weights(dsa_model_t *m, dsa_err_t *err)
{
    long          pages, size;
    dsa_copier_t  d;

    if (dsa_model_tables(m, err) != DSA_OK) {
        return DSA_ERROR;
    }

    pages = sysconf(_SC_PHYS_PAGES);
    size = sysconf(_SC_PAGESIZE);

    memset(&d, 0, sizeof(dsa_copier_t));

    d.model = m;

    if (pages > 0 && size > 0) {
        d.limit = (uint64_t) pages * (uint64_t) size / 4;
    }

    dsa_copy_model(&d);

    m->copies_size = d.used;
    m->copies = mmap(NULL, m->copies_size, PROT_READ|PROT_WRITE,
                     MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);

    if (m->copies == MAP_FAILED) {
        m->copies = NULL;
        return dsa_error(err, "no memory for %llu bytes of packed weights",
                         (unsigned long long) m->copies_size);
    }

    d.memory = m->copies;

    dsa_copy_model(&d);

    return DSA_OK;
}


void
dsa_model_weights_free(dsa_model_t *m)
{
    if (m->copies != NULL) {
        (void) munmap(m->copies, m->copies_size);
    }

    free(m->sliced);
    free(m->kv_b);
    free(m->expert);
    free(m->layer);
}
