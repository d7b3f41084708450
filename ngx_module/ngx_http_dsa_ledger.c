
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include <assert.h>

#include "ngx_http_dsa_conf.h"
#include "ngx_http_dsa_ledger.h"


#define NGX_HTTP_DSA_LEDGER_ZONE     (64 * 1024)


typedef enum {
    ngx_http_dsa_ledger_free_slot = 0,
    ngx_http_dsa_ledger_writing,        /* the names are not complete */
    ngx_http_dsa_ledger_ended,          /* for Redis */
    ngx_http_dsa_ledger_running         /* its request runs */
} ngx_http_dsa_ledger_state_e;


struct ngx_http_dsa_ledger_s {
    ngx_http_dsa_ledger_file_t    file;
    ngx_http_dsa_ledger_file_t    old;      /* what an earlier version left */
    ngx_cycle_t                  *cycle;
    ngx_uint_t                    slots;    /* queue= */

    /* in a worker */

    ngx_uint_t                    seat;
    ngx_uint_t                    next;     /* the search for a free slot
                                               starts here */
    unsigned                      seated:1;
};


static ngx_int_t ngx_http_dsa_ledger_init(ngx_shm_zone_t *zone, void *data);
static ngx_int_t ngx_http_dsa_ledger_paths(ngx_http_dsa_ledger_t *ledger);
static void ngx_http_dsa_ledger_cleanup(void *data);
static ngx_uint_t ngx_http_dsa_ledger_adopt_seat(
    ngx_http_dsa_ledger_t *ledger, ngx_uint_t seat, ngx_log_t *log,
    ngx_http_dsa_ledger_pt handler, void *data, ngx_uint_t *adopted);
static void ngx_http_dsa_ledger_damaged(ngx_http_dsa_ledger_t *ledger,
    ngx_uint_t slot, ngx_log_t *log);
static ngx_int_t ngx_http_dsa_ledger_find(ngx_http_dsa_ledger_t *ledger);
static ngx_int_t ngx_http_dsa_ledger_find_in(ngx_http_dsa_ledger_t *ledger,
    ngx_uint_t group);
static ngx_int_t ngx_http_dsa_ledger_acquire(ngx_http_dsa_ledger_t *ledger,
    ngx_uint_t group);
static ngx_uint_t ngx_http_dsa_ledger_release(ngx_http_dsa_ledger_t *ledger,
    ngx_uint_t slot, ngx_atomic_uint_t word);
static void ngx_http_dsa_ledger_mark_free(ngx_http_dsa_ledger_t *ledger,
    ngx_uint_t slot);
static ngx_int_t ngx_http_dsa_ledger_fill(ngx_http_dsa_ledger_slot_t *slot,
    const dsa_schema_record_t *entry);
static void ngx_http_dsa_ledger_counts(ngx_http_dsa_ledger_counts_t *counts,
    const dsa_schema_record_t *entry, uint32_t crc);
static ngx_int_t ngx_http_dsa_ledger_text(char *to, uint8_t *len,
    dsa_str_t s);


/* The word of a slot: the state in its lowest byte, the seat above it. */

static ngx_inline ngx_atomic_uint_t
ngx_http_dsa_ledger_word(ngx_http_dsa_ledger_state_e state, ngx_uint_t seat)
{
    return (ngx_atomic_uint_t) state | ((ngx_atomic_uint_t) seat << 8);
}


static ngx_inline ngx_uint_t
ngx_http_dsa_ledger_state(ngx_atomic_uint_t word)
{
    return word & 0xff;
}


static ngx_inline ngx_uint_t
ngx_http_dsa_ledger_seat(ngx_atomic_uint_t word)
{
    return word >> 8;
}


