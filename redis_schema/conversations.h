
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SCHEMA_CONVERSATIONS_H_INCLUDED_
#define _DSA_SCHEMA_CONVERSATIONS_H_INCLUDED_


#include "schema.h"


/*
 * What changes a conversation besides the end of a turn: the lease of a turn,
 * entries that are added, replaced or removed, and metadata.  schema.h has what
 * creates, reads and deletes a conversation.  All functions return as those of
 * schema.h do.
 */

/*
 * A turn leases its conversation for this long, in milliseconds, and renews the
 * lease at a third of it, so that two renewals may fail.  The lease of a
 * process that was killed expires.
 */
#define DSA_SCHEMA_LEASE  30000


/* The values are those of the scripts. */

typedef enum {
    DSA_SCHEMA_CHANGE_DONE = 0,
    DSA_SCHEMA_CHANGE_BUSY,          /* a turn has the lease */
    DSA_SCHEMA_CHANGE_GONE,          /* deleted or expired */
    DSA_SCHEMA_CHANGE_LARGE,         /* the entries alone exceed the limits */
    DSA_SCHEMA_CHANGE_DAMAGED,       /* it does not have the layout */
    DSA_SCHEMA_CHANGE_CHANGED        /* the version is not the one loaded */
} dsa_schema_change_e;


/*
 * Leases a conversation to the turn owner, which is the id of its request, and
 * reads it.  Redis replies with what dsa_schema_begun() reads.
 */
int dsa_schema_begin(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id, dsa_str_t owner);

/*
 * DSA_OK: *result is set, and c if it is DSA_SCHEMA_CHANGE_DONE.  DSA_ERROR:
 * the reply is an error of Redis, or not a complete conversation.
 */
int dsa_schema_begun(dsa_schema_change_e *result,
    dsa_schema_conversation_t *c, dsa_arena_t *arena, const redisReply *reply,
    dsa_err_t *err);

/*
 * Renews the lease, unless another turn has it; ends the lease, if owner has
 * it.  Redis replies 1, or 0 if another turn has the lease.
 */
int dsa_schema_renew(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id, dsa_str_t owner);
int dsa_schema_release(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id, dsa_str_t owner);

/*
 * Appends entries as a turn does, unless a turn has the lease.  Redis replies
 * with a dsa_schema_change_e, or that it exceeds the quota.
 */
int dsa_schema_add(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id, const dsa_schema_storage_t *storage,
    const dsa_str_t *entries, uint32_t n);

/*
 * Replaces the entry with this number by a text, or removes it if text is
 * empty, unless a turn has the lease or the version has changed.  Redis
 * replies with a dsa_schema_change_e.
 */
int dsa_schema_edit(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id, int64_t version, int64_t ttl,
    int64_t number, dsa_str_t text);

/* Redis replies as for dsa_schema_edit(). */
int dsa_schema_change(dsa_schema_change_e *result,
    const redisReply *reply, dsa_err_t *err);

/*
 * Replaces metadata, a JSON object.  Redis replies with the time at which the
 * conversation was created, or 0 if there is no such conversation, or that it
 * exceeds the quota.
 */
int dsa_schema_metadata(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id, const dsa_schema_storage_t *storage,
    dsa_str_t metadata);


#endif /* _DSA_SCHEMA_CONVERSATIONS_H_INCLUDED_ */
