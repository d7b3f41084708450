
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_KEYS_ZONE_H_INCLUDED_
#define _NGX_HTTP_DSA_KEYS_ZONE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "redis_schema/keys.h"

#include "ngx_module/core/ngx_http_dsa_zone.h"
#include "ngx_http_dsa_limit.h"


/*
 * The zone of dsa_keys: the keys that this host knows, in shared memory; how it
 * is opened, and how a key in it is found.  The zone has the SHA-256 of a key,
 * and never its text.  The zone survives reloads.
 *
 * The source of the keys (ngx_http_dsa_keys_sync.h) updates the entries in
 * place, in one process at a time.  Requests only read them, so keys that are
 * not in the zone cannot evict those that are.
 *
 * The mutex of the zone's slab pool protects everything.  nginx unlocks it when
 * a process dies that has locked it.
 */

#define NGX_HTTP_DSA_KEYS_DIGEST  32        /* bytes of a SHA-256 */


typedef struct ngx_http_dsa_key_s  ngx_http_dsa_key_t;


typedef struct {
    ngx_rbtree_node_t            node;
    ngx_http_dsa_key_t          *key;
    u_char                       digest[NGX_HTTP_DSA_KEYS_DIGEST];
} ngx_http_dsa_key_hash_t;


/*
 * A key in the zone.  It does not move, and it is not freed while a request
 * has a reference to it or a hold of its limit.  A part that keeps state for
 * a key puts it here; the memory is zero at first.
 */

struct ngx_http_dsa_key_s {
    ngx_rbtree_node_t            node;      /* by id */
    ngx_queue_t                  queue;     /* of the removed keys */
    ngx_http_dsa_key_hash_t      hash;
    ngx_http_dsa_key_hash_t      old;       /* if old_until is not 0 */
    int64_t                      old_until;
    int64_t                      expires;   /* 0: never */
    dsa_key_state_e              state;
    uint32_t                     weight;
    dsa_key_priority_e           priority;
    ngx_http_dsa_limit_t         limit;     /* its limits, and what counts
                                               against them */
    u_char                      *models;    /* packed; NULL: all */
    size_t                       models_size;
    uint64_t                     round;     /* of the sync that found it last */
    uint64_t                     removed;   /* the clock at its removal */
    ngx_uint_t                   blocked;   /* its models did not fit */
    size_t                       name_len;
    u_char                       name[DSA_KEY_MAX_NAME];
    u_char                       tenant[NGX_HTTP_DSA_KEYS_DIGEST];
    u_char                       id[DSA_KEY_ID_LEN];
};


/*
 * What each process reports about its references: oldest is 0 without
 * references, or else 1 more than the clock at which the oldest began.
 */

typedef struct {
    ngx_pid_t                    pid;
    uint64_t                     oldest;
} ngx_http_dsa_keys_process_t;


/* The part of the zone that its source uses; zero at first. */

typedef struct {
    ngx_pid_t                    pid;       /* of the process that syncs */
    ngx_msec_t                   renewed;   /* its last sign of life */
    uint64_t                     cycle;     /* of the configuration that may
                                               sync */
    uint64_t                     cycles;    /* configurations so far */
    u_char                       name[NGX_HTTP_DSA_KEYS_DIGEST];
    int64_t                      version;   /* of the keys in Redis */
    ngx_file_uniq_t              file;      /* the file that was read */
    int64_t                      changed;   /* ns */
    off_t                        size;
} ngx_http_dsa_keys_source_t;


typedef struct {
    ngx_http_dsa_zone_t          zone;
    ngx_rbtree_t                 ids;
    ngx_rbtree_node_t            ids_sentinel;
    ngx_rbtree_t                 hashes;
    ngx_rbtree_node_t            hashes_sentinel;
    ngx_queue_t                  removed;   /* requests may refer to them */
    uint64_t                     clock;     /* counts removals */
    uint64_t                     round;

    ngx_uint_t                   loaded;    /* a round was complete */
    ngx_msec_t                   current;   /* when the keys were last
                                               complete */
    ngx_uint_t                   missing;   /* keys that did not fit */
    ngx_uint_t                   dropped;   /* the same, of this round */
    ngx_msec_t                   retry;     /* time of the next round */
    ngx_uint_t                   warned;    /* the time in full is valid */
    ngx_msec_t                   full;      /* time of the last warning */

    ngx_http_dsa_limits_t       *limits;
    ngx_http_dsa_keys_source_t   source;
    ngx_http_dsa_keys_process_t  processes[NGX_MAX_PROCESSES];
} ngx_http_dsa_keys_zone_t;


/* dsa_keys, of one configuration. */

typedef struct ngx_http_dsa_keys_s {
    ngx_cycle_t                 *cycle;
    ngx_shm_zone_t              *shm;
    ngx_slab_pool_t             *shpool;
    ngx_http_dsa_keys_zone_t    *zone;
    ngx_queue_t                  refs;      /* of this process, oldest first */
} ngx_http_dsa_keys_t;


/*
 * Adds the shared zone, whose init callback is init and whose data is data.
 * NGX_ERROR: it is logged.
 */
ngx_int_t ngx_http_dsa_keys_add_zone(ngx_conf_t *cf,
    ngx_http_dsa_keys_t *keys, ngx_str_t *name, size_t size,
    ngx_shm_zone_init_pt init, void *data);

/* How many keys a zone of this size can have at most. */
size_t ngx_http_dsa_keys_max(const ngx_http_dsa_keys_t *keys);

/*
 * From the init callback of the shared zone, with its data: creates what is in
 * it, or checks that it has this layout.  NGX_DECLINED: it is new; NGX_OK: it
 * has the keys of earlier configurations; NGX_ERROR, which is logged.
 */
ngx_int_t ngx_http_dsa_keys_init_zone(ngx_http_dsa_keys_t *keys,
    ngx_shm_zone_t *shm, void *old);

/* In a worker, before requests.  NGX_ERROR: it is logged. */
ngx_int_t ngx_http_dsa_keys_init_worker(ngx_http_dsa_keys_t *keys,
    ngx_cycle_t *cycle);


/* While the zone is locked: the trees of keys. */

/* NULL: no key has this SHA-256. */
ngx_http_dsa_key_hash_t *ngx_http_dsa_keys_by_hash(
    ngx_http_dsa_keys_zone_t *zone, const u_char *digest);

/* NULL: no key has this id. */
ngx_http_dsa_key_t *ngx_http_dsa_keys_by_id(ngx_http_dsa_keys_zone_t *zone,
    dsa_str_t id);

/* The key with the lowest number that is at least this one; NULL: none. */
ngx_http_dsa_key_t *ngx_http_dsa_keys_after(ngx_http_dsa_keys_zone_t *zone,
    ngx_rbtree_key_t number);

/* The number of an id, by which keys are ordered: its 16 hex digits. */
ngx_rbtree_key_t ngx_http_dsa_keys_number(dsa_str_t id);


#endif /* _NGX_HTTP_DSA_KEYS_ZONE_H_INCLUDED_ */