ngx_http_dsa_ledger_t *
ngx_http_dsa_ledger_create(ngx_conf_t *cf, ngx_str_t *path, ngx_uint_t slots)
{
    ngx_shm_zone_t         *zone;
    ngx_pool_cleanup_t     *cln;
    ngx_http_dsa_ledger_t  *ledger;

    static ngx_str_t  name = ngx_string("dsa_ledger");

    ledger = ngx_pcalloc(cf->pool, sizeof(ngx_http_dsa_ledger_t));
    if (ledger == NULL) {
        return NULL;
    }

    ledger->old.path = *path;
    ledger->old.fd = NGX_INVALID_FILE;
    ledger->cycle = cf->cycle;
    ledger->slots = slots;
    ledger->file.fd = NGX_INVALID_FILE;

    cln = ngx_pool_cleanup_add(cf->pool, 0);
    if (cln == NULL) {
        return NULL;
    }

    cln->handler = ngx_http_dsa_ledger_cleanup;
    cln->data = ledger;

    /*
     * The memory of this zone is not used, only its callback: it runs when
     * the path of the pid file is known, and nginx keeps its old configuration
     * if it fails.  If init_module failed, the master would exit.
     */

    zone = ngx_shared_memory_add(cf, &name, NGX_HTTP_DSA_LEDGER_ZONE,
                                 &ngx_http_dsa_module);
    if (zone == NULL) {
        return NULL;
    }

    zone->init = ngx_http_dsa_ledger_init;
    zone->data = ledger;
    zone->noreuse = 1;

    return ledger;
}


static ngx_int_t
ngx_http_dsa_ledger_init(ngx_shm_zone_t *zone, void *data)
{
    ngx_uint_t              left;
    ngx_cycle_t            *cycle;
    ngx_http_dsa_ledger_t  *ledger = zone->data;

    if (ngx_test_config) {
        return NGX_OK;
    }

    cycle = ledger->cycle;

    if (ngx_http_dsa_ledger_paths(ledger) != NGX_OK
        || ngx_http_dsa_ledger_old_open(&ledger->old, cycle->log) != NGX_OK
        || ngx_http_dsa_ledger_file_open(&ledger->file, ledger->slots,
                                         cycle->pool, cycle->log)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    left = ngx_http_dsa_ledger_entries(ledger);

    if (left != 0) {
        ngx_log_error(NGX_LOG_NOTICE, cycle->log, 0,
                      "dsa: %ui ledger entries are left over in \"%V\"",
                      left, &ledger->file.path);
    }

    return NGX_OK;
}


/*
 * The name of the file ends with the version of its layout.  The name of
 * version 1 has no such end.
 */

static ngx_int_t
ngx_http_dsa_ledger_paths(ngx_http_dsa_ledger_t *ledger)
{
    u_char           *p;
    ngx_str_t        *base, *path;
    ngx_cycle_t      *cycle;
    ngx_core_conf_t  *ccf;

    static const char  suffix[] = ".ledger";

    base = &ledger->old.path;
    path = &ledger->file.path;
    cycle = ledger->cycle;

    if (base->len == 0) {
        ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx,
                                               ngx_core_module);

        p = ngx_pnalloc(cycle->pool, ccf->pid.len + sizeof(suffix));
        if (p == NULL) {
            return NGX_ERROR;
        }

        base->data = p;
        base->len = ccf->pid.len + sizeof(suffix) - 1;

        p = ngx_cpymem(p, ccf->pid.data, ccf->pid.len);
        ngx_memcpy(p, suffix, sizeof(suffix));
    }

    path->data = ngx_pnalloc(cycle->pool, base->len + sizeof(".2"));
    if (path->data == NULL) {
        return NGX_ERROR;
    }

    path->len = base->len + sizeof(".2") - 1;

    p = ngx_cpymem(path->data, base->data, base->len);
    ngx_memcpy(p, ".2", sizeof(".2"));

    return NGX_OK;
}


static void
ngx_http_dsa_ledger_cleanup(void *data)
{
    ngx_http_dsa_ledger_t  *ledger = data;

    ngx_http_dsa_ledger_file_close(&ledger->old);
    ngx_http_dsa_ledger_file_close(&ledger->file);
}


