
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_EXCHANGE_H_INCLUDED_
#define _DSA_EXCHANGE_H_INCLUDED_


#include "kernels/core/cuda.h"
#include "kernels/moe/moe.h"


/*
 * The exchange between the GPUs of one process.  Each GPU is a rank; its
 * kernels store into the memory of the other ranks through peer pointers, and
 * add to counters there.  The links must have native atomics, which NVLink has
 * and PCIe does not (cudaDevP2PAttrNativeAtomicSupported).
 *
 * An exchange has two halves.  A rank first stores its data to all ranks and
 * then raises its flag there.  Later it waits until the flags of all ranks are
 * raised in its own memory.  A flag counts the exchanges of a rank in units of
 * DSA_EXCHANGE_ONE; the blocks of a kernel that stores add parts of the unit.
 * Flags only grow, modulo 2^32.  All ranks enqueue the same exchanges in the
 * same order.
 *
 * A rank stores before it waits, and a store never waits, so there is no
 * deadlock in any order of execution.  A buffer is written again only after an
 * exchange that its owner has stored after it has read the buffer: see each
 * op.
 *
 * A wait has a time limit.  When it is exceeded, the first missing rank is
 * recorded in the fault, and all later waits of this rank return at once, so
 * that the work in the stream ends and the host can report the error.
 */

#define DSA_EXCHANGE_RANKS  16
#define DSA_EXCHANGE_ONE    65536       /* units of a flag for an exchange */
#define DSA_EXCHANGE_SHARE  4           /* most streams of a GPU that exchange
                                           at the same time */


/* In device memory of each rank, zeroed before the first exchange. */

typedef struct {
    uint32_t            flag[DSA_EXCHANGE_RANKS];   /* [r]: what rank r has
                                           added here */
    uint32_t            blocks;         /* blocks of an all-reduce in one
                                           kernel that are done */
    uint32_t            failed;         /* 1: a wait has timed out */
    uint64_t            sums;           /* all-reduces in one kernel that this
                                           rank has made */
} dsa_exchange_state_t;


/*
 * In pinned host memory, mapped for the rank's GPU, zeroed before the first
 * exchange.
 */

typedef struct {
    volatile uint32_t   failed;         /* 1: the other members are valid */
    volatile uint32_t   missing;        /* the rank whose flag is not raised */
    volatile uint32_t   number;         /* the exchange, modulo 65536; of an
                                           all-reduce in one kernel: sums */
} dsa_exchange_fault_t;


/* The parameters of a rank's exchanges, which are copied into the launches. */

typedef struct {
    uint32_t                rank;
    uint32_t                ranks;      /* 1 .. DSA_EXCHANGE_RANKS */
    uint32_t                processors; /* multiprocessors of the GPU */
    uint32_t                exclusive;  /* 1: no other stream of this GPU
                                           exchanges, for another rank or for
                                           another part of a step; 0: at most
                                           DSA_EXCHANGE_SHARE do, which is
                                           always correct, and slower */
    uint64_t                timeout_ns;
    dsa_exchange_fault_t   *fault;      /* device address */
    dsa_exchange_state_t   *state[DSA_EXCHANGE_RANKS];      /* of each rank */
} dsa_cuda_exchange_t;


/*
 * Raises this rank's flag in all ranks, without data.  When the wait of
 * another rank ends, the stores of earlier kernels of this stream are visible
 * to it.
 */
int dsa_cuda_exchange_signal(const dsa_cuda_exchange_t *x,
    dsa_stream_t stream);

/*
 * Waits for the flags of the last exchange that this rank has stored.  It is
 * not needed after an all-reduce or a gather, which wait themselves.
 */
int dsa_cuda_exchange_wait(const dsa_cuda_exchange_t *x, dsa_stream_t stream);


/*
 * Tokens for the experts of all ranks ("attention data").
 *
 * Each rank has slot rows in the buffers of every rank; those of rank r begin
 * at row r * slot.  slot is the same on all ranks and at least the rank's
 * tokens.  Rank q computes experts q * experts .. (q + 1) * experts - 1.
 */

typedef struct {
    dsa_fp8_rows_t      x[DSA_EXCHANGE_RANKS];      /* of each rank: [ranks *
                                           slot, cols]; ld is the same on all,
                                           and covers the rows of this rank:
                                           at least (rank + 1) * slot */
    int32_t            *expert[DSA_EXCHANGE_RANKS]; /* [ranks * slot, k] number
                                           among the experts of that rank, -1:
                                           not one of them */
    float              *weight[DSA_EXCHANGE_RANKS]; /* [ranks * slot, k] */
} dsa_exchange_tokens_t;

/*
 * Stores the tokens of this rank to all ranks and raises its flag.  y [tokens,
 * cols] is stored only to ranks that have an expert of the token.  live: a
 * token with a negative number is padding; padding, and rows tokens .. slot-1,
 * get expert -1.  If live is NULL, no token is padding.  expert [tokens, k]
 * (numbers of all experts), weight [tokens, k]; the weight of an expert -1 is
 * not stored.  Scales are stored for all tokens.  A rank with 0 tokens calls
 * it too.
 *
 * The next call overwrites to.  It must be enqueued after
 * dsa_cuda_exchange_sum() on this rank, because every rank has read to by
 * then.
 *
 * BF16 rows are passed with cols twice as large, and with scale NULL in y and
 * in to.
 */
