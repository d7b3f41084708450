
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_RESPONSES_STORED_H_INCLUDED_
#define _NGX_HTTP_DSA_RESPONSES_STORED_H_INCLUDED_


#include "ngx_module/request/ngx_http_dsa_chat_stage.h"


/*
 * What stored responses add to a chat.  The functions are documented with the
 * struct.
 */
extern const ngx_http_dsa_chat_stored_t  ngx_http_dsa_responses_stored;


ngx_int_t ngx_http_dsa_responses_references(ngx_http_dsa_request_t *req);

ngx_int_t ngx_http_dsa_responses_history(ngx_http_dsa_request_t *req);

ngx_int_t ngx_http_dsa_responses_save(ngx_http_request_t *r,
    ngx_http_dsa_redis_t *redis, const ngx_str_t *tenant,
    const dsa_response_t *node, ngx_http_dsa_save_pt handler,
    const char **why);


#endif /* _NGX_HTTP_DSA_RESPONSES_STORED_H_INCLUDED_ */
