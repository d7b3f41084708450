
/*
 * Copyright (C) The nginx-dsa authors
 */


extern "C" {
#include "kernels/indexer.h"
}

#include "kernels/hopper.cuh"


/*
 * Index scores.  A page's 64 keys are the M operand of wgmma, queries times
 * heads the N operand, so that a thread holds, for two keys, a quarter of the
 * heads of each query: ReLU and weighted sum stay in its registers, and two
 * shuffles end them.  The other three quarters are in the lanes beside it.
 *
 * Heads are padded to 8, 16, 32 or 64: the copy engine fills with zeros, and
 * the weights of the padding are 0.
 *
 * A score is computed from its own key, query and weights in one fixed order,
 * the same in both kernels: it has the same bits whatever else is computed
 * along with it, and whichever block does it.  So work may be dealt out in any
 * way, and is, page by page: nothing has to be put together afterwards.
 */


#define DSA_INDEX_PAGE      64                  /* keys */
#define DSA_INDEX_KEYS      (64 * 128)          /* bytes of a page's keys */
#define DSA_INDEX_STAGE     (DSA_INDEX_KEYS + 64 * 4)

#define DSA_INDEX_N         128                 /* prefill: columns of a
                                                   product, queries x heads */
#define DSA_INDEX_GROUPS    2                   /* warpgroups, of two products
                                                   each */
#define DSA_INDEX_COLUMNS   (DSA_INDEX_GROUPS * 2 * DSA_INDEX_N)
#define DSA_INDEX_THREADS   (128 * (DSA_INDEX_GROUPS + 1))
#define DSA_INDEX_STAGES    10

#define DSA_INDEX_SHARE     4                   /* decode: blocks of an SM, */
#define DSA_INDEX_DEPTH     4                   /* pages in flight of each, */
#define DSA_INDEX_TICKET    2                   /* pages drawn at a time, */
#define DSA_INDEX_FREE      4                   /* 16ths that are drawn */
#define DSA_INDEX_LEAST     8                   /* pages of a block, for it to
                                                   be worth drawing */
#define DSA_INDEX_STATES    4096


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


/*
 * What the blocks of a decode launch draw from: the tickets drawn, and the
 * blocks that are done; the last of these puts both back to 0.  A launch takes
 * the next state: those of a graph keep theirs, and none is shared by what
 * can run at the same time, unless thousands of calls lie between.
 */

typedef struct {
    uint32_t            drawn;
    uint32_t            done;
} dsa_index_state_t;


static uint32_t                      dsa_index_launches;

static __device__ dsa_index_state_t  dsa_index_states[DSA_INDEX_STATES];


#define DSA_INDEX_D4(d, i)                                                    \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define DSA_INDEX_D16(d, i)                                                   \
    DSA_INDEX_D4(d, i), DSA_INDEX_D4(d, i + 4), DSA_INDEX_D4(d, i + 8),       \
    DSA_INDEX_D4(d, i + 12)


/* d [64, N] = a [64, 32] . b [N, 32]^T, added to d with add = 1. */

template <int N>
static __device__ void
dsa_index_mma(float (&d)[N / 2], uint64_t a, uint64_t b, int add);


template <>
__device__ __forceinline__ void
dsa_index_mma<8>(float (&d)[4], uint64_t a, uint64_t b, int add)
{
    asm volatile ("{\n"
                  ".reg .pred  p;\n"
                  "setp.ne.b32 p, %6, 0;\n"
                  "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 "
                  "{%0, %1, %2, %3}, "
                  "%4, %5, p, 1, 1;\n"
                  "}"
                  : DSA_INDEX_D4(d, 0)
                  : "l"(a), "l"(b), "r"(add));
}


