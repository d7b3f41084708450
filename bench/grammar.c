
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The time to compile a tool's schema, and to make the mask of a token:
 *
 *     bench/grammar [tokenizer.json]
 *
 * Without a tokenizer, it makes a vocabulary of 131072 tokens: all bytes, and
 * words of 2 to 12 letters, digits, blanks and punctuation.  Tokens are drawn
 * uniformly from the masks; answers are cut off after 256 tokens.  "first" is
 * the first answer, when no mask is there yet; "warm" are those behind the
 * first half.  "512" are 512 answers at once, a token of each in turn, with a
 * schema that counts items and characters: hardly any two of them are ever in
 * the same state.  The last specs are hostile.
 */


#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "engine/tokenizer/tokenizer.h"
#include "grammar/grammar.h"


#define BENCH_SIZE      131072
#define BENCH_ANSWERS   200
#define BENCH_TOKENS    256
#define BENCH_COMPILES  200
#define BENCH_MANY      512             /* answers at once, */
#define BENCH_MANY_TOKENS  32           /* tokens of each */


typedef struct {
    double      *us;
    uint32_t     n;
} bench_times_t;


static dsa_vocabulary_t *bench_vocabulary(uint32_t *size);
static dsa_vocabulary_t *bench_read(const char *path, uint32_t *size);
static void bench_spec(const char *name, const char *spec,
    dsa_vocabulary_t *v, uint32_t size);
static void bench_hostile(void);
static void bench_compile(const char *name, dsa_buf_t *spec);
static void bench_many(dsa_vocabulary_t *v, uint32_t size);
static void bench_answer(dsa_grammar_t *g, dsa_vocabulary_t *v,
    uint32_t size, bench_times_t *t);
static uint32_t bench_token(dsa_matcher_t *m, uint32_t *mask, uint32_t words,
    bench_times_t *times);
static uint32_t bench_draw(const uint32_t *mask, uint32_t words);
static void bench_print(const char *name, const char *what,
    bench_times_t *t);
static int bench_compare(const void *a, const void *b);
static uint32_t bench_random(void);
static double bench_now(void);


static const char  bench_tool[] =
    "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"many\",\"text\":false,"
    "\"tools\":[{\"name\":\"book_flight\",\"strict\":true,\"parameters\":{"
    "\"type\":\"object\",\"properties\":{"
    "\"from\":{\"type\":\"string\",\"pattern\":\"^[A-Z]{3}$\"},"
    "\"to\":{\"type\":\"string\",\"pattern\":\"^[A-Z]{3}$\"},"
    "\"date\":{\"type\":\"string\",\"format\":\"date\"},"
    "\"cabin\":{\"enum\":[\"economy\",\"business\",\"first\"]},"
    "\"passengers\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":9,"
    "\"items\":{\"type\":\"object\",\"properties\":{"
    "\"name\":{\"type\":\"string\"},"
    "\"age\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":130},"
    "\"email\":{\"anyOf\":[{\"type\":\"string\",\"format\":\"email\"},"
    "{\"type\":\"null\"}]}},\"required\":[\"name\",\"age\",\"email\"],"
    "\"additionalProperties\":false}},"
    "\"note\":{\"type\":\"string\",\"maxLength\":200},"
    "\"refundable\":{\"type\":\"boolean\"}},"
    "\"required\":[\"from\",\"to\",\"date\",\"passengers\"],"
    "\"additionalProperties\":false}}]}";

static const char  bench_schema[] =
    "{\"type\":\"json_schema\",\"schema\":{\"type\":\"object\",\"properties\":{"
    "\"title\":{\"type\":\"string\"},\"steps\":{\"type\":\"array\",\"items\":{"
    "\"type\":\"object\",\"properties\":{\"explanation\":{\"type\":\"string\"},"
    "\"output\":{\"type\":\"string\"},\"score\":{\"type\":\"number\"}},"
    "\"required\":[\"explanation\",\"output\",\"score\"],"
    "\"additionalProperties\":false}},\"final\":{\"type\":\"boolean\"}},"
    "\"required\":[\"title\",\"steps\",\"final\"],"
    "\"additionalProperties\":false}}";

static const char  bench_object[] = "{\"type\":\"json_object\"}";

static const char  bench_counts[] =
    "{\"type\":\"json_schema\",\"schema\":{\"type\":\"array\","
    "\"minItems\":600,\"maxItems\":2000,\"items\":"
    "{\"type\":\"string\",\"minLength\":40,\"maxLength\":400}}}";


int
main(int argc, char **argv)
{
    uint32_t           size;
    dsa_vocabulary_t  *v;

    v = argc > 1 ? bench_read(argv[1], &size) : bench_vocabulary(&size);

    if (v == NULL) {
        fprintf(stderr, "bench/grammar: there is no vocabulary\n");
        return 1;
    }

    bench_spec("json_object", bench_object, v, size);
    bench_spec("json_schema", bench_schema, v, size);
    bench_spec("tool", bench_tool, v, size);
    bench_many(v, size);
    bench_hostile();

    dsa_vocabulary_free(v);

    return 0;
}


