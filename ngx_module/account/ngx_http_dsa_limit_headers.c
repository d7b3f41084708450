
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <assert.h>

#include "base/money.h"

#include "ngx_module/http/ngx_http_dsa_header.h"
#include "ngx_http_dsa_limit.h"


#define NGX_HTTP_DSA_LIMIT_VALUE  64        /* bytes of a header's value */
#define NGX_HTTP_DSA_LIMIT_PAY    402       /* Payment Required */


typedef struct {
    const char  *limit;
    const char  *remaining;
    const char  *reset;
} ngx_http_dsa_limit_names_t;


static ngx_int_t ngx_http_dsa_limit_headers_rate(ngx_http_request_t *r,
    const ngx_http_dsa_limit_rate_t *rate,
    const ngx_http_dsa_limit_names_t *names, ngx_uint_t anthropic);
static ngx_int_t ngx_http_dsa_limit_headers_budget(ngx_http_request_t *r,
    const ngx_http_dsa_limit_view_t *view);
static void ngx_http_dsa_limit_money(char text[DSA_MONEY_LEN],
    int64_t amount);
static u_char *ngx_http_dsa_limit_duration(u_char *p, uint64_t ms);
static u_char *ngx_http_dsa_limit_time(u_char *p, time_t t);
static ngx_int_t ngx_http_dsa_limit_number(ngx_http_request_t *r,
    const char *name, uint64_t number);
static ngx_int_t ngx_http_dsa_limit_add(ngx_http_request_t *r,
    const char *name, const u_char *value, size_t len);


static const ngx_http_dsa_limit_names_t  ngx_http_dsa_limit_requests[] = {
    { "x-ratelimit-limit-requests",
      "x-ratelimit-remaining-requests",
      "x-ratelimit-reset-requests" },
    { "anthropic-ratelimit-requests-limit",
      "anthropic-ratelimit-requests-remaining",
      "anthropic-ratelimit-requests-reset" }
};


static const ngx_http_dsa_limit_names_t  ngx_http_dsa_limit_tokens[] = {
    { "x-ratelimit-limit-tokens",
      "x-ratelimit-remaining-tokens",
      "x-ratelimit-reset-tokens" },
    { "anthropic-ratelimit-tokens-limit",
      "anthropic-ratelimit-tokens-remaining",
      "anthropic-ratelimit-tokens-reset" }
};


void
ngx_http_dsa_limit_failure(const ngx_http_dsa_limit_view_t *view,
    ngx_http_dsa_failure_t *failure)
{
    char  spent[DSA_MONEY_LEN], hard[DSA_MONEY_LEN];

    switch (view->refused) {

    case NGX_HTTP_DSA_LIMIT_REQUESTS:
        ngx_http_dsa_failure_set(failure, NGX_HTTP_TOO_MANY_REQUESTS, NULL,
                                 "Rate limit reached for requests: this API "
                                 "key may send %llu requests per minute. Try "
                                 "again in %llu s.",
                                 (unsigned long long) view->requests.limit,
                                 (unsigned long long) view->retry);
        return;

    case NGX_HTTP_DSA_LIMIT_TOKENS:
        ngx_http_dsa_failure_set(failure, NGX_HTTP_TOO_MANY_REQUESTS, NULL,
                                 "Rate limit reached for tokens: this API key "
                                 "may use %llu tokens per minute. Try again "
                                 "in %llu s.",
                                 (unsigned long long) view->tokens.limit,
                                 (unsigned long long) view->retry);
        return;

    case NGX_HTTP_DSA_LIMIT_CONCURRENCY:
        ngx_http_dsa_failure_set(failure, NGX_HTTP_TOO_MANY_REQUESTS, NULL,
                                 "Rate limit reached for concurrent requests: "
                                 "this API key may run %u at a time. Try "
                                 "again when one of them has ended.",
                                 view->concurrency);
        return;

    case NGX_HTTP_DSA_LIMIT_BUDGET:
        ngx_http_dsa_limit_money(spent, view->spent[view->period]);
        ngx_http_dsa_limit_money(hard, view->budget[view->period].hard);

        ngx_http_dsa_failure_set(failure, NGX_HTTP_DSA_LIMIT_PAY, NULL,
                                 "Insufficient Balance: the %s budget of this "
                                 "API key is %s, and %s is spent.",
                                 dsa_key_period_name(view->period), hard,
                                 spent);
        return;

    case NGX_HTTP_DSA_LIMIT_UNKNOWN:
        ngx_http_dsa_failure_set(failure, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                 "The server cannot check the budget of this "
                                 "API key now, because what the key has spent "
                                 "could not be read yet. Try again later.");
        return;

    case NGX_HTTP_DSA_LIMIT_READS:
        ngx_http_dsa_failure_set(failure, NGX_HTTP_TOO_MANY_REQUESTS, NULL,
                                 "Rate limit reached for reads: this API key "
                                 "may read conversations and responses %llu "
                                 "times per minute. Try again in %llu s.",
                                 (unsigned long long) view->reads,
                                 (unsigned long long) view->retry);
        return;

    case NGX_HTTP_DSA_LIMIT_PERMITS:
        ngx_http_dsa_failure_set(failure, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                 "The server runs as many requests as it can "
                                 "count. Try again later.");
        return;

    default:
        assert(0);
    }
}


