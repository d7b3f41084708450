
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Answers with a grammar, from SUBMIT to DONE: the null backend chooses at
 * random among the permitted tokens, which are single bytes here.
 */


#include <ctype.h>
#include <sched.h>
#include <stdatomic.h>

#include "engine/service/grammar_cache.h"
#include "engine/service/grammars.h"
#include "engine/service/prepare.h"
#include "t/unit/host.h"


#define SCHEMA                                                                \
    "{\"type\":\"json_schema\",\"schema\":{\"type\":\"object\","             \
    "\"properties\":{\"k\":{\"enum\":[\"one\",\"two\",\"three\"]}},"         \
    "\"required\":[\"k\"],\"additionalProperties\":false}}"

#define SEEDS   100
#define MANY    12
#define LONG    200
#define KEPT    (DSA_GRAMMAR_CACHE_MOST + 100)


static uint32_t  full_token = UINT32_MAX;   /* calls until there is no memory */
static uint32_t  full_mask = UINT32_MAX;
static uint32_t  slow_quick;                /* calls until a mask takes long;
                                               0: none does */

static const uint8_t  tenant[32] = "tenant";

static const char  *values[] = {
    "{\"k\":\"one\"}", "{\"k\":\"two\"}", "{\"k\":\"three\"}"
};


/* as in grammar/states.h, which cannot be included beside the scheduler */

#define DSA_STATE_FULL  0xfffffffeU

typedef struct dsa_states_s  dsa_states_t;

uint32_t __real_dsa_states_token(dsa_states_t *s, uint32_t state,
    uint32_t id);
uint32_t __wrap_dsa_states_token(dsa_states_t *s, uint32_t state,
    uint32_t id);
const uint32_t *__real_dsa_states_mask(dsa_states_t *s, uint32_t state,
    int *empty);
const uint32_t *__wrap_dsa_states_mask(dsa_states_t *s, uint32_t state,
    int *empty);
int __real_dsa_states_quick(dsa_states_t *s, uint32_t state);
int __wrap_dsa_states_quick(dsa_states_t *s, uint32_t state);


/* 1: the call has no memory. */

static int
full(uint32_t *left)
{
    if (*left == UINT32_MAX) {
        return 0;
    }

    return *left == 0 || --*left == 0;
}


uint32_t
__wrap_dsa_states_token(dsa_states_t *s, uint32_t state, uint32_t id)
{
    return full(&full_token) ? DSA_STATE_FULL
                             : __real_dsa_states_token(s, state, id);
}


const uint32_t *
__wrap_dsa_states_mask(dsa_states_t *s, uint32_t state, int *empty)
{
    return full(&full_mask) ? NULL : __real_dsa_states_mask(s, state, empty);
}


int
__wrap_dsa_states_quick(dsa_states_t *s, uint32_t state)
{
    if (slow_quick != 0 && --slow_quick == 0) {
        return DSA_AGAIN;
    }

    return __real_dsa_states_quick(s, state);
}


static void
submit(link_submit_t *s, uint64_t seed, const char *text)
{
    link_submit_init(s, 200);
    s->head.sampling.seed = seed;
    link_submit_text(s, text);
    link_submit_field(s, DSA_LINK_FIELD_GRAMMAR, SCHEMA, strlen(SCHEMA));
}


/* The number of the value, without white space; fails for another text. */

static uint32_t
value_of(const char *text)
{
    char      plain[64];
    size_t    n;
    uint32_t  i;

    for (n = 0; *text != '\0' && n < sizeof(plain) - 1; text++) {
        if (!isspace((unsigned char) *text)) {
            plain[n++] = *text;
        }
    }

    plain[n] = '\0';

    for (i = 0; i < 3; i++) {
        if (strcmp(plain, values[i]) == 0) {
            return i;
        }
    }

    fail_msg("\"%s\" does not follow the schema", plain);

    return 0;
}


