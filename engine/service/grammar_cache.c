
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "engine/service/grammar_cache.h"


#define DSA_GRAMMAR_DIGEST  32


typedef struct dsa_grammar_owner_s  dsa_grammar_owner_t;


typedef enum {
    DSA_GRAMMAR_MAKING = 0,             /* a thread compiles it */
    DSA_GRAMMAR_READY,
    DSA_GRAMMAR_REFUSED,
    DSA_GRAMMAR_FAILED                  /* no memory; it is not in the map */
} dsa_grammar_state_e;


struct dsa_grammar_entry_s {
    dsa_grammar_entry_t    *newer;      /* of the owner, by their last use */
    dsa_grammar_entry_t    *older;
    dsa_grammar_owner_t    *owner;
    dsa_grammar_state_e     state;
    dsa_grammar_t          *grammar;    /* READY */
    dsa_grammar_error_t    *refusal;    /* REFUSED */
    uint32_t                uses;       /* callers that have it or wait */
    size_t                  bytes;      /* when it was last released */
    uint8_t                 digest[DSA_GRAMMAR_DIGEST];
};


/* A tenant with entries. */

struct dsa_grammar_owner_s {
    dsa_grammar_owner_t    *prev;
    dsa_grammar_owner_t    *next;
    dsa_grammar_entry_t    *newest;
    dsa_grammar_entry_t    *oldest;
    uint32_t                n;          /* entries, */
    size_t                  bytes;      /* and their bytes, not in use */
    uint32_t                n_all;      /* entries */
    uint8_t                 tenant[DSA_GRAMMAR_CACHE_TENANT];
};


struct dsa_grammar_cache_s {
    dsa_str_t               control;    /* of the tool syntax */
    pthread_mutex_t         mutex;      /* protects all members */
    pthread_cond_t          made;       /* an entry has been made */
    dsa_map_t               entries;    /* by digest */
    dsa_map_t               owners;     /* by tenant */
    dsa_grammar_owner_t    *first;
    uint32_t                n;          /* entries, */
    size_t                  bytes;      /* and their bytes, not in use */
};


static dsa_grammar_entry_t *dsa_grammar_cache_add(dsa_grammar_cache_t *c,
    const uint8_t *tenant, const uint8_t *digest, size_t states);
static int dsa_grammar_cache_full(const dsa_grammar_cache_t *c,
    const uint8_t *tenant, size_t states);
static void dsa_grammar_cache_make(dsa_grammar_cache_t *c,
    dsa_grammar_entry_t *e, dsa_str_t spec, dsa_grammar_error_t *error);
static int dsa_grammar_cache_result(dsa_grammar_cache_t *c,
    dsa_grammar_entry_t *e, dsa_grammar_entry_t **out,
    dsa_grammar_error_t *error);
static void dsa_grammar_cache_drop(dsa_grammar_cache_t *c,
    dsa_grammar_entry_t *e);
static void dsa_grammar_cache_count(dsa_grammar_cache_t *c,
    const dsa_grammar_entry_t *e, int sign);
static dsa_grammar_entry_t *dsa_grammar_cache_evict(dsa_grammar_cache_t *c);
static dsa_grammar_owner_t *dsa_grammar_cache_most(
    const dsa_grammar_cache_t *c, int bytes);
static void dsa_grammar_cache_remove(dsa_grammar_cache_t *c,
    dsa_grammar_entry_t *e);
static void dsa_grammar_cache_free(dsa_grammar_entry_t *e);
static size_t dsa_grammar_cache_size(const dsa_grammar_entry_t *e);
static dsa_grammar_owner_t *dsa_grammar_cache_owner(dsa_grammar_cache_t *c,
    const uint8_t *tenant);
static void dsa_grammar_cache_own(dsa_grammar_cache_t *c,
    dsa_grammar_entry_t *e, dsa_grammar_owner_t *owner);
static void dsa_grammar_cache_disown(dsa_grammar_cache_t *c,
    dsa_grammar_entry_t *e);
static void dsa_grammar_cache_touch(dsa_grammar_cache_t *c,
    dsa_grammar_entry_t *e, const uint8_t *tenant);
static int dsa_grammar_cache_no_memory(dsa_grammar_error_t *error);


_Static_assert((int) DSA_GRAMMAR_CACHE_TENANT == (int) DSA_GRAMMAR_DIGEST,
               "keys of both maps have one length");


static inline dsa_str_t
dsa_grammar_key(const uint8_t *bytes)
{
    return dsa_str((const char *) bytes, DSA_GRAMMAR_DIGEST);
}