ngx_int_t
ngx_http_dsa_limit_headers(ngx_http_request_t *r,
    const ngx_http_dsa_limit_view_t *view, ngx_uint_t anthropic)
{
    ngx_uint_t  i;

    for (i = 0; i < 1 + (anthropic != 0); i++) {

        if (ngx_http_dsa_limit_headers_rate(r, &view->requests,
                                            &ngx_http_dsa_limit_requests[i], i)
            != NGX_OK
            || ngx_http_dsa_limit_headers_rate(r, &view->tokens,
                                               &ngx_http_dsa_limit_tokens[i],
                                               i)
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    if (ngx_http_dsa_limit_headers_budget(r, view) != NGX_OK) {
        return NGX_ERROR;
    }

    if (view->retry == 0) {
        return NGX_OK;
    }

    return ngx_http_dsa_limit_number(r, "Retry-After", view->retry);
}


static ngx_int_t
ngx_http_dsa_limit_headers_rate(ngx_http_request_t *r,
    const ngx_http_dsa_limit_rate_t *rate,
    const ngx_http_dsa_limit_names_t *names, ngx_uint_t anthropic)
{
    u_char  value[NGX_HTTP_DSA_LIMIT_VALUE], *p;

    if (rate->limit == 0) {
        return NGX_OK;
    }

    if (ngx_http_dsa_limit_number(r, names->limit, rate->limit) != NGX_OK
        || ngx_http_dsa_limit_number(r, names->remaining, rate->remaining)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (anthropic) {
        p = ngx_http_dsa_limit_time(value, ngx_time()
                                           + (rate->reset_ms + 999) / 1000);

    } else {
        p = ngx_http_dsa_limit_duration(value, rate->reset_ms);
    }

    return ngx_http_dsa_limit_add(r, names->reset, value, p - value);
}


/* One header for the soft limits that are reached: "day 1.62 of 2.00". */

static ngx_int_t
ngx_http_dsa_limit_headers_budget(ngx_http_request_t *r,
    const ngx_http_dsa_limit_view_t *view)
{
    char        spent[DSA_MONEY_LEN], soft[DSA_MONEY_LEN];
    u_char      value[DSA_KEY_PERIODS * (2 * DSA_MONEY_LEN + 16)], *p;
    ngx_uint_t  i;

    p = value;

    for (i = 0; i < DSA_KEY_PERIODS; i++) {

        if ((view->warn & (1 << i)) == 0) {
            continue;
        }

        ngx_http_dsa_limit_money(spent, view->spent[i]);
        ngx_http_dsa_limit_money(soft, view->budget[i].soft);

        if (view->first & (1 << i)) {
            ngx_log_error(NGX_LOG_WARN, r->connection->log, 0,
                          "dsa: key \"%*s\" has reached the soft limit of "
                          "its budget (%s): %s of %s is spent",
                          (size_t) DSA_KEY_ID_LEN, view->id,
                          dsa_key_period_name(i), spent, soft);
        }

        p = ngx_sprintf(p, "%s%s %s of %s", p == value ? "" : ", ",
                        dsa_key_period_name(i), spent, soft);
    }

    if (p == value) {
        return NGX_OK;
    }

    return ngx_http_dsa_limit_add(r, "x-dsa-budget-warning", value, p - value);
}


static void
ngx_http_dsa_limit_money(char text[DSA_MONEY_LEN], int64_t amount)
{
    size_t  n;

    n = dsa_money_print(text, amount, 2);
    assert(n < DSA_MONEY_LEN);

    text[n] = '\0';
}


/*
 * OpenAI's servers print durations as Go does: "0s", "17ms", "1.5s", "6m0s",
 * "1h0m12.3s".
 */

static u_char *
ngx_http_dsa_limit_duration(u_char *p, uint64_t ms)
{
    uint64_t  fraction;

    if (ms != 0 && ms < 1000) {
        return ngx_sprintf(p, "%uLms", ms);
    }

    if (ms >= 3600000) {
        p = ngx_sprintf(p, "%uLh", ms / 3600000);
    }

    if (ms >= 60000) {
        p = ngx_sprintf(p, "%uLm", ms / 60000 % 60);
    }

    p = ngx_sprintf(p, "%uL", ms / 1000 % 60);

    fraction = ms % 1000;

    if (fraction != 0) {
        p = ngx_sprintf(p, ".%03uL", fraction);

        while (p[-1] == '0') {
            p--;
        }
    }

    *p++ = 's';

    return p;
}


/* RFC 3339: "2025-11-22T12:00:00Z". */

static u_char *
ngx_http_dsa_limit_time(u_char *p, time_t t)
{
    ngx_tm_t  tm;

    ngx_gmtime(t, &tm);

    return ngx_sprintf(p, "%4d-%02d-%02dT%02d:%02d:%02dZ", tm.ngx_tm_year,
                       tm.ngx_tm_mon, tm.ngx_tm_mday, tm.ngx_tm_hour,
                       tm.ngx_tm_min, tm.ngx_tm_sec);
}


static ngx_int_t
ngx_http_dsa_limit_number(ngx_http_request_t *r, const char *name,
    uint64_t number)
{
    u_char  value[NGX_HTTP_DSA_LIMIT_VALUE], *p;

    p = ngx_sprintf(value, "%uL", number);

    return ngx_http_dsa_limit_add(r, name, value, p - value);
}


/* Adds a header with a copy of the value. */

static ngx_int_t
ngx_http_dsa_limit_add(ngx_http_request_t *r, const char *name,
    const u_char *value, size_t len)
{
    ngx_str_t  copy;

    copy.len = len;
    copy.data = ngx_pnalloc(r->pool, len);
    if (copy.data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(copy.data, value, len);

    return ngx_http_dsa_header_add(r, name, &copy);
}
