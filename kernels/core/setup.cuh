
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SETUP_CUH_INCLUDED_
#define _DSA_SETUP_CUH_INCLUDED_


#include <cuda_runtime.h>
#include <stddef.h>


/*
 * dsa_cuda_init() calls these functions once for each device.  A launch with
 * more than 48 KB of dynamic shared memory fails unless the kernel's attribute
 * permits it on that device.  The attribute is a property of the kernel, not
 * of the launch, so it is set once, to the maximum of all launches: two
 * threads that set it before each launch could lower it for each other.
 *
 * Each function sets the attributes of the kernels of one file; those of the
 * exchange only load their kernels.
 */

int dsa_attention_decode_setup(void);
int dsa_attention_dense_setup(void);
int dsa_attention_heads_setup(void);
int dsa_attention_prefill_setup(void);
int dsa_attention_narrow_setup(void);
int dsa_copy_setup(void);
int dsa_exchange_setup(void);
int dsa_exchange_moe_setup(void);
int dsa_exchange_reduce_setup(void);
int dsa_gemm_bf16_setup(void);
int dsa_gemm_decode_setup(void);
int dsa_gemm_fp8_setup(void);
int dsa_index_decode_setup(void);
int dsa_index_groups_setup(void);
int dsa_index_prefill_setup(void);
int dsa_int4_setup(void);
int dsa_moe_gemm_setup(void);
int dsa_moe_int4_setup(void);
int dsa_moe_plan_setup(void);
int dsa_moe_small_setup(void);
int dsa_sample_setup(void);
int dsa_sample_penalize_setup(void);
int dsa_sample_kept_setup(void);
int dsa_topk_setup(void);


/*
 * Sets the maximum of a kernel's dynamic shared memory on the current device.
 */

template <typename K>
static inline int
dsa_setup_shared(K kernel, size_t bytes)
{
    return cudaFuncSetAttribute(kernel,
                                cudaFuncAttributeMaxDynamicSharedMemorySize,
                                (int) bytes);
}


/* Permits clusters of 16 blocks for a kernel on the current device. */

template <typename K>
static inline int
dsa_setup_cluster(K kernel)
{
    return cudaFuncSetAttribute(kernel,
                                cudaFuncAttributeNonPortableClusterSizeAllowed,
                                1);
}


/*
 * Loads a kernel on the current device.  Otherwise its first launch would load
 * it, which may wait for a kernel that waits for another rank.
 */

template <typename K>
static inline int
dsa_setup_load(K kernel)
{
    cudaFuncAttributes  attributes;

    return cudaFuncGetAttributes(&attributes, kernel);
}


#endif /* _DSA_SETUP_CUH_INCLUDED_ */
