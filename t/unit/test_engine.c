
/*
 * Copyright (C) The nginx-dsa authors
 *
 * dsa-engine as a whole, from its socket; test_engine_life.c has its processes.
 */


#include "t/unit/engine.h"


static void
test_many(void **state)
{
    char            text[64];
    reply_t        *replies;
    uint32_t        i, j;
    engine_t        e;
    struct stat     file;
    link_client_t   c[2];

    engine_start(&e, "a.sock", "rate=200;");
    connect_to(&c[0], e.sock);
    connect_to(&c[1], e.sock);

    assert_int_equal(stat(e.sock, &file), 0);
    assert_int_equal(file.st_mode & 07777, 0660);
    assert_string_equal(c[0].hello.model, "test");
    assert_int_equal(c[0].hello.replica, 0);

    /* 200 at once from two workers: each has its own text */

    replies = calloc(200, sizeof(reply_t));
    assert_non_null(replies);

    for (i = 0; i < 200; i++) {
        (void) snprintf(text, sizeof(text), "<request %u>", i);
        send_text(&c[i % 2], dsa_link_id(1, i), text, 60);
    }

    assert_int_equal(collect(&c[0], replies, 100), 0);
    assert_int_equal(collect(&c[1], replies, 100), 0);

    for (i = 0; i < 200; i++) {
        (void) snprintf(text, sizeof(text), "<request %u>", i);
        assert_int_equal(replies[i].finish, DSA_LINK_FINISH_LENGTH);
        assert_int_equal(replies[i].len, 60);

        for (j = 0; j < 60; j++) {
            assert_int_equal(replies[i].text[j], text[j % strlen(text)]);
        }
    }

    assert_int_equal(atomic_load(&c[0].link.control->completion_tokens),
                     200 * 60);

    free(replies);
    link_client_close(&c[0]);
    link_client_close(&c[1]);
    engine_stop(&e);
}


/* A worker has the counts of the engine when it has the hello. */

static void
test_counts(void **state)
{
    reply_t         reply;
    engine_t        e;
    uint32_t        i;
    link_client_t   c, d;

    engine_start(&e, "a.sock", "rate=1000;");
    connect_to(&c, e.sock);
    memset(&reply, 0, sizeof(reply));
    send_text(&c, dsa_link_id(1, 0), "abc", 5);
    assert_int_equal(collect(&c, &reply, 1), 0);

    for (i = 0; i < 200; i++) {
        connect_to(&d, e.sock);
        assert_int_equal(atomic_load(&d.link.control->ended), 1);
        assert_int_equal(atomic_load(&d.link.control->completion_tokens), 5);
        link_client_close(&d);
    }

    link_client_close(&c);
    engine_stop(&e);
}


/* The heartbeat goes on with nothing to do, and the pace is kept. */

static void
test_heart_and_pace(void **state)
{
    reply_t         reply;
    engine_t        e;
    uint64_t        beat, start, took, i;
    link_client_t   c;

    engine_start(&e, "a.sock", "rate=100;");
    connect_to(&c, e.sock);
    start = link_client_now();
    beat = 0;

    for (i = 0; i < 5; /* void */) {
        if (atomic_load(&c.link.control->alive_ms) != beat) {
            beat = atomic_load(&c.link.control->alive_ms);
            i++;
        }

        assert_true(link_client_now() - start < DEADLINE);
        nap();
    }

    memset(&reply, 0, sizeof(reply));
    start = link_client_now();
    send_text(&c, dsa_link_id(1, 0), "abc", 51);
    assert_int_equal(collect(&c, &reply, 1), 0);
    took = link_client_now() - start;

    /* 50 steps of 10 ms at least behind the first token */

    assert_int_equal(reply.len, 51);
    assert_true(took >= 490);

    link_client_close(&c);
    engine_stop(&e);
}


/*
 * A model that computes: the same seed gives the same bytes, alone and beside
 * others, and it drains as the null backend does.
 */

