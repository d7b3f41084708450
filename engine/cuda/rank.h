
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CUDA_RANK_H_INCLUDED_
#define _DSA_CUDA_RANK_H_INCLUDED_


#include "engine/backend.h"
#include "engine/forward.h"
#include "engine/checkpoint/shard.h"
#include "engine/cuda/plan.h"
#include "engine/cuda/sizes.h"
#include "engine/cuda/step.h"
#include "engine/cuda/weights.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/cache.h"
#include "kernels/core/cuda.h"
#include "kernels/draft/draft.h"
#include "kernels/exchange/exchange.h"
#include "kernels/gemm/gemm.h"
#include "kernels/moe/moe.h"
#include "kernels/sample/sample.h"


/*
 * The forward pass of "precision served" on one GPU.  A rank owns all state of
 * its GPU.  Ranks of one process share nothing on the host, and each is used
 * by a thread of its own.  On the GPUs they store into each other's memory:
 * see kernels/exchange/exchange.h and dsa_cuda_peers_t.  Files:
 *
 *     loader, reader, weights          the weights, and a rank's part of them
 *     check, layout, rank              what is accepted, the memory of a rank,
 *                                      opening and closing
 *     layers, attention, dense, ffn, trace
 *                                      a step, layer by layer
 *     team, group                      a thread for each rank; the ranks of a
 *                                      replica
 *     nccl                             the exchange between hosts
 *     plan, preview                    how much memory all of it needs, before
 *                                      anything is opened
 *     warm                             the first steps of a rank
 *     draft                            a step of the draft layer
 *     forward                          one sequence at a time, for tests
 *     batch, inflight, graphs, backend  the scheduler's steps
 *     speculate                        the drafts behind them
 *     copies, moves                    pages between ranks, and to and from
 *                                      host memory
 *     reload                           weights that are replaced
 *
 * Checkpoints are FP8 in 128x128 blocks with float32 scales.  The scales of
 * activations are float32, too, or powers of two with config.ue8m0.  The sizes
 * of latents and index keys are those of kernels/core/cuda.h, and there are
 * kernels for the sizes of a head (dsa_cuda_heads_find()).  Widths are
 * multiples of 128.  Each layer selects the positions that it attends to, or
 * attends to those of the nearest layer before it that does; or all layers
 * attend to all positions (a dense model, dense.c).
 *
 * T: tokens of a step on this rank, S: tokens to sample, A: tokens computed by
 * absorbed MQA at a time, G: tokens that the ranks gather for the experts, R:
 * tokens of a round of experts, P: pairs of a token and an expert in a round,
 * with padding.  nope and v are qk_nope_head_dim and v_head_dim.  heads,
 * experts, inter and vocab are the rank's part where dsa_shard_t cuts them.
 */

/*
 * In models with an indexer, prompts of up to so many tokens are computed by
 * MHA prefill, longer ones and all answers by absorbed MQA
 * (kernels/attention/attention.h).  The two round differently.  Which one
 * computes a token follows from the length of the request's prompt alone, not
 * from how the request is batched or chunked.
 *
 * With 128 heads the attention of a layer takes 1.6 ms by MHA prefill and 3.8
 * ms by absorbed MQA for 4,096 tokens, 5.8 and 8.6 ms for 8,192.  Interpolated,
 * both are equal at about 14,000 tokens in one step, and at 11,500 in steps of
 * 2,048 (bench/README.md).  A higher limit needs 66 KB of workspace for each
 * token and 128 heads.
 *
 * Dense models compute all prompts by MHA prefill, because absorbed MQA takes
 * 3.4 times its multiply-adds there.  They expand so many keys at a time, from
 * position 0 on: a multiple of 128.
 */
#define DSA_CUDA_MHA_TOKENS     4096

/*
 * Up to so many tokens of one sequence are computed by the kernel for decode,
 * which does not need a copy of the context in BF16.  It takes 95 us for 64
 * tokens, while the copy alone takes 62 us for 128K tokens of context.  Other
 * thresholds were not measured.
 */
#define DSA_CUDA_DECODE_TOKENS  64

