
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_CONSOLE_H_INCLUDED_
#define _NGX_HTTP_DSA_CONSOLE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * dsa_console: one page with a chat and a dashboard.  console/embed compiles
 * the files of console/ into the module as this page.
 */

typedef struct ngx_http_dsa_page_s  ngx_http_dsa_page_t;


/*
 * Makes the page of a location, with the name of its pool in it.  The page is
 * allocated from cf->pool.  NULL: no memory, which is logged.
 */
ngx_http_dsa_page_t *ngx_http_dsa_console_create(ngx_conf_t *cf,
    const ngx_str_t *pool);

/* The content handler: GET and HEAD, 304 if the client has this page. */
ngx_int_t ngx_http_dsa_console_handler(ngx_http_request_t *r);


#endif /* _NGX_HTTP_DSA_CONSOLE_H_INCLUDED_ */
