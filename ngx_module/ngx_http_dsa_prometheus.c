
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <inttypes.h>

#include "base/buf.h"
#include "base/money.h"
#include "context/window.h"
#include "redis_schema/keys.h"

#include "ngx_http_dsa_conf.h"
#include "ngx_http_dsa_metrics.h"
#include "ngx_http_dsa_pool.h"
#include "ngx_http_dsa_prometheus.h"
#include "ngx_http_dsa_redis.h"


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
    NGX_HTTP_DSA_TIER_SIZE,         /* pages; not known of Redis */
    NGX_HTTP_DSA_TIER_BYTES,        /* the same, reported as bytes */
    NGX_HTTP_DSA_TIER_TIME          /* microseconds, reported as seconds */
} ngx_http_dsa_tier_unit_e;


typedef struct {
    const char                *name;
    const char                *type;
    const char                *help;
    size_t                     offset;
    ngx_http_dsa_tier_unit_e   unit;
} ngx_http_dsa_tier_metric_t;


static void ngx_http_dsa_prometheus_requests(dsa_buf_t *b,
    const ngx_http_dsa_block_t *total);
static void ngx_http_dsa_prometheus_limits(dsa_buf_t *b,
    const ngx_http_dsa_block_t *total);
static void ngx_http_dsa_prometheus_costs(dsa_buf_t *b,
    const ngx_http_dsa_block_t *total);
static void ngx_http_dsa_prometheus_contexts(dsa_buf_t *b,
    const ngx_http_dsa_block_t *total);
static void ngx_http_dsa_prometheus_sessions(dsa_buf_t *b,
    const ngx_http_dsa_block_t *total);
static void ngx_http_dsa_prometheus_redis(dsa_buf_t *b,
    const ngx_http_dsa_block_t *total, ngx_http_dsa_redis_t *redis);
static void ngx_http_dsa_prometheus_retention(dsa_buf_t *b,
    const ngx_http_dsa_block_t *total);
static void ngx_http_dsa_prometheus_routes(dsa_buf_t *b, ngx_array_t *pools);
static void ngx_http_dsa_prometheus_engines(dsa_buf_t *b, ngx_array_t *pools);
static void ngx_http_dsa_prometheus_engine(dsa_buf_t *b,
    const ngx_str_t *pool, ngx_http_dsa_session_t *s,
    ngx_http_dsa_engine_metric_e metric);
static uint64_t ngx_http_dsa_prometheus_engine_value(
    ngx_http_dsa_session_t *s, ngx_http_dsa_engine_metric_e metric);
static void ngx_http_dsa_prometheus_tiers(dsa_buf_t *b, ngx_array_t *pools);
static void ngx_http_dsa_prometheus_tier(dsa_buf_t *b, const ngx_str_t *pool,
    ngx_http_dsa_session_t *s, const ngx_http_dsa_tier_metric_t *metric);
static void ngx_http_dsa_prometheus_names(dsa_buf_t *b, const char *name,
    const ngx_str_t *pool, const ngx_http_dsa_session_t *s);
static void ngx_http_dsa_prometheus_head(dsa_buf_t *b, const char *name,
    const char *type, const char *help);
static void ngx_http_dsa_prometheus_one(dsa_buf_t *b, const char *name,
    const char *type, const char *help, uint64_t value);
static void ngx_http_dsa_prometheus_histogram(dsa_buf_t *b,
    const ngx_http_dsa_bounds_t *bounds, const ngx_http_dsa_hist_t *hist);
static void ngx_http_dsa_prometheus_label(dsa_buf_t *b, const ngx_str_t *s);
static ngx_int_t ngx_http_dsa_prometheus_send(ngx_http_request_t *r,
    dsa_buf_t *b);


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
      "Reads and writes that failed.",
      ngx_http_dsa_tier(failed, COUNT) },

    { "dsa_engine_tier_lost_pages_total", "counter",
      "Pages that left the tier before a slower one had them.",
      ngx_http_dsa_tier(lost, COUNT) },

    { NULL, NULL, NULL, 0, NGX_HTTP_DSA_TIER_COUNT }
};


