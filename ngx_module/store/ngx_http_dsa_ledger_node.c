
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
#include "ngx_http_dsa_ledger_node.h"


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

_Static_assert(DSA_SCHEMA_RESEND == 23 * 3600, "the text of a stale entry");


static ngx_http_dsa_ledger_node_t *ngx_http_dsa_ledger_node_find(
    ngx_http_dsa_ledger_nodes_t *nodes, dsa_str_t tenant);
static void ngx_http_dsa_ledger_node_retry_soon(
    ngx_http_dsa_ledger_node_t *node);
static ngx_uint_t ngx_http_dsa_ledger_node_send(
    ngx_http_dsa_ledger_node_t *node);
static ngx_http_dsa_ledger_entry_t *ngx_http_dsa_ledger_node_next(
    ngx_http_dsa_ledger_node_t *node);
static ngx_int_t ngx_http_dsa_ledger_entry_send(
    ngx_http_dsa_ledger_entry_t *e);
static void ngx_http_dsa_ledger_entry_reply(void *data, redisReply *reply,
    const char *why);
static void ngx_http_dsa_ledger_entry_moved(ngx_http_dsa_ledger_entry_t *e);
static void ngx_http_dsa_ledger_entry_failed(ngx_http_dsa_ledger_entry_t *e,
    redisReply *reply, const char *why);
static void ngx_http_dsa_ledger_entry_confirmed(
    ngx_http_dsa_ledger_entry_t *e, dsa_schema_result_e result);
static void ngx_http_dsa_ledger_entry_done(ngx_http_dsa_ledger_entry_t *e);
static void ngx_http_dsa_ledger_node_block(ngx_http_dsa_ledger_node_t *node,
    const char *text);
static void ngx_http_dsa_ledger_node_set_blocked(
    ngx_http_dsa_ledger_node_t *node, ngx_uint_t blocked);
static ngx_uint_t ngx_http_dsa_ledger_node_empty(
    const ngx_http_dsa_ledger_node_t *node);
static void ngx_http_dsa_ledger_node_retry_later(
    ngx_http_dsa_ledger_node_t *node);
static void ngx_http_dsa_ledger_node_retry(ngx_event_t *ev);
static void ngx_http_dsa_ledger_node_release(ngx_http_dsa_ledger_node_t *node,
    ngx_uint_t max);
static void ngx_http_dsa_ledger_node_done(ngx_http_dsa_ledger_node_t *node);


static const char  ngx_http_dsa_ledger_stale[] =
    "it was sent 23 hours ago, was not confirmed, and may be in the ledger";
static const char  ngx_http_dsa_ledger_refuses[] =
    "Redis refuses to write at present";


void
ngx_http_dsa_ledger_nodes_init(ngx_http_dsa_ledger_nodes_t *nodes,
    ngx_http_dsa_redis_t *redis, ngx_log_t *log)
{
    ngx_uint_t                   i;
    ngx_http_dsa_ledger_node_t  *node;

    nodes->redis = redis;
    nodes->entries.ledger = ngx_http_dsa_redis_ledger(redis);

    for (i = 0; i <= NGX_HTTP_DSA_REDIS_NODES; i++) {
        node = &nodes->node[i];

        node->owner = nodes;
        node->backoff = NGX_HTTP_DSA_LEDGER_BACKOFF_MIN;
        ngx_queue_init(&node->turns);
        ngx_queue_init(&node->entries);
        ngx_queue_init(&node->held);
        ngx_queue_init(&node->sent);

        node->dumb.fd = (ngx_socket_t) -1;
        node->dumb.data = node;

        node->retry.handler = ngx_http_dsa_ledger_node_retry;
        node->retry.data = &node->dumb;
        node->retry.log = log;
        node->retry.cancelable = 1;
    }
}


void
ngx_http_dsa_ledger_nodes_add(ngx_http_dsa_ledger_nodes_t *nodes,
    ngx_http_dsa_ledger_entry_t *e)
{
    e->node = ngx_http_dsa_ledger_node_find(nodes, e->entry.tenant);

    if (e->turn != NULL) {
        ngx_http_dsa_ledger_node_retry_soon(e->node);
    }

    ngx_http_dsa_ledger_node_wait(e, 0);
}


/* The node that has the keys of a tenant, as far as it is known. */

static ngx_http_dsa_ledger_node_t *
ngx_http_dsa_ledger_node_find(ngx_http_dsa_ledger_nodes_t *nodes,
    dsa_str_t tenant)
{
    ngx_uint_t  i;

    i = ngx_http_dsa_redis_node(nodes->redis, tenant);

    nodes->n = ngx_max(nodes->n, i + 1);

    return &nodes->node[i];
}


