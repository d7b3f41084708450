
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ATTENTION_DECODE_CUH_INCLUDED_
#define _DSA_ATTENTION_DECODE_CUH_INCLUDED_


extern "C" {
#include "attention.h"
}

#include "kernels/core/hopper.cuh"


/*
 * Two kernels that share the code of their producer warps.  A block of threads
 * computes one row, up to 64 of its heads, and a range of its slots in steps
 * of 64 keys:
 *
 *     warps 8-15   gather 64 records and write them as f16, one step ahead,
 *                  into one of two key buffers
 *     warps 0-7    scores, softmax and values on the tensor cores
 *
 * wide (more than 32 heads): heads are the 64 rows of the products.  One
 * warpgroup would need 256 registers a thread for 512 columns of 64 heads, so
 * two warpgroups share the output.  The first one computes the scores and
 * passes the probabilities on in shared memory; each of the two weighs one
 * half of the columns.  The tensor cores are the limit: 36 products 64x64x16
 * and 16 of 64x128x16 take 2176 cycles a step.
 *
 * narrow (up to 32 heads): the roles are swapped.  Keys and latent columns are
 * the 64 rows of the products, and 8, 16 or 32 heads are the columns, so that
 * nothing is padded to 64 heads.  The two warpgroups compute alternate steps
 * with separate maxima, and combine their results at the end; the latencies of
 * one are hidden by the products of the other.
 *
 * One instruction converts e4m3 to f16 without loss, and a scale from 2^-15 to
 * 2^7 loses nothing either; a conversion to bf16 takes two instructions.  So
 * queries and probabilities are f16 too, which rounds less than bf16.  The
 * rope part stays bf16.
 *
 * If there are too few rows to fill the GPU, each row is split over its slots.
 * A second kernel combines the parts in the order of the slots.
 *
 * A key buffer is 9 panels of 64 columns: [64 keys][128 bytes], swizzled by
 * 128 bytes.  The scores read these bytes along the columns, the values read
 * them along the keys.
 */

#define DSA_DECODE_KEYS     64
#define DSA_DECODE_PANELS   9
#define DSA_DECODE_PANEL    (DSA_DECODE_KEYS * 128)
#define DSA_DECODE_BUFFER   (DSA_DECODE_PANELS * DSA_DECODE_PANEL)
#define DSA_DECODE_THREADS  512
#define DSA_DECODE_WIDTH    (DSA_CUDA_LATENT + DSA_CUDA_ROPE)

#define DSA_DECODE_SPLITS   32          /* at most, a lane each */
#define DSA_DECODE_WAVES    3           /* of blocks at most, where split */
#define DSA_DECODE_UNITS    32          /* of dsa_decode_splits() in a step */

#define DSA_DECODE_NONE     -1e30f      /* not -inf: differences stay finite */

/*
 * A maximum is replaced only when a score exceeds it by more than this, as a
 * power of two.  Probabilities relative to it stay far below the largest f16,
 * and the output is rarely rescaled.
 */

#define DSA_DECODE_SLACK    8.0f

/*
 * Queries are multiplied by this when they are converted to f16, so that
 * values up to 2^22 fit.  Values below 2^-8 lose bits, but these only matter
 * in a sum with larger values, or in a score near 0.  The scale of the scores
 * compensates for the factor.
 */

#define DSA_DECODE_QUERY    0x1p-6f


/* Named barriers. */

enum {
    DSA_BAR_GROUP = 1,                  /* and 2: for each warpgroup */
    DSA_BAR_BOTH = 3,
    DSA_BAR_READY,
    DSA_BAR_FREE
};


typedef struct {
    uint8_t         *out;               /* bf16 */
    const uint8_t   *q;
    const uint8_t   *base;
    const int32_t   *slot;
    const int32_t   *n_slot;
    float           *part;              /* [rows, splits, heads, 512] */
    float           *lse;               /* [rows, splits, heads], base 2 */
    uint64_t         ld_slot;
    uint32_t         page;
    uint32_t         slots;             /* in the cache */
    uint32_t         max_slots;
    uint32_t         heads;
    uint32_t         groups;            /* of 64 heads; 1 in narrow */
    uint32_t         splits;
    float            scale;             /* of scores, for powers of two */
} dsa_decode_t;


/* The work of a block of threads. */

