
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "attention_prefill.cuh"


/*
 * Absorbed MQA for many rows with up to 32 heads; the products have a multiple
 * of 8 heads.  The 64 rows of wgmma would be half empty, so the roles are
 * swapped: keys are the M operand of the scores, latent columns are that of
 * the sums, and heads are N in both.  A block computes one row at a time.  Its
 * two warpgroups process alternate blocks of keys with references and sums
 * [512, heads] of their own, and combine them at the end.
 *
 * A ring in shared memory holds thirds of a block, 192 columns.  A third
 * warpgroup gathers them.
 */

#define DSA_NARROW_THREADS      384
#define DSA_NARROW_PART         (3 * DSA_PREFILL_SEGMENT)


template <int HEADS>
struct dsa_narrow_t {
    static const int    q = 9 * HEADS * 128;
    static const int    p = HEADS * 128;
    static const int    merge = 256 * HEADS * 4;
    static const int    ring = HEADS == 32 ? 6 : 7;
};


template <int HEADS>
struct dsa_narrow_shared_t {
    uint64_t            q_full;
    uint64_t            q_empty;
    uint64_t            met;
    uint64_t            full[7];
    uint64_t            empty[7];
    uint32_t            valid[4][2];        /* of a block's keys, bits */
    float               max[2][4][HEADS];   /* of a warp's scores */
    float               sum[2][4][HEADS];
    float               r[2][HEADS];
};


#define dsa_narrow_smem(heads)                                                \
    (dsa_narrow_t<heads>::q + 2 * dsa_narrow_t<heads>::p                      \
     + dsa_narrow_t<heads>::merge                                             \
     + dsa_narrow_t<heads>::ring * DSA_NARROW_PART                            \
     + (int) sizeof(dsa_narrow_shared_t<heads>) + 1024)


/* d [64, N] (+)= a b^T; a K-major, or MN-major with MN 1. */

template <int MN>
static __device__ __forceinline__ void
dsa_narrow_mma(float (&d)[4], uint64_t a, uint64_t b, int add)
{
    asm volatile ("{\n"
                  ".reg .pred  p;\n"
                  "setp.ne.b32 p, %6, 0;\n"
                  "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "
                  "{%0, %1, %2, %3}, %4, %5, p, 1, 1, %7, 0;\n"
                  "}"
                  : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                  : "l"(a), "l"(b), "r"(add), "n"(MN));
}


template <int MN>
static __device__ __forceinline__ void
dsa_narrow_mma(float (&d)[8], uint64_t a, uint64_t b, int add)
{
    asm volatile ("{\n"
                  ".reg .pred  p;\n"
                  "setp.ne.b32 p, %10, 0;\n"
                  "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 "
                  "{%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, p, 1, 1, %11, "
                  "0;\n"
                  "}"
                  : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]),
                    "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
                  : "l"(a), "l"(b), "r"(add), "n"(MN));
}


template <int MN>
static __device__ __forceinline__ void
dsa_narrow_mma(float (&d)[16], uint64_t a, uint64_t b, int add)
{
    asm volatile ("{\n"
                  ".reg .pred  p;\n"
                  "setp.ne.b32 p, %18, 0;\n"
                  "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
                  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, "
                  "%13, %14, %15}, %16, %17, p, 1, 1, %19, 0;\n"
                  "}"
                  : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]),
                    "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                    "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
                    "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
                  : "l"(a), "l"(b), "r"(add), "n"(MN));
}


/*
 * Starts a thread's copies of third "part" of a block, 16 bytes of each of 4
 * keys in 3 segments, to the address "to".
 */