template <>
__device__ __forceinline__ void
dsa_index_mma<16>(float (&d)[8], uint64_t a, uint64_t b, int add)
{
    asm volatile ("{\n"
                  ".reg .pred  p;\n"
                  "setp.ne.b32 p, %10, 0;\n"
                  "wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e4m3 "
                  "{%0, %1, %2, %3, %4, %5, %6, %7}, "
                  "%8, %9, p, 1, 1;\n"
                  "}"
                  : DSA_INDEX_D4(d, 0),
                    DSA_INDEX_D4(d, 4)
                  : "l"(a), "l"(b), "r"(add));
}


template <>
__device__ __forceinline__ void
dsa_index_mma<32>(float (&d)[16], uint64_t a, uint64_t b, int add)
{
    asm volatile ("{\n"
                  ".reg .pred  p;\n"
                  "setp.ne.b32 p, %18, 0;\n"
                  "wgmma.mma_async.sync.aligned.m64n32k32.f32.e4m3.e4m3 "
                  "{%0, %1, %2, %3, %4, %5, %6, %7, "
                  " %8, %9, %10, %11, %12, %13, %14, %15}, "
                  "%16, %17, p, 1, 1;\n"
                  "}"
                  : DSA_INDEX_D16(d, 0)
                  : "l"(a), "l"(b), "r"(add));
}


template <>
__device__ __forceinline__ void
dsa_index_mma<64>(float (&d)[32], uint64_t a, uint64_t b, int add)
{
    asm volatile ("{\n"
                  ".reg .pred  p;\n"
                  "setp.ne.b32 p, %34, 0;\n"
                  "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 "
                  "{%0, %1, %2, %3, %4, %5, %6, %7, "
                  " %8, %9, %10, %11, %12, %13, %14, %15, "
                  " %16, %17, %18, %19, %20, %21, %22, %23, "
                  " %24, %25, %26, %27, %28, %29, %30, %31}, "
                  "%32, %33, p, 1, 1;\n"
                  "}"
                  : DSA_INDEX_D16(d, 0),
                    DSA_INDEX_D16(d, 16)
                  : "l"(a), "l"(b), "r"(add));
}


template <>
__device__ __forceinline__ void
dsa_index_mma<128>(float (&d)[64], uint64_t a, uint64_t b, int add)
{
    asm volatile ("{\n"
                  ".reg .pred  p;\n"
                  "setp.ne.b32 p, %66, 0;\n"
                  "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 "
                  "{%0, %1, %2, %3, %4, %5, %6, %7, "
                  " %8, %9, %10, %11, %12, %13, %14, %15, "
                  " %16, %17, %18, %19, %20, %21, %22, %23, "
                  " %24, %25, %26, %27, %28, %29, %30, %31, "
                  " %32, %33, %34, %35, %36, %37, %38, %39, "
                  " %40, %41, %42, %43, %44, %45, %46, %47, "
                  " %48, %49, %50, %51, %52, %53, %54, %55, "
                  " %56, %57, %58, %59, %60, %61, %62, %63}, "
                  "%64, %65, p, 1, 1;\n"
                  "}"
                  : DSA_INDEX_D16(d, 0),
                    DSA_INDEX_D16(d, 16),
                    DSA_INDEX_D16(d, 32),
                    DSA_INDEX_D16(d, 48)
                  : "l"(a), "l"(b), "r"(add));
}


/* A tile of rows of 128 swizzled bytes. */

static __device__ __forceinline__ uint64_t
dsa_index_tile(const uint8_t *p)
{
    return dsa_wgmma_desc(dsa_smem(p), 1, 16, 1024);
}


/* d [64, N] = k [64, 128] . q [N, 128]^T, tiles; 32 bytes of a row a step. */

template <int N>
static __device__ __forceinline__ void
dsa_index_product(float (&d)[N / 2], uint64_t k, uint64_t q)
{
    int  i;

    dsa_wgmma_fence();

#pragma unroll
    for (i = 0; i < 4; i++) {
        dsa_index_mma<N>(d, k + 2 * i, q + 2 * i, i > 0);
    }

    dsa_wgmma_commit();
}


/*
 * Waits until at most LEFT products are under way.  The compiler does not see
 * that this writes d, the result of an earlier one: it is told.
 */

