
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_MARKER_H_INCLUDED_
#define _DSA_MARKER_H_INCLUDED_


#include "base/error.h"
#include "base/str.h"


/*
 * Inside context/: the markers that structure a model's output, and the bytes
 * that wait until it is known whether they are one.
 *
 * At a byte where a marker could begin, the text either is a marker, or is
 * not, or is too short to decide: then it is held back.  No marker of a set
 * begins another one, so the result depends on the text alone and never on
 * how it was cut.
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


#define DSA_HOLD_MAX  32        /* no marker is longer */

typedef struct {
    uint32_t    len;
    char        data[DSA_HOLD_MAX];
} dsa_hold_t;


/* The number of bytes in front of the first one that may begin a marker. */
size_t dsa_marker_find(dsa_markers_e set, dsa_str_t text);

void dsa_hold_byte(dsa_hold_t *h, char c);

/*
 * DSA_OK: what is held began with a marker, which is removed and of which the
 * kind is in *what.  DSA_AGAIN: it may still become one.  DSA_ERROR: it begins
 * with no marker, and dsa_hold_release() removes its first byte.
 */
int dsa_hold_match(dsa_hold_t *h, dsa_markers_e set, dsa_marker_e *what);
char dsa_hold_release(dsa_hold_t *h);

/*
 * At the end of the text: 1 if what is held goes as far as DSML.  Then it is a
 * marker that was cut off; otherwise it belongs to the text.
 */
int dsa_hold_cut(const dsa_hold_t *h);


#endif /* _DSA_MARKER_H_INCLUDED_ */
