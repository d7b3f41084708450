
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include <assert.h>

#include <openssl/rand.h>

#include "ngx_module/core/ngx_http_dsa_conf.h"
#include "ngx_http_dsa_ledger.h"
#include "ngx_http_dsa_ledger_cell.h"
#include "ngx_http_dsa_ledger_state.h"


#define NGX_HTTP_DSA_LEDGER_ZONE     (64 * 1024)


/* how an entry leaves the file */

typedef void (*ngx_http_dsa_ledger_end_pt)(ngx_http_dsa_sums_t *sums,
    const dsa_schema_entry_t *entry);


struct ngx_http_dsa_ledger_s {
    ngx_http_dsa_ledger_file_t    file;
    ngx_http_dsa_sums_t           sums;     /* path is empty: no API keys */
    size_t                        keys;     /* API keys */
    ngx_cycle_t                  *cycle;
    ngx_uint_t                    cells;    /* queue= */

    /* in a worker */

    ngx_uint_t                    owner;    /* number of this worker */
    ngx_uint_t                    first;    /* the group in which the search
                                               for a free cell begins */
    uint64_t                      sender;
    uint64_t                      number;   /* of the last entry */
    unsigned                      acquired:1;   /* owner is set */
};


static ngx_int_t ngx_http_dsa_ledger_init(ngx_shm_zone_t *zone, void *data);
static ngx_int_t ngx_http_dsa_ledger_path_default(
    ngx_http_dsa_ledger_t *ledger);
static ngx_int_t ngx_http_dsa_ledger_open_sums(ngx_http_dsa_ledger_t *ledger);
static void ngx_http_dsa_ledger_count(ngx_http_dsa_sums_t *sums, void *data);
static void ngx_http_dsa_ledger_count_one(ngx_http_dsa_sums_t *sums,
    ngx_http_dsa_ledger_cell_t *cell);
static void ngx_http_dsa_ledger_cleanup(void *data);
static ngx_int_t ngx_http_dsa_ledger_take_owner(ngx_http_dsa_ledger_t *ledger,
    ngx_uint_t owner, ngx_log_t *log);
static ngx_uint_t ngx_http_dsa_ledger_adopt_owner(
    ngx_http_dsa_ledger_t *ledger, ngx_uint_t owner, ngx_log_t *log,
    ngx_http_dsa_ledger_pt handler, void *data, ngx_uint_t *adopted);
static void ngx_http_dsa_ledger_damaged(ngx_http_dsa_ledger_t *ledger,
    ngx_uint_t cell, ngx_log_t *log);
static uint64_t ngx_http_dsa_ledger_number(ngx_http_dsa_ledger_t *ledger);
static void ngx_http_dsa_ledger_end(ngx_http_dsa_ledger_t *ledger,
    ngx_uint_t cell, ngx_http_dsa_ledger_end_pt end);
static void ngx_http_dsa_ledger_charge(ngx_http_dsa_ledger_t *ledger,
    ngx_uint_t cell, ngx_atomic_uint_t word);
static ngx_uint_t ngx_http_dsa_ledger_section(ngx_http_dsa_ledger_t *ledger,
    const ngx_http_dsa_ledger_cell_t *cell);


