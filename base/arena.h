
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ARENA_H_INCLUDED_
#define _DSA_ARENA_H_INCLUDED_


#include "str.h"


/*
 * Memory that is freed all at once, with an upper bound: what a request, a
 * file or a prompt may use is decided where the arena is made, not at each
 * allocation.  Allocation returns NULL when the bound or memory is exhausted.
 */

typedef struct dsa_arena_s  dsa_arena_t;


/* limit: most bytes that allocations may take, block overhead included. */
dsa_arena_t *dsa_arena_create(size_t limit);
void dsa_arena_destroy(dsa_arena_t *arena);        /* NULL is allowed */

/* Aligned to 16 bytes; contents undefined (alloc) or zero (calloc). */
void *dsa_arena_alloc(dsa_arena_t *arena, size_t size);
void *dsa_arena_calloc(dsa_arena_t *arena, size_t size);

/* A NUL-terminated copy; NULL when out of memory. */
char *dsa_arena_dup(dsa_arena_t *arena, dsa_str_t s);

/* Bytes taken so far, and whether an allocation failed because of limit. */
size_t dsa_arena_used(const dsa_arena_t *arena);
int dsa_arena_exceeded(const dsa_arena_t *arena);

/* From now on the arena counts as exceeded: another bound was reached. */
void dsa_arena_exceed(dsa_arena_t *arena);


#endif /* _DSA_ARENA_H_INCLUDED_ */
