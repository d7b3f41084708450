
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Followers as processes, for the tests of a replica over several hosts.
 */


#ifndef _DSA_T_HOSTS_H_INCLUDED_
#define _DSA_T_HOSTS_H_INCLUDED_


#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/hosts/door.h"
#include "engine/hosts/follower.h"
#include "engine/hosts/leader.h"
#include "t/unit/ranks.h"


#define HOSTS_MOST      4
#define HOSTS_START_MS  60000           /* generous deadlines */
#define HOSTS_STEP_MS   60000


/* A follower; a test sets the members that differ from the others. */

typedef struct {
    const char         *model;
    const char         *secret;
    dsa_backend_e       kind;
    uint32_t            gpus;
    uint32_t            gpu;            /* the number of the first one */
    uint32_t            exec;           /* 1: as a program of its own, see
                                           follower_main() */
    dsa_backend_t    *(*open)(dsa_backend_e kind,
                              const dsa_backend_conf_t *conf, dsa_err_t *err);
    dsa_hosts_tiers_pt  tiers;
    int               (*serve)(dsa_hosts_wire_t *w);    /* in place of
                                           dsa_hosts_follow(); NULL: that */
    pid_t               pid;
    char                address[64];
} follower_t;


typedef struct {
    follower_t          follower[HOSTS_MOST];
    uint32_t            n;
    char               *address[HOSTS_MOST];
    dsa_hosts_secret_t  secret;
    dsa_hosts_leader_t  leader;
    _Atomic uint32_t    failures;       /* calls of failed() */
} hosts_t;


static const char  hosts_secret[] = "a secret of 40 bytes, which hosts share.";


static inline void
hosts_secret_set(dsa_hosts_secret_t *secret, const char *text)
{
    secret->len = strlen(text);
    memcpy(secret->text, text, secret->len);
}


/* The process of a follower.  It writes its address to a pipe. */

