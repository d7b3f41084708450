
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Cuts of long histories.  The oracle carries out the replay that window.h
 * describes, request by request, with sizes that it computes itself.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "context/deepseek/deepseek.h"
#include "context/sampled.h"
#include "context/summary.h"
#include "context/window.h"


#define MOST        160             /* messages of a conversation */
#define ROUNDS      20000           /* random conversations */
#define HEAD        3               /* tokens that each message adds */


typedef struct {
    dsa_chat_t       chat;
    dsa_message_t    m[MOST];
    dsa_tool_call_t  calls[MOST][3];
    char             text[4096];
} talk_t;


static uint64_t  state = 88172645463325252ULL;


static uint32_t
draw(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;

    return (uint32_t) (state >> 33) % n;
}


/* A text of so many bytes; a token of the test is three of them. */

static dsa_str_t
text(talk_t *t, uint32_t len)
{
    return dsa_str(t->text, len);
}


static void
add(talk_t *t, dsa_role_e role, uint32_t len)
{
    dsa_message_t  *m;

    assert_true(t->chat.n_messages < MOST);

    m = &t->m[t->chat.n_messages++];
    memset(m, 0, sizeof(dsa_message_t));
    m->role = role;
    m->content = text(t, len);
}


/* An assistant message with n calls, and their results. */

static void
add_round(talk_t *t, uint32_t n, uint32_t reasoning, uint32_t len)
{
    uint32_t          i, at;
    dsa_tool_call_t  *c;

    static const char *const  ids[] = { "a", "b", "c" };

    at = t->chat.n_messages;
    add(t, DSA_ROLE_ASSISTANT, 0);
    t->m[at].calls = t->calls[at];
    t->m[at].n_calls = n;
    t->m[at].reasoning = text(t, reasoning);
    t->m[at].has_reasoning = 1;

    for (i = 0; i < n; i++) {
        c = &t->calls[at][i];
        memset(c, 0, sizeof(dsa_tool_call_t));
        c->id = dsa_strz(ids[i]);
        c->name = dsa_strz("f");
        c->raw = text(t, len / 2);

        add(t, DSA_ROLE_TOOL, len);
        t->m[t->chat.n_messages - 1].tool_call_id = c->id;
    }
}


static void
start(talk_t *t)
{
    memset(t, 0, sizeof(talk_t));
    memset(t->text, 'x', sizeof(t->text));
    t->chat.messages = t->m;
    t->chat.thinking = 1;
}


/* The test's size of a chat: reasoning counts after the message "user" only. */

static uint32_t
size_of(const dsa_chat_t *chat)
{
    uint32_t  i, k, tokens, user;

    user = 0;

    for (i = 0; i < chat->n_messages; i++) {
        if (chat->messages[i].role == DSA_ROLE_USER) {
            user = i;
        }
    }

    tokens = 0;

    for (i = 0; i < chat->n_messages; i++) {
        tokens += HEAD + chat->messages[i].content.len / 3;

        for (k = 0; k < chat->messages[i].n_calls; k++) {
            tokens += chat->messages[i].calls[k].raw.len / 3;
        }

        if (i >= user) {
            tokens += chat->messages[i].reasoning.len / 3;
        }
    }

    return tokens;
}


/* Runs the replay of the code; *counts: how many prompts were counted. */

static uint32_t
cut_of(const dsa_chat_t *chat, dsa_window_e strategy, uint32_t threshold,
    dsa_window_t *w, dsa_chat_t *left, dsa_arena_t *arena, uint32_t *counts)
{
    int  rc;

    assert_int_equal(dsa_window_init(w, arena, chat, strategy, threshold),
                     DSA_OK);
    *counts = 0;

    do {
        assert_int_equal(dsa_window_chat(w, arena, left), DSA_OK);
        rc = dsa_window_counted(w, size_of(left));
        ++*counts;
        assert_in_range(*counts, 1, 4000);

    } while (rc == DSA_AGAIN);

    assert_int_equal(rc, DSA_OK);

    return w->cut;
}


/* Without the first "cut" messages with calls and their results. */

