
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "kernels/core/setup.cuh"
#include "index_score.cuh"


/*
 * Prefill.  A block has 512 columns, or Q = 512 / H queries.  Its two
 * warpgroups share the columns and use the same keys, so that a key passes the
 * L2 once for 512 columns.  A warpgroup sums one half of its columns while the
 * tensor cores compute its other half, or work for the other warpgroup.
 *
 * The limit is the register file: the maximum and the multiply-add for each
 * element of a product would take only half of the available time, but they
 * compete with the accumulators of the tensor cores for its ports.  The next
 * limit is power: at this rate the clock is lowered.
 *
 * The blocks of queries follow one another; each needs ceil((its last position
 * + 1) / 64) pages.  Q divides 64, so the pages before a block are a sum of
 * floor(j / (64 / Q)), which has a closed form.
 */

#define DSA_INDEX_GROUPS    2                   /* warpgroups, of two products
                                                   each */
#define DSA_INDEX_COLUMNS   (DSA_INDEX_GROUPS * 2 * DSA_INDEX_N)
#define DSA_INDEX_THREADS   (128 * (DSA_INDEX_GROUPS + 1))
#define DSA_INDEX_STAGES    10


/* Dynamic shared memory.  Tiles of wgmma first: swizzles repeat at 1024. */

typedef struct {
    uint8_t             q[2][DSA_INDEX_COLUMNS * 128];
    uint8_t             k[DSA_INDEX_STAGES][DSA_INDEX_KEYS];
    float               scale[DSA_INDEX_STAGES][DSA_INDEX_PAGE];
    float               w[2][DSA_INDEX_COLUMNS];
    uint64_t            q_full[2];
    uint64_t            q_empty[2];
    uint64_t            k_full[DSA_INDEX_STAGES];
    uint64_t            k_empty[DSA_INDEX_STAGES];
} dsa_index_smem_t;


template <int H>
struct dsa_index_plan_t {
    static const uint32_t  Q = DSA_INDEX_COLUMNS / H;

    uint32_t               start;
    uint32_t               rows;

    static __device__ __host__ __forceinline__ uint64_t
    sum(uint64_t n)                     /* of floor(j / (64 / Q)), j < n */
    {
        uint64_t  d, r;

        d = n / (64 / Q);
        r = n % (64 / Q);

        return d * (d - (d > 0)) / 2 * (64 / Q) + d * r;
    }

    __device__ __host__ __forceinline__ uint32_t
    blocks() const
    {
        return (rows + Q - 1) / Q;
    }

    __device__ __host__ __forceinline__ uint32_t
    pages(uint32_t block) const
    {
        uint32_t  seen;

        seen = (block + 1) * Q < rows ? (block + 1) * Q : rows;

        return (start + seen + 63) / 64;
    }

    __device__ __host__ __forceinline__ uint64_t
    before(uint32_t block) const        /* block < blocks() */
    {
        uint64_t  c;

        c = (start + 63) / Q + 1;

        return sum(c + block) - sum(c);
    }
};


/*
 * Computes a warpgroup's part of a block's work: n pages, from page of block
 * on.  There is one page at a time, and one copy of the loop for both
 * warpgroups, because the loop has to fit the instruction cache.
 */

