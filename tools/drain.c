
/*
 * Copyright (C) The nginx-dsa authors
 *
 * dsa drain: ends the engine that listens at a socket as its service manager
 * does, by SIGTERM to its supervisor, and waits until it has ended.
 */


#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/options.h"
#include "tools/dsa.h"


#define DSA_DRAIN_REPORT_MS  10000      /* between two lines while it waits */
#define DSA_DRAIN_PATH       4096


static const char  dsa_drain_usage[] =
    "usage: dsa drain unix:SOCKET\n"
    "\n"
    "Ends the engine that listens there, with all of its replicas, after its\n"
    "answers: it gets no more requests, other engines of its pool continue\n"
    "what takes longer than its drain_timeout, and the command waits until\n"
    "it has ended.  systemd starts an instance of dsa-engine@ again.\n";


static int dsa_drain_options(const char **path, int argc, char **argv);
static int dsa_drain_open(const char *path, pid_t *pid, dsa_err_t *err);
static int dsa_drain_peer(const char *path, pid_t *pid, dsa_err_t *err);
static pid_t dsa_drain_parent(pid_t pid);
static int dsa_drain_program(pid_t pid, char path[DSA_DRAIN_PATH]);
static void dsa_drain_wait(int fd, const char *path, pid_t pid);


int
dsa_cmd_drain(int argc, char **argv)
{
    int          rc, fd;
    pid_t        pid;
    dsa_err_t    err;
    const char  *path;

    rc = dsa_drain_options(&path, argc, argv);

    if (rc != -1) {
        return rc;
    }

    fd = dsa_drain_open(path, &pid, &err);

    if (fd == -1) {
        (void) fprintf(stderr, "dsa drain: %s\n", err.text);
        return 1;
    }

    if (syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0) == -1
        && errno != ESRCH)
    {
        (void) fprintf(stderr, "dsa drain: unix:%s: cannot end process %d: "
                       "%s; expected root or the user of the engine\n", path,
                       (int) pid, strerror(errno));
        (void) close(fd);
        return 1;
    }

    dsa_drain_wait(fd, path, pid);
    (void) close(fd);

    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}


/* Returns -1 when the command is to run, else the exit status. */

static int
dsa_drain_options(const char **path, int argc, char **argv)
{
    int  opt;

    static const struct option  options[] = {
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 }
    };

    opt = dsa_option("dsa drain", argc, argv, "h", options);

    if (opt == 'h') {
        return fputs(dsa_drain_usage, stdout) != EOF ? 0 : 1;
    }

    if (opt != -1) {
        return 2;
    }

    if (optind + 1 != argc || strncmp(argv[optind], "unix:", 5) != 0) {
        (void) fprintf(stderr, "dsa drain: expected one address, the unix:PATH "
                       "of \"listen\" in the configuration of the engine\n");
        return 2;
    }

    *path = argv[optind] + 5;

    return -1;
}


/*
 * Returns a descriptor of the supervisor of the engine that listens at path,
 * and its process id; -1 with err.  A replica listens, and its parent is the
 * supervisor if it runs the same program.  The ids are compared again when the
 * descriptor is open: until then another process may have got one of them.
 */

static int
dsa_drain_open(const char *path, pid_t *pid, dsa_err_t *err)
{
    int    fd;
    char   program[DSA_DRAIN_PATH], other[DSA_DRAIN_PATH];
    pid_t  replica, again;

    if (dsa_drain_peer(path, &replica, err) != DSA_OK) {
        return -1;
    }

    *pid = dsa_drain_parent(replica);

    if (*pid <= 0 || dsa_drain_program(replica, program) != DSA_OK
        || dsa_drain_program(*pid, other) != DSA_OK)
    {
        (void) dsa_error(err, "unix:%s: cannot read /proc of process %d, which "
                         "listens there: %s; expected root or the user of the "
                         "engine", path, (int) replica, strerror(errno));
        return -1;
    }

    if (strcmp(program, other) != 0) {
        (void) dsa_error(err, "unix:%s: process %d, which listens there, is "
                         "not a replica of an engine: its parent runs %s, but "
                         "it runs %s", path, (int) replica, other, program);
        return -1;
    }

    fd = (int) syscall(SYS_pidfd_open, *pid, 0);

    if (fd != -1 && dsa_drain_peer(path, &again, err) == DSA_OK
        && again == replica && dsa_drain_parent(replica) == *pid)
    {
        return fd;
    }

    (void) dsa_error(err, "unix:%s: the engine has ended meanwhile", path);

    if (fd != -1) {
        (void) close(fd);
    }

    return -1;
}


