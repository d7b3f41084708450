
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_PAGES_H_INCLUDED_
#define _DSA_PAGES_H_INCLUDED_


#include "engine/backend.h"
#include "engine/pages/prefix.h"
#include "engine/pages/store.h"


/*
 * The KV cache as the scheduler uses it: one store for each rank, and the
 * index of what their pages hold.  A sequence computes on pages of one rank;
 * page numbers are the slots of that rank's store, and rank r is store r of
 * the index.
 *
 * A full page is published under its digest.  It stays in the index when its
 * last user has released it, until it is allocated for something else.  Each
 * rank may have a copy of the same digest.
 */

#define DSA_NO_PAGE         DSA_NO_SLOT


typedef struct {
    uint32_t            ranks;
    dsa_store_t         store[DSA_MAX_GPUS];    /* [ranks] */
    dsa_prefix_t       *prefix;
} dsa_pages_t;


/*
 * Pages 0 .. n-1 of each rank, all free; ranks is 1 .. DSA_MAX_GPUS.  NULL
 * when out of memory.
 */
dsa_pages_t *dsa_pages_create(uint32_t ranks, uint32_t n);
void dsa_pages_destroy(dsa_pages_t *p);             /* NULL is allowed */

/* Pages of each rank. */
uint32_t dsa_pages_total(const dsa_pages_t *p);
uint32_t dsa_pages_free(const dsa_pages_t *p, uint32_t rank);

/*
 * A page with one user; it leaves the index.  DSA_NO_PAGE when all pages of
 * the rank have users.
 */
uint32_t dsa_pages_alloc(dsa_pages_t *p, uint32_t rank);

/*
 * The rank's page that holds this prefix and may be read, with one more user,
 * or DSA_NO_PAGE.
 */
uint32_t dsa_pages_find(dsa_pages_t *p, uint32_t rank,
    const dsa_digest_t *digest);

/* The same without a new user; *in_use is 1 if it has one already. */
uint32_t dsa_pages_peek(const dsa_pages_t *p, uint32_t rank,
    const dsa_digest_t *digest, int *in_use);

/* Bit r is 1 when dsa_pages_find() has a page of rank r. */
uint32_t dsa_pages_ready(const dsa_pages_t *p, const dsa_digest_t *digest);

/* One user less; without users the page is free. */
void dsa_pages_release(dsa_pages_t *p, uint32_t rank, uint32_t page);

/*
 * Enters a full page of computed tokens into the index.  When the rank has
 * another copy of the same digest already, that copy stays in the index and
 * this page does not enter it.
 */
void dsa_pages_publish(dsa_pages_t *p, uint32_t rank, uint32_t page,
    const dsa_digest_t *digest);

/*
 * Checks everything against users [ranks][n], the number of block tables that
 * contain each page; O(pages).
 */
int dsa_pages_audit(const dsa_pages_t *p, const uint32_t *users,
    dsa_err_t *err);


#endif /* _DSA_PAGES_H_INCLUDED_ */
