
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The table of what keys have spent, whose processes are killed and whose bytes
 * are damaged.
 */


#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "t/unit/sums.h"


#define N_KEYS   40
#define N_SLOTS  64
#define N_KILLS  300


static int64_t
total(const dsa_sums_table_t *table, const void *id, int known)
{
    int64_t  spent[DSA_SUMS_PERIODS];

    assert_int_equal(dsa_sums_table_look(table, id, NOON, spent), known);

    return spent[DSA_SUMS_TOTAL];
}


/* The id of a key; it has DSA_SUMS_ID bytes and no NUL. */

static const char *
id_of(int n)
{
    static char  ids[4][DSA_SUMS_ID + 1];
    static int   next;

    next = (next + 1) % 4;
    (void) snprintf(ids[next], sizeof(ids[next]), "key_%016x",
                    (unsigned) n * 2654435761U);

    return ids[next];
}


static void
create(dsa_sums_table_t *table, uint32_t rows, uint32_t room)
{
    memset(table, 0, sizeof(dsa_sums_table_t));

    table->size = dsa_sums_table_size(room);
    table->memory = mmap(NULL, table->size, PROT_READ|PROT_WRITE,
                         MAP_SHARED|MAP_ANONYMOUS, -1, 0);
    assert_true(table->memory != MAP_FAILED);

    dsa_sums_table_create(table, rows);

    assert_int_equal(dsa_sums_table_enter(table), DSA_AGAIN);
    assert_int_equal(dsa_sums_table_recount(table), DSA_OK);
    dsa_sums_table_recount_end(table);
    dsa_sums_table_leave(table);
}


static void
charge(dsa_sums_table_t *table, const void *id, int64_t amount, time_t now)
{
    dsa_sums_t       sums;
    dsa_sums_row_t  *row;

    row = dsa_sums_table_get(table, id, &sums, now);
    dsa_sums_charge(&sums, amount, now, now);
    dsa_sums_table_put(table, row, &sums);
}


static void
read_row(dsa_sums_table_t *table, const void *id, int64_t sum, time_t now)
{
    dsa_sums_t       sums;
    dsa_sums_row_t  *row;

    row = dsa_sums_table_get(table, id, &sums, now);
    read_sums(&sums, now, sum, sum, sum);
    dsa_sums_table_put(table, row, &sums);
}


static void
test_table(void **state)
{
    int               i;
    dsa_sums_table_t  table, other;

    assert_int_equal(dsa_sums_table_rows(0), DSA_SUMS_WAYS);
    assert_true(dsa_sums_table_rows(1000) >= 4000);
    assert_int_equal(dsa_sums_table_rows(SIZE_MAX / 8), DSA_SUMS_MAX_ROWS);

    create(&table, 16 * DSA_SUMS_WAYS, 64 * DSA_SUMS_WAYS);

    assert_int_equal(total(&table, id_of(0), 0), 0);
    assert_int_equal(dsa_sums_table_enter(&table), DSA_OK);

    for (i = 0; i < N_KEYS; i++) {
        read_row(&table, id_of(i), 1000 * i, NOON);
        charge(&table, id_of(i), i, NOON);
        assert_int_equal(total(&table, id_of(i), 1), 1001 * i);
    }

    dsa_sums_table_leave(&table);

    /* another process, which maps the memory elsewhere */

    other = table;
    other.rows = 0;
    assert_int_equal(dsa_sums_table_open(&other), DSA_OK);

    for (i = 0; i < N_KEYS; i++) {
        assert_int_equal(total(&other, id_of(i), 1), 1001 * i);
    }

    /* while a section runs, the others have to wait for it */

    assert_int_equal(dsa_sums_table_enter(&table), DSA_OK);
    (void) total(&other, id_of(1), DSA_AGAIN);

    /* an enlarged table has the same sums, twice */

    for (i = 2; i <= 4; i *= 2) {
        dsa_sums_table_grow(&table, 16 * i * DSA_SUMS_WAYS);
        charge(&table, id_of(0), 1, NOON);
        assert_int_equal(total(&table, id_of(0), 1), i / 2);
    }

    for (i = 1; i < N_KEYS; i++) {
        assert_int_equal(total(&table, id_of(i), 1), 1001 * i);
    }

    dsa_sums_table_leave(&table);

    assert_int_equal(dsa_sums_table_enter(&other), DSA_ERROR);
    (void) total(&other, id_of(1), DSA_AGAIN);
    assert_int_equal(dsa_sums_table_open(&other), DSA_OK);
    assert_int_equal(total(&other, id_of(1), 1), 1001);

    /* a mapping that is too short */

    other.size = dsa_sums_table_size(16 * DSA_SUMS_WAYS);
    assert_int_equal(dsa_sums_table_open(&other), DSA_ERROR);

    (void) munmap(table.memory, table.size);
}


