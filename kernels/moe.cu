
/*
 * Copyright (C) The nginx-dsa authors
 */


extern "C" {
#include "kernels/moe.h"
}

#include "kernels/rows.cuh"


#define DSA_MOE_EXPERTS      512
#define DSA_MOE_K            16

#define DSA_ROUTE_WARPS      4      /* rows of a block */
#define DSA_ROUTE_LEAST      -1e30f

#define DSA_PLAN_THREADS     512
#define DSA_PLAN_WARPS       (DSA_PLAN_THREADS / 32)
#define DSA_PLAN_BLOCKS      8      /* a cluster */
#define DSA_PLAN_FEW         4096   /* pairs that one block takes */

#define DSA_MOE_THREADS      256
#define DSA_MOE_BLOCKS       1056   /* eight an SM, which walk the places */
#define DSA_GATHER_ROWS      8      /* of an expert, a warp each */
#define DSA_GATHER_LOADS     14     /* of 16 bytes a lane, in flight */

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


/*
 * The sums of the two greatest b of each group, by lanes side by side: their
 * number is the greatest power of two that gives every group some.
 */

static __device__ __forceinline__ void
dsa_route_groups(float *group, const float *b, uint32_t groups, uint32_t size,
    uint32_t lanes, uint32_t lane)
{
    float     first, second, f, s, v;
    uint32_t  g, i, j, n;

    n = 32 / lanes;

    for (i = 0; i < groups; i += n) {
        g = i + lane / lanes;
        first = -INFINITY;
        second = -INFINITY;

        for (j = lane % lanes; g < groups && j < size; j += lanes) {
            v = b[g * size + j];
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

    for (i = 0; i < groups; i++) {
        before += group[i] > v || (group[i] == v && i < g);
    }

    return before < kept;
}


/*
 * J: experts of a lane.  expf() of the CPU is rounded right but in rare
 * cases, and choices hang on it: hence double.  inverse * e >> 20 is the group
 * of expert e.
 */

template <int J>
static __global__ void __launch_bounds__(32 * DSA_ROUTE_WARPS)
dsa_route_kernel(int32_t *expert, float *weight, const float *logits,
    const float *bias, uint32_t rows, dsa_router_t r, uint32_t lanes,
    uint32_t inverse)
{
    int                i;
    float              v, w, sum;
    size_t             row;
    uint32_t           e, j, g, lane, warp, best, at, chosen, order[J];
    __shared__ float   score[DSA_ROUTE_WARPS][32 * J];
    __shared__ float   biased[DSA_ROUTE_WARPS][32 * J];
    __shared__ float   group[DSA_ROUTE_WARPS][16 * J];
    __shared__ int     kept[DSA_ROUTE_WARPS][16 * J];

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;
    row = (size_t) blockIdx.x * DSA_ROUTE_WARPS + warp;

    if (row >= rows) {
        return;
    }

#pragma unroll
    for (i = 0; i < J; i++) {
        e = lane + 32 * i;
        order[i] = 0;

        if (e < r.experts) {
            v = (float) exp((double) -logits[row * r.experts + e]);
            v = __fdiv_rn(1.0f, __fadd_rn(1.0f, v));
            w = __fadd_rn(v, bias[e]);

            if (!(w > DSA_ROUTE_LEAST)) {
                w = DSA_ROUTE_LEAST;
            }

            score[warp][e] = v;
            biased[warp][e] = w;
            order[i] = dsa_route_order(w);
        }
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

        if (e < r.experts && !kept[warp][e * inverse >> 20]) {
            order[i] = 0;
        }
    }

    sum = 0;
    chosen = 0;

    for (j = 0; j < r.k; j++) {
        best = 0;
        at = 0;

#pragma unroll
        for (i = 0; i < J; i++) {
            if (order[i] > best) {
                best = order[i];
                at = lane + 32 * i;
            }
        }

        at = best == __reduce_max_sync(0xffffffff, best) ? at : UINT32_MAX;
        e = __reduce_min_sync(0xffffffff, at);

#pragma unroll
        for (i = 0; i < J; i++) {
            if (e == lane + 32 * i) {
                order[i] = 0;
            }
        }

        sum = __fadd_rn(sum, score[warp][e]);
        chosen = lane == j ? e : chosen;
    }

    if (lane < r.k) {
        v = score[warp][chosen];

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
        dsa_route_kernel<8><<<blocks, 32 * DSA_ROUTE_WARPS, 0, stream>>>(
            expert, weight, logits, bias, rows, *r, lanes, inverse);

    } else {
        dsa_route_kernel<16><<<blocks, 32 * DSA_ROUTE_WARPS, 0, stream>>>(
            expert, weight, logits, bias, rows, *r, lanes, inverse);
    }

    return cudaGetLastError();
}


/*
 * The plan: counting sort, stable, by one cluster of blocks.  Each warp has
 * consecutive pairs and counts its own experts; a pair's place is the
 * beginning of its expert, and what lower blocks, lower warps and lower lanes
 * have of it.  Few pairs are one block's.
 */

typedef struct {
    uint32_t            count[DSA_PLAN_WARPS][DSA_MOE_EXPERTS];
    uint32_t            total[DSA_MOE_EXPERTS];     /* of the block */
    uint32_t            start[DSA_MOE_EXPERTS];
    uint32_t            all[DSA_MOE_EXPERTS];
    uint32_t            part[DSA_PLAN_WARPS];
} dsa_plan_shared_t;


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


/*
 * 32 pairs from i on: returns what count says of a lane's expert, plus the
 * lower lanes that have the same one, and counts them.
 */

static __device__ __forceinline__ uint32_t
dsa_plan_count(uint32_t *count, uint32_t e, uint32_t experts, uint32_t lane)
{
    uint32_t  same, at;

    same = __match_any_sync(0xffffffff, e);
    at = e < experts ? count[e] : 0;
    __syncwarp();

    if (e < experts && (same & ((1U << lane) - 1)) == 0) {
        count[e] = at + __popc(same);
    }

    __syncwarp();

    return at + __popc(same & ((1U << lane) - 1));
}


static __global__ void __launch_bounds__(DSA_PLAN_THREADS)
dsa_moe_plan_kernel(dsa_moe_plan_t plan, const int32_t *expert,
    uint32_t pairs, uint32_t k, uint32_t experts)
{
    uint32_t                      e, i, w, t, lane, warp, each, end, first,
                                  before, sum, aligned, v;
    __shared__ dsa_plan_shared_t  s;

    t = threadIdx.x;
    lane = t % 32;
    warp = t / 32;

    /* the warp's pairs */

    each = (pairs + gridDim.x * DSA_PLAN_THREADS - 1)
           / (gridDim.x * DSA_PLAN_THREADS) * 32;
    first = (blockIdx.x * DSA_PLAN_WARPS + warp) * each;
    end = first + each < pairs ? first + each : pairs;

    for (i = lane; i < experts; i += 32) {
        s.count[warp][i] = 0;
    }

    __syncwarp();

    for (i = first; i < end; i += 32) {
        e = i + lane < end ? (uint32_t) expert[i + lane] : UINT32_MAX;
        (void) dsa_plan_count(s.count[warp], e, experts, lane);
    }

    __syncthreads();

    /* the warps' counts to what lower warps have */

    if (t < experts) {
        sum = 0;

#pragma unroll
        for (w = 0; w < DSA_PLAN_WARPS; w++) {
            v = s.count[w][t];
            s.count[w][t] = sum;
            sum += v;
        }

        s.total[t] = sum;
    }

    dsa_cluster_sync();

    /* all blocks' counts, and their aligned running sum */

    before = 0;
    sum = 0;

    if (t < experts) {
        for (w = 0; w < gridDim.x; w++) {
            before = w == blockIdx.x ? sum : before;
            sum += dsa_plan_peer(&s.total[t], w);
        }
    }

    aligned = (sum + plan.align - 1) / plan.align * plan.align;
    v = aligned;

#pragma unroll
    for (i = 1; i < 32; i *= 2) {
        w = __shfl_up_sync(0xffffffff, v, i);
        v += lane >= i ? w : 0;
    }

    if (lane == 31) {
        s.part[warp] = v;
    }

    __syncthreads();

    v -= aligned;

#pragma unroll
    for (w = 0; w < DSA_PLAN_WARPS; w++) {
        v += w < warp ? s.part[w] : 0;
    }

    if (t < experts) {
        s.start[t] = v;
        s.all[t] = sum;

        for (w = 0; w < DSA_PLAN_WARPS; w++) {
            s.count[w][t] += v + before;
        }

        if (blockIdx.x == 0) {
            plan.offset[t] = (int32_t) v;
            plan.count[t] = (int32_t) sum;

            if (t == experts - 1) {
                plan.offset[experts] = (int32_t) (v + aligned);
            }
        }
    }

    __syncthreads();

    for (i = first; i < end; i += 32) {
        e = i + lane < end ? (uint32_t) expert[i + lane] : UINT32_MAX;
        v = dsa_plan_count(s.count[warp], e, experts, lane);

        if (i + lane < end) {
            plan.place[i + lane] = e < experts ? (int32_t) v : -1;
        }

        if (e < experts) {
            plan.row[v] = (int32_t) ((i + lane) / k);
        }
    }

    for (e = blockIdx.x * DSA_PLAN_WARPS + warp; e < experts;
         e += gridDim.x * DSA_PLAN_WARPS)
    {
        sum = s.all[e];
        end = (sum + plan.align - 1) / plan.align * plan.align;

        for (i = sum + lane; i < end; i += 32) {
            plan.row[s.start[e] + i] = -1;
        }
    }

    /* a block's counts stay until all have read them */

    dsa_cluster_sync();
}


extern "C" int
dsa_cuda_moe_plan(const dsa_moe_plan_t *plan, const int32_t *expert,
    uint32_t rows, uint32_t k, uint32_t experts, dsa_stream_t stream)
{
    uint64_t             pairs;
    cudaLaunchConfig_t   conf = { 0 };
    cudaLaunchAttribute  attr;

    pairs = (uint64_t) rows * k;

    if (k == 0 || k > DSA_MOE_K || experts == 0 || experts > DSA_MOE_EXPERTS
        || plan->align < 8 || plan->align > 128
        || (plan->align & (plan->align - 1)) != 0
        || pairs + (uint64_t) experts * plan->align > INT32_MAX)
    {
        return cudaErrorInvalidValue;
    }

    attr.id = cudaLaunchAttributeClusterDimension;
    attr.val.clusterDim.x = pairs <= DSA_PLAN_FEW ? 1 : DSA_PLAN_BLOCKS;
    attr.val.clusterDim.y = 1;
    attr.val.clusterDim.z = 1;

    conf.gridDim = dim3(attr.val.clusterDim.x);
    conf.blockDim = dim3(DSA_PLAN_THREADS);
    conf.stream = stream;
    conf.attrs = &attr;
    conf.numAttrs = 1;

    return cudaLaunchKernelEx(&conf, dsa_moe_plan_kernel, *plan, expert,
                              (uint32_t) pairs, k, experts);
}


/*
 * Rows to the places of their pairs, a warp a place.  Blocks take a few places
 * of every expert, then the next few: rows rise within all experts alike, and
 * so a row is read from memory once and for its other experts from the L2.
 */

static __global__ void __launch_bounds__(DSA_MOE_THREADS)
dsa_moe_gather_kernel(dsa_fp8_rows_t y, dsa_fp8_rows_t x,
    const int32_t *offset, const int32_t *count, const int32_t *rows,
    uint32_t experts, uint32_t cols)
{
    int                i;
    uint4              v[DSA_GATHER_LOADS];
    uint32_t           e, n, u, g, at, col, first, turns, last, lane, warp;
    int32_t            row;
    dsa_e4m3_t        *to;
    const dsa_e4m3_t  *from;

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;
    turns = (uint32_t) offset[experts] / experts / DSA_GATHER_ROWS + 1;

    for (u = blockIdx.x; u < turns * experts; u += gridDim.x) {
        e = u % experts;
        n = (uint32_t) count[e];

        /* the part u / experts of turns of them */

        first = (uint32_t) ((uint64_t) n * (u / experts) / turns);
        last = (uint32_t) ((uint64_t) n * (u / experts + 1) / turns);
        first += (uint32_t) offset[e];
        last += (uint32_t) offset[e];

        for (at = first + warp; at < last; at += DSA_MOE_THREADS / 32) {
            row = rows[at];
            from = x.q + (size_t) row * cols;
            to = y.q + (size_t) at * cols;

            for (col = lane * 16; col < cols;
                 col += DSA_GATHER_LOADS * 32 * 16)
            {
#pragma unroll
                for (i = 0; i < DSA_GATHER_LOADS; i++) {
                    if (col + i * 32 * 16 < cols) {
                        v[i] = dsa_load16(from + col + i * 32 * 16);
                    }
                }

#pragma unroll
                for (i = 0; i < DSA_GATHER_LOADS; i++) {
                    if (col + i * 32 * 16 < cols) {
                        dsa_store16(to + col + i * 32 * 16, v[i]);
                    }
                }
            }

            for (g = lane; g < cols / DSA_GROUP; g += 32) {
                y.scale[g * y.ld + at] = x.scale[g * x.ld + row];
            }
        }
    }
}


extern "C" int
dsa_cuda_moe_gather(const dsa_fp8_rows_t *y, const dsa_fp8_rows_t *x,
    const dsa_moe_plan_t *plan, uint32_t experts, uint32_t cols,
    dsa_stream_t stream)
{
    if (cols == 0 || experts == 0 || !dsa_fp8_rows_ok(y, 0, cols)
        || !dsa_fp8_rows_ok(x, 0, cols))
    {
        return cudaErrorInvalidValue;
    }

    dsa_moe_gather_kernel<<<DSA_MOE_BLOCKS, DSA_MOE_THREADS, 0, stream>>>(
        *y, *x, plan->offset, plan->count, plan->row, experts, cols);

    return cudaGetLastError();
}


/*
 * The gated unit: a chunk a thread, 16 lanes a scale.  places: where the last
 * expert ends, or NULL: there are n rows.
 */

static __global__ void __launch_bounds__(DSA_MOE_THREADS)
dsa_swiglu_kernel(dsa_fp8_rows_t y, const dsa_bf16_t *x, uint32_t n,
    uint32_t cols, const int32_t *places, const int32_t *rows)
{
    int       i, live;
    float     g[DSA_CHUNK], v[DSA_CHUNK];
    uint4     gate, up;
    size_t    at, end, row;
    uint32_t  col, chunks;

    chunks = cols / DSA_CHUNK;
    end = (size_t) (places != NULL ? (uint32_t) *places : n) * chunks;

    for (at = (size_t) blockIdx.x * DSA_MOE_THREADS + threadIdx.x;
         at - threadIdx.x % 32 < end;
         at += (size_t) gridDim.x * DSA_MOE_THREADS)
    {
        row = at / chunks;
        col = (uint32_t) (at - row * chunks) * DSA_CHUNK;
        live = at < end && (rows == NULL || rows[row] >= 0);

        gate = make_uint4(0, 0, 0, 0);
        up = gate;

        if (live) {
            gate = dsa_load16(x + row * 2 * cols + col);
            up = dsa_load16(x + row * 2 * cols + cols + col);
        }

        dsa_unpack8(g, gate);
        dsa_unpack8(v, up);

#pragma unroll
        for (i = 0; i < DSA_CHUNK; i++) {
            v[i] = __fmul_rn(__fdiv_rn(g[i], __fadd_rn(1.0f, expf(-g[i]))),
                             v[i]);
        }

        dsa_round_bf16<DSA_CHUNK>(v);
        dsa_quantize_chunk(&y, v, row, col, cols, live);
    }
}


extern "C" int
dsa_cuda_swiglu(const dsa_fp8_rows_t *y, const dsa_bf16_t *x, uint32_t rows,
    uint32_t cols, const dsa_moe_plan_t *plan, uint32_t experts,
    dsa_stream_t stream)
{
    size_t  blocks;

    if (cols == 0 || !dsa_aligned16(x)
        || !dsa_fp8_rows_ok(y, plan == NULL ? rows : 0, cols))
    {
        return cudaErrorInvalidValue;
    }

    blocks = DSA_MOE_BLOCKS;

    if (plan == NULL) {
        blocks = ((size_t) rows * (cols / DSA_CHUNK) + DSA_MOE_THREADS - 1)
                 / DSA_MOE_THREADS;
        blocks = blocks < DSA_MOE_BLOCKS ? blocks : DSA_MOE_BLOCKS;
    }

    if (blocks == 0) {
        return cudaSuccess;
    }

    dsa_swiglu_kernel<<<(uint32_t) blocks, DSA_MOE_THREADS, 0, stream>>>(
        *y, x, rows, cols, plan != NULL ? plan->offset + experts : NULL,
        plan != NULL ? plan->row : NULL);

    return cudaGetLastError();
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
        dsa_moe_combine_kernel<8><<<dim3(rows, (cols + span - 1) / span),
                                    DSA_COMBINE_THREADS, 0, stream>>>(
            y, x, shared, weight, expert, plan->place, k, cols);

    } else {
        dsa_moe_combine_kernel<DSA_MOE_K>
            <<<dim3(rows, (cols + span - 1) / span), DSA_COMBINE_THREADS, 0,
               stream>>>(
            y, x, shared, weight, expert, plan->place, k, cols);
    }

    return cudaGetLastError();
}
