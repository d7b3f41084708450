
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cooperative_groups.h>

extern "C" {
#include "indexer.h"
}
#include "kernels/core/rows.cuh"
#include "kernels/core/setup.cuh"

namespace cg = cooperative_groups;


/*
 * Selects the k greatest scores of a row.  A cluster of 1 .. 16 blocks
 * processes a row, and each block reads a part of it once:
 *
 *  1. All blocks read the same sample, 2048 or 4096 of the scores.  From it
 *     they compute a bound that somewhat more than k scores of the row should
 *     reach.
 *  2. Each block keeps the scores of its part that reach the bound in shared
 *     memory, as words of which no two are equal: the score mapped to an
 *     unsigned, above the complement of the position.
 *  3. The first block reads the words of the others.  The k greatest are among
 *     them if there are at least k.  A histogram over their range finds the
 *     narrow bin that has the k-th; the few words in it are compared with each
 *     other.
 *  4. Each chosen position sets a bit.  Counting the bits before a word gives
 *     the place of its positions, so that they are written in rising order.
 *
 * If fewer than k scores reach the bound, or more than there is room for (as
 * in a row of zeros), the sample was not representative.  Then the first block
 * reads the row again from the L2, once for each digit of the scores, so the
 * result is exact as well.
 *
 * With many rows, reading each once is the limit.  Then one block processes a
 * row, and four blocks share a multiprocessor, so that one of them loads while
 * another one selects.  Loads in flight occupy the L1, which shares its memory
 * with shared memory; therefore rows of up to 40K keys have less room for
 * words.  The time of a single row is a sum of latencies, so its parts are
 * spread over as many multiprocessors as a cluster can have.
 */

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


typedef void (*dsa_topk_kernel_pt)(int32_t *pick, int32_t *slot,
    int32_t *n_pick, const float *score, size_t ld, const int32_t *keys,
    const int32_t *pages, size_t ld_pages, const int32_t *owner, uint32_t k,
    uint32_t max_keys, uint32_t room);


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


/* Writes picks and their slots. */

template <int THREADS>
static __device__ __forceinline__ void
dsa_topk_put(int32_t *pick, int32_t *slot, const int32_t *pages,
    const uint32_t *p, uint32_t n, uint32_t k)
{
    int       j;
    int32_t   v[4], page[4];
    uint32_t  i, at;

    for (i = threadIdx.x; i < k; i += 4 * THREADS) {

#pragma unroll
        for (j = 0; j < 4; j++) {
            at = i + j * THREADS;
            v[j] = at >= n ? -1 : (int32_t) (p != NULL ? p[at] : at);
            page[j] = v[j] < 0 || slot == NULL ? 0 : pages[v[j] / 64];
        }

#pragma unroll
        for (j = 0; j < 4; j++) {
            at = i + j * THREADS;

            if (at < k) {
                pick[at] = v[j];
            }

            if (at < k && slot != NULL) {
                slot[at] = v[j] < 0 ? -1 : page[j] * 64 + v[j] % 64;
            }
        }
    }
}


/*
 * Initializes the shared memory.  Returns the bits of positions, "words" words
 * that only rank 0 uses.
 */

template <int THREADS>
static __device__ __forceinline__ uint32_t *
dsa_topk_clear(dsa_topk_shared_t *s, uint32_t room, uint32_t words,
    uint32_t rank)
{
    uint32_t  j, *bit;

    for (j = threadIdx.x; j < DSA_TOPK_BINS; j += THREADS) {
        s->bin[j] = 0;
    }

    bit = (uint32_t *) &s->word[room];

    if (threadIdx.x == 0) {
        s->n = 0;
        s->below = 0;
        s->max = 0;
        s->n_ranked = 0;
        s->room = room;
        s->bit = bit;
    }

    if (rank == 0) {
        for (j = threadIdx.x; j < words; j += THREADS) {
            bit[j] = 0;
        }
    }

    __syncthreads();

    return bit;
}


