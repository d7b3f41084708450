
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/cuda/model.h"
#include "base/log.h"
#include "kernels/bf16.h"
#include "kernels/fp8.h"
#include "kernels/random.h"


#define DSA_READERS         16
#define DSA_READER_BYTES    (8U << 20)  /* of a pinned buffer; two a reader */
#define DSA_PROGRESS_MS     2000
#define DSA_ALIGN           256


/* A tensor, or a part of one, on its way to the GPU. */

typedef struct {
    uint8_t            *to;
    const uint8_t      *from;
    uint64_t            bytes;          /* at the destination */
    int                 widen;          /* from BF16 to float32 */
} dsa_load_task_t;


/*
 * The weights are visited twice: once to count, once, with the memory there,
 * to place them and to note what is to be read.
 */

typedef struct {
    const dsa_model_config_t  *config;
    const dsa_weights_t       *weights;      /* NULL: random */
    uint8_t                   *memory;         /* NULL while counting */
    uint64_t                   used;
    dsa_load_task_t           *task;
    size_t                     tasks;
    size_t                     size;
    uint64_t                   bytes;          /* of all tasks */
    int                        full;           /* no memory for a task */
    int                        refused;        /* err says which */
    dsa_err_t                 *err;
    int                        rc;             /* of random fills */
    uint64_t                   seed;
    dsa_stream_t               stream;
} dsa_loader_t;


/* What the readers share. */

typedef struct {
    const dsa_loader_t *loader;
    pthread_mutex_t     lock;
    pthread_cond_t      ended;
    size_t              next;           /* task */
    uint64_t            done;           /* bytes */
    unsigned            running;
    int                 device;
    int                 rc;
} dsa_readers_t;


typedef struct {
    uint8_t            *buffer[2];      /* pinned */
    cudaEvent_t         event[2];
    cudaStream_t        stream;
    unsigned            turn;
} dsa_reader_t;


static void dsa_load_layer(dsa_loader_t *ld, dsa_cuda_layer_t *l,
    uint32_t layer, dsa_cuda_weights_t *w);
static int dsa_load_read(const dsa_loader_t *ld, dsa_err_t *err);


static uint64_t
dsa_round_up(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}


static void *
dsa_load_place(dsa_loader_t *ld, uint64_t bytes)
{
    void  *p;

    p = ld->memory != NULL ? ld->memory + ld->used : NULL;
    ld->used += dsa_round_up(bytes, DSA_ALIGN);

    return p;
}


static void
dsa_load_note(dsa_loader_t *ld, void *to, const void *from, uint64_t bytes,
    int widen)
{
    size_t            size;
    dsa_load_task_t  *task;

    if (ld->tasks == ld->size) {
        size = ld->size * 2 + 1024;
        task = realloc(ld->task, size * sizeof(dsa_load_task_t));

        if (task == NULL) {
            ld->full = 1;
            return;
        }

        ld->task = task;
        ld->size = size;
    }

    task = &ld->task[ld->tasks++];

    task->to = to;
    task->from = from;
    task->bytes = bytes;
    task->widen = widen;
    ld->bytes += bytes;
}


static void
dsa_load_random(dsa_loader_t *ld, int rc)
{
    ld->seed++;

    if (ld->rc == 0) {
        ld->rc = rc;
    }
}


/* A vector [n] float32; random ones lie about mean. */

static float *
dsa_load_vector(dsa_loader_t *ld, const dsa_tensor_t *t, uint64_t n,
    float mean, float spread)
{
    float  *p;

    p = dsa_load_place(ld, n * sizeof(float));

    if (p == NULL) {
        return NULL;
    }

    if (ld->weights == NULL) {
        dsa_load_random(ld, dsa_cuda_random_f32(p, n, mean, spread, ld->seed,
                                                ld->stream));
        return p;
    }

    dsa_load_note(ld, p, t->data, n * sizeof(float), t->dtype == DSA_BF16);

    return p;
}


