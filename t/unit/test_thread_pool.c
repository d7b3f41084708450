
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/threads.h"


/*
 * The thread pool: each piece exactly once for any number of threads and
 * pieces, threads that differ at the same time, results visible after the job.
 */

#define PIECES  5000


typedef struct {
    dsa_threads_t     *pool;
    uint32_t        threads;
    uint32_t        times[PIECES];      /* a piece was computed */
    atomic_int      busy[8];            /* thread computes a piece */
    uint64_t        sum[8];             /* by thread, not atomic */
} job_t;


static dsa_threads_t *
open_pool(uint32_t threads)
{
    dsa_err_t    err;
    dsa_threads_t  *pool;

    pool = dsa_threads_create(threads, &err);
    if (pool == NULL) {
        fail_msg("%s", err.text);
    }

    assert_int_equal(dsa_threads_count(pool), threads);

    return pool;
}


static void
count(void *ctx, uint32_t piece, uint32_t thread)
{
    job_t  *job = ctx;

    if (thread >= job->threads || atomic_exchange(&job->busy[thread], 1)) {
        abort();            /* a cmocka assertion is for the main thread */
    }

    job->times[piece]++;
    job->sum[thread] += piece;

    atomic_store(&job->busy[thread], 0);
}


static void
check_count(uint32_t threads, uint32_t pieces)
{
    job_t     *job;
    uint32_t   i, t;
    uint64_t   sum;

    job = calloc(1, sizeof(job_t));
    assert_non_null(job);
    job->threads = threads;
    job->pool = open_pool(threads);

    /* one job directly after another, and after the threads fell asleep */

    for (t = 1; t <= 200; t++) {
        dsa_threads_run(job->pool, pieces, count, job);

        if (t % 100 == 0) {
            usleep(20 * DSA_THREADS_SPIN_US);
        }

        for (i = 0; i < PIECES; i++) {
            assert_int_equal(job->times[i], i < pieces ? t : 0);
        }
    }

    for (i = 0, sum = 0; i < 8; i++) {
        sum += job->sum[i];
    }

    assert_true(sum == 200 * (uint64_t) pieces * (pieces - 1) / 2);

    dsa_threads_destroy(job->pool);
    free(job);
}


static void
test_pieces(void **state)
{
    uint32_t  i, j;

    static const uint32_t  threads[] = { 1, 2, 3, 4, 8 };
    static const uint32_t  pieces[] = { 1, 2, 3, 7, 100, PIECES };

    for (i = 0; i < sizeof(threads) / sizeof(threads[0]); i++) {
        for (j = 0; j < sizeof(pieces) / sizeof(pieces[0]); j++) {
            check_count(threads[i], pieces[j]);
        }
    }
}


static void
unexpected(void *ctx, uint32_t piece, uint32_t thread)
{
    abort();
}


static void
test_nothing(void **state)
{
    dsa_threads_t  *pool;

    pool = open_pool(4);
    dsa_threads_run(pool, 0, unexpected, NULL);
    dsa_threads_destroy(pool);

    dsa_threads_destroy(NULL);
}


/* All threads of a pool compute, if a piece waits for another one. */

typedef struct {
    atomic_uint     arrived;
    atomic_uint     threads;        /* bits */
} meeting_t;


static void
meet(void *ctx, uint32_t piece, uint32_t thread)
{
    meeting_t  *m = ctx;

    (void) atomic_fetch_or(&m->threads, 1u << thread);
    (void) atomic_fetch_add(&m->arrived, 1);

    while (atomic_load(&m->arrived) < 4) {
        usleep(100);
    }
}


static void
test_all_threads(void **state)
{
    meeting_t    m;
    dsa_threads_t  *pool;

    pool = open_pool(4);
    memset(&m, 0, sizeof(m));

    /* they sleep, and have to be woken */

    usleep(20 * DSA_THREADS_SPIN_US);

    dsa_threads_run(pool, 4, meet, &m);

    assert_int_equal(atomic_load(&m.threads), 15);
    dsa_threads_destroy(pool);
}


/* The caller sleeps until a long piece is done, and wakes up. */

static void
slow(void *ctx, uint32_t piece, uint32_t thread)
{
    uint32_t  *done = ctx;

    usleep(piece == 0 ? 20000 : 1000);
    done[piece] = 1;
}


static void
test_slow_piece(void **state)
{
    uint32_t     i, t, done[3];
    dsa_threads_t  *pool;

    pool = open_pool(3);

    for (t = 0; t < 20; t++) {
        memset(done, 0, sizeof(done));
        dsa_threads_run(pool, 3, slow, done);

        for (i = 0; i < 3; i++) {
            assert_int_equal(done[i], 1);
        }
    }

    dsa_threads_destroy(pool);
}


static void
nothing(void *ctx, uint32_t piece, uint32_t thread)
{
}


static void
nested(void *ctx, uint32_t piece, uint32_t thread)
{
    dsa_threads_t  **pool = ctx;

    dsa_threads_run(*pool, 2, nothing, NULL);
}


/* A job within a piece ends the process, here one of its own. */

static void
test_nested(void **state)
{
    int            status;
    pid_t          pid;
    uint32_t       threads;
    dsa_threads_t    *pool;
    struct rlimit  none = { 0, 0 };

    for (threads = 1; threads <= 4; threads++) {
        pid = fork();
        assert_true(pid >= 0);

        if (pid == 0) {
            (void) setrlimit(RLIMIT_CORE, &none);
            (void) signal(SIGABRT, SIG_DFL);
            (void) close(STDERR_FILENO);

            pool = open_pool(threads);
            dsa_threads_run(pool, threads, nested, &pool);
            _exit(0);
        }

        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}


static void
test_errors(void **state)
{
    dsa_err_t  err;

    assert_null(dsa_threads_create(0, &err));
    assert_non_null(strstr(err.text, "0 threads"));
    assert_true(dsa_threads_cpus() >= 1);

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

    /* stacks that the address space, of which sanitizers need more, lacks */

    struct rlimit  old, low;

    assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
    low = old;
    low.rlim_cur = 256 << 20;
    assert_int_equal(setrlimit(RLIMIT_AS, &low), 0);

    assert_null(dsa_threads_create(1000, &err));
    assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
    assert_non_null(strstr(err.text, "of a pool of 1000 cannot be started"));

#endif
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_all_threads),
        cmocka_unit_test(test_slow_piece),
        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_errors)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
