
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_PAGES_H_INCLUDED_
#define _DSA_PAGES_H_INCLUDED_


#include "engine/backend.h"
#include "engine/pages/host.h"
#include "engine/pages/prefix.h"
#include "engine/pages/store.h"


/*
 * The KV cache as the scheduler uses it: one store for each rank, one for each
 * slab of host memory, and the index of what they hold.  A sequence computes
 * on pages of one rank; page numbers are the slots of that rank's store.  Rank
 * r is store r of the index, and slab i is store ranks + i.
 *
 * A full page is published under its digest.  It stays in the index when its
 * last user has released it, until it is allocated for something else.  Each
 * rank may have a copy of the same digest, and host memory one more.
 */

#define DSA_NO_PAGE         DSA_NO_SLOT


typedef struct {
    uint32_t            ranks;
    uint32_t            slabs;          /* of host memory; 0: none */
    dsa_store_t         store[DSA_MAX_GPUS];    /* [ranks] */
    dsa_store_t         host[DSA_HOST_SLABS];   /* [slabs] */
    dsa_prefix_t       *prefix;
    uint64_t            lost;           /* digests whose last copy was
                                           overwritten */
} dsa_pages_t;


/* A slot of host memory. */

typedef struct {
    uint32_t            slab;
    uint32_t            slot;
} dsa_host_at_t;


/*
 * Pages 0 .. n-1 of each rank, all free; ranks is 1 .. DSA_MAX_GPUS.  host:
 * its slots are a slower tier; NULL: none.  NULL when out of memory.
 */
dsa_pages_t *dsa_pages_create(uint32_t ranks, uint32_t n,
    const dsa_host_t *host);
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

/* One more user of a page that has one, or that is in the index. */
void dsa_pages_retain(dsa_pages_t *p, uint32_t rank, uint32_t page);

/* One user less; without users the page is free. */
void dsa_pages_release(dsa_pages_t *p, uint32_t rank, uint32_t page);

/*
 * Enters a full page of computed tokens into the index.  When the rank has
 * another copy of the same digest already, that copy stays in the index and
 * this page does not enter it.
 */
void dsa_pages_publish(dsa_pages_t *p, uint32_t rank, uint32_t page,
    const dsa_digest_t *digest);

/* Removes a page from the index, if the index has it. */
void dsa_pages_forget(dsa_pages_t *p, uint32_t rank, uint32_t page);

/*
 * A page is being copied from host memory into this page.  Returns 1 if it
 * entered the index as LOADING; the caller calls dsa_pages_loaded() when it
 * may be read.  0: the rank has another copy already.
 */
int dsa_pages_loading(dsa_pages_t *p, uint32_t rank, uint32_t page,
    const dsa_digest_t *digest);
void dsa_pages_loaded(dsa_pages_t *p, uint32_t rank, uint32_t page);

/*
 * Looks at those of the next `window` free pages of a rank that it did not
 * look at before, which will be overwritten soon.  If host memory has a copy of
 * such a page, it keeps the copy from now on.  Otherwise the page is returned
 * with one user and *digest, so that it can be copied; the user is given back
 * by dsa_pages_release_cold(), which leaves the page where it was.
 * DSA_NO_PAGE if no page has to be copied.
 */
uint32_t dsa_pages_cold(dsa_pages_t *p, uint32_t rank, uint32_t window,
    const dsa_digest_t **digest);
void dsa_pages_release_cold(dsa_pages_t *p, uint32_t rank, uint32_t page);

/*
 * Sets *at to the copy of a digest in host memory, in any state.  0: there is
 * none.  *ready is 1 if it may be read.
 */
int dsa_pages_host(const dsa_pages_t *p, const dsa_digest_t *digest,
    dsa_host_at_t *at, int *ready);

/*
 * A slot for a digest that host memory lacks, with one user, in the index as
 * LOADING or WRITING.  It is in the given slab, or in another one if all slots
 * of that slab have users.  DSA_AGAIN: all slots have users.
 */
int dsa_pages_host_alloc(dsa_pages_t *p, uint32_t slab,
    const dsa_digest_t *digest, dsa_copy_e state, dsa_host_at_t *at);

/* 1 if dsa_pages_host_alloc() has a slot. */
int dsa_pages_host_room(const dsa_pages_t *p);

/* 1 if a slot of the slab has never been used, or is empty again. */
int dsa_pages_host_empty(const dsa_pages_t *p, uint32_t slab);

/*
 * The slot may be read.  last is 1 when the rank that has the page, too, will
 * overwrite it soon, so that host memory has to keep its copy.
 */
void dsa_pages_host_ready(dsa_pages_t *p, dsa_host_at_t at, int last);

/* The slot does not hold what was intended: it leaves the index. */
void dsa_pages_host_drop(dsa_pages_t *p, dsa_host_at_t at);

void dsa_pages_host_retain(dsa_pages_t *p, dsa_host_at_t at);
void dsa_pages_host_release(dsa_pages_t *p, dsa_host_at_t at);

/* Another request found this digest: host memory protects its copy, if any. */
void dsa_pages_hit(dsa_pages_t *p, const dsa_digest_t *digest);

/* Slots of host memory, and those that are in use or hold a digest. */
void dsa_pages_host_count(const dsa_pages_t *p, uint64_t *total,
    uint64_t *used);

/*
 * Checks everything against users [ranks][n], the number of block tables and
 * copies in progress that contain each page, and slots [slabs][slots of the
 * slab], the same of host memory; O(pages + slots).
 */
int dsa_pages_audit(const dsa_pages_t *p, const uint32_t *users,
    const uint32_t *slots, dsa_err_t *err);


#endif /* _DSA_PAGES_H_INCLUDED_ */
