
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ATTENTION_DENSE_BF16_CUH_INCLUDED_
#define _DSA_ATTENTION_DENSE_BF16_CUH_INCLUDED_


#include "attention_dense.cuh"
#include "attention_decode_wide.cuh"


/*
 * Dense decode over BF16 latents.  The 64 rows of its products are queries.  A
 * page has the layout of a key buffer but for the swizzle, so TMA copies it;
 * there are two buffers.
 *
 * A multiprocessor has one block, or with more than 64 heads two of them have a
 * pair, and a block computes one part after another: the pages of the next part
 * are copied while the sums of one are stored, and its queries stay in shared
 * memory while the parts are those of one row.
 *
 * Two warpgroups each have the sums of one half of the columns, because all
 * of them would need 256 registers a thread.  They compute the scores and the
 * weights of alternate steps: warpgroup 0 of steps 0, 2 and so on of a part.
 * Each passes its weights on in shared memory, and both add the weighted values
 * of each step to their sums, in the order of the steps.  While one warpgroup
 * computes weights, the tensor cores compute scores or values for the other
 * one.  A step takes them 2176 cycles, as in wide sparse decode.
 *
 * There is one buffer for weights.  The warpgroup that stores weights is the
 * one that has read those of the step before.
 *
 * A page can be copied only when both warpgroups have read the page of two
 * steps before, and warpgroup 1 waits 1300 to 1700 cycles for it.  So scores
 * begin when the first of the 9 panels has arrived, and the first 4 panels are
 * released apart from the others: they are last read by warpgroup 0, and the
 * others by warpgroup 1, because the scores of a step are complete before its
 * weights are.
 */

#define DSA_DENSE_QUERIES   64
#define DSA_DENSE_THREADS   384
#define DSA_DENSE_LOADER    256         /* its first thread */
#define DSA_DENSE_FIRST     4           /* panels of the first half */


typedef struct {
    uint64_t         full[2][DSA_DECODE_PANELS];
                                        /* [buffer][panel] */
    uint64_t         empty[2][2];       /* [buffer][half] */
    uint32_t         parts[DSA_DENSE_THREADS / 32];
                                        /* of the rows of a warp */
    uint32_t         row;               /* of the block's first part */
    uint32_t         split;
    float            factor[2][64];     /* of the warpgroup that made the
                                           weights, as below */
    float            max[2][64];
    float            sum[2][64];
} dsa_dense_shared_t;


/* Named barriers: weights of warpgroup 0, and of warpgroup 1. */

enum {
    DSA_BAR_WEIGHTS = DSA_BAR_FREE + 1
};


/* The state of a thread of a warpgroup; each thread has two queries. */

typedef struct {
    uint32_t         q;
    uint32_t         keys;
    uint32_t         probs;
    uint32_t         step;              /* steps of the parts before */
    uint32_t         group;             /* warpgroup */
    uint32_t         warp;              /* of the warpgroup */
    uint32_t         lane;
    uint32_t         row;               /* the first query; the other is row
                                           + 8 */
    float            scale;
    float            slack;
    float            m[2];
    float            l[2];              /* of the warpgroup's own steps */
    int32_t          low;               /* the queries attend to positions */
    int32_t          limit[2];          /* low .. limit-1 of the part */
} dsa_dense_thread_t;


#define DSA_DENSE_R64                                                         \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, "  \
    "%78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, "  \
    "%92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, "  \
    "%105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, "      \
    "%116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

#define DSA_DENSE_MMA_VALUES(a, last, ...)                                    \
    asm volatile ("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16"     \
                  " {" DSA_R64 ", " DSA_DENSE_R64 "}, " a ", " last ";"       \
                  : DSA_D16(d, 0), DSA_D16(d, 16), DSA_D16(d, 32),            \
                    DSA_D16(d, 48), DSA_D16(d, 64), DSA_D16(d, 80),           \
                    DSA_D16(d, 96), DSA_D16(d, 112)                           \
                  : __VA_ARGS__)


