
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include <assert.h>
#include <sys/mman.h>

#include "base/error.h"
#include "redis_schema/keys.h"

#include "ngx_http_dsa_sums.h"


typedef void (*ngx_http_dsa_sums_change_pt)(dsa_sums_t *sums, int64_t amount,
    time_t when, time_t now);


_Static_assert(DSA_SUMS_ID == DSA_KEY_ID_LEN, "a row is that of a key");
_Static_assert((int) DSA_SUMS_DAY == (int) DSA_KEY_DAY
               && (int) DSA_SUMS_MONTH == (int) DSA_KEY_MONTH
               && (int) DSA_SUMS_TOTAL == (int) DSA_KEY_TOTAL,
               "the periods are those of budgets");


static ngx_int_t ngx_http_dsa_sums_open_locked(ngx_http_dsa_sums_t *sums,
    ngx_log_t *log);
static ngx_int_t ngx_http_dsa_sums_fill(ngx_http_dsa_sums_t *sums,
    uint32_t rows, ngx_log_t *log);
static ngx_int_t ngx_http_dsa_sums_allocate(ngx_http_dsa_sums_t *sums,
    size_t size, ngx_log_t *log);
static ngx_int_t ngx_http_dsa_sums_map(ngx_http_dsa_sums_t *sums,
    ngx_log_t *log);
static void ngx_http_dsa_sums_unmap(ngx_http_dsa_sums_t *sums);
static void ngx_http_dsa_sums_reset(ngx_http_dsa_sums_t *sums, uint32_t rows,
    ngx_log_t *log);
static ngx_int_t ngx_http_dsa_sums_failed(ngx_http_dsa_sums_t *sums,
    ngx_log_t *log, ngx_err_t err, const char *call);
static ngx_int_t ngx_http_dsa_sums_enter(ngx_http_dsa_sums_t *sums);
static ngx_int_t ngx_http_dsa_sums_recount(ngx_http_dsa_sums_t *sums);
static void ngx_http_dsa_sums_change(ngx_http_dsa_sums_t *sums,
    const dsa_schema_entry_t *entry, ngx_http_dsa_sums_change_pt change);
static ngx_int_t ngx_http_dsa_sums_fcntl(ngx_http_dsa_sums_t *sums,
    short type);


/*
 * The periods of all processes change at the same time, which the cached time
 * of nginx does not.
 */

static ngx_inline time_t
ngx_http_dsa_sums_now(void)
{
    return time(NULL);
}


/* What an entry costs; each part has at most 18 digits. */

static ngx_inline int64_t
ngx_http_dsa_sums_cost(const dsa_schema_entry_t *entry)
{
    return entry->cost_miss + entry->cost_hit + entry->cost_output;
}


ngx_int_t
ngx_http_dsa_sums_open(ngx_http_dsa_sums_t *sums, size_t n, ngx_log_t *log)
{
    ngx_int_t  rc;

    do {
        rc = ngx_http_dsa_sums_open_locked(sums, log);
    } while (rc == NGX_AGAIN);

    if (rc != NGX_OK
        || ngx_http_dsa_sums_fill(sums, dsa_sums_table_rows(n), log)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ngx_http_dsa_sums_fcntl(sums, F_UNLCK) != NGX_OK) {
        return ngx_http_dsa_sums_failed(sums, log, ngx_errno,
                                        "fcntl(F_UNLCK)");
    }

    return NGX_OK;
}


/*
 * Opens the file and locks it.  NGX_AGAIN: path names another file by then.
 */

static ngx_int_t
ngx_http_dsa_sums_open_locked(ngx_http_dsa_sums_t *sums, ngx_log_t *log)
{
    ngx_file_info_t  fi, named;

    sums->fd = open((const char *) sums->path.data, O_RDWR|O_CREAT|O_CLOEXEC,
                    0600);

    if (sums->fd == NGX_INVALID_FILE) {
        return ngx_http_dsa_sums_failed(sums, log, ngx_errno, "open()");
    }

    if (ngx_http_dsa_sums_fcntl(sums, F_WRLCK) != NGX_OK) {
        return ngx_http_dsa_sums_failed(sums, log, ngx_errno,
                                        "fcntl(F_WRLCK)");
    }

    if (ngx_fd_info(sums->fd, &fi) == NGX_FILE_ERROR) {
        return ngx_http_dsa_sums_failed(sums, log, ngx_errno, "fstat()");
    }

    if (!ngx_is_file(&fi)) {
        return ngx_http_dsa_sums_failed(sums, log, 0, NULL);
    }

    if (ngx_file_info(sums->path.data, &named) == NGX_FILE_ERROR
        || ngx_file_uniq(&named) != ngx_file_uniq(&fi)
        || named.st_dev != fi.st_dev)
    {
        ngx_http_dsa_sums_close(sums);
        return NGX_AGAIN;
    }

    return NGX_OK;
}


