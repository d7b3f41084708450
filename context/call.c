
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <yajl/yajl_parse.h>

#include "context/call.h"


static void dsa_call_value_byte(dsa_call_t *c, dsa_deltas_t *d, char byte);
static void dsa_call_scalar_end(dsa_call_t *c, dsa_deltas_t *d);
static int dsa_call_scalar_valid(const dsa_call_t *c, dsa_deltas_t *d);


void
dsa_call_free(dsa_call_t *c)
{
    dsa_buf_free(&c->scalar);
}


void
dsa_call_start(dsa_call_t *c, dsa_deltas_t *d, dsa_str_t name)
{
    c->open = 1;
    c->bare = 0;
    c->params = 0;

    dsa_deltas_call(d, name);
}


void
dsa_call_finish(dsa_call_t *c, dsa_deltas_t *d)
{
    if (!c->open) {
        return;
    }

    c->open = 0;

    if (c->params != 0) {
        dsa_deltas_arguments(d, "}");

    } else if (!c->bare) {
        dsa_deltas_arguments(d, "{}");
    }
}


int
dsa_call_bare(dsa_call_t *c, dsa_deltas_t *d, const char *data, size_t len,
    size_t *n)
{
    const char  *brace;

    brace = c->params == 0 && !c->bare ? memchr(data, '{', len) : NULL;

    if (brace == NULL) {
        return 0;
    }

    c->bare = 1;
    *n = (size_t) (brace - data) + 1;
    dsa_deltas_arguments(d, "{");

    return 1;
}


void
dsa_call_param(dsa_call_t *c, dsa_deltas_t *d, dsa_str_t name, int string)
{
    c->value = DSA_VALUE_SKIP;

    if (name.data == NULL) {
        return;
    }

    if (c->params++ == 0) {
        dsa_deltas_arguments(d, "{\"");

    } else {
        dsa_deltas_arguments(d, ", \"");
    }

    dsa_deltas_escape(d, name.data, name.len);

    if (string) {
        dsa_deltas_arguments(d, "\": \"");
        c->value = DSA_VALUE_STRING;

    } else {
        dsa_deltas_arguments(d, "\": ");
        c->value = DSA_VALUE_BEGIN;
        c->scalar.len = 0;
    }
}


void
dsa_call_value(dsa_call_t *c, dsa_deltas_t *d, const char *data, size_t len)
{
    while (len != 0) {

        switch (c->value) {

        case DSA_VALUE_SKIP:
            return;

        case DSA_VALUE_STRING:
            dsa_deltas_escape(d, data, len);
            return;

        case DSA_VALUE_JSON:
            dsa_deltas_add(d, DSA_DELTA_ARGUMENTS, data, len);
            return;

        case DSA_VALUE_BEGIN:
        case DSA_VALUE_SCALAR:
            dsa_call_value_byte(c, d, *data++);
            len--;
            break;
        }
    }
}


void
dsa_call_value_end(dsa_call_t *c, dsa_deltas_t *d)
{
    switch (c->value) {

    case DSA_VALUE_STRING:
        dsa_deltas_arguments(d, "\"");
        break;

    case DSA_VALUE_BEGIN:
    case DSA_VALUE_SCALAR:
        dsa_call_scalar_end(c, d);
        break;

    case DSA_VALUE_SKIP:
    case DSA_VALUE_JSON:
        break;
    }

    c->value = DSA_VALUE_SKIP;
    dsa_buf_free(&c->scalar);
}


static void
dsa_call_value_byte(dsa_call_t *c, dsa_deltas_t *d, char byte)
{
    if (c->value == DSA_VALUE_BEGIN && (byte == '{' || byte == '[')) {
        c->value = DSA_VALUE_JSON;
        dsa_deltas_add(d, DSA_DELTA_ARGUMENTS, &byte, 1);
        return;
    }

    if (byte != ' ' && byte != '\t' && byte != '\n' && byte != '\r') {
        c->value = DSA_VALUE_SCALAR;
    }

    /* blanks in front are kept, because the value may turn out a string */

    if (c->scalar.len < DSA_PARSE_SCALAR) {
        dsa_buf_add(&c->scalar, &byte, 1);

        if (c->scalar.failed) {
            d->rc = DSA_ERROR;
        }

        return;
    }

    /* a value that is too long to be checked becomes a string */

    c->value = DSA_VALUE_STRING;
    dsa_deltas_arguments(d, "\"");
    dsa_deltas_escape(d, c->scalar.data, c->scalar.len);
    dsa_deltas_escape(d, &byte, 1);
}


static void
dsa_call_scalar_end(dsa_call_t *c, dsa_deltas_t *d)
{
    if (dsa_call_scalar_valid(c, d)) {
        dsa_deltas_add(d, DSA_DELTA_ARGUMENTS, c->scalar.data, c->scalar.len);
        return;
    }

    dsa_deltas_arguments(d, "\"");
    dsa_deltas_escape(d, c->scalar.data, c->scalar.len);
    dsa_deltas_arguments(d, "\"");
}


/* Returns 1 if the scalar is one JSON value. */

static int
dsa_call_scalar_valid(const dsa_call_t *c, dsa_deltas_t *d)
{
    int          valid;
    yajl_handle  yajl;

    if (c->scalar.len == 0) {
        return 0;
    }

    yajl = yajl_alloc(NULL, NULL, NULL);

    if (yajl == NULL) {
        d->rc = DSA_ERROR;
        return 0;
    }

    valid = yajl_parse(yajl, (const unsigned char *) c->scalar.data,
                       c->scalar.len)
            == yajl_status_ok
            && yajl_complete_parse(yajl) == yajl_status_ok;

    yajl_free(yajl);

    return valid;
}
