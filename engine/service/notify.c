
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/service/notify.h"


static void dsa_notify_watchdog(dsa_notify_t *n);


void
dsa_notify_open(dsa_notify_t *n)
{
    size_t              len;
    const char         *path;
    struct sockaddr_un  addr;

    n->fd = -1;
    n->period_ms = 0;
    n->next_ms = UINT64_MAX;

    path = getenv("NOTIFY_SOCKET");

    if (path == NULL) {
        return;
    }

    len = strlen(path);
    memset(&addr, 0, sizeof(addr));
    addr.sun_family = AF_UNIX;

    if ((path[0] != '/' && path[0] != '@') || len >= sizeof(addr.sun_path)) {
        dsa_log(DSA_LOG_WARN, "NOTIFY_SOCKET is \"%s\"; expected a path or an "
                "abstract address of a unix socket", path);
        return;
    }

    memcpy(addr.sun_path, path, len);

    if (path[0] == '@') {
        addr.sun_path[0] = '\0';
    }

    n->fd = socket(AF_UNIX, SOCK_DGRAM|SOCK_CLOEXEC|SOCK_NONBLOCK, 0);

    if (n->fd == -1
        || connect(n->fd, (struct sockaddr *) &addr,
                   (socklen_t) (offsetof(struct sockaddr_un, sun_path) + len))
           == -1)
    {
        dsa_log(DSA_LOG_WARN, "NOTIFY_SOCKET \"%s\": %s", path,
                strerror(errno));
        dsa_notify_close(n);
        return;
    }

    dsa_notify_watchdog(n);
}


/*
 * Reads the period of the watchdog.  The service manager expects a
 * notification within WATCHDOG_USEC; two are sent in this time.
 */

static void
dsa_notify_watchdog(dsa_notify_t *n)
{
    char                *end;
    const char          *usec, *pid;
    unsigned long long   v;

    usec = getenv("WATCHDOG_USEC");
    pid = getenv("WATCHDOG_PID");

    if (usec == NULL
        || (pid != NULL && strtoull(pid, NULL, 10)
                           != (unsigned long long) getpid()))
    {
        return;
    }

    v = strtoull(usec, &end, 10);

    if (usec[0] < '0' || usec[0] > '9' || *end != '\0' || v / 2000 == 0) {
        dsa_log(DSA_LOG_WARN, "WATCHDOG_USEC is \"%s\"; expected a number of "
                "at least 2000", usec);
        return;
    }

    n->period_ms = v / 2000;
    n->next_ms = dsa_clock_ms();
}


void
dsa_notify_close(dsa_notify_t *n)
{
    if (n->fd != -1) {
        (void) close(n->fd);
        n->fd = -1;
    }
}


void
dsa_notify_send(const dsa_notify_t *n, const char *lines)
{
    if (n->fd != -1) {
        (void) send(n->fd, lines, strlen(lines), MSG_NOSIGNAL);
    }
}


void
dsa_notify_alive(dsa_notify_t *n, uint64_t now_ms)
{
    if (now_ms >= n->next_ms) {
        dsa_notify_send(n, "WATCHDOG=1");
        n->next_ms = now_ms + n->period_ms;
    }
}
