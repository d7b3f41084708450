
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/hosts/wire.h"


#define DSA_HOSTS_IDLE_S    3           /* until a silent machine is asked */
#define DSA_HOSTS_GONE_MS   8000        /* until it counts as gone */
#define DSA_HOSTS_FAULT_MS  1000        /* to read a FAULT */


static int dsa_hosts_wire_wait(dsa_hosts_wire_t *w, short events,
    dsa_err_t *err);
static int dsa_hosts_wire_failed(const dsa_hosts_wire_t *w, dsa_err_t *err);
static void dsa_hosts_wire_sent(struct msghdr *message, size_t n);
static int dsa_hosts_wire_text(dsa_hosts_wire_t *w, uint64_t bytes,
    dsa_err_t *err);


const char *
dsa_hosts_type(uint32_t type)
{
    static const char  *names[DSA_HOSTS_TYPES] = {
        [DSA_HOSTS_HELLO] = "HELLO",
        [DSA_HOSTS_PROOFS] = "PROOF",
        [DSA_HOSTS_PLAN] = "PLAN",
        [DSA_HOSTS_READY] = "READY",
        [DSA_HOSTS_STEP] = "STEP",
        [DSA_HOSTS_COPY] = "COPY",
        [DSA_HOSTS_MOVE] = "MOVE",
        [DSA_HOSTS_MOVED] = "MOVED",
        [DSA_HOSTS_TIER] = "TIER",
        [DSA_HOSTS_TIERED] = "TIERED",
        [DSA_HOSTS_DATA] = "DATA",
        [DSA_HOSTS_RESULT] = "RESULT",
        [DSA_HOSTS_BYE] = "BYE",
        [DSA_HOSTS_FAULT] = "FAULT"
    };

    return type > 0 && type < DSA_HOSTS_TYPES ? names[type]
                                              : "an unknown message";
}


void
dsa_hosts_wire_options(int fd)
{
    int  on, idle, interval, count, gone;

    on = 1;
    idle = DSA_HOSTS_IDLE_S;
    interval = 1;
    count = 5;
    gone = DSA_HOSTS_GONE_MS;

    /* a socket without them works as well, but is slower, or notices later */

    (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(int));
    (void) setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(int));
    (void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(int));
    (void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(int));
    (void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(int));
    (void) setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &gone, sizeof(int));
}


void
dsa_hosts_wire_limit(dsa_hosts_wire_t *w, uint64_t limit_ms)
{
    w->limit_ms = limit_ms;
    w->deadline_ms = limit_ms != 0 ? dsa_clock_ms() + limit_ms : UINT64_MAX;
}


/* Waits until the socket is readable or writable. */

static int
dsa_hosts_wire_wait(dsa_hosts_wire_t *w, short events, dsa_err_t *err)
{
    int            rc, timeout;
    uint64_t       now;
    struct pollfd  p;

    for ( ;; ) {
        timeout = -1;

        if (w->deadline_ms != UINT64_MAX) {
            now = dsa_clock_ms();

            if (now >= w->deadline_ms) {
                return dsa_error(err, "%s has %s nothing for %llu ms", w->name,
                                 events == POLLIN ? "sent" : "read",
                                 (unsigned long long) w->limit_ms);
            }

            timeout = w->deadline_ms - now < 60000
                      ? (int) (w->deadline_ms - now) : 60000;
        }

        p.fd = w->fd;
        p.events = events;

        rc = poll(&p, 1, timeout);

        if (rc > 0) {
            return DSA_OK;
        }

        if (rc == -1 && errno != EINTR) {
            return dsa_hosts_wire_failed(w, err);
        }
    }
}


static int
dsa_hosts_wire_failed(const dsa_hosts_wire_t *w, dsa_err_t *err)
{
    if (errno == EPIPE || errno == ECONNRESET || errno == 0) {
        return dsa_error(err, "%s has closed the connection", w->name);
    }

    return dsa_error(err, "the connection to %s has failed: %s", w->name,
                     strerror(errno));
}


int
dsa_hosts_wire_send(dsa_hosts_wire_t *w, dsa_hosts_type_e type,
    uint32_t number, const struct iovec *part, int n, dsa_err_t *err)
{
    int               i, lost;
    ssize_t           sent;
    uint64_t          left;
    struct iovec      all[DSA_HOSTS_PARTS + 1];
    struct msghdr     message;
    dsa_hosts_head_t  head;

    assert(n <= DSA_HOSTS_PARTS);

    head.type = type;
    head.number = number;
    head.bytes = 0;

    all[0].iov_base = &head;
    all[0].iov_len = sizeof(head);

    for (i = 0; i < n; i++) {
        all[i + 1] = part[i];
        head.bytes += part[i].iov_len;
    }

    memset(&message, 0, sizeof(message));
    message.msg_iov = all;
    message.msg_iovlen = (size_t) n + 1;

    for (left = sizeof(head) + head.bytes; left != 0; left -= (uint64_t) sent)
    {
        sent = sendmsg(w->fd, &message, MSG_NOSIGNAL);

        if (sent > 0) {
            dsa_hosts_wire_sent(&message, (size_t) sent);
            continue;
        }

        sent = 0;

        if (errno == EINTR) {
            continue;
        }

        if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (dsa_hosts_wire_wait(w, POLLOUT, err) != DSA_OK) {
                return DSA_ERROR;
            }

            continue;
        }

        /* the peer may have sent its reason before it has closed */

        lost = errno;

        if (dsa_hosts_wire_readable(w)
            && dsa_hosts_wire_head(w, &head, err) != DSA_OK)
        {
            return DSA_ERROR;
        }

        errno = lost;

        return dsa_hosts_wire_failed(w, err);
    }

    return DSA_OK;
}


