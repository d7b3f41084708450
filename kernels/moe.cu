
/*
 * Copyright (C) The nginx-dsa authors
 */


extern "C" {
#include "kernels/moe.h"
}

#include "kernels/rows.cuh"


#define DSA_MOE_EXPERTS      512
#define DSA_MOE_K            16
#define DSA_MOE_THREADS      256
#define DSA_MOE_BLOCKS       1056   /* eight an SM, which walk the places */

#define DSA_ROUTE_WARPS      4      /* rows of a block */
#define DSA_ROUTE_LEAST      -1e30f

#define DSA_PLAN_THREADS     1024
#define DSA_PLAN_WARPS       (DSA_PLAN_THREADS / 32)
#define DSA_PLAN_LOADS       4      /* pairs of a thread in flight */
#define DSA_PLAN_STEP        (DSA_PLAN_LOADS * DSA_PLAN_THREADS)
#define DSA_PLAN_BLOCKS      8      /* a cluster */
#define DSA_PLAN_ROWS        1024   /* that a block has in masks at once */

#define DSA_GATHER_LOADS     2      /* of 16 bytes a thread */
#define DSA_GATHER_PARTS     4      /* blocks that bring a group's scales */
#define DSA_GATHER_TURNS     4      /* of which a thread has some in flight */
#define DSA_COMBINE_THREADS  128


/*
 * The router: a warp a row.  Lane l has the experts l, l + 32, ... in
 * registers; groups are read through shared memory.
 */

/* Float order as unsigned order; v is not -0. */

static __device__ __forceinline__ uint32_t
dsa_route_order(float v)
{
    uint32_t  u;

    u = __float_as_uint(v);

    return u ^ ((int32_t) u < 0 ? 0xffffffff : 0x80000000);
}


/* Where shared memory has expert e: groups of 32 begin in different banks. */

#define dsa_route_at(e)  ((e) + (e) / 32)


/*
 * exp(x), rounded right but in rare cases, as expf() of the CPU is: choices
 * hang on it.  2^f for f in -1/2 .. 1/2 by the first ten terms of its series,
 * 7e-12 off at most; what is added to f is 1.5 * 2^52.
 */

static __device__ __forceinline__ float
dsa_route_exp(float x)
{
    double  t, k, f, p;

    t = (double) fminf(fmaxf(x, -110.0f), 110.0f) * 1.4426950408889634;
    k = __dadd_rn(t, 6755399441055744.0);
    f = __dadd_rn(t, -__dadd_rn(k, -6755399441055744.0));

    p = 1.0178086009239699e-7;
    p = fma(p, f, 1.3215486790144307e-6);
    p = fma(p, f, 1.5252733804059841e-5);
    p = fma(p, f, 1.5403530393381608e-4);
    p = fma(p, f, 1.3333558146428443e-3);
    p = fma(p, f, 9.6181291076284772e-3);
    p = fma(p, f, 5.5504108664821580e-2);
    p = fma(p, f, 2.4022650695910072e-1);
    p = fma(p, f, 6.9314718055994531e-1);
    p = fma(p, f, 1.0);

    p = __hiloint2double(__double2hiint(p) + (__double2loint(k) << 20),
                         __double2loint(p));

    return isnan(x) ? x : (float) p;
}


/*
 * 1 / (1 + exp(-x)).  The quotient by Markstein's steps, rounded right but for
 * subnormal ones, without the branches of the division.
 */

static __device__ __forceinline__ float
dsa_route_sigmoid(float x)
{
    float  d, q, r;

    d = __fadd_rn(1.0f, dsa_route_exp(-x));

    asm ("rcp.approx.f32 %0, %1;" : "=f"(r) : "f"(d));

    q = __fmaf_rn(__fmaf_rn(-d, r, 1.0f), r, r);
    q = __fmaf_rn(__fmaf_rn(-d, q, 1.0f), r, q);

    return d == INFINITY ? 0.0f : q;
}


