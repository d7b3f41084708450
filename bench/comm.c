
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "bench/bench.h"
#include "bench/comm.h"


/*
 * dsa bench comm: the exchange between GPUs by size.  Sizes are tokens of each
 * GPU with the hidden size and the experts of DeepSeek-V3.2.
 */

#define DSA_COMM_HIDDEN     7168
#define DSA_COMM_EXPERTS    256         /* of all ranks */
#define DSA_COMM_K          8
#define DSA_COMM_TOKENS     4096        /* most */
#define DSA_COMM_SAMPLES    31
#define DSA_COMM_SAMPLE_US  1000        /* least time of a sample */
#define DSA_COMM_MOST       200         /* exchanges in a graph */
#define DSA_COMM_TIMEOUT    5000000000ULL

/* bytes of a token: codes, scales, ids and weights; a row of bf16 */
#define DSA_COMM_FP8        (DSA_COMM_HIDDEN + DSA_COMM_HIDDEN / 128 * 4 \
                             + DSA_COMM_K * 8)
#define DSA_COMM_BF16       (DSA_COMM_HIDDEN * 2)


static const uint32_t  dsa_comm_sizes[] = {
    1, 4, 8, 16, 64, 128, 256, 1024, 4096
};


/* The buffers of all ranks, for the most tokens. */

typedef struct {
    uint32_t                tokens;     /* of the row that is measured, */
    size_t                  size;       /* and bytes of a rank */
    dsa_exchange_tokens_t   to;
    dsa_bf16_t             *part[DSA_EXCHANGE_RANKS];
    void                   *sums[DSA_EXCHANGE_RANKS];
    dsa_fp8_rows_t          x[DSA_EXCHANGE_RANKS];
    int32_t                *expert[DSA_EXCHANGE_RANKS];
    float                  *weight[DSA_EXCHANGE_RANKS];
    dsa_moe_plan_t          plan[DSA_EXCHANGE_RANKS];
    dsa_bf16_t             *y[DSA_EXCHANGE_RANKS];      /* [places, hidden] */
    dsa_bf16_t             *shared[DSA_EXCHANGE_RANKS];
    dsa_bf16_t             *sum[DSA_EXCHANGE_RANKS];
} dsa_comm_buffers_t;


int
dsa_comm_failed(const char *what, int rc)
{
    if (rc != 0) {
        (void) fprintf(stderr, "dsa bench: %s: %s\n", what,
                       dsa_cuda_error(rc));
    }

    return rc;
}


static int
dsa_comm_compare(const void *a, const void *b)
{
    float  x, y;

    x = *(const float *) a;
    y = *(const float *) b;

    return (x > y) - (x < y);
}


static int
dsa_comm_sync(dsa_comm_t *c)
{
    int       rc;
    uint32_t  r;

    rc = 0;

    for (r = 0; r < c->ranks && rc == 0; r++) {
        rc = cudaSetDevice((int) r);
        rc = rc != 0 ? rc : (int) cudaStreamSynchronize(c->stream[r]);
    }

    return rc;
}


/* A graph of count exchanges for each rank. */

static int
dsa_comm_capture(dsa_comm_t *c, dsa_comm_pt call, void *data, int count,
    cudaGraphExec_t *exec)
{
    int          i, rc, ended;
    uint32_t     r;
    cudaGraph_t  graph[DSA_EXCHANGE_RANKS] = { NULL };

    rc = 0;

    for (r = 0; r < c->ranks && rc == 0; r++) {
        rc = cudaSetDevice((int) r);
        rc = rc != 0 ? rc
                     : (int) cudaStreamBeginCapture(c->stream[r],
                                             cudaStreamCaptureModeThreadLocal);
    }

    for (i = 0; i < count && rc == 0; i++) {
        rc = call(c, data);
    }

    for (r = 0; r < c->ranks; r++) {
        (void) cudaSetDevice((int) r);
        ended = cudaStreamEndCapture(c->stream[r], &graph[r]);
        rc = rc != 0 ? rc : ended;
    }

    /* nothing is captured any longer, because instantiation allocates */

    for (r = 0; r < c->ranks; r++) {
        (void) cudaSetDevice((int) r);
        rc = rc != 0 ? rc : (int) cudaGraphInstantiate(&exec[r], graph[r], 0);

        if (graph[r] != NULL) {
            (void) cudaGraphDestroy(graph[r]);
        }
    }

    return rc;
}


