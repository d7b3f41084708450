
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include <inttypes.h>

#include "ngx_module/core/ngx_http_dsa_metrics.h"
#include "ngx_module/engine/ngx_http_dsa_pool.h"
#include "ngx_http_dsa_prometheus_engines.h"
#include "ngx_http_dsa_prometheus_text.h"


typedef enum {
    NGX_HTTP_DSA_ENGINE_UP = 0,
    NGX_HTTP_DSA_ENGINE_DRAINING,
    NGX_HTTP_DSA_ENGINE_RUNNING,
    NGX_HTTP_DSA_ENGINE_WAITING,
    NGX_HTTP_DSA_ENGINE_PAGES,
    NGX_HTTP_DSA_ENGINE_PAGES_USED,
    NGX_HTTP_DSA_ENGINE_STEPS,
    NGX_HTTP_DSA_ENGINE_PREEMPTIONS,
    NGX_HTTP_DSA_ENGINE_PROMPT_TOKENS,
    NGX_HTTP_DSA_ENGINE_CACHED_TOKENS,
    NGX_HTTP_DSA_ENGINE_COMPLETION_TOKENS,
    NGX_HTTP_DSA_ENGINE_DECODES,
    NGX_HTTP_DSA_ENGINE_DECODE_TOKENS,
    NGX_HTTP_DSA_ENGINE_DRAFT_TOKENS,
    NGX_HTTP_DSA_ENGINE_ACCEPTED_TOKENS,
    NGX_HTTP_DSA_ENGINE_TOKEN_TIMES,
    NGX_HTTP_DSA_ENGINE_EXPERT_ROWS,
    NGX_HTTP_DSA_ENGINE_FULLEST_ROWS,
    NGX_HTTP_DSA_ENGINE_HEARTBEAT_AGE,
    NGX_HTTP_DSA_ENGINE_METRICS
} ngx_http_dsa_engine_metric_e;


typedef struct {
    const char  *name;
    const char  *type;
    const char  *help;
} ngx_http_dsa_engine_metric_t;


/* What a word of dsa_link_tier_t counts, and how it is reported. */

typedef enum {
    NGX_HTTP_DSA_TIER_COUNT = 0,
    NGX_HTTP_DSA_TIER_SIZE,         /* pages; not of tiers on servers */
    NGX_HTTP_DSA_TIER_BYTES,        /* the same, reported as bytes */
    NGX_HTTP_DSA_TIER_SERVERS,      /* only of tiers on servers */
    NGX_HTTP_DSA_TIER_TIME          /* microseconds, reported as seconds */
} ngx_http_dsa_tier_unit_e;


typedef struct {
    const char                *name;
    const char                *type;
    const char                *help;
    size_t                     offset;
    ngx_http_dsa_tier_unit_e   unit;
} ngx_http_dsa_tier_metric_t;


static void ngx_http_dsa_prometheus_engine(dsa_buf_t *b,
    const ngx_str_t *pool, ngx_http_dsa_session_t *s,
    ngx_http_dsa_engine_metric_e metric);
static void ngx_http_dsa_prometheus_accepted(dsa_buf_t *b,
    const ngx_str_t *pool, ngx_http_dsa_session_t *s);
static void ngx_http_dsa_prometheus_times(dsa_buf_t *b,
    const ngx_str_t *pool, ngx_http_dsa_session_t *s);
static void ngx_http_dsa_prometheus_time(dsa_buf_t *b, const char *what,
    const ngx_str_t *pool, ngx_http_dsa_session_t *s);
static uint64_t ngx_http_dsa_prometheus_engine_value(
    ngx_http_dsa_session_t *s, ngx_http_dsa_engine_metric_e metric);
static void ngx_http_dsa_prometheus_tier(dsa_buf_t *b, const ngx_str_t *pool,
    ngx_http_dsa_session_t *s, const ngx_http_dsa_tier_metric_t *metric);
