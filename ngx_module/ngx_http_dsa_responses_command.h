
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_RESPONSES_COMMAND_H_INCLUDED_
#define _NGX_HTTP_DSA_RESPONSES_COMMAND_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "redis_schema/responses.h"
#include "ngx_http_dsa_redis.h"


/*
 * One command to Redis for a request.  The handler runs in the context of the
 * request, later or at once, and at most once: not if the request ends first.
 * why is NULL, and reply is the reply, which is valid during the call; or Redis
 * cannot be used, and why is the reason, which is static.  Posted requests are
 * run after a handler that is called later.
 */
typedef void (*ngx_http_dsa_responses_pt)(ngx_http_request_t *r, void *data,
    redisReply *reply, const char *why);

/* The words of cmd are copied.  NGX_ERROR: out of memory; no handler. */
ngx_int_t ngx_http_dsa_responses_command(ngx_http_request_t *r,
    ngx_http_dsa_redis_t *redis, const dsa_schema_command_t *cmd,
    ngx_http_dsa_responses_pt handler, void *data);


#endif /* _NGX_HTTP_DSA_RESPONSES_COMMAND_H_INCLUDED_ */
