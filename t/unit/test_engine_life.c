
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The processes of dsa-engine: how they start, are ended or hang, and how the
 * supervisor starts them again.
 */


#include "t/unit/engine.h"


/* A killed replica is restarted; its requests are lost with its session. */

static void
test_kill_replica(void **state)
{
    reply_t         reply;
    uint32_t        i;
    engine_t        e;
    link_client_t   c;

    engine_start(&e, "a.sock", "rate=50;");
    connect_to(&c, e.sock);

    for (i = 0; i < 3; i++) {
        memset(&reply, 0, sizeof(reply));
        send_text(&c, dsa_link_id(1, 0), "abc", 200);
        assert_int_equal(kill((pid_t) c.hello.pid, SIGKILL), 0);
        assert_int_equal(collect(&c, &reply, 1), -1);
        link_client_close(&c);

        connect_to(&c, e.sock);
        memset(&reply, 0, sizeof(reply));
        send_text(&c, dsa_link_id(1, 0), "abc", 5);
        assert_int_equal(collect(&c, &reply, 1), 0);
        assert_string_equal(reply.text, "abcab");
    }

    link_client_close(&c);
    engine_stop(&e);
}


/* A supervisor that is killed leaves no replica behind. */

static void
test_kill_supervisor(void **state)
{
    engine_t        e;
    uint64_t        end;
    link_client_t   c;

    engine_start(&e, "a.sock", "rate=50;");
    connect_to(&c, e.sock);

    assert_int_equal(kill(e.pid, SIGKILL), 0);
    assert_int_equal(engine_wait(&e), -SIGKILL);

    end = link_client_now() + DEADLINE;

    while (kill((pid_t) c.hello.pid, 0) == 0 && link_client_now() < end) {
        nap();
    }

    assert_int_equal(kill((pid_t) c.hello.pid, 0), -1);
    link_client_close(&c);

    /* its socket is still there, and no hindrance */

    assert_int_equal(access(e.sock, F_OK), 0);
    engine_start(&e, "a.sock", "rate=50;");
    connect_to(&c, e.sock);
    link_client_close(&c);
    engine_stop(&e);
}


static void
test_drain(void **state)
{
    reply_t         replies[2];
    uint64_t        end;
    engine_t        e;
    link_client_t   c, d;

    engine_start(&e, "a.sock", "rate=100; drain_timeout 15s;");
    connect_to(&c, e.sock);
    memset(replies, 0, sizeof(replies));

    send_text(&c, dsa_link_id(1, 0), "abcde", 100);

    end = link_client_now() + DEADLINE;

    while (atomic_load(&c.link.control->running) == 0) {
        assert_true(link_client_now() < end);
        nap();
    }

    assert_int_equal(kill(e.pid, SIGTERM), 0);

    while (atomic_load(&c.link.control->draining) == 0) {
        assert_true(link_client_now() < end);
        nap();
    }

    assert_int_equal(link_client_connect(&d, e.sock, 100), -1);

    send_text(&c, dsa_link_id(1, 1), "new", 10);
    assert_int_equal(collect(&c, replies, 2), 0);

    assert_int_equal(replies[1].error, DSA_LINK_E_DRAINING);
    assert_int_equal(replies[0].finish, DSA_LINK_FINISH_LENGTH);
    assert_int_equal(replies[0].len, 100);

    assert_int_equal(engine_wait(&e), 0);
    link_client_close(&c);
}


/* Requests over drain_timeout get an error; a second signal ends it now. */

static void
check_cut(const char *conf, int again)
{
    reply_t         replies[1];
    uint64_t        start;
    engine_t        e;
    link_client_t   c;

    engine_start(&e, "a.sock", conf);
    connect_to(&c, e.sock);
    memset(replies, 0, sizeof(replies));

    send_text(&c, dsa_link_id(1, 0), "", 1);
    assert_int_equal(collect(&c, replies, 1), 0);
    assert_int_equal(replies[0].error, DSA_LINK_E_INVALID);

    memset(replies, 0, sizeof(replies));
    send_text(&c, dsa_link_id(2, 0), "abcde", 100000);
    start = link_client_now();
    assert_int_equal(kill(e.pid, SIGTERM), 0);

    while (again && atomic_load(&c.link.control->draining) == 0) {
        assert_true(link_client_now() - start < DEADLINE);
        nap();
    }

    if (again) {
        assert_int_equal(kill(e.pid, SIGINT), 0);
    }

    assert_int_equal(collect(&c, replies, 1), 0);
    assert_int_equal(replies[0].error, DSA_LINK_E_DRAINING);
    assert_int_equal(engine_wait(&e), 0);
    assert_true(link_client_now() - start < DEADLINE);
    link_client_close(&c);
}


static void
test_drain_timeout(void **state)
{
    check_cut("rate=100; drain_timeout 100ms;", 0);
    check_cut("rate=100; drain_timeout 10m;", 1);
}


/* A ring without room for the errors: the replica waits until it is read. */

