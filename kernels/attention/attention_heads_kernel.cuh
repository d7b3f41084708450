
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ATTENTION_HEADS_KERNEL_CUH_INCLUDED_
#define _DSA_ATTENTION_HEADS_KERNEL_CUH_INCLUDED_


#include "attention_heads.cuh"


/*
 * MHA prefill for a shape S.  A work item is 128 rows of one head; it is
 * computed against tiles of keys, in one pass with an online softmax.  Two
 * warpgroups have 64 rows each.  Another warp loads the queries, and two tiles
 * of keys (the nope columns and the shared 64 rope columns) and two tiles of
 * values ahead.  Tiles are stored in shared memory as segments of 64 columns,
 * 128 swizzled bytes a row.  If there are too few items for all
 * multiprocessors, an item is 64 rows, and one warpgroup computes them.
 *
 * A warpgroup starts the scores of tile i and the product of tile i - 1 with
 * the values together, and computes the maxima of tile i while the second
 * product runs.  The warpgroups start their products alternately, so that the
 * tensor cores work for one of them while the other one computes its
 * exponentials.  This is the schedule of FlashAttention-3 (arXiv 2407.08608).
 * Sums are rescaled for a greater maximum after the scores of the next tile
 * are started, because the scores do not depend on the sums.  The tiles of all
 * items of a block form one sequence: the first tile of an item follows the
 * last tile of the previous item.
 *
 * Blocks are persistent and draw items from a counter.  The longest items of
 * some heads come first.  The keys and values of these heads fit the L2
 * together.  If equally long items would leave most blocks without work at the
 * end, these items are halved: the first halves are the first items, and the
 * second halves, which continue from the stored sums, the last ones.
 *
 * The columns of a row are divided between four threads.  They exchange the
 * row's maximum after each tile.  Each of them sums its own exponentials until
 * the end.
 */


/* Arrives at a barrier once for a warp, after all its threads are here. */

static __device__ __forceinline__ void
dsa_heads_done(uint64_t *bar)
{
    __syncwarp();

    if (threadIdx.x % 32 == 0) {
        dsa_mbar_arrive(bar);
    }
}


/* The state of a warpgroup, in registers. */

typedef struct {
    uint64_t            q;
    uint64_t            k;
    uint64_t            v;
    uint32_t            tile;           /* number of the next tile, over all
                                           items */
    uint32_t            group;
} dsa_heads_group_t;


/*
 * Each of four threads has a word of four vectors of four words; word n of
 * vector v is in w[v] of thread n.  Afterwards thread v has vector v.
 */

static __device__ __forceinline__ void
dsa_heads_gather(uint32_t (&w)[4])
{
    int       i, j;
    uint32_t  got, lane;

#pragma unroll
    for (i = 1; i < 4; i *= 2) {
        lane = threadIdx.x & i;

#pragma unroll
        for (j = 0; j < 4; j++) {
            if (j & i) {
                continue;
            }

            got = __shfl_xor_sync(0xffffffff, lane ? w[j] : w[j + i], i);
            w[j] = lane ? got : w[j];
            w[j + i] = lane ? w[j + i] : got;
        }
    }
}


/* Returns 1 if the rows of an item continue from stored sums. */

template <int FORM>
static __device__ __forceinline__ int
dsa_heads_continues(const dsa_heads_args_t *a, const dsa_heads_item_t *item)
{
    return FORM == DSA_HEADS_PART
           && (a->merge || dsa_heads_half<FORM>(item) == DSA_HEADS_LATE);
}


/*
 * Stores a thread's sums of row n, of its greatest score and of its own
 * exponentials, so that dsa_heads_resume() continues with the same bits as if
 * the row had not been interrupted.
 */

