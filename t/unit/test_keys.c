
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The entry of a key: what is read and written, and each limit.  The texts are
 * written by hand, or by a writer of the test that does not share code with the
 * one that is tested.
 */


#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis_schema/keys.h"


#define A16     "aaaaaaaaaaaaaaaa"
#define HASH    "00112233445566778899aabbccddeeff"                            \
                "00112233445566778899aabbccddeeff"
#define OTHER   "ffeeddccbbaa99887766554433221100"                            \
                "ffeeddccbbaa99887766554433221100"

#define HEAD    "{\"id\":\"key_0123456789abcdef\",\"name\":\"n\","            \
                "\"tenant\":\"t\",\"hash\":\"" HASH "\","
#define MIN     HEAD "\"state\":\"active\",\"created\":0"

#define RANDOM_KEYS  20000


static dsa_arena_t  *arena;
static uint64_t      seed;


static int
begin(void **state)
{
    arena = dsa_arena_create(1 << 20);
    assert_non_null(arena);

    return 0;
}


static int
end(void **state)
{
    dsa_arena_destroy(arena);

    return 0;
}


static void
accept(dsa_key_t *key, const char *text)
{
    dsa_err_t  err;

    if (dsa_key_read(key, arena, dsa_strz(text), &err) != DSA_OK) {
        fail_msg("%s: %s", text, err.text);
    }
}


/* The error must contain why, which says what would be accepted. */

static void
refuse(const char *text, const char *why)
{
    dsa_err_t  err;
    dsa_key_t  key;

    if (dsa_key_read(&key, arena, dsa_strz(text), &err) == DSA_OK) {
        fail_msg("accepted: %s", text);
    }

    if (strstr(err.text, why) == NULL) {
        fail_msg("\"%s\" for %s; \"%s\" was expected", err.text, text, why);
    }
}


static void
assert_str(dsa_str_t text, const char *want)
{
    assert_int_equal(text.len, strlen(want));
    assert_memory_equal(text.data, want, text.len);
}


static void
assert_written(const dsa_key_t *key, const char *want)
{
    dsa_buf_t  b;

    memset(&b, 0, sizeof(dsa_buf_t));
    dsa_key_write(&b, key);
    assert_false(b.failed);
    assert_str(dsa_str(b.data, b.len), want);
    dsa_buf_free(&b);
}


static void
test_least(void **state)
{
    int        i;
    dsa_key_t  key;

    accept(&key, MIN "}");

    assert_str(key.id, "key_0123456789abcdef");
    assert_str(key.name, "n");
    assert_str(key.tenant, "t");
    assert_int_equal(key.hash[1], 0x11);
    assert_int_equal(key.hash[31], 0xff);
    assert_int_equal(key.old_until, 0);
    assert_int_equal(key.state, DSA_KEY_ACTIVE);
    assert_int_equal(key.created, 0);
    assert_int_equal(key.expires, 0);
    assert_int_equal(key.n_models, 0);
    assert_int_equal(key.limits.rpm, 0);
    assert_int_equal(key.limits.tpm, 0);
    assert_int_equal(key.limits.concurrency, 0);
    assert_int_equal(key.limits.weight, 100);
    assert_int_equal(key.limits.priority, DSA_KEY_NORMAL);

    for (i = 0; i < DSA_KEY_PERIODS; i++) {
        assert_int_equal(key.limits.budget[i].soft, -1);
        assert_int_equal(key.limits.budget[i].hard, -1);
    }

    assert_written(&key, MIN "}");
}


