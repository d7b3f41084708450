
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "kernels/core/setup.cuh"
#include "sample_nucleus.cuh"


/*
 * A cluster of 1 .. 16 blocks samples from one row of logits.  The ids of the
 * row are divided into chunks of 512, each for one warp at a time; a block has
 * neighbouring chunks.
 *
 *  1. The greatest logit.  A greedy row ends here.
 *  2. Weights (float) exp((x - greatest) / temperature), in float64 as on the
 *     CPU, because a draw compares them bit by bit.  They are written to
 *     work[], and the L2 keeps most of them.
 *  3. The least weight of the nucleus: weights are summed by their leading 11
 *     bits.  Weights of one exponent add as integers of 24 bits, in two halves
 *     of 12 that cannot overflow in 2^20 additions, so that the sums are exact
 *     and atomics may run in any order.  The weights of the bin in which top_p
 *     is reached are listed (or found again, if there are too many) and sorted
 *     by 11 and 9 more bits.
 *  4. Sums of the kept weights of each chunk, in float64 and in an order that
 *     is the same for any number of blocks.  The draw finds the chunk, and then
 *     the id in it.
 *
 * Each step reads the row once.  If there are many rows, the first two steps
 * read it from HBM.
 */


static __device__ double
dsa_sample_uniform(uint64_t seed, uint64_t position)
{
    int       i;
    uint32_t  c0, c1, c2, c3, k0, k1;
    uint64_t  a, b;

    c0 = (uint32_t) position;
    c1 = (uint32_t) (position >> 32);
    c2 = 0;
    c3 = 0;
    k0 = (uint32_t) seed;
    k1 = (uint32_t) (seed >> 32);

    for (i = 0; i < 10; i++) {
        a = (uint64_t) c0 * 0xd2511f53;
        b = (uint64_t) c2 * 0xcd9e8d57;

        c0 = (uint32_t) (b >> 32) ^ c1 ^ k0;
        c2 = (uint32_t) (a >> 32) ^ c3 ^ k1;
        c1 = (uint32_t) b;
        c3 = (uint32_t) a;

        k0 += 0x9e3779b9;
        k1 += 0xbb67ae85;
    }

    a = ((uint64_t) c1 << 32 | c0) >> 12;

    return ((double) a + 0.5) * 0x1p-52;
}


/*
 * Returns the chunk that point falls into, which is u times the sum of all
 * kept weights.  Sums are rounded, so there may be no such chunk; then it is
 * the last one with a kept weight.  base and base_equal become the sum of the
 * weights before the chunk and the number of those equal to the least.
 */

static __device__ __forceinline__ uint32_t
dsa_sample_choose_chunk(dsa_sample_shared_t *s, const dsa_sample_row_t *r,
    uint32_t least, uint32_t ties, double u, double *point)
{
    double                sum, base, total;
    uint32_t              c, equal, before, take;
    dsa_sample_shared_t  *other;

    const cg::cluster_group  cluster = cg::this_cluster();

    /* one chunk for each thread */

    c = threadIdx.x;
    sum = 0;
    equal = 0;

    if (c < dsa_sample_chunks(r->n)) {
        other = cluster.map_shared_rank(s, c / r->part);
        sum = other->sum[c % r->part]
              + dsa_sample_value(other->chunk_high[c % r->part],
                                 other->chunk_low[c % r->part], least >> 23);
        equal = other->equal[c % r->part];
    }

    if (threadIdx.x == 0) {
        s->found = ~0U;
        s->last = 0;
    }

    before = dsa_sample_before_count(s, equal);

    if (before < ties) {
        take = equal < ties - before ? equal : ties - before;
        sum += (double) take * (double) __uint_as_float(least);
    }

    base = dsa_sample_before(s, sum, &total);
    *point = u * total;

    if (threadIdx.x == 0) {
        s->kept = total;
    }

    if (sum > 0) {
        if (base + sum > *point) {
            atomicMin(&s->found, c);
        }

        atomicMax(&s->last, c);
    }

    __syncthreads();

    take = s->found != ~0U ? s->found : s->last;

    if (c == take) {
        s->base = base;
        s->base_equal = before;
    }

    __syncthreads();

    return take;
}


