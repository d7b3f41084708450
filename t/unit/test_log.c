
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The log's levels and rate limit, and what the scheduler logs of a request.
 */


#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "t/unit/scheduler.h"


#define LOG_SIZE    (1 << 20)


static int   log_fd;
static int   log_stderr;
static char  log_text[LOG_SIZE];


static void
log_begin(void)
{
    log_fd = memfd_create("log", MFD_CLOEXEC);
    assert_true(log_fd != -1);

    log_stderr = dup(STDERR_FILENO);
    assert_true(log_stderr != -1);
    assert_true(dup2(log_fd, STDERR_FILENO) != -1);
}


/* stderr is as before; log_text has what was written. */

static void
log_end(void)
{
    ssize_t  n;

    assert_true(dup2(log_stderr, STDERR_FILENO) != -1);
    n = pread(log_fd, log_text, LOG_SIZE - 1, 0);
    assert_true(n >= 0);
    log_text[n] = '\0';

    (void) close(log_fd);
    (void) close(log_stderr);
}


static uint32_t
log_count(const char *what)
{
    uint32_t     n;
    const char  *p;

    n = 0;

    for (p = log_text; (p = strstr(p, what)) != NULL; p++) {
        n++;
    }

    return n;
}


static uint32_t
evaluated(uint32_t *n)
{
    return ++*n;
}


static void
test_levels(void **state)
{
    uint32_t  n;

    n = 0;

    log_begin();
    dsa_log_debug("debug %u", evaluated(&n));
    dsa_log(DSA_LOG_DEBUG, "debug");
    dsa_log(DSA_LOG_INFO, "an info");

    dsa_log_level(DSA_LOG_DEBUG);
    dsa_log_debug("debug %u", evaluated(&n));

    dsa_log_level(DSA_LOG_WARN);
    dsa_log(DSA_LOG_INFO, "another info");
    dsa_log(DSA_LOG_WARN, "a warning");
    dsa_log_level(DSA_LOG_INFO);
    log_end();

    assert_int_equal(n, 1);
    assert_int_equal(log_count("debug"), 2);
    assert_int_equal(log_count("[debug] "), 1);
    assert_int_equal(log_count("debug 1\n"), 1);
    assert_int_equal(log_count("[info] "), 1);
    assert_int_equal(log_count("an info\n"), 1);
    assert_int_equal(log_count("[warn] "), 1);
}


/* Debug lines have no rate limit and do not use up that of others. */

static void
test_rate(void **state)
{
    uint32_t  i, most;

    log_begin();
    dsa_log_level(DSA_LOG_DEBUG);

    for (i = 0; i < 5000; i++) {
        dsa_log_debug("of a request");
    }

    dsa_log(DSA_LOG_NOTICE, "a notice");

    for (i = 0; i < 5000; i++) {
        dsa_log(DSA_LOG_INFO, "of something else");
    }

    dsa_log(DSA_LOG_ERR, "an error");
    dsa_log_level(DSA_LOG_INFO);
    log_end();

    assert_int_equal(log_count("[debug] "), 5000);
    assert_int_equal(log_count("a notice"), 1);
    assert_int_equal(log_count("an error"), 1);

    /* the lines may fall into several seconds on a slow machine */

    most = log_count("left out") + 1;
    assert_in_range(log_count("of something else"), DSA_LOG_RATE - 10,
                    most * DSA_LOG_RATE);
}


/* The scheduler logs admission, preemption and finish with the id. */

static void
test_scheduler(void **state)
{
    char                  text[100];
    fake_t               *f;
    uint32_t              i;
    client_t             *c;
    dsa_err_t             err;
    dsa_sched_t          *s;
    dsa_sched_stats_t     stats;
    dsa_sched_request_t   request;

    depth = 1;
    c = calloc(2, sizeof(client_t));
    assert_non_null(c);
    s = start(&f, 3, 2, 256);

    log_begin();
    dsa_log_level(DSA_LOG_DEBUG);

    for (i = 0; i < 2; i++) {
        memset(&request, 0, sizeof(request));
        request.id = 3ULL << 32 | i;
        request.tokens = ids_of(i, i, 60);
        request.n_tokens = 60;
        request.max_tokens = 50;
        request.weight = 1;
        request.priority = DSA_PRIORITY_NORMAL;
        request.owner = &c[i];
        request.tenant[0] = (uint8_t) i;

        c[i].seq = dsa_sched_add(s, &request, &err);
        assert_non_null(c[i].seq);
    }

    run(s);
    dsa_log_level(DSA_LOG_INFO);
    log_end();

    dsa_sched_stats(s, &stats);
    assert_true(stats.preemptions > 0);
    assert_int_equal(log_count("preempted"), stats.preemptions);
    assert_int_equal(log_count(": admitted with"), 2 + stats.preemptions);

    for (i = 0; i < 2; i++) {
        (void) snprintf(text, sizeof(text), "request %u.3: admitted "
                        "with 60 tokens, 0 of them cached, weight 1, "
                        "priority 1\n", i);
        assert_int_equal(log_count(text), 1);

        (void) snprintf(text, sizeof(text), "request %u.3: finish 2, "
                        "60 prompt tokens, 0 of them cached, 50 completion "
                        "tokens\n", i);
        assert_int_equal(log_count(text), 1);
    }

    check_free(s);
    finish(s, f);
    free(c);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_rate),
        cmocka_unit_test(test_scheduler)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
