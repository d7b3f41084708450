
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ARENA_H_INCLUDED_
#define _DSA_ARENA_H_INCLUDED_


#include "base/str.h"


/*
 * Memory that is freed all at once, with a limit that is set when the arena is
 * created: so a request, a file or a prompt has one bound, and not one for each
 * allocation.  An allocation returns NULL when it would exceed the limit or
 * when the system is out of memory.
 */

typedef struct dsa_arena_s  dsa_arena_t;


/* limit: bytes for all allocations, including the rest of each block. */
dsa_arena_t *dsa_arena_create(size_t limit);
void dsa_arena_destroy(dsa_arena_t *arena);        /* NULL is allowed */

/* Aligned to 16 bytes; contents undefined (alloc) or zero (calloc). */
void *dsa_arena_alloc(dsa_arena_t *arena, size_t size);
void *dsa_arena_calloc(dsa_arena_t *arena, size_t size);

/* A copy with a NUL after it. */
char *dsa_arena_dup(dsa_arena_t *arena, dsa_str_t s);

/* Bytes allocated so far. */
size_t dsa_arena_used(const dsa_arena_t *arena);

/* 1 when an allocation failed because of the limit. */
int dsa_arena_exceeded(const dsa_arena_t *arena);

/*
 * Makes dsa_arena_exceeded() return 1, for callers that have another bound on
 * the same input, such as a number of values.
 */
void dsa_arena_exceed(dsa_arena_t *arena);


#endif /* _DSA_ARENA_H_INCLUDED_ */
