
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/json_write.h"

#include "ngx_http_dsa_openai.h"
#include "ngx_http_dsa_openai_chunk.h"
#include "ngx_http_dsa_openai_error.h"
#include "ngx_http_dsa_openai_object.h"


static ngx_http_dsa_api_answer_t *ngx_http_dsa_openai_create(
    ngx_pool_t *pool);
static int ngx_http_dsa_openai_read(ngx_http_dsa_api_answer_t *a,
    dsa_chat_t *chat, dsa_arena_t *arena, const dsa_json_t *root,
    const dsa_chat_limits_t *limits, dsa_refusal_t *refusal);
static ngx_http_dsa_api_answer_t *ngx_http_dsa_openai_choice(
    const ngx_http_dsa_api_answer_t *a, ngx_pool_t *pool);
static ngx_int_t ngx_http_dsa_openai_start(ngx_http_dsa_api_answer_t *a,
    ngx_pool_t *pool, const ngx_http_dsa_usage_t *usage);
static void ngx_http_dsa_openai_ping(ngx_http_dsa_api_answer_t *a);
static void ngx_http_dsa_openai_finish(ngx_http_dsa_api_answer_t *a,
    ngx_http_dsa_finish_e reason, const ngx_http_dsa_usage_t *usage);
static void ngx_http_dsa_openai_free(ngx_http_dsa_api_answer_t *a);


const ngx_http_dsa_api_t  ngx_http_dsa_openai = {
    .path = ngx_string("/chat/completions"),
    .id_prefix = ngx_string("chatcmpl-"),
    .prompt = "messages",
    .stream_type = "text/event-stream",
    .finish_reason = { "stop", "length", "length", "tool_calls" },
    .create = ngx_http_dsa_openai_create,
    .read = ngx_http_dsa_openai_read,
    .start = ngx_http_dsa_openai_start,
    .delta = ngx_http_dsa_openai_chunk_delta,
    .close = ngx_http_dsa_openai_chunk_close,
    .logprob = ngx_http_dsa_openai_logprob,
    .ping = ngx_http_dsa_openai_ping,
    .finish = ngx_http_dsa_openai_finish,
    .error = ngx_http_dsa_openai_error,
    .free = ngx_http_dsa_openai_free,
    .choice = ngx_http_dsa_openai_choice,
    .end = ngx_http_dsa_openai_chunk_choice
};


static ngx_http_dsa_api_answer_t *
ngx_http_dsa_openai_create(ngx_pool_t *pool)
{
    ngx_http_dsa_openai_t  *o;

    o = ngx_pcalloc(pool, sizeof(ngx_http_dsa_openai_t));
    if (o == NULL) {
        return NULL;
    }

    return &o->answer;
}


static int
ngx_http_dsa_openai_read(ngx_http_dsa_api_answer_t *a, dsa_chat_t *chat,
    dsa_arena_t *arena, const dsa_json_t *root,
    const dsa_chat_limits_t *limits, dsa_refusal_t *refusal)
{
    ngx_http_dsa_openai_t *o = (ngx_http_dsa_openai_t *) a;

    if (dsa_chat_read(chat, arena, root, limits, refusal) != DSA_OK) {
        return DSA_ERROR;
    }

    a->stream = chat->stream;
    a->thinking = dsa_chat_reasons(chat);
    a->logprobs = chat->sampling.logprobs;
    a->rollout = chat->rollout;
    o->include_usage = chat->include_usage;
    o->include_cost = chat->include_cost;

    return DSA_OK;
}


static ngx_http_dsa_api_answer_t *
ngx_http_dsa_openai_choice(const ngx_http_dsa_api_answer_t *a,
    ngx_pool_t *pool)
{
    ngx_http_dsa_openai_t  *o;

    o = ngx_palloc(pool, sizeof(ngx_http_dsa_openai_t));
    if (o == NULL) {
        return NULL;
    }

    *o = *(const ngx_http_dsa_openai_t *) a;

    return &o->answer;
}


/* The first event is sent with the first token and has no usage. */

static ngx_int_t
ngx_http_dsa_openai_start(ngx_http_dsa_api_answer_t *a, ngx_pool_t *pool,
    const ngx_http_dsa_usage_t *usage)
{
    return a->stream
           ? ngx_http_dsa_openai_chunk_start((ngx_http_dsa_openai_t *) a, pool)
           : NGX_OK;
}


/* A comment of server-sent events, which clients ignore. */

static void
ngx_http_dsa_openai_ping(ngx_http_dsa_api_answer_t *a)
{
    dsa_buf_addz(a->out, ": keep-alive\n\n");
}


static void
ngx_http_dsa_openai_finish(ngx_http_dsa_api_answer_t *a,
    ngx_http_dsa_finish_e reason, const ngx_http_dsa_usage_t *usage)
{
    ngx_http_dsa_openai_t *o = (ngx_http_dsa_openai_t *) a;

    if (a->stream) {
        ngx_http_dsa_openai_chunk_finish(o, reason, usage);

    } else {
        ngx_http_dsa_openai_object(o, usage);
    }
}


static void
ngx_http_dsa_openai_free(ngx_http_dsa_api_answer_t *a)
{
    ngx_http_dsa_openai_t *o = (ngx_http_dsa_openai_t *) a;

    dsa_buf_free(&o->content_logprobs);
    dsa_buf_free(&o->reasoning_logprobs);
}
