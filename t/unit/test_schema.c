
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The schema against a real redis-server.  The tests read what the scripts
 * leave behind with commands of their own.
 */


#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "context/conversation.h"
#include "redis_schema/conversations.h"
#include "redis_schema/resp.h"
#include "redis_schema/schema.h"


#define TENANT   "0123456789abcdef0123456789abcdef"
#define OTHER    "ffffffffffffffffffffffffffffffff"
#define ID       "conv_00112233445566778899aabbccddeeff"

#define KEY      "dsa1:{" TENANT "}:c:" ID
#define LEDGER   "dsa1:{" TENANT "}:ledger:2099-02-03"

#define SYSTEM   "{\"role\": \"system\", \"content\": \"be brief\"}"
#define USER     "{\"role\": \"user\", \"content\": \"question\"}"
#define CALL     "{\"role\": \"assistant\", \"content\": \"\"}"
#define TOOL     "{\"role\": \"tool\", \"content\": \"22\"}"
#define ANSWER   "{\"role\": \"assistant\", \"content\": \"ok\"}"

/* 2099-02-03 23:59:59 UTC */
#define WHEN     4073846399LL


static char          dir[] = "/tmp/dsa-schema-XXXXXX";
static char          sock[64];
static pid_t         server;
static redisContext  *redis;
static dsa_arena_t   *arena;


static int
start(void **state)
{
    int              i;
    char             path[64];
    struct timespec  pause = { 0, 10 * 1000 * 1000 };

    assert_non_null(mkdtemp(dir));
    snprintf(sock, sizeof(sock), "%s/redis.sock", dir);
    snprintf(path, sizeof(path), "%s/out", dir);

    server = fork();
    assert_int_not_equal(server, -1);

    if (server == 0) {
        if (freopen(path, "w", stdout) == NULL) {
            _exit(126);
        }

        execlp("redis-server", "redis-server", "--port", "0", "--unixsocket",
               sock, "--dir", dir, "--save", "", (char *) NULL);
        _exit(127);
    }

    for (i = 0; i < 1000; i++) {
        redis = redisConnectUnix(sock);

        if (redis != NULL && redis->err == 0) {
            return 0;
        }

        if (redis != NULL) {
            redisFree(redis);
            redis = NULL;
        }

        if (waitpid(server, NULL, WNOHANG) == server) {
            server = 0;
            break;
        }

        nanosleep(&pause, NULL);
    }

    fprintf(stderr, "redis-server did not start\n");
    return -1;
}


static int
stop(void **state)
{
    char  command[128];

    if (redis != NULL) {
        redisFree(redis);
    }

    if (server > 0) {
        kill(server, SIGTERM);
        waitpid(server, NULL, 0);
    }

    snprintf(command, sizeof(command), "rm -rf %s", dir);

    return system(command);
}


static int
clean(void **state)
{
    redisReply  *reply;

    reply = redisCommand(redis, "FLUSHALL");
    assert_non_null(reply);
    freeReplyObject(reply);

    arena = dsa_arena_create(1 << 26);
    assert_non_null(arena);

    return 0;
}


static int
done(void **state)
{
    dsa_arena_destroy(arena);
    return 0;
}


static redisReply *
run(const dsa_schema_command_t *cmd)
{
    size_t       *lens;
    uint32_t      i;
    redisReply   *reply;
    const char  **words;

    words = dsa_arena_alloc(arena, cmd->argc * sizeof(char *));
    lens = dsa_arena_alloc(arena, cmd->argc * sizeof(size_t));
    assert_non_null(words);
    assert_non_null(lens);

    for (i = 0; i < cmd->argc; i++) {
        words[i] = cmd->argv[i].data;
        lens[i] = cmd->argv[i].len;
    }

    reply = redisCommandArgv(redis, cmd->argc, words, lens);
    assert_non_null(reply);

    return reply;
}


/* Sends a command of the test itself; returns its reply as a number. */

