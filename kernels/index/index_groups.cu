
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "kernels/core/setup.cuh"
#include "index_decode.cuh"


/*
 * Decode of groups: rows of one sequence that follow one another.  A page is
 * loaded once for all rows of a group.  A block has an SM of its own, because
 * the queries of 8 rows with 64 heads take 64 KB; one warp loads, and two
 * warpgroups compute.
 *
 * The columns of a group, rows x heads, are computed in products of
 * DSA_INDEX_N.  If they are one or two, each warpgroup computes all of them for
 * every other page.  If they are more, each warpgroup computes two of them for
 * every page, so that the weights of its columns stay in registers.  In both
 * cases one warpgroup sums while the tensor cores work for the other one.
 *
 * A page takes at least 0.42 us on an SM of an H100 and of an H200 alike, so
 * that memory is not the limit of one product.  Four warps that load instead of
 * one do not change it.  The tensor cores are the limit of more than two
 * products.
 */

#define DSA_INDEX_READERS   256                 /* threads that compute */
#define DSA_INDEX_THREADS   (DSA_INDEX_READERS + 128)


template <int H>
struct dsa_index_groups_smem_t {
    static const int    SHARE = 1;
    static const int    GROUPED = 1;
    static const int    DEPTH = H > 32 ? 11 : 16;
    static const int    COLUMNS = DSA_INDEX_ROWS * H < DSA_INDEX_N
                                  ? DSA_INDEX_N
                                  : DSA_INDEX_ROWS * H;

    uint8_t             q[2][COLUMNS * 128];
    uint8_t             k[DEPTH][DSA_INDEX_KEYS];
    float               scale[DEPTH][DSA_INDEX_PAGE];
    float               w[2][COLUMNS];
    dsa_index_work_t    work[DEPTH];
    int32_t             rows[2];                /* of the group */
    uint64_t            q_full[2];
    uint64_t            q_empty[2];
    uint64_t            k_full[DEPTH];
    uint64_t            k_empty[DEPTH];
};


/*
 * Starts the copies of the queries and weights of the i-th group of a block.
 * What a product has beside them, queries of later rows or zeros and weights
 * of earlier groups, is computed and not stored.
 */

template <int H>
static __device__ __forceinline__ void
dsa_index_load_rows(dsa_index_groups_smem_t<H> *smem, const CUtensorMap *map_q,
    const float *w, uint32_t heads, int32_t row, uint32_t size, int i)
{
    const uint32_t  Q = DSA_INDEX_N / H;
    uint32_t        j, n, bytes;

    n = (size + Q - 1) / Q;
    bytes = size * heads * (uint32_t) sizeof(float);

    smem->rows[i % 2] = (int32_t) size;

    dsa_mbar_arrive_expect(&smem->q_full[i % 2],
                           n * DSA_INDEX_N * 128 + bytes);

    for (j = 0; j < n; j++) {
        dsa_tma_load_3d(smem->q[i % 2] + j * DSA_INDEX_N * 128, map_q,
                        &smem->q_full[i % 2], 0, 0, row + j * Q);
    }

    dsa_bulk_load(smem->w[i % 2], w + (size_t) row * heads, bytes,
                  &smem->q_full[i % 2]);
}


