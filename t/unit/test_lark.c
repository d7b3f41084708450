
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Lark grammars.  The tables were compared with the Python package lark 1.3.1
 * and its lexer "dynamic_complete", which also has no greedy lexer, where that
 * accepts the grammar.
 */


#include "grammar/lark.h"
#include "lark.h"


typedef struct {
    const char  *grammar;
    const char  *accepted[12];
    const char  *rejected[12];
} lark_case_t;


/* The structure of patches that coding agents write. */

#define PATCH                                                                 \
    "start: begin hunk+ end\n"                                                \
    "begin: \"*** Begin Patch\" LF\n"                                         \
    "end: \"*** End Patch\" LF?\n\n"                                          \
    "hunk: add | delete | update\n"                                           \
    "add: \"*** Add File: \" name LF added+\n"                                \
    "delete: \"*** Delete File: \" name LF\n"                                 \
    "update: \"*** Update File: \" name LF move? change?\n"                   \
    "name: /(.+)/\n"                                                          \
    "added: \"+\" /(.*)/ LF -> line\n\n"                                      \
    "move: \"*** Move to: \" name LF\n"                                       \
    "change: (place | line)+ last?\n"                                         \
    "place: (\"@@\" | \"@@ \" /(.+)/) LF\n"                                   \
    "line: (\"+\" | \"-\" | \" \") /(.*)/ LF\n"                               \
    "last: \"*** End of File\" LF\n\n"                                        \
    "%import common.LF\n"

#define SQL                                                                   \
    "start: query \";\"\n"                                                    \
    "query.2: \"select\"i columns \"from\"i NAME [where] (\"limit\"i INT)?\n" \
    "columns: \"*\"\n"                                                        \
    "       | NAME (\",\" NAME)*   // more than one\n"                        \
    "where: \"where\"i test ((\"and\"i | \"or\"i) test)*\n"                   \
    "test: NAME OP (INT | TEXT)\n"                                            \
    "OP: \"=\" | \"<\" \"=\"?\n"                                              \
    "NAME: /[a-z_][a-z0-9_]*/\n"                                              \
    "TEXT: \"'\" /[^']*/ \"'\"\n"                                             \
    "%import common (INT, WS)\n"                                              \
    "%ignore WS\n"


