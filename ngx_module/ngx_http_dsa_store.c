
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "base/json.h"
#include "redis_schema/resp.h"
#include "ngx_http_dsa_store.h"


/*
 * Records wait in one queue a worker, in order.  Up to a window of them is
 * under way; each stays in the queue until its reply has come, and is sent
 * again when none came: the script counts it once.
 */

#define NGX_HTTP_DSA_STORE_WINDOW       64

/*
 * Bytes of messages that may wait.  Beyond it a turn is dropped and told;
 * its ledger entry, which is small, is kept.
 */

#define NGX_HTTP_DSA_STORE_MAX_BYTES    (64 * 1024 * 1024)

#define NGX_HTTP_DSA_STORE_DEPTH        64          /* of messages' JSON */
#define NGX_HTTP_DSA_STORE_ARENA        (64 * 1024 * 1024)

#define NGX_HTTP_DSA_STORE_BACKOFF_MIN  100         /* milliseconds */
#define NGX_HTTP_DSA_STORE_BACKOFF_MAX  5000

/* how often a worker that has records looks whether it shall end */

#define NGX_HTTP_DSA_STORE_HOLD         200


typedef struct ngx_http_dsa_store_s        ngx_http_dsa_store_t;
typedef struct ngx_http_dsa_store_entry_s  ngx_http_dsa_store_entry_t;


/* In the request's pool: it may end before the entry, or the other way. */

typedef struct {
    ngx_http_dsa_store_entry_t    *entry;
    ngx_http_request_t            *request;
    ngx_http_dsa_store_record_pt   handler;
} ngx_http_dsa_store_waiter_t;


struct ngx_http_dsa_store_entry_s {
    ngx_queue_t                    queue;
    ngx_http_dsa_store_t          *store;
    ngx_http_dsa_redis_call_t     *call;
    ngx_http_dsa_store_waiter_t   *waiter;
    dsa_schema_record_t            record;
    size_t                         bytes;       /* of messages */
    unsigned                       sent:1;      /* a reply is awaited */
    unsigned                       tried:1;     /* may have been written */
    unsigned                       text:1;      /* as EVAL */
    unsigned                       stripped:1;  /* its turn was dropped */
};


struct ngx_http_dsa_store_s {
    ngx_http_dsa_redis_t          *redis;
    ngx_queue_t                    entries;
    ngx_uint_t                     pending;
    ngx_uint_t                     sent;
    ngx_uint_t                     lost;
    ngx_uint_t                     refused;
    size_t                         bytes;

    ngx_connection_t               dumb;
    ngx_event_t                    hold;
    ngx_event_t                    retry;
    ngx_msec_t                     backoff;
    ngx_msec_t                     deadline;

    unsigned                       text:1;      /* the hash is not known */
    unsigned                       told:1;
    unsigned                       ending:1;
};


typedef struct {
    ngx_http_request_t            *request;
    ngx_http_dsa_redis_call_t     *call;
    ngx_http_dsa_store_load_pt     handler;
    const char                    *why;         /* not sent at all */
    unsigned                       at_once:1;
} ngx_http_dsa_store_load_t;


static ngx_http_dsa_store_t *ngx_http_dsa_store(ngx_http_dsa_redis_t *redis);
static ngx_http_dsa_store_entry_t *ngx_http_dsa_store_entry(
    ngx_http_dsa_store_t *store, const ngx_http_dsa_record_t *record);
static int ngx_http_dsa_store_split(dsa_buf_t *text, dsa_arena_t *arena,
    const ngx_str_t *json, uint32_t *n, dsa_err_t *err);
static dsa_str_t ngx_http_dsa_store_copy(u_char **p, dsa_str_t s);
static void ngx_http_dsa_store_waiter_cleanup(void *data);
static void ngx_http_dsa_store_pump(ngx_http_dsa_store_t *store);
static ngx_int_t ngx_http_dsa_store_send(ngx_http_dsa_store_entry_t *e);
static void ngx_http_dsa_store_reply(void *data, redisReply *reply,
    const char *why);
