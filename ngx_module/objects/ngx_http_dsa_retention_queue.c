
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include <assert.h>

#include "context/retain.h"
#include "redis_schema/cluster.h"
#include "redis_schema/resp.h"
#include "redis_schema/retained.h"

#include "ngx_module/account/ngx_http_dsa_usage_record.h"
#include "ngx_module/core/ngx_http_dsa_metrics.h"
#include "ngx_module/http/ngx_http_dsa_identity.h"
#include "ngx_http_dsa_retention_queue.h"


#define NGX_HTTP_DSA_RETENTION_COMMAND      4096    /* bytes, without answer */

#define NGX_HTTP_DSA_RETENTION_BACKOFF_MIN  100     /* milliseconds */
#define NGX_HTTP_DSA_RETENTION_BACKOFF_MAX  2000


typedef struct {
    ngx_queue_t                     queue;
    ngx_http_dsa_redis_t           *redis;
    ngx_http_dsa_redis_command_t   *command;    /* NULL: not sent */
    dsa_buf_t                       answer;
    ngx_msec_t                      deadline;
    ngx_msec_t                      ttl;
    size_t                          id_len;
    u_char                          id[NGX_HTTP_DSA_ID_LEN];
    u_char                          tenant[NGX_HTTP_DSA_TENANT_LEN];
    u_char                          key[DSA_RETAIN_KEY];
} ngx_http_dsa_retained_t;


static ngx_http_dsa_retained_t *ngx_http_dsa_retention_queue_create(
    ngx_http_dsa_redis_t *redis, const ngx_str_t *id, const ngx_str_t *tenant,
    dsa_str_t key, ngx_msec_t ttl, dsa_buf_t *answer);
static void ngx_http_dsa_retention_queue_send(void);
static ngx_int_t ngx_http_dsa_retention_queue_send_one(
    ngx_http_dsa_retained_t *e);
static void ngx_http_dsa_retention_queue_reply(void *data, redisReply *reply,
    const char *why);
static void ngx_http_dsa_retention_queue_later(void);
static void ngx_http_dsa_retention_queue_retry(ngx_event_t *ev);
static void ngx_http_dsa_retention_queue_lost(const u_char *id, size_t len,
    const char *why);
static void ngx_http_dsa_retention_queue_free(ngx_http_dsa_retained_t *e);


static ngx_queue_t  ngx_http_dsa_retained;
static ngx_uint_t   ngx_http_dsa_retained_n;
static size_t       ngx_http_dsa_retained_bytes;
static ngx_event_t  ngx_http_dsa_retained_retry;
static ngx_msec_t   ngx_http_dsa_retained_backoff;

/* nginx dereferences the data of a timer as a connection when it logs it */

static ngx_connection_t  ngx_http_dsa_retained_dumb;


void
ngx_http_dsa_retention_queue_add(ngx_http_dsa_redis_t *redis,
    const ngx_str_t *id, const ngx_str_t *tenant, dsa_str_t key,
    ngx_msec_t ttl, dsa_buf_t *answer)
{
    const char               *why;
    ngx_http_dsa_retained_t  *e;

    assert(key.len == DSA_RETAIN_KEY && id->len <= NGX_HTTP_DSA_ID_LEN
           && tenant->len == NGX_HTTP_DSA_TENANT_LEN);

    if (ngx_http_dsa_retained_retry.handler == NULL) {
        ngx_queue_init(&ngx_http_dsa_retained);

        ngx_http_dsa_retained_dumb.fd = (ngx_socket_t) -1;

        ngx_http_dsa_retained_retry.handler =
                                         ngx_http_dsa_retention_queue_retry;
        ngx_http_dsa_retained_retry.data = &ngx_http_dsa_retained_dumb;
        ngx_http_dsa_retained_retry.log = ngx_cycle->log;
        ngx_http_dsa_retained_retry.cancelable = 1;
        ngx_http_dsa_retained_backoff = NGX_HTTP_DSA_RETENTION_BACKOFF_MIN;
    }

    e = NULL;
    why = ngx_http_dsa_redis_full(redis);

    if (why != NULL) {
        ngx_http_dsa_retention_queue_lost(id->data, id->len, why);
        return;
    }

    why = "too many retained answers are waiting for Redis";

    if (ngx_http_dsa_retained_n < NGX_HTTP_DSA_RETENTION_ENTRIES
        && ngx_http_dsa_retained_bytes + answer->len
           <= NGX_HTTP_DSA_RETENTION_BYTES)
    {
        e = ngx_http_dsa_retention_queue_create(redis, id, tenant, key, ttl,
                                                answer);
        why = "nginx is out of memory";
    }

    if (e == NULL) {
        ngx_http_dsa_retention_queue_lost(id->data, id->len, why);
        return;
    }

    if (ngx_http_dsa_retained_retry.timer_set
        && ngx_http_dsa_redis_up(redis))
    {
        ngx_del_timer(&ngx_http_dsa_retained_retry);
    }

    ngx_queue_insert_tail(&ngx_http_dsa_retained, &e->queue);
    ngx_http_dsa_retained_n++;
    ngx_http_dsa_retained_bytes += e->answer.len;

    ngx_http_dsa_retention_queue_send();
}


