
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "ngx_http_dsa_module.h"


/*
 * The way back: what the engine says, the client's answer, the ledger, the
 * timer, and the one place where every request ends.
 */


/* an engine answers a cancel within one step */
#define NGX_HTTP_DSA_LINGER         5000

/* bytes of an engine's error that are logged */
#define NGX_HTTP_DSA_REASON         512


static void ngx_http_dsa_linger_handler(ngx_event_t *ev);
static void ngx_http_dsa_on_accept(ngx_http_dsa_ctx_t *ctx);
static void ngx_http_dsa_on_tokens(ngx_http_dsa_account_t *account,
    const u_char *p);
static ngx_uint_t ngx_http_dsa_on_text(ngx_http_dsa_ctx_t *ctx,
    const dsa_link_tokens_t *tokens, const u_char *p);
static void ngx_http_dsa_on_done(ngx_http_dsa_account_t *account,
    const dsa_link_done_t *done);
static void ngx_http_dsa_complete(ngx_http_dsa_ctx_t *ctx,
    ngx_uint_t stopped);
static void ngx_http_dsa_cut(ngx_http_dsa_ctx_t *ctx);
static void ngx_http_dsa_on_error(ngx_http_dsa_ctx_t *ctx,
    const dsa_link_failure_t *failure);
static void ngx_http_dsa_on_context(ngx_http_dsa_ctx_t *ctx,
    const dsa_link_failure_t *failure);
static void ngx_http_dsa_on_lost(ngx_http_dsa_ctx_t *ctx);

static void ngx_http_dsa_drop_prompt(ngx_http_dsa_ctx_t *ctx);
static ngx_int_t ngx_http_dsa_record(ngx_http_dsa_account_t *account,
    ngx_http_dsa_ctx_t *ctx);
static void ngx_http_dsa_recorded(ngx_http_request_t *r, const char *why);
static void ngx_http_dsa_finish(ngx_http_dsa_ctx_t *ctx);
static void ngx_http_dsa_output(ngx_http_dsa_ctx_t *ctx, ngx_uint_t last);
static void ngx_http_dsa_finalize(ngx_http_dsa_ctx_t *ctx, ngx_int_t rc);
static void ngx_http_dsa_expire(ngx_http_dsa_ctx_t *ctx);
static ngx_msec_t ngx_http_dsa_keepalive(ngx_http_dsa_ctx_t *ctx);
static void ngx_http_dsa_release(ngx_http_dsa_ctx_t *ctx);


/* From the engine: while the ring is read nothing is sent or finalized. */

