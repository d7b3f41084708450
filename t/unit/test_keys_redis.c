
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The scripts of keys against a real redis-server.  The tests read their
 * results with other commands.
 */


#include <inttypes.h>

#include "redis_schema/keys_redis.h"
#include "t/unit/schema.h"


#define ID_A    "key_aaaaaaaaaaaaaaaa"
#define ID_B    "key_bbbbbbbbbbbbbbbb"
#define TENANT  "0123456789abcdef0123456789abcdef"

/* 2026-02-03 23:59:59 UTC */
#define WHEN    1770163199


/* A key whose hash is 32 bytes with this value; old: 0 for none. */

static dsa_key_t
make_key(const char *id, int hash, int old)
{
    dsa_key_t  key;

    memset(&key, 0, sizeof(dsa_key_t));
    dsa_key_limits_default(&key.limits);

    key.id = dsa_strz(id);
    key.name = dsa_strz("a \"name\"");
    key.tenant = dsa_strz("t");
    key.created = 1;
    memset(key.hash, hash, DSA_KEY_HASH_LEN);
    memset(key.old_hash, old, DSA_KEY_HASH_LEN);
    key.old_until = old != 0 ? 99 : 0;

    return key;
}


static dsa_str_t
text_of(const dsa_key_t *key)
{
    char       *text;
    dsa_buf_t   b;

    memset(&b, 0, sizeof(dsa_buf_t));
    dsa_key_write(&b, key);
    text = dsa_arena_dup(arena, dsa_str(b.data, b.len));
    dsa_buf_free(&b);

    return dsa_strz(text);
}


/* The name of a hash in Redis. */

static const char *
hex_of(int byte)
{
    int          i;

    static char  hex[65];

    for (i = 0; i < 32; i++) {
        (void) snprintf(&hex[2 * i], 3, "%02x", byte);
    }

    return hex;
}


