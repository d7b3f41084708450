
/*
 * Copyright (C) The nginx-dsa authors
 */


/*
 * The exchange between ranks.  All cases run with ranks that share one GPU, in
 * streams of their own, and where the machine has several GPUs also with one
 * rank on each.
 *
 * A round is one exchange of tokens, as an MoE layer makes it with the
 * project's own plan and gather between its halves, then an all-reduce and a
 * gather.  All results are compared with those of plain C on the host, bit by
 * bit.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "kernels/bf16.h"
#include "kernels/exchange.h"
#include "kernels/random.h"
#include "t/gpu/gpu.h"
#include "t/unit/numbers.h"


#define RANKS       4               /* most */
#define GROUP       128
#define ALIGN       8
#define NOISE       (8 << 20)       /* most bytes of a delay */
#define ROUNDS      12              /* of a graph */
#define GRAPHS      4               /* with other delays */
#define REPLAYS     400
#define SECOND      1000000000ULL


typedef struct {
    uint32_t            ranks;
    int                 device[RANKS];
    cudaStream_t        stream[RANKS];
    dsa_cuda_exchange_t x[RANKS];
    dsa_exchange_fault_t  *fault[RANKS];        /* host addresses */
    void               *noise[RANKS];

    /* buffers that other ranks store to, for the most of each size */

    uint32_t            max_slot;
    uint32_t            max_cols;
    dsa_exchange_tokens_t  to;
    dsa_bf16_t         *part[RANKS];
    void               *sum_part[RANKS];
    float              *gathered[RANKS];
} world_t;


/* One rank's operands and results, and the expected results. */

typedef struct {
    uint32_t            tokens;
    uint8_t            *q;              /* host [tokens, cols] */
    float              *scale;          /* host [cols / 128, ld] */
    int32_t            *expert;         /* host [tokens, k], and so on */
    float              *weight;
    int32_t            *live;
    uint16_t           *shared;
    uint16_t           *table;          /* [places, cols]: what the experts of
                                           this rank computed */
    uint16_t           *reduce;         /* [rows, cols] */
    float              *own;            /* [rows, wide] */

    dsa_fp8_rows_t      d_x;            /* device: the same */
    int32_t            *d_expert;
    float              *d_weight;
    int32_t            *d_live;
    dsa_bf16_t         *d_shared;
    dsa_bf16_t         *d_table;
    dsa_bf16_t         *d_reduce;
    float              *d_own;

    dsa_moe_plan_t      plan;
    dsa_fp8_rows_t      d_places;       /* results */
    dsa_bf16_t         *d_y;
    dsa_bf16_t         *d_sum;
    float              *d_gathered;

    int32_t            *place;          /* expected: [ranks * slot, k] */
    uint16_t           *y;              /* [tokens, cols] */
    uint16_t           *sum;
    float              *gathered;
} member_t;


typedef struct {
    uint32_t            slot;
    uint32_t            experts;        /* of a rank */
    uint32_t            k;
    uint32_t            cols;
    uint32_t            rows;           /* of the all-reduce and the gather */
    uint32_t            wide;           /* columns of the gather */
    uint32_t            split;          /* rows of the first of two calls of
                                           combine; 0: one call */
    member_t            m[RANKS];
} round_t;


static void *
get(size_t size)
{
    void  *p;

    p = calloc(1, size + 1);
    assert_non_null(p);

    return p;
}


static void
sync_all(const world_t *w)
{
    uint32_t  r;

    for (r = 0; r < w->ranks; r++) {
        gpu_ok(cudaSetDevice(w->device[r]));
        gpu_sync();
    }
}


static void
fetch(const world_t *w, uint32_t r, void *p, const void *device, size_t size)
{
    gpu_ok(cudaSetDevice(w->device[r]));
    gpu_ok(cudaMemcpy(p, device, size, cudaMemcpyDeviceToHost));
}