template <int LEFT, int N>
static __device__ __forceinline__ void
dsa_index_wait(float (&d)[N])
{
    int  i;

    dsa_wgmma_wait<LEFT>();

#pragma unroll
    for (i = 0; i < N; i++) {
        asm volatile ("" : "+f"(d[i]) :: "memory");
    }
}


/*
 * Thread t of a quad holds of each 8 columns 2t and 2t + 1, of keys i and
 * i + 8: d[4j .. 4j+1] and d[4j+2 .. 4j+3].  sum[2 * query + (0 or 1)] of its
 * part of the heads, with w in the order of its columns.
 */

template <int N, int H>
static __device__ __forceinline__ void
dsa_index_sum(float (&sum)[2 * (N / H)], const float (&d)[N / 2],
    const float (&w)[N / 4])
{
    int  j, s;

#pragma unroll
    for (j = 0; j < 2 * (N / H); j++) {
        sum[j] = 0;
    }

#pragma unroll
    for (j = 0; j < N / 8; j++) {
        s = 2 * (j / (H / 8));

        sum[s] = fmaf(fmaxf(d[4 * j], 0), w[2 * j], sum[s]);
        sum[s + 1] = fmaf(fmaxf(d[4 * j + 2], 0), w[2 * j], sum[s + 1]);
        sum[s] = fmaf(fmaxf(d[4 * j + 1], 0), w[2 * j + 1], sum[s]);
        sum[s + 1] = fmaf(fmaxf(d[4 * j + 3], 0), w[2 * j + 1], sum[s + 1]);
    }
}


/*
 * Of x [N], half is added to the same half of lane ^ mask and kept, the other
 * half given away: x[0 .. N/2-1] are the sums.  STEP 1: lanes with the bit of
 * mask keep the upper half, those without it the lower one; STEP 2: the odd
 * elements, and the even ones.
 */

template <int N, int STEP>
static __device__ __forceinline__ void
dsa_index_exchange(float *x, int lane, int mask)
{
    int    i, lo, hi;
    float  give, keep;

#pragma unroll
    for (i = 0; i < N / 2; i++) {
        lo = STEP == 1 ? i : 2 * i;
        hi = STEP == 1 ? i + N / 2 : 2 * i + 1;

        give = (lane & mask) != 0 ? x[lo] : x[hi];
        keep = (lane & mask) != 0 ? x[hi] : x[lo];
        x[i] = keep + __shfl_xor_sync(0xffffffff, give, mask);
    }
}


/*
 * The weights of a thread's columns, in the order of dsa_index_sum(); w
 * [N / H, heads].
 */

template <int N, int H>
static __device__ __forceinline__ void
dsa_index_weights(float (&out)[N / 4], const float *w, uint32_t heads,
    int quad)
{
    int       j;
    uint32_t  h;

#pragma unroll
    for (j = 0; j < N / 8; j++) {
        h = 8 * j % H + 2 * quad;

        if (h < heads) {
            out[2 * j] = w[8 * j / H * heads + h];
            out[2 * j + 1] = w[8 * j / H * heads + h + 1];

        } else {
            out[2 * j] = 0;
            out[2 * j + 1] = 0;
        }
    }
}


/*
 * Prefill.  A block takes 512 columns, or Q = 512 / H queries; its two
 * warpgroups share them and both go through the same keys, which so pass the
 * L2 once for 512 columns.  A warpgroup sums one half of its columns while
 * the tensor cores work on its other half, or for the other warpgroup.
 *
 * What limits: a maximum and a multiply-add for each element of a product
 * would have half the time that they have, but they and the tensor cores'
 * accumulators meet at the ports of the register file.  Then power: at this
 * rate the clock is lowered.
 *
 * The queries' blocks follow one another with ceil((their last position + 1)
 * / 64) pages each.  Q divides 64: the pages before a block are a sum of
 * floor(j / (64 / Q)), which has a closed form.
 */

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
 * A half's scores of a page: a lane has those of keys i or i + 8 of Q / 2
 * queries, of which n exist.
 */

