
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_REGEX_H_INCLUDED_
#define _DSA_REGEX_H_INCLUDED_


#include "grammar/dfa.h"


/*
 * Inside grammar/: the regular expressions of JSON Schema's "pattern", which
 * are those of ECMA-262 with the flag u.  The pattern is searched for in the
 * text; ^ and $ anchor it.
 *
 * Supported: literals, ".", classes with ranges, \d \D \w \W \s \S, \t \n \v
 * \f \r \0 \xHH \uHHHH \u{H}, escaped punctuation, groups (also (?:...) and
 * (?<name>...)), alternation, * + ? {n} {n,} {n,m} (also followed by ?, which
 * does not change what is matched).  All else is an error: lookaround,
 * backreferences, \b, \p.
 */

#define DSA_REGEX_BYTES     4096        /* longest pattern */
#define DSA_REGEX_WORK      (1U << 21)  /* steps for a pattern */

/*
 * Returns NULL with error.  *work is the number of steps that the construction
 * may take; the function subtracts those that it took.  A step takes some
 * nanoseconds.
 */
dsa_dfa_t *dsa_regex(dsa_str_t pattern, uint32_t *work, dsa_err_t *error);


#endif /* _DSA_REGEX_H_INCLUDED_ */
