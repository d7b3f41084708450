
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "kernels/core/setup.cuh"
#include "index_decode.cuh"


/*
 * Decode.  A block is one warp that loads and one warpgroup that computes;
 * four blocks share an SM.  Memory is the limit: 16 pages of 8.25 KB are being
 * loaded by an SM at any time.
 */

template <int H>
struct dsa_index_decode_smem_t {
    static const int    SHARE = 4;
    static const int    GROUPED = 0;
    static const int    DEPTH = 4;

    uint8_t             k[DEPTH][DSA_INDEX_KEYS];
    uint8_t             q[2][H * 128];
    float               scale[DEPTH][DSA_INDEX_PAGE];
    float               w[2][H];
    dsa_index_work_t    work[DEPTH];
    uint64_t            q_full[2];
    uint64_t            q_empty[2];
    uint64_t            k_full[DEPTH];
    uint64_t            k_empty[DEPTH];
};


/* Starts the copies of the queries and weights of the i-th row of a block. */

template <int H>
static __device__ __forceinline__ void
dsa_index_load_rows(dsa_index_decode_smem_t<H> *smem, const CUtensorMap *map_q,
    const float *w, uint32_t heads, int32_t row, uint32_t size, int i)
{
    dsa_mbar_arrive_expect(&smem->q_full[i % 2],
                           sizeof(smem->q[0])
                           + heads * (uint32_t) sizeof(float));
    dsa_tma_load_3d(smem->q[i % 2], map_q, &smem->q_full[i % 2], 0, 0, row);
    dsa_bulk_load(smem->w[i % 2], w + (size_t) row * heads,
                  heads * (uint32_t) sizeof(float), &smem->q_full[i % 2]);
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

        if (++s == smem->DEPTH) {
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
static __global__ void
__launch_bounds__(160, dsa_index_decode_smem_t<H>::SHARE)
dsa_index_decode_kernel(float *score, size_t ld, const float *w,
    const uint8_t *scales, uint64_t page_size, const int32_t *pages,
    size_t ld_pages, const int32_t *keys, uint32_t rows, uint32_t heads,
    dsa_cuda_counters_t *counters, const __grid_constant__ CUtensorMap map_q,
    const __grid_constant__ CUtensorMap map_k)
{
    extern __shared__ __align__(1024) uint8_t  dsa_index_shared[];

    dsa_index_decode_smem_t<H>  *smem =
                              (dsa_index_decode_smem_t<H> *) dsa_index_shared;

    if (threadIdx.x == 0) {
        dsa_index_decode_start(smem, &map_q, &map_k, 128);
    }

    dsa_begin();
    __syncthreads();

    if (threadIdx.x >= 128) {
        dsa_index_decode_produce(smem, &map_q, &map_k, w, scales, page_size,
                                 pages, ld_pages, keys, NULL, rows, heads,
                                 counters);

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
    blocks = state->processors * dsa_index_decode_smem_t<H>::SHARE;
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