void
ngx_http_dsa_event_handler(ngx_http_dsa_call_t *call,
    ngx_http_dsa_event_e event, const void *data)
{
    size_t                   len;
    u_char                   text[NGX_HTTP_DSA_REASON];
    ngx_uint_t               level;
    ngx_connection_t        *c;
    dsa_link_done_t          done;
    dsa_link_failure_t       failure;
    dsa_link_accepted_t      accepted;
    ngx_http_dsa_ctx_t      *ctx;
    ngx_http_dsa_account_t  *account;

    account = (ngx_http_dsa_account_t *) call;
    ctx = call->data;

    if (ctx != NULL && ctx->done && event != NGX_HTTP_DSA_EV_FLUSH) {

        /* it ended without the engine's DONE: its usage is final already */

        return;
    }

    switch (event) {

    case NGX_HTTP_DSA_EV_ACCEPTED:
        ngx_memcpy(&accepted, data, sizeof(dsa_link_accepted_t));

        /* nothing of it is computed yet, so nothing is charged */

        account->prompt_tokens = accepted.prompt_tokens;
        account->cached_tokens = ngx_min(accepted.cached_tokens,
                                         accepted.prompt_tokens);

        if (ctx != NULL) {
            ngx_http_dsa_on_accept(ctx);
        }

        return;

    case NGX_HTTP_DSA_EV_TOKENS:
        ngx_http_dsa_on_tokens(account, data);
        return;

    case NGX_HTTP_DSA_EV_DONE:
        ngx_memcpy(&done, data, sizeof(dsa_link_done_t));
        ngx_http_dsa_on_done(account, &done);
        break;

    case NGX_HTTP_DSA_EV_ERROR:
        ngx_memcpy(&failure, data, sizeof(dsa_link_failure_t));

        if (ctx != NULL) {
            level = (failure.code == DSA_LINK_E_INVALID
                     || failure.code == DSA_LINK_E_INTERNAL)
                    ? NGX_LOG_ERR : NGX_LOG_INFO;

            len = ngx_http_dsa_printable(text, sizeof(text),
                                         (u_char *) data
                                         + sizeof(dsa_link_failure_t),
                                         failure.text_len);

            ngx_log_error(level, ctx->request->connection->log, 0,
                          "engine refused with %uD: %*s", failure.code,
                          len, text);

            ngx_http_dsa_on_error(ctx, &failure);
        }

        break;

    case NGX_HTTP_DSA_EV_LOST:
        if (ctx != NULL) {
            ngx_http_dsa_on_lost(ctx);
        }

        break;

    case NGX_HTTP_DSA_EV_FLUSH:
        c = ctx->request->connection;

        ngx_http_set_log_request(c->log, ctx->request);
        ngx_http_dsa_flush(ctx);
        ngx_http_run_posted_requests(c);
        return;
    }

    if (ctx == NULL) {

        /* the client left before; what it used up is written down now */

        if (account->linger.timer_set) {
            ngx_del_timer(&account->linger);
        }

        if (!account->recorded) {
            (void) ngx_http_dsa_record(account, NULL);
        }

        ngx_free(account);
    }
}


/* The engine has not told in time: a worker need not stay for that. */

static void
ngx_http_dsa_linger_handler(ngx_event_t *ev)
{
    ngx_log_error(NGX_LOG_ERR, ev->log, 0,
                  "engine has not ended a cancelled request within %d ms",
                  NGX_HTTP_DSA_LINGER);
}


static void
ngx_http_dsa_on_accept(ngx_http_dsa_ctx_t *ctx)
{
    if (ctx->accepted) {
        return;
    }

    ctx->accepted = 1;

    ctx->openai.id = ctx->id;
    ctx->openai.model = ctx->model;
    ctx->openai.created = ngx_time();
    ctx->openai.out = &ctx->stream.pending;

    ngx_http_dsa_drop_prompt(ctx);

    if (ngx_http_dsa_openai_start(&ctx->openai, ctx->request->pool) != NGX_OK)
    {
        ngx_http_dsa_set_failure(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR, NULL,
                                 "Out of memory.");
    }
}


static void
ngx_http_dsa_on_tokens(ngx_http_dsa_account_t *account, const u_char *p)
{
    ngx_msec_t           now;
    dsa_link_tokens_t    tokens;
    ngx_http_dsa_ctx_t  *ctx;

    ngx_memcpy(&tokens, p, sizeof(dsa_link_tokens_t));
    p += sizeof(dsa_link_tokens_t);

    ctx = account->call.data;

    if (!account->call.accepted) {
        return;
    }

    account->usage.completion += tokens.n_tokens;

    if (account->usage.completion != 0) {

        /* the first token comes after all of the prompt */

        account->usage.prompt = account->prompt_tokens;
        account->usage.cached = account->cached_tokens;
    }

    if (ctx == NULL || !ctx->accepted || ctx->status != 0 || ctx->done) {
        return;
    }

    if (tokens.n_tokens != 0) {
        now = ngx_current_msec;

        if (!ctx->begun) {
            ctx->begun = 1;
            ctx->first_token = now;
            ngx_http_dsa_metrics_observe(NGX_HTTP_DSA_TTFT, now - ctx->start,
                                         1);

            if (tokens.n_tokens > 1) {
                ngx_http_dsa_metrics_observe(NGX_HTTP_DSA_INTER_TOKEN, 0,
                                             tokens.n_tokens - 1);
            }

        } else {
            ngx_http_dsa_metrics_observe(NGX_HTTP_DSA_INTER_TOKEN,
                                         (now - ctx->last_token)
                                         / tokens.n_tokens,
                                         tokens.n_tokens);
        }

        ctx->last_token = now;
    }

    ngx_http_dsa_stream_prepare(&ctx->stream);

    if (ngx_http_dsa_on_text(ctx, &tokens, p) != NGX_OK) {
        ngx_http_dsa_set_failure(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR, NULL,
                                 "Out of memory.");
    }
}


