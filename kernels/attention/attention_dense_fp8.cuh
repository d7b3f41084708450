
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ATTENTION_DENSE_FP8_CUH_INCLUDED_
#define _DSA_ATTENTION_DENSE_FP8_CUH_INCLUDED_


#include "attention_dense.cuh"


/*
 * Dense decode over FP8 latents with up to 32 heads.  A block is one warpgroup
 * with up to 32 queries.  The roles of queries and keys are swapped as in
 * narrow sparse decode, so that keys and columns are the first operand of the
 * products, and this operand comes from registers: a thread reads e4m3 values
 * of a record in shared memory, converts them to f16 and multiplies with them.
 * No f16 copy of the keys is ever in shared memory, which would be written once
 * and read twice at 128 bytes a cycle.  Each value is converted twice, because
 * scores need pairs of columns of a key and values pairs of keys of a column.
 *
 * Each block converts the keys anew, whether it has 20 queries or 32, so blocks
 * are filled: the heads of a row may be in two of them.
 *
 * Two blocks share a multiprocessor, and each of them computes while the other
 * one waits.
 *
 * Records are copied as they are, in quarters of a page, into a ring of slots.
 * A record is 41 chunks of 16 bytes.  Eight lanes read 8 chunks from different
 * banks if the chunks' numbers plus those of the records are different modulo
 * 8.  dsa_dense_fp8_key() orders the 16 keys of a quarter so that this is true
 * for both products.  The order of the columns in a product is one in which a
 * thread needs 16 bytes of a record: dsa_dense_fp8_query() stores the queries
 * in this order.
 */

#define DSA_FP8_THREADS     128
#define DSA_FP8_QUERIES     32          /* of a block, at most */
#define DSA_FP8_QUARTER     16          /* keys */
#define DSA_FP8_SLOT        (DSA_FP8_QUARTER * DSA_CUDA_RECORD)
#define DSA_FP8_SLOTS       8           /* at most */
#define DSA_FP8_STATE       1024        /* bytes of dsa_dense_fp8_shared_t */

/* Two blocks share a multiprocessor: 228 KB, 1 KB of each block is reserved. */

#define DSA_FP8_SHARED      (113 * 1024)


/*
 * N: queries of a block, padded.  Shared memory: queries [9][N][128 bytes] and
 * weights [N][64 keys], with the swizzle of 128 bytes; slots.
 */

template <int N>
struct dsa_dense_fp8_size_t {
    static const int  panel = N * 128;
    static const int  probs = DSA_DECODE_PANELS * panel;
    static const int  slot = probs + panel;
    static const int  fit = (DSA_FP8_SHARED - DSA_FP8_STATE - slot)
                            / DSA_FP8_SLOT;
    static const int  slots = fit < DSA_FP8_SLOTS ? fit : DSA_FP8_SLOTS;
};


/* Of each warp and query: the greatest score of a step, and at last the sum. */

typedef struct {
    uint64_t          full[DSA_FP8_SLOTS];
    float             warp[4][DSA_FP8_QUERIES];
} dsa_dense_fp8_shared_t;

static_assert(sizeof(dsa_dense_fp8_shared_t) <= DSA_FP8_STATE,
              "the state exceeds its part of shared memory");


/* The place of a thread. */

typedef struct {
    uint32_t          warp;
    uint32_t          lane;
    uint32_t          group;            /* lane / 4 */
    uint32_t          quad;             /* lane % 4 */
} dsa_dense_fp8_thread_t;


#define DSA_FP8_R12                                                           \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11"

#define DSA_FP8_MMA(n, type, regs, a0, a1, a2, a3, k, l, ...)                 \
    asm volatile ("{\n.reg .pred p;\nsetp.ne.b32 p, %" #l ", 0;\n"            \
                  "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "."  \
                  type " {" regs "}, {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3    \
                  "}, %" #k ", p, 1, 1, 0;\n}"                                \
                  : __VA_ARGS__                                               \
                  : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b),       \
                    "r"(add))