static const lark_case_t  cases[] = {
    { PATCH,
      { "*** Begin Patch\n*** Add File: a\n+x\n+\n*** End Patch",
        "*** Begin Patch\n*** Delete File: a b\n*** End Patch\n",
        "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@ f\n-a\n+b\n"
        " c\n*** End of File\n*** Delete File: x\n*** End Patch",
        "*** Begin Patch\n*** Update File: a\n*** End Patch",
        "*** Begin Patch\n*** Add File: \xc3\xa9\n+\xf0\x9f\x98\x80\r\n"
        "*** End Patch" },
      { "", "*** Begin Patch\n*** End Patch",
        "*** Begin Patch\n*** Add File: a\n*** End Patch",
        "*** Begin Patch\n*** Add File: \n+x\n*** End Patch",
        "*** Begin Patch\n*** Add File: a\nx\n*** End Patch",
        "*** Begin Patch\n*** Delete File: a\n*** End Patch\n\n",
        "*** Begin Patch\n*** Update File: a\n@@f\n*** End Patch" } },
    { SQL,
      { "select * from t;", "SELECT a, b1 FROM t ;",
        " select a from t where a=1 and b <= 'x;y' OR c < 3 limit 10;\n",
        "selectafromt;" },
      { "select * from t", "select from;", "select a b from t;",
        "select a from t where a;", "select a from t where a = 'x;",
        "select a from t; select a from t;", "drop t;" } },
    { "start: expr\n"
      "?expr: term ((\"+\" | \"-\") term)*\n"
      "?term: factor ((\"*\" | \"/\") factor)*\n"
      "factor: NUMBER | \"-\" factor | \"(\" expr \")\"\n"
      "%import common.NUMBER\n"
      "%import common.WS_INLINE\n"
      "%ignore WS_INLINE\n",
      { "1", " 1 + 2*(3 - .5e-7)/-4 ", "((1))", "--1." },
      { "", "1+", "(1", "1)", "1 2", "1\n", "1..2", "()" } },
    { "?start: sum\n"
      "?sum: product\n    | sum \"+\" product -> add\n"
      "    | sum \"-\" product -> sub\n"
      "?product: atom | product \"*\" atom\n"
      "?atom: /[0-9]+/ | \"(\" sum \")\"\n",
      { "1", "1+2-3*4", "(1-2)*(3)" },
      { "", "+1", "1+", "1 ", "(1" } },
    { "start: \"a\" start \"b\" | \"ab\"\n",
      { "ab", "aabb", "aaaabbbb" }, { "", "aab", "abb", "abab" } },
    { "start: YEAR \"-\" MONTH \"-\" DAY\n"
      "YEAR: DIGIT~4\n"
      "MONTH: \"0\" \"1\"..\"9\" | \"1\" \"0\"..\"2\"\n"
      "DAY: \"0\" /[1-9]/ | /[12]/ DIGIT | \"3\" /[01]/\n"
      "DIGIT: \"0\"..\"9\"\n",
      { "2024-12-31", "0000-01-09" },
      { "2024-13-01", "2024-00-01", "2024-1-1", "24-01-01", "2024-01-32",
        "2024-01-011" } },
    { "?start: value\n"
      "?value: object | array | ESCAPED_STRING | SIGNED_NUMBER -> number\n"
      "      | \"true\" | \"false\" | \"null\"\n"
      "array: \"[\" [value (\",\" value)*] \"]\"\n"
      "object: \"{\" [pair (\",\" pair)*] \"}\"\n"
      "pair: ESCAPED_STRING \":\" value\n"
      "%import common.ESCAPED_STRING\n"
      "%import common.SIGNED_NUMBER\n"
      "%import common.WS\n"
      "%ignore WS\n",
      { "{\"a\": [1, -2.5e3, true], \"b\": {}}", "\"\\\"\"", "[ ]", "null",
        "[[\"\\\\\"],\n1]" },
      { "{a: 1}", "[1,]", "\"\\\"", "[1", "{\"a\"}", "\"a\nb\"" } },

    /* operators and counts */

    { "start: \"a\"? \"b\"+ \"c\"* [\"d\"] (\"e\" | \"f\")~2 \"g\"~1..3\n",
      { "beeg", "abbccdefggg", "bfegg" },
      { "aeeg", "beg", "beeeg", "bee", "beegggg", "aabeeg", "bddeeg" } },
    { "start: (\"a\" \"b\"~3 | x)~2\nx: \"x\" x?\n",
      { "abbbabbb", "xabbb", "xx", "xxxabbb" },
      { "abbb", "abbabbb", "x", "" } },
    { "start: \"a\" ~ 0 \"b\" ~ 0..1\n", { "", "b" }, { "a", "bb" } },
    { "start: (\"a\"\n        \"b\")  # a group has several lines\n\n"
      "  | \"c\" \\\n \"d\"\n  | \"(\" \")\"\n",
      { "ab", "cd", "()" }, { "a", "b", "c" } },
    { "start:\n  | \"a\"\n", { "", "a" }, { "b" } },
    { "start: list*\nlist: \"a\" list?\n", { "", "aaa" }, { "b" } },

    /* names */

    { "!start.-3 : _ab1 _AB1\n!?_ab1 : \"x\" -> alias\n_AB1.2: \"y\"\n",
      { "xy" }, { "x", "yx" } },
    { "%import common (INT, DIGIT)\n%import common.CNAME -> NAME\n"
      "start: INT \",\" NAME \",\" DIGIT\n",
      { "12,_a1,3" }, { "12,1a,3", "12,a,33" } },

    /* strings and ranges */

    { "start: \"\\\\\\\"\\n\\t\\r\\f\\x41\\u00e9\\U0001f600\xc3\xa9//#\"\n",
      { "\\\"\n\t\r\f""A\xc3\xa9\xf0\x9f\x98\x80\xc3\xa9//#" },
      { "\\\"\n\t\r\f""a\xc3\xa9\xf0\x9f\x98\x80\xc3\xa9//#" } },
    { "start: \"aZ1\"i | \"k\"\n", { "aZ1", "Az1", "k" }, { "K", "aZ" } },
    { "start: \"\\x61\"..\"c\" \"\xc3\xa9\"..\"\xc3\xab\" \"\"\n",
      { "a\xc3\xa9", "c\xc3\xaa" }, { "d\xc3\xa9", "a\xc3\xac", "a" } },

    /* regular expressions */

    { "start: /a.c/ /[^\\n]/ /\\d+/ | /\\/(x|y)*\\// | /[]^-]/ | /a|/ \"z\"\n",
      { "abc.1", "a\rcx12", "/xyx/", "//", "]", "^", "-", "z", "az" },
      { "a\ncx1", "/xz/", "a" } },
    { "start: /a.c/s | /[a-cX]d/i | /a b # c\n  d/x | /e/ims\n",
      { "a\nc", "Ad", "xD", "abd", "E" }, { "a b d", "abc ", "dd" } },
    { "start: /(?P<n>a)(?<m>b)(?:c)(?i:d)e(?s:.)./ | /(?i)f[g-i]/\n",
      { "abcDe\nx", "abcdexx", "FH", "fi" },
      { "abcDe\n\n", "Abcdexx", "abcdExx", "fj" } },
    { "start: /\\x41\\u0042\\x{43}\\U00000044\\u{45}/\n",
      { "ABCDE" }, { "ABCD" } },

    /* what is ignored */

    { "start: A b C\nA: \"a\" \"a\"\nb: \"b\" | \"bb\"\nC: \"c\"\n"
      "%ignore \" \"\n%ignore /#[a-z]*\\n/\n",
      { "aabc", " aa bb c ", "#x\naa#\n#y\nb c#z\n" },
      { "a abc", "aab", "aab b c", "aabc#" } },
    { "start: \"a\"*\n%ignore \" \"+ | \"\\n\"\n",
      { "", " ", "a", " a\n\n a " }, { "b", "\t" } },
    { "start: \"a\" start | \"b\"\n%ignore \" \"\n",
      { "b", "a a ab " }, { "a", "ab b" } },

    /* the character that begins the control token's name is in no text */

    { "start: /./ /[^x]/ \"\xef\xbc\x80\"..\"\xef\xbd\xbf\"\n",
      { "ay\xef\xbd\x9b", "\xc3\xa9z\xef\xbd\x9d" },
      { "\xef\xbd\x9cy\xef\xbd\x9b", "a\xef\xbd\x9c\xef\xbd\x9b",
        "ay\xef\xbd\x9c" } },
    { "start: \"a\" | /\xef\xbd\x9c/\n", { "a" }, { "\xef\xbd\x9c" } }
};


