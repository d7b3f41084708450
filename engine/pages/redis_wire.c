
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/pages/redis_wire.h"


static ssize_t dsa_wire_write(dsa_redis_wire_t *w, const struct msghdr *msg,
    short *events, dsa_err_t *err);
static ssize_t dsa_wire_read(dsa_redis_wire_t *w, const struct iovec *iov,
    int n, short *events, dsa_err_t *err);


void
dsa_redis_wire_close(dsa_redis_wire_t *w)
{
    dsa_redis_ssl_destroy(w->ssl);
    w->ssl = NULL;

    if (w->fd != -1) {
        (void) close(w->fd);
        w->fd = -1;
    }
}


int
dsa_redis_wire_fail(dsa_redis_wire_t *w)
{
    dsa_redis_wire_close(w);

    return DSA_ERROR;
}


int
dsa_redis_wire_wait(dsa_redis_wire_t *w, short events, dsa_err_t *err)
{
    int            n;
    uint64_t       now, until;
    struct pollfd  p[3];

    for ( ;; ) {
        now = dsa_clock_ms();
        until = w->last_ms + w->timeout_ms;

        if (now >= until) {
            (void) dsa_error(err, "timed out: not a byte in %llu ms",
                             (unsigned long long) w->timeout_ms);
            break;
        }

        until = until < w->deadline_ms ? until : w->deadline_ms;

        if (now >= until) {
            (void) dsa_error(err, "timed out: less than %d MB/s",
                             DSA_REDIS_SLOWEST / 1000);
            break;
        }

        p[0].fd = w->fd;
        p[0].events = events;
        p[1].fd = w->off_fd;
        p[1].events = POLLIN;
        p[2].fd = w->stop_fd;
        p[2].events = POLLIN;

        n = poll(p, 3, (int) (until - now));

        if (n == -1 && errno != EINTR) {
            (void) dsa_error(err, "poll() failed: %s", strerror(errno));
            break;
        }

        if (n > 0 && (p[1].revents != 0 || p[2].revents != 0)) {
            (void) dsa_error(err, "interrupted");
            break;
        }

        if (n > 0) {
            return DSA_OK;
        }
    }

    return dsa_redis_wire_fail(w);
}


int
dsa_redis_wire_send(dsa_redis_wire_t *w, struct iovec *iov, int n,
    dsa_err_t *err)
{
    short          events;
    ssize_t        size;
    struct msghdr  msg;

    memset(&msg, 0, sizeof(msg));
    msg.msg_iov = iov;
    msg.msg_iovlen = (size_t) n;

    while (msg.msg_iovlen != 0) {
        size = dsa_wire_write(w, &msg, &events, err);

        if (size == -1) {
            return dsa_redis_wire_fail(w);
        }

        if (size == 0) {
            if (dsa_redis_wire_wait(w, events, err) != DSA_OK) {
                return DSA_ERROR;
            }

            continue;
        }

        w->last_ms = dsa_clock_ms();

        while (msg.msg_iovlen != 0 && (size_t) size >= msg.msg_iov->iov_len) {
            size -= (ssize_t) msg.msg_iov->iov_len;
            msg.msg_iov++;
            msg.msg_iovlen--;
        }

        if (msg.msg_iovlen != 0) {
            msg.msg_iov->iov_base = (char *) msg.msg_iov->iov_base + size;
            msg.msg_iov->iov_len -= (size_t) size;
        }
    }

    return DSA_OK;
}


/*
 * Returns the bytes that were sent; 0: the socket must be ready for *events
 * first; -1 with err.  No iov is empty.
 */

static ssize_t
dsa_wire_write(dsa_redis_wire_t *w, const struct msghdr *msg, short *events,
    dsa_err_t *err)
{
    int      rc;
    size_t   n;
    ssize_t  size;

    if (w->ssl != NULL) {
        rc = dsa_redis_ssl_write(w->ssl, msg->msg_iov->iov_base,
                                 msg->msg_iov->iov_len, &n, events, err);

        return rc == DSA_OK ? (ssize_t) n : rc == DSA_AGAIN ? 0 : -1;
    }

    do {
        size = sendmsg(w->fd, msg, MSG_NOSIGNAL);
    } while (size == -1 && errno == EINTR);

    if (size == -1 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        *events = POLLOUT;
        return 0;
    }

    if (size == -1) {
        (void) dsa_error(err, "cannot send: %s", strerror(errno));
    }

    return size;
}


int
dsa_redis_wire_receive(dsa_redis_wire_t *w, struct iovec *iov, int n,
    size_t *size, dsa_err_t *err)
{
    short    events;
    ssize_t  rc;

    for ( ;; ) {
        rc = dsa_wire_read(w, iov, n, &events, err);

        if (rc > 0) {
            w->last_ms = dsa_clock_ms();
            *size = (size_t) rc;
            return DSA_OK;
        }

        if (rc == -1) {
            return dsa_redis_wire_fail(w);
        }

        if (dsa_redis_wire_wait(w, events, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }
}


/*
 * Returns the bytes that were received; 0: the socket must be ready for
 * *events first; -1 with err.
 */

static ssize_t
dsa_wire_read(dsa_redis_wire_t *w, const struct iovec *iov, int n,
    short *events, dsa_err_t *err)
{
    int      rc;
    size_t   len;
    ssize_t  size;

    if (w->ssl != NULL) {
        rc = dsa_redis_ssl_read(w->ssl, iov->iov_base, iov->iov_len, &len,
                                events, err);

        return rc == DSA_OK ? (ssize_t) len : rc == DSA_AGAIN ? 0 : -1;
    }

    do {
        size = readv(w->fd, iov, n);
    } while (size == -1 && errno == EINTR);

    if (size > 0) {
        return size;
    }

    if (size == -1 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        *events = POLLIN;
        return 0;
    }

    (void) dsa_error(err, size == 0 ? "Redis closed the connection"
                                    : "cannot receive: %s", strerror(errno));

    return -1;
}
