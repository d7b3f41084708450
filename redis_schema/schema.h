
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SCHEMA_H_INCLUDED_
#define _DSA_SCHEMA_H_INCLUDED_


#include <hiredis/hiredis.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "base/tiers.h"


/*
 * Every key, layout, lifetime and script that the project has in Redis.  The
 * functions make commands and read replies; the caller sends and receives
 * them.  README.md beside this file describes the same layout in prose.
 */

#define DSA_SCHEMA_CONVERSATION_TTL  (30 * 24 * 3600)       /* seconds */
#define DSA_SCHEMA_TTL_MAX           (100 * 365 * 24 * 3600LL)
#define DSA_SCHEMA_DONE_TTL          (24 * 3600)

/*
 * How long after its first attempt an entry that Redis has not confirmed may be
 * sent again.  Its marker outlives that, so an entry that was written is not
 * counted twice.
 */

#define DSA_SCHEMA_RESEND            (23 * 3600)

/* days of the ledger before this one that are not yet in their month's sum */

#define DSA_SCHEMA_LEDGER_DAYS       62

/* limits of one conversation; the oldest turns are removed first */

#define DSA_SCHEMA_MAX_MESSAGES      2000
#define DSA_SCHEMA_MAX_BYTES         (4 * 1024 * 1024)

/* limits of the largest reply to a command of this file: a conversation */

#define DSA_SCHEMA_MAX_REPLY         (DSA_SCHEMA_MAX_BYTES + 512 * 1024)
#define DSA_SCHEMA_MAX_ELEMENTS      (2 * DSA_SCHEMA_MAX_MESSAGES + 64)

#define DSA_SCHEMA_ID_PREFIX         "conv_"
#define DSA_SCHEMA_ID_RANDOM         16                     /* bytes */
#define DSA_SCHEMA_ID_LEN            (sizeof(DSA_SCHEMA_ID_PREFIX) - 1        \
                                      + 2 * DSA_SCHEMA_ID_RANDOM)


/*
 * The words of a command.  The array is in the arena that the command was made
 * with.  The bytes of a word are in that arena, are static, or belong to the
 * caller that passed them (names and messages), so send the command, or copy
 * it, while all of these live.
 */

typedef struct {
    uint32_t             argc;
    dsa_str_t           *argv;
} dsa_schema_command_t;


/*
 * name_ok: 1 if name may become part of a key: 1 to 128 letters, digits, "-",
 * "_" and ".".  id_ok: 1 if id has the form that dsa_schema_make_id() gives.
 */
int dsa_schema_name_ok(dsa_str_t name);
int dsa_schema_id_ok(dsa_str_t id);

/* id: DSA_SCHEMA_ID_LEN bytes, without a terminating NUL. */
void dsa_schema_make_id(char *id, const uint8_t random[DSA_SCHEMA_ID_RANDOM]);


/*
 * How long conversations and responses are stored, and how much all objects of
 * a tenant may need, with its retained answers.
 */

#define DSA_SCHEMA_QUOTA_BYTES       (256 * 1024 * 1024)
#define DSA_SCHEMA_QUOTA_OBJECTS     100000
#define DSA_SCHEMA_QUOTA_MAX         1000000000000LL

/* why something was not stored, for a log line and for the client */

#define DSA_SCHEMA_QUOTA_TEXT                                                 \
    "the storage quota of the tenant is used up; delete conversations or "    \
    "responses"

typedef struct {
    int64_t              ttl;           /* seconds */
    int64_t              max_bytes;     /* 1 to DSA_SCHEMA_QUOTA_MAX */
    int64_t              max_objects;   /* the same */
} dsa_schema_storage_t;


/*
 * 1 if the reply of a command is that it would exceed the quota of the tenant:
 * nothing has changed, and *bytes and *objects are what the tenant has stored.
 * 0: it is another reply.
 */
int dsa_schema_over_quota(const redisReply *reply, int64_t *bytes,
    int64_t *objects);


/*
 * Commands that handle a whole conversation.  DSA_ERROR: out of memory, or an
 * argument is out of range.
 */

/*
 * Creates a conversation.  metadata: a JSON object.  messages: JSON objects,
 * within the limits above; the first member of one that has a role is "role".
 * Redis replies 1, or 0 if the id is taken, or that it exceeds the quota.
 */
int dsa_schema_create(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id, int64_t created,
    const dsa_schema_storage_t *storage, dsa_str_t metadata,
    const dsa_str_t *messages, uint32_t n_messages);

/* Redis replies 1, or 0 if there was no such conversation. */
int dsa_schema_delete(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id);

/* Redis replies with what dsa_schema_conversation() reads. */
int dsa_schema_load(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id);


/* Reads an integer reply: DSA_OK and *n, or DSA_ERROR if it is not one. */
int dsa_schema_integer(const redisReply *reply, int64_t *n, dsa_err_t *err);


