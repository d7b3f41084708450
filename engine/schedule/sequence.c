
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>

#include "engine/schedule/parts.h"


int
dsa_seq_reserve(dsa_seq_t *seq, uint32_t pages)
{
    void      *p;
    uint32_t   size;

    if (pages <= seq->pages_size) {
        return DSA_OK;
    }

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


int
dsa_seq_digests(dsa_sched_t *s, dsa_seq_t *seq, uint32_t n)
{
    dsa_digest_t  root, *parent;

    while (seq->n_digests < n) {

        if (seq->n_digests == 0) {
            parent = &root;

            if (dsa_pages_root(s->pages, s->backend->fingerprint,
                               seq->salt, &root)
                != DSA_OK)
            {
                return DSA_ERROR;
            }

        } else {
            parent = &seq->digest[seq->n_digests - 1];
        }

        if (dsa_pages_chain(s->pages, parent,
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
dsa_seq_free(dsa_seq_t *seq)
{
    free(seq->tokens);
    free(seq->pages);
    free(seq->digest);
    free(seq);
}


void
dsa_seq_push(dsa_seq_list_t *list, dsa_seq_t *seq)
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
dsa_seq_push_front(dsa_seq_list_t *list, dsa_seq_t *seq)
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
