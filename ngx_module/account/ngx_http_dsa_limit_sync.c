
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include <assert.h>

#include "redis_schema/keys_redis.h"
#include "redis_schema/resp.h"

#include "ngx_http_dsa_limit_budget.h"
#include "ngx_http_dsa_limit_state.h"
#include "ngx_http_dsa_limit_sync.h"


#define NGX_HTTP_DSA_LIMIT_ROUND  1000      /* ms between the starts of two
                                               rounds */
#define NGX_HTTP_DSA_LIMIT_LEASE  10000     /* ms until the requests of a
                                               silent host no longer count */
#define NGX_HTTP_DSA_LIMIT_IDLE   60000     /* ms until an idle key is not
                                               shared any more */
#define NGX_HTTP_DSA_LIMIT_BATCH  128       /* keys whose commands are sent
                                               together */
#define NGX_HTTP_DSA_LIMIT_KEYS   8192      /* of a round */
#define NGX_HTTP_DSA_LIMIT_ARENA  (1024 * 1024)


/* A key of a batch. */

typedef struct {
    ngx_http_dsa_limit_t  *limit;           /* valid during its round */
    u_char                 id[DSA_KEY_ID_LEN];
    u_char                 tenant[NGX_HTTP_DSA_TENANT_LEN];
    dsa_key_use_t          use[DSA_KEY_RATES];
    uint32_t               running;
    dsa_sums_mark_t        mark;            /* of what it has spent */
    unsigned               shared:1;        /* it is in use */
    unsigned               budget:1;        /* also read what it has spent */
} ngx_http_dsa_limit_item_t;


/* The round that this process runs. */

typedef struct {
    ngx_http_dsa_redis_t       *redis;      /* NULL: nothing is shared */
    ngx_http_dsa_limits_t      *limits;
    ngx_log_t                  *log;
    uint64_t                    round;
    ngx_uint_t                  keys;       /* of this round so far */
    ngx_uint_t                  waiting;    /* replies of the batch */
    ngx_msec_t                  sent;       /* time of the batch */
    time_t                      time;       /* of the sums that are read */
    ngx_http_dsa_sums_t        *sums;       /* NULL: nothing is shared */
    ngx_uint_t                  n;
    ngx_http_dsa_limit_item_t   items[NGX_HTTP_DSA_LIMIT_BATCH];
    unsigned                    cached:1;   /* the script was sent */
    unsigned                    failed:1;   /* a command of this round */
    unsigned                    stop:1;     /* the round ends with this batch */
    unsigned                    away:1;     /* the last round has failed */
} ngx_http_dsa_limit_sync_t;


static void ngx_http_dsa_limit_sync_next(ngx_http_dsa_limit_sync_t *sync);
static void ngx_http_dsa_limit_sync_collect(ngx_http_dsa_limit_sync_t *sync);
static void ngx_http_dsa_limit_sync_mark(ngx_http_dsa_limit_sync_t *sync);
static void ngx_http_dsa_limit_sync_item(ngx_http_dsa_limit_t *limit,
    ngx_http_dsa_limit_item_t *item);
static void ngx_http_dsa_limit_sync_use_of(dsa_bucket_t *bucket, uint64_t rate,
    uint64_t *used, dsa_key_use_t *use);
static void ngx_http_dsa_limit_sync_send(ngx_http_dsa_limit_sync_t *sync);
static ngx_int_t ngx_http_dsa_limit_sync_send_use(
    ngx_http_dsa_limit_sync_t *sync, ngx_http_dsa_limit_item_t *item,
    dsa_arena_t *arena, const char **why);
static ngx_int_t ngx_http_dsa_limit_sync_send_spent(
    ngx_http_dsa_limit_sync_t *sync, ngx_http_dsa_limit_item_t *item,
    dsa_arena_t *arena, const char **why);
static void ngx_http_dsa_limit_sync_shared(void *data, redisReply *reply,
    const char *why);
static void ngx_http_dsa_limit_sync_spent(void *data, redisReply *reply,
    const char *why);
