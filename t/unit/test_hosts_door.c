
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/version.h"
#include "engine/hosts/connect.h"
#include "t/unit/hosts.h"


/* Strangers at the port of a follower, and hosts that pretend to be others. */

#define STRANGERS   200


static dsa_hosts_secret_t  secret;
static dsa_hosts_door_t   *door;


static void
door_open(void)
{
    dsa_err_t  err;

    hosts_secret_set(&secret, hosts_secret);
    door = dsa_hosts_door_open("127.0.0.1:0", &secret, &err);
    must(door != NULL ? DSA_OK : DSA_ERROR, &err);
}


static int
stranger(void)
{
    int                 fd;
    struct sockaddr_in  to;

    memset(&to, 0, sizeof(to));
    to.sin_family = AF_INET;
    to.sin_port = htons((uint16_t) dsa_hosts_door_port(door));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);

    fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *) &to, sizeof(to)), 0);

    return fd;
}


/* Lets the door work until a connection is closed; returns what it has sent. */

static size_t
until_closed(int fd, void *text, size_t size)
{
    size_t            n;
    ssize_t           got;
    uint64_t          begin;
    dsa_hosts_wire_t  w;

    begin = dsa_clock_ms();

    for (n = 0; ; n += got > 0 ? (size_t) got : 0) {
        assert_true(dsa_clock_ms() - begin < 20000);
        assert_int_equal(dsa_hosts_door_wait(door, 10, -1, &w), DSA_AGAIN);

        got = recv(fd, (char *) text + n, size - n, MSG_DONTWAIT);

        if (got == 0 || (got == -1 && errno != EAGAIN)) {
            (void) close(fd);
            return n;
        }
    }
}


/* A process that connects as a leader, and exits 0 if it was accepted. */

static pid_t
leader_start(const char *text)
{
    pid_t               pid;
    char                address[64];
    dsa_err_t           err;
    dsa_hosts_wire_t    w;
    dsa_hosts_secret_t  own;

    (void) snprintf(address, sizeof(address), "127.0.0.1:%d",
                    dsa_hosts_door_port(door));

    pid = fork();

    if (pid == 0) {
        memset(&w, 0, sizeof(w));
        hosts_secret_set(&own, text);
        dsa_hosts_wire_limit(&w, 20000);
        _exit(dsa_hosts_connect(&w, address, &own, &err) == DSA_OK ? 0 : 1);
    }

    return pid;
}


static int
leader_ended(pid_t pid)
{
    int  status;

    assert_int_equal(waitpid(pid, &status, 0), pid);

    return WEXITSTATUS(status);
}


/* Texts that are no HELLO close the connection, and reveal nothing. */

static void
test_garbage(void **state)
{
    int                fd;
    char               text[256];
    size_t             i;
    dsa_hosts_head_t   head;

    static const dsa_hosts_head_t  heads[] = {
        { DSA_HOSTS_HELLO, 0, UINT64_MAX },
        { DSA_HOSTS_HELLO, 0, 0 },
        { DSA_HOSTS_HELLO, 0, sizeof(dsa_hosts_hello_t) + 1 },
        { DSA_HOSTS_PROOFS, 0, DSA_HOSTS_PROOF },
        { DSA_HOSTS_STEP, 0, 4 },
        { 0, 0, sizeof(dsa_hosts_hello_t) },
        { 0x20544547, 0x5448202f, 0x0d312e312f5054ULL }     /* GET / HTTP */
    };

    door_open();

    for (i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        fd = stranger();
        head = heads[i];
        assert_int_equal(send(fd, &head, sizeof(head), 0), sizeof(head));
        assert_int_equal(until_closed(fd, text, sizeof(text)), 0);
    }

    dsa_hosts_door_close(door);
}


/* One that sends nothing, or a byte at a time, is closed after 5 seconds. */

static void
test_slow(void **state)
{
    int       fd;
    char      text[256];
    uint64_t  begin;

    door_open();

    begin = dsa_clock_ms();
    fd = stranger();
    assert_int_equal(send(fd, "", 1, 0), 1);
    assert_int_equal(until_closed(fd, text, sizeof(text)), 0);
    assert_true(dsa_clock_ms() - begin >= 4900);

    dsa_hosts_door_close(door);
}


/* Many that hold their connections do not keep the leader out. */

