
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Calls of tools, in a syntax of the table below.
 */


#include <stdio.h>

#include "grammar/lark.h"
#include "grammar/regex.h"
#include "grammar/schema.h"
#include "grammar/text.h"


#define DSA_TOOLS_MAX   1024
#define DSA_TOOLS_NAME  256             /* longest name of a parameter */


/*
 * A syntax.  The bytes 1 to 6 in its texts are its control tokens, by their
 * number.  The text "string" precedes a value that is a string, which is
 * written as its text; the text "json" precedes any other value, which is
 * written as JSON.
 */

#define DSA_TOOLS_FIRST   1
#define DSA_TOOLS_LAST    DSA_AUTOMATON_CONTROLS

typedef struct dsa_tools_syntax_s {
    const char  *name;
    const char  *control[DSA_AUTOMATON_CONTROLS];   /* the first is NULL: the
                                           caller of the compiler has the name
                                           of the only one, and no text may
                                           spell it */
    const char  *block;                 /* around all calls */
    const char  *block_end;
    const char  *call;                  /* before the name of a tool */
    const char  *named;                 /* behind it */
    const char  *call_end;
    const char  *parameter;             /* before the name of a parameter */
    const char  *string;                /* behind it */
    const char  *json;
    const char  *parameter_end;
    const char  *none;                  /* in place of parameters */
    uint32_t     object;                /* 1: the parameters are one JSON
                                           object, without texts of the syntax
                                           between them */
    uint32_t     trimmed;               /* 1: names have no white space at their
                                           ends, because readers remove it */
} dsa_tools_syntax_t;


static const dsa_tools_syntax_t *dsa_tools_find(dsa_schema_t *s,
    const dsa_json_t *name);
static void dsa_tools_text(dsa_schema_t *s, uint32_t from, uint32_t to);
static void dsa_tools_call(dsa_schema_t *s, const dsa_json_t *tool,
    uint32_t index, uint32_t from, uint32_t to);
static void dsa_tools_input(dsa_schema_t *s, const dsa_json_t *input,
    uint32_t index, uint32_t from, uint32_t to);
static void dsa_tools_schema(dsa_schema_t *s, const dsa_json_t *schema,
    int strict, uint32_t from, uint32_t to);
static void dsa_tools_strict(dsa_schema_t *s, const dsa_json_t *schema,
    uint32_t from, uint32_t to);
static int dsa_tools_demands(dsa_schema_t *s, const dsa_parts_t *p,
    const dsa_property_t *property, uint32_t n, int *demanded);
static int dsa_tools_empty(dsa_schema_t *s, const dsa_parts_t *p,
    const dsa_property_t *property, uint32_t n);
static void dsa_tools_element(dsa_schema_t *s, const dsa_parts_t *p,
    dsa_str_t name, uint32_t from, uint32_t to);
static int dsa_tools_name(const dsa_schema_t *s, dsa_str_t name);
static void dsa_tools_others(dsa_schema_t *s, const dsa_parts_t *p,
    const dsa_property_t *property, uint32_t n, uint32_t empty,
    uint32_t more);
static void dsa_tools_other(dsa_schema_t *s, const dsa_dfa_t *names,
    const dsa_parts_t *value, void *data);
static void dsa_tools_parameter(dsa_schema_t *s, const dsa_parts_t *value,
    uint32_t from, uint32_t to);
static uint32_t dsa_tools_tag(dsa_schema_t *s, const char *text,
    uint32_t from);
static uint32_t dsa_tools_literal(dsa_schema_t *s, dsa_str_t text,
    uint32_t from);


static const dsa_tools_syntax_t  dsa_tools_syntaxes[] = {

    /* DeepSeek-V3.2 */

    { "dsml", { NULL },
      "\n\n<\1function_calls>\n", "</\1function_calls>",
      "<\1invoke name=\"", "\">\n", "</\1invoke>\n",
      "<\1parameter name=\"", "\" string=\"true\">", "\" string=\"false\">",
      "</\1parameter>\n", "\n", 0, 0 },

    /* GLM-5; the schema decides whether a value is a string */

    { "glm",
      { "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>",
        "<arg_value>", "</arg_value>" },
      "", "",
      "\1", "", "\2",
      "\3", "\4\5", "\4\5",
      "\6", "", 0, 1 },

    /* DeepSeek-V3.1 */

    { "deepseek-v3.1",
      { "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>",
        "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>" },
      "\1", "\5",
      "\2", "\3", "\4",
      NULL, NULL, NULL,
      NULL, NULL, 1, 0 }
};