template <class S>
static __device__ __forceinline__ void
dsa_heads_keep(const float (&o)[S::sums], const dsa_heads_rows_t *r,
    const dsa_heads_args_t *a, int n)
{
    int     i;
    float  *sum;
    size_t  at;

    at = (size_t) (r->row + n * 8) * a->heads + r->item.head;
    sum = a->sum + at * S::v + threadIdx.x % 4 * 2;

#pragma unroll
    for (i = 0; i < S::v / 8; i++) {
        *(float2 *) (sum + i * 8) = make_float2(o[i * 4 + n * 2],
                                                o[i * 4 + n * 2 + 1]);
    }

    *(float2 *) (a->norm + at * DSA_CUDA_HEADS_NORM + threadIdx.x % 4 * 2) =
        make_float2(r->max[n], r->sum[n]);
}


/* Loads the sums of a thread's rows. */

template <class S>
static __device__ __forceinline__ void
dsa_heads_resume(float (&o)[S::sums], const dsa_heads_rows_t *r,
    const dsa_heads_args_t *a)
{
    int           i, n;
    float2        v;
    const float  *sum;

#pragma unroll
    for (n = 0; n < 2; n++) {
        sum = a->sum + ((size_t) (r->row + n * 8) * a->heads + r->item.head)
                       * S::v + threadIdx.x % 4 * 2;

#pragma unroll
        for (i = 0; i < S::v / 8; i++) {
            v = make_float2(0, 0);

            if (r->row + n * 8 < a->rows) {
                v = __ldcg((const float2 *) (sum + i * 8));
            }

            o[i * 4 + n * 2] = v.x;
            o[i * 4 + n * 2 + 1] = v.y;
        }
    }
}


/* Signals that a warp has stored its sums of the first half of an item. */

static __device__ __forceinline__ void
dsa_heads_stored(const dsa_heads_args_t *a)
{
    __syncwarp();

    if (threadIdx.x % 32 == 0) {
        __threadfence();
        (void) atomicAdd(a->stored, 1);
    }
}


/*
 * Waits until the sums of all first halves are stored.  Their blocks were the
 * first ones to draw, and wait for nothing.  The last warp that waits resets
 * the counters.
 */

static __device__ __forceinline__ void
dsa_heads_await(const dsa_heads_args_t *a)
{
    uint32_t  n, warps;

    if (threadIdx.x % 32 == 0) {
        warps = a->halved * a->warpgroups * 4;

        do {
            asm volatile ("ld.acquire.gpu.global.u32 %0, [%1];"
                          : "=r"(n) : "l"(a->stored) : "memory");
        } while (n < warps);

        if (atomicAdd(a->loaded, 1) == warps - 1) {
            *a->stored = 0;
            *a->loaded = 0;
        }
    }

    __syncwarp();
}


/* Writes the 64 rows of a warpgroup. */

template <class S, int FORM>
static __device__ __forceinline__ void
dsa_heads_write(float (&o)[S::sums], const dsa_heads_rows_t *r,
    const dsa_heads_args_t *a)
{
    int          i, j, n, store;
    float        sum, inv;
    uint32_t     w[4];
    dsa_bf16_t  *out;

#pragma unroll
    for (n = 0; n < 2; n++) {
        sum = r->sum[n];
        sum += __shfl_xor_sync(0xffffffff, sum, 1);
        sum += __shfl_xor_sync(0xffffffff, sum, 2);
        inv = sum > 0 ? dsa_heads_reciprocal(sum) : 0;
        store = r->row + n * 8 < a->rows;

        if (FORM == DSA_HEADS_PART && store
            && (dsa_heads_half<FORM>(&r->item) == DSA_HEADS_EARLY
                || a->start + r->row + n * 8 >= a->keys))
        {
            dsa_heads_keep<S>(o, r, a, n);
            store = 0;
        }

        out = a->out + ((size_t) (r->row + n * 8) * a->heads + r->item.head)
                       * S::v + threadIdx.x % 4 * 8;

#pragma unroll
        for (i = 0; i < S::v / 32; i++) {

#pragma unroll
            for (j = 0; j < 4; j++) {
                w[j] = dsa_heads_pack(o[i * 16 + j * 4 + n * 2] * inv,
                                      o[i * 16 + j * 4 + n * 2 + 1] * inv);
            }

            dsa_heads_gather(w);

            if (store) {
                *(uint4 *) (out + i * 32) = make_uint4(w[0], w[1], w[2], w[3]);
            }
        }
    }

    if (dsa_heads_half<FORM>(&r->item) == DSA_HEADS_EARLY) {
        dsa_heads_stored(a);
    }
}


