
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The record of a request in a real redis-server: its entry in the ledger, and
 * its turn of a conversation.
 */


#include "t/unit/stored.h"


static void
test_ledger(void **state)
{
    dsa_schema_entry_t  r;

    r = request("r1");
    assert_recorded(&r, DSA_SCHEMA_LEDGER, 0);
    assert_recorded(&r, DSA_SCHEMA_LEDGER, 1);
    assert_recorded(&r, DSA_SCHEMA_LEDGER, 1);

    r = request("r2");
    r.prompt_tokens = 999999999999ULL;
    assert_recorded(&r, DSA_SCHEMA_LEDGER, 0);

    /* one second later is another day */

    r = request("r3");
    r.time = WHEN + 1;
    assert_recorded(&r, DSA_SCHEMA_LEDGER, 0);

    r = request("r1");
    r.tenant = dsa_strz(OTHER);
    assert_recorded(&r, DSA_SCHEMA_LEDGER, 0);

    assert_int_equal(value("HGET " LEDGER " v3|2|requests"), 2);
    assert_int_equal(value("HGET " LEDGER " v3|2|prompt_tokens"),
                     1000000000999LL);
    assert_int_equal(value("HGET " LEDGER " v3|2|cached_tokens"), 1280);
    assert_int_equal(value("HGET " LEDGER " v3|2|completion_tokens"), 40);
    assert_int_equal(value("HGET " LEDGER " v3|2|reasoning_tokens"), 14);
    assert_int_equal(value("HGET " LEDGER " v3|2|cached_host_tokens"), 256);
    assert_int_equal(value("HGET " LEDGER " v3|2|cached_redis_tokens"), 128);
    assert_int_equal(number(&server, "HLEN " LEDGER), 10);

    assert_int_equal(value("HGET dsa1:{" TENANT "}:ledger:2099-02-04 "
                            "v3|2|requests"), 1);
    assert_int_equal(value("HGET dsa1:{" OTHER "}:ledger:2099-02-03 "
                            "v3|2|requests"), 1);

    /* money stays, all else goes */

    assert_int_equal(number(&server, "TTL " LEDGER), -1);
    assert_in_range(number(&server, "TTL " DONE), 86000, 86400);
    assert_int_equal(number(&server, "DBSIZE"), 7);
}


static void
test_append(void **state)
{
    dsa_str_t           turn[2];
    dsa_schema_entry_t  r;

    create(TENANT, NULL, 0);
    assert_int_equal(number(&server, "EXPIRE " KEY " 5"), 1);

    turn[0] = dsa_strz(USER);
    turn[1] = dsa_strz(ANSWER);

    r = request("r1");
    r.conversation = dsa_strz(ID);
    r.version = 1;
    r.messages = turn;
    r.n_messages = 2;

    assert_recorded(&r, DSA_SCHEMA_APPENDED, 0);
    assert_roles("ua", 2);
    assert_in_range(number(&server, "TTL " KEY), 300, 600);

    /* sent again because the reply was lost */

    assert_recorded(&r, DSA_SCHEMA_APPENDED, 1);
    assert_roles("ua", 2);

    /* of two turns with the same version one is stored; both are charged */

    r.request = dsa_strz("r2");
    r.version = 2;
    assert_recorded(&r, DSA_SCHEMA_APPENDED, 0);

    r.request = dsa_strz("r3");
    assert_recorded(&r, DSA_SCHEMA_MOVED, 0);
    assert_recorded(&r, DSA_SCHEMA_MOVED, 1);
    assert_roles("uaua", 3);

    /* a conversation of another tenant, and one that was deleted */

    r.request = dsa_strz("r4");
    r.tenant = dsa_strz(OTHER);
    r.version = 3;
    assert_recorded(&r, DSA_SCHEMA_GONE, 0);
    assert_roles("uaua", 3);

    r.tenant = dsa_strz(TENANT);
    assert_int_equal(number(&server, "DEL " KEY), 1);
    assert_recorded(&r, DSA_SCHEMA_GONE, 0);
    assert_int_equal(number(&server, "EXISTS " KEY), 0);

    assert_int_equal(value("HGET " LEDGER " v3|2|requests"), 4);
}


static void
test_trim(void **state)
{
    dsa_str_t           turn[4];
    dsa_schema_entry_t  r;

    /* a turn with a tool round is removed as a whole */

    turn[0] = dsa_strz(SYSTEM);
    create(TENANT, turn, 1);

    r = request("r1");
    r.conversation = dsa_strz(ID);
    r.max_messages = 6;
    r.version = 1;
    r.messages = turn;

    turn[0] = dsa_strz(USER);
    turn[1] = dsa_strz(CALL);
    turn[2] = dsa_strz(TOOL);
    turn[3] = dsa_strz(ANSWER);
    r.n_messages = 4;
    assert_recorded(&r, DSA_SCHEMA_APPENDED, 0);
    assert_roles("suata", 2);

    turn[1] = dsa_strz(ANSWER);
    r.request = dsa_strz("r2");
    r.version = 2;
    r.n_messages = 2;
    assert_recorded(&r, DSA_SCHEMA_APPENDED, 0);
    assert_roles("sua", 3);
    assert_int_equal(number(&server, "HLEN " KEY), 8 + 3);
    assert_int_equal(value("HGET " KEY " bytes"),
                     sizeof(SYSTEM USER ANSWER) - 1);

    /* a turn that alone is too large is refused, and nothing is removed */

    r.request = dsa_strz("r3");
    r.version = 3;
    r.max_messages = 2;
    assert_recorded(&r, DSA_SCHEMA_TOO_LARGE, 0);
    assert_roles("sua", 3);

    /* by bytes */

    r.request = dsa_strz("r4");
    r.max_messages = 100;
    r.max_bytes = sizeof(SYSTEM USER ANSWER) - 1;
    assert_recorded(&r, DSA_SCHEMA_APPENDED, 0);
    assert_roles("sua", 4);

    r.request = dsa_strz("r5");
    r.version = 4;
    r.max_bytes--;
    assert_recorded(&r, DSA_SCHEMA_TOO_LARGE, 0);
    assert_roles("sua", 4);

    /* a turn that begins with a tool message cannot be the first one */

    turn[0] = dsa_strz(TOOL);
    r.request = dsa_strz("r6");
    r.max_messages = 3;
    r.max_bytes = 100000;
    assert_recorded(&r, DSA_SCHEMA_TOO_LARGE, 0);
    assert_roles("sua", 4);

    assert_int_equal(value("HGET " LEDGER " v3|2|requests"), 6);
}