typedef struct {
    uint32_t         row;
    uint32_t         group;
    uint32_t         split;
    uint32_t         n;                 /* slots of the row */
    uint32_t         first;             /* steps */
    uint32_t         count;
    int32_t          guess;             /* a lane's first slot */
    uint32_t         guessed;           /* 1: guess is set */
} dsa_decode_job_t;


/* Shared memory after the matrices. */

typedef struct {
    uint64_t         full[2];
    uint64_t         empty[2];
    uint8_t          valid[2][8];       /* a bit for each key */
} dsa_decode_sync_t;


typedef struct {
    dsa_decode_sync_t  sync;
    float              factor[64];
    float              sum[64];
} dsa_decode_wide_t;


template <int N>
struct dsa_decode_narrow_t {
    dsa_decode_sync_t  sync;
    float              max[2][4][N];
    float              sum[2][4][N];
    float              top[2][N];
};


/*
 * The instruction wgmma for the sizes that are used.  16 elements of the k
 * dimension are 32 bytes along the row of a panel, or 16 rows of it if k is
 * the keys.
 */

#define DSA_R4 \
    "%0, %1, %2, %3"

#define DSA_R8 \
    "%0, %1, %2, %3, %4, %5, %6, %7"

#define DSA_R16 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, " \
    "%14, %15"

#define DSA_R32 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, " \
    "%14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, " \
    "%26, %27, %28, %29, %30, %31"

#define DSA_R64 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, " \
    "%14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, " \
    "%26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, " \
    "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, " \
    "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, " \
    "%62, %63"

#define DSA_D4(d, i)                                                          \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define DSA_D16(d, i)                                                         \
    DSA_D4(d, i), DSA_D4(d, i + 4), DSA_D4(d, i + 8), DSA_D4(d, i + 12)


#define DSA_DECODE_MMA(n, type, regs, i, j, k, l, ...)                        \
    asm volatile ("{\n.reg .pred p;\nsetp.ne.b32 p, %" #k ", 0;\n"            \
                  "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "."  \
                  type " {" regs "}, %" #i ", %" #j ", p, 1, 1, %" #l         \
                  ", 0;\n}"                                                   \
                  : __VA_ARGS__                                               \
                  : "l"(a), "l"(b), "r"(add), "n"(TRANS))


/*
 * d [64, N] += A B, A and B in shared memory, both f16 or both bf16.  TRANS:
 * A's columns are contiguous.
 */

template <int N, int F16, int TRANS>
static __device__ __forceinline__ void
dsa_decode_mma(float *d, uint64_t a, uint64_t b, int add)
{
    if constexpr (N == 8 && F16) {
        DSA_DECODE_MMA(8, "f16", DSA_R4, 4, 5, 6, 7, DSA_D4(d, 0));

    } else if constexpr (N == 8 && !F16) {
        DSA_DECODE_MMA(8, "bf16", DSA_R4, 4, 5, 6, 7, DSA_D4(d, 0));

    } else if constexpr (N == 16 && F16) {
        DSA_DECODE_MMA(16, "f16", DSA_R8, 8, 9, 10, 11,
                       DSA_D4(d, 0), DSA_D4(d, 4));

    } else if constexpr (N == 16 && !F16) {
        DSA_DECODE_MMA(16, "bf16", DSA_R8, 8, 9, 10, 11,
                       DSA_D4(d, 0), DSA_D4(d, 4));

    } else if constexpr (N == 32 && F16) {
        DSA_DECODE_MMA(32, "f16", DSA_R16, 16, 17, 18, 19, DSA_D16(d, 0));

    } else if constexpr (N == 32 && !F16) {
        DSA_DECODE_MMA(32, "bf16", DSA_R16, 16, 17, 18, 19, DSA_D16(d, 0));

    } else if constexpr (N == 64 && F16) {
        DSA_DECODE_MMA(64, "f16", DSA_R32, 32, 33, 34, 35,
                       DSA_D16(d, 0), DSA_D16(d, 16));

    } else if constexpr (N == 64 && !F16) {
        DSA_DECODE_MMA(64, "bf16", DSA_R32, 32, 33, 34, 35,
                       DSA_D16(d, 0), DSA_D16(d, 16));
    }
}


#define DSA_DECODE_MMA_VALUES(a, last, ...)                                   \
    asm volatile ("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16"       \
                  " {" DSA_R64 "}, " a ", " last ";"                          \
                  : DSA_D16(d, 0), DSA_D16(d, 16), DSA_D16(d, 32),            \
                    DSA_D16(d, 48)                                            \
                  : __VA_ARGS__)


