
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "attention_prefill.cuh"


/*
 * Absorbed MQA for many rows of a sequence.  A block computes one row and 64
 * heads at a time.  The sums, 64 x 512 in float32, fill half of a
 * multiprocessor's registers, so two warpgroups own 256 columns each.  The
 * keys of the row come in pairs of blocks of 64.  Warpgroup 0 computes the
 * scores of the even blocks, warpgroup 1 those of the odd ones, and each
 * passes its weights to the other one through shared memory.  While one
 * computes its softmax, the tensor cores work for the other one.
 *
 * A third warpgroup gathers the latents, 1,152 bytes each, in pieces of 16
 * bytes.  TMA is not used, because a box of one row and 128 bytes takes 52
 * cycles, 25 times as long.  There is room for only two blocks, and both are
 * in use for most of the time, so their memory has to be freed and filled
 * again as early as possible.  Therefore a block is loaded in halves: first
 * the columns that belong to the warpgroup that computes its scores, then the
 * other columns with the rope part, whose memory also passes the weights.
 *
 * The references of the softmax rise from block to block.  Warpgroup 0 waits
 * for the reference of the last odd block before it chooses its own.
 * Warpgroup 1 does not wait for the reference of the even block, so that both
 * softmaxes can run at the same time; in the rare case that the even one is
 * higher, it scales its weights.
 *
 * The limit is the power of the GPU: at two thirds of the tensor cores' rate
 * it lowers its clock.
 */

#define DSA_PREFILL_HEADS       64
#define DSA_PREFILL_THREADS     384
#define DSA_PREFILL_TILE        (9 * DSA_PREFILL_SEGMENT)


typedef struct {
    uint64_t            q_full;
    uint64_t            q_empty;
    uint64_t            full[2][2];     /* of a block's halves */
    uint64_t            empty[2][2];
    uint64_t            p_full[2];
    uint32_t            valid[2][2];    /* of a block's keys, bits */
    float               r[2][64];       /* of a block's weights */
    float               sum[2][64];
} dsa_prefill_shared_t;


#define DSA_PREFILL_SMEM        (3 * DSA_PREFILL_TILE                         \
                                 + sizeof(dsa_prefill_shared_t) + 1024)


#define dsa_prefill_d8(d, i)                                                  \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]),               \
    "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])

#define dsa_prefill_d32(d, i)                                                 \
    dsa_prefill_d8(d, i), dsa_prefill_d8(d, i + 8),                           \
    dsa_prefill_d8(d, i + 16), dsa_prefill_d8(d, i + 24)

#define DSA_PREFILL_D32                                                       \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "  \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, "  \
    "%30, %31"

#define DSA_PREFILL_D128                                                      \
    DSA_PREFILL_D32 ", "                                                      \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, "  \
    "%46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, "  \
    "%60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, "  \
    "%74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, "  \
    "%88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, "      \
    "%101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "      \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, "      \
    "%123, %124, %125, %126, %127"


/* s [64, 64] (+)= q k^T, 16 columns. */

static __device__ __forceinline__ void
dsa_prefill_mma_qk(float (&s)[32], uint64_t q, uint64_t k, int add)
{
    asm volatile ("{\n"
                  ".reg .pred  p;\n"
                  "setp.ne.b32 p, %34, 0;\n"
                  "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                  "{" DSA_PREFILL_D32 "}, %32, %33, p, 1, 1, 0, 0;\n"
                  "}"
                  : dsa_prefill_d32(s, 0) : "l"(q), "l"(k), "r"(add));
}


/* o [64, 256] += p v, 16 keys, p in registers. */

static __device__ __forceinline__ void
dsa_prefill_mma_own(float (&o)[128], const uint32_t *p, uint64_t v)
{
    asm volatile ("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
                  "{" DSA_PREFILL_D128 "}, {%128, %129, %130, %131}, %132, "
                  "1, 1, 1, 1;"
                  : dsa_prefill_d32(o, 0), dsa_prefill_d32(o, 32),
                    dsa_prefill_d32(o, 64), dsa_prefill_d32(o, 96)
                  : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "l"(v));
}


/* The same with p in shared memory. */

