
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The schema against a real redis-server: names, bounds of an entry of the
 * ledger, and conversations.
 */


#include "context/conversation.h"
#include "redis_schema/conversations.h"
#include "redis_schema/memory.h"
#include "t/unit/stored.h"


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
test_entry(void **state)
{
    dsa_schema_entry_t  good, entry;

    memset(&good, 0, sizeof(good));
    good.request = dsa_strz("chatcmpl-1");
    good.tenant = dsa_strz(TENANT);
    good.model = dsa_strz("a model|ü");
    good.time = WHEN;
    good.prompt_tokens = 999999999999999999ULL;
    good.cached_tokens = 100;
    good.tier_tokens[DSA_TIER_HOST] = 60;
    good.tier_tokens[DSA_TIER_REDIS] = 40;

    assert_true(dsa_schema_entry_ok(&good));

#define refused(field, value)                                                 \
    entry = good;                                                            \
    entry.field = value;                                                     \
    assert_false(dsa_schema_entry_ok(&entry))

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
    refused(tier_tokens[DSA_TIER_HOST], 61);
    refused(tier_tokens[DSA_TIER_HOST], UINT64_MAX);
    refused(tier_tokens[DSA_TIER_REDIS], 41);
    refused(tier_tokens[DSA_TIER_REDIS], UINT64_MAX);
    refused(completion_tokens, UINT64_MAX);
    refused(reasoning_tokens, UINT64_MAX);

#undef refused
}


static void
test_bounds(void **state)
{
    dsa_schema_entry_t    r;
    dsa_schema_storage_t  own;
    dsa_schema_command_t  cmd;

    r = request("r1");
    assert_int_equal(dsa_schema_record(&cmd, arena, &r, 0), DSA_OK);

    r.prompt_tokens = UINT64_MAX;
    assert_int_equal(dsa_schema_record(&cmd, arena, &r, 0), DSA_ERROR);

    r = request("r1");
    r.time = INT64_MAX;
    assert_int_equal(dsa_schema_record(&cmd, arena, &r, 0), DSA_ERROR);

    /* Redis could reject a lifetime when other commands of a script have run */

    r = request("r1");
    r.conversation = dsa_strz(ID);
    r.storage = &own;
    own = storage;
    own.ttl = DSA_SCHEMA_TTL_MAX;
    assert_int_equal(dsa_schema_record(&cmd, arena, &r, 0), DSA_OK);

    own.ttl++;
    assert_int_equal(dsa_schema_record(&cmd, arena, &r, 0), DSA_ERROR);

    own.ttl = 0;
    assert_int_equal(dsa_schema_record(&cmd, arena, &r, 0), DSA_ERROR);

    own = storage;
    own.max_bytes = DSA_SCHEMA_QUOTA_MAX + 1;
    assert_int_equal(dsa_schema_record(&cmd, arena, &r, 0), DSA_ERROR);

    own = storage;
    own.max_objects = 0;
    assert_int_equal(dsa_schema_record(&cmd, arena, &r, 0), DSA_ERROR);
}


/* Every key of a script must be in one cluster slot. */

