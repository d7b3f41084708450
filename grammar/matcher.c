
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdlib.h>

#include "grammar/compiled.h"


#define DSA_MATCHER_ROOM    8           /* drafts at first */


typedef enum {
    DSA_MATCHER_WAITING = 0,            /* for the token that begins it */
    DSA_MATCHER_INSIDE,
    DSA_MATCHER_ENDED,
    DSA_MATCHER_FAILED                  /* there was no memory; without a
                                           state */
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

    dsa_matcher_step_t    step;         /* without drafts */
    dsa_matcher_step_t   *draft;        /* [size]: behind each draft */
    uint32_t              n;            /* drafts */
    uint32_t              size;
};


static const dsa_matcher_step_t *dsa_matcher_now(const dsa_matcher_t *m);
static void dsa_matcher_retain(dsa_matcher_t *m,
    const dsa_matcher_step_t *step);
static void dsa_matcher_release(dsa_matcher_t *m,
    const dsa_matcher_step_t *step);
static void dsa_matcher_fail(dsa_matcher_t *m);
static int dsa_matcher_next(dsa_matcher_t *m, uint32_t id,
    dsa_matcher_step_t *next);
static int dsa_matcher_state(dsa_matcher_t *m,
    const dsa_matcher_step_t *next);
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
    char           *name;
    dsa_matcher_t  *m;

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

    if (begin.len != 0) {
        m->begin_id = dsa_vocabulary_control(v, m->begin);
        return m;
    }

    dsa_states_lock(m->shared->states);

    m->step.phase = DSA_MATCHER_INSIDE;
    m->step.value = dsa_states_start(m->shared->states);

    if (m->step.value != DSA_STATE_FULL) {
        dsa_matcher_retain(m, &m->step);
    }

    dsa_states_unlock(m->shared->states);

    if (m->step.value == DSA_STATE_FULL) {
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

    dsa_states_lock(m->shared->states);
    dsa_matcher_fail(m);
    dsa_states_unlock(m->shared->states);

    free(m->draft);
    free(m);
}


int
dsa_matcher_failed(const dsa_matcher_t *m)
{
    return m->step.phase == DSA_MATCHER_FAILED;
}


int
dsa_matcher_accept(dsa_matcher_t *m, uint32_t id)
{
    int                 rc;
    dsa_matcher_step_t  next;

    assert(m->n == 0);

    dsa_states_lock(m->shared->states);

    rc = dsa_matcher_next(m, id, &next);

    if (rc == DSA_OK) {
        dsa_matcher_retain(m, &next);
        dsa_matcher_release(m, &m->step);
        m->step = next;
    }

    dsa_states_unlock(m->shared->states);

    return rc;
}


int
dsa_matcher_draft(dsa_matcher_t *m, uint32_t id)
{
    int                  rc;
    uint32_t             size;
    dsa_matcher_step_t   next, *draft;

    if (m->n == m->size) {
        size = m->size != 0 ? 2 * m->size : DSA_MATCHER_ROOM;
        draft = realloc(m->draft, size * sizeof(dsa_matcher_step_t));

        if (draft == NULL) {
            dsa_states_lock(m->shared->states);
            dsa_matcher_fail(m);
            dsa_states_unlock(m->shared->states);
            return DSA_ERROR;
        }

        m->draft = draft;
        m->size = size;
    }

    dsa_states_lock(m->shared->states);

    rc = dsa_matcher_next(m, id, &next);

    if (rc == DSA_OK) {
        dsa_matcher_retain(m, &next);
        m->draft[m->n++] = next;
    }

    dsa_states_unlock(m->shared->states);

    return rc;
}


void
dsa_matcher_undo(dsa_matcher_t *m)
{
    if (m->n == 0) {
        return;
    }

    dsa_states_lock(m->shared->states);

    while (m->n != 0) {
        dsa_matcher_release(m, &m->draft[--m->n]);
    }

    dsa_states_unlock(m->shared->states);
}


/* The step behind the last draft. */

