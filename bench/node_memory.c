
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cuda_runtime_api.h>
#include <math.h>
#include <string.h>

#include "bench/node.h"
#include "kernels/sample/random.h"


/* What the engine leaves to the driver, the library and graphs. */
#define DSA_NODE_SLACK      (1536ULL << 20)

/* Memory of the card that the node's capacity is computed for: an H200. */
#define DSA_NODE_CARD       150.8e9

#define DSA_NODE_SPARE      16          /* rows, as in engine/cuda/layout.c */


/* Memory that is handed out from the beginning to the end. */

typedef struct {
    uintptr_t           base;
    uint64_t            used;
} dsa_node_memory_t;


#define dsa_node_place(m, p, n)                                               \
    p = dsa_node_bytes(m, (uint64_t) (n) * sizeof(*(p)))

#define dsa_node_place_fp8(m, v, rows, cols)                                  \
    (v).ld = ((rows) + 3) & ~3ULL;                                            \
    dsa_node_place(m, (v).q, (rows) * (cols));                                \
    dsa_node_place(m, (v).scale, (v).ld * ((cols) / 128))


static int dsa_node_check(const dsa_model_config_t *s, dsa_kv_e kv,
    dsa_err_t *err);
static int dsa_node_device(dsa_node_t *n, dsa_err_t *err);
static int dsa_node_weights(dsa_node_t *n, dsa_err_t *err);
static int dsa_node_pages(dsa_node_t *n, dsa_err_t *err);
static uint64_t dsa_node_layout(dsa_node_t *n, uintptr_t base);
static int dsa_node_workspace(dsa_node_t *n, dsa_err_t *err);
static int dsa_node_rope(dsa_node_t *n);


/* Returns the last component of a path. */

static const char *
dsa_node_model_name(const char *path)
{
    const char  *slash;

    slash = strrchr(path, '/');

    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}


