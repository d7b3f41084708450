
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/wake.h"
#include "engine/hosts/watch.h"


#define DSA_HOSTS_GRACE_MS  1000        /* for a call to return by itself */
#define DSA_HOSTS_TICK_MS   50          /* between two looks at a call */


struct dsa_hosts_watch_s {
    const dsa_hosts_leader_t   *conf;
    dsa_hosts_wire_t       *wire;
    pthread_t               thread;
    int                     stop;       /* eventfd */
    int                     change;     /* eventfd: listens has changed */

    pthread_mutex_t         mutex;      /* of all below */
    const char             *call;       /* NULL: the caller is in no call */
    uint32_t                reads;      /* 1: the call reads connections */
    uint32_t                listens;    /* 1: arrived() is to be called */
    uint64_t                call_ms;    /* when the call began */
    uint64_t                limit_ms;   /* of it; 0: none */
    uint64_t                lost_ms;    /* when a connection has ended; 0:
                                           none has */
    uint32_t                unread;     /* the host whose reason was not read;
                                           0: none */
    dsa_err_t               err;        /* of that connection */
};


static void dsa_hosts_watch_free(dsa_hosts_watch_t *watch);
static void *dsa_hosts_watch_thread(void *data);
static int dsa_hosts_watch_poll(dsa_hosts_watch_t *watch, uint32_t *lost,
    int *arrived);
static void dsa_hosts_watch_lost(dsa_hosts_watch_t *watch, uint32_t host);
static void dsa_hosts_watch_reason(dsa_hosts_watch_t *watch);
static int dsa_hosts_watch_late(dsa_hosts_watch_t *watch, dsa_err_t *err);
static void dsa_hosts_watch_silent(const dsa_hosts_watch_t *watch,
    uint64_t ms, dsa_err_t *err);


dsa_hosts_watch_t *
dsa_hosts_watch_start(const dsa_hosts_leader_t *conf, dsa_hosts_wire_t *wire,
    dsa_err_t *err)
{
    int                 rc;
    dsa_hosts_watch_t  *watch;

    watch = calloc(1, sizeof(dsa_hosts_watch_t));

    if (watch == NULL) {
        (void) dsa_error(err, "out of memory");
        return NULL;
    }

    watch->conf = conf;
    watch->wire = wire;
    watch->stop = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);
    watch->change = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);
    (void) pthread_mutex_init(&watch->mutex, NULL);

    rc = watch->stop == -1 || watch->change == -1 ? errno
         : pthread_create(&watch->thread, NULL, dsa_hosts_watch_thread, watch);

    if (rc != 0) {
        (void) dsa_error(err, "the thread that watches the hosts cannot be "
                         "started: %s", strerror(rc));

        dsa_hosts_watch_free(watch);
        return NULL;
    }

    return watch;
}


void
dsa_hosts_watch_stop(dsa_hosts_watch_t *watch)
{
    if (watch == NULL) {
        return;
    }

    dsa_wake(watch->stop);
    (void) pthread_join(watch->thread, NULL);
    dsa_hosts_watch_free(watch);
}


static void
dsa_hosts_watch_free(dsa_hosts_watch_t *watch)
{
    if (watch->stop != -1) {
        (void) close(watch->stop);
    }

    if (watch->change != -1) {
        (void) close(watch->change);
    }

    (void) pthread_mutex_destroy(&watch->mutex);
    free(watch);
}


void
dsa_hosts_watch_listen(dsa_hosts_watch_t *watch)
{
    int  changed;

    (void) pthread_mutex_lock(&watch->mutex);
    changed = !watch->listens;
    watch->listens = 1;
    (void) pthread_mutex_unlock(&watch->mutex);

    if (changed) {
        dsa_wake(watch->change);
    }
}


int
dsa_hosts_watch_begin(dsa_hosts_watch_t *watch, const char *what,
    uint64_t limit_ms, dsa_err_t *err)
{
    int  rc;

    rc = DSA_OK;

    (void) pthread_mutex_lock(&watch->mutex);

    if (watch->lost_ms != 0) {
        dsa_hosts_watch_reason(watch);
        *err = watch->err;
        rc = DSA_ERROR;

    } else {
        watch->call = what;
        watch->reads = 1;
        watch->limit_ms = limit_ms;
        watch->call_ms = dsa_clock_ms();
    }

    (void) pthread_mutex_unlock(&watch->mutex);

    return rc;
}


void
dsa_hosts_watch_open(dsa_hosts_watch_t *watch)
{
    (void) pthread_mutex_lock(&watch->mutex);
    watch->call = "opening the model";
    watch->reads = 0;
    watch->limit_ms = watch->conf->start_ms;
    watch->call_ms = dsa_clock_ms();
    (void) pthread_mutex_unlock(&watch->mutex);
}


void
dsa_hosts_watch_end(dsa_hosts_watch_t *watch)
{
    (void) pthread_mutex_lock(&watch->mutex);
    watch->call = NULL;
    (void) pthread_mutex_unlock(&watch->mutex);
}


int
dsa_hosts_watch_fault(dsa_hosts_watch_t *watch, dsa_err_t *err)
{
    int  rc;

    rc = DSA_OK;

    (void) pthread_mutex_lock(&watch->mutex);

    if (watch->lost_ms != 0) {
        dsa_hosts_watch_reason(watch);
        *err = watch->err;
        rc = DSA_ERROR;
    }

    (void) pthread_mutex_unlock(&watch->mutex);

    return rc;
}


