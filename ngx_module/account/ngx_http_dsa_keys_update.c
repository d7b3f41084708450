
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include <assert.h>

#include "ngx_http_dsa_keys.h"
#include "ngx_http_dsa_keys_update.h"


/* ms between rounds for keys that did not fit, and between their log lines */

#define NGX_HTTP_DSA_KEYS_FULL   60000

/* entries that are visited while the zone is locked */

#define NGX_HTTP_DSA_KEYS_BATCH  256


static ngx_http_dsa_key_t *ngx_http_dsa_keys_add(ngx_http_dsa_keys_t *keys,
    const dsa_key_t *entry);
static void ngx_http_dsa_keys_set(ngx_http_dsa_keys_t *keys,
    ngx_http_dsa_key_t *key, const dsa_key_t *entry);
static void ngx_http_dsa_keys_set_hash(ngx_http_dsa_keys_zone_t *zone,
    ngx_http_dsa_key_t *key, ngx_http_dsa_key_hash_t *hash, ngx_uint_t was,
    const uint8_t *digest);
static void ngx_http_dsa_keys_set_models(ngx_http_dsa_keys_t *keys,
    ngx_http_dsa_key_t *key, const dsa_key_t *entry);
static void ngx_http_dsa_keys_warn_full(ngx_http_dsa_keys_t *keys,
    const dsa_key_t *entry);
static void ngx_http_dsa_keys_remove(ngx_http_dsa_keys_zone_t *zone,
    ngx_http_dsa_key_t *key);


uint64_t
ngx_http_dsa_keys_begin(ngx_http_dsa_keys_t *keys)
{
    uint64_t                   round;
    ngx_http_dsa_keys_zone_t  *zone;

    zone = keys->zone;

    ngx_shmtx_lock(&keys->shpool->mutex);

    round = ++zone->round;
    zone->dropped = 0;

    ngx_shmtx_unlock(&keys->shpool->mutex);

    return round;
}


void
ngx_http_dsa_keys_put(ngx_http_dsa_keys_t *keys, const dsa_key_t *entry,
    uint64_t round)
{
    ngx_http_dsa_key_t        *key;
    ngx_http_dsa_keys_zone_t  *zone;

    zone = keys->zone;

    ngx_shmtx_lock(&keys->shpool->mutex);

    key = ngx_http_dsa_keys_by_id(zone, entry->id);

    if (key == NULL) {
        key = ngx_http_dsa_keys_add(keys, entry);
    }

    if (key != NULL) {
        ngx_http_dsa_keys_set(keys, key, entry);
        key->round = round;
    }

    if (key == NULL || key->blocked) {
        if (zone->dropped++ == 0) {
            zone->retry = ngx_current_msec + NGX_HTTP_DSA_KEYS_FULL;
        }

        ngx_http_dsa_keys_warn_full(keys, entry);
    }

    ngx_shmtx_unlock(&keys->shpool->mutex);
}


void
ngx_http_dsa_keys_keep(ngx_http_dsa_keys_t *keys, dsa_str_t id,
    uint64_t round)
{
    ngx_http_dsa_key_t  *key;

    ngx_shmtx_lock(&keys->shpool->mutex);

    key = ngx_http_dsa_keys_by_id(keys->zone, id);

    if (key != NULL) {
        key->round = round;
    }

    ngx_shmtx_unlock(&keys->shpool->mutex);
}


static ngx_http_dsa_key_t *
ngx_http_dsa_keys_add(ngx_http_dsa_keys_t *keys, const dsa_key_t *entry)
{
    ngx_http_dsa_key_t        *key;
    ngx_http_dsa_keys_zone_t  *zone;

    zone = keys->zone;

    key = ngx_slab_calloc_locked(keys->shpool, sizeof(ngx_http_dsa_key_t));

    if (key == NULL) {
        return NULL;
    }

    key->node.key = ngx_http_dsa_keys_number(entry->id);
    ngx_memcpy(key->id, entry->id.data, DSA_KEY_ID_LEN);

    ngx_rbtree_insert(&zone->ids, &key->node);

    key->hash.key = key;
    key->old.key = key;

    ngx_memcpy(key->hash.digest, entry->hash, NGX_HTTP_DSA_KEYS_DIGEST);
    ngx_rbtree_insert(&zone->hashes, &key->hash.node);

    return key;
}


