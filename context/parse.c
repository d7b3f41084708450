
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The output format that is published with DeepSeek-V3.2 (encoding/ of the
 * model's repository), read as a stream.
 *
 * In each state there are a few markers to look for.  At a byte where one
 * could begin, the text either is one, or is not, or is too short to tell:
 * then it waits in hold.  No marker begins another one, so this depends on
 * the text alone and never on how it was cut.
 */


#include <stdio.h>
#include <stdlib.h>

#include <yajl/yajl_parse.h>

#include "base/json_write.h"
#include "context/control_tokens.h"
#include "context/parse.h"


#define DSA_PARSE_HOLD    32        /* longer than any marker */
#define DSA_PARSE_TAG     (DSA_PARSE_NAME + 64)     /* attributes of a tag */
#define DSA_PARSE_OUT     2048

#define DSML_OPEN         "<" DSA_CONTROL_DSML
#define DSML_CLOSE        "</" DSA_CONTROL_DSML


typedef enum {
    DSA_STATE_REASONING = 0,
    DSA_STATE_CONTENT,
    DSA_STATE_CALLS,            /* between calls */
    DSA_STATE_INVOKE_TAG,       /* within <invoke ...> */
    DSA_STATE_INVOKE,           /* between the parameters of a call */
    DSA_STATE_BARE,             /* arguments as an object, not as parameters */
    DSA_STATE_INVOKE_SKIP,      /* a call without a name */
    DSA_STATE_PARAM_TAG,        /* within <parameter ...> */
    DSA_STATE_STRING,           /* a value, string="true" */
    DSA_STATE_VALUE,            /* a value of another type, at its start */
    DSA_STATE_JSON,             /* an object or array */
    DSA_STATE_SCALAR,
    DSA_STATE_VALUE_SKIP,
    DSA_STATE_OFF,              /* in the block, when calls are off */
    DSA_STATE_DONE              /* after the block of calls */
} dsa_parse_state_e;


typedef enum {
    DSA_MARKER_STRAY = 0,
    DSA_MARKER_THINK_END,
    DSA_MARKER_CALLS,
    DSA_MARKER_CALLS_END,
    DSA_MARKER_INVOKE,
    DSA_MARKER_INVOKE_END,
    DSA_MARKER_PARAM,
    DSA_MARKER_PARAM_END
} dsa_marker_e;


typedef struct {
    dsa_marker_e          what;
    dsa_str_t             text;
} dsa_marker_t;


/* What is on its way to the callback, on the stack of one feed. */

typedef struct {
    dsa_delta_e           what;
    size_t                len;
    char                  data[DSA_PARSE_OUT];
} dsa_parse_out_t;


struct dsa_parse_s {
    dsa_delta_pt          delta;
    void                 *ctx;
    dsa_parse_out_t      *out;
    dsa_parse_state_e     state;
    int                   rc;        /* once not DSA_OK, for ever */
    dsa_parse_state_e     text;      /* the state before the block of calls */
    unsigned              tools:1;
    unsigned              framed:1;  /* the block has its own line */
    unsigned              open:1;    /* a call that has begun */
    unsigned              bare:1;    /* its arguments came as an object */
    uint32_t              calls;
    uint32_t              params;    /* of the open call */
    uint32_t              hold_len;
    uint32_t              tag_len;
    uint32_t              scalar_len;
    char                  hold[DSA_PARSE_HOLD];
    char                  tag[DSA_PARSE_TAG];
    char                  scalar[DSA_PARSE_SCALAR];
};

_Static_assert(sizeof(struct dsa_parse_s) < 6 * 1024,
               "ten thousand of them are open at once");


static void dsa_parse_held(dsa_parse_t *p, char c);
static size_t dsa_parse_find(const dsa_parse_t *p, const char *data,
    size_t len);
static int dsa_parse_match(const dsa_parse_t *p, const char *data,
    size_t len, const dsa_marker_t **marker);
static size_t dsa_parse_take(dsa_parse_t *p, const char *data, size_t len);
static void dsa_parse_byte(dsa_parse_t *p, char c);
static void dsa_parse_marker(dsa_parse_t *p, dsa_marker_e what);
static void dsa_parse_invoke_byte(dsa_parse_t *p, char c);
static int dsa_parse_tag_byte(dsa_parse_t *p, char c);
static size_t dsa_parse_tag_len(const dsa_parse_t *p);
static void dsa_parse_invoke(dsa_parse_t *p);
static void dsa_parse_param(dsa_parse_t *p);
static dsa_str_t dsa_parse_tag_name(const dsa_parse_t *p, int *string);
static void dsa_parse_value_byte(dsa_parse_t *p, char c);
static void dsa_parse_scalar_byte(dsa_parse_t *p, char c);
static void dsa_parse_scalar_end(dsa_parse_t *p);
static int dsa_parse_scalar_valid(dsa_parse_t *p, dsa_str_t text);
static void dsa_parse_close_value(dsa_parse_t *p);
static void dsa_parse_close_call(dsa_parse_t *p);
static void dsa_parse_quote(dsa_parse_t *p, const char *data, size_t len);
static void dsa_parse_emit(dsa_parse_t *p, dsa_delta_e what,
    const char *data, size_t len);
static void dsa_parse_flush(dsa_parse_t *p, size_t len);
static size_t dsa_parse_whole(const char *data, size_t len);


#define dsa_parse_args(p, lit)                                               \
    dsa_parse_emit(p, DSA_DELTA_ARGUMENTS, lit, sizeof(lit) - 1)


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


/* A value may hold anything but this. */

static const dsa_marker_t  dsa_markers_value[] = {
    { DSA_MARKER_PARAM_END, dsa_string(DSML_CLOSE "parameter>") },
    { DSA_MARKER_STRAY, dsa_null_string }
};


/* Calls that are left out: the answer may follow them. */

static const dsa_marker_t  dsa_markers_off[] = {
    { DSA_MARKER_THINK_END, dsa_string(DSA_CONTROL_THINK_END) },
    { DSA_MARKER_PARAM, dsa_string(DSML_OPEN "parameter") },
    { DSA_MARKER_INVOKE, dsa_string(DSML_OPEN "invoke") },
    { DSA_MARKER_INVOKE_END, dsa_string(DSML_CLOSE "invoke>") },
    { DSA_MARKER_CALLS_END, dsa_string(DSML_CLOSE "function_calls>") },
    { DSA_MARKER_STRAY, dsa_null_string }
};


static const dsa_marker_t *const  dsa_markers[] = {
    dsa_markers_text,           /* as dsa_parse_state_e */
    dsa_markers_text,
    dsa_markers_call,
    dsa_markers_call,
    dsa_markers_call,
    dsa_markers_call,
    dsa_markers_call,
    dsa_markers_call,
    dsa_markers_value,
    dsa_markers_value,
    dsa_markers_value,
    dsa_markers_value,
    dsa_markers_value,
    dsa_markers_off,
    NULL
};


dsa_parse_t *
dsa_parse_create(int thinking, int tools, dsa_delta_pt delta, void *ctx)
{
    dsa_parse_t  *p;

    p = calloc(1, sizeof(dsa_parse_t));

    if (p != NULL) {
        p->delta = delta;
        p->ctx = ctx;
        p->tools = tools != 0;
        p->state = thinking ? DSA_STATE_REASONING : DSA_STATE_CONTENT;
        p->text = p->state;
    }

    return p;
}


void
dsa_parse_destroy(dsa_parse_t *p)
{
    free(p);
}


int
dsa_parse_feed(dsa_parse_t *p, dsa_str_t text)
{
    size_t               n;
    dsa_parse_out_t      out;
    const dsa_marker_t  *marker;

    out.len = 0;
    p->out = &out;

    while (text.len != 0 && p->rc == DSA_OK) {

        if (p->hold_len != 0) {
            dsa_parse_held(p, *text.data);
            text.data++;
            text.len--;
            continue;
        }

        n = dsa_parse_find(p, text.data, text.len);

        if (n == 0) {
            switch (dsa_parse_match(p, text.data, text.len, &marker)) {

            case DSA_OK:
                n = marker->text.len;
                dsa_parse_marker(p, marker->what);
                break;

            case DSA_AGAIN:
                n = text.len;
                memcpy(p->hold, text.data, n);
                p->hold_len = n;
                break;

            default:
                n = dsa_parse_take(p, text.data, 1);
                break;
            }

        } else {
            n = dsa_parse_take(p, text.data, n);
        }

        text.data += n;
        text.len -= n;
    }

    dsa_parse_flush(p, out.len);
    p->out = NULL;

    return p->rc;
}


int
dsa_parse_end(dsa_parse_t *p, int complete)
{
    int              mark;
    size_t           i;
    dsa_parse_out_t  out;

    out.len = 0;
    p->out = &out;

    /*
     * What is held is the text's own, unless it went as far as the first
     * letter of DSML: then it is a marker that was cut off.
     */

    mark = memmem(p->hold, p->hold_len, DSA_CONTROL_DSML,
                  sizeof("\xef\xbd\x9c" "D") - 1)
           != NULL;

    if (!complete && dsa_markers[p->state] == dsa_markers_value) {
        mark = 1;
    }

    for (i = 0; !mark && i < p->hold_len; i++) {
        (void) dsa_parse_take(p, &p->hold[i], 1);
    }

    p->hold_len = 0;

    if (complete) {
        dsa_parse_close_value(p);
        dsa_parse_close_call(p);
        p->state = DSA_STATE_DONE;
    }

    dsa_parse_flush(p, out.len);
    p->out = NULL;

    return p->rc;
}


uint32_t
dsa_parse_calls(const dsa_parse_t *p)
{
    return p->calls;
}


int
dsa_parse_in_reasoning(const dsa_parse_t *p)
{
    return p->state == DSA_STATE_REASONING
           || (!p->tools && p->state != DSA_STATE_CONTENT
               && p->text == DSA_STATE_REASONING);
}


/* One more byte behind those that may be a marker. */

static void
dsa_parse_held(dsa_parse_t *p, char c)
{
    size_t               n;
    const dsa_marker_t  *marker;

    p->hold[p->hold_len++] = c;

    while (p->hold_len != 0) {

        switch (dsa_parse_match(p, p->hold, p->hold_len, &marker)) {

        case DSA_OK:
            n = marker->text.len;
            dsa_parse_marker(p, marker->what);
            break;

        case DSA_AGAIN:
            return;

        default:
            n = dsa_parse_take(p, p->hold, 1);
            break;
        }

        p->hold_len -= n;
        memmove(p->hold, p->hold + n, p->hold_len);
    }
}


/* How many bytes there are before one where a marker may begin. */

static size_t
dsa_parse_find(const dsa_parse_t *p, const char *data, size_t len)
{
    size_t       i;
    const char  *lt;

    if (p->state == DSA_STATE_DONE) {
        return len;
    }

    if (p->state != DSA_STATE_REASONING && p->state != DSA_STATE_CONTENT) {
        lt = memchr(data, '<', len);
        return lt != NULL ? (size_t) (lt - data) : len;
    }

    for (i = 0; i < len; i++) {
        if (data[i] == '<' || data[i] == '\n'
            || data[i] == DSA_CONTROL_DSML[0])
        {
            break;
        }
    }

    return i;
}


/* DSA_OK: data begins with a marker; DSA_AGAIN: it may; DSA_ERROR: not. */

static int
dsa_parse_match(const dsa_parse_t *p, const char *data, size_t len,
    const dsa_marker_t **marker)
{
    const dsa_marker_t  *m;

    if (p->state == DSA_STATE_DONE) {
        return DSA_ERROR;
    }

    for (m = dsa_markers[p->state]; m->text.len != 0; m++) {

        if (len < m->text.len) {
            if (memcmp(data, m->text.data, len) == 0) {
                return DSA_AGAIN;
            }

            continue;
        }

        if (memcmp(data, m->text.data, m->text.len) == 0) {
            *marker = m;
            return DSA_OK;
        }
    }

    return DSA_ERROR;
}


/* Text that is no marker.  Returns how much of it was taken, at least one. */

static size_t
dsa_parse_take(dsa_parse_t *p, const char *data, size_t len)
{
    size_t             i;
    dsa_parse_state_e  state;

    state = p->state;

    switch (state) {

    case DSA_STATE_REASONING:
        dsa_parse_emit(p, DSA_DELTA_REASONING, data, len);
        return len;

    case DSA_STATE_CONTENT:
        dsa_parse_emit(p, DSA_DELTA_CONTENT, data, len);
        return len;

    case DSA_STATE_STRING:
        dsa_parse_quote(p, data, len);
        return len;

    case DSA_STATE_BARE:
    case DSA_STATE_JSON:
        dsa_parse_emit(p, DSA_DELTA_ARGUMENTS, data, len);
        return len;

    case DSA_STATE_INVOKE_TAG:
    case DSA_STATE_INVOKE:
    case DSA_STATE_PARAM_TAG:
    case DSA_STATE_VALUE:
    case DSA_STATE_SCALAR:
        for (i = 0; i < len && p->state == state; i++) {
            dsa_parse_byte(p, data[i]);
        }

        return i;

    case DSA_STATE_CALLS:
    case DSA_STATE_INVOKE_SKIP:
    case DSA_STATE_VALUE_SKIP:
    case DSA_STATE_OFF:
    case DSA_STATE_DONE:
    default:
        return len;
    }
}


static void
dsa_parse_byte(dsa_parse_t *p, char c)
{
    switch (p->state) {

    case DSA_STATE_INVOKE_TAG:
        if (dsa_parse_tag_byte(p, c)) {
            dsa_parse_invoke(p);
        }

        break;

    case DSA_STATE_PARAM_TAG:
        if (dsa_parse_tag_byte(p, c)) {
            dsa_parse_param(p);
        }

        break;

    case DSA_STATE_INVOKE:
        dsa_parse_invoke_byte(p, c);
        break;

    case DSA_STATE_VALUE:
        dsa_parse_value_byte(p, c);
        break;

    default:
        dsa_parse_scalar_byte(p, c);
        break;
    }
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
        dsa_parse_close_call(p);
        p->state = p->tools ? DSA_STATE_DONE : p->text;
        break;

    case DSA_MARKER_INVOKE:
        dsa_parse_close_call(p);
        p->tag_len = 0;
        p->state = p->tools ? DSA_STATE_INVOKE_TAG : DSA_STATE_OFF;
        break;

    case DSA_MARKER_INVOKE_END:
        dsa_parse_close_call(p);
        p->state = p->tools ? DSA_STATE_CALLS
                   : p->framed ? DSA_STATE_OFF : p->text;
        break;

    case DSA_MARKER_PARAM:
        p->tag_len = 0;
        p->state = p->open && !p->bare ? DSA_STATE_PARAM_TAG
                                       : DSA_STATE_VALUE_SKIP;
        break;

    case DSA_MARKER_PARAM_END:
        dsa_parse_close_value(p);
        p->state = !p->tools ? DSA_STATE_OFF
                   : p->open ? DSA_STATE_INVOKE : DSA_STATE_INVOKE_SKIP;
        break;
    }
}


