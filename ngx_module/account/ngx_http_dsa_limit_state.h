
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_LIMIT_STATE_H_INCLUDED_
#define _NGX_HTTP_DSA_LIMIT_STATE_H_INCLUDED_


#include "ngx_http_dsa_limit_types.h"


/* The current state of a key.  The caller holds the lock of its limits. */

/* Refills the buckets. */
void ngx_http_dsa_limit_refill(ngx_http_dsa_limit_t *limit);

/*
 * Returns the requests that run on all hosts.  Those of other hosts count
 * until their lease ends.
 */
uint32_t ngx_http_dsa_limit_running(const ngx_http_dsa_limit_t *limit);

/*
 * Copies the state into the first part of view, without what is spent.  Call
 * _refill() before.
 */
void ngx_http_dsa_limit_view(const ngx_http_dsa_limit_t *limit,
    ngx_http_dsa_limit_view_t *view);


#endif /* _NGX_HTTP_DSA_LIMIT_STATE_H_INCLUDED_ */
