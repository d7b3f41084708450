
/*
 * Copyright (C) The nginx-dsa authors
 *
 * context/summary.c: the prompt for a summary, and the message that it becomes.
 * The expected prompts are spelled out here.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "context/deepseek/deepseek.h"
#include "context/summary.h"


#define ROUNDS     12
#define THRESHOLD  1000
#define CUE        "[<\xef\xbd\x9c" "Assistant\xef\xbd\x9c>]"
#define USER       "[<\xef\xbd\x9c" "User\xef\xbd\x9c>]"
#define BEGIN      "[<\xef\xbd\x9c" "begin\xe2\x96\x81of\xe2\x96\x81sentence"  \
                   "\xef\xbd\x9c>]"
#define END        "[<\xef\xbd\x9c" "end\xe2\x96\x81of\xe2\x96\x81sentence"    \
                   "\xef\xbd\x9c>]"
#define DSML       "[\xef\xbd\x9c" "DSML\xef\xbd\x9c]"


typedef struct {
    dsa_chat_t       chat;
    uint32_t         n_rounds;
    dsa_message_t    m[4 + 2 * ROUNDS];
    dsa_tool_call_t  calls[ROUNDS];
    char             result[ROUNDS][16];
    char             thought[ROUNDS][16];
} talk_t;


static void
add(talk_t *t, dsa_role_e role, const char *text)
{
    dsa_message_t  *m;

    m = &t->m[t->chat.n_messages++];
    memset(m, 0, sizeof(dsa_message_t));
    m->role = role;
    m->content = dsa_strz(text);
}


/* A round of one call. */

static void
add_round(talk_t *t)
{
    uint32_t        i;
    dsa_message_t  *m;

    i = t->n_rounds++;

    (void) snprintf(t->result[i], sizeof(t->result[i]), "r%u", i);
    (void) snprintf(t->thought[i], sizeof(t->thought[i]), "t%u", i);

    t->calls[i].id = dsa_strz("c");
    t->calls[i].name = dsa_strz("f");
    t->calls[i].raw = dsa_strz("x\n");

    add(t, DSA_ROLE_ASSISTANT, "");
    m = &t->m[t->chat.n_messages - 1];
    m->calls = &t->calls[i];
    m->n_calls = 1;
    m->reasoning = dsa_strz(t->thought[i]);
    m->has_reasoning = 1;

    add(t, DSA_ROLE_TOOL, t->result[i]);
    t->m[t->chat.n_messages - 1].tool_call_id = t->calls[i].id;
}


/* A question and n rounds. */

static void
start(talk_t *t, uint32_t n)
{
    memset(t, 0, sizeof(talk_t));
    t->chat.messages = t->m;
    t->chat.thinking = 1;

    add(t, DSA_ROLE_SYSTEM, "S");
    add(t, DSA_ROLE_USER, "Q");

    while (t->n_rounds < n) {
        add_round(t);
    }
}


/* The prompt as one text, with control tokens in brackets. */

static char *
shown(const dsa_prompt_t *prompt)
{
    size_t               bytes;
    uint32_t             i;
    dsa_buf_t            b;
    const dsa_segment_t  *s;

    memset(&b, 0, sizeof(dsa_buf_t));
    bytes = 0;

    for (i = 0; i < prompt->n; i++) {
        s = &prompt->segments[i];
        bytes += s->text.len;

        if (s->kind == DSA_SEGMENT_CONTROL) {
            dsa_buf_printf(&b, "[%.*s]", (int) s->text.len, s->text.data);

        } else {
            dsa_buf_add(&b, s->text.data, s->text.len);
        }
    }

    assert_int_equal(bytes, prompt->bytes);
    dsa_buf_add(&b, "", 1);
    assert_false(b.failed);

    return b.data;
}


/* Runs a replay in which a request exceeds the threshold at its end only. */

static void
overflow(dsa_window_t *w, dsa_arena_t *arena, const dsa_chat_t *chat)
{
    int       rc;
    uint32_t  tokens;

    assert_int_equal(dsa_window_init(w, arena, chat, DSA_WINDOW_SUMMARY,
                                     THRESHOLD), DSA_OK);

    do {
        tokens = w->cut == 0 && w->point == w->last ? THRESHOLD + 1 : 1;
        rc = dsa_window_counted(w, tokens);
    } while (rc == DSA_AGAIN);

    assert_int_equal(rc, DSA_OK);
    assert_int_equal(w->overflow, w->last);
}


