
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "kernels/core/setup.cuh"
#include "attention_decode_wide.cuh"


/*
 * Dense decode: the kernel of wide sparse decode over all positions of a row.
 * The 64 rows of its products are queries: the heads of as many rows of one
 * sequence as fit, so that the drafts of a sequence read its keys once.  A
 * step of 64 keys is a page.  BF16 latents are copied from it by TMA, because
 * a page has the layout of a key buffer but for the swizzle; FP8 latents are
 * gathered and widened as in sparse decode.
 *
 * The keys of a row are split into parts, and the parts are combined in order.
 * The size of a part depends on the number of the row's keys alone, and the
 * sums of a query depend on no other query of its block.  So the bits of a row
 * do not depend on the rows beside it.
 */

#define DSA_DENSE_QUERIES   64
#define DSA_DENSE_WORK      (256ULL << 20)  /* bytes of parts at a time */
#define DSA_DENSE_CLASSES   4


typedef struct {
    dsa_decode_t     d;                 /* slot: block tables; n_slot: keys */
    const int32_t   *left;              /* NULL: each row is alone, or all are
                                           of one sequence */
    uint32_t         rows;
    uint32_t         fit;               /* rows of a block, at most */
    uint32_t         one;               /* 1: all rows are of one sequence */
    uint32_t         hidden;            /* positions that are not attended */
} dsa_dense_t;


/* The work of a block of threads. */

template <int F16>
struct dsa_dense_job_t {
    static const int f16 = F16;

    uint32_t         row;               /* the first one */
    uint32_t         group;             /* of 64 heads */
    uint32_t         split;
    uint32_t         n;                 /* keys of the last row */
    uint32_t         first;             /* steps */
    uint32_t         count;
    uint32_t         queries;           /* of all groups */
    int32_t          low;               /* a thread's queries attend to keys */
    int32_t          limit[2];          /* low .. limit-1 of the part */
};


/*
 * A part of a row with n keys has so many pages: few for few keys, so that one
 * sequence occupies many multiprocessors, and more for many keys, so that parts
 * are little memory compared with their keys.  Sets above to the number of keys
 * that is too small for this size.
 */

static __host__ __device__ __forceinline__ uint32_t
dsa_dense_pages(uint32_t n, uint32_t *above)
{
    uint32_t  pages;

    pages = 4;
    *above = 0;

    if (n > 4096) {
        pages = 8;
        *above = 4096;
    }

    if (n > 16384) {
        pages = 16;
        *above = 16384;
    }

    if (n > 65536) {
        pages = 32;
        *above = 65536;
    }

    return pages;
}


static __host__ __device__ __forceinline__ uint32_t
dsa_dense_parts(uint32_t n)
{
    uint32_t  above, keys;

    keys = dsa_dense_pages(n, &above) * DSA_DECODE_KEYS;

    return (n + keys - 1) / keys;
}


/* Returns the most parts of a row with up to n keys. */

static uint32_t
dsa_dense_most(uint32_t n)
{
    uint32_t  above, most, parts;

    most = 1;

    while (n != 0) {
        parts = dsa_dense_parts(n);
        most = parts > most ? parts : most;
        (void) dsa_dense_pages(n, &above);
        n = above;
    }

    return most;
}


static __device__ __forceinline__ uint32_t
dsa_dense_keys(const dsa_dense_t &a, uint32_t row)
{
    int32_t  n;

    n = a.d.n_slot[row];

    return n < 0 ? 0 : min((uint32_t) n, a.d.max_slots);
}


/* Returns 1 if a row and the previous one are neighbours in a sequence. */

static __device__ __forceinline__ int
dsa_dense_follows(const dsa_dense_t &a, uint32_t row)
{
    if (a.d.n_slot[row - 1] <= 0 || a.d.n_slot[row] != a.d.n_slot[row - 1] + 1)
    {
        return 0;
    }

    if (a.left != NULL) {
        return a.left[row] > 0 && a.left[row - 1] == a.left[row] + 1;
    }

    return a.one;
}


/*
 * Finds the work of a block.  Rows of a sequence whose parts have the same size
 * are computed a->fit at a time, by the blocks of the first one of these; count
 * is 0 for the others.
 */

