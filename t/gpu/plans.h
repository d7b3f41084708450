
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Plans of random experts, for the tests of the ops that make and use them.
 */


#ifndef _T_GPU_PLANS_H_INCLUDED_
#define _T_GPU_PLANS_H_INCLUDED_


#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/moe/moe.h"
#include "t/gpu/gpu.h"
#include "t/gpu/rows.h"
#include "t/unit/numbers.h"


/* A plan on the host and one on the device, and the expected content. */

typedef struct {
    dsa_moe_plan_t   device;
    dsa_moe_plan_t   host;
    int32_t         *expert;            /* [rows, k] */
    int32_t         *device_expert;
    uint32_t         rows;
    uint32_t         k;
    uint32_t         experts;
} test_plan_t;


/*
 * Random experts, all different in a row.  If few is below 100 percent, some
 * belong to another GPU.  skew: most rows use the first experts.
 */

static inline void
plan_make(test_plan_t *t, uint32_t rows, uint32_t k, uint32_t experts,
    uint32_t align, uint32_t few, int skew)
{
    size_t           i, n;
    int32_t          e;
    uint32_t         j, at;
    dsa_moe_plan_t  *h, *d;

    h = &t->host;
    d = &t->device;
    n = (size_t) rows * k;

    t->rows = rows;
    t->k = k;
    t->experts = experts;
    t->expert = get(n * 4);

    for (i = 0; i < n; i++) {
        do {
            e = (int32_t) dsa_t_random(skew && dsa_t_random(4)
                                       && experts > 2 * k
                                       ? 2 * k : experts);

            for (j = (uint32_t) (i % k); j > 0; j--) {
                if (t->expert[i - j] == e) {
                    break;
                }
            }

        } while (j > 0);

        t->expert[i] = e;
    }

    for (i = 0; i < n; i++) {
        if (dsa_t_random(100) >= few) {
            t->expert[i] = -1;
        }
    }

    h->align = align;
    h->places = (uint32_t) (n + (size_t) experts * align + align - 1) / align
                * align;
    h->offset = get((experts + 1) * 4);
    h->count = get(experts * 4);
    h->place = get(n * 4);
    h->row = get(h->places * 4);
    memset(h->row, 0xff, h->places * 4);

    *d = *h;
    d->offset = gpu_alloc((experts + 1) * 4);
    d->count = gpu_alloc(experts * 4);
    d->place = gpu_alloc(n * 4);
    d->row = gpu_alloc(h->places * 4);
    t->device_expert = gpu_upload(t->expert, n * 4);

    /* the same by the definition */

    for (i = 0; i < n; i++) {
        if (t->expert[i] >= 0) {
            h->count[t->expert[i]]++;
        }
    }

    for (e = 0, at = 0; e < (int32_t) experts; e++) {
        h->offset[e] = (int32_t) at;
        at += ((uint32_t) h->count[e] + align - 1) / align * align;
    }

    h->offset[experts] = (int32_t) at;
    memset(h->count, 0, experts * 4);

    for (i = 0; i < n; i++) {
        e = t->expert[i];
        h->place[i] = -1;

        if (e >= 0) {
            h->place[i] = h->offset[e] + h->count[e]++;
            h->row[h->place[i]] = (int32_t) (i / k);
        }
    }
}


static inline void
plan_free(test_plan_t *t)
{
    free(t->expert);
    free(t->host.offset);
    free(t->host.count);
    free(t->host.place);
    free(t->host.row);
}


#endif /* _T_GPU_PLANS_H_INCLUDED_ */