/* Replays the graphs; *ms: of the slowest GPU. */

static int
dsa_comm_replay(dsa_comm_t *c, cudaGraphExec_t *exec, float *ms)
{
    int          rc;
    float        one;
    uint32_t     r;
    cudaEvent_t  event[DSA_EXCHANGE_RANKS][2] = { { NULL } };

    rc = 0;
    *ms = 0;

    for (r = 0; r < c->ranks && rc == 0; r++) {
        rc = cudaSetDevice((int) r);
        rc = rc != 0 ? rc : (int) cudaEventCreate(&event[r][0]);
        rc = rc != 0 ? rc : (int) cudaEventCreate(&event[r][1]);
    }

    for (r = 0; r < c->ranks && rc == 0; r++) {
        rc = cudaSetDevice((int) r);
        rc = rc != 0 ? rc : (int) cudaEventRecord(event[r][0], c->stream[r]);
        rc = rc != 0 ? rc : (int) cudaGraphLaunch(exec[r], c->stream[r]);
        rc = rc != 0 ? rc : (int) cudaEventRecord(event[r][1], c->stream[r]);
    }

    rc = rc != 0 ? rc : dsa_comm_sync(c);

    for (r = 0; r < c->ranks; r++) {
        one = 0;
        rc = rc != 0 ? rc : (int) cudaEventElapsedTime(&one, event[r][0],
                                                       event[r][1]);
        *ms = one > *ms ? one : *ms;

        (void) cudaEventDestroy(event[r][0]);
        (void) cudaEventDestroy(event[r][1]);
    }

    return rc;
}


static void
dsa_comm_destroy(dsa_comm_t *c, cudaGraphExec_t *exec)
{
    uint32_t  r;

    for (r = 0; r < c->ranks; r++) {
        if (exec[r] != NULL) {
            (void) cudaGraphExecDestroy(exec[r]);
            exec[r] = NULL;
        }
    }
}


/* Returns an error if a wait has timed out: the waits after it do not wait. */

static int
dsa_comm_fault(dsa_comm_t *c)
{
    int                   rc;
    uint32_t              r;
    dsa_exchange_fault_t  fault;

    for (r = 0; r < c->ranks; r++) {
        rc = cudaMemcpy(&fault, c->x[r].fault, sizeof(fault),
                        cudaMemcpyDefault);
        if (rc != 0) {
            return rc;
        }

        if (fault.failed) {
            (void) fprintf(stderr, "dsa bench: GPU %u has received no data "
                           "from GPU %u\n", r, fault.missing);
            return cudaErrorLaunchTimeout;
        }
    }

    return 0;
}


double
dsa_comm_time(dsa_comm_t *c, dsa_comm_pt call, void *data)
{
    int              i, rc, count;
    float            ms[DSA_COMM_SAMPLES];
    cudaGraphExec_t  exec[DSA_EXCHANGE_RANKS] = { NULL };

    /* once outside of a capture; then a few, whose time gives the count */

    rc = call(c, data);
    rc = rc != 0 ? rc : dsa_comm_sync(c);
    rc = rc != 0 ? rc : dsa_comm_capture(c, call, data, 10, exec);
    rc = rc != 0 ? rc : dsa_comm_replay(c, exec, ms);
    rc = rc != 0 ? rc : dsa_comm_replay(c, exec, ms);
    dsa_comm_destroy(c, exec);

    count = 1;

    if (rc == 0) {
        count = (int) (DSA_COMM_SAMPLE_US * 10 / (1000 * ms[0] + 1)) + 1;
        count = count > DSA_COMM_MOST ? DSA_COMM_MOST : count;
        rc = dsa_comm_capture(c, call, data, count, exec);
    }

    for (i = 0; i < 3 && rc == 0; i++) {
        rc = dsa_comm_replay(c, exec, ms);
    }

    for (i = 0; i < DSA_COMM_SAMPLES && rc == 0; i++) {
        rc = dsa_comm_replay(c, exec, &ms[i]);
    }

    dsa_comm_destroy(c, exec);
    rc = rc != 0 ? rc : dsa_comm_fault(c);

    if (dsa_comm_failed("a measurement", rc) != 0) {
        return -1;
    }

    qsort(ms, DSA_COMM_SAMPLES, sizeof(float), dsa_comm_compare);

    return (double) ms[DSA_COMM_SAMPLES / 2] * 1000 / count;
}


