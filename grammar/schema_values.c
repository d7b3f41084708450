
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>

#include "base/json_write.h"
#include "grammar/regex.h"
#include "grammar/schema.h"
#include "grammar/text.h"


static uint32_t dsa_schema_any_rule(dsa_schema_t *s, dsa_values_e values);
static void dsa_schema_free_string(dsa_schema_t *s, dsa_values_e values,
    uint32_t from, uint32_t to);
static void dsa_schema_sized_string(dsa_schema_t *s, dsa_values_e values,
    uint32_t min, uint32_t max, uint32_t from, uint32_t to);
static dsa_dfa_t *dsa_schema_pattern(dsa_schema_t *s,
    const dsa_json_t *schema);
static const char *dsa_schema_format(const dsa_json_t *schema);
static dsa_dfa_t *dsa_schema_without_control(dsa_schema_t *s,
    dsa_dfa_t *dfa);
static void dsa_schema_quoted(dsa_schema_t *s, const dsa_dfa_t *dfa,
    dsa_values_e values, uint32_t from, uint32_t to);
static int dsa_schema_choice(dsa_schema_t *s, const dsa_json_t *v,
    uint32_t types, dsa_values_e values, dsa_str_t *out);
static int dsa_schema_choice_compare(const void *a, const void *b);
static void dsa_schema_choices(dsa_schema_t *s, dsa_str_t *choice,
    uint32_t n, uint32_t from, uint32_t to);


void
dsa_schema_any(dsa_schema_t *s, dsa_values_e values, uint32_t from,
    uint32_t to)
{
    /* without nodes, the rules below would not be remembered */

    if (s->a->state != DSA_AUTOMATON_GOOD) {
        return;
    }

    if (values == DSA_VALUES_TEXT) {
        dsa_schema_free_string(s, values, from, to);
        return;
    }

    dsa_automaton_call(s->a, from, dsa_schema_any_rule(s, values), to);
}


void
dsa_schema_any_object(dsa_schema_t *s, uint32_t from, uint32_t to)
{
    uint32_t  open, first, key, value, more, comma, name, close;

    if (s->a->state != DSA_AUTOMATON_GOOD) {
        return;
    }

    if (s->members == 0) {
        s->members = dsa_automaton_node(s->a);

        open = dsa_automaton_node(s->a);
        first = dsa_automaton_node(s->a);
        name = dsa_automaton_node(s->a);
        key = dsa_automaton_node(s->a);
        value = dsa_automaton_node(s->a);
        more = dsa_automaton_node(s->a);
        comma = dsa_automaton_node(s->a);
        close = dsa_automaton_node(s->a);

        dsa_automaton_bytes(s->a, s->members, '{', '{', open);
        dsa_schema_blank(s, open, first);
        dsa_automaton_empty(s->a, first, close);
        dsa_automaton_empty(s->a, first, name);

        dsa_schema_free_string(s, DSA_VALUES_JSON, name, key);
        dsa_schema_colon(s, key, value);
        dsa_schema_any(s, DSA_VALUES_JSON, value, more);

        dsa_automaton_bytes(s->a, more, ',', ',', comma);
        dsa_schema_blank(s, comma, name);
        dsa_schema_blank(s, more, close);

        first = dsa_automaton_node(s->a);
        dsa_automaton_bytes(s->a, close, '}', '}', first);
        dsa_automaton_end(s->a, first);
    }

    dsa_automaton_call(s->a, from, s->members, to);
}


void
dsa_schema_enum(dsa_schema_t *s, const dsa_json_t *schema,
    dsa_values_e values, uint32_t from, uint32_t to)
{
    uint32_t           n, types;
    dsa_str_t         *choice;
    const dsa_json_t  *v, *list, *value;

    types = dsa_schema_types(s, schema);
    list = dsa_json_get(schema, "enum");
    value = dsa_json_get(schema, "const");

    if (list != NULL && value != NULL) {
        dsa_schema_fail(s, "const", "it cannot be combined with \"enum\"; "
                        "expected one of them");
        return;
    }

    if (list != NULL && (list->type != DSA_JSON_ARRAY || list->n == 0
                         || list->n > DSA_SCHEMA_ENUM))
    {
        dsa_schema_fail(s, "enum", "it is not a list of values; expected an "
                        "array with 1 to %d values", DSA_SCHEMA_ENUM);
        return;
    }

    n = list != NULL ? list->n : 1;
    choice = malloc(n * sizeof(dsa_str_t));

    if (choice == NULL) {
        dsa_schema_fail(s, "enum", "there is no memory for it");
        return;
    }

    n = 0;

    for (v = list != NULL ? list->first : value; v != NULL && !s->failed;
         v = list != NULL ? v->next : NULL)
    {
        n += (uint32_t) dsa_schema_choice(s, v, types, values, &choice[n]);
    }

    if (!s->failed) {
        dsa_schema_choices(s, choice, n, from, to);
    }

    free(choice);
}


