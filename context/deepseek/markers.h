
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_DEEPSEEK_MARKERS_H_INCLUDED_
#define _DSA_DEEPSEEK_MARKERS_H_INCLUDED_


#include "context/marker.h"


/* Inside this folder: the markers of the output. */

typedef enum {
    DSA_MARKER_STRAY = 0,       /* is taken out of reasoning and content */
    DSA_MARKER_THINK_END,
    DSA_MARKER_CALLS,
    DSA_MARKER_CALLS_END,
    DSA_MARKER_INVOKE,
    DSA_MARKER_INVOKE_END,
    DSA_MARKER_PARAM,
    DSA_MARKER_PARAM_END
} dsa_deepseek_marker_e;


/* What can be a marker depends on where the text stands. */

typedef enum {
    DSA_MARKERS_TEXT = 0,       /* in reasoning and content */
    DSA_MARKERS_CALL,           /* in the block of calls */
    DSA_MARKERS_VALUE,          /* in the value of a parameter: anything but
                                   the parameter's end is a part of it */
    DSA_MARKERS_OFF,            /* in a block of calls that is left out: the
                                   answer may follow it */

    DSA_MARKERS                 /* their number */
} dsa_deepseek_markers_e;


/* The lists of markers, indexed by dsa_deepseek_markers_e. */
extern const dsa_marker_t *const  dsa_deepseek_markers[DSA_MARKERS];


/* The number of bytes in front of the first one that may begin a marker. */
size_t dsa_deepseek_marker_find(dsa_deepseek_markers_e set, dsa_str_t text);

/*
 * At the end of the output: 1 if the pending symbols contain DSML or its
 * beginning.  Then it is a marker that was cut off; otherwise it belongs to the
 * text.
 */
int dsa_deepseek_marker_cut(const dsa_pending_t *h);


#endif /* _DSA_DEEPSEEK_MARKERS_H_INCLUDED_ */
