
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/threads.h"
#include "engine/checkpoint/direct.h"
#include "engine/checkpoint/scan.h"


#define DSA_SCAN_PROGRESS_MS    5000    /* between log lines */
#define DSA_SCAN_WAKE_S         1       /* between checks of the clock */

/*
 * A thread either waits for the storage or hashes.  With this many threads
 * more than CPUs, the storage always has enough to read while all CPUs hash.
 */
#define DSA_SCAN_READING        8

_Static_assert(DSA_LEAF_SIZE % DSA_DIRECT_ALIGN == 0,
               "leaves cannot be read by direct I/O");


/* The state of a scan.  lock protects all but the first three members. */

typedef struct {
    const dsa_weights_t        *weights;
    const dsa_scan_sink_t      *sink;
    uint8_t                   (*leaf)[DSA_LEAF_HASH];
    uint32_t                    file;           /* of the next leaf */
    uint64_t                    offset;         /* in that file */
    uint64_t                    next;           /* number of that leaf */
    uint64_t                    done;           /* bytes */
    uint32_t                    running;        /* threads */
    const char                 *buffered;       /* a file that was not read by
                                                   direct I/O, or NULL */
    int                         failed;         /* 1: err is set */
    dsa_err_t                  *err;
    pthread_mutex_t             lock;
    pthread_cond_t              ended;          /* a thread ended */
} dsa_scan_t;


/* The state of one thread. */

typedef struct {
    dsa_scan_t                 *scan;
    void                       *part;           /* of the sink */
    uint8_t                    *buffer;
    dsa_direct_t                file;
    dsa_scan_block_t            block;
    uint64_t                    number;         /* of the leaf */
} dsa_scan_thread_t;


static void *dsa_scan_run(void *data);
static void dsa_scan_fail(dsa_scan_t *s, const dsa_err_t *err);
static int dsa_scan_next(dsa_scan_thread_t *t);
static int dsa_scan_block(dsa_scan_thread_t *t, dsa_err_t *err);
static uint32_t dsa_scan_start(dsa_scan_t *s, pthread_t *thread,
    uint32_t threads);
static void dsa_scan_wait(dsa_scan_t *s, uint64_t bytes, uint64_t begin);
static int dsa_scan_threads(dsa_scan_t *s, uint32_t threads, uint64_t bytes,
    dsa_err_t *err);


/* The sink of a scan without one: provides a buffer and ignores the blocks. */

static void *
dsa_scan_none_open(void *data, uint8_t **buffer, dsa_err_t *err)
{
    *buffer = aligned_alloc(DSA_DIRECT_ALIGN, DSA_LEAF_SIZE);

    if (*buffer == NULL) {
        (void) dsa_error(err, "no memory for a buffer of %u bytes",
                         DSA_LEAF_SIZE);
    }

    return *buffer;
}


static int
dsa_scan_none_block(void *part, const dsa_scan_block_t *block, dsa_err_t *err)
{
    return DSA_OK;
}


static int
dsa_scan_none_wait(void *part, dsa_err_t *err)
{
    return DSA_OK;
}


static const dsa_scan_sink_t  dsa_scan_none = {
    NULL, dsa_scan_none_open, dsa_scan_none_block, dsa_scan_none_wait, free
};


int
dsa_scan(const dsa_weights_t *w, const dsa_scan_sink_t *sink,
    uint32_t threads, char fingerprint[DSA_FULL_LEN + 1], dsa_err_t *err)
{
    int         rc;
    uint32_t    i;
    uint64_t    size, bytes, leaves;
    dsa_scan_t  s;

    bytes = 0;
    leaves = 0;

    for (i = 0; i < w->shards->n; i++) {
        (void) dsa_st_image(w->shards->file[i], &size);
        bytes += size;
        leaves += dsa_fingerprint_leaves(size);
    }

    memset(&s, 0, sizeof(s));

    s.weights = w;
    s.sink = sink != NULL ? sink : &dsa_scan_none;
    s.err = err;
    s.leaf = malloc(leaves * DSA_LEAF_HASH);

    if (s.leaf == NULL) {
        return dsa_error(err, "no memory for %llu hashes",
                         (unsigned long long) leaves);
    }

    if (threads == 0) {
        threads = dsa_threads_cpus() + DSA_SCAN_READING;
    }

    threads = threads < DSA_SCAN_THREADS ? threads : DSA_SCAN_THREADS;
    threads = threads < leaves ? threads : (uint32_t) leaves;

    rc = dsa_scan_threads(&s, threads, bytes, err);

    if (rc == DSA_OK) {
        rc = dsa_fingerprint_full(fingerprint, w->config_hash, w->shards,
                                  (const uint8_t (*)[DSA_LEAF_HASH]) s.leaf,
                                  err);
    }

    free(s.leaf);

    return rc;
}


