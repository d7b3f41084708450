
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_CORS_H_INCLUDED_
#define _NGX_HTTP_DSA_CORS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * Cross-origin requests of web pages (the CORS protocol of fetch.spec.whatwg.
 * org).  A browser sends the request of a page only after a preflight request
 * has permitted it, and lets the page read the response only if its headers
 * name the origin of the page.  Credentials that a browser adds by itself
 * (cookies, passwords, certificates) are not permitted: a page sends its key
 * in a header.
 */


/* The directive dsa_cors; conf is the ngx_http_dsa_loc_conf_t. */
char *ngx_http_dsa_cors_directive(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/*
 * The handler of the rewrite phase: answers a preflight request to a location
 * of dsa_pass before the access phase, because a browser sends no key with it.
 * NGX_DECLINED for any other request.
 */
ngx_int_t ngx_http_dsa_cors_handler(ngx_http_request_t *r);

/*
 * Adds the CORS headers to a response of a location of dsa_pass, whatever its
 * status.  NGX_OK, or NGX_ERROR: out of memory.
 */
ngx_int_t ngx_http_dsa_cors_headers(ngx_http_request_t *r);


#endif /* _NGX_HTTP_DSA_CORS_H_INCLUDED_ */