/* Returns the id that u draws, in thread 0.  Called in the first block. */

static __device__ uint32_t
dsa_sample_choose(dsa_sample_shared_t *s, const dsa_sample_row_t *r,
    uint32_t least, uint32_t ties, double u)
{
    int       i, j;
    float     w[16];
    float4    f;
    double    sum, point;
    uint32_t  equal, before, bits, lane, id, last, take;

    take = dsa_sample_choose_chunk(s, r, least, ties, u, &point);

    if (threadIdx.x >= 32) {
        return 0;
    }

    /* 16 neighbouring ids for each lane */

    lane = threadIdx.x;
    id = take * DSA_SAMPLE_CHUNK + lane * 16;
    equal = 0;

#pragma unroll
    for (j = 0; j < 4; j++) {
        f = __ldcg((const float4 *) &r->weight[id + 4 * j]);
        w[4 * j] = f.x;
        w[4 * j + 1] = f.y;
        w[4 * j + 2] = f.z;
        w[4 * j + 3] = f.w;
    }

#pragma unroll
    for (i = 0; i < 16; i++) {
        equal += __float_as_uint(w[i]) == least;
    }

    before = s->base_equal + dsa_sample_warp_count(equal);
    sum = 0;

#pragma unroll
    for (i = 0; i < 16; i++) {
        bits = __float_as_uint(w[i]);

        if (bits < least || (bits == least && before++ >= ties)) {
            w[i] = 0;
        }

        sum += (double) w[i];
    }

    sum = s->base + dsa_sample_warp_before(sum);
    last = ~0U;
    take = ~0U;

#pragma unroll
    for (i = 0; i < 16; i++) {
        sum += (double) w[i];

        if (w[i] > 0) {
            last = id + i;
            take = take == ~0U && sum > point ? id + i : take;
        }
    }

    last = __reduce_max_sync(0xffffffff, last != ~0U ? last : 0);
    take = __reduce_min_sync(0xffffffff, take);

    return take != ~0U ? take : last;
}


/*
 * Lists in item the logits that may be among the n_top greatest: those that
 * are not less than the n_top-th greatest of the maxima of the n chunks.  item
 * has these maxima before; g is that of the thread's chunk.
 */

static __device__ __forceinline__ void
dsa_sample_list_top(dsa_sample_shared_t *s, const dsa_sample_row_t *r,
    uint32_t n_top, uint32_t n, uint64_t g)
{
    int       i, j;
    float     v[4];
    uint32_t  id, lane, warp, rank;
    uint64_t  x;

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;

    if (g != 0) {
        for (i = 0, rank = 0; i < (int) n; i++) {
            rank += s->item[i] > g;
        }

        if (rank < n_top) {
            s->top_chunk[rank] = threadIdx.x;
        }

        if (rank == n_top - 1) {
            s->bound = g;
        }
    }

    __syncthreads();

    if (warp < n_top && s->top_chunk[warp] != ~0U) {
        for (j = 0; j < DSA_SAMPLE_VECTORS; j++) {
            id = s->top_chunk[warp] * DSA_SAMPLE_CHUNK + j * 128 + lane * 4;
            dsa_sample_raw(v, r, id);

            for (i = 0; i < 4; i++) {
                x = isnan(v[i]) ? 0
                                : (uint64_t) dsa_float_order(v[i]) << 32
                                  | ~(id + i);

                if (x >= s->bound) {
                    s->item[atomicAdd(&s->n_items, 1)] = x;
                }
            }
        }
    }

    __syncthreads();
}


/*
 * Computes the logprobs of a row.  Called in the first block, after thread 0
 * has written the token.  Only few logits have to be ranked.
 */

