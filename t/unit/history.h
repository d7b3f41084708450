
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TEST_HISTORY_H_INCLUDED_
#define _DSA_TEST_HISTORY_H_INCLUDED_


#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/json_write.h"
#include "base/utf8.h"
#include "context/deepseek/deepseek.h"
#include "context/parse.h"


/*
 * A sampled text becomes the message that the API returns.  That message
 * becomes history in one of several ways: it is stored in a conversation, or a
 * client sends it back, which received it whole or gathered it from a stream.
 * None of these may be refused, and all must give the same prompt.
 * t/unit/test_history.c and t/fuzz/fuzz_history.c share this file.
 *
 * In a sampled text, a byte FF and the low three bits of the byte after it are
 * a control token, in the order of dsa_deepseek_token_e; 7 is a token that the
 * parser does not know.
 */

#define HISTORY_MEMORY    (64 * 1024 * 1024)
#define HISTORY_DEPTH     128
#define HISTORY_QUESTION  "{\"role\":\"user\",\"content\":\"q\"}"

enum {
    HISTORY_THINKING = 1,
    HISTORY_TOOLS = 2,
    HISTORY_COMPLETE = 4,
    HISTORY_VOCABULARY = 8, /* the vocabulary has all control tokens */
    HISTORY_FLAGS = 15,
    HISTORY_WHOLE = 16      /* the text has no name of a control token within
                               which another one stands */
};


/*
 * The insides of JSON strings and of the array of calls, as the API has them
 * (ngx_http_dsa_openai.c), and the content as it was parsed.
 */

typedef struct {
    dsa_buf_t     plain;
    dsa_buf_t     content;
    dsa_buf_t     reasoning;
    dsa_buf_t     calls;
    uint32_t      n_calls;
} history_t;


static const dsa_chat_limits_t  history_limits = { 8192, 128, 1 };


static int
history_delta(void *ctx, dsa_delta_e what, uint32_t call, dsa_str_t text)
{
    history_t  *h = ctx;

    switch (what) {

    case DSA_DELTA_REASONING:
        dsa_json_escape(&h->reasoning, text);
        break;

    case DSA_DELTA_CONTENT:
        dsa_buf_add(&h->plain, text.data, text.len);
        dsa_json_escape(&h->content, text);
        break;

    case DSA_DELTA_CALL:
        dsa_buf_printf(&h->calls, "%s{\"index\":%u,\"id\":\"call_%02u\","
                       "\"type\":\"function\",\"function\":{\"name\":\"",
                       h->n_calls++ != 0 ? "\"}}," : "", call, call);
        dsa_json_escape(&h->calls, text);
        dsa_buf_addz(&h->calls, "\",\"arguments\":\"");
        break;

    case DSA_DELTA_ARGUMENTS:
        dsa_json_escape(&h->calls, text);
        break;
    }

    return DSA_OK;
}


/* sparse: null instead of an empty string, and the other name of reasoning. */

static void
history_message(dsa_buf_t *b, const history_t *h, int thinking, int sparse)
{
    if (sparse && h->content.len == 0) {
        dsa_buf_addz(b, "{\"role\":\"assistant\",\"content\":null");

    } else {
        dsa_buf_addz(b, "{\"role\":\"assistant\",\"content\":\"");
        dsa_buf_add(b, h->content.data, h->content.len);
        dsa_buf_addz(b, "\"");
    }

    if (thinking) {
        dsa_buf_addz(b, sparse ? ",\"reasoning\":\""
                               : ",\"reasoning_content\":\"");
        dsa_buf_add(b, h->reasoning.data, h->reasoning.len);
        dsa_buf_addz(b, "\"");
    }

    if (h->n_calls != 0) {
        dsa_buf_addz(b, ",\"tool_calls\":[");
        dsa_buf_add(b, h->calls.data, h->calls.len);
        dsa_buf_addz(b, "\"}}]");
    }

    dsa_buf_addz(b, "}");
}


