
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_LINK_SIZE_H_INCLUDED_
#define _DSA_LINK_SIZE_H_INCLUDED_


#include <stdint.h>


/* What a session of the link has room for (engine/link.h). */

typedef struct {
    uint32_t    slots;          /* requests at once; at most
                                   DSA_LINK_MAX_SLOTS */
    uint64_t    submit;         /* bytes of a ring, powers of two */
    uint64_t    event;
} dsa_link_size_t;


/*
 * Computes the sizes of each session of a replica from what the replica may
 * have at once: running sequences on all ranks together, waiting requests in
 * excess of these, and context tokens of a request.  running + waiting must be
 * less than DSA_LINK_MAX_SLOTS.
 *
 *   - slots: the least power of two above running + waiting, and at least
 *     16384.  When a worker has no free slot, requests of all tenants are
 *     rejected.  The limits of the scheduler treat tenants fairly, so they must
 *     be reached first, also if one worker has all requests.  Prompts that are
 *     tokenized or counted have slots as well.
 *   - submit: the least power of two of at least 32 bytes for each token of the
 *     context, from 16 MB to 1 GB.  A record may take half of the ring: the
 *     text of the longest prompt with 12 bytes a token, about three times that
 *     of English text, and 4 bytes for its id, with which an answer is resumed.
 *     The least size is for prompts whose rejection has their number of tokens,
 *     although they exceed the context.
 *   - event: the least power of two of at least 256 bytes for each running
 *     sequence, and at least 4 MB.  A record with one token takes 48 bytes, so
 *     there is room for five steps.  What a full ring has no room for waits in
 *     the replica, with the tokens of several steps in one record.
 */
void dsa_link_size(dsa_link_size_t *size, uint32_t running, uint32_t waiting,
    uint32_t context);


#endif /* _DSA_LINK_SIZE_H_INCLUDED_ */
