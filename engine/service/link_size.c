
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>

#include "engine/link_hello.h"
#include "engine/service/link_size.h"


#define DSA_LINK_SLOTS          16384           /* at least; a power of two */

#define DSA_LINK_SUBMIT_TOKEN   32              /* bytes */
#define DSA_LINK_SUBMIT_MIN     (16ULL << 20)   /* powers of two */
#define DSA_LINK_SUBMIT_MAX     (1ULL << 30)

#define DSA_LINK_EVENT_SEQUENCE 256             /* bytes */
#define DSA_LINK_EVENT_MIN      (4ULL << 20)    /* a power of two */


static uint64_t dsa_link_power(uint64_t least, uint64_t n);


void
dsa_link_size(dsa_link_size_t *size, uint32_t running, uint32_t waiting,
    uint32_t context)
{
    assert((uint64_t) running + waiting < DSA_LINK_MAX_SLOTS);

    size->slots = (uint32_t) dsa_link_power(DSA_LINK_SLOTS,
                                            running + waiting + 1);

    size->submit = dsa_link_power(DSA_LINK_SUBMIT_MIN,
                                  (uint64_t) context * DSA_LINK_SUBMIT_TOKEN);

    if (size->submit > DSA_LINK_SUBMIT_MAX) {
        size->submit = DSA_LINK_SUBMIT_MAX;
    }

    size->event = dsa_link_power(DSA_LINK_EVENT_MIN,
                                 (uint64_t) running
                                 * DSA_LINK_EVENT_SEQUENCE);
}


/* Returns the least power of two from least, which is one, that is >= n. */

static uint64_t
dsa_link_power(uint64_t least, uint64_t n)
{
    while (least < n) {
        least *= 2;
    }

    return least;
}
