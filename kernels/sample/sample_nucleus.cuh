
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SAMPLE_NUCLEUS_CUH_INCLUDED_
#define _DSA_SAMPLE_NUCLEUS_CUH_INCLUDED_


#include <cooperative_groups.h>

#include "sample.cuh"

namespace cg = cooperative_groups;


/*
 * Adds up the histograms of the cluster's blocks in each block; each of them
 * adds a part of the bins.  Sets the blocks' own histograms to zero.
 */

static __device__ void
dsa_sample_merge(dsa_sample_shared_t *s, uint32_t parts)
{
    uint32_t              i, j, n, rank, sum, *own;
    dsa_sample_shared_t  *other;

    const cg::cluster_group  cluster = cg::this_cluster();

    own = s->high;

    if (parts == 1) {
        __syncthreads();

        for (i = threadIdx.x; i < 2 * DSA_SAMPLE_BINS;
             i += DSA_SAMPLE_THREADS)
        {
            s->all[i] = own[i];
            own[i] = 0;
        }

        __syncthreads();

        return;
    }

    n = 2 * DSA_SAMPLE_BINS / parts;
    rank = cluster.block_rank();

    cluster.sync();

    for (i = rank * n + threadIdx.x; i < (rank + 1) * n;
         i += DSA_SAMPLE_THREADS)
    {
        sum = 0;

#pragma unroll 8
        for (j = 0; j < parts; j++) {
            other = cluster.map_shared_rank(s, (rank + j) % parts);
            sum += other->high[i];
        }

#pragma unroll 8
        for (j = 0; j < parts; j++) {
            other = cluster.map_shared_rank(s, (rank + j) % parts);
            other->all[i] = sum;
        }
    }

    cluster.sync();

    for (i = threadIdx.x; i < 2 * DSA_SAMPLE_BINS; i += DSA_SAMPLE_THREADS) {
        own[i] = 0;
    }

    __syncthreads();
}


/*
 * Returns the greatest bin for which *taken plus the sum of the weights in it
 * and in all bins above it reaches want, or the last bin.  Adds the weights
 * above this bin to *taken.  exponent: that of every bin, or ~0 if bin b has
 * exponent b / 8.
 */

static __device__ uint32_t
dsa_sample_find(dsa_sample_shared_t *s, uint32_t exponent, double want,
    double *taken)
{
    int       i;
    double    v[2], before, total;
    uint32_t  bin, at;

    const uint32_t  none = ~0U;

    at = DSA_SAMPLE_BINS - 2 - 2 * threadIdx.x;     /* and the bin above */

    if (threadIdx.x == 0) {
        s->found = 0;
    }

#pragma unroll
    for (i = 0; i < 2; i++) {
        bin = at + 1 - i;
        v[i] = dsa_sample_value(s->all[bin], s->all[DSA_SAMPLE_BINS + bin],
                                exponent != none ? exponent : bin / 8);
    }

    before = *taken + dsa_sample_before(s, v[0] + v[1], &total);

    if (v[0] > 0 && before + v[0] >= want) {
        atomicMax(&s->found, at + 1);

    } else if (v[1] > 0 && before + v[0] + v[1] >= want) {
        atomicMax(&s->found, at);
    }

    __syncthreads();

    bin = s->found;

    if (bin / 2 == at / 2) {
        s->taken = bin == at ? before + v[0] : before;
    }

    __syncthreads();

    *taken = s->taken;

    return bin;
}


/*
 * Returns a weight of the bin: from the list, or from all chunks of the block.
 */

static __device__ __forceinline__ uint32_t
dsa_sample_item(const dsa_sample_shared_t *s, const dsa_sample_row_t *r,
    uint32_t i, uint32_t *id)
{
    if (s->n_items <= DSA_SAMPLE_ITEMS) {
        *id = (uint32_t) s->item[i];

        return (uint32_t) (s->item[i] >> 32);
    }

    *id = r->first * DSA_SAMPLE_CHUNK + i;

    return __float_as_uint(__ldcg(&r->weight[*id]));
}


/*
 * Sums the weights of each of the block's chunks above the bin, and lists the
 * weights in it.
 */