static void
test_all(void **state)
{
    dsa_key_t          key;

    static const char  text[] = HEAD
        "\"old\":{\"hash\":\"" OTHER "\",\"until\":1763848800},"
        "\"state\":\"revoked\",\"created\":1763848700,"
        "\"expires\":253402300799,\"models\":[\"v3.2\",\"a|b/c\"],"
        "\"rpm\":1,\"tpm\":1000000000000,\"concurrency\":1000000,"
        "\"weight\":10000,\"priority\":\"high\","
        "\"budget\":{\"day\":{\"soft\":\"0.000000000001\",\"hard\":\"1.5\"},"
        "\"month\":{\"soft\":\"1000000\"},\"total\":{\"hard\":\"0\"}}}";

    accept(&key, text);

    assert_int_equal(key.old_hash[0], 0xff);
    assert_int_equal(key.old_until, 1763848800);
    assert_int_equal(key.state, DSA_KEY_REVOKED);
    assert_int_equal(key.created, 1763848700);
    assert_int_equal(key.expires, 253402300799);
    assert_int_equal(key.n_models, 2);
    assert_str(key.models[0], "v3.2");
    assert_str(key.models[1], "a|b/c");
    assert_int_equal(key.limits.rpm, 1);
    assert_int_equal(key.limits.tpm, 1000000000000);
    assert_int_equal(key.limits.concurrency, 1000000);
    assert_int_equal(key.limits.weight, 10000);
    assert_int_equal(key.limits.priority, DSA_KEY_HIGH);
    assert_int_equal(key.limits.budget[DSA_KEY_DAY].soft, 1);
    assert_int_equal(key.limits.budget[DSA_KEY_DAY].hard, 1500000000000);
    assert_int_equal(key.limits.budget[DSA_KEY_MONTH].soft,
                     1000000000000000000);
    assert_int_equal(key.limits.budget[DSA_KEY_MONTH].hard, -1);
    assert_int_equal(key.limits.budget[DSA_KEY_TOTAL].soft, -1);
    assert_int_equal(key.limits.budget[DSA_KEY_TOTAL].hard, 0);

    assert_written(&key, text);
}


/* Spaces, another order and values that may be omitted are read as well. */

static void
test_other_forms(void **state)
{
    dsa_key_t  key;

    accept(&key, " { \"created\" : 5, \"weight\": 100,\n\"priority\":"
           " \"normal\", \"state\":\"disabled\", \"hash\" :\"" HASH "\","
           " \"tenant\":\"caf\\u00e9\", \"name\":\"say \\\"hi\\\"\","
           " \"id\":\"key_" A16 "\" }\n");

    assert_written(&key, "{\"id\":\"key_" A16 "\",\"name\":\"say \\\"hi\\\"\","
                   "\"tenant\":\"caf\xc3\xa9\",\"hash\":\"" HASH "\","
                   "\"state\":\"disabled\",\"created\":5}");
}


static void
test_members(void **state)
{
    refuse("", "not JSON");
    refuse("{", "not JSON");
    refuse(MIN "}}", "not JSON");
    refuse(MIN ",\"state\":\"active\"}", "a member twice");
    refuse("[]", "not a JSON object");
    refuse("null", "not a JSON object");
    refuse("{}", "no member \"id\"");
    refuse(MIN ",\"key\":\"x\"}", "unknown member");
    refuse(MIN ",\"Rpm\":1}", "unknown member");
    refuse(HEAD "\"created\":0}", "no member \"state\"");
    refuse(HEAD "\"state\":\"active\"}", "no member \"created\"");
    refuse("{\"id\":\"key_" A16 "\",\"name\":\"n\",\"hash\":\"" HASH "\","
           "\"state\":\"active\",\"created\":0}", "no member \"tenant\"");
    refuse("{\"id\":\"key_" A16 "\",\"tenant\":\"n\",\"hash\":\"" HASH "\","
           "\"state\":\"active\",\"created\":0}", "no member \"name\"");
    refuse("{\"id\":\"key_" A16 "\",\"tenant\":\"n\",\"name\":\"n\","
           "\"state\":\"active\",\"created\":0}", "no member \"hash\"");
}


/* A key entry with the text of a member; the rest is valid. */

