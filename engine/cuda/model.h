
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CUDA_MODEL_H_INCLUDED_
#define _DSA_CUDA_MODEL_H_INCLUDED_


#include "engine/backend.h"
#include "engine/cpu/model.h"
#include "engine/checkpoint/weights.h"
#include "kernels/attention.h"
#include "kernels/cache.h"
#include "kernels/cuda.h"
#include "kernels/gemm.h"
#include "kernels/moe.h"
#include "kernels/sample.h"


/*
 * The forward pass of served precision on one GPU.  Files: cuda_weights.c
 * brings the weights there, cuda_model.c lays out memory and runs the layers,
 * cuda_attention.c and cuda_ffn.c are a layer's two blocks, backend_cuda.c
 * makes steps of it.
 *
 * Checkpoints are FP8 in 128x128 blocks with ue8m0 activations and the
 * published head geometry; widths are multiples of 128.
 */

/*
 * Prompts of up to so many tokens are computed in the multi-head form, longer
 * ones, and all answers, in the absorbed one (kernels/attention.h), which round
 * differently.  The form of what a request computes follows from its prompt
 * alone, not from how it is batched or cut into chunks.
 *
 * With 128 heads the multi-head kernel takes 2.0 ms for 4,096 tokens; at the
 * measured rate of the absorbed one their products would take that 2.9.  Where
 * exactly they cross over was not measured.
 */
#define DSA_CUDA_HEADS_TOKENS   4096

/*
 * Rows of one sequence up to which they take the kernel for decode, which
 * needs no copy of the context in BF16: it takes 95 us for 64 rows, that copy
 * of 128K tokens alone 62.  The best number was not looked for.
 */
#define DSA_CUDA_FEW_ROWS       64

#define DSA_CUDA_ABSORB_ROWS    1024        /* rows absorbed at a time */
#define DSA_CUDA_SCORE_BYTES    (512ULL << 20)  /* index scores at a time */


/* Weights of a layer; matrices of experts stand one behind the other. */

typedef struct {
    float              *input_norm;         /* [hidden] */
    float              *post_norm;          /* [hidden] */
    float              *q_norm;             /* [q_lora] */
    float              *kv_norm;            /* [512] */
    float              *k_norm;             /* [128] */
    float              *k_bias;             /* [128] */
    float              *router_bias;        /* [experts] */
    dsa_fp8_weight_t    qkv_a;              /* q_a, kv_a, index_wk; each begins
                                               at a multiple of 128 rows */
    dsa_fp8_weight_t    q_b;                /* [heads * 192, q_lora] */
    dsa_fp8_weight_t    kv_b;               /* [heads * 256, 512] */
    dsa_bf16_t         *kv_b_bf16;          /* the same, for absorption */
    dsa_fp8_weight_t    o;                  /* [hidden, heads * 128] */
    dsa_fp8_weight_t    index_q;            /* [iheads * 128, q_lora]; iheads
                                               is dsa_cuda_index_heads() */
    dsa_bf16_t         *index_w;            /* [iheads, hidden] */
    dsa_bf16_t         *router;             /* [experts, hidden] */
    dsa_fp8_weight_t    gate_up;            /* dense or shared: gate, up */
    dsa_fp8_weight_t    down;
    dsa_fp8_weight_t    expert_gate_up;     /* of one; of expert e behind */
    dsa_fp8_weight_t    expert_down;
    uint32_t            moe;
} dsa_cuda_layer_t;


typedef struct {
    dsa_cuda_layer_t   *layer;              /* [layers] */
    dsa_bf16_t         *embed;              /* [vocab, hidden] */
    dsa_bf16_t         *head;               /* [vocab, hidden] */
    float              *norm;               /* [hidden] */
    uint32_t            at_kv;              /* rows of qkv_a before kv_a */
    uint32_t            at_k;               /* and before index_wk */
    void               *memory;
    uint64_t            size;
} dsa_cuda_weights_t;


/* What of a model is served. */

typedef struct {
    const dsa_weights_t    *weights;        /* NULL: random ones */
    dsa_model_config_t      config;
    uint32_t                context;        /* tokens; 0: the config's */
    uint64_t                kv_memory;      /* bytes; 0: what is left */
    uint32_t                max_rows;       /* of a step */
    uint32_t                max_seqs;       /* of a step */
    uint32_t                allowed;        /* ids that may be sampled */
} dsa_cuda_conf_t;


/* One sequence of a step, rows in the step's order. */

typedef struct {
    uint32_t            row;                /* its first row in the step */
    uint32_t            start;              /* position of that row */
    uint32_t            n;
    uint32_t            table;              /* its row of pages[] */
    uint32_t            heads_form;         /* 1: multi-head */
} dsa_cuda_seq_t;


