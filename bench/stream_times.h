
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BENCH_STREAM_TIMES_H_INCLUDED_
#define _DSA_BENCH_STREAM_TIMES_H_INCLUDED_


#include <stdint.h>


/*
 * The times of streams, as a client sees them: until the first event with
 * text, between two of these, and of a token of a request: from its first such
 * event to its last one, divided by its tokens after the first.  An event may
 * have several tokens, so that the time between events is not that of a token.
 */

typedef struct {
    float              *ms;             /* [n] */
    uint32_t            n;
    uint32_t            size;           /* that there is room for */
} stream_series_t;


typedef struct {
    uint64_t            from;           /* ns: what arrived before is left
                                           out */
    stream_series_t     first;
    stream_series_t     interval;
    stream_series_t     token;
    int                 failed;         /* 1: out of memory, and incomplete */
} stream_times_t;


/* of one request, ns */

typedef struct {
    uint64_t            begun;
    uint64_t            first;          /* event with text; 0: none */
    uint64_t            last;
} stream_time_t;


void stream_begin(stream_time_t *s, uint64_t now);

/* An event with text has arrived. */
void stream_text(stream_times_t *t, stream_time_t *s, uint64_t now);

/* A request has ended, with so many tokens of its answer. */
void stream_end(stream_times_t *t, const stream_time_t *s, uint64_t now,
    uint32_t tokens);

/* Sorts a series and returns a quantile, from 0 to 1; 0 of an empty one. */
double stream_quantile(stream_series_t *series, double q);

void stream_times_free(stream_times_t *t);


#endif /* _DSA_BENCH_STREAM_TIMES_H_INCLUDED_ */
