
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ATTENTION_HEADS_CUH_INCLUDED_
#define _DSA_ATTENTION_HEADS_CUH_INCLUDED_


extern "C" {
#include "attention.h"
}

#include "kernels/core/rows.cuh"


/*
 * The parts of MHA prefill (attention_heads_kernel.cuh) that do not
 * synchronize warpgroups: products, masks, softmax.
 */

#define DSA_HEADS_ROWS      64          /* of a warpgroup */
#define DSA_HEADS_THREADS   384

#define DSA_HEADS_Q_SEGMENT (DSA_HEADS_ROWS * 128)      /* bytes */


/*
 * A shape: heads with NOPE columns without RoPE and V columns of values, and
 * tiles of KEYS keys.  NOPE is a multiple of 64.  dsa_heads_mma_qk() has the
 * instructions for 64 and 128 KEYS, dsa_heads_mma_pv() those for V of 128 and
 * 256.
 */

template <int NOPE, int V, int KEYS>
struct dsa_heads_shape_t {
    static const int    nope = NOPE;
    static const int    v = V;
    static const int    keys = KEYS;
    static const int    qk = NOPE + DSA_CUDA_ROPE;
    static const int    words = KEYS / 32;          /* of a mask, in a tile */

    /* registers of a thread */

    static const int    scores = KEYS / 2;
    static const int    weights = KEYS / 4;         /* pairs in bf16 */
    static const int    sums = V / 2;

    /* bytes of shared memory */

    static const int    segment = KEYS * 128;
    static const int    q_size = qk / 64 * DSA_HEADS_Q_SEGMENT;
    static const int    k_size = qk / 64 * segment;
    static const int    v_size = V / 64 * segment;
};


/* An item may be computed in two halves, one after the other. */

enum {
    DSA_HEADS_WHOLE,
    DSA_HEADS_EARLY,                        /* the first half */
    DSA_HEADS_LATE
};


/* tiles 0: there are no more items. */

typedef struct {
    uint32_t            head;
    uint32_t            row;                /* the first one, a multiple of
                                               64; DSA_HEADS_PART: plus the
                                               half */
    uint32_t            tiles;              /* the end of the tiles of keys */
} dsa_heads_item_t;


typedef struct {
    uint64_t            q_full[2];          /* of each warpgroup */
    uint64_t            q_empty[2];
    uint64_t            k_full[2];
    uint64_t            k_empty[2];
    uint64_t            v_full[2];
    uint64_t            v_empty[2];
    float               order[32];          /* see dsa_heads_order() */
    dsa_heads_item_t    item[2];            /* belongs to the queries */
} dsa_heads_shared_t;


typedef struct {
    dsa_bf16_t         *out;
    const uint32_t     *mask;
    uint32_t           *drawn;
    size_t              ld_mask;
    uint32_t            start;
    uint32_t            rows;
    uint32_t            heads;
    uint32_t            blocks;             /* of rows */
    uint32_t            mixed;              /* heads whose items are mixed */
    uint32_t            warpgroups;         /* that compute */
    float               scale;              /* times log2(e) */

    /* DSA_HEADS_PART */
    uint32_t            keys;               /* of the part; start is relative
                                               to the first one */
    uint32_t            merge;              /* 1: rows continue from what sum
                                               and norm have */
    uint32_t            whole;              /* items that are not halved */
    uint32_t            halved;             /* items after these */
    float              *sum;                /* [rows, heads, v] */
    float              *norm;               /* [rows, heads, 4, 2] */
    uint32_t           *stored;
    uint32_t           *loaded;
} dsa_heads_args_t;


/* What a kernel computes: the template argument FORM. */

enum {
    DSA_HEADS_CAUSAL,                       /* all keys up to a row's own */
    DSA_HEADS_MASKED,                       /* those in a mask */
    DSA_HEADS_PART,                         /* a part of all keys */
    DSA_HEADS_FORMS
};


typedef void (*dsa_heads_kernel_pt)(const CUtensorMap, const CUtensorMap,
    const CUtensorMap, const dsa_heads_args_t);


/* The instance of a shape. */

struct dsa_heads_kernels_s {
    uint32_t            keys;               /* of a tile */
    size_t              smem;               /* bytes of shared memory */
    dsa_heads_kernel_pt kernel[DSA_HEADS_FORMS][2];     /* for one and for two
                                               warpgroups */
};

extern const dsa_heads_kernels_t  dsa_heads_128_128;
extern const dsa_heads_kernels_t  dsa_heads_192_256;


#define dsa_heads_d8(d, i)                                                    \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]),               \
    "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])

#define dsa_heads_d32(d, i)                                                   \
    dsa_heads_d8(d, i), dsa_heads_d8(d, i + 8), dsa_heads_d8(d, i + 16),      \
    dsa_heads_d8(d, i + 24)