static void
test_cpu(void **state)
{
    reply_t         replies[4], first;
    uint32_t        i, turn;
    engine_t        e;
    uint64_t        end;
    link_submit_t   s;
    link_client_t   c;

    engine_start(&e, "a.sock", "backend cpu; kv_memory 16m; "
                 "max_running 4; token_budget 16; precision exact;");
    connect_to(&c, e.sock);

    for (turn = 1; turn <= 2; turn++) {
        memset(replies, 0, sizeof(replies));

        for (i = 0; i < (turn == 1 ? 1 : 4); i++) {
            link_submit_init(&s, 40);
            s.head.flags = DSA_LINK_IGNORE_EOS;
            s.head.sampling.seed = 5;
            s.head.tenant[0] = (uint8_t) (turn * 8 + i);
            link_submit_control(&s, "<bos>");
            link_submit_text(&s, "a prompt that is longer than a step");
            assert_int_equal(link_client_submit(&c, dsa_link_id(turn, i),
                                                &s), 0);
        }

        if (turn == 2) {
            end = link_client_now() + DEADLINE;

            while (atomic_load(&c.link.control->running) == 0) {
                assert_true(link_client_now() < end);
                nap();
            }

            assert_int_equal(kill(e.pid, SIGTERM), 0);
        }

        assert_int_equal(collect(&c, replies, i), 0);

        while (i-- != 0) {
            assert_int_equal(replies[i].finish, DSA_LINK_FINISH_LENGTH);
            assert_true(replies[i].len > 0);

            if (turn == 2) {
                assert_int_equal(replies[i].len, first.len);
                assert_memory_equal(replies[i].text, first.text, first.len);
            }
        }

        first = replies[0];
    }

    assert_int_equal(engine_wait(&e), 0);
    assert_int_equal(access(e.sock, F_OK), -1);
    link_client_close(&c);
}


/* A worker that violates the protocol loses its session; others go on. */

static void
test_bad_workers(void **state)
{
    reply_t         reply;
    engine_t        e;
    link_client_t   c, d;

    engine_start(&e, "a.sock", "rate=50;");
    connect_to(&c, e.sock);
    connect_to(&d, e.sock);

    memset(&reply, 0, sizeof(reply));
    send_text(&d, dsa_link_id(1, 0), "abc", 200);
    assert_int_equal(send(d.fd, "x", 1, 0), 1);
    assert_int_equal(collect(&d, &reply, 1), -1);
    link_client_close(&d);

    connect_to(&d, e.sock);
    atomic_store(&d.link.control->submit.head, 12345);
    link_client_wake(&d);
    assert_int_equal(collect(&d, &reply, 1), -1);
    link_client_close(&d);

    memset(&reply, 0, sizeof(reply));
    send_text(&c, dsa_link_id(1, 0), "abc", 5);
    assert_int_equal(collect(&c, &reply, 1), 0);
    assert_string_equal(reply.text, "abcab");

    link_client_close(&c);
    engine_stop(&e);
}


/* The same process as before serves a new session. */

static void
check_serves(engine_t *e, uint32_t pid)
{
    reply_t         reply;
    link_client_t   c;

    connect_to(&c, e->sock);
    assert_int_equal(c.hello.pid, pid);

    memset(&reply, 0, sizeof(reply));
    send_text(&c, dsa_link_id(1, 0), "abc", 5);
    assert_int_equal(collect(&c, &reply, 1), 0);
    assert_string_equal(reply.text, "abcab");
    link_client_close(&c);
}


/*
 * A worker keeps its eventfds and rings after its session was closed, whether
 * the replica closed it because of a corrupt ring or the worker by its socket.
 */

static void
test_ring_after_close(void **state)
{
    reply_t         reply;
    engine_t        e;
    uint32_t        i, j, pid;
    link_client_t   c;

    engine_start(&e, "a.sock", "rate=50;");

    for (i = 0; i < 6; i++) {
        connect_to(&c, e.sock);

        if (i == 0) {
            pid = c.hello.pid;
        }

        assert_int_equal(c.hello.pid, pid);
        memset(&reply, 0, sizeof(reply));

        if (i % 2 == 0) {
            atomic_store(&c.link.control->submit.head, 12345);
            link_client_wake(&c);

        } else {
            assert_int_equal(shutdown(c.fd, SHUT_WR), 0);
        }

        assert_int_equal(collect(&c, &reply, 1), -1);

        for (j = 0; j < 20; j++) {
            link_client_wake(&c);
            nap();
        }

        check_serves(&e, pid);
        link_client_close(&c);
    }

    engine_stop(&e);
}


