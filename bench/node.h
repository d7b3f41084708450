
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BENCH_NODE_H_INCLUDED_
#define _DSA_BENCH_NODE_H_INCLUDED_


#include <stdio.h>

#include "bench/gpu.h"
#include "engine/backend.h"
#include "engine/cuda/rank.h"


/*
 * dsa bench node: what a node of several GPUs would do, measured on one of
 * them.  The GPU gets the weights of one rank for a few layers, and the work of
 * the fullest rank.  A layer is timed as one graph of the ops that the forward
 * pass calls (engine/cuda/{layers,attention,ffn}.c), and a step is the sum over
 * its layers, embedding, head and exchanges.  Files:
 *
 *     node             options and the order of the measurements
 *     node_memory      weights, pages and workspace
 *     node_input       the tokens of a step
 *     node_attention   the ops of a layer's attention,
 *     node_dense       of attention to all positions, and
 *     node_ffn         of its FFN
 *     node_ops         of embedding and head, and how they are measured
 *     node_exchange    exchanges, measured between two GPUs
 *     node_times       these times as a file, and the sum over a step
 *     node_table       tables
 *     node_hosts       bounds for several hosts, which are computed
 *     node_chats       loads of chats, which are computed, from
 *     node_steps       steps that were measured
 */

#define DSA_NODE_GPUS       8           /* unless --gpus gives another one */
#define DSA_NODE_LAYERS     3           /* of each kind, used in turn, so that
                                           the L2 holds no weights */
#define DSA_NODE_SETS       6           /* samples of routing in decode, */
#define DSA_NODE_PROMPTS    2           /* and in prefill */
#define DSA_NODE_TOKENS     4096        /* most of a GPU in a prefill step */
#define DSA_NODE_BATCH      1024        /* most of the node in a decode step */


/* The work of one step on the GPU. */

typedef struct {
    uint32_t            batch;          /* tokens of all GPUs */
    uint32_t            tokens;         /* whose attention this GPU computes */
    uint32_t            rows;           /* slots of tokens whose experts it
                                           computes, padding included */
    uint32_t            samples;
    uint32_t            keys;           /* decode: that each token sees */
    uint32_t            start;          /* prefill: position of the first */
    int                 prefill;
    int                 mha;            /* 1: by MHA prefill */
    int                 indexed;        /* 1: index scores are needed */
} dsa_node_step_t;


typedef struct {
    dsa_bench_t             b;
    dsa_cuda_counters_t    *counters;
    dsa_cuda_gemm_t        *gemm;
    uint32_t                gpus;       /* of the node */
    double                  zipf;       /* of the routing, see routing.h */
    dsa_attention_e         attention;
    const char             *model;      /* the name of its directory */
    int                     dense;      /* layers attend to all positions */
    uint32_t                kv_bf16;    /* 1: latents are BF16, 0: FP8 */
    dsa_model_config_t      config;     /* of the whole model */
    dsa_shard_t             shard;      /* of rank 0 */
    dsa_cuda_weights_t      weights;    /* DSA_NODE_LAYERS of each kind, dense
                                           ones first, all with an indexer */
    dsa_cache_t             cache;      /* layout with all layers */
    void                   *page;
    uint32_t                pages;
    uint64_t                capacity;   /* tokens of KV that a GPU of the node
                                           has room for */
    uint32_t                context;    /* most tokens of a sequence */
    uint32_t                ld_pages;
    uint32_t                heads;      /* of this rank */
    const dsa_cuda_heads_shape_t  *shape;   /* of a head */
    uint32_t                vocab;      /* ids of this rank: 0 .. vocab-1 */
    void                   *memory;     /* the workspace */
    float                   attention_scale;
    float                   index_constant;
    dsa_router_t            router;

    /* the step that is measured */
    dsa_node_step_t         step;
    dsa_bench_load_t        load;       /* mean over the sets */
    uint32_t                sets;
    uint32_t                set;        /* 0 .. sets-1 */
    int                     own;        /* 1: the layer has an indexer */

    int32_t                *chosen;     /* [DSA_NODE_SETS, R, k] experts of
                                           this rank, -1: of another one */
    float                  *logits;     /* [DSA_NODE_SETS, DSA_MOE_SMALL,
                                           experts] from which the router
                                           chooses these; set for at most
                                           DSA_MOE_SMALL tokens */
    dsa_cuda_input_t        input;
    dsa_cuda_work_t         work;
    dsa_cuda_sample_t      *sample;     /* [S] */
    dsa_bf16_t             *sum;        /* [T, hidden] the residual after a
                                           norm: the one before it is constant,
                                           or it would grow with each replay */
    dsa_fp8_rows_t          gathered;   /* [R, hidden] tokens of all ranks */
    float                  *gathered_weight;    /* [R, k] */
    float                  *rope;       /* [context, 64] */
    void                   *gemm_work;
} dsa_node_t;


/* What is measured as one graph. */

typedef enum {
    DSA_NODE_DENSE = 0,                 /* a layer with a dense MLP, */
    DSA_NODE_MOE,                       /* with experts, */
    DSA_NODE_SHARED,                    /* with experts, without an indexer: it
                                           uses the selection of the former,
                                           which is measured before it, */
    DSA_NODE_HEAD                       /* embedding, head, sampling */
} dsa_node_part_e;


