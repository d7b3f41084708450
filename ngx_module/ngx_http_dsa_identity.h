
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
 * Finds the tenant that a request belongs to.  This identifies the caller and
 * does not authenticate it.  value: of dsa_tenant, or NULL.  Call it only from
 * a content handler: before the access phase has ended, a variable like
 * $remote_user is what the client claims.
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

/* The name of a tenant: the hexadecimal form of the beginning of its digest. */
ngx_int_t ngx_http_dsa_identity_name(ngx_http_request_t *r,
    const u_char digest[NGX_HTTP_DSA_DIGEST_LEN], ngx_str_t *tenant);

/*
 * The key of a request for dsa_keys: of "Authorization: Bearer KEY", or else of
 * x-api-key, or else the whole value of Authorization.  The bytes are those of
 * the header.  NGX_OK: key may be empty; NGX_DECLINED: *why, as above.
 */
ngx_int_t ngx_http_dsa_identity_text(ngx_http_request_t *r, ngx_str_t *key,
    const char **why);

/*
 * Overwrites the values of the headers that may have a key, and makes them
 * empty.  A value of Authorization with the scheme Basic remains, because it
 * belongs to another access module, and to $remote_user.
 */
void ngx_http_dsa_identity_wipe(ngx_http_request_t *r);


#endif /* _NGX_HTTP_DSA_IDENTITY_H_INCLUDED_ */