static void
test_answers(void **state)
{
    host_t         h;
    answer_t       a;
    uint32_t       i, seen;
    link_submit_t  s;

    host_start(&h, "");

    for (i = 0, seen = 0; i < SEEDS; i++) {
        submit(&s, i, "hello");
        a = ask(&h, &s);

        assert_int_equal(a.finish, DSA_LINK_FINISH_STOP);
        assert_int_equal(a.done.completion_tokens, a.len + 1);
        seen |= 1U << value_of(a.text);
        free(a.text);
    }

    assert_int_equal(seen, 7);

    /* the end of max_tokens comes first */

    submit(&s, 1, "hello");
    s.head.max_tokens = 3;
    a = ask(&h, &s);
    assert_int_equal(a.finish, DSA_LINK_FINISH_LENGTH);
    assert_int_equal(a.len, 3);
    free(a.text);

    host_empty(&h);
    host_end(&h);
}


/* Wherever an answer is cut, another replica completes it to the same text. */

static void
test_resume(void **state)
{
    host_t         h;
    answer_t       a, b;
    uint32_t       i, n, seed, ids[64];
    link_submit_t  s;

    host_start(&h, "");

    for (seed = 0; seed < 5; seed++) {
        submit(&s, seed, "hello");
        a = ask(&h, &s);
        assert_true(a.tokens <= 64);

        for (i = 0; i < a.tokens; i++) {
            ids[i] = a.token[i].id;
        }

        for (n = 0; n <= a.tokens; n++) {
            submit(&s, seed, "hello");
            link_submit_resume(&s, ids, n);
            b = ask(&h, &s);

            assert_int_equal(b.finish, DSA_LINK_FINISH_STOP);
            assert_string_equal(b.text, a.text + n);
            free(b.text);
        }

        free(a.text);
    }

    ids[0] = SMALL_MODEL_BYTES + '{';
    ids[1] = SMALL_MODEL_BYTES + '}';
    submit(&s, 1, "hello");
    link_submit_resume(&s, ids, 2);
    refused(&h, &s, DSA_LINK_E_INVALID, "token 1 to resume from is 128, which "
            "the grammar does not permit there");

    host_end(&h);
}


/* Sequences that are preempted go on where they were. */

static void
test_preempted(void **state)
{
    int                  rc;
    void                *payload;
    char                 spec[400], want[LONG + 3];
    host_t               h;
    answer_t             a[MANY];
    uint32_t             i, left;
    link_submit_t        s;
    dsa_link_record_t    record;

    memset(want, 'x', sizeof(want));
    want[0] = '"';
    want[LONG + 1] = '"';
    want[LONG + 2] = '\0';
    (void) snprintf(spec, sizeof(spec), "{\"type\":\"json_schema\","
                    "\"schema\":{\"const\":%s}}", want);

    host_start(&h, "kv_memory 1m;");
    memset(a, 0, sizeof(a));

    for (i = 0; i < MANY; i++) {
        link_submit_init(&s, LONG + 20);
        link_submit_text(&s, "hello");
        link_submit_field(&s, DSA_LINK_FIELD_GRAMMAR, spec, strlen(spec));
        assert_int_equal(link_client_submit(&h.client[0], dsa_link_id(1, i),
                                            &s), 0);
    }

    for (left = MANY; left != 0; /* void */) {
        host_round(&h);

        for ( ;; ) {
            rc = link_client_next(&h.client[0], &record, &payload, 0);

            if (rc != 1) {
                break;
            }

            answer_event(a, MANY, &record, payload);
            left -= record.type == DSA_LINK_DONE;
            free(payload);
        }
    }

    for (i = 0; i < MANY; i++) {
        assert_int_equal(a[i].finish, DSA_LINK_FINISH_STOP);
        assert_non_null(strstr(a[i].text, want));
        free(a[i].text);
    }

    assert_true(h.io.sessions.stats.preemptions > 0);

    host_end(&h);
}


