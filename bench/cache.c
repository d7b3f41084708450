
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/wake.h"
#include "bench/bench.h"
#include "engine/pages/redis.h"


/*
 * dsa bench cache: pages written to Redis, read from there, and probed, as the
 * engine does it.  Every page is read and checked in its whole length, but the
 * pages share the memory of a few, as many as are in progress.
 */

#define DSA_REDIS_BENCH_BYTES   3080192 /* a page of DeepSeek-V3.2 */
#define DSA_REDIS_BENCH_PAGES   256
#define DSA_REDIS_BENCH_TTL     600     /* s, so that no page remains */
#define DSA_REDIS_BENCH_KEYS    512     /* of a probe */
#define DSA_REDIS_BENCH_PROBES  101
#define DSA_REDIS_BENCH_WAIT    10000   /* ms */


typedef struct {
    char               *address[DSA_REDIS_SERVERS];
    uint32_t            n_addresses;
    uint32_t            connections;
    uint32_t            pages;
    uint64_t            page_bytes;

    dsa_redis_t        *cache;
    int                 fd;
    uint32_t            n_ops;          /* operations in progress at most */
    uint8_t            *memory;         /* [n_ops][page_bytes] */
    dsa_tier_op_t      *op;             /* [n_ops] */
    dsa_digest_t       *digest;         /* [max(pages, KEYS)] */
    uint64_t            us[DSA_REDIS_BENCH_PROBES];
} dsa_redis_bench_t;


static int dsa_redis_bench_options(dsa_redis_bench_t *b, int argc, char **argv,
    const char *usage);
static int dsa_redis_bench_number(uint64_t *n, const char *name,
    const char *text, uint64_t most);
static int dsa_redis_bench_open(dsa_redis_bench_t *b);
static int dsa_redis_bench_run(dsa_redis_bench_t *b);
static int dsa_redis_bench_pages(dsa_redis_bench_t *b, dsa_tier_kind_e kind,
    double *rate);
static int dsa_redis_bench_probe(dsa_redis_bench_t *b, uint64_t *median);
static dsa_tier_op_t *dsa_redis_bench_collect(dsa_redis_bench_t *b);


static void
dsa_redis_bench_wake(void *data)
{
    dsa_wake(((dsa_redis_bench_t *) data)->fd);
}


int
dsa_bench_cache(int argc, char **argv, const char *usage)
{
    int                rc;
    dsa_redis_bench_t  b;

    memset(&b, 0, sizeof(b));
    b.fd = -1;

    rc = dsa_redis_bench_options(&b, argc, argv, usage);

    if (rc != -1) {
        return rc;
    }

    rc = dsa_redis_bench_open(&b);

    if (rc == 0) {
        rc = dsa_redis_bench_run(&b);
    }

    dsa_redis_close(b.cache);

    if (b.fd != -1) {
        (void) close(b.fd);
    }

    free(b.memory);
    free(b.op);
    free(b.digest);

    return rc;
}


/* Returns -1 when the command is to run, else the exit status. */

static int
dsa_redis_bench_options(dsa_redis_bench_t *b, int argc, char **argv,
    const char *usage)
{
    int       opt, rc;
    uint64_t  bytes, pages, connections;

    static const struct option  options[] = {
        { "address", required_argument, NULL, 'a' },
        { "page-bytes", required_argument, NULL, 'b' },
        { "pages", required_argument, NULL, 'p' },
        { "connections", required_argument, NULL, 'c' },
        { NULL, 0, NULL, 0 }
    };

    bytes = DSA_REDIS_BENCH_BYTES;
    pages = DSA_REDIS_BENCH_PAGES;
    connections = 4;
    rc = 0;

    while (rc == 0
           && (opt = dsa_option("dsa bench cache", argc, argv, "", options))
              != -1)
    {
        switch (opt) {

        case 'a':
            if (b->n_addresses == DSA_REDIS_SERVERS) {
                (void) fprintf(stderr, "dsa bench: there are more than %d "
                               "addresses\n", DSA_REDIS_SERVERS);
                return 2;
            }

            b->address[b->n_addresses++] = optarg;
            break;

        case 'b':
            rc = dsa_redis_bench_number(&bytes, "page-bytes", optarg,
                                        256 << 20);
            break;

        case 'p':
            rc = dsa_redis_bench_number(&pages, "pages", optarg, 1 << 20);
            break;

        case 'c':
            rc = dsa_redis_bench_number(&connections, "connections", optarg,
                                        64);
            break;

        default:
            return 2;
        }
    }

    if (rc == 0 && (optind != argc || b->n_addresses == 0)) {
        (void) fputs(usage, stderr);
        rc = 2;
    }

    b->page_bytes = bytes;
    b->pages = (uint32_t) pages;
    b->connections = (uint32_t) connections;

    return rc != 0 ? rc : -1;
}


