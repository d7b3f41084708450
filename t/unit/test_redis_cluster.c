
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>

#include "t/unit/redis.h"
#include "engine/pages/redis_cluster.h"


/*
 * The cache with a Redis Cluster of three nodes: cluster slots, redirects and a
 * node that stops.  Also the functions that read the replies of a cluster.
 */

#define NODES  3


static redis_t  node[NODES];
static int      port[NODES];
static int      bus[NODES];             /* the port of the cluster bus */
static char     tcp[NODES][32];
static char     id[NODES][48];


/*
 * A TCP port for a server of the test.  It is below the ports of outgoing
 * connections, and the lock on its file, which is that of DSA::Test, keeps
 * other tests from using it until this process ends.
 */

static int
free_port(void)
{
    int                 fd, lock, n;
    char                path[64];
    unsigned            seed;
    struct sockaddr_in  sin;

    memset(&sin, 0, sizeof(sin));
    sin.sin_family = AF_INET;
    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    seed = (unsigned) getpid();

    for (n = 0; n < 2000; n++) {
        sin.sin_port = htons((uint16_t) (10240 + rand_r(&seed) % 20000));

        (void) snprintf(path, sizeof(path), "/tmp/.dsa-port-%u-%u",
                        (unsigned) geteuid(), ntohs(sin.sin_port));
        lock = open(path, O_WRONLY|O_CREAT|O_CLOEXEC, 0666);

        if (lock == -1) {
            continue;
        }

        if (flock(lock, LOCK_EX|LOCK_NB) == 0) {
            fd = socket(AF_INET, SOCK_STREAM, 0);
            assert_int_not_equal(fd, -1);

            if (bind(fd, (struct sockaddr *) &sin, sizeof(sin)) == 0) {
                (void) close(fd);
                return ntohs(sin.sin_port);
            }

            (void) close(fd);
        }

        (void) close(lock);
    }

    fail_msg("there is no free port");

    return 0;
}


/* Waits until all nodes have the same view of all cluster slots. */

static void
wait_cluster(void)
{
    int          ready;
    uint32_t     i;
    uint64_t     until;
    redisReply  *reply;

    until = deadline();

    do {
        assert_true(dsa_clock_ms() < until);
        (void) usleep(10000);

        for (i = 0, ready = 0; i < NODES; i++) {
            reply = query(&node[i], "CLUSTER INFO");
            ready += strstr(reply->str, "cluster_state:ok") != NULL;
            freeReplyObject(reply);

            reply = query(&node[i], "CLUSTER SLOTS");
            ready += reply->elements == NODES;
            freeReplyObject(reply);
        }
    } while (ready != 2 * NODES);
}


static void
start_node(uint32_t i)
{
    char  name[16], options[256];

    (void) snprintf(name, sizeof(name), "n%u", i);
    (void) snprintf(options, sizeof(options), "--bind 127.0.0.1 --port %d "
                    "--cluster-port %d --cluster-enabled yes "
                    "--cluster-config-file %s.conf "
                    "--cluster-node-timeout 60000 "
                    "--cluster-require-full-coverage no", port[i], bus[i],
                    name);

    redis_start(&node[i], name, options);
}


static int
setup(void **state)
{
    uint32_t     i;
    redisReply  *reply;

    make_dir();
    log_begin();

    for (i = 0; i < NODES; i++) {
        port[i] = free_port();
        bus[i] = free_port();
        start_node(i);
        (void) snprintf(tcp[i], sizeof(tcp[i]), "127.0.0.1:%d", port[i]);

        ok(&node[i], "CLUSTER ADDSLOTSRANGE %d %d", i * 16384 / NODES,
           (i + 1) * 16384 / NODES - 1);
        ok(&node[i], "CLUSTER SET-CONFIG-EPOCH %d", i + 1);

        reply = query(&node[i], "CLUSTER MYID");
        (void) snprintf(id[i], sizeof(id[i]), "%s", reply->str);
        freeReplyObject(reply);
    }

    for (i = 1; i < NODES; i++) {
        ok(&node[i], "CLUSTER MEET 127.0.0.1 %d %d", port[0], bus[0]);
    }

    wait_cluster();

    return 0;
}