static void
same(const world_t *w, uint32_t r, const void *device, const void *want,
    size_t size, const char *what)
{
    void   *p;
    size_t  i;

    p = get(size);
    fetch(w, r, p, device, size);

    if (memcmp(p, want, size) != 0) {
        for (i = 0; ((uint8_t *) p)[i] == ((const uint8_t *) want)[i]; i++) {
            /* the first difference */
        }

        fail_msg("%s of rank %u differs at byte %zu of %zu", what, r, i,
                 size);
    }

    free(p);
}


/* Peer access is enabled once for each pair. */

static void
enable_peers(const world_t *w)
{
    int       rc;
    uint32_t  r, q;

    for (r = 0; r < w->ranks; r++) {
        gpu_ok(cudaSetDevice(w->device[r]));

        for (q = 0; q < w->ranks; q++) {
            if (w->device[q] == w->device[r]) {
                continue;
            }

            rc = cudaDeviceEnablePeerAccess(w->device[q], 0);

            if (rc == cudaErrorPeerAccessAlreadyEnabled) {
                (void) cudaGetLastError();
                rc = 0;
            }

            gpu_ok(rc);
        }
    }
}


static void
open_world(world_t *w, uint32_t ranks, int gpus, uint32_t slot, uint32_t cols,
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
    sync_all(w);
}


static void
close_world(world_t *w)
{
    uint32_t  r;

    sync_all(w);

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


static void
open_round(const world_t *w, round_t *n, const uint32_t *tokens)
{
    uint32_t  r;

    for (r = 0; r < w->ranks; r++) {
        fill_member(w, n, r, tokens[r]);
    }

    expect(w, n);
}


static void
close_round(const world_t *w, round_t *n)
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


/* A kernel of a random length in one of four places. */

static void
delay(const world_t *w, uint32_t r, int noisy)
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


static void
enqueue(const world_t *w, const round_t *n, uint32_t r, int noisy)
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

    delay(w, r, noisy);
    gpu_ok(dsa_cuda_exchange_tokens(x, &w->to, &m->d_x, m->d_expert,
                                    m->d_weight, m->d_live, m->tokens,
                                    n->slot, n->experts, n->k, n->cols, s));
    delay(w, r, noisy);
    gpu_ok(dsa_cuda_exchange_wait(x, s));
    gpu_ok(dsa_cuda_moe_plan(&m->plan, w->to.expert[r], rows, n->k,
                             n->experts, s));
    gpu_ok(dsa_cuda_moe_gather(&m->d_places, &w->to.x[r], &m->plan, rows,
                               n->k, n->experts, n->cols, s));
    delay(w, r, noisy);
    combine(w, n, r);
    delay(w, r, noisy);
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
    fetch(w, q, codes, m->d_places.q, size);
    fetch(w, q, scale, m->d_places.scale, size / GROUP * sizeof(float));

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


static void
check(const world_t *w, const round_t *n)
{
    uint32_t         r;
    const member_t  *m;

    for (r = 0; r < w->ranks; r++) {
        m = &n->m[r];

        if (w->fault[r]->failed) {
            fail_msg("rank %u: rank %u is missing in exchange %u", r,
                     w->fault[r]->missing, w->fault[r]->number);
        }

        same(w, r, m->plan.place, m->place,
             (size_t) w->ranks * n->slot * n->k * 4, "place");
        check_places(w, n, r);
        same(w, r, m->d_y, m->y, (size_t) m->tokens * n->cols * 2, "y");
        same(w, r, m->d_sum, m->sum, (size_t) n->rows * n->cols * 2, "sum");
        same(w, r, m->d_gathered, m->gathered,
             (size_t) n->rows * n->wide * w->ranks * 4, "gathered");
    }
}


/* What the checks read, so that no result is one of an earlier replay. */

static void
poison(const world_t *w, const round_t *n)
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

    sync_all(w);
}


/* The numbers of ranks and GPUs that a test runs with. */

static int
gpus_here(void)
{
    int  n;

    gpu_ok(cudaGetDeviceCount(&n));

    return n;
}


typedef void (*world_pt)(uint32_t ranks, int gpus);


static void
each_world(world_pt test)
{
    int       n;
    uint32_t  ranks;

    n = gpus_here();

    test(1, 1);
    test(2, 1);
    test(4, 1);

    for (ranks = 2; ranks <= RANKS; ranks += 2) {
        if (n >= (int) ranks) {
            test(ranks, (int) ranks);
        }
    }

    if (n == 2) {
        test(4, 2);
    }
}