static __device__ __forceinline__ void
dsa_prefill_mma_other(float (&o)[128], uint64_t p, uint64_t v)
{
    asm volatile ("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
                  "{" DSA_PREFILL_D128 "}, %128, %129, 1, 1, 1, 0, 1;"
                  : dsa_prefill_d32(o, 0), dsa_prefill_d32(o, 32),
                    dsa_prefill_d32(o, 64), dsa_prefill_d32(o, 96)
                  : "l"(p), "l"(v));
}


/* Returns the number of pairs of key blocks of a row. */

static __device__ __forceinline__ uint32_t
dsa_prefill_pairs(const dsa_prefill_args_t *a, uint32_t row)
{
    return (dsa_prefill_count(a, row) + 2 * DSA_PREFILL_KEYS - 1)
           / (2 * DSA_PREFILL_KEYS);
}


/* The gathering warpgroup. */

/* Copies segments of a thread's four rows, key [4], into tile. */

static __device__ __forceinline__ void
dsa_prefill_gather(const dsa_prefill_args_t *a, uint32_t tile,
    const uint32_t *key, uint32_t first, uint32_t segments)
{
    int                 i, j;
    uint32_t            n, to;
    const dsa_bf16_t   *from;

    to = tile + first * DSA_PREFILL_SEGMENT + threadIdx.x % 128 / 8 * 128
         + ((threadIdx.x ^ threadIdx.x / 8) % 8) * 16;

#pragma unroll
    for (i = 0; i < 4; i++) {
        n = key[i] < a->keys ? 16 : 0;
        from = a->kv + (size_t) (n > 0 ? key[i] : 0) * DSA_PREFILL_COLUMNS
               + first * 64 + threadIdx.x % 8 * 8;

#pragma unroll
        for (j = 0; j < segments; j++) {
            dsa_cp_async16(to + i * 16 * 128 + j * DSA_PREFILL_SEGMENT,
                           from + j * 64, n);
        }
    }
}


/*
 * Reads a thread's picks of a pair of blocks: four rows of each, and two to
 * check.
 */

static __device__ __forceinline__ void
dsa_prefill_picks(const dsa_prefill_args_t *a, uint32_t row, uint32_t pair,
    uint32_t n, uint32_t (&key)[2][4], uint32_t (&check)[2][2])
{
    int       b, i;
    uint32_t  at;

#pragma unroll
    for (b = 0; b < 2; b++) {
        at = (pair * 2 + b) * DSA_PREFILL_KEYS;

#pragma unroll
        for (i = 0; i < 4; i++) {
            key[b][i] = dsa_prefill_pick(a, row, at + threadIdx.x % 128 / 8
                                                 + i * 16, n);
        }

#pragma unroll
        for (i = 0; i < 2; i++) {
            check[b][i] = dsa_prefill_pick(a, row, at + threadIdx.x % 32
                                                   + i * 32, n);
        }
    }
}