void
dsa_schema_string(dsa_schema_t *s, const dsa_json_t *schema,
    dsa_values_e values, uint32_t from, uint32_t to)
{
    uint32_t    min, max;
    dsa_dfa_t  *dfa;

    min = dsa_schema_count(s, schema, "minLength", 0);
    max = dsa_schema_count(s, schema, "maxLength", DSA_AUTOMATON_MANY);

    if (min > max) {
        dsa_schema_fail(s, "minLength", "it is greater than maxLength, so "
                        "that no string satisfies both");
    }

    if (s->failed) {
        return;
    }

    if (dsa_json_get(schema, "pattern") == NULL
        && dsa_schema_format(schema) == NULL)
    {
        if (min == 0 && max == DSA_AUTOMATON_MANY) {
            dsa_schema_free_string(s, values, from, to);

        } else {
            dsa_schema_sized_string(s, values, min, max, from, to);
        }

        return;
    }

    dfa = dsa_schema_pattern(s, schema);

    if (min != 0 || max != DSA_AUTOMATON_MANY) {
        dfa = dsa_dfa_intersect(dfa, dsa_dfa_lengths(min, max));
    }

    if (values == DSA_VALUES_TEXT) {
        dfa = dsa_schema_without_control(s, dfa);
    }

    if (dfa == NULL) {
        dsa_schema_fail(s, NULL, "pattern, format, minLength and maxLength "
                        "together need too much memory; expected smaller "
                        "lengths or a simpler pattern");
        return;
    }

    dsa_schema_charge(s, dfa);
    dsa_schema_quoted(s, dfa, values, from, to);
    dsa_dfa_free(dfa);
}


void
dsa_schema_number(dsa_schema_t *s, const dsa_json_t *schema, int integer,
    uint32_t from, uint32_t to)
{
    uint32_t    end, *rule;
    dsa_dfa_t  *dfa;

    static const char *const  keywords[] = {
        "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
        "multipleOf"
    };

    for (end = 0; end < sizeof(keywords) / sizeof(keywords[0]); end++) {
        if (dsa_json_get(schema, keywords[end]) != NULL) {
            dfa = dsa_number(s, schema, integer);
            dsa_schema_charge(s, dfa);

            if (dfa != NULL) {
                dsa_text_dfa(s->a, dfa, DSA_TEXT_PLAIN, from, to);
            }

            dsa_dfa_free(dfa);
            return;
        }
    }

    rule = integer ? &s->integer : &s->number;

    if (*rule == 0) {
        dfa = dsa_number(s, NULL, integer);

        if (dfa == NULL) {
            return;
        }

        *rule = dsa_automaton_node(s->a);
        end = dsa_automaton_node(s->a);

        dsa_text_dfa(s->a, dfa, DSA_TEXT_PLAIN, *rule, end);
        dsa_automaton_end(s->a, end);
        dsa_dfa_free(dfa);
    }

    dsa_automaton_call(s->a, from, *rule, to);
}


/* The entry of the rule of any JSON value. */

static uint32_t
dsa_schema_any_rule(dsa_schema_t *s, dsa_values_e values)
{
    uint32_t           end, entry;
    static dsa_json_t  none = { .type = DSA_JSON_OBJECT };

    if (s->any[values] != 0) {
        return s->any[values];
    }

    entry = dsa_automaton_node(s->a);
    end = dsa_automaton_node(s->a);

    s->any[values] = entry;

    dsa_automaton_end(s->a, end);

    if (values == DSA_VALUES_JSON) {
        dsa_schema_free_string(s, values, entry, end);
    }

    dsa_automaton_literal(s->a, entry, dsa_strz("null"), end);
    dsa_automaton_literal(s->a, entry, dsa_strz("true"), end);
    dsa_automaton_literal(s->a, entry, dsa_strz("false"), end);
    dsa_schema_number(s, &none, 0, entry, end);
    dsa_schema_any_object(s, entry, end);
    dsa_schema_array(s, &none, entry, end);

    return entry;
}