static void ngx_http_dsa_prometheus_names(dsa_buf_t *b, const char *name,
    const ngx_str_t *pool, const ngx_http_dsa_session_t *s);


static const ngx_http_dsa_engine_metric_t  ngx_http_dsa_engine_metrics[] = {

    { "dsa_engine_up", "gauge",
      "1: this worker has a session with the engine, and it responds." },

    { "dsa_engine_draining", "gauge",
      "1: the engine accepts no new requests." },

    { "dsa_engine_requests_running", "gauge", "Sequences in the batch." },

    { "dsa_engine_requests_waiting", "gauge", "Sequences in the queue." },

    { "dsa_engine_pages", "gauge", "Pages of its KV cache." },

    { "dsa_engine_pages_used", "gauge", "Pages in use." },

    { "dsa_engine_steps_total", "counter", "Steps of its scheduler." },

    { "dsa_engine_preemptions_total", "counter",
      "Sequences that were preempted." },

    { "dsa_engine_prompt_tokens_total", "counter", "Prompt tokens." },

    { "dsa_engine_cached_tokens_total", "counter",
      "Prompt tokens found in the cache." },

    { "dsa_engine_completion_tokens_total", "counter", "Tokens generated." },

    { "dsa_engine_decodes_total", "counter",
      "Answers that a step continued, each in each step." },

    { "dsa_engine_decode_tokens_total", "counter",
      "Tokens by which steps continued answers." },

    { "dsa_engine_draft_tokens_total", "counter",
      "Drafts that were verified." },

    { "dsa_engine_accepted_draft_tokens_total", "counter",
      "Drafts that became a part of an answer, by position in the step." },

    { "dsa_engine_token_seconds", "histogram",
      "Between two tokens of an answer, in the engine." },

    { "dsa_engine_expert_rows_total", "counter",
      "Rows that its GPUs computed of experts." },

    { "dsa_engine_fullest_expert_rows_total", "counter",
      "These rows if each GPU had as many as the fullest one." },

    { "dsa_engine_heartbeat_age_seconds", "gauge",
      "Time since its last heartbeat." }
};


_Static_assert(sizeof(ngx_http_dsa_engine_metrics)
               / sizeof(ngx_http_dsa_engine_metrics[0])
               == NGX_HTTP_DSA_ENGINE_METRICS,
               "a name for each metric of an engine");


#define ngx_http_dsa_tier(word, unit)                                         \
    offsetof(dsa_link_tier_t, word), NGX_HTTP_DSA_TIER_##unit