/*
 * The replica does not read the eventfd that wakes it: O_NONBLOCK belongs to
 * the open file, which is the worker's, too, and a read() could block when the
 * worker clears it and takes its own wake-ups back.
 */

static void
test_wake_counter(void **state)
{
    reply_t         reply;
    engine_t        e;
    uint64_t        n;
    uint32_t        i;
    link_client_t   c;

    engine_start(&e, "a.sock", "rate=50;");
    connect_to(&c, e.sock);

    for (i = 1; i < 10; i++) {
        link_client_wake(&c);
        memset(&reply, 0, sizeof(reply));
        send_text(&c, dsa_link_id(i, 0), "abc", 5);
        assert_int_equal(collect(&c, &reply, 1), 0);
        assert_string_equal(reply.text, "abcab");
    }

    assert_int_equal(read(c.fds[1], &n, sizeof(n)), sizeof(n));
    assert_true(n >= 9);

    link_client_close(&c);
    engine_stop(&e);
}


/* A prompt over the context is counted: exactly, up to a bound. */

static void
test_context_count(void **state)
{
    char           *text, want[64];
    reply_t         reply;
    engine_t        e;
    uint32_t        i;
    link_client_t   c;

    static const struct {
        uint32_t  len;
        uint32_t  max_tokens;
        uint32_t  count;
        uint32_t  more;
    } sent[] = {
        { 4097, 97, 4097, 0 },
        { 4096, 0, 4096, 0 },
        { 8000, 1, 8000, 0 },
        { 50000, 1, 50000, 0 },
        { 131072, 1, 131072, 0 },
        { 131073, 1, 131072, 1 },
        { 1000000, 1, 131072, 1 }
    };

    engine_start(&e, "a.sock", "rate=0; context_length 4096;");
    connect_to(&c, e.sock);
    assert_int_equal(c.hello.context_length, 4096);

    for (i = 0; i < sizeof(sent) / sizeof(sent[0]); i++) {
        text = calloc(sent[i].len + 1, 1);
        assert_non_null(text);
        memset(text, 'a', sent[i].len);
        memset(&reply, 0, sizeof(reply));

        send_text(&c, dsa_link_id(1 + i, 0), text, sent[i].max_tokens);
        assert_int_equal(collect(&c, &reply, 1), 0);
        free(text);

        assert_int_equal(reply.error, DSA_LINK_E_CONTEXT);
        assert_int_equal(reply.failure.prompt_tokens, sent[i].count);
        assert_int_equal(reply.failure.more, sent[i].more);

        (void) snprintf(want, sizeof(want), "has %s%u tokens",
                        sent[i].more ? "more than " : "", sent[i].count);
        assert_non_null(strstr(reply.reason, want));
    }

    link_client_close(&c);
    engine_stop(&e);
}


static void
send_tenant(link_client_t *c, uint64_t id, uint8_t tenant, uint32_t flags,
    const char *text, uint32_t n)
{
    link_submit_t  s;

    link_submit_init(&s, n);
    s.head.tenant[0] = tenant;
    s.head.flags = flags;
    link_submit_text(&s, text);
    assert_int_equal(link_client_submit(c, id, &s), 0);
}


static void
wait_sequences(link_client_t *c, uint32_t n)
{
    uint64_t             end;
    dsa_link_control_t  *control;

    end = link_client_now() + DEADLINE;
    control = c->link.control;

    while (atomic_load(&control->running) + atomic_load(&control->waiting)
           != n)
    {
        assert_true(link_client_now() < end);
        nap();
    }
}


/* The tenant that fills the queue gives way, with a clean error. */