static void ngx_http_dsa_store_again(ngx_http_dsa_store_t *store,
    const char *text);
static ngx_http_dsa_store_waiter_t *ngx_http_dsa_store_part(
    ngx_http_dsa_store_entry_t *e);
static void ngx_http_dsa_store_answer(ngx_http_dsa_store_waiter_t *waiter,
    ngx_int_t rc, const char *why);
static void ngx_http_dsa_store_remove(ngx_http_dsa_store_entry_t *e);
static void ngx_http_dsa_store_lose(ngx_http_dsa_store_t *store,
    const dsa_schema_record_t *record, const char *why);
static void ngx_http_dsa_store_drop(ngx_http_dsa_store_t *store,
    const char *why);
static void ngx_http_dsa_store_up(void *data);
static void ngx_http_dsa_store_done(void *data);
static void ngx_http_dsa_store_hold(ngx_event_t *ev);
static void ngx_http_dsa_store_retry(ngx_event_t *ev);
static ngx_uint_t ngx_http_dsa_store_unsent(ngx_http_dsa_redis_t *redis,
    dsa_str_t tenant, dsa_str_t conversation);
static void ngx_http_dsa_store_load_cleanup(void *data);
static void ngx_http_dsa_store_loaded(void *data, redisReply *reply,
    const char *why);
static void ngx_http_dsa_store_load_reply(ngx_http_dsa_store_load_t *load,
    redisReply *reply);


static dsa_str_t
ngx_http_dsa_store_str(const ngx_str_t *s)
{
    return dsa_str(s->data, s->len);
}


static ngx_http_dsa_store_t *
ngx_http_dsa_store(ngx_http_dsa_redis_t *redis)
{
    ngx_http_dsa_store_t        *store;
    ngx_http_dsa_redis_hooks_t  *hooks;

    hooks = ngx_http_dsa_redis_hooks(redis);

    if (hooks->data != NULL) {
        return hooks->data;
    }

    store = ngx_pcalloc(ngx_cycle->pool, sizeof(ngx_http_dsa_store_t));
    if (store == NULL) {
        return NULL;
    }

    store->redis = redis;
    store->backoff = NGX_HTTP_DSA_STORE_BACKOFF_MIN;
    ngx_queue_init(&store->entries);

    store->dumb.fd = (ngx_socket_t) -1;
    store->dumb.data = store;

    store->hold.handler = ngx_http_dsa_store_hold;
    store->hold.data = &store->dumb;
    store->hold.log = ngx_cycle->log;

    store->retry.handler = ngx_http_dsa_store_retry;
    store->retry.data = &store->dumb;
    store->retry.log = ngx_cycle->log;
    store->retry.cancelable = 1;

    hooks->data = store;
    hooks->up = ngx_http_dsa_store_up;
    hooks->done = ngx_http_dsa_store_done;

    return store;
}


ngx_int_t
ngx_http_dsa_store_record(ngx_http_dsa_redis_t *redis,
    const ngx_http_dsa_record_t *record)
{
    ngx_pool_cleanup_t           *cln;
    ngx_http_dsa_store_t         *store;
    ngx_http_dsa_store_entry_t   *e;
    ngx_http_dsa_store_waiter_t  *waiter;

    store = ngx_http_dsa_store(redis);
    if (store == NULL) {
        return NGX_DECLINED;
    }

    e = ngx_http_dsa_store_entry(store, record);
    if (e == NULL) {
        return NGX_DECLINED;
    }

    ngx_queue_insert_tail(&store->entries, &e->queue);
    store->pending++;
    store->bytes += e->bytes;

    store->hold.cancelable = 0;

    if (!store->hold.timer_set) {
        ngx_add_timer(&store->hold, NGX_HTTP_DSA_STORE_HOLD);
    }

    ngx_http_dsa_store_pump(store);

    if (!e->sent) {
        return NGX_AGAIN;
    }

    if (record->request == NULL) {
        return NGX_OK;
    }

    cln = ngx_pool_cleanup_add(record->request->pool,
                               sizeof(ngx_http_dsa_store_waiter_t));
    if (cln == NULL) {
        return NGX_AGAIN;
    }

    cln->handler = ngx_http_dsa_store_waiter_cleanup;

    waiter = cln->data;
    waiter->entry = e;
    waiter->request = record->request;
    waiter->handler = record->handler;

    e->waiter = waiter;

    return NGX_OK;
}


