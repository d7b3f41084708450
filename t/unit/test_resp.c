
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Replies of Redis as the module and the engine read them: pieces of a stream,
 * the limits of a reply, and text for a line of the log.
 */


#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "redis_schema/resp.h"
#include "redis_schema/schema.h"


static void
test_resp(void **state)
{
    int           rc;
    size_t        i, cut, len;
    dsa_err_t     err;
    redisReply   *reply;
    dsa_resp_t   *resp;

    static const char  stream[] =
        "*2\r\n:12\r\n$5\r\nab\r\nc\r\n-MOVED 3999 127.0.0.1:6381\r\n"
        "$-1\r\n*0\r\n+OK\r\n";

    len = sizeof(stream) - 1;

    for (cut = 0; cut <= len; cut++) {
        resp = dsa_resp_create(64, 8);
        assert_non_null(resp);

        i = 0;

        assert_int_equal(dsa_resp_feed(resp, stream, cut, &err), DSA_OK);

        for ( ;; ) {
            rc = dsa_resp_next(resp, &reply, &err);

            if (rc == DSA_AGAIN && i < 5) {
                assert_int_equal(dsa_resp_feed(resp, stream + cut, len - cut,
                                               &err), DSA_OK);
                rc = dsa_resp_next(resp, &reply, &err);
            }

            if (i == 5) {
                assert_int_equal(rc, DSA_AGAIN);
                break;
            }

            assert_int_equal(rc, DSA_OK);

            switch (i++) {

            case 0:
                assert_int_equal(reply->elements, 2);
                assert_int_equal(reply->element[0]->integer, 12);
                assert_string_equal(reply->element[1]->str, "ab\r\nc");
                assert_null(dsa_resp_refusal(reply));
                break;

            case 1:
                assert_true(dsa_resp_is_error(reply, "MOVED"));
                assert_false(dsa_resp_is_error(reply, "MOVE"));
                assert_non_null(dsa_resp_refusal(reply));
                break;

            case 2:
                assert_int_equal(reply->type, REDIS_REPLY_NIL);
                break;

            case 3:
                assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
                assert_int_equal(reply->elements, 0);
                break;

            default:
                assert_int_equal(reply->type, REDIS_REPLY_STATUS);
            }

            freeReplyObject(reply);
        }

        dsa_resp_destroy(resp);
    }
}


static int
resp_verdict(const char *text, size_t piece)
{
    int          rc;
    size_t       n, len;
    dsa_err_t    err;
    dsa_resp_t  *resp;
    redisReply  *reply;

    resp = dsa_resp_create(100, 10);
    assert_non_null(resp);

    rc = DSA_AGAIN;

    for (len = strlen(text); len != 0 && rc != DSA_ERROR; len -= n, text += n)
    {
        n = piece < len ? piece : len;

        rc = dsa_resp_feed(resp, text, n, &err);

        if (rc == DSA_OK) {
            rc = dsa_resp_next(resp, &reply, &err);
        }

        if (rc == DSA_OK) {
            freeReplyObject(reply);
        }
    }

    dsa_resp_destroy(resp);

    return rc;
}


static void
test_resp_bounds(void **state)
{
    char  text[256];

    memset(text, 'x', sizeof(text));
    text[255] = '\0';

    assert_int_equal(resp_verdict("+OK\r\n", 1), DSA_OK);
    assert_int_equal(resp_verdict("hello\r\n", 1), DSA_ERROR);

    /* a string that never ends, in small pieces */

    memcpy(text, "$2000000000\r\n", 13);
    assert_int_equal(resp_verdict(text, 10), DSA_ERROR);

    memcpy(text, "+", 1);
    assert_int_equal(resp_verdict(text, 10), DSA_ERROR);

    /* elements, in one array, in many, and deep */

    assert_int_equal(resp_verdict("*10\r\n", 1), DSA_AGAIN);
    assert_int_equal(resp_verdict("*11\r\n", 1), DSA_ERROR);
    assert_int_equal(resp_verdict("*1000000000\r\n", 1), DSA_ERROR);
    assert_int_equal(resp_verdict("*5\r\n*5\r\n", 1), DSA_AGAIN);
    assert_int_equal(resp_verdict("*5\r\n*6\r\n", 1), DSA_ERROR);
    assert_int_equal(resp_verdict("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"
                                  "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n", 1),
                     DSA_ERROR);

    /* the limits are for one reply: a complete one no longer counts */

    assert_int_equal(resp_verdict("*9\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n"
                                  ":1\r\n:1\r\n:1\r\n*9\r\n:1\r\n:1\r\n:1\r\n"
                                  ":1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n", 1),
                     DSA_OK);
}


/* Text from Redis in a log line is short and has no control characters. */

static void
test_text(void **state)
{
    int                   again;
    char                  buf[DSA_RESP_TEXT], text[1000];
    size_t                i;
    int64_t               n;
    dsa_err_t             err;
    redisReply            reply;
    dsa_schema_result_e   result;

    assert_string_equal(dsa_resp_text(buf, "OOM command", 11), "OOM command");
    assert_string_equal(dsa_resp_text(buf, "", 0), "");
    assert_string_equal(dsa_resp_text(buf, "a\x1b[31m\n\r\t\x7f\0b\xc2\x9b",
                                      14),
                        "a?[31m?????b??");

    memset(text, 'x', sizeof(text));
    assert_int_equal(strlen(dsa_resp_text(buf, text, 200)), 200);
    assert_int_equal(strlen(dsa_resp_text(buf, text, 201)), 203);
    assert_int_equal(strlen(dsa_resp_text(buf, text, sizeof(text))), 203);

    memset(&reply, 0, sizeof(reply));
    reply.type = REDIS_REPLY_ERROR;
    reply.str = text;
    reply.len = sizeof(text);

    for (i = 0; i < sizeof(text); i++) {
        text[i] = i;
    }

    assert_int_equal(dsa_schema_recorded(&reply, &result, &again, &err),
                     DSA_AGAIN);
    assert_in_range(strlen(err.text), 200, 250);

    for (i = 0; err.text[i] != '\0'; i++) {
        assert_in_range(err.text[i], 0x20, 0x7e);
    }

    assert_int_equal(dsa_schema_integer(&reply, &n, &err), DSA_ERROR);

    for (i = 0; err.text[i] != '\0'; i++) {
        assert_in_range(err.text[i], 0x20, 0x7e);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_resp),
        cmocka_unit_test(test_resp_bounds),
        cmocka_unit_test(test_text)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