/*
 * A seat with slots of its last owner is not acquired, because the worker's
 * own slots could not be distinguished from these.
 */

ngx_int_t
ngx_http_dsa_ledger_acquire_seat(ngx_http_dsa_ledger_t *ledger, ngx_log_t *log)
{
    ngx_err_t                    err;
    ngx_uint_t                   i, seat;
    ngx_atomic_uint_t            word;
    ngx_http_dsa_ledger_file_t  *file;

    err = 0;
    file = &ledger->file;

    if (file->map != NULL) {
        (void) ngx_http_dsa_ledger_file_restore(file, log);
    }

    for (seat = 0;
         seat < NGX_HTTP_DSA_LEDGER_SEATS && file->map != NULL;
         seat++)
    {
        if (ngx_http_dsa_ledger_file_lock(file, seat) != NGX_OK) {
            err = ngx_errno;
            continue;
        }

        for (i = 0; i < file->n; i++) {
            word = file->slots[i].word;

            if (ngx_http_dsa_ledger_state(word)
                != ngx_http_dsa_ledger_free_slot
                && ngx_http_dsa_ledger_seat(word) == seat)
            {
                break;
            }
        }

        if (i == file->n) {
            ledger->seat = seat;
            ledger->seated = 1;

            /* workers that search at distant slots rarely collide */

            ledger->next = seat * 61 % file->n;

            return NGX_OK;
        }

        ngx_http_dsa_ledger_file_unlock(file, seat);
    }

    ngx_log_error(NGX_LOG_ALERT, log, err,
                  "dsa: no seat is free in \"%V\"; this worker cannot keep "
                  "ledger entries", &file->path);

    return NGX_ERROR;
}


ngx_uint_t
ngx_http_dsa_ledger_adopt(ngx_http_dsa_ledger_t *ledger, ngx_log_t *log,
    ngx_http_dsa_ledger_pt handler, void *data)
{
    u_char                       seen[NGX_HTTP_DSA_LEDGER_SEATS];
    ngx_uint_t                   i, seat, adopted, damaged;
    ngx_atomic_uint_t            word;
    ngx_http_dsa_ledger_file_t  *file;

    if (!ledger->seated) {
        return 0;
    }

    ngx_memzero(seen, sizeof(seen));

    file = &ledger->file;
    adopted = 0;
    damaged = 0;

    for (i = 0; i < file->n; i++) {
        word = file->slots[i].word;
        seat = ngx_http_dsa_ledger_seat(word);

        if (ngx_http_dsa_ledger_state(word) == ngx_http_dsa_ledger_free_slot) {
            ngx_http_dsa_ledger_mark_free(ledger, i);
            continue;
        }

        if (ngx_http_dsa_ledger_state(word) > ngx_http_dsa_ledger_running
            || seat >= NGX_HTTP_DSA_LEDGER_SEATS)
        {
            /* it has no owner; only the worker that frees it counts it */

            if (ngx_http_dsa_ledger_release(ledger, i, word)) {
                ngx_http_dsa_ledger_damaged(ledger, i, log);
                damaged++;
            }

            continue;
        }

        seen[seat] = 1;
    }

    for (seat = 0; seat < NGX_HTTP_DSA_LEDGER_SEATS; seat++) {

        if (!seen[seat] || seat == ledger->seat
            || ngx_http_dsa_ledger_file_lock(file, seat) != NGX_OK)
        {
            continue;
        }

        damaged += ngx_http_dsa_ledger_adopt_seat(ledger, seat, log, handler,
                                                  data, &adopted);

        ngx_http_dsa_ledger_file_unlock(file, seat);
    }

    if (adopted != 0) {
        ngx_log_error(NGX_LOG_NOTICE, log, 0,
                      "dsa: %ui ledger entries of processes that have ended "
                      "were adopted", adopted);
    }

    return damaged;
}


