
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The tokens of a Lark grammar: strings, ranges and regular expressions.  Each
 * is written to the automaton at once.  None has the first character of the
 * control token's name, because a parameter of a tool ends with that name.
 */


#include <stdio.h>

#include "grammar/codepoint.h"
#include "grammar/lark.h"
#include "grammar/regex.h"


#define DSA_LARK_NONE   UINT32_MAX      /* no character */


typedef struct {
    const char  *name;
    const char  *pattern;
} dsa_lark_common_t;


static uint32_t dsa_lark_range(dsa_lark_t *l, size_t at, dsa_str_t from);
static dsa_str_t dsa_lark_quoted(dsa_lark_t *l);
static dsa_dfa_t *dsa_lark_literal(dsa_lark_t *l, dsa_str_t text, int fold);
static uint32_t dsa_lark_character(dsa_lark_t *l, dsa_str_t text, size_t *i);
static uint32_t dsa_lark_hex(dsa_lark_t *l, dsa_str_t text, size_t *i,
    uint32_t digits);
static uint32_t dsa_lark_only(dsa_lark_t *l, dsa_str_t text, size_t at);
static size_t dsa_lark_slash(const dsa_lark_t *l, size_t i);
static dsa_str_t dsa_lark_flags(dsa_lark_t *l, const char *flags);
static uint32_t dsa_lark_pattern(dsa_lark_t *l, size_t at, dsa_str_t pattern);
static uint32_t dsa_lark_dfa(dsa_lark_t *l, size_t at, dsa_dfa_t *dfa);
static dsa_dfa_t *dsa_lark_plain(const dsa_lark_t *l, dsa_dfa_t *dfa);
static dsa_dfa_t *dsa_lark_characters(uint32_t lo, uint32_t hi);
static uint32_t dsa_lark_token(dsa_lark_t *l, size_t at);


/*
 * The terminals of Lark's common.lark as patterns.  In a quantifier that is
 * lazy there, the text cannot contain what ends it.
 */

static const dsa_lark_common_t  dsa_lark_commons[] = {
    { "DIGIT", "[0-9]" },
    { "HEXDIGIT", "[0-9A-Fa-f]" },
    { "INT", "[0-9]+" },
    { "SIGNED_INT", "[+-]?[0-9]+" },
    { "DECIMAL", "[0-9]+\\.[0-9]*|\\.[0-9]+" },
    { "_EXP", "[eE][+-]?[0-9]+" },
    { "FLOAT",
      "[0-9]+[eE][+-]?[0-9]+"
      "|(?:[0-9]+\\.[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?" },
    { "SIGNED_FLOAT",
      "[+-]?(?:[0-9]+[eE][+-]?[0-9]+"
      "|(?:[0-9]+\\.[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?)" },
    { "NUMBER", "(?:[0-9]+\\.?[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?" },
    { "SIGNED_NUMBER",
      "[+-]?(?:[0-9]+\\.?[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?" },
    { "_STRING_INNER", "[^\\n]*" },
    { "_STRING_ESC_INNER", "(?:[^\\\\\\n]|\\\\[^\\n])*" },
    { "ESCAPED_STRING", "\"(?:[^\"\\\\\\n]|\\\\[^\\n])*\"" },
    { "LCASE_LETTER", "[a-z]" },
    { "UCASE_LETTER", "[A-Z]" },
    { "LETTER", "[A-Za-z]" },
    { "WORD", "[A-Za-z]+" },
    { "CNAME", "[A-Za-z_][A-Za-z_0-9]*" },
    { "WS_INLINE", "[ \\t]+" },
    { "WS", "[ \\t\\f\\r\\n]+" },
    { "CR", "\\r" },
    { "LF", "\\n" },
    { "NEWLINE", "(?:\\r?\\n)+" },
    { "SH_COMMENT", "#[^\\n]*" },
    { "CPP_COMMENT", "\\/\\/[^\\n]*" },
    { "C_COMMENT", "\\/\\*(?:[^*]|\\*+[^*\\/])*\\*+\\/" },
    { "SQL_COMMENT", "--[^\\n]*" },
    { NULL, NULL }
};