/* A copy of the record, alone in its memory. */

static ngx_http_dsa_store_entry_t *
ngx_http_dsa_store_entry(ngx_http_dsa_store_t *store,
    const ngx_http_dsa_record_t *record)
{
    size_t                       len;
    u_char                      *p;
    uint32_t                     i, n;
    dsa_buf_t                    text;
    dsa_err_t                    err;
    dsa_str_t                   *messages;
    dsa_arena_t                 *arena;
    const char                  *why;
    dsa_schema_record_t          rec;
    ngx_http_dsa_store_entry_t  *e;

    ngx_memzero(&text, sizeof(dsa_buf_t));
    ngx_memzero(&rec, sizeof(dsa_schema_record_t));

    e = NULL;
    n = 0;
    why = NULL;
    arena = NULL;

    rec.request = ngx_http_dsa_store_str(&record->request_id);
    rec.tenant = ngx_http_dsa_store_str(&record->tenant);
    rec.model = ngx_http_dsa_store_str(&record->model);
    rec.conversation = ngx_http_dsa_store_str(&record->conversation);
    rec.time = record->time;
    rec.prompt_tokens = record->prompt_tokens;
    rec.cached_tokens = record->cached_tokens;
    rec.completion_tokens = record->completion_tokens;
    rec.reasoning_tokens = record->reasoning_tokens;
    rec.version = record->version;
    rec.ttl = ngx_http_dsa_redis_ttl(store->redis);
    rec.max_messages = DSA_SCHEMA_MAX_MESSAGES;
    rec.max_bytes = DSA_SCHEMA_MAX_BYTES;

    if (!dsa_schema_name_ok(rec.request) || !dsa_schema_name_ok(rec.tenant)
        || rec.model.len == 0)
    {
        why = "it has no proper name";
        goto lost;
    }

    if (store->pending >= ngx_http_dsa_redis_queue(store->redis)) {
        why = "the queue is full";
        goto lost;
    }

    if (rec.conversation.len != 0) {

        if (!dsa_schema_id_ok(rec.conversation)) {
            (void) dsa_error(&err, "the conversation's id is none");
            n = 0;

        } else if (store->bytes + record->messages.len
                   > NGX_HTTP_DSA_STORE_MAX_BYTES)
        {
            (void) dsa_error(&err, "%d bytes of messages wait already",
                             NGX_HTTP_DSA_STORE_MAX_BYTES);

        } else {
            arena = dsa_arena_create(NGX_HTTP_DSA_STORE_ARENA);
            if (arena == NULL) {
                why = "there is no memory";
                goto lost;
            }

            err.text[0] = '\0';

            if (ngx_http_dsa_store_split(&text, arena, &record->messages, &n,
                                         &err)
                == DSA_OK)
            {
                goto copy;
            }
        }

        /* the turn cannot be kept, what it cost can */

        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "dsa: a turn of request \"%V\" is not kept: %s",
                      &record->request_id, err.text);

        store->refused++;
        rec.conversation.len = 0;
        text.len = 0;
        n = 0;
    }

copy:

    len = rec.request.len + rec.tenant.len + rec.model.len
          + rec.conversation.len + text.len;

    e = ngx_calloc(sizeof(ngx_http_dsa_store_entry_t) + n * sizeof(dsa_str_t)
                   + len, ngx_cycle->log);
    if (e == NULL) {
        why = "there is no memory";
        goto lost;
    }

    messages = (dsa_str_t *) &e[1];
    p = (u_char *) &messages[n];

    e->store = store;
    e->bytes = text.len;
    e->stripped = (record->conversation.len != 0 && rec.conversation.len == 0);
    e->record = rec;
    e->record.request = ngx_http_dsa_store_copy(&p, rec.request);
    e->record.tenant = ngx_http_dsa_store_copy(&p, rec.tenant);
    e->record.model = ngx_http_dsa_store_copy(&p, rec.model);
    e->record.conversation = ngx_http_dsa_store_copy(&p, rec.conversation);
    e->record.messages = messages;
    e->record.n_messages = n;

    /* the messages' texts are NUL-terminated, one after the other */

    if (n != 0) {
        ngx_memcpy(p, text.data, text.len);
    }

    for (i = 0; i < n; i++) {
        messages[i] = dsa_strz((char *) p);
        p += messages[i].len + 1;
    }