static dsa_vocabulary_t *
bench_vocabulary(uint32_t *size)
{
    int                rc;
    char               word[12];
    uint32_t           i, k, n, end;
    dsa_vocabulary_t  *v;

    static const char  letters[] =
        "eeeeettttaaaooiinnsshhrrdlcumwfgypbvk  0123456789.,:;\"'(){}[]\n-_/";

    *size = BENCH_SIZE;
    v = dsa_vocabulary_create(BENCH_SIZE);

    if (v == NULL) {
        return NULL;
    }

    rc = 0;

    for (i = 0; i < BENCH_SIZE - 2; i++) {
        n = i < 256 ? 1 : 2 + bench_random() % 11;
        word[0] = i < 256 ? (char) i : ' ';

        for (k = i < 256 || i % 2 == 0; k < n; k++) {
            word[k] = letters[bench_random() % (sizeof(letters) - 1)];
        }

        rc |= dsa_vocabulary_add(v, i, dsa_str(word, n));
    }

    end = BENCH_SIZE - 2;

    rc |= dsa_vocabulary_add_control(v, end, dsa_strz("<end>"));
    rc |= dsa_vocabulary_add_control(v, end + 1, dsa_strz("｜DSML｜"));
    rc |= dsa_vocabulary_end(v, &end, 1);
    rc |= dsa_vocabulary_seal(v);

    return rc == DSA_OK ? v : NULL;
}


static dsa_vocabulary_t *
bench_read(const char *path, uint32_t *size)
{
    int                rc;
    int64_t            id;
    uint32_t           i, end;
    dsa_err_t          err;
    dsa_str_t          bytes;
    dsa_tokenizer_t   *t;
    dsa_vocabulary_t  *v;

    t = dsa_tokenizer_open(path, &err);

    if (t == NULL) {
        fprintf(stderr, "%s\n", err.text);
        return NULL;
    }

    *size = dsa_tokenizer_size(t);
    v = dsa_vocabulary_create(*size);
    rc = v == NULL;

    for (i = 0; rc == 0 && i < *size; i++) {
        bytes = dsa_token_bytes(t, i);

        if (bytes.len != 0) {
            rc = dsa_token_is_special(t, i)
                 ? dsa_vocabulary_add_control(v, i, bytes)
                 : dsa_vocabulary_add(v, i, bytes);
        }
    }

    id = dsa_tokenizer_special(t, dsa_strz("<｜end▁of▁sentence｜>"));
    end = (uint32_t) id;

    if (rc == 0 && (id < 0 || dsa_vocabulary_end(v, &end, 1) != DSA_OK
                    || dsa_vocabulary_seal(v) != DSA_OK))
    {
        rc = 1;
    }

    dsa_tokenizer_close(t);

    return rc == 0 ? v : NULL;
}


static void
bench_spec(const char *name, const char *spec, dsa_vocabulary_t *v,
    uint32_t size)
{
    double                t;
    uint32_t              i, first;
    bench_times_t         times;
    dsa_grammar_t        *g;
    dsa_grammar_error_t   error;

    times.us = malloc(BENCH_ANSWERS * BENCH_TOKENS * sizeof(double));
    times.n = 0;
    g = NULL;

    if (times.us == NULL) {
        return;
    }

    for (i = 0; i < BENCH_COMPILES; i++) {
        dsa_grammar_free(g);
        t = bench_now();

        if (dsa_grammar_compile(&g, dsa_strz(spec),
                                dsa_strz("｜DSML｜"), &error) != DSA_OK)
        {
            fprintf(stderr, "%s: %s: %s\n", name, error.path, error.message);
            exit(1);
        }

        times.us[times.n++] = bench_now() - t;
    }

    bench_print(name, "compile", &times);
    times.n = 0;

    first = 0;

    for (i = 0; i < BENCH_ANSWERS; i++) {
        bench_answer(g, v, size, &times);

        if (i == 0 || i == BENCH_ANSWERS / 2) {
            if (first++ == 0) {
                bench_print(name, "first", &times);
            }

            times.n = 0;
        }
    }

    bench_print(name, "warm", &times);

    dsa_grammar_free(g);
    free(times.us);
}


/* Specs that take long to compile, or to refuse. */