static const char *
history_prompt(dsa_arena_t *arena, dsa_buf_t *stored, dsa_buf_t *request,
    dsa_prompt_t *prompt)
{
    dsa_err_t      err;
    dsa_chat_t     chat;
    dsa_json_t    *root;
    dsa_refusal_t  refusal;

    static char  why[1024];

    root = dsa_json_parse(arena, request->data, request->len, HISTORY_DEPTH,
                          &err);
    if (root == NULL) {
        (void) snprintf(why, sizeof(why), "request: %s", err.text);
        return why;
    }

    if (dsa_chat_read(&chat, arena, root, &history_limits, &refusal)
        != DSA_OK)
    {
        (void) snprintf(why, sizeof(why), "refused: %s: %s", refusal.param,
                        refusal.message);
        return why;
    }

    if (stored != NULL) {
        root = dsa_json_parse(arena, stored->data, stored->len,
                              HISTORY_DEPTH, &err);
        if (root == NULL) {
            (void) snprintf(why, sizeof(why), "stored: %s", err.text);
            return why;
        }

        if (dsa_chat_prepend(&chat, arena, root, &history_limits, &refusal)
            != DSA_OK)
        {
            (void) snprintf(why, sizeof(why), "stored: %s: %s",
                            refusal.param, refusal.message);
            return why;
        }
    }

    if (dsa_chat_check(&chat, &refusal) != DSA_OK) {
        (void) snprintf(why, sizeof(why), "check: %s: %s", refusal.param,
                        refusal.message);
        return why;
    }

    if (dsa_deepseek.encode(prompt, arena, &chat, &err) != DSA_OK) {
        (void) snprintf(why, sizeof(why), "encode: %s", err.text);
        return why;
    }

    return NULL;
}


/* The form in which the server stores messages that a client sent. */

static const char *
history_dump(dsa_arena_t *arena, dsa_buf_t *messages, dsa_buf_t *stored)
{
    uint32_t       i;
    dsa_err_t      err;
    dsa_chat_t     chat;
    dsa_json_t    *root;
    dsa_refusal_t  refusal;

    memset(&chat, 0, sizeof(dsa_chat_t));

    root = dsa_json_parse(arena, messages->data, messages->len,
                          HISTORY_DEPTH, &err);

    if (root == NULL
        || dsa_chat_prepend(&chat, arena, root, &history_limits, &refusal)
           != DSA_OK)
    {
        return "a message that was stored cannot be read";
    }

    for (i = 0; i < chat.n_messages; i++) {
        dsa_buf_addz(stored, i == 0 ? "[" : ",");

        if (dsa_message_dump(stored, &chat.messages[i]) != DSA_OK) {
            return "a message that was read cannot be written";
        }
    }

    dsa_buf_addz(stored, "]");

    return NULL;
}


static int
history_same(const dsa_prompt_t *a, const dsa_prompt_t *b)
{
    uint32_t  i;

    if (a->n != b->n || a->bytes != b->bytes) {
        return 0;
    }

    for (i = 0; i < a->n; i++) {
        if (a->segments[i].kind != b->segments[i].kind
            || !dsa_str_eq(a->segments[i].text, b->segments[i].text))
        {
            return 0;
        }
    }

    return 1;
}


/*
 * The control tokens must be those of the layout: so many turns of a user, the
 * answer's end, and DSML where the format writes a tag.
 */

static const char *
history_control(const dsa_prompt_t *prompt, uint32_t users)
{
    uint32_t          i, k, n[DSA_DEEPSEEK_TOKENS] = { 0 };
    const dsa_str_t  *before, *after;

    for (i = 0; i < prompt->n; i++) {
        if (prompt->segments[i].kind == DSA_SEGMENT_TEXT) {
            continue;
        }

        for (k = 0; k < DSA_DEEPSEEK_TOKENS; k++) {
            if (dsa_str_eq(prompt->segments[i].text,
                           dsa_deepseek_tokens[k].name))
            {
                break;
            }
        }

        if (k == DSA_DEEPSEEK_TOKENS) {
            return "a control token of an unknown name";
        }

        n[k]++;

        if (k != DSA_DEEPSEEK_TOKEN_DSML) {
            continue;
        }

        if (i == 0 || i + 1 == prompt->n) {
            return "DSML at an end of the prompt";
        }

        before = &prompt->segments[i - 1].text;
        after = &prompt->segments[i + 1].text;

        if (before->len == 0
            || (before->data[before->len - 1] != '<'
                && before->data[before->len - 1] != '/')
            || after->len == 0
            || strchr("fip", after->data[0]) == NULL)
        {
            return "DSML that is in no tag";
        }
    }

    if (n[DSA_DEEPSEEK_TOKEN_BOS] != 1 || n[DSA_DEEPSEEK_TOKEN_EOS] != 1
        || n[DSA_DEEPSEEK_TOKEN_USER] != users
        || n[DSA_DEEPSEEK_TOKEN_ASSISTANT] != users
        || n[DSA_DEEPSEEK_TOKEN_DSML] % 2 != 0)
    {
        return "control tokens that the layout does not have";
    }

    return NULL;
}