static long long
number(const char *fmt, ...)
{
    va_list      args;
    long long    n;
    redisReply  *reply;

    va_start(args, fmt);
    reply = redisvCommand(redis, fmt, args);
    va_end(args);

    assert_non_null(reply);
    assert_int_not_equal(reply->type, REDIS_REPLY_ERROR);

    n = reply->type == REDIS_REPLY_INTEGER ? reply->integer
        : reply->str != NULL ? atoll(reply->str) : -1000;

    freeReplyObject(reply);

    return n;
}


static void
create(const char *tenant, const dsa_str_t *messages, uint32_t n)
{
    int64_t               made;
    dsa_err_t             err;
    redisReply           *reply;
    dsa_schema_command_t  cmd;

    assert_int_equal(dsa_schema_create(&cmd, arena, dsa_strz(tenant),
                                       dsa_strz(ID), 1234, 600,
                                       dsa_strz("{}"), messages, n),
                     DSA_OK);

    reply = run(&cmd);
    assert_int_equal(dsa_schema_integer(reply, &made, &err), DSA_OK);
    assert_int_equal(made, 1);
    freeReplyObject(reply);
}


static int
load(dsa_schema_conversation_t *c, const char *tenant, redisReply **reply,
    dsa_err_t *err)
{
    dsa_schema_command_t  cmd;

    assert_int_equal(dsa_schema_load(&cmd, arena, dsa_strz(tenant),
                                     dsa_strz(ID)), DSA_OK);

    *reply = run(&cmd);

    return dsa_schema_conversation(c, arena, *reply, err);
}


/* want: the first letter of the role of each stored message. */

static void
assert_roles(const char *want, int64_t version)
{
    char                        roles[64];
    uint32_t                    i;
    dsa_err_t                   err;
    redisReply                 *reply;
    dsa_schema_conversation_t   c;

    assert_int_equal(load(&c, TENANT, &reply, &err), DSA_OK);
    assert_true(c.n_messages < sizeof(roles));

    for (i = 0; i < c.n_messages; i++) {
        roles[i] = c.messages[i].data[sizeof("{\"role\": \"") - 1];
    }

    roles[i] = '\0';

    assert_string_equal(roles, want);
    assert_int_equal(c.version, version);

    freeReplyObject(reply);
}


static dsa_schema_record_t
request(const char *id)
{
    dsa_schema_record_t  r;

    memset(&r, 0, sizeof(r));

    r.request = dsa_strz(id);
    r.tenant = dsa_strz(TENANT);
    r.model = dsa_strz("v3|2");
    r.time = WHEN;
    r.prompt_tokens = 1000;
    r.cached_tokens = 640;
    r.host_tokens = 128;
    r.redis_tokens = 64;
    r.completion_tokens = 20;
    r.reasoning_tokens = 7;
    r.ttl = 600;
    r.max_messages = 100;
    r.max_bytes = 100000;

    return r;
}


static int
record(const dsa_schema_record_t *r, dsa_schema_result_e *result, int *again,
    dsa_err_t *err)
{
    int                   rc;
    redisReply           *reply;
    dsa_schema_command_t  cmd;

    assert_int_equal(dsa_schema_record(&cmd, arena, r, 0), DSA_OK);
    reply = run(&cmd);

    if (dsa_resp_is_error(reply, "NOSCRIPT")) {
        freeReplyObject(reply);
        assert_int_equal(dsa_schema_record(&cmd, arena, r, 1), DSA_OK);
        reply = run(&cmd);
    }

    rc = dsa_schema_recorded(reply, result, again, err);
    freeReplyObject(reply);

    return rc;
}


static void
assert_recorded(const dsa_schema_record_t *r, dsa_schema_result_e want,
    int want_again)
{
    int                  again;
    dsa_err_t            err;
    dsa_schema_result_e  result;

    assert_int_equal(record(r, &result, &again, &err), DSA_OK);
    assert_int_equal(result, want);
    assert_int_equal(again, want_again);
}