static void
test_overloaded(void **state)
{
    reply_t         replies[5];
    uint32_t        i;
    engine_t        e;
    link_client_t   c, d;

    engine_start(&e, "a.sock", "rate=200; max_running 1; max_waiting 2;");
    connect_to(&c, e.sock);
    connect_to(&d, e.sock);
    memset(replies, 0, sizeof(replies));

    /* prompts are tokenized side by side: only one that has arrived is first */

    for (i = 0; i < 4; i++) {
        wait_sequences(&c, i);
        send_tenant(&c, dsa_link_id(1, i), 1, 0, "abc", i == 0 ? 200 : 5);
    }

    assert_int_equal(collect(&c, replies, 1), 0);
    assert_int_equal(replies[3].error, DSA_LINK_E_TENANT);

    send_tenant(&d, dsa_link_id(1, 4), 2, 0, "abcd", 5);
    assert_int_equal(collect(&c, replies, 1), 0);
    assert_int_equal(replies[2].error, DSA_LINK_E_TENANT);
    assert_int_equal(replies[2].failure.prompt_tokens, 3);

    assert_int_equal(collect(&d, replies, 1), 0);
    assert_string_equal(replies[4].text, "abcda");
    assert_int_equal(replies[4].error, 0);

    assert_int_equal(collect(&c, replies, 2), 0);
    assert_int_equal(replies[0].len, 200);
    assert_int_equal(replies[1].len, 5);

    link_client_close(&c);
    link_client_close(&d);
    engine_stop(&e);
}


static void
test_private(void **state)
{
    char            text[641];
    reply_t         reply;
    uint32_t        i;
    engine_t        e;
    link_client_t   c;

    static const struct {
        uint32_t  flags;
        uint32_t  cached;
    } order[] = {
        { DSA_LINK_PRIVATE, 0 }, { DSA_LINK_PRIVATE, 0 },
        { 0, 0 }, { 0, 576 }, { DSA_LINK_PRIVATE, 0 }
    };

    memset(text, 'x', sizeof(text));
    text[640] = '\0';

    engine_start(&e, "a.sock", "rate=0;");
    connect_to(&c, e.sock);

    for (i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        memset(&reply, 0, sizeof(reply));
        send_tenant(&c, dsa_link_id(1, 0), 1, order[i].flags, text, 5);
        assert_int_equal(collect(&c, &reply, 1), 0);
        assert_int_equal(reply.done.prompt_tokens, 640);
        assert_int_equal(dsa_link_cached(&reply.done), order[i].cached);
    }

    link_client_close(&c);
    engine_stop(&e);
}


/* What a client wrote is in an error without its control characters. */

static void
test_control_characters(void **state)
{
    reply_t         reply;
    engine_t        e;
    link_submit_t   s;
    link_client_t   c;

    engine_start(&e, "a.sock", "rate=0;");
    connect_to(&c, e.sock);
    memset(&reply, 0, sizeof(reply));

    link_submit_init(&s, 5);
    link_submit_control(&s, "a\033[2J\r\n\177\302\233\377\303\251z");
    assert_int_equal(link_client_submit(&c, dsa_link_id(1, 0), &s), 0);
    assert_int_equal(collect(&c, &reply, 1), 0);

    assert_int_equal(reply.error, DSA_LINK_E_INVALID);
    assert_non_null(strstr(reply.reason, "\"a\\x1b[2J\\x0d\\x0a\\x7f"
                           "\\xc2\\x9b\\xff\303\251z\""));

    link_client_close(&c);
    engine_stop(&e);
}


/* The number that a process's next descriptor gets. */

static uint32_t
next_descriptor(uint32_t pid)
{
    char         path[64];
    uint32_t     n;
    struct stat  file;

    for (n = 0; n < 1000; n++) {
        (void) snprintf(path, sizeof(path), "/proc/%u/fd/%u", pid, n);

        if (lstat(path, &file) == -1) {
            return n;
        }
    }

    fail_msg("too many descriptors");

    return 0;
}


