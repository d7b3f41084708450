
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "ngx_module/core/ngx_http_dsa_metrics.h"
#include "ngx_http_dsa_ledger_node.h"
#include "ngx_http_dsa_ledger_queue.h"


/* milliseconds between two searches for entries of processes that ended */

#define NGX_HTTP_DSA_LEDGER_ADOPT        3000


typedef struct {
    ngx_http_dsa_ledger_nodes_t   nodes;

    ngx_connection_t              dumb;         /* the data of the timer */
    ngx_event_t                   adopt;
} ngx_http_dsa_ledger_queue_t;


static ngx_http_dsa_ledger_queue_t *ngx_http_dsa_ledger_queue_create(
    ngx_http_dsa_redis_t *redis, ngx_cycle_t *cycle);
static void ngx_http_dsa_ledger_queue_late(ngx_event_t *ev);
static void ngx_http_dsa_ledger_queue_ready(void *data);
static void ngx_http_dsa_ledger_queue_done(void *data);
static void ngx_http_dsa_ledger_queue_adopt(ngx_event_t *ev);
static ngx_int_t ngx_http_dsa_ledger_queue_adopted(void *data,
    ngx_uint_t cell);


static const char  ngx_http_dsa_ledger_unreachable[] =
    "Redis could not be reached in time";
static const char  ngx_http_dsa_ledger_unconfirmed[] =
    "Redis did not confirm it in time; read the conversation before the next "
    "turn";


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

    if (ngx_http_dsa_ledger_acquire_owner(queue->nodes.entries.ledger,
                                          cycle->log)
        == NGX_OK)
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
    ngx_http_dsa_ledger_queue_t  *queue;

    queue = ngx_pcalloc(cycle->pool, sizeof(ngx_http_dsa_ledger_queue_t));
    if (queue == NULL) {
        return NULL;
    }

    ngx_http_dsa_ledger_nodes_init(&queue->nodes, redis, cycle->log);

    queue->dumb.fd = (ngx_socket_t) -1;
    queue->dumb.data = queue;

    queue->adopt.handler = ngx_http_dsa_ledger_queue_adopt;
    queue->adopt.data = &queue->dumb;
    queue->adopt.log = cycle->log;
    queue->adopt.cancelable = 1;

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

    e = ngx_http_dsa_ledger_entry_read(&queue->nodes.entries, cell, why);

    if (e == NULL) {
        ngx_http_dsa_ledger_lost(ledger, cell);
        ngx_http_dsa_ledger_entry_lost(entry, *why);
        return NGX_DECLINED;
    }

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "dsa ledger entry %ui queued%s: %ui entries",
                   e->cell, turn != NULL ? " with a turn" : "",
                   queue->nodes.entries.n);

    if (turn != NULL) {
        e->turn = turn;

        turn->data = e;
        turn->timer.handler = ngx_http_dsa_ledger_queue_late;

        /* the timer is not cancelable: a worker that shuts down waits for it */

        ngx_add_timer(&turn->timer, ngx_http_dsa_redis_timeout(redis));
    }

    ngx_http_dsa_ledger_nodes_add(&queue->nodes, e);
    ngx_http_dsa_ledger_nodes_send(&queue->nodes);

    return NGX_OK;
}


/* The time of a turn is over: the answer ends without it. */

static void
ngx_http_dsa_ledger_queue_late(ngx_event_t *ev)
{
    const char                   *why;
    ngx_http_dsa_save_t          *turn = ev->data;
    ngx_http_dsa_ledger_entry_t  *e = turn->data;

    if (e->unconfirmed || e->command != NULL) {
        why = ngx_http_dsa_ledger_unconfirmed;

    } else if (e->why != NULL) {
        why = e->why;

    } else {
        why = ngx_http_dsa_ledger_nodes_blocked(e->node->owner,
                                                e->entry.tenant);

        if (why == NULL) {
            why = ngx_http_dsa_ledger_unreachable;
        }
    }

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "dsa ledger entry %ui: turn withdrawn: %s", e->cell, why);

    /* the entry goes on, behind those whose turn an answer waits for */

    e->turn = NULL;

    if (e->command == NULL) {
        ngx_http_dsa_ledger_node_wait(e, 0);
    }

    ngx_http_dsa_ledger_turn_end(turn, why);
}


const char *
ngx_http_dsa_ledger_queue_blocked(ngx_http_dsa_redis_t *redis,
    dsa_str_t tenant)
{
    ngx_http_dsa_ledger_queue_t  *queue;

    queue = ngx_http_dsa_redis_data(redis);

    return queue != NULL
           ? ngx_http_dsa_ledger_nodes_blocked(&queue->nodes, tenant) : NULL;
}


static void
ngx_http_dsa_ledger_queue_ready(void *data)
{
    ngx_http_dsa_ledger_queue_t  *queue = data;

    ngx_http_dsa_ledger_nodes_ready(&queue->nodes);
}


/*
 * The worker exits.  The entries in the file are sent by another worker, or
 * when nginx runs again.
 */

static void
ngx_http_dsa_ledger_queue_done(void *data)
{
    ngx_uint_t                    n;
    ngx_http_dsa_ledger_queue_t  *queue = data;

    n = queue->nodes.entries.n;

    if (n != 0) {
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "dsa: the worker exits and leaves %ui ledger entries in "
                      "\"%V\"", n,
                      ngx_http_dsa_ledger_path(queue->nodes.entries.ledger));
    }

    ngx_http_dsa_ledger_nodes_done(&queue->nodes);

    if (queue->adopt.timer_set) {
        ngx_del_timer(&queue->adopt);
    }
}


static void
ngx_http_dsa_ledger_queue_adopt(ngx_event_t *ev)
{
    ngx_uint_t                    damaged;
    ngx_connection_t             *dumb = ev->data;
    ngx_http_dsa_ledger_queue_t  *queue = dumb->data;

    damaged = ngx_http_dsa_ledger_adopt(queue->nodes.entries.ledger, ev->log,
                                        ngx_http_dsa_ledger_queue_adopted,
                                        queue);

    ngx_http_dsa_metrics_add(redis_lost, damaged);

    ngx_http_dsa_ledger_nodes_send(&queue->nodes);

    ngx_add_timer(ev, NGX_HTTP_DSA_LEDGER_ADOPT);
}


static ngx_int_t
ngx_http_dsa_ledger_queue_adopted(void *data, ngx_uint_t cell)
{
    const char                   *why;
    ngx_http_dsa_ledger_entry_t  *e;
    ngx_http_dsa_ledger_queue_t  *queue = data;

    e = ngx_http_dsa_ledger_entry_read(&queue->nodes.entries, cell, &why);
    if (e == NULL) {
        return NGX_ERROR;
    }

    ngx_http_dsa_ledger_nodes_add(&queue->nodes, e);

    return NGX_OK;
}