/* Prepares a thread for an item. */

template <class S, int FORM>
static __device__ __forceinline__ void
dsa_heads_begin(dsa_heads_rows_t *r, const dsa_heads_args_t *a,
    const dsa_heads_item_t *item, uint32_t group)
{
    int       n;
    uint32_t  row;

    r->item = *item;
    row = dsa_heads_row<FORM>(item) + group * DSA_HEADS_ROWS;

    /* the first tile that has a key beyond a row of the warpgroup */

    r->causal = (a->start + row + 1) / S::keys;

    row += threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
    r->row = row;

#pragma unroll
    for (n = 0; n < 2; n++) {
        r->max[n] = -1e30f;
        r->sum[n] = 0;

        if (FORM == DSA_HEADS_MASKED) {
            r->mask[n] = a->mask + min(row + n * 8, a->rows - 1) * a->ld_mask
                         + threadIdx.x % S::words;
        }
    }
}


/*
 * Multiplies the sums by the factors of the previous tile, unless these are 1
 * for all rows of a warp, as for most tiles.
 */

template <class S>
static __device__ __forceinline__ void
dsa_heads_rescale(float (&o)[S::sums], const float (&factor)[2])
{
    int  i;

    if (__any_sync(0xffffffff, factor[0] != 1 || factor[1] != 1)) {

#pragma unroll
        for (i = 0; i < S::sums; i++) {
            o[i] *= factor[i / 2 % 2];
        }
    }
}


/*
 * Loads what the rows of an item continue from, except the sums.  Called when
 * all earlier items of the block are stored, because the first half of this
 * item may be one of them.
 */

template <int FORM>
static __device__ __forceinline__ void
dsa_heads_restore(dsa_heads_rows_t *r, const dsa_heads_args_t *a)
{
    int     n;
    float2  v;

    if (dsa_heads_half<FORM>(&r->item) == DSA_HEADS_LATE) {
        dsa_heads_await(a);
    }

    if (!dsa_heads_continues<FORM>(a, &r->item)) {
        return;
    }

#pragma unroll
    for (n = 0; n < 2; n++) {
        if (r->row + n * 8 < a->rows) {
            v = __ldcg((const float2 *)
                       (a->norm + ((size_t) (r->row + n * 8) * a->heads
                                   + r->item.head) * DSA_CUDA_HEADS_NORM
                        + threadIdx.x % 4 * 2));
            r->max[n] = v.x;
            r->sum[n] = v.y;
        }
    }
}


/* Sets the sums of an item after the scores of its first tile. */

template <class S, int FORM>
static __device__ __forceinline__ void
dsa_heads_start(float (&o)[S::sums], float (&factor)[2],
    const dsa_heads_rows_t *r, const dsa_heads_args_t *a)
{
    int  j;

    if (dsa_heads_continues<FORM>(a, &r->item)) {
        dsa_heads_resume<S>(o, r, a);
        return;
    }

    factor[0] = 1;
    factor[1] = 1;

#pragma unroll
    for (j = 0; j < S::sums; j++) {
        o[j] = 0;
    }
}


/*
 * Computes tile i of an item: its scores, its softmax, and the product of the
 * previous tile.  If FIRST is 1, the previous tile belongs to the previous
 * item, whose rows are old; its sums are complete and are written.  factor is
 * that of the previous tile for the sums, and is replaced by that of this
 * tile.
 */

