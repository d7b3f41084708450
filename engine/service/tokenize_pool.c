
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/wake.h"
#include "engine/service/prepare.h"
#include "engine/service/tokenize_pool.h"


#define DSA_POOL_MANY_CPUS  16


typedef struct dsa_pool_queue_s  dsa_pool_queue_t;

struct dsa_pool_queue_s {
    dsa_pool_queue_t       *next;       /* next queue with requests, in a
                                           ring */
    dsa_request_t          *first;
    dsa_request_t          *last;
    size_t                  bytes;      /* of waiting copies */
};


/*
 * Prompts of one class.  `at` is the queue in front of the next one to serve.
 */

typedef struct {
    dsa_pool_queue_t        queue[DSA_POOL_TURNS];
    dsa_pool_queue_t       *at;         /* NULL: no request waits */
    size_t                  bytes;      /* of copies, queued or being
                                           prepared */
} dsa_pool_class_t;


typedef struct {
    dsa_pool_t             *pool;
    pthread_t               thread;
    pthread_cond_t          work;
    uint32_t                idle;
    uint32_t                number;
    dsa_tokenizer_work_t   *scratch;
} dsa_pool_thread_t;


struct dsa_pool_s {
    const dsa_service_t    *service;
    int                     wake;
    uint32_t                n_threads;
    dsa_pool_thread_t       thread[DSA_POOL_THREADS];

    pthread_mutex_t         mutex;      /* protects the rest, and
                                           thread[].idle */
    dsa_pool_class_t        small;
    dsa_pool_class_t        large;
    dsa_request_t          *first;      /* ready to collect */
    dsa_request_t          *last;
    uint32_t                stop;
};


static void *dsa_pool_thread(void *data);
static dsa_request_t *dsa_pool_next(dsa_pool_t *p, uint32_t number);
static dsa_request_t *dsa_pool_take(dsa_pool_class_t *c);
static int dsa_pool_prepare(dsa_pool_t *p, dsa_tokenizer_work_t *scratch,
    dsa_request_t *r);
static void dsa_pool_signal(dsa_pool_t *p, int is_long);


static inline dsa_pool_class_t *
dsa_pool_class(dsa_pool_t *p, const dsa_request_t *r)
{
    return r->len > DSA_POOL_SHORT ? &p->large : &p->small;
}


dsa_pool_t *
dsa_pool_create(const dsa_service_t *service, int wake, dsa_err_t *err)
{
    uint32_t            i;
    dsa_pool_t         *p;
    dsa_pool_thread_t  *t;

    p = calloc(1, sizeof(dsa_pool_t));

    if (p == NULL) {
        (void) dsa_error(err, "out of memory");
        return NULL;
    }

    p->service = service;
    p->wake = wake;

    (void) pthread_mutex_init(&p->mutex, NULL);

    for (i = 0; i < DSA_POOL_THREADS; i++) {
        t = &p->thread[i];

        t->pool = p;
        t->number = i;
        (void) pthread_cond_init(&t->work, NULL);
    }

    p->thread[0].scratch = dsa_tokenizer_work_create(service->tokenizer);

    if (p->thread[0].scratch == NULL) {
        (void) dsa_error(err, "out of memory");
        dsa_pool_destroy(p);
        return NULL;
    }

    return p;
}


int
dsa_pool_start(dsa_pool_t *p, dsa_err_t *err)
{
    int                 rc;
    uint32_t            n;
    dsa_pool_thread_t  *t;

    n = sysconf(_SC_NPROCESSORS_ONLN) >= DSA_POOL_MANY_CPUS ? DSA_POOL_THREADS
                                                            : 2;

    while (p->n_threads < n) {
        t = &p->thread[p->n_threads];

        if (t->scratch == NULL) {
            t->scratch = dsa_tokenizer_work_create(p->service->tokenizer);
        }

        rc = t->scratch != NULL
             ? pthread_create(&t->thread, NULL, dsa_pool_thread, t) : ENOMEM;

        if (rc != 0) {
            return dsa_error(err, "cannot start a tokenizer thread: %s",
                             strerror(rc));
        }

        p->n_threads++;
    }

    return DSA_OK;
}


void
dsa_pool_stop(dsa_pool_t *p)
{
    uint32_t        i;
    dsa_request_t  *r;

    (void) pthread_mutex_lock(&p->mutex);

    p->stop = 1;

    for (i = 0; i < p->n_threads; i++) {
        (void) pthread_cond_signal(&p->thread[i].work);
    }

    (void) pthread_mutex_unlock(&p->mutex);

    while (p->n_threads != 0) {
        (void) pthread_join(p->thread[--p->n_threads].thread, NULL);
    }

    for ( ;; ) {
        r = dsa_pool_take(&p->small);

        if (r == NULL) {
            r = dsa_pool_take(&p->large);
        }

        if (r == NULL) {
            return;
        }

        r->next_job = p->first;
        p->first = r;

        if (p->last == NULL) {
            p->last = r;
        }
    }
}


void
dsa_pool_destroy(dsa_pool_t *p)
{
    uint32_t  i;

    if (p == NULL) {
        return;
    }

    assert(p->n_threads == 0 && p->first == NULL && p->small.at == NULL
           && p->large.at == NULL);

    for (i = 0; i < DSA_POOL_THREADS; i++) {
        dsa_tokenizer_work_destroy(p->thread[i].scratch);
        (void) pthread_cond_destroy(&p->thread[i].work);
    }

    (void) pthread_mutex_destroy(&p->mutex);
    free(p);
}


