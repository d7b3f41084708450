
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include <assert.h>

#include "ngx_http_dsa_conf.h"
#include "ngx_http_dsa_keys.h"
#include "ngx_http_dsa_zone.h"


/* ms between rounds for keys that did not fit, and between log lines on it */
#define NGX_HTTP_DSA_KEYS_FULL     60000

/* entries that are visited while the zone is locked */
#define NGX_HTTP_DSA_KEYS_BATCH    256


/*
 * What each process reports about its references: oldest is 0 without any, or
 * else 1 and the clock at the beginning of the oldest.
 */

typedef struct {
    ngx_pid_t                    pid;
    uint64_t                     oldest;
} ngx_http_dsa_keys_process_t;


struct ngx_http_dsa_keys_zone_s {
    ngx_http_dsa_zone_t          zone;
    ngx_rbtree_t                 ids;
    ngx_rbtree_node_t            ids_sentinel;
    ngx_rbtree_t                 hashes;
    ngx_rbtree_node_t            hashes_sentinel;
    ngx_queue_t                  removed;   /* requests may refer to them */
    uint64_t                     clock;     /* counts removals */
    uint64_t                     round;

    ngx_uint_t                   loaded;    /* a round has been complete */
    ngx_msec_t                   current;   /* when it was so last */
    ngx_uint_t                   missing;   /* keys that did not fit */
    ngx_uint_t                   dropped;   /* of them, so far, this round */
    ngx_msec_t                   retry;     /* time of the next round */
    ngx_uint_t                   warned;    /* the time in full is valid */
    ngx_msec_t                   full;      /* time of the last warning */

    ngx_http_dsa_limits_t       *limits;
    ngx_http_dsa_keys_source_t   source;
    ngx_http_dsa_keys_process_t  processes[NGX_MAX_PROCESSES];
};


/* of the keys as well */

#define NGX_HTTP_DSA_KEYS_LAYOUT                                              \
    (NGX_HTTP_DSA_ZONE_LAYOUT(1, ngx_http_dsa_keys_zone_t)                    \
     ^ sizeof(ngx_http_dsa_key_t) << 40)


static void ngx_http_dsa_keys_insert_hash(ngx_rbtree_node_t *temp,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel);
static ngx_http_dsa_key_hash_t *ngx_http_dsa_keys_by_hash(
    ngx_http_dsa_keys_zone_t *zone, const u_char *digest);
static ngx_http_dsa_key_t *ngx_http_dsa_keys_by_id(
    ngx_http_dsa_keys_zone_t *zone, ngx_rbtree_key_t id);
static ngx_http_dsa_key_t *ngx_http_dsa_keys_after(
    ngx_http_dsa_keys_zone_t *zone, ngx_rbtree_key_t id);
static ngx_rbtree_key_t ngx_http_dsa_keys_number(dsa_str_t id);
static const char *ngx_http_dsa_keys_doubt(ngx_http_dsa_keys_zone_t *zone);
static void ngx_http_dsa_keys_report(ngx_http_dsa_keys_t *keys);
static ngx_http_dsa_key_t *ngx_http_dsa_keys_add(ngx_http_dsa_keys_t *keys,
    const dsa_key_t *record);
static void ngx_http_dsa_keys_set(ngx_http_dsa_keys_t *keys,
    ngx_http_dsa_key_t *key, const dsa_key_t *record);
static void ngx_http_dsa_keys_set_hash(ngx_http_dsa_keys_zone_t *zone,
    ngx_http_dsa_key_t *key, ngx_http_dsa_key_hash_t *hash, ngx_uint_t was,
    const uint8_t *digest);
static void ngx_http_dsa_keys_set_models(ngx_http_dsa_keys_t *keys,
    ngx_http_dsa_key_t *key, const dsa_key_t *record);
static void ngx_http_dsa_keys_remove(ngx_http_dsa_keys_zone_t *zone,
    ngx_http_dsa_key_t *key);
static void ngx_http_dsa_keys_full(ngx_http_dsa_keys_t *keys,
    const dsa_key_t *record);
static uint64_t ngx_http_dsa_keys_oldest(ngx_http_dsa_keys_zone_t *zone);


