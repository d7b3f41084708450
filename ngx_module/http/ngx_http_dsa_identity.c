
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <openssl/evp.h>

#include "ngx_http_dsa_header.h"
#include "ngx_http_dsa_identity.h"


/*
 * A key is a secret, so it is hashed alone, and the same key in either header
 * is the same tenant.  The fingerprint of a certificate and a value of
 * dsa_tenant are public, so a label with a NUL byte is hashed before them.
 * Without the label, "Bearer FINGERPRINT" would be the tenant of the
 * certificate.  No header can contain a NUL byte.
 */

static const u_char  ngx_http_dsa_label_value[] = "\0dsa_tenant";
static const u_char  ngx_http_dsa_label_certificate[] = "\0certificate";


static ngx_int_t ngx_http_dsa_identity_key(ngx_http_request_t *r,
    ngx_str_t *key, const char **why);
static ngx_int_t ngx_http_dsa_identity_headers(ngx_http_request_t *r,
    ngx_str_t *authorization, ngx_str_t *other, const char **why);
static ngx_uint_t ngx_http_dsa_identity_scheme(ngx_str_t *value,
    const char *scheme);
static ngx_int_t ngx_http_dsa_identity_header(ngx_http_request_t *r,
    const char *name, ngx_str_t *value);
static void ngx_http_dsa_identity_trim(ngx_str_t *s);
static ngx_uint_t ngx_http_dsa_identity_bearer(ngx_str_t *value);
static ngx_uint_t ngx_http_dsa_identity_is(ngx_str_t *key, ngx_str_t *name);
static ngx_int_t ngx_http_dsa_identity_certificate(ngx_http_request_t *r,
    ngx_str_t *fingerprint);
static ngx_http_variable_value_t *ngx_http_dsa_identity_variable(
    ngx_http_request_t *r, char *name);
static ngx_int_t ngx_http_dsa_identity_digest(const u_char *label, size_t len,
    ngx_str_t *s, u_char digest[NGX_HTTP_DSA_DIGEST_LEN]);


ngx_int_t
ngx_http_dsa_identify(ngx_http_request_t *r, ngx_http_complex_value_t *value,
    ngx_str_t *tenant, u_char digest[NGX_HTTP_DSA_DIGEST_LEN],
    const char **why)
{
    size_t         len;
    ngx_int_t      rc;
    ngx_str_t      s;
    ngx_uint_t     none;
    const u_char  *label;

    none = 0;
    label = NULL;
    len = 0;

    if (value != NULL) {

        if (ngx_http_complex_value(r, value, &s) != NGX_OK) {
            return NGX_ERROR;
        }

        none = (s.len == 0);

        if (!none) {
            label = ngx_http_dsa_label_value;
            len = sizeof(ngx_http_dsa_label_value);
        }

    } else {
        rc = ngx_http_dsa_identity_key(r, &s, why);

        if (rc != NGX_OK) {
            return rc;
        }

        if (s.len == 0) {

            if (ngx_http_dsa_identity_certificate(r, &s) != NGX_OK) {
                return NGX_ERROR;
            }

            if (s.len != 0) {
                label = ngx_http_dsa_label_certificate;
                len = sizeof(ngx_http_dsa_label_certificate);
            }
        }
    }

    if (ngx_http_dsa_identity_digest(label, len, &s, digest) != NGX_OK) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "dsa: SHA-256 of a request's key failed");
        return NGX_ERROR;
    }

    if (none) {
        ngx_str_null(tenant);
        return NGX_OK;
    }

    return ngx_http_dsa_identity_name(r, digest, tenant);
}


ngx_int_t
ngx_http_dsa_identity_name(ngx_http_request_t *r,
    const u_char digest[NGX_HTTP_DSA_DIGEST_LEN], ngx_str_t *tenant)
{
    tenant->len = NGX_HTTP_DSA_TENANT_LEN;
    tenant->data = ngx_pnalloc(r->pool, tenant->len);

    if (tenant->data == NULL) {
        return NGX_ERROR;
    }

    (void) ngx_hex_dump(tenant->data, (u_char *) digest, tenant->len / 2);

    return NGX_OK;
}


/*
 * Finds the key: that of "Authorization: Bearer KEY", the whole value of
 * Authorization if it has another scheme, or else x-api-key.  An empty key is
 * the same as none.
 */