static void
ngx_http_dsa_keys_set(ngx_http_dsa_keys_t *keys, ngx_http_dsa_key_t *key,
    const dsa_key_t *entry)
{
    ngx_http_dsa_keys_zone_t  *zone;

    assert(entry->name.len <= DSA_KEY_MAX_NAME);

    zone = keys->zone;

    ngx_http_dsa_keys_set_hash(zone, key, &key->hash, 1, entry->hash);
    ngx_http_dsa_keys_set_hash(zone, key, &key->old, key->old_until != 0,
                               entry->old_until != 0 ? entry->old_hash
                                                     : NULL);

    key->old_until = entry->old_until;
    key->expires = entry->expires;
    key->state = entry->state;
    key->weight = entry->limits.weight;
    key->priority = entry->limits.priority;

    key->name_len = entry->name.len;
    ngx_memcpy(key->name, entry->name.data, entry->name.len);

    dsa_key_tenant(key->tenant, entry->tenant);

    ngx_http_dsa_limit_set(zone->limits, &key->limit, key->id, key->tenant,
                           &entry->limits);

    ngx_http_dsa_keys_set_models(keys, key, entry);
}


/*
 * was: the hash is in the tree.  digest is the new SHA-256; NULL: the hash
 * leaves the tree.
 */

static void
ngx_http_dsa_keys_set_hash(ngx_http_dsa_keys_zone_t *zone,
    ngx_http_dsa_key_t *key, ngx_http_dsa_key_hash_t *hash, ngx_uint_t was,
    const uint8_t *digest)
{
    if (was && digest != NULL
        && ngx_memcmp(hash->digest, digest, NGX_HTTP_DSA_KEYS_DIGEST) == 0)
    {
        return;
    }

    if (was) {
        ngx_rbtree_delete(&zone->hashes, &hash->node);
    }

    if (digest != NULL) {
        hash->key = key;
        ngx_memcpy(hash->digest, digest, NGX_HTTP_DSA_KEYS_DIGEST);
        ngx_rbtree_insert(&zone->hashes, &hash->node);
    }
}


/*
 * Each name follows a byte with its length.  If the new names do not fit, the
 * old ones must not stay, because they may permit more: the key is blocked.
 */

static void
ngx_http_dsa_keys_set_models(ngx_http_dsa_keys_t *keys,
    ngx_http_dsa_key_t *key, const dsa_key_t *entry)
{
    u_char    *p;
    size_t     size;
    uint32_t   i;

    size = 0;

    for (i = 0; i < entry->n_models; i++) {
        assert(entry->models[i].len <= 255);
        size += 1 + entry->models[i].len;
    }

    key->blocked = 0;

    if (size != key->models_size && key->models != NULL) {
        ngx_slab_free_locked(keys->shpool, key->models);
        key->models = NULL;
        key->models_size = 0;
    }

    if (size == 0) {
        return;
    }

    if (key->models == NULL) {
        key->models = ngx_slab_alloc_locked(keys->shpool, size);

        if (key->models == NULL) {
            key->blocked = 1;
            return;
        }

        key->models_size = size;
    }

    p = key->models;

    for (i = 0; i < entry->n_models; i++) {
        *p++ = (u_char) entry->models[i].len;
        p = ngx_cpymem(p, entry->models[i].data, entry->models[i].len);
    }
}


/* Called while the zone is locked. */

static void
ngx_http_dsa_keys_warn_full(ngx_http_dsa_keys_t *keys, const dsa_key_t *entry)
{
    ngx_http_dsa_keys_zone_t  *zone;

    zone = keys->zone;

    /* the time of a process that has led before may be ahead of this one's */

    if (zone->warned
        && (ngx_msec_int_t) (ngx_current_msec - zone->full)
           < NGX_HTTP_DSA_KEYS_FULL)
    {
        return;
    }

    zone->warned = 1;
    zone->full = ngx_current_msec;

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "dsa: zone \"%V\" of \"dsa_keys\" is full: key \"%*s\" and "
                  "perhaps others get 503; expected a larger zone",
                  &keys->shm->shm.name, entry->id.len, entry->id.data);
}


