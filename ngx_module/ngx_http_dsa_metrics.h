
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_METRICS_H_INCLUDED_
#define _NGX_HTTP_DSA_METRICS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * Counters in shared memory, a block for each process of nginx, so that
 * nobody waits for a lock or a cache line: a process writes its own block
 * only, and who is asked sums them up.  Counters outlive their process,
 * gauges do not.
 */

#define NGX_HTTP_DSA_BUCKETS      12


typedef enum {
    NGX_HTTP_DSA_TTFT = 0,
    NGX_HTTP_DSA_INTER_TOKEN,
    NGX_HTTP_DSA_DURATION,
    NGX_HTTP_DSA_QUEUE,
    NGX_HTTP_DSA_HISTOGRAMS
} ngx_http_dsa_histogram_e;


typedef enum {
    NGX_HTTP_DSA_CANCEL_CLIENT = 0,
    NGX_HTTP_DSA_CANCEL_TIMEOUT,
    NGX_HTTP_DSA_CANCEL_SLOW,
    NGX_HTTP_DSA_CANCEL_SHUTDOWN,
    NGX_HTTP_DSA_CANCEL_ERROR,
    NGX_HTTP_DSA_CANCELS
} ngx_http_dsa_cancel_e;


#define NGX_HTTP_DSA_CODES        17


typedef struct {
    uint64_t                  bucket[NGX_HTTP_DSA_BUCKETS + 1];
    uint64_t                  sum;          /* milliseconds */
} ngx_http_dsa_hist_t;


typedef struct {
    uint64_t                  requests[NGX_HTTP_DSA_CODES];
    uint64_t                  cancelled[NGX_HTTP_DSA_CANCELS];
    uint64_t                  prompt;       /* tokens, cached included */
    uint64_t                  cached;
    uint64_t                  completion;   /* reasoning included */
    uint64_t                  reasoning;
    uint64_t                  doorbells;
    uint64_t                  ring_full;
    uint64_t                  lost;         /* requests an engine died with */
    uint64_t                  redis_lost;   /* by processes that are gone */
    uint64_t                  redis_refused;
    uint64_t                  redis_now_lost;       /* by the one that has */
    uint64_t                  redis_now_refused;    /*   the block now */
    ngx_http_dsa_hist_t       histogram[NGX_HTTP_DSA_HISTOGRAMS];

    /* gauges, which count while the process lives */

    int64_t                   in_flight;
    int64_t                   sessions;
    uint64_t                  redis_up;
    uint64_t                  pid;
} ngx_http_dsa_block_t;


/* This process's block; one of its own until a worker has started. */
extern ngx_http_dsa_block_t  *ngx_http_dsa_block;


#define ngx_http_dsa_metrics_add(name, n)                                     \
    (ngx_http_dsa_block->name += (n))

#define ngx_http_dsa_metrics_session(n)                                       \
    (ngx_http_dsa_block->sessions += (n))


/* ms: milliseconds; n: how often. */
void ngx_http_dsa_metrics_observe(ngx_http_dsa_histogram_e which,
    ngx_msec_t ms, ngx_uint_t n);

/* A finished request, by its status. */
void ngx_http_dsa_metrics_request(ngx_uint_t status);


/* In configuration: the zone.  In a worker: its block, and its end. */
ngx_shm_zone_t *ngx_http_dsa_metrics_zone(ngx_conf_t *cf);
void ngx_http_dsa_metrics_start(ngx_cycle_t *cycle);
void ngx_http_dsa_metrics_stop(ngx_cycle_t *cycle);


/* dsa_metrics: the text format of Prometheus. */
ngx_int_t ngx_http_dsa_metrics_handler(ngx_http_request_t *r);


#endif /* _NGX_HTTP_DSA_METRICS_H_INCLUDED_ */
