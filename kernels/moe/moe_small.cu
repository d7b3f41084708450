
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "kernels/core/setup.cuh"
#include "moe.cuh"


#define DSA_SMALL_COLS      512     /* of a block: 16 codes for each lane */
#define DSA_SMALL_GROUPS    (DSA_SMALL_COLS / DSA_GROUP)
#define DSA_SMALL_THREADS   (32 * DSA_MOE_SMALL)


static_assert(DSA_SMALL_THREADS >= DSA_CUDA_EXPERTS,
              "a thread for each expert");
static_assert(DSA_MOE_SMALL <= 32, "a bit for each row");
static_assert(DSA_SMALL_COLS == 32 * 16 && 32 % DSA_SMALL_GROUPS == 0,
              "a lane has 16 codes, and the scale of one group");


/*
 * The choice, the plan and the gather of few rows in one kernel.  As three
 * kernels they take 1.5 to 3.3 us each, nearly all of which is the launch and
 * the latency of memory.
 *
 * A block copies DSA_SMALL_COLS columns of all rows, a warp for each row.  All
 * blocks compute the same choices and the same places, because a barrier
 * between blocks would take longer; the first block stores them.
 *
 * The rows of an expert are the bits of a word.  A running sum over the
 * aligned counts of the experts, one for each thread, gives the first place of
 * each expert.
 */

typedef struct {
    dsa_fp8_rows_t      y;
    dsa_fp8_rows_t      x;
    dsa_moe_plan_t      plan;
    dsa_router_t        router;         /* these are for the choice only: */
    const float        *logits;
    const float        *bias;
    float              *weight;
    int32_t            *chosen;
    uint32_t            lanes;
    uint32_t            inverse;
    const int32_t      *expert;         /* NULL with a choice */
    uint32_t            rows;
    uint32_t            k;
    uint32_t            experts;
    uint32_t            cols;
} dsa_moe_small_t;


/*
 * Returns the first place of expert threadIdx.x, which has aligned places.
 * part: shared memory, a word for each warp.
 */

static __device__ __forceinline__ uint32_t
dsa_small_start(uint32_t aligned, uint32_t *part)
{
    uint32_t  i, v, u, lane, warp;

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;
    v = aligned;

#pragma unroll
    for (i = 1; i < 32; i *= 2) {
        u = __shfl_up_sync(0xffffffff, v, i);
        v += lane >= i ? u : 0;
    }

    if (lane == 31) {
        part[warp] = v;
    }

    __syncthreads();

    v -= aligned;

#pragma unroll
    for (i = 0; i < DSA_MOE_SMALL; i++) {
        v += i < warp ? part[i] : 0;
    }

    return v;
}


/*
 * Stores the part of the plan that is per expert; called in the first block.
 */

static __device__ __forceinline__ void
dsa_small_store(const dsa_moe_plan_t *plan, uint32_t experts, uint32_t start,
    uint32_t count, uint32_t aligned)
{
    uint32_t  i, e;

    e = threadIdx.x;

    if (e >= experts) {
        return;
    }

    plan->offset[e] = (int32_t) start;
    plan->count[e] = (int32_t) count;

    if (e == experts - 1) {
        plan->offset[experts] = (int32_t) (start + aligned);
    }

    for (i = count; i < aligned; i++) {
        plan->row[start + i] = -1;
    }
}


/*
 * A warp copies 16 codes v of each lane, and the scale s of group
 * lane % DSA_SMALL_GROUPS, to the places of the row's k pairs, one in each
 * lane.
 */