lost:

    if (e == NULL) {
        ngx_http_dsa_store_lose(store, &rec, why);
    }

    dsa_buf_free(&text);
    dsa_arena_destroy(arena);

    return e;
}


/*
 * The array's elements as texts with a NUL each.  JSON text has no NUL of its
 * own, it escapes it.
 */

static int
ngx_http_dsa_store_split(dsa_buf_t *text, dsa_arena_t *arena,
    const ngx_str_t *json, uint32_t *n, dsa_err_t *err)
{
    dsa_json_t  *root, *message;

    *n = 0;

    root = dsa_json_parse(arena, json->data, json->len,
                          NGX_HTTP_DSA_STORE_DEPTH, err);
    if (root == NULL) {
        return DSA_ERROR;
    }

    if (root->type != DSA_JSON_ARRAY) {
        return dsa_error(err, "its messages are no array");
    }

    for (message = root->first; message != NULL; message = message->next) {

        if (dsa_json_dump(text, message) != DSA_OK) {
            return dsa_error(err, "a message cannot be written");
        }

        dsa_buf_add(text, "", 1);
        (*n)++;
    }

    if (text->failed) {
        return dsa_error(err, "there is no memory");
    }

    return DSA_OK;
}


static dsa_str_t
ngx_http_dsa_store_copy(u_char **p, dsa_str_t s)
{
    dsa_str_t  copy;

    copy = dsa_str(*p, s.len);

    if (s.len != 0) {
        *p = ngx_cpymem(*p, s.data, s.len);
    }

    return copy;
}


static void
ngx_http_dsa_store_waiter_cleanup(void *data)
{
    ngx_http_dsa_store_waiter_t  *waiter = data;

    if (waiter->entry != NULL) {
        waiter->entry->waiter = NULL;
    }
}


static void
ngx_http_dsa_store_pump(ngx_http_dsa_store_t *store)
{
    ngx_queue_t                 *q;
    ngx_http_dsa_store_entry_t  *e;

    if (!ngx_http_dsa_redis_up(store->redis) || store->retry.timer_set) {
        return;
    }

    for (q = ngx_queue_head(&store->entries);
         q != ngx_queue_sentinel(&store->entries)
         && store->sent < NGX_HTTP_DSA_STORE_WINDOW;
         q = ngx_queue_next(q))
    {
        e = ngx_queue_data(q, ngx_http_dsa_store_entry_t, queue);

        if (!e->sent && ngx_http_dsa_store_send(e) != NGX_OK) {
            return;
        }
    }
}


static ngx_int_t
ngx_http_dsa_store_send(ngx_http_dsa_store_entry_t *e)
{
    dsa_arena_t           *arena;
    dsa_schema_command_t   cmd;
    ngx_http_dsa_store_t  *store;

    store = e->store;

    arena = dsa_arena_create(NGX_HTTP_DSA_STORE_ARENA);

    if (arena == NULL
        || dsa_schema_record(&cmd, arena, &e->record, store->text) != DSA_OK)
    {
        dsa_arena_destroy(arena);
        ngx_http_dsa_store_again(store, "there is no memory");
        return NGX_ERROR;
    }

    /* set before: the handler may be called at once */

    e->sent = 1;
    e->tried = 1;
    e->text = store->text;
    store->sent++;

    e->call = ngx_http_dsa_store_command(store->redis, &cmd,
                                         ngx_http_dsa_store_reply, e);

    dsa_arena_destroy(arena);

    return e->call != NULL ? NGX_OK : NGX_ERROR;
}


