
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The thread of the journal: files that are slow, full, renamed or deleted.
 * The file is a pipe where it has to stop.
 */


#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/service/journal_thread.h"


#define DEADLINE  30000         /* ms */


typedef struct {
    dsa_journal_thread_t  *t;
    int                    wake;
    int                    reader;      /* of the pipe; -1: none */
    uint32_t               next;        /* number of the next line */
    uint64_t               now_ms;      /* of the caller */
    char                   path[128];
} fixture_t;


static char             directory[] = "/tmp/dsa-test-XXXXXX";
static char             logged[4096];
static pthread_mutex_t  logging = PTHREAD_MUTEX_INITIALIZER;


_Atomic int  dsa_log_limit = DSA_LOG_INFO;


void
dsa_log_level(dsa_log_level_e level)
{
    dsa_log_limit = level;
}


/* Replaces base/log.c. */

void
dsa_log(dsa_log_level_e level, const char *fmt, ...)
{
    size_t   len;
    va_list  args;

    (void) pthread_mutex_lock(&logging);

    len = strlen(logged);

    va_start(args, fmt);
    (void) vsnprintf(logged + len, sizeof(logged) - len - 1, fmt, args);
    va_end(args);

    (void) strcat(logged, "\n");

    (void) pthread_mutex_unlock(&logging);
}


/* Returns how many times the log has the text. */

static uint32_t
logs(const char *text)
{
    char      *p;
    uint32_t   n;

    (void) pthread_mutex_lock(&logging);

    for (n = 0, p = logged; (p = strstr(p, text)) != NULL; p++) {
        n++;
    }

    (void) pthread_mutex_unlock(&logging);

    return n;
}


static void
gap(void *data, dsa_buf_t *out, uint64_t lost)
{
    assert_ptr_equal(data, directory);
    dsa_buf_printf(out, "gap %llu\n", (unsigned long long) lost);
}


static void
nap(void)
{
    const struct timespec  ms = { 0, 1000000 };

    (void) nanosleep(&ms, NULL);
}


static void
start(fixture_t *f, const char *name, int is_pipe)
{
    dsa_err_t  err;

    memset(f, 0, sizeof(fixture_t));

    logged[0] = '\0';
    f->reader = -1;
    f->now_ms = 1000;
    f->wake = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);

    (void) snprintf(f->path, sizeof(f->path), "%s/%s", directory, name);

    if (is_pipe) {
        assert_int_equal(mkfifo(f->path, 0600), 0);

        /* no process would ever read what is written */

        assert_null(dsa_journal_thread_open(f->path, gap, directory, &err));
        assert_non_null(strstr(err.text, strerror(ENXIO)));

        f->reader = open(f->path, O_RDONLY|O_NONBLOCK);
        assert_int_not_equal(f->reader, -1);
    }

    f->t = dsa_journal_thread_open(f->path, gap, directory, &err);
    assert_non_null(f->t);
    assert_int_equal(dsa_journal_thread_start(f->t, f->wake, &err), DSA_OK);
}


static void
stop(fixture_t *f)
{
    assert_int_equal(dsa_journal_thread_close(f->t), 1);

    if (f->reader != -1) {
        (void) close(f->reader);
    }

    (void) close(f->wake);
    (void) unlink(f->path);
}


/* Hands over n numbered lines of at least len bytes each. */

static void
push(fixture_t *f, uint32_t n, int len)
{
    uint32_t   i;
    dsa_buf_t  lines;

    memset(&lines, 0, sizeof(dsa_buf_t));

    for (i = 0; i < n; i++) {
        dsa_buf_printf(&lines, "%-*u\n", len - 1, f->next++);
    }

    dsa_journal_thread_push(f->t, &lines, n, f->now_ms);
    assert_int_equal(lines.len, 0);
    dsa_buf_free(&lines);
}


static int
pending(fixture_t *f, uint64_t ms)
{
    f->now_ms += ms;

    return dsa_journal_thread_pending(f->t, f->now_ms);
}


/* Waits until nothing is pending, while the caller's clock stands still. */

static void
written(fixture_t *f)
{
    uint64_t  end;

    for (end = dsa_clock_ms() + DEADLINE; pending(f, 0); nap()) {
        assert_true(dsa_clock_ms() < end);
    }
}


