
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "t/unit/redis.h"


/*
 * The cache of pages with real redis-servers: pages come back bit by bit or not
 * at all, a server that fails costs a timeout, and the others stay on.
 */


static redis_t  redis[REDIS_MOST];


static int
setup(void **state)
{
    make_dir();
    log_begin();
    redis_start(&redis[0], "r0", "--port 0");

    return 0;
}


static int
teardown(void **state)
{
    uint32_t  i;

    for (i = 0; i < REDIS_MOST; i++) {
        redis_stop(&redis[i]);
    }

    log_end();
    remove_dir();

    return 0;
}


static void
test_round_trip(void **state)
{
    int                 ttl;
    box_t               b;
    uint32_t            i;
    redisReply         *reply;
    dsa_redis_stats_t   stats;

    box_simple(&b, &redis[0]);

    assert_int_equal(get(&b, 0), DSA_TIER_MISS);
    assert_int_equal(probe(&b, 0, 3), 0);

    for (i = 0; i < 20; i++) {
        assert_int_equal(put(&b, i), DSA_TIER_DONE);
    }

    for (i = 0; i < 20; i++) {
        assert_int_equal(get(&b, i), DSA_TIER_DONE);
    }

    assert_int_equal(probe(&b, 0, 20), 20);
    assert_int_equal(probe(&b, 0, 21), 20);
    assert_int_equal(probe(&b, 5, 10), 10);
    assert_int_equal(probe(&b, 20, 1), 0);

    /* the value in Redis, read by another client */

    assert_int_equal(number(&redis[0], "STRLEN %s", key_of(3)),
                     DSA_KV_HEADER + BYTES);
    ttl = (int) number(&redis[0], "TTL %s", key_of(3));
    assert_true(ttl > 900 && ttl <= 1000);

    reply = query(&redis[0], "GETRANGE %s 0 7", key_of(3));
    assert_string_equal(reply->str, "dsa-kv-1");
    freeReplyObject(reply);

    assert_int_equal(number(&redis[0], "DEL %s", key_of(7)), 1);
    assert_int_equal(probe(&b, 0, 20), 7);

    dsa_redis_stats(b.cache, &stats);
    assert_int_equal(stats.gets, 20);
    assert_int_equal(stats.sets, 20);
    assert_int_equal(stats.misses, 1);
    assert_int_equal(stats.probes, 6);
    assert_int_equal(stats.get_bytes, 20 * BYTES);
    assert_int_equal(stats.set_bytes, 20 * BYTES);
    assert_int_equal(stats.invalid + stats.failed, 0);
    assert_int_equal(stats.servers, 1);
    assert_int_equal(dsa_redis_writes(b.cache), 0);

    box_close(&b);
}


/* Several chunks of EXISTS, and a page of the size of DeepSeek-V3.2. */

static void
test_large(void **state)
{
    box_t              b;
    char              *address;
    uint32_t           i, n;
    redisReply        *reply;
    dsa_redis_conf_t   conf;

    address = redis[0].address;
    box_conf(&b, &conf, &address, 1);
    conf.page_bytes = 3080192;
    box_open(&b, &conf);
    wait_on(&b, 1);

    assert_int_equal(put(&b, 1), DSA_TIER_DONE);
    assert_int_equal(get(&b, 1), DSA_TIER_DONE);

    n = 2000;

    for (i = 0; i < n; i++) {
        reply = query(&redis[0], "SET %s x", key_of(1000 + i));
        freeReplyObject(reply);
    }

    assert_int_equal(probe(&b, 1000, n), n);
    assert_int_equal(probe(&b, 1000, n + 5), n);
    assert_int_equal(number(&redis[0], "DEL %s", key_of(1000 + 512)), 1);
    assert_int_equal(probe(&b, 1000, n), 512);
    assert_int_equal(number(&redis[0], "DEL %s", key_of(1000 + 511)), 1);
    assert_int_equal(probe(&b, 1000, n), 511);

    box_close(&b);
}