/* A string, or a range from one to another. */

uint32_t
dsa_lark_string(dsa_lark_t *l)
{
    size_t      at;
    dsa_dfa_t  *dfa;
    dsa_str_t   text, flags;

    at = l->i;
    text = dsa_lark_quoted(l);

    if (l->s->failed) {
        return 0;
    }

    if (l->text.len - l->i >= 2
        && memcmp(l->text.data + l->i, "..", 2) == 0)
    {
        return dsa_lark_range(l, at, text);
    }

    flags = dsa_lark_flags(l, "i");
    dfa = dsa_lark_literal(l, text, flags.len != 0);

    return dsa_lark_dfa(l, at, dfa);
}


static uint32_t
dsa_lark_range(dsa_lark_t *l, size_t at, dsa_str_t from)
{
    uint32_t   lo, hi;
    dsa_str_t  to;

    l->i += 2;

    if (l->i == l->text.len || l->text.data[l->i] != '"') {
        dsa_lark_fail(l, l->i, "expected a string as the end of the range");
        return 0;
    }

    to = dsa_lark_quoted(l);
    lo = dsa_lark_only(l, from, at);
    hi = dsa_lark_only(l, to, at);

    if (!l->s->failed && lo > hi) {
        dsa_lark_fail(l, at, "the range is not from a lower to a higher "
                      "character");
    }

    return l->s->failed ? 0
           : dsa_lark_dfa(l, at, dsa_lark_characters(lo, hi));
}


/* The inside of a string, with its escapes. */

static dsa_str_t
dsa_lark_quoted(dsa_lark_t *l)
{
    size_t  i, at;

    at = l->i;

    for (i = at + 1; i < l->text.len && l->text.data[i] != '\n'; i++) {
        if (l->text.data[i] == '"') {
            l->i = i + 1;
            return dsa_str(l->text.data + at + 1, i - at - 1);
        }

        if (l->text.data[i] == '\\') {
            i++;
        }
    }

    dsa_lark_fail(l, at, "the string has no end on its line");

    return dsa_str(NULL, 0);
}


/* The texts of a string.  fold: upper and lower case of ASCII are the same. */

static dsa_dfa_t *
dsa_lark_literal(dsa_lark_t *l, dsa_str_t text, int fold)
{
    size_t      i, at;
    uint32_t    c, n;
    dsa_dfa_t  *dfa;

    n = 0;
    dfa = dsa_dfa_create();

    for (i = 0; i < text.len && dfa != NULL && !l->s->failed; /* void */) {
        at = (size_t) (text.data - l->text.data) + i;
        c = dsa_lark_character(l, text, &i);

        if (c == l->control) {
            dsa_lark_fail(l, at, "the character begins a name in the syntax "
                          "of calls, so it cannot be in a text");
        }

        if (fold && c >= 0x80) {
            dsa_lark_fail(l, at, "the flag i is supported for ASCII only");
        }

        dsa_dfa_state(dfa, 0);
        n++;

        if (fold && ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')) {
            dsa_dfa_range(dfa, c & ~0x20U, c & ~0x20U, n);
            dsa_dfa_range(dfa, c | 0x20, c | 0x20, n);

        } else {
            dsa_dfa_range(dfa, c, c, n);
        }
    }

    if (dfa != NULL) {
        dsa_dfa_state(dfa, 1);
    }

    return dsa_dfa_done(dfa);
}


/* The character at *i of the inside of a string; moves *i behind it. */

