
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
    char                    *text;          /* RESP; kept until the reply,
                                               because a node of a cluster may
                                               name another one */
    size_t                   len;
    size_t                   pos;           /* bytes that are sent */
    ngx_msec_t               deadline;      /* for the reply of this node */
    char                     name[16];      /* "HGETALL", for debug logs */

    int32_t                  slot;          /* cluster slot of its keys; -1: it
                                               has none */
    ngx_msec_t               until;         /* no further attempt after this */
    ngx_msec_t               due;           /* of the next attempt */
    ngx_msec_t               wait;          /* before the attempt after it */
    ngx_uint_t               redirects;     /* of this attempt */
    redisReply              *refusal;       /* of the last attempt, or NULL */
    ngx_uint_t               cause;         /* of refusal */

    unsigned                 asking:1;      /* ASKING comes before it */
    unsigned                 moved:1;       /* MOVED is not followed: its
                                               handler gets it */
    unsigned                 setup:1;       /* part of the connection setup */
    unsigned                 last:1;        /* the last command of the
                                               setup */
    unsigned                 role:1;        /* a setup command: ROLE */
    unsigned                 cluster:1;     /* a setup command: ASKING, which
                                               succeeds in a cluster alone */
    unsigned                 probe:1;       /* its success does not show that
                                               Redis serves other commands */
} ngx_http_dsa_redis_command_t;


typedef struct {
    ngx_queue_t              sent;          /* oldest first */
    ngx_queue_t              unsent;        /* the first may be partly sent */
    ngx_uint_t               n;             /* commands in both queues */
} ngx_http_dsa_redis_commands_t;


/* Formats a command, which copies its words.  NULL: out of memory. */
ngx_http_dsa_redis_command_t *ngx_http_dsa_redis_command_create(
    const dsa_schema_command_t *cmd);

/* Frees a command that is in no queue. */
void ngx_http_dsa_redis_command_free(ngx_http_dsa_redis_command_t *command);

/*
 * Returns 1 if this worker may create no further command, because it has as
 * many as the limits allow, on all connections together.
 */
ngx_uint_t ngx_http_dsa_redis_commands_full(void);


/* Starts with no commands. */
void ngx_http_dsa_redis_commands_init(ngx_http_dsa_redis_commands_t *commands);

/*
 * Adds a command to the end of the queue; a setup command is added in front of
 * all commands that are not sent.  timeout: milliseconds until the reply is
 * due.
 */
void ngx_http_dsa_redis_commands_put(ngx_http_dsa_redis_commands_t *commands,
    ngx_http_dsa_redis_command_t *command, ngx_msec_t timeout);

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

/* Removes a command from its queue, so that it can be sent again. */
void ngx_http_dsa_redis_commands_take(ngx_http_dsa_redis_commands_t *commands,
    ngx_http_dsa_redis_command_t *command);

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
