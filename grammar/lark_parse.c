
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>

#include "grammar/lark.h"


static void dsa_lark_statement(dsa_lark_t *l);
static void dsa_lark_ignore(dsa_lark_t *l);
static void dsa_lark_import(dsa_lark_t *l);
static void dsa_lark_import_list(dsa_lark_t *l);
static void dsa_lark_import_one(dsa_lark_t *l, dsa_str_t name, size_t at,
    dsa_str_t as);
static void dsa_lark_definition(dsa_lark_t *l);
static void dsa_lark_priority(dsa_lark_t *l);
static uint32_t dsa_lark_choice(dsa_lark_t *l);
static int dsa_lark_alternative(dsa_lark_t *l);
static uint32_t dsa_lark_sequence(dsa_lark_t *l);
static uint32_t dsa_lark_item(dsa_lark_t *l);
static uint32_t dsa_lark_atom(dsa_lark_t *l);
static uint32_t dsa_lark_group(dsa_lark_t *l);
static uint32_t dsa_lark_reference(dsa_lark_t *l);
static void dsa_lark_operator(dsa_lark_t *l, uint32_t node);
static uint32_t dsa_lark_number(dsa_lark_t *l);
static dsa_str_t dsa_lark_name(dsa_lark_t *l, int *terminal);
static uint32_t dsa_lark_symbol(dsa_lark_t *l, dsa_str_t name, int terminal,
    size_t at);
static void dsa_lark_define(dsa_lark_t *l, dsa_str_t name, int terminal,
    size_t at, uint32_t body);
static uint32_t dsa_lark_append(dsa_lark_t *l, uint32_t parent, uint32_t last,
    uint32_t child);
static void dsa_lark_blanks(dsa_lark_t *l, int lines);
static void dsa_lark_end(dsa_lark_t *l);
static int dsa_lark_peek(const dsa_lark_t *l);
static int dsa_lark_is(const dsa_lark_t *l, const char *set);
static int dsa_lark_take(dsa_lark_t *l, const char *what);
static int dsa_lark_shown(dsa_str_t name);


void
dsa_lark_parse(dsa_lark_t *l)
{
    (void) dsa_lark_node(l, DSA_LARK_CHOICE, 0);

    l->start = dsa_lark_symbol(l, dsa_strz("start"), 0, 0);

    for ( ;; ) {
        dsa_lark_blanks(l, 1);

        if (l->s->failed || l->i == l->text.len) {
            return;
        }

        if (dsa_lark_peek(l) == '%') {
            dsa_lark_statement(l);

        } else {
            dsa_lark_definition(l);
        }
    }
}


static void
dsa_lark_statement(dsa_lark_t *l)
{
    size_t  i, at;

    static const char *const  refused[] = {
        "%declare", "%override", "%extend"
    };

    at = l->i;

    if (dsa_lark_take(l, "%ignore")) {
        dsa_lark_ignore(l);
        return;
    }

    if (dsa_lark_take(l, "%import")) {
        dsa_lark_import(l);
        return;
    }

    for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        if (dsa_lark_take(l, refused[i])) {
            dsa_lark_fail(l, at, "%s is not supported", refused[i]);
            return;
        }
    }

    dsa_lark_fail(l, at, "the statement is unknown; expected %%ignore or "
                  "%%import");
}


static void
dsa_lark_ignore(dsa_lark_t *l)
{
    uint32_t  sequence, node;

    dsa_lark_blanks(l, 0);

    if (l->ignore == 0) {
        l->ignore = dsa_lark_node(l, DSA_LARK_CHOICE, l->i);
    }

    /* it is the first one, so that no list has to be followed */

    sequence = dsa_lark_node(l, DSA_LARK_SEQUENCE, l->i);

    l->terminal = 1;
    node = dsa_lark_choice(l);

    if (l->s->failed) {
        return;
    }

    l->node[sequence].first = node;
    l->node[sequence].next = l->node[l->ignore].first;
    l->node[l->ignore].first = sequence;

    dsa_lark_end(l);
}


