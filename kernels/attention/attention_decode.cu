
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "kernels/core/setup.cuh"
#include "attention_decode_narrow.cuh"
#include "attention_decode_wide.cuh"


static __global__ void
__launch_bounds__(DSA_DECODE_THREADS, 1)
dsa_decode_wide(const __grid_constant__ dsa_decode_t a)
{
    dsa_decode_job_t  job;
    extern __shared__ __align__(1024) uint8_t  dsa_decode_smem[];

    asm volatile ("griddepcontrol.launch_dependents;");

    job = dsa_decode_job(a, threadIdx.x / 32 % 8 * 8 + threadIdx.x % 8);

    if (dsa_decode_idle(a, job, 64)) {
        return;
    }

    dsa_decode_wide_block(a, job, dsa_decode_smem);
}


/*
 * Combines the parts of a row, for one head: the weight of a part is 2^(lse -
 * log2 of the sum of all 2^lse).  The kernel is launched while the last blocks
 * of the parts still run, and waits for them.
 */

static __global__ void
__launch_bounds__(128)
dsa_decode_combine(const __grid_constant__ dsa_decode_t a)
{
    float           v, w, max, sum;
    float4          o, x[16];
    uint32_t        i, s, row, head, lane;
    uint64_t        at;
    const float    *p;

    asm volatile ("griddepcontrol.wait;" ::: "memory");

    w = 0;
    lane = threadIdx.x % 32;
    row = blockIdx.x / a.heads;
    head = blockIdx.x % a.heads;
    at = (uint64_t) row * a.splits * a.heads + head;

    p = a.part + at * DSA_CUDA_LATENT + threadIdx.x * 4;
    o = make_float4(0, 0, 0, 0);

    /* load the first parts before their weights are computed */

    for (s = 0; s < a.splits; s += 16) {
#pragma unroll
        for (i = 0; i < 16; i++) {
            if (s + i < a.splits) {
                x[i] = *(const float4 *) (p + (uint64_t) (s + i) * a.heads
                                              * DSA_CUDA_LATENT);
            }
        }

        if (s == 0) {
            v = lane < a.splits ? a.lse[at + lane * a.heads]
                                : __uint_as_float(0xff800000);
            max = fmaxf(dsa_warp_max(v), DSA_DECODE_NONE);
            w = exp2f(v - max);
            sum = dsa_warp_sum(w);
            w = sum > 0 ? w / sum : 0;
        }

#pragma unroll
        for (i = 0; i < 16; i++) {
            v = __shfl_sync(0xffffffff, w, (s + i) & 31);

            if (s + i < a.splits && v > 0) {
                o.x += v * x[i].x;
                o.y += v * x[i].y;
                o.z += v * x[i].z;
                o.w += v * x[i].w;
            }
        }
    }

    *(uint2 *) (a.out + (uint64_t) blockIdx.x * DSA_CUDA_LATENT * 2
                + threadIdx.x * 8) =
        make_uint2(dsa_decode_pack(o.x, o.y), dsa_decode_pack(o.z, o.w));
}


/*
 * Returns the number of parts that each row is split into, which minimizes the
 * time in units of 1/32 of a step of 64 keys.  Starting a block of threads
 * takes about 3 steps, and so does combining, which takes a unit more for each
 * part, because its sums are stored and loaded again.  With 1,024 and 2,048
 * keys and 1 .. 256 rows, the choice took at most 1.05 times as long on an H200
 * as the best one with 64 and 128 heads, and 1.11 times with 16.
 */

static uint32_t
dsa_decode_splits(uint32_t blocks, uint32_t max_slots, uint32_t processors)
{
    uint32_t  n, best, cost, least, steps;

    steps = (max_slots + DSA_DECODE_KEYS - 1) / DSA_DECODE_KEYS;
    best = 1;
    least = (blocks + processors - 1) / processors * (steps + 3)
            * DSA_DECODE_UNITS;

    for (n = 2; n <= DSA_DECODE_SPLITS && n <= steps; n++) {
        if ((uint64_t) blocks * n > DSA_DECODE_WAVES * processors) {
            break;
        }

        cost = ((blocks * n + processors - 1) / processors
                * ((steps + n - 1) / n + 3) + 3) * DSA_DECODE_UNITS
               + blocks * n;

        if (cost <= least) {
            least = cost;
            best = n;
        }
    }

    return best;
}


/* The workspace holds one part for each block of threads, and its lse. */

