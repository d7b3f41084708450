
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Prompts that are split over all ranks, random load on several ranks, and
 * real backends with several ranks (ranks.h).
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "t/lib/small_model.h"
#include "t/unit/numbers.h"
#include "t/unit/placement.h"


/* A long prompt that is alone is computed by all ranks, each its part. */

static void
check_split(uint32_t n_ranks)
{
    fake_t       *f;
    uint32_t      i, n;
    client_t     *c;
    dsa_sched_t  *s;

    n = 10000;
    c = clients(2 + n_ranks);
    rank_tokens = 512;
    s = start_ranks(&f, n_ranks, 400, 4, 4096);
    rank_tokens = UINT32_MAX;

    submit(s, &c[0], 0, 1, n, 100, 1);

    while (n > 512 * n_ranks) {
        step(s);
        assert_int_equal(f->n_split, 1);
        assert_int_equal(f->n_tokens, 512 * n_ranks);
        assert_int_equal(c[0].n, 0);
        n -= 512 * n_ranks;

        for (i = 0; i < n_ranks; i++) {
            assert_int_equal(stats_of(s).rank_used[i], 157);
        }
    }

    step(s);
    assert_int_equal(f->n_split, 1);
    assert_int_equal(f->n_tokens, n);

    step(s);
    assert_int_equal(f->n_split, 0);
    assert_true(c[0].n >= 1);

    for (i = 0; i < n_ranks; i++) {
        assert_int_equal(stats_of(s).rank_used[i], i == 0 ? 157 : 0);
    }

    assert_int_equal(stats_of(s).split_prompts, 1);
    run(s);
    check(&c[0], 100, DSA_FINISH_LENGTH);

    /* each rank has the prefix: requests run on all of them without a copy */

    for (i = 0; i < n_ranks; i++) {
        submit(s, &c[1 + i], 0, 1, 10000, 40, 1);
        step(s);
    }

    step(s);

    for (i = 0; i < n_ranks; i++) {
        assert_int_equal(f->rank_seqs[i], 1);
    }

    run(s);
    assert_int_equal(f->copied, 0);

    for (i = 0; i < n_ranks; i++) {
        assert_int_equal(c[1 + i].usage.cached_tokens, 9984);
        check(&c[1 + i], 40, DSA_FINISH_LENGTH);
    }

    check_free(s);
    finish(s, f);
    free(c);
}


static void
test_split(void **state)
{
    check_split(2);
    check_split(3);
    check_split(4);
}


/*
 * When a prompt is split: at least 4097 tokens are left after the prefix, all
 * ranks have pages, and there are fewer prompts than ranks.
 */

static void
test_split_when(void **state)
{
    fake_t       *f;
    uint32_t      i;
    client_t     *c;
    dsa_sched_t  *s;

    c = clients(8);
    s = start_ranks(&f, 2, 140, 4, 512);

    submit(s, &c[0], 0, 1, 4096, 3, 1);
    run(s);
    check(&c[0], 3, DSA_FINISH_LENGTH);
    assert_int_equal(stats_of(s).split_prompts, 0);

    /* the first prompt again, and 4096 tokens after it */

    submit(s, &c[1], 0, 1, 2 * 4096, 3, 1);
    run(s);
    assert_int_equal(c[1].usage.cached_tokens, 4096);
    assert_int_equal(stats_of(s).split_prompts, 0);

    submit(s, &c[2], 1, 2, 4097, 3, 1);
    run(s);
    assert_int_equal(stats_of(s).split_prompts, 1);

    /* another prompt waits, or is computed */

    submit(s, &c[3], 2, 3, 4097, 3, 1);
    submit(s, &c[4], 3, 4, 1000, 3, 1);
    run(s);
    assert_int_equal(stats_of(s).split_prompts, 1);

    submit(s, &c[5], 4, 5, 1000, 3, 1);
    step(s);
    submit(s, &c[6], 5, 6, 4500, 3, 1);
    run(s);
    assert_int_equal(stats_of(s).split_prompts, 1);

    /* 75 pages, where one rank has at least 65 of 140 in use */

    submit(s, &c[0], 0, 7, 4096, 200, 1);

    while (c[0].n == 0) {
        step(s);
    }

    submit(s, &c[7], 6, 8, 4800, 3, 1);
    run(s);
    assert_int_equal(stats_of(s).split_prompts, 1);
    assert_int_equal(stats_of(s).preemptions, 0);

    check(&c[0], 200, DSA_FINISH_LENGTH);

    for (i = 1; i < 8; i++) {
        check(&c[i], 3, DSA_FINISH_LENGTH);
    }

    check_free(s);
    finish(s, f);
    free(c);
}


