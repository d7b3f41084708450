
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "t/unit/redis.h"
#include "engine/pages/redis_bucket.h"


/*
 * The cache with a server that the test scripts: replies that are cut off, late
 * or wrong, the order of operations, and the limits of queue and bandwidth.
 */


typedef struct fake_s  fake_t;

struct fake_s {
    char         path[128];
    char         address[160];
    int          listener;
    int          client;                /* the connection, or -1 */
    int          stop[2];               /* pipes: closed to end, */
    int          go[2];                 /* a byte lets a script go on, */
    int          at[2];                 /* a byte for each wait of a script */
    pthread_t    thread;
    size_t       len;
    char         in[1 << 20];

    /* executes a command; 1: close the connection */

    int        (*script)(fake_t *f, const char *command);
    const void  *data;
    size_t       size;
    char         order[64];             /* first letters of the commands */
    uint32_t     n;
};


static fake_t  fake;


static void
say(fake_t *f, const void *data, size_t len)
{
    ssize_t      n;
    const char  *p = data;

    while (len != 0 && (n = send(f->client, p, len, MSG_NOSIGNAL)) > 0) {
        p += n;
        len -= (size_t) n;
    }
}


/* Waits until the pipe is readable or the test ends; 1: it ends. */

static int
await(fake_t *f, int fd)
{
    char           c;
    struct pollfd  p[2];

    p[0].fd = fd;
    p[0].events = POLLIN;
    p[1].fd = f->stop[0];
    p[1].events = POLLIN;

    while (poll(p, 2, -1) == -1) { /* EINTR */ }

    if (p[1].revents != 0) {
        return 1;
    }

    if (fd == f->go[0]) {
        (void) !read(fd, &c, 1);
    }

    return 0;
}


/* The bytes of the command at the beginning of the input, or 0; its name. */

static size_t
parse(fake_t *f, char *name)
{
    int      i, n, len, used;
    size_t   at;

    f->in[f->len] = '\0';

    if (sscanf(f->in, "*%d\r\n%n", &n, &used) != 1) {
        return 0;
    }

    at = (size_t) used;

    for (i = 0; i < n; i++) {
        used = 0;

        if (at >= f->len || sscanf(f->in + at, "$%d\r\n%n", &len, &used) != 1
            || used == 0 || at + (size_t) (used + len + 2) > f->len)
        {
            return 0;
        }

        if (i == 0) {
            (void) snprintf(name, 16, "%.*s", len, f->in + at + used);
        }

        at += (size_t) (used + len + 2);
    }

    return at;
}


static int
serve(fake_t *f)
{
    char     name[16];
    size_t   size;
    ssize_t  n;

    f->len = 0;

    for ( ;; ) {
        if (await(f, f->client)) {
            return 1;
        }

        n = recv(f->client, f->in + f->len, sizeof(f->in) - 1 - f->len, 0);

        if (n <= 0) {
            return 0;
        }

        f->len += (size_t) n;

        while ((size = parse(f, name)) != 0) {
            memmove(f->in, f->in + size, f->len - size);
            f->len -= size;

            if (strcmp(name, "PING") == 0 || strcmp(name, "AUTH") == 0) {
                say(f, "+OK\r\n", 5);

            } else if (strcmp(name, "CLUSTER") == 0) {
                say(f, "-ERR no cluster\r\n", 17);

            } else {
                if (f->n < sizeof(f->order) - 1) {
                    f->order[f->n++] = name[0];
                }

                if (f->script(f, name)) {
                    return 0;
                }
            }
        }
    }
}


static void *
fake_thread(void *data)
{
    int      end;
    fake_t  *f = data;

    for (end = 0; !end; ) {
        if (await(f, f->listener)) {
            break;
        }

        f->client = accept(f->listener, NULL, NULL);
        end = serve(f);
        (void) close(f->client);
    }

    return NULL;
}


