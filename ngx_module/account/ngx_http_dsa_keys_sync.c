
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include <assert.h>

#include <openssl/sha.h>

#include "ngx_http_dsa_keys_file.h"
#include "ngx_http_dsa_keys_redis.h"
#include "ngx_http_dsa_keys_sync.h"
#include "ngx_http_dsa_keys_update.h"


#define NGX_HTTP_DSA_KEYS_INTERVAL  1000    /* ms between two syncs */

/* ms; a file that was changed is checked again before it is read */
#define NGX_HTTP_DSA_KEYS_SETTLED   250

/* ms; an older lease has ended, because its pid may be another process */
#define NGX_HTTP_DSA_KEYS_LEASE     10000

#define NGX_HTTP_DSA_KEYS_MIN_ZONE  (128 * 1024)


struct ngx_http_dsa_keys_sync_s {
    ngx_http_dsa_keys_t          keys;
    ngx_str_t                    path;      /* of the file; empty: Redis */
    ngx_http_dsa_keys_redis_t    redis;
    uint64_t                     cycle;     /* number of this configuration */
    ngx_event_t                  timer;
    ngx_connection_t             dumb;      /* data of timer; nginx logs it */
    u_char                       name[NGX_HTTP_DSA_KEYS_DIGEST];
    unsigned                     sourced:1; /* "redis" or "file=" was read */
};


static ngx_int_t ngx_http_dsa_keys_sync_argument(ngx_conf_t *cf,
    ngx_http_dsa_keys_sync_t *sync, ngx_str_t *value);
static ngx_int_t ngx_http_dsa_keys_sync_zone(ngx_conf_t *cf,
    ngx_http_dsa_keys_sync_t *sync, ngx_str_t *value);
static ngx_int_t ngx_http_dsa_keys_sync_init_zone(ngx_shm_zone_t *shm,
    void *data);
static void ngx_http_dsa_keys_sync_adopt(ngx_http_dsa_keys_sync_t *sync);
static void ngx_http_dsa_keys_sync_handler(ngx_event_t *ev);
static ngx_uint_t ngx_http_dsa_keys_sync_lead(ngx_http_dsa_keys_sync_t *sync);
static ngx_msec_t ngx_http_dsa_keys_sync_file(ngx_http_dsa_keys_sync_t *sync);


ngx_http_dsa_keys_sync_t *
ngx_http_dsa_keys_sync_create(ngx_conf_t *cf)
{
    ngx_str_t                 *value;
    ngx_uint_t                 i;
    ngx_http_dsa_keys_sync_t  *sync;

    sync = ngx_pcalloc(cf->pool, sizeof(ngx_http_dsa_keys_sync_t));
    if (sync == NULL) {
        return NULL;
    }

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {
        if (ngx_http_dsa_keys_sync_argument(cf, sync, &value[i]) != NGX_OK) {
            return NULL;
        }
    }

    assert(sync->sourced && sync->keys.shm != NULL);

    /* a path begins with a slash, so no path has the name of Redis */

    SHA256(sync->path.data, sync->path.len, sync->name);

    return sync;
}


static ngx_int_t
ngx_http_dsa_keys_sync_argument(ngx_conf_t *cf,
    ngx_http_dsa_keys_sync_t *sync, ngx_str_t *value)
{
    ngx_str_t  s;

    if (value->len > 5 && ngx_strncmp(value->data, "file=", 5) == 0
        && !sync->sourced)
    {
        s.data = value->data + 5;
        s.len = value->len - 5;

        if (ngx_conf_full_name(cf->cycle, &s, 1) != NGX_OK) {
            return NGX_ERROR;
        }

        sync->path = s;
        sync->sourced = 1;

        return NGX_OK;
    }

    if (value->len == 5 && ngx_strncmp(value->data, "redis", 5) == 0
        && !sync->sourced)
    {
        sync->sourced = 1;
        return NGX_OK;
    }

    if (value->len > 5 && ngx_strncmp(value->data, "zone=", 5) == 0
        && sync->keys.shm == NULL)
    {
        s.data = value->data + 5;
        s.len = value->len - 5;

        return ngx_http_dsa_keys_sync_zone(cf, sync, &s);
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "\"%V\" is not a parameter of \"dsa_keys\", or it is "
                       "repeated; expected \"redis\" or \"file=PATH\", and "
                       "\"zone=NAME:SIZE\"", value);

    return NGX_ERROR;
}


