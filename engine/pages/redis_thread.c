
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/pages/redis_state.h"


#define DSA_REDIS_IDLE_MS       1000    /* ms between checks of the map */
#define DSA_REDIS_REFUSED_MS    1000    /* ms without a SET after a rejected
                                           one */


typedef enum {
    DSA_REDIS_STAY = 0,
    DSA_REDIS_MOVED,
    DSA_REDIS_ASK
} dsa_redis_redirect_e;


/* The result of the execution of a task. */

typedef struct {
    dsa_tier_result_e       result;
    uint32_t                absent;     /* PROBE: as in dsa_redis_part_end() */
    int                     failed;     /* the server failed; err is the
                                           cause */
    int                     sent;       /* Redis executed or rejected the
                                           command */
    dsa_redis_redirect_e    redirect;
    dsa_redis_reply_t       reply;      /* the unexpected reply; type 0:
                                           none */
    dsa_err_t               err;
} dsa_redis_end_t;


static void dsa_redis_connect(dsa_redis_thread_t *t);
static dsa_redis_task_t *dsa_redis_next(dsa_redis_server_t *s,
    uint64_t *until_us);
static void dsa_redis_sleep(dsa_redis_server_t *s, uint64_t until_us);
static void dsa_redis_run(dsa_redis_thread_t *t, dsa_redis_task_t *task);
static void dsa_redis_execute(dsa_redis_thread_t *t, dsa_redis_task_t *task,
    dsa_redis_end_t *end);
static int dsa_redis_ready(dsa_redis_thread_t *t, dsa_err_t *err);
static int dsa_redis_get(dsa_redis_thread_t *t, dsa_redis_task_t *task,
    dsa_redis_end_t *end);
static int dsa_redis_invalid(dsa_redis_thread_t *t, const char *key,
    dsa_redis_end_t *end);
static int dsa_redis_set(dsa_redis_thread_t *t, dsa_redis_task_t *task,
    dsa_redis_end_t *end);
static int dsa_redis_probe(dsa_redis_thread_t *t, dsa_redis_task_t *task,
    dsa_redis_end_t *end);
static int dsa_redis_refused(dsa_redis_end_t *end);
static void dsa_redis_redirect(dsa_redis_server_t *s, dsa_redis_task_t *task,
    dsa_redis_end_t *end);
static void dsa_redis_read_map(dsa_redis_thread_t *t);
static int dsa_redis_note(dsa_redis_server_t *s, dsa_tier_kind_e kind,
    const dsa_redis_end_t *end);
static void dsa_redis_log(const char *address, dsa_tier_kind_e kind,
    const dsa_redis_end_t *end, int off, int note);


void *
dsa_redis_thread(void *data)
{
    uint64_t             until;
    dsa_redis_t         *c;
    dsa_redis_task_t    *task;
    dsa_redis_thread_t  *t = data;
    dsa_redis_server_t  *s;

    s = t->server;
    c = s->cache;

    dsa_redis_lock(c);

    while (!c->closing) {

        if (!s->on) {
            if (t->number == 0 && dsa_redis_server_wanted(s)) {
                dsa_redis_connect(t);
            } else {
                dsa_redis_sleep(s, 0);
            }

            continue;
        }

        if (dsa_redis_server_map_due(c, dsa_clock_ms())) {
            dsa_redis_read_map(t);
            continue;
        }

        task = dsa_redis_next(s, &until);

        if (task != NULL) {
            dsa_redis_run(t, task);
        } else {
            dsa_redis_sleep(s, until);
        }
    }

    dsa_redis_unlock(c);
    dsa_redis_conn_close(&t->conn);

    return NULL;
}


/* Locked.  Waits for work, at most until until_us if it is not 0. */