ngx_http_dsa_redis_call_t *
ngx_http_dsa_store_command(ngx_http_dsa_redis_t *redis,
    const dsa_schema_command_t *cmd, ngx_http_dsa_redis_pt handler, void *data)
{
    uint32_t                    i;
    ngx_str_t                  *argv;
    ngx_http_dsa_redis_call_t  *call;

    argv = ngx_alloc(cmd->argc * sizeof(ngx_str_t), ngx_cycle->log);
    if (argv == NULL) {
        handler(data, NULL, "no memory for a command to Redis");
        return NULL;
    }

    for (i = 0; i < cmd->argc; i++) {
        argv[i].len = cmd->argv[i].len;
        argv[i].data = (u_char *) cmd->argv[i].data;
    }

    call = ngx_http_dsa_redis_command(redis, cmd->argc, argv, handler, data);

    ngx_free(argv);

    return call;
}


static void
ngx_http_dsa_store_reply(void *data, redisReply *reply, const char *why)
{
    int                           again, rc;
    dsa_err_t                     err;
    ngx_uint_t                    stripped;
    dsa_schema_result_e           result;
    ngx_http_dsa_store_t         *store;
    ngx_http_dsa_store_entry_t   *e = data;
    ngx_http_dsa_store_waiter_t  *waiter;

    store = e->store;

    store->sent--;
    e->sent = 0;
    e->call = NULL;

    if (reply == NULL) {

        /* the connection's end is told by it, and its next beginning */

        if (ngx_http_dsa_redis_up(store->redis)) {
            ngx_http_dsa_store_again(store, why);
        }

        ngx_http_dsa_store_answer(ngx_http_dsa_store_part(e), NGX_AGAIN, why);
        return;
    }

    if (dsa_resp_is_error(reply, "NOSCRIPT") && !e->text) {
        store->text = 1;
        ngx_http_dsa_store_pump(store);
        return;
    }

    rc = dsa_schema_recorded(reply, &result, &again, &err);

    if (rc == DSA_AGAIN) {
        ngx_http_dsa_store_again(store, err.text);
        ngx_http_dsa_store_answer(ngx_http_dsa_store_part(e), NGX_AGAIN,
                                  "Redis refuses to write");
        return;
    }

    if (rc != DSA_OK) {
        ngx_http_dsa_store_lose(store, &e->record, err.text);

        waiter = ngx_http_dsa_store_part(e);
        ngx_http_dsa_store_remove(e);
        ngx_http_dsa_store_pump(store);

        ngx_http_dsa_store_answer(waiter, NGX_ERROR, "the ledger is damaged");
        return;
    }

    if (e->text) {
        store->text = 0;
    }

    store->backoff = NGX_HTTP_DSA_STORE_BACKOFF_MIN;

    if (store->told) {
        store->told = 0;
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "dsa: Redis takes records again");
    }

    if (result > DSA_SCHEMA_APPENDED) {
        store->refused++;
        ngx_log_error(NGX_LOG_INFO, ngx_cycle->log, 0,
                      "dsa: messages of request \"%*s\" were refused: %s",
                      e->record.request.len, e->record.request.data,
                      dsa_schema_result(result));
    }

    /* the entry goes first: who is told may bring the next one */

    stripped = e->stripped;
    waiter = ngx_http_dsa_store_part(e);

    ngx_http_dsa_store_remove(e);
    ngx_http_dsa_store_pump(store);

    if (stripped) {
        ngx_http_dsa_store_answer(waiter, NGX_DECLINED,
                                  "the turn was not kept");

    } else if (result > DSA_SCHEMA_APPENDED) {
        ngx_http_dsa_store_answer(waiter, NGX_DECLINED,
                                  dsa_schema_result(result));

    } else {
        ngx_http_dsa_store_answer(waiter, NGX_OK, NULL);
    }
}


/* Redis is there but does not take it, which may pass. */