template <int F16>
static __device__ __forceinline__ dsa_dense_job_t<F16>
dsa_dense_job(const dsa_dense_t &a)
{
    uint32_t              b, n, pages, above, before, last;
    dsa_dense_job_t<F16>  job;

    b = blockIdx.x;
    job.group = b % a.d.groups;
    b /= a.d.groups;
    job.split = b % a.d.splits;
    job.row = b / a.d.splits;

    n = dsa_dense_keys(a, job.row);
    pages = dsa_dense_pages(n, &above);

    before = 0;
    last = job.row;

    if (a.fit > 1 && n != 0) {

        if (a.one) {
            before = job.row;

        } else {
            while (before < job.row && dsa_dense_follows(a, job.row - before))
            {
                before++;
            }
        }

        before = min(before, n - above - 1) % a.fit;

        while (last + 1 < a.rows && last + 1 - job.row < a.fit
               && dsa_dense_follows(a, last + 1)
               && dsa_dense_keys(a, last + 1) > n)
        {
            (void) dsa_dense_pages(dsa_dense_keys(a, last + 1), &b);

            if (b != above) {
                break;
            }

            last++;
        }
    }

    job.queries = (last + 1 - job.row) * a.d.heads;
    job.n = dsa_dense_keys(a, last);
    job.first = job.split * pages;

    n = (job.n + DSA_DECODE_KEYS - 1) / DSA_DECODE_KEYS;
    job.count = before != 0 || n <= job.first ? 0 : min(pages, n - job.first);
    job.low = (int32_t) a.hidden
              - (int32_t) (job.first * DSA_DECODE_KEYS);

    return job;
}


/* Returns the slot of key i of a step, or -1. */

template <int F16>
static __device__ __forceinline__ int32_t
dsa_decode_slot(const dsa_dense_job_t<F16> &job, const int32_t *pages,
    uint32_t step, uint32_t i)
{
    uint32_t  page;

    page = job.first + step;

    return step < job.count && page * DSA_DECODE_KEYS + i < job.n
           ? pages[page] * DSA_DECODE_KEYS + (int32_t) i : -1;
}


template <int F16>
static __device__ __forceinline__ int32_t
dsa_decode_first_slot(const dsa_decode_t &a, const dsa_dense_job_t<F16> &job,
    const int32_t *pages, uint32_t i)
{
    return dsa_decode_slot(job, pages, 0, i);
}


/* Hides the keys of step i that a thread's queries do not attend to. */

template <int F16>
static __device__ __forceinline__ void
dsa_decode_wide_hide(const dsa_dense_job_t<F16> &job, float *s,
    const dsa_decode_wide_t *share, uint32_t i, uint32_t lane)
{
    int32_t   key, first;
    uint32_t  j;

    first = (int32_t) (i * DSA_DECODE_KEYS);

    if (job.low <= first && job.limit[0] >= first + DSA_DECODE_KEYS
        && job.limit[1] >= first + DSA_DECODE_KEYS)
    {
        return;
    }

#pragma unroll
    for (j = 0; j < 32; j++) {
        key = first + (int32_t) (j / 4 * 8 + lane % 4 * 2 + j % 2);

        if (key < job.low || key >= job.limit[j / 2 % 2]) {
            s[j] = __uint_as_float(0xff800000);
        }
    }
}


/* Returns the place of a query in the parts. */

template <int F16>
static __device__ __forceinline__ uint64_t
dsa_dense_at(const dsa_decode_t &a, const dsa_dense_job_t<F16> &job,
    uint32_t query)
{
    return ((uint64_t) (job.row + query / a.heads) * a.splits + job.split)
           * a.heads + query % a.heads;
}


template <int F16>
static __device__ __forceinline__ void
dsa_decode_wide_sums(const dsa_decode_t &a, const dsa_dense_job_t<F16> &job,
    const float *m, const float *l, dsa_decode_wide_t *share, uint32_t row,
    uint32_t lane)
{
    float     v;
    uint32_t  k, query;

#pragma unroll
    for (k = 0; k < 2; k++) {
        v = l[k];
        v += __shfl_xor_sync(0xffffffff, v, 1);
        v += __shfl_xor_sync(0xffffffff, v, 2);

        if (lane % 4 == 0) {
            share->sum[row + k * 8] = v;
            query = job.group * DSA_DENSE_QUERIES + row + k * 8;

            if (query < job.queries) {
                a.lse[dsa_dense_at(a, job, query)] =
                    v > 0 ? m[k] * a.scale + log2f(v)
                          : __uint_as_float(0xff800000);
            }
        }
    }
}