static int
store(const dsa_key_t *key, dsa_str_t previous)
{
    dsa_err_t             err;
    redisReply           *reply;
    dsa_key_put_e         result;
    dsa_schema_command_t  cmd;

    assert_int_equal(dsa_key_put(&cmd, arena, key, previous), DSA_OK);
    reply = run(&cmd);

    if (dsa_key_put_reply(&result, reply, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }

    freeReplyObject(reply);

    return result;
}


static dsa_str_t
none(void)
{
    return dsa_str(NULL, 0);
}


static void
test_put(void **state)
{
    dsa_str_t   one;
    dsa_key_t   key;

    key = make_key(ID_A, 0x11, 0);
    one = text_of(&key);

    assert_int_equal(store(&key, none()), DSA_KEY_PUT_DONE);
    assert_text(one.data, "HGET dsa1:{keys}:id " ID_A);
    assert_text("1", "GET dsa1:{keys}:version");
    assert_text("1", "ZSCORE dsa1:{keys}:changed " ID_A);
    assert_text(ID_A, "HGET dsa1:{keys}:hash %s", hex_of(0x11));

    /* the id exists */

    assert_int_equal(store(&key, none()), DSA_KEY_PUT_EXISTS);
    assert_text("1", "GET dsa1:{keys}:version");

    /* a rotation: both hashes belong to the key */

    key = make_key(ID_A, 0x22, 0x11);
    assert_int_equal(store(&key, one), DSA_KEY_PUT_DONE);
    assert_text("2", "GET dsa1:{keys}:version");
    assert_text("2", "ZSCORE dsa1:{keys}:changed " ID_A);
    assert_int_equal(number(&server, "HLEN dsa1:{keys}:hash"), 2);

    /* of two writers that have read the same key entry, one is refused */

    assert_int_equal(store(&key, one), DSA_KEY_PUT_MOVED);
    assert_text(text_of(&key).data, "HGET dsa1:{keys}:id " ID_A);

    /* the hash that is no longer used may be used again */

    one = text_of(&key);
    key = make_key(ID_A, 0x22, 0);
    assert_int_equal(store(&key, one), DSA_KEY_PUT_DONE);
    assert_int_equal(number(&server, "HLEN dsa1:{keys}:hash"), 1);
    assert_text("(nil)", "HGET dsa1:{keys}:hash %s", hex_of(0x11));

    /* a key entry that is gone has moved as well */

    key = make_key(ID_B, 0x33, 0);
    assert_int_equal(store(&key, text_of(&key)), DSA_KEY_PUT_MOVED);
}


static void
test_put_taken(void **state)
{
    dsa_key_t  key;

    key = make_key(ID_A, 0x11, 0x22);
    assert_int_equal(store(&key, none()), DSA_KEY_PUT_DONE);

    key = make_key(ID_B, 0x11, 0);
    assert_int_equal(store(&key, none()), DSA_KEY_PUT_TAKEN);
    key = make_key(ID_B, 0x22, 0);
    assert_int_equal(store(&key, none()), DSA_KEY_PUT_TAKEN);
    key = make_key(ID_B, 0x33, 0x11);
    assert_int_equal(store(&key, none()), DSA_KEY_PUT_TAKEN);

    assert_int_equal(number(&server, "HLEN dsa1:{keys}:id"), 1);
    assert_int_equal(number(&server, "HLEN dsa1:{keys}:hash"), 2);
    assert_text("1", "GET dsa1:{keys}:version");

    key = make_key(ID_B, 0x33, 0x44);
    assert_int_equal(store(&key, none()), DSA_KEY_PUT_DONE);
    assert_int_equal(number(&server, "HLEN dsa1:{keys}:hash"), 4);
}


static void
assert_data_error(const dsa_schema_command_t *cmd)
{
    redisReply  *reply;

    reply = run(cmd);
    assert_true(dsa_resp_is_error(reply, "DSADATA"));
    freeReplyObject(reply);
}


/* A key of another type: nothing is written, and the reply is an error. */

static void
test_types(void **state)
{
    int                    i;
    dsa_err_t              err;
    dsa_key_t              key;
    redisReply            *reply;
    dsa_key_put_e          result;
    dsa_key_changes_t      changes;
    dsa_schema_command_t   cmd;

    static const char *const  wrong[] = {
        "SET dsa1:{keys}:id x", "RPUSH dsa1:{keys}:version x",
        "SET dsa1:{keys}:version x", "SET dsa1:{keys}:changed x",
        "SET dsa1:{keys}:hash x"
    };

    key = make_key(ID_A, 0x11, 0);

    for (i = 0; i < 5; i++) {
        freeReplyObject(query(&server, "FLUSHALL"));
        freeReplyObject(query(&server, wrong[i]));

        assert_int_equal(dsa_key_put(&cmd, arena, &key, none()), DSA_OK);
        assert_data_error(&cmd);
        assert_int_equal(number(&server, "DBSIZE"), 1);

        reply = run(&cmd);
        assert_int_equal(dsa_key_put_reply(&result, reply, &err), DSA_ERROR);
        assert_non_null(strstr(err.text, "DSADATA dsa1:{keys}:"));
        freeReplyObject(reply);

        if (i == 4) {
            break;
        }

        assert_int_equal(dsa_key_sync(&cmd, arena, 0, 10, 1), DSA_OK);
        reply = run(&cmd);
        assert_int_equal(dsa_key_sync_reply(&changes, arena, reply, &err),
                         DSA_ERROR);
        assert_non_null(strstr(err.text, "DSADATA dsa1:{keys}:"));
        freeReplyObject(reply);
    }
}


static void
test_get(void **state)
{
    dsa_err_t             err;
    dsa_key_t             key;
    dsa_str_t             entry;
    redisReply           *reply;
    dsa_schema_command_t  cmd;

    key = make_key(ID_A, 0x11, 0);
    assert_int_equal(store(&key, none()), DSA_KEY_PUT_DONE);

    assert_int_equal(dsa_key_get(&cmd, arena, dsa_strz(ID_A)), DSA_OK);
    reply = run(&cmd);
    assert_int_equal(dsa_key_get_reply(&entry, reply, &err), DSA_OK);
    assert_true(dsa_str_eq(entry, text_of(&key)));
    freeReplyObject(reply);

    assert_int_equal(dsa_key_get(&cmd, arena, dsa_strz(ID_B)), DSA_OK);
    reply = run(&cmd);
    assert_int_equal(dsa_key_get_reply(&entry, reply, &err), DSA_AGAIN);
    freeReplyObject(reply);

    ok(&server, "FLUSHALL");
    ok(&server, "SET dsa1:{keys}:id x");
    reply = run(&cmd);
    assert_int_equal(dsa_key_get_reply(&entry, reply, &err), DSA_ERROR);
    assert_non_null(strstr(err.text, "WRONGTYPE"));
    freeReplyObject(reply);
}


/* One round trip of a reader, with NOSCRIPT at the first. */

static redisReply *
sync_once(dsa_key_changes_t *changes, int64_t since, uint32_t max)
{
    dsa_err_t              err;
    redisReply            *reply;
    dsa_schema_command_t   cmd;

    assert_int_equal(dsa_key_sync(&cmd, arena, since, max, 0), DSA_OK);
    reply = run(&cmd);

    if (dsa_resp_is_error(reply, "NOSCRIPT")) {
        freeReplyObject(reply);
        assert_int_equal(dsa_key_sync(&cmd, arena, since, max, 1), DSA_OK);
        reply = run(&cmd);
    }

    if (dsa_key_sync_reply(changes, arena, reply, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }

    return reply;
}


static void
test_sync(void **state)
{
    int                 i;
    char                id[32];
    int64_t             since;
    uint32_t            k, n;
    dsa_key_t           key;
    redisReply         *reply;
    dsa_key_changes_t   changes;

    reply = sync_once(&changes, 0, 10);
    assert_int_equal(changes.version, 0);
    assert_int_equal(changes.n, 0);
    freeReplyObject(reply);

    for (i = 1; i <= 25; i++) {
        (void) snprintf(id, sizeof(id), "key_%016d", i);
        key = make_key(id, i, 0);
        assert_int_equal(store(&key, none()), DSA_KEY_PUT_DONE);
    }

    /* all of them, in the order of their changes, in pages of 10 */

    since = 0;
    n = 0;

    do {
        reply = sync_once(&changes, since, 10);
        assert_int_equal(changes.version, 25);

        for (k = 0; k < changes.n; k++) {
            n++;
            (void) snprintf(id, sizeof(id), "key_%016" PRIu32, n);
            key = make_key(id, (int) n, 0);
            assert_int_equal(changes.changes[k].version, n);
            assert_true(dsa_str_eqz(changes.changes[k].id, id));
            assert_true(dsa_str_eq(changes.changes[k].entry, text_of(&key)));
            since = changes.changes[k].version;
        }

        freeReplyObject(reply);
    } while (changes.n == 10);

    assert_int_equal(n, 25);
    assert_int_equal(since, 25);

    /* a change moves a key to the end */

    key = make_key("key_0000000000000007", 7, 0);
    key.state = DSA_KEY_REVOKED;
    i = store(&key, dsa_strz(text("HGET dsa1:{keys}:id "
                                  "key_0000000000000007")));
    assert_int_equal(i, DSA_KEY_PUT_DONE);

    reply = sync_once(&changes, 25, 10);
    assert_int_equal(changes.version, 26);
    assert_int_equal(changes.n, 1);
    assert_int_equal(changes.changes[0].version, 26);
    assert_true(dsa_str_eq(changes.changes[0].entry, text_of(&key)));
    freeReplyObject(reply);

    /* a key entry that is missing or too long is reported as empty */

    assert_int_equal(number(&server, "HDEL dsa1:{keys}:id "
                            "key_0000000000000007"), 1);
    reply = sync_once(&changes, 25, 10);
    assert_int_equal(changes.n, 1);
    assert_int_equal(changes.changes[0].entry.len, 0);
    freeReplyObject(reply);

    freeReplyObject(query(&server, "EVAL %s 0", "redis.call('HSET', "
                        "'dsa1:{keys}:id', 'key_0000000000000007', "
                        "string.rep('x', 4097))"));
    reply = sync_once(&changes, 25, 10);
    assert_int_equal(changes.changes[0].entry.len, 0);
    freeReplyObject(reply);
}


/* The calls that no correct caller makes. */

static void
test_arguments(void **state)
{
    dsa_str_t              id, host;
    dsa_key_use_t          use[DSA_KEY_RATES] = { { 1, 0, 0 }, { 1, 0, 0 } };
    dsa_key_use_t          ok_use[DSA_KEY_RATES] = { { 1, 0, 0 },
                                                     { 1, 0, 0 } };
    dsa_schema_command_t   cmd;

    id = dsa_strz(ID_A);
    host = dsa_strz("h1");

    assert_int_equal(dsa_key_sync(&cmd, arena, -1, 1, 0), DSA_ERROR);
    assert_int_equal(dsa_key_sync(&cmd, arena, 0, 0, 0), DSA_ERROR);
    assert_int_equal(dsa_key_sync(&cmd, arena, 0, 257, 0), DSA_ERROR);
    assert_int_equal(dsa_key_sync(&cmd, arena, 0, 256, 0), DSA_OK);

    ok_use[0].missing = DSA_BUCKET_MAX_DEBT;
    ok_use[1].used = 10000000000000;
    assert_int_equal(dsa_key_share(&cmd, arena, id, host, ok_use, 1, 1, 0),
                     DSA_OK);
    assert_int_equal(dsa_key_share(&cmd, arena, dsa_strz("key_1"), host,
                                   ok_use, 1, 1, 0), DSA_ERROR);
    assert_int_equal(dsa_key_share(&cmd, arena, id, dsa_strz("a b"), ok_use, 1,
                                   1, 0), DSA_ERROR);
    assert_int_equal(dsa_key_share(&cmd, arena, id, host, ok_use, 1, 0, 0),
                     DSA_ERROR);
    assert_int_equal(dsa_key_share(&cmd, arena, id, host, ok_use, 1, 3600001,
                                   0), DSA_ERROR);

    use[0] = ok_use[0];
    use[0].missing++;
    assert_int_equal(dsa_key_share(&cmd, arena, id, host, use, 1, 1, 0),
                     DSA_ERROR);
    use[0] = ok_use[0];
    use[1].used = ok_use[1].used + 1;
    assert_int_equal(dsa_key_share(&cmd, arena, id, host, use, 1, 1, 0),
                     DSA_ERROR);
    use[1].used = 0;
    use[1].rate = 1000000000001;
    assert_int_equal(dsa_key_share(&cmd, arena, id, host, use, 1, 1, 0),
                     DSA_ERROR);

    assert_int_equal(dsa_key_spent(&cmd, arena, dsa_strz("t|"), id, 0),
                     DSA_ERROR);
    assert_int_equal(dsa_key_spent(&cmd, arena, dsa_strz(TENANT),
                                   dsa_strz("x"), 0), DSA_ERROR);
    assert_int_equal(dsa_key_spent(&cmd, arena, dsa_strz(TENANT), id, -1),
                     DSA_ERROR);
    assert_int_equal(dsa_key_spent(&cmd, arena, dsa_strz(TENANT), id,
                                   253402300800), DSA_ERROR);
}


static dsa_key_shared_t
share_with(const char *host, const dsa_key_use_t *use, uint32_t running,
    uint32_t ttl_ms)
{
    dsa_err_t              err;
    redisReply            *reply;
    dsa_key_shared_t       shared;
    dsa_schema_command_t   cmd;

    assert_int_equal(dsa_key_share(&cmd, arena, dsa_strz(ID_A), dsa_strz(host),
                                   use, running, ttl_ms, 0),
                     DSA_OK);
    reply = run(&cmd);

    if (dsa_resp_is_error(reply, "NOSCRIPT")) {
        freeReplyObject(reply);
        assert_int_equal(dsa_key_share(&cmd, arena, dsa_strz(ID_A),
                                       dsa_strz(host), use, running, ttl_ms,
                                       1), DSA_OK);
        reply = run(&cmd);
    }

    if (dsa_key_share_reply(&shared, reply, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }

    freeReplyObject(reply);

    return shared;
}


/* Without rates, so that nothing is refilled. */

static dsa_key_shared_t
share(const char *host, uint64_t requests, uint64_t tokens, uint32_t running,
    uint32_t ttl_ms)
{
    dsa_key_use_t  use[DSA_KEY_RATES] = { { 0, requests, 0 },
                                          { 0, tokens, 0 } };

    return share_with(host, use, running, ttl_ms);
}


#define LIMITS  "dsa1:{" ID_A "}:limits"


static void
assert_shared(dsa_key_shared_t s, uint64_t requests, uint64_t tokens,
    uint64_t running)
{
    assert_int_equal(s.missing[DSA_KEY_REQUESTS], requests * 60000);
    assert_int_equal(s.missing[DSA_KEY_TOKENS], tokens * 60000);
    assert_int_equal(s.running, running);
}


static void
test_share(void **state)
{
    long long  ttl;

    assert_shared(share("a", 3, 100, 2, 60000), 3, 100, 0);
    assert_shared(share("b", 1, 11, 5, 60000), 4, 111, 2);

    /* nothing was used: the sums are read */

    assert_shared(share("a", 0, 0, 2, 60000), 4, 111, 5);

    /* nothing runs: there is no lease */

    assert_shared(share("b", 0, 0, 0, 60000), 4, 111, 2);
    assert_shared(share("a", 0, 0, 7, 60000), 4, 111, 0);
    assert_int_equal(number(&server, "HLEN " LIMITS), 4);
    assert_shared(share("c", 1, 1, 0, 60000), 5, 112, 7);

    ttl = number(&server, "TTL " LIMITS);
    assert_true(ttl > 60 && ttl <= 120);

    /* the key is no longer in Redis */

    assert_int_equal(number(&server, "DEL " LIMITS), 1);
    assert_shared(share("a", 9, 9, 0, 60000), 9, 9, 0);
}


/*
 * A Redis of 100 seconds ago: its clock cannot be set, so `time` is.  1000 per
 * minute refill 1000 parts each millisecond, at least for this time, and the
 * test takes less than 100 seconds.
 */

static void
test_share_refill(void **state)
{
    uint64_t           before;
    long long          ttl;
    dsa_key_use_t      use[DSA_KEY_RATES] = { { 1000, 5, 0 },
                                              { 1000, 7, 0 } };
    dsa_key_shared_t   s;

    (void) share("a", 0, 0, 0, 1000);
    assert_int_equal(number(&server, "HSET " LIMITS " requests 900000000"
                            " tokens 10"), 0);
    assert_int_equal(number(&server, "EVAL "
                            "return(redis.call('HINCRBY',KEYS[1],'time',-100000"
                            ")*0) 1 " LIMITS), 0);

    s = share_with("a", use, 0, 1000);
    assert_true(s.missing[DSA_KEY_REQUESTS] <= 800000000 + 5 * 60000);
    assert_true(s.missing[DSA_KEY_REQUESTS] > 700000000);
    assert_int_equal(s.missing[DSA_KEY_TOKENS], 7 * 60000);

    /* the key of Redis lives until the debt is paid: 800 seconds */

    ttl = number(&server, "TTL " LIMITS);
    assert_true(ttl > 690 && ttl <= 801);

    /* tokens that a host reports as missing, and a clock that went back */

    use[0].used = 0;
    use[1].used = 0;
    use[1].missing = DSA_BUCKET_MAX_DEBT;
    assert_int_equal(number(&server, "EVAL "
                            "return(redis.call('HINCRBY',KEYS[1],'time',1000000"
                            ")*0) 1 " LIMITS), 0);

    before = s.missing[DSA_KEY_REQUESTS];
    s = share_with("b", use, 0, 1000);
    assert_int_equal(s.missing[DSA_KEY_REQUESTS], before);
    assert_true(s.missing[DSA_KEY_TOKENS] == DSA_BUCKET_MAX_DEBT);

    assert_int_equal(number(&server, "HSET " LIMITS " tokens 10"), 0);
    use[1].missing = 0;
    use[1].used = 10000000000000;
    s = share_with("b", use, 0, 1000);
    assert_true(s.missing[DSA_KEY_TOKENS] == DSA_BUCKET_MAX_DEBT);
    assert_true(number(&server, "TTL " LIMITS) > 599999000);
}


/* A host that stopped: its lease ends, and its field is removed. */

static void
test_share_lease(void **state)
{
    uint64_t  until;

    (void) share("dead", 0, 0, 3, 60000);
    assert_shared(share("a", 0, 0, 1, 60000), 0, 0, 3);

    (void) share("dead", 0, 0, 3, 1);

    for (until = deadline(); ; ) {
        if (share("a", 0, 0, 1, 60000).running == 0) {
            break;
        }

        assert_true(dsa_clock_ms() < until);
        (void) usleep(1000);
    }

    assert_int_equal(number(&server, "HEXISTS " LIMITS " h:dead"), 0);

    /* a field that is not a lease reserves nothing */

    assert_int_equal(number(&server, "HSET " LIMITS " h:x y"), 1);
    assert_shared(share("a", 0, 0, 1, 60000), 0, 0, 0);
    assert_int_equal(number(&server, "HEXISTS " LIMITS " h:x"), 0);

    /* nor does a lease of a time before the clock of Redis was set back */

    assert_int_equal(number(&server, "EVAL "
                            "return(redis.call('HSET',KEYS[1],'h:x','3'.."
                            "string.char(32)..'99999999999999')) 1 " LIMITS),
                     1);
    assert_shared(share("a", 0, 0, 1, 60000), 0, 0, 0);
    assert_int_equal(number(&server, "HEXISTS " LIMITS " h:x"), 0);
}


static void
test_share_damaged(void **state)
{
    dsa_err_t              err;
    redisReply            *reply;
    dsa_key_use_t          use[DSA_KEY_RATES] = { { 0, 1, 0 }, { 0, 1, 0 } };
    dsa_key_shared_t       shared;
    dsa_schema_command_t   cmd;

    (void) share("a", 1, 1, 0, 1000);

    assert_int_equal(number(&server, "HSET " LIMITS " tokens 1x"), 0);
    assert_int_equal(dsa_key_share(&cmd, arena, dsa_strz(ID_A), dsa_strz("a"),
                                   use, 1, 1000, 1), DSA_OK);
    assert_data_error(&cmd);
    assert_text("60000", "HGET " LIMITS " requests");

    ok(&server, "SET " LIMITS " x");
    reply = run(&cmd);
    assert_int_equal(dsa_key_share_reply(&shared, reply, &err), DSA_ERROR);
    assert_non_null(strstr(err.text, "DSADATA " LIMITS));
    freeReplyObject(reply);
}


static int
spent(int64_t spent_of[DSA_KEY_PERIODS], dsa_err_t *err)
{
    int                    rc;
    redisReply            *reply;
    dsa_schema_command_t   cmd;

    assert_int_equal(dsa_key_spent(&cmd, arena, dsa_strz(TENANT),
                                   dsa_strz(ID_A), WHEN), DSA_OK);
    reply = run(&cmd);
    rc = dsa_key_spent_reply(spent_of, reply, err);
    freeReplyObject(reply);

    return rc;
}


static void
test_spent(void **state)
{
    int64_t    s[DSA_KEY_PERIODS];
    dsa_err_t  err;

    assert_int_equal(spent(s, &err), DSA_OK);
    assert_int_equal(s[DSA_KEY_DAY], 0);
    assert_int_equal(s[DSA_KEY_MONTH], 0);
    assert_int_equal(s[DSA_KEY_TOTAL], 0);

    assert_int_equal(number(&server, "HSET dsa1:{" TENANT "}:spend"
                            " " ID_A "|2026-02-03 9007199254740993"
                            " " ID_A "|2026-02-04 1"
                            " " ID_A "|2026-02 9007199254740995"
                            " " ID_A " 9223372036854775807"
                            " " ID_B " 1"), 5);

    assert_int_equal(spent(s, &err), DSA_OK);
    assert_int_equal(s[DSA_KEY_DAY], 9007199254740993);
    assert_int_equal(s[DSA_KEY_MONTH], 9007199254740995);
    assert_int_equal(s[DSA_KEY_TOTAL], INT64_MAX);

    assert_int_equal(number(&server, "HSET dsa1:{" TENANT "}:spend "
                            ID_A " -15"), 0);
    assert_int_equal(spent(s, &err), DSA_OK);
    assert_int_equal(s[DSA_KEY_TOTAL], -15);

    assert_int_equal(number(&server, "HSET dsa1:{" TENANT "}:spend "
                            ID_A " -"), 0);
    assert_int_equal(spent(s, &err), DSA_ERROR);

    assert_int_equal(number(&server, "HSET dsa1:{" TENANT "}:spend "
                            ID_A " 9223372036854775808"), 0);
    assert_int_equal(spent(s, &err), DSA_ERROR);
    assert_non_null(strstr(err.text, "(total)"));

    ok(&server, "SET dsa1:{" TENANT "}:spend x");
    assert_int_equal(spent(s, &err), DSA_ERROR);
    assert_non_null(strstr(err.text, "WRONGTYPE"));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_put, begin, end),
        cmocka_unit_test_setup_teardown(test_put_taken, begin, end),
        cmocka_unit_test_setup_teardown(test_types, begin, end),
        cmocka_unit_test_setup_teardown(test_get, begin, end),
        cmocka_unit_test_setup_teardown(test_sync, begin, end),
        cmocka_unit_test_setup_teardown(test_arguments, begin, end),
        cmocka_unit_test_setup_teardown(test_share, begin, end),
        cmocka_unit_test_setup_teardown(test_share_lease, begin, end),
        cmocka_unit_test_setup_teardown(test_share_refill, begin, end),
        cmocka_unit_test_setup_teardown(test_share_damaged, begin, end),
        cmocka_unit_test_setup_teardown(test_spent, begin, end)
    };

    return cmocka_run_group_tests(tests, start, stop);
}