static int
dsa_comm_tokens(dsa_comm_t *c, void *data)
{
    int                  rc;
    uint32_t             r;
    dsa_comm_buffers_t  *b = data;

    rc = 0;

    for (r = 0; r < c->ranks && rc == 0; r++) {
        rc = cudaSetDevice((int) r);
        rc = rc != 0 ? rc
                     : dsa_cuda_exchange_tokens(&c->x[r], &b->to, &b->x[r],
                           b->expert[r], b->weight[r], NULL, b->tokens,
                           b->tokens, DSA_COMM_EXPERTS / c->ranks, DSA_COMM_K,
                           DSA_COMM_HIDDEN, c->stream[r]);
        rc = rc != 0 ? rc : dsa_cuda_exchange_wait(&c->x[r], c->stream[r]);
    }

    return rc;
}


static int
dsa_comm_sums(dsa_comm_t *c, void *data)
{
    int                  rc;
    uint32_t             r;
    dsa_comm_buffers_t  *b = data;

    rc = 0;

    for (r = 0; r < c->ranks && rc == 0; r++) {
        rc = cudaSetDevice((int) r);
        rc = rc != 0 ? rc
                     : dsa_cuda_exchange_combine(&c->x[r], b->part, b->y[r],
                           b->to.weight[r], b->to.expert[r], &b->plan[r], 0,
                           c->ranks * b->tokens, b->tokens, DSA_COMM_K,
                           DSA_COMM_HIDDEN, 1, c->stream[r]);
        rc = rc != 0 ? rc
                     : dsa_cuda_exchange_sum(&c->x[r], b->sum[r], b->part[r],
                           b->shared[r], b->expert[r], NULL, b->tokens,
                           b->tokens, DSA_COMM_EXPERTS / c->ranks, DSA_COMM_K,
                           DSA_COMM_HIDDEN, c->stream[r]);
    }

    return rc;
}


static int
dsa_comm_both(dsa_comm_t *c, void *data)
{
    int  rc;

    rc = dsa_comm_tokens(c, data);

    return rc != 0 ? rc : dsa_comm_sums(c, data);
}


/* The weighted sums of as many pairs on one GPU, without an exchange. */

static int
dsa_comm_alone(dsa_comm_t *c, void *data)
{
    int                  rc;
    uint32_t             r;
    dsa_comm_buffers_t  *b = data;

    rc = 0;

    for (r = 0; r < c->ranks && rc == 0; r++) {
        rc = cudaSetDevice((int) r);
        rc = rc != 0 ? rc
                     : dsa_cuda_moe_combine(b->part[r], b->y[r], NULL,
                           b->to.weight[r], b->to.expert[r], &b->plan[r],
                           c->ranks * b->tokens, DSA_COMM_K, DSA_COMM_HIDDEN,
                           c->stream[r]);
    }

    return rc;
}


static int
dsa_comm_all_reduce(dsa_comm_t *c, void *data)
{
    int                  rc;
    uint32_t             r;
    dsa_comm_buffers_t  *b = data;

    rc = 0;

    for (r = 0; r < c->ranks && rc == 0; r++) {
        rc = cudaSetDevice((int) r);
        rc = rc != 0 ? rc
                     : dsa_cuda_exchange_all_reduce(&c->x[r], b->sum[r],
                           b->shared[r], b->sums, b->tokens, DSA_COMM_HIDDEN,
                           c->stream[r]);
    }

    return rc;
}


/* As many bytes by the copy engines, without any signal. */

static int
dsa_comm_copy(dsa_comm_t *c, void *data)
{
    int                  rc;
    uint32_t             r, q;
    dsa_comm_buffers_t  *b = data;

    rc = 0;

    for (r = 0; r < c->ranks && rc == 0; r++) {
        rc = cudaSetDevice((int) r);

        for (q = 0; q < c->ranks && rc == 0; q++) {
            if (q != r) {
                rc = cudaMemcpyAsync((uint8_t *) b->part[q] + r * b->size,
                                     b->shared[r], b->size, cudaMemcpyDefault,
                                     c->stream[r]);
            }
        }
    }

    return rc;
}