ngx_uint_t
ngx_http_dsa_ledger_adopt_old(ngx_http_dsa_ledger_t *ledger, ngx_log_t *log,
    ngx_http_dsa_ledger_old_pt handler, void *data)
{
    return ledger->seated ? ngx_http_dsa_ledger_old_adopt(&ledger->old, log,
                                                          handler, data)
                          : 0;
}


/*
 * The caller has locked the seat, so no other process writes to its slots.
 * Returns the number of damaged slots and adds to *adopted.
 */

static ngx_uint_t
ngx_http_dsa_ledger_adopt_seat(ngx_http_dsa_ledger_t *ledger, ngx_uint_t seat,
    ngx_log_t *log, ngx_http_dsa_ledger_pt handler, void *data,
    ngx_uint_t *adopted)
{
    ngx_uint_t                   i, damaged;
    ngx_atomic_uint_t            word;
    dsa_schema_record_t          entry;
    ngx_http_dsa_ledger_slot_t   copy, *slot;

    damaged = 0;

    for (i = 0; i < ledger->file.n; i++) {
        slot = &ledger->file.slots[i];
        word = slot->word;

        if (ngx_http_dsa_ledger_state(word) == ngx_http_dsa_ledger_free_slot
            || ngx_http_dsa_ledger_seat(word) != seat)
        {
            continue;
        }

        if (ngx_http_dsa_ledger_state(word) == ngx_http_dsa_ledger_writing) {

            /* the owner ended before its request was submitted */

            (void) ngx_http_dsa_ledger_release(ledger, i, word);
            continue;
        }

        if (ngx_http_dsa_ledger_read(ledger, i, &copy, &entry) != NGX_OK) {
            ngx_http_dsa_ledger_damaged(ledger, i, log);
            (void) ngx_http_dsa_ledger_release(ledger, i, word);
            damaged++;
            continue;
        }

        if (entry.prompt_tokens == 0 && entry.completion_tokens == 0) {
            (void) ngx_http_dsa_ledger_release(ledger, i, word);
            continue;
        }

        if (handler(data, i) != NGX_OK) {
            break;
        }

        (void) ngx_atomic_cmp_set(&slot->word, word,
                                  ngx_http_dsa_ledger_word(
                                      ngx_http_dsa_ledger_ended,
                                      ledger->seat));
        (*adopted)++;

        ngx_log_debug2(NGX_LOG_DEBUG_HTTP, log, 0,
                       "dsa ledger slot %ui of seat %ui adopted", i, seat);
    }

    return damaged;
}


static void
ngx_http_dsa_ledger_damaged(ngx_http_dsa_ledger_t *ledger, ngx_uint_t slot,
    ngx_log_t *log)
{
    ngx_log_error(NGX_LOG_ERR, log, 0,
                  "dsa: a ledger entry is lost: slot %ui of \"%V\" is damaged",
                  slot, &ledger->file.path);
}


ngx_int_t
ngx_http_dsa_ledger_reserve(ngx_http_dsa_ledger_t *ledger,
    const dsa_schema_record_t *entry)
{
    ngx_int_t                    n;
    ngx_http_dsa_ledger_slot_t   copy, *slot;

    if (!ledger->seated) {
        return NGX_ERROR;
    }

    if (ngx_http_dsa_ledger_fill(&copy, entry) != NGX_OK) {
        return NGX_DECLINED;
    }

    n = ngx_http_dsa_ledger_find(ledger);
    if (n < 0) {
        return n;
    }

    slot = &ledger->file.slots[n];

    ngx_memcpy((u_char *) slot + sizeof(ngx_atomic_t),
               (u_char *) &copy + sizeof(ngx_atomic_t),
               sizeof(ngx_http_dsa_ledger_slot_t) - sizeof(ngx_atomic_t));

    /* this is a barrier: a reader of the new word sees the whole slot */

    (void) ngx_atomic_cmp_set(&slot->word,
                              ngx_http_dsa_ledger_word(
                                  ngx_http_dsa_ledger_writing, ledger->seat),
                              ngx_http_dsa_ledger_word(
                                  ngx_http_dsa_ledger_running, ledger->seat));

    ledger->next = (n + 1) % ledger->file.n;

    return n;
}


