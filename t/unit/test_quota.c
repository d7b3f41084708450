
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The account of what a tenant has stored: after each command it is compared
 * with the objects in Redis, which the test measures by itself.
 */


#include "redis_schema/conversations.h"
#include "redis_schema/responses.h"
#include "redis_schema/retained.h"
#include "t/unit/stored.h"


#define ACCOUNT   "dsa1:{" TENANT "}:stored"
#define PATTERN   "dsa1:{" TENANT "}:[crs]:*"

#define OBJECT    768               /* bytes that an object counts, */
#define ENTRY     64                /* and an entry of a conversation */

#define IDS       12                /* of each kind */
#define ROUNDS    1500


typedef struct {
    long long   bytes;
    long long   objects;
} sum_t;


static unsigned  seed = 1;


static unsigned
draw(unsigned n)
{
    return (unsigned) rand_r(&seed) % n;
}


static dsa_str_t
name(const char *fmt, unsigned n)
{
    char  text[64];

    (void) snprintf(text, sizeof(text), fmt, n);

    return dsa_strz(dsa_arena_dup(arena, dsa_strz(text)));
}


/* A text of some length, as a message of a role. */

static dsa_str_t
message(const char *role, unsigned len)
{
    dsa_str_t  text;
    dsa_buf_t  b;

    memset(&b, 0, sizeof(b));
    dsa_buf_printf(&b, "{\"role\":\"%s\",\"content\":\"", role);

    while (len-- != 0) {
        dsa_buf_add(&b, "x", 1);
    }

    dsa_buf_addz(&b, "\"}");
    assert_false(b.failed);

    text = dsa_str(dsa_arena_dup(arena, dsa_str(b.data, b.len)), b.len);
    dsa_buf_free(&b);

    return text;
}


/* What an object counts: its texts, by the type of its key. */

static long long
measure(const char *key)
{
    size_t       i;
    long long    n;
    redisReply  *reply;

    n = OBJECT;

    if (strstr(key, "}:s:") != NULL) {
        return n + number(&server, "STRLEN %s", key);
    }

    reply = query(&server, "HGETALL %s", key);
    assert_int_equal(reply->type, REDIS_REPLY_ARRAY);

    for (i = 0; i < reply->elements; i += 2) {
        if (strspn(reply->element[i]->str, "0123456789")
            == reply->element[i]->len)
        {
            n += ENTRY + (long long) reply->element[i + 1]->len;

        } else if (strcmp(reply->element[i]->str, "metadata") == 0
                   || strcmp(reply->element[i]->str, "input") == 0
                   || strcmp(reply->element[i]->str, "before") == 0
                   || strcmp(reply->element[i]->str, "output") == 0
                   || strcmp(reply->element[i]->str, "after") == 0)
        {
            n += (long long) reply->element[i + 1]->len;
        }
    }

    freeReplyObject(reply);

    return n;
}


/*
 * The field that counts an object ends after the object has expired, and before
 * a thirty-second part of its lifetime has passed.
 */

static void
check_share(const char *key)
{
    long long    at, expires, left;
    redisReply  *reply;

    if (strstr(key, "}:s:") != NULL) {
        return;
    }

    reply = query(&server, "HGET %s stored", key);
    assert_int_equal(reply->type, REDIS_REPLY_STRING);
    at = atoll(reply->str);
    freeReplyObject(reply);

    reply = query(&server, "PEXPIRETIME %s", key);
    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    expires = reply->integer;
    freeReplyObject(reply);

    left = number(&server, "TTL %s", key);
    assert_true(left > 0);
    assert_true(at * 1000 >= expires);
    assert_true(at * 1000 <= expires + (left + 60) / 32 * 1000 + 2000);
}


static sum_t
objects(void)
{
    sum_t        sum;
    size_t       i;
    redisReply  *keys;

    sum.bytes = 0;
    keys = query(&server, "KEYS " PATTERN);
    sum.objects = (long long) keys->elements;

    for (i = 0; i < keys->elements; i++) {
        sum.bytes += measure(keys->element[i]->str);
        check_share(keys->element[i]->str);
    }

    freeReplyObject(keys);

    return sum;
}