/*
 * A tensor of another dtype than the published one is refused: rounding it
 * would be another model than the CPU computes.
 */

static void
dsa_load_kind(dsa_loader_t *ld, const dsa_tensor_t *t, dsa_dtype_e wanted,
    const char *name, uint32_t layer)
{
    static const char  *names[] = { "F32", "BF16", "F8_E4M3" };

    if (t->dtype != wanted && !ld->refused) {
        ld->refused = 1;
        (void) dsa_error(ld->err, "%s of layer %u is %s, \"backend cuda\" "
                         "takes %s", name, layer, names[t->dtype],
                         names[wanted]);
    }
}


/* A matrix [rows, cols] BF16. */

static dsa_bf16_t *
dsa_load_bf16(dsa_loader_t *ld, const dsa_tensor_t *t, uint64_t rows,
    uint64_t cols, float spread, const char *name, uint32_t layer)
{
    uint64_t     n;
    dsa_bf16_t  *p;

    n = rows * cols;
    p = dsa_load_place(ld, n * sizeof(dsa_bf16_t));

    if (p == NULL) {
        return NULL;
    }

    if (ld->weights == NULL) {
        dsa_load_random(ld, dsa_cuda_random_bf16(p, n, 0, spread, ld->seed,
                                                 ld->stream));
        return p;
    }

    dsa_load_kind(ld, t, DSA_BF16, name, layer);
    dsa_load_note(ld, p, t->data, n * sizeof(dsa_bf16_t), 0);

    return p;
}


/*
 * A matrix of several, one below the other, each from a multiple of 128 rows
 * on, so that no block has two scales; n times in a row for experts, part i
 * of time j being t[j * parts + i].
 */

static void
dsa_load_fp8(dsa_loader_t *ld, dsa_fp8_weight_t *w, const dsa_tensor_t **t,
    const uint32_t *rows, uint32_t parts, uint32_t cols, uint32_t n,
    uint32_t spare, const char *name, uint32_t layer)
{
    float        *scale;
    uint32_t      i, j;
    uint64_t      at, block, all, bytes, scales;
    dsa_e4m3_t   *q;

    all = 0;

    for (i = 0; i < parts; i++) {
        all = dsa_round_up(all, DSA_FP8_GROUP) + rows[i];
    }

    all += spare;
    block = cols / DSA_FP8_GROUP;
    bytes = all * cols;
    scales = dsa_round_up(all, DSA_FP8_GROUP) / DSA_FP8_GROUP * block;

    q = dsa_load_place(ld, bytes * n);
    scale = dsa_load_place(ld, scales * n * sizeof(float));

    w->q = q;
    w->scale = scale;
    w->rows = (uint32_t) all;
    w->cols = cols;

    if (ld->memory == NULL) {
        return;
    }

    if (ld->weights == NULL) {

        /*
         * Uniform codes have a root mean square of about 102: with 2^-13 a
         * product over some thousand columns keeps its operand's size.
         */

        dsa_load_random(ld, dsa_cuda_random_e4m3(q, bytes * n, ld->seed,
                                                 ld->stream));
        dsa_load_random(ld, dsa_cuda_random_f32(scale, scales * n, 0x1p-13f,
                                                0, ld->seed, ld->stream));
        return;
    }

    for (j = 0; j < n; j++) {
        for (i = 0, at = 0; i < parts; i++, t++) {
            at = dsa_round_up(at, DSA_FP8_GROUP);

            dsa_load_kind(ld, *t, DSA_E4M3, name, layer);
            dsa_load_note(ld, q + j * bytes + at * cols, (*t)->data,
                          (uint64_t) rows[i] * cols, 0);
            dsa_load_note(ld, scale + j * scales + at / DSA_FP8_GROUP * block,
                          (*t)->scale,
                          dsa_round_up(rows[i], DSA_FP8_GROUP)
                          / DSA_FP8_GROUP * block * sizeof(float), 0);
            at += rows[i];
        }
    }
}


