
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/service/listen.h"


#define DSA_LISTEN_BACKLOG  64
#define DSA_LISTEN_GROUPS   256         /* groups of a peer that are checked */


static int dsa_listen_bind(dsa_listen_t *l, const struct sockaddr_un *addr,
    dsa_err_t *err);
static int dsa_listen_stale(const struct sockaddr_un *addr, dsa_err_t *err);
static int dsa_listen_allowed(const dsa_listen_t *l, int fd);


int
dsa_listen_open(dsa_listen_t *l, const char *path, gid_t group,
    dsa_err_t *err)
{
    struct sockaddr_un  addr;

    l->fd = -1;

    memset(&addr, 0, sizeof(addr));
    addr.sun_family = AF_UNIX;

    if (strlen(path) >= sizeof(addr.sun_path)) {
        return dsa_error(err, "%s: a socket's path has at most %zu bytes",
                         path, sizeof(addr.sun_path) - 1);
    }

    memcpy(addr.sun_path, path, strlen(path));
    memcpy(l->path, addr.sun_path, sizeof(l->path));

    l->fd = socket(AF_UNIX, SOCK_SEQPACKET|SOCK_CLOEXEC|SOCK_NONBLOCK, 0);

    if (l->fd == -1) {
        return dsa_error(err, "socket(): %s", strerror(errno));
    }

    if (dsa_listen_bind(l, &addr, err) != DSA_OK) {
        (void) close(l->fd);
        l->fd = -1;
        return DSA_ERROR;
    }

    if (group != (gid_t) -1 && chown(path, (uid_t) -1, group) == -1) {
        (void) dsa_error(err, "%s: cannot change its group to %d: %s",
                         path, (int) group, strerror(errno));
        goto failed;
    }

    if (stat(path, &l->file) == -1
        || listen(l->fd, DSA_LISTEN_BACKLOG) == -1)
    {
        (void) dsa_error(err, "%s: %s", path, strerror(errno));
        goto failed;
    }

    return DSA_OK;

failed:

    (void) unlink(path);
    (void) close(l->fd);
    l->fd = -1;

    return DSA_ERROR;
}


int
dsa_listen_check(const char *path, dsa_err_t *err)
{
    int          length;
    char         dir[sizeof(((struct sockaddr_un *) 0)->sun_path)];
    const char  *slash, *why;
    struct stat  file;

    slash = strrchr(path, '/');
    length = slash == NULL ? 1 : slash == path ? 1 : (int) (slash - path);

    (void) snprintf(dir, sizeof(dir), "%.*s", length,
                    slash == NULL ? "." : path);

    why = NULL;

    if (stat(dir, &file) == -1) {
        why = strerror(errno);

    } else if (!S_ISDIR(file.st_mode)) {
        why = "not a directory";
    }

    if (why != NULL) {
        return dsa_error(err, "\"listen\" is \"unix:%s\", but %s: %s; "
                         "expected a directory in which the engine can make "
                         "its socket (by hand, by tmpfiles.d, or by "
                         "RuntimeDirectory of its unit)", path, dir, why);
    }

    if (lstat(path, &file) == 0 && !S_ISSOCK(file.st_mode)) {
        return dsa_error(err, "\"listen\" is \"unix:%s\", which exists and is "
                         "not a socket; expected a new name", path);
    }

    return DSA_OK;
}


static int
dsa_listen_bind(dsa_listen_t *l, const struct sockaddr_un *addr,
    dsa_err_t *err)
{
    int     rc, again;
    mode_t  mask;

    for (again = 0; again < 2; again++) {

        /* set the mode at creation: after a chmod() there would be a window */

        mask = umask(0117);
        rc = bind(l->fd, (const struct sockaddr *) addr, sizeof(*addr));
        (void) umask(mask);

        if (rc == 0) {
            return DSA_OK;
        }

        if (errno != EADDRINUSE || again != 0) {
            break;
        }

        if (dsa_listen_stale(addr, err) != DSA_OK) {
            return DSA_ERROR;
        }

        if (unlink(addr->sun_path) == -1 && errno != ENOENT) {
            return dsa_error(err, "%s: cannot replace it: %s", addr->sun_path,
                             strerror(errno));
        }
    }

    return dsa_error(err, "%s: cannot listen there: %s", addr->sun_path,
                     strerror(errno));
}


/*
 * Checks that no process listens at the socket, which a killed process has
 * left.  DSA_ERROR: it is in use.
 */

static int
dsa_listen_stale(const struct sockaddr_un *addr, dsa_err_t *err)
{
    int          fd, rc;
    struct stat  file;

    if (lstat(addr->sun_path, &file) == 0 && !S_ISSOCK(file.st_mode)) {
        return dsa_error(err, "%s: the file exists and is not a socket",
                         addr->sun_path);
    }

    fd = socket(AF_UNIX, SOCK_SEQPACKET|SOCK_CLOEXEC|SOCK_NONBLOCK, 0);

    if (fd == -1) {
        return dsa_error(err, "socket(): %s", strerror(errno));
    }

    do {
        rc = connect(fd, (const struct sockaddr *) addr, sizeof(*addr));
    } while (rc == -1 && errno == EINTR);

    if (rc == -1 && (errno == ECONNREFUSED || errno == ENOENT)) {
        (void) close(fd);
        return DSA_OK;
    }

    (void) close(fd);

    return dsa_error(err, "%s: another process listens there",
                     addr->sun_path);
}


void
dsa_listen_close(dsa_listen_t *l)
{
    struct stat  file;

    if (l->fd == -1) {
        return;
    }

    (void) close(l->fd);
    l->fd = -1;

    /* remove the socket only if another process has not replaced it */

    if (stat(l->path, &file) == 0 && file.st_dev == l->file.st_dev
        && file.st_ino == l->file.st_ino)
    {
        (void) unlink(l->path);
    }
}


int
dsa_listen_accept(dsa_listen_t *l)
{
    int  fd;

    do {
        fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC|SOCK_NONBLOCK);
    } while (fd == -1 && (errno == EINTR || errno == ECONNABORTED));

    if (fd != -1 && !dsa_listen_allowed(l, fd)) {
        (void) close(fd);
        errno = EPERM;
        return -1;
    }

    return fd;
}


static int
dsa_listen_allowed(const dsa_listen_t *l, int fd)
{
    gid_t         groups[DSA_LISTEN_GROUPS];
    size_t        i;
    socklen_t     len;
    struct ucred  peer;

    len = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == -1) {
        return 0;
    }

    if (peer.uid == 0 || peer.uid == geteuid() || peer.gid == l->file.st_gid) {
        return 1;
    }

    len = sizeof(groups);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) == -1) {
        return 0;
    }

    for (i = 0; i < len / sizeof(gid_t); i++) {
        if (groups[i] == l->file.st_gid) {
            return 1;
        }
    }

    return 0;
}
