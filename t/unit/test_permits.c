
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Counts of processes that are killed at random moments.
 */


#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/permits.h"


#define N_COUNTS   5
#define N_OWN      7                /* permits of the parent on each count */
#define N_HELD     40               /* permits of a child, at most */
#define N_KILLS    400


typedef struct {
    dsa_permits_t     permits;
    uint32_t          counts[N_COUNTS];
    _Atomic uint64_t  steps;        /* of the child that runs */
    dsa_permit_t      block[DSA_PERMITS_BLOCK];
} shared_t;


/* The memory stays, because this process keeps its permits until it ends. */

static shared_t *
create(void)
{
    shared_t  *s;

    s = mmap(NULL, sizeof(shared_t), PROT_READ|PROT_WRITE,
             MAP_SHARED|MAP_ANONYMOUS, -1, 0);
    assert_true(s != MAP_FAILED);

    assert_int_equal(dsa_permits_init(&s->permits), DSA_OK);

    dsa_permits_lock(&s->permits);
    dsa_permits_add(&s->permits, s->block);
    dsa_permits_unlock(&s->permits);

    return s;
}


/* All permits but those that are counted can be taken, each of them once. */

static void
check_free(shared_t *s, int owner, uint32_t taken)
{
    uint32_t  n, count, permit, held[DSA_PERMITS_BLOCK];

    count = 0;

    dsa_permits_lock(&s->permits);

    for (n = 0; n < DSA_PERMITS_BLOCK; n++) {
        permit = dsa_permits_take(&s->permits, owner, &count);
        if (permit == 0) {
            break;
        }

        held[n] = permit;
    }

    assert_int_equal(n, DSA_PERMITS_BLOCK - taken);
    assert_int_equal(count, n);

    while (n != 0) {
        dsa_permits_release(&s->permits, held[--n]);
    }

    assert_int_equal(count, 0);

    dsa_permits_unlock(&s->permits);
}


/* Takes and releases permits until it is killed. */

static void
child(shared_t *s, unsigned seed)
{
    int       owner;
    uint32_t  i, held[N_HELD];

    owner = dsa_permits_acquire(&s->permits);
    if (owner == -1) {
        _exit(1);
    }

    for (i = 0; i < N_HELD; i++) {
        held[i] = 0;
    }

    for ( ;; ) {
        i = rand_r(&seed) % N_HELD;

        dsa_permits_lock(&s->permits);

        if (held[i] != 0) {
            dsa_permits_release(&s->permits, held[i]);
            held[i] = 0;

        } else {
            held[i] = dsa_permits_take(&s->permits, owner,
                                       &s->counts[i % N_COUNTS]);
        }

        s->steps++;

        dsa_permits_unlock(&s->permits);
    }
}


static void
test_kill(void **state)
{
    int        owner, status;
    pid_t      pid;
    uint64_t   until;
    uint32_t   i, j;
    unsigned   seed;
    shared_t  *s;

    (void) state;

    seed = 20251122;
    s = create();
    owner = dsa_permits_acquire(&s->permits);

    dsa_permits_lock(&s->permits);

    for (i = 0; i < N_COUNTS * N_OWN; i++) {
        assert_int_not_equal(dsa_permits_take(&s->permits, owner,
                                              &s->counts[i % N_COUNTS]), 0);
    }

    dsa_permits_unlock(&s->permits);

    for (i = 0; i < N_KILLS; i++) {

        s->steps = 0;
        until = rand_r(&seed) % 3000 + 1;

        pid = fork();
        assert_int_not_equal(pid, -1);

        if (pid == 0) {
            child(s, i + 1);
        }

        while (s->steps < until) {
            assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
        }

        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));

        (void) dsa_permits_reap(&s->permits, owner);

        for (j = 0; j < N_COUNTS; j++) {
            assert_int_equal(s->counts[j], N_OWN);
        }

        check_free(s, owner, N_COUNTS * N_OWN);
    }

    /* the test is of no use unless some were killed inside the lock */

    assert_true(s->permits.repairs > N_KILLS / 20);
}


/* The permits and the owner number of a process are its own while it lives. */

static void
test_alive(void **state)
{
    int        i, owner, status, to[2], from[2];
    char       c;
    pid_t      pid;
    shared_t  *s;

    (void) state;

    s = create();
    owner = dsa_permits_acquire(&s->permits);
    assert_int_equal(owner, 0);

    assert_int_equal(pipe(to), 0);
    assert_int_equal(pipe(from), 0);

    pid = fork();
    assert_int_not_equal(pid, -1);

    if (pid == 0) {
        if (dsa_permits_acquire(&s->permits) != 1) {
            _exit(1);
        }

        dsa_permits_lock(&s->permits);

        for (i = 0; i < 5; i++) {
            (void) dsa_permits_take(&s->permits, 1, &s->counts[0]);
        }

        dsa_permits_unlock(&s->permits);

        if (write(from[1], "r", 1) != 1 || read(to[0], &c, 1) != 1) {
            _exit(1);
        }

        _exit(0);
    }

    assert_int_equal(read(from[0], &c, 1), 1);

    for (i = 0; i < 1000; i++) {
        assert_int_equal(dsa_permits_reap(&s->permits, owner), 0);
    }

    assert_int_equal(s->counts[0], 5);
    assert_int_equal(dsa_permits_acquire(&s->permits), 2);

    /* and they are released when it ends in an orderly way */

    assert_int_equal(write(to[1], "e", 1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);

    assert_int_equal(dsa_permits_reap(&s->permits, owner), 5);
    assert_int_equal(s->counts[0], 0);
    assert_int_equal(dsa_permits_reap(&s->permits, owner), 0);
    assert_int_equal(dsa_permits_acquire(&s->permits), 1);

    check_free(s, owner, 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_alive),
        cmocka_unit_test(test_kill)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
