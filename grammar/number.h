
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_NUMBER_H_INCLUDED_
#define _DSA_NUMBER_H_INCLUDED_


#include "grammar/dfa.h"


/* Inside grammar/: parts of the automata of numbers. */

#define DSA_NUMBER_PLAIN    19          /* most digits before the point */


__extension__ typedef __int128  dsa_wide_t;


/* The integers from least to most, of at most DSA_NUMBER_PLAIN digits. */
dsa_dfa_t *dsa_number_range(dsa_wide_t least, dsa_wide_t most);


#endif /* _DSA_NUMBER_H_INCLUDED_ */
