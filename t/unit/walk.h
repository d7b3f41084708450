
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Answers with a call that are drawn from the masks of a grammar, for any
 * family.  The vocabulary has a token for each byte, an end, and the control
 * tokens of the family.  cmocka.h must be included before this file.
 */


#ifndef _DSA_TEST_WALK_H_INCLUDED_
#define _DSA_TEST_WALK_H_INCLUDED_


#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "context/parse.h"
#include "grammar/grammar.h"


#define WALK_END        256             /* ids behind those of the bytes */
#define WALK_CONTROL    257             /* of the control tokens */
#define WALK_WORDS      ((WALK_CONTROL + DSA_CONTROL_TOKENS_MAX + 31) / 32)
#define WALK_TURNS      3000
#define WALK_MOST       6000            /* most tokens of an answer */

/* Of the parameters of the tool. */

#define WALK_PROPERTIES                                                       \
    "\"s\":{\"type\":\"string\",\"maxLength\":40},"                           \
    "\"i\":{\"type\":\"integer\"},\"n\":{\"type\":\"number\"},"               \
    "\"b\":{\"type\":\"boolean\"},\"e\":{\"enum\":[\"1\",\"true\"]},"         \
    "\"sn\":{\"type\":[\"string\",\"null\"],\"maxLength\":9},"                \
    "\"o\":{\"type\":\"object\",\"properties\":{\"x\":{\"type\":"             \
    "\"string\",\"maxLength\":9}},\"required\":[\"x\"],"                      \
    "\"additionalProperties\":false},\"a\":{\"type\":\"array\","              \
    "\"maxItems\":3,\"items\":{\"type\":\"integer\"}}"

#define WALK_REST                                                             \
    ",\"required\":[\"s\",\"i\",\"n\",\"b\",\"e\",\"sn\",\"o\",\"a\"],"       \
    "\"additionalProperties\":false"


static uint64_t  seed = 20261123;


static inline uint32_t
dice(uint32_t n)
{
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;

    return (uint32_t) ((seed * 0x2545f4914f6cdd1d) >> 32) % n;
}


/* One of the permitted ids, behind some steps rather a control token. */

static inline uint32_t
draw(const uint32_t *mask, uint32_t size, uint32_t step)
{
    uint32_t  i, n;

    if (dice(100) < step / 4 + 5) {
        for (i = WALK_END; i < size; i++) {
            if ((mask[i / 32] >> i % 32 & 1) != 0) {
                return i;
            }
        }
    }

    n = 0;

    for (i = 0; i < size; i++) {
        n += mask[i / 32] >> i % 32 & 1;
    }

    assert_int_not_equal(n, 0);
    n = dice(n);

    for (i = 0; /* void */ ; i++) {
        if ((mask[i / 32] >> i % 32 & 1) != 0 && n-- == 0) {
            return i;
        }
    }
}


typedef struct {
    uint32_t    calls;
    dsa_buf_t   name;
    dsa_buf_t   arguments;
} answer_t;


static inline int
on_delta(void *ctx, dsa_delta_e what, uint32_t call, dsa_str_t text)
{
    answer_t  *a = ctx;

    assert_int_equal(a->calls > 1, 0);

    if (what == DSA_DELTA_CALL) {
        dsa_buf_add(&a->name, text.data, text.len);
        a->calls++;

    } else {
        assert_int_equal(what, DSA_DELTA_ARGUMENTS);
        dsa_buf_add(&a->arguments, text.data, text.len);
    }

    return DSA_OK;
}


/* Walks over the masks, and parses what was drawn. */

static inline void
walk(answer_t *a, dsa_grammar_t *g, dsa_vocabulary_t *v,
    const dsa_family_t *family, const dsa_types_t *types)
{
    char            byte;
    dsa_str_t       name;
    uint32_t        id, size, step, mask[WALK_WORDS];
    dsa_parse_t    *p;
    dsa_matcher_t  *m;

    size = WALK_CONTROL + family->tokens.n;
    memset(a, 0, sizeof(answer_t));

    m = dsa_matcher_create(g, v, dsa_str(NULL, 0));
    p = dsa_parse_create(family, 0, 1, (1u << family->tokens.n) - 1, on_delta,
                         a);
    assert_true(m != NULL && p != NULL);

    dsa_parse_types(p, types);

    for (step = 0; step < WALK_MOST; step++) {
        memset(mask, 0xff, sizeof(mask));
        dsa_matcher_mask(m, mask, (size + 31) / 32);
        id = draw(mask, size, step);

        assert_int_equal(dsa_matcher_accept(m, id), 0);

        if (id == WALK_END) {
            break;
        }

        if (id >= WALK_CONTROL) {
            name = family->tokens.elts[id - WALK_CONTROL].name;
            assert_int_equal(dsa_parse_feed_control(p, name), DSA_OK);

        } else {
            byte = (char) id;
            assert_int_equal(dsa_parse_feed(p, dsa_str(&byte, 1)), DSA_OK);
        }
    }

    assert_in_range(step, 1, WALK_MOST - 1);
    assert_int_equal(dsa_parse_end(p, 1), DSA_OK);

    dsa_parse_destroy(p);
    dsa_matcher_free(m);
}


static inline const dsa_json_t *
member(const dsa_json_t *object, const char *name)
{
    const dsa_json_t  *v;

    v = dsa_json_get(object, name);
    assert_non_null(v);

    return v;
}


/* The arguments of many walks have the types of WALK_PROPERTIES. */

static inline void
check_walks(dsa_grammar_t *g, dsa_vocabulary_t *voc,
    const dsa_family_t *family, const dsa_types_t *types)
{
    uint32_t           i;
    answer_t           a;
    dsa_err_t          err;
    dsa_json_t        *root;
    dsa_arena_t       *arena;
    const dsa_json_t  *v;

    for (i = 0; i < WALK_TURNS; i++) {
        walk(&a, g, voc, family, types);

        assert_int_equal(a.calls, 1);
        assert_int_equal(a.name.len, 1);

        arena = dsa_arena_create(16 << 20);
        root = dsa_json_parse(arena, a.arguments.data, a.arguments.len, 64,
                              &err);

        if (root == NULL) {
            fail_msg("%.*s: %s", (int) a.arguments.len, a.arguments.data,
                     err.text);
        }

        assert_int_equal(root->n, 8);
        assert_int_equal(member(root, "s")->type, DSA_JSON_STRING);
        assert_int_equal(member(root, "i")->type, DSA_JSON_INTEGER);
        v = member(root, "n");
        assert_true(v->type == DSA_JSON_INTEGER || v->type == DSA_JSON_FLOAT);
        v = member(root, "b");
        assert_true(v->type == DSA_JSON_TRUE || v->type == DSA_JSON_FALSE);
        assert_int_equal(member(root, "e")->type, DSA_JSON_STRING);
        v = member(root, "sn");
        assert_true(v->type == DSA_JSON_STRING || v->type == DSA_JSON_NULL);
        assert_int_equal(member(member(root, "o"), "x")->type,
                         DSA_JSON_STRING);

        for (v = member(root, "a")->first; v != NULL; v = v->next) {
            assert_int_equal(v->type, DSA_JSON_INTEGER);
        }

        dsa_buf_free(&a.name);
        dsa_buf_free(&a.arguments);
        dsa_arena_destroy(arena);
    }
}


#endif /* _DSA_TEST_WALK_H_INCLUDED_ */
