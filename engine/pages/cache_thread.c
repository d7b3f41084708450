
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/pages/cache_state.h"


#define DSA_CACHE_IDLE_MS       1000    /* between looks at the map */
#define DSA_CACHE_REFUSED_MS    1000    /* without a SET after a refused one */


typedef enum {
    DSA_CACHE_STAY = 0,
    DSA_CACHE_MOVED,
    DSA_CACHE_ASK
} dsa_cache_redirect_e;


/* How the execution of a task ended. */

typedef struct {
    dsa_cache_result_e      result;
    uint32_t                absent;     /* PROBE: as of dsa_cache_part_end() */
    int                     failed;     /* the server failed; err has why */
    int                     sent;       /* Redis executed or refused it */
    dsa_cache_redirect_e    redirect;
    dsa_cache_reply_t       reply;      /* that was not what was expected; type
                                           0: none */
    dsa_err_t               err;
} dsa_cache_end_t;


static void dsa_cache_connect(dsa_cache_thread_t *t);
static dsa_cache_task_t *dsa_cache_next(dsa_cache_server_t *s,
    uint64_t *until_us);
static void dsa_cache_sleep(dsa_cache_server_t *s, uint64_t until_us);
static void dsa_cache_run(dsa_cache_thread_t *t, dsa_cache_task_t *task);
static void dsa_cache_execute(dsa_cache_thread_t *t, dsa_cache_task_t *task,
    dsa_cache_end_t *end);
static int dsa_cache_ready(dsa_cache_thread_t *t, dsa_err_t *err);
static int dsa_cache_get(dsa_cache_thread_t *t, dsa_cache_task_t *task,
    dsa_cache_end_t *end);
static int dsa_cache_invalid(dsa_cache_thread_t *t, const char *key,
    dsa_cache_end_t *end);
static int dsa_cache_set(dsa_cache_thread_t *t, dsa_cache_task_t *task,
    dsa_cache_end_t *end);
static int dsa_cache_probe(dsa_cache_thread_t *t, dsa_cache_task_t *task,
    dsa_cache_end_t *end);
static int dsa_cache_refused(dsa_cache_end_t *end);
static void dsa_cache_redirect(dsa_cache_server_t *s, dsa_cache_task_t *task,
    dsa_cache_end_t *end);
static void dsa_cache_read_map(dsa_cache_thread_t *t);
static int dsa_cache_note(dsa_cache_server_t *s, dsa_cache_kind_e kind,
    const dsa_cache_end_t *end);
static void dsa_cache_log(const char *address, dsa_cache_kind_e kind,
    const dsa_cache_end_t *end, int off, int note);


void *
dsa_cache_thread(void *data)
{
    uint64_t             until;
    dsa_cache_t         *c;
    dsa_cache_task_t    *task;
    dsa_cache_thread_t  *t = data;
    dsa_cache_server_t  *s;

    s = t->server;
    c = s->cache;

    dsa_cache_lock(c);

    while (!c->closing) {

        if (!s->on) {
            if (t->number == 0 && dsa_cache_server_wanted(s)) {
                dsa_cache_connect(t);
            } else {
                dsa_cache_sleep(s, 0);
            }

            continue;
        }

        if (dsa_cache_server_map_due(c, dsa_clock_ms())) {
            dsa_cache_read_map(t);
            continue;
        }

        task = dsa_cache_next(s, &until);

        if (task != NULL) {
            dsa_cache_run(t, task);
        } else {
            dsa_cache_sleep(s, until);
        }
    }

    dsa_cache_unlock(c);
    dsa_cache_conn_close(&t->conn);

    return NULL;
}


/* Locked.  Waits for work, until a time if it is not 0. */

static void
dsa_cache_sleep(dsa_cache_server_t *s, uint64_t until_us)
{
    dsa_cache_t      *c;
    struct timespec   ts;

    c = s->cache;

    /*
     * After the end of an operation dsa_cache_unlock() has to report it.  A
     * wait would unlock the mutex without the report.
     */

    assert(!c->wake_due);

    if (c->cluster && until_us == 0) {
        until_us = dsa_cache_now() + DSA_CACHE_IDLE_MS * 1000;
    }

    if (until_us == 0) {
        (void) pthread_cond_wait(&s->work, &c->mutex);
        return;
    }

    ts.tv_sec = (time_t) (until_us / 1000000);
    ts.tv_nsec = (long) (until_us % 1000000) * 1000;

    (void) pthread_cond_timedwait(&s->work, &c->mutex, &ts);
}


