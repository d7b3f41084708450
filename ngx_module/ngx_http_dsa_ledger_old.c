
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include <sys/mman.h>

#include "ngx_http_dsa_ledger_old.h"


/* The layout of version 1, which never changes. */

#define NGX_HTTP_DSA_LEDGER_OLD_HEADER  4096    /* bytes before the slots */
#define NGX_HTTP_DSA_LEDGER_OLD_MAX     1000000     /* slots */
#define NGX_HTTP_DSA_LEDGER_OLD_SEATS   1024
#define NGX_HTTP_DSA_LEDGER_OLD_TEXT    64
#define NGX_HTTP_DSA_LEDGER_OLD_READY   2       /* a state */


typedef struct {
    char                          magic[8];
    uint32_t                      version;
    uint32_t                      slot_size;
    uint64_t                      slots;
    uint32_t                      crc;      /* of all fields before it */
    uint32_t                      unused;
} ngx_http_dsa_ledger_old_header_t;


typedef struct {
    ngx_atomic_t                  word;     /* state, and seat above its 8 bits
                                               */
    uint32_t                      crc;      /* of all that follows */
    uint8_t                       request_len;
    uint8_t                       tenant_len;
    uint8_t                       model_len;
    uint8_t                       reserved;
    int64_t                       time;
    uint64_t                      prompt_tokens;
    uint64_t                      cached_tokens;
    uint64_t                      completion_tokens;
    uint64_t                      reasoning_tokens;
    char                          request[NGX_HTTP_DSA_LEDGER_OLD_TEXT];
    char                          tenant[NGX_HTTP_DSA_LEDGER_OLD_TEXT];
    char                          model[NGX_HTTP_DSA_LEDGER_OLD_TEXT];
    uint32_t                      host_tokens;
    uint32_t                      redis_tokens;
} ngx_http_dsa_ledger_old_slot_t;


_Static_assert(sizeof(ngx_http_dsa_ledger_old_header_t) == 32, "a header");
_Static_assert(sizeof(ngx_http_dsa_ledger_old_slot_t) == 256, "a slot");
_Static_assert(offsetof(ngx_http_dsa_ledger_old_slot_t, request_len) == 12,
               "the checksum is of what follows it");
_Static_assert(offsetof(ngx_http_dsa_ledger_old_slot_t, request) == 56,
               "the texts follow the counts");


static const char *ngx_http_dsa_ledger_old_check(
    ngx_http_dsa_ledger_old_t *old, off_t size);
static ngx_uint_t ngx_http_dsa_ledger_old_adopt_seat(
    ngx_http_dsa_ledger_old_t *old, ngx_uint_t seat, ngx_log_t *log,
    ngx_http_dsa_ledger_old_pt handler, void *data);
static ngx_int_t ngx_http_dsa_ledger_old_read(
    const ngx_http_dsa_ledger_old_slot_t *slot, dsa_schema_record_t *entry);
static ngx_uint_t ngx_http_dsa_ledger_old_seated(
    ngx_http_dsa_ledger_old_t *old);
static ngx_int_t ngx_http_dsa_ledger_old_lock(ngx_http_dsa_ledger_old_t *old,
    ngx_uint_t seat, short type);


static ngx_inline ngx_http_dsa_ledger_old_slot_t *
ngx_http_dsa_ledger_old_slot(ngx_http_dsa_ledger_old_t *old, ngx_uint_t i)
{
    return (ngx_http_dsa_ledger_old_slot_t *)
               (old->map + NGX_HTTP_DSA_LEDGER_OLD_HEADER) + i;
}


