
/*
 * Copyright (C) The nginx-dsa authors
 */


extern "C" {
#include "kernels/attention.h"
}

#include "kernels/hopper.cuh"


/*
 * Two kernels, one producer.  A block of threads serves one row, up to 64 of
 * its heads, and a range of its slots in steps of 64 keys:
 *
 *     warps 8-15   gather 64 records into registers, a step ahead, and write
 *                  them as bf16 into one of two key buffers
 *     warps 0-7    scores, softmax and values on the tensor cores
 *
 * wide (more than 32 heads): heads are the 64 rows of the products.  512
 * columns of 64 heads are 256 registers a thread for one warpgroup, so two
 * share the output: the first takes the scores, hands the probabilities over
 * in shared memory, and each weighs one half of the columns.  Its limit is the
 * tensor cores: 36 products 64x64x16 and 16 of 64x128x16 a step, 2176 cycles.
 *
 * narrow (up to 32 heads): transposed, keys and latent columns are the 64 rows
 * and 8, 16 or 32 heads the columns, so that nothing is padded to 64 heads.
 * Each warpgroup does every second step on its own, with its own maximum, and
 * the halves meet at the end: one's latencies lie under the other's products.
 * Its limit is reading the records.
 *
 * Rows that do not fill the GPU are split over their slots; parts then meet in
 * the combining kernel, in the order of the slots.
 *
 * A key buffer is 9 panels of 64 columns: [64 keys][128 bytes], swizzled by
 * 128 bytes.  The same bytes are read along the columns for the scores and
 * along the keys for the values.
 */

#define DSA_DECODE_KEYS     64
#define DSA_DECODE_PANELS   9
#define DSA_DECODE_PANEL    (DSA_DECODE_KEYS * 128)
#define DSA_DECODE_BUFFER   (DSA_DECODE_PANELS * DSA_DECODE_PANEL)
#define DSA_DECODE_THREADS  512
#define DSA_DECODE_WIDTH    (DSA_CUDA_LATENT + DSA_CUDA_ROPE)

#define DSA_DECODE_SPLITS   32          /* at most, a lane each */
#define DSA_DECODE_WAVES    3           /* of blocks at most, where split */

/*
 * A maximum is replaced when a score exceeds it by 2^8: probabilities are kept
 * relative to it in bf16 and float32, which lose nothing by that, and the
 * output is rarely rescaled.
 */

#define DSA_DECODE_SLACK    8.0f
/*
 * Queries are scaled on their way to f16, by a power of two: its range then
 * is 2^-19 .. 2^22, and what it loses below, it loses of a sum.
 */

#define DSA_DECODE_QUERY    0x1p-6f

#define DSA_DECODE_NONE     -1e30f      /* not -inf: differences stay finite */


/* Named barriers. */