/*
 * Acquires a free slot, which is in the state of writing then.  Returns its
 * number, or NGX_BUSY.  The search starts at next and ends with the bits that
 * the first word has before that.
 */

static ngx_int_t
ngx_http_dsa_ledger_find(ngx_http_dsa_ledger_t *ledger)
{
    uint64_t     bits;
    ngx_int_t    slot;
    ngx_uint_t   i, w, first, group, groups, words;

    first = ledger->next / NGX_HTTP_DSA_LEDGER_GROUP;
    groups = (ledger->file.n - 1) / NGX_HTTP_DSA_LEDGER_GROUP + 1;
    words = (groups - 1) / 64 + 1;

    for (i = 0; i <= words; i++) {
        w = (first / 64 + i) % words;
        bits = __atomic_load_n(&ledger->file.groups[w], __ATOMIC_SEQ_CST);

        if (i == 0) {
            bits &= ~(uint64_t) 0 << first % 64;
        }

        for ( /* void */ ; bits != 0; bits &= bits - 1) {
            group = w * 64 + __builtin_ctzll(bits);

            if (group >= groups) {
                break;
            }

            slot = ngx_http_dsa_ledger_find_in(ledger, group);

            if (slot >= 0) {
                return slot;
            }
        }
    }

    return NGX_BUSY;
}


/* The same in one group, whose bit is set; clears it if no slot is free. */

static ngx_int_t
ngx_http_dsa_ledger_find_in(ngx_http_dsa_ledger_t *ledger, ngx_uint_t group)
{
    uint64_t    bit;
    ngx_int_t   slot;

    slot = ngx_http_dsa_ledger_acquire(ledger, group);

    /*
     * If the file was enlarged since this process mapped it, other processes
     * have more slots of the last group than this one.
     */

    if (slot >= 0
        || (group + 1) * NGX_HTTP_DSA_LEDGER_GROUP > ledger->file.n)
    {
        return slot;
    }

    bit = (uint64_t) 1 << group % 64;

    (void) __atomic_fetch_and(&ledger->file.groups[group / 64], ~bit,
                              __ATOMIC_SEQ_CST);

    /* a slot may have been freed meanwhile, when the bit was still set */

    slot = ngx_http_dsa_ledger_acquire(ledger, group);

    if (slot >= 0) {
        ngx_http_dsa_ledger_mark_free(ledger, slot);
    }

    return slot;
}


static ngx_int_t
ngx_http_dsa_ledger_acquire(ngx_http_dsa_ledger_t *ledger, ngx_uint_t group)
{
    ngx_uint_t          i, slot;
    ngx_atomic_t       *word;
    ngx_atomic_uint_t   writing;

    writing = ngx_http_dsa_ledger_word(ngx_http_dsa_ledger_writing,
                                       ledger->seat);

    for (i = 0; i < NGX_HTTP_DSA_LEDGER_GROUP; i++) {
        slot = group * NGX_HTTP_DSA_LEDGER_GROUP
               + (ledger->next + i) % NGX_HTTP_DSA_LEDGER_GROUP;

        if (slot >= ledger->file.n) {
            continue;
        }

        word = &ledger->file.slots[slot].word;

        if (__atomic_load_n(word, __ATOMIC_SEQ_CST) == 0
            && ngx_atomic_cmp_set(word, 0, writing))
        {
            return slot;
        }
    }

    return NGX_BUSY;
}


/* Frees a slot that has this word.  0: its word is another one. */