/* common.NAME, common.NAME -> ALIAS or common (NAME, ...) */

static void
dsa_lark_import(dsa_lark_t *l)
{
    int        terminal;
    size_t     at;
    dsa_str_t  name, as;

    dsa_lark_blanks(l, 0);
    at = l->i;

    if (!dsa_lark_take(l, "common") || !dsa_lark_is(l, ". \t(")) {
        dsa_lark_fail(l, at, "only terminals of \"common\" can be imported; "
                      "expected, for example, common.INT");
        return;
    }

    dsa_lark_blanks(l, 0);

    if (dsa_lark_take(l, "(")) {
        dsa_lark_import_list(l);
        dsa_lark_end(l);
        return;
    }

    if (!dsa_lark_take(l, ".")) {
        dsa_lark_fail(l, l->i, "expected \".\" and a name, or names in "
                      "parentheses");
        return;
    }

    at = l->i;
    name = dsa_lark_name(l, &terminal);
    as = name;

    dsa_lark_blanks(l, 0);

    if (dsa_lark_take(l, "->")) {
        dsa_lark_blanks(l, 0);
        as = dsa_lark_name(l, &terminal);

        if (!l->s->failed && !terminal) {
            dsa_lark_fail(l, at, "the other name of a terminal has lower "
                          "case; expected upper case");
        }
    }

    dsa_lark_import_one(l, name, at, as);
    dsa_lark_end(l);
}


static void
dsa_lark_import_list(dsa_lark_t *l)
{
    int        terminal;
    size_t     at;
    dsa_str_t  name;

    do {
        dsa_lark_blanks(l, 1);
        at = l->i;
        name = dsa_lark_name(l, &terminal);
        dsa_lark_import_one(l, name, at, name);
        dsa_lark_blanks(l, 1);
    } while (dsa_lark_take(l, ","));

    if (!dsa_lark_take(l, ")")) {
        dsa_lark_fail(l, l->i, "expected \",\" or \")\"");
    }
}


static void
dsa_lark_import_one(dsa_lark_t *l, dsa_str_t name, size_t at, dsa_str_t as)
{
    uint32_t  body, sequence, token;

    l->terminal = 1;

    body = dsa_lark_node(l, DSA_LARK_CHOICE, at);
    sequence = dsa_lark_node(l, DSA_LARK_SEQUENCE, at);
    token = dsa_lark_common(l, name, at);

    if (l->s->failed) {
        return;
    }

    l->node[body].first = sequence;
    l->node[sequence].first = token;

    dsa_lark_define(l, as, 1, at, body);
}


/* NAME: choice, or with a priority, which has no meaning without a lexer */

static void
dsa_lark_definition(dsa_lark_t *l)
{
    int        terminal, modified;
    size_t     at;
    uint32_t   body;
    dsa_str_t  name;

    /* how a tree is made of the text does not matter here */

    modified = 0;

    while (dsa_lark_peek(l) == '?' || dsa_lark_peek(l) == '!') {
        modified = 1;
        l->i++;
    }

    at = l->i;
    name = dsa_lark_name(l, &terminal);

    if (!l->s->failed && terminal && modified) {
        dsa_lark_fail(l, at, "\"?\" and \"!\" can only precede a rule");
    }

    if (dsa_lark_peek(l) == '{') {
        dsa_lark_fail(l, l->i, "templates are not supported");
    }

    dsa_lark_blanks(l, 0);
    dsa_lark_priority(l);

    if (!dsa_lark_take(l, ":")) {
        dsa_lark_fail(l, l->i, "expected \":\" behind the name of a rule");
    }

    if (l->s->failed) {
        return;
    }

    l->terminal = terminal;
    body = dsa_lark_choice(l);

    dsa_lark_define(l, name, terminal, at, body);
    dsa_lark_end(l);
}


static void
dsa_lark_priority(dsa_lark_t *l)
{
    if (!dsa_lark_take(l, ".")) {
        return;
    }

    if (!dsa_lark_take(l, "-")) {
        (void) dsa_lark_take(l, "+");
    }

    (void) dsa_lark_number(l);
    dsa_lark_blanks(l, 0);
}


