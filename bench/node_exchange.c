
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "bench/node.h"
#include "kernels/exchange/exchange.h"
#include "kernels/sample/random.h"


/*
 * Two GPUs as one of a node and its peers: each GPU stores as much to the other
 * as all peers of a GPU store to it.  A GPU of the node also stores as much as
 * it receives, so that the links carry the same load in both directions.
 */

#define DSA_LINK_GPUS       2
#define DSA_LINK_SAMPLES    21
#define DSA_LINK_LAUNCHES   3           /* that are not measured */
#define DSA_LINK_TIMEOUT    1000000000ULL       /* ns */

/* Elements that ranks store to the others in one kernel: exchange_reduce.cu. */
#define DSA_LINK_FEW        (1U << 19)


typedef struct {
    dsa_cuda_exchange_t     x;
    dsa_cuda_state_t        state;
    dsa_cuda_counters_t    *counters;
    dsa_stream_t            stream;
    cudaGraphExec_t         graph;
    cudaEvent_t             event[2];
    dsa_exchange_fault_t   *fault;
    dsa_exchange_state_t   *number;

    /* memory that the other GPU stores into */
    dsa_fp8_rows_t          rows;       /* [2 * most, hidden] */
    int32_t                *local;      /* [2 * most, k] */
    float                  *rows_weight;
    dsa_bf16_t             *part;       /* [2 * most, hidden] */
    void                   *reduce;
    float                  *logits;

    /* its own */
    dsa_fp8_rows_t          y8;         /* [most, hidden] */
    int32_t                *expert;     /* [most, k] */
    float                  *weight;
    int32_t                *live;       /* [most] */
    dsa_bf16_t             *pair_y;
    dsa_bf16_t             *y;
    dsa_bf16_t             *shared;
    float                  *own;        /* logits of this rank */
    dsa_moe_plan_t          plan;
} dsa_link_gpu_t;


typedef struct {
    dsa_model_config_t      config;
    uint32_t                gpus;       /* of the node */
    uint32_t                peers;      /* of a GPU of the node */
    uint32_t                most;       /* tokens of its peers */
    uint64_t                reduce;     /* bytes for sums */
    uint32_t                places;
    dsa_exchange_tokens_t   tokens;
    dsa_bf16_t             *part[DSA_EXCHANGE_RANKS];
    void                   *sums[DSA_EXCHANGE_RANKS];
    float                  *logits[DSA_EXCHANGE_RANKS];
    dsa_link_gpu_t          gpu[DSA_LINK_GPUS];

    /* what is measured */
    uint32_t                batch;      /* tokens of the node */
    uint32_t                own;        /* slots of one GPU of it */
    uint32_t                slot;       /* of its peers together */
    int                   (*call)(void *link, uint32_t gpu);
} dsa_link_t;


static int dsa_link_open(dsa_link_t *link);
static int dsa_link_open_gpu(dsa_link_t *link, uint32_t g);
static void dsa_link_connect(dsa_link_t *link);
static void dsa_link_close(dsa_link_t *link);
static int dsa_link_moe(dsa_link_t *link, uint32_t batch, double *us);
static int dsa_link_time(dsa_link_t *link, double *us);


static const uint32_t  dsa_link_batch[] = {
    1, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024
};

#define dsa_link_sizes      (sizeof(dsa_link_batch) / sizeof(uint32_t))


static int
dsa_link_all_reduce(void *ctx, uint32_t g)
{
    uint32_t         rows, cols;
    dsa_link_t      *link = ctx;
    dsa_link_gpu_t  *gpu;

    gpu = &link->gpu[g];
    cols = link->config.hidden_size;

    /*
     * Few rows: each peer stores all of them.  Many: of n GPUs each stores an
     * n-th of them, and later the sum of its n-th; of two ranks, a half of
     * each, and so many that they make two exchanges as well.
     */

    if (link->batch * cols <= DSA_LINK_FEW / link->peers) {
        rows = link->batch * link->peers;

    } else {
        rows = link->batch * 2 * link->peers / link->gpus;
        rows = rows * cols <= DSA_LINK_FEW ? DSA_LINK_FEW / cols + 1 : rows;
    }

    return dsa_cuda_exchange_all_reduce(&gpu->x, gpu->y, gpu->shared,
                                        link->sums, rows, cols,
                                        gpu->stream);
}


