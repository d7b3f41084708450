
/*
 * Copyright (C) The nginx-dsa authors
 *
 * context/clear.c: which tool uses and which reasoning leave the prompt.  What
 * leaves is compared with the definition in clear.h, step by step, with a token
 * for each byte of the prompts of the families.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "context/anthropic.h"
#include "context/clear.h"
#include "context/family.h"
#include "context/sampled.h"
#include "t/unit/numbers.h"


#define USES       40
#define COUNTS     18           /* the most counts of an edit, see below */
#define LEN        (sizeof(DSA_CLEAR_RESULT) - 1)


typedef struct {
    const dsa_family_t  *family;
    dsa_arena_t         *arena;
    dsa_chat_t           chat;
} talk_t;


/* A body of the Messages API, with " in place of '. */

static void
read_body(talk_t *t, const char *family, const char *text)
{
    char                     *p, *copy;
    dsa_err_t                 err;
    dsa_json_t               *root;
    dsa_refusal_t             refusal;
    static dsa_chat_limits_t  limits = { 1000, 4, 1 };

    memset(t, 0, sizeof(talk_t));
    memset(&refusal, 0, sizeof(dsa_refusal_t));

    t->family = dsa_family_find(family);
    t->arena = dsa_arena_create(16 * 1024 * 1024);
    assert_non_null(t->family);
    assert_non_null(t->arena);

    copy = dsa_arena_dup(t->arena, dsa_strz(text));
    assert_non_null(copy);

    for (p = copy; *p != '\0'; p++) {
        if (*p == '\'') {
            *p = '"';
        }
    }

    root = dsa_json_parse(t->arena, copy, strlen(copy), 32, &err);

    if (root == NULL) {
        fail_msg("%s: %s", copy, err.text);
    }

    if (dsa_anthropic_read(&t->chat, t->arena, root, &limits, 0, &refusal)
        != DSA_OK
        || dsa_family_apply(t->family, &t->chat, &refusal) != DSA_OK
        || dsa_chat_check(&t->chat, &refusal) != DSA_OK)
    {
        fail_msg("%s: %s", copy, refusal.message);
    }
}


static void
forget(talk_t *t)
{
    dsa_arena_destroy(t->arena);
}


/* The bytes of the prompt of a chat. */

