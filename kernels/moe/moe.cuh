
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_MOE_CUH_INCLUDED_
#define _DSA_MOE_CUH_INCLUDED_


extern "C" {
#include "moe.h"
}

#include "kernels/core/rows.cuh"


/*
 * Shared by the kernels that run before the experts' products: the choice of
 * the experts of a row, and the checks of arguments.
 */

#define DSA_ROUTE_LEAST      -1e30f


/* Maps floats to unsigned numbers of the same order; v is not -0. */

static __device__ __forceinline__ uint32_t
dsa_route_order(float v)
{
    uint32_t  u;

    u = __float_as_uint(v);

    return u ^ ((int32_t) u < 0 ? 0xffffffff : 0x80000000);
}


/*
 * The index of expert e in shared memory: groups of 32 begin in different
 * banks.
 */

#define dsa_route_at(e)  ((e) + (e) / 32)


/*
 * Returns exp(x), correctly rounded except in rare cases, like expf() of the
 * CPU, because the chosen experts depend on it.  2^f for f in -1/2 .. 1/2 is
 * the sum of the first ten terms of its series, with an error of at most
 * 7e-12.  The constant that is added to f is 1.5 * 2^52, which rounds it to an
 * integer.
 */

static __device__ __forceinline__ float
dsa_route_exp(float x)
{
    double  t, k, f, p;

    t = (double) fminf(fmaxf(x, -110.0f), 110.0f) * 1.4426950408889634;
    k = __dadd_rn(t, 6755399441055744.0);
    f = __dadd_rn(t, -__dadd_rn(k, -6755399441055744.0));

    p = 1.0178086009239699e-7;
    p = fma(p, f, 1.3215486790144307e-6);
    p = fma(p, f, 1.5252733804059841e-5);
    p = fma(p, f, 1.5403530393381608e-4);
    p = fma(p, f, 1.3333558146428443e-3);
    p = fma(p, f, 9.6181291076284772e-3);
    p = fma(p, f, 5.5504108664821580e-2);
    p = fma(p, f, 2.4022650695910072e-1);
    p = fma(p, f, 6.9314718055994531e-1);
    p = fma(p, f, 1.0);

    p = __hiloint2double(__double2hiint(p) + (__double2loint(k) << 20),
                         __double2loint(p));

    return isnan(x) ? x : (float) p;
}


/*
 * Returns 1 / (1 + exp(-x)).  The quotient is computed by Markstein's steps,
 * which round it correctly unless it is subnormal, and unlike the division
 * need no branches.
 */

static __device__ __forceinline__ float
dsa_route_sigmoid(float x)
{
    float  d, q, r;

    d = __fadd_rn(1.0f, dsa_route_exp(-x));

    asm ("rcp.approx.f32 %0, %1;" : "=f"(r) : "f"(d));

    q = __fmaf_rn(__fmaf_rn(-d, r, 1.0f), r, r);
    q = __fmaf_rn(__fmaf_rn(-d, q, 1.0f), r, q);

    return d == INFINITY ? 0.0f : q;
}


/*
 * Computes the sum of the two greatest b of each group, by adjacent lanes.
 * The number of lanes for a group is the greatest power of two with which all
 * groups have lanes.
 */

static __device__ __forceinline__ void
dsa_route_groups(float *group, const float *b, uint32_t groups, uint32_t size,
    uint32_t lanes, uint32_t lane)
{
    float     first, second, f, s, v;
    uint32_t  e, g, i, j, end;

    for (i = 0; i < groups; i += 32 / lanes) {
        g = i + lane / lanes;
        first = -INFINITY;
        second = -INFINITY;
        end = g < groups ? (g + 1) * size : 0;

#pragma unroll 8
        for (e = g * size + lane % lanes; e < end; e += lanes) {
            v = b[dsa_route_at(e)];
            second = fmaxf(second, fminf(first, v));
            first = fmaxf(first, v);
        }

        for (j = lanes / 2; j > 0; j /= 2) {
            f = __shfl_xor_sync(0xffffffff, first, j);
            s = __shfl_xor_sync(0xffffffff, second, j);
            second = fmaxf(fminf(first, f), fmaxf(second, s));
            first = fmaxf(first, f);
        }

        if (g < groups && lane % lanes == 0) {
            group[g] = __fadd_rn(first, second);
        }
    }
}


/*
 * Returns 1 if a group is kept: if fewer than kept others have a greater
 * score, or an equal score and a lower index.
 */

static __device__ __forceinline__ int
dsa_route_kept(const float *group, uint32_t groups, uint32_t kept, uint32_t g)
{
    float     v;
    uint32_t  i, before;

    v = group[g];
    before = 0;

#pragma unroll 8
    for (i = 0; i < groups; i++) {
        before += group[i] > v || (group[i] == v && i < g);
    }

    return before < kept;
}


/*
 * The shared memory of a warp that chooses the experts of a row.  J is the
 * number of experts per lane, and a group has at least two experts.
 */

