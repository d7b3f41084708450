
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_SHUTDOWN_H_INCLUDED_
#define _NGX_HTTP_DSA_SHUTDOWN_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


/*
 * The end of requests before worker_shutdown_timeout.  When this time is over,
 * nginx closes all connections of a worker that shuts down, in the middle of
 * what they send.  So open requests are ended with an error shortly before.
 */

typedef struct {
    ngx_queue_t               queue;        /* next is NULL: not queued */
    void                    (*handler)(void *data);
    void                     *data;
} ngx_http_dsa_shutdown_t;


/*
 * Starts to wait for the shutdown of this worker.  NGX_OK, or NGX_ERROR, which
 * is logged.
 */
ngx_int_t ngx_http_dsa_shutdown_start(ngx_cycle_t *cycle);

/*
 * Adds an open request, whose handler and data are set.  The handler is called
 * once, and may end and free the request and others.
 */
void ngx_http_dsa_shutdown_add(ngx_http_dsa_shutdown_t *s);

/* Removes a request, unless it was removed or its handler was called. */
void ngx_http_dsa_shutdown_remove(ngx_http_dsa_shutdown_t *s);


#endif /* _NGX_HTTP_DSA_SHUTDOWN_H_INCLUDED_ */
