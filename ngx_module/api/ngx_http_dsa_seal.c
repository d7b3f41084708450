
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include <limits.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "base/error.h"

#include "ngx_http_dsa_seal.h"


#define NGX_HTTP_DSA_SEAL_VERSION  1
#define NGX_HTTP_DSA_SEAL_SALT     16
#define NGX_HTTP_DSA_SEAL_NONCE    12
#define NGX_HTTP_DSA_SEAL_TAG      16
#define NGX_HTTP_DSA_SEAL_KEY      32
#define NGX_HTTP_DSA_SEAL_HEAD     (1 + NGX_HTTP_DSA_SEAL_SALT                \
                                    + NGX_HTTP_DSA_SEAL_NONCE)
#define NGX_HTTP_DSA_SEAL_EXTRA    (NGX_HTTP_DSA_SEAL_HEAD                    \
                                    + NGX_HTTP_DSA_SEAL_TAG)

/* separates this use of the server's keys from uses with other labels */

#define NGX_HTTP_DSA_SEAL_LABEL    "nginx-dsa seal 1"


static ngx_int_t ngx_http_dsa_seal_encrypt(const u_char *master,
    const u_char *digest, dsa_str_t text, u_char *out);
static ngx_int_t ngx_http_dsa_seal_decrypt(const u_char *master,
    const u_char *digest, const u_char *in, int len, u_char *out);
static ngx_int_t ngx_http_dsa_seal_key(const u_char *master,
    const u_char *salt, u_char *key);


ngx_int_t
ngx_http_dsa_seal(const ngx_http_dsa_secret_t *secret, const u_char *digest,
    dsa_str_t text, dsa_buf_t *out)
{
    u_char     *raw, *p;
    size_t      len;
    ngx_int_t   rc;
    ngx_str_t   from, to;

    if (text.len > INT_MAX / 2) {
        return NGX_ERROR;
    }

    len = text.len + NGX_HTTP_DSA_SEAL_EXTRA;
    rc = NGX_ERROR;

    raw = malloc(len);
    p = malloc(ngx_base64_encoded_length(len));

    if (raw != NULL && p != NULL) {
        rc = ngx_http_dsa_seal_encrypt(secret->keys[0], digest, text, raw);
    }

    if (rc == NGX_OK) {
        from.data = raw;
        from.len = len;
        to.data = p;

        ngx_encode_base64url(&to, &from);
        dsa_buf_add(out, to.data, to.len);

        rc = out->failed ? NGX_ERROR : NGX_OK;
    }

    free(raw);
    free(p);

    return rc;
}


static ngx_int_t
ngx_http_dsa_seal_encrypt(const u_char *master, const u_char *digest,
    dsa_str_t text, u_char *out)
{
    int              n, ok;
    u_char          *salt, *nonce, *p, key[NGX_HTTP_DSA_SEAL_KEY];
    EVP_CIPHER_CTX  *ctx;

    out[0] = NGX_HTTP_DSA_SEAL_VERSION;
    salt = out + 1;
    nonce = salt + NGX_HTTP_DSA_SEAL_SALT;
    p = out + NGX_HTTP_DSA_SEAL_HEAD;

    if (RAND_bytes(salt, NGX_HTTP_DSA_SEAL_SALT + NGX_HTTP_DSA_SEAL_NONCE) != 1
        || ngx_http_dsa_seal_key(master, salt, key) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ctx = EVP_CIPHER_CTX_new();
    if (ctx == NULL) {
        return NGX_ERROR;
    }

    ok = EVP_EncryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key, nonce) == 1
         && EVP_EncryptUpdate(ctx, NULL, &n, digest, NGX_HTTP_DSA_SEAL_DIGEST)
            == 1
         && EVP_EncryptUpdate(ctx, p, &n, (u_char *) text.data,
                              (int) text.len)
            == 1
         && EVP_EncryptFinal_ex(ctx, p + text.len, &n) == 1
         && EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_GET_TAG,
                                NGX_HTTP_DSA_SEAL_TAG, p + text.len)
            == 1;

    EVP_CIPHER_CTX_free(ctx);
    ngx_explicit_memzero(key, sizeof(key));

    return ok ? NGX_OK : NGX_ERROR;
}


