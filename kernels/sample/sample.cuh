
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SAMPLE_CUH_INCLUDED_
#define _DSA_SAMPLE_CUH_INCLUDED_


extern "C" {
#include "noise.h"
#include "sample.h"
}
#include "kernels/core/hopper.cuh"


/*
 * Shared by the files of sampling: the shared memory of a block, reading a
 * row, weights, and sums over a block.
 */

#define DSA_SAMPLE_THREADS  1024
#define DSA_SAMPLE_WARPS    (DSA_SAMPLE_THREADS / 32)
#define DSA_SAMPLE_BLOCKS   16          /* most of a cluster */
#define DSA_SAMPLE_CHUNK    512
#define DSA_SAMPLE_VECTORS  4           /* of a lane in a chunk */
#define DSA_SAMPLE_BINS     2048        /* two for each thread */
#define DSA_SAMPLE_CHUNKS   DSA_SAMPLE_THREADS
#define DSA_SAMPLE_ITEMS    (DSA_SAMPLE_MAX_TOP * DSA_SAMPLE_CHUNK)

/* 1.5 * 2^52: a number that is added to it is rounded to an integer */
#define DSA_SAMPLE_ROUND    6755399441055744.0


typedef struct {
    uint64_t            item[DSA_SAMPLE_ITEMS]; /* weight above id; or logit
                                                   mapped above ~id */
    uint64_t            greatest[DSA_SAMPLE_CHUNKS];    /* in item's order */
    double              sum[DSA_SAMPLE_CHUNKS];         /* weights */
    double              norm[DSA_SAMPLE_CHUNKS];        /* for logprobs */
    double              power[64];                      /* 2^(i/64) */
    uint32_t            high[DSA_SAMPLE_BINS];          /* halves of
                                                           mantissas */
    uint32_t            low[DSA_SAMPLE_BINS];           /* of the block; both
                                                           are merged as one
                                                           array */
    uint32_t            all[2 * DSA_SAMPLE_BINS];       /* of the cluster */
    uint32_t            equal[DSA_SAMPLE_CHUNKS];       /* weights equal to
                                                           the least */

    double              total[DSA_SAMPLE_WARPS];
    uint32_t            count[DSA_SAMPLE_WARPS];
    double              kept;           /* the sum of all kept weights */
    double              taken;          /* before the bin that was found */
    uint32_t            before;         /* equal weights before the chunk that
                                           was found */
    uint32_t            found;
    uint32_t            least;          /* the least kept weight; 0: all are
                                           kept */
    uint32_t            ties;           /* weights equal to it that are kept */
    uint32_t            end;            /* id from which they are cut off */
    uint32_t            n_items;        /* more than ITEMS: not listed */
    uint32_t            token;
    uint32_t            top_chunk[DSA_SAMPLE_MAX_TOP];
    unsigned long long  drawn;          /* quotient above ~id: noise.h */
    unsigned long long  best;           /* penalized, in item's order */
    unsigned long long  best_raw;
    unsigned long long  bound;          /* of the top logprobs */
} dsa_sample_shared_t;


typedef struct {
    const float        *logits;
    float              *weight;         /* penalized logits before */
    const uint32_t     *bit;            /* a bit for each id that is penalized,
                                           biased or masked; or NULL */
    uint32_t            n;              /* allowed ids */
    uint32_t            aligned;
    uint32_t            first;          /* this block's chunks */
    uint32_t            end;
    uint32_t            part;           /* chunks of a block */
} dsa_sample_row_t;


/*
 * sample_penalize.cu.  Writes the logits of penalized and biased ids, minus
 * infinity for masked ids, and a bit for each of these ids, to the rows' work;
 * see dsa_cuda_sample() for the arguments.
 */
int dsa_sample_penalize(const dsa_cuda_sample_row_t *r, const float *logits,
    size_t ld, uint32_t rows, uint32_t vocab, uint32_t allowed,
    const uint32_t *history, const uint32_t *masks, const dsa_bias_t *biases,
    uint8_t *work, dsa_stream_t stream);


static inline __host__ __device__ size_t
dsa_sample_chunks(uint32_t vocab)
{
    return (vocab + DSA_SAMPLE_CHUNK - 1) / DSA_SAMPLE_CHUNK;
}


/*
 * Returns the bytes of work[] for a row: weights, then bits of the penalized
 * ids.
 */

static inline __host__ __device__ size_t
dsa_sample_row_size(uint32_t vocab)
{
    return dsa_sample_chunks(vocab)
           * (DSA_SAMPLE_CHUNK * sizeof(float) + DSA_SAMPLE_CHUNK / 8);
}


