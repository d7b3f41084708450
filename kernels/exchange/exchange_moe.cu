
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "kernels/core/setup.cuh"
#include "exchange.cuh"


/*
 * Tokens for the experts of all ranks, and the sums of the results.  The unit
 * of work is a part of a row, for one warp.
 */

#define DSA_TOKENS_LOADS    4           /* of 16 codes a lane */
#define DSA_TOKENS_SPAN     (DSA_TOKENS_LOADS * 32 * 16)

#define DSA_PART_LOADS      2           /* of 8 columns a lane */
#define DSA_PART_SPAN       (DSA_PART_LOADS * 32 * DSA_CHUNK)

#define DSA_PART_FEW        128         /* threads of a block for few parts, so
                                           that more multiprocessors are
                                           used */
#define DSA_PART_MANY       512         /* and for many parts, so that fewer
                                           blocks wait for their stores */

#define DSA_SUM_TURNS       4           /* most parts of a warp with which the
                                           kernel of the sum itself waits */
#define DSA_SUM_RANKS       8           /* ranks whose rows are in flight */


typedef struct {
    uint32_t            tokens;
    uint32_t            slot;
    uint32_t            experts;        /* of a rank */
    uint32_t            k;
    uint32_t            cols;
    uint32_t            parts;          /* of a row */
    uint32_t            blocks;         /* that store rows; the others store
                                           ids, weights and scales */
} dsa_exchange_size_t;


/* Reads a part of a row once, and stores it to the ranks of its experts. */

static __device__ __forceinline__ void
dsa_tokens_rows(const dsa_cuda_exchange_t *x, const dsa_exchange_tokens_t *to,
    const dsa_fp8_rows_t *y, const int32_t *expert, const int32_t *live,
    const dsa_exchange_size_t *n)
{
    int       j;
    uint4     v[DSA_TOKENS_LOADS];
    size_t    row, at;
    uint32_t  i, q, r, col, ranks;

    i = blockIdx.x * DSA_EXCHANGE_WARPS + threadIdx.x / 32;

    for ( /* void */ ; i < n->tokens * n->parts;
          i += n->blocks * DSA_EXCHANGE_WARPS)
    {
        row = i / n->parts;
        col = i % n->parts * DSA_TOKENS_SPAN + threadIdx.x % 32 * 16;

#pragma unroll
        for (j = 0; j < DSA_TOKENS_LOADS; j++) {
            if (col + j * 512 < n->cols) {
                v[j] = dsa_load16(y->q + row * n->cols + col + j * 512);
            }
        }

        ranks = dsa_exchange_ranks(expert, live, row, n->k, n->experts,
                                   x->ranks);
        at = ((size_t) x->rank * n->slot + row) * n->cols + col;

        for (r = 0; r < x->ranks; r++) {
            q = dsa_exchange_peer(x, r);

            if ((ranks >> q & 1) == 0) {
                continue;
            }

#pragma unroll
            for (j = 0; j < DSA_TOKENS_LOADS; j++) {
                if (col + j * 512 < n->cols) {
                    dsa_store16(to->x[q].q + at + j * 512, v[j]);
                }
            }
        }
    }
}


/*
 * Stores scales.  They are stored for all tokens, so that warps store whole
 * sectors.
 */

static __device__ __forceinline__ void
dsa_tokens_scales(const dsa_cuda_exchange_t *x,
    const dsa_exchange_tokens_t *to, const dsa_fp8_rows_t *y,
    const dsa_exchange_size_t *n, uint32_t first, uint32_t step)
{
    float     s;
    size_t    row;
    uint32_t  i, q, group;

    if (y->scale == NULL) {
        return;
    }

    for (i = first; i < n->cols / DSA_GROUP * n->tokens; i += step) {
        group = i / n->tokens;
        row = i % n->tokens;
        s = y->scale[group * y->ld + row];
        row += (size_t) x->rank * n->slot;

        for (q = 0; q < x->ranks; q++) {
            to->x[q].scale[group * to->x[q].ld + row] = s;
        }
    }
}


/*
 * Stores ids: each rank gets its own numbers of its experts, and -1 for the
 * others.
 */