int
ngx_http_dsa_seal_open(const ngx_http_dsa_secret_t *secret,
    const u_char *digest, dsa_arena_t *arena, dsa_str_t sealed,
    dsa_str_t *text)
{
    size_t       len;
    u_char      *p;
    ngx_str_t    from, to;
    ngx_uint_t   i;

    from.data = (u_char *) sealed.data;
    from.len = sealed.len;

    if (sealed.len > INT_MAX / 2) {
        return DSA_AGAIN;
    }

    to.data = dsa_arena_alloc(arena, ngx_base64_decoded_length(from.len) + 4);
    if (to.data == NULL) {
        return DSA_ERROR;
    }

    if (ngx_decode_base64url(&to, &from) != NGX_OK
        || to.len < NGX_HTTP_DSA_SEAL_EXTRA
        || to.data[0] != NGX_HTTP_DSA_SEAL_VERSION)
    {
        return DSA_AGAIN;
    }

    len = to.len - NGX_HTTP_DSA_SEAL_EXTRA;

    p = dsa_arena_alloc(arena, len + 1);
    if (p == NULL) {
        return DSA_ERROR;
    }

    for (i = 0; i < secret->n; i++) {
        if (ngx_http_dsa_seal_decrypt(secret->keys[i], digest, to.data,
                                      (int) len, p)
            == NGX_OK)
        {
            *text = dsa_str(p, len);
            return DSA_OK;
        }
    }

    return DSA_AGAIN;
}


static ngx_int_t
ngx_http_dsa_seal_decrypt(const u_char *master, const u_char *digest,
    const u_char *in, int len, u_char *out)
{
    int              n, ok;
    u_char          *tag, key[NGX_HTTP_DSA_SEAL_KEY];
    const u_char    *salt, *nonce, *text;
    EVP_CIPHER_CTX  *ctx;

    salt = in + 1;
    nonce = salt + NGX_HTTP_DSA_SEAL_SALT;
    text = in + NGX_HTTP_DSA_SEAL_HEAD;
    tag = (u_char *) text + len;

    if (ngx_http_dsa_seal_key(master, salt, key) != NGX_OK) {
        return NGX_ERROR;
    }

    ctx = EVP_CIPHER_CTX_new();
    if (ctx == NULL) {
        return NGX_ERROR;
    }

    ok = EVP_DecryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key, nonce) == 1
         && EVP_DecryptUpdate(ctx, NULL, &n, digest, NGX_HTTP_DSA_SEAL_DIGEST)
            == 1
         && EVP_DecryptUpdate(ctx, out, &n, text, len) == 1
         && EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_SET_TAG,
                                NGX_HTTP_DSA_SEAL_TAG, tag)
            == 1
         && EVP_DecryptFinal_ex(ctx, out + len, &n) == 1;

    EVP_CIPHER_CTX_free(ctx);
    ngx_explicit_memzero(key, sizeof(key));

    return ok ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_dsa_seal_key(const u_char *master, const u_char *salt, u_char *key)
{
    u_char    text[sizeof(NGX_HTTP_DSA_SEAL_LABEL) - 1
                   + NGX_HTTP_DSA_SEAL_SALT];
    unsigned  len;

    ngx_memcpy(ngx_cpymem(text, NGX_HTTP_DSA_SEAL_LABEL,
                          sizeof(NGX_HTTP_DSA_SEAL_LABEL) - 1),
               salt, NGX_HTTP_DSA_SEAL_SALT);

    return HMAC(EVP_sha256(), master, NGX_HTTP_DSA_SECRET, text,
                sizeof(text), key, &len)
           != NULL ? NGX_OK : NGX_ERROR;
}
