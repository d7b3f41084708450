
/*
 * Copyright (C) The nginx-dsa authors
 *
 * What engine/tokenizer/ accepts: names of tokens, the sizes and the memory of
 * texts, and each error of tokenizer.json.
 */


#include <sys/resource.h>
#include <unistd.h>

#include "t/unit/tokenizer.h"


/* A name with characters outside of the alphabet means its own bytes. */

static void
test_names(void **state)
{
    uint32_t   id;
    fixture_t  f;
    dsa_buf_t  b;

    memset(&b, 0, sizeof(dsa_buf_t));
    dsa_buf_printf(&b, "{\"pre_tokenizer\":%s,\"model\":{\"type\":\"BPE\","
                   "\"merges\":[],\"vocab\":{", GPT2);

    for (id = 0; id < 256; id++) {

        /* its character, U+0143, is added below */

        if (id == 0xad) {
            continue;
        }

        dsa_buf_addz(&b, "\"");
        add_byte(&b, (uint8_t) id);
        dsa_buf_printf(&b, "\":%u,", id);
    }

    dsa_buf_addz(&b, "\"\\u0120a\":256,\"\\u0120\\u00ff\":257,"
                     "\"\\u0120\\uffae\":258,\"\\u0143\":259,"
                     "\"\\u0144\":260,\"\\ud83d\\ude00\":261,\" a\":262}}}");

    load(&f, &b);

    assert_true(dsa_str_eqz(dsa_token_bytes(f.t, 256), " a"));
    assert_true(dsa_str_eqz(dsa_token_bytes(f.t, 257), " \xff"));
    assert_true(dsa_str_eqz(dsa_token_bytes(f.t, 258),
                            "\xc4\xa0\xef\xbe\xae"));
    assert_true(dsa_str_eqz(dsa_token_bytes(f.t, 259), "\xad"));
    assert_true(dsa_str_eqz(dsa_token_bytes(f.t, 260), "\xc5\x84"));
    assert_true(dsa_str_eqz(dsa_token_bytes(f.t, 261), "\xf0\x9f\x98\x80"));
    assert_true(dsa_str_eqz(dsa_token_bytes(f.t, 262), " a"));

    dsa_buf_free(&b);
    unload(&f);
}


static void
test_max(void **state)
{
    fixture_t  f;

    load_deepseek(&f);

    assert_int_equal(dsa_tokenize(f.t, f.w, dsa_strz("1 2 3"), 5, &f.out,
                                  &f.err), DSA_OK);
    assert_int_equal(f.out.n, 5);

    /* ids in the list count, and those of a new text are appended */

    assert_int_equal(dsa_tokenize(f.t, f.w, dsa_strz(""), 5, &f.out, &f.err),
                     DSA_OK);
    assert_int_equal(dsa_tokenize(f.t, f.w, dsa_strz("4"), 5, &f.out, &f.err),
                     DSA_AGAIN);
    assert_int_equal(f.out.n, 5);
    assert_int_equal(dsa_tokenize(f.t, f.w, dsa_strz("4"), 6, &f.out, &f.err),
                     DSA_OK);
    assert_int_equal(f.out.n, 6);
    assert_int_equal(f.out.ids[0], '1');
    assert_int_equal(f.out.ids[5], '4');

    unload(&f);
}


/*
 * A text that no pattern divides needs memory for each byte.  None is allocated
 * if the text cannot fit the limit, and a text that just fits is tokenized.
 */

static void
test_max_memory(void **state)
{
    char           *text;
    FILE           *statm;
    size_t          i, n;
    fixture_t       f;
    struct rlimit   before, limit;
    unsigned long   pages;

    static const char  c[] = { 'a', '\xff' };

    load_deepseek(&f);

    n = 8 * 1024 * 1024;
    text = malloc(n);
    assert_non_null(text);

    statm = fopen("/proc/self/statm", "r");
    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%lu", &pages), 1);
    (void) fclose(statm);

    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);

    for (i = 0; i < sizeof(c); i++) {
        memset(text, c[i], n);

        limit = before;
        limit.rlim_cur = (rlim_t) pages * (rlim_t) sysconf(_SC_PAGESIZE)
                         + 64 * 1024 * 1024;
        assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);

        f.out.n = 0;
        assert_int_equal(dsa_tokenize(f.t, f.w, dsa_str(text, n), 160000,
                                      &f.out, &f.err), DSA_AGAIN);

        assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    }

    /* the longest token has 32 letters */

    memset(text, 'a', 32 * 1000);

    f.out.n = 0;
    assert_int_equal(dsa_tokenize(f.t, f.w, dsa_str(text, 32 * 1000), 1000,
                                  &f.out, &f.err), DSA_OK);
    assert_int_equal(f.out.n, 1000);

    f.out.n = 0;
    assert_int_equal(dsa_tokenize(f.t, f.w, dsa_str(text, 32 * 1000), 999,
                                  &f.out, &f.err), DSA_AGAIN);

    free(text);
    unload(&f);
}