static void
test_names(void **state)
{
    char            id[DSA_SCHEMA_ID_LEN + 1];
    const uint8_t   random[DSA_SCHEMA_ID_RANDOM] = {
        0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
        0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff
    };

    id[DSA_SCHEMA_ID_LEN] = '\0';
    dsa_schema_make_id(id, random);
    assert_string_equal(id, ID);
    assert_true(dsa_schema_id_ok(dsa_strz(id)));

    assert_false(dsa_schema_id_ok(dsa_strz("")));
    assert_false(dsa_schema_id_ok(dsa_strz(ID "0")));
    assert_false(dsa_schema_id_ok(dsa_str(ID, DSA_SCHEMA_ID_LEN - 1)));
    assert_false(dsa_schema_id_ok(
                     dsa_strz("conv_00112233445566778899AABBCCDDEEFF")));
    assert_false(dsa_schema_id_ok(
                     dsa_strz("conv_00112233445566778899aabb}:ddeeff")));

    assert_true(dsa_schema_name_ok(dsa_strz("chatcmpl-Az_0.9")));
    assert_false(dsa_schema_name_ok(dsa_strz("")));
    assert_false(dsa_schema_name_ok(dsa_strz("a}b")));
    assert_false(dsa_schema_name_ok(dsa_strz("a:b")));
    assert_false(dsa_schema_name_ok(dsa_str("a\0b", 3)));
}


static void
test_create(void **state)
{
    int64_t                     n;
    dsa_err_t                   err;
    dsa_str_t                   messages[3];
    redisReply                 *reply;
    dsa_schema_command_t        cmd;
    dsa_schema_conversation_t   c;

    assert_int_equal(load(&c, TENANT, &reply, &err), DSA_AGAIN);
    freeReplyObject(reply);

    messages[0] = dsa_strz(SYSTEM);
    messages[1] = dsa_strz(USER);
    messages[2] = dsa_strz(ANSWER);
    create(TENANT, messages, 3);

    assert_int_equal(load(&c, TENANT, &reply, &err), DSA_OK);
    assert_int_equal(c.version, 1);
    assert_int_equal(c.created, 1234);
    assert_int_equal(c.n_messages, 3);
    assert_true(dsa_str_eqz(c.messages[0], SYSTEM));
    assert_true(dsa_str_eqz(c.messages[1], USER));
    assert_true(dsa_str_eqz(c.messages[2], ANSWER));
    freeReplyObject(reply);

    assert_int_equal(number("DBSIZE"), 1);
    assert_in_range(number("TTL " KEY), 590, 600);

    /* another tenant has no way to it */

    assert_int_equal(load(&c, OTHER, &reply, &err), DSA_AGAIN);
    freeReplyObject(reply);

    assert_int_equal(dsa_schema_delete(&cmd, arena, dsa_strz(OTHER),
                                       dsa_strz(ID)), DSA_OK);
    reply = run(&cmd);
    assert_int_equal(dsa_schema_integer(reply, &n, &err), DSA_OK);
    assert_int_equal(n, 0);
    freeReplyObject(reply);

    /* an id that is taken stays what it is */

    assert_int_equal(dsa_schema_create(&cmd, arena, dsa_strz(TENANT),
                                       dsa_strz(ID), 1, 600,
                                       dsa_strz("{}"), NULL, 0),
                     DSA_OK);
    reply = run(&cmd);
    assert_int_equal(dsa_schema_integer(reply, &n, &err), DSA_OK);
    assert_int_equal(n, 0);
    freeReplyObject(reply);
    assert_roles("sua", 1);

    assert_int_equal(dsa_schema_delete(&cmd, arena, dsa_strz(TENANT),
                                       dsa_strz(ID)), DSA_OK);
    reply = run(&cmd);
    assert_int_equal(dsa_schema_integer(reply, &n, &err), DSA_OK);
    assert_int_equal(n, 1);
    freeReplyObject(reply);
    assert_int_equal(number("DBSIZE"), 0);
}