static const char *
with(const char *member, const char *value)
{
    int          i;

    static char  text[8192];

    static const char *const  names[] = { "id", "name", "tenant", "hash",
                                          "state", "created" };
    static const char *const  values[] = {
        "\"key_0123456789abcdef\"", "\"n\"", "\"t\"", "\"" HASH "\"",
        "\"active\"", "0" };

    (void) snprintf(text, sizeof(text), "{\"%s\":%s", member, value);

    for (i = 0; i < 6; i++) {
        if (strcmp(names[i], member) != 0) {
            (void) snprintf(text + strlen(text), sizeof(text) - strlen(text),
                            ",\"%s\":%s", names[i], values[i]);
        }
    }

    strcat(text, "}");

    return text;
}


static const char *
repeated(const char *before, const char *piece, int n, const char *after)
{
    int          i;

    static char  text[8192];

    (void) snprintf(text, sizeof(text), "%s", before);

    for (i = 0; i < n; i++) {
        strcat(text, piece);
    }

    return strcat(text, after);
}


static void
test_strings(void **state)
{
    int                i;
    dsa_key_t          key;

    static const char *const  ids[] = {
        "1", "null", "\"\"", "\"key_\"", "\"key_0123456789abcde\"",
        "\"key_0123456789abcdef0\"", "\"key_0123456789ABCDEF\"",
        "\"key_0123456789abcdeg\"", "\"kez_0123456789abcdef\""
    };
    static const char *const  hashes[] = {
        "\"\"", "1", "\"" HASH "0\"", "\"0" HASH "\"", "\"sk-dsa-x\"",
        "\"00112233445566778899AABBCCDDEEFF00112233445566778899AABBCCDDEEFF\"",
        "\"g0112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\""
    };
    static const char *const  names[] = {
        "\"\"", "\"a\\n\"", "\"a\\u0000b\"", "\"\\u007f\"", "\"\\u0085\"",
        "[\"a\"]", "7"
    };

    for (i = 0; i < 9; i++) {
        refuse(with("id", ids[i]), "\"id\" of a key is");
    }

    for (i = 0; i < 7; i++) {
        refuse(with("hash", hashes[i]), "64 hexadecimal digits");
        refuse(with("name", names[i]), "\"name\" of a key is");
        refuse(with("tenant", names[i]), "\"tenant\" of a key is");
    }

    accept(&key, with("name", repeated("\"", "x", 64, "\"")));
    accept(&key, with("tenant", repeated("\"", "\xc3\xa9", 32, "\"")));
    refuse(with("name", repeated("\"", "x", 65, "\"")), "1 to 64 bytes");
    refuse(with("tenant", repeated("\"", "\xc3\xa9", 33, "\"")),
           "1 to 64 bytes");

    refuse(with("state", "\"ACTIVE\""), "\"active\", \"disabled\"");
    refuse(with("state", "0"), "\"active\", \"disabled\"");
    refuse(with("priority", "\"highest\""), "\"low\", \"normal\" or");
    refuse(with("priority", "1"), "\"low\", \"normal\" or");
    refuse(with("priority", "null"), "\"low\", \"normal\" or");
}


/* An error may be logged, and someone may have stored the key itself. */

static void
test_secret(void **state)
{
    int        i;
    char       value[64];
    dsa_err_t  err;
    dsa_key_t  key;

    static const char *const  members[] = {
        "id", "hash", "old", "state", "created", "expires", "models", "rpm",
        "tpm", "concurrency", "weight", "priority", "budget", "key", "secret"
    };

    (void) snprintf(value, sizeof(value), "\"sk-dsa-secret\"");

    for (i = 0; i < 15; i++) {
        assert_int_equal(dsa_key_read(&key, arena,
                                      dsa_strz(with(members[i], value)), &err),
                         DSA_ERROR);
        assert_null(strstr(err.text, "secret"));
    }

    refuse("{\"hash\":\"sk-dsa-secret", "not JSON");
    assert_int_equal(dsa_key_read(&key, arena,
                                  dsa_strz("{\"sk-dsa-secret\":1,"
                                           "\"sk-dsa-secret\":2}"), &err),
                     DSA_ERROR);
    assert_null(strstr(err.text, "secret"));
    assert_int_equal(dsa_key_read(&key, arena,
                                  dsa_strz("{\"hash\":sk-dsa-secret}"), &err),
                     DSA_ERROR);
    assert_null(strstr(err.text, "secret"));
}


