
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include <assert.h>

#include <openssl/rand.h>

#include "base/error.h"

#include "ngx_module/core/ngx_http_dsa_conf.h"
#include "ngx_module/core/ngx_http_dsa_metrics.h"
#include "ngx_http_dsa_limit.h"
#include "ngx_http_dsa_limit_budget.h"
#include "ngx_http_dsa_limit_state.h"
#include "ngx_http_dsa_limit_sync.h"


#define NGX_HTTP_DSA_LIMIT_TICK  1000       /* ms */
#define NGX_HTTP_DSA_LIMIT_READS_RATIO  10  /* reads for each request */
#define NGX_HTTP_DSA_LIMIT_SOON  100        /* the same, if something waits for
                                               Redis */


static ngx_int_t ngx_http_dsa_limits_grow(ngx_http_dsa_limits_t *limits,
    ngx_slab_pool_t *pool, ngx_cycle_t *cycle);
static void ngx_http_dsa_limits_tick(ngx_event_t *ev);
static void ngx_http_dsa_limits_soon(ngx_http_dsa_limits_t *limits);
static void ngx_http_dsa_limit_count(const ngx_http_dsa_limit_view_t *view);
static ngx_int_t ngx_http_dsa_limit_check(ngx_http_dsa_limit_t *limit,
    ngx_uint_t run, ngx_http_dsa_limit_view_t *view);
static ngx_int_t ngx_http_dsa_limit_check_rate(dsa_bucket_t *bucket,
    uint64_t rate, uint64_t *retry);
static void ngx_http_dsa_limit_cleanup(void *data);


/* the owner number of this process, which has one zone of keys */

static int          ngx_http_dsa_limit_owner = -1;
static ngx_event_t  ngx_http_dsa_limit_timer;


ngx_int_t
ngx_http_dsa_limits_init(ngx_http_dsa_limits_t **limits,
    ngx_slab_pool_t *pool, ngx_cycle_t *cycle)
{
    u_char                  host[NGX_HTTP_DSA_LIMIT_HOST / 2];
    ngx_http_dsa_limits_t  *l;

    l = *limits;

    if (l == NULL) {
        l = ngx_slab_calloc(pool, sizeof(ngx_http_dsa_limits_t));
        if (l == NULL) {
            return NGX_ERROR;
        }

        if (dsa_permits_init(&l->permits) != DSA_OK) {
            ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                          "dsa: a shared lock of the limits cannot be "
                          "created");
            return NGX_ERROR;
        }

        if (RAND_bytes(host, sizeof(host)) != 1) {
            ngx_log_error(NGX_LOG_EMERG, cycle->log, 0, "RAND_bytes() failed");
            return NGX_ERROR;
        }

        (void) ngx_hex_dump(l->host, host, sizeof(host));

        *limits = l;
    }

    return ngx_http_dsa_limits_grow(l, pool, cycle);
}


/*
 * Each running request has a connection, and after its client has left its
 * permit remains for a short time.  So the table has a permit for each
 * connection of two sets of workers, because two sets run during a reload.
 */

static ngx_int_t
ngx_http_dsa_limits_grow(ngx_http_dsa_limits_t *limits, ngx_slab_pool_t *pool,
    ngx_cycle_t *cycle)
{
    ngx_uint_t         n;
    dsa_permit_t      *block;
    ngx_core_conf_t   *ccf;
    ngx_event_conf_t  *ecf;

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);
    ecf = ngx_event_get_conf(cycle->conf_ctx, ngx_event_core_module);

    n = 2 * (ngx_uint_t) ngx_max(ccf->worker_processes, 1) * ecf->connections;
    n = (n + DSA_PERMITS_BLOCK - 1) / DSA_PERMITS_BLOCK;
    n = ngx_min(n, DSA_PERMITS_BLOCKS);

    while (limits->permits.n_blocks < n) {

        block = ngx_slab_alloc(pool,
                               DSA_PERMITS_BLOCK * sizeof(dsa_permit_t));
        if (block == NULL) {
            ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                          "dsa: the zone of keys is too small: %uz bytes of it "
                          "are needed for the requests of %i workers with %ui "
                          "connections each",
                          sizeof(ngx_http_dsa_limits_t)
                          + n * DSA_PERMITS_BLOCK * sizeof(dsa_permit_t),
                          ccf->worker_processes, ecf->connections);
            return NGX_ERROR;
        }

        dsa_permits_lock(&limits->permits);
        dsa_permits_add(&limits->permits, block);
        dsa_permits_unlock(&limits->permits);
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_dsa_limits_start(ngx_http_dsa_limits_t *limits, ngx_cycle_t *cycle)
{
    ngx_event_t               *ev;
    ngx_http_dsa_main_conf_t  *mcf;

    assert(ngx_http_dsa_limit_owner == -1);

    ngx_http_dsa_limit_owner = dsa_permits_acquire(&limits->permits);

    if (ngx_http_dsa_limit_owner == -1) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "dsa: more than %d processes use the zone of keys",
                      DSA_PERMITS_OWNERS);
        return NGX_ERROR;
    }

    mcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_dsa_module);

    ngx_http_dsa_limit_sync_start(mcf->redis);

    if (mcf->redis != NULL) {
        ngx_http_dsa_limit_budget_start(
            ngx_http_dsa_ledger_sums(ngx_http_dsa_redis_ledger(mcf->redis)));
    }

    ev = &ngx_http_dsa_limit_timer;

    ev->handler = ngx_http_dsa_limits_tick;
    ev->data = limits;
    ev->log = cycle->log;
    ev->cancelable = 1;

    ngx_add_timer(ev, NGX_HTTP_DSA_LIMIT_SOON);

    return NGX_OK;
}