static ngx_uint_t
ngx_http_dsa_ledger_release(ngx_http_dsa_ledger_t *ledger, ngx_uint_t slot,
    ngx_atomic_uint_t word)
{
    if (!ngx_atomic_cmp_set(&ledger->file.slots[slot].word, word, 0)) {
        return 0;
    }

    ngx_http_dsa_ledger_mark_free(ledger, slot);

    return 1;
}


/* Sets the bit of the slot's group.  A bit that is set is not written again. */

static void
ngx_http_dsa_ledger_mark_free(ngx_http_dsa_ledger_t *ledger, ngx_uint_t slot)
{
    uint64_t     bit, *word;
    ngx_uint_t   group;

    group = slot / NGX_HTTP_DSA_LEDGER_GROUP;
    word = &ledger->file.groups[group / 64];
    bit = (uint64_t) 1 << group % 64;

    if ((__atomic_load_n(word, __ATOMIC_SEQ_CST) & bit) == 0) {
        (void) __atomic_fetch_or(word, bit, __ATOMIC_SEQ_CST);
    }
}


void
ngx_http_dsa_ledger_update(ngx_http_dsa_ledger_t *ledger, ngx_uint_t slot,
    const dsa_schema_record_t *entry)
{
    ngx_uint_t                   next;
    ngx_http_dsa_ledger_slot_t  *s;

    assert(ledger->seated && slot < ledger->file.n);

    s = &ledger->file.slots[slot];
    next = s->current == 0;

    ngx_http_dsa_ledger_counts(&s->counts[next], entry, s->crc);

    /* the compiler must not move the store before those of the counts */

    ngx_memory_barrier();

    s->current = next;
}


void
ngx_http_dsa_ledger_ready(ngx_http_dsa_ledger_t *ledger, ngx_uint_t slot)
{
    assert(ledger->seated && slot < ledger->file.n);

    (void) ngx_atomic_cmp_set(&ledger->file.slots[slot].word,
                              ngx_http_dsa_ledger_word(
                                  ngx_http_dsa_ledger_running, ledger->seat),
                              ngx_http_dsa_ledger_word(
                                  ngx_http_dsa_ledger_ended, ledger->seat));
}


static ngx_int_t
ngx_http_dsa_ledger_fill(ngx_http_dsa_ledger_slot_t *slot,
    const dsa_schema_record_t *entry)
{
    ngx_memzero(slot, sizeof(ngx_http_dsa_ledger_slot_t));

    if (ngx_http_dsa_ledger_text(slot->request, &slot->request_len,
                                 entry->request)
        != NGX_OK
        || ngx_http_dsa_ledger_text(slot->tenant, &slot->tenant_len,
                                    entry->tenant)
           != NGX_OK
        || ngx_http_dsa_ledger_text(slot->model, &slot->model_len,
                                    entry->model)
           != NGX_OK)
    {
        return NGX_DECLINED;
    }

    assert(entry->key.len <= NGX_HTTP_DSA_LEDGER_KEY);

    slot->key_len = entry->key.len;

    if (entry->key.len != 0) {
        ngx_memcpy(slot->key, entry->key.data, entry->key.len);
    }

    slot->crc = ngx_http_dsa_ledger_file_crc(slot);
    ngx_http_dsa_ledger_counts(&slot->counts[0], entry, slot->crc);

    return NGX_OK;
}


static void
ngx_http_dsa_ledger_counts(ngx_http_dsa_ledger_counts_t *counts,
    const dsa_schema_record_t *entry, uint32_t crc)
{
    counts->time = entry->time;
    counts->prompt_tokens = entry->prompt_tokens;
    counts->cached_tokens = entry->cached_tokens;
    counts->host_tokens = entry->host_tokens;
    counts->redis_tokens = entry->redis_tokens;
    counts->completion_tokens = entry->completion_tokens;
    counts->reasoning_tokens = entry->reasoning_tokens;
    counts->cost_miss = entry->cost_miss;
    counts->cost_hit = entry->cost_hit;
    counts->cost_output = entry->cost_output;
    counts->check = ngx_http_dsa_ledger_file_check(counts, crc);
}