/*
 * The sums of the two greatest b of each group, by lanes side by side: their
 * number is the greatest power of two that gives every group some.
 */

static __device__ __forceinline__ void
dsa_route_groups(float *group, const float *b, uint32_t groups, uint32_t size,
    uint32_t lanes, uint32_t lane)
{
    float     first, second, f, s, v;
    uint32_t  e, g, i, j, end;

    for (i = 0; i < groups; i += 32 / lanes) {
        g = i + lane / lanes;
        first = -INFINITY;
        second = -INFINITY;
        end = g < groups ? (g + 1) * size : 0;

#pragma unroll 8
        for (e = g * size + lane % lanes; e < end; e += lanes) {
            v = b[dsa_route_at(e)];
            second = fmaxf(second, fminf(first, v));
            first = fmaxf(first, v);
        }

        for (j = lanes / 2; j > 0; j /= 2) {
            f = __shfl_xor_sync(0xffffffff, first, j);
            s = __shfl_xor_sync(0xffffffff, second, j);
            second = fmaxf(fminf(first, f), fmaxf(second, s));
            first = fmaxf(first, f);
        }

        if (g < groups && lane % lanes == 0) {
            group[g] = __fadd_rn(first, second);
        }
    }
}


/* Whether a group is among the kept: few have a greater score, or an equal
   one and a lower index. */

static __device__ __forceinline__ int
dsa_route_kept(const float *group, uint32_t groups, uint32_t kept, uint32_t g)
{
    float     v;
    uint32_t  i, before;

    v = group[g];
    before = 0;

#pragma unroll 8
    for (i = 0; i < groups; i++) {
        before += group[i] > v || (group[i] == v && i < g);
    }

    return before < kept;
}


/* J: experts of a lane; inverse * e >> 20 is the group of expert e. */

template <int J>
static __global__ void __launch_bounds__(32 * DSA_ROUTE_WARPS)
dsa_route_kernel(int32_t *expert, float *weight, const float *logits,
    const float *bias, uint32_t rows, dsa_router_t r, uint32_t lanes,
    uint32_t inverse)
{
    int                i;
    float              v, w, sum, in[J], own[J];
    size_t             row;
    uint32_t           e, j, g, lane, warp, best, at, chosen, order[J];
    __shared__ float   score[DSA_ROUTE_WARPS][33 * J];
    __shared__ float   biased[DSA_ROUTE_WARPS][33 * J];
    __shared__ float   group[DSA_ROUTE_WARPS][16 * J];
    __shared__ int     kept[DSA_ROUTE_WARPS][16 * J];

    dsa_begin();

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;
    row = (size_t) blockIdx.x * DSA_ROUTE_WARPS + warp;

    if (row >= rows) {
        return;
    }

    /* all loads first; what is beyond the experts is computed for nothing */

#pragma unroll
    for (i = 0; i < J; i++) {
        e = lane + 32 * i;
        in[i] = e < r.experts ? logits[row * r.experts + e] : 0;
        own[i] = e < r.experts ? bias[e] : 0;
    }

#pragma unroll
    for (i = 0; i < J; i++) {
        e = lane + 32 * i;
        v = dsa_route_sigmoid(in[i]);
        w = __fadd_rn(v, own[i]);
        w = w > DSA_ROUTE_LEAST ? w : DSA_ROUTE_LEAST;

        score[warp][dsa_route_at(e)] = v;
        biased[warp][dsa_route_at(e)] = w;
        order[i] = dsa_route_order(w);
    }

    __syncwarp();

    dsa_route_groups(group[warp], biased[warp], r.groups,
                     r.experts / r.groups, lanes, lane);
    __syncwarp();

    for (g = lane; g < r.groups; g += 32) {
        kept[warp][g] = dsa_route_kept(group[warp], r.groups, r.groups_kept,
                                       g);
    }

    __syncwarp();

#pragma unroll
    for (i = 0; i < J; i++) {
        e = lane + 32 * i;
        g = e < r.experts ? e * inverse >> 20 : 0;
        order[i] = kept[warp][g] && e < r.experts ? order[i] : 0;
    }

    sum = 0;
    chosen = 0;

    for (j = 0; j < r.k; j++) {
        best = order[0];

#pragma unroll
        for (i = 1; i < J; i++) {
            best = max(best, order[i]);
        }

        best = __reduce_max_sync(0xffffffff, best);
        at = UINT32_MAX;

#pragma unroll
        for (i = J - 1; i >= 0; i--) {
            at = order[i] == best ? lane + 32 * i : at;
        }

        e = __reduce_min_sync(0xffffffff, at);

#pragma unroll
        for (i = 0; i < J; i++) {
            if (e == lane + 32 * i) {
                order[i] = 0;
            }
        }

        sum = __fadd_rn(sum, score[warp][dsa_route_at(e)]);
        chosen = lane == j ? e : chosen;
    }

    if (lane < r.k) {
        v = score[warp][dsa_route_at(chosen)];

        if (r.normalize) {
            v = __fdiv_rn(v, sum);
        }

        expert[row * r.k + lane] = (int32_t) chosen;
        weight[row * r.k + lane] = __fmul_rn(v, r.scale);
    }
}


