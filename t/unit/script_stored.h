
/*
 * Copyright (C) The nginx-dsa authors
 *
 * States of Redis and commands for them: conversations, the ledger, retained
 * answers, summaries, limits and stored responses, for script_cases.h.
 */


#ifndef _SCRIPT_STORED_H_INCLUDED_
#define _SCRIPT_STORED_H_INCLUDED_


#include <time.h>

#include "redis_schema/conversations.h"
#include "redis_schema/conversations_scripts.h"
#include "redis_schema/responses.h"
#include "redis_schema/responses_scripts.h"
#include "redis_schema/retained.h"
#include "redis_schema/scripts.h"
#include "redis_schema/stored_scripts.h"
#include "redis_schema/window.h"
#include "t/unit/stored.h"


#define LEASE      "dsa1:{" TENANT "}:l:" ID
#define STORED     "dsa1:{" TENANT "}:stored"
#define SPEND      "dsa1:{" TENANT "}:spend"
#define NODE       "dsa1:{" TENANT "}:r:resp_%032d"
#define ANSWER_ID  "abcdefghijklmnopqrstuv"
#define API_KEY    "key_0123456789abcdef"
#define LIMITS     "dsa1:{" API_KEY "}:limits"
#define OLD_DAYS   100          /* of a day that is folded */


/* The states in which the cases begin. */

static inline void
seed_nothing(void)
{
}


/* An account with a time of the past, which the next script removes. */

static inline void
seed_account(void)
{
    assert_int_equal(number(&server, "HSET " STORED " 1 %b", "2 3", (size_t) 3),
                     1);
}


static inline void
seed_conversation(void)
{
    dsa_str_t  turn[3];

    turn[0] = dsa_strz(SYSTEM);
    turn[1] = dsa_strz(USER);
    turn[2] = dsa_strz(ANSWER);

    create(TENANT, turn, 3);
    seed_account();
}


static inline void
seed_lease(void)
{
    seed_conversation();
    ok(&server, "SET " LEASE " r1 PX 30000");
}


/* All days that are older than this are a part of their month. */

static inline void
seed_rolled(int days)
{
    ok(&server, "SET dsa1:{" TENANT "}:rolled %lld",
       (long long) time(NULL) / (24 * 3600) - days);
}


static inline void
seed_ledger(void)
{
    seed_rolled(DSA_SCHEMA_LEDGER_DAYS - 1);
}


/* A day of the ledger that is to be folded, with a turn that ends. */

static inline void
seed_turn(void)
{
    char       day[16];
    time_t     when;
    struct tm  tm;

    seed_lease();
    seed_rolled(OLD_DAYS);

    when = time(NULL) - OLD_DAYS * 24 * 3600;
    assert_non_null(gmtime_r(&when, &tm));
    assert_int_equal(strftime(day, sizeof(day), "%Y-%m-%d", &tm), 10);

    assert_int_equal(number(&server, "HSET dsa1:{" TENANT "}:ledger:%s "
                            "m|requests 7 " API_KEY "|m|requests 7", day), 2);
    assert_int_equal(number(&server, "HSET " SPEND " " API_KEY "|%s 7 "
                            API_KEY " 7", day), 2);
}


static inline void
seed_nodes(void)
{
    assert_int_equal(number(&server, "HSET " NODE " parent x input [] "
                            "output []", 1), 3);
    assert_int_equal(number(&server, "HDEL " NODE " parent", 1), 1);
    assert_int_equal(number(&server, "HSET " NODE " parent %b", 1, "", 0), 1);
    assert_int_equal(number(&server, "HSET " NODE " parent resp_%032d input "
                            "[] output []", 2, 1), 3);
    assert_int_equal(number(&server, "EXPIRE " NODE " 100", 1), 1);
    assert_int_equal(number(&server, "EXPIRE " NODE " 100", 2), 1);
}


/* The nodes are in the account, for a lifetime that is renewed. */

static inline void
seed_stored_nodes(void)
{
    int  i;

    seed_nodes();
    seed_account();

    for (i = 1; i <= 2; i++) {
        assert_int_equal(number(&server, "HSET " NODE " stored %b", i,
                                "9000000000 600", (size_t) 14), 1);
    }

    assert_int_equal(number(&server, "HSET " STORED " 9000000000 %b",
                            "2 1200", (size_t) 6), 1);
}


