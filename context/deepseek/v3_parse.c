
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The output format of the chat template of DeepSeek-V3.1, read as a stream:
 *
 *     reasoning</think>content<｜tool▁calls▁begin｜>
 *     <｜tool▁call▁begin｜>NAME<｜tool▁sep｜>JSON<｜tool▁call▁end｜>...
 *     <｜tool▁calls▁end｜>
 *
 * without the line breaks.  v3_markers.c has the markers that change the state.
 *
 * The arguments are passed on as the model wrote them, without the white space
 * in front of them.  Nothing within a string of them is a marker, because a
 * model can write the names of its control tokens there.
 *
 * The parser is lenient, because models do not always keep to the format.  A
 * call within the reasoning ends it; a call may begin without the block around
 * it; a call that begins, or a block that ends, within a call ends that one; a
 * newline or a brace ends a name without a separator.  Control tokens that
 * stray into reasoning or content are taken out.  Text between calls and behind
 * them is ignored.  If calls are off, the block is left out up to its end or up
 * to a </think> within it, but outside of strings.
 */


#include "context/call.h"
#include "context/parser.h"
#include "context/deepseek/v3.h"
#include "context/deepseek/v3_markers.h"


typedef enum {
    DSA_V3_1_REASONING = 0,
    DSA_V3_1_CONTENT,
    DSA_V3_1_BETWEEN,           /* in the block, not in a call */
    DSA_V3_1_NAME,
    DSA_V3_1_ARGUMENTS,         /* of a call, outside of a string */
    DSA_V3_1_STRING,
    DSA_V3_1_DONE               /* behind the block */
} dsa_v3_1_state_e;


typedef struct {
    dsa_parse_t           parse;    /* first */
    dsa_v3_1_state_e      state;
    dsa_v3_1_state_e      text;     /* the state before the block */
    unsigned              tools:1;
    unsigned              framed:1; /* the block has a beginning */
    unsigned              escaped:1;    /* a backslash precedes the next byte
                                       of the string */
    dsa_pending_t         pending;
    dsa_call_t            call;
    uint32_t              name_len; /* above DSA_PARSE_NAME: too long */
    char                  name[DSA_PARSE_NAME];
} dsa_v3_1_parse_t;

_Static_assert(sizeof(dsa_v3_1_parse_t) <= 640,
               "ten thousand parsers may be open at once");


static void dsa_v3_1_start(dsa_parse_t *parse, int thinking, int tools);
static void dsa_v3_1_free(dsa_parse_t *parse);
static void dsa_v3_1_text(dsa_parse_t *parse, dsa_str_t text);
static void dsa_v3_1_control(dsa_parse_t *parse, uint32_t token);
static void dsa_v3_1_end(dsa_parse_t *parse, int complete);
static int dsa_v3_1_in_reasoning(const dsa_parse_t *parse);
static size_t dsa_v3_1_plain(const dsa_v3_1_parse_t *p, dsa_str_t text);
static void dsa_v3_1_held(dsa_v3_1_parse_t *p);
static void dsa_v3_1_release(dsa_v3_1_parse_t *p);
static size_t dsa_v3_1_parse_text(dsa_v3_1_parse_t *p, dsa_str_t text);
static size_t dsa_v3_1_parse_name(dsa_v3_1_parse_t *p, dsa_str_t text);
static size_t dsa_v3_1_parse_arguments(dsa_v3_1_parse_t *p, dsa_str_t text);
static size_t dsa_v3_1_parse_string(dsa_v3_1_parse_t *p, dsa_str_t text);
static void dsa_v3_1_argument(dsa_v3_1_parse_t *p, dsa_str_t text);
static void dsa_v3_1_marked(dsa_v3_1_parse_t *p, dsa_v3_1_marker_e what);
static void dsa_v3_1_call_begins(dsa_v3_1_parse_t *p);
static void dsa_v3_1_call_ends(dsa_v3_1_parse_t *p);
static void dsa_v3_1_named(dsa_v3_1_parse_t *p);
static int dsa_v3_1_blank(char c);


