
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
 *  4. The greatest quotient of a kept weight and its noise (noise.h).
 *
 * Without a nucleus steps 2 and 4 are one, and weights are written only if the
 * draw is reported.
 *
 * Each step reads the row once.  If there are many rows, the first two steps
 * read it from HBM.
 */


/* Returns the token of the row, whose blocks have found their winners. */

static __device__ __forceinline__ uint32_t
dsa_sample_drawn(dsa_sample_shared_t *s, uint32_t parts)
{
    uint32_t  lane;
    uint64_t  drawn;

    const cg::cluster_group  cluster = cg::this_cluster();

    lane = threadIdx.x % 32;
    drawn = lane < parts ? cluster.map_shared_rank(s, lane)->drawn : 0;

    return ~(uint32_t) dsa_sample_warp_max(drawn);
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
 * Writes how the token of the row was drawn.  Without a nucleus the sum of the
 * weights is that of the chunks' sums.  Called in the first block.
 */

static __device__ __forceinline__ void
dsa_sample_report(dsa_cuda_sample_t *out, dsa_sample_shared_t *s,
    const dsa_sample_row_t *r, uint32_t random)
{
    double    weight, sum, kept;
    uint32_t  c;

    const cg::cluster_group  cluster = cg::this_cluster();

    kept = s->kept;

    if (random && kept == 0) {
        c = threadIdx.x;
        sum = 0;

        if (c < dsa_sample_chunks(r->n)) {
            sum = cluster.map_shared_rank(s, c / r->part)->sum[c % r->part];
        }

        (void) dsa_sample_before(s, sum, &kept);
    }

    if (threadIdx.x != 0) {
        return;
    }

    out->drawn = 0;
    out->kept = DSA_CUDA_KEPT_ONE;
    out->least = s->least;
    out->ties = s->ties;

    if (random) {
        weight = (double) __ldcg(&r->weight[s->token]);
        out->drawn = (float) log(weight / kept);
        out->kept = s->least != 0 ? DSA_CUDA_KEPT_CUT : DSA_CUDA_KEPT_ALL;
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
        s->drawn = 0;
        s->n_items = 0;
        s->kept = 0;
        s->least = 0;
        s->ties = 0;
    }

    s->equal[threadIdx.x] = 0;

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
 * Computes the weights of four logits.  g is the greatest logit; see
 * dsa_sample_scale().
 */

static __device__ __forceinline__ void
dsa_sample_weigh(float *v, const dsa_sample_shared_t *s, double g, float floor,
    double scale)
{
    int    j;
    float  x;

#pragma unroll
    for (j = 0; j < 4; j++) {
        x = (float) dsa_sample_exp(s->power, (double) v[j] - g, scale);
        v[j] = v[j] > floor ? x : 0;
    }
}


/*
 * Writes the weights of the block's chunks, and counts them in the histogram.
 */

static __device__ __forceinline__ void
dsa_sample_weights(dsa_sample_shared_t *s, const dsa_sample_row_t *r,
    float best, float temperature)
{
    int       i, j;
    float     v[4 * DSA_SAMPLE_VECTORS], floor;
    double    scale;
    uint32_t  c, id, bits, lane, warp;

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;

    dsa_sample_scale(best, temperature, &floor, &scale);

    for (c = r->first + warp; c < r->end; c += DSA_SAMPLE_WARPS) {
        id = c * DSA_SAMPLE_CHUNK + lane * 4;

#pragma unroll
        for (j = 0; j < DSA_SAMPLE_VECTORS; j++) {
            dsa_sample_raw(&v[4 * j], r, id + j * 128);
            dsa_sample_penalized(&v[4 * j], r, id + j * 128);
        }

#pragma unroll
        for (j = 0; j < DSA_SAMPLE_VECTORS; j++) {
            dsa_sample_weigh(&v[4 * j], s, (double) best, floor, scale);
        }

#pragma unroll
        for (j = 0; j < 4 * DSA_SAMPLE_VECTORS; j++) {
            bits = __float_as_uint(v[j]);

            if (bits != 0) {
                i = (int) (bits >> 20);
                dsa_sample_count(&s->high[i], &s->low[i], bits);
            }
        }

#pragma unroll
        for (j = 0; j < DSA_SAMPLE_VECTORS; j++) {
            *(float4 *) &r->weight[id + j * 128] =
                make_float4(v[4 * j], v[4 * j + 1], v[4 * j + 2],
                            v[4 * j + 3]);
        }
    }
}


/*
 * Finds the winner among all ids of the block's chunks.  For a report the
 * weights and the sums of the chunks are written.
 */

static __device__ __forceinline__ void
dsa_sample_race(dsa_sample_shared_t *s, const dsa_sample_row_t *r, float best,
    float temperature, uint64_t seed, uint64_t position, uint32_t report)
{
    int               j;
    float             v[4], floor;
    double            sum, scale;
    uint32_t          c, id, lane, warp;
    dsa_noise_race_t  race;

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;

    dsa_sample_scale(best, temperature, &floor, &scale);

    for (c = r->first + warp; c < r->end; c += DSA_SAMPLE_WARPS) {
        id = c * DSA_SAMPLE_CHUNK + lane * 4;
        sum = 0;
        dsa_sample_start(&race, s);

#pragma unroll
        for (j = 0; j < DSA_SAMPLE_VECTORS; j++, id += 128) {
            dsa_sample_raw(v, r, id);
            dsa_sample_penalized(v, r, id);
            dsa_sample_weigh(v, s, (double) best, floor, scale);
            dsa_noise_enter(&race, v, seed, position, id);

            if (report) {
                *(float4 *) &r->weight[id] = make_float4(v[0], v[1], v[2],
                                                        v[3]);
                sum += (double) v[0] + (double) v[1] + (double) v[2]
                       + (double) v[3];
            }
        }

        dsa_sample_finish(s, &race);

        if (report) {
            sum = dsa_sample_warp_sum(sum);

            if (lane == 0) {
                s->sum[c - r->first] = sum;
            }
        }
    }
}


/*
 * Finds the winner among the kept ids of the block's chunks: those with
 * weights above least, and those of ids below end with least.
 */

static __device__ __forceinline__ void
dsa_sample_race_kept(dsa_sample_shared_t *s, const dsa_sample_row_t *r,
    uint64_t seed, uint64_t position, uint32_t least, uint32_t end)
{
    int               i, j;
    float             v[4];
    float4            f;
    uint32_t          c, id, bits, lane, warp;
    dsa_noise_race_t  race;

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;

    for (c = r->first + warp; c < r->end; c += DSA_SAMPLE_WARPS) {
        id = c * DSA_SAMPLE_CHUNK + lane * 4;
        dsa_sample_start(&race, s);

#pragma unroll
        for (j = 0; j < DSA_SAMPLE_VECTORS; j++, id += 128) {
            f = __ldcg((const float4 *) &r->weight[id]);

#pragma unroll
            for (i = 0; i < 4; i++) {
                bits = __float_as_uint(((const float *) &f)[i]);
                v[i] = bits > least || (bits == least && id + i < end)
                       ? __uint_as_float(bits) : 0;
            }

            dsa_noise_enter(&race, v, seed, position, id);
        }

        dsa_sample_finish(s, &race);
    }
}


/*
 * Draws the token of a row whose greatest logit is best, which is finite.  Not
 * inlined, and with the row by value, because otherwise the kernel would have
 * too few registers for greedy rows, too.
 */

static __device__ __noinline__ void
dsa_sample_random(dsa_sample_shared_t *s, dsa_sample_row_t r,
    const dsa_cuda_sample_row_t *want, float best, uint32_t parts)
{
    float     temperature;
    double    kept;
    uint32_t  least, ties, end;

    temperature = want->sampling.temperature;

    if (!(want->sampling.top_p < 1)) {
        dsa_sample_race(s, &r, best, temperature, want->sampling.seed,
                        want->position, want->report);
        return;
    }

    dsa_sample_weights(s, &r, best, temperature);

    least = dsa_sample_nucleus(s, &r, parts, want->sampling.top_p, &ties, &end,
                               &kept);

    if (threadIdx.x == 0) {
        s->least = least;
        s->ties = ties;
        s->kept = kept;
    }

    dsa_sample_race_kept(s, &r, want->sampling.seed, want->position, least,
                         end);
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
    float                         best;
    uint32_t                      parts, rank, row, best_id, id;
    uint32_t                      random, n_top;
    uint64_t                      b;
    const uint32_t               *mask;
    dsa_sample_row_t              r;
    const dsa_sampling_t         *p;
    dsa_sample_shared_t          *s;
    const dsa_cuda_sample_row_t  *want;

    const cg::cluster_group  cluster = cg::this_cluster();

    extern __shared__ __align__(16) uint8_t  shared[];

    s = (dsa_sample_shared_t *) shared;
    rank = cluster.block_rank();
    parts = cluster.num_blocks();
    row = blockIdx.x / parts;

    /* not copied, because registers are few */

    want = &in[row];
    p = &want->sampling;
    mask = dsa_sample_mask(want, masks, vocab);

    dsa_sample_row(&r, logits + row * ld,
                   work + row * dsa_sample_row_size(vocab), vocab, allowed,
                   aligned,
                   mask != NULL || want->n_bias != 0
                   || dsa_sample_penalizes(want, history), rank, parts);

    dsa_sample_clear(s);

    dsa_sample_greatest(s, &r, p->logprobs);

    b = dsa_sample_agree(s, parts, p->logprobs);
    best_id = b != 0 ? ~(uint32_t) b : 0;
    best = b != 0 ? dsa_order_float((uint32_t) (b >> 32)) : -INFINITY;
    random = p->temperature > 0 && isfinite(best);

    if (random) {
        dsa_sample_random(s, r, want, best, parts);
    }

    if (p->logprobs) {
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
        id = random ? dsa_sample_drawn(s, parts) : best_id;

        if (threadIdx.x == 0) {
            id = dsa_sample_permitted(mask, allowed, id);
            out->token = id;
            out->logprob = 0;
            out->n_top = 0;
            s->token = id;
        }

        __syncthreads();

        if (want->report) {
            dsa_sample_report(out, s, &r, random);
        }

        if (p->logprobs) {
            n_top = p->top_logprobs < DSA_SAMPLE_MAX_TOP ? p->top_logprobs
                                                        : DSA_SAMPLE_MAX_TOP;
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
