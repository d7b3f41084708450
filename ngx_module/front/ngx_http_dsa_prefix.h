
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_PREFIX_H_INCLUDED_
#define _NGX_HTTP_DSA_PREFIX_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * The value of $dsa_prefix: 32 hexadecimal digits that are equal for the
 * requests of one conversation (context/affinity.h) and differ between tenants.
 * It is evaluated at once, from the first DSA_AFFINITY_SCAN bytes of a body in
 * memory.  For a body in a file, compressed, not read yet or not of JSON, it
 * depends on the tenant alone.  data is not used.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_dsa_prefix_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


#endif /* _NGX_HTTP_DSA_PREFIX_H_INCLUDED_ */
