
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <assert.h>

#include "ngx_module/api/ngx_http_dsa_anthropic_error.h"

#include "ngx_module/core/ngx_http_dsa_conf.h"
#include "ngx_http_dsa_access.h"


/*
 * The reason is given only for a key in the zone.  A request with any other
 * key gets the first text, so it does not reveal whether the key ever existed.
 */

#define NGX_HTTP_DSA_ACCESS_INVALID   "The API key is not valid."
#define NGX_HTTP_DSA_ACCESS_ROTATED   "The API key was replaced by a new one."
#define NGX_HTTP_DSA_ACCESS_EXPIRED   "The API key has expired."
#define NGX_HTTP_DSA_ACCESS_DISABLED  "The API key is disabled."
#define NGX_HTTP_DSA_ACCESS_REVOKED   "The API key was revoked."
#define NGX_HTTP_DSA_ACCESS_NONE                                              \
    "The request has no API key; expected \"Authorization: Bearer KEY\" or "  \
    "\"x-api-key: KEY\"."


/* ms; a request waits until what its key has spent is known */

#define NGX_HTTP_DSA_ACCESS_WAIT      1000
#define NGX_HTTP_DSA_ACCESS_POLL      10


static ngx_int_t ngx_http_dsa_access_wait(ngx_http_request_t *r);
static void ngx_http_dsa_access_resume(ngx_http_request_t *r);
static ngx_int_t ngx_http_dsa_access_reserve(ngx_http_request_t *r,
    const ngx_http_dsa_api_t *api, ngx_http_dsa_failure_t *failure);
static ngx_int_t ngx_http_dsa_access_check(ngx_http_request_t *r,
    ngx_http_dsa_keys_t *keys, ngx_http_dsa_failure_t *failure);
static ngx_http_dsa_access_t *ngx_http_dsa_access_create(
    ngx_http_request_t *r, ngx_http_dsa_keys_t *keys);
static ngx_int_t ngx_http_dsa_access_given(ngx_http_request_t *r,
    ngx_http_dsa_access_t *access, ngx_http_dsa_failure_t *failure);
static const char *ngx_http_dsa_access_invalid(
    const ngx_http_dsa_key_view_t *view);
static void ngx_http_dsa_access_cleanup(void *data);


const char  ngx_http_dsa_no_tenant[] =
    "Conversations are not available to this request, because the server has "
    "identified no tenant for it: the value of dsa_tenant is empty.";


ngx_int_t
ngx_http_dsa_access_handler(ngx_http_request_t *r)
{
    ngx_int_t                  rc;
    ngx_http_dsa_failure_t     failure;
    ngx_http_dsa_loc_conf_t   *dlcf;
    ngx_http_core_loc_conf_t  *clcf;
    ngx_http_dsa_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_dsa_module);
    dlcf = ngx_http_get_module_loc_conf(r, ngx_http_dsa_module);

    if (mcf->keys == NULL || dlcf->pool == NULL) {
        return NGX_DECLINED;
    }

    ngx_memzero(&failure, sizeof(ngx_http_dsa_failure_t));

    rc = ngx_http_dsa_access_check(r, mcf->keys, &failure);

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (rc == NGX_OK && ngx_http_dsa_access_wait(r) != NGX_OK) {
        return NGX_AGAIN;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (clcf->satisfy != NGX_HTTP_SATISFY_ANY) {
        return NGX_DECLINED;
    }

    if (rc == NGX_DECLINED && failure.status == NGX_HTTP_UNAUTHORIZED) {
        return NGX_HTTP_UNAUTHORIZED;
    }

    return rc;
}


/*
 * A key that is new on this host has sums in Redis that this host does not know
 * yet.  They arrive within milliseconds, so the request is not refused at once.
 * NGX_OK: it goes on; NGX_AGAIN: the phase is run again later.
 */

static ngx_int_t
ngx_http_dsa_access_wait(ngx_http_request_t *r)
{
    ngx_event_t            *wev;
    ngx_http_dsa_access_t  *access;

    if (r != r->main) {
        return NGX_OK;
    }

    wev = r->connection->write;
    access = ngx_http_dsa_access_find(r);

    if (!ngx_http_dsa_limit_pending(ngx_http_dsa_keys_limits(access->keys),
                                    &access->key->limit))
    {
        return NGX_OK;
    }

    if (access->waited == 0) {
        access->waited = ngx_current_msec;

    } else if (ngx_current_msec - access->waited > NGX_HTTP_DSA_ACCESS_WAIT) {
        return NGX_OK;
    }

    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_dsa_access_resume;

    wev->delayed = 1;
    ngx_add_timer(wev, NGX_HTTP_DSA_ACCESS_POLL);

    return NGX_AGAIN;
}