/*
 * Starts adding the weighted values of a half buffer to o: weights p in
 * registers, or at dp in shared memory if p is NULL.
 */

template <int SHARED>
static __device__ __forceinline__ void
dsa_dense_values(float *d, const uint32_t *p, uint64_t dp, uint64_t dv)
{
    uint32_t  k;

    dsa_wgmma_fence();

#pragma unroll
    for (k = 0; k < 4; k++) {
        if constexpr (SHARED) {
            DSA_DENSE_MMA_VALUES("%128", "%129, 1, 1, 1, 0, 1",
                                 "l"(dp + k * 2), "l"(dv + k * (2048 / 16)));
        } else {
            DSA_DENSE_MMA_VALUES("{%128, %129, %130, %131}",
                                 "%132, 1, 1, 1, 1",
                                 "r"(p[k * 4]), "r"(p[k * 4 + 1]),
                                 "r"(p[k * 4 + 2]), "r"(p[k * 4 + 3]),
                                 "l"(dv + k * (2048 / 16)));
        }
    }

    dsa_wgmma_commit();
}


/* Starts computing the scores s of step i, panel by panel as they arrive. */

static __device__ __forceinline__ void
dsa_dense_scores(float *s, const dsa_dense_thread_t *t,
    dsa_dense_shared_t *share, uint32_t i)
{
    uint32_t  b, j, k, parity;
    uint64_t  dq, dk;

    b = (t->step + i) & 1;
    parity = (t->step + i) >> 1 & 1;

    dq = dsa_wgmma_desc(t->q, 1, 16, 1024);
    dk = dsa_wgmma_desc(t->keys + b * DSA_DECODE_BUFFER, 1, 16, 1024);

    /* Without this the compiler keeps the sums below in registers. */

    asm volatile ("" : "+l"(dq), "+l"(dk));

    dsa_wgmma_fence();

#pragma unroll
    for (k = 0; k < DSA_DECODE_WIDTH / 16; k++) {
        j = k / 4 * (DSA_DECODE_PANEL / 16) + k % 4 * 2;

        if (k % 4 == 0) {
            dsa_mbar_wait(&share->full[b][k / 4], parity);
        }

        dsa_decode_mma<64, 0, 0>(s, dq + j, dk + j, k > 0);
    }

    dsa_wgmma_commit();
}


/* Hides the keys of step i that a thread's queries do not attend to. */

static __device__ __forceinline__ void
dsa_dense_hide(const dsa_dense_thread_t *t, float *s, uint32_t i)
{
    int32_t   key, first;
    uint32_t  j;

    first = (int32_t) (i * DSA_DECODE_KEYS);

    if (t->low <= first && t->limit[0] >= first + DSA_DECODE_KEYS
        && t->limit[1] >= first + DSA_DECODE_KEYS)
    {
        return;
    }

#pragma unroll
    for (j = 0; j < 32; j++) {
        key = first + (int32_t) (j / 4 * 8 + t->lane % 4 * 2 + j % 2);

        if (key < t->low || key >= t->limit[j / 2 % 2]) {
            s[j] = __uint_as_float(0xff800000);
        }
    }
}


static __device__ __forceinline__ void
dsa_dense_rescale(float *o, const float *f)
{
    uint32_t  j;

    if (__any_sync(0xffffffff, f[0] != 1 || f[1] != 1)) {
#pragma unroll
        for (j = 0; j < 128; j++) {
            o[j] *= f[j >> 1 & 1];
        }
    }
}


/* Makes the weights p of step i of its scores. */

static __device__ __forceinline__ void
dsa_dense_softmax(dsa_dense_thread_t *t, uint32_t *p, float *f, float *s,
    uint32_t i)
{
    uint32_t  j;

#pragma unroll
    for (j = 0; j < 32; j++) {
        asm volatile ("" : "+f"(s[j]) :: "memory");
    }

    dsa_dense_hide(t, s, i);
    dsa_decode_wide_softmax<0>(p, f, s, t->m, t->l, t->scale, t->slack);
}


