
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_REDIS_STATE_H_INCLUDED_
#define _NGX_HTTP_DSA_REDIS_STATE_H_INCLUDED_


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
 * The state of a connection to Redis, and its end: what is closed, what is
 * logged, and when the next attempt to connect is made.  For the files of
 * ngx_http_dsa_redis_connection.h.
 */

#define NGX_HTTP_DSA_REDIS_BACKOFF_MIN  100         /* milliseconds */


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
 * The cause of a failure when memory was lacking.  Causes are static strings,
 * which are compared by their addresses.
 */
extern const char  ngx_http_dsa_redis_nomem[];


/*
 * Initializes a connection that is zeroed: ngx_http_dsa_redis_connection_init()
 * without the handlers of the timers reconnect and ping.
 */
void ngx_http_dsa_redis_state_init(ngx_http_dsa_redis_connection_t *rc,
    const ngx_http_dsa_redis_conf_t *conf, ngx_log_t *log,
    const ngx_http_dsa_redis_events_t *events, void *data);

/* Changes the state, and reports it to events->changed(). */
void ngx_http_dsa_redis_set_state(ngx_http_dsa_redis_connection_t *rc,
    ngx_http_dsa_redis_state_e state);

/*
 * Called when commands were queued or removed.  While commands wait, the timers
 * of the connection keep a worker that shuts down from exiting.
 */
void ngx_http_dsa_redis_set_cancelable(ngx_http_dsa_redis_connection_t *rc);

/* Closes the socket, if there is one.  The commands that wait stay queued. */
void ngx_http_dsa_redis_close(ngx_http_dsa_redis_connection_t *rc);

/*
 * Ends the connection.  why is the cause, a static clause; err is an error of
 * the system or 0, and detail a text of len bytes from outside, or NULL.  The
 * handlers of the waiting commands come last, when it is closed and the next
 * attempt to connect is scheduled, so that they may queue other commands.
 */
void ngx_http_dsa_redis_fail(ngx_http_dsa_redis_connection_t *rc,
    const char *why, ngx_err_t err, const char *detail, size_t len);

/* The connection works: logs it if a failure was logged before. */
void ngx_http_dsa_redis_report_up(ngx_http_dsa_redis_connection_t *rc);


#endif /* _NGX_HTTP_DSA_REDIS_STATE_H_INCLUDED_ */
