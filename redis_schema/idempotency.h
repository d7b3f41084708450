
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_IDEMPOTENCY_H_INCLUDED_
#define _DSA_IDEMPOTENCY_H_INCLUDED_


#include "schema.h"


/*
 * Requests with an Idempotency-Key: the first one with a key claims it, and
 * those that repeat it get its answer.  All functions return as those of
 * schema.h do.
 */

#define DSA_IDEMPOTENCY_TTL     (24 * 3600)         /* seconds, from the
                                                       claim */
#define DSA_IDEMPOTENCY_LEASE   30                  /* seconds; renew it three
                                                       times as often */

/* limits for a tenant, in 24 hours */

#define DSA_IDEMPOTENCY_KEYS    10000
#define DSA_IDEMPOTENCY_BYTES   (64 * 1024 * 1024)

#define DSA_IDEMPOTENCY_ANSWER  (1024 * 1024)       /* a longer one is not
                                                       kept */

/* hexadecimal digits of SHA-256: of the header's value, and of the request */

#define DSA_IDEMPOTENCY_HEX     64


typedef struct {
    dsa_str_t    tenant;
    const char  *key;               /* DSA_IDEMPOTENCY_HEX characters */
    dsa_str_t    owner;             /* id of the request */
} dsa_idempotency_t;


/* The values up to DSA_IDEMPOTENCY_FULL are those of the script. */

typedef enum {
    DSA_IDEMPOTENCY_CLAIMED = 0,
    DSA_IDEMPOTENCY_RUNNING,        /* another request has it, and runs */
    DSA_IDEMPOTENCY_OTHER,          /* it belongs to a request that differs */
    DSA_IDEMPOTENCY_INTERRUPTED,    /* the request that has it is gone */
    DSA_IDEMPOTENCY_FULL,           /* over DSA_IDEMPOTENCY_KEYS */
    DSA_IDEMPOTENCY_ANSWER_KEPT,
    DSA_IDEMPOTENCY_ANSWER_LARGE,   /* the answer is not kept */
    DSA_IDEMPOTENCY_STREAMED,       /* it was a stream, which is not kept */
    DSA_IDEMPOTENCY_FAILED          /* it has no answer, but a charge */
} dsa_idempotency_e;


typedef struct {
    dsa_idempotency_e  state;
    dsa_str_t          object;      /* id of a stored response, or of a
                                       conversation; empty: none */
    dsa_str_t          answer;      /* JSON, with state ANSWER_KEPT */
} dsa_idempotency_result_t;


/*
 * Claims the key for a request with this digest, of DSA_IDEMPOTENCY_HEX
 * characters.  Redis replies with what dsa_idempotency_claimed() reads.
 */
int dsa_idempotency_claim(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const dsa_idempotency_t *id, const char *digest);

/*
 * Reads the reply, whose bytes the result refers to.  DSA_OK, or DSA_ERROR: the
 * reply is an error or has another form.
 */
int dsa_idempotency_claimed(dsa_idempotency_result_t *result,
    const redisReply *reply, dsa_err_t *err);

/* Redis replies 1, or 0 if the request does not have the key. */
int dsa_idempotency_renew(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const dsa_idempotency_t *id);

/*
 * Stores the result, whose state is one from ANSWER_KEPT on.  The same replies;
 * 2: the answer is left out, because the tenant has too many.
 */
int dsa_idempotency_finish(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const dsa_idempotency_t *id, const dsa_idempotency_result_t *result);

/* Gives the key back.  The same replies as those of renew. */
int dsa_idempotency_release(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const dsa_idempotency_t *id);


#endif /* _DSA_IDEMPOTENCY_H_INCLUDED_ */
