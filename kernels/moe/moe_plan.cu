
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "kernels/core/setup.cuh"
#include "moe.cuh"


#define DSA_PLAN_THREADS     1024
#define DSA_PLAN_WARPS       (DSA_PLAN_THREADS / 32)
#define DSA_PLAN_LOADS       4      /* pairs of a thread in flight */
#define DSA_PLAN_STEP        (DSA_PLAN_LOADS * DSA_PLAN_THREADS)
#define DSA_PLAN_BLOCKS      8      /* a cluster */
#define DSA_PLAN_ROWS        1024   /* rows of a block in masks at a time */


/*
 * The plan is made by a counting sort in one cluster of blocks, each with a
 * part of the rows; few rows are sorted by one block.  A row has an expert at
 * most once, so the rows of an expert are bits of words for 32 rows.  The
 * place of a pair is the sum of three numbers: the first place of its expert,
 * the pairs of the expert in lower blocks and words, and the lower bits of its
 * word.  The result does not depend on the order of the atomic operations.
 */

/* Reads the number at p of block rank of the cluster. */

static __device__ __forceinline__ uint32_t
dsa_plan_peer(const uint32_t *p, uint32_t rank)
{
    uint32_t  v;

    asm volatile ("{\n"
                  ".reg .b32  r;\n"
                  "mapa.shared::cluster.u32 r, %1, %2;\n"
                  "ld.shared::cluster.u32 %0, [r];\n"
                  "}"
                  : "=r"(v) : "r"(dsa_smem(p)), "r"(rank) : "memory");

    return v;
}


/* Loads a thread's next experts, up to end. */

static __device__ __forceinline__ void
dsa_plan_load(uint32_t *id, const int32_t *expert, uint32_t first,
    uint32_t end)
{
    int       j;
    uint32_t  i;

#pragma unroll
    for (j = 0; j < DSA_PLAN_LOADS; j++) {
        i = first + j * DSA_PLAN_THREADS;
        id[j] = i < end ? (uint32_t) expert[i] : UINT32_MAX;
    }
}


/*
 * Counts the pairs of rows first .. last - 1 by experts in total, and sets the
 * masks of the first "words" words of rows, which usually are all rows.
 */

static __device__ __forceinline__ void
dsa_plan_count(uint32_t *total, uint32_t *mask, const int32_t *expert,
    uint32_t first, uint32_t last, uint32_t k, uint32_t experts,
    uint32_t words)
{
    int       j;
    uint32_t  e, i, r, id[DSA_PLAN_LOADS];

    for (i = first * k + threadIdx.x; i < last * k; i += DSA_PLAN_STEP) {
        dsa_plan_load(id, expert, i, last * k);

#pragma unroll
        for (j = 0; j < DSA_PLAN_LOADS; j++) {
            e = id[j];
            r = (i + j * DSA_PLAN_THREADS) / k - first;

            if (e < experts) {
                atomicAdd(&total[e], 1);

                if (r < words * 32) {
                    atomicOr(&mask[r / 32 * experts + e], 1U << r % 32);
                }
            }
        }
    }
}


/* Returns the sum of v over the threads before this one. */

static __device__ __forceinline__ uint32_t
dsa_plan_before(uint32_t v, uint32_t *part, uint32_t lane, uint32_t warp)
{
    uint32_t  i, w, sum;

    sum = v;

#pragma unroll
    for (i = 1; i < 32; i *= 2) {
        w = __shfl_up_sync(0xffffffff, sum, i);
        sum += lane >= i ? w : 0;
    }

    if (lane == 31) {
        part[warp] = sum;
    }

    __syncthreads();

    sum -= v;

#pragma unroll
    for (w = 0; w < DSA_CUDA_EXPERTS / 32; w++) {
        sum += w < warp ? part[w] : 0;
    }

    return sum;
}


/* Sets the masks, n words, of "rows" rows from base on. */

static __device__ __forceinline__ void
dsa_plan_masks(uint32_t *mask, uint32_t n, const int32_t *expert,
    uint32_t base, uint32_t rows, uint32_t k, uint32_t experts)
{
    uint32_t  e, i, r;

    __syncthreads();

    for (i = threadIdx.x; i < n; i += DSA_PLAN_THREADS) {
        mask[i] = 0;
    }

    __syncthreads();

    for (i = threadIdx.x; i < rows * k; i += DSA_PLAN_THREADS) {
        e = (uint32_t) expert[base * k + i];
        r = i / k;

        if (e < experts) {
            atomicOr(&mask[r / 32 * experts + e], 1U << r % 32);
        }
    }

    __syncthreads();
}


/*
 * Stores the places of the pairs of "rows" rows from base on, and the rows of
 * these places.
 */

static __device__ __forceinline__ void
dsa_plan_place(const dsa_moe_plan_t *plan, const int32_t *expert,
    const uint32_t *mask, const uint32_t *below, uint32_t base, uint32_t rows,
    uint32_t k, uint32_t experts)
{
    int       j;
    uint32_t  e, i, r, w, at, id[DSA_PLAN_LOADS];

    for (i = threadIdx.x; i < rows * k; i += DSA_PLAN_STEP) {
        dsa_plan_load(id, expert + base * k, i, rows * k);

#pragma unroll
        for (j = 0; j < DSA_PLAN_LOADS; j++) {
            at = i + j * DSA_PLAN_THREADS;
            e = id[j];
            r = at / k;
            w = r / 32 * experts + e;

            if (e < experts) {
                w = below[w] + __popc(mask[w] & ((1U << r % 32) - 1));
                plan->row[w] = (int32_t) (base + r);

            } else {
                w = UINT32_MAX;
            }

            if (at < rows * k) {
                plan->place[base * k + at] = (int32_t) w;
            }
        }
    }
}


