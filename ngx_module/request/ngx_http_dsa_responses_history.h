
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_RESPONSES_HISTORY_H_INCLUDED_
#define _NGX_HTTP_DSA_RESPONSES_HISTORY_H_INCLUDED_


#include "ngx_http_dsa_request.h"


/*
 * Call it after the body is read.  Decides whether the answer is stored, and
 * inserts the stored answers that the request continues into its chat.  Then
 * calls next, at once or later, or ends the request with its failure.
 */
void ngx_http_dsa_responses_history(ngx_http_dsa_request_t *req,
    const dsa_chat_limits_t *limits, ngx_http_dsa_request_pt next);


#endif /* _NGX_HTTP_DSA_RESPONSES_HISTORY_H_INCLUDED_ */
