
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_REDIS_NODES_H_INCLUDED_
#define _NGX_HTTP_DSA_REDIS_NODES_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_dsa_redis_connection.h"


/*
 * The connections of a worker to Redis: the first one, to an address of
 * dsa_redis, and one to each node of a Redis Cluster that a redirect has named.
 *
 * A command goes to the node that has its cluster slot, if a redirect has named
 * it, and otherwise to the first connection, which is the only one without a
 * cluster.  The map of the cluster is not read: the redirects name the nodes
 * that are used.  A redirect is followed at once, a few times.  If the nodes do
 * not agree, or the keys are being moved, or the node cannot be reached, the
 * command is delayed and sent again, for at most the timeout of dsa_redis.
 * When a connection is lost, the nodes of its cluster slots are forgotten:
 * another node names the ones that have them now.
 *
 * A node that redirects has not executed the command.  A node that closed the
 * connection may have executed it, so that its handler gets no reply, as with a
 * single Redis.
 */

#define NGX_HTTP_DSA_REDIS_NODES   64


/* Why a cluster did not execute a command. */

typedef enum {
    ngx_http_dsa_redis_moving = 0,
    ngx_http_dsa_redis_not_served,
    ngx_http_dsa_redis_circle,
    ngx_http_dsa_redis_lost,
    ngx_http_dsa_redis_wrong,
    ngx_http_dsa_redis_many,
    NGX_HTTP_DSA_REDIS_CAUSES
} ngx_http_dsa_redis_cause_e;


typedef struct {
    const ngx_http_dsa_redis_conf_t  *conf;
    ngx_cycle_t                      *cycle;
    ngx_http_dsa_redis_connection_t   first;

    ngx_http_dsa_redis_connection_t  *node[NGX_HTTP_DSA_REDIS_NODES];
    ngx_uint_t                        n;
    u_char                            slot[DSA_CLUSTER_SLOTS];  /* of cluster
                                                   slots: 1 + the index of the
                                                   node; 0: not known, or the
                                                   first connection */

    ngx_http_dsa_redis_commands_t     delayed;  /* in unsent */
    ngx_connection_t                  dumb;     /* the data of the timer */
    ngx_event_t                       timer;
    time_t                            logged[NGX_HTTP_DSA_REDIS_CAUSES];

    void                            (*ready)(void *data);
    void                             *data;
} ngx_http_dsa_redis_nodes_t;


/*
 * Starts to connect.  nodes is zeroed except ready, which is called with data
 * whenever commands can be sent again; conf and cycle live as long as the
 * worker.
 */
void ngx_http_dsa_redis_nodes_start(ngx_http_dsa_redis_nodes_t *nodes,
    const ngx_http_dsa_redis_conf_t *conf, ngx_cycle_t *cycle);

/* Closes all connections for good.  No handler of a command is called. */
void ngx_http_dsa_redis_nodes_stop(ngx_http_dsa_redis_nodes_t *nodes);

/* Returns 1 if one of the connections is ready for commands. */
ngx_uint_t ngx_http_dsa_redis_nodes_up(ngx_http_dsa_redis_nodes_t *nodes);

/*
 * Queues a command.  NULL: it cannot be sent, and *why is the reason, which is
 * static.  The handler is never called from within this function.
 */
ngx_http_dsa_redis_command_t *ngx_http_dsa_redis_nodes_command(
    ngx_http_dsa_redis_nodes_t *nodes, const dsa_schema_command_t *cmd,
    ngx_http_dsa_redis_pt handler, void *data, const char **why);

/*
 * Queues a command without a key on each connection that is ready; its success
 * does not show that Redis serves other commands.  Returns how many there are.
 */
ngx_uint_t ngx_http_dsa_redis_nodes_each(ngx_http_dsa_redis_nodes_t *nodes,
    const dsa_schema_command_t *cmd, ngx_http_dsa_redis_pt handler, void *data);

/*
 * Returns the number of the node that has a cluster slot: 1 and more; 0: it is
 * that of the first connection, or not known.  A number may be that of another
 * node later, if all 64 are used.
 */
ngx_uint_t ngx_http_dsa_redis_nodes_of(ngx_http_dsa_redis_nodes_t *nodes,
    uint32_t slot);

/*
 * Returns 1 if a command can be sent to the node with this number, now or when
 * it is connected.
 */
ngx_uint_t ngx_http_dsa_redis_nodes_usable(ngx_http_dsa_redis_nodes_t *nodes,
    ngx_uint_t node);

/* Shortens the waits for the next attempts to connect. */
void ngx_http_dsa_redis_nodes_retry_soon(ngx_http_dsa_redis_nodes_t *nodes);


#endif /* _NGX_HTTP_DSA_REDIS_NODES_H_INCLUDED_ */
