
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Slower tiers for tests of the scheduler: moves of the scripted backend that
 * end when the test lets them, and a tier in memory in place of Redis, whose
 * operations end, fail or find damaged pages as the test decides.  Everything
 * runs in one thread and repeats.
 *
 * A page in host memory has the hashes of the backend's cache, so that a wrong
 * or an unfinished page changes the answer.  Steps must not use a page that is
 * moving.
 */


#ifndef _DSA_T_TIERS_H_INCLUDED_
#define _DSA_T_TIERS_H_INCLUDED_


#include "scheduler.h"

#include "base/map.h"


#define PAGE            DSA_PAGE_TOKENS
#define PAGE_BYTES      (DSA_PAGE_TOKENS * sizeof(uint32_t))
#define MAX_CALLS       DSA_MOVE_CALLS
#define MAX_MOVES       64


typedef struct {
    uint32_t            n;
    dsa_page_move_t     move[MAX_MOVES];
} call_t;


/* Moves of a rank and way. */

typedef struct {
    call_t              call[MAX_CALLS];
    uint64_t            ordered;
    uint64_t            ended;
    uint64_t            may_end;        /* calls that the test lets end */
} way_t;


typedef struct {
    uint32_t            value[DSA_PAGE_TOKENS];
    dsa_digest_t        digest;
    uint32_t            used;
} stored_t;


#define MAX_STORED      8192
#define QUEUE           4096


typedef struct {
    uint32_t            on;
    uint32_t            off_after;      /* it is off after so many calls of
                                           on(); 0: it is not */
    uint32_t            unconnected;    /* attempts to connect that failed */
    uint32_t            held;           /* 1: operations do not end */
    uint64_t            page_us;        /* of an operation, one after the
                                           other, if they are not held */
    uint64_t            end_us;         /* of the last operation */
    uint32_t            limit;          /* most pages; sets fail beyond */
    dsa_tier_op_t      *first;          /* in their order */
    dsa_tier_op_t      *last;
    uint32_t            n;
    uint32_t            damage;         /* so many of the next reads are of
                                           damaged pages */
    uint32_t            fail;           /* so many of the next ops fail */
    uint32_t            vanish;         /* so many of the next reads miss */
    uint32_t            sets;
    uint32_t            doubled;        /* sets of a page that was there */
    uint32_t            gets;
    uint32_t            probes;
    stored_t            page[MAX_STORED];
    uint32_t            n_pages;
    dsa_map_t           map;
    dsa_tier_op_t      *done;           /* newest first */
} redis_t;


static way_t       way[MAX_RANKS][DSA_MOVES];
static uint32_t    moves_wait;          /* 1: moves end only by let_end() */
static uint32_t    slabs = 1;           /* of the memory of a host: nodes */
static uint32_t    hosts = 1;           /* with as many ranks each */
static uint32_t    lose;                /* so many of the next pages that move
                                           in on other hosts are not there */
static dsa_host_t  host;
static redis_t     redis;
static uint32_t    move_fails;
static fake_t     *timer;               /* of the operations of redis */
static uint64_t    pinned;


/* A step uses no page that is moving in. */

static inline void
check_not_moving(uint32_t rank, uint32_t page, uint32_t written)
{
    uint32_t      i;
    uint64_t      c;
    const way_t  *w;

    w = &way[rank][DSA_MOVE_IN];

    for (c = w->ended; c < w->ordered; c++) {
        for (i = 0; i < w->call[c % MAX_CALLS].n; i++) {
            assert_int_not_equal(w->call[c % MAX_CALLS].move[i].page, page);
        }
    }

    w = &way[rank][DSA_MOVE_OUT];

    for (c = w->ended; written && c < w->ordered; c++) {
        for (i = 0; i < w->call[c % MAX_CALLS].n; i++) {
            assert_int_not_equal(w->call[c % MAX_CALLS].move[i].page, page);
        }
    }
}