static void ngx_http_dsa_limit_sync_failed(ngx_uint_t stop, const char *why);
static void ngx_http_dsa_limit_sync_replied(void);
static void ngx_http_dsa_limit_sync_apply(ngx_http_dsa_limit_item_t *item,
    const dsa_key_shared_t *shared);
static void ngx_http_dsa_limit_sync_bucket(dsa_bucket_t *bucket,
    uint64_t missing, uint64_t used);
static ngx_uint_t ngx_http_dsa_limit_sync_valid(
    const ngx_http_dsa_limits_t *limits);
static void ngx_http_dsa_limit_sync_queue(ngx_http_dsa_limits_t *limits);
static ngx_uint_t ngx_http_dsa_limit_sync_listed(
    ngx_http_dsa_limits_t *limits, const ngx_http_dsa_limit_t *limit);


static ngx_http_dsa_limit_sync_t  ngx_http_dsa_limit_sync;


void
ngx_http_dsa_limit_sync_start(ngx_http_dsa_redis_t *redis)
{
    ngx_http_dsa_limit_sync.redis = redis;

    if (redis != NULL) {
        ngx_http_dsa_limit_sync.sums =
            ngx_http_dsa_ledger_sums(ngx_http_dsa_redis_ledger(redis));
    }
}


void
ngx_http_dsa_limit_sync_use(ngx_http_dsa_limits_t *limits,
    ngx_http_dsa_limit_t *limit)
{
    const dsa_key_limits_t  *conf;

    conf = &limit->conf;

    if (ngx_http_dsa_limit_sync.redis == NULL
        || (conf->rpm == 0 && conf->tpm == 0 && conf->concurrency == 0
            && !ngx_http_dsa_limit_budget_any(conf, 0)))
    {
        return;
    }

    limit->last = ngx_current_msec;

    ngx_http_dsa_limit_sync_list(limits, limit);
}


void
ngx_http_dsa_limit_sync_list(ngx_http_dsa_limits_t *limits,
    ngx_http_dsa_limit_t *limit)
{
    ngx_http_dsa_limit_sync_queue(limits);

    if (!ngx_http_dsa_limit_sync_listed(limits, limit)) {
        ngx_queue_insert_tail(&limits->active, &limit->queue);
        limit->listed = limits->repairs + 1;
    }
}


void
ngx_http_dsa_limit_sync_soon(ngx_http_dsa_limits_t *limits, ngx_msec_t ms)
{
    if ((ngx_msec_int_t) (limits->next - (limits->began + ms)) > 0) {
        limits->next = limits->began + ms;
    }
}


ngx_msec_t
ngx_http_dsa_limit_sync_wait(const ngx_http_dsa_limits_t *limits)
{
    ngx_msec_int_t  ms;

    ms = (ngx_msec_int_t) (limits->next - ngx_current_msec);

    return ngx_max(ms, 1);
}


ngx_uint_t
ngx_http_dsa_limit_sync_up(void)
{
    return ngx_http_dsa_limit_sync.redis != NULL
           && ngx_http_dsa_redis_up(ngx_http_dsa_limit_sync.redis);
}


ngx_uint_t
ngx_http_dsa_limit_sync_begun(const ngx_http_dsa_limits_t *limits)
{
    return ngx_http_dsa_limit_sync.redis == NULL || limits->round != 0;
}


ngx_int_t
ngx_http_dsa_limit_sync_remove(ngx_http_dsa_limits_t *limits,
    ngx_http_dsa_limit_t *limit)
{
    ngx_http_dsa_limit_sync_queue(limits);

    /* a reply of the current round may still be applied to the key */

    if (limits->until != 0 && limit->round == limits->round) {
        return NGX_BUSY;
    }

    if (ngx_http_dsa_limit_sync_listed(limits, limit)) {
        ngx_queue_remove(&limit->queue);
        limit->listed = 0;
    }

    return NGX_OK;
}