static void
check_invalid(box_t *b, uint32_t n, const char *what)
{
    dsa_redis_stats_t  stats;

    dsa_redis_stats(b->cache, &stats);

    if (get(b, n) != DSA_TIER_INVALID) {
        fail_msg("%s: not INVALID", what);
    }

    assert_int_equal(number(&redis[0], "EXISTS %s", key_of(n)), 0);
    assert_int_equal(get(b, n), DSA_TIER_MISS);
    assert_true(dsa_redis_on(b->cache));

    stats.invalid++;
    stats.misses++;
    dsa_redis_stats_t  now;
    dsa_redis_stats(b->cache, &now);
    assert_memory_equal(&now, &stats, sizeof(stats));
}


static void
test_damage(void **state)
{
    box_t        b;
    char         byte, what[32];
    uint32_t     i;
    redisReply  *reply;

    static const uint32_t  at[] = {
        0, 7, 8, 15, 16, 20, 24, 55, 56, 87, 88, 103, 104, 127, 128, 129,
        DSA_KV_HEADER + BYTES / 2, DSA_KV_HEADER + BYTES - 1
    };

    box_simple(&b, &redis[0]);

    for (i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        assert_int_equal(put(&b, 30), DSA_TIER_DONE);

        reply = query(&redis[0], "GETRANGE %s %u %u", key_of(30), at[i],
                      at[i]);
        assert_int_equal(reply->len, 1);
        byte = reply->str[0] ^ 1;
        freeReplyObject(reply);

        (void) number(&redis[0], "SETRANGE %s %u %b", key_of(30), at[i], &byte,
                      (size_t) 1);

        (void) snprintf(what, sizeof(what), "byte %u", at[i]);
        check_invalid(&b, 30, what);
    }

    box_close(&b);
}


static void
test_foreign(void **state)
{
    char              *address, key[DSA_KV_KEY + 1];
    box_t              b, other;
    dsa_redis_conf_t   conf;

    box_simple(&b, &redis[0]);

    assert_int_equal(put(&b, 31), DSA_TIER_DONE);
    (void) number(&redis[0], "APPEND %s x", key_of(31));
    check_invalid(&b, 31, "one byte more");

    ok(&redis[0], "SET %s x", key_of(31));
    check_invalid(&b, 31, "one byte");

    ok(&redis[0], "SET %s %s", key_of(31), "");
    check_invalid(&b, 31, "no byte");

    (void) number(&redis[0], "SETRANGE %s %u x", key_of(31),
                  DSA_KV_HEADER + BYTES - 2);
    check_invalid(&b, 31, "one byte less");

    (void) number(&redis[0], "SETRANGE %s %u x", key_of(31), 64 << 20);
    check_invalid(&b, 31, "64 MB");

    (void) number(&redis[0], "RPUSH %s x", key_of(31));
    check_invalid(&b, 31, "a list");

    assert_int_equal(put(&b, 31), DSA_TIER_DONE);
    (void) strcpy(key, key_of(31));
    ok(&redis[0], "RENAME %s %s", key, key_of(32));
    check_invalid(&b, 32, "another digest");

    address = redis[0].address;
    box_conf(&other, &conf, &address, 1);
    conf.fingerprint = "ffffffffffffffffffffffffffffffff";
    box_open(&other, &conf);
    wait_on(&other, 1);
    assert_int_equal(put(&other, 31), DSA_TIER_DONE);
    assert_int_equal(get(&other, 31), DSA_TIER_DONE);
    check_invalid(&b, 31, "another fingerprint");

    box_close(&other);
    box_close(&b);
}


/*
 * A SET until it is executed: after a refused one the cache sends none for a
 * second.
 */

static void
put_at_last(box_t *b, uint32_t n)
{
    uint64_t  until;

    for (until = deadline(); put(b, n) != DSA_TIER_DONE; ) {
        assert_true(dsa_clock_ms() < until);
        (void) usleep(1000);
    }
}