static __device__ __forceinline__ void
dsa_narrow_gather(const dsa_prefill_args_t *a, const uint32_t *key,
    uint32_t part, uint32_t to)
{
    int                i, j;
    uint32_t           size;
    const dsa_bf16_t  *from;

#pragma unroll
    for (i = 0; i < 4; i++) {
        size = key[i] < a->keys ? 16 : 0;
        from = a->kv + (size_t) (size > 0 ? key[i] : 0) * DSA_PREFILL_COLUMNS
               + part * 192 + threadIdx.x % 8 * 8;

#pragma unroll
        for (j = 0; j < 3; j++) {
            dsa_cp_async16(to + i * 16 * 128 + j * DSA_PREFILL_SEGMENT,
                           from + j * 64, size);
        }
    }
}


/* The gathering warpgroup loads thirds of blocks, in order. */

template <int HEADS>
static __device__ __forceinline__ void
dsa_narrow_load(const dsa_prefill_args_t *a, const CUtensorMap *q_map,
    uint8_t *q, uint32_t ring, dsa_narrow_shared_t<HEADS> *sh)
{
    int       i;
    uint32_t  row, n, blocks, block, at, q_round, part, slot, round, bits, to,
              key[4], next[4], check[2], next_check[2];

    at = 0;
    q_round = 0;
    slot = 0;
    round = 0;

    for (row = blockIdx.x; row < a->rows; row += gridDim.x) {
        n = dsa_prefill_count(a, row);
        blocks = (n + DSA_PREFILL_KEYS - 1) / DSA_PREFILL_KEYS;

        if (blocks == 0) {
            continue;
        }

        if (threadIdx.x % 128 == 0) {
            dsa_mbar_wait(&sh->q_empty, (q_round + 1) % 2);
            dsa_mbar_arrive_expect(&sh->q_full, dsa_narrow_t<HEADS>::q);

            for (i = 0; i < 9; i++) {
                dsa_tma_load_3d(q + i * HEADS * 128, q_map, &sh->q_full,
                                i * 64, 0, (int) row);
            }
        }

        __syncwarp();

        q_round++;

#pragma unroll
        for (i = 0; i < 4; i++) {
            key[i] = dsa_prefill_pick(a, row, threadIdx.x % 128 / 8 + i * 16,
                                      n);
        }

#pragma unroll
        for (i = 0; i < 2; i++) {
            check[i] = dsa_prefill_pick(a, row, threadIdx.x % 32 + i * 32, n);
        }

        for (block = 0; block < blocks; block++, at++) {

#pragma unroll
            for (i = 0; i < 4; i++) {
                next[i] = dsa_prefill_pick(a, row,
                                           (block + 1) * DSA_PREFILL_KEYS
                                           + threadIdx.x % 128 / 8 + i * 16,
                                           n);
            }

#pragma unroll
            for (i = 0; i < 2; i++) {
                next_check[i] = dsa_prefill_pick(a, row,
                                                 (block + 1) * DSA_PREFILL_KEYS
                                                 + threadIdx.x % 32 + i * 32,
                                                 n);
            }

            for (part = 0; part < 3; part++) {
                dsa_mbar_wait(&sh->empty[slot], (round + 1) % 2);

                to = ring + slot * DSA_NARROW_PART
                     + threadIdx.x % 128 / 8 * 128
                     + ((threadIdx.x ^ threadIdx.x / 8) % 8) * 16;

                dsa_narrow_gather(a, key, part, to);
                dsa_cp_async_arrive(&sh->full[slot]);

                if (threadIdx.x % 128 < 32) {

                    /* four blocks' bits: no more than three are in the ring */

#pragma unroll
                    for (i = 0; i < 2 && part == 0; i++) {
                        bits = __ballot_sync(0xffffffff, check[i] < a->keys);

                        if (threadIdx.x % 32 == 0) {
                            sh->valid[at % 4][i] = bits;
                        }
                    }

                    dsa_prefill_done(&sh->full[slot]);
                }

                if (++slot == dsa_narrow_t<HEADS>::ring) {
                    slot = 0;
                    round++;
                }
            }

#pragma unroll
            for (i = 0; i < 4; i++) {
                key[i] = next[i];
            }

            check[0] = next_check[0];
            check[1] = next_check[1];
        }
    }
}


/* Synchronizes the two computing warpgroups; met counts the calls. */

