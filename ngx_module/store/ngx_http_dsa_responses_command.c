
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_dsa_responses_command.h"


/* Allocated from the request's pool. */

typedef struct {
    ngx_http_request_t             *request;
    ngx_http_dsa_redis_command_t   *command;    /* NULL: none is pending */
    ngx_http_dsa_responses_pt       handler;
    void                           *data;
} ngx_http_dsa_responses_command_t;


static void ngx_http_dsa_responses_command_cleanup(void *data);
static void ngx_http_dsa_responses_command_reply(void *data,
    redisReply *reply, const char *why);


ngx_int_t
ngx_http_dsa_responses_command(ngx_http_request_t *r,
    ngx_http_dsa_redis_t *redis, const dsa_schema_command_t *cmd,
    ngx_http_dsa_responses_pt handler, void *data)
{
    const char                        *why;
    ngx_pool_cleanup_t                *cln;
    ngx_http_dsa_responses_command_t  *c;

    cln = ngx_pool_cleanup_add(r->pool,
                               sizeof(ngx_http_dsa_responses_command_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    c = cln->data;
    c->request = r;
    c->handler = handler;
    c->data = data;

    c->command = ngx_http_dsa_redis_command(redis, cmd,
                                          ngx_http_dsa_responses_command_reply,
                                          c, &why);

    cln->handler = ngx_http_dsa_responses_command_cleanup;

    if (c->command == NULL) {
        handler(r, data, NULL, why);
    }

    return NGX_OK;
}


static void
ngx_http_dsa_responses_command_cleanup(void *data)
{
    ngx_http_dsa_responses_command_t  *c = data;

    if (c->command != NULL) {
        ngx_http_dsa_redis_detach(c->command);
    }
}


static void
ngx_http_dsa_responses_command_reply(void *data, redisReply *reply,
    const char *why)
{
    ngx_connection_t                  *connection;
    ngx_http_request_t                *r;
    ngx_http_dsa_responses_command_t  *c = data;

    c->command = NULL;

    r = c->request;
    connection = r->connection;

    ngx_http_set_log_request(connection->log, r);

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, connection->log, 0,
                   "dsa responses reply: %s", why == NULL ? "ok" : why);

    c->handler(r, c->data, why == NULL ? reply : NULL, why);

    ngx_http_run_posted_requests(connection);
}
