
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/service/grammar_cache.h"
#include "engine/service/grammars.h"
#include "engine/service/mask_thread.h"


struct dsa_grammars_s {
    const dsa_tokenizer_t  *tokenizer;
    uint32_t                size;           /* ids of the model */
    dsa_ends_t              ends;

    pthread_mutex_t         making;         /* for the vocabulary */
    dsa_vocabulary_t       *vocabulary;

    dsa_grammar_cache_t    *cache;
    dsa_mask_thread_t       masks;
};


struct dsa_constraint_s {
    dsa_grammars_t         *grammars;
    dsa_grammar_entry_t    *entry;
    dsa_matcher_t          *matcher;
    dsa_mask_job_t          job;
    uint32_t                pushed;         /* 1: the job was pushed for the
                                               next token */
    dsa_constraint_stats_t  stats;
};


static dsa_vocabulary_t *dsa_grammars_vocabulary(dsa_grammars_t *g);
static int dsa_grammars_made(dsa_grammars_t *g);
static dsa_vocabulary_t *dsa_grammars_make(const dsa_grammars_t *g);
static int dsa_grammars_add(const dsa_grammars_t *g, dsa_vocabulary_t *v);
static int dsa_grammars_no_memory(dsa_grammar_error_t *error);
static void dsa_constraint_release(void *data);
static void dsa_constraint_own(dsa_constraint_t *c);
static void dsa_constraint_time(dsa_constraint_t *c, uint64_t start);


dsa_grammars_t *
dsa_grammars_create(const dsa_tokenizer_t *t,
    const dsa_model_config_t *config)
{
    dsa_grammars_t  *g;

    g = calloc(1, sizeof(dsa_grammars_t));

    if (g == NULL) {
        return NULL;
    }

    g->tokenizer = t;
    g->size = config->vocab_size;
    g->ends = config->ends;
    g->cache = dsa_grammar_cache_create(dsa_strz(config->prompt.tool));

    if (g->cache == NULL) {
        free(g);
        return NULL;
    }

    (void) pthread_mutex_init(&g->making, NULL);
    dsa_mask_thread_init(&g->masks);

    return g;
}


int
dsa_grammars_start(dsa_grammars_t *g, void (*wake)(void *data), void *data,
    dsa_err_t *err)
{
    return dsa_mask_thread_start(&g->masks, wake, data, err);
}


void
dsa_grammars_stop(dsa_grammars_t *g)
{
    if (g != NULL) {
        dsa_mask_thread_stop(&g->masks);
    }
}


void
dsa_grammars_destroy(dsa_grammars_t *g)
{
    if (g == NULL) {
        return;
    }

    dsa_grammar_cache_destroy(g->cache);
    dsa_mask_thread_destroy(&g->masks);
    dsa_vocabulary_free(g->vocabulary);
    (void) pthread_mutex_destroy(&g->making);
    free(g);
}


void
dsa_grammars_warm(dsa_grammars_t *g)
{
    if (g != NULL) {
        (void) dsa_grammars_vocabulary(g);
    }
}


/* Makes the vocabulary.  NULL: out of memory. */

static dsa_vocabulary_t *
dsa_grammars_vocabulary(dsa_grammars_t *g)
{
    dsa_vocabulary_t  *v;

    (void) pthread_mutex_lock(&g->making);

    if (g->vocabulary == NULL) {
        g->vocabulary = dsa_grammars_make(g);
    }

    v = g->vocabulary;

    (void) pthread_mutex_unlock(&g->making);

    return v;
}


/* 1: the vocabulary is made. */

static int
dsa_grammars_made(dsa_grammars_t *g)
{
    int  made;

    if (pthread_mutex_trylock(&g->making) != 0) {
        return 0;
    }

    made = g->vocabulary != NULL;

    (void) pthread_mutex_unlock(&g->making);

    return made;
}


static dsa_vocabulary_t *
dsa_grammars_make(const dsa_grammars_t *g)
{
    uint64_t           start;
    dsa_vocabulary_t  *v;

    start = dsa_clock_us();
    v = dsa_vocabulary_create(g->size);

    if (v == NULL || dsa_grammars_add(g, v) != DSA_OK
        || dsa_vocabulary_end(v, g->ends.id, g->ends.n) != DSA_OK
        || dsa_vocabulary_seal(v) != DSA_OK)
    {
        dsa_vocabulary_free(v);
        return NULL;
    }

    dsa_log_debug("made the vocabulary for constrained answers of %u tokens "
                  "in %u ms", dsa_tokenizer_size(g->tokenizer),
                  (unsigned) ((dsa_clock_us() - start) / 1000));

    return v;
}


/*
 * Adds the tokens.  Ids without a token are not added, and are never
 * permitted.
 */

