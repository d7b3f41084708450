
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>
#include <ngx_thread_pool.h>

#include <assert.h>
#include <malloc.h>

#include "ngx_module/core/ngx_http_dsa_conf.h"
#include "ngx_http_dsa_identity.h"
#include "ngx_http_dsa_work.h"


/* lists of tenants, by the first byte of their digests */

#define NGX_HTTP_DSA_WORK_LISTS    64

/* ms; a timer keeps a worker that shuts down while a job runs */

#define NGX_HTTP_DSA_WORK_HOLD     60000


/*
 * Heaps of glibc: one for the event loop and one for all threads.  In bytes,
 * the least text that has memory of its own, and what a heap keeps at its end.
 */

#define NGX_HTTP_DSA_WORK_HEAPS    2
#define NGX_HTTP_DSA_WORK_MMAP     (512 * 1024)
#define NGX_HTTP_DSA_WORK_TRIM     (2 * 1024 * 1024)


/* an nginx that has --with-compat without --with-threads lacks these */

#pragma weak ngx_thread_pool_add
#pragma weak ngx_thread_task_post


/* A tenant whose work waits. */

typedef struct {
    ngx_queue_t                 turn;       /* in waiting */
    ngx_queue_t                 list;       /* in lists */
    ngx_queue_t                 jobs;
    size_t                      bytes;      /* of its jobs */
    u_char                      digest[NGX_HTTP_DSA_DIGEST_LEN];
} ngx_http_dsa_work_tenant_t;


struct ngx_http_dsa_job_s {
    ngx_thread_task_t           task;
    ngx_queue_t                 queue;      /* of the tenant's jobs */
    ngx_http_dsa_work_tenant_t *tenant;     /* NULL: it runs */
    ngx_http_dsa_work_t        *work;
    ngx_http_request_t         *request;
    ngx_http_dsa_stage_e        stage;
    size_t                      bytes;
    ngx_http_dsa_work_pt        run;
    ngx_http_dsa_work_pt        done;
    void                       *data;       /* of run */
    void                       *result;     /* of done */
    unsigned                    left:1;     /* the request has ended */
};


static void ngx_http_dsa_work_malloc(void);
static ngx_uint_t ngx_http_dsa_work_short(size_t bytes);
static ngx_int_t ngx_http_dsa_work_wait(ngx_http_dsa_job_t *job,
    const u_char *digest);
static ngx_http_dsa_work_tenant_t *ngx_http_dsa_work_tenant(
    const u_char *digest, ngx_queue_t *list);
static void ngx_http_dsa_work_unwait(ngx_http_dsa_job_t *job);
static void ngx_http_dsa_work_next(void);
static void ngx_http_dsa_work_thread(void *data, ngx_log_t *log);
static void ngx_http_dsa_work_complete(ngx_event_t *ev);
static void ngx_http_dsa_work_hold(ngx_event_t *ev);


/* of this worker */

static ngx_queue_t          ngx_http_dsa_work_waiting;
static ngx_queue_t          ngx_http_dsa_work_lists[NGX_HTTP_DSA_WORK_LISTS];
static ngx_http_dsa_job_t  *ngx_http_dsa_work_running;
static ngx_event_t          ngx_http_dsa_work_timer;
static ngx_connection_t     ngx_http_dsa_work_dumb;
static ngx_msec_t           ngx_http_dsa_work_now;      /* ngx_current_msec */
static size_t               ngx_http_dsa_work_left;     /* bytes, in now */


ngx_int_t
ngx_http_dsa_work_init(ngx_conf_t *cf)
{
    ngx_http_dsa_main_conf_t  *mcf;

    if (ngx_thread_pool_add == NULL) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"dsa_pool\" requires nginx with threads, but this "
                      "nginx was built without \"--with-threads\"");
        return NGX_ERROR;
    }

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_dsa_module);

    mcf->threads = ngx_thread_pool_add(cf, NULL);

    ngx_http_dsa_work_malloc();

    return mcf->threads != NULL ? NGX_OK : NGX_ERROR;
}