extern "C" int
dsa_cuda_route(int32_t *expert, float *weight, const float *logits,
    const float *bias, uint32_t rows, const dsa_router_t *r,
    dsa_stream_t stream)
{
    uint32_t  size, lanes, inverse, blocks;

    if (r->groups == 0 || r->experts > DSA_MOE_EXPERTS
        || r->experts % r->groups != 0 || r->experts / r->groups < 2
        || r->groups_kept > r->groups || r->k == 0 || r->k > DSA_MOE_K
        || r->k > r->experts / r->groups * r->groups_kept)
    {
        return cudaErrorInvalidValue;
    }

    if (rows == 0) {
        return cudaSuccess;
    }

    size = r->experts / r->groups;
    inverse = ((1U << 20) + size - 1) / size;
    blocks = (rows + DSA_ROUTE_WARPS - 1) / DSA_ROUTE_WARPS;

    for (lanes = 32; lanes * r->groups > 32 && lanes > 1; lanes /= 2) {
        /* void */
    }

    if (r->experts <= 256) {
        return dsa_launch(dsa_route_kernel<8>, blocks, 32 * DSA_ROUTE_WARPS, 0,
                          stream, expert, weight, logits, bias, rows, *r,
                          lanes, inverse);
    }

    return dsa_launch(dsa_route_kernel<16>, blocks, 32 * DSA_ROUTE_WARPS,
                      0, stream, expert, weight, logits, bias, rows, *r,
                      lanes, inverse);
}


/*
 * The plan: counting sort by one cluster of blocks, each with a part of the
 * rows; few rows are one block's.  A row has an expert once at most, so that
 * the rows of an expert are bits of 32-row words, and a pair's place is the
 * beginning of its expert's, what lower blocks and words have of it, and the
 * lower bits of its word.  Or-ing and adding have no order that shows.
 */

/* The number at p of block rank of the cluster. */

static __device__ __forceinline__ uint32_t
dsa_plan_peer(const uint32_t *p, uint32_t rank)
{
    uint32_t  v;

    asm volatile ("{\n"
                  ".reg .b32  r;\n"
                  "mapa.shared::cluster.u32 r, %1, %2;\n"
                  "ld.shared::cluster.u32 %0, [r];\n"
                  "}"
                  : "=r"(v) : "r"(dsa_smem(p)), "r"(rank) : "memory");

    return v;
}


/* A thread's next experts; none beyond end. */

static __device__ __forceinline__ void
dsa_plan_load(uint32_t *id, const int32_t *expert, uint32_t first,
    uint32_t end)
{
    int       j;
    uint32_t  i;

#pragma unroll
    for (j = 0; j < DSA_PLAN_LOADS; j++) {
        i = first + j * DSA_PLAN_THREADS;
        id[j] = i < end ? (uint32_t) expert[i] : UINT32_MAX;
    }
}