static void
dsa_load_all(dsa_loader_t *ld, dsa_cuda_weights_t *w)
{
    uint32_t                   i;
    const dsa_model_config_t  *s;
    const dsa_weights_t       *f;

    s = ld->config;
    f = ld->weights;

    w->embed = dsa_load_bf16(ld, f != NULL ? &f->embed : NULL, s->vocab_size,
                             s->hidden_size, 1.0f, "embed_tokens", 0);
    w->norm = dsa_load_vector(ld, f != NULL ? &f->norm : NULL,
                              s->hidden_size, 1.0f, 0.1f);

    for (i = 0; i < s->num_hidden_layers; i++) {
        dsa_load_layer(ld, &w->layer[i], i, w);
    }

    w->head = dsa_load_bf16(ld, f != NULL ? &f->head : NULL, s->vocab_size,
                            s->hidden_size, 0.02f, "lm_head", 0);
}


static void
dsa_load_layer(dsa_loader_t *ld, dsa_cuda_layer_t *l, uint32_t layer,
    dsa_cuda_weights_t *w)
{
    uint32_t                   e, n, rows[3], hidden, inter;
    const dsa_mlp_t           *mlp;
    const dsa_model_config_t  *s;
    const dsa_layer_t         *f;
    const dsa_tensor_t        *t[3], **expert;

    /* where no file is read, tensors are only named */

    static const dsa_layer_t  none;

    s = ld->config;
    f = ld->weights != NULL ? &ld->weights->layer[layer] : &none;
    hidden = s->hidden_size;

    l->moe = layer >= s->first_k_dense_replace
             && layer % s->moe_layer_freq == 0;

    l->input_norm = dsa_load_vector(ld, &f->input_layernorm, hidden, 1.0f,
                                    0.1f);
    l->post_norm = dsa_load_vector(ld, &f->post_attention_layernorm, hidden,
                                   1.0f, 0.1f);
    l->q_norm = dsa_load_vector(ld, &f->q_a_layernorm, s->q_lora_rank, 1.0f,
                                0.1f);
    l->kv_norm = dsa_load_vector(ld, &f->kv_a_layernorm, s->kv_lora_rank,
                                 1.0f, 0.1f);
    l->k_norm = dsa_load_vector(ld, &f->index_k_norm_weight,
                                s->index_head_dim, 1.0f, 0.1f);
    l->k_bias = dsa_load_vector(ld, &f->index_k_norm_bias, s->index_head_dim,
                                0, 0.1f);

    t[0] = &f->q_a_proj;
    t[1] = &f->kv_a_proj_with_mqa;
    t[2] = &f->index_wk;
    rows[0] = s->q_lora_rank;
    rows[1] = s->kv_lora_rank + s->qk_rope_head_dim;
    rows[2] = s->index_head_dim;
    dsa_load_fp8(ld, &l->qkv_a, t, rows, 3, hidden, 1, 0,
                 "q_a_proj, kv_a_proj_with_mqa or indexer.wk", layer);

    w->at_kv = (uint32_t) dsa_round_up(rows[0], DSA_FP8_GROUP);
    w->at_k = w->at_kv + (uint32_t) dsa_round_up(rows[1], DSA_FP8_GROUP);

    t[0] = &f->q_b_proj;
    rows[0] = s->num_attention_heads * (s->qk_nope_head_dim
                                        + s->qk_rope_head_dim);
    dsa_load_fp8(ld, &l->q_b, t, rows, 1, s->q_lora_rank, 1, 0, "q_b_proj",
                 layer);

    t[0] = &f->kv_b_proj;
    rows[0] = s->num_attention_heads * (s->qk_nope_head_dim + s->v_head_dim);
    dsa_load_fp8(ld, &l->kv_b, t, rows, 1, s->kv_lora_rank, 1, 0, "kv_b_proj",
                 layer);

    l->kv_b_bf16 = dsa_load_place(ld, (uint64_t) rows[0] * s->kv_lora_rank
                                      * sizeof(dsa_bf16_t));

    t[0] = &f->o_proj;
    rows[0] = hidden;
    dsa_load_fp8(ld, &l->o, t, rows, 1,
                 s->num_attention_heads * s->v_head_dim, 1, 0, "o_proj",
                 layer);

    /* heads that are added to a multiple of 8 are zeros, and weigh nothing */

    t[0] = &f->index_wq_b;
    rows[0] = s->index_n_heads * s->index_head_dim;
    n = dsa_cuda_index_heads(s) - s->index_n_heads;
    dsa_load_fp8(ld, &l->index_q, t, rows, 1, s->q_lora_rank, 1,
                 n * s->index_head_dim, "indexer.wq_b", layer);

    l->index_w = dsa_load_bf16(ld, &f->index_weights_proj, s->index_n_heads,
                               hidden, 0.02f, "indexer.weights_proj", layer);
    (void) dsa_load_place(ld, (uint64_t) n * hidden * sizeof(dsa_bf16_t));

    mlp = l->moe ? &f->shared : &f->mlp;
    inter = l->moe ? s->moe_intermediate_size * s->n_shared_experts
                   : s->intermediate_size;

    t[0] = &mlp->gate;
    t[1] = &mlp->up;
    rows[0] = inter;
    rows[1] = inter;
    dsa_load_fp8(ld, &l->gate_up, t, rows, 2, hidden, 1, 0,
                 "gate_proj or up_proj", layer);

    t[0] = &mlp->down;
    rows[0] = hidden;
    dsa_load_fp8(ld, &l->down, t, rows, 1, inter, 1, 0, "down_proj", layer);

    if (!l->moe) {
        return;
    }

    l->router = dsa_load_bf16(ld, &f->router, s->n_routed_experts, hidden,
                              0.02f, "mlp.gate", layer);
    l->router_bias = dsa_load_vector(ld, &f->router_bias,
                                     s->n_routed_experts, 0, 0.01f);

    n = s->n_routed_experts;
    inter = s->moe_intermediate_size;
    expert = NULL;

    if (ld->memory != NULL && ld->weights != NULL) {
        expert = malloc(2 * n * sizeof(dsa_tensor_t *));

        if (expert == NULL) {
            ld->full = 1;
            return;
        }

        for (e = 0; e < n; e++) {
            expert[2 * e] = &f->expert[e].gate;
            expert[2 * e + 1] = &f->expert[e].up;
        }
    }

    rows[0] = inter;
    rows[1] = inter;
    dsa_load_fp8(ld, &l->expert_gate_up, expert, rows, 2, hidden, n, 0,
                 "an expert's gate_proj or up_proj", layer);

    if (expert != NULL) {
        for (e = 0; e < n; e++) {
            expert[e] = &f->expert[e].down;
        }
    }

    rows[0] = hidden;
    dsa_load_fp8(ld, &l->expert_down, expert, rows, 1, inter, n, 0,
                 "an expert's down_proj", layer);

    free(expert);
}


