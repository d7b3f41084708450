
/*
 * Copyright (C) The nginx-dsa authors
 *
 * engine/tokenizer/.  The cuts of Split, ByteLevel and AddedToken are compared
 * with the published tests of Hugging Face's tokenizers (Apache-2.0), merges
 * with a literal implementation of their definition, and U+FFFD with Python's
 * decode(errors="replace"), see t/data/tokenizer/README.md.  t/tokenizer.t
 * tests the DeepSeek vocabulary by the command line.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/json_write.h"
#include "engine/tokenizer/tokenizer.h"


#define BYTE_LEVEL  "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"     \
                    "\"trim_offsets\":true,\"use_regex\":false}"

#define GPT2        "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"     \
                    "\"trim_offsets\":true,\"use_regex\":true}"

#define SPLIT(pattern, behavior, invert)                                      \
    "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","          \
    "\"pattern\":" pattern ",\"behavior\":\"" behavior "\",\"invert\":"       \
    invert "}," BYTE_LEVEL "]}"

#define REGEX(text)  "{\"Regex\":\"" text "\"}"

#define DEEPSEEK                                                              \
    "{\"type\":\"Sequence\",\"pretokenizers\":["                              \
    "{\"type\":\"Split\",\"pattern\":" REGEX("\\\\p{N}{1,3}")                 \
    ",\"behavior\":\"Isolated\",\"invert\":false},"                           \
    "{\"type\":\"Split\",\"pattern\":"                                        \
    REGEX("[\\u4e00-\\u9fa5\\u3040-\\u309f\\u30a0-\\u30ff]+")                 \
    ",\"behavior\":\"Isolated\",\"invert\":false},"                           \
    "{\"type\":\"Split\",\"pattern\":"                                        \
    REGEX("[!\\\"#$%&'()*+,\\\\-./:;<=>?@\\\\[\\\\\\\\\\\\]^_`{|}~][A-Za-z]+" \
          "|[^\\\\r\\\\n\\\\p{L}\\\\p{P}\\\\p{S}]?[\\\\p{L}\\\\p{M}]+"        \
          "| ?[\\\\p{P}\\\\p{S}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+"           \
          "|\\\\s+(?!\\\\S)|\\\\s+")                                          \
    ",\"behavior\":\"Isolated\",\"invert\":false}," BYTE_LEVEL "]}"


typedef struct {
    dsa_tokenizer_t       *t;
    dsa_tokenizer_work_t  *w;
    dsa_tokens_t           out;
    dsa_err_t              err;
} fixture_t;


/* GPT-2's byte-level alphabet: the character of a byte, in UTF-8. */

static void
add_byte(dsa_buf_t *b, uint8_t byte)
{
    char      c[4];
    uint32_t  i, n;

    n = 256;

    for (i = 0; i <= byte; i++) {
        if (i < 0x21 || (i > 0x7e && i < 0xa1) || i == 0xad) {
            n++;
        }
    }

    n = (byte < 0x21 || (byte > 0x7e && byte < 0xa1) || byte == 0xad)
        ? n - 1 : byte;

    if (n < 0x80) {
        c[0] = (char) n;
        dsa_json_escape(b, dsa_str(c, 1));
        return;
    }

    c[0] = (char) (0xc0 | n >> 6);
    c[1] = (char) (0x80 | (n & 0x3f));
    dsa_buf_add(b, c, 2);
}


static void
add_bytes(dsa_buf_t *b, dsa_str_t s)
{
    size_t  i;

    for (i = 0; i < s.len; i++) {
        add_byte(b, (uint8_t) s.data[i]);
    }
}


static void
load(fixture_t *f, dsa_buf_t *json)
{
    assert_int_equal(json->failed, 0);

    memset(f, 0, sizeof(fixture_t));

    f->t = dsa_tokenizer_read("test", json->data, json->len, &f->err);

    if (f->t == NULL) {
        print_error("%s\n", f->err.text);
    }

    assert_non_null(f->t);

    f->w = dsa_tokenizer_work_create(f->t);
    assert_non_null(f->w);
}