/* The terminals of common.lark. */

static const lark_case_t  commons[] = {
    { "DIGIT", { "0", "9" }, { "", "00", "a" } },
    { "HEXDIGIT", { "a", "F", "7" }, { "g" } },
    { "INT", { "0", "007" }, { "", "-1" } },
    { "SIGNED_INT", { "1", "+1", "-20" }, { "+", "--1" } },
    { "DECIMAL", { "1.", "1.5", ".5" }, { "1", "." } },
    { "_EXP", { "e1", "E-2" }, { "e", "1e1" } },
    { "FLOAT", { "1e5", "1.", ".5e+1" }, { "1", "-1.0" } },
    { "SIGNED_FLOAT", { "-1e5", "+1.", ".5" }, { "-1", "--1.5" } },
    { "NUMBER", { "1", "1.5", "1.e2", ".5", "1e3" }, { "-1", ".", "e1" } },
    { "SIGNED_NUMBER", { "-1", "+1.5", "7" }, { "-", "+-1" } },
    { "_STRING_INNER", { "", "a\"b" }, { "a\n" } },
    { "_STRING_ESC_INNER", { "", "a\\\"", "\\\\" }, { "\\", "a\\\\\\" } },
    { "ESCAPED_STRING", { "\"\"", "\"a\\\"\"", "\"\\\\\"" },
      { "\"", "\"\\\"", "\"a\"b\"", "\"\n\"" } },
    { "LCASE_LETTER", { "a" }, { "A", "\xc3\xa9" } },
    { "UCASE_LETTER", { "Z" }, { "z" } },
    { "LETTER", { "a", "Z" }, { "1" } },
    { "WORD", { "aZ" }, { "", "a1" } },
    { "CNAME", { "_", "a1_B" }, { "1a", "a-b" } },
    { "WS_INLINE", { " ", " \t" }, { "", "\n" } },
    { "WS", { " \t\f\r\n" }, { "", "\v", "a" } },
    { "CR", { "\r" }, { "\n" } },
    { "LF", { "\n" }, { "\r" } },
    { "NEWLINE", { "\n", "\r\n\n" }, { "", "\r", "\n\r" } },
    { "SH_COMMENT", { "#", "# a" }, { "#\n", "a" } },
    { "CPP_COMMENT", { "//", "// a" }, { "/", "//\n" } },
    { "C_COMMENT", { "/**/", "/* a\n* **/", "/*/*/" },
      { "/*/", "/**/*/", "/* */ */" } },
    { "SQL_COMMENT", { "--", "-- a" }, { "-", "--\n" } }
};


