
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "bench/observe.h"
#include "engine/link.h"
#include "engine/link_event.h"
#include "engine/link_request.h"


#define OBSERVE_MAX     (1U << 20)
#define OBSERVE_WAIT    10000       /* ms for the first token */


typedef struct {
    int               fd;
    int               wake_fd;      /* ours; -1 with a source */
    int               engine_bell;
    dsa_link_t        link;
    uint64_t          ticks[OBSERVE_MAX];
    _Atomic size_t    n;
    _Atomic uint64_t  seen;         /* ticks has all tokens from before it */
    _Atomic int       failed;       /* errno */
} observe_t;


static observe_t  observe;


uint64_t
observe_now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + (uint64_t) ts.tv_nsec;
}


static void
observe_add(uint64_t now, uint32_t n)
{
    size_t  i;

    i = atomic_load_explicit(&observe.n, memory_order_relaxed);

    while (n-- > 0 && i < OBSERVE_MAX) {
        observe.ticks[i++] = now;
    }

    atomic_store_explicit(&observe.n, i, memory_order_release);
}


/* Reads all records of the ring.  0, or -1 if the stream has ended. */

static int
observe_ring(void)
{
    int                 rc;
    uint64_t            now;
    const void         *payload;
    dsa_link_tokens_t   tokens;
    dsa_link_record_t   record;

    for ( ;; ) {
        now = observe_now();
        rc = dsa_link_peek(&observe.link.event, &record, &payload);

        if (rc == 0) {
            observe.seen = now;

            if (dsa_link_sleep(&observe.link.event)) {
                return 0;
            }

            continue;
        }

        if (rc == -1 || record.type == DSA_LINK_ERROR
            || record.type == DSA_LINK_DONE)
        {
            return -1;
        }

        if (record.type == DSA_LINK_TOKENS
            && record.length >= sizeof(dsa_link_tokens_t))
        {
            memcpy(&tokens, payload, sizeof(dsa_link_tokens_t));
            observe_add(now, tokens.n_tokens);
        }

        dsa_link_release(&observe.link.event);
    }
}


static void *
observe_engine(void *data)
{
    uint64_t  count;

    while (observe_ring() == 0) {
        if (read(observe.wake_fd, &count, sizeof(count)) == -1
            && errno == EAGAIN)
        {
            struct pollfd  pfd = { .fd = observe.wake_fd, .events = POLLIN };

            (void) poll(&pfd, 1, -1);
        }
    }

    observe.failed = ECONNRESET;

    return NULL;
}


/*
 * Counts the events of a read.  One read returns several ticks if this thread
 * was not scheduled for longer than a tick.  An empty line ends an event.  The
 * first event has the role and belongs to no tick.
 */

static void *
observe_source(void *data)
{
    int            role;
    char           buffer[4096], last;
    ssize_t        i, n;
    uint32_t       events;
    uint64_t       now;
    struct pollfd  pfd = { .fd = observe.fd, .events = POLLIN };

    role = 1;
    last = '\0';

    for ( ;; ) {
        now = observe_now();
        n = recv(observe.fd, buffer, sizeof(buffer), MSG_DONTWAIT);

        if (n == -1 && errno == EAGAIN) {
            observe.seen = now;
            (void) poll(&pfd, 1, -1);
            continue;
        }

        if (n <= 0) {
            observe.failed = ECONNRESET;
            return NULL;
        }

        events = 0;

        for (i = 0; i < n; i++) {
            events += buffer[i] == '\n' && last == '\n';
            last = buffer[i];
        }

        if (role && events > 0) {
            role = 0;
            events--;
        }

        observe_add(observe_now(), events);
    }
}


static int
observe_submit(void)
{
    uint8_t            *p;
    uint64_t            one;
    dsa_link_field_t    field;
    dsa_link_submit_t   submit;

    memset(&submit, 0, sizeof(submit));
    submit.n_fields = 1;
    submit.flags = DSA_LINK_IGNORE_EOS;
    submit.weight = 1;
    submit.sampling.version = DSA_SAMPLING_VERSION;
    submit.sampling.temperature = 1;
    submit.sampling.top_p = 1;

    field.length = 8;
    field.type = DSA_LINK_FIELD_TEXT;

    p = dsa_link_reserve(&observe.link.submit, DSA_LINK_SUBMIT,
                         dsa_link_id(1, 0),
                         sizeof(submit) + sizeof(field) + field.length);

    if (p == NULL) {
        return -1;
    }

    memcpy(p, &submit, sizeof(submit));
    memcpy(p + sizeof(submit), &field, sizeof(field));
    memcpy(p + sizeof(submit) + sizeof(field), "observe.", 8);

    one = 1;

    if (dsa_link_commit(&observe.link.submit)
        && write(observe.engine_bell, &one, sizeof(one)) != sizeof(one))
    {
        return -1;
    }

    return 0;
}


