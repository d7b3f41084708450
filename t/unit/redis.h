
/*
 * Copyright (C) The nginx-dsa authors
 *
 * What the tests of the cache share: pages with known bytes, and a cache whose
 * results are waited for.
 */


#ifndef _T_REDIS_H_INCLUDED_
#define _T_REDIS_H_INCLUDED_


#include <poll.h>
#include <sys/eventfd.h>

#include "base/wake.h"
#include "engine/pages/redis.h"
#include "redis_schema/kv.h"
#include "t/unit/redis_server.h"


#define BYTES       100003              /* of a page in most tests */
#define REDIS_MOST  8

static const char  fingerprint[] = "0123456789abcdef0123456789abcdef";


typedef struct {
    dsa_redis_t    *cache;
    int             fd;                 /* the wake fd */
    uint64_t        bytes;
} box_t;


static inline void
wake_up(void *data)
{
    dsa_wake(((box_t *) data)->fd);
}


static inline void
box_conf(box_t *b, dsa_redis_conf_t *conf, char **address, uint32_t n)
{
    memset(conf, 0, sizeof(dsa_redis_conf_t));

    conf->address = address;
    conf->n_addresses = n;
    conf->connections = 2;
    conf->ttl_s = 1000;
    conf->timeout_ms = slow_ms(5000);
    conf->page_bytes = BYTES;
    conf->fingerprint = fingerprint;
    conf->wake = wake_up;
    conf->wake_data = b;
}


static inline void
box_open(box_t *b, const dsa_redis_conf_t *conf)
{
    dsa_err_t  err;

    b->bytes = conf->page_bytes;
    b->fd = eventfd(0, 0);
    assert_int_not_equal(b->fd, -1);

    b->cache = dsa_redis_open(conf, &err);

    if (b->cache == NULL) {
        fail_msg("%s", err.text);
    }
}


static inline void
box_close(box_t *b)
{
    dsa_redis_close(b->cache);
    (void) close(b->fd);
}


/* Waits until so many servers are on. */

static inline void
wait_on(box_t *b, uint32_t servers)
{
    uint64_t            until;
    dsa_redis_stats_t   stats;

    until = deadline();

    for ( ;; ) {
        dsa_redis_stats(b->cache, &stats);

        if (stats.servers_on == servers) {
            return;
        }

        if (dsa_clock_ms() > until) {
            fail_msg("%u servers are on", stats.servers_on);
        }

        (void) usleep(1000);
    }
}


/* A cache of one server, which is on. */

static inline void
box_simple(box_t *b, redis_t *r)
{
    char              *address;
    dsa_redis_conf_t   conf;

    address = r->address;
    box_conf(b, &conf, &address, 1);
    box_open(b, &conf);
    wait_on(b, 1);
}


/* Waits until n operations have ended; they are in the order of their ends. */

static inline void
collect(box_t *b, dsa_tier_op_t **done, uint32_t n)
{
    uint32_t        i;
    uint64_t        count;
    dsa_tier_op_t  *op;
    struct pollfd   p;

    for (i = 0; i < n; ) {
        p.fd = b->fd;
        p.events = POLLIN;

        if (poll(&p, 1, (int) slow_ms(30000)) != 1) {
            fail_msg("%u of %u operations have ended", i, n);
        }

        assert_int_equal(read(b->fd, &count, sizeof(count)), sizeof(count));

        for (op = dsa_redis_collect(b->cache); op != NULL; op = op->next) {
            assert_true(i < n);
            done[i++] = op;
        }
    }
}


static inline void
set_op(dsa_tier_op_t *op, dsa_tier_kind_e kind, const dsa_digest_t *digest,
    uint32_t n, uint8_t *page)
{
    memset(op, 0, sizeof(dsa_tier_op_t));
    op->kind = kind;
    op->digest = digest;
    op->n = n;
    op->page = page;
}


/* Executes one operation; 0 if it was rejected, otherwise its result. */

static inline int
execute(box_t *b, dsa_tier_op_t *op)
{
    dsa_tier_op_t  *done;

    if (dsa_redis_submit(b->cache, op) != DSA_OK) {
        return 0;
    }

    collect(b, &done, 1);
    assert_ptr_equal(done, op);
    assert_true(op->end_us >= op->begin_us && op->end_us >= op->queued_us);

    return (int) op->result;
}


/* The digest and the bytes of page n. */