static void *
dsa_hosts_watch_thread(void *data)
{
    int                 late, arrived;
    uint32_t            lost;
    dsa_err_t           err;
    dsa_hosts_watch_t  *watch;

    watch = data;

    while (dsa_hosts_watch_poll(watch, &lost, &arrived)) {
        (void) pthread_mutex_lock(&watch->mutex);

        if (lost != 0 && watch->lost_ms == 0) {
            dsa_hosts_watch_lost(watch, lost);
        }

        late = dsa_hosts_watch_late(watch, &err);
        watch->listens &= !arrived;

        (void) pthread_mutex_unlock(&watch->mutex);

        if (lost != 0) {
            watch->conf->failed(watch->conf->data);
        }

        if (arrived) {
            watch->conf->arrived(watch->conf->data);
        }

        if (late) {
            watch->conf->abort(watch->conf->data, err.text);
        }
    }

    return NULL;
}


/*
 * Waits for the end of a connection, whose host is set in *lost, for something
 * to read, if the thread listens, which sets *arrived, or for
 * DSA_HOSTS_TICK_MS.  0: the thread has to end.
 */

static int
dsa_hosts_watch_poll(dsa_hosts_watch_t *watch, uint32_t *lost, int *arrived)
{
    short          events;
    uint32_t       i, n, known;
    eventfd_t      changes;
    struct pollfd  p[DSA_MAX_GPUS + 1];

    n = watch->conf->n;
    *lost = 0;
    *arrived = 0;

    (void) pthread_mutex_lock(&watch->mutex);
    known = watch->lost_ms != 0;
    events = watch->listens ? POLLRDHUP|POLLIN : POLLRDHUP;
    (void) pthread_mutex_unlock(&watch->mutex);

    p[0].fd = watch->stop;
    p[0].events = POLLIN;

    for (i = 1; i <= n; i++) {

        /* a connection that has ended would end each wait at once */

        p[i].fd = known ? -1 : watch->wire[i].fd;
        p[i].events = events;
        p[i].revents = 0;
    }

    p[n + 1].fd = watch->change;
    p[n + 1].events = POLLIN;
    p[n + 1].revents = 0;

    if (poll(p, n + 2, DSA_HOSTS_TICK_MS) <= 0) {
        return 1;
    }

    if (p[n + 1].revents != 0) {
        (void) eventfd_read(watch->change, &changes);
    }

    for (i = n; i >= 1; i--) {
        *lost = (p[i].revents & ~POLLIN) != 0 ? i : *lost;
        *arrived |= (p[i].revents & POLLIN) != 0;
    }

    return p[0].revents == 0;
}


/*
 * Records that a connection has ended.  The reason is what the follower has
 * sent last, unless the caller reads it itself; if the call that it is in does
 * not, it is read at the next one.
 */

static void
dsa_hosts_watch_lost(dsa_hosts_watch_t *watch, uint32_t host)
{
    watch->lost_ms = dsa_clock_ms();
    watch->unread = host;

    (void) dsa_error(&watch->err, "%s has closed the connection",
                     watch->wire[host].name);

    if (watch->call == NULL || !watch->reads) {
        dsa_hosts_watch_reason(watch);
    }

    dsa_log_debug("%s", watch->err.text);
}


/* Reads the reason, if it was not read, while no call reads. */

static void
dsa_hosts_watch_reason(dsa_hosts_watch_t *watch)
{
    char               skip[DSA_HOSTS_TEXT];
    size_t             n;
    dsa_hosts_head_t   head;
    dsa_hosts_wire_t  *w;

    if (watch->unread == 0) {
        return;
    }

    w = &watch->wire[watch->unread];
    watch->unread = 0;

    dsa_hosts_wire_limit(w, DSA_HOSTS_TICK_MS);

    while (dsa_hosts_wire_readable(w)
           && dsa_hosts_wire_head(w, &head, &watch->err) == DSA_OK)
    {
        for ( /* void */ ; head.bytes != 0; head.bytes -= n) {
            n = head.bytes < sizeof(skip) ? (size_t) head.bytes : sizeof(skip);

            if (dsa_hosts_wire_read(w, skip, n, &watch->err) != DSA_OK) {
                return;
            }
        }
    }
}


/* Returns 1 with err if a call does not return. */

static int
dsa_hosts_watch_late(dsa_hosts_watch_t *watch, dsa_err_t *err)
{
    uint64_t  now, end;

    if (watch->call == NULL) {
        return 0;
    }

    now = dsa_clock_ms();

    if (watch->lost_ms != 0) {
        end = watch->lost_ms > watch->call_ms ? watch->lost_ms
                                              : watch->call_ms;

        if (now < end + DSA_HOSTS_GRACE_MS) {
            return 0;
        }

        *err = watch->err;

        return 1;
    }

    if (watch->limit_ms == 0
        || now < watch->call_ms + watch->limit_ms + DSA_HOSTS_GRACE_MS)
    {
        return 0;
    }

    dsa_hosts_watch_silent(watch, now - watch->call_ms, err);

    return 1;
}


/* Names the hosts that have sent nothing: the others wait for them. */

static void
dsa_hosts_watch_silent(const dsa_hosts_watch_t *watch, uint64_t ms,
    dsa_err_t *err)
{
    char      names[400];
    size_t    n;
    uint32_t  i;

    n = 0;
    names[0] = '\0';

    for (i = 1; i <= watch->conf->n && n < sizeof(names); i++) {
        if (!dsa_hosts_wire_readable(&watch->wire[i])) {
            n += (size_t) snprintf(names + n, sizeof(names) - n, "%s%s",
                                   n != 0 ? ", " : "", watch->wire[i].name);
        }
    }

    (void) dsa_error(err, "%s takes more than %llu ms, and there is no answer "
                     "of %s", watch->call, (unsigned long long) ms,
                     n != 0 ? names : "this host");
}
