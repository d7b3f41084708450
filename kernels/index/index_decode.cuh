
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_INDEX_DECODE_CUH_INCLUDED_
#define _DSA_INDEX_DECODE_CUH_INCLUDED_


#include "kernels/core/rows.cuh"
#include "index_score.cuh"


/*
 * The work of a decode step, and the warp that loads it.  The kernels of
 * single rows and of groups share them.
 *
 * The work is the pages of all groups, one after another.  The bandwidth of
 * SMs differs by up to 25 %, so only three quarters of the pages are assigned
 * in advance.  Blocks that have finished draw tickets for the rest, see
 * dsa_cuda_counters_t.
 *
 * S is a kernel's shared memory.  It has the constants
 *
 *     SHARE      blocks of an SM, a divisor of DSA_INDEX_TICKET
 *     GROUPED    1: rows are in groups; 0: each is a group of its own
 *     DEPTH      pages in flight of each block
 *
 * and beside others, which its function dsa_index_load_rows() fills, the
 * members
 *
 *     k, scale, work, k_full, k_empty [DEPTH], q_full, q_empty [2]
 */

#define DSA_INDEX_TICKET    8                   /* pages that an SM draws at a
                                                   time */
#define DSA_INDEX_FREE      4                   /* 16ths of the pages that are
                                                   drawn */
#define DSA_INDEX_LEAST     32                  /* with fewer pages for each
                                                   SM, none are drawn */


typedef struct {
    int32_t             row;                    /* the first one of a group;
                                                   -1: the end */
    uint32_t            page;
} dsa_index_work_t;


typedef struct {
    const int32_t      *keys;
    const int32_t      *left;
    uint32_t            rows;                   /* > 0 */

    uint32_t            all;                    /* pages */
    uint32_t            dealt;                  /* assigned in advance */
    uint32_t            begin;                  /* the next page */
    uint32_t            n;                      /* pages from begin on */

    int                 draws;
    uint32_t            ticket;

    uint32_t            span;                   /* rows of a lane's part */
    uint32_t            part;                   /* the inclusive sum of the
                                                   pages of all parts so far */

    uint32_t            base;                   /* 32 rows from base on, one
                                                   for each lane: */
    uint32_t            size;                   /* rows of its group */
    uint32_t            count;                  /* pages of its group */
    uint32_t            scan;                   /* the inclusive sum of count
                                                   of all rows so far */

    int32_t             row;                    /* what is to be loaded */
    uint32_t            page;
    uint32_t            last;                   /* behind the last page */
} dsa_index_deal_t;


/*
 * Returns the pages of the group that begins at row, and its rows, which are
 * 0 if none begins there.  A group ends at the last row, and begins at the
 * first one.  There are no branches, so that the loads of several calls
 * overlap.
 */

template <int GROUPED>
static __device__ __forceinline__ uint32_t
dsa_index_pages(const dsa_index_deal_t *deal, uint32_t row, uint32_t *size)
{
    int32_t   n, before, keys;
    uint32_t  last, at;

    if (!GROUPED) {
        *size = 1;

        return row < deal->rows && deal->keys[row] > 0
               ? (deal->keys[row] + 63) / 64
               : 0;
    }

    at = min(row, deal->rows - 1);
    n = max(deal->left[at], 1);
    before = deal->left[max(at, 1) - 1];
    last = min(at + n, deal->rows) - 1;
    n = at > 0 && before > 1 ? 0 : last + 1 - at;

    keys = deal->keys[last];
    *size = row < deal->rows ? n : 0;

    return *size > 0 && keys > 0 ? (keys + 63) / 64 : 0;
}


static __device__ __forceinline__ uint32_t
dsa_index_scan(uint32_t v, int lane)
{
    int       i;
    uint32_t  u;

#pragma unroll
    for (i = 1; i < 32; i *= 2) {
        u = __shfl_up_sync(0xffffffff, v, i);
        v += lane >= i ? u : 0;
    }

    return v;
}


/*
 * Returns which of the 32 rows from base on has page begin.  If none of them
 * has it, the search goes on with the part that has it, or with the next 32
 * rows of this part: begin never decreases, so rows are visited in order.
 */