static void
unload(fixture_t *f)
{
    dsa_tokenizer_work_destroy(f->w);
    dsa_tokenizer_close(f->t);
    free(f->out.ids);
}


static int
is_added(const char *added, dsa_str_t content)
{
    char  quoted[300];

    (void) snprintf(quoted, sizeof(quoted), "\"content\":\"%.*s\"",
                    (int) content.len, content.data);

    return strstr(added, quoted) != NULL;
}


/*
 * A tokenizer with every part of text, and of text after a space, as a token,
 * so that the ids show where the text was cut.
 */

static void
load_parts(fixture_t *f, const char *pre, const char *added, dsa_str_t text)
{
    char         whole[256];
    size_t       i, len;
    uint32_t     id;
    dsa_buf_t    b;

    memset(&b, 0, sizeof(dsa_buf_t));
    assert_true(text.len < sizeof(whole));

    whole[0] = ' ';
    memcpy(whole + 1, text.data, text.len);

    dsa_buf_printf(&b, "{\"added_tokens\":[%s],\"normalizer\":null,"
                   "\"pre_tokenizer\":%s,\"model\":{\"type\":\"BPE\","
                   "\"ignore_merges\":true,\"merges\":[],\"vocab\":{",
                   added, pre);

    for (id = 0; id < 256; id++) {
        dsa_buf_addz(&b, id == 0 ? "\"" : ",\"");
        add_byte(&b, (uint8_t) id);
        dsa_buf_printf(&b, "\":%u", id);
    }

    for (len = 2; len <= text.len + 1; len++) {
        for (i = 0; i + len <= text.len + 1; i++) {

            if (memmem(whole, i + len - 1, whole + i, len) != NULL
                || is_added(added, dsa_str(whole + i, len)))
            {
                continue;
            }

            dsa_buf_addz(&b, ",\"");
            add_bytes(&b, dsa_str(whole + i, len));
            dsa_buf_printf(&b, "\":%u", id++);
        }
    }

    dsa_buf_addz(&b, "}}}");

    load(f, &b);
    dsa_buf_free(&b);
}


/* expected: the tokens of text with bars between them. */

static void
check_parts(const char *pre, const char *added, dsa_str_t text,
    const char *expected)
{
    int        rc;
    uint32_t   i;
    fixture_t  f;
    dsa_buf_t  b;
    dsa_str_t  s;

    memset(&b, 0, sizeof(dsa_buf_t));
    load_parts(&f, pre, added, text);

    rc = (added[0] == '\0')
         ? dsa_tokenize(f.t, f.w, text, UINT32_MAX, &f.out, &f.err)
         : dsa_tokenize_special(f.t, f.w, text, UINT32_MAX, &f.out, &f.err);

    assert_int_equal(rc, DSA_OK);

    for (i = 0; i < f.out.n; i++) {
        s = dsa_token_bytes(f.t, f.out.ids[i]);

        dsa_buf_addz(&b, i == 0 ? "" : "|");
        dsa_buf_add(&b, s.data, s.len);
    }

    dsa_buf_add(&b, "", 1);
    assert_int_equal(b.failed, 0);
    assert_string_equal(b.data, expected);

    dsa_buf_free(&b);
    unload(&f);
}


