
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_KEYS_H_INCLUDED_
#define _NGX_HTTP_DSA_KEYS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_dsa_keys_zone.h"


/*
 * What requests do with the keys of dsa_keys: they find a key by its SHA-256,
 * refer to it, and read it.
 */


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


/*
 * Looks up the SHA-256 of a key.  NGX_OK: view and ref are set.  NGX_DECLINED:
 * there is no such key.  NGX_AGAIN: there may be one, but the zone is not
 * complete or not current; *why is the reason, which is static.
 */
ngx_int_t ngx_http_dsa_keys_find(ngx_http_dsa_keys_t *keys,
    const u_char digest[NGX_HTTP_DSA_KEYS_DIGEST],
    ngx_http_dsa_key_ref_t *ref, ngx_http_dsa_key_view_t *view,
    const char **why);

/* Ends a reference; nothing happens if it has no key. */
void ngx_http_dsa_keys_unref(ngx_http_dsa_keys_t *keys,
    ngx_http_dsa_key_ref_t *ref);

/*
 * The references of all processes, while the zone is locked: no request refers
 * to a key whose removal is not above the clock that this returns.  References
 * of a process that was killed do not count.
 */
uint64_t ngx_http_dsa_keys_oldest(ngx_http_dsa_keys_t *keys);

/*
 * A copy of what a report has of the key with this id.  NGX_DECLINED: there is
 * no such key.
 */
ngx_int_t ngx_http_dsa_keys_read(ngx_http_dsa_keys_t *keys,
    const u_char id[DSA_KEY_ID_LEN], ngx_http_dsa_key_report_t *report);

/* 1: requests with this key may use the model. */
ngx_uint_t ngx_http_dsa_keys_model(ngx_http_dsa_keys_t *keys,
    const ngx_http_dsa_key_t *key, const ngx_str_t *model);

/* The limits of the zone, for those of a key. */
ngx_http_dsa_limits_t *ngx_http_dsa_keys_limits(ngx_http_dsa_keys_t *keys);


#endif /* _NGX_HTTP_DSA_KEYS_H_INCLUDED_ */
