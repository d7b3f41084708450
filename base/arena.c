
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdalign.h>
#include <stdlib.h>

#include "base/arena.h"


#define DSA_ARENA_ALIGN   16
#define DSA_ARENA_BLOCK   4096
#define DSA_ARENA_LARGE   (1024 * 1024)     /* blocks grow up to this size */


typedef struct dsa_arena_block_s  dsa_arena_block_t;

struct dsa_arena_block_s {
    dsa_arena_block_t                 *next;
    alignas(DSA_ARENA_ALIGN) char      data[];
};


struct dsa_arena_s {
    char                              *pos;      /* in the current block */
    char                              *end;
    size_t                             used;     /* of all blocks */
    size_t                             limit;
    size_t                             block;    /* size of the next one */
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
    size_t              room;
    dsa_arena_block_t  *block;

    if (size > arena->limit) {
        arena->exceeded = 1;
        return NULL;
    }

    size = (size + DSA_ARENA_ALIGN - 1) & ~(size_t) (DSA_ARENA_ALIGN - 1);

    if (size > (size_t) (arena->end - arena->pos)) {

        /* each block is twice as large as the one before */

        room = size > arena->block / 4 ? size : arena->block;

        if (room > arena->limit - arena->used) {
            room = size;
        }

        if (room > arena->limit - arena->used) {
            arena->exceeded = 1;
            return NULL;
        }

        block = malloc(sizeof(dsa_arena_block_t) + room);
        if (block == NULL) {
            return NULL;
        }

        block->next = arena->blocks;
        arena->blocks = block;
        arena->used += room;

        if (room == size && room != arena->block) {

            /* a large allocation has its own block; the current one is kept */

            return block->data;
        }

        arena->pos = block->data;
        arena->end = block->data + room;

        if (arena->block < DSA_ARENA_LARGE) {
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