static inline void
seed_items(void)
{
    seed_conversation();
    seed_nodes();
}


static inline void
seed_answer(void)
{
    ok(&server, "SET dsa1:{" TENANT "}:s:" ANSWER_ID " record");
}


static inline void
seed_limits(void)
{
    assert_int_equal(number(&server, "HSET " LIMITS " time 1 requests 60000 "
                            "tokens 60000 h:gone 3"), 4);
    assert_int_equal(number(&server, "HSET " LIMITS " h:old %b", "3 5", 3),
                     1);
}


static inline void
build_create(dsa_schema_command_t *cmd)
{
    dsa_str_t  *turn;

    turn = dsa_arena_alloc(arena, 2 * sizeof(dsa_str_t));
    turn[0] = dsa_strz(USER);
    turn[1] = dsa_strz(ANSWER);

    assert_int_equal(dsa_schema_create(cmd, arena, dsa_strz(TENANT),
                                       dsa_strz(ID), 1234, &storage,
                                       dsa_strz("{}"), turn, 2), DSA_OK);
}


/* The turn of a request with an API key, for which the oldest one leaves. */

static inline void
build_turn(dsa_schema_command_t *cmd)
{
    dsa_str_t          *turn;
    dsa_schema_entry_t  r;

    turn = dsa_arena_alloc(arena, 2 * sizeof(dsa_str_t));
    turn[0] = dsa_strz(USER);
    turn[1] = dsa_strz(ANSWER);

    r = request("r1");
    r.cell = 7;
    r.number = 9;
    r.key = dsa_strz(API_KEY);
    r.cost_miss = 5;
    r.conversation = dsa_strz(ID);
    r.version = 1;
    r.messages = turn;
    r.n_messages = 2;
    r.max_messages = 3;

    assert_int_equal(dsa_schema_record(cmd, arena, &r, 1), DSA_OK);
}


static inline void
build_entry(dsa_schema_command_t *cmd)
{
    dsa_schema_entry_t  r;

    r = request("r1");
    r.cell = 7;
    r.number = 9;
    assert_int_equal(dsa_schema_record(cmd, arena, &r, 1), DSA_OK);
}


static inline void
build_retain(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_schema_retain(cmd, arena, dsa_strz(TENANT),
                                       dsa_strz(ANSWER_ID), 1000, &storage,
                                       dsa_strz("record")), DSA_OK);
}


static inline void
build_delete(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_schema_delete(cmd, arena, dsa_strz(TENANT),
                                       dsa_strz(ID)), DSA_OK);
}


/* The account keeps another conversation. */

static inline void
seed_two(void)
{
    dsa_str_t             turn;
    redisReply           *reply;
    dsa_schema_command_t  cmd;

    seed_conversation();

    turn = dsa_strz(USER);
    assert_int_equal(dsa_schema_create(&cmd, arena, dsa_strz(TENANT),
                                       dsa_strz("conv_2"), 1, &storage,
                                       dsa_strz("{}"), &turn, 1), DSA_OK);
    reply = run(&cmd);
    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    freeReplyObject(reply);
    seed_account();
}


static inline void
build_retained(dsa_schema_command_t *cmd)
{
    dsa_str_t  key;

    key = dsa_strz(ANSWER_ID);
    assert_int_equal(dsa_schema_load_retained(cmd, arena, dsa_strz(TENANT),
                                              &key, 1), DSA_OK);
}


static uint8_t  digest[DSA_SCHEMA_WINDOW_DIGEST] = { 1, 2, 3 };


static inline void
seed_summary(void)
{
    redisReply            *reply;
    dsa_schema_command_t   cmd;

    assert_int_equal(dsa_schema_summary_store(&cmd, arena, dsa_strz(TENANT),
                                              digest, 2, dsa_strz("text")),
                     DSA_OK);
    reply = run(&cmd);
    assert_int_equal(reply->type, REDIS_REPLY_STATUS);
    freeReplyObject(reply);
}