/* Passes the weights of the warpgroup's step on to the other warpgroup. */

static __device__ __forceinline__ void
dsa_dense_pass(const dsa_dense_thread_t *t, const uint32_t *p, const float *f,
    dsa_dense_shared_t *share)
{
    uint32_t  j, to;

    /* all warps have read the weights before */

    dsa_bar_sync(DSA_BAR_GROUP + t->group, 128);

    /* chunks of 8 keys; rows whose distance is 8 have the same swizzle */

#pragma unroll
    for (j = 0; j < 8; j++) {
        to = t->probs + t->row * 128 + ((j ^ (t->row & 7)) << 4)
             + t->lane % 4 * 4;
        dsa_decode_store4(to, p[j * 2]);
        dsa_decode_store4(to + 1024, p[j * 2 + 1]);
    }

    if (t->lane % 4 == 0) {
        share->factor[t->group][t->row] = f[0];
        share->factor[t->group][t->row + 8] = f[1];
        share->max[t->group][t->row] = t->m[0];
        share->max[t->group][t->row + 8] = t->m[1];
    }

    dsa_fence_async();
    dsa_bar_arrive(DSA_BAR_WEIGHTS + t->group, 256);
}


/*
 * Waits for the weights of a step of the other warpgroup, and rescales the sums
 * for them.  The other one has waited for all panels of the step.
 */

static __device__ __forceinline__ void
dsa_dense_receive(dsa_dense_thread_t *t, float *o, dsa_dense_shared_t *share)
{
    float     f[2];
    uint32_t  k, other;

    other = 1 - t->group;

    dsa_bar_sync(DSA_BAR_WEIGHTS + other, 256);

#pragma unroll
    for (k = 0; k < 2; k++) {
        f[k] = *(volatile float *) &share->factor[other][t->row + k * 8];
        t->m[k] = *(volatile float *) &share->max[other][t->row + k * 8];
        t->l[k] *= f[k];
    }

    dsa_dense_rescale(o, f);
}


/*
 * Waits for the sums, and releases the half of the buffer of step i, which
 * both blocks of a pair fill.
 */

template <int PAIR>
static __device__ __forceinline__ void
dsa_dense_release(const dsa_dense_thread_t *t, float *o,
    dsa_dense_shared_t *share, uint32_t i)
{
    uint32_t   j;
    uint64_t  *empty;

    dsa_wgmma_wait<0>();

#pragma unroll
    for (j = 0; j < 128; j++) {
        asm volatile ("" : "+f"(o[j]) :: "memory");
    }

    empty = &share->empty[(t->step + i) & 1][t->group];

    if constexpr (PAIR) {
        if (t->lane < 2) {
            dsa_mbar_arrive_cluster(empty, t->lane);
        }

    } else if (t->lane == 0) {
        dsa_mbar_arrive(empty);
    }
}


/* Returns what the buffer of step i adds to a descriptor. */

static __device__ __forceinline__ uint64_t
dsa_dense_buffer(const dsa_dense_thread_t *t, uint32_t i)
{
    return ((t->step + i) & 1) * (DSA_DECODE_BUFFER / 16);
}


/* Warpgroup 0: makes the weights of every second step from 0 on. */