/* each: rows of a block, a multiple of 32; words: in masks at once. */

static __global__ void __launch_bounds__(DSA_PLAN_THREADS)
dsa_moe_plan_kernel(dsa_moe_plan_t plan, const int32_t *expert, uint32_t rows,
    uint32_t k, uint32_t experts, uint32_t each, uint32_t words)
{
    int                         j;
    uint32_t                    e, i, n, r, t, v, w, at, lane, warp, first,
                                last, base, before, sum, aligned, *mask,
                                *below, id[DSA_PLAN_LOADS];
    __shared__ uint32_t         total[DSA_MOE_EXPERTS];     /* the block's */
    __shared__ uint32_t         start[DSA_MOE_EXPERTS];
    __shared__ uint32_t         all[DSA_MOE_EXPERTS];
    __shared__ uint32_t         part[DSA_PLAN_WARPS];
    extern __shared__ uint32_t  dsa_plan_words[];

    dsa_begin();

    mask = dsa_plan_words;                  /* [words, experts] */
    below = mask + words * experts;         /* places before a word's */

    t = threadIdx.x;
    lane = t % 32;
    warp = t / 32;
    n = words * experts;

    first = blockIdx.x * each < rows ? blockIdx.x * each : rows;
    last = first + each < rows ? first + each : rows;

    for (i = t; i < n; i += DSA_PLAN_THREADS) {
        mask[i] = 0;
    }

    if (t < experts) {
        total[t] = 0;
    }

    __syncthreads();

    /* counts, and the masks of the first rows, mostly all there are */

    for (i = first * k + t; i < last * k; i += DSA_PLAN_STEP) {
        dsa_plan_load(id, expert, i, last * k);

#pragma unroll
        for (j = 0; j < DSA_PLAN_LOADS; j++) {
            e = id[j];
            r = (i + j * DSA_PLAN_THREADS) / k - first;

            if (e < experts) {
                atomicAdd(&total[e], 1);

                if (r < words * 32) {
                    atomicOr(&mask[r / 32 * experts + e], 1U << r % 32);
                }
            }
        }
    }

    /* all blocks' counts, and their aligned running sum */

    if (gridDim.x > 1) {
        dsa_cluster_sync();

    } else {
        __syncthreads();
    }

    before = 0;
    sum = 0;

    if (t < experts) {
        for (w = 0; w < gridDim.x; w++) {
            before = w == blockIdx.x ? sum : before;
            sum += dsa_plan_peer(&total[t], w);
        }
    }

    aligned = (sum + plan.align - 1) & ~(plan.align - 1);
    v = aligned;

#pragma unroll
    for (i = 1; i < 32; i *= 2) {
        w = __shfl_up_sync(0xffffffff, v, i);
        v += lane >= i ? w : 0;
    }

    if (lane == 31) {
        part[warp] = v;
    }

    __syncthreads();

    v -= aligned;

#pragma unroll
    for (w = 0; w < DSA_MOE_EXPERTS / 32; w++) {
        v += w < warp ? part[w] : 0;
    }

    if (t < experts) {
        start[t] = v;
        all[t] = sum;

        if (blockIdx.x == 0) {
            plan.offset[t] = (int32_t) v;
            plan.count[t] = (int32_t) sum;

            if (t == experts - 1) {
                plan.offset[experts] = (int32_t) (v + aligned);
            }
        }
    }

    v += before;

    for (base = first; base < last; base += words * 32) {
        sum = last - base < words * 32 ? last - base : words * 32;

        if (base > first) {
            __syncthreads();

            for (i = t; i < n; i += DSA_PLAN_THREADS) {
                mask[i] = 0;
            }

            __syncthreads();

            for (i = t; i < sum * k; i += DSA_PLAN_THREADS) {
                e = (uint32_t) expert[base * k + i];
                r = i / k;

                if (e < experts) {
                    atomicOr(&mask[r / 32 * experts + e], 1U << r % 32);
                }
            }

            __syncthreads();
        }

        if (t < experts) {
#pragma unroll 4
            for (w = 0; w < words; w++) {
                below[w * experts + t] = v;
                v += __popc(mask[w * experts + t]);
            }
        }

        __syncthreads();

        for (i = t; i < sum * k; i += DSA_PLAN_STEP) {
            dsa_plan_load(id, expert + base * k, i, sum * k);

#pragma unroll
            for (j = 0; j < DSA_PLAN_LOADS; j++) {
                at = i + j * DSA_PLAN_THREADS;
                e = id[j];
                r = at / k;
                w = r / 32 * experts + e;

                if (e < experts) {
                    w = below[w] + __popc(mask[w] & ((1U << r % 32) - 1));
                    plan.row[w] = (int32_t) (base + r);

                } else {
                    w = UINT32_MAX;
                }

                if (at < sum * k) {
                    plan.place[base * k + at] = (int32_t) w;
                }
            }
        }
    }

    /* padding */

    __syncthreads();

    for (i = blockIdx.x * DSA_PLAN_THREADS + t; i < experts * plan.align;
         i += gridDim.x * DSA_PLAN_THREADS)
    {
        e = i / plan.align;
        r = all[e] + i % plan.align;

        if (r < ((all[e] + plan.align - 1) & ~(plan.align - 1))) {
            plan.row[start[e] + r] = -1;
        }
    }

    /* a block's counts stay until all have read them */

    if (gridDim.x > 1) {
        dsa_cluster_sync();
    }
}