/*
 * Maps the table, creates or enlarges it, and counts the entries.  The file is
 * locked.
 */

static ngx_int_t
ngx_http_dsa_sums_fill(ngx_http_dsa_sums_t *sums, uint32_t rows,
    ngx_log_t *log)
{
    size_t            size;
    ngx_uint_t        empty;
    ngx_file_info_t   fi;

    if (ngx_fd_info(sums->fd, &fi) == NGX_FILE_ERROR) {
        return ngx_http_dsa_sums_failed(sums, log, ngx_errno, "fstat()");
    }

    empty = ngx_file_size(&fi) == 0;
    size = dsa_sums_table_size(rows);

    if (ngx_http_dsa_sums_allocate(sums, size, log) != NGX_OK
        || ngx_http_dsa_sums_map(sums, log) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (empty) {
        dsa_sums_table_create(&sums->table, rows);

    } else if (dsa_sums_table_open(&sums->table) != DSA_OK) {
        ngx_http_dsa_sums_reset(sums, rows, log);
    }

    if (dsa_sums_table_enter(&sums->table) == DSA_ERROR) {
        return ngx_http_dsa_sums_failed(sums, log, 0, NULL);
    }

    if (sums->table.rows < rows) {
        dsa_sums_table_grow(&sums->table, rows);
    }

    if (ngx_http_dsa_sums_recount(sums) != NGX_OK) {
        return ngx_http_dsa_sums_failed(sums, log, NGX_ENOMEM, "calloc()");
    }

    dsa_sums_table_leave(&sums->table);

    return NGX_OK;
}


/*
 * Allocates every block of the file, because a write to a mapping raises SIGBUS
 * if the disk is full.  A longer file stays as it is.
 */

static ngx_int_t
ngx_http_dsa_sums_allocate(ngx_http_dsa_sums_t *sums, size_t size,
    ngx_log_t *log)
{
    int  err;

    do {
        err = posix_fallocate(sums->fd, 0, size);
    } while (err == NGX_EINTR);

    return err == 0 ? NGX_OK
                    : ngx_http_dsa_sums_failed(sums, log, err,
                                               "posix_fallocate()");
}


/* Maps the whole file. */

static ngx_int_t
ngx_http_dsa_sums_map(ngx_http_dsa_sums_t *sums, ngx_log_t *log)
{
    void             *p;
    ngx_file_info_t   fi;

    if (ngx_fd_info(sums->fd, &fi) == NGX_FILE_ERROR) {
        return ngx_http_dsa_sums_failed(sums, log, ngx_errno, "fstat()");
    }

    p = mmap(NULL, ngx_file_size(&fi), PROT_READ|PROT_WRITE, MAP_SHARED,
             sums->fd, 0);

    if (p == MAP_FAILED) {
        return ngx_http_dsa_sums_failed(sums, log, ngx_errno, "mmap()");
    }

    ngx_http_dsa_sums_unmap(sums);

    sums->table.memory = p;
    sums->table.size = ngx_file_size(&fi);

    return NGX_OK;
}


static void
ngx_http_dsa_sums_unmap(ngx_http_dsa_sums_t *sums)
{
    if (sums->table.memory != NULL) {
        (void) munmap(sums->table.memory, sums->table.size);
        sums->table.memory = NULL;
    }
}


/* Nothing in a damaged file is used.  The file is locked. */

static void
ngx_http_dsa_sums_reset(ngx_http_dsa_sums_t *sums, uint32_t rows,
    ngx_log_t *log)
{
    ngx_log_error(NGX_LOG_ERR, log, 0,
                  "dsa: \"%V\" is damaged and begins anew; what keys have "
                  "spent is not known until it is read from Redis",
                  &sums->path);

    ngx_memzero(sums->table.memory, sums->table.size);

    dsa_sums_table_create(&sums->table, rows);
}


ngx_int_t
ngx_http_dsa_sums_restore(ngx_http_dsa_sums_t *sums, ngx_log_t *log)
{
    ngx_file_info_t  fi;

    if (ngx_fd_info(sums->fd, &fi) == NGX_FILE_ERROR) {
        return ngx_http_dsa_sums_failed(sums, log, ngx_errno, "fstat()");
    }

    if (ngx_file_size(&fi) >= (off_t) sums->table.size) {
        return NGX_OK;
    }

    if (ngx_http_dsa_sums_allocate(sums, sums->table.size, log) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_http_dsa_sums_fcntl(sums, F_WRLCK) != NGX_OK) {
        return ngx_http_dsa_sums_failed(sums, log, ngx_errno,
                                        "fcntl(F_WRLCK)");
    }

    if (dsa_sums_table_open(&sums->table) != DSA_OK) {
        ngx_http_dsa_sums_reset(sums, sums->table.rows, log);
    }

    dsa_sums_table_doubt(&sums->table);

    (void) ngx_http_dsa_sums_fcntl(sums, F_UNLCK);

    return NGX_OK;
}


void
ngx_http_dsa_sums_close(ngx_http_dsa_sums_t *sums)
{
    ngx_http_dsa_sums_unmap(sums);

    if (sums->fd != NGX_INVALID_FILE) {
        (void) ngx_close_file(sums->fd);
        sums->fd = NGX_INVALID_FILE;
    }
}


/*
 * Logs that a system call failed, or, if call is NULL, that the file cannot be
 * used, and closes the file.  Returns NGX_ERROR.
 */

static ngx_int_t
ngx_http_dsa_sums_failed(ngx_http_dsa_sums_t *sums, ngx_log_t *log,
    ngx_err_t err, const char *call)
{
    if (call == NULL) {
        ngx_log_error(NGX_LOG_EMERG, log, 0,
                      "\"%V\", beside queue_file of \"dsa_redis\", must be "
                      "a regular file that only nginx writes", &sums->path);

    } else {
        ngx_log_error(NGX_LOG_EMERG, log, err,
                      "%s of \"%V\", beside queue_file of \"dsa_redis\", "
                      "failed", call, &sums->path);
    }

    ngx_http_dsa_sums_close(sums);

    return NGX_ERROR;
}


ngx_int_t
ngx_http_dsa_sums_lock(ngx_http_dsa_sums_t *sums)
{
    if (sums->table.memory == NULL) {
        return NGX_ERROR;
    }

    if (ngx_http_dsa_sums_fcntl(sums, F_WRLCK) != NGX_OK) {

        if (!sums->failed) {
            sums->failed = 1;
            ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, ngx_errno,
                          "dsa: fcntl(F_WRLCK) of \"%V\" failed; what keys "
                          "have spent is not known", &sums->path);
        }

        dsa_sums_table_doubt(&sums->table);

        return NGX_ERROR;
    }

    if (ngx_http_dsa_sums_enter(sums) != NGX_OK) {
        (void) ngx_http_dsa_sums_fcntl(sums, F_UNLCK);
        return NGX_ERROR;
    }

    sums->failed = 0;

    return NGX_OK;
}


