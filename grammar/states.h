
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_STATES_H_INCLUDED_
#define _DSA_STATES_H_INCLUDED_


#include "grammar/automaton.h"
#include "grammar/vocabulary.h"


/*
 * Inside grammar/: the deterministic states of one automaton for one
 * vocabulary, made when they are first visited.
 *
 * A configuration is a node and a stack; a state is the set of configurations
 * that the bytes so far lead to.  Stacks are linked frames, and equal frames
 * are one frame, so that equal states are found by comparing numbers.  A state
 * keeps its successor for each class of bytes, and the mask of its tokens.
 *
 * States and frames that nothing retains are dropped when they take too much
 * memory; they are made again when they are visited again.  Masks are dropped
 * as well, the one that was used least recently first.  What is retained has a
 * limit of its own, beyond which functions fail with DSA_STATE_FULL; a state is
 * never left out instead.
 *
 * All grammars of a vocabulary share DSA_VOCABULARY_MEMORY bytes.  While they
 * take more, each of them has only DSA_STATES_SHARE.
 *
 * Threads share the states: all functions but create(), free(), lock() and
 * bytes() are called with the lock.  dsa_states_mask() releases it now and
 * then, so that other threads wait for at most about 0.1 ms.
 */

#define DSA_STATES_BYTES    (16U << 20)     /* that nothing retains */
#define DSA_STATES_MOST     (64U << 20)     /* of states and frames */
#define DSA_STATES_MASKS    (16U << 20)     /* of masks */
#define DSA_STATES_SHARE    (2U << 20)      /* of states and frames; half of it
                                               for masks */
#define DSA_STATES_WORK     (1U << 18)      /* configurations that are visited
                                               for a mask, about 10 ms */

#define DSA_STATE_NONE      0xffffffffU     /* nothing leads there */
#define DSA_STATE_FULL      0xfffffffeU     /* there is no memory for it */


typedef struct dsa_states_s  dsa_states_t;


/* NULL: no memory. */
dsa_states_t *dsa_states_create(const dsa_automaton_t *a,
    const dsa_vocabulary_t *v);
void dsa_states_free(dsa_states_t *s);              /* NULL is allowed */

void dsa_states_lock(dsa_states_t *s);
void dsa_states_unlock(dsa_states_t *s);

/* The bytes that the states, frames and masks take now. */
size_t dsa_states_bytes(const dsa_states_t *s);

/* The state at the front of an answer, or DSA_STATE_FULL. */
uint32_t dsa_states_start(dsa_states_t *s);

/*
 * The state behind a token that follows a state that is retained.
 * DSA_STATE_NONE: the grammar does not permit it; or DSA_STATE_FULL.
 */
uint32_t dsa_states_token(dsa_states_t *s, uint32_t state, uint32_t id);

/* 1: the answer may end in this state. */
int dsa_states_complete(const dsa_states_t *s, uint32_t state);

/*
 * DSA_OK: the mask is there, or was made within about 20 us, which suffices
 * where a few tokens are permitted.  DSA_AGAIN: it would take longer;
 * DSA_ERROR: no memory.
 */
int dsa_states_quick(dsa_states_t *s, uint32_t state);

/*
 * The tokens that may follow a state that is retained, without those that end
 * the answer: a mask of ceil(size / 32) words, valid until the lock is released
 * or the next call.  NULL: no memory.  *empty is 1 if no token may follow.
 *
 * A mask that needs more than DSA_STATES_WORK permits, of the first bytes that
 * come after that, only tokens of one byte.
 */
const uint32_t *dsa_states_mask(dsa_states_t *s, uint32_t state, int *empty);

/* A state that is retained keeps its number. */
void dsa_states_retain(dsa_states_t *s, uint32_t state);
void dsa_states_release(dsa_states_t *s, uint32_t state);


#endif /* _DSA_STATES_H_INCLUDED_ */
