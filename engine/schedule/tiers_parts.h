
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TIERS_PARTS_H_INCLUDED_
#define _DSA_TIERS_PARTS_H_INCLUDED_


#include "base/map.h"
#include "engine/schedule/tiers.h"


/*
 * Shared by the files of the tiers.  Calls go one way: tiers.c (poll), keep.c,
 * fetch.c, moves.c.  A slower tier is one behind host memory.
 */

#define DSA_TIER_BATCH      32          /* most pages in a call of move() */
#define DSA_TIER_SAVES      2048        /* most saves of a rank in progress:
                                           as many pages as may be saved in
                                           advance, because a page that comes
                                           too late ends all prefixes that it
                                           is a part of */
#define DSA_TIER_READS      256         /* most reads of a fetch in progress, */
#define DSA_TIER_WRITES     256         /* and most writes: nothing is added to
                                           them during a step, and a step with
                                           8192 tokens of prefill takes 1.2 s
                                           and makes 128 pages */
#define DSA_TIER_KEPT       16384       /* most pages that wait to be written
                                           to a tier */
#define DSA_TIER_PROBES     256         /* most counts of ended turns in
                                           progress in a tier */
#define DSA_TIER_CHAIN      16384       /* most pages of a probe */


typedef struct dsa_fetching_s  dsa_fetching_t;
typedef struct dsa_page_op_s  dsa_page_op_t;
typedef struct dsa_probing_s  dsa_probing_t;


typedef enum {
    DSA_OP_SAVE = 0,                    /* rank to host memory */
    DSA_OP_LOAD,                        /* host memory to rank */
    DSA_OP_READ,                        /* slower tier to host memory */
    DSA_OP_WRITE                        /* host memory to slower tier */
} dsa_page_op_e;


/* A page that is being copied; both pages of the copy have it as a user. */

struct dsa_page_op_s {
    dsa_page_op_e       kind;
    dsa_digest_t        digest;
    dsa_host_at_t       at;             /* the host page */
    uint32_t            rank;           /* SAVE, LOAD */
    uint32_t            page;           /* SAVE, LOAD */
    uint32_t            last;           /* SAVE: the rank will overwrite it */
    uint32_t            indexed;        /* LOAD: it is in the index */
    uint32_t            lost;           /* LOAD: its host does not have it */
    uint32_t            index;          /* LOAD, READ: in fetch */
    dsa_fetching_t     *fetch;          /* LOAD, READ; it exists until then */
    uint64_t            call;           /* SAVE, LOAD: which call of move() */
    uint64_t            begin_us;       /* SAVE, LOAD: of that call */
    uint32_t            tier;           /* READ, WRITE: the slower one */
    dsa_tier_op_t       op;             /* READ, WRITE */
    dsa_page_op_t      *next_move;      /* next one in its queue */
    dsa_page_op_t      *prev;           /* in t->ops */
    dsa_page_op_t      *next;
};


/* Moves of a rank in one way, in their order. */

typedef struct {
    dsa_page_op_t      *first;          /* in flight, then not ordered */
    dsa_page_op_t      *last;
    dsa_page_op_t      *unordered;      /* the first one that is not ordered */
    uint32_t            n;
    uint64_t            ordered;        /* calls */
    uint64_t            ended;          /* calls */
} dsa_move_queue_t;


/* What a fetch reads from a slower tier. */

typedef struct {
    uint32_t            reading;        /* READ ops that refer to the fetch */
    uint32_t            n;              /* pages that were read since reading
                                           was 0 */
    uint64_t            begin_us;       /* when the first one was queued */
    uint64_t            end_us;         /* when the last one had arrived */
} dsa_reading_t;


struct dsa_fetching_s {
    dsa_fetch_t         f;              /* the part of the caller */
    uint64_t            id;             /* of the request, for the log */
    uint32_t            n;              /* of the arrays */
    uint32_t            host;           /* whose memory it uses */
    uint32_t            next;           /* the first page not begun */
    uint32_t            reading;        /* READ ops that refer to it */
    uint32_t            abandoned;
    uint32_t            expected[DSA_TIERS];    /* leading pages that a slower
                                                   tier had */
    dsa_reading_t       read[DSA_TIERS];
    dsa_digest_t       *digest;         /* [n] */
    uint32_t           *target;         /* [ranks][n] */
    uint8_t            *state;          /* [n], dsa_fetch_e */
    uint8_t            *left;           /* [n] moves in flight */
    uint8_t            *from;           /* [n] the tier that is read */
    dsa_fetching_t     *prev;           /* in t->fetches */
    dsa_fetching_t     *next_fetch;
};


struct dsa_probing_s {
    dsa_probe_t         p;              /* the part of the caller */
    uint32_t            keep;           /* 1: of a turn that has ended */
    uint32_t            abandoned;
    uint32_t            pending;        /* ops that were not collected */
    dsa_tier_op_t       op[DSA_TIERS];  /* of the slower tiers */
    dsa_probing_t      *prev;           /* in t->probes */
    dsa_probing_t      *next;
    dsa_digest_t        digest[];
};


/* A slower tier, and the pages that move between it and host memory. */

