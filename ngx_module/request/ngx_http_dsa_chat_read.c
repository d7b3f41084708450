
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "ngx_module/account/ngx_http_dsa_access.h"
#include "ngx_module/core/ngx_http_dsa_conf.h"
#include "ngx_module/engine/ngx_http_dsa_aliases.h"
#include "ngx_module/engine/ngx_http_dsa_models.h"
#include "ngx_module/http/ngx_http_dsa_text.h"
#include "ngx_http_dsa_chat_stage.h"


/* The stage that converts the body to a chat. */

static void ngx_http_dsa_chat_alias(ngx_http_dsa_request_t *req);
static int ngx_http_dsa_chat_dump(ngx_http_dsa_request_t *req);
static ngx_int_t ngx_http_dsa_chat_accept(ngx_http_dsa_request_t *req);
static ngx_int_t ngx_http_dsa_chat_rollout(ngx_http_dsa_request_t *req);
static ngx_int_t ngx_http_dsa_chat_names(ngx_http_dsa_request_t *req);


/* A run: converts the body to a chat. */

void
ngx_http_dsa_chat_read(void *data)
{
    ngx_http_dsa_request_t *req = data;

    ngx_http_dsa_submit_t      *submit;
    ngx_http_dsa_api_answer_t  *a;

    a = req->answer.api;
    submit = &req->submit;

    ngx_http_dsa_chat_alias(req);

    if (a->api->read(a, submit->chat, submit->arena, req->root,
                     &ngx_http_dsa_chat_limits, req->refusal)
        != DSA_OK)
    {
        return;
    }

    req->refusal->status = 0;

    if (ngx_http_dsa_chat_dump(req) != DSA_OK) {
        ngx_http_dsa_failure_memory(&req->failure);
    }
}


/*
 * Replaces an alias in the body by its model, before the body is converted,
 * because the name can switch thinking on.
 */

static void
ngx_http_dsa_chat_alias(ngx_http_dsa_request_t *req)
{
    dsa_json_t                *v;
    const ngx_str_t           *model;
    ngx_http_dsa_main_conf_t  *mcf;

    v = dsa_json_get(req->root, "model");

    if (v == NULL || v->type != DSA_JSON_STRING) {
        return;
    }

    mcf = ngx_http_get_module_main_conf(req->http, ngx_http_dsa_module);

    req->asked.data = (u_char *) v->text.data;
    req->asked.len = v->text.len;

    model = ngx_http_dsa_aliases_find(mcf->aliases, &req->asked);

    if (model != NULL) {
        v->text = dsa_str((const char *) model->data, model->len);
    }
}


/*
 * Collects the messages that this request adds to its conversation, unless its
 * API has a callback "turn", which makes them together with the answer.
 */

static int
ngx_http_dsa_chat_dump(ngx_http_dsa_request_t *req)
{
    uint32_t     i;
    dsa_buf_t   *b;
    dsa_chat_t  *chat;

    chat = req->submit.chat;

    if (chat->conversation.len == 0 || req->answer.api->api->turn != NULL) {
        return DSA_OK;
    }

    b = &req->conversation.messages;

    for (i = 0; i < chat->n_messages; i++) {
        if (dsa_message_dump(b, &chat->messages[i]) != DSA_OK) {
            return DSA_ERROR;
        }

        dsa_buf_add(b, "", 1);
    }

    return b->failed ? DSA_ERROR : DSA_OK;
}


ngx_int_t
ngx_http_dsa_chat_was_read(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_loc_conf_t  *dlcf;

    if (ngx_http_dsa_chat_accept(req) != NGX_OK) {
        return NGX_ERROR;
    }

    dlcf = ngx_http_get_module_loc_conf(req->http, ngx_http_dsa_module);

    if (!req->answer.api->stream
        && ngx_http_dsa_idempotency_claimed(req->idempotency))
    {
        /* the request that repeats this one gets the answer */

        req->stream.keep = 1;
        req->http->read_event_handler = ngx_http_block_reading;
    }

    /*
     * The first blank line in front of a JSON object sends the status 200, so
     * that a later error looks like a completion to clients that check only
     * the status.
     */

    if (req->answer.api->stream
        || (dlcf->keepalive_json && !req->answer.api->background))
    {
        req->timer.keepalive = dlcf->keepalive;
    }

    ngx_http_dsa_timer_set(&req->timer, req->stream.last_write);

    return NGX_OK;
}


/* NGX_ERROR with a failure: the request is refused. */

static ngx_int_t
ngx_http_dsa_chat_accept(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_submit_t  *submit;

    submit = &req->submit;

    if (req->failure.status != 0) {
        return NGX_ERROR;
    }

    if (req->refusal->status != 0) {
        ngx_http_dsa_request_refuse(req);
        return NGX_ERROR;
    }

    if (ngx_http_dsa_chat_rollout(req) != NGX_OK
        || ngx_http_dsa_chat_names(req) != NGX_OK)
    {
        return NGX_ERROR;
    }

    req->answer.tools = submit->chat->tool_choice != DSA_TOOL_CHOICE_NONE;

    ngx_http_dsa_metrics_add(hosted_tools, submit->chat->hosted_tools);

    ngx_log_debug5(NGX_LOG_DEBUG_HTTP, req->http->connection->log, 0,
                   "dsa request %V: parsed, model \"%V\", %uD messages, "
                   "stream %d, thinking %d", &req->ctx.id, &submit->model,
                   submit->chat->n_messages, req->answer.api->stream,
                   req->answer.api->thinking);

    return NGX_OK;
}


/* Rollouts are large and costly for an engine, so they need dsa_rollout. */

static ngx_int_t
ngx_http_dsa_chat_rollout(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_loc_conf_t  *dlcf;

    dlcf = ngx_http_get_module_loc_conf(req->http, ngx_http_dsa_module);

    if (req->submit.chat->rollout && dlcf->rollout == 0) {
        ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_FORBIDDEN, "rollout",
                                 "Rollouts are not available here, because "
                                 "dsa_rollout is 0.");
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_chat_names(ngx_http_dsa_request_t *req)
{
    dsa_str_t    asked;
    ngx_pool_t  *pool;
    dsa_chat_t  *chat;

    chat = req->submit.chat;
    pool = req->http->pool;

    if (!ngx_http_dsa_models_is_name(req->asked.data, req->asked.len)) {
        ngx_http_dsa_models_unknown(&req->failure, NULL);
        return NGX_ERROR;
    }

    /* the body is freed before the answer ends */

    asked = dsa_str((const char *) req->asked.data, req->asked.len);

    if (ngx_http_dsa_copy(pool, &req->asked, &asked) != NGX_OK
        || ngx_http_dsa_copy(pool, &req->submit.model, &chat->model) != NGX_OK
        || ngx_http_dsa_copy(pool, &req->conversation.id, &chat->conversation)
           != NGX_OK)
    {
        ngx_http_dsa_failure_memory(&req->failure);
        return NGX_ERROR;
    }

    ngx_http_dsa_usage_record_model(&req->requests->record,
                                    &req->submit.model);

    return ngx_http_dsa_access_model(req->http, &req->submit.model,
                                     &req->failure);
}
