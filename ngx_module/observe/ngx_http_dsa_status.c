
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <inttypes.h>

#include "base/json_write.h"
#include "base/version.h"

#include "ngx_module/core/ngx_http_dsa_conf.h"
#include "ngx_module/core/ngx_http_dsa_metrics.h"
#include "ngx_module/engine/ngx_http_dsa_pool.h"
#include "ngx_module/http/ngx_http_dsa_reply.h"
#include "ngx_module/redis/ngx_http_dsa_redis.h"
#include "ngx_http_dsa_status.h"
#include "ngx_http_dsa_status_tenants.h"


static void ngx_http_dsa_status_server(dsa_json_writer_t *w,
    ngx_shm_zone_t *metrics);
static void ngx_http_dsa_status_requests(dsa_json_writer_t *w,
    const ngx_http_dsa_block_t *total);
static void ngx_http_dsa_status_tokens(dsa_json_writer_t *w,
    const ngx_http_dsa_block_t *total);
static void ngx_http_dsa_status_money(dsa_json_writer_t *w,
    const ngx_http_dsa_block_t *total, const ngx_str_t *currency);
static void ngx_http_dsa_status_latency(dsa_json_writer_t *w,
    const ngx_http_dsa_block_t *total);
static void ngx_http_dsa_status_histogram(dsa_json_writer_t *w,
    const ngx_http_dsa_bounds_t *bounds, const ngx_http_dsa_hist_t *hist);
static void ngx_http_dsa_status_engines(dsa_json_writer_t *w,
    ngx_array_t *pools);
static void ngx_http_dsa_status_engine(dsa_json_writer_t *w,
    const ngx_str_t *pool, ngx_http_dsa_session_t *s);
static void ngx_http_dsa_status_figures(dsa_json_writer_t *w,
    ngx_http_dsa_session_t *s);
static void ngx_http_dsa_status_tiers(dsa_json_writer_t *w,
    dsa_link_control_t *control);
static void ngx_http_dsa_status_redis(dsa_json_writer_t *w,
    const ngx_http_dsa_block_t *total, ngx_http_dsa_redis_t *redis);
static void ngx_http_dsa_status_seconds(dsa_json_writer_t *w, const char *key,
    uint64_t ms);


/* Keys of "latency". */

static const char *const
    ngx_http_dsa_status_histograms[NGX_HTTP_DSA_HISTOGRAMS] =
{
    "ttft", "inter_token", "duration", "queue"
};


