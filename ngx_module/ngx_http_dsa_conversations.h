
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_CONVERSATIONS_H_INCLUDED_
#define _NGX_HTTP_DSA_CONVERSATIONS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_dsa_redis.h"


/*
 * POST /v1/conversations, GET and DELETE /v1/conversations/ID.  A content
 * handler calls this when it knows the tenant, and returns the result.  redis:
 * NULL if dsa_redis is not configured.  id: empty for the collection.  The
 * bytes of tenant and id outlive the request.
 */
ngx_int_t ngx_http_dsa_conversations_handler(ngx_http_request_t *r,
    ngx_http_dsa_redis_t *redis, ngx_str_t *tenant, ngx_str_t *id);


#endif /* _NGX_HTTP_DSA_CONVERSATIONS_H_INCLUDED_ */
