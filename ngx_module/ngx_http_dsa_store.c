
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "base/json.h"
#include "base/json_write.h"
#include "redis_schema/resp.h"
#include "ngx_http_dsa_store.h"


/*
 * Ledger entries wait in the file of ngx_http_dsa_ledger.h.  A worker has a
 * queue of the slots that it owns.  Up to a window of them is under way; each
 * keeps its slot until Redis has confirmed it, and is sent again when no reply
 * came, because the script counts it once.
 *
 * The messages of a turn are in memory only, while an answer waits for them,
 * and at the head of the queue.  When the time is up they are withdrawn and
 * the entry goes on without them.  A script that still arrives later cannot
 * append them twice, nor after another turn: it finds the marker of the
 * request or another version.
 */

#define NGX_HTTP_DSA_STORE_WINDOW       64

#define NGX_HTTP_DSA_STORE_DEPTH        64          /* of messages' JSON */
#define NGX_HTTP_DSA_STORE_ARENA        (64 * 1024 * 1024)

#define NGX_HTTP_DSA_STORE_BACKOFF_MIN  100         /* milliseconds */
#define NGX_HTTP_DSA_STORE_BACKOFF_MAX  2000

/* how often a worker looks for entries of processes that ended */

#define NGX_HTTP_DSA_STORE_ADOPT        3000


typedef struct ngx_http_dsa_store_s        ngx_http_dsa_store_t;
typedef struct ngx_http_dsa_store_entry_s  ngx_http_dsa_store_entry_t;
typedef struct ngx_http_dsa_store_turn_s   ngx_http_dsa_store_turn_t;


/* In the request's pool: it may end before the turn, or the other way. */

typedef struct {
    ngx_http_dsa_store_turn_t     *turn;        /* NULL: it has ended */
    ngx_http_request_t            *request;
    ngx_http_dsa_store_record_pt   handler;
} ngx_http_dsa_store_waiter_t;


struct ngx_http_dsa_store_turn_s {
    ngx_http_dsa_store_t          *store;
    ngx_http_dsa_store_entry_t    *entry;
    ngx_http_dsa_store_waiter_t   *waiter;      /* NULL: the client left */
    ngx_event_t                    timer;
    const char                    *why;         /* the last attempt failed */
    dsa_str_t                      conversation;
    int64_t                        version;
    dsa_str_t                     *messages;
    uint32_t                       n_messages;
    unsigned                       unanswered:1;    /* may be appended */
};


struct ngx_http_dsa_store_entry_s {
    ngx_queue_t                    queue;
    ngx_http_dsa_store_t          *store;
    ngx_http_dsa_redis_call_t     *call;
    ngx_http_dsa_store_turn_t     *turn;        /* NULL: ledger only */
    ngx_uint_t                     slot;
    ngx_http_dsa_ledger_slot_t     copy;        /* the record's strings */
    dsa_schema_record_t            record;
    unsigned                       sent:1;      /* a reply is awaited */
    unsigned                       sending:1;   /* not yet sent */
    unsigned                       text:1;      /* as EVAL */
};


struct ngx_http_dsa_store_s {
    ngx_http_dsa_redis_t          *redis;
    ngx_http_dsa_ledger_t         *ledger;
    ngx_queue_t                    entries;
    ngx_uint_t                     pending;
    ngx_uint_t                     sent;
    ngx_uint_t                     lost;
    ngx_uint_t                     refused;

    ngx_connection_t               dumb;
    ngx_event_t                    adopt;
    ngx_event_t                    retry;
    ngx_msec_t                     backoff;

    unsigned                       text:1;      /* the hash is not known */
    unsigned                       blocked:1;   /* Redis refuses to write */
};


typedef struct {
    ngx_http_request_t            *request;
    ngx_http_dsa_redis_call_t     *call;
    ngx_http_dsa_store_load_pt     handler;
    const char                    *why;         /* not sent at all */
    unsigned                       at_once:1;
} ngx_http_dsa_store_load_t;


static ngx_http_dsa_store_turn_t *ngx_http_dsa_store_turn(
    const ngx_http_dsa_record_t *record, const char **why);