void
ngx_http_dsa_retention_queue_exit(void)
{
    ngx_queue_t              *q;
    ngx_http_dsa_retained_t  *e;

    while (ngx_http_dsa_retained_n != 0) {
        q = ngx_queue_head(&ngx_http_dsa_retained);
        e = ngx_queue_data(q, ngx_http_dsa_retained_t, queue);

        if (e->command != NULL) {
            ngx_http_dsa_redis_detach(e->command);
            e->command = NULL;
        }

        ngx_http_dsa_retention_queue_lost(e->id, e->id_len,
                                          "the worker exits");
        ngx_http_dsa_retention_queue_free(e);
    }

    if (ngx_http_dsa_retained_retry.timer_set) {
        ngx_del_timer(&ngx_http_dsa_retained_retry);
    }
}


static ngx_http_dsa_retained_t *
ngx_http_dsa_retention_queue_create(ngx_http_dsa_redis_t *redis,
    const ngx_str_t *id, const ngx_str_t *tenant, dsa_str_t key,
    ngx_msec_t ttl, dsa_buf_t *answer)
{
    ngx_http_dsa_retained_t  *e;

    e = ngx_calloc(sizeof(ngx_http_dsa_retained_t), ngx_cycle->log);

    if (e == NULL) {
        return NULL;
    }

    e->redis = redis;
    e->ttl = ttl;
    e->deadline = ngx_current_msec + NGX_HTTP_DSA_RETENTION_WAIT;
    e->id_len = id->len;
    ngx_memcpy(e->id, id->data, id->len);
    ngx_memcpy(e->tenant, tenant->data, NGX_HTTP_DSA_TENANT_LEN);
    ngx_memcpy(e->key, key.data, DSA_RETAIN_KEY);

    e->answer = *answer;
    ngx_memzero(answer, sizeof(dsa_buf_t));

    return e;
}


/*
 * Sends the retained answers that are not sent; drops those that waited for too
 * long.
 */

static void
ngx_http_dsa_retention_queue_send(void)
{
    ngx_queue_t              *q, *next;
    ngx_http_dsa_retained_t  *e;

    if (ngx_http_dsa_retained_retry.timer_set) {
        return;
    }

    for (q = ngx_queue_head(&ngx_http_dsa_retained);
         q != ngx_queue_sentinel(&ngx_http_dsa_retained);
         q = next)
    {
        next = ngx_queue_next(q);
        e = ngx_queue_data(q, ngx_http_dsa_retained_t, queue);

        if (e->command != NULL) {
            continue;
        }

        if ((ngx_msec_int_t) (e->deadline - ngx_current_msec) <= 0) {
            ngx_http_dsa_retention_queue_lost(e->id, e->id_len, "Redis could "
                                              "not be reached in time");
            ngx_http_dsa_retention_queue_free(e);
            continue;
        }

        if (ngx_http_dsa_retention_queue_send_one(e) != NGX_OK) {
            ngx_http_dsa_retention_queue_later();
            return;
        }
    }
}


