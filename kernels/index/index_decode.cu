
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "kernels/core/rows.cuh"
#include "kernels/core/setup.cuh"
#include "index_score.cuh"


/*
 * Decode.  A block is one warp that loads and one warpgroup that computes;
 * four blocks share an SM.  Memory is the limit: 16 pages of 8.25 KB are being
 * loaded by an SM at any time.
 *
 * The work is the pages of all sequences, one after another.  The bandwidth of
 * SMs differs by up to 25 %, so only three quarters of the pages are assigned
 * in advance.  Blocks that have finished draw tickets for the rest, see
 * dsa_cuda_counters_t.
 */

#define DSA_INDEX_SHARE     4                   /* blocks of an SM */
#define DSA_INDEX_DEPTH     4                   /* pages in flight of each
                                                   block */
#define DSA_INDEX_TICKET    2                   /* pages drawn at a time */
#define DSA_INDEX_FREE      4                   /* 16ths of the pages that are
                                                   drawn */
#define DSA_INDEX_LEAST     8                   /* with fewer pages for each
                                                   block, none are drawn */


typedef struct {
    int32_t             row;                    /* -1: the end */
    uint32_t            page;
} dsa_index_work_t;


template <int H>
struct dsa_index_decode_smem_t {
    uint8_t             k[DSA_INDEX_DEPTH][DSA_INDEX_KEYS];
    uint8_t             q[2][H * 128];
    float               scale[DSA_INDEX_DEPTH][DSA_INDEX_PAGE];
    float               w[2][H];
    dsa_index_work_t    work[DSA_INDEX_DEPTH];
    uint64_t            q_full[2];
    uint64_t            q_empty[2];
    uint64_t            k_full[DSA_INDEX_DEPTH];
    uint64_t            k_empty[DSA_INDEX_DEPTH];
};


static __device__ __forceinline__ uint32_t
dsa_index_pages(const int32_t *keys, uint32_t row, uint32_t n)
{
    return row < n && keys[row] > 0 ? (keys[row] + 63) / 64 : 0;
}


static __device__ __forceinline__ uint32_t
dsa_index_scan(uint32_t v, int lane)
{
    int       i;
    uint32_t  u;

#pragma unroll
    for (i = 1; i < 32; i *= 2) {
        u = __shfl_up_sync(0xffffffff, v, i);
        v += lane >= i ? u : 0;
    }

    return v;
}


/*
 * Returns which of the 32 rows from *base on has page begin.  If none of them
 * has it, the search goes on with the next 32 rows: begin never decreases, so
 * rows are visited in order.
 */

static __device__ __forceinline__ uint32_t
dsa_index_find(const int32_t *keys, uint32_t rows, uint32_t begin, int lane,
    uint32_t *base, uint32_t *count, uint32_t *scan)
{
    uint32_t  found;

    for ( ;; ) {
        found = __ballot_sync(0xffffffff, *scan > begin);

        if (found != 0) {
            return __ffs(found) - 1;
        }

        found = __shfl_sync(0xffffffff, *scan, 31);
        *base += 32;
        *count = dsa_index_pages(keys, *base + lane, rows);
        *scan = found + dsa_index_scan(*count, lane);
    }
}


/*
 * Computes the number of all pages, and returns how many of them are assigned
 * in advance.
 */

static __device__ __forceinline__ uint32_t
dsa_index_deal(const int32_t *keys, uint32_t rows, int lane, uint32_t *all)
{
    uint32_t  j, sum;

    sum = 0;

    for (j = lane; j < rows; j += 32) {
        sum += dsa_index_pages(keys, j, rows);
    }

    sum = __reduce_add_sync(0xffffffff, sum);
    *all = sum;

    return sum / gridDim.x < DSA_INDEX_LEAST
           ? sum
           : sum - sum / 16 * DSA_INDEX_FREE;
}


/*
 * Returns the first page of the next ticket, counted from the pages that are
 * assigned in advance.  Only the first ticket is drawn here: the caller draws
 * the next one before it uses this one.
 */

