
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/hosts/door.h"


/* A connection that has proved nothing yet. */

typedef struct {
    int                 fd;             /* -1: free */
    uint64_t            since_ms;
    size_t              n;              /* bytes in text */
    uint32_t            greeted;        /* 1: HELLO was answered */
    dsa_hosts_hello_t   leader;
    dsa_hosts_hello_t   own;
    char                name[DSA_HOSTS_NAME];
    uint8_t             text[sizeof(dsa_hosts_head_t)
                             + sizeof(dsa_hosts_hello_t)];
} dsa_hosts_guest_t;


struct dsa_hosts_door_s {
    int                         fd;
    const dsa_hosts_secret_t   *secret;
    dsa_hosts_guest_t           guest[DSA_HOSTS_DOOR_MOST];
    struct pollfd               poll[DSA_HOSTS_DOOR_MOST + 2];
};


static int dsa_hosts_door_listen(const struct addrinfo *info);
static void dsa_hosts_door_accept(dsa_hosts_door_t *door);
static void dsa_hosts_door_name(char name[DSA_HOSTS_NAME],
    const struct sockaddr_storage *from, socklen_t len);
static void dsa_hosts_door_drop(dsa_hosts_guest_t *g, const char *reason);
static int dsa_hosts_door_read(dsa_hosts_door_t *door, dsa_hosts_guest_t *g);
static int dsa_hosts_door_hello(dsa_hosts_guest_t *g);
static int dsa_hosts_door_proof(dsa_hosts_door_t *door, dsa_hosts_guest_t *g);
static int dsa_hosts_door_send(dsa_hosts_guest_t *g, dsa_hosts_type_e type,
    void *data, size_t bytes);


dsa_hosts_door_t *
dsa_hosts_door_open(const char *address, const dsa_hosts_secret_t *secret,
    dsa_err_t *err)
{
    int                   i, rc;
    dsa_hosts_door_t     *door;
    struct addrinfo      *info, hints;
    dsa_hosts_address_t   a;

    if (dsa_hosts_address(&a, address, err) != DSA_OK) {
        return NULL;
    }

    memset(&hints, 0, sizeof(hints));
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE|AI_NUMERICSERV;

    rc = getaddrinfo(a.host, a.port, &hints, &info);

    if (rc != 0) {
        (void) dsa_error(err, "\"listen\" is %s: %s; expected an address of "
                         "this host", address, gai_strerror(rc));
        errno = EADDRNOTAVAIL;
        return NULL;
    }

    door = calloc(1, sizeof(dsa_hosts_door_t));

    if (door == NULL) {
        freeaddrinfo(info);
        (void) dsa_error(err, "out of memory");
        return NULL;
    }

    door->secret = secret;
    door->fd = dsa_hosts_door_listen(info);
    freeaddrinfo(info);

    for (i = 0; i < DSA_HOSTS_DOOR_MOST; i++) {
        door->guest[i].fd = -1;
    }

    if (door->fd == -1) {
        rc = errno;
        (void) dsa_error(err, "\"listen\" is %s: %s; expected an address of "
                         "this host, and a port that is free", address,
                         strerror(rc));
        free(door);
        errno = rc;
        return NULL;
    }

    return door;
}


static int
dsa_hosts_door_listen(const struct addrinfo *info)
{
    int  fd, on, lost;

    on = 1;
    fd = socket(info->ai_family,
                info->ai_socktype|SOCK_CLOEXEC|SOCK_NONBLOCK,
                info->ai_protocol);

    if (fd == -1) {
        return -1;
    }

    /* the connections of the process before this one may still be closing */

    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(int)) == -1
        || bind(fd, info->ai_addr, info->ai_addrlen) == -1
        || listen(fd, DSA_HOSTS_DOOR_MOST) == -1)
    {
        lost = errno;
        (void) close(fd);
        errno = lost;
        return -1;
    }

    return fd;
}


void
dsa_hosts_door_close(dsa_hosts_door_t *door)
{
    int  i;

    if (door == NULL) {
        return;
    }

    for (i = 0; i < DSA_HOSTS_DOOR_MOST; i++) {
        if (door->guest[i].fd != -1) {
            (void) close(door->guest[i].fd);
        }
    }

    (void) close(door->fd);
    free(door);
}