static void
test_split(void **state)
{
    size_t  i;

    static const struct {
        const char  *pre;
        const char  *text;
        const char  *parts;
    } cases[] = {

        /* the published cases of the five behaviors, inverted as there */

        { SPLIT(REGEX("\\\\w+|[^\\\\w\\\\s]+"), "Removed", "true"),
          "How are you doing?", "How|are|you|doing|?" },
        { SPLIT(REGEX("\\\\w+|[^\\\\w\\\\s]+"), "Isolated", "true"),
          "How are you doing?", "How| |are| |you| |doing|?" },
        { SPLIT(REGEX("\\\\w+|[^\\\\w\\\\s]+"), "MergedWithPrevious", "true"),
          "How are you doing?", "How |are |you |doing|?" },
        { SPLIT(REGEX("\\\\w+|[^\\\\w\\\\s]+"), "MergedWithNext", "true"),
          "How are you doing?", "How| are| you| doing|?" },
        { SPLIT(REGEX("\\\\w+|[^\\\\w\\\\s]+"), "Contiguous", "true"),
          "How are you doing?", "How| |are| |you| |doing?" },
        { SPLIT(REGEX("\\\\s+"), "Removed", "false"), "Hey, man!",
          "Hey,|man!" },
        { SPLIT("{\"String\":\" \"}", "Removed", "false"), "Hey, man!",
          "Hey,|man!" },
        { SPLIT("{\"String\":\"Hello\"}", "Removed", "true"),
          "Hello Hello Hello", "Hello|Hello|Hello" },

        /* and of its behaviors' own test, "the-final--countdown" */

        { SPLIT("{\"String\":\"-\"}", "Removed", "false"),
          "The-final--countdown", "The|final|countdown" },
        { SPLIT("{\"String\":\"-\"}", "Isolated", "false"),
          "The-final--countdown", "The|-|final|-|-|countdown" },
        { SPLIT("{\"String\":\"-\"}", "MergedWithPrevious", "false"),
          "The-final--countdown", "The-|final-|-|countdown" },
        { SPLIT("{\"String\":\"-\"}", "MergedWithNext", "false"),
          "The-final--countdown", "The|-final|-|-countdown" },
        { SPLIT("{\"String\":\"-\"}", "Contiguous", "false"),
          "The-final--countdown", "The|-|final|--|countdown" },

        /* a String is not a pattern */

        { SPLIT("{\"String\":\".*\"}", "Isolated", "false"), "a.*b",
          "a|.*|b" },

        /* empty matches cut, once */

        { SPLIT(REGEX("(?=b)"), "Isolated", "false"), "abab", "a|ba|b" },
        { SPLIT(REGEX("x*"), "Isolated", "false"), "axb", "a|x|b" },

        /* escapes that mean something else in PCRE2 */

        { SPLIT(REGEX("\\\\s"), "Removed", "false"),
          "a\xc2\x85\x62\xe1\xa0\x8e\x63", "a|b\xe1\xa0\x8e\x63" },
        { SPLIT(REGEX("\\\\h"), "Removed", "false"), "xay z", "x|y z" },
        { SPLIT(REGEX("\\\\w+"), "Isolated", "false"), "a\xc2\xb2_\xcc\x81-",
          "a|\xc2\xb2|_\xcc\x81|-" },
        { SPLIT(REGEX("b{,2}c"), "Isolated", "false"), "abbbc", "ab|bbc" },
        { SPLIT(REGEX("^b"), "Isolated", "false"), "ab\\nbb", "ab\\nbb" },
        { SPLIT(REGEX("(?i:'S)"), "Isolated", "false"), "it's", "it|'s" },
        { SPLIT(REGEX("[\\\\x{4e00}\\\\u4e01]"), "Isolated", "false"),
          "a\xe4\xb8\x80\xe4\xb8\x81", "a|\xe4\xb8\x80|\xe4\xb8\x81" },

        /* the published cases of ByteLevel */

        { GPT2, "Hello my friend, how is your day going?",
          "Hello| my| friend|,| how| is| your| day| going|?" },
        { GPT2, "Hello there\nHello there", "Hello| there|\n|Hello| there" },
        { GPT2, "Hello there       dear", "Hello| there|      | dear" },
        { GPT2, "i\xe2\xad\xa2j", "i|\xe2\xad\xa2|j" },
        { BYTE_LEVEL, "Hello my friend", "Hello my friend" },
        { "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,"
          "\"use_regex\":true}", "Hello my friend", " Hello| my| friend" },
        { "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,"
          "\"use_regex\":true}", " Hello my friend", " Hello| my| friend" },
        { "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,"
          "\"use_regex\":false}", "Hello my", " Hello my" },

        /* derived by hand from the text of the DeepSeek patterns */

        { DEEPSEEK, "12345 a", "123|45| a" },
        { DEEPSEEK, "x  y", "x| | y" },
        { DEEPSEEK, "   \t\n   ", "   \t\n|   " },
        { DEEPSEEK, "f(a).b();\n\nc", "f|(a|).|b|();\n\n|c" },
        { DEEPSEEK, "a\xe4\xb8\xad\xe3\x81\x82""b",
          "a|\xe4\xb8\xad\xe3\x81\x82|b" },
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check_parts(cases[i].pre, "", dsa_strz(cases[i].text),
                    cases[i].parts);
    }
}


