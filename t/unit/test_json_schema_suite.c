
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The official JSON Schema Test Suite (t/data/json-schema).  A schema either
 * compiles, and then the matcher accepts the valid instances and rejects the
 * other ones, or it is refused at a keyword that it has.  What differs is
 * listed below with the reason.
 */


#include "base/arena.h"
#include "base/buf.h"
#include "base/json_write.h"
#include "grammar.h"


#define DIR             "t/data/json-schema/"
#define MEMORY          (1U << 26)      /* bytes for the trees of a file */
#define OBJECTS         16              /* most objects of an instance */
#define ORDERS          5040            /* most orders of their members */

/* Files of the table of exclusions, some with their only group. */

#define BIGNUM          "optional/bignum"
#define ECMA            "optional/ecmascript-regex"
#define DATE_TIME       "optional/format/date-time",                          \
                        "validation of date-time strings"
#define EMAIL           "optional/format/email",                              \
                        "validation of e-mail addresses"
#define TIME            "optional/format/time",                               \
                        "validation of time strings"
#define PUNYCODE        "optional/format/hostname",                           \
                        "validation of A-label (punycode) host names"


/* An instance as text, in one of the orders of its members. */

typedef struct {
    dsa_buf_t             text;
    uint32_t              order;        /* 0 to orders - 1 */
    uint32_t              orders;
} instance_t;


/* A group, or a test of it, that this server treats in another way. */

typedef struct {
    const char           *file;
    const char           *group;
    const char           *test;         /* NULL: the schema is refused;
                                           otherwise: it is valid, and
                                           rejected */
    uint32_t              used;
} exclusion_t;


typedef struct {
    const char           *file;
    const char           *group;
    dsa_vocabulary_t     *vocabulary;
    uint32_t              compiled;     /* schemas */
    uint32_t              valid;        /* instances of these */
    uint32_t              accepted;     /* of the valid ones */
    uint32_t              invalid;
    uint32_t              refused;      /* schemas */
    uint32_t              wrong;
} suite_t;


static void suite_file(suite_t *s, const char *file);
static void suite_group(suite_t *s, const dsa_json_t *group);
static void suite_test(suite_t *s, dsa_grammar_t *g, const dsa_json_t *test);
static int suite_accepts(suite_t *s, dsa_grammar_t *g,
    const dsa_json_t *value);
static void suite_refusal(suite_t *s, const dsa_json_t *schema,
    const dsa_grammar_error_t *error);
static const dsa_json_t *schema_at(const dsa_json_t *schema,
    const char *path);
static int is_refused(const char *keyword, const char *message);
static exclusion_t *exclusion_of(const suite_t *s, const char *test);
static void instance_write(instance_t *in, const dsa_json_t *v);
static void instance_members(instance_t *in, const dsa_json_t *v);
static const char *text_of(const dsa_json_t *object, const char *name);


static const char *const  files[] = {
    "additionalProperties", "allOf", "anchor", "anyOf", "boolean_schema",
    "const", "contains", "content", "default", "defs", "dependentRequired",
    "dependentSchemas", "dynamicRef", "enum", "exclusiveMaximum",
    "exclusiveMinimum", "if-then-else", "infinite-loop-detection", "items",
    "maxContains", "maxItems", "maxLength", "maxProperties", "maximum",
    "minContains", "minItems", "minLength", "minProperties", "minimum",
    "multipleOf", "not", "oneOf", "pattern", "patternProperties",
    "prefixItems", "properties", "propertyNames", "ref", "required", "type",
    "unevaluatedItems", "unevaluatedProperties", "uniqueItems",
    "optional/bignum", "optional/dependencies-compatibility",
    "optional/ecmascript-regex", "optional/float-overflow",
    "optional/no-schema", "optional/non-bmp-regex", "optional/id",
    "optional/refOfUnknownKeyword", "optional/unknownKeyword",
    "optional/format/date", "optional/format/date-time",
    "optional/format/duration", "optional/format/email",
    "optional/format/hostname", "optional/format/ipv4",
    "optional/format/ipv6", "optional/format/time", "optional/format/unknown",
    "optional/format/uri", "optional/format/uuid"
};


/* The keywords that are refused by name. */

