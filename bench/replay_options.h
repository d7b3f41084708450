
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BENCH_REPLAY_OPTIONS_H_INCLUDED_
#define _DSA_BENCH_REPLAY_OPTIONS_H_INCLUDED_


#include <stdint.h>


/* The command line of a replay. */

#define REPLAY_PORTS        64          /* most nginx with /metrics */


/* USD for a million tokens */

typedef struct {
    double              miss;
    double              hit;
    double              output;
} replay_prices_t;


typedef struct {
    uint32_t            port;
    uint32_t            metrics[REPLAY_PORTS];  /* [n_metrics] */
    uint32_t            n_metrics;
    uint32_t            limit;          /* requests */
    uint32_t            concurrency;
    uint32_t            agents;         /* 0: requests begin when they arrive */
    uint32_t            added;          /* tokens of the template for a further
                                           message, or PROMPT_ONE */
    uint32_t            warm;           /* seconds until the measurement */
    uint32_t            seconds;        /* most of it; 0: any number */
    uint32_t            gpus;           /* of all engines */
    double              speed;          /* 0: times of the trace are ignored */
    double              temperature;    /* of requests */
    const char         *file;
    const char         *tokenizer;
    const char         *uri;
    const char         *model;
    const char         *label;
    const char         *list;
    const char         *keep;           /* for NAME.begin and NAME.end */
    replay_prices_t     prices;
} replay_options_t;


/* Strings are those of argv.  -1 after the reason was written to stderr. */
int replay_options(replay_options_t *o, int argc, char **argv);


#endif /* _DSA_BENCH_REPLAY_OPTIONS_H_INCLUDED_ */
