
/*
 * Copyright (C) The nginx-dsa authors
 *
 * context/compact.c: what leaves with a summary, the question for it, and the
 * message that it becomes.  The expected prompts are spelled out here.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "context/compact.h"
#include "context/deepseek/deepseek.h"
#include "context/glm/glm.h"


/*
 * A message in a letter: its role, in a capital one if it is a summary, and
 * its content, which is the letter.  s system, d developer, u user, a
 * assistant, t tool; U and A: a summary with which messages of the user stay,
 * or leave.
 */

static uint32_t
compose(dsa_message_t *m, const char *letters)
{
    uint32_t  n;

    static const char  roles[] = "sudat";   /* dsa_role_e */

    for (n = 0; letters[n] != '\0'; n++, m++) {
        memset(m, 0, sizeof(dsa_message_t));

        m->content = dsa_str(&letters[n], 1);

        if (letters[n] == 'U' || letters[n] == 'A') {
            m->role = DSA_ROLE_USER;
            m->compact = letters[n] == 'U' ? DSA_COMPACT_USER
                                           : DSA_COMPACT_ALL;
            continue;
        }

        m->role = (dsa_role_e) (strchr(roles, letters[n]) - roles);
    }

    return n;
}


static void
expect(const dsa_chat_t *chat, const char *letters)
{
    uint32_t  i;
    char      got[64];

    assert_true(chat->n_messages < sizeof(got));

    for (i = 0; i < chat->n_messages; i++) {
        got[i] = chat->messages[i].content.data[0];
    }

    got[i] = '\0';
    assert_string_equal(got, letters);
}


static void
test_marks(void **state)
{
    char           text[64];
    size_t         i;
    dsa_str_t      kept, out;
    dsa_compact_e  kind;

    static const char *const  bad[] = {
        "", "c", "compaction u\n", "compaction a\n", "compaction a",
        "compaction b\nx", "compaction a x", "Compaction a\nx",
        "compaction\na\nx", "x compaction a\nx"
    };

    for (kind = DSA_COMPACT_USER; kind <= DSA_COMPACT_ALL; kind++) {
        dsa_compact_e  found;

        kept = dsa_compact_mark(kind);
        assert_int_equal(kept.len, DSA_COMPACT_MARK);

        (void) snprintf(text, sizeof(text), "%.*scompaction u\nx",
                        (int) kept.len, kept.data);

        assert_int_equal(dsa_compact_split(dsa_strz(text), &found, &out),
                         DSA_OK);
        assert_int_equal(found, kind);
        assert_int_equal(out.len, strlen("compaction u\nx"));
        assert_memory_equal(out.data, "compaction u\nx", out.len);
    }

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(dsa_compact_split(dsa_strz(bad[i]), &kind, &out),
                         DSA_ERROR);
    }

    /* NUL, and bytes that are no characters */

    kept = dsa_str("compaction a\n\0\xff", DSA_COMPACT_MARK + 2);
    assert_int_equal(dsa_compact_split(kept, &kind, &out), DSA_OK);
    assert_int_equal(out.len, 2);
}


