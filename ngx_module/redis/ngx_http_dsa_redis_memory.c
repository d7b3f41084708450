
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "ngx_module/core/ngx_http_dsa_conf.h"
#include "ngx_module/core/ngx_http_dsa_zone.h"
#include "ngx_http_dsa_redis_memory.h"


/* milliseconds */

#define NGX_HTTP_DSA_REDIS_MEMORY_CHECK     1000    /* whether it is time */
#define NGX_HTTP_DSA_REDIS_MEMORY_INTERVAL  5000    /* between two INFO; while
                                                       it is full, a check */
#define NGX_HTTP_DSA_REDIS_MEMORY_VALID     30000

#define NGX_HTTP_DSA_REDIS_MEMORY_ARENA     1024    /* bytes of the command */
#define NGX_HTTP_DSA_REDIS_MEMORY_FULL      90      /* per cent */


/*
 * Milliseconds since a moment that may be another worker's: its time may be
 * ahead, because each worker reads the clock once in a turn of its event loop.
 */

#define ngx_http_dsa_redis_memory_since(when)                                 \
    ((ngx_msec_int_t) (ngx_current_msec - (when)))


/* In shared memory; used to evicts are those of dsa_schema_memory_t. */

typedef struct {
    ngx_http_dsa_zone_t               zone;
    ngx_atomic_t                      asked;    /* ngx_current_msec of the last
                                                   INFO */
    ngx_atomic_t                      read;     /* of the last figures; 0: there
                                                   are none */
    ngx_atomic_t                      used;
    ngx_atomic_t                      limit;
    ngx_atomic_t                      evicts;
    ngx_atomic_t                      lossy;    /* 1: a crash of Redis loses
                                                   what it confirmed */
    ngx_atomic_t                      failed;   /* 1: which is logged */
} ngx_http_dsa_redis_memory_t;


#define NGX_HTTP_DSA_REDIS_MEMORY_LAYOUT                                      \
    NGX_HTTP_DSA_ZONE_LAYOUT(1, ngx_http_dsa_redis_memory_t)


typedef struct {
    ngx_http_dsa_redis_memory_t      *memory;
    ngx_http_dsa_redis_nodes_t       *nodes;
    ngx_connection_t                  dumb;     /* the data of the timer */
    ngx_event_t                       timer;
    ngx_uint_t                        sent;     /* INFO without a reply */
    ngx_uint_t                        n;        /* nodes in figures */
    dsa_schema_memory_t               figures;
} ngx_http_dsa_redis_memory_reader_t;


static ngx_int_t ngx_http_dsa_redis_memory_init_zone(ngx_shm_zone_t *zone,
    void *data);
static ngx_uint_t ngx_http_dsa_redis_memory_known(
    ngx_http_dsa_redis_memory_t *memory);
static ngx_uint_t ngx_http_dsa_redis_memory_is_full(
    ngx_http_dsa_redis_memory_t *memory);
static void ngx_http_dsa_redis_memory_handler(ngx_event_t *ev);
static void ngx_http_dsa_redis_memory_reply(void *data, redisReply *reply,
    const char *why);
static void ngx_http_dsa_redis_memory_merge(
    ngx_http_dsa_redis_memory_reader_t *reader,
    const dsa_schema_memory_t *figures);
static void ngx_http_dsa_redis_memory_store(
    ngx_http_dsa_redis_memory_t *memory, const dsa_schema_memory_t *figures);


ngx_shm_zone_t *
ngx_http_dsa_redis_memory_zone(ngx_conf_t *cf)
{
    ngx_shm_zone_t  *zone;

    static ngx_str_t  name = ngx_string("dsa_redis_memory");

    /* the slab allocator needs some pages of its own */

    zone = ngx_shared_memory_add(cf, &name, 16 * ngx_pagesize,
                                 &ngx_http_dsa_module);

    if (zone != NULL) {
        zone->init = ngx_http_dsa_redis_memory_init_zone;
    }

    return zone;
}


static ngx_int_t
ngx_http_dsa_redis_memory_init_zone(ngx_shm_zone_t *zone, void *data)
{
    ngx_http_dsa_redis_memory_t  *memory;

    if (ngx_http_dsa_zone_open(zone, data, NGX_HTTP_DSA_REDIS_MEMORY_LAYOUT,
                               sizeof(ngx_http_dsa_redis_memory_t), &memory)
        == NGX_ERROR)
    {
        return NGX_ERROR;
    }

    zone->data = memory;

    return NGX_OK;
}


ngx_int_t
ngx_http_dsa_redis_memory_start(ngx_shm_zone_t *zone,
    ngx_http_dsa_redis_nodes_t *nodes, ngx_cycle_t *cycle)
{
    ngx_http_dsa_redis_memory_reader_t  *reader;

    reader = ngx_pcalloc(cycle->pool,
                         sizeof(ngx_http_dsa_redis_memory_reader_t));
    if (reader == NULL) {
        return NGX_ERROR;
    }

    reader->memory = zone->data;
    reader->nodes = nodes;

    reader->dumb.fd = (ngx_socket_t) -1;
    reader->dumb.data = reader;

    reader->timer.handler = ngx_http_dsa_redis_memory_handler;
    reader->timer.data = &reader->dumb;
    reader->timer.log = cycle->log;
    reader->timer.cancelable = 1;

    ngx_add_timer(&reader->timer, NGX_HTTP_DSA_REDIS_MEMORY_CHECK);

    return NGX_OK;
}