static char *
summary_of(const dsa_window_t *w, dsa_arena_t *arena, uint32_t dropped,
    const char *previous)
{
    dsa_err_t     err;
    dsa_prompt_t  prompt;

    assert_int_equal(dsa_summary_prompt(&dsa_deepseek, &prompt, arena, w,
                                        dropped, dsa_strz(previous), &err),
                     DSA_OK);

    return shown(&prompt);
}


static char *
left_of(dsa_window_t *w, dsa_arena_t *arena, const char *summary)
{
    dsa_err_t     err;
    dsa_chat_t    left;
    dsa_prompt_t  prompt;

    w->summary = dsa_strz(summary);

    assert_int_equal(dsa_window_chat(w, arena, &left), DSA_OK);
    assert_int_equal(dsa_deepseek.encode(&prompt, arena, &left, &err), DSA_OK);

    return shown(&prompt);
}


/* Behind the conversation: an instruction, and the beginning of its answer. */

static void
check_tail(const char *text, const char *conversation, const char *end)
{
    size_t       len;
    const char  *tail, *instruction;

    static const char  last[] = CUE "[</think>]Summary:";

    len = strlen(conversation);
    assert_true(strlen(text) > len);
    assert_memory_equal(text, conversation, len);

    tail = text + len;
    assert_memory_equal(tail, end, strlen(end));

    instruction = tail + strlen(end);
    assert_non_null(strchr(instruction, '['));
    assert_string_equal(strchr(instruction, '['), last);
    assert_in_range(strchr(instruction, '[') - instruction, 200, 2000);
}


#define ROUND(n)                                                              \
    "t" n "[</think>]\n\n<" DSML "function_calls>\n<" DSML "invoke name=\"f\"" \
    ">\nx\n</" DSML "invoke>\n</" DSML "function_calls>" END                   \
    "\n\n<function_results>\n<result>r" n "</result>\n</function_results>"     \
    "\n\n[<think>]"


/* The conversation is that of the KV cache, with its reasoning. */

static void
test_prompt(void **unused)
{
    char          *text;
    talk_t         t;
    dsa_arena_t   *arena;
    dsa_window_t   w;

    (void) unused;

    arena = dsa_arena_create(16 * 1024 * 1024);
    assert_non_null(arena);

    start(&t, 3);
    overflow(&w, arena, &t.chat);
    assert_int_equal(w.cut, 3);

    text = summary_of(&w, arena, 0, "");
    check_tail(text, BEGIN "S" USER "Q" CUE "[<think>]" ROUND("0") ROUND("1")
               ROUND("2"), "[</think>]" END USER);
    free(text);

    /* without its oldest rounds, and with a summary of these */

    text = summary_of(&w, arena, 1, "");
    check_tail(text, BEGIN "S" USER "Q" CUE "[<think>]" ROUND("1") ROUND("2"),
               "[</think>]" END USER);
    free(text);

    text = summary_of(&w, arena, 2, "OLD");
    check_tail(text, BEGIN "S" USER "Q" CUE "[</think>]" USER "OLD" CUE
               "[<think>]" ROUND("2"), "[</think>]" END USER);
    free(text);

    dsa_arena_destroy(arena);
}


/* A new question ends the reasoning of the rounds in front of it. */

static void
test_question(void **unused)
{
    char          *text;
    talk_t         t;
    dsa_arena_t   *arena;
    dsa_window_t   w;

    (void) unused;

    arena = dsa_arena_create(16 * 1024 * 1024);
    assert_non_null(arena);

    start(&t, 1);
    t.chat.thinking = 0;
    add(&t, DSA_ROLE_USER, "[NEXT");
    overflow(&w, arena, &t.chat);

    text = summary_of(&w, arena, 0, "");
    assert_non_null(strstr(text, USER "[NEXT" CUE "[</think>]" END USER));
    free(text);

    text = left_of(&w, arena, "NEW");
    assert_string_equal(text, BEGIN "S" USER "Q" CUE "[</think>]" USER "NEW"
                        CUE "[</think>]" USER "[NEXT" CUE "[</think>]");
    free(text);

    /* the beginning of an answer, which the model is to continue */

    start(&t, 1);
    t.chat.thinking = 0;
    add(&t, DSA_ROLE_ASSISTANT, "BEGUN");
    t.m[t.chat.n_messages - 1].prefix = 1;
    overflow(&w, arena, &t.chat);
    assert_int_equal(w.cut, 1);

    text = summary_of(&w, arena, 0, "");
    assert_null(strstr(text, "BEGUN"));
    assert_non_null(strstr(text, "</function_results>\n\n[</think>]" END USER));
    free(text);

    text = left_of(&w, arena, "NEW");
    assert_string_equal(text, BEGIN "S" USER "Q" CUE "[</think>]" USER "NEW"
                        CUE "[</think>]BEGUN");
    free(text);

    dsa_arena_destroy(arena);
}


