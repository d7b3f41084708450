
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_RESPONSES_COMMAND_H_INCLUDED_
#define _NGX_HTTP_DSA_RESPONSES_COMMAND_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "redis_schema/responses.h"
#include "ngx_module/redis/ngx_http_dsa_redis.h"


/*
 * The handler of one command to Redis for a request.  It runs in the context
 * of the request, at once or later, and not at all if the request ends first.
 * If why is NULL, reply is the reply, which is valid until the handler
 * returns.  Otherwise Redis cannot be used, and why is the reason, a static
 * string.  If the handler runs later, posted requests are run after it.
 */
typedef void (*ngx_http_dsa_responses_pt)(ngx_http_request_t *r, void *data,
    redisReply *reply, const char *why);

/*
 * Sends a command, whose words are copied.  NGX_ERROR: out of memory, and the
 * handler is not called.
 */
ngx_int_t ngx_http_dsa_responses_command(ngx_http_request_t *r,
    ngx_http_dsa_redis_t *redis, const dsa_schema_command_t *cmd,
    ngx_http_dsa_responses_pt handler, void *data);


#endif /* _NGX_HTTP_DSA_RESPONSES_COMMAND_H_INCLUDED_ */
