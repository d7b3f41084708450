
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "base/tiers.h"
#include "engine/hosts/plan.h"
#include "t/unit/hosts.h"


/*
 * The host memory of a follower, and a tier behind it: pages come back as they
 * were, and what is not there is reported, never another page.
 */

#define MODEL       GOLDEN "a-fp8"
#define MEMORY      (32 << 20)
#define HERE        8               /* host pages of this host */


/* A tier of the follower, with the pages that were written to it. */

#define STORED      8

typedef struct {
    dsa_digest_t        digest[STORED];
    uint8_t            *page[STORED];
    uint32_t            n;
    uint64_t            page_bytes;
    dsa_tier_op_t      *done;
    dsa_tier_op_t      *held;           /* digest 0xff..: until it is
                                           cancelled */
} store_t;


static hosts_t         hosts;
static dsa_backend_t  *b;
static dsa_host_t      memory;          /* its slabs: here, there */
static uint64_t        calls[DSA_MOVES];
static store_t         store;
static dsa_tier_op_t   last;            /* of tier() */
static int           (*serve)(dsa_hosts_wire_t *w);     /* of the follower */


static int
store_on(void *data)
{
    return 1;
}


static int
store_submit(void *data, dsa_tier_op_t *op)
{
    uint32_t  i;
    store_t  *s = data;

    op->queued_us = 1;
    op->begin_us = 1;
    op->end_us = 8;

    if (op->digest->byte[0] == 0xff) {
        op->next = s->held;
        s->held = op;
        return DSA_OK;
    }

    for (i = 0; i < s->n; i++) {
        if (memcmp(&s->digest[i], op->digest, sizeof(dsa_digest_t)) == 0) {
            break;
        }
    }

    op->result = DSA_TIER_DONE;

    if (op->kind == DSA_TIER_READ && i == s->n) {
        op->result = DSA_TIER_MISS;

    } else if (op->kind == DSA_TIER_READ) {
        memcpy(op->page, s->page[i], s->page_bytes);

    } else {
        assert_true(i < STORED);
        s->page[i] = malloc(s->page_bytes);
        assert_non_null(s->page[i]);
        memcpy(s->page[i], op->page, s->page_bytes);
        s->digest[i] = *op->digest;
        s->n = i + 1;
    }

    op->next = s->done;
    s->done = op;

    return DSA_OK;
}


static void
store_cancel(void *data, const void *owner)
{
    store_t        *s = data;
    dsa_tier_op_t  *op;

    for (op = s->held; op != NULL; op = s->held) {
        assert_ptr_equal(op->owner, owner);
        s->held = op->next;
        op->result = DSA_TIER_FAILED;
        op->next = s->done;
        s->done = op;
    }
}


static dsa_tier_op_t *
store_collect(void *data)
{
    store_t        *s = data;
    dsa_tier_op_t  *op;

    op = s->done;
    s->done = NULL;

    return op;
}


static void
store_close(void *data)
{
}


static const dsa_tier_t  store_tier = {
    .data = &store,
    .on = store_on,
    .submit = store_submit,
    .cancel = store_cancel,
    .collect = store_collect,
    .close = store_close
};


static int
store_open(void *data, uint32_t mask, const dsa_backend_t *backend,
    void (*wake)(void *data), void *wake_data, dsa_tier_t *tier,
    dsa_err_t *err)
{
    if (mask != 1U << DSA_TIER_REDIS) {
        return dsa_error(err, "other tiers");
    }

    /* it may wake without an operation, as Redis does when it connects */

    wake(wake_data);

    store.page_bytes = backend->page_bytes;
    tier[DSA_TIER_REDIS] = store_tier;

    return DSA_OK;
}


static int
no_tiers(void *data, uint32_t mask, const dsa_backend_t *backend,
    void (*wake)(void *data), void *wake_data, dsa_tier_t *tier,
    dsa_err_t *err)
{
    return dsa_error(err, "no such tier here");
}


