
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_ACCESS_H_INCLUDED_
#define _NGX_HTTP_DSA_ACCESS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "api/ngx_http_dsa_api.h"

#include "ngx_http_dsa_failure.h"
#include "ngx_http_dsa_identity.h"
#include "ngx_http_dsa_keys.h"


/*
 * What a request with a key may do.  Without dsa_keys everyone is served, and
 * these functions permit everything.
 */


/*
 * The key of a request; it belongs to the request's pool, and outlives internal
 * redirects.
 */

typedef struct {
    ngx_http_dsa_keys_t       *keys;
    ngx_http_dsa_key_t        *key;         /* NULL until the request has
                                               a valid one */
    ngx_http_dsa_key_ref_t     ref;         /* keeps key, unless it is hold */
    ngx_http_dsa_hold_t       *hold;        /* of a chat, until its usage
                                               record has it */
    ngx_http_dsa_key_view_t    view;        /* if there is a key */
    u_char                     digest[NGX_HTTP_DSA_KEYS_DIGEST];
    unsigned                   given:1;     /* digest is that of its key */
} ngx_http_dsa_access_t;


/*
 * The handler of the access phase.  In a location of dsa_pass a valid key is
 * one condition of "satisfy any".  This handler refuses only there, because the
 * content handler refuses in any case, in the shape of the API.
 */
ngx_int_t ngx_http_dsa_access_handler(ngx_http_request_t *r);

/*
 * At the beginning of each content handler of dsa_pass: NGX_OK, or NGX_DECLINED
 * with a failure (400, 401, 402, 429 or 503), or NGX_ERROR.  From then on the
 * header that had the key is empty.  api: of a chat, or NULL.  A chat reserves
 * what it needs of the key's limits here, before its body is read.
 */
ngx_int_t ngx_http_dsa_access(ngx_http_request_t *r,
    const ngx_http_dsa_api_t *api, ngx_http_dsa_failure_t *failure);

/* The key of a request that was permitted; NULL: dsa_keys is not configured. */
ngx_http_dsa_access_t *ngx_http_dsa_access_find(ngx_http_request_t *r);

/* 1: the key of the request permits the model. */
ngx_uint_t ngx_http_dsa_access_permits(ngx_http_request_t *r,
    const ngx_str_t *model);

/* NGX_OK, or NGX_DECLINED with a 403 in failure. */
ngx_int_t ngx_http_dsa_access_model(ngx_http_request_t *r,
    const ngx_str_t *model, ngx_http_dsa_failure_t *failure);

/*
 * The tenant of a request that was permitted: that of its key, or as
 * ngx_http_dsa_identify() finds it.
 */
ngx_int_t ngx_http_dsa_access_tenant(ngx_http_request_t *r,
    ngx_http_complex_value_t *value, ngx_str_t *tenant,
    u_char digest[NGX_HTTP_DSA_DIGEST_LEN], const char **why);


#endif /* _NGX_HTTP_DSA_ACCESS_H_INCLUDED_ */
