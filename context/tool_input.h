
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TOOL_INPUT_H_INCLUDED_
#define _DSA_TOOL_INPUT_H_INCLUDED_


#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"


/*
 * The input of a custom tool, taken out of the arguments of the function that
 * the model reads in its place: {"input": "TEXT"}.  Arguments that do not begin
 * like this are the input as they are, so that no call is lost.
 */

typedef struct {
    uint32_t    state;              /* dsa_tool_input_e */
    uint32_t    matched;            /* bytes of what precedes the text */
    uint32_t    n_held;
    char        held[12];           /* the begin of an escape, or of two that
                                       are a surrogate pair */
} dsa_tool_input_t;                 /* zeroed before the first piece */


/*
 * Appends the text that a piece of the arguments has, escaped as the inside of
 * a JSON string.  A piece may end anywhere.  An escape that a later piece
 * completes is appended with it.
 */
void dsa_tool_input(dsa_tool_input_t *t, dsa_str_t piece, dsa_buf_t *out);


#endif /* _DSA_TOOL_INPUT_H_INCLUDED_ */