void
dsa_tools_compile(dsa_schema_t *s, const dsa_json_t *spec, uint32_t from,
    uint32_t to)
{
    uint32_t           i, node, body, end;
    const dsa_json_t  *tools, *v, *calls, *text;

    tools = dsa_json_get(spec, "tools");
    calls = dsa_json_get(spec, "calls");
    text = dsa_json_get(spec, "text");
    s->syntax = dsa_tools_find(s, dsa_json_get(spec, "syntax"));

    if (calls == NULL || (!dsa_str_eqz(calls->text, "one")
                          && !dsa_str_eqz(calls->text, "many")))
    {
        dsa_schema_fail(s, "calls", "it is unknown; expected \"one\" or "
                        "\"many\"");
    }

    if (text == NULL || (text->type != DSA_JSON_TRUE
                         && text->type != DSA_JSON_FALSE
                         && text->type != DSA_JSON_OBJECT))
    {
        dsa_schema_fail(s, "text", "it is unknown; expected a boolean or a "
                        "spec");
    }

    if (tools == NULL || tools->type != DSA_JSON_ARRAY || tools->n == 0
        || tools->n > DSA_TOOLS_MAX)
    {
        dsa_schema_fail(s, "tools", "it is not a list; expected an array with "
                        "1 to %d tools", DSA_TOOLS_MAX);
    }

    if (s->failed) {
        return;
    }

    if (text->type == DSA_JSON_TRUE) {
        node = dsa_automaton_node(s->a);
        dsa_tools_text(s, from, node);
        dsa_automaton_empty(s->a, node, to);
        from = node;

    } else if (text->type == DSA_JSON_OBJECT
               && !dsa_schema_spec(s, text, from, to))
    {
        dsa_schema_fail(s, "text", "the type of the spec is unknown; expected "
                        "json_object or json_schema");
    }

    node = dsa_tools_tag(s, s->syntax->block, from);

    body = dsa_automaton_node(s->a);
    end = dsa_automaton_node(s->a);
    dsa_automaton_end(s->a, end);

    for (i = 0, v = tools->first; v != NULL && !s->failed; i++, v = v->next) {
        dsa_tools_call(s, v, i, body, end);
    }

    end = dsa_automaton_node(s->a);
    dsa_automaton_loop(s->a, node, body, 1,
                       dsa_str_eqz(calls->text, "one")
                       ? 1 : DSA_AUTOMATON_MANY, end);

    node = dsa_tools_tag(s, s->syntax->block_end, end);
    dsa_automaton_empty(s->a, node, to);
}


/* Sets the control tokens of the syntax with this name. */

static const dsa_tools_syntax_t *
dsa_tools_find(dsa_schema_t *s, const dsa_json_t *name)
{
    size_t                     i;
    uint32_t                   k;
    const dsa_tools_syntax_t  *syntax;

    for (i = 0; i < sizeof(dsa_tools_syntaxes) / sizeof(dsa_tools_syntaxes[0]);
         i++)
    {
        syntax = &dsa_tools_syntaxes[i];

        if (name == NULL || !dsa_str_eqz(name->text, syntax->name)) {
            continue;
        }

        for (k = 0; k < DSA_AUTOMATON_CONTROLS; k++) {
            if (syntax->control[k] == NULL) {
                return syntax;
            }

            s->a->control[k] = dsa_strz(syntax->control[k]);
            s->a->n_controls = k + 1;
            s->a->spelled = dsa_str("", 0);
        }

        return syntax;
    }

    dsa_schema_fail(s, "syntax", "the syntax is unknown; expected "
                    "\"deepseek-v3.1\", \"dsml\" or \"glm\"");

    return NULL;
}


/* Any text that does not spell the control token. */

static void
dsa_tools_text(dsa_schema_t *s, uint32_t from, uint32_t to)
{
    dsa_schema_any(s, DSA_VALUES_TEXT, from, to);
}