#define DSA_FP8_MMA_EACH(type)                                                \
    if constexpr (N == 16) {                                                  \
        DSA_FP8_MMA(16, type, DSA_R8, 8, 9, 10, 11, 12, 13, DSA_D4(d, 0),     \
                    DSA_D4(d, 4));                                            \
    } else if constexpr (N == 24) {                                           \
        DSA_FP8_MMA(24, type, DSA_FP8_R12, 12, 13, 14, 15, 16, 17,            \
                    DSA_D4(d, 0), DSA_D4(d, 4), DSA_D4(d, 8));                \
    } else {                                                                  \
        DSA_FP8_MMA(32, type, DSA_R16, 16, 17, 18, 19, 20, 21,                \
                    DSA_D16(d, 0));                                           \
    }


/* d [64, N] += A B^T, A [64, 16] in registers, B [N, 16] in shared memory. */

template <int N, int F16>
static __device__ __forceinline__ void
dsa_dense_fp8_mma(float *d, const uint32_t *a, uint64_t b, int add)
{
    if constexpr (F16) {
        DSA_FP8_MMA_EACH("f16");
    } else {
        DSA_FP8_MMA_EACH("bf16");
    }
}


/*
 * Returns the key of a quarter that is row group or group + 8 (half 1) of a
 * warp's 16 rows of a product, and of the 16 weights of a query.
 */

static __device__ __forceinline__ uint32_t
dsa_dense_fp8_key(uint32_t group, uint32_t half)
{
    uint32_t  odd;

    odd = group & 1;

    return odd * 8 + ((group - odd + odd * 4) & 7) + half;
}


/*
 * Copies queries first .. queries-1 of a row into panels, f16, and bf16 for
 * the rope part.  Position 16 j + 8 s + 2 t + e of a panel has the column that
 * thread t of four has as element e of pair 4 j' + s of its 16 bytes: pairs 2
 * j and 2 j + 1 are the thread's part of product j.  16 bytes of a record are
 * 8 pairs of e4m3 or 4 of bf16.
 */

template <int N>
static __device__ __forceinline__ void
dsa_dense_fp8_query(const dsa_decode_t &a, uint32_t row, uint32_t first,
    uint32_t queries, uint32_t smem)
{
    uint4           v;
    uint32_t        c, h, i, n, t, half, to, w[4];
    const uint8_t  *q;

    q = a.q + (uint64_t) row * a.heads * DSA_DECODE_WIDTH * 2;

#pragma unroll 6
    for (i = threadIdx.x; i < N * DSA_DECODE_WIDTH / 8; i += DSA_FP8_THREADS) {
        h = i / (DSA_DECODE_WIDTH / 8);
        c = i % (DSA_DECODE_WIDTH / 8);
        v = make_uint4(0, 0, 0, 0);

        if (first + h < queries) {
            v = *(const uint4 *) (q + (uint64_t) (first + h)
                                      * DSA_DECODE_WIDTH * 2 + c * 16);
        }

        w[0] = v.x;
        w[1] = v.y;
        w[2] = v.z;
        w[3] = v.w;

        if (c < DSA_CUDA_LATENT / 8) {
            t = c % 8 / 2;
            half = c % 2;
        } else {
            t = c % 4;
            half = c % 8 / 4;
        }

        to = smem + c / 8 * dsa_dense_fp8_size_t<N>::panel + h * 128 + t * 4;

#pragma unroll
        for (n = 0; n < 4; n++) {
            w[n] = c < DSA_CUDA_LATENT / 8 ? dsa_decode_query_f16(w[n])
                                           : dsa_decode_query_bf16(w[n]);
            dsa_decode_store4(to + (((half * 4 + n) ^ (h & 7)) << 4), w[n]);
        }
    }
}


/* Starts copying quarter n of a part, of page page, in one thread. */

template <int N>
static __device__ __forceinline__ void
dsa_dense_fp8_load(const CUtensorMap *map, uint8_t *smem,
    dsa_dense_fp8_shared_t *share, uint32_t n, int32_t page)
{
    uint32_t  slot;

    slot = n % dsa_dense_fp8_size_t<N>::slots;

    dsa_mbar_arrive_expect(&share->full[slot], DSA_FP8_SLOT);
    dsa_tma_load_3d(smem + dsa_dense_fp8_size_t<N>::slot + slot * DSA_FP8_SLOT,
                    map, &share->full[slot], 0,
                    (int32_t) (n % 4 * DSA_FP8_QUARTER), page);
}