const dsa_parser_t  dsa_v3_1_parser = {
    .size = sizeof(dsa_v3_1_parse_t),
    .start = dsa_v3_1_start,
    .free = dsa_v3_1_free,
    .text = dsa_v3_1_text,
    .control = dsa_v3_1_control,
    .end = dsa_v3_1_end,
    .in_reasoning = dsa_v3_1_in_reasoning
};


static const dsa_v3_1_set_e  dsa_v3_1_sets[] = {
    DSA_V3_1_IN_TEXT,           /* as dsa_v3_1_state_e, up to DONE */
    DSA_V3_1_IN_TEXT,
    DSA_V3_1_IN_BLOCK,
    DSA_V3_1_IN_BLOCK,
    DSA_V3_1_IN_BLOCK,
    DSA_V3_1_IN_STRING
};

_Static_assert(sizeof(dsa_v3_1_sets) / sizeof(dsa_v3_1_sets[0])
               == DSA_V3_1_DONE,
               "every state but the last has its markers");


static void
dsa_v3_1_start(dsa_parse_t *parse, int thinking, int tools)
{
    dsa_v3_1_parse_t  *p = (dsa_v3_1_parse_t *) parse;

    dsa_pending_init(&p->pending, &parse->family->tokens, parse->vocabulary);
    p->tools = tools != 0;
    p->state = thinking ? DSA_V3_1_REASONING : DSA_V3_1_CONTENT;
    p->text = p->state;
}


static void
dsa_v3_1_free(dsa_parse_t *parse)
{
    dsa_v3_1_parse_t  *p = (dsa_v3_1_parse_t *) parse;

    dsa_call_free(&p->call);
}


static void
dsa_v3_1_text(dsa_parse_t *parse, dsa_str_t text)
{
    size_t             n;
    dsa_v3_1_parse_t  *p = (dsa_v3_1_parse_t *) parse;

    while (text.len != 0 && parse->deltas.rc == DSA_OK
           && p->state != DSA_V3_1_DONE)
    {
        n = p->pending.len == 0 ? dsa_v3_1_plain(p, text) : 0;

        if (n != 0) {
            n = dsa_v3_1_parse_text(p, dsa_str(text.data, n));

        } else {
            dsa_pending_byte(&p->pending, *text.data);
            dsa_v3_1_held(p);
            n = 1;
        }

        text.data += n;
        text.len -= n;
    }
}


static void
dsa_v3_1_control(dsa_parse_t *parse, uint32_t token)
{
    dsa_v3_1_parse_t  *p = (dsa_v3_1_parse_t *) parse;

    if (parse->deltas.rc == DSA_OK && p->state != DSA_V3_1_DONE) {
        dsa_pending_control(&p->pending, token);
        dsa_v3_1_held(p);
    }
}


static void
dsa_v3_1_end(dsa_parse_t *parse, int complete)
{
    dsa_v3_1_parse_t  *p = (dsa_v3_1_parse_t *) parse;

    /* the beginning of a marker that was cut off, not of a text */

    if (dsa_pending_has(&p->pending, DSA_V3_1_TOKEN_CALLS,
                        sizeof(DSA_V3_1_TOOL) - 1)
        || (!complete && p->state == DSA_V3_1_ARGUMENTS))
    {
        p->pending.len = 0;
    }

    while (p->pending.len != 0) {
        dsa_v3_1_release(p);
    }

    if (complete) {
        dsa_call_finish(&p->call, &parse->deltas);
        p->state = DSA_V3_1_DONE;
    }
}


static int
dsa_v3_1_in_reasoning(const dsa_parse_t *parse)
{
    const dsa_v3_1_parse_t  *p = (const dsa_v3_1_parse_t *) parse;

    return p->state == DSA_V3_1_REASONING
           || (!p->tools && p->state != DSA_V3_1_CONTENT
               && p->text == DSA_V3_1_REASONING);
}