template <int H>
static __device__ __forceinline__ void
dsa_index_finish(float *out, size_t ld, const float (&d)[DSA_INDEX_N / 2],
    const float (&w)[DSA_INDEX_N / 4], float kscale, int lane, uint32_t n)
{
    const int  Q = DSA_INDEX_N / H;
    uint32_t   i;
    float      sum[2 * Q];

    dsa_index_sum<DSA_INDEX_N, H>(sum, d, w);
    dsa_index_exchange<2 * Q, 1>(sum, lane, 2);
    dsa_index_exchange<Q, 2>(sum, lane, 1);

#pragma unroll
    for (i = 0; i < Q / 2; i++) {
        if (i < n) {
            out[i * ld] = sum[i] * kscale;
        }
    }
}


/*
 * A warpgroup's part of a share: n pages from page of block on.  One page a
 * turn, and one copy of the loop for both warpgroups: it has to stay in the
 * instruction cache.
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
    uint32_t   s, turn, left, query, n0, n1;
    uint64_t   k, q;

    lane = threadIdx.x % 32;
    group = __shfl_sync(0xffffffff, (int) threadIdx.x / 128, 0);
    row = threadIdx.x % 128 / 32 * 16 + lane / 4 + lane % 2 * 8;

    s = 0;
    turn = 0;

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
            dsa_mbar_wait(&smem->k_full[s], turn);

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
                turn ^= 1;
            }

            dsa_index_finish<H>(out + Q * ld, ld, d1, w1, kscale, lane, n1);

            out += DSA_INDEX_PAGE;
        }

        dsa_mbar_arrive(&smem->q_empty[i % 2]);
    }
}


/* The warp that loads for them. */

