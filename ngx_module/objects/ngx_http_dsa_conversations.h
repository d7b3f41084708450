
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_CONVERSATIONS_H_INCLUDED_
#define _NGX_HTTP_DSA_CONVERSATIONS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * Returns 1 if the URI is .../conversations, .../conversations/ID or
 * .../conversations/ID/REST.  id and rest are empty if they are absent.
 */
ngx_uint_t ngx_http_dsa_conversations_find(ngx_http_request_t *r,
    ngx_str_t *id, ngx_str_t *rest);

/*
 * Serves OpenAI's conversations: POST, GET and DELETE of a conversation, of
 * its items and of one item.  The content handler returns the result.
 */
ngx_int_t ngx_http_dsa_conversations_handler(ngx_http_request_t *r,
    ngx_http_complex_value_t *tenant, const ngx_str_t *id,
    const ngx_str_t *rest);


#endif /* _NGX_HTTP_DSA_CONVERSATIONS_H_INCLUDED_ */
