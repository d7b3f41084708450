
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/engine.h"


#define DSA_BENCH_WARM      4
#define DSA_BENCH_STEPS     32
#define DSA_BENCH_ROUNDS    3


static double
dsa_bench_now(void)
{
    struct timespec  t;

    (void) clock_gettime(CLOCK_MONOTONIC, &t);

    return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}


/*
 * Sequence s of a rank.  Pages are scattered as in a server that has run for
 * long: the number of page i of sequence s is a multiple of a prime number,
 * modulo the number of pages.  The ranks' pages are equal, and so their
 * sequences have to differ in their tokens: otherwise all ranks would choose
 * the same experts.
 */

static dsa_batch_seq_t *
dsa_bench_seq(dsa_bench_engine_t *e, uint32_t rank, uint32_t s,
    uint32_t tokens)
{
    uint32_t          i, n, of, *pages;
    dsa_batch_seq_t  *seq;

    n = (tokens + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS;
    of = (e->context + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS;
    pages = e->pages + ((uint64_t) rank * e->seqs + s) * of;

    for (i = 0; i < n; i++) {
        pages[i] = (uint32_t) (((uint64_t) s * n + i) * 1000003
                               % e->backend->pages);
    }

    seq = &e->seq[s * e->backend->ranks + rank];
    memset(seq, 0, sizeof(dsa_batch_seq_t));

    seq->tokens = e->tokens + s * e->backend->ranks + rank;
    seq->rank = rank;
    seq->pages = pages;
    seq->input_from = DSA_INPUT_KNOWN;
    seq->sampling = &e->sampling[s * e->backend->ranks + rank];

    return seq;
}


/* Starts a step of seqs sequences; waits for the oldest if too many run. */

static int
dsa_bench_start(dsa_bench_engine_t *e, uint32_t seqs, uint32_t *in_flight,
    dsa_err_t *err)
{
    dsa_backend_t  *b;

    b = e->backend;

    if (*in_flight == b->depth) {
        if (b->wait(b, err) != DSA_OK) {
            return DSA_ERROR;
        }

        (*in_flight)--;
    }

    if (b->start(b, e->seq, seqs, err) != DSA_OK) {
        return DSA_ERROR;
    }

    (*in_flight)++;

    return DSA_OK;
}


static int
dsa_bench_drain(dsa_bench_engine_t *e, uint32_t in_flight, dsa_err_t *err)
{
    for ( /* void */ ; in_flight != 0; in_flight--) {
        if (e->backend->wait(e->backend, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


/*
 * Computes a prompt on each rank, or one prompt that all ranks share out, in
 * steps of DSA_BENCH_TOKENS on each rank, and samples its first token.
 */

static int
dsa_bench_prompt_time(dsa_bench_engine_t *e, uint32_t tokens, int split,
    double *seconds, dsa_err_t *err)
{
    double            begin;
    uint32_t          i, at, n, most, prompts, in_flight;
    dsa_batch_seq_t  *s;

    prompts = split ? 1 : e->backend->ranks;
    most = split ? DSA_BENCH_TOKENS * e->backend->ranks : DSA_BENCH_TOKENS;
    in_flight = 0;

    for (i = 0; i < prompts; i++) {
        s = dsa_bench_seq(e, i, 0, tokens);
        s->n_prompt = tokens;
        s->sample = &e->sample[i];
    }

    /* the ranks' pages have equal numbers, and so do the block tables */

    for (i = 0; split && i < e->backend->ranks; i++) {
        e->copies[i] = e->seq[0].pages;
        e->seq[0].copies = e->copies;
    }

    begin = dsa_bench_now();

    for (at = 0; at < tokens; at += n) {
        n = tokens - at < most ? tokens - at : most;

        for (i = 0; i < prompts; i++) {
            e->seq[i].start = at;
            e->seq[i].n_input = n;
            e->seq[i].sampling = at + n == tokens ? &e->sampling[i] : NULL;
        }

        if (dsa_bench_start(e, prompts, &in_flight, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    if (dsa_bench_drain(e, in_flight, err) != DSA_OK) {
        return DSA_ERROR;
    }

    *seconds = dsa_bench_now() - begin;

    return DSA_OK;
}


static int
dsa_bench_prompt_best(dsa_bench_engine_t *e, uint32_t tokens, int split,
    double *best, dsa_err_t *err)
{
    double    t;
    uint32_t  round;

    for (round = 0; round < DSA_BENCH_ROUNDS; round++) {
        if (round + 1 == DSA_BENCH_ROUNDS) {
            (void) cudaProfilerStart();
        }

        if (dsa_bench_prompt_time(e, tokens, split, &t, err) != DSA_OK) {
            return DSA_ERROR;
        }

        (void) cudaProfilerStop();
        *best = round == 0 || t < *best ? t : *best;
    }

    return DSA_OK;
}


int
dsa_bench_prefill(dsa_bench_engine_t *e, dsa_err_t *err)
{
    size_t    i;
    uint32_t  n;

    for (i = 0; i < DSA_BENCH_PROMPTS; i++) {
        n = dsa_bench_prompt[i];

        if ((e->tokens_only != 0 && n != e->tokens_only) || n > e->context
            || (uint64_t) n > (uint64_t) e->backend->pages * DSA_PAGE_TOKENS)
        {
            continue;
        }

        if (dsa_bench_prompt_best(e, n, 0, &e->result->prefill[i], err)
            != DSA_OK)
        {
            return DSA_ERROR;
        }

        if (e->backend->ranks > 1
            && dsa_bench_prompt_best(e, n, 1, &e->result->split[i], err)
               != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


/* Sets the sequences of step k that decode.  start: [seqs], theirs. */

static void
dsa_bench_decode_step(dsa_bench_engine_t *e, const dsa_bench_step_t *step,
    uint32_t k, const uint32_t *start)
{
    uint32_t          i, at, seqs, outputs;
    dsa_batch_seq_t  *s;

    seqs = step->batch * e->backend->ranks;
    outputs = e->backend->max_outputs;

    for (i = 0; i < seqs; i++) {
        s = &e->seq[i];
        at = (k % 2) * seqs + i;

        s->start = start[i];
        s->n_draft = k == 0 ? 0 : step->drafts;
        s->n_input = 1 + s->n_draft;
        s->n_prompt = step->context - 1;
        s->input_from = k == 0 ? DSA_INPUT_KNOWN : i;
        s->sample = &e->sample[(size_t) at * outputs];
        s->accepted = &e->accept[at];

        if (step->drafts != 0) {
            s->next = &e->next[(size_t) at * outputs];
            s->n_next = &e->n_next[at];
            *s->n_next = step->drafts;
        }
    }
}


/*
 * Sets the prompts, behind the sequences that decode.  Each step computes the
 * same tokens, which are not the end of the prompt.  Returns their number.
 */

static uint32_t
dsa_bench_prompt_step(dsa_bench_engine_t *e, const dsa_bench_step_t *step)
{
    uint32_t          i;
    dsa_batch_seq_t  *s;

    for (i = 0; i < e->backend->ranks && step->prompt != 0; i++) {
        s = dsa_bench_seq(e, i, step->batch, step->context);

        s->start = step->context - step->prompt;
        s->n_input = step->prompt;
        s->n_prompt = step->context + 1;
        s->sampling = NULL;
    }

    return i;
}


/*
 * Starts step k, and waits for all steps before it.  A step follows the one
 * before, as if none of its drafts were accepted; how many were is known when
 * the step after it is made.
 */

static int
dsa_bench_steps_next(dsa_bench_engine_t *e, const dsa_bench_step_t *step,
    uint32_t *start, uint32_t prompts, uint32_t k, uint32_t *in_flight,
    dsa_err_t *err)
{
    uint32_t  i, seqs;

    seqs = step->batch * e->backend->ranks;

    dsa_bench_decode_step(e, step, k, start);

    if (dsa_bench_start(e, seqs + prompts, in_flight, err) != DSA_OK
        || dsa_bench_drain(e, *in_flight - 1, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    *in_flight = 1;

    for (i = 0; i < seqs; i++) {
        start[i]++;

        if (step->drafts != 0 && k > 1) {
            start[i] += e->accept[((k - 1) % 2) * seqs + i] - 1;
        }
    }

    return DSA_OK;
}


/*
 * The time of a step, while one step stays in flight and the next one is made.
 * Profilers record one more step, beside which no other runs: the threads of
 * the ranks start its kernels after b->start() has returned, and so the range
 * ends when they have ended.
 */

static int
dsa_bench_steps_of(dsa_bench_engine_t *e, const dsa_bench_step_t *step,
    uint32_t *start, double *seconds, dsa_err_t *err)
{
    double    begin;
    uint32_t  i, k, prompts, in_flight;

    begin = 0;
    in_flight = 0;
    prompts = dsa_bench_prompt_step(e, step);

    for (i = 0; i < step->batch * e->backend->ranks; i++) {
        start[i] = step->context - 1;
    }

    for (k = 0; k < DSA_BENCH_WARM + DSA_BENCH_STEPS; k++) {

        if (dsa_bench_steps_next(e, step, start, prompts, k, &in_flight, err)
            != DSA_OK)
        {
            return DSA_ERROR;
        }

        begin = k == DSA_BENCH_WARM ? dsa_bench_now() : begin;
    }

    if (dsa_bench_drain(e, in_flight, err) != DSA_OK) {
        return DSA_ERROR;
    }

    *seconds = (dsa_bench_now() - begin) / DSA_BENCH_STEPS;
    in_flight = 0;

    (void) cudaProfilerStart();

    if (dsa_bench_steps_next(e, step, start, prompts, k, &in_flight, err)
        != DSA_OK
        || dsa_bench_drain(e, in_flight, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    (void) cudaProfilerStop();

    return DSA_OK;
}


int
dsa_bench_steps(dsa_bench_engine_t *e, const dsa_bench_step_t *step,
    double *seconds, dsa_err_t *err)
{
    int               rc;
    uint32_t          i, n, all, seqs, *start;
    dsa_batch_seq_t  *s;

    seqs = step->batch * e->backend->ranks;
    all = step->batch + (step->prompt != 0);
    n = step->context
        + (DSA_BENCH_WARM + DSA_BENCH_STEPS + 1) * (step->drafts + 1);

    if (n > e->context || all > e->seqs || step->prompt > step->context
        || (uint64_t) all * (n + DSA_PAGE_TOKENS)
           > (uint64_t) e->backend->pages * DSA_PAGE_TOKENS)
    {
        return DSA_AGAIN;
    }

    start = malloc(all * e->backend->ranks * sizeof(uint32_t));

    if (start == NULL) {
        return dsa_error(err, "no memory for %u sequences", seqs);
    }

    for (i = 0; i < seqs; i++) {
        s = dsa_bench_seq(e, i % e->backend->ranks, i / e->backend->ranks, n);
        s->n_pages = (n + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS;
    }

    rc = dsa_bench_steps_of(e, step, start, seconds, err);
    free(start);

    return rc;
}


int
dsa_bench_decode(dsa_bench_engine_t *e, dsa_err_t *err)
{
    size_t            i, j;
    dsa_bench_step_t  step;

    memset(&step, 0, sizeof(dsa_bench_step_t));

    for (i = 0; i < DSA_BENCH_CONTEXTS; i++) {
        for (j = 0; j < DSA_BENCH_BATCHES; j++) {
            step.context = dsa_bench_context[i];
            step.batch = dsa_bench_batch[j];

            if (e->batch_only != 0 && (step.batch != e->batch_only
                                       || step.context != e->context_only))
            {
                continue;
            }

            if (dsa_bench_steps(e, &step, &e->result->decode[i][j], err)
                == DSA_ERROR)
            {
                return DSA_ERROR;
            }
        }
    }

    return DSA_OK;
}
