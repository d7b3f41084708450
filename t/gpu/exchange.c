
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/core/bf16.h"
#include "kernels/sample/random.h"
#include "t/gpu/exchange.h"
#include "t/gpu/gpu.h"
#include "t/unit/numbers.h"


#define GROUP       128             /* columns of a scale */
#define ALIGN       8
#define NOISE       (8 << 20)       /* most bytes of a delay */


static void *
get(size_t size)
{
    void  *p;

    p = calloc(1, size + 1);
    assert_non_null(p);

    return p;
}


void
world_sync(const world_t *w)
{
    uint32_t  r;

    for (r = 0; r < w->ranks; r++) {
        gpu_ok(cudaSetDevice(w->device[r]));
        gpu_sync();
    }
}


void
world_fetch(const world_t *w, uint32_t r, void *p, const void *device,
    size_t size)
{
    gpu_ok(cudaSetDevice(w->device[r]));
    gpu_ok(cudaMemcpy(p, device, size, cudaMemcpyDeviceToHost));
}


void
round_same(const world_t *w, uint32_t r, const void *device, const void *want,
    size_t size, const char *what)
{
    void   *p;
    size_t  i;

    p = get(size);
    world_fetch(w, r, p, device, size);

    if (memcmp(p, want, size) != 0) {
        for (i = 0; ((uint8_t *) p)[i] == ((const uint8_t *) want)[i]; i++) {
            /* the first difference */
        }

        fail_msg("%s of rank %u differs at byte %zu of %zu", what, r, i,
                 size);
    }

    free(p);
}


/* Peer access is enabled once for each pair of GPUs. */

static void
enable_peers(const world_t *w)
{
    int       from, to;
    uint32_t  r, q;

    static int  enabled[RANKS][RANKS];

    for (r = 0; r < w->ranks; r++) {
        from = w->device[r];
        gpu_ok(cudaSetDevice(from));

        for (q = 0; q < w->ranks; q++) {
            to = w->device[q];

            if (to != from && !enabled[from][to]) {
                gpu_ok(cudaDeviceEnablePeerAccess(to, 0));
                enabled[from][to] = 1;
            }
        }
    }
}


void
world_open(world_t *w, uint32_t ranks, int gpus, uint32_t slot, uint32_t cols,
    uint32_t number)
{
    size_t                rows, size;
    uint32_t              r, q;
    dsa_cuda_state_t      state;
    dsa_exchange_state_t  first;

    memset(w, 0, sizeof(*w));
    memset(&first, 0, sizeof(first));

    w->ranks = ranks;
    w->max_slot = slot;
    w->max_cols = cols;
    rows = (ranks * slot + 3) / 4 * 4;

    for (r = 0; r < RANKS; r++) {
        first.flag[r] = number * DSA_EXCHANGE_ONE;
    }

    for (r = 0; r < ranks; r++) {
        w->device[r] = (int) r % gpus;
        gpu_ok(cudaSetDevice(w->device[r]));
        gpu_init(&state);

        gpu_ok(cudaStreamCreateWithFlags(&w->stream[r],
                                         cudaStreamNonBlocking));

        w->x[r].rank = r;
        w->x[r].ranks = ranks;
        w->x[r].processors = state.processors;
        w->x[r].exclusive = gpus >= (int) ranks;
        w->x[r].timeout_ns = 10 * SECOND;

        gpu_ok(cudaHostAlloc((void **) &w->fault[r],
                             sizeof(dsa_exchange_fault_t),
                             cudaHostAllocMapped | cudaHostAllocPortable));
        memset((void *) w->fault[r], 0, sizeof(dsa_exchange_fault_t));
        gpu_ok(cudaHostGetDevicePointer((void **) &w->x[r].fault,
                                        (void *) w->fault[r], 0));

        w->x[0].state[r] = gpu_upload(&first, sizeof(first));
        w->noise[r] = gpu_alloc(NOISE);

        w->to.x[r].q = gpu_alloc(rows * cols);
        w->to.x[r].ld = rows;
        w->to.x[r].scale = gpu_alloc(rows * cols / GROUP * sizeof(float));
        w->to.expert[r] = gpu_alloc(rows * DSA_CUDA_CHOICES * 4);
        w->to.weight[r] = gpu_alloc(rows * DSA_CUDA_CHOICES * 4);
        w->part[r] = gpu_alloc(rows * cols * 2);

        size = dsa_cuda_exchange_part(ranks, slot, cols);
        w->sum_part[r] = gpu_alloc(size);
        gpu_ok(cudaMemset(w->sum_part[r], 0, size));
        w->gathered[r] = gpu_alloc(rows * cols * sizeof(float));
    }

    for (r = 0; r < ranks; r++) {
        for (q = 0; q < ranks; q++) {
            w->x[r].state[q] = w->x[0].state[q];
        }
    }

    enable_peers(w);
    world_sync(w);
}


