
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The messages between the hosts of a replica.  The first byte of the input
 * chooses the reader, the rest are its messages:
 *
 *     0    two steps of a follower, half of the bytes each; what is accepted is
 *          read as a backend reads it, and written and read again
 *     1    the samples of a follower, for three outputs
 *     2    a plan
 *     3    what a follower has opened
 *     4    the answers to a leader that connects: none without the secret
 *     5    what three connections send to a follower without the secret, in
 *          pieces: a byte with the number of the connection, or 3 to begin the
 *          first one again; a byte with the length of the piece; the piece
 */


#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/hosts/door.h"
#include "engine/hosts/plan.h"
#include "t/fuzz/hosts.h"


static const dsa_hosts_limits_t  limits = {
    .hosts = 2,
    .host = 1,
    .gpus = 1,
    .context = 256,
    .max_tokens = 200,
    .max_seqs = 3,
    .vocab = 96,
    .pages = 8
};


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void
same_entry(const dsa_batch_seq_t *a, const dsa_batch_seq_t *b)
{
    must(a->rank == b->rank && a->start == b->start && a->n_input == b->n_input
         && a->n_prompt == b->n_prompt && a->input_from == b->input_from
         && a->n_pages == b->n_pages && a->biases.n == b->biases.n
         && (a->sampling == NULL) == (b->sampling == NULL)
         && (a->mask == NULL) == (b->mask == NULL));

    if (a->n_pages != 0) {
        must(memcmp(a->pages, b->pages, a->n_pages * sizeof(uint32_t)) == 0);
    }
}


/* Reads a step; returns 1 if it was accepted. */

static int
check_step(dsa_hosts_step_t *s, const dsa_hosts_step_t *before,
    const uint8_t *data, size_t size)
{
    uint32_t          i;
    dsa_buf_t         out;
    dsa_err_t         err;
    dsa_hosts_step_t  again;

    must(dsa_hosts_step_open(s, &limits, &err) == DSA_OK);
    s->text = malloc(size + 1);
    must(s->text != NULL);
    memcpy(s->text, data, size);

    if (dsa_hosts_step_read(s, size, before, &limits, &err) != DSA_OK) {
        return 0;
    }

    must(s->n >= 1 && s->n <= dsa_hosts_step_most(&limits));

    for (i = 0; i < s->n; i++) {
        must(s->seq[i].rank < 2);

        if (s->seq[i].rank == limits.host) {
            fuzz_hosts_entry(&s->seq[i], &limits);

        } else {
            must(s->seq[i].sampling == NULL && s->seq[i].sample == NULL);
        }
    }

    memset(&out, 0, sizeof(out));
    must(dsa_hosts_step_write(&out, &limits, s->seq, s->n, &err) == DSA_OK);
    must(out.len <= dsa_hosts_step_bytes(&limits));

    must(dsa_hosts_step_open(&again, &limits, &err) == DSA_OK);
    again.text = out.data;
    must(dsa_hosts_step_read(&again, out.len, before, &limits, &err)
         == DSA_OK);

    for (i = 0; i < s->n; i++) {
        same_entry(&s->seq[i], &again.seq[i]);
    }

    dsa_hosts_step_close(&again);

    return 1;
}


static void
check_steps(const uint8_t *data, size_t size)
{
    int               first;
    dsa_hosts_step_t  one, two;

    first = check_step(&one, NULL, data, size / 2);
    (void) check_step(&two, first ? &one : NULL, data + size / 2,
                      size - size / 2);

    dsa_hosts_step_close(&one);
    dsa_hosts_step_close(&two);
}


static void
check_result(const uint8_t *data, size_t size)
{
    uint32_t      i, j;
    dsa_err_t     err;
    dsa_sample_t  sample[3];

    const dsa_hosts_slot_t  slot[] = {
        { &sample[0], 1, 0 }, { &sample[1], 0, 20 }, { &sample[2], 1, 20 }
    };

    memset(sample, 0, sizeof(sample));

    if (dsa_hosts_result_read(slot, 3, (const char *) data, size, &limits,
                              "host", &err) != DSA_OK)
    {
        return;
    }

    for (i = 0; i < 3; i += 2) {
        must(sample[i].token < limits.vocab && sample[i].n_top <= slot[i].most);

        for (j = 0; j < sample[i].n_top; j++) {
            must(sample[i].top[j] < limits.vocab);
        }
    }
}


