
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/hosts/connect.h"
#include "engine/hosts/door.h"


#define DSA_HOSTS_TRY_MS    3000        /* of an attempt to connect */
#define DSA_HOSTS_AGAIN_MS  100         /* between two attempts */


static int dsa_hosts_connect_once(dsa_hosts_wire_t *w,
    const dsa_hosts_address_t *address, const dsa_hosts_secret_t *secret,
    dsa_err_t *err);
static int dsa_hosts_connect_to(dsa_hosts_wire_t *w,
    const struct addrinfo *info, dsa_err_t *err);


int
dsa_hosts_connect(dsa_hosts_wire_t *w, const char *address,
    const dsa_hosts_secret_t *secret, dsa_err_t *err)
{
    int                   rc;
    char                  last[sizeof(dsa_err_t)];
    uint64_t              deadline, limit;
    struct timespec       pause = { 0, DSA_HOSTS_AGAIN_MS * 1000000 };
    dsa_hosts_address_t   a;

    (void) snprintf(w->name, sizeof(w->name), "host %.300s", address);

    if (dsa_hosts_address(&a, address, err) != DSA_OK) {
        return DSA_ERROR;
    }

    deadline = w->deadline_ms;
    limit = w->limit_ms;
    last[0] = '\0';

    for ( ;; ) {
        dsa_hosts_wire_limit(w, DSA_HOSTS_TRY_MS);

        rc = dsa_hosts_connect_once(w, &a, secret, err);

        w->deadline_ms = deadline;
        w->limit_ms = limit;

        if (rc != DSA_AGAIN) {
            break;
        }

        if (dsa_clock_ms() >= deadline) {
            rc = DSA_ERROR;
            break;
        }

        if (strcmp(last, err->text) != 0) {
            (void) snprintf(last, sizeof(last), "%s", err->text);
            dsa_log(DSA_LOG_NOTICE, "waits for %s: %s", w->name, last);
        }

        (void) nanosleep(&pause, NULL);
    }

    if (rc != DSA_OK) {
        dsa_hosts_wire_close(w);
    }

    return rc;
}


/* DSA_AGAIN with err: another attempt may succeed. */

static int
dsa_hosts_connect_once(dsa_hosts_wire_t *w, const dsa_hosts_address_t *address,
    const dsa_hosts_secret_t *secret, dsa_err_t *err)
{
    int               rc;
    struct addrinfo  *info, *at, hints;

    memset(&hints, 0, sizeof(hints));
    hints.ai_socktype = SOCK_STREAM;

    rc = getaddrinfo(address->host, address->port, &hints, &info);

    if (rc != 0) {
        (void) dsa_error(err, "%s cannot be resolved: %s", w->name,
                         gai_strerror(rc));
        return DSA_AGAIN;
    }

    rc = DSA_AGAIN;

    for (at = info; at != NULL && rc == DSA_AGAIN; at = at->ai_next) {
        rc = dsa_hosts_connect_to(w, at, err);
        rc = rc == DSA_OK ? dsa_hosts_hello_leader(w, secret, err) : rc;

        if (rc != DSA_OK) {
            dsa_hosts_wire_close(w);
        }
    }

    freeaddrinfo(info);

    return rc;
}


static int
dsa_hosts_connect_to(dsa_hosts_wire_t *w, const struct addrinfo *info,
    dsa_err_t *err)
{
    int            failed;
    socklen_t      len;
    struct pollfd  p;

    w->fd = socket(info->ai_family,
                   info->ai_socktype|SOCK_CLOEXEC|SOCK_NONBLOCK,
                   info->ai_protocol);

    if (w->fd == -1) {
        return dsa_error(err, "socket(): %s", strerror(errno));
    }

    dsa_hosts_wire_options(w->fd);
    failed = 0;

    if (connect(w->fd, info->ai_addr, info->ai_addrlen) == -1) {
        failed = errno;
    }

    if (failed == EINPROGRESS) {
        p.fd = w->fd;
        p.events = POLLOUT;
        len = sizeof(failed);

        if (poll(&p, 1, DSA_HOSTS_TRY_MS) != 1) {
            failed = ETIMEDOUT;

        } else if (getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &failed, &len)
                   == -1)
        {
            failed = errno;
        }
    }

    if (failed != 0) {
        (void) dsa_error(err, "%s: %s", w->name, strerror(failed));
        return DSA_AGAIN;
    }

    return DSA_OK;
}
