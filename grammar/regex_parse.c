
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>

#include "grammar/codepoint.h"
#include "grammar/regex_parse.h"


#define DSA_REGEX_NONE  UINT32_MAX      /* the end of the pattern */


typedef struct {
    dsa_regex_tree_t        *tree;
    dsa_str_t                pattern;
    size_t                   i;
    uint32_t                 depth;
    dsa_err_t               *error;
    int                      failed;
} dsa_regex_parser_t;


static uint32_t dsa_regex_alternatives(dsa_regex_parser_t *p);
static uint32_t dsa_regex_sequence(dsa_regex_parser_t *p);
static uint32_t dsa_regex_term(dsa_regex_parser_t *p);
static uint32_t dsa_regex_group(dsa_regex_parser_t *p);
static uint32_t dsa_regex_quantifier(dsa_regex_parser_t *p, uint32_t node);
static int dsa_regex_counts(dsa_regex_parser_t *p, uint32_t *min,
    uint32_t *max);
static int dsa_regex_number(dsa_regex_parser_t *p, uint32_t *out);
static uint32_t dsa_regex_brackets(dsa_regex_parser_t *p);
static uint32_t dsa_regex_escape(dsa_regex_parser_t *p, int in_class,
    uint32_t *c);
static int dsa_regex_character(dsa_regex_parser_t *p, uint32_t c,
    int in_class, uint32_t *out);
static int dsa_regex_unicode(dsa_regex_parser_t *p, uint32_t *out);
static int dsa_regex_hex(dsa_regex_parser_t *p, uint32_t digits,
    uint32_t *out);
static void dsa_regex_set(dsa_regex_parser_t *p, uint32_t letter);
static void dsa_regex_add(dsa_regex_parser_t *p, uint32_t lo, uint32_t hi);
static uint32_t dsa_regex_class(dsa_regex_parser_t *p, uint32_t first,
    int negated);
static void dsa_regex_normalize(dsa_regex_parser_t *p, uint32_t first,
    int negated);
static int dsa_regex_compare(const void *a, const void *b);
static uint32_t dsa_regex_node(dsa_regex_parser_t *p, dsa_regex_kind_e kind,
    uint32_t a, uint32_t b);
static uint32_t dsa_regex_peek(dsa_regex_parser_t *p);
static uint32_t dsa_regex_next(dsa_regex_parser_t *p);
static void dsa_regex_fail(dsa_regex_parser_t *p, const char *what);


static const dsa_regex_range_t  dsa_regex_digit[] = { { '0', '9' } };

static const dsa_regex_range_t  dsa_regex_word[] = {
    { '0', '9' }, { 'A', 'Z' }, { '_', '_' }, { 'a', 'z' }
};

static const dsa_regex_range_t  dsa_regex_space[] = {
    { 0x09, 0x0d }, { 0x20, 0x20 }, { 0xa0, 0xa0 }, { 0x1680, 0x1680 },
    { 0x2000, 0x200a }, { 0x2028, 0x2029 }, { 0x202f, 0x202f },
    { 0x205f, 0x205f }, { 0x3000, 0x3000 }, { 0xfeff, 0xfeff }
};


int
dsa_regex_parse(dsa_regex_tree_t *tree, dsa_str_t pattern, dsa_err_t *error)
{
    dsa_regex_parser_t  p;

    memset(&p, 0, sizeof(dsa_regex_parser_t));

    p.tree = tree;
    p.pattern = pattern;
    p.error = error;

    tree->n_nodes = 0;
    tree->n_ranges = 0;

    if (pattern.len > DSA_REGEX_BYTES) {
        return dsa_error(error, "it has %zu bytes; expected at most %d",
                         pattern.len, DSA_REGEX_BYTES);
    }

    tree->root = dsa_regex_alternatives(&p);

    if (!p.failed && p.i != pattern.len) {
        dsa_regex_fail(&p, "\")\" without a \"(\"");
    }

    return p.failed ? DSA_ERROR : DSA_OK;
}


static uint32_t
dsa_regex_alternatives(dsa_regex_parser_t *p)
{
    uint32_t  node;

    node = dsa_regex_sequence(p);

    while (!p->failed && dsa_regex_peek(p) == '|') {
        (void) dsa_regex_next(p);
        node = dsa_regex_node(p, DSA_REGEX_ALT, node, dsa_regex_sequence(p));
    }

    return node;
}