/*
 * Between parameters there is nothing but blanks, unless the model wrote its
 * arguments as one object; that one is passed on.
 */

static void
dsa_parse_invoke_byte(dsa_parse_t *p, char c)
{
    if (c == '{' && p->params == 0 && !p->bare) {
        p->bare = 1;
        p->state = DSA_STATE_BARE;
        dsa_parse_args(p, "{");
    }
}


/*
 * A tag ends at a > behind a quote, or at any when there was no quote yet: a
 * name may hold both.  1: it has ended.  Of one that is too long only the
 * beginning and the last byte are kept; by its length it is known.
 */

static int
dsa_parse_tag_byte(dsa_parse_t *p, char c)
{
    size_t  n;

    if (c == '>') {
        n = dsa_parse_tag_len(p);

        if (n == 0 || p->tag[n - 1] == '"'
            || memchr(p->tag, '"', n) == NULL)
        {
            return 1;
        }
    }

    if (p->tag_len == DSA_PARSE_TAG) {
        p->tag[DSA_PARSE_TAG - 1] = c;

    } else {
        p->tag[p->tag_len++] = c;
    }

    return 0;
}


/* Without blanks at the end. */

static size_t
dsa_parse_tag_len(const dsa_parse_t *p)
{
    size_t  n;

    for (n = p->tag_len; n != 0; n--) {
        if (p->tag[n - 1] != ' ' && p->tag[n - 1] != '\n') {
            break;
        }
    }

    return n;
}