static void
without(const dsa_chat_t *chat, uint32_t end, uint32_t cut, int emptied,
    dsa_chat_t *out, dsa_message_t *m)
{
    int       drop;
    uint32_t  i, seen, user;

    *out = *chat;
    out->messages = m;
    out->n_messages = 0;
    seen = 0;
    drop = 0;
    user = 0;

    for (i = 0; i < chat->n_messages; i++) {
        if (chat->messages[i].role == DSA_ROLE_USER) {
            user = i;
        }
    }

    for (i = 0; i < end; i++) {
        if (chat->messages[i].n_calls != 0) {
            drop = ++seen <= cut;

        } else if (chat->messages[i].role != DSA_ROLE_TOOL) {
            drop = 0;
        }

        if (!drop) {
            m[out->n_messages] = chat->messages[i];

            if (emptied && i < user) {
                m[out->n_messages].reasoning.len = 0;
            }

            out->n_messages++;
        }
    }
}


/* A cut with a summary has to leave room for it. */

static uint32_t
limit_of(dsa_window_e strategy, uint32_t threshold, uint32_t cut)
{
    uint32_t  reserve;

    if (strategy != DSA_WINDOW_SUMMARY || cut == 0) {
        return threshold;
    }

    reserve = dsa_summary_reserve(threshold);

    return reserve < threshold ? threshold - reserve : 0;
}


/* The oracle: one request after another, each cut until it fits. */

static uint32_t
replayed(const dsa_chat_t *chat, dsa_window_e strategy, uint32_t threshold)
{
    uint32_t       end, i, cut, rounds, may, held;
    dsa_chat_t     left;
    dsa_role_e     plain;
    dsa_message_t  m[MOST];

    cut = 0;

    for (end = 1; end <= chat->n_messages; end++) {
        if (end < chat->n_messages
            && (chat->messages[end].role != DSA_ROLE_ASSISTANT
                || chat->messages[end].prefix
                || chat->messages[end - 1].role == DSA_ROLE_SYSTEM
                || chat->messages[end - 1].n_calls != 0))
        {
            continue;
        }

        rounds = 0;
        plain = DSA_ROLE_SYSTEM;

        for (i = 0; i < end; i++) {
            if (chat->messages[i].n_calls != 0) {
                rounds++;

            } else if (chat->messages[i].role != DSA_ROLE_TOOL
                       && !chat->messages[i].prefix)
            {
                plain = chat->messages[i].role;
            }
        }

        may = plain == DSA_ROLE_USER || plain == DSA_ROLE_ASSISTANT
              || rounds == 0 ? rounds : rounds - 1;

        for ( ;; ) {
            without(chat, end, cut, end != chat->n_messages, &left, m);

            if (size_of(&left) <= limit_of(strategy, threshold, cut)
                || cut >= may)
            {
                break;
            }

            held = may - cut;
            cut += strategy == DSA_WINDOW_DISCARD_75 ? (3 * held + 3) / 4
                                                     : held;
        }
    }

    return cut;
}


static void
random_talk(talk_t *t, uint32_t n)
{
    uint32_t  large;

    start(t);
    large = 1 + draw(1500);

    if (draw(4) != 0) {
        add(t, DSA_ROLE_SYSTEM, draw(300));
    }

    if (draw(8) != 0 || t->chat.n_messages == 0) {
        add(t, DSA_ROLE_USER, draw(large));
    }

    while (t->chat.n_messages < n) {
        switch (draw(12)) {

        case 0:
            add(t, DSA_ROLE_ASSISTANT, draw(large));
            t->m[t->chat.n_messages - 1].reasoning = text(t, draw(large));
            add(t, DSA_ROLE_USER, draw(large));
            break;

        case 1:
            add(t, DSA_ROLE_ASSISTANT, draw(100));
            add_round(t, 1, draw(large), draw(large));
            break;

        case 2:

            /* not every call has a result, because the user went on */

            add_round(t, 1 + draw(3), 0, draw(large));
            t->chat.n_messages -= draw(2);
            add(t, DSA_ROLE_USER, draw(large));
            break;

        case 3:
            if (draw(3) == 0) {
                add(t, DSA_ROLE_SYSTEM, draw(60));
                add(t, DSA_ROLE_USER, draw(60));
            }

            break;

        default:
            add_round(t, 1 + draw(3), draw(large), draw(large));
        }
    }

    if (t->m[t->chat.n_messages - 1].role == DSA_ROLE_ASSISTANT) {
        add(t, DSA_ROLE_USER, 1);
    }

    if (draw(10) == 0) {
        add(t, DSA_ROLE_ASSISTANT, draw(50));
        t->m[t->chat.n_messages - 1].prefix = 1;
    }
}