#define DSA_CUDA_ABSORB_TOKENS  1024        /* A, at most */
#define DSA_CUDA_BOUND          2048        /* the least bound of contexts of
                                               graphs of dense models */
#define DSA_CUDA_CONTEXT        393216      /* tokens of a sequence, at most:
                                               keys that dsa_cuda_topk()
                                               accepts */

/*
 * R, at most.  The workspace has room for the case that all pairs of a round
 * belong to the experts of one rank: 260 KB for a token of DeepSeek-V3.2.
 * With 8,192 tokens and uniform routing each expert has 256 tokens in a round.
 * This is enough for products that are bound by arithmetic: a weight of one
 * byte is used for two operations of each token, so 1,453 TFLOPS and 4,384
 * GB/s balance at 166 tokens.
 */
#define DSA_CUDA_ROUND_TOKENS   8192
#define DSA_CUDA_SCORE_BYTES    (512ULL << 20)  /* index scores at a time */


/*
 * Ids of the history of a sequence.  To the tokens that the host has, the GPU
 * appends the samples of the step before, the drafts, their samples and the
 * next drafts.
 */
#define DSA_CUDA_HISTORY(rank)  ((uint64_t) (rank)->context                   \
                                 + DSA_CUDA_APPENDED)
#define DSA_CUDA_APPENDED       (4 * DSA_MAX_OUTPUTS)


/* The configuration of a rank. */

typedef struct {
    const dsa_weights_t    *weights;        /* NULL: random ones */
    dsa_model_config_t      config;
    uint32_t                gpus;           /* 1 .. DSA_MAX_GPUS, of this
                                               host */
    uint32_t                gpu[DSA_MAX_GPUS];      /* their numbers; a number
                                               may occur twice, for tests */
    dsa_backend_hosts_t     hosts;
    uint32_t                net;            /* 1: ranks exchange by NCCL, as
                                               those of several hosts do; set
                                               by dsa_cuda_group_open() */
    dsa_attention_e         attention;
    uint32_t                context;        /* tokens; 0: the config's */
    uint64_t                kv_memory;      /* of each GPU, bytes; 0: what is
                                               left */
    uint32_t                max_tokens;     /* of a step on each rank */
    uint32_t                max_seqs;       /* of a step on each rank */
    uint32_t                allowed;        /* ids below it can be sampled */
    uint32_t                kv_bf16;        /* 1: latents in pages are BF16 */
    uint32_t                drafts;         /* 1: with the draft layer */
    uint32_t                outputs;        /* most samples of a sequence in a
                                               step; 0: 1 */
} dsa_cuda_conf_t;


/* The arrays of a step in device memory; the caller fills them. */

typedef struct {
    int32_t            *token;              /* [T] ids */
    int32_t            *position;           /* [T] */
    int32_t            *slot;               /* [T] slot mapping of the cache
                                               entries; -1: none is written */
    int32_t            *keys;               /* [T] tokens of the context to
                                               which the token attends */
    int32_t            *left;               /* [T] of decode tokens: how many
                                               of the sequence follow from the
                                               token on, itself included */
    int32_t            *table;              /* [T] row of pages[] */
    int32_t            *last;               /* [S] tokens to sample from */
    int32_t            *feed;               /* [T] the index of a sample of the
                                               previous step, which is the
                                               token's id; -1: the id is in
                                               token, where speculate.c puts
                                               it with drafts */
    dsa_cuda_sample_row_t  *sampling;       /* [S] */
    void               *end;                /* behind all arrays above, which
                                               are copied at once */
    uint32_t           *history;            /* ids that penalties count */
    uint32_t           *mask;               /* [S, dsa_mask_words(vocab)] ids
                                               that may be sampled; with drafts
                                               [S + N, .], the last ones those
                                               of drafts */
    dsa_bias_t         *bias;               /* [S * DSA_SAMPLE_MAX_BIAS] */
    int32_t            *pages;              /* [S, ld_pages] block tables; a
                                               row for each decode token */
    int32_t            *peer_slot;          /* [ranks, T] slot mapping on the
                                               other ranks; -1: none is
                                               written.  Used by steps with
                                               shared set */
} dsa_cuda_input_t;