ngx_int_t
ngx_http_dsa_prometheus_handler(ngx_http_request_t *r)
{
    dsa_buf_t                  b;
    ngx_int_t                  rc;
    ngx_uint_t                 i;
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

    ngx_http_dsa_metrics_sum(mcf->metrics, &total);

    ngx_memzero(&b, sizeof(dsa_buf_t));

    ngx_http_dsa_prometheus_requests(&b, &total);

    for (i = 0; i < NGX_HTTP_DSA_HISTOGRAMS; i++) {
        ngx_http_dsa_prometheus_histogram(&b, ngx_http_dsa_metrics_bounds(i),
                                          &total.histogram[i]);
    }

    ngx_http_dsa_prometheus_costs(&b, &total);

    if (mcf->keys != NULL) {
        ngx_http_dsa_prometheus_limits(&b, &total);
    }

    ngx_http_dsa_prometheus_contexts(&b, &total);
    ngx_http_dsa_prometheus_sessions(&b, &total);

    if (mcf->redis != NULL) {
        ngx_http_dsa_prometheus_redis(&b, &total, mcf->redis);
        ngx_http_dsa_prometheus_retention(&b, &total);
    }

    ngx_http_dsa_prometheus_routes(&b, &mcf->pools);
    ngx_http_dsa_prometheus_engines(&b, &mcf->pools);
    ngx_http_dsa_prometheus_tiers(&b, &mcf->pools);

    rc = ngx_http_dsa_prometheus_send(r, &b);

    dsa_buf_free(&b);

    return rc;
}


static void
ngx_http_dsa_prometheus_requests(dsa_buf_t *b,
    const ngx_http_dsa_block_t *total)
{
    ngx_uint_t  i;

    ngx_http_dsa_prometheus_head(b, "dsa_requests_total", "counter",
                                 "Requests finished, by status.");

    for (i = 0; i < NGX_HTTP_DSA_CODES - 1; i++) {
        dsa_buf_printf(b, "dsa_requests_total{code=\"%u\"} %" PRIu64 "\n",
                       (unsigned) ngx_http_dsa_metrics_code(i),
                       total->requests[i]);
    }

    dsa_buf_printf(b, "dsa_requests_total{code=\"other\"} %" PRIu64 "\n",
                   total->requests[i]);

    ngx_http_dsa_prometheus_one(b, "dsa_requests_in_flight", "gauge",
                                "Chats that are not finished.",
                                ngx_max(total->in_flight, 0));

    ngx_http_dsa_prometheus_head(b, "dsa_tokens_total", "counter",
                                 "Tokens; cached are a part of prompt, "
                                 "reasoning of completion.");

    dsa_buf_printf(b, "dsa_tokens_total{type=\"prompt\"} %" PRIu64 "\n"
                   "dsa_tokens_total{type=\"cached\"} %" PRIu64 "\n"
                   "dsa_tokens_total{type=\"completion\"} %" PRIu64 "\n"
                   "dsa_tokens_total{type=\"reasoning\"} %" PRIu64 "\n",
                   total->prompt, total->cached, total->completion,
                   total->reasoning);

    ngx_http_dsa_prometheus_head(b, "dsa_cached_tokens_total", "counter",
                                 "Cached prompt tokens, by the tier of the "
                                 "cache that had them.");

    for (i = 0; i < DSA_LINK_TIERS; i++) {
        dsa_buf_printf(b, "dsa_cached_tokens_total{tier=\"%s\"} %" PRIu64 "\n",
                       ngx_http_dsa_metrics_tier(i), total->tier[i]);
    }

    ngx_http_dsa_prometheus_head(b, "dsa_cancelled_total", "counter",
                                 "Requests cancelled before the engine had "
                                 "finished them.");

    for (i = 0; i < NGX_HTTP_DSA_CANCELS; i++) {
        dsa_buf_printf(b, "dsa_cancelled_total{reason=\"%s\"} %" PRIu64 "\n",
                       ngx_http_dsa_metrics_reason(i), total->cancelled[i]);
    }
}


