
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/model.h"
#include "base/log.h"
#include "kernels/bf16.h"
#include "kernels/embed.h"
#include "kernels/fp8.h"
#include "kernels/indexer.h"
#include "kernels/norm.h"
#include "kernels/random.h"
#include "kernels/rope.h"


/* Left to the driver, the library and the graphs of decode steps. */
#define DSA_CUDA_SLACK      (1536ULL << 20)

/* Keys that top-k takes of a row. */
#define DSA_CUDA_CONTEXT    393216

/* Rows behind the last that a GEMM may touch. */
#define DSA_CUDA_SPARE      16


static int dsa_cuda_model_check(const dsa_model_config_t *s, dsa_err_t *err);
static int dsa_cuda_model_limits(const dsa_cuda_model_t *m, dsa_err_t *err);
static int dsa_cuda_model_device(dsa_err_t *err);
static int dsa_cuda_model_memory(dsa_cuda_model_t *m,
    const dsa_cuda_conf_t *conf, dsa_err_t *err);
static uint64_t dsa_cuda_model_lay(dsa_cuda_model_t *m, uintptr_t base);
static int dsa_cuda_model_rope(dsa_cuda_model_t *m, dsa_err_t *err);
static int dsa_cuda_model_layers(dsa_cuda_model_t *m,
    const dsa_cuda_step_t *step);
static int dsa_cuda_model_head(dsa_cuda_model_t *m,
    const dsa_cuda_step_t *step);


