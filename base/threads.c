
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/threads.h"


/* Polls between two reads of the clock while waiting actively. */
#define DSA_THREADS_POLLS  64


/*
 * left is the number of pieces that no thread has claimed.  A thread claims one
 * by decreasing it.  The job of a claimed piece cannot end before the piece is
 * done, so its other fields are read only after the claim and are stable until
 * done is increased.
 */

struct dsa_threads_s {
    _Atomic uint32_t    left;
    _Atomic uint32_t    done;           /* pieces that are computed */
    uint32_t            pieces;
    dsa_threads_work_pt    work;
    void               *ctx;

    uint64_t            alone_until;    /* us */
    uint64_t            alone;          /* us, of the last time */

    atomic_int          running;        /* a job is */
    atomic_int          stop;
    atomic_int          waiting;        /* the caller sleeps */
    atomic_int          sleeping;       /* threads that sleep */
    pthread_mutex_t     mutex;          /* of both conditions */
    pthread_cond_t      wake;           /* left is not 0, or stop */
    pthread_cond_t      finished;       /* done is pieces */

    uint32_t            threads;
    uint32_t            started;        /* of thread[] */
    pthread_t           thread[];       /* [threads - 1] */
};


typedef struct {
    dsa_threads_t         *pool;
    uint32_t            number;
} dsa_threads_start_t;


static void *dsa_threads_main(void *data);
static void dsa_threads_wait(dsa_threads_t *pool);
static void dsa_threads_late(dsa_threads_t *pool, uint64_t start,
    uint64_t computed);
static void dsa_threads_compute(dsa_threads_t *pool, uint32_t thread);


uint32_t
dsa_threads_cpus(void)
{
    int        n;
    cpu_set_t  set;

    if (sched_getaffinity(0, sizeof(set), &set) != 0) {
        return 1;           /* more CPUs than a cpu_set_t has room for */
    }

    n = CPU_COUNT(&set);

    return n > 0 ? (uint32_t) n : 1;
}


dsa_threads_t *
dsa_threads_create(uint32_t threads, dsa_err_t *err)
{
    int                rc;
    sigset_t           all, old;
    dsa_threads_t        *pool;
    dsa_threads_start_t  *start;

    if (threads == 0) {
        (void) dsa_error(err, "a pool of 0 threads was requested; expected 1 "
                         "or more");
        return NULL;
    }

    pool = calloc(1, sizeof(dsa_threads_t)
                     + (size_t) (threads - 1) * sizeof(pthread_t));
    if (pool == NULL) {
        (void) dsa_error(err, "no memory for a pool of %u threads", threads);
        return NULL;
    }

    pool->threads = threads;
    (void) pthread_mutex_init(&pool->mutex, NULL);
    (void) pthread_cond_init(&pool->wake, NULL);
    (void) pthread_cond_init(&pool->finished, NULL);

    /* threads inherit the mask: signals are for the thread that handles them */

    (void) sigfillset(&all);
    (void) pthread_sigmask(SIG_SETMASK, &all, &old);

    for (rc = 0; pool->started < threads - 1; pool->started++) {
        start = malloc(sizeof(dsa_threads_start_t));
        if (start == NULL) {
            rc = ENOMEM;
            break;
        }

        start->pool = pool;
        start->number = pool->started + 1;

        rc = pthread_create(&pool->thread[pool->started], NULL,
                            dsa_threads_main, start);
        if (rc != 0) {
            free(start);
            break;
        }
    }

    (void) pthread_sigmask(SIG_SETMASK, &old, NULL);

    if (rc != 0) {
        (void) dsa_error(err, "thread %u of a pool of %u cannot be started: "
                         "%s", pool->started + 1, threads, strerror(rc));
        dsa_threads_destroy(pool);
        return NULL;
    }

    return pool;
}


void
dsa_threads_destroy(dsa_threads_t *pool)
{
    uint32_t  i;

    if (pool == NULL) {
        return;
    }

    assert(atomic_load(&pool->running) == 0);

    (void) pthread_mutex_lock(&pool->mutex);
    atomic_store(&pool->stop, 1);
    (void) pthread_cond_broadcast(&pool->wake);
    (void) pthread_mutex_unlock(&pool->mutex);

    for (i = 0; i < pool->started; i++) {
        (void) pthread_join(pool->thread[i], NULL);
    }

    (void) pthread_cond_destroy(&pool->finished);
    (void) pthread_cond_destroy(&pool->wake);
    (void) pthread_mutex_destroy(&pool->mutex);
    free(pool);
}


uint32_t
dsa_threads_count(const dsa_threads_t *pool)
{
    return pool->threads;
}


static uint64_t
dsa_threads_clock_us(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}


static inline void
dsa_threads_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile ("yield");
#endif
}