static sum_t
account(void)
{
    sum_t        sum, field;
    size_t       i;
    redisReply  *reply;

    sum.bytes = 0;
    sum.objects = 0;

    reply = query(&server, "HVALS " ACCOUNT);
    assert_int_equal(reply->type, REDIS_REPLY_ARRAY);

    for (i = 0; i < reply->elements; i++) {
        assert_int_equal(sscanf(reply->element[i]->str, "%lld %lld",
                                &field.objects, &field.bytes), 2);
        assert_true(field.objects > 0 && field.bytes > 0);
        sum.objects += field.objects;
        sum.bytes += field.bytes;
    }

    freeReplyObject(reply);

    return sum;
}


static void
assert_account(void)
{
    sum_t  want, have;

    want = objects();
    have = account();

    assert_int_equal(have.objects, want.objects);
    assert_int_equal(have.bytes, want.bytes);

    if (want.objects != 0) {
        assert_true(number(&server, "TTL " ACCOUNT) > 0);
    }
}


static void
random_node(dsa_response_t *node)
{
    memset(node, 0, sizeof(*node));

    node->id = name("resp_%032u", draw(IDS));
    node->parent = draw(3) == 0 ? dsa_strz("") : name("resp_%032u", draw(IDS));
    node->conversation = draw(4) == 0 ? dsa_strz(ID) : dsa_strz("");
    node->input = message("user", draw(400));
    node->before = dsa_strz("{\"id\":1,\"output\":");
    node->output = message("assistant", draw(400));
    node->after = dsa_strz(",\"usage\":null}");
}


static void
random_turn(dsa_schema_command_t *cmd, dsa_str_t id, const dsa_str_t *messages,
    const dsa_schema_storage_t *keep)
{
    static uint64_t     n;
    dsa_schema_entry_t  r;

    r = request("chatcmpl-0");
    r.number = ++n;
    r.conversation = id;
    r.version = 1 + draw(2);
    r.storage = keep;
    r.messages = messages;
    r.n_messages = 2;
    r.max_messages = 6;

    assert_int_equal(dsa_schema_record(cmd, arena, &r, 1), DSA_OK);
}


/* A command of any kind, for one of a few ids. */

static void
random_command(dsa_schema_command_t *cmd, const dsa_schema_storage_t *keep)
{
    int             rc;
    dsa_str_t       tenant, id, messages[2];
    dsa_response_t  node;

    tenant = dsa_strz(TENANT);
    id = name("conv_%032u", draw(IDS));
    messages[0] = message("user", draw(300));
    messages[1] = message("assistant", draw(300));

    switch (draw(10)) {

    case 0:
    case 1:
        rc = dsa_schema_create(cmd, arena, tenant, id, 1, keep,
                               message("user", draw(100)), messages, draw(3));
        break;

    case 2:
        rc = dsa_schema_add(cmd, arena, tenant, id, keep, messages, 2);
        break;

    case 3:
        rc = dsa_schema_edit(cmd, arena, tenant, id, 1 + draw(2), keep->ttl,
                             draw(3), draw(2) ? dsa_strz("") : dsa_strz("{}"));
        break;

    case 4:
        rc = dsa_schema_metadata(cmd, arena, tenant, id, keep,
                                 message("user", draw(200)));
        break;

    case 5:
        rc = dsa_schema_delete(cmd, arena, tenant, id);
        break;

    case 6:
        random_turn(cmd, id, messages, keep);
        rc = DSA_OK;
        break;

    case 7:
        random_node(&node);
        rc = dsa_response_save(cmd, arena, tenant, &node, 1, keep);
        break;

    case 8:
        rc = dsa_response_delete(cmd, arena, tenant,
                                 name("resp_%032u", draw(IDS)));
        break;

    default:
        rc = dsa_schema_retain(cmd, arena, tenant, name("call%u", draw(IDS)),
                               (uint64_t) keep->ttl * 1000, keep, messages[0]);
        break;
    }

    assert_int_equal(rc, DSA_OK);
}


