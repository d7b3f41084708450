
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_PAGES_H_INCLUDED_
#define _DSA_PAGES_H_INCLUDED_


#include "base/error.h"
#include "engine/backend.h"


/*
 * Which pages of the KV cache are in use, by how many sequences, and what
 * prefix the full ones hold.  Only numbers: the memory behind a page is the
 * backend's.
 *
 * A prefix is named by a chain of SHA-256: the root of a tenant, then for
 * each page the digest of (parent, its 64 token ids).  Two tenants never have
 * a digest in common.  A page that nobody uses any more keeps its digest and
 * waits at the end of the free list, so that the least recently used one is
 * taken first; a hit takes it out of the middle again.
 */

#define DSA_DIGEST          32
#define DSA_NO_PAGE         UINT32_MAX
#define DSA_PAGES_MAX       (1U << 26)


typedef struct dsa_pages_s  dsa_pages_t;

typedef struct {
    uint8_t     byte[DSA_DIGEST];
} dsa_digest_t;


/* Pages 0 .. n-1, all free.  NULL when out of memory. */
dsa_pages_t *dsa_pages_create(uint32_t n);
void dsa_pages_destroy(dsa_pages_t *p);             /* NULL is allowed */

uint32_t dsa_pages_total(const dsa_pages_t *p);
uint32_t dsa_pages_free(const dsa_pages_t *p);

/*
 * A page for one user; what it held is forgotten.  DSA_NO_PAGE when all are
 * in use.
 */
uint32_t dsa_pages_alloc(dsa_pages_t *p);

/* The page that holds this prefix, with one more user, or DSA_NO_PAGE. */
uint32_t dsa_pages_find(dsa_pages_t *p, const dsa_digest_t *digest);

/* The same without becoming its user; in_use tells whether it has one. */
uint32_t dsa_pages_peek(const dsa_pages_t *p, const dsa_digest_t *digest,
    int *in_use);

/* One user less; the last one leaves it on the free list. */
void dsa_pages_release(dsa_pages_t *p, uint32_t page);

/*
 * Says what a full page holds.  When another page holds the same already that
 * one stays the known one.
 */
void dsa_pages_publish(dsa_pages_t *p, uint32_t page,
    const dsa_digest_t *digest);

/*
 * The root of a tenant's chains; fingerprint says model and cache layout,
 * tenant is the salt.  DSA_ERROR when the digest cannot be computed.
 */
int dsa_pages_root(dsa_pages_t *p, const char *fingerprint,
    const uint8_t tenant[32], dsa_digest_t *out);

/* The digest of the page with these DSA_PAGE_TOKENS ids behind parent. */
int dsa_pages_chain(dsa_pages_t *p, const dsa_digest_t *parent,
    const uint32_t *tokens, dsa_digest_t *out);

/*
 * Checks everything against users [n], how often each page stands in a block
 * table: counts, the free list both ways, the map of digests.  O(pages).
 */
int dsa_pages_audit(const dsa_pages_t *p, const uint32_t *users,
    dsa_err_t *err);


#endif /* _DSA_PAGES_H_INCLUDED_ */
