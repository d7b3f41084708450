
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "kernels/core/setup.cuh"
#include "exchange.cuh"


/*
 * The sum of all ranks' rows, in one of two ways.
 *
 * Few rows: one kernel.  Each thread stores its elements to all ranks, each 8
 * bytes in one 16-byte word with the number of the sum, and then reads the
 * words of all ranks until each has that number.  A word is stored and loaded
 * as a whole, so neither fences nor flags are needed.  A thread stores all of
 * its words before it waits for the first.  The words have two halves, which
 * alternate from sum to sum: when a rank stores the words of sum n + 2, it has
 * read those of n + 1 from all ranks, which have therefore ended sum n.  The
 * number has 64 bits, so it never repeats.
 *
 * Many rows: rank q gets chunks n * q / ranks .. n * (q + 1) / ranks - 1 of
 * all ranks (scattered), adds them up and stores the sums to all ranks
 * (gathered), which copy them.  The second exchange of a sum proves that the
 * scattered chunks were read, and the first exchange of the next such sum that
 * the last copy has ended.  This holds if the scattered chunks of the next sum
 * do not reach the gathered ones of this sum, that is, unless the next sum is
 * larger: see the header.
 */

#define DSA_REDUCE_WORDS    (1U << 17)  /* most words that a rank stores to the
                                           others in one kernel: 2 MB */
#define DSA_REDUCE_LOADS    4           /* of 16 bytes a thread, in flight */


typedef struct {
    dsa_bf16_t         *y;
    const dsa_bf16_t   *from;
    uint8_t            *part[DSA_EXCHANGE_RANKS];
    uint64_t            half;           /* bytes of the words of one sum */
    uint64_t            scattered;      /* offset in part */
    uint64_t            gathered;
    uint32_t            n;              /* words, or chunks */
} dsa_exchange_reduce_t;


static __device__ __forceinline__ void
dsa_store_word(void *p, uint64_t data, uint64_t number)
{
    asm volatile ("{\n\t"
                  ".reg .b128 w;\n\t"
                  "mov.b128 w, {%1, %2};\n\t"
                  "st.relaxed.sys.global.b128 [%0], w;\n\t"
                  "}"
                  :: "l"(p), "l"(data), "l"(number) : "memory");
}


static __device__ __forceinline__ ulonglong2
dsa_load_word(const void *p)
{
    ulonglong2  v;

    asm volatile ("{\n\t"
                  ".reg .b128 w;\n\t"
                  "ld.relaxed.sys.global.b128 w, [%2];\n\t"
                  "mov.b128 {%0, %1}, w;\n\t"
                  "}"
                  : "=l"(v.x), "=l"(v.y) : "l"(p) : "memory");

    return v;
}


static __device__ __forceinline__ void
dsa_add_word(float *sum, uint64_t data)
{
    int    i;
    float  v[4];

    dsa_unpack2(v, (uint32_t) data);
    dsa_unpack2(v + 2, (uint32_t) (data >> 32));

#pragma unroll
    for (i = 0; i < 4; i++) {
        sum[i] = __fadd_rn(sum[i], v[i]);
    }
}


/*
 * Adds the words of ranks first .. first+RANKS-1 at p to sum, ranks rising.
 * All of them are in flight at the same time.  If a word has a later number,
 * the wait of its rank has failed.  A rank that is behind is reported first.
 */

template <int RANKS>
static __device__ __forceinline__ void
dsa_reduce_words(const dsa_cuda_exchange_t *x, float *sum, const uint8_t *p,
    size_t stride, uint32_t first, uint64_t number)
{
    int         i, missing;
    uint32_t    j;
    uint64_t    start;
    ulonglong2  v[RANKS];

    start = 0;

    for (j = 1; ; j++) {
        missing = -1;

#pragma unroll
        for (i = RANKS - 1; i >= 0; i--) {
            if (first + i < x->ranks) {
                v[i] = dsa_load_word(p + (first + i) * stride);
            }
        }

#pragma unroll
        for (i = RANKS - 1; i >= 0; i--) {
            if (first + i < x->ranks
                && (v[i].y < number || (v[i].y != number && missing < 0)))
            {
                missing = (int) first + i;
            }
        }

        if (missing < 0
            || (j % DSA_EXCHANGE_POLLS == 0
                && dsa_exchange_expired(x, &start, (uint32_t) missing,
                                        (uint32_t) number)))
        {
            break;
        }
    }

#pragma unroll
    for (i = 0; i < RANKS; i++) {
        if (first + i < x->ranks) {
            dsa_add_word(sum, v[i].x);
        }
    }
}