/*
 * More keys than rows: those with pending entries stay, and a key that comes
 * back is not known, and has its pending entries after a recount.
 */

static void
test_full(void **state)
{
    int               i;
    dsa_sums_table_t  table;

    create(&table, DSA_SUMS_WAYS, DSA_SUMS_WAYS);
    assert_int_equal(dsa_sums_table_enter(&table), DSA_OK);

    charge(&table, id_of(0), 5, NOON - 100);
    read_row(&table, id_of(0), 0, NOON - 100);

    for (i = 1; i < 3 * DSA_SUMS_WAYS; i++) {
        read_row(&table, id_of(i), i, NOON + i);
    }

    assert_int_equal(total(&table, id_of(0), 1), 5);

    for (i = 1; i < 3 * DSA_SUMS_WAYS; i++) {
        assert_int_equal(total(&table, id_of(i),
                               i > 2 * DSA_SUMS_WAYS),
                         i > 2 * DSA_SUMS_WAYS ? i : 0);
    }

    assert_false(dsa_sums_table_doubtful(&table));

    /* all rows have pending entries, so one of them is replaced */

    for (i = 1; i <= DSA_SUMS_WAYS; i++) {
        charge(&table, id_of(i), 1, NOON + i);
    }

    read_row(&table, id_of(0), 0, NOON);
    assert_true(dsa_sums_table_doubtful(&table));
    assert_int_equal(total(&table, id_of(0), 0), 0);

    assert_int_equal(dsa_sums_table_recount(&table), DSA_OK);
    dsa_sums_table_recount_add(&table, id_of(0), 5, NOON, NOON);
    dsa_sums_table_recount_end(&table);

    assert_int_equal(total(&table, id_of(0), 1), 5);
    assert_false(dsa_sums_table_doubtful(&table));

    dsa_sums_table_leave(&table);
    (void) munmap(table.memory, table.size);
}


/*
 * Any byte may be damaged: then a key is unknown, or has its sums of before or
 * after its last change.
 */

static void
test_damage(void **state)
{
    int               i, n, unknown, before;
    size_t            at;
    uint8_t          *memory, saved, header[256];
    int64_t           spent[DSA_SUMS_PERIODS];
    dsa_sums_table_t  table;

    create(&table, DSA_SUMS_WAYS, DSA_SUMS_WAYS);
    assert_int_equal(dsa_sums_table_enter(&table), DSA_OK);
    read_row(&table, id_of(1), 70, NOON);
    charge(&table, id_of(1), 7, NOON);
    dsa_sums_table_leave(&table);

    memory = table.memory;
    unknown = 0;
    before = 0;

    for (at = 0; at < table.size; at++) {
        memcpy(header, memory, sizeof(header));
        saved = memory[at];
        memory[at] ^= 1 << at % 8;

        if (dsa_sums_table_open(&table) == DSA_OK
            && dsa_sums_table_enter(&table) == DSA_OK)
        {
            n = dsa_sums_table_look(&table, id_of(1), NOON, spent);

            if (n == 1) {
                before += spent[DSA_SUMS_TOTAL] != 77;
                assert_true(spent[DSA_SUMS_TOTAL] == 77
                            || spent[DSA_SUMS_TOTAL] == 70);
            }

            unknown += n == 0;
        }

        memory[at] = saved;
        memcpy(memory, header, sizeof(header));
        assert_int_equal(dsa_sums_table_open(&table), DSA_OK);
    }

    /* the 20 bytes of the id, 168 of the sums, 8 of their checksum, and most of
     * the bits of the number of the copy */

    assert_true(unknown >= 196);
    assert_true(before <= 1);

    /* a row that is damaged begins anew, and needs a recount */

    assert_int_equal(dsa_sums_table_enter(&table), DSA_OK);

    for (i = 0; i < 2; i++) {
        charge(&table, id_of(2), 1, NOON);
    }

    for (at = dsa_sums_table_size(0) + 32; at < table.size; at += 384) {
        memory[at] ^= 1;
        memory[at + 176] ^= 1;
    }

    charge(&table, id_of(1), 1, NOON);
    assert_true(dsa_sums_table_doubtful(&table));
    assert_int_equal(total(&table, id_of(1), 0), 0);

    dsa_sums_table_leave(&table);
    assert_int_equal(dsa_sums_table_enter(&table), DSA_AGAIN);

    (void) munmap(table.memory, table.size);
}