typedef struct {
    const char  *grammar;
    uint32_t     line;
    uint32_t     column;
    const char  *text;          /* is in the message */
} refused_t;


static const refused_t  refused[] = {
    { "", 1, 1, "\"start\" is not defined" },
    { "start: \"a\"\nb: c\n", 2, 4, "\"c\" is not defined" },
    { "start: \"a\"\nstart: \"b\"\n", 2, 1, "twice" },
    { "start: INT\n%import common.INT\nINT: \"1\"\n", 3, 1, "twice" },
    { "start: A\nA: b\nb: \"x\"\n", 2, 4, "rule \"b\"" },
    { "Start: \"a\"\n", 1, 1, "name of a rule" },
    { "start \"a\"\n", 1, 7, "\":\"" },
    { "start: \"a\")\n", 1, 11, "end of the line" },
    { "start: \"a\"\n\"b\"\n", 2, 1, "name of a rule" },
    { "start: (\"a\"\n| \"b\"\n", 1, 8, "without a \")\"" },
    { "start: [\"a\")\n", 1, 8, "without a \"]\"" },
    { "start: \"\xc3\xa9\" \"a\n", 1, 12, "no end" },
    { "start: /a\n", 1, 8, "no \"/\"" },
    { "start: /a\n/\n", 1, 8, "no \"/\" on its line" },
    { "start: \"\\d\"\n", 1, 9, "escape is unknown" },
    { "start: \"\\ud800\"\n", 1, 9, "escape is unknown" },
    { "start: \"b\"..\"a\"\n", 1, 8, "lower to a higher" },
    { "start: \"ab\"..\"c\"\n", 1, 8, "one character" },
    { "start: \"a\"..b\n", 1, 13, "end of the range" },
    { "start: \"a\"**\n", 1, 12, "operator behind" },
    { "start: \"a\" ~ 3..2\n", 1, 12, "greater" },
    { "start: \"a\" ~ 4000000000\n", 1, 14, "above" },
    { "start: \"a\" ~ x\n", 1, 14, "number" },
    { "start: <a>\n", 1, 8, "not expected" },
    { "?A: \"a\"\n", 1, 2, "precede a rule" },

    /* what OpenAI's documentation leaves out as well */

    { "start: x{a}\n", 1, 9, "templates" },
    { "x{a}: a\nstart: \"a\"\n", 1, 2, "templates" },
    { "start: \"a\"\n%declare A\n", 2, 1, "%declare" },
    { "%override start: \"a\"\n", 1, 1, "%override" },
    { "%extend start: \"a\"\n", 1, 1, "%extend" },
    { "%json {}\n", 1, 1, "unknown" },
    { "%import python.NAME\n", 1, 9, "\"common\"" },
    { "%import .other.NAME\n", 1, 9, "\"common\"" },
    { "%import common.NAME\n", 1, 16, "no terminal" },
    { "%import common (INT, X)\n", 1, 22, "no terminal" },
    { "%import common.INT -> int\n", 1, 16, "upper case" },
    { "start: /(?=a)/\n", 1, 8, "lookahead" },
    { "start: /a(?!b)/\n", 1, 8, "lookahead" },
    { "start: /(?<=a)/\n", 1, 8, "lookbehind" },
    { "start: /(?<!a)/\n", 1, 8, "lookbehind" },
    { "start: /a*?/\n", 1, 8, "lazy" },
    { "start: /a{1,2}?/\n", 1, 8, "lazy" },
    { "start: /a?\?/\n", 1, 8, "lazy" },

    /* what Python and Rust do not read alike, or grammar/regex.h not at all */

    { "start: /^a/\n", 1, 8, "anchor" },
    { "start: /a$/\n", 1, 8, "anchor" },
    { "start: /\\Aa/\n", 1, 8, "anchor" },
    { "start: /\\ba/\n", 1, 8, "anchor" },
    { "start: /\\p{L}/\n", 1, 8, "\\p" },
    { "start: /(a)\\1/\n", 1, 8, "backreference" },
    { "start: /(?P=a)/\n", 1, 8, "(?" },
    { "start: /(?-i:a)/\n", 1, 8, "(?" },
    { "start: /a(?i)b/\n", 1, 8, "(?" },
    { "start: /[[:alpha:]]/\n", 1, 8, "in a class" },
    { "start: /[a&&b]/\n", 1, 8, "in a class" },
    { "start: /[a b]/x\n", 1, 8, "flag x" },
    { "start: /\xc3\xa9/i\n", 1, 8, "ASCII" },
    { "start: \"\xc3\xa9\"i\n", 1, 9, "ASCII" },
    { "start: /\\x41/i\n", 1, 8, "flag i" },
    { "start: /a/l\n", 1, 8, "flag l" },
    { "start: /(/\n", 1, 8, "without a \")\"" },
    { "start: /a{2/\n", 1, 8, "quantifier" },

    /* what would be written for ever, or never end */

    { "start: (\"a\"?)*\n", 1, 8, "can be empty" },
    { "start: a+\na: \"x\"*\n", 1, 8, "can be empty" },
    { "start: /a*/~2\n", 1, 8, "can be empty" },
    { "start: \"a\"\n%ignore /b*/\n", 2, 9, "can be empty" },
    { "start: start \"a\"? | \"b\"\n", 1, 8, "can be empty" },
    { "start: a\na: b \"x\" | \"y\"\nb: c? a\nc: \"z\"\n", 2, 1, "itself" },
    { "start: start\n", 1, 8, "can be empty" },
    { "start: A\nA: \"x\" A?\n", 2, 1, "contains itself" },
    { "start: \"a\" start\n", 1, 1, "no text" },
    { "start: /[^\\s\\S]/\n", 1, 1, "no text" },
    { "start: \"a\xef\xbd\x9c\"\n", 1, 10, "syntax of calls" },
    { "start: \"\\uff5c\"\n", 1, 9, "syntax of calls" }
};