static inline int
tiers_start(dsa_backend_t *b, dsa_batch_seq_t *seq, uint32_t n_seqs,
    dsa_err_t *err)
{
    uint32_t         i, j, r, n;
    const uint32_t  *table;

    for (i = 0; i < n_seqs; i++) {
        n = (seq[i].start + seq[i].n_input + DSA_PAGE_TOKENS - 1)
            / DSA_PAGE_TOKENS;

        for (r = 0; r < b->ranks; r++) {
            table = seq[i].copies != NULL ? seq[i].copies[r]
                    : r == seq[i].rank ? seq[i].pages : NULL;

            for (j = 0; table != NULL && j < n; j++) {
                check_not_moving(r, table[j],
                                 j >= seq[i].start / DSA_PAGE_TOKENS);
            }
        }
    }

    return fake_start(b, seq, n_seqs, err);
}


static inline int
tiers_pin(dsa_backend_t *b, void *memory, uint64_t bytes, dsa_err_t *err)
{
    (void) b;
    (void) err;

    assert_non_null(memory);
    pinned += bytes;

    return DSA_OK;
}


/*
 * A page of a rank moves to and from the memory of its own host, and the move
 * has the place and the digest that another host needs.
 */

static inline void
check_place(uint32_t rank, const dsa_page_move_t *move)
{
    uint32_t                i;
    const dsa_host_slab_t  *slab;

    static const uint8_t  none[DSA_MOVE_TAG];

    for (i = 0; i < host.slabs; i++) {
        slab = &host.slab[i];

        if ((uint8_t *) move->host >= slab->memory
            && (uint8_t *) move->host < slab->memory + slab->bytes)
        {
            assert_int_equal(slab->host, rank / (ranks / hosts));
            assert_int_equal(slab->number, move->slab);
            assert_ptr_equal(slab->memory + move->index * PAGE_BYTES,
                             move->host);
            assert_memory_not_equal(move->tag, none, DSA_MOVE_TAG);
            return;
        }
    }

    fail_msg("a page moves to memory that is not of a slab");
}


static inline int
tiers_move(dsa_backend_t *b, dsa_move_e direction, uint32_t rank,
    const dsa_page_move_t *move, uint32_t n, dsa_err_t *err)
{
    way_t     *w;
    uint32_t   i;

    assert_true(rank < b->ranks && n >= 1 && n <= MAX_MOVES);

    if (((fake_t *) b)->fails || move_fails) {
        return dsa_error(err, "it fails");
    }

    w = &way[rank][direction];
    assert_true(w->ordered - w->ended < MAX_CALLS);

    w->call[w->ordered % MAX_CALLS].n = n;

    for (i = 0; i < n; i++) {
        assert_true(move[i].page < b->pages);
        check_place(rank, &move[i]);
        w->call[w->ordered % MAX_CALLS].move[i] = move[i];

        /* a page has no valid content while it moves */

        if (direction == DSA_MOVE_IN) {
            memset(((fake_t *) b)->cache[rank][move[i].page], 0xee,
                   PAGE_BYTES);

        } else {
            memset(move[i].host, 0xdd, PAGE_BYTES);
        }
    }

    w->ordered++;

    return DSA_OK;
}


static inline void
end_call(fake_t *f, uint32_t rank, dsa_move_e direction)
{
    way_t     *w;
    call_t    *c;
    uint32_t   i;

    w = &way[rank][direction];
    c = &w->call[w->ended++ % MAX_CALLS];

    for (i = 0; i < c->n; i++) {
        if (direction == DSA_MOVE_IN && rank >= ranks / hosts && lose != 0) {
            lose--;
            *c->move[i].lost = 1;
            memset(f->cache[rank][c->move[i].page], 0x77, PAGE_BYTES);

        } else if (direction == DSA_MOVE_IN) {
            memcpy(f->cache[rank][c->move[i].page], c->move[i].host,
                   PAGE_BYTES);

        } else {
            memcpy(c->move[i].host, f->cache[rank][c->move[i].page],
                   PAGE_BYTES);
        }
    }
}