static __device__ __forceinline__ void
dsa_small_copy(const dsa_moe_small_t *c, uint4 v, float s, uint32_t col,
    uint32_t group, int32_t place, uint32_t lane)
{
    int32_t   p;
    uint32_t  i;

#pragma unroll 8
    for (i = 0; i < c->k; i++) {
        p = __shfl_sync(0xffffffff, place, i);

        if (p >= 0 && col < c->cols) {
            dsa_store16(c->y.q + (size_t) p * c->cols + col, v);
        }
    }

    if (c->y.scale == NULL) {
        return;
    }

    for (i = 0; i < c->k; i += 32 / DSA_SMALL_GROUPS) {
        p = __shfl_sync(0xffffffff, place, i + lane / DSA_SMALL_GROUPS);

        if (p >= 0 && group < c->cols / DSA_GROUP) {
            c->y.scale[group * c->y.ld + p] = s;
        }
    }
}


/* J: experts per lane in the choice, or 0: the experts are given. */

template <int J>
static __global__ void __launch_bounds__(DSA_SMALL_THREADS)
dsa_moe_small_kernel(const __grid_constant__ dsa_moe_small_t c)
{
    float                       s, w, in[J > 0 ? J : 1], own[J > 0 ? J : 1];
    uint4                       v;
    int32_t                     e, place;
    uint32_t                    t, at, row, col, lane, live, used, group,
                                count, aligned;
    __shared__ uint32_t         mask[DSA_CUDA_EXPERTS];
    __shared__ uint32_t         start[DSA_CUDA_EXPERTS];
    __shared__ uint32_t         part[DSA_MOE_SMALL];
    extern __shared__ uint32_t  dsa_small_words[];

    t = threadIdx.x;
    lane = t % 32;
    row = t / 32;
    live = row < c.rows;
    col = blockIdx.x * DSA_SMALL_COLS + lane * 16;
    group = blockIdx.x * DSA_SMALL_GROUPS + lane % DSA_SMALL_GROUPS;

    if (t < c.experts) {
        mask[t] = 0;
    }

    if (J > 0 && live) {
        dsa_route_load<J>(own, c.bias, c.experts, lane);
    }

    __syncthreads();
    dsa_begin();

    e = -1;
    s = 0;
    w = 0;
    v = make_uint4(0, 0, 0, 0);

    if (live && col < c.cols) {
        v = dsa_load16(c.x.q + (size_t) row * c.cols + col);
    }

    if (live && c.x.scale != NULL && group < c.cols / DSA_GROUP) {
        s = c.x.scale[group * c.x.ld + row];
    }

    if constexpr (J > 0) {
        dsa_route_shared_t<J>  *shared;

        if (live) {
            dsa_route_load<J>(in, c.logits + (size_t) row * c.experts,
                              c.experts, lane);
            shared = (dsa_route_shared_t<J> *) dsa_small_words + row;
            e = (int32_t) dsa_route_choose<J>(&w, shared, in, own, &c.router,
                                              c.lanes, c.inverse, lane);
        }

    } else if (live && lane < c.k) {
        e = c.expert[row * c.k + lane];
    }

    used = live && lane < c.k && (uint32_t) e < c.experts;

    if (used) {
        atomicOr(&mask[e], 1U << row);
    }

    __syncthreads();

    count = t < c.experts ? __popc(mask[t]) : 0;
    aligned = (count + c.plan.align - 1) & ~(c.plan.align - 1);
    at = dsa_small_start(aligned, part);

    if (t < c.experts) {
        start[t] = at;
    }

    __syncthreads();

    place = used ? (int32_t) (start[e] + __popc(mask[e] & ((1U << row) - 1)))
                 : -1;

    if (live) {
        dsa_small_copy(&c, v, s, col, group, place, lane);
    }

    if (blockIdx.x > 0) {
        return;
    }

    dsa_small_store(&c.plan, c.experts, at, count, aligned);

    if (live && lane < c.k) {
        c.plan.place[row * c.k + lane] = place;

        if (J > 0) {
            c.chosen[row * c.k + lane] = e;
            c.weight[row * c.k + lane] = w;
        }
    }

    if (used) {
        c.plan.row[place] = (int32_t) row;
    }
}


/* Starts the kernel; the arguments of the choice were checked. */