static void
test_cases(void **state)
{
    size_t             i, k;
    dsa_grammar_t     *g;
    dsa_vocabulary_t  *v;

    v = vocabulary_bytes(1);

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        g = lark_of(cases[i].grammar);

        for (k = 0; cases[i].accepted[k] != NULL; k++) {
            if (!lark_accepts(g, v, cases[i].accepted[k])) {
                fail_msg("%s rejects %s", cases[i].grammar,
                         cases[i].accepted[k]);
            }
        }

        for (k = 0; cases[i].rejected[k] != NULL; k++) {
            if (lark_accepts(g, v, cases[i].rejected[k])) {
                fail_msg("%s accepts %s", cases[i].grammar,
                         cases[i].rejected[k]);
            }
        }

        dsa_grammar_free(g);
    }

    dsa_vocabulary_free(v);
}


/* One rule for all, so that none accepts what another does. */

static void
test_commons(void **state)
{
    char               grammar[120];
    size_t             i, k;
    dsa_grammar_t     *g;
    dsa_vocabulary_t  *v;

    v = vocabulary_bytes(1);

    for (i = 0; i < sizeof(commons) / sizeof(commons[0]); i++) {
        (void) snprintf(grammar, sizeof(grammar), "start: %s\n"
                        "%%import common.%s\n", commons[i].grammar,
                        commons[i].grammar);
        g = lark_of(grammar);

        for (k = 0; commons[i].accepted[k] != NULL; k++) {
            if (!lark_accepts(g, v, commons[i].accepted[k])) {
                fail_msg("%s rejects %s", commons[i].grammar,
                         commons[i].accepted[k]);
            }
        }

        for (k = 0; commons[i].rejected[k] != NULL; k++) {
            if (lark_accepts(g, v, commons[i].rejected[k])) {
                fail_msg("%s accepts %s", commons[i].grammar,
                         commons[i].rejected[k]);
            }
        }

        dsa_grammar_free(g);
    }

    dsa_vocabulary_free(v);
}


