
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_IDEMPOTENCY_H_INCLUDED_
#define _NGX_HTTP_DSA_IDEMPOTENCY_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "redis_schema/idempotency.h"

#include "ngx_module/core/ngx_http_dsa_failure.h"
#include "ngx_module/redis/ngx_http_dsa_redis.h"


/*
 * The Idempotency-Key of a request: the first request with a key claims it in
 * Redis, and one that repeats it waits for the first one's answer and gets
 * that.  Without the header, a tenant or dsa_redis there is no struct, and the
 * functions do nothing with NULL.
 */

/*
 * Called in the context of the request.  NGX_OK: the request goes on.
 * NGX_DONE: answer is what the first request got; its bytes are valid until
 * the handler returns.  NGX_DECLINED: the failure is set.
 */
typedef void (*ngx_http_dsa_idempotency_pt)(void *data, ngx_int_t rc,
    dsa_str_t answer);


typedef struct {
    ngx_http_request_t              *request;
    ngx_http_dsa_redis_t            *redis;
    ngx_http_dsa_failure_t          *failure;
    dsa_idempotency_t                id;
    char                             key[DSA_IDEMPOTENCY_HEX];
    char                             digest[DSA_IDEMPOTENCY_HEX];

    ngx_http_dsa_idempotency_pt      handler;
    void                            *data;

    ngx_http_dsa_redis_command_t    *command;   /* the claim; NULL: none
                                                   waits */
    ngx_connection_t                 dumb;  /* the data of the timer */
    ngx_event_t                      timer; /* for the next claim, or the next
                                               renewal */

    ngx_uint_t                       failures;  /* of claims, one after the
                                                   other, while it waits */
    unsigned                         sent:1;    /* a claim was sent, so that the
                                                   key may be this request's */
    unsigned                         waits:1;   /* another request has the
                                                   key */
} ngx_http_dsa_idempotency_t;


/*
 * Reads the header of a request, and allocates the struct from its pool if it
 * has one.  redis: NULL, or that of dsa_redis; tenant and owner, the id of the
 * request, live as long as that.  NGX_OK, or NGX_ERROR with the failure set.
 */
ngx_int_t ngx_http_dsa_idempotency_init(
    ngx_http_dsa_idempotency_t **idempotency,
    ngx_http_request_t *r, ngx_http_dsa_redis_t *redis,
    const ngx_str_t *tenant, const ngx_str_t *owner,
    ngx_http_dsa_failure_t *failure);

/*
 * Computes the digest of the request, whose body is in bufs.  A run: it may be
 * called in a thread.  NGX_OK, or NGX_ERROR with the failure set.
 */
ngx_int_t ngx_http_dsa_idempotency_digest(ngx_http_dsa_idempotency_t *i,
    const ngx_chain_t *bufs);

/*
 * Claims the key, and calls the handler at once or later.  If another request
 * has the key, the handler is called when that has ended.  Posted requests are
 * run after a later call.
 */
void ngx_http_dsa_idempotency_claim(ngx_http_dsa_idempotency_t *i,
    ngx_http_dsa_idempotency_pt handler, void *data);

/* Returns 1 if other requests may wait for the answer of this one. */
ngx_uint_t ngx_http_dsa_idempotency_claimed(
    const ngx_http_dsa_idempotency_t *i);

/*
 * Stores that the request has ended with this answer; a longer one than is kept
 * is left out.  streamed: it was a stream.  object: the id of what was stored,
 * or empty.
 */
void ngx_http_dsa_idempotency_finish(ngx_http_dsa_idempotency_t *i,
    ngx_uint_t streamed, dsa_str_t object, dsa_str_t answer);

/*
 * The request ends, which is safe to report twice.  Unless finish was called,
 * the key is given back, or marked if the request was charged.
 */
void ngx_http_dsa_idempotency_end(ngx_http_dsa_idempotency_t *i,
    ngx_uint_t charged);


#endif /* _NGX_HTTP_DSA_IDEMPOTENCY_H_INCLUDED_ */