static void
dsa_redis_sleep(dsa_redis_server_t *s, uint64_t until_us)
{
    dsa_redis_t      *c;
    struct timespec   ts;

    c = s->cache;

    /*
     * dsa_redis_unlock() reports operations that have ended.  The wait below
     * unlocks the mutex without a report, so none may be due.
     */

    assert(!c->wake_due);

    if (c->cluster && until_us == 0) {
        until_us = dsa_redis_now() + DSA_REDIS_IDLE_MS * 1000;
    }

    if (until_us == 0) {
        (void) pthread_cond_wait(&s->work, &c->mutex);
        return;
    }

    ts.tv_sec = (time_t) (until_us / 1000000);
    ts.tv_nsec = (long) (until_us % 1000000) * 1000;

    (void) pthread_cond_timedwait(&s->work, &c->mutex, &ts);
}


/*
 * Locked.  Connects to a server that is off, or waits until the next attempt
 * is due.
 */

static void
dsa_redis_connect(dsa_redis_thread_t *t)
{
    int                   rc, log, is_cluster;
    uint64_t              n, now;
    dsa_err_t             err;
    dsa_redis_t          *c;
    dsa_cluster_map_t     map;
    dsa_redis_server_t   *s;
    dsa_redis_address_t   address;

    s = t->server;
    c = s->cache;
    now = dsa_clock_ms();

    if (s->busy != 0) {
        dsa_redis_sleep(s, 0);
        return;
    }

    if (now < s->retry_ms) {
        dsa_redis_sleep(s, s->retry_ms * 1000);
        return;
    }

    /* all interrupted threads have ended, so reset the eventfd */

    (void) (read(s->off_fd, &n, sizeof(n)) == sizeof(n));

    address = s->address;
    s->busy++;
    dsa_redis_unlock(c);

    dsa_redis_conn_close(&t->conn);
    t->conn.wire.stop_fd = c->stop_fd;
    dsa_redis_conn_begin(&t->conn, 0);

    is_cluster = 0;
    rc = dsa_redis_conn_open(&t->conn, &address, c->conf.user,
                             c->conf.password, &err);

    if (rc == DSA_OK) {
        rc = dsa_redis_conn_map(&t->conn, &address, &map, &is_cluster, &err);
    }

    dsa_redis_lock(c);

    s->busy--;

    if (c->closing) {
        return;
    }

    if (rc == DSA_OK) {
        log = dsa_redis_server_on(s);
        t->epoch = s->epoch;

        if (is_cluster) {
            dsa_redis_server_map(c, &map);
        }

    } else {
        log = dsa_redis_server_off(s, &err);
        c->stats.unconnected++;
    }

    dsa_redis_unlock(c);

    if (log && rc == DSA_OK) {
        dsa_log(DSA_LOG_NOTICE, "cache: Redis %s is on%s", address.text,
                is_cluster ? ", a node of a cluster" : "");
    } else if (log) {
        dsa_log(DSA_LOG_WARN, "cache: Redis %s is off: %s", address.text,
                err.text);
    }

    dsa_redis_lock(c);
}


/*
 * Locked.  Returns the next task of a server, or NULL; *until_us is when a
 * write that waits for bandwidth may be sent, or 0.  If there are several
 * connections, one is reserved for reads.
 */

static dsa_redis_task_t *
dsa_redis_next(dsa_redis_server_t *s, uint64_t *until_us)
{
    uint32_t            most;
    uint64_t            now, wait;
    dsa_redis_t        *c;
    dsa_redis_task_t   *task;
    dsa_redis_queue_t  *q;

    c = s->cache;
    /*
     * Probes are first, because they take microseconds and requests wait for
     * them before they begin.
     */

    q = s->probes.first != NULL ? &s->probes : &s->reads;
    most = s->n_threads > 1 ? s->n_threads - 1 : 1;
    *until_us = 0;

    if (q->first == NULL) {
        q = &s->writes;

        if (q->first == NULL || s->writing >= most) {
            return NULL;
        }

        /* charge bandwidth only for a SET that will be sent */

        if (dsa_clock_ms() >= s->refused_ms) {
            now = dsa_redis_now();
            wait = dsa_redis_bucket(&c->bucket, now,
                                    DSA_KV_HEADER + c->conf.page_bytes);

            if (wait != 0) {
                *until_us = now + wait;
                return NULL;
            }
        }
    }

    task = q->first;
    q->first = task->next;

    if (q->first == NULL) {
        q->last = NULL;
    }

    return task;
}


