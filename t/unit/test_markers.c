
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The markers by which Redis counts an entry once: which attempts they stop,
 * and that their memory does not grow with the number of requests.
 */


#include "t/unit/stored.h"


#define CELLS      64               /* requests that a sender has at a time */
#define REQUESTS   20000

/* bytes: what counts with more digits, and the server itself, may add */

#define NOISE      (256 * 1024)


static dsa_schema_entry_t
entry(uint64_t sender, uint32_t cell, uint64_t number)
{
    dsa_schema_entry_t  r;

    r = request("chatcmpl-0");
    r.sender = sender;
    r.cell = cell;
    r.number = number;

    return r;
}


static void
assert_counted(uint64_t sender, uint32_t cell, uint64_t number, int again)
{
    dsa_schema_entry_t  r;

    r = entry(sender, cell, number);
    assert_recorded(&r, DSA_SCHEMA_LEDGER, again);
}


static long long
requests(void)
{
    return value("HGET " LEDGER " v3|2|requests");
}


static void
test_attempts(void **state)
{
    dsa_schema_entry_t  r;

    assert_counted(SENDER, 1, 10, 0);
    assert_counted(SENDER, 1, 10, 1);
    assert_counted(SENDER, 2, 10, 0);
    assert_counted(SENDER + 1, 1, 10, 0);
    assert_int_equal(requests(), 3);

    /* the next entry in a cell, and a delayed attempt of the one before it */

    assert_counted(SENDER, 1, 12, 0);
    assert_counted(SENDER, 1, 10, 1);
    assert_counted(SENDER, 1, 12, 1);
    assert_counted(SENDER, 1, 11, 1);
    assert_counted(SENDER, 2, 10, 1);
    assert_counted(SENDER, 1, 13, 0);
    assert_int_equal(requests(), 5);

    /* an entry of another tenant in the same cell has another marker */

    r = entry(SENDER, 1, 14);
    r.tenant = dsa_strz(OTHER);
    assert_recorded(&r, DSA_SCHEMA_LEDGER, 0);
    assert_recorded(&r, DSA_SCHEMA_LEDGER, 1);
    assert_counted(SENDER, 1, 15, 0);
    assert_recorded(&r, DSA_SCHEMA_LEDGER, 1);
    assert_int_equal(requests(), 6);

    /* the largest numbers are told apart */

    assert_counted(SENDER, 3, DSA_SCHEMA_NUMBER_MAX - 1, 0);
    assert_counted(SENDER, 3, DSA_SCHEMA_NUMBER_MAX - 1, 1);
    assert_counted(SENDER, 3, DSA_SCHEMA_NUMBER_MAX, 0);
    assert_counted(SENDER, 3, DSA_SCHEMA_NUMBER_MAX, 1);
    assert_counted(SENDER, UINT32_MAX, 1, 0);
    assert_int_equal(requests(), 9);
}


/* An entry that was sent without a reply may be sent for 23 hours. */

static void
test_lifetime(void **state)
{
    assert_counted(SENDER, 1, 1, 0);
    assert_int_equal(number(&server, "EXPIRE " DONE " 100"), 1);

    /* an attempt that changes nothing renews nothing */

    assert_counted(SENDER, 1, 1, 1);
    assert_in_range(number(&server, "TTL " DONE), 1, 100);

    assert_counted(SENDER, 2, 2, 0);
    assert_in_range(number(&server, "TTL " DONE), DSA_SCHEMA_RESEND + 3500,
                    DSA_SCHEMA_DONE_TTL);
}


/* An entry with a turn of a conversation, which has the same two messages. */

static dsa_schema_entry_t
first_turn(dsa_str_t *turn)
{
    dsa_schema_entry_t  r;

    turn[0] = dsa_strz(USER);
    turn[1] = dsa_strz(ANSWER);
    create(TENANT, turn, 2);

    r = entry(SENDER, 1, 1);
    r.conversation = dsa_strz(ID);
    r.version = 1;
    r.messages = turn;
    r.n_messages = 2;

    return r;
}


/* A turn: the result of the first attempt is returned by later ones. */

static void
test_results(void **state)
{
    dsa_str_t           turn[2];
    dsa_schema_entry_t  r;

    r = first_turn(turn);

    assert_recorded(&r, DSA_SCHEMA_APPENDED, 0);
    assert_recorded(&r, DSA_SCHEMA_APPENDED, 1);

    r.number = 2;
    assert_recorded(&r, DSA_SCHEMA_MOVED, 0);
    assert_recorded(&r, DSA_SCHEMA_MOVED, 1);

    /* the same entry without its turn, after the answer waited too long */

    r.conversation = dsa_str(NULL, 0);
    r.n_messages = 0;
    assert_recorded(&r, DSA_SCHEMA_MOVED, 1);

    assert_roles("uaua", 2);
    assert_int_equal(requests(), 2);
}


static void
test_lease(void **state)
{
    dsa_str_t           turn[2];
    dsa_schema_entry_t  r;

    r = first_turn(turn);

    /* another turn has the lease, and one whose id ends in the same way */

    ok(&server, "SET dsa1:{" TENANT "}:l:" ID " chatcmpl-1 PX 30000");
    assert_recorded(&r, DSA_SCHEMA_APPENDED, 0);
    assert_text("chatcmpl-1", "GET dsa1:{" TENANT "}:l:" ID);

    ok(&server, "SET dsa1:{" TENANT "}:l:" ID " x-chatcmpl-0 PX 30000");
    r.number = 2;
    r.version = 2;
    assert_recorded(&r, DSA_SCHEMA_APPENDED, 0);
    assert_text("x-chatcmpl-0", "GET dsa1:{" TENANT "}:l:" ID);

    ok(&server, "SET dsa1:{" TENANT "}:l:" ID " chatcmpl-0 PX 30000");
    r.number = 3;
    r.version = 3;
    assert_recorded(&r, DSA_SCHEMA_APPENDED, 0);
    assert_int_equal(number(&server, "EXISTS dsa1:{" TENANT "}:l:" ID), 0);
}