static __device__ __forceinline__ void
dsa_tokens_ids(const dsa_cuda_exchange_t *x, const dsa_exchange_tokens_t *to,
    const int32_t *expert, const float *weight, const int32_t *live,
    const dsa_exchange_size_t *n, uint32_t first, uint32_t step)
{
    float     w;
    size_t    at;
    int32_t   e, id;
    uint32_t  i, q;

    for (i = first; i < n->slot * n->k; i += step) {
        e = -1;
        w = 0;

        if (i < n->tokens * n->k
            && (live == NULL || live[i / n->k] >= 0))
        {
            e = expert[i];
            w = weight[i];
        }

        at = (size_t) x->rank * n->slot * n->k + i;

        for (q = 0; q < x->ranks; q++) {
            id = e >= 0 && (uint32_t) e / n->experts == q
                 ? e - (int32_t) (q * n->experts) : -1;
            to->expert[q][at] = id;

            if (id >= 0) {
                to->weight[q][at] = w;
            }
        }
    }
}


static __global__ void __launch_bounds__(DSA_EXCHANGE_THREADS)
dsa_exchange_tokens_kernel(DSA_EXCHANGE_X x,
    const __grid_constant__ dsa_exchange_tokens_t to,
    const __grid_constant__ dsa_fp8_rows_t y, const int32_t *expert,
    const float *weight, const int32_t *live,
    const __grid_constant__ dsa_exchange_size_t n)
{
    uint32_t  first, step;

    dsa_begin();

    if (blockIdx.x < n.blocks) {
        dsa_tokens_rows(&x, &to, &y, expert, live, &n);

    } else {
        first = (blockIdx.x - n.blocks) * DSA_EXCHANGE_THREADS + threadIdx.x;
        step = (gridDim.x - n.blocks) * DSA_EXCHANGE_THREADS;

        dsa_tokens_ids(&x, &to, expert, weight, live, &n, first, step);
        dsa_tokens_scales(&x, &to, &y, &n, first, step);
    }

    dsa_exchange_raise(&x, 0);
}


extern "C" int
dsa_cuda_exchange_tokens(const dsa_cuda_exchange_t *x,
    const dsa_exchange_tokens_t *to, const dsa_fp8_rows_t *y,
    const int32_t *expert, const float *weight, const int32_t *live,
    uint32_t tokens, uint32_t slot, uint32_t experts, uint32_t k,
    uint32_t cols, dsa_stream_t stream)
{
    uint32_t             i, others;
    uint64_t             most;
    dsa_exchange_size_t  n;

    if (!dsa_exchange_ok(x) || k == 0 || k > DSA_CUDA_CHOICES || experts == 0
        || cols == 0 || tokens > slot
        || (uint64_t) slot * x->ranks * k > INT32_MAX
        || (uint64_t) slot * cols > INT32_MAX)
    {
        return cudaErrorInvalidValue;
    }

    for (i = 0; i < x->ranks; i++) {
        if (!dsa_copy_rows_ok(&to->x[i], (x->rank + 1) * slot, y, tokens,
                              cols))
        {
            return cudaErrorInvalidValue;
        }
    }

    n.tokens = tokens;
    n.slot = slot;
    n.experts = experts;
    n.k = k;
    n.cols = cols;
    n.parts = (cols + DSA_TOKENS_SPAN - 1) / DSA_TOKENS_SPAN;
    n.blocks = tokens == 0 ? 0
               : dsa_exchange_blocks((uint64_t) tokens * n.parts,
                                     DSA_EXCHANGE_WARPS, 2 * x->processors);

    most = (uint64_t) tokens * (cols / DSA_GROUP);
    most = most > (uint64_t) slot * k ? most : (uint64_t) slot * k;
    others = dsa_exchange_blocks(most, DSA_EXCHANGE_THREADS, x->processors);

    return dsa_launch(dsa_exchange_tokens_kernel, n.blocks + others,
                      DSA_EXCHANGE_THREADS, 0, stream, *x, *to, *y, expert,
                      weight, live, n);
}


typedef struct {
    dsa_bf16_t         *part[DSA_EXCHANGE_RANKS];
    const dsa_bf16_t   *y;
    const float        *weight;
    const int32_t      *expert;
    const int32_t      *place;
    uint32_t            first;
    uint32_t            rows;
    uint32_t            owner;          /* of the first row */
    uint32_t            owners;         /* number of owners of all rows */
    uint32_t            begin;          /* the owner to begin with */
    uint32_t            slot;
    uint32_t            k;
    uint32_t            cols;
    uint32_t            parts;          /* of a row */
} dsa_exchange_combine_t;