/* Each kind of size: one round after another, checked one by one. */

static void
rounds(uint32_t ranks, int gpus)
{
    uint32_t  i, r;
    world_t   w;

    static const uint32_t  tokens[][RANKS] = {
        { 1, 1, 1, 1 },
        { 5, 0, 3, 8 },
        { 0, 0, 0, 0 },
        { 7, 16, 1, 2 },
        { 33, 61, 64, 0 },
        { 90, 3, 17, 31 }
    };
    static const round_t   sizes[] = {
        { .slot = 1, .experts = 4, .k = 2, .cols = 128, .rows = 1,
          .wide = 4 },
        { .slot = 8, .experts = 3, .k = 1, .cols = 256, .rows = 3,
          .wide = 12 },
        { .slot = 5, .experts = 32, .k = 8, .cols = 7168, .rows = 1,
          .wide = 100 },
        { .slot = 16, .experts = 16, .k = 8, .cols = 7168, .rows = 16,
          .wide = 1024, .split = 9 },
        { .slot = 64, .experts = 9, .k = 16, .cols = 1152, .rows = 37,
          .wide = 64 },
        { .slot = 100, .experts = 64, .k = 8, .cols = 2048, .rows = 100,
          .wide = 128, .split = 100 }
    };
    static round_t         n;

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        open_world(&w, ranks, gpus, 100, sizes[i].cols, 0);
        n = sizes[i];
        open_round(&w, &n, tokens[i]);
        poison(&w, &n);

        for (r = 0; r < ranks; r++) {
            enqueue(&w, &n, r, 0);
        }

        sync_all(&w);
        check(&w, &n);
        close_round(&w, &n);
        close_world(&w);
    }
}


static void
test_rounds(void **state)
{
    each_world(rounds);
}


/* Hundreds of rows: the sum by two exchanges, and sums of few rows between. */

static void
reduces(uint32_t ranks, int gpus)
{
    uint32_t  i, r, c;
    world_t   w;

    static const uint32_t  tokens[RANKS];
    static const uint32_t  rows[] = { 600, 2, 555, 1, 600 };
    static round_t         n[5];

    c = 2048;
    open_world(&w, ranks, gpus, 600, c, 0);

    for (i = 0; i < 5; i++) {
        memset(&n[i], 0, sizeof(n[i]));
        n[i].slot = 1;
        n[i].experts = 1;
        n[i].k = 1;
        n[i].cols = c;
        n[i].rows = rows[i];
        n[i].wide = 8;
        open_round(&w, &n[i], tokens);
        poison(&w, &n[i]);
    }

    /* in place */

    for (r = 0; r < ranks; r++) {
        n[4].m[r].d_sum = n[4].m[r].d_reduce;
    }

    for (i = 0; i < 5; i++) {
        for (r = 0; r < ranks; r++) {
            enqueue(&w, &n[i], r, 0);
        }
    }

    sync_all(&w);

    for (i = 0; i < 5; i++) {
        check(&w, &n[i]);
        close_round(&w, &n[i]);
    }

    close_world(&w);
}


static void
test_reduces(void **state)
{
    each_world(reduces);
}


/* What a kernel stored before a signal is there after the wait. */

static void
signals(uint32_t ranks, int gpus)
{
    uint32_t  i, r, q, value;
    world_t   w;
    uint32_t *got;

    open_world(&w, ranks, gpus, 64, 128, 0);
    got = get(16);

    for (i = 0; i < 50; i++) {
        for (r = 0; r < ranks; r++) {
            gpu_ok(cudaSetDevice(w.device[r]));

            for (q = 0; q < ranks; q++) {
                gpu_ok(cudaMemsetAsync((uint8_t *) w.part[q] + r * 1024,
                                       (int) (i + r) % 256, 1024,
                                       w.stream[r]));
            }

            delay(&w, r, 1);
            gpu_ok(dsa_cuda_exchange_signal(&w.x[r], w.stream[r]));
            gpu_ok(dsa_cuda_exchange_wait(&w.x[r], w.stream[r]));
        }

        sync_all(&w);

        for (r = 0; r < ranks; r++) {
            assert_int_equal(w.fault[r]->failed, 0);

            for (q = 0; q < ranks; q++) {
                value = (i + q) % 256 * 0x01010101U;
                fetch(&w, r, got, (uint8_t *) w.part[r] + q * 1024 + 1020, 4);
                assert_int_equal(got[0], value);
            }
        }
    }

    free(got);
    close_world(&w);
}


