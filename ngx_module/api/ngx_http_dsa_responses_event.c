
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/json_write.h"

#include "ngx_http_dsa_responses.h"


static void ngx_http_dsa_responses_event(ngx_http_dsa_responses_t *o,
    dsa_json_writer_t *w, const char *type);
static void ngx_http_dsa_responses_event_of_item(ngx_http_dsa_responses_t *o,
    dsa_json_writer_t *w, const char *type);
static void ngx_http_dsa_responses_event_of_part(ngx_http_dsa_responses_t *o,
    dsa_json_writer_t *w, const char *type);
static void ngx_http_dsa_responses_event_part(ngx_http_dsa_responses_t *o,
    const char *type, ngx_uint_t text);
static void ngx_http_dsa_responses_event_output(ngx_http_dsa_responses_t *o,
    const char *type, const char *status, ngx_uint_t text);
static void ngx_http_dsa_responses_event_response(ngx_http_dsa_responses_t *o,
    const char *type, ngx_http_dsa_responses_status_e status,
    const ngx_http_dsa_usage_t *usage, const ngx_http_dsa_api_error_t *error);
static void ngx_http_dsa_responses_event_finish(dsa_json_writer_t *w);


/* by dsa_delta_e: types of the events for deltas, and for their whole text */

static const char *const  ngx_http_dsa_responses_deltas[] = {
    NULL,
    "response.reasoning_text.delta",
    "response.output_text.delta",
    NULL,
    "response.function_call_arguments.delta"
};

static const char *const  ngx_http_dsa_responses_dones[] = {
    NULL,
    "response.reasoning_text.done",
    "response.output_text.done",
    NULL,
    "response.function_call_arguments.done"
};


void
ngx_http_dsa_responses_event_start(ngx_http_dsa_responses_t *o)
{
    if (!o->answer.stream) {
        return;
    }

    ngx_http_dsa_responses_event_response(o, "response.created",
                                          NGX_HTTP_DSA_RESPONSES_IN_PROGRESS,
                                          NULL, NULL);
    ngx_http_dsa_responses_event_response(o, "response.in_progress",
                                          NGX_HTTP_DSA_RESPONSES_IN_PROGRESS,
                                          NULL, NULL);
}


/* Writes the events that begin the last item. */

void
ngx_http_dsa_responses_event_item(ngx_http_dsa_responses_t *o)
{
    if (!o->answer.stream) {
        return;
    }

    ngx_http_dsa_responses_event_output(o, "response.output_item.added",
                                        "in_progress", 0);

    if (o->items[o->n_items - 1].kind != DSA_DELTA_ARGUMENTS
        && o->items[o->n_items - 1].compact == DSA_COMPACT_NONE)
    {
        ngx_http_dsa_responses_event_part(o, "response.content_part.added", 0);
    }
}


void
ngx_http_dsa_responses_event_delta(ngx_http_dsa_responses_t *o,
    dsa_str_t escaped)
{
    dsa_json_writer_t               w;
    ngx_http_dsa_responses_item_t  *item;

    if (!o->answer.stream) {
        return;
    }

    item = &o->items[o->n_items - 1];

    if (!o->delta_open) {
        o->delta_open = 1;

        ngx_http_dsa_responses_event_of_part(o, &w,
                           item->custom
                           ? "response.custom_tool_call_input.delta"
                           : ngx_http_dsa_responses_deltas[item->kind]);

        dsa_json_key(&w, "delta");
        dsa_json_string_begin(&w);
    }

    dsa_buf_add(o->answer.out, escaped.data, escaped.len);
}


void
ngx_http_dsa_responses_event_close(ngx_http_dsa_responses_t *o)
{
    dsa_json_writer_t               w;
    ngx_http_dsa_responses_item_t  *item;

    if (!o->delta_open) {
        return;
    }

    o->delta_open = 0;
    item = &o->items[o->n_items - 1];

    dsa_buf_add(o->answer.out, "\"", 1);

    if (item->kind == DSA_DELTA_CONTENT) {
        dsa_json_writer(&w, o->answer.out);
        w.comma = 1;

        ngx_http_dsa_responses_logprobs(o, &w, item, item->sent, 0);
        item->sent = item->logprobs.len;
    }

    dsa_buf_addz(o->answer.out, "}\n\n");
}


/* Writes the events that end the last item. */

void
ngx_http_dsa_responses_event_item_done(ngx_http_dsa_responses_t *o,
    const char *status)
{
    dsa_json_writer_t               w;
    ngx_http_dsa_responses_item_t  *item;

    if (!o->answer.stream) {
        return;
    }

    ngx_http_dsa_responses_event_close(o);

    item = &o->items[o->n_items - 1];

    if (item->compact != DSA_COMPACT_NONE) {
        ngx_http_dsa_responses_event_output(o, "response.output_item.done",
                                            status, 1);
        return;
    }

    ngx_http_dsa_responses_event_of_part(o, &w,
                           item->custom
                           ? "response.custom_tool_call_input.done"
                           : ngx_http_dsa_responses_dones[item->kind]);

    if (item->kind == DSA_DELTA_CONTENT) {
        ngx_http_dsa_responses_logprobs(o, &w, item, 0, 0);
    }

    dsa_json_key(&w, item->custom ? "input"
                     : item->kind == DSA_DELTA_ARGUMENTS ? "arguments"
                     : "text");
    dsa_json_string_begin(&w);
    dsa_buf_add(w.out, item->text.data, item->text.len);
    dsa_json_string_end(&w);
    ngx_http_dsa_responses_event_finish(&w);

    if (item->kind != DSA_DELTA_ARGUMENTS) {
        ngx_http_dsa_responses_event_part(o, "response.content_part.done", 1);
    }

    ngx_http_dsa_responses_event_output(o, "response.output_item.done", status,
                                        1);
}


