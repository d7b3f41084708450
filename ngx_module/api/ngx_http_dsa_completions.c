
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "context/completion.h"

#include "ngx_http_dsa_completions.h"
#include "ngx_http_dsa_openai_error.h"
#include "ngx_http_dsa_rollout.h"


#define ngx_http_dsa_add(b, lit)  dsa_buf_add(b, lit, sizeof(lit) - 1)


static ngx_http_dsa_api_answer_t *ngx_http_dsa_completions_create(
    ngx_pool_t *pool);
static int ngx_http_dsa_completions_read(ngx_http_dsa_api_answer_t *a,
    dsa_chat_t *chat, dsa_arena_t *arena, const dsa_json_t *root,
    const dsa_chat_limits_t *limits, dsa_refusal_t *refusal);
static ngx_int_t ngx_http_dsa_completions_start(ngx_http_dsa_api_answer_t *a,
    ngx_pool_t *pool, const ngx_http_dsa_usage_t *usage);
static ngx_http_dsa_api_answer_t *ngx_http_dsa_completions_choice(
    const ngx_http_dsa_api_answer_t *a, ngx_pool_t *pool);
static void ngx_http_dsa_completions_head(ngx_http_dsa_api_answer_t *a,
    dsa_json_writer_t *w);
static void ngx_http_dsa_completions_delta(ngx_http_dsa_api_answer_t *a,
    dsa_delta_e what, uint32_t call, dsa_str_t text);
static void ngx_http_dsa_completions_close(ngx_http_dsa_api_answer_t *a);
static void ngx_http_dsa_completions_ping(ngx_http_dsa_api_answer_t *a);
static void ngx_http_dsa_completions_tail(ngx_http_dsa_completions_t *c);
static void ngx_http_dsa_completions_end(ngx_http_dsa_api_answer_t *a,
    ngx_http_dsa_finish_e reason);
static void ngx_http_dsa_completions_last(ngx_http_dsa_completions_t *c,
    ngx_http_dsa_finish_e reason);
static void ngx_http_dsa_completions_object(ngx_http_dsa_api_answer_t *a);
static void ngx_http_dsa_completions_finish(ngx_http_dsa_api_answer_t *a,
    ngx_http_dsa_finish_e reason, const ngx_http_dsa_usage_t *usage);
static void ngx_http_dsa_completions_echo(ngx_http_dsa_completions_t *c);
static void ngx_http_dsa_completions_choice_end(ngx_http_dsa_completions_t *c,
    const char *finish);
static void ngx_http_dsa_completions_free(ngx_http_dsa_api_answer_t *a);


const ngx_http_dsa_api_t  ngx_http_dsa_completions = {
    .path = ngx_string("/completions"),
    .id_prefix = ngx_string("cmpl-"),
    .prompt = "prompt",
    .stream_type = "text/event-stream",

    /* without tools the third one never occurs */

    .finish_reason = { "stop", "length", "length", "stop" },
    .create = ngx_http_dsa_completions_create,
    .read = ngx_http_dsa_completions_read,
    .start = ngx_http_dsa_completions_start,
    .delta = ngx_http_dsa_completions_delta,
    .close = ngx_http_dsa_completions_close,
    .logprob = ngx_http_dsa_completions_logprob,
    .ping = ngx_http_dsa_completions_ping,
    .finish = ngx_http_dsa_completions_finish,
    .error = ngx_http_dsa_openai_error,
    .free = ngx_http_dsa_completions_free,
    .choice = ngx_http_dsa_completions_choice,
    .end = ngx_http_dsa_completions_end
};


static ngx_http_dsa_api_answer_t *
ngx_http_dsa_completions_create(ngx_pool_t *pool)
{
    ngx_http_dsa_completions_t  *c;

    c = ngx_pcalloc(pool, sizeof(ngx_http_dsa_completions_t));
    if (c == NULL) {
        return NULL;
    }

    return &c->chat.answer;
}


static int
ngx_http_dsa_completions_read(ngx_http_dsa_api_answer_t *a, dsa_chat_t *chat,
    dsa_arena_t *arena, const dsa_json_t *root,
    const dsa_chat_limits_t *limits, dsa_refusal_t *refusal)
{
    ngx_http_dsa_completions_t *c = (ngx_http_dsa_completions_t *) a;

    if (dsa_completion_read(chat, arena, root, limits, refusal) != DSA_OK) {
        return DSA_ERROR;
    }

    a->stream = chat->stream;
    a->logprobs = chat->sampling.logprobs;
    a->rollout = chat->rollout;
    c->chat.include_usage = chat->include_usage;
    c->chat.include_cost = chat->include_cost;

    /*
     * Copied, because the chat is freed once an engine has accepted the prompt.
     */

    if (chat->completion->echo) {
        dsa_json_escape(&c->echo, chat->completion->prompt);
        a->collected = a->stream ? 0 : c->echo.len;
    }

    return DSA_OK;
}