/*
 * What the draft layer needs after a step of the model, with drafts only
 * (speculate.c).  N: sequences of a step, U: T + N, because a sequence may have
 * a row before those of its tokens.
 */

typedef struct {
    /* copied at once; known.token is the first of them */
    dsa_cuda_input_t        known;          /* rows of the first step, [U] and
                                               [S]; pages [S + N, ld_pages] */
    int32_t                *from;           /* [U] token whose hidden state a
                                               row has; below 0: a page's */
    int32_t                *owner;          /* [T] sequence of a token */
    dsa_cuda_draft_seq_t   *seq;            /* [N] */
    void                   *end;

    dsa_cuda_input_t        later;          /* rows of the later steps, [N] */
    uint32_t               *accepted;       /* [N] */
    uint32_t               *state;          /* [N] of dsa_cuda_draft_mask() */
    int32_t                *source;         /* [N] */
    int32_t                *row;            /* [N] */
    int32_t                *pick;           /* [N, topk] */
    int32_t                *pick_slot;      /* [N, topk] */
    int32_t                *n_pick;         /* [N] */
    dsa_cuda_sample_t      *sample;         /* [S] */
    uint32_t               *next;           /* [N, DSA_DRAFT_NEXT] */
} dsa_cuda_speculation_t;


/*
 * This rank's memory that other ranks store into; see
 * kernels/exchange/exchange.h.
 */

typedef struct {
    dsa_exchange_state_t   *state;
    dsa_fp8_rows_t          x;              /* [G, hidden] */
    int32_t                *expert;         /* [G, k] */
    float                  *weight;         /* [G, k] */
    dsa_bf16_t             *part;           /* [G, hidden] */
    void                   *reduce;         /* of sums ("attention tensor") */
} dsa_cuda_shared_t;


/* The same memory of all ranks, and their pages. */

typedef struct {
    dsa_cuda_exchange_t     exchange;
    dsa_exchange_tokens_t   tokens;
    dsa_bf16_t             *part[DSA_EXCHANGE_RANKS];
    void                   *reduce[DSA_EXCHANGE_RANKS];
    float                  *vocab[DSA_EXCHANGE_RANKS];
    uint8_t                *page[DSA_EXCHANGE_RANKS];
} dsa_cuda_peers_t;


/*
 * The exchange with other hosts by NCCL (nccl.c).  What a rank sends is in
 * buffers of its own; what it receives is in dsa_cuda_shared_t.
 */

typedef struct {
    void                   *comm;           /* NULL: there is none */
    uint32_t                on;             /* 1: ranks exchange by NCCL */
    uint32_t                ready;          /* 1: and the buffers are set */
    dsa_cuda_exchange_t     sum;            /* whose waits end at once */
    dsa_fp8_rows_t          x;              /* [T, hidden] to all ranks */
    int32_t                *expert;         /* [ranks, T, k] */
    float                  *weight;         /* [ranks, T, k] */
    float                  *scale;          /* [ranks, groups, T] received */
    dsa_bf16_t             *part;           /* [G, hidden] to their ranks */
} dsa_cuda_net_t;


/*
 * Workspace in device memory.  The blocks of a layer and the head run one
 * after another, so they share their memory.  Operands of products with the
 * weights have the format of these: of those that are declared in FP8 and in
 * BF16, only the ones that some layer uses have memory.
 */

