
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BENCH_REPLAY_RESULTS_H_INCLUDED_
#define _DSA_BENCH_REPLAY_RESULTS_H_INCLUDED_


#include "bench/replay_trace.h"


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
    uint64_t            ended;          /* ns */
    float               first_ms;       /* until the first token */
    float               total_ms;
} replay_result_t;


/* USD for a million tokens */

typedef struct {
    double              miss;
    double              hit;
    double              output;
} replay_prices_t;


/*
 * Prints two rows of Markdown tables: hits and times.  Both begin with label;
 * bench/replay has the names of the columns.  Requests that have not ended are
 * left out.  Returns the number of requests that failed; all, if none has
 * ended.
 */
uint32_t replay_print(const trace_t *t, const replay_result_t *result,
    const char *label, const replay_prices_t *prices, double seconds);

/* A CSV file with a line for each request.  -1 with errno. */
int replay_list(const trace_t *t, const replay_result_t *result,
    const char *path);


#endif /* _DSA_BENCH_REPLAY_RESULTS_H_INCLUDED_ */
