
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_ZONE_H_INCLUDED_
#define _NGX_HTTP_DSA_ZONE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


/*
 * The header of a shared memory zone.  On a reload nginx passes the zones of
 * the running configuration to the new one.  If a module with another layout
 * used such a zone, it would corrupt the data of the workers that still serve
 * streams.
 */

typedef struct {
    uint64_t                  magic;
    uint64_t                  layout;   /* NGX_HTTP_DSA_ZONE_LAYOUT() */
} ngx_http_dsa_zone_t;


/*
 * The number of a layout.  Change version if the layout changes but the size
 * of the type does not.
 */
#define NGX_HTTP_DSA_ZONE_LAYOUT(version, type)                               \
    ((uint64_t) (version) << 32 | sizeof(type))


/*
 * For the init callback of a zone.  A new zone gets size bytes of zeros, which
 * begin with the header; size includes the header.  old: what nginx passed to
 * the callback; if it is not NULL, the zone of the last configuration is used
 * again.
 *
 *     NGX_OK        *shared is what the zone contained already
 *     NGX_DECLINED  *shared is new, and the caller initializes the rest of it
 *     NGX_ERROR     logged: the zone is too small, or has another layout.  The
 *                   callback returns it, and nginx keeps its configuration
 */
ngx_int_t ngx_http_dsa_zone_open(ngx_shm_zone_t *zone, void *old,
    uint64_t layout, size_t size, void *shared);


#endif /* _NGX_HTTP_DSA_ZONE_H_INCLUDED_ */
