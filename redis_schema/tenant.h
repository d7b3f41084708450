
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SCHEMA_TENANT_H_INCLUDED_
#define _DSA_SCHEMA_TENANT_H_INCLUDED_


#include "keys.h"
#include "schema.h"


/*
 * All that a tenant has in Redis.  Every key of a tenant begins with the digits
 * of the tenant, so that a scan finds them, and all of them are in one cluster
 * slot.  Pages of the KV cache have digests instead of names, so that nothing
 * finds those of a tenant; they expire.
 */

typedef enum {
    DSA_TENANT_CONVERSATION = 0,
    DSA_TENANT_LEASE,
    DSA_TENANT_RESPONSE,
    DSA_TENANT_RETAINED,
    DSA_TENANT_IDEMPOTENCY,
    DSA_TENANT_WINDOW,
    DSA_TENANT_ACCOUNT,
    DSA_TENANT_LEDGER,              /* the first that is about money */
    DSA_TENANT_SPEND,
    DSA_TENANT_MARKER,
    DSA_TENANT_OTHER,               /* no kind that this version has */
    DSA_TENANT_KINDS
} dsa_tenant_kind_e;

#define DSA_TENANT_SCAN  1000       /* keys that Redis looks at for a reply */


/* The name of a kind for a report, for example "conversations". */
const char *dsa_tenant_name(dsa_tenant_kind_e kind);

/*
 * The kind of a key.  DSA_AGAIN: it is not a key of the tenant.  tenant: the
 * DSA_KEY_TENANT_LEN digits of the tenant.
 */
int dsa_tenant_kind(dsa_tenant_kind_e *kind, dsa_str_t tenant, dsa_str_t key);


/* Commands.  DSA_ERROR: out of memory, or an argument is out of range. */

/*
 * A command with a key of the tenant that never exists.  A node of a Redis
 * Cluster replies with MOVED if another node has the tenant, and with ASK while
 * it gives the tenant away.  Otherwise the reply is 0.
 */
int dsa_tenant_probe(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant);

/* cursor: "0" at first, then that of the reply before. */
int dsa_tenant_scan(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t cursor);

/* keys: n strings of a reply; Redis replies with the number that it removed. */
int dsa_tenant_unlink(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const dsa_str_t *keys, uint32_t n);


/*
 * The reply to dsa_tenant_scan().  *keys: an array of strings, which is a part
 * of the reply, as *cursor is.  The cursor "0" ends the scan.  DSA_ERROR with
 * err: the reply is something else.
 */
int dsa_tenant_scan_reply(dsa_str_t *cursor, const redisReply **keys,
    const redisReply *reply, dsa_err_t *err);


#endif /* _DSA_SCHEMA_TENANT_H_INCLUDED_ */
