
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "context/control_tokens.h"
#include "context/marker.h"


#define DSML_OPEN   "<" DSA_CONTROL_DSML
#define DSML_CLOSE  "</" DSA_CONTROL_DSML


typedef struct {
    dsa_marker_e  what;
    dsa_str_t     text;
} dsa_marker_t;


static void dsa_hold_remove(dsa_hold_t *h, size_t n);


static const dsa_marker_t  dsa_markers_text[] = {
    { DSA_MARKER_THINK_END, dsa_string(DSA_CONTROL_THINK_END) },
    { DSA_MARKER_STRAY, dsa_string(DSA_CONTROL_THINK) },
    { DSA_MARKER_STRAY, dsa_string(DSA_CONTROL_EOS) },
    { DSA_MARKER_STRAY, dsa_string(DSA_CONTROL_BOS) },
    { DSA_MARKER_STRAY, dsa_string(DSA_CONTROL_USER) },
    { DSA_MARKER_STRAY, dsa_string(DSA_CONTROL_ASSISTANT) },
    { DSA_MARKER_CALLS, dsa_string("\n\n" DSML_OPEN "function_calls") },
    { DSA_MARKER_CALLS, dsa_string("\n" DSML_OPEN "function_calls") },
    { DSA_MARKER_CALLS, dsa_string(DSML_OPEN "function_calls") },
    { DSA_MARKER_INVOKE, dsa_string("\n\n" DSML_OPEN "invoke") },
    { DSA_MARKER_INVOKE, dsa_string("\n" DSML_OPEN "invoke") },
    { DSA_MARKER_INVOKE, dsa_string(DSML_OPEN "invoke") },
    { DSA_MARKER_STRAY, dsa_string(DSML_CLOSE "function_calls>") },
    { DSA_MARKER_STRAY, dsa_string(DSML_CLOSE "invoke>") },
    { DSA_MARKER_STRAY, dsa_string(DSML_CLOSE "parameter>") },
    { DSA_MARKER_STRAY, dsa_string(DSA_CONTROL_DSML) },
    { DSA_MARKER_STRAY, dsa_null_string }
};


static const dsa_marker_t  dsa_markers_call[] = {
    { DSA_MARKER_PARAM, dsa_string(DSML_OPEN "parameter") },
    { DSA_MARKER_INVOKE, dsa_string(DSML_OPEN "invoke") },
    { DSA_MARKER_INVOKE_END, dsa_string(DSML_CLOSE "invoke") },
    { DSA_MARKER_CALLS_END, dsa_string(DSML_CLOSE "function_calls") },
    { DSA_MARKER_STRAY, dsa_null_string }
};


static const dsa_marker_t  dsa_markers_value[] = {
    { DSA_MARKER_PARAM_END, dsa_string(DSML_CLOSE "parameter>") },
    { DSA_MARKER_STRAY, dsa_null_string }
};


static const dsa_marker_t  dsa_markers_off[] = {
    { DSA_MARKER_THINK_END, dsa_string(DSA_CONTROL_THINK_END) },
    { DSA_MARKER_PARAM, dsa_string(DSML_OPEN "parameter") },
    { DSA_MARKER_INVOKE, dsa_string(DSML_OPEN "invoke") },
    { DSA_MARKER_INVOKE_END, dsa_string(DSML_CLOSE "invoke>") },
    { DSA_MARKER_CALLS_END, dsa_string(DSML_CLOSE "function_calls>") },
    { DSA_MARKER_STRAY, dsa_null_string }
};


static const dsa_marker_t *const  dsa_markers[] = {
    dsa_markers_text,           /* as dsa_markers_e */
    dsa_markers_call,
    dsa_markers_value,
    dsa_markers_off
};


size_t
dsa_marker_find(dsa_markers_e set, dsa_str_t text)
{
    size_t       i;
    const char  *lt;

    if (set != DSA_MARKERS_TEXT) {
        lt = memchr(text.data, '<', text.len);
        return lt != NULL ? (size_t) (lt - text.data) : text.len;
    }

    for (i = 0; i < text.len; i++) {
        if (text.data[i] == '<' || text.data[i] == '\n'
            || text.data[i] == DSA_CONTROL_DSML[0])
        {
            break;
        }
    }

    return i;
}


void
dsa_hold_byte(dsa_hold_t *h, char c)
{
    h->data[h->len++] = c;
}


int
dsa_hold_match(dsa_hold_t *h, dsa_markers_e set, dsa_marker_e *what)
{
    size_t               n;
    const dsa_marker_t  *m;

    for (m = dsa_markers[set]; m->text.len != 0; m++) {
        n = h->len < m->text.len ? h->len : m->text.len;

        if (memcmp(h->data, m->text.data, n) != 0) {
            continue;
        }

        if (n < m->text.len) {
            return DSA_AGAIN;
        }

        *what = m->what;
        dsa_hold_remove(h, n);

        return DSA_OK;
    }

    return DSA_ERROR;
}


char
dsa_hold_release(dsa_hold_t *h)
{
    char  c;

    c = h->data[0];
    dsa_hold_remove(h, 1);

    return c;
}


int
dsa_hold_cut(const dsa_hold_t *h)
{
    return memmem(h->data, h->len, DSA_CONTROL_DSML,
                  sizeof("\xef\xbd\x9c" "D") - 1)
           != NULL;
}


static void
dsa_hold_remove(dsa_hold_t *h, size_t n)
{
    h->len -= n;
    memmove(h->data, h->data + n, h->len);
}
