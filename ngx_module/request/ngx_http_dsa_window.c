
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_module/core/ngx_http_dsa_metrics.h"
#include "ngx_module/engine/ngx_http_dsa_models.h"
#include "ngx_module/http/ngx_http_dsa_body.h"
#include "ngx_module/http/ngx_http_dsa_reply.h"
#include "ngx_http_dsa_window.h"


static ngx_int_t ngx_http_dsa_window_replay(ngx_http_dsa_window_t *win);
static ngx_str_t *ngx_http_dsa_window_model(ngx_http_dsa_submit_t *submit);
static void ngx_http_dsa_window_step(ngx_http_dsa_window_t *win);
static ngx_int_t ngx_http_dsa_window_look(ngx_http_dsa_window_t *win);
static void ngx_http_dsa_window_digest(void *data);
static void ngx_http_dsa_window_digested(void *data);
static void ngx_http_dsa_window_looked(void *data);
static ngx_int_t ngx_http_dsa_window_prompt(ngx_http_dsa_window_t *win);
static void ngx_http_dsa_window_encode(void *data);
static void ngx_http_dsa_window_encoded(void *data);
static ngx_int_t ngx_http_dsa_window_count(ngx_http_dsa_window_t *win);
static ngx_int_t ngx_http_dsa_window_submit(ngx_http_dsa_window_t *win);
static void ngx_http_dsa_window_ended(ngx_http_dsa_engine_request_t *er,
    ngx_http_dsa_engine_end_e end);
static void ngx_http_dsa_window_flush(ngx_http_dsa_engine_request_t *er);
static void ngx_http_dsa_window_end(ngx_http_dsa_window_t *win);
static void ngx_http_dsa_window_summarize(ngx_http_dsa_window_t *win);
static void ngx_http_dsa_window_made(void *data, ngx_int_t rc);
static void ngx_http_dsa_window_insert(ngx_http_dsa_window_t *win,
    const dsa_buf_t *text);
static void ngx_http_dsa_window_inserted(ngx_http_dsa_window_t *win);
static void ngx_http_dsa_window_discard(ngx_http_dsa_window_t *win,
    const char *why);
static void ngx_http_dsa_window_apply(ngx_http_dsa_window_t *win);
static void ngx_http_dsa_window_no_memory(ngx_http_dsa_window_t *win);


static const ngx_http_dsa_engine_owner_t  ngx_http_dsa_window_owner = {
    .name = "count",
    .end = ngx_http_dsa_window_ended,
    .flush = ngx_http_dsa_window_flush
};


ngx_conf_enum_t  ngx_http_dsa_window_strategies[] = {
    { ngx_string("none"), DSA_WINDOW_NONE },
    { ngx_string("discard_75"), DSA_WINDOW_DISCARD_75 },
    { ngx_string("discard_all"), DSA_WINDOW_DISCARD_ALL },
    { ngx_string("summary"), DSA_WINDOW_SUMMARY },
    { ngx_null_string, 0 }
};


char *
ngx_http_dsa_window_threshold(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char  *p = conf;

    ngx_int_t   n, *percent;
    ngx_str_t  *value;

    percent = (ngx_int_t *) (p + cmd->offset);

    if (*percent != NGX_CONF_UNSET) {
        return "is duplicate";
    }

    value = cf->args->elts;
    n = NGX_ERROR;

    if (value[1].len > 1 && value[1].data[value[1].len - 1] == '%') {
        n = ngx_atoi(value[1].data, value[1].len - 1);
    }

    if (n < 1 || n > 100) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" is not a threshold; expected a whole "
                           "number from \"1%%\" to \"100%%\"", &value[1]);
        return NGX_CONF_ERROR;
    }

    *percent = n;

    return NGX_CONF_OK;
}


void
ngx_http_dsa_window_start(ngx_http_dsa_window_t *win, dsa_window_e strategy)
{
    win->full = *win->submit->chat;
    win->full.window = strategy;
    win->stored.request = win->request;
    win->stored.handler = ngx_http_dsa_window_looked;
    win->stored.data = win;

    win->context = ngx_http_dsa_pool_context(win->submit->pool,
                                        ngx_http_dsa_window_model(win->submit));

    win->threshold = (uint64_t) win->context * win->percent / 100;

    if (win->threshold == 0) {

        /* no engine has this model */

        win->handler(win->data, NGX_OK);
        return;
    }

    if (ngx_http_dsa_window_replay(win) != NGX_OK) {
        ngx_http_dsa_window_no_memory(win);
        return;
    }

    ngx_http_dsa_window_step(win);
}


