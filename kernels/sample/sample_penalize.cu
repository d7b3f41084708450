
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "kernels/core/setup.cuh"
#include "sample.cuh"


/* Returns the bits of word i of the ids below allowed that a mask excludes. */

static __device__ __forceinline__ uint32_t
dsa_sample_masked(const uint32_t *mask, uint32_t i, uint32_t allowed)
{
    uint32_t  below;

    if (mask == NULL || i * 32 >= allowed) {
        return 0;
    }

    below = allowed - i * 32 < 32 ? (1U << (allowed - i * 32)) - 1 : ~0U;

    return ~mask[i] & below;
}


/*
 * Returns a logit less the penalties of an id that occurs n times.  When a
 * subtraction changes nothing, those that follow would not, either.
 */

static __device__ __forceinline__ float
dsa_sample_subtract(float logit, uint32_t n, const dsa_sampling_t *p)
{
    float     x, y;
    uint32_t  j;

    x = isnan(logit) ? -INFINITY : logit;

    if (n != 0 && p->presence_penalty != 0 && x == logit) {
        x -= p->presence_penalty;
    }

    if (p->frequency_penalty != 0) {
        for (j = 0; j < n; j++) {
            y = x - p->frequency_penalty;

            if (y == x) {
                break;
            }

            x = y;
        }
    }

    return x;
}


/*
 * Writes the penalized logits of a row in place of its weights, and a bit for
 * each: logit - presence, once, then - frequency for each occurrence, rounded
 * after each subtraction, then + bias.  Masked ids get minus infinity.
 */

static __global__ void __launch_bounds__(512)
dsa_sample_penalize_kernel(const dsa_cuda_sample_row_t *in,
    const float *logits, size_t ld, uint32_t vocab, uint32_t allowed,
    const uint32_t *history, const uint32_t *masks, const dsa_bias_t *biases,
    uint8_t *work)
{
    float                  x;
    uint32_t               i, id, b, words, masked, n_history;
    uint32_t              *count, *bit;
    dsa_bias_t             bias;
    const uint32_t        *mask;
    dsa_sampling_t         p;
    dsa_cuda_sample_row_t  want;

    extern __shared__ __align__(16) uint8_t  shared[];

    want = in[blockIdx.x];
    p = want.sampling;

    mask = dsa_sample_mask(&want, masks, vocab);
    n_history = dsa_sample_penalizes(&want, history) ? want.n_history : 0;

    if (mask == NULL && n_history == 0 && want.n_bias == 0) {
        return;
    }

    logits += blockIdx.x * ld;
    history += want.history;
    work += blockIdx.x * dsa_sample_row_size(vocab);
    count = (uint32_t *) work;
    words = (uint32_t) dsa_sample_chunks(vocab) * DSA_SAMPLE_CHUNK / 32;
    bit = (uint32_t *) shared;

    for (i = threadIdx.x; i < words; i += blockDim.x) {
        bit[i] = 0;
    }

    __syncthreads();

    for (i = threadIdx.x; i < n_history; i += blockDim.x) {
        id = history[i];

        if (id < allowed) {
            atomicOr(&bit[id / 32], 1U << id % 32);
            atomicExch(&count[id], 0);
        }
    }

    for (i = threadIdx.x; i < want.n_bias; i += blockDim.x) {
        id = biases[want.bias + i].id;

        if (id < allowed) {
            atomicOr(&bit[id / 32], 1U << id % 32);
            atomicExch(&count[id], 0);
        }
    }

    __syncthreads();

    for (i = threadIdx.x; i < n_history; i += blockDim.x) {
        id = history[i];

        if (id < allowed) {
            atomicAdd(&count[id], 1);
        }
    }

    __syncthreads();

    for (i = threadIdx.x; i < words; i += blockDim.x) {
        masked = dsa_sample_masked(mask, i, allowed);

        ((uint32_t *) (work + words * 32 * sizeof(float)))[i] = bit[i]
                                                                | masked;

        for (b = masked; b != 0; b &= b - 1) {
            count[i * 32 + __ffs(b) - 1] = __float_as_uint(-INFINITY);
        }

        for (b = bit[i] & ~masked; b != 0; b &= b - 1) {
            id = i * 32 + __ffs(b) - 1;
            x = dsa_sample_subtract(logits[id], __ldcg(&count[id]), &p);
            count[id] = __float_as_uint(x);
        }
    }

    __syncthreads();

    for (i = threadIdx.x; i < want.n_bias; i += blockDim.x) {
        bias = biases[want.bias + i];

        if (bias.id < allowed) {
            x = __uint_as_float(__ldcg(&count[bias.id]));
            count[bias.id] = __float_as_uint(x + bias.bias);
        }
    }
}


int
dsa_sample_penalize_setup(void)
{
    return dsa_setup_shared(dsa_sample_penalize_kernel,
                            DSA_SAMPLE_CHUNKS * DSA_SAMPLE_CHUNK / 8);
}


int
dsa_sample_penalize(const dsa_cuda_sample_row_t *r, const float *logits,
    size_t ld, uint32_t rows, uint32_t vocab, uint32_t allowed,
    const uint32_t *history, const uint32_t *masks, const dsa_bias_t *biases,
    uint8_t *work, dsa_stream_t stream)
{
    size_t  size;

    size = dsa_sample_chunks(vocab) * DSA_SAMPLE_CHUNK / 8;

    dsa_sample_penalize_kernel<<<rows, 512, size, stream>>>(r, logits, ld,
                                vocab, allowed, history, masks, biases, work);

    return cudaGetLastError();
}
