
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A GET of a document, for dsa status.  A plain HTTP/1.0 request over a socket
 * is enough: dsa_status is for the operator and listens on the loopback or on a
 * unix socket, and to HTTP/1.0 nginx answers with a body that ends where the
 * connection does.  A library for HTTP would be a dependency of all tools, for
 * TLS and redirects that this does not need.
 */


#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/status.h"


#define DSA_STATUS_TIMEOUT  5000        /* ms, for the whole answer */
#define DSA_STATUS_HOST     256         /* bytes, with a NUL */
#define DSA_STATUS_PATH     1024


typedef struct {
    int   local;                        /* 1: host is the path of a socket */
    char  host[DSA_STATUS_HOST];
    char  port[16];
    char  path[DSA_STATUS_PATH];
} dsa_status_address_t;


static int dsa_status_address(dsa_status_address_t *a, const char *text,
    dsa_err_t *err);
static int dsa_status_copy(char *to, size_t size, const char *from, size_t len);
static int dsa_status_connect(const dsa_status_address_t *a, dsa_err_t *err);
static int dsa_status_connect_unix(const dsa_status_address_t *a,
    dsa_err_t *err);
static int dsa_status_exchange(dsa_buf_t *answer, int fd,
    const dsa_status_address_t *a, dsa_err_t *err);
static int dsa_status_wait(int fd, short events, uint64_t end,
    dsa_err_t *err);
static int dsa_status_body(dsa_buf_t *body, const dsa_buf_t *answer,
    dsa_err_t *err);


int
dsa_status_get(dsa_buf_t *body, const char *address, dsa_err_t *err)
{
    int                   fd, rc;
    dsa_buf_t             answer;
    dsa_status_address_t  a;

    if (dsa_status_address(&a, address, err) != DSA_OK) {
        return DSA_ERROR;
    }

    fd = a.local ? dsa_status_connect_unix(&a, err)
                 : dsa_status_connect(&a, err);

    if (fd == -1) {
        return DSA_ERROR;
    }

    memset(&answer, 0, sizeof(dsa_buf_t));

    rc = dsa_status_exchange(&answer, fd, &a, err);

    if (rc == DSA_OK) {
        rc = dsa_status_body(body, &answer, err);
    }

    dsa_buf_free(&answer);
    (void) close(fd);

    return rc;
}


static int
dsa_status_address(dsa_status_address_t *a, const char *text, dsa_err_t *err)
{
    size_t       len;
    const char  *path, *port;

    memset(a, 0, sizeof(dsa_status_address_t));

    if (strncmp(text, "unix:", 5) == 0) {
        a->local = 1;
        text += 5;
        len = strcspn(text, ":");
        path = text[len] == ':' ? text + len + 1 : "/status";

    } else if (strncmp(text, "http://", 7) == 0) {
        text += 7;
        len = strcspn(text, "/");
        path = text[len] == '/' ? text + len : "/status";

        port = text[0] == '[' ? memchr(text, ']', len) : text;
        port = port != NULL
               ? memchr(port, ':', len - (size_t) (port - text)) : NULL;

        if (dsa_status_copy(a->port, sizeof(a->port),
                            port != NULL ? port + 1 : "80",
                            port != NULL ? len - (size_t) (port + 1 - text)
                                         : 2)
            != DSA_OK)
        {
            return dsa_error(err, "the port of \"%s\" is empty or too long; "
                             "expected a number", text);
        }

        len = port != NULL ? (size_t) (port - text) : len;

        if (len > 2 && text[0] == '[' && text[len - 1] == ']') {
            text++;
            len -= 2;
        }

    } else {
        return dsa_error(err, "\"%s\" is not an address; expected "
                         "http://HOST[:PORT][/PATH] or unix:SOCKET[:/PATH]",
                         text);
    }

    if (dsa_status_copy(a->host, sizeof(a->host), text, len) != DSA_OK
        || dsa_status_copy(a->path, sizeof(a->path), path, strlen(path))
           != DSA_OK
        || a->path[0] != '/' || strpbrk(a->path, " \t\r\n") != NULL)
    {
        return dsa_error(err, "a part of the address is empty or too long, or "
                         "its path has a blank or lacks \"/\"; expected "
                         "http://HOST[:PORT][/PATH] or unix:SOCKET[:/PATH]");
    }

    return DSA_OK;
}


static int
dsa_status_copy(char *to, size_t size, const char *from, size_t len)
{
    if (len == 0 || len >= size) {
        return DSA_ERROR;
    }

    memcpy(to, from, len);
    to[len] = '\0';

    return DSA_OK;
}


/* Returns the socket, or -1 with err. */

