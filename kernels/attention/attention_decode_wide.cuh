
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ATTENTION_DECODE_WIDE_CUH_INCLUDED_
#define _DSA_ATTENTION_DECODE_WIDE_CUH_INCLUDED_


#include "attention_decode.cuh"


/*
 * The functions that depend on the job are templates over its type, which is
 * that of sparse decode or of dense decode (attention_dense_wide.cuh).
 */

#define DSA_DECODE_WIDE_SHARED                                                \
    (3 * DSA_DECODE_BUFFER + 64 * 128 + sizeof(dsa_decode_wide_t))


/* Computes the scores s of 64 heads and the 64 keys of a step. */

static __device__ __forceinline__ void
dsa_decode_wide_products(float *s, uint64_t dq, uint64_t dk)
{
    uint32_t  j, k;

    dsa_wgmma_fence();

#pragma unroll
    for (k = 0; k < DSA_DECODE_WIDTH / 16; k++) {
        j = k / 4 * (DSA_DECODE_PANEL / 16) + k % 4 * 2;

        if (k < DSA_CUDA_LATENT / 16) {
            dsa_decode_mma<64, 1, 0>(s, dq + j, dk + j, k > 0);
        } else {
            dsa_decode_mma<64, 0, 0>(s, dq + j, dk + j, 1);
        }
    }

    dsa_wgmma_commit();
    dsa_wgmma_wait<0>();
}


/* Sets the scores of keys without a bit in valid to minus infinity. */

static __device__ __forceinline__ void
dsa_decode_wide_mask(float *s, uint64_t valid, uint32_t lane)
{
    uint32_t  j, bits;

    if (valid == ~0ull) {
        return;
    }

#pragma unroll
    for (j = 0; j < 8; j++) {
        bits = (uint32_t) (valid >> (j * 8 + lane % 4 * 2));

        if ((bits & 1) == 0) {
            s[j * 4] = s[j * 4 + 2] = __uint_as_float(0xff800000);
        }

        if ((bits & 2) == 0) {
            s[j * 4 + 1] = s[j * 4 + 3] = __uint_as_float(0xff800000);
        }
    }
}


/*
 * Makes weights p of the scores of the thread's two heads.  m and l are the
 * heads' references and sums of weights; f are the factors by which the sums
 * so far have to be multiplied, because references were raised.  F16: weights
 * are f16; otherwise bf16, as for BF16 latents.
 */

template <int F16>
static __device__ __forceinline__ void
dsa_decode_wide_softmax(uint32_t *p, float *f, float *s, float *m, float *l,
    float scale, float slack)
{
    float     v, mc[2];
    uint32_t  j, k;

#pragma unroll
    for (k = 0; k < 2; k++) {
        v = s[k * 2];

#pragma unroll
        for (j = 0; j < 8; j++) {
            v = fmaxf(v, fmaxf(s[j * 4 + k * 2], s[j * 4 + k * 2 + 1]));
        }

        v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, 1));
        v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, 2));

        f[k] = 1;

        if (v > m[k] + slack) {
            f[k] = dsa_decode_exp2((m[k] - v) * scale);
            m[k] = v;
        }

        mc[k] = m[k] * scale;
        l[k] *= f[k];
    }

#pragma unroll
    for (j = 0; j < 32; j++) {
        k = j >> 1 & 1;
        s[j] = dsa_decode_exp2(s[j] * scale - mc[k]);
        l[k] += s[j];
    }

#pragma unroll
    for (j = 0; j < 16; j++) {
        p[j] = F16 ? dsa_decode_pack_f16(s[j * 2], s[j * 2 + 1])
                   : dsa_decode_pack(s[j * 2], s[j * 2 + 1]);
    }
}


/* Returns 1 if blocks store parts of rows, and not rows. */

static __device__ __forceinline__ int
dsa_decode_parted(const dsa_decode_t &a, const dsa_decode_job_t &job)
{
    return a.splits > 1;
}


/*
 * Stores the sums l of the weights of the thread's two heads, row and row + 8.
 */

template <class Job>
static __device__ __forceinline__ void
dsa_decode_wide_sums(const dsa_decode_t &a, const Job &job, const float *m,
    const float *l, dsa_decode_wide_t *share, uint32_t row, uint32_t lane)
{
    float     v;
    uint32_t  j, k;

#pragma unroll
    for (k = 0; k < 2; k++) {
        v = l[k];
        v += __shfl_xor_sync(0xffffffff, v, 1);
        v += __shfl_xor_sync(0xffffffff, v, 2);

        if (lane % 4 == 0) {
            share->sum[row + k * 8] = v;
            j = job.group * 64 + row + k * 8;

            if (dsa_decode_parted(a, job) && j < a.heads) {
                a.lse[(job.row * a.splits + job.split) * a.heads + j] =
                    v > 0 ? m[k] * a.scale + log2f(v)
                          : __uint_as_float(0xff800000);
            }
        }
    }
}


