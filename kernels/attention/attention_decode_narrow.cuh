
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ATTENTION_DECODE_NARROW_CUH_INCLUDED_
#define _DSA_ATTENTION_DECODE_NARROW_CUH_INCLUDED_


#include "attention_decode.cuh"


/* Computes the scores s of the 64 keys of a step and N heads. */

template <int N>
static __device__ __forceinline__ void
dsa_decode_narrow_products(float *s, uint64_t dq, uint64_t dk)
{
    uint32_t  j, k, t;

    dsa_wgmma_fence();

#pragma unroll
    for (k = 0; k < DSA_DECODE_WIDTH / 16; k++) {
        j = k / 4 * (DSA_DECODE_PANEL / 16) + k % 4 * 2;
        t = k / 4 * (N * 128 / 16) + k % 4 * 2;

        if (k < DSA_CUDA_LATENT / 16) {
            dsa_decode_mma<N, 1, 0>(s, dk + j, dq + t, k > 0);
        } else {
            dsa_decode_mma<N, 0, 0>(s, dk + j, dq + t, 1);
        }
    }

    dsa_wgmma_commit();
    dsa_wgmma_wait<0>();
}


/*
 * Raises the references m of the heads to the maxima of the warpgroup's
 * scores, and rescales the sums l and o.
 */

template <int N>
static __device__ __forceinline__ void
dsa_decode_narrow_raise(const float *s, float (*o)[N / 2], float *m, float *l,
    float scale, dsa_decode_narrow_t<N> *share, uint32_t group, uint32_t warp,
    uint32_t lane)
{
    float     v, f[N / 4];
    uint32_t  j, k, t;

#pragma unroll
    for (j = 0; j < N / 4; j++) {
        k = (j >> 1) * 4 + (j & 1);
        v = fmaxf(s[k], s[k + 2]);
        v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, 4));
        v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, 8));
        v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, 16));

        if (lane < 4) {
            share->max[group][warp][(j >> 1) * 8 + lane * 2 + (j & 1)] = v;
        }
    }

    dsa_bar_sync(DSA_BAR_GROUP + group, 128);

#pragma unroll
    for (j = 0; j < N / 4; j++) {
        k = (j >> 1) * 8 + lane % 4 * 2 + (j & 1);
        v = m[j];

#pragma unroll
        for (t = 0; t < 4; t++) {
            v = fmaxf(v, *(volatile float *) &share->max[group][t][k]);
        }

        f[j] = dsa_decode_exp2((m[j] - v) * scale);
        m[j] = v;
        l[j] *= f[j];
    }

#pragma unroll
    for (t = 0; t < 8; t++) {
#pragma unroll
        for (j = 0; j < N / 2; j++) {
            o[t][j] *= f[(j >> 2) * 2 + (j & 1)];
        }
    }
}


/*
 * Makes weights of the scores, adds them to l, and stores them transposed:
 * [heads][64 keys].
 */

template <int N>
static __device__ __forceinline__ void
dsa_decode_narrow_weights(float *s, const float *m, float *l, float scale,
    uint32_t probs, uint32_t warp, uint32_t lane)
{
    uint32_t  j, k, lo, hi;

#pragma unroll
    for (j = 0; j < N / 2; j++) {
        k = (j >> 2) * 2 + (j & 1);
        s[j] = dsa_decode_exp2(s[j] * scale - m[k] * scale);
        l[k] += s[j];
    }

#pragma unroll
    for (j = 0; j < N / 8; j++) {
        lo = dsa_decode_pack_f16(s[j * 4], s[j * 4 + 1]);
        hi = dsa_decode_pack_f16(s[j * 4 + 2], s[j * 4 + 3]);

        k = probs + (j * 8 + (lane & 7)) * 128
            + ((warp * 2 + (lane >> 3 & 1) ^ (lane & 7)) << 4);

        asm volatile ("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 "
                      "[%0], {%1, %2};"
                      :: "r"(k), "r"(lo), "r"(hi) : "memory");
    }
}