template <int GROUPED>
static __device__ __forceinline__ uint32_t
dsa_index_find(dsa_index_deal_t *deal, int lane)
{
    uint32_t  found, part, before;

    for ( ;; ) {
        found = __ballot_sync(0xffffffff, deal->scan > deal->begin);

        if (found != 0) {
            return __ffs(found) - 1;
        }

        part = GROUPED ? __ffs(__ballot_sync(0xffffffff,
                                             deal->part > deal->begin)) - 1
                       : 0;

        if (part * deal->span > deal->base) {
            deal->base = part * deal->span;
            before = __shfl_sync(0xffffffff, deal->part, part - 1);

        } else {
            deal->base += 32;
            before = __shfl_sync(0xffffffff, deal->scan, 31);
        }

        deal->count = dsa_index_pages<GROUPED>(deal, deal->base + lane,
                                               &deal->size);
        deal->scan = before + dsa_index_scan(deal->count, lane);
    }
}


/*
 * Counts the pages of groups.  Each lane has the sum of one of 32 parts of the
 * rows, so that rows are found quickly.
 */

static __device__ __forceinline__ uint32_t
dsa_index_count_groups(dsa_index_deal_t *deal, int lane)
{
    const int  N = 8;                           /* loads that overlap */
    int        i;
    uint32_t   j, part, sum, count[N], size;

    deal->span = (deal->rows + 1023) / 1024 * 32;
    part = 0;

    for (j = 0; j < deal->rows; j += 32 * N) {
#pragma unroll
        for (i = 0; i < N; i++) {
            count[i] = dsa_index_pages<1>(deal, j + 32 * i + lane, &size);
        }

#pragma unroll
        for (i = 0; i < N; i++) {
            sum = __reduce_add_sync(0xffffffff, count[i]);
            part += (j + 32 * i) / deal->span == (uint32_t) lane ? sum : 0;
        }
    }

    deal->part = dsa_index_scan(part, lane);

    return __shfl_sync(0xffffffff, deal->part, 31);
}


/* Counts the pages of single rows, which are few: they need no parts. */

static __device__ __forceinline__ uint32_t
dsa_index_count_rows(dsa_index_deal_t *deal, int lane)
{
    uint32_t  j, sum, size;

    deal->span = 0;
    sum = 0;

    for (j = lane; j < deal->rows; j += 32) {
        sum += dsa_index_pages<0>(deal, j, &size);
    }

    return __reduce_add_sync(0xffffffff, sum);
}


/* Counts all pages, and assigns a part of them to the blocks. */

template <typename S>
static __device__ __forceinline__ void
dsa_index_deal(dsa_index_deal_t *deal, int lane)
{
    uint32_t  dealt;

    deal->all = S::GROUPED ? dsa_index_count_groups(deal, lane)
                           : dsa_index_count_rows(deal, lane);

    dealt = deal->all / gridDim.x < DSA_INDEX_LEAST / S::SHARE
            ? deal->all
            : deal->all - deal->all / 16 * DSA_INDEX_FREE;

    deal->dealt = dealt;
    deal->begin = (uint32_t) ((uint64_t) dealt * blockIdx.x / gridDim.x);
    deal->n = (uint32_t) ((uint64_t) dealt * (blockIdx.x + 1) / gridDim.x)
              - deal->begin;

    deal->draws = 0;
    deal->ticket = 0;
    deal->base = 0;
    deal->count = dsa_index_pages<S::GROUPED>(deal, lane, &deal->size);
    deal->scan = dsa_index_scan(deal->count, lane);
}


/*
 * Returns the first page of the next ticket, counted from the pages that are
 * assigned in advance.  Only the first ticket is drawn here: the caller draws
 * the next one before it uses this one.
 */

static __device__ __forceinline__ uint32_t
dsa_index_draw(dsa_index_deal_t *deal, dsa_cuda_counters_t *counters, int lane)
{
    if (deal->draws == 0) {
        deal->draws = 1;
        deal->ticket = lane == 0 ? atomicAdd(&counters->index_drawn, 1) : 0;
    }

    return __shfl_sync(0xffffffff, deal->ticket, 0);
}


/* Finds the next pages of one row to be loaded; returns 0 if none are left. */

template <typename S>
static __device__ __forceinline__ int
dsa_index_next(dsa_index_deal_t *deal, dsa_cuda_counters_t *counters,
    int lane)
{
    const uint32_t  TICKET = DSA_INDEX_TICKET / S::SHARE;
    uint32_t        found;

    if (deal->n == 0) {
        if (deal->dealt == deal->all) {
            return 0;
        }

        deal->begin = deal->dealt
                      + TICKET * dsa_index_draw(deal, counters, lane);

        if (deal->begin >= deal->all) {
            return 0;
        }

        deal->n = deal->all - deal->begin < TICKET ? deal->all - deal->begin
                                                   : TICKET;
        deal->ticket = lane == 0 ? atomicAdd(&counters->index_drawn, 1) : 0;
    }

    found = dsa_index_find<S::GROUPED>(deal, lane);

    deal->row = deal->base + found;
    deal->last = __shfl_sync(0xffffffff, deal->count, found);
    deal->page = deal->begin + deal->last
                 - __shfl_sync(0xffffffff, deal->scan, found);
    deal->last = deal->last - deal->page < deal->n ? deal->last
                                                   : deal->page + deal->n;
    deal->begin += deal->last - deal->page;
    deal->n -= deal->last - deal->page;

    return 1;
}


