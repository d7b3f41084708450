
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SCHEMA_MEMORY_H_INCLUDED_
#define _DSA_SCHEMA_MEMORY_H_INCLUDED_


#include "schema.h"


/*
 * How much memory Redis has left for what nginx writes, and whether what it has
 * confirmed survives its crash.
 */

typedef struct {
    uint64_t             used;          /* bytes */
    uint64_t             limit;         /* maxmemory, or the memory of the
                                           machine if there is none */
    int                  evicts;        /* 1: at the limit, Redis removes data
                                           in place of refusing more */
    int                  durable;       /* 1: with an append-only file */
} dsa_schema_memory_t;


/* DSA_ERROR: out of memory. */
int dsa_schema_memory(dsa_schema_command_t *cmd, dsa_arena_t *arena);

/*
 * Reads the reply to dsa_schema_memory().  DSA_ERROR with err: it is an error
 * of Redis, or it lacks one of the figures.
 */
int dsa_schema_memory_reply(dsa_schema_memory_t *memory,
    const redisReply *reply, dsa_err_t *err);


#endif /* _DSA_SCHEMA_MEMORY_H_INCLUDED_ */
