
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_dsa_module.h"


#define NGX_HTTP_DSA_PUBLISH      1000      /* ms */


typedef struct {
    ngx_atomic_t              used;         /* highest block ever used, + 1 */
    ngx_http_dsa_block_t     *blocks;       /* [NGX_MAX_PROCESSES] */
} ngx_http_dsa_metrics_t;


typedef struct {
    const char               *name;
    const char               *help;
    ngx_uint_t                bounds[NGX_HTTP_DSA_BUCKETS];     /* ms */
} ngx_http_dsa_bounds_t;


static ngx_int_t ngx_http_dsa_metrics_init_zone(ngx_shm_zone_t *zone,
    void *data);
static void ngx_http_dsa_metrics_use(ngx_atomic_t *used, ngx_uint_t n);
static void ngx_http_dsa_metrics_publish(ngx_event_t *ev);
static void ngx_http_dsa_metrics_refresh(void);
static void ngx_http_dsa_metrics_sum(ngx_http_dsa_block_t *total);
static void ngx_http_dsa_metrics_head(dsa_buf_t *b, const char *name,
    const char *type, const char *help);
static void ngx_http_dsa_metrics_one(dsa_buf_t *b, const char *name,
    const char *type, const char *help, uint64_t value);
static void ngx_http_dsa_metrics_histogram(dsa_buf_t *b,
    const ngx_http_dsa_bounds_t *bounds, const ngx_http_dsa_hist_t *hist);
static void ngx_http_dsa_metrics_engines(dsa_buf_t *b,
    ngx_http_dsa_main_conf_t *mcf);
static void ngx_http_dsa_metrics_label(dsa_buf_t *b, ngx_str_t *s);


/* the last one is for all others */

static const ngx_uint_t  ngx_http_dsa_codes[NGX_HTTP_DSA_CODES - 1] = {
    200, 201, 204, 400, 401, 403, 404, 405, 408, 409, 413, 429, 499, 500, 503,
    504
};


static const char  *ngx_http_dsa_cancels[NGX_HTTP_DSA_CANCELS] = {
    "client", "timeout", "slow", "shutdown", "error"
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


/* what is counted before a worker has its block, as in a test of nginx -t */
static ngx_http_dsa_block_t     ngx_http_dsa_own;

static ngx_event_t              ngx_http_dsa_publish;
static ngx_http_dsa_metrics_t  *ngx_http_dsa_shared;


ngx_http_dsa_block_t  *ngx_http_dsa_block = &ngx_http_dsa_own;


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

    size = NGX_MAX_PROCESSES * ngx_align(sizeof(ngx_http_dsa_block_t),
                                         NGX_CPU_CACHE_LINE);

    /* the slab allocator's own pages beside it */

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
    size_t                   size;
    ngx_slab_pool_t         *shpool;
    ngx_http_dsa_metrics_t  *m;

    if (data != NULL) {
        zone->data = data;
        return NGX_OK;
    }

    shpool = (ngx_slab_pool_t *) zone->shm.addr;

    if (zone->shm.exists) {
        zone->data = shpool->data;
        return NGX_OK;
    }

    m = ngx_slab_calloc(shpool, sizeof(ngx_http_dsa_metrics_t));
    if (m == NULL) {
        return NGX_ERROR;
    }

    size = ngx_align(sizeof(ngx_http_dsa_block_t), NGX_CPU_CACHE_LINE);

    m->blocks = ngx_slab_calloc(shpool, NGX_MAX_PROCESSES * size);
    if (m->blocks == NULL) {
        return NGX_ERROR;
    }

    shpool->data = m;
    zone->data = m;

    return NGX_OK;
}


static ngx_http_dsa_block_t *
ngx_http_dsa_metrics_block(ngx_uint_t n)
{
    return (ngx_http_dsa_block_t *) ((u_char *) ngx_http_dsa_shared->blocks
               + n * ngx_align(sizeof(ngx_http_dsa_block_t),
                               NGX_CPU_CACHE_LINE));
}


