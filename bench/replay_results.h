
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BENCH_REPLAY_RESULTS_H_INCLUDED_
#define _DSA_BENCH_REPLAY_RESULTS_H_INCLUDED_


#include "bench/replay_trace.h"
#include "bench/replay_window.h"


/* The results of a replay, and the rows that are printed of them. */

#define REPLAY_TIERS        3


typedef enum {
    REPLAY_WAITING = 0,
    REPLAY_RUNNING,
    REPLAY_ENDED,
    REPLAY_FAILED
} replay_state_e;


/* of one request; token counts are those of the server's usage */

typedef struct {
    replay_state_e      state;
    uint32_t            prompt;
    uint32_t            output;
    uint32_t            cached;
    int64_t             tier[REPLAY_TIERS];     /* cached tokens of GPU, host,
                                           Redis; -1: not in the usage */
    uint64_t            due;            /* ns */
    uint64_t            ended;          /* ns */
    float               first_ms;       /* from due until the first token */
} replay_result_t;


/*
 * Prints three rows of Markdown tables: hits, times and rates.  They begin with
 * the label; bench/replay has the names of the columns.  Hits, the times of a
 * token of a request, and costs are those of requests that have ended in the
 * window.  What is not known is "-".  Returns the number of requests that
 * failed, also before the window; all, if no token has arrived in it.
 */
uint32_t replay_print(const trace_t *t, const replay_result_t *result,
    replay_window_t *w, const replay_options_t *o);

/*
 * A CSV file with a line for each request; start, ns, is that of the run.  -1
 * with errno.
 */
int replay_list(const trace_t *t, const replay_result_t *result,
    uint64_t start, const char *path);


#endif /* _DSA_BENCH_REPLAY_RESULTS_H_INCLUDED_ */
