
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_GEMM_FP8_KERNEL_CUH_INCLUDED_
#define _DSA_GEMM_FP8_KERNEL_CUH_INCLUDED_


#include "gemm_many.cuh"


/*
 * Sums of a tile of many rows, e4m3 with block scales.
 *
 *     - The tensor core sums 128 of in, which have one scale of either
 *       operand; the rest is added in float32 registers in the order of in.
 *     - The additions must not hold up the tensor cores.  If the registers
 *       suffice, a warpgroup has two accumulators: the next product runs while
 *       one is added.  Otherwise the other warpgroup multiplies meanwhile.
 */


/*
 * The scales of a tile's weights: each lane has those of one of 32 blocks of
 * in.  They are read one step ahead, across tiles.
 */

template <typename T>
struct dsa_fp8_weights_t {
    float               now[T::SCALES];
    float               ahead[T::SCALES];
};


template <typename T>
static __device__ __forceinline__ void
dsa_fp8_ahead(dsa_fp8_weights_t<T> *w, const dsa_many_args_t *a,
    uint32_t feature, uint32_t k)
{
    int32_t   i;
    uint32_t  b;

    k += threadIdx.x % 32;

#pragma unroll
    for (i = 0; i < T::SCALES; i++) {
        b = feature / 128 + i;

        w->ahead[i] = k < a->blocks && b * 128 < a->out
                      ? __ldg(a->w_scale + (size_t) b * a->blocks + k) : 0;
    }
}


/* Called for each block k of in. */

template <typename T>
static __device__ __forceinline__ void
dsa_fp8_advance(dsa_fp8_weights_t<T> *w, const dsa_many_args_t *a,
    const dsa_many_tile_t *tile, const dsa_many_tile_t *next, uint32_t k)
{
    int32_t  i;

    if (k % 32 != 0) {
        return;
    }

#pragma unroll
    for (i = 0; i < T::SCALES; i++) {
        w->now[i] = w->ahead[i];
    }

    if (k + 32 < a->blocks) {
        dsa_fp8_ahead<T>(w, a, tile->feature, k + 32);

    } else {
        dsa_fp8_ahead<T>(w, a, next->feature, 0);
    }
}


/* The scales of this thread's two rows times those of the weights. */

template <typename T>
static __device__ __forceinline__ void
dsa_fp8_scales(float (*v)[2], const float *scale,
    const dsa_fp8_weights_t<T> *w, uint32_t k)
{
    float    ws, r[2];
    int32_t  i;

    r[0] = scale[0];
    r[1] = scale[8];

#pragma unroll
    for (i = 0; i < T::SCALES; i++) {
        ws = __shfl_sync(0xffffffff, w->now[i], k % 32);
        v[i][0] = r[0] * ws;
        v[i][1] = r[1] * ws;
    }
}


/*
 * sum += acc * v.  The first split parts of 32 features have the first block's
 * scale.
 */

template <typename T>
static __device__ __forceinline__ void
dsa_fp8_add(float *sum, const float *acc, const float (*v)[2], int32_t split)
{
    float    r[2];
    int32_t  i, j;

#pragma unroll
    for (i = 0; i < T::N / 32; i++) {
        r[0] = v[0][0];
        r[1] = v[0][1];

        if (T::SCALES == 2 && i > 0) {
            r[0] = i < split ? v[0][0] : v[T::SCALES - 1][0];
            r[1] = i < split ? v[0][1] : v[T::SCALES - 1][1];
        }

#pragma unroll
        for (j = i * 16; j < i * 16 + 16; j++) {
            sum[j] = fmaf(acc[j], r[j / 2 % 2], sum[j]);
        }
    }
}


/* Computes the tiles of a warpgroup with one accumulator. */

template <typename T>
static __device__ __forceinline__ void
dsa_fp8_multiply(typename T::smem_t *s, const dsa_many_args_t *a,
    uint32_t group)
{
    float                 acc[T::N / 2], sum[T::WAVES][T::N / 2];
    float                 v[T::SCALES][2];
    int32_t               i, split;
    uint32_t              k, t, row, line;
    dsa_many_tile_t        tile, next;
    dsa_many_ring_t        r;
    dsa_fp8_weights_t<T>  w;

    row = group * T::WAVES * 64;
    line = row + threadIdx.x % DSA_MANY_GROUP / 32 * 16;
    t = blockIdx.x / T::CLUSTER;
    next = dsa_many_tile<T>(a, t);
    dsa_fp8_ahead<T>(&w, a, next.feature, 0);

    r.stage = 0;
    r.phase = 0;

    while (t < a->tiles) {
        t += gridDim.x / T::CLUSTER;
        tile = next;
        next = dsa_many_tile<T>(a, t);
        split = (128 - tile.feature % 128) / 32;

#pragma unroll
        for (i = 0; i < T::WAVES; i++) {
            dsa_many_zero<T>(sum[i]);
        }

        for (k = 0; k < a->blocks; k++) {
            dsa_fp8_advance<T>(&w, a, &tile, &next, k);
            dsa_mbar_wait(&s->full[r.stage], r.phase);

#pragma unroll
            for (i = 0; i < T::WAVES; i++) {
                dsa_wgmma_e4m3_block<T::N>(acc,
                                    dsa_many_x<T>(s, r.stage, row + i * 64),
                                    dsa_many_w<T>(s, r.stage));

                dsa_fp8_scales<T>(v, s->scale[r.stage] + line + i * 64
                                     + threadIdx.x % 32 / 4, &w, k);

                dsa_wgmma_wait<0>();
                dsa_wgmma_keep<T::N>(acc);

                if (i + 1 == T::WAVES) {
                    dsa_many_release<T>(&s->empty[r.stage]);
                }

                dsa_fp8_add<T>(sum[i], acc, v, split);
            }

            dsa_many_next<T>(&r);
        }

#pragma unroll
        for (i = 0; i < T::WAVES; i++) {
            dsa_many_store<T>(&s->y[group][line % 64], a, sum[i],
                             tile.row + line + i * 64, tile.feature);
        }
    }
}