template <int PAIR>
static __device__ __forceinline__ void
dsa_dense_first(dsa_dense_thread_t *t, uint32_t count, float *o,
    dsa_dense_shared_t *share)
{
    float     s[32], f[2];
    uint32_t  i, p[16];
    uint64_t  dp, dv;

    dp = dsa_wgmma_desc(t->probs, 1, 16, 1024);
    dv = dsa_wgmma_desc(t->keys, 1, DSA_DECODE_PANEL, 1024);

#pragma unroll 1
    for (i = 0; i < count; i += 2) {
        asm volatile ("" : "+l"(dp), "+l"(dv));

        dsa_dense_scores(s, t, share, i);
        dsa_wgmma_wait<0>();
        dsa_dense_softmax(t, p, f, s, i);
        dsa_dense_pass(t, p, f, share);
        dsa_dense_rescale(o, f);
        dsa_dense_values<0>(o, p, dp, dv + dsa_dense_buffer(t, i));
        dsa_dense_release<PAIR>(t, o, share, i);

        if (i + 1 < count) {
            dsa_dense_receive(t, o, share);
            dsa_dense_values<1>(o, NULL, dp, dv + dsa_dense_buffer(t, i + 1));
            dsa_dense_release<PAIR>(t, o, share, i + 1);
        }
    }
}


/* Warpgroup 1: makes those of the others. */

template <int PAIR>
static __device__ __forceinline__ void
dsa_dense_second(dsa_dense_thread_t *t, uint32_t count, float *o,
    dsa_dense_shared_t *share)
{
    float     s[32], f[2];
    uint32_t  i, p[16];
    uint64_t  dp, dv;

    dp = dsa_wgmma_desc(t->probs, 1, 16, 1024);
    dv = dsa_wgmma_desc(t->keys + DSA_DENSE_FIRST * DSA_DECODE_PANEL, 1,
                        DSA_DECODE_PANEL, 1024);

#pragma unroll 1
    for (i = 0; i + 1 < count; i += 2) {
        asm volatile ("" : "+l"(dp), "+l"(dv));

        dsa_dense_scores(s, t, share, i + 1);
        dsa_dense_receive(t, o, share);
        dsa_dense_values<1>(o, NULL, dp, dv + dsa_dense_buffer(t, i));
        dsa_wgmma_wait<1>();
        dsa_dense_softmax(t, p, f, s, i + 1);
        dsa_dense_release<PAIR>(t, o, share, i);

        dsa_dense_pass(t, p, f, share);
        dsa_dense_rescale(o, f);
        dsa_dense_values<0>(o, p, dp, dv + dsa_dense_buffer(t, i + 1));
        dsa_dense_release<PAIR>(t, o, share, i + 1);
    }

    if (i < count) {
        dsa_dense_receive(t, o, share);
        dsa_dense_values<1>(o, NULL, dp, dv + dsa_dense_buffer(t, i));
        dsa_dense_release<PAIR>(t, o, share, i);
    }
}


/*
 * Sets sum to the sums of the weights of both warpgroups, and stores
 * logarithms.
 */

static __device__ __forceinline__ void
dsa_dense_sums(const dsa_decode_t &a, const dsa_dense_job_t &job,
    const dsa_dense_thread_t *t, float *sum, dsa_dense_shared_t *share)
{
    float     v;
    uint32_t  k, query;

#pragma unroll
    for (k = 0; k < 2; k++) {
        v = t->l[k];
        v += __shfl_xor_sync(0xffffffff, v, 1);
        v += __shfl_xor_sync(0xffffffff, v, 2);

        if (t->lane % 4 == 0) {
            share->sum[t->group][t->row + k * 8] = v;
        }
    }

    dsa_bar_sync(DSA_BAR_BOTH, 256);

#pragma unroll
    for (k = 0; k < 2; k++) {
        query = job.group * DSA_DENSE_QUERIES + t->row + k * 8;
        sum[k] = *(volatile float *) &share->sum[0][t->row + k * 8]
                 + *(volatile float *) &share->sum[1][t->row + k * 8];

        if (t->group == 0 && t->lane % 4 == 0 && query < job.queries) {
            a.lse[dsa_dense_at(a, job, query)] =
                sum[k] > 0 ? t->m[k] * a.scale + log2f(sum[k])
                           : __uint_as_float(0xff800000);
        }
    }

    /* the next part's sums must not overwrite those that are being read */

    dsa_bar_sync(DSA_BAR_BOTH, 256);
}


