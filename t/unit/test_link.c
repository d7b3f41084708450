
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The records of the link, and workers that violate it.
 */


#include "t/unit/host.h"


/* Every field of a submit, wrong in turn; the session goes on after each. */

static void
test_hostile(void **state)
{
    char               big[2000];
    host_t             h;
    answer_t           a;
    uint32_t           i, bad, ids[6];
    link_submit_t      s;
    dsa_bias_t    bias[2];
    dsa_link_field_t   field;

    static const char  large[1025 * 8];

    host_start(&h, "");
    memset(bias, 0, sizeof(bias));
    bias[1].id = 1;
    memset(big, 'x', sizeof(big));
    big[1999] = '\0';
    memset(ids, 0, sizeof(ids));

#define HOSTILE_AS(code, change, word)                                        \
    link_submit_init(&s, 5);                                                  \
    link_submit_text(&s, "hello");                                            \
    change;                                                                   \
    refused(&h, &s, code, word)

#define HOSTILE(change, word)                                                 \
    HOSTILE_AS(DSA_LINK_E_INVALID, change, word)

    HOSTILE(s.head.n_fields = 0; s.len = 0, "empty");
    HOSTILE(s.head.n_fields = 2, "last field");
    HOSTILE(s.head.n_fields = UINT32_MAX, "last field");
    HOSTILE(s.head.n_fields = 0, "empty");
    HOSTILE(s.head.flags = 1, "flags 0x1");
    HOSTILE(s.head.flags = 128, "flags 0x80");
    HOSTILE(s.head.flags = DSA_LINK_LOW|DSA_LINK_HIGH,
            "flags 0x10 and 0x20 are both set");
    HOSTILE(s.head.reserved = 16, "the reserved word is 0x10; expected 0");
    HOSTILE(s.head.sampling.version = 0, "sampling has version 0; expected 1");
    HOSTILE(s.head.sampling.version = 2, "sampling has version 2; expected 1");
    HOSTILE(s.head.sampling.reserved[0] = 1, "reserved word 0 of sampling");
    HOSTILE(s.head.sampling.reserved[2] = 255,
            "reserved word 2 of sampling is 0xff; expected 0");
    HOSTILE(s.head.sampling.logprobs = 2, "logprobs is 2; expected 0 or 1");
    HOSTILE(s.head.sampling.top_logprobs = 21, "top_logprobs is 21");
    HOSTILE(s.head.weight = 0, "weight");
    HOSTILE(s.head.weight = 10001, "weight");
    HOSTILE(s.head.sampling.temperature = -1, "temperature");
    HOSTILE(s.head.sampling.temperature = NAN, "temperature");
    HOSTILE(s.head.sampling.temperature = INFINITY, "temperature");
    HOSTILE(s.head.sampling.top_p = 0, "top_p");
    HOSTILE(s.head.sampling.top_p = 1.01f, "top_p");
    HOSTILE(s.head.sampling.top_p = NAN, "top_p");
    HOSTILE(s.head.sampling.frequency_penalty = 2.1f, "frequency_penalty");
    HOSTILE(s.head.sampling.frequency_penalty = -NAN, "frequency_penalty");
    HOSTILE(s.head.sampling.presence_penalty = -2.1f, "presence_penalty");
    HOSTILE(s.head.sampling.presence_penalty = INFINITY, "presence_penalty");
    HOSTILE(link_submit_control(&s, "<nobody>"), "<nobody>");
    HOSTILE(link_submit_control(&s, ""), "control token");
    HOSTILE(link_submit_control(&s, big), "control token");
    HOSTILE(link_submit_stop(&s, ""), "stop string 0");
    HOSTILE(link_submit_stop(&s, big), "stop string 0");
    HOSTILE(link_submit_stop(&s, "ok"); link_submit_stop(&s, "\xff"),
            "stop string 1");
    HOSTILE(link_submit_stop(&s, "\xed\xa0\x80"), "stop string 0");
    HOSTILE(for (i = 0; i < 17; i++) link_submit_stop(&s, "x"),
            "more than 16 stop strings");
    HOSTILE(for (i = 0; i < 33; i++) link_submit_query(&s, "x"),
            "more than 32 queries");
    HOSTILE(link_submit_field(&s, 0, "x", 1), "field 1 has type 0");
    HOSTILE(link_submit_field(&s, 11, "x", 1), "field 1 has type 11");
    HOSTILE(link_submit_field(&s, DSA_LINK_FIELD_REQUEST, "", 0),
            "the id of the request has 0 bytes; expected 1 to 64");
    HOSTILE(link_submit_field(&s, DSA_LINK_FIELD_REQUEST, big, 65),
            "the id of the request has 65 bytes");
    HOSTILE(link_submit_field(&s, DSA_LINK_FIELD_REQUEST, "a\nb", 3),
            "byte 1 of the id of the request is 0xa");
    HOSTILE(link_submit_field(&s, DSA_LINK_FIELD_REQUEST, "a\"", 2),
            "byte 1 of the id of the request is 0x22");
    HOSTILE(link_submit_field(&s, DSA_LINK_FIELD_REQUEST, "\xc3\xa9", 2),
            "byte 0 of the id of the request is 0xc3");
    HOSTILE(link_submit_field(&s, DSA_LINK_FIELD_REQUEST, "a", 1);
            link_submit_field(&s, DSA_LINK_FIELD_REQUEST, "a", 1),
            "more than one id of the request");
    HOSTILE(link_submit_field(&s, DSA_LINK_FIELD_TRACE, "", 0),
            "traceparent has 0 bytes; expected 1 to 128");
    HOSTILE(link_submit_field(&s, DSA_LINK_FIELD_CLIENT, big, 129),
            "the client's id has 129 bytes; expected 1 to 128");
    HOSTILE(link_submit_field(&s, DSA_LINK_FIELD_TRACE, "a b", 3),
            "byte 1 of traceparent is 0x20");
    HOSTILE(link_submit_field(&s, DSA_LINK_FIELD_CLIENT, "ab\"", 3),
            "byte 2 of the client's id is 0x22");
    HOSTILE(link_submit_field(&s, DSA_LINK_FIELD_CLIENT, "\\", 1),
            "byte 0 of the client's id is 0x5c");
    HOSTILE(link_submit_field(&s, DSA_LINK_FIELD_CLIENT, "\x7f", 1),
            "byte 0 of the client's id is 0x7f");
    HOSTILE(link_submit_field(&s, DSA_LINK_FIELD_CLIENT, "a", 1);
            link_submit_field(&s, DSA_LINK_FIELD_CLIENT, "b", 1),
            "more than one field of the client's id");
    HOSTILE(link_submit_field(&s, DSA_LINK_FIELD_GRAMMAR, "", 0),
            "the grammar has 0 bytes");
    HOSTILE(link_submit_field(&s, DSA_LINK_FIELD_GRAMMAR, "{}", 2);
            link_submit_field(&s, DSA_LINK_FIELD_GRAMMAR, "{}", 2),
            "more than one grammar");
    HOSTILE(s.head.flags = DSA_LINK_IGNORE_EOS;
            link_submit_field(&s, DSA_LINK_FIELD_GRAMMAR, "{}", 2),
            "flag 0x2");
    HOSTILE(link_submit_field(&s, DSA_LINK_FIELD_BIAS, bias, 0),
            "the biases have 0 bytes");
    HOSTILE(link_submit_field(&s, DSA_LINK_FIELD_BIAS, bias, 12),
            "the biases have 12 bytes");
    HOSTILE(link_submit_field(&s, DSA_LINK_FIELD_BIAS, large, 1025 * 8),
            "the biases have 8200 bytes; expected 1 to 1024 entries");
    HOSTILE(link_submit_field(&s, DSA_LINK_FIELD_BIAS, bias, 8);
            link_submit_field(&s, DSA_LINK_FIELD_BIAS, bias, 8),
            "more than one field of biases");
    HOSTILE(bias[1].bias = 100.5f;
            link_submit_field(&s, DSA_LINK_FIELD_BIAS, bias, 16),
            "the bias of id 1 is 100.5; expected -100 to 100");
    HOSTILE(bias[1].bias = NAN;
            link_submit_field(&s, DSA_LINK_FIELD_BIAS, bias, 16),
            "the bias of id 1 is nan");
    HOSTILE_AS(DSA_LINK_E_BIAS,
            bias[1].bias = 1; bias[1].id = SMALL_MODEL_BYTES + 256;
            link_submit_field(&s, DSA_LINK_FIELD_BIAS, bias, 16),
            "token id 259 is not in");
    HOSTILE_AS(DSA_LINK_E_BIAS, bias[1].id = 0;
            link_submit_field(&s, DSA_LINK_FIELD_BIAS, bias, 16),
            "token id 0 occurs twice");
    HOSTILE(link_submit_field(&s, DSA_LINK_FIELD_RESUME, ids, 6),
            "have 6 bytes");
    HOSTILE(link_submit_resume(&s, ids, 1); link_submit_resume(&s, ids, 0),
            "more than one field");
    HOSTILE(link_submit_resume(&s, ids, 6), "6 tokens to resume from");
    HOSTILE(ids[1] = SMALL_MODEL_BYTES + 256; link_submit_resume(&s, ids, 2),
            "token 1 to resume from is 259");
    HOSTILE(ids[1] = UINT32_MAX; link_submit_resume(&s, ids, 2),
            "token 1 to resume from");
    HOSTILE(link_submit_text(&s, "x"); s.head.n_fields--, "follow");
    HOSTILE(s.len -= 8, "a field has 5 bytes");
    HOSTILE(s.len -= 9, "last field");
    HOSTILE(s.len = 1, "last field");
    HOSTILE(s.len = 0, "last field");

    for (i = 0; i < 4; i++) {
        bad = i == 0 ? 9 : i == 1 ? 0xffffffff : i == 2 ? 0xfffffff8 : 100;
        HOSTILE(memcpy(&field, s.fields, sizeof(field)); field.length = bad;
                memcpy(s.fields, &field, sizeof(field)), "a field has");
    }

#undef HOSTILE

    /* an empty text is an empty prompt */

    link_submit_init(&s, 5);
    link_submit_text(&s, "");
    refused(&h, &s, DSA_LINK_E_INVALID, "empty");

    link_submit_init(&s, 5);
    link_submit_query(&s, "<bos>");
    refused(&h, &s, DSA_LINK_E_INVALID, "empty");

    /* a count has no answer, so it cannot have fields about one */

    link_submit_init(&s, 5);
    link_submit_text(&s, "hello");
    link_submit_stop(&s, "x");
    refused_as(&h, DSA_LINK_COUNT, &s, DSA_LINK_E_INVALID, "type 3");

    link_submit_init(&s, 5);
    link_submit_text(&s, "hello");
    link_submit_resume(&s, ids, 1);
    refused_as(&h, DSA_LINK_COUNT, &s, DSA_LINK_E_INVALID, "type 4");

    link_submit_init(&s, 5);
    link_submit_text(&s, "hello");
    link_submit_field(&s, DSA_LINK_FIELD_GRAMMAR, "{}", 2);
    refused_as(&h, DSA_LINK_COUNT, &s, DSA_LINK_E_GRAMMAR, "type of the spec");

    for (i = 0; i < 2; i++) {
        link_submit_init(&s, 5);
        link_submit_text(&s, "hello");
        s.head.weight = i == 0 ? 0 : 10001;
        refused_as(&h, DSA_LINK_COUNT, &s, DSA_LINK_E_INVALID, "weight is");
    }

    link_submit_init(&s, 5);
    link_submit_text(&s, "hello");
    link_submit_field(&s, DSA_LINK_FIELD_BIAS, bias, 8);
    refused_as(&h, DSA_LINK_COUNT, &s, DSA_LINK_E_INVALID, "type 7");

    link_submit_init(&s, 5);
    link_submit_text(&s, "hello");
    link_submit_field(&s, DSA_LINK_FIELD_REQUEST, "a", 1);
    refused_as(&h, DSA_LINK_COUNT, &s, DSA_LINK_E_INVALID, "type 8");

    /* shorter than its head */

    {
        uint8_t  *p;

        memset(&a, 0, sizeof(a));
        p = dsa_link_reserve(&h.client[0].link.submit, DSA_LINK_SUBMIT,
                             dsa_link_id(9999, 0), 3);
        assert_non_null(p);
        (void) dsa_link_commit(&h.client[0].link.submit);
        host_round(&h);
        take_events(&h, 0, &a, 1);
        assert_int_equal(a.error, DSA_LINK_E_INVALID);
    }

    link_submit_init(&s, 5);
    link_submit_text(&s, "hello");
    a = ask(&h, &s);
    assert_string_equal(a.text, "hello");
    free(a.text);

    host_stop(&h);
}


