
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>

#include "context/marker.h"


static int dsa_marker_match(const dsa_marker_t *m, const dsa_pending_t *p,
    size_t *n);
static int dsa_marker_match_bytes(const dsa_pending_t *p, size_t *n,
    dsa_str_t text);
static void dsa_pending_add(dsa_pending_t *p, uint16_t symbol);
static void dsa_pending_remove(dsa_pending_t *p, size_t n);


void
dsa_pending_init(dsa_pending_t *p, const dsa_control_tokens_t *tokens,
    uint32_t vocabulary)
{
    p->tokens = tokens;
    p->vocabulary = vocabulary;
}


void
dsa_pending_byte(dsa_pending_t *p, char c)
{
    dsa_pending_add(p, (unsigned char) c);
}


void
dsa_pending_control(dsa_pending_t *p, uint32_t token)
{
    assert(token < p->tokens->n && (p->vocabulary >> token & 1) != 0);

    dsa_pending_add(p, DSA_PENDING_CONTROL + token);
}


int
dsa_pending_match(dsa_pending_t *p, const dsa_marker_t *list, int *what)
{
    int                  rc;
    size_t               n;
    const dsa_marker_t  *m;

    for (m = list; m->control != DSA_MARKER_NONE; m++) {
        n = 0;
        rc = dsa_marker_match(m, p, &n);

        if (rc == DSA_OK) {
            *what = m->what;
            dsa_pending_remove(p, n);
        }

        if (rc != DSA_ERROR) {
            return rc;
        }
    }

    return DSA_ERROR;
}


dsa_str_t
dsa_pending_release(dsa_pending_t *p, char *c)
{
    uint16_t  symbol;

    symbol = p->symbols[0];
    dsa_pending_remove(p, 1);

    if (symbol >= DSA_PENDING_CONTROL) {
        return p->tokens->elts[symbol - DSA_PENDING_CONTROL].name;
    }

    *c = (char) symbol;

    return dsa_str(c, 1);
}


int
dsa_pending_has(const dsa_pending_t *p, uint32_t token, size_t bytes)
{
    size_t     i, n;
    dsa_str_t  name;

    name = dsa_str(p->tokens->elts[token].name.data, bytes);

    for (i = 0; i < p->len; i++) {
        n = i;

        if (p->symbols[i] == DSA_PENDING_CONTROL + token
            || dsa_marker_match_bytes(p, &n, name) == DSA_OK)
        {
            return 1;
        }
    }

    return 0;
}


/* As dsa_pending_match(), for one marker.  DSA_OK: *n is its length. */

static int
dsa_marker_match(const dsa_marker_t *m, const dsa_pending_t *p, size_t *n)
{
    int  rc;

    rc = dsa_marker_match_bytes(p, n, m->before);

    if (rc != DSA_OK) {
        return rc;
    }

    if ((p->vocabulary >> m->control & 1) != 0) {

        if (*n == p->len) {
            return DSA_AGAIN;
        }

        if (p->symbols[(*n)++] != DSA_PENDING_CONTROL + m->control) {
            return DSA_ERROR;
        }

    } else {
        rc = dsa_marker_match_bytes(p, n, p->tokens->elts[m->control].name);

        if (rc != DSA_OK) {
            return rc;
        }
    }

    return dsa_marker_match_bytes(p, n, m->after);
}


/* Compares the pending symbols from symbol *n on, and advances *n. */

static int
dsa_marker_match_bytes(const dsa_pending_t *p, size_t *n, dsa_str_t text)
{
    size_t  i;

    for (i = 0; i < text.len; i++, (*n)++) {

        if (*n == p->len) {
            return DSA_AGAIN;
        }

        if (p->symbols[*n] != (unsigned char) text.data[i]) {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


static void
dsa_pending_add(dsa_pending_t *p, uint16_t symbol)
{
    assert(p->len < DSA_PENDING_MAX);

    p->symbols[p->len++] = symbol;
}


static void
dsa_pending_remove(dsa_pending_t *p, size_t n)
{
    p->len -= n;
    memmove(p->symbols, p->symbols + n, p->len * sizeof(p->symbols[0]));
}
