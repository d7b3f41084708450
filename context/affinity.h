
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_AFFINITY_H_INCLUDED_
#define _DSA_AFFINITY_H_INCLUDED_


#include "base/str.h"


/*
 * Finds what the requests of one conversation have in common, in the beginning
 * of a body of any of the APIs.  A balancer in front of several hosts sends
 * requests for which it is equal to one host, which then has their prefixes in
 * its caches.
 *
 * It is a scan, not a parser: it recognizes members by their position and
 * allocates nothing.  Each byte is read at most twice.  A text that is not JSON
 * ends it, and what was found before counts; the host rejects such a text.
 * Escapes are not decoded, because a client repeats its own spelling.  Of
 * repeated names the first one counts.
 */

typedef enum {
    DSA_AFFINITY_NONE = 0,      /* nothing that several requests have in
                                   common but the tenant */
    DSA_AFFINITY_PROMPT,        /* the beginning of a completion's prompt */
    DSA_AFFINITY_USER,          /* the text of the first user message: other
                                   conversations may have the same system
                                   prompt */
    DSA_AFFINITY_CONVERSATION   /* the id of a stored conversation */
} dsa_affinity_e;


/*
 * Most bytes of a text that are scanned, which takes less than half a
 * millisecond.  Longer system prompts and tools hide the user's message.
 */
#define DSA_AFFINITY_SCAN         262144

/* Most bytes that count of a user message and of a prompt. */
#define DSA_AFFINITY_TEXT         16384
#define DSA_AFFINITY_PROMPT_TEXT  1024


/*
 * Scans the first len bytes of a body, at most DSA_AFFINITY_SCAN.  digest is
 * set to a hash (XXH3, 128 bits) of seed, the kind and what was found; it
 * depends on seed alone if that is nothing.  A message that is a string and
 * one that is a part with the same text are equal.  A request with
 * "previous_response_id" has no message of the user that later ones repeat,
 * and its id changes with each turn: nothing is found.
 */
dsa_affinity_e dsa_affinity_scan(const char *text, size_t len, dsa_str_t seed,
    uint8_t digest[16]);


#endif /* _DSA_AFFINITY_H_INCLUDED_ */
