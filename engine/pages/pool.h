
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_POOL_H_INCLUDED_
#define _DSA_POOL_H_INCLUDED_


#include "engine/pages/store.h"


/*
 * The pages of one rank as a store: reference counts and a free list in order
 * of the last use.  The least recently used free page is allocated first; a
 * prefix hit takes a page out of the middle of the list.  All operations but
 * audit() are O(1).
 *
 * Sets *store with n pages, 1 .. DSA_PAGES_MAX, all free and in order of their
 * numbers.  DSA_ERROR: out of memory, or n is out of bounds.
 */
int dsa_pool_init(dsa_store_t *store, uint32_t n);

/*
 * Returns candidates for eviction, pages that will be allocated soon, so that
 * they can be copied elsewhere before: each call returns one of the first
 * `window` free pages, each page once after it becomes free, and DSA_NO_PAGE
 * when all of them were returned.  Pages that were released with keep 0, or
 * were never allocated, are not returned.  The window may differ between calls.
 *
 * The window should be about twice the pages that are allocated between two
 * calls: pages beyond it may be overwritten before they are copied, and pages
 * within it take memory twice.
 *
 * A page that is retained while it is copied is released with keep 0, although
 * it can still be found: with keep 1 it would become the page that is allocated
 * last, and would be returned again.
 */
uint32_t dsa_pool_candidate(dsa_store_t *store, uint32_t window);


#endif /* _DSA_POOL_H_INCLUDED_ */