/* Locked.  Connects to a server that is off, or waits until it may. */

static void
dsa_cache_connect(dsa_cache_thread_t *t)
{
    int                   rc, log, is_cluster;
    uint64_t              n, now;
    dsa_err_t             err;
    dsa_cache_t          *c;
    dsa_cluster_map_t     map;
    dsa_cache_server_t   *s;
    dsa_cache_address_t   address;

    s = t->server;
    c = s->cache;
    now = dsa_clock_ms();

    if (s->busy != 0) {
        dsa_cache_sleep(s, 0);
        return;
    }

    if (now < s->retry_ms) {
        dsa_cache_sleep(s, s->retry_ms * 1000);
        return;
    }

    /* all interrupted threads have ended: the interruption is over */

    (void) (read(s->off_fd, &n, sizeof(n)) == sizeof(n));

    address = s->address;
    s->busy++;
    dsa_cache_unlock(c);

    dsa_cache_conn_close(&t->conn);
    t->conn.stop_fd = c->stop_fd;
    dsa_cache_conn_begin(&t->conn, 0);

    is_cluster = 0;
    rc = dsa_cache_conn_open(&t->conn, &address, c->conf.user,
                             c->conf.password, &err);

    if (rc == DSA_OK) {
        rc = dsa_cache_conn_map(&t->conn, &address, &map, &is_cluster, &err);
    }

    dsa_cache_lock(c);

    s->busy--;

    if (c->closing) {
        return;
    }

    if (rc == DSA_OK) {
        log = dsa_cache_server_on(s);
        t->epoch = s->epoch;

        if (is_cluster) {
            dsa_cache_server_map(c, &map);
        }

    } else {
        log = dsa_cache_server_off(s, &err);
    }

    dsa_cache_unlock(c);

    if (log && rc == DSA_OK) {
        dsa_log(DSA_LOG_NOTICE, "cache: Redis %s is on%s", address.text,
                is_cluster ? ", a node of a cluster" : "");
    } else if (log) {
        dsa_log(DSA_LOG_WARN, "cache: Redis %s is off: %s", address.text,
                err.text);
    }

    dsa_cache_lock(c);
}


/*
 * Locked.  The next task of a server, or NULL; *until_us is when a write that
 * waits for bandwidth may be sent, or 0.  One connection is left for reads if
 * there are several.
 */