static int
observe_connect_engine(const char *path)
{
    int                 rc, fds[DSA_LINK_FDS];
    void               *base;
    struct pollfd       pfd;
    struct sockaddr_un  sun;
    dsa_link_hello_t    hello;

    memset(&sun, 0, sizeof(sun));
    sun.sun_family = AF_UNIX;

    if (strlen(path) >= sizeof(sun.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }

    strcpy(sun.sun_path, path);

    observe.fd = socket(AF_UNIX, SOCK_SEQPACKET|SOCK_CLOEXEC, 0);

    if (observe.fd == -1
        || connect(observe.fd, (struct sockaddr *) &sun, sizeof(sun)) == -1
        || dsa_link_send_offer(observe.fd) == -1)
    {
        return -1;
    }

    pfd.fd = observe.fd;
    pfd.events = POLLIN;

    (void) poll(&pfd, 1, OBSERVE_WAIT);

    rc = dsa_link_recv_hello(observe.fd, &hello, fds);

    if (rc == 1 && hello.version == 0) {
        rc = -1;
        errno = EPROTO;
    }

    if (rc != 1) {
        errno = rc == 0 ? ETIMEDOUT : errno;
        return -1;
    }

    base = mmap(NULL, hello.segment_size, PROT_READ|PROT_WRITE, MAP_SHARED,
                fds[0], 0);

    if (base == MAP_FAILED) {
        return -1;
    }

    if (dsa_link_attach(&observe.link, base, hello.segment_size, &hello)
        == -1)
    {
        errno = EPROTO;
        return -1;
    }

    observe.engine_bell = fds[1];
    observe.wake_fd = fds[2];

    return observe_submit();
}


static int
observe_connect_source(int port)
{
    struct sockaddr_in  sin;
    static const char   request[] = "GET /?n=1000000000 HTTP/1.1\r\n"
                                    "Host: localhost\r\n\r\n";

    memset(&sin, 0, sizeof(sin));
    sin.sin_family = AF_INET;
    sin.sin_port = htons((uint16_t) port);
    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);

    observe.fd = socket(AF_INET, SOCK_STREAM|SOCK_CLOEXEC, 0);

    if (observe.fd == -1
        || connect(observe.fd, (struct sockaddr *) &sin, sizeof(sin)) == -1
        || send(observe.fd, request, sizeof(request) - 1, MSG_NOSIGNAL)
           != (ssize_t) sizeof(request) - 1)
    {
        return -1;
    }

    return 0;
}


int
observe_start(const char *where)
{
    int                 rc;
    uint64_t            end;
    pthread_t           thread;
    struct sched_param  param;

    if (strncmp(where, "unix:", 5) == 0) {
        rc = observe_connect_engine(where + 5);

    } else {
        rc = observe_connect_source(atoi(where));
    }

    if (rc == -1) {
        return -1;
    }

    rc = pthread_create(&thread, NULL,
                        strncmp(where, "unix:", 5) == 0 ? observe_engine
                                                        : observe_source,
                        NULL);

    if (rc != 0) {
        errno = rc;
        return -1;
    }

    /* the measured programs must not delay it; only root may set this */

    param.sched_priority = 1;
    (void) pthread_setschedparam(thread, SCHED_RR, &param);

    end = observe_now() + OBSERVE_WAIT * 1000000ULL;

    while (atomic_load(&observe.n) == 0) {
        if (observe.failed != 0 || observe_now() > end) {
            errno = observe.failed != 0 ? observe.failed : ETIMEDOUT;
            return -1;
        }

        (void) poll(NULL, 0, 1);
    }

    return 0;
}


int
observe_catch_up(void)
{
    uint64_t  start;

    start = observe_now();

    while (observe.seen < start) {
        if (observe.failed != 0
            || observe_now() > start + OBSERVE_WAIT * 1000000ULL)
        {
            errno = observe.failed != 0 ? observe.failed : ETIMEDOUT;
            return -1;
        }

        (void) poll(NULL, 0, 1);
    }

    return 0;
}


const uint64_t *
observe_ticks(size_t *n)
{
    *n = atomic_load_explicit(&observe.n, memory_order_acquire);

    return observe.ticks;
}
