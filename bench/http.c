
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bench/http.h"


#define HTTP_BUFFER         65536
#define HTTP_GET_MS         10000       /* without a byte of a document */


static int http_exchange(int fd, const char *uri, FILE *f);
static int http_wait(int fd, short events);
static int http_send(http_t *h, int ep, void *ptr);
static void http_read(http_t *h, const char *p, const char *last,
    uint64_t now);
static void http_head(http_t *h);
static void http_size(http_t *h, char c);
static const char *http_data(http_t *h, const char *p, const char *last,
    uint64_t now);
static const char *http_collect(http_t *h, const char *p, const char *last,
    int *whole);


uint64_t
http_now(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + (uint64_t) ts.tv_nsec;
}


int
http_connect(int port)
{
    int                 fd, on;
    struct sockaddr_in  sin;

    on = 1;
    memset(&sin, 0, sizeof(sin));
    sin.sin_family = AF_INET;
    sin.sin_port = htons((uint16_t) port);
    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);

    fd = socket(AF_INET, SOCK_STREAM|SOCK_NONBLOCK|SOCK_CLOEXEC, 0);

    if (fd == -1) {
        return -1;
    }

    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == -1
        || (connect(fd, (struct sockaddr *) &sin, sizeof(sin)) == -1
            && errno != EINPROGRESS))
    {
        (void) close(fd);
        return -1;
    }

    return fd;
}


int
http_init(http_t *h, http_line_pt handler, void *data)
{
    memset(h, 0, sizeof(http_t));
    h->fd = -1;
    h->handler = handler;
    h->data = data;
    h->line = calloc(1, HTTP_LINE);

    return h->line != NULL ? 0 : -1;
}


void
http_free(http_t *h)
{
    http_close(h);
    free(h->line);
    h->line = NULL;
}


int
http_open(http_t *h, int ep, int port, const char *request, size_t len,
    void *ptr)
{
    struct epoll_event  ev;

    h->status = 0;
    h->part = HTTP_HEAD;
    h->request = request;
    h->request_len = len;
    h->sent = 0;
    h->chunk = 0;
    h->line[0] = '\0';
    h->line_len = 0;
    h->fd = http_connect(port);

    if (h->fd == -1) {
        return -1;
    }

    ev.events = EPOLLIN|EPOLLOUT;
    ev.data.ptr = ptr;

    return epoll_ctl(ep, EPOLL_CTL_ADD, h->fd, &ev);
}


void
http_close(http_t *h)
{
    if (h->fd != -1) {
        (void) close(h->fd);
        h->fd = -1;
    }
}


int
http_io(http_t *h, int ep, uint32_t events, void *ptr)
{
    static char  buf[HTTP_BUFFER];

    ssize_t  n;

    if ((events & EPOLLOUT) != 0 && h->sent < h->request_len
        && http_send(h, ep, ptr) == -1)
    {
        return 1;
    }

    if ((events & ~(uint32_t) EPOLLOUT) == 0) {
        return 0;
    }

    n = read(h->fd, buf, sizeof(buf));

    if (n == 0 || (n == -1 && errno != EAGAIN && errno != EINTR)) {
        return 1;
    }

    if (n > 0) {
        http_read(h, buf, buf + n, http_now());
    }

    return 0;
}


static int
http_send(http_t *h, int ep, void *ptr)
{
    ssize_t             n;
    struct epoll_event  ev;

    n = send(h->fd, h->request + h->sent, h->request_len - h->sent,
             MSG_NOSIGNAL);

    if (n == -1) {
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    }

    h->sent += (size_t) n;

    if (h->sent < h->request_len) {
        return 0;
    }

    ev.events = EPOLLIN;
    ev.data.ptr = ptr;

    return epoll_ctl(ep, EPOLL_CTL_MOD, h->fd, &ev);
}


static void
http_read(http_t *h, const char *p, const char *last, uint64_t now)
{
    int     whole;
    size_t  n, room;

    while (p < last) {

        switch (h->part) {

        case HTTP_HEAD:
            p = http_collect(h, p, last, &whole);

            if (whole) {
                http_head(h);
            }

            break;

        case HTTP_SIZE:
            http_size(h, *p++);
            break;

        case HTTP_DATA:
            p = http_data(h, p, last, now);
            break;

        case HTTP_END:
            if (*p++ == '\n') {
                h->part = HTTP_SIZE;
            }

            break;

        case HTTP_ERROR:
            n = (size_t) (last - p);
            room = HTTP_LINE - 1 - h->line_len;
            n = n < room ? n : room;
            memcpy(h->line + h->line_len, p, n);
            h->line_len += n;
            h->line[h->line_len] = '\0';
            p = last;
            break;
        }
    }
}


