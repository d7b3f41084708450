
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include <openssl/evp.h>

#include "grammar/grammar.h"

#include "ngx_http_dsa_grammar.h"


/*
 * The digests of specs that compiled, in a table of the worker.  The index is
 * the first byte of the digest, and a new digest replaces an older one.
 */

#define NGX_HTTP_DSA_GRAMMARS   256


static ngx_uint_t ngx_http_dsa_grammar_known(const u_char *digest);
static void ngx_http_dsa_grammar_add(const u_char *digest);


static u_char  ngx_http_dsa_grammars[NGX_HTTP_DSA_GRAMMARS]
                                    [EVP_MAX_MD_SIZE];
static u_char  ngx_http_dsa_grammar_used[NGX_HTTP_DSA_GRAMMARS];


ngx_int_t
ngx_http_dsa_grammar_check(dsa_format_t *format, dsa_refusal_t *refusal)
{
    u_char                digest[EVP_MAX_MD_SIZE];
    ngx_uint_t            hashed;
    dsa_grammar_t        *grammar;
    dsa_grammar_error_t   error;

    if (format->spec.len == 0) {
        return NGX_OK;
    }

    ngx_memzero(digest, sizeof(digest));

    hashed = EVP_Digest(format->spec.data, format->spec.len, digest, NULL,
                        EVP_sha256(), NULL)
             == 1;

    if (hashed && ngx_http_dsa_grammar_known(digest)) {
        return NGX_OK;
    }

    ngx_memzero(&error, sizeof(dsa_grammar_error_t));

    if (format->spec.len > DSA_GRAMMAR_SPEC) {
        (void) ngx_snprintf((u_char *) error.message,
                            sizeof(error.message) - 1,
                            "the schema has %uz bytes; at most %ud are "
                            "accepted", format->spec.len, DSA_GRAMMAR_SPEC);

    } else if (dsa_grammar_compile(&grammar, format->spec, &error) == DSA_OK) {
        dsa_grammar_free(grammar);

        if (hashed) {
            ngx_http_dsa_grammar_add(digest);
        }

        return NGX_OK;
    }

    if (error.no_memory) {
        (void) dsa_format_refuse(format, "", "the server is out of memory; "
                                 "try again later", refusal);
        refusal->status = 503;
        return NGX_ERROR;
    }

    if (dsa_format_optional(format, error.path)) {
        format->spec = format->fallback;
        format->fallback = dsa_str("", 0);
        return ngx_http_dsa_grammar_check(format, refusal);
    }

    (void) dsa_format_refuse(format, error.path, error.message, refusal);

    return NGX_ERROR;
}


static ngx_uint_t
ngx_http_dsa_grammar_known(const u_char *digest)
{
    return ngx_http_dsa_grammar_used[digest[0]]
           && ngx_memcmp(ngx_http_dsa_grammars[digest[0]], digest,
                         EVP_MAX_MD_SIZE)
              == 0;
}


static void
ngx_http_dsa_grammar_add(const u_char *digest)
{
    ngx_http_dsa_grammar_used[digest[0]] = 1;
    ngx_memcpy(ngx_http_dsa_grammars[digest[0]], digest, EVP_MAX_MD_SIZE);
}
