
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A script that Redis refuses to run to its end changes nothing.  Each command
 * of each script is refused in turn, and so is each of its keys, by the ACL of
 * a user of a real redis-server.  All keys are compared before and after.
 *
 * What a script uses comes from the script: the server reports which commands
 * it has run on which keys, and these must be all that its text has.
 */


#include <glob.h>
#include <time.h>

#include "redis_schema/conversations.h"
#include "redis_schema/conversations_scripts.h"
#include "redis_schema/idempotency.h"
#include "redis_schema/idempotency_scripts.h"
#include "redis_schema/keys_redis.h"
#include "redis_schema/keys_scripts.h"
#include "redis_schema/progress.h"
#include "redis_schema/progress_scripts.h"
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
#define RESPONSE   "resp_00000000000000000000000000000001"
#define PROGRESS   "dsa1:{" TENANT "}:p:" RESPONSE
#define API_KEY    "key_0123456789abcdef"
#define HEX64      "0123456789abcdef0123456789abcdef"                         \
                   "0123456789abcdef0123456789abcdef"
#define CLAIM      "dsa1:{" TENANT "}:i:" HEX64
#define USED       "dsa1:{" TENANT "}:i"
#define LIMITS     "dsa1:{" API_KEY "}:limits"

#define OLD_DAYS   100          /* of a day that is folded */

#define MAX_USES   64
#define MAX_NAME   160


/*
 * A script, and a state of Redis in which it uses its commands.  Several cases
 * of a script together use all of them.
 */

typedef struct {
    const char   *name;
    const char   *text;
    void        (*seed)(void);
    void        (*build)(dsa_schema_command_t *cmd);
} script_case_t;


/* Names of commands, or of keys, without repetition. */

typedef struct {
    char          name[MAX_USES][MAX_NAME];
    uint32_t      n;
} names_t;


static redis_t        restricted;       /* the same server as another user */
static redisContext  *monitor;


static int
has(const names_t *names, const char *name)
{
    uint32_t  i;

    for (i = 0; i < names->n; i++) {
        if (strcmp(names->name[i], name) == 0) {
            return 1;
        }
    }

    return 0;
}


static void
put(names_t *names, const char *name, size_t len)
{
    char  text[MAX_NAME];

    assert_true(len < sizeof(text));
    memcpy(text, name, len);
    text[len] = '\0';

    if (!has(names, text)) {
        assert_true(names->n < MAX_USES);
        strcpy(names->name[names->n++], text);
    }
}


/* The commands in the text of a script: words of these functions. */

static void
commands_of(names_t *names, const char *text)
{
    size_t       i, len;
    const char  *p;

    static const char *const  functions[] = {
        "call('", "write('", "attempt('"
    };

    for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        for (p = strstr(text, functions[i]);
             p != NULL;
             p = strstr(p, functions[i]))
        {
            p += strlen(functions[i]);
            len = strspn(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
            assert_true(len != 0 && p[len] == '\'');
            put(names, p, len);
        }
    }
}


/* The states in which the cases begin. */

static void
seed_nothing(void)
{
}


/* An account with a time of the past, which the next script removes. */

static void
seed_account(void)
{
    assert_int_equal(number(&server, "HSET " STORED " 1 %b", "2 3", (size_t) 3),
                     1);
}


static void
seed_conversation(void)
{
    dsa_str_t  turn[3];

    turn[0] = dsa_strz(SYSTEM);
    turn[1] = dsa_strz(USER);
    turn[2] = dsa_strz(ANSWER);

    create(TENANT, turn, 3);
    seed_account();
}


static void
seed_lease(void)
{
    seed_conversation();
    ok(&server, "SET " LEASE " r1 PX 30000");
}


/* All days that are older than this are a part of their month. */

static void
seed_rolled(int days)
{
    ok(&server, "SET dsa1:{" TENANT "}:rolled %lld",
       (long long) time(NULL) / (24 * 3600) - days);
}


