
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <inttypes.h>

#include "base/buf.h"
#include "base/money.h"
#include "base/version.h"
#include "context/window.h"
#include "redis_schema/keys.h"

#include "ngx_module/core/ngx_http_dsa_conf.h"
#include "ngx_module/core/ngx_http_dsa_metrics.h"
#include "ngx_module/engine/ngx_http_dsa_pool.h"
#include "ngx_module/redis/ngx_http_dsa_redis.h"
#include "ngx_http_dsa_prometheus.h"
#include "ngx_http_dsa_prometheus_engines.h"
#include "ngx_http_dsa_prometheus_others.h"
#include "ngx_http_dsa_prometheus_text.h"


static void ngx_http_dsa_prometheus_build(dsa_buf_t *b);
static void ngx_http_dsa_prometheus_requests(dsa_buf_t *b,
    const ngx_http_dsa_block_t *total);
static void ngx_http_dsa_prometheus_limits(dsa_buf_t *b,
    const ngx_http_dsa_block_t *total);
static void ngx_http_dsa_prometheus_costs(dsa_buf_t *b,
    const ngx_http_dsa_block_t *total);
static void ngx_http_dsa_prometheus_contexts(dsa_buf_t *b,
    const ngx_http_dsa_block_t *total);
static void ngx_http_dsa_prometheus_work(dsa_buf_t *b,
    const ngx_http_dsa_block_t *total);
static void ngx_http_dsa_prometheus_sessions(dsa_buf_t *b,
    const ngx_http_dsa_block_t *total);
static void ngx_http_dsa_prometheus_redis(dsa_buf_t *b,
    const ngx_http_dsa_block_t *total, ngx_http_dsa_redis_t *redis);
static void ngx_http_dsa_prometheus_memory(dsa_buf_t *b,
    const dsa_schema_memory_t *memory);
static void ngx_http_dsa_prometheus_retention(dsa_buf_t *b,
    const ngx_http_dsa_block_t *total);
static void ngx_http_dsa_prometheus_routes(dsa_buf_t *b, ngx_array_t *pools);
static ngx_int_t ngx_http_dsa_prometheus_send(ngx_http_request_t *r,
    dsa_buf_t *b);