/* Stores a warp's 16 queries and a warpgroup's 256 columns. */

template <int F16>
static __device__ __forceinline__ void
dsa_dense_store(const dsa_decode_t &a, const dsa_dense_job_t<F16> &job,
    const float *o, const dsa_decode_wide_t *share, uint32_t half,
    uint32_t warp, uint32_t lane)
{
    float     v, inv, *part;
    uint32_t  j, k, row, query;

#pragma unroll
    for (k = 0; k < 2; k++) {
        row = warp * 16 + lane / 4 + k * 8;
        query = job.group * DSA_DENSE_QUERIES + row;

        if (query >= job.queries) {
            continue;
        }

        v = *(volatile float *) &share->sum[row];
        inv = v > 0 ? 1 / v : 0;
        part = a.part + dsa_dense_at(a, job, query) * DSA_CUDA_LATENT
               + half * 256 + lane % 4 * 2;

#pragma unroll
        for (j = 0; j < 32; j++) {
            *(float2 *) (part + j * 8) =
                make_float2(o[j * 4 + k * 2] * inv,
                            o[j * 4 + k * 2 + 1] * inv);
        }
    }
}


/* Copies BF16 latents, in one thread: a page for each step. */

template <int F16>
static __device__ __forceinline__ void
dsa_dense_load(const dsa_decode_t &a, const dsa_dense_job_t<F16> &job,
    const CUtensorMap *map, uint8_t *keys, dsa_decode_sync_t *sync)
{
    int32_t         page;
    uint8_t        *to;
    uint32_t        i, step;
    const int32_t  *pages;

    pages = a.slot + job.row * a.ld_slot + job.first;

    for (step = 0; step < job.count; step++) {
        page = pages[step];
        to = keys + (step & 1) * DSA_DECODE_BUFFER;

        dsa_mbar_wait(&sync->empty[step & 1], (step >> 1 & 1) ^ 1);
        dsa_mbar_arrive_expect(&sync->full[step & 1], DSA_DECODE_BUFFER);

        for (i = 0; i < DSA_DECODE_PANELS; i++) {
            dsa_tma_load_3d(to + i * DSA_DECODE_PANEL, map,
                            &sync->full[step & 1], (int32_t) i * 64, 0, page);
        }
    }
}


template <int F16>
static __global__ void
__launch_bounds__(DSA_DECODE_THREADS, 1)
dsa_dense_decode(const __grid_constant__ CUtensorMap map,
    const __grid_constant__ dsa_dense_t a)
{
    float                            o[128];
    uint32_t                         i, q, row, keys, lane, warp, probs;
    dsa_decode_wide_t               *share;
    dsa_dense_job_t<F16>             job;
    extern __shared__ __align__(1024) uint8_t  dsa_decode_smem[];

    q = dsa_smem(dsa_decode_smem);
    keys = q + DSA_DECODE_BUFFER;
    probs = keys + 2 * DSA_DECODE_BUFFER;
    share = (dsa_decode_wide_t *) (dsa_decode_smem + 3 * DSA_DECODE_BUFFER
                                   + 64 * 128);

    asm volatile ("griddepcontrol.launch_dependents;");

    warp = threadIdx.x / 32;
    lane = threadIdx.x % 32;

    job = dsa_dense_job<F16>(a);

    if (job.count == 0) {
        return;
    }

    dsa_decode_init(&share->sync, F16 ? 8 : 1, 8);

    if (warp >= 8) {
        dsa_regs_less<64>();

        if constexpr (F16) {
            dsa_decode_fill<1>(a.d, job, keys, 0, &share->sync, warp - 8,
                               lane);

        } else if (threadIdx.x == 256) {
            dsa_dense_load(a.d, job, &map,
                           dsa_decode_smem + DSA_DECODE_BUFFER, &share->sync);
        }

    } else {
        dsa_regs_more<192>();
        dsa_decode_query<64, F16>(a.d, job.row, job.group * DSA_DENSE_QUERIES,
                                  job.queries, q, threadIdx.x);

#pragma unroll
        for (i = 0; i < 128; i++) {
            o[i] = 0;
        }

        if (warp < 4) {
#pragma unroll
            for (i = 0; i < 2; i++) {
                row = job.group * DSA_DENSE_QUERIES + warp * 16 + lane / 4
                      + i * 8;
                row = row < job.queries ? job.row + row / a.d.heads : job.row;
                job.limit[i] = (int32_t) dsa_dense_keys(a, row)
                               - (int32_t) (job.first * DSA_DECODE_KEYS);
            }

            dsa_decode_wide_scores(a.d, job, o, q, keys, probs, share, warp,
                                   lane);
        } else {
            dsa_decode_wide_values(job, o, keys, probs, share, warp - 4, lane);
        }

        dsa_bar_sync(DSA_BAR_BOTH, 256);

        dsa_dense_store(a.d, job, o, share, warp / 4, warp % 4, lane);
    }
}


