
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdlib.h>

#include "grammar/compiled.h"


#define DSA_MATCHER_HISTORY  65         /* the state now, and 64 before it */


typedef enum {
    DSA_MATCHER_WAITING = 0,            /* for the token that begins it */
    DSA_MATCHER_INSIDE,
    DSA_MATCHER_ENDED
} dsa_matcher_phase_e;


typedef struct {
    dsa_matcher_phase_e   phase;
    uint32_t              value;        /* WAITING: how many bytes of the name
                                           have come; else the state */
} dsa_matcher_step_t;


struct dsa_matcher_s {
    dsa_grammar_t        *grammar;
    dsa_vocabulary_t     *v;
    dsa_shared_t         *shared;

    dsa_str_t             begin;
    uint32_t              begin_id;     /* of the control token, or
                                           DSA_VOCABULARY_NONE: its bytes
                                           count */

    uint32_t              at;           /* index of the step now */
    uint32_t              n;            /* steps before it that are kept */
    dsa_matcher_step_t    step[DSA_MATCHER_HISTORY];
};


static int dsa_matcher_next(dsa_matcher_t *m, uint32_t id,
    dsa_matcher_step_t *next);
static int dsa_matcher_wait(dsa_matcher_t *m, uint32_t id,
    dsa_matcher_step_t *next);
static int dsa_matcher_may_end(dsa_matcher_t *m,
    const dsa_matcher_step_t *step);
static void dsa_matcher_mask_ends(const dsa_matcher_t *m, uint32_t *mask,
    uint32_t words);
static uint32_t dsa_matcher_prefix(dsa_str_t name, uint32_t matched,
    dsa_str_t bytes);


dsa_matcher_t *
dsa_matcher_create(dsa_grammar_t *grammar, dsa_vocabulary_t *v,
    dsa_str_t begin)
{
    char                *name;
    dsa_matcher_t       *m;
    dsa_matcher_step_t  *step;

    m = calloc(1, sizeof(dsa_matcher_t) + begin.len);

    if (m == NULL) {
        return NULL;
    }

    name = (char *) (m + 1);

    if (begin.len != 0) {
        memcpy(name, begin.data, begin.len);
    }

    m->grammar = grammar;
    m->v = v;
    m->begin = dsa_str(name, begin.len);
    m->begin_id = DSA_VOCABULARY_NONE;
    m->shared = dsa_grammar_shared(grammar, v);

    if (m->shared == NULL) {
        free(m);
        return NULL;
    }

    step = &m->step[0];

    if (begin.len != 0) {
        m->begin_id = dsa_vocabulary_control(v, m->begin);
        return m;
    }

    dsa_states_lock(m->shared->states);

    step->phase = DSA_MATCHER_INSIDE;
    step->value = dsa_states_start(m->shared->states);

    if (step->value != DSA_STATE_NONE) {
        dsa_states_retain(m->shared->states, step->value);
    }

    dsa_states_unlock(m->shared->states);

    if (step->value == DSA_STATE_NONE) {
        free(m);
        return NULL;
    }

    return m;
}


void
dsa_matcher_free(dsa_matcher_t *m)
{
    if (m == NULL) {
        return;
    }

    dsa_matcher_rollback(m, m->n);

    if (m->step[m->at].phase != DSA_MATCHER_WAITING) {
        dsa_states_lock(m->shared->states);
        dsa_states_release(m->shared->states, m->step[m->at].value);
        dsa_states_unlock(m->shared->states);
    }

    free(m);
}


int
dsa_matcher_accept(dsa_matcher_t *m, uint32_t id)
{
    int                  rc;
    dsa_matcher_step_t   next, *oldest;

    dsa_states_lock(m->shared->states);

    rc = dsa_matcher_next(m, id, &next);

    if (rc == DSA_OK) {
        m->at = (m->at + 1) % DSA_MATCHER_HISTORY;

        if (next.phase != DSA_MATCHER_WAITING) {
            dsa_states_retain(m->shared->states, next.value);
        }

        if (m->n == DSA_MATCHER_HISTORY - 1) {
            oldest = &m->step[m->at];

            if (oldest->phase != DSA_MATCHER_WAITING) {
                dsa_states_release(m->shared->states, oldest->value);
            }

        } else {
            m->n++;
        }

        m->step[m->at] = next;
    }

    dsa_states_unlock(m->shared->states);

    return rc;
}


void
dsa_matcher_mask(dsa_matcher_t *m, uint32_t *mask, uint32_t words)
{
    int                        empty;
    uint32_t                   i, n, complete;
    const uint32_t            *permitted;
    const dsa_matcher_step_t  *step;

    step = &m->step[m->at];

    switch (step->phase) {

    case DSA_MATCHER_WAITING:
        for (i = 0; i < words && i < (m->v->size + 31) / 32; i++) {
            mask[i] &= ~m->v->end_mask[i];
        }

        return;

    case DSA_MATCHER_ENDED:
        dsa_matcher_mask_ends(m, mask, words);
        return;

    case DSA_MATCHER_INSIDE:
        break;
    }

    dsa_states_lock(m->shared->states);

    permitted = dsa_states_mask(m->shared->states, step->value, &empty);

    if (permitted == NULL || empty) {
        dsa_states_unlock(m->shared->states);
        dsa_matcher_mask_ends(m, mask, words);
        return;
    }

    n = (m->v->size + 31) / 32;
    complete = dsa_states_complete(m->shared->states, step->value)
               ? 0xffffffff : 0;

    for (i = 0; i < words && i < n; i++) {
        mask[i] &= permitted[i] | (m->v->end_mask[i] & complete);
    }

    for ( /* void */ ; i < words; i++) {
        mask[i] = 0;
    }

    dsa_states_unlock(m->shared->states);
}