static void
ngx_http_dsa_limits_tick(ngx_event_t *ev)
{
    uint32_t                n;
    ngx_http_dsa_limits_t  *limits;

    limits = ev->data;

    n = dsa_permits_reap(&limits->permits, ngx_http_dsa_limit_owner);

    if (n != 0) {
        ngx_log_error(NGX_LOG_NOTICE, ev->log, 0,
                      "dsa: %uD requests of a process that has ended no longer "
                      "count as running", n);
    }

    ngx_http_dsa_limit_sync_tick(limits, ev->log);

    ngx_add_timer(ev, ngx_http_dsa_limit_sync_begun(limits)
                      ? NGX_HTTP_DSA_LIMIT_TICK : NGX_HTTP_DSA_LIMIT_SOON);
}


/*
 * The sums of a key may not be known, so the next round begins soon.  In the
 * master, which has no timer, the first one has not begun.
 */

static void
ngx_http_dsa_limits_soon(ngx_http_dsa_limits_t *limits)
{
    ngx_msec_t    wait;
    ngx_event_t  *ev;

    ngx_http_dsa_limit_sync_soon(limits, NGX_HTTP_DSA_LIMIT_SOON);

    ev = &ngx_http_dsa_limit_timer;
    wait = ngx_http_dsa_limit_sync_wait(limits);

    if (ev->timer_set
        && (ngx_msec_int_t) (ev->timer.key - (ngx_current_msec + wait)) > 0)
    {
        /* nginx does not move a timer by less than 300 ms */

        ngx_del_timer(ev);
        ngx_add_timer(ev, wait);
    }
}


void
ngx_http_dsa_limit_set(ngx_http_dsa_limits_t *limits,
    ngx_http_dsa_limit_t *limit, const u_char *id,
    const u_char digest[NGX_HTTP_DSA_DIGEST_LEN], const dsa_key_limits_t *conf)
{
    dsa_permits_lock(&limits->permits);

    ngx_memcpy(limit->id, id, DSA_KEY_ID_LEN);
    (void) ngx_hex_dump(limit->tenant, (u_char *) digest,
                        NGX_HTTP_DSA_TENANT_LEN / 2);
    limit->conf = *conf;

    if (ngx_http_dsa_limit_budget_any(conf, 0)) {
        ngx_http_dsa_limit_sync_list(limits, limit);
        ngx_http_dsa_limits_soon(limits);
    }

    dsa_permits_unlock(&limits->permits);
}


ngx_int_t
ngx_http_dsa_limit_remove(ngx_http_dsa_limits_t *limits,
    ngx_http_dsa_limit_t *limit)
{
    ngx_int_t  rc;

    dsa_permits_lock(&limits->permits);

    rc = limit->running != 0 ? NGX_BUSY
                             : ngx_http_dsa_limit_sync_remove(limits, limit);

    dsa_permits_unlock(&limits->permits);

    return rc;
}


