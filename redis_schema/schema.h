
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SCHEMA_H_INCLUDED_
#define _DSA_SCHEMA_H_INCLUDED_


#include <hiredis/hiredis.h>

#include "base/arena.h"
#include "base/error.h"


/*
 * Every key, layout, lifetime and script that the project has in Redis, as
 * commands made and replies read.  README.md beside this file tells the same
 * to a person.  Nothing here talks to Redis.
 */

#define DSA_SCHEMA_CONVERSATION_TTL  (30 * 24 * 3600)       /* seconds */
#define DSA_SCHEMA_DONE_TTL          (24 * 3600)

/* one conversation; the oldest turns go first */

#define DSA_SCHEMA_MAX_MESSAGES      2000
#define DSA_SCHEMA_MAX_BYTES         (4 * 1024 * 1024)

/* the largest reply to any command made here: a whole conversation */

#define DSA_SCHEMA_MAX_REPLY         (DSA_SCHEMA_MAX_BYTES + 512 * 1024)
#define DSA_SCHEMA_MAX_ELEMENTS      (2 * DSA_SCHEMA_MAX_MESSAGES + 64)

#define DSA_SCHEMA_ID_PREFIX         "conv_"
#define DSA_SCHEMA_ID_RANDOM         16                     /* bytes */
#define DSA_SCHEMA_ID_LEN            (sizeof(DSA_SCHEMA_ID_PREFIX) - 1        \
                                      + 2 * DSA_SCHEMA_ID_RANDOM)


/* A command's words, all in the arena it was made with; 0: out of memory. */

typedef struct {
    uint32_t             argc;
    dsa_str_t           *argv;
} dsa_schema_command_t;


/*
 * Names that may become part of a key: 1 to 128 letters, digits, "-", "_" and
 * "."; of an id, that it was made by dsa_schema_make_id().
 */
int dsa_schema_name_ok(dsa_str_t name);
int dsa_schema_id_ok(dsa_str_t id);

/* id: DSA_SCHEMA_ID_LEN bytes, not terminated. */
void dsa_schema_make_id(char *id, const uint8_t random[DSA_SCHEMA_ID_RANDOM]);


/*
 * A conversation is made.  messages: one JSON object each, its first member
 * "role"; within the bounds above.  Replies 1, or 0 when the id is taken.
 */
int dsa_schema_create(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id, int64_t created, int64_t ttl,
    const dsa_str_t *messages, uint32_t n_messages);

/* Replies 1, or 0 when there was none. */
int dsa_schema_delete(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id);

/* DSA_OK and *n, or DSA_ERROR when the reply is something else. */
int dsa_schema_integer(const redisReply *reply, int64_t *n, dsa_err_t *err);


typedef struct {
    int64_t              version;       /* 1, and 1 more with each turn */
    int64_t              created;       /* seconds since 1970 */
    dsa_str_t           *messages;      /* oldest first; the reply's bytes */
    uint32_t             n_messages;
} dsa_schema_conversation_t;


int dsa_schema_load(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id);

/*
 * DSA_OK; DSA_AGAIN when there is no such conversation; DSA_ERROR when the
 * reply is no conversation: an error of Redis, or a damaged one.
 */
int dsa_schema_conversation(dsa_schema_conversation_t *c, dsa_arena_t *arena,
    const redisReply *reply, dsa_err_t *err);


/* What a request leaves behind. */

typedef struct {
    dsa_str_t            request;       /* its unique id */
    dsa_str_t            tenant;
    dsa_str_t            model;
    int64_t              time;          /* seconds since 1970 */
    uint64_t             prompt_tokens;
    uint64_t             cached_tokens;
    uint64_t             completion_tokens;
    uint64_t             reasoning_tokens;

    dsa_str_t            conversation;  /* empty: none */
    int64_t              version;       /* as loaded */
    int64_t              ttl;
    const dsa_str_t     *messages;      /* to append, as dsa_schema_create() */
    uint32_t             n_messages;
    uint32_t             max_messages;
    uint32_t             max_bytes;
} dsa_schema_record_t;


/*
 * 1: the ledger can take what is in this record: its request and tenant are
 * names as above, its model is 1 byte or more without control characters, its
 * counts have at most 18 digits, and its time is of the years 1970 to 9999.
 */
int dsa_schema_entry_ok(const dsa_schema_record_t *record);

/*
 * text 0: by the script's hash (EVALSHA), which Redis may answer with
 * NOSCRIPT; 1: with its text (EVAL), after which the hash is known.
 */
int dsa_schema_record(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const dsa_schema_record_t *record, int text);

/* What became of the messages; the ledger is written in each case. */

typedef enum {
    DSA_SCHEMA_LEDGER = 0,          /* there were none */
    DSA_SCHEMA_APPENDED,
    DSA_SCHEMA_MOVED,               /* another turn came between */
    DSA_SCHEMA_GONE,                /* deleted, or its time was over */
    DSA_SCHEMA_TOO_LARGE,           /* this turn alone is over the bounds */
    DSA_SCHEMA_DAMAGED              /* not written by us */
} dsa_schema_result_e;


/*
 * DSA_OK: written, *again 1 when an earlier attempt had written it; DSA_AGAIN:
 * not written, another attempt may; DSA_ERROR: it never can be, err says why.
 */
int dsa_schema_recorded(const redisReply *reply, dsa_schema_result_e *result,
    int *again, dsa_err_t *err);

/* In words, for a log line and for the client. */
const char *dsa_schema_result(dsa_schema_result_e result);


#endif /* _DSA_SCHEMA_H_INCLUDED_ */