extern "C" size_t
dsa_cuda_attention_work(const dsa_cuda_state_t *state, uint32_t rows,
    uint32_t heads, uint32_t max_slots)
{
    return (size_t) state->processors * DSA_DECODE_WAVES
           * (heads < 64 ? heads : 64) * (DSA_CUDA_LATENT + 1)
           * sizeof(float);
}


/* Returns the bytes of dynamic shared memory with N heads in a block. */

template <int N>
static constexpr size_t
dsa_decode_shared(void)
{
    if constexpr (N == 64) {
        return DSA_DECODE_WIDE_SHARED;

    } else {
        return 2 * DSA_DECODE_BUFFER + (DSA_DECODE_PANELS + 2) * N * 128
               + (N == 32 ? 0 : DSA_DECODE_KEYS * DSA_DECODE_RAW)
               + sizeof(dsa_decode_narrow_t<N>);
    }
}


int
dsa_attention_decode_setup(void)
{
    int  rc;

    rc = dsa_setup_shared(dsa_decode_wide, dsa_decode_shared<64>());
    rc = rc != 0 ? rc : dsa_setup_shared(dsa_decode_narrow<32>,
                                         dsa_decode_shared<32>());
    rc = rc != 0 ? rc : dsa_setup_shared(dsa_decode_narrow<16>,
                                         dsa_decode_shared<16>());

    return rc != 0 ? rc : dsa_setup_shared(dsa_decode_narrow<8>,
                                           dsa_decode_shared<8>());
}


template <int N>
static int
dsa_decode_launch(dsa_decode_t *a, uint32_t rows, cudaStream_t stream)
{
    int                   rc;
    cudaLaunchConfig_t    config = {};
    cudaLaunchAttribute   attr = {};

    config.gridDim = dim3(rows * a->groups * a->splits, 1, 1);
    config.blockDim = dim3(DSA_DECODE_THREADS, 1, 1);
    config.dynamicSmemBytes = dsa_decode_shared<N>();
    config.stream = stream;

    if constexpr (N == 64) {
        rc = cudaLaunchKernelEx(&config, dsa_decode_wide, *a);
    } else {
        rc = cudaLaunchKernelEx(&config, dsa_decode_narrow<N>, *a);
    }

    if (rc != cudaSuccess || a->splits == 1) {
        return rc;
    }

    attr.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attr.val.programmaticStreamSerializationAllowed = 1;

    config.gridDim = dim3(rows * a->heads, 1, 1);
    config.blockDim = dim3(128, 1, 1);
    config.dynamicSmemBytes = 0;
    config.attrs = &attr;
    config.numAttrs = 1;

    return cudaLaunchKernelEx(&config, dsa_decode_combine, *a);
}


extern "C" int
dsa_cuda_attention_decode(const dsa_cuda_state_t *state, dsa_bf16_t *out,
    const dsa_bf16_t *q, const dsa_cuda_cache_t *cache, const int32_t *slot,
    size_t ld_slot, const int32_t *n_slot, uint32_t rows, uint32_t heads,
    uint32_t max_slots, float scale, void *work, dsa_stream_t stream)
{
    uint32_t      blocks;
    dsa_decode_t  a;

    if (heads < 1 || heads > 128 || !(scale > 0)
        || cache->page > UINT32_MAX || cache->pages > INT32_MAX / 64
        || rows > INT32_MAX / 2 || max_slots > INT32_MAX
        || max_slots > ld_slot || (uintptr_t) work % 16 != 0)
    {
        return cudaErrorInvalidValue;
    }

    if (rows == 0) {
        return cudaSuccess;
    }

    a.out = (uint8_t *) out;
    a.q = (const uint8_t *) q;
    a.base = cache->base;
    a.slot = slot;
    a.n_slot = n_slot;
    a.ld_slot = ld_slot;
    a.page = (uint32_t) cache->page;
    a.slots = cache->pages * DSA_DECODE_KEYS;
    a.max_slots = max_slots;
    a.heads = heads;
    a.scale = scale * 1.4426950408889634f / DSA_DECODE_QUERY;
    a.groups = heads > 64 ? 2 : 1;

    blocks = rows * a.groups;
    a.splits = dsa_decode_splits(blocks, max_slots, state->processors);
    a.part = (float *) work;
    a.lse = a.part + (size_t) rows * a.splits * heads * DSA_CUDA_LATENT;

    return heads > 32 ? dsa_decode_launch<64>(&a, rows, stream)
           : heads > 16 ? dsa_decode_launch<32>(&a, rows, stream)
           : heads > 8 ? dsa_decode_launch<16>(&a, rows, stream)
           : dsa_decode_launch<8>(&a, rows, stream);
}