enum {
    DSA_BAR_GROUP = 1,                  /* and 2: a warpgroup */
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


/* What a block of threads does. */

typedef struct {
    uint32_t         row;
    uint32_t         group;
    uint32_t         split;
    uint32_t         n;                 /* slots of the row */
    uint32_t         first;             /* steps */
    uint32_t         count;
    int32_t          guess;             /* a lane's first slot */
    uint32_t         guessed;           /* whether it is */
} dsa_decode_job_t;


/* Pairs of records under way for a warp of narrow: what shared memory has. */

#define DSA_DECODE_DEPTH(n)  ((n) == 32 ? 3 : 5)


/* Behind the matrices in shared memory. */

typedef struct {
    uint64_t         full[2];
    uint64_t         empty[2];
    uint8_t          valid[2][8];       /* a bit for each key */
} dsa_decode_sync_t;


typedef struct {
    dsa_decode_sync_t  sync;
    uint64_t           landed[8];       /* of a warp */
    float              factor[64];
    float              sum[64];
} dsa_decode_wide_t;


template <int N>
struct dsa_decode_narrow_t {
    dsa_decode_sync_t  sync;
    uint64_t           landed[8][DSA_DECODE_DEPTH(N)];
    float              max[2][4][N];
    float              sum[2][4][N];
    float              top[2][N];
};


/*
 * The shapes of wgmma.  A k-step of 16 is 32 bytes along a panel's row, or 16
 * rows of it.
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


#define DSA_DECODE_MMA(n, type, regs, i, j, k, l, ...)                         \
    asm volatile ("{\n.reg .pred p;\nsetp.ne.b32 p, %" #k ", 0;\n"            \
                  "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "."  \
                  type " {" regs "}, %" #i ", %" #j ", p, 1, 1, %" #l ", 0;\n}"\
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


/* d [64, 128] += A B, B's columns contiguous; A in shared memory. */

static __device__ __forceinline__ void
dsa_decode_mma_values(float *d, uint64_t a, uint64_t b)
{
    asm volatile ("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
                  "{" DSA_R64 "}, %64, %65, 1, 1, 1, 0, 1;"
                  : DSA_D16(d, 0), DSA_D16(d, 16), DSA_D16(d, 32),
                    DSA_D16(d, 48)
                  : "l"(a), "l"(b));
}


/* The same with A in registers. */

static __device__ __forceinline__ void
dsa_decode_mma_values_reg(float *d, const uint32_t *a, uint64_t b)
{
    asm volatile ("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
                  "{" DSA_R64 "}, {%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
                  : DSA_D16(d, 0), DSA_D16(d, 16), DSA_D16(d, 32),
                    DSA_D16(d, 48)
                  : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
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


/* 16 bytes, zeros where n is 0. */

static __device__ __forceinline__ void
dsa_decode_copy16(uint32_t smem, const uint8_t *p, uint32_t n)
{
    asm volatile ("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                  :: "r"(smem), "l"(p), "r"(n) : "memory");
}


/* A record to the L2. */

static __device__ __forceinline__ void
dsa_decode_prefetch(const uint8_t *p)
{
    asm volatile ("cp.async.bulk.prefetch.L2.global [%0], %1;"
                  :: "l"(p), "n"(DSA_CUDA_RECORD) : "memory");
}


/* Whether v is not 0 in any of a barrier's threads. */

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


/* Two e4m3 of x to f16, exactly, times a factor. */

static __device__ __forceinline__ uint32_t
dsa_decode_convert(uint16_t x, uint32_t factor)
{
    uint32_t  r;

    asm ("{\n.reg .b32 v;\ncvt.rn.f16x2.e4m3x2 v, %1;\n"
         "mul.rn.f16x2 %0, v, %2;\n}"
         : "=r"(r) : "h"(x), "r"(factor));

    return r;
}


/* Two bf16 of a query, scaled by DSA_DECODE_QUERY; to f16. */

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
 * i: of a key from the first step on.  Its slot, should the row have max_slots,
 * is read before it is known whether it has: one latency less of three in a
 * row.
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


/* The slot of key i of the first steps, or -1. */

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


/* The slot of key i of a step, or -1. */

static __device__ __forceinline__ int32_t
dsa_decode_slot(const dsa_decode_job_t &job, const int32_t *slot,
    uint32_t step, uint32_t i)
{
    i += (job.first + step) * DSA_DECODE_KEYS;

    return step < job.count && i < job.n ? slot[i] : -1;
}


/*
 * 16 bytes of a record to 16 columns of a key in a buffer, two chunks of a
 * swizzled row; to: the first.  scale: of the columns' group, 0 for no key.
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
 * The producer of narrow, 8 warps.  A warp has 8 keys of each step, and DEPTH
 * pairs of records under way into a ring of its own; a pair that has been read
 * makes place for the next.  Of a pair lanes 0-3, 8-11 .. have the even key
 * and the others the odd one, so that eight lanes meet no bank twice: neither
 * in the ring, for its pitch, nor in a buffer, for the swizzle.
 */

#define DSA_DECODE_RAW  704             /* a record's place in the ring */

template <int DEPTH>
static __device__ __forceinline__ void
dsa_decode_fill_ring(const dsa_decode_t &a, const dsa_decode_job_t &job,
    uint32_t keys, uint32_t ring, dsa_decode_sync_t *sync, uint32_t warp,
    uint32_t lane)
{
    float           f0, f1;
    uint4           x0, x1, rope;
    int32_t         s, t, now, next;
    uint32_t        c, i, m, at, to, end, key, odd, raw, step, mask, ahead;
    const int32_t  *slot;
    const uint8_t  *p;

    slot = a.slot + job.row * a.ld_slot;
    odd = lane >> 2 & 1;
    end = job.count * 4;

    /* lanes hold the slots of four steps, 8 each, and of the next four */

    now = dsa_decode_first_slot(a, job, slot, lane / 8 * DSA_DECODE_KEYS
                                              + warp * 8 + lane % 8);
    next = dsa_decode_slot(job, slot, 4 + lane / 8, warp * 8 + lane % 8);
    now = (uint32_t) now < a.slots ? now : -1;
    ahead = __ballot_sync(0xffffffff, now >= 0);
    mask = ahead;

    i = 0;
    m = 0;
    step = 0;

    for (c = 0; c < end + DEPTH; c++) {
        raw = ring + i * 2 * DSA_DECODE_RAW;
        i = i + 1 == DEPTH ? 0 : i + 1;

        if (c >= DEPTH) {
            dsa_cp_async_wait<DEPTH - 1>();
            __syncwarp();

            to = raw + odd * DSA_DECODE_RAW;
            x0 = dsa_decode_load16(to + (lane >> 3) * 64 + (lane & 3) * 16);
            x1 = dsa_decode_load16(to + 256 + (lane >> 3) * 64
                                   + (lane & 3) * 16);
            f0 = dsa_decode_load4(to + DSA_CUDA_LATENT + (lane >> 4) * 4);
            f1 = dsa_decode_load4(to + DSA_CUDA_LATENT + 8 + (lane >> 4) * 4);
            rope = dsa_decode_load16(raw + (lane >> 3 & 1) * DSA_DECODE_RAW
                                     + DSA_CUDA_LATENT + 16
                                     + (lane & 7) * 16);
            __syncwarp();
        }

        /* the pair DEPTH ahead of the one that has been read */

        if (c < end) {
            if (c % 16 == 0 && c > 0) {
                now = (uint32_t) next < a.slots ? next : -1;
                ahead = __ballot_sync(0xffffffff, now >= 0);
                next = dsa_decode_slot(job, slot, c / 4 + 4 + lane / 8,
                                       warp * 8 + lane % 8);
            }

            s = __shfl_sync(0xffffffff, now, c % 16 * 2);
            t = __shfl_sync(0xffffffff, now, c % 16 * 2 + 1);

            dsa_decode_copy16(raw + lane * 16,
                              dsa_decode_record(a, max(s, 0)) + lane * 16,
                              s < 0 ? 0 : 16);
            dsa_decode_copy16(raw + DSA_DECODE_RAW + lane * 16,
                              dsa_decode_record(a, max(t, 0)) + lane * 16,
                              t < 0 ? 0 : 16);

            if (lane < 18) {
                key = lane < 9 ? lane : lane - 9;
                s = lane < 9 ? s : t;
                p = dsa_decode_record(a, max(s, 0)) + DSA_CUDA_LATENT;
                dsa_decode_copy16(raw + (lane < 9 ? 0 : DSA_DECODE_RAW)
                                  + DSA_CUDA_LATENT + key * 16, p + key * 16,
                                  s < 0 ? 0 : 16);
            }
        }

        dsa_cp_async_commit();

        if (c < DEPTH) {
            continue;
        }

        at = keys + (step & 1) * DSA_DECODE_BUFFER;

        if (m == 0) {
            dsa_mbar_wait(&sync->empty[step & 1], (step >> 1 & 1) ^ 1);
        }

        key = warp * 8 + m * 2 + odd;
        to = at + (lane >> 3) * DSA_DECODE_PANEL + key * 128
             + (((lane & 3) * 2 ^ (key & 7)) << 4);

        dsa_decode_widen(to, x0, f0);
        dsa_decode_widen(to + 4 * DSA_DECODE_PANEL, x1, f1);

        if (lane < 16) {
            key = warp * 8 + m * 2 + (lane >> 3);
            dsa_decode_store16(at + 8 * DSA_DECODE_PANEL + key * 128
                               + (((lane & 7) ^ (key & 7)) << 4),
                               rope.x, rope.y, rope.z, rope.w);
        }

        if (++m < 4) {
            continue;
        }

        m = 0;
        mask = step % 4 == 0 && step > 0 ? ahead : mask;

        if (lane == 0) {
            sync->valid[step & 1][warp] = (uint8_t) (mask >> step % 4 * 8);
        }

        dsa_fence_async();
        __syncwarp();

        if (lane == 0) {
            dsa_mbar_arrive(&sync->full[step & 1]);
        }

        step++;
    }
}


/*
 * The producer of wide, 8 warps, for which shared memory has no ring.  Of a
 * warp's 8 keys a buffer's panels hold 1024 bytes each: record k lands in
 * panel k, all are read into registers, and their columns overwrite them.
 * Records come to the L2 two steps ahead, so that copies, which have to wait
 * until a buffer is free, do not wait for the device memory.
 */

static __device__ __forceinline__ void
dsa_decode_fill_place(const dsa_decode_t &a, const dsa_decode_job_t &job,
    uint8_t *buffers, uint64_t *landed, dsa_decode_sync_t *sync,
    uint32_t warp, uint32_t lane)
{
    float           scale, f;
    uint4           x[8], rope[2];
    int32_t         s0, s1, s2, s3;
    uint32_t        i, k, at, to, key, odd, raw, step, mask;
    const int32_t  *slot;

    slot = a.slot + job.row * a.ld_slot;
    odd = lane >> 2 & 1;
    key = warp * 8 + lane % 8;

    s0 = dsa_decode_first_slot(a, job, slot, key);
    s1 = dsa_decode_slot(job, slot, 1, key);
    s2 = dsa_decode_slot(job, slot, 2, key);
    s1 = (uint32_t) s1 < a.slots ? s1 : -1;

    if (lane < 8 && s1 >= 0) {
        dsa_decode_prefetch(dsa_decode_record(a, s1));
    }

    for (step = 0; step < job.count; step++) {
        at = dsa_smem(buffers) + (step & 1) * DSA_DECODE_BUFFER;
        raw = at + warp * 1024;

        s0 = (uint32_t) s0 < a.slots ? s0 : -1;
        mask = __ballot_sync(0xffffffff, s0 >= 0) & 0xff;

        dsa_mbar_wait(&sync->empty[step & 1], (step >> 1 & 1) ^ 1);

        /* records of odd keys 64 bytes further: other banks */

#pragma unroll
        for (i = 0; i < 8; i++) {
            s3 = __shfl_sync(0xffffffff, s0, i);
            dsa_decode_copy16(raw + i * DSA_DECODE_PANEL + (i & 1) * 64
                              + lane * 16,
                              dsa_decode_record(a, max(s3, 0)) + lane * 16,
                              s3 < 0 ? 0 : 16);
        }

#pragma unroll
        for (i = 0; i < 3; i++) {
            k = i * 3 + lane / 9;
            s3 = __shfl_sync(0xffffffff, s0, k & 7);

            if (lane < 27 && k < 8) {
                dsa_decode_copy16(raw + k * DSA_DECODE_PANEL + (k & 1) * 64
                                  + DSA_CUDA_LATENT + lane % 9 * 16,
                                  dsa_decode_record(a, max(s3, 0))
                                  + DSA_CUDA_LATENT + lane % 9 * 16,
                                  s3 < 0 ? 0 : 16);
            }
        }

        s3 = dsa_decode_slot(job, slot, step + 3, key);

        s2 = (uint32_t) s2 < a.slots ? s2 : -1;

        if (lane < 8 && s2 >= 0) {
            dsa_decode_prefetch(dsa_decode_record(a, s2));
        }

        asm volatile ("cp.async.wait_all;" ::: "memory");
        __syncwarp();

#pragma unroll
        for (i = 0; i < 8; i++) {
            x[i] = dsa_decode_load16(raw + ((i & ~1) + odd) * DSA_DECODE_PANEL
                                     + odd * 64 + (i & 1) * 256
                                     + (lane >> 3) * 64 + (lane & 3) * 16);
        }

#pragma unroll
        for (i = 0; i < 2; i++) {
            k = i * 4 + (lane >> 3);
            rope[i] = dsa_decode_load16(raw + k * DSA_DECODE_PANEL
                                        + (k & 1) * 64 + DSA_CUDA_LATENT + 16
                                        + (lane & 7) * 16);
        }

        k = lane >> 2;
        scale = dsa_decode_load4(raw + k * DSA_DECODE_PANEL + (k & 1) * 64
                                 + DSA_CUDA_LATENT + (lane & 3) * 4);

        __syncwarp();

#pragma unroll
        for (i = 0; i < 2; i++) {
            k = i * 4 + (lane >> 3);

            dsa_decode_store16(raw + 8 * DSA_DECODE_PANEL + k * 128
                               + (((lane & 7) ^ k) << 4),
                               rope[i].x, rope[i].y, rope[i].z, rope[i].w);
        }

#pragma unroll
        for (i = 0; i < 8; i++) {
            k = (i & ~1) + odd;
            f = __shfl_sync(0xffffffff, scale,
                            k * 4 + (i & 1) * 2 + (lane >> 4));
            to = raw + ((i & 1) * 4 + (lane >> 3)) * DSA_DECODE_PANEL + k * 128
                 + (((lane & 3) * 2 ^ k) << 4);

            dsa_decode_widen(to, x[i], f);
        }

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
        s2 = s3;
    }
}


/*
 * The row's heads first .. into panels [heads, 128 bytes]; zeros for those
 * that there are not.  By the 256 threads of the first two warpgroups.
 */

template <int N>
static __device__ __forceinline__ void
dsa_decode_query(const dsa_decode_t &a, const dsa_decode_job_t &job,
    uint32_t first, uint32_t smem, uint32_t thread)
{
    uint4           v;
    uint32_t        i, c, h;
    const uint8_t  *q;

    q = a.q + (uint64_t) job.row * a.heads * DSA_DECODE_WIDTH * 2;

#pragma unroll 9
    for (i = thread; i < N * DSA_DECODE_WIDTH / 8; i += 256) {
        h = i / (DSA_DECODE_WIDTH / 8);
        c = i % (DSA_DECODE_WIDTH / 8);
        v = make_uint4(0, 0, 0, 0);

        if (first + h < a.heads) {
            v = *(const uint4 *) (q + (first + h) * DSA_DECODE_WIDTH * 2
                                  + c * 16);
        }

        if (c < DSA_CUDA_LATENT / 8) {
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


/* landed: n barriers of copies. */

static __device__ __forceinline__ void
dsa_decode_init(dsa_decode_sync_t *sync, uint32_t readers, uint64_t *landed,
    uint32_t n)
{
    uint32_t  i;

    if (threadIdx.x == 0) {
        for (i = 0; i < 2; i++) {
            dsa_mbar_init(&sync->full[i], 8);
            dsa_mbar_init(&sync->empty[i], readers);
        }

        for (i = 0; i < n; i++) {
            dsa_mbar_init(&landed[i], 1);
        }

        dsa_mbar_fence_init();
    }

    __syncthreads();
}


/*
 * Where a split has no step: what the combining kernel passes over.  Returns
 * 1 then.
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


/* The first warpgroup of wide: scores, softmax, columns 0 .. 255. */

static __device__ __forceinline__ void
dsa_decode_wide_scores(const dsa_decode_t &a, const dsa_decode_job_t &job,
    float *o, uint32_t q, uint32_t keys, uint32_t probs,
    dsa_decode_wide_t *share, uint32_t warp, uint32_t lane)
{
    int         changed;
    float       v, slack, s[32], m[2], l[2], f[2], mc[2];
    uint32_t    i, j, k, at, row, bits, p[16];
    uint64_t    valid, dq, dk;

    slack = DSA_DECODE_SLACK / a.scale;
    row = warp * 16 + lane / 4;

    m[0] = m[1] = DSA_DECODE_NONE;
    l[0] = l[1] = 0;

    dq = dsa_wgmma_desc(q, 1, 16, 1024);

    for (i = 0; i < job.count; i++) {
        at = keys + (i & 1) * DSA_DECODE_BUFFER;

        dsa_mbar_wait(&share->sync.full[i & 1], i >> 1 & 1);

        dk = dsa_wgmma_desc(at, 1, 16, 1024);

        /* or the sums below are kept in registers over the loop */

        asm volatile ("" : "+l"(dq), "+l"(dk));

        dsa_wgmma_fence();

#pragma unroll
        for (k = 0; k < DSA_DECODE_WIDTH / 16; k++) {
            j = k / 4 * (DSA_DECODE_PANEL / 16) + k % 4 * 2;

            if (k < DSA_CUDA_LATENT / 16) {
                dsa_decode_mma<64, 1, 0>(s, dq + j, dk + j, k > 0);
            } else {
                dsa_decode_mma<64, 0, 0>(s, dq + j, dk + j, 1);
            }
        }

        dsa_wgmma_commit();
        dsa_wgmma_wait<0>();

        valid = *(volatile uint64_t *) share->sync.valid[i & 1];

        if (valid != ~0ull) {
#pragma unroll
            for (j = 0; j < 8; j++) {
                bits = (uint32_t) (valid >> (j * 8 + lane % 4 * 2));

                if ((bits & 1) == 0) {
                    s[j * 4] = s[j * 4 + 2] = __uint_as_float(0xff800000);
                }

                if ((bits & 2) == 0) {
                    s[j * 4 + 1] = s[j * 4 + 3] = __uint_as_float(0xff800000);
                }
            }
        }

#pragma unroll
        for (k = 0; k < 2; k++) {
            v = s[k * 2];

#pragma unroll
            for (j = 0; j < 8; j++) {
                v = fmaxf(v, fmaxf(s[j * 4 + k * 2], s[j * 4 + k * 2 + 1]));
            }

            v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, 1));
            v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, 2));

            f[k] = 1;

            if (v > m[k] + slack) {
                f[k] = dsa_decode_exp2((m[k] - v) * a.scale);
                m[k] = v;
            }

            mc[k] = m[k] * a.scale;
            l[k] *= f[k];
        }

        changed = __any_sync(0xffffffff, f[0] != 1 || f[1] != 1);

#pragma unroll
        for (j = 0; j < 32; j++) {
            k = j >> 1 & 1;
            s[j] = dsa_decode_exp2(s[j] * a.scale - mc[k]);
            l[k] += s[j];
        }

#pragma unroll
        for (j = 0; j < 16; j++) {
            p[j] = dsa_decode_pack_f16(s[j * 2], s[j * 2 + 1]);
        }

        if (i > 0) {
            dsa_bar_sync(DSA_BAR_FREE, 256);
        }

        /* chunks of 8 keys; a row and the one 8 below it swizzle alike */

#pragma unroll
        for (j = 0; j < 8; j++) {
            k = probs + row * 128 + ((j ^ (row & 7)) << 4) + lane % 4 * 4;
            dsa_decode_store4(k, p[j * 2]);
            dsa_decode_store4(k + 1024, p[j * 2 + 1]);
        }

        if (lane % 4 == 0) {
            share->factor[row] = f[0];
            share->factor[row + 8] = f[1];
        }

        dsa_fence_async();
        dsa_bar_arrive(DSA_BAR_READY, 256);

        if (changed) {
#pragma unroll
            for (j = 0; j < 128; j++) {
                o[j] *= f[j >> 1 & 1];
            }
        }

        dk = dsa_wgmma_desc(at, 1, DSA_DECODE_PANEL, 1024);

        dsa_wgmma_fence();

#pragma unroll
        for (k = 0; k < 4; k++) {
            dsa_decode_mma_values_reg(o, &p[k * 4], dk + k * (2048 / 16));
            dsa_decode_mma_values_reg(o + 64, &p[k * 4],
                                      dk + k * (2048 / 16)
                                      + 2 * DSA_DECODE_PANEL / 16);
        }

        dsa_wgmma_commit();
        dsa_wgmma_wait<0>();

        if (lane == 0) {
            dsa_mbar_arrive(&share->sync.empty[i & 1]);
        }
    }

#pragma unroll
    for (k = 0; k < 2; k++) {
        v = l[k];
        v += __shfl_xor_sync(0xffffffff, v, 1);
        v += __shfl_xor_sync(0xffffffff, v, 2);

        if (lane % 4 == 0) {
            share->sum[row + k * 8] = v;
            j = job.group * 64 + row + k * 8;

            if (a.splits > 1 && j < a.heads) {
                a.lse[(job.row * a.splits + job.split) * a.heads + j] =
                    v > 0 ? m[k] * a.scale + log2f(v)
                          : __uint_as_float(0xff800000);
            }
        }
    }
}


/* The second: columns 256 .. 511. */

static __device__ __forceinline__ void
dsa_decode_wide_values(const dsa_decode_job_t &job, float *o, uint32_t keys,
    uint32_t probs, dsa_decode_wide_t *share, uint32_t warp, uint32_t lane)
{
    float     f[2];
    uint32_t  i, j, k;
    uint64_t  dk, dp;

    dp = dsa_wgmma_desc(probs, 1, 16, 1024);

    for (i = 0; i < job.count; i++) {
        dk = dsa_wgmma_desc(keys + (i & 1) * DSA_DECODE_BUFFER
                            + 4 * DSA_DECODE_PANEL, 1, DSA_DECODE_PANEL, 1024);

        dsa_mbar_wait(&share->sync.full[i & 1], i >> 1 & 1);
        dsa_bar_sync(DSA_BAR_READY, 256);

        f[0] = *(volatile float *) &share->factor[warp * 16 + lane / 4];
        f[1] = *(volatile float *) &share->factor[warp * 16 + lane / 4 + 8];

        if (__any_sync(0xffffffff, f[0] != 1 || f[1] != 1)) {
#pragma unroll
            for (j = 0; j < 128; j++) {
                o[j] *= f[j >> 1 & 1];
            }
        }

        dsa_wgmma_fence();

#pragma unroll
        for (k = 0; k < 4; k++) {
            dsa_decode_mma_values(o, dp + k * 2, dk + k * (2048 / 16));
            dsa_decode_mma_values(o + 64, dp + k * 2,
                                  dk + k * (2048 / 16)
                                  + 2 * DSA_DECODE_PANEL / 16);
        }

        dsa_wgmma_commit();
        dsa_wgmma_wait<0>();

        if (lane == 0) {
            dsa_mbar_arrive(&share->sync.empty[i & 1]);
        }

        if (i + 1 < job.count) {
            dsa_bar_arrive(DSA_BAR_FREE, 256);
        }
    }
}


/*
 * A warp's 16 heads and a warpgroup's 256 columns.  bf16 goes through shared
 * memory, for whole lines; the float32 parts are whole sectors as they are.
 */

static __device__ __forceinline__ void
dsa_decode_wide_store(const dsa_decode_t &a, const dsa_decode_job_t &job,
    float *o, uint32_t smem, const dsa_decode_wide_t *share, uint32_t half,
    uint32_t warp, uint32_t lane)
{
    float      v, w, inv[2], *part;
    uint4      line;
    uint32_t   h, j, k, head;
    uint64_t   at;

    head = job.group * 64 + warp * 16;
    at = (uint64_t) (job.row * a.splits + job.split) * a.heads;
    smem += (half * 4 + warp) * 16 * 528;

#pragma unroll
    for (k = 0; k < 2; k++) {
        v = *(volatile float *) &share->sum[warp * 16 + lane / 4 + k * 8];
        inv[k] = v > 0 ? 1 / v : 0;
    }

#pragma unroll
    for (j = 0; j < 32; j++) {
#pragma unroll
        for (k = 0; k < 2; k++) {
            v = o[j * 4 + k * 2] * inv[k];
            w = o[j * 4 + k * 2 + 1] * inv[k];

            h = lane / 4 + k * 8;

            if (a.splits == 1) {
                dsa_decode_store4(smem + h * 528 + j * 16 + lane % 4 * 4,
                                  dsa_decode_pack(v, w));

            } else if (head + h < a.heads) {
                part = a.part + (at + head + h) * DSA_CUDA_LATENT + half * 256
                       + j * 8 + lane % 4 * 2;
                *(float2 *) part = make_float2(v, w);
            }
        }
    }

    if (a.splits > 1) {
        return;
    }

    __syncwarp();

    for (h = 0; h < 16 && head + h < a.heads; h++) {
        line = dsa_decode_load16(smem + h * 528 + lane * 16);
        *(uint4 *) (a.out + (at + head + h) * DSA_CUDA_LATENT * 2 + half * 512
                    + lane * 16) = line;
    }
}


__global__ void
__launch_bounds__(DSA_DECODE_THREADS, 1)
dsa_decode_wide(const __grid_constant__ dsa_decode_t a)
{
    float                            o[128];
    uint32_t                         i, q, keys, lane, warp, probs;
    dsa_decode_job_t                 job;
    dsa_decode_wide_t               *share;
    extern __shared__ __align__(1024) uint8_t  dsa_decode_smem[];

    q = dsa_smem(dsa_decode_smem);
    keys = q + DSA_DECODE_BUFFER;
    probs = keys + 2 * DSA_DECODE_BUFFER;
    share = (dsa_decode_wide_t *) (dsa_decode_smem + 3 * DSA_DECODE_BUFFER
                                   + 64 * 128);

    asm volatile ("griddepcontrol.launch_dependents;");

    warp = threadIdx.x / 32;
    lane = threadIdx.x % 32;

    job = dsa_decode_job(a, warp % 8 * 8 + lane % 8);

    if (dsa_decode_idle(a, job, 64)) {
        return;
    }

    dsa_decode_init(&share->sync, 8, share->landed, 8);

    if (warp >= 8) {
        dsa_regs_less<64>();
        dsa_decode_fill_place(a, job, dsa_decode_smem + DSA_DECODE_BUFFER,
                              &share->landed[warp - 8], &share->sync,
                              warp - 8, lane);

    } else {
        dsa_regs_more<192>();
        dsa_decode_query<64>(a, job, job.group * 64, q, threadIdx.x);

#pragma unroll
        for (i = 0; i < 128; i++) {
            o[i] = 0;
        }

        if (warp < 4) {
            dsa_decode_wide_scores(a, job, o, q, keys, probs, share, warp,
                                   lane);
        } else {
            dsa_decode_wide_values(job, o, keys, probs, share, warp - 4, lane);
        }

        dsa_bar_sync(DSA_BAR_BOTH, 256);

        dsa_decode_wide_store(a, job, o, keys, share, warp / 4, warp % 4,
                              lane);
    }
}


/*
 * A warpgroup of narrow: every second step.  o [8][N / 2]: 64 columns each of
 * the transposed output; a thread's heads are 8 j + 2 (lane % 4) and the next.
 */

template <int N>
static __device__ __forceinline__ void
dsa_decode_narrow_steps(const dsa_decode_t &a, const dsa_decode_job_t &job,
    float (*o)[N / 2], float *m, float *l, uint32_t q, uint32_t keys,
    uint32_t probs, dsa_decode_narrow_t<N> *share, uint32_t group,
    uint32_t warp, uint32_t lane)
{
    int       on[2], need;
    float     v, slack, s[N / 2], f[N / 4];
    uint32_t  i, j, k, t, lo, hi;
    uint64_t  dq, dk, dp, dv;

    slack = DSA_DECODE_SLACK / a.scale;
    keys += group * DSA_DECODE_BUFFER;
    probs += group * N * 128;

    dq = dsa_wgmma_desc(q, 1, 16, 1024);
    dk = dsa_wgmma_desc(keys, 1, 16, 1024);
    dp = dsa_wgmma_desc(probs, 1, 16, 1024);
    dv = dsa_wgmma_desc(keys, 1, DSA_DECODE_PANEL, 1024);

    for (i = group; i < job.count; i += 2) {
        dsa_mbar_wait(&share->sync.full[group], i >> 1 & 1);

        /* or the sums below are kept in registers over the loop */

        asm volatile ("" : "+l"(dq), "+l"(dk), "+l"(dp), "+l"(dv));

        dsa_wgmma_fence();

#pragma unroll
        for (k = 0; k < DSA_DECODE_WIDTH / 16; k++) {
            j = k / 4 * (DSA_DECODE_PANEL / 16) + k % 4 * 2;
            t = k / 4 * (N * 128 / 16) + k % 4 * 2;

            if (k < DSA_CUDA_LATENT / 16) {
                dsa_decode_mma<N, 1, 0>(s, dk + j, dq + t, k > 0);
            } else {
                dsa_decode_mma<N, 0, 0>(s, dk + j, dq + t, 1);
            }
        }

        dsa_wgmma_commit();
        dsa_wgmma_wait<0>();

        /* this thread's keys: warp * 16 + lane / 4, and 8 below */

#pragma unroll
        for (k = 0; k < 2; k++) {
            on[k] = *(volatile uint8_t *)
                        &share->sync.valid[group][warp * 2 + k]
                    >> (lane / 4) & 1;
        }

        need = 0;

#pragma unroll
        for (j = 0; j < N / 2; j++) {
            s[j] = on[j >> 1 & 1] ? s[j] : __uint_as_float(0xff800000);
            need |= s[j] > m[(j >> 2) * 2 + (j & 1)] + slack;
        }

        if (dsa_decode_bar_or(DSA_BAR_GROUP + group, 128, need)) {

            /* rare after the first step: the heads' maxima anew */

#pragma unroll
            for (j = 0; j < N / 4; j++) {
                k = (j >> 1) * 4 + (j & 1);
                v = fmaxf(s[k], s[k + 2]);
                v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, 4));
                v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, 8));
                v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, 16));