/* The number of bytes in front of the first one that may begin a marker. */

static size_t
dsa_v3_1_plain(const dsa_v3_1_parse_t *p, dsa_str_t text)
{
    const char  *lt;

    lt = p->state != DSA_V3_1_STRING ? memchr(text.data, '<', text.len) : NULL;

    return lt != NULL ? (size_t) (lt - text.data) : text.len;
}


/*
 * Handles markers and text at the front of the pending symbols, until the rest
 * is empty or may still become a marker.
 */

static void
dsa_v3_1_held(dsa_v3_1_parse_t *p)
{
    int                  what;
    const dsa_marker_t  *list;

    while (p->pending.len != 0) {

        if (p->state == DSA_V3_1_DONE) {
            p->pending.len = 0;
            return;
        }

        list = dsa_v3_1_markers[dsa_v3_1_sets[p->state]];

        switch (dsa_pending_match(&p->pending, list, &what)) {

        case DSA_OK:
            dsa_v3_1_marked(p, (dsa_v3_1_marker_e) what);
            break;

        case DSA_AGAIN:
            return;

        default:
            dsa_v3_1_release(p);
            break;
        }
    }
}


/* Takes the first pending symbol, as text. */

static void
dsa_v3_1_release(dsa_v3_1_parse_t *p)
{
    char       c;
    size_t     n;
    dsa_str_t  text;

    text = dsa_pending_release(&p->pending, &c);

    while (text.len != 0) {
        n = dsa_v3_1_parse_text(p, text);

        text.data += n;
        text.len -= n;
    }
}


/*
 * Consumes text that is not a marker, up to its end or to a byte that changes
 * the state.  Returns the number of bytes consumed, which is 0 only if the
 * state has changed.
 */

static size_t
dsa_v3_1_parse_text(dsa_v3_1_parse_t *p, dsa_str_t text)
{
    switch (p->state) {

    case DSA_V3_1_REASONING:
        dsa_deltas_add(&p->parse.deltas, DSA_DELTA_REASONING, text.data,
                       text.len);
        break;

    case DSA_V3_1_CONTENT:
        dsa_deltas_add(&p->parse.deltas, DSA_DELTA_CONTENT, text.data,
                       text.len);
        break;

    case DSA_V3_1_NAME:
        return dsa_v3_1_parse_name(p, text);

    case DSA_V3_1_ARGUMENTS:
        return dsa_v3_1_parse_arguments(p, text);

    case DSA_V3_1_STRING:
        return dsa_v3_1_parse_string(p, text);

    case DSA_V3_1_BETWEEN:
    case DSA_V3_1_DONE:
        break;
    }

    return text.len;
}


/* White space in front of the name does not count. */

static size_t
dsa_v3_1_parse_name(dsa_v3_1_parse_t *p, dsa_str_t text)
{
    char    c;
    size_t  i;

    for (i = 0; i < text.len; i++) {
        c = text.data[i];

        if (p->name_len == 0 && dsa_v3_1_blank(c)) {
            continue;
        }

        if (c == '\n' || c == '{') {
            dsa_v3_1_named(p);
            break;
        }

        if (p->name_len < DSA_PARSE_NAME) {
            p->name[p->name_len++] = c;

        } else if (!dsa_v3_1_blank(c)) {
            p->name_len = DSA_PARSE_NAME + 1;
        }
    }

    return i;
}


/* Up to the beginning of a string. */

