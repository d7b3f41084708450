
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/money.h"

#include "ngx_http_dsa_logprob.h"
#include "ngx_http_dsa_openai_object.h"
#include "ngx_http_dsa_rollout.h"


static void ngx_http_dsa_openai_message(
    const ngx_http_dsa_api_answer_t *choice, dsa_json_writer_t *w);
static void ngx_http_dsa_openai_logprobs(ngx_http_dsa_openai_t *o,
    dsa_json_writer_t *w);
static void ngx_http_dsa_openai_summary(
    const ngx_http_dsa_api_context_t *context, dsa_json_writer_t *w);
static void ngx_http_dsa_openai_str(dsa_json_writer_t *w, const char *key,
    const ngx_str_t *value);


void
ngx_http_dsa_openai_object(ngx_http_dsa_openai_t *o,
    const ngx_http_dsa_usage_t *usage)
{
    dsa_json_writer_t           w;
    ngx_http_dsa_api_answer_t  *a = &o->answer, *choice;

    dsa_json_writer(&w, a->out);
    dsa_json_object(&w);
    ngx_http_dsa_openai_str(&w, "id", &a->id);
    dsa_json_key(&w, "object");
    dsa_json_stringz(&w, "chat.completion");
    dsa_json_key(&w, "created");
    dsa_json_uint(&w, a->created);
    ngx_http_dsa_openai_str(&w, "model", &a->model);

    dsa_json_key(&w, "choices");
    dsa_json_array(&w);

    for (choice = a; choice != NULL; choice = choice->next) {
        dsa_json_object(&w);
        dsa_json_key(&w, "index");
        dsa_json_uint(&w, choice->index);
        dsa_json_key(&w, "message");
        ngx_http_dsa_openai_message(choice, &w);
        ngx_http_dsa_openai_choice_end((ngx_http_dsa_openai_t *) choice, &w,
                                  a->api->finish_reason[choice->reason]);
    }

    dsa_json_array_end(&w);
    ngx_http_dsa_openai_usage(o, &w, usage);
    ngx_http_dsa_openai_conversation(o, &w);
    ngx_http_dsa_openai_context(o, &w);
    ngx_http_dsa_openai_str(&w, "system_fingerprint", &a->fingerprint);
    dsa_json_object_end(&w);
}


/*
 * OpenAI's clients require refusal and annotations.  The model has neither: it
 * refuses in the text itself.
 */

static void
ngx_http_dsa_openai_message(const ngx_http_dsa_api_answer_t *choice,
    dsa_json_writer_t *w)
{
    dsa_json_object(w);
    ngx_http_dsa_message_write(choice->message, w, choice->thinking);
    dsa_json_key(w, "refusal");
    dsa_json_null(w);
    dsa_json_key(w, "annotations");
    dsa_json_array(w);
    dsa_json_array_end(w);
    dsa_json_object_end(w);
}


void
ngx_http_dsa_openai_choice_end(ngx_http_dsa_openai_t *o, dsa_json_writer_t *w,
    const char *finish)
{
    dsa_json_key(w, "logprobs");
    ngx_http_dsa_openai_logprobs(o, w);
    ngx_http_dsa_rollout_write(&o->answer, w);
    dsa_json_key(w, "finish_reason");

    if (finish != NULL) {
        dsa_json_stringz(w, finish);

    } else {
        dsa_json_null(w);
    }

    dsa_json_object_end(w);
}


/* Writes the logprobs since the last chunk, or null. */

static void
ngx_http_dsa_openai_logprobs(ngx_http_dsa_openai_t *o, dsa_json_writer_t *w)
{
    dsa_buf_t  *content, *reasoning;

    content = &o->content_logprobs;
    reasoning = &o->reasoning_logprobs;

    if (content->len == 0 && reasoning->len == 0) {
        dsa_json_null(w);
        return;
    }

    if (content->failed || reasoning->failed) {
        w->out->failed = 1;
    }

    dsa_json_object(w);
    dsa_json_key(w, "content");

    if (content->len != 0) {
        dsa_json_array(w);
        dsa_json_raw(w, dsa_str(content->data, content->len));
        dsa_json_array_end(w);

    } else {
        dsa_json_null(w);
    }

    dsa_json_key(w, "refusal");
    dsa_json_null(w);

    if (reasoning->len != 0) {
        dsa_json_key(w, "reasoning_content");
        dsa_json_array(w);
        dsa_json_raw(w, dsa_str(reasoning->data, reasoning->len));
        dsa_json_array_end(w);

    } else if (o->answer.thinking) {
        dsa_json_key(w, "reasoning_content");
        dsa_json_null(w);
    }

    dsa_json_object_end(w);

    content->len = 0;
    reasoning->len = 0;
}


void
ngx_http_dsa_openai_logprob(ngx_http_dsa_api_answer_t *a,
    const dsa_link_logprob_t *entry, const dsa_link_logprob_t *top,
    ngx_uint_t n_top, ngx_uint_t reasoning)
{
    ngx_http_dsa_openai_t *o = (ngx_http_dsa_openai_t *) a;

    dsa_buf_t          *b;
    dsa_json_writer_t   w;

    b = reasoning ? &o->reasoning_logprobs : &o->content_logprobs;

    if (b->len != 0) {
        dsa_buf_add(b, ",", 1);
    }

    dsa_json_writer(&w, b);
    ngx_http_dsa_logprob_write(&w, entry, top, n_top, 1);
}


