
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SURROGATES_H_INCLUDED_
#define _DSA_SURROGATES_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>


/*
 * Finds escapes in a JSON text, read in chunks, that are one half of a
 * surrogate pair without the other: \uD800 to \uDBFF must be followed by
 * \uDC00 to \uDFFF.  Only strings contain backslashes, and other errors are
 * left to the JSON parser.
 */

typedef struct {
    uint32_t    state;      /* dsa_surrogates_e, within an escape */
    uint32_t    code;       /* the hexadecimal digits of \uXXXX so far */
    uint32_t    high;       /* the first half of a pair, when the second one
                               must follow; otherwise 0 */
} dsa_surrogates_t;         /* zeroed at the start of the text */


/*
 * Returns len, or the offset of the byte that shows an escape to be unpaired.
 * After that the state must not be used again.
 */
size_t dsa_surrogates_check(dsa_surrogates_t *s, const char *data,
    size_t len);


#endif /* _DSA_SURROGATES_H_INCLUDED_ */
