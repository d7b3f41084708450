
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <pthread.h>
#include <stdatomic.h>

#include "t/unit/redis.h"


/*
 * Random operations of one thread on three servers, while another thread
 * freezes, kills, restarts, fills and damages them.  Whatever happens, each
 * operation ends once, and a page that was read is the page that was written.
 */

#define SERVERS     3
#define PAGES       40
#define OPS         256
#define ROUNDS      8000
#define CHAIN       12


typedef struct {
    dsa_tier_op_t   op;
    uint32_t        n;                  /* page */
    uint8_t        *page;
    int             queued;
} op_state_t;


static redis_t        redis[SERVERS];
static op_state_t     running[OPS];
static dsa_digest_t   digest[PAGES + CHAIN];
static atomic_int     stop;


static uint32_t
dice(uint64_t *seed, uint32_t n)
{
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;

    return (uint32_t) (*seed >> 33) % n;
}


/* Like the cache's threads, this one may not fail a test. */

static void
command(redis_t *r, const char *format, const char *key)
{
    void            *reply;
    redisContext    *client;
    struct timeval   tv = { 0, 100000 };

    client = redisConnectUnixWithTimeout(r->path, tv);

    if (client != NULL && client->err == 0) {
        (void) redisSetTimeout(client, tv);
        reply = redisCommand(client, format, key);

        if (reply != NULL) {
            freeReplyObject(reply);
        }
    }

    redisFree(client);
}


static void *
faults(void *data)
{
    char       key[DSA_KV_KEY + 1];
    redis_t   *r;
    uint64_t   seed;

    for (seed = 11; !atomic_load(&stop); ) {
        r = &redis[dice(&seed, SERVERS)];
        dsa_kv_key(key, digest[dice(&seed, PAGES)].byte);

        switch (dice(&seed, 7)) {

        case 0:
            (void) kill(r->pid, SIGSTOP);
            (void) usleep(dice(&seed, 200000));
            (void) kill(r->pid, SIGCONT);
            break;

        case 1:
            command(r, "CLIENT KILL TYPE normal%s", "");
            break;

        case 2:
            command(r, "SETRANGE %s 5000 damaged", key);
            break;

        case 3:
            command(r, "SET %s short", key);
            break;

        case 4:
            command(r, "CONFIG SET maxmemory 1%s", "");
            (void) usleep(dice(&seed, 20000));
            command(r, "CONFIG SET maxmemory 0%s", "");
            break;

        case 5:
            command(r, "DEL %s", key);
            break;

        default:
            command(r, "CLIENT PAUSE 20%s", "");
        }

        (void) usleep(dice(&seed, 20000));
    }

    return NULL;
}


static void
check(op_state_t *s, uint32_t *count)
{
    uint8_t  *expected;

    assert_true(s->queued);
    s->queued = 0;

    assert_in_range(s->op.result, DSA_TIER_DONE, DSA_TIER_FAILED);
    count[s->op.kind * 8 + s->op.result]++;

    if (s->op.kind == DSA_TIER_PROBE) {
        assert_true(s->op.found <= s->op.n);
        return;
    }

    if (s->op.result == DSA_TIER_DONE) {
        expected = malloc(BYTES);
        assert_non_null(expected);
        page_of(s->n, expected, BYTES);
        assert_memory_equal(s->page, expected, BYTES);
        free(expected);
    }
}


static uint32_t
take(box_t *b, uint32_t *count)
{
    uint32_t        n;
    dsa_tier_op_t  *op, *next;

    for (op = dsa_redis_collect(b->cache), n = 0; op != NULL; op = next) {
        next = op->next;
        check((op_state_t *) ((char *) op - offsetof(op_state_t, op)),
              count);
        n++;
    }

    return n;
}


