
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_write.h"


static void dsa_json_open(dsa_json_writer_t *w, const char *bracket);
static void dsa_json_close(dsa_json_writer_t *w, const char *bracket);
static void dsa_json_literal(dsa_json_writer_t *w, const char *text,
    size_t len);
static void dsa_json_dump_float(dsa_buf_t *b, double value);


void
dsa_json_writer(dsa_json_writer_t *w, dsa_buf_t *out)
{
    w->out = out;
    w->comma = 0;
}


void
dsa_json_object(dsa_json_writer_t *w)
{
    dsa_json_open(w, "{");
}


void
dsa_json_object_end(dsa_json_writer_t *w)
{
    dsa_json_close(w, "}");
}


void
dsa_json_array(dsa_json_writer_t *w)
{
    dsa_json_open(w, "[");
}


void
dsa_json_array_end(dsa_json_writer_t *w)
{
    dsa_json_close(w, "]");
}


void
dsa_json_key(dsa_json_writer_t *w, const char *name)
{
    dsa_buf_addz(w->out, w->comma ? ",\"" : "\"");
    dsa_buf_addz(w->out, name);
    dsa_buf_add(w->out, "\":", 2);

    w->comma = 0;
}


void
dsa_json_string(dsa_json_writer_t *w, dsa_str_t text)
{
    dsa_json_string_begin(w);
    dsa_json_escape(w->out, text);
    dsa_json_string_end(w);
}


void
dsa_json_stringz(dsa_json_writer_t *w, const char *text)
{
    dsa_json_string(w, dsa_strz(text));
}


void
dsa_json_uint(dsa_json_writer_t *w, uint64_t value)
{
    char  *p, text[20];

    p = text + sizeof(text);

    do {
        *--p = (char) ('0' + value % 10);
        value /= 10;
    } while (value != 0);

    dsa_json_literal(w, p, (size_t) (text + sizeof(text) - p));
}


void
dsa_json_bool(dsa_json_writer_t *w, int value)
{
    if (value) {
        dsa_json_literal(w, "true", 4);

    } else {
        dsa_json_literal(w, "false", 5);
    }
}


void
dsa_json_null(dsa_json_writer_t *w)
{
    dsa_json_literal(w, "null", 4);
}


void
dsa_json_raw(dsa_json_writer_t *w, dsa_str_t json)
{
    dsa_json_literal(w, json.data, json.len);
}


void
dsa_json_value(dsa_json_writer_t *w, const dsa_json_t *v)
{
    const dsa_json_t  *child;

    switch (v->type) {

    case DSA_JSON_NULL:
        dsa_json_null(w);
        return;

    case DSA_JSON_FALSE:
    case DSA_JSON_TRUE:
        dsa_json_bool(w, v->type == DSA_JSON_TRUE);
        return;

    case DSA_JSON_INTEGER:
    case DSA_JSON_FLOAT:
        dsa_json_raw(w, v->text);
        return;

    case DSA_JSON_STRING:
        dsa_json_string(w, v->text);
        return;

    case DSA_JSON_ARRAY:
        dsa_json_array(w);

        for (child = v->first; child != NULL; child = child->next) {
            dsa_json_value(w, child);
        }

        dsa_json_array_end(w);
        return;

    case DSA_JSON_OBJECT:
        dsa_json_object(w);

        for (child = v->first; child != NULL; child = child->next) {

            /* dsa_json_key() does not escape */

            dsa_json_string(w, child->key);
            dsa_buf_addz(w->out, ":");
            w->comma = 0;
            dsa_json_value(w, child);
        }

        dsa_json_object_end(w);
        return;
    }
}


void
dsa_json_string_begin(dsa_json_writer_t *w)
{
    dsa_json_open(w, "\"");
}


void
dsa_json_string_end(dsa_json_writer_t *w)
{
    dsa_json_close(w, "\"");
}


static void
dsa_json_open(dsa_json_writer_t *w, const char *bracket)
{
    if (w->comma) {
        dsa_buf_add(w->out, ",", 1);
    }

    dsa_buf_add(w->out, bracket, 1);
    w->comma = 0;
}


static void
dsa_json_close(dsa_json_writer_t *w, const char *bracket)
{
    dsa_buf_add(w->out, bracket, 1);
    w->comma = 1;
}


static void
dsa_json_literal(dsa_json_writer_t *w, const char *text, size_t len)
{
    if (w->comma) {
        dsa_buf_add(w->out, ",", 1);
    }

    dsa_buf_add(w->out, text, len);
    w->comma = 1;
}


/* The JSON reader has bounded the depth of this recursion. */

