
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ROWS_CUH_INCLUDED_
#define _DSA_ROWS_CUH_INCLUDED_


#include "hopper.cuh"


/*
 * Shared by the ops that are limited by memory.  A thread moves chunks of 8
 * elements, 16 bytes of bf16.  Sums and products use intrinsics that are never
 * contracted to fma, so that values are rounded where the CPU twins round
 * them.
 */

#define DSA_CHUNK           8
#define DSA_GROUP           128     /* columns of an FP8 scale */
#define DSA_GROUP_LANES     (DSA_GROUP / DSA_CHUNK)
#define DSA_FP8_LEAST       1e-4f
#define DSA_FP8_MAX         448.0f


static __device__ __forceinline__ uint4
dsa_load16(const void *p)
{
    return *(const uint4 *) p;
}


static __device__ __forceinline__ void
dsa_store16(void *p, uint4 u)
{
    *(uint4 *) p = u;
}


/* bf16: the low half of a word is the first of two elements */

static __device__ __forceinline__ void
dsa_unpack2(float *v, uint32_t u)
{
    v[0] = __uint_as_float(u << 16);
    v[1] = __uint_as_float(u & 0xffff0000);
}


static __device__ __forceinline__ void
dsa_unpack8(float *v, uint4 u)
{
    dsa_unpack2(v, u.x);
    dsa_unpack2(v + 2, u.y);
    dsa_unpack2(v + 4, u.z);
    dsa_unpack2(v + 6, u.w);
}


static __device__ __forceinline__ uint32_t
dsa_pack2(const float *v)
{
    __nv_bfloat162  b;

    b = __floats2bfloat162_rn(v[0], v[1]);

    return *(uint32_t *) &b;
}


static __device__ __forceinline__ uint4
dsa_pack8(const float *v)
{
    return make_uint4(dsa_pack2(v), dsa_pack2(v + 2), dsa_pack2(v + 4),
                      dsa_pack2(v + 6));
}


/* Rounds v [n] to the nearest bf16, in place; n is even. */

template <int N>
static __device__ __forceinline__ void
dsa_round_bf16(float *v)
{
    int  i;

#pragma unroll
    for (i = 0; i < N; i += 2) {
        dsa_unpack2(v + i, dsa_pack2(v + i));
    }
}


/* Returns the e4m3 codes of 4 floats, the first in the lowest byte. */

static __device__ __forceinline__ uint32_t
dsa_e4m3x4(float a, float b, float c, float d)
{
    uint32_t  lo, hi;

    lo = __nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE,
                                  __NV_E4M3);
    hi = __nv_cvt_float2_to_fp8x2(make_float2(c, d), __NV_SATFINITE,
                                  __NV_E4M3);

    return lo | hi << 16;
}


/* Returns the e4m3 codes of 8 floats times r. */

static __device__ __forceinline__ uint2
dsa_e4m3x8(const float *v, float r)
{
    return make_uint2(dsa_e4m3x4(__fmul_rn(v[0], r), __fmul_rn(v[1], r),
                                 __fmul_rn(v[2], r), __fmul_rn(v[3], r)),
                      dsa_e4m3x4(__fmul_rn(v[4], r), __fmul_rn(v[5], r),
                                 __fmul_rn(v[6], r), __fmul_rn(v[7], r)));
}


/* Returns the exact values of two codes, the lower byte first. */

static __device__ __forceinline__ float2
dsa_e4m3x2_float(uint32_t codes)
{
    __half2_raw  h;

    h = __nv_cvt_fp8x2_to_halfraw2((__nv_fp8x2_storage_t) codes, __NV_E4M3);

    return __half22float2(__half2(h));
}


/* Returns the values of 8 codes times s, rounded to bf16. */

static __device__ __forceinline__ uint4
dsa_e4m3x8_bf16(uint2 codes, float s)
{
    int       i;
    float     v[8];
    float2    f;
    uint32_t  u;

#pragma unroll
    for (i = 0; i < 4; i++) {
        u = i < 2 ? codes.x : codes.y;
        f = dsa_e4m3x2_float(i % 2 == 0 ? u & 0xffff : u >> 16);
        v[2 * i] = __fmul_rn(f.x, s);
        v[2 * i + 1] = __fmul_rn(f.y, s);
    }

    return dsa_pack8(v);
}


/*
 * Returns the greatest |v| of N values in each of LANES adjacent lanes, in all
 * of these lanes.
 */

template <int N, int LANES>
static __device__ __forceinline__ float
dsa_amax(const float *v)
{
    int    i;
    float  a;

    a = fabsf(v[0]);

#pragma unroll
    for (i = 1; i < N; i++) {
        a = fmaxf(a, fabsf(v[i]));
    }

#pragma unroll
    for (i = LANES / 2; i > 0; i >>= 1) {
        a = fmaxf(a, __shfl_xor_sync(0xffffffff, a, i));
    }

    return a;
}


/* Returns dsa_fp8_scale() of a group whose greatest |x| is amax. */

static __device__ __forceinline__ float
dsa_scale(float amax)
{
    return __fdiv_rn(fmaxf(amax, DSA_FP8_LEAST), DSA_FP8_MAX);
}


/*
 * Returns the reciprocal of a ue8m0 scale, 2^-126 .. 2^127, for which x / s
 * and x * (1 / s) are equal.  The reciprocal of 2^127, the scale of a group
 * with an infinity, is denormal.
 */

static __device__ __forceinline__ float
dsa_reciprocal(float s)
{
    return __uint_as_float(max((254U << 23) - __float_as_uint(s), 1U << 22));
}


