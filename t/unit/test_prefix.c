
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Keys of a prompt's prefixes, and the map from keys to replicas.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "context/deepseek/deepseek.h"
#include "context/prompt_keys.h"
#include "context/prompt_map.h"


#define BOS   DSA_DEEPSEEK_BOS
#define EOS   DSA_DEEPSEEK_EOS
#define USER  DSA_DEEPSEEK_USER
#define SAY   DSA_DEEPSEEK_ASSISTANT
#define ON    DSA_DEEPSEEK_THINK
#define OFF   DSA_DEEPSEEK_THINK_END

/* 300 bytes, so that every boundary behind it counts */

#define T10   "0123456789"
#define T100  T10 T10 T10 T10 T10 T10 T10 T10 T10 T10
#define LONG  T100 T100 T100


typedef dsa_prompt_keys_t   keys_t;
typedef dsa_prompt_map_t    map_t;


static uint8_t  secret[DSA_PROMPT_SECRET];
static uint8_t  tenant[DSA_PROMPT_TENANT];


static uint64_t
random_next(void)
{
    static uint64_t  state = 1;

    state += 0x9e3779b97f4a7c15;

    return (state ^ state >> 30) * 0xbf58476d1ce4e5b9;
}


static void
of_prompt(keys_t *keys, const dsa_prompt_t *prompt, const char *model)
{
    dsa_prompt_keys(keys, prompt, &dsa_deepseek.tokens, secret,
                             tenant, dsa_strz(model));
}


/* Segments are control tokens if their text is one, unless it begins with !. */

static keys_t
keys_of(const char *const *texts)
{
    uint32_t        i;
    keys_t          keys;
    dsa_prompt_t    prompt;
    dsa_segment_t   segments[64];

    prompt.segments = segments;
    prompt.bytes = 0;

    for (prompt.n = 0; texts[prompt.n] != NULL; prompt.n++) {
        segments[prompt.n].kind = DSA_SEGMENT_TEXT;
        segments[prompt.n].text = dsa_str(texts[prompt.n],
                                          strlen(texts[prompt.n]));

        if (texts[prompt.n][0] == '!') {
            segments[prompt.n].text.data++;
            segments[prompt.n].text.len--;
            continue;
        }

        for (i = 0; i < DSA_DEEPSEEK_TOKENS; i++) {
            if (strcmp(texts[prompt.n], dsa_deepseek_tokens[i].name.data)
                == 0)
            {
                segments[prompt.n].kind = DSA_SEGMENT_CONTROL;
            }
        }
    }

    memset(&keys, 0x5a, sizeof(keys));

    of_prompt(&keys, &prompt, "m");

    return keys;
}

#define keys_of(...)  keys_of((const char *const []) { __VA_ARGS__, NULL })


static uint32_t
common(const keys_t *a, const keys_t *b)
{
    uint32_t  i, k, n;

    n = 0;

    for (i = 0; i < a->n; i++) {
        for (k = 0; k < b->n; k++) {
            n += a->elts[i].key == b->elts[k].key;
        }
    }

    return n;
}


/* The ends of messages, counted by hand. */

static void
test_boundaries(void **state)
{
    keys_t  k;

    /* bytes of the names */

    assert_int_equal(strlen(BOS), 29);
    assert_int_equal(strlen(USER), 12);
    assert_int_equal(strlen(SAY), 17);
    assert_int_equal(strlen(EOS), 27);

    k = keys_of(BOS, LONG, USER, "q", SAY, OFF);

    assert_int_equal(k.n, 2);
    assert_int_equal(k.elts[0].bytes, 29 + 300 + 12 + 1 + 17);
    assert_int_equal(k.elts[1].bytes, 29 + 300);

    /* and behind the answer */

    k = keys_of(BOS, LONG, USER, "q", SAY, OFF, "a", EOS, USER, "r", SAY, ON);

    assert_int_equal(k.n, 4);
    assert_int_equal(k.elts[0].bytes, 359 + 8 + 1 + 27 + 12 + 1 + 17);
    assert_int_equal(k.elts[1].bytes, 359 + 8 + 1 + 27);
    assert_int_equal(k.elts[2].bytes, 359);
    assert_int_equal(k.elts[3].bytes, 329);

    /* calls | results | */

    k = keys_of(BOS, LONG, USER, "q", SAY, OFF, "calls", EOS, "results", OFF);

    assert_int_equal(k.n, 4);
    assert_int_equal(k.elts[0].bytes, 359 + 8 + 5 + 27 + 7);
    assert_int_equal(k.elts[1].bytes, 359 + 8 + 5 + 27);

    /* nothing below 256 bytes, and nothing without a boundary */

    k = keys_of(BOS, "system", USER, "q", SAY, OFF, "a", EOS, USER, LONG, SAY,
                OFF);
    assert_int_equal(k.n, 1);

    k = keys_of(BOS, "system", USER, "q", SAY, OFF);
    assert_int_equal(k.n, 0);

    k = keys_of(BOS, LONG);
    assert_int_equal(k.n, 0);
}


