
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/service/follower.h"
#include "engine/service/notify.h"
#include "engine/service/replica.h"
#include "engine/service/supervisor.h"


#define DSA_SUPERVISOR_FIRST    100     /* ms, the first delay */
#define DSA_SUPERVISOR_LEAST    20      /* ms, between two checks of vitals */


typedef struct {
    pid_t           pid;                /* 0: does not run */
    int             ready;              /* pipe; -1 after its message */
    uint32_t        killed;             /* killed by the supervisor */
    uint32_t        reload;             /* gets SIGHUP when it is ready */
    uint32_t        failures;           /* consecutive failures */
    uint64_t        started_ms;
    uint64_t        ready_ms;
    uint64_t        restart_ms;         /* if pid is 0 */
} dsa_child_t;


/* The vitals of each replica have a cache line of their own. */

typedef union {
    dsa_vitals_t    vitals;
    char            line[64];
} dsa_supervisor_vitals_t;


typedef struct {
    const dsa_conf_t         *conf;
    dsa_child_t              *child;    /* [conf->replicas] */
    struct pollfd            *poll;     /* [conf->replicas + 1] */
    dsa_supervisor_vitals_t  *shared;   /* [conf->replicas] */
    int                       signals;
    dsa_notify_t              notify;   /* the service manager */
    sigset_t                  mask;     /* of the calling process */
    uint32_t                  started;  /* all replicas were ready once */
    uint32_t                  stopping;
    uint32_t                  failed;
    uint64_t                  kill_ms;  /* if stopping */
} dsa_supervisor_t;


static int dsa_supervisor_init(dsa_supervisor_t *s, const dsa_conf_t *conf);
static int dsa_supervisor_spawn(dsa_supervisor_t *s, uint32_t i);
static void dsa_supervisor_wait(dsa_supervisor_t *s);
static int dsa_supervisor_timeout(const dsa_supervisor_t *s);
static void dsa_supervisor_check(dsa_supervisor_t *s, uint32_t i,
    uint64_t now);
static void dsa_supervisor_hung(dsa_supervisor_t *s, uint32_t i,
    const char *what, uint64_t ms);
static void dsa_supervisor_abandon(dsa_supervisor_t *s, const char *reason);
static void dsa_supervisor_message(dsa_supervisor_t *s, uint32_t i);
static void dsa_supervisor_started(dsa_supervisor_t *s);
static void dsa_supervisor_status(const dsa_supervisor_t *s);
static void dsa_supervisor_signal(dsa_supervisor_t *s);
static void dsa_supervisor_reload(dsa_supervisor_t *s);
static void dsa_supervisor_reap(dsa_supervisor_t *s);
static void dsa_supervisor_died(dsa_supervisor_t *s, uint32_t i, int status);
static void dsa_supervisor_stop(dsa_supervisor_t *s, int sig);
static uint32_t dsa_supervisor_alive(const dsa_supervisor_t *s);


int
dsa_supervisor_run(const dsa_conf_t *conf)
{
    uint32_t           i;
    uint64_t           now;
    dsa_supervisor_t   s;

    if (dsa_supervisor_init(&s, conf) != DSA_OK) {
        return 1;
    }

    for (i = 0; i < conf->replicas && !s.stopping; i++) {
        if (dsa_supervisor_spawn(&s, i) != DSA_OK) {
            s.failed = 1;
            dsa_supervisor_stop(&s, SIGKILL);
        }
    }

    while (!s.stopping || dsa_supervisor_alive(&s) != 0) {
        dsa_supervisor_wait(&s);
        now = dsa_clock_ms();

        dsa_notify_alive(&s.notify, now);

        if (s.stopping) {
            if (now >= s.kill_ms) {
                dsa_supervisor_stop(&s, SIGKILL);
                s.kill_ms = now + DSA_SUPERVISOR_GRACE;
            }

            continue;
        }

        for (i = 0; i < conf->replicas; i++) {
            dsa_supervisor_check(&s, i, now);

            if (s.child[i].pid == 0 && now >= s.child[i].restart_ms
                && dsa_supervisor_spawn(&s, i) != DSA_OK)
            {
                s.child[i].restart_ms = now + DSA_SUPERVISOR_DELAY;
            }
        }
    }

    for (i = 0; i < conf->replicas; i++) {
        if (s.child[i].ready != -1) {
            (void) close(s.child[i].ready);
        }
    }

    dsa_notify_close(&s.notify);
    (void) close(s.signals);
    (void) munmap(s.shared, conf->replicas * sizeof(dsa_supervisor_vitals_t));
    free(s.child);
    free(s.poll);

    return s.failed ? 1 : 0;
}