static inline int
tiers_moved(dsa_backend_t *b, dsa_move_e direction, uint32_t rank, int wait,
    uint64_t *calls, dsa_err_t *err)
{
    way_t   *w;
    fake_t  *f;

    (void) err;

    f = (fake_t *) b;
    w = &way[rank][direction];

    if (!moves_wait) {
        w->may_end = w->ordered;
    }

    while (w->ended < w->may_end && w->ended < w->ordered) {
        end_call(f, rank, direction);
    }

    if (wait && w->ended < w->ordered) {
        f->now_us += 50;
        w->may_end = w->ended + 1;
        end_call(f, rank, direction);
    }

    *calls = w->ended;

    return DSA_OK;
}


/* The tier. */

static inline dsa_str_t
digest_key(const dsa_digest_t *d)
{
    return dsa_str((const char *) d->byte, sizeof(d->byte));
}


static inline stored_t *
stored(redis_t *c, const dsa_digest_t *d)
{
    uint64_t  *i;

    i = dsa_map_find(&c->map, digest_key(d));

    return i != NULL ? &c->page[*i] : NULL;
}


static inline int
redis_on(void *data)
{
    redis_t  *c;

    c = data;

    if (c->off_after != 0 && --c->off_after == 0) {
        c->on = 0;
    }

    return (int) c->on;
}


static inline int
redis_submit(void *data, dsa_tier_op_t *op)
{
    redis_t  *c;

    c = data;

    if (!c->on || c->n == QUEUE) {
        return DSA_AGAIN;
    }

    op->next = NULL;
    op->queued_us = timer->now_us;
    op->begin_us = 0;

    if (c->last != NULL) {
        c->last->next = op;

    } else {
        c->first = op;
    }

    c->last = op;
    c->n++;

    return DSA_OK;
}


static inline void
redis_execute(redis_t *c, dsa_tier_op_t *op)
{
    stored_t  *s;

    op->result = DSA_TIER_DONE;

    if (!c->on || c->fail != 0) {
        c->fail -= c->fail != 0;
        op->result = DSA_TIER_FAILED;

        /* a part may have arrived */

        if (op->kind == DSA_TIER_READ) {
            memset(op->page, 0xcc, PAGE_BYTES / 2);
        }

        return;
    }

    if (op->kind == DSA_TIER_PROBE) {
        c->probes++;

        for (op->found = 0; op->found < op->n; op->found++) {
            if (stored(c, &op->digest[op->found]) == NULL) {
                break;
            }
        }

        return;
    }

    s = stored(c, op->digest);

    if (op->kind == DSA_TIER_READ) {
        c->gets++;

        if (s == NULL || c->vanish != 0) {
            c->vanish -= c->vanish != 0;
            op->result = DSA_TIER_MISS;

        } else if (c->damage != 0) {
            c->damage--;
            memset(op->page, 0xbb, PAGE_BYTES);
            op->result = DSA_TIER_INVALID;

        } else {
            memcpy(op->page, s->value, PAGE_BYTES);
        }

        return;
    }

    c->sets++;
    c->doubled += s != NULL;

    if (s == NULL && c->n_pages == c->limit) {
        op->result = DSA_TIER_FAILED;
        return;
    }

    if (s == NULL) {
        assert_true(c->n_pages < MAX_STORED);
        s = &c->page[c->n_pages];
        s->digest = *op->digest;
        assert_int_equal(dsa_map_add(&c->map, digest_key(&s->digest),
                                     c->n_pages++), DSA_OK);
    }

    memcpy(s->value, op->page, PAGE_BYTES);
}


/* Threads begin to execute the next n operations. */

static inline void
redis_begin(redis_t *c, uint32_t n)
{
    dsa_tier_op_t  *op;

    for (op = c->first; op != NULL && n-- != 0; op = op->next) {
        op->begin_us = timer->now_us + 1;
    }
}


/* The next n operations end, or all that there are. */