/* Invalid UTF-8 is a pre-token, and the text beside it a text of its own. */

static void
test_invalid(void **state)
{
    check_parts(GPT2, "", dsa_strz("ab \xff cd"), "ab| |\xff| cd");
    check_parts(GPT2, "", dsa_strz("a\xe4\xb8z"), "a|\xe4\xb8|z");
    check_parts(GPT2, "", dsa_strz("\xc0\x80\xed\xa0\x80"),
                "\xc0\x80\xed\xa0\x80");
    check_parts(GPT2, "", dsa_strz("a\xf0\x9f\x98"), "a|\xf0\x9f\x98");
    check_parts(GPT2, "", dsa_str("\xff\0", 2), "\xff|");   /* and a NUL */
}


#define ADDED(id, content, more)                                              \
    "{\"id\":" #id ",\"content\":\"" content "\"" more "}"


static void
test_added(void **state)
{
    size_t      i;
    fixture_t   f;

    static const struct {
        const char  *pre;
        const char  *added;
        const char  *text;
        const char  *parts;
    } cases[] = {

        /* the published cases, cut as GPT-2 cuts them */

        { GPT2, ADDED(9000, "<mask>", ",\"rstrip\":true"),
          "I saw a <mask> x", "I| saw| a| |<mask>|x" },
        { GPT2, ADDED(9000, "<mask>", ",\"lstrip\":true"),
          "I saw a <mask> x", "I| saw| a|<mask>| x" },
        { "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,"
          "\"use_regex\":true}", ADDED(9000, "<mask>", ",\"rstrip\":true"),
          "I saw a <mask> x", " I| saw| a| |<mask>| x" },
        { GPT2, ADDED(9000, "ing", ",\"single_word\":true"),
          "I like dancing", "I| like| dancing" },
        { GPT2, ADDED(9000, "ing", ",\"single_word\":false"),
          "I like dancing", "I| like| danc|ing" },
        { GPT2, ADDED(9000, "danc", "") "," ADDED(9001, "nci", "") ","
          ADDED(9002, "ing", ""), "I like dancing", "I| like| |danc|ing" },
        { GPT2, ADDED(9000, "nci", "") "," ADDED(9001, "danc", "") ","
          ADDED(9002, "ing", "") "," ADDED(9003, "ike", ""),
          "I like dancing", "I| l|ike| |danc|ing" },

        /* the leftmost, and of these the longest */

        { GPT2, ADDED(9000, "ab", "") "," ADDED(9001, "abcd", "") ","
          ADDED(9002, "bcdefg", ""), "xabcdefgab", "x|abcd|efg|ab" },
        { GPT2, ADDED(9000, "abcd", "") "," ADDED(98, "b", ""), "abcabcd",
          "a|b|c|abcd" },

        /* the normalized ones are searched after the others */

        { GPT2, ADDED(9000, "abc", ",\"normalized\":true") ","
          ADDED(9001, "cd", ",\"normalized\":false"), "abcd abc",
          "ab|cd| |abc" },

        { GPT2, ADDED(97, "a", ",\"single_word\":true"),
          "a \xc3\xa9\x61 a1 a", "a| \xc3\xa9\x61| a|1| |a" },
        { GPT2, ADDED(9000, "<a>", ",\"lstrip\":true,\"rstrip\":true"),
          "x \xe3\x80\x80<a>\n <a> \xff<a>",
          "x|<a>|<a>|\xff|<a>" },
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check_parts(cases[i].pre, cases[i].added, dsa_strz(cases[i].text),
                    cases[i].parts);
    }

    load_parts(&f, GPT2, ADDED(9000, "<a>", "") "," ADDED(9004, "<ab>", ""),
               dsa_strz("<a>"));

    assert_int_equal(dsa_tokenizer_size(f.t), 9005);
    assert_int_equal(dsa_tokenizer_special(f.t, dsa_strz("<ab>")), 9004);
    assert_int_equal(dsa_tokenizer_special(f.t, dsa_strz("<ab")), -1);
    assert_int_equal(dsa_tokenizer_special(f.t, dsa_strz("a")), -1);
    assert_int_equal(dsa_token_is_special(f.t, 9000), 1);
    assert_int_equal(dsa_token_is_special(f.t, 97), 0);
    assert_int_equal(dsa_token_is_special(f.t, 9005), 0);
    assert_int_equal(dsa_token_is_special(f.t, UINT32_MAX), 0);
    assert_true(dsa_str_eqz(dsa_token_bytes(f.t, 9000), "<a>"));
    assert_true(dsa_str_eqz(dsa_token_bytes(f.t, 97), "a"));
    assert_int_equal(dsa_token_bytes(f.t, 9001).len, 0);
    assert_int_equal(dsa_token_bytes(f.t, UINT32_MAX).len, 0);

    /* in dsa_tokenize() they are text */

    assert_int_equal(dsa_tokenize(f.t, f.w, dsa_strz("<a>"), UINT32_MAX,
                                  &f.out, &f.err), DSA_OK);
    assert_int_equal(f.out.n, 3);

    unload(&f);
}