typedef struct {
    dsa_bf16_t         *x;                  /* [T, hidden] */
    dsa_bf16_t         *residual;           /* [T, hidden] */
    dsa_bf16_t         *y;                  /* [T, hidden] after the norm */
    dsa_fp8_rows_t      y8;                 /* [T, hidden] */
    dsa_fp8_rows_t      expert8;            /* [T, hidden] y by a stored scale,
                                               if there is one */

    int32_t            *pick;               /* [T, topk] */
    int32_t            *pick_slot;          /* [T, topk] */
    int32_t            *n_pick;             /* [T] */

    /* the draft layer, with drafts only */
    dsa_bf16_t         *hidden;             /* [T, hidden] of the model, after
                                               its last norm */
    dsa_bf16_t         *draft_hidden;       /* [T, hidden] of the rows of a
                                               step of the draft layer */
    dsa_bf16_t         *draft_in;           /* [T, 2 * hidden] operand of
                                               eh_proj */

    /* attention */
    dsa_bf16_t         *a;                  /* [T, qkv_a rows] */
    dsa_fp8_rows_t      qr8;                /* [T, q_lora] */
    dsa_bf16_t         *qr;                 /* [T, q_lora] */
    dsa_bf16_t         *q;                  /* [T, heads, nope + 64] */
    dsa_bf16_t         *o;                  /* [T, heads, v] */
    dsa_fp8_rows_t      o8;                 /* [T, heads * v] */
    dsa_bf16_t         *q_latent;           /* [A, heads, 576] */
    dsa_bf16_t         *u;                  /* [A, heads, 512] */
    dsa_bf16_t         *index_q;            /* [T, iheads, 128] */
    dsa_e4m3_t         *index_q8;           /* [T, iheads, 128] */
    float              *index_w;            /* [T, iheads] */
    float              *index_w8;           /* [T, iheads], scales included */
    float              *score;              /* DSA_CUDA_SCORE_BYTES */
    void               *decode_work;
    dsa_bf16_t         *latents;            /* [context, 576]; dense:
                                               [mha_tokens, 576] */
    dsa_fp8_rows_t      latents8;           /* [mha_tokens, 512] */
    dsa_bf16_t         *kv;                 /* [mha_tokens, heads,
                                               nope + v] */
    uint32_t           *mask;               /* [T, mha_tokens / 32] */
    float              *part_sum;           /* [T, heads, v] dense, with a
                                               context beyond mha_tokens */
    float              *part_norm;          /* [T, heads,
                                               DSA_CUDA_HEADS_NORM] */

    /* FFN */
    float              *logits;             /* [T, experts of all ranks] */
    int32_t            *expert;             /* [T, k] of rank->routes */
    float              *weight;             /* [T, k] */
    dsa_moe_plan_t      plan;
    dsa_fp8_rows_t      pair8;              /* [P, hidden] */
    dsa_bf16_t         *pair;               /* [P, hidden] */
    dsa_bf16_t         *pair_gu;            /* [P, 2 * moe inter] */
    dsa_fp8_rows_t      pair_act8;          /* [P, moe inter] */
    dsa_bf16_t         *pair_act;           /* [P, moe inter] */
    dsa_bf16_t         *pair_y;             /* [P, hidden] */
    dsa_bf16_t         *gu;                 /* [T, 2 * inter] */
    dsa_fp8_rows_t      act8;               /* [T, inter] */
    dsa_bf16_t         *act;                /* [T, inter] */
    dsa_bf16_t         *shared;             /* [T, hidden] */

    /* head */
    dsa_bf16_t         *last_x;             /* [S, hidden] */
    dsa_bf16_t         *last_residual;      /* [S, hidden] */
    dsa_bf16_t         *last_y;             /* [S, hidden] */
    float              *vocab_part;         /* [S, vocab] logits */
    float              *vocab;              /* [S, vocab of all ranks]; one
                                               rank: the same memory */
    void               *sample_work;
} dsa_cuda_work_t;