void
ngx_http_dsa_keys_end(ngx_http_dsa_keys_t *keys, uint64_t round)
{
    ngx_uint_t                 i, removed;
    ngx_rbtree_key_t           next;
    ngx_http_dsa_key_t        *key;
    ngx_http_dsa_keys_zone_t  *zone;

    zone = keys->zone;
    next = 0;
    removed = 0;

    do {
        ngx_shmtx_lock(&keys->shpool->mutex);

        key = NULL;

        for (i = 0; i < NGX_HTTP_DSA_KEYS_BATCH; i++) {
            key = ngx_http_dsa_keys_after(zone, next);

            if (key == NULL) {
                break;
            }

            next = key->node.key + 1;

            if (key->round != round) {
                ngx_http_dsa_keys_remove(zone, key);
                removed++;
            }

            if (next == 0) {
                key = NULL;
                break;
            }
        }

        ngx_shmtx_unlock(&keys->shpool->mutex);

    } while (key != NULL);

    ngx_http_dsa_keys_sweep(keys);

    ngx_shmtx_lock(&keys->shpool->mutex);

    zone->loaded = 1;
    zone->missing = zone->dropped;

    if (removed != 0) {

        /* keys that did not fit may have room now */

        zone->retry = ngx_current_msec;
    }

    ngx_shmtx_unlock(&keys->shpool->mutex);
}


static void
ngx_http_dsa_keys_remove(ngx_http_dsa_keys_zone_t *zone,
    ngx_http_dsa_key_t *key)
{
    ngx_rbtree_delete(&zone->ids, &key->node);
    ngx_rbtree_delete(&zone->hashes, &key->hash.node);

    if (key->old_until != 0) {
        ngx_rbtree_delete(&zone->hashes, &key->old.node);
    }

    key->removed = ++zone->clock;

    ngx_queue_insert_tail(&zone->removed, &key->queue);
}


void
ngx_http_dsa_keys_sweep(ngx_http_dsa_keys_t *keys)
{
    uint64_t                   oldest;
    ngx_queue_t               *q, *next;
    ngx_http_dsa_key_t        *key;
    ngx_http_dsa_keys_zone_t  *zone;

    zone = keys->zone;

    ngx_shmtx_lock(&keys->shpool->mutex);

    if (!ngx_queue_empty(&zone->removed)) {
        oldest = ngx_http_dsa_keys_oldest(keys);

        for (q = ngx_queue_head(&zone->removed);
             q != ngx_queue_sentinel(&zone->removed);
             q = next)
        {
            next = ngx_queue_next(q);
            key = ngx_queue_data(q, ngx_http_dsa_key_t, queue);

            /* they are in the order of their removal */

            if (key->removed > oldest) {
                break;
            }

            if (ngx_http_dsa_limit_remove(zone->limits, &key->limit)
                != NGX_OK)
            {
                continue;
            }

            ngx_queue_remove(&key->queue);

            if (key->models != NULL) {
                ngx_slab_free_locked(keys->shpool, key->models);
            }

            ngx_slab_free_locked(keys->shpool, key);
        }
    }

    ngx_shmtx_unlock(&keys->shpool->mutex);
}


void
ngx_http_dsa_keys_current(ngx_http_dsa_keys_t *keys)
{
    ngx_shmtx_lock(&keys->shpool->mutex);

    keys->zone->missing = keys->zone->dropped;
    keys->zone->current = ngx_current_msec;

    ngx_shmtx_unlock(&keys->shpool->mutex);
}


ngx_uint_t
ngx_http_dsa_keys_loaded(ngx_http_dsa_keys_t *keys)
{
    return keys->zone->loaded;
}


ngx_uint_t
ngx_http_dsa_keys_any(ngx_http_dsa_keys_t *keys)
{
    ngx_uint_t  any;

    ngx_shmtx_lock(&keys->shpool->mutex);

    any = keys->zone->loaded
          && ngx_http_dsa_keys_after(keys->zone, 0) != NULL;

    ngx_shmtx_unlock(&keys->shpool->mutex);

    return any;
}


void
ngx_http_dsa_keys_reset(ngx_http_dsa_keys_t *keys)
{
    ngx_shmtx_lock(&keys->shpool->mutex);

    keys->zone->loaded = 0;

    ngx_shmtx_unlock(&keys->shpool->mutex);
}


ngx_uint_t
ngx_http_dsa_keys_retry(ngx_http_dsa_keys_t *keys)
{
    ngx_uint_t                 due;
    ngx_http_dsa_keys_zone_t  *zone;

    zone = keys->zone;

    ngx_shmtx_lock(&keys->shpool->mutex);

    due = zone->missing != 0
          && (ngx_msec_int_t) (ngx_current_msec - zone->retry) >= 0;

    if (due) {

        /* a round that fails before it puts a key is not repeated soon */

        zone->retry = ngx_current_msec + NGX_HTTP_DSA_KEYS_FULL;
    }

    ngx_shmtx_unlock(&keys->shpool->mutex);

    return due;
}
