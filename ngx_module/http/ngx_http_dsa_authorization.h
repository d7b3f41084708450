
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_AUTHORIZATION_H_INCLUDED_
#define _NGX_HTTP_DSA_AUTHORIZATION_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * nginx refuses a request with two headers Authorization, and logs the values
 * of both at the level info: two API keys.  This replaces the handler of the
 * header for all servers of this configuration with one that refuses such a
 * request as well and logs no value.  Call it in postconfiguration.  NGX_OK or
 * NGX_ERROR.
 */
ngx_int_t ngx_http_dsa_authorization_init(ngx_conf_t *cf);


#endif /* _NGX_HTTP_DSA_AUTHORIZATION_H_INCLUDED_ */