static __device__ __forceinline__ void
dsa_prefill_load(const dsa_prefill_args_t *a, const CUtensorMap *q_map,
    uint8_t *q, uint32_t k, dsa_prefill_shared_t *sh)
{
    int       b, i, j;
    uint32_t  job, row, n, pairs, pair, at, q_round, bits, tile, key[2][4],
              check[2][2], next[2][4], next_check[2][2];

    at = 0;
    q_round = 0;

    for (job = blockIdx.x; job < a->rows * a->groups; job += gridDim.x) {
        row = job / a->groups;
        pairs = dsa_prefill_pairs(a, row);

        if (pairs == 0) {
            continue;
        }

        n = dsa_prefill_count(a, row);
        dsa_prefill_picks(a, row, 0, n, key, check);

        if (threadIdx.x % 128 == 0) {
            dsa_mbar_wait(&sh->q_empty, (q_round + 1) % 2);
            dsa_mbar_arrive_expect(&sh->q_full, DSA_PREFILL_TILE);

            for (i = 0; i < 9; i++) {
                dsa_tma_load_3d(q + i * DSA_PREFILL_SEGMENT, q_map,
                                &sh->q_full, i * 64,
                                (int) (job % a->groups * DSA_PREFILL_HEADS),
                                (int) row);
            }
        }

        __syncwarp();

        q_round++;

        for (pair = 0; pair < pairs; pair++, at++) {
            dsa_prefill_picks(a, row, pair + 1, n, next, next_check);

#pragma unroll
            for (b = 0; b < 2; b++) {
                tile = k + b * DSA_PREFILL_TILE;

#pragma unroll
                for (i = 0; i < 2; i++) {
                    dsa_mbar_wait(&sh->empty[b][i], (at + 1) % 2);
                    dsa_prefill_gather(a, tile, key[b], (b ^ i) * 4, 4);

                    if (i == 1) {
                        dsa_prefill_gather(a, tile, key[b], 8, 1);
                    }

                    dsa_cp_async_arrive(&sh->full[b][i]);

                    if (i == 0 && threadIdx.x % 128 < 32) {
#pragma unroll
                        for (j = 0; j < 2; j++) {
                            bits = __ballot_sync(0xffffffff,
                                                 check[b][j] < a->keys);
                            if (threadIdx.x % 32 == 0) {
                                sh->valid[b][j] = bits;
                            }
                        }

                        dsa_prefill_done(&sh->full[b][0]);
                    }
                }

#pragma unroll
                for (i = 0; i < 4; i++) {
                    key[b][i] = next[b][i];
                }

                check[b][0] = next_check[b][0];
                check[b][1] = next_check[b][1];
            }
        }
    }
}


/* The warpgroups that compute. */

typedef struct {
    float               r[2];           /* references of the sums: log2 */
    float               sum[2];         /* of a thread's weights */
} dsa_prefill_rows_t;


/*
 * Starts computing the scores of a block, the warpgroup's own columns first.
 */

static __device__ __forceinline__ void
dsa_prefill_score(float (&s)[32], uint64_t q, uint64_t k,
    dsa_prefill_shared_t *sh, int b, uint32_t at)
{
    int  i, j, segment;

#pragma unroll
    for (i = 0; i < 9; i++) {
        segment = i < 8 ? (i + b * 4) % 8 : 8;

        if (i == 0 || i == 4) {
            dsa_mbar_wait(&sh->full[b][i / 4], at % 2);
            dsa_fence_async();
            dsa_wgmma_fence();
        }

#pragma unroll
        for (j = 0; j < 4; j++) {
            dsa_prefill_mma_qk(s, q + (segment * DSA_PREFILL_SEGMENT + j * 32)
                                      / 16,
                               k + (segment * DSA_PREFILL_SEGMENT + j * 32)
                                   / 16, i + j > 0);
        }
    }

    dsa_wgmma_commit();
}


/*
 * Rescales sums from one reference to another.  In most cases the threads only
 * vote that nothing changes.
 */

static __device__ __forceinline__ void
dsa_prefill_rescale(float (&o)[128], dsa_prefill_rows_t *t, const float *r)
{
    int    i, n;
    float  f[2];

    if (!__any_sync(0xffffffff, r[0] != t->r[0] || r[1] != t->r[1])) {
        return;
    }

#pragma unroll
    for (n = 0; n < 2; n++) {
        f[n] = dsa_prefill_exp2(t->r[n] - r[n]);
        t->sum[n] *= f[n];
        t->r[n] = r[n];
    }

#pragma unroll
    for (i = 0; i < 128; i++) {
        o[i] *= f[i / 2 % 2];
    }
}


/*
 * Computes the weights p, the A operand of four products, from the scores.  r
 * [2] is the old reference, and is replaced by that of the block; sum [2] has
 * the weights of this thread only.
 */

static __device__ __forceinline__ void
dsa_prefill_softmax(uint32_t (&p)[16], float (&s)[32], float (&r)[2],
    float (&sum)[2], const uint32_t *valid, float scale)
{
    int       i, n;
    float     m, x, y;
    uint32_t  word[2];

    word[0] = valid[0];
    word[1] = valid[1];

    if ((word[0] & word[1]) != 0xffffffff) {
#pragma unroll
        for (i = 0; i < 32; i++) {
            if (!(word[i / 16] >> (i / 4 % 4 * 8 + threadIdx.x % 4 * 2
                                   + i % 2) & 1))
            {
                s[i] = -INFINITY;
            }
        }
    }

#pragma unroll
    for (n = 0; n < 2; n++) {
        m = s[n * 2];

#pragma unroll
        for (i = 0; i < 8; i++) {
            m = fmaxf(m, fmaxf(s[i * 4 + n * 2], s[i * 4 + n * 2 + 1]));
        }

        m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, 1));
        m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, 2));
        m *= scale;

        r[n] = m > r[n] + DSA_PREFILL_LAG ? m : r[n];
        sum[n] = 0;

