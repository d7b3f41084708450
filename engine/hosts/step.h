
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_HOSTS_STEP_H_INCLUDED_
#define _DSA_HOSTS_STEP_H_INCLUDED_


#include "base/buf.h"
#include "engine/backend.h"


/*
 * The messages STEP and RESULT.  All hosts receive all entries of a step,
 * because each has to start the same exchanges, but tokens, block table and
 * sampling only of the entries that are on its own ranks.  An entry has no
 * drafts, copies or rollouts, because a backend of several hosts offers none.
 *
 * The functions work on memory only.  Those that read check everything that a
 * backend relies on, so that no message can make it read or write elsewhere.
 */

/* What entries are checked against. */

typedef struct {
    uint32_t            hosts;
    uint32_t            host;           /* whose entries are complete */
    uint32_t            gpus;           /* of each host */
    uint32_t            context;        /* most tokens of a sequence */
    uint32_t            max_tokens;     /* of a step */
    uint32_t            max_seqs;       /* of each rank */
    uint32_t            vocab;
    uint32_t            pages;          /* of each rank */
} dsa_hosts_limits_t;


/* A step as a follower has received it. */

typedef struct {
    dsa_batch_seq_t    *seq;            /* [most entries] */
    dsa_sampling_t     *sampling;       /* [most entries] */
    dsa_sample_t       *sample;         /* [most entries] */
    uint32_t            n;
    char               *text;           /* the message, which entries refer
                                           to */
    size_t              size;           /* bytes allocated */
} dsa_hosts_step_t;


/* Returns the most entries of a step, and the most bytes of its message. */
uint32_t dsa_hosts_step_most(const dsa_hosts_limits_t *l);
uint64_t dsa_hosts_step_bytes(const dsa_hosts_limits_t *l);

/*
 * Appends the message of a step for l->host.  DSA_ERROR with err: an entry has
 * what hosts do not support, or there is no memory.
 */
int dsa_hosts_step_write(dsa_buf_t *out, const dsa_hosts_limits_t *l,
    const dsa_batch_seq_t *seq, uint32_t n, dsa_err_t *err);

/* Allocates a step.  DSA_ERROR with err; the caller closes it in any case. */
int dsa_hosts_step_open(dsa_hosts_step_t *s, const dsa_hosts_limits_t *l,
    dsa_err_t *err);
void dsa_hosts_step_close(dsa_hosts_step_t *s);

/*
 * Sets seq and n from the message in s->text.  before: the step before, which
 * entries with input_from follow; NULL: there is none.  DSA_ERROR with err.
 */
int dsa_hosts_step_read(dsa_hosts_step_t *s, size_t bytes,
    const dsa_hosts_step_t *before, const dsa_hosts_limits_t *l,
    dsa_err_t *err);


/* Where the leader puts a sample of a follower. */

typedef struct {
    dsa_sample_t       *sample;
    uint32_t            rank;
    uint32_t            most;           /* alternatives that were requested */
} dsa_hosts_slot_t;


/*
 * Appends the samples of the entries of l->host, in their order.  Failures are
 * in out->failed.
 */
void dsa_hosts_result_write(dsa_buf_t *out, const dsa_hosts_limits_t *l,
    const dsa_hosts_step_t *s);

/*
 * Sets the samples of those of n slots that are of l->host.  name is that of
 * the follower in errors.
 */
int dsa_hosts_result_read(const dsa_hosts_slot_t *slot, uint32_t n,
    const char *text, size_t bytes, const dsa_hosts_limits_t *l,
    const char *name, dsa_err_t *err);

/* Returns the most bytes of a RESULT. */
uint64_t dsa_hosts_result_bytes(const dsa_hosts_limits_t *l);


#endif /* _DSA_HOSTS_STEP_H_INCLUDED_ */
