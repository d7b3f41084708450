
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The output format that is published with DeepSeek-V3.2 (encoding/ of the
 * model's repository), read as a stream.  This file has the states, markers.c
 * the markers that change them, tag.c the attributes of a tag, and
 * context/call.c the arguments.
 *
 * Markers such as "<｜DSML｜invoke" contain a control token between ordinary
 * bytes, and need the token there.
 *
 * The parser is lenient, because models do not always keep to the format:
 * calls may begin with two, one or no newline in front, while the model still
 * thinks, or without the line of function_calls; control tokens that stray
 * into reasoning or content are taken out.
 *
 * A value of string="true" becomes a JSON string; an object or array stays as
 * it is; any other value stays as it is if it is JSON, and becomes a JSON
 * string if not.  What follows the block of calls is ignored.  If calls are
 * off, the block is left out up to its end or up to a </think> within it, but
 * outside of values.
 */


#include "context/call.h"
#include "context/parser.h"
#include "context/deepseek/deepseek.h"
#include "context/deepseek/markers.h"
#include "context/deepseek/tag.h"


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


typedef struct {
    dsa_parse_t           parse;     /* first */
    dsa_parse_state_e     state;
    dsa_parse_state_e     text;      /* the state before the block of calls */
    unsigned              tools:1;
    unsigned              framed:1;  /* the block began with a line of
                                        function_calls */
    dsa_pending_t         pending;
    dsa_tag_t             tag;
    dsa_call_t            call;
} dsa_deepseek_parse_t;

_Static_assert(sizeof(dsa_deepseek_parse_t) <= 640,
               "ten thousand parsers may be open at once");


static void dsa_deepseek_start(dsa_parse_t *parse, int thinking, int tools);
static void dsa_deepseek_free(dsa_parse_t *parse);
static void dsa_deepseek_text(dsa_parse_t *parse, dsa_str_t text);
static void dsa_deepseek_control(dsa_parse_t *parse, uint32_t token);
static void dsa_deepseek_end(dsa_parse_t *parse, int complete);
static int dsa_deepseek_in_reasoning(const dsa_parse_t *parse);
static void dsa_parse_held(dsa_deepseek_parse_t *p);
static void dsa_parse_release(dsa_deepseek_parse_t *p);
static size_t dsa_parse_text(dsa_deepseek_parse_t *p, dsa_str_t text);
static size_t dsa_parse_tag(dsa_deepseek_parse_t *p, dsa_str_t text);
static void dsa_parse_invoke(dsa_deepseek_parse_t *p);
static void dsa_parse_param(dsa_deepseek_parse_t *p);
static void dsa_parse_marker(dsa_deepseek_parse_t *p,
    dsa_deepseek_marker_e what);


const dsa_parser_t  dsa_deepseek_parser = {
    .size = sizeof(dsa_deepseek_parse_t),
    .start = dsa_deepseek_start,
    .free = dsa_deepseek_free,
    .text = dsa_deepseek_text,
    .control = dsa_deepseek_control,
    .end = dsa_deepseek_end,
    .in_reasoning = dsa_deepseek_in_reasoning
};


static const dsa_deepseek_markers_e  dsa_parse_markers[] = {
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


static void
dsa_deepseek_start(dsa_parse_t *parse, int thinking, int tools)
{
    dsa_deepseek_parse_t  *p = (dsa_deepseek_parse_t *) parse;

    dsa_pending_init(&p->pending, &parse->family->tokens, parse->vocabulary);
    p->tools = tools != 0;
    p->state = thinking ? DSA_STATE_REASONING : DSA_STATE_CONTENT;
    p->text = p->state;
}


static void
dsa_deepseek_free(dsa_parse_t *parse)
{
    dsa_deepseek_parse_t  *p = (dsa_deepseek_parse_t *) parse;

    dsa_call_free(&p->call);
}


static void
dsa_deepseek_text(dsa_parse_t *parse, dsa_str_t text)
{
    size_t                 n;
    dsa_deepseek_parse_t  *p = (dsa_deepseek_parse_t *) parse;

    while (text.len != 0 && parse->deltas.rc == DSA_OK
           && p->state != DSA_STATE_DONE)
    {
        n = 0;

        if (p->pending.len == 0) {
            n = dsa_deepseek_marker_find(dsa_parse_markers[p->state], text);
        }

        if (n != 0) {
            n = dsa_parse_text(p, dsa_str(text.data, n));

        } else {
            dsa_pending_byte(&p->pending, *text.data);
            dsa_parse_held(p);
            n = 1;
        }

        text.data += n;
        text.len -= n;
    }
}


static void
dsa_deepseek_control(dsa_parse_t *parse, uint32_t token)
{
    dsa_deepseek_parse_t  *p = (dsa_deepseek_parse_t *) parse;

    if (parse->deltas.rc == DSA_OK && p->state != DSA_STATE_DONE) {
        dsa_pending_control(&p->pending, token);
        dsa_parse_held(p);
    }
}


static void
dsa_deepseek_end(dsa_parse_t *parse, int complete)
{
    dsa_deepseek_parse_t  *p = (dsa_deepseek_parse_t *) parse;

    if (dsa_deepseek_marker_cut(&p->pending)
        || (!complete && p->state == DSA_STATE_VALUE))
    {
        p->pending.len = 0;
    }

    while (p->pending.len != 0) {
        dsa_parse_release(p);
    }

    if (complete) {
        dsa_call_value_end(&p->call, &parse->deltas);
        dsa_call_finish(&p->call, &parse->deltas);
        p->state = DSA_STATE_DONE;
    }
}


static int
dsa_deepseek_in_reasoning(const dsa_parse_t *parse)
{
    const dsa_deepseek_parse_t  *p = (const dsa_deepseek_parse_t *) parse;

    return p->state == DSA_STATE_REASONING
           || (!p->tools && p->state != DSA_STATE_CONTENT
               && p->text == DSA_STATE_REASONING);
}


/*
 * Handles markers and text at the front of the pending symbols, until the rest
 * is empty or may still become a marker.
 */

static void
dsa_parse_held(dsa_deepseek_parse_t *p)
{
    int                  what;
    const dsa_marker_t  *list;

    while (p->pending.len != 0) {

        if (p->state == DSA_STATE_DONE) {
            p->pending.len = 0;
            return;
        }

        list = dsa_deepseek_markers[dsa_parse_markers[p->state]];

        switch (dsa_pending_match(&p->pending, list, &what)) {

        case DSA_OK:
            dsa_parse_marker(p, (dsa_deepseek_marker_e) what);
            break;

        case DSA_AGAIN:
            return;

        default:
            dsa_parse_release(p);
            break;
        }
    }
}


/* Takes the first pending symbol, as text. */

static void
dsa_parse_release(dsa_deepseek_parse_t *p)
{
    char       c;
    size_t     n;
    dsa_str_t  text;

    text = dsa_pending_release(&p->pending, &c);

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
dsa_parse_text(dsa_deepseek_parse_t *p, dsa_str_t text)
{
    size_t         n;
    dsa_deltas_t  *d;

    d = &p->parse.deltas;

    switch (p->state) {

    case DSA_STATE_REASONING:
        dsa_deltas_add(d, DSA_DELTA_REASONING, text.data, text.len);
        return text.len;

    case DSA_STATE_CONTENT:
        dsa_deltas_add(d, DSA_DELTA_CONTENT, text.data, text.len);
        return text.len;

    case DSA_STATE_INVOKE_TAG:
    case DSA_STATE_PARAM_TAG:
        return dsa_parse_tag(p, text);

    case DSA_STATE_INVOKE:
        if (dsa_call_bare(&p->call, d, text.data, text.len, &n)) {
            p->state = DSA_STATE_BARE;
            return n;
        }

        return text.len;

    case DSA_STATE_BARE:
        dsa_deltas_add(d, DSA_DELTA_ARGUMENTS, text.data, text.len);
        return text.len;

    case DSA_STATE_VALUE:
        dsa_call_value(&p->call, d, text.data, text.len);
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
dsa_parse_tag(dsa_deepseek_parse_t *p, dsa_str_t text)
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
dsa_parse_invoke(dsa_deepseek_parse_t *p)
{
    int        string;
    dsa_str_t  name;

    name = dsa_tag_name(&p->tag, &string);

    if (name.len == 0 || p->parse.deltas.calls == DSA_PARSE_CALLS) {
        p->state = DSA_STATE_INVOKE_SKIP;
        return;
    }

    dsa_call_start(&p->call, &p->parse.deltas, name);
    p->state = DSA_STATE_INVOKE;
}


static void
dsa_parse_param(dsa_deepseek_parse_t *p)
{
    int        string;
    dsa_str_t  name;

    name = dsa_tag_name(&p->tag, &string);

    dsa_call_param(&p->call, &p->parse.deltas, name, string);
    p->state = DSA_STATE_VALUE;
}


static void
dsa_parse_marker(dsa_deepseek_parse_t *p, dsa_deepseek_marker_e what)
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
        dsa_call_finish(&p->call, &p->parse.deltas);
        p->state = p->tools ? DSA_STATE_DONE : p->text;
        break;

    case DSA_MARKER_INVOKE:
        dsa_call_finish(&p->call, &p->parse.deltas);
        dsa_tag_start(&p->tag);
        p->state = p->tools ? DSA_STATE_INVOKE_TAG : DSA_STATE_OFF;
        break;

    case DSA_MARKER_INVOKE_END:
        dsa_call_finish(&p->call, &p->parse.deltas);
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

        dsa_call_param(&p->call, &p->parse.deltas, dsa_str(NULL, 0), 0);
        p->state = DSA_STATE_VALUE;
        break;

    case DSA_MARKER_PARAM_END:
        dsa_call_value_end(&p->call, &p->parse.deltas);
        p->state = !p->tools ? DSA_STATE_OFF
                   : p->call.open ? DSA_STATE_INVOKE : DSA_STATE_INVOKE_SKIP;
        break;
    }
}