/*
 * Computes a part of a row that rank owner has sent: the warp sorts the row's
 * pairs by expert, and adds up the results of the experts.
 */

template <int K, int LOADS>
static __device__ __forceinline__ void
dsa_combine_part(const dsa_cuda_exchange_t *x, const dsa_exchange_combine_t *c,
    uint32_t owner, uint32_t row, uint32_t col)
{
    int          i, j, l, from, at[K];
    float        w, weight[K], sum[DSA_CHUNK], v[DSA_CHUNK];
    uint4        in[LOADS][K];
    int32_t      e, p, other;
    uint32_t     lane, order, all;
    dsa_bf16_t  *to;

    lane = threadIdx.x % 32;
    e = INT32_MAX;
    p = -1;
    w = 0;

    if (lane < c->k) {
        p = c->place[(size_t) (row - c->first) * c->k + lane];
        e = c->expert[(size_t) row * c->k + lane];
        w = c->weight[(size_t) row * c->k + lane];
    }

    if (!__any_sync(0xffffffff, p >= 0)) {
        return;
    }

    order = 0;

#pragma unroll
    for (i = 0; i < K; i++) {
        other = __shfl_sync(0xffffffff, e, i);
        order += other < e || (other == e && i < (int) lane);
    }

#pragma unroll
    for (i = 0; i < K; i++) {
        all = __ballot_sync(0xffffffff, lane < K && order == (uint32_t) i);
        from = __ffs(all) - 1;
        at[i] = __shfl_sync(0xffffffff, p, from);
        weight[i] = __shfl_sync(0xffffffff, w, from);

#pragma unroll
        for (l = 0; l < LOADS; l++) {
            if (at[i] >= 0 && col + l * 256 < c->cols) {
                in[l][i] = dsa_load16(c->y + (size_t) at[i] * c->cols + col
                                      + l * 256);
            }
        }
    }

    row += (x->rank - owner) * c->slot;
    to = c->part[owner] + (size_t) row * c->cols + col;

#pragma unroll
    for (l = 0; l < LOADS; l++) {
        if (col + l * 256 >= c->cols) {
            continue;
        }

#pragma unroll
        for (j = 0; j < DSA_CHUNK; j++) {
            sum[j] = 0;
        }

#pragma unroll
        for (i = 0; i < K; i++) {
            if (at[i] >= 0) {
                dsa_unpack8(v, in[l][i]);

#pragma unroll
                for (j = 0; j < DSA_CHUNK; j++) {
                    sum[j] = __fadd_rn(sum[j], __fmul_rn(weight[i], v[j]));
                }
            }
        }

        dsa_store16(to + l * 256, dsa_pack8(sum));
    }
}


/*
 * blockIdx.y selects an owner of rows, so that the links to all owners are
 * busy all the time.
 */

template <int K, int LOADS>
static __global__ void __launch_bounds__(DSA_PART_MANY)
dsa_exchange_combine_kernel(DSA_EXCHANGE_X x,
    const __grid_constant__ dsa_exchange_combine_t c, int last)
{
    uint32_t  i, part, step, owner, row, end;

    dsa_begin();

    owner = blockIdx.y + c.begin;
    owner = c.owner + (owner < c.owners ? owner : owner - c.owners);
    row = max(c.first, owner * c.slot);
    end = min(c.first + c.rows, (owner + 1) * c.slot);

    i = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    step = gridDim.x * (blockDim.x / 32);

    for ( /* void */ ; i < (end - row) * c.parts; i += step) {
        part = i % c.parts;

        dsa_combine_part<K, LOADS>(&x, &c, owner, row + i / c.parts,
                                   part * LOADS * 256
                                   + threadIdx.x % 32 * DSA_CHUNK);
    }

    if (last) {
        dsa_exchange_raise(&x, 0);
    }
}


/* Host: returns the threads of a block for n parts. */

static uint32_t
dsa_part_threads(const dsa_cuda_exchange_t *x, uint64_t n)
{
    return n <= (uint64_t) x->processors * (DSA_PART_FEW / 32) ? DSA_PART_FEW
                                                               : DSA_PART_MANY;
}