/* What every result must satisfy. */

static void
check_left(const talk_t *t, const dsa_chat_t *left, uint32_t cut)
{
    int            drop;
    uint32_t       i, j, seen;
    dsa_err_t      err;
    dsa_arena_t   *arena;
    dsa_prompt_t   prompt;

    seen = 0;
    drop = 0;

    for (i = 0, j = 0; i < t->chat.n_messages; i++) {
        if (t->m[i].n_calls != 0) {
            drop = ++seen <= cut;

        } else if (t->m[i].role != DSA_ROLE_TOOL) {
            drop = 0;
        }

        if (drop) {
            continue;
        }

        /* in order and unchanged, with its reasoning */

        assert_true(j < left->n_messages);
        assert_memory_equal(&left->messages[j], &t->m[i],
                            sizeof(dsa_message_t));
        j++;
    }

    assert_int_equal(j, left->n_messages);

    /* the encoder refuses results without their calls */

    arena = dsa_arena_create(16 * 1024 * 1024);
    assert_non_null(arena);
    assert_int_equal(dsa_deepseek.encode(&prompt, arena, left, &err), DSA_OK);
    dsa_arena_destroy(arena);

    /* the model can answer it */

    i = left->n_messages - 1;

    if (left->messages[i].prefix) {
        i--;
    }

    assert_true(left->messages[i].role != DSA_ROLE_SYSTEM
                && left->messages[i].n_calls == 0);
}


static void
test_random(void **unused)
{
    uint32_t       i, threshold, cut, counts, total, most;
    talk_t        *t;
    dsa_chat_t     left;
    dsa_arena_t   *arena;
    dsa_window_e   strategy;
    dsa_window_t   w;

    static const dsa_window_e  strategies[] = {
        DSA_WINDOW_DISCARD_75, DSA_WINDOW_DISCARD_ALL, DSA_WINDOW_SUMMARY
    };

    (void) unused;

    t = malloc(sizeof(talk_t));
    assert_non_null(t);
    total = 0;
    most = 0;

    for (i = 0; i < ROUNDS; i++) {
        random_talk(t, 2 + draw(MOST - 12));

        threshold = 1 + draw(size_of(&t->chat) + 50);
        strategy = strategies[draw(3)];

        arena = dsa_arena_create(64 * 1024 * 1024);
        assert_non_null(arena);

        cut = cut_of(&t->chat, strategy, threshold, &w, &left, arena,
                     &counts);

        assert_true(size_of(&left) <= limit_of(strategy, threshold, cut)
                    || cut == w.points[w.last].allowed);
        check_left(t, &left, cut);

        /* a chat that fits is not replayed */

        assert_int_equal(cut, size_of(&t->chat) <= threshold ? 0
                              : replayed(&t->chat, strategy, threshold));

        total += cut;
        most = counts > most ? counts : most;

        dsa_arena_destroy(arena);
    }

    assert_true(total > ROUNDS);
    print_message("%u rounds left, at most %u counts\n", total, most);

    free(t);
}


/* Requests of a growing history keep the cut until the next overflow. */