template <int H>
static __device__ __forceinline__ void
dsa_index_produce(dsa_index_smem_t *smem, const CUtensorMap *map_q,
    const CUtensorMap *map_k, const float *w, const uint8_t *scales,
    uint64_t page_size, const int32_t *pages, uint32_t heads,
    const dsa_index_plan_t<H> &plan, uint32_t block, uint32_t page,
    uint32_t n)
{
    int       i, lane;
    int32_t   number, one;
    uint32_t  j, s, turn, left, query, size;

    lane = threadIdx.x % 32;
    number = 0;
    s = 0;
    turn = 0;

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

            dsa_mbar_wait(&smem->k_empty[s], turn ^ 1);

            if (lane == 0) {
                dsa_mbar_arrive_expect(&smem->k_full[s], DSA_INDEX_STAGE);
                dsa_tma_load_3d(smem->k[s], map_k, &smem->k_full[s], 0, 0,
                                one);
                dsa_bulk_load(smem->scale[s], scales + one * page_size,
                              sizeof(smem->scale[0]), &smem->k_full[s]);
            }

            if (++s == DSA_INDEX_STAGES) {
                s = 0;
                turn ^= 1;
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

    /* the block of queries in which the share begins */

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


/*
 * Decode.  A block is one warp that loads and one warpgroup that computes;
 * four share an SM.  What limits is the memory: 16 pages of 8.25 KB are under
 * way to an SM.
 *
 * The pages of all sequences, one after another, are what there is to do.
 * SMs get unequal parts of the bandwidth, 25 % apart, so only three quarters
 * are dealt out beforehand, and the rest by tickets: whoever is done draws.
 */

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


template <int H>
static __device__ __forceinline__ void
dsa_index_decode_produce(dsa_index_decode_smem_t<H> *smem,
    const CUtensorMap *map_q, const CUtensorMap *map_k, const float *w,
    const uint8_t *scales, uint64_t page_size, const int32_t *pages,
    size_t ld_pages, const int32_t *keys, uint32_t rows, uint32_t heads,
    dsa_index_state_t *state)
{
    int       i, lane, draws;
    int32_t   number, one, row;
    uint32_t  all, dealt, begin, n, base, count, scan, found, page, last, j;
    uint32_t  s, turn, ticket;

    lane = threadIdx.x % 32;

    all = 0;

    for (j = lane; j < rows; j += 32) {
        all += dsa_index_pages(keys, j, rows);
    }

    all = __reduce_add_sync(0xffffffff, all);

    dealt = all / gridDim.x < DSA_INDEX_LEAST
            ? all
            : all - all / 16 * DSA_INDEX_FREE;

    begin = (uint32_t) ((uint64_t) dealt * blockIdx.x / gridDim.x);
    n = (uint32_t) ((uint64_t) dealt * (blockIdx.x + 1) / gridDim.x) - begin;

    i = 0;
    s = 0;
    turn = 0;
    row = -1;
    draws = 0;
    number = 0;
    ticket = 0;

    /* 32 rows from base on, one a lane; scan: all pages to a row's end */

    base = 0;
    count = dsa_index_pages(keys, lane, rows);
    scan = dsa_index_scan(count, lane);

    for ( ;; ) {

        if (n == 0) {
            if (dealt == all) {
                break;
            }

            /* beyond the first, a ticket is drawn one ahead of its turn */

            if (draws == 0) {
                draws = 1;
                ticket = lane == 0 ? atomicAdd(&state->drawn, 1) : 0;
            }

            begin = dealt
                    + DSA_INDEX_TICKET * __shfl_sync(0xffffffff, ticket, 0);

            if (begin >= all) {
                break;
            }

            n = all - begin < DSA_INDEX_TICKET ? all - begin
                                               : DSA_INDEX_TICKET;
            ticket = lane == 0 ? atomicAdd(&state->drawn, 1) : 0;
        }

        /* begin only grows: rows are passed in one direction */

        for ( ;; ) {
            found = __ballot_sync(0xffffffff, scan > begin);

            if (found != 0) {
                break;
            }

            found = __shfl_sync(0xffffffff, scan, 31);
            base += 32;
            count = dsa_index_pages(keys, base + lane, rows);
            scan = found + dsa_index_scan(count, lane);
        }

        found = __ffs(found) - 1;
        last = __shfl_sync(0xffffffff, count, found);
        page = begin + last - __shfl_sync(0xffffffff, scan, found);
        last = last - page < n ? last : page + n;
        begin += last - page;
        n -= last - page;

        if ((int32_t) (base + found) != row) {
            row = base + found;

            dsa_mbar_wait(&smem->q_empty[i % 2], (i / 2 + 1) % 2);

            if (lane == 0) {
                dsa_mbar_arrive_expect(&smem->q_full[i % 2],
                                       sizeof(smem->q[0])
                                       + heads * (uint32_t) sizeof(float));
                dsa_tma_load_3d(smem->q[i % 2], map_q, &smem->q_full[i % 2],
                                0, 0, row);
                dsa_bulk_load(smem->w[i % 2], w + (size_t) row * heads,
                              heads * (uint32_t) sizeof(float),
                              &smem->q_full[i % 2]);
            }

            i++;
        }

        for (j = 0; page < last; j++, page++) {
            if (j % 32 == 0 && page + lane < last) {
                number = pages[row * ld_pages + page + lane];
            }

            one = __shfl_sync(0xffffffff, number, j % 32);

            dsa_mbar_wait(&smem->k_empty[s], turn ^ 1);

            if (lane == 0) {
                smem->work[s].row = row;
                smem->work[s].page = page;

                dsa_mbar_arrive_expect(&smem->k_full[s], DSA_INDEX_STAGE);
                dsa_tma_load_3d(smem->k[s], map_k, &smem->k_full[s], 0, 0,
                                one);
                dsa_bulk_load(smem->scale[s], scales + one * page_size,
                              sizeof(smem->scale[0]), &smem->k_full[s]);
            }

            if (++s == DSA_INDEX_DEPTH) {
                s = 0;
                turn ^= 1;
            }
        }
    }

    dsa_mbar_wait(&smem->k_empty[s], turn ^ 1);

    if (lane == 0) {
        smem->work[s].row = -1;
        dsa_mbar_arrive(&smem->k_full[s]);

        if (dealt < all
            && atomicAdd(&state->done, 1) == gridDim.x - 1)
        {
            state->drawn = 0;
            state->done = 0;
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
    uint32_t           s, turn;
    uint64_t           q;
    dsa_index_work_t   work;

    lane = threadIdx.x % 32;
    col = threadIdx.x / 32 * 16 + lane / 4 + (lane & 2) * 4;

    i = 0;
    q = 0;
    s = 0;
    turn = 0;
    row = -1;

    for ( ;; ) {
        dsa_mbar_wait(&smem->k_full[s], turn);

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
            turn ^= 1;
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
    uint32_t state, const __grid_constant__ CUtensorMap map_q,
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

    __syncthreads();

    if (threadIdx.x >= 128) {
        dsa_index_decode_produce<H>(smem, &map_q, &map_k, w, scales,
                                    page_size, pages, ld_pages, keys, rows,
                                    heads, &dsa_index_states[state]);

    } else {
        dsa_index_decode_consume<H>(smem, score, ld, heads);
    }
}


/*
 * Maps of the queries, loaded in boxes of some with padded heads, and of the
 * keys, in pages; and how many SMs there are.
 */

static int
dsa_index_maps(CUtensorMap *map_q, CUtensorMap *map_k, const dsa_e4m3_t *q,
    const dsa_cuda_cache_t *cache, uint32_t rows, uint32_t heads,
    uint32_t padded, uint32_t queries, int *sm)
{
    int       rc, device;
    uint32_t  box[3];
    uint64_t  dim[3], stride[2];

    dim[0] = DSA_CUDA_INDEX;
    dim[1] = heads;
    dim[2] = rows;
    stride[0] = DSA_CUDA_INDEX;
    stride[1] = (uint64_t) heads * DSA_CUDA_INDEX;
    box[0] = DSA_CUDA_INDEX;
    box[1] = padded;
    box[2] = queries;

    rc = dsa_cuda_tensor_map(map_q, CU_TENSOR_MAP_DATA_TYPE_UINT8, 3, q, dim,
                             stride, box, CU_TENSOR_MAP_SWIZZLE_128B);
    if (rc != 0) {
        return rc;
    }

    dim[1] = DSA_INDEX_PAGE;
    dim[2] = cache->pages;
    stride[1] = cache->page;
    box[1] = DSA_INDEX_PAGE;
    box[2] = 1;

    rc = dsa_cuda_tensor_map(map_k, CU_TENSOR_MAP_DATA_TYPE_UINT8, 3,
                             cache->base + cache->keys, dim, stride, box,
                             CU_TENSOR_MAP_SWIZZLE_128B);
    if (rc != 0) {
        return rc;
    }

    rc = cudaGetDevice(&device);

    return rc != 0 ? rc
                   : (int) cudaDeviceGetAttribute(sm,
                                   cudaDevAttrMultiProcessorCount, device);
}


template <int H>
static int
dsa_index_prefill(float *score, size_t ld, const dsa_e4m3_t *q,
    const float *w, const dsa_cuda_cache_t *cache, const int32_t *pages,
    uint32_t start, uint32_t rows, uint32_t heads, dsa_stream_t stream)
{
    int                  rc, sm;
    uint64_t             total;
    CUtensorMap          map_q, map_k;
    dsa_index_plan_t<H>  plan;

    rc = dsa_index_maps(&map_q, &map_k, q, cache, rows, heads, H, plan.Q,
                        &sm);
    if (rc != 0) {
        return rc;
    }

    rc = cudaFuncSetAttribute(dsa_index_score_kernel<H>,
                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                              sizeof(dsa_index_smem_t));
    if (rc != 0) {
        return rc;
    }

    plan.start = start;
    plan.rows = rows;

    total = plan.before(plan.blocks() - 1) + plan.pages(plan.blocks() - 1);
    sm = total < (uint64_t) sm ? (int) total : sm;

    dsa_index_score_kernel<H>
        <<<sm, DSA_INDEX_THREADS, sizeof(dsa_index_smem_t), stream>>>
        (score, ld, w, cache->base + cache->keys + DSA_INDEX_KEYS,
         cache->page, pages, plan, heads, total, map_q, map_k);

    return cudaGetLastError();
}


template <int H>
static int
dsa_index_decode(float *score, size_t ld, const dsa_e4m3_t *q,
    const float *w, const dsa_cuda_cache_t *cache, const int32_t *pages,
    size_t ld_pages, const int32_t *keys, uint32_t n, uint32_t max_keys,
    uint32_t heads, dsa_stream_t stream)
{
    int          rc, sm;
    uint32_t     state;
    uint64_t     most;
    CUtensorMap  map_q, map_k;

    rc = dsa_index_maps(&map_q, &map_k, q, cache, n, heads, H, 1, &sm);
    if (rc != 0) {
        return rc;
    }

    rc = cudaFuncSetAttribute(dsa_index_decode_kernel<H>,
                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                              sizeof(dsa_index_decode_smem_t<H>));
    if (rc != 0) {
        return rc;
    }

    most = (uint64_t) n * (((uint64_t) max_keys + 63) / 64);
    sm *= DSA_INDEX_SHARE;
    sm = most < (uint64_t) sm ? (int) most : sm;

    state = __atomic_fetch_add(&dsa_index_launches, 1, __ATOMIC_RELAXED);

    dsa_index_decode_kernel<H>
        <<<sm, 160, sizeof(dsa_index_decode_smem_t<H>), stream>>>
        (score, ld, w, cache->base + cache->keys + DSA_INDEX_KEYS,
         cache->page, pages, ld_pages, keys, n, heads,
         state % DSA_INDEX_STATES, map_q, map_k);

    return cudaGetLastError();
}


extern "C" int
dsa_cuda_index_score(float *score, size_t ld, const dsa_e4m3_t *q,
    const float *w, const dsa_cuda_cache_t *cache, const int32_t *pages,
    uint32_t start, uint32_t rows, uint32_t heads, dsa_stream_t stream)
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
        return dsa_index_prefill<8>(score, ld, q, w, cache, pages, start,
                                    rows, heads, stream);
    }

    if (heads <= 16) {
        return dsa_index_prefill<16>(score, ld, q, w, cache, pages, start,
                                     rows, heads, stream);
    }

    if (heads <= 32) {
        return dsa_index_prefill<32>(score, ld, q, w, cache, pages, start,
                                     rows, heads, stream);
    }

    return dsa_index_prefill<64>(score, ld, q, w, cache, pages, start, rows,
                                 heads, stream);
}


extern "C" int
dsa_cuda_index_score_decode(float *score, size_t ld, const dsa_e4m3_t *q,
    const float *w, const dsa_cuda_cache_t *cache, const int32_t *pages,
    size_t ld_pages, const int32_t *keys, uint32_t n, uint32_t max_keys,
    uint32_t heads, dsa_stream_t stream)
{
    if (heads == 0 || heads > 64 || heads % 8 != 0) {
        return cudaErrorInvalidValue;
    }

    if (n == 0 || max_keys == 0) {
        return cudaSuccess;
    }

    if (heads <= 8) {
        return dsa_index_decode<8>(score, ld, q, w, cache, pages, ld_pages,
                                   keys, n, max_keys, heads, stream);
    }

    if (heads <= 16) {
        return dsa_index_decode<16>(score, ld, q, w, cache, pages, ld_pages,
                                    keys, n, max_keys, heads, stream);
    }

    if (heads <= 32) {
        return dsa_index_decode<32>(score, ld, q, w, cache, pages, ld_pages,
                                    keys, n, max_keys, heads, stream);
    }

    return dsa_index_decode<64>(score, ld, q, w, cache, pages, ld_pages,
                                keys, n, max_keys, heads, stream);
}