typedef struct {
    /* the GPU */
    int                     device;
    dsa_stream_t            stream;         /* of all its kernels */
    dsa_cuda_state_t        state;          /* of the ops */
    dsa_cuda_counters_t    *counters;       /* device memory of state */
    dsa_cuda_gemm_t        *gemm;

    /* its part of the model */
    dsa_model_config_t      config;
    dsa_shard_t             shard;
    uint32_t                heads;          /* of attention, on this rank */
    const dsa_cuda_heads_shape_t  *shape;   /* of a head */
    uint32_t                experts;        /* whole ones on this rank */
    dsa_cuda_weights_t      weights;
    uint64_t                weights_size;
    float                   attention_scale;
    float                   index_constant;
    dsa_router_t            router;

    /* its KV pages */
    dsa_cache_t             cache;          /* layout */
    void                   *page;           /* device memory; page 0 */
    uint32_t                pages;

    /* limits */
    uint32_t                context;        /* tokens of a sequence */
    uint32_t                dense;          /* 1: layers attend to all
                                               positions; dense.c */
    uint32_t                topk;           /* dense: the least bound of
                                               contexts of graphs */
    uint32_t                max_tokens;     /* of a step on this rank */
    uint32_t                max_seqs;       /* of a step on this rank */
    uint32_t                max_samples;    /* of a step on this rank */
    uint32_t                max_rows;       /* of a step of the draft layer or
                                               of the model */
    uint32_t                round;          /* R */
    uint32_t                allowed;        /* ids below it can be sampled */
    uint32_t                ld_pages;
    uint32_t                mha_tokens;     /* keys that MHA prefill expands
                                               at a time */
    uint32_t                mha_prompt;     /* longest prompt that MHA prefill
                                               computes: mha_tokens, or any */
    uint32_t                kv_bf16;        /* 1: latents in pages are BF16 */
    uint32_t                drafts;         /* 1: with the draft layer */

    /* workspace */
    void                   *memory;         /* device; of all below */
    uint64_t                memory_size;
    uint64_t                exchange_size;  /* part of it that other ranks
                                               write */
    dsa_cuda_input_t        input;
    dsa_cuda_work_t         work;
    dsa_cuda_speculation_t  spec;
    dsa_cuda_sample_t      *sample;         /* [S] out */
    int32_t                *routes;         /* [layers with experts + drafts,
                                               T, k] of a step; ld_routes from
                                               a layer to the next */
    uint64_t                ld_routes;
    float                  *rope;           /* [context, 64] cos, sin */
    void                   *gemm_work;

    /* the other ranks */
    dsa_cuda_shared_t       shared;
    dsa_cuda_peers_t        peers;
    dsa_cuda_net_t          net;
    dsa_exchange_fault_t   *fault;          /* pinned host memory */

    /* for tests and tools */
    dsa_trace_pt            trace;          /* as dsa_model_trace() */
    void                   *trace_ctx;
    dsa_select_pt           select;         /* as dsa_model_select() */
    void                   *select_ctx;
} dsa_cuda_rank_t;


/*
 * A rank is opened in three parts, because the number of pages depends on all
 * GPUs, and the files are read once for all of them.  dsa_cuda_rank_open()
 * checks conf, makes the rank's GPU the thread's current device and sets
 * weights_size and memory_size.  The second function allocates all memory of
 * the rank and lists the reads of dsa_cuda_read() for it, see
 * dsa_cuda_weights_place().  The third one is called after these reads.  No
 * memory is allocated later.  NULL or DSA_ERROR with err: the kernels do not
 * support the GPU or the checkpoint, or there is too little memory.  conf is
 * not used afterwards.
 *
 * A rank is used by one thread at a time, and its GPU must be that thread's
 * current device: dsa_cuda_rank_attach().
 */
dsa_cuda_rank_t *dsa_cuda_rank_open(const dsa_cuda_conf_t *conf,
    uint32_t number, dsa_err_t *err);
int dsa_cuda_rank_place(dsa_cuda_rank_t *rank, uint32_t pages,
    const dsa_weights_t *weights, dsa_read_list_t *list, dsa_err_t *err);
int dsa_cuda_rank_finish(dsa_cuda_rank_t *rank, dsa_err_t *err);
void dsa_cuda_rank_close(dsa_cuda_rank_t *rank);    /* NULL is allowed */

/*
 * warm.c: runs steps of all sizes on this rank alone, so that libraries load
 * their kernels.  Call it before peer access is enabled.  DSA_ERROR with err.
 */
int dsa_cuda_rank_warm(dsa_cuda_rank_t *rank, dsa_err_t *err);

/* Sets needs to those of an opened rank. */
void dsa_cuda_rank_needs(const dsa_cuda_rank_t *rank, dsa_plan_needs_t *needs);

/* Sets the sizes of the graphs of a rank, whose limits are set. */
void dsa_cuda_rank_sizes(dsa_cuda_sizes_t *sizes, const dsa_cuda_rank_t *rank);

/*
 * The same without a GPU and without files, for rank 0 of conf; the other
 * ranks need the same.  DSA_ERROR with err: the kernels do not support the
 * config or the limits, the model cannot be split over so many GPUs, or host
 * memory is short.
 */
int dsa_cuda_needs(dsa_plan_needs_t *needs, const dsa_cuda_conf_t *conf,
    dsa_err_t *err);