static void
test_integers(void **state)
{
    int        i, k;
    char       value[32];
    dsa_key_t  key;

    static const struct {
        const char  *name;
        int64_t      min;
        int64_t      max;
    } member[] = {
        { "created", 0, 253402300799 },
        { "expires", 1, 253402300799 },
        { "rpm", 1, 1000000000000 },
        { "tpm", 1, 1000000000000 },
        { "concurrency", 1, 1000000 },
        { "weight", 1, 10000 }
    };

    static const char *const  invalid[] = {
        "\"1\"", "1.0", "1e1", "true", "null", "[1]", "-1",
        "9223372036854775808", "18446744073709551617"
    };

    for (i = 0; i < 6; i++) {
        (void) snprintf(value, sizeof(value), "%" PRId64, member[i].min);
        accept(&key, with(member[i].name, value));
        (void) snprintf(value, sizeof(value), "%" PRId64, member[i].max);
        accept(&key, with(member[i].name, value));

        (void) snprintf(value, sizeof(value), "%" PRId64, member[i].min - 1);
        refuse(with(member[i].name, value), "expected an integer from");
        (void) snprintf(value, sizeof(value), "%" PRId64, member[i].max + 1);
        refuse(with(member[i].name, value), "expected an integer from");

        for (k = 0; k < 9; k++) {
            refuse(with(member[i].name, invalid[k]),
                   "expected an integer from");
        }
    }
}


static void
test_old(void **state)
{
    int        i;

    static const char *const  invalid[] = {
        "{}", "[]", "1", "\"" OTHER "\"", "{\"hash\":\"" OTHER "\"}",
        "{\"until\":1}", "{\"hash\":\"" OTHER "\",\"until\":1,\"x\":1}"
    };

    for (i = 0; i < 7; i++) {
        refuse(with("old", invalid[i]), "\"hash\" and \"until\"");
    }

    refuse(with("old", "{\"hash\":\"" OTHER "\",\"until\":0}"),
           "\"old.until\"");
    refuse(with("old", "{\"hash\":\"0\",\"until\":1}"), "\"old.hash\"");
    refuse(with("old", "{\"hash\":\"" HASH "\",\"until\":1}"),
           "the hash of an earlier key");
}


static void
test_models(void **state)
{
    int        i;
    char       text[8192], name[32];
    dsa_key_t  key;

    refuse(with("models", "[]"), "an array of 1 to 16");
    refuse(with("models", "\"m\""), "an array of 1 to 16");
    refuse(with("models", "{\"a\":1}"), "an array of 1 to 16");
    refuse(with("models", "[1]"), "not a string");
    refuse(with("models", "[[\"m\"]]"), "not a string");
    refuse(with("models", "[\"m\",\"n\",\"m\"]"), "the same model twice");
    refuse(with("models", "[\"\"]"), "1 to 128 bytes");
    refuse(with("models", "[\"a\\\"\"]"), "1 to 128 bytes");
    refuse(with("models", "[\"a\\\\\"]"), "1 to 128 bytes");
    refuse(with("models", "[\"a\\t\"]"), "1 to 128 bytes");
    refuse(with("models", repeated("[\"", "m", 129, "\"]")),
           "1 to 128 bytes");
    accept(&key, with("models", repeated("[\"", "m", 128, "\"]")));

    /* 16 are accepted, 17 are not */

    strcpy(text, "[\"m\"");

    for (i = 1; i < 17; i++) {
        (void) snprintf(name, sizeof(name), ",\"m%d\"", i);
        strcat(text, name);

        if (i == 15) {
            strcat(text, "]");
            accept(&key, with("models", text));
            assert_int_equal(key.n_models, 16);
            text[strlen(text) - 1] = '\0';
        }
    }

    strcat(text, "]");
    refuse(with("models", text), "an array of 1 to 16");
}