static void
test_apply(void **state)
{
    size_t          i;
    uint32_t        k, items[16];
    dsa_chat_t      chat;
    dsa_arena_t    *arena;
    dsa_message_t   m[16];
    dsa_refusal_t   refusal;

    /* so many messages at the front are stored */

    static const struct {
        const char  *before;
        uint32_t     stored;
        const char  *after;
        uint32_t     stored_after;
        const char  *origin;            /* of the others; a digit for each */
    } rows[] = {
        { "suau", 0, "suau", 0, "0123" },
        { "Uu", 0, "Uu", 0, "01" },
        { "suaUu", 0, "suUu", 0, "0134" },
        { "suaAu", 0, "sAu", 0, "034" },
        { "sduatAuau", 0, "sdAuau", 0, "015678" },
        { "suUaAu", 0, "sAu", 0, "045" },
        { "suAaUu", 0, "suUu", 0, "0145" },
        { "suaAuau", 3, "sAuau", 1, "0123" },
        { "suaAuau", 4, "sAuau", 2, "012" },
        { "suatuaAu", 8, "sAu", 3, "" },
        { "uA", 1, "A", 0, "0" }
    };

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        arena = dsa_arena_create(65536);
        memset(&chat, 0, sizeof(dsa_chat_t));
        memset(&refusal, 0, sizeof(dsa_refusal_t));

        chat.messages = m;
        chat.n_messages = compose(m, rows[i].before);
        chat.n_stored = rows[i].stored;

        for (k = 0; k < 16; k++) {
            items[k] = k;
        }

        chat.items = items;

        assert_int_equal(dsa_compact_apply(&chat, arena, &refusal), DSA_OK);

        expect(&chat, rows[i].after);
        assert_int_equal(chat.n_stored, rows[i].stored_after);

        for (k = 0; rows[i].origin[k] != '\0'; k++) {
            assert_int_equal(chat.items[k], rows[i].origin[k] - '0');
        }

        assert_int_equal(chat.n_stored + k, chat.n_messages);

        dsa_arena_destroy(arena);
    }
}


/* A question for a summary of nothing. */

static void
test_nothing(void **state)
{
    size_t          i;
    uint32_t        item;
    dsa_chat_t      chat;
    dsa_arena_t    *arena;
    dsa_message_t   m[16];
    dsa_refusal_t   refusal;

    static const struct {
        const char  *messages;
        int          rc;
    } rows[] = {
        { "u", DSA_ERROR }, { "su", DSA_ERROR }, { "sdu", DSA_ERROR },
        { "uu", DSA_OK }, { "suu", DSA_OK }, { "sau", DSA_OK },
        { "Au", DSA_OK }, { "suAu", DSA_OK }
    };

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        arena = dsa_arena_create(65536);
        memset(&chat, 0, sizeof(dsa_chat_t));
        memset(&refusal, 0, sizeof(dsa_refusal_t));

        chat.messages = m;
        chat.n_messages = compose(m, rows[i].messages);
        chat.question = 1;
        item = 0;
        chat.items = i % 2 ? &item : NULL;

        assert_int_equal(dsa_compact_apply(&chat, arena, &refusal),
                         rows[i].rc);

        if (rows[i].rc == DSA_ERROR) {
            assert_string_equal(refusal.param, i % 2 ? "input" : "messages");
            assert_non_null(strstr(refusal.message, "nothing to compact"));
        }

        dsa_arena_destroy(arena);
    }
}


static char *
shown(const dsa_prompt_t *prompt)
{
    size_t     bytes;
    uint32_t   i;
    dsa_buf_t  b;

    memset(&b, 0, sizeof(dsa_buf_t));
    bytes = 0;

    for (i = 0; i < prompt->n; i++) {
        bytes += prompt->segments[i].text.len;
        dsa_buf_add(&b, prompt->segments[i].text.data,
                    prompt->segments[i].text.len);
    }

    dsa_buf_add(&b, "", 1);
    assert_false(b.failed);
    assert_int_equal(bytes, prompt->bytes);

    return b.data;
}


/*
 * The question behind the conversation.  A prompt that ends where the model
 * would answer is a prefix of that with the question.
 */

