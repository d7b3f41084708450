
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>
#include <string.h>

#include "kernels/bf16.h"
#include "kernels/moe.h"


#define DSA_TAKEN  -INFINITY
#define DSA_LEAST  -1e30f


/* The index of the greatest of v [n], the lowest of equals. */

static uint32_t
dsa_greatest(const float *v, uint32_t n)
{
    uint32_t  i, best;

    best = 0;

    for (i = 1; i < n; i++) {
        if (v[i] > v[best]) {
            best = i;
        }
    }

    return best;
}


/* The sum of the two greatest of v [n], n > 1. */

static float
dsa_greatest_two(const float *v, uint32_t n)
{
    float     first, second;
    uint32_t  i;

    first = v[0] > v[1] ? v[0] : v[1];
    second = v[0] > v[1] ? v[1] : v[0];

    for (i = 2; i < n; i++) {
        if (v[i] > first) {
            second = first;
            first = v[i];

        } else if (v[i] > second) {
            second = v[i];
        }
    }

    return first + second;
}


static void
dsa_route_row(int32_t *expert, float *weight, const float *logits,
    const float *bias, const dsa_router_t *r, float *scratch)
{
    float     sum, *s, *b, *group;
    uint32_t  i, j, g, size, e;

    s = scratch;
    b = s + r->experts;
    group = b + r->experts;
    size = r->experts / r->groups;

    for (i = 0; i < r->experts; i++) {
        s[i] = 1.0f / (1.0f + expf(-logits[i]));
        b[i] = s[i] + bias[i];

        if (!(b[i] > DSA_LEAST)) {
            b[i] = DSA_LEAST;       /* a NaN comes last, but before taken */
        }
    }

    for (g = 0; g < r->groups; g++) {
        group[g] = dsa_greatest_two(b + g * size, size);
    }

    for (j = 0; j < r->groups_kept; j++) {
        group[dsa_greatest(group, r->groups)] = DSA_TAKEN;
    }

    for (g = 0; g < r->groups; g++) {
        if (group[g] != DSA_TAKEN) {
            for (i = g * size; i < (g + 1) * size; i++) {
                b[i] = DSA_TAKEN;
            }
        }
    }

    sum = 0;

    for (j = 0; j < r->k; j++) {
        e = dsa_greatest(b, r->experts);
        b[e] = DSA_TAKEN;

        expert[j] = (int32_t) e;
        weight[j] = s[e];
        sum += s[e];
    }

    for (j = 0; j < r->k; j++) {
        if (r->normalize) {
            weight[j] /= sum;
        }

        weight[j] *= r->scale;
    }
}


void
dsa_route(int32_t *expert, float *weight, const float *logits,
    const float *bias, size_t rows, const dsa_router_t *r, float *scratch)
{
    size_t  i;

    for (i = 0; i < rows; i++) {
        dsa_route_row(expert + i * r->k, weight + i * r->k,
                      logits + i * r->experts, bias, r, scratch);
    }
}


void
dsa_moe_group(uint32_t *pair, uint32_t *offset, const int32_t *expert,
    size_t rows, uint32_t k, uint32_t experts)
{
    size_t    i;
    uint32_t  e;

    memset(offset, 0, (experts + 1) * sizeof(uint32_t));

    for (i = 0; i < rows * k; i++) {
        offset[expert[i] + 1]++;
    }

    for (e = 0; e < experts; e++) {
        offset[e + 1] += offset[e];
    }

    for (i = 0; i < rows * k; i++) {
        pair[offset[expert[i]]++] = (uint32_t) i;
    }

    /* each start has moved to its end, which is the next one's start */

    for (e = experts; e > 0; e--) {
        offset[e] = offset[e - 1];
    }

    offset[0] = 0;
}


void
dsa_moe_gather(float *y, const float *x, const uint32_t *pair, size_t n,
    uint32_t k, size_t cols)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        memcpy(y + i * cols, x + pair[i] / k * cols, cols * sizeof(float));
    }
}


void
dsa_moe_scatter(float *sum, const float *y, const float *weight,
    const uint32_t *pair, size_t n, uint32_t k, size_t cols)
{
    float   w, *to;
    size_t  i, j;

    for (i = 0; i < n; i++) {
        w = weight[pair[i]];
        to = sum + pair[i] / k * cols;

        for (j = 0; j < cols; j++) {
            to[j] += w * y[j];
        }

        y += cols;
    }
}


void
dsa_swiglu(float *y, const float *gate, const float *up, size_t n, int bf16)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        y[i] = gate[i] / (1.0f + expf(-gate[i])) * up[i];
    }

    if (bf16) {
        dsa_bf16_round_rows(y, n);
    }
}
