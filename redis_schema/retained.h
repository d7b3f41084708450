
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_RETAINED_H_INCLUDED_
#define _DSA_RETAINED_H_INCLUDED_


#include "redis_schema/schema.h"


/*
 * Answers with tool calls, as the model sampled them.  context/sampled.h
 * describes the value; these functions do not read it.  An answer has one key,
 * which is found from the id of each of its calls: the last 22 characters of
 * all these ids are the same, and are random.
 */

#define DSA_SCHEMA_RETAINED_TTL     (3600 * 1000)       /* milliseconds */

/* limits of one load */

#define DSA_SCHEMA_RETAINED_KEYS    1024
#define DSA_SCHEMA_RETAINED_BYTES   DSA_SCHEMA_MAX_BYTES


/*
 * Stores a retained answer for ttl milliseconds.  The key is drawn for this
 * answer, so the same command may be sent again.  Redis replies 1, or 0 if an
 * earlier command stored it, or that it exceeds the quota.  DSA_ERROR: out of
 * memory, or an argument is not valid.
 */
int dsa_schema_retain(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t key, uint64_t ttl,
    const dsa_schema_storage_t *storage, dsa_str_t answer);

/*
 * Loads the retained answers of n keys, at most DSA_SCHEMA_RETAINED_KEYS of
 * them, in one round trip.  In the order of the keys, a retained answer that
 * would bring the reply above DSA_SCHEMA_RETAINED_BYTES is left out.
 */
int dsa_schema_load_retained(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, const dsa_str_t *keys, uint32_t n);

/*
 * Reads the reply to dsa_schema_load_retained(): one retained answer for each
 * of the n keys.  The length of a missing one is 0; the bytes are the reply's.
 * DSA_ERROR: the reply is an error of Redis, or another reply.
 */
int dsa_schema_retained(dsa_str_t *answers, uint32_t n,
    const redisReply *reply, dsa_err_t *err);


#endif /* _DSA_RETAINED_H_INCLUDED_ */
