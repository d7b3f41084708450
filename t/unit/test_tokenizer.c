
/*
 * Copyright (C) The nginx-dsa authors
 *
 * engine/tokenizer/.  The cuts of Split, ByteLevel and AddedToken are compared
 * with the published tests of Hugging Face's tokenizers (Apache-2.0), merges
 * with a literal implementation of their definition, and U+FFFD with Python's
 * decode(errors="replace"), see t/data/tokenizer/README.md.  t/tokenizer.t
 * tests the DeepSeek vocabulary by the command line.
 */


#include <time.h>

#include "t/unit/tokenizer.h"


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
        cmocka_unit_test(test_replacement),
        cmocka_unit_test(test_pending),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
