
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdalign.h>
#include <stdlib.h>

#include "arena.h"


#define DSA_ARENA_ALIGN   16
#define DSA_ARENA_BLOCK   4096


typedef struct dsa_arena_block_s  dsa_arena_block_t;

struct dsa_arena_block_s {
    dsa_arena_block_t                 *next;
    alignas(DSA_ARENA_ALIGN) char      data[];
};


struct dsa_arena_s {
    char                              *pos;
    char                              *end;
    size_t                             used;
    size_t                             limit;
    size_t                             block;    /* next block's size */
    int                                exceeded;
    dsa_arena_block_t                 *blocks;
};


dsa_arena_t *
dsa_arena_create(size_t limit)
{
    dsa_arena_t  *arena;

    arena = calloc(1, sizeof(dsa_arena_t));

    if (arena != NULL) {
        arena->limit = limit;
        arena->block = DSA_ARENA_BLOCK;
    }

    return arena;
}


void
dsa_arena_destroy(dsa_arena_t *arena)
{
    dsa_arena_block_t  *block, *next;

    if (arena == NULL) {
        return;
    }

    for (block = arena->blocks; block != NULL; block = next) {
        next = block->next;
        free(block);
    }

    free(arena);
}


void *
dsa_arena_alloc(dsa_arena_t *arena, size_t size)
{
    void               *p;
    size_t              want;
    dsa_arena_block_t  *block;

    if (size > arena->limit) {
        arena->exceeded = 1;
        return NULL;
    }

    size = (size + DSA_ARENA_ALIGN - 1) & ~(size_t) (DSA_ARENA_ALIGN - 1);

    if (size > (size_t) (arena->end - arena->pos)) {

        /* blocks double, so that a large arena has few of them */

        want = size > arena->block / 4 ? size : arena->block;

        if (want > arena->limit - arena->used) {
            want = size;
        }

        if (want > arena->limit - arena->used) {
            arena->exceeded = 1;
            return NULL;
        }

        block = malloc(sizeof(dsa_arena_block_t) + want);
        if (block == NULL) {
            return NULL;
        }

        block->next = arena->blocks;
        arena->blocks = block;
        arena->used += want;

        if (want == size && want != arena->block) {

            /* a large piece has a block of its own; the current one stays */

            return block->data;
        }

        arena->pos = block->data;
        arena->end = block->data + want;

        if (arena->block < 1024 * 1024) {
            arena->block *= 2;
        }
    }

    p = arena->pos;
    arena->pos += size;

    return p;
}


void *
dsa_arena_calloc(dsa_arena_t *arena, size_t size)
{
    void  *p;

    p = dsa_arena_alloc(arena, size);

    if (p != NULL) {
        memset(p, 0, size);
    }

    return p;
}


char *
dsa_arena_dup(dsa_arena_t *arena, dsa_str_t s)
{
    char  *p;

    p = dsa_arena_alloc(arena, s.len + 1);
    if (p == NULL) {
        return NULL;
    }

    if (s.len != 0) {
        memcpy(p, s.data, s.len);
    }

    p[s.len] = '\0';

    return p;
}


size_t
dsa_arena_used(const dsa_arena_t *arena)
{
    return arena->used;
}


int
dsa_arena_exceeded(const dsa_arena_t *arena)
{
    return arena->exceeded;
}


void
dsa_arena_exceed(dsa_arena_t *arena)
{
    arena->exceeded = 1;
}
