
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Random walks over the masks of Lark grammars: each comes to a text that a
 * recognizer which was written by hand accepts.
 */


#include "base/arena.h"
#include "base/json.h"
#include "lark.h"


#define TEXTS           200             /* of each grammar */
#define WALK            4000            /* most bytes of one */
#define SHORT           40              /* bytes until it is led to its end */


typedef struct {
    const char  *grammar;
    const char  *likely;        /* bytes that are drawn rather than others */
    const char  *ends;          /* bytes that lead to an end */
    int        (*valid)(const char *p);
} language_t;


static uint64_t  seed = 20261123;


static uint32_t
dice(uint32_t n)
{
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;

    return (uint32_t) ((seed * 0x2545f4914f6cdd1d) >> 32) % n;
}


static int
take(const char **p, const char *text)
{
    size_t  len;

    len = strlen(text);

    if (strncmp(*p, text, len) != 0) {
        return 0;
    }

    *p += len;

    return 1;
}


/* Skips bytes of a set, and returns how many. */

static size_t
span(const char **p, const char *set)
{
    size_t  n;

    n = strspn(*p, set);
    *p += n;

    return n;
}


/* Arithmetic, right recursive. */

static int sum(const char **p);


static int
factor(const char **p)
{
    while (take(p, "-")) {
        (void) span(p, " ");
    }

    if (take(p, "(")) {
        (void) span(p, " ");
        return sum(p) && take(p, ")") && (span(p, " "), 1);
    }

    return span(p, "0123456789") != 0 && (span(p, " "), 1);
}


static int
product(const char **p)
{
    if (!factor(p)) {
        return 0;
    }

    while (take(p, "*") || take(p, "/")) {
        (void) span(p, " ");

        if (!factor(p)) {
            return 0;
        }
    }

    return 1;
}


static int
sum(const char **p)
{
    if (!product(p)) {
        return 0;
    }

    while (take(p, "+") || take(p, "-")) {
        (void) span(p, " ");

        if (!product(p)) {
            return 0;
        }
    }

    return 1;
}


static int
is_sum(const char *p)
{
    (void) span(&p, " ");

    return sum(&p) && *p == '\0';
}


/* A date that the calendar has. */

static int
is_date(const char *p)
{
    int       leap;
    uint32_t  year, month, day, days;

    if (strlen(p) != 10 || strspn(p, "0123456789") != 4 || p[4] != '-'
        || strspn(p + 5, "0123456789") != 2 || p[7] != '-'
        || strspn(p + 8, "0123456789") != 2)
    {
        return 0;
    }

    year = (uint32_t) strtoul(p, NULL, 10);
    month = (uint32_t) strtoul(p + 5, NULL, 10);
    day = (uint32_t) strtoul(p + 8, NULL, 10);
    leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    days = month == 2 ? 28 + (uint32_t) leap
           : month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;

    return month >= 1 && month <= 12 && day >= 1 && day <= days;
}


/* A patch: lines, of which a hunk has those that its first one permits. */

static int
line(const char **p, const char *begin, size_t least)
{
    const char  *end;

    if (!take(p, begin)) {
        return 0;
    }

    end = strchr(*p, '\n');

    if (end == NULL || (size_t) (end - *p) < least) {
        return 0;
    }

    *p = end + 1;

    return 1;
}


static int
is_patch(const char *p)
{
    uint32_t  hunks, n;

    if (!take(&p, "*** Begin Patch\n")) {
        return 0;
    }

    for (hunks = 0; /* void */ ; hunks++) {

        if (take(&p, "*** End Patch")) {
            return hunks != 0 && (*p == '\0' || strcmp(p, "\n") == 0);
        }

        if (line(&p, "*** Add File: ", 1)) {
            for (n = 0; line(&p, "+", 0); n++) {
                /* void */
            }

            if (n == 0) {
                return 0;
            }

            continue;
        }

        if (line(&p, "*** Delete File: ", 1)) {
            continue;
        }

        if (!line(&p, "*** Update File: ", 1)) {
            return 0;
        }

        (void) line(&p, "*** Move to: ", 1);

        for (n = 0; line(&p, "+", 0) || line(&p, "-", 0) || line(&p, " ", 0)
                    || take(&p, "@@\n") || line(&p, "@@ ", 1); n++)
        {
            /* void */
        }

        if (n != 0) {
            (void) take(&p, "*** End of File\n");
        }
    }
}


