
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "redis_schema/keys_redis.h"
#include "redis_schema/resp.h"

#include "ngx_http_dsa_keys_redis.h"
#include "ngx_http_dsa_keys_update.h"


/* ms between two syncs, and between two checks for the first connection */
#define NGX_HTTP_DSA_KEYS_REDIS_INTERVAL  1000
#define NGX_HTTP_DSA_KEYS_REDIS_FIRST     100

#define NGX_HTTP_DSA_KEYS_REDIS_WARN      60000     /* ms */

/* bytes: of a command or the list of a reply, of one key entry */
#define NGX_HTTP_DSA_KEYS_REDIS_ARENA     (64 * 1024)
#define NGX_HTTP_DSA_KEYS_REDIS_ENTRY    (64 * 1024)


static void ngx_http_dsa_keys_redis_begin(ngx_http_dsa_keys_redis_t *kr);
static void ngx_http_dsa_keys_redis_send(ngx_http_dsa_keys_redis_t *kr);
static void ngx_http_dsa_keys_redis_reply(void *data, redisReply *reply,
    const char *why);
static void ngx_http_dsa_keys_redis_changes(ngx_http_dsa_keys_redis_t *kr,
    const dsa_key_changes_t *changes);
static void ngx_http_dsa_keys_redis_change(ngx_http_dsa_keys_redis_t *kr,
    const dsa_key_change_t *change);
static void ngx_http_dsa_keys_redis_warn(ngx_http_dsa_keys_redis_t *kr,
    const dsa_key_change_t *change, const char *why);
static void ngx_http_dsa_keys_redis_failed(ngx_http_dsa_keys_redis_t *kr,
    const char *why);


ngx_msec_t
ngx_http_dsa_keys_redis_read(ngx_http_dsa_keys_redis_t *kr)
{
    if (!ngx_http_dsa_redis_up(kr->redis)) {
        return ngx_http_dsa_keys_loaded(kr->keys)
               ? NGX_HTTP_DSA_KEYS_REDIS_INTERVAL
               : NGX_HTTP_DSA_KEYS_REDIS_FIRST;
    }

    if (kr->command != NULL) {
        return NGX_HTTP_DSA_KEYS_REDIS_INTERVAL;
    }

    /* another process read until now, or some keys did not fit into the zone */

    if (!kr->reading || ngx_http_dsa_keys_retry(kr->keys)) {
        ngx_http_dsa_keys_redis_begin(kr);
    }

    ngx_http_dsa_keys_redis_send(kr);

    return NGX_HTTP_DSA_KEYS_REDIS_INTERVAL;
}


void
ngx_http_dsa_keys_redis_stop(ngx_http_dsa_keys_redis_t *kr)
{
    if (kr->command != NULL) {
        ngx_http_dsa_redis_detach(kr->command);
        kr->command = NULL;
    }

    kr->reading = 0;
}


static void
ngx_http_dsa_keys_redis_begin(ngx_http_dsa_keys_redis_t *kr)
{
    kr->reading = 1;
    kr->full = 1;
    kr->since = 0;
    kr->round = ngx_http_dsa_keys_begin(kr->keys);
}


static void
ngx_http_dsa_keys_redis_send(ngx_http_dsa_keys_redis_t *kr)
{
    const char            *why;
    dsa_arena_t           *arena;
    dsa_schema_command_t   cmd;

    why = "nginx is out of memory";
    arena = dsa_arena_create(NGX_HTTP_DSA_KEYS_REDIS_ARENA);

    if (arena != NULL
        && dsa_key_sync(&cmd, arena, kr->since, DSA_KEY_SYNC_MAX, kr->text)
           == DSA_OK)
    {
        kr->command = ngx_http_dsa_redis_command(kr->redis, &cmd,
                                                 ngx_http_dsa_keys_redis_reply,
                                                 kr, &why);
    }

    dsa_arena_destroy(arena);

    if (kr->command == NULL) {
        ngx_http_dsa_keys_redis_failed(kr, why);
    }
}


static void
ngx_http_dsa_keys_redis_reply(void *data, redisReply *reply,
    const char *why)
{
    ngx_http_dsa_keys_redis_t *kr = data;

    dsa_err_t           err;
    dsa_arena_t        *arena;
    dsa_key_changes_t   changes;

    kr->command = NULL;

    if (why != NULL) {
        ngx_http_dsa_keys_redis_failed(kr, why);
        return;
    }

    if (kr->keys->zone->source.pid != ngx_pid) {

        /* this process was stopped for a while, and another one reads now */

        kr->reading = 0;
        return;
    }

    if (dsa_resp_is_error(reply, "NOSCRIPT") && !kr->text) {
        kr->text = 1;
        ngx_http_dsa_keys_redis_send(kr);
        return;
    }

    kr->text = 0;

    arena = dsa_arena_create(NGX_HTTP_DSA_KEYS_REDIS_ARENA);

    if (arena == NULL) {
        ngx_http_dsa_keys_redis_failed(kr, "nginx is out of memory");
        return;
    }

    if (dsa_key_sync_reply(&changes, arena, reply, &err) == DSA_OK) {
        ngx_http_dsa_keys_redis_changes(kr, &changes);

    } else {
        ngx_http_dsa_keys_redis_failed(kr, err.text);
    }

    dsa_arena_destroy(arena);
}


