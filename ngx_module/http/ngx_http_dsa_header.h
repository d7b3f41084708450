
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_HEADER_H_INCLUDED_
#define _NGX_HTTP_DSA_HEADER_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * Returns the last header of this name, in any case, from the headers of a
 * request or of a response, and sets *n to the number of headers of this name.
 * NULL and 0: there is none.  A header with a hash of 0 was removed.
 */
ngx_table_elt_t *ngx_http_dsa_header_find(ngx_list_t *headers,
    const char *name, ngx_uint_t *n);

/* Adds a response header.  name is static; the bytes of value outlive r. */
ngx_int_t ngx_http_dsa_header_add(ngx_http_request_t *r, const char *name,
    const ngx_str_t *value);


#endif /* _NGX_HTTP_DSA_HEADER_H_INCLUDED_ */
