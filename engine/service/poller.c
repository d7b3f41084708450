
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "engine/service/poller.h"


#define DSA_POLLER_EVENTS   64


int
dsa_poller_open(dsa_poller_t *p, dsa_err_t *err)
{
    p->epoll = epoll_create1(EPOLL_CLOEXEC);

    if (p->epoll == -1) {
        return dsa_error(err, "epoll_create1(): %s", strerror(errno));
    }

    return DSA_OK;
}


void
dsa_poller_close(dsa_poller_t *p)
{
    if (p->epoll != -1) {
        (void) close(p->epoll);
        p->epoll = -1;
    }
}


int
dsa_poller_add(dsa_poller_t *p, int fd, uint32_t events, dsa_source_t *source)
{
    struct epoll_event  event;

    memset(&event, 0, sizeof(event));

    event.events = events;
    event.data.ptr = source;

    return epoll_ctl(p->epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? DSA_OK
                                                               : DSA_ERROR;
}


/*
 * Removes a descriptor.  close() alone does not remove it from epoll if
 * another process has the same open file, and epoll would report events for a
 * freed source.
 */

void
dsa_poller_remove(dsa_poller_t *p, int fd)
{
    (void) epoll_ctl(p->epoll, EPOLL_CTL_DEL, fd, NULL);
}


int
dsa_poller_wait(dsa_poller_t *p, int timeout_ms)
{
    int                  i, n;
    dsa_source_t        *source;
    struct epoll_event   events[DSA_POLLER_EVENTS];

    n = epoll_wait(p->epoll, events, DSA_POLLER_EVENTS, timeout_ms);

    if (n == -1 && errno != EINTR) {
        return DSA_ERROR;
    }

    for (i = 0; i < n; i++) {
        source = events[i].data.ptr;
        source->handler(source->data);
    }

    return DSA_OK;
}