static void
ngx_http_dsa_keys_redis_changes(ngx_http_dsa_keys_redis_t *kr,
    const dsa_key_changes_t *changes)
{
    uint32_t                     i;
    ngx_http_dsa_keys_source_t  *source;

    source = &kr->keys->zone->source;

    /*
     * A Redis that is empty after it had keys has lost them, for example by a
     * restart without persistence.  That must not lock out all users.
     */

    if (changes->version == 0 && source->version != 0) {
        ngx_http_dsa_keys_redis_failed(kr, "it has no keys any more");
        return;
    }

    if (changes->version < kr->since) {

        /* changes were lost, and an older state was restored */

        ngx_http_dsa_keys_redis_begin(kr);
        ngx_http_dsa_keys_redis_send(kr);
        return;
    }

    for (i = 0; i < changes->n; i++) {
        ngx_http_dsa_keys_redis_change(kr, &changes->changes[i]);
    }

    if (changes->n == DSA_KEY_SYNC_MAX) {
        kr->since = changes->changes[changes->n - 1].version;
        ngx_http_dsa_keys_redis_send(kr);
        return;
    }

    kr->since = changes->version;
    source->version = changes->version;

    if (kr->full) {
        kr->full = 0;
        ngx_http_dsa_keys_end(kr->keys, kr->round);
    }

    ngx_http_dsa_keys_current(kr->keys);

    if (kr->failed) {
        kr->failed = 0;
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "dsa: the keys are updated from Redis again");
    }
}


/*
 * If a key entry cannot be read, its key remains as it is, because the key
 * entry was not written by "dsa key".
 */

static void
ngx_http_dsa_keys_redis_change(ngx_http_dsa_keys_redis_t *kr,
    const dsa_key_change_t *change)
{
    dsa_err_t     err;
    dsa_key_t     key;
    dsa_arena_t  *arena;

    if (!dsa_key_id_ok(change->id)) {
        ngx_http_dsa_keys_redis_warn(kr, change, "its id is not valid");
        return;
    }

    if (change->entry.len == 0) {
        ngx_http_dsa_keys_redis_warn(kr, change, "its key entry is missing or "
                                     "too long");
        ngx_http_dsa_keys_keep(kr->keys, change->id, kr->round);
        return;
    }

    arena = dsa_arena_create(NGX_HTTP_DSA_KEYS_REDIS_ENTRY);

    if (arena == NULL) {
        ngx_http_dsa_keys_redis_warn(kr, change, "nginx is out of memory");
        ngx_http_dsa_keys_keep(kr->keys, change->id, kr->round);
        return;
    }

    if (dsa_key_read(&key, arena, change->entry, &err) != DSA_OK) {
        ngx_http_dsa_keys_redis_warn(kr, change, err.text);
        ngx_http_dsa_keys_keep(kr->keys, change->id, kr->round);

    } else if (!dsa_str_eq(key.id, change->id)) {
        ngx_http_dsa_keys_redis_warn(kr, change,
                                     "its key entry has another id");
        ngx_http_dsa_keys_keep(kr->keys, change->id, kr->round);

    } else {
        ngx_http_dsa_keys_put(kr->keys, &key, kr->round);
    }

    dsa_arena_destroy(arena);
}


static void
ngx_http_dsa_keys_redis_warn(ngx_http_dsa_keys_redis_t *kr,
    const dsa_key_change_t *change, const char *why)
{
    if (kr->warned != 0
        && ngx_current_msec - kr->warned < NGX_HTTP_DSA_KEYS_REDIS_WARN)
    {
        return;
    }

    kr->warned = ngx_max(ngx_current_msec, 1);

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "dsa: key \"%*s\" of Redis is not updated: %s; expected a "
                  "key entry that \"dsa key\" has written",
                  ngx_min(change->id.len, DSA_KEY_ID_LEN), change->id.data,
                  why);
}


/* Each series of failures is logged once. */

static void
ngx_http_dsa_keys_redis_failed(ngx_http_dsa_keys_redis_t *kr,
    const char *why)
{
    if (kr->failed) {
        return;
    }

    kr->failed = 1;

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "dsa: the keys cannot be updated from Redis: %s; the last "
                  "known keys remain, and others get 503", why);
}