/*
 * Returns v / s, correctly rounded, for a finite s of dsa_scale() and its
 * reciprocal r.  Unlike the division, these steps of Markstein need no
 * branches.  The sign is copied because the sum makes +0 of -0.
 */

static __device__ __forceinline__ float
dsa_quotient(float v, float s, float r)
{
    float  q;

    q = __fmul_rn(v, r);

    return copysignf(__fmaf_rn(__fmaf_rn(-q, s, v), r, q), v);
}


/*
 * Quantizes a rounded chunk at column col of a row: writes its codes, and in
 * the first lane of a group the scale, which is a power of two with UE8M0.
 * All lanes of a warp call it; those with live 0 write nothing.
 */

template <int UE8M0>
static __device__ __forceinline__ void
dsa_quantize_chunk(const dsa_fp8_rows_t *q, const float *v, size_t row,
    uint32_t col, uint32_t cols, int live)
{
    int    i;
    float  s, r, x[DSA_CHUNK];
    uint2  codes;

    s = dsa_scale(dsa_amax<DSA_CHUNK, DSA_GROUP_LANES>(v));

    if (UE8M0) {
        s = dsa_float_ue8m0(s);
    }

    if (!live) {
        return;
    }

    if (UE8M0) {
        codes = dsa_e4m3x8(v, dsa_reciprocal(s));

    } else {
        r = __frcp_rn(s);

#pragma unroll
        for (i = 0; i < DSA_CHUNK; i++) {
            x[i] = dsa_quotient(v[i], s, r);
        }

        codes = dsa_e4m3x8(x, 1.0f);
    }

    *(uint2 *) (q->q + row * cols + col) = codes;

    if (col % DSA_GROUP == 0) {
        q->scale[col / DSA_GROUP * q->ld + row] = s;
    }
}


/* Quantizes a rounded chunk with a given scale, which is a finite number. */

static __device__ __forceinline__ void
dsa_quantize_chunk_by(const dsa_fp8_rows_t *q, const float *v, size_t row,
    uint32_t col, uint32_t cols, int live, float s)
{
    int    i;
    float  x[DSA_CHUNK];

    if (!live) {
        return;
    }

#pragma unroll
    for (i = 0; i < DSA_CHUNK; i++) {
        x[i] = __fdiv_rn(v[i], s);
    }

    *(uint2 *) (q->q + row * cols + col) = dsa_e4m3x8(x, 1.0f);

    if (col % DSA_GROUP == 0) {
        q->scale[col / DSA_GROUP * q->ld + row] = s;
    }
}


/*
 * A kernel that dsa_launch() starts may run before earlier kernels of the
 * stream have ended.  dsa_begin() waits until they have ended and their writes
 * are visible, so it must be called before any access to memory, except loads
 * of weights, which are constant.  Then it permits the next kernel to start.
 */

static __device__ __forceinline__ void
dsa_begin(void)
{
    asm volatile ("griddepcontrol.wait;" ::: "memory");
    asm volatile ("griddepcontrol.launch_dependents;");
}


/*
 * Host: starts a kernel that begins with dsa_begin().  Its launch, which is
 * most of the time of a small kernel, overlaps with the previous kernel.
 * cluster: blocks of a cluster.
 */

template <typename... P, typename... A>
static int
dsa_launch_cluster(void (*kernel)(P...), dim3 grid, uint32_t cluster,
    dim3 threads, size_t smem, dsa_stream_t stream, A... args)
{
    cudaLaunchConfig_t   conf = { 0 };
    cudaLaunchAttribute  attr[2];

    attr[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attr[0].val.programmaticStreamSerializationAllowed = 1;
    attr[1].id = cudaLaunchAttributeClusterDimension;
    attr[1].val.clusterDim.x = cluster;
    attr[1].val.clusterDim.y = 1;
    attr[1].val.clusterDim.z = 1;

    conf.gridDim = grid;
    conf.blockDim = threads;
    conf.dynamicSmemBytes = smem;
    conf.stream = stream;
    conf.attrs = attr;
    conf.numAttrs = cluster > 1 ? 2 : 1;

    return cudaLaunchKernelEx(&conf, kernel, args...);
}


template <typename... P, typename... A>
static int
dsa_launch(void (*kernel)(P...), dim3 grid, dim3 threads, size_t smem,
    dsa_stream_t stream, A... args)
{
    return dsa_launch_cluster(kernel, grid, 1, threads, smem, stream,
                              args...);
}


/* Host: returns 1 if p is aligned to 16 bytes. */

static inline int
dsa_aligned16(const void *p)
{
    return ((uintptr_t) p & 15) == 0;
}


/* Host: returns 1 if rows of e4m3 and their scales can be written to q. */

static inline int
dsa_fp8_rows_ok(const dsa_fp8_rows_t *q, uint32_t rows, uint32_t cols)
{
    return dsa_aligned16(q->q) && dsa_aligned16(q->scale) && q->ld % 4 == 0
           && q->ld >= rows && cols % DSA_GROUP == 0;
}


/*
 * Checks rows of cols bytes that an op copies from x [x_rows] to y [y_rows].
 * BF16 rows have no scales.
 */

static inline int
dsa_copy_rows_ok(const dsa_fp8_rows_t *y, uint32_t y_rows,
    const dsa_fp8_rows_t *x, uint32_t x_rows, uint32_t cols)
{
    if (x->scale == NULL && y->scale == NULL) {
        return dsa_aligned16(x->q) && dsa_aligned16(y->q) && cols % 16 == 0;
    }

    return x->scale != NULL && y->scale != NULL
           && dsa_fp8_rows_ok(y, y_rows, cols)
           && dsa_fp8_rows_ok(x, x_rows, cols);
}


#endif /* _DSA_ROWS_CUH_INCLUDED_ */