static int
dsa_link_gather(void *ctx, uint32_t g)
{
    dsa_link_t      *link = ctx;
    dsa_link_gpu_t  *gpu;

    gpu = &link->gpu[g];

    /* an exchange has to lie between two calls */

    dsa_cuda_try(dsa_cuda_exchange_gather(&gpu->x, link->logits, gpu->own,
                                          link->batch,
                                          link->config.vocab_size
                                          / link->gpus * link->peers,
                                          gpu->stream));
    dsa_cuda_try(dsa_cuda_exchange_signal(&gpu->x, gpu->stream));

    return dsa_cuda_exchange_wait(&gpu->x, gpu->stream);
}


static int
dsa_link_tokens(dsa_link_t *link, uint32_t g)
{
    dsa_link_gpu_t            *gpu;
    const dsa_model_config_t  *s;

    gpu = &link->gpu[g];
    s = &link->config;

    dsa_cuda_try(dsa_cuda_exchange_tokens(&gpu->x, &link->tokens, &gpu->y8,
                                          gpu->expert, gpu->weight, gpu->live,
                                          link->slot, link->slot,
                                          s->n_routed_experts / link->gpus,
                                          s->num_experts_per_tok,
                                          s->hidden_size, gpu->stream));

    return dsa_cuda_exchange_wait(&gpu->x, gpu->stream);
}


/* As engine/cuda/ffn.c; only the tokens of one GPU are summed up. */

static int
dsa_link_experts(void *ctx, uint32_t g)
{
    uint32_t                   k, experts;
    dsa_link_t                *link = ctx;
    dsa_link_gpu_t            *gpu;
    const dsa_model_config_t  *s;

    gpu = &link->gpu[g];
    s = &link->config;
    k = s->num_experts_per_tok;
    experts = s->n_routed_experts / link->gpus;

    dsa_cuda_try(dsa_link_tokens(link, g));
    dsa_cuda_try(dsa_cuda_exchange_combine(&gpu->x, link->part, gpu->pair_y,
                                           gpu->rows_weight, gpu->local,
                                           &gpu->plan, 0,
                                           DSA_LINK_GPUS * link->slot,
                                           link->slot, k, s->hidden_size, 1,
                                           gpu->stream));

    return dsa_cuda_exchange_sum(&gpu->x, gpu->y, gpu->part, gpu->shared,
                                 gpu->expert, gpu->live, link->own, link->slot,
                                 experts, k, s->hidden_size, gpu->stream);
}


int
dsa_node_exchange_measure(const char *model, uint32_t gpus, dsa_err_t *err)
{
    int          rc;
    double       us;
    size_t       i;
    uint32_t     batch;
    dsa_link_t  *link;

    link = calloc(1, sizeof(dsa_link_t));

    if (link == NULL) {
        return dsa_error(err, "no memory for the exchange");
    }

    if (dsa_model_config_read(&link->config, model, err) != DSA_OK) {
        free(link);
        return DSA_ERROR;
    }

    link->gpus = gpus;
    link->peers = gpus - 1;
    link->most = link->peers * DSA_NODE_TOKENS;

    rc = dsa_link_open(link);

    for (i = 0; i <= dsa_link_sizes && rc == 0; i++) {
        batch = i < dsa_link_sizes ? dsa_link_batch[i]
                                   : gpus * DSA_NODE_TOKENS;
        rc = dsa_link_moe(link, batch, &us);

        if (rc == 0) {
            (void) printf("moe,%u,%.2f\n", batch, us);
        }
    }

    link->call = dsa_link_all_reduce;

    for (i = 0; i < dsa_link_sizes && rc == 0; i++) {
        link->batch = dsa_link_batch[i];
        rc = dsa_link_time(link, &us);

        if (rc == 0) {
            (void) printf("reduce,%u,%.2f\n", link->batch, us);
        }
    }

    link->call = dsa_link_gather;

    for (i = 0; i < dsa_link_sizes && rc == 0; i++) {
        link->batch = dsa_link_batch[i];
        rc = dsa_link_time(link, &us);

        if (rc == 0) {
            (void) printf("logits,%u,%.2f\n", link->batch, us);
        }
    }

    dsa_link_close(link);
    free(link);

    if (rc != 0) {
        return dsa_error(err, "an exchange between two GPUs: %s",
                         dsa_cuda_error(rc));
    }

    return DSA_OK;
}


static int
dsa_link_alloc(void *p, uint64_t size)
{
    int    rc;
    void  *memory;

    rc = cudaMalloc(&memory, size);
    rc = rc != 0 ? rc : (int) cudaMemset(memory, 0, size);

    *(void **) p = rc == 0 ? memory : NULL;

    return rc;
}


