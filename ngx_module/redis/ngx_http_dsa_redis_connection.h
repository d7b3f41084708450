
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_REDIS_CONNECTION_H_INCLUDED_
#define _NGX_HTTP_DSA_REDIS_CONNECTION_H_INCLUDED_


#include "ngx_http_dsa_redis_state.h"


/*
 * A worker's connection to the primary of Redis, or to a node of a cluster: it
 * connects, authenticates, reconnects after a failure and when the primary has
 * become a replica, sends commands and dispatches their replies.  Commands wait
 * while it looks for the primary.  The connection to a node is made, and made
 * again, only when there is a command for it.
 */

/*
 * Initializes a connection that is zeroed.  conf, log and events live as long
 * as the worker; the functions of events get data.  The caller sets primary.
 */
void ngx_http_dsa_redis_connection_init(ngx_http_dsa_redis_connection_t *rc,
    const ngx_http_dsa_redis_conf_t *conf, ngx_log_t *log,
    const ngx_http_dsa_redis_events_t *events, void *data);

/* Starts to connect. */
void ngx_http_dsa_redis_connection_start(ngx_http_dsa_redis_connection_t *rc);

/* Closes the connection for good.  No handler of a command is called. */
void ngx_http_dsa_redis_connection_stop(ngx_http_dsa_redis_connection_t *rc);

/*
 * Returns 1 if commands can be queued: the connection is there, is being made,
 * or can be made at once.
 */
ngx_uint_t ngx_http_dsa_redis_connection_usable(
    ngx_http_dsa_redis_connection_t *rc);

/* Why commands cannot be queued, a static clause. */
const char *ngx_http_dsa_redis_connection_why(
    ngx_http_dsa_redis_connection_t *rc);

/*
 * Queues a command on a connection that is usable.  No handler is called from
 * within this function.  NGX_OK, or NGX_ERROR: out of memory, and the command
 * is in no queue.
 */
ngx_int_t ngx_http_dsa_redis_connection_put(
    ngx_http_dsa_redis_connection_t *rc, ngx_http_dsa_redis_command_t *command);

/* Shortens the wait for the next attempt to connect. */
void ngx_http_dsa_redis_connection_retry_soon(
    ngx_http_dsa_redis_connection_t *rc);


#endif /* _NGX_HTTP_DSA_REDIS_CONNECTION_H_INCLUDED_ */