static __device__ __forceinline__ void
dsa_narrow_meet(uint64_t *bar, uint32_t *met)
{
    dsa_mbar_arrive(bar);
    dsa_mbar_wait(bar, (*met)++ % 2);
}


/*
 * Computes the scores s of block "at" and a row's heads.  k and q are the
 * descriptors of the ring and of the queries.
 */

template <int HEADS>
static __device__ __forceinline__ void
dsa_narrow_scores(float (&s)[HEADS / 2], uint64_t k, uint64_t q, uint32_t at,
    dsa_narrow_shared_t<HEADS> *sh)
{
    int       i, j;
    uint32_t  part, slot;

    dsa_wgmma_fence();

#pragma unroll
    for (i = 0; i < 3; i++) {
        part = at * 3 + i;
        slot = part % dsa_narrow_t<HEADS>::ring;

        dsa_mbar_wait(&sh->full[slot], part / dsa_narrow_t<HEADS>::ring % 2);
        dsa_fence_async();
        dsa_wgmma_fence();

#pragma unroll
        for (j = 0; j < 12; j++) {
            dsa_narrow_mma<0>(s, k + (slot * DSA_NARROW_PART
                                      + j / 4 * DSA_PREFILL_SEGMENT
                                      + j % 4 * 32) / 16,
                              q + ((i * 3 + j / 4) * HEADS * 128
                                   + j % 4 * 32) / 16, i + j > 0);
        }
    }

    dsa_wgmma_commit();
    dsa_wgmma_wait<0>();
}


/*
 * Sets the scores of block "at" to minus infinity where there is no key, and
 * stores the maxima of the warp's scores.  A warp has 16 keys, a thread two of
 * them, of HEADS / 4 heads.
 */

template <int HEADS>
static __device__ __forceinline__ void
dsa_narrow_maxima(float (&s)[HEADS / 2], uint32_t at,
    dsa_narrow_shared_t<HEADS> *sh, int group, uint32_t warp, uint32_t lane)
{
    int       i;
    float     x;
    uint32_t  word;

    word = sh->valid[at % 4][warp / 2] >> (warp % 2 * 16 + lane / 4);

#pragma unroll
    for (i = 0; i < HEADS / 2; i++) {
        s[i] = word >> (i / 2 % 2 * 8) & 1 ? s[i] : -INFINITY;
    }

#pragma unroll
    for (i = 0; i < HEADS / 4; i++) {
        x = fmaxf(s[i / 2 * 4 + i % 2], s[i / 2 * 4 + i % 2 + 2]);
        x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 4));
        x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 8));
        x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 16));

        if (lane < 4) {
            sh->max[group][warp][i / 2 * 8 + lane * 2 + i % 2] = x;
        }
    }
}


/* Multiplies the sums of values by the factors f of their heads. */

template <int HEADS>
static __device__ __forceinline__ void
dsa_narrow_rescale(float (&o)[8][HEADS / 2], const float (&f)[HEADS / 4])
{
    int  i, j;

#pragma unroll
    for (i = 0; i < 8; i++) {
#pragma unroll
        for (j = 0; j < HEADS / 2; j++) {
            o[i][j] *= f[j / 4 * 2 + j % 2];
        }
    }
}


/*
 * Raises the references r to the maxima that exceed them by the lag, and
 * rescales the sums of weights and the sums o of values.
 */