static int
dsa_redis_bench_number(uint64_t *n, const char *name, const char *text,
    uint64_t most)
{
    char                *end;
    unsigned long long   value;

    errno = 0;
    value = strtoull(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0
        || value < 1 || value > most)
    {
        (void) fprintf(stderr, "dsa bench: \"%s\" is not a value of --%s; "
                       "expected 1 to %llu\n", text, name,
                       (unsigned long long) most);
        return 2;
    }

    *n = value;

    return 0;
}


static int
dsa_redis_bench_open(dsa_redis_bench_t *b)
{
    uint32_t            i, keys;
    uint64_t            until, k;
    dsa_err_t           err;
    dsa_redis_conf_t    conf;
    dsa_redis_stats_t   stats;

    /* more than one operation for each connection, so that none waits */

    b->n_ops = 2 * b->connections * b->n_addresses + 2;
    keys = b->pages > DSA_REDIS_BENCH_KEYS ? b->pages : DSA_REDIS_BENCH_KEYS;

    b->fd = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);
    b->memory = malloc(b->n_ops * b->page_bytes);
    b->op = calloc(b->n_ops, sizeof(dsa_tier_op_t));
    b->digest = calloc(keys, sizeof(dsa_digest_t));

    if (b->fd == -1 || b->memory == NULL || b->op == NULL || b->digest == NULL)
    {
        (void) fprintf(stderr, "dsa bench: %s\n", strerror(errno));
        return 1;
    }

    for (i = 0; i < keys; i++) {
        memset(b->digest[i].byte, 0xbe, DSA_DIGEST);
        memcpy(b->digest[i].byte, &i, sizeof(i));
    }

    for (k = 0; k < b->n_ops * b->page_bytes; k++) {
        b->memory[k] = (uint8_t) (k * 2654435761u >> 13);
    }

    memset(&conf, 0, sizeof(conf));
    conf.address = b->address;
    conf.n_addresses = b->n_addresses;
    conf.connections = b->connections;
    conf.ttl_s = DSA_REDIS_BENCH_TTL;
    conf.timeout_ms = DSA_REDIS_BENCH_WAIT;
    conf.page_bytes = b->page_bytes;
    conf.fingerprint = "dsa0bench0dsa0bench0dsa0bench000";
    conf.wake = dsa_redis_bench_wake;
    conf.wake_data = b;

    b->cache = dsa_redis_open(&conf, &err);

    if (b->cache == NULL) {
        (void) fprintf(stderr, "dsa bench: %s\n", err.text);
        return 1;
    }

    until = dsa_clock_ms() + DSA_REDIS_BENCH_WAIT;

    do {
        (void) usleep(1000);
        dsa_redis_stats(b->cache, &stats);
    } while (stats.servers_on != stats.servers && dsa_clock_ms() < until);

    if (stats.servers_on != stats.servers) {
        (void) fprintf(stderr, "dsa bench: %u of %u servers are on\n",
                       stats.servers_on, stats.servers);
        return 1;
    }

    return 0;
}