void
ngx_http_dsa_metrics_start(ngx_cycle_t *cycle)
{
    ngx_http_dsa_main_conf_t  *mcf;

    mcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_dsa_module);

    ngx_http_dsa_shared = mcf->metrics->data;

    /* no two living processes of one master have the same slot */

    ngx_http_dsa_block = ngx_http_dsa_metrics_block(ngx_process_slot);

    ngx_http_dsa_metrics_use(&ngx_http_dsa_shared->used, ngx_process_slot + 1);

    /* what a process that was killed has left behind */

    ngx_http_dsa_block->redis_lost += ngx_http_dsa_block->redis_now_lost;
    ngx_http_dsa_block->redis_refused += ngx_http_dsa_block->redis_now_refused;
    ngx_http_dsa_block->redis_now_lost = 0;
    ngx_http_dsa_block->redis_now_refused = 0;
    ngx_http_dsa_block->redis_up = 0;
    ngx_http_dsa_block->in_flight = 0;
    ngx_http_dsa_block->sessions = 0;
    ngx_http_dsa_block->pid = ngx_pid;

    if (mcf->redis != NULL) {
        ngx_http_dsa_publish.handler = ngx_http_dsa_metrics_publish;
        ngx_http_dsa_publish.data = mcf;
        ngx_http_dsa_publish.log = cycle->log;
        ngx_http_dsa_publish.cancelable = 1;

        ngx_add_timer(&ngx_http_dsa_publish, NGX_HTTP_DSA_PUBLISH);
    }
}


/*
 * Raises used to n.  Workers that start at once must not lower it again: the
 * blocks above it are left out of the sums.
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
ngx_http_dsa_metrics_stop(ngx_cycle_t *cycle)
{
    ngx_http_dsa_metrics_refresh();

    ngx_http_dsa_block->redis_up = 0;
    ngx_http_dsa_block->in_flight = 0;
    ngx_http_dsa_block->sessions = 0;
}


static void
ngx_http_dsa_metrics_publish(ngx_event_t *ev)
{
    ngx_http_dsa_metrics_refresh();

    ngx_add_timer(ev, NGX_HTTP_DSA_PUBLISH);
}


static void
ngx_http_dsa_metrics_refresh(void)
{
    ngx_http_dsa_main_conf_t  *mcf = ngx_http_dsa_publish.data;

    if (mcf == NULL) {
        return;
    }

    ngx_http_dsa_block->redis_up = ngx_http_dsa_redis_up(mcf->redis);
    ngx_http_dsa_block->redis_now_lost = ngx_http_dsa_store_lost(mcf->redis);
    ngx_http_dsa_block->redis_now_refused =
                                    ngx_http_dsa_store_refused(mcf->redis);
}


/*
 * Words are read one by one while others write: each is right by itself.  The
 * gauges of a killed process stay in its block until another process gets the
 * block.  For an old worker of a reload that can take until the next reload,
 * so the gauges of processes that have ended are left out.
 */

static void
ngx_http_dsa_metrics_sum(ngx_http_dsa_block_t *total)
{
    size_t                 size;
    ngx_uint_t             i, n;
    uint64_t              *to;
    const uint64_t        *from;
    ngx_http_dsa_block_t  *block;

    ngx_memzero(total, sizeof(ngx_http_dsa_block_t));

    to = (uint64_t *) total;

    for (i = 0; i < ngx_http_dsa_shared->used; i++) {
        block = ngx_http_dsa_metrics_block(i);
        from = (const uint64_t *) block;

        size = (kill((ngx_pid_t) block->pid, 0) == 0 || ngx_errno == NGX_EPERM)
               ? sizeof(ngx_http_dsa_block_t)
               : offsetof(ngx_http_dsa_block_t, in_flight);

        for (n = 0; n < size / sizeof(uint64_t); n++) {
            to[n] += *(const volatile uint64_t *) &from[n];
        }
    }
}