static uint32_t
random_next(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;

    return *seed >> 8;
}


#define MERGES  300

typedef struct {
    uint32_t    left;
    uint32_t    right;
    uint32_t    id;
} merge_t;


/* Byte-pair encoding as it is defined, one merge after the other. */

static uint32_t
merge_all(const merge_t *merge, uint32_t *id, uint32_t n)
{
    uint32_t  i, j, best, at;

    for ( ;; ) {
        best = MERGES;
        at = 0;

        for (i = 0; i + 1 < n; i++) {
            for (j = 0; j < best; j++) {
                if (merge[j].left == id[i] && merge[j].right == id[i + 1]) {
                    best = j;
                    at = i;
                }
            }
        }

        if (best == MERGES) {
            return n;
        }

        id[at] = merge[best].id;
        n--;
        memmove(id + at + 1, id + at + 2, (n - at - 1) * sizeof(uint32_t));
    }
}


/* Random merges, in an order that training never makes, in both notations. */

static void
test_merges(void **state)
{
    char         text[400];
    size_t       i, n, len;
    uint32_t     seed, notation, ids[400], expected;
    merge_t      merge[MERGES];
    fixture_t    f;
    dsa_buf_t    b, vocab, token[256 + MERGES];
    dsa_str_t    s[256 + MERGES];

    for (notation = 0; notation < 2; notation++) {

        seed = 7;
        memset(&b, 0, sizeof(dsa_buf_t));
        memset(&vocab, 0, sizeof(dsa_buf_t));
        memset(token, 0, sizeof(token));

        for (i = 0; i < 256; i++) {
            dsa_buf_addz(&vocab, i == 0 ? "\"" : ",\"");
            add_byte(&vocab, (uint8_t) i);
            dsa_buf_printf(&vocab, "\":%zu", i);

            text[0] = (char) i;
            dsa_buf_add(&token[i], text, 1);
            s[i] = dsa_str(token[i].data, 1);
        }

        dsa_buf_printf(&b, "{\"pre_tokenizer\":%s,\"model\":{\"type\":\"BPE\","
                       "\"merges\":[", BYTE_LEVEL);

        for (n = 0; n < MERGES; n++) {

            /* of two of five letters and earlier merges; the result is new */

            for ( ;; ) {
                i = random_next(&seed) % (n + 5);
                merge[n].left = (uint32_t) (i < 5 ? 'a' + i : 251 + i);

                i = random_next(&seed) % (n + 5);
                merge[n].right = (uint32_t) (i < 5 ? 'a' + i : 251 + i);

                token[256 + n].len = 0;
                dsa_buf_add(&token[256 + n], s[merge[n].left].data,
                            s[merge[n].left].len);
                dsa_buf_add(&token[256 + n], s[merge[n].right].data,
                            s[merge[n].right].len);

                s[256 + n] = dsa_str(token[256 + n].data, token[256 + n].len);

                for (i = 0; i < 256 + n && !dsa_str_eq(s[i], s[256 + n]);
                     i++) { /* void */ }

                if (i == 256 + n && s[256 + n].len < 12) {
                    break;
                }
            }

            merge[n].id = (uint32_t) (256 + n);

            dsa_buf_addz(&vocab, ",\"");
            add_bytes(&vocab, s[256 + n]);
            dsa_buf_printf(&vocab, "\":%zu", 256 + n);

            dsa_buf_addz(&b, n == 0 ? "" : ",");
            dsa_buf_addz(&b, notation == 0 ? "\"" : "[\"");
            add_bytes(&b, s[merge[n].left]);
            dsa_buf_addz(&b, notation == 0 ? " " : "\",\"");
            add_bytes(&b, s[merge[n].right]);
            dsa_buf_addz(&b, notation == 0 ? "\"" : "\"]");
        }

        dsa_buf_addz(&b, "],\"vocab\":{");
        dsa_buf_add(&b, vocab.data, vocab.len);
        dsa_buf_addz(&b, "}}}");

        load(&f, &b);

        for (n = 0; n < 3000; n++) {

            /* short texts repeat, so that the cache is used */

            len = 1 + random_next(&seed) % (n % 10 == 0 ? sizeof(text) : 6);

            for (i = 0; i < len; i++) {
                text[i] = (char) ('a' + random_next(&seed) % 5);
                ids[i] = (uint8_t) text[i];
            }

            expected = merge_all(merge, ids, (uint32_t) len);

            f.out.n = 0;

            assert_int_equal(dsa_tokenize(f.t, f.w, dsa_str(text, len),
                                          UINT32_MAX, &f.out, &f.err),
                             DSA_OK);
            assert_int_equal(f.out.n, expected);
            assert_memory_equal(f.out.ids, ids, expected * sizeof(uint32_t));

            /* a limit of exactly as many tokens, and of one less */

            f.out.n = 0;

            assert_int_equal(dsa_tokenize(f.t, f.w, dsa_str(text, len),
                                          expected, &f.out, &f.err), DSA_OK);

            f.out.n = 0;

            assert_int_equal(dsa_tokenize(f.t, f.w, dsa_str(text, len),
                                          expected - 1, &f.out, &f.err),
                             DSA_AGAIN);
        }

        unload(&f);

        for (i = 0; i < 256 + MERGES; i++) {
            dsa_buf_free(&token[i]);
        }

        dsa_buf_free(&vocab);
        dsa_buf_free(&b);
    }
}