static void
dsa_schema_free_string(dsa_schema_t *s, dsa_values_e values, uint32_t from,
    uint32_t to)
{
    uint32_t    node, end, *rule;
    dsa_dfa_t  *dfa;

    rule = values == DSA_VALUES_TEXT ? &s->any[DSA_VALUES_TEXT] : &s->string;

    if (*rule == 0) {
        *rule = dsa_automaton_node(s->a);
        end = dsa_automaton_node(s->a);
        dsa_automaton_end(s->a, end);

        if (values == DSA_VALUES_TEXT) {
            dfa = dsa_schema_without_control(s,
                                             dsa_dfa_lengths(0, UINT32_MAX));

            if (dfa == NULL) {
                dsa_schema_fail(s, NULL, "there is no memory for it");
                return;
            }

            dsa_text_dfa(s->a, dfa, DSA_TEXT_PLAIN, *rule, end);
            dsa_dfa_free(dfa);

        } else {
            node = dsa_automaton_node(s->a);

            dsa_automaton_bytes(s->a, *rule, '"', '"', node);
            dsa_text_character(s->a, DSA_TEXT_JSON, node, node);
            dsa_automaton_bytes(s->a, node, '"', '"', end);
        }
    }

    dsa_automaton_call(s->a, from, *rule, to);
}


static void
dsa_schema_sized_string(dsa_schema_t *s, dsa_values_e values, uint32_t min,
    uint32_t max, uint32_t from, uint32_t to)
{
    uint32_t  open, close, body, end;

    body = dsa_automaton_node(s->a);
    end = dsa_automaton_node(s->a);
    dsa_automaton_end(s->a, end);

    if (values == DSA_VALUES_TEXT) {
        dsa_text_character(s->a, DSA_TEXT_PLAIN, body, end);
        dsa_automaton_loop(s->a, from, body, min, max, to);
        return;
    }

    open = dsa_automaton_node(s->a);
    close = dsa_automaton_node(s->a);

    dsa_text_character(s->a, DSA_TEXT_JSON, body, end);
    dsa_automaton_bytes(s->a, from, '"', '"', open);
    dsa_automaton_loop(s->a, open, body, min, max, close);
    dsa_automaton_bytes(s->a, close, '"', '"', to);
}


/* The strings that pattern and format permit; NULL: an error, or no memory. */

static dsa_dfa_t *
dsa_schema_pattern(dsa_schema_t *s, const dsa_json_t *schema)
{
    dsa_dfa_t         *dfa, *other;
    dsa_err_t          error;
    const char        *known;
    const dsa_json_t  *pattern;

    dfa = NULL;
    known = dsa_schema_format(schema);
    pattern = dsa_json_get(schema, "pattern");

    if (pattern != NULL) {
        if (pattern->type != DSA_JSON_STRING) {
            dsa_schema_fail(s, "pattern", "it is not a string; expected a "
                            "regular expression");
            return NULL;
        }

        dfa = dsa_regex(pattern->text, &s->work, &error);

        if (dfa == NULL) {
            dsa_schema_fail(s, "pattern", "%.350s", error.text);
            return NULL;
        }
    }

    if (known == NULL) {
        return dfa;
    }

    other = dsa_regex(dsa_strz(known), &s->work, &error);

    return pattern != NULL ? dsa_dfa_intersect(dfa, other) : other;
}


/* The pattern of a known format, or NULL: another one is an annotation. */

static const char *
dsa_schema_format(const dsa_json_t *schema)
{
    const dsa_json_t  *format;

    format = dsa_json_get(schema, "format");

    return format != NULL && format->type == DSA_JSON_STRING
           ? dsa_format_pattern(format->text) : NULL;
}


/* Consumes dfa. */

static dsa_dfa_t *
dsa_schema_without_control(dsa_schema_t *s, dsa_dfa_t *dfa)
{
    size_t      i;
    dsa_buf_t   pattern;
    dsa_dfa_t  *control;
    dsa_err_t   error;

    memset(&pattern, 0, sizeof(dsa_buf_t));

    for (i = 0; i < s->a->control.len; i++) {
        if (strchr("^$\\.*+?()[]{}|/", s->a->control.data[i]) != NULL) {
            dsa_buf_add(&pattern, "\\", 1);
        }

        dsa_buf_add(&pattern, s->a->control.data + i, 1);
    }

    control = pattern.failed ? NULL
              : dsa_regex(dsa_str(pattern.data, pattern.len), &s->work,
                          &error);
    dsa_buf_free(&pattern);

    return dsa_dfa_intersect(dfa, dsa_dfa_complement(control));
}


