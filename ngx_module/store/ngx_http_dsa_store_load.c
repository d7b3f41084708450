
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "redis_schema/conversations.h"

#include "ngx_module/core/ngx_http_dsa_burst.h"
#include "ngx_http_dsa_ledger_queue.h"
#include "ngx_http_dsa_store.h"


/* memory for the words of the command */

#define NGX_HTTP_DSA_STORE_COMMAND  4096


/* Allocated from the request's pool. */

typedef struct {
    ngx_http_request_t             *request;
    ngx_http_dsa_redis_command_t   *command;    /* NULL: none is pending */
    ngx_http_dsa_store_load_pt      handler;
    void                           *data;
} ngx_http_dsa_store_load_t;


static void ngx_http_dsa_store_load_cleanup(void *data);
static void ngx_http_dsa_store_load_reply(void *data, redisReply *reply,
    const char *why);


ngx_int_t
ngx_http_dsa_store_load(ngx_http_request_t *r, ngx_http_dsa_redis_t *redis,
    ngx_str_t *tenant, ngx_str_t *id, ngx_http_dsa_lease_t *lease,
    const ngx_str_t *request_id, ngx_http_dsa_store_load_pt handler,
    void *data)
{
    dsa_str_t                   name, owner;
    const char                 *why;
    dsa_arena_t                *arena;
    ngx_pool_cleanup_t         *cln;
    dsa_schema_command_t        cmd;
    ngx_http_dsa_store_load_t  *load;

    name = dsa_str(id->data, id->len);
    owner = dsa_str(tenant->data, tenant->len);

    if (!dsa_schema_id_ok(name) || !dsa_schema_name_ok(owner)) {
        handler(r, data, NGX_HTTP_BAD_REQUEST, NULL,
                "the value is not a conversation id; expected \"conv_\" and 32 "
                "hexadecimal digits, as POST /conversations returns them");
        return NGX_OK;
    }

    /* while Redis rejects writes, the turn could not be stored */

    why = ngx_http_dsa_ledger_queue_blocked(redis, owner);

    if (why != NULL) {
        handler(r, data, NGX_HTTP_SERVICE_UNAVAILABLE, NULL, why);
        return NGX_OK;
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_dsa_store_load_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    load = cln->data;
    load->request = r;
    load->handler = handler;
    load->data = data;
    load->command = NULL;

    cln->handler = ngx_http_dsa_store_load_cleanup;

    arena = dsa_arena_create(NGX_HTTP_DSA_STORE_COMMAND);
    if (arena == NULL) {
        return NGX_ERROR;
    }

    if (dsa_schema_begin(&cmd, arena, owner, name,
                         dsa_str(request_id->data, request_id->len))
        != DSA_OK)
    {
        dsa_arena_destroy(arena);
        return NGX_ERROR;
    }

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "dsa request %V: loads conversation \"%V\"", request_id, id);

    load->command = ngx_http_dsa_redis_command(redis, &cmd,
                                               ngx_http_dsa_store_load_reply,
                                               load, &why);

    dsa_arena_destroy(arena);

    if (load->command == NULL) {
        handler(r, data, NGX_HTTP_SERVICE_UNAVAILABLE, NULL, why);
        return NGX_OK;
    }

    /*
     * Start here, because the request may end before the reply, and must then
     * release the lease.
     */

    ngx_http_dsa_lease_start(lease, redis, tenant, id, request_id);

    return NGX_OK;
}


static void
ngx_http_dsa_store_load_cleanup(void *data)
{
    ngx_http_dsa_store_load_t  *load = data;

    if (load->command != NULL) {
        ngx_http_dsa_redis_detach(load->command);
    }
}


static void
ngx_http_dsa_store_load_reply(void *data, redisReply *reply, const char *why)
{
    ngx_connection_t           *c;
    ngx_http_request_t         *r;
    ngx_http_dsa_store_load_t  *load = data;

    load->command = NULL;

    r = load->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    if (why != NULL) {
        ngx_log_debug1(NGX_LOG_DEBUG_HTTP, c->log, 0,
                       "dsa conversation not loaded: %s", why);

        load->handler(r, load->data, NGX_HTTP_SERVICE_UNAVAILABLE, NULL, why);

    } else {
        load->handler(r, load->data, NGX_HTTP_OK, reply, NULL);
    }

    ngx_http_run_posted_requests(c);
}
