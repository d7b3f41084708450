
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include <assert.h>

#include "redis_schema/cluster.h"
#include "redis_schema/resp.h"
#include "ngx_module/core/ngx_http_dsa_metrics.h"
#include "ngx_module/redis/ngx_http_dsa_redis_nodes.h"
#include "ngx_http_dsa_ledger_queue.h"


/* entries without a turn that a node was sent and has not confirmed, at most */

#define NGX_HTTP_DSA_LEDGER_WINDOW       64

/* entries that failed, and are tried again at once */

#define NGX_HTTP_DSA_LEDGER_PROBES       32

/* redirects that are followed at once */

#define NGX_HTTP_DSA_LEDGER_REDIRECTS    5

/* memory for the words of a command, without the messages */

#define NGX_HTTP_DSA_LEDGER_ARENA        (256 * 1024)

#define NGX_HTTP_DSA_LEDGER_BACKOFF_MIN  100        /* milliseconds */
#define NGX_HTTP_DSA_LEDGER_BACKOFF_MAX  2000

/* milliseconds between two searches for entries of processes that ended */

#define NGX_HTTP_DSA_LEDGER_ADOPT        3000

_Static_assert(DSA_SCHEMA_RESEND == 23 * 3600, "the text of a stale entry");
_Static_assert(DSA_SCHEMA_RESEND + 3600 <= DSA_SCHEMA_DONE_TTL,
               "the marker outlives the last attempt");


typedef struct ngx_http_dsa_ledger_queue_s  ngx_http_dsa_ledger_queue_t;


/*
 * The entries of one node of a Redis Cluster, or all of them if there is no
 * cluster.  Each node has a window and a timer of its own, so that one that
 * hangs or is down does not delay the entries of others.
 */

typedef struct {
    ngx_http_dsa_ledger_queue_t  *owner;
    ngx_queue_t                   turns;        /* entries with a turn that are
                                                   not sent */
    ngx_queue_t                   entries;      /* others that are not sent */
    ngx_queue_t                   held;         /* entries that failed, perhaps
                                                   because of their keys alone:
                                                   they wait, and the others
                                                   do not */
    ngx_queue_t                   sent;
    ngx_uint_t                    n;            /* of these, entries that were
                                                   sent without a turn: the
                                                   window */

    ngx_connection_t              dumb;         /* the data of the timer */
    ngx_event_t                   retry;
    ngx_msec_t                    backoff;

    unsigned                      eval:1;       /* it lacks the script */
    unsigned                      paused:1;     /* nothing is sent before the
                                                   retry */
} ngx_http_dsa_ledger_node_t;


struct ngx_http_dsa_ledger_queue_s {
    ngx_http_dsa_redis_t         *redis;
    ngx_http_dsa_ledger_t        *ledger;
    ngx_http_dsa_ledger_node_t    node[1 + NGX_HTTP_DSA_REDIS_NODES];
    ngx_uint_t                    nodes;        /* of these, the ones that have
                                                   had entries */
    ngx_uint_t                    n;            /* entries of all nodes */

    ngx_connection_t              dumb;         /* the data of the timer */
    ngx_event_t                   adopt;

    unsigned                      blocked:1;    /* Redis refuses to write */
};


typedef struct {
    ngx_queue_t                      queue;
    ngx_http_dsa_ledger_queue_t     *owner;
    ngx_http_dsa_ledger_node_t      *node;      /* the entry is in one of its
                                                   queues */
    ngx_http_dsa_redis_command_t    *command;   /* NULL: it is not sent */
    ngx_http_dsa_save_t             *turn;      /* NULL: none */
    ngx_uint_t                       cell;
    ngx_http_dsa_ledger_cell_t       copy;      /* the strings of entry */
    dsa_schema_entry_t               entry;
    const char                      *why;       /* the turn's last attempt
                                                   failed; NULL: there was
                                                   none */
    ngx_uint_t                       redirects; /* since it last failed */
    unsigned                         counted:1; /* in the window of its node */
    unsigned                         eval:1;    /* sent with the script */
    unsigned                         unconfirmed:1; /* an attempt had no reply,
                                                       the turn may be stored */
} ngx_http_dsa_ledger_entry_t;


static ngx_http_dsa_ledger_queue_t *ngx_http_dsa_ledger_queue_create(
    ngx_http_dsa_redis_t *redis, ngx_cycle_t *cycle);
static ngx_http_dsa_ledger_entry_t *ngx_http_dsa_ledger_entry_read(
    ngx_http_dsa_ledger_queue_t *queue, ngx_uint_t cell, const char **why);
static ngx_http_dsa_ledger_node_t *ngx_http_dsa_ledger_entry_node(
    ngx_http_dsa_ledger_entry_t *e);