static void
ngx_http_dsa_prometheus_limits(dsa_buf_t *b, const ngx_http_dsa_block_t *total)
{
    ngx_uint_t                i;

    static const char *const  names[NGX_HTTP_DSA_REFUSALS] = {
        NULL, "requests", "tokens", "concurrency", "budget", "server"
    };

    ngx_http_dsa_prometheus_head(b, "dsa_limited_requests_total", "counter",
                                 "Requests refused because of a limit of "
                                 "their key; server: more requests run than "
                                 "can be counted.");

    for (i = 1; i < NGX_HTTP_DSA_REFUSALS; i++) {
        dsa_buf_printf(b, "dsa_limited_requests_total{limit=\"%s\"} %" PRIu64
                       "\n", names[i], total->refused[i]);
    }

    ngx_http_dsa_prometheus_head(b, "dsa_budget_warnings_total", "counter",
                                 "Keys that reached the soft limit of a "
                                 "budget, once in each period.");

    for (i = 0; i < NGX_HTTP_DSA_PERIODS; i++) {
        dsa_buf_printf(b, "dsa_budget_warnings_total{period=\"%s\"} %" PRIu64
                       "\n", dsa_key_period_name(i), total->warned[i]);
    }
}


static void
ngx_http_dsa_prometheus_costs(dsa_buf_t *b, const ngx_http_dsa_block_t *total)
{
    char            text[DSA_MONEY_LEN];
    size_t          n;
    ngx_uint_t      i;
    const uint64_t  costs[] = { total->cost_miss, total->cost_hit,
                                total->cost_output };

    static const char *const  parts[] = { "miss", "hit", "output" };

    ngx_http_dsa_prometheus_head(b, "dsa_cost_total", "counter",
                                 "What requests cost, in units of "
                                 "dsa_currency: prompt tokens that were not "
                                 "cached, cached ones, and answers.");

    for (i = 0; i < 3; i++) {

        /* after 9.2 million units it begins again, like any counter */

        n = dsa_money_print(text, (int64_t) (costs[i] & INT64_MAX), 0);

        dsa_buf_printf(b, "dsa_cost_total{part=\"%s\"} %.*s\n", parts[i],
                       (int) n, text);
    }
}


static void
ngx_http_dsa_prometheus_contexts(dsa_buf_t *b,
    const ngx_http_dsa_block_t *total)
{
    dsa_window_e  i;

    ngx_http_dsa_prometheus_head(b, "dsa_context_cuts_total", "counter",
                                 "Prompts that a context strategy has "
                                 "shortened.");

    for (i = DSA_WINDOW_DISCARD_75; i < NGX_HTTP_DSA_CONTEXTS; i++) {
        dsa_buf_printf(b, "dsa_context_cuts_total{strategy=\"%s\"} %" PRIu64
                       "\n", dsa_window_name(i), total->context_cuts[i]);
    }

    ngx_http_dsa_prometheus_one(b, "dsa_context_dropped_calls_total",
                                "counter", "Tool calls that these prompts "
                                "lack.", total->context_calls);

    ngx_http_dsa_prometheus_one(b, "dsa_context_found_total", "counter",
                                "Cuts of a prompt that Redis had.",
                                total->context_found);

    ngx_http_dsa_prometheus_one(b, "dsa_context_counts_total", "counter",
                                "Prompts whose tokens an engine has counted "
                                "for a context strategy.",
                                total->context_counts);

    ngx_http_dsa_prometheus_head(b, "dsa_context_summaries_total", "counter",
                                 "Summaries for the context strategy "
                                 "\"summary\".");

    dsa_buf_printf(b, "dsa_context_summaries_total{result=\"made\"} %" PRIu64
                   "\n"
                   "dsa_context_summaries_total{result=\"remembered\"} %"
                   PRIu64 "\n"
                   "dsa_context_summaries_total{result=\"failed\"} %" PRIu64
                   "\n", total->summary_made, total->summary_found,
                   total->summary_failed);

    ngx_http_dsa_prometheus_head(b, "dsa_context_summary_tokens_total",
                                 "counter", "Tokens of these summaries, which "
                                 "the totals of tokens include.");

    dsa_buf_printf(b, "dsa_context_summary_tokens_total{type=\"prompt\"} %"
                   PRIu64 "\n"
                   "dsa_context_summary_tokens_total{type=\"completion\"} %"
                   PRIu64 "\n", total->summary_prompt,
                   total->summary_completion);
}