static void
test_signals(void **state)
{
    each_world(signals);
}


/* One rank's stream of all rounds as a graph, with random delays. */

static cudaGraphExec_t
capture(const world_t *w, const round_t *n, uint32_t r)
{
    uint32_t         i;
    cudaGraph_t      graph;
    cudaGraphExec_t  exec;

    gpu_ok(cudaSetDevice(w->device[r]));
    gpu_ok(cudaStreamBeginCapture(w->stream[r],
                                  cudaStreamCaptureModeThreadLocal));

    for (i = 0; i < ROUNDS; i++) {
        enqueue(w, &n[i], r, 1);
    }

    gpu_ok(cudaStreamEndCapture(w->stream[r], &graph));
    gpu_ok(cudaGraphInstantiate(&exec, graph, 0));
    gpu_ok(cudaGraphDestroy(graph));
    gpu_ok(cudaGraphUpload(exec, w->stream[r]));

    return exec;
}


/*
 * Rounds in captured graphs, back to back.  The graphs of a rank differ in
 * their delays only, and each replay chooses one at random, so that the ranks
 * meet in another way each time.  The flags wrap in the first replays.
 */

static void
graphs(uint32_t ranks, int gpus)
{
    uint32_t         i, j, r, replay, tokens[RANKS];
    world_t          w;
    cudaGraphExec_t  exec[RANKS][GRAPHS];

    static round_t   n[ROUNDS];

    open_world(&w, ranks, gpus, 600, 2048, 65536 - 100);

    for (i = 0; i < ROUNDS; i++) {
        memset(&n[i], 0, sizeof(n[i]));

        n[i].slot = 1 + dsa_t_random(12);
        n[i].experts = 2 + dsa_t_random(8);
        n[i].k = 1 + dsa_t_random(n[i].experts < 8 ? n[i].experts : 8);
        n[i].cols = i % 2 == 0 ? 512 : 2048;
        n[i].rows = i % 6 == 5 ? 600 : 1 + dsa_t_random(20);
        n[i].wide = 4 * (1 + dsa_t_random(64));
        n[i].split = dsa_t_random(ranks * n[i].slot);

        for (r = 0; r < ranks; r++) {
            tokens[r] = dsa_t_random(n[i].slot + 1);
        }

        open_round(&w, &n[i], tokens);
    }

    for (r = 0; r < ranks; r++) {
        for (j = 0; j < GRAPHS; j++) {
            exec[r][j] = capture(&w, n, r);
        }
    }

    for (replay = 0; replay < REPLAYS; replay++) {
        for (i = 0; i < ROUNDS; i++) {
            poison(&w, &n[i]);
        }

        for (j = 0; j < 2; j++) {
            for (r = 0; r < ranks; r++) {
                gpu_ok(cudaSetDevice(w.device[r]));
                gpu_ok(cudaGraphLaunch(exec[r][dsa_t_random(GRAPHS)],
                                       w.stream[r]));
            }
        }

        sync_all(&w);

        for (i = 0; i < ROUNDS; i++) {
            check(&w, &n[i]);
        }
    }

    for (r = 0; r < ranks; r++) {
        for (j = 0; j < GRAPHS; j++) {
            gpu_ok(cudaGraphExecDestroy(exec[r][j]));
        }
    }

    for (i = 0; i < ROUNDS; i++) {
        close_round(&w, &n[i]);
    }

    close_world(&w);
}


static void
test_graphs(void **state)
{
    int  n;

    n = gpus_here();
    graphs(2, n > 1 ? 2 : 1);
}