static int
teardown(void **state)
{
    uint32_t  i;

    for (i = 0; i < NODES; i++) {
        redis_stop(&node[i]);
    }

    log_end();
    remove_dir();

    return 0;
}


/* The node that Redis itself has a page on, or NODES. */

static uint32_t
where(uint32_t n)
{
    uint32_t     i, found;
    redisReply  *reply;

    found = NODES;

    for (i = 0; i < NODES; i++) {
        reply = query(&node[i], "EXISTS %s", key_of(n));

        if (reply->type == REDIS_REPLY_INTEGER && reply->integer == 1) {
            assert_int_equal(found, NODES);
            found = i;
        }

        freeReplyObject(reply);
    }

    return found;
}


static uint32_t
cluster_slot_of(uint32_t n)
{
    const char  *key;

    key = key_of(n);

    return dsa_cluster_slot(key, strlen(key));
}


static uint32_t
node_of(uint32_t n)
{
    uint32_t  i;

    for (i = 0; cluster_slot_of(n) >= (i + 1) * 16384 / NODES; i++) {
        /* void */
    }

    return i;
}


static void
test_cluster_slot(void **state)
{
    uint32_t            i;

    static const char  *tagged[] = { "dsa1:{5f3c}:ledger:2026-02-03", "{a}b",
                                     "a{b}c{d}", "{}a", "a{", "}{a}", "a}b{",
                                     "{{a}}", "a{}{b}" };

    assert_int_equal(dsa_cluster_slot("", 0), 0);

    /* "123456789": the check value of CRC16 XMODEM, as in Redis' spec */

    assert_int_equal(dsa_cluster_slot("123456789", 9), 0x31c3);

    for (i = 0; i < sizeof(tagged) / sizeof(tagged[0]); i++) {
        assert_int_equal(dsa_cluster_slot(tagged[i], strlen(tagged[i])),
                         number(&node[0], "CLUSTER KEYSLOT %s", tagged[i]));
    }

    for (i = 0; i < 200; i++) {
        assert_int_equal(cluster_slot_of(i),
                         number(&node[0], "CLUSTER KEYSLOT %s",
                                key_of(i)));
    }
}


/* All nodes from one address. */

static void
test_cluster(void **state)
{
    box_t               b;
    char               *address;
    uint32_t            i;
    dsa_redis_conf_t    conf;
    dsa_redis_stats_t   stats;

    address = tcp[1];
    box_conf(&b, &conf, &address, 1);
    box_open(&b, &conf);
    wait_on(&b, NODES);

    for (i = 0; i < 60; i++) {
        assert_int_equal(put(&b, i), DSA_TIER_DONE);
        assert_int_equal(where(i), node_of(i));
    }

    for (i = 0; i < 60; i++) {
        assert_int_equal(get(&b, i), DSA_TIER_DONE);
    }

    assert_int_equal(probe(&b, 0, 61), 60);
    assert_int_equal(number(&node[node_of(33)], "UNLINK %s", key_of(33)), 1);
    assert_int_equal(probe(&b, 0, 61), 33);
    assert_int_equal(put(&b, 33), DSA_TIER_DONE);

    dsa_redis_stats(b.cache, &stats);
    assert_int_equal(stats.servers, NODES);
    assert_int_equal(stats.failed, 0);

    box_close(&b);
}


static void
move_cluster_slot(uint32_t cluster_slot, uint32_t to)
{
    uint32_t  i;

    /* first the node that gets it */

    ok(&node[to], "CLUSTER SETSLOT %u NODE %s", cluster_slot, id[to]);

    for (i = 0; i < NODES; i++) {
        if (i != to) {
            ok(&node[i], "CLUSTER SETSLOT %u NODE %s", cluster_slot, id[to]);
        }
    }
}