static uint32_t
count(const talk_t *t, const dsa_chat_t *chat)
{
    dsa_err_t      err;
    uint32_t       n;
    dsa_arena_t   *arena;
    dsa_prompt_t   prompt;

    arena = dsa_arena_create(16 * 1024 * 1024);
    assert_non_null(arena);

    if (t->family->encode(&prompt, arena, chat, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }

    n = prompt.bytes;
    dsa_arena_destroy(arena);

    return n;
}


/* Applies an edit.  Returns how many prompts were counted. */

static uint32_t
edit_chat(const talk_t *t, dsa_clear_t *c, const dsa_chat_t *chat,
    const dsa_edit_t *edit, dsa_chat_t *out)
{
    int       rc;
    uint32_t  n;

    assert_int_equal(dsa_clear_init(c, t->arena, chat, edit), DSA_OK);

    rc = c->n != 0 ? DSA_AGAIN : DSA_OK;

    for (n = 0; rc == DSA_AGAIN; n++) {
        assert_int_equal(dsa_clear_chat(c, t->arena, out), DSA_OK);
        rc = dsa_clear_counted(c, count(t, out), 0);
    }

    assert_int_equal(dsa_clear_chat(c, t->arena, out), DSA_OK);

    return n;
}


/* The text of a prompt with short names for the control tokens of no use. */

static char *
shown(const talk_t *t, const dsa_chat_t *chat)
{
    uint32_t       i;
    dsa_buf_t      b;
    dsa_err_t      err;
    dsa_prompt_t   prompt;

    memset(&b, 0, sizeof(dsa_buf_t));

    assert_int_equal(t->family->encode(&prompt, t->arena, chat, &err), DSA_OK);

    for (i = 0; i < prompt.n; i++) {
        dsa_buf_add(&b, prompt.segments[i].text.data,
                    prompt.segments[i].text.len);
    }

    dsa_buf_add(&b, "", 1);
    assert_false(b.failed);

    return b.data;
}


/* A conversation of n uses with results of these lengths. */

static void
make_uses(talk_t *t, const char *family, uint32_t n, const uint32_t *lengths)
{
    uint32_t   i, k;
    dsa_buf_t  b;

    memset(&b, 0, sizeof(dsa_buf_t));

    dsa_buf_addz(&b, "{'model':'m','max_tokens':9,'messages':["
                     "{'role':'user','content':'q'}");

    for (i = 0; i < n; i++) {
        dsa_buf_printf(&b, ",{'role':'assistant','content':[{'type':"
                       "'tool_use','id':'c%u','name':'%s','input':{'k':"
                       "'v%u'}}]},{'role':'user','content':[{'type':"
                       "'tool_result','tool_use_id':'c%u','content':'", i,
                       i % 3 == 2 ? "g" : "f", i, i);

        for (k = 0; k < lengths[i]; k++) {
            dsa_buf_add(&b, "x", 1);
        }

        dsa_buf_addz(&b, "'}]}");
    }

    dsa_buf_addz(&b, "]}");
    dsa_buf_add(&b, "", 1);
    assert_false(b.failed);

    read_body(t, family, b.data);
    dsa_buf_free(&b);
}


/*
 * What leaves by the definition: the tokens that leave with the first k parts,
 * and k itself.
 */

static uint32_t
define(const uint32_t *lengths, uint32_t n, const dsa_edit_t *edit,
    uint32_t *tokens)
{
    uint32_t  i, k, may, all, want, parts[USES];

    may = n > edit->keep ? n - edit->keep : 0;
    all = 0;
    k = 0;

    if (n <= edit->trigger) {
        may = 0;
    }

    for (i = 0; i < may; i++) {
        if (lengths[i] <= LEN || (edit->n_excluded != 0 && i % 3 == 2)) {
            continue;
        }

        parts[k++] = lengths[i] - LEN;
        all += lengths[i] - LEN;
    }

    *tokens = 0;

    if (all < edit->at_least || all == 0) {
        return 0;
    }

    want = edit->at_least != 0 ? all / edit->at_least * edit->at_least : all;

    for (i = 0; *tokens < want; i++) {
        *tokens += parts[i];
    }

    return edit->at_least != 0 ? i : k;
}


static void
test_random(void **state)
{
    size_t       f;
    talk_t       t;
    uint64_t     r;
    uint32_t     i, n, k, tokens, counts, before, lengths[USES];
    dsa_str_t    excluded;
    dsa_chat_t   out;
    dsa_edit_t   edit;
    dsa_clear_t  c;

    static const char *const  families[] = { "deepseek", "glm-5.2" };

    excluded = dsa_strz("g");

    for (r = 0; r < 600; r++) {
        f = r % 2;
        n = 1 + dsa_t_random(USES);

        for (i = 0; i < n; i++) {
            lengths[i] = dsa_t_random(dsa_t_random(4) == 0 ? 80 : 600);
        }

        memset(&edit, 0, sizeof(dsa_edit_t));
        edit.by_uses = 1;
        edit.trigger = 1 + dsa_t_random(10);
        edit.keep = dsa_t_random(6);
        edit.at_least = dsa_t_random(3) == 0 ? 0 : dsa_t_random(2000);

        if (dsa_t_random(2)) {
            edit.excluded = &excluded;
            edit.n_excluded = 1;
        }

        make_uses(&t, families[f], n, lengths);
        before = count(&t, &t.chat);
        counts = edit_chat(&t, &c, &t.chat, &edit, &out);

        k = define(lengths, n, &edit, &tokens);

        if (c.cut != k || c.tokens != tokens) {
            fail_msg("%u uses, at least %u, keep %u: %u parts with %u tokens "
                     "instead of %u with %u", n, edit.at_least, edit.keep,
                     c.cut, c.tokens, k, tokens);
        }

        assert_int_equal(count(&t, &out), before - tokens);
        assert_true(c.left == 0 || c.left == before - tokens);
        assert_true(counts <= COUNTS);

        /* the client's history is as it was */

        assert_int_equal(count(&t, &t.chat), before);

        forget(&t);
    }
}


/*
 * Requests of a conversation that grows: the parts that leave are a prefix of
 * those that leave later, and each step clears at_least tokens on average.
 */

static void
test_stable(void **state)
{
    talk_t       t;
    uint32_t     i, n, last, groups, sum, lengths[USES];
    dsa_chat_t   out;
    dsa_edit_t   edit;
    dsa_clear_t  c;

    memset(&edit, 0, sizeof(dsa_edit_t));
    edit.by_uses = 1;
    edit.trigger = 1;
    edit.keep = 2;
    edit.at_least = 1000;

    for (i = 0; i < USES; i++) {
        lengths[i] = LEN + 100 + dsa_t_random(200);
    }

    last = 0;
    groups = 0;
    sum = 0;

    for (n = 3; n <= USES; n++) {
        make_uses(&t, "deepseek", n, lengths);
        (void) edit_chat(&t, &c, &t.chat, &edit, &out);

        assert_true(c.cut >= last);
        assert_true(c.cut == 0 || c.tokens >= edit.at_least);

        groups += c.cut != last;
        last = c.cut;
        sum = c.tokens;

        forget(&t);
    }

    assert_true(groups > 3);
    assert_true(groups <= sum / edit.at_least);
}


/* Counts that no prompt has end, too: another engine may have other tokens. */

static void
test_counts(void **state)
{
    int          rc;
    talk_t       t;
    uint32_t     i, n, r, lengths[USES];
    dsa_edit_t   edit;
    dsa_clear_t  c;

    for (i = 0; i < USES; i++) {
        lengths[i] = 100 + i;
    }

    make_uses(&t, "deepseek", USES, lengths);

    for (r = 0; r < 20000; r++) {
        memset(&edit, 0, sizeof(dsa_edit_t));
        edit.type = DSA_EDIT_TOOL_USES;
        edit.trigger = 1;
        edit.by_uses = dsa_t_random(2);
        edit.keep = dsa_t_random(USES);
        edit.at_least = dsa_t_random(3) == 0 ? UINT32_MAX - 1
                                             : dsa_t_random(100);

        assert_int_equal(dsa_clear_init(&c, t.arena, &t.chat, &edit), DSA_OK);

        rc = c.n != 0 ? DSA_AGAIN : DSA_OK;

        for (n = 0; rc == DSA_AGAIN; n++) {
            assert_true(n < COUNTS);
            assert_true(c.cut <= c.n);

            rc = dsa_clear_counted(&c, dsa_t_random(2) ? dsa_t_random(1000)
                                                : UINT32_MAX - dsa_t_random(9),
                                   dsa_t_random(8) == 0);
        }

        assert_true(c.cut <= c.n);
        assert_true(c.cut != 0 || c.tokens == 0);
        assert_true(c.tokens != 0 || c.cut == 0 || c.bound);

        if (r % 1000 == 999) {
            forget(&t);
            make_uses(&t, "deepseek", USES, lengths);
        }
    }

    forget(&t);
}


/* Tokens that are not where the bytes are: the search halves its range. */

static void
test_search(void **state)
{
    int           rc;
    talk_t        t;
    uint32_t      i, n, k, lengths[200];
    dsa_edit_t    edit;
    dsa_clear_t   c;

    for (i = 0; i < 200; i++) {
        lengths[i] = 100;
    }

    memset(&edit, 0, sizeof(dsa_edit_t));
    edit.by_uses = 1;
    edit.trigger = 1;
    edit.at_least = 1000;

    make_uses(&t, "deepseek", 200, lengths);

    for (k = 1; k <= 200; k += 9) {
        assert_int_equal(dsa_clear_init(&c, t.arena, &t.chat, &edit), DSA_OK);
        assert_int_equal(dsa_clear_counted(&c, 5000, 0), DSA_AGAIN);

        /* all of them are in part k */

        rc = DSA_AGAIN;

        for (n = 1; rc == DSA_AGAIN; n++) {
            assert_true(n < COUNTS);
            rc = dsa_clear_counted(&c, c.cut < k ? 5000 : 4000, 0);
        }

        assert_int_equal(c.cut, k);
        assert_int_equal(c.tokens, 1000);
        assert_int_equal(c.left, 4000);
    }

    forget(&t);
}


/* A prompt that is counted up to a limit: bytes take the place of tokens. */

static void
test_bound(void **state)
{
    size_t        i;
    talk_t        t;
    uint32_t      lengths[4] = { LEN + 200, LEN + 200, LEN + 200, LEN + 200 };
    dsa_edit_t    edit;
    dsa_clear_t   c;

    static const struct {
        uint32_t  at_least;
        uint32_t  cut;
    } rows[] = { { 0, 4 }, { 1, 4 }, { 25, 4 }, { 30, 4 }, { 40, 4 },
                 { 70, 3 }, { 75, 3 }, { 99, 4 }, { 100, 4 }, { 101, 0 } };

    memset(&edit, 0, sizeof(dsa_edit_t));
    edit.trigger = 5000;

    make_uses(&t, "deepseek", 4, lengths);

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        edit.at_least = rows[i].at_least;

        assert_int_equal(dsa_clear_init(&c, t.arena, &t.chat, &edit), DSA_OK);
        assert_int_equal(c.n, 4);
        assert_int_equal(dsa_clear_limit(&c), 5000);
        assert_int_equal(dsa_clear_counted(&c, 4000, 1),
                         rows[i].cut != 0 ? DSA_AGAIN : DSA_OK);
        assert_int_equal(c.cut, rows[i].cut);

        if (c.cut == 0) {
            continue;
        }

        assert_int_equal(dsa_clear_limit(&c), 0);
        assert_int_equal(dsa_clear_counted(&c, 3850, 0), DSA_OK);
        assert_int_equal(c.cut, rows[i].cut);
        assert_int_equal(c.tokens, 150);
        assert_int_equal(c.left, 3850);
    }

    /* what stays is longer than the limit, too */

    edit.at_least = 70;
    assert_int_equal(dsa_clear_init(&c, t.arena, &t.chat, &edit), DSA_OK);
    assert_int_equal(dsa_clear_counted(&c, 4000, 1), DSA_AGAIN);
    assert_int_equal(dsa_clear_counted(&c, 4000, 1), DSA_OK);
    assert_int_equal(c.cut, 3);
    assert_int_equal(c.tokens, 0);
    assert_int_equal(c.left, 0);

    /* the trigger is not exceeded */

    assert_int_equal(dsa_clear_init(&c, t.arena, &t.chat, &edit), DSA_OK);
    assert_int_equal(dsa_clear_counted(&c, 5000, 0), DSA_OK);
    assert_int_equal(c.cut, 0);

    forget(&t);
}