/* The published patterns, with merges that join equal letters up to 32. */

static void
load_deepseek(fixture_t *f)
{
    char       run[32];
    uint32_t   i, n, id;
    dsa_buf_t  b, merges;

    static const char  letters[] = "a !\n7";

    memset(&b, 0, sizeof(dsa_buf_t));
    memset(&merges, 0, sizeof(dsa_buf_t));

    dsa_buf_printf(&b, "{\"pre_tokenizer\":%s,\"model\":{\"type\":\"BPE\","
                   "\"vocab\":{", DEEPSEEK);

    for (id = 0; id < 256; id++) {
        dsa_buf_addz(&b, id == 0 ? "\"" : ",\"");
        add_byte(&b, (uint8_t) id);
        dsa_buf_printf(&b, "\":%u", id);
    }

    for (n = 2; n <= sizeof(run); n *= 2) {
        for (i = 0; letters[i] != '\0'; i++) {
            memset(run, letters[i], sizeof(run));

            dsa_buf_addz(&b, ",\"");
            add_bytes(&b, dsa_str(run, n));
            dsa_buf_printf(&b, "\":%u", id++);

            dsa_buf_addz(&merges, merges.len == 0 ? "\"" : ",\"");
            add_bytes(&merges, dsa_str(run, n / 2));
            dsa_buf_addz(&merges, " ");
            add_bytes(&merges, dsa_str(run, n / 2));
            dsa_buf_addz(&merges, "\"");
        }
    }

    dsa_buf_addz(&b, "},\"merges\":[");
    dsa_buf_add(&b, merges.data, merges.len);
    dsa_buf_addz(&b, "]}}");

    load(f, &b);

    dsa_buf_free(&merges);
    dsa_buf_free(&b);
}