static int
dsa_grammars_add(const dsa_grammars_t *g, dsa_vocabulary_t *v)
{
    int        rc;
    uint32_t   id;
    dsa_str_t  bytes;

    for (id = 0; id < dsa_tokenizer_size(g->tokenizer); id++) {
        bytes = dsa_token_bytes(g->tokenizer, id);

        if (bytes.len == 0) {
            continue;
        }

        rc = dsa_token_is_special(g->tokenizer, id)
             ? dsa_vocabulary_add_control(v, id, bytes)
             : dsa_vocabulary_add(v, id, bytes);

        if (rc != DSA_OK) {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


int
dsa_constraint_create(dsa_constraint_t **out, dsa_grammars_t *g,
    const uint8_t *tenant, dsa_str_t spec, dsa_str_t begin, int compile,
    dsa_grammar_error_t *error)
{
    int                rc;
    dsa_constraint_t  *c;
    dsa_vocabulary_t  *v;

    memset(error, 0, sizeof(dsa_grammar_error_t));

    if (!compile && !dsa_grammars_made(g)) {
        return DSA_AGAIN;
    }

    v = dsa_grammars_vocabulary(g);
    c = calloc(1, sizeof(dsa_constraint_t));

    if (v == NULL || c == NULL) {
        free(c);
        return dsa_grammars_no_memory(error);
    }

    c->grammars = g;

    rc = dsa_grammar_cache_get(g->cache, &c->entry, tenant, spec,
                               dsa_vocabulary_used(v), compile, error);

    if (rc != DSA_OK) {
        free(c);
        return rc;
    }

    c->matcher = dsa_matcher_create(dsa_grammar_entry_grammar(c->entry), v,
                                    begin);

    if (c->matcher == NULL) {
        dsa_constraint_free(c);
        return dsa_grammars_no_memory(error);
    }

    c->job.matcher = c->matcher;
    c->job.free = dsa_constraint_release;
    c->job.owner = c;

    *out = c;

    return DSA_OK;
}


void
dsa_constraint_free(dsa_constraint_t *c)
{
    if (c != NULL && dsa_mask_thread_drop(&c->grammars->masks, &c->job)) {
        dsa_constraint_release(c);
    }
}


static void
dsa_constraint_release(void *data)
{
    dsa_constraint_t  *c = data;

    dsa_matcher_free(c->matcher);
    dsa_grammar_cache_release(c->grammars->cache, c->entry);
    free(c);
}


static int
dsa_grammars_no_memory(dsa_grammar_error_t *error)
{
    error->no_memory = 1;

    return DSA_ERROR;
}


int
dsa_constraint_failed(const dsa_constraint_t *c)
{
    return dsa_matcher_failed(c->matcher);
}


int
dsa_constraint_accept(dsa_constraint_t *c, uint32_t id)
{
    dsa_constraint_own(c);
    c->pushed = 0;

    return dsa_matcher_accept(c->matcher, id);
}


int
dsa_constraint_quick(dsa_constraint_t *c)
{
    return dsa_matcher_ready(c->matcher);
}


void
dsa_constraint_warm(dsa_constraint_t *c)
{
    dsa_matcher_warm(c->matcher);
}


uint32_t
dsa_constraint_ready(dsa_constraint_t *c, const uint32_t *drafts,
    uint32_t n_drafts)
{
    int       ready;
    uint32_t  i;
    uint64_t  start;

    if (c->pushed && !dsa_mask_thread_done(&c->grammars->masks, &c->job)) {
        return 0;
    }

    if (!c->grammars->masks.running) {
        return n_drafts + 1;
    }

    start = dsa_clock_us();
    ready = c->pushed || dsa_matcher_ready(c->matcher);

    for (i = 0; ready && i < n_drafts; i++) {
        if (dsa_matcher_draft(c->matcher, drafts[i]) != DSA_OK) {

            /* no mask is made behind this draft */

            i = n_drafts;
            break;
        }

        if (!dsa_matcher_ready(c->matcher)) {
            break;
        }
    }

    dsa_matcher_undo(c->matcher);
    dsa_constraint_time(c, start);

    if (ready) {
        return i + 1;
    }

    /* with drafts a step may be in flight; its tokens would wait for the job */

    if (n_drafts == 0) {
        c->pushed = 1;
        c->stats.by_thread++;
        dsa_mask_thread_push(&c->grammars->masks, &c->job);
    }

    return 0;
}


/* Ensures that the thread for masks does not use the matcher. */

static void
dsa_constraint_own(dsa_constraint_t *c)
{
    if (c->pushed) {
        dsa_mask_thread_cancel(&c->grammars->masks, &c->job);
    }
}


void
dsa_constraint_mask(dsa_constraint_t *c, const uint32_t *drafts,
    uint32_t n_drafts, uint32_t first, uint32_t *mask, uint32_t words)
{
    uint32_t  i;
    uint64_t  start;

    start = dsa_clock_us();

    dsa_constraint_own(c);

    for (i = 0; i <= n_drafts; i++) {
        if (i != 0
            && dsa_matcher_draft(c->matcher, drafts[i - 1]) != DSA_OK)
        {
            /* this draft and those after it cannot be accepted */

            break;
        }

        if (i >= first) {
            dsa_matcher_mask(c->matcher, mask, words);
            mask += words;
        }
    }

    dsa_matcher_undo(c->matcher);

    c->stats.n++;
    dsa_constraint_time(c, start);
}


static void
dsa_constraint_time(dsa_constraint_t *c, uint64_t start)
{
    uint32_t  us;

    us = (uint32_t) (dsa_clock_us() - start);

    c->stats.total_us += us;
    c->stats.most_us = us > c->stats.most_us ? us : c->stats.most_us;
}


void
dsa_constraint_skipped(const dsa_constraint_t *c,
    dsa_link_accepted_t *accepted)
{
    uint32_t              skipped;
    const dsa_grammar_t  *grammar;

    grammar = dsa_grammar_entry_grammar(c->entry);
    skipped = dsa_grammar_skipped(grammar);

    if (skipped > UINT16_MAX) {
        skipped = UINT16_MAX;
    }

    if (dsa_grammar_loose(grammar)) {
        accepted->schemas = (uint16_t) skipped;

    } else {
        accepted->conditions = (uint16_t) skipped;
    }
}


dsa_constraint_stats_t
dsa_constraint_stats(const dsa_constraint_t *c)
{
    return c->stats;
}
