
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include <sys/mman.h>

#include "ngx_http_dsa_ledger_file.h"


#define NGX_HTTP_DSA_LEDGER_MAGIC    "dsaledgr"
#define NGX_HTTP_DSA_LEDGER_VERSION  1
#define NGX_HTTP_DSA_LEDGER_BITS     64         /* where those of groups are */

/* words of counts under its checksum, and an odd factor that mixes them */

#define NGX_HTTP_DSA_LEDGER_WORDS                                             \
    (offsetof(ngx_http_dsa_ledger_counts_t, check) / sizeof(uint64_t))
#define NGX_HTTP_DSA_LEDGER_FACTOR   0x9e3779b97f4a7c15ULL

#define NGX_HTTP_DSA_LEDGER_OPENING  NGX_HTTP_DSA_LEDGER_OWNERS


typedef struct {
    char                          magic[8];
    uint32_t                      version;
    uint32_t                      cell_size;
    uint64_t                      cells;
    uint32_t                      crc;      /* of all fields before it */
    uint32_t                      unused;
} ngx_http_dsa_ledger_header_t;


/*
 * Other processes, of other versions too, have the same file mapped.  A change
 * of the layout requires another NGX_HTTP_DSA_LEDGER_VERSION: a file of another
 * version is renamed before it is mapped.
 */