/* Feeds the text, token by token where it matters to which part they go. */

static ngx_uint_t
ngx_http_dsa_on_text(ngx_http_dsa_ctx_t *ctx, const dsa_link_tokens_t *tokens,
    const u_char *p)
{
    size_t                     n;
    uint32_t                   i, start;
    ngx_uint_t                 reasoning;
    const u_char              *text, *logprobs;
    dsa_link_token_t           token;
    dsa_link_logprob_t         entry, top[DSA_LINK_MAX_TOP];

    logprobs = p + (size_t) tokens->n_tokens * sizeof(dsa_link_token_t);
    text = logprobs;

    if (tokens->logprobs) {
        text += (size_t) tokens->n_tokens * (1 + tokens->n_top)
                * sizeof(dsa_link_logprob_t);
    }

    start = 0;

    for (i = 0; i < tokens->n_tokens; i++) {
        reasoning = dsa_parse_in_reasoning(ctx->parser);

        if (!reasoning && ctx->openai.logprobs == NULL) {

            /* reasoning does not begin again: the rest in one piece */

            break;
        }

        if (reasoning) {
            ctx->account->usage.reasoning++;
        }

        if (ctx->openai.logprobs != NULL && tokens->logprobs) {
            n = (size_t) i * (1 + tokens->n_top) * sizeof(dsa_link_logprob_t);

            ngx_memcpy(&entry, logprobs + n, sizeof(dsa_link_logprob_t));

            ngx_memcpy(top, logprobs + n + sizeof(dsa_link_logprob_t),
                       tokens->n_top * sizeof(dsa_link_logprob_t));

            ngx_http_dsa_openai_logprob(&ctx->openai, &entry, top,
                                        tokens->n_top, reasoning);
        }

        ngx_memcpy(&token, p + (size_t) i * sizeof(dsa_link_token_t),
                   sizeof(dsa_link_token_t));

        if (token.end != start
            && dsa_parse_feed(ctx->parser,
                              dsa_str(text + start, token.end - start))
               != DSA_OK)
        {
            return NGX_ERROR;
        }

        start = token.end;
    }

    if (tokens->text_len != start
        && dsa_parse_feed(ctx->parser,
                          dsa_str(text + start, tokens->text_len - start))
           != DSA_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


static void
ngx_http_dsa_on_done(ngx_http_dsa_account_t *account,
    const dsa_link_done_t *done)
{
    ngx_http_dsa_ctx_t    *ctx;
    ngx_http_dsa_usage_t  *usage;

    usage = &account->usage;

    usage->prompt = done->prompt_tokens;
    usage->cached = ngx_min(done->cached_tokens, done->prompt_tokens);
    usage->completion = done->completion_tokens;
    usage->reasoning = ngx_min(usage->reasoning, usage->completion);

    ngx_http_dsa_metrics_observe(NGX_HTTP_DSA_QUEUE, done->queue_ms, 1);

    ctx = account->call.data;

    if (ctx == NULL || ctx->status != 0) {
        return;
    }

    if (done->finish == DSA_LINK_FINISH_DEADLINE
        || (done->finish == DSA_LINK_FINISH_CANCELLED && ctx->expired))
    {
        ngx_http_dsa_cut(ctx);
        return;
    }

    if (!ctx->accepted) {
        ngx_http_dsa_set_failure(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR, NULL,
                                 "The engine ended the request before it "
                                 "accepted it.");
        return;
    }

    switch (done->finish) {

    case DSA_LINK_FINISH_STOP:
        ngx_http_dsa_complete(ctx, 1);
        return;

    case DSA_LINK_FINISH_LENGTH:
        ngx_http_dsa_complete(ctx, 0);
        return;

    default:
        ngx_http_dsa_set_failure(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR, NULL,
                                 "The engine gave up the request.");
        return;
    }
}


/* The end of the answer's text; stopped is 0 if it was cut off. */

static void
ngx_http_dsa_complete(ngx_http_dsa_ctx_t *ctx, ngx_uint_t stopped)
{
    ngx_http_dsa_stream_prepare(&ctx->stream);

    if (dsa_parse_end(ctx->parser, stopped) != DSA_OK) {
        ngx_http_dsa_set_failure(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR, NULL,
                                 "Out of memory.");
        return;
    }

    ctx->done = 1;

    if (!stopped) {
        ctx->finish = "length";

    } else if (dsa_parse_calls(ctx->parser) != 0) {
        ctx->finish = "tool_calls";

    } else {
        ctx->finish = "stop";
    }
}


/*
 * Ends an answer when dsa_timeout is over: with its text so far, as if
 * max_tokens had been reached, or with an error if it has no token.
 */

static void
ngx_http_dsa_cut(ngx_http_dsa_ctx_t *ctx)
{
    if (ctx->status != 0) {
        return;
    }

    if (ctx->accepted
        && (ctx->begun || ctx->account->usage.completion != 0))
    {
        ngx_http_dsa_complete(ctx, 0);
        return;
    }

    ngx_http_dsa_set_failure(ctx, NGX_HTTP_GATEWAY_TIME_OUT, NULL,
                             "The answer was not complete in time.");
}


static void
ngx_http_dsa_on_error(ngx_http_dsa_ctx_t *ctx,
    const dsa_link_failure_t *failure)
{
    if (ctx->status != 0) {
        return;
    }

    if (ctx->expired) {
        ngx_http_dsa_cut(ctx);
        return;
    }

    switch (failure->code) {

    case DSA_LINK_E_CONTEXT:

        if (!ctx->accepted) {
            ngx_http_dsa_on_context(ctx, failure);
            return;
        }

        break;

    case DSA_LINK_E_OVERLOADED:
    case DSA_LINK_E_DRAINING:

        if (!ctx->accepted) {
            ctx->refused = 1;
            ctx->retry = 1;
            return;
        }

        /*
         * The queue is full, and a request that was accepted had to leave it.
         * Another engine cannot take it: the prompt is dropped at ACCEPTED.
         */

        if (failure->code == DSA_LINK_E_OVERLOADED) {
            ctx->code = "overloaded";
        }

        ngx_http_dsa_set_failure(ctx, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                 "The engine is overloaded or shuts down, try "
                                 "again later.");
        return;

    default:
        break;
    }

    ngx_http_dsa_set_failure(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR, NULL,
                             "The engine failed.");
}


/* One engine's context is too short; that of another one may do. */

static void
ngx_http_dsa_on_context(ngx_http_dsa_ctx_t *ctx,
    const dsa_link_failure_t *failure)
{
    uint64_t  needed;

    /* of several counts the one that was not stopped is right */

    if (!failure->more || ctx->counted == 0
        || (ctx->more && failure->prompt_tokens > ctx->counted))
    {
        ctx->counted = ngx_max(failure->prompt_tokens, 1);
        ctx->more = failure->more ? 1 : 0;
    }

    needed = (uint64_t) ctx->counted + (ctx->fitted ? 1 : ctx->max_tokens);

    ctx->needed = ngx_max(needed, (uint64_t) ctx->context + 1);
    ctx->retry = 1;
}


static void
ngx_http_dsa_on_lost(ngx_http_dsa_ctx_t *ctx)
{
    if (ctx->expired) {
        ngx_http_dsa_cut(ctx);
        return;
    }

    if (!ctx->accepted) {

        /* nothing was promised: another engine may take it */

        ctx->retry = 1;
        return;
    }

    ngx_http_dsa_set_failure(ctx, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                             "The engine went away before the answer was "
                             "complete.");
}


/* The first failure counts; nothing is sent here. */

void
ngx_http_dsa_set_failure(ngx_http_dsa_ctx_t *ctx, ngx_uint_t status,
    const char *param, const char *fmt, ...)
{
    va_list  args;

    if (ctx->status != 0) {
        return;
    }

    ctx->status = status;
    ctx->param = param;

    va_start(args, fmt);
    (void) vsnprintf(ctx->failure, sizeof(ctx->failure), fmt, args);
    va_end(args);
}


static void
ngx_http_dsa_drop_prompt(ngx_http_dsa_ctx_t *ctx)
{
    dsa_arena_destroy(ctx->work);
    dsa_arena_destroy(ctx->arena);

    ctx->work = NULL;
    ctx->arena = NULL;
    ctx->chat = NULL;

    ngx_memzero(&ctx->prompt, sizeof(dsa_prompt_t));
    ctx->fields = NULL;
    ctx->n_fields = 0;
}


void
ngx_http_dsa_flush(ngx_http_dsa_ctx_t *ctx)
{
    if (ctx->saving) {
        return;
    }

    if (ctx->status != 0) {
        ngx_http_dsa_fail(ctx);
        return;
    }

    if (ctx->retry) {
        ctx->retry = 0;
        ngx_http_dsa_submit(ctx);
        return;
    }

    if (ctx->done) {
        ngx_http_dsa_finish(ctx);
        return;
    }

    if (!ctx->accepted) {
        return;
    }

    if (!ctx->openai.stream) {
        return;
    }

    /* while the client is slow its next chunk stays open and grows */

    if (!ctx->stream.busy) {
        ngx_http_dsa_openai_close(&ctx->openai);
    }

    ngx_http_dsa_output(ctx, 0);
}


/* The end of a good answer: the ledger, then the last words. */

static void
ngx_http_dsa_finish(ngx_http_dsa_ctx_t *ctx)
{
    if (!ctx->recorded) {
        ngx_http_dsa_openai_close(&ctx->openai);

        if (ngx_http_dsa_record(ctx->account, ctx) == NGX_OK
            && ctx->conversation.len != 0)
        {
            /* the client must find this turn when it comes with the next */

            ctx->saving = 1;

            if (ctx->openai.stream) {
                ngx_http_dsa_output(ctx, 0);
            }

            return;
        }
    }

    if (!ctx->ended) {
        ctx->ended = 1;

        ngx_http_dsa_stream_prepare(&ctx->stream);
        ngx_http_dsa_openai_finish(&ctx->openai, ctx->finish,
                                   &ctx->account->usage);
    }

    ngx_http_dsa_output(ctx, 1);
}


static void
ngx_http_dsa_recorded(ngx_http_request_t *r, const char *why)
{
    ngx_http_dsa_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_dsa_module);

    if (ctx == NULL || ctx->account == NULL) {

        /* it was too late, its client is still being told so */

        return;
    }

    ctx->openai.unsaved = why;
    ctx->saving = 0;

    ngx_http_dsa_finish(ctx);
}


/*
 * Counts and writes down what a request has used.  ctx is NULL when the
 * client has left.  NGX_OK: ngx_http_dsa_recorded() will be called.
 */

static ngx_int_t
ngx_http_dsa_record(ngx_http_dsa_account_t *account, ngx_http_dsa_ctx_t *ctx)
{
    ngx_int_t              rc;
    const char            *why;
    ngx_http_dsa_usage_t  *usage;
    ngx_http_dsa_record_t  record;

    usage = &account->usage;

    if (ctx != NULL) {
        ctx->recorded = 1;

        if (ctx->done) {
            ctx->openai.conversation = ctx->conversation;
            ctx->openai.version = ctx->version + 1;
            ctx->openai.unsaved = "the engine reported no tokens";
        }
    }

    if (usage->prompt == 0 && usage->completion == 0) {
        return NGX_DECLINED;
    }

    ngx_http_dsa_metrics_add(prompt, usage->prompt);
    ngx_http_dsa_metrics_add(cached, usage->cached);
    ngx_http_dsa_metrics_add(completion, usage->completion);
    ngx_http_dsa_metrics_add(reasoning, usage->reasoning);

    if (account->redis == NULL) {
        return NGX_DECLINED;
    }

    ngx_memzero(&record, sizeof(ngx_http_dsa_record_t));

    record.request_id.data = account->id;
    record.request_id.len = NGX_HTTP_DSA_ID_LEN;
    record.tenant.data = account->tenant;
    record.tenant.len = NGX_HTTP_DSA_TENANT_LEN;
    record.model.data = account->model;
    record.model.len = account->model_len;
    record.time = ngx_time();
    record.prompt_tokens = usage->prompt;
    record.cached_tokens = usage->cached;
    record.completion_tokens = usage->completion;
    record.reasoning_tokens = usage->reasoning;

    if (ctx != NULL && ctx->done && ctx->conversation.len != 0) {
        ngx_http_dsa_openai_message(&ctx->openai, &ctx->messages);
        dsa_buf_add(&ctx->messages, "", 1);

        if (!ctx->messages.failed) {
            record.conversation = ctx->conversation;
            record.version = ctx->version;
            record.messages = &ctx->messages;
            record.request = ctx->request;
            record.handler = ngx_http_dsa_recorded;
        }
    }

    why = "nginx is out of memory";

    rc = ngx_http_dsa_store_record(account->redis, &record, &why);

    if (ctx != NULL) {
        ctx->openai.unsaved = why;
    }

    return record.handler != NULL ? rc : NGX_DECLINED;
}


/* The end of a request that cannot go on: as HTTP, or in the stream. */

void
ngx_http_dsa_fail(ngx_http_dsa_ctx_t *ctx)
{
    ngx_uint_t           level;
    ngx_http_request_t  *r;

    r = ctx->request;

    ctx->finish = "error";

    if (ctx->account->call.session == NULL) {

        if (!ctx->recorded) {
            (void) ngx_http_dsa_record(ctx->account, ctx);
        }

    } else if (ctx->reason == NGX_HTTP_DSA_CANCEL_CLIENT) {
        ctx->reason = NGX_HTTP_DSA_CANCEL_ERROR;
    }

    if (!ctx->stream.headers) {
        ctx->ended = 1;
        ngx_http_dsa_finalize(ctx, ngx_http_dsa_send_failure(r, ctx->status,
                                                            ctx->code,
                                                            ctx->param,
                                                            ctx->failure));
        return;
    }

    if (!ctx->ended) {
        ctx->ended = 1;

        level = (ctx->status >= NGX_HTTP_INTERNAL_SERVER_ERROR)
                ? NGX_LOG_ERR : NGX_LOG_INFO;

        ngx_log_error(level, r->connection->log, 0,
                      "stream ends with error %ui: %s", ctx->status,
                      ctx->failure);

        ngx_http_dsa_stream_prepare(&ctx->stream);

        if (ctx->openai.stream) {
            if (ctx->accepted) {
                ngx_http_dsa_openai_close(&ctx->openai);
            }

            dsa_buf_addz(&ctx->stream.pending, "data: ");
        }

        ngx_http_dsa_openai_failure(&ctx->stream.pending, ctx->status,
                                    ctx->code, ctx->param, ctx->failure);

        if (ctx->openai.stream) {
            dsa_buf_addz(&ctx->stream.pending, "\n\n");
        }
    }

    /* a client must not take this for an end like any other */

    r->keepalive = 0;

    ngx_http_dsa_output(ctx, 1);
}


/* Sends what is pending, after the headers; the request may be gone then. */

static void
ngx_http_dsa_output(ngx_http_dsa_ctx_t *ctx, ngx_uint_t last)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = ctx->request;

    if (!ctx->stream.headers) {

        if (last && !ctx->openai.stream) {
            ngx_http_dsa_finalize(ctx, ngx_http_dsa_send_json(r, NGX_HTTP_OK,
                                                       &ctx->stream.pending));
            return;
        }

        if (ngx_http_dsa_stream_start(ctx) != NGX_OK) {
            ngx_http_dsa_finalize(ctx, NGX_ERROR);
            return;
        }
    }

    rc = ngx_http_dsa_stream_send(ctx, last);

    switch (rc) {

    case NGX_DONE:
        ngx_http_dsa_finalize(ctx, NGX_OK);
        return;

    case NGX_DECLINED:
        ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                      "client is too slow, %uz bytes wait for it",
                      ctx->stream.pending.len);
        ctx->reason = NGX_HTTP_DSA_CANCEL_SLOW;

        /* fall through */

    case NGX_ERROR:
        ngx_http_dsa_finalize(ctx, NGX_ERROR);
        return;

    default: /* NGX_OK, NGX_AGAIN */
        return;
    }
}


