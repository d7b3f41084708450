
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>
#include <string.h>

#include "kernels/core/bf16.h"
#include "kernels/core/exp.h"
#include "kernels/core/simd.h"
#include "moe.h"


#define DSA_USED   -INFINITY
#define DSA_LEAST  -1e30f


/* Returns the index of the greatest of v [n], the lowest of equals. */

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


/* Returns the sum of the two greatest of v [n], n > 1. */

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
            b[i] = DSA_LEAST;       /* a NaN is last, but above DSA_USED */
        }
    }

    for (g = 0; g < r->groups; g++) {
        group[g] = dsa_greatest_two(b + g * size, size);
    }

    for (j = 0; j < r->groups_kept; j++) {
        group[dsa_greatest(group, r->groups)] = DSA_USED;
    }

    for (g = 0; g < r->groups; g++) {
        if (group[g] != DSA_USED) {
            for (i = g * size; i < (g + 1) * size; i++) {
                b[i] = DSA_USED;
            }
        }
    }

    sum = 0;

    for (j = 0; j < r->k; j++) {
        e = dsa_greatest(b, r->experts);
        b[e] = DSA_USED;

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
    const float *bias, size_t tokens, const dsa_router_t *r, float *scratch)
{
    size_t  i;

    for (i = 0; i < tokens; i++) {
        dsa_route_row(expert + i * r->k, weight + i * r->k,
                      logits + i * r->experts, bias, r, scratch);
    }
}


void
dsa_moe_group(uint32_t *pair, uint32_t *offset, const int32_t *expert,
    size_t tokens, uint32_t k, uint32_t experts)
{
    size_t    i;
    uint32_t  e;

    memset(offset, 0, (experts + 1) * sizeof(uint32_t));

    for (i = 0; i < tokens * k; i++) {
        offset[expert[i] + 1]++;
    }

    for (e = 0; e < experts; e++) {
        offset[e + 1] += offset[e];
    }

    for (i = 0; i < tokens * k; i++) {
        pair[offset[expert[i]]++] = (uint32_t) i;
    }

    /*
     * Each start was advanced to its end, which is the start of the next
     * expert.
     */

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


/* Returns the index of the least place above last, or k. */

static uint32_t
dsa_moe_next(const int32_t *place, uint32_t k, int32_t last)
{
    uint32_t  i, next;

    for (i = 0, next = k; i < k; i++) {
        if (place[i] > last && (next == k || place[i] < place[next])) {
            next = i;
        }
    }

    return next;
}


DSA_CLONES void
dsa_moe_combine(float *y, const float *x, const float *shared,
    const float *weight, const int32_t *place, size_t tokens, uint32_t k,
    size_t cols, int bf16)
{
    float         w;
    size_t        t, j;
    int32_t       last;
    uint32_t      i, n;
    const float  *from;

    for (t = 0; t < tokens; t++) {
        memset(y, 0, cols * sizeof(float));

        for (n = 0, last = -1; n < k; n++) {
            i = dsa_moe_next(place, k, last);

            if (i == k) {
                break;
            }

            last = place[i];
            w = weight[i];
            from = x + (size_t) last * cols;

            for (j = 0; j < cols; j++) {
                y[j] += w * from[j];
            }
        }

        if (shared != NULL) {
            for (j = 0; j < cols; j++) {
                y[j] += shared[t * cols + j];
            }
        }

        if (bf16) {
            dsa_bf16_round_rows(y, cols);
        }

        y += cols;
        weight += k;
        place += k;
    }
}


DSA_CLONES void
dsa_swiglu(float *y, const float *gate, const float *up, size_t n, int bf16)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        y[i] = gate[i] / (1.0f + dsa_exp(-gate[i])) * up[i];
    }

    if (bf16) {
        dsa_bf16_round_rows(y, n);
    }
}
