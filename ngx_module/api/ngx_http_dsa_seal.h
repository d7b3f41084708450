
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_SEAL_H_INCLUDED_
#define _NGX_HTTP_DSA_SEAL_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/arena.h"
#include "base/buf.h"

#include "ngx_module/core/ngx_http_dsa_secret.h"


/*
 * Encrypts text that a client keeps for the server.  Only this server can
 * decrypt it, and only in a request of the same tenant: AES-256-GCM, with the
 * digest of the tenant as additional data.  The format is base64url of
 *
 *     offset  bytes
 *          0      1  version, 1
 *          1     16  salt, random
 *         17     12  nonce, random
 *         29      n  ciphertext
 *     29 + n     16  tag
 *
 * The key of a text is HMAC-SHA256 of a label and the salt with a key of the
 * server.  With one key for all texts, random nonces would be safe for only
 * 2^32 texts (NIST SP 800-38D, 8.3), and a busy server writes that many in
 * weeks.
 */

#define NGX_HTTP_DSA_SEAL_DIGEST 32         /* bytes of a digest */


/*
 * Appends the text, encrypted with the first key of secret, to out.  digest has
 * NGX_HTTP_DSA_SEAL_DIGEST bytes.  NGX_OK, or NGX_ERROR if an allocation or the
 * cipher fails.
 */
ngx_int_t ngx_http_dsa_seal(const ngx_http_dsa_secret_t *secret,
    const u_char *digest, dsa_str_t text, dsa_buf_t *out);

/*
 * Decrypts sealed with any key of secret.  DSA_OK: *text is in the arena;
 * DSA_AGAIN: sealed has another format, or was made with another key or digest;
 * DSA_ERROR: out of memory.
 */
int ngx_http_dsa_seal_open(const ngx_http_dsa_secret_t *secret,
    const u_char *digest, dsa_arena_t *arena, dsa_str_t sealed,
    dsa_str_t *text);


#endif /* _NGX_HTTP_DSA_SEAL_H_INCLUDED_ */