ngx_int_t
ngx_http_dsa_prometheus_handler(ngx_http_request_t *r)
{
    dsa_buf_t                  b;
    ngx_int_t                  rc;
    ngx_uint_t                 i;
    ngx_http_dsa_block_t       total;
    ngx_http_dsa_loc_conf_t   *dlcf;
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

    ngx_http_dsa_prometheus_build(&b);
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
    ngx_http_dsa_prometheus_work(&b, &total);
    ngx_http_dsa_prometheus_sessions(&b, &total);

    if (mcf->redis != NULL) {
        ngx_http_dsa_prometheus_redis(&b, &total, mcf->redis);
        ngx_http_dsa_prometheus_retention(&b, &total);
    }

    ngx_http_dsa_prometheus_routes(&b, &mcf->pools);
    ngx_http_dsa_prometheus_engines(&b, &mcf->pools);
    ngx_http_dsa_prometheus_tiers(&b, &mcf->pools);

    dlcf = ngx_http_get_module_loc_conf(r, ngx_http_dsa_module);

    if (dlcf->metrics != NULL) {
        ngx_http_dsa_prometheus_gauges(&b, dlcf->metrics);

        if (ngx_http_dsa_prometheus_durations(&b, dlcf->metrics, mcf->series)
            != NGX_OK)
        {
            dsa_buf_free(&b);
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    rc = ngx_http_dsa_prometheus_send(r, &b);

    dsa_buf_free(&b);

    return rc;
}


static void
ngx_http_dsa_prometheus_build(dsa_buf_t *b)
{
    ngx_http_dsa_prometheus_head(b, "dsa_build_info", "gauge",
                                 "The versions of the module, of nginx and of "
                                 "the link to engines, as labels.");

    dsa_buf_printf(b, "dsa_build_info{version=\"%s\",nginx=\"%s\","
                   "link=\"%d\"} 1\n", DSA_VERSION, NGINX_VERSION,
                   DSA_LINK_VERSION_MAX);
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

    ngx_http_dsa_prometheus_sample(b, "dsa_tokens_total", "type", "prompt",
                                   total->prompt);
    ngx_http_dsa_prometheus_sample(b, "dsa_tokens_total", "type", "cached",
                                   total->cached);
    ngx_http_dsa_prometheus_sample(b, "dsa_tokens_total", "type",
                                   "completion", total->completion);
    ngx_http_dsa_prometheus_sample(b, "dsa_tokens_total", "type",
                                   "reasoning", total->reasoning);

    ngx_http_dsa_prometheus_head(b, "dsa_cached_tokens_total", "counter",
                                 "Cached prompt tokens, by the tier of the "
                                 "cache that had them.");

    for (i = 0; i < DSA_TIERS; i++) {
        ngx_http_dsa_prometheus_sample(b, "dsa_cached_tokens_total", "tier",
                                       dsa_tier_names[i].name,
                                       total->tier[i]);
    }

    ngx_http_dsa_prometheus_head(b, "dsa_cancelled_total", "counter",
                                 "Requests cancelled before the engine had "
                                 "finished them.");

    for (i = 0; i < NGX_HTTP_DSA_CANCELS; i++) {
        ngx_http_dsa_prometheus_sample(b, "dsa_cancelled_total", "reason",
                                       ngx_http_dsa_metrics_reason(i),
                                       total->cancelled[i]);
    }
}


static void
ngx_http_dsa_prometheus_limits(dsa_buf_t *b, const ngx_http_dsa_block_t *total)
{
    ngx_uint_t                i;

    static const char *const  names[NGX_HTTP_DSA_REFUSALS] = {
        NULL, "requests", "tokens", "concurrency", "budget", "unknown",
        "reads", "server"
    };

    ngx_http_dsa_prometheus_head(b, "dsa_limited_requests_total", "counter",
                                 "Requests refused because of a limit of "
                                 "their key; unknown: what the key has spent "
                                 "is not known; reads: of conversations and "
                                 "responses; server: more requests run "
                                 "than can be counted.");

    for (i = 1; i < NGX_HTTP_DSA_REFUSALS; i++) {
        ngx_http_dsa_prometheus_sample(b, "dsa_limited_requests_total",
                                       "limit", names[i], total->refused[i]);
    }

    ngx_http_dsa_prometheus_head(b, "dsa_budget_warnings_total", "counter",
                                 "Keys that reached the soft limit of a "
                                 "budget, once in each period.");

    for (i = 0; i < NGX_HTTP_DSA_PERIODS; i++) {
        ngx_http_dsa_prometheus_sample(b, "dsa_budget_warnings_total",
                                       "period", dsa_key_period_name(i),
                                       total->warned[i]);
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
                                 "the currency: prompt tokens that were not "
                                 "cached, cached ones, and answers.");

    for (i = 0; i < 3; i++) {

        /* the counter starts again at 0 after 9.2 million units */

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
        ngx_http_dsa_prometheus_sample(b, "dsa_context_cuts_total",
                                       "strategy", dsa_window_name(i),
                                       total->context_cuts[i]);
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

    ngx_http_dsa_prometheus_sample(b, "dsa_context_summaries_total", "result",
                                   "made", total->summary_made);
    ngx_http_dsa_prometheus_sample(b, "dsa_context_summaries_total", "result",
                                   "remembered", total->summary_found);
    ngx_http_dsa_prometheus_sample(b, "dsa_context_summaries_total", "result",
                                   "failed", total->summary_failed);

    ngx_http_dsa_prometheus_head(b, "dsa_context_summary_tokens_total",
                                 "counter", "Tokens of these summaries, which "
                                 "the totals of tokens include.");

    ngx_http_dsa_prometheus_sample(b, "dsa_context_summary_tokens_total",
                                   "type", "prompt", total->summary_prompt);
    ngx_http_dsa_prometheus_sample(b, "dsa_context_summary_tokens_total",
                                   "type", "completion",
                                   total->summary_completion);
}


/* How much of the work on requests ran on the event loop and in threads. */

static void
ngx_http_dsa_prometheus_work(dsa_buf_t *b, const ngx_http_dsa_block_t *total)
{
    ngx_uint_t                   i;
    const char                  *name;
    const ngx_http_dsa_stage_t  *stage;

    ngx_http_dsa_prometheus_head(b, "dsa_work_total", "counter",
                                 "Runs of the stages of requests, on the "
                                 "event loop or in a thread.");

    for (i = 0; i < NGX_HTTP_DSA_STAGES; i++) {
        name = ngx_http_dsa_metrics_stage(i);
        stage = &total->work[i];

        dsa_buf_printf(b, "dsa_work_total{stage=\"%s\",where=\"loop\"} %"
                       PRIu64 "\n", name, stage->loop);
        dsa_buf_printf(b, "dsa_work_total{stage=\"%s\",where=\"thread\"} %"
                       PRIu64 "\n", name, stage->thread);
    }

    ngx_http_dsa_prometheus_head(b, "dsa_work_bytes_total", "counter",
                                 "Bytes of the input of these runs.");

    for (i = 0; i < NGX_HTTP_DSA_STAGES; i++) {
        name = ngx_http_dsa_metrics_stage(i);
        stage = &total->work[i];

        dsa_buf_printf(b, "dsa_work_bytes_total{stage=\"%s\",where=\"loop\"}"
                       " %" PRIu64 "\n", name, stage->loop_bytes);
        dsa_buf_printf(b, "dsa_work_bytes_total{stage=\"%s\","
                       "where=\"thread\"} %" PRIu64 "\n", name,
                       stage->thread_bytes);
    }

    ngx_http_dsa_prometheus_one(b, "dsa_work_refused_total", "counter",
                                "Requests refused because too much work of "
                                "their tenant waited for a thread.",
                                total->work_refused);
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
                                "their engine died or was stopped.",
                                total->resumed);

    ngx_http_dsa_prometheus_one(b, "dsa_hosted_tools_total", "counter",
                                "Tools of requests that OpenAI's server would "
                                "run, and that are not offered to the model "
                                "here.", total->hosted_tools);

    ngx_http_dsa_prometheus_head(b, "dsa_schema_unenforced_total", "counter",
                                 "What is not enforced of schemas that are "
                                 "not strict.");
    ngx_http_dsa_prometheus_sample(b, "dsa_schema_unenforced_total", "part",
                                   "condition", total->schema_conditions);
    ngx_http_dsa_prometheus_sample(b, "dsa_schema_unenforced_total", "part",
                                   "schema", total->schema_whole);

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
    dsa_schema_memory_t        memory;
    ngx_http_dsa_ledger_use_t  use;

    ngx_http_dsa_ledger_use(ngx_http_dsa_redis_ledger(redis), &use);

    ngx_http_dsa_prometheus_one(b, "dsa_redis_connections", "gauge",
                                "Workers that are connected to Redis.",
                                total->redis_up);

    ngx_http_dsa_prometheus_one(b, "dsa_redis_refusing_workers", "gauge",
                                "Workers whose ledger entries Redis refuses "
                                "to write.", total->redis_refuses);

    ngx_http_dsa_prometheus_one(b, "dsa_redis_pending_records", "gauge",
                                "Ledger entries that Redis has not confirmed.",
                                use.waiting);

    ngx_http_dsa_prometheus_one(b, "dsa_redis_queue_used", "gauge",
                                "Requests that run and ledger entries that "
                                "Redis has not confirmed.", use.used);

    ngx_http_dsa_prometheus_one(b, "dsa_redis_queue_capacity", "gauge",
                                "How many of them there may be; further "
                                "requests are refused.", use.cells);

    if (ngx_http_dsa_redis_memory(redis, &memory) == NGX_OK) {
        ngx_http_dsa_prometheus_memory(b, &memory);
    }

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
ngx_http_dsa_prometheus_memory(dsa_buf_t *b, const dsa_schema_memory_t *memory)
{
    ngx_http_dsa_prometheus_one(b, "dsa_redis_memory_used_bytes", "gauge",
                                "Memory that Redis uses.", memory->used);

    ngx_http_dsa_prometheus_one(b, "dsa_redis_memory_limit_bytes", "gauge",
                                "Memory that Redis may use (maxmemory), or "
                                "that its machine has.", memory->limit);

    ngx_http_dsa_prometheus_one(b, "dsa_redis_memory_evicts", "gauge",
                                "1 if Redis removes data when its memory is "
                                "full, in place of refusing more.",
                                memory->evicts);
}


static void
ngx_http_dsa_prometheus_retention(dsa_buf_t *b,
    const ngx_http_dsa_block_t *total)
{
    ngx_http_dsa_prometheus_head(b, "dsa_retention_messages_total", "counter",
                                 "Messages of a tool round that were looked "
                                 "up because they lacked something, by what "
                                 "was found.");

    ngx_http_dsa_prometheus_sample(b, "dsa_retention_messages_total",
                                   "result", "restored",
                                   total->retention_restored);
    ngx_http_dsa_prometheus_sample(b, "dsa_retention_messages_total",
                                   "result", "changed",
                                   total->retention_changed);
    ngx_http_dsa_prometheus_sample(b, "dsa_retention_messages_total",
                                   "result", "missing",
                                   total->retention_missing);
    ngx_http_dsa_prometheus_sample(b, "dsa_retention_messages_total",
                                   "result", "invalid",
                                   total->retention_invalid);

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
