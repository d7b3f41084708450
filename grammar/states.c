
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdlib.h>

#include "grammar/states_table.h"


#define DSA_STATES_ROOM     256         /* states at first; a power of 2 */
#define DSA_STATES_STEP     (1U << 20)  /* bytes that a step needs at most,
                                           and that a drop has to free */


static dsa_state_t *dsa_states_new(dsa_states_t *s, uint32_t hash);
static void dsa_states_drop(dsa_states_t *s);
static void dsa_states_rehash(dsa_states_t *s);
static int dsa_states_grow(dsa_states_t *s);
static size_t dsa_states_used(const dsa_states_t *s);
static void dsa_states_state_free(dsa_states_t *s, uint32_t state);
static size_t dsa_states_size(const dsa_states_t *s, uint32_t n);


dsa_states_t *
dsa_states_create(const dsa_automaton_t *a, const dsa_vocabulary_t *v)
{
    uint32_t       i, controls;
    dsa_states_t  *s;

    s = calloc(1, sizeof(dsa_states_t));

    if (s == NULL) {
        return NULL;
    }

    s->a = a;
    s->v = v;
    s->words = (v->size + 31) / 32;
    s->newest = DSA_STATE_NONE;
    s->oldest = DSA_STATE_NONE;
    s->size = DSA_STATES_ROOM;
    controls = 0;

    for (i = 0; i < a->n_controls; i++) {
        s->control[i] = dsa_vocabulary_control(v, a->control[i]);
        controls |= (uint32_t) (s->control[i] != DSA_VOCABULARY_NONE) << i;
    }

    s->closure = dsa_closure_create(a, controls, v->max_depth);
    s->state = calloc(s->size, sizeof(dsa_state_t *));
    s->unused = malloc(s->size * sizeof(uint32_t));
    s->hash = malloc(4 * s->size * sizeof(uint32_t));

    (void) pthread_mutex_init(&s->gate, NULL);
    (void) pthread_mutex_init(&s->lock, NULL);

    if (s->closure == NULL || s->state == NULL || s->unused == NULL
        || s->hash == NULL)
    {
        dsa_states_free(s);
        return NULL;
    }

    memset(s->hash, 0xff, 4 * s->size * sizeof(uint32_t));
    dsa_states_charge(s);

    return s;
}


void
dsa_states_free(dsa_states_t *s)
{
    uint32_t  i;

    if (s == NULL) {
        return;
    }

    for (i = 0; i < s->n; i++) {
        if (s->state[i] != NULL) {
            free(s->state[i]->mask);
            free(s->state[i]);
        }
    }

    (void) atomic_fetch_sub(&s->v->memory->used, s->charged);

    dsa_closure_free(s->closure);
    (void) pthread_mutex_destroy(&s->lock);
    (void) pthread_mutex_destroy(&s->gate);
    free(s->state);
    free(s->unused);
    free(s->hash);
    free(s);
}


void
dsa_states_lock(dsa_states_t *s)
{
    (void) pthread_mutex_lock(&s->gate);
    (void) pthread_mutex_lock(&s->lock);
    (void) pthread_mutex_unlock(&s->gate);
}


void
dsa_states_unlock(dsa_states_t *s)
{
    (void) pthread_mutex_unlock(&s->lock);
}


size_t
dsa_states_bytes(const dsa_states_t *s)
{
    return atomic_load_explicit(&s->charged, memory_order_relaxed);
}


uint32_t
dsa_states_start(dsa_states_t *s)
{
    if (dsa_states_room(s) != DSA_OK
        || dsa_closure_start(s->closure) != DSA_OK)
    {
        return DSA_STATE_FULL;
    }

    return dsa_states_intern(s);
}


uint32_t
dsa_states_token(dsa_states_t *s, uint32_t state, uint32_t id)
{
    size_t     i;
    uint32_t   k;
    dsa_str_t  bytes;

    if (id >= s->v->size || s->v->bytes[id].len == 0
        || dsa_vocabulary_is_end(s->v, id))
    {
        return DSA_STATE_NONE;
    }

    bytes = s->v->bytes[id];

    if (s->v->control[id]) {
        for (k = 0; k < s->a->n_controls; k++) {
            if (dsa_str_eq(bytes, s->a->control[k])) {
                return dsa_states_step(s, state, s->a->n_classes + k);
            }
        }

        return DSA_STATE_NONE;
    }

    for (i = 0; i < bytes.len && state < DSA_STATES_UNKNOWN; i++) {
        state = dsa_states_step(s, state,
                                s->a->class[(uint8_t) bytes.data[i]]);
    }

    return state;
}


