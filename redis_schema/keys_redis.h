
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_KEYS_REDIS_H_INCLUDED_
#define _DSA_KEYS_REDIS_H_INCLUDED_


#include "base/bucket.h"
#include "redis_schema/keys.h"
#include "redis_schema/schema.h"


/*
 * The key entries in Redis, what hosts share about the use of a key, and what a
 * key has spent.  The functions make commands and read replies.
 *
 * A function that makes a command returns DSA_ERROR when memory runs out or an
 * argument is out of range.  text is that of dsa_schema_record(): with 0 the
 * command has the hash of its script; when dsa_resp_is_error(reply, "NOSCRIPT")
 * is true, the same command is sent again with text 1.
 *
 * A function that reads a reply returns DSA_ERROR with err when the reply is an
 * error of Redis or has another form.
 */

#define DSA_KEY_SYNC_MAX    256             /* key entries of one reply */
#define DSA_KEY_SHARE_TTL   120             /* seconds */
#define DSA_KEY_LEASE_MAX   (3600 * 1000)   /* milliseconds */


/*
 * Stores a key.  previous: the key entry that it replaces, in the bytes that
 * were read; empty: there must be none with this id.  So of two writers that
 * have read the same key entry, one gets DSA_KEY_PUT_MOVED.  The key satisfies
 * dsa_key_check().
 */
int dsa_key_put(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const dsa_key_t *key, dsa_str_t previous);


/* The values are those of the script. */

typedef enum {
    DSA_KEY_PUT_DONE = 0,
    DSA_KEY_PUT_EXISTS,             /* there is a key with this id */
    DSA_KEY_PUT_MOVED,              /* the key entry is no longer the previous
                                       one; nothing was written */
    DSA_KEY_PUT_TAKEN               /* another key has one of the hashes */
} dsa_key_put_e;


int dsa_key_put_reply(dsa_key_put_e *result, const redisReply *reply,
    dsa_err_t *err);

/* Reads one key entry. */
int dsa_key_get(dsa_schema_command_t *cmd, dsa_arena_t *arena, dsa_str_t id);

/* DSA_AGAIN: there is no such key.  The key entry is in the reply's memory. */
int dsa_key_get_reply(dsa_str_t *entry, const redisReply *reply,
    dsa_err_t *err);


/*
 * Reads key entries that were changed after version `since`, at most max of
 * them (1 to DSA_KEY_SYNC_MAX), in the order of their changes.  A reader begins
 * with 0 and repeats the command with the version of the last key entry of each
 * reply until a reply has less than max key entries.  Then it has the whole
 * set, and repeats the command from time to time to find changes.
 *
 * When the version of a reply is below `since`, Redis does not have all changes
 * any more, for example because an older copy was restored.  Then the reader
 * begins with 0 again.
 */
int dsa_key_sync(dsa_schema_command_t *cmd, dsa_arena_t *arena, int64_t since,
    uint32_t max, int text);


typedef struct {
    int64_t              version;       /* of this change */
    dsa_str_t            id;
    dsa_str_t            entry;         /* empty: it is missing or too long */
} dsa_key_change_t;


typedef struct {
    int64_t              version;       /* of the last change of all */
    uint32_t             n;
    dsa_key_change_t    *changes;       /* in the arena; the bytes of its
                                           strings are the reply's */
} dsa_key_changes_t;


int dsa_key_sync_reply(dsa_key_changes_t *changes, dsa_arena_t *arena,
    const redisReply *reply, dsa_err_t *err);


/*
 * The buckets of a key, which are those of base/bucket.h: what is missing from
 * a full one is counted in parts, and all hosts together use one in Redis.
 */

typedef enum {
    DSA_KEY_REQUESTS = 0,
    DSA_KEY_TOKENS,
    DSA_KEY_RATES
} dsa_key_rate_e;


typedef struct {
    uint64_t             rate;          /* units per minute; 0: no limit */
    uint64_t             used;          /* units, since the last call */
    uint64_t             missing;       /* parts, at most
                                           DSA_BUCKET_MAX_DEBT: at least so much
                                           is missing, whatever Redis has */
} dsa_key_use_t;


/*
 * Adds what was used on this host since its last call, and renews its lease on
 * `running` requests for ttl_ms (1 to DSA_KEY_LEASE_MAX).  host is a name that
 * no other host has and that satisfies dsa_schema_name_ok().  used is at most
 * what DSA_BUCKET_MAX_DEBT has.
 *
 * When the reply is lost, the use may have been added or not.  If the caller
 * adds it again, it is counted at most twice, so the limits become stricter by
 * the use between two calls, and never weaker.  If Redis has lost its data,
 * `missing` of the hosts restores most of it.
 */
int dsa_key_share(dsa_schema_command_t *cmd, dsa_arena_t *arena, dsa_str_t id,
    dsa_str_t host, const dsa_key_use_t use[DSA_KEY_RATES], uint32_t running,
    uint32_t ttl_ms, int text);


/*
 * Of all hosts, this one included.  The key of Redis expires when its buckets
 * are full, but not before DSA_KEY_SHARE_TTL after the last call.
 */

typedef struct {
    uint64_t             missing[DSA_KEY_RATES];    /* parts */
    uint64_t             running;       /* on other hosts, whose leases have
                                           not ended */
} dsa_key_shared_t;


int dsa_key_share_reply(dsa_key_shared_t *shared, const redisReply *reply,
    dsa_err_t *err);


/*
 * Reads what a key has spent in the day and the month (UTC) of a time, and in
 * total.  tenant: the 32 hexadecimal digits that keys of Redis have.
 */
int dsa_key_spent(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id, int64_t time);

/*
 * In 10^-12 units; 0 if nothing was spent, and negative after a refund that an
 * operator wrote.
 */
int dsa_key_spent_reply(int64_t spent[DSA_KEY_PERIODS],
    const redisReply *reply, dsa_err_t *err);


#endif /* _DSA_KEYS_REDIS_H_INCLUDED_ */
