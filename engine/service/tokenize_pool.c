
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

#include "base/map.h"
#include "base/wake.h"
#include "engine/service/prepare.h"
#include "engine/service/tokenize_pool.h"


#define DSA_POOL_MANY_CPUS  16


#define DSA_POOL_TENANT     32          /* bytes of a digest */
#define DSA_POOL_SCALE      65536       /* of service counts */


/* Requests are short or long; a short one that needs slow work becomes long. */

typedef enum {
    DSA_POOL_SMALL = 0,
    DSA_POOL_LARGE,
    DSA_POOL_CLASSES
} dsa_pool_class_e;


/* What waits of a tenant in a class, and what the class has done for it. */

typedef struct {
    dsa_request_t          *first;
    dsa_request_t          *last;
    uint64_t                served;     /* cost / weight of all requests that
                                           were taken */
} dsa_pool_line_t;


typedef struct dsa_pool_tenant_s  dsa_pool_tenant_t;

struct dsa_pool_tenant_s {
    dsa_pool_tenant_t      *prev;       /* list of all */
    dsa_pool_tenant_t      *next;
    dsa_pool_line_t         line[DSA_POOL_CLASSES];
    uint32_t                n;          /* requests that wait or are being */
    size_t                  bytes;      /* prepared, and their copies */
    uint8_t                 digest[DSA_POOL_TENANT];
};


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
    dsa_map_t               tenants;    /* by digest */
    dsa_pool_tenant_t      *oldest;
    dsa_pool_tenant_t      *newest;
    uint64_t                now[DSA_POOL_CLASSES];  /* served of the tenant
                                           that was served last */
    uint32_t                n;          /* requests of all tenants, */
    size_t                  bytes;      /* and their copies */
    dsa_request_t          *first;      /* ready to collect */
    dsa_request_t          *last;
    uint32_t                stop;
};


static dsa_pool_tenant_t *dsa_pool_tenant(dsa_pool_t *p,
    const uint8_t *digest);
static int dsa_pool_enter(dsa_pool_t *p, dsa_pool_tenant_t *t,
    dsa_request_t *r);
static void dsa_pool_leave(dsa_pool_t *p, dsa_pool_tenant_t *t);
static int dsa_pool_admit(dsa_pool_t *p, dsa_pool_tenant_t *t, size_t len);
static dsa_pool_tenant_t *dsa_pool_most(const dsa_pool_t *p);
static dsa_request_t *dsa_pool_newest(dsa_pool_tenant_t *t);
static void dsa_pool_append(dsa_pool_t *p, dsa_pool_tenant_t *t,
    dsa_pool_class_e class, dsa_request_t *r);
static void dsa_pool_signal(dsa_pool_t *p, int is_long);
static void *dsa_pool_thread(void *data);
static dsa_request_t *dsa_pool_next(dsa_pool_t *p, uint32_t number);
static dsa_request_t *dsa_pool_take(dsa_pool_t *p, dsa_pool_class_e class);
static void dsa_pool_charge(dsa_pool_line_t *line, uint64_t cost,
    uint32_t weight);
static void dsa_pool_forget(dsa_pool_t *p, dsa_pool_tenant_t *t);
static int dsa_pool_prepare(dsa_pool_t *p, dsa_tokenizer_work_t *scratch,
    dsa_request_t *r, int slow);
static int dsa_pool_ready(dsa_pool_t *p, dsa_request_t *r);


static inline dsa_str_t
dsa_pool_key(const uint8_t *digest)
{
    return dsa_str((const char *) digest, DSA_POOL_TENANT);
}


/* The class of a request, which it keeps until it is moved. */

static inline dsa_pool_class_e
dsa_pool_class(const dsa_request_t *r)
{
    return r->len > DSA_POOL_SHORT || r->moved ? DSA_POOL_LARGE
                                               : DSA_POOL_SMALL;
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
        r = dsa_pool_next(p, 1);

        if (r == NULL) {
            return;
        }

        (void) dsa_pool_ready(p, r);
    }
}


void
dsa_pool_destroy(dsa_pool_t *p)
{
    uint32_t  i;

    if (p == NULL) {
        return;
    }

    assert(p->n_threads == 0 && p->first == NULL && p->n == 0);

    dsa_map_free(&p->tenants);

    for (i = 0; i < DSA_POOL_THREADS; i++) {
        dsa_tokenizer_work_destroy(p->thread[i].scratch);
        (void) pthread_cond_destroy(&p->thread[i].work);
    }

    (void) pthread_mutex_destroy(&p->mutex);
    free(p);
}