static void
begin(void)
{
    dsa_err_t  err;

    memset(calls, 0, sizeof(calls));
    hosts_init(&hosts, MODEL, 1, 1);
    hosts.follower[0].tiers = store_open;
    hosts.follower[0].serve = serve;
    hosts.leader.tiers = 1U << DSA_TIER_REDIS;
    hosts_start(&hosts);

    b = hosts_lead(&hosts, MODEL, MEMORY, &err);
    must(b != NULL ? DSA_OK : DSA_ERROR, &err);
    must(dsa_host_open_part(&memory, HERE * (b->page_bytes + DSA_HOST_ALIGN),
                            b->page_bytes, 2, &err), &err);
    must(b->pin(b, memory.slab[0].memory, memory.slab[0].bytes, &err), &err);

    dsa_hosts_memory(b, &memory);
    assert_true(memory.slabs >= 2);
    assert_int_equal(memory.slab[memory.slabs - 1].host, 1);
    assert_null(memory.slab[memory.slabs - 1].memory);
}


static void
end(int status)
{
    b->close(b);
    dsa_host_close(&memory);
    hosts_end(&hosts, status);
}


static void
tag_of(dsa_digest_t *digest, uint8_t name)
{
    memset(digest, name, sizeof(dsa_digest_t));
}


/* One move of rank 1; returns whether the page was lost. */

static uint32_t
move(dsa_move_e way, uint32_t page, uint32_t index, uint8_t name)
{
    uint32_t         lost;
    uint64_t         ended;
    dsa_err_t        err;
    dsa_digest_t     digest;
    dsa_page_move_t  m = { page, NULL, 0, index, digest.byte, &lost };

    lost = 0;
    tag_of(&digest, name);
    must(b->move(b, way, 1, &m, 1, &err), &err);
    must(b->moved(b, way, 1, 1, &ended, &err), &err);
    assert_int_equal(ended, ++calls[way]);

    return lost;
}


static void
local(dsa_move_e way, uint32_t page, void *host)
{
    uint64_t         ended;
    dsa_err_t        err;
    dsa_page_move_t  m = { page, host, 0, 0, NULL, NULL };

    must(b->move(b, way, 0, &m, 1, &err), &err);
    must(b->moved(b, way, 0, 1, &ended, &err), &err);
}


/* Sets a page of rank 1 to a pattern, by way of rank 0. */

static void
set(uint32_t page, uint8_t pattern)
{
    uint8_t          *p;
    dsa_err_t         err;
    dsa_page_copy_t   copy = { 0, 0, 1, page };

    p = dsa_host_page(&memory, 0, 0);
    memset(p, pattern, b->page_bytes);
    local(DSA_MOVE_IN, 0, p);
    must(b->copy(b, &copy, 1, &err), &err);
}


static void
has(uint32_t page, uint8_t pattern)
{
    uint64_t          i;
    uint8_t          *p;
    dsa_err_t         err;
    dsa_page_copy_t   copy = { 1, page, 0, 1 };

    p = dsa_host_page(&memory, 0, 1);
    must(b->copy(b, &copy, 1, &err), &err);
    local(DSA_MOVE_OUT, 1, p);

    for (i = 0; i < b->page_bytes; i++) {
        assert_int_equal(p[i], pattern);
    }
}


static void
test_moves(void **state)
{
    uint32_t         lost[2];
    uint64_t         ended;
    dsa_err_t        err;
    dsa_digest_t     a, c;
    dsa_page_move_t  m[2] = {
        { 2, NULL, 0, 5, a.byte, &lost[0] }, { 3, NULL, 0, 6, c.byte, &lost[1] }
    };

    begin();

    set(1, 0x11);
    assert_int_equal(move(DSA_MOVE_OUT, 1, 5, 'a'), 0);
    set(1, 0x22);
    assert_int_equal(move(DSA_MOVE_OUT, 1, 6, 'b'), 0);
    set(1, 0x33);

    assert_int_equal(move(DSA_MOVE_IN, 2, 5, 'a'), 0);
    has(2, 0x11);
    assert_int_equal(move(DSA_MOVE_IN, 2, 6, 'b'), 0);
    has(2, 0x22);
    has(1, 0x33);

    /* a page that was never there, and one that is another page */

    assert_int_equal(move(DSA_MOVE_IN, 2, 7, 'a'), 1);
    assert_int_equal(move(DSA_MOVE_IN, 2, 6, 'a'), 1);
    has(2, 0x22);

    /* its memory has another page now */

    assert_int_equal(move(DSA_MOVE_OUT, 1, 6, 'd'), 0);
    assert_int_equal(move(DSA_MOVE_IN, 2, 6, 'b'), 1);

    /* of a call, one is there and one is not */

    tag_of(&a, 'a');
    tag_of(&c, 'b');
    memset(lost, 0, sizeof(lost));
    must(b->move(b, DSA_MOVE_IN, 1, m, 2, &err), &err);
    must(b->moved(b, DSA_MOVE_IN, 1, 1, &ended, &err), &err);
    assert_int_equal(ended, calls[DSA_MOVE_IN] + 1);
    assert_int_equal(lost[0], 0);
    assert_int_equal(lost[1], 1);
    has(2, 0x11);

    end(0);
}


