
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis_schema/keys_redis.h"
#include "redis_schema/resp.h"
#include "tools/key_file.h"
#include "tools/key_store.h"


#define DSA_KEY_ARENA   (256 * 1024)        /* of an entry and its commands */


struct dsa_key_store_s {
    dsa_key_file_t   *file;                 /* NULL: Redis */
    dsa_client_t     *client;
};


static int dsa_key_store_find(dsa_key_store_t *store, dsa_arena_t *arena,
    dsa_str_t id, dsa_str_t *entry, dsa_err_t *err);
static int dsa_key_store_redis_list(dsa_key_store_t *store, dsa_arena_t *arena,
    dsa_key_list_t *list, dsa_err_t *err);
static int dsa_key_store_page(dsa_key_store_t *store, dsa_arena_t *arena,
    dsa_key_list_t *list, int64_t *since, dsa_err_t *err);
static redisReply *dsa_key_store_sync(dsa_key_store_t *store,
    dsa_arena_t *arena, int64_t since, dsa_err_t *err);
static int dsa_key_list_push(dsa_key_list_t *list,
    const dsa_key_entry_t *entry, dsa_err_t *err);
static int dsa_key_entry_by_id(const void *one, const void *two);
static int dsa_key_entry_by_time(const void *one, const void *two);


dsa_key_store_t *
dsa_key_store_open(const dsa_key_store_conf_t *conf,
    dsa_key_store_mode_e mode, dsa_err_t *err)
{
    dsa_key_store_t  *store;

    store = calloc(1, sizeof(dsa_key_store_t));

    if (store == NULL) {
        (void) dsa_error(err, "out of memory");
        return NULL;
    }

    if (conf->file != NULL) {
        store->file = dsa_key_file_open(conf->file, mode, err);

    } else {
        store->client = dsa_client_open(&conf->redis, err);
    }

    if (store->file == NULL && store->client == NULL) {
        free(store);
        return NULL;
    }

    return store;
}


void
dsa_key_store_close(dsa_key_store_t *store)
{
    if (store != NULL) {
        dsa_key_file_close(store->file);
        dsa_client_close(store->client);
        free(store);
    }
}


int
dsa_key_store_get(dsa_key_store_t *store, dsa_arena_t *arena, dsa_str_t id,
    dsa_key_t *key, dsa_str_t *entry, dsa_err_t *err)
{
    int        rc;
    dsa_err_t  reason;

    rc = dsa_key_store_find(store, arena, id, entry, err);

    if (rc != DSA_OK) {
        return rc;
    }

    if (dsa_key_read(key, arena, *entry, &reason) != DSA_OK) {
        return dsa_error(err, "%.*s: %s", (int) id.len, id.data, reason.text);
    }

    return DSA_OK;
}


static int
dsa_key_store_find(dsa_key_store_t *store, dsa_arena_t *arena, dsa_str_t id,
    dsa_str_t *entry, dsa_err_t *err)
{
    int                    rc;
    char                  *text;
    size_t                 i;
    redisReply            *reply;
    const dsa_key_list_t  *list;
    dsa_schema_command_t   cmd;

    if (store->file != NULL) {
        list = dsa_key_file_list(store->file);

        for (i = 0; i < list->n; i++) {
            if (memcmp(list->entries[i].id, id.data, DSA_KEY_ID_LEN) == 0) {
                *entry = list->entries[i].text;
                return DSA_OK;
            }
        }

        return DSA_AGAIN;
    }

    if (dsa_key_get(&cmd, arena, id) != DSA_OK) {
        return dsa_error(err, "out of memory");
    }

    reply = dsa_client_call(store->client, &cmd, err);

    if (reply == NULL) {
        return DSA_ERROR;
    }

    rc = dsa_key_get_reply(entry, reply, err);

    if (rc == DSA_OK) {
        text = dsa_arena_dup(arena, *entry);

        if (text != NULL) {
            *entry = dsa_str(text, entry->len);

        } else {
            rc = dsa_error(err, "out of memory");
        }
    }

    freeReplyObject(reply);

    return rc;
}


