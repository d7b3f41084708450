
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_REDIS_H_INCLUDED_
#define _DSA_REDIS_H_INCLUDED_


#include "engine/pages/redis_tls.h"
#include "engine/pages/tier.h"


/*
 * The tier of the KV cache in Redis.  The caller queues operations; the
 * threads of the cache, one for each connection, execute them; the caller
 * collects them when they have ended.  Only these threads wait for Redis.
 *
 * Several addresses are either independent servers or nodes of one Redis
 * Cluster; the first connection checks which.  For independent servers,
 * rendezvous hashing over digest and address chooses the server of a page, so
 * the loss of a server affects only its own pages.  In a Redis Cluster
 * the cluster slot of the key determines the node, by the map that the cluster
 * publishes.
 *
 * Each server is on or off.  It goes off when a connection fails, when a reply
 * is not RESP, or when an operation is too slow: timeout_ms without a byte, or
 * longer than timeout_ms plus the time of its bytes at 10 MB/s.  Then
 * everything that was queued for it ends as DSA_TIER_FAILED, and operations
 * for it are rejected.  One of its threads tries to connect again after 100
 * ms, and doubles this time after each attempt, up to 5 s.  Each change is
 * logged with its cause.
 *
 * After a server has rejected a SET (OOM, READONLY, ...), further SETs for it
 * fail for one second without being sent, because each would transfer a whole
 * page in vain.  The server stays on for reads.
 *
 * All functions except open and close may be called from any thread.  They do
 * not wait for Redis, only for a mutex that is held for microseconds.  When
 * dsa_redis_close() is called, no other call may be in progress.
 *
 * redis_schema/kv.h has the key and the value of a page.
 */

#define DSA_REDIS_SERVERS   64          /* most addresses, and nodes of a
                                           cluster */
#define DSA_REDIS_QUEUE     4096        /* most operations that are queued or
                                           not collected */


typedef struct {
    char *const        *address;        /* [n_addresses], HOST:PORT,
                                           [IPV6]:PORT or unix:PATH */
    uint32_t            n_addresses;
    uint32_t            connections;    /* to each server, 1 .. 64 */
    char               *user;           /* NULL: the default user */
    char               *password;       /* NULL: no AUTH */
    dsa_redis_tls_conf_t  tls;          /* its files are read at open */
    uint64_t            ttl_s;          /* of a page; >= 1 */
    uint64_t            max_bandwidth;  /* bytes/s of writes to all servers
                                           together; 0: no limit */
    uint64_t            timeout_ms;     /* without a byte; >= 1 */
    uint64_t            page_bytes;
    const char         *fingerprint;    /* of the backend, 32 hex digits */

    /*
     * Called when there is something to collect and when the state of a
     * server has changed, in a thread of the cache or in the thread that calls
     * dsa_redis_cancel().  It must not call a
     * function of the cache.  NULL is allowed.
     */

    void              (*wake)(void *data);
    void               *wake_data;
} dsa_redis_conf_t;


typedef struct {
    uint64_t            probes;         /* that were DONE */
    uint64_t            gets;           /* that were DONE */
    uint64_t            sets;           /* that were DONE */
    uint64_t            misses;
    uint64_t            invalid;
    uint64_t            failed;         /* of all kinds, also canceled */
    uint64_t            unconnected;    /* attempts to connect that failed */
    uint64_t            get_bytes;      /* of pages, without headers */
    uint64_t            set_bytes;
    uint32_t            servers;        /* configured, or the cluster's nodes */
    uint32_t            servers_on;
} dsa_redis_stats_t;


typedef struct dsa_redis_s  dsa_redis_t;


/*
 * Starts the threads.  conf and the data that it points to are copied.  A
 * server that cannot be reached is not an error.  NULL with err: an address is
 * not valid or occurs twice, a file of tls cannot be used, or memory is short.
 */
dsa_redis_t *dsa_redis_open(const dsa_redis_conf_t *conf, dsa_err_t *err);

/*
 * Ends the threads.  Reads and probes that are being executed are interrupted;
 * a SET is completed, within its timeout.  A lookup of a host name has no
 * timeout.  Operations that were not collected belong to the caller again.
 * NULL is allowed.
 */
void dsa_redis_close(dsa_redis_t *c);

/*
 * Returns 1 if dsa_redis_submit() would accept an operation for at least one
 * server.  It is two atomic loads.
 */
int dsa_redis_on(const dsa_redis_t *c);

/*
 * Queues an operation, which must exist until it is collected.  Each server
 * executes probes before reads, and reads before writes; if there are several
 * connections, one is reserved for probes and reads.  DSA_AGAIN: the server of
 * the page, or of the first page of a probe, is off; or there are
 * DSA_REDIS_QUEUE operations.
 */
int dsa_redis_submit(dsa_redis_t *c, dsa_tier_op_t *op);

/*
 * Removes the operations with this owner that no thread has begun from the
 * queue.  They end as DSA_TIER_FAILED and are collected like others.
 */
void dsa_redis_cancel(dsa_redis_t *c, const void *owner);

/*
 * Returns the operations that have ended, as a list in the order in which they
 * ended.
 */
dsa_tier_op_t *dsa_redis_collect(dsa_redis_t *c);

/* Returns the number of writes that are queued or being executed. */
uint32_t dsa_redis_writes(dsa_redis_t *c);

/* Copies the counters. */
void dsa_redis_stats(dsa_redis_t *c, dsa_redis_stats_t *stats);


/*
 * redis_tier.c.  Opens a cache as *tier, whose close() closes it.  DSA_ERROR
 * with err as dsa_redis_open().
 */
int dsa_redis_tier(dsa_tier_t *tier, const dsa_redis_conf_t *conf,
    dsa_err_t *err);


#endif /* _DSA_REDIS_H_INCLUDED_ */
