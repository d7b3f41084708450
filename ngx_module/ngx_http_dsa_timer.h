
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_TIMER_H_INCLUDED_
#define _NGX_HTTP_DSA_TIMER_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>


/*
 * The one timer of a request: for its deadline, and for keep-alives when
 * nothing was sent for a while.
 */

typedef struct {
    ngx_event_t               event;        /* not cancelable, so that a worker
                                               that shuts down waits */
    ngx_msec_t                deadline;     /* ngx_current_msec */
    ngx_msec_t                keepalive;    /* ms without a byte; 0: no
                                               keep-alives */
    unsigned                  expired:1;    /* the deadline is over, and the
                                               grace for the engine runs */
} ngx_http_dsa_timer_t;


/* Sets the timer to what is due first. */
void ngx_http_dsa_timer_set(ngx_http_dsa_timer_t *timer,
    ngx_msec_t last_write);

/* 1: the deadline is over. */
ngx_uint_t ngx_http_dsa_timer_over(ngx_http_dsa_timer_t *timer);

/* 1: nothing was sent for so long that a keep-alive is due. */
ngx_uint_t ngx_http_dsa_timer_quiet(ngx_http_dsa_timer_t *timer,
    ngx_msec_t last_write);

void ngx_http_dsa_timer_stop(ngx_http_dsa_timer_t *timer);


#endif /* _NGX_HTTP_DSA_TIMER_H_INCLUDED_ */