int
dsa_key_store_put(dsa_key_store_t *store, dsa_arena_t *arena,
    const dsa_key_t *key, dsa_str_t previous, dsa_err_t *err)
{
    int                    rc;
    redisReply            *reply;
    dsa_key_put_e          result;
    dsa_schema_command_t   cmd;

    if (store->file != NULL) {
        return dsa_key_file_put(store->file, key, err);
    }

    if (dsa_key_put(&cmd, arena, key, previous) != DSA_OK) {
        return dsa_error(err, "out of memory");
    }

    reply = dsa_client_call(store->client, &cmd, err);

    if (reply == NULL) {
        return DSA_ERROR;
    }

    rc = dsa_key_put_reply(&result, reply, err);
    freeReplyObject(reply);

    if (rc != DSA_OK) {
        return DSA_ERROR;
    }

    switch (result) {

    case DSA_KEY_PUT_DONE:
        return DSA_OK;

    case DSA_KEY_PUT_MOVED:
        return DSA_AGAIN;

    case DSA_KEY_PUT_EXISTS:
        return dsa_error(err, "a key with the id %.*s exists",
                         (int) key->id.len, key->id.data);

    default: /* DSA_KEY_PUT_TAKEN */
        return dsa_error(err, "another key than %.*s has the same hash",
                         (int) key->id.len, key->id.data);
    }
}


