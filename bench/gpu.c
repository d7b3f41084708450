
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <stdlib.h>

#include <cuda_runtime_api.h>

#include "bench/gpu.h"


#define DSA_BENCH_BLOCKS    128
#define DSA_BENCH_SAMPLES   41
#define DSA_BENCH_SECONDS   0.1


static void    *dsa_bench_block[DSA_BENCH_BLOCKS];
static size_t   dsa_bench_blocks;


static int
dsa_bench_failed(dsa_bench_t *b, const char *what, int rc)
{
    if (rc != 0) {
        (void) fprintf(stderr, "dsa bench: %s: %s\n", what,
                       dsa_cuda_error(rc));
        b->failed = 1;
    }

    return rc;
}


void *
dsa_bench_alloc(dsa_bench_t *b, size_t size)
{
    int    rc;
    void  *p;

    if (dsa_bench_blocks == DSA_BENCH_BLOCKS) {
        rc = cudaErrorMemoryAllocation;

    } else {
        rc = cudaMalloc(&p, size);
    }

    if (dsa_bench_failed(b, "cudaMalloc", rc) != 0) {
        return NULL;
    }

    dsa_bench_block[dsa_bench_blocks++] = p;

    return p;
}


void
dsa_bench_free_all(dsa_bench_t *b)
{
    (void) dsa_bench_failed(b, "a kernel", cudaDeviceSynchronize());

    while (dsa_bench_blocks > 0) {
        (void) dsa_bench_failed(b, "cudaFree",
                                cudaFree(dsa_bench_block[--dsa_bench_blocks]));
    }
}


static int
dsa_bench_compare(const void *a, const void *b)
{
    float  x, y;

    x = *(const float *) a;
    y = *(const float *) b;

    return (x > y) - (x < y);
}


/* Captures a graph of count rounds of all sets. */

static int
dsa_bench_capture(dsa_bench_t *b, cudaGraphExec_t *exec, dsa_bench_pt call,
    void *ctx, int sets, int count)
{
    int          i, j, rc, ended;
    cudaGraph_t  graph;

    rc = cudaStreamBeginCapture(b->stream, cudaStreamCaptureModeThreadLocal);
    if (rc != 0) {
        return rc;
    }

    for (i = 0; i < count && rc == 0; i++) {
        for (j = 0; j < sets && rc == 0; j++) {
            rc = call(b, ctx, j);
        }
    }

    ended = cudaStreamEndCapture(b->stream, &graph);

    if (rc != 0 || ended != 0) {
        return rc != 0 ? rc : ended;
    }

    rc = cudaGraphInstantiate(exec, graph, 0);
    (void) cudaGraphDestroy(graph);

    return rc;
}


static int
dsa_bench_replay(dsa_bench_t *b, cudaGraphExec_t exec, cudaEvent_t *event,
    float *ms)
{
    int  rc;

    rc = cudaEventRecord(event[0], b->stream);
    rc = rc != 0 ? rc : (int) cudaGraphLaunch(exec, b->stream);
    rc = rc != 0 ? rc : (int) cudaEventRecord(event[1], b->stream);
    rc = rc != 0 ? rc : (int) cudaEventSynchronize(event[1]);

    return rc != 0 ? rc
                   : (int) cudaEventElapsedTime(ms, event[0], event[1]);
}


double
dsa_bench_time(dsa_bench_t *b, dsa_bench_pt call, void *ctx, int sets)
{
    int              i, n, rc, count;
    float            ms[DSA_BENCH_SAMPLES];
    double           us;
    cudaEvent_t      event[2] = { NULL, NULL };
    cudaGraphExec_t  exec;

    us = -1;
    exec = NULL;

    /* run once outside of a capture, so that libraries choose their kernels */

    for (i = 0, rc = 0; i < sets && rc == 0; i++) {
        rc = call(b, ctx, i);
    }

    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(b->stream);
    rc = rc != 0 ? rc : (int) cudaEventCreate(&event[0]);
    rc = rc != 0 ? rc : (int) cudaEventCreate(&event[1]);
    rc = rc != 0 ? rc : dsa_bench_capture(b, &exec, call, ctx, sets, 1);
    rc = rc != 0 ? rc : dsa_bench_replay(b, exec, event, ms);
    rc = rc != 0 ? rc : dsa_bench_replay(b, exec, event, ms);

    if (rc != 0) {
        goto done;
    }

    /*
     * samples of at least 200 us, so that the resolution of events does not
     * matter
     */

    count = ms[0] > 0.2f ? 1 : (int) (0.2f / (ms[0] > 0.001f ? ms[0] : 0.001f))
                               + 1;

    if (count > 1) {
        (void) cudaGraphExecDestroy(exec);
        exec = NULL;
        rc = dsa_bench_capture(b, &exec, call, ctx, sets, count);
    }

    n = (int) (DSA_BENCH_SECONDS * 1000 / ((double) ms[0] * count)) + 3;
    n = n > DSA_BENCH_SAMPLES ? DSA_BENCH_SAMPLES : n;

    for (i = 0; i < 2 && rc == 0; i++) {
        rc = dsa_bench_replay(b, exec, event, ms);
    }

    for (i = 0; i < n && rc == 0; i++) {
        rc = dsa_bench_replay(b, exec, event, &ms[i]);
    }

    if (rc == 0) {
        qsort(ms, (size_t) n, sizeof(float), dsa_bench_compare);
        us = (double) ms[n / 2] * 1000 / count / sets;
    }

done:

    (void) dsa_bench_failed(b, "a measurement", rc);

    if (exec != NULL) {
        (void) cudaGraphExecDestroy(exec);
    }

    for (i = 0; i < 2; i++) {
        if (event[i] != NULL) {
            (void) cudaEventDestroy(event[i]);
        }
    }

    return us;
}


void
dsa_bench_row(dsa_bench_t *b, const char *op, const char *shape, double us,
    double flop, double tflops, double bytes)
{
    double  rate, speed, share, part;

    if (us <= 0) {
        return;
    }

    rate = flop / us * 1e-6;
    speed = bytes / us * 1e-3;
    share = speed / DSA_BENCH_HBM;
    part = tflops > 0 ? rate / tflops : 0;

    (void) printf("| %s | %s | %.1f | ", op, shape, us);

    if (tflops > 0) {
        (void) printf("%.0f", rate);
    }

    (void) printf(" | %.0f | %.0f %% of %s |\n", speed,
                  100 * (part > share ? part : share),
                  part > share ? (tflops > DSA_BENCH_BF16 ? "FP8" : "BF16")
                               : "HBM");
    (void) fflush(stdout);
}