static ngx_int_t
ngx_http_dsa_retention_queue_send_one(ngx_http_dsa_retained_t *e)
{
    const char            *why;
    dsa_arena_t           *arena;
    dsa_schema_command_t   cmd;

    if (!ngx_http_dsa_redis_up(e->redis)) {
        return NGX_ERROR;
    }

    arena = dsa_arena_create(NGX_HTTP_DSA_RETENTION_COMMAND);

    if (arena == NULL) {
        return NGX_ERROR;
    }

    if (dsa_schema_retain(&cmd, arena,
                          dsa_str(e->tenant, NGX_HTTP_DSA_TENANT_LEN),
                          dsa_str(e->key, DSA_RETAIN_KEY), e->ttl,
                          ngx_http_dsa_redis_storage(e->redis),
                          dsa_str(e->answer.data, e->answer.len))
        == DSA_OK)
    {
        e->command = ngx_http_dsa_redis_command(e->redis, &cmd,
                                             ngx_http_dsa_retention_queue_reply,
                                             e, &why);
    }

    dsa_arena_destroy(arena);

    return e->command != NULL ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_dsa_retention_queue_reply(void *data, redisReply *reply,
    const char *why)
{
    char                      text[DSA_RESP_TEXT];
    int64_t                   bytes, objects;
    ngx_http_dsa_retained_t  *e = data;

    e->command = NULL;

    if (reply == NULL || dsa_cluster_reply(reply) != DSA_CLUSTER_OTHER) {

        /*
         * The connection failed, or a cluster did not execute the command;
         * sending it again is harmless.
         */

        ngx_http_dsa_retention_queue_later();
        return;
    }

    if (why == NULL && reply->type == REDIS_REPLY_INTEGER) {
        ngx_log_debug3(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                       "dsa request %*s: answer retained, %uz bytes",
                       e->id_len, e->id, e->answer.len);

        ngx_http_dsa_retained_backoff = NGX_HTTP_DSA_RETENTION_BACKOFF_MIN;
        ngx_http_dsa_metrics_add(retention_saved, 1);

    } else if (why == NULL
               && dsa_schema_over_quota(reply, &bytes, &objects))
    {
        ngx_http_dsa_retention_queue_lost(e->id, e->id_len,
                                          DSA_SCHEMA_QUOTA_TEXT);

    } else {
        ngx_http_dsa_retention_queue_lost(e->id, e->id_len,
                                          why != NULL ? why
                                          : dsa_resp_text(text, reply->str,
                                                          reply->len));
    }

    ngx_http_dsa_retention_queue_free(e);
}


static void
ngx_http_dsa_retention_queue_later(void)
{
    if (!ngx_http_dsa_retained_retry.timer_set) {
        ngx_add_timer(&ngx_http_dsa_retained_retry,
                      ngx_http_dsa_retained_backoff);
        ngx_http_dsa_retained_backoff =
                                 ngx_min(ngx_http_dsa_retained_backoff * 2,
                                         NGX_HTTP_DSA_RETENTION_BACKOFF_MAX);
    }
}


static void
ngx_http_dsa_retention_queue_retry(ngx_event_t *ev)
{
    ngx_http_dsa_retention_queue_send();
}


static void
ngx_http_dsa_retention_queue_lost(const u_char *id, size_t len,
    const char *why)
{
    ngx_http_dsa_metrics_add(retention_lost, 1);

    ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                  "dsa: the answer of request \"%*s\" is not retained: %s",
                  len, id, why);
}


static void
ngx_http_dsa_retention_queue_free(ngx_http_dsa_retained_t *e)
{
    assert(ngx_http_dsa_retained_n != 0 && e->command == NULL);

    ngx_queue_remove(&e->queue);
    ngx_http_dsa_retained_n--;
    ngx_http_dsa_retained_bytes -= e->answer.len;

    dsa_buf_free(&e->answer);
    ngx_free(e);
}
