
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
 * why is the reason as a static clause, for a log line and for the client.
 * reply is then the error with which Redis refused this command, or NULL if no
 * reply came; in that case Redis may have executed the command.
 */
typedef void (*ngx_http_dsa_redis_pt)(void *data, redisReply *reply,
    const char *why);


typedef struct {
    ngx_queue_t              queue;
    ngx_http_dsa_redis_pt    handler;       /* NULL: no one needs the reply */
    void                    *data;
    char                    *command;       /* RESP; NULL: it is sent */
    size_t                   len;
    size_t                   pos;           /* bytes that are sent */
    ngx_msec_t               deadline;      /* for the reply */
    char                     name[16];      /* "HGETALL", for debug logs */
    unsigned                 setup:1;       /* part of the connection setup, */
    unsigned                 last:1;        /* and the last of these */
    unsigned                 role:1;        /* a setup call: ROLE */
} ngx_http_dsa_redis_call_t;


typedef struct {
    ngx_queue_t              sent;          /* oldest first */
    ngx_queue_t              unsent;        /* the first may be partly sent */
    ngx_uint_t               n;             /* calls in both queues */
    size_t                   bytes;         /* still to be sent */
} ngx_http_dsa_redis_calls_t;


void ngx_http_dsa_redis_calls_init(ngx_http_dsa_redis_calls_t *calls);

/* 1: a further command must be refused. */
ngx_uint_t ngx_http_dsa_redis_calls_full(ngx_http_dsa_redis_calls_t *calls);

/*
 * Formats a command, which copies its words, and queues it behind the others;
 * a setup call goes in front of all that are not sent.  timeout: milliseconds
 * until the reply must be there.  NULL: out of memory.
 */
ngx_http_dsa_redis_call_t *ngx_http_dsa_redis_calls_add(
    ngx_http_dsa_redis_calls_t *calls, const dsa_schema_command_t *cmd,
    ngx_msec_t timeout, ngx_uint_t setup);

/*
 * Writes commands to the connection until it accepts no more; setup: only
 * setup calls.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_dsa_redis_calls_send(ngx_http_dsa_redis_calls_t *calls,
    ngx_connection_t *c, ngx_uint_t setup);

/* The call whose reply comes next; NULL if no command is sent. */
ngx_http_dsa_redis_call_t *ngx_http_dsa_redis_calls_next(
    ngx_http_dsa_redis_calls_t *calls);

/* The call that has waited longest, sent or not; NULL if there is none. */
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