/* Waits until the thread has written what it had. */

static void
finished(fixture_t *f)
{
    uint64_t  end, count;

    for (end = dsa_clock_ms() + DEADLINE;
         read(f->wake, &count, sizeof(count)) != sizeof(count);
         nap())
    {
        assert_true(dsa_clock_ms() < end);
    }
}


/* Compares the whole file. */

static void
file_is(const char *path, const char *want)
{
    char     text[4096];
    FILE    *in;
    size_t   n;

    in = fopen(path, "r");
    assert_non_null(in);
    n = fread(text, 1, sizeof(text) - 1, in);
    text[n] = '\0';
    (void) fclose(in);
    assert_string_equal(text, want);
}


/*
 * Reads lines from the pipe until the one with this number or the gap before
 * it.  Returns the gap, 0 if there is none; lines are in order.
 */

static uint64_t
read_to(fixture_t *f, uint32_t *first, uint32_t last)
{
    char                 line[256];
    size_t               n;
    ssize_t              rc;
    uint64_t             end, lost;
    unsigned long long   value;

    n = 0;
    lost = 0;
    end = dsa_clock_ms() + DEADLINE;

    while (*first <= last) {
        rc = read(f->reader, line + n, 1);

        if (rc != 1) {
            assert_true(dsa_clock_ms() < end);
            nap();
            continue;
        }

        if (line[n] != '\n') {
            assert_true(++n < sizeof(line) - 1);
            continue;
        }

        line[n] = '\0';
        n = 0;

        if (sscanf(line, "gap %llu", &value) == 1) {
            lost += value;
            *first += (uint32_t) value;
            continue;
        }

        assert_int_equal(strtoul(line, NULL, 10), *first);
        (*first)++;
    }

    assert_int_equal(*first, last + 1);

    return lost;
}


static void
test_lines(void **state)
{
    fixture_t  f;

    start(&f, "file", 0);

    assert_int_equal(pending(&f, 0), 0);
    push(&f, 2, 2);
    written(&f);
    file_is(f.path, "0\n1\n");

    push(&f, 0, 2);
    assert_int_equal(pending(&f, 0), 0);

    /* the rest is written at the end */

    push(&f, 1, 2);
    assert_int_equal(dsa_journal_thread_close(f.t), 1);
    file_is(f.path, "0\n1\n2\n");
    assert_string_equal(logged, "");

    (void) close(f.wake);
    (void) unlink(f.path);
}


/* Nothing reads the pipe, and the thread stops in write(). */

static void
test_slow(void **state)
{
    uint32_t   i, first;
    fixture_t  f;

    start(&f, "pipe", 1);

    push(&f, 1000, 100);
    assert_int_equal(pending(&f, 0), 1);
    assert_int_equal(pending(&f, DSA_JOURNAL_WAIT_MS - 1), 1);
    assert_int_equal(logs("does not keep up"), 0);
    assert_int_equal(pending(&f, 1), 0);
    assert_int_equal(logs("does not keep up"), 1);

    /* no line is waited for, and what is too much is lost */

    for (i = 0; i < 60; i++) {
        push(&f, 1000, 100);
        assert_int_equal(pending(&f, DSA_JOURNAL_LATE_MS), 0);
    }

    /* there is room for this one, but not behind the lost ones */

    push(&f, 1, 100);

    assert_int_equal(logs("does not keep up"), 1);
    assert_int_equal(logs("are lost, because"), 1);

    /* the lines that were kept, and the number of those that were not */

    first = 0;
    assert_int_equal(read_to(&f, &first, f.next - 1),
                     (61 - DSA_JOURNAL_BYTES / 100000) * 1000 + 1);

    /* lines are waited for again, but not at once */

    push(&f, 1, 100);
    assert_int_equal(read_to(&f, &first, f.next - 1), 0);
    written(&f);

    for (i = 0; logs("keeps up again") == 0; i++) {
        assert_true(i < DEADLINE);
        assert_int_equal(pending(&f, DSA_JOURNAL_LATE_MS), 0);
        nap();
    }

    push(&f, 1000, 100);
    assert_int_equal(pending(&f, 0), 1);
    assert_int_equal(read_to(&f, &first, f.next - 1), 0);
    assert_int_equal(logs("keeps up again"), 1);

    stop(&f);
}