extern "C" int
dsa_cuda_exchange_combine(const dsa_cuda_exchange_t *x,
    dsa_bf16_t *const *part, const dsa_bf16_t *y,
    const float *weight, const int32_t *expert, const dsa_moe_plan_t *plan,
    uint32_t first, uint32_t rows, uint32_t slot, uint32_t k, uint32_t cols,
    int last, dsa_stream_t stream)
{
    dim3                    grid;
    uint32_t                i, most, span, threads;
    dsa_exchange_combine_t  c;

    if (!dsa_exchange_ok(x) || k == 0 || k > DSA_CUDA_CHOICES || cols == 0
        || cols % DSA_CHUNK != 0 || slot == 0
        || (uint64_t) first + rows > (uint64_t) x->ranks * slot
        || (uint64_t) x->ranks * slot * cols / 256 > INT32_MAX
        || !dsa_exchange_addresses_ok(x, (void *const *) part)
        || !dsa_aligned16(y))
    {
        return cudaErrorInvalidValue;
    }

    if (rows == 0 && !last) {
        return cudaSuccess;
    }

    for (i = 0; i < x->ranks; i++) {
        c.part[i] = part[i];
    }

    c.y = y;
    c.weight = weight;
    c.expert = expert;
    c.place = plan->place;
    c.first = first;
    c.rows = rows;
    c.owner = first / slot;
    c.owners = rows == 0 ? 1 : (first + rows - 1) / slot - c.owner + 1;
    c.begin = (x->rank + 1) % c.owners;
    c.slot = slot;
    c.k = k;
    c.cols = cols;

    span = (k <= 8 ? DSA_PART_LOADS : 1) * 256;
    c.parts = (cols + span - 1) / span;

    most = rows < slot ? rows : slot;
    threads = dsa_part_threads(x, (uint64_t) rows * c.parts);
    grid = dim3(dsa_exchange_blocks((uint64_t) most * c.parts, threads / 32,
                                    (x->processors + c.owners - 1)
                                    / c.owners), c.owners);

    if (k <= 8) {
        return dsa_launch(dsa_exchange_combine_kernel<8, DSA_PART_LOADS>, grid,
                          threads, 0, stream, *x, c, last);
    }

    return dsa_launch(dsa_exchange_combine_kernel<DSA_CUDA_CHOICES, 1>, grid,
                      threads, 0, stream, *x, c, last);
}


typedef struct {
    dsa_bf16_t         *y;
    const dsa_bf16_t   *part;
    const dsa_bf16_t   *shared;
    const int32_t      *expert;
    const int32_t      *live;
} dsa_exchange_sum_t;


static __device__ __forceinline__ void
dsa_sum_add(float *sum, uint4 u)
{
    int    j;
    float  v[DSA_CHUNK];

    dsa_unpack8(v, u);

#pragma unroll
    for (j = 0; j < DSA_CHUNK; j++) {
        sum[j] = __fadd_rn(sum[j], v[j]);
    }
}


/* Adds the parts, ranks rising, then shared. */

static __device__ __forceinline__ void
dsa_sum_part(const dsa_exchange_sum_t *s, const dsa_exchange_size_t *n,
    uint32_t ranks, uint32_t row, uint32_t col)
{
    int       i, l;
    float     sum[DSA_PART_LOADS][DSA_CHUNK] = { { 0 } };
    uint4     in[DSA_PART_LOADS][DSA_SUM_RANKS], own[DSA_PART_LOADS];
    size_t    at;
    uint32_t  r, has;

    at = (size_t) row * n->cols + col;

#pragma unroll
    for (l = 0; l < DSA_PART_LOADS; l++) {
        own[l] = make_uint4(0, 0, 0, 0);

        if (s->shared != NULL && col + l * 256 < n->cols) {
            own[l] = dsa_load16(s->shared + at + l * 256);
        }
    }

    has = dsa_exchange_ranks(s->expert, s->live, row, n->k, n->experts, ranks);

    for (r = 0; r < ranks; r += DSA_SUM_RANKS, has >>= DSA_SUM_RANKS) {

#pragma unroll
        for (i = 0; i < DSA_SUM_RANKS; i++) {
#pragma unroll
            for (l = 0; l < DSA_PART_LOADS; l++) {
                if ((has >> i & 1) != 0 && col + l * 256 < n->cols) {
                    in[l][i] = dsa_load16(s->part + at + l * 256
                                          + (size_t) (r + i) * n->slot
                                            * n->cols);
                }
            }
        }

#pragma unroll
        for (i = 0; i < DSA_SUM_RANKS; i++) {
            if ((has >> i & 1) == 0) {
                continue;
            }

#pragma unroll
            for (l = 0; l < DSA_PART_LOADS; l++) {
                dsa_sum_add(sum[l], in[l][i]);
            }
        }
    }

#pragma unroll
    for (l = 0; l < DSA_PART_LOADS; l++) {
        if (col + l * 256 < n->cols) {
            dsa_sum_add(sum[l], own[l]);
            dsa_store16(s->y + at + l * 256, dsa_pack8(sum[l]));
        }
    }
}


