
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_module/core/ngx_http_dsa_metrics.h"
#include "ngx_module/engine/ngx_http_dsa_models.h"
#include "ngx_http_dsa_compact.h"


#define NGX_HTTP_DSA_COMPACT_PERCENT  80    /* of the context: the threshold
                                               of a request that has none */


static uint32_t ngx_http_dsa_compact_threshold(ngx_http_dsa_compact_t *cmp);
static int ngx_http_dsa_compact_chat(void *data, dsa_arena_t *arena,
    dsa_chat_t *chat);
static void ngx_http_dsa_compact_counted(void *data, ngx_int_t rc);
static void ngx_http_dsa_compact_summarize(ngx_http_dsa_compact_t *cmp);
static void ngx_http_dsa_compact_pause(ngx_http_dsa_compact_t *cmp);
static void ngx_http_dsa_compact_made(void *data, ngx_int_t rc);
static ngx_int_t ngx_http_dsa_compact_replace(ngx_http_dsa_compact_t *cmp);
static void ngx_http_dsa_compact_fail(ngx_http_dsa_compact_t *cmp,
    const char *why);
static void ngx_http_dsa_compact_no_memory(ngx_http_dsa_compact_t *cmp);


void
ngx_http_dsa_compact_start(ngx_http_dsa_compact_t *cmp)
{
    ngx_http_dsa_count_t  *cnt;

    cmp->threshold = ngx_http_dsa_compact_threshold(cmp);

    cnt = &cmp->count;
    cnt->request = cmp->request;
    cnt->work = cmp->work;
    cnt->submit = cmp->submit;
    cnt->failure = cmp->failure;
    cnt->chat = ngx_http_dsa_compact_chat;
    cnt->handler = ngx_http_dsa_compact_counted;
    cnt->data = cmp;

    ngx_http_dsa_count_start(cnt, cmp->threshold);
}


static uint32_t
ngx_http_dsa_compact_threshold(ngx_http_dsa_compact_t *cmp)
{
    uint32_t    context;
    ngx_str_t  *model;

    if (cmp->submit->chat->compact_threshold != DSA_COMPACT_DEFAULT) {
        return cmp->submit->chat->compact_threshold;
    }

    model = &cmp->submit->model;

    context = ngx_http_dsa_pool_context(cmp->submit->pool,
                                        ngx_http_dsa_models_any(model)
                                        ? NULL : model);

    return (uint64_t) context * NGX_HTTP_DSA_COMPACT_PERCENT / 100;
}


/* Makes the chat to count. */

static int
ngx_http_dsa_compact_chat(void *data, dsa_arena_t *arena, dsa_chat_t *chat)
{
    ngx_http_dsa_compact_t *cmp = data;

    *chat = *cmp->submit->chat;

    return DSA_OK;
}


/* The handler of the count. */

static void
ngx_http_dsa_compact_counted(void *data, ngx_int_t rc)
{
    ngx_http_dsa_compact_t *cmp = data;

    if (rc != NGX_OK) {
        cmp->handler(cmp->data, NGX_ERROR);
        return;
    }

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, cmp->request->connection->log, 0,
                   "dsa request %V: %uD tokens, compacted above %uD",
                   &cmp->submit->id, cmp->count.tokens, cmp->threshold);

    if (cmp->count.tokens <= cmp->threshold) {
        cmp->handler(cmp->data, NGX_OK);
        return;
    }

    ngx_http_dsa_compact_summarize(cmp);
}


static void
ngx_http_dsa_compact_summarize(ngx_http_dsa_compact_t *cmp)
{
    dsa_chat_t              *chat;
    dsa_message_t           *messages;
    ngx_http_dsa_summary_t  *sum;

    chat = cmp->submit->chat;

    messages = dsa_arena_alloc(cmp->count.arena, ((size_t) chat->n_messages + 1)
                                           * sizeof(dsa_message_t));
    if (messages == NULL) {
        ngx_http_dsa_compact_no_memory(cmp);
        return;
    }

    ngx_memcpy(messages, chat->messages,
               chat->n_messages * sizeof(dsa_message_t));

    cmp->whole = *chat;
    cmp->whole.messages = messages;

    dsa_compact_ask(&cmp->whole, &messages[cmp->whole.n_messages++],
                    chat->compact_instructions);

    if (chat->compact_pauses) {
        ngx_http_dsa_compact_pause(cmp);
        return;
    }

    sum = &cmp->summary;
    sum->request = cmp->request;
    sum->work = cmp->work;
    sum->submit = cmp->submit;
    sum->er = &cmp->requests->first;
    sum->failure = cmp->failure;
    sum->handler = ngx_http_dsa_compact_made;
    sum->data = cmp;

    ngx_http_dsa_summary_compact(sum, &cmp->whole);
}


