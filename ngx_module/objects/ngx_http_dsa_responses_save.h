
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_RESPONSES_SAVE_H_INCLUDED_
#define _NGX_HTTP_DSA_RESPONSES_SAVE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "redis_schema/responses.h"
#include "ngx_module/redis/ngx_http_dsa_redis.h"
#include "ngx_module/store/ngx_http_dsa_save.h"


/*
 * Stores a response.  NGX_OK: the handler will be called within the timeout of
 * dsa_redis, never by this function itself, and not if the request ends first.
 * NGX_DECLINED: the response is not stored, *why is the reason, a static
 * string, and the handler is not called.
 */
ngx_int_t ngx_http_dsa_responses_save(ngx_http_request_t *r,
    ngx_http_dsa_redis_t *redis, const ngx_str_t *tenant,
    const dsa_response_t *node, ngx_http_dsa_save_pt handler,
    const char **why);


#endif /* _NGX_HTTP_DSA_RESPONSES_SAVE_H_INCLUDED_ */
