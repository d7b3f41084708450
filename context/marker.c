
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>

#include "context/marker.h"


/* A marker is bytes, a control token, and bytes. */

typedef struct {
    dsa_marker_e         what;
    dsa_str_t            before;
    dsa_control_token_e  control;
    dsa_str_t            after;
} dsa_marker_t;


static int dsa_marker_match(const dsa_marker_t *m, const dsa_hold_t *h,
    size_t *n);
static int dsa_marker_match_bytes(const dsa_hold_t *h, size_t *n,
    dsa_str_t text);
static void dsa_hold_add(dsa_hold_t *h, uint16_t symbol);
static void dsa_hold_remove(dsa_hold_t *h, size_t n);


#define dsa_marker_token(what, token)                                        \
    { what, dsa_null_string, DSA_CONTROL_TOKEN_ ## token, dsa_null_string }

#define dsa_marker_tag(what, before, after)                                  \
    { what, dsa_string(before), DSA_CONTROL_TOKEN_DSML, dsa_string(after) }

#define dsa_marker_end  { DSA_MARKER_STRAY, dsa_null_string,                 \
                          DSA_CONTROL_TOKENS, dsa_null_string }


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


static const dsa_marker_t *const  dsa_markers[] = {
    dsa_markers_text,           /* as dsa_markers_e */
    dsa_markers_call,
    dsa_markers_value,
    dsa_markers_off
};


/* The longest markers, where the vocabulary has no control tokens. */

_Static_assert(sizeof(DSA_CONTROL_BOS) - 1 <= DSA_HOLD_MAX
               && sizeof(DSA_CONTROL_EOS) - 1 <= DSA_HOLD_MAX
               && sizeof("\n\n<" DSA_CONTROL_DSML "function_calls") - 1
                  <= DSA_HOLD_MAX,
               "every marker fits the hold");


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
    dsa_hold_add(h, (unsigned char) c);
}


void
dsa_hold_control(dsa_hold_t *h, dsa_control_token_e token)
{
    assert(token < DSA_CONTROL_TOKENS && (h->vocabulary >> token & 1) != 0);

    dsa_hold_add(h, DSA_HOLD_CONTROL + token);
}


int
dsa_hold_match(dsa_hold_t *h, dsa_markers_e set, dsa_marker_e *what)
{
    int                  rc;
    size_t               n;
    const dsa_marker_t  *m;

    for (m = dsa_markers[set]; m->control != DSA_CONTROL_TOKENS; m++) {
        n = 0;
        rc = dsa_marker_match(m, h, &n);

        if (rc == DSA_OK) {
            *what = m->what;
            dsa_hold_remove(h, n);
        }

        if (rc != DSA_ERROR) {
            return rc;
        }
    }

    return DSA_ERROR;
}


dsa_str_t
dsa_hold_release(dsa_hold_t *h, char *c)
{
    uint16_t  symbol;

    symbol = h->symbols[0];
    dsa_hold_remove(h, 1);

    if (symbol >= DSA_HOLD_CONTROL) {
        return dsa_control_tokens[symbol - DSA_HOLD_CONTROL];
    }

    *c = (char) symbol;

    return dsa_str(c, 1);
}


int
dsa_hold_cut(const dsa_hold_t *h)
{
    size_t     i, n;
    dsa_str_t  dsml;

    /* the bar and the first letter, because a bar alone may be text */

    dsml = dsa_str(DSA_CONTROL_DSML, sizeof("\xef\xbd\x9c" "D") - 1);

    for (i = 0; i < h->len; i++) {
        n = i;

        if (h->symbols[i] == DSA_HOLD_CONTROL + DSA_CONTROL_TOKEN_DSML
            || dsa_marker_match_bytes(h, &n, dsml) == DSA_OK)
        {
            return 1;
        }
    }

    return 0;
}


/* As dsa_hold_match(), for one marker.  DSA_OK: *n is its length. */

static int
dsa_marker_match(const dsa_marker_t *m, const dsa_hold_t *h, size_t *n)
{
    int  rc;

    rc = dsa_marker_match_bytes(h, n, m->before);

    if (rc != DSA_OK) {
        return rc;
    }

    if ((h->vocabulary >> m->control & 1) != 0) {

        if (*n == h->len) {
            return DSA_AGAIN;
        }

        if (h->symbols[(*n)++] != DSA_HOLD_CONTROL + m->control) {
            return DSA_ERROR;
        }

    } else {
        rc = dsa_marker_match_bytes(h, n, dsa_control_tokens[m->control]);

        if (rc != DSA_OK) {
            return rc;
        }
    }

    return dsa_marker_match_bytes(h, n, m->after);
}


/* Compares the hold from symbol *n on, and advances *n. */

static int
dsa_marker_match_bytes(const dsa_hold_t *h, size_t *n, dsa_str_t text)
{
    size_t  i;

    for (i = 0; i < text.len; i++, (*n)++) {

        if (*n == h->len) {
            return DSA_AGAIN;
        }

        if (h->symbols[*n] != (unsigned char) text.data[i]) {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


static void
dsa_hold_add(dsa_hold_t *h, uint16_t symbol)
{
    assert(h->len < DSA_HOLD_MAX);

    h->symbols[h->len++] = symbol;
}


static void
dsa_hold_remove(dsa_hold_t *h, size_t n)
{
    h->len -= n;
    memmove(h->symbols, h->symbols + n, h->len * sizeof(h->symbols[0]));
}