/* The content must be in the prompt unchanged, in one segment of text. */

static const char *
history_content(const dsa_prompt_t *prompt, const history_t *h)
{
    uint32_t        i;
    dsa_segment_t  *s;

    if (h->plain.len == 0) {
        return NULL;
    }

    for (i = 0; i < prompt->n; i++) {
        s = &prompt->segments[i];

        if (s->kind == DSA_SEGMENT_TEXT
            && memmem(s->text.data, s->text.len, h->plain.data, h->plain.len)
               != NULL)
        {
            return NULL;
        }
    }

    return "the content is not in the prompt";
}


/* NULL, or what is wrong. */

static const char *
history_paths(dsa_arena_t *arena, const history_t *h, int flags)
{
    int            think, sparse;
    uint32_t       i;
    dsa_buf_t      stored, again, request;
    const char    *why;
    dsa_prompt_t   first, other;

    memset(&stored, 0, sizeof(dsa_buf_t));
    memset(&again, 0, sizeof(dsa_buf_t));
    memset(&request, 0, sizeof(dsa_buf_t));
    why = NULL;

    dsa_buf_addz(&stored, "[" HISTORY_QUESTION ",");
    history_message(&stored, h, flags & HISTORY_THINKING, 0);
    dsa_buf_addz(&stored, "]");

    for (think = 0; think < 2 && why == NULL; think++) {

        /* as a conversation that continues */

        request.len = 0;
        dsa_buf_printf(&request, "{\"model\":\"m\",\"thinking\":{\"type\":"
                       "\"%s\"},\"messages\":[" HISTORY_QUESTION "]}",
                       think ? "enabled" : "disabled");

        why = history_prompt(arena, &stored, &request, &first);

        if (why == NULL) {
            why = history_control(&first, 2);
        }

        if (why == NULL) {
            why = history_content(&first, h);
        }

        /* the same, after the server has read and written it */

        again.len = 0;

        if (why == NULL) {
            why = history_dump(arena, &stored, &again);
        }

        if (why == NULL) {
            why = history_prompt(arena, &again, &request, &other);
        }

        if (why == NULL && !history_same(&first, &other)) {
            why = "storing a message again changes its prompt";
        }

        /* as a client sends it */

        for (sparse = 0; sparse < 2 && why == NULL; sparse++) {
            request.len = 0;
            dsa_buf_printf(&request, "{\"model\":\"m\",\"thinking\":{"
                           "\"type\":\"%s\"},\"messages\":["
                           HISTORY_QUESTION ",",
                           think ? "enabled" : "disabled");
            history_message(&request, h, flags & HISTORY_THINKING, sparse);
            dsa_buf_addz(&request, "," HISTORY_QUESTION "]}");

            why = history_prompt(arena, NULL, &request, &other);

            if (why == NULL && !history_same(&first, &other)) {
                why = "a client's history gives another prompt";
            }
        }

        /* the calls get all of their results, or only one of them */

        if (h->n_calls == 0 || why != NULL) {
            continue;
        }

        request.len = 0;
        dsa_buf_printf(&request, "{\"model\":\"m\",\"thinking\":{\"type\":"
                       "\"%s\"},\"messages\":[",
                       think ? "enabled" : "disabled");

        for (i = h->n_calls; i-- > 0; /* void */) {
            dsa_buf_printf(&request, "{\"role\":\"tool\",\"content\":\"r\","
                           "\"tool_call_id\":\"call_%02u\"}%s", i,
                           i != 0 ? "," : "]}");
        }

        why = history_prompt(arena, &stored, &request, &other);

        request.len = 0;
        dsa_buf_printf(&request, "{\"model\":\"m\",\"thinking\":{\"type\":"
                       "\"%s\"},\"messages\":[{\"role\":\"tool\","
                       "\"content\":\"r\",\"tool_call_id\":\"call_%02u\"},"
                       HISTORY_QUESTION "]}",
                       think ? "enabled" : "disabled", h->n_calls - 1);

        if (why == NULL) {
            why = history_prompt(arena, &stored, &request, &other);
        }
    }

    if (stored.failed || again.failed || request.failed) {
        why = "no memory";
    }

    dsa_buf_free(&stored);
    dsa_buf_free(&again);
    dsa_buf_free(&request);

    return why;
}