static void
limit_descriptors(uint32_t pid, uint32_t n)
{
    struct rlimit  limit;

    limit.rlim_cur = n;
    limit.rlim_max = 1000;

    assert_int_equal(prlimit((pid_t) pid, RLIMIT_NOFILE, &limit, NULL), 0);
}


/* Clock ticks that a process has had. */

static unsigned long
ticks(uint32_t pid)
{
    char            path[64], text[1024], *p;
    FILE           *f;
    unsigned long   user, system;

    (void) snprintf(path, sizeof(path), "/proc/%u/stat", pid);
    f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof(text), f));
    (void) fclose(f);

    p = strrchr(text, ')');
    assert_non_null(p);
    assert_int_equal(sscanf(p, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u "
                            "%*u %lu %lu", &user, &system), 2);

    return user + system;
}


/*
 * Connections for which there is no descriptor wait, and cost nothing.  In
 * 2 s by alive_ms a busy loop takes 200 ticks, or half of that where the
 * machine is busy.
 */

static void
test_descriptors(void **state)
{
    int                  fd[20];
    char                 text[65536], *p;
    reply_t              reply;
    uint32_t             i, n, pid;
    uint64_t             start, end;
    engine_t             e;
    link_client_t        c, d;
    unsigned long        before;
    struct sockaddr_un   addr;

    engine_start(&e, "a.sock", "rate=0;");
    connect_to(&c, e.sock);
    connect_to(&d, e.sock);
    pid = c.hello.pid;
    link_client_close(&d);

    memset(&addr, 0, sizeof(addr));
    addr.sun_family = AF_UNIX;
    memcpy(addr.sun_path, e.sock, strlen(e.sock));

    /* a served session has nothing open but what stays open */

    connect_to(&d, e.sock);
    memset(&reply, 0, sizeof(reply));
    send_text(&d, dsa_link_id(1, 0), "abc", 5);
    assert_int_equal(collect(&d, &reply, 1), 0);
    n = next_descriptor(pid);
    limit_descriptors(pid, n);

    for (i = 0; i < 20; i++) {
        fd[i] = socket(AF_UNIX, SOCK_SEQPACKET|SOCK_CLOEXEC, 0);
        assert_true(fd[i] != -1);
        assert_int_equal(connect(fd[i], (struct sockaddr *) &addr,
                                 sizeof(addr)), 0);
    }

    start = atomic_load(&c.link.control->alive_ms);
    end = link_client_now() + DEADLINE;
    before = ticks(pid);

    for (i = 0; atomic_load(&c.link.control->alive_ms) < start + 2000; i++) {
        assert_true(link_client_now() < end);
        nap();
    }

    assert_true(ticks(pid) - before < 40);

    /* the sessions that are open are still served */

    memset(&reply, 0, sizeof(reply));
    send_text(&c, dsa_link_id(1, 0), "abc", 5);
    assert_int_equal(collect(&c, &reply, 1), 0);
    assert_string_equal(reply.text, "abcab");

    engine_log(&e, text, sizeof(text));
    p = strstr(text, "connections have to wait");
    assert_non_null(p);
    assert_null(strstr(p + 1, "connections have to wait"));

    limit_descriptors(pid, n + 100);
    link_client_close(&d);

    for (i = 0; i < 20; i++) {
        if (link_client_attach(&d, fd[i], DEADLINE) != 0) {
            fail_msg("connection %u got no hello", i);
        }

        assert_int_equal(d.hello.pid, pid);
        memset(&reply, 0, sizeof(reply));
        send_text(&d, dsa_link_id(1, 0), "abc", 5);
        assert_int_equal(collect(&d, &reply, 1), 0);
        assert_string_equal(reply.text, "abcab");
        link_client_close(&d);
    }

    link_client_close(&c);
    engine_stop(&e);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_heart_and_pace),
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_bad_workers),
        cmocka_unit_test(test_ring_after_close),
        cmocka_unit_test(test_wake_counter),
        cmocka_unit_test(test_context_count),
        cmocka_unit_test(test_overloaded),
        cmocka_unit_test(test_private),
        cmocka_unit_test(test_control_characters),
        cmocka_unit_test(test_descriptors)
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
