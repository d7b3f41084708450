
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_DIGEST_H_INCLUDED_
#define _DSA_DIGEST_H_INCLUDED_


#include <stdint.h>

#include "base/error.h"


/*
 * The identity of a full page: a chain of SHA-256.  The root is a function of
 * model fingerprint, page layout and tenant; the digest of a page is a
 * function of the digest of the previous page and the token ids of the page.
 * Two tenants never have a digest in common.
 */

#define DSA_DIGEST          32


typedef struct {
    uint8_t             byte[DSA_DIGEST];
} dsa_digest_t;


/* The first bytes of a digest, for "%02x%02x%02x%02x" in the log. */

#define dsa_digest_log(d)                                                     \
    (d)->byte[0], (d)->byte[1], (d)->byte[2], (d)->byte[3]


typedef struct dsa_digester_s  dsa_digester_t;


/* Creates a digester, which only one thread may use.  NULL: out of memory. */
dsa_digester_t *dsa_digester_create(void);
void dsa_digester_destroy(dsa_digester_t *d);       /* NULL is allowed */

/*
 * Computes the root of a tenant's chains.  fingerprint is that of the backend.
 * DSA_ERROR: the digest cannot be computed.
 */
int dsa_digest_root(dsa_digester_t *d, const char *fingerprint,
    const uint8_t tenant[32], dsa_digest_t *out);

/* Computes the digest of a page with DSA_PAGE_TOKENS ids after parent. */
int dsa_digest_page(dsa_digester_t *d, const dsa_digest_t *parent,
    const uint32_t *tokens, dsa_digest_t *out);


#endif /* _DSA_DIGEST_H_INCLUDED_ */