#pragma unroll
        for (i = 0; i < 8; i++) {
            x = dsa_prefill_exp2(fmaf(s[i * 4 + n * 2], scale, -r[n]));
            y = dsa_prefill_exp2(fmaf(s[i * 4 + n * 2 + 1], scale, -r[n]));
            sum[n] += x + y;
            p[i * 2 + n] = dsa_prefill_pack(x, y);
        }
    }
}


/* Scales weights whose reference is lower than that of the previous block. */

static __device__ __forceinline__ void
dsa_prefill_raise(uint32_t (&p)[16], float (&r)[2], float (&sum)[2],
    const float (&r0)[2])
{
    int    i, n;
    float  f;

    if (!__any_sync(0xffffffff, r0[0] > r[0] || r0[1] > r[1])) {
        return;
    }

#pragma unroll
    for (n = 0; n < 2; n++) {
        f = r0[n] > r[n] ? dsa_prefill_exp2(r[n] - r0[n]) : 1;
        r[n] = fmaxf(r[n], r0[n]);
        sum[n] *= f;

#pragma unroll
        for (i = 0; i < 8; i++) {
            p[i * 2 + n] = dsa_prefill_pack(
                               dsa_bf16_float(p[i * 2 + n] & 0xffff) * f,
                               dsa_bf16_float(p[i * 2 + n] >> 16) * f);
        }
    }
}


/* Passes weights and their references to the other warpgroup. */

static __device__ __forceinline__ void
dsa_prefill_give(const uint32_t (&p)[16], const float (&r)[2], uint32_t to,
    dsa_prefill_shared_t *sh, int b)
{
    int       i;
    uint32_t  lane, row;

    lane = threadIdx.x % 32;
    row = threadIdx.x % 128 / 32 * 16;

    if (lane % 4 == 0) {
        sh->r[b][row + lane / 4] = r[0];
        sh->r[b][row + lane / 4 + 8] = r[1];
    }

    row += lane % 16;
    to += row * 128;

#pragma unroll
    for (i = 0; i < 4; i++) {
        asm volatile ("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], "
                      "{%1, %2, %3, %4};"
                      :: "r"(to + ((i * 2 + lane / 16) ^ row % 8) * 16),
                         "r"(p[i * 4]), "r"(p[i * 4 + 1]), "r"(p[i * 4 + 2]),
                         "r"(p[i * 4 + 3])
                      : "memory");
    }

    dsa_fence_async();
    dsa_mbar_arrive(&sh->p_full[b]);
}


static __device__ __forceinline__ void
dsa_prefill_own(float (&o)[128], const uint32_t (&p)[16], uint64_t v)
{
    int  i;

    dsa_wgmma_fence();

#pragma unroll
    for (i = 0; i < 4; i++) {
        dsa_prefill_mma_own(o, p + i * 4, v + i * (2048 / 16));
    }

    dsa_wgmma_commit();
}


static __device__ __forceinline__ void
dsa_prefill_other(float (&o)[128], uint64_t p, uint64_t v)
{
    int  i;

    dsa_wgmma_fence();

#pragma unroll
    for (i = 0; i < 4; i++) {
        dsa_prefill_mma_other(o, p + i * (32 / 16), v + i * (2048 / 16));
    }

    dsa_wgmma_commit();
}


static __device__ __forceinline__ void
dsa_prefill_taken(float *r, const dsa_prefill_shared_t *sh, int b)
{
    uint32_t  row;

    row = threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;

    r[0] = sh->r[b][row];
    r[1] = sh->r[b][row + 8];
}


/*
 * Four threads have two columns each of four chunks of 8.  They exchange them,
 * so that each thread stores one chunk.
 */