static void
fake_start(int (*script)(fake_t *, const char *))
{
    struct sockaddr_un  sun;

    memset(&fake, 0, sizeof(fake));
    (void) snprintf(fake.path, sizeof(fake.path), "%s/fake", dir);
    (void) snprintf(fake.address, sizeof(fake.address), "unix:%s", fake.path);
    (void) unlink(fake.path);

    memset(&sun, 0, sizeof(sun));
    sun.sun_family = AF_UNIX;
    (void) snprintf(sun.sun_path, sizeof(sun.sun_path), "%.100s", fake.path);

    fake.script = script;
    fake.listener = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fake.listener, (struct sockaddr *) &sun,
                          sizeof(sun)), 0);
    assert_int_equal(listen(fake.listener, 16), 0);
    assert_int_equal(pipe(fake.stop) + pipe(fake.go) + pipe(fake.at), 0);
    assert_int_equal(pthread_create(&fake.thread, NULL, fake_thread, &fake),
                     0);
}


static void
fake_stop(void)
{
    (void) close(fake.stop[1]);
    (void) pthread_join(fake.thread, NULL);
    (void) close(fake.stop[0]);
    (void) close(fake.go[0]);
    (void) close(fake.go[1]);
    (void) close(fake.at[0]);
    (void) close(fake.at[1]);
    (void) close(fake.listener);
}


static void
fake_go(void)
{
    assert_int_equal(write(fake.go[1], "x", 1), 1);
}


static void
fake_at(void)
{
    char  c;

    assert_int_equal(read(fake.at[0], &c, 1), 1);
}


static void
open_fake(box_t *b, dsa_redis_conf_t *conf)
{
    static char  *address[1];

    address[0] = fake.address;
    box_conf(b, conf, address, 1);
    conf->connections = 1;
}


static int
setup(void **state)
{
    make_dir();
    log_begin();

    return 0;
}


static int
teardown(void **state)
{
    log_end();
    remove_dir();

    return 0;
}


/* The value of page 1, as a GET expects it. */

static char *
value_of(size_t *size)
{
    int            n;
    char          *value;
    uint8_t       *page;
    dsa_digest_t   digest;

    value = malloc(64 + DSA_KV_HEADER + BYTES);
    page = malloc(BYTES);
    assert_true(value != NULL && page != NULL);

    digest = digest_of(1);
    page_of(1, page, BYTES);

    n = sprintf(value, "$%d\r\n", DSA_KV_HEADER + BYTES);
    dsa_kv_header((uint8_t *) value + n, digest.byte, fingerprint, page, BYTES);
    memcpy(value + n + DSA_KV_HEADER, page, BYTES);
    memcpy(value + n + DSA_KV_HEADER + BYTES, "\r\n", 2);

    *size = (size_t) n + DSA_KV_HEADER + BYTES + 2;
    free(page);

    return value;
}


/* Sends its data and closes the connection. */

static int
script_close(fake_t *f, const char *command)
{
    say(f, f->data, f->size);

    return 1;
}


/* Sends its data and nothing more. */

static int
script_freeze(fake_t *f, const char *command)
{
    say(f, f->data, f->size);

    return await(f, f->go[0]);
}


/* A byte every 10 ms. */

static int
script_drip(fake_t *f, const char *command)
{
    size_t         i;
    struct pollfd  p;

    for (i = 0; i < f->size; i++) {
        if (send(f->client, (const char *) f->data + i, 1, MSG_NOSIGNAL) != 1) {
            return 1;
        }

        p.fd = f->stop[0];
        p.events = POLLIN;

        if (poll(&p, 1, 10) != 0) {
            return 1;
        }
    }

    return 1;
}


/* The server ends at every interesting place of the value. */

