
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The table of prompt families, and the parts of context/ that all families
 * use.  These are tested with a family that has nothing in common with those of
 * the table:
 *
 *     [A]question[B]reasoning[/T]answer[E]
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "context/completion.h"
#include "context/format.h"
#include "context/parser.h"
#include "context/sampled.h"


#define MEMORY  (1024 * 1024)

#define TOKEN_THINK_END  2      /* its index */
#define ALL              15     /* the vocabulary has all four */


typedef struct {
    dsa_parse_t   parse;
    int           thinking;
} letters_parse_t;


static int  freed;


static void
letters_start(dsa_parse_t *p, int thinking, int tools)
{
    ((letters_parse_t *) p)->thinking = thinking;
}


static void
letters_free(dsa_parse_t *p)
{
    freed++;
}


static void
letters_text(dsa_parse_t *p, dsa_str_t text)
{
    dsa_deltas_add(&p->deltas, ((letters_parse_t *) p)->thinking
                               ? DSA_DELTA_REASONING : DSA_DELTA_CONTENT,
                   text.data, text.len);
}


static void
letters_token(dsa_parse_t *p, uint32_t token)
{
    if (token == TOKEN_THINK_END) {
        ((letters_parse_t *) p)->thinking = 0;
    }
}


static void
letters_end(dsa_parse_t *p, int complete)
{
    letters_text(p, complete ? dsa_str(".", 1) : dsa_str("~", 1));
}


static int
letters_in_reasoning(const dsa_parse_t *p)
{
    return ((const letters_parse_t *) p)->thinking;
}


static const dsa_parser_t  parser = {
    .size = sizeof(letters_parse_t),
    .start = letters_start,
    .free = letters_free,
    .text = letters_text,
    .control = letters_token,
    .end = letters_end,
    .in_reasoning = letters_in_reasoning
};

static const dsa_control_token_t  tokens[] = {
    { dsa_string("[A]"), DSA_MARK_BEGIN },
    { dsa_string("[B]"), DSA_MARK_ANSWER },
    { dsa_string("[/T]"), DSA_MARK_THINK_END },
    { dsa_string("[E]"), DSA_MARK_END|DSA_MARK_STOP }
};

static const dsa_family_t  family = {
    .name = "test",
    .tokens = { tokens, 4 },
    .modes = DSA_MODE_CHAT,
    .syntax = "test-syntax",
    .parser = &parser
};


/* What the interface requires of each family. */

static void
test_table(void **state)
{
    size_t                       i, k, m;
    const dsa_family_t          *f;
    const dsa_control_tokens_t  *t;

    assert_non_null(dsa_families[0]);

    for (i = 0; dsa_families[i] != NULL; i++) {
        f = dsa_families[i];
        t = &f->tokens;

        assert_ptr_equal(dsa_family_find(f->name), f);
        assert_in_range(strlen(f->name), 1, DSA_FAMILY_NAME - 1);
        assert_int_equal(strspn(f->name, "abcdefghijklmnopqrstuvwxyz-."
                                         "0123456789"), strlen(f->name));

        assert_in_range(strlen(f->owner), 1, DSA_FAMILY_NAME - 1);
        assert_in_range(t->n, 1, DSA_CONTROL_TOKENS_MAX);

        for (k = 0; k < t->n; k++) {
            assert_true(memchr("<[", t->elts[k].name.data[0], 2) != NULL
                        || (t->elts[k].name.data[0] & 0x80) != 0);

            /* no name begins another one, so a template is unambiguous */

            for (m = 0; m < t->n; m++) {
                assert_true(m == k
                            || strncmp(t->elts[m].name.data,
                                       t->elts[k].name.data,
                                       t->elts[k].name.len) != 0);
            }
        }

        assert_int_equal(f->modes & ~(DSA_MODE_CHAT|DSA_MODE_THINKING), 0);
        assert_int_equal(f->encode != NULL, f->modes != 0);
        assert_int_equal(f->ask != NULL, f->modes != 0);
        assert_int_equal(f->title != NULL, f->modes == 0);
        assert_non_null(f->complete);
        assert_true(f->syntax == NULL || f->modes != 0);
    }

    assert_ptr_equal(dsa_family_find("deepseek"), dsa_families[0]);
    assert_null(dsa_family_find(""));
    assert_null(dsa_family_find("glm"));
    assert_null(dsa_family_find("deepsee"));
    assert_null(dsa_family_find("deepseek "));
}


