
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_LIMIT_STATE_H_INCLUDED_
#define _NGX_HTTP_DSA_LIMIT_STATE_H_INCLUDED_


#include "ngx_http_dsa_limit_types.h"


/* The state of a key at this moment.  The lock of its limits is held. */

/* Refills the buckets, and starts new periods of the budgets. */
void ngx_http_dsa_limit_refill(ngx_http_dsa_limit_t *limit);

/* Requests that run on all hosts; those of others count until a lease ends. */
uint32_t ngx_http_dsa_limit_running(const ngx_http_dsa_limit_t *limit);

/* Copies the state, which was refilled, into the first part of view. */
void ngx_http_dsa_limit_view(const ngx_http_dsa_limit_t *limit,
    ngx_http_dsa_limit_view_t *view);


#endif /* _NGX_HTTP_DSA_LIMIT_STATE_H_INCLUDED_ */