static __device__ void
dsa_sample_logprobs(dsa_cuda_sample_t *out, dsa_sample_shared_t *s,
    const dsa_sample_row_t *r, uint32_t n_top)
{
    int       i;
    float     max;
    double    norm, total;
    uint32_t  c, n, rank;
    uint64_t  g, x;

    const cg::cluster_group  cluster = cg::this_cluster();

    c = threadIdx.x;
    norm = 0;
    g = 0;

    if (c < dsa_sample_chunks(r->n)) {
        norm = cluster.map_shared_rank(s, c / r->part)->norm[c % r->part];
        g = cluster.map_shared_rank(s, c / r->part)->greatest[c % r->part];
    }

    /*
     * The memory of the list of weights and of this block's own chunks is
     * free.
     */

    (void) dsa_sample_before(s, norm, &total);

    s->item[c] = g;

    if (c < DSA_SAMPLE_MAX_TOP) {
        s->top_chunk[c] = ~0U;
    }

    if (c == 0) {
        s->n_items = 0;
        s->bound = 1;
    }

    __syncthreads();

    max = dsa_order_float((uint32_t) (s->best_raw >> 32));
    norm = s->best_raw == 0 || !isfinite(max) ? nan("")
                                              : (double) max + log(total);

    if (c == 0) {
        out->logprob = (float) ((double) r->logits[s->token] - norm);
    }

    if (n_top == 0) {
        return;
    }

    dsa_sample_list_top(s, r, n_top, (uint32_t) dsa_sample_chunks(r->n), g);

    n = s->n_items;

    for (c = threadIdx.x; c < n; c += DSA_SAMPLE_THREADS) {
        x = s->item[c];

        for (i = 0, rank = 0; i < (int) n && rank < n_top; i++) {
            rank += s->item[i] > x;
        }

        if (rank < n_top) {
            out->top[rank] = ~(uint32_t) x;
            out->top_logprob[rank] = (float)
                         ((double) dsa_order_float((uint32_t) (x >> 32))
                          - norm);
        }
    }

    if (threadIdx.x == 0) {
        out->n_top = n < n_top ? n : n_top;
    }
}


/*
 * Returns id, or the lowest permitted id if id is not permitted, because all
 * permitted ids have logits of minus infinity.
 */

static __device__ uint32_t
dsa_sample_permitted(const uint32_t *mask, uint32_t allowed, uint32_t id)
{
    if (mask == NULL || (mask[id / 32] >> id % 32 & 1) != 0) {
        return id;
    }

    for (id = 0; id + 1 < allowed; id++) {
        if ((mask[id / 32] >> id % 32 & 1) != 0) {
            break;
        }
    }

    return id;
}


/*
 * Writes how the token of the row was drawn.  Called in thread 0 of the first
 * block.
 */

static __device__ void
dsa_sample_report(dsa_cuda_sample_t *out, const dsa_sample_shared_t *s,
    const dsa_sample_row_t *r, uint32_t random, uint32_t least, uint32_t ties)
{
    double  weight;

    out->drawn = 0;
    out->kept = DSA_CUDA_KEPT_ONE;
    out->least = least;
    out->ties = ties;

    if (random) {
        weight = (double) __ldcg(&r->weight[s->token]);
        out->drawn = (float) log(weight / s->kept);
        out->kept = least != 0 ? DSA_CUDA_KEPT_CUT : DSA_CUDA_KEPT_ALL;
    }
}


/*
 * Describes the row of logits, and the chunks of the block of this rank among
 * parts blocks.  changed: some ids are penalized, biased or masked.
 */

static __device__ __forceinline__ void
dsa_sample_row(dsa_sample_row_t *r, const float *logits, uint8_t *work,
    uint32_t vocab, uint32_t allowed, uint32_t aligned, uint32_t changed,
    uint32_t rank, uint32_t parts)
{
    uint32_t  chunks;

    chunks = (uint32_t) dsa_sample_chunks(allowed);

    r->logits = logits;
    r->weight = (float *) work;
    r->bit = changed ? (uint32_t *) (r->weight + dsa_sample_chunks(vocab)
                                                 * DSA_SAMPLE_CHUNK)
                     : NULL;
    r->n = allowed;
    r->aligned = aligned;
    r->part = (chunks + parts - 1) / parts;
    r->first = rank * r->part;
    r->end = r->first + r->part < chunks ? r->first + r->part : chunks;
}


/* Initializes the shared memory. */

static __device__ __forceinline__ void
dsa_sample_clear(dsa_sample_shared_t *s)
{
    uint32_t  c;

    if (threadIdx.x == 0) {
        s->best = 0;
        s->best_raw = 0;
        s->n_items = 0;
    }

    for (c = threadIdx.x; c < DSA_SAMPLE_BINS; c += DSA_SAMPLE_THREADS) {
        s->high[c] = 0;
        s->low[c] = 0;
    }

    if (threadIdx.x < 64) {
        s->power[threadIdx.x] = exp2(threadIdx.x / 64.0);
    }

    __syncthreads();
}