/*
 * A step as the GPU gets it; arrays are device memory, filled by the caller
 * of dsa_cuda_model_run().  Rows 0 .. decode-1 are one each of as many
 * sequences in the absorbed form; the others follow, sequence by sequence.
 */

typedef struct {
    uint32_t            rows;
    uint32_t            decode;
    uint32_t            max_keys;           /* bound of keys[] of decode rows */
    uint32_t            indexed;            /* 1: decode rows may see more
                                               than topk tokens */
    uint32_t            n_seqs;             /* beyond the decode rows */
    const dsa_cuda_seq_t   *seq;            /* [n_seqs], host memory */
    uint32_t            samples;            /* rows to sample from */
} dsa_cuda_step_t;


typedef struct {
    int32_t            *token;              /* [R] */
    int32_t            *position;           /* [R] */
    int32_t            *slot;               /* [R] where its entries go, or
                                               -1 */
    int32_t            *keys;               /* [R] tokens that it sees */
    int32_t            *owner;              /* [R] its row of pages[] */
    int32_t            *last;               /* [S] rows to sample from */
    int32_t            *feed;               /* [R] sample of the step before
                                               that is the row's token; -1:
                                               token has it */
    dsa_cuda_sampling_t    *sampling;       /* [S] */
    void               *end;                /* of all above */
    uint32_t           *history;            /* tokens for penalties */
    int32_t            *pages;              /* [S, ld_pages] block tables */
} dsa_cuda_input_t;


/* Workspace, device memory; R rows of a step, P places of pairs. */

typedef struct {
    dsa_bf16_t         *x;                  /* [R, hidden] */
    dsa_bf16_t         *residual;           /* [R, hidden] */
    dsa_bf16_t         *y;                  /* [R, hidden] normed */
    dsa_fp8_rows_t      y8;                 /* [R, hidden] */

    int32_t            *pick;               /* [R, topk] */
    int32_t            *pick_slot;          /* [R, topk] */
    int32_t            *n_pick;             /* [R] */

    /* attention */
    dsa_bf16_t         *a;                  /* [R, qkv_a rows] */
    dsa_fp8_rows_t      qr8;                /* [R, q_lora] */
    dsa_bf16_t         *q;                  /* [R, heads, 192] */
    dsa_bf16_t         *o;                  /* [R, heads, 128] */
    dsa_fp8_rows_t      o8;                 /* [R, heads * 128] */
    dsa_bf16_t         *q_latent;           /* [A, heads, 576] */
    dsa_bf16_t         *u;                  /* [A, heads, 512] */
    dsa_bf16_t         *index_q;            /* [R, iheads, 128] */
    dsa_e4m3_t         *index_q8;           /* [R, iheads, 128] */
    float              *index_w;            /* [R, iheads] */
    float              *index_w8;           /* [R, iheads], scales within */
    float              *score;              /* DSA_CUDA_SCORE_BYTES */
    void               *decode_work;
    dsa_bf16_t         *latents;            /* [context, 576] */
    dsa_fp8_rows_t      latents8;           /* [heads form, 512] */
    dsa_bf16_t         *kv;                 /* [heads form, heads, 256] */
    uint32_t           *mask;               /* [R, heads form / 32] */

    /* FFN, in the memory of the attention's */
    float              *logits;             /* [R, experts] */
    int32_t            *expert;             /* [R, k] */
    float              *weight;             /* [R, k] */
    dsa_moe_plan_t      plan;
    dsa_fp8_rows_t      pair8;              /* [P, hidden] */
    dsa_bf16_t         *pair_gu;            /* [P, 2 * moe inter] */
    dsa_fp8_rows_t      pair_act;           /* [P, moe inter] */
    dsa_bf16_t         *pair_y;             /* [P, hidden] */
    dsa_bf16_t         *gu;                 /* [R, 2 * inter] */
    dsa_fp8_rows_t      act;                /* [R, inter] */
    dsa_bf16_t         *shared;             /* [R, hidden] */

    /* head, likewise */
    dsa_bf16_t         *last_x;             /* [S, hidden] */
    dsa_bf16_t         *last_residual;      /* [S, hidden] */
    dsa_bf16_t         *last_y;             /* [S, hidden] */
    float              *vocab;              /* [S, vocab] */
    void               *sample_work;
} dsa_cuda_work_t;