static int ngx_http_dsa_store_split(dsa_buf_t *text, dsa_arena_t *arena,
    const ngx_str_t *json, uint32_t *n, dsa_err_t *err);
static void ngx_http_dsa_store_waiter_cleanup(void *data);
static ngx_http_dsa_store_entry_t *ngx_http_dsa_store_entry(
    ngx_http_dsa_store_t *store, const dsa_schema_record_t *record,
    const char **why);
static void ngx_http_dsa_store_hurry(ngx_http_dsa_store_t *store);
static void ngx_http_dsa_store_pump(ngx_http_dsa_store_t *store);
static ngx_int_t ngx_http_dsa_store_send(ngx_http_dsa_store_entry_t *e);
static void ngx_http_dsa_store_reply(void *data, redisReply *reply,
    const char *why);
static void ngx_http_dsa_store_failed(ngx_http_dsa_store_entry_t *e,
    redisReply *reply, const char *why);
static void ngx_http_dsa_store_recorded(ngx_http_dsa_store_entry_t *e,
    dsa_schema_result_e result);
static void ngx_http_dsa_store_block(ngx_http_dsa_store_t *store,
    const char *text);
static void ngx_http_dsa_store_again(ngx_http_dsa_store_t *store);
static void ngx_http_dsa_store_late(ngx_event_t *ev);
static void ngx_http_dsa_store_end(ngx_http_dsa_store_turn_t *turn,
    const char *why);
static void ngx_http_dsa_store_remove(ngx_http_dsa_store_entry_t *e);
static void ngx_http_dsa_store_forget(ngx_http_dsa_store_entry_t *e);
static void ngx_http_dsa_store_lose(ngx_http_dsa_store_t *store,
    const dsa_schema_record_t *record, const char *why);
static void ngx_http_dsa_store_up(void *data);
static void ngx_http_dsa_store_done(void *data);
static void ngx_http_dsa_store_adopt(ngx_event_t *ev);
static ngx_int_t ngx_http_dsa_store_adopted(void *data, ngx_uint_t slot);
static void ngx_http_dsa_store_retry(ngx_event_t *ev);
static void ngx_http_dsa_store_load_cleanup(void *data);
static void ngx_http_dsa_store_loaded(void *data, redisReply *reply,
    const char *why);
static void ngx_http_dsa_store_load_reply(ngx_http_dsa_store_load_t *load,
    redisReply *reply);


static const char  ngx_http_dsa_store_refuses[] =
    "Redis refuses to write at present";
static const char  ngx_http_dsa_store_unreachable[] =
    "Redis could not be reached in time";
static const char  ngx_http_dsa_store_unconfirmed[] =
    "Redis did not confirm it in time; read the conversation before the next "
    "turn";
static const char  ngx_http_dsa_store_nomem[] =
    "nginx is out of memory";


static dsa_str_t
ngx_http_dsa_store_str(const ngx_str_t *s)
{
    return dsa_str(s->data, s->len);
}


ngx_int_t
ngx_http_dsa_store_init_worker(ngx_http_dsa_redis_t *redis,
    ngx_cycle_t *cycle)
{
    ngx_http_dsa_store_t        *store;
    ngx_http_dsa_redis_hooks_t  *hooks;

    store = ngx_pcalloc(cycle->pool, sizeof(ngx_http_dsa_store_t));
    if (store == NULL) {
        return NGX_ERROR;
    }

    store->redis = redis;
    store->ledger = ngx_http_dsa_redis_ledger(redis);
    store->backoff = NGX_HTTP_DSA_STORE_BACKOFF_MIN;
    ngx_queue_init(&store->entries);

    store->dumb.fd = (ngx_socket_t) -1;
    store->dumb.data = store;

    store->adopt.handler = ngx_http_dsa_store_adopt;
    store->adopt.data = &store->dumb;
    store->adopt.log = cycle->log;
    store->adopt.cancelable = 1;

    store->retry.handler = ngx_http_dsa_store_retry;
    store->retry.data = &store->dumb;
    store->retry.log = cycle->log;
    store->retry.cancelable = 1;

    hooks = ngx_http_dsa_redis_hooks(redis);
    hooks->data = store;
    hooks->up = ngx_http_dsa_store_up;
    hooks->done = ngx_http_dsa_store_done;

    /* without a seat the worker serves, and logs each entry that it loses */

    if (ngx_http_dsa_ledger_sit(store->ledger, cycle->log) == NGX_OK) {
        ngx_http_dsa_store_adopt(&store->adopt);
    }

    return ngx_http_dsa_redis_init_worker(redis, cycle);
}