static void
bench_hostile(void)
{
    uint32_t   i;
    dsa_buf_t  spec;

    memset(&spec, 0, sizeof(dsa_buf_t));

    dsa_buf_addz(&spec, "{\"type\":\"object\",\"additionalProperties\":false,"
                 "\"properties\":{");

    for (i = 0; i < 1000; i++) {
        dsa_buf_printf(&spec, "%s\"property_%u\":{\"type\":\"string\","
                       "\"pattern\":\"^[a-z]{%u}[0-9]+(x|y)*$\"}",
                       i != 0 ? "," : "", i, i % 20 + 1);
    }

    dsa_buf_addz(&spec, "}}");
    bench_compile("patterns", &spec);

    for (i = 0; i < 120; i++) {
        dsa_buf_addz(&spec, "{\"anyOf\":[{\"type\":\"null\"},");
    }

    dsa_buf_addz(&spec, "{\"type\":\"string\"}");

    for (i = 0; i < 120; i++) {
        dsa_buf_addz(&spec, "]}");
    }

    bench_compile("deep anyOf", &spec);

    for (i = 0; spec.len < 1000000; i++) {
        dsa_buf_printf(&spec, "%s{\"type\":\"object\",\"properties\":{"
                       "\"a%u\":{\"type\":\"integer\"}}}",
                       i != 0 ? "," : "{\"anyOf\":[", i);
    }

    dsa_buf_addz(&spec, "]}");
    bench_compile("wide anyOf", &spec);

    dsa_buf_addz(&spec, "{\"enum\":[0");

    for (i = 1; i < 10000; i++) {
        dsa_buf_printf(&spec, ",\"value %u\"", i * 7919);
    }

    dsa_buf_addz(&spec, "]}");
    bench_compile("enum", &spec);

    dsa_buf_addz(&spec, "{\"type\":\"string\",\"pattern\":"
                 "\"^(?:(?:a{1,100}|b{1,99}){1,30}c){1,30}$\"}");
    bench_compile("repeats", &spec);

    dsa_buf_addz(&spec, "{\"default\":[0");

    while (spec.len < 900000) {
        dsa_buf_addz(&spec, ",0");
    }

    dsa_buf_addz(&spec, "],\"type\":\"object\",\"properties\":{");

    for (i = 0; i < 2000; i++) {
        dsa_buf_printf(&spec, "%s\"%u\":{\"type\":\"integer\",\"minimum\":%u,"
                       "\"maximum\":%u}", i != 0 ? "," : "", i, i,
                       1000 * i);
    }

    dsa_buf_addz(&spec, "}}");
    bench_compile("integers", &spec);

    for (i = 0; i < 60; i++) {
        dsa_buf_printf(&spec, "%s{\"properties\":{\"kind\":{\"const\":\"k%u\"},"
                       "\"p%u\":{\"type\":\"string\",\"format\":\"uri\"}},"
                       "\"required\":[\"kind\"]}",
                       i != 0 ? "," : "{\"type\":\"object\",\"allOf\":["
                       "{\"properties\":{\"id\":{\"type\":\"integer\"}}}],"
                       "\"oneOf\":[", i, i);
    }

    dsa_buf_addz(&spec, "]}");
    bench_compile("oneOf", &spec);

    dsa_buf_free(&spec);
}


/* Compiles a schema a few times, and empties it. */

static void
bench_compile(const char *name, dsa_buf_t *schema)
{
    int                   rc;
    double                t, us[5];
    size_t                bytes;
    uint32_t              i;
    dsa_buf_t             spec;
    bench_times_t         times;
    dsa_grammar_t        *g;
    dsa_grammar_error_t   error;

    memset(&spec, 0, sizeof(dsa_buf_t));
    dsa_buf_addz(&spec, "{\"type\":\"json_schema\",\"schema\":");
    dsa_buf_add(&spec, schema->data, schema->len);
    dsa_buf_addz(&spec, "}");

    times.us = us;
    bytes = 0;
    rc = DSA_ERROR;

    for (i = 0; i < 5; i++) {
        t = bench_now();
        rc = dsa_grammar_compile(&g, dsa_str(spec.data, spec.len),
                                 dsa_strz("｜DSML｜"), &error);
        us[i] = bench_now() - t;

        if (rc == DSA_OK) {
            bytes = dsa_grammar_bytes(g);
            dsa_grammar_free(g);
        }
    }

    times.n = 5;
    bench_print(name, rc == DSA_OK ? "compile" : "refuse", &times);
    printf("%-12s %-8s %6u  %zu KB, %u steps\n", "", "", 1, bytes / 1024,
           error.work);

    dsa_buf_free(&spec);
    schema->len = 0;
}