template <int HEADS>
static __device__ __forceinline__ void
dsa_narrow_raise(float (&r)[HEADS / 4], float (&sum)[HEADS / 4],
    float (&o)[8][HEADS / 2], const dsa_narrow_shared_t<HEADS> *sh,
    float scale, int group, uint32_t lane)
{
    int    i, n, c;
    float  m[HEADS / 4], f[HEADS / 4], x;

    n = 0;

#pragma unroll
    for (i = 0; i < HEADS / 4; i++) {
        c = i / 2 * 8 + lane % 4 * 2 + i % 2;
        x = fmaxf(fmaxf(sh->max[group][0][c], sh->max[group][1][c]),
                  fmaxf(sh->max[group][2][c], sh->max[group][3][c]));
        x *= scale;
        m[i] = x > r[i] + DSA_PREFILL_LAG ? x : r[i];
        n |= m[i] != r[i];
    }

    if (__any_sync(0xffffffff, n)) {
#pragma unroll
        for (i = 0; i < HEADS / 4; i++) {
            f[i] = dsa_prefill_exp2(r[i] - m[i]);
            sum[i] *= f[i];
            r[i] = m[i];
        }

        dsa_narrow_rescale<HEADS>(o, f);
    }
}


/*
 * Makes weights of the scores, adds them to sum, and stores them transposed:
 * one row for each head, with contiguous keys.  to is the address of the
 * lane's row of a stored 8x8 matrix.
 */

template <int HEADS>
static __device__ __forceinline__ void
dsa_narrow_weights(float (&s)[HEADS / 2], float (&sum)[HEADS / 4],
    const float (&r)[HEADS / 4], float scale, uint32_t to)
{
    int       i, n, c;
    uint32_t  p[HEADS / 4];

#pragma unroll
    for (i = 0; i < HEADS / 4; i++) {
        c = i / 2 * 4 + i % 2 * 2;
        n = i / 2 * 2;
        s[c] = dsa_prefill_exp2(fmaf(s[c], scale, -r[n]));
        s[c + 1] = dsa_prefill_exp2(fmaf(s[c + 1], scale, -r[n + 1]));
        sum[n] += s[c];
        sum[n + 1] += s[c + 1];
        p[i] = dsa_prefill_pack(s[c], s[c + 1]);
    }

    if (HEADS == 8) {
        asm volatile ("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16"
                      " [%0], {%1, %2};"
                      :: "r"(to), "r"(p[0]), "r"(p[1]) : "memory");

    } else {
#pragma unroll
        for (i = 0; i < HEADS / 16; i++) {
            asm volatile ("stmatrix.sync.aligned.m8n8.x4.trans.shared"
                          ".b16 [%0], {%1, %2, %3, %4};"
                          :: "r"(to + i * 16 * 128), "r"(p[i * 4]),
                             "r"(p[i * 4 + 1]), "r"(p[i * 4 + 2]),
                             "r"(p[i * 4 + 3])
                          : "memory");
        }
    }
}


/*
 * Adds the weighted values of block "at" to o, and releases its thirds.  v and
 * p are the descriptors of the ring and of the weights.
 */

template <int HEADS>
static __device__ __forceinline__ void
dsa_narrow_values(float (&o)[8][HEADS / 2], uint64_t v, uint64_t p,
    uint32_t at, dsa_narrow_shared_t<HEADS> *sh)
{
    int       i, j;
    uint32_t  slot;

    dsa_wgmma_fence();

#pragma unroll
    for (i = 0; i < 8; i++) {
        slot = (at * 3 + i / 3) % dsa_narrow_t<HEADS>::ring;

#pragma unroll
        for (j = 0; j < 4; j++) {
            dsa_narrow_mma<1>(o[i], v + (slot * DSA_NARROW_PART
                                         + i % 3 * DSA_PREFILL_SEGMENT
                                         + j * 2048) / 16,
                              p + j * 32 / 16, 1);
        }

        if (i % 3 == 2 || i == 7) {
            dsa_wgmma_commit();
        }
    }

    dsa_wgmma_wait<2>();
    dsa_mbar_arrive(&sh->empty[at * 3 % dsa_narrow_t<HEADS>::ring]);
    dsa_wgmma_wait<1>();
    dsa_mbar_arrive(&sh->empty[(at * 3 + 1) % dsa_narrow_t<HEADS>::ring]);
    dsa_wgmma_wait<0>();
    dsa_mbar_arrive(&sh->empty[(at * 3 + 2) % dsa_narrow_t<HEADS>::ring]);
}


