
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_POOL_H_INCLUDED_
#define _NGX_HTTP_DSA_POOL_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_dsa_route.h"
#include "ngx_http_dsa_session.h"


/* The engines of a dsa_pool, and which of them a request is sent to. */

#define NGX_HTTP_DSA_MAX_ENGINES  64        /* bits of a mask */


typedef struct ngx_http_dsa_pool_s  ngx_http_dsa_pool_t;


struct ngx_http_dsa_pool_s {
    ngx_str_t                 name;
    ngx_array_t               sessions;     /* ngx_http_dsa_session_t */
    ngx_queue_t               waiting;      /* ngx_http_dsa_waiter_t */
    ngx_uint_t                next;         /* the first one in a tie */
    ngx_http_dsa_route_t     *route;        /* NULL: there is one engine */
    size_t                    zone_size;    /* bytes of its zone */
    u_char                   *file;         /* where it was first named */
    ngx_uint_t                line;
};


/* What waits for an event of the pool; the handler may wait again. */

typedef struct {
    ngx_queue_t               queue;        /* in pool->waiting */
    void                    (*handler)(void *data);
    void                     *data;
    unsigned                  queued:1;
} ngx_http_dsa_waiter_t;


/* In a worker: opens all sessions of the pool; closes them at its end. */
void ngx_http_dsa_pool_start(ngx_http_dsa_pool_t *pool, ngx_cycle_t *cycle);
void ngx_http_dsa_pool_stop(ngx_http_dsa_pool_t *pool);

/*
 * The engine with the smallest load that responds, is not draining, is not in
 * the mask tried, serves model (NULL: any) and has a context of at least
 * context tokens; NULL if there is none.
 */
ngx_http_dsa_session_t *ngx_http_dsa_pool_pick(ngx_http_dsa_pool_t *pool,
    uint64_t tried, ngx_str_t *model, uint64_t context);

/*
 * The engine to use in place of least, which ngx_http_dsa_pool_pick() has
 * returned for the same values: the one with the longest prefix that keys has,
 * unless it cannot serve the request or is too busy.  *result is the reason.
 * The pool has a route.
 */
ngx_http_dsa_session_t *ngx_http_dsa_pool_prefer(ngx_http_dsa_pool_t *pool,
    ngx_http_dsa_session_t *least, uint64_t tried, ngx_str_t *model,
    uint64_t context, const ngx_http_dsa_prefix_keys_t *keys,
    ngx_http_dsa_route_e *result);

/*
 * Tokens of the largest context among the engines that serve or served model
 * (NULL: any); 0 if there is none.
 */
uint32_t ngx_http_dsa_pool_context(ngx_http_dsa_pool_t *pool,
    ngx_str_t *model);

/* A session that is or was ready; NULL: there has been none. */
ngx_http_dsa_session_t *ngx_http_dsa_pool_any(ngx_http_dsa_pool_t *pool);

/* 1: no session is ready, but at least one waits for its hello. */
ngx_uint_t ngx_http_dsa_pool_opening(ngx_http_dsa_pool_t *pool);

/*
 * Calls the waiter's handler once, when any session has become ready or was
 * lost.
 */
void ngx_http_dsa_pool_wait(ngx_http_dsa_pool_t *pool,
    ngx_http_dsa_waiter_t *waiter);

/* Does nothing if the waiter is not queued. */
void ngx_http_dsa_pool_leave(ngx_http_dsa_waiter_t *waiter);


#endif /* _NGX_HTTP_DSA_POOL_H_INCLUDED_ */