static const ngx_http_dsa_tier_metric_t  ngx_http_dsa_tier_metrics[] = {

    { "dsa_engine_tier_pages", "gauge",
      "Pages that a tier of the prefix cache can hold; Redis has no figure.",
      ngx_http_dsa_tier(pages, SIZE) },

    { "dsa_engine_tier_used_pages", "gauge",
      "Pages of the tier that have contents or are in use.",
      ngx_http_dsa_tier(used, SIZE) },

    { "dsa_engine_tier_bytes", "gauge",
      "The pages that the tier can hold, in bytes.",
      ngx_http_dsa_tier(pages, BYTES) },

    { "dsa_engine_tier_used_bytes", "gauge",
      "The used pages, in bytes.",
      ngx_http_dsa_tier(used, BYTES) },

    { "dsa_engine_tier_hit_tokens_total", "counter",
      "Prompt tokens found in the tier and in no faster one.",
      ngx_http_dsa_tier(hit_tokens, COUNT) },

    { "dsa_engine_tier_read_pages_total", "counter",
      "Pages moved from the tier to a faster one.",
      ngx_http_dsa_tier(read_pages, COUNT) },

    { "dsa_engine_tier_read_bytes_total", "counter",
      "Bytes moved from the tier to a faster one.",
      ngx_http_dsa_tier(read_bytes, COUNT) },

    { "dsa_engine_tier_read_seconds_total", "counter",
      "Sum of the times of these moves, which may overlap.",
      ngx_http_dsa_tier(read_us, TIME) },

    { "dsa_engine_tier_written_pages_total", "counter",
      "Pages moved to the tier from a faster one.",
      ngx_http_dsa_tier(write_pages, COUNT) },

    { "dsa_engine_tier_written_bytes_total", "counter",
      "Bytes moved to the tier from a faster one.",
      ngx_http_dsa_tier(write_bytes, COUNT) },

    { "dsa_engine_tier_write_seconds_total", "counter",
      "Sum of the times of these moves, which may overlap.",
      ngx_http_dsa_tier(write_us, TIME) },

    { "dsa_engine_tier_abandoned_pages_total", "counter",
      "Pages that were computed because reading them was too slow.",
      ngx_http_dsa_tier(abandoned, COUNT) },

    { "dsa_engine_tier_invalid_pages_total", "counter",
      "Pages that did not verify.",
      ngx_http_dsa_tier(invalid, COUNT) },

    { "dsa_engine_tier_failed_operations_total", "counter",
      "Reads, writes and attempts to connect that failed.",
      ngx_http_dsa_tier(failed, COUNT) },

    { "dsa_engine_tier_lost_pages_total", "counter",
      "Pages that left the tier before a slower one had them.",
      ngx_http_dsa_tier(lost, COUNT) },

    { "dsa_engine_tier_servers", "gauge",
      "Servers that hold the pages of the tier.",
      ngx_http_dsa_tier(servers, SERVERS) },

    { "dsa_engine_tier_servers_on", "gauge",
      "Servers of the tier that the engine is connected to and uses.",
      ngx_http_dsa_tier(servers_on, SERVERS) },

    { NULL, NULL, NULL, 0, NGX_HTTP_DSA_TIER_COUNT }
};


void
ngx_http_dsa_prometheus_engines(dsa_buf_t *b, ngx_array_t *pools)
{
    ngx_uint_t                           i, n, k;
    ngx_http_dsa_pool_t                **pool;
    ngx_http_dsa_session_t              *s;
    const ngx_http_dsa_engine_metric_t  *metric;

    pool = pools->elts;

    for (k = 0; k < NGX_HTTP_DSA_ENGINE_METRICS; k++) {
        metric = &ngx_http_dsa_engine_metrics[k];

        ngx_http_dsa_prometheus_head(b, metric->name, metric->type,
                                     metric->help);

        for (i = 0; i < pools->nelts; i++) {
            s = pool[i]->sessions.elts;

            for (n = 0; n < pool[i]->sessions.nelts; n++) {

                if (s[n].state == NGX_HTTP_DSA_READY
                    || k == NGX_HTTP_DSA_ENGINE_UP)
                {
                    ngx_http_dsa_prometheus_engine(b, &pool[i]->name, &s[n],
                                                   k);
                }
            }
        }
    }
}


static void
ngx_http_dsa_prometheus_engine(dsa_buf_t *b, const ngx_str_t *pool,
    ngx_http_dsa_session_t *s, ngx_http_dsa_engine_metric_e metric)
{
    uint64_t  value;

    if (metric == NGX_HTTP_DSA_ENGINE_ACCEPTED_TOKENS) {
        ngx_http_dsa_prometheus_accepted(b, pool, s);
        return;
    }

    if (metric == NGX_HTTP_DSA_ENGINE_TOKEN_TIMES) {
        ngx_http_dsa_prometheus_times(b, pool, s);
        return;
    }

    value = ngx_http_dsa_prometheus_engine_value(s, metric);

    ngx_http_dsa_prometheus_names(b, ngx_http_dsa_engine_metrics[metric].name,
                                  pool, s);

    if (metric == NGX_HTTP_DSA_ENGINE_HEARTBEAT_AGE) {
        dsa_buf_printf(b, "} %.3f\n", (double) value / 1000);
        return;
    }

    dsa_buf_printf(b, "} %" PRIu64 "\n", value);
}