static void
test_cut(void **state)
{
    char              *value;
    box_t              b;
    size_t             size;
    uint32_t           i;
    dsa_redis_conf_t   conf;

    static const size_t  at[] = {
        0, 1, 5, 8, 9, 10, 9 + 64, 9 + DSA_KV_HEADER, 9 + DSA_KV_HEADER + 1,
        BYTES / 2, 9 + DSA_KV_HEADER + BYTES, 9 + DSA_KV_HEADER + BYTES + 1
    };

    value = value_of(&size);
    assert_int_equal(size, 9 + DSA_KV_HEADER + BYTES + 2);

    for (i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        fake_start(script_close);
        fake.data = value;
        fake.size = at[i];
        open_fake(&b, &conf);
        box_open(&b, &conf);
        wait_on(&b, 1);

        assert_int_equal(get(&b, 1), DSA_TIER_FAILED);
        wait_logged("Redis closed the connection");

        /* it is tried again, and the whole value is a page */

        wait_on(&b, 1);
        box_close(&b);
        fake_stop();
    }

    fake_start(script_close);
    fake.data = value;
    fake.size = size;
    open_fake(&b, &conf);
    box_open(&b, &conf);
    wait_on(&b, 1);
    assert_int_equal(get(&b, 1), DSA_TIER_DONE);
    assert_int_equal(get(&b, 1), DSA_TIER_DONE);
    box_close(&b);
    fake_stop();

    /* the page is followed by something else */

    for (i = 1; i <= 2; i++) {
        value[size - i]++;
        fake_start(script_close);
        fake.data = value;
        fake.size = size;
        open_fake(&b, &conf);
        box_open(&b, &conf);
        wait_on(&b, 1);
        assert_int_equal(get(&b, 1), DSA_TIER_FAILED);
        box_close(&b);
        fake_stop();
        value[size - i]--;
    }

    free(value);
}


static void
test_freeze_and_drip(void **state)
{
    char              *value;
    box_t              b;
    size_t             size;
    uint32_t           i;
    uint64_t           begin;
    dsa_redis_conf_t   conf;

    value = value_of(&size);

    for (i = 0; i < 3; i++) {
        fake_start(i == 2 ? script_drip : script_freeze);
        fake.data = value;
        fake.size = i == 0 ? 0 : i == 1 ? size / 2 : size;
        open_fake(&b, &conf);

        /* a busy machine may delay a byte, but not for two seconds */

        conf.timeout_ms = slow_ms(i == 2 ? 2000 : 200);
        box_open(&b, &conf);
        wait_on(&b, 1);

        /* the whole page would take a quarter of an hour at that pace */

        begin = dsa_clock_ms();
        assert_int_equal(get(&b, 1), DSA_TIER_FAILED);
        assert_true(dsa_clock_ms() - begin >= conf.timeout_ms);

        if (i == 2) {
            wait_logged("timed out: less than 10 MB/s");
        }

        box_close(&b);
        fake_stop();
    }

    free(value);
}


/* Bytes that are no reply to the command end the connection. */

static void
test_garbage(void **state)
{
    box_t              b;
    uint32_t           i, k;
    dsa_redis_conf_t   conf;

    static const char  *garbage[] = {
        "hello\r\n", "\r\n", "*1\r\n$1\r\nx\r\n", "+OK\r\n", ":1\r\n:2\r\n",
        "$x\r\n", "$-2\r\n", "$+5\r\n", "$ 5\r\n", "$\r\n", "$05\r\n",
        "$-0\r\n",
        "$99999999999999999999\r\n", "$100131\n", "$100131\r\r\n",
        "$-1\r\n$-1\r\n", "$-1\r\nx", "-ERR x\n", "-ERR\rx\r\n",
        "-MOVED 1 x\r\n", "-LOADING Redis is loading\r\n", "%1\r\n", "_\r\n"
    };

    for (i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
        fake_start(script_close);
        fake.data = garbage[i];
        fake.size = strlen(garbage[i]);
        open_fake(&b, &conf);
        box_open(&b, &conf);

        for (k = 0; k < 3; k++) {
            wait_on(&b, 1);

            if (k == 0) {
                assert_int_equal(get(&b, 1), DSA_TIER_FAILED);

            } else if (k == 1 && strcmp(garbage[i], "+OK\r\n") != 0) {
                assert_int_equal(put(&b, 1), DSA_TIER_FAILED);

            } else if (k == 2 && garbage[i][0] != ':') {
                assert_true(probe(&b, 1, 2) <= 0);
            }
        }

        box_close(&b);
        fake_stop();
    }

    assert_int_not_equal(logged("protocol error"), 0);
    wait_logged("is off: LOADING Redis is loading");

    /* an endless line, and a value that never ends */

    char *line = malloc(100000);
    memset(line, 'x', 100000);
    line[0] = '-';
    fake_start(script_freeze);
    fake.data = line;
    fake.size = 100000;
    open_fake(&b, &conf);
    box_open(&b, &conf);
    wait_on(&b, 1);
    assert_int_equal(get(&b, 1), DSA_TIER_FAILED);
    wait_logged("longer than 1024 bytes");
    box_close(&b);
    fake_stop();
    free(line);
}


