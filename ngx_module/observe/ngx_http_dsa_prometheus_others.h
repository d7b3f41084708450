
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_PROMETHEUS_OTHERS_H_INCLUDED_
#define _NGX_HTTP_DSA_PROMETHEUS_OTHERS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/buf.h"

#include "ngx_module/engine/ngx_http_dsa_pool.h"


/*
 * Metrics of a pool by names that programs of others read, for "dsa_metrics
 * POOL".
 *
 * gauges: those of the model server protocol of Kubernetes' Gateway API
 * Inference Extension, under vLLM's names.  An endpoint picker reads one sample
 * of each, so each is that of the pool as a whole: the sum over the engines
 * that this worker has a session with; without one there are no samples.
 *
 * durations: those of OpenTelemetry's conventions for generative AI, in the
 * form that OpenTelemetry specifies for Prometheus.  series: the zone of
 * ngx_http_dsa_series_zone().  NGX_OK, or NGX_ERROR: out of memory.
 */
void ngx_http_dsa_prometheus_gauges(dsa_buf_t *b,
    const ngx_http_dsa_pool_t *pool);
ngx_int_t ngx_http_dsa_prometheus_durations(dsa_buf_t *b,
    const ngx_http_dsa_pool_t *pool, ngx_shm_zone_t *series);


#endif /* _NGX_HTTP_DSA_PROMETHEUS_OTHERS_H_INCLUDED_ */
