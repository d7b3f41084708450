
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
 *     READY     the slot holds the page, which may be read
 *     LOADING   the page is being copied into this slot from a slower tier
 *     WRITING   the page is being copied into this slot from a faster tier
 *
 * Only a READY copy is a hit.  A LOADING or WRITING copy is in the index so
 * that the page is not copied twice at a time; its slot has a user until the
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
 * Creates an index.  slots [stores]: slots of each store; stores is 1 ..
 * DSA_PREFIX_STORES.  NULL: out of memory.
 */
dsa_prefix_t *dsa_prefix_create(const uint32_t *slots, uint32_t stores);
void dsa_prefix_destroy(dsa_prefix_t *x);           /* NULL is allowed */

/* Returns the slot of the READY copy in a store, or DSA_NO_SLOT. */
uint32_t dsa_prefix_find(const dsa_prefix_t *x, uint32_t store,
    const dsa_digest_t *digest);

/* Returns a bit mask of the stores with a READY copy. */
uint32_t dsa_prefix_ready(const dsa_prefix_t *x, const dsa_digest_t *digest);

/* Returns the slot of a copy in any state, or DSA_NO_SLOT. */
uint32_t dsa_prefix_copy(const dsa_prefix_t *x, uint32_t store,
    const dsa_digest_t *digest);

/* Returns the digest of a slot; NULL: none. */
const dsa_digest_t *dsa_prefix_digest(const dsa_prefix_t *x, uint32_t store,
    uint32_t slot);

/*
 * Adds a copy.  The slot must not be in the index, and the digest must have
 * no copy in this store.
 */
void dsa_prefix_add(dsa_prefix_t *x, uint32_t store,
    const dsa_digest_t *digest, uint32_t slot, dsa_copy_e state);

/* Sets the state of the copy in a slot that is in the index. */
void dsa_prefix_set(dsa_prefix_t *x, uint32_t store, uint32_t slot,
    dsa_copy_e state);

/*
 * Removes the copy in a slot, which must be READY.  Does nothing if there is
 * no copy.
 */
void dsa_prefix_remove(dsa_prefix_t *x, uint32_t store, uint32_t slot);

/* Checks that all slots and digests refer to each other; O(slots). */
int dsa_prefix_audit(const dsa_prefix_t *x, dsa_err_t *err);


#endif /* _DSA_PREFIX_H_INCLUDED_ */