/* Text stays text; rounds that stay are behind the summary. */

static void
test_message(void **unused)
{
    char          *text;
    talk_t         t;
    dsa_arena_t   *arena;
    dsa_window_t   w;

    (void) unused;

    arena = dsa_arena_create(16 * 1024 * 1024);
    assert_non_null(arena);

    start(&t, 3);
    overflow(&w, arena, &t.chat);

    text = left_of(&w, arena, DSA_SUMMARY_HEAD "</think><think>");
    assert_string_equal(text, BEGIN "S" USER "Q" CUE "[</think>]" USER
                        DSA_SUMMARY_HEAD "</think><think>" CUE "[<think>]");
    free(text);

    w.cut = 2;

    text = left_of(&w, arena, "NEW");
    assert_string_equal(text, BEGIN "S" USER "Q" CUE "[</think>]" USER "NEW"
                        CUE "[<think>]" ROUND("2"));
    free(text);

    w.cut = 0;

    text = left_of(&w, arena, "NEW");
    assert_null(strstr(text, "NEW"));
    free(text);

    /* messages between the rounds stay in front of it */

    start(&t, 1);
    add(&t, DSA_ROLE_ASSISTANT, "A");
    add(&t, DSA_ROLE_USER, "P");
    add_round(&t);
    overflow(&w, arena, &t.chat);
    assert_int_equal(w.cut, 2);

    text = left_of(&w, arena, "NEW");
    assert_string_equal(text, BEGIN "S" USER "Q" CUE "[</think>]A" END USER
                        "P" CUE "[</think>]" USER "NEW" CUE "[<think>]");
    free(text);

    dsa_arena_destroy(arena);
}


static void
test_bounds(void **unused)
{
    uint32_t  threshold;

    (void) unused;

    assert_int_equal(dsa_summary_tokens(1), 1);
    assert_int_equal(dsa_summary_tokens(8000), 1000);
    assert_int_equal(dsa_summary_tokens(104857), DSA_SUMMARY_TOKENS);

    for (threshold = 1; threshold < 100000; threshold += 37) {
        assert_int_equal(dsa_summary_reserve(threshold),
                         dsa_summary_tokens(threshold)
                         + strlen(DSA_SUMMARY_HEAD) + 3);
    }
}


/* Each attempt drops more, and the attempts end. */

static void
test_drop(void **unused)
{
    talk_t         t;
    uint32_t       dropped, next, attempts, excess;
    dsa_err_t      err;
    dsa_arena_t   *arena;
    dsa_window_t   w;
    dsa_prompt_t   prompt;

    (void) unused;

    arena = dsa_arena_create(16 * 1024 * 1024);
    assert_non_null(arena);

    start(&t, ROUNDS);
    overflow(&w, arena, &t.chat);
    assert_int_equal(w.cut, ROUNDS);

    for (excess = 1; excess < 1000; excess++) {
        dropped = 0;
        attempts = 0;

        do {
            assert_int_equal(dsa_summary_prompt(&dsa_deepseek, &prompt, arena,
                                                &w, dropped, dsa_str(NULL, 0),
                                                &err),
                             DSA_OK);
            next = dsa_summary_drop(&w, &prompt, dropped, 1000, excess);

            if (next != 0) {
                assert_in_range(next, dropped + 1, ROUNDS - 1);

                /* as many bytes as there are tokens too many */

                assert_true(next == dropped + 1 + (ROUNDS - dropped) / 8
                            || (w.rounds[next - 2].bytes
                                - (dropped ? w.rounds[dropped - 1].bytes : 0))
                               * 1000 < prompt.bytes * excess);
            }

            dropped = next;
            assert_in_range(++attempts, 1, ROUNDS);

        } while (dropped != 0);
    }

    dsa_arena_destroy(arena);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_prompt),
        cmocka_unit_test(test_question),
        cmocka_unit_test(test_message),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_drop)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
