
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BENCH_ENGINE_H_INCLUDED_
#define _DSA_BENCH_ENGINE_H_INCLUDED_


#include "bench/bound.h"
#include "engine/backend.h"


/*
 * dsa bench engine: whole steps through the backend as the scheduler starts
 * them: two in flight, decode steps as graphs.  The KV cache of prefixes is
 * random, so that a long context costs no prefill.  "ncu --profile-from-start
 * off" profiles one round of a prompt, and one decode step, of each
 * measurement.  Files:
 *
 *     engine           options, and the models that are measured
 *     engine_steps     the measurements
 *     engine_table     bounds and tables
 *     engine_drafts    decode steps with drafts, and what they gain
 *     engine_mixed     steps of answers and of a prompt
 */

#define DSA_BENCH_SEQS      128         /* of each rank, unless --decode names
                                           more */
#define DSA_BENCH_TOKENS    8192        /* of each rank in a step */

#define DSA_BENCH_PROMPTS   5
#define DSA_BENCH_BATCHES   9
#define DSA_BENCH_CONTEXTS  3
#define DSA_BENCH_DRAFTS    (DSA_MAX_OUTPUTS - 1)
#define DSA_BENCH_ROWS      5           /* sizes of mixed steps, */
#define DSA_BENCH_MIXED     512         /* the largest of them */
#define DSA_BENCH_PARTS     4           /* of their rows, 0 to all of which are
                                           a prompt's */


extern const uint32_t  dsa_bench_prompt[DSA_BENCH_PROMPTS];
extern const uint32_t  dsa_bench_batch[DSA_BENCH_BATCHES];
extern const uint32_t  dsa_bench_context[DSA_BENCH_CONTEXTS];


/* Seconds; 0: not measured. */

typedef struct {
    uint32_t            layers;
    uint32_t            gpus;
    dsa_attention_e     attention;
    double              prefill[DSA_BENCH_PROMPTS];     /* "data": a prompt
                                           for each GPU */
    double              split[DSA_BENCH_PROMPTS];       /* "data": one prompt
                                           for all GPUs */
    double              decode[DSA_BENCH_CONTEXTS][DSA_BENCH_BATCHES];
                                        /* "data": batch is of each GPU */
    double              drafts[DSA_BENCH_CONTEXTS][DSA_BENCH_BATCHES]
                              [DSA_BENCH_DRAFTS + 1];   /* with so many drafts
                                           of each sequence */
    double              mixed[DSA_BENCH_ROWS][DSA_BENCH_PARTS + 1];
                                        /* so many of these parts of each
                                           rank's rows are a prompt's */
} dsa_bench_result_t;


typedef struct {
    const char         *model;
    uint32_t            gpus;
    dsa_attention_e     attention;
    uint32_t            layers;         /* 0: as many as fit one GPU */
    int                 one;            /* 1: they fit one GPU */
    uint32_t            seqs;           /* most of each rank in a step */
    int                 prefill;
    int                 decode;
    uint32_t            tokens_only;    /* of the prompts measured; 0: all */
    uint32_t            batch_only;
    uint32_t            context_only;
    uint32_t            drafts;         /* most of a sequence; 0: not
                                           measured */
    int                 mixed;
    uint32_t            mixed_rows;     /* of the steps measured; 0: all */
    uint32_t            mixed_context;  /* of their sequences */
    double              accepted[DSA_BENCH_DRAFTS];     /* of the drafts at
                                           each position, the share that is
                                           assumed to be accepted */
    dsa_model_config_t  config;         /* of config.json */

    /* of the model being measured */
    dsa_backend_t      *backend;
    dsa_bench_result_t *result;
    uint32_t           *tokens;         /* [context + ranks * seqs] */
    uint32_t           *pages;          /* [ranks * seqs, pages of the
                                           context] */
    const uint32_t     *copies[DSA_MAX_GPUS];
    dsa_batch_seq_t    *seq;            /* [ranks * seqs] */
    dsa_sample_t       *sample;         /* [2, ranks * seqs, outputs] */
    uint32_t           *accept;         /* [2, ranks * seqs] */
    uint32_t           *next;           /* [2, ranks * seqs, outputs] */
    uint32_t           *n_next;         /* [2, ranks * seqs] */
    dsa_sampling_t     *sampling;       /* [ranks * seqs], of other seeds:
                                           with one seed all sequences would
                                           sample the same tokens, which choose
                                           the same experts */
    uint32_t            context;
} dsa_bench_engine_t;


/* engine_steps.c: fill e->result; DSA_ERROR with err. */
int dsa_bench_prefill(dsa_bench_engine_t *e, dsa_err_t *err);
int dsa_bench_decode(dsa_bench_engine_t *e, dsa_err_t *err);

/* What each rank computes in a step. */

typedef struct {
    uint32_t            batch;          /* sequences that decode, */
    uint32_t            drafts;         /* so many drafts of each, */
    uint32_t            prompt;         /* and tokens of a prompt; may be 0 */
    uint32_t            context;        /* tokens of each sequence: the prompt's
                                           are the last of them, and the others
                                           grow */
} dsa_bench_step_t;

/*
 * engine_steps.c: sets *seconds to those of a step.  DSA_AGAIN: it does not fit
 * the context or the pages.
 */
int dsa_bench_steps(dsa_bench_engine_t *e, const dsa_bench_step_t *step,
    double *seconds, dsa_err_t *err);

/*
 * engine_drafts.c: reads the shares of accepted drafts, each of all drafts at
 * its position, as ".85,.7,.6".
 */
int dsa_bench_shares(double share[DSA_BENCH_DRAFTS], uint32_t *n,
    const char *text);

/* engine_drafts.c: the same with 0 to e->drafts drafts, and their table. */
int dsa_bench_drafts(dsa_bench_engine_t *e, dsa_err_t *err);
void dsa_bench_drafts_table(const dsa_bench_engine_t *e,
    const dsa_bench_result_t *r);

/*
 * engine_mixed.c: steps of so many rows of each rank, of which none to all are
 * tokens of one prompt, and their table.
 */
int dsa_bench_mixed(dsa_bench_engine_t *e, dsa_err_t *err);
void dsa_bench_mixed_table(const dsa_bench_engine_t *e,
    const dsa_bench_result_t *r);

/*
 * engine_table.c: the tables of one number of GPUs.  few: the same model with
 * fewer layers, or layers is 0; one: all its layers on one GPU, or all times
 * are 0.  DSA_ERROR with err.
 */
int dsa_bench_tables(const dsa_bench_engine_t *e,
    const dsa_bench_result_t *few, const dsa_bench_result_t *all,
    const dsa_bench_result_t *one, dsa_err_t *err);


#endif /* _DSA_BENCH_ENGINE_H_INCLUDED_ */
