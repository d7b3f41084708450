
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_BALANCE_H_INCLUDED_
#define _NGX_HTTP_DSA_BALANCE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * ".../user/balance", as DeepSeek has it: what is left of the hard total budget
 * of the request's key.  Without such a budget, and without dsa_keys, there is
 * no amount.  is_available: no hard budget of the key is spent.
 */

/* Whether the path of a request is that of the balance. */
ngx_uint_t ngx_http_dsa_balance_find(ngx_http_request_t *r);

/* The request was permitted by ngx_http_dsa_access(). */
ngx_int_t ngx_http_dsa_balance_handler(ngx_http_request_t *r);


#endif /* _NGX_HTTP_DSA_BALANCE_H_INCLUDED_ */
