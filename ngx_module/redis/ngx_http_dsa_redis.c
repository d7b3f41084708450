
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_dsa_redis.h"
#include "ngx_http_dsa_redis_conf.h"
#include "ngx_http_dsa_redis_memory.h"
#include "ngx_http_dsa_redis_nodes.h"
#include "ngx_http_dsa_redis_reply.h"


struct ngx_http_dsa_redis_s {
    ngx_http_dsa_redis_conf_t         conf;
    ngx_http_dsa_ledger_t            *ledger;
    ngx_shm_zone_t                   *memory;

    /* in a worker */

    ngx_http_dsa_redis_nodes_t        nodes;
    ngx_http_dsa_redis_event_pt       done;
    void                             *data;
};


char *
ngx_http_dsa_redis_directive(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char  *p = conf;

    char                   *rv;
    ngx_http_dsa_redis_t   *redis, **field;

    field = (ngx_http_dsa_redis_t **) (p + cmd->offset);

    if (*field != NULL) {
        return "is duplicate";
    }

    redis = ngx_pcalloc(cf->pool, sizeof(ngx_http_dsa_redis_t));
    if (redis == NULL) {
        return NGX_CONF_ERROR;
    }

    rv = ngx_http_dsa_redis_conf_read(cf, &cmd->name, &redis->conf);

    if (rv != NGX_CONF_OK) {
        return rv;
    }

    redis->ledger = ngx_http_dsa_ledger_create(cf, &redis->conf.queue_file,
                                               redis->conf.queue);
    if (redis->ledger == NULL) {
        return NGX_CONF_ERROR;
    }

    redis->memory = ngx_http_dsa_redis_memory_zone(cf);
    if (redis->memory == NULL) {
        return NGX_CONF_ERROR;
    }

    *field = redis;

    return NGX_CONF_OK;
}


ngx_int_t
ngx_http_dsa_redis_init_worker(ngx_http_dsa_redis_t *redis,
    ngx_cycle_t *cycle, ngx_http_dsa_redis_event_pt ready,
    ngx_http_dsa_redis_event_pt done, void *data)
{
    redis->done = done;
    redis->data = data;
    redis->nodes.ready = ready;
    redis->nodes.data = data;

    if (ngx_http_dsa_redis_memory_start(redis->memory, &redis->nodes, cycle)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_http_dsa_redis_nodes_start(&redis->nodes, &redis->conf, cycle);

    return NGX_OK;
}


void
ngx_http_dsa_redis_exit_worker(ngx_http_dsa_redis_t *redis)
{
    if (redis->data != NULL) {
        redis->done(redis->data);
        redis->data = NULL;
    }

    ngx_http_dsa_redis_nodes_stop(&redis->nodes);
}


void *
ngx_http_dsa_redis_data(ngx_http_dsa_redis_t *redis)
{
    return redis->data;
}


ngx_http_dsa_redis_command_t *
ngx_http_dsa_redis_command(ngx_http_dsa_redis_t *redis,
    const dsa_schema_command_t *cmd, ngx_http_dsa_redis_pt handler, void *data,
    const char **why)
{
    return ngx_http_dsa_redis_nodes_command(&redis->nodes, cmd, handler, data,
                                            why);
}


ngx_uint_t
ngx_http_dsa_redis_node(ngx_http_dsa_redis_t *redis, dsa_str_t tenant)
{
    if (redis->nodes.n == 0) {
        return 0;
    }

    /* the name of a tenant is the hash tag of its keys */

    return ngx_http_dsa_redis_nodes_of(&redis->nodes,
                                       dsa_cluster_slot(tenant.data,
                                                        tenant.len));
}


ngx_uint_t
ngx_http_dsa_redis_node_usable(ngx_http_dsa_redis_t *redis, ngx_uint_t node)
{
    return ngx_http_dsa_redis_nodes_usable(&redis->nodes, node);
}


void
ngx_http_dsa_redis_return_moved(ngx_http_dsa_redis_command_t *command)
{
    command->moved = 1;
}


void
ngx_http_dsa_redis_detach(ngx_http_dsa_redis_command_t *command)
{
    command->handler = NULL;
}


void
ngx_http_dsa_redis_keep(redisReply *reply)
{
    ngx_http_dsa_redis_reply_keep(reply);
}


ngx_uint_t
ngx_http_dsa_redis_up(ngx_http_dsa_redis_t *redis)
{
    return ngx_http_dsa_redis_nodes_up(&redis->nodes);
}


void
ngx_http_dsa_redis_retry_soon(ngx_http_dsa_redis_t *redis)
{
    ngx_http_dsa_redis_nodes_retry_soon(&redis->nodes);
}


ngx_http_dsa_ledger_t *
ngx_http_dsa_redis_ledger(ngx_http_dsa_redis_t *redis)
{
    return redis->ledger;
}


ngx_int_t
ngx_http_dsa_redis_memory(ngx_http_dsa_redis_t *redis,
    dsa_schema_memory_t *figures)
{
    return ngx_http_dsa_redis_memory_get(redis->memory, figures);
}


ngx_msec_t
ngx_http_dsa_redis_timeout(ngx_http_dsa_redis_t *redis)
{
    return redis->conf.timeout;
}


const dsa_schema_storage_t *
ngx_http_dsa_redis_storage(ngx_http_dsa_redis_t *redis)
{
    return &redis->conf.storage;
}


const char *
ngx_http_dsa_redis_full(ngx_http_dsa_redis_t *redis)
{
    return ngx_http_dsa_redis_memory_full(redis->memory)
           ? "Redis is nearly full" : NULL;
}