static inline dsa_digest_t
digest_of(uint32_t n)
{
    uint32_t      i;
    dsa_digest_t  d;

    for (i = 0; i < DSA_DIGEST; i++) {
        d.byte[i] = (uint8_t) ((n + 1) * 2654435761u >> (i % 4 * 8)) ^ i;
    }

    return d;
}


static inline void
page_of(uint32_t n, uint8_t *page, uint64_t bytes)
{
    uint64_t  i, x;

    x = n + 1;

    for (i = 0; i < bytes; i++) {
        x = x * 6364136223846793005ULL + 1442695040888963407ULL;
        page[i] = (uint8_t) (x >> 56);
    }
}


static inline int
put(box_t *b, uint32_t n)
{
    int            rc;
    uint8_t       *page;
    dsa_digest_t   digest;
    dsa_tier_op_t  op;

    page = malloc(b->bytes);
    assert_non_null(page);
    page_of(n, page, b->bytes);
    digest = digest_of(n);

    set_op(&op, DSA_TIER_WRITE, &digest, 1, page);
    rc = execute(b, &op);
    free(page);

    return rc;
}


/* Reads page n; if the result is DONE, its bytes are compared. */

static inline int
get(box_t *b, uint32_t n)
{
    int            rc;
    uint8_t       *page, *expected;
    dsa_digest_t   digest;
    dsa_tier_op_t  op;

    page = calloc(1, b->bytes);
    expected = malloc(b->bytes);
    assert_true(page != NULL && expected != NULL);
    page_of(n, expected, b->bytes);
    digest = digest_of(n);

    set_op(&op, DSA_TIER_READ, &digest, 1, page);
    rc = execute(b, &op);

    if (rc == DSA_TIER_DONE) {
        assert_memory_equal(page, expected, b->bytes);
    }

    free(page);
    free(expected);

    return rc;
}


/* How many of first, first + 1, .. are found; -1: rejected, -2: failed. */

static inline int
probe(box_t *b, uint32_t first, uint32_t n)
{
    int            rc;
    uint32_t       i;
    dsa_digest_t  *digest;
    dsa_tier_op_t  op;

    digest = malloc(n * sizeof(dsa_digest_t));
    assert_non_null(digest);

    for (i = 0; i < n; i++) {
        digest[i] = digest_of(first + i);
    }

    set_op(&op, DSA_TIER_PROBE, digest, n, NULL);
    rc = execute(b, &op);
    free(digest);

    return rc == 0 ? -1 : rc == DSA_TIER_DONE ? (int) op.found : -2;
}


static inline const char *
key_of(uint32_t n)
{
    dsa_digest_t  digest;

    static char  key[DSA_KV_KEY + 1];

    digest = digest_of(n);
    dsa_kv_key(key, digest.byte);

    return key;
}


/*
 * log_begin() sends stderr to a file, in which logged() counts the lines of the
 * log.  log_end() restores stderr and copies the file to it.
 */

static int  log_saved;


static inline void
log_begin(void)
{
    int   fd;
    char  path[96];

    (void) snprintf(path, sizeof(path), "%s/log", dir);
    fd = open(path, O_CREAT|O_TRUNC|O_WRONLY|O_APPEND, 0600);
    assert_int_not_equal(fd, -1);
    log_saved = dup(STDERR_FILENO);
    (void) dup2(fd, STDERR_FILENO);
    (void) close(fd);
}


static inline void
log_end(void)
{
    char  command[128];

    (void) dup2(log_saved, STDERR_FILENO);
    (void) close(log_saved);
    (void) snprintf(command, sizeof(command), "cat %s/log >&2", dir);
    assert_int_equal(system(command), 0);
}


static inline int
logged(const char *text)
{
    int    n;
    char   path[96], line[2048];
    FILE  *f;

    (void) snprintf(path, sizeof(path), "%s/log", dir);
    f = fopen(path, "r");
    assert_non_null(f);

    for (n = 0; fgets(line, sizeof(line), f) != NULL; ) {
        n += strstr(line, text) != NULL;
    }

    (void) fclose(f);

    return n;
}


static inline void
wait_logged(const char *text)
{
    uint64_t  until;

    for (until = deadline(); logged(text) == 0; ) {
        if (dsa_clock_ms() > until) {
            fail_msg("not in the log: %s", text);
        }

        (void) usleep(1000);
    }
}


#endif /* _T_REDIS_H_INCLUDED_ */