static int
dsa_supervisor_init(dsa_supervisor_t *s, const dsa_conf_t *conf)
{
    uint32_t  i;
    sigset_t  set;

    memset(s, 0, sizeof(dsa_supervisor_t));

    s->conf = conf;
    s->child = calloc(conf->replicas, sizeof(dsa_child_t));
    s->poll = calloc((size_t) conf->replicas + 1, sizeof(struct pollfd));
    s->shared = mmap(NULL, conf->replicas * sizeof(dsa_supervisor_vitals_t),
                     PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS, -1, 0);

    (void) sigemptyset(&set);
    (void) sigaddset(&set, SIGTERM);
    (void) sigaddset(&set, SIGINT);
    (void) sigaddset(&set, SIGQUIT);
    (void) sigaddset(&set, SIGHUP);
    (void) sigaddset(&set, SIGCHLD);

    s->signals = signalfd(-1, &set, SFD_CLOEXEC|SFD_NONBLOCK);

    if (s->child == NULL || s->poll == NULL || s->shared == MAP_FAILED
        || s->signals == -1
        || sigprocmask(SIG_BLOCK, &set, &s->mask) == -1)
    {
        (void) fprintf(stderr, "dsa-engine: cannot start: %s\n",
                       strerror(errno));
        free(s->child);
        free(s->poll);
        return DSA_ERROR;
    }

    for (i = 0; i < conf->replicas; i++) {
        s->child[i].ready = -1;
    }

    dsa_notify_open(&s->notify);

    return DSA_OK;
}


static int
dsa_supervisor_spawn(dsa_supervisor_t *s, uint32_t i)
{
    int           rc, fds[2];
    pid_t         pid, parent;
    uint32_t      j;
    dsa_child_t  *child;

    child = &s->child[i];

    atomic_store(&s->shared[i].vitals.alive_ms, 0);
    atomic_store(&s->shared[i].vitals.step_started_ms, 0);

    if (pipe2(fds, O_CLOEXEC) == -1) {
        dsa_log(DSA_LOG_ERR, "pipe(): %s", strerror(errno));
        return DSA_ERROR;
    }

    parent = getpid();
    pid = fork();

    if (pid == -1) {
        dsa_log(DSA_LOG_ERR, "fork(): %s", strerror(errno));
        (void) close(fds[0]);
        (void) close(fds[1]);
        return DSA_ERROR;
    }

    if (pid == 0) {

        /* if the supervisor has died already, the signal is never sent */

        if (prctl(PR_SET_PDEATHSIG, SIGKILL) == -1 || getppid() != parent
            || sigprocmask(SIG_SETMASK, &s->mask, NULL) == -1)
        {
            _exit(1);
        }

        (void) close(fds[0]);
        (void) close(s->signals);
        dsa_notify_close(&s->notify);

        for (j = 0; j < s->conf->replicas; j++) {
            if (s->child[j].ready != -1) {
                (void) close(s->child[j].ready);
            }
        }

        free(s->child);
        free(s->poll);

        rc = s->conf->follow != NULL
             ? dsa_follower_run(s->conf, fds[1], &s->shared[i].vitals)
             : dsa_replica_run(s->conf, i, fds[1], &s->shared[i].vitals);

        /* do not return into the frames of the supervisor */

        exit(rc);
    }

    (void) close(fds[1]);

    if (child->ready != -1) {
        (void) close(child->ready);
    }

    child->pid = pid;
    child->killed = 0;
    child->reload = 0;
    child->ready = fds[0];
    child->started_ms = dsa_clock_ms();

    return DSA_OK;
}


