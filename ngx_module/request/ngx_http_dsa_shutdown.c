
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include <sys/eventfd.h>

#include "ngx_http_dsa_shutdown.h"


/* ms from the end of the requests to the close of their connections */
#define NGX_HTTP_DSA_SHUTDOWN_LEAD   1000


static void ngx_http_dsa_shutdown_exiting(ngx_event_t *rev);
static void ngx_http_dsa_shutdown_timer_handler(ngx_event_t *ev);


static ngx_queue_t       ngx_http_dsa_shutdown_requests;
static ngx_event_t       ngx_http_dsa_shutdown_timer;

/* nginx reads its fd when it logs the timer at the debug level */
static ngx_connection_t  ngx_http_dsa_shutdown_dummy;


/*
 * A worker that begins to shut down calls the read handlers of its idle
 * connections.  Modules have no other notice of it, so the worker gets an idle
 * connection for this purpose.
 */

ngx_int_t
ngx_http_dsa_shutdown_start(ngx_cycle_t *cycle)
{
    ngx_fd_t           fd;
    ngx_connection_t  *c;

    ngx_queue_init(&ngx_http_dsa_shutdown_requests);

    fd = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);

    if (fd == NGX_INVALID_FILE) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      "eventfd() failed");
        return NGX_ERROR;
    }

    c = ngx_get_connection(fd, cycle->log);

    if (c == NULL) {
        (void) close(fd);
        return NGX_ERROR;
    }

    /* nginx reports sockets that a worker leaves open, except channels */

    c->idle = 1;
    c->read->channel = 1;
    c->write->channel = 1;
    c->read->log = cycle->log;
    c->write->log = cycle->log;
    c->read->handler = ngx_http_dsa_shutdown_exiting;

    return NGX_OK;
}


static void
ngx_http_dsa_shutdown_exiting(ngx_event_t *rev)
{
    ngx_msec_t         timeout;
    ngx_event_t       *ev;
    ngx_core_conf_t   *ccf;
    ngx_connection_t  *c;

    c = rev->data;

    ngx_close_connection(c);

    ccf = (ngx_core_conf_t *) ngx_get_conf(ngx_cycle->conf_ctx,
                                           ngx_core_module);
    timeout = ccf->shutdown_timeout;

    if (timeout == 0) {
        return;
    }

    ev = &ngx_http_dsa_shutdown_timer;

    ngx_http_dsa_shutdown_dummy.fd = (ngx_socket_t) -1;

    ev->handler = ngx_http_dsa_shutdown_timer_handler;
    ev->data = &ngx_http_dsa_shutdown_dummy;
    ev->log = ngx_cycle->log;
    ev->cancelable = 1;

    ngx_add_timer(ev, timeout - ngx_min(timeout / 4,
                                        NGX_HTTP_DSA_SHUTDOWN_LEAD));
}


/*
 * Ends all requests.  Connections that are still open may bring further ones,
 * so the timer is set again until nginx closes the connections.
 */

static void
ngx_http_dsa_shutdown_timer_handler(ngx_event_t *ev)
{
    ngx_uint_t                n;
    ngx_queue_t               requests, *q;
    ngx_http_dsa_shutdown_t  *s;

    if (!ngx_queue_empty(&ngx_http_dsa_shutdown_requests)) {

        /* a handler may remove other requests */

        ngx_queue_init(&requests);
        ngx_queue_add(&requests, &ngx_http_dsa_shutdown_requests);
        ngx_queue_init(&ngx_http_dsa_shutdown_requests);

        for (n = 0; !ngx_queue_empty(&requests); n++) {
            q = ngx_queue_head(&requests);
            s = ngx_queue_data(q, ngx_http_dsa_shutdown_t, queue);

            ngx_http_dsa_shutdown_remove(s);

            s->handler(s->data);
        }

        ngx_log_error(NGX_LOG_NOTICE, ev->log, 0,
                      "dsa: %ui requests end before worker_shutdown_timeout",
                      n);
    }

    ngx_add_timer(ev, NGX_HTTP_DSA_SHUTDOWN_LEAD / 20);
}


void
ngx_http_dsa_shutdown_add(ngx_http_dsa_shutdown_t *s)
{
    ngx_queue_insert_tail(&ngx_http_dsa_shutdown_requests, &s->queue);
}


void
ngx_http_dsa_shutdown_remove(ngx_http_dsa_shutdown_t *s)
{
    if (s->queue.next != NULL) {
        ngx_queue_remove(&s->queue);
        s->queue.next = NULL;
    }
}
