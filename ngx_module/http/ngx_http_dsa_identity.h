
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_IDENTITY_H_INCLUDED_
#define _NGX_HTTP_DSA_IDENTITY_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


#define NGX_HTTP_DSA_TENANT_LEN   32        /* hex digits */
#define NGX_HTTP_DSA_DIGEST_LEN   32        /* bytes of a SHA-256 */


/*
 * Finds the tenant of a request.  This identifies the caller and does not
 * authenticate it.  value: of dsa_tenant, or NULL.  Call it only from a
 * content handler, because before the end of the access phase a variable such
 * as $remote_user is not verified.
 *
 * NGX_OK: digest is set, and tenant is the hexadecimal form of its beginning,
 * in the request's pool.  If value is empty for this request, the request has
 * no tenant: tenant is empty, and digest is that of a caller without a key.
 * NGX_DECLINED: the request is ambiguous and gets a 400 with *why, which is
 * static.  NGX_ERROR: out of memory, or the digest failed.
 */
ngx_int_t ngx_http_dsa_identify(ngx_http_request_t *r,
    ngx_http_complex_value_t *value, ngx_str_t *tenant,
    u_char digest[NGX_HTTP_DSA_DIGEST_LEN], const char **why);

/*
 * Makes the name of a tenant: the hexadecimal form of the beginning of its
 * digest.
 */
ngx_int_t ngx_http_dsa_identity_name(ngx_http_request_t *r,
    const u_char digest[NGX_HTTP_DSA_DIGEST_LEN], ngx_str_t *tenant);

/*
 * Finds the key of a request for dsa_keys: of "Authorization: Bearer KEY", or
 * else of x-api-key, or else the whole value of Authorization.  key points
 * into the header.  NGX_OK: key may be empty; NGX_DECLINED: *why, as above.
 */
ngx_int_t ngx_http_dsa_identity_text(ngx_http_request_t *r, ngx_str_t *key,
    const char **why);

/*
 * Overwrites the values of the headers that may have a key, and sets their
 * lengths to 0.  A value of Authorization with the scheme Basic remains,
 * because another access module and $remote_user need it.
 */
void ngx_http_dsa_identity_wipe(ngx_http_request_t *r);


#endif /* _NGX_HTTP_DSA_IDENTITY_H_INCLUDED_ */