dsa_grammar_cache_t *
dsa_grammar_cache_create(dsa_str_t control)
{
    dsa_grammar_cache_t  *c;

    c = calloc(1, sizeof(dsa_grammar_cache_t));

    if (c == NULL) {
        return NULL;
    }

    c->control = control;
    (void) pthread_mutex_init(&c->mutex, NULL);
    (void) pthread_cond_init(&c->made, NULL);

    return c;
}


void
dsa_grammar_cache_destroy(dsa_grammar_cache_t *c)
{
    dsa_grammar_entry_t  *e;

    if (c == NULL) {
        return;
    }

    while (c->first != NULL) {
        e = c->first->oldest;

        assert(e->uses == 0);

        dsa_grammar_cache_remove(c, e);
        dsa_grammar_cache_free(e);
    }

    dsa_map_free(&c->entries);
    dsa_map_free(&c->owners);
    (void) pthread_cond_destroy(&c->made);
    (void) pthread_mutex_destroy(&c->mutex);
    free(c);
}


dsa_grammar_t *
dsa_grammar_entry_grammar(const dsa_grammar_entry_t *entry)
{
    return entry->grammar;
}


int
dsa_grammar_cache_get(dsa_grammar_cache_t *c, dsa_grammar_entry_t **entry,
    const uint8_t *tenant, dsa_str_t spec, size_t states, int compile,
    dsa_grammar_error_t *error)
{
    int                   rc;
    uint8_t               digest[DSA_GRAMMAR_DIGEST];
    dsa_grammar_entry_t  *e, *old;

    old = NULL;
    memset(error, 0, sizeof(dsa_grammar_error_t));

    if (EVP_Digest(spec.data, spec.len, digest, NULL, EVP_sha256(), NULL)
        != 1)
    {
        return dsa_grammar_cache_no_memory(error);
    }

    (void) pthread_mutex_lock(&c->mutex);

    e = dsa_map_find_pointer(&c->entries, dsa_grammar_key(digest));

    if (!compile && (e == NULL || e->state == DSA_GRAMMAR_MAKING)) {
        rc = DSA_AGAIN;

    } else if (e != NULL) {
        if (e->uses++ == 0) {
            dsa_grammar_cache_count(c, e, -1);
        }

        while (e->state == DSA_GRAMMAR_MAKING) {
            (void) pthread_cond_wait(&c->made, &c->mutex);
        }

        dsa_grammar_cache_touch(c, e, tenant);
        rc = dsa_grammar_cache_result(c, e, entry, error);

    } else {
        e = dsa_grammar_cache_add(c, tenant, digest, states);

        if (e != NULL) {
            dsa_grammar_cache_make(c, e, spec, error);
            rc = dsa_grammar_cache_result(c, e, entry, error);
            old = dsa_grammar_cache_evict(c);

        } else {
            rc = dsa_grammar_cache_no_memory(error);
        }
    }

    (void) pthread_mutex_unlock(&c->mutex);

    while (old != NULL) {
        e = old;
        old = e->older;
        dsa_grammar_cache_free(e);
    }

    return rc;
}


/*
 * An entry that its creator uses and will compile.  NULL: no memory.  The
 * caller holds the mutex, as the callers of all functions below do.
 */

static dsa_grammar_entry_t *
dsa_grammar_cache_add(dsa_grammar_cache_t *c, const uint8_t *tenant,
    const uint8_t *digest, size_t states)
{
    dsa_grammar_entry_t  *e;
    dsa_grammar_owner_t  *owner;

    if (dsa_grammar_cache_full(c, tenant, states)) {
        return NULL;
    }

    e = calloc(1, sizeof(dsa_grammar_entry_t));
    owner = e != NULL ? dsa_grammar_cache_owner(c, tenant) : NULL;

    if (owner == NULL) {
        free(e);
        return NULL;
    }

    e->uses = 1;
    memcpy(e->digest, digest, sizeof(e->digest));
    dsa_grammar_cache_own(c, e, owner);

    if (dsa_map_add_pointer(&c->entries, dsa_grammar_key(e->digest), e)
        != DSA_OK)
    {
        dsa_grammar_cache_disown(c, e);
        free(e);
        return NULL;
    }

    return e;
}


/*
 * 1: the grammars take so much memory that the tenant gets no new one.  The
 * sizes are added up only when the states are many, or the entries.
 */

