
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "gemm_bf16.cuh"
#include "gemm_many_kernel.cuh"


/*
 * The sizes of tiles.  The tensor cores take as long for 64 elements of BF16
 * as for 128 of e4m3, so the constants are those of gemm_fp8.cu; they were not
 * fitted.  A size with several segments has two sums for each output.
 */

#define DSA_BF16_SIZE(...)  DSA_MANY_SIZE(DSA_GEMM_BF16, __VA_ARGS__)
#define DSA_BF16_SIZES      (sizeof(dsa_bf16_sizes) / sizeof(dsa_bf16_sizes[0]))


static const dsa_many_size_t  dsa_bf16_sizes[] = {
    DSA_BF16_SIZE(2, 2, 128, 2, 4, 1, 1, 790, 1400, 4000),
    DSA_BF16_SIZE(2, 1, 192, 2, 5, 1, DSA_GEMM_BF16_SEGMENTS, 660, 1200, 4000),
    DSA_BF16_SIZE(2, 1, 128, 1, 6, 1, DSA_GEMM_BF16_SEGMENTS, 440, 600, 3000),
    DSA_BF16_SIZE(2, 1, 64, 1, 8, 1, DSA_GEMM_BF16_SEGMENTS, 320, 500, 3000),
    DSA_BF16_SIZE(1, 1, 64, 1, 6, 2, DSA_GEMM_BF16_SEGMENTS, 360, 800, 1500)
};


int
dsa_gemm_bf16(const dsa_cuda_state_t *state, const dsa_gemm_t *g,
    uint32_t segments, cudaStream_t stream)
{
    return dsa_many_run(dsa_bf16_sizes, DSA_BF16_SIZES, (g->in + 63) / 64,
                        state, g, segments, stream);
}


int
dsa_gemm_bf16_setup(void)
{
    return dsa_many_setup(dsa_bf16_sizes, DSA_BF16_SIZES);
}
