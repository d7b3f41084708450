
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The worker's end of the link for tests in C: connect, submit, read events.
 * Every failure ends the program with a line on stderr.
 */


#ifndef _LINK_CLIENT_H_INCLUDED_
#define _LINK_CLIENT_H_INCLUDED_


#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "engine/link.h"
#include "engine/link_request.h"
#include "ngx_module/engine/ngx_http_dsa_record_check.h"


#define LINK_CLIENT_EXPECT        256       /* slots whose records it checks */


typedef struct {
    int                     fd;
    int                     fds[DSA_LINK_FDS];
    void                   *base;
    dsa_link_hello_t        hello;
    dsa_link_t              link;

    /* by slot; ids count from 1 */

    ngx_http_dsa_expect_t   expect[LINK_CLIENT_EXPECT];
    uint64_t                expect_id[LINK_CLIENT_EXPECT];
} link_client_t;


/* A submit or count under construction; link_submit_init() begins one. */

typedef struct {
    dsa_link_submit_t   head;           /* COUNT uses n_fields of it only */
    uint8_t            *fields;
    size_t              len;
    size_t              size;
} link_submit_t;


static inline void
link_client_die(const char *what)
{
    (void) fprintf(stderr, "link client: %s: %s\n", what, strerror(errno));
    abort();
}


static inline uint64_t
link_client_now(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}


/*
 * Receives the hello within ms on a socket that sent its offer, and attaches.
 * 0, or -1 if there is none, or none with a common version.
 */

static inline int
link_client_hello(link_client_t *c, int fd, int ms)
{
    int            rc;
    struct pollfd  pfd;

    memset(c, 0, sizeof(link_client_t));
    c->fd = fd;

    pfd.fd = fd;
    pfd.events = POLLIN;

    if (poll(&pfd, 1, ms) != 1) {
        (void) close(fd);
        return -1;
    }

    rc = dsa_link_recv_hello(fd, &c->hello, c->fds);

    if (rc != 1 || c->hello.version == 0) {
        (void) close(fd);
        return -1;
    }

    c->base = mmap(NULL, c->hello.segment_size, PROT_READ|PROT_WRITE,
                   MAP_SHARED, c->fds[0], 0);

    if (c->base == MAP_FAILED) {
        link_client_die("mmap()");
    }

    if (dsa_link_attach(&c->link, c->base, c->hello.segment_size, &c->hello)
        != 0)
    {
        link_client_die("attach");
    }

    return 0;
}


/* The same, and sends the offer. */

static inline int
link_client_attach(link_client_t *c, int fd, int ms)
{
    if (dsa_link_send_offer(fd) == -1) {
        (void) close(fd);
        return -1;
    }

    return link_client_hello(c, fd, ms);
}


/* 0, or -1 if no process listens there. */

static inline int
link_client_connect(link_client_t *c, const char *path, int ms)
{
    int                 fd;
    struct sockaddr_un  addr;

    memset(&addr, 0, sizeof(addr));
    addr.sun_family = AF_UNIX;

    if (strlen(path) >= sizeof(addr.sun_path)) {
        link_client_die(path);
    }

    memcpy(addr.sun_path, path, strlen(path));

    fd = socket(AF_UNIX, SOCK_SEQPACKET|SOCK_CLOEXEC, 0);

    if (fd == -1) {
        link_client_die("socket()");
    }

    if (connect(fd, (struct sockaddr *) &addr, sizeof(addr)) == -1) {
        (void) close(fd);
        return -1;
    }

    return link_client_attach(c, fd, ms);
}


static inline void
link_client_close(link_client_t *c)
{
    int  i;

    (void) munmap(c->base, c->hello.segment_size);
    (void) close(c->fd);

    for (i = 0; i < DSA_LINK_FDS; i++) {
        (void) close(c->fds[i]);
    }
}


static inline void
link_submit_init(link_submit_t *s, uint32_t max_tokens)
{
    memset(s, 0, sizeof(link_submit_t));

    s->head.max_tokens = max_tokens;
    s->head.weight = 1;
    s->head.sampling.version = DSA_SAMPLING_VERSION;
    s->head.sampling.temperature = 1;
    s->head.sampling.top_p = 1;
}


static inline void
link_submit_field(link_submit_t *s, uint32_t type, const void *data,
    size_t len)
{
    size_t            size;
    dsa_link_field_t  field;

    size = sizeof(field) + dsa_link_pad(len, 8);

    if (s->len + size > s->size) {
        s->size = (s->len + size) * 2;
        s->fields = realloc(s->fields, s->size);

        if (s->fields == NULL) {
            link_client_die("realloc()");
        }
    }

    field.length = (uint32_t) len;
    field.type = type;

    memset(s->fields + s->len, 0, size);
    memcpy(s->fields + s->len, &field, sizeof(field));

    if (len != 0) {
        memcpy(s->fields + s->len + sizeof(field), data, len);
    }

    s->len += size;
    s->head.n_fields++;
}


static inline void
link_submit_text(link_submit_t *s, const char *text)
{
    link_submit_field(s, DSA_LINK_FIELD_TEXT, text, strlen(text));
}


static inline void
link_submit_control(link_submit_t *s, const char *name)
{
    link_submit_field(s, DSA_LINK_FIELD_CONTROL, name, strlen(name));
}


static inline void
link_submit_stop(link_submit_t *s, const char *text)
{
    link_submit_field(s, DSA_LINK_FIELD_STOP, text, strlen(text));
}


static inline void
link_submit_query(link_submit_t *s, const char *name)
{
    link_submit_field(s, DSA_LINK_FIELD_QUERY, name, strlen(name));
}