extern "C" int
dsa_cuda_moe_plan(const dsa_moe_plan_t *plan, const int32_t *expert,
    uint32_t rows, uint32_t k, uint32_t experts, dsa_stream_t stream)
{
    int       rc;
    uint32_t  each, words, blocks;

    if (k == 0 || k > DSA_MOE_K || experts == 0 || experts > DSA_MOE_EXPERTS
        || plan->align < 8 || plan->align > 128
        || (plan->align & (plan->align - 1)) != 0
        || (uint64_t) rows * k + (uint64_t) experts * plan->align > INT32_MAX
        || (uint64_t) rows * k + (uint64_t) experts * plan->align
           > plan->places)
    {
        return cudaErrorInvalidValue;
    }

    blocks = rows <= DSA_PLAN_ROWS ? 1 : DSA_PLAN_BLOCKS;
    each = (rows + blocks * 32 - 1) / (blocks * 32) * 32;
    words = (each < DSA_PLAN_ROWS ? each : DSA_PLAN_ROWS) / 32;

    rc = cudaFuncSetAttribute(dsa_moe_plan_kernel,
                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                              DSA_PLAN_ROWS / 32 * DSA_MOE_EXPERTS * 2
                              * sizeof(uint32_t));
    if (rc != cudaSuccess) {
        return rc;
    }

    return dsa_launch_cluster(dsa_moe_plan_kernel, blocks, blocks,
                              DSA_PLAN_THREADS,
                              (size_t) words * experts * 2
                              * sizeof(uint32_t),
                              stream, *plan, expert, rows, k, experts, each,
                              words);
}


/*
 * Scales to their places: blocks of a group side by side, so that what they
 * write is whole sectors; rows would write four bytes here and there, which
 * takes half as long as all the codes do.
 */