static int
dsa_link_open(dsa_link_t *link)
{
    int       rc, g, n;
    uint32_t  k;
    uint64_t  hidden;

    rc = cudaGetDeviceCount(&n);

    if (rc != 0 || n < DSA_LINK_GPUS) {
        return rc != 0 ? rc : (int) cudaErrorInvalidDevice;
    }

    k = link->config.num_experts_per_tok;
    hidden = link->config.hidden_size;
    link->places = (2 * link->most * k + link->config.n_routed_experts
                                            * DSA_MOE_ALIGN)
                   / DSA_MOE_ALIGN * DSA_MOE_ALIGN;
    link->reduce = dsa_cuda_exchange_part(DSA_LINK_GPUS, 2 * DSA_NODE_BATCH,
                                          (uint32_t) hidden);

    for (g = 0; g < DSA_LINK_GPUS && rc == 0; g++) {
        rc = dsa_link_open_gpu(link, (uint32_t) g);
    }

    if (rc == 0) {
        dsa_link_connect(link);
    }

    return rc;
}


/*
 * With random routing a rank has an equal part of the pairs; pair_y has room
 * for half as many again, and for the padding of its experts.
 */

static int
dsa_link_open_gpu(dsa_link_t *link, uint32_t g)
{
    int              rc;
    uint64_t         k, hidden, rows, vocab;
    dsa_link_gpu_t  *gpu;

    gpu = &link->gpu[g];
    k = link->config.num_experts_per_tok;
    hidden = link->config.hidden_size;
    vocab = link->config.vocab_size;
    rows = DSA_LINK_GPUS * (uint64_t) link->most;

    gpu->plan.places = link->places;
    gpu->plan.align = DSA_MOE_ALIGN;
    gpu->rows.ld = rows;
    gpu->y8.ld = link->most;

    rc = cudaSetDevice((int) g);
    rc = rc != 0 ? rc : (int) cudaDeviceEnablePeerAccess((int) (1 - g), 0);
    rc = rc != 0 ? rc : (int) cudaStreamCreateWithFlags(&gpu->stream,
                                                        cudaStreamNonBlocking);
    rc = rc != 0 ? rc : (int) cudaEventCreate(&gpu->event[0]);
    rc = rc != 0 ? rc : (int) cudaEventCreate(&gpu->event[1]);
    rc = rc != 0 ? rc : (int) cudaHostAlloc((void **) &gpu->fault,
                                            sizeof(dsa_exchange_fault_t),
                                            cudaHostAllocMapped
                                            | cudaHostAllocPortable);

    if (rc != 0) {
        return rc;
    }

    memset(gpu->fault, 0, sizeof(dsa_exchange_fault_t));

    dsa_cuda_try(dsa_link_alloc(&gpu->counters, sizeof(dsa_cuda_counters_t)));
    dsa_cuda_try(dsa_cuda_init(&gpu->state, gpu->counters));
    dsa_cuda_try(dsa_link_alloc(&gpu->number, sizeof(dsa_exchange_state_t)));
    dsa_cuda_try(dsa_link_alloc(&gpu->rows.q, rows * hidden));
    dsa_cuda_try(dsa_link_alloc(&gpu->rows.scale, rows * hidden / 32));
    dsa_cuda_try(dsa_link_alloc(&gpu->local, rows * k * 4));
    dsa_cuda_try(dsa_link_alloc(&gpu->rows_weight, rows * k * 4));
    dsa_cuda_try(dsa_link_alloc(&gpu->part, rows * hidden * 2));
    dsa_cuda_try(dsa_link_alloc(&gpu->reduce, link->reduce));
    dsa_cuda_try(dsa_link_alloc(&gpu->logits,
                                DSA_NODE_BATCH * DSA_LINK_GPUS * vocab * 4));
    dsa_cuda_try(dsa_link_alloc(&gpu->y8.q, rows * hidden));
    dsa_cuda_try(dsa_link_alloc(&gpu->y8.scale, rows * hidden / 32));
    dsa_cuda_try(dsa_link_alloc(&gpu->expert, rows * k * 4));
    dsa_cuda_try(dsa_link_alloc(&gpu->weight, rows * k * 4));
    dsa_cuda_try(dsa_link_alloc(&gpu->live, rows * 4));
    dsa_cuda_try(dsa_link_alloc(&gpu->pair_y,
                                (rows * k / link->gpus * 3 / 2
                                 + link->config.n_routed_experts
                                   * DSA_MOE_ALIGN) * hidden * 2));
    dsa_cuda_try(dsa_link_alloc(&gpu->y, rows * hidden * 2));
    dsa_cuda_try(dsa_link_alloc(&gpu->shared, rows * hidden * 2));
    dsa_cuda_try(dsa_link_alloc(&gpu->own, DSA_NODE_BATCH * vocab * 4));
    dsa_cuda_try(dsa_link_alloc(&gpu->plan.offset,
                                (link->config.n_routed_experts + 1) * 4));
    dsa_cuda_try(dsa_link_alloc(&gpu->plan.count,
                                link->config.n_routed_experts * 4));
    dsa_cuda_try(dsa_link_alloc(&gpu->plan.place, rows * k * 4));
    dsa_cuda_try(dsa_link_alloc(&gpu->plan.row, link->places * 4ULL));
    dsa_cuda_try(dsa_cuda_random_e4m3(gpu->y8.q, rows / 2 * hidden, 1,
                                      gpu->stream));
    dsa_cuda_try(dsa_cuda_random_f32(gpu->weight, rows / 2 * k, 0.3f, 0.1f, 2,
                                     gpu->stream));

    return cudaStreamSynchronize(gpu->stream);
}