static void
test_order(void **state)
{
    char                        text[64];
    uint32_t                    i;
    dsa_err_t                   err;
    dsa_str_t                  *messages;
    redisReply                 *reply;
    dsa_schema_conversation_t   c;

    /* Redis gives the fields of a large hash in no order */

    messages = dsa_arena_alloc(arena, 1500 * sizeof(dsa_str_t));
    assert_non_null(messages);

    for (i = 0; i < 1500; i++) {
        snprintf(text, sizeof(text), "{\"role\": \"user\", \"n\": %u}", i);
        messages[i] = dsa_strz(dsa_arena_dup(arena, dsa_strz(text)));
    }

    create(TENANT, messages, 1500);

    assert_int_equal(load(&c, TENANT, &reply, &err), DSA_OK);
    assert_int_equal(c.n_messages, 1500);

    for (i = 0; i < 1500; i++) {
        assert_true(dsa_str_eq(c.messages[i], messages[i]));
    }

    freeReplyObject(reply);
}


static void
test_ledger(void **state)
{
    dsa_schema_record_t  r;

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

    assert_int_equal(number("HGET " LEDGER " v3|2|requests"), 2);
    assert_int_equal(number("HGET " LEDGER " v3|2|prompt_tokens"),
                     1000000000999LL);
    assert_int_equal(number("HGET " LEDGER " v3|2|cached_tokens"), 1280);
    assert_int_equal(number("HGET " LEDGER " v3|2|completion_tokens"), 40);
    assert_int_equal(number("HGET " LEDGER " v3|2|reasoning_tokens"), 14);
    assert_int_equal(number("HGET " LEDGER " v3|2|cached_host_tokens"), 256);
    assert_int_equal(number("HGET " LEDGER " v3|2|cached_redis_tokens"), 128);
    assert_int_equal(number("HLEN " LEDGER), 10);

    assert_int_equal(number("HGET dsa1:{" TENANT "}:ledger:2099-02-04 "
                            "v3|2|requests"), 1);
    assert_int_equal(number("HGET dsa1:{" OTHER "}:ledger:2099-02-03 "
                            "v3|2|requests"), 1);

    /* money stays, all else goes */

    assert_int_equal(number("TTL " LEDGER), -1);
    assert_in_range(number("TTL dsa1:{" TENANT "}:done:r1"), 86390, 86400);
    assert_int_equal(number("DBSIZE"), 9);
}


static void
test_append(void **state)
{
    dsa_str_t            turn[2];
    dsa_schema_record_t  r;

    create(TENANT, NULL, 0);
    assert_int_equal(number("EXPIRE " KEY " 5"), 1);

    turn[0] = dsa_strz(USER);
    turn[1] = dsa_strz(ANSWER);

    r = request("r1");
    r.conversation = dsa_strz(ID);
    r.version = 1;
    r.messages = turn;
    r.n_messages = 2;

    assert_recorded(&r, DSA_SCHEMA_APPENDED, 0);
    assert_roles("ua", 2);
    assert_in_range(number("TTL " KEY), 590, 600);

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
    assert_int_equal(number("DEL " KEY), 1);
    assert_recorded(&r, DSA_SCHEMA_GONE, 0);
    assert_int_equal(number("EXISTS " KEY), 0);

    assert_int_equal(number("HGET " LEDGER " v3|2|requests"), 4);
}