/* Calls that the conversation has left without a result, and raw arguments. */

static void
test_calls(void **state)
{
    int              i;
    char            *text;
    talk_t           t;
    dsa_chat_t       out;
    dsa_edit_t       edit;
    dsa_clear_t      c;
    dsa_sampled_t    sampled;
    dsa_message_t    m[6];
    dsa_tool_call_t  calls[3];
    char             result[2][80];

    read_body(&t, "deepseek", "{'model':'m','max_tokens':9,'messages':["
              "{'role':'user','content':'q'}]}");

    memset(m, 0, sizeof(m));
    memset(calls, 0, sizeof(calls));
    memset(&sampled, 0, sizeof(dsa_sampled_t));
    memset(&edit, 0, sizeof(dsa_edit_t));

    for (i = 0; i < 3; i++) {
        calls[i].id = dsa_str(&"abc"[i], 1);
        calls[i].name = dsa_strz("f");
        calls[i].raw = dsa_strz("{\"k\": \"cut");
    }

    memset(result, 'x', sizeof(result));

    m[0] = t.chat.messages[0];
    m[1].role = DSA_ROLE_ASSISTANT;
    m[1].calls = calls;
    m[1].n_calls = 3;
    m[1].sampled = &sampled;
    m[2].role = DSA_ROLE_TOOL;
    m[2].tool_call_id = calls[0].id;
    m[2].content = dsa_str(result[0], 80);
    m[3].role = DSA_ROLE_TOOL;
    m[3].tool_call_id = calls[2].id;
    m[3].content = dsa_str(result[1], 80);
    m[3].notes = 10;
    m[4].role = DSA_ROLE_USER;
    m[4].content = dsa_strz("p");

    t.chat.messages = m;
    t.chat.n_messages = 5;

    edit.by_uses = 1;
    edit.trigger = 1;
    edit.all_inputs = 1;

    assert_int_equal(dsa_clear_init(&c, t.arena, &t.chat, &edit), DSA_OK);
    assert_int_equal(c.n, 2);
    assert_int_equal(dsa_clear_counted(&c, 1000, 0), DSA_AGAIN);
    assert_int_equal(dsa_clear_counted(&c, 900, 0), DSA_OK);
    assert_int_equal(dsa_clear_chat(&c, t.arena, &out), DSA_OK);

    assert_ptr_not_equal(out.messages[1].calls, calls);
    assert_null(out.messages[1].sampled);
    assert_ptr_equal(m[1].sampled, &sampled);
    assert_int_equal(calls[0].raw.len, strlen("{\"k\": \"cut"));

    text = shown(&t, &out);

    /* the second call has no result, and keeps its argument */

    assert_null(strstr(strstr(text, "cut") + 1, "cut"));
    assert_non_null(strstr(text, "<result>" DSA_CLEAR_RESULT "</result>\n"
                           "<result>" DSA_CLEAR_RESULT "xxxxxxxxxx</result>"));
    free(text);

    forget(&t);
}