/* Waits at the first command; executes all others. */

static int
script_order(fake_t *f, const char *command)
{
    if (f->n == 1) {
        (void) !write(f->at[1], "x", 1);

        if (await(f, f->go[0])) {
            return 1;
        }
    }

    switch (command[0]) {
    case 'S':
        say(f, "+OK\r\n", 5);
        break;

    case 'E':
        say(f, ":1\r\n", 4);
        break;

    default:
        say(f, "$-1\r\n", 5);
    }

    return 0;
}


static void
test_priority(void **state)
{
    box_t             b;
    uint8_t          *page;
    uint32_t          i;
    dsa_digest_t      digest;
    dsa_tier_op_t     op[8], *done[8];
    dsa_redis_conf_t  conf;

    static const dsa_tier_kind_e  kind[8] = {
        DSA_TIER_WRITE, DSA_TIER_WRITE, DSA_TIER_READ, DSA_TIER_WRITE,
        DSA_TIER_PROBE, DSA_TIER_READ, DSA_TIER_WRITE, DSA_TIER_READ
    };

    page = calloc(8, BYTES);
    assert_non_null(page);
    digest = digest_of(1);

    fake_start(script_order);
    open_fake(&b, &conf);
    box_open(&b, &conf);
    wait_on(&b, 1);

    for (i = 0; i < 8; i++) {
        set_op(&op[i], kind[i], &digest, 1, page + i * BYTES);
        assert_int_equal(dsa_redis_submit(b.cache, &op[i]), DSA_OK);

        if (i == 0) {
            fake_at();              /* the first one is being executed */
        }
    }

    fake_go();
    collect(&b, done, 8);
    assert_string_equal(fake.order, "SEGGGSSS");

    for (i = 0; i < 8; i++) {
        assert_int_equal(op[i].result, kind[i] == DSA_TIER_READ
                                       ? DSA_TIER_MISS : DSA_TIER_DONE);
    }

    box_close(&b);
    fake_stop();
    free(page);
}


static void
test_queue_bound(void **state)
{
    box_t             b;
    uint8_t          *page;
    uint32_t          i, n;
    dsa_digest_t      digest;
    dsa_tier_op_t    *op, **done;
    dsa_redis_conf_t  conf;

    page = calloc(1, BYTES);
    op = calloc(DSA_REDIS_QUEUE + 1, sizeof(dsa_tier_op_t));
    done = calloc(DSA_REDIS_QUEUE, sizeof(dsa_tier_op_t *));
    assert_true(page != NULL && op != NULL && done != NULL);
    digest = digest_of(1);

    fake_start(script_order);
    open_fake(&b, &conf);
    box_open(&b, &conf);
    wait_on(&b, 1);

    for (i = 0; i <= DSA_REDIS_QUEUE; i++) {
        set_op(&op[i], i % 2 ? DSA_TIER_READ : DSA_TIER_PROBE, &digest, 1,
               page);
        op[i].owner = i < 100 ? &b : NULL;
        assert_int_equal(dsa_redis_on(b.cache), i < DSA_REDIS_QUEUE);
        assert_int_equal(dsa_redis_submit(b.cache, &op[i]),
                         i < DSA_REDIS_QUEUE ? DSA_OK : DSA_AGAIN);

        if (i == 0) {
            fake_at();
        }
    }

    /*
     * All with this owner but the first one, which is being executed: 49
     * probes, and then 50 reads.
     */

    dsa_redis_cancel(b.cache, &b);
    collect(&b, done, 99);

    for (i = 0; i < 99; i++) {
        assert_ptr_equal(done[i], &op[i < 49 ? 2 * i + 2 : 2 * i - 97]);
        assert_int_equal(done[i]->result, DSA_TIER_FAILED);
        assert_int_equal(done[i]->begin_us, 0);
    }

    assert_true(dsa_redis_on(b.cache));
    fake_go();
    collect(&b, done, DSA_REDIS_QUEUE - 99);

    for (i = 0, n = 0; i < DSA_REDIS_QUEUE; i++) {
        n += op[i].result == DSA_TIER_MISS || op[i].result == DSA_TIER_DONE;
    }

    assert_int_equal(n, DSA_REDIS_QUEUE - 99);
    assert_null(dsa_redis_collect(b.cache));

    /* operations that were never collected are the caller's again */

    assert_int_equal(dsa_redis_submit(b.cache, &op[0]), DSA_OK);
    box_close(&b);
    fake_stop();
    free(page);
    free(done);
    free(op);
}


