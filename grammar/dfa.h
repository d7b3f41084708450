
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_DFA_H_INCLUDED_
#define _DSA_DFA_H_INCLUDED_


#include <stdint.h>

#include "base/error.h"
#include "base/str.h"


/*
 * Inside grammar/: deterministic automata over code points, for the texts of
 * strings and numbers.  State 0 is the start.  A state has ranges of code
 * points, sorted and disjoint; a code point outside of them is rejected.
 *
 * Functions that make an automaton return NULL if it has more than
 * DSA_DFA_STATES or DSA_DFA_RANGES, or when out of memory.  Arguments that are
 * consumed are freed in every case, and may be NULL: then the result is NULL.
 */

#define DSA_DFA_STATES      65536
#define DSA_DFA_RANGES      524288
#define DSA_DFA_LAST        0x10ffff    /* the last code point */


typedef struct {
    uint32_t             lo;
    uint32_t             hi;
    uint32_t             to;
} dsa_dfa_range_t;


typedef struct {
    uint32_t             n_states;
    uint32_t             size_states;
    uint32_t            *first;     /* [n_states + 1] into range */
    uint8_t             *accept;    /* [n_states] */

    dsa_dfa_range_t     *range;
    uint32_t             n_ranges;
    uint32_t             size_ranges;

    int                  failed;    /* too large, or no memory */
} dsa_dfa_t;


dsa_dfa_t *dsa_dfa_create(void);
void dsa_dfa_free(dsa_dfa_t *d);                    /* NULL is allowed */

/* Adds a state, and ranges of the last state that was added. */
void dsa_dfa_state(dsa_dfa_t *d, int accept);
void dsa_dfa_range(dsa_dfa_t *d, uint32_t lo, uint32_t hi, uint32_t to);

/* d, or NULL if it failed; then it is freed. */
dsa_dfa_t *dsa_dfa_done(dsa_dfa_t *d);

/* The texts that both accept; consumes both. */
dsa_dfa_t *dsa_dfa_intersect(dsa_dfa_t *a, dsa_dfa_t *b);

/* The texts that one of both accepts; consumes both. */
dsa_dfa_t *dsa_dfa_either(dsa_dfa_t *a, dsa_dfa_t *b);

/* NULL is allowed. */
dsa_dfa_t *dsa_dfa_copy(const dsa_dfa_t *a);

/* The texts of Unicode characters that it does not accept; consumes it. */
dsa_dfa_t *dsa_dfa_complement(dsa_dfa_t *a);

/* Every text of min to max characters; max UINT32_MAX: no maximum. */
dsa_dfa_t *dsa_dfa_lengths(uint32_t min, uint32_t max);

/* The characters of its longest text; UINT32_MAX: any number, or no memory. */
uint32_t dsa_dfa_longest(const dsa_dfa_t *d);

/* 1 if it accepts no text. */
int dsa_dfa_empty(const dsa_dfa_t *d);

/* 1 if it accepts the text, which is UTF-8. */
int dsa_dfa_accepts(const dsa_dfa_t *d, dsa_str_t text);


#endif /* _DSA_DFA_H_INCLUDED_ */
