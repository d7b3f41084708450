
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The versions of the link.
 */


#ifndef _DSA_LINK_VERSION_H_INCLUDED_
#define _DSA_LINK_VERSION_H_INCLUDED_


#include <stdint.h>


/*
 * The versions that the headers of the link describe.  There is one, because
 * nothing has been released yet.  A change of the link after the first release
 * raises the maximum.
 */

#define DSA_LINK_VERSION_MIN      1
#define DSA_LINK_VERSION_MAX      1


#define DSA_LINK_DRAFTS           7     /* most of an answer in a step */


/* The highest version that both sides accept; 0 if there is none. */

static inline uint32_t
dsa_link_version(uint32_t min, uint32_t max)
{
    if (max > DSA_LINK_VERSION_MAX) {
        max = DSA_LINK_VERSION_MAX;
    }

    return max >= min && max >= DSA_LINK_VERSION_MIN ? max : 0;
}


#endif /* _DSA_LINK_VERSION_H_INCLUDED_ */