static void
ngx_http_dsa_prometheus_accepted(dsa_buf_t *b, const ngx_str_t *pool,
    ngx_http_dsa_session_t *s)
{
    uint64_t    value;
    ngx_uint_t  i;

    for (i = 0; i < DSA_LINK_DRAFTS; i++) {
        value = s->link.control->accepted_tokens[i];

        ngx_http_dsa_prometheus_names(b,
            ngx_http_dsa_engine_metrics[NGX_HTTP_DSA_ENGINE_ACCEPTED_TOKENS]
                .name,
            pool, s);
        dsa_buf_printf(b, ",position=\"%u\"} %" PRIu64 "\n", (unsigned) i,
                       value);
    }
}


static void
ngx_http_dsa_prometheus_times(dsa_buf_t *b, const ngx_str_t *pool,
    ngx_http_dsa_session_t *s)
{
    uint64_t             count;
    ngx_uint_t           i;
    dsa_link_control_t  *control;

    control = s->link.control;
    count = 0;

    for (i = 0; i < DSA_TOKEN_TIMES; i++) {
        count += control->token_times[i];

        ngx_http_dsa_prometheus_time(b, "_bucket", pool, s);
        dsa_buf_printf(b, ",le=\"%.9g\"} %" PRIu64 "\n",
                       (double) dsa_token_bounds[i] / 1000000, count);
    }

    count += control->token_times[i];

    ngx_http_dsa_prometheus_time(b, "_bucket", pool, s);
    dsa_buf_printf(b, ",le=\"+Inf\"} %" PRIu64 "\n", count);
    ngx_http_dsa_prometheus_time(b, "_sum", pool, s);
    dsa_buf_printf(b, "} %.6f\n", (double) control->token_us / 1000000);
    ngx_http_dsa_prometheus_time(b, "_count", pool, s);
    dsa_buf_printf(b, "} %" PRIu64 "\n", count);
}


/* A sample of the histogram up to its labels. */

static void
ngx_http_dsa_prometheus_time(dsa_buf_t *b, const char *what,
    const ngx_str_t *pool, ngx_http_dsa_session_t *s)
{
    char  name[64];

    (void) snprintf(name, sizeof(name), "%s%s",
                    ngx_http_dsa_engine_metrics[NGX_HTTP_DSA_ENGINE_TOKEN_TIMES]
                        .name,
                    what);

    ngx_http_dsa_prometheus_names(b, name, pool, s);
}


static uint64_t
ngx_http_dsa_prometheus_engine_value(ngx_http_dsa_session_t *s,
    ngx_http_dsa_engine_metric_e metric)
{
    dsa_link_control_t  *control;

    if (metric == NGX_HTTP_DSA_ENGINE_UP) {
        return ngx_http_dsa_session_up(s);
    }

    control = s->link.control;

    switch (metric) {

    case NGX_HTTP_DSA_ENGINE_DRAINING:
        return control->draining;

    case NGX_HTTP_DSA_ENGINE_RUNNING:
        return control->running;

    case NGX_HTTP_DSA_ENGINE_WAITING:
        return control->waiting;

    case NGX_HTTP_DSA_ENGINE_PAGES:
        return control->pages;

    case NGX_HTTP_DSA_ENGINE_PAGES_USED:
        return control->pages_used;

    case NGX_HTTP_DSA_ENGINE_STEPS:
        return control->steps;

    case NGX_HTTP_DSA_ENGINE_PREEMPTIONS:
        return control->preemptions;

    case NGX_HTTP_DSA_ENGINE_PROMPT_TOKENS:
        return control->prompt_tokens;

    case NGX_HTTP_DSA_ENGINE_CACHED_TOKENS:
        return control->cached_tokens;

    case NGX_HTTP_DSA_ENGINE_COMPLETION_TOKENS:
        return control->completion_tokens;

    case NGX_HTTP_DSA_ENGINE_DECODES:
        return control->decodes;

    case NGX_HTTP_DSA_ENGINE_DECODE_TOKENS:
        return control->decode_tokens;

    case NGX_HTTP_DSA_ENGINE_DRAFT_TOKENS:
        return control->draft_tokens;

    case NGX_HTTP_DSA_ENGINE_EXPERT_ROWS:
        return control->expert_rows;

    case NGX_HTTP_DSA_ENGINE_FULLEST_ROWS:
        return control->fullest_rows;

    default: /* NGX_HTTP_DSA_ENGINE_HEARTBEAT_AGE */
        return ngx_http_dsa_session_age(s);
    }
}