int dsa_cuda_exchange_tokens(const dsa_cuda_exchange_t *x,
    const dsa_exchange_tokens_t *to, const dsa_fp8_rows_t *y,
    const int32_t *expert, const float *weight, const int32_t *live,
    uint32_t tokens, uint32_t slot, uint32_t experts, uint32_t k,
    uint32_t cols, dsa_stream_t stream);

/*
 * As dsa_cuda_moe_combine() without shared, for rows first .. first+rows-1 of
 * the buffers above: plan, and y [places, cols], are of these rows, expert and
 * weight [ranks * slot, k] of all.  The sum of row q * slot + i, if it has an
 * expert here, is rounded to bf16 and stored at row rank * slot + i of
 * part[q] [ranks * slot, cols] in rank q's memory.  With last 1 the flag is
 * raised: the rows of all calls since the last exchange are complete.
 *
 * part is overwritten after the next dsa_cuda_exchange_tokens() and its wait,
 * because its owner has read it by then.
 */
int dsa_cuda_exchange_combine(const dsa_cuda_exchange_t *x,
    dsa_bf16_t *const *part, const dsa_bf16_t *y,
    const float *weight, const int32_t *expert, const dsa_moe_plan_t *plan,
    uint32_t first, uint32_t rows, uint32_t slot, uint32_t k, uint32_t cols,
    int last, dsa_stream_t stream);

/*
 * Waits for all ranks' sums; y [tokens, cols] bf16 = part [ranks * slot, cols]
 * of this rank, ranks rising, then plus shared [tokens, cols] (bf16, unless
 * NULL), in float32, rounded once.  expert [tokens, k]: of all experts; a rank
 * without an expert of the token has stored nothing and is left out, and so
 * are all ranks for padding (live as above).  y may be shared.
 */
int dsa_cuda_exchange_sum(const dsa_cuda_exchange_t *x, dsa_bf16_t *y,
    const dsa_bf16_t *part, const dsa_bf16_t *shared, const int32_t *expert,
    const int32_t *live, uint32_t tokens, uint32_t slot, uint32_t experts,
    uint32_t k, uint32_t cols, dsa_stream_t stream);


/*
 * y [rows, cols] bf16 = the sum of all ranks' from [rows, cols] bf16, ranks
 * rising, in float32, rounded once; the same bits on all ranks ("attention
 * tensor").  Stores and waits: for few rows in one kernel, which needs no
 * flag and counts no exchange, for many rows in two exchanges.  y may be from.
 * part: a buffer of each rank of dsa_cuda_exchange_part(ranks, rows, cols)
 * bytes for the most rows, 16-byte aligned, zeroed before the first sum, used
 * by nothing else, and the same in all calls with one state.  Another exchange
 * must lie between two sums of many rows if the later one has more rows or
 * columns: the offsets in part depend on the size, and the later sum stores
 * where a slower rank may still read the earlier one.
 */
uint64_t dsa_cuda_exchange_part(uint32_t ranks, uint32_t rows, uint32_t cols);

int dsa_cuda_exchange_all_reduce(const dsa_cuda_exchange_t *x, dsa_bf16_t *y,
    const dsa_bf16_t *from, void *const *part,
    uint32_t rows, uint32_t cols, dsa_stream_t stream);

/*
 * Columns rank * cols .. (rank + 1) * cols - 1 of to[q] [rows, ranks * cols]
 * float32, of every rank q, = from [rows, cols] of this rank.  cols is a
 * multiple of 4.  Stores, raises the flag and waits.  The next call overwrites
 * to, so there must be an exchange between the last read of to and that call.
 */
int dsa_cuda_exchange_gather(const dsa_cuda_exchange_t *x,
    float *const *to, const float *from, uint32_t rows,
    uint32_t cols, dsa_stream_t stream);


/*
 * CPU twins: the sums of the exchanges.  All ranks are in one memory, so these
 * functions only add.  Values are float32.  With bf16 1 each partial sum is
 * rounded to bf16, as it is for a transfer, and so is the result.
 */

/*
 * The twin of dsa_cuda_exchange_combine(), of one rank: part [tokens, cols] =
 * the sum over those of a token's k pairs whose expert is one of rank *
 * experts .. (rank + 1) * experts - 1, experts rising, of weight [tokens, k]
 * times the row place [tokens, k] of y [., cols].  expert [tokens, k] are
 * numbers of all experts, which differ within a token; -1: no expert.  The row
 * of a token without an expert of the rank is not written.
 */
void dsa_exchange_combine(float *part, const float *y, const float *weight,
    const int32_t *expert, const int32_t *place, size_t tokens, uint32_t k,
    size_t cols, uint32_t rank, uint32_t experts, int bf16);

/*
 * The twin of dsa_cuda_exchange_sum(): y [tokens, cols] = the parts of the
 * ranks with an expert of the token, ranks rising, then plus shared [tokens,
 * cols], unless it is NULL.  That of rank r begins step * r elements after
 * part.  y and shared do not overlap.
 */
void dsa_exchange_sum(float *y, const float *part, size_t step,
    const float *shared, const int32_t *expert, size_t tokens,
    uint32_t ranks, uint32_t experts, uint32_t k, size_t cols, int bf16);

/*
 * The twin of dsa_cuda_exchange_all_reduce(): y [n] = the sum of part [n] of
 * all ranks, ranks rising; that of rank r begins step * r elements after part.
 * The parts are rounded already.
 */
void dsa_exchange_all_reduce(float *y, const float *part, size_t step,
    size_t n, uint32_t ranks, int bf16);


#endif /* _DSA_EXCHANGE_H_INCLUDED_ */