static void
test_count(void **state)
{
    char           *text;
    host_t          h;
    answer_t        a;
    uint32_t        i;
    link_submit_t   s;

    static const struct {
        uint32_t  len;
        uint32_t  count;
        uint32_t  more;
    } sent[] = {
        { 5, 5, 0 }, { 99, 99, 0 }, { 1000, 1000, 0 },
        { 131072, 131072, 0 }, { 131073, 131072, 1 }, { 400000, 131072, 1 }
    };

    host_start(&h, "context_length 100; max_running 1; max_waiting 1;");

    for (i = 0; i < sizeof(sent) / sizeof(sent[0]); i++) {
        text = calloc(sent[i].len + 1, 1);
        assert_non_null(text);
        memset(text, 'a', sent[i].len);

        link_submit_init(&s, 0);
        link_submit_text(&s, text);
        a = ask_as(&h, DSA_LINK_COUNT, &s);
        assert_int_equal(a.counted, 1);
        assert_int_equal(a.prompt_tokens, sent[i].count);
        assert_int_equal(a.more, sent[i].more);
        free(a.text);
        free(text);
    }

    /* a control token is one, and a query none */

    link_submit_init(&s, 0);
    link_submit_control(&s, "<bos>");
    link_submit_text(&s, "<bos>");
    link_submit_query(&s, "<bos>");
    a = ask_as(&h, DSA_LINK_COUNT, &s);
    assert_int_equal(a.prompt_tokens, 6);
    free(a.text);

    link_submit_init(&s, 0);
    link_submit_control(&s, "<nobody>");
    refused_as(&h, DSA_LINK_COUNT, &s, DSA_LINK_E_INVALID, "<nobody>");

    host_stop(&h);
}


