
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_USAGE_H_INCLUDED_
#define _NGX_HTTP_DSA_USAGE_H_INCLUDED_


#include <stdint.h>

#include "base/tiers.h"


/* The tokens that a request is charged with. */

typedef struct {
    uint64_t                  prompt;       /* cached ones included */
    uint64_t                  cached;
    uint64_t                  tier[DSA_TIERS];  /* of cached, which is their
                                               sum */
    uint64_t                  completion;   /* reasoning included */
    uint64_t                  reasoning;

    /* not charged */

    uint64_t                  drafts;       /* that engines have verified */
    uint64_t                  accepted;     /* of them, in completion */
} ngx_http_dsa_usage_t;


#endif /* _NGX_HTTP_DSA_USAGE_H_INCLUDED_ */