static void
check_refused(dsa_str_t grammar, const char *place, const char *text)
{
    dsa_grammar_t        *g;
    dsa_grammar_error_t   error;

    if (lark_compile(&g, grammar, &error) == 0) {
        fail_msg("%.100s is accepted", grammar.data);
    }

    if (strcmp(error.path, "tools[0].function.format.definition") != 0
        || strncmp(error.message, place, strlen(place)) != 0
        || strstr(error.message, text) == NULL)
    {
        fail_msg("%.100s: \"%s\": %s", grammar.data, error.path,
                 error.message);
    }

    assert_int_equal(error.no_memory, 0);
    assert_in_range(error.work, 0, DSA_GRAMMAR_WORK);
}


static void
test_refused(void **state)
{
    char    place[64];
    size_t  i;

    for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        (void) snprintf(place, sizeof(place), "line %u, column %u: ",
                        refused[i].line, refused[i].column);
        check_refused(dsa_strz(refused[i].grammar), place, refused[i].text);
    }
}


/* A text n times, with the number of each in place of "#". */

static void
repeat(dsa_buf_t *b, const char *text, uint32_t n)
{
    uint32_t     i;
    const char  *p;

    for (i = 0; i < n; i++) {
        for (p = text; *p != '\0'; p++) {
            if (*p == '#') {
                dsa_buf_printf(b, "%u", i);

            } else {
                dsa_buf_add(b, p, 1);
            }
        }
    }
}


static void
test_limits(void **state)
{
    dsa_buf_t             b;
    dsa_grammar_t        *g;
    dsa_grammar_error_t   error;

    /* 64 KiB, and one byte more */

    memset(&b, 0, sizeof(dsa_buf_t));
    dsa_buf_addz(&b, "start: \"a\"\n");
    repeat(&b, " ", DSA_LARK_BYTES - (uint32_t) b.len);
    assert_int_equal(lark_compile(&g, dsa_str(b.data, b.len), &error), 0);
    dsa_grammar_free(g);

    dsa_buf_addz(&b, " ");
    check_refused(dsa_str(b.data, b.len), "", "65537 bytes");
    dsa_buf_free(&b);

    /* 1,000 rules, and one more */

    dsa_buf_addz(&b, "start: \"a\"\n");
    repeat(&b, "r#: \"a\"\n", DSA_LARK_SYMBOLS - 1);
    assert_int_equal(lark_compile(&g, dsa_str(b.data, b.len), &error), 0);
    dsa_grammar_free(g);

    dsa_buf_addz(&b, "more: \"a\"\n");
    check_refused(dsa_str(b.data, b.len), "line 1001, column 1: ",
                  "more than 1000");
    dsa_buf_free(&b);

    /* groups */

    dsa_buf_addz(&b, "start: ");
    repeat(&b, "(", DSA_LARK_DEPTH);
    dsa_buf_addz(&b, "\"a\"");
    repeat(&b, ")", DSA_LARK_DEPTH);
    assert_int_equal(lark_compile(&g, dsa_str(b.data, b.len), &error), 0);
    dsa_grammar_free(g);
    dsa_buf_free(&b);

    dsa_buf_addz(&b, "start: ");
    repeat(&b, "(", 60000);
    check_refused(dsa_str(b.data, b.len), "line 1, column 72: ", "too deep");
    dsa_buf_free(&b);
}