/* Which names the tokenizer has, and how much of a prompt the cache has. */

static void
test_accepted(void **state)
{
    char           text[641];
    host_t         h;
    answer_t       a;
    uint32_t       i;
    link_submit_t  s;

    host_start(&h, "");
    memset(text, 'x', sizeof(text));
    text[640] = '\0';

    for (i = 0; i < 3; i++) {
        link_submit_init(&s, 1);
        s.head.flags = i == 2 ? DSA_LINK_PRIVATE : 0;
        link_submit_query(&s, "</think>");
        link_submit_query(&s, "<bos>");
        link_submit_text(&s, text);
        link_submit_query(&s, "<eos>");
        link_submit_query(&s, "x");
        a = ask(&h, &s);

        assert_int_equal(a.prompt_tokens, 640);
        assert_int_equal(a.cached_tokens, i == 1 ? 576 : 0);
        assert_int_equal(a.vocabulary, 6);
        free(a.text);
    }

    host_stop(&h);
}


static void
check_tokens(const answer_t *a, const dsa_link_token_t *want, uint32_t n)
{
    uint32_t  i;

    assert_int_equal(a->tokens, n);

    for (i = 0; i < n; i++) {
        assert_int_equal(a->token[i].id, want[i].id);
        assert_int_equal(a->token[i].end, want[i].end);
        assert_int_equal(a->token[i].control, want[i].control);
    }
}


