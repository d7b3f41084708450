
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include <assert.h>
#include <stdatomic.h>

#include "base/error.h"
#include "base/permits.h"

#include "ngx_module/core/ngx_http_dsa_conf.h"
#include "ngx_module/core/ngx_http_dsa_zone.h"
#include "ngx_http_dsa_tenants.h"


#define NGX_HTTP_DSA_TENANTS_WAYS    16     /* rows of a set */
#define NGX_HTTP_DSA_TENANTS_BLOCKS  32     /* permits of 65,536 requests */
#define NGX_HTTP_DSA_TENANTS_TICK    1000   /* ms */

#define NGX_HTTP_DSA_TENANTS_LAYOUT                                           \
    NGX_HTTP_DSA_ZONE_LAYOUT(1, ngx_http_dsa_tenants_t)


/*
 * A set-associative table: the hash of a tenant and its key chooses a set of
 * 16 rows, so a search reads 16 rows.  There are no links between rows, so a
 * worker that is killed while it changes a row damages at most that row.
 */

typedef struct {
    ngx_http_dsa_zone_t       zone;
    dsa_permits_t             permits;      /* its lock protects the rows */
    ngx_http_dsa_tenant_t     rows[NGX_HTTP_DSA_TENANTS];
    dsa_permit_t              blocks[NGX_HTTP_DSA_TENANTS_BLOCKS]
                                    [DSA_PERMITS_BLOCK];
} ngx_http_dsa_tenants_t;


_Static_assert(NGX_HTTP_DSA_TENANTS % NGX_HTTP_DSA_TENANTS_WAYS == 0,
               "the rows are whole sets");
_Static_assert(NGX_HTTP_DSA_TENANTS_BLOCKS <= DSA_PERMITS_BLOCKS,
               "the table of permits has a pointer to each block");


static ngx_int_t ngx_http_dsa_tenants_init_zone(ngx_shm_zone_t *zone,
    void *data);
static void ngx_http_dsa_tenants_tick(ngx_event_t *ev);
static ngx_http_dsa_tenant_t *ngx_http_dsa_tenants_row(
    ngx_http_dsa_tenants_t *t, const u_char *tenant, const u_char *key);
static ngx_uint_t ngx_http_dsa_tenants_busier(const ngx_http_dsa_tenant_t *a,
    const ngx_http_dsa_tenant_t *b);


/* the table; NULL until this process has an owner number */

static ngx_http_dsa_tenants_t  *ngx_http_dsa_tenants;
static int                      ngx_http_dsa_tenants_owner;
static ngx_event_t              ngx_http_dsa_tenants_timer;


ngx_shm_zone_t *
ngx_http_dsa_tenants_zone(ngx_conf_t *cf)
{
    size_t           size;
    ngx_shm_zone_t  *zone;

    static ngx_str_t  name = ngx_string("dsa_tenants");

    /* room for the slab allocator's own pages */

    size = ngx_align(sizeof(ngx_http_dsa_tenants_t), ngx_pagesize)
           + 16 * ngx_pagesize;

    zone = ngx_shared_memory_add(cf, &name, size, &ngx_http_dsa_module);

    if (zone != NULL) {
        zone->init = ngx_http_dsa_tenants_init_zone;
    }

    return zone;
}


static ngx_int_t
ngx_http_dsa_tenants_init_zone(ngx_shm_zone_t *zone, void *data)
{
    ngx_int_t                rc;
    ngx_uint_t               i;
    ngx_http_dsa_tenants_t  *t;

    rc = ngx_http_dsa_zone_open(zone, data, NGX_HTTP_DSA_TENANTS_LAYOUT,
                                sizeof(ngx_http_dsa_tenants_t), &t);
    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (rc == NGX_DECLINED) {

        if (dsa_permits_init(&t->permits) != DSA_OK) {
            ngx_log_error(NGX_LOG_EMERG, zone->shm.log, ngx_errno,
                          "dsa: a shared lock of the tenants cannot be "
                          "created");
            return NGX_ERROR;
        }

        for (i = 0; i < NGX_HTTP_DSA_TENANTS_BLOCKS; i++) {
            dsa_permits_add(&t->permits, t->blocks[i]);
        }
    }

    zone->data = t;

    return NGX_OK;
}


void
ngx_http_dsa_tenants_start(ngx_shm_zone_t *zone, ngx_cycle_t *cycle)
{
    ngx_event_t             *ev;
    ngx_http_dsa_tenants_t  *t;

    t = zone->data;

    ngx_http_dsa_tenants_owner = dsa_permits_acquire(&t->permits);

    if (ngx_http_dsa_tenants_owner == -1) {
        ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                      "dsa: more than %d processes use the table of tenants; "
                      "it has no requests of this one", DSA_PERMITS_OWNERS);
        return;
    }

    ngx_http_dsa_tenants = t;

    ev = &ngx_http_dsa_tenants_timer;

    ev->handler = ngx_http_dsa_tenants_tick;
    ev->data = t;
    ev->log = cycle->log;
    ev->cancelable = 1;

    ngx_add_timer(ev, NGX_HTTP_DSA_TENANTS_TICK);
}


static void
ngx_http_dsa_tenants_tick(ngx_event_t *ev)
{
    ngx_http_dsa_tenants_t  *t;

    t = ev->data;

    (void) dsa_permits_reap(&t->permits, ngx_http_dsa_tenants_owner);

    ngx_add_timer(ev, NGX_HTTP_DSA_TENANTS_TICK);
}