/*
 * Waits for a signal, a message of a replica, or the time of the next action.
 */

static void
dsa_supervisor_wait(dsa_supervisor_t *s)
{
    uint32_t  i;

    s->poll[0].fd = s->signals;
    s->poll[0].events = POLLIN;

    for (i = 0; i < s->conf->replicas; i++) {
        s->poll[i + 1].fd = s->child[i].ready;
        s->poll[i + 1].events = POLLIN;
    }

    if (poll(s->poll, (nfds_t) s->conf->replicas + 1,
             dsa_supervisor_timeout(s))
        <= 0)
    {
        return;
    }

    /*
     * Read messages first, because a replica that has died may have written
     * its reason.
     */

    for (i = 0; i < s->conf->replicas; i++) {
        if (s->poll[i + 1].revents != 0) {
            dsa_supervisor_message(s, i);
        }
    }

    if (s->poll[0].revents != 0) {
        dsa_supervisor_signal(s);
    }
}


/* Returns the timeout in milliseconds; -1: none. */

static int
dsa_supervisor_timeout(const dsa_supervisor_t *s)
{
    uint32_t            i;
    uint64_t            now, next, check;
    const dsa_conf_t   *conf;
    const dsa_child_t  *child;

    conf = s->conf;
    now = dsa_clock_ms();
    next = s->stopping ? s->kill_ms : UINT64_MAX;
    next = s->notify.next_ms < next ? s->notify.next_ms : next;

    for (i = 0; i < conf->replicas && !s->stopping; i++) {
        child = &s->child[i];

        if (child->pid == 0) {
            next = child->restart_ms < next ? child->restart_ms : next;
            continue;
        }

        check = child->ready != -1 ? conf->start_timeout_ms
                                   : conf->step_timeout_ms;

        if (check == 0 || child->killed) {
            continue;
        }

        /*
         * a hang is found late by at most a tenth of the timeout, and at most
         * a second
         */

        check /= 10;

        if (check < DSA_SUPERVISOR_LEAST) {
            check = DSA_SUPERVISOR_LEAST;

        } else if (check > DSA_SUPERVISOR_CHECK) {
            check = DSA_SUPERVISOR_CHECK;
        }

        next = now + check < next ? now + check : next;
    }

    if (next == UINT64_MAX) {
        return -1;
    }

    if (next <= now) {
        return 0;
    }

    return next - now < 60000 ? (int) (next - now) : 60000;
}


/* Kills a replica that hangs.  It is started again after it has died. */

static void
dsa_supervisor_check(dsa_supervisor_t *s, uint32_t i, uint64_t now)
{
    uint64_t           alive, step;
    dsa_child_t       *child;
    dsa_vitals_t      *vitals;
    const dsa_conf_t  *conf;

    conf = s->conf;
    child = &s->child[i];
    vitals = &s->shared[i].vitals;

    if (child->pid == 0 || child->killed) {
        return;
    }

    if (child->ready != -1) {
        if (conf->start_timeout_ms != 0
            && now >= child->started_ms + conf->start_timeout_ms)
        {
            dsa_supervisor_hung(s, i, "has not finished its start",
                                now - child->started_ms);
        }

        return;
    }

    if (conf->step_timeout_ms == 0) {
        return;
    }

    step = atomic_load(&vitals->step_started_ms);

    if (step != 0 && now >= step + conf->step_timeout_ms) {
        dsa_supervisor_hung(s, i, "has not finished a step", now - step);
        return;
    }

    alive = atomic_load(&vitals->alive_ms);

    if (alive < child->ready_ms) {
        alive = child->ready_ms;
    }

    if (now >= alive + conf->step_timeout_ms) {
        dsa_supervisor_hung(s, i, "has not run", now - alive);
    }
}


