
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/wake.h"
#include "engine/hosts/door.h"
#include "engine/hosts/follower.h"
#include "engine/service/follower.h"
#include "engine/service/replica.h"
#include "engine/service/tiers.h"


#define DSA_FOLLOWER_BEAT_MS    100     /* of the heartbeat */
#define DSA_FOLLOWER_GRACE_MS   1000    /* for the thread to end after the
                                           leader */


typedef struct {
    const dsa_conf_t       *conf;
    dsa_vitals_t           *vitals;
    dsa_hosts_follower_t    follower;
    dsa_hosts_wire_t        wire;       /* to the leader */
    dsa_hosts_door_t       *door;
    int                     signals;
    int                     ended;      /* eventfd of the thread */
    int                     rc;         /* of the thread, when it has ended */
    dsa_err_t               err;
    pthread_t               thread;
} dsa_follower_t;


static int dsa_follower_open(dsa_follower_t *f, dsa_err_t *err);
static int dsa_follower_wait(dsa_follower_t *f);
static int dsa_follower_serve(dsa_follower_t *f);
static void *dsa_follower_thread(void *data);
static void dsa_follower_report(int fd, const char *text);


int
dsa_follower_run(const dsa_conf_t *conf, int ready, dsa_vitals_t *vitals)
{
    int             rc;
    dsa_err_t       err;
    dsa_follower_t  f;

    memset(&f, 0, sizeof(f));
    f.conf = conf;
    f.vitals = vitals;
    f.wire.fd = -1;
    f.signals = -1;
    f.ended = -1;

    rc = dsa_follower_open(&f, &err);

    dsa_follower_report(ready, rc == DSA_OK ? DSA_REPLICA_READY : err.text);
    (void) close(ready);

    if (rc != DSA_OK) {
        dsa_hosts_door_close(f.door);
        return 1;
    }

    dsa_log(DSA_LOG_NOTICE, "waits for the leader at %s", conf->follow);

    if (!dsa_follower_wait(&f)) {
        dsa_hosts_door_close(f.door);
        return 0;
    }

    /* a second leader is refused at once, and not left waiting */

    dsa_hosts_door_close(f.door);

    return dsa_follower_serve(&f);
}


static int
dsa_follower_open(dsa_follower_t *f, dsa_err_t *err)
{
    sigset_t  set;

    (void) sigemptyset(&set);
    (void) sigaddset(&set, SIGTERM);
    (void) sigaddset(&set, SIGUSR1);

    /* a terminal sends these to all processes; the supervisor handles them */

    (void) signal(SIGINT, SIG_IGN);
    (void) signal(SIGQUIT, SIG_IGN);

    f->signals = signalfd(-1, &set, SFD_CLOEXEC|SFD_NONBLOCK);
    f->ended = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);

    if (f->signals == -1 || f->ended == -1
        || sigprocmask(SIG_BLOCK, &set, NULL) == -1)
    {
        return dsa_error(err, "cannot wait for signals: %s", strerror(errno));
    }

    f->door = dsa_hosts_door_open(f->conf->follow, &f->conf->secret, err);

    return f->door != NULL ? DSA_OK : DSA_ERROR;
}


/* Waits for the leader.  0: for a signal to end instead. */

static int
dsa_follower_wait(dsa_follower_t *f)
{
    struct pollfd  p = { f->signals, POLLIN, 0 };

    for ( ;; ) {
        atomic_store(&f->vitals->alive_ms, dsa_clock_ms());

        if (dsa_hosts_door_wait(f->door, DSA_FOLLOWER_BEAT_MS, f->signals,
                                &f->wire) == DSA_OK)
        {
            return 1;
        }

        if (poll(&p, 1, 0) > 0) {
            return 0;
        }
    }
}


/*
 * Runs the backend in a thread, and watches the leader meanwhile: the thread
 * may wait on a GPU for a leader that is gone, and only the end of the process
 * ends that.  _exit(), because exit() would run the destructors of libraries
 * that the thread uses.
 */

static int
dsa_follower_serve(dsa_follower_t *f)
{
    int            rc;
    uint64_t       gone_ms;
    struct pollfd  p[3];

    dsa_conf_backend_of(f->conf, 0, &f->follower.backend);

    f->follower.kind = f->conf->backend;
    f->follower.open = dsa_backend_open;
    f->follower.step_started_ms = &f->vitals->step_started_ms;
    f->follower.tiers = dsa_service_follow_tiers;
    f->follower.data = (void *) (uintptr_t) f->conf;

    rc = pthread_create(&f->thread, NULL, dsa_follower_thread, f);

    if (rc != 0) {
        dsa_log(DSA_LOG_ERR, "the thread of the backend cannot be started: "
                "%s", strerror(rc));
        return 1;
    }

    gone_ms = 0;

    p[0].fd = f->ended;
    p[0].events = POLLIN;
    p[1].fd = f->signals;
    p[1].events = POLLIN;
    p[2].fd = f->wire.fd;
    p[2].events = POLLRDHUP;

    for ( ;; ) {
        atomic_store(&f->vitals->alive_ms, dsa_clock_ms());

        p[0].revents = 0;
        p[1].revents = 0;
        p[2].revents = 0;

        (void) poll(p, 3, DSA_FOLLOWER_BEAT_MS);

        if (p[0].revents != 0) {
            break;
        }

        if (p[1].revents != 0) {
            dsa_log(DSA_LOG_NOTICE, "ends, and with it the replica of %s",
                    f->wire.name);
            _exit(0);
        }

        if (p[2].revents != 0) {
            gone_ms = dsa_clock_ms();
            p[2].fd = -1;
        }

        if (gone_ms != 0 && dsa_clock_ms() >= gone_ms + DSA_FOLLOWER_GRACE_MS)
        {
            dsa_log(DSA_LOG_ERR, "%s has closed the connection while this host "
                    "computes for it", f->wire.name);
            _exit(1);
        }
    }

    (void) pthread_join(f->thread, NULL);

    if (f->rc == DSA_OK) {
        dsa_log(DSA_LOG_NOTICE, "%s has ended", f->wire.name);
        return 0;
    }

    dsa_log(DSA_LOG_ERR, "%s", f->err.text);

    /* the backend is open, and closing it could wait for other hosts */

    _exit(1);
}


static void *
dsa_follower_thread(void *data)
{
    dsa_follower_t  *f;

    f = data;
    f->rc = dsa_hosts_follow(&f->wire, &f->follower, &f->err);

    dsa_wake(f->ended);

    return NULL;
}


static void
dsa_follower_report(int fd, const char *text)
{
    ssize_t  n;

    do {
        n = write(fd, text, strlen(text));
    } while (n == -1 && errno == EINTR);
}
