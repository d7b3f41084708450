
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A backend of depth 2 around one of depth 1, as the CUDA backend is: a step
 * that is started while another one is in flight takes its inputs from the
 * results of that one, and the caller gets the results of a step when it waits
 * for it.
 */


#ifndef _DSA_T_AHEAD_H_INCLUDED_
#define _DSA_T_AHEAD_H_INCLUDED_


#include <stdlib.h>
#include <string.h>

#include "engine/backend.h"


/* The entry of a step in flight: what the caller gave, and what it will get. */

typedef struct {
    dsa_batch_seq_t     to;
    uint32_t           *tokens;         /* of an entry that follows another
                                           one, or NULL */
    dsa_sample_t        sample[DSA_MAX_OUTPUTS];
    uint32_t            accepted;
    uint32_t            next[DSA_MAX_OUTPUTS];
    uint32_t            n_next;
} ahead_entry_t;


typedef struct {
    dsa_backend_t       base;
    dsa_backend_t      *inner;
    ahead_entry_t      *step[2];        /* [n] */
    uint32_t            n[2];
    uint32_t            first;
    uint32_t            in_flight;
} ahead_t;


static uint64_t  ahead_follows;         /* entries that followed another one */


/* Completes seq, a copy of the entry, from the one that it follows. */

static inline void
ahead_follow(dsa_batch_seq_t *seq, ahead_entry_t *now,
    const ahead_entry_t *from)
{
    uint32_t  i, n, accepted, room;

    accepted = from->to.n_draft != 0 ? from->accepted : 1;
    n = from->to.next != NULL ? from->n_next : 0;

    now->tokens = malloc((seq->start + accepted + n) * sizeof(uint32_t));
    assert_non_null(now->tokens);
    memcpy(now->tokens, seq->tokens, seq->start * sizeof(uint32_t));

    for (i = 0; i < accepted; i++) {
        now->tokens[seq->start + i] = from->sample[i].token;
    }

    seq->start += accepted - 1;
    assert_true(seq->start < seq->n_pages * DSA_PAGE_TOKENS);
    room = seq->n_pages * DSA_PAGE_TOKENS - seq->start - 1;
    n = n < seq->n_draft ? n : seq->n_draft;
    n = n < room ? n : room;

    memcpy(now->tokens + seq->start + 1, from->next, n * sizeof(uint32_t));

    seq->tokens = now->tokens;
    seq->n_draft = n;
    seq->n_input = n + 1;
    seq->input_from = DSA_INPUT_KNOWN;
}


static inline int
ahead_start(dsa_backend_t *b, dsa_batch_seq_t *seq, uint32_t n_seqs,
    dsa_err_t *err)
{
    ahead_t          *a;
    uint32_t          i, at;
    ahead_entry_t    *now;
    dsa_batch_seq_t  *copy;

    a = (ahead_t *) b;
    assert_true(a->in_flight < 2);

    at = (a->first + a->in_flight) % 2;
    now = calloc(n_seqs, sizeof(ahead_entry_t));
    copy = malloc(n_seqs * sizeof(dsa_batch_seq_t));
    assert_non_null(now);
    assert_non_null(copy);

    a->step[at] = now;
    a->n[at] = n_seqs;

    for (i = 0; i < n_seqs; i++) {
        copy[i] = seq[i];

        if (seq[i].input_from != DSA_INPUT_KNOWN) {
            assert_true(a->in_flight != 0
                        && seq[i].input_from < a->n[a->first]);
            ahead_follow(&copy[i], &now[i],
                         &a->step[a->first][seq[i].input_from]);
            ahead_follows++;
        }

        now[i].to = seq[i];
        now[i].to.n_draft = copy[i].n_draft;
        now[i].n_next = seq[i].next != NULL ? *seq[i].n_next : 0;

        copy[i].sample = now[i].sample;
        copy[i].accepted = &now[i].accepted;
        copy[i].next = seq[i].next != NULL ? now[i].next : NULL;
        copy[i].n_next = &now[i].n_next;
    }

    a->in_flight++;

    if (a->inner->start(a->inner, copy, n_seqs, err) != DSA_OK
        || a->inner->wait(a->inner, err) != DSA_OK)
    {
        free(copy);
        return DSA_ERROR;
    }

    free(copy);

    return DSA_OK;
}


static inline int
ahead_wait(dsa_backend_t *b, dsa_err_t *err)
{
    ahead_t        *a;
    uint32_t        i, n;
    ahead_entry_t  *e;

    a = (ahead_t *) b;
    assert_true(a->in_flight != 0);

    for (i = 0; i < a->n[a->first]; i++) {
        e = &a->step[a->first][i];
        n = e->to.n_draft != 0 ? e->accepted : 1;

        if (e->to.sampling != NULL) {
            memcpy(e->to.sample, e->sample, n * sizeof(dsa_sample_t));
            *e->to.accepted = n;
        }

        if (e->to.next != NULL) {
            memcpy(e->to.next, e->next, e->n_next * sizeof(uint32_t));
            *e->to.n_next = e->n_next;
        }

        free(e->tokens);
    }

    free(a->step[a->first]);
    a->first = (a->first + 1) % 2;
    a->in_flight--;

    return DSA_OK;
}


static inline int
ahead_copy(dsa_backend_t *b, const dsa_page_copy_t *copy, uint32_t n,
    dsa_err_t *err)
{
    ahead_t  *a = (ahead_t *) b;

    return a->inner->copy(a->inner, copy, n, err);
}


static inline int
ahead_pin(dsa_backend_t *b, void *memory, uint64_t bytes, dsa_err_t *err)
{
    ahead_t  *a = (ahead_t *) b;

    return a->inner->pin(a->inner, memory, bytes, err);
}


static inline int
ahead_move(dsa_backend_t *b, dsa_move_e way, uint32_t rank,
    const dsa_page_move_t *move, uint32_t n, dsa_err_t *err)
{
    ahead_t  *a = (ahead_t *) b;

    return a->inner->move(a->inner, way, rank, move, n, err);
}


static inline int
ahead_moved(dsa_backend_t *b, dsa_move_e way, uint32_t rank, int wait,
    uint64_t *calls, dsa_err_t *err)
{
    ahead_t  *a = (ahead_t *) b;

    return a->inner->moved(a->inner, way, rank, wait, calls, err);
}


static inline void
ahead_close(dsa_backend_t *b)
{
    ahead_t  *a = (ahead_t *) b;

    for ( /* void */ ; a->in_flight != 0; a->in_flight--) {
        free(a->step[a->first]);
        a->first = (a->first + 1) % 2;
    }

    a->inner->close(a->inner);
    free(a);
}


/* The backend closes inner. */

static inline dsa_backend_t *
ahead_open(dsa_backend_t *inner)
{
    ahead_t  *a;

    a = calloc(1, sizeof(ahead_t));
    assert_non_null(a);
    assert_int_equal(inner->depth, 1);

    a->inner = inner;
    a->base = *inner;
    a->base.depth = 2;
    a->base.start = ahead_start;
    a->base.wait = ahead_wait;
    a->base.copy = inner->copy != NULL ? ahead_copy : NULL;
    a->base.pin = ahead_pin;
    a->base.move = ahead_move;
    a->base.moved = ahead_moved;
    a->base.close = ahead_close;

    return &a->base;
}


#endif /* _DSA_T_AHEAD_H_INCLUDED_ */