/*
 * Finds the greatest logit of the block's chunks and stores it in best, in
 * item's order.  With logprobs, it also finds those before penalties, and
 * stores that of each chunk in greatest and that of the block in best_raw.
 */

static __device__ __forceinline__ void
dsa_sample_greatest(dsa_sample_shared_t *s, const dsa_sample_row_t *r,
    uint32_t logprobs)
{
    int       j;
    float     v[4 * DSA_SAMPLE_VECTORS], x, best, raw;
    uint32_t  c, id, lane, warp, best_id, raw_id;
    uint64_t  b;

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;

    best = -INFINITY;
    best_id = ~0U;
    raw = best;
    raw_id = best_id;

    for (c = r->first + warp; c < r->end; c += DSA_SAMPLE_WARPS) {
        id = c * DSA_SAMPLE_CHUNK + lane * 4;

#pragma unroll
        for (j = 0; j < DSA_SAMPLE_VECTORS; j++) {
            dsa_sample_raw(&v[4 * j], r, id + j * 128);
        }

        if (logprobs) {
            raw_id = ~0U;

#pragma unroll
            for (j = 0; j < 4 * DSA_SAMPLE_VECTORS; j++) {
                x = v[j];

                if (!isnan(x) && (raw_id == ~0U || x > raw)) {
                    raw = x;
                    raw_id = id + j / 4 * 128 + j % 4;
                }
            }

            b = dsa_sample_warp_best(raw, raw_id);

            if (lane == 0) {
                s->greatest[c - r->first] = b;
                atomicMax(&s->best_raw, (unsigned long long) b);
            }
        }

#pragma unroll
        for (j = 0; j < DSA_SAMPLE_VECTORS; j++) {
            dsa_sample_penalized(&v[4 * j], r, id + j * 128);
        }

#pragma unroll
        for (j = 0; j < 4 * DSA_SAMPLE_VECTORS; j++) {
            if (v[j] > best) {
                best = v[j];
                best_id = id + j / 4 * 128 + j % 4;
            }
        }
    }

    b = dsa_sample_warp_best(best, best_id);

    if (lane == 0) {
        atomicMax(&s->best, (unsigned long long) b);
    }
}


/*
 * Returns the greatest logit of the row's blocks, in item's order.  With
 * logprobs best_raw of each block becomes that of the row.
 */

static __device__ __forceinline__ uint64_t
dsa_sample_agree(dsa_sample_shared_t *s, uint32_t parts, uint32_t logprobs)
{
    uint32_t              lane;
    uint64_t              b, best_raw;
    dsa_sample_shared_t  *other;

    const cg::cluster_group  cluster = cg::this_cluster();

    lane = threadIdx.x % 32;

    if (parts > 1) {
        cluster.sync();

        b = 0;
        best_raw = 0;

        if (lane < parts) {
            other = cluster.map_shared_rank(s, lane);
            b = other->best;
            best_raw = other->best_raw;
        }

        b = dsa_sample_warp_max(b);

        if (logprobs) {
            best_raw = dsa_sample_warp_max(best_raw);
            cluster.sync();
            s->best_raw = best_raw;
        }

    } else {
        __syncthreads();
        b = s->best;
    }

    __syncthreads();

    return b;
}


/*
 * Writes the weights of the block's chunks.  For a nucleus they are counted in
 * the histogram; otherwise the chunks' sums are stored.
 */