static void
dsa_link_connect(dsa_link_t *link)
{
    uint32_t         g, q;
    dsa_link_gpu_t  *gpu;

    for (g = 0; g < DSA_LINK_GPUS; g++) {
        gpu = &link->gpu[g];

        gpu->x.rank = g;
        gpu->x.ranks = DSA_LINK_GPUS;
        gpu->x.processors = gpu->state.processors;
        gpu->x.exclusive = 1;
        gpu->x.timeout_ns = DSA_LINK_TIMEOUT;
        gpu->x.fault = gpu->fault;

        for (q = 0; q < DSA_LINK_GPUS; q++) {
            gpu->x.state[q] = link->gpu[q].number;
        }

        link->tokens.x[g] = gpu->rows;
        link->tokens.expert[g] = gpu->local;
        link->tokens.weight[g] = gpu->rows_weight;
        link->part[g] = gpu->part;
        link->sums[g] = gpu->reduce;
        link->logits[g] = gpu->logits;
    }
}


/* The process ends after the measurements: its GPUs' memory is freed then. */

static void
dsa_link_close(dsa_link_t *link)
{
    uint32_t  g;

    for (g = 0; g < DSA_LINK_GPUS; g++) {
        if (cudaSetDevice((int) g) == 0) {
            (void) cudaDeviceSynchronize();
        }
    }
}


static int
dsa_link_wait(const dsa_link_t *link)
{
    int       rc;
    uint32_t  g;

    rc = 0;

    for (g = 0; g < DSA_LINK_GPUS; g++) {
        rc = rc != 0 ? rc : (int) cudaSetDevice((int) g);
        rc = rc != 0 ? rc : (int) cudaStreamSynchronize(link->gpu[g].stream);
        rc = rc == 0 && link->gpu[g].fault->failed
             ? (int) cudaErrorLaunchTimeout : rc;
    }

    return rc;
}


/*
 * The peers' tokens have random experts of the whole model, of which each of
 * the two ranks has the part of one GPU.  With fewer tokens than GPUs the other
 * slots are padding.
 */

static int
dsa_link_moe(dsa_link_t *link, uint32_t batch, double *us)
{
    int         rc;
    int32_t    *expert, *live;
    uint32_t    g, i, k, tokens;

    k = link->config.num_experts_per_tok;
    link->call = dsa_link_experts;
    link->batch = batch;
    link->own = (batch + link->gpus - 1) / link->gpus;
    link->slot = link->own * link->peers;

    tokens = batch < link->gpus ? batch : link->slot;

    expert = malloc((uint64_t) link->slot * k * sizeof(int32_t));
    live = malloc(link->slot * sizeof(int32_t));
    rc = expert == NULL || live == NULL ? (int) cudaErrorMemoryAllocation : 0;

    for (g = 0; g < DSA_LINK_GPUS && rc == 0; g++) {
        for (i = 0; i < link->slot; i++) {
            live[i] = i < tokens ? 0 : -1;
        }

        rc = dsa_bench_routing(expert, &link->config, link->slot, 0,
                               batch + g)
             == DSA_OK ? 0 : (int) cudaErrorMemoryAllocation;
        rc = rc != 0 ? rc : (int) cudaSetDevice((int) g);
        rc = rc != 0 ? rc : (int) cudaMemcpy(link->gpu[g].expert, expert,
                                             (uint64_t) link->slot * k * 4,
                                             cudaMemcpyHostToDevice);
        rc = rc != 0 ? rc : (int) cudaMemcpy(link->gpu[g].live, live,
                                             link->slot * 4ULL,
                                             cudaMemcpyHostToDevice);
    }

    free(expert);
    free(live);

    /* the plan of what arrives, which is the same in each measured exchange */

    for (g = 0; g < DSA_LINK_GPUS && rc == 0; g++) {
        rc = cudaSetDevice((int) g);
        rc = rc != 0 ? rc : dsa_link_tokens(link, g);
    }

    rc = rc != 0 ? rc : dsa_link_wait(link);

    for (g = 0; g < DSA_LINK_GPUS && rc == 0; g++) {
        rc = cudaSetDevice((int) g);
        rc = rc != 0 ? rc : dsa_cuda_moe_plan(&link->gpu[g].plan,
                                              link->gpu[g].local,
                                              DSA_LINK_GPUS * link->slot, k,
                                              link->config.n_routed_experts
                                              / link->gpus,
                                              link->gpu[g].stream);
    }

    rc = rc != 0 ? rc : dsa_link_wait(link);

    return rc != 0 ? rc : dsa_link_time(link, us);
}


