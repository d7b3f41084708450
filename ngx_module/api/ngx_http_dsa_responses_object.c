
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/json_write.h"

#include "ngx_http_dsa_responses.h"


static void ngx_http_dsa_responses_error_object(dsa_json_writer_t *w,
    const ngx_http_dsa_api_error_t *error);
static void ngx_http_dsa_responses_output(ngx_http_dsa_responses_t *o,
    dsa_json_writer_t *w, ngx_http_dsa_responses_status_e status);
static void ngx_http_dsa_responses_compaction(ngx_http_dsa_responses_t *o,
    dsa_json_writer_t *w, const ngx_http_dsa_responses_item_t *item,
    ngx_uint_t text);
static void ngx_http_dsa_responses_call(dsa_json_writer_t *w,
    const ngx_http_dsa_responses_item_t *item, const char *status,
    ngx_uint_t text);
static void ngx_http_dsa_responses_escaped(dsa_json_writer_t *w,
    const char *key, const dsa_buf_t *text);


static const char *const  ngx_http_dsa_responses_statuses[] = {
    "in_progress",          /* as ngx_http_dsa_responses_status_e */
    "completed",
    "incomplete",
    "failed"
};


void
ngx_http_dsa_responses_object(ngx_http_dsa_responses_t *o,
    dsa_json_writer_t *w, ngx_http_dsa_responses_status_e status,
    const ngx_http_dsa_usage_t *usage, const ngx_http_dsa_api_error_t *error,
    ngx_http_dsa_responses_place_t *state,
    ngx_http_dsa_responses_place_t *output)
{
    ngx_http_dsa_api_answer_t  *a = &o->answer;

    dsa_json_object(w);
    dsa_json_key(w, "id");
    dsa_json_string(w, dsa_str(a->id.data, a->id.len));
    dsa_json_key(w, "object");
    dsa_json_stringz(w, "response");
    dsa_json_key(w, "created_at");
    dsa_json_uint(w, a->created);
    dsa_json_key(w, "status");

    if (state != NULL) {
        state->start = w->out->len;
    }

    dsa_json_stringz(w, ngx_http_dsa_responses_statuses[status]);

    dsa_json_key(w, "completed_at");

    if (status == NGX_HTTP_DSA_RESPONSES_COMPLETED) {
        dsa_json_uint(w, a->ended);

    } else {
        dsa_json_null(w);
    }

    dsa_json_key(w, "error");
    ngx_http_dsa_responses_error_object(w, error);

    if (state != NULL) {
        state->end = w->out->len;
    }

    dsa_json_key(w, "incomplete_details");

    if (status == NGX_HTTP_DSA_RESPONSES_INCOMPLETE) {
        dsa_json_object(w);
        dsa_json_key(w, "reason");
        dsa_json_stringz(w, "max_output_tokens");
        dsa_json_object_end(w);

    } else {
        dsa_json_null(w);
    }

    dsa_json_key(w, "model");
    dsa_json_string(w, dsa_str(a->model.data, a->model.len));

    dsa_json_key(w, "output");

    if (output != NULL) {
        output->start = w->out->len;
    }

    ngx_http_dsa_responses_output(o, w, status);

    if (output != NULL) {
        output->end = w->out->len;
    }

    if (o->echo.failed) {
        w->out->failed = 1;
    }

    dsa_buf_add(w->out, o->echo.data, o->echo.len);

    dsa_json_key(w, "store");
    dsa_json_bool(w, a->store && a->unsaved == NULL);

    if (a->unsaved != NULL) {
        dsa_json_key(w, "store_error");
        dsa_json_stringz(w, a->unsaved);
    }

    dsa_json_key(w, "usage");
    ngx_http_dsa_responses_usage(w, usage);
    dsa_json_object_end(w);
}


static void
ngx_http_dsa_responses_error_object(dsa_json_writer_t *w,
    const ngx_http_dsa_api_error_t *error)
{
    if (error == NULL) {
        dsa_json_null(w);
        return;
    }

    dsa_json_object(w);
    dsa_json_key(w, "code");
    dsa_json_stringz(w, error->status == 429 ? "rate_limit_exceeded"
                                             : "server_error");
    dsa_json_key(w, "message");
    dsa_json_stringz(w, error->message);
    dsa_json_object_end(w);
}


/*
 * Writes the items.  In an incomplete response only the last item can be
 * incomplete.  A failed response has only the items that were done.
 */

static void
ngx_http_dsa_responses_output(ngx_http_dsa_responses_t *o,
    dsa_json_writer_t *w, ngx_http_dsa_responses_status_e status)
{
    ngx_uint_t  i, n;

    n = o->n_items;

    if (status == NGX_HTTP_DSA_RESPONSES_FAILED && o->opened) {
        n--;
    }

    dsa_json_array(w);

    for (i = 0; i < n; i++) {
        ngx_http_dsa_responses_item(o, w, &o->items[i],
                     status == NGX_HTTP_DSA_RESPONSES_INCOMPLETE && i + 1 == n
                     ? "incomplete" : "completed", 1);
    }

    dsa_json_array_end(w);
}