static uint32_t
dsa_lark_choice(dsa_lark_t *l)
{
    uint32_t  choice, sequence, last;

    choice = dsa_lark_node(l, DSA_LARK_CHOICE, l->i);
    last = 0;

    do {
        sequence = dsa_lark_sequence(l);

        if (l->s->failed) {
            return 0;
        }

        last = dsa_lark_append(l, choice, last, sequence);

    } while (dsa_lark_alternative(l));

    return choice;
}


/* 1: a "|" follows, which may be on a later line. */

static int
dsa_lark_alternative(dsa_lark_t *l)
{
    size_t  i;

    i = l->i;
    dsa_lark_blanks(l, 1);

    if (dsa_lark_take(l, "|")) {
        return 1;
    }

    l->i = i;

    return 0;
}


static uint32_t
dsa_lark_sequence(dsa_lark_t *l)
{
    int       alias;
    uint32_t  sequence, item, last;

    dsa_lark_blanks(l, l->depth != 0);

    sequence = dsa_lark_node(l, DSA_LARK_SEQUENCE, l->i);
    last = 0;

    while (!l->s->failed) {
        dsa_lark_blanks(l, l->depth != 0);

        if (l->i == l->text.len || dsa_lark_is(l, "\n|)]")) {
            return sequence;
        }

        if (dsa_lark_take(l, "->")) {
            dsa_lark_blanks(l, 0);
            (void) dsa_lark_name(l, &alias);
            dsa_lark_blanks(l, l->depth != 0);
            return sequence;
        }

        item = dsa_lark_item(l);

        if (!l->s->failed) {
            last = dsa_lark_append(l, sequence, last, item);
        }
    }

    return 0;
}


static uint32_t
dsa_lark_item(dsa_lark_t *l)
{
    uint32_t  node;

    node = dsa_lark_atom(l);

    if (l->s->failed) {
        return 0;
    }

    dsa_lark_blanks(l, l->depth != 0);

    if (dsa_lark_is(l, "*+?~")) {
        dsa_lark_operator(l, node);
        dsa_lark_blanks(l, l->depth != 0);

        if (dsa_lark_is(l, "*+?~")) {
            dsa_lark_fail(l, l->i, "an operator behind an operator; expected "
                          "a group around the first");
        }
    }

    return node;
}


static uint32_t
dsa_lark_atom(dsa_lark_t *l)
{
    int  c;

    c = dsa_lark_peek(l);

    switch (c) {

    case '(':
    case '[':
        return dsa_lark_group(l);

    case '"':
        return dsa_lark_string(l);

    case '/':
        return dsa_lark_regexp(l);
    }

    if (c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
        return dsa_lark_reference(l);
    }

    dsa_lark_fail(l, l->i, "the character is not expected here; expected a "
                  "name, a string, a regular expression or a group");

    return 0;
}


static uint32_t
dsa_lark_group(dsa_lark_t *l)
{
    int       optional;
    size_t    at;
    uint32_t  choice, sequence;

    at = l->i;
    optional = dsa_lark_peek(l) == '[';
    l->i++;

    if (l->depth == DSA_LARK_DEPTH) {
        dsa_lark_fail(l, at, "groups are too deep; expected at most %d in one "
                      "another", DSA_LARK_DEPTH);
        return 0;
    }

    l->depth++;
    choice = dsa_lark_choice(l);
    l->depth--;

    if (l->s->failed) {
        return 0;
    }

    if (!dsa_lark_take(l, optional ? "]" : ")")) {
        dsa_lark_fail(l, at, optional ? "\"[\" without a \"]\""
                                      : "\"(\" without a \")\"");
        return 0;
    }

    l->node[choice].at = (uint32_t) at;

    if (optional) {
        sequence = dsa_lark_node(l, DSA_LARK_SEQUENCE, at);

        if (l->s->failed) {
            return 0;
        }

        l->node[sequence].next = l->node[choice].first;
        l->node[choice].first = sequence;
    }

    return choice;
}