static void
ngx_http_dsa_access_resume(ngx_http_request_t *r)
{
    ngx_event_t  *wev;

    wev = r->connection->write;

    if (wev->delayed) {

        if (ngx_handle_write_event(wev, 0) != NGX_OK) {
            ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        }

        return;
    }

    r->read_event_handler = ngx_http_block_reading;
    r->write_event_handler = ngx_http_core_run_phases;

    ngx_http_core_run_phases(r);
}


ngx_int_t
ngx_http_dsa_access(ngx_http_request_t *r, const ngx_http_dsa_api_t *api,
    ngx_http_dsa_failure_t *failure)
{
    ngx_int_t                  rc;
    ngx_http_dsa_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_dsa_module);

    if (mcf->keys == NULL) {
        return NGX_OK;
    }

    rc = ngx_http_dsa_access_check(r, mcf->keys, failure);

    ngx_http_dsa_identity_wipe(r);

    if (rc != NGX_OK || api == NULL) {
        return rc;
    }

    return ngx_http_dsa_access_reserve(r, api, failure);
}


/*
 * Reserves what the key's limits require, once for a request: a second call,
 * after an internal redirect, reserves nothing more.
 */

static ngx_int_t
ngx_http_dsa_access_reserve(ngx_http_request_t *r,
    const ngx_http_dsa_api_t *api, ngx_http_dsa_failure_t *failure)
{
    ngx_int_t                   rc;
    ngx_http_dsa_access_t      *access;
    ngx_http_dsa_limit_view_t   view;

    access = ngx_http_dsa_access_find(r);

    if (access->permit != NULL) {
        return NGX_OK;
    }

    access->permit = ngx_http_dsa_limit_permit(r);

    if (access->permit == NULL) {
        return NGX_ERROR;
    }

    rc = ngx_http_dsa_limit_reserve(access->permit,
                                    ngx_http_dsa_keys_limits(access->keys),
                                    &access->key->limit, &view);

    if (rc == NGX_OK) {

        /*
         * From here on the permit keeps the key.  The reference is released,
         * because it would also keep all keys that are removed while the chat
         * runs.
         */

        ngx_http_dsa_keys_unref(access->keys, &access->ref);

    } else {
        access->permit = NULL;
        ngx_http_dsa_limit_failure(&view, failure);
    }

    if (ngx_http_dsa_limit_headers(r, &view,
                                   api->error == ngx_http_dsa_anthropic_error)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return rc;
}


ngx_int_t
ngx_http_dsa_access_stored(ngx_http_request_t *r,
    ngx_http_dsa_failure_t *failure)
{
    ngx_int_t                   rc;
    ngx_http_dsa_access_t      *access;
    ngx_http_dsa_limit_view_t   view;

    access = ngx_http_dsa_access_find(r);

    if (access == NULL || access->stored) {
        return NGX_OK;
    }

    assert(access->key != NULL);

    rc = ngx_http_dsa_limit_stored(ngx_http_dsa_keys_limits(access->keys),
                                   &access->key->limit,
                                   r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD),
                                   &view);

    if (rc == NGX_OK) {
        access->stored = 1;

    } else {
        ngx_http_dsa_limit_failure(&view, failure);
    }

    if (ngx_http_dsa_limit_headers(r, &view, 0) != NGX_OK) {
        return NGX_ERROR;
    }

    return rc;
}


/* Checks the key.  NGX_OK, NGX_DECLINED with a failure, or NGX_ERROR. */

static ngx_int_t
ngx_http_dsa_access_check(ngx_http_request_t *r, ngx_http_dsa_keys_t *keys,
    ngx_http_dsa_failure_t *failure)
{
    ngx_int_t               rc;
    const char             *why;
    ngx_http_dsa_access_t  *access;

    access = ngx_http_dsa_access_find(r);

    if (access == NULL) {
        access = ngx_http_dsa_access_create(r, keys);

        if (access == NULL) {
            return NGX_ERROR;
        }
    }

    if (access->key != NULL) {
        return NGX_OK;
    }

    rc = ngx_http_dsa_access_given(r, access, failure);

    if (rc != NGX_OK) {
        return rc;
    }

    rc = ngx_http_dsa_keys_find(keys, access->digest, &access->ref,
                                &access->view, &why);

    if (rc == NGX_AGAIN) {
        ngx_http_dsa_failure_set(failure, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                 "The server cannot check the API key now, "
                                 "because %s. Try again later.", why);
        return NGX_DECLINED;
    }

    why = rc == NGX_OK ? ngx_http_dsa_access_invalid(&access->view)
                       : NGX_HTTP_DSA_ACCESS_INVALID;

    if (why != NULL) {
        ngx_http_dsa_keys_unref(keys, &access->ref);

        ngx_http_dsa_failure_set(failure, NGX_HTTP_UNAUTHORIZED, NULL, "%s",
                                 why);
        return NGX_DECLINED;
    }

    access->key = access->ref.key;

    return NGX_OK;
}


