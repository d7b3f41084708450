
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_STATES_TABLE_H_INCLUDED_
#define _DSA_STATES_TABLE_H_INCLUDED_


#include <pthread.h>
#include <stdatomic.h>

#include "grammar/closure.h"
#include "grammar/states.h"


/*
 * Inside states.c, which has the states and their steps, and states_mask.c,
 * which has their masks.  All functions need the lock.
 */


#define DSA_STATES_UNKNOWN  0xfffffffdU


typedef struct {
    uint32_t             refs;
    uint32_t             hash;
    uint32_t             n;         /* configurations */
    uint32_t             complete;
    dsa_config_t        *config;    /* [n] */
    uint32_t            *next;      /* [classes + controls], the last ones for
                                       the control tokens */
    uint32_t            *mask;      /* NULL: not made */
    uint32_t             empty;     /* the mask has no bit */
    uint32_t             common;    /* the state whose mask this one has; it
                                       is retained; UNKNOWN: not known yet */
    uint32_t             newer;     /* states with masks, by their use */
    uint32_t             older;
} dsa_state_t;


struct dsa_states_s {
    pthread_mutex_t          gate;      /* held while a thread waits for the
                                           lock, so that a thread that releases
                                           the lock cannot take it again first
                                         */
    pthread_mutex_t          lock;      /* protects everything else */

    const dsa_automaton_t   *a;
    const dsa_vocabulary_t  *v;
    uint32_t                 control[DSA_AUTOMATON_CONTROLS];   /* ids of the
                                           control tokens */

    dsa_closure_t           *closure;

    dsa_state_t            **state;     /* [size] */
    uint32_t                 n;         /* numbers in use, with free ones */
    uint32_t                 n_free;
    uint32_t                 size;
    uint32_t                *unused;    /* [size] free numbers */
    uint32_t                *hash;      /* [4 * size] */
    size_t                   bytes;     /* of states */
    size_t                   kept;      /* of states and frames, behind the
                                           last drop */
    uint32_t                 n_kept;    /* states behind the last drop */
    uint32_t                 n_loose;   /* released since then */
    _Atomic size_t           charged;   /* to the vocabulary */

    uint32_t                 newest;
    uint32_t                 oldest;
    uint32_t                 n_masks;
    uint32_t                 words;

    const uint32_t          *path;      /* of a walk: the state at each depth */
    uint32_t                 n_path;
};


/*
 * Returns the state behind a byte of this class, or behind a control token, or
 * DSA_STATE_NONE or DSA_STATE_FULL.
 */
uint32_t dsa_states_step(dsa_states_t *s, uint32_t state, uint32_t class);

/* Returns 1 if the grammars of the vocabulary take more than they should. */
int dsa_states_short(const dsa_states_t *s);

/* Makes room for one step.  DSA_ERROR: too much is retained. */
int dsa_states_room(dsa_states_t *s);

/*
 * Returns the state of the configurations that the closure has, or
 * DSA_STATE_FULL.
 */
uint32_t dsa_states_intern(dsa_states_t *s);

/* Charges what the states take now to the vocabulary. */
void dsa_states_charge(dsa_states_t *s);

/* Removes a state, which has a mask, from the list of those that have one. */
void dsa_states_unlink(dsa_states_t *s, uint32_t state);

/* The bytes of a mask. */
size_t dsa_states_mask_size(const dsa_states_t *s);


#endif /* _DSA_STATES_TABLE_H_INCLUDED_ */