void
ngx_http_dsa_prometheus_tiers(dsa_buf_t *b, ngx_array_t *pools)
{
    ngx_uint_t                          i, n;
    ngx_http_dsa_pool_t               **pool;
    ngx_http_dsa_session_t             *s;
    const ngx_http_dsa_tier_metric_t   *metric;

    pool = pools->elts;

    for (metric = ngx_http_dsa_tier_metrics; metric->name != NULL; metric++) {
        ngx_http_dsa_prometheus_head(b, metric->name, metric->type,
                                     metric->help);

        for (i = 0; i < pools->nelts; i++) {
            s = pool[i]->sessions.elts;

            for (n = 0; n < pool[i]->sessions.nelts; n++) {
                if (s[n].state == NGX_HTTP_DSA_READY) {
                    ngx_http_dsa_prometheus_tier(b, &pool[i]->name, &s[n],
                                                 metric);
                }
            }
        }
    }
}


static void
ngx_http_dsa_prometheus_tier(dsa_buf_t *b, const ngx_str_t *pool,
    ngx_http_dsa_session_t *s, const ngx_http_dsa_tier_metric_t *metric)
{
    uint64_t             value, page;
    ngx_uint_t           i, sized;
    dsa_link_control_t  *control;

    control = s->link.control;
    page = atomic_load_explicit(&control->page_bytes, memory_order_relaxed);

    sized = metric->unit == NGX_HTTP_DSA_TIER_SIZE
            || metric->unit == NGX_HTTP_DSA_TIER_BYTES;

    if (metric->unit == NGX_HTTP_DSA_TIER_BYTES && page == 0) {
        return;
    }

    for (i = 0; i < DSA_TIERS; i++) {

        if (dsa_tier_names[i].servers
            ? sized : metric->unit == NGX_HTTP_DSA_TIER_SERVERS)
        {
            continue;
        }

        value = atomic_load_explicit((_Atomic uint64_t *)
                                         ((u_char *) &control->tier[i]
                                          + metric->offset),
                                     memory_order_relaxed);

        ngx_http_dsa_prometheus_names(b, metric->name, pool, s);
        dsa_buf_printf(b, ",tier=\"%s\"} ", dsa_tier_names[i].name);

        if (metric->unit == NGX_HTTP_DSA_TIER_TIME) {
            dsa_buf_printf(b, "%.6f\n", (double) value / 1000000);
            continue;
        }

        if (metric->unit == NGX_HTTP_DSA_TIER_BYTES) {
            value *= page;
        }

        dsa_buf_printf(b, "%" PRIu64 "\n", value);
    }
}


/* A name and the labels of an engine; the caller ends the labels. */

static void
ngx_http_dsa_prometheus_names(dsa_buf_t *b, const char *name,
    const ngx_str_t *pool, const ngx_http_dsa_session_t *s)
{
    dsa_buf_printf(b, "%s{pool=\"", name);
    ngx_http_dsa_prometheus_label(b, pool);
    dsa_buf_addz(b, "\",engine=\"");
    ngx_http_dsa_prometheus_label(b, &s->name);
    dsa_buf_addz(b, "\"");
}