static void
test_graphs_one_gpu(void **state)
{
    graphs(2, 1);
}


static uint64_t
now_ns(void)
{
    struct timespec  t;

    (void) clock_gettime(CLOCK_MONOTONIC, &t);

    return (uint64_t) t.tv_sec * SECOND + (uint64_t) t.tv_nsec;
}


/* Enqueues one op that waits for a rank that does not take part. */

static void
enqueue_op(const world_t *w, const round_t *n, uint32_t r, int op)
{
    const member_t             *m;
    const dsa_cuda_exchange_t  *x;

    m = &n->m[r];
    x = &w->x[r];
    gpu_ok(cudaSetDevice(w->device[r]));

    switch (op) {

    case 0:
        gpu_ok(dsa_cuda_exchange_signal(x, w->stream[r]));
        gpu_ok(dsa_cuda_exchange_wait(x, w->stream[r]));
        break;

    case 1:
        gpu_ok(dsa_cuda_exchange_signal(x, w->stream[r]));
        gpu_ok(dsa_cuda_exchange_sum(x, m->d_y, w->part[r], m->d_shared,
                                     m->d_expert, m->d_live, m->tokens,
                                     n->slot, n->experts, n->k, n->cols,
                                     w->stream[r]));
        break;

    case 2:
        gpu_ok(dsa_cuda_exchange_all_reduce(x, m->d_sum, m->d_reduce,
                                            w->sum_part, 1, n->cols,
                                            w->stream[r]));
        break;

    case 3:
        gpu_ok(dsa_cuda_exchange_all_reduce(x, m->d_sum, m->d_reduce,
                                            w->sum_part, n->rows, n->cols,
                                            w->stream[r]));
        break;

    default:
        gpu_ok(dsa_cuda_exchange_gather(x, w->gathered, m->d_own, n->rows,
                                        n->wide, w->stream[r]));
        break;
    }
}


/*
 * All ranks but the last wait for it.  Their streams end after one time limit,
 * whatever follows in them, and the fault names the last rank.
 */

static void
deadlines(uint32_t ranks, int gpus)
{
    int       op;
    uint32_t  i, r, tokens[RANKS];
    uint64_t  start, took;
    world_t   w;

    static round_t  n;

    if (ranks == 1) {
        return;
    }

    for (op = 0; op < 5; op++) {
        open_world(&w, ranks, gpus, 600, 2048, 40);
        memset(&n, 0, sizeof(n));
        n.slot = 4;
        n.experts = 2;
        n.k = 1;
        n.cols = 2048;
        n.rows = 600;
        n.wide = 8;

        for (r = 0; r < ranks; r++) {
            w.x[r].timeout_ns = SECOND / 5;
            tokens[r] = 4;
        }

        open_round(&w, &n, tokens);
        sync_all(&w);
        start = now_ns();

        for (r = 0; r + 1 < ranks; r++) {
            for (i = 0; i < 20; i++) {
                enqueue_op(&w, &n, r, i == 0 ? op : (int) i % 5);
            }
        }

        sync_all(&w);
        took = now_ns() - start;

        assert_true(took >= SECOND / 5);
        assert_true(took < SECOND / 5 * 2);

        for (r = 0; r + 1 < ranks; r++) {
            assert_int_equal(w.fault[r]->failed, 1);
            assert_int_equal(w.fault[r]->missing, ranks - 1);
            assert_int_equal(w.fault[r]->number, op == 2 ? 1 : 41);
        }

        assert_int_equal(w.fault[ranks - 1]->failed, 0);

        close_round(&w, &n);
        close_world(&w);
    }
}


static void
test_deadlines(void **state)
{
    each_world(deadlines);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_rounds, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_reduces, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_signals, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_deadlines, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_graphs, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_graphs_one_gpu, gpu_setup,
                                        gpu_free_all)
    };

    /*
     * A kernel that is loaded at its first launch may wait for the GPU, and so
     * for a kernel that waits for a rank whose kernels come next.
     */

    (void) setenv("CUDA_MODULE_LOADING", "EAGER", 1);

    return cmocka_run_group_tests(tests, NULL, NULL);
}