ngx_int_t
ngx_http_dsa_status_handler(ngx_http_request_t *r)
{
    dsa_buf_t                  b;
    ngx_int_t                  rc;
    dsa_json_writer_t          w;
    ngx_http_dsa_block_t       total;
    ngx_http_dsa_main_conf_t  *mcf;

    rc = ngx_http_dsa_accept_get(r);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (ngx_http_dsa_add_header(r, "Cache-Control", "no-store") != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    mcf = ngx_http_get_module_main_conf(r, ngx_http_dsa_module);

    ngx_http_dsa_metrics_sum(mcf->metrics, &total);

    ngx_memzero(&b, sizeof(dsa_buf_t));

    dsa_json_writer(&w, &b);
    dsa_json_object(&w);

    ngx_http_dsa_status_server(&w, mcf->metrics);
    ngx_http_dsa_status_requests(&w, &total);
    ngx_http_dsa_status_tokens(&w, &total);
    ngx_http_dsa_status_latency(&w, &total);

    if (mcf->prices != NULL) {
        ngx_http_dsa_status_money(&w, &total, &mcf->currency);
    }

    ngx_http_dsa_status_engines(&w, &mcf->pools);
    ngx_http_dsa_status_tenants(&w, mcf->tenants, mcf->keys);

    if (mcf->redis != NULL) {
        ngx_http_dsa_status_redis(&w, &total, mcf->redis);
    }

    dsa_json_object_end(&w);
    dsa_buf_addz(&b, "\n");

    return ngx_http_dsa_send_json(r, NGX_HTTP_OK, &b);
}


static void
ngx_http_dsa_status_server(dsa_json_writer_t *w, ngx_shm_zone_t *metrics)
{
    ngx_time_t  *now;

    now = ngx_timeofday();

    ngx_http_dsa_status_seconds(w, "time",
                                (uint64_t) now->sec * 1000 + now->msec);
    dsa_json_key(w, "version");
    dsa_json_stringz(w, DSA_VERSION);
    ngx_http_dsa_status_seconds(w, "uptime",
                                ngx_http_dsa_metrics_age(metrics));
}


static void
ngx_http_dsa_status_requests(dsa_json_writer_t *w,
    const ngx_http_dsa_block_t *total)
{
    char        code[NGX_INT_T_LEN + 1];
    uint64_t    sum;
    ngx_uint_t  i;

    sum = 0;

    for (i = 0; i < NGX_HTTP_DSA_CODES; i++) {
        sum += total->requests[i];
    }

    dsa_json_key(w, "requests");
    dsa_json_object(w);
    ngx_http_dsa_status_uint(w, "in_flight", ngx_max(total->in_flight, 0));
    ngx_http_dsa_status_uint(w, "total", sum);

    dsa_json_key(w, "by_status");
    dsa_json_object(w);

    for (i = 0; i < NGX_HTTP_DSA_CODES - 1; i++) {
        ngx_sprintf((u_char *) code, "%ui%Z", ngx_http_dsa_metrics_code(i));
        ngx_http_dsa_status_uint(w, code, total->requests[i]);
    }

    ngx_http_dsa_status_uint(w, "other", total->requests[i]);
    dsa_json_object_end(w);

    dsa_json_key(w, "cancelled");
    dsa_json_object(w);

    for (i = 0; i < NGX_HTTP_DSA_CANCELS; i++) {
        ngx_http_dsa_status_uint(w, ngx_http_dsa_metrics_reason(i),
                                 total->cancelled[i]);
    }

    dsa_json_object_end(w);
    ngx_http_dsa_status_uint(w, "lost", total->lost);
    dsa_json_object_end(w);
}


static void
ngx_http_dsa_status_tokens(dsa_json_writer_t *w,
    const ngx_http_dsa_block_t *total)
{
    ngx_uint_t  i;

    dsa_json_key(w, "tokens");
    dsa_json_object(w);
    ngx_http_dsa_status_uint(w, "prompt", total->prompt);

    dsa_json_key(w, "cached");
    dsa_json_object(w);

    for (i = 0; i < DSA_TIERS; i++) {
        ngx_http_dsa_status_uint(w, dsa_tier_names[i].name, total->tier[i]);
    }

    dsa_json_object_end(w);

    ngx_http_dsa_status_uint(w, "completion", total->completion);
    ngx_http_dsa_status_uint(w, "reasoning", total->reasoning);
    dsa_json_object_end(w);
}


static void
ngx_http_dsa_status_money(dsa_json_writer_t *w,
    const ngx_http_dsa_block_t *total, const ngx_str_t *currency)
{
    dsa_json_key(w, "money");
    dsa_json_object(w);

    if (currency->len != 0) {
        dsa_json_key(w, "currency");
        dsa_json_string(w, dsa_str(currency->data, currency->len));
    }

    ngx_http_dsa_status_amount(w, "miss", total->cost_miss);
    ngx_http_dsa_status_amount(w, "hit", total->cost_hit);
    ngx_http_dsa_status_amount(w, "output", total->cost_output);
    dsa_json_object_end(w);
}


static void
ngx_http_dsa_status_latency(dsa_json_writer_t *w,
    const ngx_http_dsa_block_t *total)
{
    ngx_uint_t  i;

    dsa_json_key(w, "latency");
    dsa_json_object(w);

    for (i = 0; i < NGX_HTTP_DSA_HISTOGRAMS; i++) {
        dsa_json_key(w, ngx_http_dsa_status_histograms[i]);
        ngx_http_dsa_status_histogram(w, ngx_http_dsa_metrics_bounds(i),
                                      &total->histogram[i]);
    }

    dsa_json_object_end(w);
}


/* counts[i] are above bounds[i - 1] and at most bounds[i]; all in ms. */

static void
ngx_http_dsa_status_histogram(dsa_json_writer_t *w,
    const ngx_http_dsa_bounds_t *bounds, const ngx_http_dsa_hist_t *hist)
{
    ngx_uint_t  i;

    dsa_json_object(w);

    dsa_json_key(w, "bounds");
    dsa_json_array(w);

    for (i = 0; i < NGX_HTTP_DSA_BUCKETS; i++) {
        dsa_json_uint(w, bounds->bounds[i]);
    }

    dsa_json_array_end(w);

    dsa_json_key(w, "counts");
    dsa_json_array(w);

    for (i = 0; i < NGX_HTTP_DSA_BUCKETS + 1; i++) {
        dsa_json_uint(w, hist->bucket[i]);
    }

    dsa_json_array_end(w);

    ngx_http_dsa_status_uint(w, "sum", hist->sum);
    dsa_json_object_end(w);
}


static void
ngx_http_dsa_status_engines(dsa_json_writer_t *w, ngx_array_t *pools)
{
    ngx_uint_t                i, n;
    ngx_http_dsa_pool_t     **pool;
    ngx_http_dsa_session_t   *s;

    dsa_json_key(w, "engines");
    dsa_json_array(w);

    pool = pools->elts;

    for (i = 0; i < pools->nelts; i++) {
        s = pool[i]->sessions.elts;

        for (n = 0; n < pool[i]->sessions.nelts; n++) {
            ngx_http_dsa_status_engine(w, &pool[i]->name, &s[n]);
        }
    }

    dsa_json_array_end(w);
}


/*
 * An engine as this worker sees it.  An engine without a session has no
 * figures, because they are in the memory that the session maps.
 */

static void
ngx_http_dsa_status_engine(dsa_json_writer_t *w, const ngx_str_t *pool,
    ngx_http_dsa_session_t *s)
{
    dsa_json_object(w);
    dsa_json_key(w, "pool");
    dsa_json_string(w, dsa_str(pool->data, pool->len));
    dsa_json_key(w, "engine");
    dsa_json_string(w, dsa_str(s->name.data, s->name.len));

    if (s->hello.magic != 0) {
        dsa_json_key(w, "model");
        dsa_json_stringz(w, s->hello.model);
    }

    dsa_json_key(w, "up");
    dsa_json_bool(w, ngx_http_dsa_session_up(s));

    if (s->state == NGX_HTTP_DSA_READY) {
        ngx_http_dsa_status_figures(w, s);
    }

    dsa_json_object_end(w);
}


static void
ngx_http_dsa_status_figures(dsa_json_writer_t *w, ngx_http_dsa_session_t *s)
{
    uint64_t             accepted;
    ngx_uint_t           i;
    dsa_link_control_t  *control;

    control = s->link.control;

    dsa_json_key(w, "draining");
    dsa_json_bool(w, control->draining != 0);

    ngx_http_dsa_status_uint(w, "heartbeat_ms", ngx_http_dsa_session_age(s));
    ngx_http_dsa_status_uint(w, "running", control->running);
    ngx_http_dsa_status_uint(w, "waiting", control->waiting);
    ngx_http_dsa_status_uint(w, "pages", control->pages);
    ngx_http_dsa_status_uint(w, "pages_used", control->pages_used);
    ngx_http_dsa_status_uint(w, "steps", control->steps);
    ngx_http_dsa_status_uint(w, "preemptions", control->preemptions);
    ngx_http_dsa_status_uint(w, "prompt_tokens", control->prompt_tokens);
    ngx_http_dsa_status_uint(w, "cached_tokens", control->cached_tokens);
    ngx_http_dsa_status_uint(w, "completion_tokens",
                             control->completion_tokens);
    ngx_http_dsa_status_uint(w, "decodes", control->decodes);
    ngx_http_dsa_status_uint(w, "decode_tokens", control->decode_tokens);
    ngx_http_dsa_status_uint(w, "draft_tokens", control->draft_tokens);

    accepted = 0;

    for (i = 0; i < DSA_LINK_DRAFTS; i++) {
        accepted += control->accepted_tokens[i];
    }

    ngx_http_dsa_status_uint(w, "accepted_draft_tokens", accepted);

    ngx_http_dsa_status_tiers(w, control);
}


/* Redis has no numbers of pages, because other servers use it as well. */

static void
ngx_http_dsa_status_tiers(dsa_json_writer_t *w, dsa_link_control_t *control)
{
    ngx_uint_t        i;
    dsa_link_tier_t  *tier;

    ngx_http_dsa_status_uint(w, "page_bytes", control->page_bytes);

    dsa_json_key(w, "tiers");
    dsa_json_object(w);

    for (i = 0; i < DSA_TIERS; i++) {
        tier = &control->tier[i];

        dsa_json_key(w, dsa_tier_names[i].name);
        dsa_json_object(w);

        if (!dsa_tier_names[i].servers) {
            ngx_http_dsa_status_uint(w, "pages", tier->pages);
            ngx_http_dsa_status_uint(w, "used", tier->used);

        } else {
            ngx_http_dsa_status_uint(w, "servers", tier->servers);
            ngx_http_dsa_status_uint(w, "servers_on", tier->servers_on);
        }

        ngx_http_dsa_status_uint(w, "hit_tokens", tier->hit_tokens);
        dsa_json_object_end(w);
    }

    dsa_json_object_end(w);
}


static void
ngx_http_dsa_status_redis(dsa_json_writer_t *w,
    const ngx_http_dsa_block_t *total, ngx_http_dsa_redis_t *redis)
{
    dsa_schema_memory_t        memory;
    ngx_http_dsa_ledger_use_t  use;

    ngx_http_dsa_ledger_use(ngx_http_dsa_redis_ledger(redis), &use);

    dsa_json_key(w, "redis");
    dsa_json_object(w);
    dsa_json_key(w, "up");
    dsa_json_bool(w, total->redis_up != 0);
    dsa_json_key(w, "writable");
    dsa_json_bool(w, total->redis_up != 0 && total->redis_refuses == 0);
    ngx_http_dsa_status_uint(w, "queue", use.waiting);
    ngx_http_dsa_status_uint(w, "queue_used", use.used);
    ngx_http_dsa_status_uint(w, "queue_capacity", use.cells);

    if (ngx_http_dsa_redis_memory(redis, &memory) == NGX_OK) {
        ngx_http_dsa_status_uint(w, "memory_used", memory.used);
        ngx_http_dsa_status_uint(w, "memory_limit", memory.limit);
        dsa_json_key(w, "evicts");
        dsa_json_bool(w, memory.evicts);
        dsa_json_key(w, "durable");
        dsa_json_bool(w, memory.durable);
    }

    dsa_json_object_end(w);
}


/* Milliseconds as seconds with three decimals. */

static void
ngx_http_dsa_status_seconds(dsa_json_writer_t *w, const char *key, uint64_t ms)
{
    u_char   text[NGX_INT64_LEN + sizeof(".000") - 1];
    u_char  *last;

    last = ngx_sprintf(text, "%uL.%03uL", ms / 1000, ms % 1000);

    dsa_json_key(w, key);
    dsa_json_raw(w, dsa_str(text, last - text));
}
