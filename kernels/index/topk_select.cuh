
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The selection of topk.cu in one block: a bound from a sample, the words that
 * reach it, and the choice of the greatest; and the same without a bound, for
 * rows of which the sample was not representative.
 */


#ifndef _DSA_TOPK_SELECT_CUH_INCLUDED_
#define _DSA_TOPK_SELECT_CUH_INCLUDED_


#include "kernels/core/rows.cuh"


#define DSA_TOPK_MAX_WARPS  16
#define DSA_TOPK_BLOCKS     16          /* most of a cluster */
#define DSA_TOPK_ROOM       6144        /* words that are kept */
#define DSA_TOPK_ROOM_40K   4000        /* of rows of up to 40K keys */
#define DSA_TOPK_BITS       11          /* of a histogram's digit */
#define DSA_TOPK_BINS       (1 << DSA_TOPK_BITS)
#define DSA_TOPK_RANKED     128         /* words ranked by comparison */
#define DSA_TOPK_MAX_K      2048
#define DSA_TOPK_SAMPLE     2           /* vectors of 4 a thread */
#define DSA_TOPK_FLIGHT     2048        /* vectors of a block in flight */

/* a bit for each key fits into the memory of the words */
#define DSA_TOPK_MAX_KEYS   (DSA_TOPK_ROOM * 64)


/* Shared memory.  The words follow, and then the bits of positions. */

typedef struct {
    uint64_t            ranked[DSA_TOPK_RANKED];
    uint32_t            bin[DSA_TOPK_BINS];     /* the greatest first */
    uint32_t            total[DSA_TOPK_MAX_WARPS];
    uint32_t            n;                      /* words that reach the bound,
                                                   kept or not */
    uint32_t            below;                  /* negative NaNs */
    uint32_t            max;                    /* of their scores, mapped */
    uint32_t            n_ranked;
    uint32_t            found;                  /* the bin that was found */
    uint32_t            before;                 /* words in bins before it */
    uint32_t            count;                  /* words in it */
    uint32_t            room;
    uint32_t           *bit;
    uint64_t            word[];
} dsa_topk_shared_t;


/*
 * Returns the exclusive sum of v over the threads.  It has one barrier;
 * total[] may be written again after the next one.
 */

static __device__ __forceinline__ uint32_t
dsa_topk_scan(dsa_topk_shared_t *s, uint32_t v)
{
    int       i;
    uint32_t  lane, warp, sum, n;

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;
    sum = v;

#pragma unroll
    for (i = 1; i < 32; i <<= 1) {
        n = __shfl_up_sync(0xffffffff, sum, i);
        sum += lane >= (uint32_t) i ? n : 0;
    }

    if (lane == 31) {
        s->total[warp] = sum;
    }

    __syncthreads();

    n = lane < warp ? s->total[lane] : 0;

    return sum - v + __reduce_add_sync(0xffffffff, n);
}


/*
 * Stores in found, before and count the bin that has the need-th word, 1 <=
 * need <= the number of all words counted.  The bins are zero afterwards.
 * Called between barriers.
 */

template <int THREADS>
static __device__ __forceinline__ void
dsa_topk_find(dsa_topk_shared_t *s, uint32_t need)
{
    int       i;
    uint4     v;
    uint32_t  before, sum, c[DSA_TOPK_BINS / THREADS];

    const int  each = DSA_TOPK_BINS / THREADS;

    __syncthreads();

    sum = 0;

#pragma unroll
    for (i = 0; i < each; i += 4) {
        v = *(uint4 *) &s->bin[threadIdx.x * each + i];
        *(uint4 *) &s->bin[threadIdx.x * each + i] = make_uint4(0, 0, 0, 0);

        c[i] = v.x;
        c[i + 1] = v.y;
        c[i + 2] = v.z;
        c[i + 3] = v.w;
        sum += v.x + v.y + v.z + v.w;
    }

    before = dsa_topk_scan(s, sum);

#pragma unroll
    for (i = 0; i < each; i++) {
        if (before < need && before + c[i] >= need) {
            s->found = threadIdx.x * each + i;
            s->before = before;
            s->count = c[i];
        }

        before += c[i];
    }

    __syncthreads();
}


/*
 * Returns the bound for a row of n > s->room scores: the leading bits of the
 * sampled score whose rank is five standard deviations of a binomial
 * distribution beyond that of k.  So many are needed because adjacent scores
 * are similar.
 */