void
world_close(world_t *w)
{
    uint32_t  r;

    world_sync(w);

    for (r = 0; r < w->ranks; r++) {
        gpu_ok(cudaStreamDestroy(w->stream[r]));
        gpu_ok(cudaFreeHost((void *) w->fault[r]));
    }

    gpu_ok(cudaSetDevice(0));
    assert_int_equal(gpu_free_all(NULL), 0);
}


/* Random bf16 in -scale .. scale. */

static uint16_t *
fill_bf16(size_t n, float scale)
{
    size_t     i;
    uint16_t  *p;

    p = get(n * sizeof(uint16_t));

    for (i = 0; i < n; i++) {
        p[i] = dsa_bf16_encode(dsa_t_uniform() * scale);
    }

    return p;
}


/* k different experts of all for each token; some ids are -1. */

static void
fill_experts(int32_t *expert, uint32_t tokens, uint32_t k, uint32_t all)
{
    int32_t    e;
    uint32_t   i, j, l;

    for (i = 0; i < tokens; i++) {
        for (j = 0; j < k; j++) {
            do {
                e = (int32_t) dsa_t_random(all);

                for (l = 0; l < j && expert[i * k + l] != e; l++) {
                    /* an id that the token has already */
                }
            } while (l < j);

            expert[i * k + j] = e;
        }

        if (dsa_t_random(8) == 0) {
            expert[i * k + dsa_t_random(k)] = -1;
        }
    }
}


static void
fill_member(const world_t *w, round_t *n, uint32_t r, uint32_t tokens)
{
    size_t     i, places, rows;
    member_t  *m;

    m = &n->m[r];
    rows = (size_t) w->ranks * n->slot;
    places = (rows * n->k + n->experts * ALIGN + ALIGN) / ALIGN * ALIGN;

    m->tokens = tokens;
    m->d_x.ld = (tokens + 7) / 4 * 4;

    m->q = get((size_t) tokens * n->cols);
    m->scale = get(n->cols / GROUP * m->d_x.ld * sizeof(float));
    m->expert = get((size_t) tokens * n->k * sizeof(int32_t));
    m->weight = get((size_t) tokens * n->k * sizeof(float));
    m->live = get(tokens * sizeof(int32_t));
    m->own = get((size_t) n->rows * n->wide * sizeof(float));

    for (i = 0; i < (size_t) tokens * n->cols; i++) {
        m->q[i] = (uint8_t) dsa_t_random(256);
    }

    dsa_t_fill(m->scale, n->cols / GROUP * m->d_x.ld, 1);
    dsa_t_fill(m->weight, (size_t) tokens * n->k, 1);
    dsa_t_fill(m->own, (size_t) n->rows * n->wide, 1);
    fill_experts(m->expert, tokens, n->k, n->experts * w->ranks);

    for (i = 0; i < tokens; i++) {
        m->live[i] = dsa_t_random(5) == 0 ? -1 : (int32_t) i;
    }

    m->shared = fill_bf16((size_t) tokens * n->cols, 1);
    m->table = fill_bf16(places * n->cols, 1);
    m->reduce = fill_bf16((size_t) n->rows * n->cols, 1);

    m->place = get(rows * n->k * sizeof(int32_t));
    m->y = get((size_t) tokens * n->cols * 2);
    m->sum = get((size_t) n->rows * n->cols * 2);
    m->gathered = get((size_t) n->rows * n->wide * w->ranks * sizeof(float));

    gpu_ok(cudaSetDevice(w->device[r]));

    m->d_x.q = gpu_upload(m->q, (size_t) tokens * n->cols);
    m->d_x.scale = gpu_upload(m->scale, n->cols / GROUP * m->d_x.ld * 4);
    m->d_expert = gpu_upload(m->expert, (size_t) tokens * n->k * 4);
    m->d_weight = gpu_upload(m->weight, (size_t) tokens * n->k * 4);
    m->d_live = gpu_upload(m->live, tokens * 4);
    m->d_shared = gpu_upload(m->shared, (size_t) tokens * n->cols * 2);
    m->d_table = gpu_upload(m->table, places * n->cols * 2);
    m->d_reduce = gpu_upload(m->reduce, (size_t) n->rows * n->cols * 2);
    m->d_own = gpu_upload(m->own, (size_t) n->rows * n->wide * 4);

    m->plan.places = (uint32_t) places;
    m->plan.align = ALIGN;
    m->plan.offset = gpu_alloc((n->experts + 1) * 4);
    m->plan.count = gpu_alloc(n->experts * 4);
    m->plan.place = gpu_alloc(rows * n->k * 4);
    m->plan.row = gpu_alloc(places * 4);

    m->d_places.ld = places;
    m->d_places.q = gpu_alloc(places * n->cols);
    m->d_places.scale = gpu_alloc(places * (n->cols / GROUP) * 4);
    m->d_y = gpu_alloc((size_t) tokens * n->cols * 2);
    m->d_sum = gpu_alloc((size_t) n->rows * n->cols * 2);
    m->d_gathered = gpu_alloc((size_t) n->rows * n->wide * w->ranks * 4);
}