int
dsa_states_complete(const dsa_states_t *s, uint32_t state)
{
    return (int) s->state[state]->complete;
}


void
dsa_states_retain(dsa_states_t *s, uint32_t state)
{
    s->state[state]->refs++;
}


void
dsa_states_release(dsa_states_t *s, uint32_t state)
{
    assert(s->state[state]->refs != 0);

    s->state[state]->refs--;
    s->n_loose += s->state[state]->refs == 0;
}


uint32_t
dsa_states_step(dsa_states_t *s, uint32_t state, uint32_t class)
{
    uint32_t      next;
    dsa_state_t  *st;

    st = s->state[state];
    next = st->next[class];

    if (next != DSA_STATES_UNKNOWN) {
        return next;
    }

    st->refs++;

    if (dsa_states_room(s) != DSA_OK
        || dsa_closure_step(s->closure, st->config, st->n, class) != DSA_OK)
    {
        next = DSA_STATE_FULL;

    } else if (dsa_closure_empty(s->closure)) {
        next = DSA_STATE_NONE;

    } else {
        next = dsa_states_intern(s);
    }

    st->refs--;

    if (next != DSA_STATE_FULL) {
        st->next[class] = next;
    }

    return next;
}


/*
 * Makes room for one step.  What is retained stays, so the next drop is due
 * when the states have doubled, or, at the limit, when it can free a part of
 * them that is worth its time.  DSA_ERROR: too much is retained.
 */

int
dsa_states_room(dsa_states_t *s)
{
    int     few;
    size_t  used, most;

    few = dsa_states_short(s);
    used = dsa_states_used(s);
    most = (few ? DSA_STATES_SHARE : DSA_STATES_MOST) - DSA_STATES_STEP;

    if ((used > (few ? DSA_STATES_SHARE / 2 : DSA_STATES_BYTES)
         && used > 2 * s->kept)
        || (used > most && (used > s->kept + DSA_STATES_STEP
                            || s->n_loose > s->n_kept / 8)))
    {
        dsa_states_drop(s);
        used = s->kept;
    }

    return used <= most ? DSA_OK : DSA_ERROR;
}


/* The bytes of states and frames that are in use. */

static size_t
dsa_states_used(const dsa_states_t *s)
{
    return s->bytes + dsa_closure_used(s->closure);
}


/* 1: the grammars of the vocabulary take more than they should. */

int
dsa_states_short(const dsa_states_t *s)
{
    return atomic_load_explicit(&s->v->memory->used, memory_order_relaxed)
           > s->v->memory->most;
}


void
dsa_states_charge(dsa_states_t *s)
{
    size_t  now, before;

    now = sizeof(dsa_states_t) + s->bytes + dsa_closure_bytes(s->closure)
          + s->size * (sizeof(dsa_state_t *) + 5 * sizeof(uint32_t))
          + s->n_masks * dsa_states_mask_size(s);
    before = atomic_load_explicit(&s->charged, memory_order_relaxed);

    /* an unsigned difference, which may be negative */

    (void) atomic_fetch_add_explicit(&s->v->memory->used, now - before,
                                     memory_order_relaxed);
    atomic_store_explicit(&s->charged, now, memory_order_relaxed);
}


/*
 * The number of the state that the closure has found, or DSA_STATE_FULL: no
 * memory.
 */

uint32_t
dsa_states_intern(dsa_states_t *s)
{
    uint32_t             i, n, bucket, hash, state;
    dsa_state_t         *st;
    const dsa_config_t  *config;

    if (s->n_free == 0 && s->n == s->size && dsa_states_grow(s) != DSA_OK) {
        return DSA_STATE_FULL;
    }

    config = dsa_closure_configs(s->closure, &n, &hash);

    for (bucket = hash % (4 * s->size); s->hash[bucket] != DSA_STATE_NONE;
         bucket = (bucket + 1) % (4 * s->size))
    {
        state = s->hash[bucket];
        st = s->state[state];

        if (st->hash == hash && st->n == n
            && (n == 0
                || memcmp(st->config, config, n * sizeof(dsa_config_t)) == 0)
            && st->complete == (uint32_t) dsa_closure_complete(s->closure))
        {
            return state;
        }
    }

    st = dsa_states_new(s, hash);

    if (st == NULL) {
        return DSA_STATE_FULL;
    }

    for (i = 0; i < s->a->n_classes + s->a->n_controls; i++) {
        st->next[i] = DSA_STATES_UNKNOWN;
    }

    state = s->n_free != 0 ? s->unused[--s->n_free] : s->n++;

    s->state[state] = st;
    s->hash[bucket] = state;

    dsa_states_charge(s);

    return state;
}