int
dsa_pool_push(dsa_pool_t *p, dsa_request_t *r)
{
    int                 rc;
    dsa_pool_tenant_t  *t;

    rc = DSA_ERROR;

    (void) pthread_mutex_lock(&p->mutex);

    t = dsa_pool_tenant(p, r->tenant);

    if (t != NULL) {
        rc = dsa_pool_enter(p, t, r);
    }

    (void) pthread_mutex_unlock(&p->mutex);

    return rc;
}


/* Admits a request or not; the caller holds the mutex, as all below do. */

static int
dsa_pool_enter(dsa_pool_t *p, dsa_pool_tenant_t *t, dsa_request_t *r)
{
    /* count the request first, so that its tenant is not forgotten meanwhile */

    t->n++;
    p->n++;

    if (!dsa_pool_admit(p, t, r->len)) {
        dsa_pool_leave(p, t);
        return DSA_AGAIN;
    }

    t->bytes += r->len;
    p->bytes += r->len;
    r->state = DSA_REQUEST_TOKENIZE;

    dsa_pool_append(p, t, dsa_pool_class(r), r);

    return DSA_OK;
}


/*
 * One request less.  When nothing is left to share, no tenant is behind or
 * ahead of another one any more.
 */

static void
dsa_pool_leave(dsa_pool_t *p, dsa_pool_tenant_t *t)
{
    t->n--;

    if (--p->n != 0) {
        return;
    }

    while (p->oldest != NULL) {
        dsa_pool_forget(p, p->oldest);
    }

    memset(p->now, 0, sizeof(p->now));
}


/* Finds or adds a tenant.  NULL: no memory. */

static dsa_pool_tenant_t *
dsa_pool_tenant(dsa_pool_t *p, const uint8_t *digest)
{
    dsa_pool_tenant_t  *t;

    t = dsa_map_find_pointer(&p->tenants, dsa_pool_key(digest));

    if (t != NULL) {
        return t;
    }

    t = calloc(1, sizeof(dsa_pool_tenant_t));

    if (t == NULL) {
        return NULL;
    }

    memcpy(t->digest, digest, sizeof(t->digest));

    if (dsa_map_add_pointer(&p->tenants, dsa_pool_key(t->digest), t)
        != DSA_OK)
    {
        free(t);
        return NULL;
    }

    t->prev = p->newest;

    if (p->newest != NULL) {
        p->newest->next = t;

    } else {
        p->oldest = t;
    }

    p->newest = t;

    return t;
}


/*
 * Makes room for a copy of len bytes.  When the copies of all tenants take too
 * much, the tenant with most of them loses its newest one, unless that is the
 * tenant of the copy.
 */

static int
dsa_pool_admit(dsa_pool_t *p, dsa_pool_tenant_t *t, size_t len)
{
    dsa_request_t      *r;
    dsa_pool_tenant_t  *most;

    if (t->bytes != 0 && t->bytes + len > DSA_POOL_BYTES / 2) {
        return 0;
    }

    while (p->bytes != 0 && p->bytes + len > DSA_POOL_BYTES) {
        most = dsa_pool_most(p);

        if (most == NULL || most->bytes <= t->bytes + len) {
            return 0;
        }

        r = dsa_pool_newest(most);
        dsa_request_reject(r, DSA_LINK_E_TENANT, "too many prompts of this "
                           "tenant wait to be tokenized");

        if (dsa_pool_ready(p, r)) {
            dsa_wake(p->wake);
        }
    }

    return 1;
}


/* The tenant with the most bytes of those that have a waiting request. */

static dsa_pool_tenant_t *
dsa_pool_most(const dsa_pool_t *p)
{
    dsa_pool_tenant_t  *t, *most;

    most = NULL;

    for (t = p->oldest; t != NULL; t = t->next) {
        if ((t->line[DSA_POOL_SMALL].first != NULL
             || t->line[DSA_POOL_LARGE].first != NULL)
            && (most == NULL || t->bytes > most->bytes))
        {
            most = t;
        }
    }

    return most;
}


/* Removes the newest request that waits, a long one if there is one. */

static dsa_request_t *
dsa_pool_newest(dsa_pool_tenant_t *t)
{
    dsa_request_t    *r, *before;
    dsa_pool_line_t  *line;

    line = &t->line[DSA_POOL_LARGE];

    if (line->first == NULL) {
        line = &t->line[DSA_POOL_SMALL];
    }

    before = NULL;

    for (r = line->first; r->next_job != NULL; r = r->next_job) {
        before = r;
    }

    if (before != NULL) {
        before->next_job = NULL;

    } else {
        line->first = NULL;
    }

    line->last = before;

    return r;
}


/* A line that was empty gets no credit for the time until now. */

