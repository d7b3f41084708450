
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_REDIS_COMMAND_H_INCLUDED_
#define _NGX_HTTP_DSA_REDIS_COMMAND_H_INCLUDED_


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
    char                    *text;       /* RESP; NULL: it is sent */
    size_t                   len;
    size_t                   pos;           /* bytes that are sent */
    ngx_msec_t               deadline;      /* for the reply */
    char                     name[16];      /* "HGETALL", for debug logs */
    unsigned                 setup:1;       /* part of the connection setup */
    unsigned                 last:1;        /* the last command of the
                                               setup */
    unsigned                 role:1;        /* a setup command: ROLE */
    unsigned                 probe:1;       /* its success does not show that
                                               Redis serves other commands */
} ngx_http_dsa_redis_command_t;


typedef struct {
    ngx_queue_t              sent;          /* oldest first */
    ngx_queue_t              unsent;        /* the first may be partly sent */
    ngx_uint_t               n;             /* commands in both queues */
    size_t                   bytes;         /* still to be sent */
} ngx_http_dsa_redis_commands_t;


/* Starts with no commands. */
void ngx_http_dsa_redis_commands_init(ngx_http_dsa_redis_commands_t *commands);

/* Returns 1 if no further command may be added. */
ngx_uint_t ngx_http_dsa_redis_commands_full(
    ngx_http_dsa_redis_commands_t *commands);

/*
 * Formats a command, which copies its words, and adds it to the end of the
 * queue; a setup command is added in front of all commands that are not sent.
 * timeout: milliseconds until the reply is due.  NULL: out of memory.
 */
ngx_http_dsa_redis_command_t *ngx_http_dsa_redis_commands_add(
    ngx_http_dsa_redis_commands_t *commands, const dsa_schema_command_t *cmd,
    ngx_msec_t timeout, ngx_uint_t setup);

/*
 * Writes commands until the socket accepts no more.  If setup is set, writes
 * setup commands only.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_dsa_redis_commands_send(
    ngx_http_dsa_redis_commands_t *commands, ngx_connection_t *c,
    ngx_uint_t setup);

/* Returns the command that the next reply belongs to; NULL if none was sent. */
ngx_http_dsa_redis_command_t *ngx_http_dsa_redis_commands_next(
    ngx_http_dsa_redis_commands_t *commands);

/*
 * Returns the command that has waited longest, sent or not; NULL if there is
 * none.
 */
ngx_http_dsa_redis_command_t *ngx_http_dsa_redis_commands_oldest(
    ngx_http_dsa_redis_commands_t *commands);

/* Removes a command from its queue and frees it. */
void ngx_http_dsa_redis_commands_remove(ngx_http_dsa_redis_commands_t *commands,
    ngx_http_dsa_redis_command_t *command);

/*
 * Empties the queues, then calls the handler of each command with why.  The
 * handlers may add new commands.
 */
void ngx_http_dsa_redis_commands_fail(ngx_http_dsa_redis_commands_t *commands,
    const char *why);


#endif /* _NGX_HTTP_DSA_REDIS_COMMAND_H_INCLUDED_ */
