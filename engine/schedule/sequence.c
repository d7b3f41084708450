
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdlib.h>

#include "engine/schedule/sequence.h"


void
dsa_seq_free(dsa_seq_t *seq)
{
    assert(seq->n_pages == 0 && seq->copies == NULL);

    free(seq->tokens);
    free(seq->pages);
    free(seq->digest);
    free(seq->masks);
    free(seq);
}


int
dsa_seq_push(dsa_seq_t *seq, uint32_t token)
{
    uint32_t  size, *tokens;

    if (seq->n_tokens == seq->tokens_size) {
        size = seq->tokens_size + seq->tokens_size / 2 + DSA_PAGE_TOKENS;
        tokens = realloc(seq->tokens, size * sizeof(uint32_t));

        if (tokens == NULL) {
            return DSA_ERROR;
        }

        seq->tokens = tokens;
        seq->tokens_size = size;
    }

    seq->tokens[seq->n_tokens++] = token;

    return DSA_OK;
}


int
dsa_seq_reserve(dsa_seq_t *seq, uint32_t pages)
{
    void      *p;
    uint32_t   size;

    if (pages <= seq->pages_size) {
        return DSA_OK;
    }

    assert(seq->copies == NULL);

    size = pages + seq->pages_size / 2 + 4;

    p = realloc(seq->pages, size * sizeof(uint32_t));

    if (p == NULL) {
        return DSA_ERROR;
    }

    seq->pages = p;

    p = realloc(seq->digest, size * sizeof(dsa_digest_t));

    if (p == NULL) {
        return DSA_ERROR;
    }

    seq->digest = p;
    seq->pages_size = size;

    return DSA_OK;
}


void
dsa_seq_add_page(dsa_seq_t *seq, uint32_t page)
{
    assert(page != DSA_NO_PAGE && seq->n_pages < seq->pages_size);

    seq->pages[seq->n_pages++] = page;
    seq->tenant->n_pages++;
}


int
dsa_seq_split(dsa_seq_t *seq, uint32_t ranks)
{
    uint32_t   i, n, *table;
    uint32_t **copies;

    n = dsa_pages_of(seq->n_tokens);

    copies = calloc(ranks, sizeof(uint32_t *));
    table = calloc((size_t) (ranks - 1) * n, sizeof(uint32_t));

    if (copies == NULL || table == NULL) {
        free(copies);
        free(table);
        return DSA_ERROR;
    }

    /* the first table of the other ranks is the whole allocation */

    for (i = 0; i < ranks; i++) {
        if (i == seq->rank) {
            copies[i] = seq->pages;

        } else {
            copies[i] = table;
            table += n;
        }
    }

    seq->copies = copies;

    return DSA_OK;
}


void
dsa_seq_join(dsa_seq_t *seq, dsa_pages_t *pages, uint32_t ranks)
{
    uint32_t  i, n;

    for (i = 0; i < ranks; i++) {
        if (i == seq->rank) {
            continue;
        }

        for (n = seq->n_copied; n-- != 0; /* void */) {
            dsa_pages_release(pages, i, seq->copies[i][n]);
        }

        seq->tenant->n_pages -= seq->n_copied;
    }

    free(seq->copies[seq->rank == 0 ? 1 : 0]);
    free(seq->copies);
    seq->copies = NULL;
    seq->n_copied = 0;
}


void
dsa_seq_release(dsa_seq_t *seq, dsa_pages_t *pages, uint32_t n)
{
    while (seq->n_pages > n) {
        dsa_pages_release(pages, seq->rank, seq->pages[--seq->n_pages]);
        seq->tenant->n_pages--;
    }
}


void
dsa_seq_rollback(dsa_seq_t *seq, dsa_pages_t *pages, uint32_t n,
    uint32_t n_pages)
{
    assert(n <= seq->n_tokens && seq->published <= n / DSA_PAGE_TOKENS);

    seq->n_tokens = n;

    if (seq->computed > n) {
        seq->computed = n;
    }

    if (seq->scheduled > n) {
        seq->scheduled = n;
    }

    if (seq->n_digests > n / DSA_PAGE_TOKENS) {
        seq->n_digests = n / DSA_PAGE_TOKENS;
    }

    dsa_seq_release(seq, pages, n_pages > dsa_pages_of(n) ? n_pages
                                                          : dsa_pages_of(n));
}


int
dsa_seq_digests(dsa_seq_t *seq, dsa_digester_t *d, const char *fingerprint,
    uint32_t n)
{
    dsa_digest_t  root, *parent;

    assert(n <= seq->pages_size && n <= seq->n_tokens / DSA_PAGE_TOKENS);

    while (seq->n_digests < n) {

        if (seq->n_digests == 0) {
            parent = &root;

            if (dsa_digest_root(d, fingerprint, seq->salt, &root) != DSA_OK) {
                return DSA_ERROR;
            }

        } else {
            parent = &seq->digest[seq->n_digests - 1];
        }

        if (dsa_digest_page(d, parent,
                            seq->tokens
                            + (size_t) seq->n_digests * DSA_PAGE_TOKENS,
                            &seq->digest[seq->n_digests])
            != DSA_OK)
        {
            return DSA_ERROR;
        }

        seq->n_digests++;
    }

    return DSA_OK;
}


void
dsa_seq_push_last(dsa_seq_list_t *list, dsa_seq_t *seq)
{
    seq->next = NULL;
    seq->prev = list->last;

    if (list->last != NULL) {
        list->last->next = seq;

    } else {
        list->first = seq;
    }

    list->last = seq;
}


void
dsa_seq_push_first(dsa_seq_list_t *list, dsa_seq_t *seq)
{
    seq->prev = NULL;
    seq->next = list->first;

    if (list->first != NULL) {
        list->first->prev = seq;

    } else {
        list->last = seq;
    }

    list->first = seq;
}


void
dsa_seq_remove(dsa_seq_list_t *list, dsa_seq_t *seq)
{
    if (seq->prev != NULL) {
        seq->prev->next = seq->next;

    } else {
        list->first = seq->next;
    }

    if (seq->next != NULL) {
        seq->next->prev = seq->prev;

    } else {
        list->last = seq->prev;
    }

    seq->prev = NULL;
    seq->next = NULL;
}