static void
test_growing(void **unused)
{
    uint32_t       i, cut, last, counts, cuts, total, n;
    talk_t        *t;
    dsa_chat_t     left;
    dsa_arena_t   *arena;
    dsa_window_t   w;

    (void) unused;

    t = malloc(sizeof(talk_t));
    assert_non_null(t);
    start(t);
    add(t, DSA_ROLE_SYSTEM, 30);
    add(t, DSA_ROLE_USER, 60);

    last = 0;
    cuts = 0;
    total = 0;
    n = 0;

    for (i = 0; i < 70; i++) {
        add_round(t, 1, 30, 90 + 30 * (i % 4));

        arena = dsa_arena_create(16 * 1024 * 1024);
        assert_non_null(arena);

        cut = cut_of(&t->chat, DSA_WINDOW_DISCARD_75, 1000, &w, &left, arena,
                     &counts);
        total += counts;
        n++;

        assert_in_range(size_of(&left), 1, 1000);

        if (cut != last) {

            /* three quarters of what was left, and no earlier than needed */

            assert_int_equal(cut, last + (3 * (i + 1 - last) + 3) / 4);
            assert_int_equal(w.overflow, w.last);
            cuts++;
        }

        last = cut;
        dsa_arena_destroy(arena);
    }

    assert_in_range(cuts, 3, 10);

    print_message("%u cuts, %u counts for %u requests\n", cuts, total, n);
    free(t);
}


/* A cut that is known is continued, and a wrong one is refused. */

static void
test_resumed(void **unused)
{
    uint32_t       i, cut, counts;
    talk_t        *t;
    dsa_chat_t     left;
    dsa_arena_t   *arena;
    dsa_window_t   w, again;

    (void) unused;

    t = malloc(sizeof(talk_t));
    assert_non_null(t);
    start(t);
    add(t, DSA_ROLE_USER, 60);

    for (i = 0; i < 40; i++) {
        add_round(t, 1, 30, 90);
    }

    arena = dsa_arena_create(16 * 1024 * 1024);
    assert_non_null(arena);

    cut = cut_of(&t->chat, DSA_WINDOW_DISCARD_75, 1000, &w, &left, arena,
                 &counts);
    assert_in_range(cut, 1, 39);
    assert_true(counts > 2);

    assert_int_equal(dsa_window_init(&again, arena, &t->chat,
                                     DSA_WINDOW_DISCARD_75, 1000), DSA_OK);
    assert_int_equal(dsa_window_counted(&again, size_of(&t->chat)),
                     DSA_AGAIN);

    assert_int_equal(dsa_window_resume(&again, w.last + 1, cut), DSA_ERROR);
    assert_int_equal(dsa_window_resume(&again, w.overflow, 0), DSA_ERROR);
    assert_int_equal(dsa_window_resume(&again, 0, 1), DSA_ERROR);
    assert_int_equal(dsa_window_resume(&again, w.overflow, w.overflow + 1),
                     DSA_ERROR);
    assert_int_equal(dsa_window_resume(&again, w.overflow, cut), DSA_OK);

    assert_int_equal(dsa_window_chat(&again, arena, &left), DSA_OK);
    assert_int_equal(dsa_window_counted(&again, size_of(&left)), DSA_OK);
    assert_int_equal(again.cut, cut);

    dsa_arena_destroy(arena);
    free(t);
}


/* By hand: which rounds leave, and that the last one may have to stay. */

