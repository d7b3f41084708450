
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Classes of requests (engine/schedule/policy.h) on the scripted backend of
 * scheduler.h.  The bounds are those that policy.h states.
 */


#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "t/unit/scheduler.h"


#define LOW     DSA_PRIORITY_LOW
#define NORMAL  DSA_PRIORITY_NORMAL
#define HIGH    DSA_PRIORITY_HIGH


/* A client that submits its next request as soon as the last one has ended. */

typedef struct {
    client_t        client;
    uint32_t        tenant;
    dsa_priority_e  priority;
    uint32_t        weight;
    uint32_t        prompt;         /* tokens */
    uint32_t        answer;
    uint32_t        done;           /* requests */
} flood_t;


static void
flood_init(flood_t *a, uint32_t n, uint32_t tenant, dsa_priority_e priority,
    uint32_t weight, uint32_t prompt, uint32_t answer)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        a[i].tenant = tenant;
        a[i].priority = priority;
        a[i].weight = weight;
        a[i].prompt = prompt;
        a[i].answer = answer;
    }
}


static void
flood_step(dsa_sched_t *s, flood_t *a, uint32_t n)
{
    uint32_t         i;
    static uint32_t  text;

    for (i = 0; i < n; i++) {
        if (a[i].client.seq != NULL) {
            continue;
        }

        if (a[i].client.prompt != NULL) {
            check(&a[i].client, a[i].answer, DSA_FINISH_LENGTH);
            a[i].done++;
        }

        a[i].client.seed = i;
        a[i].client.priority = a[i].priority;
        submit(s, &a[i].client, a[i].tenant, ++text, a[i].prompt, a[i].answer,
               a[i].weight);
    }

    step(s);
}


static void
flood_free(dsa_sched_t *s, fake_t *f, flood_t *a, uint32_t n)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        free(a[i].client.prompt);
    }

    free(a);
    finish(s, f);
}


static uint32_t
flood_done(const flood_t *a, uint32_t n)
{
    uint32_t  i, done;

    done = 0;

    for (i = 0; i < n; i++) {
        done += a[i].done;
    }

    return done;
}


/*
 * Six tenants of a lower class have taken all batch indices and have prompts
 * that take 20 steps each.  A high request of 300 tokens gets an index in the
 * next step, and 7 of 8 prefill tokens.  Without classes it would share the
 * tokens with all others.
 */

static void
test_first_token(void **state)
{
    fake_t       *f;
    flood_t      *a;
    uint32_t      i, n;
    client_t      c;
    dsa_sched_t  *s;

    for (i = 0; i < 12; i++) {
        memset(&c, 0, sizeof(c));
        a = calloc(24, sizeof(flood_t));
        assert_non_null(a);
        s = start(&f, 4000, 16, 512);

        for (n = 0; n < 6; n++) {
            flood_init(a + 4 * n, 4, n + 1, i % 2 ? LOW : NORMAL, 10000, 10000,
                       100);
        }

        for (n = 0; n < 100 + i; n++) {
            flood_step(s, a, 24);
        }

        c.priority = HIGH;
        submit(s, &c, 0, 1, 300, 20, 1);

        for (n = 0; c.n == 0; n++) {
            assert_true(n < 2);
            flood_step(s, a, 24);
        }

        /* and a token in each step from then on */

        for (n = 1; n < 20; n++) {
            assert_int_equal(c.n, n);
            flood_step(s, a, 24);
        }

        check(&c, 20, DSA_FINISH_LENGTH);
        flood_free(s, f, a, 24);
    }
}


/*
 * A tenant has taken all batch indices.  A tenant of a higher class with long
 * answers comes: it gets all indices but the minimum of the lower class,
 * whatever the weights are, and the two do not preempt each other in turn.
 */

static void
check_indices(uint32_t indices, uint32_t minimum)
{
    fake_t             *f;
    client_t           *c;
    uint32_t            i, n;
    dsa_sched_t        *s;
    dsa_sched_stats_t   stats;

    n = indices + 4;
    c = calloc(2 * n, sizeof(client_t));
    assert_non_null(c);
    s = start(&f, 3000, indices, 256);

    for (i = 0; i < n; i++) {
        c[i].priority = LOW;
        submit(s, &c[i], 0, i, 20, 600, 10000);
    }

    for (i = 0; i < 50; i++) {
        step(s);
    }

    assert_int_equal(f->tenant_seqs[0], indices);

    for (i = n; i < 2 * n; i++) {
        c[i].priority = NORMAL;
        submit(s, &c[i], 1, i, 20, 600, 1);
    }

    for (i = 0; i < 2 * indices; i++) {
        step(s);
    }

    dsa_sched_stats(s, &stats);
    assert_int_equal(stats.preemptions, indices - minimum);

    for (i = 0; i < 400; i++) {
        step(s);
        assert_int_equal(f->tenant_seqs[0], minimum);
        assert_int_equal(f->tenant_seqs[1], indices - minimum);
    }

    dsa_sched_stats(s, &stats);
    assert_int_equal(stats.preemptions, indices - minimum);

    run(s);

    for (i = 0; i < 2 * n; i++) {
        check(&c[i], 600, DSA_FINISH_LENGTH);
    }

    check_free(s);
    finish(s, f);
    free(c);
}


