
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/wake.h"
#include "engine/pages/redis_state.h"


#define DSA_REDIS_SANDBOX                                                     \
    "; if the engine is a unit of systemd, look at its IPAddressAllow, "      \
    "RestrictAddressFamilies and PrivateNetwork"

#define DSA_REDIS_BACKOFF       100     /* ms until the first reconnect, then */
#define DSA_REDIS_BACKOFF_MAX   5000    /* twice as long, up to this */
#define DSA_REDIS_MAP_MS        1000    /* ms between reads of the map while a
                                           node is off */


static dsa_redis_server_t *dsa_redis_server_entry(dsa_redis_t *c);
static int dsa_redis_server_start(dsa_redis_server_t *s, dsa_err_t *err);
static void dsa_redis_server_drop(dsa_redis_queue_t *q, dsa_redis_t *c);


dsa_redis_server_t *
dsa_redis_server_add(dsa_redis_t *c, const dsa_redis_address_t *address,
    dsa_err_t *err)
{
    dsa_redis_server_t  *s;

    s = dsa_redis_server_entry(c);

    if (s == NULL) {
        (void) dsa_error(err, "there are more than %d servers",
                         DSA_REDIS_SERVERS);
        return NULL;
    }

    s->address = *address;
    s->hash = XXH3_64bits(address->text, strlen(address->text));
    s->backoff_ms = 0;
    s->retry_ms = 0;
    s->refused_ms = 0;
    s->cause.text[0] = '\0';
    memset(s->refused, 0, sizeof(s->refused));

    if (s->cache == NULL) {
        s->cache = c;
        s->number = c->n_servers;

        if (dsa_redis_server_start(s, err) != DSA_OK) {
            return NULL;
        }
    }

    return s;
}


/*
 * Returns a new entry, or that of a node that has left the cluster; NULL if
 * there is none.
 */

static dsa_redis_server_t *
dsa_redis_server_entry(dsa_redis_t *c)
{
    uint32_t             i;
    dsa_redis_server_t  *s;

    if (c->n_servers < DSA_REDIS_SERVERS) {
        return &c->server[c->n_servers];
    }

    for (i = 0; i < c->n_servers; i++) {
        s = &c->server[i];

        if (!dsa_redis_server_wanted(s) && !s->on && s->busy == 0) {
            return s;
        }
    }

    return NULL;
}


/*
 * Starts the threads of a server.  If only some of them can be started, the
 * server has fewer connections; without a thread it is not added.
 */

static int
dsa_redis_server_start(dsa_redis_server_t *s, dsa_err_t *err)
{
    int                  rc;
    sigset_t             all, old;
    dsa_redis_t         *c;
    dsa_redis_thread_t  *t;

    c = s->cache;
    s->off_fd = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);
    s->thread = calloc(c->conf.connections, sizeof(dsa_redis_thread_t));
    rc = (s->off_fd == -1 || s->thread == NULL) ? errno : 0;

    (void) pthread_cond_init(&s->work, &c->clock);
    (void) sigfillset(&all);
    (void) pthread_sigmask(SIG_SETMASK, &all, &old);

    while (rc == 0 && s->n_threads < c->conf.connections) {
        t = &s->thread[s->n_threads];
        t->server = s;
        t->number = s->n_threads;
        t->conn.wire.tls = c->tls;
        t->conn.hint = DSA_REDIS_SANDBOX;
        t->conn.wire.fd = -1;
        t->conn.wire.off_fd = s->off_fd;
        t->conn.wire.timeout_ms = c->conf.timeout_ms;

        rc = pthread_create(&t->thread, NULL, dsa_redis_thread, t);
        s->n_threads += rc == 0;
    }

    (void) pthread_sigmask(SIG_SETMASK, &old, NULL);

    if (s->n_threads != 0) {
        c->n_servers++;
        return DSA_OK;
    }

    (void) pthread_cond_destroy(&s->work);

    if (s->off_fd != -1) {
        (void) close(s->off_fd);
    }

    free(s->thread);
    memset(s, 0, sizeof(dsa_redis_server_t));

    return dsa_error(err, "cannot start a thread for Redis: %s", strerror(rc));
}


int
dsa_redis_server_wanted(const dsa_redis_server_t *s)
{
    return s->seed || s->mapped;
}


void
dsa_redis_server_count(dsa_redis_t *c)
{
    uint32_t                   i, n;
    const dsa_redis_server_t  *s;

    n = 0;

    for (i = 0; i < c->n_servers; i++) {
        s = &c->server[i];
        n += s->on && (c->cluster ? s->mapped : s->seed);
    }

    atomic_store(&c->on, n);
}