static ngx_int_t
ngx_http_dsa_keys_sync_zone(ngx_conf_t *cf, ngx_http_dsa_keys_sync_t *sync,
    ngx_str_t *value)
{
    u_char     *p;
    ssize_t     size;
    ngx_str_t   name, s;

    size = NGX_ERROR;
    p = ngx_strlchr(value->data, value->data + value->len, ':');

    if (p != NULL && p != value->data) {
        s.data = p + 1;
        s.len = value->data + value->len - s.data;
        size = ngx_parse_size(&s);
    }

    if (size < NGX_HTTP_DSA_KEYS_MIN_ZONE) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "zone \"%V\" of \"dsa_keys\" is not valid; "
                           "expected NAME:SIZE with at least %dk", value,
                           NGX_HTTP_DSA_KEYS_MIN_ZONE / 1024);
        return NGX_ERROR;
    }

    name.data = value->data;
    name.len = p - value->data;

    return ngx_http_dsa_keys_add_zone(cf, &sync->keys, &name, size,
                                      ngx_http_dsa_keys_sync_init_zone, sync);
}


static ngx_int_t
ngx_http_dsa_keys_sync_init_zone(ngx_shm_zone_t *shm, void *data)
{
    ngx_int_t                    rc;
    ngx_http_dsa_keys_sync_t    *sync;
    ngx_http_dsa_keys_source_t  *source;

    sync = shm->data;

    rc = ngx_http_dsa_keys_init_zone(&sync->keys, shm, data);

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    source = &sync->keys.zone->source;

    sync->cycle = ++source->cycles;

    if (rc == NGX_DECLINED) {
        ngx_http_dsa_keys_sync_adopt(sync);
    }

    if (sync->path.len == 0) {
        return NGX_OK;
    }

    /*
     * The keys of a reload are put by its workers, because the configuration
     * may still be rejected, and the old one remains in this case.
     */

    return ngx_http_dsa_keys_file_load(&sync->keys, &sync->path,
                                       rc == NGX_DECLINED, NGX_LOG_EMERG,
                                       shm->shm.log);
}


ngx_http_dsa_keys_t *
ngx_http_dsa_keys_sync_keys(ngx_http_dsa_keys_sync_t *sync)
{
    return &sync->keys;
}


ngx_int_t
ngx_http_dsa_keys_sync_check(ngx_conf_t *cf, ngx_http_dsa_keys_sync_t *sync,
    ngx_http_dsa_redis_t *redis)
{
    if (sync->path.len == 0 && redis == NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"dsa_keys redis\" needs \"dsa_redis\"; expected "
                           "that directive in the http block");
        return NGX_ERROR;
    }

    sync->redis.keys = &sync->keys;
    sync->redis.redis = redis;

    return NGX_OK;
}