int
dsa_json_dump(dsa_buf_t *b, const dsa_json_t *v)
{
    double             d;
    const dsa_json_t  *child;

    switch (v->type) {

    case DSA_JSON_NULL:
        dsa_buf_addz(b, "null");
        break;

    case DSA_JSON_FALSE:
        dsa_buf_addz(b, "false");
        break;

    case DSA_JSON_TRUE:
        dsa_buf_addz(b, "true");
        break;

    case DSA_JSON_INTEGER:
        if (dsa_str_eqz(v->text, "-0")) {
            dsa_buf_addz(b, "0");
            break;
        }

        dsa_buf_add(b, v->text.data, v->text.len);
        break;

    case DSA_JSON_FLOAT:
        if (dsa_json_double(v, &d) != DSA_OK) {
            return DSA_ERROR;
        }

        dsa_json_dump_float(b, d);
        break;

    case DSA_JSON_STRING:
        dsa_buf_addz(b, "\"");
        dsa_json_escape(b, v->text);
        dsa_buf_addz(b, "\"");
        break;

    case DSA_JSON_ARRAY:
    case DSA_JSON_OBJECT:
        dsa_buf_addz(b, v->type == DSA_JSON_ARRAY ? "[" : "{");

        for (child = v->first; child != NULL; child = child->next) {
            if (v->type == DSA_JSON_OBJECT) {
                dsa_buf_addz(b, "\"");
                dsa_json_escape(b, child->key);
                dsa_buf_addz(b, "\": ");
            }

            if (dsa_json_dump(b, child) != DSA_OK) {
                return DSA_ERROR;
            }

            if (child->next != NULL) {
                dsa_buf_addz(b, ", ");
            }
        }

        dsa_buf_addz(b, v->type == DSA_JSON_ARRAY ? "]" : "}");
        break;
    }

    return DSA_OK;
}


/* Python's repr(): the fewest digits that read back as the same double. */

static void
dsa_json_dump_float(dsa_buf_t *b, double value)
{
    int    n, exponent, digits, i;
    char   text[40], number[24], *e;

    for (digits = 0; digits < 17; digits++) {
        (void) snprintf(text, sizeof(text), "%.*e", digits, value);

        if (strtod(text, NULL) == value) {
            break;
        }
    }

    e = strchr(text, 'e');
    exponent = atoi(e + 1);
    *e = '\0';

    if (text[0] == '-') {
        dsa_buf_addz(b, "-");
    }

    for (n = 0, e = text; *e != '\0'; e++) {
        if (*e >= '0' && *e <= '9') {
            number[n++] = *e;
        }
    }

    if (exponent < -4 || exponent >= 16) {
        dsa_buf_add(b, number, 1);

        if (n > 1) {
            dsa_buf_addz(b, ".");
            dsa_buf_add(b, number + 1, n - 1);
        }

        dsa_buf_printf(b, "e%c%02d", exponent < 0 ? '-' : '+',
                       abs(exponent));
        return;
    }

    if (exponent < 0) {
        dsa_buf_addz(b, "0.");

        for (i = -1; i > exponent; i--) {
            dsa_buf_addz(b, "0");
        }

        dsa_buf_add(b, number, n);
        return;
    }

    for (i = 0; i <= exponent; i++) {
        dsa_buf_add(b, i < n ? &number[i] : "0", 1);
    }

    dsa_buf_addz(b, ".");

    if (n > exponent + 1) {
        dsa_buf_add(b, number + exponent + 1, n - exponent - 1);

    } else {
        dsa_buf_addz(b, "0");
    }
}


void
dsa_json_escape(dsa_buf_t *b, dsa_str_t s)
{
    char                  u[7];
    size_t                i, from;
    const char           *esc;
    const unsigned char  *p = (const unsigned char *) s.data;

    from = 0;

    for (i = 0; i < s.len; i++) {
        if (p[i] >= 0x20 && p[i] != '"' && p[i] != '\\') {
            continue;
        }

        switch (p[i]) {
        case '"':
            esc = "\\\"";
            break;
        case '\\':
            esc = "\\\\";
            break;
        case '\n':
            esc = "\\n";
            break;
        case '\r':
            esc = "\\r";
            break;
        case '\t':
            esc = "\\t";
            break;
        case '\b':
            esc = "\\b";
            break;
        case '\f':
            esc = "\\f";
            break;
        default:
            (void) snprintf(u, sizeof(u), "\\u%04x", p[i]);
            esc = u;
            break;
        }

        dsa_buf_add(b, s.data + from, i - from);
        dsa_buf_addz(b, esc);
        from = i + 1;
    }

    if (from < s.len) {
        dsa_buf_add(b, s.data + from, s.len - from);
    }
}
