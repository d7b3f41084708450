
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_REDIS_STATE_H_INCLUDED_
#define _DSA_REDIS_STATE_H_INCLUDED_


#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "engine/pages/redis.h"
#include "engine/pages/redis_bucket.h"
#include "engine/pages/redis_cluster.h"
#include "engine/pages/redis_conn.h"


/*
 * Shared by the queue (redis.c), the servers (redis_server.c) and the threads
 * (redis_thread.c) of the cache.  "Locked" means that the caller holds
 * dsa_redis_s.mutex.
 */


#define DSA_REDIS_CODE      32          /* bytes with the NUL */


typedef struct dsa_redis_server_s  dsa_redis_server_t;
typedef struct dsa_redis_task_s    dsa_redis_task_t;


/* A PROBE.  There is a task for each server with some of the pages. */

typedef struct {
    uint32_t                n;          /* pages whose servers are on */
    uint32_t                found;      /* bound of the result: the first page
                                           that is known to be absent, or n */
    uint32_t                parts;      /* tasks that have not ended */
    uint32_t                ended;      /* tasks that were not FAILED */
    int                     moved;      /* the map of the cluster was
                                           outdated */
    int                     retried;    /* the probe was repeated with a new
                                           map */
    uint8_t                 server[];   /* [op->n] */
} dsa_redis_probe_t;


/* A task of a server: an operation, or a part of a PROBE. */

struct dsa_redis_task_s {
    dsa_tier_op_t          *op;
    dsa_redis_probe_t      *probe;      /* NULL unless the op is a PROBE */
    dsa_redis_task_t       *next;
    uint32_t                server;     /* the last server with the task in its
                                           queue */
    int                     redirected; /* was redirected by MOVED or ASK */
    int                     asking;     /* send ASKING before the command */
};


typedef struct {
    dsa_redis_task_t       *first;
    dsa_redis_task_t       *last;
} dsa_redis_queue_t;


typedef struct {
    dsa_redis_server_t     *server;
    pthread_t               thread;
    uint32_t                number;     /* thread 0 connects again when the
                                           server is off */
    uint32_t                epoch;      /* of the server when conn was opened */
    dsa_redis_conn_t        conn;
} dsa_redis_thread_t;


struct dsa_redis_server_s {
    dsa_redis_t            *cache;
    uint32_t                number;

    dsa_redis_address_t     address;    /* changes only while the server is off
                                           and not busy */
    uint64_t                hash;       /* of the address */
    int                     seed;       /* the server is configured */
    int                     mapped;     /* the server is in the map of the
                                           cluster */

    pthread_cond_t          work;       /* a task was added, on was set, or
                                           busy is 0 */
    int                     on;
    uint32_t                epoch;      /* how often the server went on;
                                           changes only while it is not busy */
    int                     off_fd;     /* eventfd; readable: the server went
                                           off */
    uint32_t                busy;       /* threads that execute a task */
    uint32_t                writing;    /* threads that execute a SET */
    dsa_redis_queue_t       probes;     /* all are empty while it is off */
    dsa_redis_queue_t       reads;
    dsa_redis_queue_t       writes;

    uint64_t                since_ms;   /* when the server was last on */
    uint64_t                backoff_ms;
    uint64_t                retry_ms;
    dsa_err_t               cause;      /* why it is off; "" at the start */

    /* the first word of the error reply to the last PROBE, GET and SET; "" if
       it was executed */

    char                    refused[DSA_TIER_WRITE + 1][DSA_REDIS_CODE];
    uint64_t                refused_ms; /* no SET before this */

    uint32_t                n_threads;
    dsa_redis_thread_t     *thread;
};


struct dsa_redis_s {
    dsa_redis_conf_t        conf;       /* address and tls are not used */
    dsa_redis_tls_t        *tls;        /* NULL: without TLS */
    char                    fingerprint[33];