static void
seed_ledger(void)
{
    seed_rolled(DSA_SCHEMA_LEDGER_DAYS - 1);
}


/* A day of the ledger that is to be folded, with a turn that ends. */

static void
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


static void
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

static void
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


static void
seed_items(void)
{
    seed_conversation();
    seed_nodes();
}


static void
seed_answer(void)
{
    ok(&server, "SET dsa1:{" TENANT "}:s:" ANSWER_ID " record");
}


static void
seed_limits(void)
{
    assert_int_equal(number(&server, "HSET " LIMITS " time 1 requests 60000 "
                            "tokens 60000 h:gone 3"), 4);
    assert_int_equal(number(&server, "HSET " LIMITS " h:old %b", "3 5", 3),
                     1);
}


static void
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

static void
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


static void
build_entry(dsa_schema_command_t *cmd)
{
    dsa_schema_entry_t  r;

    r = request("r1");
    r.cell = 7;
    r.number = 9;
    assert_int_equal(dsa_schema_record(cmd, arena, &r, 1), DSA_OK);
}


static void
build_retain(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_schema_retain(cmd, arena, dsa_strz(TENANT),
                                       dsa_strz(ANSWER_ID), 1000, &storage,
                                       dsa_strz("record")), DSA_OK);
}


static void
build_delete(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_schema_delete(cmd, arena, dsa_strz(TENANT),
                                       dsa_strz(ID)), DSA_OK);
}


/* The account keeps another conversation. */

static void
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


static void
build_retained(dsa_schema_command_t *cmd)
{
    dsa_str_t  key;

    key = dsa_strz(ANSWER_ID);
    assert_int_equal(dsa_schema_load_retained(cmd, arena, dsa_strz(TENANT),
                                              &key, 1), DSA_OK);
}


static uint8_t  digest[DSA_SCHEMA_WINDOW_DIGEST] = { 1, 2, 3 };


static void
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


static void
build_summary(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_schema_summary_load(cmd, arena, dsa_strz(TENANT),
                                             digest, 1), DSA_OK);
}


static void
build_begin(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_schema_begin(cmd, arena, dsa_strz(TENANT),
                                      dsa_strz(ID), dsa_strz("r1")), DSA_OK);
}


static void
build_renew(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_schema_renew(cmd, arena, dsa_strz(TENANT),
                                      dsa_strz(ID), dsa_strz("r1")), DSA_OK);
}


static void
build_renew_other(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_schema_renew(cmd, arena, dsa_strz(TENANT),
                                      dsa_strz(ID), dsa_strz("r2")), DSA_OK);
}


static void
build_begin_other(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_schema_begin(cmd, arena, dsa_strz(TENANT),
                                      dsa_strz(ID), dsa_strz("r2")), DSA_OK);
}


static void
build_release(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_schema_release(cmd, arena, dsa_strz(TENANT),
                                        dsa_strz(ID), dsa_strz("r1")),
                     DSA_OK);
}


static void
build_release_other(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_schema_release(cmd, arena, dsa_strz(TENANT),
                                        dsa_strz(ID), dsa_strz("r2")),
                     DSA_OK);
}


/* The fourth word after the keys is the limit of entries. */

static void
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


static void
build_replace(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_schema_edit(cmd, arena, dsa_strz(TENANT),
                                     dsa_strz(ID), 1, 600, 1, dsa_strz(CALL)),
                     DSA_OK);
}


static void
build_remove(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_schema_edit(cmd, arena, dsa_strz(TENANT),
                                     dsa_strz(ID), 1, 600, 1, dsa_strz("")),
                     DSA_OK);
}


static void
build_metadata(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_schema_metadata(cmd, arena, dsa_strz(TENANT),
                                         dsa_strz(ID), &storage,
                                         dsa_strz("{\"a\":\"b\"}")), DSA_OK);
}


static dsa_str_t
node_id(int n)
{
    char  id[64];

    (void) snprintf(id, sizeof(id), "resp_%032d", n);

    return dsa_strz(dsa_arena_dup(arena, dsa_strz(id)));
}