ngx_uint_t
ngx_http_dsa_limit_pending(ngx_http_dsa_limits_t *limits,
    ngx_http_dsa_limit_t *limit)
{
    int64_t     spent[DSA_KEY_PERIODS];
    ngx_uint_t  pending;

    /* a change of the key entry at this moment applies to the next request */

    if (!ngx_http_dsa_limit_budget_any(&limit->conf, 1)) {
        return 0;
    }

    dsa_permits_lock(&limits->permits);

    pending = ngx_http_dsa_limit_sync_up()
              && !ngx_http_dsa_limit_budget_spent(limit, spent);

    if (pending) {
        ngx_http_dsa_limit_sync_list(limits, limit);
        ngx_http_dsa_limits_soon(limits);
    }

    dsa_permits_unlock(&limits->permits);

    return pending;
}


ngx_int_t
ngx_http_dsa_limit_reserve(ngx_http_dsa_permit_t *permit,
    ngx_http_dsa_limits_t *limits, ngx_http_dsa_limit_t *limit,
    ngx_http_dsa_limit_view_t *view)
{
    uint32_t   n;
    ngx_int_t  rc;

    assert(permit == NULL || permit->limit == NULL);

    n = 0;

    ngx_memzero(view, sizeof(ngx_http_dsa_limit_view_t));

    dsa_permits_lock(&limits->permits);

    ngx_http_dsa_limit_refill(limit);

    view->known = ngx_http_dsa_limit_budget_spent(limit, view->spent);

    rc = ngx_http_dsa_limit_check(limit, permit != NULL, view);

    if (rc == NGX_OK && permit != NULL) {
        n = dsa_permits_take(&limits->permits, ngx_http_dsa_limit_owner,
                             &limit->running);
        if (n == 0) {
            view->refused = NGX_HTTP_DSA_LIMIT_PERMITS;
            view->retry = 1;
            rc = NGX_DECLINED;
        }
    }

    if (rc == NGX_OK && limit->conf.rpm != 0) {
        dsa_bucket_take(&limit->requests, 1);
        limit->used[DSA_KEY_REQUESTS]++;
    }

    /* also after a refusal, which may be caused by the use on another host */

    ngx_http_dsa_limit_sync_use(limits, limit);

    if (view->refused == NGX_HTTP_DSA_LIMIT_UNKNOWN) {
        ngx_http_dsa_limits_soon(limits);
    }

    ngx_http_dsa_limit_view(limit, view);

    dsa_permits_unlock(&limits->permits);

    ngx_http_dsa_limit_count(view);

    if (n != 0) {
        permit->limits = limits;
        permit->limit = limit;
        permit->permit = n;
    }

    return rc;
}


ngx_int_t
ngx_http_dsa_limit_stored(ngx_http_dsa_limits_t *limits,
    ngx_http_dsa_limit_t *limit, ngx_uint_t read,
    ngx_http_dsa_limit_view_t *view)
{
    uint64_t       rate;
    ngx_int_t      rc;
    dsa_bucket_t  *bucket;

    ngx_memzero(view, sizeof(ngx_http_dsa_limit_view_t));

    dsa_permits_lock(&limits->permits);

    ngx_http_dsa_limit_refill(limit);

    rate = limit->conf.rpm;
    bucket = &limit->requests;

    if (read) {
        rate = ngx_min(rate * NGX_HTTP_DSA_LIMIT_READS_RATIO,
                       DSA_BUCKET_MAX_RATE);
        bucket = &limit->reads;
    }

    if (read && rate != 0) {
        dsa_bucket_refill(bucket, rate, ngx_current_msec);
    }

    rc = ngx_http_dsa_limit_check_rate(bucket, rate, &view->retry);

    if (rc != NGX_OK) {
        view->refused = read ? NGX_HTTP_DSA_LIMIT_READS
                             : NGX_HTTP_DSA_LIMIT_REQUESTS;

    } else if (rate != 0) {
        dsa_bucket_take(bucket, 1);
        limit->used[DSA_KEY_REQUESTS] += !read;
    }

    if (read) {
        view->reads = rate;

    } else {
        ngx_http_dsa_limit_sync_use(limits, limit);
        ngx_http_dsa_limit_view(limit, view);
    }

    dsa_permits_unlock(&limits->permits);

    ngx_http_dsa_limit_count(view);

    return rc;
}


static void
ngx_http_dsa_limit_count(const ngx_http_dsa_limit_view_t *view)
{
    ngx_uint_t  i;

    if (view->refused != NGX_HTTP_DSA_LIMIT_NONE) {
        ngx_http_dsa_metrics_add(refused[view->refused], 1);
    }

    for (i = 0; i < DSA_KEY_PERIODS; i++) {
        if (view->first & (1 << i)) {
            ngx_http_dsa_metrics_add(warned[i], 1);
        }
    }
}