template <int H>
static __device__ __forceinline__ void
dsa_index_groups_consume(dsa_index_groups_smem_t<H> *smem, float *score,
    size_t ld, uint32_t heads)
{
    const int         N = DSA_INDEX_N;
    const int         Q = N / H;                /* rows of a product */
    const int         TWO = DSA_INDEX_ROWS > Q;
    int               i, lane, col, group, turn, row, next, first, n, split;
    int               n0, n1;
    float             kscale, d0[N / 2], d1[N / 2], w0[N / 4], w1[N / 4];
    float            *base, *out;
    uint32_t          s, phase;
    uint64_t          k, q;

    lane = threadIdx.x % 32;
    group = __shfl_sync(0xffffffff, (int) threadIdx.x / 128, 0);
    col = threadIdx.x % 128 / 32 * 16 + lane / 4 + lane % 2 * 8;

    i = 0;
    n = 0;
    n0 = 0;
    n1 = 0;
    q = 0;
    s = 0;
    phase = 0;
    row = -1;
    split = 0;
    base = score;

    for (turn = 0; ; turn ^= 1) {
        dsa_mbar_wait(&smem->k_full[s], phase);

        next = __shfl_sync(0xffffffff, smem->work[s].row, 0);

        if (next < 0) {
            break;
        }

        if (next != row) {
            if (row >= 0) {
                dsa_mbar_arrive(&smem->q_empty[(i - 1) % 2]);
            }

            row = next;

            dsa_mbar_wait(&smem->q_full[i % 2], i / 2 % 2);

            n = __shfl_sync(0xffffffff, smem->rows[i % 2], 0);
            split = n > 2 * Q;
            first = split ? group * 2 * Q : 0;
            n -= first;

            q = dsa_index_tile(smem->q[i % 2] + first * H * 128);
            dsa_index_weights<N, H>(w0, smem->w[i % 2] + first * heads, heads,
                                    lane % 4);

            if (TWO) {
                dsa_index_weights<N, H>(w1,
                                        smem->w[i % 2] + (first + Q) * heads,
                                        heads, lane % 4);
            }

            first += (lane & 2) / 2 * (Q / 2);
            n0 = n - (lane & 2) / 2 * (Q / 2);
            n0 = n0 > 0 ? n0 : 0;
            n1 = n0 > Q ? n0 - Q : 0;
            base = score + (row + first) * ld + col;
            i++;
        }

        if (!split && turn != group) {
            dsa_mbar_arrive(&smem->k_empty[s]);

        } else if (TWO && n > Q) {
            k = dsa_index_tile(smem->k[s]);
            dsa_index_product<N>(d0, k, q);
            dsa_index_product<N>(d1, k, q + N * 128 / 16);

            kscale = smem->scale[s][col];
            out = base + smem->work[s].page * DSA_INDEX_PAGE;

            dsa_index_wait<1>(d0);
            dsa_index_finish<H>(out, ld, d0, w0, kscale, lane, n0);

            dsa_index_wait<0>(d1);
            dsa_mbar_arrive(&smem->k_empty[s]);
            dsa_index_finish<H>(out + Q * ld, ld, d1, w1, kscale, lane, n1);

        } else {
            dsa_index_product<N>(d0, dsa_index_tile(smem->k[s]), q);

            kscale = smem->scale[s][col];
            out = base + smem->work[s].page * DSA_INDEX_PAGE;

            dsa_index_wait<0>(d0);
            dsa_mbar_arrive(&smem->k_empty[s]);
            dsa_index_finish<H>(out, ld, d0, w0, kscale, lane, n0);
        }

        if (++s == smem->DEPTH) {
            s = 0;
            phase ^= 1;
        }
    }
}


template <int H>
static __global__ void __launch_bounds__(DSA_INDEX_THREADS, 1)
dsa_index_groups_kernel(float *score, size_t ld, const float *w,
    const uint8_t *scales, uint64_t page_size, const int32_t *pages,
    size_t ld_pages, const int32_t *keys, const int32_t *left, uint32_t rows,
    uint32_t heads, dsa_cuda_counters_t *counters,
    const __grid_constant__ CUtensorMap map_q,
    const __grid_constant__ CUtensorMap map_k)
{
    extern __shared__ __align__(1024) uint8_t  dsa_index_shared[];

    dsa_index_groups_smem_t<H>  *smem =
                              (dsa_index_groups_smem_t<H> *) dsa_index_shared;

    if (threadIdx.x == 0) {
        dsa_index_decode_start(smem, &map_q, &map_k, DSA_INDEX_READERS);
    }

    dsa_begin();
    __syncthreads();

    if (threadIdx.x < DSA_INDEX_READERS) {
        dsa_regs_more<224>();
        dsa_index_groups_consume<H>(smem, score, ld, heads);

    } else {
        dsa_regs_less<56>();

        if (threadIdx.x % 128 < 32) {
            dsa_index_decode_produce(smem, &map_q, &map_k, w, scales,
                                     page_size, pages, ld_pages, keys, left,
                                     rows, heads, counters);
        }
    }
}


