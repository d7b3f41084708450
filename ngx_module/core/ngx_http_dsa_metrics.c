
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include <assert.h>

#include "ngx_http_dsa_conf.h"
#include "ngx_http_dsa_metrics.h"
#include "ngx_http_dsa_zone.h"


typedef struct {
    ngx_http_dsa_zone_t       zone;
    ngx_atomic_t              used;         /* highest block ever used, + 1 */
    u_char                   *blocks;       /* [NGX_MAX_PROCESSES] */
    ngx_msec_t                created;      /* ngx_current_msec */
} ngx_http_dsa_metrics_t;


#define NGX_HTTP_DSA_METRICS_LAYOUT                                           \
    NGX_HTTP_DSA_ZONE_LAYOUT(1, ngx_http_dsa_block_t)

_Static_assert(sizeof(ngx_http_dsa_block_t) % sizeof(uint64_t) == 0,
               "a block is summed as words of 64 bits");
_Static_assert(offsetof(ngx_http_dsa_block_t, in_flight) % sizeof(uint64_t)
               == 0, "the gauges begin at a word");
_Static_assert(offsetof(ngx_http_dsa_block_t, pid)
               == sizeof(ngx_http_dsa_block_t) - sizeof(uint64_t),
               "the gauges are the end of a block");


static ngx_int_t ngx_http_dsa_metrics_init_zone(ngx_shm_zone_t *zone,
    void *data);
static size_t ngx_http_dsa_metrics_size(void);
static ngx_http_dsa_block_t *ngx_http_dsa_metrics_block(
    ngx_http_dsa_metrics_t *m, ngx_uint_t n);
static void ngx_http_dsa_metrics_use(ngx_atomic_t *used, ngx_uint_t n);


static const ngx_uint_t  ngx_http_dsa_codes[NGX_HTTP_DSA_CODES - 1] = {
    200, 201, 204, 400, 401, 403, 404, 405, 408, 409, 413, 429, 499, 500, 503,
    504
};


static const char *const  ngx_http_dsa_cancels[NGX_HTTP_DSA_CANCELS] = {
    "client", "timeout", "slow", "shutdown", "error"
};


static const char *const  ngx_http_dsa_stages[NGX_HTTP_DSA_STAGES] = {
    "parse", "read", "references", "history", "conversation", "retention",
    "check", "window", "summary", "encode", "answer", "object"
};


static const ngx_http_dsa_bounds_t
    ngx_http_dsa_bounds[NGX_HTTP_DSA_HISTOGRAMS] =
{
    { "dsa_time_to_first_token_seconds",
      "From the request's arrival to its first token.",
      { 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000 } },

    { "dsa_inter_token_seconds",
      "Between two tokens of an answer.",
      { 1, 2, 5, 10, 15, 20, 30, 50, 100, 250, 500, 1000 } },

    { "dsa_request_duration_seconds",
      "From the request's arrival to its end.",
      { 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 300000, 600000,
        1800000 } },

    { "dsa_queue_seconds",
      "From submission to the engine's first step for it.",
      { 1, 5, 10, 25, 50, 100, 250, 500, 1000, 5000, 10000, 60000 } }
};


static ngx_http_dsa_block_t  ngx_http_dsa_private_block;

ngx_http_dsa_block_t        *ngx_http_dsa_block = &ngx_http_dsa_private_block;


void
ngx_http_dsa_metrics_observe(ngx_http_dsa_histogram_e which, ngx_msec_t ms,
    ngx_uint_t n)
{
    ngx_uint_t            i;
    ngx_http_dsa_hist_t  *hist;

    hist = &ngx_http_dsa_block->histogram[which];

    for (i = 0; i < NGX_HTTP_DSA_BUCKETS; i++) {
        if (ms <= ngx_http_dsa_bounds[which].bounds[i]) {
            break;
        }
    }

    hist->bucket[i] += n;
    hist->sum += (uint64_t) ms * n;
}


void
ngx_http_dsa_metrics_request(ngx_uint_t status)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_DSA_CODES - 1; i++) {
        if (ngx_http_dsa_codes[i] == status) {
            break;
        }
    }

    ngx_http_dsa_block->requests[i]++;
}


ngx_shm_zone_t *
ngx_http_dsa_metrics_zone(ngx_conf_t *cf)
{
    size_t           size;
    ngx_shm_zone_t  *zone;

    static ngx_str_t  name = ngx_string("dsa_metrics");

    size = NGX_MAX_PROCESSES * ngx_http_dsa_metrics_size();

    /* room for the slab allocator's own pages */

    size = ngx_align(size, ngx_pagesize) + 16 * ngx_pagesize;

    zone = ngx_shared_memory_add(cf, &name, size, &ngx_http_dsa_module);

    if (zone != NULL) {
        zone->init = ngx_http_dsa_metrics_init_zone;
    }

    return zone;
}