static void
test_flood(void **state)
{
    int               i, fd[STRANGERS];
    pid_t             pid;
    uint64_t          begin;
    dsa_hosts_wire_t  w;

    door_open();

    for (i = 0; i < STRANGERS; i++) {
        fd[i] = stranger();
        (void) dsa_hosts_door_wait(door, 0, -1, &w);
        (void) dsa_hosts_door_wait(door, 0, -1, &w);
    }

    pid = leader_start(hosts_secret);
    begin = dsa_clock_ms();

    while (dsa_hosts_door_wait(door, 10, -1, &w) != DSA_OK) {
        assert_true(dsa_clock_ms() - begin < 20000);
    }

    assert_int_equal(leader_ended(pid), 0);
    assert_non_null(strstr(w.name, "the leader 127.0.0.1:"));
    dsa_hosts_wire_close(&w);

    for (i = 0; i < STRANGERS; i++) {
        (void) close(fd[i]);
    }

    dsa_hosts_door_close(door);
}


/*
 * A peer without the secret gets a nonce, and for a wrong proof a reason, but
 * no proof.  A proof of another connection, or of the other side, is wrong.
 */

static void
test_proofs(void **state)
{
    int                fd, i;
    char               text[1024];
    size_t             n;
    ssize_t            got;
    uint8_t            proof[DSA_HOSTS_PROOF];
    dsa_err_t          err;
    dsa_hosts_wire_t   w;
    dsa_hosts_head_t   head;
    dsa_hosts_hello_t  own, peer, other;

    door_open();
    must(dsa_hosts_hello(&own, &err), &err);
    must(dsa_hosts_hello(&other, &err), &err);

    for (i = 0; i < 3; i++) {
        fd = stranger();

        head = (dsa_hosts_head_t) { DSA_HOSTS_HELLO, 0, sizeof(own) };
        assert_int_equal(send(fd, &head, sizeof(head), 0), sizeof(head));
        assert_int_equal(send(fd, &own, sizeof(own), 0), sizeof(own));

        for (n = 0; n < sizeof(head) + sizeof(peer); /* void */ ) {
            (void) dsa_hosts_door_wait(door, 10, -1, &w);

            got = recv(fd, text + n, sizeof(head) + sizeof(peer) - n,
                       MSG_DONTWAIT);
            n += got > 0 ? (size_t) got : 0;
        }

        memcpy(&peer, text + sizeof(head), sizeof(peer));
        assert_memory_not_equal(peer.nonce, own.nonce, DSA_HOSTS_NONCE);

        switch (i) {

        case 0:
            memset(proof, 0, sizeof(proof));
            break;

        case 1:
            must(dsa_hosts_proof(proof, &secret, DSA_HOSTS_FOLLOWER, &own,
                                 &peer, sizeof(own)), &err);
            break;

        default:
            must(dsa_hosts_proof(proof, &secret, DSA_HOSTS_LEADER, &own,
                                 &other, sizeof(own)), &err);
        }

        head = (dsa_hosts_head_t) { DSA_HOSTS_PROOFS, 0, sizeof(proof) };
        assert_int_equal(send(fd, &head, sizeof(head), 0), sizeof(head));
        assert_int_equal(send(fd, proof, sizeof(proof), 0), sizeof(proof));

        n = until_closed(fd, text, sizeof(text));
        assert_true(n > sizeof(head));
        memcpy(&head, text, sizeof(head));
        assert_int_equal(head.type, DSA_HOSTS_FAULT);
        assert_int_equal(head.bytes, n - sizeof(head));
    }

    dsa_hosts_door_close(door);
}


/* A program that answers as a follower, with what case i has. */

static pid_t
impostor_start(int listener, int i)
{
    int                fd;
    pid_t              pid;
    uint8_t            proof[DSA_HOSTS_PROOF];
    dsa_err_t          err;
    struct iovec       part;
    dsa_hosts_head_t   head;
    dsa_hosts_wire_t   w;
    dsa_hosts_hello_t  hello, peer;

    pid = fork();

    if (pid != 0) {
        return pid;
    }

    fd = accept(listener, NULL, NULL);
    memset(&w, 0, sizeof(w));
    w.fd = fd;
    dsa_hosts_wire_limit(&w, 20000);

    (void) dsa_hosts_hello(&hello, &err);
    (void) dsa_hosts_wire_read(&w, &head, sizeof(head), &err);
    (void) dsa_hosts_wire_read(&w, &peer, sizeof(peer), &err);

    if (i == 0) {
        (void) send(fd, "HTTP/1.1 400 Bad Request\r\n\r\n", 28, 0);
        _exit(0);
    }

    hello.protocol += i == 1;
    hello.version[0] = i == 2 ? '9' : hello.version[0];
    hello.version[1] = i == 2 ? '\033' : hello.version[1];
    hello.magic += i == 3;

    part = (struct iovec) { &hello, sizeof(hello) };
    (void) dsa_hosts_wire_send(&w, DSA_HOSTS_HELLO, 0, &part, 1, &err);
    (void) dsa_hosts_wire_read(&w, &head, sizeof(head), &err);
    (void) dsa_hosts_wire_read(&w, proof, sizeof(proof), &err);

    /* the leader's own proof, sent back */

    part = (struct iovec) { proof, sizeof(proof) };
    (void) dsa_hosts_wire_send(&w, DSA_HOSTS_PROOFS, 0, &part, 1, &err);
    _exit(0);
}


