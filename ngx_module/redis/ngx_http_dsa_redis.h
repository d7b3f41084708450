
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_REDIS_H_INCLUDED_
#define _NGX_HTTP_DSA_REDIS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "redis_schema/memory.h"
#include "ngx_module/ledger/ngx_http_dsa_ledger.h"
#include "ngx_http_dsa_redis_command.h"


/*
 * The Redis of dsa_redis: its parameters, the queue of ledger entries for it,
 * and in each worker one pipelined connection on nginx's event loop, or one to
 * each node of a cluster.
 */

typedef struct ngx_http_dsa_redis_s  ngx_http_dsa_redis_t;


/*
 * The directive: dsa_redis ADDRESS... [PARAMETER...]; the parameters are in
 * docs/directives.md.
 * NGX_CONF_1MORE; conf has an ngx_http_dsa_redis_t * at cmd->offset, which is
 * NULL until then.
 */
char *ngx_http_dsa_redis_directive(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/*
 * Called in a worker: starts to connect.  ready is called with data whenever
 * commands can be sent again, and done when the worker exits.
 * ngx_http_dsa_redis_data() returns data.  NGX_OK, or NGX_ERROR: out of
 * memory.
 */
typedef void (*ngx_http_dsa_redis_event_pt)(void *data);

ngx_int_t ngx_http_dsa_redis_init_worker(ngx_http_dsa_redis_t *redis,
    ngx_cycle_t *cycle, ngx_http_dsa_redis_event_pt ready,
    ngx_http_dsa_redis_event_pt done, void *data);

/* Called in exit_process: calls done and closes the connections. */
void ngx_http_dsa_redis_exit_worker(ngx_http_dsa_redis_t *redis);

/* Returns data of init_worker; NULL in a process that is not a worker. */
void *ngx_http_dsa_redis_data(ngx_http_dsa_redis_t *redis);

/*
 * Sends a command, whose words are copied.  The handler is called later,
 * unless it is detached.  Returns NULL if the command cannot be sent
 * now: then *why is the reason, a static string, and the handler is not
 * called.
 */
ngx_http_dsa_redis_command_t *ngx_http_dsa_redis_command(
    ngx_http_dsa_redis_t *redis, const dsa_schema_command_t *cmd,
    ngx_http_dsa_redis_pt handler, void *data, const char **why);

/*
 * The number of the node of a Redis Cluster that has the keys of a tenant, 1 to
 * NGX_HTTP_DSA_REDIS_NODES; 0: that of the first connection, or not known, or
 * there is no cluster.
 */
ngx_uint_t ngx_http_dsa_redis_node(ngx_http_dsa_redis_t *redis,
    dsa_str_t tenant);

/*
 * Returns 1 if a command can be sent to the node with this number, now or when
 * it is connected.
 */
ngx_uint_t ngx_http_dsa_redis_node_usable(ngx_http_dsa_redis_t *redis,
    ngx_uint_t node);

/*
 * Of a command that was just queued: if another node has its keys, the handler
 * gets the reply MOVED, so that the caller can limit what waits for that node.
 * ngx_http_dsa_redis_node() then returns the node.  If it cannot be reached,
 * the handler gets that as the reason as well.
 */
void ngx_http_dsa_redis_return_moved(ngx_http_dsa_redis_command_t *command);

/* Ensures that the handler of a pending command is not called. */
void ngx_http_dsa_redis_detach(ngx_http_dsa_redis_command_t *command);

/*
 * Called by a handler: the reply is not freed when the handler returns.  Its
 * memory is then freed with freeReplyObject().
 */
void ngx_http_dsa_redis_keep(redisReply *reply);

/* Returns 1 if a connection is ready for commands. */
ngx_uint_t ngx_http_dsa_redis_up(ngx_http_dsa_redis_t *redis);

/*
 * Shortens the wait before the next attempt to connect, for an answer that
 * waits for Redis.
 */
void ngx_http_dsa_redis_retry_soon(ngx_http_dsa_redis_t *redis);

/*
 * Returns the ledger entries that wait for this Redis (queue=, queue_file=).
 */
ngx_http_dsa_ledger_t *ngx_http_dsa_redis_ledger(ngx_http_dsa_redis_t *redis);

/*
 * The memory of Redis as a worker of this host has read it last.  NGX_DECLINED:
 * not in the last 30 seconds, because Redis is away or does not permit INFO.
 */
ngx_int_t ngx_http_dsa_redis_memory(ngx_http_dsa_redis_t *redis,
    dsa_schema_memory_t *figures);

/* Returns the timeout of a command in milliseconds (timeout=). */
ngx_msec_t ngx_http_dsa_redis_timeout(ngx_http_dsa_redis_t *redis);

/*
 * Returns how long conversations are kept after their last turn, and how much a
 * tenant may store (ttl=, quota=, objects=).
 */
const dsa_schema_storage_t *ngx_http_dsa_redis_storage(
    ngx_http_dsa_redis_t *redis);

/*
 * Returns why nothing may be stored for a client now: Redis uses 90 per cent of
 * its memory, and the rest is for the ledger.  NULL: it may be stored, or the
 * memory is not known, or Redis evicts keys and so has memory.
 */
const char *ngx_http_dsa_redis_full(ngx_http_dsa_redis_t *redis);


#endif /* _NGX_HTTP_DSA_REDIS_H_INCLUDED_ */
