
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SCHEMA_RESPONSES_H_INCLUDED_
#define _DSA_SCHEMA_RESPONSES_H_INCLUDED_


#include "schema.h"


/*
 * Stored responses.  Each one is a node that is never changed: the id of the
 * response that it continues, the items of its own request, and the response.
 * Since a node is immutable, two responses may continue the same one.  All
 * functions return as those of schema.h do.
 */

#define DSA_RESPONSE_ID_PREFIX  "resp_"
#define DSA_RESPONSE_ID_LEN     (sizeof(DSA_RESPONSE_ID_PREFIX) - 1 + 32)

/* limits of a chain, from a response to the first one before it */

#define DSA_RESPONSE_MAX_DEPTH  1000
#define DSA_RESPONSE_MAX_BYTES  DSA_SCHEMA_MAX_BYTES

_Static_assert(2 * DSA_RESPONSE_MAX_DEPTH + 1 <= DSA_SCHEMA_MAX_ELEMENTS,
               "the reply with the longest chain is accepted");


/*
 * The response object is before, output and after in this order; output is the
 * JSON array of its items, which a later request has in its prompt.
 */

typedef struct {
    dsa_str_t    id;
    dsa_str_t    parent;            /* empty: none */
    dsa_str_t    conversation;      /* of which it is a turn; empty: none */
    dsa_str_t    input;             /* a JSON array of items */
    dsa_str_t    before;
    dsa_str_t    output;
    dsa_str_t    after;
    unsigned     background:1;      /* it was in progress in the background */
} dsa_response_t;


/* 1 if id is "resp_" and 32 hex digits. */
int dsa_response_id_ok(dsa_str_t id);

/* 1 if the texts of the node are not larger than a reply may be. */
int dsa_response_fits(const dsa_response_t *node);

/*
 * Stores a node, which is not in progress any more, and renews the TTL of those
 * before it.  Redis replies 1, or 0 if the node exists, because an earlier
 * attempt stored it, or was withdrawn; DSA_RESPONSE_LATE: it was in the
 * background and was cancelled or deleted; or that it exceeds the quota.
 */

#define DSA_RESPONSE_LATE       2

int dsa_response_save(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, const dsa_response_t *node, int64_t created,
    const dsa_schema_storage_t *storage);

/*
 * Withdraws a node whose storage Redis did not confirm: it is not there
 * afterwards, also if the command that stores it is executed up to
 * DSA_RESPONSE_WITHDRAWN seconds later.  Redis replies 1.
 */

#define DSA_RESPONSE_WITHDRAWN  3600

int dsa_response_withdraw(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id);

/* Redis replies with what dsa_response_chain_read() reads. */
int dsa_response_chain(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id);

/* Redis replies with an array of before, output and after. */
int dsa_response_load(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id);

/* Redis replies with an array of input. */
int dsa_response_load_input(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id);

/* Redis replies 1, or 0 if there was no such response. */
int dsa_response_delete(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id);


/* The values are those of the script. */

typedef enum {
    DSA_RESPONSE_FOUND = 0,
    DSA_RESPONSE_UNKNOWN,           /* no such response */
    DSA_RESPONSE_BROKEN,            /* one before it was deleted or expired */
    DSA_RESPONSE_DEEP,              /* over DSA_RESPONSE_MAX_DEPTH */
    DSA_RESPONSE_LARGE,             /* over DSA_RESPONSE_MAX_BYTES */
    DSA_RESPONSE_DAMAGED,           /* a key has another layout */
    DSA_RESPONSE_TURN               /* it is a turn of a conversation */
} dsa_response_result_e;


/*
 * Reads the reply to dsa_response_chain().  DSA_OK: *result is set, and if it
 * is DSA_RESPONSE_FOUND, *lists has *n JSON arrays of items, oldest first,
 * whose bytes are the reply's.  DSA_ERROR: the reply is an error or has another
 * form.
 */
int dsa_response_chain_read(dsa_response_result_e *result, dsa_str_t **lists,
    uint32_t *n, dsa_arena_t *arena, const redisReply *reply, dsa_err_t *err);

/*
 * Reads the reply to dsa_response_load() (n 3) or dsa_response_load_input()
 * (n 1).  DSA_OK; DSA_AGAIN: there is no such response; DSA_ERROR.
 */
int dsa_response_fields(dsa_str_t *fields, uint32_t n,
    const redisReply *reply, dsa_err_t *err);


/*
 * Reads the responses and conversations whose items a request refers to.
 * owners: the digits of their n ids, at most DSA_RESPONSE_OWNERS.  Redis
 * replies with what dsa_response_items_read() reads.
 */

#define DSA_RESPONSE_OWNERS  256

int dsa_response_items(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, const dsa_str_t *owners, uint32_t n);

typedef struct {
    dsa_str_t    input;             /* of a response; may be empty */
    dsa_str_t    output;
    dsa_str_t   *entries;           /* of a conversation, in any order */
    int64_t     *numbers;
    uint32_t     n;
} dsa_response_items_t;

/*
 * items: n, as the owners.  DSA_OK; DSA_AGAIN: together they are too large;
 * DSA_ERROR: the reply is an error or has another form.
 */
int dsa_response_items_read(dsa_response_items_t *items, uint32_t n,
    dsa_arena_t *arena, const redisReply *reply, dsa_err_t *err);


#endif /* _DSA_SCHEMA_RESPONSES_H_INCLUDED_ */
