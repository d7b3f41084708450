
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_module/http/ngx_http_dsa_body.h"
#include "ngx_http_dsa_edit.h"


static ngx_int_t ngx_http_dsa_edit_memory(ngx_http_dsa_edit_t *ed);
static void ngx_http_dsa_edit_begin(ngx_http_dsa_edit_t *ed);
static void ngx_http_dsa_edit_plan(void *data);
static void ngx_http_dsa_edit_planned(void *data);
static int ngx_http_dsa_edit_chat(void *data, dsa_arena_t *arena,
    dsa_chat_t *chat);
static void ngx_http_dsa_edit_counted(void *data, ngx_int_t rc);
static void ngx_http_dsa_edit_step(ngx_http_dsa_edit_t *ed, uint32_t tokens,
    int more);
static void ngx_http_dsa_edit_apply(void *data);
static void ngx_http_dsa_edit_applied(void *data);


void
ngx_http_dsa_edit_start(ngx_http_dsa_edit_t *ed, uint32_t end)
{
    ed->end = end;

    if (ed->memory == NULL && ngx_http_dsa_edit_memory(ed) != NGX_OK) {
        ngx_http_dsa_failure_memory(ed->failure);
        ed->handler(ed->data, NGX_ERROR);
        return;
    }

    ngx_http_dsa_edit_begin(ed);
}


/* Prepares the first start.  NGX_ERROR: out of memory. */

static ngx_int_t
ngx_http_dsa_edit_memory(ngx_http_dsa_edit_t *ed)
{
    size_t                  size;
    ngx_http_dsa_submit_t  *submit;

    submit = ed->submit;

    /* the plan of each edit, and what the chat is after it */

    size = dsa_arena_used(submit->arena) + dsa_arena_used(submit->work)
           + (size_t) submit->chat->n_edits * submit->chat->n_messages
             * sizeof(dsa_message_t);

    ed->memory = dsa_arena_create(NGX_HTTP_DSA_ARENA(size));

    ed->count.request = ed->request;
    ed->count.work = ed->work;
    ed->count.submit = ed->submit;
    ed->count.failure = ed->failure;
    ed->count.chat = ngx_http_dsa_edit_chat;
    ed->count.handler = ngx_http_dsa_edit_counted;
    ed->count.data = ed;

    return ed->memory != NULL ? NGX_OK : NGX_ERROR;
}


/* Begins the next edit, or ends. */

static void
ngx_http_dsa_edit_begin(ngx_http_dsa_edit_t *ed)
{
    ngx_int_t  rc;

    if (ed->next >= ed->end) {
        ed->handler(ed->data, NGX_OK);
        return;
    }

    ed->next++;

    rc = ngx_http_dsa_work(ed->work, NGX_HTTP_DSA_STAGE_WINDOW,
                           ed->submit->bytes, ngx_http_dsa_edit_plan,
                           ngx_http_dsa_edit_planned, ed);

    if (rc == NGX_OK) {
        ngx_http_dsa_edit_planned(ed);

    } else if (rc == NGX_ERROR) {
        ed->handler(ed->data, NGX_ERROR);
    }
}


/* A run. */

static void
ngx_http_dsa_edit_plan(void *data)
{
    ngx_http_dsa_edit_t *ed = data;

    dsa_chat_t  *chat;

    chat = ed->submit->chat;

    if (dsa_clear_init(&ed->clear, ed->memory, chat,
                       &chat->edits[ed->next - 1])
        != DSA_OK)
    {
        ngx_http_dsa_failure_memory(ed->failure);
    }
}


static void
ngx_http_dsa_edit_planned(void *data)
{
    ngx_http_dsa_edit_t *ed = data;

    if (ed->failure->status != 0) {
        ed->handler(ed->data, NGX_ERROR);
        return;
    }

    if (ed->clear.n == 0) {
        ngx_http_dsa_edit_begin(ed);
        return;
    }

    if (ed->tokens != 0) {
        ngx_http_dsa_edit_step(ed, ed->tokens, 0);
        return;
    }

    ngx_http_dsa_count_start(&ed->count, dsa_clear_limit(&ed->clear));
}


/* Makes the chat to count, in a run. */

static int
ngx_http_dsa_edit_chat(void *data, dsa_arena_t *arena, dsa_chat_t *chat)
{
    ngx_http_dsa_edit_t *ed = data;

    return dsa_clear_chat(&ed->clear, arena, chat);
}


/* The handler of a count. */

static void
ngx_http_dsa_edit_counted(void *data, ngx_int_t rc)
{
    ngx_http_dsa_edit_t *ed = data;

    if (rc != NGX_OK) {
        ed->handler(ed->data, NGX_ERROR);
        return;
    }

    ngx_http_dsa_edit_step(ed, ed->count.tokens, ed->count.more);
}


/* Continues with the number of tokens of the prompt. */

static void
ngx_http_dsa_edit_step(ngx_http_dsa_edit_t *ed, uint32_t tokens, int more)
{
    ngx_int_t  rc;

    ngx_log_debug4(NGX_LOG_DEBUG_HTTP, ed->request->connection->log, 0,
                   "dsa request %V: %uD tokens without %uD of %uD parts",
                   &ed->submit->id, tokens, ed->clear.cut, ed->clear.n);

    if (dsa_clear_counted(&ed->clear, tokens, more) == DSA_AGAIN) {
        ngx_http_dsa_count_start(&ed->count, dsa_clear_limit(&ed->clear));
        return;
    }

    ed->tokens = ed->clear.left;

    if (ed->clear.cut == 0) {
        ngx_http_dsa_edit_begin(ed);
        return;
    }

    rc = ngx_http_dsa_work(ed->work, NGX_HTTP_DSA_STAGE_WINDOW,
                           ed->submit->bytes, ngx_http_dsa_edit_apply,
                           ngx_http_dsa_edit_applied, ed);

    if (rc == NGX_OK) {
        ngx_http_dsa_edit_applied(ed);

    } else if (rc == NGX_ERROR) {
        ed->handler(ed->data, NGX_ERROR);
    }
}


/* A run. */

static void
ngx_http_dsa_edit_apply(void *data)
{
    ngx_http_dsa_edit_t *ed = data;

    dsa_chat_t  chat;

    if (dsa_clear_chat(&ed->clear, ed->memory, &chat) != DSA_OK) {
        ngx_http_dsa_failure_memory(ed->failure);
        return;
    }

    ed->submit->chat->messages = chat.messages;
}


static void
ngx_http_dsa_edit_applied(void *data)
{
    ngx_http_dsa_edit_t *ed = data;

    ngx_http_dsa_api_edit_t  *applied;

    if (ed->failure->status != 0) {
        ed->handler(ed->data, NGX_ERROR);
        return;
    }

    applied = &ed->applied[ed->n++];
    applied->type = ed->clear.edit->type;
    applied->parts = ed->clear.cut;
    applied->tokens = ed->clear.tokens;

    ngx_http_dsa_edit_begin(ed);
}


void
ngx_http_dsa_edit_detach(ngx_http_dsa_edit_t *ed)
{
    ngx_http_dsa_count_detach(&ed->count);
}


void
ngx_http_dsa_edit_free(ngx_http_dsa_edit_t *ed)
{
    ngx_http_dsa_count_free(&ed->count);

    dsa_arena_destroy(ed->memory);
    ed->memory = NULL;
}