/* An operation of the tier on a host page of the follower. */

static dsa_tier_result_e
tier(dsa_tier_t *t, dsa_tier_kind_e kind, uint32_t index, uint8_t name,
    int cancel)
{
    uint64_t        begin_ms;
    dsa_digest_t    digest;
    dsa_tier_op_t   op, *done;

    memset(&op, 0, sizeof(op));
    tag_of(&digest, name);
    op.kind = kind;
    op.digest = &digest;
    op.n = 1;
    op.host = 1;
    op.index = index;
    op.owner = &op;

    assert_int_equal(t->submit(t->data, &op), DSA_OK);

    if (cancel) {
        t->cancel(t->data, &op);
    }

    begin_ms = dsa_clock_ms();

    do {
        done = t->collect(t->data);
        assert_true(dsa_clock_ms() - begin_ms < HOSTS_STEP_MS);
    } while (done == NULL);

    assert_ptr_equal(done, &op);
    assert_null(done->next);
    assert_true(op.queued_us <= op.end_us);
    last = op;

    return op.result;
}


static void
test_tier(void **state)
{
    dsa_tier_t  t;

    begin();
    memset(&t, 0, sizeof(t));
    t = store_tier;
    dsa_hosts_tier(b, DSA_TIER_REDIS, &t);

    set(1, 0x44);
    assert_int_equal(move(DSA_MOVE_OUT, 1, 3, 'a'), 0);
    assert_int_equal(tier(&t, DSA_TIER_WRITE, 3, 'a', 0), DSA_TIER_DONE);
    assert_int_equal(tier(&t, DSA_TIER_READ, 4, 'a', 0), DSA_TIER_DONE);
    assert_int_equal(move(DSA_MOVE_IN, 2, 4, 'a'), 0);
    has(2, 0x44);

    /* what the tier does not have is not in host memory, either */

    assert_int_equal(tier(&t, DSA_TIER_READ, 4, 'x', 0), DSA_TIER_MISS);
    assert_int_equal(move(DSA_MOVE_IN, 2, 4, 'x'), 1);
    assert_int_equal(move(DSA_MOVE_IN, 2, 4, 'a'), 1);

    /* another page is not written under this name */

    assert_int_equal(tier(&t, DSA_TIER_WRITE, 3, 'b', 0), DSA_TIER_FAILED);
    assert_int_equal(tier(&t, DSA_TIER_READ, 4, 'b', 0), DSA_TIER_MISS);

    assert_int_equal(tier(&t, DSA_TIER_READ, 4, 0xff, 1), DSA_TIER_FAILED);

    /* none of it was in the store of this process */

    assert_int_equal(store.n, 0);
    t.close(t.data);
    end(0);
}


/* What a leader must not send ends the follower, which reports why. */

static void
refused(uint32_t page, uint32_t index, const char *why)
{
    uint64_t         ended;
    dsa_err_t        err;
    dsa_digest_t     digest;
    dsa_page_move_t  m = { page, NULL, 0, index, digest.byte, NULL };

    begin();
    tag_of(&digest, 'a');
    must(b->move(b, DSA_MOVE_OUT, 1, &m, 1, &err), &err);
    assert_int_equal(b->moved(b, DSA_MOVE_OUT, 1, 1, &ended, &err), DSA_ERROR);

    if (strstr(err.text, hosts.follower[0].address) == NULL
        || strstr(err.text, why) == NULL)
    {
        fail_msg("\"%s\" does not contain \"%s\"", err.text, why);
    }

    end(3);
}