static __device__ __forceinline__ void
dsa_prefill_store(dsa_bf16_t *out, const float *o, float f, int write)
{
    int       i;
    uint32_t  lane, v[4], x, y;

    lane = threadIdx.x % 4;

#pragma unroll
    for (i = 0; i < 4; i++) {
        v[i] = dsa_prefill_pack(o[i * 4] * f, o[i * 4 + 1] * f);
    }

#pragma unroll
    for (i = 0; i < 2; i++) {
        x = lane & 1 ? v[i * 2] : v[i * 2 + 1];
        x = __shfl_xor_sync(0xffffffff, x, 1);
        v[i * 2] = lane & 1 ? x : v[i * 2];
        v[i * 2 + 1] = lane & 1 ? v[i * 2 + 1] : x;
    }

#pragma unroll
    for (i = 0; i < 2; i++) {
        y = lane & 2 ? v[i] : v[i + 2];
        y = __shfl_xor_sync(0xffffffff, y, 2);
        v[i] = lane & 2 ? y : v[i];
        v[i + 2] = lane & 2 ? v[i + 2] : y;
    }

    if (write) {
        *(uint4 *) out = make_uint4(v[0], v[1], v[2], v[3]);
    }
}


/* Adds up both halves of a row's weights, and stores o [64, 256]. */

static __device__ __forceinline__ void
dsa_prefill_finish(const dsa_prefill_args_t *a, float (&o)[128],
    dsa_prefill_rows_t *t, dsa_prefill_shared_t *sh, int group, uint32_t job)
{
    int          i, n;
    float        f;
    uint32_t     at, head;
    dsa_bf16_t  *out;

    at = threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;

    dsa_bar_sync(1, 256);

#pragma unroll
    for (n = 0; n < 2; n++) {
        f = t->sum[n];
        f += __shfl_xor_sync(0xffffffff, f, 1);
        f += __shfl_xor_sync(0xffffffff, f, 2);

        if (threadIdx.x % 4 == 0) {
            sh->sum[group][at + n * 8] = f;
        }
    }

    dsa_bar_sync(1, 256);

#pragma unroll
    for (n = 0; n < 2; n++) {
        f = sh->sum[0][at + n * 8] + sh->sum[1][at + n * 8];
        f = f > 0 ? 1 / f : 0;

        head = job % a->groups * DSA_PREFILL_HEADS + at + n * 8;
        out = a->out + ((size_t) (job / a->groups) * a->heads + head)
                       * DSA_CUDA_LATENT + group * 256 + threadIdx.x % 4 * 8;

#pragma unroll
        for (i = 0; i < 8; i++) {
            dsa_prefill_store(out + i * 32, &o[i * 16 + n * 2], f,
                              head < a->heads);
        }
    }
}


static __device__ __forceinline__ void
dsa_prefill_even(const dsa_prefill_args_t *a, uint64_t q, uint64_t k0,
    uint64_t k1, uint64_t v0, uint64_t v1, uint32_t give,
    dsa_prefill_shared_t *sh)
{
    int                 i;
    float               o[128], s[32], r[2], sum[2];
    uint32_t            job, pair, pairs, at, q_round, p[16];
    dsa_prefill_rows_t  t;

    at = 0;
    q_round = 0;

    for (job = blockIdx.x; job < a->rows * a->groups; job += gridDim.x) {
        pairs = dsa_prefill_pairs(a, job / a->groups);

#pragma unroll
        for (i = 0; i < 128; i++) {
            o[i] = 0;
        }

        for (i = 0; i < 2; i++) {
            t.r[i] = DSA_PREFILL_NONE;
            t.sum[i] = 0;
        }

        if (pairs > 0) {
            dsa_mbar_wait(&sh->q_full, q_round++ % 2);
        }

        for (pair = 0; pair < pairs; pair++, at++) {
            dsa_prefill_score(s, q, k0, sh, 0, at);
            dsa_wgmma_wait<0>();

            if (pair + 1 == pairs) {
                dsa_prefill_done(&sh->q_empty);
            }

            r[0] = t.r[0];
            r[1] = t.r[1];

            dsa_prefill_softmax(p, s, r, sum, sh->valid[0], a->scale);
            dsa_prefill_give(p, r, give, sh, 0);
            dsa_prefill_rescale(o, &t, r);
            t.sum[0] += sum[0];
            t.sum[1] += sum[1];
            dsa_prefill_own(o, p, v0);
            dsa_wgmma_wait<0>();
            dsa_mbar_arrive(&sh->empty[0][0]);

            dsa_mbar_wait(&sh->p_full[1], at % 2);
            dsa_prefill_taken(r, sh, 1);
            dsa_prefill_rescale(o, &t, r);
            dsa_prefill_other(o, k1 + 8 * DSA_PREFILL_SEGMENT / 16, v1);
            dsa_wgmma_wait<0>();
            dsa_mbar_arrive(&sh->empty[1][1]);
        }

        dsa_prefill_finish(a, o, &t, sh, 0, job);
    }
}


