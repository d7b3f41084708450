
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "context/anthropic.h"

#include "ngx_http_dsa_anthropic.h"
#include "ngx_http_dsa_anthropic_answer.h"
#include "ngx_http_dsa_anthropic_error.h"


static ngx_http_dsa_api_answer_t *ngx_http_dsa_anthropic_create(
    ngx_pool_t *pool);
static int ngx_http_dsa_anthropic_read(ngx_http_dsa_api_answer_t *a,
    dsa_chat_t *chat, dsa_arena_t *arena, const dsa_json_t *root,
    const dsa_chat_limits_t *limits, dsa_refusal_t *refusal);
static ngx_int_t ngx_http_dsa_anthropic_keep_stop(ngx_http_dsa_anthropic_t *n,
    const dsa_chat_t *chat);
static ngx_int_t ngx_http_dsa_anthropic_start(ngx_http_dsa_api_answer_t *a,
    ngx_pool_t *pool, const ngx_http_dsa_usage_t *usage);
static void ngx_http_dsa_anthropic_logprob(ngx_http_dsa_api_answer_t *a,
    const dsa_link_logprob_t *entry, const dsa_link_logprob_t *top,
    ngx_uint_t n_top, ngx_uint_t reasoning);
static void ngx_http_dsa_anthropic_finish(ngx_http_dsa_api_answer_t *a,
    ngx_http_dsa_finish_e reason, const ngx_http_dsa_usage_t *usage);
static void ngx_http_dsa_anthropic_free(ngx_http_dsa_api_answer_t *a);


const ngx_http_dsa_api_t  ngx_http_dsa_anthropic = {
    .path = ngx_string("/v1/messages"),
    .id_prefix = ngx_string("msg_"),
    .id_header = "request-id",
    .prompt = "messages",
    .stream_type = "text/event-stream",
    .finish_reason = { "end_turn", "max_tokens",
                       "model_context_window_exceeded", "tool_use" },
    .create = ngx_http_dsa_anthropic_create,
    .read = ngx_http_dsa_anthropic_read,
    .start = ngx_http_dsa_anthropic_start,
    .delta = ngx_http_dsa_anthropic_event_delta,
    .close = ngx_http_dsa_anthropic_event_close,
    .logprob = ngx_http_dsa_anthropic_logprob,
    .ping = ngx_http_dsa_anthropic_event_ping,
    .finish = ngx_http_dsa_anthropic_finish,
    .error = ngx_http_dsa_anthropic_error,
    .free = ngx_http_dsa_anthropic_free
};


static ngx_http_dsa_api_answer_t *
ngx_http_dsa_anthropic_create(ngx_pool_t *pool)
{
    ngx_http_dsa_anthropic_t  *n;

    n = ngx_pcalloc(pool, sizeof(ngx_http_dsa_anthropic_t));
    if (n == NULL) {
        return NULL;
    }

    return &n->answer;
}


static int
ngx_http_dsa_anthropic_read(ngx_http_dsa_api_answer_t *a, dsa_chat_t *chat,
    dsa_arena_t *arena, const dsa_json_t *root,
    const dsa_chat_limits_t *limits, dsa_refusal_t *refusal)
{
    ngx_http_dsa_anthropic_t *n = (ngx_http_dsa_anthropic_t *) a;

    if (dsa_anthropic_read(chat, arena, root, limits, 0, refusal) != DSA_OK) {
        return DSA_ERROR;
    }

    a->stream = chat->stream;
    a->thinking = chat->thinking;

    n->managed = chat->managed;
    n->compacts = chat->compact_threshold != 0;
    n->beta = n->managed || n->compacts;

    if (ngx_http_dsa_anthropic_keep_stop(n, chat) != NGX_OK) {
        refusal->status = 503;
        (void) snprintf(refusal->message, sizeof(refusal->message),
                        "The server is out of memory; try again later.");
        return DSA_ERROR;
    }

    return DSA_OK;
}


/*
 * Copies the stop strings, because the chat is freed before the answer ends.
 */

static ngx_int_t
ngx_http_dsa_anthropic_keep_stop(ngx_http_dsa_anthropic_t *n,
    const dsa_chat_t *chat)
{
    size_t    size;
    u_char   *p;
    uint32_t  i;

    if (chat->n_stop == 0) {
        return NGX_OK;
    }

    size = chat->n_stop * sizeof(ngx_str_t);

    for (i = 0; i < chat->n_stop; i++) {
        size += chat->stop[i].len;
    }

    n->stop = malloc(size);
    if (n->stop == NULL) {
        return NGX_ERROR;
    }

    p = (u_char *) &n->stop[chat->n_stop];

    for (i = 0; i < chat->n_stop; i++) {
        n->stop[i].data = p;
        n->stop[i].len = chat->stop[i].len;

        p = ngx_cpymem(p, chat->stop[i].data, chat->stop[i].len);
    }

    n->n_stop = chat->n_stop;

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_anthropic_start(ngx_http_dsa_api_answer_t *a, ngx_pool_t *pool,
    const ngx_http_dsa_usage_t *usage)
{
    if (a->stream) {
        ngx_http_dsa_anthropic_event_start((ngx_http_dsa_anthropic_t *) a,
                                           usage);
    }

    return a->out->failed ? NGX_ERROR : NGX_OK;
}


static void
ngx_http_dsa_anthropic_logprob(ngx_http_dsa_api_answer_t *a,
    const dsa_link_logprob_t *entry, const dsa_link_logprob_t *top,
    ngx_uint_t n_top, ngx_uint_t reasoning)
{
    /* the Messages API has no logprobs */
}


static void
ngx_http_dsa_anthropic_finish(ngx_http_dsa_api_answer_t *a,
    ngx_http_dsa_finish_e reason, const ngx_http_dsa_usage_t *usage)
{
    ngx_http_dsa_anthropic_t *n = (ngx_http_dsa_anthropic_t *) a;

    if (a->stream) {
        ngx_http_dsa_anthropic_event_finish(n, reason, usage);

    } else {
        ngx_http_dsa_anthropic_object(n, reason, usage);
    }
}


static void
ngx_http_dsa_anthropic_free(ngx_http_dsa_api_answer_t *a)
{
    ngx_http_dsa_anthropic_t *n = (ngx_http_dsa_anthropic_t *) a;

    free(n->stop);
    n->stop = NULL;

    dsa_buf_free(&n->words);
    dsa_buf_free(&a->summary);
}


_Static_assert(offsetof(ngx_http_dsa_anthropic_t, answer) == 0,
               "an answer of the API is found by its common part");
