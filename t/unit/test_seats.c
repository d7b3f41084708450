
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
#include "base/seats.h"


#define N_COUNTS   5
#define N_OWN      7                /* holds of the parent on each count */
#define N_HELD     40               /* holds of a child, at most */
#define N_KILLS    400


typedef struct {
    dsa_seats_t       seats;
    uint32_t          counts[N_COUNTS];
    _Atomic uint64_t  steps;        /* of the child that runs */
    dsa_seats_hold_t  holds[DSA_SEATS_BLOCK];
} shared_t;


/* The memory stays, because this process keeps its seats until it ends. */

static shared_t *
create(void)
{
    shared_t  *s;

    s = mmap(NULL, sizeof(shared_t), PROT_READ|PROT_WRITE,
             MAP_SHARED|MAP_ANONYMOUS, -1, 0);
    assert_true(s != MAP_FAILED);

    assert_int_equal(dsa_seats_init(&s->seats), DSA_OK);

    dsa_seats_lock(&s->seats);
    dsa_seats_add(&s->seats, s->holds);
    dsa_seats_unlock(&s->seats);

    return s;
}


/* All holds but those that are counted can be taken, each of them once. */

static void
check_free(shared_t *s, int seat, uint32_t taken)
{
    uint32_t  n, count, hold, held[DSA_SEATS_BLOCK];

    count = 0;

    dsa_seats_lock(&s->seats);

    for (n = 0; n < DSA_SEATS_BLOCK; n++) {
        hold = dsa_seats_take(&s->seats, seat, &count);
        if (hold == 0) {
            break;
        }

        held[n] = hold;
    }

    assert_int_equal(n, DSA_SEATS_BLOCK - taken);
    assert_int_equal(count, n);

    while (n != 0) {
        dsa_seats_release(&s->seats, held[--n]);
    }

    assert_int_equal(count, 0);

    dsa_seats_unlock(&s->seats);
}


/* Takes and releases holds until it is killed. */

static void
child(shared_t *s, unsigned seed)
{
    int       seat;
    uint32_t  i, held[N_HELD];

    seat = dsa_seats_acquire(&s->seats);
    if (seat == -1) {
        _exit(1);
    }

    for (i = 0; i < N_HELD; i++) {
        held[i] = 0;
    }

    for ( ;; ) {
        i = rand_r(&seed) % N_HELD;

        dsa_seats_lock(&s->seats);

        if (held[i] != 0) {
            dsa_seats_release(&s->seats, held[i]);
            held[i] = 0;

        } else {
            held[i] = dsa_seats_take(&s->seats, seat,
                                     &s->counts[i % N_COUNTS]);
        }

        s->steps++;

        dsa_seats_unlock(&s->seats);
    }
}


static void
test_kill(void **state)
{
    int        seat, status;
    pid_t      pid;
    uint64_t   until;
    uint32_t   i, j;
    unsigned   seed;
    shared_t  *s;

    (void) state;

    seed = 20251122;
    s = create();
    seat = dsa_seats_acquire(&s->seats);

    dsa_seats_lock(&s->seats);

    for (i = 0; i < N_COUNTS * N_OWN; i++) {
        assert_int_not_equal(dsa_seats_take(&s->seats, seat,
                                            &s->counts[i % N_COUNTS]), 0);
    }

    dsa_seats_unlock(&s->seats);

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

        (void) dsa_seats_reap(&s->seats, seat);

        for (j = 0; j < N_COUNTS; j++) {
            assert_int_equal(s->counts[j], N_OWN);
        }

        check_free(s, seat, N_COUNTS * N_OWN);
    }

    /* the test is of no use unless some were killed inside the lock */

    assert_true(s->seats.repairs > N_KILLS / 20);
}


/* The holds of a process stay as long as it lives, and its seat is not free. */

static void
test_alive(void **state)
{
    int        i, seat, status, to[2], from[2];
    char       c;
    pid_t      pid;
    shared_t  *s;

    (void) state;

    s = create();
    seat = dsa_seats_acquire(&s->seats);
    assert_int_equal(seat, 0);

    assert_int_equal(pipe(to), 0);
    assert_int_equal(pipe(from), 0);

    pid = fork();
    assert_int_not_equal(pid, -1);

    if (pid == 0) {
        if (dsa_seats_acquire(&s->seats) != 1) {
            _exit(1);
        }

        dsa_seats_lock(&s->seats);

        for (i = 0; i < 5; i++) {
            (void) dsa_seats_take(&s->seats, 1, &s->counts[0]);
        }

        dsa_seats_unlock(&s->seats);

        if (write(from[1], "r", 1) != 1 || read(to[0], &c, 1) != 1) {
            _exit(1);
        }

        _exit(0);
    }

    assert_int_equal(read(from[0], &c, 1), 1);

    for (i = 0; i < 1000; i++) {
        assert_int_equal(dsa_seats_reap(&s->seats, seat), 0);
    }

    assert_int_equal(s->counts[0], 5);
    assert_int_equal(dsa_seats_acquire(&s->seats), 2);

    /* and they are released when it ends in an orderly way */

    assert_int_equal(write(to[1], "e", 1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);

    assert_int_equal(dsa_seats_reap(&s->seats, seat), 5);
    assert_int_equal(s->counts[0], 0);
    assert_int_equal(dsa_seats_reap(&s->seats, seat), 0);
    assert_int_equal(dsa_seats_acquire(&s->seats), 1);

    check_free(s, seat, 0);
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