uint64_t
dsa_cuda_weights_size(const dsa_model_config_t *config)
{
    uint64_t            used;
    dsa_loader_t        ld;
    dsa_cuda_weights_t  w;

    memset(&ld, 0, sizeof(ld));
    memset(&w, 0, sizeof(w));

    w.layer = calloc(config->num_hidden_layers, sizeof(dsa_cuda_layer_t));

    if (w.layer == NULL) {
        return UINT64_MAX;
    }

    ld.config = config;
    dsa_load_all(&ld, &w);
    used = ld.used;

    free(w.layer);

    return used;
}


int
dsa_cuda_weights_load(dsa_cuda_weights_t *w, const dsa_model_config_t *config,
    const dsa_weights_t *weights, dsa_stream_t stream, dsa_err_t *err)
{
    int           rc;
    uint32_t      i;
    dsa_loader_t  ld;

    memset(&ld, 0, sizeof(ld));

    ld.config = config;
    ld.weights = weights;
    ld.stream = stream;
    ld.seed = 1;
    ld.err = err;

    w->size = dsa_cuda_weights_size(config);
    w->layer = calloc(config->num_hidden_layers, sizeof(dsa_cuda_layer_t));

    if (w->layer == NULL || w->size == UINT64_MAX) {
        return dsa_error(err, "no memory for the weights' table");
    }

    rc = cudaMalloc(&w->memory, w->size);

    /* what pads rows to a multiple of 128 is zeros */

    if (rc == 0) {
        rc = cudaMemsetAsync(w->memory, 0, w->size, stream);
    }

    if (rc == 0) {
        rc = cudaStreamSynchronize(stream);
    }

    if (rc != 0) {
        return dsa_error(err, "%.1f GB for weights on the GPU: %s",
                         (double) w->size * 1e-9, dsa_cuda_error(rc));
    }

    ld.memory = w->memory;
    dsa_load_all(&ld, w);

    if (ld.full) {
        free(ld.task);
        return dsa_error(err, "no memory for the list of weights");
    }

    rc = ld.refused ? DSA_ERROR : dsa_load_read(&ld, err);
    free(ld.task);

    if (rc != DSA_OK) {
        return DSA_ERROR;
    }

    rc = ld.rc;

    for (i = 0; i < config->num_hidden_layers && rc == 0; i++) {
        rc = dsa_cuda_fp8_decode_weight(w->layer[i].kv_b_bf16,
                                        &w->layer[i].kv_b, stream);
    }

    if (rc == 0) {
        rc = cudaStreamSynchronize(stream);
    }

    if (rc != 0) {
        return dsa_error(err, "the weights on the GPU: %s",
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


static int
dsa_reader_open(dsa_reader_t *r)
{
    int       rc;
    unsigned  i;

    rc = cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking);

    for (i = 0; i < 2 && rc == 0; i++) {
        rc = cudaMallocHost((void **) &r->buffer[i], DSA_READER_BYTES);

        if (rc == 0) {
            rc = cudaEventCreateWithFlags(&r->event[i],
                                          cudaEventDisableTiming);
        }
    }

    return rc;
}


static void
dsa_reader_close(dsa_reader_t *r)
{
    unsigned  i;

    for (i = 0; i < 2; i++) {
        if (r->event[i] != NULL) {
            (void) cudaEventDestroy(r->event[i]);
        }

        (void) cudaFreeHost(r->buffer[i]);
    }

    if (r->stream != NULL) {
        (void) cudaStreamDestroy(r->stream);
    }
}


/* Bytes at .. at+n-1 of what a task makes. */

static void
dsa_reader_fill(uint8_t *to, const dsa_load_task_t *t, uint64_t at, uint64_t n)
{
    if (t->widen) {
        dsa_bf16_decode_rows((float *) (void *) to, t->from + at / 2, n / 4);

    } else {
        memcpy(to, t->from + at, n);
    }
}


static int
dsa_reader_task(dsa_reader_t *r, const dsa_load_task_t *t)
{
    int       rc;
    unsigned  i;
    uint64_t  at, n;

    for (at = 0, rc = 0; at < t->bytes && rc == 0; at += n) {
        n = t->bytes - at < DSA_READER_BYTES ? t->bytes - at
                                             : DSA_READER_BYTES;
        i = r->turn++ % 2;

        rc = cudaEventSynchronize(r->event[i]);

        if (rc == 0) {
            dsa_reader_fill(r->buffer[i], t, at, n);
            rc = cudaMemcpyAsync(t->to + at, r->buffer[i], n,
                                 cudaMemcpyHostToDevice, r->stream);
        }

        if (rc == 0) {
            rc = cudaEventRecord(r->event[i], r->stream);
        }
    }

    return rc;
}


static void *
dsa_reader_run(void *data)
{
    int                     rc;
    dsa_reader_t            reader;
    dsa_readers_t          *all = data;
    const dsa_load_task_t  *t;

    memset(&reader, 0, sizeof(reader));

    rc = cudaSetDevice(all->device);
    rc = rc != 0 ? rc : dsa_reader_open(&reader);

    for ( ;; ) {
        (void) pthread_mutex_lock(&all->lock);

        if (rc != 0 && all->rc == 0) {
            all->rc = rc;
        }

        t = all->rc == 0 && all->next < all->loader->tasks
            ? &all->loader->task[all->next++] : NULL;

        (void) pthread_mutex_unlock(&all->lock);

        if (t == NULL) {
            break;
        }

        rc = dsa_reader_task(&reader, t);

        (void) pthread_mutex_lock(&all->lock);
        all->done += t->bytes;
        (void) pthread_mutex_unlock(&all->lock);
    }

    if (reader.stream != NULL) {
        rc = cudaStreamSynchronize(reader.stream);
    }

    dsa_reader_close(&reader);

    (void) pthread_mutex_lock(&all->lock);

    if (rc != 0 && all->rc == 0) {
        all->rc = rc;
    }

    all->running--;
    (void) pthread_cond_signal(&all->ended);
    (void) pthread_mutex_unlock(&all->lock);

    return NULL;
}


static void
dsa_load_progress(uint64_t done, uint64_t total, uint64_t ms)
{
    dsa_log(DSA_LOG_NOTICE, "weights: %.1f of %.1f GB on the GPU, %.1f GB/s",
            (double) done * 1e-9, (double) total * 1e-9,
            (double) done * 1e-6 / (double) (ms > 0 ? ms : 1));
}


/* Many readers: a disk, or the page cache, is faster than one thread. */

static int
dsa_load_read(const dsa_loader_t *ld, dsa_err_t *err)
{
    int               rc;
    long              cpus;
    unsigned          i, n;
    uint64_t          begin, told, now;
    pthread_t         thread[DSA_READERS];
    dsa_readers_t     all;
    struct timespec   until;

    memset(&all, 0, sizeof(all));

    all.loader = ld;

    rc = cudaGetDevice(&all.device);

    if (rc != 0) {
        return dsa_error(err, "the GPU: %s", dsa_cuda_error(rc));
    }

    if (ld->tasks == 0) {
        return DSA_OK;
    }

    cpus = sysconf(_SC_NPROCESSORS_ONLN);
    n = cpus < 1 ? 1 : cpus > DSA_READERS ? DSA_READERS : (unsigned) cpus;

    (void) pthread_mutex_init(&all.lock, NULL);
    (void) pthread_cond_init(&all.ended, NULL);

    begin = dsa_clock_ms();
    told = begin;

    (void) pthread_mutex_lock(&all.lock);

    for (i = 0; i < n; i++) {
        if (pthread_create(&thread[i], NULL, dsa_reader_run, &all) != 0) {
            break;
        }

        all.running++;
    }

    n = i;

    while (all.running != 0) {
        (void) clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 1;
        (void) pthread_cond_timedwait(&all.ended, &all.lock, &until);

        now = dsa_clock_ms();

        if (now - told >= DSA_PROGRESS_MS) {
            dsa_load_progress(all.done, ld->bytes, now - begin);
            told = now;
        }
    }

    rc = n == 0 ? -1 : all.rc;

    (void) pthread_mutex_unlock(&all.lock);

    for (i = 0; i < n; i++) {
        (void) pthread_join(thread[i], NULL);
    }

    (void) pthread_cond_destroy(&all.ended);
    (void) pthread_mutex_destroy(&all.lock);

    if (n == 0) {
        return dsa_error(err, "no thread can be started to read weights");
    }

    if (rc != 0) {
        return dsa_error(err, "bringing weights to the GPU: %s",
                         dsa_cuda_error(rc));
    }

    dsa_load_progress(all.done, ld->bytes, dsa_clock_ms() - begin);

    return DSA_OK;
}