/* Runs the threads, and logs the result. */

static int
dsa_scan_threads(dsa_scan_t *s, uint32_t threads, uint64_t bytes,
    dsa_err_t *err)
{
    double              seconds;
    uint32_t            i, started;
    uint64_t            begin;
    pthread_t           thread[DSA_SCAN_THREADS];
    pthread_condattr_t  attr;

    dsa_log(DSA_LOG_NOTICE, "weights: reading %.2f GB in %u files; %u threads "
            "have %.0f MB of buffers", (double) bytes * 1e-9,
            s->weights->shards->n, threads,
            (double) threads * DSA_LEAF_SIZE * 1e-6);

    (void) pthread_condattr_init(&attr);
    (void) pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void) pthread_cond_init(&s->ended, &attr);
    (void) pthread_condattr_destroy(&attr);
    (void) pthread_mutex_init(&s->lock, NULL);

    begin = dsa_clock_ms();

    (void) pthread_mutex_lock(&s->lock);
    started = dsa_scan_start(s, thread, threads);
    dsa_scan_wait(s, bytes, begin);
    (void) pthread_mutex_unlock(&s->lock);

    for (i = 0; i < started; i++) {
        (void) pthread_join(thread[i], NULL);
    }

    (void) pthread_cond_destroy(&s->ended);
    (void) pthread_mutex_destroy(&s->lock);

    if (started == 0) {
        return dsa_error(err, "no thread can be started to read weights");
    }

    if (s->failed) {
        return DSA_ERROR;
    }

    assert(s->done == bytes);

    seconds = (double) (dsa_clock_ms() - begin) * 1e-3;

    dsa_log(DSA_LOG_NOTICE, "weights: %.2f GB read in %.1f s, %.1f GB/s, %s%s",
            (double) bytes * 1e-9, seconds,
            (double) bytes * 1e-9 / (seconds > 1e-3 ? seconds : 1e-3),
            s->buffered != NULL ? "through the page cache because the file "
                                  "system refuses direct I/O of "
                                : "by direct I/O",
            s->buffered != NULL ? s->buffered : "");

    return DSA_OK;
}


/* Starts the threads, and returns their number.  The caller holds lock. */

static uint32_t
dsa_scan_start(dsa_scan_t *s, pthread_t *thread, uint32_t threads)
{
    uint32_t  i;
    sigset_t  all, old;

    /*
     * Threads inherit the signal mask: block all signals, which another thread
     * handles.
     */

    (void) sigfillset(&all);
    (void) pthread_sigmask(SIG_SETMASK, &all, &old);

    for (i = 0; i < threads; i++) {
        if (pthread_create(&thread[i], NULL, dsa_scan_run, s) != 0) {
            break;
        }

        s->running++;
    }

    (void) pthread_sigmask(SIG_SETMASK, &old, NULL);

    return i;
}


/* Waits until the last thread has ended.  The caller holds lock. */