/*
 * Creates the queue.  If a process was killed while it held the lock, the
 * queue may be damaged, so an empty one is created.  Keys are added again when
 * they are used.
 */

static void
ngx_http_dsa_limit_sync_queue(ngx_http_dsa_limits_t *limits)
{
    if (limits->active.next == NULL
        || limits->repairs != limits->permits.repairs)
    {
        ngx_queue_init(&limits->active);
        limits->repairs = limits->permits.repairs;
    }
}


static ngx_uint_t
ngx_http_dsa_limit_sync_listed(ngx_http_dsa_limits_t *limits,
    const ngx_http_dsa_limit_t *limit)
{
    return limit->listed == limits->repairs + 1;
}


void
ngx_http_dsa_limit_sync_tick(ngx_http_dsa_limits_t *limits, ngx_log_t *log)
{
    ngx_uint_t                  due;
    ngx_http_dsa_limit_sync_t  *sync;

    sync = &ngx_http_dsa_limit_sync;

    if (sync->redis == NULL || sync->waiting != 0
        || !ngx_http_dsa_redis_up(sync->redis))
    {
        return;
    }

    dsa_permits_lock(&limits->permits);

    due = (ngx_msec_int_t) (ngx_current_msec - limits->next) >= 0
          && (limits->until == 0
              || (ngx_msec_int_t) (ngx_current_msec - limits->until) >= 0);

    if (due) {
        limits->round++;
        limits->began = ngx_current_msec;
        limits->next = ngx_current_msec + NGX_HTTP_DSA_LIMIT_ROUND;
        limits->until = ngx_current_msec + NGX_HTTP_DSA_LIMIT_LEASE;
    }

    sync->round = limits->round;

    dsa_permits_unlock(&limits->permits);

    if (!due) {
        return;
    }

    sync->limits = limits;
    sync->log = log;
    sync->keys = 0;
    sync->cached = 0;
    sync->failed = 0;
    sync->stop = 0;

    ngx_http_dsa_limit_sync_next(sync);
}


/* Sends the next batch of a round, or ends the round. */

static void
ngx_http_dsa_limit_sync_next(ngx_http_dsa_limit_sync_t *sync)
{
    for ( ;; ) {
        assert(sync->waiting == 0);

        sync->n = 0;

        if (!sync->stop && sync->keys < NGX_HTTP_DSA_LIMIT_KEYS) {
            ngx_http_dsa_limit_sync_collect(sync);
        }

        if (sync->n == 0) {
            break;
        }

        /*
         * One more, so that a reply within this call does not send the next
         * batch.
         */

        sync->waiting = 1;

        ngx_http_dsa_limit_sync_send(sync);

        sync->keys += sync->n;

        if (--sync->waiting != 0) {
            return;
        }
    }

    if (sync->keys != 0 && sync->away && !sync->failed) {
        ngx_log_error(NGX_LOG_NOTICE, sync->log, 0,
                      "dsa: limits count across hosts again");
    }

    if (sync->keys != 0) {
        sync->away = sync->failed;
    }

    dsa_permits_lock(&sync->limits->permits);

    if (sync->limits->round == sync->round) {
        sync->limits->until = 0;
    }

    dsa_permits_unlock(&sync->limits->permits);
}


static void
ngx_http_dsa_limit_sync_collect(ngx_http_dsa_limit_sync_t *sync)
{
    ngx_queue_t            *q;
    ngx_http_dsa_limit_t   *limit;
    ngx_http_dsa_limits_t  *limits;

    limits = sync->limits;

    sync->sent = ngx_current_msec;

    dsa_permits_lock(&limits->permits);

    ngx_http_dsa_limit_sync_queue(limits);

    if (limits->round == sync->round) {
        limits->until = ngx_current_msec + NGX_HTTP_DSA_LIMIT_LEASE;
    }

    while (limits->round == sync->round && !ngx_queue_empty(&limits->active)
           && sync->n < NGX_HTTP_DSA_LIMIT_BATCH)
    {
        q = ngx_queue_head(&limits->active);
        limit = ngx_queue_data(q, ngx_http_dsa_limit_t, queue);

        if (limit->round == sync->round) {
            break;
        }

        ngx_queue_remove(q);
        ngx_queue_insert_tail(&limits->active, q);

        limit->round = sync->round;

        ngx_http_dsa_limit_sync_item(limit, &sync->items[sync->n++]);
    }

    dsa_permits_unlock(&limits->permits);

    ngx_http_dsa_limit_sync_mark(sync);

    /*
     * After the marks: at midnight the sums of a day that was not marked are
     * read, and are not applied.
     */

    sync->time = time(NULL);
}