static __device__ __forceinline__ uint32_t
dsa_index_draw(dsa_cuda_counters_t *counters, int lane, int *draws,
    uint32_t *ticket)
{
    if (*draws == 0) {
        *draws = 1;
        *ticket = lane == 0 ? atomicAdd(&counters->index_drawn, 1) : 0;
    }

    return DSA_INDEX_TICKET * __shfl_sync(0xffffffff, *ticket, 0);
}


/* Starts the copies of the queries and weights of the i-th row of a block. */

template <int H>
static __device__ __forceinline__ void
dsa_index_load_row(dsa_index_decode_smem_t<H> *smem, const CUtensorMap *map_q,
    const float *w, uint32_t heads, int32_t row, int i)
{
    dsa_mbar_arrive_expect(&smem->q_full[i % 2],
                           sizeof(smem->q[0])
                           + heads * (uint32_t) sizeof(float));
    dsa_tma_load_3d(smem->q[i % 2], map_q, &smem->q_full[i % 2], 0, 0, row);
    dsa_bulk_load(smem->w[i % 2], w + (size_t) row * heads,
                  heads * (uint32_t) sizeof(float), &smem->q_full[i % 2]);
}


/* Starts the copies of the keys of page number and of their scales. */

template <int H>
static __device__ __forceinline__ void
dsa_index_load_page(dsa_index_decode_smem_t<H> *smem,
    const CUtensorMap *map_k, const uint8_t *scales, uint64_t page_size,
    int32_t row, uint32_t page, int32_t number, uint32_t s)
{
    smem->work[s].row = row;
    smem->work[s].page = page;

    dsa_mbar_arrive_expect(&smem->k_full[s], DSA_INDEX_STAGE);
    dsa_tma_load_3d(smem->k[s], map_k, &smem->k_full[s], 0, 0, number);
    dsa_bulk_load(smem->scale[s], scales + number * page_size,
                  sizeof(smem->scale[0]), &smem->k_full[s]);
}


template <int H>
static __device__ __forceinline__ void
dsa_index_decode_produce(dsa_index_decode_smem_t<H> *smem,
    const CUtensorMap *map_q, const CUtensorMap *map_k, const float *w,
    const uint8_t *scales, uint64_t page_size, const int32_t *pages,
    size_t ld_pages, const int32_t *keys, uint32_t rows, uint32_t heads,
    dsa_cuda_counters_t *counters)
{
    int       i, lane, draws;
    int32_t   number, one, row;
    uint32_t  all, dealt, begin, n, base, count, scan, found, page, last, j;
    uint32_t  s, phase, ticket;

    lane = threadIdx.x % 32;
    dealt = dsa_index_deal(keys, rows, lane, &all);

    begin = (uint32_t) ((uint64_t) dealt * blockIdx.x / gridDim.x);
    n = (uint32_t) ((uint64_t) dealt * (blockIdx.x + 1) / gridDim.x) - begin;

    i = 0;
    s = 0;
    phase = 0;
    row = -1;
    draws = 0;
    number = 0;
    ticket = 0;

    /*
     * 32 rows from base on, one for each lane; scan: the inclusive sum of
     * their pages
     */

    base = 0;
    count = dsa_index_pages(keys, lane, rows);
    scan = dsa_index_scan(count, lane);

    for ( ;; ) {

        if (n == 0) {
            if (dealt == all) {
                break;
            }

            begin = dealt + dsa_index_draw(counters, lane, &draws, &ticket);

            if (begin >= all) {
                break;
            }

            n = all - begin < DSA_INDEX_TICKET ? all - begin
                                               : DSA_INDEX_TICKET;
            ticket = lane == 0 ? atomicAdd(&counters->index_drawn, 1) : 0;
        }

        found = dsa_index_find(keys, rows, begin, lane, &base, &count, &scan);
        last = __shfl_sync(0xffffffff, count, found);
        page = begin + last - __shfl_sync(0xffffffff, scan, found);
        last = last - page < n ? last : page + n;
        begin += last - page;
        n -= last - page;

        if ((int32_t) (base + found) != row) {
            row = base + found;

            dsa_mbar_wait(&smem->q_empty[i % 2], (i / 2 + 1) % 2);

            if (lane == 0) {
                dsa_index_load_row<H>(smem, map_q, w, heads, row, i);
            }

            i++;
        }

        for (j = 0; page < last; j++, page++) {
            if (j % 32 == 0 && page + lane < last) {
                number = pages[row * ld_pages + page + lane];
            }

            one = __shfl_sync(0xffffffff, number, j % 32);

            dsa_mbar_wait(&smem->k_empty[s], phase ^ 1);

            if (lane == 0) {
                dsa_index_load_page<H>(smem, map_k, scales, page_size, row,
                                       page, one, s);
            }

            if (++s == DSA_INDEX_DEPTH) {
                s = 0;
                phase ^= 1;
            }
        }
    }

    dsa_mbar_wait(&smem->k_empty[s], phase ^ 1);

    if (lane == 0) {
        smem->work[s].row = -1;
        dsa_mbar_arrive(&smem->k_full[s]);

        if (dealt < all
            && atomicAdd(&counters->index_done, 1) == gridDim.x - 1)
        {
            counters->index_drawn = 0;
            counters->index_done = 0;
        }
    }
}


