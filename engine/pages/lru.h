
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_LRU_H_INCLUDED_
#define _DSA_LRU_H_INCLUDED_


#include "engine/pages/store.h"


/*
 * The slots of a slab of host memory as a store.  Free slots are in four lists
 * and are allocated in this order:
 *
 *     empty       slots that hold nothing
 *     shadowed    slots whose page a faster tier has, too, and will keep for a
 *                 while, the least recently used first: when they are
 *                 overwritten, the page can be copied here again
 *     probation   other pages
 *     protected   pages that were found twice since they came: those of shared
 *                 system prompts, and of conversations that go on; at most 4 of
 *                 5 slots, beyond which the least recently used one is in
 *                 probation again until it is found once more
 *
 * One hit does not protect a page.  If it did, the hit rate of a GPU and host
 * memory together would be up to 0.9 points below that of an LRU cache of their
 * total size on a production trace of conversations (t/unit/test_trace.c); with
 * two hits it is at most 0.4 points below.
 *
 * A slot with users is in no list.  What dsa_lru_hit() and dsa_lru_shadow() set
 * meanwhile selects its list when its last user releases it with keep 1, as the
 * most recently used one of that list.  With keep 0 it is empty.
 *
 * All operations but audit() are O(1).
 *
 * Sets *store with n slots, 1 .. DSA_PAGES_MAX, all of them empty.  DSA_ERROR:
 * out of memory, or n is out of bounds.
 */
int dsa_lru_init(dsa_store_t *store, uint32_t n);

/*
 * Counts a hit: another request has found the page of a slot.  The slot must
 * not be empty.
 */
void dsa_lru_hit(dsa_store_t *store, uint32_t slot);

/*
 * Sets whether a slot is shadowed: 1 if a faster tier has the page as well; 0
 * if it has it no longer or will overwrite it soon, that is dsa_pool_cold()
 * has returned it.  Set it to 0 before the faster tier overwrites the page,
 * because shadowed slots are allocated first and the page would be in no tier.
 * Then the slot becomes the most recently used one of its list.  The slot must
 * not be empty.
 */
void dsa_lru_shadow(dsa_store_t *store, uint32_t slot, int shadowed);

/*
 * Returns the number of empty slots.  While there are empty slots, a page can
 * be copied here before it is cold, without overwriting another page.  A
 * shadowed slot is not empty, because its page would have to be copied again
 * later.
 */
uint32_t dsa_lru_n_empty(const dsa_store_t *store);


#endif /* _DSA_LRU_H_INCLUDED_ */