typedef struct {
    dsa_tier_t          tier;           /* submit NULL: there is none */
    uint32_t            reading;        /* READ ops */
    uint32_t            writing;        /* WRITE ops */
    uint32_t            keeping;        /* probes with keep */
    double              read_us;        /* of a page, while several are read;
                                           0: not measured */
    dsa_digest_t       *kept;           /* [DSA_TIER_KEPT] ring: to be
                                           written */
    uint32_t            kept_first;
    uint32_t            n_kept;
    dsa_map_t           kept_map;       /* digests in it, and being written */
} dsa_slower_t;


struct dsa_tiers_s {
    dsa_tiers_conf_t    conf;
    dsa_backend_t      *backend;        /* of conf */
    dsa_pages_t        *pages;
    const dsa_host_t   *host;
    dsa_slower_t        slower[DSA_TIERS];      /* from DSA_TIER_SLOWER on */
    uint32_t            slab[DSA_MAX_GPUS];     /* of each rank */
    uint32_t            window;         /* pages that are saved in advance */
    uint32_t            n_candidates[DSA_MAX_GPUS];  /* being saved */
    dsa_move_queue_t    queue[DSA_MAX_GPUS][DSA_MOVES];
    uint32_t            moving;         /* ops in all queues */
    dsa_page_op_t      *ops;            /* all */
    dsa_fetching_t     *fetches;
    dsa_probing_t      *probes;
    uint32_t            probing;        /* probes of callers, not done */
    uint32_t            no_memory;      /* 1: the next poll fails */
    dsa_tier_stats_t    stats[DSA_TIERS];
};


/* The arguments of "request %u.%u: page %02x%02x%02x%02x" in the log. */

#define dsa_fetch_log(f, index)                                               \
    (uint32_t) (f)->id, (uint32_t) ((f)->id >> 32),                           \
    dsa_digest_log(&(f)->digest[index])


static inline uint64_t
dsa_tiers_now(const dsa_tiers_t *t)
{
    return t->conf.clock_us(t->conf.clock_data);
}


/* Returns 1 if the replica has a slower tier and the tier can be used now. */

static inline int
dsa_slower_on(const dsa_slower_t *s)
{
    return s->tier.submit != NULL && s->tier.on(s->tier.data);
}


/* moves.c */

/* A zeroed op in t->ops; NULL: out of memory, and the next poll fails. */
dsa_page_op_t *dsa_tiers_op(dsa_tiers_t *t, dsa_page_op_e kind,
    const dsa_digest_t *digest);
void dsa_tiers_op_free(dsa_tiers_t *t, dsa_page_op_t *op);

/*
 * Saves a page of a rank, which has one user that becomes that of the copy.
 * last: see dsa_pages_host_ready().  DSA_AGAIN: not now, and the user is the
 * caller's.
 */
int dsa_tiers_save(dsa_tiers_t *t, uint32_t rank, uint32_t page,
    const dsa_digest_t *digest, int last);

/* Copies a host page to a page of a rank; both get a user. */
void dsa_tiers_load(dsa_tiers_t *t, dsa_fetching_t *f, uint32_t index,
    dsa_host_at_t at, uint32_t rank, uint32_t page);

/* Saves free pages that the ranks will overwrite soon. */
void dsa_tiers_save_candidates(dsa_tiers_t *t);

/* Orders what can be ordered; DSA_ERROR with err. */
int dsa_tiers_order(dsa_tiers_t *t, dsa_err_t *err);

/* 1 if a call of move() is in flight. */
int dsa_tiers_in_flight(const dsa_tiers_t *t);

/* Collects moves that have ended; with wait 1 it waits for one of them. */
int dsa_tiers_moved(dsa_tiers_t *t, int wait, dsa_err_t *err);


/* fetch.c */

/* Begins the next pages of a fetch. */
void dsa_fetch_advance(dsa_tiers_t *t, dsa_fetching_t *f);

/* A move or a read of a page has ended; lost: the move without the page. */
void dsa_fetch_loaded(dsa_tiers_t *t, dsa_fetching_t *f, uint32_t index);
void dsa_fetch_lost(dsa_tiers_t *t, dsa_fetching_t *f, uint32_t index);
void dsa_fetch_read(dsa_tiers_t *t, dsa_page_op_t *op);

/* Frees a fetch that was abandoned, if nothing refers to it. */
void dsa_fetch_free_unused(dsa_tiers_t *t, dsa_fetching_t *f);


/* keep.c */

/* A slower tier has counted the pages of a turn. */
void dsa_keep_probed(dsa_tiers_t *t, dsa_probing_t *p, uint32_t tier);
void dsa_keep_written(dsa_tiers_t *t, dsa_page_op_t *op);

/* Begins to write pages to a slower tier. */
void dsa_keep_advance(dsa_tiers_t *t, uint32_t tier);

/*
 * Begins to count n pages in a slower tier.  *p: NULL, or the probe of the same
 * pages in another tier; it is created in t->probes.  DSA_AGAIN: not now.
 */
int dsa_tiers_submit_probe(dsa_tiers_t *t, dsa_probing_t **p, uint32_t tier,
    const dsa_digest_t *digest, uint32_t n, int keep);
void dsa_tiers_free_probe(dsa_tiers_t *t, dsa_probing_t *p);


#endif /* _DSA_TIERS_PARTS_H_INCLUDED_ */
