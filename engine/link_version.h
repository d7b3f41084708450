
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The versions of the link, and what each of them added.
 */


#ifndef _DSA_LINK_VERSION_H_INCLUDED_
#define _DSA_LINK_VERSION_H_INCLUDED_


#include <stdint.h>


/*
 * Version 4 adds the tiers of the prefix cache: the end of DONE and the end of
 * the control block.  Version 5 adds the fields GRAMMAR and BIAS and the flag
 * THINKING to SUBMIT.  Version 6 adds thinking_budget to SUBMIT, and a spec in
 * place of the text to the grammar of tools.  Version 7 adds the flag SAMPLES
 * and those after it to SUBMIT, and the record ROLLOUT.  Version 8 adds the
 * field REQUEST and the flags LOW and HIGH to SUBMIT.  All else is the same in
 * all of them.
 */

#define DSA_LINK_VERSION_MIN      3       /* the versions that the headers */
#define DSA_LINK_VERSION_MAX      8       /* of the link describe */
#define DSA_LINK_VERSION_TIERS    4       /* the first one with tiers, */
#define DSA_LINK_VERSION_GRAMMAR  5       /* and with GRAMMAR and BIAS */
#define DSA_LINK_VERSION_BUDGET   6       /* and with thinking_budget */
#define DSA_LINK_VERSION_ROLLOUT  7       /* and with ROLLOUT */
#define DSA_LINK_VERSION_REQUEST  8       /* and with REQUEST, LOW, HIGH */


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