static void
dsa_parse_invoke(dsa_parse_t *p)
{
    int        string;
    dsa_str_t  name;

    name = dsa_parse_tag_name(p, &string);

    if (name.len == 0 || p->calls == DSA_PARSE_CALLS) {
        p->state = DSA_STATE_INVOKE_SKIP;
        return;
    }

    dsa_parse_flush(p, p->out->len);

    p->calls++;
    p->open = 1;
    p->bare = 0;
    p->params = 0;
    p->state = DSA_STATE_INVOKE;

    if (p->rc == DSA_OK) {
        p->rc = p->delta(p->ctx, DSA_DELTA_CALL, p->calls - 1, name);
    }
}


static void
dsa_parse_param(dsa_parse_t *p)
{
    int        string;
    dsa_str_t  name;

    name = dsa_parse_tag_name(p, &string);

    if (name.data == NULL) {
        p->state = DSA_STATE_VALUE_SKIP;
        return;
    }

    if (p->params++ == 0) {
        dsa_parse_args(p, "{\"");

    } else {
        dsa_parse_args(p, ", \"");
    }

    dsa_parse_quote(p, name.data, name.len);

    if (string) {
        dsa_parse_args(p, "\": \"");
        p->state = DSA_STATE_STRING;

    } else {
        dsa_parse_args(p, "\": ");
        p->scalar_len = 0;
        p->state = DSA_STATE_VALUE;
    }
}


