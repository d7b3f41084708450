
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BENCH_GPU_H_INCLUDED_
#define _DSA_BENCH_GPU_H_INCLUDED_


#include <stddef.h>

#include "kernels/cuda.h"


/*
 * dsa bench kernels: one file op_NAME.c for each op, which lays out inputs,
 * times calls and prints rows beside the physical limit.
 */

/*
 * The ceilings of one H200 as measured (HBM read, FP8 and BF16 products of
 * 8192^3), and what shares are taken of.
 */

#define DSA_BENCH_HBM       4384.0      /* GB/s */
#define DSA_BENCH_FP8       1453.0      /* TFLOPS */
#define DSA_BENCH_BF16      790.0


typedef struct {
    dsa_stream_t        stream;
    dsa_cuda_state_t    state;
    int                 failed;         /* 1: an op failed, and the error was
                                           printed */
} dsa_bench_t;


/* Device memory for one op, until dsa_bench_free_all(); NULL: told. */
void *dsa_bench_alloc(dsa_bench_t *b, size_t size);
void dsa_bench_free_all(dsa_bench_t *b);

/* What is measured: puts its kernels in b->stream, returns an op's error. */
typedef int (*dsa_bench_pt)(dsa_bench_t *b, void *ctx, int turn);

/*
 * The median time of a call in microseconds by events: the call is captured
 * in a graph (so that launch gaps are those of a step), warmed up, and
 * replayed often enough for a tenth of a second.  turns > 1: as many captures
 * with turn = 0 .. turns-1 follow one another, for inputs that have to be
 * cold in the L2; the time is that of one.  Below 0: failed, and told.
 */
double dsa_bench_time(dsa_bench_t *b, dsa_bench_pt call, void *ctx,
    int turns);

/*
 * Prints a row: op, shape, time, and TFLOPS of flop operations beside tflops
 * (a ceiling; 0: not told), GB/s of bytes beside DSA_BENCH_HBM; the share is
 * that of the nearer limit.
 */
void dsa_bench_row(dsa_bench_t *b, const char *op, const char *shape,
    double us, double flop, double tflops, double bytes);


/* One for each op; in op_NAME.c. */
void dsa_bench_elementwise(dsa_bench_t *b);
void dsa_bench_moe(dsa_bench_t *b);
void dsa_bench_gemm(dsa_bench_t *b);
void dsa_bench_moe_gemm(dsa_bench_t *b);
void dsa_bench_index(dsa_bench_t *b);
void dsa_bench_topk(dsa_bench_t *b);
void dsa_bench_sample(dsa_bench_t *b);
void dsa_bench_attention_decode(dsa_bench_t *b);
void dsa_bench_attention_prefill(dsa_bench_t *b);
void dsa_bench_attention_heads(dsa_bench_t *b);


#endif /* _DSA_BENCH_GPU_H_INCLUDED_ */