static void
test_trim(void **state)
{
    dsa_str_t            turn[4];
    dsa_schema_record_t  r;

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
    assert_int_equal(number("HLEN " KEY), 7 + 3);
    assert_int_equal(number("HGET " KEY " bytes"),
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

    assert_int_equal(number("HGET " LEDGER " v3|2|requests"), 6);
}


static void
test_trim_first_system(void **state)
{
    dsa_str_t            turn[3];
    dsa_schema_record_t  r;

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
    int                         again;
    dsa_err_t                   err;
    dsa_str_t                   turn[2];
    redisReply                 *reply;
    dsa_schema_record_t         r;
    dsa_schema_result_e         result;
    dsa_schema_conversation_t   c;

    turn[0] = dsa_strz(USER);
    turn[1] = dsa_strz(ANSWER);
    create(TENANT, turn, 2);

    /* a conversation that lacks a message is an error */

    assert_int_equal(number("HDEL " KEY " 0"), 1);
    assert_int_equal(load(&c, TENANT, &reply, &err), DSA_ERROR);
    freeReplyObject(reply);

    /* the ledger entry is written if the key is not a conversation */

    number("DEL " KEY);
    number("SET " KEY " x");
    assert_int_equal(load(&c, TENANT, &reply, &err), DSA_ERROR);
    freeReplyObject(reply);

    r = request("r1");
    r.conversation = dsa_strz(ID);
    r.version = 1;
    r.messages = turn;
    r.n_messages = 2;
    assert_recorded(&r, DSA_SCHEMA_DAMAGED, 0);

    number("DEL " KEY);
    number("HSET " KEY " version 1");
    r.request = dsa_strz("r2");
    assert_recorded(&r, DSA_SCHEMA_DAMAGED, 0);
    assert_int_equal(number("HGET " LEDGER " v3|2|requests"), 2);

    /* a ledger that cannot be added to is an error and stays as it is */

    number("HSET " LEDGER " v3|2|reasoning_tokens many");
    r = request("r3");
    assert_int_equal(record(&r, &result, &again, &err), DSA_ERROR);
    assert_non_null(strstr(err.text, "ledger"));
    assert_int_equal(number("HGET " LEDGER " v3|2|requests"), 2);
    assert_int_equal(number("EXISTS dsa1:{" TENANT "}:done:r3"), 0);

    number("DEL " LEDGER);
    number("SET " LEDGER " x");
    assert_int_equal(record(&r, &result, &again, &err), DSA_ERROR);
    assert_int_equal(number("EXISTS dsa1:{" TENANT "}:done:r3"), 0);
}


static void
test_full(void **state)
{
    int                  again;
    dsa_err_t            err;
    dsa_str_t            turn[2];
    dsa_schema_record_t  r;
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

    number("CONFIG SET maxmemory 1");
    assert_int_equal(record(&r, &result, &again, &err), DSA_AGAIN);
    assert_non_null(strstr(err.text, "OOM"));
    number("CONFIG SET maxmemory 0");

    assert_int_equal(number("DBSIZE"), 1);
    assert_roles("ua", 1);

    assert_recorded(&r, DSA_SCHEMA_APPENDED, 0);
    assert_roles("uaua", 2);
    assert_int_equal(number("HGET " LEDGER " v3|2|requests"), 1);
}


static void
test_bounds(void **state)
{
    dsa_schema_record_t   r;
    dsa_schema_command_t  cmd;

    r = request("r1");
    r.prompt_tokens = UINT64_MAX;
    assert_int_equal(dsa_schema_record(&cmd, arena, &r, 0), DSA_ERROR);

    r = request("r1");
    r.time = INT64_MAX;
    assert_int_equal(dsa_schema_record(&cmd, arena, &r, 0), DSA_ERROR);
}


/* Every key of a script must be in one slot of a cluster. */

static void
test_slots(void **state)
{
    size_t                i;
    dsa_str_t             word;
    const char           *tag;
    dsa_schema_record_t   r;
    dsa_schema_command_t  cmd;

    r = request("r1");
    r.conversation = dsa_strz(ID);
    r.version = 1;
    assert_int_equal(dsa_schema_record(&cmd, arena, &r, 1), DSA_OK);
    assert_true(dsa_str_eqz(cmd.argv[2], "7"));

    for (i = 3; i < 10; i++) {
        word = cmd.argv[i];
        tag = memchr(word.data, '{', word.len);
        assert_non_null(tag);
        assert_memory_equal(tag, "{" TENANT "}", sizeof("{" TENANT "}") - 1);
    }
}


/* Messages that are not stored in the order of their numbers, as items. */

static int
items_of(dsa_conversation_item_t **items, uint32_t *n,
    const dsa_schema_conversation_t *c, dsa_err_t *err)
{
    dsa_conversation_t  entries;

    entries.owner = dsa_strz("0123456789abcdef0123456789abcdef");
    entries.entries = c->messages;
    entries.numbers = c->numbers;
    entries.n = c->n_messages;

    return dsa_conversation_items(items, n, arena, &entries, err);
}


static void
test_messages(void **state)
{
    uint32_t                    n;
    dsa_err_t                   err;
    dsa_str_t                   turn[2];
    redisReply                 *reply;
    dsa_conversation_item_t    *items;
    dsa_schema_conversation_t   c;

    turn[0] = dsa_strz(USER);
    turn[1] = dsa_strz(ANSWER);
    create(TENANT, turn, 2);

    assert_int_equal(load(&c, TENANT, &reply, &err), DSA_OK);
    assert_int_equal(c.bytes, sizeof(USER ANSWER) - 1);
    assert_int_equal(items_of(&items, &n, &c, &err), DSA_OK);
    assert_int_equal(n, 2);

    /* the trees outlive the reply */

    freeReplyObject(reply);

    assert_true(dsa_str_eqz(dsa_json_get(dsa_json_get(items[0].object,
                                                      "content")->first,
                                         "text")->text, "question"));
    assert_true(dsa_str_eqz(dsa_json_get(items[1].object, "role")->text,
                            "assistant"));
    assert_memory_equal(items[1].id.data,
                        "msg_0123456789abcdef0123456789abcdef00000001",
                        4 + 32 + 8);

    /* the error names the entry: not JSON, two values, no object */

    number("HSET " KEY " 1 {");
    assert_int_equal(load(&c, TENANT, &reply, &err), DSA_OK);
    assert_int_equal(items_of(&items, &n, &c, &err), DSA_ERROR);
    assert_memory_equal(err.text, "entry 1 of a conversation: ", 27);
    freeReplyObject(reply);

    number("HSET " KEY " 1 {},{}");
    assert_int_equal(load(&c, TENANT, &reply, &err), DSA_OK);
    assert_int_equal(items_of(&items, &n, &c, &err), DSA_ERROR);
    assert_memory_equal(err.text, "entry 1 of a conversation: ", 27);
    freeReplyObject(reply);

    number("HSET " KEY " 0 [[[]]]");
    assert_int_equal(load(&c, TENANT, &reply, &err), DSA_OK);
    assert_int_equal(items_of(&items, &n, &c, &err), DSA_ERROR);
    assert_memory_equal(err.text, "entry 0 of a conversation is not", 32);
    freeReplyObject(reply);

    /* a conversation without messages has no items */

    number("DEL " KEY);
    create(TENANT, NULL, 0);
    assert_int_equal(load(&c, TENANT, &reply, &err), DSA_OK);
    assert_int_equal(items_of(&items, &n, &c, &err), DSA_OK);
    assert_int_equal(n, 0);
    freeReplyObject(reply);
}


/* Only an array has a conversation, also when the result would be "done". */

static void
test_begun(void **state)
{
    size_t                     i;
    dsa_err_t                  err;
    redisReply                 first, *elements, reply;
    dsa_arena_t               *a;
    dsa_schema_change_e        result;
    dsa_schema_conversation_t  c;

    static const struct {
        int        type;
        int        elements;    /* of an array, with the number first */
        long long  number;
        int        rc;
    } replies[] = {
        { REDIS_REPLY_ARRAY,   1, DSA_SCHEMA_CHANGE_GONE, DSA_OK    },
        { REDIS_REPLY_ARRAY,   1, DSA_SCHEMA_CHANGE_DONE, DSA_ERROR },
        { REDIS_REPLY_ARRAY,   1, -1,                     DSA_ERROR },
        { REDIS_REPLY_ARRAY,   0, 0,                      DSA_ERROR },
        { REDIS_REPLY_INTEGER, 0, DSA_SCHEMA_CHANGE_DONE, DSA_ERROR },
        { REDIS_REPLY_NIL,     0, 0,                      DSA_ERROR },
    };

    a = dsa_arena_create(4096);
    assert_non_null(a);

    elements = &first;

    for (i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
        memset(&first, 0, sizeof(first));
        first.type = REDIS_REPLY_INTEGER;
        first.integer = replies[i].number;

        memset(&reply, 0, sizeof(reply));
        reply.type = replies[i].type;
        reply.integer = replies[i].number;
        reply.elements = replies[i].elements;
        reply.element = &elements;

        assert_int_equal(dsa_schema_begun(&result, &c, a, &reply, &err),
                         replies[i].rc);
    }

    dsa_arena_destroy(a);
}


static void
test_split(void **state)
{
    dsa_str_t  messages[3];

    static const char  text[] = "{\"a\":1}\0\0{}";

    assert_int_equal(dsa_schema_split(dsa_str(NULL, 0), messages), 0);

    /* the third text ends with the NUL of the literal */

    assert_int_equal(dsa_schema_split(dsa_str(text, sizeof(text)), NULL), 3);
    assert_int_equal(dsa_schema_split(dsa_str(text, sizeof(text)), messages),
                     3);
    assert_true(dsa_str_eqz(messages[0], "{\"a\":1}"));
    assert_int_equal(messages[1].len, 0);
    assert_true(dsa_str_eqz(messages[2], "{}"));
    assert_ptr_equal(messages[0].data, text);
}


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


static void
test_entry(void **state)
{
    dsa_schema_record_t  good, record;

    memset(&good, 0, sizeof(good));
    good.request = dsa_strz("chatcmpl-1");
    good.tenant = dsa_strz(TENANT);
    good.model = dsa_strz("a model|ü");
    good.time = WHEN;
    good.prompt_tokens = 999999999999999999ULL;
    good.cached_tokens = 100;
    good.host_tokens = 60;
    good.redis_tokens = 40;

    assert_true(dsa_schema_entry_ok(&good));

#define refused(field, value)                                                 \
    record = good;                                                            \
    record.field = value;                                                     \
    assert_false(dsa_schema_entry_ok(&record))

    refused(request, dsa_strz(""));
    refused(request, dsa_strz("a}b"));
    refused(tenant, dsa_strz("a:b"));
    refused(model, dsa_strz(""));
    refused(model, dsa_strz("a\nb"));
    refused(model, dsa_strz("a\x7f"));
    refused(time, -1);
    refused(time, 253402300800);
    refused(prompt_tokens, 1000000000000000000ULL);
    refused(cached_tokens, UINT64_MAX);
    refused(cached_tokens, 99);
    refused(host_tokens, 61);
    refused(host_tokens, UINT64_MAX);
    refused(redis_tokens, 41);
    refused(redis_tokens, UINT64_MAX);
    refused(completion_tokens, UINT64_MAX);
    refused(reasoning_tokens, UINT64_MAX);

#undef refused
}


int
main(void)
{
#define test(name)  cmocka_unit_test_setup_teardown(name, clean, done)

    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_begun),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_resp),
        cmocka_unit_test(test_resp_bounds),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_entry),
        test(test_bounds),
        test(test_slots),
        test(test_create),
        test(test_order),
        test(test_messages),
        test(test_ledger),
        test(test_append),
        test(test_trim),
        test(test_trim_first_system),
        test(test_damage),
        test(test_full)
    };

    return cmocka_run_group_tests(tests, start, stop);
}