ngx_int_t
ngx_http_dsa_metrics_handler(ngx_http_request_t *r)
{
    size_t                     len;
    ngx_int_t                  rc;
    ngx_buf_t                 *buf;
    ngx_uint_t                 i;
    dsa_buf_t                  b;
    ngx_chain_t                out;
    ngx_http_dsa_block_t       total;
    ngx_http_dsa_main_conf_t  *mcf;

    if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {
        return NGX_HTTP_NOT_ALLOWED;
    }

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    mcf = ngx_http_get_module_main_conf(r, ngx_http_dsa_module);

    ngx_http_dsa_metrics_refresh();
    ngx_http_dsa_metrics_sum(&total);

    ngx_memzero(&b, sizeof(dsa_buf_t));

    ngx_http_dsa_metrics_head(&b, "dsa_requests_total", "counter",
                              "Requests finished, by status.");

    for (i = 0; i < NGX_HTTP_DSA_CODES - 1; i++) {
        dsa_buf_printf(&b, "dsa_requests_total{code=\"%u\"} %llu\n",
                       (unsigned) ngx_http_dsa_codes[i],
                       (unsigned long long) total.requests[i]);
    }

    dsa_buf_printf(&b, "dsa_requests_total{code=\"other\"} %llu\n",
                   (unsigned long long) total.requests[i]);

    ngx_http_dsa_metrics_one(&b, "dsa_requests_in_flight", "gauge",
                             "Chats that are not finished.",
                             ngx_max(total.in_flight, 0));

    ngx_http_dsa_metrics_head(&b, "dsa_tokens_total", "counter",
                              "Tokens; cached are a part of prompt, reasoning "
                              "of completion.");
    dsa_buf_printf(&b, "dsa_tokens_total{type=\"prompt\"} %llu\n"
                   "dsa_tokens_total{type=\"cached\"} %llu\n"
                   "dsa_tokens_total{type=\"completion\"} %llu\n"
                   "dsa_tokens_total{type=\"reasoning\"} %llu\n",
                   (unsigned long long) total.prompt,
                   (unsigned long long) total.cached,
                   (unsigned long long) total.completion,
                   (unsigned long long) total.reasoning);

    ngx_http_dsa_metrics_head(&b, "dsa_cancelled_total", "counter",
                              "Requests given up before the engine was done.");

    for (i = 0; i < NGX_HTTP_DSA_CANCELS; i++) {
        dsa_buf_printf(&b, "dsa_cancelled_total{reason=\"%s\"} %llu\n",
                       ngx_http_dsa_cancels[i],
                       (unsigned long long) total.cancelled[i]);
    }

    for (i = 0; i < NGX_HTTP_DSA_HISTOGRAMS; i++) {
        ngx_http_dsa_metrics_histogram(&b, &ngx_http_dsa_bounds[i],
                                       &total.histogram[i]);
    }

    ngx_http_dsa_metrics_one(&b, "dsa_sessions", "gauge",
                             "Links between workers and engines that are up.",
                             ngx_max(total.sessions, 0));

    ngx_http_dsa_metrics_one(&b, "dsa_sessions_lost_requests_total", "counter",
                             "Requests that an engine died with.", total.lost);

    ngx_http_dsa_metrics_one(&b, "dsa_doorbells_total", "counter",
                             "Wake-ups by engines.", total.doorbells);

    ngx_http_dsa_metrics_one(&b, "dsa_ring_full_total", "counter",
                             "Submissions that found no room or no slot.",
                             total.ring_full);

    if (mcf->redis != NULL) {
        ngx_http_dsa_metrics_one(&b, "dsa_redis_connections", "gauge",
                                 "Workers that are connected to Redis.",
                                 total.redis_up);

        ngx_http_dsa_metrics_one(&b, "dsa_redis_pending_records", "gauge",
                                 "Ledger entries not confirmed by Redis.",
                                 ngx_http_dsa_ledger_entries(
                                     ngx_http_dsa_redis_ledger(mcf->redis)));

        ngx_http_dsa_metrics_one(&b, "dsa_redis_lost_records_total", "counter",
                                 "Ledger entries lost, each is in the log.",
                                 total.redis_lost + total.redis_now_lost);

        ngx_http_dsa_metrics_one(&b, "dsa_redis_refused_turns_total",
                                 "counter", "Turns that were not stored in "
                                 "their conversation.",
                                 total.redis_refused
                                 + total.redis_now_refused);
    }

    ngx_http_dsa_metrics_engines(&b, mcf);

    if (b.failed) {
        dsa_buf_free(&b);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    len = b.len;

    buf = ngx_create_temp_buf(r->pool, len);
    if (buf == NULL) {
        dsa_buf_free(&b);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    buf->last = ngx_cpymem(buf->last, b.data, len);
    buf->last_buf = 1;
    buf->last_in_chain = 1;

    dsa_buf_free(&b);

    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = len;

    ngx_str_set(&r->headers_out.content_type,
                "text/plain; version=0.0.4; charset=utf-8");
    r->headers_out.content_type_len = sizeof("text/plain") - 1;
    r->headers_out.content_type_lowcase = NULL;

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    out.buf = buf;
    out.next = NULL;

    return ngx_http_output_filter(r, &out);
}


static void
ngx_http_dsa_metrics_head(dsa_buf_t *b, const char *name, const char *type,
    const char *help)
{
    dsa_buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}


static void
ngx_http_dsa_metrics_one(dsa_buf_t *b, const char *name, const char *type,
    const char *help, uint64_t value)
{
    ngx_http_dsa_metrics_head(b, name, type, help);

    dsa_buf_printf(b, "%s %llu\n", name, (unsigned long long) value);
}


static void
ngx_http_dsa_metrics_histogram(dsa_buf_t *b,
    const ngx_http_dsa_bounds_t *bounds, const ngx_http_dsa_hist_t *hist)
{
    uint64_t    count;
    ngx_uint_t  i;

    ngx_http_dsa_metrics_head(b, bounds->name, "histogram", bounds->help);

    count = 0;

    for (i = 0; i < NGX_HTTP_DSA_BUCKETS; i++) {
        count += hist->bucket[i];

        dsa_buf_printf(b, "%s_bucket{le=\"%.9g\"} %llu\n", bounds->name,
                       (double) bounds->bounds[i] / 1000,
                       (unsigned long long) count);
    }

    count += hist->bucket[i];

    dsa_buf_printf(b, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.3f\n"
                   "%s_count %llu\n",
                   bounds->name, (unsigned long long) count,
                   bounds->name, (double) hist->sum / 1000,
                   bounds->name, (unsigned long long) count);
}


/* What the replicas say of themselves, as this worker sees it. */

static void
ngx_http_dsa_metrics_engines(dsa_buf_t *b, ngx_http_dsa_main_conf_t *mcf)
{
    uint64_t                   value;
    ngx_uint_t                 i, n, k;
    dsa_link_control_t        *control;
    ngx_http_dsa_pool_t      **pools;
    ngx_http_dsa_session_t    *s;

    static const struct {
        const char  *name;
        const char  *type;
        const char  *help;
    } metrics[] = {
        { "dsa_engine_up", "gauge",
          "1: this worker has a session with the engine." },
        { "dsa_engine_draining", "gauge", "1: it takes no new requests." },
        { "dsa_engine_requests_running", "gauge", "Sequences in the batch." },
        { "dsa_engine_requests_waiting", "gauge", "Sequences in the queue." },
        { "dsa_engine_pages", "gauge", "Pages of its KV cache." },
        { "dsa_engine_pages_used", "gauge", "Pages in use." },
        { "dsa_engine_steps_total", "counter", "Steps of its scheduler." },
        { "dsa_engine_preemptions_total", "counter",
          "Sequences that lost their pages." },
        { "dsa_engine_prompt_tokens_total", "counter", "Prompt tokens." },
        { "dsa_engine_cached_tokens_total", "counter",
          "Prompt tokens not computed again." },
        { "dsa_engine_completion_tokens_total", "counter",
          "Tokens generated." },
        { "dsa_engine_heartbeat_age_seconds", "gauge",
          "Since it was last seen alive." }
    };

    pools = mcf->pools.elts;

    for (k = 0; k < sizeof(metrics) / sizeof(metrics[0]); k++) {
        ngx_http_dsa_metrics_head(b, metrics[k].name, metrics[k].type,
                                  metrics[k].help);

        for (i = 0; i < mcf->pools.nelts; i++) {
            s = pools[i]->sessions.elts;

            for (n = 0; n < pools[i]->sessions.nelts; n++) {

                if (s[n].state != NGX_HTTP_DSA_READY && k != 0) {
                    continue;
                }

                control = s[n].link.control;

                switch (k) {
                case 0:
                    value = (s[n].state == NGX_HTTP_DSA_READY);
                    break;
                case 1:
                    value = control->draining;
                    break;
                case 2:
                    value = control->running;
                    break;
                case 3:
                    value = control->waiting;
                    break;
                case 4:
                    value = control->pages;
                    break;
                case 5:
                    value = control->pages_used;
                    break;
                case 6:
                    value = control->steps;
                    break;
                case 7:
                    value = control->preemptions;
                    break;
                case 8:
                    value = control->prompt_tokens;
                    break;
                case 9:
                    value = control->cached_tokens;
                    break;
                case 10:
                    value = control->completion_tokens;
                    break;
                default:
                    value = ngx_http_dsa_session_age(&s[n]);
                    break;
                }

                dsa_buf_printf(b, "%s{pool=\"", metrics[k].name);
                ngx_http_dsa_metrics_label(b, &pools[i]->name);
                dsa_buf_addz(b, "\",engine=\"");
                ngx_http_dsa_metrics_label(b, &s[n].name);

                if (k == 11) {
                    dsa_buf_printf(b, "\"} %.3f\n", (double) value / 1000);

                } else {
                    dsa_buf_printf(b, "\"} %llu\n",
                                   (unsigned long long) value);
                }
            }
        }
    }
}


static void
ngx_http_dsa_metrics_label(dsa_buf_t *b, ngx_str_t *s)
{
    size_t  i;

    for (i = 0; i < s->len; i++) {
        if (s->data[i] == '"' || s->data[i] == '\\') {
            dsa_buf_add(b, "\\", 1);
        }

        if (s->data[i] == '\n') {
            dsa_buf_add(b, "\\n", 2);
            continue;
        }

        dsa_buf_add(b, &s->data[i], 1);
    }
}