/* Starts the copies of the keys of page number and of their scales. */

template <typename S>
static __device__ __forceinline__ void
dsa_index_load_page(S *smem, const CUtensorMap *map_k, const uint8_t *scales,
    uint64_t page_size, int32_t row, uint32_t page, int32_t number, uint32_t s)
{
    smem->work[s].row = row;
    smem->work[s].page = page;

    dsa_mbar_arrive_expect(&smem->k_full[s], DSA_INDEX_STAGE);
    dsa_tma_load_3d(smem->k[s], map_k, &smem->k_full[s], 0, 0, number);
    dsa_bulk_load(smem->scale[s], scales + number * page_size,
                  sizeof(smem->scale[0]), &smem->k_full[s]);
}


/* The warp that loads the work of a block. */

template <typename S>
static __device__ __forceinline__ void
dsa_index_decode_produce(S *smem, const CUtensorMap *map_q,
    const CUtensorMap *map_k, const float *w, const uint8_t *scales,
    uint64_t page_size, const int32_t *pages, size_t ld_pages,
    const int32_t *keys, const int32_t *left, uint32_t rows, uint32_t heads,
    dsa_cuda_counters_t *counters)
{
    int               i, lane;
    int32_t           number, one, row;
    uint32_t          j, s, phase, size, page;
    dsa_index_deal_t  deal;

    lane = threadIdx.x % 32;

    deal.keys = keys;
    deal.left = left;
    deal.rows = rows;
    dsa_index_deal<S>(&deal, lane);

    i = 0;
    s = 0;
    phase = 0;
    row = -1;
    number = 0;

    while (dsa_index_next<S>(&deal, counters, lane)) {

        if (deal.row != row) {
            row = deal.row;
            size = S::GROUPED ? __shfl_sync(0xffffffff, deal.size, row % 32)
                              : 1;

            dsa_mbar_wait(&smem->q_empty[i % 2], (i / 2 + 1) % 2);

            if (lane == 0) {
                dsa_index_load_rows(smem, map_q, w, heads, row, size, i);
            }

            i++;
        }

        for (j = 0, page = deal.page; page < deal.last; j++, page++) {
            if (j % 32 == 0 && page + lane < deal.last) {
                number = pages[row * ld_pages + page + lane];
            }

            one = __shfl_sync(0xffffffff, number, j % 32);

            dsa_mbar_wait(&smem->k_empty[s], phase ^ 1);

            if (lane == 0) {
                dsa_index_load_page(smem, map_k, scales, page_size, row, page,
                                    one, s);
            }

            if (++s == S::DEPTH) {
                s = 0;
                phase ^= 1;
            }
        }
    }

    dsa_mbar_wait(&smem->k_empty[s], phase ^ 1);

    if (lane == 0) {
        smem->work[s].row = -1;
        dsa_mbar_arrive(&smem->k_full[s]);

        if (deal.dealt < deal.all
            && atomicAdd(&counters->index_done, 1) == gridDim.x - 1)
        {
            counters->index_drawn = 0;
            counters->index_done = 0;
        }
    }
}


/*
 * Initializes the barriers.  Loads arrive once at a full one; readers: how
 * many arrive at an empty one.
 */

template <typename S>
static __device__ __forceinline__ void
dsa_index_decode_start(S *smem, const CUtensorMap *map_q,
    const CUtensorMap *map_k, uint32_t readers)
{
    int  i;

    dsa_tma_prefetch(map_q);
    dsa_tma_prefetch(map_k);

    for (i = 0; i < 2; i++) {
        dsa_mbar_init(&smem->q_full[i], 1);
        dsa_mbar_init(&smem->q_empty[i], readers);
    }

    for (i = 0; i < S::DEPTH; i++) {
        dsa_mbar_init(&smem->k_full[i], 1);
        dsa_mbar_init(&smem->k_empty[i], readers);
    }

    dsa_mbar_fence_init();
}


#endif /* _DSA_INDEX_DECODE_CUH_INCLUDED_ */