static void
test_random(void **state)
{
    sum_t                  before, after;
    int64_t                bytes, n;
    unsigned               i, refused, quota;
    redisReply            *reply;
    dsa_arena_t           *all;
    dsa_schema_command_t   cmd;
    dsa_schema_storage_t   keep;

    static const int64_t  ttl[] = { 60, 100, 5000, 86400, 2592000, 3000000000 };

    all = arena;
    refused = 0;
    quota = 0;

    for (i = 0; i < ROUNDS; i++) {
        arena = dsa_arena_create(1 << 20);
        assert_non_null(arena);

        keep.ttl = ttl[draw(6)];
        keep.max_bytes = draw(3) == 0 ? 8000 : 1 << 30;
        keep.max_objects = draw(6) == 0 ? 8 : 1000000;

        random_command(&cmd, &keep);
        before = account();

        /* one command in eight is refused for memory */

        if (i % 8 == 0) {
            ok(&server, "CONFIG SET maxmemory 1");
        }

        reply = run(&cmd);
        ok(&server, "CONFIG SET maxmemory 0");

        after = account();

        if (reply->type == REDIS_REPLY_ERROR) {
            if (dsa_schema_over_quota(reply, &bytes, &n)) {
                assert_int_equal(bytes, before.bytes);
                assert_int_equal(n, before.objects);
                quota++;

            } else {
                assert_true(dsa_resp_is_error(reply, "OOM"));
                refused++;
            }

            assert_int_equal(after.bytes, before.bytes);
            assert_int_equal(after.objects, before.objects);
        }

        /* what grows stays within the quota */

        assert_true(after.bytes <= before.bytes
                    || after.bytes <= keep.max_bytes);
        assert_true(after.objects <= before.objects
                    || after.objects <= keep.max_objects);

        freeReplyObject(reply);
        assert_account();
        dsa_arena_destroy(arena);
    }

    arena = all;

    assert_true(refused > 20);
    assert_true(quota > 20);
    assert_true(objects().objects > 5);
}


/* A turn above the quota is not stored; the ledger has its entry. */

static void
test_turn(void **state)
{
    sum_t                 had;
    dsa_str_t             turn[2];
    dsa_schema_entry_t    r;
    dsa_schema_storage_t  keep;

    turn[0] = dsa_strz(USER);
    turn[1] = dsa_strz(ANSWER);
    create(TENANT, turn, 2);
    had = account();

    keep = storage;
    keep.max_bytes = had.bytes + 2 * ENTRY;

    r = request("r1");
    r.conversation = dsa_strz(ID);
    r.version = 1;
    r.storage = &keep;
    r.messages = turn;
    r.n_messages = 2;

    assert_recorded(&r, DSA_SCHEMA_QUOTA, 0);
    assert_recorded(&r, DSA_SCHEMA_QUOTA, 1);
    assert_roles("ua", 1);
    assert_int_equal(value("HGET " LEDGER " v3|2|requests"), 1);

    keep.max_bytes += (int64_t) (turn[0].len + turn[1].len);
    r.request = dsa_strz("r2");

    assert_recorded(&r, DSA_SCHEMA_APPENDED, 0);
    assert_roles("uaua", 2);
    assert_account();
}


/* A tenant's quota is its own. */

static void
test_tenants(void **state)
{
    dsa_str_t  turn;

    turn = dsa_strz(USER);
    create(TENANT, &turn, 1);
    create(OTHER, &turn, 1);

    assert_int_equal(account().objects, 1);
    assert_account();
}


/* A damaged account counts from what it has, and commands go on. */

static void
test_damaged(void **state)
{
    dsa_str_t             turn;
    redisReply           *reply;
    dsa_schema_command_t  cmd;

    turn = dsa_strz(USER);

    ok(&server, "SET " ACCOUNT " x");
    create(TENANT, &turn, 1);
    assert_account();

    assert_int_equal(number(&server, "HSET " ACCOUNT " x y 9999999999 -1"), 2);

    assert_int_equal(dsa_schema_delete(&cmd, arena, dsa_strz(TENANT),
                                       dsa_strz(ID)), DSA_OK);
    reply = run(&cmd);
    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    assert_int_equal(reply->integer, 1);
    freeReplyObject(reply);

    assert_int_equal(number(&server, "EXISTS " ACCOUNT), 0);
}