template <int THREADS>
static __device__ __forceinline__ uint32_t
dsa_topk_bound(dsa_topk_shared_t *s, const float4 *score, uint32_t n,
    uint32_t k)
{
    int       i, j;
    float     rank;
    float4    v;
    uint32_t  u[4 * DSA_TOPK_SAMPLE], first, need, vectors;

    const int  each = 4 * DSA_TOPK_SAMPLE;
    const int  sample = each * THREADS;
    const int  shift = 32 - DSA_TOPK_BITS;
    const int  rest = 32 - 2 * DSA_TOPK_BITS;

    vectors = n / 4;

#pragma unroll
    for (i = 0; i < each; i += 4) {
        j = i / 4 * THREADS + threadIdx.x;
        v = score[(uint32_t) ((uint64_t) j * vectors / (sample / 4))];
        u[i] = dsa_float_order(v.x);
        u[i + 1] = dsa_float_order(v.y);
        u[i + 2] = dsa_float_order(v.z);
        u[i + 3] = dsa_float_order(v.w);
    }

    rank = (float) k * sample / n;
    need = (uint32_t) (rank + 5 * sqrtf(rank) + 8);
    need = need < sample ? need : sample;

#pragma unroll
    for (i = 0; i < each; i++) {
        atomicAdd(&s->bin[DSA_TOPK_BINS - 1 - (u[i] >> shift)], 1);
    }

    dsa_topk_find<THREADS>(s, need);

    first = DSA_TOPK_BINS - 1 - s->found;
    need -= s->before;

#pragma unroll
    for (i = 0; i < each; i++) {
        if (u[i] >> shift == first) {
            atomicAdd(&s->bin[DSA_TOPK_BINS - 1
                              - (u[i] >> rest & (DSA_TOPK_BINS - 1))], 1);
        }
    }

    dsa_topk_find<THREADS>(s, need);

    return first << shift | (DSA_TOPK_BINS - 1 - s->found) << rest;
}


/* Loads a thread's vectors from first on, up to end. */

template <int THREADS>
static __device__ __forceinline__ void
dsa_topk_load(float4 *v, const float4 *score, uint32_t first, uint32_t end)
{
    int       i;
    uint32_t  p;

    const int  batch = DSA_TOPK_FLIGHT / THREADS;

#pragma unroll
    for (i = 0; i < batch; i++) {
        p = first + i * THREADS + threadIdx.x;
        v[i] = p < end ? __ldcs(&score[p]) : make_float4(0, 0, 0, 0);
    }
}


/*
 * Keeps the scores that reach the bound, of vectors first .. end-1 of a row;
 * the first vectors have been loaded.  Scores are compared as floats, so that
 * NaNs of both signs are kept, and are mapped only if they are kept, because
 * the time of a long row is the time of this loop.
 */