/* Turns with reasoning, for families that keep it and for one that does not. */

static void
test_turns(void **state)
{
    char         *text;
    size_t        i;
    talk_t        t;
    dsa_chat_t    out;
    dsa_edit_t    edit;
    dsa_clear_t   c;

    static const char  talk[] = "{'model':'m','max_tokens':9,'thinking':"
        "{'type':'adaptive'},'context_management':{'edits':[{'type':"
        "'clear_thinking_20251015'}]},'messages':["
        "{'role':'user','content':'q'},"
        "{'role':'assistant','content':[{'type':'thinking','thinking':'R1',"
        "'signature':''},{'type':'tool_use','id':'c','name':'f','input':{}}]},"
        "{'role':'user','content':[{'type':'tool_result','tool_use_id':'c'}]},"
        "{'role':'assistant','content':[{'type':'thinking','thinking':'R2',"
        "'signature':''},{'type':'text','text':'a'}]},"
        "{'role':'user','content':'r'},"
        "{'role':'assistant','content':'no reasoning'},"
        "{'role':'user','content':'s'},"
        "{'role':'assistant','content':[{'type':'thinking','thinking':'R3',"
        "'signature':''},{'type':'text','text':'b'}]},"
        "{'role':'user','content':'t'}]}";

    static const struct {
        const char  *family;
        uint32_t     keep;
        uint32_t     turns;
        const char  *kept;
    } rows[] = {
        { "deepseek", 1, 0, "" },
        { "glm-5", 1, 1, "R3" },
        { "glm-5.1", 1, 1, "R3" },
        { "glm-5.2", 1, 1, "R3" },
        { "glm-5.3", 1, 1, "R3" },
        { "glm-5.2", 2, 0, "R1R2R3" },
        { "glm-5.2", DSA_EDIT_ALL, 0, "R1R2R3" },
        { "deepseek", DSA_EDIT_ALL, 0, "" }
    };

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char        *p;
        dsa_buf_t    b;

        read_body(&t, rows[i].family, talk);

        assert_int_equal(t.chat.n_edits, 1);
        assert_int_equal(t.chat.n_first, 1);
        assert_int_equal(t.chat.edits[0].type, DSA_EDIT_THINKING);

        edit = t.chat.edits[0];
        edit.keep = rows[i].keep;

        (void) edit_chat(&t, &c, &t.chat, &edit, &out);
        assert_int_equal(c.cut, rows[i].turns);

        text = shown(&t, &out);
        memset(&b, 0, sizeof(dsa_buf_t));

        for (p = text; (p = strchr(p, 'R')) != NULL; p++) {
            if (p[1] >= '1' && p[1] <= '9') {
                dsa_buf_add(&b, p, 2);
            }
        }

        dsa_buf_add(&b, "", 1);
        assert_false(b.failed);

        if (strcmp(b.data, rows[i].kept) != 0) {
            fail_msg("%s, %u turns stay: %s", rows[i].family, rows[i].keep,
                     text);
        }

        dsa_buf_free(&b);
        free(text);
        forget(&t);
    }
}