/*
 * Stores a warp's 16 queries and a warpgroup's 256 columns.  A thread has
 * columns 2 t, 2 t + 1, 2 t + 8 and 2 t + 9 of 16, t = lane % 4, and stores
 * them together at 4 t, because words of 8 bytes would need twice as many
 * stores.  dsa_dense_combine() puts them in order.
 */

static __device__ __forceinline__ void
dsa_dense_store(const dsa_decode_t &a, const dsa_dense_job_t &job,
    const dsa_dense_thread_t *t, const float *o, const float *sum)
{
    float     inv, *part;
    uint32_t  j, k, query;

#pragma unroll
    for (k = 0; k < 2; k++) {
        query = job.group * DSA_DENSE_QUERIES + t->row + k * 8;

        if (query >= job.queries) {
            continue;
        }

        inv = sum[k] > 0 ? 1 / sum[k] : 0;
        part = a.part + dsa_dense_at(a, job, query) * DSA_CUDA_LATENT
               + t->group * 256 + t->lane % 4 * 4;

#pragma unroll
        for (j = 0; j < 32; j += 2) {
            *(float4 *) (part + j * 8) =
                make_float4(o[j * 4 + k * 2] * inv,
                            o[j * 4 + k * 2 + 1] * inv,
                            o[j * 4 + k * 2 + 4] * inv,
                            o[j * 4 + k * 2 + 5] * inv);
        }
    }
}


/*
 * Copies latents, in one warp: a page for each step, of which each of the first
 * lanes copies a panel.  The blocks of a pair need the same pages; each copies
 * every second panel to both.  step: steps of the parts before.
 */

template <int PAIR>
static __device__ __forceinline__ void
dsa_dense_load(const dsa_decode_t &a, const dsa_dense_job_t &job,
    const CUtensorMap *map, uint8_t *keys, dsa_dense_shared_t *share,
    uint32_t step)
{
    int32_t         page;
    uint8_t        *to;
    uint32_t        b, i, half, lane;
    const int32_t  *pages;

    lane = threadIdx.x % 32;
    pages = a.slot + job.row * a.ld_slot + job.first;

    for (i = 0; i < job.count; i++) {
        b = (step + i) & 1;
        page = pages[i];
        to = keys + b * DSA_DECODE_BUFFER + lane * DSA_DECODE_PANEL;

        for (half = 0; half < 2; half++) {
            dsa_mbar_wait(&share->empty[b][half], ((step + i) >> 1 & 1) ^ 1);

            if (lane >= DSA_DECODE_PANELS || (lane >= DSA_DENSE_FIRST) != half)
            {
                continue;
            }

            dsa_mbar_arrive_expect(&share->full[b][lane], DSA_DECODE_PANEL);

            if constexpr (PAIR) {
                if (((lane + i) & 1) == job.group) {
                    dsa_tma_load_3d_cluster(to, map, &share->full[b][lane],
                                            (int32_t) lane * 64, 0, page, 3);
                }

            } else {
                dsa_tma_load_3d(to, map, &share->full[b][lane],
                                (int32_t) lane * 64, 0, page);
            }
        }

        __syncwarp();
    }
}


/*
 * Initializes the barriers, in one thread: the last one, which is the last one
 * to have rows in dsa_dense_range().
 */

template <int PAIR>
static __device__ __forceinline__ void
dsa_dense_init(dsa_dense_shared_t *share)
{
    uint32_t  b, i;

    if (threadIdx.x != DSA_DENSE_THREADS - 1) {
        return;
    }

    for (b = 0; b < 2; b++) {
        for (i = 0; i < DSA_DECODE_PANELS; i++) {
            dsa_mbar_init(&share->full[b][i], 1);
        }

        for (i = 0; i < 2; i++) {
            dsa_mbar_init(&share->empty[b][i], PAIR ? 8 : 4);
        }
    }

    dsa_mbar_fence_init();
}


