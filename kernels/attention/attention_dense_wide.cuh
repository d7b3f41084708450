
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ATTENTION_DENSE_WIDE_CUH_INCLUDED_
#define _DSA_ATTENTION_DENSE_WIDE_CUH_INCLUDED_


#include "attention_dense.cuh"
#include "attention_decode_wide.cuh"


/*
 * Dense decode over FP8 latents with more than 32 heads: wide sparse decode, of
 * which all positions of a row are selected.  A record is converted once for 64
 * heads, where blocks of dsa_dense_fp8() would convert it again for each 32.
 */


/* Returns the slot of key i of a step, or -1 if it is not attended. */

static __device__ __forceinline__ int32_t
dsa_decode_slot(const dsa_dense_job_t &job, const int32_t *pages,
    uint32_t step, uint32_t i)
{
    int32_t  key;

    key = (int32_t) (step * DSA_DECODE_KEYS + i);

    return step < job.count && key >= job.low && key < job.end
           ? pages[job.first + step] * DSA_DECODE_KEYS + (int32_t) i : -1;
}


static __device__ __forceinline__ int32_t
dsa_decode_first_slot(const dsa_decode_t &a, const dsa_dense_job_t &job,
    const int32_t *pages, uint32_t i)
{
    return dsa_decode_slot(job, pages, 0, i);
}


static __device__ __forceinline__ int
dsa_decode_parted(const dsa_decode_t &a, const dsa_dense_job_t &job)
{
    return 1;
}


static __global__ void
__launch_bounds__(DSA_DECODE_THREADS, 1)
dsa_dense_wide(const __grid_constant__ dsa_dense_t a)
{
    dsa_dense_job_t  job;
    extern __shared__ __align__(1024) uint8_t  dsa_decode_smem[];

    asm volatile ("griddepcontrol.launch_dependents;");

    job = dsa_dense_only(a);

    if (job.count == 0) {
        return;
    }

    dsa_decode_wide_block(a.d, job, dsa_decode_smem);
}


#endif /* _DSA_ATTENTION_DENSE_WIDE_CUH_INCLUDED_ */