/* The prefix of a split prompt is copied to the ranks that lack it. */

static void
test_split_prefix(void **state)
{
    fake_t       *f;
    uint32_t      i;
    client_t     *c;
    uint64_t      before;
    dsa_sched_t  *s;

    c = clients(2);
    s = start_ranks(&f, 4, 300, 4, 4096);

    submit(s, &c[0], 0, 1, 1000, 3, 1);
    run(s);
    before = f->all_tokens;

    submit_user(s, &c[1], 0, 1, 960, 9, 960 + 6000, 5);
    step(s);
    assert_int_equal(f->n_split, 1);
    assert_int_equal(f->copied, 3 * 15);

    run(s);
    assert_int_equal(f->all_tokens - before, 6000 + 4);
    assert_int_equal(c[1].usage.cached_tokens, 960);

    for (i = 0; i < 2; i++) {
        check(&c[i], i == 0 ? 3 : 5, DSA_FINISH_LENGTH);
    }

    check_free(s);
    finish(s, f);
    free(c);
}


/*
 * Another sequence needs pages on a rank that is not the split prompt's own:
 * the prompt releases its pages there, and is computed without the split.
 */

static void
test_split_joined(void **state)
{
    fake_t       *f;
    uint32_t      i;
    client_t     *c;
    dsa_sched_t  *s;

    c = clients(3);
    s = start_ranks(&f, 3, 81, 4, 64);

    /* short sequences on ranks 0 and 1, and a split one with 79 pages */

    submit(s, &c[0], 0, 1, 58, 400, 1);
    step(s);
    submit(s, &c[1], 1, 2, 58, 400, 1);
    step(s);
    step(s);

    submit(s, &c[2], 2, 3, 5000, 20, 1);
    step(s);
    assert_int_equal(f->n_split, 1);
    assert_int_equal(f->tenant_rank[2], 2);

    for (i = 0; f->n_split != 0; i++) {
        assert_true(i < 300);
        step(s);
    }

    assert_int_equal(c[2].n, 0);
    assert_int_equal(stats_of(s).preemptions, 0);

    run(s);
    check(&c[0], 400, DSA_FINISH_LENGTH);
    check(&c[1], 400, DSA_FINISH_LENGTH);
    check(&c[2], 20, DSA_FINISH_LENGTH);
    assert_int_equal(stats_of(s).preemptions, 0);

    check_free(s);
    finish(s, f);
    free(c);
}


/*
 * A sequence of the split prompt's own rank needs a page: the prompt, whose
 * tenant has the largest share, is preempted, and releases the pages of both
 * ranks.  It is computed again when it fits, as far as its pages are gone.
 */

static void
test_split_preempted(void **state)
{
    fake_t       *f;
    client_t     *c;
    dsa_sched_t  *s;

    c = clients(3);
    s = start_ranks(&f, 2, 81, 4, 64);

    submit(s, &c[0], 0, 1, 58, 400, 1);
    step(s);
    submit(s, &c[1], 1, 2, 58, 400, 1);
    step(s);
    step(s);
    submit(s, &c[2], 2, 3, 5000, 20, 1);
    step(s);
    assert_int_equal(f->n_split, 1);
    assert_int_equal(f->tenant_rank[2], 0);

    while (stats_of(s).preemptions == 0) {
        assert_int_equal(c[2].n, 0);
        assert_in_range(stats_of(s).rank_used[1], 80, 81);
        step(s);
    }

    assert_int_equal(f->n_split, 0);
    assert_int_equal(stats_of(s).waiting, 1);
    assert_int_equal(stats_of(s).rank_used[0], 3);
    assert_in_range(stats_of(s).rank_used[1], 2, 3);

    run(s);
    assert_int_equal(c[2].usage.cached_tokens, 0);
    check(&c[0], 400, DSA_FINISH_LENGTH);
    check(&c[1], 400, DSA_FINISH_LENGTH);
    check(&c[2], 20, DSA_FINISH_LENGTH);
    assert_int_equal(stats_of(s).preemptions, 1);

    check_free(s);
    finish(s, f);
    free(c);
}


