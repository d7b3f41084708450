
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
 * States and frames that nothing retains are dropped when there are too many;
 * they are made again when they are visited again.
 *
 * Threads share the states: all functions but create(), free() and lock() are
 * called with the lock.  dsa_states_mask() releases it now and then, so that
 * other threads wait for at most about 0.1 ms.
 */

#define DSA_STATES_MAX      16384   /* states at a time */
#define DSA_STATES_BYTES    (16U << 20)     /* bytes of states at a time */
#define DSA_STATES_MASKS    (16U << 20)     /* bytes of masks at a time */
#define DSA_STATES_WORK     (1U << 18)      /* configurations that are visited
                                               for a mask, about 10 ms */

#define DSA_STATE_NONE      0xffffffffU     /* nothing leads there */


typedef struct dsa_states_s  dsa_states_t;


/* NULL: no memory. */
dsa_states_t *dsa_states_create(const dsa_automaton_t *a,
    const dsa_vocabulary_t *v);
void dsa_states_free(dsa_states_t *s);              /* NULL is allowed */

void dsa_states_lock(dsa_states_t *s);
void dsa_states_unlock(dsa_states_t *s);

/* The state at the front of an answer; DSA_STATE_NONE: no memory. */
uint32_t dsa_states_start(dsa_states_t *s);

/*
 * The state behind a token, or DSA_STATE_NONE: the grammar does not permit it,
 * or there is no memory.
 */
uint32_t dsa_states_token(dsa_states_t *s, uint32_t state, uint32_t id);

/* 1: the answer may end in this state. */
int dsa_states_complete(const dsa_states_t *s, uint32_t state);

/*
 * 1: the mask is there, or was made within about 20 us, which suffices where a
 * few tokens are permitted.
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
