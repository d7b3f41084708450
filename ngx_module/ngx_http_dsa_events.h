
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_EVENTS_H_INCLUDED_
#define _NGX_HTTP_DSA_EVENTS_H_INCLUDED_


#include "ngx_http_dsa_request.h"


/*
 * What happens to a chat: events of the engine, of the client, of the pool and
 * of the timer, and what follows from each.
 */


/*
 * Registers the handlers of a new request with its parts.  NGX_OK or
 * NGX_ERROR.
 */
ngx_int_t ngx_http_dsa_events_init(ngx_http_dsa_request_t *req);

/*
 * Submits a request that is encoded, or ends it if there is no engine for it.
 * The request may be gone afterwards.
 */
void ngx_http_dsa_events_submit(ngx_http_dsa_request_t *req);


#endif /* _NGX_HTTP_DSA_EVENTS_H_INCLUDED_ */