/* What is not of a tool, and an edit behind another one. */

static void
test_again(void **state)
{
    talk_t        t;
    uint32_t      lengths[3] = { 100, 100, 100 };
    dsa_chat_t    once, twice;
    dsa_edit_t    edit;
    dsa_clear_t   c;

    make_uses(&t, "glm-5.2", 3, lengths);

    memset(&edit, 0, sizeof(dsa_edit_t));
    edit.by_uses = 1;
    edit.trigger = 1;
    edit.keep = 1;

    (void) edit_chat(&t, &c, &t.chat, &edit, &once);
    assert_int_equal(c.cut, 2);
    assert_int_equal(edit_chat(&t, &c, &once, &edit, &twice), 0);
    assert_int_equal(c.n, 0);

    edit.keep = 0;
    (void) edit_chat(&t, &c, &once, &edit, &twice);
    assert_int_equal(c.cut, 1);
    assert_int_equal(c.tokens, 100 - LEN);

    /* arguments that an earlier edit has left */

    edit.all_inputs = 1;
    (void) edit_chat(&t, &c, &twice, &edit, &once);
    assert_int_equal(c.cut, 3);
    (void) edit_chat(&t, &c, &once, &edit, &twice);
    assert_int_equal(c.cut, 0);

    forget(&t);
}