static void
test_indices(void **state)
{
    check_indices(4, 1);
    check_indices(8, 1);
    check_indices(24, 3);
}


/*
 * The same with the indices taken by a higher class of six tenants with a large
 * weight: two lower classes get their minimum of indices as these become free,
 * and keep it.
 */

static void
test_minimum(void **state)
{
    fake_t       *f;
    flood_t      *a;
    uint32_t      i, seen, more;
    dsa_sched_t  *s;

    a = calloc(60, sizeof(flood_t));
    assert_non_null(a);
    s = start(&f, 3000, 16, 256);

    for (i = 0; i < 6; i++) {
        flood_init(a + 8 * i, 8, i + 2, HIGH, 1000, 20, 60 + i);
    }

    for (i = 0; i < 300; i++) {
        flood_step(s, a, 48);
    }

    flood_init(a + 48, 6, 0, LOW, 1, 20, 50);
    flood_init(a + 54, 6, 1, NORMAL, 1, 20, 50);

    for (i = 0; i < 100; i++) {
        flood_step(s, a, 60);
    }

    seen = 0;
    more = 0;

    for (i = 0; i < 2000; i++) {
        flood_step(s, a, 60);
        seen += f->tenant_seqs[0] >= 1 && f->tenant_seqs[1] >= 1;
        more += f->tenant_seqs[0] > 2 || f->tenant_seqs[1] > 2;
    }


    /*
     * An answer takes 50 steps, so that one sequence at a time would be 40
     * answers.  The minimum is 2.
     */

    assert_true(seen > 1900);
    assert_true(more < 100);
    assert_true(flood_done(a + 48, 6) > 60);
    assert_true(flood_done(a + 54, 6) > 60);

    flood_free(s, f, a, 60);
}


/*
 * Prompts of all classes compete for tokens only.  Lower classes get one for
 * every 7 of the higher classes, and tenants of one class share by weight.
 */

static void
test_tokens(void **state)
{
    fake_t       *f;
    double        high, normal, low;
    flood_t      *a;
    uint32_t      i;
    uint64_t     *had;
    dsa_sched_t  *s;

    a = calloc(10, sizeof(flood_t));
    assert_non_null(a);
    s = start(&f, 4000, 64, 2048);

    flood_init(a, 2, 0, HIGH, 1, 5000, 1);
    flood_init(a + 2, 2, 1, HIGH, 3, 5000, 1);
    flood_init(a + 4, 2, 2, NORMAL, 10000, 5000, 1);
    flood_init(a + 6, 2, 3, LOW, 9, 5000, 1);
    flood_init(a + 8, 2, 4, LOW, 3, 5000, 1);

    for (i = 0; i < 3000; i++) {
        flood_step(s, a, 10);
    }

    had = f->tenant_tokens;
    high = (double) (had[0] + had[1]);
    normal = (double) had[2];
    low = (double) (had[3] + had[4]);

    assert_true(normal > high / 7 * 0.98 && normal < high / 7 * 1.02);
    assert_true(low > (high + normal) / 7 * 0.98
                && low < (high + normal) / 7 * 1.02);
    assert_true(had[1] > had[0] * 2.9 && had[1] < had[0] * 3.1);
    assert_true(had[3] > had[4] * 2.9 && had[3] < had[4] * 3.1);

    flood_free(s, f, a, 10);
}


/*
 * Requests of a higher class have short prompts that are admitted all the time,
 * and there are indices for all.  Of 8 admissions one is of the lower class,
 * and when a class is alone again it gets everything.
 */

static void
test_rounds(void **state)
{
    fake_t       *f;
    flood_t      *a;
    uint32_t      i;
    double        high, low;
    dsa_sched_t  *s;

    a = calloc(80, sizeof(flood_t));
    assert_non_null(a);

    /* a step has room for the decodes and about four prompts */

    s = start(&f, 4000, 60, 70);

    flood_init(a, 40, 0, HIGH, 1, 10, 2);
    flood_init(a + 40, 40, 1, LOW, 10000, 10, 2);

    for (i = 0; i < 3000; i++) {
        flood_step(s, a, 80);
    }

    high = flood_done(a, 40);
    low = flood_done(a + 40, 40);

    assert_true(low > high / 7 * 0.9 && low < high / 7 * 1.1);

    flood_free(s, f, a, 80);
}


