
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_LRU_H_INCLUDED_
#define _DSA_LRU_H_INCLUDED_


#include "engine/pages/store.h"


/*
 * The host pages of a slab as a store.  Free pages are in four lists and are
 * allocated in this order:
 *
 *     empty       pages without contents
 *     duplicate   copies of pages that a faster tier has, too, and will keep
 *                 for a while, the least recently used first: when they are
 *                 overwritten, the page can be copied here again
 *     probation   other pages
 *     protected   pages that were found twice since they came: those of shared
 *                 system prompts, and of conversations that go on; at most 4 of
 *                 5 pages, beyond which the least recently used one is in
 *                 probation again until it is found once more
 *
 * One hit does not protect a page.  If it did, the hit rate of a GPU and host
 * memory together would be up to 0.9 points below that of an LRU cache of their
 * total size on a production trace of conversations (t/unit/test_trace.c); with
 * two hits it is at most 0.4 points below.
 *
 * A page with users is in no list.  What dsa_lru_hit() and
 * dsa_lru_set_duplicate() set meanwhile selects its list when its last user
 * releases it with keep 1, as the most recently used one of that list.  With
 * keep 0 it is empty.
 *
 * All operations but audit() are O(1).
 *
 * Sets *store with n pages, 1 .. DSA_PAGES_MAX, all of them empty.  DSA_ERROR:
 * out of memory, or n is out of bounds.
 */
int dsa_lru_init(dsa_store_t *store, uint32_t n);

/*
 * Counts a hit: another request has found a host page, which must not be empty.
 */
void dsa_lru_hit(dsa_store_t *store, uint32_t page);

/*
 * Sets whether a host page is a duplicate: 1 if a faster tier has a copy as
 * well; 0 if it has it no longer or will overwrite it soon, that is
 * dsa_pool_candidate() has returned it.  Set it to 0 before the faster tier
 * overwrites its copy, because duplicates are allocated first and then no tier
 * would have a copy.  It becomes the most recently used page of its list.  The
 * host page must not be empty.
 */
void dsa_lru_set_duplicate(dsa_store_t *store, uint32_t page, int duplicate);

/*
 * Returns the number of empty pages.  While there are empty pages, a page can
 * be copied here before it is a candidate for eviction, without overwriting
 * another page.  A duplicate does not count as empty, because its page would
 * have to be copied again later.
 */
uint32_t dsa_lru_n_empty(const dsa_store_t *store);


#endif /* _DSA_LRU_H_INCLUDED_ */