typedef struct {
    int64_t              version;       /* 1, and 1 more with each turn */
    int64_t              created;       /* seconds since 1970 */
    dsa_str_t            metadata;      /* a JSON object; empty: none */
    dsa_str_t           *messages;      /* JSON, oldest first; the array is in
                                           the arena, the bytes are the
                                           reply's */
    int64_t             *numbers;       /* of the messages, ascending; in the
                                           arena */
    uint32_t             n_messages;
    size_t               bytes;         /* of all messages together */
} dsa_schema_conversation_t;


/*
 * Reads the reply to dsa_schema_load().  DSA_OK; DSA_AGAIN: there is no such
 * conversation; DSA_ERROR: the reply is an error of Redis, or it is not a
 * complete conversation.
 */
int dsa_schema_conversation(dsa_schema_conversation_t *c, dsa_arena_t *arena,
    const redisReply *reply, dsa_err_t *err);


/*
 * Messages on their way to Redis are kept as one text: the JSON of each
 * message, followed by a NUL.  JSON escapes NUL, so that a NUL only ends a
 * message.  Returns the number of messages in text.  messages: NULL, or room
 * for that many, which then refer to text.
 */
uint32_t dsa_schema_split(dsa_str_t text, dsa_str_t *messages);


/* The largest number of an entry: 8 times it is exact in a double. */

#define DSA_SCHEMA_NUMBER_MAX        ((1ULL << 50) - 1)


/*
 * What is written to Redis when a request ends.  Its sender, cell and number
 * are the same whichever process sends the entry, and however often.  A sender
 * is a random number.  It has one entry at a time in a cell, and uses a cell
 * again, with a higher number, only when the entry before it is confirmed or
 * given up.
 */

typedef struct {
    uint64_t             sender;        /* not 0 */
    uint64_t             number;        /* 1 to DSA_SCHEMA_NUMBER_MAX */
    uint32_t             cell;
    dsa_str_t            request;       /* its unique id */
    dsa_str_t            tenant;
    dsa_str_t            model;
    int64_t              time;          /* seconds since 1970 */
    uint64_t             prompt_tokens;
    uint64_t             cached_tokens;
    uint64_t             tier_tokens[DSA_TIERS];    /* of cached ones, by
                                                       tier; DSA_TIER_GPU is
                                                       not used: it has the
                                                       rest of them */
    uint64_t             completion_tokens;
    uint64_t             reasoning_tokens;
    dsa_str_t            key;           /* id of the API key; empty: none */
    int64_t              cost_miss;     /* 10^-12 of a unit of money */
    int64_t              cost_hit;
    int64_t              cost_output;

    dsa_str_t            conversation;  /* empty: none */
    int64_t              version;       /* as loaded */
    const dsa_schema_storage_t
                        *storage;
    const dsa_str_t     *messages;      /* to append, as in create */
    uint32_t             n_messages;
    uint32_t             max_messages;
    uint32_t             max_bytes;
} dsa_schema_entry_t;


/*
 * 1 if the ledger accepts the entry: request and tenant satisfy
 * dsa_schema_name_ok(), model has at least 1 byte and no control characters,
 * each count and each part of the cost has at most 18 digits, the tokens of the
 * tiers behind the GPU together are at most the cached ones, key is empty or
 * has the form of an id of a key, and time is in the years 1970 to 9999.
 */
int dsa_schema_entry_ok(const dsa_schema_entry_t *entry);

/*
 * text 0: the command names the script by its hash (EVALSHA), and Redis
 * replies NOSCRIPT if it does not have it; 1: the command carries the text of
 * the script (EVAL), and Redis has it from then on.  DSA_ERROR: out of memory,
 * or a count or the time is out of range.
 */
int dsa_schema_record(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const dsa_schema_entry_t *entry, int text);

/*
 * The result for the messages.  The entry is in the ledger in every case.
 * The values are those of the script.
 */

typedef enum {
    DSA_SCHEMA_LEDGER = 0,          /* there were no messages */
    DSA_SCHEMA_APPENDED,
    DSA_SCHEMA_MOVED,               /* the version is not the one loaded */
    DSA_SCHEMA_GONE,                /* deleted or expired */
    DSA_SCHEMA_TOO_LARGE,           /* this turn alone exceeds the limits */
    DSA_SCHEMA_DAMAGED,             /* the conversation has another layout */
    DSA_SCHEMA_QUOTA                /* the tenant has stored too much */
} dsa_schema_result_e;


/*
 * Reads the reply to dsa_schema_record().  DSA_OK: the entry is written;
 * *again is 1 if an earlier attempt wrote it.  DSA_AGAIN: it is not written,
 * and a later attempt may succeed.  DSA_ERROR: no attempt can succeed.  err is
 * set unless the result is DSA_OK.
 */
int dsa_schema_recorded(const redisReply *reply, dsa_schema_result_e *result,
    int *again, dsa_err_t *err);

/* The result as a clause, for a log line and for the client. */
const char *dsa_schema_result(dsa_schema_result_e result);


#endif /* _DSA_SCHEMA_H_INCLUDED_ */