static void
ngx_http_dsa_prometheus_sessions(dsa_buf_t *b,
    const ngx_http_dsa_block_t *total)
{
    ngx_http_dsa_prometheus_one(b, "dsa_sessions", "gauge",
                                "Sessions between workers and engines that "
                                "are up.", ngx_max(total->sessions, 0));

    ngx_http_dsa_prometheus_one(b, "dsa_sessions_lost_requests_total",
                                "counter", "Requests whose engine died.",
                                total->lost);

    ngx_http_dsa_prometheus_one(b, "dsa_resumed_answers_total", "counter",
                                "Answers that another engine continued after "
                                "their engine died.", total->resumed);

    ngx_http_dsa_prometheus_one(b, "dsa_doorbells_total", "counter",
                                "Wake-ups by engines.", total->doorbells);

    ngx_http_dsa_prometheus_one(b, "dsa_ring_full_total", "counter",
                                "Submissions that found no room in the ring, "
                                "or no slot.", total->ring_full);
}


static void
ngx_http_dsa_prometheus_redis(dsa_buf_t *b, const ngx_http_dsa_block_t *total,
    ngx_http_dsa_redis_t *redis)
{
    ngx_http_dsa_prometheus_one(b, "dsa_redis_connections", "gauge",
                                "Workers that are connected to Redis.",
                                total->redis_up);

    ngx_http_dsa_prometheus_one(b, "dsa_redis_pending_records", "gauge",
                                "Ledger entries that Redis has not confirmed.",
                                ngx_http_dsa_ledger_entries(
                                    ngx_http_dsa_redis_ledger(redis)));

    ngx_http_dsa_prometheus_one(b, "dsa_redis_lost_records_total", "counter",
                                "Ledger entries that were lost; each is in "
                                "the error log.", total->redis_lost);

    ngx_http_dsa_prometheus_one(b, "dsa_redis_refused_turns_total", "counter",
                                "Turns that were not stored in their "
                                "conversation.", total->redis_refused);

    ngx_http_dsa_prometheus_one(b, "dsa_redis_refused_responses_total",
                                "counter", "Responses that were not stored.",
                                total->responses_unsaved);
}


static void
ngx_http_dsa_prometheus_retention(dsa_buf_t *b,
    const ngx_http_dsa_block_t *total)
{
    ngx_http_dsa_prometheus_head(b, "dsa_retention_messages_total", "counter",
                                 "Messages of a tool round that were looked "
                                 "up because they lacked something, by what "
                                 "was found.");

    dsa_buf_printf(b, "dsa_retention_messages_total{result=\"restored\"} %"
                   PRIu64 "\n"
                   "dsa_retention_messages_total{result=\"changed\"} %" PRIu64
                   "\n"
                   "dsa_retention_messages_total{result=\"missing\"} %" PRIu64
                   "\n"
                   "dsa_retention_messages_total{result=\"invalid\"} %" PRIu64
                   "\n",
                   total->retention_restored, total->retention_changed,
                   total->retention_missing, total->retention_invalid);

    ngx_http_dsa_prometheus_one(b, "dsa_retention_failed_lookups_total",
                                "counter", "Look-ups that Redis did not "
                                "answer.", total->retention_failed);

    ngx_http_dsa_prometheus_one(b, "dsa_retention_refused_total", "counter",
                                "Requests refused because reasoning was "
                                "missing (dsa_retention strict).",
                                total->retention_refused);

    ngx_http_dsa_prometheus_one(b, "dsa_retention_saved_total", "counter",
                                "Answers with tool calls that were stored.",
                                total->retention_saved);

    ngx_http_dsa_prometheus_one(b, "dsa_retention_lost_total", "counter",
                                "Answers with tool calls that were not "
                                "stored; each is in the error log.",
                                total->retention_lost);

    ngx_http_dsa_prometheus_one(b, "dsa_retention_cached_tokens_total",
                                "counter", "Cached prompt tokens of requests "
                                "with a restored message.",
                                total->retention_cached);
}


/* Of pools with several engines. */

