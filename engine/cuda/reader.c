
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/cuda/reader.h"
#include "kernels/bf16.h"
#include "kernels/cuda.h"


#define DSA_READERS         16          /* most threads */
#define DSA_READER_BYTES    (8U << 20)  /* of a pinned buffer; two a thread */
#define DSA_PROGRESS_MS     2000        /* between log lines */


/* What the threads share; lock protects all but the tasks. */

typedef struct {
    const dsa_read_task_t  *task;
    size_t                  tasks;
    size_t                  next;       /* the first task not yet started */
    uint64_t                done;       /* bytes */
    unsigned                running;    /* threads */
    int                     device;
    int                     rc;         /* the first error */
    pthread_mutex_t         lock;
    pthread_cond_t          ended;      /* a thread ended */
} dsa_readers_t;


/* What one thread has: while one buffer is copied, the other is filled. */

typedef struct {
    uint8_t                *buffer[2];  /* pinned */
    cudaEvent_t             event[2];   /* the last copy of a buffer */
    cudaStream_t            stream;
    unsigned                next;       /* buffer */
} dsa_reader_t;


static int
dsa_reader_open(dsa_reader_t *r)
{
    int       rc;
    unsigned  i;

    rc = cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking);

    for (i = 0; i < 2 && rc == 0; i++) {
        rc = cudaMallocHost((void **) &r->buffer[i], DSA_READER_BYTES);

        if (rc == 0) {
            rc = cudaEventCreateWithFlags(&r->event[i],
                                          cudaEventDisableTiming);
        }
    }

    return rc;
}


static void
dsa_reader_close(dsa_reader_t *r)
{
    unsigned  i;

    for (i = 0; i < 2; i++) {
        if (r->event[i] != NULL) {
            (void) cudaEventDestroy(r->event[i]);
        }

        (void) cudaFreeHost(r->buffer[i]);
    }

    if (r->stream != NULL) {
        (void) cudaStreamDestroy(r->stream);
    }
}


/* Bytes at .. at+n-1 of a task's destination. */

static void
dsa_reader_fill(uint8_t *to, const dsa_read_task_t *t, uint64_t at, uint64_t n)
{
    if (t->widen) {
        assert(t->copy.runs == 1);
        dsa_bf16_decode_rows((float *) (void *) to,
                             t->from + t->copy.from + at / 2, n / 4);

    } else {
        dsa_slice_copy_part(to, t->from, &t->copy, at, n);
    }
}


static int
dsa_reader_task(dsa_reader_t *r, const dsa_read_task_t *t)
{
    int       rc;
    unsigned  i;
    uint64_t  at, n;

    for (at = 0, rc = 0; at < t->bytes && rc == 0; at += n) {
        n = t->bytes - at < DSA_READER_BYTES ? t->bytes - at
                                             : DSA_READER_BYTES;
        i = r->next++ % 2;

        rc = cudaEventSynchronize(r->event[i]);

        if (rc == 0) {
            dsa_reader_fill(r->buffer[i], t, at, n);
            rc = cudaMemcpyAsync(t->to + at, r->buffer[i], n,
                                 cudaMemcpyHostToDevice, r->stream);
        }

        if (rc == 0) {
            rc = cudaEventRecord(r->event[i], r->stream);
        }
    }

    return rc;
}


/* Notes an error; returns the next task, or NULL after the last one. */

static const dsa_read_task_t *
dsa_readers_next(dsa_readers_t *all, int rc)
{
    const dsa_read_task_t  *t;

    (void) pthread_mutex_lock(&all->lock);

    if (rc != 0 && all->rc == 0) {
        all->rc = rc;
    }

    t = all->rc == 0 && all->next < all->tasks ? &all->task[all->next++]
                                               : NULL;

    (void) pthread_mutex_unlock(&all->lock);

    return t;
}