static void ngx_http_dsa_ledger_entry_wait(ngx_http_dsa_ledger_entry_t *e,
    ngx_uint_t first);
static void ngx_http_dsa_ledger_node_retry_soon(
    ngx_http_dsa_ledger_node_t *node);
static void ngx_http_dsa_ledger_queue_send(
    ngx_http_dsa_ledger_queue_t *queue);
static ngx_uint_t ngx_http_dsa_ledger_node_send(
    ngx_http_dsa_ledger_node_t *node);
static ngx_http_dsa_ledger_entry_t *ngx_http_dsa_ledger_node_next(
    ngx_http_dsa_ledger_node_t *node);
static ngx_uint_t ngx_http_dsa_ledger_entry_stale(
    const ngx_http_dsa_ledger_entry_t *e);
static ngx_int_t ngx_http_dsa_ledger_entry_send(
    ngx_http_dsa_ledger_entry_t *e);
static void ngx_http_dsa_ledger_entry_sent(ngx_http_dsa_ledger_entry_t *e,
    time_t when);
static void ngx_http_dsa_ledger_entry_reply(void *data, redisReply *reply,
    const char *why);
static void ngx_http_dsa_ledger_entry_moved(ngx_http_dsa_ledger_entry_t *e);
static void ngx_http_dsa_ledger_entry_failed(ngx_http_dsa_ledger_entry_t *e,
    redisReply *reply, const char *why);
static void ngx_http_dsa_ledger_entry_confirmed(
    ngx_http_dsa_ledger_entry_t *e, dsa_schema_result_e result);
static void ngx_http_dsa_ledger_entry_late(ngx_event_t *ev);
static void ngx_http_dsa_ledger_queue_end_turn(ngx_http_dsa_save_t *turn,
    const char *why);
static void ngx_http_dsa_ledger_queue_block(
    ngx_http_dsa_ledger_queue_t *queue, const char *text);
static void ngx_http_dsa_ledger_queue_set_blocked(
    ngx_http_dsa_ledger_queue_t *queue, ngx_uint_t blocked);
static void ngx_http_dsa_ledger_node_retry_later(
    ngx_http_dsa_ledger_node_t *node);
static void ngx_http_dsa_ledger_node_retry(ngx_event_t *ev);
static void ngx_http_dsa_ledger_node_release(
    ngx_http_dsa_ledger_node_t *node, ngx_uint_t max);
static void ngx_http_dsa_ledger_entry_done(ngx_http_dsa_ledger_entry_t *e);
static void ngx_http_dsa_ledger_entry_free(ngx_http_dsa_ledger_entry_t *e);
static void ngx_http_dsa_ledger_queue_lost(const dsa_schema_entry_t *entry,
    const char *why);
static void ngx_http_dsa_ledger_queue_ready(void *data);
static void ngx_http_dsa_ledger_queue_done(void *data);
static void ngx_http_dsa_ledger_node_done(ngx_http_dsa_ledger_node_t *node);
static void ngx_http_dsa_ledger_queue_adopt(ngx_event_t *ev);
static ngx_int_t ngx_http_dsa_ledger_queue_adopted(void *data,
    ngx_uint_t cell);


static const char  ngx_http_dsa_ledger_refused[] =
    "Redis refuses to write at present";
static const char  ngx_http_dsa_ledger_unreachable[] =
    "Redis could not be reached in time";
static const char  ngx_http_dsa_ledger_unconfirmed[] =
    "Redis did not confirm it in time; read the conversation before the next "
    "turn";
static const char  ngx_http_dsa_ledger_stale[] =
    "it was sent 23 hours ago, was not confirmed, and may be in the ledger";
static const char  ngx_http_dsa_ledger_nomem[] =
    "nginx is out of memory";


ngx_int_t
ngx_http_dsa_ledger_queue_init_worker(ngx_http_dsa_redis_t *redis,
    ngx_cycle_t *cycle)
{
    ngx_http_dsa_ledger_queue_t  *queue;

    queue = ngx_http_dsa_ledger_queue_create(redis, cycle);
    if (queue == NULL) {
        return NGX_ERROR;
    }

    /*
     * Without an owner number the worker serves, and logs each entry that it
     * loses.
     */

    if (ngx_http_dsa_ledger_acquire_owner(queue->ledger, cycle->log) == NGX_OK)
    {
        ngx_http_dsa_ledger_queue_adopt(&queue->adopt);
    }

    return ngx_http_dsa_redis_init_worker(redis, cycle,
                                          ngx_http_dsa_ledger_queue_ready,
                                          ngx_http_dsa_ledger_queue_done,
                                          queue);
}