ngx_int_t
ngx_http_dsa_store_record(ngx_http_dsa_redis_t *redis,
    const ngx_http_dsa_record_t *record, const char **why)
{
    dsa_schema_record_t          rec;
    ngx_http_dsa_store_t        *store;
    ngx_http_dsa_store_turn_t   *turn;
    ngx_http_dsa_store_entry_t  *e;

    store = ngx_http_dsa_redis_hooks(redis)->data;

    ngx_memzero(&rec, sizeof(dsa_schema_record_t));

    rec.request = ngx_http_dsa_store_str(&record->request_id);
    rec.tenant = ngx_http_dsa_store_str(&record->tenant);
    rec.model = ngx_http_dsa_store_str(&record->model);
    rec.time = record->time;
    rec.prompt_tokens = record->prompt_tokens;
    rec.cached_tokens = record->cached_tokens;
    rec.completion_tokens = record->completion_tokens;
    rec.reasoning_tokens = record->reasoning_tokens;

    turn = NULL;

    if (record->conversation.len != 0) {
        turn = ngx_http_dsa_store_turn(record, why);
    }

    e = ngx_http_dsa_store_entry(store, &rec, why);

    if (e == NULL || turn == NULL) {

        if (record->conversation.len != 0) {
            if (store != NULL) {
                store->refused++;
            }

            ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                          "dsa: the turn of request \"%V\" is not stored: %s",
                          &record->request_id, *why);
        }

        if (turn != NULL) {
            turn->waiter->turn = NULL;
            ngx_free(turn);
        }

        if (e != NULL) {
            ngx_queue_insert_tail(&store->entries, &e->queue);
            ngx_http_dsa_store_pump(store);
        }

        return record->conversation.len != 0 ? NGX_DECLINED : NGX_OK;
    }

    e->turn = turn;
    turn->store = store;
    turn->entry = e;

    /* not cancelable: a worker that shuts down waits for it */

    ngx_add_timer(&turn->timer, ngx_http_dsa_redis_timeout(redis));

    ngx_queue_insert_head(&store->entries, &e->queue);

    ngx_http_dsa_store_hurry(store);
    ngx_http_dsa_store_pump(store);

    return NGX_OK;
}


/* The turn of a record with its messages, alone in its memory. */

static ngx_http_dsa_store_turn_t *
ngx_http_dsa_store_turn(const ngx_http_dsa_record_t *record, const char **why)
{
    size_t                       len;
    u_char                      *p;
    uint32_t                     i, n;
    dsa_buf_t                    text;
    dsa_err_t                    err;
    dsa_arena_t                 *arena;
    ngx_pool_cleanup_t          *cln;
    ngx_http_dsa_store_turn_t   *turn;
    ngx_http_dsa_store_waiter_t *waiter;

    ngx_memzero(&text, sizeof(dsa_buf_t));

    turn = NULL;
    *why = ngx_http_dsa_store_nomem;

    arena = dsa_arena_create(NGX_HTTP_DSA_STORE_ARENA);
    if (arena == NULL) {
        return NULL;
    }

    err.text[0] = '\0';

    if (ngx_http_dsa_store_split(&text, arena, &record->messages, &n, &err)
        != DSA_OK)
    {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "dsa: the messages of request \"%V\" cannot be stored: "
                      "%s", &record->request_id, err.text);
        *why = "nginx cannot store its messages";
        goto done;
    }

    len = record->conversation.len + text.len;

    cln = ngx_pool_cleanup_add(record->request->pool,
                               sizeof(ngx_http_dsa_store_waiter_t));
    if (cln == NULL) {
        goto done;
    }

    waiter = cln->data;
    waiter->turn = NULL;
    waiter->request = record->request;
    waiter->handler = record->handler;

    cln->handler = ngx_http_dsa_store_waiter_cleanup;

    turn = ngx_calloc(sizeof(ngx_http_dsa_store_turn_t)
                      + n * sizeof(dsa_str_t) + len, ngx_cycle->log);
    if (turn == NULL) {
        goto done;
    }

    turn->waiter = waiter;
    waiter->turn = turn;

    turn->timer.handler = ngx_http_dsa_store_late;
    turn->timer.data = turn;
    turn->timer.log = ngx_cycle->log;

    turn->version = record->version;
    turn->messages = (dsa_str_t *) &turn[1];
    turn->n_messages = n;

    p = (u_char *) &turn->messages[n];

    turn->conversation = dsa_str(p, record->conversation.len);
    p = ngx_cpymem(p, record->conversation.data, record->conversation.len);

    /* the messages' texts are NUL-terminated, one after the other */

    ngx_memcpy(p, text.data, text.len);

    for (i = 0; i < n; i++) {
        turn->messages[i] = dsa_strz((char *) p);
        p += turn->messages[i].len + 1;
    }

