
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_DEEPSEEK_V3_MARKERS_H_INCLUDED_
#define _DSA_DEEPSEEK_V3_MARKERS_H_INCLUDED_


#include "context/marker.h"


/* Inside this folder: the markers of the output of V3.1. */

typedef enum {
    DSA_V3_1_STRAY = 0,         /* is taken out of reasoning and content */
    DSA_V3_1_THINK_ENDS,
    DSA_V3_1_BLOCK,             /* begins the block of calls */
    DSA_V3_1_BLOCK_ENDS,
    DSA_V3_1_CALL_BEGINS,
    DSA_V3_1_CALL_ENDS,
    DSA_V3_1_NAME_ENDS
} dsa_v3_1_marker_e;


/* What can be a marker depends on where the text stands. */

typedef enum {
    DSA_V3_1_IN_TEXT = 0,       /* in reasoning and content */
    DSA_V3_1_IN_BLOCK,          /* in the block of calls */
    DSA_V3_1_IN_STRING,         /* in a string of arguments: nothing */

    DSA_V3_1_SETS               /* their number */
} dsa_v3_1_set_e;


/* The lists of markers, indexed by dsa_v3_1_set_e. */
extern const dsa_marker_t *const  dsa_v3_1_markers[DSA_V3_1_SETS];


#endif /* _DSA_DEEPSEEK_V3_MARKERS_H_INCLUDED_ */