static ngx_http_dsa_ledger_queue_t *
ngx_http_dsa_ledger_queue_create(ngx_http_dsa_redis_t *redis,
    ngx_cycle_t *cycle)
{
    ngx_uint_t                    i;
    ngx_http_dsa_ledger_node_t   *node;
    ngx_http_dsa_ledger_queue_t  *queue;

    queue = ngx_pcalloc(cycle->pool, sizeof(ngx_http_dsa_ledger_queue_t));
    if (queue == NULL) {
        return NULL;
    }

    queue->redis = redis;
    queue->ledger = ngx_http_dsa_redis_ledger(redis);

    queue->dumb.fd = (ngx_socket_t) -1;
    queue->dumb.data = queue;

    queue->adopt.handler = ngx_http_dsa_ledger_queue_adopt;
    queue->adopt.data = &queue->dumb;
    queue->adopt.log = cycle->log;
    queue->adopt.cancelable = 1;

    for (i = 0; i <= NGX_HTTP_DSA_REDIS_NODES; i++) {
        node = &queue->node[i];

        node->owner = queue;
        node->backoff = NGX_HTTP_DSA_LEDGER_BACKOFF_MIN;
        ngx_queue_init(&node->turns);
        ngx_queue_init(&node->entries);
        ngx_queue_init(&node->held);
        ngx_queue_init(&node->sent);

        node->dumb.fd = (ngx_socket_t) -1;
        node->dumb.data = node;

        node->retry.handler = ngx_http_dsa_ledger_node_retry;
        node->retry.data = &node->dumb;
        node->retry.log = cycle->log;
        node->retry.cancelable = 1;
    }

    return queue;
}


ngx_int_t
ngx_http_dsa_ledger_queue_reserve(ngx_http_dsa_redis_t *redis,
    const dsa_schema_entry_t *entry, const char **why)
{
    ngx_int_t  cell;

    *why = "its names are not valid";

    if (dsa_schema_entry_ok(entry)) {
        cell = ngx_http_dsa_ledger_reserve(ngx_http_dsa_redis_ledger(redis),
                                           entry);

        if (cell >= 0) {
            return cell;
        }

        if (cell == NGX_BUSY) {
            *why = "the queue for Redis is full";

        } else if (cell == NGX_ERROR) {
            *why = "the worker has no owner number in the queue for Redis";
        }
    }

    return NGX_DECLINED;
}


ngx_int_t
ngx_http_dsa_ledger_queue_add(ngx_http_dsa_redis_t *redis, ngx_uint_t cell,
    const dsa_schema_entry_t *entry, ngx_http_dsa_save_t *turn,
    const char **why)
{
    ngx_http_dsa_ledger_t        *ledger;
    ngx_http_dsa_ledger_entry_t  *e;
    ngx_http_dsa_ledger_queue_t  *queue;

    ledger = ngx_http_dsa_redis_ledger(redis);
    queue = ngx_http_dsa_redis_data(redis);

    ngx_http_dsa_ledger_update(ledger, cell, entry);
    ngx_http_dsa_ledger_ready(ledger, cell);

    if (queue == NULL) {

        /* the worker exits, and another one adopts the cell */

        *why = "this process has no connection to Redis";
        return NGX_DECLINED;
    }

    e = ngx_http_dsa_ledger_entry_read(queue, cell, why);

    if (e == NULL) {
        ngx_http_dsa_ledger_lost(ledger, cell);
        ngx_http_dsa_ledger_queue_lost(entry, *why);
        return NGX_DECLINED;
    }

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "dsa ledger entry %ui queued%s: %ui entries",
                   e->cell, turn != NULL ? " with a turn" : "", queue->n);

    if (turn != NULL) {
        e->turn = turn;

        turn->data = e;
        turn->timer.handler = ngx_http_dsa_ledger_entry_late;

        /* the timer is not cancelable: a worker that shuts down waits for it */

        ngx_add_timer(&turn->timer, ngx_http_dsa_redis_timeout(redis));

        ngx_http_dsa_ledger_node_retry_soon(e->node);
    }

    ngx_http_dsa_ledger_entry_wait(e, 0);
    ngx_http_dsa_ledger_queue_send(queue);

    return NGX_OK;
}


static ngx_http_dsa_ledger_entry_t *
ngx_http_dsa_ledger_entry_read(ngx_http_dsa_ledger_queue_t *queue,
    ngx_uint_t cell, const char **why)
{
    ngx_http_dsa_ledger_entry_t  *e;

    e = ngx_calloc(sizeof(ngx_http_dsa_ledger_entry_t), ngx_cycle->log);
    if (e == NULL) {
        *why = ngx_http_dsa_ledger_nomem;
        return NULL;
    }

    if (ngx_http_dsa_ledger_read(queue->ledger, cell, &e->copy, &e->entry)
        != NGX_OK)
    {
        *why = "its cell in the queue is damaged";
        ngx_free(e);
        return NULL;
    }

    ngx_queue_init(&e->queue);

    e->owner = queue;
    e->node = ngx_http_dsa_ledger_entry_node(e);
    e->cell = cell;
    e->unconfirmed = (e->copy.sent != 0);
    queue->n++;

    return e;
}