                if (lane < 4) {
                    share->max[group][warp][(j >> 1) * 8 + lane * 2 + (j & 1)]
                        = v;
                }
            }

            dsa_bar_sync(DSA_BAR_GROUP + group, 128);

#pragma unroll
            for (j = 0; j < N / 4; j++) {
                k = (j >> 1) * 8 + lane % 4 * 2 + (j & 1);
                v = m[j];

#pragma unroll
                for (t = 0; t < 4; t++) {
                    v = fmaxf(v, *(volatile float *) &share->max[group][t][k]);
                }

                f[j] = dsa_decode_exp2((m[j] - v) * a.scale);
                m[j] = v;
                l[j] *= f[j];
            }

#pragma unroll
            for (t = 0; t < 8; t++) {
#pragma unroll
                for (j = 0; j < N / 2; j++) {
                    o[t][j] *= f[(j >> 2) * 2 + (j & 1)];
                }
            }
        }

#pragma unroll
        for (j = 0; j < N / 2; j++) {
            k = (j >> 2) * 2 + (j & 1);
            s[j] = dsa_decode_exp2(s[j] * a.scale - m[k] * a.scale);
            l[k] += s[j];
        }

        /* stored transposed: [heads][64 keys] */

#pragma unroll
        for (j = 0; j < N / 8; j++) {
            lo = dsa_decode_pack_f16(s[j * 4], s[j * 4 + 1]);
            hi = dsa_decode_pack_f16(s[j * 4 + 2], s[j * 4 + 3]);

            k = probs + (j * 8 + (lane & 7)) * 128
                + ((warp * 2 + (lane >> 3 & 1) ^ (lane & 7)) << 4);

            asm volatile ("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 "
                          "[%0], {%1, %2};"
                          :: "r"(k), "r"(lo), "r"(hi) : "memory");
        }

        dsa_fence_async();
        dsa_bar_sync(DSA_BAR_GROUP + group, 128);

        dsa_wgmma_fence();