/*
 * Combines the references and sums of both warpgroups, and scales o by its
 * share of the result.
 */

template <int HEADS>
static __device__ __forceinline__ void
dsa_narrow_combine(float (&o)[8][HEADS / 2], const float (&r)[HEADS / 4],
    const float (&sum)[HEADS / 4], dsa_narrow_shared_t<HEADS> *sh,
    uint32_t *met, int group, uint32_t warp, uint32_t lane)
{
    int    i, n, c;
    float  m[HEADS / 4], f[HEADS / 4], x;

#pragma unroll
    for (i = 0; i < HEADS / 4; i++) {
        x = sum[i];
        x += __shfl_xor_sync(0xffffffff, x, 4);
        x += __shfl_xor_sync(0xffffffff, x, 8);
        x += __shfl_xor_sync(0xffffffff, x, 16);

        if (lane < 4) {
            c = i / 2 * 8 + lane * 2 + i % 2;
            sh->sum[group][warp][c] = x;

            if (warp == 0) {
                sh->r[group][c] = r[i];
            }
        }
    }

    dsa_narrow_meet(&sh->met, met);

#pragma unroll
    for (i = 0; i < HEADS / 4; i++) {
        c = i / 2 * 8 + lane % 4 * 2 + i % 2;
        m[i] = fmaxf(sh->r[0][c], sh->r[1][c]);

        x = 0;

#pragma unroll
        for (n = 0; n < 2; n++) {
            x += (sh->sum[n][0][c] + sh->sum[n][1][c] + sh->sum[n][2][c]
                  + sh->sum[n][3][c])
                 * dsa_prefill_exp2(sh->r[n][c] - m[i]);
        }

        f[i] = x > 0 ? dsa_prefill_exp2(r[i] - m[i]) / x : 0;
    }

    dsa_narrow_rescale<HEADS>(o, f);
}


/*
 * Adds o of the other warpgroup to the 256 columns that this one stores.
 * Warpgroup 1 writes 256 columns and then reads, warpgroup 0 the reverse.  The
 * same thread of both warpgroups has the same elements, so these are stored
 * thread by thread.
 */

template <int HEADS>
static __device__ __forceinline__ void
dsa_narrow_merge(float (&o)[8][HEADS / 2], float *merge,
    dsa_narrow_shared_t<HEADS> *sh, uint32_t *met, int group)
{
    int  i, j, n;

#pragma unroll
    for (n = 0; n < 2; n++) {
        if (group != n) {
#pragma unroll
            for (i = 0; i < 4; i++) {
#pragma unroll
                for (j = 0; j < HEADS / 2; j++) {
                    merge[(i * HEADS / 2 + j) * 128 + threadIdx.x % 128] =
                                                      o[n * 4 + i][j];
                }
            }
        }

        dsa_narrow_meet(&sh->met, met);

        if (group == n) {
#pragma unroll
            for (i = 0; i < 4; i++) {
#pragma unroll
                for (j = 0; j < HEADS / 2; j++) {
                    o[n * 4 + i][j] += merge[(i * HEADS / 2 + j) * 128
                                             + threadIdx.x % 128];
                }
            }
        }

        dsa_narrow_meet(&sh->met, met);
    }
}


/*
 * Stores a row, whose 512 columns are first gathered in shared memory:
 * [head][512], 16-byte chunks swizzled by head.
 */

