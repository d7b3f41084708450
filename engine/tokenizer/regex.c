
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "base/json.h"
#include "engine/tokenizer/parts.h"


/*
 * Patterns of tokenizer.json are written for Oniguruma in its Ruby syntax.
 * Syntax with the same meaning in PCRE2 is copied.  Syntax that is spelled or
 * defined differently (white space, words, digits, \h, \v, scripts, bounds) is
 * rewritten.  Any other is rejected: with a pattern of slightly different
 * meaning the model would read tokens that it was never trained on.
 */


#define DSA_REGEX_MAX  16384            /* bytes of a pattern */


typedef struct {
    const char  *where;
    dsa_str_t    in;
    size_t       pos;
    dsa_buf_t    out;
    dsa_err_t   *err;
} dsa_regex_t;


/*
 * The syntax of an escape in PCRE2, outside and inside of a class; NULL: not
 * supported there.
 */

typedef struct {
    char         letter;
    const char  *text;
    const char  *in_class;
} dsa_regex_escape_t;


static int dsa_regex_group(dsa_regex_t *re);
static int dsa_regex_bounds(dsa_regex_t *re);
static int dsa_regex_class(dsa_regex_t *re);
static int dsa_regex_escape(dsa_regex_t *re, int in_class);
static int dsa_regex_property(dsa_regex_t *re, int negate);
static int dsa_regex_code_point(dsa_regex_t *re, char letter);
static int dsa_regex_reject(dsa_regex_t *re, size_t pos, const char *what);


static int
dsa_regex_at(const dsa_regex_t *re, const char *text)
{
    size_t  len;

    len = strlen(text);

    return re->in.len - re->pos >= len
           && memcmp(re->in.data + re->pos, text, len) == 0;
}


static int
dsa_regex_translate(dsa_regex_t *re)
{
    int   rc;
    char  c;

    while (re->pos < re->in.len) {
        c = re->in.data[re->pos];

        switch (c) {

        case '\\':
            rc = dsa_regex_escape(re, 0);
            break;

        case '[':
            rc = dsa_regex_class(re);
            break;

        case '(':
            rc = dsa_regex_group(re);
            break;

        case '{':
            rc = dsa_regex_bounds(re);
            break;

        case '}':
            dsa_buf_addz(&re->out, "\\}");
            re->pos++;
            rc = DSA_OK;
            break;

        default:
            dsa_buf_add(&re->out, &c, 1);
            re->pos++;
            rc = DSA_OK;
        }

        if (rc != DSA_OK) {
            return rc;
        }
    }

    return DSA_OK;
}


/*
 * Copies a group.  Non-capturing, look-around, atomic and (?i: groups are the
 * same in both syntaxes.
 */

static int
dsa_regex_group(dsa_regex_t *re)
{
    size_t              i;
    static const char  *kind[] = { "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>",
                                   "(?i:" };

    for (i = 0; i < sizeof(kind) / sizeof(kind[0]); i++) {
        if (dsa_regex_at(re, kind[i])) {
            dsa_buf_addz(&re->out, kind[i]);
            re->pos += strlen(kind[i]);
            return DSA_OK;
        }
    }

    if (dsa_regex_at(re, "(?") || dsa_regex_at(re, "(*")) {
        return dsa_regex_reject(re, re->pos, "this kind of group");
    }

    dsa_buf_addz(&re->out, "(");
    re->pos++;

    return DSA_OK;
}


/* Copies {n}, {n,}, {n,m} and Ruby's {,m}. Any other brace is a literal. */

static int
dsa_regex_bounds(dsa_regex_t *re)
{
    int     comma, digits;
    char    c;
    size_t  i;

    comma = 0;
    digits = 0;

    for (i = re->pos + 1; i < re->in.len; i++) {
        c = re->in.data[i];

        if (c >= '0' && c <= '9') {
            digits = 1;

        } else if (c == ',' && !comma) {
            comma = 1;

        } else {
            break;
        }
    }

    if (i == re->in.len || re->in.data[i] != '}' || !digits) {
        dsa_buf_addz(&re->out, "\\{");
        re->pos++;
        return DSA_OK;
    }

    i++;

    /* after {n}, ? and + are a second quantifier for Oniguruma only */

    if (i < re->in.len
        && (re->in.data[i] == '+' || (re->in.data[i] == '?' && !comma)))
    {
        return dsa_regex_reject(re, re->pos, "a quantifier after bounds");
    }

    if (re->in.data[re->pos + 1] == ',') {
        dsa_buf_addz(&re->out, "{0");
        re->pos++;
    }

    dsa_buf_add(&re->out, re->in.data + re->pos, i - re->pos);
    re->pos = i;

    return DSA_OK;
}