static void
test_budget(void **state)
{
    int        i;
    dsa_key_t  key;

    static const char *const  invalid[] = {
        "{}", "[]", "\"1\"", "1", "{\"year\":{\"hard\":\"1\"}}",
        "{\"day\":{\"hard\":\"1\"},\"week\":{\"hard\":\"1\"}}"
    };
    static const char *const  period[] = {
        "{}", "\"1\"", "1", "null", "{\"most\":\"1\"}",
        "{\"hard\":\"1\",\"most\":\"1\"}"
    };
    static const char *const  amount[] = {
        "1", "1.5", "\"\"", "\"-1\"", "\"1e3\"", "\".5\"", "\"1.\"",
        "\"1.0000000000001\"", "\"1000000.000000000001\"", "\" 1\"", "null"
    };
    char       text[256];

    for (i = 0; i < 6; i++) {
        refuse(with("budget", invalid[i]),
               "an object with \"day\", \"month\" or \"total\"");

        (void) snprintf(text, sizeof(text), "{\"month\":%s}", period[i]);
        refuse(with("budget", text),
               "\"budget.month\" of a key is invalid; expected an object");
    }

    for (i = 0; i < 11; i++) {
        (void) snprintf(text, sizeof(text), "{\"day\":{\"hard\":%s}}",
                        amount[i]);
        refuse(with("budget", text), "expected a string, for example");
        (void) snprintf(text, sizeof(text), "{\"total\":{\"soft\":%s}}",
                        amount[i]);
        refuse(with("budget", text), "expected a string, for example");
    }

    refuse(with("budget",
                "{\"day\":{\"soft\":\"1.000000000001\",\"hard\":\"1\"}}"),
           "\"soft\" at most \"hard\"");
    accept(&key, with("budget", "{\"day\":{\"soft\":\"1\",\"hard\":\"1\"}}"));
}


static void
test_size(void **state)
{
    char       text[8192];
    dsa_key_t  key;

    /* spaces count: a reader may have no room for more */

    (void) snprintf(text, sizeof(text), "%s%*s", MIN "}",
                    4096 - (int) strlen(MIN "}"), "");
    accept(&key, text);
    strcat(text, " ");
    refuse(text, "at most 4096");
}


static uint64_t
draw(uint64_t n)
{
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;

    return (seed >> 20) % n;
}


/* A number from 1 to max; each length is as likely as another. */

static uint64_t
draw_size(uint64_t max)
{
    max >>= draw(40);

    return 1 + (max != 0 ? draw(max) : 0);
}


static dsa_str_t
draw_text(uint32_t max, int quotes)
{
    char      *p;
    uint32_t   i, n;

    static const char  bytes[] = "abcXYZ019 ._-|/:{}[]<>'\"\\";

    n = 1 + (uint32_t) draw(max);
    p = dsa_arena_alloc(arena, n);
    assert_non_null(p);

    for (i = 0; i < n; i++) {
        p[i] = bytes[draw(sizeof(bytes) - (quotes ? 1 : 3))];

        if (i + 1 < n && draw(9) == 0) {
            memcpy(&p[i], "\xc3\xa9", 2);
            i++;
        }
    }

    return dsa_str(p, n);
}