/* Adds the weighted values of a step to o. */

template <int N>
static __device__ __forceinline__ void
dsa_decode_narrow_values(float (*o)[N / 2], uint64_t dv, uint64_t dp)
{
    uint32_t  k, t;

    dsa_wgmma_fence();

#pragma unroll
    for (k = 0; k < 4; k++) {
#pragma unroll
        for (t = 0; t < 8; t++) {
            dsa_decode_mma<N, 1, 1>(o[t], dv + t * (DSA_DECODE_PANEL / 16)
                                       + k * (2048 / 16),
                                 dp + k * 2, 1);
        }
    }

    dsa_wgmma_commit();
    dsa_wgmma_wait<0>();
}


/*
 * One warpgroup of the narrow kernel, which computes every second step.  o
 * [8][N / 2]: the transposed output, 64 columns in each.  The heads of a
 * thread are 8 j + 2 (lane % 4) and the next one.
 */

template <int N>
static __device__ __forceinline__ void
dsa_decode_narrow_steps(const dsa_decode_t &a, const dsa_decode_job_t &job,
    float (*o)[N / 2], float *m, float *l, uint32_t q, uint32_t keys,
    uint32_t probs, dsa_decode_narrow_t<N> *share, uint32_t group,
    uint32_t warp, uint32_t lane)
{
    int       on[2], need;
    float     slack, s[N / 2];
    uint32_t  i, j, k;
    uint64_t  dq, dk, dp, dv;

    slack = DSA_DECODE_SLACK / a.scale;
    keys += group * DSA_DECODE_BUFFER;
    probs += group * N * 128;

    dq = dsa_wgmma_desc(q, 1, 16, 1024);
    dk = dsa_wgmma_desc(keys, 1, 16, 1024);
    dp = dsa_wgmma_desc(probs, 1, 16, 1024);
    dv = dsa_wgmma_desc(keys, 1, DSA_DECODE_PANEL, 1024);

    for (i = group; i < job.count; i += 2) {
        dsa_mbar_wait(&share->sync.full[group], i >> 1 & 1);

        /*
         * Without this the compiler keeps the sums below in registers during
         * the loop.
         */

        asm volatile ("" : "+l"(dq), "+l"(dk), "+l"(dp), "+l"(dv));

        dsa_decode_narrow_products<N>(s, dq, dk);

        /* this thread's keys: warp * 16 + lane / 4, and 8 below */

#pragma unroll
        for (k = 0; k < 2; k++) {
            on[k] = *(volatile uint8_t *)
                        &share->sync.valid[group][warp * 2 + k]
                    >> (lane / 4) & 1;
        }

        need = 0;

#pragma unroll
        for (j = 0; j < N / 2; j++) {
            s[j] = on[j >> 1 & 1] ? s[j] : __uint_as_float(0xff800000);
            need |= s[j] > m[(j >> 2) * 2 + (j & 1)] + slack;
        }

        if (dsa_decode_bar_or(DSA_BAR_GROUP + group, 128, need)) {

            /* new maxima for the heads are rare after the first step */

            dsa_decode_narrow_raise<N>(s, o, m, l, a.scale, share, group, warp,
                                       lane);
        }

        dsa_decode_narrow_weights<N>(s, m, l, a.scale, probs, warp, lane);

        dsa_fence_async();
        dsa_bar_sync(DSA_BAR_GROUP + group, 128);

        dsa_decode_narrow_values<N>(o, dv, dp);

        if (lane == 0) {
            dsa_mbar_arrive(&share->sync.empty[group]);
        }
    }
}


/* Stores the references m and the sums l of a warpgroup for both of them. */