void
ngx_http_dsa_ledger_node_wait(ngx_http_dsa_ledger_entry_t *e,
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


void
ngx_http_dsa_ledger_nodes_send(ngx_http_dsa_ledger_nodes_t *nodes)
{
    ngx_uint_t                   i, moved;
    ngx_http_dsa_ledger_node_t  *node;

    do {
        moved = 0;

        for (i = 0; i < nodes->n && ngx_http_dsa_redis_up(nodes->redis); i++) {
            moved |= ngx_http_dsa_ledger_node_send(&nodes->node[i]);
        }

    } while (moved);

    /* whether a node still refuses to write is seen by its entries only */

    for (i = 0; i < nodes->n; i++) {
        node = &nodes->node[i];

        if (ngx_http_dsa_ledger_node_empty(node)) {
            ngx_http_dsa_ledger_node_set_blocked(node, 0);
        }
    }
}


/* Returns 1 if another node has got an entry of this one. */

static ngx_uint_t
ngx_http_dsa_ledger_node_send(ngx_http_dsa_ledger_node_t *node)
{
    ngx_uint_t                    moved;
    ngx_http_dsa_ledger_node_t   *to;
    ngx_http_dsa_ledger_entry_t  *e;
    ngx_http_dsa_ledger_nodes_t  *nodes;

    moved = 0;
    nodes = node->owner;

    while (!node->paused) {
        e = ngx_http_dsa_ledger_node_next(node);

        if (e == NULL) {
            break;
        }

        if (ngx_http_dsa_ledger_entry_stale(e)) {
            ngx_http_dsa_ledger_entry_lost(&e->entry,
                                           ngx_http_dsa_ledger_stale);
            ngx_http_dsa_ledger_lost(e->owner->ledger, e->cell);
            ngx_http_dsa_ledger_entry_free(e);
            continue;
        }

        /* a redirect of another entry has named the node meanwhile */

        to = ngx_http_dsa_ledger_node_find(nodes, e->entry.tenant);

        if (to != node && to != &nodes->node[0]) {
            e->node = to;
            ngx_http_dsa_ledger_node_wait(e, 0);
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


static ngx_int_t
ngx_http_dsa_ledger_entry_send(ngx_http_dsa_ledger_entry_t *e)
{
    size_t                        size;
    const char                   *why;
    dsa_arena_t                  *arena;
    dsa_schema_entry_t            entry;
    ngx_http_dsa_save_t          *turn;
    dsa_schema_command_t          cmd;
    ngx_http_dsa_ledger_nodes_t  *nodes;

    nodes = e->node->owner;
    turn = e->turn;
    entry = e->entry;
    size = NGX_HTTP_DSA_LEDGER_ARENA;

    if (turn != NULL) {
        entry.conversation = turn->conversation;
        entry.version = turn->version;
        entry.storage = ngx_http_dsa_redis_storage(nodes->redis);
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
    why = "nginx is out of memory";

    if (e->copy.sent == 0) {
        ngx_http_dsa_ledger_entry_sent(e, ngx_time());
    }

    if (dsa_schema_record(&cmd, arena, &entry, e->eval) == DSA_OK) {
        e->command = ngx_http_dsa_redis_command(nodes->redis, &cmd,
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
                   (ngx_uint_t) (e->node - nodes->node), e->node->n);

    return NGX_OK;
}


static void
ngx_http_dsa_ledger_entry_reply(void *data, redisReply *reply, const char *why)
{
    int                           again, rc;
    dsa_err_t                     err;
    dsa_schema_result_e           result;
    ngx_http_dsa_ledger_node_t   *node;
    ngx_http_dsa_ledger_entry_t  *e = data;
    ngx_http_dsa_ledger_nodes_t  *nodes;

    node = e->node;
    nodes = e->node->owner;

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
        ngx_http_dsa_ledger_node_wait(e, 1);
        ngx_http_dsa_ledger_nodes_send(nodes);
        return;
    }

    rc = dsa_schema_recorded(reply, &result, &again, &err);

    if (rc == DSA_OK) {
        ngx_http_dsa_ledger_entry_confirmed(e, result);
        return;
    }

    if (rc == DSA_AGAIN) {

        /* a redirect that was followed has named the node meanwhile */

        node = ngx_http_dsa_ledger_node_find(nodes, e->entry.tenant);

        e->node = node;
        e->why = ngx_http_dsa_ledger_refuses;
        ngx_http_dsa_ledger_node_block(node, err.text);
        ngx_http_dsa_ledger_node_wait(e, 1);
        node->paused = 1;
        ngx_http_dsa_ledger_node_retry_later(node);
        return;
    }

    ngx_http_dsa_ledger_entry_lost(&e->entry, err.text);
    ngx_http_dsa_ledger_lost(e->owner->ledger, e->cell);
    ngx_http_dsa_ledger_entry_done(e);
}


/* Another node has the keys. */

static void
ngx_http_dsa_ledger_entry_moved(ngx_http_dsa_ledger_entry_t *e)
{
    ngx_http_dsa_ledger_nodes_t  *nodes;

    nodes = e->node->owner;

    e->node = ngx_http_dsa_ledger_node_find(nodes, e->entry.tenant);
    e->redirects++;

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "dsa ledger entry %ui moved: node %ui", e->cell,
                   (ngx_uint_t) (e->node - nodes->node));

    ngx_http_dsa_ledger_node_wait(e, 1);
    ngx_http_dsa_ledger_nodes_send(nodes);
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
    ngx_http_dsa_ledger_nodes_t  *nodes;

    nodes = e->node->owner;

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "dsa ledger entry %ui not confirmed: %s", e->cell, why);

    e->why = why;

    kind = reply != NULL ? dsa_cluster_reply(reply) : DSA_CLUSTER_MOVING;

    node = ngx_http_dsa_ledger_node_find(nodes, e->entry.tenant);

    if (kind == DSA_CLUSTER_OTHER || kind == DSA_CLUSTER_DOWN) {
        e->node = node;
        ngx_http_dsa_ledger_node_block(node, why);
    }

    if (kind == DSA_CLUSTER_MOVED
        && !ngx_http_dsa_redis_node_usable(nodes->redis, node - nodes->node))
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
    ngx_http_dsa_save_t         *turn;
    ngx_http_dsa_ledger_node_t  *node;

    node = ngx_http_dsa_ledger_node_find(e->node->owner, e->entry.tenant);
    turn = e->turn;

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "dsa ledger entry %ui confirmed: %s",
                   e->cell, dsa_schema_result(result));

    if (e->eval) {
        e->node->eval = 0;
    }

    e->node->backoff = NGX_HTTP_DSA_LEDGER_BACKOFF_MIN;

    if (node->blocked) {
        ngx_http_dsa_ledger_node_set_blocked(node, 0);
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

    ngx_http_dsa_ledger_confirmed(e->owner->ledger, e->cell);
    ngx_http_dsa_ledger_entry_done(e);

    if (turn != NULL) {
        ngx_http_dsa_ledger_turn_end(turn, result == DSA_SCHEMA_APPENDED
                                           ? NULL
                                           : dsa_schema_result(result));
    }
}


/* The cell of the entry is free, and so is its place in the window. */

static void
ngx_http_dsa_ledger_entry_done(ngx_http_dsa_ledger_entry_t *e)
{
    ngx_http_dsa_save_t          *turn;
    ngx_http_dsa_ledger_nodes_t  *nodes;

    nodes = e->node->owner;
    turn = e->turn;

    ngx_http_dsa_ledger_entry_free(e);
    ngx_http_dsa_ledger_nodes_send(nodes);

    if (turn != NULL) {
        ngx_http_dsa_ledger_turn_end(turn, "the ledger in Redis is damaged");
    }
}


/*
 * A node is reachable and refuses to write, which may be temporary: logs it
 * with the text of Redis unless an earlier refusal was logged.
 */

static void
ngx_http_dsa_ledger_node_block(ngx_http_dsa_ledger_node_t *node,
    const char *text)
{
    if (!node->blocked) {
        ngx_http_dsa_ledger_node_set_blocked(node, 1);
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "dsa: %ui ledger entries are waiting for Redis: %s",
                      node->owner->entries.n, text);
    }
}


/* Sets whether a node refuses to write, also in the metrics.  Logs nothing. */

static void
ngx_http_dsa_ledger_node_set_blocked(ngx_http_dsa_ledger_node_t *node,
    ngx_uint_t blocked)
{
    if (node->blocked == blocked) {
        return;
    }

    node->blocked = blocked;
    node->owner->blocked += blocked ? 1 : -1;

    ngx_http_dsa_metrics_set(redis_refuses, node->owner->blocked != 0);
}


const char *
ngx_http_dsa_ledger_nodes_blocked(ngx_http_dsa_ledger_nodes_t *nodes,
    dsa_str_t tenant)
{
    return ngx_http_dsa_ledger_node_find(nodes, tenant)->blocked
           ? ngx_http_dsa_ledger_refuses : NULL;
}


static ngx_uint_t
ngx_http_dsa_ledger_node_empty(const ngx_http_dsa_ledger_node_t *node)
{
    return ngx_queue_empty(&node->turns) && ngx_queue_empty(&node->entries)
           && ngx_queue_empty(&node->held) && ngx_queue_empty(&node->sent);
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
    ngx_http_dsa_ledger_nodes_t  *nodes;

    nodes = node->owner;
    node->paused = 0;

    if (!ngx_http_dsa_redis_up(nodes->redis)) {

        /* the entries wait until it is */

        return;
    }

    ngx_http_dsa_ledger_node_release(node, NGX_HTTP_DSA_LEDGER_PROBES);
    ngx_http_dsa_ledger_nodes_send(nodes);

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

        ngx_http_dsa_ledger_node_wait(e, 0);
    }
}


void
ngx_http_dsa_ledger_nodes_ready(ngx_http_dsa_ledger_nodes_t *nodes)
{
    ngx_uint_t  i;

    for (i = 0; i < nodes->n; i++) {
        ngx_http_dsa_ledger_node_release(&nodes->node[i], nodes->entries.n);
    }

    ngx_http_dsa_ledger_nodes_send(nodes);
}


void
ngx_http_dsa_ledger_nodes_done(ngx_http_dsa_ledger_nodes_t *nodes)
{
    ngx_uint_t  i;

    for (i = 0; i < nodes->n; i++) {
        ngx_http_dsa_ledger_node_done(&nodes->node[i]);
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
