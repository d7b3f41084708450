
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "base/json.h"
#include "base/json_write.h"
#include "context/tool_input.h"
#include "context/tool_name.h"


typedef enum {
    DSA_TOOL_INPUT_BEGIN = 0,
    DSA_TOOL_INPUT_TEXT,
    DSA_TOOL_INPUT_END,             /* the text has ended */
    DSA_TOOL_INPUT_RAW              /* the arguments are of another form */
} dsa_tool_input_e;


static uint32_t dsa_tool_input_begin(dsa_tool_input_t *t, dsa_str_t piece,
    dsa_buf_t *out);
static uint32_t dsa_tool_input_text(dsa_tool_input_t *t, dsa_str_t piece,
    dsa_buf_t *out);
static uint32_t dsa_tool_input_escape(dsa_tool_input_t *t, char c,
    dsa_buf_t *out);
static int dsa_tool_input_open(const char *escape, uint32_t n);


/* As dsa_call_param() in call.c writes it. */

static const char  dsa_tool_input_before[] = "{\"" DSA_TOOL_INPUT "\": \"";


void
dsa_tool_input(dsa_tool_input_t *t, dsa_str_t piece, dsa_buf_t *out)
{
    uint32_t  n;

    while (piece.len != 0) {

        switch ((dsa_tool_input_e) t->state) {

        case DSA_TOOL_INPUT_BEGIN:
            n = dsa_tool_input_begin(t, piece, out);
            break;

        case DSA_TOOL_INPUT_TEXT:
            n = dsa_tool_input_text(t, piece, out);
            break;

        case DSA_TOOL_INPUT_RAW:
            dsa_json_escape(out, piece);
            return;

        case DSA_TOOL_INPUT_END:
        default:
            return;
        }

        piece = dsa_str(piece.data + n, piece.len - n);
    }
}


/* These return how many bytes of the piece they have used. */

static uint32_t
dsa_tool_input_begin(dsa_tool_input_t *t, dsa_str_t piece, dsa_buf_t *out)
{
    if (piece.data[0] != dsa_tool_input_before[t->matched]) {
        t->state = DSA_TOOL_INPUT_RAW;
        dsa_json_escape(out, dsa_str(dsa_tool_input_before, t->matched));
        return 0;
    }

    if (++t->matched == sizeof(dsa_tool_input_before) - 1) {
        t->state = DSA_TOOL_INPUT_TEXT;
    }

    return 1;
}


static uint32_t
dsa_tool_input_text(dsa_tool_input_t *t, dsa_str_t piece, dsa_buf_t *out)
{
    size_t  n;

    if (t->n_held != 0) {
        return dsa_tool_input_escape(t, piece.data[0], out);
    }

    if (piece.data[0] == '"') {
        t->state = DSA_TOOL_INPUT_END;
        return 1;
    }

    if (piece.data[0] == '\\') {
        t->held[t->n_held++] = '\\';
        return 1;
    }

    for (n = 1; n < piece.len && n < UINT32_MAX; n++) {
        if (piece.data[n] == '"' || piece.data[n] == '\\') {
            break;
        }
    }

    dsa_json_escape(out, dsa_str(piece.data, n));

    return (uint32_t) n;
}


/*
 * Adds a byte to the escape that is held, and appends it when it is complete.
 * The first half of a surrogate pair is complete with the second one.
 */

static uint32_t
dsa_tool_input_escape(dsa_tool_input_t *t, char c, dsa_buf_t *out)
{
    uint32_t   used;
    dsa_buf_t  text;

    used = 0;

    if (t->n_held != 6 || c == '\\') {
        t->held[t->n_held++] = c;
        used = 1;

        if (dsa_tool_input_open(t->held, t->n_held)) {
            return used;
        }
    }

    /* half a pair does not encode a character: it is appended as written */

    memset(&text, 0, sizeof(dsa_buf_t));

    if (dsa_json_unescape(&text, dsa_str(t->held, t->n_held)) == DSA_OK) {
        dsa_json_escape(out, dsa_str(text.data, text.len));

    } else {
        dsa_json_escape(out, dsa_str(t->held, t->n_held));
    }

    if (text.failed) {
        out->failed = 1;
    }

    dsa_buf_free(&text);
    t->n_held = 0;

    return used;
}


/* 1: bytes are missing at the end of the n > 1 bytes of an escape. */

static int
dsa_tool_input_open(const char *escape, uint32_t n)
{
    if (n < 6) {
        return escape[1] == 'u';
    }

    if (n > 7) {
        return escape[7] == 'u' && n < 12;
    }

    if (n == 7) {
        return 1;
    }

    /* the first half of a pair */

    return (escape[2] == 'd' || escape[2] == 'D')
           && (escape[3] == '8' || escape[3] == '9'
               || escape[3] == 'a' || escape[3] == 'b'
               || escape[3] == 'A' || escape[3] == 'B');
}
