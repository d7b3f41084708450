
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A load client for the limits of keys:
 *
 *     limits PORT CONNECTIONS SECONDS < KEYS
 *
 * Each key of stdin, one in a line, has so many connections to a port of
 * 127.0.0.1.  Each of them sends a chat as soon as it has the answer to the
 * last one.  Prints the requests, those with status 200 and with 429, the
 * largest number of 200 of a key, and the seconds from the first request to the
 * last answer.
 */


#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"


#define KEY      128                    /* bytes of a key, at most */
#define ANSWER   4096
#define EVENTS   256


typedef struct {
    char       request[KEY + 512];
    size_t     len;
    uint64_t   admitted;
} key_bench_t;


typedef struct {
    int           fd;
    key_bench_t  *key;
    char          answer[ANSWER];
    size_t        got;
} client_t;


typedef struct {
    int        epoll;
    uint64_t   until;                   /* ms */
    uint64_t   running;                 /* connections with a request */
    uint64_t   requests;
    uint64_t   admitted;
    uint64_t   refused;
} load_t;


static const char  body[] =
    "{\"model\":\"deepseek-chat\",\"messages\":"
    "[{\"role\":\"user\",\"content\":\"!fake\\nt a\\ndone stop\"}]}";


static const char  format[] =
    "POST /v1/chat/completions HTTP/1.1\r\n"
    "Host: x\r\n"
    "Authorization: Bearer %s\r\n"
    "Content-Type: application/json\r\n"
    "Content-Length: %zu\r\n\r\n%s";


static void
fail(const char *what)
{
    perror(what);
    exit(1);
}


static key_bench_t *
read_keys(size_t *n)
{
    char          line[KEY];
    key_bench_t  *keys;

    keys = NULL;

    for (*n = 0; fgets(line, sizeof(line), stdin) != NULL; (*n)++) {
        line[strcspn(line, "\n")] = '\0';

        keys = realloc(keys, (*n + 1) * sizeof(key_bench_t));
        if (keys == NULL) {
            fail("realloc");
        }

        keys[*n].admitted = 0;
        keys[*n].len = (size_t) snprintf(keys[*n].request,
                                         sizeof(keys[*n].request), format,
                                         line, sizeof(body) - 1, body);
        assert(keys[*n].len < sizeof(keys[*n].request));
    }

    return keys;
}


static void
send_request(load_t *load, client_t *c)
{
    c->got = 0;
    load->running++;

    /* a request is smaller than any socket buffer */

    if (send(c->fd, c->key->request, c->key->len, MSG_NOSIGNAL)
        != (ssize_t) c->key->len)
    {
        fail("send");
    }
}


static void
open_client(load_t *load, client_t *c, key_bench_t *key, int port)
{
    struct epoll_event  ee;
    struct sockaddr_in  sin;

    memset(&sin, 0, sizeof(sin));
    sin.sin_family = AF_INET;
    sin.sin_port = htons((uint16_t) port);
    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);

    c->key = key;
    c->fd = socket(AF_INET, SOCK_STREAM, 0);

    if (c->fd == -1
        || connect(c->fd, (struct sockaddr *) &sin, sizeof(sin)) == -1)
    {
        fail("connect");
    }

    ee.events = EPOLLIN;
    ee.data.ptr = c;

    if (epoll_ctl(load->epoll, EPOLL_CTL_ADD, c->fd, &ee) == -1) {
        fail("epoll_ctl");
    }
}


/* 1: the answer is complete. */

static int
complete(const client_t *c)
{
    const char  *end, *len;

    end = strstr(c->answer, "\r\n\r\n");
    len = strstr(c->answer, "Content-Length: ");

    if (end == NULL) {
        return 0;
    }

    if (len == NULL || len > end) {
        fprintf(stderr, "an answer without Content-Length: %s\n", c->answer);
        exit(1);
    }

    return c->got == (size_t) (end + 4 - c->answer) + strtoul(len + 16, NULL,
                                                              10);
}


static void
receive(load_t *load, client_t *c)
{
    ssize_t  n;

    n = recv(c->fd, c->answer + c->got, ANSWER - 1 - c->got, 0);

    if (n <= 0) {
        fail("recv");
    }

    c->got += (size_t) n;
    c->answer[c->got] = '\0';

    if (!complete(c)) {
        return;
    }

    load->requests++;
    load->running--;

    if (strncmp(c->answer, "HTTP/1.1 200", 12) == 0) {
        load->admitted++;
        c->key->admitted++;

    } else if (strncmp(c->answer, "HTTP/1.1 429", 12) == 0) {
        load->refused++;
    }

    if (dsa_clock_ms() < load->until) {
        send_request(load, c);
    }
}


int
main(int argc, char **argv)
{
    int                 i, n, each, port;
    size_t              k, n_keys;
    load_t              load;
    client_t           *clients;
    uint64_t            start, most;
    key_bench_t        *keys;
    struct epoll_event  events[EVENTS];

    if (argc != 4) {
        fprintf(stderr, "usage: limits PORT CONNECTIONS SECONDS < KEYS\n");
        return 2;
    }

    port = atoi(argv[1]);
    each = atoi(argv[2]);
    keys = read_keys(&n_keys);

    memset(&load, 0, sizeof(load));
    load.epoll = epoll_create1(0);

    clients = calloc(n_keys * (size_t) each, sizeof(client_t));
    if (load.epoll == -1 || clients == NULL) {
        fail("memory");
    }

    for (k = 0; k < n_keys * (size_t) each; k++) {
        open_client(&load, &clients[k], &keys[k % n_keys], port);
    }

    start = dsa_clock_ms();
    load.until = start + (uint64_t) atoi(argv[3]) * 1000;

    for (k = 0; k < n_keys * (size_t) each; k++) {
        send_request(&load, &clients[k]);
    }

    while (load.running != 0) {
        n = epoll_wait(load.epoll, events, EVENTS, 30000);

        if (n <= 0 && errno != EINTR) {
            fail("epoll_wait");
        }

        for (i = 0; i < n; i++) {
            receive(&load, events[i].data.ptr);
        }
    }

    most = 0;

    for (k = 0; k < n_keys; k++) {
        most = keys[k].admitted > most ? keys[k].admitted : most;
    }

    printf("%llu %llu %llu %llu %.3f\n", (unsigned long long) load.requests,
           (unsigned long long) load.admitted,
           (unsigned long long) load.refused, (unsigned long long) most,
           (double) (dsa_clock_ms() - start) / 1000);

    return 0;
}