static int
dsa_regex_class(dsa_regex_t *re)
{
    char    c;
    size_t  start;

    start = re->pos++;
    dsa_buf_addz(&re->out, "[");

    if (dsa_regex_at(re, "^")) {
        dsa_buf_addz(&re->out, "^");
        re->pos++;
    }

    if (dsa_regex_at(re, "]")) {
        return dsa_regex_reject(re, start, "a class that begins with \"]\"");
    }

    while (re->pos < re->in.len) {
        c = re->in.data[re->pos];

        if (c == '\\') {
            if (dsa_regex_escape(re, 1) != DSA_OK) {
                return DSA_ERROR;
            }

            continue;
        }

        if (c == '[') {
            return dsa_regex_reject(re, re->pos, "a class within a class");
        }

        if (dsa_regex_at(re, "&&")) {
            return dsa_regex_reject(re, re->pos, "an intersection of classes");
        }

        dsa_buf_add(&re->out, &c, 1);
        re->pos++;

        if (c == ']') {
            return DSA_OK;
        }
    }

    return dsa_regex_reject(re, start, "a class without a closing bracket");
}


/*
 * For Oniguruma \s is White_Space, \d is Nd, \w is letters, marks, Nd and
 * connectors, \h is a hexadecimal digit and \v is one character.  PCRE2 uses
 * these names for slightly different sets.
 */

static const dsa_regex_escape_t  dsa_regex_escapes[] = {
    { 's', "\\p{White_Space}", "\\p{White_Space}" },
    { 'S', "\\P{White_Space}", "\\P{White_Space}" },
    { 'd', "\\p{Nd}", "\\p{Nd}" },
    { 'D', "\\P{Nd}", "\\P{Nd}" },
    { 'w', "[\\p{L}\\p{M}\\p{Nd}\\p{Pc}]", "\\p{L}\\p{M}\\p{Nd}\\p{Pc}" },
    { 'W', "[^\\p{L}\\p{M}\\p{Nd}\\p{Pc}]", NULL },
    { 'h', "[0-9A-Fa-f]", "0-9A-Fa-f" },
    { 'H', "[^0-9A-Fa-f]", NULL },
    { 'v', "\\x{0b}", "\\x{0b}" },
    { 'r', "\\r", "\\r" },
    { 'n', "\\n", "\\n" },
    { 't', "\\t", "\\t" },
    { 'f', "\\f", "\\f" },
    { 'A', "\\A", NULL },
    { 'z', "\\z", NULL },
    { '\0', NULL, NULL }
};


static int
dsa_regex_escape(dsa_regex_t *re, int in_class)
{
    char                       c;
    size_t                     start;
    const char                *text;
    const dsa_regex_escape_t  *e;

    start = re->pos++;

    if (re->pos == re->in.len) {
        return dsa_regex_reject(re, start, "a backslash at the end");
    }

    c = re->in.data[re->pos++];

    if (c == 'p' || c == 'P') {
        return dsa_regex_property(re, c == 'P');
    }

    if (c == 'x' || c == 'u') {
        return dsa_regex_code_point(re, c);
    }

    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z')
          || (c >= 'A' && c <= 'Z')))
    {
        /* escaped punctuation is a literal, and so is a byte of UTF-8 */

        if ((uint8_t) c < 0x80) {
            dsa_buf_addz(&re->out, "\\");
        }

        dsa_buf_add(&re->out, &c, 1);

        return DSA_OK;
    }

    for (e = dsa_regex_escapes; e->letter != '\0' && e->letter != c; e++) {
        /* void */
    }

    text = in_class ? e->in_class : e->text;

    if (text == NULL) {
        return dsa_regex_reject(re, start, "this escape");
    }

    dsa_buf_addz(&re->out, text);

    return DSA_OK;
}


/*
 * Copies \p{L}, \p{Lu}, \p{Han} or \p{^L}. Scripts do not include their
 * extensions.
 */

static int
dsa_regex_property(dsa_regex_t *re, int negate)
{
    char    c;
    size_t  i, start, end;

    start = re->pos - 2;

    if (!dsa_regex_at(re, "{")) {
        return dsa_regex_reject(re, start, "a property without braces");
    }

    re->pos++;

    if (dsa_regex_at(re, "^")) {
        negate = !negate;
        re->pos++;
    }

    for (end = re->pos; end < re->in.len && re->in.data[end] != '}'; end++) {
        c = re->in.data[end];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_')) {
            break;
        }
    }

    i = end - re->pos;

    if (end == re->in.len || re->in.data[end] != '}' || i == 0) {
        return dsa_regex_reject(re, start, "this property");
    }

    dsa_buf_printf(&re->out, "\\%c{%s%.*s}", negate ? 'P' : 'p',
                   (i > 2) ? "sc:" : "", (int) i, re->in.data + re->pos);

    re->pos = end + 1;

    return DSA_OK;
}


