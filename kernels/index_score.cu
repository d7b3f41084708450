
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
 * heads of each query: their ReLU and weighted sum stay in its registers, and
 * two shuffles end them.  The other three quarters are in the lanes beside it.
 *
 * Heads are padded to 8, 16, 32 or 64: the copy engine fills with zeros, and
 * the weights of the padding are 0.
 *
 * A score is computed from its own key, query and weights in one fixed order,
 * in both kernels: it has the same bits whatever else is computed along with
 * it, and however the work is dealt out.
 *
 * Work is pages of 64 keys, dealt out to the blocks in equal shares that begin
 * and end anywhere: a share costs the load of a query more, and nothing has to
 * be put together after it.
 */


#define DSA_INDEX_PAGE      64                  /* keys */
#define DSA_INDEX_KEYS      (64 * 128)          /* bytes of a page's keys */
#define DSA_INDEX_STAGE     (DSA_INDEX_KEYS + 64 * 4)

#define DSA_INDEX_N         128                 /* prefill: queries x heads of
                                                   a warpgroup */
#define DSA_INDEX_GROUPS    4                   /* its warpgroups, beside one
                                                   that loads */
#define DSA_INDEX_THREADS   (128 * (DSA_INDEX_GROUPS + 1))
#define DSA_INDEX_COLUMNS   (DSA_INDEX_GROUPS * DSA_INDEX_N)
#define DSA_INDEX_STAGES    10

#ifndef DSA_INDEX_SHARE
#define DSA_INDEX_SHARE     2                   /* decode: blocks of an SM, */
#define DSA_INDEX_DEPTH     11                  /* and the pages in flight of
                                                   each */
#endif


/* Dynamic shared memory.  Tiles of wgmma first: swizzles repeat at 1024. */

typedef struct {
    uint8_t     q[2][DSA_INDEX_COLUMNS * 128];
    uint8_t     k[DSA_INDEX_STAGES][DSA_INDEX_KEYS];
    float       scale[DSA_INDEX_STAGES][DSA_INDEX_PAGE];
    float       w[2][DSA_INDEX_COLUMNS];
    uint64_t    q_full[2];
    uint64_t    q_empty[2];
    uint64_t    k_full[DSA_INDEX_STAGES];
    uint64_t    k_empty[DSA_INDEX_STAGES];
} dsa_index_smem_t;


