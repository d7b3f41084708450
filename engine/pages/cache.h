
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CACHE_H_INCLUDED_
#define _DSA_CACHE_H_INCLUDED_


#include "base/error.h"
#include "engine/pages/digest.h"


/*
 * Pages of the KV cache in Redis.  Operations are queued by one thread and
 * executed by the threads of the cache, one for each connection; the queueing
 * thread collects them when they have ended.  Nothing here waits for Redis but
 * these threads.
 *
 * While no server can be used, the cache is off: operations are rejected at
 * once, and a thread tries to connect again after a growing time.  With several
 * servers each one is on or off for itself.
 *
 * redis_schema/kv.h has the key and the value of a page.
 */

#define DSA_CACHE_SERVERS   64          /* most addresses */
#define DSA_CACHE_QUEUE     4096        /* most operations that were queued and
                                           not collected */


typedef struct {
    char              **address;        /* [n_addresses], HOST:PORT or
                                           unix:PATH */
    uint32_t            n_addresses;
    uint32_t            connections;    /* to each server, 1 .. 64 */
    char               *user;           /* NULL: the default user */
    char               *password;       /* NULL: no AUTH */
    uint64_t            ttl_s;          /* of a page; >= 1 */
    uint64_t            max_bandwidth;  /* bytes/s of writes to all servers
                                           together; 0: no limit */
    uint64_t            timeout_ms;     /* without a byte of an answer */
    uint64_t            page_bytes;
    const char         *fingerprint;    /* of the backend */

    /* Called by a thread of the cache when there is something to collect. */

    void              (*wake)(void *data);
    void               *wake_data;
} dsa_cache_conf_t;


typedef enum {
    DSA_CACHE_PROBE = 1,                /* count the pages that are there */
    DSA_CACHE_GET,                      /* read one page */
    DSA_CACHE_SET                       /* write one page */
} dsa_cache_kind_e;


typedef enum {
    DSA_CACHE_DONE = 1,
    DSA_CACHE_MISS,                     /* GET: there is no such page */
    DSA_CACHE_INVALID,                  /* GET: there is a value that is not
                                           this page; it was deleted */
    DSA_CACHE_FAILED                    /* the server failed, or was too slow */
} dsa_cache_result_e;


typedef struct dsa_cache_op_s  dsa_cache_op_t;

struct dsa_cache_op_s {
    dsa_cache_kind_e    kind;
    dsa_cache_result_e  result;         /* out */
    const dsa_digest_t *digest;         /* [n]; the caller keeps them until the
                                           operation is collected */
    uint32_t            n;              /* PROBE: >= 1; otherwise 1 */
    uint32_t            found;          /* out, PROBE: the first `found` pages
                                           are all there */
    uint8_t            *page;           /* GET, SET: page_bytes, which nobody
                                           else writes until the operation is
                                           collected */
    uint64_t            queued_us;      /* out: CLOCK_MONOTONIC */
    uint64_t            begin_us;       /* out: of the first byte sent */
    uint64_t            end_us;         /* out */
    void               *owner;          /* the caller's */
    dsa_cache_op_t     *next;           /* the cache's until collected, then of
                                           the list of dsa_cache_collect() */
};


typedef struct {
    uint64_t            probes;
    uint64_t            gets;           /* that were DONE */
    uint64_t            sets;
    uint64_t            misses;
    uint64_t            invalid;
    uint64_t            failed;
    uint64_t            get_bytes;
    uint64_t            set_bytes;
    uint32_t            servers;        /* known */
    uint32_t            servers_on;
} dsa_cache_stats_t;


typedef struct dsa_cache_s  dsa_cache_t;


/*
 * Starts the threads; conf and what it points to are copied.  A server that
 * cannot be reached is not an error.  NULL with err.
 */
dsa_cache_t *dsa_cache_open(const dsa_cache_conf_t *conf, dsa_err_t *err);

/*
 * Ends the threads, after the operations that are being executed; reads and
 * probes among them are cut short.  Operations that were not collected belong
 * to the caller again.  NULL is allowed.
 */
void dsa_cache_close(dsa_cache_t *c);

/* 1 when dsa_cache_submit() would accept an operation. */
int dsa_cache_on(const dsa_cache_t *c);

/*
 * Queues an operation, which the caller owns and keeps until it is collected.
 * Reads and probes are executed before writes.  DSA_AGAIN: the cache is off, or
 * has DSA_CACHE_QUEUE operations.
 */
int dsa_cache_submit(dsa_cache_t *c, dsa_cache_op_t *op);

/*
 * Takes operations that no thread has begun out of the queue; they end as
 * DSA_CACHE_FAILED and are collected as others.  Only those with this owner.
 */
void dsa_cache_cancel(dsa_cache_t *c, const void *owner);

/* The operations that have ended, as a list in the order of their ends. */
dsa_cache_op_t *dsa_cache_collect(dsa_cache_t *c);

/* Writes that are queued or being executed. */
uint32_t dsa_cache_writes(dsa_cache_t *c);

void dsa_cache_stats(dsa_cache_t *c, dsa_cache_stats_t *stats);


#endif /* _DSA_CACHE_H_INCLUDED_ */
