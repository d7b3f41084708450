
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "engine/cuda/copies.h"


static int dsa_copies_before(dsa_cuda_copies_t *c, const uint32_t *to);
static int dsa_copies_page(const dsa_cuda_rank_t *to,
    const dsa_cuda_rank_t *from, const dsa_page_copy_t *copy);
static int dsa_copies_after(dsa_cuda_copies_t *c, const uint32_t *to);


int
dsa_cuda_copies_open(dsa_cuda_copies_t *c, uint32_t rank)
{
    int  rc;

    rc = cudaEventCreateWithFlags(&c->copying[rank], cudaEventDisableTiming);

    return rc != 0 ? rc : (int) cudaEventCreateWithFlags(&c->copied[rank],
                                                     cudaEventDisableTiming);
}


void
dsa_cuda_copies_close(dsa_cuda_copies_t *c, uint32_t rank)
{
    if (c->copying[rank] != NULL) {
        (void) cudaEventDestroy(c->copying[rank]);
    }

    if (c->copied[rank] != NULL) {
        (void) cudaEventDestroy(c->copied[rank]);
    }
}


int
dsa_cuda_copies_order(dsa_cuda_copies_t *c, const dsa_page_copy_t *copy,
    uint32_t n)
{
    int                rc;
    uint32_t           i, to[DSA_MAX_GPUS];
    dsa_cuda_rank_t  **rank;

    rank = c->group->rank;
    memset(to, 0, sizeof(to));

    for (i = 0; i < n; i++) {
        to[copy[i].from_rank] |= 1U << copy[i].to_rank;
    }

    rc = dsa_copies_before(c, to);

    for (i = 0; rc == 0 && i < n; i++) {
        rc = dsa_copies_page(rank[copy[i].to_rank], rank[copy[i].from_rank],
                             &copy[i]);
    }

    return rc != 0 ? rc : dsa_copies_after(c, to);
}


/*
 * Makes each rank wait for the sources of its copies.  to [ranks]: for each
 * rank a bit mask of the ranks to which its pages are copied.
 */

static int
dsa_copies_before(dsa_cuda_copies_t *c, const uint32_t *to)
{
    int               rc;
    uint32_t          r, q;
    dsa_cuda_rank_t  *rank;

    rc = 0;

    for (r = 0; rc == 0 && r < c->group->ranks; r++) {
        if (to[r] == 0) {
            continue;
        }

        rank = c->group->rank[r];

        rc = dsa_cuda_rank_attach(rank);
        rc = rc != 0 ? rc : (int) cudaEventRecord(c->copying[r],
                                                  rank->stream);

        for (q = 0; rc == 0 && q < c->group->ranks; q++) {
            if ((to[r] >> q & 1) != 0) {
                rc = cudaStreamWaitEvent(c->group->rank[q]->stream,
                                         c->copying[r], 0);
            }
        }
    }

    return rc;
}


static int
dsa_copies_page(const dsa_cuda_rank_t *to, const dsa_cuda_rank_t *from,
    const dsa_page_copy_t *copy)
{
    uint8_t   *source, *target;
    uint64_t   bytes;

    bytes = to->cache.page;
    source = (uint8_t *) from->page + copy->from_page * bytes;
    target = (uint8_t *) to->page + copy->to_page * bytes;

    return cudaMemcpyPeerAsync(target, to->device, source, from->device, bytes,
                               to->stream);
}


/* Makes each source wait for the copies of its pages. */

static int
dsa_copies_after(dsa_cuda_copies_t *c, const uint32_t *to)
{
    int               rc;
    uint32_t          r, q;
    dsa_cuda_rank_t  *rank;

    rc = 0;

    for (q = 0; rc == 0 && q < c->group->ranks; q++) {
        rank = c->group->rank[q];

        rc = dsa_cuda_rank_attach(rank);
        rc = rc != 0 ? rc : (int) cudaEventRecord(c->copied[q],
                                                  rank->stream);

        for (r = 0; rc == 0 && r < c->group->ranks; r++) {
            if ((to[r] >> q & 1) != 0) {
                rc = cudaStreamWaitEvent(c->group->rank[r]->stream,
                                         c->copied[q], 0);
            }
        }
    }

    return rc;
}


int
dsa_cuda_copies_record(dsa_cuda_copies_t *c)
{
    int               rc;
    uint32_t          r;
    dsa_cuda_rank_t  *rank;

    rc = 0;

    for (r = 0; rc == 0 && r < c->group->ranks; r++) {
        rank = c->group->rank[r];

        rc = dsa_cuda_rank_attach(rank);
        rc = rc != 0 ? rc : (int) cudaEventRecord(c->copied[r],
                                                  rank->stream);
    }

    return rc;
}