/* node_memory.c: DSA_ERROR with err. */
int dsa_node_open(dsa_node_t *n, const char *model, uint32_t gpus,
    dsa_attention_e attention, dsa_kv_e kv, dsa_err_t *err);
void dsa_node_close(dsa_node_t *n);

/*
 * node_input.c: makes n->step the step that is measured.  Tokens get random
 * ids, pages that are scattered, and experts of the fullest rank.
 */
int dsa_node_input(dsa_node_t *n, const dsa_node_step_t *step,
    dsa_err_t *err);

/* 1: each rank has some of the experts, and tokens are gathered for them. */

static inline int
dsa_node_gathers(const dsa_node_t *n)
{
    return n->gpus > 1 && n->attention == DSA_ATTENTION_DATA;
}


/* Slots and tokens of a decode step, and of a prefill step, of the node. */
void dsa_node_decode(dsa_node_step_t *step, const dsa_node_t *n,
    uint32_t batch, uint32_t context);
void dsa_node_prefill(dsa_node_step_t *step, const dsa_node_t *n,
    uint32_t tokens, uint32_t start, uint32_t prompt);

/*
 * node_ops.c: microseconds of a part of the step as one graph, exchanges not
 * included; below 0: the measurement failed, and the error was printed.
 */
double dsa_node_time(dsa_node_t *n, dsa_node_part_e part);

/* Prints a row for each op of the part: its time alone. */
void dsa_node_time_ops(dsa_node_t *n, dsa_node_part_e part);

/*
 * node_attention.c: selects all keys, which a step does once if they are not
 * more than top-k.
 */
int dsa_node_select_all(dsa_node_t *n);


/*
 * Microseconds of the exchanges of one GPU of a node, by the tokens of all GPUs
 * in a step.  In a file: lines "NAME,TOKENS,US".
 */

typedef enum {
    DSA_EXCHANGE_MOE = 0,               /* "data": tokens and sums of an MoE
                                           layer */
    DSA_EXCHANGE_REDUCE,                /* "tensor": one all-reduce, two of
                                           which are in each layer */
    DSA_EXCHANGE_LOGITS,                /* "tensor": of the sampled tokens */
    DSA_EXCHANGES
} dsa_node_exchange_e;

#define DSA_NODE_SIZES      20

typedef struct {
    uint32_t                tokens[DSA_EXCHANGES][DSA_NODE_SIZES];
    double                  us[DSA_EXCHANGES][DSA_NODE_SIZES];
    uint32_t                sizes[DSA_EXCHANGES];
} dsa_node_exchange_t;


/* node_exchange.c */

/*
 * Measures all exchanges between two GPUs and prints the lines of such a file.
 * Two GPUs exchange as much as one of gpus receives.  DSA_ERROR with err.
 */
int dsa_node_exchange_measure(const char *model, uint32_t gpus,
    dsa_err_t *err);


/* node_times.c */

/* Reads a file; DSA_ERROR with err. */
int dsa_node_exchange_read(dsa_node_exchange_t *x, const char *file,
    dsa_err_t *err);

/* Microseconds for so many tokens; DSA_ERROR with err: not in the file. */
int dsa_node_exchange_find(double *us, const dsa_node_exchange_t *x,
    dsa_node_exchange_e kind, uint32_t tokens, dsa_err_t *err);


/* The times of a step, in seconds. */

typedef struct {
    double                  layers;     /* without exchanges */
    double                  head;
    double                  exchange;
    double                  total;
    double                  bound;
    const char             *limit;      /* of the bound */
} dsa_node_time_t;

/*
 * Measures n's step.  x NULL: without exchanges.  head 0: a step that samples
 * nothing; its embedding is left out as well.
 */
int dsa_node_measure(dsa_node_time_t *t, dsa_node_t *n,
    const dsa_node_exchange_t *x, int head, dsa_err_t *err);

/* node_table.c: the tables; csv: the same rows as values, or NULL. */
int dsa_node_decode_table(dsa_node_t *n, const dsa_node_exchange_t *x,
    FILE *csv, dsa_err_t *err);
int dsa_node_prefill_table(dsa_node_t *n, const dsa_node_exchange_t *x,
    FILE *csv, dsa_err_t *err);
int dsa_node_cost_table(dsa_node_t *n, const dsa_node_exchange_t *x,
    FILE *csv, dsa_err_t *err);

/* node_hosts.c: a table for hosts of H100; DSA_ERROR with err. */

typedef struct {
    uint32_t                n;
    uint32_t                gpus;       /* of each */
    double                  network;    /* GB/s of a GPU to other hosts */
} dsa_node_hosts_t;

int dsa_node_hosts_table(const char *model, const dsa_node_hosts_t *hosts,
    dsa_err_t *err);

/* node_chats.c: a table for loads of chats; DSA_ERROR with err. */

typedef struct {
    uint32_t            gpus;
    dsa_attention_e     attention;
    dsa_kv_e            kv;
    const char         *steps;          /* file (node_steps.h); NULL: none */
    uint32_t            drafts;         /* most of a sequence in a step */
    double              right[DSA_MAX_OUTPUTS];     /* of the drafts at each
                                           position, the share that is assumed
                                           to be right */
} dsa_node_chats_t;

int dsa_node_chats_table(const char *model, const dsa_node_chats_t *chats,
    dsa_err_t *err);


#endif /* _DSA_BENCH_NODE_H_INCLUDED_ */