static void
test_modes(void **state)
{
    int               rc;
    size_t            i;
    dsa_chat_t        chat;
    dsa_family_t      f;
    dsa_refusal_t     refusal;
    dsa_completion_t  completion;

    static const struct {
        uint32_t      modes;
        const char   *fim;
        int           thinking;
        const char   *suffix;   /* NULL: a chat */
        const char   *refusal;
    } t[] = {
        { DSA_MODE_CHAT, NULL, 0, NULL, NULL },
        { DSA_MODE_CHAT, NULL, 1, NULL,
          "thinking: this model cannot think; expected a request with "
          "thinking off" },
        { DSA_MODE_THINKING, NULL, 1, NULL, NULL },
        { DSA_MODE_THINKING, NULL, 0, NULL,
          "thinking: this model always thinks; expected a request with "
          "thinking on" },
        { DSA_MODE_CHAT|DSA_MODE_THINKING, NULL, 0, NULL, NULL },
        { DSA_MODE_CHAT|DSA_MODE_THINKING, NULL, 1, NULL, NULL },

        { 0, NULL, 0, NULL,
          "messages: chats with Model-1 are refused, because this server does "
          "not have its chat template; expected a text completion, which has "
          "a prompt" },
        { 0, NULL, 0, "", NULL },
        { 0, "<fim>", 0, "x", NULL },

        /* a text completion has no thinking that a model could require */

        { DSA_MODE_THINKING, NULL, 0, "", NULL },
        { DSA_MODE_CHAT|DSA_MODE_THINKING, NULL, 0, "x",
          "suffix: this model cannot fill in the middle; expected no suffix" },
        { DSA_MODE_CHAT|DSA_MODE_THINKING, "<fim>", 0, "x", NULL }
    };

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        memset(&chat, 0, sizeof(chat));
        memset(&completion, 0, sizeof(completion));
        memset(&refusal, 0, sizeof(refusal));

        f = family;
        f.modes = t[i].modes;
        f.title = "Model-1";
        f.fim = t[i].fim;
        chat.thinking = t[i].thinking != 0;

        if (t[i].suffix != NULL) {
            completion.suffix = dsa_strz(t[i].suffix);
            chat.completion = &completion;
        }

        rc = dsa_family_check(&f, &chat, &refusal);

        assert_int_equal(rc, t[i].refusal == NULL ? DSA_OK : DSA_ERROR);

        if (t[i].refusal != NULL) {
            assert_int_equal(refusal.status, 400);
            assert_string_equal(refusal.param, t[i].suffix != NULL ? "suffix"
                                               : t[i].modes == 0 ? "messages"
                                                                 : "thinking");
            assert_non_null(strstr(refusal.message, t[i].refusal));
        }
    }
}


/* A family without a syntax of calls refuses tools. */

static void
test_no_tools(void **state)
{
    dsa_chat_t     chat;
    dsa_json_t     tools;
    dsa_family_t   f;
    dsa_refusal_t  refusal;

    memset(&chat, 0, sizeof(chat));
    memset(&tools, 0, sizeof(tools));
    memset(&refusal, 0, sizeof(refusal));

    chat.tools = &tools;
    f = family;

    assert_int_equal(dsa_family_check(&f, &chat, &refusal), DSA_OK);

    f.syntax = NULL;

    assert_int_equal(dsa_family_check(&f, &chat, &refusal), DSA_ERROR);
    assert_int_equal(refusal.status, 400);
    assert_string_equal(refusal.param, "tools");
    assert_non_null(strstr(refusal.message, "tools: this model is not "
                           "supported with tools; expected a request without "
                           "them"));
}


/* Only the template's own names of tokens become tokens. */