static void
test_refused(void **state)
{
    host_t         h;
    answer_t       a;
    uint32_t       i;
    link_submit_t  s;

    static const char  bad[] = "{\"type\":\"json_schema\",\"strict\":true,"
                               "\"schema\":{\"properties\":{\"a\":"
                               "{\"contains\":{}}}}}";
    static const char  loose[] = "{\"type\":\"json_schema\",\"strict\":false,"
                                 "\"schema\":{\"type\":\"object\","
                                 "\"properties\":{\"a\":"
                                 "{\"contains\":{}}}}}";

    host_start(&h, "");

    link_submit_init(&s, 5);
    link_submit_text(&s, "hello");
    link_submit_field(&s, DSA_LINK_FIELD_GRAMMAR, "{", 1);
    refused(&h, &s, DSA_LINK_E_GRAMMAR, "premature EOF");

    /* a count checks the structure as well */

    for (i = 0; i < 4; i++) {
        link_submit_init(&s, 5);
        link_submit_text(&s, "hello");
        link_submit_field(&s, DSA_LINK_FIELD_GRAMMAR, bad, strlen(bad));
        a = ask_as(&h, i % 2 ? DSA_LINK_COUNT : DSA_LINK_SUBMIT, &s);

        assert_int_equal(a.error, DSA_LINK_E_GRAMMAR);
        assert_int_equal(a.accepted, 0);
        assert_string_equal(a.path, "properties.a");
        assert_non_null(strstr(a.reason, "\"contains\""));
        assert_null(strstr(a.reason, "properties.a"));
        free(a.text);
    }

    submit(&s, 1, "hello");
    a = ask_as(&h, DSA_LINK_COUNT, &s);
    assert_int_equal(a.counted, 1);
    free(a.text);

    /* the same schema if it is optional: any object */

    for (i = 0; i < 20; i++) {
        link_submit_init(&s, 300);
        s.head.sampling.seed = i;
        link_submit_text(&s, "hello");
        link_submit_field(&s, DSA_LINK_FIELD_GRAMMAR, loose, strlen(loose));
        a = ask(&h, &s);

        assert_int_equal(a.error, 0);
        assert_int_equal(a.text[0], '{');
        free(a.text);
    }

    /* a tokenizer without the token behind which the grammar begins */

    submit(&s, 1, "hello");
    s.head.flags = DSA_LINK_THINKING;
    refused(&h, &s, DSA_LINK_E_INVALID, "no control token \"</think>\"");

    host_end(&h);
}


/* The null backend repeats the prompt, except for what biases change. */

static void
test_bias(void **state)
{
    host_t           h;
    answer_t         a;
    link_submit_t    s;
    dsa_bias_t  bias[2];

    host_start(&h, "");

    bias[0].id = SMALL_MODEL_BYTES + 'b';
    bias[0].bias = -100;
    bias[1].id = SMALL_MODEL_BYTES + 'x';
    bias[1].bias = 99;

    link_submit_init(&s, 6);
    link_submit_text(&s, "abc");
    link_submit_field(&s, DSA_LINK_FIELD_BIAS, bias, sizeof(bias));
    a = ask(&h, &s);
    assert_string_equal(a.text, "accacc");
    free(a.text);

    bias[1].bias = 100;

    link_submit_init(&s, 6);
    link_submit_text(&s, "abc");
    link_submit_field(&s, DSA_LINK_FIELD_BIAS, bias, sizeof(bias));
    a = ask(&h, &s);
    assert_string_equal(a.text, "xxxxxx");
    free(a.text);

    host_end(&h);
}


/*
 * The masks behind drafts are those after these tokens, and the drafts are not
 * a part of the answer.
 */