ngx_int_t
ngx_http_dsa_ledger_old_open(ngx_http_dsa_ledger_old_t *old, ngx_log_t *log)
{
    const char       *why;
    ngx_file_info_t   fi;

    old->fd = open((const char *) old->path.data, O_RDWR|O_CLOEXEC);

    if (old->fd == NGX_INVALID_FILE) {

        if (ngx_errno == NGX_ENOENT) {
            return NGX_OK;
        }

        ngx_log_error(NGX_LOG_EMERG, log, ngx_errno,
                      "open() of queue_file \"%V\" of \"dsa_redis\" failed",
                      &old->path);
        return NGX_ERROR;
    }

    if (ngx_fd_info(old->fd, &fi) == NGX_FILE_ERROR || !ngx_is_file(&fi)) {
        ngx_log_error(NGX_LOG_EMERG, log, 0,
                      "queue_file \"%V\" of \"dsa_redis\" must be a regular "
                      "file", &old->path);
        ngx_http_dsa_ledger_old_close(old);
        return NGX_ERROR;
    }

    why = ngx_http_dsa_ledger_old_check(old, ngx_file_size(&fi));

    if (why != NULL) {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "dsa: ledger entries of an earlier version in \"%V\" are "
                      "not sent: %s", &old->path, why);
        ngx_http_dsa_ledger_old_close(old);
        return NGX_OK;
    }

    old->size = NGX_HTTP_DSA_LEDGER_OLD_HEADER
                + old->n * sizeof(ngx_http_dsa_ledger_old_slot_t);

    old->map = mmap(NULL, old->size, PROT_READ|PROT_WRITE, MAP_SHARED,
                    old->fd, 0);

    if (old->map == MAP_FAILED) {
        old->map = NULL;
        ngx_log_error(NGX_LOG_EMERG, log, ngx_errno,
                      "mmap() of queue_file \"%V\" of \"dsa_redis\" failed",
                      &old->path);
        ngx_http_dsa_ledger_old_close(old);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* Sets old->n; of a file that was truncated only whole slots are read. */

static const char *
ngx_http_dsa_ledger_old_check(ngx_http_dsa_ledger_old_t *old, off_t size)
{
    ngx_http_dsa_ledger_old_header_t  header;

    if (pread(old->fd, &header, sizeof(header), 0)
        != (ssize_t) sizeof(header)
        || size < NGX_HTTP_DSA_LEDGER_OLD_HEADER)
    {
        return "it has no header";
    }

    if (ngx_memcmp(header.magic, "dsaledgr", 8) != 0) {
        return "it is not a file of ledger entries";
    }

    if (header.crc != ngx_crc32_long((u_char *) &header,
                                     offsetof(ngx_http_dsa_ledger_old_header_t,
                                              crc))
        || header.slots == 0
        || header.slots > NGX_HTTP_DSA_LEDGER_OLD_MAX)
    {
        return "its header is damaged";
    }

    if (header.version != 1
        || header.slot_size != sizeof(ngx_http_dsa_ledger_old_slot_t))
    {
        return "it has the layout of another version";
    }

    size -= NGX_HTTP_DSA_LEDGER_OLD_HEADER;
    size /= sizeof(ngx_http_dsa_ledger_old_slot_t);

    old->n = ngx_min((uint64_t) size, header.slots);

    return NULL;
}


void
ngx_http_dsa_ledger_old_close(ngx_http_dsa_ledger_old_t *old)
{
    if (old->map != NULL) {
        (void) munmap(old->map, old->size);
        old->map = NULL;
    }

    if (old->fd != NGX_INVALID_FILE) {
        (void) ngx_close_file(old->fd);
        old->fd = NGX_INVALID_FILE;
    }
}


ngx_uint_t
ngx_http_dsa_ledger_old_adopt(ngx_http_dsa_ledger_old_t *old, ngx_log_t *log,
    ngx_http_dsa_ledger_old_pt handler, void *data)
{
    u_char             seen[NGX_HTTP_DSA_LEDGER_OLD_SEATS];
    ngx_uint_t         i, seat, damaged, seated;
    ngx_atomic_uint_t  word;

    if (old->map == NULL) {
        return 0;
    }

    ngx_memzero(seen, sizeof(seen));

    /* a worker that ends after this may leave entries */

    seated = ngx_http_dsa_ledger_old_seated(old);

    for (i = 0; i < old->n; i++) {
        word = ngx_http_dsa_ledger_old_slot(old, i)->word;
        seat = word >> 8;

        if ((word & 0xff) == NGX_HTTP_DSA_LEDGER_OLD_READY
            && seat < NGX_HTTP_DSA_LEDGER_OLD_SEATS)
        {
            seen[seat] = 1;
            seated = 1;
        }
    }

    if (!seated) {
        ngx_http_dsa_ledger_old_close(old);
        return 0;
    }

    damaged = 0;

    for (seat = 0; seat < NGX_HTTP_DSA_LEDGER_OLD_SEATS; seat++) {

        if (!seen[seat]
            || ngx_http_dsa_ledger_old_lock(old, seat, F_WRLCK) != NGX_OK)
        {
            continue;
        }

        damaged += ngx_http_dsa_ledger_old_adopt_seat(old, seat, log, handler,
                                                      data);

        (void) ngx_http_dsa_ledger_old_lock(old, seat, F_UNLCK);
    }

    return damaged;
}


/*
 * The caller has locked the seat, so no other process writes to its slots.  If
 * this process ends before it has freed a slot, the entry is adopted again, and
 * Redis counts it once by the id of its request.
 */

static ngx_uint_t
ngx_http_dsa_ledger_old_adopt_seat(ngx_http_dsa_ledger_old_t *old,
    ngx_uint_t seat, ngx_log_t *log, ngx_http_dsa_ledger_old_pt handler,
    void *data)
{
    ngx_uint_t                       i, n, damaged;
    ngx_atomic_uint_t                ready;
    dsa_schema_record_t              entry;
    ngx_http_dsa_ledger_old_slot_t   copy, *slot;

    ready = NGX_HTTP_DSA_LEDGER_OLD_READY | ((ngx_atomic_uint_t) seat << 8);
    n = 0;
    damaged = 0;

    for (i = 0; i < old->n; i++) {
        slot = ngx_http_dsa_ledger_old_slot(old, i);

        if (slot->word != ready) {
            continue;
        }

        ngx_memcpy(&copy, (void *) slot, sizeof(copy));

        if (ngx_http_dsa_ledger_old_read(&copy, &entry) != NGX_OK) {
            ngx_log_error(NGX_LOG_ERR, log, 0,
                          "dsa: a ledger entry is lost: slot %ui of \"%V\" is "
                          "damaged", i, &old->path);
            damaged++;

        } else if (handler(data, &entry) == NGX_OK) {
            n++;

        } else {
            break;
        }

        (void) ngx_atomic_cmp_set(&slot->word, ready, 0);
    }

    if (n != 0) {
        ngx_log_error(NGX_LOG_NOTICE, log, 0,
                      "dsa: %ui ledger entries of an earlier version were "
                      "adopted from \"%V\"", n, &old->path);
    }

    return damaged;
}


static ngx_int_t
ngx_http_dsa_ledger_old_read(const ngx_http_dsa_ledger_old_slot_t *slot,
    dsa_schema_record_t *entry)
{
    size_t  start;

    start = offsetof(ngx_http_dsa_ledger_old_slot_t, request_len);

    if (slot->crc != ngx_crc32_long((u_char *) slot + start,
                                    sizeof(*slot) - start)
        || slot->request_len > NGX_HTTP_DSA_LEDGER_OLD_TEXT
        || slot->tenant_len > NGX_HTTP_DSA_LEDGER_OLD_TEXT
        || slot->model_len > NGX_HTTP_DSA_LEDGER_OLD_TEXT)
    {
        return NGX_ERROR;
    }

    ngx_memzero(entry, sizeof(dsa_schema_record_t));

    entry->request = dsa_str(slot->request, slot->request_len);
    entry->tenant = dsa_str(slot->tenant, slot->tenant_len);
    entry->model = dsa_str(slot->model, slot->model_len);
    entry->time = slot->time;
    entry->prompt_tokens = slot->prompt_tokens;
    entry->cached_tokens = slot->cached_tokens;
    entry->host_tokens = slot->host_tokens;
    entry->redis_tokens = slot->redis_tokens;
    entry->completion_tokens = slot->completion_tokens;
    entry->reasoning_tokens = slot->reasoning_tokens;

    return dsa_schema_entry_ok(entry) ? NGX_OK : NGX_ERROR;
}


/* 1: another process has the lock of a seat. */

static ngx_uint_t
ngx_http_dsa_ledger_old_seated(ngx_http_dsa_ledger_old_t *old)
{
    struct flock  lock;

    ngx_memzero(&lock, sizeof(struct flock));

    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_len = NGX_HTTP_DSA_LEDGER_OLD_SEATS;

    return fcntl(old->fd, F_GETLK, &lock) == -1 || lock.l_type != F_UNLCK;
}


static ngx_int_t
ngx_http_dsa_ledger_old_lock(ngx_http_dsa_ledger_old_t *old, ngx_uint_t seat,
    short type)
{
    int           rc;
    struct flock  lock;

    ngx_memzero(&lock, sizeof(struct flock));

    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = seat;
    lock.l_len = 1;

    do {
        rc = fcntl(old->fd, F_SETLK, &lock);
    } while (rc == -1 && ngx_errno == NGX_EINTR);

    return rc == -1 ? NGX_ERROR : NGX_OK;
}