/*
 * Returns the number of parts that blocks compute for a row: 0 if its queries
 * are computed with those of an earlier row, and no block is left for it.
 */

static __device__ __forceinline__ uint32_t
dsa_dense_row_parts(const dsa_dense_t &a, uint32_t row)
{
    dsa_dense_job_t  job;

    job = dsa_dense_job(a, row, 0, 0);

    return job.count == 0 ? 0 : dsa_dense_parts(job.n, a.d.heads);
}


/*
 * Sets share->row and share->split to the first part of a block or pair, and
 * returns how many it has: the parts of all rows, in their order, are cut into
 * ranges whose sizes differ by 1 at most.  The parts fit 256 MB, or are those
 * of one row with less than 2^31 keys, so that their number times that of the
 * multiprocessors fits 32 bits.
 */

static __device__ __forceinline__ uint32_t
dsa_dense_range(const dsa_dense_t &a, dsa_dense_shared_t *share)
{
    uint32_t  i, n, end, row, sum, before, total, first, blocks, block;

    n = (a.rows + DSA_DENSE_THREADS - 1) / DSA_DENSE_THREADS;
    row = threadIdx.x * n;
    end = min(row + n, a.rows);
    sum = 0;

    for (i = row; i < end; i++) {
        sum += dsa_dense_row_parts(a, i);
    }

    before = sum;

#pragma unroll
    for (i = 1; i < 32; i <<= 1) {
        n = __shfl_up_sync(0xffffffff, before, i);
        before += threadIdx.x % 32 >= i ? n : 0;
    }

    if (threadIdx.x % 32 == 31) {
        share->parts[threadIdx.x / 32] = before;
    }

    __syncthreads();

    before -= sum;
    total = 0;

#pragma unroll
    for (i = 0; i < DSA_DENSE_THREADS / 32; i++) {
        before += i < threadIdx.x / 32 ? share->parts[i] : 0;
        total += share->parts[i];
    }

    blocks = gridDim.x / a.d.groups;
    block = blockIdx.x / a.d.groups;
    first = total * block / blocks;
    n = total * (block + 1) / blocks - first;

    if (first >= before && first < before + sum) {
        for (i = row; /* void */ ; i++) {
            sum = dsa_dense_row_parts(a, i);

            if (first < before + sum) {
                break;
            }

            before += sum;
        }

        share->row = i;
        share->split = first - before;
    }

    __syncthreads();

    return n;
}


/* Finds the part after a block's last one; there is one. */

static __device__ __forceinline__ dsa_dense_job_t
dsa_dense_next(const dsa_dense_t &a, const dsa_dense_job_t &last,
    uint32_t group)
{
    int32_t          keys;
    dsa_dense_job_t  job;

    job = last;

    if (job.rest != 0) {
        keys = (int32_t) (job.size * DSA_DECODE_KEYS);

        job.split++;
        job.first += job.size;
        job.count = min(job.size, job.rest);
        job.rest -= job.count;
        job.low -= keys;
        job.limit -= keys;
        job.end -= keys;

        return job;
    }

    do {
        job = dsa_dense_job(a, job.own + 1, 0, group);
    } while (job.count == 0);

    return job;
}


/* Sets what a thread's queries attend to in a part. */

static __device__ __forceinline__ void
dsa_dense_begin(dsa_dense_thread_t *t, const dsa_dense_t &a,
    const dsa_dense_job_t &job, float *o)
{
    int32_t   limit;
    uint32_t  i;

    t->low = job.low;

#pragma unroll
    for (i = 0; i < 2; i++) {
        t->m[i] = DSA_DECODE_NONE;
        t->l[i] = 0;
        limit = job.limit + (int32_t) ((job.group * DSA_DENSE_QUERIES + t->row
                                        + i * 8) / a.d.heads);
        t->limit[i] = min(limit, job.end);
    }

#pragma unroll
    for (i = 0; i < 128; i++) {
        o[i] = 0;
    }
}


