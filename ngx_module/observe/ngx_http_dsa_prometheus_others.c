
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include <inttypes.h>

#include "ngx_module/core/ngx_http_dsa_series.h"
#include "ngx_http_dsa_prometheus_others.h"
#include "ngx_http_dsa_prometheus_text.h"


/* What the ready engines of a pool report, added up. */

typedef struct {
    ngx_str_t    model;             /* of the first of them */
    uint32_t     page_tokens;       /* the same */
    ngx_uint_t   engines;
    uint64_t     running;
    uint64_t     waiting;
    uint64_t     pages;
    uint64_t     used;
} ngx_http_dsa_prometheus_pool_t;


typedef struct {
    const char  *name;
    const char  *help;
} ngx_http_dsa_prometheus_name_t;


static void ngx_http_dsa_prometheus_pool(ngx_http_dsa_prometheus_pool_t *sum,
    const ngx_http_dsa_pool_t *pool);
static void ngx_http_dsa_prometheus_gauge(dsa_buf_t *b, const char *name,
    const char *help, const ngx_http_dsa_prometheus_pool_t *sum);
static void ngx_http_dsa_prometheus_duration(dsa_buf_t *b, const char *name,
    ngx_http_dsa_series_histogram_e which, const ngx_http_dsa_series_t *row);
static void ngx_http_dsa_prometheus_labels(dsa_buf_t *b, const char *name,
    const char *suffix, const ngx_http_dsa_series_t *row);


static const ngx_http_dsa_prometheus_name_t
    ngx_http_dsa_prometheus_histograms[NGX_HTTP_DSA_SERIES_HISTOGRAMS] =
{
    { "gen_ai_server_request_duration_seconds",
      "From the arrival of a request to its end." },

    { "gen_ai_server_time_to_first_token_seconds",
      "From the arrival of a request to its first token, of answers." },

    { "gen_ai_server_time_per_output_token_seconds",
      "The rest of the duration divided by the tokens after the first, of "
      "answers." }
};


void
ngx_http_dsa_prometheus_gauges(dsa_buf_t *b, const ngx_http_dsa_pool_t *pool)
{
    ngx_http_dsa_prometheus_pool_t  sum;

    ngx_http_dsa_prometheus_pool(&sum, pool);

    ngx_http_dsa_prometheus_gauge(b, "vllm:num_requests_waiting",
                                  "Requests in the queues of the pool's "
                                  "engines.", &sum);
    if (sum.engines != 0) {
        dsa_buf_printf(b, "\"} %" PRIu64 "\n", sum.waiting);
    }

    ngx_http_dsa_prometheus_gauge(b, "vllm:num_requests_running",
                                  "Requests in the batches of the pool's "
                                  "engines.", &sum);
    if (sum.engines != 0) {
        dsa_buf_printf(b, "\"} %" PRIu64 "\n", sum.running);
    }

    ngx_http_dsa_prometheus_gauge(b, "vllm:kv_cache_usage_perc",
                                  "The part of the pool's KV cache that is in "
                                  "use; 1 is all of it.", &sum);
    if (sum.engines != 0) {
        dsa_buf_printf(b, "\"} %.6f\n",
                       sum.pages != 0 ? (double) sum.used / (double) sum.pages
                                      : 0);
    }

    ngx_http_dsa_prometheus_gauge(b, "vllm:cache_config_info",
                                  "The tokens of a page, and the pages of the "
                                  "pool's KV cache, as labels.", &sum);
    if (sum.engines != 0) {
        dsa_buf_printf(b, "\",block_size=\"%u\",num_gpu_blocks=\"%" PRIu64
                       "\"} 1\n", sum.page_tokens, sum.pages);
    }
}


static void
ngx_http_dsa_prometheus_pool(ngx_http_dsa_prometheus_pool_t *sum,
    const ngx_http_dsa_pool_t *pool)
{
    ngx_uint_t               i;
    dsa_link_control_t      *control;
    ngx_http_dsa_session_t  *s;

    ngx_memzero(sum, sizeof(ngx_http_dsa_prometheus_pool_t));

    s = pool->sessions.elts;

    for (i = 0; i < pool->sessions.nelts; i++) {

        if (!ngx_http_dsa_session_up(&s[i])) {
            continue;
        }

        if (sum->engines++ == 0) {
            sum->model.data = (u_char *) s[i].hello.model;
            sum->model.len = ngx_strlen(s[i].hello.model);
            sum->page_tokens = s[i].hello.page_tokens;
        }

        control = s[i].link.control;

        sum->running += control->running;
        sum->waiting += control->waiting;
        sum->pages += control->pages;
        sum->used += control->pages_used;
    }
}


