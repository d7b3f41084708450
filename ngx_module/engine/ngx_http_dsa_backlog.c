
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_dsa_backlog.h"


void
ngx_http_dsa_backlog_start(ngx_http_dsa_backlog_t *backlog,
    const dsa_link_control_t *control)
{
    backlog->ended[1] = atomic_load_explicit(&control->ended,
                                             memory_order_relaxed);
    backlog->time[1] = ngx_current_msec;

    backlog->ended[0] = backlog->ended[1];
    backlog->time[0] = backlog->time[1];
}


void
ngx_http_dsa_backlog_update(ngx_http_dsa_backlog_t *backlog,
    const dsa_link_control_t *control)
{
    if (ngx_current_msec - backlog->time[1] < NGX_HTTP_DSA_BACKLOG_WINDOW) {
        return;
    }

    backlog->ended[0] = backlog->ended[1];
    backlog->time[0] = backlog->time[1];

    backlog->ended[1] = atomic_load_explicit(&control->ended,
                                             memory_order_relaxed);
    backlog->time[1] = ngx_current_msec;
}


ngx_uint_t
ngx_http_dsa_backlog_seconds(const ngx_http_dsa_backlog_t *backlog,
    const dsa_link_control_t *control)
{
    double      ms;
    uint32_t    waiting;
    uint64_t    ended;
    ngx_msec_t  time;

    waiting = atomic_load_explicit(&control->waiting, memory_order_relaxed);
    ended = atomic_load_explicit(&control->ended, memory_order_relaxed);

    if (waiting == 0) {
        return 1;
    }

    time = ngx_current_msec - backlog->time[0];

    /* the count is an engine's, and may be anything */

    ms = time;

    if (ended > backlog->ended[0]) {
        ms = ms * waiting / (ended - backlog->ended[0]);
    }

    if (ms >= NGX_HTTP_DSA_BACKLOG_MOST * 1000) {
        return NGX_HTTP_DSA_BACKLOG_MOST;
    }

    return ngx_max(((ngx_uint_t) ms + 999) / 1000, 1);
}
