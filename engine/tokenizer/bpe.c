
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "engine/tokenizer/parts.h"


/*
 * Byte-pair encoding: of all adjacent pairs of symbols, the one with the lowest
 * rank is merged, of equal ones the leftmost, until no pair has a rank.  The
 * symbols are a linked list in an array, and the pairs are a heap of (rank,
 * position).  A pre-token of n bytes takes O(n log n) time, whatever its text
 * is, and 32 bytes of memory per byte.
 *
 * The merges have a hash table of their own instead of base/map.h: the key is
 * in the bucket, so that a search usually reads one cache line.  With
 * base/map.h, where buckets point to keys, random words were tokenized at 12
 * MB/s instead of 16 MB/s.
 */


#define DSA_BPE_KEEP    65536       /* symbols that remain allocated */
#define DSA_HEAP_ARITY  4


static int dsa_bpe_merge(dsa_tokenizer_run_t *run, const char *data,
    size_t len);
static int dsa_bpe_fits(const dsa_bpe_t *bpe, const char *data, size_t len,
    size_t room);
static int dsa_bpe_reserve(dsa_tokenizer_run_t *run, size_t len);
static void dsa_heap_up(uint64_t *heap, uint32_t i);
static void dsa_heap_down(uint64_t *heap, uint32_t n, uint32_t i);


static inline uint32_t
dsa_bpe_hash(uint64_t pair)
{
    /* Fibonacci hashing, whose high bits are mixed best */

    pair ^= pair >> 29;

    return (uint32_t) ((pair * 0x9e3779b97f4a7c15) >> 32);
}


static inline const dsa_merge_t *
dsa_bpe_find(const dsa_bpe_t *bpe, uint32_t left, uint32_t right)
{
    uint32_t            i;
    uint64_t            pair;
    const dsa_merge_t  *m;

    pair = (uint64_t) left << 32 | right;

    for (i = dsa_bpe_hash(pair) & bpe->mask; ; i = (i + 1) & bpe->mask) {
        m = &bpe->merge[i];

        if (m->pair == pair || m->rank == DSA_TOKENIZER_NONE) {
            return m;
        }
    }
}


int
dsa_bpe_create(dsa_bpe_t *bpe, size_t n)
{
    size_t  i, size;

    for (size = 16; size < 2 * n + 1; size *= 2) { /* void */ }

    bpe->merge = malloc(size * sizeof(dsa_merge_t));
    bpe->id = malloc((n + 1) * sizeof(uint32_t));

    if (bpe->merge == NULL || bpe->id == NULL) {
        return DSA_ERROR;
    }

    for (i = 0; i < size; i++) {
        bpe->merge[i].pair = UINT64_MAX;
        bpe->merge[i].rank = DSA_TOKENIZER_NONE;
        bpe->merge[i].id = DSA_TOKENIZER_NONE;
    }

    bpe->mask = (uint32_t) (size - 1);

    return DSA_OK;
}


void
dsa_bpe_free(dsa_bpe_t *bpe)
{
    free(bpe->merge);
    free(bpe->id);
    dsa_map_free(&bpe->whole);
}


void
dsa_bpe_add(dsa_bpe_t *bpe, uint32_t left, uint32_t right, uint32_t rank,
    uint32_t id)
{
    dsa_merge_t  *m;

    m = (dsa_merge_t *) dsa_bpe_find(bpe, left, right);

    m->pair = (uint64_t) left << 32 | right;
    m->rank = rank;
    m->id = id;

    bpe->id[rank] = id;
}


int
dsa_tokens_add(dsa_tokenizer_run_t *run, uint32_t id)
{
    if (run->out->n >= run->max) {
        return DSA_AGAIN;
    }

    if (dsa_tokens_push(run->out, id) != DSA_OK) {
        return dsa_error(run->err, "out of memory after %u tokens",
                         run->out->n);
    }

    return DSA_OK;
}