static void
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


static void
build_withdraw(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_response_withdraw(cmd, arena, dsa_strz(TENANT),
                                           node_id(2)), DSA_OK);
}


static void
build_delete_node(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_response_delete(cmd, arena, dsa_strz(TENANT),
                                         node_id(2)), DSA_OK);
}


static void
build_chain(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_response_chain(cmd, arena, dsa_strz(TENANT),
                                        node_id(2)), DSA_OK);
}


static void
build_items(dsa_schema_command_t *cmd)
{
    dsa_str_t  owners[2];

    owners[0] = dsa_str(node_id(2).data + 5, 32);
    owners[1] = dsa_str(&ID[5], 32);

    assert_int_equal(dsa_response_items(cmd, arena, dsa_strz(TENANT), owners,
                                        2), DSA_OK);
}


/* Hours before are removed. */

static void
seed_used(void)
{
    assert_int_equal(number(&server, "HSET " USED " 5|keys 2 5|bytes 7"), 2);
}


static void
seed_claim(void)
{
    seed_used();
    assert_int_equal(number(&server, "HSET " CLAIM " digest " HEX64 " owner "
                            "r1 state running until 1 hour 5"), 5);
}


static dsa_idempotency_t
idempotency(void)
{
    dsa_idempotency_t  id;

    id.tenant = dsa_strz(TENANT);
    id.key = HEX64;
    id.owner = dsa_strz("r1");

    return id;
}


static void
build_claim(dsa_schema_command_t *cmd)
{
    dsa_idempotency_t  id;

    id = idempotency();
    assert_int_equal(dsa_idempotency_claim(cmd, arena, &id, HEX64), DSA_OK);
}


static void
build_renew_claim(dsa_schema_command_t *cmd)
{
    dsa_idempotency_t  id;

    id = idempotency();
    assert_int_equal(dsa_idempotency_renew(cmd, arena, &id), DSA_OK);
}


static void
build_finish(dsa_schema_command_t *cmd)
{
    dsa_idempotency_t         id;
    dsa_idempotency_result_t  result;

    id = idempotency();
    result.state = DSA_IDEMPOTENCY_ANSWER_KEPT;
    result.object = dsa_strz("resp_1");
    result.answer = dsa_strz("{}");

    assert_int_equal(dsa_idempotency_finish(cmd, arena, &id, &result), DSA_OK);
}


static void
build_release_claim(dsa_schema_command_t *cmd)
{
    dsa_idempotency_t  id;

    id = idempotency();
    assert_int_equal(dsa_idempotency_release(cmd, arena, &id), DSA_OK);
}


/* A key whose hash has bytes of this value. */

static dsa_key_t
make_key(int hash)
{
    dsa_key_t  key;

    memset(&key, 0, sizeof(dsa_key_t));
    dsa_key_limits_default(&key.limits);

    key.id = dsa_strz(API_KEY);
    key.name = dsa_strz("anna");
    key.tenant = dsa_strz("t");
    key.created = 1;
    memset(key.hash, hash, DSA_KEY_HASH_LEN);

    return key;
}


static void
build_put(dsa_schema_command_t *cmd)
{
    dsa_key_t  key;

    key = make_key(1);
    assert_int_equal(dsa_key_put(cmd, arena, &key, dsa_strz("")), DSA_OK);
}


static void
seed_key(void)
{
    redisReply            *reply;
    dsa_schema_command_t   cmd;

    build_put(&cmd);
    reply = run(&cmd);
    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    assert_int_equal(reply->integer, 0);
    freeReplyObject(reply);
}


/* A rotation: the hash of before is removed. */

static void
build_rotate(dsa_schema_command_t *cmd)
{
    dsa_key_t  key;

    key = make_key(3);
    key.old_until = 99;
    memset(key.old_hash, 2, DSA_KEY_HASH_LEN);

    assert_int_equal(dsa_key_put(cmd, arena, &key,
                                 dsa_strz(text("HGET dsa1:{keys}:id "
                                               API_KEY))), DSA_OK);
}


