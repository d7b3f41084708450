
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include <assert.h>

#include "ngx_http_dsa_pool.h"


#define NGX_HTTP_DSA_POOL_EXCESS  4         /* requests */


static void ngx_http_dsa_pool_changed(ngx_http_dsa_session_t *s);
static const dsa_family_t *ngx_http_dsa_pool_expected(
    ngx_http_dsa_session_t *s);
static ngx_uint_t ngx_http_dsa_pool_usable(ngx_http_dsa_session_t *s);
static ngx_uint_t ngx_http_dsa_pool_serves(ngx_http_dsa_session_t *s,
    ngx_str_t *model);
static ngx_uint_t ngx_http_dsa_pool_fits(ngx_http_dsa_session_t *s,
    uint64_t tried, ngx_str_t *model, uint64_t context);
static uint64_t ngx_http_dsa_pool_load(ngx_http_dsa_session_t *s);


void
ngx_http_dsa_pool_start(ngx_http_dsa_pool_t *pool, ngx_cycle_t *cycle)
{
    ngx_uint_t               i;
    ngx_http_dsa_session_t  *s;

    ngx_queue_init(&pool->waiting);

    s = pool->sessions.elts;

    for (i = 0; i < pool->sessions.nelts; i++) {
        s[i].changed = ngx_http_dsa_pool_changed;
        s[i].expected = ngx_http_dsa_pool_expected;
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

    if (pool->route != NULL && s->state == NGX_HTTP_DSA_READY) {
        ngx_http_dsa_route_hello(pool->route, s->index, &s->name, &s->hello);
    }

    if (ngx_queue_empty(&pool->waiting)) {
        return;
    }

    /*
     * A handler may add its waiter to pool->waiting again, so that queue is
     * moved.
     */

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


/*
 * All engines of a pool have the family of those that are ready.  An operator
 * can replace them by engines of another family by stopping all of them.
 */

static const dsa_family_t *
ngx_http_dsa_pool_expected(ngx_http_dsa_session_t *s)
{
    ngx_uint_t               i;
    ngx_http_dsa_pool_t     *pool = s->data;
    ngx_http_dsa_session_t  *other;

    other = pool->sessions.elts;

    for (i = 0; i < pool->sessions.nelts; i++) {
        if (&other[i] != s && other[i].state == NGX_HTTP_DSA_READY) {
            return other[i].family;
        }
    }

    return NULL;
}


static ngx_uint_t
ngx_http_dsa_pool_usable(ngx_http_dsa_session_t *s)
{
    return ngx_http_dsa_session_up(s)
           && !s->slots.stopping
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


/* Returns 1 if a request can be sent to the engine. */

static ngx_uint_t
ngx_http_dsa_pool_fits(ngx_http_dsa_session_t *s, uint64_t tried,
    ngx_str_t *model, uint64_t context)
{
    return (tried & (1ULL << s->index)) == 0
           && ngx_http_dsa_pool_usable(s)
           && ngx_http_dsa_pool_serves(s, model)
           && s->hello.context_length >= context;
}


/*
 * Returns the running and waiting requests of the engine, of all workers, and
 * those of this worker that the engine has not accepted yet.
 */

static uint64_t
ngx_http_dsa_pool_load(ngx_http_dsa_session_t *s)
{
    dsa_link_control_t  *control;

    control = s->link.control;

    return (uint64_t) atomic_load_explicit(&control->running,
                                           memory_order_relaxed)
           + atomic_load_explicit(&control->waiting, memory_order_relaxed)
           + s->slots.unaccepted;
}


ngx_uint_t
ngx_http_dsa_pool_backlog(ngx_http_dsa_pool_t *pool, ngx_str_t *model)
{
    ngx_uint_t               i, seconds, least;
    ngx_http_dsa_session_t  *s;

    s = pool->sessions.elts;
    least = 0;

    for (i = 0; i < pool->sessions.nelts; i++) {
        if (!ngx_http_dsa_pool_fits(&s[i], 0, model, 0)) {
            continue;
        }

        seconds = ngx_http_dsa_backlog_seconds(&s[i].backlog,
                                               s[i].link.control);

        least = least == 0 ? seconds : ngx_min(least, seconds);
    }

    return least;
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
    ngx_http_dsa_session_t  *s, *next, *best;

    s = pool->sessions.elts;
    n = pool->sessions.nelts;

    best = NULL;
    least = 0;

    pool->next++;

    for (i = pool->next; i < pool->next + n; i++) {
        next = &s[i % n];

        if (!ngx_http_dsa_pool_fits(next, tried, model, context)) {
            continue;
        }

        load = ngx_http_dsa_pool_load(next);

        if (best == NULL || load < least) {
            best = next;
            least = load;
        }
    }

    return best;
}


/*
 * An engine with a prefix of the prompt is used while its load exceeds the
 * lowest load by at most NGX_HTTP_DSA_POOL_EXCESS requests, or by a quarter if
 * that is more.  For example, if the least busy engine has 2 requests, the
 * engine is used with up to 6 requests, and with 40 with up to 50.  The bound
 * is generous, because one more request makes the steps of a batch only a
 * little longer, while the prefix saves a prefill.  Without a bound, all
 * requests with a popular system message would be sent to one engine.
 *
 * If the engine with the longest prefix is not used, an engine with a shorter
 * prefix may be.
 */

ngx_http_dsa_session_t *
ngx_http_dsa_pool_prefer(ngx_http_dsa_pool_t *pool,
    ngx_http_dsa_session_t *least, uint64_t tried, ngx_str_t *model,
    uint64_t context, const dsa_prompt_keys_t *keys,
    ngx_http_dsa_route_e *result)
{
    uint64_t                 lowest, load, limit;
    ngx_uint_t               i, engines[DSA_PROMPT_KEYS];
    ngx_http_dsa_route_e     why;
    ngx_http_dsa_session_t  *s;

    ngx_http_dsa_route_find(pool->route, keys, engines);

    lowest = ngx_http_dsa_pool_load(least);
    limit = lowest + ngx_max(NGX_HTTP_DSA_POOL_EXCESS, lowest / 4);

    *result = NGX_HTTP_DSA_ROUTE_NONE;

    for (i = 0; i < keys->n; i++) {
        if (engines[i] == NGX_HTTP_DSA_ROUTE_NO_ENGINE) {
            continue;
        }

        s = pool->sessions.elts;
        s += engines[i];

        load = 0;
        why = NGX_HTTP_DSA_ROUTE_UNAVAILABLE;

        if (ngx_http_dsa_pool_fits(s, tried, model, context)) {
            load = ngx_http_dsa_pool_load(s);
            why = load <= limit ? NGX_HTTP_DSA_ROUTE_PREFIX
                                : NGX_HTTP_DSA_ROUTE_LOAD;
        }

        ngx_log_debug6(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                       "dsa pool \"%V\": engine \"%V\" has a prefix of %uz "
                       "bytes, load %uL of at most %uL, result \"%V\"",
                       &pool->name, &s->name, keys->elts[i].bytes, load,
                       limit, &ngx_http_dsa_routes[why]);

        if (why == NGX_HTTP_DSA_ROUTE_PREFIX) {
            *result = why;
            return s;
        }

        /* report the reason for the longest prefix */

        if (*result == NGX_HTTP_DSA_ROUTE_NONE) {
            *result = why;
        }
    }

    return least;
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


const dsa_family_t *
ngx_http_dsa_pool_family(ngx_http_dsa_pool_t *pool)
{
    ngx_http_dsa_session_t  *s;

    s = ngx_http_dsa_pool_any(pool);

    return s != NULL ? s->family : NULL;
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