int
dsa_redis_server_on(dsa_redis_server_t *s)
{
    assert(!s->on && s->busy == 0 && s->probes.first == NULL
           && s->reads.first == NULL && s->writes.first == NULL);

    s->on = 1;
    s->epoch++;
    s->since_ms = dsa_clock_ms();
    s->cause.text[0] = '\0';
    s->cache->wake_due = 1;

    dsa_redis_server_count(s->cache);
    (void) pthread_cond_broadcast(&s->work);

    return 1;
}


int
dsa_redis_server_off(dsa_redis_server_t *s, const dsa_err_t *cause)
{
    int       log;
    uint64_t  now;

    now = dsa_clock_ms();
    log = s->on || strcmp(s->cause.text, cause->text) != 0;

    if (s->on && now - s->since_ms >= DSA_REDIS_BACKOFF_MAX) {
        s->backoff_ms = 0;
    }

    s->backoff_ms = s->backoff_ms != 0 ? s->backoff_ms * 2 : DSA_REDIS_BACKOFF;

    if (s->backoff_ms > DSA_REDIS_BACKOFF_MAX) {
        s->backoff_ms = DSA_REDIS_BACKOFF_MAX;
    }

    s->retry_ms = now + s->backoff_ms;
    s->cause = *cause;
    s->cache->wake_due = 1;

    if (s->on) {
        s->on = 0;
        dsa_redis_server_count(s->cache);
        dsa_redis_server_drop(&s->probes, s->cache);
        dsa_redis_server_drop(&s->reads, s->cache);
        dsa_redis_server_drop(&s->writes, s->cache);
        dsa_wake(s->off_fd);
        (void) pthread_cond_broadcast(&s->work);
    }

    return log;
}


static void
dsa_redis_server_drop(dsa_redis_queue_t *q, dsa_redis_t *c)
{
    dsa_redis_task_t  *task, *next;

    next = q->first;
    q->first = NULL;
    q->last = NULL;

    while (next != NULL) {
        task = next;
        next = task->next;
        dsa_redis_task_fail(c, task);
    }
}


void
dsa_redis_server_map(dsa_redis_t *c, const dsa_cluster_map_t *map)
{
    uint8_t              node, number[DSA_CLUSTER_NODES];
    uint32_t             i, j;
    dsa_err_t            err, left;
    dsa_redis_server_t  *s;

    if (c->closing) {
        return;
    }

    c->cluster = 1;
    c->map_ms = dsa_clock_ms();

    for (i = 0; i < c->n_servers; i++) {
        c->server[i].mapped = 0;
    }

    /*
     * Find the entries of known nodes first, so that new nodes do not replace
     * them.
     */

    memset(number, DSA_CLUSTER_NONE, sizeof(number));

    for (i = 0; i < map->nodes; i++) {
        for (j = 0; j < c->n_servers; j++) {
            s = &c->server[j];

            if (strcmp(s->address.text, map->node[i].text) == 0) {
                s->mapped = 1;
                number[i] = (uint8_t) j;
            }
        }
    }

    for (i = 0; i < map->nodes; i++) {
        if (number[i] != DSA_CLUSTER_NONE) {
            continue;
        }

        s = dsa_redis_server_add(c, &map->node[i], &err);

        if (s == NULL) {
            dsa_log(DSA_LOG_WARN, "cache: the node %s of the Redis Cluster is "
                    "not used: %s", map->node[i].text, err.text);
            continue;
        }

        s->mapped = 1;
        number[i] = (uint8_t) s->number;
    }

    for (i = 0; i < DSA_CLUSTER_SLOTS; i++) {
        node = map->cluster_slot[i];
        c->cluster_slot[i] = node < map->nodes ? number[node]
                                               : DSA_CLUSTER_NONE;
    }

    (void) dsa_error(&left, "the node has no cluster slots any more");

    for (i = 0; i < c->n_servers; i++) {
        s = &c->server[i];

        if (s->on && !dsa_redis_server_wanted(s)
            && dsa_redis_server_off(s, &left))
        {
            dsa_log(DSA_LOG_NOTICE, "cache: Redis %s is off: %s",
                    s->address.text, left.text);
        }

        (void) pthread_cond_broadcast(&s->work);
    }

    dsa_redis_server_count(c);
}


int
dsa_redis_server_map_due(const dsa_redis_t *c, uint64_t now_ms)
{
    uint32_t  i;

    if (!c->cluster || now_ms - c->map_ms < DSA_REDIS_MAP_MS) {
        return 0;
    }

    for (i = 0; i < c->n_servers; i++) {
        if (c->server[i].mapped && !c->server[i].on) {
            return 1;
        }
    }

    /* also while a cluster slot has no node */

    return memchr(c->cluster_slot, DSA_CLUSTER_NONE, sizeof(c->cluster_slot))
           != NULL;
}