static void
ngx_http_dsa_store_again(ngx_http_dsa_store_t *store, const char *text)
{
    if (!store->told) {
        store->told = 1;
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "dsa: %ui records wait: %s", store->pending, text);
    }

    if (!store->retry.timer_set) {
        ngx_add_timer(&store->retry, store->backoff);
        store->backoff = ngx_min(store->backoff * 2,
                                 NGX_HTTP_DSA_STORE_BACKOFF_MAX);
    }
}


static ngx_http_dsa_store_waiter_t *
ngx_http_dsa_store_part(ngx_http_dsa_store_entry_t *e)
{
    ngx_http_dsa_store_waiter_t  *waiter;

    waiter = e->waiter;

    if (waiter != NULL) {
        waiter->entry = NULL;
        e->waiter = NULL;
    }

    return waiter;
}


static void
ngx_http_dsa_store_answer(ngx_http_dsa_store_waiter_t *waiter, ngx_int_t rc,
    const char *why)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    if (waiter == NULL) {
        return;
    }

    r = waiter->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    waiter->handler(r, rc, why);

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_dsa_store_remove(ngx_http_dsa_store_entry_t *e)
{
    ngx_http_dsa_store_t  *store;

    store = e->store;

    ngx_queue_remove(&e->queue);
    store->pending--;
    store->bytes -= e->bytes;

    if (store->pending == 0) {
        store->hold.cancelable = 1;
    }

    ngx_free(e);
}


/* The error log is the last place where it can stand. */

static void
ngx_http_dsa_store_lose(ngx_http_dsa_store_t *store,
    const dsa_schema_record_t *record, const char *why)
{
    ngx_str_t  model, request, tenant;

    store->lost++;

    request.len = record->request.len;
    request.data = (u_char *) record->request.data;
    tenant.len = record->tenant.len;
    tenant.data = (u_char *) record->tenant.data;
    model.len = record->model.len;
    model.data = (u_char *) record->model.data;

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "dsa: a ledger entry is lost: %s; request \"%V\", "
                  "tenant \"%V\", model \"%V\", time %T, prompt %uL, "
                  "cached %uL, completion %uL, reasoning %uL",
                  why, &request, &tenant, &model, (time_t) record->time,
                  record->prompt_tokens, record->cached_tokens,
                  record->completion_tokens, record->reasoning_tokens);
}


static void
ngx_http_dsa_store_drop(ngx_http_dsa_store_t *store, const char *why)
{
    ngx_uint_t                   tried;
    ngx_queue_t                 *q;
    ngx_http_dsa_store_entry_t  *e;

    if (store->pending == 0) {
        return;
    }

    tried = 0;

    for (q = ngx_queue_head(&store->entries);
         q != ngx_queue_sentinel(&store->entries);
         q = ngx_queue_next(q))
    {
        e = ngx_queue_data(q, ngx_http_dsa_store_entry_t, queue);
        tried += e->tried;
    }

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "dsa: the worker ends with %ui records not written and %ui "
                  "not known to be written: %s",
                  store->pending - tried, tried, why);

    while (!ngx_queue_empty(&store->entries)) {
        q = ngx_queue_head(&store->entries);
        e = ngx_queue_data(q, ngx_http_dsa_store_entry_t, queue);

        if (e->call != NULL) {
            ngx_http_dsa_redis_detach(e->call);
        }

        (void) ngx_http_dsa_store_part(e);

        ngx_http_dsa_store_lose(store, &e->record,
                                e->tried ? "it was sent, no answer came"
                                         : why);
        ngx_http_dsa_store_remove(e);
    }

    store->sent = 0;
}


static void
ngx_http_dsa_store_up(void *data)
{
    ngx_http_dsa_store_t  *store = data;

    ngx_http_dsa_store_pump(store);
}


static void
ngx_http_dsa_store_done(void *data)
{
    ngx_http_dsa_store_t  *store = data;

    ngx_http_dsa_store_drop(store, ngx_exiting ? "time is up"
                                               : "fast shutdown");

    if (store->hold.timer_set) {
        ngx_del_timer(&store->hold);
    }

    if (store->retry.timer_set) {
        ngx_del_timer(&store->retry);
    }
}