static void
ngx_http_dsa_finalize(ngx_http_dsa_ctx_t *ctx, ngx_int_t rc)
{
    /* nginx sends what is left with a timer of its own */

    if (ctx->timer.timer_set) {
        ngx_del_timer(&ctx->timer);
    }

    /* while the client takes its time to read, nothing more may come */

    ngx_http_dsa_release(ctx);

    ngx_http_finalize_request(ctx->request, rc);
}


void
ngx_http_dsa_timer_handler(ngx_event_t *ev)
{
    ngx_msec_t           now, keepalive;
    ngx_connection_t    *c;
    ngx_http_request_t  *r;
    ngx_http_dsa_ctx_t  *ctx;

    ctx = ev->data;
    r = ctx->request;
    c = r->connection;
    now = ngx_current_msec;

    ngx_http_set_log_request(c->log, r);

    if ((ngx_msec_int_t) (ctx->deadline - now) <= 0) {
        ngx_http_dsa_expire(ctx);
        ngx_http_run_posted_requests(c);
        return;
    }

    ngx_http_dsa_set_timer(ctx);

    keepalive = ngx_http_dsa_keepalive(ctx);

    if (keepalive != 0 && now - ctx->last_write >= keepalive
        && !ctx->stream.busy && !ctx->ended)
    {
        /* between events: a comment, or a blank line in front of the JSON */

        ngx_http_dsa_stream_prepare(&ctx->stream);

        dsa_buf_addz(&ctx->stream.pending,
                     ctx->openai.stream ? ": keep-alive\n\n" : "\n");

        ngx_http_dsa_output(ctx, 0);
    }

    ngx_http_run_posted_requests(c);
}