static void
test_cut_many(void **state)
{
    reply_t          *replies;
    uint32_t          i;
    uint64_t          end;
    engine_t          e;
    link_client_t     c;
    link_submit_t     s;
    dsa_link_ring_t  *ring;

    const uint32_t  n = 2000;

    /* at this rate every step exceeds a target, which would limit prompts */

    engine_start(&e, "a.sock", "rate=5; drain_timeout 10m; token_target 0;");
    connect_to(&c, e.sock);

    replies = calloc(n, sizeof(reply_t));
    assert_non_null(replies);

    for (i = 0; i < n; i++) {
        link_submit_init(&s, 1000);
        s.head.sampling.logprobs = 1;
        s.head.sampling.top_logprobs = DSA_SAMPLE_MAX_TOP;
        link_submit_text(&s, "abcde");
        assert_int_equal(link_client_submit(&c, dsa_link_id(1, i), &s), 0);
    }

    /* the tokens are not read: what is left has no room for all errors */

    end = link_client_now() + DEADLINE;
    ring = &c.link.event;

    while (ring->size - atomic_load(&ring->shared->head)
           > n * sizeof(dsa_link_record_t))
    {
        assert_true(link_client_now() < end);
        nap();
    }

    assert_int_equal(kill(e.pid, SIGTERM), 0);

    while (atomic_load(&c.link.control->draining) == 0) {
        assert_true(link_client_now() < end);
        nap();
    }

    assert_int_equal(kill(e.pid, SIGINT), 0);
    assert_int_equal(collect(&c, replies, n), 0);

    for (i = 0; i < n; i++) {
        assert_int_equal(replies[i].error, DSA_LINK_E_DRAINING);
    }

    assert_int_equal(engine_wait(&e), 0);
    link_client_close(&c);
    free(replies);
}


/* A replica that does nothing any more does not outlive a second signal. */

static void
test_hung(void **state)
{
    engine_t        e;
    link_client_t   c;

    engine_start(&e, "a.sock", "rate=100; drain_timeout 10m;");
    connect_to(&c, e.sock);

    assert_int_equal(kill((pid_t) c.hello.pid, SIGSTOP), 0);
    assert_int_equal(kill(e.pid, SIGTERM), 0);
    assert_int_equal(kill(e.pid, SIGINT), 0);

    assert_int_equal(engine_wait(&e), 0);
    assert_int_equal(kill((pid_t) c.hello.pid, 0), -1);
    link_client_close(&c);
}


static void
test_replicas(void **state)
{
    char            path[160];
    reply_t         reply;
    uint32_t        i;
    engine_t        e;
    link_client_t   c[3];

    engine_start(&e, "r%n.sock", "rate=0; replicas 3;");

    for (i = 0; i < 3; i++) {
        (void) snprintf(path, sizeof(path), "%s/r%u.sock", model_dir, i);
        connect_to(&c[i], path);
        assert_int_equal(c[i].hello.replica, i);

        memset(&reply, 0, sizeof(reply));
        send_text(&c[i], dsa_link_id(1, 0), "abc", 7);
        assert_int_equal(collect(&c[i], &reply, 1), 0);
        assert_string_equal(reply.text, "abcabca");
    }

    assert_true(c[0].hello.pid != c[1].hello.pid);

    for (i = 0; i < 3; i++) {
        link_client_close(&c[i]);
    }

    engine_stop(&e);
}


static void
check_refused(const char *conf, const char *word)
{
    char      text[4096];
    engine_t  e;

    engine_start(&e, "a.sock", conf);
    assert_int_equal(engine_wait(&e), 1);
    engine_log(&e, text, sizeof(text));

    if (strstr(text, word) == NULL || strncmp(text, "dsa-engine: ", 12) != 0
        || strchr(text, '\n') != text + strlen(text) - 1)
    {
        fail_msg("not one line with \"%s\": %s", word, text);
    }
}


static void
test_startup_errors(void **state)
{
    int             fd;
    char            path[160];
    engine_t        e;
    link_client_t   c;

    check_refused("rate=50; kv_memory 5;", "kv_memory");
    check_refused("rate=50; slots none;", "slots");
    check_refused("rate=50;\nreplicas 5;", "%n");

    /* another process listens at the address */

    engine_start(&e, "a.sock", "rate=50;");
    connect_to(&c, e.sock);

    {
        char      text[4096];
        engine_t  second;

        engine_start(&second, "a.sock", "rate=50;");
        assert_int_equal(engine_wait(&second), 1);
        engine_log(&second, text, sizeof(text));
        assert_non_null(strstr(text, "another process listens"));
    }

    link_client_close(&c);
    engine_stop(&e);

    /* a file that is not a socket is left as it is */

    (void) snprintf(path, sizeof(path), "%s/a.sock", model_dir);
    fd = open(path, O_WRONLY|O_CREAT, 0600);
    assert_true(fd != -1);
    (void) close(fd);
    check_refused("rate=50;", "is not a socket");
    assert_int_equal(unlink(path), 0);

    /* the model */

    (void) snprintf(path, sizeof(path), "%s/tokenizer.json", model_dir);

    {
        char  away[170];

        (void) snprintf(away, sizeof(away), "%s.away", path);
        assert_int_equal(rename(path, away), 0);
        check_refused("rate=50;", "tokenizer.json");
        assert_int_equal(rename(away, path), 0);
    }

    (void) snprintf(path, sizeof(path), "%s/generation_config.json",
                    model_dir);
    fd = open(path, O_WRONLY|O_CREAT, 0600);
    assert_true(fd != -1);
    assert_int_equal(write(fd, "{\"top_p\": 0}", 12), 12);
    (void) close(fd);
    check_refused("rate=50;", "generation_config.json: \"top_p\" is 0");
    assert_int_equal(unlink(path), 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_kill_replica),
        cmocka_unit_test(test_kill_supervisor),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_drain_timeout),
        cmocka_unit_test(test_cut_many),
        cmocka_unit_test(test_hung),
        cmocka_unit_test(test_replicas),
        cmocka_unit_test(test_startup_errors)
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