/*
 * Keeps a worker that shall end, until its records are written or
 * worker_shutdown_timeout is over: it ends when no timer is left that is not
 * cancelable.
 */

static void
ngx_http_dsa_store_hold(ngx_event_t *ev)
{
    ngx_connection_t      *dumb = ev->data;
    ngx_core_conf_t       *ccf;
    ngx_http_dsa_store_t  *store = dumb->data;

    if (store->pending == 0) {
        return;
    }

    if (ngx_exiting) {
        ccf = (ngx_core_conf_t *) ngx_get_conf(ngx_cycle->conf_ctx,
                                               ngx_core_module);

        if (!store->ending) {
            store->ending = 1;
            store->deadline = ngx_current_msec + ccf->shutdown_timeout;

        } else if (ccf->shutdown_timeout != 0
                   && (ngx_msec_int_t) (ngx_current_msec - store->deadline)
                      >= 0)
        {
            ngx_http_dsa_store_drop(store, "time is up");
            return;
        }

        ngx_http_dsa_redis_hurry(store->redis);
    }

    ngx_add_timer(ev, NGX_HTTP_DSA_STORE_HOLD);
}


static void
ngx_http_dsa_store_retry(ngx_event_t *ev)
{
    ngx_connection_t  *dumb = ev->data;

    ngx_http_dsa_store_pump(dumb->data);
}


ngx_uint_t
ngx_http_dsa_store_pending(ngx_http_dsa_redis_t *redis)
{
    ngx_http_dsa_store_t  *store = ngx_http_dsa_redis_hooks(redis)->data;

    return store != NULL ? store->pending : 0;
}


ngx_uint_t
ngx_http_dsa_store_lost(ngx_http_dsa_redis_t *redis)
{
    ngx_http_dsa_store_t  *store = ngx_http_dsa_redis_hooks(redis)->data;

    return store != NULL ? store->lost : 0;
}


ngx_uint_t
ngx_http_dsa_store_refused(ngx_http_dsa_redis_t *redis)
{
    ngx_http_dsa_store_t  *store = ngx_http_dsa_redis_hooks(redis)->data;

    return store != NULL ? store->refused : 0;
}