static __device__ __forceinline__ void
dsa_sample_weights(dsa_sample_shared_t *s, const dsa_sample_row_t *r,
    float best, float temperature, uint32_t nucleus)
{
    int       i, j;
    float     v[4 * DSA_SAMPLE_VECTORS], x, floor;
    double    sum, g, scale;
    uint32_t  c, id, lane, warp;

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;

    g = (double) best;
    dsa_sample_scale(best, temperature, &floor, &scale);

    for (c = r->first + warp; c < r->end; c += DSA_SAMPLE_WARPS) {
        id = c * DSA_SAMPLE_CHUNK + lane * 4;

#pragma unroll
        for (j = 0; j < DSA_SAMPLE_VECTORS; j++) {
            dsa_sample_raw(&v[4 * j], r, id + j * 128);
            dsa_sample_penalized(&v[4 * j], r, id + j * 128);
        }

        sum = 0;

#pragma unroll
        for (j = 0; j < 4 * DSA_SAMPLE_VECTORS; j++) {
            x = (float) dsa_sample_exp(s->power, (double) v[j] - g, scale);
            x = v[j] > floor ? x : 0;
            v[j] = x;

            if (nucleus) {
                if (x > 0) {
                    i = (int) (__float_as_uint(x) >> 20);
                    dsa_sample_count(&s->high[i], &s->low[i],
                                     __float_as_uint(x));
                }

            } else {
                sum += (double) x;
            }
        }

#pragma unroll
        for (j = 0; j < DSA_SAMPLE_VECTORS; j++) {
            *(float4 *) &r->weight[id + j * 128] =
                make_float4(v[4 * j], v[4 * j + 1], v[4 * j + 2],
                            v[4 * j + 3]);
        }

        if (!nucleus) {
            sum = dsa_sample_warp_sum(sum);

            if (lane == 0) {
                dsa_sample_chunk(s, c - r->first, sum);
            }
        }
    }
}


/*
 * Sums the block's chunks for logprobs.  These have to be right to 1e-5:
 * float32 is enough for each term.
 */

static __device__ __forceinline__ void
dsa_sample_norms(dsa_sample_shared_t *s, const dsa_sample_row_t *r)
{
    int       i, j;
    float     v[4], x, max;
    double    sum;
    uint32_t  c, id, lane, warp;

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;

    max = dsa_order_float((uint32_t) (s->best_raw >> 32));

    for (c = r->first + warp; c < r->end; c += DSA_SAMPLE_WARPS) {
        id = c * DSA_SAMPLE_CHUNK + lane * 4;
        x = 0;

#pragma unroll
        for (j = 0; j < DSA_SAMPLE_VECTORS; j++) {
            dsa_sample_raw(v, r, id + j * 128);

#pragma unroll
            for (i = 0; i < 4; i++) {
                x += isnan(v[i]) ? 0 : __expf(v[i] - max);
            }
        }

        sum = dsa_sample_warp_sum((double) x);

        if (lane == 0) {
            s->norm[c - r->first] = sum;
        }
    }
}


static __global__ void __launch_bounds__(DSA_SAMPLE_THREADS, 1)
dsa_sample_kernel(dsa_cuda_sample_t *out, const dsa_cuda_sample_row_t *in,
    const float *logits, size_t ld, uint32_t vocab, uint32_t allowed,
    const uint32_t *history, const uint32_t *masks, uint8_t *work,
    uint32_t aligned)
{
    float                   best;
    uint32_t                parts, rank, row, best_id, id, least, ties;
    uint32_t                random, n_top, nucleus;
    uint64_t                b;
    const uint32_t         *mask;
    dsa_sampling_t          p;
    dsa_sample_row_t        r;
    dsa_sample_shared_t    *s;
    dsa_cuda_sample_row_t   want;

    const cg::cluster_group  cluster = cg::this_cluster();

    extern __shared__ __align__(16) uint8_t  shared[];

    s = (dsa_sample_shared_t *) shared;
    rank = cluster.block_rank();
    parts = cluster.num_blocks();
    row = blockIdx.x / parts;

    want = in[row];
    p = want.sampling;
    nucleus = p.top_p < 1;
    n_top = p.top_logprobs < DSA_SAMPLE_MAX_TOP ? p.top_logprobs
                                                : DSA_SAMPLE_MAX_TOP;

    mask = dsa_sample_mask(&want, masks, vocab);

    dsa_sample_row(&r, logits + row * ld,
                   work + row * dsa_sample_row_size(vocab), vocab, allowed,
                   aligned,
                   mask != NULL || want.n_bias != 0
                   || dsa_sample_penalizes(&want, history), rank, parts);

    dsa_sample_clear(s);

    dsa_sample_greatest(s, &r, p.logprobs);

    b = dsa_sample_agree(s, parts, p.logprobs);
    best_id = b != 0 ? ~(uint32_t) b : 0;
    best = b != 0 ? dsa_order_float((uint32_t) (b >> 32)) : -INFINITY;
    random = p.temperature > 0 && isfinite(best);

    least = 0;
    ties = 0;

    if (random) {
        dsa_sample_weights(s, &r, best, p.temperature, nucleus);

        if (nucleus) {
            least = dsa_sample_nucleus(s, &r, parts, p.top_p, &ties);
        }
    }

    if (p.logprobs) {
        dsa_sample_norms(s, &r);
    }

    /* the first block collects the results and writes them */

    if (parts > 1) {
        cluster.sync();

    } else {
        __syncthreads();
    }

    if (rank == 0) {
        out += row;
        id = random ? dsa_sample_choose(s, &r, least, ties,
                                        dsa_sample_uniform(p.seed,
                                                           want.position))
                    : best_id;

        if (threadIdx.x == 0) {
            id = dsa_sample_permitted(mask, allowed, id);
            out->token = id;
            out->logprob = 0;
            out->n_top = 0;
            s->token = id;

            if (want.report) {
                dsa_sample_report(out, s, &r, random, least, ties);
            }
        }

        __syncthreads();

        if (p.logprobs) {
            dsa_sample_logprobs(out, s, &r, n_top);
        }
    }

    if (parts > 1) {
        cluster.sync();
    }
}


