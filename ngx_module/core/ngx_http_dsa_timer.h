
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_TIMER_H_INCLUDED_
#define _NGX_HTTP_DSA_TIMER_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>


/* The only timer of a request, for its deadline and for keep-alives. */

typedef struct {
    ngx_event_t               event;        /* not cancelable, so that a worker
                                               that shuts down waits */
    ngx_msec_t                deadline;     /* ngx_current_msec */
    ngx_msec_t                keepalive;    /* ms without output; 0: none */
    unsigned                  expired:1;    /* the deadline has passed, and the
                                               engine has time to report its
                                               usage */
} ngx_http_dsa_timer_t;


/* Sets the timer to the earlier of the deadline and the next keep-alive. */
void ngx_http_dsa_timer_set(ngx_http_dsa_timer_t *timer,
    ngx_msec_t last_write);

/* Returns 1 if the deadline has passed. */
ngx_uint_t ngx_http_dsa_timer_over(ngx_http_dsa_timer_t *timer);

/*
 * Returns 1 if a keep-alive is due, because nothing was sent for long enough.
 */
ngx_uint_t ngx_http_dsa_timer_quiet(ngx_http_dsa_timer_t *timer,
    ngx_msec_t last_write);

/* Deletes the timer, if it is set. */
void ngx_http_dsa_timer_stop(ngx_http_dsa_timer_t *timer);


#endif /* _NGX_HTTP_DSA_TIMER_H_INCLUDED_ */