static uint32_t
dsa_lark_character(dsa_lark_t *l, dsa_str_t text, size_t *i)
{
    size_t       at;
    uint32_t     c;
    const char  *p;

    static const char  escape[] = "\\\"nrtf";
    static const char  meaning[] = "\\\"\n\r\t\f";

    at = (size_t) (text.data - l->text.data) + *i;
    c = dsa_codepoint_next(text, i);

    if (c != '\\') {
        return c;
    }

    c = dsa_codepoint_next(text, i);
    p = c != 0 && c < 0x80 ? strchr(escape, (int) c) : NULL;

    if (p != NULL) {
        return (uint8_t) meaning[p - escape];
    }

    if (c == 'x' || c == 'u' || c == 'U') {
        c = dsa_lark_hex(l, text, i, c == 'x' ? 2 : c == 'u' ? 4 : 8);

        if (c <= DSA_DFA_LAST && (c < 0xd800 || c > 0xdfff)) {
            return c;
        }
    }

    dsa_lark_fail(l, at, "the escape is unknown; expected \\\\ \\\" \\n \\r "
                  "\\t \\f \\xHH \\uHHHH or \\UHHHHHHHH");

    return 0;
}


static uint32_t
dsa_lark_hex(dsa_lark_t *l, dsa_str_t text, size_t *i, uint32_t digits)
{
    int       c;
    uint32_t  n;

    n = 0;

    while (digits-- != 0) {
        c = *i < text.len ? text.data[(*i)++] : 0;

        if (c >= '0' && c <= '9') {
            n = n << 4 | (uint32_t) (c - '0');

        } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
            n = n << 4 | (uint32_t) ((c | 0x20) - 'a' + 10);

        } else {
            return DSA_LARK_NONE;
        }
    }

    return n;
}


/* The only character of the inside of a string. */

static uint32_t
dsa_lark_only(dsa_lark_t *l, dsa_str_t text, size_t at)
{
    size_t    i;
    uint32_t  c;

    i = 0;
    c = text.len != 0 ? dsa_lark_character(l, text, &i) : DSA_LARK_NONE;

    if (!l->s->failed && (c == DSA_LARK_NONE || i != text.len)) {
        dsa_lark_fail(l, at, "each end of a range must be one character");
    }

    return c;
}


uint32_t
dsa_lark_regexp(dsa_lark_t *l)
{
    int        rc;
    size_t     at, i;
    uint32_t   token;
    dsa_buf_t  b;
    dsa_err_t  error;
    dsa_str_t  regex, flags;

    at = l->i;
    i = dsa_lark_slash(l, at + 1);

    if (i == l->text.len) {
        dsa_lark_fail(l, at, "the regular expression has no \"/\" at its end");
        return 0;
    }

    regex = dsa_str(l->text.data + at + 1, i - at - 1);
    l->i = i + 1;
    flags = dsa_lark_flags(l, "imslux");

    memset(&b, 0, sizeof(dsa_buf_t));
    rc = dsa_lark_regex(&b, regex, flags, &error);
    token = 0;

    if (rc != DSA_OK) {
        dsa_lark_fail(l, at, "%.250s", error.text);

    } else {
        token = dsa_lark_pattern(l, at, dsa_str(b.data, b.len));
    }

    dsa_buf_free(&b);

    return token;
}


/* The "/" that ends a regular expression, or the end of the definition. */

static size_t
dsa_lark_slash(const dsa_lark_t *l, size_t i)
{
    while (i < l->text.len && l->text.data[i] != '/') {
        i += l->text.data[i] == '\\' ? 2 : 1;
    }

    return i < l->text.len ? i : l->text.len;
}


/* As many of these letters as there are, as Lark reads them. */

static dsa_str_t
dsa_lark_flags(dsa_lark_t *l, const char *flags)
{
    dsa_str_t  s;

    s = dsa_str(l->text.data + l->i, 0);

    while (l->i < l->text.len
           && memchr(flags, l->text.data[l->i], strlen(flags)) != NULL)
    {
        s.len++;
        l->i++;
    }

    return s;
}