/* NGX_ERROR: there is no table, which is logged. */

static ngx_int_t
ngx_http_dsa_sums_enter(ngx_http_dsa_sums_t *sums)
{
    int  rc;

    rc = dsa_sums_table_enter(&sums->table);

    if (rc == DSA_ERROR) {

        /* another process has enlarged the file */

        if (ngx_http_dsa_sums_map(sums, ngx_cycle->log) != NGX_OK) {
            return NGX_ERROR;
        }

        if (dsa_sums_table_open(&sums->table) != DSA_OK) {
            ngx_http_dsa_sums_reset(sums, sums->table.rows, ngx_cycle->log);
        }

        rc = dsa_sums_table_enter(&sums->table);
    }

    if (rc == DSA_AGAIN && ngx_http_dsa_sums_recount(sums) != NGX_OK) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "dsa: no memory to count what keys have spent");
    }

    return NGX_OK;
}


/* In a section.  NGX_ERROR: out of memory, and sums are not known. */

static ngx_int_t
ngx_http_dsa_sums_recount(ngx_http_dsa_sums_t *sums)
{
    if (dsa_sums_table_recount(&sums->table) != DSA_OK) {
        return NGX_ERROR;
    }

    sums->entries(sums, sums->data);

    dsa_sums_table_recount_end(&sums->table);

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "dsa sums: entries in the queue of \"%V\" were counted",
                   &sums->path);

    return NGX_OK;
}


