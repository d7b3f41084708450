
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
 * CPUs.
 *
 * Within each class, tenants are spread over DSA_POOL_TURNS queues, which are
 * served in turn (stochastic fair queueing, McKenney 1990).
 *
 * Bounds: copies of short prompts take at most DSA_POOL_BYTES; beyond that,
 * sessions stop reading their rings until there is room.  Copies of long
 * prompts take at most DSA_POOL_BYTES, and half of it in one queue; beyond
 * that, requests are rejected.  If a class is empty, a prompt of any size is
 * admitted, because the ring bounds its size.
 */

#define DSA_POOL_SHORT      65536           /* bytes of a record */
#define DSA_POOL_BYTES      (64U << 20)
#define DSA_POOL_TURNS      64
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
 * Returns 1 if a record of len bytes may be read now.  0: there is no room for
 * a short prompt before the next collect.
 */
int dsa_pool_room(dsa_pool_t *p, size_t len);

/*
 * Queues a request after dsa_pool_room() has returned 1.  The pool owns it
 * until it is collected.  DSA_ERROR: there is no room for a long prompt.
 */
int dsa_pool_push(dsa_pool_t *p, dsa_request_t *r);

/* Returns the prepared requests as a list by next_job, oldest first. */
dsa_request_t *dsa_pool_collect(dsa_pool_t *p);

/* Prepares all queued requests in the calling thread, for tests. */
void dsa_pool_run(dsa_pool_t *p);


#endif /* _DSA_TOKENIZE_POOL_H_INCLUDED_ */
