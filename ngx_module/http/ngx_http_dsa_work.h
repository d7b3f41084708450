
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_WORK_H_INCLUDED_
#define _NGX_HTTP_DSA_WORK_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_module/core/ngx_http_dsa_failure.h"
#include "ngx_module/core/ngx_http_dsa_metrics.h"


/*
 * Work on the data of requests, such as parsing and encoding, that would hold
 * up the other requests of the event loop if it were long.  Short work runs at
 * once, up to NGX_HTTP_DSA_WORK_TURN bytes in a millisecond and so in each turn
 * of the event loop.  Other work runs in nginx's thread pool "default".  A
 * worker has one task at a time there, and takes the tasks of its tenants in
 * turn.
 *
 * A request does one thing at a time: while work of it waits or runs, no other
 * work of it is started.
 */

/* bytes of work that run at once: of one stage, and in a millisecond */

#define NGX_HTTP_DSA_WORK_SHORT    (32 * 1024)
#define NGX_HTTP_DSA_WORK_TURN     (128 * 1024)

/* bytes that may wait for a thread, for each tenant in each worker */

#define NGX_HTTP_DSA_WORK_WAITING  (256 * 1024 * 1024)


typedef struct ngx_http_dsa_job_s  ngx_http_dsa_job_t;


/* The work of one request.  Set the members up to job, which is NULL. */

typedef struct {
    ngx_http_request_t         *request;    /* a main request */
    const u_char               *digest;     /* of the tenant */
    ngx_http_dsa_failure_t     *failure;
    ngx_http_dsa_job_t         *job;        /* waits or runs; NULL: none */
} ngx_http_dsa_work_t;


typedef void (*ngx_http_dsa_work_pt)(void *data);


/*
 * In configuration: takes the thread pool of a configuration that serves
 * requests.  NGX_ERROR: out of memory, or nginx has no threads, which is
 * logged.
 */
ngx_int_t ngx_http_dsa_work_init(ngx_conf_t *cf);

/*
 * Runs run(data), on bytes of input at most.  It may run in a thread, at the
 * same time as the event loop.  So it uses only memory that nothing else uses
 * until it ends: no pool, log, timer, connection or counter.
 *
 * NGX_OK: it has run.  NGX_AGAIN: done(data) will be called in the context of
 * the request when it has, and posted requests are run after it.  NGX_ERROR
 * with a failure: too much work of the tenant waits.
 */
ngx_int_t ngx_http_dsa_work(ngx_http_dsa_work_t *work,
    ngx_http_dsa_stage_e stage, size_t bytes, ngx_http_dsa_work_pt run,
    ngx_http_dsa_work_pt done, void *data);

/* Returns 1 if a thread uses the memory of the work. */
ngx_uint_t ngx_http_dsa_work_runs(const ngx_http_dsa_work_t *work);

/*
 * Stops the work, whose done is not called any more.  NGX_OK: nothing waits or
 * runs.  NGX_AGAIN: a thread runs it; instead(data) will be called in place of
 * done.
 */
ngx_int_t ngx_http_dsa_work_stop(ngx_http_dsa_work_t *work,
    ngx_http_dsa_work_pt instead, void *data);

/*
 * The same from a cleanup handler of the request: until instead is called, the
 * request, its pool and its connection are kept.
 */
ngx_int_t ngx_http_dsa_work_leave(ngx_http_dsa_work_t *work,
    ngx_http_dsa_work_pt instead, void *data);


#endif /* _NGX_HTTP_DSA_WORK_H_INCLUDED_ */