static void
test_moved(void **state)
{
    box_t              b;
    char              *address;
    uint32_t           i, from, to;
    dsa_redis_conf_t   conf;
    dsa_redis_stats_t  stats;

    address = node[0].address;
    box_conf(&b, &conf, &address, 1);
    box_open(&b, &conf);
    wait_on(&b, NODES);

    /* pages that are absent: a cluster slot with keys cannot be given away */

    for (i = 100; i < 103; i++) {
        from = node_of(i);
        to = (from + 1) % NODES;
        move_cluster_slot(cluster_slot_of(i), to);

        if (i == 100) {
            assert_int_equal(put(&b, i), DSA_TIER_DONE);
            assert_int_equal(where(i), to);
            assert_int_equal(get(&b, i), DSA_TIER_DONE);

        } else if (i == 101) {
            assert_int_equal(get(&b, i), DSA_TIER_MISS);

        } else {
            ok(&node[to], "SET %s x", key_of(i));
            assert_int_equal(probe(&b, i, 1), 1);
        }

        (void) number(&node[to], "UNLINK %s", key_of(i));
        move_cluster_slot(cluster_slot_of(i), from);
    }

    dsa_redis_stats(b.cache, &stats);
    assert_int_equal(stats.failed, 0);
    box_close(&b);
}


static void
test_ask(void **state)
{
    box_t              b;
    char              *address;
    uint32_t           from, to;
    dsa_redis_conf_t   conf;

    address = tcp[0];
    box_conf(&b, &conf, &address, 1);
    box_open(&b, &conf);
    wait_on(&b, NODES);

    assert_int_equal(where(200), NODES);
    from = node_of(200);
    to = (from + 1) % NODES;

    ok(&node[to], "CLUSTER SETSLOT %u IMPORTING %s", cluster_slot_of(200),
       id[from]);
    ok(&node[from], "CLUSTER SETSLOT %u MIGRATING %s", cluster_slot_of(200),
       id[to]);

    assert_int_equal(get(&b, 200), DSA_TIER_MISS);
    assert_int_equal(put(&b, 200), DSA_TIER_DONE);
    assert_int_equal(get(&b, 200), DSA_TIER_DONE);
    assert_int_equal(probe(&b, 200, 1), 0);

    /* the page is on the node that gets the cluster slot */

    assert_int_equal(number(&node[to], "CLUSTER COUNTKEYSINSLOT %u",
                            cluster_slot_of(200)), 1);

    move_cluster_slot(cluster_slot_of(200), to);
    assert_int_equal(get(&b, 200), DSA_TIER_DONE);
    assert_int_equal(probe(&b, 200, 1), 1);

    (void) number(&node[to], "UNLINK %s", key_of(200));
    move_cluster_slot(cluster_slot_of(200), from);

    box_close(&b);
}


static void
test_lost_node(void **state)
{
    int                rc;
    box_t              b;
    char              *address[2];
    uint32_t           i, lost;
    uint64_t           until;
    dsa_redis_conf_t   conf;

    address[0] = tcp[0];
    address[1] = tcp[1];
    box_conf(&b, &conf, address, 2);
    box_open(&b, &conf);
    wait_on(&b, NODES);

    for (lost = 0; node_of(lost) != 2; lost++) { /* void */ }

    redis_stop(&node[2]);
    until = deadline();

    while ((rc = get(&b, lost)) != 0) {
        assert_int_equal(rc, DSA_TIER_FAILED);
        assert_true(dsa_clock_ms() < until);
    }

    for (i = 0; i < 60; i++) {
        assert_int_equal(get(&b, i), node_of(i) == 2 ? 0 : DSA_TIER_DONE);
    }

    assert_int_equal(probe(&b, 0, 60), lost == 0 ? -1 : (int) lost);

    start_node(2);
    wait_on(&b, NODES);
    wait_cluster();
    put(&b, lost);
    assert_int_equal(get(&b, lost), DSA_TIER_DONE);

    box_close(&b);
}


static void
check_redirect(const char *text, const char *expected)
{
    int                   rc;
    dsa_err_t             err;
    dsa_redis_address_t   to, from;

    assert_int_equal(dsa_redis_address(&from, "seed:7000", &err), DSA_OK);
    rc = dsa_cluster_redirect(&to, text, &from, &err);

    if (expected == NULL) {
        assert_int_equal(rc, DSA_ERROR);
        return;
    }

    assert_int_equal(rc, DSA_OK);
    assert_string_equal(to.text, expected);
}