/*
 * The attributes: name="NAME" and, of a parameter, string="true|false".  A
 * null string when there is no name or one that is too long.
 */

static dsa_str_t
dsa_parse_tag_name(const dsa_parse_t *p, int *string)
{
    size_t       i;
    dsa_str_t    tag;
    const char  *name;

    static const dsa_str_t  types[] = {
        dsa_string("\" string=\"true\""),
        dsa_string("\" string=\"false\""),
        dsa_string("\"")
    };

    tag = dsa_str(p->tag, dsa_parse_tag_len(p));
    *string = 0;

    if (p->tag_len == DSA_PARSE_TAG) {
        return dsa_str(NULL, 0);
    }

    name = memmem(tag.data, tag.len, "name=\"", 6);
    if (name == NULL) {
        return dsa_str(NULL, 0);
    }

    name += 6;
    tag = dsa_str(name, tag.len - (name - tag.data));

    for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (tag.len >= types[i].len
            && memcmp(tag.data + tag.len - types[i].len, types[i].data,
                      types[i].len)
               == 0)
        {
            *string = i == 0;
            tag.len -= types[i].len;

            return tag.len <= DSA_PARSE_NAME ? tag : dsa_str(NULL, 0);
        }
    }

    return dsa_str(NULL, 0);
}


