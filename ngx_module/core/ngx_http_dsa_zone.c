
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include <assert.h>

#include "ngx_http_dsa_zone.h"


#define NGX_HTTP_DSA_ZONE_MAGIC  0x656e6f7a2d617364     /* "dsa-zone" */


ngx_int_t
ngx_http_dsa_zone_open(ngx_shm_zone_t *zone, void *old, uint64_t layout,
    size_t size, void *shared)
{
    ngx_slab_pool_t      *shpool;
    ngx_http_dsa_zone_t  *header;

    assert(size >= sizeof(ngx_http_dsa_zone_t));

    shpool = (ngx_slab_pool_t *) zone->shm.addr;

    if (old != NULL || zone->shm.exists) {
        header = shpool->data;

        if (header->magic != NGX_HTTP_DSA_ZONE_MAGIC
            || header->layout != layout)
        {
            ngx_log_error(NGX_LOG_EMERG, zone->shm.log, 0,
                          "dsa: another version of the module made the zone "
                          "\"%V\", so that a reload cannot use it; restart "
                          "nginx, or upgrade it with the signal USR2",
                          &zone->shm.name);
            return NGX_ERROR;
        }

        *(void **) shared = header;

        return NGX_OK;
    }

    header = ngx_slab_calloc(shpool, size);

    if (header == NULL) {
        ngx_log_error(NGX_LOG_EMERG, zone->shm.log, 0,
                      "dsa: the zone \"%V\" is too small, %uz bytes",
                      &zone->shm.name, zone->shm.size);
        return NGX_ERROR;
    }

    header->magic = NGX_HTTP_DSA_ZONE_MAGIC;
    header->layout = layout;

    shpool->data = header;
    *(void **) shared = header;

    return NGX_DECLINED;
}