/* Begins a replay; NGX_ERROR: out of memory. */

static ngx_int_t
ngx_http_dsa_window_replay(ngx_http_dsa_window_t *win)
{
    win->memory = dsa_arena_create(NGX_HTTP_DSA_ARENA(win->full.n_messages
                                                  * sizeof(dsa_message_t)));

    if (win->memory == NULL
        || dsa_window_init(&win->replay, win->memory, &win->full,
                           win->full.window, win->threshold)
           != DSA_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* Returns the name of the model; NULL if any engine serves it. */

static ngx_str_t *
ngx_http_dsa_window_model(ngx_http_dsa_submit_t *submit)
{
    return ngx_http_dsa_models_any(&submit->model) ? NULL : &submit->model;
}


/* Continues the replay until something has to be waited for. */

static void
ngx_http_dsa_window_step(ngx_http_dsa_window_t *win)
{
    int        rc;
    ngx_int_t  result;

    do {
        if (!win->counted) {

            result = win->encoded ? NGX_OK : ngx_http_dsa_window_prompt(win);

            if (result == NGX_AGAIN) {
                return;
            }

            win->encoded = 0;

            if (result == NGX_ERROR || win->failure->status != 0) {
                win->handler(win->data, NGX_ERROR);
                return;
            }

            result = ngx_http_dsa_window_count(win);

            if (result == NGX_AGAIN) {
                return;
            }

            if (result == NGX_ERROR) {
                win->handler(win->data, NGX_OK);
                return;
            }
        }

        win->counted = 0;

        if (win->summarized) {
            ngx_http_dsa_window_inserted(win);
            return;
        }

        rc = dsa_window_counted(&win->replay, win->tokens);

        ngx_log_debug4(NGX_LOG_DEBUG_HTTP, win->request->connection->log, 0,
                       "dsa request %V: at most %uD tokens in the context, "
                       "threshold %uD, %uD rounds are cut", &win->submit->id,
                       win->tokens, win->threshold, win->replay.cut);

        if (rc == DSA_AGAIN && !win->looked) {
            win->looked = 1;

            result = ngx_http_dsa_window_look(win);

            if (result == NGX_AGAIN) {
                return;
            }

            if (result == NGX_ERROR) {
                win->handler(win->data, NGX_ERROR);
                return;
            }
        }

    } while (rc == DSA_AGAIN);

    ngx_http_dsa_window_end(win);
}


/*
 * Looks for an earlier cut in Redis.  NGX_AGAIN: the replay continues later;
 * NGX_DECLINED: it continues without it; NGX_ERROR with a failure.
 */

static ngx_int_t
ngx_http_dsa_window_look(ngx_http_dsa_window_t *win)
{
    ngx_int_t  rc;

    if (!ngx_http_dsa_window_usable(&win->stored)) {
        return NGX_DECLINED;
    }

    rc = ngx_http_dsa_work(win->work, NGX_HTTP_DSA_STAGE_WINDOW,
                           win->submit->bytes, ngx_http_dsa_window_digest,
                           ngx_http_dsa_window_digested, win);

    return rc == NGX_OK ? ngx_http_dsa_window_load(&win->stored) : rc;
}


/* A run. */

static void
ngx_http_dsa_window_digest(void *data)
{
    ngx_http_dsa_window_t *win = data;

    ngx_http_dsa_window_digests(&win->stored, &win->replay, win->memory,
                                &win->submit->model);
}


static void
ngx_http_dsa_window_digested(void *data)
{
    ngx_http_dsa_window_t *win = data;

    if (ngx_http_dsa_window_load(&win->stored) != NGX_AGAIN) {
        ngx_http_dsa_window_step(win);
    }
}


/* Continues after Redis has replied or has failed. */

static void
ngx_http_dsa_window_looked(void *data)
{
    ngx_http_dsa_window_step(data);
}


/*
 * Encodes the prompt to count.  NGX_OK: it is encoded, or the failure is set;
 * NGX_AGAIN: the same, later; NGX_ERROR with a failure.
 */

static ngx_int_t
ngx_http_dsa_window_prompt(ngx_http_dsa_window_t *win)
{
    size_t                  size;
    ngx_http_dsa_submit_t  *to;

    size = dsa_arena_used(win->submit->arena)
           + dsa_arena_used(win->submit->work);

    dsa_arena_destroy(win->arena);

    win->arena = dsa_arena_create(NGX_HTTP_DSA_ARENA(size));

    if (win->arena == NULL) {
        ngx_http_dsa_failure_memory(win->failure);
        return NGX_ERROR;
    }

    to = &win->attempt;

    ngx_http_dsa_submit_copy(to, win->submit);

    to->count = 1;
    to->chat = &win->left;
    to->work = win->arena;

    /* refuse a structure before a summary is computed for the request */

    to->format = win->submit->format;

    return ngx_http_dsa_work(win->work, NGX_HTTP_DSA_STAGE_WINDOW,
                             win->submit->bytes, ngx_http_dsa_window_encode,
                             ngx_http_dsa_window_encoded, win);
}


/* A run. */

static void
ngx_http_dsa_window_encode(void *data)
{
    ngx_http_dsa_window_t *win = data;

    dsa_err_t               err;
    ngx_http_dsa_submit_t  *to;

    to = &win->attempt;

    if (dsa_window_chat(&win->replay, win->arena, &win->left) != DSA_OK) {
        ngx_http_dsa_failure_memory(win->failure);
        return;
    }

    /* what the answer may be does not matter for the count of its prompt */

    win->left.max_tokens = 0;
    win->left.others = 0;

    if (to->family->encode(&to->prompt, to->work, to->chat, &err) != DSA_OK)
    {
        ngx_http_dsa_submit_unencoded(to, &err, win->failure);
    }
}


static void
ngx_http_dsa_window_encoded(void *data)
{
    ngx_http_dsa_window_t *win = data;

    win->encoded = 1;

    ngx_http_dsa_window_step(win);
}


/*
 * Counts the prompt.  NGX_OK: win->tokens is set; NGX_AGAIN: an engine counts
 * it; NGX_ERROR: no engine can count it.
 */

static ngx_int_t
ngx_http_dsa_window_count(ngx_http_dsa_window_t *win)
{
    uint32_t  limit;

    limit = win->summarized ? win->threshold : dsa_window_limit(&win->replay);

    if (win->attempt.prompt.bytes <= limit) {
        win->tokens = win->attempt.prompt.bytes;
        return NGX_OK;
    }

    ngx_memzero(&win->refused, sizeof(ngx_http_dsa_failure_t));

    if (ngx_http_dsa_submit_prompt(&win->attempt, &win->refused) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_dsa_engine_request_init(&win->er, &ngx_http_dsa_window_owner, win,
                                     win->request, &win->attempt,
                                     &win->refused);

    return ngx_http_dsa_window_submit(win);
}


/* Submits the count to the next engine; returns what the caller does. */

static ngx_int_t
ngx_http_dsa_window_submit(ngx_http_dsa_window_t *win)
{
    ngx_int_t  rc;

    rc = ngx_http_dsa_engine_request_submit(&win->er, &win->refused);

    if (rc == NGX_OK) {
        ngx_http_dsa_metrics_add(context_counts, 1);
    }

    if (rc != NGX_ERROR) {
        return NGX_AGAIN;
    }

    if (win->refused.status == NGX_HTTP_REQUEST_ENTITY_TOO_LARGE) {

        /* a prompt that is too long for the link exceeds any context */

        win->tokens = UINT32_MAX;
        return NGX_OK;
    }

    return NGX_ERROR;
}


static void
ngx_http_dsa_window_ended(ngx_http_dsa_engine_request_t *er,
    ngx_http_dsa_engine_end_e end)
{
    ngx_http_dsa_window_t *win = er->data;

    if (end == NGX_HTTP_DSA_ENGINE_COUNTED) {
        win->tokens = er->counted;
        win->counted = 1;

    } else if (win->refused.status == NGX_HTTP_BAD_REQUEST) {
        *win->failure = win->refused;
    }
}


/*
 * Continues, or tries another engine.  The request may be freed afterwards.
 */

static void
ngx_http_dsa_window_flush(ngx_http_dsa_engine_request_t *er)
{
    ngx_http_dsa_window_t *win = er->data;

    ngx_int_t  rc;

    if (win->failure->status != 0) {
        win->handler(win->data, NGX_ERROR);
        return;
    }

    if (er->pending) {
        rc = ngx_http_dsa_window_submit(win);

        if (rc == NGX_AGAIN) {
            return;
        }

        win->counted = rc == NGX_OK;
    }

    if (win->counted) {
        ngx_http_dsa_window_step(win);
        return;
    }

    ngx_log_error(NGX_LOG_WARN, win->request->connection->log, 0,
                  "no engine could count the prompt of request \"%V\", so "
                  "that all of it is submitted", &win->submit->id);

    win->handler(win->data, NGX_OK);
}


/* Ends the replay: applies the cut, or inserts or makes a summary. */

static void
ngx_http_dsa_window_end(ngx_http_dsa_window_t *win)
{
    if (win->full.window != DSA_WINDOW_SUMMARY || win->replay.cut == 0) {
        ngx_http_dsa_window_apply(win);
        return;
    }

    win->rest = win->tokens;

    if (win->rest > win->context
        || win->context - win->rest < win->replay.reserve)
    {
        ngx_http_dsa_window_discard(win, "the rest of the prompt leaves no "
                                    "room for it");
        return;
    }

    if (win->stored.found == win->replay.cut) {
        win->report.summary = "remembered";
        ngx_http_dsa_window_insert(win, &win->stored.summary);
        return;
    }

    if (win->submit->count) {
        ngx_http_dsa_window_apply(win);
        return;
    }

    ngx_http_dsa_window_summarize(win);
}


static void
ngx_http_dsa_window_summarize(ngx_http_dsa_window_t *win)
{
    ngx_http_dsa_summary_t        *sum;
    ngx_http_dsa_window_memory_t  *stored;

    sum = &win->summary;
    sum->request = win->request;
    sum->work = win->work;
    sum->submit = win->submit;
    sum->er = &win->requests->first;
    sum->failure = win->failure;
    sum->handler = ngx_http_dsa_window_made;
    sum->data = win;

    /* free the counted prompt, which is not needed for the summary */

    dsa_arena_destroy(win->arena);
    win->arena = NULL;

    stored = &win->stored;

    ngx_http_dsa_summary_start(sum, &win->replay,
                               dsa_str(stored->summary.data,
                                       stored->summary.len),
                               stored->found);
}


/* The handler of a summary. */

static void
ngx_http_dsa_window_made(void *data, ngx_int_t rc)
{
    ngx_http_dsa_window_t *win = data;

    win->report.usage = win->summary.usage;

    ngx_http_dsa_metrics_add(summary_prompt, win->summary.usage.prompt);
    ngx_http_dsa_metrics_add(summary_completion,
                             win->summary.usage.completion);

    switch (rc) {

    case NGX_OK:
        win->report.summary = "made";
        ngx_http_dsa_window_insert(win, &win->summary.text);
        return;

    case NGX_DECLINED:
        ngx_http_dsa_window_discard(win, win->summary.why);
        return;

    default: /* NGX_ERROR */
        ngx_http_dsa_metrics_add(summary_failed, 1);
        win->handler(win->data, NGX_ERROR);
        return;
    }
}


/* Inserts a summary into the prompt, and counts the prompt again. */

static void
ngx_http_dsa_window_insert(ngx_http_dsa_window_t *win, const dsa_buf_t *text)
{
    win->replay.summary = dsa_str(text->data, text->len);
    win->summarized = 1;

    ngx_http_dsa_window_step(win);
}


/*
 * Continues when the prompt with the summary was counted.  The summary may
 * exceed its reserve, because tokenizing its text can give more tokens than
 * were sampled, or because the record in Redis was written by something else.
 */

static void
ngx_http_dsa_window_inserted(ngx_http_dsa_window_t *win)
{
    ngx_uint_t  remembered;

    remembered = win->replay.summary.data == win->stored.summary.data;

    if (win->tokens <= ngx_max(win->threshold,
                               win->rest + win->replay.reserve))
    {
        if (remembered) {
            ngx_http_dsa_metrics_add(summary_found, 1);

        } else {
            ngx_http_dsa_metrics_add(summary_made, 1);
        }

        ngx_http_dsa_window_apply(win);
        return;
    }

    if (!remembered || win->submit->count) {
        ngx_http_dsa_window_discard(win, "its text is too long");
        return;
    }

    ngx_http_dsa_window_drop(&win->stored);

    win->stored.found = 0;
    win->replay.summary = dsa_str(NULL, 0);
    win->summarized = 0;

    ngx_http_dsa_window_summarize(win);
}


/* Begins again with the strategy discard_75, because there is no summary. */

static void
ngx_http_dsa_window_discard(ngx_http_dsa_window_t *win, const char *why)
{
    ngx_log_error(NGX_LOG_WARN, win->request->connection->log, 0,
                  "the long history of request \"%V\" is cut without a "
                  "summary: %s", &win->submit->id, why);

    ngx_http_dsa_metrics_add(summary_failed, 1);

    win->report.summary = "failed";
    win->report.failure = why;

    ngx_http_dsa_window_drop(&win->stored);

    win->stored.digests = NULL;
    win->stored.found = 0;
    win->summarized = 0;
    win->looked = 0;
    win->full.window = DSA_WINDOW_DISCARD_75;

    dsa_arena_destroy(win->memory);

    if (ngx_http_dsa_window_replay(win) != NGX_OK) {
        ngx_http_dsa_window_no_memory(win);
        return;
    }

    ngx_http_dsa_window_step(win);
}


static void
ngx_http_dsa_window_apply(ngx_http_dsa_window_t *win)
{
    dsa_chat_t                  *chat;
    ngx_http_dsa_api_context_t  *report;

    if (win->replay.cut != 0) {
        if (win->full.window != DSA_WINDOW_SUMMARY || win->summarized) {
            ngx_http_dsa_window_store(&win->stored, win->replay.summary);
        }

        report = &win->report;

        report->strategy = dsa_window_name(win->full.window);
        dsa_window_left(&win->replay, &report->messages, &report->calls);

        win->applied.data = (u_char *) report->strategy;
        win->applied.len = ngx_strlen(report->strategy);

        ngx_http_dsa_metrics_add(context_cuts[win->full.window], 1);
        ngx_http_dsa_metrics_add(context_calls, report->calls);

        chat = win->submit->chat;
        chat->messages = win->left.messages;
        chat->n_messages = win->left.n_messages;
        chat->n_stored = 0;
    }

    win->handler(win->data, NGX_OK);
}


static void
ngx_http_dsa_window_no_memory(ngx_http_dsa_window_t *win)
{
    ngx_http_dsa_failure_memory(win->failure);

    win->handler(win->data, NGX_ERROR);
}


ngx_int_t
ngx_http_dsa_window_headers(ngx_http_dsa_window_t *win)
{
    char                              *p;
    size_t                             len;
    ngx_int_t                          rc;
    const ngx_http_dsa_api_context_t  *report;

    report = &win->report;

    rc = ngx_http_dsa_add_header(win->request, "X-DSA-Context",
                                 report->strategy);

    if (rc == NGX_OK && report->summary != NULL) {
        len = sizeof("remembered; prompt=; cached=; completion=")
              + 3 * NGX_INT64_LEN;

        p = ngx_pnalloc(win->request->pool, len);

        if (p != NULL) {
            *ngx_sprintf((u_char *) p, "%s; prompt=%uL; cached=%uL; "
                         "completion=%uL", report->summary,
                         report->usage.prompt, report->usage.cached,
                         report->usage.completion) = '\0';
        }

        rc = p != NULL ? ngx_http_dsa_add_header(win->request,
                                                 "X-DSA-Summary", p)
                       : NGX_ERROR;
    }

    if (rc != NGX_OK) {
        ngx_http_dsa_failure_memory(win->failure);
    }

    return rc;
}


void
ngx_http_dsa_window_detach(ngx_http_dsa_window_t *win)
{
    ngx_http_dsa_engine_request_abandon(&win->er);
    ngx_http_dsa_pool_leave(&win->attempt.waiter);
    ngx_http_dsa_window_forget(&win->stored);
    ngx_http_dsa_summary_detach(&win->summary);
}


void
ngx_http_dsa_window_free(ngx_http_dsa_window_t *win)
{
    ngx_http_dsa_window_drop(&win->stored);
    ngx_http_dsa_summary_free(&win->summary);

    dsa_arena_destroy(win->arena);
    dsa_arena_destroy(win->memory);

    win->arena = NULL;
    win->memory = NULL;
}


_Static_assert(DSA_WINDOW_SUMMARY + 1 == NGX_HTTP_DSA_CONTEXTS,
               "a counter for each strategy");