template <class S, int FORM, int GROUPS, int CAUSAL, int FIRST>
static __device__ __forceinline__ void
dsa_heads_step(float (&s)[S::scores], float (&o)[S::sums],
    uint32_t (&p)[S::weights], dsa_heads_rows_t *r,
    const dsa_heads_rows_t *old, dsa_heads_group_t *g,
    dsa_heads_shared_t *shared, const dsa_heads_args_t *a, uint32_t i,
    float (&factor)[2])
{
    uint32_t  stage, last, words[2];

    /* 1: the previous item is stored before this one continues */
    const int  ahead = FIRST && FORM == DSA_HEADS_PART;

    stage = g->tile % 2;
    last = (g->tile - 1) % 2;

    if (FORM == DSA_HEADS_MASKED) {
        dsa_heads_words<S>(words, r, a, i);
    }

    dsa_mbar_wait(&shared->k_full[stage], g->tile / 2 % 2);
    dsa_bar_sync(1 + g->group, GROUPS * 128);

    dsa_heads_score<S>(s, g->q, g->k + stage * (S::k_size / 16));
    dsa_mbar_wait(&shared->v_full[last], (g->tile - 1) / 2 % 2);
    dsa_heads_rescale<S>(o, factor);
    dsa_heads_weigh<S>(o, p, g->v + last * (S::v_size / 16));

    dsa_bar_arrive(2 - g->group, GROUPS * 128);

    dsa_wgmma_wait<1>();
    dsa_heads_settle(s);
    dsa_heads_done(&shared->k_empty[stage]);

    if (CAUSAL && i + 1 == r->item.tiles) {
        dsa_heads_done(&shared->q_empty[g->group]);
    }

    if (FORM == DSA_HEADS_MASKED
        && __any_sync(0xffffffff, (words[0] & words[1]) != UINT32_MAX))
    {
        dsa_heads_select<S>(s, words);
    }

    if (CAUSAL && (!FIRST || i >= r->causal)) {
        dsa_heads_causal<S>(s, r, a, i);
    }

    if (ahead) {
        dsa_wgmma_wait<0>();
        dsa_heads_settle(o);
        dsa_heads_done(&shared->v_empty[last]);
        dsa_heads_write<S, FORM>(o, old, a);
        dsa_heads_restore<FORM>(r, a);
    }

    dsa_heads_max<S>(s, r, factor, a->scale);
    dsa_heads_order(shared->order, r);

    if (!ahead) {
        dsa_wgmma_wait<0>();
        dsa_heads_settle(o);
    }

    dsa_heads_exponentials<S>(s, r, factor, a->scale);

    if (!ahead) {
        dsa_heads_done(&shared->v_empty[last]);
    }

    if (FIRST) {
        if (!ahead) {
            dsa_heads_write<S, FORM>(o, old, a);
        }

        dsa_heads_start<S, FORM>(o, factor, r, a);
    }

    dsa_heads_weights<S>(p, s);
    g->tile++;
}


/*
 * Computes 64 rows of each item of the block.  The first tile of the first
 * item has no previous product, and the last tile of the last item no next
 * scores.
 */