static void *
dsa_comm_alloc(size_t size, int *rc)
{
    void  *p;

    p = NULL;
    *rc = *rc != 0 ? *rc : (int) cudaMalloc(&p, size);
    *rc = *rc != 0 ? *rc : (int) cudaMemset(p, 0, size);

    return p;
}


/* k different experts for each token: uniform, the same in every run. */

static int
dsa_comm_choose(int32_t *device, uint32_t seed)
{
    int        rc;
    int32_t   *e;
    uint32_t   i, j, l, v;

    e = malloc(DSA_COMM_TOKENS * DSA_COMM_K * sizeof(int32_t));
    if (e == NULL) {
        return cudaErrorMemoryAllocation;
    }

    v = seed;

    for (i = 0; i < DSA_COMM_TOKENS; i++) {
        for (j = 0; j < DSA_COMM_K; j++) {
            do {
                v = v * 1664525 + 1013904223;
                e[i * DSA_COMM_K + j] = (int32_t) (v >> 24)
                                        % DSA_COMM_EXPERTS;

                for (l = 0; l < j && e[i * DSA_COMM_K + l]
                                     != e[i * DSA_COMM_K + j]; l++)
                {
                    /* an expert that the token has already */
                }
            } while (l < j);
        }
    }

    rc = cudaMemcpy(device, e, DSA_COMM_TOKENS * DSA_COMM_K * sizeof(int32_t),
                    cudaMemcpyHostToDevice);
    free(e);

    return rc;
}


static int
dsa_comm_open_rank(dsa_comm_t *c, dsa_comm_buffers_t *b, uint32_t r)
{
    int                   rc;
    size_t                rows, places;
    uint32_t              q;
    dsa_cuda_state_t      state;
    dsa_cuda_counters_t  *counters;

    rows = (size_t) c->ranks * DSA_COMM_TOKENS;
    places = rows * DSA_COMM_K + DSA_COMM_EXPERTS * DSA_MOE_ALIGN;

    rc = cudaSetDevice((int) r);

    for (q = 0; q < c->ranks && rc == 0; q++) {
        rc = q == r ? 0 : (int) cudaDeviceEnablePeerAccess((int) q, 0);
    }

    counters = dsa_comm_alloc(sizeof(*counters), &rc);
    rc = rc != 0 ? rc : dsa_cuda_init(&state, counters);
    rc = rc != 0 ? rc : (int) cudaStreamCreateWithFlags(&c->stream[r],
                                                        cudaStreamNonBlocking);
    if (rc != 0) {
        return rc;
    }

    c->x[r].rank = r;
    c->x[r].ranks = c->ranks;
    c->x[r].processors = state.processors;
    c->x[r].exclusive = 1;
    c->x[r].timeout_ns = DSA_COMM_TIMEOUT;
    c->x[0].state[r] = dsa_comm_alloc(sizeof(dsa_exchange_state_t), &rc);
    c->x[r].fault = dsa_comm_alloc(sizeof(dsa_exchange_fault_t), &rc);

    b->to.x[r].q = dsa_comm_alloc(rows * DSA_COMM_HIDDEN, &rc);
    b->to.x[r].scale = dsa_comm_alloc(rows * DSA_COMM_HIDDEN / 32, &rc);
    b->to.x[r].ld = rows;
    b->to.expert[r] = dsa_comm_alloc(rows * DSA_COMM_K * 4, &rc);
    b->to.weight[r] = dsa_comm_alloc(rows * DSA_COMM_K * 4, &rc);
    b->part[r] = dsa_comm_alloc(rows * DSA_COMM_HIDDEN * 2, &rc);
    b->sums[r] = dsa_comm_alloc(dsa_cuda_exchange_part(c->ranks,
                                                       DSA_COMM_TOKENS,
                                                       DSA_COMM_HIDDEN), &rc);
    b->x[r].q = dsa_comm_alloc((size_t) DSA_COMM_TOKENS * DSA_COMM_HIDDEN,
                               &rc);
    b->x[r].scale = dsa_comm_alloc((size_t) DSA_COMM_TOKENS * DSA_COMM_HIDDEN
                                   / 32, &rc);
    b->x[r].ld = DSA_COMM_TOKENS;
    b->expert[r] = dsa_comm_alloc(DSA_COMM_TOKENS * DSA_COMM_K * 4, &rc);
    b->weight[r] = dsa_comm_alloc(DSA_COMM_TOKENS * DSA_COMM_K * 4, &rc);
    b->y[r] = dsa_comm_alloc(places * DSA_COMM_HIDDEN * 2, &rc);
    b->shared[r] = dsa_comm_alloc((size_t) DSA_COMM_TOKENS * DSA_COMM_HIDDEN
                                  * 2, &rc);
    b->sum[r] = dsa_comm_alloc((size_t) DSA_COMM_TOKENS * DSA_COMM_HIDDEN * 2,
                               &rc);

    b->plan[r].places = (uint32_t) places;
    b->plan[r].align = DSA_MOE_ALIGN;
    b->plan[r].offset = dsa_comm_alloc((DSA_COMM_EXPERTS + 1) * 4, &rc);
    b->plan[r].count = dsa_comm_alloc(DSA_COMM_EXPERTS * 4, &rc);
    b->plan[r].place = dsa_comm_alloc(rows * DSA_COMM_K * 4, &rc);
    b->plan[r].row = dsa_comm_alloc(places * 4, &rc);

    return rc != 0 ? rc : dsa_comm_choose(b->expert[r], r + 1);
}