static void
test_drafts(void **state)
{
    host_t                h;
    uint32_t              i, words, n, ids[4], *mask, *want, *first;
    dsa_constraint_t     *c, *d;
    dsa_grammar_error_t   error;

    host_start(&h, "");

    words = dsa_mask_words(dsa_step_config(h.step)->vocab_size);
    mask = malloc(words * 5 * sizeof(uint32_t));
    want = malloc(words * sizeof(uint32_t));
    first = malloc(words * sizeof(uint32_t));
    assert_true(mask != NULL && want != NULL && first != NULL);

    assert_int_equal(dsa_constraint_create(&c, h.service.grammars, tenant,
                         dsa_str(SCHEMA, strlen(SCHEMA)), dsa_str("", 0), 1,
                         &error), DSA_OK);
    assert_int_equal(dsa_constraint_create(&d, h.service.grammars, tenant,
                         dsa_str(SCHEMA, strlen(SCHEMA)), dsa_str("", 0), 1,
                         &error), DSA_OK);

    for (n = 0; n < 4; n++) {
        ids[n] = SMALL_MODEL_BYTES + (uint8_t) "{\"k\""[n];
    }

    memset(mask, 0xff, words * 5 * sizeof(uint32_t));
    dsa_constraint_mask(c, ids, 4, 0, mask, words);

    for (i = 0; i <= 4; i++) {
        memset(want, 0xff, words * sizeof(uint32_t));
        dsa_constraint_mask(d, NULL, 0, 0, want, words);
        assert_memory_equal(mask + i * words, want,
                            words * sizeof(uint32_t));

        if (i < 4) {
            assert_true(dsa_mask_has(want, ids[i]));
            assert_int_equal(dsa_constraint_accept(d, ids[i]), DSA_OK);
        }

        if (i == 0) {
            memcpy(first, want, words * sizeof(uint32_t));
        }
    }

    /* that of the last token alone */

    memset(want, 0xff, words * sizeof(uint32_t));
    dsa_constraint_mask(c, ids, 4, 4, want, words);
    assert_memory_equal(mask + 4 * words, want, words * sizeof(uint32_t));

    /* behind a draft that is not permitted, all bits stay */

    ids[1] = SMALL_MODEL_BYTES + '7';
    memset(mask, 0xff, words * 5 * sizeof(uint32_t));
    dsa_constraint_mask(c, ids, 4, 0, mask, words);

    assert_memory_equal(mask, first, words * sizeof(uint32_t));
    assert_false(dsa_mask_has(mask + words, ids[1]));

    for (i = 2 * words; i < 5 * words; i++) {
        assert_int_equal(mask[i], UINT32_MAX);
    }

    dsa_constraint_free(c);
    dsa_constraint_free(d);
    free(mask);
    free(want);
    free(first);
    host_end(&h);
}


/*
 * Each of the ids that end an answer of the model is permitted when the answer
 * is complete, and none before.
 */

static void
test_ends(void **state)
{
    char                  spec[100];
    host_t                h;
    uint32_t              i, j, end, words, mask[64];
    dsa_grammars_t       *g;
    dsa_constraint_t     *c;
    dsa_model_config_t    config;
    dsa_grammar_error_t   error;

    static const char      text[] = "\"ab\"";
    static const uint32_t  ends[] = {
        SMALL_MODEL_USER, SMALL_MODEL_BOS, SMALL_MODEL_EOS
    };

    host_start(&h, "");

    config = *dsa_step_config(h.step);
    config.ends.n = 3;
    memcpy(config.ends.id, ends, sizeof(ends));

    words = dsa_mask_words(config.vocab_size);
    assert_true(words <= 64);

    (void) snprintf(spec, sizeof(spec), "{\"type\":\"json_schema\","
                    "\"schema\":{\"const\":%s}}", text);

    g = dsa_grammars_create(h.service.tokenizer, &config);
    assert_non_null(g);

    for (end = 0; end < 3; end++) {
        assert_int_equal(dsa_constraint_create(&c, g, tenant,
                             dsa_str(spec, strlen(spec)), dsa_str("", 0), 1,
                             &error), DSA_OK);

        for (i = 0; i <= strlen(text); i++) {
            memset(mask, 0xff, sizeof(mask));
            dsa_constraint_mask(c, NULL, 0, 0, mask, words);

            for (j = 0; j < 3; j++) {
                assert_int_equal(dsa_mask_has(mask, ends[j]),
                                 i == strlen(text));
            }

            if (i < strlen(text)) {
                assert_int_equal(dsa_constraint_accept(c, ends[end]),
                                 DSA_ERROR);
                assert_int_equal(dsa_constraint_accept(c, SMALL_MODEL_BYTES
                                     + (uint8_t) text[i]), DSA_OK);
            }
        }

        assert_int_equal(dsa_constraint_accept(c, ends[end]), DSA_OK);
        dsa_constraint_free(c);
    }

    dsa_grammars_destroy(g);
    host_end(&h);
}