static void
test_bucket(void **state)
{
    uint32_t             i;
    uint64_t             now, wait, sent;
    dsa_redis_bucket_t   b;

    memset(&b, 0, sizeof(b));
    assert_int_equal(dsa_redis_bucket(&b, 5, 1000000), 0);

    /* 3 MB at 1 GB/s: one page every 3 ms */

    b.rate = 1000000000;
    b.next_us = 1000;

    assert_int_equal(dsa_redis_bucket(&b, 1000, 3000000), 0);
    assert_int_equal(dsa_redis_bucket(&b, 1000, 3000000), 3000);
    assert_int_equal(dsa_redis_bucket(&b, 3999, 3000000), 1);
    assert_int_equal(dsa_redis_bucket(&b, 4000, 3000000), 0);

    /* late by 1 ms each time: the rate is that of the limit nevertheless */

    now = 10000;
    b.next_us = now;
    sent = 0;

    for (i = 0; i < 1000; i++) {
        while ((wait = dsa_redis_bucket(&b, now, 3000000)) != 0) {
            now += wait + 1000;
        }

        sent += 3000000;
    }

    now -= 10000;
    assert_true(sent / now * 1000000 >= 990000000);
    assert_true((sent - 6000000) * 1000 / now <= 1000000);

    /* an idle hour is worth 0.1 s */

    now += 3600000000ULL;

    for (sent = 0; dsa_redis_bucket(&b, now, 3000000) == 0; ) {
        sent += 3000000;
    }

    assert_true(sent >= 100000000 && sent <= 104000000);

    /* 1 byte/s: the next byte after an hour fits in 64 bits */

    b.rate = 1;
    b.next_us = now;
    assert_int_equal(dsa_redis_bucket(&b, now, 3600ULL << 32), 0);
    assert_true(dsa_redis_bucket(&b, now, 1) == (3600ULL << 32) * 1000000);
}


/* A write that waits for bandwidth for hours delays no read. */

static void
test_bandwidth(void **state)
{
    box_t              b;
    uint8_t           *page;
    uint32_t           i;
    uint64_t           sets;
    dsa_digest_t       digest;
    dsa_tier_op_t      op[3], *done;
    dsa_redis_conf_t   conf;
    dsa_redis_stats_t  stats;

    page = calloc(3, BYTES);
    assert_non_null(page);
    digest = digest_of(1);

    fake_start(script_order);
    fake.n = 1;                     /* nothing waits */
    open_fake(&b, &conf);
    conf.max_bandwidth = 10;
    box_open(&b, &conf);
    wait_on(&b, 1);

    for (i = 0; i < 3; i++) {
        set_op(&op[i], DSA_TIER_WRITE, &digest, 1, page + i * BYTES);
        assert_int_equal(dsa_redis_submit(b.cache, &op[i]), DSA_OK);
    }

    collect(&b, &done, 1);
    assert_ptr_equal(done, &op[0]);

    for (i = 0; i < 20; i++) {
        assert_int_equal(get(&b, 1), DSA_TIER_MISS);
        assert_int_equal(probe(&b, 1, 2), 2);
    }

    dsa_redis_stats(b.cache, &stats);
    sets = stats.sets;
    assert_int_equal(sets, 1);
    assert_int_equal(dsa_redis_writes(b.cache), 2);

    box_close(&b);
    fake_stop();
    free(page);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_freeze_and_drip),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_priority),
        cmocka_unit_test(test_queue_bound),
        cmocka_unit_test(test_bucket),
        cmocka_unit_test(test_bandwidth)
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