static __device__ __forceinline__ uint32_t
dsa_sample_penalizes(const dsa_cuda_sample_row_t *r, const uint32_t *history)
{
    return history != NULL && r->n_history != 0;
}


/* Returns the row's mask, or NULL. */

static __device__ __forceinline__ const uint32_t *
dsa_sample_mask(const dsa_cuda_sample_row_t *r, const uint32_t *masks,
    uint32_t vocab)
{
    return r->mask != 0 ? masks + (size_t) (r->mask - 1) * ((vocab + 31) / 32)
                        : NULL;
}


/* Loads four logits from id i on; NaN for ids that are not allowed. */

static __device__ __forceinline__ void
dsa_sample_raw(float *v, const dsa_sample_row_t *r, uint32_t i)
{
    int     j;
    float4  f;

    if (i + 4 <= r->n && r->aligned) {
        f = *(const float4 *) &r->logits[i];
        v[0] = f.x;
        v[1] = f.y;
        v[2] = f.z;
        v[3] = f.w;

    } else {
#pragma unroll
        for (j = 0; j < 4; j++) {
            v[j] = i + j < r->n ? r->logits[i + j] : __int_as_float(~0);
        }
    }
}


static __device__ __forceinline__ void
dsa_sample_penalized(float *v, const dsa_sample_row_t *r, uint32_t i)
{
    int       j;
    uint32_t  b;

    if (r->bit == NULL) {
        return;
    }

    b = r->bit[i / 32] >> i % 32;

#pragma unroll
    for (j = 0; j < 4; j++) {
        if (b >> j & 1) {
            v[j] = r->weight[i + j];
        }
    }
}


static __device__ __forceinline__ uint64_t
dsa_sample_warp_max(uint64_t v)
{
    uint32_t  high, low;

    high = __reduce_max_sync(0xffffffff, (uint32_t) (v >> 32));
    low = __reduce_max_sync(0xffffffff,
                            v >> 32 == high ? (uint32_t) v : 0);

    return (uint64_t) high << 32 | low;
}


/*
 * Returns the greatest x of a warp, with the lowest id among equals; 0 if
 * there is none.
 */

static __device__ __forceinline__ uint64_t
dsa_sample_warp_best(float x, uint32_t id)
{
    uint32_t  u, max;

    u = id != ~0U ? dsa_float_order(x) : 0;
    max = __reduce_max_sync(0xffffffff, u);
    id = __reduce_min_sync(0xffffffff, u == max ? id : ~0U);

    return max != 0 ? (uint64_t) max << 32 | ~id : 0;
}


/*
 * Returns 2^(y / 64), or 0 if it is too small for a float: 2^(n / 64) from a
 * table times the Taylor polynomial of the rest, |r| <= 1/2, with an error
 * below 1e-15.  y is d * scale, and |y| is less than 2^30.
 */

static __device__ __forceinline__ double
dsa_sample_exp(const double *power, double d, double scale)
{
    int     n;
    double  r, p;

    /* n is rounded to the nearest integer, in the low bits of the sum */

    p = __fma_rn(d, scale, DSA_SAMPLE_ROUND);
    n = __double2loint(p);
    r = __fma_rn(d, scale, DSA_SAMPLE_ROUND - p);

    p = 1.2417843701716923e-12;
    p = __fma_rn(p, r, 5.732851688640402e-10);
    p = __fma_rn(p, r, 2.1173137155464774e-07);
    p = __fma_rn(p, r, 5.864904955056169e-05);
    p = __fma_rn(p, r, 1.0830424696249145e-02);
    p = __fma_rn(p, r, 1.0);
    p *= power[n & 63];
    n >>= 6;

    return __hiloint2double(__double2hiint(p)
                            + ((n > -1000 ? n : -1000) << 20),
                            __double2loint(p));
}


/*
 * Computes the scale of dsa_sample_exp() for differences from the greatest
 * logit, and floor: weights of logits at and below floor are 0.  A logit that
 * differs from the greatest one is below it by at least half a unit in its
 * last place.  So with a very low temperature a bounded scale gives the same
 * weights, and keeps the products in range.
 */

static __device__ __forceinline__ void
dsa_sample_scale(float greatest, float temperature, float *floor,
    double *scale)
{
    double  unit, most, inverse;

    unit = fmax(fabs((double) greatest) * 0x1p-23, 0x1p-149);
    most = 1e6 / unit;
    inverse = 1 / (double) temperature;
    inverse = inverse < most ? inverse : most;

    *floor = __fadd_rd(greatest, -110 * fminf(temperature, 1e36f));
    *scale = inverse * (64 * 1.4426950408889634);
}