/* More grammars than are kept, some of which are in use when they leave. */

static void
test_kept(void **state)
{
    char                  spec[100];
    host_t                h;
    uint32_t              i, round;
    dsa_constraint_t     *c[KEPT];
    dsa_grammar_error_t   error;

    host_start(&h, "");

    for (round = 0; round < 2; round++) {
        for (i = 0; i < KEPT; i++) {
            (void) snprintf(spec, sizeof(spec), "{\"type\":\"json_schema\","
                            "\"schema\":{\"const\":\"%u\"}}", i);

            assert_int_equal(dsa_constraint_create(&c[i], h.service.grammars,
                                 tenant, dsa_str(spec, strlen(spec)),
                                 dsa_str("", 0), 1, &error), DSA_OK);
        }

        for (i = 0; i < KEPT; i++) {
            assert_int_equal(dsa_constraint_accept(c[i],
                                 SMALL_MODEL_BYTES + '"'), DSA_OK);
            dsa_constraint_free(c[i]);
        }
    }

    host_end(&h);
}


/*
 * When memory for the states of an answer ends, the answer ends with an error,
 * and what was sent is the beginning of the answer.
 */

static void
test_starved(void **state)
{
    char           *whole;
    host_t          h;
    answer_t        a;
    uint32_t        i, kind, seed, n, *left;
    link_submit_t   s;

    host_start(&h, "");

    for (seed = 0; seed < 5; seed++) {
        submit(&s, seed, "hello");
        a = ask(&h, &s);
        assert_int_equal(a.finish, DSA_LINK_FINISH_STOP);
        whole = a.text;
        n = (uint32_t) a.len;

        for (kind = 0; kind < 2; kind++) {
            left = kind == 0 ? &full_token : &full_mask;

            for (i = 1; i <= n; i++) {
                submit(&s, seed, "hello");
                *left = i;
                a = ask(&h, &s);
                *left = UINT32_MAX;

                assert_int_equal(a.error, DSA_LINK_E_OVERLOADED);
                assert_string_equal(a.reason, DSA_GRAMMARS_NO_MEMORY);
                assert_true(a.len < n);
                assert_memory_equal(a.text, whole, a.len);
                free(a.text);
            }
        }

        free(whole);
    }

    /* the first mask of a request */

    submit(&s, 1, "hello");
    full_mask = 0;
    refused(&h, &s, DSA_LINK_E_OVERLOADED, DSA_GRAMMARS_NO_MEMORY);
    full_mask = UINT32_MAX;

    host_empty(&h);
    host_end(&h);
}


/* A thread that may do no slow work leaves the compilation to another one. */