/*
 * A low request that needs nearly all pages is not skipped for ever, although
 * high requests come all the time.
 */

static void
test_patience(void **state)
{
    fake_t       *f;
    client_t      c;
    flood_t      *a;
    uint32_t      i, n;
    dsa_sched_t  *s;

    const uint32_t  running[] = { 16, 4 };

    for (i = 0; i < 2; i++) {
        memset(&c, 0, sizeof(c));
        a = calloc(12, sizeof(flood_t));
        assert_non_null(a);
        s = start(&f, 40, running[i], 512);

        for (n = 0; n < 12; n++) {
            flood_init(a + n, 1, n % 4 + 1, HIGH, 1, 150, 40 + n);
        }

        for (n = 0; n < 2000 && c.finish == 0; n++) {
            if (n == 10) {
                c.priority = LOW;
                submit(s, &c, 0, 999, 37 * 64, 100, 1);
            }

            flood_step(s, a, 12);
        }

        check(&c, 100, DSA_FINISH_LENGTH);
        flood_free(s, f, a, 12);
    }
}


/*
 * A tenant's requests of all classes count together against the bound of what
 * may wait, and a full queue drops the most crowded tenant's newest request,
 * whatever its class is.
 */

static void
test_waiting(void **state)
{
    fake_t       *f;
    client_t      c[9];
    uint32_t      i;
    dsa_sched_t  *s;

    memset(c, 0, sizeof(c));
    max_per_tenant = 5;
    max_waiting = 6;
    s = start(&f, 100, 1, 64);
    max_per_tenant = 100000;
    max_waiting = 100000;

    /* one more can run */

    for (i = 0; i < 6; i++) {
        c[i].priority = i % DSA_PRIORITIES;
        submit(s, &c[i], 0, i, 10, 2, 1);
    }

    submit_ids(s, &c[6], ids_of(0, 6, 10), 10, 2, 1);
    assert_null(c[6].seq);
    assert_int_equal(errno, EDQUOT);

    c[7].priority = LOW;
    submit(s, &c[7], 1, 7, 10, 2, 1);

    /* the queue is full: a low request takes the place of another tenant's */

    c[8].priority = LOW;
    submit(s, &c[8], 2, 8, 10, 2, 1);

    run(s);

    for (i = 0; i < 9; i++) {
        if (c[i].dropped || i == 6) {
            free(c[i].prompt);
            continue;
        }

        check(&c[i], 2, DSA_FINISH_LENGTH);
    }

    assert_int_equal(c[7].dropped + c[8].dropped, 0);
    assert_int_equal(c[0].dropped + c[1].dropped + c[2].dropped
                     + c[3].dropped + c[4].dropped + c[5].dropped, 1);

    check_free(s);
    finish(s, f);
}


/* A tenant with requests of several classes: each has its own order. */

static void
test_one_tenant(void **state)
{
    fake_t               *f;
    uint32_t              i, ids[4] = { 0 };
    client_t              c[8];
    dsa_err_t             err;
    dsa_sched_t          *s;
    dsa_sched_request_t   request;

    memset(c, 0, sizeof(c));
    s = start(&f, 100, 4, 64);

    for (i = 0; i < 8; i++) {
        c[i].priority = i < 6 ? LOW : HIGH;
        submit(s, &c[i], 0, i, 200, 3, 1);
    }

    while (c[6].n == 0) {
        step(s);
    }

    assert_int_equal(c[1].n, 0);
    run(s);

    for (i = 0; i < 8; i++) {
        check(&c[i], 3, DSA_FINISH_LENGTH);
    }

    memset(&request, 0, sizeof(request));
    request.tokens = ids;
    request.n_tokens = 4;
    request.max_tokens = 1;
    request.weight = 1;
    request.priority = DSA_PRIORITIES;
    assert_null(dsa_sched_add(s, &request, &err));
    assert_int_equal(errno, EINVAL);

    check_free(s);
    finish(s, f);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_first_token),
        cmocka_unit_test(test_indices),
        cmocka_unit_test(test_minimum),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_patience),
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_one_tenant)
    };

    int  failed;

    depth = 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);

    depth = 2;
    failed += cmocka_run_group_tests(tests, NULL, NULL);

    return failed;
}
