
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_STORE_H_INCLUDED_
#define _DSA_STORE_H_INCLUDED_


#include <stdint.h>

#include "base/error.h"


/*
 * A store is a part of the KV cache: pages with numbers, of a rank (pool.h) or
 * of a slab of host memory (lru.h).  It manages the numbers only; the memory of
 * the pages is owned by the code that computes or copies pages.
 *
 * A page has users: block tables that contain it, or copies in progress.  A
 * page without users is free.  A free page keeps its contents until alloc()
 * returns it again, so that it can still be found by digest.
 */

#define DSA_NO_PAGE     UINT32_MAX


typedef struct {
    uint32_t            total;      /* pages 0 .. total-1 */
    void               *data;       /* private to the store */

    /*
     * Returns a free page with one user; the caller overwrites its contents.
     * DSA_NO_PAGE: no page is free.
     */
    uint32_t          (*alloc)(void *data);

    /* Adds a user; the page may be free. */
    void              (*retain)(void *data, uint32_t page);

    /*
     * Removes a user.  Without users the page is free: with keep 1 it is
     * allocated last, with keep 0 next, because its contents cannot be found
     * any more.
     */
    void              (*release)(void *data, uint32_t page, int keep);

    uint32_t          (*users)(const void *data, uint32_t page);
    uint32_t          (*n_free)(const void *data);

    /*
     * Compares all counts with users [total], and checks the lists.  DSA_ERROR
     * with err at the first difference.
     */
    int               (*audit)(const void *data, const uint32_t *users,
                               dsa_err_t *err);
    void              (*destroy)(void *data);
} dsa_store_t;


#endif /* _DSA_STORE_H_INCLUDED_ */
