
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Regular expressions of Lark grammars are those of Python, or of Rust where
 * OpenAI's clients write them.  What both have, and ECMA-262 has in another
 * form, is written in that form; what both would read in different ways is
 * refused.
 */


#include "grammar/lark.h"
#include "grammar/regex_parse.h"


#define DSA_LARK_FOLD       0x01        /* flag i */
#define DSA_LARK_LINES      0x02        /* m */
#define DSA_LARK_ALL        0x04        /* s */
#define DSA_LARK_VERBOSE    0x08        /* x */


typedef struct {
    dsa_str_t            text;
    size_t               i;
    dsa_buf_t           *out;
    uint32_t             depth;
    uint32_t             flags[DSA_REGEX_DEPTH + 1];    /* of each group */
    dsa_err_t           *error;
    int                  failed;
} dsa_lark_regex_t;


static void dsa_lark_regex_next(dsa_lark_regex_t *r);
static void dsa_lark_regex_escape(dsa_lark_regex_t *r, int in_class);
static void dsa_lark_regex_wide(dsa_lark_regex_t *r);
static void dsa_lark_regex_group(dsa_lark_regex_t *r);
static void dsa_lark_regex_special(dsa_lark_regex_t *r);
static void dsa_lark_regex_class(dsa_lark_regex_t *r);
static void dsa_lark_regex_member(dsa_lark_regex_t *r);
static void dsa_lark_regex_fold(dsa_lark_regex_t *r, int lo, int hi);
static void dsa_lark_regex_quantifier(dsa_lark_regex_t *r);
static uint32_t dsa_lark_regex_flag(int c);
static int dsa_lark_regex_peek(const dsa_lark_regex_t *r, size_t ahead);
static void dsa_lark_regex_copy(dsa_lark_regex_t *r);
static void dsa_lark_regex_fail(dsa_lark_regex_t *r, const char *what);


int
dsa_lark_regex(dsa_buf_t *out, dsa_str_t regex, dsa_str_t flags,
    dsa_err_t *error)
{
    size_t            i;
    dsa_lark_regex_t  r;

    memset(&r, 0, sizeof(dsa_lark_regex_t));

    r.text = regex;
    r.out = out;
    r.error = error;

    for (i = 0; i < flags.len; i++) {
        r.flags[0] |= dsa_lark_regex_flag(flags.data[i]);

        if (flags.data[i] == 'l') {
            dsa_lark_regex_fail(&r, "the flag l is not supported; expected "
                                "one of \"imsx\"");
        }
    }

    dsa_buf_addz(out, "^(?:");

    while (r.i < regex.len && !r.failed) {
        dsa_lark_regex_next(&r);
    }

    dsa_buf_addz(out, ")$");

    if (out->failed) {
        dsa_lark_regex_fail(&r, "there is no memory for it");
    }

    return r.failed ? DSA_ERROR : DSA_OK;
}