int
dsa_bpe_piece(dsa_tokenizer_run_t *run, const char *data, size_t len)
{
    int                  rc;
    uint32_t             i, n;
    uint64_t            *id;
    const dsa_bpe_t     *bpe;
    dsa_cache_bucket_t  *bucket;

    bpe = &run->t->bpe;

    if (len == 1) {
        return dsa_tokens_add(run, bpe->byte[(uint8_t) data[0]]);
    }

    bucket = NULL;

    if (len <= DSA_CACHE_BYTES) {
        bucket = &run->w->cache[XXH3_64bits(data, len) % DSA_CACHE_BUCKETS];

        if (bucket->len == len && memcmp(bucket->bytes, data, len) == 0) {

            for (i = 0; i < bucket->n; i++) {
                rc = dsa_tokens_add(run, bucket->ids[i]);
                if (rc != DSA_OK) {
                    return rc;
                }
            }

            return DSA_OK;
        }
    }

    n = run->out->n;
    id = NULL;

    if (bpe->ignore_merges && len <= bpe->longest[(uint8_t) data[0]]) {
        id = dsa_map_find(&bpe->whole, dsa_str(data, len));
    }

    rc = (id != NULL) ? dsa_tokens_add(run, (uint32_t) *id)
                      : dsa_bpe_merge(run, data, len);
    if (rc != DSA_OK) {
        return rc;
    }

    if (bucket != NULL && run->out->n - n <= DSA_CACHE_IDS) {
        bucket->len = (uint8_t) len;
        bucket->n = (uint8_t) (run->out->n - n);
        memcpy(bucket->bytes, data, len);
        memcpy(bucket->ids, run->out->ids + n, bucket->n * sizeof(uint32_t));
    }

    return DSA_OK;
}


static int
dsa_bpe_merge(dsa_tokenizer_run_t *run, const char *data, size_t len)
{
    int               rc;
    uint32_t          i, n, pos, next, rank;
    uint64_t          top, *heap;
    dsa_symbol_t     *symbol, *s;
    const dsa_bpe_t  *bpe;

    bpe = &run->t->bpe;

    if (!dsa_bpe_fits(bpe, data, len, run->max - run->out->n)) {
        return DSA_AGAIN;
    }

    rc = dsa_bpe_reserve(run, len);
    if (rc != DSA_OK) {
        return rc;
    }

    symbol = run->w->symbol;
    heap = run->w->heap;
    n = 0;

    for (i = 0; i < len; i++) {
        s = &symbol[i];

        s->id = bpe->byte[(uint8_t) data[i]];
        s->prev = i - 1;                    /* the first one gets NONE */
        s->next = i + 1;
        s->rank = DSA_TOKENIZER_NONE;

        if (i == 0) {
            continue;
        }

        rank = dsa_bpe_find(bpe, s[-1].id, s->id)->rank;

        if (rank != DSA_TOKENIZER_NONE) {
            s[-1].rank = rank;
            heap[n++] = (uint64_t) rank << 32 | (i - 1);
        }
    }

    symbol[len - 1].next = DSA_TOKENIZER_NONE;

    for (i = n / DSA_HEAP_ARITY + 1; i-- > 0; /* void */ ) {
        dsa_heap_down(heap, n, i);
    }

    while (n != 0) {
        top = heap[0];
        heap[0] = heap[--n];
        dsa_heap_down(heap, n, 0);

        pos = (uint32_t) top;
        rank = (uint32_t) (top >> 32);
        s = &symbol[pos];

        if (s->rank != rank) {
            continue;                       /* one of the two was merged */
        }

        next = s->next;

        s->id = bpe->id[rank];
        s->rank = DSA_TOKENIZER_NONE;
        s->next = symbol[next].next;
        symbol[next].rank = DSA_TOKENIZER_NONE;

        if (s->next != DSA_TOKENIZER_NONE) {
            symbol[s->next].prev = pos;

            s->rank = dsa_bpe_find(bpe, s->id, symbol[s->next].id)->rank;

            if (s->rank != DSA_TOKENIZER_NONE) {
                heap[n] = (uint64_t) s->rank << 32 | pos;
                dsa_heap_up(heap, n++);
            }
        }

        if (s->prev != DSA_TOKENIZER_NONE) {
            pos = s->prev;
            rank = dsa_bpe_find(bpe, symbol[pos].id, s->id)->rank;

            symbol[pos].rank = rank;

            if (rank != DSA_TOKENIZER_NONE) {
                heap[n] = (uint64_t) rank << 32 | pos;
                dsa_heap_up(heap, n++);
            }
        }
    }

    for (i = 0; i != DSA_TOKENIZER_NONE; i = symbol[i].next) {
        rc = dsa_tokens_add(run, symbol[i].id);
        if (rc != DSA_OK) {
            return rc;
        }
    }

    return DSA_OK;
}