/* The process that listens at path. */

static int
dsa_drain_peer(const char *path, pid_t *pid, dsa_err_t *err)
{
    int                 fd, rc;
    socklen_t           len;
    struct ucred        peer;
    struct sockaddr_un  addr;

    memset(&addr, 0, sizeof(addr));
    addr.sun_family = AF_UNIX;

    if (*path == '\0' || strlen(path) >= sizeof(addr.sun_path)) {
        return dsa_error(err, "unix:%s: expected a path of 1 to %zu bytes",
                         path, sizeof(addr.sun_path) - 1);
    }

    memcpy(addr.sun_path, path, strlen(path));

    fd = socket(AF_UNIX, SOCK_SEQPACKET|SOCK_CLOEXEC, 0);

    if (fd == -1) {
        return dsa_error(err, "socket(): %s", strerror(errno));
    }

    len = sizeof(peer);
    rc = connect(fd, (const struct sockaddr *) &addr, sizeof(addr));

    if (rc == 0) {
        rc = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
    }

    if (rc == -1) {
        (void) dsa_error(err, "unix:%s: %s; expected the socket of a running "
                         "engine", path, strerror(errno));

    } else if (peer.pid == 0) {
        rc = -1;
        (void) dsa_error(err, "unix:%s: the engine runs in another container; "
                         "run the command there, or end the container by its "
                         "runtime", path);
    }

    (void) close(fd);

    *pid = rc == 0 ? peer.pid : 0;

    return rc == 0 ? DSA_OK : DSA_ERROR;
}


/* The parent of a process; -1 if it cannot be read. */

static pid_t
dsa_drain_parent(pid_t pid)
{
    int    parent;
    char   name[64], line[256];
    FILE  *f;

    (void) snprintf(name, sizeof(name), "/proc/%d/status", (int) pid);

    f = fopen(name, "r");

    if (f == NULL) {
        return -1;
    }

    parent = -1;

    while (fgets(line, sizeof(line), f) != NULL) {
        if (sscanf(line, "PPid: %d", &parent) == 1) {
            break;
        }
    }

    (void) fclose(f);

    return parent;
}


/* The path of the program of a process, also if the file was replaced. */

static int
dsa_drain_program(pid_t pid, char path[DSA_DRAIN_PATH])
{
    char     name[64];
    ssize_t  n;

    (void) snprintf(name, sizeof(name), "/proc/%d/exe", (int) pid);

    n = readlink(name, path, DSA_DRAIN_PATH - 1);

    if (n == -1) {
        return DSA_ERROR;
    }

    path[n] = '\0';

    return DSA_OK;
}


/*
 * Waits until the process has ended.  The engine bounds the time itself, by its
 * drain_timeout; if it does not, lines report it.
 */

static void
dsa_drain_wait(int fd, const char *path, pid_t pid)
{
    int            rc;
    double         seconds;
    uint64_t       start;
    struct pollfd  p;

    (void) printf("unix:%s: the engine, process %d, finishes its answers\n",
                  path, (int) pid);

    start = dsa_clock_ms();

    for ( ;; ) {
        (void) fflush(stdout);

        p.fd = fd;
        p.events = POLLIN;
        rc = poll(&p, 1, DSA_DRAIN_REPORT_MS);
        seconds = (double) (dsa_clock_ms() - start) / 1000;

        if (rc > 0) {
            (void) printf("unix:%s: the engine has ended after %.1f s\n", path,
                          seconds);
            return;
        }

        (void) printf("unix:%s: the engine has not ended after %.1f s\n", path,
                      seconds);
    }
}