static ngx_http_dsa_access_t *
ngx_http_dsa_access_create(ngx_http_request_t *r, ngx_http_dsa_keys_t *keys)
{
    ngx_pool_cleanup_t     *cln;
    ngx_http_dsa_access_t  *access;

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_dsa_access_t));
    if (cln == NULL) {
        return NULL;
    }

    cln->handler = ngx_http_dsa_access_cleanup;

    access = cln->data;
    ngx_memzero(access, sizeof(ngx_http_dsa_access_t));
    access->keys = keys;

    return access;
}


/*
 * Computes the digest of the key, which later handlers need after the header
 * was wiped.
 */

static ngx_int_t
ngx_http_dsa_access_given(ngx_http_request_t *r,
    ngx_http_dsa_access_t *access, ngx_http_dsa_failure_t *failure)
{
    ngx_int_t    rc;
    ngx_str_t    text;
    const char  *why;

    if (access->given) {
        return NGX_OK;
    }

    rc = ngx_http_dsa_identity_text(r, &text, &why);

    if (rc == NGX_DECLINED) {
        ngx_http_dsa_failure_set(failure, NGX_HTTP_BAD_REQUEST, NULL, "%s",
                                 why);
        return NGX_DECLINED;
    }

    if (text.len == 0) {
        ngx_http_dsa_failure_set(failure, NGX_HTTP_UNAUTHORIZED, NULL, "%s",
                                 NGX_HTTP_DSA_ACCESS_NONE);
        return NGX_DECLINED;
    }

    dsa_key_hash(access->digest, dsa_str(text.data, text.len));
    access->given = 1;

    return NGX_OK;
}


/* Returns why a key in the zone is not valid now, or NULL if it is valid. */

static const char *
ngx_http_dsa_access_invalid(const ngx_http_dsa_key_view_t *view)
{
    if (view->state == DSA_KEY_REVOKED) {
        return NGX_HTTP_DSA_ACCESS_REVOKED;
    }

    if (view->state != DSA_KEY_ACTIVE) {
        return NGX_HTTP_DSA_ACCESS_DISABLED;
    }

    if (view->expires != 0 && ngx_time() >= view->expires) {
        return NGX_HTTP_DSA_ACCESS_EXPIRED;
    }

    if (view->old_until != 0 && ngx_time() >= view->old_until) {
        return NGX_HTTP_DSA_ACCESS_ROTATED;
    }

    return NULL;
}


ngx_http_dsa_access_t *
ngx_http_dsa_access_find(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t  *cln;

    for (cln = r->pool->cleanup; cln != NULL; cln = cln->next) {
        if (cln->handler == ngx_http_dsa_access_cleanup) {
            return cln->data;
        }
    }

    return NULL;
}


static void
ngx_http_dsa_access_cleanup(void *data)
{
    ngx_http_dsa_access_t *access = data;

    ngx_http_dsa_keys_unref(access->keys, &access->ref);
}


void
ngx_http_dsa_access_release(ngx_http_request_t *r)
{
    ngx_http_dsa_access_t  *access;

    access = ngx_http_dsa_access_find(r);

    if (access != NULL && access->permit != NULL) {
        ngx_http_dsa_limit_end(access->permit, 0, 0);
    }
}


ngx_uint_t
ngx_http_dsa_access_permits(ngx_http_request_t *r, const ngx_str_t *model)
{
    ngx_http_dsa_access_t  *access;

    access = ngx_http_dsa_access_find(r);

    if (access == NULL) {
        return 1;
    }

    assert(access->key != NULL);

    return ngx_http_dsa_keys_model(access->keys, access->key, model);
}


ngx_int_t
ngx_http_dsa_access_model(ngx_http_request_t *r, const ngx_str_t *model,
    ngx_http_dsa_failure_t *failure)
{
    if (ngx_http_dsa_access_permits(r, model)) {
        return NGX_OK;
    }

    ngx_http_dsa_failure_set(failure, NGX_HTTP_FORBIDDEN, "model",
                             "The API key does not permit this model. GET "
                             "/models lists those that it permits.");
    failure->code = "model_not_found";

    return NGX_DECLINED;
}


ngx_int_t
ngx_http_dsa_access_tenant(ngx_http_request_t *r,
    ngx_http_complex_value_t *value, ngx_str_t *tenant,
    u_char digest[NGX_HTTP_DSA_DIGEST_LEN], const char **why)
{
    ngx_http_dsa_access_t  *access;

    access = ngx_http_dsa_access_find(r);

    if (access == NULL) {
        return ngx_http_dsa_identify(r, value, tenant, digest, why);
    }

    assert(access->key != NULL);

    ngx_memcpy(digest, access->view.tenant, NGX_HTTP_DSA_DIGEST_LEN);

    return ngx_http_dsa_identity_name(r, digest, tenant);
}


_Static_assert(NGX_HTTP_DSA_DIGEST_LEN == NGX_HTTP_DSA_KEYS_DIGEST,
               "the digest of a tenant is a SHA-256");