/* A line of the head; an empty one is its end. */

static void
http_head(http_t *h)
{
    if (h->status == 0) {
        (void) sscanf(h->line, "HTTP/1.1 %d", &h->status);

    } else if (h->line[0] == '\0') {
        h->part = h->status == 200 ? HTTP_SIZE : HTTP_ERROR;
    }
}


/* A byte of the line with the size of a chunk, in hexadecimal digits. */

static void
http_size(http_t *h, char c)
{
    if (c == '\n') {
        h->part = h->chunk != 0 ? HTTP_DATA : HTTP_END;

    } else if (c != '\r') {
        h->chunk = h->chunk * 16
                   + (uint64_t) (c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
    }
}


/* Bytes of a chunk, up to the end of a line. */

static const char *
http_data(http_t *h, const char *p, const char *last, uint64_t now)
{
    int          whole;
    const char  *next;

    if (h->chunk < (uint64_t) (last - p)) {
        last = p + h->chunk;
    }

    next = http_collect(h, p, last, &whole);

    if (whole) {
        h->handler(h->data, h->line, now);
    }

    h->chunk -= (uint64_t) (next - p);

    if (h->chunk == 0) {
        h->part = HTTP_END;
    }

    return next;
}


/*
 * Appends bytes to the line, up to a line end.  *whole is 1 when a whole line
 * is in h->line; the next call begins another one.  A line is cut at HTTP_LINE
 * bytes.
 */

static const char *
http_collect(http_t *h, const char *p, const char *last, int *whole)
{
    size_t       n, room;
    const char  *end;

    end = memchr(p, '\n', (size_t) (last - p));
    *whole = end != NULL;

    n = (size_t) ((end != NULL ? end : last) - p);
    room = HTTP_LINE - 1 - h->line_len;
    n = n < room ? n : room;
    memcpy(h->line + h->line_len, p, n);
    h->line_len += n;

    if (end == NULL) {
        return last;
    }

    if (h->line_len > 0 && h->line[h->line_len - 1] == '\r') {
        h->line_len--;
    }

    h->line[h->line_len] = '\0';
    h->line_len = 0;

    return end + 1;
}


char *
http_get(int port, const char *uri)
{
    int          fd, rc, status;
    FILE        *f;
    char        *text, *body;
    size_t       len;

    fd = http_connect(port);

    if (fd == -1) {
        return NULL;
    }

    f = open_memstream(&text, &len);

    if (f == NULL) {
        (void) close(fd);
        return NULL;
    }

    rc = http_exchange(fd, uri, f);
    (void) close(fd);

    if (fclose(f) != 0) {
        free(text);
        return NULL;
    }

    body = strstr(text, "\r\n\r\n");

    if (rc == 0 && (sscanf(text, "HTTP/1.%*d %d", &status) != 1
                    || status != 200 || body == NULL))
    {
        errno = EPROTO;
        rc = -1;
    }

    if (rc == -1) {
        free(text);
        return NULL;
    }

    body += 4;
    memmove(text, body, len - (size_t) (body - text) + 1);

    return text;
}


/*
 * Sends a request of HTTP/1.0, whose response ends with the connection, and
 * writes the response to f.  -1 with errno.
 */

static int
http_exchange(int fd, const char *uri, FILE *f)
{
    char     buf[4096];
    ssize_t  n;

    n = snprintf(buf, sizeof(buf), "GET %s HTTP/1.0\r\nHost: localhost\r\n"
                 "\r\n", uri);

    if (http_wait(fd, POLLOUT) == -1 || write(fd, buf, (size_t) n) != n) {
        return -1;
    }

    do {
        n = http_wait(fd, POLLIN) == -1 ? -1 : read(fd, buf, sizeof(buf));

        if (n > 0) {
            (void) fwrite(buf, 1, (size_t) n, f);
        }

    } while (n > 0);

    return (int) n;
}


static int
http_wait(int fd, short events)
{
    struct pollfd  p;

    p.fd = fd;
    p.events = events;

    if (poll(&p, 1, HTTP_GET_MS) == 1) {
        return 0;
    }

    errno = ETIMEDOUT;

    return -1;
}


int
http_has_text(const char *line)
{
    const char  *p;

    p = strstr(line, "content\":\"");

    if (p != NULL) {
        return p[10] != '"';
    }

    p = strstr(line, "\"text\":\"");

    return p != NULL && p[8] != '"';
}


int64_t
http_number(const char *line, const char *name)
{
    const char  *p;

    p = strstr(line, name);

    return p != NULL ? strtoll(p + strlen(name), NULL, 10) : -1;
}
