
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/wake.h"
#include "engine/pages/redis_state.h"


#define DSA_REDIS_THREADS   64          /* most connections to a server */

_Static_assert(DSA_REDIS_SERVERS <= 64, "a set of servers is a uint64_t");
_Static_assert(DSA_REDIS_SERVERS <= DSA_CLUSTER_NONE,
               "no server has the number that stands for none");


static int dsa_redis_start(dsa_redis_t *c, const dsa_redis_conf_t *conf,
    dsa_err_t *err);
static int dsa_redis_submit_probe(dsa_redis_t *c, dsa_tier_op_t *op);
static int dsa_redis_split(dsa_redis_t *c, dsa_tier_op_t *op,
    dsa_redis_probe_t *probe);
static void dsa_redis_cancel_queue(dsa_redis_t *c, dsa_redis_queue_t *q,
    const void *owner);
static void dsa_redis_free_queue(dsa_redis_queue_t *q);
static void dsa_redis_done(dsa_redis_t *c, dsa_tier_op_t *op,
    dsa_tier_result_e result);


uint64_t
dsa_redis_now(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}


dsa_redis_t *
dsa_redis_open(const dsa_redis_conf_t *conf, dsa_err_t *err)
{
    dsa_redis_t  *c;

    assert(conf->n_addresses >= 1 && conf->n_addresses <= DSA_REDIS_SERVERS);
    assert(conf->connections >= 1 && conf->connections <= DSA_REDIS_THREADS);
    assert(conf->ttl_s >= 1 && conf->timeout_ms >= 1 && conf->page_bytes >= 1);
    assert(strlen(conf->fingerprint) == sizeof(c->fingerprint) - 1);

    c = calloc(1, sizeof(dsa_redis_t));

    if (c == NULL) {
        (void) dsa_error(err, "%s", strerror(ENOMEM));
        return NULL;
    }

    (void) pthread_mutex_init(&c->mutex, NULL);
    (void) pthread_condattr_init(&c->clock);
    (void) pthread_condattr_setclock(&c->clock, CLOCK_MONOTONIC);

    c->conf = *conf;
    c->conf.address = NULL;
    memset(&c->conf.tls, 0, sizeof(c->conf.tls));
    c->conf.user = conf->user != NULL ? strdup(conf->user) : NULL;
    c->conf.password = conf->password != NULL ? strdup(conf->password) : NULL;
    memcpy(c->fingerprint, conf->fingerprint, sizeof(c->fingerprint));
    c->conf.fingerprint = c->fingerprint;

    c->bucket.rate = conf->max_bandwidth;
    c->bucket.next_us = dsa_redis_now();
    memset(c->cluster_slot, DSA_CLUSTER_NONE, sizeof(c->cluster_slot));
    c->stop_fd = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);

    if (c->stop_fd == -1
        || (c->conf.user == NULL) != (conf->user == NULL)
        || (c->conf.password == NULL) != (conf->password == NULL))
    {
        (void) dsa_error(err, "%s", strerror(errno));
        dsa_redis_close(c);
        return NULL;
    }

    if (conf->tls.on) {
        c->tls = dsa_redis_tls_create(&conf->tls, err);
    }

    if ((conf->tls.on && c->tls == NULL)
        || dsa_redis_start(c, conf, err) != DSA_OK)
    {
        dsa_redis_close(c);
        return NULL;
    }

    return c;
}


static int
dsa_redis_start(dsa_redis_t *c, const dsa_redis_conf_t *conf, dsa_err_t *err)
{
    int                   rc;
    uint32_t              i, j;
    dsa_redis_server_t   *s;
    dsa_redis_address_t   address;

    rc = DSA_OK;
    dsa_redis_lock(c);

    for (i = 0; i < conf->n_addresses && rc == DSA_OK; i++) {
        rc = dsa_redis_address(&address, conf->address[i], err);

        for (j = 0; j < c->n_servers && rc == DSA_OK; j++) {
            if (strcmp(c->server[j].address.text, address.text) == 0) {
                rc = dsa_error(err, "the address \"%s\" of Redis occurs twice",
                               address.text);
            }
        }

        if (rc == DSA_OK) {
            s = dsa_redis_server_add(c, &address, err);
            rc = s != NULL ? DSA_OK : DSA_ERROR;

            if (s != NULL) {
                s->seed = 1;
                (void) pthread_cond_broadcast(&s->work);
            }
        }
    }

    dsa_redis_unlock(c);

    return rc;
}