static void
dsa_parse_value_byte(dsa_parse_t *p, char c)
{
    switch (c) {

    case ' ':
    case '\t':
    case '\n':
    case '\r':

        /* dsa_parse_scalar_end() may need the bytes as they were */

        dsa_parse_scalar_byte(p, c);
        return;

    case '{':
    case '[':
        p->scalar_len = 0;
        p->state = DSA_STATE_JSON;
        dsa_parse_emit(p, DSA_DELTA_ARGUMENTS, &c, 1);
        return;

    default:
        p->state = DSA_STATE_SCALAR;
        dsa_parse_scalar_byte(p, c);
        return;
    }
}


static void
dsa_parse_scalar_byte(dsa_parse_t *p, char c)
{
    if (p->scalar_len < DSA_PARSE_SCALAR) {
        p->scalar[p->scalar_len++] = c;
        return;
    }

    /* too long to be checked */

    dsa_parse_args(p, "\"");
    dsa_parse_quote(p, p->scalar, p->scalar_len);
    dsa_parse_quote(p, &c, 1);
    p->state = DSA_STATE_STRING;
}


static void
dsa_parse_scalar_end(dsa_parse_t *p)
{
    int        valid;
    dsa_str_t  text;

    text = dsa_str(p->scalar, p->scalar_len);
    valid = dsa_parse_scalar_valid(p, text);

    if (valid) {
        dsa_parse_emit(p, DSA_DELTA_ARGUMENTS, text.data, text.len);

    } else {
        dsa_parse_args(p, "\"");
        dsa_parse_quote(p, text.data, text.len);
        dsa_parse_args(p, "\"");
    }
}