/* Locked.  Executes a task, which is freed or in another queue afterwards. */

static void
dsa_redis_run(dsa_redis_thread_t *t, dsa_redis_task_t *task)
{
    int                  write, off, note;
    dsa_redis_t         *c;
    dsa_redis_end_t      end;
    dsa_tier_kind_e      kind;
    dsa_redis_server_t  *s;
    dsa_redis_address_t  address;

    s = t->server;
    c = s->cache;
    kind = task->op->kind;
    write = kind == DSA_TIER_WRITE;

    if (write && dsa_clock_ms() < s->refused_ms) {
        dsa_redis_task_fail(c, task);
        dsa_redis_unlock(c);
        dsa_redis_lock(c);
        return;
    }

    if (task->op->begin_us == 0) {
        task->op->begin_us = dsa_redis_now();
    }

    s->busy++;
    s->writing += write;
    dsa_redis_unlock(c);

    dsa_redis_execute(t, task, &end);

    if (end.redirect == DSA_REDIS_MOVED) {
        dsa_redis_lock(c);
        dsa_redis_read_map(t);
        dsa_redis_unlock(c);
    }

    dsa_redis_lock(c);

    s->busy--;
    s->writing -= write;

    address = s->address;
    note = end.sent && dsa_redis_note(s, kind, &end);
    off = end.failed && s->on && !c->closing
          && dsa_redis_server_off(s, &end.err);

    if (!s->on && s->busy == 0) {
        (void) pthread_cond_broadcast(&s->work);
    }

    if (task->probe != NULL) {
        dsa_redis_part_end(c, task, end.absent,
                           end.result == DSA_TIER_FAILED,
                           end.redirect == DSA_REDIS_MOVED);

    } else if (end.redirect != DSA_REDIS_STAY) {
        dsa_redis_redirect(s, task, &end);

    } else {
        dsa_redis_op_end(c, task, end.result);
    }

    dsa_redis_unlock(c);
    dsa_redis_log(address.text, kind, &end, off, note);
    dsa_redis_lock(c);
}


static void
dsa_redis_execute(dsa_redis_thread_t *t, dsa_redis_task_t *task,
    dsa_redis_end_t *end)
{
    int                rc;
    size_t             len;
    const char        *asking;
    dsa_redis_t       *c;
    dsa_tier_op_t     *op;
    dsa_redis_reply_t  r;

    c = t->server->cache;
    op = task->op;

    memset(end, 0, offsetof(dsa_redis_end_t, reply));
    end->reply.type = 0;
    end->reply.text[0] = '\0';
    end->result = DSA_TIER_FAILED;

    if (task->probe != NULL) {
        while (task->probe->server[end->absent] != t->server->number) {
            end->absent++;
        }
    }

    /* a SET is completed even when the cache is closing */

    t->conn.wire.stop_fd = op->kind == DSA_TIER_WRITE ? -1 : c->stop_fd;

    dsa_redis_conn_begin(&t->conn, op->kind == DSA_TIER_PROBE
                                   ? 0 : DSA_KV_HEADER + c->conf.page_bytes);

    rc = dsa_redis_ready(t, &end->err);

    if (rc == DSA_OK && task->asking) {
        asking = "ASKING";
        len = strlen(asking);
        rc = dsa_redis_conn_command(&t->conn, 1, &asking, &len, &r, &end->err);
    }

    if (rc == DSA_OK) {
        switch (op->kind) {

        case DSA_TIER_READ:
            rc = dsa_redis_get(t, task, end);
            break;

        case DSA_TIER_WRITE:
            rc = dsa_redis_set(t, task, end);
            break;

        case DSA_TIER_PROBE:
            rc = dsa_redis_probe(t, task, end);
            break;
        }
    }

    end->failed = rc != DSA_OK;
}


