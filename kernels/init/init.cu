
/*
 * Copyright (C) The nginx-dsa authors
 */


extern "C" {
#include "kernels/core/cuda.h"
}

#include "kernels/core/setup.cuh"


/*
 * Finds the driver's function through the runtime.  Programs are not linked
 * with libcuda, so that they also start on machines without a GPU.
 */

static int
dsa_init_encode(void **encode)
{
    cudaError_t                      rc;
    cudaDriverEntryPointQueryResult  found;

    rc = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", encode,
                                          12000, cudaEnableDefault, &found);
    if (rc != cudaSuccess) {
        return rc;
    }

    return found == cudaDriverEntryPointSuccess ? cudaSuccess
                                                : cudaErrorNotSupported;
}


static int
dsa_init_kernels(void)
{
    int     rc;
    size_t  i;

    static int (*const setup[])(void) = {
        dsa_attention_decode_setup,
        dsa_attention_dense_setup,
        dsa_attention_heads_setup,
        dsa_attention_prefill_setup,
        dsa_attention_narrow_setup,
        dsa_copy_setup,
        dsa_exchange_setup,
        dsa_exchange_moe_setup,
        dsa_exchange_reduce_setup,
        dsa_gemm_bf16_setup,
        dsa_gemm_decode_setup,
        dsa_gemm_fp8_setup,
        dsa_index_decode_setup,
        dsa_index_groups_setup,
        dsa_index_prefill_setup,
        dsa_int4_setup,
        dsa_moe_gemm_setup,
        dsa_moe_int4_setup,
        dsa_moe_plan_setup,
        dsa_moe_small_setup,
        dsa_sample_setup,
        dsa_sample_penalize_setup,
        dsa_sample_kept_setup,
        dsa_topk_setup
    };

    rc = 0;

    for (i = 0; i < sizeof(setup) / sizeof(setup[0]) && rc == 0; i++) {
        rc = setup[i]();
    }

    return rc;
}


extern "C" int
dsa_cuda_init(dsa_cuda_state_t *state, dsa_cuda_counters_t *counters)
{
    int  rc, processors;

    processors = 0;

    rc = cudaGetDevice(&state->device);
    rc = rc != 0 ? rc
                 : (int) cudaDeviceGetAttribute(&processors,
                                                cudaDevAttrMultiProcessorCount,
                                                state->device);
    rc = rc != 0 ? rc : dsa_init_encode(&state->encode);
    rc = rc != 0 ? rc : dsa_init_kernels();
    rc = rc != 0 ? rc : (int) cudaMemset(counters, 0,
                                         sizeof(dsa_cuda_counters_t));
    rc = rc != 0 ? rc : (int) cudaDeviceSynchronize();

    state->processors = (uint32_t) processors;
    state->counters = counters;

    return rc;
}
