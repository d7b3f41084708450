
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include <assert.h>

#include "ngx_http_dsa_pool.h"


static void ngx_http_dsa_pool_changed(ngx_http_dsa_session_t *s);
static ngx_uint_t ngx_http_dsa_pool_usable(ngx_http_dsa_session_t *s);
static ngx_uint_t ngx_http_dsa_pool_serves(ngx_http_dsa_session_t *s,
    ngx_str_t *model);


void
ngx_http_dsa_pool_start(ngx_http_dsa_pool_t *pool, ngx_cycle_t *cycle)
{
    ngx_uint_t               i;
    ngx_http_dsa_session_t  *s;

    ngx_queue_init(&pool->waiting);

    s = pool->sessions.elts;

    for (i = 0; i < pool->sessions.nelts; i++) {
        s[i].changed = ngx_http_dsa_pool_changed;
        s[i].data = pool;

        ngx_http_dsa_session_start(&s[i], cycle->log);
    }
}


void
ngx_http_dsa_pool_stop(ngx_http_dsa_pool_t *pool)
{
    ngx_uint_t               i;
    ngx_http_dsa_session_t  *s;

    s = pool->sessions.elts;

    for (i = 0; i < pool->sessions.nelts; i++) {
        ngx_http_dsa_session_stop(&s[i]);
    }
}


void
ngx_http_dsa_pool_wait(ngx_http_dsa_pool_t *pool,
    ngx_http_dsa_waiter_t *waiter)
{
    assert(!waiter->queued);

    waiter->queued = 1;
    ngx_queue_insert_tail(&pool->waiting, &waiter->queue);
}


void
ngx_http_dsa_pool_leave(ngx_http_dsa_waiter_t *waiter)
{
    if (waiter->queued) {
        ngx_queue_remove(&waiter->queue);
        waiter->queued = 0;
    }
}


static void
ngx_http_dsa_pool_changed(ngx_http_dsa_session_t *s)
{
    ngx_http_dsa_pool_t  *pool = s->data;

    ngx_queue_t             waiting, *q;
    ngx_http_dsa_waiter_t  *waiter;

    if (ngx_queue_empty(&pool->waiting)) {
        return;
    }

    /* a waiter that waits again is put into pool->waiting, not into this */

    ngx_queue_init(&waiting);
    ngx_queue_add(&waiting, &pool->waiting);
    ngx_queue_init(&pool->waiting);

    while (!ngx_queue_empty(&waiting)) {
        q = ngx_queue_head(&waiting);
        waiter = ngx_queue_data(q, ngx_http_dsa_waiter_t, queue);

        ngx_http_dsa_pool_leave(waiter);

        waiter->handler(waiter->data);
    }
}


static ngx_uint_t
ngx_http_dsa_pool_usable(ngx_http_dsa_session_t *s)
{
    return ngx_http_dsa_session_up(s)
           && atomic_load_explicit(&s->link.control->draining,
                                   memory_order_relaxed) == 0;
}


static ngx_uint_t
ngx_http_dsa_pool_serves(ngx_http_dsa_session_t *s, ngx_str_t *model)
{
    return model == NULL
           || (ngx_strlen(s->hello.model) == model->len
               && ngx_memcmp(s->hello.model, model->data, model->len) == 0);
}


uint32_t
ngx_http_dsa_pool_context(ngx_http_dsa_pool_t *pool, ngx_str_t *model)
{
    uint32_t                 context;
    ngx_uint_t               i;
    ngx_http_dsa_session_t  *s;

    s = pool->sessions.elts;
    context = 0;

    for (i = 0; i < pool->sessions.nelts; i++) {
        if (s[i].hello.magic == DSA_LINK_MAGIC
            && ngx_http_dsa_pool_serves(&s[i], model))
        {
            context = ngx_max(context, s[i].hello.context_length);
        }
    }

    return context;
}


ngx_http_dsa_session_t *
ngx_http_dsa_pool_pick(ngx_http_dsa_pool_t *pool, uint64_t tried,
    ngx_str_t *model, uint64_t context)
{
    uint64_t                 load, least;
    ngx_uint_t               i, n;
    dsa_link_control_t      *control;
    ngx_http_dsa_session_t  *s, *next, *best;

    s = pool->sessions.elts;
    n = pool->sessions.nelts;

    best = NULL;
    least = 0;

    pool->next++;

    for (i = pool->next; i < pool->next + n; i++) {
        next = &s[i % n];

        if ((tried & (1ULL << next->index)) != 0
            || !ngx_http_dsa_pool_usable(next)
            || !ngx_http_dsa_pool_serves(next, model)
            || next->hello.context_length < context)
        {
            continue;
        }

        control = next->link.control;

        /* of all workers, and what this one has submitted since */

        load = (uint64_t) atomic_load_explicit(&control->running,
                                               memory_order_relaxed)
               + atomic_load_explicit(&control->waiting, memory_order_relaxed)
               + next->slots.unaccepted;

        if (best == NULL || load < least) {
            best = next;
            least = load;
        }
    }

    return best;
}


ngx_http_dsa_session_t *
ngx_http_dsa_pool_any(ngx_http_dsa_pool_t *pool)
{
    ngx_uint_t               i;
    ngx_http_dsa_session_t  *s, *known;

    s = pool->sessions.elts;
    known = NULL;

    for (i = 0; i < pool->sessions.nelts; i++) {
        if (s[i].state == NGX_HTTP_DSA_READY) {
            return &s[i];
        }

        if (s[i].hello.magic == DSA_LINK_MAGIC && known == NULL) {
            known = &s[i];
        }
    }

    return known;
}


ngx_uint_t
ngx_http_dsa_pool_opening(ngx_http_dsa_pool_t *pool)
{
    ngx_uint_t               i, opening;
    ngx_http_dsa_session_t  *s;

    s = pool->sessions.elts;
    opening = 0;

    for (i = 0; i < pool->sessions.nelts; i++) {
        if (s[i].state == NGX_HTTP_DSA_READY) {
            return 0;
        }

        if (s[i].state == NGX_HTTP_DSA_CONNECTING) {
            opening = 1;
        }
    }

    return opening;
}
