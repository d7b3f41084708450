
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BENCH_NODE_STEPS_H_INCLUDED_
#define _DSA_BENCH_NODE_STEPS_H_INCLUDED_


#include <stdint.h>

#include "base/error.h"


/*
 * Steps of a model that were measured on one GPU with a part of its layers, and
 * what all of it did when it was served: a file with the lines
 *
 *     layers,LAYERS,DENSE             in the measured model
 *     prefill,TOKENS,MS,US            a prompt of so many tokens: its time, and
 *                                     that of a layer with experts
 *     decode,ROWS,CONTEXT,MS,US       a step
 *     served,STREAMS,PROMPT,ANSWER,N  output tokens/s
 *
 * and comments that begin with #.  Times between the measured sizes are
 * interpolated; beyond them there are none.
 */

#define DSA_NODE_LINES      64          /* of each kind */


/* Seconds of a layer with experts, and of everything else in the step. */

typedef struct {
    double              layer;
    double              rest;
} dsa_node_seconds_t;


typedef struct {
    double              rows;           /* or tokens of a prompt */
    double              context;        /* 0: a prompt */
    dsa_node_seconds_t  t;
} dsa_node_line_t;


typedef struct {
    double              streams;
    double              prompt;
    double              answer;
    double              tokens;         /* per second */
} dsa_node_served_t;


typedef struct {
    double              layers;
    double              dense;
    dsa_node_line_t     line[2][DSA_NODE_LINES];        /* prompts, decode */
    uint32_t            lines[2];
    dsa_node_served_t   served[DSA_NODE_LINES];
    uint32_t            n_served;
} dsa_node_steps_t;


/* Reads a file; DSA_ERROR with err. */
int dsa_node_steps_read(dsa_node_steps_t *s, const char *name,
    dsa_err_t *err);

/*
 * Sets t to the times of a decode step, or of the token of a prompt of so many
 * tokens.  DSA_AGAIN: the size is not within what was measured.
 */
int dsa_node_steps_decode(dsa_node_seconds_t *t, const dsa_node_steps_t *s,
    double rows, double context);
int dsa_node_steps_prefill(dsa_node_seconds_t *t, const dsa_node_steps_t *s,
    double tokens);

/* Returns output tokens/s as served; 0: it was not measured. */
double dsa_node_steps_served(const dsa_node_steps_t *s, double streams,
    double prompt, double answer);


#endif /* _DSA_BENCH_NODE_STEPS_H_INCLUDED_ */