/*
 * dsa_timeout is over.  The engine ends a cancelled request within one step
 * and reports what it has computed, which is what the client and the ledger
 * must get.  The worker waits for this report, but not longer than
 * NGX_HTTP_DSA_GRACE.
 */

static void
ngx_http_dsa_expire(ngx_http_dsa_ctx_t *ctx)
{
    if (ctx->status != 0 || ctx->ended || ctx->saving) {

        /*
         * The rest has limits of its own: send_timeout for a slow client, and
         * dsa_redis's timeout for a turn that is written.  A failure now would
         * hide from the client that its turn may be stored.
         */

        return;
    }

    /* armed before anything that may free the request */

    ngx_add_timer(&ctx->timer, NGX_HTTP_DSA_GRACE);

    if (!ctx->expired && !ctx->done && ctx->account->call.session != NULL) {
        ctx->expired = 1;
        ctx->reason = NGX_HTTP_DSA_CANCEL_TIMEOUT;
        ngx_http_dsa_metrics_add(cancelled[ctx->reason], 1);

        ngx_http_dsa_session_cancel(&ctx->account->call);

        return;
    }

    /* without an engine's report: what this worker has counted itself */

    ngx_http_dsa_cut(ctx);
    ngx_http_dsa_flush(ctx);
}


/* To the deadline, or to when a keep-alive may be due. */