template <int RANKS>
static __global__ void __launch_bounds__(DSA_EXCHANGE_THREADS)
dsa_exchange_words_kernel(DSA_EXCHANGE_X x,
    const __grid_constant__ dsa_exchange_reduce_t c)
{
    float                  sum[4];
    size_t                 at, stride;
    uint8_t               *p;
    uint64_t               v, number;
    uint32_t               i, q, r, first, step;
    dsa_exchange_state_t  *state;

    dsa_exchange_begin(&x);

    state = x.state[x.rank];
    number = *(volatile uint64_t *) &state->sums + 1;
    stride = (size_t) c.n * 16;
    at = number % 2 * c.half;
    first = blockIdx.x * DSA_EXCHANGE_THREADS + threadIdx.x;
    step = gridDim.x * DSA_EXCHANGE_THREADS;

    for (i = first; i < c.n; i += step) {
        v = *(const uint64_t *) (c.from + (size_t) i * 4);

        for (r = 0; r < x.ranks; r++) {
            q = dsa_exchange_peer(&x, r);
            dsa_store_word(c.part[q] + at + x.rank * stride + (size_t) i * 16,
                           v, number);
        }
    }

    p = c.part[x.rank] + at;

    for (i = first; i < c.n; i += step) {
        sum[0] = sum[1] = sum[2] = sum[3] = 0;

        for (q = 0; q < x.ranks; q += RANKS) {
            dsa_reduce_words<RANKS>(&x, sum, p + (size_t) i * 16, stride, q,
                                    number);
        }

        *(uint2 *) (c.y + (size_t) i * 4) = make_uint2(dsa_pack2(sum),
                                                       dsa_pack2(sum + 2));
    }

    /*
     * All threads must have read the number before the last block resets the
     * counter.
     */

    __syncthreads();

    if (threadIdx.x == 0
        && atomicAdd(&state->blocks, 1) == gridDim.x - 1)
    {
        state->blocks = 0;
        state->sums = number;
    }
}


/* Returns the first chunk of rank q's slice. */

static __host__ __device__ __forceinline__ uint32_t
dsa_slice(const dsa_cuda_exchange_t *x, uint32_t n, uint32_t q)
{
    return (uint32_t) ((uint64_t) n * q / x->ranks);
}


/* Stores slices to the other ranks; blocks alternate between the ranks. */

static __global__ void __launch_bounds__(DSA_EXCHANGE_THREADS)
dsa_exchange_scatter_kernel(DSA_EXCHANGE_X x,
    const __grid_constant__ dsa_exchange_reduce_t c)
{
    int       j;
    uint4     v[DSA_REDUCE_LOADS];
    uint8_t  *to;
    uint32_t  i, q, first, end, step, slice;

    dsa_exchange_begin(&x);

    q = (x.rank + 1 + blockIdx.x % (x.ranks - 1)) % x.ranks;
    first = dsa_slice(&x, c.n, q);
    end = dsa_slice(&x, c.n, q + 1);
    slice = (c.n + x.ranks - 1) / x.ranks;
    to = c.part[q] + c.scattered + (size_t) x.rank * slice * 16;
    step = gridDim.x / (x.ranks - 1) * DSA_EXCHANGE_THREADS;
    i = first + blockIdx.x / (x.ranks - 1) * DSA_EXCHANGE_THREADS
        + threadIdx.x;

    for ( /* void */ ; i < end; i += step * DSA_REDUCE_LOADS) {
#pragma unroll
        for (j = 0; j < DSA_REDUCE_LOADS; j++) {
            if (i + j * step < end) {
                v[j] = dsa_load16(c.from + (size_t) (i + j * step)
                                           * DSA_CHUNK);
            }
        }

#pragma unroll
        for (j = 0; j < DSA_REDUCE_LOADS; j++) {
            if (i + j * step < end) {
                dsa_store16(to + (size_t) (i + j * step - first) * 16, v[j]);
            }
        }
    }

    dsa_exchange_raise(&x, 1);
}


/* Adds up this rank's slice and stores the sums to the others. */

