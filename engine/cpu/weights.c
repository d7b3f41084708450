
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/cpu/parts.h"
#include "kernels/bf16.h"
#include "kernels/fp8.h"
#include "kernels/gemm.h"


/*
 * Matrices and vectors are visited twice: once to count what is
 * dequantized, once, with the memory there, to do it.
 */

typedef struct {
    dsa_model_t    *model;
    float          *memory;         /* NULL while counting */
    uint64_t        used;           /* floats */
    uint64_t        limit;          /* floats of matrices */
    uint64_t        matrices;
} dsa_decoder_t;


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
    }
}


static const float *
dsa_decode_all(dsa_decoder_t *d, const dsa_tensor_t *t)
{
    float  *out;

    out = NULL;

    if (d->memory != NULL) {
        out = d->memory + d->used;
        dsa_model_decode_rows(out, t, 0, t->rows);
    }

    d->used += (uint64_t) t->rows * t->cols;

    return out;
}


static void
dsa_decode_matrix(dsa_decoder_t *d, dsa_matrix_t *m, const dsa_tensor_t *t)
{
    uint64_t  n;

    m->tensor = *t;
    m->f32 = NULL;

    if (t->dtype == DSA_F32) {
        m->f32 = t->data;
        return;
    }

    n = (uint64_t) t->rows * t->cols;

    if (n > d->limit - d->matrices) {
        return;
    }

    d->matrices += n;
    m->f32 = dsa_decode_all(d, t);
}


static void
dsa_decode_mlp(dsa_decoder_t *d, dsa_model_mlp_t *m, const dsa_mlp_t *t)
{
    dsa_decode_matrix(d, &m->gate, &t->gate);
    dsa_decode_matrix(d, &m->up, &t->up);
    dsa_decode_matrix(d, &m->down, &t->down);
}


static void
dsa_decode_layer(dsa_decoder_t *d, dsa_model_layer_t *m, const dsa_layer_t *t)
{
    uint32_t  e;

    m->moe = t->moe;

    m->input_layernorm = dsa_decode_all(d, &t->input_layernorm);
    m->post_attention_layernorm = dsa_decode_all(d,
                                                 &t->post_attention_layernorm);
    m->q_a_layernorm = dsa_decode_all(d, &t->q_a_layernorm);
    m->kv_a_layernorm = dsa_decode_all(d, &t->kv_a_layernorm);
    m->index_k_norm_weight = dsa_decode_all(d, &t->index_k_norm_weight);
    m->index_k_norm_bias = dsa_decode_all(d, &t->index_k_norm_bias);

    dsa_decode_matrix(d, &m->q_a_proj, &t->q_a_proj);
    dsa_decode_matrix(d, &m->q_b_proj, &t->q_b_proj);
    dsa_decode_matrix(d, &m->kv_a_proj, &t->kv_a_proj_with_mqa);
    dsa_decode_matrix(d, &m->kv_b_proj, &t->kv_b_proj);
    dsa_decode_matrix(d, &m->o_proj, &t->o_proj);
    dsa_decode_matrix(d, &m->index_wq_b, &t->index_wq_b);
    dsa_decode_matrix(d, &m->index_wk, &t->index_wk);
    dsa_decode_matrix(d, &m->index_weights_proj, &t->index_weights_proj);

    if (!t->moe) {
        dsa_decode_mlp(d, &m->mlp, &t->mlp);
        return;
    }

    m->router_bias = dsa_decode_all(d, &t->router_bias);

    dsa_decode_matrix(d, &m->router, &t->router);
    dsa_decode_mlp(d, &m->shared, &t->shared);

    for (e = 0; e < d->model->config->n_routed_experts; e++) {
        dsa_decode_mlp(d, &m->expert[e], &t->expert[e]);
    }
}


static void
dsa_decode_model(dsa_decoder_t *d)
{
    uint32_t      l;
    dsa_model_t  *m;

    m = d->model;

    d->used = 0;
    d->matrices = 0;

    for (l = 0; l < m->config->num_hidden_layers; l++) {
        dsa_decode_layer(d, &m->layer[l], &m->weights->layer[l]);
    }

    m->norm = dsa_decode_all(d, &m->weights->norm);
    dsa_decode_matrix(d, &m->head, &m->weights->head);
}


int
dsa_model_weights(dsa_model_t *m, dsa_err_t *err)
{
    long           pages, size;
    uint32_t       l;
    uint64_t       experts;
    dsa_decoder_t  d;

    experts = m->config->n_routed_experts;

    m->layer = calloc(m->config->num_hidden_layers, sizeof(dsa_model_layer_t));
    m->expert = calloc(m->config->num_hidden_layers * experts,
                       sizeof(dsa_model_mlp_t));

    if (m->layer == NULL || m->expert == NULL) {
        return dsa_error(err, "no memory for the tables of %u layers",
                         m->config->num_hidden_layers);
    }

    for (l = 0; l < m->config->num_hidden_layers; l++) {
        m->layer[l].expert = m->expert + l * experts;
    }

    pages = sysconf(_SC_PHYS_PAGES);
    size = sysconf(_SC_PAGESIZE);

    memset(&d, 0, sizeof(dsa_decoder_t));

    d.model = m;

    if (pages > 0 && size > 0) {
        d.limit = (uint64_t) pages * (uint64_t) size / 4 / sizeof(float);
    }

    dsa_decode_model(&d);

    m->decoded_size = d.used * sizeof(float);
    m->decoded = mmap(NULL, m->decoded_size, PROT_READ|PROT_WRITE,
                      MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);

    if (m->decoded == MAP_FAILED) {
        m->decoded = NULL;
        return dsa_error(err, "no memory for %llu bytes of float32 weights",
                         (unsigned long long) m->decoded_size);
    }

    d.memory = m->decoded;

    dsa_decode_model(&d);

    return DSA_OK;
}


void
dsa_model_weights_free(dsa_model_t *m)
{
    if (m->decoded != NULL) {
        (void) munmap(m->decoded, m->decoded_size);
    }

    free(m->expert);
    free(m->layer);
}


const float *
dsa_model_weight_rows(dsa_model_t *m, const dsa_matrix_t *w, uint32_t first,
    uint32_t n)
{
    if (w->f32 != NULL) {
        return w->f32 + (uint64_t) first * w->tensor.cols;
    }

    dsa_model_decode_rows(m->work.weight, &w->tensor, first, n);

    return m->work.weight;
}


void
dsa_model_linear_f32(dsa_model_t *m, float *y, const dsa_matrix_t *w,
    const float *x, uint32_t rows)
{
    uint32_t      first, n, out, in;
    const float  *piece;

    out = w->tensor.rows;
    in = w->tensor.cols;

    for (first = 0; first < out; first += n) {
        n = out - first < DSA_WEIGHT_ROWS ? out - first : DSA_WEIGHT_ROWS;
        piece = dsa_model_weight_rows(m, w, first, n);

        dsa_gemm_nt(y + first, out, x, in, piece, in, rows, n, in, 0);
    }
}


void
dsa_model_linear(dsa_model_t *m, float *y, const dsa_matrix_t *w,
    const float *x, uint32_t rows)
{
    if (!m->served) {
        dsa_model_linear_f32(m, y, w, x, rows);
        return;
    }

    if (w->tensor.dtype == DSA_E4M3) {
        dsa_fp8_simulate(m->work.q8, x, rows, w->tensor.cols,
                         (int) m->config->ue8m0);
        x = m->work.q8;
    }

    dsa_model_linear_f32(m, y, w, x, rows);
    dsa_bf16_round_rows(y, (size_t) rows * w->tensor.rows);
}