template <int H>
static __device__ __forceinline__ void
dsa_index_decode_consume(dsa_index_decode_smem_t<H> *smem, float *score,
    size_t ld, uint32_t heads)
{
    int                i, col, row, lane;
    float              kscale, d[H / 2], sum[2], w[H / 4];
    uint32_t           s, phase;
    uint64_t           q;
    dsa_index_work_t   work;

    lane = threadIdx.x % 32;
    col = threadIdx.x / 32 * 16 + lane / 4 + (lane & 2) * 4;

    i = 0;
    q = 0;
    s = 0;
    phase = 0;
    row = -1;

    for ( ;; ) {
        dsa_mbar_wait(&smem->k_full[s], phase);

        work = smem->work[s];

        if (work.row < 0) {
            break;
        }

        if (work.row != row) {
            if (row >= 0) {
                dsa_mbar_arrive(&smem->q_empty[(i - 1) % 2]);
            }

            row = work.row;

            dsa_mbar_wait(&smem->q_full[i % 2], i / 2 % 2);

            q = dsa_index_tile(smem->q[i % 2]);
            dsa_index_weights<H, H>(w, smem->w[i % 2], heads, lane % 4);
            i++;
        }

        kscale = smem->scale[s][col];

        dsa_index_product<H>(d, dsa_index_tile(smem->k[s]), q);
        dsa_index_wait<0>(d);

        dsa_mbar_arrive(&smem->k_empty[s]);

        if (++s == DSA_INDEX_DEPTH) {
            s = 0;
            phase ^= 1;
        }

        dsa_index_sum<H, H>(sum, d, w);
        dsa_index_exchange<2, 1>(sum, lane, 2);
        sum[0] += __shfl_xor_sync(0xffffffff, sum[0], 1);

        if (lane % 2 == 0) {
            score[row * ld + work.page * DSA_INDEX_PAGE + col] = sum[0]
                                                                 * kscale;
        }
    }
}


