
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "base/options.h"
#include "bench/bench.h"
#include "bench/gpu.h"


typedef struct {
    const char     *name;
    void          (*run)(dsa_bench_t *b);
} dsa_bench_op_t;


static const dsa_bench_op_t  dsa_bench_ops[] = {
    { "attention_decode", dsa_bench_attention_decode },
    { "attention_prefill", dsa_bench_attention_prefill },
    { "attention_dense", dsa_bench_attention_dense },
    { "attention_dense_prompt", dsa_bench_attention_prompt },
    { "attention_heads", dsa_bench_attention_heads },
    { "index", dsa_bench_index },
    { "topk", dsa_bench_topk },
    { "moe_gemm", dsa_bench_moe_gemm },
    { "moe_gemm_bf16", dsa_bench_moe_gemm_bf16 },
    { "moe_int4", dsa_bench_moe_int4 },
    { "gemm", dsa_bench_gemm },
    { "dense_bf16", dsa_bench_gemm_bf16 },
    { "elementwise", dsa_bench_elementwise },
    { "moe", dsa_bench_moe },
    { "sample", dsa_bench_sample },
    { "attention_forms", dsa_bench_attention_forms }
};


int
dsa_bench_kernels(int argc, char **argv, const char *usage)
{
    int                    c, rc;
    size_t                 i;
    const char            *only;
    dsa_bench_t            b;
    struct cudaDeviceProp  prop;
    dsa_cuda_counters_t   *counters;

    static const struct option  options[] = {
        { "only", required_argument, NULL, 'o' },
        { NULL, 0, NULL, 0 }
    };

    only = "";
    counters = NULL;

    while ((c = dsa_option("dsa bench kernels", argc, argv, "", options))
           != -1)
    {
        if (c == '?') {
            return 2;
        }

        only = optarg;
    }

    if (optind != argc) {
        (void) fputs(usage, stderr);
        return 2;
    }

    memset(&b, 0, sizeof(b));

    rc = cudaGetDeviceProperties(&prop, 0);
    rc = rc != 0 ? rc : (int) cudaStreamCreate(&b.stream);
    rc = rc != 0 ? rc : (int) cudaMalloc((void **) &counters,
                                         sizeof(dsa_cuda_counters_t));
    rc = rc != 0 ? rc : dsa_cuda_init(&b.state, counters);

    if (rc != 0) {
        (void) fprintf(stderr, "dsa bench: %s\n", dsa_cuda_error(rc));
        return 1;
    }

    (void) printf("%s, %d SMs.  Limits: HBM %.0f GB/s, FP8 %.0f and BF16 %.0f "
                  "TFLOPS, as measured on an H200.\n\n"
                  "| op | shape | us | TFLOPS | GB/s | share of the limit |\n"
                  "|---|---|---|---|---|---|\n",
                  prop.name, prop.multiProcessorCount, DSA_BENCH_HBM,
                  DSA_BENCH_FP8, DSA_BENCH_BF16);

    for (i = 0; i < sizeof(dsa_bench_ops) / sizeof(dsa_bench_ops[0]); i++) {
        if (strstr(dsa_bench_ops[i].name, only) != NULL) {
            dsa_bench_ops[i].run(&b);
            dsa_bench_free_all(&b);
        }
    }

    (void) cudaFree(counters);
    (void) cudaStreamDestroy(b.stream);

    return fflush(stdout) == 0 && !b.failed ? 0 : 1;
}
