
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
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/service/replica.h"
#include "engine/service/supervisor.h"


#define DSA_SUPERVISOR_FIRST    100     /* ms, the first delay */


typedef struct {
    pid_t       pid;                    /* 0: does not run */
    int         ready;                  /* pipe, -1 when it has spoken */
    uint32_t    killed;                 /* by the supervisor */
    uint32_t    failures;               /* in a row */
    uint64_t    started;                /* ms */
    uint64_t    restart;                /* ms, when pid is 0 */
} dsa_child_t;


typedef struct {
    const dsa_conf_t   *conf;
    dsa_child_t        *child;          /* [conf->replicas] */
    struct pollfd      *poll;           /* [conf->replicas + 1] */
    int                 signals;
    sigset_t            mask;           /* as it was */
    uint32_t            started;        /* all replicas were ready once */
    uint32_t            stopping;
    uint32_t            failed;
    uint64_t            kill;           /* ms; when stopping */
} dsa_supervisor_t;


static int dsa_supervisor_init(dsa_supervisor_t *s, const dsa_conf_t *conf);
static int dsa_supervisor_spawn(dsa_supervisor_t *s, uint32_t i);
static void dsa_supervisor_wait(dsa_supervisor_t *s);
static void dsa_supervisor_heard(dsa_supervisor_t *s, uint32_t i);
static void dsa_supervisor_signal(dsa_supervisor_t *s);
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

        if (s.stopping) {
            if (now >= s.kill) {
                dsa_supervisor_stop(&s, SIGKILL);
                s.kill = now + DSA_SUPERVISOR_GRACE;
            }

            continue;
        }

        for (i = 0; i < conf->replicas; i++) {
            if (s.child[i].pid == 0 && now >= s.child[i].restart
                && dsa_supervisor_spawn(&s, i) != DSA_OK)
            {
                s.child[i].restart = now + DSA_SUPERVISOR_DELAY;
            }
        }
    }

    for (i = 0; i < conf->replicas; i++) {
        if (s.child[i].ready != -1) {
            (void) close(s.child[i].ready);
        }
    }

    (void) close(s.signals);
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

    (void) sigemptyset(&set);
    (void) sigaddset(&set, SIGTERM);
    (void) sigaddset(&set, SIGINT);
    (void) sigaddset(&set, SIGQUIT);
    (void) sigaddset(&set, SIGCHLD);

    s->signals = signalfd(-1, &set, SFD_CLOEXEC|SFD_NONBLOCK);

    if (s->child == NULL || s->poll == NULL || s->signals == -1
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

        /* the replica dies with its supervisor, also when it just did */

        if (prctl(PR_SET_PDEATHSIG, SIGKILL) == -1 || getppid() != parent
            || sigprocmask(SIG_SETMASK, &s->mask, NULL) == -1)
        {
            _exit(1);
        }

        (void) close(fds[0]);
        (void) close(s->signals);

        for (j = 0; j < s->conf->replicas; j++) {
            if (s->child[j].ready != -1) {
                (void) close(s->child[j].ready);
            }
        }

        free(s->child);
        free(s->poll);

        rc = dsa_replica_run(s->conf, i, fds[1]);

        /* conf and its strings are the parent's stack: nothing to return to */

        exit(rc);
    }

    (void) close(fds[1]);

    if (child->ready != -1) {
        (void) close(child->ready);
    }

    child->pid = pid;
    child->ready = fds[0];
    child->started = dsa_clock_ms();

    return DSA_OK;
}


/* Until a signal, a word from a replica, or the time to do something. */

static void
dsa_supervisor_wait(dsa_supervisor_t *s)
{
    int       timeout;
    uint32_t  i;
    uint64_t  now, next;

    now = dsa_clock_ms();
    next = s->stopping ? s->kill : UINT64_MAX;

    s->poll[0].fd = s->signals;
    s->poll[0].events = POLLIN;

    for (i = 0; i < s->conf->replicas; i++) {
        s->poll[i + 1].fd = s->child[i].ready;
        s->poll[i + 1].events = POLLIN;

        if (s->child[i].pid == 0 && !s->stopping
            && s->child[i].restart < next)
        {
            next = s->child[i].restart;
        }
    }

    if (next == UINT64_MAX) {
        timeout = -1;

    } else {
        timeout = next > now ? (int) (next - now < 60000 ? next - now : 60000)
                             : 0;
    }

    if (poll(s->poll, (nfds_t) s->conf->replicas + 1, timeout) <= 0) {
        return;
    }

    /* a replica's last word before its death */

    for (i = 0; i < s->conf->replicas; i++) {
        if (s->poll[i + 1].revents != 0) {
            dsa_supervisor_heard(s, i);
        }
    }

    if (s->poll[0].revents != 0) {
        dsa_supervisor_signal(s);
    }
}


static void
dsa_supervisor_heard(dsa_supervisor_t *s, uint32_t i)
{
    char          text[sizeof(dsa_err_t)];
    ssize_t       n;
    uint32_t      j;
    dsa_child_t  *child;

    child = &s->child[i];

    do {
        n = read(child->ready, text, sizeof(text) - 1);
    } while (n == -1 && errno == EINTR);

    (void) close(child->ready);
    child->ready = -1;

    text[n > 0 ? n : 0] = '\0';

    if (strcmp(text, DSA_REPLICA_READY) == 0) {
        if (s->started) {
            return;
        }

        for (j = 0; j < s->conf->replicas; j++) {
            if (s->child[j].pid == 0 || s->child[j].ready != -1) {
                return;
            }
        }

        s->started = 1;
        dsa_log(DSA_LOG_NOTICE, "%u replica%s ready", s->conf->replicas,
                s->conf->replicas == 1 ? " is" : "s are");
        return;
    }

    if (s->started || s->stopping) {
        if (n > 0) {
            dsa_log(DSA_LOG_ERR, "replica %u cannot start: %s", i, text);
        }

        return;
    }

    (void) fprintf(stderr, "dsa-engine: %s\n",
                   n > 0 ? text : "a replica died while it started");

    s->failed = 1;
    dsa_supervisor_stop(s, SIGKILL);
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

        dsa_log(DSA_LOG_NOTICE, "signal %u: stops%s", info.ssi_signo,
                s->stopping ? " now" : "");

        dsa_supervisor_stop(s, s->stopping ? SIGUSR1 : SIGTERM);
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
        dsa_supervisor_heard(s, i);
    }

    if (s->stopping) {
        if (!s->failed && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            && !child->killed)
        {
            dsa_log(DSA_LOG_ERR, "replica %u ended with status 0x%x while "
                    "it drained", i, status);
            s->failed = 1;
        }

        return;
    }

    now = dsa_clock_ms();

    if (now - child->started >= DSA_SUPERVISOR_STABLE) {
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
    child->restart = now + delay;

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
        s->kill = now + s->conf->drain_timeout + DSA_SUPERVISOR_GRACE;

    } else if (sig == SIGUSR1 && s->kill > now + DSA_SUPERVISOR_GRACE) {
        s->kill = now + DSA_SUPERVISOR_GRACE;
    }

    for (i = 0; i < s->conf->replicas; i++) {
        if (s->child[i].pid == 0) {
            continue;
        }

        /* one that still starts has nothing to finish */

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