#define dsa_heads_d64(d)                                                      \
    dsa_heads_d32(d, 0), dsa_heads_d32(d, 32)

#define dsa_heads_d128(d)                                                     \
    dsa_heads_d32(d, 0), dsa_heads_d32(d, 32), dsa_heads_d32(d, 64),          \
    dsa_heads_d32(d, 96)

#define DSA_HEADS_R0                                                          \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "  \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, "  \
    "%30, %31"

#define DSA_HEADS_R32                                                         \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, "  \
    "%46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, "  \
    "%60, %61, %62, %63"

#define DSA_HEADS_R64                                                         \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, "  \
    "%78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, "  \
    "%92, %93, %94, %95"

#define DSA_HEADS_R96                                                         \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, "    \
    "%108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, "      \
    "%119, %120, %121, %122, %123, %124, %125, %126, %127"

#define DSA_HEADS_D32       "{" DSA_HEADS_R0 "}"
#define DSA_HEADS_D64       "{" DSA_HEADS_R0 ", " DSA_HEADS_R32 "}"
#define DSA_HEADS_D128      "{" DSA_HEADS_R0 ", " DSA_HEADS_R32 ", "          \
                            DSA_HEADS_R64 ", " DSA_HEADS_R96 "}"


/* d [64, keys] (+)= a b^T, both of shared memory, 16 columns. */

static __device__ __forceinline__ void
dsa_heads_mma_qk(float (&d)[32], uint64_t a, uint64_t b, int add)
{
    asm volatile ("{\n"
                  ".reg .pred  p;\n"
                  "setp.ne.b32 p, %34, 0;\n"
                  "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                  DSA_HEADS_D32 ", %32, %33, p, 1, 1, 0, 0;\n"
                  "}"
                  : dsa_heads_d32(d, 0) : "l"(a), "l"(b), "r"(add));
}


static __device__ __forceinline__ void
dsa_heads_mma_qk(float (&d)[64], uint64_t a, uint64_t b, int add)
{
    asm volatile ("{\n"
                  ".reg .pred  p;\n"
                  "setp.ne.b32 p, %66, 0;\n"
                  "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
                  DSA_HEADS_D64 ", %64, %65, p, 1, 1, 0, 0;\n"
                  "}"
                  : dsa_heads_d64(d) : "l"(a), "l"(b), "r"(add));
}


/* d [64, v] += a b, a in registers, the rows of b are 16 keys. */

