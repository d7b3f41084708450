
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_STATUS_TENANTS_H_INCLUDED_
#define _NGX_HTTP_DSA_STATUS_TENANTS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/json_write.h"

#include "ngx_module/account/ngx_http_dsa_keys.h"


/*
 * Writes the member "tenants": the rows of the busiest tenants, at most 100.
 * keys may be NULL.
 */
void ngx_http_dsa_status_tenants(dsa_json_writer_t *w, ngx_shm_zone_t *tenants,
    ngx_http_dsa_keys_t *keys);


/* Members of the object that is being written. */

void ngx_http_dsa_status_uint(dsa_json_writer_t *w, const char *key,
    uint64_t value);

/* An amount in 10^-12 of a unit, as a string in units. */
void ngx_http_dsa_status_amount(dsa_json_writer_t *w, const char *key,
    uint64_t amount);


#endif /* _NGX_HTTP_DSA_STATUS_TENANTS_H_INCLUDED_ */