static void
build_sync(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_key_sync(cmd, arena, 0, 10, 1), DSA_OK);
}


static void
build_share(dsa_schema_command_t *cmd)
{
    const dsa_key_use_t  use[DSA_KEY_RATES] = { { 60, 1, 0 }, { 60, 5, 0 } };

    assert_int_equal(dsa_key_share(cmd, arena, dsa_strz(API_KEY),
                                   dsa_strz("me"), use, 1, 1000, 1), DSA_OK);
}


static void
build_share_none(dsa_schema_command_t *cmd)
{
    const dsa_key_use_t  use[DSA_KEY_RATES] = { { 0, 0, 0 }, { 60, 5, 0 } };

    assert_int_equal(dsa_key_share(cmd, arena, dsa_strz(API_KEY),
                                   dsa_strz("old"), use, 0, 1000, 1), DSA_OK);
}


static dsa_progress_t
in_progress(unsigned background)
{
    dsa_progress_t  p;

    memset(&p, 0, sizeof(dsa_progress_t));

    p.tenant = dsa_strz(TENANT);
    p.id = dsa_strz(RESPONSE);
    p.before = dsa_strz("{");
    p.after = dsa_strz("}");
    p.background = background;
    p.streams = background;

    return p;
}


static void
build_attached(dsa_schema_command_t *cmd)
{
    dsa_progress_t  p;

    p = in_progress(0);
    assert_int_equal(dsa_progress_begin(cmd, arena, &p, &storage), DSA_OK);
}


static void
build_background(dsa_schema_command_t *cmd)
{
    dsa_progress_t  p;

    p = in_progress(1);
    assert_int_equal(dsa_progress_begin(cmd, arena, &p, &storage), DSA_OK);
}


static void
build_renew_progress(dsa_schema_command_t *cmd)
{
    dsa_progress_t  p;

    p = in_progress(1);
    assert_int_equal(dsa_progress_renew(cmd, arena, &p), DSA_OK);
}


static void
build_append(dsa_schema_command_t *cmd)
{
    dsa_progress_t  p;

    p = in_progress(1);
    assert_int_equal(dsa_progress_append(cmd, arena, &p, 0, dsa_strz("data"),
                                         &storage), DSA_OK);
}


static void
build_fail(dsa_schema_command_t *cmd)
{
    dsa_progress_t  p;

    p = in_progress(1);
    assert_int_equal(dsa_progress_end(cmd, arena, &p, dsa_strz("why")),
                     DSA_OK);
}


static void
build_forget(dsa_schema_command_t *cmd)
{
    dsa_progress_t  p;

    p = in_progress(1);
    assert_int_equal(dsa_progress_end(cmd, arena, &p, dsa_strz("")), DSA_OK);
}


static void
build_read_progress(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_progress_read(cmd, arena, dsa_strz(TENANT),
                                       dsa_strz(RESPONSE)), DSA_OK);
}


static void
build_cancel(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_progress_cancel(cmd, arena, dsa_strz(TENANT),
                                         dsa_strz(RESPONSE)), DSA_OK);
}


static void
build_delete_progress(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_response_delete(cmd, arena, dsa_strz(TENANT),
                                         dsa_strz(RESPONSE)), DSA_OK);
}


static void
build_follow(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_progress_follow(cmd, arena, dsa_strz(TENANT),
                                         dsa_strz(RESPONSE), 0), DSA_OK);
}


/* Runs a command that returns 1. */

static void
progress_runs(void (*build)(dsa_schema_command_t *cmd))
{
    redisReply            *reply;
    dsa_schema_command_t   cmd;

    build(&cmd);
    reply = run(&cmd);
    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    assert_int_equal(reply->integer, 1);
    freeReplyObject(reply);
}


static void
seed_background(void)
{
    seed_account();
    progress_runs(build_background);
}


