
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Random schemas: none crashes the compiler, and a walk over the masks of one
 * that is accepted ends with a text that the JSON parser reads.
 */


#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "grammar.h"


#define SCHEMAS         20000
#define WALK            20000       /* most bytes of an answer */


static void schema_any(dsa_buf_t *b, uint32_t depth);
static void schema_keyword(dsa_buf_t *b, uint32_t depth, uint32_t type);
static void schema_literal(dsa_buf_t *b);
static void walk(dsa_grammar_t *g, dsa_vocabulary_t *v, const char *spec);
static uint32_t draw(const uint32_t *mask, uint32_t step);


static uint64_t  seed = 20260101;


static uint32_t
dice(uint32_t n)
{
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;

    return (uint32_t) ((seed * 0x2545f4914f6cdd1d) >> 32) % n;
}


static const char *
pick(const char *const *list, uint32_t n)
{
    return list[dice(n)];
}


static const char *const  names[] = {
    "a", "b", "ab", "c\\\"d", "", "\xc3\xa9"
};

static const char *const  types[] = {
    "null", "boolean", "integer", "number", "string", "array", "object"
};

static const char *const  patterns[] = {
    "^a+$", "b|c", "^(x|yz){2,5}$", "^\\\\d{3}-[^a]$", ".", "^[a-f]*$", "[",
    "^$", "\\\\w\\\\W", "(?:a?){9}b$"
};

static const char *const  formats[] = {
    "date-time", "date", "time", "duration", "ipv4", "uuid", "uri", "ipv6"
};

static const char *const  numbers[] = {
    "0", "-1", "3", "10", "0.5", "-2.75", "1e2", "100", "7", "1e-3", "1e400"
};

static const char *const  lists[] = {
    "anyOf", "oneOf", "allOf"
};

static const char *const  refs[] = {
    "#", "#/$defs/d", "#/properties/a", "#/nothing", "x"
};


static void
schema_any(dsa_buf_t *b, uint32_t depth)
{
    uint32_t  i, n, type;

    if (dice(20) == 0) {
        dsa_buf_addz(b, dice(3) != 0 ? "true" : dice(2) ? "false" : "{}");
        return;
    }

    if (depth == 0 || dice(12) == 0) {
        dsa_buf_printf(b, "{\"type\":\"%s\"}", types[dice(5)]);
        return;
    }

    type = dice(7);

    switch (dice(16)) {

    case 0:
    case 12:
        dsa_buf_printf(b, "{\"%s\":[", pick(lists, 3));
        n = 1 + dice(3);

        for (i = 0; i < n; i++) {
            dsa_buf_addz(b, i != 0 ? "," : "");
            schema_any(b, depth - 1);
        }

        dsa_buf_addz(b, "]}");
        return;

    case 1:
        dsa_buf_printf(b, "{\"$ref\":\"%s\"}", pick(refs, 5));
        return;

    case 2:
        dsa_buf_addz(b, "{\"enum\":[");
        n = dice(4);

        for (i = 0; i < n; i++) {
            dsa_buf_addz(b, i != 0 ? "," : "");
            schema_literal(b);
        }

        dsa_buf_addz(b, "]}");
        return;

    case 3:
        dsa_buf_addz(b, "{\"const\":");
        schema_literal(b);
        dsa_buf_addz(b, "}");
        return;

    case 13:
        dsa_buf_addz(b, "{\"not\":");
        schema_any(b, depth - 1);
        dsa_buf_addz(b, "}");
        return;

    case 14:
        dsa_buf_addz(b, "{\"if\":");
        schema_any(b, depth - 1);
        dsa_buf_addz(b, ",\"then\":");
        schema_any(b, depth - 1);
        dsa_buf_addz(b, ",\"else\":");
        schema_any(b, depth - 1);
        dsa_buf_addz(b, "}");
        return;
    }

    dsa_buf_printf(b, "{\"type\":\"%s\"", types[type]);
    n = dice(4);

    for (i = 0; i < n; i++) {
        schema_keyword(b, depth - 1, dice(20) == 0 ? dice(7) : type);
    }

    if (dice(6) == 0) {
        dsa_buf_printf(b, ",\"%s\":[", pick(lists, 3));
        schema_any(b, depth - 1);
        dsa_buf_addz(b, ",");
        schema_any(b, depth - 1);
        dsa_buf_addz(b, "]");
    }

    if (dice(8) == 0) {
        dsa_buf_addz(b, ",\"$defs\":{\"d\":");
        schema_any(b, depth - 1);
        dsa_buf_addz(b, "}");
    }

    dsa_buf_addz(b, "}");
}


/* A name that comes twice makes the spec invalid, which is a case as well. */