static uint32_t
dsa_lark_reference(dsa_lark_t *l)
{
    int        terminal;
    size_t     at;
    uint32_t   node, symbol;
    dsa_str_t  name;

    at = l->i;
    node = dsa_lark_node(l, DSA_LARK_NAME, at);
    name = dsa_lark_name(l, &terminal);

    if (l->s->failed) {
        return 0;
    }

    if (dsa_lark_peek(l) == '{') {
        dsa_lark_fail(l, l->i, "templates are not supported; expected \"~\" "
                      "for a count");
        return 0;
    }

    if (l->terminal && !terminal) {
        dsa_lark_fail(l, at, "a terminal cannot contain the rule \"%.*s\"",
                      dsa_lark_shown(name), name.data);
        return 0;
    }

    symbol = dsa_lark_symbol(l, name, terminal, at);
    l->node[node].symbol = symbol;

    return node;
}


static void
dsa_lark_operator(dsa_lark_t *l, uint32_t node)
{
    size_t    at;
    uint32_t  min, max;

    at = l->i;

    switch (l->text.data[l->i++]) {

    case '?':
        min = 0;
        max = 1;
        break;

    case '*':
        min = 0;
        max = DSA_AUTOMATON_MANY;
        break;

    case '+':
        min = 1;
        max = DSA_AUTOMATON_MANY;
        break;

    default:
        dsa_lark_blanks(l, 0);
        min = dsa_lark_number(l);
        max = min;
        dsa_lark_blanks(l, 0);

        if (dsa_lark_take(l, "..")) {
            dsa_lark_blanks(l, 0);
            max = dsa_lark_number(l);
        }
    }

    if (!l->s->failed && max < min) {
        dsa_lark_fail(l, at, "the first count is greater than the second");
    }

    l->node[node].min = min;
    l->node[node].max = max;
}


static uint32_t
dsa_lark_number(dsa_lark_t *l)
{
    int       c;
    size_t    at;
    uint32_t  n;

    n = 0;
    at = l->i;

    for (c = dsa_lark_peek(l); c >= '0' && c <= '9'; c = dsa_lark_peek(l)) {
        n = n * 10 + (uint32_t) (c - '0');
        l->i++;

        if (n > DSA_LARK_COUNT) {
            dsa_lark_fail(l, at, "the number is above %d", DSA_LARK_COUNT);
            return 0;
        }
    }

    if (l->i == at) {
        dsa_lark_fail(l, at, "expected a number");
    }

    return n;
}


/* A name is of a terminal if its letters are upper case, else of a rule. */

static dsa_str_t
dsa_lark_name(dsa_lark_t *l, int *terminal)
{
    int        c, lower, upper, digit;
    dsa_str_t  name;

    lower = 0;
    upper = 0;
    digit = 0;
    name = dsa_str(l->text.data + l->i, 0);

    for ( ;; ) {
        c = dsa_lark_peek(l);

        if (c >= '0' && c <= '9') {
            digit |= !lower && !upper;

        } else if (c >= 'a' && c <= 'z') {
            lower = 1;

        } else if (c >= 'A' && c <= 'Z') {
            upper = 1;

        } else if (c != '_') {
            break;
        }

        l->i++;
        name.len++;
    }

    if (lower == upper || digit) {
        dsa_lark_fail(l, l->i - name.len, "expected a name of a rule, for "
                      "example expr, or of a terminal, for example NUMBER");
    }

    *terminal = upper;

    return name;
}


/* The symbol of a name; it is added if it is new. */

static uint32_t
dsa_lark_symbol(dsa_lark_t *l, dsa_str_t name, int terminal, size_t at)
{
    uint64_t           *known;
    dsa_lark_symbol_t  *symbol;

    known = dsa_map_find(&l->symbols, name);

    if (known != NULL) {
        return (uint32_t) *known;
    }

    if (l->n_symbols == DSA_LARK_SYMBOLS) {
        dsa_lark_fail(l, at, "more than %d rules and terminals",
                      DSA_LARK_SYMBOLS);
        return 0;
    }

    if (dsa_map_add(&l->symbols, name, l->n_symbols) != DSA_OK) {
        dsa_lark_fail(l, at, "there is no memory for it");
        return 0;
    }

    symbol = &l->symbol[l->n_symbols];

    symbol->name = name;
    symbol->at = (uint32_t) at;
    symbol->terminal = terminal;

    return l->n_symbols++;
}


