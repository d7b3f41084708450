
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The output format that is published with DeepSeek-V3.2 (encoding/ of the
 * model's repository), read as a stream.  This file has the states, marker.c
 * the markers that change them, tag.c the attributes of a tag, and call.c the
 * arguments.
 */


#include <assert.h>
#include <stdlib.h>

#include "context/call.h"
#include "context/delta.h"
#include "context/marker.h"
#include "context/parse.h"
#include "context/tag.h"


typedef enum {
    DSA_STATE_REASONING = 0,
    DSA_STATE_CONTENT,
    DSA_STATE_CALLS,            /* between calls */
    DSA_STATE_INVOKE_TAG,       /* within <invoke ...> */
    DSA_STATE_INVOKE,           /* between the parameters of a call */
    DSA_STATE_BARE,             /* arguments as an object, not as parameters */
    DSA_STATE_INVOKE_SKIP,      /* a call that is left out */
    DSA_STATE_PARAM_TAG,        /* within <parameter ...> */
    DSA_STATE_VALUE,            /* the value of a parameter */
    DSA_STATE_OFF,              /* in the block, when calls are off */
    DSA_STATE_DONE              /* after the block of calls */
} dsa_parse_state_e;


struct dsa_parse_s {
    dsa_parse_state_e     state;
    dsa_parse_state_e     text;      /* the state before the block of calls */
    unsigned              tools:1;
    unsigned              framed:1;  /* the block began with a line of
                                        function_calls */
    dsa_deltas_t          deltas;
    dsa_hold_t            hold;
    dsa_tag_t             tag;
    dsa_call_t            call;
};

_Static_assert(sizeof(struct dsa_parse_s) <= 640,
               "ten thousand parsers may be open at once");


static void dsa_parse_held(dsa_parse_t *p);
static void dsa_parse_release(dsa_parse_t *p);
static size_t dsa_parse_text(dsa_parse_t *p, dsa_str_t text);
static size_t dsa_parse_tag(dsa_parse_t *p, dsa_str_t text);
static void dsa_parse_invoke(dsa_parse_t *p);
static void dsa_parse_param(dsa_parse_t *p);
static void dsa_parse_marker(dsa_parse_t *p, dsa_marker_e what);


static const dsa_markers_e  dsa_parse_markers[] = {
    DSA_MARKERS_TEXT,           /* as dsa_parse_state_e, up to DONE */
    DSA_MARKERS_TEXT,
    DSA_MARKERS_CALL,
    DSA_MARKERS_CALL,
    DSA_MARKERS_CALL,
    DSA_MARKERS_CALL,
    DSA_MARKERS_CALL,
    DSA_MARKERS_CALL,
    DSA_MARKERS_VALUE,
    DSA_MARKERS_OFF
};

_Static_assert(sizeof(dsa_parse_markers) / sizeof(dsa_parse_markers[0])
               == DSA_STATE_DONE,
               "every state but the last has its markers");


dsa_parse_t *
dsa_parse_create(int thinking, int tools, uint32_t vocabulary,
    dsa_delta_pt delta, void *ctx)
{
    dsa_parse_t  *p;

    assert(vocabulary >> DSA_CONTROL_TOKENS == 0);

    p = calloc(1, sizeof(dsa_parse_t));

    if (p != NULL) {
        p->deltas.callback = delta;
        p->deltas.ctx = ctx;
        p->hold.vocabulary = vocabulary;
        p->tools = tools != 0;
        p->state = thinking ? DSA_STATE_REASONING : DSA_STATE_CONTENT;
        p->text = p->state;
    }

    return p;
}


void
dsa_parse_destroy(dsa_parse_t *p)
{
    if (p != NULL) {
        dsa_call_free(&p->call);
        free(p);
    }
}


int
dsa_parse_feed(dsa_parse_t *p, dsa_str_t text)
{
    size_t              n;
    dsa_delta_buffer_t  buffer;

    dsa_deltas_start(&p->deltas, &buffer);

    while (text.len != 0 && p->deltas.rc == DSA_OK
           && p->state != DSA_STATE_DONE)
    {
        n = 0;

        if (p->hold.len == 0) {
            n = dsa_marker_find(dsa_parse_markers[p->state], text);
        }

        if (n != 0) {
            n = dsa_parse_text(p, dsa_str(text.data, n));

        } else {
            dsa_hold_byte(&p->hold, *text.data);
            dsa_parse_held(p);
            n = 1;
        }

        text.data += n;
        text.len -= n;
    }

    return dsa_deltas_finish(&p->deltas);
}


int
dsa_parse_feed_control(dsa_parse_t *p, dsa_str_t name)
{
    uint32_t            i;
    dsa_delta_buffer_t  buffer;

    for (i = 0; i < DSA_CONTROL_TOKENS; i++) {
        if ((p->hold.vocabulary >> i & 1) != 0
            && dsa_str_eq(dsa_control_tokens[i], name))
        {
            break;
        }
    }

    if (i == DSA_CONTROL_TOKENS) {
        return dsa_parse_feed(p, name);
    }

    dsa_deltas_start(&p->deltas, &buffer);

    if (p->deltas.rc == DSA_OK && p->state != DSA_STATE_DONE) {
        dsa_hold_control(&p->hold, i);
        dsa_parse_held(p);
    }

    return dsa_deltas_finish(&p->deltas);
}


int
dsa_parse_end(dsa_parse_t *p, int complete)
{
    dsa_delta_buffer_t  buffer;

    dsa_deltas_start(&p->deltas, &buffer);

    if (dsa_hold_cut(&p->hold)
        || (!complete && p->state == DSA_STATE_VALUE))
    {
        p->hold.len = 0;
    }

    while (p->hold.len != 0) {
        dsa_parse_release(p);
    }

    if (complete) {
        dsa_call_value_end(&p->call, &p->deltas);
        dsa_call_finish(&p->call, &p->deltas);
        p->state = DSA_STATE_DONE;
    }

    return dsa_deltas_finish(&p->deltas);
}


uint32_t
dsa_parse_calls(const dsa_parse_t *p)
{
    return p->deltas.calls;
}


int
dsa_parse_in_reasoning(const dsa_parse_t *p)
{
    return p->state == DSA_STATE_REASONING
           || (!p->tools && p->state != DSA_STATE_CONTENT
               && p->text == DSA_STATE_REASONING);
}


/*
 * Handles markers and text at the front of the hold, until the rest is empty or
 * may still become a marker.
 */

static void
dsa_parse_held(dsa_parse_t *p)
{
    dsa_marker_e  what;

    while (p->hold.len != 0) {

        if (p->state == DSA_STATE_DONE) {
            p->hold.len = 0;
            return;
        }

        switch (dsa_hold_match(&p->hold, dsa_parse_markers[p->state], &what)) {

        case DSA_OK:
            dsa_parse_marker(p, what);
            break;

        case DSA_AGAIN:
            return;

        default:
            dsa_parse_release(p);
            break;
        }
    }
}


/* Takes the first symbol from the hold, as text. */

static void
dsa_parse_release(dsa_parse_t *p)
{
    char       c;
    size_t     n;
    dsa_str_t  text;

    text = dsa_hold_release(&p->hold, &c);

    while (text.len != 0) {
        n = dsa_parse_text(p, text);

        text.data += n;
        text.len -= n;
    }
}


/*
 * Consumes text that is not a marker, up to its end or to a byte that changes
 * the state.  Returns the number of bytes consumed, at least one.
 */

static size_t
dsa_parse_text(dsa_parse_t *p, dsa_str_t text)
{
    size_t  n;

    switch (p->state) {

    case DSA_STATE_REASONING:
        dsa_deltas_add(&p->deltas, DSA_DELTA_REASONING, text.data, text.len);
        return text.len;

    case DSA_STATE_CONTENT:
        dsa_deltas_add(&p->deltas, DSA_DELTA_CONTENT, text.data, text.len);
        return text.len;

    case DSA_STATE_INVOKE_TAG:
    case DSA_STATE_PARAM_TAG:
        return dsa_parse_tag(p, text);

    case DSA_STATE_INVOKE:
        if (dsa_call_bare(&p->call, &p->deltas, text.data, text.len, &n)) {
            p->state = DSA_STATE_BARE;
            return n;
        }

        return text.len;

    case DSA_STATE_BARE:
        dsa_deltas_add(&p->deltas, DSA_DELTA_ARGUMENTS, text.data, text.len);
        return text.len;

    case DSA_STATE_VALUE:
        dsa_call_value(&p->call, &p->deltas, text.data, text.len);
        return text.len;

    case DSA_STATE_CALLS:
    case DSA_STATE_INVOKE_SKIP:
    case DSA_STATE_OFF:
    case DSA_STATE_DONE:
        break;
    }

    return text.len;
}


static size_t
dsa_parse_tag(dsa_parse_t *p, dsa_str_t text)
{
    size_t  i;

    for (i = 0; i < text.len; i++) {
        if (dsa_tag_byte(&p->tag, text.data[i]) == 0) {
            continue;
        }

        if (p->state == DSA_STATE_INVOKE_TAG) {
            dsa_parse_invoke(p);

        } else {
            dsa_parse_param(p);
        }

        return i + 1;
    }

    return i;
}


static void
dsa_parse_invoke(dsa_parse_t *p)
{
    int        string;
    dsa_str_t  name;

    name = dsa_tag_name(&p->tag, &string);

    if (name.len == 0 || p->deltas.calls == DSA_PARSE_CALLS) {
        p->state = DSA_STATE_INVOKE_SKIP;
        return;
    }

    dsa_call_start(&p->call, &p->deltas, name);
    p->state = DSA_STATE_INVOKE;
}


static void
dsa_parse_param(dsa_parse_t *p)
{
    int        string;
    dsa_str_t  name;

    name = dsa_tag_name(&p->tag, &string);

    dsa_call_param(&p->call, &p->deltas, name, string);
    p->state = DSA_STATE_VALUE;
}


static void
dsa_parse_marker(dsa_parse_t *p, dsa_marker_e what)
{
    if (p->state == DSA_STATE_REASONING || p->state == DSA_STATE_CONTENT) {
        p->text = p->state;
        p->framed = what == DSA_MARKER_CALLS;
    }

    switch (what) {

    case DSA_MARKER_STRAY:
        break;

    case DSA_MARKER_THINK_END:
        p->state = DSA_STATE_CONTENT;
        break;

    case DSA_MARKER_CALLS:
        p->state = p->tools ? DSA_STATE_CALLS : DSA_STATE_OFF;
        break;

    case DSA_MARKER_CALLS_END:
        dsa_call_finish(&p->call, &p->deltas);
        p->state = p->tools ? DSA_STATE_DONE : p->text;
        break;

    case DSA_MARKER_INVOKE:
        dsa_call_finish(&p->call, &p->deltas);
        dsa_tag_start(&p->tag);
        p->state = p->tools ? DSA_STATE_INVOKE_TAG : DSA_STATE_OFF;
        break;

    case DSA_MARKER_INVOKE_END:
        dsa_call_finish(&p->call, &p->deltas);
        p->state = p->tools ? DSA_STATE_CALLS
                   : p->framed ? DSA_STATE_OFF : p->text;
        break;

    case DSA_MARKER_PARAM:
        if (p->call.open && !p->call.bare) {
            dsa_tag_start(&p->tag);
            p->state = DSA_STATE_PARAM_TAG;
            break;
        }

        /* the tag is left out together with the value */

        dsa_call_param(&p->call, &p->deltas, dsa_str(NULL, 0), 0);
        p->state = DSA_STATE_VALUE;
        break;

    case DSA_MARKER_PARAM_END:
        dsa_call_value_end(&p->call, &p->deltas);
        p->state = !p->tools ? DSA_STATE_OFF
                   : p->call.open ? DSA_STATE_INVOKE : DSA_STATE_INVOKE_SKIP;
        break;
    }
}
