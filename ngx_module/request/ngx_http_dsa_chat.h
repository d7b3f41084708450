
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_CHAT_H_INCLUDED_
#define _NGX_HTTP_DSA_CHAT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_module/api/ngx_http_dsa_api.h"


/* A content handler: answers a POST of an API. */
ngx_int_t ngx_http_dsa_chat_handler(ngx_http_request_t *r,
    const ngx_http_dsa_api_t *api);


#endif /* _NGX_HTTP_DSA_CHAT_H_INCLUDED_ */