/* The node that has the keys of an entry, as far as it is known. */

static ngx_http_dsa_ledger_node_t *
ngx_http_dsa_ledger_entry_node(ngx_http_dsa_ledger_entry_t *e)
{
    ngx_uint_t                    i;
    ngx_http_dsa_ledger_queue_t  *queue;

    queue = e->owner;

    i = ngx_http_dsa_redis_node(queue->redis, e->entry.tenant);

    queue->nodes = ngx_max(queue->nodes, i + 1);

    return &queue->node[i];
}


/* Puts an entry into the queue of those that its node is sent next. */

static void
ngx_http_dsa_ledger_entry_wait(ngx_http_dsa_ledger_entry_t *e,
    ngx_uint_t first)
{
    ngx_queue_t  *to;

    to = e->turn != NULL ? &e->node->turns : &e->node->entries;

    ngx_queue_remove(&e->queue);

    if (first) {
        ngx_queue_insert_head(to, &e->queue);

    } else {
        ngx_queue_insert_tail(to, &e->queue);
    }
}


/* An answer waits: shortens the wait for the next attempt. */

static void
ngx_http_dsa_ledger_node_retry_soon(ngx_http_dsa_ledger_node_t *node)
{
    ngx_http_dsa_redis_retry_soon(node->owner->redis);

    node->backoff = NGX_HTTP_DSA_LEDGER_BACKOFF_MIN;

    if (node->retry.timer_set
        && (ngx_msec_int_t) (node->retry.timer.key - ngx_current_msec)
           > 2 * NGX_HTTP_DSA_LEDGER_BACKOFF_MIN)
    {
        ngx_del_timer(&node->retry);
        ngx_http_dsa_ledger_node_retry_later(node);
    }
}


/* Sends what can be sent now. */

static void
ngx_http_dsa_ledger_queue_send(ngx_http_dsa_ledger_queue_t *queue)
{
    ngx_uint_t  i, moved;

    do {
        moved = 0;

        if (!ngx_http_dsa_redis_up(queue->redis)) {
            return;
        }

        for (i = 0; i < queue->nodes; i++) {
            moved |= ngx_http_dsa_ledger_node_send(&queue->node[i]);
        }

    } while (moved);
}


/* Returns 1 if another node has got an entry of this one. */

static ngx_uint_t
ngx_http_dsa_ledger_node_send(ngx_http_dsa_ledger_node_t *node)
{
    ngx_uint_t                    moved;
    ngx_http_dsa_ledger_node_t   *to;
    ngx_http_dsa_ledger_entry_t  *e;
    ngx_http_dsa_ledger_queue_t  *queue;

    moved = 0;
    queue = node->owner;

    while (!node->paused) {
        e = ngx_http_dsa_ledger_node_next(node);

        if (e == NULL) {
            break;
        }

        if (ngx_http_dsa_ledger_entry_stale(e)) {
            ngx_http_dsa_ledger_queue_lost(&e->entry,
                                           ngx_http_dsa_ledger_stale);
            ngx_http_dsa_ledger_lost(queue->ledger, e->cell);
            ngx_http_dsa_ledger_entry_free(e);
            continue;
        }

        /* a redirect of another entry has named the node meanwhile */

        to = ngx_http_dsa_ledger_entry_node(e);

        if (to != node && to != &queue->node[0]) {
            e->node = to;
            ngx_http_dsa_ledger_entry_wait(e, 0);
            moved = 1;
            continue;
        }

        if (ngx_http_dsa_ledger_entry_send(e) != NGX_OK) {
            node->paused = 1;
            ngx_http_dsa_ledger_node_retry_later(node);
        }
    }

    return moved;
}


/* NULL: there is none, or the window is full. */

static ngx_http_dsa_ledger_entry_t *
ngx_http_dsa_ledger_node_next(ngx_http_dsa_ledger_node_t *node)
{
    ngx_queue_t  *q;

    if (!ngx_queue_empty(&node->turns)) {
        q = ngx_queue_head(&node->turns);

    } else if (!ngx_queue_empty(&node->entries)
               && node->n < NGX_HTTP_DSA_LEDGER_WINDOW)
    {
        q = ngx_queue_head(&node->entries);

    } else {
        return NULL;
    }

    return ngx_queue_data(q, ngx_http_dsa_ledger_entry_t, queue);
}


/*
 * Redis may have executed an earlier attempt, and the marker of the entry may
 * have expired since then: one more attempt could count the entry again.
 */