static void
test_refused_writes(void **state)
{
    char        *line;
    box_t        b;
    redisReply  *reply;

    redis_start(&redis[1], "r1", "--port 0");
    box_simple(&b, &redis[1]);
    assert_int_equal(put(&b, 1), DSA_TIER_DONE);

    ok(&redis[1], "CONFIG SET maxmemory-policy noeviction maxmemory 1");
    assert_int_equal(put(&b, 2), DSA_TIER_FAILED);
    assert_int_equal(put(&b, 3), DSA_TIER_FAILED);
    assert_int_equal(get(&b, 1), DSA_TIER_DONE);
    assert_int_equal(get(&b, 2), DSA_TIER_MISS);
    assert_true(dsa_redis_on(b.cache));

    /* only the first of the two was sent */

    reply = query(&redis[1], "INFO commandstats");
    line = strstr(reply->str, "cmdstat_set:");
    assert_non_null(line);
    line[strcspn(line, "\r")] = '\0';
    assert_non_null(strstr(line, "rejected_calls=1,"));
    freeReplyObject(reply);

    ok(&redis[1], "CONFIG SET maxmemory 0");
    put_at_last(&b, 2);
    assert_int_equal(get(&b, 2), DSA_TIER_DONE);
    wait_logged("accepts SET again");
    assert_int_equal(logged("refuses SET: OOM"), 1);

    /* a replica without its master serves the pages that it holds */

    ok(&redis[1], "REPLICAOF 127.0.0.1 1");
    assert_int_equal(put(&b, 3), DSA_TIER_FAILED);
    assert_int_equal(get(&b, 2), DSA_TIER_DONE);
    assert_int_equal(probe(&b, 1, 3), 2);
    wait_logged("refuses SET: READONLY");

    /* an operation that is refused to one user only */

    ok(&redis[1], "REPLICAOF NO ONE");
    put_at_last(&b, 3);
    ok(&redis[1], "ACL SETUSER default -exists");
    assert_int_equal(probe(&b, 1, 3), -2);
    assert_int_equal(probe(&b, 1, 3), -2);
    assert_int_equal(get(&b, 2), DSA_TIER_DONE);
    wait_logged("refuses EXISTS: NOPERM");
    assert_int_equal(logged("refuses EXISTS: NOPERM"), 1);

    box_close(&b);
    redis_stop(&redis[1]);
}


static void
test_auth(void **state)
{
    char              *address;
    box_t              b;
    dsa_redis_conf_t   conf;

    redis_start(&redis[1], "r1", "--port 0 --requirepass secret");
    ok(&redis[1], "AUTH secret");
    ok(&redis[1], "ACL SETUSER kv on >other ~dsa1:kv:* +@all");

    address = redis[1].address;
    box_conf(&b, &conf, &address, 1);

    conf.password = "wrong";
    box_open(&b, &conf);
    wait_logged("is off: the reply to AUTH is WRONGPASS");
    assert_false(dsa_redis_on(b.cache));
    assert_int_equal(get(&b, 1), 0);
    box_close(&b);

    conf.password = NULL;
    box_open(&b, &conf);
    wait_logged("is off: the reply to PING is NOAUTH");
    assert_false(dsa_redis_on(b.cache));
    box_close(&b);

    conf.password = "secret";
    box_open(&b, &conf);
    wait_on(&b, 1);
    assert_int_equal(put(&b, 1), DSA_TIER_DONE);
    box_close(&b);

    conf.user = "kv";
    conf.password = "other";
    box_open(&b, &conf);
    wait_on(&b, 1);
    assert_int_equal(get(&b, 1), DSA_TIER_DONE);

    /* the password is not in the log */

    assert_int_equal(logged("secret") + logged("other") + logged("wrong"), 0);

    box_close(&b);
    redis_stop(&redis[1]);
}