static void
test_writer(void **state)
{
    uint32_t             i;
    dsa_err_t            err;
    dsa_arena_t         *arena;
    dsa_prompt_t         prompt;
    dsa_prompt_place_t   place;
    dsa_prompt_writer_t  w;

    static const dsa_segment_t  copied = {
        DSA_SEGMENT_CONTROL, dsa_string("[E]")
    };

    static const struct {
        dsa_segment_kind_e   kind;
        const char          *text;
    } t[] = {
        { DSA_SEGMENT_CONTROL, "[A]" },
        { DSA_SEGMENT_TEXT, "<[ [X] a[A]b</T>" },
        { DSA_SEGMENT_CONTROL, "[B]" },
        { DSA_SEGMENT_CONTROL, "[/T]" },
        { DSA_SEGMENT_TEXT, "[B]" },
        { DSA_SEGMENT_CONTROL, "[E]" }
    };

    arena = dsa_arena_create(MEMORY);

    dsa_prompt_init(&w, &family.tokens);
    dsa_prompt_template(&w, "[A]<[ [X] ");
    dsa_prompt_text(&w, dsa_strz("a[A]b"));
    place = dsa_prompt_place(&w);
    dsa_prompt_template(&w, "c[B]");
    dsa_prompt_text(&w, dsa_strz("d"));
    dsa_prompt_back(&w, place);
    dsa_prompt_template(&w, "</T>[B][/T]");
    dsa_prompt_text(&w, dsa_strz("[B]"));
    dsa_prompt_copy(&w, &copied);

    assert_int_equal(dsa_prompt_finish(&w, &prompt, arena, &err), DSA_OK);
    dsa_prompt_free(&w);

    assert_int_equal(prompt.n, sizeof(t) / sizeof(t[0]));
    assert_int_equal(prompt.bytes, 3 + 16 + 3 + 4 + 3 + 3);

    for (i = 0; i < prompt.n; i++) {
        assert_int_equal(prompt.segments[i].kind, t[i].kind);
        assert_true(dsa_str_eqz(prompt.segments[i].text, t[i].text));
    }

    dsa_arena_destroy(arena);
}


typedef struct {
    char    text[256];
    int     rc;
} output_t;


static int
on_delta(void *ctx, dsa_delta_e what, uint32_t call, dsa_str_t text)
{
    size_t     n;
    output_t  *out = ctx;

    n = strlen(out->text);

    (void) snprintf(out->text + n, sizeof(out->text) - n, "%c(%.*s)",
                    what == DSA_DELTA_REASONING ? 'R' : 'C', (int) text.len,
                    text.data);

    return out->rc;
}


static void
check_parse(int thinking, uint32_t vocabulary, int complete,
    const char *expected)
{
    output_t      out = { "", DSA_OK };
    dsa_parse_t  *p;

    freed = 0;
    p = dsa_parse_create(&family, thinking, 0, vocabulary, on_delta, &out);

    assert_non_null(p);
    assert_int_equal(dsa_parse_in_reasoning(p), thinking);
    assert_int_equal(dsa_parse_feed(p, dsa_strz("why[/T]")), DSA_OK);
    assert_int_equal(dsa_parse_feed_control(p, dsa_strz("[/T]")), DSA_OK);
    assert_int_equal(dsa_parse_feed_control(p, dsa_strz("</think>")), DSA_OK);
    assert_int_equal(dsa_parse_end(p, complete), DSA_OK);
    assert_int_equal(dsa_parse_calls(p), 0);
    assert_string_equal(out.text, expected);

    dsa_parse_destroy(p);
    assert_int_equal(freed, 1);
}


static void
test_parser(void **state)
{
    output_t      out = { "", 77 };
    dsa_parse_t  *p;

    dsa_parse_destroy(NULL);

    check_parse(1, ALL, 1, "R(why[/T])C(</think>)C(.)");
    check_parse(1, ALL, 0, "R(why[/T])C(</think>)C(~)");
    check_parse(0, ALL, 1, "C(why[/T])C(</think>)C(.)");

    /* without the token in the vocabulary its name is text */

    check_parse(1, ALL & ~(1U << TOKEN_THINK_END), 1,
                "R(why[/T])R([/T])R(</think>)R(.)");

    /* what the callback returns ends the parser */

    p = dsa_parse_create(&family, 0, 0, ALL, on_delta, &out);

    assert_int_equal(dsa_parse_feed(p, dsa_strz("a")), 77);
    assert_int_equal(dsa_parse_feed_control(p, dsa_strz("x")), 77);
    assert_int_equal(dsa_parse_end(p, 1), 77);
    assert_string_equal(out.text, "C(a)");

    dsa_parse_destroy(p);
}