dsa_cuda_model_t *
dsa_cuda_model_open(const dsa_cuda_conf_t *conf, dsa_err_t *err)
{
    int                        rc;
    dsa_cuda_model_t          *m;
    const dsa_model_config_t  *s;

    m = calloc(1, sizeof(dsa_cuda_model_t));

    if (m == NULL) {
        (void) dsa_error(err, "no memory for a model");
        return NULL;
    }

    s = &conf->config;

    m->config = *s;
    m->max_rows = conf->max_rows;
    m->max_samples = conf->max_seqs;
    m->allowed = conf->allowed < s->vocab_size ? conf->allowed
                                               : s->vocab_size;
    m->context = s->max_position_embeddings;

    if (conf->context != 0 && conf->context < m->context) {
        m->context = conf->context;
    }

    m->ld_pages = (m->context + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS;
    m->topk = s->index_topk < m->context ? s->index_topk
                                          : (m->context + 7) & ~7U;
    m->heads_tokens = m->context < DSA_CUDA_HEADS_TOKENS
                      ? m->context : DSA_CUDA_HEADS_TOKENS;

    m->index_constant = 1.0f / sqrtf((float) s->index_n_heads)
                        / sqrtf((float) s->index_head_dim);

    m->router.experts = s->n_routed_experts;
    m->router.groups = s->n_group;
    m->router.groups_kept = s->topk_group;
    m->router.k = s->num_experts_per_tok;
    m->router.normalize = s->norm_topk_prob;
    m->router.scale = s->routed_scaling_factor;

    dsa_cache_layout(&m->cache, 1, s->num_hidden_layers, s->kv_lora_rank,
                     s->qk_rope_head_dim, s->index_head_dim);

    if (dsa_cuda_model_check(s, err) != DSA_OK
        || dsa_cuda_model_limits(m, err) != DSA_OK
        || dsa_cuda_model_device(err) != DSA_OK)
    {
        goto failed;
    }

    rc = cudaStreamCreateWithFlags(&m->stream, cudaStreamNonBlocking);
    rc = rc != 0 ? rc : (int) cudaMalloc((void **) &m->counters,
                                         sizeof(dsa_cuda_counters_t));
    rc = rc != 0 ? rc : dsa_cuda_init(&m->state, m->counters);

    if (rc != 0) {
        (void) dsa_error(err, "preparing the GPU: %s", dsa_cuda_error(rc));
        goto failed;
    }

    if (dsa_cuda_model_memory(m, conf, err) != DSA_OK
        || dsa_cuda_weights_load(&m->weights, s, conf->weights, m->stream,
                                 err) != DSA_OK
        || dsa_cuda_model_rope(m, err) != DSA_OK)
    {
        goto failed;
    }

    rc = conf->weights == NULL
         ? dsa_cuda_random_cache(m->page, m->pages * m->cache.page
                                          / m->cache.layer, 1, m->stream)
         : 0;

    if (rc != 0) {
        (void) dsa_error(err, "random pages: %s", dsa_cuda_error(rc));
        goto failed;
    }

    rc = dsa_cuda_gemm_create(&m->gemm, &m->state, m->gemm_work);

    if (rc != 0) {
        (void) dsa_error(err, "cuBLASLt: %s", dsa_cuda_error(rc));
        goto failed;
    }

    return m;

failed:

    dsa_cuda_model_close(m);

    return NULL;
}


void
dsa_cuda_model_close(dsa_cuda_model_t *m)
{
    if (m == NULL) {
        return;
    }

    if (m->stream != NULL) {
        (void) cudaStreamSynchronize(m->stream);
    }

    dsa_cuda_gemm_destroy(m->gemm);
    dsa_cuda_weights_free(&m->weights);
    (void) cudaFree(m->counters);
    (void) cudaFree(m->page);
    (void) cudaFree(m->memory);

    if (m->stream != NULL) {
        (void) cudaStreamDestroy(m->stream);
    }

    free(m);
}


/* What the kernels are made for. */

static int
dsa_cuda_model_check(const dsa_model_config_t *s, dsa_err_t *err)
{
    uint32_t  i;

    const struct {
        const char  *name;
        uint32_t     value;
        uint32_t     wanted;
    } geometry[] = {
        { "kv_lora_rank", s->kv_lora_rank, DSA_CUDA_LATENT },
        { "qk_rope_head_dim", s->qk_rope_head_dim, DSA_CUDA_ROPE },
        { "qk_nope_head_dim", s->qk_nope_head_dim, DSA_CUDA_NOPE },
        { "v_head_dim", s->v_head_dim, DSA_CUDA_NOPE },
        { "index_head_dim", s->index_head_dim, DSA_CUDA_INDEX }
    };

    const struct {
        const char  *name;
        uint32_t     value;
        uint32_t     step;
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
        { "n_routed_experts", s->n_routed_experts, 8, 512 },
        { "num_experts_per_tok", s->num_experts_per_tok, 1, 16 }
    };

    if (!s->fp8 || !s->ue8m0) {
        return dsa_error(err, "\"backend cuda\" takes FP8 checkpoints in "
                         "128x128 blocks with scale_fmt \"ue8m0\" "
                         "(quantization_config of config.json)%s",
                         s->fp8 ? "" : ", this one is not quantized");
    }

    for (i = 0; i < sizeof(geometry) / sizeof(geometry[0]); i++) {
        if (geometry[i].value != geometry[i].wanted) {
            return dsa_error(err, "config.json: \"%s\" is %u, \"backend cuda\" "
                             "takes %u", geometry[i].name, geometry[i].value,
                             geometry[i].wanted);
        }
    }

    for (i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
        if (size[i].value % size[i].step != 0 || size[i].value > size[i].most)
        {
            return dsa_error(err, "config.json: \"%s\" is %u, \"backend cuda\" "
                             "takes multiples of %u up to %u", size[i].name,
                             size[i].value, size[i].step, size[i].most);
        }
    }

    return DSA_OK;
}


static int
dsa_cuda_model_limits(const dsa_cuda_model_t *m, dsa_err_t *err)
{
    if (m->context > DSA_CUDA_CONTEXT) {
        return dsa_error(err, "a context of %u tokens: \"backend cuda\" takes "
                         "up to %u, \"context_length\" bounds it", m->context,
                         DSA_CUDA_CONTEXT);
    }

    if (m->max_samples == 0 || m->max_samples > m->max_rows) {
        return dsa_error(err, "steps of %u sequences and %u rows: at least a "
                         "sequence, and no more than rows, are accepted",
                         m->max_samples, m->max_rows);
    }

    return DSA_OK;
}


static int
dsa_cuda_model_device(dsa_err_t *err)
{
    int                    rc, device;
    struct cudaDeviceProp  prop;

    rc = cudaGetDevice(&device);
    rc = rc != 0 ? rc : (int) cudaGetDeviceProperties(&prop, device);

    if (rc != 0) {
        return dsa_error(err, "no GPU can be used: %s", dsa_cuda_error(rc));
    }

    if (prop.major != 9 || prop.minor != 0) {
        return dsa_error(err, "the GPU is a %s of compute capability %d.%d, "
                         "the kernels are made for 9.0 (H100, H200)",
                         prop.name, prop.major, prop.minor);
    }

    return DSA_OK;
}


/* One plan: weights, workspace, and pages from what is left. */

static int
dsa_cuda_model_memory(dsa_cuda_model_t *m, const dsa_cuda_conf_t *conf,
    dsa_err_t *err)
{
    int       rc;
    size_t    all, left;
    uint64_t  weights, kv, taken, pages;

    rc = cudaMemGetInfo(&left, &all);

    if (rc != 0) {
        return dsa_error(err, "the GPU's memory: %s", dsa_cuda_error(rc));
    }

    weights = dsa_cuda_weights_size(&m->config);
    m->memory_size = dsa_cuda_model_lay(m, 0);
    taken = weights + m->memory_size + DSA_CUDA_SLACK;

    kv = conf->kv_memory;

    if (kv == 0) {
        kv = taken < left ? left - taken : 0;
    }

    pages = kv / m->cache.page;

    if (pages == 0 || taken + kv > left) {
        return dsa_error(err, "%.2f GB of GPU memory are free; weights need "
                         "%.2f, workspace for steps of %u rows %.2f, graphs "
                         "%.2f, and pages at least %.2f",
                         (double) left * 1e-9, (double) weights * 1e-9,
                         m->max_rows, (double) m->memory_size * 1e-9,
                         (double) DSA_CUDA_SLACK * 1e-9,
                         (double) (conf->kv_memory != 0 ? kv : m->cache.page)
                         * 1e-9);
    }

    m->pages = pages < INT32_MAX / DSA_PAGE_TOKENS
               ? (uint32_t) pages : INT32_MAX / DSA_PAGE_TOKENS;

    dsa_log(DSA_LOG_NOTICE, "GPU memory: %.2f GB free = weights %.2f + "
            "workspace %.2f (steps of %u rows, %u sequences) + graphs and "
            "driver %.2f + pages %.2f (%u, %.2f M tokens) + unused %.2f",
            (double) left * 1e-9, (double) weights * 1e-9,
            (double) m->memory_size * 1e-9, m->max_rows, m->max_samples,
            (double) DSA_CUDA_SLACK * 1e-9,
            (double) m->pages * (double) m->cache.page * 1e-9, m->pages,
            (double) m->pages * DSA_PAGE_TOKENS * 1e-6,
            ((double) left - (double) taken
             - (double) m->pages * (double) m->cache.page) * 1e-9);

    rc = cudaMalloc(&m->memory, m->memory_size);
    rc = rc != 0 ? rc : (int) cudaMalloc(&m->page, m->pages * m->cache.page);

    if (rc != 0) {
        return dsa_error(err, "the GPU's memory: %s", dsa_cuda_error(rc));
    }

    (void) dsa_cuda_model_lay(m, (uintptr_t) m->memory);

    /* a page that was never written, and padding, hold numbers */

    rc = cudaMemsetAsync(m->memory, 0, m->memory_size, m->stream);
    rc = rc != 0 ? rc : (int) cudaMemsetAsync(m->page, 0,
                                              m->pages * m->cache.page,
                                              m->stream);
    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(m->stream);

    if (rc != 0) {
        return dsa_error(err, "the GPU's memory: %s", dsa_cuda_error(rc));
    }

    return DSA_OK;
}


/*
 * Sets the workspace's pointers from base on; returns its bytes.  The blocks of
 * a layer follow one another and share their memory.
 */

#define dsa_take(p, n)                                                        \
    p = (void *) (base + used);                                               \
    used += ((uint64_t) (n) * sizeof(*(p)) + 255) & ~255ULL

#define dsa_take_bytes(p, n)                                                  \
    p = (void *) (base + used);                                               \
    used += ((uint64_t) (n) + 255) & ~255ULL

#define dsa_take_fp8(v, rows, cols)                                           \
    (v).ld = ((rows) + 3) & ~3ULL;                                            \
    dsa_take((v).q, (rows) * (cols));                                         \
    dsa_take((v).scale, (v).ld * ((cols) / DSA_FP8_GROUP))

static uint64_t
dsa_cuda_model_lay(dsa_cuda_model_t *m, uintptr_t base)
{
    uint32_t            pairs;
    uint64_t            used, block, most, rows, absorbed, keys, hidden, heads,
                        inter, moe, shared, ih, seqs, places;
    dsa_cuda_work_t           *w;
    dsa_cuda_input_t          *in;
    const dsa_model_config_t  *s;

    w = &m->work;
    in = &m->input;
    s = &m->config;
    used = 0;

    rows = m->max_rows + DSA_CUDA_SPARE;
    seqs = m->max_samples + DSA_CUDA_SPARE;
    absorbed = (m->max_rows < DSA_CUDA_ABSORB_ROWS ? m->max_rows
                                                   : DSA_CUDA_ABSORB_ROWS);
    absorbed = absorbed < m->max_samples ? m->max_samples : absorbed;
    absorbed += DSA_CUDA_SPARE;
    keys = m->heads_tokens + DSA_CUDA_SPARE;
    hidden = s->hidden_size;
    heads = s->num_attention_heads;
    ih = dsa_cuda_index_heads(s);
    inter = s->intermediate_size;
    moe = s->moe_intermediate_size;
    shared = moe * s->n_shared_experts;
    inter = inter > shared ? inter : shared;

    pairs = m->max_rows * s->num_experts_per_tok;
    places = (uint64_t) pairs + (uint64_t) s->n_routed_experts * DSA_MOE_ALIGN;
    places = (places + DSA_MOE_ALIGN - 1) / DSA_MOE_ALIGN * DSA_MOE_ALIGN;

    dsa_take(in->token, rows);
    dsa_take(in->position, rows);
    dsa_take(in->slot, rows);
    dsa_take(in->keys, rows);
    dsa_take(in->owner, rows);
    dsa_take(in->feed, rows);
    dsa_take(in->last, seqs);
    dsa_take(in->sampling, seqs);
    in->end = (void *) (base + used);
    dsa_take(in->history, (uint64_t) m->max_samples * m->context);
    dsa_take(in->pages, (uint64_t) m->max_samples * m->ld_pages);
    dsa_take(m->sample, seqs);
    dsa_take(m->rope, (uint64_t) m->context * DSA_CUDA_ROPE);
    dsa_take_bytes(m->gemm_work, dsa_cuda_gemm_work());

    dsa_take(w->x, rows * hidden);
    dsa_take(w->residual, rows * hidden);
    dsa_take(w->y, rows * hidden);
    dsa_take_fp8(w->y8, rows, hidden);
    dsa_take(w->pick, rows * m->topk);
    dsa_take(w->pick_slot, rows * m->topk);
    dsa_take(w->n_pick, rows);

    block = used;

    dsa_take(w->a, rows * (s->q_lora_rank + 640ULL + DSA_CUDA_INDEX));
    dsa_take_fp8(w->qr8, rows, (uint64_t) s->q_lora_rank);
    dsa_take(w->q, rows * heads * (DSA_CUDA_NOPE + DSA_CUDA_ROPE));
    dsa_take(w->o, rows * heads * DSA_CUDA_NOPE);
    dsa_take_fp8(w->o8, rows, heads * DSA_CUDA_NOPE);
    dsa_take(w->q_latent, absorbed * heads
                          * (DSA_CUDA_LATENT + DSA_CUDA_ROPE));
    dsa_take(w->u, absorbed * heads * DSA_CUDA_LATENT);
    dsa_take(w->index_q, rows * ih * DSA_CUDA_INDEX);
    dsa_take(w->index_q8, rows * ih * DSA_CUDA_INDEX);
    dsa_take(w->index_w, rows * ih);
    dsa_take(w->index_w8, rows * ih);
    dsa_take_bytes(w->score, DSA_CUDA_SCORE_BYTES);
    dsa_take_bytes(w->decode_work,
                   dsa_cuda_attention_work(&m->state, (uint32_t) absorbed,
                                           (uint32_t) heads, m->topk));
    dsa_take(w->latents, ((uint64_t) m->context + DSA_PAGE_TOKENS)
                         * (DSA_CUDA_LATENT + DSA_CUDA_ROPE));
    dsa_take_fp8(w->latents8, keys, DSA_CUDA_LATENT);
    dsa_take(w->kv, keys * heads * 2 * DSA_CUDA_NOPE);
    dsa_take(w->mask, rows * ((m->heads_tokens + 31) / 32));

    most = used;
    used = block;

    dsa_take(w->logits, rows * s->n_routed_experts);
    dsa_take(w->expert, rows * s->num_experts_per_tok);
    dsa_take(w->weight, rows * s->num_experts_per_tok);
    dsa_take(w->plan.offset, s->n_routed_experts + 1);
    dsa_take(w->plan.count, s->n_routed_experts);
    dsa_take(w->plan.place, rows * s->num_experts_per_tok);
    dsa_take(w->plan.row, places);
    dsa_take_fp8(w->pair8, places, hidden);
    dsa_take(w->pair_gu, places * 2 * moe);
    dsa_take_fp8(w->pair_act, places, moe);
    dsa_take(w->pair_y, places * hidden);
    dsa_take(w->gu, rows * 2 * inter);
    dsa_take_fp8(w->act, rows, inter);
    dsa_take(w->shared, rows * hidden);
    w->plan.places = (uint32_t) places;
    w->plan.align = DSA_MOE_ALIGN;

    most = used > most ? used : most;
    used = block;

    dsa_take(w->last_x, seqs * hidden);
    dsa_take(w->last_residual, seqs * hidden);
    dsa_take(w->last_y, seqs * hidden);
    dsa_take(w->vocab, seqs * s->vocab_size);
    dsa_take_bytes(w->sample_work,
                   dsa_cuda_sample_work(m->max_samples, s->vocab_size));

    return used > most ? used : most;
}


static int
dsa_cuda_model_rope(dsa_cuda_model_t *m, dsa_err_t *err)
{
    int                        rc;
    float                     *table, freq[DSA_CUDA_ROPE / 2];
    double                     magnitude;
    uint32_t                   i;
    dsa_rope_conf_t            rope;
    const dsa_model_config_t  *s;

    s = &m->config;

    rope.theta = s->rope_theta;
    rope.factor = s->yarn_factor;
    rope.beta_fast = s->yarn_beta_fast;
    rope.beta_slow = s->yarn_beta_slow;
    rope.mscale = s->yarn_mscale;
    rope.mscale_all_dim = s->yarn_mscale_all_dim;
    rope.original = s->yarn_original_max_position;

    magnitude = dsa_rope_magnitude(&rope);
    m->attention_scale = (float) (dsa_rope_softmax(&rope)
                                  / sqrt(DSA_CUDA_NOPE + DSA_CUDA_ROPE));

    table = malloc((uint64_t) m->context * DSA_CUDA_ROPE * sizeof(float));

    if (table == NULL) {
        return dsa_error(err, "no memory for the angles of %u positions",
                         m->context);
    }

    dsa_rope_frequencies(freq, DSA_CUDA_ROPE, &rope);

    for (i = 0; i < m->context; i++) {
        dsa_rope_angles(table + (uint64_t) i * DSA_CUDA_ROPE,
                        table + (uint64_t) i * DSA_CUDA_ROPE
                        + DSA_CUDA_ROPE / 2,
                        freq, DSA_CUDA_ROPE, i, magnitude);
    }

    rc = cudaMemcpyAsync(m->rope, table,
                         (uint64_t) m->context * DSA_CUDA_ROPE
                         * sizeof(float), cudaMemcpyHostToDevice, m->stream);
    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(m->stream);
    free(table);

    if (rc != 0) {
        return dsa_error(err, "the angles on the GPU: %s",
                         dsa_cuda_error(rc));
    }

    return DSA_OK;
}


uint32_t
dsa_cuda_model_parts(const dsa_cuda_model_t *m, dsa_cuda_seq_t *part,
    uint32_t start, uint32_t n, uint32_t prompt, uint32_t row, uint32_t table)
{
    uint32_t  heads, parts;

    parts = 0;
    heads = 0;

    if (prompt <= m->heads_tokens && start < prompt) {
        heads = n < prompt - start ? n : prompt - start;

        part->row = row;
        part->start = start;
        part->n = heads;
        part->table = table;
        part->heads_form = 1;
        part++;
        parts++;
    }

    if (heads < n) {
        part->row = row + heads;
        part->start = start + heads;
        part->n = n - heads;
        part->table = table;
        part->heads_form = 0;
        parts++;
    }

    return parts;
}


int
dsa_cuda_model_decodes(const dsa_cuda_model_t *m, uint32_t start, uint32_t n,
    uint32_t prompt)
{
    return n == 1 && (start >= prompt || prompt > m->heads_tokens);
}


int
dsa_cuda_model_run(dsa_cuda_model_t *m, const dsa_cuda_step_t *step,
    dsa_err_t *err)
{
    int  rc;

    rc = dsa_cuda_model_layers(m, step);

    if (rc == 0 && step->samples != 0) {
        rc = dsa_cuda_model_head(m, step);
    }

    if (rc != 0) {
        return dsa_error(err, "a step of %u rows on the GPU: %s", step->rows,
                         dsa_cuda_error(rc));
    }

    return DSA_OK;
}


/*
 * As dsa_model_forward(): x is what a block reads and writes, residual the
 * stream it is added to; the norm before each block adds the one before it.
 */

static int
dsa_cuda_model_layers(dsa_cuda_model_t *m, const dsa_cuda_step_t *step)
{
    uint32_t                   l;
    dsa_cuda_work_t           *w;
    const dsa_model_config_t  *s;
    const dsa_cuda_layer_t    *layer;

    w = &m->work;
    s = &m->config;

    /* cuBLASLt wants scales without gaps: kernels/gemm.h */

    w->y8.ld = dsa_cuda_ld(step->rows);
    w->qr8.ld = dsa_cuda_ld(step->rows);
    w->o8.ld = dsa_cuda_ld(step->rows);
    w->act.ld = dsa_cuda_ld(step->rows);

    dsa_cuda_try(dsa_cuda_feed(m->input.token, m->input.feed, m->sample,
                               step->rows, m->stream));
    dsa_cuda_try(dsa_cuda_embed(w->x, m->weights.embed, m->input.token,
                                step->rows, s->hidden_size, s->vocab_size,
                                m->stream));

    if (!step->indexed) {
        dsa_cuda_try(dsa_cuda_select_all(m, step));
    }

    for (l = 0; l < s->num_hidden_layers; l++) {
        layer = &m->weights.layer[l];

        dsa_cuda_try(dsa_cuda_add_rmsnorm(w->y, &w->y8, w->x,
                                          l > 0 ? w->residual : NULL,
                                          w->residual, layer->input_norm,
                                          step->rows, s->hidden_size,
                                          s->rms_norm_eps, m->stream));
        dsa_cuda_try(dsa_cuda_attention(m, l, step));
        dsa_cuda_try(dsa_cuda_tell_bf16(m, "attn_out", l, step->rows,
                                        s->hidden_size, w->x, NULL));

        dsa_cuda_try(dsa_cuda_add_rmsnorm(w->y, &w->y8, w->x, w->residual,
                                          w->residual, layer->post_norm,
                                          step->rows, s->hidden_size,
                                          s->rms_norm_eps, m->stream));
        dsa_cuda_try(dsa_cuda_ffn(m, l, step));
        dsa_cuda_try(dsa_cuda_tell_bf16(m, "hidden", l, step->rows,
                                        s->hidden_size, w->x, w->residual));
    }

    return 0;
}


/* Norm, head and sampling of the rows that are sampled from. */

static int
dsa_cuda_model_head(dsa_cuda_model_t *m, const dsa_cuda_step_t *step)
{
    uint32_t                   n, hidden;
    dsa_cuda_work_t           *w;
    const dsa_model_config_t  *s;

    w = &m->work;
    s = &m->config;
    n = step->samples;
    hidden = s->hidden_size;

    dsa_cuda_try(dsa_cuda_gather_rows(w->last_x, w->x, m->input.last, n,
                                      hidden, m->stream));
    dsa_cuda_try(dsa_cuda_gather_rows(w->last_residual, w->residual,
                                      m->input.last, n, hidden, m->stream));
    dsa_cuda_try(dsa_cuda_add_rmsnorm(w->last_y, NULL, w->last_x,
                                      w->last_residual, w->last_residual,
                                      m->weights.norm, n, hidden,
                                      s->rms_norm_eps, m->stream));
    dsa_cuda_try(dsa_cuda_gemm_bf16(m->gemm, w->vocab, s->vocab_size, 1,
                                    w->last_y, hidden, m->weights.head, hidden,
                                    n, s->vocab_size, hidden, m->stream));

    return dsa_cuda_sample(m->sample, m->input.sampling, w->vocab,
                           s->vocab_size, n, s->vocab_size, m->allowed,
                           m->input.history, w->sample_work, m->stream);
}


int
dsa_cuda_tell(dsa_cuda_model_t *m, const char *name, uint32_t layer,
    uint32_t rows, uint32_t cols, const void *data)
{
    int       rc;
    void     *p;
    uint64_t  n;

    if (m->trace == NULL) {
        return 0;
    }

    n = (uint64_t) rows * cols * sizeof(float);
    p = malloc(n);

    if (p == NULL) {
        return cudaErrorMemoryAllocation;
    }

    rc = cudaMemcpyAsync(p, data, n, cudaMemcpyDeviceToHost, m->stream);
    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(m->stream);

    if (rc == 0) {
        m->trace(m->trace_ctx, name, layer, rows, cols, p);
    }

    free(p);

    return rc;
}


static int
dsa_cuda_fetch_bf16(float *out, const dsa_bf16_t *x, uint64_t n,
    dsa_stream_t stream)
{
    int          rc;
    uint64_t     i;
    dsa_bf16_t  *v;

    v = malloc(n * sizeof(dsa_bf16_t));

    if (v == NULL) {
        return cudaErrorMemoryAllocation;
    }

    rc = cudaMemcpyAsync(v, x, n * sizeof(dsa_bf16_t), cudaMemcpyDeviceToHost,
                         stream);
    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(stream);

    for (i = 0; i < n; i++) {
        out[i] += dsa_bf16_decode(v[i]);
    }

    free(v);

    return rc;
}


int
dsa_cuda_tell_bf16(dsa_cuda_model_t *m, const char *name, uint32_t layer,
    uint32_t rows, uint32_t cols, const dsa_bf16_t *x,
    const dsa_bf16_t *residual)
{
    int       rc;
    float    *sum;
    uint64_t  n;

    if (m->trace == NULL) {
        return 0;
    }

    n = (uint64_t) rows * cols;
    sum = calloc(n, sizeof(float));

    if (sum == NULL) {
        return cudaErrorMemoryAllocation;
    }

    rc = dsa_cuda_fetch_bf16(sum, x, n, m->stream);

    if (rc == 0 && residual != NULL) {
        rc = dsa_cuda_fetch_bf16(sum, residual, n, m->stream);
    }

    if (rc == 0) {
        m->trace(m->trace_ctx, name, layer, rows, cols, sum);
    }

    free(sum);

    return rc;
}