/* Waits for quarter n, and returns its address. */

template <int N>
static __device__ __forceinline__ uint32_t
dsa_dense_fp8_wait(uint32_t smem, dsa_dense_fp8_shared_t *share, uint32_t n)
{
    uint32_t  slot;

    slot = n % dsa_dense_fp8_size_t<N>::slots;

    dsa_mbar_wait(&share->full[slot], n / dsa_dense_fp8_size_t<N>::slots & 1);

    return smem + dsa_dense_fp8_size_t<N>::slot + slot * DSA_FP8_SLOT;
}


/*
 * Overwrites a warp's records outside of low .. limit-1 with zeros: what is
 * there may be no number, and then a product with weight 0 would not be 0.
 */

static __device__ __forceinline__ void
dsa_dense_fp8_clear(uint32_t at, int32_t low, int32_t limit, uint32_t lane)
{
    int32_t   key;
    uint32_t  i;

    for (key = 0; key < DSA_FP8_QUARTER; key++) {

        if (key >= low && key < limit) {
            continue;
        }

        for (i = lane; i < DSA_CUDA_RECORD / 16; i += 32) {
            dsa_decode_store16(at + key * DSA_CUDA_RECORD + i * 16, 0, 0, 0,
                               0);
        }
    }

    dsa_fence_async();
    __syncwarp();
}


/* Prevents the compiler from using the scores before the preceding wait. */

template <int N>
static __device__ __forceinline__ void
dsa_dense_fp8_settle(float *s)
{
    uint32_t  j;

#pragma unroll
    for (j = 0; j < N / 2; j++) {
        asm volatile ("" : "+f"(s[j]) :: "memory");
    }
}


/* A thread's part of 64 columns of two keys, for 4 products. */

static __device__ __forceinline__ void
dsa_dense_fp8_keys(uint32_t *k, const uint4 *x, const uint32_t *f)
{
    uint32_t  h, j, w[4];

#pragma unroll
    for (h = 0; h < 2; h++) {
        w[0] = x[h].x;
        w[1] = x[h].y;
        w[2] = x[h].z;
        w[3] = x[h].w;

#pragma unroll
        for (j = 0; j < 4; j++) {
            k[j * 4 + h] = dsa_decode_convert((uint16_t) w[j], f[h]);
            k[j * 4 + 2 + h] = dsa_decode_convert((uint16_t) (w[j] >> 16),
                                                  f[h]);
        }
    }
}


/*
 * Computes the scores s of the 64 keys of a step and N queries.  at: the
 * thread's first key; the other one is in the next record.
 */