ngx_int_t
ngx_http_dsa_keys_add_zone(ngx_conf_t *cf, ngx_http_dsa_keys_t *keys,
    ngx_str_t *name, size_t size, ngx_shm_zone_init_pt init, void *data)
{
    keys->shm = ngx_shared_memory_add(cf, name, size, &ngx_http_dsa_module);

    if (keys->shm == NULL) {
        return NGX_ERROR;
    }

    if (keys->shm->data != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "zone \"%V\" of \"dsa_keys\" is used by another "
                           "directive; expected another name", name);
        return NGX_ERROR;
    }

    keys->cycle = cf->cycle;
    keys->shm->init = init;
    keys->shm->data = data;

    return NGX_OK;
}


ngx_int_t
ngx_http_dsa_keys_init_zone(ngx_http_dsa_keys_t *keys, ngx_shm_zone_t *shm,
    void *old)
{
    ngx_int_t                  rc;
    ngx_http_dsa_keys_zone_t  *zone;

    ngx_queue_init(&keys->refs);

    keys->shpool = (ngx_slab_pool_t *) shm->shm.addr;

    rc = ngx_http_dsa_zone_open(shm, old, NGX_HTTP_DSA_KEYS_LAYOUT,
                                sizeof(ngx_http_dsa_keys_zone_t), &zone);

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    keys->zone = zone;

    if (rc == NGX_DECLINED) {
        ngx_rbtree_init(&zone->ids, &zone->ids_sentinel,
                        ngx_rbtree_insert_value);
        ngx_rbtree_init(&zone->hashes, &zone->hashes_sentinel,
                        ngx_http_dsa_keys_insert_hash);
        ngx_queue_init(&zone->removed);

        /* that is logged here */

        keys->shpool->log_nomem = 0;
    }

    if (ngx_http_dsa_limits_init(&zone->limits, keys->shpool, keys->cycle)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return rc;
}


ngx_int_t
ngx_http_dsa_keys_init_worker(ngx_http_dsa_keys_t *keys, ngx_cycle_t *cycle)
{
    ngx_http_dsa_keys_process_t  *process;

    /* no two living processes of a master have the same process slot */

    process = &keys->zone->processes[ngx_process_slot];

    ngx_shmtx_lock(&keys->shpool->mutex);

    process->pid = ngx_pid;
    process->oldest = 0;

    ngx_shmtx_unlock(&keys->shpool->mutex);

    return ngx_http_dsa_limits_start(keys->zone->limits, cycle);
}


static void
ngx_http_dsa_keys_insert_hash(ngx_rbtree_node_t *temp,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel)
{
    ngx_rbtree_node_t        **p;
    ngx_http_dsa_key_hash_t   *hash, *other;

    hash = (ngx_http_dsa_key_hash_t *) node;

    for ( ;; ) {
        other = (ngx_http_dsa_key_hash_t *) temp;

        p = ngx_memcmp(hash->digest, other->digest, NGX_HTTP_DSA_KEYS_DIGEST)
            < 0 ? &temp->left : &temp->right;

        if (*p == sentinel) {
            break;
        }

        temp = *p;
    }

    *p = node;
    node->parent = temp;
    node->left = sentinel;
    node->right = sentinel;
    ngx_rbt_red(node);
}


static ngx_http_dsa_key_hash_t *
ngx_http_dsa_keys_by_hash(ngx_http_dsa_keys_zone_t *zone,
    const u_char *digest)
{
    ngx_int_t                 rc;
    ngx_rbtree_node_t        *node;
    ngx_http_dsa_key_hash_t  *hash;

    node = zone->hashes.root;

    while (node != zone->hashes.sentinel) {
        hash = (ngx_http_dsa_key_hash_t *) node;

        rc = ngx_memcmp(digest, hash->digest, NGX_HTTP_DSA_KEYS_DIGEST);

        if (rc == 0) {
            return hash;
        }

        node = rc < 0 ? node->left : node->right;
    }

    return NULL;
}


static ngx_http_dsa_key_t *
ngx_http_dsa_keys_by_id(ngx_http_dsa_keys_zone_t *zone, ngx_rbtree_key_t id)
{
    ngx_rbtree_node_t  *node;

    node = zone->ids.root;

    while (node != zone->ids.sentinel) {

        if (id == node->key) {
            return (ngx_http_dsa_key_t *) node;
        }

        node = id < node->key ? node->left : node->right;
    }

    return NULL;
}


/* The key with the lowest id that is at least this one; NULL: none. */

static ngx_http_dsa_key_t *
ngx_http_dsa_keys_after(ngx_http_dsa_keys_zone_t *zone, ngx_rbtree_key_t id)
{
    ngx_rbtree_node_t  *node, *found;

    found = NULL;
    node = zone->ids.root;

    while (node != zone->ids.sentinel) {

        if (node->key >= id) {
            found = node;
            node = node->left;

        } else {
            node = node->right;
        }
    }

    return (ngx_http_dsa_key_t *) found;
}


/* The 16 hexadecimal digits of an id. */

static ngx_rbtree_key_t
ngx_http_dsa_keys_number(dsa_str_t id)
{
    size_t            i;
    u_char            c;
    ngx_rbtree_key_t  n;

    assert(id.len == DSA_KEY_ID_LEN);

    n = 0;

    for (i = DSA_KEY_ID_LEN - 16; i < DSA_KEY_ID_LEN; i++) {
        c = id.data[i] | 0x20;
        n = n * 16 + (c <= '9' ? c - '0' : c - 'a' + 10);
    }

    return n;
}


ngx_int_t
ngx_http_dsa_keys_find(ngx_http_dsa_keys_t *keys,
    const u_char digest[NGX_HTTP_DSA_KEYS_DIGEST],
    ngx_http_dsa_key_ref_t *ref, ngx_http_dsa_key_view_t *view,
    const char **why)
{
    ngx_int_t                  rc;
    ngx_http_dsa_key_t        *key;
    ngx_http_dsa_key_hash_t   *hash;
    ngx_http_dsa_keys_zone_t  *zone;

    zone = keys->zone;

    ngx_shmtx_lock(&keys->shpool->mutex);

    hash = ngx_http_dsa_keys_by_hash(zone, digest);

    if (hash == NULL) {
        *why = ngx_http_dsa_keys_doubt(zone);
        rc = *why != NULL ? NGX_AGAIN : NGX_DECLINED;
        goto done;
    }

    key = hash->key;

    if (key->blocked) {
        *why = "its record does not fit into the zone of dsa_keys";
        rc = NGX_AGAIN;
        goto done;
    }

    ngx_memcpy(view->id, key->id, DSA_KEY_ID_LEN);
    ngx_memcpy(view->tenant, key->tenant, NGX_HTTP_DSA_KEYS_DIGEST);

    view->weight = key->weight;
    view->priority = key->priority;
    view->state = key->state;
    view->expires = key->expires;
    view->old_until = hash == &key->old ? key->old_until : 0;

    ref->key = key;
    ref->clock = zone->clock;

    ngx_queue_insert_tail(&keys->refs, &ref->queue);
    ngx_http_dsa_keys_report(keys);

    rc = NGX_OK;

done:

    ngx_shmtx_unlock(&keys->shpool->mutex);

    return rc;
}


/* Why a key that is not in the zone may exist; NULL: it does not. */

static const char *
ngx_http_dsa_keys_doubt(ngx_http_dsa_keys_zone_t *zone)
{
    if (!zone->loaded) {
        return "the keys have not been loaded yet";
    }

    if (zone->missing != 0) {
        return "not all keys fit into the zone of dsa_keys";
    }

    if (ngx_current_msec - zone->current > NGX_HTTP_DSA_KEYS_FRESH) {
        return "the keys cannot be updated";
    }

    return NULL;
}


ngx_int_t
ngx_http_dsa_keys_read(ngx_http_dsa_keys_t *keys,
    const u_char id[DSA_KEY_ID_LEN], ngx_http_dsa_key_report_t *report)
{
    ngx_rbtree_key_t     number;
    ngx_http_dsa_key_t  *key;

    number = ngx_http_dsa_keys_number(dsa_str(id, DSA_KEY_ID_LEN));

    ngx_shmtx_lock(&keys->shpool->mutex);

    key = ngx_http_dsa_keys_by_id(keys->zone, number);

    if (key != NULL) {
        report->name_len = key->name_len;
        ngx_memcpy(report->name, key->name, key->name_len);
        ngx_http_dsa_limit_read(keys->zone->limits, &key->limit,
                                &report->limits);
    }

    ngx_shmtx_unlock(&keys->shpool->mutex);

    return key != NULL ? NGX_OK : NGX_DECLINED;
}


void
ngx_http_dsa_keys_unref(ngx_http_dsa_keys_t *keys,
    ngx_http_dsa_key_ref_t *ref)
{
    if (ref->key == NULL) {
        return;
    }

    ngx_queue_remove(&ref->queue);
    ref->key = NULL;

    ngx_http_dsa_keys_report(keys);
}


/*
 * The value only grows as references end, so the sweep may read it at any time.
 * A reference is added while the zone is locked, and so before the sweep can
 * pass over it.
 */

static void
ngx_http_dsa_keys_report(ngx_http_dsa_keys_t *keys)
{
    uint64_t                 oldest;
    ngx_http_dsa_key_ref_t  *ref;

    oldest = 0;

    if (!ngx_queue_empty(&keys->refs)) {
        ref = ngx_queue_data(ngx_queue_head(&keys->refs),
                             ngx_http_dsa_key_ref_t, queue);
        oldest = ref->clock + 1;
    }

    __atomic_store_n(&keys->zone->processes[ngx_process_slot].oldest, oldest,
                     __ATOMIC_RELEASE);
}


ngx_uint_t
ngx_http_dsa_keys_model(ngx_http_dsa_keys_t *keys,
    const ngx_http_dsa_key_t *key, const ngx_str_t *model)
{
    u_char      *p, *last;
    ngx_uint_t   found;

    ngx_shmtx_lock(&keys->shpool->mutex);

    found = (key->models == NULL && !key->blocked);

    if (key->models != NULL) {
        last = key->models + key->models_size;

        for (p = key->models; p < last; p += 1 + p[0]) {
            if (p[0] == model->len
                && ngx_memcmp(p + 1, model->data, model->len) == 0)
            {
                found = 1;
                break;
            }
        }
    }

    ngx_shmtx_unlock(&keys->shpool->mutex);

    return found;
}


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
ngx_http_dsa_keys_put(ngx_http_dsa_keys_t *keys, const dsa_key_t *record,
    uint64_t round)
{
    ngx_http_dsa_key_t        *key;
    ngx_http_dsa_keys_zone_t  *zone;

    zone = keys->zone;

    ngx_shmtx_lock(&keys->shpool->mutex);

    key = ngx_http_dsa_keys_by_id(zone, ngx_http_dsa_keys_number(record->id));

    if (key == NULL) {
        key = ngx_http_dsa_keys_add(keys, record);
    }

    if (key != NULL) {
        ngx_http_dsa_keys_set(keys, key, record);
        key->round = round;
    }

    if (key == NULL || key->blocked) {
        if (zone->dropped++ == 0) {
            zone->retry = ngx_current_msec + NGX_HTTP_DSA_KEYS_FULL;
        }

        ngx_http_dsa_keys_full(keys, record);
    }

    ngx_shmtx_unlock(&keys->shpool->mutex);
}


void
ngx_http_dsa_keys_keep(ngx_http_dsa_keys_t *keys, dsa_str_t id,
    uint64_t round)
{
    ngx_http_dsa_key_t  *key;

    ngx_shmtx_lock(&keys->shpool->mutex);

    key = ngx_http_dsa_keys_by_id(keys->zone, ngx_http_dsa_keys_number(id));

    if (key != NULL) {
        key->round = round;
    }

    ngx_shmtx_unlock(&keys->shpool->mutex);
}


static ngx_http_dsa_key_t *
ngx_http_dsa_keys_add(ngx_http_dsa_keys_t *keys, const dsa_key_t *record)
{
    ngx_http_dsa_key_t        *key;
    ngx_http_dsa_keys_zone_t  *zone;

    zone = keys->zone;

    key = ngx_slab_calloc_locked(keys->shpool, sizeof(ngx_http_dsa_key_t));

    if (key == NULL) {
        return NULL;
    }

    key->node.key = ngx_http_dsa_keys_number(record->id);
    ngx_memcpy(key->id, record->id.data, DSA_KEY_ID_LEN);

    ngx_rbtree_insert(&zone->ids, &key->node);

    key->hash.key = key;
    key->old.key = key;

    ngx_memcpy(key->hash.digest, record->hash, NGX_HTTP_DSA_KEYS_DIGEST);
    ngx_rbtree_insert(&zone->hashes, &key->hash.node);

    return key;
}


static void
ngx_http_dsa_keys_set(ngx_http_dsa_keys_t *keys, ngx_http_dsa_key_t *key,
    const dsa_key_t *record)
{
    ngx_http_dsa_keys_zone_t  *zone;

    assert(record->name.len <= DSA_KEY_MAX_NAME);

    zone = keys->zone;

    ngx_http_dsa_keys_set_hash(zone, key, &key->hash, 1, record->hash);
    ngx_http_dsa_keys_set_hash(zone, key, &key->old, key->old_until != 0,
                               record->old_until != 0 ? record->old_hash
                                                      : NULL);

    key->old_until = record->old_until;
    key->expires = record->expires;
    key->state = record->state;
    key->weight = record->limits.weight;
    key->priority = record->limits.priority;

    key->name_len = record->name.len;
    ngx_memcpy(key->name, record->name.data, record->name.len);

    dsa_key_tenant(key->tenant, record->tenant);

    ngx_http_dsa_limit_set(zone->limits, &key->limit, key->id, key->tenant,
                           &record->limits);

    ngx_http_dsa_keys_set_models(keys, key, record);
}


/* was: the hash is in the tree; digest NULL: it is not from now on. */

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
    ngx_http_dsa_key_t *key, const dsa_key_t *record)
{
    u_char    *p;
    size_t     size;
    uint32_t   i;

    size = 0;

    for (i = 0; i < record->n_models; i++) {
        assert(record->models[i].len <= 255);
        size += 1 + record->models[i].len;
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

    for (i = 0; i < record->n_models; i++) {
        *p++ = (u_char) record->models[i].len;
        p = ngx_cpymem(p, record->models[i].data, record->models[i].len);
    }
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

        /* there is room for keys that did not fit */

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

        /* the round may fail before it puts a key, and is not repeated soon */

        zone->retry = ngx_current_msec + NGX_HTTP_DSA_KEYS_FULL;
    }

    ngx_shmtx_unlock(&keys->shpool->mutex);

    return due;
}


