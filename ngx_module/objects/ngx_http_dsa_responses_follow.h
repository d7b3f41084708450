
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_RESPONSES_FOLLOW_H_INCLUDED_
#define _NGX_HTTP_DSA_RESPONSES_FOLLOW_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "base/str.h"

#include "ngx_module/redis/ngx_http_dsa_redis.h"


/*
 * Answers GET /responses/ID?stream=true: the events of a response in the
 * background from Redis, and further ones as they are stored there, up to its
 * end.  tenant and id live as long as the request, whose body is discarded.
 * after: the number of the last event that the client has; -1: none.  Returns
 * what a content handler returns.
 */
ngx_int_t ngx_http_dsa_responses_follow(ngx_http_request_t *r,
    ngx_http_dsa_redis_t *redis, dsa_str_t tenant, dsa_str_t id,
    int64_t after);


#endif /* _NGX_HTTP_DSA_RESPONSES_FOLLOW_H_INCLUDED_ */
