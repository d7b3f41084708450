
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include <sys/mman.h>

#include "ngx_http_dsa_ledger_old.h"


/* The layout of version 1, which never changes. */

#define NGX_HTTP_DSA_LEDGER_OLD_SEATS   1024
#define NGX_HTTP_DSA_LEDGER_OLD_TEXT    64
#define NGX_HTTP_DSA_LEDGER_OLD_READY   2       /* a state */


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


_Static_assert(NGX_HTTP_DSA_LEDGER_OLD_SEATS == NGX_HTTP_DSA_LEDGER_SEATS,
               "the bytes that are locked are the same");
_Static_assert(sizeof(ngx_http_dsa_ledger_old_slot_t) == 256, "a slot");
_Static_assert(offsetof(ngx_http_dsa_ledger_old_slot_t, request_len) == 12,
               "the checksum is of what follows it");
_Static_assert(offsetof(ngx_http_dsa_ledger_old_slot_t, request) == 56,
               "the texts follow the counts");


static ngx_uint_t ngx_http_dsa_ledger_old_adopt_seat(
    ngx_http_dsa_ledger_file_t *old, ngx_uint_t seat, ngx_log_t *log,
    ngx_http_dsa_ledger_old_pt handler, void *data);
static ngx_int_t ngx_http_dsa_ledger_old_read(
    const ngx_http_dsa_ledger_old_slot_t *slot, dsa_schema_record_t *entry);
static ngx_uint_t ngx_http_dsa_ledger_old_seated(
    ngx_http_dsa_ledger_file_t *old);


static ngx_inline ngx_http_dsa_ledger_old_slot_t *
ngx_http_dsa_ledger_old_slot(ngx_http_dsa_ledger_file_t *old, ngx_uint_t i)
{
    return (ngx_http_dsa_ledger_old_slot_t *)
               (old->map + NGX_HTTP_DSA_LEDGER_HEADER) + i;
}


ngx_int_t
ngx_http_dsa_ledger_old_open(ngx_http_dsa_ledger_file_t *old, ngx_log_t *log)
{
    size_t            size;
    const char       *why;
    ngx_file_info_t   fi;

    size = sizeof(ngx_http_dsa_ledger_old_slot_t);

    old->fd = open((const char *) old->path.data, O_RDWR|O_CLOEXEC);

    if (old->fd == NGX_INVALID_FILE) {
        return ngx_errno == NGX_ENOENT
               ? NGX_OK
               : ngx_http_dsa_ledger_file_failed(old, log, ngx_errno,
                                                 "open()");
    }

    if (ngx_fd_info(old->fd, &fi) == NGX_FILE_ERROR || !ngx_is_file(&fi)) {
        return ngx_http_dsa_ledger_file_failed(old, log, 0, NULL);
    }

    why = ngx_http_dsa_ledger_file_header(old, 1, size);

    if (why == NULL && ngx_file_size(&fi) < NGX_HTTP_DSA_LEDGER_HEADER) {
        why = "it has no slots";
    }

    if (why != NULL) {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "dsa: ledger entries of an earlier version in \"%V\" are "
                      "not sent: %s", &old->path, why);
        ngx_http_dsa_ledger_file_close(old);
        return NGX_OK;
    }

    /* of a file that was truncated only whole slots are read */

    old->n = ngx_min((ngx_file_size(&fi) - NGX_HTTP_DSA_LEDGER_HEADER) / size,
                     old->n);

    old->size = NGX_HTTP_DSA_LEDGER_HEADER + old->n * size;

    old->map = mmap(NULL, old->size, PROT_READ|PROT_WRITE, MAP_SHARED,
                    old->fd, 0);

    if (old->map == MAP_FAILED) {
        old->map = NULL;
        return ngx_http_dsa_ledger_file_failed(old, log, ngx_errno, "mmap()");
    }

    return NGX_OK;
}


ngx_uint_t
ngx_http_dsa_ledger_old_adopt(ngx_http_dsa_ledger_file_t *old, ngx_log_t *log,
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
        ngx_http_dsa_ledger_file_close(old);
        return 0;
    }

    damaged = 0;

    for (seat = 0; seat < NGX_HTTP_DSA_LEDGER_OLD_SEATS; seat++) {

        if (!seen[seat]
            || ngx_http_dsa_ledger_file_lock(old, seat) != NGX_OK)
        {
            continue;
        }

        damaged += ngx_http_dsa_ledger_old_adopt_seat(old, seat, log, handler,
                                                      data);

        ngx_http_dsa_ledger_file_unlock(old, seat);
    }

    return damaged;
}


/*
 * The caller has locked the seat, so no other process writes to its slots.  If
 * this process ends before it has freed a slot, the entry is adopted again, and
 * Redis counts it once by the id of its request.
 */

static ngx_uint_t
ngx_http_dsa_ledger_old_adopt_seat(ngx_http_dsa_ledger_file_t *old,
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
ngx_http_dsa_ledger_old_seated(ngx_http_dsa_ledger_file_t *old)
{
    struct flock  lock;

    ngx_memzero(&lock, sizeof(struct flock));

    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_len = NGX_HTTP_DSA_LEDGER_OLD_SEATS;

    return fcntl(old->fd, F_GETLK, &lock) == -1 || lock.l_type != F_UNLCK;
}