#define ngx_http_dsa_ledger_at(member, offset)                                \
    _Static_assert(offsetof(ngx_http_dsa_ledger_cell_t, member) == (offset),  \
                   #member)

_Static_assert(sizeof(ngx_atomic_t) == 8, "state and owner are 8 bytes");
_Static_assert(sizeof(ngx_http_dsa_ledger_cell_t) == 512, "size of a cell");
ngx_http_dsa_ledger_at(word, 0);
ngx_http_dsa_ledger_at(crc, 8);
ngx_http_dsa_ledger_at(request_len, 12);
ngx_http_dsa_ledger_at(request, 16);
ngx_http_dsa_ledger_at(tenant, 80);
ngx_http_dsa_ledger_at(model, 144);
ngx_http_dsa_ledger_at(key, 208);
ngx_http_dsa_ledger_at(sender, 232);
ngx_http_dsa_ledger_at(number, 240);
ngx_http_dsa_ledger_at(current, 248);
ngx_http_dsa_ledger_at(counts, 256);
ngx_http_dsa_ledger_at(sent, 432);

_Static_assert(sizeof(ngx_http_dsa_ledger_counts_t) == 88, "size of counts");
_Static_assert(offsetof(ngx_http_dsa_ledger_counts_t, check) == 80, "check");

_Static_assert(sizeof(ngx_http_dsa_ledger_header_t) == 32, "size of a header");
_Static_assert(offsetof(ngx_http_dsa_ledger_header_t, version) == 8,
               "version");
_Static_assert(offsetof(ngx_http_dsa_ledger_header_t, cell_size) == 12,
               "cell_size");
_Static_assert(offsetof(ngx_http_dsa_ledger_header_t, cells) == 16, "cells");
_Static_assert(offsetof(ngx_http_dsa_ledger_header_t, crc) == 24, "crc");

_Static_assert(sizeof(ngx_http_dsa_ledger_header_t)
               <= NGX_HTTP_DSA_LEDGER_BITS,
               "the header ends before the bits");
_Static_assert((NGX_HTTP_DSA_LEDGER_HEADER - NGX_HTTP_DSA_LEDGER_BITS) * 8
               * NGX_HTTP_DSA_LEDGER_GROUP >= NGX_HTTP_DSA_LEDGER_MAX,
               "each group has a bit before the cells");
_Static_assert(NGX_HTTP_DSA_LEDGER_HEADER % 64 == 0
               && sizeof(ngx_http_dsa_ledger_cell_t) % 64 == 0,
               "cells share no cache line");
_Static_assert(NGX_HTTP_DSA_LEDGER_TEXT <= UINT8_MAX,
               "the length of a name is one byte");


static ngx_int_t ngx_http_dsa_ledger_file_open_locked(
    ngx_http_dsa_ledger_file_t *file, ngx_file_info_t *fi, ngx_log_t *log);
static ngx_int_t ngx_http_dsa_ledger_file_failed(
    ngx_http_dsa_ledger_file_t *file, ngx_log_t *log, ngx_err_t err,
    const char *call);
static const char *ngx_http_dsa_ledger_file_header(
    ngx_http_dsa_ledger_file_t *file);
static ngx_int_t ngx_http_dsa_ledger_file_replace(
    ngx_http_dsa_ledger_file_t *file, ngx_pool_t *pool, ngx_log_t *log,
    const char *why);
static ngx_int_t ngx_http_dsa_ledger_file_map(
    ngx_http_dsa_ledger_file_t *file, ngx_uint_t cells, ngx_file_info_t *fi,
    ngx_log_t *log);
static void ngx_http_dsa_ledger_file_truncated(
    const ngx_http_dsa_ledger_file_t *file, ngx_file_info_t *fi,
    ngx_log_t *log);
static ngx_int_t ngx_http_dsa_ledger_file_allocate(
    ngx_http_dsa_ledger_file_t *file, ngx_file_info_t *fi, ngx_log_t *log);
static void ngx_http_dsa_ledger_file_write_header(
    ngx_http_dsa_ledger_file_t *file);
static off_t ngx_http_dsa_ledger_file_size(ngx_uint_t cells);
static uint32_t ngx_http_dsa_ledger_header_crc(
    const ngx_http_dsa_ledger_header_t *header);
static ngx_int_t ngx_http_dsa_ledger_file_fcntl(
    ngx_http_dsa_ledger_file_t *file, ngx_uint_t byte, short type, int cmd);


ngx_int_t
ngx_http_dsa_ledger_file_open(ngx_http_dsa_ledger_file_t *file,
    ngx_uint_t cells, ngx_pool_t *pool, ngx_log_t *log)
{
    ngx_int_t         rc;
    const char       *why;
    ngx_file_info_t   fi;

    for ( ;; ) {
        file->n = 0;
        why = NULL;

        rc = ngx_http_dsa_ledger_file_open_locked(file, &fi, log);

        if (rc == NGX_AGAIN) {
            continue;
        }

        if (rc != NGX_OK) {
            return NGX_ERROR;
        }

        if (ngx_file_size(&fi) != 0) {
            why = ngx_http_dsa_ledger_file_header(file);
        }

        if (why == NULL) {
            break;
        }

        rc = ngx_http_dsa_ledger_file_replace(file, pool, log, why);

        ngx_http_dsa_ledger_file_close(file);

        if (rc != NGX_OK) {
            return NGX_ERROR;
        }
    }

    if (ngx_http_dsa_ledger_file_map(file, cells, &fi, log) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_http_dsa_ledger_file_fcntl(file, NGX_HTTP_DSA_LEDGER_OPENING,
                                       F_UNLCK, F_SETLK)
        != NGX_OK)
    {
        return ngx_http_dsa_ledger_file_failed(file, log, ngx_errno,
                                               "fcntl(F_SETLK)");
    }

    return NGX_OK;
}


/*
 * Another master may open, rename or extend the file at the same moment, so
 * all of this happens under a lock.  NGX_AGAIN: path names another file by
 * then.
 */

static ngx_int_t
ngx_http_dsa_ledger_file_open_locked(ngx_http_dsa_ledger_file_t *file,
    ngx_file_info_t *fi, ngx_log_t *log)
{
    ngx_file_info_t  named;

    file->fd = open((const char *) file->path.data, O_RDWR|O_CREAT|O_CLOEXEC,
                    0600);

    if (file->fd == NGX_INVALID_FILE) {
        return ngx_http_dsa_ledger_file_failed(file, log, ngx_errno, "open()");
    }

    if (ngx_http_dsa_ledger_file_fcntl(file, NGX_HTTP_DSA_LEDGER_OPENING,
                                       F_WRLCK, F_SETLKW)
        != NGX_OK)
    {
        return ngx_http_dsa_ledger_file_failed(file, log, ngx_errno,
                                               "fcntl(F_SETLKW)");
    }

    if (ngx_fd_info(file->fd, fi) == NGX_FILE_ERROR) {
        return ngx_http_dsa_ledger_file_failed(file, log, ngx_errno,
                                               "fstat()");
    }

    if (!ngx_is_file(fi)) {
        return ngx_http_dsa_ledger_file_failed(file, log, 0, NULL);
    }

    if (ngx_file_info(file->path.data, &named) == NGX_FILE_ERROR
        || ngx_file_uniq(&named) != ngx_file_uniq(fi)
        || named.st_dev != fi->st_dev)
    {
        ngx_http_dsa_ledger_file_close(file);
        return NGX_AGAIN;
    }

    return NGX_OK;
}


void
ngx_http_dsa_ledger_file_close(ngx_http_dsa_ledger_file_t *file)
{
    if (file->map != NULL) {
        (void) munmap(file->map, file->size);
        file->map = NULL;
    }

    if (file->fd != NGX_INVALID_FILE) {
        (void) ngx_close_file(file->fd);
        file->fd = NGX_INVALID_FILE;
    }
}


/*
 * Logs that a system call failed, or, if call is NULL, that the file is not a
 * regular one, and closes the file.  Returns NGX_ERROR.
 */

static ngx_int_t
ngx_http_dsa_ledger_file_failed(ngx_http_dsa_ledger_file_t *file,
    ngx_log_t *log, ngx_err_t err, const char *call)
{
    if (call == NULL) {
        ngx_log_error(NGX_LOG_EMERG, log, 0,
                      "queue_file \"%V\" of \"dsa_redis\" must be a regular "
                      "file", &file->path);

    } else {
        ngx_log_error(NGX_LOG_EMERG, log, err,
                      "%s of queue_file \"%V\" of \"dsa_redis\" failed",
                      call, &file->path);
    }

    ngx_http_dsa_ledger_file_close(file);

    return NGX_ERROR;
}


/*
 * Reads and checks the header, and sets file->n.  Returns NULL, or why the file
 * cannot be used.
 */

static const char *
ngx_http_dsa_ledger_file_header(ngx_http_dsa_ledger_file_t *file)
{
    ngx_http_dsa_ledger_header_t  header;

    if (pread(file->fd, &header, sizeof(header), 0)
        != (ssize_t) sizeof(header))
    {
        return "it has no header";
    }

    if (ngx_memcmp(header.magic, NGX_HTTP_DSA_LEDGER_MAGIC, 8) != 0) {
        return "it is not a file of ledger entries";
    }

    if (header.crc != ngx_http_dsa_ledger_header_crc(&header)
        || header.cells == 0 || header.cells > NGX_HTTP_DSA_LEDGER_MAX)
    {
        return "its header is damaged";
    }

    if (header.version != NGX_HTTP_DSA_LEDGER_VERSION
        || header.cell_size != sizeof(ngx_http_dsa_ledger_cell_t))
    {
        return "it has the layout of another version";
    }

    file->n = header.cells;

    return NULL;
}


/* Renames a file that cannot be used, so that a new one can be created. */

static ngx_int_t
ngx_http_dsa_ledger_file_replace(ngx_http_dsa_ledger_file_t *file,
    ngx_pool_t *pool, ngx_log_t *log, const char *why)
{
    u_char           *p, *name;
    time_t            n;
    ngx_file_info_t   fi;

    name = ngx_pnalloc(pool, file->path.len + sizeof(".damaged.")
                             + NGX_TIME_T_LEN);
    if (name == NULL) {
        return NGX_ERROR;
    }

    n = ngx_time();

    do {
        p = ngx_sprintf(name, "%V.damaged.%T", &file->path, n++);
        *p = '\0';
    } while (ngx_file_info(name, &fi) != NGX_FILE_ERROR);

    if (ngx_rename_file(file->path.data, name) == NGX_FILE_ERROR) {
        return ngx_http_dsa_ledger_file_failed(file, log, ngx_errno,
                                               "rename()");
    }

    ngx_log_error(NGX_LOG_ERR, log, 0,
                  "dsa: \"%V\" cannot be used for ledger entries: %s; it was "
                  "renamed to \"%s\", and the ledger entries in it are not "
                  "sent", &file->path, why, name);

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_ledger_file_map(ngx_http_dsa_ledger_file_t *file,
    ngx_uint_t cells, ngx_file_info_t *fi, ngx_log_t *log)
{
    if (ngx_file_size(fi) != 0) {
        ngx_http_dsa_ledger_file_truncated(file, fi, log);
    }

    file->n = ngx_max(file->n, cells);
    file->size = ngx_http_dsa_ledger_file_size(file->n);

    if (ngx_http_dsa_ledger_file_allocate(file, fi, log) != NGX_OK) {
        return NGX_ERROR;
    }

    file->map = mmap(NULL, file->size, PROT_READ|PROT_WRITE, MAP_SHARED,
                     file->fd, 0);

    if (file->map == MAP_FAILED) {
        file->map = NULL;
        return ngx_http_dsa_ledger_file_failed(file, log, ngx_errno, "mmap()");
    }

    ngx_http_dsa_ledger_file_write_header(file);

    file->groups = (uint64_t *) (file->map + NGX_HTTP_DSA_LEDGER_BITS);
    file->cells = (ngx_http_dsa_ledger_cell_t *)
                      (file->map + NGX_HTTP_DSA_LEDGER_HEADER);

    return NGX_OK;
}


ngx_int_t
ngx_http_dsa_ledger_file_restore(ngx_http_dsa_ledger_file_t *file,
    ngx_log_t *log)
{
    ngx_file_info_t  fi;

    if (ngx_fd_info(file->fd, &fi) == NGX_FILE_ERROR) {
        return ngx_http_dsa_ledger_file_failed(file, log, ngx_errno,
                                               "fstat()");
    }

    if (ngx_file_size(&fi) >= (off_t) file->size) {
        return NGX_OK;
    }

    ngx_http_dsa_ledger_file_truncated(file, &fi, log);

    if (ngx_http_dsa_ledger_file_allocate(file, &fi, log) != NGX_OK) {
        return NGX_ERROR;
    }

    /* a header that is left may be of a configuration with more cells */

    if (ngx_memcmp(file->map, NGX_HTTP_DSA_LEDGER_MAGIC, 8) != 0) {
        ngx_http_dsa_ledger_file_write_header(file);
    }

    return NGX_OK;
}


/* Each entry has a checksum, so those that are complete are sent. */

static void
ngx_http_dsa_ledger_file_truncated(const ngx_http_dsa_ledger_file_t *file,
    ngx_file_info_t *fi, ngx_log_t *log)
{
    off_t  size;

    size = ngx_http_dsa_ledger_file_size(file->n);

    if (ngx_file_size(fi) < size) {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "dsa: \"%V\" was truncated to %O of %O bytes; ledger "
                      "entries may be lost",
                      &file->path, ngx_file_size(fi), size);
    }
}


/*
 * Allocates every block of the file, because a write to a mapping raises
 * SIGBUS if the disk is full.
 */

static ngx_int_t
ngx_http_dsa_ledger_file_allocate(ngx_http_dsa_ledger_file_t *file,
    ngx_file_info_t *fi, ngx_log_t *log)
{
    int    err;
    off_t  size;

    size = file->size;

    if (ngx_file_size(fi) >= size && (off_t) fi->st_blocks * 512 >= size) {
        return NGX_OK;
    }

    do {
        err = posix_fallocate(file->fd, 0, size);
    } while (err == NGX_EINTR);

    return err == 0 ? NGX_OK
                    : ngx_http_dsa_ledger_file_failed(file, log, err,
                                                      "posix_fallocate()");
}


static void
ngx_http_dsa_ledger_file_write_header(ngx_http_dsa_ledger_file_t *file)
{
    ngx_http_dsa_ledger_header_t  header;

    ngx_memzero(&header, sizeof(ngx_http_dsa_ledger_header_t));
    ngx_memcpy(header.magic, NGX_HTTP_DSA_LEDGER_MAGIC, 8);
    header.version = NGX_HTTP_DSA_LEDGER_VERSION;
    header.cell_size = sizeof(ngx_http_dsa_ledger_cell_t);
    header.cells = file->n;
    header.crc = ngx_http_dsa_ledger_header_crc(&header);

    ngx_memcpy(file->map, &header, sizeof(ngx_http_dsa_ledger_header_t));
}


static off_t
ngx_http_dsa_ledger_file_size(ngx_uint_t cells)
{
    return NGX_HTTP_DSA_LEDGER_HEADER
           + (off_t) cells * sizeof(ngx_http_dsa_ledger_cell_t);
}


static uint32_t
ngx_http_dsa_ledger_header_crc(const ngx_http_dsa_ledger_header_t *header)
{
    return ngx_crc32_long((u_char *) header,
                          offsetof(ngx_http_dsa_ledger_header_t, crc));
}


uint32_t
ngx_http_dsa_ledger_file_crc(const ngx_http_dsa_ledger_cell_t *cell)
{
    size_t  start;

    start = offsetof(ngx_http_dsa_ledger_cell_t, request_len);

    return ngx_crc32_long((u_char *) cell + start,
                          offsetof(ngx_http_dsa_ledger_cell_t, current)
                          - start);
}


uint64_t
ngx_http_dsa_ledger_file_check(const ngx_http_dsa_ledger_counts_t *counts,
    uint32_t crc)
{
    size_t           i;
    uint64_t         h;
    const uint64_t  *word;

    h = crc;
    word = (const uint64_t *) counts;

    for (i = 0; i < NGX_HTTP_DSA_LEDGER_WORDS; i++) {
        h = (h ^ word[i]) * NGX_HTTP_DSA_LEDGER_FACTOR;
        h ^= h >> 32;
    }

    return h;
}


ngx_int_t
ngx_http_dsa_ledger_file_lock(ngx_http_dsa_ledger_file_t *file,
    ngx_uint_t owner)
{
    return ngx_http_dsa_ledger_file_fcntl(file, owner, F_WRLCK, F_SETLK);
}


void
ngx_http_dsa_ledger_file_unlock(ngx_http_dsa_ledger_file_t *file,
    ngx_uint_t owner)
{
    (void) ngx_http_dsa_ledger_file_fcntl(file, owner, F_UNLCK, F_SETLK);
}


static ngx_int_t
ngx_http_dsa_ledger_file_fcntl(ngx_http_dsa_ledger_file_t *file,
    ngx_uint_t byte, short type, int cmd)
{
    int           rc;
    struct flock  lock;

    ngx_memzero(&lock, sizeof(struct flock));

    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = byte;
    lock.l_len = 1;

    do {
        rc = fcntl(file->fd, cmd, &lock);
    } while (rc == -1 && ngx_errno == NGX_EINTR);

    return rc == -1 ? NGX_ERROR : NGX_OK;
}