/* The head of a gauge and the beginning of its sample, if there is one. */

static void
ngx_http_dsa_prometheus_gauge(dsa_buf_t *b, const char *name,
    const char *help, const ngx_http_dsa_prometheus_pool_t *sum)
{
    ngx_http_dsa_prometheus_head(b, name, "gauge", help);

    if (sum->engines != 0) {
        dsa_buf_printf(b, "%s{model_name=\"", name);
        ngx_http_dsa_prometheus_label(b, &sum->model);
    }
}


ngx_int_t
ngx_http_dsa_prometheus_durations(dsa_buf_t *b,
    const ngx_http_dsa_pool_t *pool, ngx_shm_zone_t *series)
{
    ngx_uint_t              i, k, n;
    ngx_http_dsa_series_t  *rows;

    rows = ngx_alloc(NGX_HTTP_DSA_SERIES * sizeof(ngx_http_dsa_series_t),
                     ngx_cycle->log);
    if (rows == NULL) {
        return NGX_ERROR;
    }

    n = ngx_http_dsa_series_read(series, &pool->name, rows);

    for (k = 0; k < NGX_HTTP_DSA_SERIES_HISTOGRAMS; k++) {
        ngx_http_dsa_prometheus_head(b,
            ngx_http_dsa_prometheus_histograms[k].name, "histogram",
            ngx_http_dsa_prometheus_histograms[k].help);

        for (i = 0; i < n; i++) {
            if (rows[i].histogram[k].count != 0) {
                ngx_http_dsa_prometheus_duration(b,
                    ngx_http_dsa_prometheus_histograms[k].name, k, &rows[i]);
            }
        }
    }

    ngx_free(rows);

    return NGX_OK;
}


static void
ngx_http_dsa_prometheus_duration(dsa_buf_t *b, const char *name,
    ngx_http_dsa_series_histogram_e which, const ngx_http_dsa_series_t *row)
{
    uint64_t                           count;
    ngx_uint_t                         i, n;
    const uint64_t                    *bounds;
    const ngx_http_dsa_series_hist_t  *hist;

    hist = &row->histogram[which];
    bounds = ngx_http_dsa_series_bounds(which, &n);
    count = 0;

    for (i = 0; i < n; i++) {
        count += hist->bucket[i];

        ngx_http_dsa_prometheus_labels(b, name, "_bucket", row);
        dsa_buf_printf(b, ",le=\"%.9g\"} %" PRIu64 "\n",
                       (double) bounds[i] / 1000000, count);
    }

    count += hist->bucket[n];

    ngx_http_dsa_prometheus_labels(b, name, "_bucket", row);
    dsa_buf_printf(b, ",le=\"+Inf\"} %" PRIu64 "\n", count);

    ngx_http_dsa_prometheus_labels(b, name, "_sum", row);
    dsa_buf_printf(b, "} %.6f\n", (double) hist->sum / 1000000);

    ngx_http_dsa_prometheus_labels(b, name, "_count", row);
    dsa_buf_printf(b, "} %" PRIu64 "\n", count);
}


/* A name and the labels of a row; the caller ends the labels. */

static void
ngx_http_dsa_prometheus_labels(dsa_buf_t *b, const char *name,
    const char *suffix, const ngx_http_dsa_series_t *row)
{
    ngx_str_t     text;
    ngx_uint_t    i;
    const u_char *endpoint;

    static const char *const  labels[NGX_HTTP_DSA_SERIES_LABELS] = {
        "pool", "gen_ai_request_model", "endpoint", "tenant", "error_type"
    };

    endpoint = row->label[NGX_HTTP_DSA_SERIES_ENDPOINT];

    dsa_buf_printf(b, "%s%s{gen_ai_operation_name=\"%s\","
                   "gen_ai_provider_name=\"nginx-dsa\"", name, suffix,
                   ngx_strcmp(endpoint, "completions") == 0 ? "text_completion"
                                                            : "chat");

    for (i = 0; i < NGX_HTTP_DSA_SERIES_LABELS; i++) {

        /* Prometheus has no label whose value is empty */

        if (row->label[i][0] != '\0') {
            text.data = (u_char *) row->label[i];
            text.len = ngx_strlen(text.data);

            dsa_buf_printf(b, ",%s=\"", labels[i]);
            ngx_http_dsa_prometheus_label(b, &text);
            dsa_buf_addz(b, "\"");
        }
    }
}