/* What was confirmed before now is a part of the sums that will be read. */

static void
ngx_http_dsa_limit_sync_mark(ngx_http_dsa_limit_sync_t *sync)
{
    ngx_uint_t                  i, n;
    ngx_http_dsa_limit_item_t  *item;

    n = 0;

    for (i = 0; i < sync->n; i++) {
        n += sync->items[i].budget;
    }

    if (n == 0) {
        return;
    }

    if (ngx_http_dsa_sums_lock(sync->sums) != NGX_OK) {
        for (i = 0; i < sync->n; i++) {
            sync->items[i].budget = 0;
        }

        return;
    }

    for (i = 0; i < sync->n; i++) {
        item = &sync->items[i];

        if (item->budget) {
            ngx_http_dsa_sums_mark(sync->sums, item->id, &item->mark);
        }
    }

    ngx_http_dsa_sums_unlock(sync->sums);
}


static void
ngx_http_dsa_limit_sync_item(ngx_http_dsa_limit_t *limit,
    ngx_http_dsa_limit_item_t *item)
{
    int64_t                  spent[DSA_KEY_PERIODS];
    ngx_uint_t               i, idle;
    const dsa_key_limits_t  *conf;

    conf = &limit->conf;

    idle = limit->running == 0
           && (limit->last == 0
               || (ngx_msec_int_t) (ngx_current_msec - limit->last)
                  > NGX_HTTP_DSA_LIMIT_IDLE);

    item->limit = limit;
    ngx_memcpy(item->id, limit->id, DSA_KEY_ID_LEN);
    ngx_memcpy(item->tenant, limit->tenant, NGX_HTTP_DSA_TENANT_LEN);
    item->running = limit->running;
    item->shared = !idle;

    for (i = 0; i < DSA_KEY_RATES; i++) {
        item->shared |= (limit->used[i] != 0 || limit->sent[i] != 0);
    }

    item->budget = ngx_http_dsa_limit_budget_any(conf, 0);

    ngx_http_dsa_limit_refill(limit);

    /*
     * Use that was sent in an earlier round but not confirmed, because its
     * worker died.
     */

    for (i = 0; i < DSA_KEY_RATES; i++) {
        limit->used[i] += limit->sent[i];
    }

    ngx_http_dsa_limit_sync_use_of(&limit->requests, conf->rpm,
                                   &limit->used[DSA_KEY_REQUESTS],
                                   &item->use[DSA_KEY_REQUESTS]);
    ngx_http_dsa_limit_sync_use_of(&limit->tokens, conf->tpm,
                                   &limit->used[DSA_KEY_TOKENS],
                                   &item->use[DSA_KEY_TOKENS]);

    for (i = 0; i < DSA_KEY_RATES; i++) {
        limit->sent[i] = item->use[i].used;
    }

    if (idle && (!item->budget
                 || ngx_http_dsa_limit_budget_spent(limit, spent)))
    {
        ngx_queue_remove(&limit->queue);
        limit->listed = 0;
    }
}


/*
 * The use to add in Redis is at most what is missing from the bucket here: the
 * bucket in Redis was refilled in the same time.  use->missing is a lower
 * bound for the bucket in Redis.  It is one second of refilling less than what
 * is missing here, which is more than the time that a command takes.
 */