int
dsa_key_store_list(dsa_key_store_t *store, dsa_arena_t *arena,
    dsa_key_list_t *list, dsa_err_t *err)
{
    size_t                 i;
    const dsa_key_list_t  *lines;

    if (store->file != NULL) {
        lines = dsa_key_file_list(store->file);

        for (i = 0; i < lines->n; i++) {
            if (dsa_key_list_push(list, &lines->entries[i], err) != DSA_OK) {
                return DSA_ERROR;
            }
        }

    } else if (dsa_key_store_redis_list(store, arena, list, err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (list->n != 0) {
        qsort(list->entries, list->n, sizeof(dsa_key_entry_t),
              dsa_key_entry_by_time);
    }

    return DSA_OK;
}


static int
dsa_key_store_redis_list(dsa_key_store_t *store, dsa_arena_t *arena,
    dsa_key_list_t *list, dsa_err_t *err)
{
    int      rc;
    size_t   i, n;
    int64_t  since;

    since = 0;

    do {
        rc = dsa_key_store_page(store, arena, list, &since, err);
    } while (rc == DSA_AGAIN);

    if (rc != DSA_OK || list->n == 0) {
        return rc;
    }

    /* a key entry that was changed while the pages were read is there twice */

    qsort(list->entries, list->n, sizeof(dsa_key_entry_t),
          dsa_key_entry_by_id);

    n = 1;

    for (i = 1; i < list->n; i++) {
        if (memcmp(list->entries[i].id, list->entries[n - 1].id,
                   DSA_KEY_ID_LEN)
            == 0)
        {
            n--;
        }

        list->entries[n++] = list->entries[i];
    }

    list->n = n;

    return DSA_OK;
}


/* DSA_AGAIN: there are more pages. */

static int
dsa_key_store_page(dsa_key_store_t *store, dsa_arena_t *arena,
    dsa_key_list_t *list, int64_t *since, dsa_err_t *err)
{
    int                 rc;
    char               *text, id[DSA_RESP_TEXT];
    uint32_t            i;
    dsa_err_t           reason;
    redisReply         *reply;
    dsa_arena_t        *page;
    dsa_key_change_t   *change;
    dsa_key_changes_t   changes;

    page = dsa_arena_create(DSA_KEY_ARENA);

    if (page == NULL) {
        return dsa_error(err, "out of memory");
    }

    rc = DSA_ERROR;
    reply = dsa_key_store_sync(store, page, *since, err);

    if (reply == NULL
        || dsa_key_sync_reply(&changes, page, reply, err) != DSA_OK)
    {
        goto done;
    }

    for (i = 0; i < changes.n; i++) {
        change = &changes.changes[i];
        *since = change->version;
        text = dsa_arena_dup(arena, change->entry);

        if (text == NULL) {
            (void) dsa_error(err, "out of memory for %zu key entries", list->n);
            goto done;
        }

        if (dsa_key_list_add(list, dsa_str(text, change->entry.len), &reason)
            != DSA_OK)
        {
            list->bad++;
            (void) fprintf(stderr, "dsa: the key %s is left out: %s\n",
                           dsa_resp_text(id, change->id.data, change->id.len),
                           reason.text);
        }
    }

    rc = changes.n == DSA_KEY_SYNC_MAX ? DSA_AGAIN : DSA_OK;

done:

    if (reply != NULL) {
        freeReplyObject(reply);
    }

    dsa_arena_destroy(page);

    return rc;
}


static redisReply *
dsa_key_store_sync(dsa_key_store_t *store, dsa_arena_t *arena, int64_t since,
    dsa_err_t *err)
{
    dsa_schema_command_t  cmd;

    /* the command is rarely sent, so it has the text of the script */

    if (dsa_key_sync(&cmd, arena, since, DSA_KEY_SYNC_MAX, 1) != DSA_OK) {
        (void) dsa_error(err, "out of memory");
        return NULL;
    }

    return dsa_client_call(store->client, &cmd, err);
}


int
dsa_key_list_add(dsa_key_list_t *list, dsa_str_t text, dsa_err_t *err)
{
    int               rc;
    dsa_key_t         key;
    dsa_arena_t      *arena;
    dsa_key_entry_t   entry;

    arena = dsa_arena_create(DSA_KEY_ARENA);

    if (arena == NULL) {
        return dsa_error(err, "out of memory");
    }

    rc = dsa_key_read(&key, arena, text, err);

    if (rc == DSA_OK) {
        entry.text = text;
        memcpy(entry.id, key.id.data, DSA_KEY_ID_LEN);
        memcpy(entry.hash, key.hash, DSA_KEY_HASH_LEN);
        memcpy(entry.old_hash, key.old_hash, DSA_KEY_HASH_LEN);
        entry.old = key.old_until != 0;
        entry.created = key.created;
        rc = dsa_key_list_push(list, &entry, err);
    }

    dsa_arena_destroy(arena);

    return rc;
}


static int
dsa_key_list_push(dsa_key_list_t *list, const dsa_key_entry_t *entry,
    dsa_err_t *err)
{
    size_t            size;
    dsa_key_entry_t  *entries;

    if (list->n == list->size) {
        size = list->size != 0 ? 2 * list->size : 64;
        entries = realloc(list->entries, size * sizeof(dsa_key_entry_t));

        if (entries == NULL) {
            return dsa_error(err, "out of memory for %zu keys", size);
        }

        list->entries = entries;
        list->size = size;
    }

    list->entries[list->n] = *entry;
    list->entries[list->n].order = list->n;
    list->n++;

    return DSA_OK;
}


void
dsa_key_list_free(dsa_key_list_t *list)
{
    free(list->entries);
}


static int
dsa_key_entry_by_id(const void *one, const void *two)
{
    int                     rc;
    const dsa_key_entry_t  *a = one;
    const dsa_key_entry_t  *b = two;

    rc = memcmp(a->id, b->id, DSA_KEY_ID_LEN);

    return rc != 0 ? rc : (a->order > b->order) - (a->order < b->order);
}


static int
dsa_key_entry_by_time(const void *one, const void *two)
{
    const dsa_key_entry_t  *a = one;
    const dsa_key_entry_t  *b = two;

    if (a->created != b->created) {
        return a->created > b->created ? 1 : -1;
    }

    return memcmp(a->id, b->id, DSA_KEY_ID_LEN);
}