/* Returns the processor time of one dsa_tokenize(), in seconds. */

static double
seconds(fixture_t *f, dsa_str_t text)
{
    struct timespec  a, b;

    f->out.n = 0;

    (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    assert_int_equal(dsa_tokenize(f->t, f->w, text, UINT32_MAX, &f->out,
                                  &f->err), DSA_OK);
    (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);

    return (double) (b.tv_sec - a.tv_sec)
           + (double) (b.tv_nsec - a.tv_nsec) * 1e-9;
}


/*
 * The time of a text is about linear in its length: half a megabyte takes less
 * than a tenth of a second.  If anything were quadratic, it would take a
 * minute, or 13 seconds if that were moving half of the text for each byte.
 * Times of short and long texts are not compared, because the ratio depends on
 * what fits the caches: where other programs use them, too, it was 60 for
 * eight times the length.
 */

#define LONG    (512 * 1024)
#define LONG_S  5

static void
test_linear(void **state)
{
    char       *text;
    double      took;
    size_t      i, n, len;
    uint32_t    seed;
    fixture_t   f;

    static const dsa_str_t  unit[] = {
        dsa_string("a"), dsa_string(" "), dsa_string("\n"), dsa_string("!"),
        dsa_string("7"), dsa_string("\t"), dsa_string("\r\n"),
        dsa_string("\xcc\x81"), dsa_string("\xe4\xb8\xad"),
        dsa_string("\xff"), dsa_string("a\xff"), dsa_string("\x01"),
        dsa_string("\xe2\x80\x8d"), dsa_string(" a"), dsa_string(" ."),
        dsa_string("!a"), dsa_string("1a"), dsa_string("\xe2\x80\xa8 "),
        dsa_string("                               \n"),
        dsa_string("                               x"),
        dsa_string("\xf0\x9f\x91\xa8\xe2\x80\x8d"),
    };

    load_deepseek(&f);

    text = malloc(LONG + 32);
    assert_non_null(text);

    for (n = 0; n <= sizeof(unit) / sizeof(unit[0]) + 1; n++) {

        if (n < sizeof(unit) / sizeof(unit[0])) {
            for (len = 0; len < LONG; len += unit[n].len) {
                memcpy(text + len, unit[n].data, unit[n].len);
            }

        } else {                            /* random bytes, and letters */
            seed = 1;

            for (i = 0; i < LONG; i++) {
                text[i] = (char) (n == sizeof(unit) / sizeof(unit[0])
                                  ? random_next(&seed)
                                  : 'a' + random_next(&seed) % 26);
            }

            len = LONG;
        }

        took = seconds(&f, dsa_str(text, len));

        if (took > LONG_S) {
            fail_msg("text %zu takes %.3f s", n, took);
        }
    }

    free(text);
    unload(&f);
}


/* The tokens of any bytes mean exactly these bytes. */

static void
test_bytes(void **state)
{
    char        text[64];
    size_t      i, n, len, at;
    uint32_t    seed;
    dsa_str_t   s;
    fixture_t   f;

    static const char  likely[] = "a \n!7\xcc\x81\xe4\xb8\xad\xf0\x9f\x98\x80";

    load_deepseek(&f);
    seed = 3;

    for (n = 0; n < 20000; n++) {

        len = random_next(&seed) % sizeof(text);

        for (i = 0; i < len; i++) {
            text[i] = (random_next(&seed) % 8 == 0)
                      ? (char) random_next(&seed)
                      : likely[random_next(&seed) % (sizeof(likely) - 1)];
        }

        f.out.n = 0;
        at = 0;

        assert_int_equal(dsa_tokenize(f.t, f.w, dsa_str(text, len), UINT32_MAX,
                                      &f.out, &f.err), DSA_OK);

        for (i = 0; i < f.out.n; i++) {
            s = dsa_token_bytes(f.t, f.out.ids[i]);

            assert_true(s.len != 0 && s.len <= len - at);
            assert_memory_equal(s.data, text + at, s.len);
            at += s.len;
        }

        assert_int_equal(at, len);
    }

    unload(&f);
}


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


static size_t
unhex(const char *in, size_t len, char *out)
{
    size_t        i;
    unsigned int  byte;

    for (i = 0; i + 1 < len; i += 2) {
        assert_int_equal(sscanf(in + i, "%2x", &byte), 1);
        out[i / 2] = (char) byte;
    }

    return len / 2;
}


/* Each line has bytes and the text that Python makes of them, as hex. */

static void
test_replacement(void **state)
{
    char               line[1024], in[256], expected[256 * 3], out[256 * 3];
    char              *space, *end;
    size_t             i, len, n, at, lines, pieces;
    FILE              *file;
    dsa_detokenizer_t  d;

    file = fopen("t/data/tokenizer/utf8-replace.txt", "r");
    assert_non_null(file);

    for (lines = 0; fgets(line, sizeof(line), file) != NULL; lines++) {

        space = strchr(line, ' ');
        end = strchr(line, '\n');
        assert_non_null(space);
        assert_non_null(end);

        len = unhex(line, (size_t) (space - line), in);
        n = unhex(space + 1, (size_t) (end - space - 1), expected);

        /* cut in two at every place, and byte by byte */

        for (pieces = 0; pieces <= len + 1; pieces++) {

            memset(&d, 0, sizeof(dsa_detokenizer_t));
            at = 0;

            if (pieces == len + 1) {
                for (i = 0; i < len; i++) {
                    at += dsa_detokenize(&d, dsa_str(in + i, 1), out + at);
                }

            } else {
                at = dsa_detokenize(&d, dsa_str(in, pieces), out);
                at += dsa_detokenize(&d, dsa_str(in + pieces, len - pieces),
                                     out + at);
            }

            at += dsa_detokenize_end(&d, out + at);

            assert_int_equal(at, n);
            assert_memory_equal(out, expected, n);
        }
    }

    assert_true(lines > 300);
    (void) fclose(file);
}


/* All bytes of a character are written when the last one is read. */

static void
test_pending(void **state)
{
    char               out[64];
    dsa_detokenizer_t  d;

    memset(&d, 0, sizeof(dsa_detokenizer_t));

    assert_int_equal(dsa_detokenize(&d, dsa_strz("a\xf0"), out), 1);
    assert_int_equal(dsa_detokenize(&d, dsa_strz("\x9f\x98"), out), 0);
    assert_int_equal(dsa_detokenize(&d, dsa_strz("\x80z"), out), 5);
    assert_memory_equal(out, "\xf0\x9f\x98\x80z", 5);
    assert_int_equal(dsa_detokenize_end(&d, out), 0);
    assert_int_equal(dsa_detokenize(&d, dsa_strz("\xe4\xb8"), out), 0);
    assert_int_equal(dsa_detokenize_end(&d, out), 3);
    assert_memory_equal(out, "\xef\xbf\xbd", 3);
    assert_int_equal(dsa_detokenize_end(&d, out), 0);
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_invalid),
        cmocka_unit_test(test_added),
        cmocka_unit_test(test_merges),
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_max),
        cmocka_unit_test(test_max_memory),
        cmocka_unit_test(test_rejected),
        cmocka_unit_test(test_backtracking),
        cmocka_unit_test(test_replacement),
        cmocka_unit_test(test_pending),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