done:

    dsa_buf_free(&text);
    dsa_arena_destroy(arena);

    return turn;
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

    if (root->type != DSA_JSON_ARRAY || root->first == NULL) {
        return dsa_error(err, "they are no array of messages");
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


/* The client left.  Its turn is tried for the rest of the time. */

static void
ngx_http_dsa_store_waiter_cleanup(void *data)
{
    ngx_http_dsa_store_waiter_t  *waiter = data;

    if (waiter->turn != NULL) {
        waiter->turn->waiter = NULL;
    }
}


/* An entry whose figures are in the file; not yet in the queue. */

static ngx_http_dsa_store_entry_t *
ngx_http_dsa_store_entry(ngx_http_dsa_store_t *store,
    const dsa_schema_record_t *record, const char **why)
{
    ngx_int_t                    slot;
    ngx_http_dsa_store_entry_t  *e;

    e = NULL;

    if (store == NULL) {
        *why = "this process has no connection to Redis";
        goto lost;
    }

    if (!dsa_schema_entry_ok(record)) {
        *why = "its names or counts are not valid";
        goto lost;
    }

    e = ngx_calloc(sizeof(ngx_http_dsa_store_entry_t), ngx_cycle->log);
    if (e == NULL) {
        *why = ngx_http_dsa_store_nomem;
        goto lost;
    }

    slot = ngx_http_dsa_ledger_add(store->ledger, record);

    if (slot < 0) {
        *why = slot == NGX_BUSY ? "the queue for Redis is full"
               : slot == NGX_DECLINED ? "its names are too long"
                                      : "the worker has no seat in the queue";
        ngx_free(e);
        goto lost;
    }

    if (ngx_http_dsa_ledger_read(store->ledger, slot, &e->copy, &e->record)
        != NGX_OK)
    {
        *why = "its slot in the queue is damaged";
        ngx_http_dsa_ledger_free(store->ledger, slot);
        ngx_free(e);
        goto lost;
    }

    e->store = store;
    e->slot = slot;
    store->pending++;

    return e;

lost:

    ngx_http_dsa_store_lose(store, record, *why);

    return NULL;
}


/* An answer waits: attempts to connect and to write come soon. */

static void
ngx_http_dsa_store_hurry(ngx_http_dsa_store_t *store)
{
    ngx_http_dsa_redis_hurry(store->redis);

    store->backoff = NGX_HTTP_DSA_STORE_BACKOFF_MIN;

    if (store->retry.timer_set
        && (ngx_msec_int_t) (store->retry.timer.key - ngx_current_msec)
           > 2 * NGX_HTTP_DSA_STORE_BACKOFF_MIN)
    {
        ngx_del_timer(&store->retry);
        ngx_http_dsa_store_again(store);
    }
}


static void
ngx_http_dsa_store_pump(ngx_http_dsa_store_t *store)
{
    ngx_queue_t                 *q, *next;
    ngx_http_dsa_store_entry_t  *e;

    if (!ngx_http_dsa_redis_up(store->redis) || store->retry.timer_set) {
        return;
    }

    for (q = ngx_queue_head(&store->entries);
         q != ngx_queue_sentinel(&store->entries);
         q = next)
    {
        next = ngx_queue_next(q);
        e = ngx_queue_data(q, ngx_http_dsa_store_entry_t, queue);

        if (e->turn == NULL && store->sent >= NGX_HTTP_DSA_STORE_WINDOW) {
            return;
        }

        if (!e->sent && ngx_http_dsa_store_send(e) != NGX_OK) {
            return;
        }
    }
}


/* NGX_ERROR: nothing can be sent now. */

static ngx_int_t
ngx_http_dsa_store_send(ngx_http_dsa_store_entry_t *e)
{
    dsa_arena_t                *arena;
    dsa_schema_record_t         record;
    dsa_schema_command_t        cmd;
    ngx_http_dsa_store_t       *store;
    ngx_http_dsa_store_turn_t  *turn;

    store = e->store;
    turn = e->turn;
    record = e->record;

    if (turn != NULL) {
        record.conversation = turn->conversation;
        record.version = turn->version;
        record.ttl = ngx_http_dsa_redis_ttl(store->redis);
        record.messages = turn->messages;
        record.n_messages = turn->n_messages;
        record.max_messages = DSA_SCHEMA_MAX_MESSAGES;
        record.max_bytes = DSA_SCHEMA_MAX_BYTES;
    }

    arena = dsa_arena_create(NGX_HTTP_DSA_STORE_ARENA);

    if (arena == NULL
        || dsa_schema_record(&cmd, arena, &record, store->text) != DSA_OK)
    {
        dsa_arena_destroy(arena);
        ngx_http_dsa_store_again(store);
        return NGX_ERROR;
    }

    /* set before: the handler may be called at once */

    e->sent = 1;
    e->sending = 1;
    e->text = store->text;
    store->sent++;

    e->call = ngx_http_dsa_store_command(store->redis, &cmd,
                                         ngx_http_dsa_store_reply, e);
    e->sending = 0;

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
    int                          again, rc;
    dsa_err_t                    err;
    dsa_schema_result_e          result;
    ngx_http_dsa_store_t        *store;
    ngx_http_dsa_store_entry_t  *e = data;

    store = e->store;

    store->sent--;
    e->sent = 0;
    e->call = NULL;

    if (why != NULL) {
        ngx_http_dsa_store_failed(e, reply, why);
        return;
    }

    if (dsa_resp_is_error(reply, "NOSCRIPT") && !e->text) {
        store->text = 1;
        ngx_http_dsa_store_pump(store);
        return;
    }

    rc = dsa_schema_recorded(reply, &result, &again, &err);

    if (rc == DSA_AGAIN) {
        if (e->turn != NULL) {
            e->turn->why = ngx_http_dsa_store_refuses;
        }

        ngx_http_dsa_store_block(store, err.text);
        ngx_http_dsa_store_again(store);
        return;
    }

    if (rc == DSA_OK) {
        ngx_http_dsa_store_recorded(e, result);
        return;
    }

    ngx_http_dsa_store_lose(store, &e->record, err.text);
    ngx_http_dsa_store_forget(e);
}


/* The connection failed, and logged it; or the command could not be sent. */

static void
ngx_http_dsa_store_failed(ngx_http_dsa_store_entry_t *e, redisReply *reply,
    const char *why)
{
    ngx_http_dsa_store_t  *store;

    store = e->store;

    if (e->turn != NULL) {
        e->turn->why = why;

        if (reply == NULL && !e->sending) {
            e->turn->unanswered = 1;
        }
    }

    if (reply != NULL) {
        ngx_http_dsa_store_block(store, why);
    }

    if (ngx_http_dsa_redis_up(store->redis)) {
        ngx_http_dsa_store_again(store);
    }
}


static void
ngx_http_dsa_store_recorded(ngx_http_dsa_store_entry_t *e,
    dsa_schema_result_e result)
{
    ngx_http_dsa_store_t       *store;
    ngx_http_dsa_store_turn_t  *turn;

    store = e->store;
    turn = e->turn;

    if (e->text) {
        store->text = 0;
    }

    store->backoff = NGX_HTTP_DSA_STORE_BACKOFF_MIN;

    if (store->blocked) {
        store->blocked = 0;
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "dsa: Redis takes records again");
    }

    if (turn == NULL && result == DSA_SCHEMA_APPENDED) {
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "dsa: Redis appended a turn after its answer had said "
                      "that this was not confirmed");
    }

    /* the entry goes first: who is told may bring the next one */

    e->turn = NULL;

    ngx_http_dsa_store_forget(e);

    if (turn != NULL) {
        ngx_http_dsa_store_end(turn, result == DSA_SCHEMA_APPENDED
                                     ? NULL : dsa_schema_result(result));
    }
}