static void
dsa_schema_quoted(dsa_schema_t *s, const dsa_dfa_t *dfa, dsa_values_e values,
    uint32_t from, uint32_t to)
{
    uint32_t  open, close;

    if (values == DSA_VALUES_TEXT) {
        dsa_text_dfa(s->a, dfa, DSA_TEXT_PLAIN, from, to);
        return;
    }

    open = dsa_automaton_node(s->a);
    close = dsa_automaton_node(s->a);

    dsa_automaton_bytes(s->a, from, '"', '"', open);
    dsa_text_dfa(s->a, dfa, DSA_TEXT_JSON, open, close);
    dsa_automaton_bytes(s->a, close, '"', '"', to);
}


/* The text of a value of an enum; 0: it is left out. */

static int
dsa_schema_choice(dsa_schema_t *s, const dsa_json_t *v, uint32_t types,
    dsa_values_e values, dsa_str_t *out)
{
    char               *copy;
    uint32_t            type;
    dsa_buf_t           b;
    dsa_str_t           control;
    dsa_json_writer_t   w;

    static const uint32_t  type_of[] = {
        [DSA_JSON_NULL] = DSA_TYPE_NULL,
        [DSA_JSON_FALSE] = DSA_TYPE_BOOLEAN,
        [DSA_JSON_TRUE] = DSA_TYPE_BOOLEAN,
        [DSA_JSON_INTEGER] = DSA_TYPE_INTEGER | DSA_TYPE_NUMBER,
        [DSA_JSON_FLOAT] = DSA_TYPE_NUMBER,
        [DSA_JSON_STRING] = DSA_TYPE_STRING,
        [DSA_JSON_ARRAY] = DSA_TYPE_ARRAY,
        [DSA_JSON_OBJECT] = DSA_TYPE_OBJECT
    };

    type = type_of[v->type];

    if ((type & types) == 0
        || (values == DSA_VALUES_TEXT && type != DSA_TYPE_STRING)
        || (values == DSA_VALUES_NOT_STRINGS && type == DSA_TYPE_STRING))
    {
        return 0;
    }

    if (values == DSA_VALUES_TEXT) {
        control = s->a->control;

        if (memmem(v->text.data, v->text.len, control.data, control.len)
            != NULL)
        {
            dsa_schema_fail(s, "enum", "a value contains \"%.*s\", which is a "
                            "part of the syntax of calls", (int) control.len,
                            control.data);
            return 0;
        }

        *out = v->text;
        return 1;
    }

    memset(&b, 0, sizeof(dsa_buf_t));

    dsa_json_writer(&w, &b);
    dsa_json_value(&w, v);

    copy = b.failed ? NULL : dsa_arena_dup(s->arena, dsa_str(b.data, b.len));
    *out = dsa_str(copy, b.len);

    dsa_buf_free(&b);

    if (copy == NULL) {
        dsa_schema_fail(s, "enum", "its values are too large");
        return 0;
    }

    return 1;
}


static int
dsa_schema_choice_compare(const void *a, const void *b)
{
    int               rc;
    size_t            n;
    const dsa_str_t  *x, *y;

    x = a;
    y = b;
    n = x->len < y->len ? x->len : y->len;
    rc = n != 0 ? memcmp(x->data, y->data, n) : 0;

    if (rc != 0) {
        return rc;
    }

    return x->len < y->len ? -1 : x->len > y->len;
}


/* Paths for texts; those with a common prefix share its nodes. */

static void
dsa_schema_choices(dsa_schema_t *s, dsa_str_t *choice, uint32_t n,
    uint32_t from, uint32_t to)
{
    size_t     k, common, max;
    uint8_t    byte;
    uint32_t   i, *path;

    max = 0;

    for (i = 0; i < n; i++) {
        max = choice[i].len > max ? choice[i].len : max;
    }

    path = malloc((max + 1) * sizeof(uint32_t));

    if (path == NULL) {
        dsa_schema_fail(s, "enum", "there is no memory for it");
        return;
    }

    qsort(choice, n, sizeof(dsa_str_t), dsa_schema_choice_compare);

    path[0] = dsa_automaton_node(s->a);
    dsa_automaton_empty(s->a, from, path[0]);

    for (i = 0; i < n; i++) {
        common = 0;

        while (i != 0 && common < choice[i].len && common < choice[i - 1].len
               && choice[i].data[common] == choice[i - 1].data[common])
        {
            common++;
        }

        for (k = common; k < choice[i].len; k++) {
            byte = (uint8_t) choice[i].data[k];
            path[k + 1] = dsa_automaton_node(s->a);
            dsa_automaton_bytes(s->a, path[k], byte, byte, path[k + 1]);
        }

        dsa_automaton_empty(s->a, path[choice[i].len], to);
    }

    free(path);
}