/* One query: words, and commas between names. */

static int
name(const char **p)
{
    return span(p, "abc") != 0 && (span(p, " \n"), 1);
}


static int
test(const char **p)
{
    if (!name(p) || !(take(p, "=") || take(p, ">"))) {
        return 0;
    }

    (void) span(p, " \n");

    if (take(p, "'")) {
        *p = strchr(*p, '\'');
        return *p != NULL && take(p, "'") && (span(p, " \n"), 1);
    }

    return span(p, "0123456789") != 0 && (span(p, " \n"), 1);
}


static int
word(const char **p, const char *text)
{
    if (strncasecmp(*p, text, strlen(text)) != 0) {
        return 0;
    }

    *p += strlen(text);
    (void) span(p, " \n");

    return 1;
}


static int
is_query(const char *p)
{
    (void) span(&p, " \n");

    if (!word(&p, "select")) {
        return 0;
    }

    if (!word(&p, "*")) {
        do {
            if (!name(&p)) {
                return 0;
            }
        } while (word(&p, ","));
    }

    if (!word(&p, "from") || !name(&p)) {
        return 0;
    }

    if (word(&p, "where")) {
        do {
            if (!test(&p)) {
                return 0;
            }
        } while (word(&p, "and") || word(&p, "or"));
    }

    return *p == '\0';
}


static int
is_json(const char *p)
{
    int           rc;
    dsa_err_t     err;
    dsa_arena_t  *arena;

    arena = dsa_arena_create(16 << 20);
    assert_non_null(arena);

    /* a name may come twice */

    rc = dsa_json_parse(arena, p, strlen(p), 250, &err) != NULL
         || strstr(err.text, "is repeated") != NULL;
    dsa_arena_destroy(arena);

    return rc;
}


static const language_t  languages[] = {
    { "start: expr\n"
      "?expr: term | term (\"+\" | \"-\") expr\n"
      "?term: factor | factor (\"*\" | \"/\") term\n"
      "factor: /[0-9]+/ | \"-\" factor | \"(\" expr \")\"\n"
      "%ignore \" \"+\n",
      "01+-*/()", "7)", is_sum },

    { "start: long | short | february\n"
      "long: YEAR \"-\" (\"0\" /[13578]/ | \"1\" /[02]/) \"-\" (DAY | /3[01]/)"
      "\n"
      "short: YEAR \"-\" (\"0\" /[469]/ | \"11\") \"-\" (DAY | \"30\")\n"
      "february: YEAR \"-02-\" FEW\n"
      "YEAR: DIGIT~4\n"
      "DAY: \"0\" \"1\"..\"9\" | \"1\"..\"2\" DIGIT\n"
      "FEW: \"0\" \"1\"..\"9\" | \"1\" DIGIT | \"2\" \"0\"..\"8\"\n"
      "%import common.DIGIT\n",
      "01289", "9", is_date },

    { "start: begin hunk+ end\n"
      "begin: \"*** Begin Patch\" LF\n"
      "end: \"*** End Patch\" LF?\n"
      "hunk: add | delete | update\n"
      "add: \"*** Add File: \" filename LF add_line+\n"
      "delete: \"*** Delete File: \" filename LF\n"
      "update: \"*** Update File: \" filename LF move? change?\n"
      "filename: /(.+)/\n"
      "add_line: \"+\" /(.*)/ LF -> line\n"
      "move: \"*** Move to: \" filename LF\n"
      "change: (place | line)+ last?\n"
      "place: (\"@@\" | \"@@ \" /(.+)/) LF\n"
      "line: (\"+\" | \"-\" | \" \") /(.*)/ LF\n"
      "last: \"*** End of File\" LF\n"
      "%import common.LF\n",
      "\n+- @*ab", "\n*E ", is_patch },

    { "start: \"select\"i columns \"from\"i NAME [where]\n"
      "columns: \"*\" | NAME (\",\" NAME)*\n"
      "where: \"where\"i test ((\"and\"i | \"or\"i) test)*\n"
      "test: NAME (\"=\" | \">\") (INT | \"'\" /[^']*/ \"'\")\n"
      "NAME: /[abc]+/\n"
      "%import common.INT\n%ignore /[ \\n]/\n",
      "abc=>',1 ", "'f", is_query },

    { "?start: value\n"
      "?value: \"{\" [pair (\",\" pair)*] \"}\" | \"[\" [value (\",\" value)*]"
      " \"]\"\n"
      "      | STRING | NUMBER | \"true\" | \"false\" | \"null\"\n"
      "pair: STRING \":\" value\n"
      "STRING: \"\\\"\" (/[^\"\\\\\\x00-\\x1f]/ | ESCAPE)* \"\\\"\"\n"
      "ESCAPE: \"\\\\\" (/[\"\\\\nt]/ | \"u\" /0{4}/)\n"
      "NUMBER: \"-\"? (\"0\" | /[1-9]\\d*/)\n"
      "%import common.WS\n%ignore /[ \\n]/\n",
      "{}[]\",:1t", "0]}\":", is_json }
};