/* It stops again and again: the lines do not wait each time. */

static void
test_slow_again(void **state)
{
    uint32_t   i, first;
    fixture_t  f;

    start(&f, "pipe", 1);
    first = 0;

    push(&f, 1000, 100);
    assert_int_equal(pending(&f, DSA_JOURNAL_WAIT_MS), 0);

    for (i = 0; i < 5; i++) {
        assert_int_equal(read_to(&f, &first, f.next - 1), 0);
        finished(&f);
        assert_int_equal(pending(&f, DSA_JOURNAL_LATE_MS / 10), 0);
        push(&f, 1000, 100);
        assert_int_equal(pending(&f, 0), 0);
    }

    assert_int_equal(read_to(&f, &first, f.next - 1), 0);
    assert_int_equal(logs("does not keep up"), 1);
    assert_int_equal(logs("keeps up again"), 0);

    stop(&f);
}


/* The end does not wait for it. */

static void
test_slow_end(void **state)
{
    fixture_t  f;

    start(&f, "pipe", 1);
    push(&f, 1000, 100);
    assert_int_equal(dsa_journal_thread_close(f.t), 0);
    assert_int_equal(logs("the last lines are lost"), 1);

    (void) unlink(f.path);
}


/* The pipe has no reader for a while, so that write() fails. */

static void
test_errors(void **state)
{
    uint32_t   i, first;
    fixture_t  f;

    start(&f, "pipe", 1);
    first = 0;

    push(&f, 1, 100);
    assert_int_equal(read_to(&f, &first, 0), 0);

    (void) close(f.reader);

    for (i = 0; i < 10; i++) {
        push(&f, 1, 100);
        written(&f);
    }

    assert_int_equal(logs(strerror(EPIPE)), 1);

    f.reader = open(f.path, O_RDONLY|O_NONBLOCK);
    push(&f, 1, 100);
    assert_int_equal(read_to(&f, &first, f.next - 1), 10);

    stop(&f);
}


/* The file cannot grow, and its last line is not complete. */

static void
test_full(void **state)
{
    fixture_t      f;
    struct rlimit  limit, old;

    start(&f, "file", 0);

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = old;
    limit.rlim_cur = 25;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);

    push(&f, 3, 10);
    written(&f);
    file_is(f.path, "0        \n1        \n2    ");
    push(&f, 3, 10);
    written(&f);

    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    push(&f, 1, 10);
    written(&f);
    file_is(f.path, "0        \n1        \n2    \ngap 4\n6        \n");
    assert_int_equal(logs("lines are lost: write(): File too large"), 1);

    stop(&f);
}


static void
test_renamed(void **state)
{
    char       old[sizeof(((fixture_t *) 0)->path) + 4];
    fixture_t  f;

    start(&f, "file", 0);

    push(&f, 1, 2);
    written(&f);
    (void) snprintf(old, sizeof(old), "%s.1", f.path);
    assert_int_equal(rename(f.path, old), 0);
    push(&f, 1, 2);
    written(&f);
    file_is(old, "0\n");
    file_is(f.path, "1\n");

    assert_int_equal(unlink(f.path), 0);
    push(&f, 1, 2);
    written(&f);
    file_is(f.path, "2\n");

    /* its directory is away for a while */

    (void) unlink(old);
    assert_int_equal(unlink(f.path), 0);
    assert_int_equal(rmdir(directory), 0);
    push(&f, 2, 2);
    written(&f);
    assert_int_equal(logs("lines are lost: open()"), 1);
    assert_int_equal(mkdir(directory, 0700), 0);
    push(&f, 1, 2);
    written(&f);
    file_is(f.path, "gap 2\n5\n");

    stop(&f);
}


int
main(void)
{
    int  rc;

    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_slow),
        cmocka_unit_test(test_slow_again),
        cmocka_unit_test(test_slow_end),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_renamed)
    };

    (void) signal(SIGPIPE, SIG_IGN);
    (void) signal(SIGXFSZ, SIG_IGN);

    if (mkdtemp(directory) == NULL) {
        return 1;
    }

    rc = cmocka_run_group_tests(tests, NULL, NULL);
    (void) rmdir(directory);

    return rc;
}