template <int N>
static __device__ __forceinline__ void
dsa_dense_fp8_scores(float *s, uint32_t at, uint64_t dq)
{
    uint4           x[2], y[4], scale[2];
    uint32_t        f[2], b, h, j, k[2][16];
    const uint32_t  panel = dsa_dense_fp8_size_t<N>::panel / 16;

#pragma unroll
    for (h = 0; h < 2; h++) {
        scale[h] = dsa_decode_load16(at + h * DSA_CUDA_RECORD
                                     + DSA_CUDA_LATENT
                                     - threadIdx.x % 4 * 16);
        x[h] = dsa_decode_load16(at + h * DSA_CUDA_RECORD);
    }

#pragma unroll
    for (b = 0; b < 8; b++) {

        if (b >= 2) {
            dsa_wgmma_wait<1>();
        }

#pragma unroll
        for (h = 0; h < 2; h++) {
            j = b < 2 ? scale[h].x : b < 4 ? scale[h].y
                : b < 6 ? scale[h].z : scale[h].w;
            f[h] = dsa_decode_pack_f16(__uint_as_float(j), __uint_as_float(j));
        }

        dsa_dense_fp8_keys(k[b % 2], x, f);

        if (b + 1 < 8) {
            x[0] = dsa_decode_load16(at + (b + 1) * 64);
            x[1] = dsa_decode_load16(at + DSA_CUDA_RECORD + (b + 1) * 64);

        } else {
#pragma unroll
            for (j = 0; j < 4; j++) {
                y[j] = dsa_decode_load16(at + j % 2 * DSA_CUDA_RECORD
                                         + DSA_CUDA_LATENT + 16 + j / 2 * 64);
            }
        }

        dsa_wgmma_fence();

#pragma unroll
        for (j = 0; j < 4; j++) {
            dsa_dense_fp8_mma<N, 1>(s, &k[b % 2][j * 4],
                                    dq + b * panel + j * 2, b + j > 0);
        }

        dsa_wgmma_commit();
    }

    dsa_wgmma_wait<1>();

#pragma unroll
    for (j = 0; j < 2; j++) {
        k[0][j * 8] = y[j * 2].x;
        k[0][j * 8 + 1] = y[j * 2 + 1].x;
        k[0][j * 8 + 2] = y[j * 2].y;
        k[0][j * 8 + 3] = y[j * 2 + 1].y;
        k[0][j * 8 + 4] = y[j * 2].z;
        k[0][j * 8 + 5] = y[j * 2 + 1].z;
        k[0][j * 8 + 6] = y[j * 2].w;
        k[0][j * 8 + 7] = y[j * 2 + 1].w;
    }

    dsa_wgmma_fence();

#pragma unroll
    for (j = 0; j < 4; j++) {
        dsa_dense_fp8_mma<N, 0>(s, &k[0][j * 4], dq + 8 * panel + j * 2, 1);
    }

    dsa_wgmma_commit();
    dsa_wgmma_wait<0>();
    dsa_dense_fp8_settle<N>(s);
}


/* Hides the keys of step i that queries do not attend to. */

template <int N>
static __device__ __forceinline__ void
dsa_dense_fp8_hide(const dsa_dense_t &a, const dsa_dense_job_t &job, float *s,
    const dsa_dense_fp8_thread_t *t, uint32_t i)
{
    int32_t   key, limit;
    uint32_t  j, query;

#pragma unroll
    for (j = 0; j < N / 2; j++) {
        key = (int32_t) (i * DSA_DECODE_KEYS + t->warp * DSA_FP8_QUARTER
                         + dsa_dense_fp8_key(t->group, j >> 1 & 1));
        query = job.group * DSA_FP8_QUERIES + (j >> 2) * 8 + t->quad * 2
                + (j & 1);
        limit = min(job.limit + (int32_t) (query / a.d.heads), job.end);

        if (key < job.low || key >= limit) {
            s[j] = __uint_as_float(0xff800000);
        }
    }
}


/*
 * Raises the references m of the queries that have a score which exceeds m by
 * more than slack, and rescales their sums l and o.
 */

template <int N>
static __device__ __forceinline__ void
dsa_dense_fp8_raise(const float *s, float (*o)[N / 2], float *m, float *l,
    float scale, float slack, dsa_dense_fp8_shared_t *share,
    const dsa_dense_fp8_thread_t *t)
{
    float     v, f[N / 4];
    uint32_t  i, j, k;

#pragma unroll
    for (j = 0; j < N / 4; j++) {
        k = (j >> 1) * 4 + (j & 1);
        v = fmaxf(s[k], s[k + 2]);
        v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, 4));
        v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, 8));
        v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, 16));

        if (t->group == 0) {
            share->warp[t->warp][(j >> 1) * 8 + t->quad * 2 + (j & 1)] = v;
        }
    }

    __syncthreads();

#pragma unroll
    for (j = 0; j < N / 4; j++) {
        k = (j >> 1) * 8 + t->quad * 2 + (j & 1);
        v = *(volatile float *) &share->warp[0][k];

#pragma unroll
        for (i = 1; i < 4; i++) {
            v = fmaxf(v, *(volatile float *) &share->warp[i][k]);
        }

        f[j] = 1;

        if (v > m[j] + slack) {
            f[j] = dsa_decode_exp2((m[j] - v) * scale);
            m[j] = v;
        }

        l[j] *= f[j];
    }