static inline void
redis_run(redis_t *c, uint32_t n)
{
    dsa_tier_op_t  *op, **tail;

    while (n-- != 0 && c->first != NULL) {
        op = c->first;
        c->first = op->next;
        c->n--;

        if (c->first == NULL) {
            c->last = NULL;
        }

        redis_execute(c, op);
        op->next = NULL;

        if (c->end_us < op->queued_us) {
            c->end_us = op->queued_us;
        }

        c->end_us = c->held ? timer->now_us : c->end_us + c->page_us;
        op->begin_us = op->begin_us != 0 ? op->begin_us : op->queued_us;
        op->end_us = c->end_us;

        for (tail = &c->done; *tail != NULL; tail = &(*tail)->next) {
            /* void */
        }

        *tail = op;
    }
}


static inline dsa_tier_op_t *
redis_collect(void *data)
{
    redis_t        *c;
    dsa_tier_op_t  *done;

    c = data;

    if (!c->held) {
        redis_run(c, UINT32_MAX);
    }

    done = c->done;
    c->done = NULL;

    return done;
}


static inline void
redis_stats(void *data, dsa_tier_stats_t *stats)
{
    redis_t  *c;

    c = data;

    stats->servers = 1;
    stats->servers_on = c->on != 0;
    stats->failed += c->unconnected;
}


static inline void
redis_cancel(void *data, const void *owner)
{
    redis_t        *c;
    dsa_tier_op_t  *op, *next, *first;

    c = data;
    first = c->first;
    c->first = NULL;
    c->last = NULL;
    c->n = 0;

    for (op = first; op != NULL; op = next) {
        next = op->next;

        if (op->owner == owner && op->begin_us == 0) {
            op->result = DSA_TIER_FAILED;
            op->end_us = timer->now_us;
            op->next = c->done;
            c->done = op;
            continue;
        }

        op->next = NULL;

        if (c->last != NULL) {
            c->last->next = op;

        } else {
            c->first = op;
        }

        c->last = op;
        c->n++;
    }
}


static inline void
redis_close(void *data)
{
    redis_t  *c;

    c = data;

    c->first = NULL;
    c->last = NULL;
    c->done = NULL;
    c->n = 0;
}


static inline void
redis_reset(void)
{
    dsa_map_free(&redis.map);
    memset(&redis, 0, sizeof(redis));
    redis.on = 1;
    redis.limit = MAX_STORED;
}


static const dsa_tier_t  redis_tier = {
    .data = &redis,
    .on = redis_on,
    .submit = redis_submit,
    .cancel = redis_cancel,
    .collect = redis_collect,
    .stats = redis_stats,
    .close = redis_close
};


/*
 * A replica whose host memory has so many host pages in each slab; with 0: no
 * tiers.
 */

static inline dsa_sched_t *
start_tiers(fake_t **fake, uint32_t pages, uint32_t host_pages, int with_redis)
{
    fake_t            *f;
    uint32_t           i;
    dsa_err_t          err;
    dsa_sched_t       *s;
    dsa_sched_conf_t   conf;

    f = calloc(1, sizeof(fake_t));
    assert_non_null(f);
    fake_init(f, pages, 16, 1024);
    timer = f;
    memset(way, 0, sizeof(way));
    moves_wait = 0;
    pinned = 0;

    f->base.page_bytes = PAGE_BYTES;
    f->base.start = tiers_start;
    f->base.pin = tiers_pin;
    f->base.move = tiers_move;
    f->base.moved = tiers_moved;

    fake_conf(&conf, f, 16, 1024);

    if (host_pages != 0) {
        memset(&host, 0, sizeof(host));
        host.slabs = slabs * hosts;
        host.hosts = hosts;
        host.page_bytes = PAGE_BYTES;
        f->base.splits = hosts == 1 && ranks > 1;

        for (i = 0; i < host.slabs; i++) {
            host.slab[i].host = i / slabs;
            host.slab[i].number = i % slabs;
            host.slab[i].pages = host_pages;
            host.slab[i].bytes = host_pages * PAGE_BYTES;
            host.slab[i].node = slabs == 1 ? -1 : (int32_t) (i % slabs);
            host.slab[i].memory = malloc(host.slab[i].bytes);
            assert_non_null(host.slab[i].memory);
            memset(host.slab[i].memory, 0xaa, host.slab[i].bytes);
        }

        for (i = 0; i < ranks; i++) {
            f->base.node[i] = (int32_t) (i % slabs);
        }

        conf.host = &host;
    }

    if (with_redis) {
        conf.tier[DSA_TIER_REDIS] = redis_tier;
    }

    s = dsa_sched_create(&f->base, &conf, &handler, &err);

    if (s == NULL) {
        fail_msg("%s", err.text);
    }

    *fake = f;

    return s;
}