static void
test_impostors(void **state)
{
    int                 listener;
    char                address[64];
    size_t              i;
    pid_t               pid;
    dsa_err_t           err;
    socklen_t           len;
    dsa_hosts_wire_t    w;
    struct sockaddr_in  at;

    static const char  *why[] = {
        "does not answer as a dsa-engine does",
        "has version " DSA_VERSION " (messages 2); expected version "
        DSA_VERSION " (messages 1)",
        "has version 9?1 (messages 1); expected version " DSA_VERSION,
        "does not answer as a dsa-engine does",
        "has not proved that it has the secret of this host"
    };

    memset(&at, 0, sizeof(at));
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    len = sizeof(at);

    listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *) &at, len), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *) &at, &len), 0);
    (void) snprintf(address, sizeof(address), "127.0.0.1:%d",
                    ntohs(at.sin_port));

    hosts_secret_set(&secret, hosts_secret);

    for (i = 0; i < sizeof(why) / sizeof(why[0]); i++) {
        pid = impostor_start(listener, (int) i);

        memset(&w, 0, sizeof(w));
        dsa_hosts_wire_limit(&w, 20000);
        assert_int_equal(dsa_hosts_connect(&w, address, &secret, &err),
                         DSA_ERROR);

        if (strstr(err.text, why[i]) == NULL
            || strstr(err.text, address) == NULL)
        {
            fail_msg("\"%s\" does not contain \"%s\"", err.text, why[i]);
        }

        assert_int_equal(w.fd, -1);
        (void) leader_ended(pid);
    }

    (void) close(listener);
}


/* A follower that is not there yet is waited for, until the deadline. */

static void
test_waits(void **state)
{
    int               port;
    char              address[64];
    dsa_err_t         err;
    dsa_hosts_wire_t  w;

    door_open();
    port = dsa_hosts_door_port(door);
    dsa_hosts_door_close(door);

    (void) snprintf(address, sizeof(address), "127.0.0.1:%d", port);
    memset(&w, 0, sizeof(w));
    dsa_hosts_wire_limit(&w, 500);

    assert_int_equal(dsa_hosts_connect(&w, address, &secret, &err), DSA_ERROR);
    assert_non_null(strstr(err.text, "Connection refused"));
    assert_non_null(strstr(err.text, address));
}


static void
test_addresses(void **state)
{
    size_t               i;
    dsa_err_t            err;
    dsa_hosts_address_t  a;

    static const char  *good[][3] = {
        { "10.0.0.2:7400", "10.0.0.2", "7400" },
        { "[fe80::1%eth0]:1", "fe80::1%eth0", "1" },
        { "gpu-2.example:65535", "gpu-2.example", "65535" }
    };

    static const char  *bad[] = {
        "", ":1", "a", "a:", "a:x", "a:65536", "a:999999", "::1:5", "[]:5",
        "[::1:5", "a b:5", "a/b:5", "a:5x"
    };

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        must(dsa_hosts_address(&a, good[i][0], &err), &err);
        assert_string_equal(a.host, good[i][1]);
        assert_string_equal(a.port, good[i][2]);
    }

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (dsa_hosts_address(&a, bad[i], &err) != DSA_ERROR) {
            fail_msg("\"%s\" is accepted", bad[i]);
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_slow),
        cmocka_unit_test(test_flood),
        cmocka_unit_test(test_proofs),
        cmocka_unit_test(test_impostors),
        cmocka_unit_test(test_waits)
    };

    dsa_log_level(DSA_LOG_ERR);

    return cmocka_run_group_tests(tests, NULL, NULL);
}