static const char *const  refused[] = {
    "$dynamicRef", "unevaluatedProperties", "contains", "uniqueItems",
    "unevaluatedItems"
};


static exclusion_t  exclusions[] = {

    /* no value satisfies the schema, so that there is no answer */

    { "allOf", "allOf with boolean schemas, some false", NULL, 0 },
    { "allOf", "allOf with boolean schemas, all false", NULL, 0 },
    { "anyOf", "anyOf with boolean schemas, all false", NULL, 0 },
    { "boolean_schema", "boolean schema 'false'", NULL, 0 },
    { "enum", "empty enum", NULL, 0 },
    { "not", "forbid everything with empty schema", NULL, 0 },
    { "not", "forbid everything with boolean schema true", NULL, 0 },
    { "not", "collect annotations inside a 'not', even if collection is "
      "disabled", NULL, 0 },
    { "oneOf", "oneOf with boolean schemas, all true", NULL, 0 },
    { "oneOf", "oneOf with boolean schemas, more than one true", NULL, 0 },
    { "oneOf", "oneOf with boolean schemas, all false", NULL, 0 },
    { "ref", "$ref to boolean schema false", NULL, 0 },

    /* two properties at least, of which none has a name */

    { "dependentSchemas", "dependencies with escaped characters", NULL, 0 },
    { "optional/dependencies-compatibility",
      "schema dependencies with escaped characters", NULL, 0 },

    /* bounds and steps of 309 digits */

    { "multipleOf", "float division = inf", NULL, 0 },

    /* patterns without \p and \c */

    { "pattern", "pattern with Unicode property escape requires unicode mode",
      NULL, 0 },
    { ECMA, "ECMA 262 regex escapes control codes with \\c and upper letter",
      NULL, 0 },
    { ECMA, "ECMA 262 regex escapes control codes with \\c and lower letter",
      NULL, 0 },
    { ECMA, "patterns always use unicode semantics with pattern", NULL, 0 },
    { ECMA, "patterns always use unicode semantics with patternProperties",
      NULL, 0 },
    { ECMA, "patternProperties with non-ASCII digits", NULL, 0 },
    { "patternProperties", "patternProperties with Unicode property escape",
      NULL, 0 },
    { ECMA, "pattern with non-ASCII digits", NULL, 0 },

    /* a number in enum and const is written as it is there */

    { "const", "const with 0 does not match other zero-like types",
      "float zero is valid", 0 },
    { "const", "const with 1 does not match true", "float one is valid", 0 },
    { "const", "const with -2.0 matches integer and float types",
      "integer -2 is valid", 0 },
    { "const", "float and integers are equal up to 64-bit representation "
      "limits", "float is valid", 0 },
    { "enum", "enum with 0 does not match false", "float zero is valid", 0 },
    { "enum", "enum with [0] does not match [false]", "[0.0] is valid", 0 },
    { "enum", "enum with 1 does not match true", "float one is valid", 0 },
    { "enum", "enum with [1] does not match [true]", "[1.0] is valid", 0 },

    /* an integer has no fraction */

    { "type", "integer type matches integers",
      "a float with zero fractional part is an integer", 0 },

    /* a number has up to 19 digits before its fraction and exponent */

    { BIGNUM, "integer", "a bignum is an integer", 0 },
    { BIGNUM, "integer", "a negative bignum is an integer", 0 },
    { BIGNUM, "number", "a bignum is a number", 0 },
    { BIGNUM, "number", "a negative bignum is a number", 0 },
    { BIGNUM, "maximum integer comparison",
      "comparison works for high numbers", 0 },
    { BIGNUM, "minimum integer comparison",
      "comparison works for very negative numbers", 0 },
    { "optional/float-overflow",
      "all integers are multiples of 0.5, if overflow is handled",
      "valid if optional overflow handling is implemented", 0 },

    /* times without leap seconds, in capitals, with up to 9 digits */

    { DATE_TIME, "a valid date-time with a leap second, UTC", 0 },
    { DATE_TIME, "a valid date-time with a leap second, with minus offset",
      0 },
    { DATE_TIME, "case-insensitive T and Z", 0 },
    { DATE_TIME, "a second fraction of fifteen nines is valid", 0 },
    { "optional/format/duration", "validation of duration strings",
      "a component with many digits is valid", 0 },
    { TIME, "a valid time string with leap second, Zulu", 0 },
    { TIME, "valid leap second, zero time-offset", 0 },
    { TIME, "valid leap second, positive time-offset", 0 },
    { TIME, "valid leap second, large positive time-offset", 0 },
    { TIME, "valid leap second, negative time-offset", 0 },
    { TIME, "valid leap second, large negative time-offset", 0 },
    { TIME, "a valid time string with case-insensitive Z", 0 },

    /* addresses without quotes and literals */

    { EMAIL, "a quoted string with a space in the local part is valid", 0 },
    { EMAIL, "a quoted string with a double dot in the local part is valid",
      0 },
    { EMAIL, "a quoted string with a @ in the local part is valid", 0 },
    { EMAIL, "an IPv4-address-literal after the @ is valid", 0 },
    { EMAIL, "an IPv6-address-literal after the @ is valid", 0 },

    /* addresses without brackets */

    { "optional/format/uri", "validation of URIs", "a valid URL", 0 },

    /* labels of hosts with up to 40 characters and without Punycode */

    { "optional/format/hostname", "validation of host names",
      "maximum label length (63)", 0 },
    { PUNYCODE, "a valid host name (example.test in Hangul)", 0 },
    { PUNYCODE, "Exceptions that are PVALID, left-to-right chars", 0 },
    { PUNYCODE, "Exceptions that are PVALID, right-to-left chars", 0 },
    { PUNYCODE, "MIDDLE DOT with surrounding 'l's", 0 },
    { PUNYCODE, "Greek KERAIA followed by Greek", 0 },
    { PUNYCODE, "Hebrew GERESH preceded by Hebrew", 0 },
    { PUNYCODE, "Hebrew GERSHAYIM preceded by Hebrew", 0 },
    { PUNYCODE, "KATAKANA MIDDLE DOT with Hiragana", 0 },
    { PUNYCODE, "KATAKANA MIDDLE DOT with Katakana", 0 },
    { PUNYCODE, "KATAKANA MIDDLE DOT with Han", 0 },
    { PUNYCODE, "Arabic-Indic digits not mixed with Extended Arabic-Indic "
      "digits", 0 },
    { PUNYCODE, "Extended Arabic-Indic digits not mixed with Arabic-Indic "
      "digits", 0 },
    { PUNYCODE, "ZERO WIDTH JOINER preceded by Virama", 0 },
    { PUNYCODE, "ZERO WIDTH NON-JOINER preceded by Virama", 0 },
    { PUNYCODE, "ZERO WIDTH NON-JOINER not preceded by Virama but matches "
      "regexp", 0 },

    { NULL, NULL, NULL, 0 }
};