int
dsa_node_open(dsa_node_t *n, const char *model, uint32_t gpus,
    dsa_attention_e attention, dsa_kv_e kv, dsa_err_t *err)
{
    dsa_model_config_t  *s;

    memset(n, 0, sizeof(dsa_node_t));

    n->gpus = gpus;
    n->model = dsa_node_model_name(model);
    n->attention = attention;
    s = &n->config;

    if (dsa_model_config_read(s, model, err) != DSA_OK
        || dsa_cuda_check_config(s, err) != DSA_OK
        || dsa_node_check(s, kv, err) != DSA_OK
        || dsa_shard_init(&n->shard, s, 0, gpus, attention, err)
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    n->dense = dsa_model_config_dense(s);
    n->kv_bf16 = (uint32_t) dsa_kv_bf16(DSA_BACKEND_CUDA, kv, s);
    n->context = s->max_position_embeddings < DSA_CUDA_CONTEXT
                 ? s->max_position_embeddings : DSA_CUDA_CONTEXT;
    n->ld_pages = (n->context + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS;
    n->heads = s->num_attention_heads / n->shard.heads.of * n->shard.heads.n;
    n->shape = dsa_cuda_heads_find(s->qk_nope_head_dim, s->v_head_dim);
    n->vocab = s->vocab_size / n->shard.vocab.of * n->shard.vocab.n;

    if (!n->dense) {
        n->index_constant = 1.0f / sqrtf((float) s->index_n_heads)
                            / sqrtf((float) s->index_head_dim);
    }

    n->router.experts = s->n_routed_experts;
    n->router.groups = s->n_group;
    n->router.groups_kept = s->topk_group;
    n->router.k = s->num_experts_per_tok;
    n->router.normalize = s->norm_topk_prob;
    n->router.scale = s->routed_scaling_factor;

    dsa_cuda_cache_layout(&n->cache, s, 0, n->kv_bf16);

    if (dsa_node_device(n, err) != DSA_OK
        || dsa_node_weights(n, err) != DSA_OK
        || dsa_node_workspace(n, err) != DSA_OK
        || dsa_node_pages(n, err) != DSA_OK)
    {
        dsa_node_close(n);
        return DSA_ERROR;
    }

    return DSA_OK;
}


void
dsa_node_close(dsa_node_t *n)
{
    (void) cudaDeviceSynchronize();

    dsa_cuda_gemm_destroy(n->gemm);
    dsa_cuda_weights_free(&n->weights);
    dsa_bench_free_all(&n->b);
    (void) cudaFree(n->counters);

    if (n->b.stream != NULL) {
        (void) cudaStreamDestroy(n->b.stream);
    }
}


/* The ops of a layer are those with FP8 weights; experts may be INT4. */

static int
dsa_node_check(const dsa_model_config_t *s, dsa_kv_e kv, dsa_err_t *err)
{
    uint32_t  i;

    if (kv == DSA_KV_BF16 && !dsa_model_config_dense(s)) {
        return dsa_error(err, "\"--kv bf16\": the model has an indexer; "
                         "expected \"--kv fp8\", or none");
    }

    if (s->q_lora_rank == 0) {
        return dsa_error(err, "config.json: \"q_lora_rank\" is missing; "
                         "\"dsa bench node\" expects queries of low rank");
    }

    for (i = 0; i < DSA_MATRICES; i++) {
        if (s->format[i] == DSA_FORMAT_FLOAT) {
            return dsa_error(err, "config.json: the weights are BF16; \"dsa "
                             "bench node\" expects FP8, or \"w4afp8\" for the "
                             "experts (quantization_config)");
        }
    }

    return DSA_OK;
}


static int
dsa_node_device(dsa_node_t *n, dsa_err_t *err)
{
    int  rc;

    rc = cudaSetDevice(0);
    rc = rc != 0 ? rc : (int) cudaStreamCreateWithFlags(&n->b.stream,
                                                        cudaStreamNonBlocking);
    rc = rc != 0 ? rc : (int) cudaMalloc((void **) &n->counters,
                                         sizeof(dsa_cuda_counters_t));
    rc = rc != 0 ? rc : dsa_cuda_init(&n->b.state, n->counters);

    if (rc != 0) {
        return dsa_error(err, "the GPU cannot be prepared: %s",
                         dsa_cuda_error(rc));
    }

    return DSA_OK;
}


static int
dsa_node_weights(dsa_node_t *n, dsa_err_t *err)
{
    uint32_t            i;
    dsa_read_list_t     list;
    dsa_model_config_t  config;

    config = n->config;
    config.first_k_dense_replace = DSA_NODE_LAYERS;
    config.num_hidden_layers = 2 * DSA_NODE_LAYERS;

    for (i = 0; i < config.num_hidden_layers; i++) {
        config.layer[i].moe = i >= DSA_NODE_LAYERS;
        config.layer[i].selection = n->dense ? DSA_SELECTION_ALL
                                             : DSA_SELECTION_OWN;
    }

    memset(&list, 0, sizeof(list));

    if (dsa_cuda_weights_place(&n->weights, &config, &n->shard, 0, NULL,
                               n->b.stream, &list, err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_cuda_weights_finish(&n->weights, &config, n->b.stream, err);
}


/*
 * Pages have the layers of the whole model, so that a layer's part of them is
 * as scattered as in the engine.  There are as many as a GPU of the node has
 * room for, or as this GPU has, which is also the capacity if the model does
 * not fit the node: layers can be compared with those of the engine then.
 */

static int
dsa_node_pages(dsa_node_t *n, dsa_err_t *err)
{
    int       rc;
    size_t    left, all;
    double    room;
    uint64_t  pages;

    room = DSA_NODE_CARD
           - (double) dsa_cuda_weights_size(&n->config, &n->shard, 0)
           - (double) dsa_node_layout(n, (uintptr_t) n->memory)
           - (double) DSA_NODE_SLACK;

    rc = cudaMemGetInfo(&left, &all);

    if (rc != 0) {
        return dsa_error(err, "the GPU's memory: %s", dsa_cuda_error(rc));
    }

    left = left > DSA_NODE_SLACK ? left - DSA_NODE_SLACK : 0;
    room = room > 0 ? room : (double) left;
    pages = (uint64_t) room / n->cache.page;
    n->capacity = pages * DSA_PAGE_TOKENS;

    if (pages * n->cache.page > left) {
        pages = left / n->cache.page;
    }

    n->pages = (uint32_t) pages;
    n->page = dsa_bench_alloc(&n->b, pages * n->cache.page);

    if (n->page == NULL) {
        return dsa_error(err, "no memory for %u pages", n->pages);
    }

    rc = dsa_cuda_random_pages(n->page, n->pages, &n->cache, &n->config, 0,
                               n->b.stream);
    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(n->b.stream);

    if (rc != 0) {
        return dsa_error(err, "random pages: %s", dsa_cuda_error(rc));
    }

    return DSA_OK;
}


static void *
dsa_node_bytes(dsa_node_memory_t *m, uint64_t bytes)
{
    void  *p;

    p = (void *) (m->base + m->used);
    m->used += (bytes + 255) & ~255ULL;

    return p;
}


static void
dsa_node_layout_sparse(dsa_node_memory_t *m, dsa_node_t *n, uint64_t tokens)
{
    size_t            bytes;
    dsa_cuda_work_t  *w;

    w = &n->work;
    bytes = dsa_cuda_attention_work(&n->b.state,
                                    DSA_CUDA_ABSORB_TOKENS + DSA_NODE_SPARE,
                                    n->heads, n->config.index_topk);

    w->score = dsa_node_bytes(m, DSA_CUDA_SCORE_BYTES);
    w->decode_work = dsa_node_bytes(m, bytes);
    dsa_node_place(m, w->latents, ((uint64_t) n->context + DSA_PAGE_TOKENS)
                                  * (DSA_CUDA_LATENT + DSA_CUDA_ROPE));
    dsa_node_place(m, w->mask, tokens * (DSA_CUDA_MHA_TOKENS / 32));
}


static void
dsa_node_layout_dense(dsa_node_memory_t *m, dsa_node_t *n, uint64_t tokens)
{
    size_t            bytes;
    dsa_cuda_work_t  *w;

    w = &n->work;
    bytes = dsa_cuda_attention_dense_work(DSA_CUDA_ABSORB_TOKENS
                                          + DSA_NODE_SPARE, n->heads,
                                          n->context);

    w->decode_work = dsa_node_bytes(m, bytes);
    dsa_node_place(m, w->latents, (DSA_CUDA_MHA_TOKENS + DSA_NODE_SPARE)
                                  * (DSA_CUDA_LATENT + DSA_CUDA_ROPE));
    dsa_node_place(m, w->part_sum, tokens * n->heads * n->config.v_head_dim);
    dsa_node_place(m, w->part_norm, tokens * n->heads * DSA_CUDA_HEADS_NORM);
}


static void
dsa_node_layout_attention(dsa_node_memory_t *m, dsa_node_t *n,
    uint64_t tokens)
{
    uint64_t                   heads, nope, v, index, absorbed;
    dsa_cuda_work_t           *w;
    const dsa_model_config_t  *s;

    w = &n->work;
    s = &n->config;
    heads = n->heads;
    nope = s->qk_nope_head_dim;
    v = s->v_head_dim;
    index = dsa_cuda_index_heads(s);
    absorbed = DSA_CUDA_ABSORB_TOKENS + DSA_NODE_SPARE;

    dsa_node_place(m, w->a, tokens * (s->q_lora_rank + 640ULL
                                      + DSA_CUDA_INDEX));
    dsa_node_place_fp8(m, w->qr8, tokens, (uint64_t) s->q_lora_rank);
    dsa_node_place(m, w->q, tokens * heads * (nope + DSA_CUDA_ROPE));
    dsa_node_place(m, w->o, tokens * heads * v);
    dsa_node_place_fp8(m, w->o8, tokens, heads * v);
    dsa_node_place(m, w->q_latent, absorbed * heads
                                   * (DSA_CUDA_LATENT + DSA_CUDA_ROPE));
    dsa_node_place(m, w->u, absorbed * heads * DSA_CUDA_LATENT);
    dsa_node_place(m, w->index_q, tokens * index * DSA_CUDA_INDEX);
    dsa_node_place(m, w->index_q8, tokens * index * DSA_CUDA_INDEX);
    dsa_node_place(m, w->index_w, tokens * index);
    dsa_node_place(m, w->index_w8, tokens * index);
    dsa_node_place_fp8(m, w->latents8, tokens, DSA_CUDA_LATENT);
    dsa_node_place(m, w->kv, tokens * heads * (nope + v));

    if (n->dense) {
        dsa_node_layout_dense(m, n, tokens);
    } else {
        dsa_node_layout_sparse(m, n, tokens);
    }
}


static void
dsa_node_layout_ffn(dsa_node_memory_t *m, dsa_node_t *n, uint64_t tokens,
    uint64_t rows)
{
    uint64_t                   k, hidden, inter, moe, places, parts;
    dsa_cuda_work_t           *w;
    const dsa_model_config_t  *s;

    w = &n->work;
    s = &n->config;
    k = s->num_experts_per_tok;
    hidden = s->hidden_size;
    parts = n->shard.width.of;
    moe = s->moe_intermediate_size / parts;
    inter = s->intermediate_size / parts;

    /* as in engine/cuda/layout.c: all pairs of a round may be here */

    places = rows < DSA_CUDA_ROUND_TOKENS ? rows : DSA_CUDA_ROUND_TOKENS;
    places = (places * k + s->n_routed_experts * DSA_MOE_ALIGN + DSA_MOE_ALIGN)
             / DSA_MOE_ALIGN * DSA_MOE_ALIGN;

    dsa_node_place(m, w->logits, tokens * s->n_routed_experts);
    dsa_node_place(m, w->expert, tokens * k);
    dsa_node_place(m, w->weight, tokens * k);
    dsa_node_place(m, w->plan.offset, s->n_routed_experts + 1);
    dsa_node_place(m, w->plan.count, s->n_routed_experts);
    dsa_node_place(m, w->plan.place, rows * k);
    dsa_node_place(m, w->plan.row, places);
    dsa_node_place_fp8(m, w->pair8, places, hidden);
    dsa_node_place(m, w->pair_gu, places * 2 * moe);
    dsa_node_place_fp8(m, w->pair_act8, places, moe);
    dsa_node_place(m, w->pair_y, places * hidden);
    dsa_node_place(m, w->gu, tokens * 2 * inter);
    dsa_node_place_fp8(m, w->act8, tokens, inter);
    dsa_node_place(m, w->shared, tokens * hidden);

    w->plan.places = (uint32_t) places;
    w->plan.align = DSA_MOE_ALIGN;

    dsa_node_place_fp8(m, n->gathered, rows, hidden);
    dsa_node_place(m, n->gathered_weight, rows * k);
    dsa_node_place(m, n->chosen, DSA_NODE_SETS * rows * k);
    dsa_node_place(m, n->logits, DSA_NODE_SETS * DSA_MOE_SMALL
                                 * s->n_routed_experts);
}


static uint64_t
dsa_node_layout(dsa_node_t *n, uintptr_t base)
{
    uint64_t            tokens, rows, samples, hidden;
    dsa_cuda_work_t    *w;
    dsa_cuda_input_t   *in;
    dsa_node_memory_t   m;

    w = &n->work;
    in = &n->input;
    hidden = n->config.hidden_size;

    tokens = DSA_NODE_TOKENS + DSA_NODE_SPARE;
    samples = DSA_NODE_BATCH + DSA_NODE_SPARE;
    rows = n->attention == DSA_ATTENTION_DATA
           ? (uint64_t) n->gpus * DSA_NODE_TOKENS : DSA_NODE_BATCH;

    m.base = base;
    m.used = 0;

    dsa_node_place(&m, in->token, tokens);
    dsa_node_place(&m, in->position, tokens);
    dsa_node_place(&m, in->slot, tokens);
    dsa_node_place(&m, in->keys, tokens);
    dsa_node_place(&m, in->feed, tokens);
    dsa_node_place(&m, in->last, samples);
    dsa_node_place(&m, in->sampling, samples);
    dsa_node_place(&m, in->pages, samples * n->ld_pages);
    dsa_node_place(&m, n->sample, samples);
    dsa_node_place(&m, n->rope, (uint64_t) n->context * DSA_CUDA_ROPE);
    n->gemm_work = dsa_node_bytes(&m, dsa_cuda_gemm_work());

    dsa_node_place(&m, w->x, tokens * hidden);
    dsa_node_place(&m, w->residual, tokens * hidden);
    dsa_node_place(&m, n->sum, tokens * hidden);
    dsa_node_place(&m, w->y, tokens * hidden);
    dsa_node_place_fp8(&m, w->y8, tokens, hidden);
    dsa_node_place(&m, w->pick, tokens * n->config.index_topk);
    dsa_node_place(&m, w->pick_slot, tokens * n->config.index_topk);
    dsa_node_place(&m, w->n_pick, tokens);

    dsa_node_layout_attention(&m, n, tokens);
    dsa_node_layout_ffn(&m, n, tokens, rows);

    dsa_node_place(&m, w->last_x, samples * hidden);
    dsa_node_place(&m, w->last_residual, samples * hidden);
    dsa_node_place(&m, w->last_y, samples * hidden);
    dsa_node_place(&m, w->vocab_part, samples * n->vocab);
    w->vocab = w->vocab_part;

    if (n->vocab != n->config.vocab_size) {
        dsa_node_place(&m, w->vocab, samples * n->config.vocab_size);
    }

    w->sample_work = dsa_node_bytes(&m,
                         dsa_cuda_sample_work((uint32_t) samples,
                                              n->config.vocab_size));

    return m.used;
}


/* Random hidden states, so that tokens differ; the rest begins as zeros. */

static int
dsa_node_workspace(dsa_node_t *n, dsa_err_t *err)
{
    int                rc;
    uint64_t           size, hidden, rows;
    dsa_cuda_work_t   *w;

    w = &n->work;
    size = dsa_node_layout(n, 0);
    n->memory = dsa_bench_alloc(&n->b, size);

    if (n->memory == NULL) {
        return dsa_error(err, "no memory for %.2f GB of workspace",
                         (double) size * 1e-9);
    }

    (void) dsa_node_layout(n, (uintptr_t) n->memory);

    hidden = n->config.hidden_size;
    rows = n->gathered.ld;

    rc = cudaMemsetAsync(n->memory, 0, size, n->b.stream);
    rc = rc != 0 ? rc : dsa_cuda_random_bf16(w->x, DSA_NODE_TOKENS * hidden,
                                             0, 1, 11, n->b.stream);
    rc = rc != 0 ? rc : dsa_cuda_random_bf16(w->residual,
                                             DSA_NODE_TOKENS * hidden, 0, 1,
                                             12, n->b.stream);
    rc = rc != 0 ? rc : dsa_cuda_random_e4m3(n->gathered.q, rows * hidden, 13,
                                             n->b.stream);
    rc = rc != 0 ? rc : dsa_cuda_random_f32(n->gathered.scale,
                                            rows * (hidden / 128), 0x1p-7f, 0,
                                            14, n->b.stream);
    rc = rc != 0 ? rc : dsa_cuda_random_f32(n->gathered_weight,
                                            rows * n->router.k, 0.3f, 0.1f,
                                            15, n->b.stream);
    rc = rc != 0 ? rc : dsa_cuda_random_f32(w->vocab,
                                            (uint64_t) DSA_NODE_BATCH
                                            * n->config.vocab_size, 0, 1.7f,
                                            16, n->b.stream);
    rc = rc != 0 ? rc : dsa_node_rope(n);
    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(n->b.stream);
    rc = rc != 0 ? rc : dsa_cuda_gemm_create(&n->gemm, &n->b.state,
                                             n->gemm_work);

    if (rc != 0) {
        return dsa_error(err, "the workspace: %s", dsa_cuda_error(rc));
    }

    return DSA_OK;
}


/*
 * Any angles take the same time: those of each position are random.  The scale
 * of attention is the model's without YaRN.
 */

static int
dsa_node_rope(dsa_node_t *n)
{
    n->attention_scale = 1.0f / sqrtf((float) n->config.qk_nope_head_dim
                                       + DSA_CUDA_ROPE);

    return dsa_cuda_random_f32(n->rope, (uint64_t) n->context * DSA_CUDA_ROPE,
                               0, 0.7f, 17, n->b.stream);
}