ngx_http_dsa_ledger_t *
ngx_http_dsa_ledger_create(ngx_conf_t *cf, ngx_str_t *path, ngx_uint_t cells)
{
    ngx_shm_zone_t         *zone;
    ngx_pool_cleanup_t     *cln;
    ngx_http_dsa_ledger_t  *ledger;

    static ngx_str_t  name = ngx_string("dsa_ledger");

    ledger = ngx_pcalloc(cf->pool, sizeof(ngx_http_dsa_ledger_t));
    if (ledger == NULL) {
        return NULL;
    }

    ledger->file.path = *path;
    ledger->cycle = cf->cycle;
    ledger->cells = cells;
    ledger->file.fd = NGX_INVALID_FILE;
    ledger->sums.fd = NGX_INVALID_FILE;

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


void
ngx_http_dsa_ledger_keys(ngx_http_dsa_ledger_t *ledger, size_t n)
{
    ledger->keys = n;
}


static ngx_int_t
ngx_http_dsa_ledger_init(ngx_shm_zone_t *zone, void *data)
{
    ngx_cycle_t                *cycle;
    ngx_http_dsa_ledger_t      *ledger = zone->data;
    ngx_http_dsa_ledger_use_t   use;

    if (ngx_test_config) {
        return NGX_OK;
    }

    cycle = ledger->cycle;

    if (ngx_http_dsa_ledger_path_default(ledger) != NGX_OK
        || ngx_http_dsa_ledger_file_open(&ledger->file, ledger->cells,
                                         cycle->pool, cycle->log)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_http_dsa_ledger_use(ledger, &use);

    if (use.waiting != 0) {
        ngx_log_error(NGX_LOG_NOTICE, cycle->log, 0,
                      "dsa: %ui ledger entries are left over in \"%V\"",
                      use.waiting, &ledger->file.path);
    }

    return ledger->keys != 0 ? ngx_http_dsa_ledger_open_sums(ledger) : NGX_OK;
}


/* If no path is configured, the file lies beside the pid file. */

static ngx_int_t
ngx_http_dsa_ledger_path_default(ngx_http_dsa_ledger_t *ledger)
{
    u_char           *p;
    ngx_str_t        *path;
    ngx_cycle_t      *cycle;
    ngx_core_conf_t  *ccf;

    static const char  suffix[] = ".ledger";

    path = &ledger->file.path;
    cycle = ledger->cycle;

    if (path->len != 0) {
        return NGX_OK;
    }

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    p = ngx_pnalloc(cycle->pool, ccf->pid.len + sizeof(suffix));
    if (p == NULL) {
        return NGX_ERROR;
    }

    path->data = p;
    path->len = ccf->pid.len + sizeof(suffix) - 1;

    p = ngx_cpymem(p, ccf->pid.data, ccf->pid.len);
    ngx_memcpy(p, suffix, sizeof(suffix));

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_ledger_open_sums(ngx_http_dsa_ledger_t *ledger)
{
    u_char     *p;
    ngx_str_t  *path;

    static const char  suffix[] = ".sums";

    path = &ledger->sums.path;

    p = ngx_pnalloc(ledger->cycle->pool,
                    ledger->file.path.len + sizeof(suffix));
    if (p == NULL) {
        return NGX_ERROR;
    }

    path->data = p;
    path->len = ledger->file.path.len + sizeof(suffix) - 1;

    p = ngx_cpymem(p, ledger->file.path.data, ledger->file.path.len);
    ngx_memcpy(p, suffix, sizeof(suffix));

    ledger->sums.entries = ngx_http_dsa_ledger_count;
    ledger->sums.data = ledger;

    return ngx_http_dsa_sums_open(&ledger->sums, ledger->keys,
                                  ledger->cycle->log);
}


/*
 * The entries whose requests have ended are charged.  If the file was enlarged
 * since this process mapped it, the cells behind the mapping are read.
 */

static void
ngx_http_dsa_ledger_count(ngx_http_dsa_sums_t *sums, void *data)
{
    ngx_uint_t                    i;
    ngx_http_dsa_ledger_t        *ledger;
    ngx_http_dsa_ledger_cell_t    copy;
    ngx_http_dsa_ledger_file_t   *file;

    ledger = data;
    file = &ledger->file;

    if (file->map == NULL) {
        return;
    }

    for (i = 0; i < file->n; i++) {

        if (ngx_http_dsa_ledger_state(file->cells[i].word)
            == ngx_http_dsa_ledger_ended)
        {
            ngx_memcpy(&copy, (void *) &file->cells[i],
                       sizeof(ngx_http_dsa_ledger_cell_t));
            ngx_http_dsa_ledger_count_one(sums, &copy);
        }
    }

    while (pread(file->fd, &copy, sizeof(ngx_http_dsa_ledger_cell_t),
                 NGX_HTTP_DSA_LEDGER_HEADER + i++ * sizeof(copy))
           == (ssize_t) sizeof(ngx_http_dsa_ledger_cell_t))
    {
        ngx_http_dsa_ledger_count_one(sums, &copy);
    }
}


static void
ngx_http_dsa_ledger_count_one(ngx_http_dsa_sums_t *sums,
    ngx_http_dsa_ledger_cell_t *cell)
{
    dsa_schema_entry_t  entry;

    if (ngx_http_dsa_ledger_state(cell->word) == ngx_http_dsa_ledger_ended
        && ngx_http_dsa_ledger_cell_read(cell, &entry) == NGX_OK)
    {
        ngx_http_dsa_sums_count(sums, &entry);
    }
}


ngx_http_dsa_sums_t *
ngx_http_dsa_ledger_sums(ngx_http_dsa_ledger_t *ledger)
{
    return ledger->keys != 0 ? &ledger->sums : NULL;
}


static void
ngx_http_dsa_ledger_cleanup(void *data)
{
    ngx_http_dsa_ledger_t  *ledger = data;

    ngx_http_dsa_sums_close(&ledger->sums);
    ngx_http_dsa_ledger_file_close(&ledger->file);
}


/*
 * An owner number with cells of its last owner is not acquired, because the
 * worker's own cells could not be distinguished from these.
 */

ngx_int_t
ngx_http_dsa_ledger_acquire_owner(ngx_http_dsa_ledger_t *ledger, ngx_log_t *log)
{
    ngx_err_t                    err;
    ngx_uint_t                   i, owner;
    ngx_atomic_uint_t            word;
    ngx_http_dsa_ledger_file_t  *file;

    err = 0;
    file = &ledger->file;

    if (file->map != NULL) {
        (void) ngx_http_dsa_ledger_file_restore(file, log);
    }

    if (ledger->keys != 0) {
        (void) ngx_http_dsa_sums_restore(&ledger->sums, log);
    }

    for (owner = 0;
         owner < NGX_HTTP_DSA_LEDGER_OWNERS && file->map != NULL;
         owner++)
    {
        if (ngx_http_dsa_ledger_file_lock(file, owner) != NGX_OK) {
            err = ngx_errno;
            continue;
        }

        for (i = 0; i < file->n; i++) {
            word = file->cells[i].word;

            if (ngx_http_dsa_ledger_state(word)
                != ngx_http_dsa_ledger_free_cell
                && ngx_http_dsa_ledger_owner(word) == owner)
            {
                break;
            }
        }

        if (i == file->n) {
            return ngx_http_dsa_ledger_take_owner(ledger, owner, log);
        }

        ngx_http_dsa_ledger_file_unlock(file, owner);
    }

    ngx_log_error(NGX_LOG_ALERT, log, err,
                  "dsa: no owner number is free in \"%V\"; this worker cannot "
                  "keep ledger entries", &file->path);

    return NGX_ERROR;
}


/* The caller has locked the owner number, and no cell has it. */

static ngx_int_t
ngx_http_dsa_ledger_take_owner(ngx_http_dsa_ledger_t *ledger, ngx_uint_t owner,
    ngx_log_t *log)
{
    ngx_uint_t  groups;

    do {
        if (RAND_bytes((u_char *) &ledger->sender, sizeof(uint64_t)) != 1) {
            ngx_log_error(NGX_LOG_ALERT, log, 0, "RAND_bytes() failed");
            ngx_http_dsa_ledger_file_unlock(&ledger->file, owner);
            return NGX_ERROR;
        }
    } while (ledger->sender == 0);

    /*
     * A product with the golden ratio keeps any number of owners apart.
     * Workers that search at distant cells rarely collide.
     */

    groups = ngx_http_dsa_ledger_groups(&ledger->file);

    ledger->owner = owner;
    ledger->first = (uint32_t) (owner * 2654435769U) * (uint64_t) groups >> 32;
    ledger->acquired = 1;

    return NGX_OK;
}


ngx_uint_t
ngx_http_dsa_ledger_adopt(ngx_http_dsa_ledger_t *ledger, ngx_log_t *log,
    ngx_http_dsa_ledger_pt handler, void *data)
{
    u_char                       seen[NGX_HTTP_DSA_LEDGER_OWNERS];
    ngx_uint_t                   i, owner, adopted, damaged;
    ngx_atomic_uint_t            word;
    ngx_http_dsa_ledger_file_t  *file;

    if (!ledger->acquired) {
        return 0;
    }

    ngx_memzero(seen, sizeof(seen));

    file = &ledger->file;
    adopted = 0;
    damaged = 0;

    for (i = 0; i < file->n; i++) {
        word = file->cells[i].word;
        owner = ngx_http_dsa_ledger_owner(word);

        if (ngx_http_dsa_ledger_state(word) == ngx_http_dsa_ledger_free_cell) {
            ngx_http_dsa_ledger_state_mark_free(&ledger->file, i);
            continue;
        }

        if (ngx_http_dsa_ledger_state(word) > ngx_http_dsa_ledger_running
            || owner >= NGX_HTTP_DSA_LEDGER_OWNERS)
        {
            /* it has no owner; only the worker that frees it counts it */

            if (ngx_http_dsa_ledger_state_release(&ledger->file, i, word)) {
                ngx_http_dsa_ledger_damaged(ledger, i, log);
                damaged++;
            }

            continue;
        }

        seen[owner] = 1;
    }

    for (owner = 0; owner < NGX_HTTP_DSA_LEDGER_OWNERS; owner++) {

        if (!seen[owner] || owner == ledger->owner
            || ngx_http_dsa_ledger_file_lock(file, owner) != NGX_OK)
        {
            continue;
        }

        damaged += ngx_http_dsa_ledger_adopt_owner(ledger, owner, log, handler,
                                                   data, &adopted);

        ngx_http_dsa_ledger_file_unlock(file, owner);
    }

    if (adopted != 0) {
        ngx_log_error(NGX_LOG_NOTICE, log, 0,
                      "dsa: %ui ledger entries of processes that have ended "
                      "were adopted", adopted);
    }

    return damaged;
}


/*
 * The caller has locked the owner number, so no other process writes to its
 * cells.  Returns the number of damaged cells and adds to *adopted.
 */

static ngx_uint_t
ngx_http_dsa_ledger_adopt_owner(ngx_http_dsa_ledger_t *ledger, ngx_uint_t owner,
    ngx_log_t *log, ngx_http_dsa_ledger_pt handler, void *data,
    ngx_uint_t *adopted)
{
    ngx_uint_t                  i, damaged;
    ngx_atomic_uint_t           word;
    dsa_schema_entry_t          entry;
    ngx_http_dsa_ledger_cell_t  copy, *cell;

    damaged = 0;

    for (i = 0; i < ledger->file.n; i++) {
        cell = &ledger->file.cells[i];
        word = cell->word;

        if (ngx_http_dsa_ledger_state(word) == ngx_http_dsa_ledger_free_cell
            || ngx_http_dsa_ledger_owner(word) != owner)
        {
            continue;
        }

        if (ngx_http_dsa_ledger_state(word) == ngx_http_dsa_ledger_writing) {

            /* the owner ended before its request was submitted */

            (void) ngx_http_dsa_ledger_state_release(&ledger->file, i, word);
            continue;
        }

        if (ngx_http_dsa_ledger_read(ledger, i, &copy, &entry) != NGX_OK) {
            ngx_http_dsa_ledger_damaged(ledger, i, log);
            (void) ngx_http_dsa_ledger_state_release(&ledger->file, i, word);
            damaged++;
            continue;
        }

        if (entry.prompt_tokens == 0 && entry.completion_tokens == 0) {
            (void) ngx_http_dsa_ledger_state_release(&ledger->file, i, word);
            continue;
        }

        if (handler(data, i) != NGX_OK) {
            break;
        }

        if (ngx_http_dsa_ledger_state(word) == ngx_http_dsa_ledger_running) {
            ngx_http_dsa_ledger_charge(ledger, i, word);

        } else {
            (void) ngx_atomic_cmp_set(&cell->word, word,
                                      ngx_http_dsa_ledger_word(
                                          ngx_http_dsa_ledger_ended,
                                          ledger->owner));
        }

        (*adopted)++;

        ngx_log_debug2(NGX_LOG_DEBUG_HTTP, log, 0,
                       "dsa ledger cell %ui of owner %ui adopted", i, owner);
    }

    return damaged;
}


static void
ngx_http_dsa_ledger_damaged(ngx_http_dsa_ledger_t *ledger, ngx_uint_t cell,
    ngx_log_t *log)
{
    ngx_log_error(NGX_LOG_ERR, log, 0,
                  "dsa: a ledger entry is lost: cell %ui of \"%V\" is damaged",
                  cell, &ledger->file.path);
}


ngx_int_t
ngx_http_dsa_ledger_reserve(ngx_http_dsa_ledger_t *ledger,
    const dsa_schema_entry_t *entry)
{
    ngx_int_t                    n;
    ngx_http_dsa_ledger_cell_t   copy, *cell;

    if (!ledger->acquired) {
        return NGX_ERROR;
    }

    if (ngx_http_dsa_ledger_cell_fill(&copy, entry) != NGX_OK) {
        return NGX_DECLINED;
    }

    ngx_http_dsa_ledger_cell_begin(&copy, ledger->sender,
                                   ngx_http_dsa_ledger_number(ledger), entry);

    n = ngx_http_dsa_ledger_state_find(&ledger->file, ledger->owner,
                                       ledger->first);
    if (n < 0) {
        return n;
    }

    cell = &ledger->file.cells[n];

    ngx_memcpy((u_char *) cell + sizeof(ngx_atomic_t),
               (u_char *) &copy + sizeof(ngx_atomic_t),
               sizeof(ngx_http_dsa_ledger_cell_t) - sizeof(ngx_atomic_t));

    /* this is a barrier: a reader of the new word sees the whole cell */

    (void) ngx_atomic_cmp_set(&cell->word,
                              ngx_http_dsa_ledger_word(
                                  ngx_http_dsa_ledger_writing, ledger->owner),
                              ngx_http_dsa_ledger_word(
                                  ngx_http_dsa_ledger_running, ledger->owner));

    return n;
}


/*
 * The number of the next entry of this sender.  It is a time in milliseconds,
 * or more, so that a virtual machine which continues from a snapshot does not
 * use numbers again: Redis would not count their entries.
 */

static uint64_t
ngx_http_dsa_ledger_number(ngx_http_dsa_ledger_t *ledger)
{
    uint64_t     ms;
    ngx_time_t  *now;

    now = ngx_timeofday();
    ms = (uint64_t) now->sec * 1000 + now->msec;

    ledger->number = ngx_max(ledger->number + 1, ms);

    return ledger->number;
}


void
ngx_http_dsa_ledger_update(ngx_http_dsa_ledger_t *ledger, ngx_uint_t cell,
    const dsa_schema_entry_t *entry)
{
    ngx_uint_t                   next;
    ngx_http_dsa_ledger_cell_t  *s;

    assert(ledger->acquired && cell < ledger->file.n);

    s = &ledger->file.cells[cell];
    next = s->current == 0;

    ngx_http_dsa_ledger_cell_counts(&s->counts[next], entry, s->crc);

    /* the compiler must not move the store before those of the counts */

    ngx_memory_barrier();

    s->current = next;
}


void
ngx_http_dsa_ledger_ready(ngx_http_dsa_ledger_t *ledger, ngx_uint_t cell)
{
    assert(ledger->acquired && cell < ledger->file.n);

    ngx_http_dsa_ledger_charge(ledger, cell,
                               ngx_http_dsa_ledger_word(
                                  ngx_http_dsa_ledger_running, ledger->owner));
}


/*
 * The request of a cell with this word has ended: this worker owns the entry,
 * and its key is charged.  If the process is killed between the two, the next
 * section counts the entries.
 */

static void
ngx_http_dsa_ledger_charge(ngx_http_dsa_ledger_t *ledger, ngx_uint_t cell,
    ngx_atomic_uint_t word)
{
    ngx_uint_t                  section;
    dsa_schema_entry_t          entry;
    ngx_http_dsa_ledger_cell_t  copy, *s;

    s = &ledger->file.cells[cell];

    section = ngx_http_dsa_ledger_section(ledger, s);

    if (ngx_atomic_cmp_set(&s->word, word,
                           ngx_http_dsa_ledger_word(ngx_http_dsa_ledger_ended,
                                                    ledger->owner))
        && section
        && ngx_http_dsa_ledger_read(ledger, cell, &copy, &entry) == NGX_OK)
    {
        ngx_http_dsa_sums_charge(&ledger->sums, &entry);
    }

    if (section) {
        ngx_http_dsa_sums_unlock(&ledger->sums);
    }
}


/*
 * Begins a section if the cell has an API key whose sums are counted.  Returns
 * 0: there is none.
 */

static ngx_uint_t
ngx_http_dsa_ledger_section(ngx_http_dsa_ledger_t *ledger,
    const ngx_http_dsa_ledger_cell_t *cell)
{
    return ledger->keys != 0 && cell->key_len != 0
           && ngx_http_dsa_sums_lock(&ledger->sums) == NGX_OK;
}


ngx_int_t
ngx_http_dsa_ledger_read(ngx_http_dsa_ledger_t *ledger, ngx_uint_t cell,
    ngx_http_dsa_ledger_cell_t *copy, dsa_schema_entry_t *entry)
{
    assert(cell < ledger->file.n);

    ngx_memcpy(copy, (void *) &ledger->file.cells[cell],
               sizeof(ngx_http_dsa_ledger_cell_t));

    if (ngx_http_dsa_ledger_cell_read(copy, entry) != NGX_OK) {
        return NGX_ERROR;
    }

    entry->cell = (uint32_t) cell;

    return NGX_OK;
}


void
ngx_http_dsa_ledger_sent(ngx_http_dsa_ledger_t *ledger, ngx_uint_t cell,
    time_t when)
{
    assert(ledger->acquired && cell < ledger->file.n);

    ledger->file.cells[cell].sent = when;
}


void
ngx_http_dsa_ledger_confirmed(ngx_http_dsa_ledger_t *ledger, ngx_uint_t cell)
{
    ngx_http_dsa_ledger_end(ledger, cell, ngx_http_dsa_sums_confirm);
}


void
ngx_http_dsa_ledger_lost(ngx_http_dsa_ledger_t *ledger, ngx_uint_t cell)
{
    ngx_http_dsa_ledger_end(ledger, cell, ngx_http_dsa_sums_lose);
}


/*
 * If the process is killed before the cell is free, the entry is sent again,
 * and what it costs counts twice until then.
 */

static void
ngx_http_dsa_ledger_end(ngx_http_dsa_ledger_t *ledger, ngx_uint_t cell,
    ngx_http_dsa_ledger_end_pt end)
{
    ngx_uint_t                  section;
    dsa_schema_entry_t          entry;
    ngx_http_dsa_ledger_cell_t  copy;

    assert(ledger->acquired && cell < ledger->file.n);

    section = ngx_http_dsa_ledger_section(ledger, &ledger->file.cells[cell]);

    if (section
        && ngx_http_dsa_ledger_read(ledger, cell, &copy, &entry) == NGX_OK)
    {
        end(&ledger->sums, &entry);
    }

    ngx_http_dsa_ledger_free(ledger, cell);

    if (section) {
        ngx_http_dsa_sums_unlock(&ledger->sums);
    }
}


void
ngx_http_dsa_ledger_free(ngx_http_dsa_ledger_t *ledger, ngx_uint_t cell)
{
    ngx_atomic_uint_t  word;

    assert(ledger->acquired && cell < ledger->file.n);

    word = ledger->file.cells[cell].word;

    if (ngx_http_dsa_ledger_owner(word) == ledger->owner) {
        (void) ngx_http_dsa_ledger_state_release(&ledger->file, cell, word);
    }
}


void
ngx_http_dsa_ledger_use(ngx_http_dsa_ledger_t *ledger,
    ngx_http_dsa_ledger_use_t *use)
{
    ngx_uint_t  i, state;

    ngx_memzero(use, sizeof(ngx_http_dsa_ledger_use_t));

    for (i = 0; i < ledger->file.n && ledger->file.map != NULL; i++) {
        state = ngx_http_dsa_ledger_state(ledger->file.cells[i].word);

        use->used += (state != ngx_http_dsa_ledger_free_cell);
        use->waiting += (state == ngx_http_dsa_ledger_ended);
    }

    if (ledger->acquired) {
        use->cells = ledger->file.n;
    }
}


ngx_str_t *
ngx_http_dsa_ledger_path(ngx_http_dsa_ledger_t *ledger)
{
    return &ledger->file.path;
}