#pragma unroll
    for (i = 0; i < 8; i++) {
#pragma unroll
        for (j = 0; j < N / 2; j++) {
            o[i][j] *= f[(j >> 2) * 2 + (j & 1)];
        }
    }
}


/*
 * Makes weights of the scores, adds them to l, and stores them: [queries][64
 * keys].
 */

template <int N>
static __device__ __forceinline__ void
dsa_dense_fp8_weights(float *s, const float *m, float *l, float scale,
    uint32_t probs, const dsa_dense_fp8_thread_t *t)
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

        k = probs + (j * 8 + (t->lane & 7)) * 128
            + (((t->warp * 2 + (t->lane >> 3 & 1)) ^ (t->lane & 7)) << 4);

        dsa_stmatrix2_trans(k, lo, hi);
    }
}


/*
 * A thread's part of 8 columns and 4 keys, for 4 products: the keys 2 quad and
 * 2 quad + 1, and the same 8 keys on, of the order of dsa_dense_fp8_key().
 * Column pair i is element i of words w[4], one of each key.
 */

static __device__ __forceinline__ void
dsa_dense_fp8_columns(uint32_t *v, const uint32_t *w, const uint32_t *f)
{
    uint32_t  h, i, x;

#pragma unroll
    for (i = 0; i < 2; i++) {
#pragma unroll
        for (h = 0; h < 2; h++) {
            x = __byte_perm(w[h * 2], w[h * 2 + 1], i ? 0x7362 : 0x5140);
            v[i * 4 + h * 2] = dsa_decode_convert((uint16_t) x, f[h]);
            v[i * 4 + h * 2 + 1] = dsa_decode_convert((uint16_t) (x >> 16),
                                                      f[h]);
        }
    }
}


/*
 * Adds the weighted values of step i to o: o [8][N / 2], of which element
 * [j][0 .. 1] is column 2 j of the warp's and thread's 16 columns, and [j][2
 * .. 3] column 2 j + 1.  A quarter that all warps have read is replaced.
 */

template <int N>
static __device__ __forceinline__ void
dsa_dense_fp8_values(const dsa_dense_job_t &job, float (*o)[N / 2],
    const CUtensorMap *map, uint8_t *base, dsa_dense_fp8_shared_t *share,
    const dsa_dense_fp8_thread_t *t, uint64_t dp, uint32_t i,
    const int32_t *page)
{
    uint4           x[4];
    float           scale[4];
    uint32_t        at, h, j, n, next, w[4], f[2], v[2][16];
    const uint32_t  slots = dsa_dense_fp8_size_t<N>::slots;

    const uint32_t  even = t->quad * 2 * DSA_CUDA_RECORD;
    const uint32_t  odd = (8 + ((t->quad * 2 + 4) & 7)) * DSA_CUDA_RECORD;
    const uint32_t  smem = dsa_smem(base);

#pragma unroll
    for (n = 0; n < 4; n++) {
        at = dsa_dense_fp8_wait<N>(smem, share, i * 4 + n);

#pragma unroll
        for (j = 0; j < 4; j++) {
            h = at + (j % 2 ? odd : even) + j / 2 * DSA_CUDA_RECORD;
            x[j] = dsa_decode_load16(h + (t->warp * 8 + t->group) * 16);
            scale[j] = dsa_decode_load4(h + DSA_CUDA_LATENT + t->warp * 4);
        }

        f[0] = dsa_decode_pack_f16(scale[0], scale[1]);
        f[1] = dsa_decode_pack_f16(scale[2], scale[3]);

        /* all threads have read the quarter into registers */

        __syncthreads();

        next = i * 4 + n + slots;

        if (threadIdx.x == 0 && next < job.count * 4) {
            dsa_dense_fp8_load<N>(map, base, share, next,
                                  page[n + slots < 8 ? 0 : 1]);
        }

#pragma unroll
        for (h = 0; h < 2; h++) {

            if (n > 0) {
                dsa_wgmma_wait<1>();
            }

#pragma unroll
            for (j = 0; j < 4; j++) {
                w[j] = h ? x[j].z : x[j].x;
            }

            dsa_dense_fp8_columns(v[h], w, f);

#pragma unroll
            for (j = 0; j < 4; j++) {
                w[j] = h ? x[j].w : x[j].y;
            }

            dsa_dense_fp8_columns(v[h] + 8, w, f);

            dsa_wgmma_fence();

#pragma unroll
            for (j = 0; j < 4; j++) {
                dsa_dense_fp8_mma<N, 1>(o[h * 4 + j], &v[h][j * 4],
                                        dp + n * 2, 1);
            }

            dsa_wgmma_commit();
        }
    }

    dsa_wgmma_wait<0>();
}


