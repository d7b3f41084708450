
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/wake.h"
#include "engine/service/journal_thread.h"


#define DSA_JOURNAL_LOG_MS  1000        /* between two lines of the log */


struct dsa_journal_thread_s {
    char                *path;
    dsa_journal_gap_pt   gap;
    void                *data;
    int                  wake;
    pthread_t            thread;
    uint32_t             running;

    /* of the caller */

    uint32_t             late;          /* nothing waits for lines */
    uint64_t             since_ms;      /* of late; else of the lines that are
                                           pending; 0: none are */

    /* of the thread */

    int                  fd;            /* -1: closed */
    struct stat          file;          /* of fd */
    uint64_t             failed_ms;     /* of the last failure; 0: its end was
                                           logged */
    uint64_t             missing;       /* lines of which gaps were written,
                                           but not logged */
    uint32_t             torn;          /* the last line is not complete */

    pthread_mutex_t      mutex;         /* for the rest */
    pthread_cond_t       work;
    pthread_cond_t       over;
    dsa_buf_t            queue;
    uint64_t             n;             /* lines in it */
    uint64_t             dropped;       /* lines behind it that are lost */
    uint64_t             lost;          /* lines in front of it that are */
    size_t               writing;       /* bytes that are being written */
    uint32_t             busy;          /* the file is in use */
    uint32_t             failing;       /* the last lines were not written */
    uint32_t             stop;
    uint32_t             ended;
};


static int dsa_journal_file_open(dsa_journal_thread_t *t, dsa_err_t *err);
static int dsa_journal_file_check(dsa_journal_thread_t *t, dsa_err_t *err);
static void *dsa_journal_thread(void *data);
static void dsa_journal_write(dsa_journal_thread_t *t);
static int dsa_journal_file_gap(dsa_journal_thread_t *t, uint64_t lost,
    dsa_err_t *err);
static uint64_t dsa_journal_file_append(dsa_journal_thread_t *t,
    const dsa_buf_t *lines, dsa_err_t *err);
static void dsa_journal_log(dsa_journal_thread_t *t, uint64_t lost,
    const char *why);
static void dsa_journal_thread_free(dsa_journal_thread_t *t);


dsa_journal_thread_t *
dsa_journal_thread_open(const char *path, dsa_journal_gap_pt gap, void *data,
    dsa_err_t *err)
{
    pthread_condattr_t     attr;
    dsa_journal_thread_t  *t;

    t = calloc(1, sizeof(dsa_journal_thread_t));

    if (t == NULL) {
        (void) dsa_error(err, "out of memory");
        return NULL;
    }

    t->fd = -1;
    t->gap = gap;
    t->data = data;
    t->path = strdup(path);

    (void) pthread_mutex_init(&t->mutex, NULL);
    (void) pthread_cond_init(&t->work, NULL);
    (void) pthread_condattr_init(&attr);
    (void) pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void) pthread_cond_init(&t->over, &attr);
    (void) pthread_condattr_destroy(&attr);

    if (t->path == NULL) {
        (void) dsa_error(err, "out of memory");
        dsa_journal_thread_free(t);
        return NULL;
    }

    if (dsa_journal_file_open(t, err) != DSA_OK) {
        dsa_journal_thread_free(t);
        return NULL;
    }

    return t;
}


int
dsa_journal_thread_start(dsa_journal_thread_t *t, int wake, dsa_err_t *err)
{
    int  rc;

    t->wake = wake;

    rc = pthread_create(&t->thread, NULL, dsa_journal_thread, t);

    if (rc != 0) {
        return dsa_error(err, "cannot start the thread of the journal: %s",
                         strerror(rc));
    }

    t->running = 1;

    return DSA_OK;
}


int
dsa_journal_thread_close(dsa_journal_thread_t *t)
{
    int              rc, ended;
    struct timespec  end;

    if (t == NULL) {
        return 1;
    }

    if (t->running) {
        (void) clock_gettime(CLOCK_MONOTONIC, &end);

        end.tv_sec += DSA_JOURNAL_END_MS / 1000;
        end.tv_nsec += DSA_JOURNAL_END_MS % 1000 * 1000000L;
        end.tv_sec += end.tv_nsec / 1000000000L;
        end.tv_nsec %= 1000000000L;

        rc = 0;

        (void) pthread_mutex_lock(&t->mutex);

        t->stop = 1;
        (void) pthread_cond_signal(&t->work);

        while (!t->ended && rc != ETIMEDOUT) {
            rc = pthread_cond_timedwait(&t->over, &t->mutex, &end);
        }

        ended = (int) t->ended;

        (void) pthread_mutex_unlock(&t->mutex);

        if (!ended) {
            dsa_log(DSA_LOG_ERR, "journal \"%s\": the last lines are lost, "
                    "because they were not written within %d ms", t->path,
                    DSA_JOURNAL_END_MS);
            (void) pthread_detach(t->thread);

            return 0;
        }

        (void) pthread_join(t->thread, NULL);
    }

    dsa_journal_thread_free(t);

    return 1;
}