template <int J>
static int
dsa_moe_small(const dsa_moe_small_t *c, dsa_stream_t stream)
{
    size_t    smem;
    uint32_t  blocks, threads;

    if (!dsa_moe_plan_ok(&c->plan, c->rows, c->k, c->experts) || c->cols == 0
        || !dsa_copy_rows_ok(&c->y, 0, &c->x, c->rows, c->cols))
    {
        return cudaErrorInvalidValue;
    }

    smem = J > 0 ? c->rows * sizeof(dsa_route_shared_t<J>) : 0;
    blocks = (c->cols + DSA_SMALL_COLS - 1) / DSA_SMALL_COLS;
    threads = (c->experts + 31) & ~31U;
    threads = threads > 32 * c->rows ? threads : 32 * c->rows;

    return dsa_launch(dsa_moe_small_kernel<J>, blocks, threads, smem, stream,
                      *c);
}


extern "C" int
dsa_cuda_moe_sort(const dsa_fp8_rows_t *y, const dsa_fp8_rows_t *x,
    const dsa_moe_plan_t *plan, const int32_t *expert, uint32_t rows,
    uint32_t k, uint32_t experts, uint32_t cols, dsa_stream_t stream)
{
    int              rc;
    dsa_moe_small_t  c = { 0 };

    if (rows > DSA_MOE_SMALL) {
        rc = dsa_cuda_moe_plan(plan, expert, rows, k, experts, stream);

        return rc != 0 ? rc : dsa_cuda_moe_gather(y, x, plan, rows, k, experts,
                                                  cols, stream);
    }

    c.y = *y;
    c.x = *x;
    c.plan = *plan;
    c.expert = expert;
    c.rows = rows;
    c.k = k;
    c.experts = experts;
    c.cols = cols;

    return dsa_moe_small<0>(&c, stream);
}


extern "C" int
dsa_cuda_route_sort(const dsa_fp8_rows_t *y, const dsa_fp8_rows_t *x,
    const dsa_moe_plan_t *plan, int32_t *expert, float *weight,
    const float *logits, const float *bias, uint32_t rows,
    const dsa_router_t *r, uint32_t cols, dsa_stream_t stream)
{
    int              rc;
    dsa_moe_small_t  c = { 0 };

    if (rows > DSA_MOE_SMALL) {
        rc = dsa_cuda_route(expert, weight, logits, bias, rows, r, stream);

        return rc != 0 ? rc : dsa_cuda_moe_sort(y, x, plan, expert, rows, r->k,
                                                r->experts, cols, stream);
    }

    if (!dsa_router_ok(r)) {
        return cudaErrorInvalidValue;
    }

    dsa_route_split(r, &c.lanes, &c.inverse);

    c.y = *y;
    c.x = *x;
    c.plan = *plan;
    c.router = *r;
    c.logits = logits;
    c.bias = bias;
    c.weight = weight;
    c.chosen = expert;
    c.rows = rows;
    c.k = r->k;
    c.experts = r->experts;
    c.cols = cols;

    return r->experts <= 256 ? dsa_moe_small<8>(&c, stream)
                             : dsa_moe_small<16>(&c, stream);
}


/*
 * Sets up the kernels.  The kernel without a choice needs no attribute, but is
 * loaded here as well, because it runs between kernels that wait for other
 * ranks.
 */

int
dsa_moe_small_setup(void)
{
    int  rc;

    rc = dsa_setup_load(dsa_moe_small_kernel<0>);
    rc = rc != 0 ? rc
                 : dsa_setup_shared(dsa_moe_small_kernel<8>,
                                    DSA_MOE_SMALL
                                    * sizeof(dsa_route_shared_t<8>));

    return rc != 0 ? rc
                   : dsa_setup_shared(dsa_moe_small_kernel<16>,
                                      DSA_MOE_SMALL
                                      * sizeof(dsa_route_shared_t<16>));
}