    _Atomic uint32_t        on;         /* servers; written when locked */
    _Atomic uint32_t        ops;        /* that were not collected */

    pthread_mutex_t         mutex;      /* for all that follows */
    pthread_condattr_t      clock;
    int                     closing;
    int                     stop_fd;    /* readable: the cache is closing */
    int                     wake_due;   /* the list of ended operations was
                                           empty, or a server was set on or off
                                           */
    dsa_tier_op_t          *done;
    dsa_tier_op_t          *done_last;
    uint32_t                n_writes;
    dsa_redis_bucket_t      bucket;
    dsa_redis_stats_t       stats;

    int                     cluster;
    uint64_t                map_ms;     /* when the map was read */

    /* for each cluster slot the number of its server */

    uint8_t                 cluster_slot[DSA_CLUSTER_SLOTS];

    uint32_t                n_servers;
    dsa_redis_server_t      server[DSA_REDIS_SERVERS];
};


/*
 * redis.c.  Locked.  End a task and free it; each task ends by exactly one of
 * these calls.  dsa_redis_op_end(): a GET or SET.  dsa_redis_part_end(): a
 * part of a PROBE; absent is the first page that is not known to exist.
 */
void dsa_redis_op_end(dsa_redis_t *c, dsa_redis_task_t *task,
    dsa_tier_result_e result);
void dsa_redis_part_end(dsa_redis_t *c, dsa_redis_task_t *task,
    uint32_t absent, int failed, int moved);

/* Locked.  Ends a task that was not executed. */
void dsa_redis_task_fail(dsa_redis_t *c, dsa_redis_task_t *task);

/*
 * Locked.  Returns the server of a page, or NULL if that server is off or if no
 * server has the cluster slot.
 */
dsa_redis_server_t *dsa_redis_route(dsa_redis_t *c, const dsa_digest_t *digest);

/* Locked.  Adds a task at the end, or at the front, of a server's queue. */
void dsa_redis_push(dsa_redis_server_t *s, dsa_redis_task_t *task, int front);

/* Unlocks, and calls wake() if wake_due was set. */
void dsa_redis_unlock(dsa_redis_t *c);

/* CLOCK_MONOTONIC in microseconds. */
uint64_t dsa_redis_now(void);


/*
 * redis_server.c.  Locked.  Adds a server and starts its threads.  If there
 * are DSA_REDIS_SERVERS already, the entry of a server that is no longer used
 * is replaced.  NULL with err.
 */
dsa_redis_server_t *dsa_redis_server_add(dsa_redis_t *c,
    const dsa_redis_address_t *address, dsa_err_t *err);

/* Locked.  Returns 1 if the server is configured, or a node of the cluster. */
int dsa_redis_server_wanted(const dsa_redis_server_t *s);

/*
 * Locked.  Set the server on, or off because of cause.  When it goes off,
 * tasks in its queues end, and threads that execute one are interrupted.
 * Returns 1 if the caller has to log the change after unlocking.
 */
int dsa_redis_server_on(dsa_redis_server_t *s);
int dsa_redis_server_off(dsa_redis_server_t *s, const dsa_err_t *cause);

/* Locked.  Counts the servers that are on and have pages. */
void dsa_redis_server_count(dsa_redis_t *c);

/* Locked.  Uses a new map of the cluster. */
void dsa_redis_server_map(dsa_redis_t *c, const dsa_cluster_map_t *map);

/*
 * Locked.  Returns 1 if the map has to be read again, because a node is off or
 * a cluster slot has no node.
 */
int dsa_redis_server_map_due(const dsa_redis_t *c, uint64_t now_ms);


/* redis_thread.c.  A thread of a server; data is its dsa_redis_thread_t. */
void *dsa_redis_thread(void *data);


static inline void
dsa_redis_lock(dsa_redis_t *c)
{
    (void) pthread_mutex_lock(&c->mutex);
}


#endif /* _DSA_REDIS_STATE_H_INCLUDED_ */