template <class S, int FORM, int GROUPS>
static __device__ __forceinline__ void
dsa_heads_compute(const dsa_heads_args_t *a, dsa_heads_shared_t *shared,
    dsa_heads_group_t *g)
{
    float             s[S::scores], o[S::sums], factor[2];
    uint32_t          i, nth, stage, words[2], p[S::weights];
    dsa_heads_item_t  item;
    dsa_heads_rows_t  r, next;

    dsa_mbar_wait(&shared->q_full[g->group], 0);
    item = shared->item[g->group];
    dsa_heads_begin<S, FORM>(&r, a, &item, g->group);

    if (FORM == DSA_HEADS_MASKED) {
        dsa_heads_words<S>(words, &r, a, 0);
    }

    dsa_mbar_wait(&shared->k_full[0], 0);
    dsa_bar_sync(1 + g->group, GROUPS * 128);
    dsa_heads_score<S>(s, g->q, g->k);
    dsa_bar_arrive(2 - g->group, GROUPS * 128);
    dsa_wgmma_wait<0>();
    dsa_heads_settle(s);
    dsa_heads_done(&shared->k_empty[0]);

    if (item.tiles == 1) {
        dsa_heads_done(&shared->q_empty[g->group]);
    }

    if (FORM == DSA_HEADS_MASKED) {
        dsa_heads_select<S>(s, words);
    }

    if (r.causal == 0) {
        dsa_heads_causal<S>(s, &r, a, 0);
    }

    dsa_heads_restore<FORM>(&r, a);
    dsa_heads_max<S>(s, &r, factor, a->scale);
    dsa_heads_exponentials<S>(s, &r, factor, a->scale);
    dsa_heads_start<S, FORM>(o, factor, &r, a);
    dsa_heads_weights<S>(p, s);
    g->tile++;

    for (nth = 1; /* void */ ; nth++) {
        i = dsa_heads_first<FORM>(&r.item) + 1;

#pragma unroll 1
        for ( /* void */ ; i < min(r.causal, r.item.tiles - 1); i++) {
            dsa_heads_step<S, FORM, GROUPS, 0, 0>(s, o, p, &r, NULL, g,
                                                    shared, a, i, factor);
        }

#pragma unroll 1
        for ( /* void */ ; i < r.item.tiles; i++) {
            dsa_heads_step<S, FORM, GROUPS, 1, 0>(s, o, p, &r, NULL, g,
                                                    shared, a, i, factor);
        }

        dsa_mbar_wait(&shared->q_full[g->group], nth % 2);
        item = shared->item[g->group];

        if (item.tiles == 0) {
            break;
        }

        dsa_heads_begin<S, FORM>(&next, a, &item, g->group);
        dsa_heads_step<S, FORM, GROUPS, 1, 1>(s, o, p, &next, &r, g, shared,
                                                a, dsa_heads_first<FORM>(
                                                       &item), factor);
        r = next;
    }

    dsa_heads_rescale<S>(o, factor);

    stage = (g->tile - 1) % 2;

    dsa_mbar_wait(&shared->v_full[stage], (g->tile - 1) / 2 % 2);
    dsa_heads_weigh<S>(o, p, g->v + stage * (S::v_size / 16));
    dsa_wgmma_wait<0>();
    dsa_heads_settle(o);
    dsa_heads_write<S, FORM>(o, &r, a);
}


/* The state of the loading thread. */

typedef struct {
    uint8_t            *q;
    uint8_t            *k;
    uint8_t            *v;
    uint32_t            tile;           /* number of the next tile */
} dsa_heads_loader_t;


template <class S>
static __device__ __forceinline__ void
dsa_heads_load_k(dsa_heads_loader_t *l, const CUtensorMap *kv_map,
    const CUtensorMap *rope_map, dsa_heads_shared_t *shared, uint32_t head,
    uint32_t tile)
{
    int       i;
    uint8_t  *k;
    uint32_t  stage;

    stage = l->tile % 2;
    k = l->k + stage * S::k_size;

    dsa_mbar_wait(&shared->k_empty[stage], (l->tile / 2 + 1) % 2);
    dsa_mbar_arrive_expect(&shared->k_full[stage], S::k_size);

    for (i = 0; i < S::nope / 64; i++) {
        dsa_tma_load_3d(k + i * S::segment, kv_map, &shared->k_full[stage],
                        i * 64, (int) head, (int) (tile * S::keys));
    }

    dsa_tma_load_2d(k + S::nope / 64 * S::segment, rope_map,
                    &shared->k_full[stage], DSA_CUDA_LATENT,
                    (int) (tile * S::keys));
}


template <class S>
static __device__ __forceinline__ void
dsa_heads_load_v(dsa_heads_loader_t *l, const CUtensorMap *kv_map,
    dsa_heads_shared_t *shared, uint32_t head, uint32_t tile)
{
    int       i;
    uint8_t  *v;
    uint32_t  stage;

    stage = l->tile % 2;
    v = l->v + stage * S::v_size;

    dsa_mbar_wait(&shared->v_empty[stage], (l->tile / 2 + 1) % 2);
    dsa_mbar_arrive_expect(&shared->v_full[stage], S::v_size);

    for (i = 0; i < S::v / 64; i++) {
        dsa_tma_load_3d(v + i * S::segment, kv_map, &shared->v_full[stage],
                        S::nope + i * 64, (int) head,
                        (int) (tile * S::keys));
    }
}


