
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_KEYS_UPDATE_H_INCLUDED_
#define _NGX_HTTP_DSA_KEYS_UPDATE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_dsa_keys_zone.h"


/*
 * How the source of the keys changes the zone.  A round is a sync of all keys:
 *
 *     begin        returns the number of the round
 *     put          for each key entry that is valid
 *     keep         for each other one: its key remains as it is
 *     end          removes the keys that this round did not put or keep
 *
 * Single changes between two rounds are put with the number of the last round.
 */
uint64_t ngx_http_dsa_keys_begin(ngx_http_dsa_keys_t *keys);
void ngx_http_dsa_keys_put(ngx_http_dsa_keys_t *keys,
    const dsa_key_t *entry, uint64_t round);
void ngx_http_dsa_keys_keep(ngx_http_dsa_keys_t *keys, dsa_str_t id,
    uint64_t round);
void ngx_http_dsa_keys_end(ngx_http_dsa_keys_t *keys, uint64_t round);

/* Frees the removed keys that no request refers to. */
void ngx_http_dsa_keys_sweep(ngx_http_dsa_keys_t *keys);

/* The keys are complete and current now. */
void ngx_http_dsa_keys_current(ngx_http_dsa_keys_t *keys);

/* 1: a round was complete. */
ngx_uint_t ngx_http_dsa_keys_loaded(ngx_http_dsa_keys_t *keys);

/* 1: a round of the present source was complete, and had keys. */
ngx_uint_t ngx_http_dsa_keys_any(ngx_http_dsa_keys_t *keys);

/* The source is another one, and its first sync has not ended. */
void ngx_http_dsa_keys_reset(ngx_http_dsa_keys_t *keys);

/*
 * 1: keys did not fit into the zone, and the caller begins a new round.  After
 * that it returns 0 for a minute, unless keys are removed before.
 */
ngx_uint_t ngx_http_dsa_keys_retry(ngx_http_dsa_keys_t *keys);


#endif /* _NGX_HTTP_DSA_KEYS_UPDATE_H_INCLUDED_ */