static void
test_cluster_slots(void **state)
{
    size_t                i;
    dsa_str_t             word;
    const char           *tag;
    dsa_schema_entry_t    r;
    dsa_schema_command_t  cmd;

    r = request("r1");
    r.conversation = dsa_strz(ID);
    r.version = 1;
    assert_int_equal(dsa_schema_record(&cmd, arena, &r, 1), DSA_OK);
    assert_true(dsa_str_eqz(cmd.argv[2], "9"));

    for (i = 3; i < 12; i++) {
        word = cmd.argv[i];
        tag = memchr(word.data, '{', word.len);
        assert_non_null(tag);
        assert_memory_equal(tag, "{" TENANT "}", sizeof("{" TENANT "}") - 1);
    }
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

    assert_int_equal(number(&server, "DBSIZE"), 2);
    assert_in_range(number(&server, "TTL " KEY), 300, 600);

    /* another tenant has no way to it */

    assert_int_equal(load(&c, OTHER, &reply, &err), DSA_AGAIN);
    freeReplyObject(reply);

    assert_int_equal(dsa_schema_delete(&cmd, arena, dsa_strz(OTHER),
                                       dsa_strz(ID)), DSA_OK);
    reply = run(&cmd);
    assert_int_equal(dsa_schema_integer(reply, &n, &err), DSA_OK);
    assert_int_equal(n, 0);
    freeReplyObject(reply);

    /* a conversation whose id exists is not replaced */

    assert_int_equal(dsa_schema_create(&cmd, arena, dsa_strz(TENANT),
                                       dsa_strz(ID), 1, &storage,
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
    assert_int_equal(number(&server, "DBSIZE"), 0);
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

    (void) number(&server, "HSET " KEY " 1 {");
    assert_int_equal(load(&c, TENANT, &reply, &err), DSA_OK);
    assert_int_equal(items_of(&items, &n, &c, &err), DSA_ERROR);
    assert_memory_equal(err.text, "entry 1 of a conversation: ", 27);
    freeReplyObject(reply);

    (void) number(&server, "HSET " KEY " 1 {},{}");
    assert_int_equal(load(&c, TENANT, &reply, &err), DSA_OK);
    assert_int_equal(items_of(&items, &n, &c, &err), DSA_ERROR);
    assert_memory_equal(err.text, "entry 1 of a conversation: ", 27);
    freeReplyObject(reply);

    (void) number(&server, "HSET " KEY " 0 [[[]]]");
    assert_int_equal(load(&c, TENANT, &reply, &err), DSA_OK);
    assert_int_equal(items_of(&items, &n, &c, &err), DSA_ERROR);
    assert_memory_equal(err.text, "entry 0 of a conversation is not", 32);
    freeReplyObject(reply);

    /* a conversation without messages has no items */

    (void) number(&server, "DEL " KEY);
    create(TENANT, NULL, 0);
    assert_int_equal(load(&c, TENANT, &reply, &err), DSA_OK);
    assert_int_equal(items_of(&items, &n, &c, &err), DSA_OK);
    assert_int_equal(n, 0);
    freeReplyObject(reply);
}


/* A reply to INFO with this text. */

static int
read_memory(dsa_schema_memory_t *memory, const char *text, dsa_err_t *err)
{
    char        copy[512];
    redisReply  reply;

    assert_true(strlen(text) < sizeof(copy));
    strcpy(copy, text);

    memset(&reply, 0, sizeof(reply));
    reply.type = REDIS_REPLY_STRING;
    reply.str = copy;
    reply.len = strlen(text);

    return dsa_schema_memory_reply(memory, &reply, err);
}


static void
test_memory(void **state)
{
    size_t                 i;
    dsa_err_t              err;
    redisReply            *reply;
    dsa_schema_memory_t    memory;
    dsa_schema_command_t   cmd;

    static const char *const  bad[] = {
        "",
        "used_memory:1\r\nmaxmemory:0\r\ntotal_system_memory:9\r\n",
        "used_memory:1\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n"
        "aof_enabled:1\r\n",
        "used_memory:x\r\nmaxmemory:0\r\ntotal_system_memory:9\r\n"
        "maxmemory_policy:noeviction\r\naof_enabled:1\r\n",
        "used_memory:\r\nmaxmemory:0\r\ntotal_system_memory:9\r\n"
        "maxmemory_policy:noeviction\r\naof_enabled:1\r\n",
        "used_memory:1000000000000000000\r\nmaxmemory:0\r\n"
        "total_system_memory:9\r\nmaxmemory_policy:noeviction\r\n"
        "aof_enabled:1\r\n",
        "used_memory:1\r\nmaxmemory:0\r\ntotal_system_memory:9\r\n"
        "maxmemory_policy:noeviction\r\n",
        "used_memory_human:1\r\nmaxmemory:0\r\ntotal_system_memory:9\r\n"
        "maxmemory_policy:noeviction\r\naof_enabled:1\r\n"
    };

    assert_int_equal(dsa_schema_memory(&cmd, arena), DSA_OK);

    ok(&server, "CONFIG SET maxmemory 100mb");
    ok(&server, "CONFIG SET appendonly yes");
    reply = run(&cmd);
    assert_int_equal(dsa_schema_memory_reply(&memory, reply, &err), DSA_OK);
    assert_in_range(memory.used, 100000, 100000000);
    assert_int_equal(memory.limit, 100 * 1024 * 1024);
    assert_int_equal(memory.evicts, 0);
    assert_int_equal(memory.durable, 1);
    freeReplyObject(reply);

    ok(&server, "CONFIG SET appendonly no");
    ok(&server, "CONFIG SET maxmemory-policy volatile-lru");
    reply = run(&cmd);
    assert_int_equal(dsa_schema_memory_reply(&memory, reply, &err), DSA_OK);
    assert_int_equal(memory.evicts, 1);
    assert_int_equal(memory.durable, 0);
    freeReplyObject(reply);

    /* without a limit, nothing is evicted */

    ok(&server, "CONFIG SET maxmemory 0");
    reply = run(&cmd);
    assert_int_equal(dsa_schema_memory_reply(&memory, reply, &err), DSA_OK);
    assert_true(memory.limit > memory.used);
    assert_int_equal(memory.evicts, 0);
    freeReplyObject(reply);
    ok(&server, "CONFIG SET maxmemory-policy noeviction");

    /* lines may end without CR, and the last one without LF */

    assert_int_equal(read_memory(&memory, "# Memory\nused_memory:123456789\n"
                                 "maxmemory:7\ntotal_system_memory:9\n"
                                 "aof_enabled:0\n"
                                 "maxmemory_policy:allkeys-lru", &err),
                     DSA_OK);
    assert_int_equal(memory.durable, 0);
    assert_int_equal(memory.used, 123456789);
    assert_int_equal(memory.limit, 7);
    assert_int_equal(memory.evicts, 1);

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(read_memory(&memory, bad[i], &err), DSA_ERROR);
        assert_non_null(strstr(err.text, "used_memory"));
    }

    reply = query(&server, "GET x y");
    assert_int_equal(dsa_schema_memory_reply(&memory, reply, &err), DSA_ERROR);
    assert_non_null(strstr(err.text, "wrong number of arguments"));
    freeReplyObject(reply);

    reply = query(&server, "DBSIZE");
    assert_int_equal(dsa_schema_memory_reply(&memory, reply, &err), DSA_ERROR);
    freeReplyObject(reply);
}


int
main(void)
{
#define test(name)  cmocka_unit_test_setup_teardown(name, begin, end)

    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_begun),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_entry),
        test(test_bounds),
        test(test_cluster_slots),
        test(test_create),
        test(test_order),
        test(test_messages),
        test(test_memory)
    };

    return cmocka_run_group_tests(tests, start, stop);
}
