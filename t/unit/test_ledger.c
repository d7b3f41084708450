
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The ledger in a real redis-server: money, the spending of keys, and days that
 * become a part of their month.  The dates are those of gmtime_r().
 */


#include <time.h>

#include "t/unit/schema.h"


#define TENANT   "0123456789abcdef0123456789abcdef"
#define SPEND    "dsa1:{" TENANT "}:spend"
#define ROLLED   "dsa1:{" TENANT "}:rolled"
#define KEY_A    "key_0123456789abcdef"
#define KEY_B    "key_fedcba9876543210"

#define DAY      (24 * 3600)


static unsigned  serial;            /* of the last request */


/* The key of the ledger of a day, or of its month if length is 7. */

static const char *
ledger(int64_t when, int length)
{
    char         date[16];
    time_t       t;
    struct tm    tm;
    static int   n;
    static char  key[4][96];

    t = when;
    assert_non_null(gmtime_r(&t, &tm));
    assert_int_equal(strftime(date, sizeof(date), "%Y-%m-%d", &tm), 10);

    n = (n + 1) % 4;
    snprintf(key[n], sizeof(key[n]), "dsa1:{" TENANT "}:ledger:%.*s", length,
             date);

    return key[n];
}


static const char *
date(int64_t when, int length)
{
    return strrchr(ledger(when, length), ':') + 1;
}


static dsa_schema_entry_t
entry(int64_t when, const char *key)
{
    char                id[32];
    dsa_schema_entry_t  r;

    memset(&r, 0, sizeof(r));

    snprintf(id, sizeof(id), "r%u", ++serial);

    r.sender = 1;
    r.cell = serial;
    r.number = serial;
    r.request = dsa_str(dsa_arena_dup(arena, dsa_strz(id)), strlen(id));
    r.tenant = dsa_strz(TENANT);
    r.model = dsa_strz("m|x");
    r.time = when;
    r.prompt_tokens = 100;
    r.completion_tokens = 10;
    r.key = dsa_strz(key);
    r.cost_miss = 28000000;
    r.cost_hit = 3;
    r.cost_output = 4200000;

    return r;
}


/* DSA_OK, DSA_AGAIN or DSA_ERROR; *again as dsa_schema_recorded() sets it. */

static int
send_entry(const dsa_schema_entry_t *r, int *again)
{
    int                    rc;
    dsa_err_t              err;
    redisReply            *reply;
    dsa_schema_result_e    result;
    dsa_schema_command_t   cmd;

    assert_true(dsa_schema_entry_ok(r));
    assert_int_equal(dsa_schema_record(&cmd, arena, r, 1), DSA_OK);

    *again = 0;
    reply = run(&cmd);
    rc = dsa_schema_recorded(reply, &result, again, &err);
    freeReplyObject(reply);

    return rc;
}


static void
add(int64_t when, const char *key)
{
    int                 again;
    dsa_schema_entry_t  r;

    r = entry(when, key);

    assert_int_equal(send_entry(&r, &again), DSA_OK);
    assert_int_equal(again, 0);
}


static void
test_money(void **state)
{
    int                 again;
    int64_t             now;
    dsa_schema_entry_t  r;

    now = time(NULL);

    r = entry(now, KEY_A);
    assert_int_equal(send_entry(&r, &again), DSA_OK);
    assert_int_equal(send_entry(&r, &again), DSA_OK);
    assert_int_equal(again, 1);
    add(now, KEY_A);
    add(now, KEY_B);
    add(now, "");

    assert_text("112000000", "HGET %s m|x|cost_miss", ledger(now, 10));
    assert_text("12", "HGET %s m|x|cost_hit", ledger(now, 10));
    assert_text("16800000", "HGET %s m|x|cost_output", ledger(now, 10));
    assert_text("4", "HGET %s m|x|requests", ledger(now, 10));

    assert_text("56000000", "HGET %s " KEY_A "|m|x|cost_miss",
                ledger(now, 10));
    assert_text("2", "HGET %s " KEY_A "|m|x|requests", ledger(now, 10));
    assert_text("200", "HGET %s " KEY_A "|m|x|prompt_tokens",
                ledger(now, 10));
    assert_text("4200000", "HGET %s " KEY_B "|m|x|cost_output",
                ledger(now, 10));
    assert_text("30", "HLEN %s", ledger(now, 10));

    assert_text("64400006", "HGET " SPEND " " KEY_A);
    assert_text("64400006", "HGET " SPEND " " KEY_A "|%s", date(now, 7));
    assert_text("64400006", "HGET " SPEND " " KEY_A "|%s", date(now, 10));
    assert_text("32200003", "HGET " SPEND " " KEY_B);
    assert_text("6", "HLEN " SPEND);

    assert_text("0", "EXISTS %s", ledger(now, 7));
    assert_text("-1", "TTL %s", ledger(now, 10));
    assert_text("-1", "TTL " SPEND);
}