static int
dsa_link_capture(dsa_link_t *link, uint32_t g, uint32_t count)
{
    int              rc, ended;
    uint32_t         i;
    cudaGraph_t      graph;
    dsa_link_gpu_t  *gpu;

    gpu = &link->gpu[g];

    rc = cudaSetDevice((int) g);
    rc = rc != 0 ? rc : (int) cudaStreamBeginCapture(gpu->stream,
                                             cudaStreamCaptureModeThreadLocal);
    if (rc != 0) {
        return rc;
    }

    for (i = 0; i < count && rc == 0; i++) {
        rc = link->call(link, g);
    }

    ended = cudaStreamEndCapture(gpu->stream, &graph);

    if (rc != 0 || ended != 0) {
        return rc != 0 ? rc : ended;
    }

    rc = cudaGraphInstantiate(&gpu->graph, graph, 0);
    (void) cudaGraphDestroy(graph);

    return rc != 0 ? rc : (int) cudaGraphUpload(gpu->graph, gpu->stream);
}


static int
dsa_link_launch(const dsa_link_t *link, float *ms)
{
    int                    rc;
    uint32_t               g;
    const dsa_link_gpu_t  *gpu;

    rc = 0;

    for (g = 0; g < DSA_LINK_GPUS && rc == 0; g++) {
        gpu = &link->gpu[g];

        rc = cudaSetDevice((int) g);
        rc = rc != 0 ? rc : (int) cudaEventRecord(gpu->event[0], gpu->stream);
        rc = rc != 0 ? rc : (int) cudaGraphLaunch(gpu->graph, gpu->stream);
        rc = rc != 0 ? rc : (int) cudaEventRecord(gpu->event[1], gpu->stream);
    }

    rc = rc != 0 ? rc : dsa_link_wait(link);

    /* the second GPU was started last, and waits for nothing */

    return rc != 0 ? rc : (int) cudaEventElapsedTime(ms, gpu->event[0],
                                                     gpu->event[1]);
}


static int
dsa_link_compare(const void *a, const void *b)
{
    float  x, y;

    x = *(const float *) a;
    y = *(const float *) b;

    return (x > y) - (x < y);
}


/* The median of some launches of a graph of many calls, for one call. */

static int
dsa_link_time(dsa_link_t *link, double *us)
{
    int       rc, i;
    float     ms[DSA_LINK_LAUNCHES + DSA_LINK_SAMPLES];
    uint32_t  g, count;

    rc = 0;
    count = link->batch <= DSA_NODE_BATCH ? 50 : 5;

    for (g = 0; g < DSA_LINK_GPUS && rc == 0; g++) {
        rc = dsa_link_capture(link, g, count);
    }

    for (i = 0; i < DSA_LINK_LAUNCHES + DSA_LINK_SAMPLES && rc == 0; i++) {
        rc = dsa_link_launch(link, &ms[i]);
    }

    for (g = 0; g < DSA_LINK_GPUS; g++) {
        if (link->gpu[g].graph != NULL) {
            (void) cudaGraphExecDestroy(link->gpu[g].graph);
            link->gpu[g].graph = NULL;
        }
    }

    if (rc != 0) {
        return rc;
    }

    qsort(ms + DSA_LINK_LAUNCHES, DSA_LINK_SAMPLES, sizeof(float),
          dsa_link_compare);
    *us = (double) ms[DSA_LINK_LAUNCHES + DSA_LINK_SAMPLES / 2] * 1000 / count;

    return 0;
}
