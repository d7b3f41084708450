
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_EVENTS_H_INCLUDED_
#define _NGX_HTTP_DSA_EVENTS_H_INCLUDED_


#include "ngx_http_dsa_request.h"


/*
 * The event handlers of a chat: for what engines report of its choices, the
 * client and the timer.
 */


/*
 * Registers the handlers of a new request with its parts.  NGX_OK or
 * NGX_ERROR.
 */
ngx_int_t ngx_http_dsa_events_init(ngx_http_dsa_request_t *req);

/*
 * Submits a request that is encoded, or ends it with an error if no engine can
 * serve it.  The request may be freed afterwards.
 */
void ngx_http_dsa_events_submit(ngx_http_dsa_request_t *req);


#endif /* _NGX_HTTP_DSA_EVENTS_H_INCLUDED_ */