#define BYTE(c)     (SMALL_MODEL_BYTES + (unsigned char) (c))


/* Each token comes with its id, the end of its text, and what it is. */

static void
test_tokens(void **state)
{
    host_t         h;
    answer_t       a;
    dsa_answer_t   answer;
    link_submit_t  s;

    static const dsa_link_token_t  euro[] = {
        { BYTE('a'), 1, 0 }, { BYTE('\xe2'), 1, 0 }, { BYTE('\x82'), 1, 0 },
        { BYTE('\xac'), 4, 0 }, { BYTE('\xe2'), 7, 0 }
    };

    static const dsa_link_token_t  eos[] = {
        { SMALL_MODEL_EOS, 5, 5 }, { SMALL_MODEL_EOS, 10, 5 }
    };

    static const dsa_link_token_t  stop[] = {
        { BYTE('o'), 1, 0 }, { BYTE('n'), 2, 0 }, { BYTE('e'), 2, 0 },
        { BYTE(' '), 2, 0 }
    };

    host_start(&h, "");

    /* a character counts to the token that completes it */

    link_submit_init(&s, 5);
    link_submit_text(&s, "a\xe2\x82\xac\xe2");
    a = ask(&h, &s);
    assert_string_equal(a.text, "a\xe2\x82\xac\xef\xbf\xbd");
    check_tokens(&a, euro, 5);
    free(a.text);

    link_submit_init(&s, 2);
    s.head.flags = DSA_LINK_IGNORE_EOS;
    link_submit_control(&s, "<bos>");
    a = ask(&h, &s);
    check_tokens(&a, eos, 2);
    free(a.text);

    /* text that spells a control token is not one */

    link_submit_init(&s, 5);
    link_submit_text(&s, "<eos>");
    a = ask(&h, &s);
    assert_string_equal(a.text, "<eos>");
    assert_int_equal(a.token[4].end, 5);
    assert_int_equal(a.token[4].control, 0);
    free(a.text);

    /* tokens of a stop string have no text */

    link_submit_init(&s, 10);
    link_submit_text(&s, "one two");
    link_submit_stop(&s, "e ");
    a = ask(&h, &s);
    assert_string_equal(a.text, "on");
    check_tokens(&a, stop, 4);
    free(a.text);

    /* ... or a part of it, which is not the name of a control token */

    link_submit_init(&s, 10);
    s.head.flags = DSA_LINK_IGNORE_EOS;
    link_submit_control(&s, "<bos>");
    link_submit_stop(&s, "os><eos");
    link_submit_stop(&s, "os>><");
    a = ask(&h, &s);
    assert_string_equal(a.text, "<e");
    assert_int_equal(a.tokens, 2);
    assert_int_equal(a.token[0].end, 2);
    assert_int_equal(a.token[0].control, 0);
    free(a.text);

    link_submit_init(&s, 10);
    s.head.flags = DSA_LINK_IGNORE_EOS;
    link_submit_control(&s, "<bos>");
    link_submit_stop(&s, "><eo");
    a = ask(&h, &s);
    assert_string_equal(a.text, "<eos");
    free(a.text);

    host_stop(&h);

    /* bytes before a control token are not a part of its name */

    assert_int_equal(dsa_answer_init(&answer, NULL, 0), DSA_OK);
    assert_int_equal(dsa_answer_add(&answer, 7, dsa_strz("\xe2\x82"), 0),
                     DSA_OK);
    assert_int_equal(answer.n_ready, 1);
    assert_int_equal(answer.ready, 0);
    assert_int_equal(dsa_answer_add(&answer, 8, dsa_strz("\xac<x>"), 1),
                     DSA_OK);
    assert_int_equal(answer.ready, 9);
    assert_memory_equal(answer.text, "\xef\xbf\xbd\xef\xbf\xbd<x>", 9);
    dsa_answer_free(&answer);
}