/* Moves the parts of a message behind the n bytes that were sent. */

static void
dsa_hosts_wire_sent(struct msghdr *message, size_t n)
{
    struct iovec  *part;

    while (message->msg_iovlen != 0) {
        part = message->msg_iov;

        if (n < part->iov_len) {
            part->iov_base = (char *) part->iov_base + n;
            part->iov_len -= n;
            return;
        }

        n -= part->iov_len;
        message->msg_iov++;
        message->msg_iovlen--;
    }
}


int
dsa_hosts_wire_read(dsa_hosts_wire_t *w, void *data, size_t bytes,
    dsa_err_t *err)
{
    char     *p;
    ssize_t   n;

    for (p = data; bytes != 0; /* void */ ) {
        n = recv(w->fd, p, bytes, 0);

        if (n > 0) {
            p += n;
            bytes -= (size_t) n;
            continue;
        }

        if (n == 0) {
            errno = 0;
            return dsa_hosts_wire_failed(w, err);
        }

        if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (dsa_hosts_wire_wait(w, POLLIN, err) != DSA_OK) {
                return DSA_ERROR;
            }

        } else if (errno != EINTR) {
            return dsa_hosts_wire_failed(w, err);
        }
    }

    return DSA_OK;
}


int
dsa_hosts_wire_head(dsa_hosts_wire_t *w, dsa_hosts_head_t *head,
    dsa_err_t *err)
{
    if (dsa_hosts_wire_read(w, head, sizeof(dsa_hosts_head_t), err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    return head->type == DSA_HOSTS_FAULT
           ? dsa_hosts_wire_text(w, head->bytes, err) : DSA_OK;
}


/* Sets err to the text of a FAULT.  Returns DSA_ERROR. */

static int
dsa_hosts_wire_text(dsa_hosts_wire_t *w, uint64_t bytes, dsa_err_t *err)
{
    char    text[DSA_HOSTS_TEXT + 1];
    size_t  i, n;

    n = bytes < DSA_HOSTS_TEXT ? (size_t) bytes : DSA_HOSTS_TEXT;

    if (dsa_hosts_wire_read(w, text, n, err) != DSA_OK) {
        return DSA_ERROR;
    }

    for (i = 0; i < n; i++) {
        if (text[i] < ' ' || text[i] > '~') {
            text[i] = '?';
        }
    }

    text[n] = '\0';

    return dsa_error(err, "%s: %s", w->name, text);
}


int
dsa_hosts_wire_expect(dsa_hosts_wire_t *w, dsa_hosts_type_e type,
    uint32_t number, uint64_t least, uint64_t most, dsa_hosts_head_t *head,
    dsa_err_t *err)
{
    for ( ;; ) {
        if (dsa_hosts_wire_head(w, head, err) != DSA_OK) {
            return DSA_ERROR;
        }

        if (!dsa_hosts_wire_is_aside(w, head)) {
            break;
        }

        if (w->aside(w->aside_data, w, head, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    if (head->type == type && head->number == number && head->bytes >= least
        && head->bytes <= most)
    {
        return DSA_OK;
    }

    return dsa_error(err, "%s has sent %s %u of %llu bytes; expected %s %u of "
                     "%llu to %llu bytes", w->name,
                     dsa_hosts_type(head->type), head->number,
                     (unsigned long long) head->bytes, dsa_hosts_type(type),
                     number, (unsigned long long) least,
                     (unsigned long long) most);
}


int
dsa_hosts_wire_is_aside(const dsa_hosts_wire_t *w,
    const dsa_hosts_head_t *head)
{
    return w->aside != NULL && (head->type == DSA_HOSTS_MOVED
                                || head->type == DSA_HOSTS_TIERED);
}


int
dsa_hosts_wire_peek(const dsa_hosts_wire_t *w, dsa_hosts_head_t *head)
{
    ssize_t  n;

    n = recv(w->fd, head, sizeof(dsa_hosts_head_t), MSG_PEEK|MSG_DONTWAIT);

    if (n == 0 || (n == -1 && errno != EAGAIN && errno != EWOULDBLOCK
                   && errno != EINTR))
    {
        head->type = DSA_HOSTS_FAULT;
        return 1;
    }

    return n == (ssize_t) sizeof(dsa_hosts_head_t);
}


int
dsa_hosts_wire_readable(const dsa_hosts_wire_t *w)
{
    struct pollfd  p = { w->fd, POLLIN, 0 };

    return poll(&p, 1, 0) > 0;
}


void
dsa_hosts_wire_fault(dsa_hosts_wire_t *w, const char *text)
{
    char           drop[4096];
    ssize_t        n;
    dsa_err_t      err;
    struct iovec   part;

    part.iov_base = (void *) (uintptr_t) text;
    part.iov_len = strlen(text);

    if (part.iov_len > DSA_HOSTS_TEXT) {
        part.iov_len = DSA_HOSTS_TEXT;
    }

    dsa_hosts_wire_limit(w, DSA_HOSTS_FAULT_MS);

    if (dsa_hosts_wire_send(w, DSA_HOSTS_FAULT, 0, &part, 1, &err) != DSA_OK)
    {
        return;
    }

    (void) shutdown(w->fd, SHUT_WR);

    do {
        n = dsa_hosts_wire_wait(w, POLLIN, &err) == DSA_OK
            ? recv(w->fd, drop, sizeof(drop), 0) : 0;
    } while (n > 0);
}


void
dsa_hosts_wire_close(dsa_hosts_wire_t *w)
{
    if (w->fd != -1) {
        (void) close(w->fd);
        w->fd = -1;
    }
}