/* In the texts "@" means the entries of all bytes, "#" a pre_tokenizer. */

static void
test_rejected(void **state)
{
    size_t            i;
    uint32_t          id;
    dsa_buf_t         b;
    dsa_err_t         err;
    const char       *json, *line, *pre, *p;
    dsa_tokenizer_t  *t;

    static const struct {
        const char  *json;
        const char  *line;      /* a part of the error; NULL: accepted */
    } cases[] = {
        { "{\"pre_tokenizer\":" GPT2 ",\"model\":{\"type\":\"BPE\","
          "\"vocab\":{@},\"merges\":[]}}", NULL },
        { "", "the file is empty; expected a JSON object" },
        { "[]", "test: the text is not a JSON object" },
        { "{\"pre_tokenizer\":", "truncated: the JSON object has no end, and "
          "the file has 17 bytes" },
        { "{\"pre_tokenizer\":" GPT2 "}",
          "\"model\" is missing; expected an object" },
        { "{\"model\":{\"type\":\"Unigram\"}}",
          "\"model.type\" is \"Unigram\"; expected \"BPE\"" },
        { "{\"extra\":1}", "\"extra\" is not" },
        { "{\"normalizer\":{\"type\":\"NFC\"}}",
          "\"normalizer\" is {\"type\": \"NFC\"}; expected null" },
        { "{\"truncation\":{}}", "truncation" },
        { "{\"padding\":{}}", "padding" },
        { "{\"decoder\":{\"type\":\"Metaspace\"}}", "\"Metaspace\"" },
        { "{\"model\":{\"type\":\"BPE\",\"dropout\":0.1}}", "model.dropout" },
        { "{\"model\":{\"type\":\"BPE\",\"end_of_word_suffix\":\"x\"}}",
          "\"model.end_of_word_suffix\" is \"x\"" },
        { "{\"model\":{\"type\":\"BPE\",\"strange\":1}}",
          "\"model.strange\" is not" },
        { "{\"model\":{\"type\":\"BPE\",\"ignore_merges\":1}}",
          "\"model.ignore_merges\" is 1; expected true or false" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":[]}}", "model.vocab" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{}}}", "model.merges" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}}",
          "for byte 0x00" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}}",
          "\"model.vocab.a\" is -1; expected an integer from 0 to" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":99999999999999999999},"
          "\"merges\":[]}}", "\"model.vocab.a\" is 99999999999999999999" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":4194304},"
          "\"merges\":[]}}", "\"model.vocab.a\" is 4194304; expected" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":1.5},\"merges\":[]}}",
          "\"model.vocab.a\" is 1.5" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\\nb\":-1},"
          "\"merges\":[]}}", "\"model.vocab.a\\x0ab\" is -1" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":1,\"b\":1},"
          "\"merges\":[]}}", "two entries of \"model.vocab\" have the id 1" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{@},\"merges\":[\"ab\"]}}",
          "\"model.merges[0]\" is \"ab\"" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{@},\"merges\":[\"a b\"]}}",
          "\"model.merges[0]\" joins \"a\" and \"b\"" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{@},\"merges\":[[\"a\"]]}}",
          "\"model.merges[0]\" is [\"a\"]; expected" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{@},\"merges\":[[1,2]]}}",
          "\"model.merges[0]\" is [1, 2]; expected" },
        { "{\"added_tokens\":[{\"id\":1}],\"model\":{\"type\":\"BPE\","
          "\"vocab\":{@},\"merges\":[]}}", "added_tokens[0].content" },
        { "{\"added_tokens\":[7],\"model\":{\"type\":\"BPE\","
          "\"vocab\":{@},\"merges\":[]}}",
          "\"added_tokens[0].id\" is missing" },
        { "{\"added_tokens\":[" ADDED(97, "x", "") "],\"model\":{"
          "\"type\":\"BPE\",\"vocab\":{@},\"merges\":[]}}",
          "contradicts model.vocab" },
        { "{\"added_tokens\":[" ADDED(300, "x", "") "],\"model\":{"
          "\"type\":\"BPE\",\"vocab\":{@},\"merges\":[]}}",
          "contradicts model.vocab" },
        { "{\"added_tokens\":[" ADDED(300, "xy", "") "," ADDED(301, "xy", "")
          "],\"model\":{\"type\":\"BPE\",\"vocab\":{@},\"merges\":[]}}",
          "as of another added token" },
        { "{\"added_tokens\":[" ADDED(300, "xy", "") "," ADDED(300, "xz", "")
          "],\"model\":{\"type\":\"BPE\",\"vocab\":{@},\"merges\":[]}}",
          "another added token" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{@},\"merges\":[]}}",
          "\"pre_tokenizer\" is missing" },
    };

    static const struct {
        const char  *pre;
        const char  *line;
    } stages[] = {
        { "{\"type\":\"Whitespace\"}",
          "\"pre_tokenizer.type\" is \"Whitespace\"" },
        { SPLIT(REGEX("a"), "Isolated", "1"), "invert\" is 1" },
        { SPLIT(REGEX("a"), "Merged", "true"), "behavior\" is \"Merged\"" },
        { SPLIT("\"a\"", "Isolated", "true"), "pretokenizers[0].pattern" },
        { SPLIT("{\"String\":\"\"}", "Isolated", "true"), "0 bytes" },
        { "{\"type\":\"Sequence\",\"pretokenizers\":[]}",
          "ends without a ByteLevel" },
        { "{\"type\":\"Sequence\",\"pretokenizers\":[" GPT2 "," GPT2 "]}",
          "pretokenizers[1].type\" follows a ByteLevel" },
        { "{\"type\":\"ByteLevel\",\"split\":1}",
          "\"pre_tokenizer.split\" is not a supported field" },
        { SPLIT(REGEX("a("), "Isolated", "false"), "parenthesis" },
        { SPLIT(REGEX("a**+*"), "Isolated", "false"), "pattern\": " },
        { SPLIT(REGEX("\\\\bx"), "Isolated", "false"), "\"\\bx\"" },
        { SPLIT(REGEX("(a)\\\\1"), "Isolated", "false"), "offset 3" },
        { SPLIT(REGEX("[a[b]]"), "Isolated", "false"),
          "a class within a class" },
        { SPLIT(REGEX("[a&&b]"), "Isolated", "false"), "an intersection" },
        { SPLIT(REGEX("[^\\\\W]"), "Isolated", "false"), "this escape" },
        { SPLIT(REGEX("[ab"), "Isolated", "false"),
          "without a closing bracket" },
        { SPLIT(REGEX("(?<n>a)"), "Isolated", "false"), "kind of group" },
        { SPLIT(REGEX("(?i)a"), "Isolated", "false"), "kind of group" },
        { SPLIT(REGEX("(*ACCEPT)"), "Isolated", "false"), "kind of group" },
        { SPLIT(REGEX("a{2}+"), "Isolated", "false"), "after bounds" },
        { SPLIT(REGEX("\\\\xff"), "Isolated", "false"), "code point" },
        { SPLIT(REGEX("\\\\p{Nonsense}"), "Isolated", "false"), "pattern\": " },
        { SPLIT(REGEX("a\\\\"), "Isolated", "false"), "backslash" },
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0])
                    + sizeof(stages) / sizeof(stages[0]); i++)
    {
        memset(&b, 0, sizeof(dsa_buf_t));

        if (i < sizeof(cases) / sizeof(cases[0])) {
            json = cases[i].json;
            line = cases[i].line;
            pre = "";

        } else {
            json = "{\"pre_tokenizer\":#,\"model\":{\"type\":\"BPE\","
                   "\"vocab\":{@},\"merges\":[]}}";
            line = stages[i - sizeof(cases) / sizeof(cases[0])].line;
            pre = stages[i - sizeof(cases) / sizeof(cases[0])].pre;
        }

        for (p = json; *p != '\0'; p++) {

            if (*p == '#') {
                dsa_buf_addz(&b, pre);

            } else if (*p == '@') {
                for (id = 0; id < 256; id++) {
                    dsa_buf_addz(&b, id == 0 ? "\"" : ",\"");
                    add_byte(&b, (uint8_t) id);
                    dsa_buf_printf(&b, "\":%u", id);
                }

            } else {
                dsa_buf_add(&b, p, 1);
            }
        }

        err.text[0] = '\0';
        t = dsa_tokenizer_read("test", b.data, b.len, &err);

        if ((t == NULL) != (line != NULL)
            || (line != NULL && strstr(err.text, line) == NULL))
        {
            print_error("%s%s: \"%s\"\n", json, pre, err.text);
            fail();
        }

        dsa_tokenizer_close(t);
        dsa_buf_free(&b);
    }

    assert_null(dsa_tokenizer_open("/nonexistent/tokenizer.json", &err));
    assert_non_null(strstr(err.text, "/nonexistent/tokenizer.json"));
    assert_null(dsa_tokenizer_open("/", &err));
}


/* A pattern that backtracks without end fails with an error. */

static void
test_backtracking(void **state)
{
    char       text[4096];
    fixture_t  f;

    memset(text, 'a', sizeof(text));
    load_parts(&f, SPLIT(REGEX("(?:a+)+[bc]"), "Isolated", "false"), "",
               dsa_strz("ab"));

    assert_int_equal(dsa_tokenize(f.t, f.w, dsa_str(text, sizeof(text)),
                                  UINT32_MAX, &f.out, &f.err), DSA_ERROR);
    assert_non_null(strstr(f.err.text, "pattern 1 of the tokenizer"));

    unload(&f);
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_max),
        cmocka_unit_test(test_max_memory),
        cmocka_unit_test(test_rejected),
        cmocka_unit_test(test_backtracking),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