template <int J>
struct dsa_route_shared_t {
    float   score[33 * J];
    float   biased[33 * J];
    float   group[16 * J];
    int     kept[16 * J];
};


/*
 * A warp loads J values per lane of p [experts].  Lanes beyond the experts
 * compute values that are not used.
 */

template <int J>
static __device__ __forceinline__ void
dsa_route_load(float *v, const float *p, uint32_t experts, uint32_t lane)
{
    int       i;
    uint32_t  e;

#pragma unroll
    for (i = 0; i < J; i++) {
        e = lane + 32 * i;
        v[i] = e < experts ? p[e] : 0;
    }
}


/*
 * Chooses the experts of a row by the logits in [J] and the bias own [J] of
 * each lane.  Lane j < k returns the expert of choice j, and its weight in w.
 * The group of expert e is inverse * e >> 20, which replaces a division.
 */

template <int J>
static __device__ __forceinline__ uint32_t
dsa_route_choose(float *w, dsa_route_shared_t<J> *m, const float *in,
    const float *own, const dsa_router_t *r, uint32_t lanes, uint32_t inverse,
    uint32_t lane)
{
    int       i;
    float     v, b, sum;
    uint32_t  e, j, g, best, at, chosen, order[J];

#pragma unroll
    for (i = 0; i < J; i++) {
        e = lane + 32 * i;
        v = dsa_route_sigmoid(in[i]);
        b = __fadd_rn(v, own[i]);
        b = b > DSA_ROUTE_LEAST ? b : DSA_ROUTE_LEAST;

        m->score[dsa_route_at(e)] = v;
        m->biased[dsa_route_at(e)] = b;
        order[i] = dsa_route_order(b);
    }

    __syncwarp();

    dsa_route_groups(m->group, m->biased, r->groups, r->experts / r->groups,
                     lanes, lane);
    __syncwarp();

    for (g = lane; g < r->groups; g += 32) {
        m->kept[g] = dsa_route_kept(m->group, r->groups, r->groups_kept, g);
    }

    __syncwarp();

#pragma unroll
    for (i = 0; i < J; i++) {
        e = lane + 32 * i;
        g = e < r->experts ? e * inverse >> 20 : 0;
        order[i] = m->kept[g] && e < r->experts ? order[i] : 0;
    }

    sum = 0;
    chosen = 0;

    for (j = 0; j < r->k; j++) {
        best = order[0];

#pragma unroll
        for (i = 1; i < J; i++) {
            best = max(best, order[i]);
        }

        best = __reduce_max_sync(0xffffffff, best);
        at = UINT32_MAX;

#pragma unroll
        for (i = J - 1; i >= 0; i--) {
            at = order[i] == best ? lane + 32 * i : at;
        }

        e = __reduce_min_sync(0xffffffff, at);

#pragma unroll
        for (i = 0; i < J; i++) {
            if (e == lane + 32 * i) {
                order[i] = 0;
            }
        }

        sum = __fadd_rn(sum, m->score[dsa_route_at(e)]);
        chosen = lane == j ? e : chosen;
    }

    v = m->score[dsa_route_at(chosen)];

    if (r->normalize) {
        v = __fdiv_rn(v, sum);
    }

    *w = __fmul_rn(v, r->scale);

    return chosen;
}


/*
 * Host: computes the lanes of a warp for each group, and the factor that
 * replaces a division by the size of a group.
 */

static inline void
dsa_route_split(const dsa_router_t *r, uint32_t *lanes, uint32_t *inverse)
{
    uint32_t  n, size;

    size = r->experts / r->groups;
    *inverse = ((1U << 20) + size - 1) / size;

    for (n = 32; n * r->groups > 32 && n > 1; n /= 2) {
        /* void */
    }

    *lanes = n;
}


/* Host: returns 1 if each row has k experts in the groups that are kept. */

static inline int
dsa_router_ok(const dsa_router_t *r)
{
    return r->groups > 0 && r->experts <= DSA_CUDA_EXPERTS
           && r->experts % r->groups == 0 && r->experts / r->groups >= 2
           && r->groups_kept <= r->groups && r->k > 0
           && r->k <= DSA_CUDA_CHOICES
           && r->k <= r->experts / r->groups * r->groups_kept;
}


/* Host: returns 1 if the plan has room for the pairs of the rows. */

static inline int
dsa_moe_plan_ok(const dsa_moe_plan_t *plan, uint32_t rows, uint32_t k,
    uint32_t experts)
{
    uint64_t  places;

    if (k == 0 || k > DSA_CUDA_CHOICES || experts == 0
        || experts > DSA_CUDA_EXPERTS || plan->align < 8 || plan->align > 128
        || (plan->align & (plan->align - 1)) != 0)
    {
        return 0;
    }

    places = (uint64_t) rows * k + (uint64_t) experts * plan->align;

    return places <= INT32_MAX && places <= plan->places;
}


#endif /* _DSA_MOE_CUH_INCLUDED_ */