/* The account has a share that has expired, too. */

static void
seed_background_late(void)
{
    seed_background();
    seed_account();
}


/* Chunk 0 is there. */

static void
seed_events(void)
{
    seed_background();
    progress_runs(build_append);
    seed_account();
}


/* As many events as are kept. */

static void
seed_large(void)
{
    seed_events();
    assert_int_equal(number(&server, "HSET " PROGRESS " bytes 8388608"), 0);
}


#define script(name)  #name, name

static const script_case_t  cases[] = {
    { script(dsa_schema_create_script), seed_account, build_create },
    { script(dsa_schema_delete_script), seed_two, build_delete },
    { script(dsa_schema_record_script), seed_turn, build_turn },
    { script(dsa_schema_record_script), seed_ledger, build_entry },
    { script(dsa_schema_retain_script), seed_account, build_retain },
    { script(dsa_schema_retained_script), seed_answer, build_retained },
    { script(dsa_schema_summary_script), seed_summary, build_summary },
    { script(dsa_schema_begin_script), seed_conversation, build_begin },
    { script(dsa_schema_begin_script), seed_lease, build_begin_other },
    { script(dsa_schema_renew_script), seed_lease, build_renew },
    { script(dsa_schema_renew_script), seed_lease, build_renew_other },
    { script(dsa_schema_release_script), seed_lease, build_release },
    { script(dsa_schema_release_script), seed_lease, build_release_other },
    { script(dsa_schema_add_script), seed_conversation, build_add },
    { script(dsa_schema_add_script), seed_lease, build_add },
    { script(dsa_schema_edit_script), seed_conversation, build_replace },
    { script(dsa_schema_edit_script), seed_conversation, build_remove },
    { script(dsa_schema_edit_script), seed_lease, build_remove },
    { script(dsa_schema_metadata_script), seed_conversation, build_metadata },
    { script(dsa_response_save_script), seed_stored_nodes, build_save },
    { script(dsa_response_withdraw_script), seed_stored_nodes,
      build_withdraw },
    { script(dsa_response_delete_script), seed_stored_nodes,
      build_delete_node },
    { script(dsa_response_delete_script), seed_events,
      build_delete_progress },
    { script(dsa_response_chain_script), seed_nodes, build_chain },
    { script(dsa_response_items_script), seed_items, build_items },
    { script(dsa_progress_begin_script), seed_account, build_attached },
    { script(dsa_progress_background_script), seed_account,
      build_background },
    { script(dsa_progress_renew_script), seed_background,
      build_renew_progress },
    { script(dsa_progress_append_script), seed_background_late,
      build_append },
    { script(dsa_progress_append_script), seed_large, build_append },
    { script(dsa_progress_end_script), seed_events, build_fail },
    { script(dsa_progress_end_script), seed_events, build_forget },
    { script(dsa_progress_read_script), seed_events, build_read_progress },
    { script(dsa_progress_cancel_script), seed_events, build_cancel },
    { script(dsa_progress_follow_script), seed_events, build_follow },
    { script(dsa_idempotency_claim_script), seed_used, build_claim },
    { script(dsa_idempotency_claim_script), seed_claim, build_claim },
    { script(dsa_idempotency_renew_script), seed_claim, build_renew_claim },
    { script(dsa_idempotency_finish_script), seed_claim, build_finish },
    { script(dsa_idempotency_release_script), seed_claim,
      build_release_claim },
    { script(dsa_key_put_script), seed_nothing, build_put },
    { script(dsa_key_put_script), seed_key, build_rotate },
    { script(dsa_key_sync_script), seed_key, build_sync },
    { script(dsa_key_share_script), seed_limits, build_share },
    { script(dsa_key_share_script), seed_limits, build_share_none }
};

#undef script

#define N_CASES  (sizeof(cases) / sizeof(cases[0]))


/* Redis has no redis.acl_check_cmd() before version 7. */