#pragma unroll
        for (k = 0; k < 4; k++) {
#pragma unroll
            for (t = 0; t < 8; t++) {
                dsa_decode_mma<N, 1, 1>(o[t], dv + t * (DSA_DECODE_PANEL / 16)
                                           + k * (2048 / 16),
                                     dp + k * 2, 1);
            }
        }

        dsa_wgmma_commit();
        dsa_wgmma_wait<0>();

        if (lane == 0) {
            dsa_mbar_arrive(&share->sync.empty[group]);
        }
    }
}


/*
 * The warpgroups' outputs become one.  Each gives the other's half of the
 * columns away through shared memory, [2][N][DSA_DECODE_PITCH] floats, adds
 * what it gets, and stores its half from there in whole lines.
 */

#define DSA_DECODE_PITCH  260           /* heads 2 apart: 8 banks */

template <int N>
static __device__ __forceinline__ void
dsa_decode_narrow_store(const dsa_decode_t &a, const dsa_decode_job_t &job,
    float (*o)[N / 2], const float *m, const float *l, float *smem,
    dsa_decode_narrow_t<N> *share, uint32_t group, uint32_t warp,
    uint32_t lane)
{
    float      v, w, top, sum, f[N / 4], *x;
    float4     y, z;
    uint32_t   e, h, i, j, k, t;
    uint64_t   at;

#pragma unroll
    for (j = 0; j < N / 4; j++) {
        v = l[j];
        v += __shfl_xor_sync(0xffffffff, v, 4);
        v += __shfl_xor_sync(0xffffffff, v, 8);
        v += __shfl_xor_sync(0xffffffff, v, 16);

        if (lane < 4) {
            h = (j >> 1) * 8 + lane * 2 + (j & 1);
            share->sum[group][warp][h] = v;

            if (warp == 0) {
                share->top[group][h] = m[j];
            }
        }
    }

    dsa_bar_sync(DSA_BAR_BOTH, 256);

    at = (uint64_t) (job.row * a.splits + job.split) * a.heads;

#pragma unroll
    for (j = 0; j < N / 4; j++) {
        h = (j >> 1) * 8 + lane % 4 * 2 + (j & 1);

        top = fmaxf(share->top[0][h], share->top[1][h]);
        sum = 0;

        for (i = 0; i < 2; i++) {
            v = 0;

            for (k = 0; k < 4; k++) {
                v += share->sum[i][k][h];
            }

            sum += v * dsa_decode_exp2((share->top[i][h] - top) * a.scale);
        }

        f[j] = sum > 0 ? dsa_decode_exp2((m[j] - top) * a.scale) / sum : 0;

        if (a.splits > 1 && group == 0 && warp == 0 && lane < 4
            && h < a.heads)
        {
            a.lse[at + h] = sum > 0 ? top * a.scale + log2f(sum)
                                    : __uint_as_float(0xff800000);
        }
    }

    i = lane / 4 + warp * 16;
    x = smem + (1 - group) * N * DSA_DECODE_PITCH + i;

#pragma unroll
    for (t = 0; t < 4; t++) {
#pragma unroll
        for (j = 0; j < N / 2; j++) {
            h = (j >> 2) * 8 + lane % 4 * 2 + (j & 1);
            v = (group == 0 ? o[t + 4][j] : o[t][j])
                * f[(j >> 2) * 2 + (j & 1)];
            x[h * DSA_DECODE_PITCH + t * 64 + (j >> 1 & 1) * 8] = v;
        }
    }

    dsa_bar_sync(DSA_BAR_BOTH, 256);

    smem += group * N * DSA_DECODE_PITCH;
    x = smem + i;

#pragma unroll
    for (t = 0; t < 4; t++) {
#pragma unroll
        for (j = 0; j < N / 2; j++) {
            h = (j >> 2) * 8 + lane % 4 * 2 + (j & 1);
            e = h * DSA_DECODE_PITCH + t * 64 + (j >> 1 & 1) * 8;
            v = (group == 0 ? o[t][j] : o[t + 4][j])
                * f[(j >> 2) * 2 + (j & 1)];
            w = x[e];
            x[e] = group == 0 ? v + w : w + v;
        }
    }

    dsa_bar_sync(DSA_BAR_GROUP + group, 128);

    for (h = warp; h < N && h < a.heads; h += 4) {
        x = smem + h * DSA_DECODE_PITCH;

        if (a.splits > 1) {
            float4  *part;

            part = (float4 *) (a.part + (at + h) * DSA_CUDA_LATENT
                               + group * 256);
            part[lane] = *(float4 *) (x + lane * 4);
            part[lane + 32] = *(float4 *) (x + 128 + lane * 4);

        } else {
            y = *(float4 *) (x + lane * 8);
            z = *(float4 *) (x + lane * 8 + 4);
            *(uint4 *) (a.out + (at + h) * DSA_CUDA_LATENT * 2 + group * 512
                        + lane * 16) =
                make_uint4(dsa_decode_pack(y.x, y.y),
                           dsa_decode_pack(y.z, y.w),
                           dsa_decode_pack(z.x, z.y),
                           dsa_decode_pack(z.z, z.w));
        }
    }
}


