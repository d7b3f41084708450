
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "ngx_http_dsa_burst.h"


#define NGX_HTTP_DSA_BURSTS          16
#define NGX_HTTP_DSA_BURST_TEXT      200        /* bytes that are compared */
#define NGX_HTTP_DSA_BURST_INTERVAL  30000      /* milliseconds */


typedef struct {
    u_char            text[NGX_HTTP_DSA_BURST_TEXT];
    size_t            len;                      /* 0: the place is free */
    ngx_uint_t        n;                        /* since the last line */
} ngx_http_dsa_burst_t;


static void ngx_http_dsa_burst_timer_start(void);
static void ngx_http_dsa_burst_timer_handler(ngx_event_t *ev);
static void ngx_http_dsa_burst_report(ngx_http_dsa_burst_t *b);


static ngx_http_dsa_burst_t  ngx_http_dsa_bursts[NGX_HTTP_DSA_BURSTS];
static ngx_event_t           ngx_http_dsa_burst_timer;
static ngx_connection_t      ngx_http_dsa_burst_dumb;   /* data of the timer */


ngx_uint_t
ngx_http_dsa_burst(const char *text)
{
    size_t                 len;
    const char            *key;
    ngx_uint_t             i;
    ngx_http_dsa_burst_t  *b, *free;

    key = ngx_strstr(text, "dsa1:");
    len = key != NULL && key != text ? (size_t) (key - text)
                                     : ngx_strlen(text);
    len = ngx_min(len, NGX_HTTP_DSA_BURST_TEXT);

    free = NULL;

    for (i = 0; i < NGX_HTTP_DSA_BURSTS; i++) {
        b = &ngx_http_dsa_bursts[i];

        if (b->len == 0) {
            free = b;

        } else if (b->len == len && ngx_memcmp(b->text, text, len) == 0) {
            b->n++;
            return NGX_LOG_INFO;
        }
    }

    if (free != NULL && len != 0) {
        ngx_memcpy(free->text, text, len);
        free->len = len;
        free->n = 0;

        ngx_http_dsa_burst_timer_start();
    }

    return NGX_LOG_ERR;
}


static void
ngx_http_dsa_burst_timer_start(void)
{
    ngx_event_t  *ev;

    ev = &ngx_http_dsa_burst_timer;

    if (ev->timer_set) {
        return;
    }

    ngx_http_dsa_burst_dumb.fd = (ngx_socket_t) -1;

    ev->handler = ngx_http_dsa_burst_timer_handler;
    ev->data = &ngx_http_dsa_burst_dumb;
    ev->log = ngx_cycle->log;
    ev->cancelable = 1;

    ngx_add_timer(ev, NGX_HTTP_DSA_BURST_INTERVAL);
}


static void
ngx_http_dsa_burst_timer_handler(ngx_event_t *ev)
{
    ngx_uint_t             i;
    ngx_http_dsa_burst_t  *b;

    for (i = 0; i < NGX_HTTP_DSA_BURSTS; i++) {
        b = &ngx_http_dsa_bursts[i];

        if (b->len == 0) {
            continue;
        }

        if (b->n == 0) {
            b->len = 0;
            continue;
        }

        ngx_http_dsa_burst_report(b);
        ngx_http_dsa_burst_timer_start();
    }
}


static void
ngx_http_dsa_burst_report(ngx_http_dsa_burst_t *b)
{
    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "dsa: %ui more times in at most %d s: %*s", b->n,
                  NGX_HTTP_DSA_BURST_INTERVAL / 1000, b->len, b->text);

    b->n = 0;
}


void
ngx_http_dsa_burst_exit(void)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_DSA_BURSTS; i++) {
        if (ngx_http_dsa_bursts[i].n != 0) {
            ngx_http_dsa_burst_report(&ngx_http_dsa_bursts[i]);
        }
    }

    if (ngx_http_dsa_burst_timer.timer_set) {
        ngx_del_timer(&ngx_http_dsa_burst_timer);
    }
}