static int
dsa_comm_open(dsa_comm_t *c, dsa_comm_buffers_t *b)
{
    int       rc;
    uint32_t  r, q;

    rc = 0;

    for (r = 0; r < c->ranks && rc == 0; r++) {
        rc = dsa_comm_open_rank(c, b, r);
    }

    for (r = 1; r < c->ranks; r++) {
        for (q = 0; q < c->ranks; q++) {
            c->x[r].state[q] = c->x[0].state[q];
        }
    }

    return rc;
}


/* The tokens are exchanged once, and planned: combine reads the plan. */

static int
dsa_comm_plan(dsa_comm_t *c, dsa_comm_buffers_t *b)
{
    int       rc;
    uint32_t  r;

    rc = dsa_comm_tokens(c, b);

    for (r = 0; r < c->ranks && rc == 0; r++) {
        rc = cudaSetDevice((int) r);
        rc = rc != 0 ? rc
                     : dsa_cuda_moe_plan(&b->plan[r], b->to.expert[r],
                           c->ranks * b->tokens, DSA_COMM_K,
                           DSA_COMM_EXPERTS / c->ranks, c->stream[r]);
    }

    return rc != 0 ? rc : dsa_comm_sync(c);
}


/* Prints a cell; returns 1 after an error, which was printed. */

static int
dsa_comm_cell(double us)
{
    if (us < 0) {
        return 1;
    }

    (void) printf(" | %.1f", us);

    return 0;
}


/* The table of one op: the kernels beside NCCL and the copy engines. */

static int
dsa_comm_table(dsa_comm_t *c, dsa_comm_buffers_t *b, dsa_comm_e op,
    int nccl)
{
    int     failed;
    size_t  i;

    static const struct {
        const char     *name;
        size_t          bytes;          /* of a token */
        dsa_comm_pt     call;
    } ops[] = {
        { "All-reduce, bf16", DSA_COMM_BF16, dsa_comm_all_reduce },
        { "Gather of FP8 tokens", DSA_COMM_FP8, dsa_comm_tokens },
        { "Partial sums to their owners, bf16", DSA_COMM_BF16, dsa_comm_sums }
    };

    (void) printf("%s, %zu bytes a token, us:\n\n"
                  "| tokens of a GPU | kernels | NCCL plain "
                  "| NCCL symmetric | NCCL sends | peer copy |\n"
                  "|---|---|---|---|---|---|\n",
                  ops[op].name, ops[op].bytes);

    for (i = 0; i < sizeof(dsa_comm_sizes) / sizeof(dsa_comm_sizes[0]); i++) {
        b->tokens = dsa_comm_sizes[i];
        b->size = b->tokens * ops[op].bytes;

        if (dsa_comm_failed("the plan", dsa_comm_plan(c, b)) != 0) {
            return 1;
        }

        (void) printf("| %u", b->tokens);

        failed = dsa_comm_cell(dsa_comm_time(c, ops[op].call, b));

        if (nccl) {
            failed |= dsa_comm_cell(dsa_comm_nccl_time(c, op, b->size, 0));
            failed |= dsa_comm_cell(dsa_comm_nccl_time(c, op, b->size, 1));

        } else {
            (void) printf(" | none | none");
        }

        if (nccl && op != DSA_COMM_REDUCE) {
            failed |= dsa_comm_cell(dsa_comm_nccl_time(c, DSA_COMM_SWAP,
                                                       b->size, 0));

        } else {
            (void) printf(" | none");
        }

        failed |= dsa_comm_cell(dsa_comm_time(c, dsa_comm_copy, b));

        (void) printf(" |\n");
        (void) fflush(stdout);

        if (failed) {
            return 1;
        }
    }

    (void) printf("\n");

    return 0;
}