uint32_t
dsa_lark_common(dsa_lark_t *l, dsa_str_t name, size_t at)
{
    char                      pattern[200];
    const dsa_lark_common_t  *c;

    if (l->s->failed) {
        return 0;
    }

    for (c = dsa_lark_commons; c->name != NULL; c++) {
        if (dsa_str_eqz(name, c->name)) {
            (void) snprintf(pattern, sizeof(pattern), "^(?:%s)$", c->pattern);
            return dsa_lark_pattern(l, at, dsa_strz(pattern));
        }
    }

    dsa_lark_fail(l, at, "common.lark has no terminal of this name; expected, "
                  "for example, INT, NUMBER, ESCAPED_STRING, CNAME, WS or "
                  "NEWLINE");

    return 0;
}


static uint32_t
dsa_lark_pattern(dsa_lark_t *l, size_t at, dsa_str_t pattern)
{
    char       *place;
    dsa_dfa_t  *dfa;
    dsa_err_t   error;

    dfa = dsa_regex(pattern, &l->s->work, &error);

    if (dfa == NULL) {

        /* the place is one in the pattern that was written in its stead */

        place = strstr(error.text, " (at byte");

        if (place != NULL) {
            *place = '\0';
        }

        dsa_lark_fail(l, at, "%.250s", error.text);
        return 0;
    }

    return dsa_lark_dfa(l, at, dfa);
}


/* The token of the texts that an automaton accepts; consumes it. */

static uint32_t
dsa_lark_dfa(dsa_lark_t *l, size_t at, dsa_dfa_t *dfa)
{
    uint32_t          i, token;
    dsa_lark_node_t  *node;

    if (!l->s->failed) {
        dfa = dsa_lark_plain(l, dfa);

        if (dfa == NULL) {
            dsa_lark_fail(l, at, "there is no memory for it");
        }
    }

    dsa_schema_charge(l->s, dfa);
    token = dsa_lark_token(l, at);

    if (!l->s->failed) {
        node = &l->node[token];
        node->nullable = dfa->accept[0] != 0;

        for (i = 0; i < dfa->n_states; i++) {
            node->finite |= dfa->accept[i] != 0;
        }

        dsa_text_dfa(l->s->a, dfa, l->form, node->in, node->out);
    }

    dsa_dfa_free(dfa);

    return token;
}


/* An automaton without the control token's character; consumes it. */

static dsa_dfa_t *
dsa_lark_plain(const dsa_lark_t *l, dsa_dfa_t *dfa)
{
    uint32_t                i, k, c;
    dsa_dfa_t              *out;
    const dsa_dfa_range_t  *r;

    out = dfa != NULL ? dsa_dfa_create() : NULL;
    c = l->control;

    for (i = 0; out != NULL && i < dfa->n_states; i++) {
        dsa_dfa_state(out, dfa->accept[i]);

        for (k = dfa->first[i]; k < dfa->first[i + 1]; k++) {
            r = &dfa->range[k];

            if (c < r->lo || c > r->hi) {
                dsa_dfa_range(out, r->lo, r->hi, r->to);
                continue;
            }

            dsa_codepoint_ranges(out, r->lo, c, r->to);
            dsa_codepoint_ranges(out, c + 1, r->hi + 1, r->to);
        }
    }

    dsa_dfa_free(dfa);

    return dsa_dfa_done(out);
}


/* The texts of one character from lo to hi. */

static dsa_dfa_t *
dsa_lark_characters(uint32_t lo, uint32_t hi)
{
    dsa_dfa_t  *dfa;

    dfa = dsa_dfa_create();

    if (dfa == NULL) {
        return NULL;
    }

    dsa_dfa_state(dfa, 0);
    dsa_codepoint_ranges(dfa, lo, hi + 1, 1);
    dsa_dfa_state(dfa, 1);

    return dsa_dfa_done(dfa);
}


static uint32_t
dsa_lark_token(dsa_lark_t *l, size_t at)
{
    uint32_t          token;
    dsa_lark_node_t  *node;

    token = dsa_lark_node(l, DSA_LARK_TOKEN, at);

    if (!l->s->failed) {
        node = &l->node[token];

        node->in = dsa_automaton_node(l->s->a);
        node->out = dsa_automaton_node(l->s->a);
        node->grounded = 1;
    }

    return token;
}