static ngx_http_dsa_api_answer_t *
ngx_http_dsa_completions_choice(const ngx_http_dsa_api_answer_t *a,
    ngx_pool_t *pool)
{
    const ngx_http_dsa_completions_t *from =
                                     (const ngx_http_dsa_completions_t *) a;

    ngx_http_dsa_completions_t  *c;

    c = ngx_palloc(pool, sizeof(ngx_http_dsa_completions_t));
    if (c == NULL) {
        return NULL;
    }

    *c = *from;

    ngx_memzero(&c->echo, sizeof(dsa_buf_t));
    c->echo.failed = from->echo.failed;
    dsa_buf_add(&c->echo, from->echo.data, from->echo.len);

    return &c->chat.answer;
}


/* Prepares the beginning of all events. */

static ngx_int_t
ngx_http_dsa_completions_start(ngx_http_dsa_api_answer_t *a, ngx_pool_t *pool,
    const ngx_http_dsa_usage_t *usage)
{
    ngx_http_dsa_completions_t *c = (ngx_http_dsa_completions_t *) a;

    dsa_buf_t           b;
    ngx_str_t          *head;
    dsa_json_writer_t   w;

    if (!a->stream) {
        return NGX_OK;
    }

    ngx_memzero(&b, sizeof(dsa_buf_t));

    dsa_buf_addz(&b, "data: ");
    dsa_json_writer(&w, &b);
    ngx_http_dsa_completions_head(a, &w);

    head = &c->chat.head;
    head->len = b.len;
    head->data = b.failed ? NULL : ngx_pnalloc(pool, b.len);

    if (head->data != NULL) {
        ngx_memcpy(head->data, b.data, b.len);
    }

    dsa_buf_free(&b);

    return head->data != NULL ? NGX_OK : NGX_ERROR;
}


/* Writes the object up to the text of its first choice. */

static void
ngx_http_dsa_completions_head(ngx_http_dsa_api_answer_t *a,
    dsa_json_writer_t *w)
{
    dsa_json_object(w);
    dsa_json_key(w, "id");
    dsa_json_string(w, dsa_str(a->id.data, a->id.len));
    dsa_json_key(w, "object");
    dsa_json_stringz(w, "text_completion");
    dsa_json_key(w, "created");
    dsa_json_uint(w, a->created);
    dsa_json_key(w, "model");
    dsa_json_string(w, dsa_str(a->model.data, a->model.len));
    dsa_json_key(w, "system_fingerprint");
    dsa_json_string(w, dsa_str(a->fingerprint.data, a->fingerprint.len));
    dsa_json_key(w, "choices");
    dsa_json_array(w);
    dsa_json_object(w);
    dsa_json_key(w, "text");
    dsa_json_string_begin(w);
}


/*
 * Adds text.  A completion has no reasoning and no calls: all text is content.
 */

static void
ngx_http_dsa_completions_delta(ngx_http_dsa_api_answer_t *a, dsa_delta_e what,
    uint32_t call, dsa_str_t text)
{
    ngx_http_dsa_completions_t *c = (ngx_http_dsa_completions_t *) a;

    if (!c->open) {
        c->open = 1;

        dsa_buf_add(a->out, c->chat.head.data, c->chat.head.len);
        ngx_http_dsa_completions_echo(c);
    }

    dsa_json_escape(a->out, text);
}


static void
ngx_http_dsa_completions_close(ngx_http_dsa_api_answer_t *a)
{
    ngx_http_dsa_completions_t *c = (ngx_http_dsa_completions_t *) a;

    if (!c->open) {
        return;
    }

    c->open = 0;

    ngx_http_dsa_completions_choice_end(c, NULL);
    ngx_http_dsa_completions_tail(c);
}


/* Writes the end of an event that is not the last one of the stream. */

static void
ngx_http_dsa_completions_tail(ngx_http_dsa_completions_t *c)
{
    dsa_buf_t  *out;

    out = c->chat.answer.out;

    ngx_http_dsa_add(out, "]");

    if (c->chat.include_usage) {
        ngx_http_dsa_add(out, ",\"usage\":null");
    }

    ngx_http_dsa_add(out, "}\n\n");
}


static void
ngx_http_dsa_completions_ping(ngx_http_dsa_api_answer_t *a)
{
    dsa_buf_addz(a->out, ": keep-alive\n\n");
}


/* Writes the last event of a choice. */

static void
ngx_http_dsa_completions_end(ngx_http_dsa_api_answer_t *a,
    ngx_http_dsa_finish_e reason)
{
    ngx_http_dsa_completions_t *c = (ngx_http_dsa_completions_t *) a;

    ngx_http_dsa_completions_last(c, reason);
    ngx_http_dsa_completions_tail(c);
}