int
dsa_sample_setup(void)
{
    int  rc;

    rc = dsa_setup_shared(dsa_sample_kernel, sizeof(dsa_sample_shared_t));

    return rc != 0 ? rc : dsa_setup_cluster(dsa_sample_kernel);
}


extern "C" int
dsa_cuda_sample(dsa_cuda_sample_t *out, const dsa_cuda_sample_row_t *r,
    const float *logits, size_t ld, uint32_t rows, uint32_t vocab,
    uint32_t allowed, const uint32_t *history, const uint32_t *masks,
    const dsa_bias_t *biases, void *work, dsa_stream_t stream)
{
    int                  rc;
    uint32_t             parts, aligned;
    cudaLaunchConfig_t   config = { };
    cudaLaunchAttribute  attr = { };

    if (rows == 0) {
        return 0;
    }

    allowed = allowed < vocab ? allowed : vocab;

    if (allowed == 0 || ld < vocab
        || dsa_sample_chunks(vocab) > DSA_SAMPLE_CHUNKS
        || (uintptr_t) work % 16 != 0)
    {
        return cudaErrorInvalidValue;
    }

    if (history != NULL || masks != NULL || biases != NULL) {
        rc = dsa_sample_penalize(r, logits, ld, rows, vocab, allowed, history,
                                 masks, biases, (uint8_t *) work, stream);
        if (rc != 0) {
            return rc;
        }
    }

    /*
     * A block fills a multiprocessor, and the blocks of a cluster have to be
     * in one group of 16 or 18 multiprocessors.  Clusters that do not fit the
     * 7 groups would wait for others to end.
     */

    parts = DSA_SAMPLE_BLOCKS;

    while (parts > 1 && (rows * parts > (parts > 2 ? 112 : 132)
                         || dsa_sample_chunks(allowed) < parts))
    {
        parts /= 2;
    }

    aligned = ld % 4 == 0 && (uintptr_t) logits % 16 == 0;

    attr.id = cudaLaunchAttributeClusterDimension;
    attr.val.clusterDim.x = parts;
    attr.val.clusterDim.y = 1;
    attr.val.clusterDim.z = 1;

    config.gridDim = dim3(rows * parts);
    config.blockDim = dim3(DSA_SAMPLE_THREADS);
    config.dynamicSmemBytes = sizeof(dsa_sample_shared_t);
    config.stream = stream;
    config.attrs = &attr;
    config.numAttrs = 1;

    rc = cudaLaunchKernelEx(&config, dsa_sample_kernel, out, r, logits, ld,
                            vocab, allowed, history, masks, (uint8_t *) work,
                            aligned);

    return rc != 0 ? rc : (int) cudaGetLastError();
}


extern "C" size_t
dsa_cuda_sample_work(uint32_t rows, uint32_t vocab)
{
    return rows * dsa_sample_row_size(vocab);
}