/* Called while the zone is locked. */

static void
ngx_http_dsa_keys_full(ngx_http_dsa_keys_t *keys, const dsa_key_t *record)
{
    ngx_http_dsa_keys_zone_t  *zone;

    zone = keys->zone;

    if (zone->warned
        && ngx_current_msec - zone->full < NGX_HTTP_DSA_KEYS_FULL)
    {
        return;
    }

    zone->warned = 1;
    zone->full = ngx_current_msec;

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "dsa: zone \"%V\" of \"dsa_keys\" is full: key \"%*s\" and "
                  "perhaps others get 503; expected a larger zone",
                  &keys->shm->shm.name, record->id.len, record->id.data);
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
        oldest = ngx_http_dsa_keys_oldest(zone);

        for (q = ngx_queue_head(&zone->removed);
             q != ngx_queue_sentinel(&zone->removed);
             q = next)
        {
            next = ngx_queue_next(q);
            key = ngx_queue_data(q, ngx_http_dsa_key_t, queue);

            /* in the order of their removal */

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


/*
 * Requests have no reference to a key whose removal is not above this clock.
 * The references of a process that was killed have ended.
 */

static uint64_t
ngx_http_dsa_keys_oldest(ngx_http_dsa_keys_zone_t *zone)
{
    uint64_t                      clock, oldest;
    ngx_uint_t                    i;
    ngx_http_dsa_keys_process_t  *process;

    oldest = zone->clock;

    for (i = 0; i < NGX_MAX_PROCESSES; i++) {
        process = &zone->processes[i];
        clock = __atomic_load_n(&process->oldest, __ATOMIC_ACQUIRE);

        if (clock != 0 && clock - 1 < oldest
            && (kill(process->pid, 0) == 0 || ngx_errno == NGX_EPERM))
        {
            oldest = clock - 1;
        }
    }

    return oldest;
}


ngx_http_dsa_limits_t *
ngx_http_dsa_keys_limits(ngx_http_dsa_keys_t *keys)
{
    return keys->zone->limits;
}


ngx_http_dsa_keys_source_t *
ngx_http_dsa_keys_source(ngx_http_dsa_keys_t *keys)
{
    return &keys->zone->source;
}


_Static_assert(offsetof(ngx_http_dsa_key_t, node) == 0
               && offsetof(ngx_http_dsa_key_hash_t, node) == 0,
               "a node of a tree is the beginning of its entry");
_Static_assert(sizeof(ngx_rbtree_key_t) == sizeof(uint64_t),
               "the digits of an id fit into the key of a node");
