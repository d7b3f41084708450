
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Text completions: their prompts, and requests that are broken or too large.
 * t/completions.t has the table of fields.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "context/deepseek/deepseek.h"


#define DEPTH   64
#define MEMORY  (4 * 1024 * 1024)
#define P(x)    "{\"model\":\"m\"," x "}"
#define NAMES   "<｜fim▁end｜><｜User｜></think><｜begin▁of▁sentence｜>"
#define BOS     "[<｜begin▁of▁sentence｜>]"


static const dsa_chat_limits_t  limits = { 8, 4, 1 };


/* The segments as text, control tokens in brackets. */

static void
show(dsa_buf_t *b, const dsa_prompt_t *prompt)
{
    size_t    bytes;
    uint32_t  i;

    bytes = 0;

    for (i = 0; i < prompt->n; i++) {
        assert_int_not_equal(prompt->segments[i].text.len, 0);
        bytes += prompt->segments[i].text.len;

        if (prompt->segments[i].kind == DSA_SEGMENT_CONTROL) {
            dsa_buf_addz(b, "[");
        }

        dsa_buf_add(b, prompt->segments[i].text.data,
                    prompt->segments[i].text.len);

        if (prompt->segments[i].kind == DSA_SEGMENT_CONTROL) {
            dsa_buf_addz(b, "]");
        }
    }

    assert_int_equal(prompt->bytes, bytes);
}


static void
test_prompts(void **state)
{
    size_t          i;
    dsa_err_t       err;
    dsa_buf_t       b;
    dsa_chat_t      chat;
    dsa_json_t     *root;
    dsa_arena_t    *arena;
    dsa_prompt_t    prompt;
    dsa_refusal_t   refusal;

    static const struct {
        const char  *text;
        const char  *prompt;
    } cases[] = {
        { P("\"prompt\":\"a\""), BOS "a" },
        { P("\"prompt\":[\"a\"]"), BOS "a" },
        { P("\"prompt\":\"\""), BOS },
        { P("\"prompt\":\"" NAMES "\""), BOS NAMES },
        { P("\"prompt\":\"a\",\"suffix\":\"\""), BOS "a" },
        { P("\"prompt\":\"a\",\"suffix\":null"), BOS "a" },
        { P("\"prompt\":\"a\",\"suffix\":\"b\""),
          BOS "[<｜fim▁begin｜>]a[<｜fim▁hole｜>]b[<｜fim▁end｜>]" },
        { P("\"prompt\":\"\",\"suffix\":\"b\""),
          BOS "[<｜fim▁begin｜>][<｜fim▁hole｜>]b[<｜fim▁end｜>]" },
        { P("\"prompt\":\"" NAMES "\",\"suffix\":\"" NAMES "\""),
          BOS "[<｜fim▁begin｜>]" NAMES "[<｜fim▁hole｜>]" NAMES
          "[<｜fim▁end｜>]" }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        arena = dsa_arena_create(MEMORY);
        memset(&refusal, 0, sizeof(dsa_refusal_t));
        memset(&b, 0, sizeof(dsa_buf_t));

        root = dsa_json_parse(arena, cases[i].text, strlen(cases[i].text),
                              DEPTH, &err);
        assert_non_null(root);
        assert_int_equal(dsa_completion_read(&chat, arena, root, &limits,
                                             &refusal),
                         DSA_OK);
        assert_int_equal(chat.n_messages, 0);
        assert_false(chat.thinking);
        assert_int_equal(dsa_chat_check(&chat, &refusal), DSA_OK);
        assert_int_equal(dsa_deepseek.complete(&prompt, arena,
                                               chat.completion, &err),
                         DSA_OK);

        show(&b, &prompt);
        dsa_buf_add(&b, "", 1);
        assert_string_equal(b.data, cases[i].prompt);

        dsa_buf_free(&b);
        dsa_arena_destroy(arena);
    }
}


static const char  full[] =
    "{\"model\":\"m\",\"prompt\":[\"\xe4\xb8\xad\"],\"suffix\":\"b\","
    "\"echo\":false,\"logprobs\":2,\"best_of\":1,\"n\":1,\"stream\":true,"
    "\"stream_options\":{\"include_usage\":true},\"stop\":[\"a\"],\"seed\":1,"
    "\"thinking\":{\"type\":\"disabled\"},\"logit_bias\":{\"7\":-1}}";


/* A body with a wrong byte is refused, or it is another valid request. */

static void
test_broken_anywhere(void **state)
{
    int             rc;
    char            text[sizeof(full)];
    size_t          i, k, read;
    dsa_err_t       err;
    dsa_chat_t      chat;
    dsa_json_t     *root;
    dsa_arena_t    *arena;
    dsa_refusal_t   refusal;

    static const char  wrong[] = "{}[]\",:\\x0\x01\x80\xff\n";

    read = 0;

    for (i = 0; i < sizeof(full) - 1; i++) {
        for (k = 0; k < sizeof(wrong); k++) {
            arena = dsa_arena_create(MEMORY);
            memset(&refusal, 0, sizeof(dsa_refusal_t));
            memcpy(text, full, sizeof(full));
            text[i] = wrong[k];

            root = dsa_json_parse(arena, text, sizeof(full) - 1, DEPTH, &err);

            if (root != NULL) {
                read++;
                rc = dsa_completion_read(&chat, arena, root, &limits,
                                         &refusal);

                assert_int_equal(refusal.status, rc == DSA_OK ? 0 : 400);
                assert_int_equal(refusal.message[0] != '\0', rc != DSA_OK);
            }

            dsa_arena_destroy(arena);
        }
    }

    assert_true(read > 100);
}


/* With too little memory a request is refused with 413. */

static void
test_memory(void **state)
{
    size_t          n, refused;
    dsa_err_t       err;
    dsa_chat_t      chat;
    dsa_json_t     *root;
    dsa_arena_t    *source, *arena;
    dsa_refusal_t   refusal;

    source = dsa_arena_create(MEMORY);
    root = dsa_json_parse(source, full, sizeof(full) - 1, DEPTH, &err);
    assert_non_null(root);

    refused = 0;

    for (n = 1; n < 4096; n++) {
        arena = dsa_arena_create(n);
        memset(&refusal, 0, sizeof(dsa_refusal_t));

        if (dsa_completion_read(&chat, arena, root, &limits, &refusal)
            == DSA_OK)
        {
            dsa_arena_destroy(arena);
            break;
        }

        assert_int_equal(refusal.status, 413);
        refused++;
        dsa_arena_destroy(arena);
    }

    assert_in_range(refused, 1, 4000);

    dsa_arena_destroy(source);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_prompts),
        cmocka_unit_test(test_broken_anywhere),
        cmocka_unit_test(test_memory)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
