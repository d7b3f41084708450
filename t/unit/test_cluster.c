
/*
 * Copyright (C) The nginx-dsa authors
 *
 * What a client of a Redis Cluster computes: the cluster slot of a command, and
 * the kinds of replies that name another node or another time.
 * test_redis_cluster.c compares cluster slots with those of Redis, and has
 * redirects.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "redis_schema/cluster.h"
#include "redis_schema/keys_redis.h"
#include "redis_schema/memory.h"
#include "redis_schema/responses.h"


#define TENANT  "0123456789abcdef0123456789abcdef"
#define ID      "conv_00112233445566778899aabbccddeeff"
#define NODE    "resp_00112233445566778899aabbccddeeff"


static void
test_command_slot(void **state)
{
    int32_t                slot;
    dsa_str_t              messages[1];
    dsa_arena_t           *arena;
    dsa_schema_command_t   cmd;
    dsa_schema_storage_t   storage = { 60, 1000000, 1000 };

    arena = dsa_arena_create(1024 * 1024);
    assert_non_null(arena);

    slot = (int32_t) dsa_cluster_slot(TENANT, strlen(TENANT));

    /* a text that looks like a key comes behind the keys */

    messages[0] = dsa_strz("dsa1:{other}:c:x");

    assert_int_equal(dsa_schema_create(&cmd, arena, dsa_strz(TENANT),
                                       dsa_strz(ID), 1, &storage,
                                       dsa_strz("{}"), messages, 1), DSA_OK);
    assert_int_equal(dsa_cluster_command_slot(&cmd), slot);

    assert_int_equal(dsa_schema_load(&cmd, arena, dsa_strz(TENANT),
                                     dsa_strz(ID)), DSA_OK);
    assert_int_equal(dsa_cluster_command_slot(&cmd), slot);

    assert_int_equal(dsa_response_chain(&cmd, arena, dsa_strz(TENANT),
                                        dsa_strz(NODE)), DSA_OK);
    assert_int_equal(dsa_cluster_command_slot(&cmd), slot);

    /* EVALSHA of keys that no tenant has */

    assert_int_equal(dsa_key_sync(&cmd, arena, 0, 10, 0), DSA_OK);
    assert_int_equal(dsa_cluster_command_slot(&cmd),
                     dsa_cluster_slot("keys", 4));

    /* INFO memory */

    assert_int_equal(dsa_schema_memory(&cmd, arena), DSA_OK);
    assert_int_equal(dsa_cluster_command_slot(&cmd), -1);

    dsa_arena_destroy(arena);
}


/* While its cluster slot is moved, a node would execute these without keys. */

static void
test_absent(void **state)
{
    uint32_t               i;
    dsa_arena_t           *arena;
    dsa_schema_command_t   cmd[2];

    arena = dsa_arena_create(1024 * 1024);
    assert_non_null(arena);

    assert_int_equal(dsa_response_chain(&cmd[0], arena, dsa_strz(TENANT),
                                        dsa_strz(NODE)), DSA_OK);
    assert_int_equal(dsa_response_withdraw(&cmd[1], arena, dsa_strz(TENANT),
                                           dsa_strz(NODE)), DSA_OK);

    for (i = 0; i < 2; i++) {
        assert_true(dsa_str_eqz(cmd[i].argv[2], i == 0 ? "2" : "3"));
        assert_true(dsa_str_eqz(cmd[i].argv[4 + i],
                                "dsa1:{" TENANT "}:absent"));
    }

    dsa_arena_destroy(arena);
}


static void
test_reply(void **state)
{
    size_t       i;
    redisReply   reply;

    static const struct {
        const char           *text;
        dsa_cluster_reply_e   kind;
    } cases[] = {
        { "MOVED 3999 127.0.0.1:6381", DSA_CLUSTER_MOVED },
        { "ASK 3999 127.0.0.1:6381", DSA_CLUSTER_ASK },
        { "TRYAGAIN Multiple keys", DSA_CLUSTER_MOVING },
        { "CLUSTERDOWN The cluster is down", DSA_CLUSTER_DOWN },
        { "MOVEDX 1 a:1", DSA_CLUSTER_OTHER },
        { "ERR MOVED 1 a:1", DSA_CLUSTER_OTHER },
        { "ASKING", DSA_CLUSTER_OTHER },
        { "", DSA_CLUSTER_OTHER }
    };

    memset(&reply, 0, sizeof(redisReply));

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        reply.type = REDIS_REPLY_ERROR;
        reply.str = (char *) cases[i].text;
        reply.len = strlen(reply.str);
        assert_int_equal(dsa_cluster_reply(&reply), cases[i].kind);

        /* a string of a conversation is no error */

        reply.type = REDIS_REPLY_STRING;
        assert_int_equal(dsa_cluster_reply(&reply), DSA_CLUSTER_OTHER);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_command_slot),
        cmocka_unit_test(test_absent),
        cmocka_unit_test(test_reply)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