static ngx_int_t
ngx_http_dsa_ledger_text(char *to, uint8_t *len, dsa_str_t s)
{
    if (s.len == 0 || s.len > NGX_HTTP_DSA_LEDGER_TEXT) {
        return NGX_DECLINED;
    }

    *len = s.len;
    ngx_memcpy(to, s.data, s.len);

    return NGX_OK;
}


ngx_int_t
ngx_http_dsa_ledger_read(ngx_http_dsa_ledger_t *ledger, ngx_uint_t slot,
    ngx_http_dsa_ledger_slot_t *copy, dsa_schema_record_t *entry)
{
    ngx_http_dsa_ledger_counts_t  *counts;

    assert(slot < ledger->file.n);

    ngx_memcpy(copy, (void *) &ledger->file.slots[slot],
               sizeof(ngx_http_dsa_ledger_slot_t));

    if (copy->crc != ngx_http_dsa_ledger_file_crc(copy)
        || copy->request_len > NGX_HTTP_DSA_LEDGER_TEXT
        || copy->tenant_len > NGX_HTTP_DSA_LEDGER_TEXT
        || copy->model_len > NGX_HTTP_DSA_LEDGER_TEXT
        || copy->key_len > NGX_HTTP_DSA_LEDGER_KEY
        || copy->current > 1)
    {
        return NGX_ERROR;
    }

    counts = &copy->counts[copy->current];

    if (counts->check != ngx_http_dsa_ledger_file_check(counts, copy->crc)) {
        return NGX_ERROR;
    }

    ngx_memzero(entry, sizeof(dsa_schema_record_t));

    entry->request = dsa_str(copy->request, copy->request_len);
    entry->tenant = dsa_str(copy->tenant, copy->tenant_len);
    entry->model = dsa_str(copy->model, copy->model_len);
    entry->key = dsa_str(copy->key, copy->key_len);
    entry->time = counts->time;
    entry->prompt_tokens = counts->prompt_tokens;
    entry->cached_tokens = counts->cached_tokens;
    entry->host_tokens = counts->host_tokens;
    entry->redis_tokens = counts->redis_tokens;
    entry->completion_tokens = counts->completion_tokens;
    entry->reasoning_tokens = counts->reasoning_tokens;
    entry->cost_miss = counts->cost_miss;
    entry->cost_hit = counts->cost_hit;
    entry->cost_output = counts->cost_output;

    return dsa_schema_entry_ok(entry) ? NGX_OK : NGX_ERROR;
}


void
ngx_http_dsa_ledger_sent(ngx_http_dsa_ledger_t *ledger, ngx_uint_t slot,
    time_t when)
{
    assert(ledger->seated && slot < ledger->file.n);

    ledger->file.slots[slot].sent = when;
}


void
ngx_http_dsa_ledger_free(ngx_http_dsa_ledger_t *ledger, ngx_uint_t slot)
{
    ngx_atomic_uint_t  word;

    assert(ledger->seated && slot < ledger->file.n);

    word = ledger->file.slots[slot].word;

    if (ngx_http_dsa_ledger_seat(word) == ledger->seat) {
        (void) ngx_http_dsa_ledger_release(ledger, slot, word);
    }
}


ngx_uint_t
ngx_http_dsa_ledger_entries(ngx_http_dsa_ledger_t *ledger)
{
    ngx_uint_t  i, n;

    n = 0;

    for (i = 0; i < ledger->file.n && ledger->file.map != NULL; i++) {
        n += (ngx_http_dsa_ledger_state(ledger->file.slots[i].word)
              == ngx_http_dsa_ledger_ended);
    }

    return n;
}


ngx_str_t *
ngx_http_dsa_ledger_path(ngx_http_dsa_ledger_t *ledger)
{
    return &ledger->file.path;
}