static void
dsa_tools_call(dsa_schema_t *s, const dsa_json_t *tool, uint32_t index,
    uint32_t from, uint32_t to)
{
    uint32_t           node, close;
    const dsa_json_t  *name, *strict, *schema, *input;

    name = dsa_json_get(tool, "name");
    strict = dsa_json_get(tool, "strict");
    schema = dsa_json_get(tool, "parameters");
    input = dsa_json_get(tool, "input");

    (void) snprintf(s->prefix, sizeof(s->prefix),
                    "tools[%u].function.parameters", index);
    (void) snprintf(s->path, sizeof(s->path), "%s", s->prefix);

    if (name == NULL || name->type != DSA_JSON_STRING
        || !dsa_tools_name(s, name->text))
    {
        (void) snprintf(s->path, sizeof(s->path), "tools[%u].function.name",
                        index);
        dsa_schema_fail(s, NULL, "it is not a name; expected a string of 1 to "
                        "%d bytes without quotes, \"<\", \">\" and control "
                        "characters", DSA_TOOLS_NAME);
        return;
    }

    node = dsa_tools_tag(s, s->syntax->call, from);
    node = dsa_tools_literal(s, name->text, node);
    node = dsa_tools_tag(s, s->syntax->named, node);

    close = dsa_automaton_node(s->a);

    if (input != NULL) {
        dsa_tools_input(s, input, index, node, close);

    } else {
        dsa_tools_schema(s, schema, strict != NULL
                                    && strict->type == DSA_JSON_TRUE,
                         node, close);
    }

    node = dsa_tools_tag(s, s->syntax->call_end, close);
    dsa_automaton_empty(s->a, node, to);
}


static void
dsa_tools_strict(dsa_schema_t *s, const dsa_json_t *schema, uint32_t from,
    uint32_t to)
{
    dsa_part_t   part = { schema, DSA_PART_SCHEMA, s->prefix };
    dsa_parts_t  p;

    memset(&p, 0, sizeof(dsa_parts_t));
    dsa_parts_expand(s, &p, &part);
    dsa_schema_at(s, &part);

    if (!s->failed && (dsa_parts_types(s, &p) & DSA_TYPE_OBJECT) == 0) {
        dsa_schema_fail(s, "type", "the parameters are not an object; "
                        "expected type \"object\"");
    }

    memset(&p, 0, sizeof(dsa_parts_t));
    dsa_parts_add(s, &p, DSA_PART_SCHEMA, schema, part.path);

    if (s->syntax->object) {
        dsa_parts_add(s, &p, DSA_PART_OBJECT, NULL, part.path);
        dsa_schema_compile(s, &p, DSA_VALUES_JSON, from, to);
        return;
    }

    dsa_schema_compile(s, &p, DSA_VALUES_ELEMENTS, from, to);
}


/* schema NULL: the parameters are any JSON. */

static void
dsa_tools_schema(dsa_schema_t *s, const dsa_json_t *schema, int strict,
    uint32_t from, uint32_t to)
{
    static const dsa_json_t  any = { .type = DSA_JSON_OBJECT };

    if (schema != NULL && schema->type == DSA_JSON_NULL) {
        schema = NULL;
    }

    if (schema != NULL && !strict) {
        s->optional = 1;

        if (s->loose) {
            s->skipped++;
            schema = NULL;
        }
    }

    s->lenient = schema != NULL && !strict;
    s->root = schema != NULL ? schema : &any;

    dsa_tools_strict(s, s->root, from, to);
    dsa_schema_rules(s);

    s->lenient = 0;
}


/*
 * The properties of the parameters' schema, one element each, as the members
 * of an object: before each there is a node for no element so far, and one for
 * some.
 */

void
dsa_tools_elements(dsa_schema_t *s, const dsa_parts_t *p, uint32_t from,
    uint32_t to)
{
    int              demanded;
    uint32_t         i, n, empty, more, node, name;
    dsa_property_t  *property;

    property = dsa_schema_properties(s, p, &n);

    if (property == NULL || !dsa_tools_demands(s, p, property, n, &demanded)) {
        return;
    }

    empty = from;
    more = dsa_automaton_node(s->a);

    for (i = 0; i < n && !s->failed; i++) {
        name = dsa_automaton_node(s->a);
        dsa_automaton_empty(s->a, empty, name);
        dsa_automaton_empty(s->a, more, name);

        node = dsa_automaton_node(s->a);
        dsa_tools_element(s, p, property[i].name, name, node);

        name = dsa_automaton_node(s->a);

        if (!property[i].required) {
            dsa_automaton_empty(s->a, more, node);
            dsa_automaton_empty(s->a, empty, name);
        }

        more = node;
        empty = name;
    }

    if (!s->failed && !dsa_parts_closed(p)) {
        dsa_tools_others(s, p, property, n, empty, more);
    }

    if (!s->failed && dsa_tools_empty(s, p, property, n) && !demanded) {
        dsa_automaton_literal(s->a, empty, dsa_strz(s->syntax->none), to);
    }

    dsa_automaton_empty(s->a, more, to);
}