static void
dsa_journal_thread_free(dsa_journal_thread_t *t)
{
    if (t->fd != -1) {
        (void) close(t->fd);
    }

    (void) pthread_cond_destroy(&t->over);
    (void) pthread_cond_destroy(&t->work);
    (void) pthread_mutex_destroy(&t->mutex);

    dsa_buf_free(&t->queue);
    free(t->path);
    free(t);
}


void
dsa_journal_thread_push(dsa_journal_thread_t *t, dsa_buf_t *lines, uint32_t n,
    uint64_t now_ms)
{
    uint32_t  first;

    if (n == 0) {
        return;
    }

    first = 0;

    (void) pthread_mutex_lock(&t->mutex);

    /* after the first line that is lost, lines wait for the gap's line */

    if (lines->failed || t->dropped != 0
        || t->writing + t->queue.len + lines->len > DSA_JOURNAL_BYTES)
    {
        first = t->dropped == 0;
        t->dropped += n;

    } else {
        dsa_buf_add(&t->queue, lines->data, lines->len);
        t->n += n;
    }

    (void) pthread_cond_signal(&t->work);
    (void) pthread_mutex_unlock(&t->mutex);

    if (first) {
        dsa_log(DSA_LOG_ERR, "journal \"%s\": lines are lost, because %d bytes "
                "of lines wait already", t->path, DSA_JOURNAL_BYTES);
    }

    lines->len = 0;
    lines->failed = 0;

    if (!t->late && t->since_ms == 0) {
        t->since_ms = now_ms;
    }
}


int
dsa_journal_thread_pending(dsa_journal_thread_t *t, uint64_t now_ms)
{
    uint32_t  idle, written;

    (void) pthread_mutex_lock(&t->mutex);

    idle = t->queue.len == 0 && !t->busy;
    written = idle && t->dropped == 0 && !t->failing;

    (void) pthread_mutex_unlock(&t->mutex);

    if (t->late) {
        if (written && now_ms - t->since_ms >= DSA_JOURNAL_LATE_MS) {
            t->late = 0;
            t->since_ms = 0;
            dsa_log(DSA_LOG_NOTICE, "journal \"%s\" keeps up again: records "
                    "wait for their lines", t->path);
        }

        return 0;
    }

    if (idle) {
        t->since_ms = 0;
        return 0;
    }

    if (now_ms - t->since_ms < DSA_JOURNAL_WAIT_MS) {
        return 1;
    }

    t->late = 1;
    t->since_ms = now_ms;
    dsa_log(DSA_LOG_WARN, "journal \"%s\" does not keep up: lines were not "
            "written for %d ms, and records do not wait for them any more",
            t->path, DSA_JOURNAL_WAIT_MS);

    return 0;
}


/*
 * O_NONBLOCK makes open() fail for a pipe without a reader, for which it would
 * wait otherwise.
 */

static int
dsa_journal_file_open(dsa_journal_thread_t *t, dsa_err_t *err)
{
    int  fd, flags;

    fd = open(t->path, O_WRONLY|O_APPEND|O_CREAT|O_CLOEXEC|O_NONBLOCK, 0600);

    if (fd == -1) {
        return dsa_error(err, "open() of journal \"%s\": %s", t->path,
                         strerror(errno));
    }

    flags = fcntl(fd, F_GETFL);

    if (flags == -1 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == -1
        || fstat(fd, &t->file) == -1)
    {
        (void) dsa_error(err, "fcntl() of journal \"%s\": %s", t->path,
                         strerror(errno));
        (void) close(fd);
        return DSA_ERROR;
    }

    if (t->fd != -1) {
        (void) close(t->fd);
    }

    t->fd = fd;
    t->torn = 0;

    return DSA_OK;
}


/* Opens the file again if its name has another file now, or none. */

static int
dsa_journal_file_check(dsa_journal_thread_t *t, dsa_err_t *err)
{
    struct stat  now;

    if (stat(t->path, &now) == 0 && now.st_dev == t->file.st_dev
        && now.st_ino == t->file.st_ino)
    {
        return DSA_OK;
    }

    return dsa_journal_file_open(t, err);
}