/* Every case of every file, and no exclusion that is not needed. */

static void
test_suite(void **state)
{
    size_t        i;
    suite_t       s;
    exclusion_t  *e;

    memset(&s, 0, sizeof(suite_t));
    s.vocabulary = vocabulary_bytes(0);

    for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        suite_file(&s, files[i]);
    }

    for (e = exclusions; e->file != NULL; e++) {
        if (e->used == 0) {
            print_error("%s: %s: %s: the exclusion is not needed\n", e->file,
                        e->group, e->test != NULL ? e->test : "schema");
            s.wrong++;
        }
    }

    print_message("%u schemas with %u valid instances, %u of them accepted, "
                  "and %u invalid ones; %u schemas refused\n", s.compiled,
                  s.valid, s.accepted, s.invalid, s.refused);

    dsa_vocabulary_free(s.vocabulary);

    assert_int_equal(s.wrong, 0);
}


static void
suite_file(suite_t *s, const char *file)
{
    FILE              *f;
    size_t             n;
    char               name[128], part[4096];
    dsa_buf_t          text;
    dsa_err_t          err;
    dsa_arena_t       *arena;
    const dsa_json_t  *root, *group;

    memset(&text, 0, sizeof(dsa_buf_t));
    snprintf(name, sizeof(name), DIR "%s.json", file);

    f = fopen(name, "r");
    assert_non_null(f);

    while ((n = fread(part, 1, sizeof(part), f)) > 0) {
        dsa_buf_add(&text, part, n);
    }

    fclose(f);

    arena = dsa_arena_create(MEMORY);
    root = dsa_json_parse(arena, text.data, text.len, 64, &err);

    if (root == NULL) {
        fail_msg("%s: %s", name, err.text);
        return;
    }

    s->file = file;

    for (group = root->first; group != NULL; group = group->next) {
        suite_group(s, group);
    }

    dsa_arena_destroy(arena);
    dsa_buf_free(&text);
}