/*
 * The first block reads the words of all parts blocks, if there is room for
 * them.  Computes the sums of the blocks' numbers n and below, and the maximum
 * of max.
 */

template <int THREADS>
static __device__ __forceinline__ void
dsa_topk_collect(dsa_topk_shared_t *s, uint32_t parts, uint32_t room,
    uint32_t *total, uint32_t *below, uint32_t *max)
{
    uint32_t            j, w, at, each, count, lane, warp;
    dsa_topk_shared_t  *other;

    const cg::cluster_group  cluster = cg::this_cluster();

    /* one lane for each block first, then whole warps */

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;
    count = 0;

    if (lane < parts) {
        other = cluster.map_shared_rank(s, lane);
        count = other->n;
        *below = other->below;
        *max = other->max;
    }

    *max = __reduce_max_sync(0xffffffff, *max);
    *total = __reduce_add_sync(0xffffffff, count);
    *below = __reduce_add_sync(0xffffffff, *below);
    each = THREADS / 32 / parts;
    w = warp / each;
    at = __reduce_add_sync(0xffffffff, lane < w ? count : 0);
    count = __shfl_sync(0xffffffff, count, w);

    if (*total <= room && w > 0) {
        other = cluster.map_shared_rank(s, w);

#pragma unroll 8
        for (j = warp % each * 32 + lane; j < count; j += 32 * each) {
            s->word[at + j] = other->word[j];
        }
    }
}


/* Writes the positions of the bits to order, in rising order. */

template <int THREADS>
static __device__ __forceinline__ void
dsa_topk_order(dsa_topk_shared_t *s, uint32_t *order, const uint32_t *bit,
    uint32_t words)
{
    uint32_t  j, b, w, at, each, count;

    each = (words + THREADS - 1) / THREADS;
    count = 0;

    for (j = 0; j < each; j++) {
        w = threadIdx.x * each + j;
        count += w < words ? __popc(bit[w]) : 0;
    }

    at = dsa_topk_scan(s, count);

    for (j = 0; j < each; j++) {
        w = threadIdx.x * each + j;

        for (b = w < words ? bit[w] : 0; b != 0; b &= b - 1) {
            order[at++] = w * 32 + __ffs(b) - 1;
        }
    }

    __syncthreads();
}


template <int THREADS>
static __global__ void __launch_bounds__(THREADS, 1024 / THREADS)
dsa_topk_kernel(int32_t *pick, int32_t *slot, int32_t *n_pick,
    const float *score, size_t ld, const int32_t *keys, const int32_t *pages,
    size_t ld_pages, const int32_t *owner, uint32_t k, uint32_t max_keys,
    uint32_t room)
{
    int32_t               i;
    float4                v[DSA_TOPK_FLIGHT / THREADS];
    uint32_t              n, row, part, rank, bound, parts, words, max, total,
                          below, end, *bit, *order;
    dsa_topk_shared_t    *s;

    const cg::cluster_group  cluster = cg::this_cluster();

    extern __shared__ __align__(16) uint8_t  shared[];

    dsa_begin();

    s = (dsa_topk_shared_t *) shared;

    rank = cluster.block_rank();
    parts = cluster.num_blocks();
    row = blockIdx.x / parts;

    i = keys[row];
    n = i < 0 ? 0 : (uint32_t) i;
    n = n > max_keys ? max_keys : n;

    pick += (size_t) row * k;
    score += row * ld;

    if (slot != NULL) {
        slot += (size_t) row * k;
        pages += (owner != NULL ? (size_t) owner[row] : row) * ld_pages;
    }

    if (rank == 0 && threadIdx.x == 0) {
        n_pick[row] = (int32_t) (n < k ? n : k);
    }

    if (n <= k) {
        if (rank == 0) {
            dsa_topk_put<THREADS>(pick, slot, pages, NULL, n, k);
        }

        return;
    }

    part = ((n + 3) / 4 + parts - 1) / parts;
    end = (rank + 1) * part < (n + 3) / 4 ? (rank + 1) * part : (n + 3) / 4;

    dsa_topk_load<THREADS>(v, (const float4 *) score, rank * part, end);

    words = (n + 31) / 32;

    bit = dsa_topk_clear<THREADS>(s, room, words, rank);

    bound = n <= room ? 0
                      : dsa_topk_bound<THREADS>(s, (const float4 *) score, n,
                                                k);

    dsa_topk_keep<THREADS>(s, v, (const float4 *) score, rank * part, end, n,
                           bound);

    /*
     * The first block reads the words of the others, which may exit afterwards.
     */

    total = 0;
    below = 0;
    max = 0;

    if (parts == 1) {
        __syncthreads();

        total = s->n;
        below = s->below;
        max = s->max;

    } else {
        cluster.sync();

        if (rank == 0) {
            dsa_topk_collect<THREADS>(s, parts, room, &total, &below, &max);
        }

        cluster.sync();

        if (rank != 0) {
            return;
        }
    }

    if (total - below >= k && total <= room) {
        dsa_topk_choose<THREADS>(s, total, k, bound, max);

    } else {
        dsa_topk_again<THREADS>(s, score, n, k);
    }

    /* the memory of the words is free */

    order = (uint32_t *) s->word;

    dsa_topk_order<THREADS>(s, order, bit, words);
    dsa_topk_put<THREADS>(pick, slot, pages, order, k, k);
}