/*
 * Writes the last event of a choice without its tail, which may have the
 * usage.
 */

static void
ngx_http_dsa_completions_last(ngx_http_dsa_completions_t *c,
    ngx_http_dsa_finish_e reason)
{
    ngx_http_dsa_api_answer_t  *a = &c->chat.answer;

    ngx_http_dsa_completions_close(a);

    dsa_buf_add(a->out, c->chat.head.data, c->chat.head.len);
    ngx_http_dsa_completions_echo(c);
    ngx_http_dsa_completions_choice_end(c, a->api->finish_reason[reason]);
}


/* Writes the whole object up to the end of its last choice. */

static void
ngx_http_dsa_completions_object(ngx_http_dsa_api_answer_t *a)
{
    dsa_buf_t                   *text;
    dsa_json_writer_t            w;
    ngx_http_dsa_api_answer_t   *choice;
    ngx_http_dsa_completions_t  *c;

    dsa_json_writer(&w, a->out);
    ngx_http_dsa_completions_head(a, &w);

    for (choice = a; choice != NULL; choice = choice->next) {
        c = (ngx_http_dsa_completions_t *) choice;

        if (choice != a) {
            ngx_http_dsa_add(a->out, ",{\"text\":\"");
        }

        ngx_http_dsa_completions_echo(c);

        text = &choice->message->content;

        if (ngx_http_dsa_message_failed(choice->message)) {
            a->out->failed = 1;

        } else {
            dsa_buf_add(a->out, text->data, text->len);
        }

        ngx_http_dsa_completions_choice_end(c,
                                  a->api->finish_reason[choice->reason]);
    }
}


/* Writes the last event and [DONE], or the whole object. */

static void
ngx_http_dsa_completions_finish(ngx_http_dsa_api_answer_t *a,
    ngx_http_dsa_finish_e reason, const ngx_http_dsa_usage_t *usage)
{
    ngx_http_dsa_completions_t *c = (ngx_http_dsa_completions_t *) a;

    dsa_json_writer_t  w;

    if (a->stream) {
        ngx_http_dsa_completions_last(c, reason);

    } else {
        ngx_http_dsa_completions_object(a);
    }

    ngx_http_dsa_add(a->out, "],");
    dsa_json_writer(&w, a->out);
    ngx_http_dsa_openai_usage(&c->chat, &w, usage);
    ngx_http_dsa_add(a->out, "}");

    if (a->stream) {
        ngx_http_dsa_add(a->out, "\n\ndata: [DONE]\n\n");
    }
}


/* Writes the prompt in front of the first text, if "echo" was requested. */

static void
ngx_http_dsa_completions_echo(ngx_http_dsa_completions_t *c)
{
    dsa_buf_t  *out;

    out = c->chat.answer.out;

    if (c->echo.failed) {
        out->failed = 1;
        return;
    }

    dsa_buf_add(out, c->echo.data, c->echo.len);
    dsa_buf_free(&c->echo);
}


/* Writes the part of a choice that follows its text. */

static void
ngx_http_dsa_completions_choice_end(ngx_http_dsa_completions_t *c,
    const char *finish)
{
    dsa_buf_t          *out;
    dsa_json_writer_t   w;

    out = c->chat.answer.out;

    ngx_http_dsa_add(out, "\",\"index\":");
    dsa_json_writer(&w, out);
    dsa_json_uint(&w, c->chat.answer.index);
    ngx_http_dsa_add(out, ",\"logprobs\":");
    dsa_json_writer(&w, out);
    ngx_http_dsa_completions_logprobs(c, &w);
    ngx_http_dsa_rollout_write(&c->chat.answer, &w);

    if (finish == NULL) {
        ngx_http_dsa_add(out, ",\"finish_reason\":null}");
        return;
    }

    ngx_http_dsa_add(out, ",\"finish_reason\":\"");
    dsa_buf_addz(out, finish);
    ngx_http_dsa_add(out, "\"}");
}


static void
ngx_http_dsa_completions_free(ngx_http_dsa_api_answer_t *a)
{
    ngx_http_dsa_completions_t *c = (ngx_http_dsa_completions_t *) a;

    dsa_buf_free(&c->echo);
    dsa_buf_free(&c->tokens);
    dsa_buf_free(&c->token_logprobs);
    dsa_buf_free(&c->top_logprobs);
    dsa_buf_free(&c->text_offset);
}


_Static_assert(offsetof(ngx_http_dsa_completions_t, chat) == 0
               && offsetof(ngx_http_dsa_openai_t, answer) == 0,
               "an answer of the API is found by its common part");
