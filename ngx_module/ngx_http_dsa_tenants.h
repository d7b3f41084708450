
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_TENANTS_H_INCLUDED_
#define _NGX_HTTP_DSA_TENANTS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "redis_schema/keys.h"

#include "ngx_http_dsa_identity.h"
#include "ngx_http_dsa_usage.h"


/*
 * Who uses the server: a table in shared memory with a row for each tenant and
 * key that an engine was given a request of.  The table is for reports only.
 * It has NGX_HTTP_DSA_TENANTS rows; when those that a tenant may have are
 * taken, the tenant that was active least recently and has no request in flight
 * loses its row, and begins at zero when it comes again.
 *
 * A request in flight is waiting until its first token, and then running.  Both
 * counts stay exact if a worker is killed (base/seats.h): another one notices
 * it within a second.
 */

#define NGX_HTTP_DSA_TENANTS      4096


typedef struct {
    u_char                    tenant[NGX_HTTP_DSA_TENANT_LEN];
    u_char                    key[DSA_KEY_ID_LEN];      /* zeros: none */
    uint32_t                  running;
    uint32_t                  waiting;
    uint32_t                  used;         /* 1: the row has a tenant */
    uint64_t                  requests;     /* that have ended */
    uint64_t                  prompt;       /* tokens, cached included */
    uint64_t                  cached;
    uint64_t                  completion;   /* reasoning included */
    uint64_t                  cost;         /* 10^-12 of a unit */
    uint64_t                  active;       /* ngx_current_msec of the last
                                               begin or end of a request */
} ngx_http_dsa_tenant_t;


/* What a request has of the table.  Zeroed memory: nothing. */

typedef struct {
    ngx_http_dsa_tenant_t    *row;
    uint32_t                  hold;
    unsigned                  waiting:1;
} ngx_http_dsa_tenant_ref_t;


/* In configuration: the zone of the table.  NULL: out of memory. */
ngx_shm_zone_t *ngx_http_dsa_tenants_zone(ngx_conf_t *cf);

/* In a worker, before its first request. */
void ngx_http_dsa_tenants_start(ngx_shm_zone_t *zone, ngx_cycle_t *cycle);

/*
 * A request was submitted to an engine: it waits.  tenant has
 * NGX_HTTP_DSA_TENANT_LEN digits, and key DSA_KEY_ID_LEN bytes, zeros for none.
 * ref is empty, and stays so if all rows or all holds are taken.
 */
void ngx_http_dsa_tenants_wait(ngx_http_dsa_tenant_ref_t *ref,
    const u_char *tenant, const u_char *key);

/* It has its first token.  Nothing happens if it does not wait. */
void ngx_http_dsa_tenants_run(ngx_http_dsa_tenant_ref_t *ref);

/* It has ended with this usage.  Empties ref; nothing happens if it is. */
void ngx_http_dsa_tenants_end(ngx_http_dsa_tenant_ref_t *ref,
    const ngx_http_dsa_usage_t *usage, int64_t cost);

/*
 * Copies the n busiest rows: those with the most requests in flight, and of
 * equal ones those that were active last.  Returns how many there are.
 */
ngx_uint_t ngx_http_dsa_tenants_read(ngx_shm_zone_t *zone,
    ngx_http_dsa_tenant_t *rows, ngx_uint_t n);


#endif /* _NGX_HTTP_DSA_TENANTS_H_INCLUDED_ */
