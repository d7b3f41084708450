
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_TENANTS_H_INCLUDED_
#define _NGX_HTTP_DSA_TENANTS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "redis_schema/keys.h"

#include "ngx_module/core/ngx_http_dsa_usage.h"
#include "ngx_module/http/ngx_http_dsa_identity.h"


/*
 * The use of the server by tenant: a table in shared memory with a row for
 * each tenant and key with requests that were submitted to an engine.  The
 * table is for reports only.  It has NGX_HTTP_DSA_TENANTS rows.  If all rows
 * of a set are in use, the least recently active one without a request in
 * flight is replaced, and its counts are discarded.
 *
 * A request in flight counts as waiting until its first token, and then as
 * running.  When a worker is killed, another one corrects both counts within a
 * second (base/permits.h).
 */

#define NGX_HTTP_DSA_TENANTS      4096


typedef struct {
    u_char                    tenant[NGX_HTTP_DSA_TENANT_LEN];
    u_char                    key[DSA_KEY_ID_LEN];      /* zeros: none */
    uint32_t                  running;
    uint32_t                  waiting;
    uint32_t                  used;         /* 1: the row has a tenant */
    uint64_t                  requests;     /* ended requests */
    uint64_t                  prompt;       /* tokens, cached included */
    uint64_t                  cached;
    uint64_t                  completion;   /* reasoning included */
    uint64_t                  cost;         /* 10^-12 of a unit */
    uint64_t                  active;       /* ngx_current_msec when a request
                                               last began or ended */
} ngx_http_dsa_tenant_t;


/*
 * The reference of a request to its row.  Zeroed memory is an empty reference.
 */

typedef struct {
    ngx_http_dsa_tenant_t    *row;
    uint32_t                  permit;
    unsigned                  waiting:1;
} ngx_http_dsa_tenant_ref_t;


/*
 * Called in configuration: adds the zone of the table.  NULL: out of memory.
 */
ngx_shm_zone_t *ngx_http_dsa_tenants_zone(ngx_conf_t *cf);

/* Called in a worker before its first request. */
void ngx_http_dsa_tenants_start(ngx_shm_zone_t *zone, ngx_cycle_t *cycle);

/*
 * Counts a request that was submitted to an engine as waiting.  tenant has
 * NGX_HTTP_DSA_TENANT_LEN digits, and key DSA_KEY_ID_LEN bytes, zeros for none.
 * ref must be empty, and stays empty if all rows or all permits are in use.
 */
void ngx_http_dsa_tenants_wait(ngx_http_dsa_tenant_ref_t *ref,
    const u_char *tenant, const u_char *key);

/* Counts the request as running, if it is waiting. */
void ngx_http_dsa_tenants_run(ngx_http_dsa_tenant_ref_t *ref);

/*
 * Counts the request as ended with this usage, and empties ref.  Does nothing
 * if ref is empty.
 */
void ngx_http_dsa_tenants_end(ngx_http_dsa_tenant_ref_t *ref,
    const ngx_http_dsa_usage_t *usage, int64_t cost);

/*
 * Copies the n busiest rows: those with the most requests in flight, and of
 * equal ones the most recently active.  Returns the number of rows copied.
 */
ngx_uint_t ngx_http_dsa_tenants_read(ngx_shm_zone_t *zone,
    ngx_http_dsa_tenant_t *rows, ngx_uint_t n);


#endif /* _NGX_HTTP_DSA_TENANTS_H_INCLUDED_ */
