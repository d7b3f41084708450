
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BENCH_REPLAY_WINDOW_H_INCLUDED_
#define _DSA_BENCH_REPLAY_WINDOW_H_INCLUDED_


#include "bench/counts.h"
#include "bench/replay_options.h"
#include "bench/stream_times.h"


/*
 * The part of a run that is measured.  Requests count if they end in it, times
 * if the event that ends them arrives in it, and tokens as the engines count
 * them in it, of whatever request.
 */

typedef struct {
    stream_times_t      times;          /* times.from: its beginning, ns;
                                           UINT64_MAX until then */
    double              seconds;        /* its length; 0 until its end */
    counts_t            before;
    counts_t            counts;         /* in it */
    int                 counted;        /* 1: both are known */
} replay_window_t;


void replay_window_init(replay_window_t *w);

/*
 * Reads the engines' counters, as far as nginx has them, and begins to
 * measure.  -1 with the reason on stderr: the counters cannot be kept.
 */
int replay_window_begin(replay_window_t *w, const replay_options_t *o);

/*
 * Ends it at a time of http_now(), and reads the counters until they have at
 * least so many tokens of answers, for 2 s at most: engines publish them a
 * little later.  Returns as replay_window_begin().
 */
int replay_window_end(replay_window_t *w, const replay_options_t *o,
    uint64_t now, uint64_t completion);


#endif /* _DSA_BENCH_REPLAY_WINDOW_H_INCLUDED_ */