/*
 * Loads the queries of the nth item of this block for each warpgroup.  If
 * there is no item, only signals the end.
 */

template <class S, int FORM>
static __device__ __forceinline__ void
dsa_heads_load_q(dsa_heads_loader_t *l, const CUtensorMap *q_map,
    dsa_heads_shared_t *shared, const dsa_heads_item_t *item, uint32_t nth,
    uint32_t warpgroups)
{
    int       j;
    uint8_t  *q;
    uint32_t  i;

    for (i = 0; i < warpgroups; i++) {
        q = l->q + i * S::q_size;

        dsa_mbar_wait(&shared->q_empty[i], (nth + 1) % 2);
        shared->item[i] = *item;

        if (item->tiles == 0) {
            dsa_mbar_arrive(&shared->q_full[i]);
            continue;
        }

        dsa_mbar_arrive_expect(&shared->q_full[i], S::q_size);

        for (j = 0; j < S::qk / 64; j++) {
            dsa_tma_load_3d(q + j * DSA_HEADS_Q_SEGMENT, q_map,
                            &shared->q_full[i], j * 64, (int) item->head,
                            (int) (dsa_heads_row<FORM>(item)
                                   + i * DSA_HEADS_ROWS));
        }
    }
}


/*
 * Returns the number of the block's next item, and prefetches its queries into
 * the L2, because no other block has read them.  Every block draws until no
 * item is left, so the number of draws is fixed, and the last one resets the
 * counter.
 */

template <class S, int FORM>
static __device__ __forceinline__ uint32_t
dsa_heads_draw(const dsa_heads_args_t *a, const CUtensorMap *q_map,
    uint32_t items)
{
    int               j;
    uint32_t          i, n, drawn;
    dsa_heads_item_t  item;

    drawn = atomicAdd(a->drawn, 1);
    n = gridDim.x + drawn;

    if (drawn == items - 1) {
        *a->drawn = 0;
    }

    if (n < items) {
        item = dsa_heads_item<S, FORM>(a, n);

        for (j = 0; j < S::qk / 64; j++) {
            for (i = 0; i < a->warpgroups; i++) {
                dsa_heads_prefetch(q_map, j * 64, (int) item.head,
                                   (int) (dsa_heads_row<FORM>(&item)
                                          + i * DSA_HEADS_ROWS));
            }
        }
    }

    return n;
}


/*
 * Draws items and loads their queries, keys and values, in one thread.  The
 * next item is drawn two tiles before the end of an item: late enough for an
 * even distribution, and early enough for its loads.
 */

template <class S, int FORM>
static __device__ __forceinline__ void
dsa_heads_load(const dsa_heads_args_t *a, dsa_heads_loader_t *l,
    const CUtensorMap *q_map, const CUtensorMap *kv_map,
    const CUtensorMap *rope_map, dsa_heads_shared_t *shared)
{
    uint32_t          i, n, nth, items, next, first;
    dsa_heads_item_t  item;

    items = a->blocks * a->heads;
    n = blockIdx.x;

    if (FORM == DSA_HEADS_PART) {
        items += a->halved;
    }

    for (nth = 0; n < items; nth++) {
        item = dsa_heads_item<S, FORM>(a, n);
        first = dsa_heads_first<FORM>(&item);

        dsa_heads_load_k<S>(l, kv_map, rope_map, shared, item.head, first);
        dsa_heads_load_q<S, FORM>(l, q_map, shared, &item, nth, a->warpgroups);

        next = items;

        for (i = first + 1; i <= item.tiles; i++) {

            if (i == (item.tiles > first + 3 ? item.tiles - 2 : first + 1)) {
                next = dsa_heads_draw<S, FORM>(a, q_map, items);
            }

            l->tile++;

            if (i < item.tiles) {
                dsa_heads_load_k<S>(l, kv_map, rope_map, shared, item.head, i);
            }

            l->tile--;
            dsa_heads_load_v<S>(l, kv_map, shared, item.head, i - 1);
            l->tile++;
        }

        n = next;
    }

    item.tiles = 0;
    dsa_heads_load_q<S, FORM>(l, q_map, shared, &item, nth, a->warpgroups);
}


