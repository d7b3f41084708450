
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A bare source of the events of a streaming chat, as a backend for nginx's
 * proxy_pass: one thread, one write() for each event, and no computation.
 *
 * All streams get an event at each tick, like the sequences of a batch.  The
 * query of a request has its number of tokens: /?n=TOKENS.
 *
 *     source PORT TICKS_PER_SECOND
 */


#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>


#define SOURCE_BATCH    256

/* the same bytes that the module sends for a token */

#define SOURCE_HEAD                                                           \
    "HTTP/1.1 200 OK\r\n"                                                     \
    "Content-Type: text/event-stream\r\n"                                     \
    "Cache-Control: no-cache\r\n"                                             \
    "Transfer-Encoding: chunked\r\n"                                          \
    "\r\n"

#define SOURCE_CHUNK                                                          \
    "data: {\"id\":\"chatcmpl-0f7a2d6c9f0e4c558d5b6a1de2f0c3b7\","            \
    "\"object\":\"chat.completion.chunk\",\"created\":1760000000,"            \
    "\"model\":\"deepseek-v3.2\","                                            \
    "\"system_fingerprint\":\"fp_0123456789ab\","                             \
    "\"choices\":[{\"index\":0,\"delta\":{%s},"                               \
    "\"logprobs\":null,\"finish_reason\":%s}]}\n\n"


typedef struct source_stream_s  source_stream_t;

struct source_stream_s {
    int               fd;
    int               streaming;
    uint32_t          left;         /* tokens */
    size_t            used;         /* bytes of the request so far */
    source_stream_t  *prev;
    source_stream_t  *next;
    char              request[1024];
};


typedef struct {
    char              text[1024];
    size_t            len;
} source_text_t;


static source_text_t    source_head;
static source_text_t    source_token;
static source_text_t    source_last;
static source_stream_t  source_list = { .prev = &source_list,
                                        .next = &source_list };


static void
source_chunk(source_text_t *t, const char *delta, const char *finish)
{
    int   n;
    char  event[768];

    n = snprintf(event, sizeof(event), SOURCE_CHUNK, delta, finish);

    t->len += (size_t) snprintf(t->text + t->len, sizeof(t->text) - t->len,
                                "%x\r\n%s\r\n", (unsigned) n, event);
}


static void
source_texts(void)
{
    source_head.len = strlen(SOURCE_HEAD);
    memcpy(source_head.text, SOURCE_HEAD, source_head.len);
    source_chunk(&source_head, "\"role\":\"assistant\",\"content\":\"\"",
                 "null");

    source_chunk(&source_token, "\"content\":\"x\"", "null");

    source_chunk(&source_last, "\"content\":\"\"", "\"length\"");
    source_last.len += (size_t) snprintf(source_last.text + source_last.len,
                                         sizeof(source_last.text)
                                         - source_last.len,
                                         "e\r\ndata: [DONE]\n\n\r\n"
                                         "0\r\n\r\n");
}


static void
source_close(source_stream_t *s)
{
    if (s->streaming) {
        s->prev->next = s->next;
        s->next->prev = s->prev;
    }

    close(s->fd);
    free(s);
}


/*
 * 0, or -1: the stream has ended.  A reader that is too slow is dropped,
 * because this program must never wait for the program that it measures.
 */

static int
source_write(source_stream_t *s, const source_text_t *t)
{
    ssize_t  n;

    n = write(s->fd, t->text, t->len);

    if (n == (ssize_t) t->len) {
        return 0;
    }

    source_close(s);

    return -1;
}


static void
source_tick(void)
{
    source_stream_t  *s, *next;

    for (s = source_list.next; s != &source_list; s = next) {
        next = s->next;

        if (source_write(s, &source_token) == -1) {
            continue;
        }

        if (--s->left == 0 && source_write(s, &source_last) == 0) {
            source_close(s);
        }
    }
}


/* Reads a request, and starts its stream when the request is complete. */