template <int THREADS>
static __device__ __forceinline__ void
dsa_topk_keep(dsa_topk_shared_t *s, float4 *v, const float4 *score,
    uint32_t first, uint32_t end, uint32_t n, uint32_t bound)
{
    int       i;
    float     least;
    uint32_t  u, p, at, max, hit, sum, lane, below;

    const int  batch = DSA_TOPK_FLIGHT / THREADS;

    lane = threadIdx.x % 32;
    least = dsa_order_float(bound);
    n = n < 4 * end ? n : 4 * end;

    while (first < end) {
        hit = 0;

#pragma unroll
        for (i = 0; i < batch; i++) {
            hit |= v[i].x < least ? 0 : 1U << (4 * i);
            hit |= v[i].y < least ? 0 : 2U << (4 * i);
            hit |= v[i].z < least ? 0 : 4U << (4 * i);
            hit |= v[i].w < least ? 0 : 8U << (4 * i);
        }

        p = 4 * (first + threadIdx.x);
        first += DSA_TOPK_FLIGHT;

        if (4 * first > n) {

            /* the last vectors of a part */

#pragma unroll
            for (i = 0; i < 4 * batch; i++) {
                if (p + i / 4 * 4 * THREADS + i % 4 >= n) {
                    hit &= ~(1U << i);
                }
            }
        }

        sum = __popc(hit);

#pragma unroll
        for (i = 1; i < 32; i <<= 1) {
            at = __shfl_up_sync(0xffffffff, sum, i);
            sum += lane >= (uint32_t) i ? at : 0;
        }

        at = 0;

        if (lane == 31 && sum != 0) {
            at = atomicAdd(&s->n, sum);
        }

        at = __shfl_sync(0xffffffff, at, 31) + sum - __popc(hit);

        if (__shfl_sync(0xffffffff, at + __popc(hit), 31) <= s->room) {

#pragma unroll
            for (i = 0; i < 4 * batch; i++) {
                if (hit & 1U << i) {
                    u = __float_as_uint(i % 4 == 0 ? v[i / 4].x
                                        : i % 4 == 1 ? v[i / 4].y
                                        : i % 4 == 2 ? v[i / 4].z
                                        : v[i / 4].w);
                    s->word[at] = (uint64_t) u << 32
                                  | ~(p + i / 4 * 4 * THREADS + i % 4);
                    at++;
                }
            }
        }

        dsa_topk_load<THREADS>(v, score, first, end);
    }

    __syncthreads();

    sum = s->n;
    max = 0;
    below = 0;

    if (sum <= s->room) {
        for (i = threadIdx.x; i < (int) sum; i += THREADS) {
            u = dsa_float_order(__uint_as_float((uint32_t) (s->word[i] >> 32)));
            s->word[i] = (uint64_t) u << 32 | (uint32_t) s->word[i];
            max = u > max ? u : max;
            below += u < bound;
        }
    }

    max = __reduce_max_sync(0xffffffff, max);
    below = __reduce_add_sync(0xffffffff, below);

    if (lane == 0) {
        atomicMax(&s->max, max);

        if (below != 0) {
            atomicAdd(&s->below, below);
        }
    }
}


static __device__ __forceinline__ void
dsa_topk_mark(dsa_topk_shared_t *s, uint64_t word)
{
    uint32_t  p;

    p = ~(uint32_t) word;
    atomicOr(&s->bit[p / 32], 1U << p % 32);
}


/*
 * Sets the bits of the k greatest of n >= k words, none of which is below
 * bound.
 */

template <int THREADS>
static __device__ __forceinline__ void
dsa_topk_choose(dsa_topk_shared_t *s, uint32_t n, uint32_t k, uint32_t bound,
    uint32_t max)
{
    int       shift;
    uint32_t  i, j, rank, bins;
    uint64_t  base, d, w;

    base = (uint64_t) bound << 32;
    bins = DSA_TOPK_BINS;
    shift = 64 - DSA_TOPK_BITS
            - __clzll((uint64_t) (max - bound) << 32 | 0xffffffff);

    for ( ;; ) {
        for (i = threadIdx.x; i < n; i += THREADS) {
            d = (s->word[i] - base) >> shift;

            if (s->word[i] >= base && d < bins) {
                atomicAdd(&s->bin[DSA_TOPK_BINS - 1 - d], 1);
            }
        }

        dsa_topk_find<THREADS>(s, k);

        /* k more words are needed, of base .. base + (1 << shift) - 1 */

        k -= s->before;
        base += (uint64_t) (DSA_TOPK_BINS - 1 - s->found) << shift;

        if (s->count == k || s->count <= DSA_TOPK_RANKED) {
            break;
        }

        bins = shift < DSA_TOPK_BITS ? 1U << shift : DSA_TOPK_BINS;
        shift = shift > DSA_TOPK_BITS ? shift - DSA_TOPK_BITS : 0;
    }

    for (i = threadIdx.x; i < n; i += THREADS) {
        w = s->word[i];

        if (w < base) {
            continue;
        }

        if ((w - base) >> shift != 0 || s->count == k) {
            dsa_topk_mark(s, w);

        } else {
            s->ranked[atomicAdd(&s->n_ranked, 1)] = w;
        }
    }

    __syncthreads();

    if (threadIdx.x < s->n_ranked) {
        w = s->ranked[threadIdx.x];
        rank = 0;

        for (j = 0; j < s->n_ranked; j++) {
            rank += s->ranked[j] > w;
        }

        if (rank < k) {
            dsa_topk_mark(s, w);
        }
    }

    __syncthreads();
}


/*
 * Counts the v of each lane that has one in a histogram.  If many scores are
 * equal, most lanes have the value of the first lane, and atomics on one
 * address would be serialized.  So the last value, *often, is counted in
 * *many, which is added to the histogram when another value follows.
 */