template <int H>
static int
dsa_index_groups_permit(void)
{
    return dsa_setup_shared(dsa_index_groups_kernel<H>,
                            sizeof(dsa_index_groups_smem_t<H>));
}


int
dsa_index_groups_setup(void)
{
    int  rc;

    rc = dsa_index_groups_permit<8>();
    rc = rc != 0 ? rc : dsa_index_groups_permit<16>();
    rc = rc != 0 ? rc : dsa_index_groups_permit<32>();

    return rc != 0 ? rc : dsa_index_groups_permit<64>();
}


template <int H>
static int
dsa_index_groups(const dsa_cuda_state_t *state, float *score, size_t ld,
    const dsa_e4m3_t *q, const float *w, const dsa_cuda_cache_t *cache,
    const int32_t *pages, size_t ld_pages, const int32_t *keys,
    const int32_t *left, uint32_t n, uint32_t max_keys, uint32_t heads,
    dsa_stream_t stream)
{
    int          rc;
    uint32_t     blocks;
    uint64_t     most;
    CUtensorMap  map_q, map_k;

    rc = dsa_index_maps(state, &map_q, &map_k, q, cache, n, heads, H,
                        DSA_INDEX_N / H);
    if (rc != 0) {
        return rc;
    }

    most = (uint64_t) n * (((uint64_t) max_keys + 63) / 64);
    blocks = state->processors * dsa_index_groups_smem_t<H>::SHARE;
    blocks = most < blocks ? (uint32_t) most : blocks;

    return dsa_launch(dsa_index_groups_kernel<H>, blocks, DSA_INDEX_THREADS,
                      sizeof(dsa_index_groups_smem_t<H>), stream, score, ld, w,
                      cache->base + cache->keys + DSA_INDEX_KEYS, cache->page,
                      pages, ld_pages, keys, left, n, heads, state->counters,
                      map_q, map_k);
}


extern "C" int
dsa_cuda_index_score_groups(const dsa_cuda_state_t *state, float *score,
    size_t ld, const dsa_e4m3_t *q, const float *w,
    const dsa_cuda_cache_t *cache, const int32_t *pages, size_t ld_pages,
    const int32_t *keys, const int32_t *left, uint32_t n, uint32_t max_keys,
    uint32_t heads, dsa_stream_t stream)
{
    if (left == NULL) {
        return dsa_cuda_index_score_decode(state, score, ld, q, w, cache,
                                           pages, ld_pages, keys, n, max_keys,
                                           heads, stream);
    }

    if (heads == 0 || heads > 64 || heads % 8 != 0) {
        return cudaErrorInvalidValue;
    }

    if (n == 0 || max_keys == 0) {
        return cudaSuccess;
    }

    if (heads <= 8) {
        return dsa_index_groups<8>(state, score, ld, q, w, cache, pages,
                                   ld_pages, keys, left, n, max_keys, heads,
                                   stream);
    }

    if (heads <= 16) {
        return dsa_index_groups<16>(state, score, ld, q, w, cache, pages,
                                    ld_pages, keys, left, n, max_keys, heads,
                                    stream);
    }

    if (heads <= 32) {
        return dsa_index_groups<32>(state, score, ld, q, w, cache, pages,
                                    ld_pages, keys, left, n, max_keys, heads,
                                    stream);
    }

    return dsa_index_groups<64>(state, score, ld, q, w, cache, pages, ld_pages,
                                keys, left, n, max_keys, heads, stream);
}