int
dsa_matcher_ready(dsa_matcher_t *m)
{
    int                        ready;
    const dsa_matcher_step_t  *step;

    step = &m->step[m->at];

    if (step->phase != DSA_MATCHER_INSIDE) {
        return 1;
    }

    dsa_states_lock(m->shared->states);
    ready = dsa_states_quick(m->shared->states, step->value);
    dsa_states_unlock(m->shared->states);

    return ready;
}


void
dsa_matcher_warm(dsa_matcher_t *m)
{
    int                        empty;
    const dsa_matcher_step_t  *step;

    step = &m->step[m->at];

    if (step->phase != DSA_MATCHER_INSIDE) {
        return;
    }

    dsa_states_lock(m->shared->states);
    (void) dsa_states_mask(m->shared->states, step->value, &empty);
    dsa_states_unlock(m->shared->states);
}


int
dsa_matcher_complete(const dsa_matcher_t *m)
{
    int                        complete;
    const dsa_matcher_step_t  *step;

    step = &m->step[m->at];

    if (step->phase != DSA_MATCHER_INSIDE) {
        return step->phase == DSA_MATCHER_ENDED;
    }

    dsa_states_lock(m->shared->states);
    complete = dsa_states_complete(m->shared->states, step->value);
    dsa_states_unlock(m->shared->states);

    return complete;
}


void
dsa_matcher_rollback(dsa_matcher_t *m, uint32_t n)
{
    assert(n <= m->n);

    dsa_states_lock(m->shared->states);

    m->n -= n;

    while (n-- != 0) {
        if (m->step[m->at].phase != DSA_MATCHER_WAITING) {
            dsa_states_release(m->shared->states, m->step[m->at].value);
        }

        m->at = (m->at + DSA_MATCHER_HISTORY - 1) % DSA_MATCHER_HISTORY;
    }

    dsa_states_unlock(m->shared->states);
}


static int
dsa_matcher_next(dsa_matcher_t *m, uint32_t id, dsa_matcher_step_t *next)
{
    const dsa_matcher_step_t  *step;

    step = &m->step[m->at];
    *next = *step;

    switch (step->phase) {

    case DSA_MATCHER_WAITING:
        return dsa_matcher_wait(m, id, next);

    case DSA_MATCHER_ENDED:
        return dsa_vocabulary_is_end(m->v, id) ? DSA_OK : DSA_ERROR;

    case DSA_MATCHER_INSIDE:
        break;
    }

    if (dsa_vocabulary_is_end(m->v, id)) {
        next->phase = DSA_MATCHER_ENDED;
        return dsa_matcher_may_end(m, step) ? DSA_OK : DSA_ERROR;
    }

    next->value = dsa_states_token(m->shared->states, step->value, id);

    return next->value != DSA_STATE_NONE ? DSA_OK : DSA_ERROR;
}


/* A token before the grammar begins. */

static int
dsa_matcher_wait(dsa_matcher_t *m, uint32_t id, dsa_matcher_step_t *next)
{
    if (id >= m->v->size || dsa_vocabulary_is_end(m->v, id)) {
        return DSA_ERROR;
    }

    if (m->begin_id != DSA_VOCABULARY_NONE) {
        if (!m->v->control[id] || !dsa_str_eq(m->v->bytes[id], m->begin)) {
            return DSA_OK;
        }

    } else {
        next->value = m->v->control[id] ? 0
                      : dsa_matcher_prefix(m->begin, next->value,
                                           m->v->bytes[id]);

        if (next->value < m->begin.len) {
            return DSA_OK;
        }
    }

    next->phase = DSA_MATCHER_INSIDE;
    next->value = dsa_states_start(m->shared->states);

    return next->value != DSA_STATE_NONE ? DSA_OK : DSA_ERROR;
}


/*
 * An answer ends where it is complete, or where the vocabulary has no token
 * that goes on.
 */

static int
dsa_matcher_may_end(dsa_matcher_t *m, const dsa_matcher_step_t *step)
{
    int              empty;
    const uint32_t  *mask;

    if (dsa_states_complete(m->shared->states, step->value)) {
        return 1;
    }

    mask = dsa_states_mask(m->shared->states, step->value, &empty);

    return mask == NULL || empty;
}


/* A vocabulary without ends leaves the mask as it is. */

static void
dsa_matcher_mask_ends(const dsa_matcher_t *m, uint32_t *mask, uint32_t words)
{
    uint32_t  i, n;

    if (m->v->n_end == 0) {
        return;
    }

    n = (m->v->size + 31) / 32;

    for (i = 0; i < words; i++) {
        mask[i] &= i < n ? m->v->end_mask[i] : 0;
    }
}


/*
 * A text ended with the first "matched" bytes of a name, and bytes follow.
 * Returns with how many bytes of the name it ends now, or the length of the
 * name if the name is complete within bytes.
 */

static uint32_t
dsa_matcher_prefix(dsa_str_t name, uint32_t matched, dsa_str_t bytes)
{
    size_t    i;
    uint32_t  n;

    for (i = 0; i < bytes.len; i++) {

        while (matched != 0 && name.data[matched] != bytes.data[i]) {

            /* the longest shorter prefix that the text ends with */

            for (n = matched - 1;
                 memcmp(name.data, name.data + matched - n, n) != 0;
                 n--)
            {
                /* void */
            }

            matched = n;
        }

        if (name.data[matched] == bytes.data[i]) {
            matched++;
        }

        if (matched == name.len) {
            break;
        }
    }

    return matched;
}
