
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "context/deepseek/markers.h"
#include "context/deepseek/tokens.h"


#define dsa_marker_token(what, token)                                        \
    { what, dsa_null_string, DSA_DEEPSEEK_TOKEN_ ## token, dsa_null_string }

#define dsa_marker_tag(what, before, after)                                  \
    { what, dsa_string(before), DSA_DEEPSEEK_TOKEN_DSML, dsa_string(after) }

#define dsa_marker_end  { 0, dsa_null_string, DSA_MARKER_NONE, dsa_null_string }


static const dsa_marker_t  dsa_markers_text[] = {
    dsa_marker_token(DSA_MARKER_THINK_END, THINK_END),
    dsa_marker_token(DSA_MARKER_STRAY, THINK),
    dsa_marker_token(DSA_MARKER_STRAY, EOS),
    dsa_marker_token(DSA_MARKER_STRAY, BOS),
    dsa_marker_token(DSA_MARKER_STRAY, USER),
    dsa_marker_token(DSA_MARKER_STRAY, ASSISTANT),
    dsa_marker_tag(DSA_MARKER_CALLS, "\n\n<", "function_calls"),
    dsa_marker_tag(DSA_MARKER_CALLS, "\n<", "function_calls"),
    dsa_marker_tag(DSA_MARKER_CALLS, "<", "function_calls"),
    dsa_marker_tag(DSA_MARKER_INVOKE, "\n\n<", "invoke"),
    dsa_marker_tag(DSA_MARKER_INVOKE, "\n<", "invoke"),
    dsa_marker_tag(DSA_MARKER_INVOKE, "<", "invoke"),
    dsa_marker_tag(DSA_MARKER_STRAY, "</", "function_calls>"),
    dsa_marker_tag(DSA_MARKER_STRAY, "</", "invoke>"),
    dsa_marker_tag(DSA_MARKER_STRAY, "</", "parameter>"),
    dsa_marker_token(DSA_MARKER_STRAY, DSML),
    dsa_marker_end
};


static const dsa_marker_t  dsa_markers_call[] = {
    dsa_marker_tag(DSA_MARKER_PARAM, "<", "parameter"),
    dsa_marker_tag(DSA_MARKER_INVOKE, "<", "invoke"),
    dsa_marker_tag(DSA_MARKER_INVOKE_END, "</", "invoke"),
    dsa_marker_tag(DSA_MARKER_CALLS_END, "</", "function_calls"),
    dsa_marker_end
};


static const dsa_marker_t  dsa_markers_value[] = {
    dsa_marker_tag(DSA_MARKER_PARAM_END, "</", "parameter>"),
    dsa_marker_end
};


static const dsa_marker_t  dsa_markers_off[] = {
    dsa_marker_token(DSA_MARKER_THINK_END, THINK_END),
    dsa_marker_tag(DSA_MARKER_PARAM, "<", "parameter"),
    dsa_marker_tag(DSA_MARKER_INVOKE, "<", "invoke"),
    dsa_marker_tag(DSA_MARKER_INVOKE_END, "</", "invoke>"),
    dsa_marker_tag(DSA_MARKER_CALLS_END, "</", "function_calls>"),
    dsa_marker_end
};


const dsa_marker_t *const  dsa_deepseek_markers[DSA_MARKERS] = {
    dsa_markers_text,
    dsa_markers_call,
    dsa_markers_value,
    dsa_markers_off
};


/* The longest markers, where the vocabulary has no control tokens. */

_Static_assert(sizeof(DSA_DEEPSEEK_BOS) - 1 <= DSA_PENDING_MAX
               && sizeof(DSA_DEEPSEEK_EOS) - 1 <= DSA_PENDING_MAX
               && sizeof("\n\n<" DSA_DEEPSEEK_DSML "function_calls") - 1
                  <= DSA_PENDING_MAX,
               "every marker fits into the buffer");


size_t
dsa_deepseek_marker_find(dsa_deepseek_markers_e set, dsa_str_t text)
{
    size_t       i;
    const char  *lt;

    if (set != DSA_MARKERS_TEXT) {
        lt = memchr(text.data, '<', text.len);
        return lt != NULL ? (size_t) (lt - text.data) : text.len;
    }

    for (i = 0; i < text.len; i++) {
        if (text.data[i] == '<' || text.data[i] == '\n'
            || text.data[i] == DSA_DEEPSEEK_DSML[0])
        {
            break;
        }
    }

    return i;
}


int
dsa_deepseek_marker_cut(const dsa_pending_t *h)
{
    /* the bar and the first letter, because a bar alone may be text */

    return dsa_pending_has(h, DSA_DEEPSEEK_TOKEN_DSML,
                           sizeof("\xef\xbd\x9c" "D") - 1);
}
