
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_PARSE_H_INCLUDED_
#define _DSA_PARSE_H_INCLUDED_


#include "base/error.h"
#include "base/str.h"


/*
 * A completion's text to reasoning, content and tool calls, fed in pieces cut
 * anywhere; the deltas joined are the same for every way of cutting.  What
 * might be the beginning of a marker is held back until it is known.
 *
 * Lenient, since models are: calls may begin with two, one or no newline in
 * front, while still thinking, or without the line of function_calls; names
 * of special tokens that stray into reasoning or content are taken out.
 * Calls come as the model wrote them: a value of string="true" as a JSON
 * string, an object or array as it is, any other value as it is when it is
 * JSON and as a JSON string when not.  Nothing is repaired.  A call without
 * a name, or behind the first DSA_PARSE_CALLS, and a parameter with a name
 * over DSA_PARSE_NAME are left out; what follows the block of calls is
 * ignored.
 *
 * A parser takes under 6 KB; it calls back at once, and texts in callbacks
 * live until the callback returns.  A text is never empty, and holds whole
 * UTF-8 characters when the pieces that are fed do.
 */

typedef enum {
    DSA_DELTA_REASONING = 1,    /* text */
    DSA_DELTA_CONTENT,          /* text */
    DSA_DELTA_CALL,             /* a tool call begins: text is its name,
                                   call its index from 0 */
    DSA_DELTA_ARGUMENTS         /* text: a piece of the arguments' JSON */
} dsa_delta_e;


/* DSA_OK to go on; anything else ends the parser and is returned from every
 * feed from then on. */

typedef int (*dsa_delta_pt)(void *ctx, dsa_delta_e what, uint32_t call,
    dsa_str_t text);


#define DSA_PARSE_NAME      256     /* longest tool or parameter name */
#define DSA_PARSE_CALLS     1024    /* most calls in an answer */
#define DSA_PARSE_SCALAR    4096    /* longest unquoted scalar that is checked
                                       before it is passed on */

typedef struct dsa_parse_s  dsa_parse_t;


/*
 * thinking: the prompt ended in <think>.  tools: 0 delivers text only
 * (tool_choice none): a block of calls is left out, up to its end or, within
 * it but outside of values, to </think>; the text before and behind it stays.
 * NULL when out of memory.
 */
dsa_parse_t *dsa_parse_create(int thinking, int tools, dsa_delta_pt delta,
    void *ctx);
void dsa_parse_destroy(dsa_parse_t *p);             /* NULL is allowed */

/* DSA_OK, DSA_ERROR when out of memory, or what the callback returned. */
int dsa_parse_feed(dsa_parse_t *p, dsa_str_t text);

/*
 * The end of the completion; nothing may be fed after it.  complete 0: it was
 * cut off (length, cancel), so open arguments stay open; 1: they are closed
 * as well as they can be.
 */
int dsa_parse_end(dsa_parse_t *p, int complete);

uint32_t dsa_parse_calls(const dsa_parse_t *p);     /* calls begun so far */
int dsa_parse_in_reasoning(const dsa_parse_t *p);


#endif /* _DSA_PARSE_H_INCLUDED_ */