typedef struct {
    dsa_model_config_t      config;
    dsa_cuda_weights_t      weights;
    dsa_cache_t             cache;          /* layout */
    void                   *page;           /* page 0 */
    uint32_t                pages;
    uint32_t                context;
    uint32_t                topk;
    uint32_t                max_rows;
    uint32_t                max_samples;
    uint32_t                allowed;
    uint32_t                ld_pages;
    uint32_t                heads_tokens;   /* longest prompt in multi-head
                                               form */
    float                   attention_scale;
    float                   index_constant;
    dsa_router_t            router;
    float                  *rope;           /* [context, 64] cos, sin */
    dsa_cuda_input_t        input;
    dsa_cuda_work_t         work;
    dsa_cuda_sample_t      *sample;         /* [S] out */
    void                   *memory;         /* workspace of all kinds */
    uint64_t                memory_size;
    dsa_cuda_state_t        state;
    dsa_cuda_counters_t    *counters;
    dsa_cuda_gemm_t        *gemm;
    void                   *gemm_work;
    dsa_stream_t            stream;

    dsa_trace_pt            trace;          /* as dsa_model_trace() */
    void                   *trace_ctx;
    dsa_select_pt           select;         /* as dsa_model_select() */
    void                   *select_ctx;
} dsa_cuda_model_t;


/*
 * Everything is allocated here, by a plan that is logged; nothing later.  NULL
 * with err: no GPU of this kind, a checkpoint that is not of this kind, or
 * too little memory.
 */
dsa_cuda_model_t *dsa_cuda_model_open(const dsa_cuda_conf_t *conf,
    dsa_err_t *err);
void dsa_cuda_model_close(dsa_cuda_model_t *m);     /* NULL is allowed */

/*
 * Puts a step of m->input in m->stream: layers, head, samples to m->sample.
 * DSA_ERROR with err.  m->work.vocab keeps the logits of the sampled rows
 * until the next step.
 */
int dsa_cuda_model_run(dsa_cuda_model_t *m, const dsa_cuda_step_t *step,
    dsa_err_t *err);

/*
 * The parts [2] of n rows from position start on, in the forms that a request
 * of prompt tokens has them computed in; row, table: as dsa_cuda_seq_t.
 * Returns their number.
 */
uint32_t dsa_cuda_model_parts(const dsa_cuda_model_t *m, dsa_cuda_seq_t *part,
    uint32_t start, uint32_t n, uint32_t prompt, uint32_t row,
    uint32_t table);

/* 1: a step of this one row is a decode row, absorbed. */
int dsa_cuda_model_decodes(const dsa_cuda_model_t *m, uint32_t start,
    uint32_t n, uint32_t prompt);

/*
 * As dsa_model_forward() for one sequence, a request of prompt tokens, with
 * the logits of all its rows, of which max_seqs are the most: for tests and
 * tools.  logits [n, vocab], host memory.  cuda_forward.c.
 */
int dsa_cuda_model_forward(dsa_cuda_model_t *m, const dsa_rows_t *seq,
    uint32_t prompt, float *logits, dsa_err_t *err);

/* cuda_weights.c: bytes on the GPU. */
uint64_t dsa_cuda_weights_size(const dsa_model_config_t *config);

/*
 * Fills w from a checkpoint, or with random numbers where weights is NULL.
 */
int dsa_cuda_weights_load(dsa_cuda_weights_t *w,
    const dsa_model_config_t *config,
    const dsa_weights_t *weights, dsa_stream_t stream, dsa_err_t *err);
void dsa_cuda_weights_free(dsa_cuda_weights_t *w);

/* cuda_attention.c, cuda_ffn.c: 0, or an error of an op. */
int dsa_cuda_attention(dsa_cuda_model_t *m, uint32_t layer,
    const dsa_cuda_step_t *step);
int dsa_cuda_ffn(dsa_cuda_model_t *m, uint32_t layer,
    const dsa_cuda_step_t *step);

/* What the rows of decode select where that is everything: once a step. */
int dsa_cuda_select_all(dsa_cuda_model_t *m, const dsa_cuda_step_t *step);

/* A device array [rows, cols] of 4-byte elements to the trace, if any. */
int dsa_cuda_tell(dsa_cuda_model_t *m, const char *name, uint32_t layer,
    uint32_t rows, uint32_t cols, const void *data);

/* The same for x, or x + residual where residual is not NULL, bf16. */
int dsa_cuda_tell_bf16(dsa_cuda_model_t *m, const char *name, uint32_t layer,
    uint32_t rows, uint32_t cols, const dsa_bf16_t *x,
    const dsa_bf16_t *residual);


/* Heads of the indexer as its kernels take them: a multiple of 8. */

static inline uint32_t
dsa_cuda_index_heads(const dsa_model_config_t *s)
{
    return (s->index_n_heads + 7) & ~7U;
}


/* Rows of scales that stand without gaps. */

static inline size_t
dsa_cuda_ld(uint32_t rows)
{
    return ((size_t) rows + 3) & ~(size_t) 3;
}


/* Runs the ops of a block in order, up to the first that fails. */
#define dsa_cuda_try(call)                                                    \
    do {                                                                      \
        int  rc_ = (call);                                                    \
        if (rc_ != 0) {                                                       \
            return rc_;                                                       \
        }                                                                     \
    } while (0)


#endif /* _DSA_CUDA_MODEL_H_INCLUDED_ */