void
ngx_http_dsa_sums_unlock(ngx_http_dsa_sums_t *sums)
{
    dsa_sums_table_leave(&sums->table);

    (void) ngx_http_dsa_sums_fcntl(sums, F_UNLCK);
}


void
ngx_http_dsa_sums_charge(ngx_http_dsa_sums_t *sums,
    const dsa_schema_entry_t *entry)
{
    ngx_http_dsa_sums_change(sums, entry, dsa_sums_charge);
}


void
ngx_http_dsa_sums_confirm(ngx_http_dsa_sums_t *sums,
    const dsa_schema_entry_t *entry)
{
    ngx_http_dsa_sums_change(sums, entry, dsa_sums_confirm);
}


void
ngx_http_dsa_sums_lose(ngx_http_dsa_sums_t *sums,
    const dsa_schema_entry_t *entry)
{
    ngx_http_dsa_sums_change(sums, entry, dsa_sums_lose);
}


static void
ngx_http_dsa_sums_change(ngx_http_dsa_sums_t *sums,
    const dsa_schema_entry_t *entry, ngx_http_dsa_sums_change_pt change)
{
    time_t           now;
    dsa_sums_t       key;
    dsa_sums_row_t  *row;

    assert(sums->table.section);

    if (entry->key.len == 0) {
        return;
    }

    now = ngx_http_dsa_sums_now();
    row = dsa_sums_table_get(&sums->table, entry->key.data, &key, now);

    change(&key, ngx_http_dsa_sums_cost(entry), entry->time, now);

    dsa_sums_table_put(&sums->table, row, &key);
}


void
ngx_http_dsa_sums_count(ngx_http_dsa_sums_t *sums,
    const dsa_schema_entry_t *entry)
{
    if (entry->key.len != 0) {
        dsa_sums_table_recount_add(&sums->table, entry->key.data,
                                   ngx_http_dsa_sums_cost(entry), entry->time,
                                   ngx_http_dsa_sums_now());
    }
}


void
ngx_http_dsa_sums_mark(ngx_http_dsa_sums_t *sums, const u_char *id,
    dsa_sums_mark_t *mark)
{
    time_t           now;
    dsa_sums_t       key;
    dsa_sums_row_t  *row;

    now = ngx_http_dsa_sums_now();
    row = dsa_sums_table_get(&sums->table, id, &key, now);

    dsa_sums_mark(&key, mark, now);
    dsa_sums_table_put(&sums->table, row, &key);
}


void
ngx_http_dsa_sums_read(ngx_http_dsa_sums_t *sums, const u_char *id,
    const dsa_sums_mark_t *mark, const int64_t read[DSA_SUMS_PERIODS])
{
    time_t           now;
    dsa_sums_t       key;
    dsa_sums_row_t  *row;

    if (ngx_http_dsa_sums_lock(sums) != NGX_OK) {
        return;
    }

    now = ngx_http_dsa_sums_now();
    row = dsa_sums_table_get(&sums->table, id, &key, now);

    dsa_sums_read(&key, mark, read, now);
    dsa_sums_table_put(&sums->table, row, &key);

    ngx_http_dsa_sums_unlock(sums);
}


ngx_uint_t
ngx_http_dsa_sums_spent(ngx_http_dsa_sums_t *sums, const u_char *id,
    int64_t spent[DSA_SUMS_PERIODS])
{
    int     rc;
    time_t  now;

    ngx_memzero(spent, DSA_SUMS_PERIODS * sizeof(int64_t));

    if (sums->table.memory == NULL) {
        return 0;
    }

    now = ngx_http_dsa_sums_now();
    rc = dsa_sums_table_look(&sums->table, id, now, spent);

    if (rc == DSA_AGAIN) {

        if (ngx_http_dsa_sums_lock(sums) != NGX_OK) {
            return 0;
        }

        rc = dsa_sums_table_look(&sums->table, id, now, spent);

        ngx_http_dsa_sums_unlock(sums);
    }

    return rc == 1;
}


/* Waits for a lock on the file, or releases it. */

static ngx_int_t
ngx_http_dsa_sums_fcntl(ngx_http_dsa_sums_t *sums, short type)
{
    int           rc;
    struct flock  lock;

    ngx_memzero(&lock, sizeof(struct flock));

    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_len = 1;

    do {
        rc = fcntl(sums->fd, F_SETLKW, &lock);
    } while (rc == -1 && ngx_errno == NGX_EINTR);

    return rc == -1 ? NGX_ERROR : NGX_OK;
}