static int
dsa_status_connect(const dsa_status_address_t *a, dsa_err_t *err)
{
    int               fd, rc;
    struct addrinfo   hints, *list, *ai;
    struct timeval    timeout = { DSA_STATUS_TIMEOUT / 1000, 0 };

    memset(&hints, 0, sizeof(hints));
    hints.ai_socktype = SOCK_STREAM;

    rc = getaddrinfo(a->host, a->port, &hints, &list);

    if (rc != 0) {
        (void) dsa_error(err, "\"%s\" port \"%s\": %s", a->host, a->port,
                         gai_strerror(rc));
        return -1;
    }

    fd = -1;

    for (ai = list; ai != NULL && fd == -1; ai = ai->ai_next) {
        fd = socket(ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC,
                    ai->ai_protocol);

        if (fd == -1) {
            continue;
        }

        /* connect() ends after this time, too */

        (void) setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout,
                          sizeof(timeout));

        if (connect(fd, ai->ai_addr, ai->ai_addrlen) == -1) {
            rc = errno;
            (void) close(fd);
            errno = rc;
            fd = -1;
        }
    }

    freeaddrinfo(list);

    if (fd == -1) {
        (void) dsa_error(err, "cannot connect to %s port %s: %s", a->host,
                         a->port, strerror(errno == EINPROGRESS ? ETIMEDOUT
                                                                : errno));
    }

    return fd;
}


static int
dsa_status_connect_unix(const dsa_status_address_t *a, dsa_err_t *err)
{
    int                 fd;
    struct sockaddr_un  sun;

    memset(&sun, 0, sizeof(sun));
    sun.sun_family = AF_UNIX;

    if (dsa_status_copy(sun.sun_path, sizeof(sun.sun_path), a->host,
                        strlen(a->host))
        != DSA_OK)
    {
        (void) dsa_error(err, "the path of the socket has %zu bytes; expected "
                         "at most %zu", strlen(a->host),
                         sizeof(sun.sun_path) - 1);
        return -1;
    }

    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd == -1
        || connect(fd, (struct sockaddr *) &sun, sizeof(sun)) == -1)
    {
        (void) dsa_error(err, "cannot connect to %s: %s", a->host,
                         strerror(errno));

        if (fd != -1) {
            (void) close(fd);
        }

        return -1;
    }

    return fd;
}


/* Sends the request, and appends all of the answer. */

static int
dsa_status_exchange(dsa_buf_t *answer, int fd, const dsa_status_address_t *a,
    dsa_err_t *err)
{
    int       len;
    char      data[16384];
    ssize_t   n;
    uint64_t  end;

    end = dsa_clock_ms() + DSA_STATUS_TIMEOUT;

    len = snprintf(data, sizeof(data), "GET %s HTTP/1.0\r\nHost: %s\r\n"
                   "Accept: application/json\r\n\r\n", a->path,
                   a->local ? "localhost" : a->host);

    /* it fits into an empty socket buffer */

    if (send(fd, data, (size_t) len, MSG_NOSIGNAL) != len) {
        return dsa_error(err, "cannot send the request: %s", strerror(errno));
    }

    for ( ;; ) {
        if (dsa_status_wait(fd, POLLIN, end, err) != DSA_OK) {
            return DSA_ERROR;
        }

        n = recv(fd, data, sizeof(data), 0);

        if (n == 0) {
            return DSA_OK;
        }

        if (n == -1) {
            return dsa_error(err, "cannot read the answer: %s",
                             strerror(errno));
        }

        if (answer->len + (size_t) n > DSA_STATUS_MAX) {
            return dsa_error(err, "the answer has more than %d bytes",
                             DSA_STATUS_MAX);
        }

        dsa_buf_add(answer, data, (size_t) n);

        if (answer->failed) {
            return dsa_error(err, "out of memory");
        }
    }
}


static int
dsa_status_wait(int fd, short events, uint64_t end, dsa_err_t *err)
{
    int            rc;
    uint64_t       now;
    struct pollfd  p = { fd, events, 0 };

    do {
        now = dsa_clock_ms();
        rc = now < end ? poll(&p, 1, (int) (end - now)) : 0;
    } while (rc == -1 && errno == EINTR);

    if (rc == 1) {
        return DSA_OK;
    }

    return rc == 0 ? dsa_error(err, "no whole answer within %d s",
                               DSA_STATUS_TIMEOUT / 1000)
                   : dsa_error(err, "poll() failed: %s", strerror(errno));
}


static int
dsa_status_body(dsa_buf_t *body, const dsa_buf_t *answer, dsa_err_t *err)
{
    int          status;
    const char  *end;

    if (answer->len < 12 || memcmp(answer->data, "HTTP/1.", 7) != 0
        || answer->data[8] != ' ')
    {
        return dsa_error(err, "the answer is not HTTP");
    }

    status = (int) strtol(answer->data + 9, NULL, 10);

    if (status != 200) {
        return dsa_error(err, "the answer has status %d; expected 200",
                         status);
    }

    end = memmem(answer->data, answer->len, "\r\n\r\n", 4);

    if (end == NULL) {
        return dsa_error(err, "the headers of the answer have no end");
    }

    end += 4;
    dsa_buf_add(body, end, answer->len - (size_t) (end - answer->data));

    return body->failed ? dsa_error(err, "out of memory") : DSA_OK;
}