template <int N>
__global__ void
__launch_bounds__(DSA_DECODE_THREADS, 1)
dsa_decode_narrow(const __grid_constant__ dsa_decode_t a)
{
    float                     o[8][N / 2], m[N / 4], l[N / 4];
    uint8_t                  *ring;
    uint32_t                  i, j, q, keys, lane, warp, probs;
    dsa_decode_job_t          job;
    dsa_decode_narrow_t<N>   *share;
    extern __shared__ __align__(1024) uint8_t  dsa_decode_smem[];

    keys = dsa_smem(dsa_decode_smem);
    q = keys + 2 * DSA_DECODE_BUFFER;
    probs = q + DSA_DECODE_PANELS * N * 128;
    ring = dsa_decode_smem + 2 * DSA_DECODE_BUFFER
           + (DSA_DECODE_PANELS + 2) * N * 128;
    share = (dsa_decode_narrow_t<N> *)
                (ring + DSA_DECODE_DEPTH(N) * 16 * DSA_DECODE_RAW);

    asm volatile ("griddepcontrol.launch_dependents;");

    warp = threadIdx.x / 32;
    lane = threadIdx.x % 32;

    job = dsa_decode_job(a, lane / 8 * DSA_DECODE_KEYS + warp % 8 * 8
                            + lane % 8);

    if (dsa_decode_idle(a, job, N)) {
        return;
    }

    dsa_decode_init(&share->sync, 4, share->landed[0],
                    8 * DSA_DECODE_DEPTH(N));

    if (warp >= 8) {
        if constexpr (N == 32) {
            dsa_regs_less<80>();
        }

        dsa_decode_fill_ring<DSA_DECODE_DEPTH(N)>(
            a, job, keys,
            dsa_smem(ring) + (warp - 8) * DSA_DECODE_DEPTH(N) * 2
                             * DSA_DECODE_RAW,
            &share->sync, warp - 8, lane);

    } else {
        if constexpr (N == 32) {
            dsa_regs_more<176>();
        }

        dsa_decode_query<N>(a, job, 0, q, threadIdx.x);

#pragma unroll
        for (j = 0; j < N / 2; j++) {
#pragma unroll
            for (i = 0; i < 8; i++) {
                o[i][j] = 0;
            }
        }

#pragma unroll
        for (j = 0; j < N / 4; j++) {
            m[j] = DSA_DECODE_NONE;
            l[j] = 0;
        }

        dsa_decode_narrow_steps<N>(a, job, o, m, l, q, keys, probs, share,
                                   warp / 4, warp % 4, lane);
        dsa_decode_narrow_store<N>(a, job, o, m, l, (float *) dsa_decode_smem,
                                   share, warp / 4, warp % 4, lane);
    }
}