/* Stores the sums of a part, and their logarithms. */

template <int N>
static __device__ __forceinline__ void
dsa_dense_fp8_store(const dsa_dense_t &a, const dsa_dense_job_t &job,
    float (*o)[N / 2], const float *m, const float *l,
    dsa_dense_fp8_shared_t *share, const dsa_dense_fp8_thread_t *t)
{
    float     v, inv, *part;
    uint32_t  e, i, j, k, query;
    uint64_t  at;

#pragma unroll
    for (j = 0; j < N / 4; j++) {
        v = l[j];
        v += __shfl_xor_sync(0xffffffff, v, 4);
        v += __shfl_xor_sync(0xffffffff, v, 8);
        v += __shfl_xor_sync(0xffffffff, v, 16);

        if (t->group == 0) {
            share->warp[t->warp][(j >> 1) * 8 + t->quad * 2 + (j & 1)] = v;
        }
    }

    __syncthreads();

#pragma unroll
    for (j = 0; j < N / 4; j++) {
        k = (j >> 1) * 8 + t->quad * 2 + (j & 1);
        query = job.group * DSA_FP8_QUERIES + k;

        if (query >= job.queries) {
            continue;
        }

        v = share->warp[0][k];

#pragma unroll
        for (i = 1; i < 4; i++) {
            v += share->warp[i][k];
        }

        inv = v > 0 ? 1 / v : 0;
        at = dsa_dense_at(a.d, job, query);

        if (threadIdx.x < 4) {
            a.d.lse[at] = v > 0 ? m[j] * a.d.scale + log2f(v)
                                : __uint_as_float(0xff800000);
        }

        part = a.d.part + at * DSA_CUDA_LATENT
               + (t->warp * 8 + t->group) * 16;
        e = (j >> 1) * 4 + (j & 1);

#pragma unroll
        for (i = 0; i < 8; i += 2) {
            *(float4 *) (part + i * 2) =
                make_float4(o[i][e] * inv, o[i][e + 2] * inv,
                            o[i + 1][e] * inv, o[i + 1][e + 2] * inv);
        }
    }
}


/* A block's part of the keys. */