/* The id among rank q's experts of a row of the exchanged tokens, or -1. */

static int32_t
local_expert(const round_t *n, uint32_t q, size_t row, uint32_t j)
{
    int32_t          e;
    size_t           i;
    const member_t  *m;

    m = &n->m[row / n->slot];
    i = row % n->slot;

    if (i >= m->tokens || m->live[i] < 0) {
        return -1;
    }

    e = m->expert[i * n->k + j] - (int32_t) (q * n->experts);

    return m->expert[i * n->k + j] >= 0 && e >= 0 && e < (int32_t) n->experts
           ? e : -1;
}


static void
expect_places(const world_t *w, round_t *n, uint32_t q)
{
    size_t     row, rows;
    int32_t    at;
    uint32_t   e, j;
    member_t  *m;

    m = &n->m[q];
    rows = (size_t) w->ranks * n->slot;
    at = 0;

    for (row = 0; row < rows * n->k; row++) {
        m->place[row] = -1;
    }

    for (e = 0; e < n->experts; e++) {
        for (row = 0; row < rows; row++) {
            for (j = 0; j < n->k; j++) {
                if (local_expert(n, q, row, j) == (int32_t) e) {
                    m->place[row * n->k + j] = at++;
                }
            }
        }

        at = (at + ALIGN - 1) / ALIGN * ALIGN;
    }
}


/* Rank q's part [cols] of a token's sum; 0: it has no expert of the token. */

static int
expect_part(const round_t *n, uint32_t q, size_t row, float *part)
{
    int              has;
    float            weight;
    int32_t          e;
    uint32_t         j, c;
    const member_t  *m;
    const uint16_t  *y;

    m = &n->m[q];
    has = 0;
    memset(part, 0, n->cols * sizeof(float));

    for (e = 0; e < (int32_t) n->experts; e++) {
        for (j = 0; j < n->k; j++) {
            if (local_expert(n, q, row, j) != e) {
                continue;
            }

            has = 1;
            weight = n->m[row / n->slot].weight[row % n->slot * n->k + j];
            y = m->table + (size_t) m->place[row * n->k + j] * n->cols;

            for (c = 0; c < n->cols; c++) {
                part[c] += weight * dsa_bf16_decode(y[c]);
            }
        }
    }

    return has;
}