int
dsa_hosts_door_port(const dsa_hosts_door_t *door)
{
    socklen_t                len;
    struct sockaddr_storage  at;

    len = sizeof(at);

    if (getsockname(door->fd, (struct sockaddr *) &at, &len) == -1) {
        return -1;
    }

    return ntohs(at.ss_family == AF_INET6
                 ? ((struct sockaddr_in6 *) &at)->sin6_port
                 : ((struct sockaddr_in *) &at)->sin_port);
}


int
dsa_hosts_door_wait(dsa_hosts_door_t *door, int timeout_ms, int other,
    dsa_hosts_wire_t *w)
{
    int                 i, rc;
    uint64_t            now;
    dsa_hosts_guest_t  *g;

    for (i = 0; i < DSA_HOSTS_DOOR_MOST; i++) {
        door->poll[i].fd = door->guest[i].fd;
        door->poll[i].events = POLLIN;
        door->poll[i].revents = 0;
    }

    door->poll[i].fd = door->fd;
    door->poll[i].events = POLLIN;
    door->poll[i + 1].fd = other;
    door->poll[i + 1].events = POLLIN;

    (void) poll(door->poll, DSA_HOSTS_DOOR_MOST + 2, timeout_ms);
    now = dsa_clock_ms();

    for (i = 0; i < DSA_HOSTS_DOOR_MOST; i++) {
        g = &door->guest[i];

        if (g->fd == -1) {
            continue;
        }

        rc = door->poll[i].revents != 0 ? dsa_hosts_door_read(door, g)
                                        : DSA_AGAIN;

        if (rc == DSA_OK) {
            w->fd = g->fd;
            g->fd = -1;
            (void) snprintf(w->name, sizeof(w->name), "the leader %.300s",
                            g->name);
            return DSA_OK;
        }

        if (g->fd != -1 && now >= g->since_ms + DSA_HOSTS_DOOR_MS) {
            dsa_hosts_door_drop(g, "it has proved nothing for 5 s");
        }
    }

    if (door->poll[DSA_HOSTS_DOOR_MOST].revents != 0) {
        dsa_hosts_door_accept(door);
    }

    return DSA_AGAIN;
}


/* Accepts a connection, in place of the oldest one if all places are taken. */

static void
dsa_hosts_door_accept(dsa_hosts_door_t *door)
{
    int                       i, fd;
    socklen_t                 len;
    dsa_hosts_guest_t        *g;
    struct sockaddr_storage   from;

    len = sizeof(from);
    fd = accept4(door->fd, (struct sockaddr *) &from, &len,
                 SOCK_CLOEXEC|SOCK_NONBLOCK);

    if (fd == -1) {
        return;
    }

    g = &door->guest[0];

    for (i = 0; i < DSA_HOSTS_DOOR_MOST && g->fd != -1; i++) {
        if (door->guest[i].fd == -1
            || door->guest[i].since_ms < g->since_ms)
        {
            g = &door->guest[i];
        }
    }

    if (g->fd != -1) {
        dsa_hosts_door_drop(g, "another one has connected, and there are 64");
    }

    memset(g, 0, sizeof(dsa_hosts_guest_t));
    g->fd = fd;
    g->since_ms = dsa_clock_ms();

    dsa_hosts_wire_options(fd);
    dsa_hosts_door_name(g->name, &from, len);
    dsa_log_debug("a connection from %s", g->name);
}


static void
dsa_hosts_door_name(char name[DSA_HOSTS_NAME],
    const struct sockaddr_storage *from, socklen_t len)
{
    char  host[128], port[8];

    if (getnameinfo((const struct sockaddr *) from, len, host, sizeof(host),
                    port, sizeof(port), NI_NUMERICHOST|NI_NUMERICSERV) != 0)
    {
        (void) snprintf(name, DSA_HOSTS_NAME, "with an unknown address");
        return;
    }

    (void) snprintf(name, DSA_HOSTS_NAME,
                    from->ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host,
                    port);
}


static void
dsa_hosts_door_drop(dsa_hosts_guest_t *g, const char *reason)
{
    dsa_log(DSA_LOG_WARN, "the connection from %s is closed: %s", g->name,
            reason);

    (void) close(g->fd);
    g->fd = -1;
}


/*
 * Reads what a guest has sent.  DSA_OK: it is the leader; DSA_AGAIN: its
 * message is not complete, or the guest was dropped.
 */