static uint32_t
dsa_regex_sequence(dsa_regex_parser_t *p)
{
    uint32_t  c, node, term;

    node = dsa_regex_node(p, DSA_REGEX_EMPTY, 0, 0);

    for ( ;; ) {
        c = dsa_regex_peek(p);

        if (p->failed || c == DSA_REGEX_NONE || c == '|' || c == ')') {
            return node;
        }

        term = dsa_regex_term(p);
        node = dsa_regex_node(p, DSA_REGEX_CAT, node, term);
    }
}


static uint32_t
dsa_regex_term(dsa_regex_parser_t *p)
{
    uint32_t  c, first, node;

    c = dsa_regex_next(p);
    first = p->tree->n_ranges;

    switch (c) {

    case '^':
        return dsa_regex_node(p, DSA_REGEX_BEGIN, 0, 0);

    case '$':
        return dsa_regex_node(p, DSA_REGEX_END, 0, 0);

    case '(':
        node = dsa_regex_group(p);
        break;

    case '[':
        node = dsa_regex_brackets(p);
        break;

    case '.':
        dsa_regex_add(p, '\n', '\n');
        dsa_regex_add(p, '\r', '\r');
        dsa_regex_add(p, 0x2028, 0x2029);
        node = dsa_regex_class(p, first, 1);
        break;

    case '\\':
        if (!dsa_regex_escape(p, 0, &c)) {
            dsa_regex_add(p, c, c);
        }

        node = dsa_regex_class(p, first, 0);
        break;

    case '*':
    case '+':
    case '?':
    case '{':
        dsa_regex_fail(p, "a quantifier without anything in front of it; "
                       "expected a backslash before a literal one");
        return 0;

    default:
        dsa_regex_add(p, c, c);
        node = dsa_regex_class(p, first, 0);
    }

    return dsa_regex_quantifier(p, node);
}


static uint32_t
dsa_regex_group(dsa_regex_parser_t *p)
{
    uint32_t  c, node;

    if (p->depth == DSA_REGEX_DEPTH) {
        dsa_regex_fail(p, "groups are too deep");
        return 0;
    }

    if (dsa_regex_peek(p) == '?') {
        (void) dsa_regex_next(p);
        c = dsa_regex_next(p);

        if (c == '=' || c == '!') {
            dsa_regex_fail(p, "lookahead is not supported");

        } else if (c == '<') {
            c = dsa_regex_peek(p);

            if (c == '=' || c == '!') {
                dsa_regex_fail(p, "lookbehind is not supported");
            }

            do {
                c = dsa_regex_next(p);
            } while (c != '>' && c != DSA_REGEX_NONE);

        } else if (c != ':') {
            dsa_regex_fail(p, "\"(?\" is not supported; expected \"(?:\" or "
                           "\"(?<name>\"");
        }
    }

    p->depth++;
    node = dsa_regex_alternatives(p);
    p->depth--;

    if (!p->failed && dsa_regex_next(p) != ')') {
        dsa_regex_fail(p, "\"(\" without a \")\"");
    }

    return node;
}


static uint32_t
dsa_regex_quantifier(dsa_regex_parser_t *p, uint32_t node)
{
    uint32_t  c, min, max, repeat;

    c = dsa_regex_peek(p);

    if (p->failed || (c != '*' && c != '+' && c != '?' && c != '{')) {
        return node;
    }

    (void) dsa_regex_next(p);

    min = c == '+' ? 1 : 0;
    max = c == '?' ? 1 : DSA_REGEX_MANY;

    if (c == '{' && dsa_regex_counts(p, &min, &max) != DSA_OK) {
        return 0;
    }

    /* a lazy quantifier permits the same texts */

    if (dsa_regex_peek(p) == '?') {
        (void) dsa_regex_next(p);
    }

    c = dsa_regex_peek(p);

    if (c == '*' || c == '+' || c == '?' || c == '{') {
        dsa_regex_fail(p, "a quantifier behind a quantifier; expected a group "
                       "around the first");
        return 0;
    }

    repeat = dsa_regex_node(p, DSA_REGEX_REPEATED, node, 0);

    p->tree->node[repeat].min = min;
    p->tree->node[repeat].max = max;

    return repeat;
}