#define HIDE                                                                  \
    "local redis = setmetatable({ acl_check_cmd = false },"                   \
    " { __index = redis })\n"


/* Begins a case.  hide: the script finds no redis.acl_check_cmd(). */

static void
prepare(const script_case_t *c, dsa_schema_command_t *cmd, int hide)
{
    dsa_str_t  *text;
    dsa_buf_t   b;

    ok(&server, "FLUSHALL");
    c->seed();
    c->build(cmd);

    text = &cmd->argv[1];
    assert_true(dsa_str_eqz(cmd->argv[0], "EVAL"));
    assert_true(dsa_str_eqz(*text, c->text));

    if (hide) {
        memset(&b, 0, sizeof(b));
        dsa_buf_addz(&b, HIDE);
        dsa_buf_add(&b, text->data, text->len);
        *text = dsa_strz(dsa_arena_dup(arena, dsa_str(b.data, b.len)));
        dsa_buf_free(&b);
    }
}


/* Sends a command as the restricted user. */

static redisReply *
run_restricted(const dsa_schema_command_t *cmd)
{
    redisReply    *reply;
    redisContext  *own;

    own = server.client;
    server.client = restricted.client;
    reply = run(cmd);
    server.client = own;

    return reply;
}


/* The next line of MONITOR; the caller frees it. */

static redisReply *
monitored(void)
{
    void  *reply;

    assert_int_equal(redisGetReply(monitor, &reply), REDIS_OK);
    assert_non_null(reply);

    return reply;
}


/*
 * Runs a case as a user without restrictions, and adds the commands that the
 * script has run, and their keys.
 */

static void
trace(const script_case_t *c, names_t *commands, names_t *keys)
{
    size_t                len;
    const char           *p;
    redisReply           *reply, *line;
    dsa_schema_command_t  cmd;

    prepare(c, &cmd, 0);
    assert_text("begin", "ECHO begin");

    reply = run(&cmd);

    if (reply->type == REDIS_REPLY_ERROR) {
        fail_msg("%s: %s", c->name, reply->str);
    }

    freeReplyObject(reply);
    assert_text("end", "ECHO end");

    do {
        line = monitored();
        p = strstr(line->str, "\"ECHO\" \"begin\"");
        freeReplyObject(line);
    } while (p == NULL);

    for ( ;; ) {
        line = monitored();

        if (strstr(line->str, "\"ECHO\" \"end\"") != NULL) {
            freeReplyObject(line);
            return;
        }

        p = strstr(line->str, " lua] \"");

        if (p != NULL) {
            p += strlen(" lua] \"");
            len = strcspn(p, "\"");
            put(commands, p, len);

            p += len + 1;

            if (*p == ' ') {
                put(keys, p + 2, strcspn(p + 2, "\""));
            }
        }

        freeReplyObject(line);
    }
}


static int
compare_keys(const void *one, const void *two)
{
    redisReply *const  *a = one;
    redisReply *const  *b = two;

    return strcmp((*a)->str, (*b)->str);
}


/* All keys, with their values and whether they expire. */

static void
snapshot(dsa_buf_t *b)
{
    size_t       i;
    redisReply  *keys, *value;

    memset(b, 0, sizeof(*b));

    keys = query(&server, "KEYS *");
    dsa_buf_printf(b, "%zu keys: ", keys->elements);

    /* without elements there is no array */

    if (keys->elements != 0) {
        qsort(keys->element, keys->elements, sizeof(redisReply *),
              compare_keys);
    }

    for (i = 0; i < keys->elements; i++) {
        value = query(&server, "DUMP %s", keys->element[i]->str);
        assert_int_equal(value->type, REDIS_REPLY_STRING);

        dsa_buf_printf(b, "%s %d ", keys->element[i]->str,
                       number(&server, "PTTL %s", keys->element[i]->str) > 0);
        dsa_buf_add(b, value->str, value->len);

        freeReplyObject(value);
    }

    freeReplyObject(keys);
    assert_false(b->failed);
}


