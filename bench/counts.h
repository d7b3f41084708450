
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BENCH_COUNTS_H_INCLUDED_
#define _DSA_BENCH_COUNTS_H_INCLUDED_


#include <stdint.h>
#include <stdio.h>


/*
 * What engines have read and generated, by their counters in /metrics of
 * nginx, which are up to 0.1 s old.  A prompt counts as it is found or
 * computed, and an answer as it is generated, so that the difference over a
 * time has the tokens of requests that are only partly in it.
 */

typedef struct {
    uint64_t            prompt;         /* tokens, found and computed */
    uint64_t            cached;         /* of these, found */
    uint64_t            completion;
} counts_t;


/*
 * Adds the counters of the engines of an nginx with dsa_metrics at /metrics of
 * a port of 127.0.0.1, and appends the document to keep, which may be NULL.  A
 * worker that has no session with one of the engines, as in its first seconds,
 * does not have their counters; then the document is read again, for 5 s at
 * most.  -1 with errno: EPROTO without /metrics or counters in it, ETIMEDOUT
 * without a session.
 */
int counts_read(counts_t *counts, int port, FILE *keep);

/*
 * Subtracts earlier counters.  -1 if they are larger, as after the end of an
 * engine.
 */
int counts_since(counts_t *counts, const counts_t *before);


#endif /* _DSA_BENCH_COUNTS_H_INCLUDED_ */