static void
test_trim_first_system(void **state)
{
    dsa_str_t           turn[3];
    dsa_schema_entry_t  r;

    /* the system message came with the first turn */

    create(TENANT, NULL, 0);

    turn[0] = dsa_strz(SYSTEM);
    turn[1] = dsa_strz(USER);
    turn[2] = dsa_strz(ANSWER);

    r = request("r1");
    r.conversation = dsa_strz(ID);
    r.max_messages = 3;
    r.version = 1;
    r.messages = turn;
    r.n_messages = 3;
    assert_recorded(&r, DSA_SCHEMA_APPENDED, 0);
    assert_roles("sua", 2);

    r.request = dsa_strz("r2");
    r.version = 2;
    r.messages = &turn[1];
    r.n_messages = 2;
    assert_recorded(&r, DSA_SCHEMA_APPENDED, 0);
    assert_roles("sua", 3);
}


static void
test_damage(void **state)
{
    int                        again;
    dsa_err_t                  err;
    dsa_str_t                  turn[2];
    redisReply                *reply;
    dsa_schema_entry_t         r;
    dsa_schema_result_e        result;
    dsa_schema_conversation_t  c;

    turn[0] = dsa_strz(USER);
    turn[1] = dsa_strz(ANSWER);
    create(TENANT, turn, 2);

    /* a conversation that lacks a message is an error */

    assert_int_equal(number(&server, "HDEL " KEY " 0"), 1);
    assert_int_equal(load(&c, TENANT, &reply, &err), DSA_ERROR);
    freeReplyObject(reply);

    /* the ledger entry is written if the key is not a conversation */

    (void) number(&server, "DEL " KEY);
    ok(&server, "SET " KEY " x");
    assert_int_equal(load(&c, TENANT, &reply, &err), DSA_ERROR);
    freeReplyObject(reply);

    r = request("r1");
    r.conversation = dsa_strz(ID);
    r.version = 1;
    r.messages = turn;
    r.n_messages = 2;
    assert_recorded(&r, DSA_SCHEMA_DAMAGED, 0);

    (void) number(&server, "DEL " KEY);
    (void) number(&server, "HSET " KEY " version 1");
    r.request = dsa_strz("r2");
    assert_recorded(&r, DSA_SCHEMA_DAMAGED, 0);
    assert_int_equal(value("HGET " LEDGER " v3|2|requests"), 2);

    /* a ledger that cannot be added to is an error and stays as it is */

    (void) number(&server, "HSET " LEDGER " v3|2|reasoning_tokens many");
    r = request("r3");
    assert_int_equal(record(&r, &result, &again, &err), DSA_ERROR);
    assert_non_null(strstr(err.text, "ledger"));
    assert_int_equal(value("HGET " LEDGER " v3|2|requests"), 2);
    assert_int_equal(number(&server, "HEXISTS " DONE " 3"), 0);

    (void) number(&server, "DEL " LEDGER);
    ok(&server, "SET " LEDGER " x");
    assert_int_equal(record(&r, &result, &again, &err), DSA_ERROR);
    assert_int_equal(number(&server, "HEXISTS " DONE " 3"), 0);
}


static void
test_full(void **state)
{
    int                  again;
    dsa_err_t            err;
    dsa_str_t            turn[2];
    dsa_schema_entry_t   r;
    dsa_schema_result_e  result;

    turn[0] = dsa_strz(USER);
    turn[1] = dsa_strz(ANSWER);
    create(TENANT, turn, 2);

    r = request("r1");
    r.conversation = dsa_strz(ID);
    r.version = 1;
    r.messages = turn;
    r.n_messages = 2;

    /* without memory Redis writes nothing; later it writes all */

    ok(&server, "CONFIG SET maxmemory 1");
    assert_int_equal(record(&r, &result, &again, &err), DSA_AGAIN);
    assert_non_null(strstr(err.text, "OOM"));
    ok(&server, "CONFIG SET maxmemory 0");

    assert_int_equal(number(&server, "DBSIZE"), 2);
    assert_roles("ua", 1);

    assert_recorded(&r, DSA_SCHEMA_APPENDED, 0);
    assert_roles("uaua", 2);
    assert_int_equal(value("HGET " LEDGER " v3|2|requests"), 1);
}


int
main(void)
{
#define test(name)  cmocka_unit_test_setup_teardown(name, begin, end)

    const struct CMUnitTest  tests[] = {
        test(test_ledger),
        test(test_append),
        test(test_trim),
        test(test_trim_first_system),
        test(test_damage),
        test(test_full)
    };

    return cmocka_run_group_tests(tests, start, stop);
}
