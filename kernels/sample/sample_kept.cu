
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "kernels/core/rows.cuh"
#include "kernels/core/setup.cuh"
#include "sample.cuh"


/*
 * Writes the ids that the nucleus of a row keeps, as a bitmap.  A block
 * computes a row, and a thread one word of the bitmap at a time.  Of the ids
 * with the least weight the lowest ones are kept, so they are counted along
 * the row.
 */

#define DSA_KEPT_THREADS    1024
#define DSA_KEPT_WARPS      (DSA_KEPT_THREADS / 32)


/*
 * Sets bits for the 32 weights of a word: for those above least in above, and
 * for those equal to it in equal.
 */

static __device__ __forceinline__ void
dsa_kept_word(const float *weight, uint32_t least, uint32_t *above,
    uint32_t *equal)
{
    int       i, j;
    float4    f;
    uint32_t  u;

    *above = 0;
    *equal = 0;

#pragma unroll
    for (i = 0; i < 8; i++) {
        f = __ldcg((const float4 *) weight + i);

#pragma unroll
        for (j = 0; j < 4; j++) {
            u = __float_as_uint(((const float *) &f)[j]);
            *above |= (uint32_t) (u > least) << (4 * i + j);
            *equal |= (uint32_t) (u == least) << (4 * i + j);
        }
    }
}


static __global__ void __launch_bounds__(DSA_KEPT_THREADS, 1)
dsa_kept_kernel(uint32_t *kept, const dsa_cuda_sample_t *sample,
    const dsa_cuda_sample_row_t *in, const uint8_t *work, uint32_t vocab,
    uint32_t allowed)
{
    uint32_t      i, n, row, words, first, lane, warp, above, equal, before;
    uint32_t      least, ties, base, total;
    const float  *weight;

    __shared__ uint32_t  count[2][DSA_KEPT_WARPS];

    dsa_begin();

    row = blockIdx.x;

    if (!in[row].report || sample[row].kept != DSA_CUDA_KEPT_CUT) {
        return;
    }

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;
    words = (vocab + 31) / 32;
    weight = (const float *) (work + row * dsa_sample_row_size(vocab));
    least = sample[row].least;
    ties = sample[row].ties;
    base = 0;

    for (first = 0; first < words; first += DSA_KEPT_THREADS) {
        i = first + threadIdx.x;
        above = 0;
        equal = 0;

        if (i < (allowed + 31) / 32) {
            dsa_kept_word(weight + (size_t) i * 32, least, &above, &equal);
        }

        n = __popc(equal);
        before = dsa_sample_warp_count(n);

        /*
         * Use two arrays alternately, because a warp may be one round ahead of
         * another.
         */

        if (lane == 31) {
            count[first / DSA_KEPT_THREADS % 2][warp] = before + n;
        }

        __syncthreads();

        n = count[first / DSA_KEPT_THREADS % 2][lane];
        total = __reduce_add_sync(0xffffffff, n);
        before += base + __reduce_add_sync(0xffffffff, lane < warp ? n : 0);
        base += total;

        for ( /* void */ ; equal != 0 && before < ties; before++) {
            above |= equal & -equal;
            equal &= equal - 1;
        }

        if (i < words) {
            kept[(size_t) row * words + i] = above;
        }
    }
}


int
dsa_sample_kept_setup(void)
{
    return dsa_setup_load(dsa_kept_kernel);
}


extern "C" int
dsa_cuda_sample_kept(uint32_t *kept, const dsa_cuda_sample_t *sample,
    const dsa_cuda_sample_row_t *r, const void *work, uint32_t rows,
    uint32_t vocab, uint32_t allowed, dsa_stream_t stream)
{
    if (rows == 0) {
        return 0;
    }

    allowed = allowed < vocab ? allowed : vocab;

    return dsa_launch(dsa_kept_kernel, dim3(rows), DSA_KEPT_THREADS, 0,
                      stream, kept, sample, r, (const uint8_t *) work, vocab,
                      allowed);
}
