
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_PROMETHEUS_ENGINES_H_INCLUDED_
#define _NGX_HTTP_DSA_PROMETHEUS_ENGINES_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/buf.h"


/*
 * The figures that the engines report, as this worker sees them.  An engine
 * without a session has only dsa_engine_up.  pools: ngx_http_dsa_pool_t *.
 */
void ngx_http_dsa_prometheus_engines(dsa_buf_t *b, ngx_array_t *pools);

/*
 * The figures of the tiers of their caches.  An engine has no samples here if
 * its version of the link has no tiers.
 */
void ngx_http_dsa_prometheus_tiers(dsa_buf_t *b, ngx_array_t *pools);


#endif /* _NGX_HTTP_DSA_PROMETHEUS_ENGINES_H_INCLUDED_ */
