
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "ngx_http_dsa_limit_state.h"


static void ngx_http_dsa_limit_view_rate(const dsa_bucket_t *bucket,
    uint64_t rate, ngx_http_dsa_limit_rate_t *view);


void
ngx_http_dsa_limit_refill(ngx_http_dsa_limit_t *limit)
{
    const dsa_key_limits_t  *conf;

    conf = &limit->conf;

    if (conf->rpm != 0) {
        dsa_bucket_refill(&limit->requests, conf->rpm, ngx_current_msec);
    }

    if (conf->tpm != 0) {
        dsa_bucket_refill(&limit->tokens, conf->tpm, ngx_current_msec);
    }
}


uint32_t
ngx_http_dsa_limit_running(const ngx_http_dsa_limit_t *limit)
{
    if (limit->elsewhere == 0
        || (ngx_msec_int_t) (ngx_current_msec - limit->lease) >= 0)
    {
        return limit->running;
    }

    return limit->running + ngx_min(limit->elsewhere,
                                    UINT32_MAX - limit->running);
}


void
ngx_http_dsa_limit_view(const ngx_http_dsa_limit_t *limit,
    ngx_http_dsa_limit_view_t *view)
{
    ngx_uint_t  i;

    ngx_http_dsa_limit_view_rate(&limit->requests, limit->conf.rpm,
                                 &view->requests);
    ngx_http_dsa_limit_view_rate(&limit->tokens, limit->conf.tpm,
                                 &view->tokens);

    ngx_memcpy(view->id, limit->id, DSA_KEY_ID_LEN);

    view->concurrency = limit->conf.concurrency;
    view->running = ngx_http_dsa_limit_running(limit);

    for (i = 0; i < DSA_KEY_PERIODS; i++) {
        view->budget[i] = limit->conf.budget[i];
    }
}


static void
ngx_http_dsa_limit_view_rate(const dsa_bucket_t *bucket, uint64_t rate,
    ngx_http_dsa_limit_rate_t *view)
{
    if (rate == 0) {
        return;
    }

    view->limit = rate;
    view->remaining = dsa_bucket_level(bucket, rate);
    view->reset_ms = dsa_bucket_reset(bucket, rate);
}