/* Makes the rank's GPU the calling thread's current one: 0 or a cudaError_t. */
int dsa_cuda_rank_attach(const dsa_cuda_rank_t *rank);

/*
 * Enqueues a step of rank->input: layers, head, samples to rank->sample.
 * DSA_ERROR with err.  rank->work.vocab keeps the logits of the sampled tokens
 * until the next step.
 */
int dsa_cuda_rank_run(dsa_cuda_rank_t *rank, const dsa_cuda_step_t *step,
    dsa_err_t *err);


/* The rest is for the files of the forward pass.  int: 0 or a cudaError_t. */

/* check.c: what the kernels support; DSA_ERROR with err. */
int dsa_cuda_check_config(const dsa_model_config_t *config, dsa_err_t *err);
int dsa_cuda_check_limits(const dsa_cuda_rank_t *rank, dsa_err_t *err);
int dsa_cuda_check_device(uint32_t device, dsa_err_t *err);

/* rank.c: sets the layout of a page of the cache. */
void dsa_cuda_cache_layout(dsa_cache_t *cache,
    const dsa_model_config_t *config, uint32_t drafts, uint32_t kv_bf16);

/* rank.c: fills pages of this layout with random cache entries. */
int dsa_cuda_random_pages(void *page, uint32_t pages,
    const dsa_cache_t *layout, const dsa_model_config_t *config,
    uint32_t drafts, dsa_stream_t stream);

/*
 * layout.c: sets the pointers of the workspace, which begins at base, and
 * returns its bytes.  With base 0 only the result is valid.
 */
uint64_t dsa_cuda_layout(dsa_cuda_rank_t *rank, uintptr_t base);

/*
 * layers.c: computes layer l: x is the output of the block before, and residual
 * the sum of all earlier outputs, unless first is 1.
 */
int dsa_cuda_layer(dsa_cuda_rank_t *rank, uint32_t l, int first,
    const dsa_cuda_step_t *step);

/* layers.c: sets x to the embeddings of the input tokens. */
int dsa_cuda_embedding(dsa_cuda_rank_t *rank, const dsa_cuda_step_t *step);

/*
 * layers.c: computes norm, head and samples of the tokens to sample, in sample
 * [step->samples], or ends a step without them.
 */
int dsa_cuda_head(dsa_cuda_rank_t *rank, const float *norm,
    dsa_cuda_sample_t *sample, const dsa_cuda_step_t *step);

/*
 * draft.c: enqueues a step of the draft layer over the rows of rank->input and
 * rank->work.draft_hidden, as dsa_model_draft() documents it: row p has
 * position p, keys p + 1 and the slot of entry p.  No part of step->seq is
 * computed by MHA prefill.  step->shared_pick: the rows are decode tokens that
 * attend to what pick, pick_slot and n_pick have.  g of the rows to sample is
 * in rank->work.last_y, their logits in rank->work.vocab, and their samples in
 * sample [step->samples].
 */
int dsa_cuda_draft(dsa_cuda_rank_t *rank, dsa_cuda_sample_t *sample,
    const dsa_cuda_step_t *step);

/*
 * draft.c: makes the selection of row the one of row 0, for later steps of one
 * row that share it.
 */
int dsa_cuda_draft_keep(dsa_cuda_rank_t *rank, uint32_t row);

/*
 * product.c: y [rows, w->rows] = x . w^T with x [rows, w->cols] in the format
 * of w: x8, or x with rows ld_x elements apart.
 */
int dsa_cuda_product(dsa_cuda_rank_t *rank, dsa_bf16_t *y,
    const dsa_fp8_rows_t *x8, const dsa_bf16_t *x, size_t ld_x,
    const dsa_cuda_matrix_t *w, uint32_t rows);

/* The same for the experts of the plan; pairs: as in dsa_cuda_moe_gemm(). */
int dsa_cuda_grouped(dsa_cuda_rank_t *rank, dsa_bf16_t *y,
    const dsa_fp8_rows_t *x8, const dsa_bf16_t *x, const dsa_cuda_matrix_t *w,
    uint32_t pairs);