template <int H>
static __device__ __forceinline__ void
dsa_index_consume(dsa_index_smem_t *smem, float *score, size_t ld,
    uint32_t heads, const dsa_index_plan_t<H> &plan, uint32_t block,
    uint32_t page, uint32_t n)
{
    const int  N = DSA_INDEX_N;
    const int  Q = N / H;                       /* queries of a half */
    int        i, lane, row, group;
    float      kscale, d0[N / 2], d1[N / 2], w0[N / 4], w1[N / 4], *out;
    uint32_t   s, phase, left, query, n0, n1;
    uint64_t   k, q;

    lane = threadIdx.x % 32;
    group = __shfl_sync(0xffffffff, (int) threadIdx.x / 128, 0);
    row = threadIdx.x % 128 / 32 * 16 + lane / 4 + lane % 2 * 8;

    s = 0;
    phase = 0;

    for (i = 0; n > 0; i++, block++, page = 0) {
        left = plan.pages(block) - page;
        left = left < n ? left : n;
        n -= left;

        dsa_mbar_wait(&smem->q_full[i % 2], i / 2 % 2);

        dsa_index_weights<N, H>(w0, smem->w[i % 2] + group * 2 * Q * heads,
                                heads, lane % 4);
        dsa_index_weights<N, H>(w1,
                                smem->w[i % 2] + (group * 2 + 1) * Q * heads,
                                heads, lane % 4);

        query = block * plan.Q + group * 2 * Q + (lane & 2) / 2 * (Q / 2);
        n0 = query < plan.rows ? plan.rows - query : 0;
        n1 = query + Q < plan.rows ? plan.rows - query - Q : 0;
        out = score + query * ld + page * DSA_INDEX_PAGE + row;

        for ( ; left > 0; left--) {
            dsa_mbar_wait(&smem->k_full[s], phase);

            k = dsa_index_tile(smem->k[s]);
            q = dsa_index_tile(smem->q[i % 2] + group * 2 * N * 128);
            dsa_index_product<N>(d0, k, q);
            dsa_index_product<N>(d1, k, q + N * 128 / 16);

            kscale = smem->scale[s][row];

            dsa_index_wait<1>(d0);
            dsa_index_finish<H>(out, ld, d0, w0, kscale, lane, n0);

            dsa_index_wait<0>(d1);

            dsa_mbar_arrive(&smem->k_empty[s]);

            if (++s == DSA_INDEX_STAGES) {
                s = 0;
                phase ^= 1;
            }

            dsa_index_finish<H>(out + Q * ld, ld, d1, w1, kscale, lane, n1);

            out += DSA_INDEX_PAGE;
        }

        dsa_mbar_arrive(&smem->q_empty[i % 2]);
    }
}


/* The warp that loads queries and keys. */

template <int H>
static __device__ __forceinline__ void
dsa_index_produce(dsa_index_smem_t *smem, const CUtensorMap *map_q,
    const CUtensorMap *map_k, const float *w, const uint8_t *scales,
    uint64_t page_size, const int32_t *pages, uint32_t heads,
    const dsa_index_plan_t<H> &plan, uint32_t block, uint32_t page, uint32_t n)
{
    int       i, lane;
    int32_t   number, one;
    uint32_t  j, s, phase, left, query, size;

    lane = threadIdx.x % 32;
    number = 0;
    s = 0;
    phase = 0;

    for (i = 0; n > 0; i++, block++, page = 0) {
        left = plan.pages(block) - page;
        left = left < n ? left : n;
        n -= left;

        dsa_mbar_wait(&smem->q_empty[i % 2], (i / 2 + 1) % 2);

        if (lane == 0) {
            query = block * plan.Q;
            size = plan.rows - query < plan.Q ? plan.rows - query : plan.Q;
            size *= heads * (uint32_t) sizeof(float);

            dsa_mbar_arrive_expect(&smem->q_full[i % 2],
                                   sizeof(smem->q[0]) + size);
            dsa_tma_load_3d(smem->q[i % 2], map_q, &smem->q_full[i % 2], 0,
                            0, query);
            dsa_bulk_load(smem->w[i % 2], w + (size_t) query * heads, size,
                          &smem->q_full[i % 2]);
        }

        for (j = 0; j < left; j++) {
            if (j % 32 == 0 && j + lane < left) {
                number = pages[page + j + lane];
            }

            one = __shfl_sync(0xffffffff, number, j % 32);

            dsa_mbar_wait(&smem->k_empty[s], phase ^ 1);

            if (lane == 0) {
                dsa_mbar_arrive_expect(&smem->k_full[s], DSA_INDEX_STAGE);
                dsa_tma_load_3d(smem->k[s], map_k, &smem->k_full[s], 0, 0,
                                one);
                dsa_bulk_load(smem->scale[s], scales + one * page_size,
                              sizeof(smem->scale[0]), &smem->k_full[s]);
            }

            if (++s == DSA_INDEX_STAGES) {
                s = 0;
                phase ^= 1;
            }
        }
    }
}


