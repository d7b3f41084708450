
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TIERS_H_INCLUDED_
#define _DSA_TIERS_H_INCLUDED_


#include "engine/backend.h"
#include "engine/pages/pages.h"
#include "engine/pages/tier.h"


/*
 * Moves pages between the ranks, host memory and slower tiers:
 *
 *     save    rank to host memory.  A page is saved when it is published and
 *             there is an empty host page, and otherwise before the rank
 *             overwrites it: the free pages that are allocated next are saved
 *             in advance, so that an allocation never waits.
 *     fetch   host memory to ranks, for a sequence.  Pages that host memory
 *             lacks are read from a slower tier into host pages first.  A
 *             page goes on to the ranks while later ones are still on their
 *             way.
 *     keep    host memory to each slower tier.  The pages of a conversation
 *             are written when its turn has ended, unless the tier has them
 *             already.
 *
 * Both pages of a copy have a user while it is in progress.  Everything is
 * asynchronous; dsa_tiers_poll() collects what has ended and begins what can
 * begin.  All calls come from the thread of the scheduler.
 */

typedef struct dsa_tiers_s  dsa_tiers_t;


/* Pages of a chain in slower tiers, being counted. */

typedef struct {
    uint32_t            done;           /* 1: found is valid */
    uint32_t            found[DSA_TIERS];       /* leading pages that a tier
                                                   has; 0: it did not answer */
} dsa_probe_t;


typedef enum {
    DSA_FETCH_WAITS = 0,                /* not begun */
    DSA_FETCH_READS,                    /* is read from a slower tier */
    DSA_FETCH_MOVES,                    /* moves to ranks */
    DSA_FETCH_READY                     /* on all ranks that need it */
} dsa_fetch_e;


/* Pages that a sequence waits for. */

typedef struct {
    uint32_t            n;              /* pages, those after a page that could
                                           not be read excluded */
    uint32_t            ready;          /* of them, the first ones that are on
                                           all ranks that need them */
    uint32_t            moving;         /* moves in flight; of pages from n on,
                                           too */
    uint32_t            from[DSA_TIERS];        /* of the ready ones, by the
                                                   tier that had them */
    uint64_t            begin_us;       /* the caller's */
} dsa_fetch_t;


typedef struct {
    dsa_backend_t      *backend;        /* these are the caller's */
    dsa_pages_t        *pages;
    const dsa_host_t   *host;
    const dsa_tier_t   *tier;           /* [DSA_TIERS], copied */
    uint64_t          (*clock_us)(void *data);
    void               *clock_data;
} dsa_tiers_conf_t;


/*
 * The slower tiers are closed by dsa_tiers_destroy(), and by the caller if this
 * fails.  NULL: out of memory, or host memory cannot be prepared for moves,
 * with err.
 */
dsa_tiers_t *dsa_tiers_create(const dsa_tiers_conf_t *conf, dsa_err_t *err);

/*
 * Waits for the moves in flight.  Fetches and probes must have been
 * abandoned before.  NULL is allowed.
 */
void dsa_tiers_destroy(dsa_tiers_t *t);

/*
 * Collects what has ended and begins what can begin.  With wait 1 it waits
 * for one move, if one is in flight.  DSA_ERROR with err: the backend failed.
 */
int dsa_tiers_poll(dsa_tiers_t *t, int wait, dsa_err_t *err);

/*
 * Waits until some pages of a rank are saved that are being saved: they are
 * not free meanwhile, although they may have no other user.  DSA_AGAIN: no
 * page of the rank is being saved.  DSA_ERROR as dsa_tiers_poll().
 */
int dsa_tiers_wait_saves(dsa_tiers_t *t, uint32_t rank, dsa_err_t *err);

/* Pages that move between ranks and host memory, or wait for that. */
uint32_t dsa_tiers_moving(const dsa_tiers_t *t);

/* Probes that are not done, and were not abandoned. */
uint32_t dsa_tiers_probing(const dsa_tiers_t *t);

/* Pages that wait to be written to a slower tier, or are being written. */
uint32_t dsa_tiers_unwritten(const dsa_tiers_t *t);

/*
 * Counts the leading ones of n pages that each slower tier has.  NULL: none can
 * be used now.  The probe belongs to the caller until dsa_tiers_unprobe().
 */
dsa_probe_t *dsa_tiers_probe(dsa_tiers_t *t, const dsa_digest_t *digest,
    uint32_t n);
void dsa_tiers_unprobe(dsa_tiers_t *t, dsa_probe_t *probe);

/*
 * The probe is done now: it does not wait for the tiers that did not answer
 * yet.
 */
void dsa_tiers_end_probe(dsa_tiers_t *t, dsa_probe_t *probe);

/*
 * Of n pages after the prefix that the ranks have, the first ones that may be
 * fetched to a rank now: the memory of its host has them, or slower tier k is
 * expected to have those before expected[k].  token_us is the measured time of
 * a prompt token, 0: not known.  Pages of slower tiers are left out if reading
 * is expected to take longer than computing.
 */
uint32_t dsa_tiers_available(dsa_tiers_t *t, uint32_t rank,
    const dsa_digest_t *digest, uint32_t n,
    const uint32_t expected[DSA_TIERS], double token_us);

/*
 * Fetches n pages into the pages target [ranks][n] of the ranks, DSA_NO_PAGE
 * where a rank needs no copy; all ranks that do are of one host.  target,
 * digest and expected, which is that of dsa_tiers_available(), are copied.  id
 * is that of the request, for the log.  NULL: out of memory.  Until it is
 * abandoned, the target pages keep a user of the caller.
 */
dsa_fetch_t *dsa_tiers_fetch(dsa_tiers_t *t, uint64_t id,
    const dsa_digest_t *digest, const uint32_t *target, uint32_t n,
    const uint32_t expected[DSA_TIERS]);

/* 1 when f->n pages are ready and no move is in flight. */
static inline int
dsa_fetch_ended(const dsa_fetch_t *f)
{
    return f->ready >= f->n && f->moving == 0;
}

/* No page begins to move any more; those that are being read are left out. */
void dsa_tiers_abandon(dsa_tiers_t *t, dsa_fetch_t *f);

/*
 * From now on the fetch loads only into the pages of one rank.  The target
 * pages of the other ranks may be released as of dsa_tiers_unfetch().
 */
void dsa_tiers_fetch_only(dsa_tiers_t *t, dsa_fetch_t *f, uint32_t rank);

/*
 * Gives up a fetch, in any state.  Its target pages may be released; those
 * that are being copied keep a user until the copy ends.
 */
void dsa_tiers_unfetch(dsa_tiers_t *t, dsa_fetch_t *f);

/* A page was published on a rank. */
void dsa_tiers_published(dsa_tiers_t *t, uint32_t rank, uint32_t page,
    const dsa_digest_t *digest);

/* The turn that has these pages has ended: they are worth keeping. */
void dsa_tiers_keep(dsa_tiers_t *t, const dsa_digest_t *digest, uint32_t n);

/*
 * Adds the users that copies in progress are to users [ranks][pages of a rank]
 * and host_users [slabs][pages of the slab].
 */
void dsa_tiers_users(const dsa_tiers_t *t, uint32_t *users,
    uint32_t *host_users);

/* Sets everything but hit_tokens, and pages and used of the GPUs. */
void dsa_tiers_stats(const dsa_tiers_t *t, dsa_tier_stats_t *tier);


#endif /* _DSA_TIERS_H_INCLUDED_ */
