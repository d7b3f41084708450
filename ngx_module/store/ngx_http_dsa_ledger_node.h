
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_LEDGER_NODE_H_INCLUDED_
#define _NGX_HTTP_DSA_LEDGER_NODE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "ngx_module/redis/ngx_http_dsa_redis.h"
#include "ngx_module/redis/ngx_http_dsa_redis_nodes.h"
#include "ngx_http_dsa_ledger_entry.h"


/*
 * Sends the ledger entries of a worker to the nodes of a Redis Cluster, or to
 * the one Redis, and sends those again that were not confirmed, for
 * ngx_http_dsa_ledger_queue.c.  Each node has a window and a timer of its own,
 * so that one that hangs or is down does not delay the entries of others.
 */

typedef struct ngx_http_dsa_ledger_nodes_s  ngx_http_dsa_ledger_nodes_t;


/* The entries of one node, or all of them if there is no cluster. */

struct ngx_http_dsa_ledger_node_s {
    ngx_http_dsa_ledger_nodes_t  *owner;
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
    unsigned                      blocked:1;    /* it refuses to write, and
                                                   entries wait for it */
};


struct ngx_http_dsa_ledger_nodes_s {
    ngx_http_dsa_redis_t           *redis;
    ngx_http_dsa_ledger_entries_t   entries;    /* of all nodes */
    ngx_http_dsa_ledger_node_t      node[1 + NGX_HTTP_DSA_REDIS_NODES];
    ngx_uint_t                      n;          /* of these, the ones that have
                                                   had entries */
    ngx_uint_t                      blocked;    /* nodes that are */
};


/* Initializes nodes that are zeroed.  log lives as long as the worker. */
void ngx_http_dsa_ledger_nodes_init(ngx_http_dsa_ledger_nodes_t *nodes,
    ngx_http_dsa_redis_t *redis, ngx_log_t *log);

/*
 * Puts an entry that was read behind those that its node is sent next.  If an
 * answer waits for its turn, the next attempt is made sooner.  Nothing is sent
 * from within this function.  The entry belongs to the nodes, which free it.
 */
void ngx_http_dsa_ledger_nodes_add(ngx_http_dsa_ledger_nodes_t *nodes,
    ngx_http_dsa_ledger_entry_t *e);

/*
 * Sends what can be sent now.  No turn ends from within this function, and an
 * entry that must not be sent again is lost, which is logged.
 */
void ngx_http_dsa_ledger_nodes_send(ngx_http_dsa_ledger_nodes_t *nodes);

/*
 * Puts an entry that is not sent, or was sent and has its reply, into the queue
 * of those that its node is sent next: in front of it, or at its end.
 */
void ngx_http_dsa_ledger_node_wait(ngx_http_dsa_ledger_entry_t *e,
    ngx_uint_t first);

/*
 * Why the node that has the keys of a tenant accepts no writes at present, a
 * static clause; NULL: it does.
 */
const char *ngx_http_dsa_ledger_nodes_blocked(
    ngx_http_dsa_ledger_nodes_t *nodes, dsa_str_t tenant);

/* Redis accepts commands again: sends also the entries that failed. */
void ngx_http_dsa_ledger_nodes_ready(ngx_http_dsa_ledger_nodes_t *nodes);

/*
 * The worker exits: frees all entries, whose cells stay in the file, and their
 * turns without a call of their handlers.
 */
void ngx_http_dsa_ledger_nodes_done(ngx_http_dsa_ledger_nodes_t *nodes);


#endif /* _NGX_HTTP_DSA_LEDGER_NODE_H_INCLUDED_ */