static int
dsa_redis_bench_run(dsa_redis_bench_t *b)
{
    double    set, get;
    uint64_t  probe;

    if (dsa_redis_bench_pages(b, DSA_TIER_WRITE, &set) != 0
        || dsa_redis_bench_pages(b, DSA_TIER_READ, &get) != 0
        || dsa_redis_bench_probe(b, &probe) != 0)
    {
        return 1;
    }

    (void) printf("| connections | pages | bytes of a page | SET, GB/s "
                  "| GET, GB/s | PROBE of %d, us |\n"
                  "|---|---|---|---|---|---|\n"
                  "| %u | %u | %llu | %.2f | %.2f | %llu |\n",
                  DSA_REDIS_BENCH_KEYS, b->connections, b->pages,
                  (unsigned long long) b->page_bytes, set, get,
                  (unsigned long long) probe);

    return fflush(stdout) == 0 ? 0 : 1;
}


/* All pages once; *rate is in GB/s. */

static int
dsa_redis_bench_pages(dsa_redis_bench_t *b, dsa_tier_kind_e kind,
    double *rate)
{
    uint32_t        i, next, ended;
    uint64_t        begin;
    dsa_tier_op_t  *op, *list, *after;

    begin = 0;
    list = NULL;

    for (i = 0; i < b->n_ops; i++) {
        b->op[i].page = b->memory + i * b->page_bytes;
        b->op[i].next = list;
        list = &b->op[i];
    }

    for (next = 0, ended = 0; ended < b->pages; ) {

        while (list != NULL && next < b->pages) {
            op = list;
            list = op->next;
            op->kind = kind;
            op->digest = &b->digest[next++];
            op->n = 1;

            if (dsa_redis_submit(b->cache, op) != DSA_OK) {
                (void) fprintf(stderr, "dsa bench: the cache is off\n");
                return 1;
            }

            begin = begin != 0 ? begin : op->queued_us;
        }

        op = dsa_redis_bench_collect(b);

        if (op == NULL) {
            return 1;
        }

        while (op != NULL) {
            after = op->next;
            *rate = (double) b->pages * (double) b->page_bytes
                    / (double) (op->end_us - begin) / 1e3;
            op->next = list;
            list = op;
            op = after;
            ended++;
        }
    }

    return 0;
}


static int
dsa_redis_bench_compare(const void *a, const void *b)
{
    uint64_t  x, y;

    x = *(const uint64_t *) a;
    y = *(const uint64_t *) b;

    return (x > y) - (x < y);
}


/* The median time of a probe of pages that are all there, if so many are. */

static int
dsa_redis_bench_probe(dsa_redis_bench_t *b, uint64_t *median)
{
    uint32_t        i;
    dsa_tier_op_t  *op;

    for (i = 0; i < DSA_REDIS_BENCH_PROBES; i++) {
        op = &b->op[0];
        op->kind = DSA_TIER_PROBE;
        op->digest = b->digest;
        op->n = DSA_REDIS_BENCH_KEYS;

        if (dsa_redis_submit(b->cache, op) != DSA_OK) {
            (void) fprintf(stderr, "dsa bench: the cache is off\n");
            return 1;
        }

        if (dsa_redis_bench_collect(b) == NULL) {
            return 1;
        }

        b->us[i] = op->end_us - op->queued_us;
    }

    qsort(b->us, DSA_REDIS_BENCH_PROBES, sizeof(b->us[0]),
          dsa_redis_bench_compare);
    *median = b->us[DSA_REDIS_BENCH_PROBES / 2];

    return 0;
}


/* At least one operation that is done, or NULL after an error on stderr. */

static dsa_tier_op_t *
dsa_redis_bench_collect(dsa_redis_bench_t *b)
{
    uint64_t        count;
    struct pollfd   p;
    dsa_tier_op_t  *list, *op;

    p.fd = b->fd;
    p.events = POLLIN;

    do {
        list = dsa_redis_collect(b->cache);

        if (list == NULL) {
            (void) poll(&p, 1, -1);
            (void) (read(b->fd, &count, sizeof(count)) == sizeof(count));
        }
    } while (list == NULL);

    for (op = list; op != NULL; op = op->next) {
        if (op->result != DSA_TIER_DONE) {
            (void) fprintf(stderr, "dsa bench: a %s\n",
                           op->result == DSA_TIER_MISS ? "page is missing"
                           : op->result == DSA_TIER_INVALID
                             ? "page is not what was written"
                             : "server failed, or refused a command");
            return NULL;
        }
    }

    return list;
}