/* The two warpgroups compute n parts, of which job is the first. */

template <int PAIR>
static __device__ __forceinline__ void
dsa_dense_compute(const dsa_dense_t &a, dsa_dense_job_t job, uint32_t n,
    uint8_t *smem, dsa_dense_shared_t *share)
{
    float               o[128], sum[2];
    uint32_t            own, group;
    dsa_dense_thread_t  t;

    t.q = dsa_smem(smem);
    t.keys = t.q + DSA_DECODE_BUFFER;
    t.probs = t.keys + 2 * DSA_DECODE_BUFFER;
    t.step = 0;
    t.group = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
    t.warp = threadIdx.x / 32 % 4;
    t.lane = threadIdx.x % 32;
    t.row = t.warp * 16 + t.lane / 4;
    t.scale = a.d.scale;
    t.slack = DSA_DECODE_SLACK / a.d.scale;

    group = blockIdx.x % a.d.groups;
    own = job.own + 1;

    for ( ;; ) {
        if (own != job.own) {
            own = job.own;
            dsa_decode_query<64, 0>(a.d, job.row,
                                    job.group * DSA_DENSE_QUERIES,
                                    job.queries, t.q, threadIdx.x);
        }

        dsa_dense_begin(&t, a, job, o);

        if (t.group == 0) {
            dsa_dense_first<PAIR>(&t, job.count, o, share);
        } else {
            dsa_dense_second<PAIR>(&t, job.count, o, share);
        }

        t.step += job.count;

        dsa_dense_sums(a.d, job, &t, sum, share);
        dsa_dense_store(a.d, job, &t, o, sum);

        if (--n == 0) {
            break;
        }

        job = dsa_dense_next(a, job, group);
    }
}


/* PAIR 1: a cluster of two blocks has the two groups of more than 64 heads. */

template <int PAIR>
static __global__ void
__launch_bounds__(DSA_DENSE_THREADS, 1)
dsa_dense_bf16(const __grid_constant__ CUtensorMap map,
    const __grid_constant__ dsa_dense_t a)
{
    uint32_t             n, step, group;
    dsa_dense_job_t      job;
    dsa_dense_shared_t  *share;
    extern __shared__ __align__(1024) uint8_t  dsa_decode_smem[];

    share = (dsa_dense_shared_t *) (dsa_decode_smem + 3 * DSA_DECODE_BUFFER
                                    + DSA_DENSE_QUERIES * 128);

    dsa_dense_init<PAIR>(share);

    n = dsa_dense_range(a, share);

    if (n == 0) {
        return;
    }

    if constexpr (PAIR) {
        dsa_cluster_sync();
    }

    group = blockIdx.x % a.d.groups;
    job = dsa_dense_job(a, share->row, share->split, group);

    if (threadIdx.x >= DSA_DENSE_LOADER) {
        dsa_regs_less<40>();

        if (threadIdx.x < DSA_DENSE_LOADER + 32) {
            step = 0;

            for ( ;; ) {
                dsa_dense_load<PAIR>(a.d, job, &map,
                                     dsa_decode_smem + DSA_DECODE_BUFFER,
                                     share, step);
                step += job.count;

                if (--n == 0) {
                    break;
                }

                job = dsa_dense_next(a, job, group);
            }
        }

    } else {
        dsa_regs_more<232>();
        dsa_dense_compute<PAIR>(a, job, n, dsa_decode_smem, share);
    }

    /*
     * Not before: all blocks run at once, and those of the combining kernel
     * would wait on the multiprocessors that are done first.
     */

    asm volatile ("griddepcontrol.launch_dependents;");

    /* until then the other block copies here and arrives at barriers */

    if constexpr (PAIR) {
        dsa_cluster_sync();
    }
}


#endif /* _DSA_ATTENTION_DENSE_BF16_CUH_INCLUDED_ */