void
ngx_http_dsa_openai_usage(ngx_http_dsa_openai_t *o, dsa_json_writer_t *w,
    const ngx_http_dsa_usage_t *usage)
{
    char        cost[DSA_MONEY_LEN];
    ngx_uint_t  i;

    dsa_json_key(w, "usage");
    dsa_json_object(w);
    dsa_json_key(w, "prompt_tokens");
    dsa_json_uint(w, usage->prompt);
    dsa_json_key(w, "completion_tokens");
    dsa_json_uint(w, usage->completion);
    dsa_json_key(w, "total_tokens");
    dsa_json_uint(w, usage->prompt + usage->completion);

    dsa_json_key(w, "prompt_tokens_details");
    dsa_json_object(w);
    dsa_json_key(w, "cached_tokens");
    dsa_json_uint(w, usage->cached);
    dsa_json_key(w, "audio_tokens");
    dsa_json_uint(w, 0);

    for (i = 0; i < DSA_TIERS; i++) {
        dsa_json_key(w, dsa_tier_names[i].tokens);
        dsa_json_uint(w, usage->tier[i]);
    }

    dsa_json_object_end(w);

    dsa_json_key(w, "completion_tokens_details");
    dsa_json_object(w);
    dsa_json_key(w, "reasoning_tokens");
    dsa_json_uint(w, usage->reasoning);
    dsa_json_key(w, "audio_tokens");
    dsa_json_uint(w, 0);
    dsa_json_key(w, "accepted_prediction_tokens");
    dsa_json_uint(w, 0);
    dsa_json_key(w, "rejected_prediction_tokens");
    dsa_json_uint(w, 0);
    dsa_json_key(w, "draft_tokens");
    dsa_json_uint(w, usage->drafts);
    dsa_json_key(w, "accepted_draft_tokens");
    dsa_json_uint(w, usage->accepted);
    dsa_json_object_end(w);

    dsa_json_key(w, "prompt_cache_hit_tokens");
    dsa_json_uint(w, usage->cached);
    dsa_json_key(w, "prompt_cache_miss_tokens");
    dsa_json_uint(w, usage->prompt - usage->cached);

    if (o->include_cost && o->answer.cost >= 0) {
        dsa_json_key(w, "cost");
        dsa_json_raw(w, dsa_str(cost, dsa_money_print(cost, o->answer.cost,
                                                      0)));
    }

    dsa_json_object_end(w);
}


/* Writes the conversation, and whether this turn of it is stored. */

void
ngx_http_dsa_openai_conversation(ngx_http_dsa_openai_t *o,
    dsa_json_writer_t *w)
{
    ngx_http_dsa_api_answer_t  *a = &o->answer;

    if (a->conversation.len == 0) {
        return;
    }

    dsa_json_key(w, "conversation");
    dsa_json_object(w);
    ngx_http_dsa_openai_str(w, "id", &a->conversation);

    if (a->unsaved == NULL) {
        dsa_json_key(w, "version");
        dsa_json_uint(w, a->version);
        dsa_json_key(w, "stored");
        dsa_json_bool(w, 1);

    } else {
        dsa_json_key(w, "stored");
        dsa_json_bool(w, 0);
        dsa_json_key(w, "reason");
        dsa_json_stringz(w, a->unsaved);
    }

    dsa_json_object_end(w);
}


void
ngx_http_dsa_openai_context(ngx_http_dsa_openai_t *o, dsa_json_writer_t *w)
{
    const ngx_http_dsa_api_context_t  *context;

    context = o->answer.context;

    if (context == NULL) {
        return;
    }

    dsa_json_key(w, "context_management");
    dsa_json_object(w);
    dsa_json_key(w, "applied");
    dsa_json_stringz(w, context->strategy);
    dsa_json_key(w, "dropped_messages");
    dsa_json_uint(w, context->messages);
    dsa_json_key(w, "dropped_tool_calls");
    dsa_json_uint(w, context->calls);

    if (context->summary != NULL) {
        dsa_json_key(w, "summary");
        ngx_http_dsa_openai_summary(context, w);
    }

    dsa_json_object_end(w);
}


static void
ngx_http_dsa_openai_summary(const ngx_http_dsa_api_context_t *context,
    dsa_json_writer_t *w)
{
    dsa_json_object(w);
    dsa_json_key(w, "status");
    dsa_json_stringz(w, context->summary);

    if (context->failure != NULL) {
        dsa_json_key(w, "reason");
        dsa_json_stringz(w, context->failure);
    }

    dsa_json_key(w, "prompt_tokens");
    dsa_json_uint(w, context->usage.prompt);
    dsa_json_key(w, "cached_tokens");
    dsa_json_uint(w, context->usage.cached);
    dsa_json_key(w, "completion_tokens");
    dsa_json_uint(w, context->usage.completion);
    dsa_json_object_end(w);
}


static void
ngx_http_dsa_openai_str(dsa_json_writer_t *w, const char *key,
    const ngx_str_t *value)
{
    dsa_json_key(w, key);
    dsa_json_string(w, dsa_str(value->data, value->len));
}


_Static_assert(offsetof(ngx_http_dsa_openai_t, answer) == 0,
               "an answer of the API is found by its common part");