/*
 * 0: the parameters must have some of their names, which is left out here
 * unless any of them will do: then *demanded is 1.
 */

static int
dsa_tools_demands(dsa_schema_t *s, const dsa_parts_t *p,
    const dsa_property_t *property, uint32_t n, int *demanded)
{
    uint32_t       i;
    dsa_demands_t  d;

    if (dsa_schema_demands(s, p, property, n, &d) != DSA_OK) {
        return 0;
    }

    *demanded = d.n != 0;

    for (i = 0; i < n + !dsa_parts_closed(p) && d.n != 0; i++) {
        if ((d.met[i] & ((1U << d.n) - 1)) != (1U << d.n) - 1) {
            return 0;
        }
    }

    return 1;
}


/* 1: a call may have no parameters. */

static int
dsa_tools_empty(dsa_schema_t *s, const dsa_parts_t *p,
    const dsa_property_t *property, uint32_t n)
{
    uint32_t     i, min, max, required;
    const char  *keyword;

    if (dsa_parts_range(s, p, "minProperties", "maxProperties", &min, &max)
        != DSA_OK)
    {
        return 0;
    }

    required = 0;

    for (i = 0; i < n; i++) {
        required += (uint32_t) property[i].required;
    }

    min = required < min ? min : 0;

    if (min > 1 || max < n || (max != DSA_AUTOMATON_MANY
                               && !dsa_parts_closed(p)))
    {
        keyword = min > 1 ? "minProperties" : "maxProperties";
        dsa_parts_at(s, p, keyword);
        dsa_schema_fail(s, keyword, "it is not supported for parameters");
    }

    return min == 0;
}


static void
dsa_tools_element(dsa_schema_t *s, const dsa_parts_t *p, dsa_str_t name,
    uint32_t from, uint32_t to)
{
    uint32_t     node;
    dsa_parts_t  value;

    memset(&value, 0, sizeof(dsa_parts_t));
    dsa_parts_member(s, p, name, &value);

    if (!dsa_tools_name(s, name)) {
        if (value.n != 0) {
            dsa_schema_at(s, &value.part[0]);
        }

        dsa_schema_fail(s, NULL, "a parameter cannot have this name; "
                        "expected 1 to %d bytes without quotes, \"<\", "
                        "\">\" and control characters", DSA_TOOLS_NAME);
        return;
    }

    node = dsa_tools_tag(s, s->syntax->parameter, from);
    node = dsa_tools_literal(s, name, node);
    dsa_tools_parameter(s, &value, node, to);
}


static int
dsa_tools_name(const dsa_schema_t *s, dsa_str_t name)
{
    size_t     i;
    dsa_str_t  spelled;

    spelled = s->a->spelled;

    if (s->syntax->trimmed && name.len != 0
        && (name.data[0] == ' ' || name.data[name.len - 1] == ' '))
    {
        return 0;
    }

    for (i = 0; i < name.len; i++) {
        if ((uint8_t) name.data[i] < 0x20 || name.data[i] == 0x7f
            || name.data[i] == '"' || name.data[i] == '<'
            || name.data[i] == '>')
        {
            return 0;
        }
    }

    return name.len != 0 && name.len <= DSA_TOOLS_NAME
           && (spelled.len == 0
               || memmem(name.data, name.len, spelled.data, spelled.len)
                  == NULL);
}


/* Any number of elements with other names. */

static void
dsa_tools_others(dsa_schema_t *s, const dsa_parts_t *p,
    const dsa_property_t *property, uint32_t n, uint32_t empty, uint32_t more)
{
    uint32_t    node[2];
    dsa_dfa_t  *limit;
    dsa_err_t   error;

    limit = dsa_regex(dsa_strz("^[A-Za-z0-9_.-]{1,64}$"), &s->work, &error);

    if (limit == NULL) {
        dsa_schema_fail(s, "additionalProperties", "there is no memory for "
                        "the names of other parameters");
        return;
    }

    node[0] = dsa_automaton_node(s->a);
    dsa_automaton_empty(s->a, empty, node[0]);
    dsa_automaton_empty(s->a, more, node[0]);

    node[0] = dsa_tools_tag(s, s->syntax->parameter, node[0]);
    node[1] = more;

    dsa_schema_others(s, p, property, n, limit, dsa_tools_other, node);
}