static int
dsa_grammar_cache_full(const dsa_grammar_cache_t *c, const uint8_t *tenant,
    size_t states)
{
    size_t                      all, own, n;
    dsa_grammar_entry_t        *e;
    const dsa_grammar_owner_t  *owner;

    if (states < DSA_VOCABULARY_MEMORY
        && c->entries.n < DSA_GRAMMAR_CACHE_MOST)
    {
        return 0;
    }

    all = 0;
    own = 0;

    for (owner = c->first; owner != NULL; owner = owner->next) {
        n = 0;

        for (e = owner->oldest; e != NULL; e = e->newer) {
            n += dsa_grammar_cache_size(e);
        }

        all += n;

        if (memcmp(owner->tenant, tenant, sizeof(owner->tenant)) == 0) {
            own = n;
        }
    }

    return all > 2UL * DSA_GRAMMAR_CACHE_ALL
           || (all > DSA_GRAMMAR_CACHE_ALL && own > all / 2);
}


/* Compiles an entry without the mutex. */

static void
dsa_grammar_cache_make(dsa_grammar_cache_t *c, dsa_grammar_entry_t *e,
    dsa_str_t spec, dsa_grammar_error_t *error)
{
    int                   rc;
    uint64_t              start;
    dsa_grammar_t        *grammar;
    dsa_grammar_error_t  *refusal;

    (void) pthread_mutex_unlock(&c->mutex);

    start = dsa_clock_us();
    refusal = NULL;
    rc = dsa_grammar_compile(&grammar, spec, c->control, error);

    if (rc != DSA_OK && !error->no_memory) {
        refusal = malloc(sizeof(dsa_grammar_error_t));
    }

    dsa_log_debug("compiled a structure of %zu bytes in %u us, %u steps: %s",
                  spec.len, (unsigned) (dsa_clock_us() - start), error->work,
                  rc == DSA_OK ? "accepted"
                  : error->no_memory ? "no memory" : "refused");

    (void) pthread_mutex_lock(&c->mutex);

    if (rc == DSA_OK) {
        e->state = DSA_GRAMMAR_READY;
        e->grammar = grammar;

    } else if (refusal != NULL) {
        *refusal = *error;
        refusal->work = 0;
        e->state = DSA_GRAMMAR_REFUSED;
        e->refusal = refusal;

    } else {
        e->state = DSA_GRAMMAR_FAILED;
        (void) dsa_map_delete(&c->entries, dsa_grammar_key(e->digest));
    }

    (void) pthread_cond_broadcast(&c->made);
}


/* What a caller gets of an entry that it uses. */

static int
dsa_grammar_cache_result(dsa_grammar_cache_t *c, dsa_grammar_entry_t *e,
    dsa_grammar_entry_t **out, dsa_grammar_error_t *error)
{
    uint32_t  work;

    if (e->state == DSA_GRAMMAR_READY) {
        *out = e;
        return DSA_OK;
    }

    if (e->state == DSA_GRAMMAR_REFUSED) {
        work = error->work;
        *error = *e->refusal;
        error->work = work;

    } else {
        (void) dsa_grammar_cache_no_memory(error);
    }

    dsa_grammar_cache_drop(c, e);

    return DSA_ERROR;
}


void
dsa_grammar_cache_release(dsa_grammar_cache_t *c, dsa_grammar_entry_t *entry)
{
    (void) pthread_mutex_lock(&c->mutex);
    dsa_grammar_cache_drop(c, entry);
    (void) pthread_mutex_unlock(&c->mutex);
}


/* Ends one use of an entry. */

static void
dsa_grammar_cache_drop(dsa_grammar_cache_t *c, dsa_grammar_entry_t *e)
{
    if (--e->uses != 0) {
        return;
    }

    if (e->state == DSA_GRAMMAR_FAILED) {
        dsa_grammar_cache_disown(c, e);
        free(e);
        return;
    }

    e->bytes = dsa_grammar_cache_size(e);
    dsa_grammar_cache_count(c, e, 1);
}


/* Counts an entry among those that are not in use, or takes it back. */

static void
dsa_grammar_cache_count(dsa_grammar_cache_t *c, const dsa_grammar_entry_t *e,
    int sign)
{
    c->n += (uint32_t) sign;
    e->owner->n += (uint32_t) sign;
    c->bytes += (size_t) sign * e->bytes;
    e->owner->bytes += (size_t) sign * e->bytes;
}


/*
 * Removes entries until the rest does not exceed the limits.  Returns them, a
 * list by older: to free one can take milliseconds.
 */

static dsa_grammar_entry_t *
dsa_grammar_cache_evict(dsa_grammar_cache_t *c)
{
    dsa_grammar_entry_t  *e, *list;

    list = NULL;

    while (c->n > DSA_GRAMMAR_CACHE_MOST
           || c->bytes > DSA_GRAMMAR_CACHE_BYTES)
    {
        e = dsa_grammar_cache_most(c, c->bytes > DSA_GRAMMAR_CACHE_BYTES)
            ->oldest;

        while (e->uses != 0) {
            e = e->newer;
        }

        dsa_grammar_cache_remove(c, e);
        e->older = list;
        list = e;
    }

    return list;
}