/*
 * Runs a case as the restricted user, between two commands of another one.
 * Either it succeeds, or nothing has changed.  Returns the text of the error in
 * the arena; NULL: it succeeded.
 */

static const char *
all_or_nothing(const script_case_t *c, const char *what, int hide,
    const char *refuse, const char *accept)
{
    dsa_buf_t              before, after;
    const char            *error;
    redisReply            *reply;
    dsa_schema_command_t   cmd;

    prepare(c, &cmd, hide);
    snapshot(&before);

    if (refuse != NULL) {
        ok(&server, refuse);
    }

    reply = run_restricted(&cmd);

    if (accept != NULL) {
        ok(&server, accept);
    }

    snapshot(&after);

    error = NULL;

    if (reply->type == REDIS_REPLY_ERROR) {
        error = dsa_arena_dup(arena, dsa_str(reply->str, reply->len));

        if (after.len != before.len
            || memcmp(after.data, before.data, after.len) != 0)
        {
            fail_msg("%s without %s%s has changed something: %s", c->name,
                     what, hide ? " in Redis 6" : "", error);
        }
    }

    freeReplyObject(reply);
    dsa_buf_free(&before);
    dsa_buf_free(&after);

    return error;
}


/* Each script of the headers has a case, and these use all of its commands. */

static void
test_cases_are_complete(void **state)
{
    char         line[256], name[128];
    FILE        *f;
    glob_t       files;
    size_t       i, k, n;
    names_t     *in_text, *used, *keys;

    n = 0;
    assert_int_equal(glob("redis_schema/*.h", 0, NULL, &files), 0);

    for (i = 0; i < files.gl_pathc; i++) {
        f = fopen(files.gl_pathv[i], "r");
        assert_non_null(f);

        while (fgets(line, sizeof(line), f) != NULL) {
            if (sscanf(line, "static const char %127[a-z_]", name) != 1
                || strlen(name) < 7
                || strcmp(&name[strlen(name) - 7], "_script") != 0)
            {
                continue;
            }

            n++;

            for (k = 0; k < N_CASES && strcmp(cases[k].name, name) != 0; k++) {
                /* void */
            }

            if (k == N_CASES) {
                fail_msg("%s has no case", name);
            }
        }

        fclose(f);
    }

    globfree(&files);
    assert_true(n >= 16);

    in_text = dsa_arena_alloc(arena, 3 * sizeof(names_t));
    used = in_text + 1;
    keys = used + 1;

    for (i = 0; i < N_CASES; i++) {
        memset(in_text, 0, 3 * sizeof(names_t));
        commands_of(in_text, cases[i].text);

        for (k = 0; k < N_CASES; k++) {
            if (cases[k].text == cases[i].text) {
                trace(&cases[k], used, keys);
            }
        }

        for (k = 0; k < in_text->n; k++) {
            if (!has(used, in_text->name[k])) {
                fail_msg("no case of %s uses %s", cases[i].name,
                         in_text->name[k]);
            }
        }

        for (k = 0; k < used->n; k++) {
            if (!has(in_text, used->name[k])) {
                fail_msg("%s is used by %s in another way than by call(), "
                         "write() or attempt()", used->name[k],
                         cases[i].name);
            }
        }
    }
}


static void
refuse_each_command(int hide)
{
    size_t       i;
    names_t      commands, keys;
    uint32_t     k;
    const char  *error;

    for (i = 0; i < N_CASES; i++) {
        commands.n = 0;
        keys.n = 0;
        trace(&cases[i], &commands, &keys);
        assert_true(commands.n != 0);

        for (k = 0; k < commands.n; k++) {
            ok(&server, "ACL SETUSER restricted reset on >x ~* +@all -%s",
               commands.name[k]);

            error = all_or_nothing(&cases[i], commands.name[k], hide, NULL,
                                   NULL);

            if (error == NULL) {
                fail_msg("%s succeeds without %s", cases[i].name,
                         commands.name[k]);
            }

            if (strstr(error, "NOPERM ") == NULL
                || strstr(error, commands.name[k]) == NULL)
            {
                fail_msg("%s without %s: %s", cases[i].name,
                         commands.name[k], error);
            }
        }
    }
}


