
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "kernels/core/setup.cuh"
#include "exchange.cuh"


#define DSA_EXCHANGE_LOADS  4           /* of 16 bytes a thread, in flight */


static __global__ void __launch_bounds__(32)
dsa_exchange_signal_kernel(DSA_EXCHANGE_X x)
{
    dsa_begin();
    dsa_exchange_raise(&x, 0);
}


static __global__ void __launch_bounds__(32)
dsa_exchange_wait_kernel(DSA_EXCHANGE_X x)
{
    dsa_exchange_begin(&x);
    dsa_exchange_await(&x);
}


extern "C" int
dsa_cuda_exchange_signal(const dsa_cuda_exchange_t *x, dsa_stream_t stream)
{
    if (!dsa_exchange_ok(x)) {
        return cudaErrorInvalidValue;
    }

    return dsa_launch(dsa_exchange_signal_kernel, 1, 32, 0, stream, *x);
}


extern "C" int
dsa_cuda_exchange_wait(const dsa_cuda_exchange_t *x, dsa_stream_t stream)
{
    if (!dsa_exchange_ok(x)) {
        return cudaErrorInvalidValue;
    }

    return dsa_launch(dsa_exchange_wait_kernel, 1, 32, 0, stream, *x);
}


typedef struct {
    float              *to[DSA_EXCHANGE_RANKS];
    const float        *from;
    uint32_t            chunks;         /* of 4 columns, of from */
    uint32_t            cols;
} dsa_exchange_gather_t;


/*
 * Each thread copies chunks to all ranks; the first block waits for all ranks.
 */

static __global__ void __launch_bounds__(DSA_EXCHANGE_THREADS)
dsa_exchange_gather_kernel(DSA_EXCHANGE_X x,
    const __grid_constant__ dsa_exchange_gather_t g)
{
    int       j;
    uint4     v[DSA_EXCHANGE_LOADS];
    size_t    at[DSA_EXCHANGE_LOADS];
    uint32_t  i, q, r, n, step, wide;

    dsa_exchange_begin(&x);

    wide = g.cols / 4;
    step = gridDim.x * DSA_EXCHANGE_THREADS;
    i = blockIdx.x * DSA_EXCHANGE_THREADS + threadIdx.x;

    for ( /* void */ ; i < g.chunks; i += step * DSA_EXCHANGE_LOADS) {
#pragma unroll
        for (j = 0; j < DSA_EXCHANGE_LOADS; j++) {
            n = i + j * step;

            if (n < g.chunks) {
                v[j] = dsa_load16(g.from + (size_t) n * 4);
                at[j] = ((size_t) (n / wide) * x.ranks * wide
                         + (size_t) x.rank * wide + n % wide) * 4;
            }
        }

        for (r = 0; r < x.ranks; r++) {
            q = dsa_exchange_peer(&x, r);

#pragma unroll
            for (j = 0; j < DSA_EXCHANGE_LOADS; j++) {
                if (i + j * step < g.chunks) {
                    dsa_store16(g.to[q] + at[j], v[j]);
                }
            }
        }
    }

    dsa_exchange_raise(&x, 1);
}


extern "C" int
dsa_cuda_exchange_gather(const dsa_cuda_exchange_t *x,
    float *const *to, const float *from, uint32_t rows,
    uint32_t cols, dsa_stream_t stream)
{
    uint32_t               i;
    dsa_exchange_gather_t  g;

    if (!dsa_exchange_ok(x) || cols == 0 || cols % 4 != 0
        || (uint64_t) rows * cols / 4 >= UINT32_MAX / 2
        || !dsa_exchange_addresses_ok(x, (void *const *) to)
        || !dsa_aligned16(from))
    {
        return cudaErrorInvalidValue;
    }

    for (i = 0; i < x->ranks; i++) {
        g.to[i] = to[i];
    }

    g.from = from;
    g.cols = cols;
    g.chunks = (uint32_t) ((uint64_t) rows * cols / 4);

    return dsa_launch(dsa_exchange_gather_kernel,
                      dsa_exchange_blocks(g.chunks, 2 * DSA_EXCHANGE_THREADS,
                                          x->processors),
                      DSA_EXCHANGE_THREADS, 0, stream, *x, g);
}


int
dsa_exchange_setup(void)
{
    int  rc;

    rc = dsa_setup_load(dsa_exchange_signal_kernel);
    rc = rc != 0 ? rc : dsa_setup_load(dsa_exchange_wait_kernel);
    rc = rc != 0 ? rc : dsa_setup_load(dsa_exchange_gather_kernel);

    return rc;
}