static __device__ __forceinline__ void
dsa_gather_scales(const dsa_fp8_rows_t *y, const dsa_fp8_rows_t *x,
    const int32_t *rows, uint32_t places, uint32_t group, uint32_t part)
{
    int       j;
    float     s[DSA_GATHER_TURNS];
    int32_t   row[DSA_GATHER_TURNS];
    uint32_t  i, step;

    step = DSA_GATHER_PARTS * DSA_MOE_THREADS;

    for (i = part * DSA_MOE_THREADS + threadIdx.x; i < places;
         i += DSA_GATHER_TURNS * step)
    {
#pragma unroll
        for (j = 0; j < DSA_GATHER_TURNS; j++) {
            row[j] = i + j * step < places ? rows[i + j * step] : -1;
        }

#pragma unroll
        for (j = 0; j < DSA_GATHER_TURNS; j++) {
            s[j] = row[j] >= 0 ? x->scale[group * x->ld + row[j]] : 0;
        }

#pragma unroll
        for (j = 0; j < DSA_GATHER_TURNS; j++) {
            if (row[j] >= 0) {
                y->scale[group * y->ld + i + j * step] = s[j];
            }
        }
    }
}


/*
 * A row to all its places: read once, two chunks of 16 codes a thread.  The
 * first blocks bring the scales.
 */

template <int K>
static __global__ void __launch_bounds__(DSA_MOE_THREADS)
dsa_moe_gather_kernel(dsa_fp8_rows_t y, dsa_fp8_rows_t x,
    const int32_t *place, const int32_t *rows, const int32_t *places,
    uint32_t k, uint32_t cols)
{
    int       i, j;
    uint4     v[DSA_GATHER_LOADS];
    size_t    row;
    int32_t   p[K];
    uint32_t  col, first, scales;

    dsa_begin();

    scales = cols / DSA_GROUP * DSA_GATHER_PARTS;

    if (blockIdx.x < scales) {
        if (blockIdx.y == 0) {
            dsa_gather_scales(&y, &x, rows, (uint32_t) *places,
                              blockIdx.x / DSA_GATHER_PARTS,
                              blockIdx.x % DSA_GATHER_PARTS);
        }

        return;
    }

    row = blockIdx.x - scales;
    first = (blockIdx.y * DSA_GATHER_LOADS * DSA_MOE_THREADS + threadIdx.x)
            * 16;

#pragma unroll
    for (j = 0; j < K; j++) {
        p[j] = j < (int) k ? place[row * k + j] : -1;
    }

#pragma unroll
    for (i = 0; i < DSA_GATHER_LOADS; i++) {
        col = first + i * DSA_MOE_THREADS * 16;

        if (col < cols) {
            v[i] = dsa_load16(x.q + row * cols + col);
        }
    }

#pragma unroll
    for (j = 0; j < K; j++) {
        if (p[j] < 0) {
            continue;
        }

#pragma unroll
        for (i = 0; i < DSA_GATHER_LOADS; i++) {
            col = first + i * DSA_MOE_THREADS * 16;

            if (col < cols) {
                dsa_store16(y.q + (size_t) p[j] * cols + col, v[i]);
            }
        }
    }
}


extern "C" int
dsa_cuda_moe_gather(const dsa_fp8_rows_t *y, const dsa_fp8_rows_t *x,
    const dsa_moe_plan_t *plan, uint32_t rows, uint32_t k, uint32_t experts,
    uint32_t cols, dsa_stream_t stream)
{
    dim3      grid;
    uint32_t  span;

    span = DSA_MOE_THREADS * DSA_GATHER_LOADS * 16;

    if (cols == 0 || k == 0 || k > DSA_MOE_K || experts == 0
        || cols / span > 65534
        || !dsa_fp8_rows_ok(y, 0, cols) || !dsa_fp8_rows_ok(x, rows, cols))
    {
        return cudaErrorInvalidValue;
    }

    if (rows == 0) {
        return cudaSuccess;
    }

    grid = dim3(rows + cols / DSA_GROUP * DSA_GATHER_PARTS,
                (cols + span - 1) / span);

    if (k <= 8) {
        return dsa_launch(dsa_moe_gather_kernel<8>, grid, DSA_MOE_THREADS, 0,
                          stream, *y, *x, plan->place, plan->row,
                          plan->offset + experts, k, cols);
    }

    return dsa_launch(dsa_moe_gather_kernel<DSA_MOE_K>, grid,
                      DSA_MOE_THREADS, 0, stream, *y, *x,
                      plan->place, plan->row, plan->offset + experts, k,
                      cols);
}