/* The answer itself is the summary. */

static void
ngx_http_dsa_compact_pause(ngx_http_dsa_compact_t *cmp)
{
    dsa_compact_quote(&cmp->text, cmp->submit->chat);

    if (cmp->text.failed) {
        ngx_http_dsa_compact_no_memory(cmp);
        return;
    }

    *cmp->submit->chat = cmp->whole;
    ngx_memzero(&cmp->submit->format, sizeof(cmp->submit->format));

    cmp->handler(cmp->data, NGX_OK);
}


/* The handler of the summary. */

static void
ngx_http_dsa_compact_made(void *data, ngx_int_t rc)
{
    ngx_http_dsa_compact_t *cmp = data;

    ngx_http_dsa_metrics_add(summary_prompt, cmp->summary.usage.prompt);
    ngx_http_dsa_metrics_add(summary_completion,
                             cmp->summary.usage.completion);

    if (rc == NGX_OK && ngx_http_dsa_compact_replace(cmp) != NGX_OK) {
        ngx_http_dsa_compact_no_memory(cmp);
        return;
    }

    if (rc == NGX_DECLINED) {
        ngx_http_dsa_compact_fail(cmp, cmp->summary.why);
        return;
    }

    if (rc == NGX_OK) {
        ngx_http_dsa_metrics_add(summary_made, 1);

    } else {
        ngx_http_dsa_metrics_add(summary_failed, 1);
    }

    cmp->handler(cmp->data, rc);
}


static ngx_int_t
ngx_http_dsa_compact_replace(ngx_http_dsa_compact_t *cmp)
{
    dsa_buf_t  *text;

    text = &cmp->summary.text;

    dsa_compact_quote(text, cmp->submit->chat);

    if (text->failed
        || dsa_compact_replace(cmp->submit->chat, cmp->count.arena,
                               dsa_str(text->data, text->len))
           != DSA_OK)
    {
        return NGX_ERROR;
    }

    cmp->text = *text;
    ngx_memzero(text, sizeof(dsa_buf_t));

    return NGX_OK;
}


/* A prompt that exceeds the context is the only reason that is the client's. */

static void
ngx_http_dsa_compact_fail(ngx_http_dsa_compact_t *cmp, const char *why)
{
    ngx_http_dsa_metrics_add(summary_failed, 1);

    ngx_log_error(NGX_LOG_WARN, cmp->request->connection->log, 0,
                  "request \"%V\" is not compacted: the summary failed: %s",
                  &cmp->submit->id, why);

    if (cmp->summary.refused.context != 0) {
        *cmp->failure = cmp->summary.refused;

    } else {
        ngx_http_dsa_failure_set(cmp->failure, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                 NULL, "The conversation was not compacted: "
                                 "the summary failed: %s.", why);
    }

    cmp->handler(cmp->data, NGX_ERROR);
}


static void
ngx_http_dsa_compact_no_memory(ngx_http_dsa_compact_t *cmp)
{
    ngx_http_dsa_failure_memory(cmp->failure);

    cmp->handler(cmp->data, NGX_ERROR);
}


void
ngx_http_dsa_compact_detach(ngx_http_dsa_compact_t *cmp)
{
    ngx_http_dsa_count_detach(&cmp->count);
    ngx_http_dsa_summary_detach(&cmp->summary);
}


void
ngx_http_dsa_compact_free(ngx_http_dsa_compact_t *cmp)
{
    ngx_http_dsa_summary_free(&cmp->summary);

    ngx_http_dsa_count_free(&cmp->count);
}