static const dsa_matcher_step_t *
dsa_matcher_now(const dsa_matcher_t *m)
{
    return m->n != 0 ? &m->draft[m->n - 1] : &m->step;
}


static void
dsa_matcher_retain(dsa_matcher_t *m, const dsa_matcher_step_t *step)
{
    if (step->phase == DSA_MATCHER_INSIDE
        || step->phase == DSA_MATCHER_ENDED)
    {
        dsa_states_retain(m->shared->states, step->value);
    }
}


static void
dsa_matcher_release(dsa_matcher_t *m, const dsa_matcher_step_t *step)
{
    if (step->phase == DSA_MATCHER_INSIDE
        || step->phase == DSA_MATCHER_ENDED)
    {
        dsa_states_release(m->shared->states, step->value);
    }
}


/* Leaves the memory to the other matchers.  The caller holds the lock. */

static void
dsa_matcher_fail(dsa_matcher_t *m)
{
    while (m->n != 0) {
        dsa_matcher_release(m, &m->draft[--m->n]);
    }

    dsa_matcher_release(m, &m->step);
    m->step.phase = DSA_MATCHER_FAILED;
}


void
dsa_matcher_mask(dsa_matcher_t *m, uint32_t *mask, uint32_t words)
{
    int                        empty;
    uint32_t                   i, n, complete;
    const uint32_t            *permitted;
    const dsa_matcher_step_t  *step;

    step = dsa_matcher_now(m);

    switch (step->phase) {

    case DSA_MATCHER_FAILED:
        return;

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

    if (permitted == NULL) {
        dsa_matcher_fail(m);
        dsa_states_unlock(m->shared->states);
        return;
    }

    if (empty) {
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
    int                        rc;
    const dsa_matcher_step_t  *step;

    step = dsa_matcher_now(m);

    if (step->phase != DSA_MATCHER_INSIDE) {
        return 1;
    }

    dsa_states_lock(m->shared->states);

    rc = dsa_states_quick(m->shared->states, step->value);

    if (rc == DSA_ERROR) {
        dsa_matcher_fail(m);
    }

    dsa_states_unlock(m->shared->states);

    return rc != DSA_AGAIN;
}


void
dsa_matcher_warm(dsa_matcher_t *m)
{
    int                        empty;
    const dsa_matcher_step_t  *step;

    step = dsa_matcher_now(m);

    if (step->phase != DSA_MATCHER_INSIDE) {
        return;
    }

    dsa_states_lock(m->shared->states);

    if (dsa_states_mask(m->shared->states, step->value, &empty) == NULL) {
        dsa_matcher_fail(m);
    }

    dsa_states_unlock(m->shared->states);
}


int
dsa_matcher_complete(const dsa_matcher_t *m)
{
    int                        complete;
    const dsa_matcher_step_t  *step;

    step = dsa_matcher_now(m);

    if (step->phase != DSA_MATCHER_INSIDE) {
        return step->phase == DSA_MATCHER_ENDED;
    }

    dsa_states_lock(m->shared->states);
    complete = dsa_states_complete(m->shared->states, step->value);
    dsa_states_unlock(m->shared->states);

    return complete;
}


/* The step behind a token; it is not retained yet. */

static int
dsa_matcher_next(dsa_matcher_t *m, uint32_t id, dsa_matcher_step_t *next)
{
    const dsa_matcher_step_t  *step;

    step = dsa_matcher_now(m);
    *next = *step;

    switch (step->phase) {

    case DSA_MATCHER_FAILED:
        return DSA_ERROR;

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

    return dsa_matcher_state(m, next);
}


/* DSA_ERROR: there is no state, because of the token or of the memory. */

static int
dsa_matcher_state(dsa_matcher_t *m, const dsa_matcher_step_t *next)
{
    if (next->value == DSA_STATE_FULL) {
        dsa_matcher_fail(m);
        return DSA_ERROR;
    }

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

    return dsa_matcher_state(m, next);
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

    if (mask == NULL) {
        dsa_matcher_fail(m);
        return 0;
    }

    return empty;
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
