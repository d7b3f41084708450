
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "ngx_http_dsa_timer.h"


void
ngx_http_dsa_timer_set(ngx_http_dsa_timer_t *timer, ngx_msec_t last_write)
{
    ngx_msec_t      now;
    ngx_msec_int_t  left, quiet;

    now = ngx_current_msec;
    left = timer->deadline - now;

    if (timer->keepalive != 0) {
        quiet = last_write + timer->keepalive - now;

        if (quiet <= 0) {
            quiet = timer->keepalive;
        }

        left = ngx_min(left, quiet);
    }

    ngx_add_timer(&timer->event, (ngx_msec_t) ngx_max(left, 1));
}


ngx_uint_t
ngx_http_dsa_timer_over(ngx_http_dsa_timer_t *timer)
{
    return (ngx_msec_int_t) (timer->deadline - ngx_current_msec) <= 0;
}


ngx_uint_t
ngx_http_dsa_timer_quiet(ngx_http_dsa_timer_t *timer, ngx_msec_t last_write)
{
    return timer->keepalive != 0
           && ngx_current_msec - last_write >= timer->keepalive;
}


void
ngx_http_dsa_timer_stop(ngx_http_dsa_timer_t *timer)
{
    if (timer->event.timer_set) {
        ngx_del_timer(&timer->event);
    }
}
