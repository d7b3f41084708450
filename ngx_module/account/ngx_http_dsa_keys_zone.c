
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include <assert.h>

#include "ngx_module/core/ngx_http_dsa_conf.h"
#include "ngx_http_dsa_keys_zone.h"


/* The zone has keys as well, so their size is a part of its layout. */

#define NGX_HTTP_DSA_KEYS_LAYOUT                                              \
    (NGX_HTTP_DSA_ZONE_LAYOUT(1, ngx_http_dsa_keys_zone_t)                    \
     ^ sizeof(ngx_http_dsa_key_t) << 40)

/* what the slab allocator takes for a key: the next power of 2 */

#define NGX_HTTP_DSA_KEYS_CHUNK  1024

_Static_assert(sizeof(ngx_http_dsa_key_t) > NGX_HTTP_DSA_KEYS_CHUNK / 2
               && sizeof(ngx_http_dsa_key_t) <= NGX_HTTP_DSA_KEYS_CHUNK,
               "a key takes 1 KB of the zone");
_Static_assert(offsetof(ngx_http_dsa_key_t, node) == 0
               && offsetof(ngx_http_dsa_key_hash_t, node) == 0,
               "a node of a tree is the beginning of its entry");
_Static_assert(sizeof(ngx_rbtree_key_t) == sizeof(uint64_t),
               "the digits of an id fit into the key of a node");


static void ngx_http_dsa_keys_insert_hash(ngx_rbtree_node_t *temp,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel);


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


size_t
ngx_http_dsa_keys_max(const ngx_http_dsa_keys_t *keys)
{
    return keys->shm->shm.size / NGX_HTTP_DSA_KEYS_CHUNK;
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

        /* ngx_http_dsa_keys_put() logs that the zone is full */

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


ngx_http_dsa_key_hash_t *
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


ngx_http_dsa_key_t *
ngx_http_dsa_keys_by_id(ngx_http_dsa_keys_zone_t *zone, dsa_str_t id)
{
    ngx_rbtree_key_t    number;
    ngx_rbtree_node_t  *node;

    number = ngx_http_dsa_keys_number(id);
    node = zone->ids.root;

    while (node != zone->ids.sentinel) {

        if (number == node->key) {
            return (ngx_http_dsa_key_t *) node;
        }

        node = number < node->key ? node->left : node->right;
    }

    return NULL;
}


ngx_http_dsa_key_t *
ngx_http_dsa_keys_after(ngx_http_dsa_keys_zone_t *zone,
    ngx_rbtree_key_t number)
{
    ngx_rbtree_node_t  *node, *found;

    found = NULL;
    node = zone->ids.root;

    while (node != zone->ids.sentinel) {

        if (node->key >= number) {
            found = node;
            node = node->left;

        } else {
            node = node->right;
        }
    }

    return (ngx_http_dsa_key_t *) found;
}


ngx_rbtree_key_t
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