static void
test_prompt(void **state)
{
    char                *text, *before;
    size_t               i;
    dsa_err_t            err;
    dsa_chat_t           chat;
    dsa_arena_t         *arena;
    dsa_prompt_t         prompt;
    dsa_message_t        m[16];

    static const struct {
        const dsa_family_t  *family;
        const char          *messages;
        const char          *end;
    } rows[] = {
        { &dsa_deepseek, "su",
          DSA_DEEPSEEK_THINK DSA_DEEPSEEK_THINK_END DSA_DEEPSEEK_EOS
          DSA_DEEPSEEK_USER "Why?" DSA_DEEPSEEK_ASSISTANT
          DSA_DEEPSEEK_THINK_END "Summary:" },
        { &dsa_deepseek, "sua",
          DSA_DEEPSEEK_USER "u" DSA_DEEPSEEK_ASSISTANT DSA_DEEPSEEK_THINK_END
          "a" DSA_DEEPSEEK_EOS DSA_DEEPSEEK_USER "Why?"
          DSA_DEEPSEEK_ASSISTANT DSA_DEEPSEEK_THINK_END },
        { &dsa_glm_5_2, "su",
          "<|user|>u<|assistant|><think></think><|user|>Why?<|assistant|>"
          "<think></think>Summary:" },
        { &dsa_glm_5_2, "sua",
          "<|user|>u<|assistant|><think></think>a<|user|>Why?<|assistant|>"
          "<think></think>" }
    };

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        arena = dsa_arena_create(1024 * 1024);
        memset(&chat, 0, sizeof(dsa_chat_t));

        chat.messages = m;
        chat.n_messages = compose(m, rows[i].messages);
        chat.thinking = 1;
        chat.max_tokens = 5;
        chat.json_object = 1;
        chat.tool_choice = DSA_TOOL_CHOICE_REQUIRED;

        assert_int_equal(rows[i].family->encode(&prompt, arena, &chat, &err),
                         DSA_OK);
        before = shown(&prompt);

        dsa_compact_ask(&chat, &m[chat.n_messages], dsa_strz("Why?"));
        chat.n_messages++;

        assert_int_equal(chat.question, 1);
        assert_int_equal(chat.max_tokens, 0);
        assert_int_equal(chat.json_object, 0);
        assert_int_equal(chat.tool_choice, DSA_TOOL_CHOICE_NONE);

        assert_int_equal(dsa_compact_prompt(rows[i].family, &prompt, arena,
                                            &chat, &err), DSA_OK);
        text = shown(&prompt);

        if (strlen(text) < strlen(rows[i].end)
            || strcmp(text + strlen(text) - strlen(rows[i].end), rows[i].end)
               != 0)
        {
            fail_msg("%s: the end of \"%s\" is not \"%s\"", rows[i].messages,
                     text, rows[i].end);
        }

        if (rows[i].messages[2] == '\0') {
            assert_memory_equal(text, before, strlen(before));
        }

        free(text);
        free(before);
        dsa_arena_destroy(arena);
    }

    /* the server's own question */

    memset(&chat, 0, sizeof(dsa_chat_t));
    dsa_compact_ask(&chat, m, dsa_strz(""));
    assert_true(m[0].content.len > 100);
    assert_int_equal(m[0].role, DSA_ROLE_USER);
}


static void
test_replace(void **state)
{
    dsa_chat_t      chat;
    uint32_t        items[16];
    dsa_arena_t    *arena;
    dsa_message_t   m[16];

    static const char  text[] = DSA_COMPACT_HEAD "the words";

    arena = dsa_arena_create(65536);
    memset(&chat, 0, sizeof(dsa_chat_t));

    chat.messages = m;
    chat.n_messages = compose(m, "sduaAdut");
    chat.n_stored = 3;
    chat.items = items;

    assert_int_equal(dsa_compact_replace(&chat, arena, dsa_strz("the words")),
                     DSA_OK);

    assert_int_equal(chat.n_messages, 4);
    assert_int_equal(chat.messages[0].role, DSA_ROLE_SYSTEM);
    assert_int_equal(chat.messages[1].role, DSA_ROLE_DEVELOPER);
    assert_int_equal(chat.messages[2].role, DSA_ROLE_DEVELOPER);
    assert_int_equal(chat.messages[3].role, DSA_ROLE_USER);
    assert_int_equal(chat.messages[3].compact, DSA_COMPACT_ALL);
    assert_int_equal(chat.messages[3].content.len, sizeof(text) - 1);
    assert_memory_equal(chat.messages[3].content.data, text,
                        sizeof(text) - 1);
    assert_int_equal(chat.n_stored, 0);
    assert_null(chat.items);

    dsa_arena_destroy(arena);
}


/* The last message of the user behind a summary, which can be long. */