static void
test_random(void **state)
{
    box_t              b;
    char              *address[SERVERS];
    op_state_t        *s;
    uint32_t           i, round, queued, count[32];
    uint64_t           seed, wake;
    pthread_t          thread;
    struct pollfd      p;
    dsa_tier_kind_e    kind;
    dsa_redis_conf_t   conf;
    dsa_redis_stats_t  stats;

    for (i = 0; i < SERVERS; i++) {
        address[i] = redis[i].address;
    }

    for (i = 0; i < PAGES + CHAIN; i++) {
        digest[i] = digest_of(i);
    }

    for (i = 0; i < OPS; i++) {
        running[i].page = malloc(BYTES);
        assert_non_null(running[i].page);
    }

    memset(count, 0, sizeof(count));
    box_conf(&b, &conf, address, SERVERS);
    conf.connections = 3;
    conf.timeout_ms = slow_ms(60);
    conf.max_bandwidth = 200000000;
    box_open(&b, &conf);
    wait_on(&b, SERVERS);
    assert_int_equal(pthread_create(&thread, NULL, faults, NULL), 0);

    for (round = 0, queued = 0, seed = 7; round < ROUNDS; ) {
        s = &running[dice(&seed, OPS)];

        if (!s->queued) {
            s->n = dice(&seed, PAGES);
            kind = DSA_TIER_PROBE + dice(&seed, 3);

            if (kind == DSA_TIER_WRITE) {
                page_of(s->n, s->page, BYTES);
            } else {
                memset(s->page, 0, BYTES);
            }

            set_op(&s->op, kind, &digest[s->n],
                   kind == DSA_TIER_PROBE ? 1 + dice(&seed, CHAIN) : 1,
                   s->page);
            s->op.owner = &running[dice(&seed, 4)];

            if (dsa_redis_submit(b.cache, &s->op) == DSA_OK) {
                s->queued = 1;
                queued++;
                round++;
            }
        }

        if (dice(&seed, 50) == 0) {
            dsa_redis_cancel(b.cache, &running[dice(&seed, 4)]);
        }

        if (dice(&seed, 20) == 0) {
            dsa_redis_stats(b.cache, &stats);
            (void) dsa_redis_writes(b.cache);
            (void) dsa_redis_on(b.cache);
        }

        if (queued > OPS / 4 || dice(&seed, 4) == 0) {
            p.fd = b.fd;
            p.events = POLLIN;

            if (poll(&p, 1, queued != 0 ? (int) slow_ms(30000) : 1) == 1) {
                assert_int_equal(read(b.fd, &wake, sizeof(wake)), 8);
                queued -= take(&b, count);

            } else {
                assert_int_equal(queued, 0);
            }
        }
    }

    while (queued != 0) {
        p.fd = b.fd;
        p.events = POLLIN;
        assert_int_equal(poll(&p, 1, (int) slow_ms(30000)), 1);
        assert_int_equal(read(b.fd, &wake, sizeof(wake)), 8);
        queued -= take(&b, count);
    }

    assert_int_equal(dsa_redis_writes(b.cache), 0);

    /* every kind of end occurred */

    assert_true(count[DSA_TIER_READ * 8 + DSA_TIER_DONE] > 50);
    assert_true(count[DSA_TIER_READ * 8 + DSA_TIER_MISS] > 0);
    assert_true(count[DSA_TIER_READ * 8 + DSA_TIER_INVALID] > 0);
    assert_true(count[DSA_TIER_READ * 8 + DSA_TIER_FAILED] > 0);
    assert_true(count[DSA_TIER_WRITE * 8 + DSA_TIER_DONE] > 50);
    assert_true(count[DSA_TIER_PROBE * 8 + DSA_TIER_DONE] > 50);

    /* it ends while faults and operations go on */

    for (i = 0; i < OPS; i++) {
        set_op(&running[i].op, DSA_TIER_PROBE + i % 2, &digest[i % PAGES], 1,
               running[i].page);
        (void) dsa_redis_submit(b.cache, &running[i].op);
    }

    box_close(&b);
    atomic_store(&stop, 1);
    (void) pthread_join(thread, NULL);

    for (i = 0; i < OPS; i++) {
        free(running[i].page);
    }
}


static int
setup(void **state)
{
    char      name[8];
    uint32_t  i;

    make_dir();
    log_begin();

    for (i = 0; i < SERVERS; i++) {
        (void) snprintf(name, sizeof(name), "r%u", i);
        redis_start(&redis[i], name, "--port 0");
    }

    return 0;
}


static int
teardown(void **state)
{
    uint32_t  i;

    for (i = 0; i < SERVERS; i++) {
        redis_stop(&redis[i]);
    }

    log_end();
    remove_dir();

    return 0;
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_random)
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
