
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_REDIS_CONNECTION_H_INCLUDED_
#define _NGX_HTTP_DSA_REDIS_CONNECTION_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_event_connect.h>

#include "redis_schema/cluster.h"
#include "redis_schema/resp.h"
#include "ngx_http_dsa_redis_command.h"
#include "ngx_http_dsa_redis_conf.h"
#include "ngx_http_dsa_redis_primary.h"


/*
 * A worker's connection to the primary of Redis, or to a node of a cluster: it
 * connects, authenticates, reconnects after a failure and when the primary has
 * become a replica, sends commands and dispatches their replies.  Commands wait
 * while it looks for the primary.  The connection to a node is made, and made
 * again, only when there is a command for it.
 */

typedef enum {
    ngx_http_dsa_redis_down = 0,        /* the reconnect timer is set */
    ngx_http_dsa_redis_connecting,
    ngx_http_dsa_redis_handshake,       /* of TLS */
    ngx_http_dsa_redis_setup,           /* the setup is sent */
    ngx_http_dsa_redis_ready
} ngx_http_dsa_redis_state_e;


typedef struct ngx_http_dsa_redis_connection_s
    ngx_http_dsa_redis_connection_t;


typedef struct {

    /* Commands can be sent again. */
    void                            (*ready)(void *data);

    /* The state has changed. */
    void                            (*changed)(void *data,
                                         ngx_http_dsa_redis_connection_t *rc);

    /*
     * A node has not executed a command, and another attempt may succeed, as
     * kind describes.  The command is in no queue.  The reply is freed after
     * the call, unless it is kept.
     */
    void                            (*refused)(void *data,
                                         ngx_http_dsa_redis_connection_t *rc,
                                         ngx_http_dsa_redis_command_t *command,
                                         redisReply *reply,
                                         dsa_cluster_reply_e kind);
} ngx_http_dsa_redis_events_t;


struct ngx_http_dsa_redis_connection_s {
    const ngx_http_dsa_redis_conf_t  *conf;
    const ngx_http_dsa_redis_events_t
                                     *events;
    void                             *data;

    ngx_http_dsa_redis_state_e        state;
    ngx_http_dsa_redis_commands_t     commands;

    ngx_peer_connection_t             peer;
    ngx_http_dsa_redis_primary_t      primary;
    ngx_log_t                         log;
    ngx_uint_t                        log_level;
    ngx_connection_t                  dumb;     /* the data of the timers */
    ngx_event_t                       reconnect;
    ngx_event_t                       ping;
    ngx_msec_t                        backoff;

    dsa_resp_t                       *resp;

    const char                       *unfit;    /* by its role; NULL: it is
                                                   a primary, or its role is
                                                   not known */
    const char                       *reported; /* the failure that was
                                                   logged last; NULL: the
                                                   connection has worked
                                                   since then */
    unsigned                          unproven:1;
};


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

/* Called by a handler: its caller does not free the reply. */
void ngx_http_dsa_redis_connection_keep(redisReply *reply);

/* Shortens the wait for the next attempt to connect. */
void ngx_http_dsa_redis_connection_retry_soon(
    ngx_http_dsa_redis_connection_t *rc);


#endif /* _NGX_HTTP_DSA_REDIS_CONNECTION_H_INCLUDED_ */