/*
 * g / (1 + exp(-g)) by the approximate exponential and reciprocal, 3e-7 off:
 * exact ones take longer than memory does, and what is rounded to bf16 and
 * then to e4m3 shows either in one code of a hundred thousand.  Below -86,
 * where the divisor would leave float32, it is 0 to any group.
 */

static __device__ __forceinline__ float
dsa_silu(float g)
{
    float  e, r;

    e = fminf(__fmul_rn(g, -1.44269504f), 124.0f);

    asm ("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(e));
    asm ("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(1.0f + e));

    return __fmul_rn(g, r);
}


/*
 * The gated unit: a chunk a thread, 16 lanes a scale; blocks walk the rows.
 * places: where the last expert ends, or NULL: there are n rows; rows: n of
 * them, below 0 what is not taken, asked for a turn ahead.
 */

static __global__ void __launch_bounds__(DSA_MOE_THREADS, 8)
dsa_swiglu_kernel(dsa_fp8_rows_t y, const dsa_bf16_t *x, uint32_t n,
    uint32_t cols, const int32_t *places, const int32_t *rows)
{
    int                i, live;
    float              g[DSA_CHUNK], v[DSA_CHUNK];
    int32_t            taken, next;
    uint32_t           row, col, end;
    const dsa_bf16_t  *p;

    dsa_begin();

    col = (blockIdx.y * blockDim.x + threadIdx.x) * DSA_CHUNK;
    live = col < cols;
    row = blockIdx.x;
    taken = rows != NULL && row < n ? rows[row] : 0;
    end = places != NULL ? (uint32_t) *places : n;

    for ( /* void */ ; row < end; row += gridDim.x) {
        next = rows != NULL && row + gridDim.x < n ? rows[row + gridDim.x]
                                                   : 0;
        if (taken >= 0) {
            p = x + (size_t) row * 2 * cols + col;

            dsa_unpack8(g, live ? dsa_load16(p) : make_uint4(0, 0, 0, 0));
            dsa_unpack8(v, live ? dsa_load16(p + cols)
                                : make_uint4(0, 0, 0, 0));

#pragma unroll
            for (i = 0; i < DSA_CHUNK; i++) {
                v[i] = __fmul_rn(dsa_silu(g[i]), v[i]);
            }

            dsa_round_bf16<DSA_CHUNK>(v);
            dsa_quantize_chunk(&y, v, row, col, cols, live);
        }

        taken = next;
    }
}


extern "C" int
dsa_cuda_swiglu(const dsa_fp8_rows_t *y, const dsa_bf16_t *x, uint32_t rows,
    uint32_t cols, const dsa_moe_plan_t *plan, uint32_t experts,
    dsa_stream_t stream)
{
    dim3      grid;
    uint32_t  threads;

    if (cols == 0 || !dsa_aligned16(x)
        || !dsa_fp8_rows_ok(y, plan == NULL ? rows : 0, cols))
    {
        return cudaErrorInvalidValue;
    }

    rows = plan != NULL ? plan->places : rows;

    if (rows == 0) {
        return cudaSuccess;
    }

    threads = (cols / DSA_CHUNK + 31) & ~31U;
    threads = threads < DSA_MOE_THREADS ? threads : DSA_MOE_THREADS;

    grid = dim3(rows < DSA_MOE_BLOCKS ? rows : DSA_MOE_BLOCKS,
                (cols / DSA_CHUNK + threads - 1) / threads);

    return dsa_launch(dsa_swiglu_kernel, grid, threads, 0, stream, *y, x, rows,
                      cols,
                      plan != NULL ? plan->offset + experts : NULL,
                      plan != NULL ? plan->row : NULL);
}


/*
 * The weighted sum: a chunk a thread over all of a row's experts, which are
 * first brought in rising order.
 */

template <int K>
static __global__ void __launch_bounds__(DSA_COMBINE_THREADS)
dsa_moe_combine_kernel(dsa_bf16_t *y, const dsa_bf16_t *x,
    const dsa_bf16_t *shared, const float *weight, const int32_t *expert,
    const int32_t *place, uint32_t k, uint32_t cols)
{
    int                 i, j;
    float               sum[DSA_CHUNK], v[DSA_CHUNK], w;
    uint4               in[K], own;
    int32_t             e, p;
    uint32_t            col, rank;
    size_t              row;
    __shared__ float    weights[K];
    __shared__ int32_t  id[K], places[K];

    dsa_begin();

    row = blockIdx.x;
    col = (blockIdx.y * DSA_COMBINE_THREADS + threadIdx.x) * DSA_CHUNK;
    own = make_uint4(0, 0, 0, 0);

    if (shared != NULL && col < cols) {
        own = dsa_load16(shared + row * cols + col);
    }

    e = 0;
    p = -1;
    w = 0;

    if (threadIdx.x < K) {
        places[threadIdx.x] = -1;

        if (threadIdx.x < k) {
            e = expert[row * k + threadIdx.x];
            p = place[row * k + threadIdx.x];
            w = weight[row * k + threadIdx.x];
        }

        id[threadIdx.x] = e;
    }

    __syncthreads();

    if (threadIdx.x < k) {
        rank = 0;

        for (i = 0; i < (int) k; i++) {
            rank += id[i] < e || (id[i] == e && i < (int) threadIdx.x);
        }

        places[rank] = p;
        weights[rank] = w;
    }

    __syncthreads();

    if (col >= cols) {
        return;
    }

#pragma unroll
    for (i = 0; i < K; i++) {
        if (places[i] >= 0) {
            in[i] = dsa_load16(x + (size_t) places[i] * cols + col);
        }
    }

#pragma unroll
    for (j = 0; j < DSA_CHUNK; j++) {
        sum[j] = 0;
    }

#pragma unroll
    for (i = 0; i < K; i++) {
        if (places[i] >= 0) {
            w = weights[i];
            dsa_unpack8(v, in[i]);

#pragma unroll
            for (j = 0; j < DSA_CHUNK; j++) {
                sum[j] = __fadd_rn(sum[j], __fmul_rn(w, v[j]));
            }
        }
    }

    dsa_unpack8(v, own);

#pragma unroll
    for (j = 0; j < DSA_CHUNK; j++) {
        sum[j] = __fadd_rn(sum[j], v[j]);
    }

    dsa_store16(y + row * cols + col, dsa_pack8(sum));
}


extern "C" int
dsa_cuda_moe_combine(dsa_bf16_t *y, const dsa_bf16_t *x,
    const dsa_bf16_t *shared, const float *weight, const int32_t *expert,
    const dsa_moe_plan_t *plan, uint32_t rows, uint32_t k, uint32_t cols,
    dsa_stream_t stream)
{
    uint32_t  span;

    span = DSA_COMBINE_THREADS * DSA_CHUNK;

    if (k == 0 || k > DSA_MOE_K || cols == 0 || cols % DSA_CHUNK != 0
        || cols / span > 65534 || !dsa_aligned16(y) || !dsa_aligned16(x)
        || !dsa_aligned16(shared))
    {
        return cudaErrorInvalidValue;
    }

    if (rows == 0) {
        return cudaSuccess;
    }

    if (k <= 8) {
        return dsa_launch(dsa_moe_combine_kernel<8>,
                          dim3(rows, (cols + span - 1) / span),
                          DSA_COMBINE_THREADS, 0, stream, y, x, shared, weight,
                          expert, plan->place, k, cols);
    }

    return dsa_launch(dsa_moe_combine_kernel<DSA_MOE_K>,
                      dim3(rows, (cols + span - 1) / span),
                      DSA_COMBINE_THREADS, 0, stream, y, x, shared, weight,
                      expert, plan->place, k, cols);
}