static inline int
follower_run(const follower_t *f, int pipe)
{
    int                    rc;
    FILE                  *file;
    uint32_t               i;
    dsa_err_t              err;
    dsa_hosts_wire_t       w;
    dsa_hosts_door_t      *door;
    _Atomic uint64_t       step;
    dsa_hosts_secret_t     secret;
    dsa_hosts_follower_t   conf;

    (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
    dsa_log_level(getenv("DSA_T_LOG") != NULL ? DSA_LOG_DEBUG : DSA_LOG_ERR);

    memset(&w, 0, sizeof(w));
    memset(&conf, 0, sizeof(conf));
    hosts_secret_set(&secret, f->secret);

    door = dsa_hosts_door_open("127.0.0.1:0", &secret, &err);
    file = fdopen(pipe, "w");

    if (door == NULL || file == NULL) {
        return 1;
    }

    (void) fprintf(file, "127.0.0.1:%d", dsa_hosts_door_port(door));
    (void) fclose(file);

    while (dsa_hosts_door_wait(door, 1000, -1, &w) != DSA_OK) {
        /* void */
    }

    dsa_hosts_door_close(door);

    if (f->serve != NULL) {
        return f->serve(&w);
    }

    conf.kind = f->kind;
    conf.backend.model = f->model;
    conf.backend.gpus = f->gpus;
    conf.open = f->open;
    conf.tiers = f->tiers;

    for (i = 0; i < f->gpus; i++) {
        conf.backend.gpu[i] = f->gpu + i;
    }

    conf.step_started_ms = &step;

    rc = dsa_hosts_follow(&w, &conf, &err);

    if (rc != DSA_OK) {
        dsa_log(DSA_LOG_DEBUG, "the follower ends: %s", err.text);
    }

    return rc == DSA_OK ? 0 : 3;
}


/*
 * A process that has used CUDA cannot fork one that uses it, so that the test
 * starts itself again, and calls this first: it returns if argv has no
 * follower.
 */

static inline void
follower_main(int argc, char **argv)
{
    follower_t  f;

    if (argc != 7 || strcmp(argv[1], "--follow") != 0) {
        return;
    }

    memset(&f, 0, sizeof(f));
    f.model = argv[2];
    f.secret = hosts_secret;
    f.kind = (dsa_backend_e) atoi(argv[3]);
    f.gpus = (uint32_t) atoi(argv[4]);
    f.gpu = (uint32_t) atoi(argv[5]);
    f.open = dsa_backend_open;

    exit(follower_run(&f, atoi(argv[6])));
}


static inline void
follower_exec(const follower_t *f, int pipe)
{
    char  kind[16], gpus[16], gpu[16], fd[16];

    (void) snprintf(kind, sizeof(kind), "%d", (int) f->kind);
    (void) snprintf(gpus, sizeof(gpus), "%u", f->gpus);
    (void) snprintf(gpu, sizeof(gpu), "%u", f->gpu);
    (void) snprintf(fd, sizeof(fd), "%d", pipe);

    (void) execl("/proc/self/exe", "follower", "--follow", f->model, kind,
                 gpus, gpu, fd, (char *) NULL);
    _exit(127);
}


static inline void
follower_start(follower_t *f)
{
    int      fds[2];
    ssize_t  n;

    assert_int_equal(pipe(fds), 0);

    f->pid = fork();
    assert_true(f->pid != -1);

    if (f->pid == 0) {
        (void) close(fds[0]);

        if (f->exec) {
            follower_exec(f, fds[1]);
        }

        _exit(follower_run(f, fds[1]));
    }

    (void) close(fds[1]);
    n = read(fds[0], f->address, sizeof(f->address) - 1);
    (void) close(fds[0]);

    assert_true(n > 0);
    f->address[n] = '\0';
}


/* Returns the exit status of a follower, or 128 + its signal. */

static inline int
follower_ended(follower_t *f)
{
    int  status;

    assert_int_equal(waitpid(f->pid, &status, 0), f->pid);
    f->pid = 0;

    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}


static inline void
hosts_failed(void *data)
{
    hosts_t  *h = data;

    h->failures++;
}


static inline void
hosts_arrived(void *data)
{
}


/*
 * On a machine that is busy, a call may return later than a second after a host
 * has ended, and then this is called, too.  The call returns all the same.
 */

static inline void
hosts_abort(void *data, const char *text)
{
    dsa_log_debug("abort: %s", text);
}


/* n followers on this machine, which are not started yet. */

static inline void
hosts_init(hosts_t *h, const char *model, uint32_t n, uint32_t gpus)
{
    uint32_t  i;

    memset(h, 0, sizeof(hosts_t));
    h->n = n;

    for (i = 0; i < n; i++) {
        h->follower[i].model = model;
        h->follower[i].secret = hosts_secret;
        h->follower[i].kind = DSA_BACKEND_CPU;
        h->follower[i].gpus = gpus;
        h->follower[i].open = dsa_backend_open;
        h->address[i] = h->follower[i].address;
    }

    hosts_secret_set(&h->secret, hosts_secret);

    h->leader.address = h->address;
    h->leader.n = n;
    h->leader.secret = &h->secret;
    h->leader.start_ms = HOSTS_START_MS;
    h->leader.step_ms = HOSTS_STEP_MS;
    h->leader.open = dsa_backend_open;
    h->leader.failed = hosts_failed;
    h->leader.arrived = hosts_arrived;
    h->leader.abort = hosts_abort;
    h->leader.data = h;
}


static inline void
hosts_start(hosts_t *h)
{
    uint32_t  i;

    for (i = 0; i < h->n; i++) {
        follower_start(&h->follower[i]);
    }
}


/* All followers end by themselves, with this status. */

static inline void
hosts_end(hosts_t *h, int status)
{
    uint32_t  i;

    for (i = 0; i < h->n; i++) {
        assert_int_equal(follower_ended(&h->follower[i]), status);
    }
}


/* A leader on CPUs of one rank here, with the followers of hosts_start(). */

static inline dsa_backend_t *
hosts_lead(hosts_t *h, const char *model, uint64_t host_memory,
    dsa_err_t *err)
{
    dsa_backend_conf_t  conf;

    memset(&conf, 0, sizeof(conf));
    conf.model = model;
    conf.precision = DSA_SERVED;
    conf.gpus = 1;
    conf.kv_memory = 4 << 20;
    conf.host_memory = host_memory;
    conf.max_tokens = 64;
    conf.max_seqs = 2;
    conf.allowed = 1024;

    return dsa_hosts_lead(DSA_BACKEND_CPU, &conf, &h->leader, err);
}


#endif /* _DSA_T_HOSTS_H_INCLUDED_ */
