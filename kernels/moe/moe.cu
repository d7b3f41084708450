
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "moe.cuh"


#define DSA_MOE_THREADS      256
#define DSA_MOE_BLOCKS       1056   /* eight an SM, which walk the places */

#define DSA_GATHER_LOADS     2      /* of 16 bytes a thread */
#define DSA_GATHER_PARTS     4      /* blocks that bring a group's scales */
#define DSA_GATHER_TURNS     4      /* of which a thread has some in flight */
#define DSA_COMBINE_THREADS  128

#define DSA_SWIGLU_FP8       0      /* with any scales */
#define DSA_SWIGLU_UE8M0     1
#define DSA_SWIGLU_GIVEN     2      /* with one given scale */
#define DSA_SWIGLU_BF16      3


/*
 * Copies scales to their places.  The blocks of a group are adjacent, so they
 * write whole sectors.  If each row were written separately, in pieces of four
 * bytes, the scales would take half as long as the codes.
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
 * Copies a row to all its places: it is read once, two chunks of 16 codes for
 * each thread.  The first blocks copy the scales.
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

    scales = y.scale != NULL ? cols / DSA_GROUP * DSA_GATHER_PARTS : 0;

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
    uint32_t  span, scales;

    span = DSA_MOE_THREADS * DSA_GATHER_LOADS * 16;

    if (cols == 0 || k == 0 || k > DSA_CUDA_CHOICES || experts == 0
        || cols / span > 65534
        || !dsa_copy_rows_ok(y, 0, x, rows, cols))
    {
        return cudaErrorInvalidValue;
    }

    if (rows == 0) {
        return cudaSuccess;
    }

    scales = y->scale != NULL ? cols / DSA_GROUP * DSA_GATHER_PARTS : 0;
    grid = dim3(rows + scales, (cols + span - 1) / span);

    if (k <= 8) {
        return dsa_launch(dsa_moe_gather_kernel<8>, grid, DSA_MOE_THREADS, 0,
                          stream, *y, *x, plan->place, plan->row,
                          plan->offset + experts, k, cols);
    }

    return dsa_launch(dsa_moe_gather_kernel<DSA_CUDA_CHOICES>, grid,
                      DSA_MOE_THREADS, 0, stream, *y, *x,
                      plan->place, plan->row, plan->offset + experts, k,
                      cols);
}


/*
 * Returns g / (1 + exp(-g)) by the approximate exponential and reciprocal,
 * with an error of 3e-7.  Exact functions would take longer than the memory
 * accesses.  After rounding to bf16 and then to e4m3, one code of a hundred
 * thousand differs.  Below -86, where the divisor would exceed float32, the
 * result is 0, to which any group would round it.
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
 * SwiGLU: one chunk for each thread, 16 lanes for a scale; blocks walk the
 * rows.  places: where the last expert ends, or NULL if there are n rows.
 * rows [n]: below 0 for places that are not used, loaded one iteration ahead.
 * OUT: the format of y, with DSA_SWIGLU_BF16 in y.q.
 */

template <int OUT>
static __global__ void __launch_bounds__(DSA_MOE_THREADS, 8)
dsa_swiglu_kernel(dsa_fp8_rows_t y, const dsa_bf16_t *x, uint32_t n,
    uint32_t cols, const int32_t *places, const int32_t *rows,
    const float *scale)
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

            if constexpr (OUT == DSA_SWIGLU_BF16) {
                if (live) {
                    dsa_store16((dsa_bf16_t *) y.q + (size_t) row * cols
                                + col, dsa_pack8(v));
                }

            } else if constexpr (OUT == DSA_SWIGLU_GIVEN) {
                dsa_round_bf16<DSA_CHUNK>(v);
                dsa_quantize_chunk_by(&y, v, row, col, cols, live, *scale);

            } else {
                dsa_round_bf16<DSA_CHUNK>(v);
                dsa_quantize_chunk<OUT == DSA_SWIGLU_UE8M0>(&y, v, row, col,
                                                            cols, live);
            }
        }

        taken = next;
    }
}


