
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SCHEMA_WINDOW_H_INCLUDED_
#define _DSA_SCHEMA_WINDOW_H_INCLUDED_


#include "schema.h"


/*
 * How many rounds of tool calls have left the prompt of a long history.  The
 * key has a digest of the history up to the request in which they left, so that
 * the same history gets the same cut later.  The functions do what those of
 * schema.h do; README.md describes the layout.
 */

#define DSA_SCHEMA_WINDOW_DIGEST     32                     /* bytes */
#define DSA_SCHEMA_WINDOW_TTL        (24 * 3600)            /* seconds */
#define DSA_SCHEMA_WINDOW_KEYS       1024                   /* in one command */
#define DSA_SCHEMA_WINDOW_VALUE      16                     /* bytes */
#define DSA_SCHEMA_WINDOW_SUMMARY    65536                  /* bytes */


/*
 * Reads the cuts of n digests, which lie one after another; n is 1 to
 * DSA_SCHEMA_WINDOW_KEYS.  DSA_ERROR: out of memory, or tenant cannot be in a
 * key.
 */
int dsa_schema_window_load(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, const uint8_t *digests, uint32_t n);

/*
 * Cut i of the reply to that command for n digests: how many rounds have left;
 * 0: none is stored, or it is damaged.
 */
uint32_t dsa_schema_window_cut(const redisReply *reply, uint32_t n,
    uint32_t i);

/* Stores a cut, which is more than 0.  Redis replies OK. */
int dsa_schema_window_store(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, const uint8_t *digest, uint32_t cut);

/*
 * The same for cuts that have a summary of the rounds as well.  Redis replies
 * with the value of the last digest that has one.
 */
int dsa_schema_summary_load(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, const uint8_t *digests, uint32_t n);

/*
 * The value in the reply to that command for n digests: the digest's index, and
 * the summary, which belongs to the reply.  Returns how many rounds have left;
 * 0: none is stored, or it is damaged.
 */
uint32_t dsa_schema_summary(const redisReply *reply, uint32_t n, uint32_t *i,
    dsa_str_t *summary);

/*
 * Stores a cut, which is more than 0, with its summary, which has 1 to
 * DSA_SCHEMA_WINDOW_SUMMARY bytes.  Redis replies OK.
 */
int dsa_schema_summary_store(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, const uint8_t *digest, uint32_t cut,
    dsa_str_t summary);


#endif /* _DSA_SCHEMA_WINDOW_H_INCLUDED_ */