static void
suite_group(suite_t *s, const dsa_json_t *group)
{
    int                   rc;
    instance_t            spec;
    exclusion_t          *e;
    dsa_grammar_t        *g;
    const dsa_json_t     *schema, *test;
    dsa_grammar_error_t   error;

    memset(&spec, 0, sizeof(instance_t));
    memset(&error, 0, sizeof(dsa_grammar_error_t));

    s->group = text_of(group, "description");
    schema = dsa_json_get(group, "schema");

    spec.orders = 1;
    dsa_buf_addz(&spec.text, "{\"type\":\"json_schema\",\"schema\":");
    instance_write(&spec, schema);
    dsa_buf_addz(&spec.text, "}");

    rc = dsa_grammar_compile(&g, dsa_str(spec.text.data, spec.text.len),
                             dsa_strz(DSML), &error);
    dsa_buf_free(&spec.text);

    if (rc != 0) {
        suite_refusal(s, schema, &error);
        return;
    }

    s->compiled++;
    e = exclusion_of(s, NULL);

    if (e != NULL) {
        print_error("%s: %s: the schema compiles\n", s->file, s->group);
        e->used++;
        s->wrong++;
    }

    for (test = dsa_json_get(group, "tests")->first; test != NULL;
         test = test->next)
    {
        suite_test(s, g, test);
    }

    dsa_grammar_free(g);
}


static void
suite_test(suite_t *s, dsa_grammar_t *g, const dsa_json_t *test)
{
    int                valid, accepted;
    exclusion_t       *e;
    const char        *name;
    const dsa_json_t  *data;

    name = text_of(test, "description");
    data = dsa_json_get(test, "data");
    valid = dsa_json_get(test, "valid")->type == DSA_JSON_TRUE;
    accepted = suite_accepts(s, g, data);

    if (valid) {
        s->valid++;
        s->accepted += (uint32_t) accepted;

    } else {
        s->invalid++;
    }

    if (accepted == valid) {
        return;
    }

    e = exclusion_of(s, name);

    if (e == NULL || !valid) {
        print_error("%s: %s: %s: %s\n", s->file, s->group, name,
                    valid ? "rejected" : "accepted");
        s->wrong++;
        return;
    }

    e->used++;
}


/* 1: the matcher accepts the value with its members in some order. */

static int
suite_accepts(suite_t *s, dsa_grammar_t *g, const dsa_json_t *value)
{
    int         rc;
    uint32_t    i;
    instance_t  in;

    rc = 0;
    memset(&in, 0, sizeof(instance_t));

    for (i = 0; i == 0 || (i < in.orders && !rc); i++) {
        in.text.len = 0;
        in.order = i;
        in.orders = 1;

        instance_write(&in, value);
        assert_true(in.orders <= ORDERS);

        rc = grammar_accepts(g, s->vocabulary, 0,
                             dsa_str(in.text.data, in.text.len));
    }

    dsa_buf_free(&in.text);

    return rc;
}


/*
 * The path of an error leads into the schema.  If the message begins with a
 * refused keyword, the schema there has it; a $ref that is not a pointer into
 * the schema is refused as well.
 */

static void
suite_refusal(suite_t *s, const dsa_json_t *schema,
    const dsa_grammar_error_t *error)
{
    size_t             i;
    exclusion_t       *e;
    const dsa_json_t  *at;

    s->refused++;

    at = schema_at(schema, error->path);

    for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        if (at != NULL && is_refused(refused[i], error->message)
            && dsa_json_get(at, refused[i]) != NULL)
        {
            return;
        }
    }

    if (at != NULL && at->type == DSA_JSON_STRING
        && strncmp(at->text.data, "#/", 2) != 0
        && strstr(error->message, "does not refer into") != NULL)
    {
        return;
    }

    e = exclusion_of(s, NULL);

    if (at == NULL || e == NULL) {
        print_error("%s: %s: refused at \"%s\": %s\n", s->file, s->group,
                    error->path, error->message);
        s->wrong++;
        return;
    }

    e->used++;
}


