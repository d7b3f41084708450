
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_CLOSED_H_INCLUDED_
#define _NGX_HTTP_DSA_CLOSED_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * Makes nginx call the handler when the client closes the connection or resets
 * the stream.  The client may have done so while its body was read.  NGX_OK or
 * NGX_ERROR.
 */
ngx_int_t ngx_http_dsa_closed_watch(ngx_http_request_t *r,
    ngx_http_event_handler_pt handler);

/*
 * From that handler: returns 1 if the client has left, which is logged, and the
 * connection is marked as failed.  ngx_http_test_reading() does the same and
 * finalizes the request at once.
 */
ngx_uint_t ngx_http_dsa_closed(ngx_http_request_t *r);


#endif /* _NGX_HTTP_DSA_CLOSED_H_INCLUDED_ */
