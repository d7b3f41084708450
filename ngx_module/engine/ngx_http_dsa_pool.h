
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_POOL_H_INCLUDED_
#define _NGX_HTTP_DSA_POOL_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_dsa_route.h"
#include "ngx_http_dsa_session.h"


/* The engines of a dsa_pool, and the choice of an engine for a request. */

#define NGX_HTTP_DSA_MAX_ENGINES  64        /* bits of a mask */


typedef struct ngx_http_dsa_pool_s  ngx_http_dsa_pool_t;


struct ngx_http_dsa_pool_s {
    ngx_str_t                 name;
    ngx_array_t               sessions;     /* ngx_http_dsa_session_t */
    ngx_queue_t               waiting;      /* ngx_http_dsa_waiter_t */
    ngx_uint_t                next;         /* where the search begins, to
                                               break ties */
    ngx_http_dsa_route_t     *route;        /* NULL if there is one engine */
    size_t                    zone_size;    /* bytes of its zone */
    u_char                   *file;         /* where the name was first used */
    ngx_uint_t                line;
    unsigned                  series:1;     /* the durations of its requests
                                               are counted by labels */
};


/* A waiter for an event of the pool.  Its handler may wait again. */

typedef struct {
    ngx_queue_t               queue;        /* in pool->waiting */
    void                    (*handler)(void *data);
    void                     *data;
    unsigned                  queued:1;
} ngx_http_dsa_waiter_t;


/*
 * Called when a worker starts: opens all sessions of the pool; and when it
 * exits: closes them.
 */
void ngx_http_dsa_pool_start(ngx_http_dsa_pool_t *pool, ngx_cycle_t *cycle);
void ngx_http_dsa_pool_stop(ngx_http_dsa_pool_t *pool);

/*
 * Returns the engine with the lowest load that responds, is not draining, is
 * not in the mask tried, serves model (NULL: any) and has a context of at
 * least context tokens.  Returns NULL if there is none.
 */
ngx_http_dsa_session_t *ngx_http_dsa_pool_pick(ngx_http_dsa_pool_t *pool,
    uint64_t tried, ngx_str_t *model, uint64_t context);

/*
 * Returns the engine with the longest prefix in keys that can serve the
 * request and is not too busy, or least if there is none.  least is the result
 * of ngx_http_dsa_pool_pick() for the same values.  *result is the reason.
 * The pool must have a route.
 */
ngx_http_dsa_session_t *ngx_http_dsa_pool_prefer(ngx_http_dsa_pool_t *pool,
    ngx_http_dsa_session_t *least, uint64_t tried, ngx_str_t *model,
    uint64_t context, const dsa_prompt_keys_t *keys,
    ngx_http_dsa_route_e *result);

/*
 * Returns after how many seconds an engine will have begun the requests that
 * wait in its queue now: the least of the engines that respond, are not
 * draining and serve model (NULL: any); 0 if there is none.
 */
ngx_uint_t ngx_http_dsa_pool_backlog(ngx_http_dsa_pool_t *pool,
    ngx_str_t *model);

/*
 * Returns the tokens of the largest context among the engines that serve or
 * served model (NULL: any); 0 if there is none.
 */
uint32_t ngx_http_dsa_pool_context(ngx_http_dsa_pool_t *pool,
    ngx_str_t *model);

/* Returns a session that is or was ready; NULL if there was none. */
ngx_http_dsa_session_t *ngx_http_dsa_pool_any(ngx_http_dsa_pool_t *pool);

/*
 * Returns the prompt family of the engines; NULL if none of them was ready yet.
 */
const dsa_family_t *ngx_http_dsa_pool_family(ngx_http_dsa_pool_t *pool);

/* Returns 1 if no session is ready, but at least one waits for its hello. */
ngx_uint_t ngx_http_dsa_pool_opening(ngx_http_dsa_pool_t *pool);

/*
 * Calls the waiter's handler once, when any session has become ready or was
 * lost.
 */
void ngx_http_dsa_pool_wait(ngx_http_dsa_pool_t *pool,
    ngx_http_dsa_waiter_t *waiter);

/* Removes a waiter; does nothing if it is not queued. */
void ngx_http_dsa_pool_leave(ngx_http_dsa_waiter_t *waiter);


#endif /* _NGX_HTTP_DSA_POOL_H_INCLUDED_ */