void
ngx_http_dsa_tenants_wait(ngx_http_dsa_tenant_ref_t *ref, const u_char *tenant,
    const u_char *key)
{
    ngx_http_dsa_tenant_t   *row;
    ngx_http_dsa_tenants_t  *t;

    assert(ref->row == NULL);

    t = ngx_http_dsa_tenants;

    if (t == NULL) {
        return;
    }

    dsa_permits_lock(&t->permits);

    row = ngx_http_dsa_tenants_row(t, tenant, key);

    if (row != NULL) {
        row->active = ngx_current_msec;

        ref->permit = dsa_permits_take(&t->permits, ngx_http_dsa_tenants_owner,
                                       &row->waiting);

        if (ref->permit != 0) {
            ref->row = row;
            ref->waiting = 1;
        }
    }

    dsa_permits_unlock(&t->permits);
}


/*
 * Returns the row of a tenant, or a new one; NULL if all rows of its set have
 * requests in flight.
 */

static ngx_http_dsa_tenant_t *
ngx_http_dsa_tenants_row(ngx_http_dsa_tenants_t *t, const u_char *tenant,
    const u_char *key)
{
    uint32_t                hash;
    ngx_uint_t              i;
    ngx_http_dsa_tenant_t  *row, *oldest;

    ngx_crc32_init(hash);
    ngx_crc32_update(&hash, (u_char *) tenant, NGX_HTTP_DSA_TENANT_LEN);
    ngx_crc32_update(&hash, (u_char *) key, DSA_KEY_ID_LEN);
    ngx_crc32_final(hash);

    row = &t->rows[hash % (NGX_HTTP_DSA_TENANTS / NGX_HTTP_DSA_TENANTS_WAYS)
                   * NGX_HTTP_DSA_TENANTS_WAYS];
    oldest = NULL;

    for (i = 0; i < NGX_HTTP_DSA_TENANTS_WAYS; i++, row++) {

        if (row->used
            && ngx_memcmp(row->tenant, tenant, NGX_HTTP_DSA_TENANT_LEN) == 0
            && ngx_memcmp(row->key, key, DSA_KEY_ID_LEN) == 0)
        {
            return row;
        }

        if (row->running != 0 || row->waiting != 0) {
            continue;
        }

        if (oldest == NULL || row->used < oldest->used
            || (row->used == oldest->used && row->active < oldest->active))
        {
            oldest = row;
        }
    }

    if (oldest == NULL) {
        return NULL;
    }

    /* if the process is killed below, the row has no tenant */

    oldest->used = 0;
    atomic_signal_fence(memory_order_seq_cst);

    ngx_memzero(oldest, sizeof(ngx_http_dsa_tenant_t));
    ngx_memcpy(oldest->tenant, tenant, NGX_HTTP_DSA_TENANT_LEN);
    ngx_memcpy(oldest->key, key, DSA_KEY_ID_LEN);

    atomic_signal_fence(memory_order_seq_cst);
    oldest->used = 1;

    return oldest;
}


void
ngx_http_dsa_tenants_run(ngx_http_dsa_tenant_ref_t *ref)
{
    ngx_http_dsa_tenants_t  *t;

    if (!ref->waiting) {
        return;
    }

    ref->waiting = 0;

    t = ngx_http_dsa_tenants;

    dsa_permits_lock(&t->permits);

    dsa_permits_release(&t->permits, ref->permit);
    ref->permit = dsa_permits_take(&t->permits, ngx_http_dsa_tenants_owner,
                                   &ref->row->running);

    /* a permit was released above, so one is free */

    assert(ref->permit != 0);

    dsa_permits_unlock(&t->permits);
}


void
ngx_http_dsa_tenants_end(ngx_http_dsa_tenant_ref_t *ref,
    const ngx_http_dsa_usage_t *usage, int64_t cost)
{
    ngx_http_dsa_tenant_t   *row;
    ngx_http_dsa_tenants_t  *t;

    row = ref->row;

    if (row == NULL) {
        return;
    }

    t = ngx_http_dsa_tenants;

    dsa_permits_lock(&t->permits);

    row->requests++;
    row->prompt += usage->prompt;
    row->cached += usage->cached;
    row->completion += usage->completion;
    row->cost += (uint64_t) cost;
    row->active = ngx_current_msec;

    dsa_permits_release(&t->permits, ref->permit);

    dsa_permits_unlock(&t->permits);

    ngx_memzero(ref, sizeof(ngx_http_dsa_tenant_ref_t));
}


ngx_uint_t
ngx_http_dsa_tenants_read(ngx_shm_zone_t *zone, ngx_http_dsa_tenant_t *rows,
    ngx_uint_t n)
{
    ngx_uint_t               i, at, found;
    ngx_http_dsa_tenant_t    row;
    ngx_http_dsa_tenants_t  *t;

    t = zone->data;
    found = 0;

    for (i = 0; i < NGX_HTTP_DSA_TENANTS; i++) {

        if (!t->rows[i].used) {
            continue;
        }

        /*
         * Lock for one row at a time, because requests of other workers wait.
         */

        dsa_permits_lock(&t->permits);
        row = t->rows[i];
        dsa_permits_unlock(&t->permits);

        if (!row.used) {
            continue;
        }

        for (at = found; at != 0; at--) {

            if (!ngx_http_dsa_tenants_busier(&row, &rows[at - 1])) {
                break;
            }

            if (at < n) {
                rows[at] = rows[at - 1];
            }
        }

        if (at < n) {
            rows[at] = row;
            found += found < n;
        }
    }

    return found;
}


static ngx_uint_t
ngx_http_dsa_tenants_busier(const ngx_http_dsa_tenant_t *a,
    const ngx_http_dsa_tenant_t *b)
{
    uint32_t  in_flight;

    in_flight = a->running + a->waiting;

    if (in_flight != b->running + b->waiting) {
        return in_flight > b->running + b->waiting;
    }

    return a->active > b->active;
}