/* Both exchanges of an MoE layer, and the part that one GPU has, too. */

static int
dsa_comm_layers(dsa_comm_t *c, dsa_comm_buffers_t *b)
{
    int     failed;
    size_t  i;

    (void) printf("The exchange of an MoE layer, us:\n\n"
                  "| tokens of a GPU | tokens | sums | both "
                  "| weighted sums without exchange |\n"
                  "|---|---|---|---|---|\n");

    for (i = 0; i < sizeof(dsa_comm_sizes) / sizeof(dsa_comm_sizes[0]); i++) {
        b->tokens = dsa_comm_sizes[i];

        if (dsa_comm_failed("the plan", dsa_comm_plan(c, b)) != 0) {
            return 1;
        }

        (void) printf("| %u", b->tokens);
        failed = dsa_comm_cell(dsa_comm_time(c, dsa_comm_tokens, b));
        failed |= dsa_comm_cell(dsa_comm_time(c, dsa_comm_sums, b));
        failed |= dsa_comm_cell(dsa_comm_time(c, dsa_comm_both, b));
        failed |= dsa_comm_cell(dsa_comm_time(c, dsa_comm_alone, b));
        (void) printf(" |\n");
        (void) fflush(stdout);

        if (failed) {
            return 1;
        }
    }

    (void) printf("\n");

    return 0;
}


static int
dsa_comm_run(dsa_comm_t *c)
{
    int                 nccl;
    dsa_comm_buffers_t  b;

    memset(&b, 0, sizeof(b));

    if (dsa_comm_failed("the buffers", dsa_comm_open(c, &b)) != 0) {
        return 1;
    }

    nccl = dsa_comm_nccl_open(c, (size_t) DSA_COMM_TOKENS * DSA_COMM_BF16)
           == 0;

    if (dsa_comm_layers(c, &b) != 0
        || dsa_comm_table(c, &b, DSA_COMM_REDUCE, nccl) != 0
        || dsa_comm_table(c, &b, DSA_COMM_GATHER, nccl) != 0
        || dsa_comm_table(c, &b, DSA_COMM_SUMS, nccl) != 0)
    {
        return 1;
    }

    return fflush(stdout) == 0 ? 0 : 1;
}


int
dsa_bench_comm(int argc, char **argv, const char *usage)
{
    int          opt, rc, gpus;
    dsa_comm_t   c;
    const char  *given;

    static const struct option  options[] = {
        { "gpus", required_argument, NULL, 'g' },
        { NULL, 0, NULL, 0 }
    };

    memset(&c, 0, sizeof(c));
    given = NULL;

    while ((opt = dsa_option("dsa bench comm", argc, argv, "", options))
           != -1)
    {
        if (opt == '?') {
            return 2;
        }

        given = optarg;
    }

    if (optind != argc) {
        (void) fputs(usage, stderr);
        return 2;
    }

    rc = cudaGetDeviceCount(&gpus);
    if (dsa_comm_failed("cudaGetDeviceCount", rc) != 0) {
        return 1;
    }

    if (given != NULL) {
        if (atoi(given) < 2 || atoi(given) > gpus) {
            (void) fprintf(stderr, "dsa bench: \"--gpus %s\" is not a number "
                           "from 2 to %d, the GPUs of this machine\n",
                           given, gpus);
            return 2;
        }

        gpus = atoi(given);
    }

    if (gpus < 2) {
        (void) fprintf(stderr, "dsa bench: this machine has one GPU; "
                       "\"comm\" needs two or more\n");
        return 1;
    }

    c.ranks = (uint32_t) gpus;

    return dsa_comm_run(&c);
}
