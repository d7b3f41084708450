
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>

#include "context/marker.h"


static int dsa_marker_match(const dsa_marker_t *m, const dsa_hold_t *h,
    size_t *n);
static int dsa_marker_match_bytes(const dsa_hold_t *h, size_t *n,
    dsa_str_t text);
static void dsa_hold_add(dsa_hold_t *h, uint16_t symbol);
static void dsa_hold_remove(dsa_hold_t *h, size_t n);


void
dsa_hold_init(dsa_hold_t *h, const dsa_control_tokens_t *tokens,
    uint32_t vocabulary)
{
    h->tokens = tokens;
    h->vocabulary = vocabulary;
}


void
dsa_hold_byte(dsa_hold_t *h, char c)
{
    dsa_hold_add(h, (unsigned char) c);
}


void
dsa_hold_control(dsa_hold_t *h, uint32_t token)
{
    assert(token < h->tokens->n && (h->vocabulary >> token & 1) != 0);

    dsa_hold_add(h, DSA_HOLD_CONTROL + token);
}


int
dsa_hold_match(dsa_hold_t *h, const dsa_marker_t *list, int *what)
{
    int                  rc;
    size_t               n;
    const dsa_marker_t  *m;

    for (m = list; m->control != DSA_MARKER_NONE; m++) {
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
        return h->tokens->elts[symbol - DSA_HOLD_CONTROL].name;
    }

    *c = (char) symbol;

    return dsa_str(c, 1);
}


int
dsa_hold_has(const dsa_hold_t *h, uint32_t token, size_t bytes)
{
    size_t     i, n;
    dsa_str_t  name;

    name = dsa_str(h->tokens->elts[token].name.data, bytes);

    for (i = 0; i < h->len; i++) {
        n = i;

        if (h->symbols[i] == DSA_HOLD_CONTROL + token
            || dsa_marker_match_bytes(h, &n, name) == DSA_OK)
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
        rc = dsa_marker_match_bytes(h, n, h->tokens->elts[m->control].name);

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