static void
dsa_scan_wait(dsa_scan_t *s, uint64_t bytes, uint64_t begin)
{
    double           rate;
    uint64_t         logged, now;
    struct timespec  until;

    logged = begin;

    while (s->running != 0) {
        (void) clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += DSA_SCAN_WAKE_S;
        (void) pthread_cond_timedwait(&s->ended, &s->lock, &until);

        now = dsa_clock_ms();

        if (now - logged >= DSA_SCAN_PROGRESS_MS && s->done != 0) {
            rate = (double) s->done / (double) (now - begin);

            dsa_log(DSA_LOG_NOTICE, "weights: %.1f of %.1f GB read, %.1f GB/s, "
                    "about %.0f s left", (double) s->done * 1e-9,
                    (double) bytes * 1e-9, rate * 1e-6,
                    (double) (bytes - s->done) / rate * 1e-3);
            logged = now;
        }
    }
}


static void *
dsa_scan_run(void *data)
{
    int                rc;
    dsa_err_t          err;
    dsa_scan_t        *s = data;
    dsa_scan_thread_t  t;

    memset(&t, 0, sizeof(t));

    t.scan = s;
    t.file.fd = -1;
    t.part = s->sink->open(s->sink->data, &t.buffer, &err);

    rc = t.part != NULL ? DSA_OK : DSA_ERROR;

    while (rc == DSA_OK && dsa_scan_next(&t)) {
        rc = dsa_scan_block(&t, &err);
    }

    if (rc == DSA_OK) {
        rc = s->sink->wait(t.part, &err);
    }

    /* the other threads stop as well */

    if (rc != DSA_OK) {
        dsa_scan_fail(s, &err);
    }

    if (t.part != NULL) {
        s->sink->close(t.part);
    }

    dsa_direct_close(&t.file);

    (void) pthread_mutex_lock(&s->lock);
    s->running--;
    (void) pthread_cond_signal(&s->ended);
    (void) pthread_mutex_unlock(&s->lock);

    return NULL;
}


/* Stops the scan.  The first error is its result. */

static void
dsa_scan_fail(dsa_scan_t *s, const dsa_err_t *err)
{
    (void) pthread_mutex_lock(&s->lock);

    if (!s->failed) {
        s->failed = 1;
        (void) dsa_error(s->err, "%s", err->text);
    }

    (void) pthread_mutex_unlock(&s->lock);
}


/* Counts the block as done, and sets the next one.  Returns 0 at the end. */

static int
dsa_scan_next(dsa_scan_thread_t *t)
{
    int                  more;
    uint64_t             size;
    dsa_scan_t          *s;
    const dsa_shards_t  *shards;

    s = t->scan;
    shards = s->weights->shards;

    (void) pthread_mutex_lock(&s->lock);

    s->done += t->block.size;

    if (t->file.fd != -1 && !t->file.direct && s->buffered == NULL) {
        s->buffered = t->file.path;
    }

    more = !s->failed && s->file < shards->n;

    if (more) {
        (void) dsa_st_image(shards->file[s->file], &size);

        t->block.file = s->file;
        t->block.offset = s->offset;
        t->block.size = size - s->offset < DSA_LEAF_SIZE ? size - s->offset
                                                         : DSA_LEAF_SIZE;
        t->block.data = t->buffer;
        t->number = s->next++;

        s->offset += t->block.size;

        if (s->offset == size) {
            s->file++;
            s->offset = 0;
        }
    }

    (void) pthread_mutex_unlock(&s->lock);

    return more;
}


/*
 * Reads a block and passes it to the sink, which copies it while this thread
 * hashes it.
 */

static int
dsa_scan_block(dsa_scan_thread_t *t, dsa_err_t *err)
{
    uint64_t    size;
    dsa_scan_t  *s;
    const char  *path;

    s = t->scan;
    path = s->weights->shards->path[t->block.file];

    if (t->file.fd == -1 || t->file.path != path) {
        (void) dsa_st_image(s->weights->shards->file[t->block.file], &size);

        dsa_direct_close(&t->file);

        if (dsa_direct_open(&t->file, path, size, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    if (s->sink->wait(t->part, err) != DSA_OK
        || dsa_direct_read(&t->file, t->buffer, t->block.offset, t->block.size,
                           err) != DSA_OK
        || s->sink->block(t->part, &t->block, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_fingerprint_leaf(s->leaf[t->number], t->buffer, t->block.size,
                                err);
}