/*
 * A row's head: parts weighed by 2^(lse - log2 of the sum of all 2^lse).  It
 * is launched while the last blocks of the parts run, and waits for them.
 */

__global__ void
__launch_bounds__(128)
dsa_decode_combine(const __grid_constant__ dsa_decode_t a)
{
    float           v, w, max, sum;
    float4          o, x[16];
    uint32_t        i, s, row, head, lane;
    uint64_t        at;
    const float    *p;

    asm volatile ("griddepcontrol.wait;" ::: "memory");

    w = 0;
    lane = threadIdx.x % 32;
    row = blockIdx.x / a.heads;
    head = blockIdx.x % a.heads;
    at = (uint64_t) row * a.splits * a.heads + head;

    p = a.part + at * DSA_CUDA_LATENT + threadIdx.x * 4;
    o = make_float4(0, 0, 0, 0);

    /* the first parts are under way before their weights are known */

    for (s = 0; s < a.splits; s += 16) {
#pragma unroll
        for (i = 0; i < 16; i++) {
            if (s + i < a.splits) {
                x[i] = *(const float4 *) (p + (uint64_t) (s + i) * a.heads
                                              * DSA_CUDA_LATENT);
            }
        }

        if (s == 0) {
            v = lane < a.splits ? a.lse[at + lane * a.heads]
                                : __uint_as_float(0xff800000);
            max = fmaxf(dsa_warp_max(v), DSA_DECODE_NONE);
            w = exp2f(v - max);
            sum = dsa_warp_sum(w);
            w = sum > 0 ? w / sum : 0;
        }

#pragma unroll
        for (i = 0; i < 16; i++) {
            v = __shfl_sync(0xffffffff, w, (s + i) & 31);

            if (s + i < a.splits && v > 0) {
                o.x += v * x[i].x;
                o.y += v * x[i].y;
                o.z += v * x[i].z;
                o.w += v * x[i].w;
            }
        }
    }

    *(uint2 *) (a.out + (uint64_t) blockIdx.x * DSA_CUDA_LATENT * 2
                + threadIdx.x * 8) =
        make_uint2(dsa_decode_pack(o.x, o.y), dsa_decode_pack(o.z, o.w));
}