/* A token is not sent before its text can no longer become a stop string. */

static void
test_delayed_tokens(void **state)
{
    uint32_t       i;
    dsa_str_t      stop;
    dsa_answer_t   a;

    static const uint32_t  ready[] = { 1, 2, 2, 2, 2, 6 };

    stop = dsa_strz("cdefx");
    assert_int_equal(dsa_answer_init(&a, &stop, 1), DSA_OK);
    a.row = 1;

    for (i = 0; i < 6; i++) {
        assert_int_equal(dsa_answer_add(&a, i, dsa_str(&"abcdeg"[i], 1), 0),
                         DSA_OK);
        dsa_answer_logprobs(&a)->token = i;
        assert_int_equal(a.n_ready, ready[i]);
        assert_int_equal(a.ready, ready[i]);
    }

    dsa_answer_sent(&a, 3, 3);
    assert_int_equal(a.n_ready, 3);
    assert_int_equal(a.token[0].id, 3);
    assert_int_equal(a.logprob[0].token, 3);
    assert_int_equal(a.token[2].end, 3);
    dsa_answer_free(&a);
}


/*
 * Wherever an answer is cut, a second request with the tokens so far gives the
 * rest of it, and bills the rest only.
 */

static void
test_resume(void **state)
{
    char            text[256];
    host_t          h;
    answer_t        whole, a;
    uint32_t        i, j, cut, ids[64];
    link_submit_t   s;

    static const struct {
        const char  *prompt;
        const char  *stop;
        uint32_t     flags;
        uint32_t     logprobs;
        uint32_t     max_tokens;
    } t[] = {
        { "hello world", "xyz", 0, 0, 20 },
        { "h\xc3\xa9 \xe2\x82\xac!", "none", 0, 0, 17 },
        { "hello world", "o w", 0, 0, 20 },
        { "aaaab", "aaba", 0, 0, 20 },
        { "\xe2\x82\xac\xe2\x82", "none", 0, 0, 12 },
        { "hello", "none", 0, 1, 9 },
        { "", "><", DSA_LINK_IGNORE_EOS, 0, 5 }
    };

    host_start(&h, "");

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        for (cut = 0; cut == 0 || cut <= whole.tokens; cut++) {
            link_submit_init(&s, t[i].max_tokens);
            s.head.flags = t[i].flags;
            s.head.sampling.logprobs = t[i].logprobs;
            link_submit_control(&s, "<bos>");
            link_submit_text(&s, t[i].prompt);
            link_submit_stop(&s, t[i].stop);

            if (cut == 0) {
                whole = ask(&h, &s);
                assert_int_equal(whole.done.completion_tokens, whole.tokens);
                continue;
            }

            for (j = 0; j < cut; j++) {
                ids[j] = whole.token[j].id;
            }

            link_submit_resume(&s, ids, cut);
            a = ask(&h, &s);

            /* the text so far, as the first replica sent it, and the rest */

            j = cut == whole.tokens ? (uint32_t) whole.len
                                    : whole.token[cut - 1].end;
            memcpy(text, whole.text, j);
            memcpy(text + j, a.text, a.len + 1);

            assert_string_equal(text, whole.text);
            assert_int_equal(a.finish, whole.finish);
            assert_int_equal(a.tokens, whole.tokens - cut);
            assert_int_equal(a.done.completion_tokens, a.tokens);
            assert_int_equal(a.prompt_tokens, whole.prompt_tokens);

            for (j = 0; j < a.tokens; j++) {
                assert_int_equal(a.token[j].id, whole.token[cut + j].id);
            }

            free(a.text);
        }

        free(whole.text);
    }

    host_stop(&h);
}