/* Feeds the text as the engine delivers it: invalid UTF-8 is replaced. */

static int
history_feed(dsa_parse_t *p, const uint8_t *data, size_t size)
{
    int        rc;
    size_t     i, n;
    uint32_t   token;
    dsa_buf_t  text;

    memset(&text, 0, sizeof(dsa_buf_t));
    rc = DSA_OK;

    for (i = 0; i < size && rc == DSA_OK; i += n) {

        if (data[i] == 0xff && i + 1 < size) {
            token = data[i + 1] & 7;
            n = 2;

            rc = dsa_parse_feed(p, dsa_str(text.data, text.len));
            text.len = 0;

            if (rc == DSA_OK) {
                rc = dsa_parse_feed_control(p, token < DSA_DEEPSEEK_TOKENS
                                               ? dsa_deepseek_tokens[token].name
                                               : dsa_strz("<|other|>"));
            }

            continue;
        }

        n = dsa_utf8_prefix(data + i, size - i);

        if (n == 0) {
            rc = dsa_utf8_char(data + i, size - i);
            n = rc < 0 ? (size_t) -rc : size - i;
            rc = DSA_OK;
            dsa_buf_addz(&text, "\xef\xbf\xbd");
            continue;
        }

        dsa_buf_add(&text, data + i, n);
    }

    if (text.failed) {
        abort();
    }

    if (rc == DSA_OK) {
        rc = dsa_parse_feed(p, dsa_str(text.data, text.len));
    }

    dsa_buf_free(&text);

    return rc;
}


static int
history_has_dsml(const dsa_buf_t *b)
{
    return b->len != 0
           && memmem(b->data, b->len, DSA_DEEPSEEK_DSML,
                     sizeof(DSA_DEEPSEEK_DSML) - 1)
              != NULL;
}


/* NULL, or what is wrong. */

static inline const char *
history_check(const uint8_t *data, size_t size, int flags)
{
    history_t     h;
    const char   *why;
    dsa_arena_t  *arena;
    dsa_parse_t  *p;

    memset(&h, 0, sizeof(history_t));

    arena = dsa_arena_create(HISTORY_MEMORY);
    p = dsa_parse_create(&dsa_deepseek, flags & HISTORY_THINKING,
                         flags & HISTORY_TOOLS,
                         flags & HISTORY_VOCABULARY
                         ? (1u << DSA_DEEPSEEK_TOKENS) - 1 : 0,
                         history_delta, &h);

    if (arena == NULL || p == NULL) {
        abort();
    }

    why = NULL;

    if (history_feed(p, data, size) != DSA_OK
        || dsa_parse_end(p, (flags & HISTORY_COMPLETE) != 0) != DSA_OK)
    {
        why = "the parser failed";
    }

    if (why == NULL && (flags & HISTORY_WHOLE)
        && !(flags & HISTORY_VOCABULARY)
        && (history_has_dsml(&h.content) || history_has_dsml(&h.reasoning)))
    {
        why = "DSML in visible text";
    }

    if (why == NULL) {
        why = history_paths(arena, &h, flags);
    }

    dsa_parse_destroy(p);
    dsa_arena_destroy(arena);
    dsa_buf_free(&h.plain);
    dsa_buf_free(&h.content);
    dsa_buf_free(&h.reasoning);
    dsa_buf_free(&h.calls);

    return why;
}


#endif /* _DSA_TEST_HISTORY_H_INCLUDED_ */
