
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


/* Lists the weights of the block's chunks that are in the bin. */

static __device__ __forceinline__ void
dsa_sample_list(dsa_sample_shared_t *s, const dsa_sample_row_t *r,
    uint32_t bin)
{
    int       j, i;
    float4    f[DSA_SAMPLE_VECTORS];
    uint32_t  c, u, id, at, hit, n, lane, warp;

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;

    for (c = r->first + warp; c < r->end; c += DSA_SAMPLE_WARPS) {

#pragma unroll
        for (j = 0; j < DSA_SAMPLE_VECTORS; j++) {
            id = c * DSA_SAMPLE_CHUNK + j * 128 + lane * 4;
            f[j] = __ldcg((const float4 *) &r->weight[id]);
        }

        hit = 0;

#pragma unroll
        for (j = 0; j < DSA_SAMPLE_VECTORS; j++) {
#pragma unroll
            for (i = 0; i < 4; i++) {
                u = __float_as_uint(((const float *) &f[j])[i]);

                if (u >> 20 == bin && u != 0) {
                    hit |= 1U << (4 * j + i);
                }
            }
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
 * Returns the id of the n-th of the weights of a chunk that are equal to
 * least, in each lane of a warp.  n counts from 1.
 */

static __device__ __forceinline__ uint32_t
dsa_sample_nth(const dsa_sample_row_t *r, uint32_t chunk, uint32_t least,
    uint32_t n)
{
    int       i, j;
    float4    f;
    uint32_t  id, equal, before;

    /* 16 neighbouring ids for each lane */

    id = chunk * DSA_SAMPLE_CHUNK + threadIdx.x % 32 * 16;
    equal = 0;

#pragma unroll
    for (j = 0; j < 4; j++) {
        f = __ldcg((const float4 *) &r->weight[id + 4 * j]);

#pragma unroll
        for (i = 0; i < 4; i++) {
            equal |= (uint32_t) (__float_as_uint(((const float *) &f)[i])
                                 == least) << (4 * j + i);
        }
    }

    before = dsa_sample_warp_count(__popc(equal));

    for (j = 0; equal != 0; j++, equal >>= 1) {
        if ((equal & 1) != 0 && ++before == n) {
            break;
        }
    }

    return __reduce_max_sync(0xffffffff, equal != 0 ? id + j : 0);
}


/*
 * Returns the id from which weights equal to known are cut off, if only ties
 * of them are kept.  The n weights of the block are those of
 * dsa_sample_item().
 */

static __device__ uint32_t
dsa_sample_ties(dsa_sample_shared_t *s, const dsa_sample_row_t *r,
    uint32_t parts, uint32_t n, uint32_t known, uint32_t ties)
{
    uint32_t  c, id, equal, before;

    const cg::cluster_group  cluster = cg::this_cluster();

    for (c = threadIdx.x; c < n; c += DSA_SAMPLE_THREADS) {
        if (dsa_sample_item(s, r, c, &id) == known) {
            atomicAdd(&s->equal[id / DSA_SAMPLE_CHUNK - r->first], 1);
        }
    }

    if (parts > 1) {
        cluster.sync();

    } else {
        __syncthreads();
    }

    /* one chunk for each thread */

    c = threadIdx.x;
    equal = 0;

    if (c < dsa_sample_chunks(r->n)) {
        equal = cluster.map_shared_rank(s, c / r->part)->equal[c % r->part];
    }

    before = dsa_sample_before_count(s, equal);

    if (before < ties && ties - before <= equal) {
        s->found = c;
        s->before = before;
    }

    __syncthreads();

    if (threadIdx.x < 32) {
        s->end = 1 + dsa_sample_nth(r, s->found, known, ties - s->before);
    }

    __syncthreads();

    return s->end;
}


/*
 * Finds the kept weights: those above the returned bits, and those that are
 * equal to them, of which there are *ties, of ids below *end.  *kept becomes
 * the sum of the kept weights.
 */

static __device__ uint32_t
dsa_sample_nucleus(dsa_sample_shared_t *s, const dsa_sample_row_t *r,
    uint32_t parts, float top_p, uint32_t *ties, uint32_t *end, double *kept)
{
    double    sum, want, taken, least;
    uint32_t  c, u, id, at, bin, n, exponent, known, equal;

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
    at = dsa_sample_find(s, exponent, want, &taken);
    known = known << 9 | at;

    *ties = r->n;
    *end = r->n;
    *kept = taken;

    if (known == 0) {
        return 0;
    }

    /* the last bin has the sum of equal mantissas */

    equal = (uint32_t) ((((uint64_t) s->all[at] << 12)
                         + s->all[DSA_SAMPLE_BINS + at])
                        / dsa_sample_mantissa(known));

    least = (double) __uint_as_float(known);
    *ties = (uint32_t) fmin(fmax(ceil((want - taken) / least), 1.0),
                            (double) equal);
    *kept = taken + *ties * least;

    if (*ties < equal) {
        *end = dsa_sample_ties(s, r, parts, n, known, *ties);
    }

    return known;
}


#endif /* _DSA_SAMPLE_NUCLEUS_CUH_INCLUDED_ */
