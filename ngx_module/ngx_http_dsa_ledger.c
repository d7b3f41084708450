
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <sys/mman.h>

#include "ngx_http_dsa_ledger.h"
#include "ngx_http_dsa_module.h"


#define NGX_HTTP_DSA_LEDGER_MAGIC    "dsaledgr"
#define NGX_HTTP_DSA_LEDGER_VERSION  1
#define NGX_HTTP_DSA_LEDGER_HEADER   4096
#define NGX_HTTP_DSA_LEDGER_ZONE     (64 * 1024)

/* bytes of the file that are locked: a seat each, and one to open the file */

#define NGX_HTTP_DSA_LEDGER_SEATS    1024
#define NGX_HTTP_DSA_LEDGER_OPENING  NGX_HTTP_DSA_LEDGER_SEATS


typedef enum {
    ngx_http_dsa_ledger_free_slot = 0,
    ngx_http_dsa_ledger_writing,        /* its request has not ended */
    ngx_http_dsa_ledger_ready
} ngx_http_dsa_ledger_state_e;


typedef struct {
    char                          magic[8];
    uint32_t                      version;
    uint32_t                      slot_size;
    uint64_t                      slots;
    uint32_t                      crc;      /* of all before it */
    uint32_t                      unused;
} ngx_http_dsa_ledger_header_t;


struct ngx_http_dsa_ledger_s {
    ngx_str_t                     path;
    ngx_cycle_t                  *cycle;
    ngx_uint_t                    want;     /* queue= */

    ngx_fd_t                      fd;
    u_char                       *map;
    size_t                        size;
    ngx_http_dsa_ledger_slot_t   *slots;
    ngx_uint_t                    n;

    ngx_uint_t                    seat;
    ngx_uint_t                    next;     /* where to look for a free one */
    unsigned                      seated:1;
};


static ngx_int_t ngx_http_dsa_ledger_init(ngx_shm_zone_t *zone, void *data);
static void ngx_http_dsa_ledger_cleanup(void *data);
static void ngx_http_dsa_ledger_close(ngx_http_dsa_ledger_t *ledger);
static ngx_int_t ngx_http_dsa_ledger_open(ngx_http_dsa_ledger_t *ledger,
    ngx_log_t *log);
static ngx_int_t ngx_http_dsa_ledger_failed(ngx_http_dsa_ledger_t *ledger,
    ngx_log_t *log, ngx_err_t err, const char *what);
static ngx_int_t ngx_http_dsa_ledger_check(ngx_http_dsa_ledger_t *ledger,
    ngx_file_info_t *fi, ngx_log_t *log, const char **why);
static ngx_int_t ngx_http_dsa_ledger_aside(ngx_http_dsa_ledger_t *ledger,
    ngx_log_t *log, const char *why);
static ngx_int_t ngx_http_dsa_ledger_map(ngx_http_dsa_ledger_t *ledger,
    ngx_file_info_t *fi, ngx_log_t *log);
static uint32_t ngx_http_dsa_ledger_header_crc(
    const ngx_http_dsa_ledger_header_t *header);
static uint32_t ngx_http_dsa_ledger_crc(
    const ngx_http_dsa_ledger_slot_t *slot);
static ngx_int_t ngx_http_dsa_ledger_lock(ngx_fd_t fd, ngx_uint_t byte,
    short type, int cmd);
static ngx_uint_t ngx_http_dsa_ledger_take(ngx_http_dsa_ledger_t *ledger,
    ngx_uint_t seat, ngx_log_t *log, ngx_http_dsa_ledger_pt handler,
    void *data, ngx_uint_t *adopted);
static void ngx_http_dsa_ledger_damaged(ngx_http_dsa_ledger_t *ledger,
    ngx_uint_t n, ngx_log_t *log);
