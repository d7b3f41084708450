
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_REDIS_CALL_H_INCLUDED_
#define _NGX_HTTP_DSA_REDIS_CALL_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include <hiredis/hiredis.h>

#include "redis_schema/schema.h"


/*
 * The commands of one connection to Redis, from the moment they are formatted
 * until their reply has come.  Redis replies in the order of the commands.
 */

/*
 * Called with the reply to a command.  why is NULL if there is a reply, which
 * may be of type REDIS_REPLY_ERROR.  Otherwise Redis cannot be used now, and
 * why is the reason, a static clause for the log and for the client; reply is
 * the error with which Redis rejected this command, or NULL if there was no
 * reply.  Without a reply Redis may have executed the command.
 */
typedef void (*ngx_http_dsa_redis_pt)(void *data, redisReply *reply,
    const char *why);


typedef struct {
    ngx_queue_t              queue;
    ngx_http_dsa_redis_pt    handler;       /* NULL: the reply is ignored */
    void                    *data;
    char                    *command;       /* RESP; NULL: it is sent */
    size_t                   len;
    size_t                   pos;           /* bytes that are sent */
    ngx_msec_t               deadline;      /* for the reply */
    char                     name[16];      /* "HGETALL", for debug logs */
    unsigned                 setup:1;       /* part of the connection setup */
    unsigned                 last:1;        /* the last call of the setup */
    unsigned                 role:1;        /* a setup call: ROLE */
    unsigned                 probe:1;       /* its success does not show that
                                               Redis serves other commands */
} ngx_http_dsa_redis_call_t;


typedef struct {
    ngx_queue_t              sent;          /* oldest first */
    ngx_queue_t              unsent;        /* the first may be partly sent */
    ngx_uint_t               n;             /* calls in both queues */
    size_t                   bytes;         /* still to be sent */
} ngx_http_dsa_redis_calls_t;


/* Starts with no calls. */
void ngx_http_dsa_redis_calls_init(ngx_http_dsa_redis_calls_t *calls);

/* Returns 1 if no further command may be added. */
ngx_uint_t ngx_http_dsa_redis_calls_full(ngx_http_dsa_redis_calls_t *calls);

/*
 * Formats a command, which copies its words, and adds it to the end of the
 * queue; a setup call is added in front of all calls that are not sent.
 * timeout: milliseconds until the reply is due.  NULL: out of memory.
 */
ngx_http_dsa_redis_call_t *ngx_http_dsa_redis_calls_add(
    ngx_http_dsa_redis_calls_t *calls, const dsa_schema_command_t *cmd,
    ngx_msec_t timeout, ngx_uint_t setup);

/*
 * Writes commands until the socket accepts no more.  If setup is set, writes
 * setup calls only.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_dsa_redis_calls_send(ngx_http_dsa_redis_calls_t *calls,
    ngx_connection_t *c, ngx_uint_t setup);

/* Returns the call that the next reply belongs to; NULL if none was sent. */
ngx_http_dsa_redis_call_t *ngx_http_dsa_redis_calls_next(
    ngx_http_dsa_redis_calls_t *calls);

/*
 * Returns the call that has waited longest, sent or not; NULL if there is
 * none.
 */
ngx_http_dsa_redis_call_t *ngx_http_dsa_redis_calls_oldest(
    ngx_http_dsa_redis_calls_t *calls);

/* Removes a call from its queue and frees it. */
void ngx_http_dsa_redis_calls_remove(ngx_http_dsa_redis_calls_t *calls,
    ngx_http_dsa_redis_call_t *call);

/*
 * Empties the queues, then calls the handler of each call with why.  The
 * handlers may add new calls.
 */
void ngx_http_dsa_redis_calls_fail(ngx_http_dsa_redis_calls_t *calls,
    const char *why);


#endif /* _NGX_HTTP_DSA_REDIS_CALL_H_INCLUDED_ */