static void
test_refused(void **state)
{
    dsa_err_t  err;

    refused(1, 1U << 30, "which does not exist");
    refused(1U << 30, 1, "which does not exist");

    hosts_init(&hosts, MODEL, 1, 1);
    hosts.follower[0].tiers = no_tiers;
    hosts.leader.tiers = 1U << DSA_TIER_REDIS;
    hosts_start(&hosts);

    assert_null(hosts_lead(&hosts, MODEL, MEMORY, &err));
    assert_non_null(strstr(err.text, hosts.follower[0].address));
    assert_non_null(strstr(err.text, "no such tier here"));
    hosts_end(&hosts, 3);
}


/*
 * A follower that opens the backend as it should, and then answers MOVE or TIER
 * by what it must not send.
 */

typedef struct {
    dsa_hosts_type_e        type;
    uint32_t                number;
    uint32_t                bytes;
    uint32_t                word[6];
    const char             *why;
} junk_t;


static const junk_t  *junk;


/* Opens the backend, and sends READY. */

static int
serve_ready(dsa_hosts_wire_t *w)
{
    dsa_err_t            err;
    struct iovec         part;
    dsa_backend_t       *own;
    dsa_hosts_head_t     head;
    dsa_hosts_plan_t     plan;
    dsa_hosts_ready_t    ready;
    dsa_backend_conf_t   conf;

    dsa_hosts_wire_limit(w, HOSTS_STEP_MS);
    memset(&conf, 0, sizeof(conf));
    conf.model = MODEL;
    conf.gpus = 1;

    if (dsa_hosts_wire_head(w, &head, &err) != DSA_OK
        || dsa_hosts_wire_read(w, &plan, sizeof(plan), &err) != DSA_OK
        || dsa_hosts_plan_apply(&conf, DSA_BACKEND_CPU, &plan, &err) != DSA_OK)
    {
        return 1;
    }

    own = dsa_backend_open(DSA_BACKEND_CPU, &conf, &err);

    if (own == NULL) {
        return 1;
    }

    memset(&ready, 0, sizeof(ready));
    memcpy(ready.fingerprint, own->fingerprint, sizeof(ready.fingerprint));
    ready.pages = own->pages;
    ready.page_bytes = own->page_bytes;
    ready.slabs = 1;
    ready.slab_pages[0] = 8;
    part.iov_base = &ready;
    part.iov_len = sizeof(ready);

    return dsa_hosts_wire_send(w, DSA_HOSTS_READY, 0, &part, 1, &err) == DSA_OK
           ? 0 : 1;
}


static int
serve_junk(dsa_hosts_wire_t *w)
{
    char                skip[4096];
    dsa_err_t           err;
    struct iovec        part;
    dsa_hosts_head_t    head;

    if (serve_ready(w) != 0
        || dsa_hosts_wire_head(w, &head, &err) != DSA_OK
        || head.bytes > sizeof(skip)
        || dsa_hosts_wire_read(w, skip, head.bytes, &err) != DSA_OK)
    {
        return 1;
    }

    part.iov_base = (void *) (uintptr_t) junk->word;
    part.iov_len = junk->bytes;
    (void) dsa_hosts_wire_send(w, junk->type, junk->number, &part, 1, &err);

    /* until the leader has read it and closes */

    while (dsa_hosts_wire_read(w, skip, 1, &err) == DSA_OK) {
        /* void */
    }

    return 0;
}