static dsa_cache_task_t *
dsa_cache_next(dsa_cache_server_t *s, uint64_t *until_us)
{
    uint32_t            most;
    uint64_t            now, wait;
    dsa_cache_t        *c;
    dsa_cache_task_t   *task;
    dsa_cache_queue_t  *q;

    c = s->cache;
    q = &s->reads;
    most = s->n_threads > 1 ? s->n_threads - 1 : 1;
    *until_us = 0;

    if (q->first == NULL) {
        q = &s->writes;

        if (q->first == NULL || s->writing >= most) {
            return NULL;
        }

        /* a SET that will not be sent needs no bandwidth */

        if (dsa_clock_ms() >= s->refused_ms) {
            now = dsa_cache_now();
            wait = dsa_cache_bucket(&c->bucket, now,
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
dsa_cache_run(dsa_cache_thread_t *t, dsa_cache_task_t *task)
{
    int                   write, off, note;
    dsa_cache_t          *c;
    dsa_cache_end_t       end;
    dsa_cache_kind_e      kind;
    dsa_cache_server_t   *s;
    dsa_cache_address_t   address;

    s = t->server;
    c = s->cache;
    kind = task->op->kind;
    write = kind == DSA_CACHE_SET;

    if (write && dsa_clock_ms() < s->refused_ms) {
        dsa_cache_task_fail(c, task);
        dsa_cache_unlock(c);
        dsa_cache_lock(c);
        return;
    }

    if (task->op->begin_us == 0) {
        task->op->begin_us = dsa_cache_now();
    }

    s->busy++;
    s->writing += write;
    dsa_cache_unlock(c);

    dsa_cache_execute(t, task, &end);

    if (end.redirect == DSA_CACHE_MOVED) {
        dsa_cache_lock(c);
        dsa_cache_read_map(t);
        dsa_cache_unlock(c);
    }

    dsa_cache_lock(c);

    s->busy--;
    s->writing -= write;

    address = s->address;
    note = end.sent && dsa_cache_note(s, kind, &end);
    off = end.failed && s->on && !c->closing
          && dsa_cache_server_off(s, &end.err);

    if (!s->on && s->busy == 0) {
        (void) pthread_cond_broadcast(&s->work);
    }

    if (task->probe != NULL) {
        dsa_cache_part_end(c, task, end.absent,
                           end.result == DSA_CACHE_FAILED,
                           end.redirect == DSA_CACHE_MOVED);

    } else if (end.redirect != DSA_CACHE_STAY) {
        dsa_cache_redirect(s, task, &end);

    } else {
        dsa_cache_op_end(c, task, end.result);
    }

    dsa_cache_unlock(c);
    dsa_cache_log(address.text, kind, &end, off, note);
    dsa_cache_lock(c);
}


static void
dsa_cache_execute(dsa_cache_thread_t *t, dsa_cache_task_t *task,
    dsa_cache_end_t *end)
{
    int                  rc;
    size_t               len;
    const char          *asking;
    dsa_cache_t         *c;
    dsa_cache_op_t      *op;
    dsa_cache_reply_t    r;

    c = t->server->cache;
    op = task->op;

    memset(end, 0, offsetof(dsa_cache_end_t, reply));
    end->reply.type = 0;
    end->reply.text[0] = '\0';
    end->result = DSA_CACHE_FAILED;

    if (task->probe != NULL) {
        while (task->probe->server[end->absent] != t->server->number) {
            end->absent++;
        }
    }

    /* a SET ends also when the cache is closing */

    t->conn.stop_fd = op->kind == DSA_CACHE_SET ? -1 : c->stop_fd;

    dsa_cache_conn_begin(&t->conn, op->kind == DSA_CACHE_PROBE
                                   ? 0 : DSA_KV_HEADER + c->conf.page_bytes);

    rc = dsa_cache_ready(t, &end->err);

    if (rc == DSA_OK && task->asking) {
        asking = "ASKING";
        len = strlen(asking);
        rc = dsa_cache_conn_command(&t->conn, 1, &asking, &len, &r, &end->err);
    }

    if (rc == DSA_OK) {
        switch (op->kind) {

        case DSA_CACHE_GET:
            rc = dsa_cache_get(t, task, end);
            break;

        case DSA_CACHE_SET:
            rc = dsa_cache_set(t, task, end);
            break;

        case DSA_CACHE_PROBE:
            rc = dsa_cache_probe(t, task, end);
            break;
        }
    }

    end->failed = rc != DSA_OK;
}


/*
 * Opens the connection, again if the server closed it in the meantime.  One
 * from before the server was off may be to another address.
 */

static int
dsa_cache_ready(dsa_cache_thread_t *t, dsa_err_t *err)
{
    dsa_cache_server_t  *s;

    s = t->server;

    if (t->epoch == s->epoch && dsa_cache_conn_idle(&t->conn)) {
        return DSA_OK;
    }

    dsa_cache_conn_close(&t->conn);
    t->epoch = s->epoch;

    return dsa_cache_conn_open(&t->conn, &s->address, s->cache->conf.user,
                               s->cache->conf.password, err);
}


static int
dsa_cache_get(dsa_cache_thread_t *t, dsa_cache_task_t *task,
    dsa_cache_end_t *end)
{
    char                 key[DSA_KV_KEY + 1];
    uint8_t              header[DSA_KV_HEADER];
    uint64_t             bytes;
    dsa_cache_op_t      *op;
    dsa_cache_reply_t   *r;
    const char          *fingerprint;

    op = task->op;
    r = &end->reply;
    bytes = t->server->cache->conf.page_bytes;
    fingerprint = t->server->cache->fingerprint;

    dsa_kv_key(key, op->digest->byte);

    if (dsa_cache_conn_get(&t->conn, key, header, op->page, bytes, r,
                           &end->err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (r->type == DSA_REPLY_STRING && r->number == -1) {
        end->result = DSA_CACHE_MISS;
        end->sent = 1;
        return DSA_OK;
    }

    if (r->type == DSA_REPLY_STRING
        && (uint64_t) r->number == DSA_KV_HEADER + bytes
        && dsa_kv_valid(header, op->digest->byte, fingerprint, op->page, bytes))
    {
        end->result = DSA_CACHE_DONE;
        end->sent = 1;
        return DSA_OK;
    }

    if (r->type == DSA_REPLY_STRING || dsa_cache_reply_is(r, "WRONGTYPE")) {
        r->type = 0;
        end->sent = 1;
        return dsa_cache_invalid(t, key, end);
    }

    if (r->type != DSA_REPLY_ERROR) {
        dsa_cache_conn_close(&t->conn);
        return dsa_error(&end->err, "protocol error: the reply to GET is "
                         "neither a string nor an error");
    }

    return dsa_cache_refused(end);
}


/*
 * Deletes a value that is not its page.  If Redis refuses that, it is found
 * again the next time.
 */

static int
dsa_cache_invalid(dsa_cache_thread_t *t, const char *key, dsa_cache_end_t *end)
{
    size_t              len[2];
    const char         *argv[2];
    dsa_cache_reply_t   r;

    end->result = DSA_CACHE_INVALID;

    argv[0] = "UNLINK";
    argv[1] = key;
    len[0] = strlen(argv[0]);
    len[1] = DSA_KV_KEY;

    if (dsa_cache_ready(t, &end->err) != DSA_OK) {
        return DSA_ERROR;
    }

    return dsa_cache_conn_command(&t->conn, 2, argv, len, &r, &end->err);
}


static int
dsa_cache_set(dsa_cache_thread_t *t, dsa_cache_task_t *task,
    dsa_cache_end_t *end)
{
    char                 key[DSA_KV_KEY + 1];
    uint8_t              header[DSA_KV_HEADER];
    dsa_cache_op_t      *op;
    const dsa_cache_t   *c;

    op = task->op;
    c = t->server->cache;

    dsa_kv_key(key, op->digest->byte);
    dsa_kv_header(header, op->digest->byte, c->fingerprint, op->page,
                  c->conf.page_bytes);

    if (dsa_cache_conn_set(&t->conn, key, header, op->page,
                           c->conf.page_bytes, c->conf.ttl_s, &end->reply,
                           &end->err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (end->reply.type == DSA_REPLY_STATUS) {
        end->result = DSA_CACHE_DONE;
        end->sent = 1;
        return DSA_OK;
    }

    return dsa_cache_refused(end);
}


/* The pages of this server, in chunks, until one is absent. */

static int
dsa_cache_probe(dsa_cache_thread_t *t, dsa_cache_task_t *task,
    dsa_cache_end_t *end)
{
    int                  rc;
    uint32_t             i, n, found, limit;
    uint32_t             index[DSA_CACHE_CHUNK];
    dsa_cache_t         *c;
    dsa_cache_probe_t   *probe;
    const dsa_digest_t  *digest[DSA_CACHE_CHUNK];

    c = t->server->cache;
    probe = task->probe;
    i = end->absent;

    for ( ;; ) {

        /* another part may have ended before the pages of the next chunk */

        dsa_cache_lock(c);
        limit = probe->found;
        dsa_cache_unlock(c);

        for (n = 0; i < limit && n < DSA_CACHE_CHUNK; i++) {
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

        if (dsa_cache_conn_exists(&t->conn, digest, n, &found, &end->reply,
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

            /* the rest of a slot that moves to another node counts as absent */

            rc = dsa_cache_refused(end);

            if (end->redirect != DSA_CACHE_STAY) {
                end->result = DSA_CACHE_DONE;
            }

            return rc;
        }
    }

    end->result = DSA_CACHE_DONE;
    end->sent = 1;

    return DSA_OK;
}


/*
 * An error reply.  DSA_ERROR if this server cannot execute any command, with
 * the text of the reply as the cause.
 */

static int
dsa_cache_refused(dsa_cache_end_t *end)
{
    const dsa_cache_reply_t  *r;

    r = &end->reply;

    if (dsa_cache_reply_is(r, "MOVED")) {
        end->redirect = DSA_CACHE_MOVED;
        return DSA_OK;
    }

    if (dsa_cache_reply_is(r, "ASK")) {
        end->redirect = DSA_CACHE_ASK;
        return DSA_OK;
    }

    if (dsa_cache_reply_is(r, "LOADING") || dsa_cache_reply_is(r, "NOAUTH")
        || dsa_cache_reply_is(r, "MASTERDOWN"))
    {
        return dsa_error(&end->err, "%.400s", r->text);
    }

    end->sent = 1;

    return DSA_OK;
}


/*
 * Locked.  Moves a GET or SET to the server that the reply points to, once.
 * The operation fails if this server is not on: it does not wait for it.
 */

static void
dsa_cache_redirect(dsa_cache_server_t *s, dsa_cache_task_t *task,
    dsa_cache_end_t *end)
{
    uint32_t              i;
    dsa_err_t             err;
    dsa_cache_t          *c;
    dsa_cache_server_t   *to;
    dsa_cache_address_t   address;

    c = s->cache;
    to = NULL;

    if (end->redirect == DSA_CACHE_MOVED) {
        to = dsa_cache_route(c, task->op->digest);

    } else if (dsa_cluster_redirect(&address, end->reply.text, &s->address,
                                    &err)
               == DSA_OK)
    {
        for (i = 0; i < c->n_servers; i++) {
            if (strcmp(c->server[i].address.text, address.text) == 0) {
                to = &c->server[i];
            }
        }

        /* a node without slots is not in the map; it is used the next time */

        if (to == NULL && !c->closing) {
            to = dsa_cache_server_add(c, &address, &err);
        }

        if (to != NULL && !to->mapped) {
            to->mapped = 1;
            dsa_cache_server_count(c);
            (void) pthread_cond_broadcast(&to->work);
        }
    }

    if (to == NULL || !to->on || to == s || task->redirected || c->closing) {
        dsa_cache_op_end(c, task, DSA_CACHE_FAILED);
        return;
    }

    task->redirected = 1;
    task->asking = end->redirect == DSA_CACHE_ASK;
    dsa_cache_push(to, task, 1);
}


/*
 * Locked.  Reads the map of the cluster from this thread's server.  If the
 * server fails, its next operation reports that.
 */

static void
dsa_cache_read_map(dsa_cache_thread_t *t)
{
    int                   rc, is_cluster;
    dsa_err_t             err;
    dsa_cache_t          *c;
    dsa_cluster_map_t     map;
    dsa_cache_server_t   *s;

    s = t->server;
    c = s->cache;

    /* other threads see that the map is being read */

    c->map_ms = dsa_clock_ms();
    s->busy++;
    dsa_cache_unlock(c);

    t->conn.stop_fd = c->stop_fd;
    dsa_cache_conn_begin(&t->conn, 0);
    rc = dsa_cache_ready(t, &err);

    if (rc == DSA_OK) {
        rc = dsa_cache_conn_map(&t->conn, &s->address, &map, &is_cluster,
                                &err);
    }

    dsa_cache_lock(c);

    s->busy--;

    if (rc == DSA_OK && is_cluster) {
        dsa_cache_server_map(c, &map);
    }

    if (!s->on && s->busy == 0) {
        (void) pthread_cond_broadcast(&s->work);
    }

    dsa_cache_unlock(c);
    dsa_cache_lock(c);
}


/*
 * Locked.  Compares the reply with the last one to this kind of operation; 1 if
 * the caller should log the change.  A server that refuses a SET gets none for
 * a while, because each of them would send a whole page for nothing.
 */

static int
dsa_cache_note(dsa_cache_server_t *s, dsa_cache_kind_e kind,
    const dsa_cache_end_t *end)
{
    char  code[DSA_CACHE_CODE];

    code[0] = '\0';

    if (end->reply.type == DSA_REPLY_ERROR) {
        (void) sscanf(end->reply.text, "%31s", code);

        if (kind == DSA_CACHE_SET) {
            s->refused_ms = dsa_clock_ms() + DSA_CACHE_REFUSED_MS;
        }
    }

    if (strcmp(code, s->refused[kind]) == 0) {
        return 0;
    }

    (void) snprintf(s->refused[kind], sizeof(code), "%s", code);

    return 1;
}


static void
dsa_cache_log(const char *address, dsa_cache_kind_e kind,
    const dsa_cache_end_t *end, int off, int note)
{
    static const char  *command[] = {
        [DSA_CACHE_PROBE] = "EXISTS",
        [DSA_CACHE_GET] = "GET",
        [DSA_CACHE_SET] = "SET"
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
