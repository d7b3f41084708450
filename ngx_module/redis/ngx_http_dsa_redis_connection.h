
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_REDIS_CONNECTION_H_INCLUDED_
#define _NGX_HTTP_DSA_REDIS_CONNECTION_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_event_connect.h>

#include "redis_schema/resp.h"
#include "ngx_http_dsa_redis_command.h"
#include "ngx_http_dsa_redis_conf.h"
#include "ngx_http_dsa_redis_primary.h"


/*
 * A worker's connection to the primary of Redis: it connects, authenticates,
 * reconnects after a failure and when the primary has become a replica, sends
 * commands and dispatches their replies.  Commands wait while it looks for the
 * primary.
 */

typedef enum {
    ngx_http_dsa_redis_down = 0,        /* the reconnect timer is set */
    ngx_http_dsa_redis_connecting,
    ngx_http_dsa_redis_setup,           /* the setup is sent */
    ngx_http_dsa_redis_ready
} ngx_http_dsa_redis_state_e;


typedef struct {
    const ngx_http_dsa_redis_conf_t  *conf;

    ngx_http_dsa_redis_state_e        state;
    ngx_http_dsa_redis_commands_t     commands;

    ngx_peer_connection_t             peer;
    ngx_http_dsa_redis_primary_t      primary;
    ngx_log_t                         log;
    ngx_connection_t                  dumb;     /* the data of the timers */
    ngx_event_t                       reconnect;
    ngx_event_t                       ping;
    ngx_msec_t                        backoff;

    dsa_resp_t                       *resp;
    u_char                           *buffer;

    const char                       *reported; /* the failure that was
                                                   logged last; NULL: the
                                                   connection has worked
                                                   since then */
    void                            (*ready)(void *data);
    void                             *data;

    unsigned                          unproven:1;
} ngx_http_dsa_redis_connection_t;


/*
 * Starts to connect.  rc is zeroed, and conf lives as long as the worker.
 * NGX_OK, or NGX_ERROR: out of memory.  ready (NULL: none), which the caller
 * sets, is called with data whenever commands can be sent again.
 */
ngx_int_t ngx_http_dsa_redis_connection_start(
    ngx_http_dsa_redis_connection_t *rc, const ngx_http_dsa_redis_conf_t *conf,
    ngx_cycle_t *cycle);

/* Closes the connection for good.  No handler of a command is called. */
void ngx_http_dsa_redis_connection_stop(ngx_http_dsa_redis_connection_t *rc);

/*
 * Queues a command.  NULL: it cannot be sent, and *why is the reason, which is
 * static.  The handler is never called from within this function.
 */
ngx_http_dsa_redis_command_t *ngx_http_dsa_redis_connection_command(
    ngx_http_dsa_redis_connection_t *rc, const dsa_schema_command_t *cmd,
    ngx_http_dsa_redis_pt handler, void *data, const char **why);

/* Called by a handler: its caller does not free the reply. */
void ngx_http_dsa_redis_connection_keep(redisReply *reply);

/* Shortens the wait for the next attempt to connect. */
void ngx_http_dsa_redis_connection_retry_soon(
    ngx_http_dsa_redis_connection_t *rc);


#endif /* _NGX_HTTP_DSA_REDIS_CONNECTION_H_INCLUDED_ */