/*
 * A day of each kind that an earlier version has left, over more than a year:
 * each becomes a part of its month, one with each entry.
 */

static void
test_roll(void **state)
{
    int      i, days;
    int64_t  now, when;

    now = time(NULL);
    days = 0;

    for (i = 460; i > 0; i -= 7) {
        assert_text("1", "HSET %s m|x|requests %d",
                    ledger(now - (int64_t) i * DAY, 10), i);
        days += (i > 62);
    }

    for (i = 0; i < days; i++) {
        assert_text("1", "EXISTS %s",
                    ledger(now - (int64_t) (460 - 7 * (days - 1)) * DAY, 10));
        add(now, "");
    }

    add(now, "");

    /* the clock may pass midnight, so one day is left out */

    for (i = 460; i > 0; i -= 7) {
        when = now - (int64_t) i * DAY;

        if (i > 63) {
            assert_text("0", "EXISTS %s", ledger(when, 10));
            assert_int_not_equal(atoll(text("HGET %s m|x|requests",
                                            ledger(when, 7))), 0);

        } else if (i < 62) {
            assert_text("1", "EXISTS %s", ledger(when, 10));
        }
    }

    assert_in_range(atoll(text("GET " ROLLED)), now / DAY - 62,
                    now / DAY - 61);
}


/* The sum of all keys of the ledger does not change when days are folded. */

static void
test_sum(void **state)
{
    int          again, i;
    size_t       k;
    int64_t      now, sum, want;
    redisReply  *keys;

    dsa_schema_entry_t  r;

    now = time(NULL);
    want = 0;

    for (i = 0; i < 200; i++) {
        r = entry(now - (int64_t) (rand() % 100) * DAY, i % 2 ? KEY_A : "");
        r.cost_miss = rand();
        want += r.cost_miss;
        assert_int_equal(send_entry(&r, &again), DSA_OK);
    }

    /* days that were written long ago */

    for (i = 62 + 30; i > 62; i--) {
        assert_text("1", "HSET %s m|x|cost_miss %d",
                    ledger(now - (int64_t) i * DAY, 10), i);
        assert_text("1", "HSET " SPEND " " KEY_A "|%s %d",
                    date(now - (int64_t) i * DAY, 10), i);
        assert_text("1", "HSET %s " KEY_A "|m|x|cost_hit %d",
                    ledger(now - (int64_t) i * DAY, 10), i);
        want += i;
    }

    (void) text("DEL " ROLLED);

    for (i = 0; i < 32; i++) {
        r = entry(now, "");
        r.cost_miss = 1;
        want++;
        assert_int_equal(send_entry(&r, &again), DSA_OK);
    }

    sum = 0;
    keys = query(&server, "KEYS dsa1:*:ledger:*");

    for (k = 0; k < keys->elements; k++) {
        sum += atoll(text("HGET %s m|x|cost_miss", keys->element[k]->str));
    }

    freeReplyObject(keys);

    assert_int_equal(sum, want);

    for (i = 62 + 30; i > 63; i--) {
        assert_text("0", "EXISTS %s", ledger(now - (int64_t) i * DAY, 10));
        assert_text("0", "HEXISTS " SPEND " " KEY_A "|%s",
                    date(now - (int64_t) i * DAY, 10));
    }
}


/* An entry of a day that is a part of its month goes there as well. */

static void
test_late(void **state)
{
    int64_t  now, old;

    now = time(NULL);
    old = now - (int64_t) 90 * DAY;

    add(old, KEY_A);
    assert_text("0", "EXISTS %s", ledger(old, 10));
    assert_text("28000000", "HGET %s m|x|cost_miss", ledger(old, 7));
    assert_text("28000000", "HGET %s " KEY_A "|m|x|cost_miss",
                ledger(old, 7));
    assert_text("32200003", "HGET " SPEND " " KEY_A);
    assert_text("32200003", "HGET " SPEND " " KEY_A "|%s", date(old, 7));
    assert_text("0", "HEXISTS " SPEND " " KEY_A "|%s", date(old, 10));

    /* a day that is not old enough yet */

    old = now - (int64_t) 60 * DAY;
    add(old, "");
    assert_text("28000000", "HGET %s m|x|cost_miss", ledger(old, 10));
}


/* Days that cannot be folded stay, and hold nothing up. */

