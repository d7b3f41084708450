
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TOOLS_USAGE_SUM_H_INCLUDED_
#define _DSA_TOOLS_USAGE_SUM_H_INCLUDED_


#include "redis_schema/keys.h"
#include "redis_schema/ledger.h"
#include "tools/redis.h"


/* Sums of the ledger over some days, for each tenant and model. */

typedef struct {
    dsa_str_t             tenant;       /* its name */
    dsa_str_t             model;
    int64_t               counts[DSA_LEDGER_COUNTS];
} dsa_usage_row_t;


/* A zeroed sum is empty. */

typedef struct {
    dsa_usage_row_t      *rows;
    size_t                n;
    size_t                size;
    dsa_usage_row_t       total;        /* of all rows */
} dsa_usage_sum_t;


/* The range of a sum.  Days are counted from 1970-01-01; both are included. */

typedef struct {
    int64_t               from;
    int64_t               to;
    dsa_str_t             key;          /* the id of a key; empty: all */
} dsa_usage_range_t;


/*
 * Adds the use of a tenant.  name is a label of its rows and lives as long
 * as the sum; names of models are allocated from the arena.
 *
 * DSA_ERROR with err: Redis failed, a field is not a count, a sum exceeds 64
 * bits, or the range has only a part of a month of which the ledger has nothing
 * but the sum.
 */
int dsa_usage_add(dsa_usage_sum_t *sum, dsa_arena_t *arena,
    dsa_client_t *client, dsa_str_t name,
    const char digits[DSA_KEY_TENANT_LEN + 1],
    const dsa_usage_range_t *range, dsa_err_t *err);

void dsa_usage_free(dsa_usage_sum_t *sum);

/* A day as YYYY-MM-DD. */

#define DSA_USAGE_DAY  16

void dsa_usage_day(char text[DSA_USAGE_DAY], int64_t day);


#endif /* _DSA_TOOLS_USAGE_SUM_H_INCLUDED_ */