static inline void
build_summary(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_schema_summary_load(cmd, arena, dsa_strz(TENANT),
                                             digest, 1), DSA_OK);
}


static inline void
build_begin(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_schema_begin(cmd, arena, dsa_strz(TENANT),
                                      dsa_strz(ID), dsa_strz("r1")), DSA_OK);
}


static inline void
build_renew(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_schema_renew(cmd, arena, dsa_strz(TENANT),
                                      dsa_strz(ID), dsa_strz("r1")), DSA_OK);
}


static inline void
build_renew_other(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_schema_renew(cmd, arena, dsa_strz(TENANT),
                                      dsa_strz(ID), dsa_strz("r2")), DSA_OK);
}


static inline void
build_begin_other(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_schema_begin(cmd, arena, dsa_strz(TENANT),
                                      dsa_strz(ID), dsa_strz("r2")), DSA_OK);
}


static inline void
build_release(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_schema_release(cmd, arena, dsa_strz(TENANT),
                                        dsa_strz(ID), dsa_strz("r1")),
                     DSA_OK);
}


static inline void
build_release_other(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_schema_release(cmd, arena, dsa_strz(TENANT),
                                        dsa_strz(ID), dsa_strz("r2")),
                     DSA_OK);
}


/* The fourth word after the keys is the limit of entries. */

static inline void
build_add(dsa_schema_command_t *cmd)
{
    dsa_str_t  *turn;

    turn = dsa_arena_alloc(arena, 2 * sizeof(dsa_str_t));
    turn[0] = dsa_strz(USER);
    turn[1] = dsa_strz(ANSWER);

    assert_int_equal(dsa_schema_add(cmd, arena, dsa_strz(TENANT),
                                    dsa_strz(ID), &storage, turn, 2), DSA_OK);
    assert_int_equal(cmd->argc, 13);
    cmd->argv[9] = dsa_strz("3");
}


static inline void
build_replace(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_schema_edit(cmd, arena, dsa_strz(TENANT),
                                     dsa_strz(ID), 1, 600, 1, dsa_strz(CALL)),
                     DSA_OK);
}


static inline void
build_remove(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_schema_edit(cmd, arena, dsa_strz(TENANT),
                                     dsa_strz(ID), 1, 600, 1, dsa_strz("")),
                     DSA_OK);
}


static inline void
build_metadata(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_schema_metadata(cmd, arena, dsa_strz(TENANT),
                                         dsa_strz(ID), &storage,
                                         dsa_strz("{\"a\":\"b\"}")), DSA_OK);
}


static inline dsa_str_t
node_id(int n)
{
    char  id[64];

    (void) snprintf(id, sizeof(id), "resp_%032d", n);

    return dsa_strz(dsa_arena_dup(arena, dsa_strz(id)));
}


static inline void
build_save(dsa_schema_command_t *cmd)
{
    dsa_response_t  node;

    memset(&node, 0, sizeof(node));

    node.id = node_id(3);
    node.parent = node_id(2);
    node.conversation = dsa_strz(ID);
    node.input = dsa_strz("[]");
    node.before = dsa_strz("{");
    node.output = dsa_strz("[]");
    node.after = dsa_strz("}");

    assert_int_equal(dsa_response_save(cmd, arena, dsa_strz(TENANT), &node, 1,
                                       &storage), DSA_OK);
}


static inline void
build_withdraw(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_response_withdraw(cmd, arena, dsa_strz(TENANT),
                                           node_id(2)), DSA_OK);
}


static inline void
build_delete_node(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_response_delete(cmd, arena, dsa_strz(TENANT),
                                         node_id(2)), DSA_OK);
}


static inline void
build_chain(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_response_chain(cmd, arena, dsa_strz(TENANT),
                                        node_id(2)), DSA_OK);
}


static inline void
build_items(dsa_schema_command_t *cmd)
{
    dsa_str_t  owners[2];

    owners[0] = dsa_str(node_id(2).data + 5, 32);
    owners[1] = dsa_str(&ID[5], 32);

    assert_int_equal(dsa_response_items(cmd, arena, dsa_strz(TENANT), owners,
                                        2), DSA_OK);
}


#endif /* _SCRIPT_STORED_H_INCLUDED_ */