/* A cancel in any state frees the pages of all ranks at once. */

static void
test_cancel(void **state)
{
    fake_t       *f;
    client_t     *c;
    uint32_t      i, when;
    dsa_sched_t  *s;

    for (when = 0; when < 30; when++) {
        c = clients(6);
        s = start_ranks(&f, 3, 100, 4, 512);

        submit(s, &c[0], 0, 0, 5000, 200, 1);

        for (i = 0; i < when; i++) {
            step(s);

            if (i == 3) {
                submit(s, &c[1], 1, 1, 150, 200, 1);
                submit(s, &c[2], 1, 2, 1500, 200, 1);
                submit(s, &c[3], 2, 0, 6000, 200, 1);
                submit(s, &c[4], 0, 0, 1000, 200, 1);
                submit(s, &c[5], 0, 0, 5000, 200, 1);
            }
        }

        for (i = 0; i < 6; i++) {
            if (c[i].seq != NULL) {
                dsa_sched_cancel(s, c[i].seq, DSA_FINISH_CANCELLED);
                audit(s);
                check_answer(&c[i]);
            }

            free(c[i].prompt);

            if (i == 2) {
                step(s);
            }
        }

        run(s);
        check_free(s);
        finish(s, f);
        free(c);
    }
}


/*
 * Random sizes, tenants, prefixes, drafts and cancels, on pages for a few
 * sequences, so that there are preemptions, copies and splits.
 */

static void
check_soak(uint32_t n_ranks, uint32_t pages, uint32_t of_rank, uint64_t seed)
{
    fake_t             *f;
    client_t           *c;
    uint32_t            i, n, r, size, idle, want[24];
    uint64_t            round;
    dsa_sched_t        *s;
    dsa_sched_stats_t   stats;

    n = 24;
    c = clients(n);
    rank_tokens = of_rank;
    max_outputs = 4;
    s = start_ranks(&f, n_ranks, pages, 4, 600);
    rank_tokens = UINT32_MAX;
    max_outputs = 1;
    billed_prompt = 0;
    billed_cached = 0;

    for (round = 0; round < 6000; round++) {

        /* now and then few requests are left, so that long ones are split */

        idle = round / 300 % 2 == 1;

        for (i = 0; i < n; i++) {
            r = (uint32_t) (dsa_t_counted(seed, round, i) * 4e9);

            if (c[i].seq != NULL) {
                if (r % 300 == 0) {
                    dsa_sched_cancel(s, c[i].seq, DSA_FINISH_CANCELLED);
                    audit(s);
                }

                continue;
            }

            if (c[i].prompt != NULL) {
                check(&c[i], c[i].finish == DSA_FINISH_LENGTH
                             ? want[i] : c[i].n, c[i].finish);
            }

            if (round < 5500 && r % (idle ? 800 : 10) == 0) {
                c[i].seed = r;
                c[i].priority = r / 2048 % DSA_PRIORITIES;
                c[i].draft_right = r / 16 % 3;
                c[i].draft_wrong = r / 64 % 2;
                want[i] = 1 + r / 32 % 100;
                size = 1 + r / 1024 % 900;

                if (idle || r / 128 % 20 == 0) {
                    size += 4097 + r / 256 % 600;
                }

                submit_user(s, &c[i], r / 8 % 3, r / 4 % 2,
                            r / 512 % 1500, i, size, want[i]);
            }
        }

        step(s);
    }

    run(s);

    for (i = 0; i < n; i++) {
        if (c[i].prompt != NULL) {
            check(&c[i], c[i].n, c[i].finish);
        }
    }

    stats = stats_of(s);
    assert_true(stats.preemptions > 10);
    assert_int_equal(stats.prompt_tokens, billed_prompt);
    assert_int_equal(stats.cached_tokens, billed_cached);
    assert_int_equal(stats.copied_tokens, f->copied * 64);
    assert_true(stats.accepted_tokens > 1000);

    if (n_ranks > 1) {
        assert_true(stats.copied_tokens > 1000);
        assert_true(stats.split_prompts > 10);
    }

    check_free(s);
    finish(s, f);
    free(c);
}