/* The tenant with the most entries, or bytes, that are not in use. */

static dsa_grammar_owner_t *
dsa_grammar_cache_most(const dsa_grammar_cache_t *c, int bytes)
{
    dsa_grammar_owner_t  *owner, *most;

    most = c->first;

    for (owner = c->first; owner != NULL; owner = owner->next) {
        if (bytes ? owner->bytes > most->bytes : owner->n > most->n) {
            most = owner;
        }
    }

    return most;
}


/* Removes an entry that is not in use. */

static void
dsa_grammar_cache_remove(dsa_grammar_cache_t *c, dsa_grammar_entry_t *e)
{
    dsa_grammar_cache_count(c, e, -1);
    dsa_grammar_cache_disown(c, e);

    (void) dsa_map_delete(&c->entries, dsa_grammar_key(e->digest));
}


static void
dsa_grammar_cache_free(dsa_grammar_entry_t *e)
{
    dsa_grammar_free(e->grammar);
    free(e->refusal);
    free(e);
}


static size_t
dsa_grammar_cache_size(const dsa_grammar_entry_t *e)
{
    return sizeof(dsa_grammar_entry_t)
           + (e->grammar != NULL ? dsa_grammar_bytes(e->grammar) : 0)
           + (e->refusal != NULL ? sizeof(dsa_grammar_error_t) : 0);
}


/* Finds or adds a tenant, which the caller gives an entry.  NULL: no memory. */

static dsa_grammar_owner_t *
dsa_grammar_cache_owner(dsa_grammar_cache_t *c, const uint8_t *tenant)
{
    dsa_grammar_owner_t  *owner;

    owner = dsa_map_find_pointer(&c->owners, dsa_grammar_key(tenant));

    if (owner != NULL) {
        return owner;
    }

    owner = calloc(1, sizeof(dsa_grammar_owner_t));

    if (owner == NULL) {
        return NULL;
    }

    memcpy(owner->tenant, tenant, sizeof(owner->tenant));

    if (dsa_map_add_pointer(&c->owners, dsa_grammar_key(owner->tenant), owner)
        != DSA_OK)
    {
        free(owner);
        return NULL;
    }

    owner->next = c->first;

    if (c->first != NULL) {
        c->first->prev = owner;
    }

    c->first = owner;

    return owner;
}


/* Makes an entry the newest one of a tenant. */

static void
dsa_grammar_cache_own(dsa_grammar_cache_t *c, dsa_grammar_entry_t *e,
    dsa_grammar_owner_t *owner)
{
    e->owner = owner;
    e->newer = NULL;
    e->older = owner->newest;

    if (owner->newest != NULL) {
        owner->newest->newer = e;

    } else {
        owner->oldest = e;
    }

    owner->newest = e;
    owner->n_all++;
}


/* Takes an entry from its tenant, and frees a tenant without entries. */

static void
dsa_grammar_cache_disown(dsa_grammar_cache_t *c, dsa_grammar_entry_t *e)
{
    dsa_grammar_owner_t  *owner;

    owner = e->owner;

    if (e->newer != NULL) {
        e->newer->older = e->older;

    } else {
        owner->newest = e->older;
    }

    if (e->older != NULL) {
        e->older->newer = e->newer;

    } else {
        owner->oldest = e->newer;
    }

    e->owner = NULL;

    if (--owner->n_all != 0) {
        return;
    }

    if (owner->prev != NULL) {
        owner->prev->next = owner->next;

    } else {
        c->first = owner->next;
    }

    if (owner->next != NULL) {
        owner->next->prev = owner->prev;
    }

    (void) dsa_map_delete(&c->owners, dsa_grammar_key(owner->tenant));
    free(owner);
}


/*
 * The tenant uses an entry, which is in use.  Without memory for a new tenant,
 * the entry stays with the one that has it.
 */

static void
dsa_grammar_cache_touch(dsa_grammar_cache_t *c, dsa_grammar_entry_t *e,
    const uint8_t *tenant)
{
    dsa_grammar_owner_t  *owner;

    owner = dsa_grammar_cache_owner(c, tenant);

    if (owner == NULL) {
        return;
    }

    /* keep the owner, which may have no other entry */

    owner->n_all++;
    dsa_grammar_cache_disown(c, e);
    dsa_grammar_cache_own(c, e, owner);
    owner->n_all--;
}


static int
dsa_grammar_cache_no_memory(dsa_grammar_error_t *error)
{
    error->no_memory = 1;

    return DSA_ERROR;
}