template <int N>
static __device__ __forceinline__ void
dsa_decode_narrow_share(const float *m, const float *l,
    dsa_decode_narrow_t<N> *share, uint32_t group, uint32_t warp,
    uint32_t lane)
{
    float     v;
    uint32_t  h, j;

#pragma unroll
    for (j = 0; j < N / 4; j++) {
        v = l[j];
        v += __shfl_xor_sync(0xffffffff, v, 4);
        v += __shfl_xor_sync(0xffffffff, v, 8);
        v += __shfl_xor_sync(0xffffffff, v, 16);

        if (lane < 4) {
            h = (j >> 1) * 8 + lane * 2 + (j & 1);
            share->sum[group][warp][h] = v;

            if (warp == 0) {
                share->top[group][h] = m[j];
            }
        }
    }
}


/*
 * Computes the factors f by which the outputs of this warpgroup have to be
 * multiplied.  If the row has several parts, the logarithms of the heads' sums
 * are stored from "at" on.
 */

template <int N>
static __device__ __forceinline__ void
dsa_decode_narrow_factors(const dsa_decode_t &a, float *f, const float *m,
    uint64_t at, const dsa_decode_narrow_t<N> *share, uint32_t group,
    uint32_t warp, uint32_t lane)
{
    float     v, top, sum;
    uint32_t  h, i, j, k;

#pragma unroll
    for (j = 0; j < N / 4; j++) {
        h = (j >> 1) * 8 + lane % 4 * 2 + (j & 1);

        top = fmaxf(share->top[0][h], share->top[1][h]);
        sum = 0;

        for (i = 0; i < 2; i++) {
            v = 0;

            for (k = 0; k < 4; k++) {
                v += share->sum[i][k][h];
            }

            sum += v * dsa_decode_exp2((share->top[i][h] - top) * a.scale);
        }

        f[j] = sum > 0 ? dsa_decode_exp2((m[j] - top) * a.scale) / sum : 0;

        if (a.splits > 1 && group == 0 && warp == 0 && lane < 4
            && h < a.heads)
        {
            a.lse[at + h] = sum > 0 ? top * a.scale + log2f(sum)
                                    : __uint_as_float(0xff800000);
        }
    }
}


/*
 * Combines the outputs of the two warpgroups.  Each warpgroup stores one half
 * of the columns, in whole lines: it writes the other half to shared memory,
 * [2][N][DSA_DECODE_PITCH] floats, and adds the values of the other warpgroup
 * to its own half.
 */

#define DSA_DECODE_PITCH  260           /* heads 2 apart: 8 banks */

template <int N>
static __device__ __forceinline__ void
dsa_decode_narrow_store(const dsa_decode_t &a, const dsa_decode_job_t &job,
    float (*o)[N / 2], const float *m, const float *l, float *smem,
    dsa_decode_narrow_t<N> *share, uint32_t group, uint32_t warp,
    uint32_t lane)
{
    float      v, w, f[N / 4], *x;
    float4     y, z;
    uint32_t   e, h, i, j, t;
    uint64_t   at;

    dsa_decode_narrow_share<N>(m, l, share, group, warp, lane);
    dsa_bar_sync(DSA_BAR_BOTH, 256);

    at = (uint64_t) (job.row * a.splits + job.split) * a.heads;

    dsa_decode_narrow_factors<N>(a, f, m, at, share, group, warp, lane);

    i = lane / 4 + warp * 16;
    x = smem + (1 - group) * N * DSA_DECODE_PITCH + i;

#pragma unroll
    for (t = 0; t < 4; t++) {
#pragma unroll
        for (j = 0; j < N / 2; j++) {
            h = (j >> 2) * 8 + lane % 4 * 2 + (j & 1);
            v = (group == 0 ? o[t + 4][j] : o[t][j])
                * f[(j >> 2) * 2 + (j & 1)];
            x[h * DSA_DECODE_PITCH + t * 64 + (j >> 1 & 1) * 8] = v;
        }
    }

    dsa_bar_sync(DSA_BAR_BOTH, 256);

    smem += group * N * DSA_DECODE_PITCH;
    x = smem + i;

#pragma unroll
    for (t = 0; t < 4; t++) {
#pragma unroll
        for (j = 0; j < N / 2; j++) {
            h = (j >> 2) * 8 + lane % 4 * 2 + (j & 1);
            e = h * DSA_DECODE_PITCH + t * 64 + (j >> 1 & 1) * 8;
            v = (group == 0 ? o[t][j] : o[t + 4][j])
                * f[(j >> 2) * 2 + (j & 1)];
            w = x[e];
            x[e] = group == 0 ? v + w : w + v;
        }
    }

    dsa_bar_sync(DSA_BAR_GROUP + group, 128);

    for (h = warp; h < N && h < a.heads; h += 4) {
        x = smem + h * DSA_DECODE_PITCH;

        if (a.splits > 1) {
            float4  *part;

            part = (float4 *) (a.part + (at + h) * DSA_CUDA_LATENT
                               + group * 256);
            part[lane] = *(float4 *) (x + lane * 4);
            part[lane + 32] = *(float4 *) (x + 128 + lane * 4);

        } else {
            y = *(float4 *) (x + lane * 8);
            z = *(float4 *) (x + lane * 8 + 4);
            *(uint4 *) (a.out + (at + h) * DSA_CUDA_LATENT * 2 + group * 512
                        + lane * 16) =
                make_uint4(dsa_decode_pack(y.x, y.y),
                           dsa_decode_pack(y.z, y.w),
                           dsa_decode_pack(z.x, z.y),
                           dsa_decode_pack(z.z, z.w));
        }
    }
}