static int
dsa_regex_counts(dsa_regex_parser_t *p, uint32_t *min, uint32_t *max)
{
    uint32_t  c;

    if (dsa_regex_number(p, min) != DSA_OK) {
        return DSA_ERROR;
    }

    *max = *min;
    c = dsa_regex_next(p);

    if (c == ',') {
        *max = DSA_REGEX_MANY;

        if (dsa_regex_peek(p) != '}'
            && dsa_regex_number(p, max) != DSA_OK)
        {
            return DSA_ERROR;
        }

        c = dsa_regex_next(p);
    }

    if (c != '}' || *max < *min) {
        dsa_regex_fail(p, "\"{\" is not a quantifier; expected {n}, {n,} or "
                       "{n,m}, or a backslash before it");
        return DSA_ERROR;
    }

    return DSA_OK;
}


static int
dsa_regex_number(dsa_regex_parser_t *p, uint32_t *out)
{
    uint32_t  c, n, digits;

    n = 0;
    digits = 0;

    for ( ;; ) {
        c = dsa_regex_peek(p);

        if (c < '0' || c > '9') {
            break;
        }

        (void) dsa_regex_next(p);
        digits++;
        n = n * 10 + (c - '0');

        if (n > DSA_REGEX_REPEAT) {
            dsa_regex_fail(p, "a quantifier above 1000");
            return DSA_ERROR;
        }
    }

    if (digits == 0) {
        dsa_regex_fail(p, "\"{\" without a number; expected {n}, {n,} or "
                       "{n,m}, or a backslash before it");
        return DSA_ERROR;
    }

    *out = n;

    return DSA_OK;
}


static uint32_t
dsa_regex_brackets(dsa_regex_parser_t *p)
{
    int       negated, set;
    uint32_t  c, hi, first;

    first = p->tree->n_ranges;
    negated = dsa_regex_peek(p) == '^';

    if (negated) {
        (void) dsa_regex_next(p);
    }

    while (!p->failed) {
        c = dsa_regex_next(p);

        if (c == DSA_REGEX_NONE) {
            dsa_regex_fail(p, "\"[\" without a \"]\"");
            break;
        }

        if (c == ']') {
            return dsa_regex_class(p, first, negated);
        }

        set = c == '\\' && dsa_regex_escape(p, 1, &c);

        if (dsa_regex_peek(p) != '-'
            || p->i + 1 >= p->pattern.len
            || p->pattern.data[p->i + 1] == ']')
        {
            if (!set) {
                dsa_regex_add(p, c, c);
            }

            continue;
        }

        (void) dsa_regex_next(p);
        hi = dsa_regex_next(p);

        if (hi == '\\' && dsa_regex_escape(p, 1, &hi)) {
            set = 1;
        }

        if (set || hi == DSA_REGEX_NONE || hi < c) {
            dsa_regex_fail(p, "a range of a class is not from a lower to a "
                           "higher character");
            break;
        }

        dsa_regex_add(p, c, hi);
    }

    return 0;
}


/*
 * What follows a backslash.  Returns 1 if it is a set of characters, which is
 * added, or 0 and the character.
 */

static uint32_t
dsa_regex_escape(dsa_regex_parser_t *p, int in_class, uint32_t *c)
{
    uint32_t  letter;

    letter = dsa_regex_next(p);

    switch (letter) {

    case 'd':
    case 'D':
    case 'w':
    case 'W':
    case 's':
    case 'S':
        dsa_regex_set(p, letter);
        return 1;

    case 'b':
        if (in_class) {
            *c = '\b';
            return 0;
        }

        /* fall through */

    case 'B':
        dsa_regex_fail(p, "\"\\b\" and \"\\B\" are not supported");
        return 1;

    case 'p':
    case 'P':
        dsa_regex_fail(p, "\"\\p\" is not supported; expected a class of "
                       "characters");
        return 1;
    }

    if ((letter >= '1' && letter <= '9') || letter == 'k') {
        dsa_regex_fail(p, "a backreference is not supported");
        return 1;
    }

    return !dsa_regex_character(p, letter, in_class, c);
}


/* An escape that stands for one character; 0: it is invalid. */