/*
 * Checks the limits.  NGX_OK, or NGX_DECLINED with view->refused and ->retry.
 */

static ngx_int_t
ngx_http_dsa_limit_check(ngx_http_dsa_limit_t *limit, ngx_uint_t run,
    ngx_http_dsa_limit_view_t *view)
{
    const dsa_key_limits_t  *conf;

    conf = &limit->conf;

    if (ngx_http_dsa_limit_budget_check(limit, view) != NGX_OK) {
        return NGX_DECLINED;
    }

    if (ngx_http_dsa_limit_check_rate(&limit->requests, conf->rpm,
                                      &view->retry)
        != NGX_OK)
    {
        view->refused = NGX_HTTP_DSA_LIMIT_REQUESTS;
        return NGX_DECLINED;
    }

    if (ngx_http_dsa_limit_check_rate(&limit->tokens, conf->tpm, &view->retry)
        != NGX_OK)
    {
        view->refused = NGX_HTTP_DSA_LIMIT_TOKENS;
        return NGX_DECLINED;
    }

    if (run && conf->concurrency != 0
        && ngx_http_dsa_limit_running(limit) >= conf->concurrency)
    {
        view->refused = NGX_HTTP_DSA_LIMIT_CONCURRENCY;
        view->retry = 1;
        return NGX_DECLINED;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_limit_check_rate(dsa_bucket_t *bucket, uint64_t rate,
    uint64_t *retry)
{
    uint64_t  wait;

    if (rate == 0) {
        return NGX_OK;
    }

    wait = dsa_bucket_wait(bucket, rate);

    if (wait == 0) {
        return NGX_OK;
    }

    *retry = (wait + 999) / 1000;

    return NGX_DECLINED;
}


void
ngx_http_dsa_limit_end(ngx_http_dsa_permit_t *permit, uint64_t tokens,
    int64_t cost)
{
    ngx_http_dsa_limit_t   *limit;
    ngx_http_dsa_limits_t  *limits;

    limit = permit->limit;
    limits = permit->limits;

    if (limit == NULL) {
        return;
    }

    dsa_permits_lock(&limits->permits);

    ngx_http_dsa_limit_refill(limit);

    ngx_http_dsa_limit_sync_use(limits, limit);

    if (limit->conf.tpm != 0) {
        dsa_bucket_take(&limit->tokens, tokens);
        limit->used[DSA_KEY_TOKENS] += tokens;
    }

    ngx_http_dsa_limit_budget_charge(limit, cost);

    dsa_permits_release(&limits->permits, permit->permit);

    dsa_permits_unlock(&limits->permits);

    permit->limit = NULL;
}


ngx_http_dsa_permit_t *
ngx_http_dsa_limit_permit(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t     *cln;
    ngx_http_dsa_permit_t  *permit;

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_dsa_permit_t));
    if (cln == NULL) {
        return NULL;
    }

    permit = cln->data;
    permit->limit = NULL;

    cln->handler = ngx_http_dsa_limit_cleanup;

    return permit;
}


static void
ngx_http_dsa_limit_cleanup(void *data)
{
    ngx_http_dsa_limit_end(data, 0, 0);
}


void
ngx_http_dsa_limit_move(ngx_http_dsa_permit_t *to, ngx_http_dsa_permit_t *from)
{
    assert(to->limit == NULL);

    *to = *from;
    from->limit = NULL;
}


void
ngx_http_dsa_limit_read(ngx_http_dsa_limits_t *limits,
    ngx_http_dsa_limit_t *limit, ngx_http_dsa_limit_view_t *view)
{
    ngx_memzero(view, sizeof(ngx_http_dsa_limit_view_t));

    dsa_permits_lock(&limits->permits);

    ngx_http_dsa_limit_refill(limit);

    view->known = ngx_http_dsa_limit_budget_spent(limit, view->spent);

    if (!view->known && ngx_http_dsa_limit_budget_any(&limit->conf, 1)) {
        view->refused = NGX_HTTP_DSA_LIMIT_UNKNOWN;
        view->retry = 1;
        ngx_http_dsa_limits_soon(limits);
    }

    ngx_http_dsa_limit_view(limit, view);

    dsa_permits_unlock(&limits->permits);
}


_Static_assert((int) NGX_HTTP_DSA_LIMIT_REASONS == NGX_HTTP_DSA_REFUSALS,
               "a counter for each reason");
_Static_assert((int) DSA_KEY_PERIODS == NGX_HTTP_DSA_PERIODS,
               "a counter for each period");