static void *
dsa_reader_run(void *data)
{
    int                     rc;
    dsa_reader_t            reader;
    dsa_readers_t          *all = data;
    const dsa_read_task_t  *t;

    memset(&reader, 0, sizeof(reader));

    rc = cudaSetDevice(all->device);
    rc = rc != 0 ? rc : dsa_reader_open(&reader);

    for ( ;; ) {
        t = dsa_readers_next(all, rc);

        if (t == NULL) {
            break;
        }

        rc = dsa_reader_task(&reader, t);

        (void) pthread_mutex_lock(&all->lock);
        all->done += t->bytes;
        (void) pthread_mutex_unlock(&all->lock);
    }

    if (reader.stream != NULL) {
        rc = cudaStreamSynchronize(reader.stream);
    }

    dsa_reader_close(&reader);

    (void) pthread_mutex_lock(&all->lock);

    if (rc != 0 && all->rc == 0) {
        all->rc = rc;
    }

    all->running--;
    (void) pthread_cond_signal(&all->ended);
    (void) pthread_mutex_unlock(&all->lock);

    return NULL;
}


static void
dsa_readers_progress(uint64_t done, uint64_t bytes, uint64_t ms)
{
    dsa_log(DSA_LOG_NOTICE, "weights: %.1f of %.1f GB on the GPU, %.1f GB/s",
            (double) done * 1e-9, (double) bytes * 1e-9,
            (double) done * 1e-6 / (double) (ms > 0 ? ms : 1));
}


/* Until the last thread ended; lock is locked. */

static void
dsa_readers_wait(dsa_readers_t *all, uint64_t bytes, uint64_t begin)
{
    uint64_t         logged, now;
    struct timespec  until;

    logged = begin;

    while (all->running != 0) {
        (void) clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 1;
        (void) pthread_cond_timedwait(&all->ended, &all->lock, &until);

        now = dsa_clock_ms();

        if (now - logged >= DSA_PROGRESS_MS) {
            dsa_readers_progress(all->done, bytes, now - begin);
            logged = now;
        }
    }
}


int
dsa_cuda_read(const dsa_read_task_t *task, size_t n, uint64_t bytes,
    dsa_err_t *err)
{
    int            rc;
    long           cpus;
    unsigned       i, threads;
    uint64_t       begin;
    pthread_t      thread[DSA_READERS];
    dsa_readers_t  all;

    if (n == 0) {
        return DSA_OK;
    }

    memset(&all, 0, sizeof(all));

    all.task = task;
    all.tasks = n;

    rc = cudaGetDevice(&all.device);

    if (rc != 0) {
        return dsa_error(err, "reading weights: no GPU is selected: %s",
                         dsa_cuda_error(rc));
    }

    cpus = sysconf(_SC_NPROCESSORS_ONLN);
    threads = cpus < 1 ? 1
              : cpus > DSA_READERS ? DSA_READERS : (unsigned) cpus;

    (void) pthread_mutex_init(&all.lock, NULL);
    (void) pthread_cond_init(&all.ended, NULL);

    begin = dsa_clock_ms();

    (void) pthread_mutex_lock(&all.lock);

    for (i = 0; i < threads; i++) {
        if (pthread_create(&thread[i], NULL, dsa_reader_run, &all) != 0) {
            break;
        }

        all.running++;
    }

    threads = i;
    dsa_readers_wait(&all, bytes, begin);

    (void) pthread_mutex_unlock(&all.lock);

    for (i = 0; i < threads; i++) {
        (void) pthread_join(thread[i], NULL);
    }

    (void) pthread_cond_destroy(&all.ended);
    (void) pthread_mutex_destroy(&all.lock);

    if (threads == 0) {
        return dsa_error(err, "reading weights: no thread can be started");
    }

    if (all.rc != 0) {
        return dsa_error(err, "copying weights to the GPU: %s",
                         dsa_cuda_error(all.rc));
    }

    dsa_readers_progress(all.done, bytes, dsa_clock_ms() - begin);

    return DSA_OK;
}