static int
dsa_regex_character(dsa_regex_parser_t *p, uint32_t c, int in_class,
    uint32_t *out)
{
    switch (c) {

    case 't':
        *out = '\t';
        return 1;

    case 'n':
        *out = '\n';
        return 1;

    case 'v':
        *out = '\v';
        return 1;

    case 'f':
        *out = '\f';
        return 1;

    case 'r':
        *out = '\r';
        return 1;

    case '0':
        if (dsa_regex_peek(p) < '0' || dsa_regex_peek(p) > '9') {
            *out = 0;
            return 1;
        }

        break;

    case 'x':
        return dsa_regex_hex(p, 2, out);

    case 'u':
        return dsa_regex_unicode(p, out);

    default:
        if (c < 0x80 && c != 0
            && (strchr("^$\\.*+?()[]{}|/", (int) c) != NULL
                || strchr("-\"'#%&,:;<=>@`~! _", (int) c) != NULL))
        {
            *out = c;
            return 1;
        }
    }

    dsa_regex_fail(p, "an escape is not supported; expected \\d \\w \\s \\t "
                   "\\n \\r \\f \\v \\0 \\xHH \\uHHHH or punctuation");

    return 0;
}


/* HHHH, a pair of surrogates, or {H...}. */

static int
dsa_regex_unicode(dsa_regex_parser_t *p, uint32_t *out)
{
    uint32_t  c, low, digits;

    if (dsa_regex_peek(p) == '{') {
        (void) dsa_regex_next(p);

        for (digits = 0; digits < 6; digits++) {
            if (p->i + digits >= p->pattern.len
                || p->pattern.data[p->i + digits] == '}')
            {
                break;
            }
        }

        if (!dsa_regex_hex(p, digits, out)) {
            return 0;
        }

        if (digits != 0 && dsa_regex_next(p) == '}' && *out <= DSA_DFA_LAST
            && (*out < 0xd800 || *out > 0xdfff))
        {
            return 1;
        }

        dsa_regex_fail(p, "\"\\u{\" is not a character; expected \\u{H}");
        return 0;
    }

    if (!dsa_regex_hex(p, 4, &c)) {
        return 0;
    }

    if (c >= 0xd800 && c < 0xdc00 && p->i + 6 <= p->pattern.len
        && memcmp(p->pattern.data + p->i, "\\u", 2) == 0)
    {
        p->i += 2;

        if (!dsa_regex_hex(p, 4, &low)) {
            return 0;
        }

        if (low >= 0xdc00 && low < 0xe000) {
            *out = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
            return 1;
        }
    }

    if (c >= 0xd800 && c < 0xe000) {
        dsa_regex_fail(p, "\"\\u\" is half of a surrogate pair");
        return 0;
    }

    *out = c;

    return 1;
}


static int
dsa_regex_hex(dsa_regex_parser_t *p, uint32_t digits, uint32_t *out)
{
    uint32_t  c, n;

    n = 0;

    while (digits-- != 0) {
        c = dsa_regex_next(p);

        if (c >= '0' && c <= '9') {
            n = n * 16 + (c - '0');

        } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
            n = n * 16 + ((c | 0x20) - 'a' + 10);

        } else {
            dsa_regex_fail(p, "an escape needs hexadecimal digits");
            return 0;
        }
    }

    *out = n;

    return 1;
}


static void
dsa_regex_set(dsa_regex_parser_t *p, uint32_t letter)
{
    size_t                    i, n;
    uint32_t                  lo;
    const dsa_regex_range_t  *r;

    switch (letter | 0x20) {

    case 'd':
        r = dsa_regex_digit;
        n = sizeof(dsa_regex_digit) / sizeof(dsa_regex_range_t);
        break;

    case 'w':
        r = dsa_regex_word;
        n = sizeof(dsa_regex_word) / sizeof(dsa_regex_range_t);
        break;

    default:
        r = dsa_regex_space;
        n = sizeof(dsa_regex_space) / sizeof(dsa_regex_range_t);
    }

    lo = 0;

    for (i = 0; i < n; i++) {
        if ((letter & 0x20) != 0) {
            dsa_regex_add(p, r[i].lo, r[i].hi);
            continue;
        }

        dsa_regex_add(p, lo, r[i].lo - 1);
        lo = r[i].hi + 1;
    }

    if ((letter & 0x20) == 0) {
        dsa_regex_add(p, lo, DSA_DFA_LAST);
    }
}


static void
dsa_regex_add(dsa_regex_parser_t *p, uint32_t lo, uint32_t hi)
{
    dsa_regex_range_t  *r;

    if (p->failed || p->tree->n_ranges + 2 >= DSA_REGEX_RANGES) {
        dsa_regex_fail(p, "its classes are too large");
        return;
    }

    r = &p->tree->range[p->tree->n_ranges++];

    r->lo = lo;
    r->hi = hi;
}