static void
draw_key(dsa_key_t *key)
{
    int        i;
    char      *id, *name;
    uint32_t   k;
    dsa_str_t  rest;

    memset(key, 0, sizeof(dsa_key_t));
    dsa_key_limits_default(&key->limits);

    id = dsa_arena_alloc(arena, DSA_KEY_ID_LEN + 1);
    (void) snprintf(id, DSA_KEY_ID_LEN + 1, "key_%08" PRIx64 "%08" PRIx64,
                    draw(1ULL << 32), draw(1ULL << 32));
    key->id = dsa_str(id, DSA_KEY_ID_LEN);
    key->name = draw_text(64, 1);
    key->tenant = draw_text(64, 1);

    for (i = 0; i < 32; i++) {
        key->hash[i] = (uint8_t) draw(256);
        key->old_hash[i] = (uint8_t) draw(256);
    }

    key->state = draw(3);
    key->created = (int64_t) draw_size(253402300799);

    if (draw(2) == 0) {
        key->old_until = (int64_t) draw_size(253402300799);

    } else {
        memset(key->old_hash, 0, 32);
    }

    key->expires = draw(2) == 0 ? (int64_t) draw_size(253402300799) : 0;
    key->limits.rpm = draw(2) == 0 ? draw_size(1000000000000) : 0;
    key->limits.tpm = draw(2) == 0 ? draw_size(1000000000000) : 0;
    key->limits.concurrency = draw(2) == 0 ? draw_size(1000000) : 0;
    key->limits.weight = 1 + (uint32_t) draw(10000);
    key->limits.priority = draw(3);

    for (i = 0; i < DSA_KEY_PERIODS; i++) {
        if (draw(2) == 0) {
            key->limits.budget[i].hard = (int64_t) draw_size(1000000
                                                             * 1000000000000);
        }

        if (draw(2) == 0) {
            key->limits.budget[i].soft = (int64_t) draw_size(
                key->limits.budget[i].hard > 0 ? key->limits.budget[i].hard
                                               : 1000000 * 1000000000000);
        }
    }

    if (draw(2) == 0) {
        key->models = dsa_arena_alloc(arena, 16 * sizeof(dsa_str_t));

        key->n_models = 1 + (uint32_t) draw(16);

        for (k = 0; k < key->n_models; k++) {
            rest = draw_text(127, 0);
            name = dsa_arena_alloc(arena, 1 + rest.len);
            assert_non_null(name);

            /* no name is there twice */

            name[0] = (char) ('A' + k);
            memcpy(&name[1], rest.data, rest.len);
            key->models[k] = dsa_str(name, 1 + rest.len);
        }
    }
}


static void
assert_same(const dsa_key_t *a, const dsa_key_t *b)
{
    uint32_t  i;

    assert_true(dsa_str_eq(a->id, b->id));
    assert_true(dsa_str_eq(a->name, b->name));
    assert_true(dsa_str_eq(a->tenant, b->tenant));
    assert_memory_equal(a->hash, b->hash, 32);
    assert_memory_equal(a->old_hash, b->old_hash, 32);
    assert_int_equal(a->old_until, b->old_until);
    assert_int_equal(a->state, b->state);
    assert_int_equal(a->created, b->created);
    assert_int_equal(a->expires, b->expires);
    assert_int_equal(a->n_models, b->n_models);

    for (i = 0; i < a->n_models; i++) {
        assert_true(dsa_str_eq(a->models[i], b->models[i]));
    }

    assert_memory_equal(&a->limits, &b->limits, sizeof(dsa_key_limits_t));
}


static void
test_random(void **state)
{
    int        i;
    size_t     most;
    dsa_buf_t  one, two;
    dsa_err_t  err;
    dsa_key_t  key, again;

    seed = 1;
    most = 0;

    for (i = 0; i < RANDOM_KEYS; i++) {
        dsa_arena_destroy(arena);
        arena = dsa_arena_create(1 << 20);
        assert_non_null(arena);

        draw_key(&key);

        memset(&one, 0, sizeof(dsa_buf_t));
        memset(&two, 0, sizeof(dsa_buf_t));
        dsa_key_write(&one, &key);
        assert_false(one.failed);
        assert_null(memchr(one.data, '\n', one.len));

        if (dsa_key_read(&again, arena, dsa_str(one.data, one.len), &err)
            != DSA_OK)
        {
            fail_msg("key %d: %.*s: %s", i, (int) one.len, one.data, err.text);
        }

        assert_same(&key, &again);

        dsa_key_write(&two, &again);
        assert_true(dsa_str_eq(dsa_str(one.data, one.len),
                               dsa_str(two.data, two.len)));

        most = one.len > most ? one.len : most;
        dsa_buf_free(&one);
        dsa_buf_free(&two);
    }

    /* the random keys are not all small */

    assert_true(most > 1500);
}


