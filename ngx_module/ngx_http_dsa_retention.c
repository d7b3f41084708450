
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "context/retain.h"
#include "redis_schema/retained.h"

#include "ngx_http_dsa_body.h"
#include "ngx_http_dsa_metrics.h"
#include "ngx_http_dsa_retention.h"
#include "ngx_http_dsa_retention_queue.h"


/* memory for the words of a command with the most keys */

#define NGX_HTTP_DSA_RETENTION_COMMAND  (256 * 1024)


static ngx_int_t ngx_http_dsa_retention_wanted(ngx_http_dsa_retention_t *rt,
    dsa_str_t **keys);
static ngx_int_t ngx_http_dsa_retention_load(ngx_http_dsa_retention_t *rt,
    const dsa_str_t *keys, const char **why);
static void ngx_http_dsa_retention_reply(void *data, redisReply *reply,
    const char *why);
static void ngx_http_dsa_retention_late(ngx_event_t *ev);
static void ngx_http_dsa_retention_loaded(ngx_http_dsa_retention_t *rt,
    redisReply *reply, const char *why);
static ngx_int_t ngx_http_dsa_retention_records(ngx_http_dsa_retention_t *rt,
    redisReply *reply);
static ngx_int_t ngx_http_dsa_retention_message(ngx_http_dsa_retention_t *rt,
    uint32_t i, dsa_str_t record);
static ngx_int_t ngx_http_dsa_retention_check(ngx_http_dsa_retention_t *rt,
    const char *why);


static const char  ngx_http_dsa_retention_timeout[] =
    "Redis does not answer in time";
static const char  ngx_http_dsa_retention_invalid[] =
    "Redis sent something that is not a list of records";
static const char  ngx_http_dsa_retention_nomem[] =
    "nginx is out of memory";


ngx_int_t
ngx_http_dsa_retention_restore(ngx_http_dsa_retention_t *rt,
    ngx_http_request_t *r, dsa_chat_t *chat, ngx_http_dsa_failure_t *failure,
    ngx_http_dsa_retention_pt handler)
{
    dsa_str_t   *keys;
    const char  *why;

    if (rt->mode == NGX_HTTP_DSA_RETENTION_OFF) {
        return NGX_OK;
    }

    rt->http = r;
    rt->chat = chat;
    rt->failure = failure;
    rt->handler = handler;

    if (rt->redis == NULL || rt->tenant.len == 0) {
        return ngx_http_dsa_retention_check(rt, NULL);
    }

    if (ngx_http_dsa_retention_wanted(rt, &keys) != NGX_OK) {
        ngx_http_dsa_failure_memory(failure);
        return NGX_ERROR;
    }

    if (rt->n_wanted == 0) {
        return ngx_http_dsa_retention_check(rt, NULL);
    }

    if (ngx_http_dsa_retention_load(rt, keys, &why) == NGX_OK) {
        return NGX_AGAIN;
    }

    ngx_http_dsa_metrics_add(retention_failed, 1);

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "dsa request %V: nothing restored: %s", &rt->id, why);

    return ngx_http_dsa_retention_check(rt, why);
}


/* Finds the messages to restore, and their keys in Redis. */