/* What two prompts have in common, they have by their keys, and no more. */

static void
test_common(void **state)
{
    keys_t  a, b;

    a = keys_of(BOS, LONG, USER, "q", SAY, ON);

    /* the next turn; another question; another system message */

    b = keys_of(BOS, LONG, USER, "q", SAY, OFF, "a", EOS, USER, "r", SAY, ON);
    assert_int_equal(common(&a, &b), 2);
    assert_true(b.elts[2].key == a.elts[0].key);

    b = keys_of(BOS, LONG, USER, "Q", SAY, ON);
    assert_int_equal(common(&a, &b), 1);
    assert_true(b.elts[1].key == a.elts[1].key);

    b = keys_of(BOS, LONG "!", USER, "q", SAY, ON);
    assert_int_equal(common(&a, &b), 0);

    /* text that spells a control token; text that is cut elsewhere */

    b = keys_of(BOS, LONG, "!" USER, "q", SAY, ON);
    assert_int_equal(common(&a, &b), 0);

    b = keys_of(BOS, T100, T100 T100, USER, "q", SAY, ON);
    assert_int_equal(common(&a, &b), 0);

    /* another tenant, model or secret */

    tenant[31]++;
    b = keys_of(BOS, LONG, USER, "q", SAY, ON);
    assert_int_equal(common(&a, &b), 0);
    tenant[31]--;

    secret[0]++;
    b = keys_of(BOS, LONG, USER, "q", SAY, ON);
    assert_int_equal(common(&a, &b), 0);
    secret[0]--;

    b = keys_of(BOS, LONG, USER, "q", SAY, ON);
    assert_int_equal(common(&a, &b), 2);
}


static void
test_model(void **state)
{
    keys_t          a, b;
    dsa_prompt_t    prompt;
    dsa_segment_t   segments[2];

    segments[0].kind = DSA_SEGMENT_TEXT;
    segments[0].text = dsa_str(LONG, 300);
    segments[1].kind = DSA_SEGMENT_CONTROL;
    segments[1].text = dsa_deepseek_tokens[DSA_DEEPSEEK_TOKEN_USER].name;

    prompt.segments = segments;
    prompt.n = 2;

    of_prompt(&a, &prompt, "m");
    of_prompt(&b, &prompt, "n");

    assert_int_equal(a.n, 1);
    assert_int_equal(b.n, 1);
    assert_true(a.elts[0].key != b.elts[0].key);
}


/* Which tokens are boundaries is a matter of the family alone. */

static void
test_marks(void **state)
{
    uint32_t        i, k;
    keys_t          keys;
    dsa_prompt_t    prompt;
    dsa_segment_t   segments[3];

    static const dsa_control_token_t   marked[] = {
        { dsa_string("<a>"), 0 },
        { dsa_string("<b>"), DSA_MARK_BEGIN },
        { dsa_string("<c>"), DSA_MARK_END },
        { dsa_string("<d>"), DSA_MARK_ANSWER },
        { dsa_string("<e>"), DSA_MARK_STOP|DSA_MARK_THINK_END }
    };
    static const dsa_control_tokens_t  tokens = { marked, 5 };

    /* the end of the boundary; 0: there is none */

    static const struct {
        const char     *name;
        size_t          bytes;
    } t[] = {
        { "<a>", 0 }, { "<b>", 300 }, { "<c>", 303 }, { "<d>", 0 },
        { "<e>", 0 }, { USER, 0 }, { EOS, 0 }
    };

    prompt.segments = segments;
    prompt.n = 3;

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        for (k = 0; k < 2; k++) {
            segments[0].kind = DSA_SEGMENT_TEXT;
            segments[0].text = dsa_str(LONG, 300);
            segments[1].kind = k == 0 ? DSA_SEGMENT_CONTROL
                                      : DSA_SEGMENT_TEXT;
            segments[1].text = dsa_strz(t[i].name);
            segments[2].kind = DSA_SEGMENT_TEXT;
            segments[2].text = dsa_str("end", 3);

            dsa_prompt_keys(&keys, &prompt, &tokens, secret, tenant,
                                     dsa_str("m", 1));

            /* a text that spells a token is no boundary */

            assert_int_equal(keys.n, k == 0 && t[i].bytes != 0);
            assert_true(keys.n == 0 || keys.elts[0].bytes == t[i].bytes);
        }
    }
}