template <int H>
static __global__ void __launch_bounds__(160, DSA_INDEX_SHARE)
dsa_index_decode_kernel(float *score, size_t ld, const float *w,
    const uint8_t *scales, uint64_t page_size, const int32_t *pages,
    size_t ld_pages, const int32_t *keys, uint32_t rows, uint32_t heads,
    dsa_cuda_counters_t *counters, const __grid_constant__ CUtensorMap map_q,
    const __grid_constant__ CUtensorMap map_k)
{
    int  i;

    extern __shared__ __align__(1024) uint8_t  dsa_index_shared[];

    dsa_index_decode_smem_t<H>  *smem =
                              (dsa_index_decode_smem_t<H> *) dsa_index_shared;

    if (threadIdx.x == 0) {
        dsa_tma_prefetch(&map_q);
        dsa_tma_prefetch(&map_k);

        for (i = 0; i < 2; i++) {
            dsa_mbar_init(&smem->q_full[i], 1);
            dsa_mbar_init(&smem->q_empty[i], 128);
        }

        for (i = 0; i < DSA_INDEX_DEPTH; i++) {
            dsa_mbar_init(&smem->k_full[i], 1);
            dsa_mbar_init(&smem->k_empty[i], 128);
        }

        dsa_mbar_fence_init();
    }

    dsa_begin();
    __syncthreads();

    if (threadIdx.x >= 128) {
        dsa_index_decode_produce<H>(smem, &map_q, &map_k, w, scales,
                                    page_size, pages, ld_pages, keys, rows,
                                    heads, counters);

    } else {
        dsa_index_decode_consume<H>(smem, score, ld, heads);
    }
}


template <int H>
static int
dsa_index_decode_permit(void)
{
    return dsa_setup_shared(dsa_index_decode_kernel<H>,
                            sizeof(dsa_index_decode_smem_t<H>));
}


int
dsa_index_decode_setup(void)
{
    int  rc;

    rc = dsa_index_decode_permit<8>();
    rc = rc != 0 ? rc : dsa_index_decode_permit<16>();
    rc = rc != 0 ? rc : dsa_index_decode_permit<32>();

    return rc != 0 ? rc : dsa_index_decode_permit<64>();
}


template <int H>
static int
dsa_index_decode(const dsa_cuda_state_t *state, float *score, size_t ld,
    const dsa_e4m3_t *q, const float *w, const dsa_cuda_cache_t *cache,
    const int32_t *pages, size_t ld_pages, const int32_t *keys, uint32_t n,
    uint32_t max_keys, uint32_t heads, dsa_stream_t stream)
{
    int          rc;
    uint32_t     blocks;
    uint64_t     most;
    CUtensorMap  map_q, map_k;

    rc = dsa_index_maps(state, &map_q, &map_k, q, cache, n, heads, H, 1);
    if (rc != 0) {
        return rc;
    }

    most = (uint64_t) n * (((uint64_t) max_keys + 63) / 64);
    blocks = state->processors * DSA_INDEX_SHARE;
    blocks = most < blocks ? (uint32_t) most : blocks;

    return dsa_launch(dsa_index_decode_kernel<H>, blocks, 160,
                      sizeof(dsa_index_decode_smem_t<H>), stream, score, ld, w,
                      cache->base + cache->keys + DSA_INDEX_KEYS, cache->page,
                      pages, ld_pages, keys, n, heads, state->counters, map_q,
                      map_k);
}


extern "C" int
dsa_cuda_index_score_decode(const dsa_cuda_state_t *state, float *score,
    size_t ld, const dsa_e4m3_t *q, const float *w,
    const dsa_cuda_cache_t *cache, const int32_t *pages, size_t ld_pages,
    const int32_t *keys, uint32_t n, uint32_t max_keys, uint32_t heads,
    dsa_stream_t stream)
{
    if (heads == 0 || heads > 64 || heads % 8 != 0) {
        return cudaErrorInvalidValue;
    }

    if (n == 0 || max_keys == 0) {
        return cudaSuccess;
    }

    if (heads <= 8) {
        return dsa_index_decode<8>(state, score, ld, q, w, cache, pages,
                                   ld_pages, keys, n, max_keys, heads, stream);
    }

    if (heads <= 16) {
        return dsa_index_decode<16>(state, score, ld, q, w, cache, pages,
                                    ld_pages, keys, n, max_keys, heads,
                                    stream);
    }

    if (heads <= 32) {
        return dsa_index_decode<32>(state, score, ld, q, w, cache, pages,
                                    ld_pages, keys, n, max_keys, heads,
                                    stream);
    }

    return dsa_index_decode<64>(state, score, ld, q, w, cache, pages, ld_pages,
                                keys, n, max_keys, heads, stream);
}