static __device__ __forceinline__ double
dsa_sample_warp_sum(double v)
{
    int  i;

#pragma unroll
    for (i = 16; i > 0; i >>= 1) {
        v += __shfl_xor_sync(0xffffffff, v, i);
    }

    return v;
}


/* Returns the sum of v over the lanes before this one. */

static __device__ __forceinline__ double
dsa_sample_warp_before(double v)
{
    int       i;
    double    n;
    uint32_t  lane;

    lane = threadIdx.x % 32;

#pragma unroll
    for (i = 1; i < 32; i <<= 1) {
        n = __shfl_up_sync(0xffffffff, v, i);
        v += lane >= (uint32_t) i ? n : 0;
    }

    n = __shfl_up_sync(0xffffffff, v, 1);

    return lane > 0 ? n : 0;
}


static __device__ __forceinline__ uint32_t
dsa_sample_warp_count(uint32_t v)
{
    int       i;
    uint32_t  n, sum, lane;

    lane = threadIdx.x % 32;
    sum = v;

#pragma unroll
    for (i = 1; i < 32; i <<= 1) {
        n = __shfl_up_sync(0xffffffff, sum, i);
        sum += lane >= (uint32_t) i ? n : 0;
    }

    return sum - v;
}


/*
 * Returns the sum of v over the threads before this one; total is that over
 * all threads.
 */

static __device__ __forceinline__ double
dsa_sample_before(dsa_sample_shared_t *s, double v, double *total)
{
    double    before, n;
    uint32_t  lane, warp;

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;

    __syncthreads();

    before = dsa_sample_warp_before(v);

    if (lane == 31) {
        s->total[warp] = before + v;
    }

    __syncthreads();

    n = dsa_sample_warp_before(s->total[lane]);
    *total = __shfl_sync(0xffffffff, n, 31) + s->total[31];

    return __shfl_sync(0xffffffff, n, warp) + before;
}


static __device__ __forceinline__ uint32_t
dsa_sample_before_count(dsa_sample_shared_t *s, uint32_t v)
{
    uint32_t  before, lane, warp;

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;

    before = dsa_sample_warp_count(v);

    if (lane == 31) {
        s->count[warp] = before + v;
    }

    __syncthreads();

    return before + __reduce_add_sync(0xffffffff,
                                      lane < warp ? s->count[lane] : 0);
}


/* Returns the mantissa of a weight, including the leading bit. */

static __device__ __forceinline__ uint32_t
dsa_sample_mantissa(uint32_t bits)
{
    return (bits & 0x7fffff) | (bits > 0x7fffff ? 0x800000 : 0);
}


/* Adds the mantissa of a weight to a histogram. */

static __device__ __forceinline__ void
dsa_sample_count(uint32_t *high, uint32_t *low, uint32_t bits)
{
    uint32_t  m;

    m = dsa_sample_mantissa(bits);

    atomicAdd(high, m >> 12);
    atomicAdd(low, m & 0xfff);
}


/*
 * Begins the race of a thread: quotients that are less than the greatest one
 * that the block has found need not be computed.  An equal one of a lower id
 * has to win, so that the result does not depend on the order of the warps.
 */

static __device__ __forceinline__ void
dsa_sample_start(dsa_noise_race_t *race, const dsa_sample_shared_t *s)
{
    uint32_t  most;

    most = (uint32_t) (*(const volatile unsigned long long *) &s->drawn >> 32);
    dsa_noise_start(race, __uint_as_float(most != 0 ? most - 1 : 0));
}


/* Stores the winner of a warp, if the block has found none before it. */

static __device__ __forceinline__ void
dsa_sample_finish(dsa_sample_shared_t *s, const dsa_noise_race_t *race)
{
    uint64_t  drawn;

    if (!__any_sync(0xffffffff, race->id != UINT32_MAX)) {
        return;
    }

    drawn = race->id != UINT32_MAX
            ? (uint64_t) __float_as_uint(race->most) << 32 | ~race->id : 0;
    drawn = dsa_sample_warp_max(drawn);

    if (threadIdx.x % 32 == 0) {
        atomicMax(&s->drawn, (unsigned long long) drawn);
    }
}


/* Returns the value of a sum of mantissas of weights with this exponent. */

static __device__ __forceinline__ double
dsa_sample_value(uint32_t high, uint32_t low, uint32_t exponent)
{
    exponent = exponent > 0 ? exponent : 1;

    return (double) (((uint64_t) high << 12) + low)
           * __hiloint2double((int) (exponent - 150 + 1023) << 20, 0);
}


#endif /* _DSA_SAMPLE_CUH_INCLUDED_ */