static void
test_each_command(void **state)
{
    refuse_each_command(0);
}


static void
test_each_command_without_check(void **state)
{
    refuse_each_command(1);
}


/* A user for whom one of the keys is outside the patterns. */

static void
refuse_each_key(int hide)
{
    size_t       i;
    names_t      commands, keys;
    uint32_t     k, n;
    const char  *error;

    for (i = 0; i < N_CASES; i++) {
        commands.n = 0;
        keys.n = 0;
        trace(&cases[i], &commands, &keys);
        assert_true(keys.n != 0);

        for (k = 0; k < keys.n; k++) {
            ok(&server, "ACL SETUSER restricted reset on >x +@all");

            for (n = 0; n < keys.n; n++) {
                if (n != k) {
                    ok(&server, "ACL SETUSER restricted ~%s", keys.name[n]);
                }
            }

            error = all_or_nothing(&cases[i], keys.name[k], hide, NULL, NULL);

            if (error == NULL || strstr(error, "NOPERM ") == NULL) {
                fail_msg("%s without %s: %s", cases[i].name, keys.name[k],
                         error != NULL ? error : "it succeeds");
            }
        }
    }
}


static void
test_each_key(void **state)
{
    refuse_each_key(0);
}


static void
test_each_key_without_check(void **state)
{
    refuse_each_key(1);
}


/*
 * A server that refuses to write for all of its users: because of its memory,
 * which scripts that only remove may still do, or as a replica.
 */

static void
test_server(void **state)
{
    int          hide;
    size_t       i;
    const char  *full[2], *replica[2];

    ok(&server, "ACL SETUSER restricted reset on >x ~* +@all");

    for (i = 0; i < N_CASES; i++) {
        for (hide = 0; hide < 2; hide++) {
            assert_null(all_or_nothing(&cases[i], "nothing", hide, NULL,
                                       NULL));

            full[hide] = all_or_nothing(&cases[i], "memory", hide,
                                        "CONFIG SET maxmemory 1",
                                        "CONFIG SET maxmemory 0");
            replica[hide] = all_or_nothing(&cases[i], "its primary", hide,
                                           "REPLICAOF 127.0.0.1 1",
                                           "REPLICAOF NO ONE");

            assert_true(full[hide] == NULL
                        || strncmp(full[hide], "OOM ", 4) == 0);
            assert_true(replica[hide] == NULL
                        || strncmp(replica[hide], "READONLY ", 9) == 0);
        }

        assert_int_equal(full[0] == NULL, full[1] == NULL);
        assert_int_equal(replica[0] == NULL, replica[1] == NULL);
    }
}


static int
start_users(void **state)
{
    (void) start(state);

    restricted = server;
    restricted.client = redisConnectUnix(server.path);
    monitor = redisConnectUnix(server.path);
    assert_true(restricted.client != NULL && restricted.client->err == 0);
    assert_true(monitor != NULL && monitor->err == 0);

    ok(&server, "ACL SETUSER restricted reset on >x ~* +@all");
    freeReplyObject(query(&restricted, "AUTH restricted x"));
    freeReplyObject(redisCommand(monitor, "MONITOR"));

    return 0;
}


static int
stop_users(void **state)
{
    redisFree(restricted.client);
    redisFree(monitor);

    return stop(state);
}


int
main(void)
{
#define test(name)  cmocka_unit_test_setup_teardown(name, begin, end)

    const struct CMUnitTest  tests[] = {
        test(test_cases_are_complete),
        test(test_each_command),
        test(test_each_command_without_check),
        test(test_each_key),
        test(test_each_key_without_check),
        test(test_server)
    };

    return cmocka_run_group_tests(tests, start_users, stop_users);
}