/*
 * By default glibc gives each thread of the pool a heap of its own, and the
 * longest text that was ever freed is the measure of what a heap keeps: after
 * a few long bodies the idle threads would have hundreds of megabytes.
 */

static void
ngx_http_dsa_work_malloc(void)
{
#ifdef M_ARENA_MAX
    (void) mallopt(M_ARENA_MAX, NGX_HTTP_DSA_WORK_HEAPS);
    (void) mallopt(M_MMAP_THRESHOLD, NGX_HTTP_DSA_WORK_MMAP);
    (void) mallopt(M_TRIM_THRESHOLD, NGX_HTTP_DSA_WORK_TRIM);
#endif
}


ngx_int_t
ngx_http_dsa_work(ngx_http_dsa_work_t *work, ngx_http_dsa_stage_e stage,
    size_t bytes, ngx_http_dsa_work_pt run, ngx_http_dsa_work_pt done,
    void *data)
{
    ngx_http_dsa_job_t  *job;

    assert(work->job == NULL);

    if (ngx_http_dsa_work_short(bytes)) {
        ngx_http_dsa_metrics_add(work[stage].loop, 1);
        ngx_http_dsa_metrics_add(work[stage].loop_bytes, bytes);

        run(data);

        return NGX_OK;
    }

    job = ngx_calloc(sizeof(ngx_http_dsa_job_t), ngx_cycle->log);
    if (job == NULL) {
        ngx_http_dsa_failure_memory(work->failure);
        return NGX_ERROR;
    }

    job->work = work;
    job->request = work->request;
    job->stage = stage;
    job->bytes = bytes;
    job->run = run;
    job->done = done;
    job->data = data;
    job->result = data;

    if (ngx_http_dsa_work_wait(job, work->digest) != NGX_OK) {
        ngx_free(job);

        ngx_http_dsa_metrics_add(work_refused, 1);
        ngx_http_dsa_failure_set(work->failure, NGX_HTTP_TOO_MANY_REQUESTS,
                                 NULL, "Too many large requests of yours are "
                                 "being read; send this one again when some "
                                 "of them have been answered.");
        return NGX_ERROR;
    }

    work->job = job;

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, work->request->connection->log, 0,
                   "dsa work: %s of %uz bytes waits for a thread",
                   ngx_http_dsa_metrics_stage(stage), bytes);

    ngx_http_dsa_work_next();

    return NGX_AGAIN;
}


/*
 * Returns 1 if work of so many bytes runs at once, and counts it.  The time is
 * that of the last turn of the event loop, so it does not change in a turn.
 */

static ngx_uint_t
ngx_http_dsa_work_short(size_t bytes)
{
    if (ngx_http_dsa_work_now != ngx_current_msec) {
        ngx_http_dsa_work_now = ngx_current_msec;
        ngx_http_dsa_work_left = NGX_HTTP_DSA_WORK_TURN;
    }

    if (bytes > NGX_HTTP_DSA_WORK_SHORT || bytes > ngx_http_dsa_work_left) {
        return 0;
    }

    ngx_http_dsa_work_left -= bytes;

    return 1;
}


/*
 * Adds a job to those of its tenant.  NGX_DECLINED: too many wait.  What is
 * made of an answer is not refused, because the answer is paid for.  A request
 * that has begun goes on before others begin: so the tenant waits for less, and
 * few requests need memory for what is made of their bodies.
 */

static ngx_int_t
ngx_http_dsa_work_wait(ngx_http_dsa_job_t *job, const u_char *digest)
{
    size_t                       size;
    ngx_uint_t                   i;
    ngx_queue_t                 *list;
    ngx_http_dsa_work_tenant_t  *tenant;

    if (ngx_http_dsa_work_waiting.next == NULL) {
        ngx_queue_init(&ngx_http_dsa_work_waiting);

        for (i = 0; i < NGX_HTTP_DSA_WORK_LISTS; i++) {
            ngx_queue_init(&ngx_http_dsa_work_lists[i]);
        }
    }

    list = &ngx_http_dsa_work_lists[digest[0] % NGX_HTTP_DSA_WORK_LISTS];

    tenant = ngx_http_dsa_work_tenant(digest, list);
    if (tenant == NULL) {
        return NGX_DECLINED;
    }

    size = sizeof(ngx_http_dsa_job_t) + job->bytes;

    if (tenant->bytes + size > NGX_HTTP_DSA_WORK_WAITING
        && !ngx_queue_empty(&tenant->jobs)
        && job->stage != NGX_HTTP_DSA_STAGE_ANSWER)
    {
        return NGX_DECLINED;
    }

    job->tenant = tenant;
    tenant->bytes += size;

    if (job->stage == NGX_HTTP_DSA_STAGE_PARSE
        || job->stage == NGX_HTTP_DSA_STAGE_OBJECT)
    {
        ngx_queue_insert_tail(&tenant->jobs, &job->queue);

    } else {
        ngx_queue_insert_head(&tenant->jobs, &job->queue);
    }

    return NGX_OK;
}