static void
ngx_http_dsa_redis_memory_handler(ngx_event_t *ev)
{
    dsa_arena_t                         *arena;
    ngx_msec_int_t                       interval;
    ngx_connection_t                    *dumb = ev->data;
    ngx_atomic_uint_t                    asked;
    dsa_schema_command_t                 cmd;
    ngx_http_dsa_redis_memory_reader_t  *reader = dumb->data;

    ngx_add_timer(ev, NGX_HTTP_DSA_REDIS_MEMORY_CHECK);

    asked = reader->memory->asked;
    interval = ngx_http_dsa_redis_memory_is_full(reader->memory)
               ? NGX_HTTP_DSA_REDIS_MEMORY_CHECK / 2
               : NGX_HTTP_DSA_REDIS_MEMORY_INTERVAL;

    if (reader->sent != 0 || !ngx_http_dsa_redis_nodes_up(reader->nodes)
        || (asked != 0
            && ngx_http_dsa_redis_memory_since(asked) < interval)
        || !ngx_atomic_cmp_set(&reader->memory->asked, asked,
                               ngx_max(ngx_current_msec, 1)))
    {
        return;
    }

    reader->n = 0;
    arena = dsa_arena_create(NGX_HTTP_DSA_REDIS_MEMORY_ARENA);

    if (arena != NULL && dsa_schema_memory(&cmd, arena) == DSA_OK) {
        reader->sent = ngx_http_dsa_redis_nodes_each(reader->nodes, &cmd,
                                               ngx_http_dsa_redis_memory_reply,
                                               reader);
    }

    dsa_arena_destroy(arena);
}


static void
ngx_http_dsa_redis_memory_reply(void *data, redisReply *reply,
    const char *why)
{
    dsa_err_t                            err;
    dsa_schema_memory_t                  figures;
    ngx_http_dsa_redis_memory_t         *memory;
    ngx_http_dsa_redis_memory_reader_t  *reader = data;

    memory = reader->memory;
    reader->sent--;

    /* why: the connection failed, which it has logged */

    if (why == NULL
        && dsa_schema_memory_reply(&figures, reply, &err) != DSA_OK)
    {
        memory->read = 0;

        if (ngx_atomic_cmp_set(&memory->failed, 0, 1)) {
            ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                          "dsa: the memory of Redis is not known: %s; its "
                          "metrics are absent, so no alarm comes before it is "
                          "full", err.text);
        }

        return;
    }

    if (why == NULL) {
        ngx_http_dsa_redis_memory_merge(reader, &figures);
    }

    if (reader->sent == 0 && reader->n != 0) {
        ngx_http_dsa_redis_memory_store(memory, &reader->figures);
    }
}


/* Keeps the figures of the node that has the greatest part of its limit. */

static void
ngx_http_dsa_redis_memory_merge(ngx_http_dsa_redis_memory_reader_t *reader,
    const dsa_schema_memory_t *figures)
{
    dsa_schema_memory_t  *all;

    all = &reader->figures;

    if (reader->n++ == 0) {
        *all = *figures;
        return;
    }

    if ((double) figures->used * all->limit
        > (double) all->used * figures->limit)
    {
        all->used = figures->used;
        all->limit = figures->limit;
    }

    all->evicts = all->evicts || figures->evicts;
    all->durable = all->durable && figures->durable;
}


/*
 * Each change between known, unknown, evicting and not durable is logged by one
 * worker.
 */

static void
ngx_http_dsa_redis_memory_store(ngx_http_dsa_redis_memory_t *memory,
    const dsa_schema_memory_t *figures)
{
    memory->failed = 0;

    memory->used = figures->used;
    memory->limit = figures->limit;
    memory->read = ngx_max(ngx_current_msec, 1);

    if (figures->durable) {
        memory->lossy = 0;

    } else if (ngx_atomic_cmp_set(&memory->lossy, 0, 1)) {
        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "dsa: Redis keeps no append-only file, and its crash "
                      "loses ledger entries and conversations that it has "
                      "confirmed; expected \"appendonly yes\"");
    }

    if (!figures->evicts) {
        memory->evicts = 0;

    } else if (ngx_atomic_cmp_set(&memory->evicts, 0, 1)) {
        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "dsa: Redis removes data when its memory is full, and "
                      "the ledger may lose entries; expected "
                      "\"maxmemory-policy noeviction\"");
    }
}


ngx_int_t
ngx_http_dsa_redis_memory_get(ngx_shm_zone_t *zone,
    dsa_schema_memory_t *figures)
{
    ngx_http_dsa_redis_memory_t  *memory;

    memory = zone->data;

    if (!ngx_http_dsa_redis_memory_known(memory)) {
        return NGX_DECLINED;
    }

    figures->used = memory->used;
    figures->limit = memory->limit;
    figures->evicts = memory->evicts;
    figures->durable = !memory->lossy;

    return NGX_OK;
}


static ngx_uint_t
ngx_http_dsa_redis_memory_known(ngx_http_dsa_redis_memory_t *memory)
{
    ngx_atomic_uint_t  read;

    read = memory->read;

    return read != 0
           && ngx_http_dsa_redis_memory_since(read)
              <= NGX_HTTP_DSA_REDIS_MEMORY_VALID;
}


ngx_uint_t
ngx_http_dsa_redis_memory_full(ngx_shm_zone_t *zone)
{
    return ngx_http_dsa_redis_memory_is_full(zone->data);
}


static ngx_uint_t
ngx_http_dsa_redis_memory_is_full(ngx_http_dsa_redis_memory_t *memory)
{
    return ngx_http_dsa_redis_memory_known(memory) && !memory->evicts
           && memory->used
              >= memory->limit / 100 * NGX_HTTP_DSA_REDIS_MEMORY_FULL;
}
