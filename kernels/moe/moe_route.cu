
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "moe.cuh"


#define DSA_ROUTE_WARPS         4   /* rows of a block */
#define DSA_MOE_RANKS_THREADS   1024


/*
 * The router: one warp for each row.  Lane l has the experts l, l + 32, ...
 * in registers; groups are read through shared memory.  J is the number of
 * experts per lane.
 */

template <int J>
static __global__ void __launch_bounds__(32 * DSA_ROUTE_WARPS)
dsa_route_kernel(int32_t *expert, float *weight, const float *logits,
    const float *bias, uint32_t rows, dsa_router_t r, uint32_t lanes,
    uint32_t inverse)
{
    float                             w, in[J], own[J];
    size_t                            row;
    uint32_t                          lane, warp, chosen;
    __shared__ dsa_route_shared_t<J>  shared[DSA_ROUTE_WARPS];

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;
    row = (size_t) blockIdx.x * DSA_ROUTE_WARPS + warp;

    /*
     * Start all loads first, and that of the bias, which is constant, before
     * the wait.
     */

    dsa_route_load<J>(own, bias, r.experts, lane);

    dsa_begin();

    if (row >= rows) {
        return;
    }

    dsa_route_load<J>(in, logits + row * r.experts, r.experts, lane);

    chosen = dsa_route_choose<J>(&w, &shared[warp], in, own, &r, lanes,
                                 inverse, lane);
    if (lane < r.k) {
        expert[row * r.k + lane] = (int32_t) chosen;
        weight[row * r.k + lane] = w;
    }
}


extern "C" int
dsa_cuda_route(int32_t *expert, float *weight, const float *logits,
    const float *bias, uint32_t rows, const dsa_router_t *r,
    dsa_stream_t stream)
{
    uint32_t  lanes, inverse, blocks;

    if (!dsa_router_ok(r)) {
        return cudaErrorInvalidValue;
    }

    if (rows == 0) {
        return cudaSuccess;
    }

    dsa_route_split(r, &lanes, &inverse);
    blocks = (rows + DSA_ROUTE_WARPS - 1) / DSA_ROUTE_WARPS;

    if (r->experts <= 256) {
        return dsa_launch(dsa_route_kernel<8>, blocks, 32 * DSA_ROUTE_WARPS, 0,
                          stream, expert, weight, logits, bias, rows, *r,
                          lanes, inverse);
    }

    return dsa_launch(dsa_route_kernel<16>, blocks, 32 * DSA_ROUTE_WARPS,
                      0, stream, expert, weight, logits, bias, rows, *r,
                      lanes, inverse);
}


/* A block for each layer. */

static __global__ void __launch_bounds__(DSA_MOE_RANKS_THREADS)
dsa_moe_ranks_kernel(int32_t *rows, const int32_t *expert, uint64_t ld,
    uint32_t n, uint32_t each, uint32_t ranks)
{
    uint32_t             i, rank;
    __shared__ int32_t   count[DSA_MOE_RANKS];

    if (threadIdx.x < DSA_MOE_RANKS) {
        count[threadIdx.x] = 0;
    }

    dsa_begin();
    __syncthreads();

    expert += blockIdx.x * ld;

    for (i = threadIdx.x; i < n; i += DSA_MOE_RANKS_THREADS) {
        rank = (uint32_t) expert[i] / each;

        if (rank < ranks) {
            atomicAdd(&count[rank], 1);
        }
    }

    __syncthreads();

    if (threadIdx.x < ranks) {
        rows[blockIdx.x * ranks + threadIdx.x] = count[threadIdx.x];
    }
}


extern "C" int
dsa_cuda_moe_ranks(int32_t *rows, const int32_t *expert, uint64_t ld,
    uint32_t layers, uint32_t n, uint32_t each, uint32_t ranks,
    dsa_stream_t stream)
{
    if (each == 0 || ranks == 0 || ranks > DSA_MOE_RANKS) {
        return cudaErrorInvalidValue;
    }

    if (layers == 0) {
        return cudaSuccess;
    }

    return dsa_launch(dsa_moe_ranks_kernel, layers, DSA_MOE_RANKS_THREADS, 0,
                      stream, rows, expert, ld, n, each, ranks);
}