static void
test_redirect(void **state)
{
    check_redirect("MOVED 3999 127.0.0.1:6381", "127.0.0.1:6381");
    check_redirect("ASK 0 host.example:1", "host.example:1");
    check_redirect("ASK 16383 ::1:65535", "[::1]:65535");
    check_redirect("MOVED 1 :7001", "seed:7001");
    check_redirect("MOVED", NULL);
    check_redirect("MOVED 1", NULL);
    check_redirect("MOVED 1 ", NULL);
    check_redirect("MOVED 16384 a:1", NULL);
    check_redirect("MOVED -1 a:1", NULL);
    check_redirect("MOVED 1 a", NULL);
    check_redirect("MOVED 1 a:", NULL);
    check_redirect("MOVED 1 a:0", NULL);
    check_redirect("MOVED 1 a:65536", NULL);
    check_redirect("MOVED 1 a:1 b", NULL);
    check_redirect("MOVED 1 a b:1", NULL);
    check_redirect("MOVED x a:1", NULL);
}


/* A reply from its text, as hiredis reads it. */

static int
read_map(dsa_cluster_map_t *map, const char *text)
{
    int                   rc;
    void                 *reply;
    dsa_err_t             err;
    redisReader          *reader;
    dsa_redis_address_t   from;

    assert_int_equal(dsa_redis_address(&from, "seed:7000", &err), DSA_OK);

    reader = redisReaderCreate();
    assert_int_equal(redisReaderFeed(reader, text, strlen(text)), REDIS_OK);
    assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
    assert_non_null(reply);

    rc = dsa_cluster_map(map, reply, &from, &err);
    freeReplyObject(reply);
    redisReaderFree(reader);

    return rc;
}


static void
test_map(void **state)
{
    int                 at;
    char                text[8192];
    uint32_t            i;
    dsa_cluster_map_t   map;

    static const char  *wrong[] = {
        "+OK\r\n", "*1\r\n:1\r\n", "*1\r\n*2\r\n:0\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n:2\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*1\r\n$1\r\na\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\na\r\n:0\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n:1\r\n:1\r\n",
        "*1\r\n*3\r\n:2\r\n:1\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:-1\r\n:1\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\na\r\n:1\r\n"
    };

    assert_int_equal(read_map(&map, "*0\r\n"), DSA_OK);
    assert_int_equal(map.nodes, 0);
    assert_int_equal(map.cluster_slot[0], DSA_CLUSTER_NONE);

    /* replicas and ids after a master have no effect; a nil host is the
       sender */

    assert_int_equal(read_map(&map, "*3\r\n"
                     "*4\r\n:0\r\n:99\r\n"
                     "*3\r\n$1\r\na\r\n:1\r\n$1\r\nx\r\n"
                     "*3\r\n$1\r\nr\r\n:9\r\n$1\r\ny\r\n"
                     "*3\r\n:16383\r\n:16383\r\n*2\r\n$-1\r\n:7001\r\n"
                     "*3\r\n:200\r\n:200\r\n*2\r\n$1\r\na\r\n:1\r\n"), DSA_OK);

    assert_int_equal(map.nodes, 2);
    assert_string_equal(map.node[0].text, "a:1");
    assert_string_equal(map.node[1].text, "seed:7001");
    assert_int_equal(map.cluster_slot[0], 0);
    assert_int_equal(map.cluster_slot[99], 0);
    assert_int_equal(map.cluster_slot[200], 0);
    assert_int_equal(map.cluster_slot[100], DSA_CLUSTER_NONE);
    assert_int_equal(map.cluster_slot[16383], 1);

    for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(read_map(&map, wrong[i]), DSA_ERROR);
    }

    for (i = 64; i <= 65; i++) {
        at = sprintf(text, "*%u\r\n", i);

        for (uint32_t k = 0; k < i; k++) {
            at += sprintf(text + at, "*3\r\n:%u\r\n:%u\r\n*2\r\n$1\r\na\r\n"
                          ":%u\r\n", k, k, k + 1);
        }

        assert_int_equal(read_map(&map, text), i == 64 ? DSA_OK : DSA_ERROR);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_cluster_slot),
        cmocka_unit_test(test_cluster),
        cmocka_unit_test(test_moved),
        cmocka_unit_test(test_ask),
        cmocka_unit_test(test_lost_node),
        cmocka_unit_test(test_redirect),
        cmocka_unit_test(test_map)
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