template <int N>
static __device__ __forceinline__ void
dsa_dense_fp8_part(const dsa_dense_t &a, const dsa_dense_job_t &job,
    const CUtensorMap *map, uint8_t *smem, dsa_dense_fp8_shared_t *share)
{
    int                     need;
    float                   slack, s[N / 2], m[N / 4], l[N / 4], o[8][N / 2];
    int32_t                 first, page[2];
    uint32_t                i, j, n, at, base, probs;
    uint64_t                dq, dp;
    const int32_t          *pages;
    dsa_dense_fp8_thread_t  t;

    t.warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
    t.lane = threadIdx.x % 32;
    t.group = t.lane / 4;
    t.quad = t.lane % 4;

    base = dsa_smem(smem);
    probs = base + dsa_dense_fp8_size_t<N>::probs;
    pages = a.d.slot + job.row * a.d.ld_slot + job.first;

    if (threadIdx.x == 0) {
        for (n = 0; n < dsa_dense_fp8_size_t<N>::slots && n < job.count * 4;
             n++)
        {
            dsa_dense_fp8_load<N>(map, smem, share, n, pages[n / 4]);
        }
    }

    dsa_dense_fp8_query<N>(a.d, job.row, job.group * DSA_FP8_QUERIES,
                           job.queries, base);
    dsa_fence_async();
    __syncthreads();

    slack = DSA_DECODE_SLACK / a.d.scale;
    dq = dsa_wgmma_desc(base, 1, 16, 1024);
    dp = dsa_wgmma_desc(probs, 1, 16, 1024);

#pragma unroll
    for (j = 0; j < N / 4; j++) {
        m[j] = DSA_DECODE_NONE;
        l[j] = 0;
    }

#pragma unroll
    for (i = 0; i < 8; i++) {
#pragma unroll
        for (j = 0; j < N / 2; j++) {
            o[i][j] = 0;
        }
    }

    page[1] = 1 < job.count ? pages[1] : 0;

#pragma unroll 1
    for (i = 0; i < job.count; i++) {
        first = (int32_t) (i * DSA_DECODE_KEYS);
        page[0] = page[1];
        page[1] = i + 2 < job.count ? pages[i + 2] : 0;

        at = dsa_dense_fp8_wait<N>(base, share, i * 4 + t.warp);

        /* Without this the compiler keeps sums of these in registers. */

        asm volatile ("" : "+l"(dq), "+l"(dp));

        if (job.low > first || job.end < first + DSA_DECODE_KEYS) {
            j = t.warp * DSA_FP8_QUARTER;
            dsa_dense_fp8_clear(at, job.low - first - (int32_t) j,
                                job.end - first - (int32_t) j, t.lane);
        }

        dsa_dense_fp8_scores<N>(s, at + dsa_dense_fp8_key(t.group, 0)
                                        * DSA_CUDA_RECORD + t.quad * 16, dq);

        if (job.low > first || job.limit < first + DSA_DECODE_KEYS) {
            dsa_dense_fp8_hide<N>(a, job, s, &t, i);
        }

        need = 0;

#pragma unroll
        for (j = 0; j < N / 2; j++) {
            need |= s[j] > m[(j >> 2) * 2 + (j & 1)] + slack;
        }

        if (dsa_decode_bar_or(DSA_BAR_GROUP, DSA_FP8_THREADS, need)) {

            /* rare after the first step */

            dsa_dense_fp8_raise<N>(s, o, m, l, a.d.scale, slack, share, &t);
        }

        dsa_dense_fp8_weights<N>(s, m, l, a.d.scale, probs, &t);
        dsa_fence_async();
        __syncthreads();

        dsa_dense_fp8_values<N>(job, o, map, smem, share, &t, dp, i, page);
    }

    dsa_dense_fp8_store<N>(a, job, o, m, l, share, &t);
}


static __global__ void
__launch_bounds__(DSA_FP8_THREADS, 2)
dsa_dense_fp8(const __grid_constant__ CUtensorMap map,
    const __grid_constant__ dsa_dense_t a)
{
    uint32_t                  n;
    dsa_dense_job_t           job;
    dsa_dense_fp8_shared_t   *share;
    extern __shared__ __align__(1024) uint8_t  dsa_decode_smem[];

    share = (dsa_dense_fp8_shared_t *) (dsa_decode_smem + DSA_FP8_SHARED
                                        - DSA_FP8_STATE);

    asm volatile ("griddepcontrol.launch_dependents;");

    job = dsa_dense_only(a);

    if (job.count == 0) {
        return;
    }

    if (threadIdx.x == 0) {
        for (n = 0; n < DSA_FP8_SLOTS; n++) {
            dsa_mbar_init(&share->full[n], 1);
        }

        dsa_mbar_fence_init();
    }

    __syncthreads();

    n = job.queries - job.group * DSA_FP8_QUERIES;

    if (n <= 16) {
        dsa_dense_fp8_part<16>(a, job, &map, dsa_decode_smem, share);

    } else if (n <= 24) {
        dsa_dense_fp8_part<24>(a, job, &map, dsa_decode_smem, share);

    } else {
        dsa_dense_fp8_part<32>(a, job, &map, dsa_decode_smem, share);
    }
}


#endif /* _DSA_ATTENTION_DENSE_FP8_CUH_INCLUDED_ */