/* Starts the product of the next stage after it was loaded. */

template <typename T>
static __device__ __forceinline__ void
dsa_fp8_start(float *acc, typename T::smem_t *s, dsa_many_ring_t *r,
    uint32_t group)
{
    dsa_mbar_wait(&s->full[r->stage], r->phase);
    dsa_wgmma_e4m3_block<T::N>(acc, dsa_many_x<T>(s, r->stage, group * 64),
                               dsa_many_w<T>(s, r->stage));
    dsa_many_next<T>(r);
}


/*
 * Ends the product of a stage, after which PENDING more were started, and adds
 * it to sum.
 */

template <typename T, int PENDING>
static __device__ __forceinline__ void
dsa_fp8_end(float *sum, float *acc, typename T::smem_t *s, uint32_t *stage,
    uint32_t line, const dsa_fp8_weights_t<T> *w, uint32_t k, int32_t split)
{
    float  v[T::SCALES][2];

    dsa_fp8_scales<T>(v, s->scale[*stage] + line + threadIdx.x % 32 / 4, w, k);

    dsa_wgmma_wait<PENDING>();
    dsa_wgmma_keep<T::N>(acc);
    dsa_many_release<T>(&s->empty[*stage]);
    dsa_fp8_add<T>(sum, acc, v, split);

    *stage = *stage + 1 == T::STAGES ? 0 : *stage + 1;
}


/* If block k of in is the last one of a segment, adds sum to all. */

template <typename T>
static __device__ __forceinline__ void
dsa_fp8_join(float *all, float *sum, const dsa_many_args_t *a, uint32_t k)
{
    int32_t  i;

    if constexpr (T::SEGMENTS > 1) {
        if (k + 1 == a->blocks / a->segments || k + 1 == a->blocks) {
#pragma unroll
            for (i = 0; i < T::N / 2; i++) {
                all[i] += sum[i];
                sum[i] = 0;
            }
        }
    }
}


/* Computes the tiles of a warpgroup with two accumulators. */

template <typename T>
static __device__ __forceinline__ void
dsa_fp8_multiply_double(typename T::smem_t *s, const dsa_many_args_t *a,
    uint32_t group)
{
    float                 acc[T::N / 2], other[T::N / 2], sum[T::N / 2];
    float                 all[T::SEGMENTS > 1 ? T::N / 2 : 1];
    int32_t               split;
    uint32_t              k, t, line, stage;
    dsa_many_tile_t        tile, next;
    dsa_many_ring_t        r;
    dsa_fp8_weights_t<T>  w;

    line = group * 64 + threadIdx.x % DSA_MANY_GROUP / 32 * 16;
    t = blockIdx.x / T::CLUSTER;
    next = dsa_many_tile<T>(a, t);
    dsa_fp8_ahead<T>(&w, a, next.feature, 0);

    r.stage = 0;
    r.phase = 0;
    stage = 0;

    while (t < a->tiles) {
        t += gridDim.x / T::CLUSTER;
        tile = next;
        next = dsa_many_tile<T>(a, t);
        split = (128 - tile.feature % 128) / 32;

        dsa_many_zero<T>(sum);

        if (T::SEGMENTS > 1) {
            dsa_many_zero<T>(all);
        }

        dsa_fp8_start<T>(acc, s, &r, group);

        for (k = 0; k + 2 < a->blocks; k += 2) {
            dsa_fp8_advance<T>(&w, a, &tile, &next, k);

            dsa_fp8_start<T>(other, s, &r, group);
            dsa_fp8_end<T, 1>(sum, acc, s, &stage, line, &w, k, split);
            dsa_fp8_join<T>(all, sum, a, k);

            dsa_fp8_start<T>(acc, s, &r, group);
            dsa_fp8_end<T, 1>(sum, other, s, &stage, line, &w, k + 1, split);
            dsa_fp8_join<T>(all, sum, a, k + 1);
        }

        dsa_fp8_advance<T>(&w, a, &tile, &next, k);

        if (k + 1 < a->blocks) {
            dsa_fp8_start<T>(other, s, &r, group);
            dsa_fp8_end<T, 1>(sum, acc, s, &stage, line, &w, k, split);
            dsa_fp8_join<T>(all, sum, a, k);
            dsa_fp8_end<T, 0>(sum, other, s, &stage, line, &w, k + 1, split);
            dsa_fp8_join<T>(all, sum, a, k + 1);

        } else {
            dsa_fp8_end<T, 0>(sum, acc, s, &stage, line, &w, k, split);
            dsa_fp8_join<T>(all, sum, a, k);
        }

        dsa_many_store<T>(&s->y[group][line % 64], a,
                         T::SEGMENTS > 1 ? all : sum, tile.row + line,
                         tile.feature);
    }
}


template <typename T>
static __device__ __forceinline__ void
dsa_fp8_multiply_wave(typename T::smem_t *s, const dsa_many_args_t *a,
    uint32_t group)
{
    if constexpr (T::N <= 128) {
        dsa_fp8_multiply_double<T>(s, a, group);

    } else {
        dsa_fp8_multiply<T>(s, a, group);
    }
}


#endif /* _DSA_GEMM_FP8_KERNEL_CUH_INCLUDED_ */
