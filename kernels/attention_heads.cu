
/*
 * Copyright (C) The nginx-dsa authors
 */


extern "C" {
#include "kernels/attention.h"
}

#include "kernels/hopper.cuh"
#include "kernels/setup.cuh"


/*
 * MHA prefill.  A block computes 128 rows of one head against tiles of 128
 * keys.  Two warpgroups have 64 rows each; another warp loads two tiles of
 * keys (128 nope columns and the shared 64 rope columns) and two tiles of
 * values ahead.  Tiles are stored in shared memory as segments of 64 columns,
 * 128 swizzled bytes a row.
 *
 * There are two passes over the keys.  The first computes the maximum and the
 * sum of exponentials of each row.  The second computes the scores again,
 * weighs the values with the normalized bf16 probabilities, and never rescales
 * a sum.  In the first pass the tensor cores compute the next scores of a
 * warpgroup while it computes the exponentials of the last ones.  In the
 * second pass there are not enough registers for that, and the tensor cores
 * work for the other warpgroup meanwhile.
 *
 * The columns of a row belong to four threads.  Each keeps its own maximum and
 * sum until the end of the first pass.
 */

#define DSA_HEADS_ROWS      128
#define DSA_HEADS_KEYS      128
#define DSA_HEADS_QK        192
#define DSA_HEADS_THREADS   384

#define DSA_HEADS_SEGMENT   (DSA_HEADS_KEYS * 128)
#define DSA_HEADS_K         (3 * DSA_HEADS_SEGMENT)
#define DSA_HEADS_V         (2 * DSA_HEADS_SEGMENT)
#define DSA_HEADS_SMEM      (3 * DSA_HEADS_SEGMENT + 2 * DSA_HEADS_K          \
                             + 2 * DSA_HEADS_V + 1024 + 128)


typedef struct {
    uint64_t            q_full;
    uint64_t            k_full[2];
    uint64_t            k_empty[2];
    uint64_t            v_full[2];
    uint64_t            v_empty[2];
} dsa_heads_bars_t;


typedef struct {
    dsa_bf16_t         *out;
    const uint32_t     *mask;
    size_t              ld_mask;
    uint32_t            start;
    uint32_t            rows;
    uint32_t            heads;
    float               scale;          /* times log2(e) */
} dsa_heads_args_t;


#define dsa_heads_d8(d, i)                                                    \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]),               \
    "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])

#define dsa_heads_d64(d)                                                      \
    dsa_heads_d8(d, 0), dsa_heads_d8(d, 8), dsa_heads_d8(d, 16),              \
    dsa_heads_d8(d, 24), dsa_heads_d8(d, 32), dsa_heads_d8(d, 40),            \
    dsa_heads_d8(d, 48), dsa_heads_d8(d, 56)

#define DSA_HEADS_D64                                                         \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, "  \
    "%30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, "  \
    "%44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, "  \
    "%58, %59, %60, %61, %62, %63}"


/* d [64, 128] (+)= a b^T, both of shared memory, 16 columns. */

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


/* d [64, 128] += a b, a in registers, the rows of b are 16 keys. */