/* A retained answer belongs to a family, and only that family reads it. */

static void
test_record(void **state)
{
    dsa_err_t             err;
    dsa_arena_t          *arena;
    dsa_family_t          other;
    dsa_sampled_t        *s;
    dsa_sampled_writer_t  w;

    arena = dsa_arena_create(MEMORY);

    memset(&w, 0, sizeof(w));
    dsa_sampled_start(&w, &family, 1, ALL);
    dsa_sampled_add(&w, dsa_strz("why[/T]"), 0);
    dsa_sampled_add(&w, dsa_strz("[/T]"), 1);
    dsa_sampled_add(&w, dsa_strz("answer"), 0);
    assert_int_equal(dsa_sampled_end(&w), DSA_OK);

    assert_memory_equal(w.answer.data, "dsa-rt-1\17\0\0\0\1\0\0\0"
                        "test\0\0\0\0\0\0\0\0\0\0\0\0\16\0\0\0why[/T]", 43);

    s = dsa_sampled_read(arena, &family, dsa_str(w.answer.data, w.answer.len),
                         &err);
    assert_non_null(s);
    assert_ptr_equal(s->family, &family);
    assert_int_equal(s->n, 3);
    assert_int_equal(dsa_sampled_behind_reasoning(s), 2);

    assert_null(dsa_sampled_read(arena, dsa_family_find("deepseek"),
                                 dsa_str(w.answer.data, w.answer.len), &err));
    assert_string_equal(err.text, "its family is not \"deepseek\"");

    other = family;
    other.name = "tes";
    assert_null(dsa_sampled_read(arena, &other,
                                 dsa_str(w.answer.data, w.answer.len), &err));

    /* a name of the longest size, and a family with fewer tokens */

    dsa_buf_free(&w.answer);
    other.name = "abcdefghijklmno";

    memset(&w, 0, sizeof(w));
    dsa_sampled_start(&w, &other, 0, ALL);
    dsa_sampled_add(&w, dsa_strz("[E]"), 1);
    assert_int_equal(dsa_sampled_end(&w), DSA_OK);

    s = dsa_sampled_read(arena, &other, dsa_str(w.answer.data, w.answer.len),
                         &err);
    assert_non_null(s);
    assert_int_equal(dsa_sampled_behind_reasoning(s), 0);

    other.tokens.n = 3;
    assert_null(dsa_sampled_read(arena, &other,
                                 dsa_str(w.answer.data, w.answer.len), &err));
    assert_string_equal(err.text, "its head has an unknown bit");

    dsa_buf_free(&w.answer);
    dsa_arena_destroy(arena);
}


/* The spec of a grammar names the syntax of the family's calls. */

static void
test_syntax(void **state)
{
    dsa_err_t           err;
    dsa_chat_t          chat;
    dsa_json_t         *root;
    dsa_arena_t        *arena;
    dsa_format_t        format;
    dsa_refusal_t       refusal;

    static const dsa_chat_limits_t  limits = { 8, 4, 1 };
    static const char               body[] =
        "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"q\"}],"
        "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}],"
        "\"tool_choice\":\"required\"}";

    arena = dsa_arena_create(MEMORY);
    root = dsa_json_parse(arena, body, sizeof(body) - 1, 64, &err);

    assert_non_null(root);
    assert_int_equal(dsa_chat_read(&chat, arena, root, &limits, &refusal),
                     DSA_OK);
    assert_int_equal(dsa_format_spec(&format, &family, &chat, arena, &refusal),
                     DSA_OK);
    assert_string_equal(dsa_arena_dup(arena, format.spec),
                        "{\"type\":\"tools\",\"syntax\":\"test-syntax\","
                        "\"calls\":\"many\",\"text\":false,\"tools\":"
                        "[{\"name\":\"f\",\"strict\":false}]}");

    dsa_arena_destroy(arena);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_modes),
        cmocka_unit_test(test_no_tools),
        cmocka_unit_test(test_writer),
        cmocka_unit_test(test_parser),
        cmocka_unit_test(test_record),
        cmocka_unit_test(test_syntax)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