void
ngx_http_dsa_set_timer(ngx_http_dsa_ctx_t *ctx)
{
    ngx_msec_t      now, keepalive;
    ngx_msec_int_t  left, quiet;

    now = ngx_current_msec;
    left = ctx->deadline - now;

    keepalive = ngx_http_dsa_keepalive(ctx);

    if (keepalive != 0) {
        quiet = ctx->last_write + keepalive - now;

        if (quiet <= 0) {
            quiet = keepalive;
        }

        left = ngx_min(left, quiet);
    }

    ngx_add_timer(&ctx->timer, (ngx_msec_t) ngx_max(left, 1));
}


/*
 * How long the client may hear nothing; 0: no keep-alives.  The first byte of
 * an answer in one piece takes its status away: an error that came later would
 * be a 200, which clients read as a completion.
 */

static ngx_msec_t
ngx_http_dsa_keepalive(ngx_http_dsa_ctx_t *ctx)
{
    ngx_http_dsa_loc_conf_t  *dlcf;

    dlcf = ngx_http_get_module_loc_conf(ctx->request, ngx_http_dsa_module);

    return ctx->openai.stream || dlcf->keepalive_json ? dlcf->keepalive : 0;
}


/* However a request ends, it ends here. */

void
ngx_http_dsa_cleanup(void *data)
{
    ngx_http_dsa_ctx_t *ctx = data;

    if (ctx->timer.timer_set) {
        ngx_del_timer(&ctx->timer);
    }

    ngx_http_dsa_release(ctx);

    dsa_parse_destroy(ctx->parser);
    ctx->parser = NULL;

    ngx_http_dsa_drop_prompt(ctx);
    ngx_http_dsa_openai_free(&ctx->openai);
    dsa_buf_free(&ctx->messages);

    ngx_http_dsa_metrics_add(in_flight, -1);
}