template <int HEADS>
static __device__ __forceinline__ void
dsa_narrow_store(const dsa_prefill_args_t *a, uint32_t row,
    const float (&o)[8][HEADS / 2], float *merge,
    dsa_narrow_shared_t<HEADS> *sh, uint32_t *met, int group, uint32_t warp,
    uint32_t lane)
{
    int          i, j, n, c;
    dsa_bf16_t  *out;

#pragma unroll
    for (i = 0; i < 4; i++) {
#pragma unroll
        for (j = 0; j < HEADS / 8; j++) {
            c = j * 8 + lane % 8;
            n = group * 32 + i * 8 + warp * 2 + lane / 8 % 2;

            asm volatile ("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16"
                          " [%0], {%1, %2};"
                          :: "r"(dsa_smem(merge) + c * 1024
                                 + (n ^ c % 8) * 16),
                             "r"(dsa_prefill_pack(o[group * 4 + i][j * 4],
                                      o[group * 4 + i][j * 4 + 1])),
                             "r"(dsa_prefill_pack(o[group * 4 + i][j * 4 + 2],
                                      o[group * 4 + i][j * 4 + 3]))
                          : "memory");
        }
    }

    dsa_narrow_meet(&sh->met, met);

    for (i = threadIdx.x; i < (int) a->heads * 64; i += 256) {
        out = a->out + ((size_t) row * a->heads + i / 64) * DSA_CUDA_LATENT
              + i % 64 * 8;
        *(uint4 *) out = *(const uint4 *)
                            ((const uint8_t *) merge + i / 64 * 1024
                             + (i % 64 ^ i / 64 % 8) * 16);
    }

    dsa_narrow_meet(&sh->met, met);
}


/* The warpgroups that compute. */

template <int HEADS>
static __device__ __forceinline__ void
dsa_narrow_compute(const dsa_prefill_args_t *a, uint8_t *sq, uint8_t *ring,
    uint8_t *sp, float *merge, dsa_narrow_shared_t<HEADS> *sh, int group)
{
    int       i, j;
    float     o[8][HEADS / 2], s[HEADS / 2], r[HEADS / 4], sum[HEADS / 4];
    uint32_t  row, blocks, block, at, first, q_round, met, lane, warp, to;
    uint64_t  q, k, v, p;

    lane = threadIdx.x % 32;
    warp = threadIdx.x % 128 / 32;

    q = dsa_wgmma_desc(dsa_smem(sq), 1, 16, 1024);
    k = dsa_wgmma_desc(dsa_smem(ring), 1, 16, 1024);
    v = dsa_wgmma_desc(dsa_smem(ring), 1, DSA_PREFILL_SEGMENT, 1024);
    p = dsa_wgmma_desc(dsa_smem(sp) + group * dsa_narrow_t<HEADS>::p, 1, 16,
                       1024);

    /* the address of a lane's row of a stored 8x8 matrix of weights */

    to = dsa_smem(sp) + group * dsa_narrow_t<HEADS>::p
         + (lane / 16 * 8 + lane % 8) * 128
         + ((warp * 2 + lane / 8 % 2) ^ lane % 8) * 16;

    first = 0;
    q_round = 0;
    met = 0;

    for (row = blockIdx.x; row < a->rows; row += gridDim.x) {
        blocks = (dsa_prefill_count(a, row) + DSA_PREFILL_KEYS - 1)
                 / DSA_PREFILL_KEYS;

#pragma unroll
        for (i = 0; i < 8; i++) {
#pragma unroll
            for (j = 0; j < HEADS / 2; j++) {
                o[i][j] = 0;
            }
        }

#pragma unroll
        for (i = 0; i < HEADS / 4; i++) {
            r[i] = DSA_PREFILL_NONE;
            sum[i] = 0;
        }

        if (blocks > 0) {
            dsa_mbar_wait(&sh->q_full, q_round++ % 2);
        }

        for (block = (first + group) % 2; block < blocks; block += 2) {
            at = first + block;

            dsa_narrow_scores<HEADS>(s, k, q, at, sh);
            dsa_narrow_maxima<HEADS>(s, at, sh, group, warp, lane);
            dsa_bar_sync(1 + group, 128);
            dsa_narrow_raise<HEADS>(r, sum, o, sh, a->scale, group, lane);
            dsa_narrow_weights<HEADS>(s, sum, r, a->scale, to);
            dsa_fence_async();
            dsa_bar_sync(1 + group, 128);
            dsa_narrow_values<HEADS>(o, v, p, at, sh);
        }

        if (blocks > 0) {
            dsa_prefill_done(&sh->q_empty);
        }

        first += blocks;

        dsa_narrow_combine<HEADS>(o, r, sum, sh, &met, group, warp, lane);
        dsa_narrow_merge<HEADS>(o, merge, sh, &met, group);
        dsa_narrow_store<HEADS>(a, row, o, merge, sh, &met, group, warp, lane);
    }
}