static char *ngx_http_dsa_ledger_text(char *to, uint8_t *len, dsa_str_t s);


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

    ledger->path = *path;
    ledger->cycle = cf->cycle;
    ledger->want = slots;
    ledger->fd = NGX_INVALID_FILE;

    cln = ngx_pool_cleanup_add(cf->pool, 0);
    if (cln == NULL) {
        return NULL;
    }

    cln->handler = ngx_http_dsa_ledger_cleanup;
    cln->data = ledger;

    /*
     * The memory of this zone is not used, only its callback: it runs when
     * the path of the pid file is known, and when it fails nginx keeps its
     * old configuration.  After a failed init_module the master would exit.
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
    u_char                 *p;
    ngx_core_conf_t        *ccf;
    ngx_http_dsa_ledger_t  *ledger = zone->data;

    static const char  suffix[] = ".ledger";

    if (ngx_test_config) {
        return NGX_OK;
    }

    if (ledger->path.len == 0) {
        ccf = (ngx_core_conf_t *) ngx_get_conf(ledger->cycle->conf_ctx,
                                               ngx_core_module);

        p = ngx_pnalloc(ledger->cycle->pool, ccf->pid.len + sizeof(suffix));
        if (p == NULL) {
            return NGX_ERROR;
        }

        ledger->path.data = p;
        ledger->path.len = ccf->pid.len + sizeof(suffix) - 1;

        p = ngx_cpymem(p, ccf->pid.data, ccf->pid.len);
        ngx_memcpy(p, suffix, sizeof(suffix));
    }

    return ngx_http_dsa_ledger_open(ledger, ledger->cycle->log);
}


static void
ngx_http_dsa_ledger_cleanup(void *data)
{
    ngx_http_dsa_ledger_close(data);
}


static void
ngx_http_dsa_ledger_close(ngx_http_dsa_ledger_t *ledger)
{
    if (ledger->map != NULL) {
        (void) munmap(ledger->map, ledger->size);
        ledger->map = NULL;
    }

    if (ledger->fd != NGX_INVALID_FILE) {
        (void) ngx_close_file(ledger->fd);
        ledger->fd = NGX_INVALID_FILE;
    }
}


/*
 * Another master may open, rename or grow the file at the same moment: all of
 * it happens under a lock, and a file that has another name by then is opened
 * anew.
 */

static ngx_int_t
ngx_http_dsa_ledger_open(ngx_http_dsa_ledger_t *ledger, ngx_log_t *log)
{
    ngx_int_t         rc;
    const char       *why;
    ngx_file_info_t   fi, named;

    for ( ;; ) {
        ledger->fd = open((const char *) ledger->path.data,
                          O_RDWR|O_CREAT|O_CLOEXEC, 0600);

        if (ledger->fd == NGX_INVALID_FILE) {
            return ngx_http_dsa_ledger_failed(ledger, log, ngx_errno,
                                              "open()");
        }

        if (ngx_http_dsa_ledger_lock(ledger->fd, NGX_HTTP_DSA_LEDGER_OPENING,
                                     F_WRLCK, F_SETLKW)
            != NGX_OK)
        {
            return ngx_http_dsa_ledger_failed(ledger, log, ngx_errno,
                                              "fcntl(F_SETLKW)");
        }

        if (ngx_fd_info(ledger->fd, &fi) == NGX_FILE_ERROR) {
            return ngx_http_dsa_ledger_failed(ledger, log, ngx_errno,
                                              "fstat()");
        }

        if (!ngx_is_file(&fi)) {
            return ngx_http_dsa_ledger_failed(ledger, log, 0, NULL);
        }

        if (ngx_file_info(ledger->path.data, &named) == NGX_FILE_ERROR
            || ngx_file_uniq(&named) != ngx_file_uniq(&fi)
            || named.st_dev != fi.st_dev)
        {
            ngx_http_dsa_ledger_close(ledger);
            continue;
        }

        rc = ngx_http_dsa_ledger_check(ledger, &fi, log, &why);

        if (rc == NGX_DECLINED) {
            rc = ngx_http_dsa_ledger_aside(ledger, log, why);
            ngx_http_dsa_ledger_close(ledger);

            if (rc == NGX_OK) {
                continue;
            }
        }

        if (rc == NGX_OK) {
            rc = ngx_http_dsa_ledger_map(ledger, &fi, log);
        }

        if (rc == NGX_OK
            && ngx_http_dsa_ledger_lock(ledger->fd,
                                        NGX_HTTP_DSA_LEDGER_OPENING, F_UNLCK,
                                        F_SETLK)
               != NGX_OK)
        {
            rc = ngx_http_dsa_ledger_failed(ledger, log, ngx_errno,
                                            "fcntl(F_SETLK)");
        }

        return rc;
    }
}


