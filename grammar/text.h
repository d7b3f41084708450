
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TEXT_H_INCLUDED_
#define _DSA_TEXT_H_INCLUDED_


#include "grammar/automaton.h"
#include "grammar/dfa.h"


/*
 * Inside grammar/: texts over code points, written as bytes.
 *
 * JSON: the inside of a JSON string.  A character that must be escaped has one
 * spelling: \" \\ \b \f \n \r \t, or \u00XX for other controls; all others are
 * themselves in UTF-8.  PLAIN: UTF-8.
 */

typedef enum {
    DSA_TEXT_JSON = 0,
    DSA_TEXT_PLAIN
} dsa_text_e;


/* Paths from one node to another for the texts that an automaton accepts. */
void dsa_text_dfa(dsa_automaton_t *a, const dsa_dfa_t *dfa, dsa_text_e form,
    uint32_t from, uint32_t to);

/*
 * A path for each character: in JSON strings with every escape that JSON has,
 * and in plain text without the first one of the control token's name.
 */
void dsa_text_character(dsa_automaton_t *a, dsa_text_e form, uint32_t from,
    uint32_t to);


#endif /* _DSA_TEXT_H_INCLUDED_ */