template <int N>
static __global__ void
__launch_bounds__(DSA_DECODE_THREADS, 1)
dsa_decode_narrow(const __grid_constant__ dsa_decode_t a)
{
    float                     o[8][N / 2], m[N / 4], l[N / 4];
    uint32_t                  i, j, q, keys, lane, warp, place, probs;
    dsa_decode_job_t          job;
    dsa_decode_narrow_t<N>   *share;
    extern __shared__ __align__(1024) uint8_t  dsa_decode_smem[];

    keys = dsa_smem(dsa_decode_smem);
    q = keys + 2 * DSA_DECODE_BUFFER;
    probs = q + DSA_DECODE_PANELS * N * 128;
    place = probs + 2 * N * 128;
    share = (dsa_decode_narrow_t<N> *)
                (dsa_decode_smem + 2 * DSA_DECODE_BUFFER
                 + (DSA_DECODE_PANELS + 2) * N * 128
                 + (N == 32 ? 0 : DSA_DECODE_KEYS * DSA_DECODE_RAW));

    asm volatile ("griddepcontrol.launch_dependents;");

    warp = threadIdx.x / 32;
    lane = threadIdx.x % 32;

    job = dsa_decode_job(a, warp % 8 * 8 + lane % 8);

    if (dsa_decode_idle(a, job, N)) {
        return;
    }

    dsa_decode_init(&share->sync, 8, 4);

    if (warp >= 8) {
        if constexpr (N == 32) {
            dsa_regs_less<80>();
        }

        dsa_decode_fill<N == 32>(a, job, keys, place, &share->sync, warp - 8,
                                 lane);

    } else {
        if constexpr (N == 32) {
            dsa_regs_more<176>();
        }

        dsa_decode_query<N, 1>(a, job.row, 0, a.heads, q, threadIdx.x);

#pragma unroll
        for (j = 0; j < N / 2; j++) {
#pragma unroll
            for (i = 0; i < 8; i++) {
                o[i][j] = 0;
            }
        }

#pragma unroll
        for (j = 0; j < N / 4; j++) {
            m[j] = DSA_DECODE_NONE;
            l[j] = 0;
        }

        dsa_decode_narrow_steps<N>(a, job, o, m, l, q, keys, probs, share,
                                   warp / 4, warp % 4, lane);
        dsa_decode_narrow_store<N>(a, job, o, m, l, (float *) dsa_decode_smem,
                                   share, warp / 4, warp % 4, lane);
    }
}


#endif /* _DSA_ATTENTION_DECODE_NARROW_CUH_INCLUDED_ */
