
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_CHAT_LOAD_H_INCLUDED_
#define _NGX_HTTP_DSA_CHAT_LOAD_H_INCLUDED_


#include "ngx_http_dsa_request.h"


/*
 * Loads the conversation of a chat, and inserts its messages in front of those
 * of the request.  Then calls next, at once or later, or ends the request with
 * its failure.
 */
void ngx_http_dsa_chat_load(ngx_http_dsa_request_t *req,
    const dsa_chat_limits_t *limits, ngx_http_dsa_request_pt next);


#endif /* _NGX_HTTP_DSA_CHAT_LOAD_H_INCLUDED_ */