static void
test_quote(void **state)
{
    char           *text;
    size_t          i, len;
    dsa_buf_t       b;
    dsa_chat_t      chat;
    dsa_message_t   m[16];

    static const char  head[] = "\n\nThe last message of the user was:\n\n";

    static const struct {
        const char  *messages;
        uint32_t     question;
        const char  *quote;
    } rows[] = {
        { "suat", 0, "u" }, { "sa", 0, NULL }, { "uU", 0, "u" },
        { "A", 0, NULL }, { "uau", 1, "u" }, { "u", 1, NULL }, { "", 0, NULL }
    };

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        memset(&b, 0, sizeof(dsa_buf_t));
        memset(&chat, 0, sizeof(dsa_chat_t));

        chat.messages = m;
        chat.n_messages = compose(m, rows[i].messages);
        chat.question = rows[i].question;

        dsa_compact_quote(&b, &chat);

        if (rows[i].quote == NULL) {
            assert_int_equal(b.len, 0);

        } else {
            assert_int_equal(b.len, sizeof(head));
            assert_memory_equal(b.data, head, sizeof(head) - 1);
            assert_int_equal(b.data[b.len - 1], rows[i].quote[0]);
        }

        dsa_buf_free(&b);
    }

    /* characters of 3 bytes, of which the limit would cut one */

    text = malloc(DSA_COMPACT_QUOTE + 9);
    assert_non_null(text);

    for (i = 0; i < DSA_COMPACT_QUOTE + 3; i += 3) {
        memcpy(text + i, "\xe2\x82\xac", 3);
    }

    for (len = DSA_COMPACT_QUOTE - 3; len <= i; len += 3) {
        memset(&b, 0, sizeof(dsa_buf_t));
        (void) compose(m, "u");
        chat.messages = m;
        chat.n_messages = 1;
        chat.question = 0;
        m[0].content = dsa_str(text, len - len % 3);

        dsa_compact_quote(&b, &chat);

        assert_int_equal((b.len - (sizeof(head) - 1)) % 3, 0);
        assert_true(b.len - (sizeof(head) - 1) <= DSA_COMPACT_QUOTE);
        assert_true(b.len - (sizeof(head) - 1) > DSA_COMPACT_QUOTE - 6);

        dsa_buf_free(&b);
    }

    free(text);
}


static void
test_memory(void **state)
{
    int             rc, done[3];
    size_t          limit;
    dsa_err_t       err;
    dsa_chat_t      chat;
    dsa_arena_t    *arena;
    dsa_prompt_t    prompt;
    dsa_message_t   m[16], question;
    dsa_refusal_t   refusal;

    memset(done, 0, sizeof(done));

    for (limit = 0; limit < 16384; limit += 16) {
        arena = dsa_arena_create(limit);
        memset(&chat, 0, sizeof(dsa_chat_t));
        memset(&refusal, 0, sizeof(dsa_refusal_t));

        chat.messages = m;
        chat.n_messages = compose(m, "suaAuau");

        rc = dsa_compact_apply(&chat, arena, &refusal);
        assert_true(rc == DSA_OK || refusal.status == 413);
        assert_true(!done[0] || rc == DSA_OK);
        done[0] |= rc == DSA_OK;

        rc = dsa_compact_replace(&chat, arena, dsa_strz("words"));
        assert_true(rc == DSA_OK || rc == DSA_ERROR);
        done[1] |= rc == DSA_OK;

        chat.messages = m;
        chat.n_messages = compose(m, "su");
        dsa_compact_ask(&chat, &question, dsa_strz("Why?"));
        m[chat.n_messages++] = question;

        rc = dsa_compact_prompt(&dsa_deepseek, &prompt, arena, &chat, &err);
        assert_true(rc == DSA_OK || err.text[0] != '\0');
        done[2] |= rc == DSA_OK;

        dsa_arena_destroy(arena);
    }

    assert_true(done[0] && done[1] && done[2]);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_apply),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_prompt),
        cmocka_unit_test(test_replace),
        cmocka_unit_test(test_quote),
        cmocka_unit_test(test_memory)
    };

    return cmocka_run_group_tests_name("compact", tests, NULL, NULL);
}