static ngx_int_t
ngx_http_dsa_retention_wanted(ngx_http_dsa_retention_t *rt, dsa_str_t **keys)
{
    uint32_t     i, first, n;
    dsa_str_t    key;
    ngx_pool_t  *pool;
    dsa_chat_t  *chat;

    chat = rt->chat;
    pool = rt->http->pool;
    first = dsa_retain_round(chat);
    n = 0;

    /* allocate nothing for a chat without a tool round */

    for (i = first; i < chat->n_messages; i++) {
        n += (chat->messages[i].n_calls != 0);
    }

    n = ngx_min(n, DSA_SCHEMA_RETAINED_KEYS);
    rt->n_wanted = 0;

    if (n == 0) {
        return NGX_OK;
    }

    *keys = ngx_palloc(pool, n * sizeof(dsa_str_t));
    rt->wanted = ngx_palloc(pool, n * sizeof(uint32_t));

    if (*keys == NULL || rt->wanted == NULL) {
        return NGX_ERROR;
    }

    for (i = first; i < chat->n_messages && rt->n_wanted < n; i++) {
        key = dsa_retain_wanted(chat, i);

        if (key.len != 0) {
            (*keys)[rt->n_wanted] = key;
            rt->wanted[rt->n_wanted++] = i;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_retention_load(ngx_http_dsa_retention_t *rt,
    const dsa_str_t *keys, const char **why)
{
    dsa_arena_t           *arena;
    dsa_schema_command_t   cmd;

    *why = ngx_http_dsa_retention_nomem;

    arena = dsa_arena_create(NGX_HTTP_DSA_RETENTION_COMMAND);

    if (arena == NULL) {
        return NGX_ERROR;
    }

    if (dsa_schema_load_retained(&cmd, arena,
                                 dsa_str(rt->tenant.data, rt->tenant.len),
                                 keys, rt->n_wanted)
        == DSA_OK)
    {
        rt->call = ngx_http_dsa_redis_command(rt->redis, &cmd,
                                              ngx_http_dsa_retention_reply,
                                              rt, why);
    }

    dsa_arena_destroy(arena);

    if (rt->call == NULL) {
        return NGX_ERROR;
    }

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, rt->http->connection->log, 0,
                   "dsa request %V: %uD messages are looked up in Redis",
                   &rt->id, rt->n_wanted);

    /*
     * The timer also bounds the time that the command waits for the connection.
     */

    rt->timer.handler = ngx_http_dsa_retention_late;
    rt->timer.data = rt;
    rt->timer.log = rt->http->connection->log;

    ngx_add_timer(&rt->timer, ngx_http_dsa_redis_timeout(rt->redis));

    return NGX_OK;
}


static void
ngx_http_dsa_retention_reply(void *data, redisReply *reply, const char *why)
{
    ngx_http_dsa_retention_t  *rt = data;

    rt->call = NULL;

    ngx_http_dsa_retention_loaded(rt, reply, why);
}


static void
ngx_http_dsa_retention_late(ngx_event_t *ev)
{
    ngx_http_dsa_retention_t  *rt = ev->data;

    ngx_http_dsa_redis_detach(rt->call);
    rt->call = NULL;

    ngx_http_dsa_retention_loaded(rt, NULL, ngx_http_dsa_retention_timeout);
}


/*
 * The handler of the reply.  If why is not NULL, there are no records because
 * of why.
 */

static void
ngx_http_dsa_retention_loaded(ngx_http_dsa_retention_t *rt, redisReply *reply,
    const char *why)
{
    ngx_int_t          rc;
    ngx_connection_t  *c;

    if (rt->timer.timer_set) {
        ngx_del_timer(&rt->timer);
    }

    c = rt->http->connection;

    ngx_http_set_log_request(c->log, rt->http);

    if (why == NULL) {
        rc = ngx_http_dsa_retention_records(rt, reply);

        if (rc == NGX_ERROR) {
            ngx_http_dsa_failure_memory(rt->failure);
            rt->handler(rt->http, NGX_ERROR);
            ngx_http_run_posted_requests(c);
            return;
        }

        why = rc == NGX_OK ? NULL : ngx_http_dsa_retention_invalid;
    }

    if (why != NULL) {
        ngx_http_dsa_metrics_add(retention_failed, 1);
    }

    ngx_log_debug4(NGX_LOG_DEBUG_HTTP, c->log, 0,
                   "dsa request %V: %uL of %uD messages restored, %s",
                   &rt->id, rt->restored, rt->n_wanted,
                   why != NULL ? why : "Redis answered");

    rt->handler(rt->http, ngx_http_dsa_retention_check(rt, why));

    ngx_http_run_posted_requests(c);
}


/*
 * Reads the records.  NGX_DECLINED: the reply is not a list of records, which
 * is logged.
 */

static ngx_int_t
ngx_http_dsa_retention_records(ngx_http_dsa_retention_t *rt,
    redisReply *reply)
{
    size_t      bytes;
    uint32_t    i;
    dsa_err_t   err;
    dsa_str_t  *records;

    records = ngx_palloc(rt->http->pool, rt->n_wanted * sizeof(dsa_str_t));

    if (records == NULL) {
        return NGX_ERROR;
    }

    if (dsa_schema_retained(records, rt->n_wanted, reply, &err) != DSA_OK) {
        ngx_log_error(NGX_LOG_ERR, rt->http->connection->log, 0,
                      "dsa: retained answers cannot be read: %s", err.text);
        return NGX_DECLINED;
    }

    bytes = 0;

    for (i = 0; i < rt->n_wanted; i++) {
        bytes += records[i].len;
    }

    rt->arena = dsa_arena_create(NGX_HTTP_DSA_ARENA(bytes));

    if (rt->arena == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < rt->n_wanted; i++) {
        if (ngx_http_dsa_retention_message(rt, rt->wanted[i], records[i])
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_retention_message(ngx_http_dsa_retention_t *rt, uint32_t i,
    dsa_str_t record)
{
    dsa_err_t       err;
    dsa_retain_e    what;
    dsa_sampled_t  *sampled;

    if (record.len == 0) {
        ngx_http_dsa_metrics_add(retention_missing, 1);
        return NGX_OK;
    }

    sampled = dsa_sampled_read(rt->arena, record, &err);

    if (sampled == NULL) {
        ngx_http_dsa_metrics_add(retention_invalid, 1);

        ngx_log_error(NGX_LOG_ERR, rt->http->connection->log, 0,
                      "dsa: a retained answer cannot be read: %s", err.text);
        return NGX_OK;
    }

    if (dsa_retain_restore(&rt->chat->messages[i], sampled, rt->arena, &what)
        != DSA_OK)
    {
        return NGX_ERROR;
    }

    if (what == DSA_RETAIN_NOTHING) {
        ngx_http_dsa_metrics_add(retention_changed, 1);
        return NGX_OK;
    }

    ngx_http_dsa_metrics_add(retention_restored, 1);
    rt->restored++;

    return NGX_OK;
}


/*
 * Checks in strict mode that each message with tool calls has its reasoning.
 * why: NULL, or the reason why Redis could not be read.
 */

static ngx_int_t
ngx_http_dsa_retention_check(ngx_http_dsa_retention_t *rt, const char *why)
{
    u_char      *param;
    uint32_t     i;
    dsa_chat_t  *chat;

    if (rt->mode != NGX_HTTP_DSA_RETENTION_STRICT) {
        return NGX_OK;
    }

    chat = rt->chat;

    for (i = dsa_retain_round(chat); i < chat->n_messages; i++) {
        if (dsa_retain_lacks_reasoning(chat, i)) {
            break;
        }
    }

    if (i == chat->n_messages) {
        return NGX_OK;
    }

    ngx_http_dsa_metrics_add(retention_refused, 1);

    param = ngx_pnalloc(rt->http->pool, sizeof("conversation[4294967295]"
                                               ".reasoning_content"));
    if (param != NULL) {
        (void) ngx_sprintf(param, "%s[%uD].reasoning_content%Z",
                           i < chat->n_stored ? "conversation" : "messages",
                           i < chat->n_stored ? i : i - chat->n_stored);
    }

    if (why != NULL) {
        ngx_http_dsa_failure_set(rt->failure, NGX_HTTP_SERVICE_UNAVAILABLE,
                                 (char *) param, "The reasoning of this "
                                 "message is missing and cannot be restored "
                                 "now: %s. Send reasoning_content, or try "
                                 "again later.", why);
        return NGX_ERROR;
    }

    ngx_http_dsa_failure_set(rt->failure, NGX_HTTP_BAD_REQUEST,
                             (char *) param, "The reasoning of this message "
                             "is missing, and nothing is stored for its tool "
                             "calls. Send reasoning_content as the server "
                             "returned it.");

    return NGX_ERROR;
}


ngx_uint_t
ngx_http_dsa_retention_record(ngx_http_dsa_retention_t *rt,
    const dsa_chat_t *chat)
{
    /* with a prefix the model samples only the end of the message */

    rt->writing = rt->mode != NGX_HTTP_DSA_RETENTION_OFF
                  && rt->redis != NULL
                  && rt->tenant.len != 0
                  && chat->tools != NULL
                  && chat->tool_choice != DSA_TOOL_CHOICE_NONE
                  && chat->n_messages != 0
                  && !chat->messages[chat->n_messages - 1].prefix;

    return rt->writing;
}


void
ngx_http_dsa_retention_other(ngx_http_dsa_retention_t *other,
    const ngx_http_dsa_retention_t *rt)
{
    other->mode = rt->mode;
    other->ttl = rt->ttl;
    other->redis = rt->redis;
    other->tenant = rt->tenant;
    other->id = rt->id;
    other->writing = rt->writing;
}


void
ngx_http_dsa_retention_save(ngx_http_dsa_retention_t *rt, const char *call_id)
{
    dsa_str_t  key;

    if (!rt->writing) {
        return;
    }

    rt->writing = 0;
    key = dsa_retain_key(dsa_strz(call_id));

    if (key.len == 0 || dsa_sampled_end(&rt->sampled) != DSA_OK) {
        ngx_http_dsa_metrics_add(retention_lost, 1);

        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "dsa: the answer of request \"%V\" is not retained: it "
                      "is longer than %d bytes, or nginx is out of memory",
                      &rt->id, DSA_SAMPLED_MAX);
        return;
    }

    ngx_http_dsa_retention_queue_add(rt->redis, &rt->id, &rt->tenant, key,
                                     rt->ttl, &rt->sampled.record);
}


void
ngx_http_dsa_retention_free_arena(ngx_http_dsa_retention_t *rt)
{
    dsa_arena_destroy(rt->arena);
    rt->arena = NULL;
}


void
ngx_http_dsa_retention_free(ngx_http_dsa_retention_t *rt)
{
    if (rt->call != NULL) {
        ngx_http_dsa_redis_detach(rt->call);
        rt->call = NULL;
    }

    if (rt->timer.timer_set) {
        ngx_del_timer(&rt->timer);
    }

    ngx_http_dsa_retention_free_arena(rt);
    dsa_buf_free(&rt->sampled.record);
    ngx_memzero(&rt->sampled, sizeof(dsa_sampled_writer_t));
    rt->writing = 0;
}