void
dsa_redis_close(dsa_redis_t *c)
{
    uint32_t             i, j;
    dsa_redis_server_t  *s;

    if (c == NULL) {
        return;
    }

    dsa_redis_lock(c);

    c->closing = 1;

    for (i = 0; i < c->n_servers; i++) {
        (void) pthread_cond_broadcast(&c->server[i].work);
    }

    dsa_redis_unlock(c);

    if (c->stop_fd != -1) {
        dsa_wake(c->stop_fd);
    }

    /* no more servers are added */

    for (i = 0; i < c->n_servers; i++) {
        for (j = 0; j < c->server[i].n_threads; j++) {
            (void) pthread_join(c->server[i].thread[j].thread, NULL);
        }
    }

    for (i = 0; i < c->n_servers; i++) {
        s = &c->server[i];

        dsa_redis_free_queue(&s->probes);
        dsa_redis_free_queue(&s->reads);
        dsa_redis_free_queue(&s->writes);
        (void) pthread_cond_destroy(&s->work);
        (void) close(s->off_fd);
        free(s->thread);
    }

    if (c->stop_fd != -1) {
        (void) close(c->stop_fd);
    }

    if (c->conf.password != NULL) {
        explicit_bzero(c->conf.password, strlen(c->conf.password));
    }

    free(c->conf.password);
    free(c->conf.user);
    dsa_redis_tls_destroy(c->tls);
    (void) pthread_condattr_destroy(&c->clock);
    (void) pthread_mutex_destroy(&c->mutex);
    free(c);
}


static void
dsa_redis_free_queue(dsa_redis_queue_t *q)
{
    dsa_redis_task_t  *task;

    while (q->first != NULL) {
        task = q->first;
        q->first = task->next;

        if (task->probe != NULL && --task->probe->parts == 0) {
            free(task->probe);
        }

        free(task);
    }
}


int
dsa_redis_on(const dsa_redis_t *c)
{
    return atomic_load(&c->on) != 0 && atomic_load(&c->ops) < DSA_REDIS_QUEUE;
}


int
dsa_redis_submit(dsa_redis_t *c, dsa_tier_op_t *op)
{
    int                  rc;
    dsa_redis_task_t    *task;
    dsa_redis_server_t  *s;

    assert(op->n >= 1 && (op->n == 1 || op->kind == DSA_TIER_PROBE));

    op->result = DSA_TIER_FAILED;
    op->found = 0;
    op->begin_us = 0;
    op->end_us = 0;
    op->next = NULL;

    dsa_redis_lock(c);

    op->queued_us = dsa_redis_now();
    rc = DSA_AGAIN;

    if (atomic_load(&c->ops) >= DSA_REDIS_QUEUE) {
        dsa_redis_unlock(c);
        return rc;
    }

    if (op->kind == DSA_TIER_PROBE) {
        rc = dsa_redis_submit_probe(c, op);

    } else {
        s = dsa_redis_route(c, op->digest);
        task = s != NULL ? calloc(1, sizeof(dsa_redis_task_t)) : NULL;

        if (task != NULL) {
            task->op = op;
            dsa_redis_push(s, task, 0);
            rc = DSA_OK;
        }
    }

    if (rc == DSA_OK) {
        atomic_fetch_add(&c->ops, 1);
        c->n_writes += op->kind == DSA_TIER_WRITE;
    }

    dsa_redis_unlock(c);

    return rc;
}


static int
dsa_redis_submit_probe(dsa_redis_t *c, dsa_tier_op_t *op)
{
    dsa_redis_probe_t  *probe;

    probe = calloc(1, sizeof(dsa_redis_probe_t) + op->n);

    if (probe == NULL) {
        return DSA_AGAIN;
    }

    if (dsa_redis_split(c, op, probe) != DSA_OK) {
        free(probe);
        return DSA_AGAIN;
    }

    return DSA_OK;
}


/*
 * Makes a task for each server with pages of the probe.  The probe ends before
 * the first page whose server is off.  DSA_AGAIN: this is the first page, or
 * memory is short.
 */