static int
dsa_parse_scalar_valid(dsa_parse_t *p, dsa_str_t text)
{
    int          valid;
    yajl_handle  yajl;

    if (text.len == 0) {
        return 0;
    }

    yajl = yajl_alloc(NULL, NULL, NULL);

    if (yajl == NULL) {
        p->rc = DSA_ERROR;
        return 0;
    }

    valid = yajl_parse(yajl, (const unsigned char *) text.data, text.len)
            == yajl_status_ok
            && yajl_complete_parse(yajl) == yajl_status_ok;

    yajl_free(yajl);

    return valid;
}


static void
dsa_parse_close_value(dsa_parse_t *p)
{
    switch (p->state) {

    case DSA_STATE_STRING:
        dsa_parse_args(p, "\"");
        break;

    case DSA_STATE_VALUE:
    case DSA_STATE_SCALAR:
        dsa_parse_scalar_end(p);
        break;

    default:
        break;
    }
}


static void
dsa_parse_close_call(dsa_parse_t *p)
{
    if (!p->open) {
        return;
    }

    p->open = 0;

    if (p->params != 0) {
        dsa_parse_args(p, "}");

    } else if (!p->bare) {
        dsa_parse_args(p, "{}");
    }
}


/*
 * The inside of a JSON string, as json.dumps(ensure_ascii=False) has it.  Not
 * dsa_json_escape(): its buffer grows by allocation, and there are thousands
 * of parsers.
 */

static void
dsa_parse_quote(dsa_parse_t *p, const char *data, size_t len)
{
    int            n;
    char           u[8];
    size_t         i, from;
    unsigned char  c;

    static const char  escapes[] = "\"\"\\\\\nn\rr\tt\bb\ff";
    const char        *esc;

    from = 0;

    for (i = 0; i < len; i++) {
        c = data[i];

        if (c >= 0x20 && c != '"' && c != '\\') {
            continue;
        }

        dsa_parse_emit(p, DSA_DELTA_ARGUMENTS, data + from, i - from);
        from = i + 1;

        for (esc = escapes; *esc != '\0'; esc += 2) {
            if (*esc == (char) c) {
                break;
            }
        }

        n = *esc != '\0' ? snprintf(u, sizeof(u), "\\%c", esc[1])
                         : snprintf(u, sizeof(u), "\\u%04x", c);

        dsa_parse_emit(p, DSA_DELTA_ARGUMENTS, u, n);
    }

    dsa_parse_emit(p, DSA_DELTA_ARGUMENTS, data + from, len - from);
}


/* Gathered, so that a feed makes few and long deltas. */

static void
dsa_parse_emit(dsa_parse_t *p, dsa_delta_e what, const char *data, size_t len)
{
    size_t            n;
    dsa_parse_out_t  *out;

    out = p->out;

    if (out->len != 0 && out->what != what) {
        dsa_parse_flush(p, out->len);
    }

    out->what = what;

    while (len != 0) {
        n = DSA_PARSE_OUT - out->len;

        if (n == 0) {
            dsa_parse_flush(p, dsa_parse_whole(out->data, out->len));
            continue;
        }

        if (n > len) {
            n = len;
        }

        memcpy(out->data + out->len, data, n);
        out->len += n;
        data += n;
        len -= n;
    }
}


/* The first len bytes go out. */

static void
dsa_parse_flush(dsa_parse_t *p, size_t len)
{
    uint32_t          call;
    dsa_parse_out_t  *out;

    out = p->out;

    if (len == 0) {
        return;
    }

    if (p->rc == DSA_OK) {
        call = out->what == DSA_DELTA_ARGUMENTS ? p->calls - 1 : 0;
        p->rc = p->delta(p->ctx, out->what, call, dsa_str(out->data, len));
    }

    out->len -= len;
    memmove(out->data, out->data + len, out->len);
}


/* Without the beginning of a character that lacks its end. */

static size_t
dsa_parse_whole(const char *data, size_t len)
{
    size_t         n;
    unsigned char  c;

    for (n = 1; n <= 3; n++) {
        c = data[len - n];

        if (c >= 0xc0) {
            return c >= 0xf0 || (c >= 0xe0 && n < 3) || n < 2 ? len - n : len;
        }

        if (c < 0x80) {
            break;
        }
    }

    return len;
}