static void
expect_sum(const world_t *w, const round_t *n, uint32_t r, size_t row)
{
    float           *sum, *part;
    uint32_t         q, c;
    const member_t  *m;

    m = &n->m[r];
    sum = get(n->cols * sizeof(float));
    part = get(n->cols * sizeof(float));

    for (q = 0; q < w->ranks; q++) {
        if (!expect_part(n, q, (size_t) r * n->slot + row, part)) {
            continue;
        }

        for (c = 0; c < n->cols; c++) {
            sum[c] += dsa_bf16_decode(dsa_bf16_encode(part[c]));
        }
    }

    for (c = 0; c < n->cols; c++) {
        sum[c] += dsa_bf16_decode(m->shared[row * n->cols + c]);
        m->y[row * n->cols + c] = dsa_bf16_encode(sum[c]);
    }

    free(sum);
    free(part);
}


static void
expect(const world_t *w, round_t *n)
{
    float      sum;
    size_t     i, row;
    uint32_t   r, q;
    member_t  *m;

    for (r = 0; r < w->ranks; r++) {
        expect_places(w, n, r);
    }

    for (r = 0; r < w->ranks; r++) {
        m = &n->m[r];

        for (row = 0; row < m->tokens; row++) {
            expect_sum(w, n, r, row);
        }

        for (i = 0; i < (size_t) n->rows * n->cols; i++) {
            sum = 0;

            for (q = 0; q < w->ranks; q++) {
                sum += dsa_bf16_decode(n->m[q].reduce[i]);
            }

            m->sum[i] = dsa_bf16_encode(sum);
        }

        for (row = 0; row < n->rows; row++) {
            for (q = 0; q < w->ranks; q++) {
                memcpy(m->gathered + (row * w->ranks + q) * n->wide,
                       n->m[q].own + row * n->wide,
                       n->wide * sizeof(float));
            }
        }
    }
}


void
round_open(const world_t *w, round_t *n, const uint32_t *tokens)
{
    uint32_t  r;

    for (r = 0; r < w->ranks; r++) {
        fill_member(w, n, r, tokens[r]);
    }

    expect(w, n);

    /* the streams do not wait for the stream that fills the buffers */

    world_sync(w);
}


void
round_close(const world_t *w, round_t *n)
{
    uint32_t   r;
    member_t  *m;

    for (r = 0; r < w->ranks; r++) {
        m = &n->m[r];

        free(m->q);
        free(m->scale);
        free(m->expert);
        free(m->weight);
        free(m->live);
        free(m->shared);
        free(m->table);
        free(m->reduce);
        free(m->own);
        free(m->place);
        free(m->y);
        free(m->sum);
        free(m->gathered);
    }
}


void
round_delay(const world_t *w, uint32_t r, int noisy)
{
    if (noisy && dsa_t_random(4) == 0) {
        gpu_ok(dsa_cuda_random_e4m3(w->noise[r], 1 + dsa_t_random(NOISE), 1,
                                    w->stream[r]));
    }
}


static void
combine(const world_t *w, const round_t *n, uint32_t r)
{
    uint32_t         first, rows;
    dsa_moe_plan_t   rest;
    const member_t  *m;

    m = &n->m[r];
    rest = m->plan;
    first = n->split;
    rows = w->ranks * n->slot;

    if (first > 0) {
        gpu_ok(dsa_cuda_exchange_combine(&w->x[r], w->part, m->d_table,
                                         w->to.weight[r], w->to.expert[r],
                                         &rest, 0, first, n->slot, n->k,
                                         n->cols, 0, w->stream[r]));
        rest.place += (size_t) first * n->k;
    }

    gpu_ok(dsa_cuda_exchange_combine(&w->x[r], w->part, m->d_table,
                                     w->to.weight[r], w->to.expert[r], &rest,
                                     first, rows - first, n->slot, n->k,
                                     n->cols, 1, w->stream[r]));
}


