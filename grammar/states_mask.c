
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdlib.h>

#include "grammar/states_table.h"


#define DSA_STATES_PAUSE    2048        /* steps and configurations of a walk
                                           until the lock is released */
#define DSA_STATES_QUICK    512         /* of a quick walk, at most */
#define DSA_STATES_COMMON   256         /* configurations of a state that has
                                           the mask of another one */


static uint32_t dsa_states_common(dsa_states_t *s, uint32_t state);
static int dsa_states_make(dsa_states_t *s, uint32_t state, int quick);
static int dsa_states_walk(dsa_states_t *s, uint32_t state, int quick,
    uint32_t **out, uint32_t *any);
static int dsa_states_trie(dsa_states_t *s, uint32_t *path, uint32_t *mask,
    int quick, uint32_t *any);
static void dsa_states_pause(dsa_states_t *s, const uint32_t *path,
    uint32_t n);
static int dsa_states_controls(dsa_states_t *s, uint32_t state,
    uint32_t *mask, uint32_t *any);
static void dsa_states_use(dsa_states_t *s, uint32_t state);
static void dsa_states_mask_room(dsa_states_t *s);


int
dsa_states_quick(dsa_states_t *s, uint32_t state)
{
    state = dsa_states_common(s, state);

    return state != DSA_STATE_FULL ? dsa_states_make(s, state, 1) : DSA_ERROR;
}


const uint32_t *
dsa_states_mask(dsa_states_t *s, uint32_t state, int *empty)
{
    state = dsa_states_common(s, state);

    if (state == DSA_STATE_FULL || dsa_states_make(s, state, 0) != DSA_OK) {
        return NULL;
    }

    dsa_states_unlink(s, state);
    dsa_states_use(s, state);

    *empty = (int) s->state[state]->empty;

    return s->state[state]->mask;
}


/*
 * The state with the mask of this one, or DSA_STATE_FULL.  Without it, the
 * states of answers that count would have a mask each.
 */

static uint32_t
dsa_states_common(dsa_states_t *s, uint32_t state)
{
    uint32_t      common;
    dsa_state_t  *st;

    st = s->state[state];

    assert(st->refs != 0);

    if (st->common != DSA_STATES_UNKNOWN) {
        return st->common;
    }

    common = state;

    if (st->n <= DSA_STATES_COMMON) {
        if (dsa_states_room(s) != DSA_OK
            || dsa_closure_common(s->closure, st->config, st->n,
                                  (int) st->complete)
               != DSA_OK)
        {
            return DSA_STATE_FULL;
        }

        common = dsa_states_intern(s);

        if (common == DSA_STATE_FULL) {
            return DSA_STATE_FULL;
        }
    }

    /* a state that retained itself would never be dropped */

    if (common != state) {
        s->state[common]->refs++;
    }

    st->common = common;

    return common;
}


/*
 * The state is retained, or is that of a state that is.  DSA_AGAIN: it would
 * take longer than a quick walk; DSA_ERROR: no memory.
 */

static int
dsa_states_make(dsa_states_t *s, uint32_t state, int quick)
{
    int           rc;
    uint32_t      any, *mask;
    dsa_state_t  *st;

    st = s->state[state];

    assert(st->refs != 0);

    if (st->mask != NULL) {
        return DSA_OK;
    }

    rc = dsa_states_walk(s, state, quick, &mask, &any);

    if (rc != DSA_OK) {
        return rc;
    }

    /* another thread may have made it while this one paused */

    if (st->mask != NULL) {
        free(mask);
        return DSA_OK;
    }

    dsa_states_mask_room(s);

    st->mask = mask;
    st->empty = !any;
    dsa_states_use(s, state);
    dsa_states_charge(s);

    return DSA_OK;
}


/* Drops the masks that were used least recently, until there is room. */

static void
dsa_states_mask_room(dsa_states_t *s)
{
    size_t    most;
    uint32_t  oldest;

    most = dsa_states_short(s) ? DSA_STATES_SHARE / 2 : DSA_STATES_MASKS;

    while (s->n_masks != 0
           && (s->n_masks + 1) * dsa_states_mask_size(s) > most)
    {
        oldest = s->oldest;
        dsa_states_unlink(s, oldest);
        free(s->state[oldest]->mask);
        s->state[oldest]->mask = NULL;
    }
}


size_t
dsa_states_mask_size(const dsa_states_t *s)
{
    return ((size_t) s->words + 1) * sizeof(uint32_t);
}


/*
 * Makes the mask of the state's tokens; *any is 1 if it has a bit.  DSA_AGAIN
 * or DSA_ERROR: as dsa_states_make().
 */

