
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_REDIS_H_INCLUDED_
#define _DSA_REDIS_H_INCLUDED_


#include "base/error.h"
#include "engine/pages/digest.h"


/*
 * Pages of the KV cache in Redis.  The caller queues operations; the threads of
 * the cache, one for each connection, execute them; the caller collects them
 * when they have ended.  Only these threads wait for Redis.
 *
 * Several addresses are either independent servers or nodes of one Redis
 * Cluster, which the first connection finds out.  Rendezvous hashing over
 * digest and address chooses the server of a page, so that the loss of a server
 * affects only its own pages.  In a cluster the slot of the key decides, and
 * the nodes come from the map of the cluster.
 *
 * Each server is on or off for itself.  It goes off, and everything that was
 * queued for it ends as DSA_REDIS_FAILED, when a connection fails, when a reply
 * is not RESP, or when an operation is too slow: timeout_ms without a byte, or
 * longer than timeout_ms and its bytes at 10 MB/s.  Operations for a server
 * that is off are rejected.  One of its threads tries to connect again after
 * 100 ms, then after twice as long each time, up to 5 s.  The log has each
 * change with the cause.
 *
 * After a SET that a server refused (OOM, READONLY, ...), others for it fail
 * for one second without being sent, because each would send a whole page for
 * nothing.  The server stays on for reads.
 *
 * All functions but open and close may be called from any thread; those with
 * the same cache do not wait for Redis, but for a mutex that is held for
 * microseconds.  When dsa_redis_close() is called, no other call may be in
 * progress.
 *
 * redis_schema/kv.h has the key and the value of a page.
 */

#define DSA_REDIS_SERVERS   64          /* most addresses, and nodes of a
                                           cluster */
#define DSA_REDIS_QUEUE     4096        /* most operations that were queued and
                                           not collected */


typedef struct {
    char *const        *address;        /* [n_addresses], HOST:PORT,
                                           [IPV6]:PORT or unix:PATH */
    uint32_t            n_addresses;
    uint32_t            connections;    /* to each server, 1 .. 64 */
    char               *user;           /* NULL: the default user */
    char               *password;       /* NULL: no AUTH */
    uint64_t            ttl_s;          /* of a page; >= 1 */
    uint64_t            max_bandwidth;  /* bytes/s of writes to all servers
                                           together; 0: no limit */
    uint64_t            timeout_ms;     /* without a byte; >= 1 */
    uint64_t            page_bytes;
    const char         *fingerprint;    /* of the backend, 32 hex digits */

    /*
     * Called when there is something to collect: by a thread of the cache, or
     * by the one that calls dsa_redis_cancel().  It must not call a function of
     * the cache.  NULL is allowed.
     */

    void              (*wake)(void *data);
    void               *wake_data;
} dsa_redis_conf_t;


typedef enum {
    DSA_REDIS_PROBE = 1,                /* count the pages that are there */
    DSA_REDIS_GET,                      /* read one page */
    DSA_REDIS_SET                       /* write one page */
} dsa_redis_kind_e;


typedef enum {
    DSA_REDIS_DONE = 1,
    DSA_REDIS_MISS,                     /* GET: there is no such page */
    DSA_REDIS_INVALID,                  /* GET: there is a value that is not
                                           this page; it was deleted */
    DSA_REDIS_FAILED                    /* the server failed, or was too slow */
} dsa_redis_result_e;


typedef struct dsa_redis_op_s  dsa_redis_op_t;

struct dsa_redis_op_s {
    dsa_redis_kind_e    kind;
    dsa_redis_result_e  result;         /* out */
    const dsa_digest_t *digest;         /* [n]; the caller keeps them until the
                                           operation is collected */
    uint32_t            n;              /* PROBE: >= 1; otherwise 1 */
    uint32_t            found;          /* out, PROBE: the first `found` pages
                                           are all there; a page whose server
                                           is off counts as absent */
    uint8_t            *page;           /* GET, SET: page_bytes, which only the
                                           cache may access until the operation
                                           is collected; GET: the bytes are
                                           undefined unless it is DONE */
    uint64_t            queued_us;      /* out: CLOCK_MONOTONIC */
    uint64_t            begin_us;       /* out: when a thread began it; 0: none
                                           did */
    uint64_t            end_us;         /* out */
    void               *owner;          /* the caller's */
    dsa_redis_op_t     *next;           /* the cache's until collected, then of
                                           the list of dsa_redis_collect() */
};


typedef struct {
    uint64_t            probes;         /* that were DONE */
    uint64_t            gets;           /* that were DONE */
    uint64_t            sets;           /* that were DONE */
    uint64_t            misses;
    uint64_t            invalid;
    uint64_t            failed;         /* of all kinds, also canceled */
    uint64_t            get_bytes;      /* of pages, without headers */
    uint64_t            set_bytes;
    uint32_t            servers;        /* configured, or the cluster's nodes */
    uint32_t            servers_on;
} dsa_redis_stats_t;


typedef struct dsa_redis_s  dsa_redis_t;


/*
 * Starts the threads; conf and what it points to are copied.  A server that
 * cannot be reached is not an error.  NULL with err: an address is wrong or
 * occurs twice, or there is not enough memory.
 */
dsa_redis_t *dsa_redis_open(const dsa_redis_conf_t *conf, dsa_err_t *err);

/*
 * Ends the threads.  Reads and probes that are being executed are interrupted;
 * a SET is executed to its end, which takes a timeout at most.  Host names are
 * resolved without a limit of time.  Operations that were not collected belong
 * to the caller again.  NULL is allowed.
 */
void dsa_redis_close(dsa_redis_t *c);

/*
 * 1 when dsa_redis_submit() would accept an operation for at least one server.
 * Two atomic loads.
 */
int dsa_redis_on(const dsa_redis_t *c);

/*
 * Queues an operation, which the caller keeps until it is collected.  Each
 * server executes probes before reads, and reads before writes; of several
 * connections, one is left for probes and reads.  DSA_AGAIN: the server of the
 * page, or of the first page of a probe, is off; or there are DSA_REDIS_QUEUE
 * operations.
 */
int dsa_redis_submit(dsa_redis_t *c, dsa_redis_op_t *op);

/*
 * Takes operations with this owner that no thread has begun out of the queue;
 * they end as DSA_REDIS_FAILED and are collected as others.
 */
void dsa_redis_cancel(dsa_redis_t *c, const void *owner);

/* The operations that have ended, as a list in the order of their ends. */
dsa_redis_op_t *dsa_redis_collect(dsa_redis_t *c);

/* Writes that are queued or being executed. */
uint32_t dsa_redis_writes(dsa_redis_t *c);

void dsa_redis_stats(dsa_redis_t *c, dsa_redis_stats_t *stats);


#endif /* _DSA_REDIS_H_INCLUDED_ */