/*
 * The first warpgroup of the wide kernel: scores, softmax, columns 0 .. 255.
 */

template <class Job>
static __device__ __forceinline__ void
dsa_decode_wide_scores(const dsa_decode_t &a, const Job &job, float *o,
    uint32_t q, uint32_t keys, uint32_t probs, dsa_decode_wide_t *share,
    uint32_t warp, uint32_t lane)
{
    int         changed;
    float       slack, s[32], m[2], l[2], f[2];
    uint32_t    i, j, k, at, row, p[16];
    uint64_t    dq, dk;

    slack = DSA_DECODE_SLACK / a.scale;
    row = warp * 16 + lane / 4;

    m[0] = m[1] = DSA_DECODE_NONE;
    l[0] = l[1] = 0;

    dq = dsa_wgmma_desc(q, 1, 16, 1024);

    for (i = 0; i < job.count; i++) {
        at = keys + (i & 1) * DSA_DECODE_BUFFER;

        dsa_mbar_wait(&share->sync.full[i & 1], i >> 1 & 1);

        dk = dsa_wgmma_desc(at, 1, 16, 1024);

        /*
         * Without this the compiler keeps the sums below in registers during
         * the loop.
         */

        asm volatile ("" : "+l"(dq), "+l"(dk));

        dsa_decode_wide_products(s, dq, dk);
        dsa_decode_wide_mask(s,
                             *(volatile uint64_t *) share->sync.valid[i & 1],
                             lane);
        dsa_decode_wide_softmax<1>(p, f, s, m, l, a.scale, slack);

        changed = __any_sync(0xffffffff, f[0] != 1 || f[1] != 1);

        if (i > 0) {
            dsa_bar_sync(DSA_BAR_FREE, 256);
        }

        /* chunks of 8 keys; rows whose distance is 8 have the same swizzle */

#pragma unroll
        for (j = 0; j < 8; j++) {
            k = probs + row * 128 + ((j ^ (row & 7)) << 4) + lane % 4 * 4;
            dsa_decode_store4(k, p[j * 2]);
            dsa_decode_store4(k + 1024, p[j * 2 + 1]);
        }

        if (lane % 4 == 0) {
            share->factor[row] = f[0];
            share->factor[row + 8] = f[1];
        }

        dsa_fence_async();
        dsa_bar_arrive(DSA_BAR_READY, 256);

        if (changed) {
#pragma unroll
            for (j = 0; j < 128; j++) {
                o[j] *= f[j >> 1 & 1];
            }
        }

        dk = dsa_wgmma_desc(at, 1, DSA_DECODE_PANEL, 1024);

        dsa_wgmma_fence();

#pragma unroll
        for (k = 0; k < 4; k++) {
            dsa_decode_mma_values_reg(o, &p[k * 4], dk + k * (2048 / 16));
            dsa_decode_mma_values_reg(o + 64, &p[k * 4],
                                      dk + k * (2048 / 16)
                                      + 2 * DSA_DECODE_PANEL / 16);
        }

        dsa_wgmma_commit();
        dsa_wgmma_wait<0>();

        /* all lanes have read valid */

        __syncwarp();

        if (lane == 0) {
            dsa_mbar_arrive(&share->sync.empty[i & 1]);
        }
    }

    dsa_decode_wide_sums(a, job, m, l, share, row, lane);
}


/* The second warpgroup of the wide kernel: columns 256 .. 511. */

template <class Job>
static __device__ __forceinline__ void
dsa_decode_wide_values(const Job &job, float *o, uint32_t keys,
    uint32_t probs, dsa_decode_wide_t *share, uint32_t warp, uint32_t lane)
{
    float     f[2];
    uint32_t  i, j, k;
    uint64_t  dk, dp;

    dp = dsa_wgmma_desc(probs, 1, 16, 1024);

    for (i = 0; i < job.count; i++) {
        dk = dsa_wgmma_desc(keys + (i & 1) * DSA_DECODE_BUFFER
                            + 4 * DSA_DECODE_PANEL, 1, DSA_DECODE_PANEL, 1024);

        dsa_mbar_wait(&share->sync.full[i & 1], i >> 1 & 1);
        dsa_bar_sync(DSA_BAR_READY, 256);

        f[0] = *(volatile float *) &share->factor[warp * 16 + lane / 4];
        f[1] = *(volatile float *) &share->factor[warp * 16 + lane / 4 + 8];

        if (__any_sync(0xffffffff, f[0] != 1 || f[1] != 1)) {
#pragma unroll
            for (j = 0; j < 128; j++) {
                o[j] *= f[j >> 1 & 1];
            }
        }

        dsa_wgmma_fence();

#pragma unroll
        for (k = 0; k < 4; k++) {
            dsa_decode_mma_values(o, dp + k * 2, dk + k * (2048 / 16));
            dsa_decode_mma_values(o + 64, dp + k * 2,
                                  dk + k * (2048 / 16)
                                  + 2 * DSA_DECODE_PANEL / 16);
        }

        dsa_wgmma_commit();
        dsa_wgmma_wait<0>();

        if (lane == 0) {
            dsa_mbar_arrive(&share->sync.empty[i & 1]);
        }

        if (i + 1 < job.count) {
            dsa_bar_arrive(DSA_BAR_FREE, 256);
        }
    }
}