ngx_int_t
ngx_http_dsa_keys_sync_start(ngx_http_dsa_keys_sync_t *sync,
    ngx_cycle_t *cycle)
{
    if (ngx_http_dsa_keys_init_worker(&sync->keys, cycle) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_dsa_keys_sync_adopt(sync);

    sync->dumb.data = sync;
    sync->dumb.fd = (ngx_socket_t) -1;

    sync->timer.handler = ngx_http_dsa_keys_sync_handler;
    sync->timer.data = &sync->dumb;
    sync->timer.log = cycle->log;
    sync->timer.cancelable = 1;

    ngx_http_dsa_keys_sync_handler(&sync->timer);

    return NGX_OK;
}


/*
 * The configuration of this process is in use from now on, so the processes of
 * earlier ones no longer sync.  If it has another source, a key that is not in
 * the zone may exist until the first sync.
 */

static void
ngx_http_dsa_keys_sync_adopt(ngx_http_dsa_keys_sync_t *sync)
{
    ngx_uint_t                   other;
    ngx_http_dsa_keys_source_t  *source;

    other = 0;
    source = &sync->keys.zone->source;

    ngx_shmtx_lock(&sync->keys.shpool->mutex);

    if (sync->cycle > source->cycle) {
        source->cycle = sync->cycle;
        source->pid = 0;

        other = ngx_memcmp(source->name, sync->name, NGX_HTTP_DSA_KEYS_DIGEST)
                != 0;
    }

    if (other) {
        ngx_memcpy(source->name, sync->name, NGX_HTTP_DSA_KEYS_DIGEST);
        source->size = -1;
        source->version = 0;
    }

    ngx_shmtx_unlock(&sync->keys.shpool->mutex);

    if (other) {
        ngx_http_dsa_keys_reset(&sync->keys);
    }
}


void
ngx_http_dsa_keys_sync_stop(ngx_http_dsa_keys_sync_t *sync)
{
    ngx_http_dsa_keys_source_t  *source;

    source = &sync->keys.zone->source;

    ngx_http_dsa_keys_redis_stop(&sync->redis);

    ngx_shmtx_lock(&sync->keys.shpool->mutex);

    if (source->pid == ngx_pid) {
        source->pid = 0;
    }

    ngx_shmtx_unlock(&sync->keys.shpool->mutex);

    if (sync->timer.timer_set) {
        ngx_del_timer(&sync->timer);
    }
}


static void
ngx_http_dsa_keys_sync_handler(ngx_event_t *ev)
{
    ngx_connection_t *dumb = ev->data;

    ngx_msec_t                 next;
    ngx_http_dsa_keys_sync_t  *sync;

    sync = dumb->data;
    next = NGX_HTTP_DSA_KEYS_INTERVAL;

    if (ngx_http_dsa_keys_sync_lead(sync)) {
        ngx_http_dsa_keys_sweep(&sync->keys);

        next = sync->path.len != 0
               ? ngx_http_dsa_keys_sync_file(sync)
               : ngx_http_dsa_keys_redis_read(&sync->redis);

    } else {
        ngx_http_dsa_keys_redis_stop(&sync->redis);
    }

    ngx_add_timer(ev, next);
}


/* 1: this process keeps the zone current; its lease is new or renewed. */

static ngx_uint_t
ngx_http_dsa_keys_sync_lead(ngx_http_dsa_keys_sync_t *sync)
{
    ngx_uint_t                   lead;
    ngx_http_dsa_keys_source_t  *source;

    source = &sync->keys.zone->source;

    ngx_shmtx_lock(&sync->keys.shpool->mutex);

    lead = 0;

    /* the time of the process that leads may be ahead of this one's */

    if (sync->cycle == source->cycle) {
        lead = source->pid == ngx_pid || source->pid == 0
               || (ngx_msec_int_t) (ngx_current_msec - source->renewed)
                  > NGX_HTTP_DSA_KEYS_LEASE
               || (kill(source->pid, 0) == -1 && ngx_errno == NGX_ESRCH);
    }

    if (lead) {
        source->pid = ngx_pid;
        source->renewed = ngx_current_msec;
    }

    ngx_shmtx_unlock(&sync->keys.shpool->mutex);

    return lead;
}


/* Reads the file if it has changed.  Returns the time until the next check. */

static ngx_msec_t
ngx_http_dsa_keys_sync_file(ngx_http_dsa_keys_sync_t *sync)
{
    ngx_int_t   rc;
    ngx_uint_t  retry;

    rc = ngx_http_dsa_keys_file_changed(&sync->keys, &sync->path,
                                        sync->timer.log);

    if (rc == NGX_AGAIN) {
        return NGX_HTTP_DSA_KEYS_SETTLED;
    }

    retry = ngx_http_dsa_keys_retry(&sync->keys);

    if (rc == NGX_OK || retry) {
        (void) ngx_http_dsa_keys_file_load(&sync->keys, &sync->path, 1,
                                           NGX_LOG_ERR, sync->timer.log);
    }

    /* a file that cannot be read changes nothing: its last keys are valid */

    ngx_http_dsa_keys_current(&sync->keys);

    return NGX_HTTP_DSA_KEYS_INTERVAL;
}