static void
dsa_pool_append(dsa_pool_t *p, dsa_pool_tenant_t *t, dsa_pool_class_e class,
    dsa_request_t *r)
{
    dsa_pool_line_t  *line;

    line = &t->line[class];
    r->next_job = NULL;

    if (line->first != NULL) {
        line->last->next_job = r;

    } else {
        line->first = r;

        if (line->served < p->now[class]) {
            line->served = p->now[class];
        }
    }

    line->last = r;

    dsa_pool_signal(p, class == DSA_POOL_LARGE);
}


/* Wakes an idle thread that may serve the request. */

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

        (void) dsa_pool_prepare(p, p->thread[0].scratch, r, 1);
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

        if (dsa_pool_prepare(p, t->scratch, r, t->number != 0)) {
            dsa_wake(p->wake);
        }

        (void) pthread_mutex_lock(&p->mutex);
    }

    (void) pthread_mutex_unlock(&p->mutex);

    return NULL;
}


/* Returns the next request for this thread, or NULL. */

static dsa_request_t *
dsa_pool_next(dsa_pool_t *p, uint32_t number)
{
    dsa_request_t  *r;

    r = number != 0 ? dsa_pool_take(p, DSA_POOL_LARGE) : NULL;

    return r != NULL ? r : dsa_pool_take(p, DSA_POOL_SMALL);
}


/*
 * Takes the next request of the tenant that was served least, of those with a
 * request.  A tenant without requests is kept while it was served more.
 */

static dsa_request_t *
dsa_pool_take(dsa_pool_t *p, dsa_pool_class_e class)
{
    dsa_request_t      *r;
    dsa_pool_line_t    *line;
    dsa_pool_tenant_t  *t, *next;

    line = NULL;

    for (t = p->oldest; t != NULL; t = next) {
        next = t->next;

        if (t->line[class].first != NULL
            && (line == NULL || t->line[class].served < line->served))
        {
            line = &t->line[class];
        }

        if (t->n == 0
            && t->line[DSA_POOL_SMALL].served <= p->now[DSA_POOL_SMALL]
            && t->line[DSA_POOL_LARGE].served <= p->now[DSA_POOL_LARGE])
        {
            dsa_pool_forget(p, t);
        }
    }

    if (line == NULL) {
        return NULL;
    }

    r = line->first;
    line->first = r->next_job;

    if (line->first == NULL) {
        line->last = NULL;
    }

    p->now[class] = line->served;
    dsa_pool_charge(line, r->len, r->weight);

    return r;
}


static void
dsa_pool_charge(dsa_pool_line_t *line, uint64_t cost, uint32_t weight)
{
    line->served += 1 + cost * DSA_POOL_SCALE / weight;
}


static void
dsa_pool_forget(dsa_pool_t *p, dsa_pool_tenant_t *t)
{
    if (t->prev != NULL) {
        t->prev->next = t->next;

    } else {
        p->oldest = t->next;
    }

    if (t->next != NULL) {
        t->next->prev = t->prev;

    } else {
        p->newest = t->prev;
    }

    (void) dsa_map_delete(&p->tenants, dsa_pool_key(t->digest));
    free(t);
}


/*
 * Prepares a request and adds it to the ready list, or to the long ones if it
 * needs a thread for slow work.  Returns 1 if the list was empty, so that the
 * I/O thread has to be woken.
 */

static int
dsa_pool_prepare(dsa_pool_t *p, dsa_tokenizer_work_t *scratch,
    dsa_request_t *r, int slow)
{
    int                 rc, first;
    dsa_pool_tenant_t  *t;

    rc = DSA_OK;

    if (!atomic_load(&r->abandoned)) {
        rc = dsa_prepare(p->service, scratch, r, slow);
    }

    (void) pthread_mutex_lock(&p->mutex);

    t = dsa_pool_tenant(p, r->tenant);
    first = 0;

    if (rc == DSA_AGAIN) {
        r->moved = 1;
        dsa_pool_append(p, t, DSA_POOL_LARGE, r);

    } else {

        /* what preparing it has cost beyond the length of its record */

        dsa_pool_charge(&t->line[dsa_pool_class(r)], r->cost - r->len,
                        r->weight);
        first = dsa_pool_ready(p, r);
    }

    (void) pthread_mutex_unlock(&p->mutex);

    return first;
}


/* Adds a request to the ready list; 1: the list was empty. */

static int
dsa_pool_ready(dsa_pool_t *p, dsa_request_t *r)
{
    int                 first;
    dsa_pool_tenant_t  *t;

    t = dsa_pool_tenant(p, r->tenant);

    t->bytes -= r->len;
    p->bytes -= r->len;
    dsa_pool_leave(p, t);

    first = p->first == NULL;
    r->next_job = NULL;

    if (first) {
        p->first = r;

    } else {
        p->last->next_job = r;
    }

    p->last = r;

    return first;
}
