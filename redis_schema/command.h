
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_COMMAND_H_INCLUDED_
#define _DSA_COMMAND_H_INCLUDED_


#include "schema.h"


/* Inside redis_schema/: a command is made of words, one after the other. */


/* Starts a command of at most max words.  DSA_ERROR: out of memory. */
int dsa_command_start(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    uint32_t max);

/*
 * EVAL, the text of a script, and its number of keys.  The scripts that are
 * sent this way are short or rare: there is no NOSCRIPT to handle.
 */
void dsa_command_eval(dsa_schema_command_t *cmd, const char *script,
    const char *keys);

/*
 * The same for a script that is sent often.  text 0: EVALSHA and its hash, to
 * which Redis replies NOSCRIPT if it does not have the script; 1: EVAL and its
 * text, and Redis has it from then on.  DSA_ERROR: out of memory.
 */
int dsa_command_script(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const char *script, const char *keys, int text);

/* The bytes of word are not copied. */
void dsa_command_word(dsa_schema_command_t *cmd, dsa_str_t word);

/* A word of at most 319 bytes.  DSA_ERROR: it is longer, or out of memory. */
int dsa_command_wordf(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/*
 * The lifetime of a key, in seconds.  DSA_ERROR: it is not 1 to
 * DSA_SCHEMA_TTL_MAX, so Redis could reject it when other commands of a script
 * have run, or out of memory.
 */
int dsa_command_ttl(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    int64_t ttl);

/* The key of the account of a tenant. */
int dsa_command_account(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant);

/*
 * The last key of a script that uses keys of a tenant which it does not
 * declare, or that removes a key and then writes it again: a key that never
 * exists.  While Redis Cluster moves the keys of a cluster slot, it executes a
 * command with several keys only if the node has all of them.  So such a script
 * never sees a part of the keys; Redis replies TRYAGAIN until it has moved them
 * all.
 */
int dsa_command_absent(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant);

/* The quota of a tenant, two words.  DSA_ERROR: it is out of range. */
int dsa_command_quota(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const dsa_schema_storage_t *storage);


#endif /* _DSA_COMMAND_H_INCLUDED_ */