static void
test_restart(void **state)
{
    int       rc;
    box_t     b;
    uint32_t  i;
    uint64_t  until;

    redis_start(&redis[1], "r1", "--port 0");
    box_simple(&b, &redis[1]);
    assert_int_equal(put(&b, 1), DSA_TIER_DONE);

    /* a server that closes idle connections is no failure */

    for (i = 0; i < 5; i++) {
        (void) number(&redis[1], "CLIENT KILL TYPE normal SKIPME yes");
        assert_int_equal(get(&b, 1), DSA_TIER_DONE);
        assert_int_equal(probe(&b, 1, 1), 1);
    }

    redis_stop(&redis[1]);
    until = deadline();

    while ((rc = get(&b, 1)) != 0) {
        assert_int_equal(rc, DSA_TIER_FAILED);
        assert_true(dsa_clock_ms() < until);
    }

    assert_int_equal(probe(&b, 1, 1), -1);
    assert_int_equal(put(&b, 1), 0);
    assert_false(dsa_redis_on(b.cache));

    redis_start(&redis[1], "r1", "--port 0");
    wait_on(&b, 1);
    assert_int_equal(get(&b, 1), DSA_TIER_MISS);
    assert_int_equal(put(&b, 1), DSA_TIER_DONE);
    assert_int_equal(get(&b, 1), DSA_TIER_DONE);

    box_close(&b);
    redis_stop(&redis[1]);
}


/*
 * A frozen server: everything that waits for it ends after one timeout.  The
 * bounds are far from the times that are expected and from those of a failure,
 * because a busy machine delays both the test and the cache.
 */

#define FROZEN_MS  6000                 /* the timeout */

static void
test_frozen(void **state)
{
    box_t             b;
    char             *address;
    uint32_t          i;
    uint64_t          begin, took;
    uint8_t          *page;
    dsa_digest_t      digest[50];
    struct pollfd     p;
    dsa_tier_op_t     op[50], *done[50];
    dsa_redis_conf_t  conf;

    redis_start(&redis[1], "r1", "--port 0");

    address = redis[1].address;
    box_conf(&b, &conf, &address, 1);
    conf.timeout_ms = slow_ms(FROZEN_MS);
    box_open(&b, &conf);
    wait_on(&b, 1);
    assert_int_equal(put(&b, 1), DSA_TIER_DONE);

    page = calloc(50, BYTES);
    assert_non_null(page);
    assert_int_equal(kill(redis[1].pid, SIGSTOP), 0);

    for (i = 0; i < 50; i++) {
        digest[i] = digest_of(i);
        set_op(&op[i], i % 5 == 4 ? DSA_TIER_WRITE
                       : i % 5 == 3 ? DSA_TIER_PROBE : DSA_TIER_READ,
               &digest[i], 1, page + i * BYTES);
    }

    begin = dsa_clock_ms();

    for (i = 0; i < 50; i++) {
        assert_int_equal(dsa_redis_submit(b.cache, &op[i]), DSA_OK);
    }

    assert_int_equal(dsa_redis_writes(b.cache), 10);
    collect(&b, done, 50);
    took = dsa_clock_ms() - begin;

    for (i = 0; i < 50; i++) {
        assert_int_equal(op[i].result, DSA_TIER_FAILED);
    }

    /* 49 one after another would need 24 timeouts */

    assert_true(took >= slow_ms(FROZEN_MS));
    assert_true(took < slow_ms(FROZEN_MS) * 8);
    assert_int_equal(dsa_redis_writes(b.cache), 0);
    assert_int_equal(get(&b, 1), 0);
    wait_logged("is off: timed out: not a byte");

    assert_int_equal(kill(redis[1].pid, SIGCONT), 0);
    wait_on(&b, 1);
    assert_int_equal(get(&b, 1), DSA_TIER_DONE);

    /* an operation that begins later ends before a timeout of its own */

    assert_int_equal(kill(redis[1].pid, SIGSTOP), 0);
    assert_int_equal(dsa_redis_submit(b.cache, &op[0]), DSA_OK);
    p.fd = b.fd;
    p.events = POLLIN;
    assert_int_equal(poll(&p, 1, (int) slow_ms(FROZEN_MS / 2)), 0);
    assert_int_equal(dsa_redis_submit(b.cache, &op[1]), DSA_OK);
    collect(&b, done, 2);
    assert_true(op[1].begin_us != 0);
    assert_true(op[1].end_us - op[1].begin_us < slow_ms(FROZEN_MS) * 1000);
    assert_int_equal(kill(redis[1].pid, SIGCONT), 0);
    wait_on(&b, 1);

    /* while it is frozen, the cache ends promptly */

    assert_int_equal(kill(redis[1].pid, SIGSTOP), 0);
    assert_int_equal(dsa_redis_submit(b.cache, &op[0]), DSA_OK);
    begin = dsa_clock_ms();
    box_close(&b);
    assert_true(dsa_clock_ms() - begin < slow_ms(FROZEN_MS) * 3 / 4);

    redis_stop(&redis[1]);
    free(page);
}