static void
dsa_lark_define(dsa_lark_t *l, dsa_str_t name, int terminal, size_t at,
    uint32_t body)
{
    uint32_t            i;
    dsa_lark_symbol_t  *symbol;

    if (l->s->failed) {
        return;
    }

    i = dsa_lark_symbol(l, name, terminal, at);

    if (l->s->failed) {
        return;
    }

    symbol = &l->symbol[i];

    if (symbol->body != 0) {
        dsa_lark_fail(l, at, "\"%.*s\" is defined twice",
                      dsa_lark_shown(name), name.data);
        return;
    }

    symbol->at = (uint32_t) at;
    symbol->body = body;
}


uint32_t
dsa_lark_node(dsa_lark_t *l, dsa_lark_e kind, size_t at)
{
    uint32_t          size;
    dsa_lark_node_t  *node;

    if (l->s->failed) {
        return 0;
    }

    if (l->n_nodes == l->size_nodes) {
        size = l->size_nodes != 0 ? l->size_nodes * 2 : 256;
        node = realloc(l->node, size * sizeof(dsa_lark_node_t));

        if (node == NULL) {
            dsa_lark_fail(l, at, "there is no memory for it");
            return 0;
        }

        l->node = node;
        l->size_nodes = size;
    }

    node = &l->node[l->n_nodes];
    memset(node, 0, sizeof(dsa_lark_node_t));

    node->kind = kind;
    node->at = (uint32_t) at;
    node->min = 1;
    node->max = 1;
    node->terminal = l->terminal != 0;

    return l->n_nodes++;
}


/* Adds a child behind the last one, and returns it. */

static uint32_t
dsa_lark_append(dsa_lark_t *l, uint32_t parent, uint32_t last, uint32_t child)
{
    if (last == 0) {
        l->node[parent].first = child;

    } else {
        l->node[last].next = child;
    }

    return child;
}


/* Skips blanks, comments, ends of lines with a backslash, and others. */

static void
dsa_lark_blanks(dsa_lark_t *l, int lines)
{
    int  c;

    for ( ;; ) {
        c = dsa_lark_peek(l);

        if (c == '#' || dsa_lark_take(l, "//")) {
            while (l->i < l->text.len && l->text.data[l->i] != '\n') {
                l->i++;
            }

        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f'
                   || (c == '\n' && lines))
        {
            l->i++;

        } else if (!dsa_lark_take(l, "\\\n")) {
            return;
        }
    }
}


/* A definition or a statement ends with its line. */

static void
dsa_lark_end(dsa_lark_t *l)
{
    dsa_lark_blanks(l, 0);

    if (l->i != l->text.len && !dsa_lark_take(l, "\n")) {
        dsa_lark_fail(l, l->i, "expected the end of the line");
    }
}


/* The next byte; -1: the end. */

static int
dsa_lark_peek(const dsa_lark_t *l)
{
    return l->i < l->text.len ? (uint8_t) l->text.data[l->i] : -1;
}


/* 1: the next byte is one of these. */

static int
dsa_lark_is(const dsa_lark_t *l, const char *set)
{
    return l->i < l->text.len
           && memchr(set, l->text.data[l->i], strlen(set)) != NULL;
}


static int
dsa_lark_take(dsa_lark_t *l, const char *what)
{
    size_t  len;

    len = strlen(what);

    if (l->text.len - l->i < len
        || memcmp(l->text.data + l->i, what, len) != 0)
    {
        return 0;
    }

    l->i += len;

    return 1;
}


static int
dsa_lark_shown(dsa_str_t name)
{
    return (int) (name.len < DSA_LARK_SHOWN ? name.len : DSA_LARK_SHOWN);
}