static void
check_plan(const uint8_t *data, size_t size)
{
    dsa_err_t           err;
    dsa_hosts_plan_t    plan;
    dsa_backend_conf_t  conf;

    if (size < sizeof(plan)) {
        return;
    }

    memcpy(&plan, data, sizeof(plan));
    memset(&conf, 0, sizeof(conf));
    conf.gpus = 1;

    if (dsa_hosts_plan_apply(&conf, DSA_BACKEND_CPU, &plan, &err) == DSA_OK) {
        must(conf.hosts.n >= 2 && conf.hosts.n <= DSA_MAX_GPUS
             && conf.hosts.host >= 1 && conf.hosts.host < conf.hosts.n
             && conf.max_tokens != 0 && conf.max_seqs != 0
             && conf.drafts == 0 && conf.gpus * conf.hosts.n <= DSA_MAX_GPUS);
    }
}


static void
check_ready(const uint8_t *data, size_t size)
{
    dsa_err_t          err;
    dsa_backend_t     *b;
    dsa_hosts_ready_t  ready;

    b = calloc(1, sizeof(dsa_backend_t));

    if (size >= sizeof(ready) && b != NULL) {
        memcpy(&ready, data, sizeof(ready));
        memset(b->fingerprint, 'a', 32);
        b->pages = 5;
        b->page_bytes = 7;

        if (dsa_hosts_ready_check(b, &ready, 2, data[0] & 1, "host", &err)
            == DSA_OK)
        {
            must(b->pages >= 1 && b->pages <= 5 && ready.page_bytes == 7);

        } else {
            fuzz_hosts_text(err.text);
        }
    }

    free(b);
}


static void
check_hello(const uint8_t *data, size_t size)
{
    int                 fds[2];
    dsa_err_t           err;
    dsa_hosts_wire_t    w;
    dsa_hosts_secret_t  secret = { "0123456789abcdef0123456789abcdef", 32 };

    must(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    must(send(fds[1], data, size, 0) == (ssize_t) size);
    must(shutdown(fds[1], SHUT_WR) == 0);

    memset(&w, 0, sizeof(w));
    w.fd = fds[0];
    dsa_hosts_wire_limit(&w, 5000);

    must(dsa_hosts_hello_leader(&w, &secret, &err) != DSA_OK);

    (void) close(fds[0]);
    (void) close(fds[1]);
}


/*
 * Connects, so that the end of the connection leaves little in the kernel.  It
 * may still run out of ports between many inputs, and the alarm with which
 * libFuzzer looks for slow inputs interrupts a connect() now and then; in both
 * cases the result is -1, on which nothing is sent.
 */

static int
guest(int port)
{
    int                 fd;
    struct linger       reset = { 1, 0 };
    struct sockaddr_in  at;

    memset(&at, 0, sizeof(at));
    at.sin_family = AF_INET;
    at.sin_port = htons((uint16_t) port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);

    fd = socket(AF_INET, SOCK_STREAM|SOCK_CLOEXEC, 0);
    must(fd != -1);
    must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) == 0);

    if (connect(fd, (struct sockaddr *) &at, sizeof(at)) == -1) {
        must(errno == EADDRNOTAVAIL || errno == EINTR);
        (void) close(fd);
        return -1;
    }

    return fd;
}


static void
check_guests(const uint8_t *data, size_t size)
{
    int                       fds[3], port;
    size_t                    i, n;
    dsa_err_t                 err;
    dsa_hosts_wire_t          w;
    static dsa_hosts_door_t  *door;

    static const dsa_hosts_secret_t  secret = {
        "0123456789abcdef0123456789abcdef", 32
    };

    if (door == NULL) {
        dsa_log_level(DSA_LOG_ERR);
        door = dsa_hosts_door_open("127.0.0.1:0", &secret, &err);
        must(door != NULL);
    }

    port = dsa_hosts_door_port(door);

    for (i = 0; i < 3; i++) {
        fds[i] = guest(port);
    }

    for ( /* void */ ; size >= 2; data += n, size -= n) {
        i = data[0] % 4;

        if (i == 3) {
            (void) close(fds[0]);
            fds[0] = guest(port);
            i = 0;
        }

        n = data[1] < size - 2 ? data[1] : size - 2;
        data += 2;
        size -= 2;

        /* the follower may have closed it */

        (void) send(fds[i], data, n, MSG_NOSIGNAL);
        must(dsa_hosts_door_wait(door, 0, -1, &w) == DSA_AGAIN);
    }

    for (i = 0; i < 3; i++) {
        (void) close(fds[i]);
    }

    for (i = 0; i < 4; i++) {
        must(dsa_hosts_door_wait(door, 0, -1, &w) == DSA_AGAIN);
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const check[])(const uint8_t *data, size_t size) = {
        check_steps, check_result, check_plan, check_ready, check_hello,
        check_guests
    };

    if (size >= 1 && size <= 16384 && data[0] < 6) {
        check[data[0]](data + 1, size - 1);
    }

    return 0;
}