/*
 * Combines the parts of a row, for one head, as dsa_decode_combine().  There
 * may be more parts than lanes.
 */

static __global__ void
__launch_bounds__(128)
dsa_dense_combine(const __grid_constant__ dsa_dense_t a)
{
    float         w, max, sum;
    float4        o, x;
    uint32_t      s, row, head, lane, parts, ld;
    const float  *p, *lse;

    asm volatile ("griddepcontrol.wait;" ::: "memory");

    lane = threadIdx.x % 32;
    row = blockIdx.x / a.d.heads;
    head = blockIdx.x % a.d.heads;
    parts = dsa_dense_parts(dsa_dense_keys(a, row));
    ld = a.d.heads;

    lse = a.d.lse + (uint64_t) row * a.d.splits * ld + head;
    p = a.d.part + ((uint64_t) row * a.d.splits * ld + head)
                   * DSA_CUDA_LATENT + threadIdx.x * 4;

    max = DSA_DECODE_NONE;

    for (s = lane; s < parts; s += 32) {
        max = fmaxf(max, lse[s * ld]);
    }

    max = dsa_warp_max(max);
    sum = 0;

    for (s = lane; s < parts; s += 32) {
        sum += exp2f(lse[s * ld] - max);
    }

    sum = dsa_warp_sum(sum);
    sum = sum > 0 ? 1 / sum : 0;
    o = make_float4(0, 0, 0, 0);

#pragma unroll 8
    for (s = 0; s < parts; s++) {
        x = *(const float4 *) (p + (uint64_t) s * ld * DSA_CUDA_LATENT);
        w = exp2f(lse[s * ld] - max) * sum;

        o.x += w * x.x;
        o.y += w * x.y;
        o.z += w * x.z;
        o.w += w * x.w;
    }

    *(uint2 *) (a.d.out + (uint64_t) blockIdx.x * DSA_CUDA_LATENT * 2
                + threadIdx.x * 8) =
        make_uint2(dsa_decode_pack(o.x, o.y), dsa_decode_pack(o.z, o.w));
}


/* Returns the bytes of the parts of a row, and of their sums. */

static size_t
dsa_dense_row_work(uint32_t heads, uint32_t max_keys)
{
    return (size_t) dsa_dense_most(max_keys) * heads * (DSA_CUDA_LATENT + 1)
           * sizeof(float);
}


extern "C" size_t
dsa_cuda_attention_dense_work(uint32_t rows, uint32_t heads,
    uint32_t max_keys)
{
    size_t  row, bytes;

    row = dsa_dense_row_work(heads, max_keys);
    bytes = row * rows;
    bytes = bytes < DSA_DENSE_WORK ? bytes : DSA_DENSE_WORK;

    return (bytes > row ? bytes : row) + 16;
}


#define DSA_DENSE_SHARED                                                      \
    (3 * DSA_DECODE_BUFFER + 64 * 128 + sizeof(dsa_decode_wide_t))


int
dsa_attention_dense_setup(void)
{
    int  rc;

    rc = dsa_setup_shared(dsa_dense_decode<0>, DSA_DENSE_SHARED);

    return rc != 0 ? rc : dsa_setup_shared(dsa_dense_decode<1>,
                                           DSA_DENSE_SHARED);
}


