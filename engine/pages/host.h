
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_HOST_H_INCLUDED_
#define _DSA_HOST_H_INCLUDED_


#include <stdint.h>

#include "base/error.h"


/*
 * The host memory of a replica for the KV cache: one slab of host pages for
 * each NUMA node, in huge pages if the system has them, all of it present
 * before the first use.  A host page is memory for one page of the KV cache.
 *
 * A replica over several hosts has slabs on each of them, and only the ranks of
 * a host use its slabs.  Those of other hosts have no memory here.
 */

#define DSA_HOST_SLABS      16          /* most slabs, of all hosts */
#define DSA_HOST_NODES_USED 8           /* most nodes of a host */
#define DSA_HOST_NODES      1024        /* their numbers are below that */
#define DSA_HOST_ALIGN      4096        /* bytes, of a host page */


typedef struct {
    uint8_t            *memory;         /* NULL: of another host */
    uint64_t            bytes;          /* of the host pages */
    uint64_t            mapped;         /* bytes of the mapping */
    int32_t             node;           /* -1: the system has only one */
    uint32_t            pages;
    uint32_t            host;           /* that has it; 0: this one */
    uint32_t            number;         /* of the slab on that host */
} dsa_host_slab_t;


typedef struct dsa_host_s {
    dsa_host_slab_t     slab[DSA_HOST_SLABS];
    uint32_t            slabs;
    uint32_t            hosts;          /* of the replica; 0: one */
    uint64_t            page_bytes;     /* multiple of DSA_HOST_ALIGN */
} dsa_host_t;


/*
 * Maps size bytes, or a little less, divided equally between the NUMA nodes,
 * and writes to every part of the mappings with several threads.  A host page
 * has at least page_bytes.  The memory is in huge pages that the administrator
 * has reserved, if there are enough for a slab, and otherwise in normal memory
 * with transparent huge pages.  A mapping in reserved huge pages is rounded up,
 * by up to 1/8 of its host pages.
 *
 * Logs sizes, huge pages and time at level notice, and progress at level info.
 * DSA_ERROR with err, and nothing is mapped: not even one host page fits size,
 * or the memory is not available.
 */
int dsa_host_open(dsa_host_t *h, uint64_t size, uint64_t page_bytes,
    dsa_err_t *err);

/*
 * The same for one of so many hosts, so that the slabs of all of them together
 * are at most DSA_HOST_SLABS.  Those of other hosts are not added.
 */
int dsa_host_open_part(dsa_host_t *h, uint64_t size, uint64_t page_bytes,
    uint32_t hosts, dsa_err_t *err);

/* Unmaps everything; a zeroed dsa_host_t is allowed. */
void dsa_host_close(dsa_host_t *h);

/*
 * Sets set[i] to 1 for each node i in a list as the kernel writes it, for
 * example "0-1,3", and to 0 for the others.  Larger numbers are ignored.
 */
void dsa_host_nodes(const char *list, uint8_t set[DSA_HOST_NODES]);

/*
 * Returns the slab of a NUMA node of a host, or the first slab of the host if
 * the node has no slab or is not known (-1).
 */
uint32_t dsa_host_slab(const dsa_host_t *h, uint32_t host, int32_t node);


/* Returns the memory of a host page; NULL: another host has it. */

static inline uint8_t *
dsa_host_page(const dsa_host_t *h, uint32_t slab, uint32_t page)
{
    return h->slab[slab].memory == NULL
           ? NULL : h->slab[slab].memory + page * h->page_bytes;
}


#endif /* _DSA_HOST_H_INCLUDED_ */
