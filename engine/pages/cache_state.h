
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CACHE_STATE_H_INCLUDED_
#define _DSA_CACHE_STATE_H_INCLUDED_


#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "engine/pages/cache.h"
#include "engine/pages/cache_bucket.h"
#include "engine/pages/cache_cluster.h"
#include "engine/pages/cache_conn.h"


/*
 * What the queue (cache.c), the servers (cache_server.c) and the threads
 * (cache_thread.c) of the cache share.  "Locked" means that the caller holds
 * dsa_cache_s.mutex.
 */


#define DSA_CACHE_CODE      32          /* bytes with the NUL */


typedef struct dsa_cache_server_s  dsa_cache_server_t;
typedef struct dsa_cache_task_s    dsa_cache_task_t;


/* A PROBE: each server with some of the pages has a task of its own. */

typedef struct {
    uint32_t                n;          /* pages whose servers are on */
    uint32_t                found;      /* no page before this one is known to
                                           be absent */
    uint32_t                parts;      /* tasks that have not ended */
    uint32_t                ended;      /* tasks that were not FAILED */
    int                     moved;      /* the map of the cluster was old */
    int                     retried;    /* with a new map */
    uint8_t                 server[];   /* [op->n] */
} dsa_cache_probe_t;


/* What a server has to do. */

struct dsa_cache_task_s {
    dsa_cache_op_t         *op;
    dsa_cache_probe_t      *probe;      /* NULL unless the op is a PROBE */
    dsa_cache_task_t       *next;
    uint32_t                server;     /* in whose queue it was last */
    int                     redirected; /* by MOVED or ASK, once */
    int                     asking;     /* send ASKING before the command */
};


typedef struct {
    dsa_cache_task_t       *first;
    dsa_cache_task_t       *last;
} dsa_cache_queue_t;


typedef struct {
    dsa_cache_server_t     *server;
    pthread_t               thread;
    uint32_t                number;     /* 0 connects again when it is off */
    uint32_t                epoch;      /* of the server when conn was opened */
    dsa_cache_conn_t        conn;
} dsa_cache_thread_t;


struct dsa_cache_server_s {
    dsa_cache_t            *cache;
    uint32_t                number;

    dsa_cache_address_t     address;    /* changes only while the server is off
                                           and not busy */
    uint64_t                hash;       /* of the address */
    int                     seed;       /* it is configured */
    int                     mapped;     /* it is in the map of the cluster */

    pthread_cond_t          work;       /* a task, on, or busy is 0 */
    int                     on;
    uint32_t                epoch;      /* how often it went on; changes only
                                           while it is not busy */
    int                     off_fd;     /* readable: it went off */
    uint32_t                busy;       /* threads that execute something */
    uint32_t                writing;    /* of these, a SET */
    dsa_cache_queue_t       reads;      /* empty while it is off */
    dsa_cache_queue_t       writes;

    uint64_t                since_ms;   /* when it was on the last time */
    uint64_t                backoff_ms;
    uint64_t                retry_ms;
    dsa_err_t               cause;      /* why it is off; "" at the start */

    /* the first word of the error reply to the last PROBE, GET and SET; "": it
       was executed */

    char                    refused[DSA_CACHE_SET + 1][DSA_CACHE_CODE];
    uint64_t                refused_ms; /* no SET before this */

    uint32_t                n_threads;
    dsa_cache_thread_t     *thread;
};


struct dsa_cache_s {
    dsa_cache_conf_t        conf;       /* address is not used */
    char                    fingerprint[33];

    _Atomic uint32_t        on;         /* servers; written when locked */
    _Atomic uint32_t        ops;        /* that were not collected */

    pthread_mutex_t         mutex;      /* for all that follows */
    pthread_condattr_t      clock;
    int                     closing;
    int                     stop_fd;    /* readable: the cache is closing */
    int                     wake_due;   /* the list of ended operations was
                                           empty */
    dsa_cache_op_t         *done;
    dsa_cache_op_t         *done_last;
    uint32_t                n_writes;
    dsa_cache_bucket_t      bucket;
    dsa_cache_stats_t       stats;

    int                     cluster;
    uint64_t                map_ms;     /* when the map was read */
    uint8_t                 slot[DSA_CLUSTER_SLOTS];    /* of server[] */

    uint32_t                n_servers;
    dsa_cache_server_t      server[DSA_CACHE_SERVERS];
};


/*
 * cache.c.  Locked; each task ends with exactly one of these, which free it.
 * dsa_cache_op_end(): a GET or SET.  dsa_cache_part_end(): a part of a PROBE;
 * absent is the first page that is not known to be there.
 */
void dsa_cache_op_end(dsa_cache_t *c, dsa_cache_task_t *task,
    dsa_cache_result_e result);
void dsa_cache_part_end(dsa_cache_t *c, dsa_cache_task_t *task,
    uint32_t absent, int failed, int moved);

/* Locked.  Ends a task that was not executed. */
void dsa_cache_task_fail(dsa_cache_t *c, dsa_cache_task_t *task);

/* Locked.  The server of a page, or NULL: it is off, or there is none. */
dsa_cache_server_t *dsa_cache_route(dsa_cache_t *c, const dsa_digest_t *digest);

/* Locked.  Adds a task at the end, or at the front, of a server's queue. */
void dsa_cache_push(dsa_cache_server_t *s, dsa_cache_task_t *task, int front);

/* Unlocks, and calls wake() if there is something new to collect. */
void dsa_cache_unlock(dsa_cache_t *c);

/* CLOCK_MONOTONIC in microseconds. */
uint64_t dsa_cache_now(void);


/*
 * cache_server.c.  Adds a server with its threads, which run `entry`; takes the
 * entry of a server that is not used any more if there are DSA_CACHE_SERVERS.
 * NULL with err.  Locked.
 */
dsa_cache_server_t *dsa_cache_server_add(dsa_cache_t *c,
    const dsa_cache_address_t *address, dsa_err_t *err);

/* Locked.  1 if the server is configured, or a node of the cluster. */
int dsa_cache_server_wanted(const dsa_cache_server_t *s);

/*
 * Locked.  The server is on, or off for this cause.  Tasks in its queues end,
 * and threads that execute one are interrupted.  Returns 1 if the caller should
 * log the change when it has unlocked.
 */
int dsa_cache_server_on(dsa_cache_server_t *s);
int dsa_cache_server_off(dsa_cache_server_t *s, const dsa_err_t *cause);

/* Locked.  Counts the servers that are on and have pages. */
void dsa_cache_server_count(dsa_cache_t *c);

/* Locked.  Uses a new map of the cluster. */
void dsa_cache_server_map(dsa_cache_t *c, const dsa_cluster_map_t *map);

/* Locked.  1 if the map should be read again, because a node is off. */
int dsa_cache_server_map_due(const dsa_cache_t *c, uint64_t now_ms);


/* cache_thread.c.  A thread of a server; data is its dsa_cache_thread_t. */
void *dsa_cache_thread(void *data);


static inline void
dsa_cache_lock(dsa_cache_t *c)
{
    (void) pthread_mutex_lock(&c->mutex);
}


#endif /* _DSA_CACHE_STATE_H_INCLUDED_ */