/* Each compiles within the steps of a spec, or is refused. */

static void
test_hostile(void **state)
{
    size_t                i;
    dsa_buf_t             b;
    dsa_grammar_t        *g;
    dsa_grammar_error_t   error;

    static const struct {
        const char  *begin;
        const char  *part;
        uint32_t     n;
        const char  *text;              /* of the error; NULL: it compiles */
    } hostile[] = {
        { "start: \"a\"\n", "r#: \"x\" | \"y\" r# | \"z\" r#\n", 900, NULL },
        { "start: \"\"", " | \"\"", 13000, NULL },
        { "start: \"a\"", " | /[^a]{500}/", 4000, "too much time" },
        { "start: \"a\"", " | /a/", 9000, "too much time" },
        { "start: /(a|b)*a(a|b){20}/\n", "", 0, "complex" },
        { "start: /(a{1000}){1000}/\n", "", 0, "complex" },
        { "start: ((\"a\"~1..1000000)~1..1000000)~1..1000000\n", "", 0, NULL },
        { "start: a\na: start | start", " | start", 8000, "itself" },
        { "start: \"a\"", "\n%ignore \"b\"", 4000, NULL },
        { "start: \"\\U0010ffff\"", " | \"\x01\"..\"\\U0010ffff\"", 3000,
          NULL },
        { "start: \"x\"", " | /[a-z]{300}/", 4000, "too" }
    };

    memset(&b, 0, sizeof(dsa_buf_t));

    for (i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        dsa_buf_addz(&b, hostile[i].begin);
        repeat(&b, hostile[i].part, hostile[i].n);
        assert_true(b.len <= DSA_LARK_BYTES);

        if (hostile[i].text != NULL) {
            check_refused(dsa_str(b.data, b.len), "", hostile[i].text);

        } else {
            assert_int_equal(lark_compile(&g, dsa_str(b.data, b.len), &error),
                             0);
            assert_in_range(error.work, 0, DSA_GRAMMAR_WORK);
            dsa_grammar_free(g);
        }

        dsa_buf_free(&b);
    }
}


/* A list of any length needs no frames, whichever way it is recursive. */

static void
test_long(void **state)
{
    size_t             i;
    dsa_buf_t          b;
    dsa_grammar_t     *g;
    dsa_vocabulary_t  *v;

    static const char *const  grammars[] = {
        "start: \"a\" start | \"a\"\n",
        "start: start \"a\" | \"a\"\n",
        "start: \"a\"+\n",
        "start: one start?\none: \"a\"\n%ignore \" \"\n"
    };

    v = vocabulary_bytes(1);
    memset(&b, 0, sizeof(dsa_buf_t));
    repeat(&b, "a", 2000);
    dsa_buf_add(&b, "", 1);

    for (i = 0; i < sizeof(grammars) / sizeof(grammars[0]); i++) {
        g = lark_of(grammars[i]);
        assert_int_equal(lark_accepts(g, v, b.data), 1);
        dsa_grammar_free(g);
    }

    dsa_buf_free(&b);
    dsa_vocabulary_free(v);
}


/* The spec is the server's own, but it is read like any. */

static void
test_spec(void **state)
{
    size_t                i;
    char                  spec[400];
    dsa_grammar_t        *g;
    dsa_grammar_error_t   error;

    static const char *const  inputs[] = {
        "null", "{}", "{\"syntax\":\"lark\"}",
        "{\"syntax\":\"lark\",\"definition\":5}",
        "{\"syntax\":\"ebnf\",\"definition\":\"start: \\\"a\\\"\"}"
    };

    for (i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
        (void) snprintf(spec, sizeof(spec), "{\"type\":\"tools\",\"syntax\":"
                        "\"dsml\",\"calls\":\"one\",\"text\":false,\"tools\":"
                        "[{\"name\":\"f\",\"input\":%s}]}", inputs[i]);
        assert_int_not_equal(dsa_grammar_compile(&g, dsa_strz(spec),
                                                 dsa_strz(DSML), &error), 0);
        assert_string_equal(error.path,
                            "tools[0].function.format.definition");
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_commons),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_spec)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