static __device__ __forceinline__ void
dsa_heads_mma_pv(float (&d)[64], const uint32_t *a, uint64_t b)
{
    asm volatile ("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
                  DSA_HEADS_D64 ", {%64, %65, %66, %67}, %68, 1, 1, 1, 1;\n"
                  : dsa_heads_d64(d)
                  : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}


static __device__ __forceinline__ float
dsa_heads_exp2(float x)
{
    float  y;

    asm ("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));

    return y;
}


static __device__ __forceinline__ uint32_t
dsa_heads_pack(float low, float high)
{
    uint32_t  v;

    asm ("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(high), "f"(low));

    return v;
}


/* Starts computing the scores of 64 rows and a tile of keys. */

static __device__ __forceinline__ void
dsa_heads_score(float (&s)[64], uint64_t q, uint64_t k)
{
    int  i, j;

    dsa_wgmma_fence();

#pragma unroll
    for (i = 0; i < 3; i++) {

#pragma unroll
        for (j = 0; j < 4; j++) {
            dsa_heads_mma_qk(s, q + (i * DSA_HEADS_SEGMENT + j * 32) / 16,
                             k + (i * DSA_HEADS_SEGMENT + j * 32) / 16,
                             i + j > 0);
        }
    }

    dsa_wgmma_commit();
}


/* A thread's two rows. */

typedef struct {
    uint32_t            position[2];
    const uint32_t     *mask[2];        /* NULL: up to the position */
    uint32_t            words;
} dsa_heads_rows_t;


/*
 * The keys of a tile that two rows attend to, as bits: 32 in a word, from the
 * thread's own first column on.  They are loaded before the scores are
 * complete.
 */

static __device__ __forceinline__ void
dsa_heads_bits(uint32_t (&w)[8], const dsa_heads_rows_t *r, uint32_t first,
    int masked, int causal)
{
    int       i, n;
    uint32_t  at;

    if (!masked && !causal) {
        return;
    }

#pragma unroll
    for (i = 0; i < 8; i++) {
        n = i / 4;
        at = first / 32 + i % 4;
        w[i] = 0xffffffff;

        if (masked) {
            w[i] = at < r->words ? __ldg(r->mask[n] + at) : 0;
        }
    }

    if (causal) {
#pragma unroll
        for (i = 0; i < 8; i++) {
            n = (int) (r->position[i / 4] + 1 - (first + i % 4 * 32));
            w[i] &= n <= 0 ? 0 : n < 32 ? (1u << n) - 1 : 0xffffffff;
        }
    }
}


/* Sets the scores of all other keys to -inf. */

static __device__ __forceinline__ void
dsa_heads_select(float (&s)[64], uint32_t (&w)[8], int masked, int causal)
{
    int  i;

    if (!masked && !causal) {
        return;
    }

#pragma unroll
    for (i = 0; i < 8; i++) {
        w[i] >>= threadIdx.x % 4 * 2;
    }

#pragma unroll
    for (i = 0; i < 64; i++) {
        s[i] = w[i / 2 % 2 * 4 + i / 16] & 1u << (i / 4 % 4 * 8 + i % 2)
               ? s[i] : -INFINITY;
    }
}


/* Adds a tile to the maxima and sums of a thread's two rows. */

static __device__ __forceinline__ void
dsa_heads_stat(const float (&s)[64], float (&max)[2], float (&sum)[2],
    float scale)
{
    int    i, n;
    float  m, c, part[2];

#pragma unroll
    for (n = 0; n < 2; n++) {
        m = max[n];

#pragma unroll
        for (i = 0; i < 16; i++) {
            m = fmaxf(m, fmaxf(s[i * 4 + n * 2], s[i * 4 + n * 2 + 1]));
        }

        c = m * scale;
        sum[n] *= dsa_heads_exp2((max[n] - m) * scale);
        max[n] = m;

        part[0] = 0;
        part[1] = 0;

#pragma unroll
        for (i = 0; i < 16; i++) {
            part[0] += dsa_heads_exp2(fmaf(s[i * 4 + n * 2], scale, -c));
            part[1] += dsa_heads_exp2(fmaf(s[i * 4 + n * 2 + 1], scale, -c));
        }

        sum[n] += part[0] + part[1];
    }
}


/* Arguments of both passes. */

typedef struct {
    uint64_t            q;
    uint64_t            k;
    uint64_t            v;
    dsa_heads_bars_t   *bars;
    dsa_heads_rows_t    rows;
    uint32_t            tiles;
    uint32_t            causal;         /* the first tile that has a key beyond
                                           a row of the warpgroup */
    int                 masked;
    float               scale;
} dsa_heads_work_t;


/* Starts computing the scores of the tile that is loaded as number at. */

static __device__ __forceinline__ void
dsa_heads_start(float (&s)[64], const dsa_heads_work_t *w, uint32_t at)
{
    dsa_mbar_wait(&w->bars->k_full[at % 2], at / 2 % 2);
    dsa_heads_score(s, w->q, w->k + at % 2 * (DSA_HEADS_K / 16));
}


/* The keys of the i-th tile that the rows attend to. */

static __device__ __forceinline__ void
dsa_heads_ahead(uint32_t (&bits)[8], const dsa_heads_work_t *w, uint32_t i)
{
    dsa_heads_bits(bits, &w->rows, i * DSA_HEADS_KEYS, w->masked,
                   i >= w->causal);
}


/* Arrives at a barrier once for a warp, after all its threads are here. */

static __device__ __forceinline__ void
dsa_heads_done(uint64_t *bar)
{
    __syncwarp();

    if (threadIdx.x % 32 == 0) {
        dsa_mbar_arrive(bar);
    }
}


/* Processes the i-th tile of the first pass; its scores are in s. */

static __device__ __forceinline__ void
dsa_heads_first(float (&s)[64], float (&max)[2], float (&sum)[2],
    uint32_t (&bits)[8], const dsa_heads_work_t *w, uint32_t i)
{
    dsa_heads_done(&w->bars->k_empty[i % 2]);
    dsa_heads_select(s, bits, w->masked, i >= w->causal);
    dsa_heads_stat(s, max, sum, w->scale);
}


/*
 * Processes the i-th tile of the second pass: starts the product with the
 * values.
 */

static __device__ __forceinline__ void
dsa_heads_second(float (&s)[64], float (&o)[64], const float (&shift)[2],
    uint32_t (&bits)[8], const dsa_heads_work_t *w, uint32_t i)
{
    int       j, n;
    uint32_t  p[32];

    dsa_heads_select(s, bits, w->masked, i >= w->causal);

#pragma unroll
    for (j = 0; j < 32; j++) {
        n = j % 2;
        p[j] = dsa_heads_pack(
                   dsa_heads_exp2(fmaf(s[j * 2], w->scale, -shift[n])),
                   dsa_heads_exp2(fmaf(s[j * 2 + 1], w->scale, -shift[n])));
    }

    dsa_mbar_wait(&w->bars->v_full[i % 2], i / 2 % 2);
    dsa_wgmma_fence();

#pragma unroll
    for (j = 0; j < DSA_HEADS_KEYS / 16; j++) {
        dsa_heads_mma_pv(o, p + j * 4, w->v + i % 2 * (DSA_HEADS_V / 16)
                                       + j * (2048 / 16));
    }

    dsa_wgmma_commit();
}


static __device__ __forceinline__ void
dsa_heads_copy(uint8_t *k, uint8_t *v, const CUtensorMap *kv_map,
    const CUtensorMap *rope_map, dsa_heads_bars_t *bars, uint32_t head,
    uint32_t tiles)
{
    int       j;
    uint32_t  i, key, stage;

    for (i = 0; i < 2 * tiles; i++) {
        stage = i % 2;
        key = (i < tiles ? i : i - tiles) * DSA_HEADS_KEYS;

        dsa_mbar_wait(&bars->k_empty[stage], (i / 2 + 1) % 2);
        dsa_mbar_arrive_expect(&bars->k_full[stage], DSA_HEADS_K);

        for (j = 0; j < 2; j++) {
            dsa_tma_load_3d(k + stage * DSA_HEADS_K + j * DSA_HEADS_SEGMENT,
                            kv_map, &bars->k_full[stage], j * 64,
                            (int) head, (int) key);
        }

        dsa_tma_load_2d(k + stage * DSA_HEADS_K + 2 * DSA_HEADS_SEGMENT,
                        rope_map, &bars->k_full[stage], DSA_CUDA_LATENT,
                        (int) key);

        if (i < tiles) {
            continue;
        }

        stage = (i - tiles) % 2;

        dsa_mbar_wait(&bars->v_empty[stage], ((i - tiles) / 2 + 1) % 2);
        dsa_mbar_arrive_expect(&bars->v_full[stage], DSA_HEADS_V);

        for (j = 0; j < 2; j++) {
            dsa_tma_load_3d(v + stage * DSA_HEADS_V + j * DSA_HEADS_SEGMENT,
                            kv_map, &bars->v_full[stage],
                            DSA_CUDA_NOPE + j * 64, (int) head, (int) key);
        }
    }
}


static __global__ void __launch_bounds__(DSA_HEADS_THREADS, 1)
dsa_heads_kernel(const __grid_constant__ CUtensorMap q_map,
    const __grid_constant__ CUtensorMap kv_map,
    const __grid_constant__ CUtensorMap rope_map, dsa_heads_args_t a)
{
    int                         j, n;
    float                       max[2], sum[2], shift[2], c;
    uint8_t                    *smem, *sq, *sk, *sv;
    uint32_t                    i, head, row, group, tiles, bits[8];
    dsa_bf16_t                 *out;
    dsa_heads_work_t            w;
    dsa_heads_bars_t           *bars;
    extern __shared__ uint8_t   dsa_heads_smem[];

    smem = dsa_heads_smem + (1024 - dsa_smem(dsa_heads_smem) % 1024) % 1024;
    sq = smem;
    sk = sq + 3 * DSA_HEADS_SEGMENT;
    sv = sk + 2 * DSA_HEADS_K;
    bars = (dsa_heads_bars_t *) (sv + 2 * DSA_HEADS_V);

    /*
     * the longest rows of a head first, so that the last blocks are short ones
     */

    row = (gridDim.x - 1 - blockIdx.x) * DSA_HEADS_ROWS;
    head = blockIdx.y;

    tiles = (a.start + min(row + DSA_HEADS_ROWS, a.rows) + DSA_HEADS_KEYS - 1)
            / DSA_HEADS_KEYS;
    group = threadIdx.x / 128;

    if (threadIdx.x == 0) {
        dsa_mbar_init(&bars->q_full, 1);

        for (j = 0; j < 2; j++) {
            dsa_mbar_init(&bars->k_full[j], 1);
            dsa_mbar_init(&bars->v_full[j], 1);
            dsa_mbar_init(&bars->k_empty[j], 8);
            dsa_mbar_init(&bars->v_empty[j], 8);
        }

        dsa_mbar_fence_init();
    }

    __syncthreads();

    if (group == 2) {
        dsa_regs_less<24>();

        if (threadIdx.x == 256) {
            dsa_mbar_arrive_expect(&bars->q_full, 3 * DSA_HEADS_SEGMENT);

            for (j = 0; j < 3; j++) {
                dsa_tma_load_3d(sq + j * DSA_HEADS_SEGMENT, &q_map,
                                &bars->q_full, j * 64, (int) head, (int) row);
            }

            dsa_heads_copy(sk, sv, &kv_map, &rope_map, bars, head, tiles);
        }

    } else {
        float  s[64], t[64], o[64];

        dsa_regs_more<240>();

        w.q = dsa_wgmma_desc(dsa_smem(sq) + group * 64 * 128, 1, 16, 1024);
        w.k = dsa_wgmma_desc(dsa_smem(sk), 1, 16, 1024);
        w.v = dsa_wgmma_desc(dsa_smem(sv), 1, DSA_HEADS_SEGMENT, 1024);
        w.bars = bars;
        w.tiles = tiles;
        w.causal = (a.start + row + group * 64 + 1) / DSA_HEADS_KEYS;
        w.masked = a.mask != NULL;
        w.scale = a.scale;
        w.rows.words = (uint32_t) min(a.ld_mask, (size_t) UINT32_MAX);

        row += group * 64 + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;

        for (n = 0; n < 2; n++) {
            w.rows.position[n] = a.start + row + n * 8;
            w.rows.mask[n] = a.mask + min(row + n * 8, a.rows - 1) * a.ld_mask;
            max[n] = -1e30f;
            sum[n] = 0;
        }

        dsa_mbar_wait(&bars->q_full, 0);

        /*
         * s and t alternate, because wgmma's registers must not depend on a
         * branch
         */

        dsa_heads_start(s, &w, 0);

        for (i = 0; i + 2 < tiles; i += 2) {
            dsa_heads_start(t, &w, i + 1);
            dsa_heads_ahead(bits, &w, i);
            dsa_wgmma_wait<1>();
            dsa_heads_first(s, max, sum, bits, &w, i);
            dsa_heads_start(s, &w, i + 2);
            dsa_heads_ahead(bits, &w, i + 1);
            dsa_wgmma_wait<1>();
            dsa_heads_first(t, max, sum, bits, &w, i + 1);
        }

        if (i + 1 < tiles) {
            dsa_heads_start(t, &w, i + 1);
            dsa_heads_ahead(bits, &w, i);
            dsa_wgmma_wait<1>();
            dsa_heads_first(s, max, sum, bits, &w, i);
            dsa_heads_ahead(bits, &w, i + 1);
            dsa_wgmma_wait<0>();
            dsa_heads_first(t, max, sum, bits, &w, i + 1);

        } else {
            dsa_heads_ahead(bits, &w, i);
            dsa_wgmma_wait<0>();
            dsa_heads_first(s, max, sum, bits, &w, i);
        }

        /*
         * the four threads of a row agree on p = exp2(score * scale - shift)
         */

#pragma unroll
        for (n = 0; n < 2; n++) {
            c = max[n];
            c = fmaxf(c, __shfl_xor_sync(0xffffffff, c, 1));
            c = fmaxf(c, __shfl_xor_sync(0xffffffff, c, 2));

            sum[n] *= dsa_heads_exp2((max[n] - c) * a.scale);
            sum[n] += __shfl_xor_sync(0xffffffff, sum[n], 1);
            sum[n] += __shfl_xor_sync(0xffffffff, sum[n], 2);

            shift[n] = sum[n] > 0 ? fmaf(c, a.scale, log2f(sum[n])) : 0;
        }

#pragma unroll
        for (j = 0; j < 64; j++) {
            o[j] = 0;
        }

        dsa_heads_start(s, &w, tiles);
        dsa_heads_ahead(bits, &w, 0);
        dsa_wgmma_wait<0>();
        dsa_heads_done(&bars->k_empty[tiles % 2]);

        for (i = 0; i + 1 < tiles; i++) {
            dsa_heads_second(s, o, shift, bits, &w, i);
            dsa_heads_start(s, &w, tiles + i + 1);
            dsa_heads_ahead(bits, &w, i + 1);
            dsa_wgmma_wait<0>();
            dsa_heads_done(&bars->v_empty[i % 2]);
            dsa_heads_done(&bars->k_empty[(tiles + i + 1) % 2]);
        }

        dsa_heads_second(s, o, shift, bits, &w, i);
        dsa_wgmma_wait<0>();

#pragma unroll
        for (n = 0; n < 2; n++) {
            if (row + n * 8 >= a.rows) {
                continue;
            }

            out = a.out + ((size_t) (row + n * 8) * a.heads + head)
                          * DSA_CUDA_NOPE + threadIdx.x % 4 * 2;

#pragma unroll
            for (j = 0; j < 16; j++) {
                *(uint32_t *) (out + j * 8) =
                              dsa_heads_pack(o[j * 4 + n * 2],
                                             o[j * 4 + n * 2 + 1]);
            }
        }
    }
}


int
dsa_attention_heads_setup(void)
{
    return dsa_setup_shared(dsa_heads_kernel, DSA_HEADS_SMEM);
}


extern "C" int
dsa_cuda_attention_heads(const dsa_cuda_state_t *state, dsa_bf16_t *out,
    const dsa_bf16_t *q, const dsa_bf16_t *kv, const dsa_bf16_t *latents,
    const uint32_t *mask, size_t ld_mask, uint32_t start, uint32_t rows,
    uint32_t heads, float scale, dsa_stream_t stream)
{
    int               rc;
    uint32_t          keys, box[3];
    uint64_t          dim[3], stride[2];
    CUtensorMap       q_map, kv_map, rope_map;
    dsa_heads_args_t  a;

    if (rows == 0) {
        return 0;
    }

    if (heads < 1 || heads > 128 || rows > INT32_MAX
        || start > INT32_MAX - rows || !(scale > 0))
    {
        return cudaErrorInvalidValue;
    }

    keys = start + rows;

    box[0] = 64;
    box[1] = 1;
    box[2] = DSA_HEADS_ROWS;
    dim[0] = DSA_HEADS_QK;
    dim[1] = heads;
    dim[2] = rows;
    stride[0] = DSA_HEADS_QK * sizeof(dsa_bf16_t);
    stride[1] = stride[0] * heads;

    rc = dsa_cuda_tensor_map(state, &q_map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                             3, q, dim, stride, box,
                             CU_TENSOR_MAP_SWIZZLE_128B);
    if (rc != 0) {
        return rc;
    }

    box[2] = DSA_HEADS_KEYS;
    dim[0] = 2 * DSA_CUDA_NOPE;
    dim[2] = keys;
    stride[0] = 2 * DSA_CUDA_NOPE * sizeof(dsa_bf16_t);
    stride[1] = stride[0] * heads;

    rc = dsa_cuda_tensor_map(state, &kv_map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                             3, kv, dim, stride, box,
                             CU_TENSOR_MAP_SWIZZLE_128B);
    if (rc != 0) {
        return rc;
    }

    box[1] = DSA_HEADS_KEYS;
    dim[0] = DSA_CUDA_LATENT + DSA_CUDA_ROPE;
    dim[1] = keys;
    stride[0] = dim[0] * sizeof(dsa_bf16_t);

    rc = dsa_cuda_tensor_map(state, &rope_map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                             2, latents, dim, stride, box,
                             CU_TENSOR_MAP_SWIZZLE_128B);
    if (rc != 0) {
        return rc;
    }

    a.out = out;
    a.mask = mask;
    a.ld_mask = ld_mask;
    a.start = start;
    a.rows = rows;
    a.heads = heads;
    a.scale = scale * 1.44269504088896341f;

    dsa_heads_kernel<<<dim3((rows + DSA_HEADS_ROWS - 1) / DSA_HEADS_ROWS,
                            heads), DSA_HEADS_THREADS, DSA_HEADS_SMEM,
                       stream>>>(q_map, kv_map, rope_map, a);

    return cudaGetLastError();
}