static void
test_unfit(void **state)
{
    int      i;
    int64_t  now, day[4];

    now = time(NULL);

    for (i = 0; i < 4; i++) {
        day[i] = now - (int64_t) (100 - i) * DAY;
    }

    assert_text("1", "HSET %s m|x|requests many", ledger(day[0], 10));
    assert_text("1", "HSET %s m|x|requests 9223372036854775807",
                ledger(day[1], 10));
    assert_text("1", "HSET %s m|x|requests 1", ledger(day[2], 10));
    assert_text("OK", "SET %s text", ledger(day[3], 10));
    assert_text("1", "HSET %s m|x|requests 7", ledger(day[2], 7));

    if (strcmp(ledger(day[1], 7), ledger(day[2], 7)) != 0) {
        assert_text("1", "HSET %s m|x|requests 7", ledger(day[1], 7));
    }

    for (i = 0; i < 4; i++) {
        add(now, "");
    }

    assert_text("many", "HGET %s m|x|requests", ledger(day[0], 10));
    assert_text("9223372036854775807", "HGET %s m|x|requests",
                ledger(day[1], 10));
    assert_text("0", "EXISTS %s", ledger(day[2], 10));
    assert_text("8", "HGET %s m|x|requests", ledger(day[2], 7));
    assert_text("text", "GET %s", ledger(day[3], 10));
}


/* Nothing of an entry is written if one of its sums does not fit. */

static void
test_overflow(void **state)
{
    int                 again;
    size_t              i;
    int64_t             now;
    dsa_schema_entry_t  r;

    static const struct {
        const char  *hash;              /* NULL: the ledger of the day */
        const char  *field;
        const char  *old;
        int          ok;
    } tests[] = {
        { NULL, "m|x|cost_output", "9223372036850575807", 1 },
        { NULL, "m|x|cost_output", "9223372036850575808", 0 },
        { NULL, "m|x|cost_output", "9223372036854775807", 0 },
        { NULL, "m|x|cost_hit", "9223372036854775804", 1 },
        { NULL, "m|x|cost_hit", "9223372036854775805", 0 },
        { NULL, KEY_A "|m|x|cost_hit", "9223372036854775804", 1 },
        { NULL, KEY_A "|m|x|cost_hit", "9223372036854775805", 0 },
        { SPEND, KEY_A, "9223372036822575804", 1 },
        { SPEND, KEY_A, "9223372036822575805", 0 },
        { SPEND, KEY_A, "-1000000000000000", 1 },
        { SPEND, KEY_A, "-999999999999999999", 1 },
        { SPEND, KEY_A, "-9999999999999999999", 0 },
        { NULL, "m|x|requests", "9223372036854775806", 1 },
        { NULL, "m|x|requests", "9223372036854775807", 0 },
        { NULL, "m|x|requests", "99999999999999999999", 0 },
        { NULL, "m|x|requests", "07", 0 },
        { NULL, "m|x|requests", " 7", 0 },
        { NULL, "m|x|requests", "1e3", 0 },
        { NULL, "m|x|requests", "", 0 },
        { NULL, "m|x|requests", "0", 1 },
        { NULL, "m|x|requests", "999999999", 1 }
    };

    for (i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
        (void) text("FLUSHALL");

        now = time(NULL);
        r = entry(now, KEY_A);

        assert_text("1", "HSET %s %s %b",
                    tests[i].hash != NULL ? tests[i].hash : ledger(now, 10),
                    tests[i].field, tests[i].old, strlen(tests[i].old));

        if (tests[i].ok) {
            assert_int_equal(send_entry(&r, &again), DSA_OK);
            assert_text("20", "HLEN %s", ledger(now, 10));
            assert_text("3", "HLEN " SPEND);
            continue;
        }

        assert_int_equal(send_entry(&r, &again), DSA_ERROR);
        assert_text(tests[i].hash == NULL ? "1" : "0", "HLEN %s",
                    ledger(now, 10));
        assert_text(tests[i].hash == NULL ? "0" : "1", "HLEN " SPEND);
        assert_text("0", "EXISTS dsa1:{" TENANT "}:done:0000000000000001");
    }
}


/*
 * Sums are what HINCRBY of Redis itself makes: of numbers around the powers of
 * ten and of two, and of amounts that an operator has set.
 */