/* Doubles the room for states. */

static int
dsa_states_grow(dsa_states_t *s)
{
    uint32_t       size, *unused, *hash;
    dsa_state_t  **state;

    size = 2 * s->size;
    state = realloc(s->state, size * sizeof(dsa_state_t *));

    if (state == NULL) {
        return DSA_ERROR;
    }

    s->state = state;
    unused = realloc(s->unused, size * sizeof(uint32_t));

    if (unused == NULL) {
        return DSA_ERROR;
    }

    s->unused = unused;
    hash = malloc(4 * (size_t) size * sizeof(uint32_t));

    if (hash == NULL) {
        return DSA_ERROR;
    }

    free(s->hash);

    s->hash = hash;
    s->size = size;

    dsa_states_rehash(s);

    return DSA_OK;
}


static dsa_state_t *
dsa_states_new(dsa_states_t *s, uint32_t hash)
{
    uint32_t             n, ignored;
    dsa_state_t         *st;
    const dsa_config_t  *config;

    config = dsa_closure_configs(s->closure, &n, &ignored);
    st = calloc(1, dsa_states_size(s, n));

    if (st == NULL) {
        return NULL;
    }

    s->bytes += dsa_states_size(s, n);

    st->hash = hash;
    st->n = n;
    st->complete = (uint32_t) dsa_closure_complete(s->closure);
    st->common = DSA_STATES_UNKNOWN;
    st->config = (dsa_config_t *) (st + 1);
    st->next = (uint32_t *) (st->config + n);

    if (n != 0) {
        memcpy(st->config, config, n * sizeof(dsa_config_t));
    }

    return st;
}


/*
 * Drops the states that nothing retains, and the frames that no state needs.
 * The configurations that the closure has found stay valid.
 */

static void
dsa_states_drop(dsa_states_t *s)
{
    uint32_t      i, k;
    dsa_state_t  *st;

    for (i = 0; i < s->n_path; i++) {
        s->state[s->path[i]]->refs++;
    }

    dsa_closure_mark(s->closure);

    for (i = 0; i < s->n; i++) {
        st = s->state[i];

        if (st == NULL) {
            continue;
        }

        if (st->refs == 0) {
            dsa_states_state_free(s, i);
            continue;
        }

        dsa_closure_keep(s->closure, st->config, st->n);

        for (k = 0; k < s->a->n_classes + s->a->n_controls; k++) {
            if (st->next[k] != DSA_STATE_NONE) {
                st->next[k] = DSA_STATES_UNKNOWN;
            }
        }
    }

    dsa_closure_sweep(s->closure);
    dsa_states_rehash(s);

    s->kept = dsa_states_used(s);
    s->n_kept = s->n - s->n_free;
    s->n_loose = 0;
    dsa_states_charge(s);

    for (i = 0; i < s->n_path; i++) {
        s->state[s->path[i]]->refs--;
    }
}


static void
dsa_states_rehash(dsa_states_t *s)
{
    uint32_t  i, bucket;

    memset(s->hash, 0xff, 4 * s->size * sizeof(uint32_t));

    for (i = 0; i < s->n; i++) {

        if (s->state[i] == NULL) {
            continue;
        }

        bucket = s->state[i]->hash % (4 * s->size);

        while (s->hash[bucket] != DSA_STATE_NONE) {
            bucket = (bucket + 1) % (4 * s->size);
        }

        s->hash[bucket] = i;
    }
}


static void
dsa_states_state_free(dsa_states_t *s, uint32_t state)
{
    uint32_t  common;

    if (s->state[state]->mask != NULL) {
        dsa_states_unlink(s, state);
        free(s->state[state]->mask);
    }

    common = s->state[state]->common;

    if (common != DSA_STATES_UNKNOWN && common != state) {
        dsa_states_release(s, common);
    }

    s->bytes -= dsa_states_size(s, s->state[state]->n);

    free(s->state[state]);

    s->state[state] = NULL;
    s->unused[s->n_free++] = state;
}


/* Bytes of a state with n configurations. */

static size_t
dsa_states_size(const dsa_states_t *s, uint32_t n)
{
    return sizeof(dsa_state_t) + n * sizeof(dsa_config_t)
           + (s->a->n_classes + s->a->n_controls) * sizeof(uint32_t);
}