static void
ngx_http_dsa_limit_sync_use_of(dsa_bucket_t *bucket, uint64_t rate,
    uint64_t *used, dsa_key_use_t *use)
{
    uint64_t  missing, margin;

    missing = rate != 0 ? bucket->missing : 0;
    margin = rate * 1000;

    use->rate = rate;
    use->used = ngx_min(*used, (missing + DSA_BUCKET_PARTS - 1)
                               / DSA_BUCKET_PARTS);
    use->missing = missing > margin ? missing - margin : 0;

    *used = 0;
}


static void
ngx_http_dsa_limit_sync_send(ngx_http_dsa_limit_sync_t *sync)
{
    ngx_uint_t                  i;
    const char                 *why;
    dsa_arena_t                *arena;
    ngx_http_dsa_limit_item_t  *item;

    why = "nginx is out of memory";
    arena = dsa_arena_create(NGX_HTTP_DSA_LIMIT_ARENA);

    for (i = 0; i < sync->n; i++) {
        item = &sync->items[i];

        if (item->shared) {

            if (ngx_http_dsa_limit_sync_send_use(sync, item, arena, &why)
                != NGX_OK)
            {
                ngx_http_dsa_limit_sync_apply(item, NULL);
                ngx_http_dsa_limit_sync_failed(1, why);
                continue;
            }

            sync->waiting++;
        }

        if (item->budget) {

            if (ngx_http_dsa_limit_sync_send_spent(sync, item, arena, &why)
                != NGX_OK)
            {
                ngx_http_dsa_limit_sync_failed(1, why);
                continue;
            }

            sync->waiting++;
        }
    }

    dsa_arena_destroy(arena);
}


/* The first command of a round has the script, and Redis caches it. */