static __global__ void __launch_bounds__(DSA_EXCHANGE_THREADS)
dsa_exchange_reduce_kernel(DSA_EXCHANGE_X x,
    const __grid_constant__ dsa_exchange_reduce_t c)
{
    int             j, l;
    float           sum[DSA_REDUCE_LOADS][DSA_CHUNK], v[DSA_CHUNK];
    uint4           in[DSA_REDUCE_LOADS];
    uint32_t        i, r, q, first, end, step, slice;
    const uint8_t  *from;

    dsa_exchange_begin(&x);

    first = dsa_slice(&x, c.n, x.rank);
    end = dsa_slice(&x, c.n, x.rank + 1);
    slice = (c.n + x.ranks - 1) / x.ranks;
    step = gridDim.x * DSA_EXCHANGE_THREADS;
    i = first + blockIdx.x * DSA_EXCHANGE_THREADS + threadIdx.x;

    for ( /* void */ ; i < end; i += step * DSA_REDUCE_LOADS) {
        for (r = 0; r < x.ranks; r++) {
            from = r == x.rank ? (const uint8_t *) c.from + (size_t) first * 16
                               : c.part[x.rank] + c.scattered
                                 + (size_t) r * slice * 16;

#pragma unroll
            for (j = 0; j < DSA_REDUCE_LOADS; j++) {
                if (i + j * step < end) {
                    in[j] = dsa_load16(from + (size_t) (i + j * step - first)
                                              * 16);
                }
            }

#pragma unroll
            for (j = 0; j < DSA_REDUCE_LOADS; j++) {
                dsa_unpack8(v, in[j]);

#pragma unroll
                for (l = 0; l < DSA_CHUNK; l++) {
                    sum[j][l] = __fadd_rn(r > 0 ? sum[j][l] : 0, v[l]);
                }
            }
        }

        for (r = 0; r < x.ranks; r++) {
            q = dsa_exchange_peer(&x, r);

#pragma unroll
            for (j = 0; j < DSA_REDUCE_LOADS; j++) {
                if (i + j * step < end) {
                    dsa_store16((q == x.rank ? (uint8_t *) c.y
                                             : c.part[q] + c.gathered)
                                + (size_t) (i + j * step) * 16,
                                dsa_pack8(sum[j]));
                }
            }
        }
    }

    dsa_exchange_raise(&x, 1);
}


/* Copies the sums of the other ranks' slices. */

static __global__ void __launch_bounds__(DSA_EXCHANGE_THREADS)
dsa_exchange_copy_kernel(DSA_EXCHANGE_X x,
    const __grid_constant__ dsa_exchange_reduce_t c)
{
    int             j;
    uint4           v[DSA_REDUCE_LOADS];
    uint32_t        i, n, first, own, step;
    const uint8_t  *from;

    dsa_begin();

    first = dsa_slice(&x, c.n, x.rank);
    own = dsa_slice(&x, c.n, x.rank + 1) - first;
    from = c.part[x.rank] + c.gathered;
    step = gridDim.x * DSA_EXCHANGE_THREADS;
    i = blockIdx.x * DSA_EXCHANGE_THREADS + threadIdx.x;

    for ( /* void */ ; i < c.n - own; i += step * DSA_REDUCE_LOADS) {
#pragma unroll
        for (j = 0; j < DSA_REDUCE_LOADS; j++) {
            n = i + j * step;
            n += n >= first ? own : 0;

            if (n < c.n) {
                v[j] = dsa_load16(from + (size_t) n * 16);
            }
        }

#pragma unroll
        for (j = 0; j < DSA_REDUCE_LOADS; j++) {
            n = i + j * step;
            n += n >= first ? own : 0;

            if (n < c.n) {
                dsa_store16(c.y + (size_t) n * DSA_CHUNK, v[j]);
            }
        }
    }
}


/* Returns the most words of one rank in a sum that one kernel computes. */

static uint64_t
dsa_reduce_words_most(uint32_t ranks)
{
    return DSA_REDUCE_WORDS / (ranks - 1);
}


static uint64_t
dsa_reduce_half(uint32_t ranks)
{
    return ranks * dsa_reduce_words_most(ranks) * 16;
}


/* Returns the chunks of 16 bytes of the slices, a multiple of ranks. */

static uint64_t
dsa_reduce_chunks(uint32_t ranks, uint64_t n)
{
    return (n / DSA_CHUNK + ranks) / ranks * ranks;
}


extern "C" uint64_t
dsa_cuda_exchange_part(uint32_t ranks, uint32_t rows, uint32_t cols)
{
    uint64_t  n, size;

    if (ranks == 1) {
        return 0;
    }

    n = (uint64_t) rows * cols;
    size = 2 * dsa_reduce_half(ranks);

    if (n / 4 > dsa_reduce_words_most(ranks)) {
        size += 2 * dsa_reduce_chunks(ranks, n) * 16;
    }

    return size;
}