/*
 * The clock of Redis, which the script reads, moves for three lifetimes.  The
 * account has what is stored, at most a thirty-second part of a lifetime
 * longer, in a bounded number of fields.
 */

#define STEP   9973                 /* seconds */
#define LIFE   2592000

static void
test_time(void **state)
{
    char                  text[256];
    sum_t                 have;
    int64_t               now, first;
    unsigned              i, least, most;
    dsa_buf_t             script;
    dsa_str_t             turn;
    redisReply           *reply;
    dsa_arena_t          *all;
    dsa_schema_command_t  cmd;
    dsa_schema_storage_t  keep;

    all = arena;
    keep = storage;
    keep.ttl = LIFE;
    first = 1800000000;

    for (i = 0; i < 3 * LIFE / STEP; i++) {
        arena = dsa_arena_create(1 << 20);
        assert_non_null(arena);

        now = first + (int64_t) i * STEP;
        turn = dsa_strz(USER);

        assert_int_equal(dsa_schema_create(&cmd, arena, dsa_strz(TENANT),
                                           name("conv_%032u", i), 1, &keep,
                                           dsa_strz("{}"), &turn, 1), DSA_OK);

        (void) snprintf(text, sizeof(text),
                        "local redis = setmetatable({ pcall = function(...)\n"
                        "  if ... == 'TIME' then return { '%lld', '0' } end\n"
                        "  return redis.pcall(...)\n"
                        "end }, { __index = redis })\n", (long long) now);

        memset(&script, 0, sizeof(script));
        dsa_buf_addz(&script, text);
        dsa_buf_add(&script, cmd.argv[1].data, cmd.argv[1].len);
        cmd.argv[1] = dsa_str(script.data, script.len);

        reply = run(&cmd);
        assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
        assert_int_equal(reply->integer, 1);
        freeReplyObject(reply);
        dsa_buf_free(&script);

        least = 1 + (i < LIFE / STEP ? i : LIFE / STEP);
        most = 1 + (i < (LIFE + LIFE / 32 + 2) / STEP
                    ? i : (LIFE + LIFE / 32 + 2) / STEP);

        have = account();
        assert_in_range(have.objects, least, most);
        assert_in_range(number(&server, "HLEN " ACCOUNT), 1, 65);

        dsa_arena_destroy(arena);
    }

    arena = all;
}


/*
 * What Redis needs for an object is at most a quarter more than what it counts.
 */

static void
test_memory(void **state)
{
    int                   i;
    double                memory;
    unsigned              n, k;
    dsa_str_t             messages[256];
    redisReply           *reply;
    dsa_schema_command_t  cmd;

    static const unsigned  lens[] = { 0, 30, 100, 1100, 5000 };

    for (i = 0; i < 5; i++) {
        for (n = 1; n <= 256; n *= 4) {

            for (k = 0; k < n; k++) {
                messages[k] = message("user", lens[i]);
            }

            assert_int_equal(dsa_schema_create(&cmd, arena, dsa_strz(TENANT),
                                               dsa_strz(ID), 1, &storage,
                                               dsa_strz("{}"), messages, n),
                             DSA_OK);
            reply = run(&cmd);
            assert_int_equal(reply->integer, 1);
            freeReplyObject(reply);

            memory = number(&server, "MEMORY USAGE " KEY " SAMPLES 0");
            assert_account();

            if (memory > 1.25 * (double) account().bytes) {
                fail_msg("%u entries of %u bytes need %.0f bytes and count "
                         "%lld", n, lens[i], memory, account().bytes);
            }

            assert_int_equal(number(&server, "DEL " KEY " " ACCOUNT), 2);
        }
    }
}


int
main(void)
{
#define test(name)  cmocka_unit_test_setup_teardown(name, begin, end)

    const struct CMUnitTest  tests[] = {
        test(test_random),
        test(test_turn),
        test(test_tenants),
        test(test_damaged),
        test(test_time),
        test(test_memory)
    };

    return cmocka_run_group_tests(tests, start, stop);
}