/* Redis is there and refuses to write, which may pass. */

static void
ngx_http_dsa_store_block(ngx_http_dsa_store_t *store, const char *text)
{
    if (!store->blocked) {
        store->blocked = 1;
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "dsa: %ui records wait: %s", store->pending, text);
    }
}


static void
ngx_http_dsa_store_again(ngx_http_dsa_store_t *store)
{
    if (!store->retry.timer_set) {
        ngx_add_timer(&store->retry, store->backoff);
        store->backoff = ngx_min(store->backoff * 2,
                                 NGX_HTTP_DSA_STORE_BACKOFF_MAX);
    }
}


/* The time of a turn is up: its answer ends without it. */

static void
ngx_http_dsa_store_late(ngx_event_t *ev)
{
    const char                  *why;
    ngx_http_dsa_store_turn_t   *turn = ev->data;
    ngx_http_dsa_store_entry_t  *e;

    e = turn->entry;

    if (turn->unanswered || e->sent) {
        why = ngx_http_dsa_store_unconfirmed;

    } else if (turn->why != NULL) {
        why = turn->why;

    } else {
        why = e->store->blocked ? ngx_http_dsa_store_refuses
                                : ngx_http_dsa_store_unreachable;
    }

    /* behind the turns that others wait for */

    e->turn = NULL;
    ngx_queue_remove(&e->queue);
    ngx_queue_insert_tail(&e->store->entries, &e->queue);

    ngx_http_dsa_store_end(turn, why);
}


