
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "ngx_http_dsa_chat_stage.h"


/* The stages that make a long prompt shorter. */

static void ngx_http_dsa_chat_edited(void *data, ngx_int_t rc);
static void ngx_http_dsa_chat_compacted(void *data, ngx_int_t rc);
static void ngx_http_dsa_chat_windowed(void *data, ngx_int_t rc);


ngx_int_t
ngx_http_dsa_chat_edit(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_edit_t  *ed;

    if (req->submit.chat->n_edits == 0) {
        return NGX_DECLINED;
    }

    /* the struct is as large as that of the request, and few chats need it */

    ed = ngx_pcalloc(req->http->pool, sizeof(ngx_http_dsa_edit_t));

    if (ed == NULL) {
        ngx_http_dsa_failure_memory(&req->failure);
        return NGX_ERROR;
    }

    req->edit = ed;

    ed->request = req->http;
    ed->work = &req->work;
    ed->submit = &req->submit;
    ed->failure = &req->failure;
    ed->handler = ngx_http_dsa_chat_edited;
    ed->data = req;

    ngx_http_dsa_edit_start(ed, req->submit.chat->n_first);

    return NGX_AGAIN;
}


ngx_int_t
ngx_http_dsa_chat_edit_rest(ngx_http_dsa_request_t *req)
{
    dsa_chat_t  *chat;

    chat = req->submit.chat;

    if (chat->n_first == chat->n_edits) {
        return NGX_DECLINED;
    }

    /* a summary leaves nothing to edit */

    if (chat->question || req->answer.api->summary.len != 0) {
        return NGX_DECLINED;
    }

    ngx_http_dsa_edit_start(req->edit, chat->n_edits);

    return NGX_AGAIN;
}


static void
ngx_http_dsa_chat_edited(void *data, ngx_int_t rc)
{
    ngx_http_dsa_request_t *req = data;

    ngx_http_dsa_api_answer_t  *a;

    if (rc != NGX_OK) {
        ngx_http_dsa_request_fail(req);
        return;
    }

    a = req->answer.api;
    a->edits = req->edit->applied;
    a->n_edits = req->edit->n;

    ngx_http_dsa_chat_next(req);
}


ngx_int_t
ngx_http_dsa_chat_compact(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_compact_t  *cmp;

    if (req->submit.chat->compact_threshold == 0 || req->submit.count) {
        return NGX_DECLINED;
    }

    /* the struct is as large as that of the request, and few chats need it */

    cmp = ngx_pcalloc(req->http->pool, sizeof(ngx_http_dsa_compact_t));

    if (cmp == NULL) {
        ngx_http_dsa_failure_memory(&req->failure);
        return NGX_ERROR;
    }

    req->compact = cmp;

    cmp->request = req->http;
    cmp->work = &req->work;
    cmp->submit = &req->submit;
    cmp->requests = req->requests;
    cmp->failure = &req->failure;
    cmp->handler = ngx_http_dsa_chat_compacted;
    cmp->data = req;

    ngx_http_dsa_compact_start(cmp);

    return NGX_AGAIN;
}


static void
ngx_http_dsa_chat_compacted(void *data, ngx_int_t rc)
{
    ngx_http_dsa_request_t *req = data;

    ngx_http_dsa_api_answer_t  *a;

    a = req->answer.api;

    a->summary = req->compact->text;
    a->summary_usage = req->compact->summary.usage;

    ngx_memzero(&req->compact->text, sizeof(dsa_buf_t));

    if (rc != NGX_OK) {
        ngx_http_dsa_request_fail(req);
        return;
    }

    if (req->submit.chat->question) {
        a->question = 1;
        a->thinking = 0;
        req->answer.tools = 0;
    }

    ngx_http_dsa_chat_next(req);
}


ngx_int_t
ngx_http_dsa_chat_window(ngx_http_dsa_request_t *req)
{
    dsa_window_e               strategy;
    ngx_http_dsa_window_t     *win;
    ngx_http_dsa_loc_conf_t   *dlcf;
    ngx_http_dsa_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(req->http, ngx_http_dsa_module);
    dlcf = ngx_http_get_module_loc_conf(req->http, ngx_http_dsa_module);

    strategy = req->submit.chat->window;

    if (strategy == DSA_WINDOW_UNSET) {
        strategy = dlcf->context_strategy;
    }

    /* a text completion has no messages that could be removed */

    if (strategy == DSA_WINDOW_NONE || req->submit.chat->completion != NULL) {
        return NGX_DECLINED;
    }

    /* a compaction summarizes all of the conversation */

    if (req->submit.chat->question) {
        return NGX_DECLINED;
    }

    /* the struct is as large as that of the request, and few chats need it */

    win = ngx_pcalloc(req->http->pool, sizeof(ngx_http_dsa_window_t));

    if (win == NULL) {
        ngx_http_dsa_failure_memory(&req->failure);
        return NGX_ERROR;
    }

    req->window = win;

    win->request = req->http;
    win->work = &req->work;
    win->submit = &req->submit;
    win->failure = &req->failure;
    win->requests = req->requests;
    win->percent = dlcf->context_threshold;
    win->stored.redis = mcf->redis;
    win->stored.tenant = req->tenant;
    win->handler = ngx_http_dsa_chat_windowed;
    win->data = req;

    ngx_http_dsa_window_start(win, strategy);

    return NGX_AGAIN;
}


static void
ngx_http_dsa_chat_windowed(void *data, ngx_int_t rc)
{
    ngx_http_dsa_request_t *req = data;

    if (rc == NGX_OK && req->window->applied.len != 0) {
        req->strategy = req->window->applied;
        req->answer.api->context = &req->window->report;

        rc = ngx_http_dsa_window_headers(req->window);
    }

    if (rc != NGX_OK) {
        ngx_http_dsa_request_fail(req);
        return;
    }

    ngx_http_dsa_chat_next(req);
}