/*
 * Returns 0 if the bytes have more than room tokens however they are merged,
 * so that no memory is allocated for them.  It computes a lower bound of the
 * number of tokens: a token reaches at most as far as the longest entry of the
 * vocabulary with its first byte, for any first byte within the previous
 * token.
 */

static int
dsa_bpe_fits(const dsa_bpe_t *bpe, const char *data, size_t len, size_t room)
{
    size_t  i, n, end, reach;

    if (len <= room) {
        return 1;
    }

    n = 0;
    end = 0;                            /* upper bound of the end of n
                                           tokens */
    reach = 0;

    for (i = 0; end < len; i++) {
        reach = i + bpe->longest[(uint8_t) data[i]] > reach
                ? i + bpe->longest[(uint8_t) data[i]] : reach;

        if (i == end) {
            if (n++ == room) {
                return 0;
            }

            end = reach;
        }
    }

    return 1;
}


static int
dsa_bpe_reserve(dsa_tokenizer_run_t *run, size_t len)
{
    size_t                 n;
    dsa_tokenizer_work_t  *w;

    w = run->w;

    if (len <= w->n_symbols) {
        return DSA_OK;
    }

    n = (len > DSA_BPE_KEEP) ? len : (len < 256) ? 256 : len * 2;

    free(w->symbol);
    free(w->heap);

    w->n_symbols = 0;

    /* at most n - 1 pairs at first, and each of n - 1 merges adds one more */

    w->symbol = malloc(n * sizeof(dsa_symbol_t));
    w->heap = malloc(2 * n * sizeof(uint64_t));

    if (w->symbol == NULL || w->heap == NULL) {
        return dsa_error(run->err, "out of memory for %zu bytes that no "
                         "pattern of the tokenizer divides", len);
    }

    w->n_symbols = (uint32_t) n;

    return DSA_OK;
}


void
dsa_bpe_trim(dsa_tokenizer_work_t *w)
{
    if (w->n_symbols > 2 * DSA_BPE_KEEP) {
        free(w->symbol);
        free(w->heap);

        w->symbol = NULL;
        w->heap = NULL;
        w->n_symbols = 0;
    }
}


static void
dsa_heap_up(uint64_t *heap, uint32_t i)
{
    uint32_t  parent;
    uint64_t  v;

    for (v = heap[i]; i != 0; i = parent) {
        parent = (i - 1) / DSA_HEAP_ARITY;

        if (heap[parent] <= v) {
            break;
        }

        heap[i] = heap[parent];
    }

    heap[i] = v;
}


static void
dsa_heap_down(uint64_t *heap, uint32_t n, uint32_t i)
{
    uint32_t  j, end, least;
    uint64_t  v;

    if (i >= n) {
        return;
    }

    v = heap[i];

    for ( ;; ) {
        j = i * DSA_HEAP_ARITY + 1;

        if (j >= n) {
            break;
        }

        end = (n - j < DSA_HEAP_ARITY) ? n : j + DSA_HEAP_ARITY;

        for (least = j++; j < end; j++) {
            if (heap[j] < heap[least]) {
                least = j;
            }
        }

        if (v <= heap[least]) {
            break;
        }

        heap[i] = heap[least];
        i = least;
    }

    heap[i] = v;
}
