
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cooperative_groups.h>

extern "C" {
#include "indexer.h"
}
#include "kernels/core/setup.cuh"
#include "topk_select.cuh"

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

typedef void (*dsa_topk_kernel_pt)(int32_t *pick, int32_t *slot,
    int32_t *n_pick, const float *score, size_t ld, const int32_t *keys,
    const int32_t *pages, size_t ld_pages, const int32_t *owner, uint32_t k,
    uint32_t max_keys, uint32_t room);


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