/* Returns the bytes of dynamic shared memory. */

static size_t
dsa_topk_shared(uint32_t room, uint32_t max_keys)
{
    return sizeof(dsa_topk_shared_t) + room * sizeof(uint64_t)
           + ((size_t) max_keys + 31) / 32 * sizeof(uint32_t);
}


int
dsa_topk_setup(void)
{
    int     rc;
    size_t  most;

    most = dsa_topk_shared(DSA_TOPK_ROOM, DSA_TOPK_MAX_KEYS);

    rc = dsa_setup_shared(dsa_topk_kernel<512>, most);
    rc = rc != 0 ? rc : dsa_setup_shared(dsa_topk_kernel<256>, most);
    rc = rc != 0 ? rc : dsa_setup_cluster(dsa_topk_kernel<512>);

    return rc != 0 ? rc : dsa_setup_cluster(dsa_topk_kernel<256>);
}


extern "C" int
dsa_cuda_topk(int32_t *pick, int32_t *slot, int32_t *n_pick,
    const float *score, size_t ld, const int32_t *keys, const int32_t *pages,
    size_t ld_pages, const int32_t *owner, uint32_t rows, uint32_t k,
    uint32_t max_keys, dsa_stream_t stream)
{
    uint32_t              parts, room;
    dsa_topk_kernel_pt    kernel;

    if (rows == 0) {
        return 0;
    }

    if (k == 0 || k % 8 != 0 || k > DSA_TOPK_MAX_K || ld % 4 != 0
        || ld < max_keys || max_keys > DSA_TOPK_MAX_KEYS
        || (uintptr_t) score % 16 != 0)
    {
        return cudaErrorInvalidValue;
    }

    /*
     * Use as many blocks as run at the same time, if each has enough to read.
     * A large cluster has to fit a group of 16 or 18 multiprocessors; pairs of
     * blocks may share a multiprocessor if rows are long.
     */

    parts = DSA_TOPK_BLOCKS;

    while (parts > 1
           && (rows * parts > (parts > 4 ? 112
                               : parts == 2 && max_keys >= 32768 ? 264 : 132)
               || max_keys / parts < 2048))
    {
        parts /= 2;
    }

    kernel = parts > 1 ? dsa_topk_kernel<512> : dsa_topk_kernel<256>;
    room = max_keys <= 40960 ? DSA_TOPK_ROOM_40K : DSA_TOPK_ROOM;

    return dsa_launch_cluster(kernel, rows * parts, parts,
                              parts > 1 ? 512 : 256,
                              dsa_topk_shared(room, max_keys), stream, pick,
                              slot, n_pick, score, ld, keys, pages, ld_pages,
                              owner, k, max_keys, room);
}
