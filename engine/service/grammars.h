
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_GRAMMARS_H_INCLUDED_
#define _DSA_GRAMMARS_H_INCLUDED_


#include "engine/checkpoint/config.h"
#include "engine/link_event.h"
#include "engine/tokenizer/tokenizer.h"
#include "grammar/grammar.h"


/*
 * The grammars of a replica: the tokenizer's vocabulary as a trie, and a cache
 * of grammars (grammar_cache.h).  Tokenizer threads compile grammars, and a
 * thread makes masks that are not in the cache of their grammar, so that
 * neither the step thread nor the I/O thread waits.  All functions may be
 * called from any thread; a constraint is used by one thread at a time.
 */


/* Why a request fails that would need more memory for its structure. */

#define DSA_GRAMMARS_NO_MEMORY                                                \
    "there is no memory for the structure of the answer"


typedef struct dsa_grammars_s  dsa_grammars_t;
typedef struct dsa_constraint_s  dsa_constraint_t;


/*
 * Creates the grammars of a model.  t must exist until
 * dsa_grammars_destroy().  NULL: out of memory.
 */
dsa_grammars_t *dsa_grammars_create(const dsa_tokenizer_t *t,
    const dsa_model_config_t *config);

/*
 * Starts the thread for masks, which calls wake with data when a constraint
 * has become ready.  Without the thread, as in tests, dsa_constraint_mask()
 * makes all masks.  DSA_ERROR with err.
 */
int dsa_grammars_start(dsa_grammars_t *g, void (*wake)(void *data), void *data,
    dsa_err_t *err);

/* Ends the thread; NULL is allowed. */
void dsa_grammars_stop(dsa_grammars_t *g);

/*
 * Frees the grammars.  All constraints must be freed, and the thread stopped.
 * NULL is allowed.
 */
void dsa_grammars_destroy(dsa_grammars_t *g);

/*
 * Makes the vocabulary, so that the first constraint does not wait for it:
 * about 0.4 s with 130,000 tokens.  NULL is allowed.
 */
void dsa_grammars_warm(dsa_grammars_t *g);

/*
 * Creates the constraint of one answer of a tenant.  begin: as in
 * dsa_matcher_create().  DSA_ERROR with error.  DSA_AGAIN: compile is 0, and
 * the call would have to compile the spec, or to wait for a thread that does;
 * error->work: steps of the compilation.
 */
int dsa_constraint_create(dsa_constraint_t **out, dsa_grammars_t *g,
    const uint8_t *tenant, dsa_str_t spec, dsa_str_t begin, int compile,
    dsa_grammar_error_t *error);
void dsa_constraint_free(dsa_constraint_t *c);      /* NULL is allowed */

/*
 * 1: there was no memory for the state of the answer.  The answer cannot go on,
 * and masks are left as they are.
 */
int dsa_constraint_failed(const dsa_constraint_t *c);

/*
 * Accepts the next token of the answer.  DSA_ERROR: the grammar does not
 * permit it, and the constraint is unchanged; or it has failed.
 */
int dsa_constraint_accept(dsa_constraint_t *c, uint32_t id);

/* Returns 1 if dsa_constraint_warm() would take microseconds. */
int dsa_constraint_quick(dsa_constraint_t *c);

/* Makes the mask of the next token in the calling thread. */
void dsa_constraint_warm(dsa_constraint_t *c);

/*
 * Returns how many masks are in the cache, or were made at once, from that of
 * the next token on, as in dsa_sched_ready_pt.  0 without drafts: the thread
 * for masks makes the first one, and dsa_constraint_mask() would wait for it.
 */
uint32_t dsa_constraint_ready(dsa_constraint_t *c, const uint32_t *drafts,
    uint32_t n_drafts);

/* Sets masks, which are as in dsa_sched_mask_pt. */
void dsa_constraint_mask(dsa_constraint_t *c, const uint32_t *drafts,
    uint32_t n_drafts, uint32_t first, uint32_t *mask, uint32_t words);

/* Sets what of the grammar's schemas is not enforced. */
void dsa_constraint_skipped(const dsa_constraint_t *c,
    dsa_link_accepted_t *accepted);

/*
 * Returns the time that masks of this answer have taken in the callers'
 * threads.
 */

typedef struct {
    uint32_t    n;                      /* calls of dsa_constraint_mask() */
    uint64_t    total_us;
    uint32_t    most_us;                /* of one call */
    uint32_t    by_thread;              /* masks that the mask thread made */
} dsa_constraint_stats_t;

dsa_constraint_stats_t dsa_constraint_stats(const dsa_constraint_t *c);


#endif /* _DSA_GRAMMARS_H_INCLUDED_ */