static inline void
finish_tiers(dsa_sched_t *s, fake_t *f)
{
    uint32_t  i;

    dsa_sched_destroy(s);

    for (i = 0; i < DSA_HOST_SLABS; i++) {
        free(host.slab[i].memory);
    }

    memset(&host, 0, sizeof(host));
    free(f);
}


static inline int
setup(void **state)
{
    (void) state;

    depth = 1;
    ranks = 1;
    hosts = 1;
    lose = 0;
    rank_tokens = UINT32_MAX;
    redis_reset();

    return 0;
}


/* Runs until a client has its answer, as the step thread would. */

static inline void
answer(dsa_sched_t *s, const client_t *c)
{
    uint32_t   n;
    dsa_err_t  err;

    for (n = 0; c->finish == 0; n++) {
        assert_true(n < 10000);
        assert_int_equal(dsa_sched_poll(s, &err), DSA_OK);
        run(s);
    }
}


/* Submits a prompt of n tokens, whose answer has 3. */

static inline void
submit_turn(dsa_sched_t *s, client_t *c, uint32_t tenant, uint32_t text,
    uint32_t n)
{
    memset(c, 0, sizeof(client_t));
    c->seed = text;
    submit(s, c, tenant, text, n, 3, 1);
}


/* A prompt of n tokens, answered; its usage is in c. */

static inline void
turn(dsa_sched_t *s, client_t *c, uint32_t tenant, uint32_t text, uint32_t n)
{
    submit_turn(s, c, tenant, text, n);
    answer(s, c);
    check(c, 3, DSA_FINISH_LENGTH);
}


/* Runs until nothing is left to do: no page moves or is written. */

static inline void
settle(dsa_sched_t *s)
{
    uint32_t    n;
    dsa_err_t   err;

    for (n = 0; dsa_sched_unwritten(s) != 0 || dsa_sched_busy(s); n++) {
        assert_true(n < 10000);
        assert_int_equal(dsa_sched_poll(s, &err), DSA_OK);

        if (dsa_sched_busy(s)) {
            step(s);
        }
    }
}


/*
 * A replica answers a prompt of n tokens of each of the tenants 1, 2, .. and
 * ends.  Redis then has the pages of all of them.
 */

static inline void
fill_redis(uint32_t pages, uint32_t host_pages, uint32_t tenants, uint32_t n)
{
    fake_t       *f;
    client_t      c;
    uint32_t      i;
    dsa_sched_t  *s;

    s = start_tiers(&f, pages, host_pages, 1);

    for (i = 1; i <= tenants; i++) {
        turn(s, &c, i, i, n);
        settle(s);
    }

    finish_tiers(s, f);
}


/*
 * Submits a prompt of n tokens of tenant 1.  Redis reports which of its pages
 * it has; the operations that follow do not end before the test lets them.
 */

static inline void
submit_held(dsa_sched_t *s, client_t *c, uint32_t n)
{
    redis.held = 1;
    submit_turn(s, c, 1, 1, n);
    step(s);
    redis_run(&redis, 1);
    assert_int_equal(dsa_sched_poll(s, NULL), DSA_OK);
}


static inline dsa_sched_stats_t
stats_of(dsa_sched_t *s)
{
    dsa_sched_stats_t  stats;

    dsa_sched_stats(s, &stats);

    return stats;
}


#endif /* _DSA_T_TIERS_H_INCLUDED_ */
