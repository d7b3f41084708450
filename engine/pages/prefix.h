
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_PREFIX_H_INCLUDED_
#define _DSA_PREFIX_H_INCLUDED_


#include "engine/pages/digest.h"
#include "engine/pages/store.h"


/*
 * The prefix index: for each digest the set of its copies, at most one per
 * store.  A digest is in the index while it has a copy.  Stores are numbered
 * from 0; pages.h defines the meaning of the numbers.
 *
 *     READY     the copy is complete and may be read
 *     LOADING   the copy is being made from that of a slower tier
 *     WRITING   the copy is being made from that of a faster tier
 *
 * Only a READY copy is a hit.  A LOADING or WRITING copy is in the index so
 * that it is not made twice at a time; its page has a user until the
 * copy is done, so that it is not allocated meanwhile.
 */

typedef enum {
    DSA_COPY_READY = 0,
    DSA_COPY_LOADING,
    DSA_COPY_WRITING
} dsa_copy_e;


typedef struct dsa_prefix_s  dsa_prefix_t;


#define DSA_PREFIX_STORES   32          /* most: bits of dsa_prefix_ready() */


/*
 * Creates an index.  pages [stores] has the pages of each store; stores is 1 ..
 * DSA_PREFIX_STORES.  NULL: out of memory.
 */
dsa_prefix_t *dsa_prefix_create(const uint32_t *pages, uint32_t stores);
void dsa_prefix_destroy(dsa_prefix_t *x);           /* NULL is allowed */

/* Returns the page of the READY copy in a store, or DSA_NO_PAGE. */
uint32_t dsa_prefix_find(const dsa_prefix_t *x, uint32_t store,
    const dsa_digest_t *digest);

/* Returns a bit mask of the stores with a READY copy. */
uint32_t dsa_prefix_ready(const dsa_prefix_t *x, const dsa_digest_t *digest);

/* Returns the page of a copy in any state, or DSA_NO_PAGE. */
uint32_t dsa_prefix_copy(const dsa_prefix_t *x, uint32_t store,
    const dsa_digest_t *digest);

/* Returns the digest of a page; NULL: none. */
const dsa_digest_t *dsa_prefix_digest(const dsa_prefix_t *x, uint32_t store,
    uint32_t page);

/*
 * Adds a copy.  The page must not be in the index, and the digest must have no
 * copy in this store.
 */
void dsa_prefix_add(dsa_prefix_t *x, uint32_t store,
    const dsa_digest_t *digest, uint32_t page, dsa_copy_e state);

/* Sets the state of the copy in a page that is in the index. */
void dsa_prefix_set(dsa_prefix_t *x, uint32_t store, uint32_t page,
    dsa_copy_e state);

/*
 * Removes the copy in a page, which must be READY.  Does nothing if there is no
 * copy.
 */
void dsa_prefix_remove(dsa_prefix_t *x, uint32_t store, uint32_t page);

/* Checks that all pages and digests refer to each other; O(pages). */
int dsa_prefix_audit(const dsa_prefix_t *x, dsa_err_t *err);


#endif /* _DSA_PREFIX_H_INCLUDED_ */
