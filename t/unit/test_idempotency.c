
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Idempotency keys in a redis-server: which request has one, for how long, and
 * what the others get.
 */


#include <time.h>

#include "redis_schema/idempotency.h"
#include "t/unit/stored.h"


#define KEY_HEX   "0123456789abcdef0123456789abcdef"                          \
                  "0123456789abcdef0123456789abcdef"
#define KEY_2     "1123456789abcdef0123456789abcdef"                          \
                  "0123456789abcdef0123456789abcdef"
#define DIGEST    "2123456789abcdef0123456789abcdef"                          \
                  "0123456789abcdef0123456789abcdef"
#define DIGEST_2  "3123456789abcdef0123456789abcdef"                          \
                  "0123456789abcdef0123456789abcdef"

#define CLAIM     "dsa1:{" TENANT "}:i:" KEY_HEX
#define USED      "dsa1:{" TENANT "}:i"


static dsa_idempotency_t
of(const char *key, const char *owner)
{
    dsa_idempotency_t  id;

    id.tenant = dsa_strz(TENANT);
    id.key = key;
    id.owner = dsa_strz(owner);

    return id;
}


/* The caller frees the reply, whose bytes the result has. */

static dsa_idempotency_result_t
claim(const char *key, const char *owner, const char *digest,
    redisReply **reply)
{
    dsa_err_t                 err;
    dsa_idempotency_t         id;
    dsa_schema_command_t      cmd;
    dsa_idempotency_result_t  result;

    id = of(key, owner);
    assert_int_equal(dsa_idempotency_claim(&cmd, arena, &id, digest), DSA_OK);

    *reply = run(&cmd);

    if (dsa_idempotency_claimed(&result, *reply, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }

    return result;
}


static void
assert_claim(const char *key, const char *owner, const char *digest,
    dsa_idempotency_e want)
{
    redisReply                *reply;
    dsa_idempotency_result_t   result;

    result = claim(key, owner, digest, &reply);
    assert_int_equal(result.state, want);
    freeReplyObject(reply);
}


static long long
answered(dsa_schema_command_t *cmd)
{
    long long    n;
    redisReply  *reply;

    reply = run(cmd);
    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    n = reply->integer;
    freeReplyObject(reply);

    return n;
}


static long long
renew(const char *owner)
{
    dsa_idempotency_t     id;
    dsa_schema_command_t  cmd;

    id = of(KEY_HEX, owner);
    assert_int_equal(dsa_idempotency_renew(&cmd, arena, &id), DSA_OK);

    return answered(&cmd);
}


static long long
finish(const char *owner, dsa_idempotency_e state, const char *answer)
{
    dsa_idempotency_t         id;
    dsa_schema_command_t      cmd;
    dsa_idempotency_result_t  result;

    id = of(KEY_HEX, owner);
    result.state = state;
    result.object = dsa_strz("resp_1");
    result.answer = dsa_strz(answer);

    assert_int_equal(dsa_idempotency_finish(&cmd, arena, &id, &result),
                     DSA_OK);

    return answered(&cmd);
}


static long long
release(const char *owner)
{
    dsa_idempotency_t     id;
    dsa_schema_command_t  cmd;

    id = of(KEY_HEX, owner);
    assert_int_equal(dsa_idempotency_release(&cmd, arena, &id), DSA_OK);

    return answered(&cmd);
}


/* What the tenant has used in this hour, and in the one before. */

static long long
used(const char *what)
{
    int        i;
    long long  hour, sum;

    sum = 0;
    hour = time(NULL) / 3600;

    for (i = 0; i < 2; i++, hour--) {
        if (number(&server, "HEXISTS " USED " %lld|%s", hour, what) == 1) {
            sum += value("HGET " USED " %lld|%s", hour, what);
        }
    }

    return sum;
}


static void
test_answer(void **state)
{
    long long                  ttl;
    redisReply                *reply;
    dsa_idempotency_result_t   result;

    assert_claim(KEY_HEX, "r1", DIGEST, DSA_IDEMPOTENCY_CLAIMED);
    assert_claim(KEY_HEX, "r2", DIGEST, DSA_IDEMPOTENCY_RUNNING);
    assert_claim(KEY_HEX, "r2", DIGEST_2, DSA_IDEMPOTENCY_OTHER);
    assert_claim(KEY_2, "r3", DIGEST, DSA_IDEMPOTENCY_CLAIMED);
    assert_int_equal(used("keys"), 2);

    /* only the owner ends it, once */

    assert_int_equal(finish("r2", DSA_IDEMPOTENCY_ANSWER_KEPT, "{}"), 0);
    assert_int_equal(release("r2"), 0);
    assert_int_equal(renew("r2"), 0);
    assert_int_equal(renew("r1"), 1);
    assert_int_equal(finish("r1", DSA_IDEMPOTENCY_ANSWER_KEPT, "{\"a\":1}"),
                     1);
    assert_int_equal(finish("r1", DSA_IDEMPOTENCY_FAILED, ""), 0);
    assert_int_equal(release("r1"), 0);
    assert_int_equal(renew("r1"), 0);

    result = claim(KEY_HEX, "r2", DIGEST, &reply);
    assert_int_equal(result.state, DSA_IDEMPOTENCY_ANSWER_KEPT);
    assert_int_equal(result.answer.len, 7);
    assert_memory_equal(result.answer.data, "{\"a\":1}", 7);
    assert_int_equal(result.object.len, 6);
    assert_memory_equal(result.object.data, "resp_1", 6);
    freeReplyObject(reply);

    assert_claim(KEY_HEX, "r2", DIGEST_2, DSA_IDEMPOTENCY_OTHER);
    assert_int_equal(used("bytes"), 7);

    ttl = number(&server, "TTL " CLAIM);
    assert_in_range(ttl, 24 * 3600 - 60, 24 * 3600);
    ttl = number(&server, "TTL " USED);
    assert_in_range(ttl, 25 * 3600 - 60, 25 * 3600);
}


static void
test_other_ends(void **state)
{
    uint32_t  i;

    static const dsa_idempotency_e  ends[] = {
        DSA_IDEMPOTENCY_ANSWER_LARGE, DSA_IDEMPOTENCY_STREAMED,
        DSA_IDEMPOTENCY_FAILED
    };

    for (i = 0; i < 3; i++) {
        assert_claim(KEY_HEX, "r1", DIGEST, DSA_IDEMPOTENCY_CLAIMED);
        assert_int_equal(finish("r1", ends[i], ""), 1);
        assert_claim(KEY_HEX, "r2", DIGEST, ends[i]);
        assert_int_equal(number(&server, "DEL " CLAIM), 1);
    }

    /* given back */

    assert_claim(KEY_HEX, "r1", DIGEST, DSA_IDEMPOTENCY_CLAIMED);
    assert_int_equal(used("keys"), 4);
    assert_int_equal(release("r1"), 1);
    assert_int_equal(used("keys"), 3);
    assert_int_equal(number(&server, "EXISTS " CLAIM), 0);
    assert_claim(KEY_HEX, "r2", DIGEST_2, DSA_IDEMPOTENCY_CLAIMED);
}


/* A lease that is not renewed ends, and is not given to another request. */

static void
test_lease_ends(void **state)
{
    long long  until;

    assert_claim(KEY_HEX, "r1", DIGEST, DSA_IDEMPOTENCY_CLAIMED);

    until = value("HGET " CLAIM " until");
    assert_in_range(until, time(NULL) + 20, time(NULL) + 31);

    assert_int_equal(number(&server, "HSET " CLAIM " until 1"), 0);
    assert_claim(KEY_HEX, "r2", DIGEST, DSA_IDEMPOTENCY_INTERRUPTED);

    /* its request was only slow */

    assert_int_equal(renew("r1"), 1);
    assert_claim(KEY_HEX, "r2", DIGEST, DSA_IDEMPOTENCY_RUNNING);
}


static void
test_bounds(void **state)
{
    long long  hour;

    hour = time(NULL) / 3600;

    assert_int_equal(number(&server, "HSET " USED " %lld|keys 9998 "
                            "%lld|keys 5 %lld|bytes 67108863 x 3 "
                            "%lld|keys -7", hour - 2, hour - 30, hour - 2,
                            hour - 3), 5);

    assert_claim(KEY_HEX, "r1", DIGEST, DSA_IDEMPOTENCY_CLAIMED);
    assert_claim(KEY_2, "r1", DIGEST, DSA_IDEMPOTENCY_CLAIMED);
    assert_int_equal(number(&server, "HEXISTS " USED " %lld|keys", hour - 30),
                     0);
    assert_claim(DIGEST, "r1", DIGEST, DSA_IDEMPOTENCY_FULL);
    assert_claim(KEY_HEX, "r2", DIGEST, DSA_IDEMPOTENCY_RUNNING);

    assert_int_equal(finish("r1", DSA_IDEMPOTENCY_ANSWER_KEPT, "{}"), 2);
    assert_claim(KEY_HEX, "r2", DIGEST, DSA_IDEMPOTENCY_ANSWER_LARGE);
}


int
main(void)
{
#define test(name)  cmocka_unit_test_setup_teardown(name, begin, end)

    const struct CMUnitTest  tests[] = {
        test(test_answer),
        test(test_other_ends),
        test(test_lease_ends),
        test(test_bounds)
    };

    return cmocka_run_group_tests(tests, start, stop);
}
