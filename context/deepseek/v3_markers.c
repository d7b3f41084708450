
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "context/deepseek/v3_markers.h"
#include "context/deepseek/v3_tokens.h"


#define dsa_v3_1_marker(what, token)                                         \
    { DSA_V3_1_ ## what, dsa_null_string, DSA_V3_1_TOKEN_ ## token,          \
      dsa_null_string }

#define dsa_v3_1_markers_end                                                 \
    { 0, dsa_null_string, DSA_MARKER_NONE, dsa_null_string }


static const dsa_marker_t  dsa_v3_1_in_text[] = {
    dsa_v3_1_marker(THINK_ENDS, THINK_END),
    dsa_v3_1_marker(BLOCK, CALLS),
    dsa_v3_1_marker(CALL_BEGINS, CALL),
    dsa_v3_1_marker(STRAY, THINK),
    dsa_v3_1_marker(STRAY, EOS),
    dsa_v3_1_marker(STRAY, BOS),
    dsa_v3_1_marker(STRAY, USER),
    dsa_v3_1_marker(STRAY, ASSISTANT),
    dsa_v3_1_marker(STRAY, CALLS_END),
    dsa_v3_1_marker(STRAY, CALL_END),
    dsa_v3_1_marker(STRAY, SEPARATOR),
    dsa_v3_1_marker(STRAY, RESULT),
    dsa_v3_1_marker(STRAY, RESULT_END),
    dsa_v3_1_marker(STRAY, RESULTS),
    dsa_v3_1_marker(STRAY, RESULTS_END),
    dsa_v3_1_markers_end
};


static const dsa_marker_t  dsa_v3_1_in_block[] = {
    dsa_v3_1_marker(CALL_BEGINS, CALL),
    dsa_v3_1_marker(NAME_ENDS, SEPARATOR),
    dsa_v3_1_marker(CALL_ENDS, CALL_END),
    dsa_v3_1_marker(BLOCK_ENDS, CALLS_END),
    dsa_v3_1_marker(BLOCK, CALLS),
    dsa_v3_1_marker(THINK_ENDS, THINK_END),
    dsa_v3_1_marker(STRAY, EOS),
    dsa_v3_1_markers_end
};


static const dsa_marker_t  dsa_v3_1_in_string[] = {
    dsa_v3_1_markers_end
};


const dsa_marker_t *const  dsa_v3_1_markers[DSA_V3_1_SETS] = {
    dsa_v3_1_in_text,
    dsa_v3_1_in_block,
    dsa_v3_1_in_string
};


_Static_assert(sizeof(DSA_V3_1_RESULTS) - 1 <= DSA_PENDING_MAX
               && sizeof(DSA_DEEPSEEK_BOS) - 1 <= DSA_PENDING_MAX,
               "the longest markers fit into the buffer");