static ngx_uint_t
ngx_http_dsa_ledger_entry_stale(const ngx_http_dsa_ledger_entry_t *e)
{
    return e->turn == NULL && e->copy.sent != 0
           && ngx_time() - (time_t) e->copy.sent > DSA_SCHEMA_RESEND;
}


static ngx_int_t
ngx_http_dsa_ledger_entry_send(ngx_http_dsa_ledger_entry_t *e)
{
    size_t                        size;
    const char                   *why;
    dsa_arena_t                  *arena;
    dsa_schema_entry_t            entry;
    ngx_http_dsa_save_t          *turn;
    dsa_schema_command_t          cmd;
    ngx_http_dsa_ledger_queue_t  *queue;

    queue = e->owner;
    turn = e->turn;
    entry = e->entry;
    size = NGX_HTTP_DSA_LEDGER_ARENA;

    if (turn != NULL) {
        entry.conversation = turn->conversation;
        entry.version = turn->version;
        entry.storage = ngx_http_dsa_redis_storage(queue->redis);
        entry.messages = turn->messages;
        entry.n_messages = turn->n_messages;
        entry.max_messages = DSA_SCHEMA_MAX_MESSAGES;
        entry.max_bytes = DSA_SCHEMA_MAX_BYTES;

        size += turn->n_messages * sizeof(dsa_str_t);
    }

    arena = dsa_arena_create(size);
    if (arena == NULL) {
        return NGX_ERROR;
    }

    e->eval = e->node->eval;
    why = ngx_http_dsa_ledger_nomem;

    if (e->copy.sent == 0) {
        ngx_http_dsa_ledger_entry_sent(e, ngx_time());
    }

    if (dsa_schema_record(&cmd, arena, &entry, e->eval) == DSA_OK) {
        e->command = ngx_http_dsa_redis_command(queue->redis, &cmd,
                                                ngx_http_dsa_ledger_entry_reply,
                                                e, &why);
    }

    dsa_arena_destroy(arena);

    if (e->command == NULL) {
        e->why = why;

        if (!e->unconfirmed) {
            ngx_http_dsa_ledger_entry_sent(e, 0);
        }

        return NGX_ERROR;
    }

    ngx_queue_remove(&e->queue);
    ngx_queue_insert_tail(&e->node->sent, &e->queue);

    if (turn == NULL) {
        e->counted = 1;
        e->node->n++;

        /* if nodes do not agree, the redirects are followed, and logged */

        if (e->redirects < NGX_HTTP_DSA_LEDGER_REDIRECTS) {
            ngx_http_dsa_redis_return_moved(e->command);
        }
    }

    ngx_log_debug4(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "dsa ledger entry %ui sent%s: node %ui, %ui sent",
                   e->cell, turn != NULL ? " with a turn" : "",
                   (ngx_uint_t) (e->node - queue->node), e->node->n);

    return NGX_OK;
}


/* when: the time of the first attempt that Redis may have executed; 0: none. */

static void
ngx_http_dsa_ledger_entry_sent(ngx_http_dsa_ledger_entry_t *e, time_t when)
{
    e->copy.sent = when;
    ngx_http_dsa_ledger_sent(e->owner->ledger, e->cell, when);
}


static void
ngx_http_dsa_ledger_entry_reply(void *data, redisReply *reply, const char *why)
{
    int                           again, rc;
    dsa_err_t                     err;
    dsa_schema_result_e           result;
    ngx_http_dsa_ledger_node_t   *node;
    ngx_http_dsa_ledger_entry_t  *e = data;
    ngx_http_dsa_ledger_queue_t  *queue;

    node = e->node;
    queue = e->owner;

    if (e->counted) {
        assert(node->n != 0);

        e->counted = 0;
        node->n--;
    }

    e->command = NULL;

    if (reply == NULL) {
        e->unconfirmed = 1;

    } else if (reply->type == REDIS_REPLY_ERROR && !e->unconfirmed) {

        /* Redis has executed nothing */

        ngx_http_dsa_ledger_entry_sent(e, 0);
    }

    if (why != NULL) {
        ngx_http_dsa_ledger_entry_failed(e, reply, why);
        return;
    }

    if (dsa_cluster_reply(reply) == DSA_CLUSTER_MOVED) {
        ngx_http_dsa_ledger_entry_moved(e);
        return;
    }

    if (dsa_resp_is_error(reply, "NOSCRIPT") && !e->eval) {
        ngx_log_debug1(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                       "dsa ledger entry %ui needs the script", e->cell);

        node->eval = 1;
        ngx_http_dsa_ledger_entry_wait(e, 1);
        ngx_http_dsa_ledger_queue_send(queue);
        return;
    }

    rc = dsa_schema_recorded(reply, &result, &again, &err);

    if (rc == DSA_OK) {
        ngx_http_dsa_ledger_entry_confirmed(e, result);
        return;
    }

    if (rc == DSA_AGAIN) {
        e->why = ngx_http_dsa_ledger_refused;
        ngx_http_dsa_ledger_queue_block(queue, err.text);
        ngx_http_dsa_ledger_entry_wait(e, 1);
        node->paused = 1;
        ngx_http_dsa_ledger_node_retry_later(node);
        return;
    }

    ngx_http_dsa_ledger_queue_lost(&e->entry, err.text);
    ngx_http_dsa_ledger_lost(queue->ledger, e->cell);
    ngx_http_dsa_ledger_entry_done(e);
}