static void
test_soak(void **state)
{
    check_soak(1, 110, UINT32_MAX, 21);
    check_soak(2, 130, UINT32_MAX, 22);
    check_soak(2, 130, 300, 23);
    check_soak(4, 120, 200, 24);
}


/*
 * Three ranks repeat a prompt of n tokens, then three longer ones that begin
 * like it and run at the same time.
 */

static void
check_null(dsa_backend_t *b, uint32_t n, uint32_t split, uint32_t copied)
{
    uint32_t           i, j, at, size, *ids;
    client_t          *c;
    dsa_err_t          err;
    dsa_sched_t       *s;
    dsa_sched_conf_t   sched;

    memset(&sched, 0, sizeof(sched));
    sched.max_running = 1;
    sched.token_budget = 1000;
    sched.max_waiting = 10;
    sched.max_waiting_per_tenant = 10;
    sched.context = 20000;
    s = dsa_sched_create(b, &sched, &handler, &err);
    assert_non_null(s);

    c = clients(4);

    for (i = 0; i < 4; i++) {
        size = i == 0 ? n : n + 100 + i;
        ids = ids_of(0, 1, size);

        /* ids of bytes, and in places that depend on n an added token */

        for (j = 0; j < size; j++) {
            ids[j] = j % 97 < n % 97 ? SMALL_MODEL_USER : 'a' + j % 25;
        }

        submit_ids(s, &c[i], ids, size, 200, 1);

        if (i == 0) {
            run(s);
        }
    }

    run(s);
    assert_int_equal(stats_of(s).split_prompts, split);
    assert_int_equal(stats_of(s).copied_tokens, copied);

    for (i = 0; i < 4; i++) {
        assert_int_equal(c[i].n, 200);
        assert_int_equal(c[i].usage.cached_tokens, i == 0 ? 0 : n / 64 * 64);

        for (j = 0, at = 0; j < 200; j++, at++) {
            while (c[i].prompt[at] == SMALL_MODEL_USER) {
                at++;
            }

            assert_int_equal(c[i].answer[j], c[i].prompt[at]);
        }

        free(c[i].prompt);
    }

    dsa_sched_destroy(s);
    free(c);
}


/* The null backend repeats prompts that are split, and copied. */

static void
test_null(void **state)
{
    char                 dir[] = "/tmp/dsa-test-XXXXXX";
    dsa_err_t            err;
    dsa_backend_t       *b;
    dsa_backend_conf_t   conf;

    assert_int_equal(small_model_make(dir), 0);

    memset(&conf, 0, sizeof(conf));
    conf.model = dir;
    conf.gpus = 3;
    conf.max_tokens = 1000;
    b = dsa_backend_null_open(&conf, &err);

    if (b == NULL) {
        fail_msg("%s", err.text);
    }

    assert_int_equal(b->ranks, 3);
    assert_int_equal(b->rank_tokens, 334);

    check_null(b, 6000, 1, 0);
    check_null(b, 3000, 0, 2 * 2944);
    b->close(b);

    /* with "attention tensor" all GPUs are one rank */

    conf.attention = DSA_ATTENTION_TENSOR;
    b = dsa_backend_null_open(&conf, &err);
    assert_non_null(b);
    assert_int_equal(b->ranks, 1);
    b->close(b);
    small_model_remove(dir);
}