static int
dsa_redis_split(dsa_redis_t *c, dsa_tier_op_t *op, dsa_redis_probe_t *probe)
{
    uint32_t             i;
    uint64_t             set;
    dsa_redis_task_t    *task, *list;
    dsa_redis_server_t  *s;

    set = 0;

    for (i = 0; i < op->n; i++) {
        s = dsa_redis_route(c, &op->digest[i]);

        if (s == NULL) {
            break;
        }

        probe->server[i] = (uint8_t) s->number;
        set |= (uint64_t) 1 << s->number;
    }

    probe->n = i;
    probe->found = i;
    list = NULL;

    for (i = 0; i < c->n_servers; i++) {
        if ((set >> i & 1) == 0) {
            continue;
        }

        task = calloc(1, sizeof(dsa_redis_task_t));

        if (task == NULL) {
            break;
        }

        task->op = op;
        task->probe = probe;
        task->next = list;
        list = task;
    }

    if (i < c->n_servers || set == 0) {
        while (list != NULL) {
            task = list->next;
            free(list);
            list = task;
        }

        return DSA_AGAIN;
    }

    /* tasks are added to the front, so begin with the last server */

    for (i = c->n_servers; i > 0; i--) {
        if ((set >> (i - 1) & 1) == 0) {
            continue;
        }

        task = list;
        list = list->next;
        probe->parts++;
        dsa_redis_push(&c->server[i - 1], task, 0);
    }

    return DSA_OK;
}


/*
 * Returns the server of a page by rendezvous hashing: the server with the
 * highest hash of digest and address, whether it is on or off.  So when a
 * server is added or removed, only its own pages move.  In a Redis Cluster the
 * cluster slot of the key determines the server.
 */

dsa_redis_server_t *
dsa_redis_route(dsa_redis_t *c, const dsa_digest_t *digest)
{
    char                 key[DSA_KV_KEY + 1];
    uint8_t              number;
    uint32_t             i;
    uint64_t             hash, highest;
    dsa_redis_server_t  *s, *best;

    best = NULL;

    if (c->cluster) {
        dsa_kv_key(key, digest->byte);
        number = c->cluster_slot[dsa_cluster_slot(key, DSA_KV_KEY)];
        best = number != DSA_CLUSTER_NONE ? &c->server[number] : NULL;

    } else {
        highest = 0;

        for (i = 0; i < c->n_servers; i++) {
            s = &c->server[i];
            hash = XXH3_64bits_withSeed(digest->byte, DSA_DIGEST, s->hash);

            if (best == NULL || hash > highest) {
                best = s;
                highest = hash;
            }
        }
    }

    return (best != NULL && best->on) ? best : NULL;
}


void
dsa_redis_push(dsa_redis_server_t *s, dsa_redis_task_t *task, int front)
{
    dsa_redis_queue_t  *q;

    assert(s->on);

    task->server = s->number;

    switch (task->op->kind) {

    case DSA_TIER_PROBE:
        q = &s->probes;
        break;

    case DSA_TIER_READ:
        q = &s->reads;
        break;

    default: /* DSA_TIER_WRITE */
        q = &s->writes;
    }

    if (q->first == NULL) {
        task->next = NULL;
        q->first = task;
        q->last = task;

    } else if (front) {
        task->next = q->first;
        q->first = task;

    } else {
        task->next = NULL;
        q->last->next = task;
        q->last = task;
    }

    (void) pthread_cond_signal(&s->work);
}


void
dsa_redis_cancel(dsa_redis_t *c, const void *owner)
{
    uint32_t  i;

    dsa_redis_lock(c);

    for (i = 0; i < c->n_servers; i++) {
        dsa_redis_cancel_queue(c, &c->server[i].probes, owner);
        dsa_redis_cancel_queue(c, &c->server[i].reads, owner);
        dsa_redis_cancel_queue(c, &c->server[i].writes, owner);
    }

    dsa_redis_unlock(c);
}


static void
dsa_redis_cancel_queue(dsa_redis_t *c, dsa_redis_queue_t *q, const void *owner)
{
    dsa_redis_task_t  *task, *next;

    next = q->first;
    q->first = NULL;
    q->last = NULL;

    while (next != NULL) {
        task = next;
        next = task->next;

        if (task->op->owner == owner && task->op->begin_us == 0) {
            dsa_redis_task_fail(c, task);
            continue;
        }

        task->next = NULL;

        if (q->last != NULL) {
            q->last->next = task;
        } else {
            q->first = task;
        }

        q->last = task;
    }
}