static void
bench_many(dsa_vocabulary_t *v, uint32_t size)
{
    size_t                before;
    uint32_t              i, k, words, *mask;
    const char           *p;
    bench_times_t         times;
    dsa_matcher_t        *m[BENCH_MANY];
    dsa_grammar_t        *g;
    dsa_grammar_error_t   error;

    words = (size + 31) / 32;
    mask = malloc(words * sizeof(uint32_t));
    times.us = malloc(BENCH_MANY * BENCH_MANY_TOKENS * sizeof(double));
    times.n = 0;
    before = dsa_vocabulary_used(v);

    if (mask == NULL || times.us == NULL
        || dsa_grammar_compile(&g, dsa_strz(bench_counts),
                               dsa_strz("｜DSML｜"), &error) != DSA_OK)
    {
        exit(1);
    }

    for (i = 0; i < BENCH_MANY; i++) {
        m[i] = dsa_matcher_create(g, v, dsa_str(NULL, 0));

        if (m[i] == NULL) {
            exit(1);
        }

        (void) dsa_matcher_accept(m[i], '[');

        for (k = 0; k < 43 * (i + 1); k++) {
            p = "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\",";
            (void) dsa_matcher_accept(m[i], (uint8_t) p[k % 43]);
        }

        (void) dsa_matcher_accept(m[i], '"');
    }

    printf("%-12s %-8s %6u  %.1f KB for each without masks\n", "counts",
           "512", BENCH_MANY, (double) (dsa_vocabulary_used(v) - before)
                              / BENCH_MANY / 1024);

    for (k = 0; k < BENCH_MANY_TOKENS; k++) {
        for (i = 0; i < BENCH_MANY; i++) {
            (void) bench_token(m[i], mask, words, &times);
        }
    }

    bench_print("counts", "512", &times);

    printf("%-12s %-8s %6u  %.1f KB for each with masks\n", "counts", "512",
           BENCH_MANY, (double) (dsa_vocabulary_used(v) - before)
                       / BENCH_MANY / 1024);

    for (i = 0; i < BENCH_MANY; i++) {
        dsa_matcher_free(m[i]);
    }

    dsa_grammar_free(g);
    free(times.us);
    free(mask);
}


static void
bench_answer(dsa_grammar_t *g, dsa_vocabulary_t *v, uint32_t size,
    bench_times_t *times)
{
    uint32_t        i, words, *mask;
    dsa_matcher_t  *m;

    words = (size + 31) / 32;
    mask = malloc(words * sizeof(uint32_t));
    m = dsa_matcher_create(g, v, dsa_str(NULL, 0));

    if (mask == NULL || m == NULL) {
        exit(1);
    }

    for (i = 0; i < BENCH_TOKENS; i++) {
        if (bench_token(m, mask, words, times)) {
            break;
        }
    }

    dsa_matcher_free(m);
    free(mask);
}


/* The next token; 1: the answer is complete. */

static uint32_t
bench_token(dsa_matcher_t *m, uint32_t *mask, uint32_t words,
    bench_times_t *times)
{
    double    t;
    uint32_t  id;

    memset(mask, 0xff, words * sizeof(uint32_t));

    t = bench_now();
    dsa_matcher_mask(m, mask, words);
    times->us[times->n] = bench_now() - t;

    id = bench_draw(mask, words);

    t = bench_now();

    if (dsa_matcher_accept(m, id) != DSA_OK) {
        fprintf(stderr, "a token of the mask is rejected\n");
        exit(1);
    }

    times->us[times->n++] += bench_now() - t;

    return (uint32_t) dsa_matcher_complete(m);
}


/* One of the ids of a mask. */

static uint32_t
bench_draw(const uint32_t *mask, uint32_t words)
{
    uint32_t  i, n, w;

    n = 0;

    for (i = 0; i < words; i++) {
        n += (uint32_t) __builtin_popcount(mask[i]);
    }

    n = bench_random() % n;

    for (i = 0; n >= (uint32_t) __builtin_popcount(mask[i]); i++) {
        n -= (uint32_t) __builtin_popcount(mask[i]);
    }

    for (w = mask[i]; n != 0; n--) {
        w &= w - 1;
    }

    return i * 32 + (uint32_t) __builtin_ctz(w);
}


static void
bench_print(const char *name, const char *what, bench_times_t *t)
{
    if (t->n == 0) {
        return;
    }

    qsort(t->us, t->n, sizeof(double), bench_compare);

    printf("%-12s %-8s %6u  p50 %9.1f us  p95 %9.1f us  max %9.1f us\n",
           name, what, t->n, t->us[t->n / 2], t->us[t->n * 95 / 100],
           t->us[t->n - 1]);
}


static int
bench_compare(const void *a, const void *b)
{
    const double  *x, *y;

    x = a;
    y = b;

    return *x < *y ? -1 : *x > *y;
}


static uint32_t
bench_random(void)
{
    static uint64_t  state = 0x2545f4914f6cdd1d;

    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;

    return (uint32_t) ((state * 0x2545f4914f6cdd1d) >> 32);
}


static double
bench_now(void)
{
    struct timespec  t;

    (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);

    return (double) t.tv_sec * 1e6 + (double) t.tv_nsec / 1e3;
}