static int
draft(dsa_matcher_t *m, const char *text)
{
    uint32_t  id;

    while (*text != '\0') {
        id = (uint8_t) *text;

        if (strncmp(text, DSML, sizeof(DSML) - 1) == 0) {
            id = BYTES_DSML;
            text += sizeof(DSML) - 2;
        }

        text++;

        if (dsa_matcher_draft(m, id) != 0) {
            return 0;
        }
    }

    return 1;
}


/*
 * A permitted byte; one of a set, if several attempts find one.  It is not "<",
 * because what is behind the text begins with it.  0: the text is at its end.
 */

static uint32_t
draw(dsa_matcher_t *m, const char *set)
{
    uint32_t  i, id, n, mask[(BYTES_SIZE + 31) / 32];

    memset(mask, 0xff, sizeof(mask));
    dsa_matcher_mask(m, mask, sizeof(mask) / sizeof(uint32_t));
    mask['<' / 32] &= ~(1U << '<' % 32);

    for (i = 0; i < 6; i++) {
        id = (uint8_t) set[dice((uint32_t) strlen(set))];

        if ((mask[id / 32] >> id % 32 & 1) != 0) {
            return id;
        }
    }

    n = 0;

    for (i = 1; i < 256; i++) {
        n += mask[i / 32] >> i % 32 & 1;
    }

    if (n == 0) {
        return 0;
    }

    n = dice(n);

    for (i = 1; (mask[i / 32] >> i % 32 & 1) == 0 || n-- != 0; i++) {
        /* void */
    }

    return i;
}


/* Writes a text; it may end where what follows it may come. */

static void
walk(dsa_grammar_t *g, dsa_vocabulary_t *v, const language_t *language,
    char *text)
{
    uint32_t        n, c;
    dsa_matcher_t  *m;

    m = dsa_matcher_create(g, v, dsa_str(NULL, 0));
    assert_non_null(m);
    assert_int_equal(draft(m, LARK_BEFORE), 1);

    for (n = 0; n < WALK - 1; n++) {
        text[n] = '\0';
        c = draw(m, n < SHORT ? language->likely : language->ends);

        if (c == 0 || n >= SHORT || dice(4) == 0) {
            if (draft(m, LARK_BEHIND)) {
                assert_int_equal(dsa_matcher_complete(m), 1);
                dsa_matcher_free(m);
                return;
            }

            assert_int_not_equal(c, 0);

            dsa_matcher_undo(m);
            assert_int_equal(draft(m, LARK_BEFORE), 1);
            assert_int_equal(draft(m, text), 1);
        }

        text[n] = (char) c;
        assert_int_equal(dsa_matcher_draft(m, c), 0);
    }

    fail_msg("%s: no end behind %.*s", language->grammar, (int) n, text);
}


static void
test_walks(void **state)
{
    char               text[WALK];
    size_t             i;
    uint32_t           k;
    dsa_grammar_t     *g;
    dsa_vocabulary_t  *v;

    v = vocabulary_bytes(1);

    for (i = 0; i < sizeof(languages) / sizeof(languages[0]); i++) {
        g = lark_of(languages[i].grammar);

        for (k = 0; k < TEXTS; k++) {
            walk(g, v, &languages[i], text);

            if (!languages[i].valid(text)) {
                fail_msg("%s: %s", languages[i].grammar, text);
            }
        }

        dsa_grammar_free(g);
    }

    dsa_vocabulary_free(v);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_walks)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