template <int HEADS>
static __global__ void __launch_bounds__(DSA_NARROW_THREADS, 1)
dsa_narrow_kernel(const __grid_constant__ CUtensorMap q_map,
    const __grid_constant__ dsa_prefill_args_t a)
{
    int                           i, group;
    uint8_t                      *smem, *sq, *sp, *ring, *merge;
    dsa_narrow_shared_t<HEADS>   *sh;
    extern __shared__ uint8_t     dsa_narrow_memory[];

    smem = dsa_narrow_memory
           + (1024 - dsa_smem(dsa_narrow_memory) % 1024) % 1024;
    ring = smem;
    sq = ring + dsa_narrow_t<HEADS>::ring * DSA_NARROW_PART;
    sp = sq + dsa_narrow_t<HEADS>::q;
    merge = sp + 2 * dsa_narrow_t<HEADS>::p;
    sh = (dsa_narrow_shared_t<HEADS> *) (merge + dsa_narrow_t<HEADS>::merge);
    group = threadIdx.x / 128;

    if (threadIdx.x == 0) {
        dsa_mbar_init(&sh->q_full, 1);
        dsa_mbar_init(&sh->q_empty, 8);
        dsa_mbar_init(&sh->met, 256);

        for (i = 0; i < dsa_narrow_t<HEADS>::ring; i++) {
            dsa_mbar_init(&sh->full[i], 129);
            dsa_mbar_init(&sh->empty[i], 128);
        }

        dsa_mbar_fence_init();
    }

    __syncthreads();

    if (group == 2) {
        dsa_regs_less<56>();
        dsa_narrow_load<HEADS>(&a, &q_map, sq, dsa_smem(ring), sh);

    } else {
        dsa_regs_more<224>();

        if (group == 0) {
            dsa_narrow_compute<HEADS>(&a, sq, ring, sp, (float *) merge, sh,
                                      0);

        } else {
            dsa_narrow_compute<HEADS>(&a, sq, ring, sp, (float *) merge, sh,
                                      1);
        }
    }
}


template <int HEADS>
static int
dsa_narrow_run(const dsa_cuda_state_t *state, const dsa_prefill_args_t *a,
    const dsa_bf16_t *q, dsa_stream_t stream)
{
    int          rc;
    CUtensorMap  q_map;

    rc = dsa_prefill_q_map(state, &q_map, q, a, HEADS);
    if (rc != 0) {
        return rc;
    }

    dsa_narrow_kernel<HEADS><<<min(state->processors, a->rows),
                               DSA_NARROW_THREADS, dsa_narrow_smem(HEADS),
                               stream>>>(q_map, *a);

    return cudaGetLastError();
}


template <int HEADS>
static int
dsa_narrow_permit(void)
{
    return dsa_setup_shared(dsa_narrow_kernel<HEADS>, dsa_narrow_smem(HEADS));
}


int
dsa_attention_narrow_setup(void)
{
    int  rc;

    rc = dsa_narrow_permit<8>();
    rc = rc != 0 ? rc : dsa_narrow_permit<16>();

    return rc != 0 ? rc : dsa_narrow_permit<32>();
}


int
dsa_prefill_narrow(const dsa_cuda_state_t *state, const dsa_prefill_args_t *a,
    const dsa_bf16_t *q, dsa_stream_t stream)
{
    if (a->heads <= 8) {
        return dsa_narrow_run<8>(state, a, q, stream);
    }

    if (a->heads <= 16) {
        return dsa_narrow_run<16>(state, a, q, stream);
    }

    return dsa_narrow_run<32>(state, a, q, stream);
}