/* Writes that take long leave a connection to reads. */

static void
test_slow_writes(void **state)
{
    box_t             b;
    char             *address;
    uint8_t          *page;
    uint32_t          i;
    dsa_digest_t      digest[5];
    dsa_tier_op_t     op[5], *done[5];
    dsa_redis_conf_t  conf;

    address = redis[0].address;
    box_conf(&b, &conf, &address, 1);
    conf.connections = 3;
    box_open(&b, &conf);
    wait_on(&b, 1);
    assert_int_equal(put(&b, 1), DSA_TIER_DONE);

    page = calloc(5, BYTES);
    assert_non_null(page);
    ok(&redis[0], "CLIENT PAUSE 100000 WRITE");

    for (i = 0; i < 5; i++) {
        digest[i] = digest_of(50 + i);
        set_op(&op[i], DSA_TIER_WRITE, &digest[i], 1, page + i * BYTES);
        assert_int_equal(dsa_redis_submit(b.cache, &op[i]), DSA_OK);
    }

    for (i = 0; i < 10; i++) {
        assert_int_equal(get(&b, 1), DSA_TIER_DONE);
        assert_int_equal(probe(&b, 1, 1), 1);
    }

    assert_int_equal(dsa_redis_writes(b.cache), 5);
    ok(&redis[0], "CLIENT UNPAUSE");
    collect(&b, done, 5);

    for (i = 0; i < 5; i++) {
        assert_int_equal(op[i].result, DSA_TIER_DONE);
    }

    box_close(&b);
    free(page);
}


/* Pages of several servers, of which one stops and one is added. */