/* Finds a tenant, or adds it behind the others.  NULL: out of memory. */

static ngx_http_dsa_work_tenant_t *
ngx_http_dsa_work_tenant(const u_char *digest, ngx_queue_t *list)
{
    ngx_queue_t                 *q;
    ngx_http_dsa_work_tenant_t  *tenant;

    for (q = ngx_queue_head(list);
         q != ngx_queue_sentinel(list);
         q = ngx_queue_next(q))
    {
        tenant = ngx_queue_data(q, ngx_http_dsa_work_tenant_t, list);

        if (ngx_memcmp(tenant->digest, digest, NGX_HTTP_DSA_DIGEST_LEN) == 0) {
            return tenant;
        }
    }

    tenant = ngx_calloc(sizeof(ngx_http_dsa_work_tenant_t), ngx_cycle->log);
    if (tenant == NULL) {
        return NULL;
    }

    ngx_memcpy(tenant->digest, digest, NGX_HTTP_DSA_DIGEST_LEN);
    ngx_queue_init(&tenant->jobs);
    ngx_queue_insert_head(list, &tenant->list);
    ngx_queue_insert_tail(&ngx_http_dsa_work_waiting, &tenant->turn);

    return tenant;
}


/* Removes a job that waits, and its tenant if it was the last one. */

static void
ngx_http_dsa_work_unwait(ngx_http_dsa_job_t *job)
{
    ngx_http_dsa_work_tenant_t  *tenant;

    tenant = job->tenant;
    job->tenant = NULL;

    tenant->bytes -= sizeof(ngx_http_dsa_job_t) + job->bytes;
    ngx_queue_remove(&job->queue);

    if (ngx_queue_empty(&tenant->jobs)) {
        ngx_queue_remove(&tenant->turn);
        ngx_queue_remove(&tenant->list);
        ngx_free(tenant);
    }
}


/* Passes the next job to a thread: the first one of the tenant in turn. */

static void
ngx_http_dsa_work_next(void)
{
    ngx_queue_t                 *q;
    ngx_http_dsa_job_t          *job;
    ngx_http_request_t          *r;
    ngx_http_dsa_main_conf_t    *mcf;
    ngx_http_dsa_work_tenant_t  *tenant;

    if (ngx_http_dsa_work_running != NULL
        || ngx_queue_empty(&ngx_http_dsa_work_waiting))
    {
        return;
    }

    q = ngx_queue_head(&ngx_http_dsa_work_waiting);
    tenant = ngx_queue_data(q, ngx_http_dsa_work_tenant_t, turn);

    ngx_queue_remove(q);
    ngx_queue_insert_tail(&ngx_http_dsa_work_waiting, q);

    job = ngx_queue_data(ngx_queue_head(&tenant->jobs), ngx_http_dsa_job_t,
                         queue);

    ngx_http_dsa_work_unwait(job);

    r = job->request;

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "dsa work: %s of %uz bytes runs in a thread",
                   ngx_http_dsa_metrics_stage(job->stage), job->bytes);

    job->task.ctx = job;
    job->task.handler = ngx_http_dsa_work_thread;
    job->task.event.handler = ngx_http_dsa_work_complete;
    job->task.event.data = job;
    job->task.event.log = ngx_cycle->log;

    ngx_http_dsa_work_running = job;
    r->main->blocked++;

    if (!ngx_http_dsa_work_timer.timer_set) {
        ngx_http_dsa_work_dumb.fd = (ngx_socket_t) -1;
        ngx_http_dsa_work_timer.handler = ngx_http_dsa_work_hold;
        ngx_http_dsa_work_timer.data = &ngx_http_dsa_work_dumb;
        ngx_http_dsa_work_timer.log = ngx_cycle->log;

        ngx_add_timer(&ngx_http_dsa_work_timer, NGX_HTTP_DSA_WORK_HOLD);
    }

    mcf = ngx_http_get_module_main_conf(r, ngx_http_dsa_module);

    if (ngx_thread_task_post(mcf->threads, &job->task) == NGX_OK) {
        ngx_http_dsa_metrics_add(work[job->stage].thread, 1);
        ngx_http_dsa_metrics_add(work[job->stage].thread_bytes, job->bytes);
        return;
    }

    /*
     * The queue of the pool is full, which other users have filled; nginx logs
     * it.  The request must not be lost, and other events come before the next
     * job.
     */

    ngx_http_dsa_metrics_add(work[job->stage].loop, 1);
    ngx_http_dsa_metrics_add(work[job->stage].loop_bytes, job->bytes);

    job->run(job->data);

    ngx_post_event(&job->task.event, &ngx_posted_next_events);
}


