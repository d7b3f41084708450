
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TOOLS_KEY_STORE_H_INCLUDED_
#define _DSA_TOOLS_KEY_STORE_H_INCLUDED_


#include "redis_schema/keys.h"
#include "tools/redis.h"


/*
 * Where the key entries are: in Redis, or in a file with one key entry in each
 * line.  A file that is opened for writing is locked against other writers
 * until it is closed, and it is replaced as a whole, so that a reader finds
 * either the old or the new key entries.
 */

typedef struct {
    const char           *file;         /* NULL: Redis */
    dsa_client_conf_t     redis;
} dsa_key_store_conf_t;


typedef enum {
    DSA_KEY_STORE_READ = 0,
    DSA_KEY_STORE_WRITE,
    DSA_KEY_STORE_CREATE            /* also a file that does not exist */
} dsa_key_store_mode_e;


typedef struct dsa_key_store_s  dsa_key_store_t;


/* conf outlives the store.  NULL with err. */
dsa_key_store_t *dsa_key_store_open(const dsa_key_store_conf_t *conf,
    dsa_key_store_mode_e mode, dsa_err_t *err);

void dsa_key_store_close(dsa_key_store_t *store);       /* NULL is allowed */

/*
 * Reads a key, and its entry as it is stored; both are in the arena.
 * DSA_AGAIN: there is none with this id.
 */
int dsa_key_store_get(dsa_key_store_t *store, dsa_arena_t *arena,
    dsa_str_t id, dsa_key_t *key, dsa_str_t *entry, dsa_err_t *err);

/*
 * Stores a key in place of the key entry that dsa_key_store_get() read, or as a
 * new one when previous is empty.  DSA_AGAIN: another process has changed the
 * key entry since then.
 */
int dsa_key_store_put(dsa_key_store_t *store, dsa_arena_t *arena,
    const dsa_key_t *key, dsa_str_t previous, dsa_err_t *err);


/* A stored key entry, and the values by which lists are sorted and searched. */

typedef struct {
    dsa_str_t             text;
    char                  id[DSA_KEY_ID_LEN];
    uint8_t               hash[DSA_KEY_HASH_LEN];
    uint8_t               old_hash[DSA_KEY_HASH_LEN];
    int                   old;          /* 1: there is an old hash */
    int64_t               created;
    uint64_t              order;        /* a later key entry has a higher one */
} dsa_key_entry_t;


/* A zeroed list is empty. */

typedef struct {
    dsa_key_entry_t      *entries;
    size_t                n;
    size_t                size;
    size_t                bad;          /* key entries that are invalid */
} dsa_key_list_t;


/*
 * Reads all key entries, in the order of their creation.  An invalid one is
 * left out, counted, and reported on stderr.  The texts are in the arena; the
 * caller frees the list with dsa_key_list_free() in any case.
 */
int dsa_key_store_list(dsa_key_store_t *store, dsa_arena_t *arena,
    dsa_key_list_t *list, dsa_err_t *err);

void dsa_key_list_free(dsa_key_list_t *list);

/* Adds a key entry.  DSA_ERROR: it is invalid, or out of memory. */
int dsa_key_list_add(dsa_key_list_t *list, dsa_str_t text, dsa_err_t *err);


#endif /* _DSA_TOOLS_KEY_STORE_H_INCLUDED_ */