/*
 * A conversation of many messages, turn by turn: the keys stay few, and each
 * turn has one of the turn before it, whatever number of rounds a turn has.
 */

static void
test_many(void **state)
{
    keys_t          keys, before, first;
    uint32_t        i, turns;
    dsa_prompt_t    prompt;
    dsa_segment_t  *segments;

    segments = calloc(2 + 8192 * 6, sizeof(dsa_segment_t));
    assert_non_null(segments);

    prompt.segments = segments;
    prompt.n = 0;
    turns = 0;

#define add(k, t)                                                             \
    (segments[prompt.n].kind = (k), segments[prompt.n++].text = (t))
#define control(token)                                                        \
    add(DSA_SEGMENT_CONTROL,                                                  \
        dsa_deepseek_tokens[DSA_DEEPSEEK_TOKEN_ ## token].name)

    control(BOS);
    add(DSA_SEGMENT_TEXT, dsa_str(LONG, 300));

    for (i = 0; i < 8192; i++) {
        control(USER);
        add(DSA_SEGMENT_TEXT, dsa_str(LONG, 1 + i % 200));
        control(ASSISTANT);
        control(THINK_END);

        if (i % 200 == 0 || i == 8191) {
            of_prompt(&keys, &prompt, "m");

            if (turns == 0) {
                first = keys;
            }

            assert_in_range(keys.n, 1, DSA_PROMPT_KEYS);
            assert_int_equal(common(&keys, &first), turns == 0 ? 2 : 1);
            turns++;
        }

        if (i == 8190) {
            of_prompt(&before, &prompt, "m");
        }

        add(DSA_SEGMENT_TEXT, dsa_str("answer", 6));
        control(EOS);
    }

    /* two boundaries each turn: all but the oldest are common */

    assert_true(common(&keys, &before) >= DSA_PROMPT_LAST - 2 + 1);
    assert_true(keys.elts[2].key == before.elts[0].key);

    /* longest first, without repetitions */

    for (i = 1; i < keys.n; i++) {
        assert_true(keys.elts[i].bytes < keys.elts[i - 1].bytes);
    }

    free(segments);
}


/*
 * Rounds of tools in thinking mode: the end of the question before them is
 * among the keys, however many rounds there are.
 */

static void
test_rounds(void **state)
{
    keys_t          keys, question;
    uint32_t        i;
    dsa_prompt_t    prompt;
    dsa_segment_t   segments[1024];

    prompt.segments = segments;
    prompt.n = 0;

    control(BOS);
    add(DSA_SEGMENT_TEXT, dsa_str(LONG, 300));
    control(USER);
    add(DSA_SEGMENT_TEXT, dsa_str("question", 8));
    control(ASSISTANT);
    control(THINK_END);

    of_prompt(&question, &prompt, "m");
    assert_int_equal(question.n, 2);

    for (i = 0; i < 200; i++) {
        add(DSA_SEGMENT_TEXT, dsa_str("calls", 5));
        control(EOS);
        add(DSA_SEGMENT_TEXT, dsa_str("results", 7));
        control(THINK_END);
    }

    add(DSA_SEGMENT_TEXT, dsa_str("answer", 6));
    control(EOS);
    control(USER);
    add(DSA_SEGMENT_TEXT, dsa_str("next", 4));
    control(ASSISTANT);
    control(THINK);

    of_prompt(&keys, &prompt, "m");

    assert_int_equal(common(&keys, &question), 2);
}


/* A long text that grows, and one that ends in another way. */

static void
test_blocks(void **state)
{
    keys_t   a, b;
    char    *text, *other;

    text = malloc(100001);
    other = malloc(100001);
    assert_non_null(text);
    assert_non_null(other);

    memset(text, 'x', 100000);
    memcpy(other, text, 100000);
    text[30000] = other[33000] = '\0';
    other[32999] = 'y';

    a = keys_of(BOS, USER, text, SAY, OFF);
    b = keys_of(BOS, USER, other, SAY, OFF);

    /* behind the text, and behind 7 and 8 blocks in it */

    assert_int_equal(a.n, 1 + 7);
    assert_int_equal(b.n, 1 + 8);
    assert_int_equal(common(&a, &b), 7);
    assert_int_equal(a.elts[1].bytes, 29 + 12 + 7 * 4096);

    other[4095] = 'y';
    b = keys_of(BOS, USER, other, SAY, OFF);
    assert_int_equal(common(&a, &b), 0);

    free(text);
    free(other);
}


static map_t *
map_of(size_t n_sets, void **memory)
{
    map_t   *map;
    size_t   size;

    size = sizeof(map_t) + n_sets * sizeof(dsa_prompt_set_t);

    *memory = aligned_alloc(128, (size + 127) & ~(size_t) 127);
    assert_non_null(*memory);
    memset(*memory, 0x5a, size);

    map = dsa_prompt_map_init(*memory, size);
    assert_non_null(map);
    assert_int_equal(map->n_sets, n_sets);

    return map;
}


/* One set, compared with a list in the order of use. */

static void
test_lru(void **state)
{
    int        i, k, found, n;
    map_t     *map;
    void      *memory;
    uint64_t   key, list[DSA_PROMPT_WAYS];
    uint32_t   replica, replicas[DSA_PROMPT_WAYS];

    map = map_of(1, &memory);
    n = 0;

    /* ages are right when the clock wraps around */

    map->clock = UINT32_MAX - 5000;

    for (i = 0; i < 10000; i++) {
        key = (1 + random_next() % 12) * 0x1234567890abcdef;
        replica = 1 + (uint32_t) (random_next() >> 40);

        for (found = 0; found < n && list[found] != key; found++) {
            /* void */
        }

        assert_int_equal(dsa_prompt_map_find(map, key),
                         found < n ? replicas[found] : 0);

        dsa_prompt_map_put(map, key, replica);

        if (found == n && n < DSA_PROMPT_WAYS) {
            n++;

        } else if (found == n) {
            found--;
        }

        for (k = found; k > 0; k--) {
            list[k] = list[k - 1];
            replicas[k] = replicas[k - 1];
        }

        list[0] = key;
        replicas[0] = replica;

        for (k = 0; k < n; k++) {
            assert_int_equal(dsa_prompt_map_find(map, list[k]),
                             replicas[k]);
        }
    }

    free(memory);
}


/* Many sets: a found replica is the last one, and most of the new are there. */

static void
test_sets(void **state)
{
    map_t     *map;
    void      *memory;
    uint32_t   i, found;
    uint64_t  *keys;

    map = map_of(1000, &memory);
    keys = calloc(20000, sizeof(uint64_t));
    assert_non_null(keys);

    for (i = 0; i < 20000; i++) {
        keys[i] = random_next() << 32 | random_next() >> 32;
        dsa_prompt_map_prefetch(map, keys[i]);
        dsa_prompt_map_put(map, keys[i], i + 1);
        assert_int_equal(dsa_prompt_map_find(map, keys[i]), i + 1);
    }

    found = 0;

    for (i = 0; i < 20000; i++) {
        if (dsa_prompt_map_find(map, keys[i]) != 0) {
            assert_int_equal(dsa_prompt_map_find(map, keys[i]),
                             i + 1);
            found++;
        }
    }

    /* 8 ways in 1,000 sets, all in use after 20,000 keys but for chance */

    assert_in_range(found, 7900, 8000);

    /* of the newest half of the room nearly nothing is lost */

    for (found = 0, i = 16000; i < 20000; i++) {
        found += dsa_prompt_map_find(map, keys[i]) != 0;
    }

    assert_in_range(found, 3850, 4000);

    free(keys);
    free(memory);
}


static void
test_small(void **state)
{
    char  *memory;

    memory = aligned_alloc(128, 512);
    assert_non_null(memory);

    assert_null(dsa_prompt_map_init(memory, 255));
    assert_non_null(dsa_prompt_map_init(memory, 256));

    free(memory);
}


int
main(void)
{
    uint32_t  i;

    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_boundaries),
        cmocka_unit_test(test_common),
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_lru),
        cmocka_unit_test(test_sets),
        cmocka_unit_test(test_small)
    };

    for (i = 0; i < sizeof(secret); i++) {
        secret[i] = (uint8_t) random_next();
    }

    return cmocka_run_group_tests(tests, NULL, NULL);
}
