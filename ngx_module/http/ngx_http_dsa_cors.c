
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_module/core/ngx_http_dsa_conf.h"
#include "ngx_http_dsa_cors.h"
#include "ngx_http_dsa_header.h"
#include "ngx_http_dsa_reply.h"


static const char *ngx_http_dsa_cors_origin_fault(const ngx_str_t *origin);
static ngx_table_elt_t *ngx_http_dsa_cors_header(ngx_http_request_t *r,
    const char *name);
static ngx_int_t ngx_http_dsa_cors_preflight(ngx_http_request_t *r);
static ngx_uint_t ngx_http_dsa_cors_allowed(const ngx_array_t *origins,
    const ngx_str_t *origin);
static ngx_uint_t ngx_http_dsa_cors_any(const ngx_array_t *origins);


/* the response headers that a page may read besides the safelisted ones */

static const ngx_str_t  ngx_http_dsa_cors_exposed = ngx_string(
    "Retry-After, request-id, x-request-id, Idempotent-Replayed, "
    "X-Should-Retry, "
    "x-ratelimit-limit-requests, x-ratelimit-limit-tokens, "
    "x-ratelimit-remaining-requests, x-ratelimit-remaining-tokens, "
    "x-ratelimit-reset-requests, x-ratelimit-reset-tokens");


char *
ngx_http_dsa_cors_directive(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_dsa_loc_conf_t *dlcf = conf;

    ngx_str_t    *value, *origin;
    ngx_uint_t    i, alone;
    const char   *fault;

    if (dlcf->cors != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    dlcf->cors = ngx_array_create(cf->pool, cf->args->nelts - 1,
                                  sizeof(ngx_str_t));
    if (dlcf->cors == NULL) {
        return NGX_CONF_ERROR;
    }

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {
        alone = ngx_strcmp(value[i].data, "*") == 0
                || ngx_strcmp(value[i].data, "off") == 0;
        fault = NULL;

        if (!alone) {
            fault = ngx_http_dsa_cors_origin_fault(&value[i]);

        } else if (cf->args->nelts != 2) {
            fault = "is given with other values; expected it alone";
        }

        if (fault != NULL) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "dsa_cors: \"%V\" %s",
                               &value[i], fault);
            return NGX_CONF_ERROR;
        }

        if (ngx_strcmp(value[i].data, "off") == 0) {
            continue;
        }

        origin = ngx_array_push(dlcf->cors);
        if (origin == NULL) {
            return NGX_CONF_ERROR;
        }

        *origin = value[i];
    }

    return NGX_CONF_OK;
}


/*
 * A browser sends SCHEME://HOST or SCHEME://HOST:PORT in lower case, or "null"
 * for a page without an origin.  Any other value would never match.
 */

static const char *
ngx_http_dsa_cors_origin_fault(const ngx_str_t *origin)
{
    size_t   i;
    u_char  *host;

    host = (u_char *) ngx_strstr(origin->data, "://");

    if (host == NULL || host == origin->data) {
        return "is not an origin; expected \"*\", \"off\" or a value such as "
               "\"https://app.example.com\"";
    }

    for (i = 0; i < origin->len; i++) {
        if (origin->data[i] >= 'A' && origin->data[i] <= 'Z') {
            return "has a capital letter; expected the origin in lower case, "
                   "as browsers send it";
        }
    }

    host += sizeof("://") - 1;

    if (*host == '\0' || ngx_strchr(host, '/') != NULL) {
        return "is not an origin; expected a scheme and a host, without a "
               "path or a slash at the end";
    }

    return NULL;
}


ngx_int_t
ngx_http_dsa_cors_handler(ngx_http_request_t *r)
{
    ngx_table_elt_t          *origin;
    ngx_http_dsa_loc_conf_t  *dlcf;

    dlcf = ngx_http_get_module_loc_conf(r, ngx_http_dsa_module);

    if (r->method != NGX_HTTP_OPTIONS || dlcf->pool == NULL
        || dlcf->cors->nelts == 0 || r != r->main
        || ngx_http_dsa_cors_header(r, "Access-Control-Request-Method")
           == NULL)
    {
        return NGX_DECLINED;
    }

    origin = ngx_http_dsa_cors_header(r, "Origin");

    if (origin == NULL) {
        return NGX_DECLINED;
    }

    if (!ngx_http_dsa_cors_allowed(dlcf->cors, &origin->value)) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_FORBIDDEN, NULL,
                                       "Web pages of this origin are not "
                                       "allowed here; expected an origin "
                                       "that dsa_cors of the server lists.");
    }

    return ngx_http_dsa_cors_preflight(r);
}