/* A key with every member at its largest. */

static void
test_largest(void **state)
{
    int         i;
    char        names[16][128], name[64];
    dsa_buf_t   b;
    dsa_err_t   err;
    dsa_key_t   key, again;
    dsa_str_t   models[16];

    memset(name, '"', sizeof(name));
    memset(&key, 0, sizeof(dsa_key_t));
    memset(&b, 0, sizeof(dsa_buf_t));

    key.id = dsa_strz("key_ffffffffffffffff");
    key.name = dsa_str(name, 64);
    key.tenant = dsa_str(name, 64);
    memset(key.old_hash, 0xff, 32);
    key.old_until = 253402300799;
    key.state = DSA_KEY_DISABLED;
    key.created = 253402300799;
    key.expires = 253402300799;
    key.models = models;
    key.n_models = 16;
    key.limits.rpm = 1000000000000;
    key.limits.tpm = 1000000000000;
    key.limits.concurrency = 1000000;
    key.limits.weight = 10000;
    key.limits.priority = DSA_KEY_HIGH;

    for (i = 0; i < 16; i++) {
        memset(names[i], 'a' + i, 128);
        models[i] = dsa_str(names[i], 128);
    }

    for (i = 0; i < DSA_KEY_PERIODS; i++) {
        key.limits.budget[i].hard = 999999999999999999;
        key.limits.budget[i].soft = 999999999999999999;
    }

    dsa_key_write(&b, &key);

    if (dsa_key_read(&again, arena, dsa_str(b.data, b.len), &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }

    assert_same(&key, &again);
    assert_true(dsa_arena_used(arena) < 65536);
    dsa_buf_free(&b);
}


/* The digests were computed with coreutils' sha256sum. */

static void
test_digests(void **state)
{
    int      i;
    char     hex[65];
    uint8_t  digest[32];

    dsa_key_hash(digest, dsa_strz("sk-dsa-test"));

    for (i = 0; i < 32; i++) {
        (void) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    }

    assert_string_equal(hex, "55e2ccf6e7bd911e7510c9026b014af0"
                             "0c82012a4e0ed01eb04eebc70e67f001");

    dsa_key_tenant(digest, dsa_strz("acme"));

    for (i = 0; i < 32; i++) {
        (void) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    }

    assert_string_equal(hex, "e08a5f9174ff519ebc6d780dd4923feb"
                             "6bbe143da7ba1472cc04f47e046dbeaf");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_least, begin, end),
        cmocka_unit_test_setup_teardown(test_all, begin, end),
        cmocka_unit_test_setup_teardown(test_other_forms, begin, end),
        cmocka_unit_test_setup_teardown(test_members, begin, end),
        cmocka_unit_test_setup_teardown(test_strings, begin, end),
        cmocka_unit_test_setup_teardown(test_secret, begin, end),
        cmocka_unit_test_setup_teardown(test_integers, begin, end),
        cmocka_unit_test_setup_teardown(test_old, begin, end),
        cmocka_unit_test_setup_teardown(test_models, begin, end),
        cmocka_unit_test_setup_teardown(test_budget, begin, end),
        cmocka_unit_test_setup_teardown(test_size, begin, end),
        cmocka_unit_test_setup_teardown(test_random, begin, end),
        cmocka_unit_test_setup_teardown(test_largest, begin, end),
        cmocka_unit_test_setup_teardown(test_digests, begin, end)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