static void
dsa_supervisor_hung(dsa_supervisor_t *s, uint32_t i, const char *what,
    uint64_t ms)
{
    char          text[sizeof(dsa_err_t)];
    dsa_child_t  *child;

    child = &s->child[i];

    (void) snprintf(text, sizeof(text), "replica %u %s for %llu ms", i, what,
                    (unsigned long long) ms);

    if (!s->started && child->ready != -1) {
        dsa_supervisor_abandon(s, text);
        return;
    }

    dsa_log(DSA_LOG_ERR, "%s and is killed", text);

    child->killed = 1;
    (void) kill(child->pid, SIGKILL);
}


/*
 * Handles a failure of the first start: prints one line, and ends all
 * replicas.
 */

static void
dsa_supervisor_abandon(dsa_supervisor_t *s, const char *reason)
{
    (void) fprintf(stderr, "dsa-engine: %s\n", reason);

    s->failed = 1;
    dsa_supervisor_stop(s, SIGKILL);
}


static void
dsa_supervisor_message(dsa_supervisor_t *s, uint32_t i)
{
    char          text[sizeof(dsa_err_t)];
    ssize_t       n;
    dsa_child_t  *child;

    child = &s->child[i];

    do {
        n = read(child->ready, text, sizeof(text) - 1);
    } while (n == -1 && errno == EINTR);

    (void) close(child->ready);
    child->ready = -1;
    child->ready_ms = dsa_clock_ms();

    text[n > 0 ? n : 0] = '\0';

    if (strcmp(text, DSA_REPLICA_READY) == 0) {
        if (child->reload && child->pid != 0) {
            child->reload = 0;
            (void) kill(child->pid, SIGHUP);
        }

        dsa_supervisor_started(s);
        dsa_supervisor_status(s);
        return;
    }

    if (s->started || s->stopping) {
        if (n > 0) {
            dsa_log(DSA_LOG_ERR, "replica %u cannot start: %s", i, text);
        }

        return;
    }

    dsa_supervisor_abandon(s, n > 0 ? text
                                    : "a replica ended while it started");
}


/* Logs once that all replicas are ready. */

static void
dsa_supervisor_started(dsa_supervisor_t *s)
{
    uint32_t  i;

    if (s->started) {
        return;
    }

    for (i = 0; i < s->conf->replicas; i++) {
        if (s->child[i].pid == 0 || s->child[i].ready != -1) {
            return;
        }
    }

    s->started = 1;
    dsa_notify_send(&s->notify, "READY=1");
    dsa_log(DSA_LOG_NOTICE, "%u replica%s ready", s->conf->replicas,
            s->conf->replicas == 1 ? " is" : "s are");
}


/* Updates the status line of "systemctl status". */

static void
dsa_supervisor_status(const dsa_supervisor_t *s)
{
    char      text[64];
    uint32_t  i, n;

    n = 0;

    for (i = 0; i < s->conf->replicas; i++) {
        n += s->child[i].pid != 0 && s->child[i].ready == -1;
    }

    (void) snprintf(text, sizeof(text), "STATUS=%u of %u replicas are ready",
                    n, s->conf->replicas);
    dsa_notify_send(&s->notify, text);
}


static void
dsa_supervisor_signal(dsa_supervisor_t *s)
{
    struct signalfd_siginfo  info;

    while (read(s->signals, &info, sizeof(info)) == sizeof(info)) {

        if (info.ssi_signo == SIGCHLD) {
            dsa_supervisor_reap(s);
            continue;
        }

        if (info.ssi_signo == SIGHUP) {
            dsa_supervisor_reload(s);
            continue;
        }

        dsa_log(DSA_LOG_NOTICE, "signal %u: %s", info.ssi_signo,
                s->stopping ? "stopping now" : "stopping");

        dsa_supervisor_stop(s, s->stopping ? SIGUSR1 : SIGTERM);
    }
}


/*
 * Lets all replicas replace their weights.  One that is starting may have
 * opened the old ones, and does not block the signal yet: it gets the signal
 * when it is ready.
 */