static void
test_context(void **state)
{
    size_t         i;
    host_t         h;
    answer_t       a;
    link_submit_t  s;

    static const uint32_t  over[] = { 0, 91, 4096, UINT32_MAX };

    host_start(&h, "context_length 100;");

    link_submit_init(&s, 90);
    link_submit_text(&s, "0123456789");
    a = ask(&h, &s);
    assert_int_equal(a.finish, DSA_LINK_FINISH_LENGTH);
    assert_int_equal(a.len, 90);
    free(a.text);

    /* more than what is left is what is left, unless all of it is needed */

    for (i = 0; i < sizeof(over) / sizeof(over[0]); i++) {
        link_submit_init(&s, over[i]);
        link_submit_text(&s, "0123456789");
        a = ask(&h, &s);
        assert_int_equal(a.finish, DSA_LINK_FINISH_LENGTH);
        assert_int_equal(a.done.completion_tokens, 90);
        free(a.text);
    }

    link_submit_init(&s, 90);
    s.head.flags = DSA_LINK_WHOLE;
    link_submit_text(&s, "0123456789");
    a = ask(&h, &s);
    assert_int_equal(a.len, 90);
    free(a.text);

    link_submit_init(&s, 91);
    s.head.flags = DSA_LINK_WHOLE;
    link_submit_text(&s, "0123456789");
    a = ask(&h, &s);
    assert_int_equal(a.error, DSA_LINK_E_CONTEXT);
    assert_int_equal(a.prompt_tokens, 10);
    assert_non_null(strstr(a.reason, "100 are possible"));
    free(a.text);

    link_submit_init(&s, UINT32_MAX);
    s.head.flags = DSA_LINK_WHOLE;
    link_submit_text(&s, "0123456789");
    refused(&h, &s, DSA_LINK_E_CONTEXT, "the answer needs 4294967295");

    link_submit_init(&s, 1);
    link_submit_text(&s, "0123456789012345678901234567890123456789"
                     "0123456789012345678901234567890123456789"
                     "01234567890123456789");
    refused(&h, &s, DSA_LINK_E_CONTEXT, "100");

    host_stop(&h);
}