/*
 * Copies \x{h...}, \uhhhh, and \xhh below 80.  From 80 on \xhh is a byte,
 * which is not supported.
 */

static int
dsa_regex_code_point(dsa_regex_t *re, char letter)
{
    char      c;
    size_t    start;
    uint32_t  n, max, value, braces;

    start = re->pos - 2;
    braces = (letter == 'x' && dsa_regex_at(re, "{"));
    max = braces ? 6 : (letter == 'x') ? 2 : 4;
    value = 0;
    re->pos += braces;

    for (n = 0; n < max && re->pos < re->in.len; n++) {
        c = re->in.data[re->pos];

        if (c >= '0' && c <= '9') {
            value = value * 16 + (uint32_t) (c - '0');

        } else if (c >= 'a' && c <= 'f') {
            value = value * 16 + (uint32_t) (c - 'a') + 10;

        } else if (c >= 'A' && c <= 'F') {
            value = value * 16 + (uint32_t) (c - 'A') + 10;

        } else {
            break;
        }

        re->pos++;
    }

    if (braces) {
        if (n == 0 || !dsa_regex_at(re, "}")) {
            return dsa_regex_reject(re, start, "this code point");
        }

        re->pos++;

    } else if (n != max || (letter == 'x' && value > 0x7f)) {
        return dsa_regex_reject(re, start, "this code point");
    }

    dsa_buf_printf(&re->out, "\\x{%x}", value);

    return DSA_OK;
}


static int
dsa_regex_reject(dsa_regex_t *re, size_t pos, const char *what)
{
    size_t  len;

    len = re->in.len - pos;

    return dsa_error(re->err, "%s: %s is not supported, at offset %zu: "
                     "\"%.*s\"", re->where, what, pos,
                     (int) (len < 16 ? len : 16), re->in.data + pos);
}


pcre2_code *
dsa_split_compile(const char *where, dsa_str_t pattern, dsa_err_t *err)
{
    pcre2_code   *code;
    dsa_regex_t   re;

    if (pattern.len == 0 || pattern.len > DSA_REGEX_MAX) {
        (void) dsa_error(err, "%s: the pattern has %zu bytes; expected 1 to "
                         "%d", where, pattern.len, DSA_REGEX_MAX);
        return NULL;
    }

    memset(&re, 0, sizeof(dsa_regex_t));

    re.where = where;
    re.in = pattern;
    re.err = err;

    code = NULL;

    if (dsa_regex_translate(&re) == DSA_OK) {

        if (re.out.failed) {
            (void) dsa_error(err, "%s: out of memory", where);

        } else {
            code = dsa_pattern_compile(where, dsa_str(re.out.data, re.out.len),
                                       err);
        }
    }

    dsa_buf_free(&re.out);

    return code;
}


pcre2_code *
dsa_pattern_compile(const char *where, dsa_str_t pattern, dsa_err_t *err)
{
    int                      rc;
    size_t                   offset;
    pcre2_code              *code;
    PCRE2_UCHAR              text[128];
    pcre2_compile_context   *context;

    context = pcre2_compile_context_create(NULL);
    if (context == NULL) {
        (void) dsa_error(err, "%s: out of memory", where);
        return NULL;
    }

    /* as in Ruby a dot matches all but \n, and ^ and $ match at lines */

    (void) pcre2_set_newline(context, PCRE2_NEWLINE_LF);

    code = pcre2_compile((PCRE2_SPTR) pattern.data, pattern.len,
                         PCRE2_UTF|PCRE2_UCP|PCRE2_MULTILINE
                         |PCRE2_NO_AUTO_CAPTURE|PCRE2_NEVER_BACKSLASH_C,
                         &rc, &offset, context);

    pcre2_compile_context_free(context);

    if (code == NULL) {
        (void) pcre2_get_error_message(rc, text, sizeof(text));
        (void) dsa_error(err, "%s: %s, in \"%.*s\"", where, (char *) text,
                         (int) (pattern.len < 200 ? pattern.len : 200),
                         pattern.data);
        return NULL;
    }

    rc = pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);

    if (rc != 0) {
        (void) pcre2_get_error_message(rc, text, sizeof(text));
        (void) dsa_error(err, "%s: PCRE2 cannot compile the pattern to "
                         "machine code: %s", where, (char *) text);
        pcre2_code_free(code);
        return NULL;
    }

    return code;
}
