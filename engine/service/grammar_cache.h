
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_GRAMMAR_CACHE_H_INCLUDED_
#define _DSA_GRAMMAR_CACHE_H_INCLUDED_


#include "grammar/grammar.h"


/*
 * The grammars of a replica by the SHA-256 of their specs.  Specs that cannot
 * be enforced are kept as well, with the reason.  Threads that need the same
 * spec at once wait for the one that compiles it.
 *
 * An entry belongs to the tenant that used it last.  When entries that are not
 * in use exceed a limit, the tenant with the most of them loses the one that it
 * used least recently.  So a tenant that brings new schemas all the time evicts
 * its own.
 *
 * Entries that are in use have a limit as well: beyond it, a tenant with more
 * than half of the memory of all grammars gets no new ones.
 */

#define DSA_GRAMMAR_CACHE_MOST   1024           /* entries, */
#define DSA_GRAMMAR_CACHE_BYTES  (256U << 20)   /* and bytes, not in use */
#define DSA_GRAMMAR_CACHE_ALL    (1024U << 20)  /* bytes of all grammars, for a
                                                   tenant with most of them; for
                                                   all tenants, twice as many */
#define DSA_GRAMMAR_CACHE_TENANT 32             /* bytes of a tenant's digest */


typedef struct dsa_grammar_cache_s  dsa_grammar_cache_t;
typedef struct dsa_grammar_entry_s  dsa_grammar_entry_t;


/*
 * control: as for dsa_grammar_compile(), and outlives the cache.  NULL: out of
 * memory.
 */
dsa_grammar_cache_t *dsa_grammar_cache_create(dsa_str_t control);

/* All entries must have been released.  NULL is allowed. */
void dsa_grammar_cache_destroy(dsa_grammar_cache_t *c);

/*
 * Finds or compiles the grammar of a spec for a tenant; states: the bytes that
 * the states of all grammars take.  DSA_OK: the caller releases the entry.
 * DSA_ERROR: error has the reason.  DSA_AGAIN: the spec is not compiled yet,
 * and compile is 0; otherwise the call may take about 50 ms, and error->work is
 * what it took.
 */
int dsa_grammar_cache_get(dsa_grammar_cache_t *c, dsa_grammar_entry_t **entry,
    const uint8_t *tenant, dsa_str_t spec, size_t states, int compile,
    dsa_grammar_error_t *error);

dsa_grammar_t *dsa_grammar_entry_grammar(const dsa_grammar_entry_t *entry);

void dsa_grammar_cache_release(dsa_grammar_cache_t *c,
    dsa_grammar_entry_t *entry);


#endif /* _DSA_GRAMMAR_CACHE_H_INCLUDED_ */