typedef struct {
    int32_t     row;                            /* -1: the end */
    uint32_t    page;
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


/*
 * d [64, N] = k [64, 128] . q [N, 128]^T, both with rows of 128 swizzled
 * bytes; 32 of them a step.
 */

template <int N>
static __device__ __forceinline__ void
dsa_index_product(float (&d)[N / 2], const uint8_t *k, const uint8_t *q)
{
    int       i;
    uint64_t  a, b;

    a = dsa_wgmma_desc(dsa_smem(k), 1, 16, 1024);
    b = dsa_wgmma_desc(dsa_smem(q), 1, 16, 1024);

    dsa_wgmma_fence();

#pragma unroll
    for (i = 0; i < 4; i++) {
        dsa_index_mma<N>(d, a + 2 * i, b + 2 * i, i > 0);
    }

    dsa_wgmma_commit();
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
 * Half of a thread's sums for half of those of lane ^ mask: x[0 .. n/2-1]
 * become both lanes' sums of the lower half, in lanes without the bit, or of
 * the upper one.  step 1: halves are 0 .. n/2-1 and n/2 .. n-1; 2: even and
 * odd elements.
 */

template <int N, int STEP>
static __device__ __forceinline__ void
dsa_index_exchange(float *x, int mask, int high)
{
    int    i, lo, hi;
    float  give, keep;

#pragma unroll
    for (i = 0; i < N / 2; i++) {
        lo = STEP == 1 ? i : 2 * i;
        hi = STEP == 1 ? i + N / 2 : 2 * i + 1;

        give = high ? x[lo] : x[hi];
        keep = high ? x[hi] : x[lo];
        x[i] = keep + __shfl_xor_sync(0xffffffff, give, mask);
    }
}


/* w of a thread's columns, in the order of dsa_index_sum(). */

template <int N, int H>
static __device__ __forceinline__ void
dsa_index_weights(float (&out)[N / 4], const float *w, uint32_t heads,
    int quad)
{
    int       j;
    uint32_t  h;

#pragma unroll
    for (j = 0; j < N / 8; j++) {
        h = (8 * j) % H + 2 * quad;

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
 * Prefill.  512 / H queries a block, divided among four warpgroups, which all
 * go through the same keys, so that these pass the L2 once for 512 columns.
 * While one warpgroup sums, the tensor cores work for the others.
 *
 * Blocks of queries follow one another with ceil of (their last position + 1)
 * / 64 pages each.  Since a block's queries divide 64, the pages before a
 * block are a sum of floor(j / (64 / Q)), which has a closed form.
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


template <int H>
static __global__ void __launch_bounds__(DSA_INDEX_THREADS, 1)
dsa_index_score_kernel(float *score, size_t ld, const float *w,
    const uint8_t *scales, uint64_t page_size, const int32_t *pages,
    uint32_t start, uint32_t rows, uint32_t heads, uint64_t total,
    const __grid_constant__ CUtensorMap map_q,
    const __grid_constant__ CUtensorMap map_k)
{
    const int          Q = DSA_INDEX_N / H;     /* queries of a warpgroup */
    int                i, group, lane, row;
    float              kscale, d[DSA_INDEX_N / 2], sum[2 * Q];
    float              weight[DSA_INDEX_N / 4], *out;
    int32_t            number;
    uint32_t           block, first, page, last, n, s, turn, lo, hi, query;
    uint64_t           begin, end;
    dsa_index_plan_t<H>  plan;

    extern __shared__ __align__(1024) uint8_t  dsa_index_shared[];

    dsa_index_smem_t  *smem = (dsa_index_smem_t *) dsa_index_shared;

    lane = threadIdx.x % 32;
    group = threadIdx.x / 128;

    if (threadIdx.x == 0) {
        for (i = 0; i < 2; i++) {
            dsa_mbar_init(&smem->q_full[i], 1);
            dsa_mbar_init(&smem->q_empty[i], DSA_INDEX_GROUPS * 4);
        }

        for (i = 0; i < DSA_INDEX_STAGES; i++) {
            dsa_mbar_init(&smem->k_full[i], 1);
            dsa_mbar_init(&smem->k_empty[i], DSA_INDEX_GROUPS * 4);
        }

        dsa_mbar_fence_init();
    }

    plan.start = start;
    plan.rows = rows;

    begin = total * blockIdx.x / gridDim.x;
    end = total * (blockIdx.x + 1) / gridDim.x;

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

    block = lo;
    first = (uint32_t) (begin - plan.before(block));
    n = (uint32_t) (end - begin);
    s = 0;
    turn = 0;

    __syncthreads();

    if (group == DSA_INDEX_GROUPS) {
        dsa_regs_less<32>();

        if (threadIdx.x % 128 >= 32) {
            return;
        }

        number = 0;

        for (i = 0; n > 0; i++, block++) {
            last = plan.pages(block);
            last = last - first < n ? last : first + n;
            n -= last - first;

            dsa_mbar_wait(&smem->q_empty[i % 2], (i / 2 + 1) % 2);

            if (lane == 0) {
                query = block * plan.Q;
                hi = rows - query < plan.Q ? rows - query : plan.Q;
                hi *= heads * sizeof(float);

                dsa_mbar_arrive_expect(&smem->q_full[i % 2],
                                       sizeof(smem->q[0]) + hi);
                dsa_tma_load_3d(smem->q[i % 2], &map_q, &smem->q_full[i % 2],
                                0, 0, query);
                dsa_bulk_load(smem->w[i % 2], w + (size_t) query * heads, hi,
                              &smem->q_full[i % 2]);
            }

            for (page = first; page < last; page++) {
                if ((page - first) % 32 == 0) {
                    number = page + lane < last ? pages[page + lane] : 0;
                }

                hi = __shfl_sync(0xffffffff, number, (page - first) % 32);

                dsa_mbar_wait(&smem->k_empty[s], turn ^ 1);

                if (lane == 0) {
                    dsa_mbar_arrive_expect(&smem->k_full[s],
                                           DSA_INDEX_STAGE);
                    dsa_tma_load_3d(smem->k[s], &map_k, &smem->k_full[s], 0,
                                    0, hi);
                    dsa_bulk_load(smem->scale[s], scales + hi * page_size,
                                  sizeof(smem->scale[0]), &smem->k_full[s]);
                }

                if (++s == DSA_INDEX_STAGES) {
                    s = 0;
                    turn ^= 1;
                }
            }

            first = 0;
        }

    } else {
        dsa_regs_more<112>();

        row = threadIdx.x % 128 / 32 * 16 + lane / 4;
        row += lane % 2 * 8;

        for (i = 0; n > 0; i++, block++) {
            last = plan.pages(block);
            last = last - first < n ? last : first + n;
            n -= last - first;

            dsa_mbar_wait(&smem->q_full[i % 2], i / 2 % 2);

            dsa_index_weights<DSA_INDEX_N, H>(weight,
                                         smem->w[i % 2] + group * Q * heads,
                                         heads, lane % 4);

            query = block * plan.Q + group * Q;

            if (Q > 1) {
                query += (lane & 2) / 2 * (Q / 2);
            }

            out = score + query * ld + row;

            for (page = first; page < last; page++) {
                dsa_mbar_wait(&smem->k_full[s], turn);

                kscale = smem->scale[s][row];

                dsa_index_product<DSA_INDEX_N>(d, smem->k[s],
                                 smem->q[i % 2] + group * DSA_INDEX_N * 128);
                dsa_wgmma_wait<0>();

                if (lane == 0) {
                    dsa_mbar_arrive(&smem->k_empty[s]);
                }

                if (++s == DSA_INDEX_STAGES) {
                    s = 0;
                    turn ^= 1;
                }

                dsa_index_sum<DSA_INDEX_N, H>(sum, d, weight);
                dsa_index_exchange<2 * Q, 1>(sum, 2, lane & 2);
                dsa_index_exchange<Q, 2>(sum, 1, lane & 1);

#pragma unroll
                for (lo = 0; lo < Q / 2; lo++) {
                    if (query + lo < rows) {
                        out[lo * ld + page * DSA_INDEX_PAGE] = sum[lo]
                                                               * kscale;
                    }
                }
            }

            if (lane == 0) {
                dsa_mbar_arrive(&smem->q_empty[i % 2]);
            }

            first = 0;
        }
    }
}


/*
 * Decode.  A block is one warp that loads and one warpgroup that computes; two
 * blocks share an SM.  What limits is the memory: 11 pages of 8.25 KB are
 * under way for each.  The loading warp finds its share of all sequences'
 * pages by a scan over keys.
 */

static __device__ __forceinline__ uint32_t
dsa_index_pages(const int32_t *keys, uint32_t row, uint32_t n)
{
    return row < n && keys[row] > 0 ? (keys[row] + 63) / 64 : 0;
}


template <int H>
static __global__ void __launch_bounds__(160, DSA_INDEX_SHARE)
dsa_index_decode_kernel(float *score, size_t ld, const float *w,
    const uint8_t *scales, uint64_t page_size, const int32_t *pages,
    size_t ld_pages, const int32_t *keys, uint32_t rows, uint32_t heads,
    const __grid_constant__ CUtensorMap map_q,
    const __grid_constant__ CUtensorMap map_k)
{
    int                i, lane, col, row, next;
    float              kscale, d[H / 2], sum[2], weight[H / 4];
    int32_t            number;
    uint32_t           all, begin, n, count, scan, page, last, first, s, turn;
    uint32_t           r, p;
    dsa_index_work_t   work;

    extern __shared__ __align__(1024) uint8_t  dsa_index_shared[];

    dsa_index_decode_smem_t<H>  *smem =
                              (dsa_index_decode_smem_t<H> *) dsa_index_shared;

    lane = threadIdx.x % 32;

    if (threadIdx.x == 0) {
        for (i = 0; i < 2; i++) {
            dsa_mbar_init(&smem->q_full[i], 1);
            dsa_mbar_init(&smem->q_empty[i], 4);
        }

        for (i = 0; i < DSA_INDEX_DEPTH; i++) {
            dsa_mbar_init(&smem->k_full[i], 1);
            dsa_mbar_init(&smem->k_empty[i], 4);
        }

        dsa_mbar_fence_init();
    }

    __syncthreads();

    s = 0;
    turn = 0;

    if (threadIdx.x >= 128) {

        all = 0;

        for (r = lane; r < rows; r += 32) {
            all += dsa_index_pages(keys, r, rows);
        }

        all = __reduce_add_sync(0xffffffff, all);

        begin = (uint32_t) ((uint64_t) all * blockIdx.x / gridDim.x);
        n = (uint32_t) ((uint64_t) all * (blockIdx.x + 1) / gridDim.x)
            - begin;

        /* the row in which the share begins; count: pages of 32 rows */

        count = 0;
        scan = 0;
        r = 0;
        first = 0;

        while (n > 0) {
            count = dsa_index_pages(keys, r + lane, rows);
            scan = count;

#pragma unroll
            for (i = 1; i < 32; i *= 2) {
                p = __shfl_up_sync(0xffffffff, scan, i);
                scan += lane >= i ? p : 0;
            }

            p = __ballot_sync(0xffffffff, scan > begin);

            if (p != 0) {
                i = __ffs(p) - 1;
                first = begin - __shfl_sync(0xffffffff, scan - count, i);
                r += i;
                break;
            }

            begin -= __shfl_sync(0xffffffff, scan, 31);
            r += 32;
        }

        for (i = 0; n > 0; r++) {
            p = __shfl_sync(0xffffffff, count, r % 32);
            last = p - first < n ? p : first + n;

            if (last > first) {
                n -= last - first;

                dsa_mbar_wait(&smem->q_empty[i % 2], (i / 2 + 1) % 2);

                if (lane == 0) {
                    dsa_mbar_arrive_expect(&smem->q_full[i % 2],
                                       sizeof(smem->q[0])
                                       + heads * (uint32_t) sizeof(float));
                    dsa_tma_load_3d(smem->q[i % 2], &map_q,
                                    &smem->q_full[i % 2], 0, 0, r);
                    dsa_bulk_load(smem->w[i % 2], w + (size_t) r * heads,
                                  heads * (uint32_t) sizeof(float),
                                  &smem->q_full[i % 2]);
                }

                i++;
            }

            number = 0;

            for (page = first; page < last; page++) {
                if ((page - first) % 32 == 0 && page + lane < last) {
                    number = pages[r * ld_pages + page + lane];
                }

                p = __shfl_sync(0xffffffff, number, (page - first) % 32);

                dsa_mbar_wait(&smem->k_empty[s], turn ^ 1);

                if (lane == 0) {
                    smem->work[s].row = r;
                    smem->work[s].page = page;

                    dsa_mbar_arrive_expect(&smem->k_full[s],
                                           DSA_INDEX_STAGE);
                    dsa_tma_load_3d(smem->k[s], &map_k, &smem->k_full[s], 0,
                                    0, p);
                    dsa_bulk_load(smem->scale[s], scales + p * page_size,
                                  sizeof(smem->scale[0]), &smem->k_full[s]);
                }

                if (++s == DSA_INDEX_DEPTH) {
                    s = 0;
                    turn ^= 1;
                }
            }

            first = 0;

            if (r % 32 == 31) {
                count = dsa_index_pages(keys, r + 1 + lane, rows);
            }
        }

        dsa_mbar_wait(&smem->k_empty[s], turn ^ 1);

        if (lane == 0) {
            smem->work[s].row = -1;
            dsa_mbar_arrive(&smem->k_full[s]);
        }

    } else {

        col = threadIdx.x / 32 * 16 + lane / 4 + (lane & 2) * 4;
        row = -1;
        next = 0;

        for ( ;; ) {
            dsa_mbar_wait(&smem->k_full[s], turn);

            work = smem->work[s];

            if (work.row < 0) {
                break;
            }

            if (work.row != row) {
                if (row >= 0 && lane == 0) {
                    dsa_mbar_arrive(&smem->q_empty[(next - 1) % 2]);
                }

                row = work.row;
                dsa_mbar_wait(&smem->q_full[next % 2], next / 2 % 2);
                dsa_index_weights<H, H>(weight, smem->w[next % 2], heads,
                                        lane % 4);
                next++;
            }

            kscale = smem->scale[s][col];

            dsa_index_product<H>(d, smem->k[s], smem->q[(next - 1) % 2]);
            dsa_wgmma_wait<0>();

            if (lane == 0) {
                dsa_mbar_arrive(&smem->k_empty[s]);
            }

            if (++s == DSA_INDEX_DEPTH) {
                s = 0;
                turn ^= 1;
            }

            dsa_index_sum<H, H>(sum, d, weight);
            dsa_index_exchange<2, 1>(sum, 2, lane & 2);
            sum[0] += __shfl_xor_sync(0xffffffff, sum[0], 1);

            if (lane % 2 == 0) {
                score[row * ld + work.page * DSA_INDEX_PAGE + col] = sum[0]
                                                                     * kscale;
            }
        }
    }
}


/* What both ask of their arguments, and the maps of the queries and keys. */

static int
dsa_index_maps(CUtensorMap *map_q, CUtensorMap *map_k, const dsa_e4m3_t *q,
    const dsa_cuda_cache_t *cache, uint32_t rows, uint32_t heads,
    uint32_t padded, uint32_t queries, int *sm)
{
    int       rc, device;
    uint32_t  box[3];
    uint64_t  dim[3], stride[2];

    if (heads == 0 || heads > 64 || heads % 8 != 0) {
        return cudaErrorInvalidValue;
    }

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

    dsa_index_score_kernel<H>
        <<<total < (uint64_t) sm ? (int) total : sm,
           DSA_INDEX_THREADS, sizeof(dsa_index_smem_t), stream>>>
        (score, ld, w, cache->base + cache->keys + DSA_INDEX_KEYS,
         cache->page, pages, start, rows, heads, total, map_q, map_k);

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

    most = (uint64_t) n * ((max_keys + 63) / 64);
    sm *= DSA_INDEX_SHARE;

    dsa_index_decode_kernel<H>
        <<<most < (uint64_t) sm ? (int) most : sm, 160,
           sizeof(dsa_index_decode_smem_t<H>), stream>>>
        (score, ld, w, cache->base + cache->keys + DSA_INDEX_KEYS,
         cache->page, pages, ld_pages, keys, n, heads, map_q, map_k);

    return cudaGetLastError();
}


extern "C" int
dsa_cuda_index_score(float *score, size_t ld, const dsa_e4m3_t *q,
    const float *w, const dsa_cuda_cache_t *cache, const int32_t *pages,
    uint32_t start, uint32_t rows, uint32_t heads, dsa_stream_t stream)
{
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
