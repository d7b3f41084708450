
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TOKENIZE_POOL_H_INCLUDED_
#define _DSA_TOKENIZE_POOL_H_INCLUDED_


#include "engine/service/request.h"
#include "engine/service/service.h"


/*
 * Threads that prepare requests (prepare.h).  Prompts of more than
 * DSA_POOL_SHORT bytes are long.  The first thread serves only short prompts.
 * The other threads serve long prompts first, with a lower priority, so that a
 * prompt of megabytes delays neither short prompts nor a model on the same
 * CPUs.  A short prompt whose grammar is not compiled yet, or whose first mask
 * takes long, is served again by one of the other threads, as if it were long.
 *
 * Within each class, the tenant that was served least, by the cost of its
 * requests and its weight, is served next (start-time fair queueing, as in
 * engine/schedule/policy.h).  A request costs the bytes of its record, and the
 * work of a grammar that was compiled for it.  SUBMIT and COUNT are alike.
 *
 * Bounds: copies of records take at most DSA_POOL_BYTES, and half of it of one
 * tenant.  When the pool is full, a tenant that has less than another one is
 * admitted, and the tenant that has most loses the newest of its requests that
 * wait.  A tenant without requests may push one of any size if the pool is
 * empty, because the ring bounds its size.
 */

#define DSA_POOL_SHORT      65536           /* bytes of a record */
#define DSA_POOL_BYTES      (128U << 20)
#define DSA_POOL_THREADS    4               /* at most */
#define DSA_POOL_NICE       10              /* of all threads but the first */


typedef struct dsa_pool_s  dsa_pool_t;


/*
 * Creates a pool without starting its threads.  wake: an eventfd, to which the
 * pool writes when there is something to collect.  NULL with err.
 */
dsa_pool_t *dsa_pool_create(const dsa_service_t *service, int wake,
    dsa_err_t *err);

/*
 * Starts the threads; their number depends on that of the CPUs.  DSA_ERROR
 * with err.
 */
int dsa_pool_start(dsa_pool_t *p, dsa_err_t *err);

/*
 * Ends the threads after the requests that they are preparing.  Requests that
 * no thread has begun can be collected afterwards as well.
 */
void dsa_pool_stop(dsa_pool_t *p);

/* Frees the pool.  All requests must have been collected.  NULL is allowed. */
void dsa_pool_destroy(dsa_pool_t *p);

/*
 * Queues a request, whose tenant and weight are set.  The pool owns it until it
 * is collected.  DSA_AGAIN: there is no room for another request of the tenant,
 * which has the most; DSA_ERROR: out of memory.
 */
int dsa_pool_push(dsa_pool_t *p, dsa_request_t *r);

/* Returns the prepared requests as a list by next_job, oldest first. */
dsa_request_t *dsa_pool_collect(dsa_pool_t *p);

/* Prepares all queued requests in the calling thread, for tests. */
void dsa_pool_run(dsa_pool_t *p);


#endif /* _DSA_TOKENIZE_POOL_H_INCLUDED_ */