/*
 * Parts a request from its account, and cancels what the engine still does
 * for it.  Nothing comes for it from the engine any more.
 */

static void
ngx_http_dsa_release(ngx_http_dsa_ctx_t *ctx)
{
    ngx_connection_t        *c;
    ngx_http_dsa_account_t  *account;

    account = ctx->account;

    if (account == NULL) {
        return;
    }

    ctx->account = NULL;
    ctx->usage = account->usage;

    if (ctx->finish == NULL) {
        ctx->finish = "cancelled";
    }

    if (ctx->queued) {
        ngx_queue_remove(&ctx->waiting);
        ctx->queued = 0;
    }

    if (account->call.touched) {
        ngx_queue_remove(&account->call.queue);
        account->call.touched = 0;
    }

    account->call.data = NULL;

    if (account->call.session == NULL) {

        if (!ctx->recorded) {
            (void) ngx_http_dsa_record(account, ctx);
        }

        ngx_free(account);
        return;
    }

    c = ctx->request->connection;

    if (ctx->reason == NGX_HTTP_DSA_CANCEL_CLIENT && c->close && c->error) {
        ctx->reason = NGX_HTTP_DSA_CANCEL_SHUTDOWN;
    }

    if (!ctx->expired) {
        ngx_http_dsa_metrics_add(cancelled[ctx->reason], 1);

        ngx_http_dsa_session_cancel(&account->call);
    }

    account->recorded = ctx->recorded;

    /* a worker that shuts down waits for what the engine has to tell */

    account->linger.handler = ngx_http_dsa_linger_handler;
    account->linger.log = ngx_cycle->log;

    ngx_add_timer(&account->linger, NGX_HTTP_DSA_LINGER);
}