static int
dsa_reduce_many(const dsa_cuda_exchange_t *x, dsa_exchange_reduce_t *c,
    uint64_t n, dsa_stream_t stream)
{
    int       rc;
    uint32_t  slice, blocks;

    c->n = (uint32_t) (n / DSA_CHUNK);
    c->scattered = 2 * dsa_reduce_half(x->ranks);
    c->gathered = c->scattered + dsa_reduce_chunks(x->ranks, n) * 16;

    slice = (c->n + x->ranks - 1) / x->ranks;
    blocks = dsa_exchange_blocks(slice, DSA_EXCHANGE_THREADS
                                        * DSA_REDUCE_LOADS,
                                 2 * x->processors / (x->ranks - 1));

    rc = dsa_launch(dsa_exchange_scatter_kernel, blocks * (x->ranks - 1),
                    DSA_EXCHANGE_THREADS, 0, stream, *x, *c);
    if (rc != 0) {
        return rc;
    }

    blocks = dsa_exchange_blocks(slice, DSA_EXCHANGE_THREADS
                                        * DSA_REDUCE_LOADS,
                                 2 * x->processors);

    rc = dsa_launch(dsa_exchange_reduce_kernel, blocks, DSA_EXCHANGE_THREADS,
                    0, stream, *x, *c);
    if (rc != 0) {
        return rc;
    }

    blocks = dsa_exchange_blocks(c->n, DSA_EXCHANGE_THREADS * DSA_REDUCE_LOADS,
                                 4 * x->processors);

    return dsa_launch(dsa_exchange_copy_kernel, blocks, DSA_EXCHANGE_THREADS,
                      0, stream, *x, *c);
}


extern "C" int
dsa_cuda_exchange_all_reduce(const dsa_cuda_exchange_t *x, dsa_bf16_t *y,
    const dsa_bf16_t *from, void *const *part,
    uint32_t rows, uint32_t cols, dsa_stream_t stream)
{
    uint32_t               i, blocks;
    uint64_t               n;
    dsa_exchange_reduce_t  c = { 0 };

    n = (uint64_t) rows * cols;

    if (!dsa_exchange_ok(x) || cols == 0 || cols % DSA_CHUNK != 0
        || n / DSA_CHUNK > INT32_MAX || !dsa_exchange_addresses_ok(x, part)
        || !dsa_aligned16(y) || !dsa_aligned16(from))
    {
        return cudaErrorInvalidValue;
    }

    if (rows == 0) {
        return cudaSuccess;
    }

    if (x->ranks == 1) {
        return y == from ? cudaSuccess
                         : cudaMemcpyAsync(y, from, n * sizeof(dsa_bf16_t),
                                           cudaMemcpyDeviceToDevice, stream);
    }

    for (i = 0; i < x->ranks; i++) {
        c.part[i] = (uint8_t *) part[i];
    }

    c.y = y;
    c.from = from;

    if (n / 4 > dsa_reduce_words_most(x->ranks)) {
        return dsa_reduce_many(x, &c, n, stream);
    }

    c.n = (uint32_t) (n / 4);
    c.half = dsa_reduce_half(x->ranks);
    blocks = dsa_exchange_blocks(c.n, DSA_EXCHANGE_THREADS,
                                 dsa_exchange_spin(x));

    if (x->ranks <= 2) {
        return dsa_launch(dsa_exchange_words_kernel<2>, blocks,
                          DSA_EXCHANGE_THREADS, 0, stream, *x, c);
    }

    return dsa_launch(dsa_exchange_words_kernel<8>, blocks,
                      DSA_EXCHANGE_THREADS, 0, stream, *x, c);
}


int
dsa_exchange_reduce_setup(void)
{
    int  rc;

    rc = dsa_setup_load(dsa_exchange_words_kernel<2>);
    rc = rc != 0 ? rc : dsa_setup_load(dsa_exchange_words_kernel<8>);
    rc = rc != 0 ? rc : dsa_setup_load(dsa_exchange_scatter_kernel);
    rc = rc != 0 ? rc : dsa_setup_load(dsa_exchange_reduce_kernel);
    rc = rc != 0 ? rc : dsa_setup_load(dsa_exchange_copy_kernel);

    return rc;
}
