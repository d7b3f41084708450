
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_MARKER_H_INCLUDED_
#define _DSA_MARKER_H_INCLUDED_


#include "base/error.h"
#include "context/control_tokens.h"


/*
 * Inside context/: the markers that structure a model's output, and the
 * symbols that wait until it is known whether they are one.  A family has a
 * list of markers for each place in which its parser can stand.
 *
 * The output is a sequence of symbols: a byte of text, or a control token that
 * the model's vocabulary has.  Each marker contains one control token.  If the
 * vocabulary has it, only the token itself matches; bytes that spell its name
 * do not.  If the vocabulary does not have it, the bytes match.
 *
 * At a symbol where a marker could begin, the output either is a marker, or is
 * not, or is too short to decide: then it is held back.  No marker of a list
 * begins another one, so the result depends on the symbols alone and never on
 * how the text was cut.
 */

#define DSA_MARKER_NONE   UINT32_MAX    /* in place of control: the end of a
                                           list */

/* A marker is bytes, a control token, and bytes. */

typedef struct {
    int         what;               /* a number of the family */
    dsa_str_t   before;
    uint32_t    control;            /* index in the family's tokens */
    dsa_str_t   after;
} dsa_marker_t;


#define DSA_PENDING_MAX      32     /* no marker has more symbols, also if its
                                       token is spelled */
#define DSA_PENDING_CONTROL  256    /* plus the index of a token: a symbol that
                                       is a control token, not a byte */

/* The last symbols of the output that may still become a marker. */

typedef struct {
    const dsa_control_tokens_t  *tokens;
    uint32_t                     vocabulary;
    uint32_t                     len;
    uint16_t                     symbols[DSA_PENDING_MAX];
} dsa_pending_t;


/* *p is zeroed.  tokens: of the family; vocabulary: see parse.h. */
void dsa_pending_init(dsa_pending_t *p, const dsa_control_tokens_t *tokens,
    uint32_t vocabulary);

/* The vocabulary must have the token. */
void dsa_pending_byte(dsa_pending_t *p, char c);
void dsa_pending_control(dsa_pending_t *p, uint32_t token);

/*
 * DSA_OK: the pending symbols begin with a marker of the list, which is
 * removed; *what is its number.  DSA_AGAIN: they may still become a marker.
 * DSA_ERROR: they cannot.
 */
int dsa_pending_match(dsa_pending_t *p, const dsa_marker_t *list, int *what);

/*
 * Removes the first symbol and returns its text: the name of a control token,
 * or one byte.  The byte is stored in *c, and the text refers to it.
 */
dsa_str_t dsa_pending_release(dsa_pending_t *p, char *c);

/*
 * 1 if the pending symbols contain the token, or the first bytes of its name,
 * as many as given.
 */
int dsa_pending_has(const dsa_pending_t *p, uint32_t token, size_t bytes);


#endif /* _DSA_MARKER_H_INCLUDED_ */