template <class S, int FORM, int GROUPS>
static __global__ void __launch_bounds__(DSA_HEADS_THREADS, 1)
dsa_heads_kernel(const __grid_constant__ CUtensorMap q_map,
    const __grid_constant__ CUtensorMap kv_map,
    const __grid_constant__ CUtensorMap rope_map,
    const __grid_constant__ dsa_heads_args_t a)
{
    int                         i;
    uint8_t                    *smem;
    dsa_heads_group_t           g;
    dsa_heads_loader_t          l;
    dsa_heads_shared_t         *shared;
    extern __shared__ uint8_t   dsa_heads_smem[];

    smem = dsa_heads_smem + (1024 - dsa_smem(dsa_heads_smem) % 1024) % 1024;

    l.q = smem;
    l.k = l.q + 2 * S::q_size;
    l.v = l.k + 2 * S::k_size;
    l.tile = 0;
    shared = (dsa_heads_shared_t *) (l.v + 2 * S::v_size);

    if (threadIdx.x == 0) {
        for (i = 0; i < 2; i++) {
            dsa_mbar_init(&shared->q_full[i], 1);
            dsa_mbar_init(&shared->k_full[i], 1);
            dsa_mbar_init(&shared->v_full[i], 1);
            dsa_mbar_init(&shared->q_empty[i], 4);
            dsa_mbar_init(&shared->k_empty[i], 4 * GROUPS);
            dsa_mbar_init(&shared->v_empty[i], 4 * GROUPS);
        }

        dsa_mbar_fence_init();
    }

    __syncthreads();
    dsa_begin();

    if (threadIdx.x >= 256) {
        dsa_regs_less<40>();

        if (threadIdx.x == 256) {
            dsa_heads_load<S, FORM>(&a, &l, &q_map, &kv_map, &rope_map, shared);
        }

    } else {
        dsa_regs_more<232>();

        if (threadIdx.x / 128 >= GROUPS) {
            return;
        }

        g.group = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
        g.tile = 0;
        g.q = dsa_wgmma_desc(dsa_smem(l.q) + g.group * S::q_size, 1, 16,
                             1024);
        g.k = dsa_wgmma_desc(dsa_smem(l.k), 1, 16, 1024);
        g.v = dsa_wgmma_desc(dsa_smem(l.v), 1, S::segment, 1024);

        /*
         * Barrier 1 + w signals that warpgroup w may start its products.
         * Warpgroup 0 is first, and at the end it waits for the arrival that
         * would let it start the next ones.
         */

        if (g.group == 1) {
            dsa_bar_arrive(1, 256);
        }

        dsa_heads_compute<S, FORM, GROUPS>(&a, shared, &g);

        if (g.group == 0) {
            dsa_bar_sync(1, GROUPS * 128);
        }
    }
}


/* Returns the kernels of a shape, and what a launch has to know of it. */

template <class S>
static constexpr dsa_heads_kernels_t
dsa_heads_instance(void)
{
    return {
        S::keys,
        2 * (S::q_size + S::k_size + S::v_size) + 1024
        + sizeof(dsa_heads_shared_t),
        { { dsa_heads_kernel<S, DSA_HEADS_CAUSAL, 1>,
            dsa_heads_kernel<S, DSA_HEADS_CAUSAL, 2> },
          { dsa_heads_kernel<S, DSA_HEADS_MASKED, 1>,
            dsa_heads_kernel<S, DSA_HEADS_MASKED, 2> },
          { dsa_heads_kernel<S, DSA_HEADS_PART, 1>,
            dsa_heads_kernel<S, DSA_HEADS_PART, 2> } }
    };
}


#endif /* _DSA_ATTENTION_HEADS_KERNEL_CUH_INCLUDED_ */