/*
 * y8 or y [rows, down->cols] = swiglu of x, in the format of down; plan: as in
 * dsa_cuda_swiglu(); scale: that of y8, on the GPU, or NULL for a scale of each
 * group.
 */
int dsa_cuda_gated(dsa_cuda_rank_t *rank, const dsa_fp8_rows_t *y8,
    dsa_bf16_t *y, const dsa_bf16_t *x, uint32_t rows,
    const dsa_moe_plan_t *plan, const dsa_cuda_matrix_t *down,
    const float *scale);

/*
 * Sets rows to those of x8 and x that a product with w reads, for the ops that
 * copy rows, and returns the bytes of a row.
 */
uint32_t dsa_cuda_operand(dsa_fp8_rows_t *rows, const dsa_fp8_rows_t *x8,
    const dsa_bf16_t *x, const dsa_cuda_matrix_t *w);

/*
 * attention.c: sets x to Attn(y) of a layer; y8 is y quantized, if qkv_a is in
 * FP8.
 */
int dsa_cuda_attention(dsa_cuda_rank_t *rank, uint32_t layer,
    const dsa_cuda_step_t *step);

/*
 * attention.c: parts that dense.c shares.  dsa_cuda_absorb() computes q_latent
 * of n tokens from row on: W_UK^T q_nope, and the rotated q_rope.
 * dsa_cuda_expand() computes o of n tokens: W_UV u.  dsa_cuda_keys_values()
 * sets latents and kv to n keys with the block table pages.
 */
int dsa_cuda_absorb(dsa_cuda_rank_t *rank, const dsa_cuda_layer_t *l,
    uint32_t row, uint32_t n);
int dsa_cuda_expand(dsa_cuda_rank_t *rank, const dsa_cuda_layer_t *l,
    uint32_t row, uint32_t n);
int dsa_cuda_keys_values(dsa_cuda_rank_t *rank, const dsa_cuda_layer_t *l,
    const dsa_cuda_cache_t *cache, const int32_t *pages, uint32_t n);

/*
 * dense.c: sets o of all tokens of a step from the queries in q, after the
 * cache entries were written.
 */
int dsa_cuda_dense(dsa_cuda_rank_t *rank, uint32_t layer,
    const dsa_cuda_cache_t *cache, const dsa_cuda_step_t *step);

/* Selects all tokens for decode tokens with a context of at most topk. */
int dsa_cuda_select_all(dsa_cuda_rank_t *rank, const dsa_cuda_step_t *step);

/*
 * ffn.c: sets x to FFN(y) of a layer; y8 is y quantized, if some of the layer's
 * MLPs are in FP8.
 */
int dsa_cuda_ffn(dsa_cuda_rank_t *rank, uint32_t layer,
    const dsa_cuda_step_t *step);

/*
 * trace.c: pass a device array [rows, cols] to the trace, if there is one:
 * 4-byte elements, or BF16 widened, x or x + residual.
 */
int dsa_cuda_trace(dsa_cuda_rank_t *rank, const char *name, uint32_t layer,
    uint32_t rows, uint32_t cols, const void *data);
int dsa_cuda_trace_bf16(dsa_cuda_rank_t *rank, const char *name,
    uint32_t layer, uint32_t rows, uint32_t cols, const dsa_bf16_t *x,
    const dsa_bf16_t *residual);

/*
 * trace.c: traces the selection of tokens first .. first+n-1, and replaces it
 * by the result of rank->select, if that is set.
 */
int dsa_cuda_trace_selection(dsa_cuda_rank_t *rank, uint32_t layer,
    uint32_t first, uint32_t n);


/* Returns the ld of scales [groups, ld] for so many rows without gaps. */

static inline size_t
dsa_cuda_ld(uint32_t rows)
{
    return ((size_t) rows + 3) & ~(size_t) 3;
}


/* Runs an op if none has failed before.  The ops of a block run in order. */
#define dsa_cuda_try(call)                                                    \
    do {                                                                      \
        int  rc_ = (call);                                                    \
        if (rc_ != 0) {                                                       \
            return rc_;                                                       \
        }                                                                     \
    } while (0)


#endif /* _DSA_CUDA_RANK_H_INCLUDED_ */
