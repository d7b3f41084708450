
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_MARKER_H_INCLUDED_
#define _DSA_MARKER_H_INCLUDED_


#include "base/error.h"
#include "context/control_tokens.h"


/*
 * Inside context/: the markers that structure a model's output, and the
 * symbols that wait until it is known whether they are one.
 *
 * The output is a sequence of symbols: a byte of text, or a control token that
 * the model's vocabulary has.  Each marker contains one control token.  If the
 * vocabulary has it, only the token itself matches; bytes that spell its name
 * do not.  If the vocabulary does not have it, the bytes match.
 *
 * At a symbol where a marker could begin, the output either is a marker, or is
 * not, or is too short to decide: then it is held back.  No marker of a set
 * begins another one, so the result depends on the symbols alone and never on
 * how the text was cut.
 */

typedef enum {
    DSA_MARKER_STRAY = 0,       /* is taken out of reasoning and content */
    DSA_MARKER_THINK_END,
    DSA_MARKER_CALLS,
    DSA_MARKER_CALLS_END,
    DSA_MARKER_INVOKE,
    DSA_MARKER_INVOKE_END,
    DSA_MARKER_PARAM,
    DSA_MARKER_PARAM_END
} dsa_marker_e;


/* What can be a marker depends on where the text stands. */

typedef enum {
    DSA_MARKERS_TEXT = 0,       /* in reasoning and content */
    DSA_MARKERS_CALL,           /* in the block of calls */
    DSA_MARKERS_VALUE,          /* in the value of a parameter: anything but
                                   the parameter's end is a part of it */
    DSA_MARKERS_OFF             /* in a block of calls that is left out: the
                                   answer may follow it */
} dsa_markers_e;


#define DSA_HOLD_MAX      32        /* no marker has more symbols */
#define DSA_HOLD_CONTROL  256       /* plus dsa_control_token_e: a symbol that
                                       is a control token, not a byte */

typedef struct {
    uint32_t    vocabulary;         /* the control tokens that it has: bit
                                       dsa_control_token_e each */
    uint32_t    len;
    uint16_t    symbols[DSA_HOLD_MAX];
} dsa_hold_t;


/* The number of bytes in front of the first one that may begin a marker. */
size_t dsa_marker_find(dsa_markers_e set, dsa_str_t text);

/* The vocabulary must have the token. */
void dsa_hold_byte(dsa_hold_t *h, char c);
void dsa_hold_control(dsa_hold_t *h, dsa_control_token_e token);

/*
 * DSA_OK: the hold began with a marker, which is removed; *what is its kind.
 * DSA_AGAIN: the hold may still become a marker.  DSA_ERROR: it cannot.
 */
int dsa_hold_match(dsa_hold_t *h, dsa_markers_e set, dsa_marker_e *what);

/*
 * Removes the first symbol and returns its text: the name of a control token,
 * or one byte.  The byte is stored in *c, and the text refers to it.
 */
dsa_str_t dsa_hold_release(dsa_hold_t *h, char *c);

/*
 * At the end of the output: 1 if the hold contains DSML or its beginning.  Then
 * it is a marker that was cut off; otherwise it belongs to the text.
 */
int dsa_hold_cut(const dsa_hold_t *h);


#endif /* _DSA_MARKER_H_INCLUDED_ */