static void
schema_keyword(dsa_buf_t *b, uint32_t depth, uint32_t type)
{
    uint32_t  i, n, bits;

    static const char *const  bounds[] = {
        "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
        "multipleOf"
    };

    switch (type) {

    case 2:
    case 3:
        dsa_buf_printf(b, ",\"%s\":%s", pick(bounds, 5), pick(numbers, 11));
        return;

    case 4:
        switch (dice(4)) {

        case 0:
            dsa_buf_printf(b, ",\"pattern\":\"%s\"", pick(patterns, 10));
            return;

        case 1:
            dsa_buf_printf(b, ",\"format\":\"%s\"", pick(formats, 8));
            return;

        default:
            dsa_buf_printf(b, ",\"%sLength\":%u", dice(2) ? "min" : "max",
                           dice(12));
        }

        return;

    case 5:
        switch (dice(3)) {

        case 0:
            dsa_buf_addz(b, ",\"items\":");
            schema_any(b, depth);
            return;

        case 1:
            dsa_buf_addz(b, ",\"prefixItems\":[");
            schema_any(b, depth);
            dsa_buf_addz(b, ",");
            schema_any(b, depth);
            dsa_buf_addz(b, "]");
            return;

        default:
            dsa_buf_printf(b, ",\"%sItems\":%u", dice(2) ? "min" : "max",
                           dice(5));
        }

        return;

    case 6:
        switch (dice(6)) {

        case 0:
            bits = dice(63);
            dsa_buf_addz(b, ",\"properties\":{");

            for (i = 0, n = 0; i < 6; i++) {
                if ((bits >> i & 1) != 0) {
                    dsa_buf_printf(b, "%s\"%s\":", n++ != 0 ? "," : "",
                                   names[i]);
                    schema_any(b, depth);
                }
            }

            dsa_buf_addz(b, "}");
            return;

        case 1:
            dsa_buf_printf(b, ",\"required\":[\"%s\",\"%s\"]",
                           pick(names, 6), pick(names, 6));
            return;

        case 2:
            dsa_buf_printf(b, ",\"patternProperties\":{\"%s\":",
                           pick(patterns, 10));
            schema_any(b, depth);
            dsa_buf_addz(b, "}");
            return;

        case 3:
            dsa_buf_printf(b, ",\"propertyNames\":{\"maxLength\":%u}",
                           dice(3));
            return;

        case 4:
            dsa_buf_printf(b, ",\"%sProperties\":%u", dice(2) ? "min" : "max",
                           dice(4));
            return;

        default:
            dsa_buf_addz(b, ",\"additionalProperties\":");

            if (dice(2)) {
                dsa_buf_addz(b, "false");

            } else {
                schema_any(b, depth);
            }
        }
    }
}


static void
schema_literal(dsa_buf_t *b)
{
    static const char *const  literals[] = {
        "1", "\"x\"", "null", "[1,{\"a\":true}]", "-1.5e3", "\"\\u0000\\n\"",
        "{}", "false"
    };

    dsa_buf_addz(b, pick(literals, 8));
}


static void
walk(dsa_grammar_t *g, dsa_vocabulary_t *v, const char *spec)
{
    char            byte;
    uint32_t        step, id, mask[(BYTES_SIZE + 31) / 32];
    dsa_buf_t       text;
    dsa_err_t       err;
    dsa_arena_t    *arena;
    dsa_matcher_t  *m;

    memset(&text, 0, sizeof(dsa_buf_t));

    m = dsa_matcher_create(g, v, dsa_str(NULL, 0));
    assert_non_null(m);

    for (step = 0; /* void */ ; step++) {
        memset(mask, 0xff, sizeof(mask));
        dsa_matcher_mask(m, mask, sizeof(mask) / sizeof(uint32_t));

        id = draw(mask, step);

        if (id == BYTES_SIZE || step == WALK) {
            fail_msg("%s: no end behind %.*s", spec, (int) text.len,
                     text.data);
        }

        assert_int_equal(dsa_matcher_accept(m, id), 0);

        if (id == BYTES_END) {
            break;
        }

        byte = (char) id;
        dsa_buf_add(&text, &byte, 1);
    }

    arena = dsa_arena_create(16 << 20);

    /* names that the schema does not have may come twice */

    if (dsa_json_parse(arena, text.data, text.len, 250, &err) == NULL
        && strstr(err.text, "is repeated") == NULL)
    {
        fail_msg("%s: %.*s: %s", spec, (int) text.len, text.data, err.text);
    }

    dsa_arena_destroy(arena);
    dsa_buf_free(&text);
    dsa_matcher_free(m);
}


/* One of the permitted ids, behind some steps rather one that ends a value. */

static uint32_t
draw(const uint32_t *mask, uint32_t step)
{
    uint32_t  i, id, n;

    static const uint32_t  ends[] = { BYTES_END, '}', ']', '"' };

    if (dice(100) < step) {
        id = ends[dice(4)];

        if ((mask[id / 32] >> id % 32 & 1) != 0) {
            return id;
        }
    }

    n = 0;

    for (i = 0; i < BYTES_SIZE; i++) {
        n += mask[i / 32] >> i % 32 & 1;
    }

    if (n == 0) {
        return BYTES_SIZE;
    }

    n = dice(n);

    for (i = 0; /* void */ ; i++) {
        if ((mask[i / 32] >> i % 32 & 1) != 0 && n-- == 0) {
            return i;
        }
    }
}


static void
test_random_schemas(void **state)
{
    uint32_t              i, accepted;
    dsa_buf_t             spec;
    dsa_grammar_t        *g;
    dsa_vocabulary_t     *v;
    dsa_grammar_error_t   error;

    accepted = 0;
    v = vocabulary_bytes(1);

    for (i = 0; i < SCHEMAS; i++) {
        memset(&spec, 0, sizeof(dsa_buf_t));

        dsa_buf_addz(&spec, "{\"type\":\"json_schema\",\"schema\":");
        schema_any(&spec, 4);
        dsa_buf_addz(&spec, "}");
        dsa_buf_add(&spec, "", 1);

        if (dsa_grammar_compile(&g, dsa_str(spec.data, spec.len - 1),
                                dsa_strz(DSML), &error)
            == 0)
        {
            walk(g, v, spec.data);
            dsa_grammar_free(g);
            accepted++;

        } else if (error.message[0] == '\0' || error.no_memory) {
            fail_msg("%s is refused without a reason", spec.data);
        }

        dsa_buf_free(&spec);
    }

    /* enough of both */

    assert_in_range(accepted, SCHEMAS / 3, SCHEMAS * 9 / 10);

    dsa_vocabulary_free(v);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_random_schemas)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