/* why is NULL when the turn was appended.  Its entry has left it. */

static void
ngx_http_dsa_store_end(ngx_http_dsa_store_turn_t *turn, const char *why)
{
    ngx_connection_t             *c;
    ngx_http_request_t           *r;
    ngx_http_dsa_store_t         *store;
    ngx_http_dsa_store_waiter_t  *waiter;

    store = turn->store;
    waiter = turn->waiter;

    if (why != NULL) {
        store->refused++;
        ngx_log_error(NGX_LOG_INFO, ngx_cycle->log, 0,
                      "dsa: a turn of conversation \"%*s\" is not stored: %s",
                      turn->conversation.len, turn->conversation.data, why);
    }

    if (turn->timer.timer_set) {
        ngx_del_timer(&turn->timer);
    }

    ngx_free(turn);

    if (waiter == NULL) {
        return;
    }

    waiter->turn = NULL;

    r = waiter->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    waiter->handler(r, why);

    ngx_http_run_posted_requests(c);
}


/* Out of the queue, and the memory. */

static void
ngx_http_dsa_store_remove(ngx_http_dsa_store_entry_t *e)
{
    ngx_queue_remove(&e->queue);
    e->store->pending--;

    ngx_free(e);
}


/* Redis has it, or never will: its slot is free, and so is the window. */

static void
ngx_http_dsa_store_forget(ngx_http_dsa_store_entry_t *e)
{
    ngx_http_dsa_store_t       *store;
    ngx_http_dsa_store_turn_t  *turn;

    store = e->store;
    turn = e->turn;

    ngx_http_dsa_ledger_free(store->ledger, e->slot);
    ngx_http_dsa_store_remove(e);

    if (store->pending == 0) {
        store->blocked = 0;
    }

    ngx_http_dsa_store_pump(store);

    if (turn != NULL) {
        ngx_http_dsa_store_end(turn, "the ledger in Redis is damaged");
    }
}