static size_t
dsa_v3_1_parse_arguments(dsa_v3_1_parse_t *p, dsa_str_t text)
{
    size_t       i, n;
    const char  *quote;

    for (i = 0; i < text.len && !p->call.bare; i++) {
        if (!dsa_v3_1_blank(text.data[i])) {
            p->call.bare = 1;
            break;
        }
    }

    if (i == text.len) {
        return i;
    }

    quote = memchr(text.data + i, '"', text.len - i);
    n = quote != NULL ? (size_t) (quote - text.data) + 1 : text.len;

    if (quote != NULL) {
        p->escaped = 0;
        p->state = DSA_V3_1_STRING;
    }

    dsa_v3_1_argument(p, dsa_str(text.data + i, n - i));

    return n;
}


/* Up to the end of the string. */

static size_t
dsa_v3_1_parse_string(dsa_v3_1_parse_t *p, dsa_str_t text)
{
    size_t  i;

    for (i = 0; i < text.len; i++) {
        if (p->escaped) {
            p->escaped = 0;

        } else if (text.data[i] == '\\') {
            p->escaped = 1;

        } else if (text.data[i] == '"') {
            p->state = DSA_V3_1_ARGUMENTS;
            i++;
            break;
        }
    }

    dsa_v3_1_argument(p, dsa_str(text.data, i));

    return i;
}


/* A call that is left out stays closed. */

static void
dsa_v3_1_argument(dsa_v3_1_parse_t *p, dsa_str_t text)
{
    if (p->call.open) {
        dsa_deltas_add(&p->parse.deltas, DSA_DELTA_ARGUMENTS, text.data,
                       text.len);
    }
}


static void
dsa_v3_1_marked(dsa_v3_1_parse_t *p, dsa_v3_1_marker_e what)
{
    switch (what) {

    case DSA_V3_1_STRAY:
        break;

    case DSA_V3_1_THINK_ENDS:
        if (p->state <= DSA_V3_1_CONTENT || !p->tools) {
            p->state = DSA_V3_1_CONTENT;
        }

        break;

    case DSA_V3_1_BLOCK:
        if (p->state <= DSA_V3_1_CONTENT) {
            p->text = p->state;
            p->framed = 1;
            p->state = DSA_V3_1_BETWEEN;
        }

        break;

    case DSA_V3_1_BLOCK_ENDS:
        dsa_v3_1_call_ends(p);
        p->state = p->tools ? DSA_V3_1_DONE : p->text;
        break;

    case DSA_V3_1_CALL_BEGINS:
        dsa_v3_1_call_begins(p);
        break;

    case DSA_V3_1_CALL_ENDS:
        dsa_v3_1_call_ends(p);
        p->state = p->tools || p->framed ? DSA_V3_1_BETWEEN : p->text;
        break;

    case DSA_V3_1_NAME_ENDS:
        if (p->state == DSA_V3_1_NAME) {
            dsa_v3_1_named(p);
        }

        break;
    }
}


static void
dsa_v3_1_call_begins(dsa_v3_1_parse_t *p)
{
    if (p->state <= DSA_V3_1_CONTENT) {
        p->text = p->state;
        p->framed = 0;

    } else {
        dsa_v3_1_call_ends(p);
    }

    p->name_len = 0;
    p->state = DSA_V3_1_NAME;
}


static void
dsa_v3_1_call_ends(dsa_v3_1_parse_t *p)
{
    if (p->state == DSA_V3_1_NAME) {
        dsa_v3_1_named(p);
    }

    dsa_call_finish(&p->call, &p->parse.deltas);
}


/* The name is complete, without the white space behind it. */

static void
dsa_v3_1_named(dsa_v3_1_parse_t *p)
{
    dsa_str_t  name;

    name = dsa_str_trim(dsa_str(p->name, p->name_len <= DSA_PARSE_NAME
                                         ? p->name_len : 0));
    p->call.bare = 0;
    p->state = DSA_V3_1_ARGUMENTS;

    if (p->tools && name.len != 0
        && p->parse.deltas.calls != DSA_PARSE_CALLS)
    {
        dsa_call_start(&p->call, &p->parse.deltas, name);
    }
}


static int
dsa_v3_1_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