/* Another node has the keys. */

static void
ngx_http_dsa_ledger_entry_moved(ngx_http_dsa_ledger_entry_t *e)
{
    ngx_http_dsa_ledger_queue_t  *queue;

    queue = e->owner;

    e->node = ngx_http_dsa_ledger_entry_node(e);
    e->redirects++;

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "dsa ledger entry %ui moved: node %ui", e->cell,
                   (ngx_uint_t) (e->node - queue->node));

    ngx_http_dsa_ledger_entry_wait(e, 1);
    ngx_http_dsa_ledger_queue_send(queue);
}


/*
 * The connection failed, or a cluster did not execute the command, which is
 * logged.
 */

static void
ngx_http_dsa_ledger_entry_failed(ngx_http_dsa_ledger_entry_t *e,
    redisReply *reply, const char *why)
{
    dsa_cluster_reply_e           kind;
    ngx_http_dsa_ledger_node_t   *node;
    ngx_http_dsa_ledger_queue_t  *queue;

    queue = e->owner;

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "dsa ledger entry %ui not confirmed: %s", e->cell, why);

    e->why = why;

    kind = reply != NULL ? dsa_cluster_reply(reply) : DSA_CLUSTER_MOVING;

    if (kind == DSA_CLUSTER_OTHER || kind == DSA_CLUSTER_DOWN) {
        ngx_http_dsa_ledger_queue_block(queue, why);
    }

    node = ngx_http_dsa_ledger_entry_node(e);

    if (kind == DSA_CLUSTER_MOVED
        && !ngx_http_dsa_redis_node_usable(queue->redis, node - queue->node))
    {
        /*
         * The node of the keys cannot be reached.  Its other entries wait as
         * well, because each would be sent to a node that names it again.
         */

        e->node = node;
        node->paused = 1;
    }

    e->redirects = 0;

    ngx_queue_remove(&e->queue);

    if (e->turn != NULL) {
        ngx_queue_insert_head(&e->node->held, &e->queue);

    } else {
        ngx_queue_insert_tail(&e->node->held, &e->queue);
    }

    ngx_http_dsa_ledger_node_retry_later(e->node);
}


static void
ngx_http_dsa_ledger_entry_confirmed(ngx_http_dsa_ledger_entry_t *e,
    dsa_schema_result_e result)
{
    ngx_http_dsa_save_t          *turn;
    ngx_http_dsa_ledger_queue_t  *queue;

    queue = e->owner;
    turn = e->turn;

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "dsa ledger entry %ui confirmed: %s",
                   e->cell, dsa_schema_result(result));

    if (e->eval) {
        e->node->eval = 0;
    }

    e->node->backoff = NGX_HTTP_DSA_LEDGER_BACKOFF_MIN;

    if (queue->blocked) {
        ngx_http_dsa_ledger_queue_set_blocked(queue, 0);
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "dsa: Redis accepts ledger entries again");
    }

    if (turn == NULL && result == DSA_SCHEMA_APPENDED) {
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "dsa: Redis stored a turn after its answer had reported "
                      "that it was not confirmed");
    }

    /* the end of the turn may add an entry, so this one is removed before */

    e->turn = NULL;

    ngx_http_dsa_ledger_confirmed(queue->ledger, e->cell);
    ngx_http_dsa_ledger_entry_done(e);

    if (turn != NULL) {
        ngx_http_dsa_ledger_queue_end_turn(turn,
                                           result == DSA_SCHEMA_APPENDED
                                           ? NULL
                                           : dsa_schema_result(result));
    }
}


/* The time of a turn is over: the answer ends without it. */

static void
ngx_http_dsa_ledger_entry_late(ngx_event_t *ev)
{
    const char                   *why;
    ngx_http_dsa_save_t          *turn = ev->data;
    ngx_http_dsa_ledger_entry_t  *e = turn->data;

    if (e->unconfirmed || e->command != NULL) {
        why = ngx_http_dsa_ledger_unconfirmed;

    } else if (e->why != NULL) {
        why = e->why;

    } else {
        why = e->owner->blocked ? ngx_http_dsa_ledger_refused
                                : ngx_http_dsa_ledger_unreachable;
    }

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "dsa ledger entry %ui: turn withdrawn: %s", e->cell, why);

    /* the entry goes on, behind those whose turn an answer waits for */

    e->turn = NULL;

    if (e->command == NULL) {
        ngx_http_dsa_ledger_entry_wait(e, 0);
    }

    ngx_http_dsa_ledger_queue_end_turn(turn, why);
}