static __global__ void __launch_bounds__(DSA_PART_MANY)
dsa_exchange_sum_kernel(DSA_EXCHANGE_X x,
    const __grid_constant__ dsa_exchange_sum_t s,
    const __grid_constant__ dsa_exchange_size_t n, int wait)
{
    uint32_t  i, step;

    if (wait) {
        dsa_exchange_begin(&x);
        dsa_exchange_await(&x);

    } else {
        dsa_begin();
    }

    i = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    step = gridDim.x * (blockDim.x / 32);

    for ( /* void */ ; i < n.tokens * n.parts; i += step) {
        dsa_sum_part(&s, &n, x.ranks, i / n.parts,
                     i % n.parts * DSA_PART_SPAN
                     + threadIdx.x % 32 * DSA_CHUNK);
    }
}


extern "C" int
dsa_cuda_exchange_sum(const dsa_cuda_exchange_t *x, dsa_bf16_t *y,
    const dsa_bf16_t *part, const dsa_bf16_t *shared, const int32_t *expert,
    const int32_t *live, uint32_t tokens, uint32_t slot, uint32_t experts,
    uint32_t k, uint32_t cols, dsa_stream_t stream)
{
    int                  rc, wait;
    uint32_t             most, threads;
    uint64_t             parts;
    dsa_exchange_sum_t   s;
    dsa_exchange_size_t  n = { 0 };

    if (!dsa_exchange_ok(x) || k == 0 || k > DSA_CUDA_CHOICES || experts == 0
        || cols == 0 || cols % DSA_CHUNK != 0 || tokens > slot
        || (uint64_t) slot * cols / DSA_PART_SPAN > INT32_MAX
        || !dsa_aligned16(y) || !dsa_aligned16(part)
        || !dsa_aligned16(shared))
    {
        return cudaErrorInvalidValue;
    }

    s.y = y;
    s.part = part;
    s.shared = shared;
    s.expert = expert;
    s.live = live;

    n.tokens = tokens;
    n.slot = slot;
    n.experts = experts;
    n.k = k;
    n.cols = cols;
    n.parts = (cols + DSA_PART_SPAN - 1) / DSA_PART_SPAN;

    /*
     * The number of waiting blocks is limited; if more are needed, one block
     * waits first.
     */

    parts = (uint64_t) tokens * n.parts;
    threads = dsa_part_threads(x, parts);
    most = dsa_exchange_spin(x);
    wait = parts <= (uint64_t) most * (threads / 32) * DSA_SUM_TURNS;

    if (!wait) {
        rc = dsa_cuda_exchange_wait(x, stream);
        if (rc != 0) {
            return rc;
        }

        most = 4 * x->processors;
    }

    return dsa_launch(dsa_exchange_sum_kernel,
                      dsa_exchange_blocks(parts, threads / 32, most), threads,
                      0, stream, *x, s, n, wait);
}


int
dsa_exchange_moe_setup(void)
{
    int  rc;

    rc = dsa_setup_load(dsa_exchange_tokens_kernel);
    rc = rc != 0 ? rc : dsa_setup_load(
                            dsa_exchange_combine_kernel<8, DSA_PART_LOADS>);
    rc = rc != 0 ? rc : dsa_setup_load(
                            dsa_exchange_combine_kernel<DSA_CUDA_CHOICES, 1>);
    rc = rc != 0 ? rc : dsa_setup_load(dsa_exchange_sum_kernel);

    return rc;
}