static void
dsa_lark_regex_next(dsa_lark_regex_t *r)
{
    int       c;
    uint32_t  flags;

    flags = r->flags[r->depth];
    c = dsa_lark_regex_peek(r, 0);

    switch (c) {

    case '\\':
        dsa_lark_regex_escape(r, 0);
        return;

    case '[':
        dsa_lark_regex_class(r);
        return;

    case '(':
        dsa_lark_regex_group(r);
        return;

    case ')':
        r->depth -= r->depth != 0;
        dsa_lark_regex_copy(r);
        return;

    case '^':
    case '$':
        dsa_lark_regex_fail(r, "an anchor is not supported; a regular "
                            "expression is all of a token");
        return;

    case '.':
        dsa_buf_addz(r->out, (flags & DSA_LARK_ALL) != 0 ? "[^]" : "[^\\n]");
        r->i++;
        return;

    case '*':
    case '+':
    case '?':
    case '}':
        dsa_lark_regex_quantifier(r);
        return;

    case '\n':
        if ((flags & DSA_LARK_VERBOSE) == 0) {
            dsa_lark_regex_fail(r, "the regular expression has no \"/\" on "
                                "its line; expected one, or the flag x");
        }
    }

    if ((flags & DSA_LARK_VERBOSE) != 0 && c == '#') {
        while (r->i < r->text.len && r->text.data[r->i] != '\n') {
            r->i++;
        }

    } else if ((flags & DSA_LARK_VERBOSE) != 0
               && (c == ' ' || (c >= '\t' && c <= '\r')))
    {
        r->i++;

    } else if ((flags & DSA_LARK_FOLD) != 0
               && (c >= 0x80 || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')))
    {
        dsa_buf_addz(r->out, "[");
        dsa_lark_regex_fold(r, c, c);
        dsa_buf_addz(r->out, "]");
        r->i++;

    } else {
        dsa_lark_regex_copy(r);
    }
}


static void
dsa_lark_regex_escape(dsa_lark_regex_t *r, int in_class)
{
    int  c;

    c = dsa_lark_regex_peek(r, 1);

    if (c == -1) {
        dsa_lark_regex_fail(r, "a backslash without anything behind it");
        return;
    }

    if (c != 0 && strchr("xuU", c) != NULL
        && (r->flags[r->depth] & DSA_LARK_FOLD) != 0)
    {
        dsa_lark_regex_fail(r, "the number of a character is not supported "
                            "with the flag i; expected the character itself");
        return;
    }

    if (!in_class && c != 0 && strchr("AzZGbB", c) != NULL) {
        dsa_lark_regex_fail(r, "an anchor is not supported; a regular "
                            "expression is all of a token");
        return;
    }

    if (c == 'U') {
        dsa_lark_regex_wide(r);
        return;
    }

    if (c == 'x' && dsa_lark_regex_peek(r, 2) == '{') {
        dsa_buf_addz(r->out, "\\u");
        r->i += 2;
        return;
    }

    dsa_lark_regex_copy(r);
    dsa_lark_regex_copy(r);
}


/* \UHHHHHHHH */

static void
dsa_lark_regex_wide(dsa_lark_regex_t *r)
{
    size_t  i;

    for (i = 2; i < 10; i++) {
        if (dsa_lark_regex_peek(r, i) == -1
            || (i < 4 && dsa_lark_regex_peek(r, i) != '0'))
        {
            dsa_lark_regex_fail(r, "\"\\U\" is not a character; expected "
                                "\\U00HHHHHH");
            return;
        }
    }

    dsa_buf_addz(r->out, "\\u{");
    dsa_buf_add(r->out, r->text.data + r->i + 4, 6);
    dsa_buf_addz(r->out, "}");

    r->i += 10;
}


static void
dsa_lark_regex_group(dsa_lark_regex_t *r)
{
    if (r->depth == DSA_REGEX_DEPTH) {
        dsa_lark_regex_fail(r, "groups are too deep");
        return;
    }

    r->depth++;
    r->flags[r->depth] = r->flags[r->depth - 1];

    if (dsa_lark_regex_peek(r, 1) == '?') {
        dsa_lark_regex_special(r);
        return;
    }

    dsa_lark_regex_copy(r);
}


/* (?:...), a group with a name, or flags */

static void
dsa_lark_regex_special(dsa_lark_regex_t *r)
{
    int       c;
    size_t    name;
    uint32_t  flag;

    r->i += 2;
    name = dsa_lark_regex_peek(r, 0) == 'P' ? 1 : 0;
    c = dsa_lark_regex_peek(r, name + 1);

    if (dsa_lark_regex_peek(r, name) == '<' && c != '=' && c != '!') {
        while (r->i < r->text.len && r->text.data[r->i] != '>') {
            r->i++;
        }

        r->i += r->i < r->text.len;
        dsa_buf_addz(r->out, "(?:");
        return;
    }

    c = dsa_lark_regex_peek(r, 0);

    if (c == '=' || c == '!' || c == '<') {
        dsa_lark_regex_fail(r, c == '<' ? "lookbehind is not supported"
                                        : "lookahead is not supported");
        return;
    }

    for (flag = 1; c != ':' && c != ')' && flag != 0; /* void */) {
        flag = dsa_lark_regex_flag(c);
        r->flags[r->depth] |= flag;
        r->i++;
        c = dsa_lark_regex_peek(r, 0);
    }

    if (c == ':' && flag != 0) {
        dsa_buf_addz(r->out, "(?:");

    } else if (c == ')' && flag != 0 && r->depth == 1 && r->out->len == 4) {

        /* flags of all that follows */

        r->flags[0] = r->flags[1];
        r->depth = 0;

    } else {
        dsa_lark_regex_fail(r, "\"(?\" is not supported; expected \"(?:\", a "
                            "name, or flags of \"imsx\" and \":\"");
    }

    r->i++;
}


static void
dsa_lark_regex_class(dsa_lark_regex_t *r)
{
    dsa_lark_regex_copy(r);

    if (dsa_lark_regex_peek(r, 0) == '^') {
        dsa_lark_regex_copy(r);
    }

    if (dsa_lark_regex_peek(r, 0) == ']') {
        dsa_buf_addz(r->out, "\\");
        dsa_lark_regex_copy(r);
    }

    while (!r->failed && dsa_lark_regex_peek(r, 0) != ']') {
        dsa_lark_regex_member(r);
    }

    dsa_lark_regex_copy(r);
}


/* A character, a range or an escape in a class. */

static void
dsa_lark_regex_member(dsa_lark_regex_t *r)
{
    int       c, hi;
    uint32_t  flags;

    flags = r->flags[r->depth];
    c = dsa_lark_regex_peek(r, 0);

    if (c == -1) {
        dsa_lark_regex_fail(r, "\"[\" without a \"]\"");
        return;
    }

    if (c == '[' || ((c == '&' || c == '-' || c == '~')
                     && dsa_lark_regex_peek(r, 1) == c))
    {
        dsa_lark_regex_fail(r, "\"[\", \"&&\", \"--\" and \"~~\" in a class "
                            "are not supported; expected a backslash before "
                            "the character");
        return;
    }

    if ((flags & DSA_LARK_VERBOSE) != 0
        && (c == ' ' || c == '#' || (c >= '\t' && c <= '\r')))
    {
        dsa_lark_regex_fail(r, "white space and \"#\" in a class are not "
                            "supported with the flag x; expected an escape");
        return;
    }

    if (c == '\\') {
        dsa_lark_regex_escape(r, 1);
        return;
    }

    if ((flags & DSA_LARK_FOLD) == 0) {
        dsa_lark_regex_copy(r);
        return;
    }

    hi = dsa_lark_regex_peek(r, 2);

    if (dsa_lark_regex_peek(r, 1) != '-' || hi == ']' || hi == -1) {
        dsa_lark_regex_fold(r, c, c);
        r->i++;

    } else if (hi == '\\') {
        dsa_lark_regex_fail(r, "an escape at the end of a range is not "
                            "supported with the flag i");

    } else {
        dsa_lark_regex_fold(r, c, hi);
        r->i += 3;
    }
}


/* A range of a class with the other case of its letters. */

static void
dsa_lark_regex_fold(dsa_lark_regex_t *r, int lo, int hi)
{
    int  first, last, base;

    if (lo >= 0x80 || hi >= 0x80) {
        dsa_lark_regex_fail(r, "the flag i is supported for ASCII only");
        return;
    }

    if (lo == hi) {
        dsa_buf_printf(r->out, "%c", lo);

    } else {
        dsa_buf_printf(r->out, "%c-%c", lo, hi);
    }

    for (base = 'A'; base <= 'a'; base += 'a' - 'A') {
        first = lo > base ? lo : base;
        last = hi < base + 25 ? hi : base + 25;

        if (first <= last) {
            dsa_buf_printf(r->out, "%c-%c", first ^ 0x20, last ^ 0x20);
        }
    }
}


/*
 * A lazy quantifier makes a lexer end a token where what follows it begins.
 * Without a lexer it would permit what its author means to leave out.
 */

static void
dsa_lark_regex_quantifier(dsa_lark_regex_t *r)
{
    if (dsa_lark_regex_peek(r, 1) == '?') {
        dsa_lark_regex_fail(r, "a lazy quantifier is not supported; expected "
                            "a class without the character that ends the "
                            "text, for example [^\"]*");
        return;
    }

    dsa_lark_regex_copy(r);
}


/* 0: the flag is unknown. */

static uint32_t
dsa_lark_regex_flag(int c)
{
    switch (c) {

    case 'i':
        return DSA_LARK_FOLD;

    case 'm':
        return DSA_LARK_LINES;

    case 's':
        return DSA_LARK_ALL;

    case 'x':
        return DSA_LARK_VERBOSE;

    default:
        return 0;
    }
}


/* A byte ahead of the next one; -1: the end. */

static int
dsa_lark_regex_peek(const dsa_lark_regex_t *r, size_t ahead)
{
    return r->i + ahead < r->text.len ? (uint8_t) r->text.data[r->i + ahead]
           : -1;
}


static void
dsa_lark_regex_copy(dsa_lark_regex_t *r)
{
    if (r->i < r->text.len) {
        dsa_buf_add(r->out, r->text.data + r->i, 1);
        r->i++;
    }
}


static void
dsa_lark_regex_fail(dsa_lark_regex_t *r, const char *what)
{
    if (!r->failed) {
        r->failed = 1;
        (void) dsa_error(r->error, "%s", what);
    }
}