static ngx_int_t
ngx_http_dsa_identity_key(ngx_http_request_t *r, ngx_str_t *key,
    const char **why)
{
    ngx_str_t  other;

    if (ngx_http_dsa_identity_headers(r, key, &other, why) != NGX_OK) {
        return NGX_DECLINED;
    }

    (void) ngx_http_dsa_identity_bearer(key);

    if (key->len == 0) {
        *key = other;
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_dsa_identity_text(ngx_http_request_t *r, ngx_str_t *key,
    const char **why)
{
    ngx_str_t  other;

    if (ngx_http_dsa_identity_headers(r, key, &other, why) != NGX_OK) {
        return NGX_DECLINED;
    }

    if (ngx_http_dsa_identity_bearer(key) && key->len != 0) {
        return NGX_OK;
    }

    if (other.len != 0) {
        *key = other;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_identity_headers(ngx_http_request_t *r,
    ngx_str_t *authorization, ngx_str_t *other, const char **why)
{
    /*
     * Before nginx 1.23 a check in the configuration sees only the first of
     * two headers of one name, so this function must not use the other one.
     */

    if (ngx_http_dsa_identity_header(r, "authorization", authorization)
        != NGX_OK)
    {
        *why = "The header \"Authorization\" must not be repeated.";
        return NGX_DECLINED;
    }

    if (ngx_http_dsa_identity_header(r, "x-api-key", other) != NGX_OK) {
        *why = "The header \"x-api-key\" must not be repeated.";
        return NGX_DECLINED;
    }

    ngx_http_dsa_identity_trim(authorization);
    ngx_http_dsa_identity_trim(other);

    return NGX_OK;
}


/* Returns the value of a header; empty if absent, NGX_DECLINED if repeated. */

static ngx_int_t
ngx_http_dsa_identity_header(ngx_http_request_t *r, const char *name,
    ngx_str_t *value)
{
    ngx_uint_t        n;
    ngx_table_elt_t  *h;

    h = ngx_http_dsa_header_find(&r->headers_in.headers, name, &n);

    if (h == NULL) {
        ngx_str_null(value);
        return NGX_OK;
    }

    *value = h->value;

    return n == 1 ? NGX_OK : NGX_DECLINED;
}


/* Removes the blanks around a value.  nginx does this for HTTP/1 only. */

static void
ngx_http_dsa_identity_trim(ngx_str_t *s)
{
    while (s->len != 0 && (s->data[0] == ' ' || s->data[0] == '\t')) {
        s->data++;
        s->len--;
    }

    while (s->len != 0
           && (s->data[s->len - 1] == ' ' || s->data[s->len - 1] == '\t'))
    {
        s->len--;
    }
}


/*
 * Returns 1 if the scheme is Bearer, and then removes the scheme from value.
 */

static ngx_uint_t
ngx_http_dsa_identity_bearer(ngx_str_t *value)
{
    if (!ngx_http_dsa_identity_scheme(value, "Bearer")) {
        return 0;
    }

    value->data += sizeof("Bearer") - 1;
    value->len -= sizeof("Bearer") - 1;

    ngx_http_dsa_identity_trim(value);

    return 1;
}


static ngx_uint_t
ngx_http_dsa_identity_scheme(ngx_str_t *value, const char *scheme)
{
    size_t  len;

    len = ngx_strlen(scheme);

    return value->len >= len
           && ngx_strncasecmp(value->data, (u_char *) scheme, len) == 0
           && (value->len == len || value->data[len] == ' '
               || value->data[len] == '\t');
}


void
ngx_http_dsa_identity_wipe(ngx_http_request_t *r)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    static ngx_str_t  authorization = ngx_string("authorization");
    static ngx_str_t  other = ngx_string("x-api-key");

    for (part = &r->headers_in.headers.part; part != NULL; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (h[i].value.len == 0
                || (!ngx_http_dsa_identity_is(&h[i].key, &other)
                    && (!ngx_http_dsa_identity_is(&h[i].key, &authorization)
                        || ngx_http_dsa_identity_scheme(&h[i].value,
                                                        "Basic"))))
            {
                continue;
            }

            ngx_explicit_memzero(h[i].value.data, h[i].value.len);
            h[i].value.len = 0;
        }
    }
}


static ngx_uint_t
ngx_http_dsa_identity_is(ngx_str_t *key, ngx_str_t *name)
{
    return key->len == name->len
           && ngx_strncasecmp(key->data, name->data, name->len) == 0;
}


/*
 * Returns the fingerprint of a client certificate that nginx has verified;
 * empty without one.
 */

static ngx_int_t
ngx_http_dsa_identity_certificate(ngx_http_request_t *r,
    ngx_str_t *fingerprint)
{
    ngx_http_variable_value_t  *v;

    ngx_str_null(fingerprint);

    v = ngx_http_dsa_identity_variable(r, "ssl_client_verify");

    if (v == NULL) {
        return NGX_ERROR;
    }

    if (v->not_found || v->len != sizeof("SUCCESS") - 1
        || ngx_memcmp(v->data, "SUCCESS", v->len) != 0)
    {
        return NGX_OK;
    }

    v = ngx_http_dsa_identity_variable(r, "ssl_client_fingerprint");

    if (v == NULL || v->not_found || v->len == 0) {

        /*
         * An error, because the request must not be served as one without a
         * certificate.
         */

        return NGX_ERROR;
    }

    fingerprint->data = v->data;
    fingerprint->len = v->len;

    return NGX_OK;
}


static ngx_http_variable_value_t *
ngx_http_dsa_identity_variable(ngx_http_request_t *r, char *name)
{
    ngx_str_t  s;

    s.data = (u_char *) name;
    s.len = ngx_strlen(name);

    return ngx_http_get_variable(r, &s, ngx_hash_key(s.data, s.len));
}


static ngx_int_t
ngx_http_dsa_identity_digest(const u_char *label, size_t len, ngx_str_t *s,
    u_char digest[NGX_HTTP_DSA_DIGEST_LEN])
{
    int          ok;
    EVP_MD_CTX  *md;

    md = EVP_MD_CTX_new();
    if (md == NULL) {
        return NGX_ERROR;
    }

    ok = EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1
         && (len == 0 || EVP_DigestUpdate(md, label, len) == 1)
         && (s->len == 0 || EVP_DigestUpdate(md, s->data, s->len) == 1)
         && EVP_DigestFinal_ex(md, digest, NULL) == 1;

    EVP_MD_CTX_free(md);

    return ok ? NGX_OK : NGX_ERROR;
}