/*
 * Marks the places between an expert's pairs, all[e] from start[e] on, and the
 * aligned start of the next expert.
 */

static __device__ __forceinline__ void
dsa_plan_pad(const dsa_moe_plan_t *plan, const uint32_t *start,
    const uint32_t *all, uint32_t experts)
{
    uint32_t  e, i, r;

    for (i = blockIdx.x * DSA_PLAN_THREADS + threadIdx.x;
         i < experts * plan->align;
         i += gridDim.x * DSA_PLAN_THREADS)
    {
        e = i / plan->align;
        r = all[e] + i % plan->align;

        if (r < ((all[e] + plan->align - 1) & ~(plan->align - 1))) {
            plan->row[start[e] + r] = -1;
        }
    }
}


/*
 * "each" is the number of rows of a block, a multiple of 32; "words" is the
 * number of mask words that shared memory holds at once.
 */

static __global__ void __launch_bounds__(DSA_PLAN_THREADS)
dsa_moe_plan_kernel(dsa_moe_plan_t plan, const int32_t *expert, uint32_t rows,
    uint32_t k, uint32_t experts, uint32_t each, uint32_t words)
{
    uint32_t                    i, n, t, v, w, lane, warp, first, last, base,
                                before, sum, aligned, *mask, *below;
    __shared__ uint32_t         total[DSA_CUDA_EXPERTS];     /* the block's */
    __shared__ uint32_t         start[DSA_CUDA_EXPERTS];
    __shared__ uint32_t         all[DSA_CUDA_EXPERTS];
    __shared__ uint32_t         part[DSA_PLAN_WARPS];
    extern __shared__ uint32_t  dsa_plan_words[];

    mask = dsa_plan_words;                  /* [words, experts] */
    below = mask + words * experts;         /* places before a word's */

    t = threadIdx.x;
    lane = t % 32;
    warp = t / 32;
    n = words * experts;

    first = blockIdx.x * each < rows ? blockIdx.x * each : rows;
    last = first + each < rows ? first + each : rows;

    for (i = t; i < n; i += DSA_PLAN_THREADS) {
        mask[i] = 0;
    }

    if (t < experts) {
        total[t] = 0;
    }

    dsa_begin();
    __syncthreads();

    dsa_plan_count(total, mask, expert, first, last, k, experts, words);

    /* all blocks' counts, and their aligned running sum */

    if (gridDim.x > 1) {
        dsa_cluster_sync();

    } else {
        __syncthreads();
    }

    before = 0;
    sum = 0;

    if (t < experts) {
        for (w = 0; w < gridDim.x; w++) {
            before = w == blockIdx.x ? sum : before;
            sum += dsa_plan_peer(&total[t], w);
        }
    }

    aligned = (sum + plan.align - 1) & ~(plan.align - 1);
    v = dsa_plan_before(aligned, part, lane, warp);

    if (t < experts) {
        start[t] = v;
        all[t] = sum;

        if (blockIdx.x == 0) {
            plan.offset[t] = (int32_t) v;
            plan.count[t] = (int32_t) sum;

            if (t == experts - 1) {
                plan.offset[experts] = (int32_t) (v + aligned);
            }
        }
    }

    v += before;

    for (base = first; base < last; base += words * 32) {
        sum = last - base < words * 32 ? last - base : words * 32;

        if (base > first) {
            dsa_plan_masks(mask, n, expert, base, sum, k, experts);
        }

        if (t < experts) {
#pragma unroll 4
            for (w = 0; w < words; w++) {
                below[w * experts + t] = v;
                v += __popc(mask[w * experts + t]);
            }
        }

        __syncthreads();

        dsa_plan_place(&plan, expert, mask, below, base, sum, k, experts);
    }

    __syncthreads();
    dsa_plan_pad(&plan, start, all, experts);

    /* a block must not exit before all blocks have read its counts */

    if (gridDim.x > 1) {
        dsa_cluster_sync();
    }
}


int
dsa_moe_plan_setup(void)
{
    return dsa_setup_shared(dsa_moe_plan_kernel,
                            DSA_PLAN_ROWS / 32 * DSA_CUDA_EXPERTS * 2
                            * sizeof(uint32_t));
}


extern "C" int
dsa_cuda_moe_plan(const dsa_moe_plan_t *plan, const int32_t *expert,
    uint32_t rows, uint32_t k, uint32_t experts, dsa_stream_t stream)
{
    uint32_t  each, words, blocks;

    if (!dsa_moe_plan_ok(plan, rows, k, experts)) {
        return cudaErrorInvalidValue;
    }

    blocks = rows <= DSA_PLAN_ROWS ? 1 : DSA_PLAN_BLOCKS;
    each = (rows + blocks * 32 - 1) / (blocks * 32) * 32;
    words = (each < DSA_PLAN_ROWS ? each : DSA_PLAN_ROWS) / 32;

    return dsa_launch_cluster(dsa_moe_plan_kernel, blocks, blocks,
                              DSA_PLAN_THREADS,
                              (size_t) words * experts * 2
                              * sizeof(uint32_t),
                              stream, *plan, expert, rows, k, experts, each,
                              words);
}