template <int H>
static __global__ void __launch_bounds__(DSA_INDEX_THREADS, 1)
dsa_index_score_kernel(float *score, size_t ld, const float *w,
    const uint8_t *scales, uint64_t page_size, const int32_t *pages,
    dsa_index_plan_t<H> plan, uint32_t heads, uint64_t total,
    const __grid_constant__ CUtensorMap map_q,
    const __grid_constant__ CUtensorMap map_k)
{
    int       i;
    uint32_t  block, page, n, lo, hi;
    uint64_t  begin;

    extern __shared__ __align__(1024) uint8_t  dsa_index_shared[];

    dsa_index_smem_t  *smem = (dsa_index_smem_t *) dsa_index_shared;

    if (threadIdx.x == 0) {
        dsa_tma_prefetch(&map_q);
        dsa_tma_prefetch(&map_k);

        for (i = 0; i < 2; i++) {
            dsa_mbar_init(&smem->q_full[i], 1);
            dsa_mbar_init(&smem->q_empty[i], DSA_INDEX_GROUPS * 128);
        }

        for (i = 0; i < DSA_INDEX_STAGES; i++) {
            dsa_mbar_init(&smem->k_full[i], 1);
            dsa_mbar_init(&smem->k_empty[i], DSA_INDEX_GROUPS * 128);
        }

        dsa_mbar_fence_init();
    }

    begin = total * blockIdx.x / gridDim.x;
    n = (uint32_t) (total * (blockIdx.x + 1) / gridDim.x - begin);

    /* find the block of queries in which the work begins */

    lo = 0;
    hi = plan.blocks() - 1;

    while (lo < hi) {
        block = (lo + hi + 1) / 2;

        if (plan.before(block) <= begin) {
            lo = block;

        } else {
            hi = block - 1;
        }
    }

    page = (uint32_t) (begin - plan.before(lo));

    __syncthreads();

    if (threadIdx.x < DSA_INDEX_GROUPS * 128) {
        dsa_regs_more<232>();
        dsa_index_consume<H>(smem, score, ld, heads, plan, lo, page, n);

    } else {
        dsa_regs_less<40>();

        if (threadIdx.x % 128 < 32) {
            dsa_index_produce<H>(smem, &map_q, &map_k, w, scales, page_size,
                                 pages, heads, plan, lo, page, n);
        }
    }
}


int
dsa_index_prefill_setup(void)
{
    int  rc;

    rc = dsa_setup_shared(dsa_index_score_kernel<8>, sizeof(dsa_index_smem_t));
    rc = rc != 0 ? rc : dsa_setup_shared(dsa_index_score_kernel<16>,
                                         sizeof(dsa_index_smem_t));
    rc = rc != 0 ? rc : dsa_setup_shared(dsa_index_score_kernel<32>,
                                         sizeof(dsa_index_smem_t));

    return rc != 0 ? rc : dsa_setup_shared(dsa_index_score_kernel<64>,
                                           sizeof(dsa_index_smem_t));
}


template <int H>
static int
dsa_index_prefill(const dsa_cuda_state_t *state, float *score, size_t ld,
    const dsa_e4m3_t *q, const float *w, const dsa_cuda_cache_t *cache,
    const int32_t *pages, uint32_t start, uint32_t rows, uint32_t heads,
    dsa_stream_t stream)
{
    int                  rc;
    uint32_t             blocks;
    uint64_t             total;
    CUtensorMap          map_q, map_k;
    dsa_index_plan_t<H>  plan;

    rc = dsa_index_maps(state, &map_q, &map_k, q, cache, rows, heads, H,
                        plan.Q);
    if (rc != 0) {
        return rc;
    }

    plan.start = start;
    plan.rows = rows;

    total = plan.before(plan.blocks() - 1) + plan.pages(plan.blocks() - 1);
    blocks = total < state->processors ? (uint32_t) total : state->processors;

    dsa_index_score_kernel<H>
        <<<blocks, DSA_INDEX_THREADS, sizeof(dsa_index_smem_t), stream>>>
        (score, ld, w, cache->base + cache->keys + DSA_INDEX_KEYS,
         cache->page, pages, plan, heads, total, map_q, map_k);

    return cudaGetLastError();
}


extern "C" int
dsa_cuda_index_score(const dsa_cuda_state_t *state, float *score, size_t ld,
    const dsa_e4m3_t *q, const float *w, const dsa_cuda_cache_t *cache,
    const int32_t *pages, uint32_t start, uint32_t rows, uint32_t heads,
    dsa_stream_t stream)
{
    if (heads == 0 || heads > 64 || heads % 8 != 0
        || ld < ((size_t) start + rows + 63) / 64 * 64)
    {
        return cudaErrorInvalidValue;
    }

    if (rows == 0) {
        return cudaSuccess;
    }

    if (heads <= 8) {
        return dsa_index_prefill<8>(state, score, ld, q, w, cache, pages,
                                    start, rows, heads, stream);
    }

    if (heads <= 16) {
        return dsa_index_prefill<16>(state, score, ld, q, w, cache, pages,
                                     start, rows, heads, stream);
    }

    if (heads <= 32) {
        return dsa_index_prefill<32>(state, score, ld, q, w, cache, pages,
                                     start, rows, heads, stream);
    }

    return dsa_index_prefill<64>(state, score, ld, q, w, cache, pages, start,
                                 rows, heads, stream);
}