static void
test_damaged(void **state)
{
    int                  again;
    size_t               i;
    dsa_err_t            err;
    dsa_schema_entry_t   r;
    dsa_schema_result_e  result;

    static const char *const  values[] = {
        "", "x", "-8", "8.5", "1e3", "15", "23", "99999999999999999"
    };

    for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        ok(&server, "FLUSHALL");
        assert_int_equal(number(&server, "HSET " DONE " 1 %b", values[i],
                                strlen(values[i])), 1);

        r = entry(SENDER, 1, 1);
        assert_int_equal(record(&r, &result, &again, &err), DSA_ERROR);
        assert_non_null(strstr(err.text, "DSADATA"));
        assert_int_equal(number(&server, "DBSIZE"), 1);

        r = entry(SENDER, 2, 1);
        assert_recorded(&r, DSA_SCHEMA_LEDGER, 0);
    }

    ok(&server, "FLUSHALL");
    ok(&server, "SET " DONE " x");
    assert_int_equal(record(&r, &result, &again, &err), DSA_ERROR);
    assert_int_equal(number(&server, "DBSIZE"), 1);
}


static void
test_ranges(void **state)
{
    dsa_schema_entry_t    r;
    dsa_schema_command_t  cmd;

    r = entry(0, 1, 1);
    assert_int_equal(dsa_schema_record(&cmd, arena, &r, 1), DSA_ERROR);

    r = entry(SENDER, 1, 0);
    assert_int_equal(dsa_schema_record(&cmd, arena, &r, 1), DSA_ERROR);

    r = entry(SENDER, 1, DSA_SCHEMA_NUMBER_MAX + 1);
    assert_int_equal(dsa_schema_record(&cmd, arena, &r, 1), DSA_ERROR);
}


/* The bytes that Redis uses for its data. */

static long long
used(void)
{
    long long    n;
    redisReply  *reply;
    const char  *p;

    reply = query(&server, "INFO memory");
    p = strstr(reply->str, "used_memory_dataset:");
    assert_non_null(p);
    n = atoll(p + strlen("used_memory_dataset:"));
    freeReplyObject(reply);

    return n;
}


/* Sends n entries of two senders for the tenants, in cells at random. */

static void
send_many(uint32_t n, uint32_t tenants, uint64_t *serial)
{
    char                  tenant[33];
    uint32_t              i, k;
    redisReply           *reply;
    dsa_arena_t          *own;
    dsa_schema_entry_t    r;
    dsa_schema_command_t  cmd;

    own = arena;

    for (i = 0; i < n; i++) {
        arena = dsa_arena_create(1 << 16);
        assert_non_null(arena);

        (*serial)++;
        (void) snprintf(tenant, sizeof(tenant), "%032x",
                        (unsigned) (*serial % tenants));

        r = entry(SENDER + *serial / tenants % 2, (uint32_t) rand() % CELLS,
                  1700000000000ULL + *serial);
        r.tenant = dsa_strz(tenant);

        for (k = 0; k < 2; k++) {
            assert_int_equal(dsa_schema_record(&cmd, arena, &r, (int) k),
                             DSA_OK);
            reply = run(&cmd);

            if (!dsa_resp_is_error(reply, "NOSCRIPT")) {
                break;
            }

            freeReplyObject(reply);
        }

        assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
        assert_int_equal(reply->element[1]->integer, 0);
        freeReplyObject(reply);
        dsa_arena_destroy(arena);
    }

    arena = own;
}


/*
 * When the cells are in use, further requests need no memory: neither of one
 * tenant nor of a hundred.
 */

static void
test_memory(void **state)
{
    size_t       i;
    uint32_t     tenants, warm;
    uint64_t     serial;
    long long    before, after, bytes;
    redisReply  *keys;

    for (tenants = 1; tenants <= 100; tenants += 99) {
        ok(&server, "FLUSHALL");
        srand(1);
        serial = 0;
        warm = 1000 * (tenants == 1 ? 1 : 10);

        send_many(warm, tenants, &serial);
        before = used();
        send_many(REQUESTS, tenants, &serial);
        after = used();

        assert_true(after < before + NOISE);

        /* a hash for each tenant and sender, a day and "rolled" */

        assert_int_equal(number(&server, "DBSIZE"), 4 * tenants);

        bytes = 0;
        keys = query(&server, "KEYS dsa1:*:done:*");
        assert_int_equal(keys->elements, 2 * tenants);

        for (i = 0; i < keys->elements; i++) {
            assert_true(number(&server, "HLEN %s", keys->element[i]->str)
                        <= CELLS);
            bytes += number(&server, "MEMORY USAGE %s SAMPLES 0",
                            keys->element[i]->str);
        }

        freeReplyObject(keys);

        print_message("%u tenants: %lld bytes of markers after %llu requests, "
                      "%lld bytes more for the last %d\n", tenants, bytes,
                      (unsigned long long) serial, after - before, REQUESTS);

        /* with 64 cells */

        assert_true(bytes < 2LL * tenants * 1500);
    }
}


int
main(void)
{
#define test(name)  cmocka_unit_test_setup_teardown(name, begin, end)

    const struct CMUnitTest  tests[] = {
        test(test_attempts),
        test(test_lifetime),
        test(test_results),
        test(test_lease),
        test(test_damaged),
        test(test_ranges),
        test(test_memory)
    };

    return cmocka_run_group_tests(tests, start, stop);
}