static void
source_read(source_stream_t *s)
{
    char     *end, *length, *query;
    size_t    body;
    ssize_t   n;

    for ( ;; ) {
        n = read(s->fd, s->request + s->used,
                 sizeof(s->request) - 1 - s->used);

        if (n == -1 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }

        if (n <= 0) {
            source_close(s);
            return;
        }

        if (s->streaming) {
            continue;
        }

        s->used += (size_t) n;
        s->request[s->used] = '\0';

        end = strstr(s->request, "\r\n\r\n");

        if (end != NULL) {
            length = strcasestr(s->request, "\r\nContent-Length: ");
            body = 0;

            if (length != NULL && length < end) {
                body = (size_t) strtoul(length + 18, NULL, 10);
            }

            if (s->used >= (size_t) (end + 4 - s->request) + body) {
                break;
            }
        }

        if (s->used == sizeof(s->request) - 1) {
            source_close(s);
            return;
        }
    }

    query = strstr(s->request, "?n=");
    s->left = query == NULL ? 1 : (uint32_t) strtoul(query + 3, NULL, 10);

    if (s->left == 0) {
        s->left = 1;
    }

    s->used = 0;

    if (source_write(s, &source_head) == -1) {
        return;
    }

    s->streaming = 1;
    s->prev = source_list.prev;
    s->next = &source_list;
    s->prev->next = s;
    source_list.prev = s;
}


static void
source_accept(int ep, int listener)
{
    int                 fd, on;
    source_stream_t    *s;
    struct epoll_event  ev;

    for ( ;; ) {
        fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK|SOCK_CLOEXEC);

        if (fd == -1) {
            return;
        }

        on = 1;
        s = calloc(1, sizeof(source_stream_t));

        if (s == NULL
            || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == -1)
        {
            free(s);
            close(fd);
            return;
        }

        s->fd = fd;
        ev.events = EPOLLIN|EPOLLET;
        ev.data.ptr = s;

        if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) == -1) {
            source_close(s);
        }
    }
}


static int
source_listen(int port)
{
    int                 fd, on;
    struct sockaddr_in  sin;

    memset(&sin, 0, sizeof(sin));
    sin.sin_family = AF_INET;
    sin.sin_port = htons((uint16_t) port);
    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);

    on = 1;
    fd = socket(AF_INET, SOCK_STREAM|SOCK_NONBLOCK|SOCK_CLOEXEC, 0);

    if (fd == -1
        || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == -1
        || bind(fd, (struct sockaddr *) &sin, sizeof(sin)) == -1
        || listen(fd, 4096) == -1)
    {
        return -1;
    }

    return fd;
}


static int
source_timer(double rate)
{
    int                fd;
    long               ns;
    struct itimerspec  its;

    ns = (long) (1e9 / rate);
    its.it_interval.tv_sec = ns / 1000000000;
    its.it_interval.tv_nsec = ns % 1000000000;
    its.it_value = its.it_interval;

    fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK|TFD_CLOEXEC);

    if (fd == -1 || timerfd_settime(fd, 0, &its, NULL) == -1) {
        return -1;
    }

    return fd;
}


int
main(int argc, char **argv)
{
    int                 i, n, ep, listener, timer;
    double              rate;
    uint64_t            ticks;
    struct rlimit       rlim;
    struct epoll_event  ev, events[SOURCE_BATCH];

    rate = argc == 3 ? strtod(argv[2], NULL) : 0;

    if (rate <= 0) {
        fprintf(stderr, "usage: source PORT TICKS_PER_SECOND\n");
        return 2;
    }

    signal(SIGPIPE, SIG_IGN);

    if (getrlimit(RLIMIT_NOFILE, &rlim) == 0) {
        rlim.rlim_cur = rlim.rlim_max;
        (void) setrlimit(RLIMIT_NOFILE, &rlim);
    }

    source_texts();

    ep = epoll_create1(EPOLL_CLOEXEC);
    listener = source_listen(atoi(argv[1]));
    timer = source_timer(rate);

    if (ep == -1 || listener == -1 || timer == -1) {
        perror("source");
        return 1;
    }

    ev.events = EPOLLIN;
    ev.data.ptr = &listener;

    if (epoll_ctl(ep, EPOLL_CTL_ADD, listener, &ev) == -1) {
        perror("epoll_ctl");
        return 1;
    }

    ev.data.ptr = &timer;

    if (epoll_ctl(ep, EPOLL_CTL_ADD, timer, &ev) == -1) {
        perror("epoll_ctl");
        return 1;
    }

    for ( ;; ) {
        n = epoll_wait(ep, events, SOURCE_BATCH, -1);

        /* after the other events, because a tick may free their streams */

        ticks = 0;

        for (i = 0; i < n; i++) {
            if (events[i].data.ptr == &listener) {
                source_accept(ep, listener);

            } else if (events[i].data.ptr == &timer) {
                if (read(timer, &ticks, sizeof(ticks)) != sizeof(ticks)) {
                    ticks = 0;
                }

            } else {
                source_read(events[i].data.ptr);
            }
        }

        if (ticks > 0) {
            source_tick();
        }
    }
}