static void
dsa_tools_other(dsa_schema_t *s, const dsa_dfa_t *names,
    const dsa_parts_t *value, void *data)
{
    uint32_t         name;
    const uint32_t  *node = data;

    name = dsa_automaton_node(s->a);
    dsa_text_dfa(s->a, names, DSA_TEXT_PLAIN, node[0], name);
    dsa_tools_parameter(s, value, name, node[1]);
}


/* A parameter behind its name, to the end of its element. */

static void
dsa_tools_parameter(dsa_schema_t *s, const dsa_parts_t *value, uint32_t from,
    uint32_t to)
{
    uint32_t  node, end;

    end = dsa_automaton_node(s->a);

    node = dsa_tools_tag(s, s->syntax->string, from);
    dsa_schema_compile(s, value, DSA_VALUES_TEXT, node, end);

    if (strcmp(s->syntax->json, s->syntax->string) != 0) {
        node = dsa_tools_tag(s, s->syntax->json, from);
    }

    dsa_schema_compile(s, value, DSA_VALUES_NOT_STRINGS, node, end);

    node = dsa_tools_tag(s, s->syntax->parameter_end, end);
    dsa_automaton_empty(s->a, node, to);
}


/* A text of the syntax; returns the node behind it. */

static uint32_t
dsa_tools_tag(dsa_schema_t *s, const char *text, uint32_t from)
{
    size_t    n;
    uint32_t  to;

    while (*text != '\0') {
        if (*text >= DSA_TOOLS_FIRST && *text <= DSA_TOOLS_LAST) {
            to = dsa_automaton_node(s->a);
            dsa_automaton_control(s->a, from,
                                  (uint32_t) (*text - DSA_TOOLS_FIRST), to);
            from = to;
            text++;
            continue;
        }

        for (n = 1; text[n] != '\0'; n++) {
            if (text[n] >= DSA_TOOLS_FIRST && text[n] <= DSA_TOOLS_LAST) {
                break;
            }
        }

        from = dsa_tools_literal(s, dsa_str(text, n), from);
        text += n;
    }

    return from;
}


static uint32_t
dsa_tools_literal(dsa_schema_t *s, dsa_str_t text, uint32_t from)
{
    uint32_t  to;

    to = dsa_automaton_node(s->a);
    dsa_automaton_literal(s->a, from, text, to);

    return to;
}


/* The only parameter of a tool, whose text is in the language of a grammar. */

static void
dsa_tools_input(dsa_schema_t *s, const dsa_json_t *input, uint32_t index,
    uint32_t from, uint32_t to)
{
    uint32_t           node, end;
    const dsa_json_t  *syntax, *definition;

    (void) snprintf(s->path, sizeof(s->path),
                    "tools[%u].function.format.definition", index);

    syntax = dsa_json_get(input, "syntax");
    definition = dsa_json_get(input, "definition");

    if (syntax == NULL || !dsa_str_eqz(syntax->text, "lark")
        || definition == NULL || definition->type != DSA_JSON_STRING)
    {
        dsa_schema_fail(s, NULL, "the input is unknown; expected a syntax "
                        "\"lark\" and a definition");
        return;
    }

    end = dsa_automaton_node(s->a);

    if (s->syntax->object) {
        node = dsa_tools_literal(s, dsa_strz("{\"input\": \""), from);
        dsa_lark_compile(s, definition->text, DSA_TEXT_JSON, node, end);
        dsa_automaton_literal(s->a, end, dsa_strz("\"}"), to);
        return;
    }

    node = dsa_tools_tag(s, s->syntax->parameter, from);
    node = dsa_tools_literal(s, dsa_strz("input"), node);
    node = dsa_tools_tag(s, s->syntax->string, node);
    dsa_lark_compile(s, definition->text, DSA_TEXT_PLAIN, node, end);
    node = dsa_tools_tag(s, s->syntax->parameter_end, end);
    dsa_automaton_empty(s->a, node, to);
}