static void
test_sums(void **state)
{
    int                  again;
    char                 want[32];
    size_t               i, k;
    int64_t              now;
    dsa_schema_entry_t   r;

    static const char *const  had[] = {
        "0", "1", "-1", "-5", "999999999", "1000000000", "-999999999",
        "-1000000000", "-1000000001", "4294967296", "9007199254740991",
        "9007199254740993", "-9007199254740993", "999999999999999",
        "1000000000000000", "123456789012345678", "-123456789012345678",
        "-999999999999999999", "8223372036854775808"
    };
    static const int64_t  more[] = {
        0, 1, 5, 999999999, 1000000000, 1000000001, 2147483648, 999999999999999,
        1000000000000000, 9007199254740992, 123456789012345678,
        999999999999999999
    };

    now = time(NULL);

    for (i = 0; i < sizeof(had) / sizeof(had[0]); i++) {
        for (k = 0; k < sizeof(more) / sizeof(more[0]); k++) {
            (void) text("HSET %s m|x|cost_miss %s", ledger(now, 10), had[i]);
            (void) text("HSET want n %s", had[i]);
            (void) text("HINCRBY want n %lld", (long long) more[k]);

            r = entry(now, "");
            r.cost_miss = more[k];
            r.cost_hit = 0;
            r.cost_output = 0;

            assert_int_equal(send_entry(&r, &again), DSA_OK);
            (void) snprintf(want, sizeof(want), "%s", text("HGET want n"));
            assert_text(want, "HGET %s m|x|cost_miss", ledger(now, 10));
        }
    }
}


static void
test_types(void **state)
{
    int                 again;
    size_t              i;
    int64_t             now;
    const char         *key;
    dsa_schema_entry_t  r;

    now = time(NULL);

    for (i = 0; i < 4; i++) {
        (void) text("FLUSHALL");

        key = i == 0 ? SPEND : i == 1 ? ROLLED
              : ledger(now, i == 2 ? 10 : 7);

        assert_text("1", "LPUSH %s x", key);

        r = entry(now, "");
        assert_int_equal(send_entry(&r, &again), DSA_ERROR);
        assert_text("1", "DBSIZE");
    }

    /* a text that is not a number is no first day */

    (void) text("FLUSHALL");
    assert_text("OK", "SET " ROLLED " soon");
    add(now, "");
    assert_in_range(atoll(text("GET " ROLLED)), now / DAY - 62,
                    now / DAY - 61);
}


/* A Redis that refuses to write may accept the entry later. */

static void
test_refused(void **state)
{
    int                 again;
    int64_t             now, old;
    dsa_schema_entry_t  r;

    now = time(NULL);
    old = now - (int64_t) 90 * DAY;

    assert_text("1", "HSET %s m|x|requests 5", ledger(old, 10));

    r = entry(now, KEY_A);

    assert_text("OK", "CONFIG SET maxmemory 1");
    assert_int_equal(send_entry(&r, &again), DSA_AGAIN);
    assert_text("OK", "CONFIG SET maxmemory 0");
    assert_text("1", "DBSIZE");

    assert_text("OK", "REPLICAOF 127.0.0.1 1");
    assert_int_equal(send_entry(&r, &again), DSA_AGAIN);
    assert_text("OK", "REPLICAOF NO ONE");
    assert_text("1", "DBSIZE");

    assert_int_equal(send_entry(&r, &again), DSA_OK);
    assert_int_equal(again, 0);
    assert_text("5", "HGET %s m|x|requests", ledger(old, 7));
    assert_text("32200003", "HGET " SPEND " " KEY_A);
}


static void
test_entry(void **state)
{
    dsa_schema_entry_t  r;

    r = entry(1, KEY_A);
    assert_true(dsa_schema_entry_ok(&r));

    r.cost_miss = 999999999999999999LL;
    assert_true(dsa_schema_entry_ok(&r));

    r.cost_miss = 1000000000000000000LL;
    assert_false(dsa_schema_entry_ok(&r));

    r = entry(1, KEY_A);
    r.cost_hit = -1;
    assert_false(dsa_schema_entry_ok(&r));

    r = entry(1, "key_0123456789abcdeF");
    assert_false(dsa_schema_entry_ok(&r));

    r = entry(1, "key_0123456789abcde");
    assert_false(dsa_schema_entry_ok(&r));

    r = entry(1, "kex_0123456789abcdef");
    assert_false(dsa_schema_entry_ok(&r));
}


int
main(void)
{
#define test(name)  cmocka_unit_test_setup_teardown(name, begin, end)

    const struct CMUnitTest  tests[] = {
        test(test_money),
        test(test_roll),
        test(test_sum),
        test(test_late),
        test(test_unfit),
        test(test_overflow),
        test(test_sums),
        test(test_types),
        test(test_refused),
        test(test_entry)
    };

    return cmocka_run_group_tests(tests, start, stop);
}