static void
dsa_supervisor_reload(dsa_supervisor_t *s)
{
    uint32_t  i;

    if (s->stopping) {
        return;
    }

    dsa_log(DSA_LOG_NOTICE, "signal %d: replacing the weights", SIGHUP);

    for (i = 0; i < s->conf->replicas; i++) {
        if (s->child[i].pid == 0) {
            continue;
        }

        if (s->child[i].ready != -1) {
            s->child[i].reload = 1;

        } else {
            (void) kill(s->child[i].pid, SIGHUP);
        }
    }
}


static void
dsa_supervisor_reap(dsa_supervisor_t *s)
{
    int       status;
    pid_t     pid;
    uint32_t  i;

    for ( ;; ) {
        pid = waitpid(-1, &status, WNOHANG);

        if (pid <= 0) {
            return;
        }

        for (i = 0; i < s->conf->replicas; i++) {
            if (s->child[i].pid == pid) {
                dsa_supervisor_died(s, i, status);
            }
        }
    }
}


static void
dsa_supervisor_died(dsa_supervisor_t *s, uint32_t i, int status)
{
    uint32_t      shift;
    uint64_t      now, delay;
    dsa_child_t  *child;

    child = &s->child[i];
    child->pid = 0;

    if (child->ready != -1) {
        dsa_supervisor_message(s, i);
    }

    if (s->stopping) {
        if (!s->failed && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            && !child->killed)
        {
            dsa_log(DSA_LOG_ERR, "replica %u ended with status 0x%x while "
                    "draining", i, status);
            s->failed = 1;
        }

        return;
    }

    dsa_supervisor_status(s);

    now = dsa_clock_ms();

    /* the leader of a host that follows has ended, and may start again */

    if (s->conf->follow != NULL && WIFEXITED(status)
        && WEXITSTATUS(status) == 0)
    {
        child->failures = 0;
        child->restart_ms = now;
        return;
    }

    if (now - child->started_ms >= DSA_SUPERVISOR_STABLE) {
        child->failures = 0;
    }

    delay = 0;

    if (child->failures != 0) {
        shift = child->failures - 1 < 16 ? child->failures - 1 : 16;
        delay = (uint64_t) DSA_SUPERVISOR_FIRST << shift;

        if (delay > DSA_SUPERVISOR_DELAY) {
            delay = DSA_SUPERVISOR_DELAY;
        }
    }

    child->failures++;
    child->restart_ms = now + delay;

    if (WIFSIGNALED(status)) {
        dsa_log(DSA_LOG_ERR, "replica %u was killed by signal %d, a new one "
                "starts in %u ms", i, WTERMSIG(status), (unsigned) delay);

    } else {
        dsa_log(DSA_LOG_ERR, "replica %u ended with status %d, a new one "
                "starts in %u ms", i, WEXITSTATUS(status), (unsigned) delay);
    }
}


static void
dsa_supervisor_stop(dsa_supervisor_t *s, int sig)
{
    uint32_t  i;
    uint64_t  now;

    now = dsa_clock_ms();

    if (!s->stopping) {
        s->stopping = 1;
        dsa_notify_send(&s->notify, "STOPPING=1\nSTATUS=finishing requests");
        s->kill_ms = now + s->conf->drain_timeout_ms + DSA_SUPERVISOR_GRACE;

    } else if (sig == SIGUSR1 && s->kill_ms > now + DSA_SUPERVISOR_GRACE) {
        s->kill_ms = now + DSA_SUPERVISOR_GRACE;
    }

    for (i = 0; i < s->conf->replicas; i++) {
        if (s->child[i].pid == 0) {
            continue;
        }

        /*
         * Kill a replica that is starting, because it has no requests to
         * finish.
         */

        if (sig == SIGKILL || s->child[i].ready != -1) {
            s->child[i].killed = 1;
            (void) kill(s->child[i].pid, SIGKILL);

        } else {
            (void) kill(s->child[i].pid, sig);
        }
    }
}


static uint32_t
dsa_supervisor_alive(const dsa_supervisor_t *s)
{
    uint32_t  i, n;

    n = 0;

    for (i = 0; i < s->conf->replicas; i++) {
        n += s->child[i].pid != 0;
    }

    return n;
}