static __device__ __forceinline__ void
dsa_topk_count(uint32_t *bin, uint32_t v, int has, uint32_t *often,
    uint32_t *many)
{
    uint32_t  lanes, first, equal;

    lanes = __ballot_sync(0xffffffff, has);

    if (lanes == 0) {
        return;
    }

    first = __shfl_sync(0xffffffff, v, __ffs(lanes) - 1);
    equal = __ballot_sync(0xffffffff, has && v == first);

    if (first != *often) {
        if (threadIdx.x % 32 == 0 && *many != 0) {
            atomicAdd(&bin[*often], *many);
        }

        *often = first;
        *many = 0;
    }

    *many += __popc(equal);

    if (has && v != first) {
        atomicAdd(&bin[v], 1);
    }
}


/*
 * Counts a digit, the bits from shift on below mask, of a row's scores whose
 * bits in mask are those of known.  words: 32 scores each.
 */

template <int THREADS>
static __device__ __forceinline__ void
dsa_topk_digit(dsa_topk_shared_t *s, const float *score, uint32_t n,
    uint32_t words, uint32_t known, uint32_t mask, int shift)
{
    int       j, same, has[8];
    float     v[8];
    uint32_t  i, u, at, often, many, digit[8];

    often = 0;
    many = 0;

    for (i = threadIdx.x; i < words * 32; i += 8 * THREADS) {

#pragma unroll
        for (j = 0; j < 8; j++) {
            at = i + j * THREADS;
            v[j] = at < n ? score[at] : 0;
        }

        same = 1;

#pragma unroll
        for (j = 0; j < 8; j++) {
            u = dsa_float_order(v[j]);
            has[j] = i + j * THREADS < n && (u & mask) == known;
            digit[j] = DSA_TOPK_BINS - 1 - ((u & ~mask) >> shift);
            same &= has[j] && digit[j] == often;
        }

        if (__all_sync(0xffffffff, same)) {
            many += 8 * 32;
            continue;
        }

#pragma unroll
        for (j = 0; j < 8; j++) {
            dsa_topk_count(s->bin, digit[j], has[j], &often, &many);
        }
    }

    if (threadIdx.x % 32 == 0 && many != 0) {
        atomicAdd(&s->bin[often], many);
    }
}


/* Sets the bits of the k greatest of a row, digit by digit. */

template <int THREADS>
static __device__ __noinline__ void
dsa_topk_again(dsa_topk_shared_t *s, const float *score, uint32_t n,
    uint32_t k)
{
    int       shift;
    uint32_t  i, u, known, mask, words, each, w, c, b, *equal;

    known = 0;
    mask = 0;
    words = (n + 31) / 32;

    for (shift = 32 - DSA_TOPK_BITS; ; shift -= DSA_TOPK_BITS) {
        shift = shift < 0 ? 0 : shift;

        dsa_topk_digit<THREADS>(s, score, n, words, known, mask, shift);
        dsa_topk_find<THREADS>(s, k);

        k -= s->before;
        known |= (DSA_TOPK_BINS - 1 - s->found) << shift;
        mask = ~0U << shift;

        if (shift == 0) {
            break;
        }
    }

    /*
     * Select the scores above the k-th, and k of those equal to it, from the
     * lowest position on.
     */

    equal = (uint32_t *) s->word;

#pragma unroll 4
    for (i = threadIdx.x; i < words * 32; i += THREADS) {
        u = i < n ? dsa_float_order(score[i]) : 0;
        b = __ballot_sync(0xffffffff, i < n && u > known);
        c = __ballot_sync(0xffffffff, i < n && u == known);

        if (i % 32 == 0) {
            s->bit[i / 32] = b;
            equal[i / 32] = c;
        }
    }

    __syncthreads();

    each = (words + THREADS - 1) / THREADS;
    c = 0;

    for (i = 0; i < each; i++) {
        w = threadIdx.x * each + i;
        c += w < words ? __popc(equal[w]) : 0;
    }

    c = dsa_topk_scan(s, c);

    for (i = 0; i < each; i++) {
        w = threadIdx.x * each + i;

        for (b = w < words ? equal[w] : 0; b != 0 && c < k; b &= b - 1) {
            s->bit[w] |= b & -b;
            c++;
        }
    }

    __syncthreads();
}


#endif /* _DSA_TOPK_SELECT_CUH_INCLUDED_ */