int
dsa_pool_room(dsa_pool_t *p, size_t len)
{
    int  room;

    if (len > DSA_POOL_SHORT) {
        return 1;
    }

    (void) pthread_mutex_lock(&p->mutex);
    room = p->small.bytes + len <= DSA_POOL_BYTES;
    (void) pthread_mutex_unlock(&p->mutex);

    return room;
}


int
dsa_pool_push(dsa_pool_t *p, dsa_request_t *r)
{
    dsa_pool_class_t  *c;
    dsa_pool_queue_t  *q;

    c = dsa_pool_class(p, r);
    q = &c->queue[r->turn % DSA_POOL_TURNS];

    (void) pthread_mutex_lock(&p->mutex);

    if (c == &p->large
        && ((c->bytes != 0 && c->bytes + r->len > DSA_POOL_BYTES)
            || (q->bytes != 0 && q->bytes + r->len > DSA_POOL_BYTES / 2)))
    {
        (void) pthread_mutex_unlock(&p->mutex);
        return DSA_ERROR;
    }

    r->state = DSA_REQUEST_TOKENIZE;
    r->next_job = NULL;

    if (q->first != NULL) {
        q->last->next_job = r;

    } else {
        q->first = r;

        /* append to the ring: insert after `at` */

        if (c->at != NULL) {
            q->next = c->at->next;
            c->at->next = q;

        } else {
            q->next = q;
        }

        c->at = q;
    }

    q->last = r;
    q->bytes += r->len;
    c->bytes += r->len;

    dsa_pool_signal(p, c == &p->large);
    (void) pthread_mutex_unlock(&p->mutex);

    return DSA_OK;
}


/*
 * Wakes an idle thread that may serve the request.  The caller holds the
 * mutex.
 */

static void
dsa_pool_signal(dsa_pool_t *p, int is_long)
{
    uint32_t  i;

    for (i = is_long ? 1 : 0; i < p->n_threads; i++) {
        if (p->thread[i].idle) {
            p->thread[i].idle = 0;
            (void) pthread_cond_signal(&p->thread[i].work);
            return;
        }
    }
}


dsa_request_t *
dsa_pool_collect(dsa_pool_t *p)
{
    dsa_request_t  *list;

    (void) pthread_mutex_lock(&p->mutex);

    list = p->first;
    p->first = NULL;
    p->last = NULL;

    (void) pthread_mutex_unlock(&p->mutex);

    return list;
}


void
dsa_pool_run(dsa_pool_t *p)
{
    dsa_request_t  *r;

    for ( ;; ) {
        (void) pthread_mutex_lock(&p->mutex);
        r = dsa_pool_next(p, 1);
        (void) pthread_mutex_unlock(&p->mutex);

        if (r == NULL) {
            return;
        }

        (void) dsa_pool_prepare(p, p->thread[0].scratch, r);
    }
}


static void *
dsa_pool_thread(void *data)
{
    dsa_pool_t         *p;
    dsa_request_t      *r;
    dsa_pool_thread_t  *t;

    t = data;
    p = t->pool;

    if (t->number != 0) {
        (void) setpriority(PRIO_PROCESS, (id_t) gettid(), DSA_POOL_NICE);
    }

    /* the other threads serve requests at the same time */

    if (t->number == 1) {
        dsa_grammars_warm(p->service->grammars);
    }

    (void) pthread_mutex_lock(&p->mutex);

    while (!p->stop) {
        r = dsa_pool_next(p, t->number);

        if (r == NULL) {
            t->idle = 1;
            (void) pthread_cond_wait(&t->work, &p->mutex);
            t->idle = 0;
            continue;
        }

        (void) pthread_mutex_unlock(&p->mutex);

        if (dsa_pool_prepare(p, t->scratch, r)) {
            dsa_wake(p->wake);
        }

        (void) pthread_mutex_lock(&p->mutex);
    }

    (void) pthread_mutex_unlock(&p->mutex);

    return NULL;
}


/*
 * Returns the next request for this thread, or NULL.  The caller holds the
 * mutex.
 */

static dsa_request_t *
dsa_pool_next(dsa_pool_t *p, uint32_t number)
{
    dsa_request_t  *r;

    r = number != 0 ? dsa_pool_take(&p->large) : NULL;

    return r != NULL ? r : dsa_pool_take(&p->small);
}


static dsa_request_t *
dsa_pool_take(dsa_pool_class_t *c)
{
    dsa_request_t     *r;
    dsa_pool_queue_t  *q;

    if (c->at == NULL) {
        return NULL;
    }

    q = c->at->next;
    r = q->first;

    q->first = r->next_job;
    q->bytes -= r->len;

    if (q->first != NULL) {
        c->at = q;

    } else if (q == c->at) {
        c->at = NULL;

    } else {
        c->at->next = q->next;
    }

    return r;
}


/*
 * Adds a request to the ready list.  Returns 1 if the list was empty, so that
 * the I/O thread has to be woken.
 */

static int
dsa_pool_prepare(dsa_pool_t *p, dsa_tokenizer_work_t *scratch,
    dsa_request_t *r)
{
    int     first;
    size_t  len;

    len = r->len;

    if (!atomic_load(&r->abandoned)) {
        dsa_prepare(p->service, scratch, r);
    }

    (void) pthread_mutex_lock(&p->mutex);

    first = p->first == NULL;
    r->next_job = NULL;

    if (first) {
        p->first = r;

    } else {
        p->last->next_job = r;
    }

    p->last = r;
    dsa_pool_class(p, r)->bytes -= len;

    (void) pthread_mutex_unlock(&p->mutex);

    return first;
}