void
ngx_http_dsa_responses_event_end(ngx_http_dsa_responses_t *o,
    ngx_http_dsa_responses_status_e status, const ngx_http_dsa_usage_t *usage,
    const ngx_http_dsa_api_error_t *error)
{
    static const char *const  types[] = {
        NULL,                       /* as ngx_http_dsa_responses_status_e */
        "response.completed",
        "response.incomplete",
        "response.failed"
    };

    ngx_http_dsa_responses_event_response(o, types[status], status, usage,
                                          error);
}


void
ngx_http_dsa_responses_event_error(dsa_buf_t *out,
    const ngx_http_dsa_api_error_t *error)
{
    dsa_json_writer_t  w;

    dsa_buf_addz(out, "event: error\ndata: ");

    dsa_json_writer(&w, out);
    dsa_json_object(&w);
    dsa_json_key(&w, "type");
    dsa_json_stringz(&w, "error");
    dsa_json_key(&w, "sequence_number");
    dsa_json_uint(&w, 0);
    dsa_json_key(&w, "code");

    if (error->code != NULL) {
        dsa_json_stringz(&w, error->code);

    } else {
        dsa_json_stringz(&w, error->status == 429 ? "rate_limit_exceeded"
                             : error->status >= 500 ? "server_error"
                             : "invalid_request_error");
    }

    dsa_json_key(&w, "message");
    dsa_json_stringz(&w, error->message);
    dsa_json_key(&w, "param");

    if (error->param != NULL) {
        dsa_json_stringz(&w, error->param);

    } else {
        dsa_json_null(&w);
    }

    ngx_http_dsa_responses_event_finish(&w);
}


static void
ngx_http_dsa_responses_event_response(ngx_http_dsa_responses_t *o,
    const char *type, ngx_http_dsa_responses_status_e status,
    const ngx_http_dsa_usage_t *usage, const ngx_http_dsa_api_error_t *error)
{
    dsa_json_writer_t  w;

    ngx_http_dsa_responses_event(o, &w, type);
    dsa_json_key(&w, "response");
    ngx_http_dsa_responses_object(o, &w, status, usage, error, NULL, NULL);
    ngx_http_dsa_responses_event_finish(&w);
}


static void
ngx_http_dsa_responses_event_output(ngx_http_dsa_responses_t *o,
    const char *type, const char *status, ngx_uint_t text)
{
    dsa_json_writer_t  w;

    ngx_http_dsa_responses_event(o, &w, type);
    dsa_json_key(&w, "output_index");
    dsa_json_uint(&w, o->n_items - 1);
    dsa_json_key(&w, "item");
    ngx_http_dsa_responses_item(o, &w, &o->items[o->n_items - 1], status,
                                text);
    ngx_http_dsa_responses_event_finish(&w);
}


static void
ngx_http_dsa_responses_event_part(ngx_http_dsa_responses_t *o,
    const char *type, ngx_uint_t text)
{
    dsa_json_writer_t  w;

    ngx_http_dsa_responses_event_of_part(o, &w, type);
    dsa_json_key(&w, "part");
    ngx_http_dsa_responses_part(o, &w, &o->items[o->n_items - 1], text);
    ngx_http_dsa_responses_event_finish(&w);
}


/* Writes the event that begins or ends a part.  A call has no parts. */

static void
ngx_http_dsa_responses_event_of_part(ngx_http_dsa_responses_t *o,
    dsa_json_writer_t *w, const char *type)
{
    ngx_http_dsa_responses_event_of_item(o, w, type);

    if (o->items[o->n_items - 1].kind != DSA_DELTA_ARGUMENTS) {
        dsa_json_key(w, "content_index");
        dsa_json_uint(w, 0);
    }
}


static void
ngx_http_dsa_responses_event_of_item(ngx_http_dsa_responses_t *o,
    dsa_json_writer_t *w, const char *type)
{
    ngx_http_dsa_responses_event(o, w, type);
    dsa_json_key(w, "item_id");
    dsa_json_stringz(w, o->items[o->n_items - 1].id);
    dsa_json_key(w, "output_index");
    dsa_json_uint(w, o->n_items - 1);
}


/* Begins an event.  Afterwards the writer is in the object of the event. */

static void
ngx_http_dsa_responses_event(ngx_http_dsa_responses_t *o,
    dsa_json_writer_t *w, const char *type)
{
    dsa_buf_t  *out;

    out = o->answer.out;

    dsa_buf_addz(out, "event: ");
    dsa_buf_addz(out, type);
    dsa_buf_addz(out, "\ndata: ");

    dsa_json_writer(w, out);
    dsa_json_object(w);
    dsa_json_key(w, "type");
    dsa_json_stringz(w, type);
    dsa_json_key(w, "sequence_number");
    dsa_json_uint(w, o->sequence++);
}


static void
ngx_http_dsa_responses_event_finish(dsa_json_writer_t *w)
{
    dsa_json_object_end(w);
    dsa_buf_addz(w->out, "\n\n");
}