static int
dsa_states_walk(dsa_states_t *s, uint32_t state, int quick, uint32_t **out,
    uint32_t *any)
{
    int        rc;
    uint32_t  *mask, *path;

    mask = calloc(1, dsa_states_mask_size(s));
    path = malloc(((size_t) s->v->max_depth + 1) * sizeof(uint32_t));

    if (mask == NULL || path == NULL) {
        free(mask);
        free(path);
        return DSA_ERROR;
    }

    path[0] = state;
    rc = dsa_states_trie(s, path, mask, quick, any);
    free(path);

    if (rc == DSA_OK) {
        rc = dsa_states_controls(s, state, mask, any);
    }

    if (rc != DSA_OK) {
        free(mask);
        return rc;
    }

    *out = mask;

    return DSA_OK;
}


/*
 * Walks the trie: a token is permitted if its bytes lead to a state.  The work
 * is bounded, because in an ambiguous grammar almost every node of the trie
 * leads to another, large state.  path[0] is the state.
 */

static int
dsa_states_trie(dsa_states_t *s, uint32_t *path, uint32_t *mask, int quick,
    uint32_t *any)
{
    int                      rc;
    uint32_t                 i, k, top, next, steps;
    uint64_t                 work, before;
    const dsa_vocabulary_t  *v;

    v = s->v;
    rc = DSA_OK;
    *any = 0;
    top = 0;
    work = 0;
    steps = 0;
    i = 0;

    while (i < v->n_nodes) {

        if (v->depth[i] == 1) {
            top = i;

        } else if (work > DSA_STATES_WORK) {
            i = v->skip[top];
            continue;
        }

        if (quick && steps >= DSA_STATES_QUICK) {
            rc = DSA_AGAIN;
            break;
        }

        if (steps >= DSA_STATES_PAUSE) {
            dsa_states_pause(s, path, v->depth[i]);
            steps = 0;
        }

        s->path = path;
        s->n_path = v->depth[i];

        before = dsa_closure_work(s->closure);
        next = dsa_states_step(s, path[s->n_path - 1], s->a->class[v->byte[i]]);
        before = dsa_closure_work(s->closure) - before;

        work += before;
        steps += 1 + (uint32_t) before;

        if (next == DSA_STATE_NONE) {
            i = v->skip[i];
            continue;
        }

        if (next == DSA_STATE_FULL) {
            rc = DSA_ERROR;
            break;
        }

        path[s->n_path] = next;

        for (k = v->first[i]; k < v->first[i + 1]; k++) {
            mask[v->ids[k] / 32] |= 1U << v->ids[k] % 32;
            *any = 1;
        }

        i++;
    }

    s->n_path = 0;

    return rc;
}


/* Releases the lock for a moment; the states of the path keep their numbers. */

static void
dsa_states_pause(dsa_states_t *s, const uint32_t *path, uint32_t n)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        s->state[path[i]]->refs++;
    }

    s->n_path = 0;

    dsa_states_unlock(s);
    dsa_states_lock(s);

    for (i = 0; i < n; i++) {
        s->state[path[i]]->refs--;
    }
}


/* Permits the control tokens of the tool syntax, if they may follow. */

static int
dsa_states_controls(dsa_states_t *s, uint32_t state, uint32_t *mask,
    uint32_t *any)
{
    uint32_t                 i, id, next;
    const dsa_vocabulary_t  *v;

    v = s->v;

    for (i = 0; i < s->a->n_controls; i++) {
        if (s->control[i] == DSA_VOCABULARY_NONE) {
            continue;
        }

        next = dsa_states_step(s, state, s->a->n_classes + i);

        if (next == DSA_STATE_FULL) {
            return DSA_ERROR;
        }

        if (next == DSA_STATE_NONE) {
            continue;
        }

        for (id = s->control[i]; id < v->size; id++) {
            if (v->control[id] && dsa_str_eq(v->bytes[id], s->a->control[i])
                && !dsa_vocabulary_is_end(v, id))
            {
                mask[id / 32] |= 1U << id % 32;
                *any = 1;
            }
        }
    }

    return DSA_OK;
}


static void
dsa_states_use(dsa_states_t *s, uint32_t state)
{
    dsa_state_t  *st;

    st = s->state[state];

    st->older = s->newest;
    st->newer = DSA_STATE_NONE;

    if (s->newest != DSA_STATE_NONE) {
        s->state[s->newest]->newer = state;

    } else {
        s->oldest = state;
    }

    s->newest = state;
    s->n_masks++;
}


void
dsa_states_unlink(dsa_states_t *s, uint32_t state)
{
    dsa_state_t  *st;

    st = s->state[state];

    if (st->newer != DSA_STATE_NONE) {
        s->state[st->newer]->older = st->older;

    } else {
        s->newest = st->older;
    }

    if (st->older != DSA_STATE_NONE) {
        s->state[st->older]->newer = st->newer;

    } else {
        s->oldest = st->newer;
    }

    s->n_masks--;
}