void
round_enqueue(const world_t *w, const round_t *n, uint32_t r, int noisy)
{
    uint32_t                    rows;
    cudaStream_t                s;
    const member_t             *m;
    const dsa_cuda_exchange_t  *x;

    gpu_ok(cudaSetDevice(w->device[r]));

    m = &n->m[r];
    x = &w->x[r];
    s = w->stream[r];
    rows = w->ranks * n->slot;

    round_delay(w, r, noisy);
    gpu_ok(dsa_cuda_exchange_tokens(x, &w->to, &m->d_x, m->d_expert,
                                    m->d_weight, m->d_live, m->tokens,
                                    n->slot, n->experts, n->k, n->cols, s));
    round_delay(w, r, noisy);
    gpu_ok(dsa_cuda_exchange_wait(x, s));
    gpu_ok(dsa_cuda_moe_plan(&m->plan, w->to.expert[r], rows, n->k,
                             n->experts, s));
    gpu_ok(dsa_cuda_moe_gather(&m->d_places, &w->to.x[r], &m->plan, rows,
                               n->k, n->experts, n->cols, s));
    round_delay(w, r, noisy);
    combine(w, n, r);
    round_delay(w, r, noisy);
    gpu_ok(dsa_cuda_exchange_sum(x, m->d_y, w->part[r], m->d_shared,
                                 m->d_expert, m->d_live, m->tokens, n->slot,
                                 n->experts, n->k, n->cols, s));
    gpu_ok(dsa_cuda_exchange_all_reduce(x, m->d_sum, m->d_reduce, w->sum_part,
                                        n->rows, n->cols, s));
    gpu_ok(dsa_cuda_exchange_gather(x, w->gathered, m->d_own, n->rows,
                                    n->wide, s));
    gpu_ok(cudaMemcpyAsync(m->d_gathered, w->gathered[r],
                           (size_t) n->rows * n->wide * w->ranks * 4,
                           cudaMemcpyDeviceToDevice, s));
}


/* The tokens at the places of rank q's experts. */

static void
check_places(const world_t *w, const round_t *n, uint32_t q)
{
    float           *scale;
    size_t           row, at, from, size;
    uint32_t         j, g;
    uint8_t         *codes;
    const member_t  *m, *owner;

    m = &n->m[q];
    size = (size_t) m->plan.places * n->cols;
    codes = get(size);
    scale = get(size / GROUP * sizeof(float));
    world_fetch(w, q, codes, m->d_places.q, size);
    world_fetch(w, q, scale, m->d_places.scale, size / GROUP * sizeof(float));

    for (row = 0; row < (size_t) w->ranks * n->slot; row++) {
        owner = &n->m[row / n->slot];
        from = row % n->slot;

        for (j = 0; j < n->k; j++) {
            if (m->place[row * n->k + j] < 0) {
                continue;
            }

            at = (size_t) m->place[row * n->k + j];
            assert_memory_equal(codes + at * n->cols,
                                owner->q + from * n->cols, n->cols);

            for (g = 0; g < n->cols / GROUP; g++) {
                assert_memory_equal(scale + g * m->d_places.ld + at,
                                    owner->scale + g * owner->d_x.ld + from,
                                    sizeof(float));
            }
        }
    }

    free(codes);
    free(scale);
}


void
round_check(const world_t *w, const round_t *n)
{
    uint32_t         r;
    const member_t  *m;

    for (r = 0; r < w->ranks; r++) {
        m = &n->m[r];

        if (w->fault[r]->failed) {
            fail_msg("rank %u: rank %u is missing in exchange %u", r,
                     w->fault[r]->missing, w->fault[r]->number);
        }

        round_same(w, r, m->plan.place, m->place,
             (size_t) w->ranks * n->slot * n->k * 4, "place");
        check_places(w, n, r);
        round_same(w, r, m->d_y, m->y, (size_t) m->tokens * n->cols * 2, "y");
        round_same(w, r, m->d_sum, m->sum, (size_t) n->rows * n->cols * 2,
                   "sum");
        round_same(w, r, m->d_gathered, m->gathered,
             (size_t) n->rows * n->wide * w->ranks * 4, "gathered");
    }
}


void
round_poison(const world_t *w, const round_t *n)
{
    uint32_t         r;
    const member_t  *m;

    for (r = 0; r < w->ranks; r++) {
        m = &n->m[r];

        gpu_ok(cudaSetDevice(w->device[r]));
        gpu_poison(m->plan.place, (size_t) w->ranks * n->slot * n->k * 4);
        gpu_poison(m->d_places.q, (size_t) m->plan.places * n->cols);
        gpu_poison(m->d_y, (size_t) m->tokens * n->cols * 2);
        gpu_poison(m->d_sum, (size_t) n->rows * n->cols * 2);
        gpu_poison(m->d_gathered, (size_t) n->rows * n->wide * w->ranks * 4);
    }

    world_sync(w);
}
