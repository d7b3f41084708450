
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
 * slab of host memory, and the prefix index of these stores.  A sequence uses
 * the pages of one rank, by their numbers in that rank's store.  Rank r is
 * store r of the index, and slab i is store ranks + i.
 *
 * A full page is published in the index under its digest.  It stays there
 * after its last user has released it, until it is allocated again.  Each rank
 * may have a copy of the same digest, and the memory of each host one more.
 *
 * With several hosts, each has as many ranks, which are numbered by host.  The
 * ranks of a host use the slabs of that host only.
 */

#define DSA_ANY_HOST        UINT32_MAX


typedef struct {
    uint32_t            ranks;
    uint32_t            slabs;          /* of host memory; 0: none */
    uint32_t            host_ranks;     /* ranks of a host */
    uint32_t            host_of[DSA_HOST_SLABS];    /* [slabs] */
    dsa_store_t         store[DSA_MAX_GPUS];    /* [ranks] */
    dsa_store_t         host[DSA_HOST_SLABS];   /* [slabs] */
    uint32_t            cached[DSA_MAX_GPUS];   /* [ranks], pages without
                                                   users that can be found */
    dsa_prefix_t       *prefix;
    uint64_t            lost;           /* digests whose last copy was
                                           overwritten */
} dsa_pages_t;


/* A host page: a page of a slab of host memory. */

typedef struct {
    uint32_t            slab;
    uint32_t            page;
} dsa_host_at_t;


/*
 * Creates pages 0 .. n-1 of each rank, all free; ranks is 1 .. DSA_MAX_GPUS.
 * host: memory for the host pages, which are a slower tier; NULL: none.
 * Returns NULL if memory is short.
 */
dsa_pages_t *dsa_pages_create(uint32_t ranks, uint32_t n,
    const dsa_host_t *host);
void dsa_pages_destroy(dsa_pages_t *p);             /* NULL is allowed */

/* Returns the pages of each rank. */
uint32_t dsa_pages_total(const dsa_pages_t *p);
uint32_t dsa_pages_free(const dsa_pages_t *p, uint32_t rank);

/* Returns the free pages of a rank that have contents that can be found. */
uint32_t dsa_pages_cached(const dsa_pages_t *p, uint32_t rank);

/*
 * Allocates a page with one user, and removes it from the index.  DSA_NO_PAGE:
 * all pages of the rank have users.
 */
uint32_t dsa_pages_alloc(dsa_pages_t *p, uint32_t rank);

/*
 * Returns the rank's page with this digest if it may be read, with one more
 * user; DSA_NO_PAGE if there is none.
 */
uint32_t dsa_pages_find(dsa_pages_t *p, uint32_t rank,
    const dsa_digest_t *digest);

/* The same without a new user; *in_use is 1 if it has one already. */
uint32_t dsa_pages_peek(const dsa_pages_t *p, uint32_t rank,
    const dsa_digest_t *digest, int *in_use);

/* Returns a bit mask of the ranks for which dsa_pages_find() finds a page. */
uint32_t dsa_pages_ready(const dsa_pages_t *p, const dsa_digest_t *digest);

/* Adds a user to a page that has one or is in the index. */
void dsa_pages_retain(dsa_pages_t *p, uint32_t rank, uint32_t page);

/* Removes a user; without users the page is free. */
void dsa_pages_release(dsa_pages_t *p, uint32_t rank, uint32_t page);

/*
 * Adds a full page of computed tokens to the index.  If the rank already has
 * another copy of the digest, that copy stays in the index and this page is
 * not added.
 */
void dsa_pages_publish(dsa_pages_t *p, uint32_t rank, uint32_t page,
    const dsa_digest_t *digest);

/* Removes a page from the index, if it is there. */
void dsa_pages_forget(dsa_pages_t *p, uint32_t rank, uint32_t page);

/*
 * Adds a page that is being filled from host memory to the index as LOADING.
 * Returns 1; the caller calls dsa_pages_loaded() when the page may be read.
 * 0: the rank has another copy already.
 */