static uint32_t
dsa_regex_class(dsa_regex_parser_t *p, uint32_t first, int negated)
{
    if (p->failed) {
        return 0;
    }

    dsa_regex_normalize(p, first, negated);

    return dsa_regex_node(p, DSA_REGEX_CLASS, first,
                          p->tree->n_ranges - first);
}


/* Sorts the ranges from first on, joins them, and takes out surrogates. */

static void
dsa_regex_normalize(dsa_regex_parser_t *p, uint32_t first, int negated)
{
    uint32_t            i, n, out, lo;
    dsa_regex_range_t  *r, *copy;

    /* two more ranges, so that the surrogates are in none that stays */

    dsa_regex_add(p, 0xd800, 0xdfff);

    if (p->failed) {
        return;
    }

    n = p->tree->n_ranges - first;
    r = &p->tree->range[first];

    if (!negated) {
        n--;
    }

    copy = malloc((2 * (size_t) n + 2) * sizeof(dsa_regex_range_t));

    if (copy == NULL) {
        dsa_regex_fail(p, "there is no memory for it");
        return;
    }

    qsort(r, n, sizeof(dsa_regex_range_t), dsa_regex_compare);

    out = 0;
    lo = 0;

    for (i = 0; i < n; i++) {

        if (negated) {
            if (r[i].lo > lo) {
                copy[out].lo = lo;
                copy[out++].hi = r[i].lo - 1;
            }

            if (r[i].hi + 1 > lo) {
                lo = r[i].hi + 1;
            }

            continue;
        }

        if (r[i].lo < lo) {
            r[i].lo = lo;
        }

        if (r[i].lo > r[i].hi) {
            continue;
        }

        lo = r[i].hi + 1;

        if (r[i].lo < 0xd800 || r[i].lo > 0xdfff) {
            copy[out].lo = r[i].lo;
            copy[out++].hi = r[i].lo < 0xd800 && r[i].hi >= 0xd800 ? 0xd7ff
                             : r[i].hi;
        }

        if (r[i].lo <= 0xdfff && r[i].hi > 0xdfff) {
            copy[out].lo = 0xe000;
            copy[out++].hi = r[i].hi;
        }
    }

    if (negated && lo <= DSA_DFA_LAST) {
        copy[out].lo = lo;
        copy[out++].hi = DSA_DFA_LAST;
    }

    p->tree->n_ranges = first + out;

    if (p->tree->n_ranges > DSA_REGEX_RANGES) {
        p->tree->n_ranges = first;
        dsa_regex_fail(p, "its classes are too large");

    } else {
        memcpy(r, copy, out * sizeof(dsa_regex_range_t));
    }

    free(copy);
}


static int
dsa_regex_compare(const void *a, const void *b)
{
    const dsa_regex_range_t  *x, *y;

    x = a;
    y = b;

    return x->lo < y->lo ? -1 : x->lo > y->lo;
}


static uint32_t
dsa_regex_node(dsa_regex_parser_t *p, dsa_regex_kind_e kind, uint32_t a,
    uint32_t b)
{
    dsa_regex_node_t  *node;

    if (p->failed) {
        return 0;
    }

    if (p->tree->n_nodes == DSA_REGEX_NODES) {
        dsa_regex_fail(p, "it is too long");
        return 0;
    }

    node = &p->tree->node[p->tree->n_nodes];

    node->kind = kind;
    node->a = a;
    node->b = b;

    return p->tree->n_nodes++;
}


static uint32_t
dsa_regex_peek(dsa_regex_parser_t *p)
{
    size_t  i;

    i = p->i;

    return i < p->pattern.len ? dsa_codepoint_next(p->pattern, &i)
           : DSA_REGEX_NONE;
}


static uint32_t
dsa_regex_next(dsa_regex_parser_t *p)
{
    return p->i < p->pattern.len ? dsa_codepoint_next(p->pattern, &p->i)
           : DSA_REGEX_NONE;
}


static void
dsa_regex_fail(dsa_regex_parser_t *p, const char *what)
{
    if (!p->failed) {
        p->failed = 1;
        (void) dsa_error(p->error, "%s (at byte %zu)", what, p->i);
    }
}