/* Returns the header if the request has exactly one of this name, or NULL. */

static ngx_table_elt_t *
ngx_http_dsa_cors_header(ngx_http_request_t *r, const char *name)
{
    ngx_uint_t        n;
    ngx_table_elt_t  *h;

    h = ngx_http_dsa_header_find(&r->headers_in.headers, name, &n);

    return n == 1 ? h : NULL;
}


static ngx_int_t
ngx_http_dsa_cors_preflight(ngx_http_request_t *r)
{
    ngx_int_t         rc;
    ngx_table_elt_t  *requested;

    static const ngx_str_t  methods = ngx_string("GET, POST, DELETE");
    static const ngx_str_t  max_age = ngx_string("7200");

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    /*
     * The requested headers are permitted as they are, because SDKs add
     * headers of their own, such as x-stainless-os.
     */

    requested = ngx_http_dsa_cors_header(r, "Access-Control-Request-Headers");

    if (ngx_http_dsa_header_add(r, "Access-Control-Allow-Methods", &methods)
        != NGX_OK
        || ngx_http_dsa_header_add(r, "Access-Control-Max-Age", &max_age)
           != NGX_OK
        || (requested != NULL
            && ngx_http_dsa_header_add(r, "Access-Control-Allow-Headers",
                                       &requested->value)
               != NGX_OK))
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->headers_out.status = NGX_HTTP_NO_CONTENT;

    ngx_http_clear_content_length(r);

    return ngx_http_send_header(r);
}


ngx_int_t
ngx_http_dsa_cors_headers(ngx_http_request_t *r)
{
    ngx_uint_t                any;
    ngx_table_elt_t          *origin;
    const ngx_str_t          *vary;
    ngx_http_dsa_loc_conf_t  *dlcf;

    static const ngx_str_t  star = ngx_string("*");
    static const ngx_str_t  vary_origin = ngx_string("Origin");
    static const ngx_str_t  vary_preflight = ngx_string(
        "Origin, Access-Control-Request-Method, "
        "Access-Control-Request-Headers");

    dlcf = ngx_http_get_module_loc_conf(r, ngx_http_dsa_module);

    if (dlcf->cors->nelts == 0) {
        return NGX_OK;
    }

    any = ngx_http_dsa_cors_any(dlcf->cors);

    /*
     * Also without an Origin, because a cache may use the answer for another
     * origin.
     */

    vary = r->method == NGX_HTTP_OPTIONS ? &vary_preflight : &vary_origin;

    if (ngx_http_dsa_header_add(r, "Vary", vary) != NGX_OK) {
        return NGX_ERROR;
    }

    origin = ngx_http_dsa_cors_header(r, "Origin");

    if (origin == NULL
        || !ngx_http_dsa_cors_allowed(dlcf->cors, &origin->value))
    {
        return NGX_OK;
    }

    if (ngx_http_dsa_header_add(r, "Access-Control-Allow-Origin",
                                any ? &star : &origin->value)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_dsa_header_add(r, "Access-Control-Expose-Headers",
                                   &ngx_http_dsa_cors_exposed);
}


static ngx_uint_t
ngx_http_dsa_cors_allowed(const ngx_array_t *origins, const ngx_str_t *origin)
{
    ngx_str_t   *allowed;
    ngx_uint_t   i;

    if (ngx_http_dsa_cors_any(origins)) {
        return 1;
    }

    allowed = origins->elts;

    for (i = 0; i < origins->nelts; i++) {
        if (allowed[i].len == origin->len
            && ngx_memcmp(allowed[i].data, origin->data, origin->len) == 0)
        {
            return 1;
        }
    }

    return 0;
}


/* Returns 1 for "dsa_cors *", whose list has this one element. */

static ngx_uint_t
ngx_http_dsa_cors_any(const ngx_array_t *origins)
{
    ngx_str_t  *first;

    first = origins->elts;

    return first[0].len == 1 && first[0].data[0] == '*';
}
