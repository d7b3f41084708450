
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <xxhash.h>

#include "engine/backend.h"


/* Who changes what a page holds changes it. */
#define DSA_BACKEND_LAYOUT  "layout 1"


void
dsa_backend_fingerprint(dsa_backend_t *b, const char *model,
    dsa_precision_e precision)
{
    int             n;
    char            text[128];
    XXH128_hash_t   h;

    n = snprintf(text, sizeof(text), "%s %s %s", model,
                 precision == DSA_SERVED ? "served" : "exact",
                 DSA_BACKEND_LAYOUT);

    h = XXH3_128bits(text, (size_t) n);

    (void) snprintf(b->fingerprint, sizeof(b->fingerprint), "%016llx%016llx",
                    (unsigned long long) h.high64,
                    (unsigned long long) h.low64);
}