/* d [64, 128] += A B, B's columns contiguous; A in shared memory. */

static __device__ __forceinline__ void
dsa_decode_mma_values(float *d, uint64_t a, uint64_t b)
{
    DSA_DECODE_MMA_VALUES("%64", "%65, 1, 1, 1, 0, 1", "l"(a), "l"(b));
}


/* The same with A in registers. */

static __device__ __forceinline__ void
dsa_decode_mma_values_reg(float *d, const uint32_t *a, uint64_t b)
{
    DSA_DECODE_MMA_VALUES("{%64, %65, %66, %67}", "%68, 1, 1, 1, 1",
                          "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),
                          "l"(b));
}


static __device__ __forceinline__ float
dsa_decode_exp2(float v)
{
    float  r;

    asm ("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));

    return r;
}


static __device__ __forceinline__ uint32_t
dsa_decode_pack(float lo, float hi)
{
    uint32_t  r;

    asm ("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));

    return r;
}


static __device__ __forceinline__ uint32_t
dsa_decode_pack_f16(float lo, float hi)
{
    uint32_t  r;

    asm ("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));

    return r;
}


static __device__ __forceinline__ void
dsa_decode_store4(uint32_t smem, uint32_t v)
{
    asm volatile ("st.shared.b32 [%0], %1;" :: "r"(smem), "r"(v) : "memory");
}


static __device__ __forceinline__ void
dsa_decode_store16(uint32_t smem, uint32_t x, uint32_t y, uint32_t z,
    uint32_t w)
{
    asm volatile ("st.shared.v4.b32 [%0], {%1, %2, %3, %4};"
                  :: "r"(smem), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
}


static __device__ __forceinline__ uint4
dsa_decode_load16(uint32_t smem)
{
    uint4  v;

    asm volatile ("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                  : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                  : "r"(smem) : "memory");

    return v;
}


static __device__ __forceinline__ float
dsa_decode_load4(uint32_t smem)
{
    float  v;

    asm volatile ("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(smem) : "memory");

    return v;
}


/* Copies 16 bytes, or zeros if n is 0. */

static __device__ __forceinline__ void
dsa_decode_copy16(uint32_t smem, const uint8_t *p, uint32_t n)
{
    asm volatile ("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                  :: "r"(smem), "l"(p), "r"(n) : "memory");
}


/* Returns 1 if v is not 0 in at least one of a barrier's threads. */

static __device__ __forceinline__ int
dsa_decode_bar_or(uint32_t id, uint32_t threads, int v)
{
    int  r;

    asm volatile ("{\n.reg .pred p, q;\nsetp.ne.b32 p, %3, 0;\n"
                  "bar.red.or.pred q, %1, %2, p;\n"
                  "selp.b32 %0, 1, 0, q;\n}"
                  : "=r"(r) : "r"(id), "r"(threads), "r"(v) : "memory");

    return r;
}


/* Converts two e4m3 of x to f16, exactly, and multiplies them by a factor. */

static __device__ __forceinline__ uint32_t
dsa_decode_convert(uint16_t x, uint32_t factor)
{
    uint32_t  r;

    asm ("{\n.reg .b32 v;\ncvt.rn.f16x2.e4m3x2 v, %1;\n"
         "mul.rn.f16x2 %0, v, %2;\n}"
         : "=r"(r) : "h"(x), "r"(factor));

    return r;
}


/* Converts two bf16 of a query to f16, multiplied by DSA_DECODE_QUERY. */

static __device__ __forceinline__ uint32_t
dsa_decode_query_bf16(uint32_t v)
{
    uint32_t  r;

    asm ("mul.rn.bf16x2 %0, %1, %2;"
         : "=r"(r) : "r"(v), "r"(0x3c803c80));

    return r;
}


static __device__ __forceinline__ uint32_t
dsa_decode_query_f16(uint32_t v)
{
    v = dsa_decode_query_bf16(v);

    return dsa_decode_pack_f16(__uint_as_float(v << 16),
                               __uint_as_float(v & 0xffff0000));
}


/*
 * Finds the work of a block, and reads the slot of key i, counted from the
 * first step.  The slot is read before the number of the row's slots is
 * loaded, as if the row had max_slots, which saves one of three successive
 * memory latencies.
 */

static __device__ __forceinline__ dsa_decode_job_t
dsa_decode_job(const dsa_decode_t &a, uint32_t i)
{
    int32_t           n;
    uint32_t          b, first, steps;
    dsa_decode_job_t  job;

    b = blockIdx.x;
    job.group = b % a.groups;
    b /= a.groups;
    job.split = b % a.splits;
    job.row = b / a.splits;

    steps = (a.max_slots + DSA_DECODE_KEYS - 1) / DSA_DECODE_KEYS;
    first = steps * job.split / a.splits;
    i += first * DSA_DECODE_KEYS;

    job.guess = i < a.max_slots ? a.slot[job.row * a.ld_slot + i] : -1;
    n = a.n_slot[job.row];
    job.n = n < 0 ? 0 : min((uint32_t) n, a.max_slots);

    steps = (job.n + DSA_DECODE_KEYS - 1) / DSA_DECODE_KEYS;
    job.first = steps * job.split / a.splits;
    job.count = steps * (job.split + 1) / a.splits - job.first;
    job.guessed = job.first == first;

    return job;
}


static __device__ __forceinline__ const uint8_t *
dsa_decode_record(const dsa_decode_t &a, int32_t slot)
{
    return a.base + (uint64_t) ((uint32_t) slot >> 6) * a.page
           + ((uint32_t) slot & 63) * DSA_CUDA_RECORD;
}


/* Returns the slot of key i of the first steps, or -1. */

static __device__ __forceinline__ int32_t
dsa_decode_first_slot(const dsa_decode_t &a, const dsa_decode_job_t &job,
    const int32_t *slot, uint32_t i)
{
    uint32_t  end;

    end = min(job.n, (job.first + job.count) * DSA_DECODE_KEYS);
    i += job.first * DSA_DECODE_KEYS;

    if (i >= end) {
        return -1;
    }

    return job.guessed ? job.guess : slot[i];
}


/* Returns the slot of key i of a step, or -1. */

static __device__ __forceinline__ int32_t
dsa_decode_slot(const dsa_decode_job_t &job, const int32_t *slot,
    uint32_t step, uint32_t i)
{
    i += (job.first + step) * DSA_DECODE_KEYS;

    return step < job.count && i < job.n ? slot[i] : -1;
}


/*
 * Writes 16 bytes of a record as 16 columns of a key in a buffer: two chunks
 * of a swizzled row, the first at address to.  scale: the scale of the group
 * of the columns, 0 for no key.
 */

static __device__ __forceinline__ void
dsa_decode_widen(uint32_t to, uint4 x, float scale)
{
    uint32_t  f;

    f = dsa_decode_pack_f16(scale, scale);

    dsa_decode_store16(to, dsa_decode_convert((uint16_t) x.x, f),
                       dsa_decode_convert((uint16_t) (x.x >> 16), f),
                       dsa_decode_convert((uint16_t) x.y, f),
                       dsa_decode_convert((uint16_t) (x.y >> 16), f));
    dsa_decode_store16(to ^ 16, dsa_decode_convert((uint16_t) x.z, f),
                       dsa_decode_convert((uint16_t) (x.z >> 16), f),
                       dsa_decode_convert((uint16_t) x.w, f),
                       dsa_decode_convert((uint16_t) (x.w >> 16), f));
}


/*
 * Copies a warp's 8 records of a step to shared memory: record k to raw + k *
 * pitch, and 64 bytes further for odd keys if odd is 64.  s: the slot of key
 * lane % 8.  A missing record is copied as zeros.
 */

static __device__ __forceinline__ void
dsa_decode_gather(const dsa_decode_t &a, int32_t s, uint32_t raw,
    uint32_t pitch, uint32_t odd, uint32_t lane)
{
    int32_t         t;
    uint32_t        i, k;
    const uint8_t  *p;

#pragma unroll
    for (i = 0; i < 8; i++) {
        t = __shfl_sync(0xffffffff, s, i);
        p = dsa_decode_record(a, max(t, 0)) + lane * 16;

        dsa_decode_copy16(raw + i * pitch + (i & 1) * odd + lane * 16, p,
                          t < 0 ? 0 : 16);
    }

    /* scales and rope parts: 9 chunks of 3 records at a time */

#pragma unroll
    for (i = 0; i < 3; i++) {
        k = i * 3 + lane / 9;
        t = __shfl_sync(0xffffffff, s, k & 7);
        p = dsa_decode_record(a, max(t, 0)) + DSA_CUDA_LATENT + lane % 9 * 16;

        if (lane < 27 && k < 8) {
            dsa_decode_copy16(raw + k * pitch + (k & 1) * odd
                              + DSA_CUDA_LATENT + lane % 9 * 16, p,
                              t < 0 ? 0 : 16);
        }
    }
}


/*
 * Widens the records of a warp's 8 keys: x and rope are the lane's parts, and
 * scale has the scales of the records.  at: the warp's part of the buffer.
 */

static __device__ __forceinline__ void
dsa_decode_spread(uint32_t at, const uint4 *x, const uint4 *rope, float scale,
    uint32_t odd, uint32_t lane)
{
    float     f;
    uint32_t  i, k, to;

#pragma unroll
    for (i = 0; i < 8; i++) {
        k = (i & ~1) + odd;
        f = __shfl_sync(0xffffffff, scale, k * 4 + (i & 1) * 2 + (lane >> 4));
        to = at + ((i & 1) * 4 + (lane >> 3)) * DSA_DECODE_PANEL + k * 128
             + (((lane & 3) * 2 ^ k) << 4);

        dsa_decode_widen(to, x[i], f);
    }

#pragma unroll
    for (i = 0; i < 2; i++) {
        k = i * 4 + (lane >> 3);
        dsa_decode_store16(at + 8 * DSA_DECODE_PANEL + k * 128
                           + (((lane & 7) ^ k) << 4),
                           rope[i].x, rope[i].y, rope[i].z, rope[i].w);
    }
}


/*
 * The producer: 8 warps, each with 8 keys of a step.  Records are copied to
 * shared memory, read into registers, and widened into the buffer.
 *
 * With PLACE == 0 shared memory has a separate area for the records, so that
 * those of the next step can be copied meanwhile.  With PLACE == 1 there is no
 * room for this area.  Each panel of a buffer has 1024 bytes for the keys of a
 * warp; record k is copied into panel k, and its columns overwrite it.  So the
 * copies wait until the buffer is free.
 *
 * A lane reads 16 bytes of each of 4 keys: lanes 0-3, 8-11 and so on read even
 * keys, the others odd keys.  So eight lanes have no bank conflicts, neither
 * in the copied records (because of their pitch) nor in a buffer (because of
 * the swizzle).
 *
 * Job is dsa_decode_job_t, or that of dense decode, whose slots are those of
 * pages (attention_dense_wide.cuh).
 */

#define DSA_DECODE_RAW  704             /* bytes of a copied record */

template <int PLACE, class Job>
static __device__ __forceinline__ void
dsa_decode_fill(const dsa_decode_t &a, const Job &job, uint32_t keys,
    uint32_t place, dsa_decode_sync_t *sync, uint32_t warp, uint32_t lane)
{
    const uint32_t  pitch = PLACE ? DSA_DECODE_PANEL : DSA_DECODE_RAW;
    const uint32_t  apart = PLACE ? 64 : 0;

    float           scale;
    uint4           x[8], rope[2];
    int32_t         s0, s1, s2;
    uint32_t        i, k, at, key, odd, raw, step, mask;
    const int32_t  *slot;

    slot = a.slot + job.row * a.ld_slot;
    odd = lane >> 2 & 1;
    key = warp * 8 + lane % 8;
    raw = place + warp * 8 * DSA_DECODE_RAW;

    s0 = dsa_decode_first_slot(a, job, slot, key);
    s0 = (uint32_t) s0 < a.slots ? s0 : -1;
    s1 = dsa_decode_slot(job, slot, 1, key);
    s2 = dsa_decode_slot(job, slot, 2, key);

    if (!PLACE) {
        dsa_decode_gather(a, s0, raw, pitch, apart, lane);
    }

    for (step = 0; step < job.count; step++) {
        at = keys + (step & 1) * DSA_DECODE_BUFFER + warp * 1024;
        mask = __ballot_sync(0xffffffff, s0 >= 0);
        s1 = (uint32_t) s1 < a.slots ? s1 : -1;

        if (PLACE) {
            raw = at;
            dsa_mbar_wait(&sync->empty[step & 1], (step >> 1 & 1) ^ 1);
            dsa_decode_gather(a, s0, raw, pitch, apart, lane);
        }

        dsa_cp_async_commit();
        dsa_cp_async_wait<0>();
        __syncwarp();

#pragma unroll
        for (i = 0; i < 8; i++) {
            x[i] = dsa_decode_load16(raw + ((i & ~1) + odd) * pitch
                                     + odd * apart + (i & 1) * 256
                                     + (lane >> 3) * 64 + (lane & 3) * 16);
        }

#pragma unroll
        for (i = 0; i < 2; i++) {
            k = i * 4 + (lane >> 3);
            rope[i] = dsa_decode_load16(raw + k * pitch + (k & 1) * apart
                                        + DSA_CUDA_LATENT + 16
                                        + (lane & 7) * 16);
        }

        k = lane >> 2;
        scale = dsa_decode_load4(raw + k * pitch + (k & 1) * apart
                                 + DSA_CUDA_LATENT + (lane & 3) * 4);
        __syncwarp();

        if (!PLACE) {
            if (step + 1 < job.count) {
                dsa_decode_gather(a, s1, raw, pitch, apart, lane);
            }

            dsa_mbar_wait(&sync->empty[step & 1], (step >> 1 & 1) ^ 1);
        }

        dsa_decode_spread(at, x, rope, scale, odd, lane);

        if (lane == 0) {
            sync->valid[step & 1][warp] = (uint8_t) mask;
        }

        dsa_fence_async();
        __syncwarp();

        if (lane == 0) {
            dsa_mbar_arrive(&sync->full[step & 1]);
        }

        s0 = s1;
        s1 = s2;
        s2 = dsa_decode_slot(job, slot, step + 3, key);
    }
}


/*
 * Copies the queries of the row's heads first .. heads-1 into panels [N, 128
 * bytes], and zeros for heads that do not exist.  Called by the 256 threads of
 * the first two warpgroups.
 */

template <int N, int F16>
static __device__ __forceinline__ void
dsa_decode_query(const dsa_decode_t &a, uint32_t row, uint32_t first,
    uint32_t heads, uint32_t smem, uint32_t thread)
{
    uint4           v;
    uint32_t        i, c, h;
    const uint8_t  *q;

    q = a.q + (uint64_t) row * a.heads * DSA_DECODE_WIDTH * 2;

#pragma unroll 9
    for (i = thread; i < N * DSA_DECODE_WIDTH / 8; i += 256) {
        h = i / (DSA_DECODE_WIDTH / 8);
        c = i % (DSA_DECODE_WIDTH / 8);
        v = make_uint4(0, 0, 0, 0);

        if (first + h < heads) {
            v = *(const uint4 *) (q + (first + h) * DSA_DECODE_WIDTH * 2
                                  + c * 16);
        }

        if (F16 && c < DSA_CUDA_LATENT / 8) {
            v = make_uint4(dsa_decode_query_f16(v.x),
                           dsa_decode_query_f16(v.y),
                           dsa_decode_query_f16(v.z),
                           dsa_decode_query_f16(v.w));
        } else {
            v = make_uint4(dsa_decode_query_bf16(v.x),
                           dsa_decode_query_bf16(v.y),
                           dsa_decode_query_bf16(v.z),
                           dsa_decode_query_bf16(v.w));
        }

        dsa_decode_store16(smem + c / 8 * N * 128 + h * 128
                           + (((c & 7) ^ (h & 7)) << 4),
                           v.x, v.y, v.z, v.w);
    }

    dsa_fence_async();
    dsa_bar_sync(DSA_BAR_BOTH, 256);
}


static __device__ __forceinline__ void
dsa_decode_init(dsa_decode_sync_t *sync, uint32_t writers, uint32_t readers)
{
    uint32_t  i;

    if (threadIdx.x == 0) {
        for (i = 0; i < 2; i++) {
            dsa_mbar_init(&sync->full[i], writers);
            dsa_mbar_init(&sync->empty[i], readers);
        }

        dsa_mbar_fence_init();
    }

    __syncthreads();
}


/*
 * If a split has no step, writes a result that the combining kernel ignores,
 * and returns 1.
 */

static __device__ __forceinline__ int
dsa_decode_idle(const dsa_decode_t &a, const dsa_decode_job_t &job,
    uint32_t heads)
{
    uint32_t  h;

    if (a.splits == 1 || job.count > 0) {
        return 0;
    }

    h = job.group * heads + threadIdx.x;

    if (threadIdx.x < heads && h < a.heads) {
        a.lse[(job.row * a.splits + job.split) * a.heads + h] =
            __uint_as_float(0xff800000);
    }

    return 1;
}


#endif /* _DSA_ATTENTION_DECODE_CUH_INCLUDED_ */