void
dsa_threads_run(dsa_threads_t *pool, uint32_t pieces,
    dsa_threads_work_pt work, void *ctx)
{
    int       running;
    uint32_t  i;
    uint64_t  start, computed;

    running = atomic_exchange(&pool->running, 1);
    assert(running == 0);

    start = pool->threads == 1 || pieces <= 1 ? 0 : dsa_threads_clock_us();

    if (start <= pool->alone_until) {
        for (i = 0; i < pieces; i++) {
            work(ctx, i, 0);
        }

        atomic_store(&pool->running, 0);
        return;
    }

    pool->work = work;
    pool->ctx = ctx;
    pool->pieces = pieces;
    atomic_store(&pool->done, 0);
    atomic_store(&pool->left, pieces);

    if (atomic_load(&pool->sleeping) != 0) {
        (void) pthread_mutex_lock(&pool->mutex);
        (void) pthread_cond_broadcast(&pool->wake);
        (void) pthread_mutex_unlock(&pool->mutex);
    }

    dsa_threads_compute(pool, 0);
    computed = dsa_threads_clock_us();

    dsa_threads_wait(pool);
    dsa_threads_late(pool, start, computed);

    atomic_store(&pool->running, 0);
}


/*
 * Whether the caller should compute jobs alone for some time.  start: when it
 * began to compute; computed: when it found no further piece to claim.
 */

static void
dsa_threads_late(dsa_threads_t *pool, uint64_t start, uint64_t computed)
{
    uint64_t  now;

    now = dsa_threads_clock_us();

    if (now - computed <= DSA_THREADS_LATE_US
        || now - computed <= computed - start)
    {
        pool->alone -= pool->alone / 1024;
        return;
    }

    pool->alone = pool->alone < DSA_THREADS_ALONE_US ? DSA_THREADS_ALONE_US
                                                  : 2 * pool->alone;
    if (pool->alone > 64 * DSA_THREADS_ALONE_US) {
        pool->alone = 64 * DSA_THREADS_ALONE_US;
    }

    pool->alone_until = now + pool->alone;
}


/* Computes pieces until none is left to claim. */

static void
dsa_threads_compute(dsa_threads_t *pool, uint32_t thread)
{
    uint32_t  left, pieces;

    left = atomic_load(&pool->left);

    while (left != 0) {
        if (!atomic_compare_exchange_weak(&pool->left, &left, left - 1)) {
            continue;
        }

        pieces = pool->pieces;
        pool->work(pool->ctx, pieces - left, thread);

        /* from here on the job may be over, and the next one be there */

        if (atomic_fetch_add(&pool->done, 1) + 1 == pieces
            && atomic_load(&pool->waiting) != 0)
        {
            (void) pthread_mutex_lock(&pool->mutex);
            (void) pthread_cond_signal(&pool->finished);
            (void) pthread_mutex_unlock(&pool->mutex);
        }

        left = atomic_load(&pool->left);
    }
}


/* The caller, when no piece is left: until the other threads are done. */

static void
dsa_threads_wait(dsa_threads_t *pool)
{
    uint32_t  i;
    uint64_t  end;

    end = 0;

    for ( ;; ) {
        for (i = 0; i < DSA_THREADS_POLLS; i++) {
            if (atomic_load(&pool->done) == pool->pieces) {
                return;
            }

            dsa_threads_pause();
        }

        if (end == 0) {
            end = dsa_threads_clock_us() + DSA_THREADS_SPIN_US;

        } else if (dsa_threads_clock_us() >= end) {
            break;
        }
    }

    (void) pthread_mutex_lock(&pool->mutex);
    atomic_store(&pool->waiting, 1);

    while (atomic_load(&pool->done) != pool->pieces) {
        (void) pthread_cond_wait(&pool->finished, &pool->mutex);
    }

    atomic_store(&pool->waiting, 0);
    (void) pthread_mutex_unlock(&pool->mutex);
}


/* Waits until a piece may be claimed; returns 0 when the pool ends. */

static int
dsa_threads_idle(dsa_threads_t *pool)
{
    uint32_t  i;
    uint64_t  end;

    end = 0;

    for ( ;; ) {
        for (i = 0; i < DSA_THREADS_POLLS; i++) {
            if (atomic_load_explicit(&pool->left, memory_order_relaxed) != 0) {
                return 1;
            }

            dsa_threads_pause();
        }

        if (end == 0) {
            end = dsa_threads_clock_us() + DSA_THREADS_SPIN_US;

        } else if (dsa_threads_clock_us() >= end) {
            break;
        }
    }

    (void) pthread_mutex_lock(&pool->mutex);
    (void) atomic_fetch_add(&pool->sleeping, 1);

    while (atomic_load(&pool->left) == 0 && atomic_load(&pool->stop) == 0) {
        (void) pthread_cond_wait(&pool->wake, &pool->mutex);
    }

    (void) atomic_fetch_sub(&pool->sleeping, 1);
    (void) pthread_mutex_unlock(&pool->mutex);

    return atomic_load(&pool->stop) == 0;
}


static void *
dsa_threads_main(void *data)
{
    dsa_threads_start_t  start;

    start = *(dsa_threads_start_t *) data;
    free(data);

    while (dsa_threads_idle(start.pool)) {
        dsa_threads_compute(start.pool, start.number);
    }

    return NULL;
}