#define CPU_USERS   5
#define CPU_ANSWER  8

/*
 * The answers of the CPU backend: to a prompt of 4200 tokens, to one of 690,
 * and then to users whose prompts begin with 640 tokens of one of these.
 */

static void
cpu_answers(const char *dir, uint32_t n_ranks,
    uint32_t answer[CPU_USERS + 1][CPU_ANSWER])
{
    uint32_t             i, j, n, *ids;
    client_t            *c;
    dsa_err_t            err;
    dsa_sched_t         *s;
    dsa_backend_t       *b;
    dsa_sched_conf_t     sched;
    dsa_sched_stats_t    stats;
    dsa_backend_conf_t   conf;

    memset(&conf, 0, sizeof(conf));
    conf.model = dir;
    conf.gpus = n_ranks;
    conf.context = 4300;
    conf.max_tokens = 512;
    conf.max_seqs = 3;
    conf.allowed = 259;
    b = dsa_backend_cpu_open(&conf, &err);

    if (b == NULL) {
        fail_msg("%s", err.text);
    }

    assert_int_equal(b->ranks, n_ranks);

    memset(&sched, 0, sizeof(sched));
    sched.max_running = 3;
    sched.token_budget = 512;
    sched.max_waiting = 10;
    sched.max_waiting_per_tenant = 10;
    sched.context = 4300;
    s = dsa_sched_create(b, &sched, &handler, &err);
    assert_non_null(s);

    c = clients(CPU_USERS + 1);

    for (i = 0; i <= CPU_USERS; i++) {
        n = i == 0 ? 4200 : i == 1 ? 690 : 750 + 200 * i;
        ids = ids_of(0, 1, n);

        for (j = 0; j < n; j++) {
            ids[j] = 3 + (j >= 640 ? i * 29 + j * 7
                          : i == 0 || i == CPU_USERS ? j * 11
                          : j * 13 + j / 5) % 256;
        }

        submit_ids(s, &c[i], ids, n, CPU_ANSWER, 1);
        assert_non_null(c[i].seq);

        if (i < 2) {
            run(s);
        }
    }

    run(s);

    dsa_sched_stats(s, &stats);
    assert_int_equal(stats.split_prompts, n_ranks > 1);
    assert_int_equal(stats.copied_tokens != 0, n_ranks > 1);

    for (i = 0; i <= CPU_USERS; i++) {
        assert_int_equal(c[i].n, CPU_ANSWER);
        memcpy(answer[i], c[i].answer, sizeof(answer[i]));
        free(c[i].prompt);
    }

    dsa_sched_destroy(s);
    b->close(b);
    free(c);
}


/* The answers of a model are the same with one rank, two and four. */

static void
test_cpu(void **state)
{
    char      dir[] = "/tmp/dsa-test-XXXXXX";
    uint32_t  i, one[CPU_USERS + 1][CPU_ANSWER];
    uint32_t  several[CPU_USERS + 1][CPU_ANSWER];

    assert_int_equal(small_model_make(dir), 0);

    cpu_answers(dir, 1, one);

    for (i = 2; i <= 4; i += 2) {
        cpu_answers(dir, i, several);
        assert_memory_equal(several, one, sizeof(one));
    }

    small_model_remove(dir);
}


int
main(void)
{
    int  failed;

    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_split_when),
        cmocka_unit_test(test_split_prefix),
        cmocka_unit_test(test_split_joined),
        cmocka_unit_test(test_split_preempted),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_soak)
    };

    const struct CMUnitTest  backends[] = {
        cmocka_unit_test(test_null),
        cmocka_unit_test(test_cpu)
    };

    depth = 1;
    failed = cmocka_run_group_tests_name("one at a time", tests, NULL, NULL);

    depth = 2;
    failed += cmocka_run_group_tests_name("run ahead", tests, NULL, NULL);
    failed += cmocka_run_group_tests_name("backends", backends, NULL, NULL);

    return failed;
}
