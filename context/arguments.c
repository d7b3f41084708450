
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "context/arguments.h"


static int dsa_arguments_key(dsa_arguments_t *a, dsa_str_t *key);
static void dsa_arguments_value(dsa_arguments_t *a, dsa_argument_t *arg);
static int dsa_arguments_string(dsa_arguments_t *a, dsa_str_t *inside);
static void dsa_arguments_blanks(dsa_arguments_t *a);


void
dsa_arguments_start(dsa_arguments_t *a, dsa_str_t text)
{
    a->p = text.data;
    a->end = text.data + text.len;
    a->begun = 0;
}


int
dsa_arguments_next(dsa_arguments_t *a, dsa_argument_t *arg)
{
    dsa_arguments_blanks(a);

    if (a->p == a->end) {
        return a->begun ? 0 : DSA_ERROR;
    }

    if (a->begun && *a->p == '}') {
        a->p++;
        dsa_arguments_blanks(a);

        return a->p == a->end ? 0 : DSA_ERROR;
    }

    if (*a->p++ != (a->begun ? ',' : '{')) {
        return DSA_ERROR;
    }

    dsa_arguments_blanks(a);

    if (a->begun && a->p == a->end) {
        return 0;
    }

    a->begun = 1;

    if (dsa_arguments_key(a, &arg->key) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_arguments_value(a, arg);

    return 1;
}


/* Reads a name, its colon, and the one blank that usually follows it. */

static int
dsa_arguments_key(dsa_arguments_t *a, dsa_str_t *key)
{
    if (a->p == a->end || *a->p != '"'
        || dsa_arguments_string(a, key) != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_arguments_blanks(a);

    if (a->p == a->end || *a->p++ != ':') {
        return DSA_ERROR;
    }

    if (a->p != a->end && *a->p == ' ') {
        a->p++;
    }

    return DSA_OK;
}


static void
dsa_arguments_value(dsa_arguments_t *a, dsa_argument_t *arg)
{
    size_t       depth;
    dsa_str_t    inside;
    const char  *start;

    start = a->p;
    arg->string = 0;

    if (a->p != a->end && *a->p == '"') {
        (void) dsa_arguments_string(a, &arg->value);

        arg->string = 1;
        arg->json = dsa_str(start, a->p - start);

        return;
    }

    depth = 0;

    while (a->p != a->end) {

        if (*a->p == '"') {
            (void) dsa_arguments_string(a, &inside);
            continue;
        }

        if (*a->p == '[' || *a->p == '{') {
            depth++;

        } else if (depth != 0) {
            depth -= *a->p == ']' || *a->p == '}';

        } else if (*a->p == ',' || *a->p == '}') {
            break;
        }

        a->p++;
    }

    arg->json = dsa_str(start, a->p - start);
    arg->value = arg->json;
}


/* Reads a string from its quote on.  DSA_ERROR: the text ends within it. */

static int
dsa_arguments_string(dsa_arguments_t *a, dsa_str_t *inside)
{
    const char  *start;

    start = ++a->p;

    while (a->p != a->end && *a->p != '"') {
        a->p += *a->p == '\\' && a->p + 1 != a->end ? 2 : 1;
    }

    *inside = dsa_str(start, a->p - start);

    if (a->p == a->end) {
        return DSA_ERROR;
    }

    a->p++;

    return DSA_OK;
}


static void
dsa_arguments_blanks(dsa_arguments_t *a)
{
    while (a->p != a->end
           && (*a->p == ' ' || *a->p == '\t' || *a->p == '\n'
               || *a->p == '\r'))
    {
        a->p++;
    }
}