static void
test_junk(void **state)
{
    size_t           i;
    uint64_t         ended;
    dsa_err_t        err;
    dsa_digest_t     digest;
    dsa_page_move_t  m = { 1, NULL, 0, 1, digest.byte, NULL };

    static const junk_t  cases[] = {
        { DSA_HOSTS_MOVED, 0, 16, { DSA_MOVE_OUT, 0 }, "sent MOVED 0 of rank "
          "0, without a MOVE" },
        { DSA_HOSTS_MOVED, 0, 16, { DSA_MOVE_OUT, 2 }, "rank 2, without" },
        { DSA_HOSTS_MOVED, 0, 16, { DSA_MOVE_IN, 1 }, "sent MOVED 1 of rank 1, "
          "without a MOVE" },
        { DSA_HOSTS_MOVED, 0, 16, { DSA_MOVES, 1 }, "sent MOVED 2 of rank 1" },
        { DSA_HOSTS_MOVED, 0, 8, { 0 }, "sent MOVED of 8 bytes; expected 16" },
        { DSA_HOSTS_TIERED, 0, 24, { 0, 1 }, "sent TIERED 0 with result 1" },
        { DSA_HOSTS_TIERED, 0, 24, { UINT32_MAX, 1 }, "sent TIERED 4294967295 "
          "with" },
        { DSA_HOSTS_TIERED, 0, 16, { 0 }, "sent TIERED of 16 bytes; expected "
          "24" },
        { DSA_HOSTS_RESULT, 0, 0, { 0 }, "sent RESULT 0 of 0 bytes while it "
          "moves pages" },
        { DSA_HOSTS_READY, 7, 4, { 0 }, "sent READY 7 of 4 bytes while it "
          "moves pages" }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        junk = &cases[i];
        serve = serve_junk;
        begin();

        tag_of(&digest, 'a');
        must(b->move(b, DSA_MOVE_OUT, 1, &m, 1, &err), &err);
        assert_int_equal(b->moved(b, DSA_MOVE_OUT, 1, 1, &ended, &err),
                         DSA_ERROR);

        if (strstr(err.text, hosts.follower[0].address) == NULL
            || strstr(err.text, cases[i].why) == NULL)
        {
            fail_msg("case %zu: \"%s\" does not contain \"%s\"", i, err.text,
                     cases[i].why);
        }

        end(0);
    }

    serve = NULL;
}


/*
 * What an operation took is what the follower measured: the leader may read the
 * answer a step later.
 */

static void
test_times(void **state)
{
    dsa_tier_t  t;

    static const junk_t  cases[] = {
        { DSA_HOSTS_TIERED, 0, 24, { 0, DSA_TIER_DONE, 1, 0, 2 }, "" },
        { DSA_HOSTS_TIERED, 0, 24, { 0, DSA_TIER_DONE, 3, 0, 2 }, "" },
        { DSA_HOSTS_TIERED, 0, 24, { 0, DSA_TIER_DONE }, "" },
        { DSA_HOSTS_TIERED, 0, 24, { 0, DSA_TIER_FAILED }, "" }
    };

    for (junk = cases; junk < cases + 4; junk++) {
        serve = serve_junk;
        begin();
        serve = NULL;

        t = store_tier;
        dsa_hosts_tier(b, DSA_TIER_REDIS, &t);
        (void) tier(&t, DSA_TIER_READ, 4, 'a', 0);

        if (junk->word[4] != 0) {
            assert_int_equal(last.end_us - last.queued_us, 2);
        }

        if (junk->word[1] == DSA_TIER_FAILED) {
            assert_int_equal(last.begin_us, 0);

        } else {
            assert_int_equal(last.end_us - last.begin_us,
                             junk->word[2] < 2 ? junk->word[2] : 2);
        }

        t.close(t.data);
        end(0);
    }
}


/* A follower that is there, and never answers a MOVE. */

static int
serve_never(dsa_hosts_wire_t *w)
{
    char       skip[64];
    dsa_err_t  err;

    if (serve_ready(w) != 0) {
        return 1;
    }

    while (dsa_hosts_wire_read(w, skip, 1, &err) == DSA_OK) {
        /* void */
    }

    return 0;
}


/* Without a step that would find it: a request waits for the page. */