/*
 * Stores a warp's 16 heads and a warpgroup's 256 columns.  bf16 is exchanged
 * through shared memory, so that whole lines are written; the float32 parts
 * are whole sectors already.
 */

template <class Job>
static __device__ __forceinline__ void
dsa_decode_wide_store(const dsa_decode_t &a, const Job &job, float *o,
    uint32_t smem, const dsa_decode_wide_t *share, uint32_t half,
    uint32_t warp, uint32_t lane)
{
    float      v, w, inv[2], *part;
    uint4      line;
    uint32_t   h, j, k, head;
    uint64_t   at;

    head = job.group * 64 + warp * 16;
    at = (uint64_t) (job.row * a.splits + job.split) * a.heads;
    smem += (half * 4 + warp) * 16 * 528;

#pragma unroll
    for (k = 0; k < 2; k++) {
        v = *(volatile float *) &share->sum[warp * 16 + lane / 4 + k * 8];
        inv[k] = v > 0 ? 1 / v : 0;
    }

#pragma unroll
    for (j = 0; j < 32; j++) {
#pragma unroll
        for (k = 0; k < 2; k++) {
            v = o[j * 4 + k * 2] * inv[k];
            w = o[j * 4 + k * 2 + 1] * inv[k];

            h = lane / 4 + k * 8;

            if (!dsa_decode_parted(a, job)) {
                dsa_decode_store4(smem + h * 528 + j * 16 + lane % 4 * 4,
                                  dsa_decode_pack(v, w));

            } else if (head + h < a.heads) {
                part = a.part + (at + head + h) * DSA_CUDA_LATENT + half * 256
                       + j * 8 + lane % 4 * 2;
                *(float2 *) part = make_float2(v, w);
            }
        }
    }

    if (dsa_decode_parted(a, job)) {
        return;
    }

    __syncwarp();

    for (h = 0; h < 16 && head + h < a.heads; h++) {
        line = dsa_decode_load16(smem + h * 528 + lane * 16);
        *(uint4 *) (a.out + (at + head + h) * DSA_CUDA_LATENT * 2 + half * 512
                    + lane * 16) = line;
    }
}


/* The work of a block of the wide kernel, which has a step at least. */

template <class Job>
static __device__ __forceinline__ void
dsa_decode_wide_block(const dsa_decode_t &a, const Job &job, uint8_t *smem)
{
    float               o[128];
    uint32_t            i, q, keys, lane, warp, probs;
    dsa_decode_wide_t  *share;

    q = dsa_smem(smem);
    keys = q + DSA_DECODE_BUFFER;
    probs = keys + 2 * DSA_DECODE_BUFFER;
    share = (dsa_decode_wide_t *) (smem + 3 * DSA_DECODE_BUFFER + 64 * 128);

    warp = threadIdx.x / 32;
    lane = threadIdx.x % 32;

    dsa_decode_init(&share->sync, 8, 8);

    if (warp >= 8) {
        dsa_regs_less<64>();
        dsa_decode_fill<1>(a, job, keys, 0, &share->sync, warp - 8, lane);

    } else {
        dsa_regs_more<192>();
        dsa_decode_query<64, 1>(a, job.row, job.group * 64, a.heads, q,
                                threadIdx.x);

#pragma unroll
        for (i = 0; i < 128; i++) {
            o[i] = 0;
        }

        if (warp < 4) {
            dsa_decode_wide_scores(a, job, o, q, keys, probs, share, warp,
                                   lane);
        } else {
            dsa_decode_wide_values(job, o, keys, probs, share, warp - 4, lane);
        }

        dsa_bar_sync(DSA_BAR_BOTH, 256);

        dsa_decode_wide_store(a, job, o, keys, share, warp / 4, warp % 4,
                              lane);
    }
}


#endif /* _DSA_ATTENTION_DECODE_WIDE_CUH_INCLUDED_ */
