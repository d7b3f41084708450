
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BENCH_GPU_H_INCLUDED_
#define _DSA_BENCH_GPU_H_INCLUDED_


#include <stddef.h>

#include "bench/bound.h"
#include "kernels/core/cuda.h"


/*
 * dsa bench kernels: one file op_NAME.c for each op.  It prepares inputs,
 * measures calls and prints rows of a table beside the physical limit.
 */

typedef struct {
    dsa_stream_t        stream;
    dsa_cuda_state_t    state;
    int                 failed;         /* 1: an op failed, and the error was
                                           printed */
} dsa_bench_t;


/*
 * Device memory for one op, until dsa_bench_free_all(); NULL: the error was
 * printed.
 */
void *dsa_bench_alloc(dsa_bench_t *b, size_t size);
void dsa_bench_free_all(dsa_bench_t *b);

/*
 * The call that is measured: enqueues its kernels in b->stream and returns an
 * op's error.
 */
typedef int (*dsa_bench_pt)(dsa_bench_t *b, void *ctx, int set);

/*
 * The median time of a call in microseconds, measured with events.  The call
 * is captured in a graph (so that launch gaps are those of a step), warmed up,
 * and replayed for at least a tenth of a second.  sets > 1: calls with set =
 * 0 .. sets-1 follow one another, for inputs that have to be cold in the L2;
 * the result is the time of one call.  Below 0: the measurement failed, and
 * the error was printed.
 */
double dsa_bench_time(dsa_bench_t *b, dsa_bench_pt call, void *ctx,
    int sets);

/*
 * Prints a row: op, shape, time, TFLOPS for flop operations (their ceiling is
 * tflops; 0: not printed), GB/s for bytes, and the share of the nearer limit.
 */
void dsa_bench_row(dsa_bench_t *b, const char *op, const char *shape,
    double us, double flop, double tflops, double bytes);


/* One function for each op, in op_NAME.c. */
void dsa_bench_elementwise(dsa_bench_t *b);
void dsa_bench_moe(dsa_bench_t *b);
void dsa_bench_gemm(dsa_bench_t *b);
void dsa_bench_gemm_bf16(dsa_bench_t *b);
void dsa_bench_moe_gemm(dsa_bench_t *b);
void dsa_bench_moe_gemm_bf16(dsa_bench_t *b);
void dsa_bench_moe_int4(dsa_bench_t *b);
void dsa_bench_index(dsa_bench_t *b);
void dsa_bench_topk(dsa_bench_t *b);
void dsa_bench_sample(dsa_bench_t *b);
void dsa_bench_attention_decode(dsa_bench_t *b);
void dsa_bench_attention_prefill(dsa_bench_t *b);
void dsa_bench_attention_dense(dsa_bench_t *b);
void dsa_bench_attention_prompt(dsa_bench_t *b);
void dsa_bench_attention_heads(dsa_bench_t *b);
void dsa_bench_attention_forms(dsa_bench_t *b);


#endif /* _DSA_BENCH_GPU_H_INCLUDED_ */