/* In a thread. */

static void
ngx_http_dsa_work_thread(void *data, ngx_log_t *log)
{
    ngx_http_dsa_job_t *job = data;

    job->run(job->data);
}


static void
ngx_http_dsa_work_complete(ngx_event_t *ev)
{
    void                  *result;
    unsigned               left;
    ngx_connection_t      *c;
    ngx_http_dsa_job_t    *job = ev->data;
    ngx_http_request_t    *r;
    ngx_http_dsa_work_pt   done;

    r = job->request;
    c = r->connection;
    done = job->done;
    result = job->result;
    left = job->left;

    ngx_http_set_log_request(c->log, r);

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, c->log, 0,
                   "dsa work: %s of %uz bytes done",
                   ngx_http_dsa_metrics_stage(job->stage), job->bytes);

    assert(ngx_http_dsa_work_running == job && job->work->job == job);

    ngx_http_dsa_work_running = NULL;
    job->work->job = NULL;
    r->main->blocked--;

    ngx_free(job);

    done(result);

    if (left) {

        /* goes on with the end of the request, see nginx's other tasks */

        r->write_event_handler(r);
    }

    ngx_http_run_posted_requests(c);

    /* more work of the request has its turn among the work that waits */

    ngx_http_dsa_work_next();

    if (ngx_http_dsa_work_running == NULL) {
        ngx_del_timer(&ngx_http_dsa_work_timer);
    }
}


static void
ngx_http_dsa_work_hold(ngx_event_t *ev)
{
    ngx_add_timer(ev, NGX_HTTP_DSA_WORK_HOLD);
}


ngx_uint_t
ngx_http_dsa_work_runs(const ngx_http_dsa_work_t *work)
{
    return work->job != NULL && work->job->tenant == NULL;
}


ngx_int_t
ngx_http_dsa_work_stop(ngx_http_dsa_work_t *work, ngx_http_dsa_work_pt instead,
    void *data)
{
    ngx_http_dsa_job_t  *job;

    job = work->job;

    if (job == NULL) {
        return NGX_OK;
    }

    if (job->tenant == NULL) {
        job->done = instead;
        job->result = data;
        return NGX_AGAIN;
    }

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, work->request->connection->log, 0,
                   "dsa work: %s stopped",
                   ngx_http_dsa_metrics_stage(job->stage));

    ngx_http_dsa_work_unwait(job);
    ngx_free(job);

    work->job = NULL;

    return NGX_OK;
}


ngx_int_t
ngx_http_dsa_work_leave(ngx_http_dsa_work_t *work,
    ngx_http_dsa_work_pt instead, void *data)
{
    if (ngx_http_dsa_work_stop(work, instead, data) == NGX_OK) {
        return NGX_OK;
    }

    work->job->left = 1;

    return NGX_AGAIN;
}