static void *
dsa_journal_thread(void *data)
{
    dsa_journal_thread_t  *t = data;

    (void) pthread_mutex_lock(&t->mutex);

    for ( ;; ) {

        /* while writing fails, a gap waits for further lines */

        while (t->queue.len == 0 && !t->stop
               && (t->failing || t->lost + t->dropped == 0))
        {
            (void) pthread_cond_wait(&t->work, &t->mutex);
        }

        if (t->queue.len == 0 && t->lost + t->dropped == 0) {
            break;
        }

        dsa_journal_write(t);

        if (t->stop && t->queue.len == 0 && t->failing) {
            break;
        }
    }

    t->ended = 1;
    (void) pthread_cond_signal(&t->over);
    (void) pthread_mutex_unlock(&t->mutex);

    return NULL;
}


/* Under the mutex, which is released while lines are written. */

static void
dsa_journal_write(dsa_journal_thread_t *t)
{
    int         rc;
    uint64_t    n, lost, missing;
    dsa_err_t   err;
    dsa_buf_t   lines;

    if (t->queue.len == 0) {

        /* what was lost behind the lines before is in front of the next */

        t->lost += t->dropped;
        t->dropped = 0;
    }

    lines = t->queue;
    n = t->n;
    lost = t->lost;

    memset(&t->queue, 0, sizeof(dsa_buf_t));
    t->n = 0;
    t->writing = lines.len;
    t->busy = 1;

    (void) pthread_mutex_unlock(&t->mutex);

    missing = n;
    rc = dsa_journal_file_check(t, &err);

    if (rc == DSA_OK && lost != 0) {
        rc = dsa_journal_file_gap(t, lost, &err);
    }

    if (rc == DSA_OK) {
        missing = dsa_journal_file_append(t, &lines, &err);
    }

    dsa_journal_log(t, rc == DSA_OK ? lost : 0,
                    rc != DSA_OK || missing != 0 ? err.text : NULL);
    dsa_buf_free(&lines);

    (void) pthread_mutex_lock(&t->mutex);

    t->writing = 0;
    t->busy = 0;
    t->failing = rc != DSA_OK || missing != 0;
    t->lost = (rc == DSA_OK ? 0 : lost) + missing;

    dsa_wake(t->wake);
}


/* Writes the line of a gap. */

static int
dsa_journal_file_gap(dsa_journal_thread_t *t, uint64_t lost, dsa_err_t *err)
{
    uint64_t   missing;
    dsa_buf_t  line;

    memset(&line, 0, sizeof(dsa_buf_t));

    if (t->torn) {
        dsa_buf_addz(&line, "\n");
    }

    t->gap(t->data, &line, lost);

    if (line.failed) {
        dsa_buf_free(&line);
        return dsa_error(err, "out of memory");
    }

    missing = dsa_journal_file_append(t, &line, err);
    dsa_buf_free(&line);

    return missing == 0 ? DSA_OK : DSA_ERROR;
}


/* Returns how many lines were not written as a whole, with err if not 0. */

static uint64_t
dsa_journal_file_append(dsa_journal_thread_t *t, const dsa_buf_t *lines,
    dsa_err_t *err)
{
    char      *p, *end, *start;
    ssize_t    n;
    uint64_t   missing;

    p = lines->data;
    end = p + lines->len;

    while (p < end) {
        n = write(t->fd, p, (size_t) (end - p));

        if (n > 0) {
            p += n;

        } else if (n == 0 || errno != EINTR) {
            (void) dsa_error(err, "write(): %s", n == 0 ? "it wrote nothing"
                                                        : strerror(errno));
            break;
        }
    }

    if (lines->len != 0 && p != lines->data) {
        t->torn = p[-1] != '\n';
    }

    if (p == end) {
        return 0;
    }

    start = memrchr(lines->data, '\n', (size_t) (p - lines->data));
    missing = 0;

    for (p = start != NULL ? start + 1 : lines->data; p < end; p++) {
        missing += *p == '\n';
    }

    return missing;
}


/*
 * Logs when writing begins to fail, and when lines are written again; why is
 * NULL after a success, lost the number in the gap that was written.  A file
 * that fails again and again, because its disk is nearly full, is logged once a
 * second at most.
 */

static void
dsa_journal_log(dsa_journal_thread_t *t, uint64_t lost, const char *why)
{
    uint64_t  now_ms;

    now_ms = dsa_clock_ms();
    t->missing += lost;

    if (why != NULL) {
        if (t->failed_ms == 0) {
            dsa_log(DSA_LOG_ERR, "journal \"%s\": lines are lost: %s", t->path,
                    why);
        }

        t->failed_ms = now_ms;
        return;
    }

    if (t->failed_ms != 0 && now_ms - t->failed_ms < DSA_JOURNAL_LOG_MS) {
        return;
    }

    if (t->missing != 0) {
        dsa_log(DSA_LOG_NOTICE, "journal \"%s\": lines are written again, "
                "%llu are lost", t->path, (unsigned long long) t->missing);
    }

    t->failed_ms = 0;
    t->missing = 0;
}
