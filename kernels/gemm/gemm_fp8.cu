
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "gemm_fp8.cuh"
#include "gemm_many_kernel.cuh"


/*
 * The sizes of tiles.  The constants, in ns, were fitted to the model's
 * products with 64 .. 8192 rows on an H200.
 *
 * Two examples, in us, measured (formula):
 *
 *                                   256x128     128x128      128x64
 *     7168 x 16384, 4096 rows      693 (722)   825 (800)
 *     4096 x 7168, 256 rows         40 (50)     23 (28)     19 (21)
 */

#define DSA_FP8_SIZE(...)   DSA_MANY_SIZE(DSA_GEMM_FP8, __VA_ARGS__)
#define DSA_FP8_SIZES       (sizeof(dsa_fp8_sizes) / sizeof(dsa_fp8_sizes[0]))


static const dsa_many_size_t  dsa_fp8_sizes[] = {
    DSA_FP8_SIZE(2, 2, 128, 2, 4, 1, 1, 790, 1400, 4000),
    DSA_FP8_SIZE(2, 1, 192, 2, 5, 1, 1, 660, 1200, 4000),
    DSA_FP8_SIZE(2, 1, 128, 1, 6, 1, 1, 440, 600, 3000),
    DSA_FP8_SIZE(2, 1, 64, 1, 8, 1, DSA_GEMM_FP8_SEGMENTS, 320, 500, 3000),
    DSA_FP8_SIZE(2, 1, 32, 1, 9, 1, DSA_GEMM_FP8_SEGMENTS, 220, 400, 3000),
    DSA_FP8_SIZE(1, 1, 64, 1, 6, 2, 1, 360, 800, 1500)
};


int
dsa_gemm_fp8(const dsa_cuda_state_t *state, const dsa_gemm_t *g,
    uint32_t segments, cudaStream_t stream)
{
    return dsa_many_run(dsa_fp8_sizes, DSA_FP8_SIZES, g->in / DSA_MANY_K,
                        state, g, segments, stream);
}


int
dsa_gemm_fp8_setup(void)
{
    return dsa_many_setup(dsa_fp8_sizes, DSA_FP8_SIZES);
}