/* why: NULL if the turn is stored.  No entry has the turn any more. */

static void
ngx_http_dsa_ledger_queue_end_turn(ngx_http_dsa_save_t *turn, const char *why)
{
    if (why != NULL) {
        ngx_http_dsa_metrics_add(redis_refused, 1);

        ngx_log_error(NGX_LOG_INFO, ngx_cycle->log, 0,
                      "dsa: a turn of conversation \"%*s\" is not stored: %s",
                      turn->conversation.len, turn->conversation.data, why);
    }

    ngx_http_dsa_save_end(turn, why);
}


/* Redis is reachable and refuses to write, which may be temporary. */

static void
ngx_http_dsa_ledger_queue_block(ngx_http_dsa_ledger_queue_t *queue,
    const char *text)
{
    if (!queue->blocked) {
        ngx_http_dsa_ledger_queue_set_blocked(queue, 1);
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "dsa: %ui ledger entries are waiting for Redis: %s",
                      queue->n, text);
    }
}


static void
ngx_http_dsa_ledger_queue_set_blocked(ngx_http_dsa_ledger_queue_t *queue,
    ngx_uint_t blocked)
{
    queue->blocked = blocked;
    ngx_http_dsa_metrics_set(redis_refuses, blocked);
}


const char *
ngx_http_dsa_ledger_queue_blocked(ngx_http_dsa_redis_t *redis)
{
    ngx_http_dsa_ledger_queue_t  *queue;

    queue = ngx_http_dsa_redis_data(redis);

    return queue != NULL && queue->blocked ? ngx_http_dsa_ledger_refused
                                           : NULL;
}


static void
ngx_http_dsa_ledger_node_retry_later(ngx_http_dsa_ledger_node_t *node)
{
    if (!node->retry.timer_set) {
        ngx_add_timer(&node->retry, node->backoff);
        node->backoff = ngx_min(node->backoff * 2,
                                NGX_HTTP_DSA_LEDGER_BACKOFF_MAX);
    }
}


static void
ngx_http_dsa_ledger_node_retry(ngx_event_t *ev)
{
    ngx_connection_t             *dumb = ev->data;
    ngx_http_dsa_ledger_node_t   *node = dumb->data;
    ngx_http_dsa_ledger_queue_t  *queue;

    queue = node->owner;
    node->paused = 0;

    if (!ngx_http_dsa_redis_up(queue->redis)) {

        /* the entries wait until it is */

        return;
    }

    ngx_http_dsa_ledger_node_release(node, NGX_HTTP_DSA_LEDGER_PROBES);
    ngx_http_dsa_ledger_queue_send(queue);

    if (!ngx_queue_empty(&node->held)) {
        ngx_http_dsa_ledger_node_retry_later(node);
    }
}


/* At most so many entries that were held may be sent again. */

static void
ngx_http_dsa_ledger_node_release(ngx_http_dsa_ledger_node_t *node,
    ngx_uint_t max)
{
    ngx_queue_t                  *q;
    ngx_http_dsa_ledger_entry_t  *e;

    for ( /* void */ ; max != 0 && !ngx_queue_empty(&node->held); max--) {
        q = ngx_queue_head(&node->held);
        e = ngx_queue_data(q, ngx_http_dsa_ledger_entry_t, queue);

        ngx_http_dsa_ledger_entry_wait(e, 0);
    }
}


/* The cell of the entry is free, and so is its place in the window. */

static void
ngx_http_dsa_ledger_entry_done(ngx_http_dsa_ledger_entry_t *e)
{
    ngx_http_dsa_save_t          *turn;
    ngx_http_dsa_ledger_queue_t  *queue;

    queue = e->owner;
    turn = e->turn;

    ngx_http_dsa_ledger_entry_free(e);

    if (queue->n == 0) {
        ngx_http_dsa_ledger_queue_set_blocked(queue, 0);
    }

    ngx_http_dsa_ledger_queue_send(queue);

    if (turn != NULL) {
        ngx_http_dsa_ledger_queue_end_turn(turn,
                                           "the ledger in Redis is damaged");
    }
}


/* The memory of an entry.  Its cell is not freed. */

static void
ngx_http_dsa_ledger_entry_free(ngx_http_dsa_ledger_entry_t *e)
{
    assert(e->owner->n != 0);

    ngx_queue_remove(&e->queue);
    e->owner->n--;

    ngx_free(e);
}