int dsa_pages_loading(dsa_pages_t *p, uint32_t rank, uint32_t page,
    const dsa_digest_t *digest);
void dsa_pages_loaded(dsa_pages_t *p, uint32_t rank, uint32_t page);

/* Removes a page that is LOADING from the index: it was not filled. */
void dsa_pages_unloaded(dsa_pages_t *p, uint32_t rank, uint32_t page);

/*
 * Finds a page to copy to host memory among the next `window` free pages of a
 * rank, which will be overwritten soon; each page is considered once.  If the
 * memory of its host already has a copy, it does not count as a duplicate any
 * more, so that host memory keeps it.
 * Otherwise the page is returned with one user and *digest; release it by
 * dsa_pages_release_candidate(), which keeps its position in the free list.
 * DSA_NO_PAGE: no page has to be copied.
 */
uint32_t dsa_pages_candidate(dsa_pages_t *p, uint32_t rank, uint32_t window,
    const dsa_digest_t **digest);
void dsa_pages_release_candidate(dsa_pages_t *p, uint32_t rank, uint32_t page);

/* Returns the host of a rank. */
uint32_t dsa_pages_host_of(const dsa_pages_t *p, uint32_t rank);

/*
 * Sets *at to the copy of a digest in the memory of a host, in any state, and
 * *ready to 1 if it may be read.  DSA_ANY_HOST: of any host, and one that may
 * be read if there is one.  Returns 0 if there is no copy.
 */
int dsa_pages_host(const dsa_pages_t *p, uint32_t host,
    const dsa_digest_t *digest, dsa_host_at_t *at, int *ready);

/* Returns a bit mask of the ranks whose hosts have a copy, in any state. */
uint32_t dsa_pages_host_near(const dsa_pages_t *p,
    const dsa_digest_t *digest);

/*
 * Allocates a host page with one user for a digest that the memory of its host
 * does not have, and adds it to the index as LOADING or WRITING.  It is in the
 * given slab, or in another one of that host if all pages of that slab have
 * users.  DSA_AGAIN: all pages of the host have users.
 */
int dsa_pages_host_alloc(dsa_pages_t *p, uint32_t slab,
    const dsa_digest_t *digest, dsa_copy_e state, dsa_host_at_t *at);

/* Returns 1 if dsa_pages_host_alloc() would succeed for this slab. */
int dsa_pages_host_room(const dsa_pages_t *p, uint32_t slab);

/* Returns 1 if the slab has an empty page. */
int dsa_pages_host_empty(const dsa_pages_t *p, uint32_t slab);

/*
 * Marks a host page as READY.  last is 1 if the rank that has the page as well
 * will overwrite it soon, so that host memory has to keep its copy.
 */
void dsa_pages_host_ready(dsa_pages_t *p, dsa_host_at_t at, int last);

/* Removes a host page from the index whose copy has failed. */
void dsa_pages_host_drop(dsa_pages_t *p, dsa_host_at_t at);

/*
 * Removes a host page from the index, if it is there, because its host does not
 * have its contents.  It keeps its users.
 */
void dsa_pages_host_lost(dsa_pages_t *p, dsa_host_at_t at);

/* Add and remove a user of a host page. */
void dsa_pages_host_retain(dsa_pages_t *p, dsa_host_at_t at);
void dsa_pages_host_release(dsa_pages_t *p, dsa_host_at_t at);

/* Counts a hit of a digest for its copies in host memory. */
void dsa_pages_hit(dsa_pages_t *p, const dsa_digest_t *digest);

/*
 * Counts the host pages, and those that have users or are in the index.
 */
void dsa_pages_host_count(const dsa_pages_t *p, uint64_t *total,
    uint64_t *used);

/*
 * Checks everything against users [ranks][n], the number of block tables and
 * copies in progress that contain each page of a rank, and host_users
 * [slabs][pages of the slab], the same of host memory; O(pages).
 */
int dsa_pages_audit(const dsa_pages_t *p, const uint32_t *users,
    const uint32_t *host_users, dsa_err_t *err);


#endif /* _DSA_PAGES_H_INCLUDED_ */
