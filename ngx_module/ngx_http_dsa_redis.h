
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_REDIS_H_INCLUDED_
#define _NGX_HTTP_DSA_REDIS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <hiredis/hiredis.h>

#include "ngx_http_dsa_ledger.h"


/*
 * Redis on nginx's event loop: one pipelined connection a worker, hiredis as
 * codec only.
 */

typedef struct ngx_http_dsa_redis_s       ngx_http_dsa_redis_t;
typedef struct ngx_http_dsa_redis_call_s  ngx_http_dsa_redis_call_t;


/*
 * The answer to a command.  why is NULL when it is a reply to this command,
 * an error of type REDIS_REPLY_ERROR included.  Otherwise Redis cannot be used
 * now, and why is the reason, for a log line and for the client.  reply is then
 * the error with which Redis refused this command, or NULL if no reply came.
 * If no reply came, Redis may have run the command.  Not called after a detach.
 * May be called before ngx_http_dsa_redis_command() returns NULL, never
 * otherwise from within it.
 */
typedef void (*ngx_http_dsa_redis_pt)(void *data, redisReply *reply,
    const char *why);


/*
 * The directive: dsa_redis ADDRESS [user=] [password_file=] [db=] [timeout=]
 * [connect_timeout=] [queue=] [queue_file=] [ttl=].  NGX_CONF_1MORE; conf has
 * an ngx_http_dsa_redis_t * at cmd->offset, NULL until then.
 */
char *ngx_http_dsa_redis_directive(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/*
 * In a worker: starts connecting; and its end, to be called from
 * exit_process, which closes the connection.
 */
ngx_int_t ngx_http_dsa_redis_init_worker(ngx_http_dsa_redis_t *redis,
    ngx_cycle_t *cycle);
void ngx_http_dsa_redis_exit_worker(ngx_http_dsa_redis_t *redis);

/*
 * Sends a command; arguments are copied.  NULL when it cannot be sent now
 * (down, or too many in flight); handler was called then.
 */
ngx_http_dsa_redis_call_t *ngx_http_dsa_redis_command(
    ngx_http_dsa_redis_t *redis, ngx_uint_t argc, const ngx_str_t *argv,
    ngx_http_dsa_redis_pt handler, void *data);

/*
 * The caller is gone: the handler will not be called.  Allowed until the
 * handler has been called.
 */
void ngx_http_dsa_redis_detach(ngx_http_dsa_redis_call_t *call);

/* 1: connected and authenticated. */
ngx_uint_t ngx_http_dsa_redis_up(ngx_http_dsa_redis_t *redis);


/* The next attempt to connect comes soon, because an answer waits for it. */
void ngx_http_dsa_redis_hurry(ngx_http_dsa_redis_t *redis);


/*
 * What the store keeps with a Redis: one pointer of its own, and what it
 * wants to be told.  up: commands can be sent again; done: the worker ends.
 */

typedef struct {
    void         *data;                 /* NULL: no store yet */
    void        (*up)(void *data);
    void        (*done)(void *data);
} ngx_http_dsa_redis_hooks_t;

ngx_http_dsa_redis_hooks_t *ngx_http_dsa_redis_hooks(
    ngx_http_dsa_redis_t *redis);

/* queue= and queue_file=: the queue of ledger entries. */
ngx_http_dsa_ledger_t *ngx_http_dsa_redis_ledger(ngx_http_dsa_redis_t *redis);

/* timeout=: milliseconds. */
ngx_msec_t ngx_http_dsa_redis_timeout(ngx_http_dsa_redis_t *redis);

/* ttl=: seconds that a conversation is kept after its last turn. */
time_t ngx_http_dsa_redis_ttl(ngx_http_dsa_redis_t *redis);


#endif /* _NGX_HTTP_DSA_REDIS_H_INCLUDED_ */