static void
test_memory(void **state)
{
    int           rc, done;
    size_t        limit;
    talk_t        t;
    uint32_t      lengths[3] = { 100, 100, 100 };
    dsa_chat_t    out;
    dsa_edit_t    edit;
    dsa_clear_t   c;
    dsa_arena_t  *small;

    make_uses(&t, "deepseek", 3, lengths);

    memset(&edit, 0, sizeof(dsa_edit_t));
    edit.by_uses = 1;
    edit.trigger = 1;
    edit.all_inputs = 1;
    t.chat.messages[2].notes = 10;
    done = 0;

    for (limit = 0; limit < 16384; limit += 16) {
        small = dsa_arena_create(limit);
        assert_non_null(small);

        rc = dsa_clear_init(&c, small, &t.chat, &edit);

        if (rc == DSA_OK) {
            assert_int_equal(c.n, 3);
            c.cut = c.n;
            rc = dsa_clear_chat(&c, small, &out);
        }

        assert_true(rc == DSA_OK || rc == DSA_ERROR);
        assert_true(!done || rc == DSA_OK);
        done |= rc == DSA_OK;

        dsa_arena_destroy(small);
    }

    assert_true(done);
    forget(&t);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_stable),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_search),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_memory)
    };

    return cmocka_run_group_tests_name("clear", tests, NULL, NULL);
}