static int
dsa_hosts_door_read(dsa_hosts_door_t *door, dsa_hosts_guest_t *g)
{
    size_t            want;
    ssize_t           n;
    dsa_hosts_head_t  head;

    want = sizeof(head) + (g->greeted ? (size_t) DSA_HOSTS_PROOF
                                      : sizeof(dsa_hosts_hello_t));

    n = recv(g->fd, g->text + g->n, want - g->n, 0);

    if (n == -1 && (errno == EAGAIN || errno == EINTR)) {
        return DSA_AGAIN;
    }

    if (n <= 0) {
        dsa_hosts_door_drop(g, n == 0 ? "the other side has closed it"
                                      : strerror(errno));
        return DSA_AGAIN;
    }

    g->n += (size_t) n;

    if (g->n < sizeof(head)) {
        return DSA_AGAIN;
    }

    memcpy(&head, g->text, sizeof(head));

    if (head.type != (g->greeted ? DSA_HOSTS_PROOFS : DSA_HOSTS_HELLO)
        || head.bytes != want - sizeof(head))
    {
        dsa_hosts_door_drop(g, g->greeted ? "expected PROOF of 32 bytes"
                                          : "expected HELLO of 64 bytes");
        return DSA_AGAIN;
    }

    if (g->n < want) {
        return DSA_AGAIN;
    }

    g->n = 0;

    return g->greeted ? dsa_hosts_door_proof(door, g)
                      : dsa_hosts_door_hello(g);
}


static int
dsa_hosts_door_hello(dsa_hosts_guest_t *g)
{
    dsa_err_t  err;

    memcpy(&g->leader, g->text + sizeof(dsa_hosts_head_t),
           sizeof(dsa_hosts_hello_t));

    /* the other side may have another version: it gets this one to report */

    if (dsa_hosts_hello(&g->own, &err) != DSA_OK
        || dsa_hosts_door_send(g, DSA_HOSTS_HELLO, &g->own, sizeof(g->own))
           != DSA_OK)
    {
        dsa_hosts_door_drop(g, "HELLO cannot be sent");
        return DSA_AGAIN;
    }

    if (dsa_hosts_hello_check(&g->leader, g->name, &err) != DSA_OK) {
        dsa_hosts_door_drop(g, err.text);
        return DSA_AGAIN;
    }

    g->greeted = 1;

    return DSA_AGAIN;
}


static int
dsa_hosts_door_proof(dsa_hosts_door_t *door, dsa_hosts_guest_t *g)
{
    uint8_t  proof[DSA_HOSTS_PROOF], want[DSA_HOSTS_PROOF];

    static char  wrong[] = "the secret of the leader is not that of this "
                           "host; expected the same \"host_secret\" on all "
                           "hosts";

    if (dsa_hosts_proof(want, door->secret, DSA_HOSTS_LEADER, &g->leader,
                        &g->own, sizeof(dsa_hosts_hello_t)) != DSA_OK
        || dsa_hosts_proof(proof, door->secret, DSA_HOSTS_FOLLOWER, &g->leader,
                           &g->own, sizeof(dsa_hosts_hello_t)) != DSA_OK)
    {
        dsa_hosts_door_drop(g, "out of memory");
        return DSA_AGAIN;
    }

    if (!dsa_hosts_proof_equal(want, g->text + sizeof(dsa_hosts_head_t))) {
        (void) dsa_hosts_door_send(g, DSA_HOSTS_FAULT, wrong,
                                   sizeof(wrong) - 1);
        dsa_hosts_door_drop(g, "it has another secret");
        return DSA_AGAIN;
    }

    if (dsa_hosts_door_send(g, DSA_HOSTS_PROOFS, proof, sizeof(proof))
        != DSA_OK)
    {
        dsa_hosts_door_drop(g, "PROOF cannot be sent");
        return DSA_AGAIN;
    }

    return DSA_OK;
}


/* A new connection has room for these few bytes. */

static int
dsa_hosts_door_send(dsa_hosts_guest_t *g, dsa_hosts_type_e type, void *data,
    size_t bytes)
{
    dsa_err_t         err;
    struct iovec      part;
    dsa_hosts_wire_t  w;

    w.fd = g->fd;
    w.name[0] = '\0';
    w.limit_ms = 0;
    w.deadline_ms = 0;

    part.iov_base = data;
    part.iov_len = bytes;

    return dsa_hosts_wire_send(&w, type, 0, &part, 1, &err);
}