/* The error log is the last place where the figures are kept. */

static void
ngx_http_dsa_ledger_queue_lost(const dsa_schema_entry_t *entry,
    const char *why)
{
    u_char      *p, tiers[DSA_TIERS * 64];
    ngx_uint_t   i;

    p = tiers;

    for (i = DSA_TIER_HOST; i < DSA_TIERS; i++) {
        p = ngx_slprintf(p, tiers + sizeof(tiers), ", cached %s %uL",
                         dsa_tier_names[i].name, entry->tier_tokens[i]);
    }

    ngx_http_dsa_metrics_add(redis_lost, 1);

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "dsa: a ledger entry is lost: %s; request \"%*s\", "
                  "tenant \"%*s\", model \"%*s\", time %T, prompt %uL, "
                  "cached %uL%*s, completion %uL, reasoning %uL, "
                  "key \"%*s\", cost miss %L, hit %L, output %L",
                  why, entry->request.len, entry->request.data,
                  entry->tenant.len, entry->tenant.data,
                  entry->model.len, entry->model.data,
                  (time_t) entry->time, entry->prompt_tokens,
                  entry->cached_tokens, (size_t) (p - tiers), tiers,
                  entry->completion_tokens, entry->reasoning_tokens,
                  entry->key.len, entry->key.data,
                  entry->cost_miss, entry->cost_hit, entry->cost_output);
}


static void
ngx_http_dsa_ledger_queue_ready(void *data)
{
    ngx_uint_t                    i;
    ngx_http_dsa_ledger_queue_t  *queue = data;

    for (i = 0; i < queue->nodes; i++) {
        ngx_http_dsa_ledger_node_release(&queue->node[i], queue->n);
    }

    ngx_http_dsa_ledger_queue_send(queue);
}


/*
 * The worker exits.  The entries in the file are sent by another worker, or
 * when nginx runs again.
 */

static void
ngx_http_dsa_ledger_queue_done(void *data)
{
    ngx_uint_t                    i;
    ngx_http_dsa_ledger_queue_t  *queue = data;

    if (queue->n != 0) {
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "dsa: the worker exits and leaves %ui ledger entries in "
                      "\"%V\"", queue->n,
                      ngx_http_dsa_ledger_path(queue->ledger));
    }

    for (i = 0; i < queue->nodes; i++) {
        ngx_http_dsa_ledger_node_done(&queue->node[i]);
    }

    if (queue->adopt.timer_set) {
        ngx_del_timer(&queue->adopt);
    }
}


static void
ngx_http_dsa_ledger_node_done(ngx_http_dsa_ledger_node_t *node)
{
    ngx_uint_t                    i;
    ngx_queue_t                  *q;
    ngx_http_dsa_ledger_entry_t  *e;

    ngx_queue_t  *queues[] = {
        &node->turns, &node->entries, &node->held, &node->sent
    };

    for (i = 0; i < sizeof(queues) / sizeof(queues[0]); i++) {

        while (!ngx_queue_empty(queues[i])) {
            q = ngx_queue_head(queues[i]);
            e = ngx_queue_data(q, ngx_http_dsa_ledger_entry_t, queue);

            if (e->command != NULL) {
                ngx_http_dsa_redis_detach(e->command);
            }

            if (e->turn != NULL) {
                ngx_http_dsa_save_free(e->turn);
            }

            ngx_http_dsa_ledger_entry_free(e);
        }
    }

    if (node->retry.timer_set) {
        ngx_del_timer(&node->retry);
    }
}


static void
ngx_http_dsa_ledger_queue_adopt(ngx_event_t *ev)
{
    ngx_uint_t                    damaged;
    ngx_connection_t             *dumb = ev->data;
    ngx_http_dsa_ledger_queue_t  *queue = dumb->data;

    damaged = ngx_http_dsa_ledger_adopt(queue->ledger, ev->log,
                                        ngx_http_dsa_ledger_queue_adopted,
                                        queue);

    ngx_http_dsa_metrics_add(redis_lost, damaged);

    ngx_http_dsa_ledger_queue_send(queue);

    ngx_add_timer(ev, NGX_HTTP_DSA_LEDGER_ADOPT);
}


static ngx_int_t
ngx_http_dsa_ledger_queue_adopted(void *data, ngx_uint_t cell)
{
    const char                   *why;
    ngx_http_dsa_ledger_entry_t  *e;
    ngx_http_dsa_ledger_queue_t  *queue = data;

    e = ngx_http_dsa_ledger_entry_read(queue, cell, &why);
    if (e == NULL) {
        return NGX_ERROR;
    }

    ngx_http_dsa_ledger_entry_wait(e, 0);

    return NGX_OK;
}