static __device__ __forceinline__ void
dsa_sample_list(dsa_sample_shared_t *s, const dsa_sample_row_t *r,
    uint32_t bin)
{
    int       j, i;
    float4    f[DSA_SAMPLE_VECTORS];
    double    sum;
    uint32_t  c, u, id, at, hit, n, lane, warp;

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;

    for (c = r->first + warp; c < r->end; c += DSA_SAMPLE_WARPS) {

#pragma unroll
        for (j = 0; j < DSA_SAMPLE_VECTORS; j++) {
            id = c * DSA_SAMPLE_CHUNK + j * 128 + lane * 4;
            f[j] = __ldcg((const float4 *) &r->weight[id]);
        }

        sum = 0;
        hit = 0;

#pragma unroll
        for (j = 0; j < DSA_SAMPLE_VECTORS; j++) {
#pragma unroll
            for (i = 0; i < 4; i++) {
                u = __float_as_uint(((const float *) &f[j])[i]);

                if (u >> 20 > bin) {
                    sum += (double) ((const float *) &f[j])[i];

                } else if (u >> 20 == bin && u != 0) {
                    hit |= 1U << (4 * j + i);
                }
            }
        }

        sum = dsa_sample_warp_sum(sum);

        if (lane == 0) {
            dsa_sample_chunk(s, c - r->first, sum);
        }

        at = dsa_sample_warp_count(__popc(hit));
        n = 0;

        if (lane == 31 && at + __popc(hit) != 0) {
            n = atomicAdd(&s->n_items, at + __popc(hit));
        }

        at += __shfl_sync(0xffffffff, n, 31);

#pragma unroll
        for (j = 0; j < DSA_SAMPLE_VECTORS; j++) {
#pragma unroll
            for (i = 0; i < 4; i++) {
                if (hit & 1U << (4 * j + i)) {
                    if (at < DSA_SAMPLE_ITEMS) {
                        u = __float_as_uint(((const float *) &f[j])[i]);
                        id = c * DSA_SAMPLE_CHUNK + j * 128 + lane * 4 + i;
                        s->item[at] = (uint64_t) u << 32 | id;
                    }

                    at++;
                }
            }
        }
    }

    __syncthreads();
}


/*
 * Finds the kept weights: those above the returned bits, and the first *ties
 * of those that are equal to them.  The sums of the kept weights are in sum,
 * chunk_high, chunk_low and equal.
 */

static __device__ uint32_t
dsa_sample_nucleus(dsa_sample_shared_t *s, const dsa_sample_row_t *r,
    uint32_t parts, float top_p, uint32_t *ties)
{
    double    sum, want, taken, least;
    uint32_t  c, u, id, at, bin, n, exponent, known;

    /* all weights, one bin for each thread; no weight is above 1 */

    dsa_sample_merge(s, parts);

    want = dsa_sample_value(s->all[threadIdx.x],
                            s->all[DSA_SAMPLE_BINS + threadIdx.x],
                            threadIdx.x / 8);

    (void) dsa_sample_before(s, want, &sum);
    want = (double) top_p * sum;

    taken = 0;
    bin = dsa_sample_find(s, ~0U, want, &taken);
    exponent = bin / 8;

    dsa_sample_list(s, r, bin);

    n = s->n_items <= DSA_SAMPLE_ITEMS
        ? s->n_items
        : (r->end > r->first ? r->end - r->first : 0) * DSA_SAMPLE_CHUNK;

    for (c = threadIdx.x; c < n; c += DSA_SAMPLE_THREADS) {
        u = dsa_sample_item(s, r, c, &id);

        if (u >> 20 == bin) {
            at = u >> 9 & (DSA_SAMPLE_BINS - 1);
            dsa_sample_count(&s->high[at], &s->low[at], u);
        }
    }

    dsa_sample_merge(s, parts);
    known = bin << 11 | dsa_sample_find(s, exponent, want, &taken);

    for (c = threadIdx.x; c < n; c += DSA_SAMPLE_THREADS) {
        u = dsa_sample_item(s, r, c, &id);

        if (u >> 9 == known) {
            at = u & 0x1ff;
            dsa_sample_count(&s->high[at], &s->low[at], u);
        }
    }

    dsa_sample_merge(s, parts);
    known = known << 9 | dsa_sample_find(s, exponent, want, &taken);

    for (c = threadIdx.x; c < n; c += DSA_SAMPLE_THREADS) {
        u = dsa_sample_item(s, r, c, &id);
        at = id / DSA_SAMPLE_CHUNK - r->first;

        if (u >> 20 == bin && u > known) {
            dsa_sample_count(&s->chunk_high[at], &s->chunk_low[at], u);

        } else if (u == known) {
            atomicAdd(&s->equal[at], 1);
        }
    }

    *ties = r->n;

    if (known != 0) {
        least = (double) __uint_as_float(known);
        *ties = (uint32_t) fmin(fmax(ceil((want - taken) / least), 1.0),
                                (double) r->n);
    }

    return known;
}


#endif /* _DSA_SAMPLE_NUCLEUS_CUH_INCLUDED_ */