/* The error log is the last place where it can stand. */

static void
ngx_http_dsa_store_lose(ngx_http_dsa_store_t *store,
    const dsa_schema_record_t *record, const char *why)
{
    ngx_str_t  model, request, tenant;

    if (store != NULL) {
        store->lost++;
    }

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
ngx_http_dsa_store_up(void *data)
{
    ngx_http_dsa_store_t  *store = data;

    ngx_http_dsa_store_pump(store);
}


/* What is in the file is sent by another worker, or when nginx runs again. */

static void
ngx_http_dsa_store_done(void *data)
{
    ngx_queue_t                 *q;
    ngx_http_dsa_store_t        *store = data;
    ngx_http_dsa_store_entry_t  *e;

    if (store->pending != 0) {
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "dsa: the worker ends and leaves %ui ledger entries in "
                      "\"%V\"", store->pending,
                      ngx_http_dsa_ledger_path(store->ledger));
    }

    while (!ngx_queue_empty(&store->entries)) {
        q = ngx_queue_head(&store->entries);
        e = ngx_queue_data(q, ngx_http_dsa_store_entry_t, queue);

        if (e->call != NULL) {
            ngx_http_dsa_redis_detach(e->call);
        }

        if (e->turn != NULL) {
            if (e->turn->waiter != NULL) {
                e->turn->waiter->turn = NULL;
            }

            if (e->turn->timer.timer_set) {
                ngx_del_timer(&e->turn->timer);
            }

            ngx_free(e->turn);
        }

        ngx_http_dsa_store_remove(e);
    }

    store->sent = 0;

    if (store->adopt.timer_set) {
        ngx_del_timer(&store->adopt);
    }

    if (store->retry.timer_set) {
        ngx_del_timer(&store->retry);
    }
}


static void
ngx_http_dsa_store_adopt(ngx_event_t *ev)
{
    ngx_connection_t      *dumb = ev->data;
    ngx_http_dsa_store_t  *store = dumb->data;

    store->lost += ngx_http_dsa_ledger_adopt(store->ledger, ev->log,
                                             ngx_http_dsa_store_adopted,
                                             store);
    ngx_http_dsa_store_pump(store);

    ngx_add_timer(ev, NGX_HTTP_DSA_STORE_ADOPT);
}


static ngx_int_t
ngx_http_dsa_store_adopted(void *data, ngx_uint_t slot)
{
    ngx_http_dsa_store_t        *store = data;
    ngx_http_dsa_store_entry_t  *e;

    e = ngx_calloc(sizeof(ngx_http_dsa_store_entry_t), ngx_cycle->log);
    if (e == NULL) {
        return NGX_ERROR;
    }

    if (ngx_http_dsa_ledger_read(store->ledger, slot, &e->copy, &e->record)
        != NGX_OK)
    {
        ngx_free(e);
        return NGX_ERROR;
    }

    e->store = store;
    e->slot = slot;
    store->pending++;

    ngx_queue_insert_tail(&store->entries, &e->queue);

    return NGX_OK;
}


static void
ngx_http_dsa_store_retry(ngx_event_t *ev)
{
    ngx_connection_t  *dumb = ev->data;

    ngx_http_dsa_store_pump(dumb->data);
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
    ngx_http_dsa_store_t       *store;
    ngx_http_dsa_store_load_t  *load;

    id = ngx_http_dsa_store_str(conversation);
    who = ngx_http_dsa_store_str(tenant);

    if (!dsa_schema_id_ok(id) || !dsa_schema_name_ok(who)) {
        handler(r, NGX_HTTP_BAD_REQUEST, NULL, 0, "it is no conversation id");
        return NGX_OK;
    }

    store = ngx_http_dsa_redis_hooks(redis)->data;

    if (store != NULL && store->blocked) {

        /* its turn could not be stored */

        handler(r, NGX_HTTP_SERVICE_UNAVAILABLE, NULL, 0,
                ngx_http_dsa_store_refuses);
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

    if (why != NULL) {
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