/*
 * Opens the connection if it is not open.  A connection that the server has
 * closed, or that was opened before the server was off, is replaced, because
 * the address may have changed.
 */

static int
dsa_redis_ready(dsa_redis_thread_t *t, dsa_err_t *err)
{
    dsa_redis_server_t  *s;

    s = t->server;

    if (t->epoch == s->epoch && dsa_redis_conn_idle(&t->conn)) {
        return DSA_OK;
    }

    dsa_redis_conn_close(&t->conn);
    t->epoch = s->epoch;

    return dsa_redis_conn_open(&t->conn, &s->address, s->cache->conf.user,
                               s->cache->conf.password, err);
}


static int
dsa_redis_get(dsa_redis_thread_t *t, dsa_redis_task_t *task,
    dsa_redis_end_t *end)
{
    char                key[DSA_KV_KEY + 1];
    uint8_t             header[DSA_KV_HEADER];
    uint64_t            bytes;
    dsa_tier_op_t      *op;
    dsa_redis_reply_t  *r;
    const char         *fingerprint;

    op = task->op;
    r = &end->reply;
    bytes = t->server->cache->conf.page_bytes;
    fingerprint = t->server->cache->fingerprint;

    dsa_kv_key(key, op->digest->byte);

    if (dsa_redis_conn_get(&t->conn, key, header, op->page, bytes, r,
                           &end->err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (r->type == DSA_REPLY_STRING && r->number == -1) {
        end->result = DSA_TIER_MISS;
        end->sent = 1;
        return DSA_OK;
    }

    if (r->type == DSA_REPLY_STRING
        && (uint64_t) r->number == DSA_KV_HEADER + bytes
        && dsa_kv_valid(header, op->digest->byte, fingerprint, op->page, bytes))
    {
        end->result = DSA_TIER_DONE;
        end->sent = 1;
        return DSA_OK;
    }

    if (r->type == DSA_REPLY_STRING || dsa_redis_reply_is(r, "WRONGTYPE")) {
        r->type = 0;
        end->sent = 1;
        return dsa_redis_invalid(t, key, end);
    }

    if (r->type != DSA_REPLY_ERROR) {
        dsa_redis_conn_close(&t->conn);
        return dsa_error(&end->err, "protocol error: the reply to GET is "
                         "neither a string nor an error");
    }

    return dsa_redis_refused(end);
}


/*
 * Deletes a value that is not the page of its key.  If Redis rejects the
 * command, the next GET finds the value again.
 */

static int
dsa_redis_invalid(dsa_redis_thread_t *t, const char *key, dsa_redis_end_t *end)
{
    size_t              len[2];
    const char         *argv[2];
    dsa_redis_reply_t   r;

    end->result = DSA_TIER_INVALID;

    argv[0] = "UNLINK";
    argv[1] = key;
    len[0] = strlen(argv[0]);
    len[1] = DSA_KV_KEY;

    if (dsa_redis_ready(t, &end->err) != DSA_OK) {
        return DSA_ERROR;
    }

    return dsa_redis_conn_command(&t->conn, 2, argv, len, &r, &end->err);
}


static int
dsa_redis_set(dsa_redis_thread_t *t, dsa_redis_task_t *task,
    dsa_redis_end_t *end)
{
    char                key[DSA_KV_KEY + 1];
    uint8_t             header[DSA_KV_HEADER];
    dsa_tier_op_t      *op;
    const dsa_redis_t  *c;

    op = task->op;
    c = t->server->cache;

    dsa_kv_key(key, op->digest->byte);
    dsa_kv_header(header, op->digest->byte, c->fingerprint, op->page,
                  c->conf.page_bytes);

    if (dsa_redis_conn_set(&t->conn, key, header, op->page,
                           c->conf.page_bytes, c->conf.ttl_s, &end->reply,
                           &end->err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (end->reply.type == DSA_REPLY_STATUS) {
        end->result = DSA_TIER_DONE;
        end->sent = 1;
        return DSA_OK;
    }

    return dsa_redis_refused(end);
}


/* Probes the pages of this server, in chunks, until one is absent. */

static int
dsa_redis_probe(dsa_redis_thread_t *t, dsa_redis_task_t *task,
    dsa_redis_end_t *end)
{
    int                  rc;
    uint32_t             i, n, found, limit;
    uint32_t             index[DSA_REDIS_CHUNK];
    dsa_redis_t         *c;
    dsa_redis_probe_t   *probe;
    const dsa_digest_t  *digest[DSA_REDIS_CHUNK];

    c = t->server->cache;
    probe = task->probe;
    i = end->absent;

    for ( ;; ) {

        /* another part of the probe may have found an absent page meanwhile */

        dsa_redis_lock(c);
        limit = probe->found;
        dsa_redis_unlock(c);

        for (n = 0; i < limit && n < DSA_REDIS_CHUNK; i++) {
            if (probe->server[i] == t->server->number) {
                digest[n] = &task->op->digest[i];
                index[n++] = i;
            }
        }

        if (n == 0) {
            end->absent = limit;
            break;
        }

        end->absent = index[0];
        end->reply.type = 0;

        if (dsa_redis_conn_exists(&t->conn, digest, n, &found, &end->reply,
                                  &end->err)
            != DSA_OK)
        {
            return DSA_ERROR;
        }

        if (found < n) {
            end->absent = index[found];

            if (end->reply.type != DSA_REPLY_ERROR) {
                break;
            }

            /* pages of a cluster slot that is being migrated count as absent */

            rc = dsa_redis_refused(end);

            if (end->redirect != DSA_REDIS_STAY) {
                end->result = DSA_TIER_DONE;
            }

            return rc;
        }
    }

    end->result = DSA_TIER_DONE;
    end->sent = 1;

    return DSA_OK;
}


/*
 * Handles an error reply.  DSA_ERROR if this server cannot execute any
 * command, with the text of the reply as the cause.
 */

static int
dsa_redis_refused(dsa_redis_end_t *end)
{
    const dsa_redis_reply_t  *r;

    r = &end->reply;

    if (dsa_redis_reply_is(r, "MOVED")) {
        end->redirect = DSA_REDIS_MOVED;
        return DSA_OK;
    }

    if (dsa_redis_reply_is(r, "ASK")) {
        end->redirect = DSA_REDIS_ASK;
        return DSA_OK;
    }

    if (dsa_redis_reply_is(r, "LOADING") || dsa_redis_reply_is(r, "NOAUTH")
        || dsa_redis_reply_is(r, "MASTERDOWN"))
    {
        return dsa_error(&end->err, "%.400s", r->text);
    }

    end->sent = 1;

    return DSA_OK;
}


/*
 * Locked.  Moves a GET or SET to the server in the redirection, once.  If that
 * server is not on, the operation fails.
 */

static void
dsa_redis_redirect(dsa_redis_server_t *s, dsa_redis_task_t *task,
    dsa_redis_end_t *end)
{
    uint32_t              i;
    dsa_err_t             err;
    dsa_redis_t          *c;
    dsa_redis_server_t   *to;
    dsa_redis_address_t   address;

    c = s->cache;
    to = NULL;

    if (end->redirect == DSA_REDIS_MOVED) {
        to = dsa_redis_route(c, task->op->digest);

    } else if (dsa_cluster_redirect(&address, end->reply.text, &s->address,
                                    &err)
               == DSA_OK)
    {
        for (i = 0; i < c->n_servers; i++) {
            if (strcmp(c->server[i].address.text, address.text) == 0) {
                to = &c->server[i];
            }
        }

        /* the node is not in the map yet: add it for later operations */

        if (to == NULL && !c->closing) {
            to = dsa_redis_server_add(c, &address, &err);
        }

        if (to != NULL && !to->mapped) {
            to->mapped = 1;
            dsa_redis_server_count(c);
            (void) pthread_cond_broadcast(&to->work);
        }
    }

    if (to == NULL || !to->on || to == s || task->redirected || c->closing) {
        dsa_redis_op_end(c, task, DSA_TIER_FAILED);
        return;
    }

    task->redirected = 1;
    task->asking = end->redirect == DSA_REDIS_ASK;
    dsa_redis_push(to, task, 1);
}


/*
 * Locked.  Reads the map of the cluster from this thread's server.  If that
 * fails, the next operation reports the failure of the server.
 */

static void
dsa_redis_read_map(dsa_redis_thread_t *t)
{
    int                   rc, is_cluster;
    dsa_err_t             err;
    dsa_redis_t          *c;
    dsa_cluster_map_t     map;
    dsa_redis_server_t   *s;

    s = t->server;
    c = s->cache;

    /* set this first, so that other threads do not read the map as well */

    c->map_ms = dsa_clock_ms();
    s->busy++;
    dsa_redis_unlock(c);

    t->conn.wire.stop_fd = c->stop_fd;
    dsa_redis_conn_begin(&t->conn, 0);
    rc = dsa_redis_ready(t, &err);

    if (rc == DSA_OK) {
        rc = dsa_redis_conn_map(&t->conn, &s->address, &map, &is_cluster,
                                &err);
    }

    dsa_redis_lock(c);

    s->busy--;

    if (rc == DSA_OK && is_cluster) {
        dsa_redis_server_map(c, &map);
    }

    if (!s->on && s->busy == 0) {
        (void) pthread_cond_broadcast(&s->work);
    }

    dsa_redis_unlock(c);
    dsa_redis_lock(c);
}


/*
 * Locked.  Compares the reply with the last one to this kind of operation.
 * Returns 1 if the caller has to log the change.  After a rejected SET no
 * other one is sent for a while, because each would transfer a whole page in
 * vain.
 */

static int
dsa_redis_note(dsa_redis_server_t *s, dsa_tier_kind_e kind,
    const dsa_redis_end_t *end)
{
    char  code[DSA_REDIS_CODE];

    code[0] = '\0';

    if (end->reply.type == DSA_REPLY_ERROR) {
        (void) sscanf(end->reply.text, "%31s", code);

        if (kind == DSA_TIER_WRITE) {
            s->refused_ms = dsa_clock_ms() + DSA_REDIS_REFUSED_MS;
        }
    }

    if (strcmp(code, s->refused[kind]) == 0) {
        return 0;
    }

    (void) snprintf(s->refused[kind], sizeof(code), "%s", code);

    return 1;
}


static void
dsa_redis_log(const char *address, dsa_tier_kind_e kind,
    const dsa_redis_end_t *end, int off, int note)
{
    static const char  *command[] = {
        [DSA_TIER_PROBE] = "EXISTS",
        [DSA_TIER_READ] = "GET",
        [DSA_TIER_WRITE] = "SET"
    };

    if (off) {
        dsa_log(DSA_LOG_WARN, "cache: Redis %s is off: %s", address,
                end->err.text);
    }

    if (note && end->reply.type == DSA_REPLY_ERROR) {
        dsa_log(DSA_LOG_WARN, "cache: Redis %s refuses %s: %.400s", address,
                command[kind], end->reply.text);

    } else if (note) {
        dsa_log(DSA_LOG_NOTICE, "cache: Redis %s accepts %s again", address,
                command[kind]);
    }
}