static void
test_servers(void **state)
{
    int                 rc;
    box_t               b;
    char                name[8], *address[4];
    uint32_t            i, s, on[60], count[4], first;
    uint64_t            until;
    dsa_redis_conf_t    conf;
    dsa_redis_stats_t   stats;

    for (i = 0; i < 4; i++) {
        (void) snprintf(name, sizeof(name), "s%u", i);
        redis_start(&redis[1 + i], name, "--port 0");
        address[i] = redis[1 + i].address;
        count[i] = 0;
    }

    box_conf(&b, &conf, address, 3);
    box_open(&b, &conf);
    wait_on(&b, 3);

    for (i = 0; i < 60; i++) {
        assert_int_equal(put(&b, i), DSA_TIER_DONE);

        for (s = 0, on[i] = 4; s < 3; s++) {
            if (number(&redis[1 + s], "EXISTS %s", key_of(i)) == 1) {
                assert_int_equal(on[i], 4);
                on[i] = s;
            }
        }

        assert_true(on[i] < 3);
        count[on[i]]++;
    }

    assert_true(count[0] > 8 && count[1] > 8 && count[2] > 8);
    assert_int_equal(probe(&b, 0, 60), 60);
    assert_int_equal(probe(&b, 0, 61), 60);

    /* each page is decisive, whichever server it is on */

    for (i = 0; i < 60; i++) {
        (void) number(&redis[1 + on[i]], "UNLINK %s", key_of(i));
        assert_int_equal(probe(&b, 0, 60), i);
        assert_int_equal(put(&b, i), DSA_TIER_DONE);
    }

    /* of two on different servers, the first one is */

    for (i = 0; i < 50; i++) {
        for (s = i + 1; on[s] == on[i]; s++) { /* void */ }

        (void) number(&redis[1 + on[i]], "UNLINK %s", key_of(i));
        (void) number(&redis[1 + on[s]], "UNLINK %s", key_of(s));
        assert_int_equal(probe(&b, 0, 60), i);
        assert_int_equal(put(&b, i), DSA_TIER_DONE);
        assert_int_equal(put(&b, s), DSA_TIER_DONE);
    }

    /* server 1 stops */

    redis_stop(&redis[2]);

    for (first = 0; on[first] != 1; first++) { /* void */ }

    until = deadline();

    while ((rc = get(&b, first)) != 0) {
        assert_int_equal(rc, DSA_TIER_FAILED);
        assert_true(dsa_clock_ms() < until);
    }

    for (i = 0; i < 60; i++) {
        assert_int_equal(get(&b, i), on[i] == 1 ? 0 : DSA_TIER_DONE);
    }

    assert_int_equal(probe(&b, 0, 60), first == 0 ? -1 : (int) first);
    assert_true(dsa_redis_on(b.cache));
    dsa_redis_stats(b.cache, &stats);
    assert_int_equal(stats.servers, 3);
    assert_int_equal(stats.servers_on, 2);
    box_close(&b);

    /* in another order and with one more, pages stay where they are */

    redis_start(&redis[2], "s1", "--port 0");
    address[0] = redis[4].address;
    address[3] = redis[1].address;
    box_conf(&b, &conf, address, 4);
    box_open(&b, &conf);
    wait_on(&b, 4);

    for (i = 0, s = 0; i < 60; i++) {
        s += on[i] != 1 && get(&b, i) == DSA_TIER_DONE;
    }

    /* a quarter of 40 is expected on the new one */

    s = 60 - count[1] - s;
    assert_true(s >= 2 && s <= 25);

    box_close(&b);

    for (i = 1; i < 5; i++) {
        redis_stop(&redis[i]);
    }
}


static void
test_addresses(void **state)
{
    box_t              b;
    char              *address[2];
    uint32_t           i;
    dsa_err_t          err;
    dsa_redis_conf_t   conf;

    static const char  *wrong[] = {
        "", ":", "host", "host:", ":6379", "host:0", "host:65536", "host:x",
        "host:6379x", "::1:6379", "[]:6379", "unix:", "ho st:6379",
        "unix:0123456789012345678901234567890123456789012345678901234567890123"
        "4567890123456789012345678901234567890123456789"
    };

    for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        address[0] = (char *) wrong[i];
        box_conf(&b, &conf, address, 1);
        err.text[0] = '\0';
        assert_null(dsa_redis_open(&conf, &err));
        assert_int_not_equal(err.text[0], '\0');
    }

    address[0] = "127.0.0.1:1";
    address[1] = "127.0.0.1:1";
    box_conf(&b, &conf, address, 2);
    assert_null(dsa_redis_open(&conf, &err));
    assert_non_null(strstr(err.text, "occurs twice"));

    /* a server that cannot be reached is not an error */

    address[1] = "[::1]:1";
    box_open(&b, &conf);
    wait_logged("Redis 127.0.0.1:1 is off: ");
    wait_logged("Redis [::1]:1 is off: ");
    assert_false(dsa_redis_on(b.cache));
    box_close(&b);

    dsa_redis_close(NULL);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_refused_writes),
        cmocka_unit_test(test_auth),
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_slow_writes),
        cmocka_unit_test(test_servers),
        cmocka_unit_test(test_addresses)
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