static int
dsa_dense_launch(const CUtensorMap *map, const dsa_dense_t *a, uint32_t bf16,
    cudaStream_t stream)
{
    int                   rc;
    cudaLaunchConfig_t    config = {};
    cudaLaunchAttribute   attr = {};

    config.gridDim = dim3(a->rows * a->d.groups * a->d.splits, 1, 1);
    config.blockDim = dim3(DSA_DECODE_THREADS, 1, 1);
    config.dynamicSmemBytes = DSA_DENSE_SHARED;
    config.stream = stream;

    rc = cudaLaunchKernelEx(&config, bf16 ? dsa_dense_decode<0>
                                          : dsa_dense_decode<1>, *map, *a);

    if (rc != cudaSuccess) {
        return rc;
    }

    attr.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attr.val.programmaticStreamSerializationAllowed = 1;

    config.gridDim = dim3(a->rows * a->d.heads, 1, 1);
    config.blockDim = dim3(128, 1, 1);
    config.dynamicSmemBytes = 0;
    config.attrs = &attr;
    config.numAttrs = 1;

    return cudaLaunchKernelEx(&config, dsa_dense_combine, *a);
}


/* The map of the pages' latents: columns, tokens, pages. */

static int
dsa_dense_map(const dsa_cuda_state_t *state, CUtensorMap *map,
    const dsa_cuda_cache_t *cache)
{
    uint32_t  box[3];
    uint64_t  dim[3], stride[2];

    dim[0] = DSA_DECODE_WIDTH;
    dim[1] = DSA_DECODE_KEYS;
    dim[2] = cache->pages;
    stride[0] = DSA_DECODE_WIDTH * sizeof(dsa_bf16_t);
    stride[1] = cache->page;
    box[0] = 64;
    box[1] = DSA_DECODE_KEYS;
    box[2] = 1;

    return dsa_cuda_tensor_map(state, map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3,
                               cache->base, dim, stride, box,
                               CU_TENSOR_MAP_SWIZZLE_128B);
}


extern "C" int
dsa_cuda_attention_dense(const dsa_cuda_state_t *state, dsa_bf16_t *out,
    const dsa_bf16_t *q, const dsa_cuda_cache_t *cache, const int32_t *pages,
    size_t ld_pages, const int32_t *keys, const int32_t *left, uint32_t rows,
    uint32_t heads, uint32_t hidden, uint32_t max_keys, float scale,
    void *work, dsa_stream_t stream)
{
    int          rc;
    size_t       row;
    uint32_t     r, n, most;
    dsa_dense_t  a;
    CUtensorMap  map;

    if (heads < 1 || heads > 128 || !(scale > 0) || hidden > 1
        || cache->page > UINT32_MAX || cache->pages > INT32_MAX / 64
        || rows > INT32_MAX / 128 || max_keys > INT32_MAX - 64
        || (uintptr_t) work % 16 != 0)
    {
        return cudaErrorInvalidValue;
    }

    if (rows == 0) {
        return cudaSuccess;
    }

    memset(&map, 0, sizeof(CUtensorMap));
    rc = cache->bf16 ? dsa_dense_map(state, &map, cache) : 0;

    row = dsa_dense_row_work(heads, max_keys);
    most = (uint32_t) (DSA_DENSE_WORK / row);
    most = most > 1 ? most : 1;

    a.d.base = cache->base;
    a.d.ld_slot = ld_pages;
    a.d.page = (uint32_t) cache->page;
    a.d.slots = cache->pages * DSA_DECODE_KEYS;
    a.d.max_slots = max_keys;
    a.d.heads = heads;
    a.d.scale = scale * 1.4426950408889634f / DSA_DECODE_QUERY;
    a.d.groups = heads > DSA_DENSE_QUERIES ? 2 : 1;
    a.d.splits = dsa_dense_most(max_keys);
    a.d.part = (float *) work;
    a.fit = heads > DSA_DENSE_QUERIES ? 1 : DSA_DENSE_QUERIES / heads;
    a.one = ld_pages == 0;
    a.hidden = hidden;

    for (r = 0; r < rows && rc == 0; r += n) {
        n = rows - r < most ? rows - r : most;

        a.d.out = (uint8_t *) (out + (size_t) r * heads * DSA_CUDA_LATENT);
        a.d.q = (const uint8_t *) (q + (size_t) r * heads * DSA_DECODE_WIDTH);
        a.d.slot = pages + r * ld_pages;
        a.d.n_slot = keys + r;
        a.d.lse = a.d.part + (size_t) n * a.d.splits * heads * DSA_CUDA_LATENT;
        a.left = left != NULL ? left + r : NULL;
        a.rows = n;

        rc = dsa_dense_launch(&map, &a, cache->bf16, stream);
    }

    return rc;
}
