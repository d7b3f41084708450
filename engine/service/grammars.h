
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_GRAMMARS_H_INCLUDED_
#define _DSA_GRAMMARS_H_INCLUDED_


#include "engine/tokenizer/tokenizer.h"
#include "grammar/grammar.h"


/*
 * The grammars of a replica: the tokenizer's vocabulary as a trie, and the
 * grammars that were used last, found by the SHA-256 of their specs.  Tokenizer
 * threads compile, so that neither the step thread nor the I/O thread waits.
 * All functions may be called from any thread.
 */

#define DSA_GRAMMARS_MOST   64          /* that are kept */


typedef struct dsa_grammars_s  dsa_grammars_t;
typedef struct dsa_constraint_s  dsa_constraint_t;


/*
 * size: ids of the model, eos: the one that ends an answer.  t must exist until
 * dsa_grammars_destroy().  NULL: out of memory.
 */
dsa_grammars_t *dsa_grammars_create(const dsa_tokenizer_t *t, uint32_t size,
    uint32_t eos);

/* All constraints are freed; NULL is allowed. */
void dsa_grammars_destroy(dsa_grammars_t *g);

/*
 * Makes the vocabulary, which the first constraint would otherwise wait for:
 * about 0.4 s with 130,000 tokens.  NULL is allowed.
 */
void dsa_grammars_warm(dsa_grammars_t *g);

/*
 * The constraint of one answer.  begin: as in dsa_matcher_create().
 * DSA_ERROR: error is set.
 */
int dsa_constraint_create(dsa_constraint_t **out, dsa_grammars_t *g,
    dsa_str_t spec, dsa_str_t begin, dsa_grammar_error_t *error);
void dsa_constraint_free(dsa_constraint_t *c);      /* NULL is allowed */

/*
 * The next token of the answer.  DSA_ERROR: the grammar does not permit it, and
 * the constraint is as before.
 */
int dsa_constraint_accept(dsa_constraint_t *c, uint32_t id);

/* Sets the masks of a step, as dsa_sched_mask_pt has them. */
void dsa_constraint_mask(dsa_constraint_t *c, const uint32_t *drafts,
    uint32_t n_drafts, uint32_t *mask, uint32_t words);

/* Time that the masks of this answer took so far. */

typedef struct {
    uint32_t    n;                      /* steps */
    uint64_t    total_us;
    uint32_t    most_us;                /* of one step */
} dsa_constraint_stats_t;

dsa_constraint_stats_t dsa_constraint_stats(const dsa_constraint_t *c);


#endif /* _DSA_GRAMMARS_H_INCLUDED_ */