void
ngx_http_dsa_responses_item(ngx_http_dsa_responses_t *o, dsa_json_writer_t *w,
    const ngx_http_dsa_responses_item_t *item, const char *status,
    ngx_uint_t text)
{
    dsa_json_object(w);
    dsa_json_key(w, "id");
    dsa_json_stringz(w, item->id);
    dsa_json_key(w, "type");

    if (item->compact != DSA_COMPACT_NONE) {
        ngx_http_dsa_responses_compaction(o, w, item, text);
        dsa_json_object_end(w);
        return;
    }

    switch (item->kind) {

    case DSA_DELTA_REASONING:
        dsa_json_stringz(w, "reasoning");
        dsa_json_key(w, "summary");
        dsa_json_array(w);
        dsa_json_array_end(w);

        if (o->encrypted && text) {
            ngx_http_dsa_responses_escaped(w, "encrypted_content",
                                           &item->sealed);
        }

        break;

    case DSA_DELTA_ARGUMENTS:
        ngx_http_dsa_responses_call(w, item, status, text);
        dsa_json_object_end(w);
        return;

    default: /* DSA_DELTA_CONTENT */
        dsa_json_stringz(w, "message");
        dsa_json_key(w, "role");
        dsa_json_stringz(w, "assistant");
        break;
    }

    dsa_json_key(w, "status");
    dsa_json_stringz(w, status);
    dsa_json_key(w, "content");
    dsa_json_array(w);

    if (text) {
        ngx_http_dsa_responses_part(o, w, item, 1);
    }

    dsa_json_array_end(w);
    dsa_json_object_end(w);
}


/* The members of a compaction behind "type". */

static void
ngx_http_dsa_responses_compaction(ngx_http_dsa_responses_t *o,
    dsa_json_writer_t *w, const ngx_http_dsa_responses_item_t *item,
    ngx_uint_t text)
{
    dsa_json_stringz(w, "compaction");

    if (text) {
        ngx_http_dsa_responses_escaped(w, "encrypted_content", &item->sealed);

    } else {
        dsa_json_key(w, "encrypted_content");
        dsa_json_stringz(w, "");
    }

    /* a stored item can be read after a change of the key */

    if (o->storing) {
        ngx_http_dsa_responses_escaped(w, "text", &item->text);
    }
}


/* The members of a call behind "type". */

static void
ngx_http_dsa_responses_call(dsa_json_writer_t *w,
    const ngx_http_dsa_responses_item_t *item, const char *status,
    ngx_uint_t text)
{
    const char  *name;

    name = item->custom ? "input" : "arguments";

    dsa_json_stringz(w, item->custom ? "custom_tool_call" : "function_call");
    dsa_json_key(w, "status");
    dsa_json_stringz(w, status);
    dsa_json_key(w, "call_id");
    dsa_json_stringz(w, item->call_id);

    if (item->space.len != 0) {
        ngx_http_dsa_responses_escaped(w, "namespace", &item->space);
    }

    ngx_http_dsa_responses_escaped(w, "name", &item->name);

    if (text) {
        ngx_http_dsa_responses_escaped(w, name, &item->text);

    } else {
        dsa_json_key(w, name);
        dsa_json_stringz(w, "");
    }
}


void
ngx_http_dsa_responses_part(ngx_http_dsa_responses_t *o,
    dsa_json_writer_t *w, const ngx_http_dsa_responses_item_t *item,
    ngx_uint_t text)
{
    dsa_json_object(w);
    dsa_json_key(w, "type");
    dsa_json_stringz(w, item->kind == DSA_DELTA_REASONING ? "reasoning_text"
                                                          : "output_text");
    if (text) {
        ngx_http_dsa_responses_escaped(w, "text", &item->text);

    } else {
        dsa_json_key(w, "text");
        dsa_json_stringz(w, "");
    }

    if (item->kind == DSA_DELTA_CONTENT) {
        dsa_json_key(w, "annotations");
        dsa_json_array(w);
        dsa_json_array_end(w);
        ngx_http_dsa_responses_logprobs(o, w, item,
                                        text ? 0 : item->logprobs.len, 1);
    }

    dsa_json_object_end(w);
}


void
ngx_http_dsa_responses_usage(dsa_json_writer_t *w,
    const ngx_http_dsa_usage_t *usage)
{
    if (usage == NULL) {
        dsa_json_null(w);
        return;
    }

    dsa_json_object(w);
    dsa_json_key(w, "input_tokens");
    dsa_json_uint(w, usage->prompt);
    dsa_json_key(w, "input_tokens_details");
    dsa_json_object(w);
    dsa_json_key(w, "cached_tokens");
    dsa_json_uint(w, usage->cached);
    dsa_json_key(w, "cache_write_tokens");
    dsa_json_uint(w, 0);
    dsa_json_object_end(w);
    dsa_json_key(w, "output_tokens");
    dsa_json_uint(w, usage->completion);
    dsa_json_key(w, "output_tokens_details");
    dsa_json_object(w);
    dsa_json_key(w, "reasoning_tokens");
    dsa_json_uint(w, usage->reasoning);
    dsa_json_object_end(w);
    dsa_json_key(w, "total_tokens");
    dsa_json_uint(w, usage->prompt + usage->completion);
    dsa_json_object_end(w);
}


/* Writes a member whose text is already escaped. */

static void
ngx_http_dsa_responses_escaped(dsa_json_writer_t *w, const char *key,
    const dsa_buf_t *text)
{
    if (text->failed) {
        w->out->failed = 1;
    }

    dsa_json_key(w, key);
    dsa_json_string_begin(w);
    dsa_buf_add(w->out, text->data, text->len);
    dsa_json_string_end(w);
}