/* The value at a path such as "properties.a.prefixItems[1]", or NULL. */

static const dsa_json_t *
schema_at(const dsa_json_t *schema, const char *path)
{
    size_t             len;
    unsigned long      n;
    const dsa_json_t  *child;

    while (*path != '\0' && schema != NULL) {

        if (*path == '[') {
            n = strtoul(path + 1, (char **) &path, 10);
            path++;

            for (child = schema->first; child != NULL && n-- > 0;
                 child = child->next)
            {
                /* void */
            }

            schema = child;
            continue;
        }

        path += *path == '.';

        /* names of properties may have dots */

        for (child = schema->first; child != NULL; child = child->next) {
            len = child->key.len;

            if (strncmp(path, child->key.data, len) == 0
                && strchr(".[", path[len]) != NULL)
            {
                path += len;
                break;
            }
        }

        schema = child;
    }

    return schema;
}


/* 1: the message begins with the name of the keyword. */

static int
is_refused(const char *keyword, const char *message)
{
    size_t  len;

    len = strlen(keyword);

    return message[0] == '"' && strncmp(message + 1, keyword, len) == 0
           && strncmp(message + 1 + len, "\" is not supported", 18) == 0;
}


static exclusion_t *
exclusion_of(const suite_t *s, const char *test)
{
    exclusion_t  *e;

    for (e = exclusions; e->file != NULL; e++) {
        if (strcmp(e->file, s->file) == 0 && strcmp(e->group, s->group) == 0
            && (test == NULL) == (e->test == NULL)
            && (test == NULL || strcmp(e->test, test) == 0))
        {
            return e;
        }
    }

    return NULL;
}


/* Appends a value as compact JSON; numbers as they were written. */

static void
instance_write(instance_t *in, const dsa_json_t *v)
{
    const dsa_json_t          *child;
    static const char *const   names[] = { "null", "false", "true" };

    switch (v->type) {

    case DSA_JSON_INTEGER:
    case DSA_JSON_FLOAT:
        dsa_buf_add(&in->text, v->text.data, v->text.len);
        break;

    case DSA_JSON_STRING:
        dsa_buf_addz(&in->text, "\"");
        dsa_json_escape(&in->text, v->text);
        dsa_buf_addz(&in->text, "\"");
        break;

    case DSA_JSON_ARRAY:
        dsa_buf_addz(&in->text, "[");

        for (child = v->first; child != NULL; child = child->next) {
            dsa_buf_addz(&in->text, child != v->first ? "," : "");
            instance_write(in, child);
        }

        dsa_buf_addz(&in->text, "]");
        break;

    case DSA_JSON_OBJECT:
        dsa_buf_addz(&in->text, "{");
        instance_members(in, v);
        dsa_buf_addz(&in->text, "}");
        break;

    default:
        dsa_buf_addz(&in->text, names[v->type]);
    }
}


/*
 * The members of an object.  The digits of the order, which have the bases n,
 * n - 1, ..., 1 for each object, choose the next one among those that are left.
 */

static void
instance_members(instance_t *in, const dsa_json_t *v)
{
    uint32_t           i, n, k;
    const dsa_json_t  *child, *member[OBJECTS];

    n = 0;

    for (child = v->first; child != NULL; child = child->next) {
        assert_true(n < OBJECTS);
        member[n++] = child;
    }

    for (i = 0; n > 0; i++) {
        k = in->orders <= ORDERS ? in->order / in->orders % n : 0;
        in->orders *= n;
        child = member[k];

        memmove(&member[k], &member[k + 1],
                (n - k - 1) * sizeof(member[0]));
        n--;

        dsa_buf_addz(&in->text, i > 0 ? ",\"" : "\"");
        dsa_json_escape(&in->text, child->key);
        dsa_buf_addz(&in->text, "\":");
        instance_write(in, child);
    }
}


static const char *
text_of(const dsa_json_t *object, const char *name)
{
    const dsa_json_t  *v;

    v = dsa_json_get(object, name);

    return v->text.data;
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_suite),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