static uint32_t
dsa_decode_processors(void)
{
    int  n, device;

    if (cudaGetDevice(&device) != cudaSuccess
        || cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, device)
           != cudaSuccess)
    {
        return 132;
    }

    return (uint32_t) n;
}


/*
 * Into how many parts rows are split: the least time, in steps of 64 keys.  A
 * block of threads costs about 3 of them on its own, combining as many.
 */

static uint32_t
dsa_decode_splits(uint32_t blocks, uint32_t max_slots, uint32_t processors)
{
    uint32_t  n, best, cost, least, steps;

    steps = (max_slots + DSA_DECODE_KEYS - 1) / DSA_DECODE_KEYS;
    best = 1;
    least = (blocks + processors - 1) / processors * (steps + 3);

    for (n = 2; n <= DSA_DECODE_SPLITS && n <= steps; n++) {
        if ((uint64_t) blocks * n > DSA_DECODE_WAVES * processors) {
            break;
        }

        cost = (blocks * n + processors - 1) / processors
               * ((steps + n - 1) / n + 3) + 3;

        if (cost < least) {
            least = cost;
            best = n;
        }
    }

    return best;
}


/* Parts, as many as blocks of threads in DSA_DECODE_WAVES at most, and lse. */

extern "C" size_t
dsa_cuda_attention_work(uint32_t rows, uint32_t heads, uint32_t max_slots)
{
    return (size_t) dsa_decode_processors() * DSA_DECODE_WAVES
           * (heads < 64 ? heads : 64) * (DSA_CUDA_LATENT + 1)
           * sizeof(float);
}


