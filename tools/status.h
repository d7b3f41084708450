
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TOOLS_STATUS_H_INCLUDED_
#define _DSA_TOOLS_STATUS_H_INCLUDED_


#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"


/*
 * The parts of dsa status: reads the JSON of dsa_status over HTTP, and prints
 * it for people.  The document is treated as hostile: its size is bounded, a
 * member that is absent or has another type counts as 0, and texts are
 * escaped.
 */

#define DSA_STATUS_MAX      (4 * 1024 * 1024)   /* bytes of an answer */
#define DSA_STATUS_BUCKETS  32


typedef struct {
    uint64_t    bounds[DSA_STATUS_BUCKETS];     /* ms, rising */
    uint64_t    counts[DSA_STATUS_BUCKETS + 1];
    uint32_t    n;                              /* bounds */
} dsa_status_hist_t;


typedef struct {
    dsa_str_t   pool;
    dsa_str_t   name;
    dsa_str_t   model;
    int         up;
    int         draining;
    uint64_t    running;
    uint64_t    waiting;
    uint64_t    tokens;         /* of completions */
    uint64_t    decodes;        /* answers that a step continued */
    uint64_t    decode_tokens;  /* by so many tokens */
    uint64_t    drafts;
    uint64_t    accepted;       /* of them */
    uint64_t    pages[2];       /* of the GPU and of host memory */
    uint64_t    used[2];
    uint64_t    servers;        /* of the cache in Redis; 0: there is none */
    uint64_t    servers_on;
} dsa_status_engine_t;


typedef struct {
    dsa_str_t   tenant;
    dsa_str_t   key;
    dsa_str_t   name;
    dsa_str_t   cost;
    uint64_t    running;
    uint64_t    waiting;
    uint64_t    requests;
    uint64_t    tokens;
} dsa_status_tenant_t;


/* One read of the document. */

typedef struct {
    dsa_arena_t          *arena;        /* of everything */
    double                time;         /* s */
    double                uptime;
    dsa_str_t             version;
    uint64_t              in_flight;
    uint64_t              requests;
    uint64_t              failed;       /* with a status of 5xx */
    uint64_t              prompt;       /* tokens */
    uint64_t              cached;
    uint64_t              completion;
    dsa_status_hist_t     ttft;
    dsa_status_hist_t     inter_token;
    int                   priced;
    dsa_str_t             currency;
    int64_t               cost;         /* 10^-12 of a unit */
    int                   redis;        /* 1: there is one */
    int                   redis_up;
    int                   redis_lossy;  /* 1: without an append-only file */
    int                   writable;
    uint64_t              queue;        /* entries that wait for Redis */
    uint64_t              queue_used;   /* and requests that run */
    uint64_t              queue_capacity;
    uint64_t              memory_used;  /* of Redis, in bytes */
    uint64_t              memory_limit; /* 0: both are not known */
    dsa_status_engine_t  *engines;
    uint32_t              n_engines;
    dsa_status_tenant_t  *tenants;
    uint32_t              n_tenants;
} dsa_status_t;


/*
 * Appends the body of the answer to a GET of address: http://HOST[:PORT][/PATH]
 * or unix:SOCKET[:/PATH].  DSA_ERROR: there is none within 5 seconds, or it is
 * not a 200.
 */
int dsa_status_get(dsa_buf_t *body, const char *address, dsa_err_t *err);

/* Reads the document.  The caller frees s in any case, which is zero before. */
int dsa_status_read(dsa_status_t *s, dsa_str_t text, dsa_err_t *err);
void dsa_status_free(dsa_status_t *s);

/*
 * Appends a report in lines of at most `width` characters, and at most `height`
 * of them (0: all).  Rates and percentiles are those between before and now;
 * before may be now: then there are none.
 */
void dsa_status_print(dsa_buf_t *b, const dsa_status_t *before,
    const dsa_status_t *now, uint32_t width, uint32_t height);


#endif /* _DSA_TOOLS_STATUS_H_INCLUDED_ */