static void
test_never(void **state)
{
    int              rc;
    uint64_t         ended, begin_ms;
    dsa_err_t        err;
    dsa_digest_t     digest;
    dsa_page_move_t  m = { 1, NULL, 0, 1, digest.byte, NULL };

    serve = serve_never;
    begin();
    serve = NULL;

    hosts.leader.step_ms = 50;
    tag_of(&digest, 'a');
    begin_ms = dsa_clock_ms();
    must(b->move(b, DSA_MOVE_IN, 1, &m, 1, &err), &err);

    do {
        rc = b->moved(b, DSA_MOVE_IN, 1, 0, &ended, &err);
        assert_int_equal(ended, 0);
        assert_true(dsa_clock_ms() - begin_ms < HOSTS_STEP_MS);
    } while (rc == DSA_OK);

    assert_true(dsa_clock_ms() - begin_ms >= 200);
    assert_non_null(strstr(err.text, hosts.follower[0].address));
    assert_non_null(strstr(err.text, "has not answered MOVE for 200 ms"));

    end(0);
}


/*
 * The same with a read of a tier.  A write may take longer, because it may wait
 * for bandwidth.
 */

static void
test_never_tier(void **state)
{
    uint64_t         begin_ms;
    dsa_err_t        err;
    dsa_tier_t       t;
    dsa_digest_t     digest;
    dsa_tier_op_t    op, write;

    serve = serve_never;
    begin();
    serve = NULL;

    hosts.leader.step_ms = 50;
    t = store_tier;
    dsa_hosts_tier(b, DSA_TIER_REDIS, &t);

    memset(&op, 0, sizeof(op));
    tag_of(&digest, 'a');
    op.kind = DSA_TIER_READ;
    op.digest = &digest;
    op.n = 1;
    op.host = 1;
    op.owner = &op;

    write = op;
    write.kind = DSA_TIER_WRITE;

    begin_ms = dsa_clock_ms();
    assert_int_equal(t.submit(t.data, &write), DSA_OK);

    while (dsa_clock_ms() - begin_ms <= 400) {
        assert_null(t.collect(t.data));
        assert_int_equal(hosts.failures, 0);
    }

    begin_ms = dsa_clock_ms();
    assert_int_equal(t.submit(t.data, &op), DSA_OK);

    do {
        assert_null(t.collect(t.data));
        assert_true(dsa_clock_ms() - begin_ms < HOSTS_STEP_MS);
    } while (hosts.failures == 0);

    assert_true(dsa_clock_ms() - begin_ms >= 200);
    assert_int_equal(b->check(b, &err), DSA_ERROR);
    assert_non_null(strstr(err.text, hosts.follower[0].address));
    assert_non_null(strstr(err.text, "has not answered TIER for 200 ms"));

    t.close(t.data);
    end(0);
}


/* A follower that hangs while it moves pages is named. */

static void
test_hangs(void **state)
{
    uint64_t         ended;
    dsa_err_t        err;
    dsa_digest_t     digest;
    dsa_page_move_t  m = { 1, NULL, 0, 1, digest.byte, NULL };

    begin();
    hosts.leader.step_ms = 500;
    tag_of(&digest, 'a');
    (void) kill(hosts.follower[0].pid, SIGSTOP);

    must(b->move(b, DSA_MOVE_OUT, 1, &m, 1, &err), &err);
    assert_int_equal(b->moved(b, DSA_MOVE_OUT, 1, 0, &ended, &err), DSA_OK);
    assert_int_equal(ended, 0);
    assert_int_equal(b->moved(b, DSA_MOVE_OUT, 1, 1, &ended, &err), DSA_ERROR);
    assert_non_null(strstr(err.text, hosts.follower[0].address));
    assert_non_null(strstr(err.text, "has sent nothing for 500 ms"));

    (void) kill(hosts.follower[0].pid, SIGKILL);
    end(128 + SIGKILL);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_tier),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_junk),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_never),
        cmocka_unit_test(test_never_tier),
        cmocka_unit_test(test_hangs)
    };

    dsa_log_level(getenv("DSA_T_LOG") != NULL ? DSA_LOG_DEBUG : DSA_LOG_ERR);
    (void) signal(SIGPIPE, SIG_IGN);

    return cmocka_run_group_tests(tests, NULL, NULL);
}