template <int N>
static int
dsa_decode_launch(dsa_decode_t *a, uint32_t rows, cudaStream_t stream)
{
    int           rc;
    size_t        smem;
    const void   *kernel;
    cudaLaunchConfig_t    config = {};
    cudaLaunchAttribute   attr = {};

    if constexpr (N == 64) {
        kernel = (const void *) dsa_decode_wide;
        smem = 3 * DSA_DECODE_BUFFER + 64 * 128 + sizeof(dsa_decode_wide_t);

    } else {
        kernel = (const void *) dsa_decode_narrow<N>;
        smem = 2 * DSA_DECODE_BUFFER + (DSA_DECODE_PANELS + 2) * N * 128
               + DSA_DECODE_DEPTH(N) * 16 * DSA_DECODE_RAW
               + sizeof(dsa_decode_narrow_t<N>);
    }

    rc = cudaFuncSetAttribute(kernel,
                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                              (int) smem);
    if (rc != cudaSuccess) {
        return rc;
    }

    config.blockDim.x = DSA_DECODE_THREADS;
    config.gridDim = dim3(rows * a->groups * a->splits, 1, 1);
    config.blockDim = dim3(DSA_DECODE_THREADS, 1, 1);
    config.dynamicSmemBytes = smem;
    config.stream = stream;

    if constexpr (N == 64) {
        rc = cudaLaunchKernelEx(&config, dsa_decode_wide, *a);
    } else {
        rc = cudaLaunchKernelEx(&config, dsa_decode_narrow<N>, *a);
    }

    if (rc != cudaSuccess || a->splits == 1) {
        return rc;
    }

    attr.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attr.val.programmaticStreamSerializationAllowed = 1;

    config.gridDim = dim3(rows * a->heads, 1, 1);
    config.blockDim = dim3(128, 1, 1);
    config.dynamicSmemBytes = 0;
    config.attrs = &attr;
    config.numAttrs = 1;

    return cudaLaunchKernelEx(&config, dsa_decode_combine, *a);
}


extern "C" int
dsa_cuda_attention_decode(dsa_bf16_t *out, const dsa_bf16_t *q,
    const dsa_cuda_cache_t *cache, const int32_t *slot, size_t ld_slot,
    const int32_t *n_slot, uint32_t rows, uint32_t heads, uint32_t max_slots,
    float scale, void *work, dsa_stream_t stream)
{
    uint32_t      blocks;
    dsa_decode_t  a;

    if (heads < 1 || heads > 128 || !(scale > 0)
        || cache->page > UINT32_MAX || cache->pages > INT32_MAX / 64)
    {
        return cudaErrorInvalidValue;
    }

    if (rows == 0) {
        return cudaSuccess;
    }

    a.out = (uint8_t *) out;
    a.q = (const uint8_t *) q;
    a.base = cache->base;
    a.slot = slot;
    a.n_slot = n_slot;
    a.ld_slot = ld_slot;
    a.page = (uint32_t) cache->page;
    a.slots = cache->pages * DSA_DECODE_KEYS;
    a.max_slots = max_slots;
    a.heads = heads;
    a.scale = scale * 1.4426950408889634f / DSA_DECODE_QUERY;
    a.groups = heads > 64 ? 2 : 1;

    blocks = rows * a.groups;
    a.splits = dsa_decode_splits(blocks, max_slots, dsa_decode_processors());
    a.part = (float *) work;
    a.lse = a.part + (size_t) rows * a.splits * heads * DSA_CUDA_LATENT;

    return heads > 32 ? dsa_decode_launch<64>(&a, rows, stream)
           : heads > 16 ? dsa_decode_launch<32>(&a, rows, stream)
           : heads > 8 ? dsa_decode_launch<16>(&a, rows, stream)
           : dsa_decode_launch<8>(&a, rows, stream);
}