static __device__ __forceinline__ void
dsa_heads_mma_pv(float (&d)[64], const uint32_t *a, uint64_t b)
{
    asm volatile ("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
                  DSA_HEADS_D64 ", {%64, %65, %66, %67}, %68, 1, 1, 1, 1;\n"
                  : dsa_heads_d64(d)
                  : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}


static __device__ __forceinline__ void
dsa_heads_mma_pv(float (&d)[128], const uint32_t *a, uint64_t b)
{
    asm volatile ("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
                  DSA_HEADS_D128 ", {%128, %129, %130, %131}, %132, "
                  "1, 1, 1, 1;\n"
                  : dsa_heads_d128(d)
                  : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}


static __device__ __forceinline__ float
dsa_heads_exp2(float x)
{
    float  y;

    asm ("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));

    return y;
}


/*
 * Returns the reciprocal of a sum, which is at least 1, because the greatest
 * score adds 1.
 */

static __device__ __forceinline__ float
dsa_heads_reciprocal(float x)
{
    float  y;

    asm ("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));

    return y;
}


static __device__ __forceinline__ uint32_t
dsa_heads_pack(float low, float high)
{
    uint32_t  v;

    asm ("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(high), "f"(low));

    return v;
}


/* Starts loading 64 rows and columns at x, y, z into the L2. */

static __device__ __forceinline__ void
dsa_heads_prefetch(const CUtensorMap *map, int32_t x, int32_t y, int32_t z)
{
    asm volatile ("cp.async.bulk.prefetch.tensor.3d.L2.global.tile"
                  " [%0, {%1, %2, %3}];"
                  :: "l"(map), "r"(x), "r"(y), "r"(z) : "memory");
}


/*
 * Prevents the compiler from using the registers of a product before the
 * preceding wait.
 */

static __device__ __forceinline__ void
dsa_heads_settle(float (&d)[32])
{
    asm volatile ("" : dsa_heads_d32(d, 0) :: "memory");
}


static __device__ __forceinline__ void
dsa_heads_settle(float (&d)[64])
{
    asm volatile ("" : dsa_heads_d64(d) :: "memory");
}


static __device__ __forceinline__ void
dsa_heads_settle(float (&d)[128])
{
    asm volatile ("" : dsa_heads_d128(d) :: "memory");
}


/* Starts computing the scores of 64 rows and a tile of keys. */

template <class S>
static __device__ __forceinline__ void
dsa_heads_score(float (&s)[S::scores], uint64_t q, uint64_t k)
{
    int  i, j;

    dsa_wgmma_fence();

#pragma unroll
    for (i = 0; i < S::qk / 64; i++) {

#pragma unroll
        for (j = 0; j < 4; j++) {
            dsa_heads_mma_qk(s, q + (i * DSA_HEADS_Q_SEGMENT + j * 32) / 16,
                             k + (i * S::segment + j * 32) / 16,
                             i + j > 0);
        }
    }

    dsa_wgmma_commit();
}


/* Starts adding the weighted values of a tile. */

template <class S>
static __device__ __forceinline__ void
dsa_heads_weigh(float (&o)[S::sums], const uint32_t (&p)[S::weights],
    uint64_t v)
{
    int  i;

    dsa_wgmma_fence();

#pragma unroll
    for (i = 0; i < S::keys / 16; i++) {
        dsa_heads_mma_pv(o, p + i * 4, v + i * (2048 / 16));
    }

    dsa_wgmma_commit();
}


/* The state of a thread for its two rows. */

typedef struct {
    dsa_heads_item_t    item;
    uint32_t            causal;         /* the first tile with keys beyond a
                                           row of the warpgroup */
    uint32_t            row;            /* the first; the other is row + 8 */
    const uint32_t     *mask[2];        /* from the thread's first word on */
    float               max[2];
    float               sum[2];
} dsa_heads_rows_t;


template <int FORM>
static __device__ __forceinline__ uint32_t
dsa_heads_half(const dsa_heads_item_t *item)
{
    return FORM == DSA_HEADS_PART ? item->row % DSA_HEADS_ROWS
                                  : DSA_HEADS_WHOLE;
}


template <int FORM>
static __device__ __forceinline__ uint32_t
dsa_heads_row(const dsa_heads_item_t *item)
{
    return item->row - dsa_heads_half<FORM>(item);
}


/* Returns the first tile of an item. */

template <int FORM>
static __device__ __forceinline__ uint32_t
dsa_heads_first(const dsa_heads_item_t *item)
{
    return dsa_heads_half<FORM>(item) == DSA_HEADS_LATE ? item->tiles / 2 : 0;
}


/*
 * Returns the n-th item.  Items are sorted by groups of a->mixed heads, in a
 * group by blocks of rows, the longest ones first, and in a block by heads.
 * The first halves of halved items are before all others, their second halves
 * behind all others.
 */

template <class S, int FORM>
static __device__ __forceinline__ dsa_heads_item_t
dsa_heads_item(const dsa_heads_args_t *a, uint32_t n)
{
    uint32_t          first, heads, half;
    dsa_heads_item_t  item;

    if (FORM == DSA_HEADS_PART) {
        half = DSA_HEADS_EARLY;

        if (n < a->halved) {
            n += a->whole;

        } else {
            n -= a->halved;
            half = n < a->whole ? DSA_HEADS_WHOLE : DSA_HEADS_LATE;
        }
    }

    first = n / (a->mixed * a->blocks) * a->mixed;
    heads = min(a->mixed, a->heads - first);
    n -= first * a->blocks;

    item.head = first + n % heads;
    item.row = (a->blocks - 1 - n / heads) * (a->warpgroups * DSA_HEADS_ROWS);
    item.tiles = (a->start + min(item.row + a->warpgroups * DSA_HEADS_ROWS,
                                 a->rows)
                  + S::keys - 1) / S::keys;

    if (FORM == DSA_HEADS_PART) {
        item.tiles = min(item.tiles, (a->keys + S::keys - 1) / S::keys);
        item.tiles /= half == DSA_HEADS_EARLY ? 2 : 1;
        item.row += half;
    }

    return item;
}


/*
 * Each of four threads has one of four adjacent words of a mask, and needs two
 * bits of each byte of all four.  They exchange words, so that each has its
 * bits of word i in bits 2 i and 2 i + 1 of each byte.  If a tile has two
 * words, threads i and i + 2 have word i.
 */

static __device__ __forceinline__ uint32_t
dsa_heads_transpose(uint32_t w)
{
    uint32_t  got;

    got = __shfl_xor_sync(0xffffffff, threadIdx.x & 1 ? w : w >> 2, 1);
    w = threadIdx.x & 1 ? (w & 0xcccccccc) | (got & 0x33333333)
                        : (w & 0x33333333) | (got & 0x33333333) << 2;

    got = __shfl_xor_sync(0xffffffff, threadIdx.x & 2 ? w : w >> 4, 2);

    return threadIdx.x & 2 ? (w & 0xf0f0f0f0) | (got & 0x0f0f0f0f)
                           : (w & 0x0f0f0f0f) | (got & 0x0f0f0f0f) << 4;
}


/* Loads a thread's words of the mask for a tile. */

template <class S>
static __device__ __forceinline__ void
dsa_heads_words(uint32_t (&w)[2], const dsa_heads_rows_t *r,
    const dsa_heads_args_t *a, uint32_t tile)
{
    int     n;
    size_t  at;

    at = tile * S::words;

#pragma unroll
    for (n = 0; n < 2; n++) {
        w[n] = at + threadIdx.x % S::words < a->ld_mask
               ? __ldg(r->mask[n] + at) : 0;
    }
}


/* Sets the scores of masked keys to -inf. */

template <class S>
static __device__ __forceinline__ void
dsa_heads_select(float (&s)[S::scores], uint32_t (&w)[2])
{
    int  i;

    w[0] = dsa_heads_transpose(w[0]);
    w[1] = dsa_heads_transpose(w[1]);

#pragma unroll
    for (i = 0; i < S::scores; i++) {
        s[i] = w[i / 2 % 2] & 1U << (i / 4 % 4 * 8 + i / 16 * 2 + i % 2)
               ? s[i] : -INFINITY;
    }
}


/* Sets the scores of keys beyond a row's position to -inf. */

template <class S>
static __device__ __forceinline__ void
dsa_heads_causal(float (&s)[S::scores], const dsa_heads_rows_t *r,
    const dsa_heads_args_t *a, uint32_t tile)
{
    int  i, n[2];

    n[0] = (int) (a->start + r->row - threadIdx.x % 4 * 2
                  - tile * S::keys);
    n[1] = n[0] + 8;

#pragma unroll
    for (i = 0; i < S::scores; i++) {
        s[i] = i / 4 * 8 + i % 2 <= n[i / 2 % 2] ? s[i] : -INFINITY;
    }
}


/*
 * Updates the maxima of a thread's two rows with a tile.  Sets factor, by
 * which sums of earlier tiles have to be multiplied.
 */

template <class S>
static __device__ __forceinline__ void
dsa_heads_max(const float (&s)[S::scores], dsa_heads_rows_t *r,
    float (&factor)[2], float scale)
{
    int    i, n;
    float  m;

#pragma unroll
    for (n = 0; n < 2; n++) {
        m = fmaxf(s[n * 2], s[n * 2 + 1]);

#pragma unroll
        for (i = 1; i < S::scores / 4; i++) {
            m = fmaxf(m, fmaxf(s[i * 4 + n * 2], s[i * 4 + n * 2 + 1]));
        }

        m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, 1));
        m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, 2));
        m = fmaxf(m, r->max[n]);

        factor[n] = dsa_heads_exp2((r->max[n] - m) * scale);
        r->max[n] = m;
    }
}


/* Replaces scores by exponentials, and adds them to the sums. */

template <class S>
static __device__ __forceinline__ void
dsa_heads_exponentials(float (&s)[S::scores], dsa_heads_rows_t *r,
    const float (&factor)[2], float scale)
{
    int    i, n;
    float  c, part[2];

#pragma unroll
    for (n = 0; n < 2; n++) {
        c = r->max[n] * scale;
        part[0] = 0;
        part[1] = 0;

#pragma unroll
        for (i = n * 2; i < S::scores; i += 4) {
            s[i] = dsa_heads_exp2(fmaf(s[i], scale, -c));
            s[i + 1] = dsa_heads_exp2(fmaf(s[i + 1], scale, -c));
            part[0] += s[i];
            part[1] += s[i + 1];
        }

        r->sum[n] = fmaf(r->sum[n], factor[n], part[0] + part[1]);
    }
}


/*
 * Stores a number that depends on the maxima and is never read.  ptxas keeps
 * the order of memory accesses and of waits for products, so the maxima are
 * computed before the next wait.  Without this it moves the wait ahead of
 * them, and they are not computed while the product runs.
 */

static __device__ __forceinline__ void
dsa_heads_order(float *order, const dsa_heads_rows_t *r)
{
    asm volatile ("st.shared.f32 [%0], %1;"
                  :: "r"(dsa_smem(&order[threadIdx.x % 32])),
                     "f"(r->max[0] + r->max[1]) : "memory");
}


template <class S>
static __device__ __forceinline__ void
dsa_heads_weights(uint32_t (&p)[S::weights], const float (&s)[S::scores])
{
    int  i;

#pragma unroll
    for (i = 0; i < S::weights; i++) {
        p[i] = dsa_heads_pack(s[i * 2], s[i * 2 + 1]);
    }
}


#endif /* _DSA_ATTENTION_HEADS_CUH_INCLUDED_ */