void
dsa_redis_task_fail(dsa_redis_t *c, dsa_redis_task_t *task)
{
    uint32_t            i;
    dsa_redis_probe_t  *probe;

    probe = task->probe;

    if (probe == NULL) {
        dsa_redis_op_end(c, task, DSA_TIER_FAILED);
        return;
    }

    for (i = 0; i < probe->n && probe->server[i] != task->server; i++) {
        /* the probe begins at the first page of this server */
    }

    dsa_redis_part_end(c, task, i, 1, 0);
}


void
dsa_redis_op_end(dsa_redis_t *c, dsa_redis_task_t *task,
    dsa_tier_result_e result)
{
    dsa_tier_op_t  *op;

    op = task->op;
    free(task);

    if (op->kind == DSA_TIER_WRITE) {
        assert(c->n_writes != 0);
        c->n_writes--;
    }

    if (result == DSA_TIER_DONE && op->kind == DSA_TIER_WRITE) {
        c->stats.sets++;
        c->stats.set_bytes += c->conf.page_bytes;

    } else if (result == DSA_TIER_DONE) {
        c->stats.gets++;
        c->stats.get_bytes += c->conf.page_bytes;
    }

    dsa_redis_done(c, op, result);
}


void
dsa_redis_part_end(dsa_redis_t *c, dsa_redis_task_t *task, uint32_t absent,
    int failed, int moved)
{
    dsa_tier_op_t      *op;
    dsa_redis_probe_t  *probe;

    op = task->op;
    probe = task->probe;
    free(task);

    assert(probe->parts != 0);

    probe->parts--;
    probe->ended += !failed;
    probe->moved |= moved;

    if (absent < probe->found) {
        probe->found = absent;
    }

    if (probe->parts != 0) {
        return;
    }

    if (probe->moved && !probe->retried) {
        probe->retried = 1;
        probe->ended = 0;

        if (!c->closing && dsa_redis_split(c, op, probe) == DSA_OK) {
            return;
        }

        probe->found = 0;
    }

    op->found = probe->found;
    failed = probe->ended == 0 && probe->found == 0;
    free(probe);

    c->stats.probes += !failed;
    dsa_redis_done(c, op, failed ? DSA_TIER_FAILED : DSA_TIER_DONE);
}


static void
dsa_redis_done(dsa_redis_t *c, dsa_tier_op_t *op, dsa_tier_result_e result)
{
    op->result = result;
    op->end_us = dsa_redis_now();
    op->next = NULL;

    c->stats.misses += result == DSA_TIER_MISS;
    c->stats.invalid += result == DSA_TIER_INVALID;
    c->stats.failed += result == DSA_TIER_FAILED;

    if (c->done == NULL) {
        c->done = op;
        c->wake_due = 1;

    } else {
        c->done_last->next = op;
    }

    c->done_last = op;
}


dsa_tier_op_t *
dsa_redis_collect(dsa_redis_t *c)
{
    uint32_t        n;
    dsa_tier_op_t  *list, *op;

    dsa_redis_lock(c);

    list = c->done;
    c->done = NULL;
    c->done_last = NULL;

    for (op = list, n = 0; op != NULL; op = op->next) {
        n++;
    }

    atomic_fetch_sub(&c->ops, n);
    dsa_redis_unlock(c);

    return list;
}


uint32_t
dsa_redis_writes(dsa_redis_t *c)
{
    uint32_t  n;

    dsa_redis_lock(c);
    n = c->n_writes;
    dsa_redis_unlock(c);

    return n;
}


void
dsa_redis_stats(dsa_redis_t *c, dsa_redis_stats_t *stats)
{
    uint32_t  i;

    dsa_redis_lock(c);

    *stats = c->stats;
    stats->servers = 0;
    stats->servers_on = atomic_load(&c->on);

    for (i = 0; i < c->n_servers; i++) {
        stats->servers += c->cluster ? c->server[i].mapped : 1;
    }

    dsa_redis_unlock(c);
}


void
dsa_redis_unlock(dsa_redis_t *c)
{
    int  wake;

    wake = c->wake_due;
    c->wake_due = 0;

    (void) pthread_mutex_unlock(&c->mutex);

    if (wake && c->conf.wake != NULL) {
        c->conf.wake(c->conf.wake_data);
    }
}