static void
test_slow(void **state)
{
    host_t                 h;
    uint32_t               i;
    uint8_t               *payload;
    dsa_request_t         *r;
    link_submit_t          s;
    dsa_tokenizer_work_t  *work;

    host_start(&h, "");
    work = dsa_tokenizer_work_create(h.service.tokenizer);
    assert_non_null(work);

    for (i = 0; i < 3; i++) {
        submit(&s, 1, "hello");
        s.head.n_fields = 2;
        payload = malloc(sizeof(s.head) + s.len);
        assert_non_null(payload);
        memcpy(payload, &s.head, sizeof(s.head));
        memcpy(payload + sizeof(s.head), s.fields, s.len);

        r = dsa_request_create(DSA_LINK_SUBMIT, dsa_link_id(1, i), payload,
                               sizeof(s.head) + s.len);
        assert_non_null(r);

        if (i == 0) {
            assert_int_equal(dsa_prepare(&h.service, work, r, 0), DSA_AGAIN);
            assert_int_equal(r->cost, r->len);
            assert_int_equal(dsa_prepare(&h.service, work, r, 1), DSA_OK);
            assert_true(r->cost > r->len);

        } else {
            assert_int_equal(dsa_prepare(&h.service, work, r, 0), DSA_OK);
            assert_int_equal(r->cost, r->len);
        }

        assert_int_equal(r->last, 0);
        assert_int_equal(r->sched.n_tokens, 5);

        dsa_request_free(r);
        free(payload);
        free(s.fields);
    }

    dsa_tokenizer_work_destroy(work);
    host_end(&h);
}


static void
on_wake(void *data)
{
    atomic_int  *woken = data;

    (void) atomic_fetch_add(woken, 1);
}


/*
 * A mask behind drafts that takes long is not made: drafts end before it.  The
 * mask of the next token is made by the thread, and a step that is in flight,
 * which is one with drafts, does not begin that.
 */

static void
test_ready(void **state)
{
    host_t                h;
    uint32_t              i, words, ids[4], mask[64];
    dsa_err_t             err;
    atomic_int            woken;
    dsa_constraint_t     *c;
    dsa_grammar_error_t   error;

    host_start(&h, "");
    atomic_init(&woken, 0);

    words = dsa_mask_words(dsa_step_config(h.step)->vocab_size);
    assert_true(words <= 64);

    assert_int_equal(dsa_grammars_start(h.service.grammars, on_wake, &woken,
                                        &err), DSA_OK);
    assert_int_equal(dsa_constraint_create(&c, h.service.grammars, tenant,
                         dsa_str(SCHEMA, strlen(SCHEMA)), dsa_str("", 0), 1,
                         &error), DSA_OK);

    for (i = 0; i < 4; i++) {
        ids[i] = SMALL_MODEL_BYTES + (uint8_t) "{\"k\""[i];
    }

    /* all masks are in the cache */

    for (i = 0; i <= 4; i++) {
        dsa_constraint_mask(c, ids, i, i, mask, words);
    }

    for (i = 0; i <= 4; i++) {
        slow_quick = i + 1;
        assert_int_equal(dsa_constraint_ready(c, ids, 4), i);
        slow_quick = 0;
        assert_int_equal(dsa_constraint_ready(c, ids, 4), 5);
        assert_int_equal(dsa_constraint_ready(c, NULL, 0), 1);
    }

    assert_int_equal(dsa_constraint_stats(c).by_thread, 0);

    slow_quick = 1;
    assert_int_equal(dsa_constraint_ready(c, NULL, 0), 0);
    slow_quick = 0;

    while (atomic_load(&woken) == 0) {
        (void) sched_yield();
    }

    assert_int_equal(dsa_constraint_stats(c).by_thread, 1);
    assert_int_equal(dsa_constraint_ready(c, NULL, 0), 1);
    assert_int_equal(dsa_constraint_ready(c, ids, 4), 5);

    /* no mask is made behind a draft that is not permitted */

    ids[1] = SMALL_MODEL_BYTES + '7';
    assert_int_equal(dsa_constraint_ready(c, ids, 4), 5);

    dsa_grammars_stop(h.service.grammars);
    dsa_constraint_free(c);
    host_end(&h);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_preempted),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_bias),
        cmocka_unit_test(test_drafts),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_ready),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_starved),
        cmocka_unit_test(test_slow)
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