static void
test_rounds(void **unused)
{
    talk_t        *t;
    uint32_t       counts, messages, calls;
    dsa_chat_t     left;
    dsa_arena_t   *arena;
    dsa_window_t   w;

    (void) unused;

    t = malloc(sizeof(talk_t));
    assert_non_null(t);
    arena = dsa_arena_create(16 * 1024 * 1024);
    assert_non_null(arena);

    start(t);
    add(t, DSA_ROLE_SYSTEM, 9);
    add(t, DSA_ROLE_USER, 9);
    add_round(t, 2, 0, 300);
    add_round(t, 1, 0, 300);
    add(t, DSA_ROLE_ASSISTANT, 9);
    add(t, DSA_ROLE_USER, 9);
    add_round(t, 3, 0, 300);

    assert_int_equal(cut_of(&t->chat, DSA_WINDOW_DISCARD_ALL, 100, &w, &left,
                            arena, &counts), 3);
    assert_int_equal(left.n_messages, 4);
    assert_int_equal(left.messages[3].role, DSA_ROLE_USER);
    dsa_window_left(&w, &messages, &calls);
    assert_int_equal(messages, 9);
    assert_int_equal(calls, 6);

    /* behind an answer the model writes another one */

    start(t);
    add(t, DSA_ROLE_USER, 9);
    add_round(t, 1, 0, 300);
    add(t, DSA_ROLE_ASSISTANT, 9);
    add_round(t, 1, 0, 300);

    assert_int_equal(cut_of(&t->chat, DSA_WINDOW_DISCARD_ALL, 10, &w, &left,
                            arena, &counts), 2);
    assert_int_equal(left.n_messages, 2);
    assert_int_equal(left.messages[1].role, DSA_ROLE_ASSISTANT);

    /* what left with a question does not come back with its answer */

    start(t);
    add(t, DSA_ROLE_USER, 9);
    add_round(t, 1, 0, 300);
    add(t, DSA_ROLE_USER, 9);
    add(t, DSA_ROLE_ASSISTANT, 9);

    assert_int_equal(cut_of(&t->chat, DSA_WINDOW_DISCARD_ALL, 10, &w, &left,
                            arena, &counts), 1);
    assert_int_equal(left.n_messages, 3);

    /* without its last round this would end with a system message */

    start(t);
    add(t, DSA_ROLE_USER, 9);
    add_round(t, 1, 0, 300);
    add(t, DSA_ROLE_SYSTEM, 9);
    add_round(t, 1, 0, 300);

    assert_int_equal(cut_of(&t->chat, DSA_WINDOW_DISCARD_ALL, 10, &w, &left,
                            arena, &counts), 1);
    assert_int_equal(left.n_messages, 4);
    assert_int_equal(left.messages[3].role, DSA_ROLE_TOOL);

    /* nothing can leave */

    start(t);
    add(t, DSA_ROLE_USER, 900);
    assert_int_equal(cut_of(&t->chat, DSA_WINDOW_DISCARD_75, 10, &w, &left,
                            arena, &counts), 0);
    assert_int_equal(counts, 1);
    assert_int_equal(left.n_messages, 1);

    dsa_arena_destroy(arena);
    free(t);
}


/* A prompt of an earlier point lacks reasoning in every form. */

static void
test_earlier(void **unused)
{
    talk_t         *t;
    dsa_chat_t      left;
    dsa_arena_t    *arena;
    dsa_window_t    w;
    dsa_sampled_t   sampled;

    (void) unused;

    t = malloc(sizeof(talk_t));
    assert_non_null(t);
    arena = dsa_arena_create(1024 * 1024);
    assert_non_null(arena);
    memset(&sampled, 0, sizeof(dsa_sampled_t));

    start(t);
    add(t, DSA_ROLE_USER, 9);
    add_round(t, 1, 60, 300);
    add(t, DSA_ROLE_ASSISTANT, 9);
    add(t, DSA_ROLE_USER, 9);
    add_round(t, 1, 60, 300);
    t->m[1].sampled = &sampled;
    t->m[5].sampled = &sampled;

    assert_int_equal(dsa_window_init(&w, arena, &t->chat,
                                     DSA_WINDOW_DISCARD_75, 10), DSA_OK);
    assert_int_equal(w.last, 3);
    assert_int_equal(w.points[2].end, 5);

    w.point = 1;
    assert_int_equal(dsa_window_chat(&w, arena, &left), DSA_OK);
    assert_int_equal(left.n_messages, 3);
    assert_int_equal(left.messages[1].reasoning.len, 0);
    assert_null(left.messages[1].sampled);

    w.point = 3;
    assert_int_equal(dsa_window_chat(&w, arena, &left), DSA_OK);
    assert_int_equal(left.n_messages, 7);
    assert_ptr_equal(left.messages[1].sampled, &sampled);
    assert_ptr_equal(left.messages[5].sampled, &sampled);
    assert_int_equal(left.messages[5].reasoning.len, 60);

    dsa_arena_destroy(arena);
    free(t);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_growing),
        cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_earlier),
        cmocka_unit_test(test_random)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
