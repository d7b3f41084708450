
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include <assert.h>

#include <openssl/rand.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "context/prompt_map.h"

#include "ngx_module/core/ngx_http_dsa_conf.h"
#include "ngx_module/core/ngx_http_dsa_zone.h"
#include "ngx_http_dsa_route.h"


/* The contents of the zone. */

typedef struct {
    ngx_http_dsa_zone_t         zone;
    dsa_prompt_map_t           *map;
    uint64_t                    count[NGX_HTTP_DSA_ROUTE_RESULTS];
    uint8_t                     secret[DSA_PROMPT_SECRET];
} ngx_http_dsa_route_shared_t;


/* the layout of the zone, including the map */

#define NGX_HTTP_DSA_ROUTE_LAYOUT                                             \
    NGX_HTTP_DSA_ZONE_LAYOUT(1, ngx_http_dsa_route_shared_t)


struct ngx_http_dsa_route_s {
    ngx_slab_pool_t              *shpool;
    ngx_http_dsa_route_shared_t  *shared;
    uint32_t                     *replicas; /* [n], by index of the engine; 0:
                                               no hello yet */
    ngx_uint_t                    n;
};


static ngx_int_t ngx_http_dsa_route_init_zone(ngx_shm_zone_t *zone,
    void *data);


const ngx_str_t  ngx_http_dsa_routes[NGX_HTTP_DSA_ROUTE_RESULTS] = {
    ngx_string("none"),
    ngx_string("prefix"),
    ngx_string("load"),
    ngx_string("unavailable")
};


ngx_http_dsa_route_t *
ngx_http_dsa_route_add(ngx_conf_t *cf, ngx_str_t *pool, ngx_uint_t n,
    size_t size)
{
    ngx_str_t              name;
    ngx_shm_zone_t        *zone;
    ngx_http_dsa_route_t  *route;

    route = ngx_pcalloc(cf->pool, sizeof(ngx_http_dsa_route_t));
    if (route == NULL) {
        return NULL;
    }

    route->replicas = ngx_pcalloc(cf->pool, n * sizeof(uint32_t));
    if (route->replicas == NULL) {
        return NULL;
    }

    route->n = n;

    /*
     * The name of a zone in the configuration cannot contain a colon, so this
     * name does not collide with one.
     */

    name.len = sizeof("dsa_pool:") - 1 + pool->len;
    name.data = ngx_pnalloc(cf->pool, name.len);
    if (name.data == NULL) {
        return NULL;
    }

    ngx_sprintf(name.data, "dsa_pool:%V", pool);

    zone = ngx_shared_memory_add(cf, &name, size, &ngx_http_dsa_module);
    if (zone == NULL) {
        return NULL;
    }

    zone->init = ngx_http_dsa_route_init_zone;
    zone->data = route;

    return route;
}


/*
 * The init callback of the zone.  data: the route of the old configuration, or
 * NULL.
 */

static ngx_int_t
ngx_http_dsa_route_init_zone(ngx_shm_zone_t *zone, void *data)
{
    void                         *p;
    size_t                        size;
    ngx_int_t                     rc;
    ngx_http_dsa_route_t         *route;
    ngx_http_dsa_route_shared_t  *shared;

    route = zone->data;
    route->shpool = (ngx_slab_pool_t *) zone->shm.addr;

    rc = ngx_http_dsa_zone_open(zone, data, NGX_HTTP_DSA_ROUTE_LAYOUT,
                                sizeof(ngx_http_dsa_route_shared_t), &shared);
    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    route->shared = shared;

    if (rc == NGX_OK) {
        return NGX_OK;
    }

    if (RAND_bytes(shared->secret, DSA_PROMPT_SECRET) != 1) {
        ngx_log_error(NGX_LOG_EMERG, zone->shm.log, 0, "RAND_bytes() failed");
        return NGX_ERROR;
    }

    /* the other pages are free and contiguous, and are used for the map */

    size = route->shpool->pfree * ngx_pagesize;

    p = ngx_slab_alloc(route->shpool, size);
    if (p == NULL) {
        return NGX_ERROR;
    }

    shared->map = dsa_prompt_map_init(p, size);

    assert(shared->map != NULL);

    return NGX_OK;
}


void
ngx_http_dsa_route_hello(ngx_http_dsa_route_t *route, ngx_uint_t index,
    ngx_str_t *address, const dsa_link_hello_t *hello)
{
    uint32_t  replica;
    uint64_t  words[3];

    assert(index < route->n);

    /*
     * All workers compute the same number; it is not 0, which means no engine.
     */

    words[0] = XXH3_64bits_withSecret(address->data, address->len,
                                      route->shared->secret,
                                      DSA_PROMPT_SECRET);
    words[1] = hello->pid;
    words[2] = hello->epoch;

    replica = (uint32_t) XXH3_64bits_withSecret(words, sizeof(words),
                                                route->shared->secret,
                                                DSA_PROMPT_SECRET);

    route->replicas[index] = ngx_max(replica, 1);
}


void
ngx_http_dsa_route_keys(ngx_http_dsa_route_t *route,
    dsa_prompt_keys_t *keys, const dsa_prompt_t *prompt,
    const dsa_control_tokens_t *tokens, const u_char *tenant,
    ngx_str_t *model)
{
    dsa_prompt_keys(keys, prompt, tokens, route->shared->secret,
                             tenant,
                             dsa_str((char *) model->data, model->len));
}


void
ngx_http_dsa_route_find(ngx_http_dsa_route_t *route,
    const dsa_prompt_keys_t *keys, ngx_uint_t *engines)
{
    uint32_t                    replica[DSA_PROMPT_KEYS];
    ngx_uint_t                  i, n;
    dsa_prompt_map_t           *map;

    map = route->shared->map;

    for (i = 0; i < keys->n; i++) {
        dsa_prompt_map_prefetch(map, keys->elts[i].key);
    }

    ngx_shmtx_lock(&route->shpool->mutex);

    for (i = 0; i < keys->n; i++) {
        replica[i] = dsa_prompt_map_find(map, keys->elts[i].key);
    }

    ngx_shmtx_unlock(&route->shpool->mutex);

    for (i = 0; i < keys->n; i++) {
        engines[i] = NGX_HTTP_DSA_ROUTE_NO_ENGINE;

        for (n = 0; n < route->n && replica[i] != 0; n++) {
            if (route->replicas[n] == replica[i]) {
                engines[i] = n;
                break;
            }
        }
    }
}


void
ngx_http_dsa_route_record(ngx_http_dsa_route_t *route,
    const dsa_prompt_keys_t *keys, ngx_uint_t index,
    ngx_http_dsa_route_e result)
{
    ngx_uint_t                    i;
    ngx_http_dsa_route_shared_t  *shared;

    assert(index < route->n && route->replicas[index] != 0);

    shared = route->shared;

    ngx_shmtx_lock(&route->shpool->mutex);

    /*
     * The shortest prefix is last in keys, so it becomes the newest entry,
     * because the most prompts share it.
     */

    for (i = 0; i < keys->n; i++) {
        dsa_prompt_map_put(shared->map, keys->elts[i].key,
                           route->replicas[index]);
    }

    shared->count[result]++;

    ngx_shmtx_unlock(&route->shpool->mutex);
}


uint64_t
ngx_http_dsa_route_count(ngx_http_dsa_route_t *route,
    ngx_http_dsa_route_e result)
{
    return *(volatile uint64_t *) &route->shared->count[result];
}
