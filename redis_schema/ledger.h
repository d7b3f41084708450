
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_LEDGER_H_INCLUDED_
#define _DSA_LEDGER_H_INCLUDED_


#include "redis_schema/schema.h"


/*
 * Reads the ledger, for reports: a hash for each tenant and day, and one for
 * each month with the sums of the days that were folded into it.
 */

typedef enum {
    DSA_LEDGER_REQUESTS = 0,
    DSA_LEDGER_PROMPT,
    DSA_LEDGER_CACHED,              /* a part of the prompt tokens */
    DSA_LEDGER_CACHED_TIER,         /* a part of the cached tokens: those of
                                       DSA_TIER_HOST; the other tiers behind
                                       the GPU follow */
    DSA_LEDGER_COMPLETION = DSA_LEDGER_CACHED_TIER + DSA_TIERS - DSA_TIER_HOST,
    DSA_LEDGER_REASONING,           /* a part of the completion tokens */
    DSA_LEDGER_COST_MISS,           /* the first of 3 costs, 10^-12 units */
    DSA_LEDGER_COST_HIT,
    DSA_LEDGER_COST_OUTPUT,
    DSA_LEDGER_COUNTS
} dsa_ledger_count_e;


typedef struct {
    dsa_str_t            key;           /* the id of an API key; empty: a sum
                                           of all requests of the tenant */
    dsa_str_t            model;
    dsa_ledger_count_e   count;
    int64_t              value;
} dsa_ledger_field_t;


/* The name of a count, for example "prompt_tokens". */
const char *dsa_ledger_name(dsa_ledger_count_e count);

/*
 * Reads a day, "YYYY-MM-DD", or the folded days of a month, "YYYY-MM".  tenant:
 * the 32 hexadecimal digits that keys of Redis have.  Redis replies with an
 * array of names and values, which dsa_ledger_field() reads.  DSA_ERROR: out of
 * memory, or an argument is out of range.
 */
int dsa_ledger_load(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, const char *period);

/* DSA_ERROR with err if the reply is not an array of names and values. */
int dsa_ledger_reply(const redisReply *reply, dsa_err_t *err);

/*
 * Reads a field; its texts are those of name.  DSA_AGAIN: it is a count that
 * this program does not have.  DSA_ERROR with err: the value is not a count.
 */
int dsa_ledger_field(dsa_ledger_field_t *field, const redisReply *name,
    const redisReply *value, dsa_err_t *err);

/* Reads the first day that was not folded into its month. */
int dsa_ledger_rolled(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant);

/*
 * *day is in days since 1970.  DSA_AGAIN: no day was folded yet.  DSA_ERROR
 * with err: the reply is an error, or not a day.
 */
int dsa_ledger_rolled_reply(int64_t *day, const redisReply *reply,
    dsa_err_t *err);


#endif /* _DSA_LEDGER_H_INCLUDED_ */