static void
ngx_http_dsa_prometheus_routes(dsa_buf_t *b, ngx_array_t *pools)
{
    ngx_uint_t             i, n;
    ngx_http_dsa_pool_t  **pool;

    pool = pools->elts;

    ngx_http_dsa_prometheus_head(b, "dsa_route_total", "counter",
                                 "Submissions to an engine, by how it was "
                                 "chosen.");

    for (i = 0; i < pools->nelts; i++) {
        if (pool[i]->route == NULL) {
            continue;
        }

        for (n = 0; n < NGX_HTTP_DSA_ROUTE_RESULTS; n++) {
            dsa_buf_addz(b, "dsa_route_total{pool=\"");
            ngx_http_dsa_prometheus_label(b, &pool[i]->name);
            dsa_buf_printf(b, "\",result=\"%s\"} %" PRIu64 "\n",
                           (char *) ngx_http_dsa_routes[n].data,
                           ngx_http_dsa_route_count(pool[i]->route, n));
        }
    }
}


/* The figures that the replicas report, as this worker sees them. */

static void
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

    value = ngx_http_dsa_prometheus_engine_value(s, metric);

    ngx_http_dsa_prometheus_names(b, ngx_http_dsa_engine_metrics[metric].name,
                                  pool, s);

    if (metric == NGX_HTTP_DSA_ENGINE_HEARTBEAT_AGE) {
        dsa_buf_printf(b, "} %.3f\n", (double) value / 1000);
        return;
    }

    dsa_buf_printf(b, "} %" PRIu64 "\n", value);
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

    default: /* NGX_HTTP_DSA_ENGINE_HEARTBEAT_AGE */
        return ngx_http_dsa_session_age(s);
    }
}


/* An engine of a version of the link without tiers has no samples here. */

static void
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

                if (s[n].state == NGX_HTTP_DSA_READY
                    && s[n].link.version >= DSA_LINK_VERSION_TIERS)
                {
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

    for (i = 0; i < DSA_LINK_TIERS; i++) {

        if (sized && i == DSA_LINK_TIER_REDIS) {
            continue;
        }

        value = atomic_load_explicit((_Atomic uint64_t *)
                                         ((u_char *) &control->tier[i]
                                          + metric->offset),
                                     memory_order_relaxed);

        ngx_http_dsa_prometheus_names(b, metric->name, pool, s);
        dsa_buf_printf(b, ",tier=\"%s\"} ", ngx_http_dsa_metrics_tier(i));

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


static void
ngx_http_dsa_prometheus_head(dsa_buf_t *b, const char *name, const char *type,
    const char *help)
{
    dsa_buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}


static void
ngx_http_dsa_prometheus_one(dsa_buf_t *b, const char *name, const char *type,
    const char *help, uint64_t value)
{
    ngx_http_dsa_prometheus_head(b, name, type, help);

    dsa_buf_printf(b, "%s %" PRIu64 "\n", name, value);
}


static void
ngx_http_dsa_prometheus_histogram(dsa_buf_t *b,
    const ngx_http_dsa_bounds_t *bounds, const ngx_http_dsa_hist_t *hist)
{
    uint64_t    count;
    ngx_uint_t  i;

    ngx_http_dsa_prometheus_head(b, bounds->name, "histogram", bounds->help);

    count = 0;

    for (i = 0; i < NGX_HTTP_DSA_BUCKETS; i++) {
        count += hist->bucket[i];

        dsa_buf_printf(b, "%s_bucket{le=\"%.9g\"} %" PRIu64 "\n",
                       bounds->name, (double) bounds->bounds[i] / 1000, count);
    }

    count += hist->bucket[i];

    dsa_buf_printf(b, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum %.3f\n"
                   "%s_count %" PRIu64 "\n",
                   bounds->name, count,
                   bounds->name, (double) hist->sum / 1000,
                   bounds->name, count);
}


static void
ngx_http_dsa_prometheus_label(dsa_buf_t *b, const ngx_str_t *s)
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


static ngx_int_t
ngx_http_dsa_prometheus_send(ngx_http_request_t *r, dsa_buf_t *b)
{
    ngx_int_t    rc;
    ngx_buf_t   *buf;
    ngx_chain_t  out;

    if (b->failed) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    buf = ngx_create_temp_buf(r->pool, b->len);
    if (buf == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    buf->last = ngx_cpymem(buf->last, b->data, b->len);
    buf->last_buf = 1;
    buf->last_in_chain = 1;

    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = b->len;

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
