
/*
 * Copyright (C) The nginx-dsa authors
 *
 * What the tests of the scheduler with several ranks have in common.
 */


#ifndef _DSA_T_PLACEMENT_H_INCLUDED_
#define _DSA_T_PLACEMENT_H_INCLUDED_


#include "t/unit/scheduler.h"


static inline client_t *
clients(uint32_t n)
{
    uint32_t   i;
    client_t  *c;

    c = calloc(n, sizeof(client_t));
    assert_non_null(c);

    for (i = 0; i < n; i++) {
        c[i].seed = i;
    }

    return c;
}


/* A scheduler on several ranks, each with so many pages and batch indices. */

static inline dsa_sched_t *
start_ranks(fake_t **f, uint32_t n, uint32_t pages, uint32_t max_running,
    uint32_t budget)
{
    dsa_sched_t  *s;

    ranks = n;
    s = start(f, pages, max_running, budget);
    ranks = 1;

    return s;
}


static inline dsa_sched_stats_t
stats_of(const dsa_sched_t *s)
{
    dsa_sched_stats_t  stats;

    dsa_sched_stats(s, &stats);

    return stats;
}


/*
 * A prompt of n tokens that begins with the first n_system tokens of the
 * prompt "text" and goes on with other tokens for each user.
 */

static inline void
submit_user(dsa_sched_t *s, client_t *c, uint32_t tenant, uint32_t text,
    uint32_t n_system, uint32_t user, uint32_t n, uint32_t max_tokens)
{
    uint32_t  i, *ids;

    ids = ids_of(tenant, text, n);

    for (i = n_system != 0 ? n_system : 1; i < n; i++) {
        ids[i] = 100 + (user * 104729 + i * 17) % (VOCAB - 100);
    }

    submit_ids(s, c, ids, n, max_tokens, 1);
    assert_non_null(c->seq);
}


#endif /* _DSA_T_PLACEMENT_H_INCLUDED_ */