static inline void
link_submit_resume(link_submit_t *s, const uint32_t *ids, uint32_t n)
{
    link_submit_field(s, DSA_LINK_FIELD_RESUME, ids, n * sizeof(uint32_t));
}


static inline void
link_client_wake(link_client_t *c)
{
    uint64_t  one;

    one = 1;

    if (write(c->fds[1], &one, sizeof(one)) == -1 && errno != EAGAIN) {
        link_client_die("write()");
    }
}


/* Remembers what the engine may answer to a record. */

static inline void
link_client_expect(link_client_t *c, uint32_t type, uint64_t id,
    const link_submit_t *s)
{
    size_t                  at;
    uint32_t                i, slot;
    dsa_link_field_t        field;
    ngx_http_dsa_expect_t  *e;

    slot = dsa_link_slot(id);

    if (slot >= LINK_CLIENT_EXPECT) {
        return;
    }

    e = &c->expect[slot];
    c->expect_id[slot] = id;

    ngx_http_dsa_expect(e, type == DSA_LINK_SUBMIT ? &s->head : NULL,
                        c->hello.context_length, c->hello.ids);

    /* the fields of a hostile record may have any lengths */

    for (i = 0, at = 0; i < s->head.n_fields; i++) {
        if (at + sizeof(field) > s->len) {
            return;
        }

        memcpy(&field, s->fields + at, sizeof(field));
        ngx_http_dsa_expect_field(e, (dsa_link_field_e) field.type,
                                  field.length);
        at += sizeof(field) + dsa_link_pad(field.length, 8);
    }
}


/* Each record has to pass the border of nginx. */

static inline void
link_client_check(link_client_t *c, const dsa_link_record_t *record,
    const void *payload)
{
    uint32_t              slot;
    ngx_http_dsa_wrong_t  wrong;

    slot = dsa_link_slot(record->id);

    if (slot >= LINK_CLIENT_EXPECT || c->expect_id[slot] != record->id) {
        return;
    }

    if (ngx_http_dsa_record_check(&c->expect[slot], record->type, payload,
                                  record->length, &wrong)
        != 0)
    {
        (void) fprintf(stderr, "the engine has sent %s %s\n", wrong.name,
                       wrong.text);
        abort();
    }
}


/* Sends and frees it.  -1 if the ring has no room. */

static inline int
link_client_send(link_client_t *c, uint32_t type, uint64_t id,
    link_submit_t *s)
{
    size_t             size;
    uint8_t           *p;
    const void        *head;
    dsa_link_count_t   count;

    count.n_fields = s->head.n_fields;
    count.weight = s->head.weight;
    memcpy(count.tenant, s->head.tenant, sizeof(count.tenant));

    head = type == DSA_LINK_COUNT ? (void *) &count : (void *) &s->head;
    size = type == DSA_LINK_COUNT ? sizeof(count) : sizeof(s->head);

    p = dsa_link_reserve(&c->link.submit, type, id, size + s->len);

    if (p == NULL) {
        return -1;
    }

    memcpy(p, head, size);

    if (s->len != 0) {
        memcpy(p + size, s->fields, s->len);
    }

    link_client_expect(c, type, id, s);

    free(s->fields);
    s->fields = NULL;

    if (dsa_link_commit(&c->link.submit)) {
        link_client_wake(c);
    }

    return 0;
}


static inline int
link_client_submit(link_client_t *c, uint64_t id, link_submit_t *s)
{
    return link_client_send(c, DSA_LINK_SUBMIT, id, s);
}


static inline int
link_client_count(link_client_t *c, uint64_t id, link_submit_t *s)
{
    return link_client_send(c, DSA_LINK_COUNT, id, s);
}


/*
 * The next event within ms, its payload copied to *payload, which the caller
 * frees.  1; 0: time is up; -1: the replica is gone, and all that it had
 * written is read.
 */

static inline int
link_client_next(link_client_t *c, dsa_link_record_t *record, void **payload,
    int ms)
{
    int             rc;
    uint64_t        n, end, now;
    const void     *data;
    struct pollfd   pfd[2];

    end = link_client_now() + (uint64_t) ms;

    for ( ;; ) {
        rc = dsa_link_peek(&c->link.event, record, &data);

        if (rc < 0) {
            errno = EPROTO;
            link_client_die("event ring");
        }

        if (rc == 1) {
            *payload = malloc(record->length + 1);

            if (*payload == NULL) {
                link_client_die("malloc()");
            }

            memcpy(*payload, data, record->length);
            ((char *) *payload)[record->length] = '\0';
            link_client_check(c, record, *payload);
            dsa_link_release(&c->link.event);

            return 1;
        }

        if (ms == 0) {
            return 0;
        }

        if (!dsa_link_sleep(&c->link.event)) {
            continue;
        }

        now = link_client_now();

        if (now >= end) {
            return 0;
        }

        pfd[0].fd = c->fds[2];
        pfd[0].events = POLLIN;
        pfd[1].fd = c->fd;
        pfd[1].events = POLLIN;

        if (poll(pfd, 2, (int) (end - now)) == -1 && errno != EINTR) {
            link_client_die("poll()");
        }

        if (pfd[0].revents != 0
            && read(c->fds[2], &n, sizeof(n)) == -1 && errno != EAGAIN)
        {
            link_client_die("read()");
        }

        if (pfd[1].revents != 0 && dsa_link_sleep(&c->link.event)) {
            return -1;
        }
    }
}


#endif /* _LINK_CLIENT_H_INCLUDED_ */