static ngx_int_t
ngx_http_dsa_ledger_failed(ngx_http_dsa_ledger_t *ledger, ngx_log_t *log,
    ngx_err_t err, const char *what)
{
    if (what == NULL) {
        ngx_log_error(NGX_LOG_EMERG, log, 0,
                      "queue_file \"%V\" of \"dsa_redis\" must be a regular "
                      "file", &ledger->path);

    } else {
        ngx_log_error(NGX_LOG_EMERG, log, err,
                      "%s of queue_file \"%V\" of \"dsa_redis\" failed",
                      what, &ledger->path);
    }

    ngx_http_dsa_ledger_close(ledger);

    return NGX_ERROR;
}


/*
 * NGX_OK: an empty file, or one of this layout, which has ledger->n slots;
 * NGX_DECLINED: it has another layout or is damaged; *why is the reason.
 */

static ngx_int_t
ngx_http_dsa_ledger_check(ngx_http_dsa_ledger_t *ledger, ngx_file_info_t *fi,
    ngx_log_t *log, const char **why)
{
    off_t                         size;
    ngx_http_dsa_ledger_header_t  header;

    ledger->n = 0;

    if (ngx_file_size(fi) == 0) {
        return NGX_OK;
    }

    if (pread(ledger->fd, &header, sizeof(header), 0)
        != (ssize_t) sizeof(header))
    {
        *why = "it has no header";
        return NGX_DECLINED;
    }

    if (ngx_memcmp(header.magic, NGX_HTTP_DSA_LEDGER_MAGIC, 8) != 0) {
        *why = "it does not begin as a ledger queue";
        return NGX_DECLINED;
    }

    if (header.crc != ngx_http_dsa_ledger_header_crc(&header)
        || header.slots == 0 || header.slots > NGX_HTTP_DSA_LEDGER_MAX)
    {
        *why = "its header is damaged";
        return NGX_DECLINED;
    }

    if (header.version != NGX_HTTP_DSA_LEDGER_VERSION
        || header.slot_size != sizeof(ngx_http_dsa_ledger_slot_t))
    {
        *why = "it has the layout of another version";
        return NGX_DECLINED;
    }

    ledger->n = header.slots;

    size = NGX_HTTP_DSA_LEDGER_HEADER
           + (off_t) ledger->n * sizeof(ngx_http_dsa_ledger_slot_t);

    if (ngx_file_size(fi) < size) {

        /* the entries that are there are sent, each has its checksum */

        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "dsa: \"%V\" was truncated to %O of %O bytes, ledger "
                      "entries may be lost",
                      &ledger->path, ngx_file_size(fi), size);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_ledger_aside(ngx_http_dsa_ledger_t *ledger, ngx_log_t *log,
    const char *why)
{
    u_char           *p, *name;
    time_t            n;
    ngx_file_info_t   fi;

    name = ngx_pnalloc(ledger->cycle->pool, ledger->path.len
                       + sizeof(".damaged.") + NGX_TIME_T_LEN);
    if (name == NULL) {
        return NGX_ERROR;
    }

    n = ngx_time();

    do {
        p = ngx_sprintf(name, "%V.damaged.%T", &ledger->path, n++);
        *p = '\0';
    } while (ngx_file_info(name, &fi) != NGX_FILE_ERROR);

    if (ngx_rename_file(ledger->path.data, name) == NGX_FILE_ERROR) {
        return ngx_http_dsa_ledger_failed(ledger, log, ngx_errno,
                                          "rename()");
    }

    ngx_log_error(NGX_LOG_ERR, log, 0,
                  "dsa: \"%V\" cannot be used as the ledger's queue: %s; it "
                  "was renamed to \"%s\", ledger entries in it are not sent",
                  &ledger->path, why, name);

    return NGX_OK;
}


/*
 * Every block is allocated here, because writing to a mapping of a file that
 * finds the disk full raises SIGBUS.
 */

static ngx_int_t
ngx_http_dsa_ledger_map(ngx_http_dsa_ledger_t *ledger, ngx_file_info_t *fi,
    ngx_log_t *log)
{
    int                            err;
    off_t                          size;
    ngx_uint_t                     left;
    ngx_http_dsa_ledger_header_t   header;

    ledger->n = ngx_max(ledger->n, ledger->want);

    size = NGX_HTTP_DSA_LEDGER_HEADER
           + (off_t) ledger->n * sizeof(ngx_http_dsa_ledger_slot_t);

    if (ngx_file_size(fi) < size || (off_t) fi->st_blocks * 512 < size) {

        do {
            err = posix_fallocate(ledger->fd, 0, size);
        } while (err == NGX_EINTR);

        if (err != 0) {
            return ngx_http_dsa_ledger_failed(ledger, log, err,
                                              "posix_fallocate()");
        }
    }

    ledger->size = size;
    ledger->map = mmap(NULL, size, PROT_READ|PROT_WRITE, MAP_SHARED,
                       ledger->fd, 0);

    if (ledger->map == MAP_FAILED) {
        ledger->map = NULL;
        return ngx_http_dsa_ledger_failed(ledger, log, ngx_errno, "mmap()");
    }

    ngx_memzero(&header, sizeof(ngx_http_dsa_ledger_header_t));
    ngx_memcpy(header.magic, NGX_HTTP_DSA_LEDGER_MAGIC, 8);
    header.version = NGX_HTTP_DSA_LEDGER_VERSION;
    header.slot_size = sizeof(ngx_http_dsa_ledger_slot_t);
    header.slots = ledger->n;
    header.crc = ngx_http_dsa_ledger_header_crc(&header);

    ngx_memcpy(ledger->map, &header, sizeof(ngx_http_dsa_ledger_header_t));

    ledger->slots = (ngx_http_dsa_ledger_slot_t *)
                        (ledger->map + NGX_HTTP_DSA_LEDGER_HEADER);

    left = ngx_http_dsa_ledger_entries(ledger);

    if (left != 0) {
        ngx_log_error(NGX_LOG_NOTICE, log, 0,
                      "dsa: %ui ledger entries are left over in \"%V\"",
                      left, &ledger->path);
    }

    return NGX_OK;
}


static uint32_t
ngx_http_dsa_ledger_header_crc(const ngx_http_dsa_ledger_header_t *header)
{
    return ngx_crc32_long((u_char *) header,
                          offsetof(ngx_http_dsa_ledger_header_t, crc));
}


static uint32_t
ngx_http_dsa_ledger_crc(const ngx_http_dsa_ledger_slot_t *slot)
{
    size_t  start;

    start = offsetof(ngx_http_dsa_ledger_slot_t, request_len);

    return ngx_crc32_long((u_char *) slot + start,
                          sizeof(ngx_http_dsa_ledger_slot_t) - start);
}


static ngx_int_t
ngx_http_dsa_ledger_lock(ngx_fd_t fd, ngx_uint_t byte, short type, int cmd)
{
    int           rc;
    struct flock  lock;

    ngx_memzero(&lock, sizeof(struct flock));

    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = byte;
    lock.l_len = 1;

    do {
        rc = fcntl(fd, cmd, &lock);
    } while (rc == -1 && ngx_errno == NGX_EINTR);

    return rc == -1 ? NGX_ERROR : NGX_OK;
}


/*
 * A seat is not taken while slots of its last owner are left, because they
 * could not be told from the worker's own slots.
 */

ngx_int_t
ngx_http_dsa_ledger_sit(ngx_http_dsa_ledger_t *ledger, ngx_log_t *log)
{
    ngx_err_t   err;
    ngx_uint_t  i, seat;

    err = 0;

    for (seat = 0;
         seat < NGX_HTTP_DSA_LEDGER_SEATS && ledger->map != NULL;
         seat++)
    {
        if (ngx_http_dsa_ledger_lock(ledger->fd, seat, F_WRLCK, F_SETLK)
            != NGX_OK)
        {
            err = ngx_errno;
            continue;
        }

        for (i = 0; i < ledger->n; i++) {
            if (ngx_http_dsa_ledger_state(ledger->slots[i].word)
                != ngx_http_dsa_ledger_free_slot
                && ngx_http_dsa_ledger_seat(ledger->slots[i].word) == seat)
            {
                break;
            }
        }

        if (i == ledger->n) {
            ledger->seat = seat;
            ledger->seated = 1;
            ledger->next = seat * 61 % ledger->n;

            return NGX_OK;
        }

        (void) ngx_http_dsa_ledger_lock(ledger->fd, seat, F_UNLCK, F_SETLK);
    }

    ngx_log_error(NGX_LOG_ALERT, log, err,
                  "dsa: no seat is free in the ledger's queue \"%V\"",
                  &ledger->path);

    return NGX_ERROR;
}


ngx_uint_t
ngx_http_dsa_ledger_adopt(ngx_http_dsa_ledger_t *ledger, ngx_log_t *log,
    ngx_http_dsa_ledger_pt handler, void *data)
{
    u_char              seen[NGX_HTTP_DSA_LEDGER_SEATS];
    ngx_uint_t          i, seat, adopted, damaged;
    ngx_atomic_uint_t   word;

    if (!ledger->seated) {
        return 0;
    }

    ngx_memzero(seen, sizeof(seen));

    adopted = 0;
    damaged = 0;

    for (i = 0; i < ledger->n; i++) {
        word = ledger->slots[i].word;
        seat = ngx_http_dsa_ledger_seat(word);

        if (ngx_http_dsa_ledger_state(word) == ngx_http_dsa_ledger_free_slot) {
            continue;
        }

        if (ngx_http_dsa_ledger_state(word) > ngx_http_dsa_ledger_ready
            || seat >= NGX_HTTP_DSA_LEDGER_SEATS)
        {
            /* it has no owner; the worker that frees it counts it */

            if (ngx_atomic_cmp_set(&ledger->slots[i].word, word, 0)) {
                ngx_http_dsa_ledger_damaged(ledger, i, log);
                damaged++;
            }

            continue;
        }

        seen[seat] = 1;
    }

    for (seat = 0; seat < NGX_HTTP_DSA_LEDGER_SEATS; seat++) {

        if (!seen[seat] || seat == ledger->seat
            || ngx_http_dsa_ledger_lock(ledger->fd, seat, F_WRLCK, F_SETLK)
               != NGX_OK)
        {
            continue;
        }

        damaged += ngx_http_dsa_ledger_take(ledger, seat, log, handler, data,
                                            &adopted);

        (void) ngx_http_dsa_ledger_lock(ledger->fd, seat, F_UNLCK, F_SETLK);
    }

    if (adopted != 0) {
        ngx_log_error(NGX_LOG_NOTICE, log, 0,
                      "dsa: %ui ledger entries of processes that ended were "
                      "taken over", adopted);
    }

    return damaged;
}


/* The seat is locked, so no other process writes to its slots. */

static ngx_uint_t
ngx_http_dsa_ledger_take(ngx_http_dsa_ledger_t *ledger, ngx_uint_t seat,
    ngx_log_t *log, ngx_http_dsa_ledger_pt handler, void *data,
    ngx_uint_t *adopted)
{
    ngx_uint_t                   i, damaged;
    ngx_atomic_uint_t            ready, writing;
    dsa_schema_record_t          entry;
    ngx_http_dsa_ledger_slot_t   copy, *slot;

    ready = ngx_http_dsa_ledger_word(ngx_http_dsa_ledger_ready, seat);
    writing = ngx_http_dsa_ledger_word(ngx_http_dsa_ledger_writing, seat);
    damaged = 0;

    for (i = 0; i < ledger->n; i++) {
        slot = &ledger->slots[i];

        if (slot->word == writing) {

            /* no answer was ended: the owner went while it wrote */

            (void) ngx_atomic_cmp_set(&slot->word, writing, 0);
            continue;
        }

        if (slot->word != ready) {
            continue;
        }

        if (ngx_http_dsa_ledger_read(ledger, i, &copy, &entry) != NGX_OK) {
            ngx_http_dsa_ledger_damaged(ledger, i, log);
            (void) ngx_atomic_cmp_set(&slot->word, ready, 0);
            damaged++;
            continue;
        }

        if (handler(data, i) != NGX_OK) {
            break;
        }

        (void) ngx_atomic_cmp_set(&slot->word, ready,
                                  ngx_http_dsa_ledger_word(
                                      ngx_http_dsa_ledger_ready,
                                      ledger->seat));
        (*adopted)++;
    }

    return damaged;
}


static void
ngx_http_dsa_ledger_damaged(ngx_http_dsa_ledger_t *ledger, ngx_uint_t n,
    ngx_log_t *log)
{
    ngx_log_error(NGX_LOG_ERR, log, 0,
                  "dsa: a ledger entry is lost: slot %ui of \"%V\" is damaged",
                  n, &ledger->path);
}


ngx_int_t
ngx_http_dsa_ledger_add(ngx_http_dsa_ledger_t *ledger,
    const dsa_schema_record_t *entry)
{
    ngx_uint_t                   i, n;
    ngx_atomic_uint_t            writing;
    ngx_http_dsa_ledger_slot_t   copy, *slot;

    if (!ledger->seated) {
        return NGX_ERROR;
    }

    ngx_memzero(&copy, sizeof(ngx_http_dsa_ledger_slot_t));

    if (ngx_http_dsa_ledger_text(copy.request, &copy.request_len,
                                 entry->request)
        == NULL
        || ngx_http_dsa_ledger_text(copy.tenant, &copy.tenant_len,
                                    entry->tenant)
           == NULL
        || ngx_http_dsa_ledger_text(copy.model, &copy.model_len, entry->model)
           == NULL)
    {
        return NGX_DECLINED;
    }

    copy.time = entry->time;
    copy.prompt_tokens = entry->prompt_tokens;
    copy.cached_tokens = entry->cached_tokens;
    copy.completion_tokens = entry->completion_tokens;
    copy.reasoning_tokens = entry->reasoning_tokens;
    copy.crc = ngx_http_dsa_ledger_crc(&copy);

    writing = ngx_http_dsa_ledger_word(ngx_http_dsa_ledger_writing,
                                       ledger->seat);

    for (i = 0; i < ledger->n; i++) {
        n = (ledger->next + i) % ledger->n;
        slot = &ledger->slots[n];

        if (slot->word != 0 || !ngx_atomic_cmp_set(&slot->word, 0, writing)) {
            continue;
        }

        ngx_memcpy((u_char *) slot + sizeof(ngx_atomic_t),
                   (u_char *) &copy + sizeof(ngx_atomic_t),
                   sizeof(ngx_http_dsa_ledger_slot_t) - sizeof(ngx_atomic_t));

        /* a barrier: a reader that sees it ready sees all of it */

        (void) ngx_atomic_cmp_set(&slot->word, writing,
                                  ngx_http_dsa_ledger_word(
                                      ngx_http_dsa_ledger_ready,
                                      ledger->seat));

        ledger->next = (n + 1) % ledger->n;

        return n;
    }

    return NGX_BUSY;
}


static char *
ngx_http_dsa_ledger_text(char *to, uint8_t *len, dsa_str_t s)
{
    if (s.len == 0 || s.len > NGX_HTTP_DSA_LEDGER_TEXT) {
        return NULL;
    }

    *len = s.len;

    return memcpy(to, s.data, s.len);
}


ngx_int_t
ngx_http_dsa_ledger_read(ngx_http_dsa_ledger_t *ledger, ngx_uint_t slot,
    ngx_http_dsa_ledger_slot_t *copy, dsa_schema_record_t *entry)
{
    ngx_memcpy(copy, (void *) &ledger->slots[slot],
               sizeof(ngx_http_dsa_ledger_slot_t));

    if (copy->crc != ngx_http_dsa_ledger_crc(copy)
        || copy->request_len > NGX_HTTP_DSA_LEDGER_TEXT
        || copy->tenant_len > NGX_HTTP_DSA_LEDGER_TEXT
        || copy->model_len > NGX_HTTP_DSA_LEDGER_TEXT)
    {
        return NGX_ERROR;
    }

    ngx_memzero(entry, sizeof(dsa_schema_record_t));

    entry->request = dsa_str(copy->request, copy->request_len);
    entry->tenant = dsa_str(copy->tenant, copy->tenant_len);
    entry->model = dsa_str(copy->model, copy->model_len);
    entry->time = copy->time;
    entry->prompt_tokens = copy->prompt_tokens;
    entry->cached_tokens = copy->cached_tokens;
    entry->completion_tokens = copy->completion_tokens;
    entry->reasoning_tokens = copy->reasoning_tokens;

    return dsa_schema_entry_ok(entry) ? NGX_OK : NGX_ERROR;
}


void
ngx_http_dsa_ledger_free(ngx_http_dsa_ledger_t *ledger, ngx_uint_t slot)
{
    (void) ngx_atomic_cmp_set(&ledger->slots[slot].word,
                              ngx_http_dsa_ledger_word(
                                  ngx_http_dsa_ledger_ready, ledger->seat),
                              0);
}


ngx_uint_t
ngx_http_dsa_ledger_entries(ngx_http_dsa_ledger_t *ledger)
{
    ngx_uint_t  i, n;

    n = 0;

    for (i = 0; i < ledger->n && ledger->map != NULL; i++) {
        n += (ngx_http_dsa_ledger_state(ledger->slots[i].word)
              == ngx_http_dsa_ledger_ready);
    }

    return n;
}


ngx_str_t *
ngx_http_dsa_ledger_path(ngx_http_dsa_ledger_t *ledger)
{
    return &ledger->path;
}