static __device__ __forceinline__ void
dsa_prefill_odd(const dsa_prefill_args_t *a, uint64_t q, uint64_t k0,
    uint64_t k1, uint64_t v0, uint64_t v1, uint32_t give,
    dsa_prefill_shared_t *sh)
{
    int                 i;
    float               o[128], s[32], r[2], r0[2], sum[2];
    uint32_t            job, pair, pairs, at, q_round, p[16];
    dsa_prefill_rows_t  t;

    at = 0;
    q_round = 0;

    for (job = blockIdx.x; job < a->rows * a->groups; job += gridDim.x) {
        pairs = dsa_prefill_pairs(a, job / a->groups);

#pragma unroll
        for (i = 0; i < 128; i++) {
            o[i] = 0;
        }

        for (i = 0; i < 2; i++) {
            t.r[i] = DSA_PREFILL_NONE;
            t.sum[i] = 0;
        }

        if (pairs > 0) {
            dsa_mbar_wait(&sh->q_full, q_round++ % 2);
        }

        for (pair = 0; pair < pairs; pair++, at++) {
            dsa_prefill_score(s, q, k1, sh, 1, at);
            dsa_wgmma_wait<0>();

            if (pair + 1 == pairs) {
                dsa_prefill_done(&sh->q_empty);
            }

            r[0] = t.r[0];
            r[1] = t.r[1];

            dsa_prefill_softmax(p, s, r, sum, sh->valid[1], a->scale);

            dsa_mbar_wait(&sh->p_full[0], at % 2);
            dsa_prefill_taken(r0, sh, 0);
            dsa_prefill_rescale(o, &t, r0);
            dsa_prefill_other(o, k0 + 8 * DSA_PREFILL_SEGMENT / 16, v0);

            dsa_prefill_raise(p, r, sum, r0);
            dsa_prefill_give(p, r, give, sh, 1);
            dsa_wgmma_wait<0>();
            dsa_mbar_arrive(&sh->empty[0][1]);

            dsa_prefill_rescale(o, &t, r);
            t.sum[0] += sum[0];
            t.sum[1] += sum[1];
            dsa_prefill_own(o, p, v1);
            dsa_wgmma_wait<0>();
            dsa_mbar_arrive(&sh->empty[1][0]);
        }

        dsa_prefill_finish(a, o, &t, sh, 1, job);
    }
}