static ngx_int_t
ngx_http_dsa_limit_sync_send_use(ngx_http_dsa_limit_sync_t *sync,
    ngx_http_dsa_limit_item_t *item, dsa_arena_t *arena, const char **why)
{
    dsa_str_t             id, host;
    dsa_schema_command_t  cmd;

    id = dsa_str(item->id, DSA_KEY_ID_LEN);
    host = dsa_str(sync->limits->host, NGX_HTTP_DSA_LIMIT_HOST);

    if (arena == NULL
        || dsa_key_share(&cmd, arena, id, host, item->use, item->running,
                         NGX_HTTP_DSA_LIMIT_LEASE, !sync->cached)
           != DSA_OK
        || ngx_http_dsa_redis_command(sync->redis, &cmd,
                                      ngx_http_dsa_limit_sync_shared, item,
                                      why)
           == NULL)
    {
        return NGX_ERROR;
    }

    sync->cached = 1;

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_limit_sync_send_spent(ngx_http_dsa_limit_sync_t *sync,
    ngx_http_dsa_limit_item_t *item, dsa_arena_t *arena, const char **why)
{
    dsa_str_t             id, tenant;
    dsa_schema_command_t  cmd;

    id = dsa_str(item->id, DSA_KEY_ID_LEN);
    tenant = dsa_str(item->tenant, NGX_HTTP_DSA_TENANT_LEN);

    return arena != NULL
           && dsa_key_spent(&cmd, arena, tenant, id, sync->time) == DSA_OK
           && ngx_http_dsa_redis_command(sync->redis, &cmd,
                                         ngx_http_dsa_limit_sync_spent, item,
                                         why)
              != NULL
           ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_dsa_limit_sync_shared(void *data, redisReply *reply, const char *why)
{
    dsa_err_t                   err;
    dsa_key_shared_t            shared;
    ngx_http_dsa_limit_item_t  *item = data;

    if (why == NULL && dsa_key_share_reply(&shared, reply, &err) == DSA_OK) {
        ngx_http_dsa_limit_sync_apply(item, &shared);

    } else {
        ngx_http_dsa_limit_sync_apply(item, NULL);
        ngx_http_dsa_limit_sync_failed(why != NULL, why != NULL ? why
                                                                : err.text);
    }

    ngx_http_dsa_limit_sync_replied();
}


/*
 * Sets the buckets to those in Redis.  shared is NULL if Redis has not added
 * the use.
 */

static void
ngx_http_dsa_limit_sync_apply(ngx_http_dsa_limit_item_t *item,
    const dsa_key_shared_t *shared)
{
    ngx_uint_t              i;
    ngx_http_dsa_limit_t   *limit;
    ngx_http_dsa_limits_t  *limits;

    limit = item->limit;
    limits = ngx_http_dsa_limit_sync.limits;

    dsa_permits_lock(&limits->permits);

    if (!ngx_http_dsa_limit_sync_valid(limits)) {
        goto done;
    }

    if (shared == NULL) {

        for (i = 0; i < DSA_KEY_RATES; i++) {
            limit->used[i] += limit->sent[i];
            limit->sent[i] = 0;
        }

        goto done;
    }

    ngx_http_dsa_limit_sync_bucket(&limit->requests,
                                   shared->missing[DSA_KEY_REQUESTS],
                                   limit->used[DSA_KEY_REQUESTS]);
    ngx_http_dsa_limit_sync_bucket(&limit->tokens,
                                   shared->missing[DSA_KEY_TOKENS],
                                   limit->used[DSA_KEY_TOKENS]);

    for (i = 0; i < DSA_KEY_RATES; i++) {
        limit->sent[i] = 0;
    }

    limit->elsewhere = ngx_min(shared->running, UINT32_MAX);
    limit->lease = ngx_current_msec + NGX_HTTP_DSA_LIMIT_LEASE;

done:

    dsa_permits_unlock(&limits->permits);
}


/*
 * Sets a bucket.  missing is what Redis reported, for about the time when the
 * command was sent, and used was taken here since then.
 */

static void
ngx_http_dsa_limit_sync_bucket(dsa_bucket_t *bucket, uint64_t missing,
    uint64_t used)
{
    bucket->missing = missing;
    bucket->time = ngx_http_dsa_limit_sync.sent;

    dsa_bucket_take(bucket, used);
}


static void
ngx_http_dsa_limit_sync_spent(void *data, redisReply *reply, const char *why)
{
    int64_t                     spent[DSA_KEY_PERIODS];
    dsa_err_t                   err;
    ngx_http_dsa_limit_item_t  *item = data;

    if (why == NULL && dsa_key_spent_reply(spent, reply, &err) == DSA_OK) {
        ngx_http_dsa_sums_read(ngx_http_dsa_limit_sync.sums, item->id,
                               &item->mark, spent);

    } else {
        ngx_http_dsa_limit_sync_failed(why != NULL, why != NULL ? why
                                                                : err.text);
    }

    ngx_http_dsa_limit_sync_replied();
}


/*
 * Returns 0 if another process has begun a round since: then keys of this
 * round may have been freed.
 */

static ngx_uint_t
ngx_http_dsa_limit_sync_valid(const ngx_http_dsa_limits_t *limits)
{
    return limits->round == ngx_http_dsa_limit_sync.round;
}


/*
 * Logs a failure.  stop: Redis cannot be used, so the round ends; otherwise
 * only the data of this key cannot be used.
 */

static void
ngx_http_dsa_limit_sync_failed(ngx_uint_t stop, const char *why)
{
    ngx_http_dsa_limit_sync_t  *sync;

    sync = &ngx_http_dsa_limit_sync;

    if (!sync->away && !sync->failed && !ngx_exiting && !ngx_terminate) {
        ngx_log_error(NGX_LOG_ERR, sync->log, 0,
                      "dsa: limits do not count across hosts now: %s", why);
    }

    sync->failed = 1;
    sync->stop |= (stop != 0);
}


static void
ngx_http_dsa_limit_sync_replied(void)
{
    ngx_http_dsa_limit_sync_t  *sync;

    sync = &ngx_http_dsa_limit_sync;

    assert(sync->waiting != 0);

    if (--sync->waiting == 0) {
        ngx_http_dsa_limit_sync_next(sync);
    }
}
