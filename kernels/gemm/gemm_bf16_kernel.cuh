
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_GEMM_BF16_KERNEL_CUH_INCLUDED_
#define _DSA_GEMM_BF16_KERNEL_CUH_INCLUDED_


#include "gemm_many.cuh"


/*
 * Sums of a tile of many rows, BF16.
 *
 * The tensor core adds all of a segment of in to one accumulator, and the
 * product of a stage begins before that of the previous one has ended.  The
 * sums of segments are added in the order of in, as gemm_decode.cu does, so
 * that the bits are the same.
 */


/* Adds the sums of a segment to all, and begins the next one with zeros. */

template <typename T>
static __device__ __forceinline__ void
dsa_bf16_join(float (*all)[T::N / 2], float (*acc)[T::N / 2])
{
    int32_t  i, j;

#pragma unroll
    for (i = 0; i < T::WAVES; i++) {
#pragma unroll
        for (j = 0; j < T::N / 2; j++) {
            all[i][j] += acc[i][j];
            acc[i][j] = 0;
        }
    }
}


/* Sums the stages of n blocks of in. */

template <typename T>
static __device__ __forceinline__ void
dsa_bf16_sum(float (*acc)[T::N / 2], typename T::smem_t *s,
    dsa_many_ring_t *r, uint32_t n, uint32_t row)
{
    int32_t   i;
    uint32_t  k, last;

    for (k = 0, last = 0; k < n; k++) {
        dsa_mbar_wait(&s->full[r->stage], r->phase);
        dsa_wgmma_fence();

#pragma unroll
        for (i = 0; i < T::WAVES; i++) {
            dsa_wgmma_bf16_block<T::N>(acc[i],
                                    dsa_many_x<T>(s, r->stage, row + i * 64),
                                    dsa_many_w<T>(s, r->stage));
        }

        dsa_wgmma_commit();

        /* the previous stage has been read */

        dsa_wgmma_wait<1>();

        if (k > 0) {
            dsa_many_release<T>(&s->empty[last]);
        }

        last = r->stage;
        dsa_many_next<T>(r);
    }

    dsa_wgmma_wait<0>();

#pragma unroll
    for (i = 0; i < T::WAVES; i++) {
        dsa_wgmma_keep<T::N>(acc[i]);
    }

    dsa_many_release<T>(&s->empty[last]);
}


/* Computes the tiles of a warpgroup. */

template <typename T>
static __device__ __forceinline__ void
dsa_bf16_multiply(typename T::smem_t *s, const dsa_many_args_t *a,
    uint32_t group)
{
    float            acc[T::WAVES][T::N / 2];
    float            all[T::WAVES][T::SEGMENTS > 1 ? T::N / 2 : 1];
    int32_t          i;
    uint32_t         t, row, line, segment, begin, end;
    dsa_many_tile_t  tile;
    dsa_many_ring_t  r;

    row = group * T::WAVES * 64;
    line = row + threadIdx.x % DSA_MANY_GROUP / 32 * 16;

    r.stage = 0;
    r.phase = 0;

    for (t = blockIdx.x / T::CLUSTER; t < a->tiles;
         t += gridDim.x / T::CLUSTER)
    {
        tile = dsa_many_tile<T>(a, t);

#pragma unroll
        for (i = 0; i < T::WAVES; i++) {
            dsa_many_zero<T>(acc[i]);
        }

        if constexpr (T::SEGMENTS == 1) {
            dsa_bf16_sum<T>(acc, s, &r, a->blocks, row);

        } else {
#pragma unroll
            for (i = 0; i < T::WAVES; i++) {
                dsa_many_zero<T>(all[i]);
            }

            for (segment = 0, begin = 0; segment < a->segments; segment++) {
                end = a->blocks * (segment + 1) / a->segments;
                dsa_bf16_sum<T>(acc, s, &r, end - begin, row);
                dsa_bf16_join<T>(all, acc);
                begin = end;
            }
        }

#pragma unroll
        for (i = 0; i < T::WAVES; i++) {
            if (a->f32) {
                dsa_many_store_f32<T>(a, T::SEGMENTS > 1 ? all[i] : acc[i],
                                      tile.row + line + i * 64, tile.feature);

            } else {
                dsa_many_store<T>(&s->y[group][line % 64], a,
                                  T::SEGMENTS > 1 ? all[i] : acc[i],
                                  tile.row + line + i * 64, tile.feature);
            }
        }
    }
}


#endif /* _DSA_GEMM_BF16_KERNEL_CUH_INCLUDED_ */