static __global__ void __launch_bounds__(DSA_PREFILL_THREADS, 1)
dsa_prefill_kernel(const __grid_constant__ CUtensorMap q_map,
    const __grid_constant__ dsa_prefill_args_t a)
{
    int                         i, j;
    uint8_t                    *smem, *sq;
    uint32_t                    k, group;
    uint64_t                    q, k0, k1, v0, v1;
    dsa_prefill_shared_t       *sh;
    extern __shared__ uint8_t   dsa_prefill_smem[];

    smem = dsa_prefill_smem
           + (1024 - dsa_smem(dsa_prefill_smem) % 1024) % 1024;
    sq = smem;
    k = dsa_smem(smem) + DSA_PREFILL_TILE;
    sh = (dsa_prefill_shared_t *) (smem + 3 * DSA_PREFILL_TILE);
    group = threadIdx.x / 128;

    if (threadIdx.x == 0) {
        dsa_mbar_init(&sh->q_full, 1);
        dsa_mbar_init(&sh->q_empty, 8);

        for (i = 0; i < 2; i++) {
            for (j = 0; j < 2; j++) {
                dsa_mbar_init(&sh->full[i][j], j == 0 ? 129 : 128);
                dsa_mbar_init(&sh->empty[i][j], 128);
            }

            dsa_mbar_init(&sh->p_full[i], 128);
        }

        dsa_mbar_fence_init();
    }

    __syncthreads();

    if (group == 2) {
        dsa_regs_less<72>();
        dsa_prefill_load(&a, &q_map, sq, k, sh);

    } else {
        dsa_regs_more<216>();

        q = dsa_wgmma_desc(dsa_smem(sq), 1, 16, 1024);
        k0 = dsa_wgmma_desc(k, 1, 16, 1024);
        k1 = dsa_wgmma_desc(k + DSA_PREFILL_TILE, 1, 16, 1024);
        v0 = dsa_wgmma_desc(k + group * 4 * DSA_PREFILL_SEGMENT, 1,
                            DSA_PREFILL_SEGMENT, 1024);
        v1 = dsa_wgmma_desc(k + DSA_PREFILL_TILE
                            + group * 4 * DSA_PREFILL_SEGMENT, 1,
                            DSA_PREFILL_SEGMENT, 1024);

        if (group == 0) {
            dsa_prefill_even(&a, q, k0, k1, v0, v1,
                             k + 8 * DSA_PREFILL_SEGMENT, sh);

        } else {
            dsa_prefill_odd(&a, q, k0, k1, v0, v1,
                            k + DSA_PREFILL_TILE + 8 * DSA_PREFILL_SEGMENT,
                            sh);
        }
    }
}


int
dsa_prefill_q_map(const dsa_cuda_state_t *state, CUtensorMap *map,
    const dsa_bf16_t *q, const dsa_prefill_args_t *a, uint32_t heads)
{
    uint32_t  box[3];
    uint64_t  dim[3], stride[2];

    box[0] = 64;
    box[1] = heads;
    box[2] = 1;
    dim[0] = DSA_PREFILL_COLUMNS;
    dim[1] = a->heads;
    dim[2] = a->rows;
    stride[0] = DSA_PREFILL_COLUMNS * sizeof(dsa_bf16_t);
    stride[1] = stride[0] * a->heads;

    return dsa_cuda_tensor_map(state, map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                               3, q, dim, stride, box,
                               CU_TENSOR_MAP_SWIZZLE_128B);
}


int
dsa_attention_prefill_setup(void)
{
    return dsa_setup_shared(dsa_prefill_kernel, DSA_PREFILL_SMEM);
}


extern "C" int
dsa_cuda_attention_prefill(const dsa_cuda_state_t *state, dsa_bf16_t *out,
    const dsa_bf16_t *q, const dsa_bf16_t *kv, uint32_t keys,
    const int32_t *pick, size_t ld_pick, const int32_t *n_pick, uint32_t rows,
    uint32_t heads, float scale, dsa_stream_t stream)
{
    int                 rc;
    CUtensorMap         q_map;
    dsa_prefill_args_t  a;

    if (rows == 0) {
        return 0;
    }

    if (heads < 1 || heads > 128 || keys > INT32_MAX || rows > INT32_MAX / 2
        || !(scale > 0))
    {
        return cudaErrorInvalidValue;
    }

    a.out = out;
    a.kv = kv;
    a.pick = pick;
    a.n_pick = n_pick;
    a.ld_pick = ld_pick;
    a.keys = keys;
    a.rows = rows;
    a.heads = heads;
    a.groups = (heads + DSA_PREFILL_HEADS - 1) / DSA_PREFILL_HEADS;
    a.scale = scale * 1.44269504088896341f;

    if (heads <= 32) {
        return dsa_prefill_narrow(state, &a, q, stream);
    }

    rc = dsa_prefill_q_map(state, &q_map, q, &a, DSA_PREFILL_HEADS);
    if (rc != 0) {
        return rc;
    }

    dsa_prefill_kernel<<<min(state->processors, rows * a.groups),
                         DSA_PREFILL_THREADS, DSA_PREFILL_SMEM,
                         stream>>>(q_map, a);

    return cudaGetLastError();
}