ngx_int_t
ngx_http_dsa_store_load(ngx_http_request_t *r, ngx_http_dsa_redis_t *redis,
    ngx_str_t *tenant, ngx_str_t *conversation,
    ngx_http_dsa_store_load_pt handler)
{
    dsa_str_t                   id, who;
    dsa_arena_t                *arena;
    ngx_pool_cleanup_t         *cln;
    dsa_schema_command_t        cmd;
    ngx_http_dsa_store_load_t  *load;

    id = ngx_http_dsa_store_str(conversation);
    who = ngx_http_dsa_store_str(tenant);

    if (!dsa_schema_id_ok(id) || !dsa_schema_name_ok(who)) {
        handler(r, NGX_HTTP_BAD_REQUEST, NULL, 0, "it is no conversation id");
        return NGX_OK;
    }

    if (ngx_http_dsa_store_unsent(redis, who, id)) {
        handler(r, NGX_HTTP_SERVICE_UNAVAILABLE, NULL, 0,
                "the turn before is not written yet");
        return NGX_OK;
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_dsa_store_load_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_dsa_store_load_cleanup;

    load = cln->data;
    load->request = r;
    load->handler = handler;
    load->call = NULL;
    load->at_once = 1;

    arena = dsa_arena_create(4096);
    if (arena == NULL) {
        return NGX_ERROR;
    }

    if (dsa_schema_load(&cmd, arena, who, id) != DSA_OK) {
        dsa_arena_destroy(arena);
        return NGX_ERROR;
    }

    load->call = ngx_http_dsa_store_command(redis, &cmd,
                                            ngx_http_dsa_store_loaded, load);

    load->at_once = 0;

    dsa_arena_destroy(arena);

    if (load->call == NULL) {
        handler(r, NGX_HTTP_SERVICE_UNAVAILABLE, NULL, 0, load->why);
    }

    return NGX_OK;
}


/*
 * What is under way goes before a load, on the same connection; what still
 * waits would be overtaken.
 */

static ngx_uint_t
ngx_http_dsa_store_unsent(ngx_http_dsa_redis_t *redis, dsa_str_t tenant,
    dsa_str_t conversation)
{
    ngx_queue_t                 *q;
    ngx_http_dsa_store_t        *store;
    ngx_http_dsa_store_entry_t  *e;

    store = ngx_http_dsa_redis_hooks(redis)->data;

    if (store == NULL || store->pending == store->sent) {
        return 0;
    }

    for (q = ngx_queue_head(&store->entries);
         q != ngx_queue_sentinel(&store->entries);
         q = ngx_queue_next(q))
    {
        e = ngx_queue_data(q, ngx_http_dsa_store_entry_t, queue);

        if (!e->sent && dsa_str_eq(e->record.conversation, conversation)
            && dsa_str_eq(e->record.tenant, tenant))
        {
            return 1;
        }
    }

    return 0;
}


static void
ngx_http_dsa_store_load_cleanup(void *data)
{
    ngx_http_dsa_store_load_t  *load = data;

    if (load->call != NULL) {
        ngx_http_dsa_redis_detach(load->call);
    }
}


static void
ngx_http_dsa_store_loaded(void *data, redisReply *reply, const char *why)
{
    ngx_connection_t           *c;
    ngx_http_request_t         *r;
    ngx_http_dsa_store_load_t  *load = data;

    if (load->at_once) {

        /* who sends it sees that it was not sent, and tells it */

        load->why = why;
        return;
    }

    load->call = NULL;

    r = load->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    if (reply == NULL) {
        load->handler(r, NGX_HTTP_SERVICE_UNAVAILABLE, NULL, 0, why);

    } else {
        ngx_http_dsa_store_load_reply(load, reply);
    }

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_dsa_store_load_reply(ngx_http_dsa_store_load_t *load,
    redisReply *reply)
{
    int                         rc;
    size_t                      len;
    u_char                     *p;
    uint32_t                    i;
    dsa_err_t                   err;
    ngx_str_t                   messages;
    dsa_arena_t                *arena;
    ngx_http_request_t         *r;
    dsa_schema_conversation_t   c;

    r = load->request;

    arena = dsa_arena_create(NGX_HTTP_DSA_STORE_ARENA);
    if (arena == NULL) {
        load->handler(r, NGX_HTTP_SERVICE_UNAVAILABLE, NULL, 0,
                      "no memory for the conversation");
        return;
    }

    rc = dsa_schema_conversation(&c, arena, reply, &err);

    if (rc != DSA_OK) {
        dsa_arena_destroy(arena);

        if (rc == DSA_AGAIN) {
            load->handler(r, NGX_HTTP_NOT_FOUND, NULL, 0,
                          "there is no such conversation");
            return;
        }

        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0, "%s", err.text);

        load->handler(r, NGX_HTTP_SERVICE_UNAVAILABLE, NULL, 0,
                      "the stored conversation cannot be read");
        return;
    }

    len = sizeof("[]") - 1;

    for (i = 0; i < c.n_messages; i++) {
        len += c.messages[i].len + 1;
    }

    messages.data = ngx_pnalloc(r->pool, len);

    if (messages.data == NULL) {
        dsa_arena_destroy(arena);
        load->handler(r, NGX_HTTP_SERVICE_UNAVAILABLE, NULL, 0,
                      "no memory for the conversation");
        return;
    }

    p = messages.data;
    *p++ = '[';

    for (i = 0; i < c.n_messages; i++) {
        if (i != 0) {
            *p++ = ',';
        }

        p = ngx_cpymem(p, c.messages[i].data, c.messages[i].len);
    }

    *p++ = ']';
    messages.len = p - messages.data;

    dsa_arena_destroy(arena);

    load->handler(r, NGX_HTTP_OK, &messages, c.version, NULL);
}