static int
dsa_swiglu(void (*kernel)(dsa_fp8_rows_t, const dsa_bf16_t *, uint32_t,
    uint32_t, const int32_t *, const int32_t *, const float *),
    const dsa_fp8_rows_t *y, const dsa_bf16_t *x, uint32_t rows,
    uint32_t cols, const dsa_moe_plan_t *plan, uint32_t experts,
    const float *scale, dsa_stream_t stream)
{
    dim3      grid;
    uint32_t  threads;

    rows = plan != NULL ? plan->places : rows;

    if (rows == 0) {
        return cudaSuccess;
    }

    threads = (cols / DSA_CHUNK + 31) & ~31U;
    threads = threads < DSA_MOE_THREADS ? threads : DSA_MOE_THREADS;

    grid = dim3(rows < DSA_MOE_BLOCKS ? rows : DSA_MOE_BLOCKS,
                (cols / DSA_CHUNK + threads - 1) / threads);

    return dsa_launch(kernel, grid, threads, 0, stream, *y, x, rows, cols,
                      plan != NULL ? plan->offset + experts : NULL,
                      plan != NULL ? plan->row : NULL, scale);
}


/* Returns 1 if the operands of a quantized SwiGLU are as it expects. */

static int
dsa_swiglu_ok(const dsa_fp8_rows_t *y, const dsa_bf16_t *x, uint32_t rows,
    uint32_t cols, const dsa_moe_plan_t *plan)
{
    return cols != 0 && dsa_aligned16(x)
           && dsa_fp8_rows_ok(y, plan == NULL ? rows : 0, cols);
}


extern "C" int
dsa_cuda_swiglu(const dsa_fp8_rows_t *y, const dsa_bf16_t *x, uint32_t rows,
    uint32_t cols, const dsa_moe_plan_t *plan, uint32_t experts, int ue8m0,
    dsa_stream_t stream)
{
    if (!dsa_swiglu_ok(y, x, rows, cols, plan)) {
        return cudaErrorInvalidValue;
    }

    return dsa_swiglu(ue8m0 ? dsa_swiglu_kernel<DSA_SWIGLU_UE8M0>
                            : dsa_swiglu_kernel<DSA_SWIGLU_FP8>,
                      y, x, rows, cols, plan, experts, NULL, stream);
}


extern "C" int
dsa_cuda_swiglu_by(const dsa_fp8_rows_t *y, const dsa_bf16_t *x,
    uint32_t rows, uint32_t cols, const dsa_moe_plan_t *plan,
    uint32_t experts, const float *scale, dsa_stream_t stream)
{
    if (!dsa_swiglu_ok(y, x, rows, cols, plan)) {
        return cudaErrorInvalidValue;
    }

    return dsa_swiglu(dsa_swiglu_kernel<DSA_SWIGLU_GIVEN>, y, x, rows, cols,
                      plan, experts, scale, stream);
}


extern "C" int
dsa_cuda_swiglu_bf16(dsa_bf16_t *y, const dsa_bf16_t *x, uint32_t rows,
    uint32_t cols, const dsa_moe_plan_t *plan, uint32_t experts,
    dsa_stream_t stream)
{
    dsa_fp8_rows_t  out = { (dsa_e4m3_t *) y, NULL, 0 };

    if (cols == 0 || cols % DSA_CHUNK != 0 || !dsa_aligned16(x)
        || !dsa_aligned16(y))
    {
        return cudaErrorInvalidValue;
    }

    return dsa_swiglu(dsa_swiglu_kernel<DSA_SWIGLU_BF16>, &out, x, rows, cols,
                      plan, experts, NULL, stream);
}


/*
 * The weighted sum: one chunk for each thread over all experts of a row, which
 * are sorted in rising order first.
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

    if (k == 0 || k > DSA_CUDA_CHOICES || cols == 0 || cols % DSA_CHUNK != 0
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

    return dsa_launch(dsa_moe_combine_kernel<DSA_CUDA_CHOICES>,
                      dim3(rows, (cols + span - 1) / span),
                      DSA_COMBINE_THREADS, 0, stream, y, x, shared, weight,
                      expert, plan->place, k, cols);
}
