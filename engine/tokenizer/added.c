
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>

#include "engine/tokenizer/parts.h"


/*
 * Finds added tokens in a text with a trie: the leftmost one, and of several
 * at the same position the longest.  A byte of the text takes at most as many
 * steps as the longest token has bytes, and usually one, because most bytes
 * begin no token.
 */


static uint32_t dsa_trie_next(const dsa_trie_t *trie, dsa_str_t text,
    size_t *pos, size_t *end);
static uint32_t dsa_trie_child(const dsa_trie_t *trie, uint32_t node,
    uint8_t byte);
static int dsa_added_is(dsa_tokenizer_run_t *run, const pcre2_code *code,
    const char *p, size_t n);
static size_t dsa_added_before(dsa_str_t text, size_t pos);
static size_t dsa_added_after(dsa_str_t text, size_t pos);


int
dsa_trie_add(dsa_trie_t *trie, dsa_str_t content, uint32_t added)
{
    size_t            i;
    uint8_t           byte;
    uint32_t          node, next, size;
    dsa_trie_node_t  *p;

    node = 0;

    for (i = 0; i < content.len; i++) {
        byte = (uint8_t) content.data[i];

        next = dsa_trie_child(trie, node, byte);

        if (next == 0) {

            /*
             * Make room for the new node, and in the first call for the root.
             */

            if (trie->n + 2 > trie->size) {
                size = trie->size * 2 + 256;

                p = realloc(trie->node, size * sizeof(dsa_trie_node_t));
                if (p == NULL) {
                    return DSA_ERROR;
                }

                trie->node = p;
                trie->size = size;
            }

            if (trie->n == 0) {
                memset(trie->node, 0, sizeof(dsa_trie_node_t));
                trie->node[0].added = DSA_TOKENIZER_NONE;
                trie->n = 1;
            }

            next = trie->n++;
            p = &trie->node[next];

            p->byte = byte;
            p->child = 0;
            p->added = DSA_TOKENIZER_NONE;

            if (node == 0) {
                p->sibling = 0;
                trie->first[byte] = next;

            } else {
                p->sibling = trie->node[node].child;
                trie->node[node].child = next;
            }
        }

        node = next;
    }

    if (node == 0 || trie->node[node].added != DSA_TOKENIZER_NONE) {
        return DSA_ERROR;
    }

    trie->node[node].added = added;

    return DSA_OK;
}


void
dsa_trie_free(dsa_trie_t *trie)
{
    free(trie->node);
}


static uint32_t
dsa_trie_child(const dsa_trie_t *trie, uint32_t node, uint8_t byte)
{
    uint32_t  next;

    if (node == 0) {
        return trie->first[byte];
    }

    for (next = trie->node[node].child;
         next != 0 && trie->node[next].byte != byte;
         next = trie->node[next].sibling)
    {
        /* void */
    }

    return next;
}


/*
 * Finds the next token at or after *pos, and sets its range [*pos, *end); or
 * returns NONE.
 */

static uint32_t
dsa_trie_next(const dsa_trie_t *trie, dsa_str_t text, size_t *pos, size_t *end)
{
    size_t    i, j;
    uint32_t  node, found;

    found = DSA_TOKENIZER_NONE;

    for (i = *pos; i < text.len; i++) {

        node = trie->first[(uint8_t) text.data[i]];

        for (j = i + 1; node != 0; j++) {

            if (trie->node[node].added != DSA_TOKENIZER_NONE) {
                found = trie->node[node].added;
                *end = j;
            }

            if (j == text.len) {
                break;
            }

            node = dsa_trie_child(trie, node, (uint8_t) text.data[j]);
        }

        if (found != DSA_TOKENIZER_NONE) {
            *pos = i;
            break;
        }
    }

    return found;
}


int
dsa_added_run(dsa_tokenizer_run_t *run, uint32_t trie, dsa_str_t text)
{
    int                     rc;
    size_t                  n, pos, from, end, start;
    uint32_t                i;
    const dsa_added_t      *a;
    const dsa_tokenizer_t  *t;

    t = run->t;

    if (trie == sizeof(t->trie) / sizeof(t->trie[0])) {
        return dsa_split_text(run, text);
    }

    pos = 0;
    end = 0;
    start = 0;                          /* the end of the last token */

    if (t->trie[trie].n == 0) {
        return dsa_added_run(run, trie + 1, text);
    }

    for ( ;; ) {
        i = dsa_trie_next(&t->trie[trie], text, &pos, &end);
        if (i == DSA_TOKENIZER_NONE) {
            break;
        }

        a = &t->added[i];
        from = pos;
        pos = end;

        if (a->single_word) {
            n = dsa_added_before(text, from);

            if (dsa_added_is(run, t->word, text.data + from - n, n)) {
                continue;
            }

            n = dsa_added_after(text, end);

            if (dsa_added_is(run, t->word, text.data + end, n)) {
                continue;
            }
        }

        if (a->lstrip) {
            while (from > start) {
                n = dsa_added_before(text, from);

                if (!dsa_added_is(run, t->space, text.data + from - n, n)) {
                    break;
                }

                from -= n;
            }
        }

        if (a->rstrip) {
            for ( ;; ) {
                n = dsa_added_after(text, end);

                if (!dsa_added_is(run, t->space, text.data + end, n)) {
                    break;
                }

                end += n;
            }
        }

        if (start < from) {
            rc = dsa_added_run(run, trie + 1,
                               dsa_str(text.data + start, from - start));
            if (rc != DSA_OK) {
                return rc;
            }
        }

        rc = dsa_tokens_add(run, a->id);
        if (rc != DSA_OK) {
            return rc;
        }

        start = end;
    }

    if (start < text.len) {
        return dsa_added_run(run, trie + 1,
                             dsa_str(text.data + start, text.len - start));
    }

    return DSA_OK;
}


/* Returns 1 if p[0 .. n-1] is a character that code matches. */

static int
dsa_added_is(dsa_tokenizer_run_t *run, const pcre2_code *code, const char *p,
    size_t n)
{
    return n != 0
           && pcre2_jit_match(code, (PCRE2_SPTR) p, n, 0, 0, run->w->match,
                              run->w->context) >= 0;
}


/* Returns the bytes of the character that ends at pos; 0: none. */

static size_t
dsa_added_before(dsa_str_t text, size_t pos)
{
    size_t  n;

    for (n = 1; n <= 4 && n <= pos; n++) {
        if (dsa_utf8_char((const uint8_t *) text.data + pos - n, n)
            == (int) n)
        {
            return n;
        }
    }

    return 0;
}


/* Returns the bytes of the character that begins at pos; 0: none. */

static size_t
dsa_added_after(dsa_str_t text, size_t pos)
{
    int  n;

    if (pos >= text.len) {
        return 0;
    }

    n = dsa_utf8_char((const uint8_t *) text.data + pos, text.len - pos);

    return (n > 0) ? (size_t) n : 0;
}
