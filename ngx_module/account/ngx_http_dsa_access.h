
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_ACCESS_H_INCLUDED_
#define _NGX_HTTP_DSA_ACCESS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_module/api/ngx_http_dsa_api.h"

#include "ngx_module/core/ngx_http_dsa_failure.h"
#include "ngx_module/http/ngx_http_dsa_identity.h"
#include "ngx_http_dsa_keys.h"


/*
 * What a request with a key may do.  Without dsa_keys these functions permit
 * everything.
 */


/*
 * The key of a request; it belongs to the request's pool, and outlives internal
 * redirects.
 */

typedef struct {
    ngx_http_dsa_keys_t       *keys;
    ngx_http_dsa_key_t        *key;         /* NULL until the request has
                                               a valid one */
    ngx_http_dsa_key_ref_t     ref;         /* keeps key while permit is NULL */
    ngx_http_dsa_permit_t     *permit;      /* of a chat, until it is moved to
                                               the usage record */
    ngx_http_dsa_key_view_t    view;        /* valid if key is set */
    u_char                     digest[NGX_HTTP_DSA_KEYS_DIGEST];
    ngx_msec_t                 waited;      /* since then, for what the key has
                                               spent; 0: it did not wait */
    unsigned                   given:1;     /* digest is set */
    unsigned                   stored:1;    /* _access_stored() has charged it
                                               */
} ngx_http_dsa_access_t;


/*
 * The handler of the access phase.  In a location of dsa_pass with "satisfy
 * any", a valid key is one of the alternatives, so the handler refuses an
 * invalid one there.  Elsewhere only the content handler refuses, with an
 * error in the format of the API.  If what the key has spent is not known and
 * can be read, the request waits for it, up to a second.
 */
ngx_int_t ngx_http_dsa_access_handler(ngx_http_request_t *r);

/*
 * Called at the beginning of each content handler of dsa_pass.  NGX_OK,
 * NGX_DECLINED with a failure (400, 401, 402, 429 or 503), or NGX_ERROR.
 * Wipes the header with the key.  api: the API of a chat, or NULL for other
 * requests.  A chat reserves its part of the key's limits here, before its
 * body is read.
 */
ngx_int_t ngx_http_dsa_access(ngx_http_request_t *r,
    const ngx_http_dsa_api_t *api, ngx_http_dsa_failure_t *failure);

/*
 * Charges the key of a request for conversations or stored responses, once.
 * NGX_OK, NGX_DECLINED with a failure (429), or NGX_ERROR.
 */
ngx_int_t ngx_http_dsa_access_stored(ngx_http_request_t *r,
    ngx_http_dsa_failure_t *failure);

/*
 * Ends what a chat has reserved, if the chat is refused before it has a usage
 * record.  It is called before the refusal is sent, because the client may send
 * its next request as soon as it has the answer.
 */
void ngx_http_dsa_access_release(ngx_http_request_t *r);

/* Returns the key of a request that was permitted; NULL without dsa_keys. */
ngx_http_dsa_access_t *ngx_http_dsa_access_find(ngx_http_request_t *r);

/* Returns 1 if the key of the request permits the model. */
ngx_uint_t ngx_http_dsa_access_permits(ngx_http_request_t *r,
    const ngx_str_t *model);

/* NGX_OK, or NGX_DECLINED with a 403 in failure. */
ngx_int_t ngx_http_dsa_access_model(ngx_http_request_t *r,
    const ngx_str_t *model, ngx_http_dsa_failure_t *failure);

/*
 * Finds the tenant of a request that was permitted: the tenant of its key, or
 * without dsa_keys the result of ngx_http_dsa_identify().
 */
ngx_int_t ngx_http_dsa_access_tenant(ngx_http_request_t *r,
    ngx_http_complex_value_t *value, ngx_str_t *tenant,
    u_char digest[NGX_HTTP_DSA_DIGEST_LEN], const char **why);

/* the text of the 403 for an endpoint that needs a tenant */
extern const char  ngx_http_dsa_no_tenant[];


#endif /* _NGX_HTTP_DSA_ACCESS_H_INCLUDED_ */