/* A worker that violates the protocol loses its session; others go on. */

static void
test_corrupt(void **state)
{
    void           *p;
    host_t          h;
    answer_t        a;
    uint32_t        kind;
    link_submit_t   s;
    link_client_t  *c;

    for (kind = 0; kind < 11; kind++) {
        host_start(&h, "");
        c = &h.client[1];

        link_submit_init(&s, 100);
        link_submit_text(&s, "abc");
        assert_int_equal(link_client_submit(c, dsa_link_id(1, 0), &s), 0);
        host_round(&h);

        if (kind != 7 && kind != 8 && kind != 9 && kind != 10) {
            p = dsa_link_reserve(&c->link.submit, DSA_LINK_SUBMIT,
                                 dsa_link_id(1, 1), 64);
            assert_non_null(p);
            memset(p, 0, 64);
            (void) dsa_link_commit(&c->link.submit);
            p = (uint8_t *) p - sizeof(dsa_link_record_t);

        } else {
            p = NULL;
        }

        switch (kind) {
        case 0:
            ((dsa_link_record_t *) p)->length = UINT32_MAX;
            break;
        case 1:
            ((dsa_link_record_t *) p)->type = 77;
            break;
        case 2:
            ((dsa_link_record_t *) p)->type = DSA_LINK_TOKENS;
            break;
        case 3:
            ((dsa_link_record_t *) p)->type = DSA_LINK_PAD;
            break;
        case 4:
            ((dsa_link_record_t *) p)->id = dsa_link_id(1, c->hello.slots);
            break;
        case 5:
            ((dsa_link_record_t *) p)->id = dsa_link_id(0, 3);
            break;
        case 6:
            ((dsa_link_record_t *) p)->id = dsa_link_id(2, 0);
            break;
        case 7:
            atomic_fetch_add(&c->link.control->submit.head, 4);
            break;
        case 8:
            atomic_fetch_add(&c->link.control->submit.head, 2 << 20);
            break;
        case 9:
            atomic_fetch_sub(&c->link.control->submit.head, 8);
            break;
        default:
            atomic_fetch_add(&c->link.control->event.tail, 1 << 20);
        }

        host_round(&h);
        assert_int_equal(host_broken(&h, 1), 1);
        assert_non_null(strstr(host_log, "a session is closed: "));
        h.session[1] = NULL;

        link_submit_init(&s, 3);
        link_submit_text(&s, "abc");
        a = ask(&h, &s);
        assert_string_equal(a.text, "abc");
        free(a.text);

        host_stop(&h);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_count),
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_delayed_tokens),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_context),
        cmocka_unit_test(test_corrupt)
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