/*
 * Slots of entries that the children of the next test share, as the file of
 * ledger entries has them, and what the ledger has.
 */

typedef struct {
    _Atomic uint32_t  state;            /* as entry_t */
    uint32_t          key;
    int64_t           amount;
} slot_t;


typedef struct {
    slot_t            slots[N_SLOTS];
    _Atomic int64_t   ledger[N_KEYS];
    _Atomic uint64_t  steps;
} shared_t;


static void
enter(dsa_sums_table_t *table, shared_t *s)
{
    int  i;

    if (dsa_sums_table_enter(table) != DSA_AGAIN) {
        return;
    }

    assert_int_equal(dsa_sums_table_recount(table), DSA_OK);

    for (i = 0; i < N_SLOTS; i++) {
        if (s->slots[i].state == CHARGED || s->slots[i].state == EXECUTED) {
            dsa_sums_table_recount_add(table, id_of(s->slots[i].key),
                                       s->slots[i].amount, NOON, NOON);
        }
    }

    dsa_sums_table_recount_end(table);
}


/* Charges and confirms entries in random slots until it is killed. */

static void
child(dsa_sums_table_t *table, shared_t *s)
{
    slot_t          *slot;
    dsa_sums_t       sums;
    dsa_sums_row_t  *row;

    for ( ;; ) {
        slot = &s->slots[rand() % N_SLOTS];

        switch (slot->state) {

        case UNUSED:
            slot->key = rand() % N_KEYS;
            slot->amount = rand() % 1000;

            enter(table, s);
            slot->state = CHARGED;
            charge(table, id_of(slot->key), slot->amount, NOON);
            dsa_sums_table_leave(table);
            break;

        case CHARGED:
            slot->state = EXECUTED;
            s->ledger[slot->key] += slot->amount;
            break;

        default:
            enter(table, s);
            row = dsa_sums_table_get(table, id_of(slot->key), &sums, NOON);
            dsa_sums_confirm(&sums, slot->amount, NOON, NOON);
            dsa_sums_table_put(table, row, &sums);
            slot->state = UNUSED;
            dsa_sums_table_leave(table);
        }

        s->steps++;
    }
}


/*
 * Processes are killed at any moment.  After a read, a key has spent what the
 * ledger has and what is pending in the slots.  A child that was killed between
 * two stores may have left an amount out of this ledger; what is read lacks it
 * as well.
 */

static void
test_kills(void **state)
{
    int               i, n;
    pid_t             pid;
    int64_t           sums[N_KEYS];
    uint64_t          steps;
    shared_t         *s;
    dsa_sums_table_t  table;

    create(&table, 16 * DSA_SUMS_WAYS, 16 * DSA_SUMS_WAYS);

    s = mmap(NULL, sizeof(shared_t), PROT_READ|PROT_WRITE,
             MAP_SHARED|MAP_ANONYMOUS, -1, 0);
    assert_true(s != MAP_FAILED);

    for (n = 0; n < N_KILLS; n++) {
        pid = fork();
        assert_true(pid != -1);

        if (pid == 0) {
            srand(n);
            child(&table, s);
        }

        steps = s->steps + rand() % 200;

        while (s->steps < steps) {
            (void) sched_yield();
        }

        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);

        memset(sums, 0, sizeof(sums));

        for (i = 0; i < N_SLOTS; i++) {
            if (s->slots[i].state == CHARGED || s->slots[i].state == EXECUTED)
            {
                sums[s->slots[i].key] += s->slots[i].amount;
            }
        }

        enter(&table, s);

        for (i = 0; i < N_KEYS; i++) {
            read_row(&table, id_of(i), s->ledger[i], NOON);
            assert_int_equal(total(&table, id_of(i), 1),
                             s->ledger[i] + sums[i]);
        }

        dsa_sums_table_leave(&table);
    }

    (void) munmap(s, sizeof(shared_t));
    (void) munmap(table.memory, table.size);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_kills)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