static ngx_int_t
ngx_http_dsa_metrics_init_zone(ngx_shm_zone_t *zone, void *data)
{
    ngx_int_t                rc;
    ngx_slab_pool_t         *shpool;
    ngx_http_dsa_metrics_t  *m;

    rc = ngx_http_dsa_zone_open(zone, data, NGX_HTTP_DSA_METRICS_LAYOUT,
                                sizeof(ngx_http_dsa_metrics_t), &m);
    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (rc == NGX_DECLINED) {
        shpool = (ngx_slab_pool_t *) zone->shm.addr;

        m->blocks = ngx_slab_calloc(shpool, NGX_MAX_PROCESSES
                                            * ngx_http_dsa_metrics_size());
        if (m->blocks == NULL) {
            return NGX_ERROR;
        }

        m->created = ngx_current_msec;
    }

    zone->data = m;

    return NGX_OK;
}


/* Bytes of a block in the zone: blocks share no cache line. */

static size_t
ngx_http_dsa_metrics_size(void)
{
    return ngx_align(sizeof(ngx_http_dsa_block_t), NGX_CPU_CACHE_LINE);
}


static ngx_http_dsa_block_t *
ngx_http_dsa_metrics_block(ngx_http_dsa_metrics_t *m, ngx_uint_t n)
{
    assert(n < NGX_MAX_PROCESSES);

    return (ngx_http_dsa_block_t *) (m->blocks
                                     + n * ngx_http_dsa_metrics_size());
}


void
ngx_http_dsa_metrics_start(ngx_shm_zone_t *zone)
{
    ngx_http_dsa_block_t    *block;
    ngx_http_dsa_metrics_t  *m;

    m = zone->data;

    /* two living processes of a master never have the same process slot */

    block = ngx_http_dsa_metrics_block(m, ngx_process_slot);

    ngx_http_dsa_metrics_use(&m->used, ngx_process_slot + 1);

    /* the last process of this block may have been killed */

    block->in_flight = 0;
    block->sessions = 0;
    block->redis_up = 0;
    block->redis_refuses = 0;
    block->pid = ngx_pid;

    ngx_http_dsa_block = block;
}


/*
 * Raises used to n.  It is never lowered, because the sums leave out the
 * blocks above it and other workers may start at the same time.
 */

static void
ngx_http_dsa_metrics_use(ngx_atomic_t *used, ngx_uint_t n)
{
    ngx_atomic_uint_t  old;

    do {
        old = *used;
    } while (old < n && !ngx_atomic_cmp_set(used, old, n));
}


void
ngx_http_dsa_metrics_stop(void)
{
    ngx_http_dsa_block->in_flight = 0;
    ngx_http_dsa_block->sessions = 0;
    ngx_http_dsa_block->redis_up = 0;
    ngx_http_dsa_block->redis_refuses = 0;
}


/*
 * Each word is read atomically while other processes write, so each counter is
 * exact but two of them may be from different moments.  A killed process
 * leaves its gauges in its block until another process uses the block, which
 * may be after the next reload.  So the gauges of processes that have ended
 * are left out.
 */

void
ngx_http_dsa_metrics_sum(ngx_shm_zone_t *zone, ngx_http_dsa_block_t *total)
{
    size_t                   size;
    ngx_uint_t               i, n;
    uint64_t                *to;
    const uint64_t          *from;
    ngx_http_dsa_block_t    *block;
    ngx_http_dsa_metrics_t  *m;

    m = zone->data;

    ngx_memzero(total, sizeof(ngx_http_dsa_block_t));

    to = (uint64_t *) total;

    for (i = 0; i < m->used; i++) {
        block = ngx_http_dsa_metrics_block(m, i);
        from = (const uint64_t *) block;

        size = (kill((ngx_pid_t) block->pid, 0) == 0 || ngx_errno == NGX_EPERM)
               ? sizeof(ngx_http_dsa_block_t)
               : offsetof(ngx_http_dsa_block_t, in_flight);

        for (n = 0; n < size / sizeof(uint64_t); n++) {
            to[n] += *(const volatile uint64_t *) &from[n];
        }
    }
}


ngx_msec_t
ngx_http_dsa_metrics_age(ngx_shm_zone_t *zone)
{
    ngx_http_dsa_metrics_t  *m;

    m = zone->data;

    /* all processes of the master have the same monotonic clock */

    return ngx_current_msec - m->created;
}


ngx_uint_t
ngx_http_dsa_metrics_code(ngx_uint_t i)
{
    return i < NGX_HTTP_DSA_CODES - 1 ? ngx_http_dsa_codes[i] : 0;
}


const char *
ngx_http_dsa_metrics_reason(ngx_http_dsa_cancel_e reason)
{
    return ngx_http_dsa_cancels[reason];
}


const char *
ngx_http_dsa_metrics_stage(ngx_http_dsa_stage_e stage)
{
    return ngx_http_dsa_stages[stage];
}


const ngx_http_dsa_bounds_t *
ngx_http_dsa_metrics_bounds(ngx_http_dsa_histogram_e which)
{
    return &ngx_http_dsa_bounds[which];
}
