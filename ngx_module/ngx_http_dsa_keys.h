
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_KEYS_H_INCLUDED_
#define _NGX_HTTP_DSA_KEYS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "redis_schema/keys.h"

#include "ngx_http_dsa_limit.h"


/*
 * The zone of dsa_keys: the keys that this host knows, in shared memory.  A key
 * is found by its SHA-256, so the zone never has the text of a key.  The zone
 * survives reloads.
 *
 * The source of the keys (ngx_http_dsa_keys_sync.h) updates the entries in
 * place, in one process at a time.  Requests only read them, so keys that are
 * not in the zone cannot evict those that are.
 *
 * The mutex of the zone's slab pool protects everything.  nginx unlocks it when
 * a process dies that has locked it.
 */

#define NGX_HTTP_DSA_KEYS_DIGEST  32        /* bytes of a SHA-256 */

/* ms; the last complete sync is older: new keys may exist */
#define NGX_HTTP_DSA_KEYS_FRESH   5000


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
    ngx_queue_t                  queue;     /* of the removed ones */
    ngx_http_dsa_key_hash_t      hash;
    ngx_http_dsa_key_hash_t      old;       /* if old_until is not 0 */
    int64_t                      old_until;
    int64_t                      expires;   /* 0: never */
    dsa_key_state_e              state;
    uint32_t                     weight;
    dsa_key_priority_e           priority;
    ngx_http_dsa_limit_t         limit;     /* what counts against its limits,
                                               and these */
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
 * A reference to a key, in the memory of the process that has it.  If the
 * process dies, its references end.  No key that was removed since the oldest
 * reference began is freed, so references are short.
 */

typedef struct {
    ngx_queue_t                  queue;
    ngx_http_dsa_key_t          *key;       /* NULL: none */
    uint64_t                     clock;
} ngx_http_dsa_key_ref_t;


/* What a key was when a request looked it up. */

typedef struct {
    u_char                       id[DSA_KEY_ID_LEN];
    u_char                       tenant[NGX_HTTP_DSA_KEYS_DIGEST];
    uint32_t                     weight;
    dsa_key_priority_e           priority;
    dsa_key_state_e              state;
    int64_t                      expires;   /* 0: never */
    int64_t                      old_until; /* if it was found by its old hash,
                                               else 0 */
} ngx_http_dsa_key_view_t;


/* What a report has of a key. */

typedef struct {
    size_t                       name_len;
    u_char                       name[DSA_KEY_MAX_NAME];
    ngx_http_dsa_limit_view_t    limits;
} ngx_http_dsa_key_report_t;


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


typedef struct ngx_http_dsa_keys_zone_s  ngx_http_dsa_keys_zone_t;


/* dsa_keys, of one configuration. */

typedef struct ngx_http_dsa_keys_s  ngx_http_dsa_keys_t;


struct ngx_http_dsa_keys_s {
    ngx_cycle_t                 *cycle;
    ngx_shm_zone_t              *shm;
    ngx_slab_pool_t             *shpool;
    ngx_http_dsa_keys_zone_t    *zone;
    ngx_queue_t                  refs;      /* of this process, oldest first */
};


/*
 * Adds the shared zone, whose init callback is init and whose data is data.
 * NGX_ERROR: it is logged.
 */
ngx_int_t ngx_http_dsa_keys_add_zone(ngx_conf_t *cf,
    ngx_http_dsa_keys_t *keys, ngx_str_t *name, size_t size,
    ngx_shm_zone_init_pt init, void *data);

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

/*
 * Looks up the SHA-256 of a key.  NGX_OK: view and ref are set.  NGX_DECLINED:
 * there is no such key.  NGX_AGAIN: there may be one, but the zone is not
 * complete or not current; *why is the reason, which is static.
 */
ngx_int_t ngx_http_dsa_keys_find(ngx_http_dsa_keys_t *keys,
    const u_char digest[NGX_HTTP_DSA_KEYS_DIGEST],
    ngx_http_dsa_key_ref_t *ref, ngx_http_dsa_key_view_t *view,
    const char **why);

/*
 * A copy of what a report has of the key with this id.  NGX_DECLINED: there is
 * no such key.
 */
ngx_int_t ngx_http_dsa_keys_read(ngx_http_dsa_keys_t *keys,
    const u_char id[DSA_KEY_ID_LEN], ngx_http_dsa_key_report_t *report);

/* Ends a reference; nothing happens if it has no key. */
void ngx_http_dsa_keys_unref(ngx_http_dsa_keys_t *keys,
    ngx_http_dsa_key_ref_t *ref);

/* 1: requests with this key may use the model. */
ngx_uint_t ngx_http_dsa_keys_model(ngx_http_dsa_keys_t *keys,
    const ngx_http_dsa_key_t *key, const ngx_str_t *model);


/*
 * For the source.  A round is a sync of all keys:
 *
 *     begin        returns the number of the round
 *     put          for each record; keep: its key remains as it is
 *     end          removes the keys that this round did not put
 *
 * Single changes in between are put with the number of the last round.
 */
uint64_t ngx_http_dsa_keys_begin(ngx_http_dsa_keys_t *keys);
void ngx_http_dsa_keys_put(ngx_http_dsa_keys_t *keys,
    const dsa_key_t *record, uint64_t round);
void ngx_http_dsa_keys_keep(ngx_http_dsa_keys_t *keys, dsa_str_t id,
    uint64_t round);
void ngx_http_dsa_keys_end(ngx_http_dsa_keys_t *keys, uint64_t round);

/* The keys are complete and current now. */
void ngx_http_dsa_keys_current(ngx_http_dsa_keys_t *keys);

/* 1: a round has been complete. */
ngx_uint_t ngx_http_dsa_keys_loaded(ngx_http_dsa_keys_t *keys);

/* The source is another one: its first sync is still to come. */
void ngx_http_dsa_keys_reset(ngx_http_dsa_keys_t *keys);

/*
 * 1: keys did not fit into the zone, and the caller begins a new round.  After
 * that it returns 0 for a minute, unless keys are removed before.
 */
ngx_uint_t ngx_http_dsa_keys_retry(ngx_http_dsa_keys_t *keys);

/* Frees the removed keys that no request refers to. */
void ngx_http_dsa_keys_sweep(ngx_http_dsa_keys_t *keys);

/* The limits of the zone, for those of a key. */
ngx_http_dsa_limits_t *ngx_http_dsa_keys_limits(ngx_http_dsa_keys_t *keys);

/* The part of the zone that belongs to the source. */
ngx_http_dsa_keys_source_t *ngx_http_dsa_keys_source(
    ngx_http_dsa_keys_t *keys);


#endif /* _NGX_HTTP_DSA_KEYS_H_INCLUDED_ */
