
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include <assert.h>

#include "ngx_http_dsa_anthropic_answer.h"


#define NGX_HTTP_DSA_ANTHROPIC_DEPTH  512   /* of the arguments of a call */


static void ngx_http_dsa_anthropic_counts(const ngx_http_dsa_anthropic_t *n,
    dsa_json_writer_t *w, const ngx_http_dsa_usage_t *usage);
static void ngx_http_dsa_anthropic_iteration(
    const ngx_http_dsa_anthropic_t *n, dsa_json_writer_t *w, const char *type,
    const ngx_http_dsa_usage_t *usage);
static void ngx_http_dsa_anthropic_tokens(dsa_json_writer_t *w,
    const ngx_http_dsa_usage_t *usage);
static void ngx_http_dsa_anthropic_calls(dsa_json_writer_t *w,
    const dsa_buf_t *calls);
static void ngx_http_dsa_anthropic_call(dsa_json_writer_t *w,
    dsa_arena_t *arena, const dsa_json_t *call);
static void ngx_http_dsa_anthropic_absent(dsa_json_writer_t *w);


/* by dsa_edit_e */

static const struct {
    const char  *type;
    const char  *parts;
} ngx_http_dsa_anthropic_edits[] = {
    { "clear_tool_uses_20250919", "cleared_tool_uses" },
    { "clear_thinking_20251015", "cleared_thinking_turns" }
};


void
ngx_http_dsa_anthropic_object(ngx_http_dsa_anthropic_t *n,
    ngx_http_dsa_finish_e reason, const ngx_http_dsa_usage_t *usage)
{
    dsa_json_writer_t        w;
    ngx_http_dsa_message_t  *m;

    m = n->answer.message;

    dsa_json_writer(&w, n->answer.out);

    if (ngx_http_dsa_message_failed(m)) {
        w.out->failed = 1;
        return;
    }

    dsa_json_object(&w);
    ngx_http_dsa_anthropic_head(n, &w);
    dsa_json_key(&w, "content");
    dsa_json_array(&w);

    if (n->answer.summary.len != 0 || n->answer.question) {
        dsa_json_object(&w);
        dsa_json_key(&w, "type");
        dsa_json_stringz(&w, "compaction");
        ngx_http_dsa_anthropic_summary(n, &w);
        dsa_json_object_end(&w);
    }

    if (m->reasoning.len != 0) {
        dsa_json_object(&w);
        dsa_json_key(&w, "type");
        dsa_json_stringz(&w, "thinking");
        dsa_json_key(&w, "thinking");
        dsa_json_string_begin(&w);
        dsa_buf_add(w.out, m->reasoning.data, m->reasoning.len);
        dsa_json_string_end(&w);
        ngx_http_dsa_anthropic_signature(n, &w);
        dsa_json_object_end(&w);
    }

    if (m->content.len != 0 && !n->answer.question) {
        dsa_json_object(&w);
        dsa_json_key(&w, "type");
        dsa_json_stringz(&w, "text");
        dsa_json_key(&w, "text");
        dsa_json_string_begin(&w);
        dsa_buf_add(w.out, m->content.data, m->content.len);
        dsa_json_string_end(&w);
        dsa_json_key(&w, "citations");
        dsa_json_null(&w);
        dsa_json_object_end(&w);
    }

    if (m->calls.len != 0) {
        ngx_http_dsa_anthropic_calls(&w, &m->calls);
    }

    dsa_json_array_end(&w);
    ngx_http_dsa_anthropic_stop(n, &w, reason);
    ngx_http_dsa_anthropic_diagnostics(&w);
    ngx_http_dsa_anthropic_usage(n, &w, usage);
    ngx_http_dsa_anthropic_management(n, &w);
    dsa_json_object_end(&w);
}


/*
 * The calls were collected in the format of chat completions; the object of
 * the last call is not closed.
 */

static void
ngx_http_dsa_anthropic_calls(dsa_json_writer_t *w, const dsa_buf_t *calls)
{
    dsa_buf_t          text;
    dsa_err_t          err;
    dsa_arena_t       *arena;
    const dsa_json_t  *root, *call;

    ngx_memzero(&text, sizeof(dsa_buf_t));

    dsa_buf_add(&text, "[", 1);
    dsa_buf_add(&text, calls->data, calls->len);
    dsa_buf_addz(&text, "\"}}]");

    arena = dsa_arena_create(SIZE_MAX);
    root = NULL;

    if (arena != NULL && !text.failed) {
        root = dsa_json_parse(arena, text.data, text.len,
                              NGX_HTTP_DSA_ANTHROPIC_DEPTH, &err);
    }

    if (root != NULL) {
        for (call = root->first; call != NULL; call = call->next) {
            ngx_http_dsa_anthropic_call(w, arena, call);
        }

    } else {
        w->out->failed = 1;
    }

    dsa_arena_destroy(arena);
    dsa_buf_free(&text);
}


/*
 * Writes a tool call.  Its member input has to be an object.  If the arguments
 * are not an object, because max_tokens cut them off or the model wrote
 * something else, input is an empty object.
 */

static void
ngx_http_dsa_anthropic_call(dsa_json_writer_t *w, dsa_arena_t *arena,
    const dsa_json_t *call)
{
    dsa_err_t          err;
    const dsa_json_t  *function, *arguments, *input;

    function = dsa_json_get(call, "function");
    arguments = dsa_json_get(function, "arguments");

    input = dsa_json_parse(arena, arguments->text.data, arguments->text.len,
                           NGX_HTTP_DSA_ANTHROPIC_DEPTH, &err);

    dsa_json_object(w);
    dsa_json_key(w, "type");
    dsa_json_stringz(w, "tool_use");
    dsa_json_key(w, "id");
    dsa_json_string(w, dsa_json_get(call, "id")->text);
    dsa_json_key(w, "name");
    dsa_json_string(w, dsa_json_get(function, "name")->text);
    dsa_json_key(w, "input");

    if (input != NULL && input->type == DSA_JSON_OBJECT) {
        dsa_json_raw(w, arguments->text);

    } else {
        dsa_json_object(w);
        dsa_json_object_end(w);
    }

    ngx_http_dsa_anthropic_caller(w);
    dsa_json_object_end(w);
}


void
ngx_http_dsa_anthropic_caller(dsa_json_writer_t *w)
{
    dsa_json_key(w, "caller");
    dsa_json_raw(w, dsa_strz("{\"type\":\"direct\"}"));
}


void
ngx_http_dsa_anthropic_head(const ngx_http_dsa_anthropic_t *n,
    dsa_json_writer_t *w)
{
    const ngx_http_dsa_api_answer_t  *a = &n->answer;

    dsa_json_key(w, "id");
    dsa_json_string(w, dsa_str(a->id.data, a->id.len));
    dsa_json_key(w, "type");
    dsa_json_stringz(w, "message");
    dsa_json_key(w, "role");
    dsa_json_stringz(w, "assistant");
    dsa_json_key(w, "model");
    dsa_json_string(w, dsa_str(a->model.data, a->model.len));
}


void
ngx_http_dsa_anthropic_signature(const ngx_http_dsa_anthropic_t *n,
    dsa_json_writer_t *w)
{
    size_t            prefix;
    const ngx_str_t  *id;

    id = &n->answer.id;
    prefix = n->answer.api->id_prefix.len;

    assert(id->len > prefix);

    dsa_json_key(w, "signature");
    dsa_json_string_begin(w);
    dsa_buf_addz(w->out, NGX_HTTP_DSA_ANTHROPIC_SIGNATURE);
    dsa_buf_add(w->out, id->data + prefix, id->len - prefix);
    dsa_json_string_end(w);
}


void
ngx_http_dsa_anthropic_no_stop(dsa_json_writer_t *w)
{
    dsa_json_key(w, "stop_reason");
    dsa_json_null(w);
    dsa_json_key(w, "stop_sequence");
    dsa_json_null(w);
    ngx_http_dsa_anthropic_absent(w);
}


/*
 * The members of a stop that no answer has: the model does not refuse by
 * itself, and there are no containers.
 */

static void
ngx_http_dsa_anthropic_absent(dsa_json_writer_t *w)
{
    dsa_json_key(w, "stop_details");
    dsa_json_null(w);
    dsa_json_key(w, "container");
    dsa_json_null(w);
}


void
ngx_http_dsa_anthropic_diagnostics(dsa_json_writer_t *w)
{
    dsa_json_key(w, "diagnostics");
    dsa_json_null(w);
}


/*
 * Writes stop_reason and stop_sequence.  The number of a stop string comes
 * from the engine, so it is checked against the strings of the request.
 */

void
ngx_http_dsa_anthropic_stop(const ngx_http_dsa_anthropic_t *n,
    dsa_json_writer_t *w, ngx_http_dsa_finish_e reason)
{
    uint32_t          stop;
    const ngx_str_t  *s;

    stop = n->answer.stop;

    dsa_json_key(w, "stop_reason");

    if (n->answer.question) {
        dsa_json_stringz(w, "compaction");
        dsa_json_key(w, "stop_sequence");
        dsa_json_null(w);
        ngx_http_dsa_anthropic_absent(w);
        return;
    }

    if (reason != NGX_HTTP_DSA_FINISH_STOP || stop == 0 || stop > n->n_stop) {
        dsa_json_stringz(w, n->answer.api->finish_reason[reason]);
        dsa_json_key(w, "stop_sequence");
        dsa_json_null(w);
        ngx_http_dsa_anthropic_absent(w);
        return;
    }

    s = &n->stop[stop - 1];

    dsa_json_stringz(w, "stop_sequence");
    dsa_json_key(w, "stop_sequence");
    dsa_json_string(w, dsa_str(s->data, s->len));
    ngx_http_dsa_anthropic_absent(w);
}


void
ngx_http_dsa_anthropic_usage(const ngx_http_dsa_anthropic_t *n,
    dsa_json_writer_t *w, const ngx_http_dsa_usage_t *usage)
{
    dsa_json_key(w, "usage");
    dsa_json_object(w);
    ngx_http_dsa_anthropic_counts(n, w, usage);

    dsa_json_key(w, "cache_creation");
    dsa_json_object(w);
    dsa_json_key(w, "ephemeral_5m_input_tokens");
    dsa_json_uint(w, 0);
    dsa_json_key(w, "ephemeral_1h_input_tokens");
    dsa_json_uint(w, 0);
    dsa_json_object_end(w);

    dsa_json_key(w, "inference_geo");
    dsa_json_null(w);
    dsa_json_key(w, "service_tier");
    dsa_json_stringz(w, "standard");
    dsa_json_key(w, "speed");
    dsa_json_stringz(w, "standard");
    dsa_json_object_end(w);
}


void
ngx_http_dsa_anthropic_delta_usage(const ngx_http_dsa_anthropic_t *n,
    dsa_json_writer_t *w, const ngx_http_dsa_usage_t *usage)
{
    dsa_json_key(w, "usage");
    dsa_json_object(w);
    ngx_http_dsa_anthropic_counts(n, w, usage);
    dsa_json_object_end(w);
}


/* Writes the members that both objects have. */

static void
ngx_http_dsa_anthropic_counts(const ngx_http_dsa_anthropic_t *n,
    dsa_json_writer_t *w, const ngx_http_dsa_usage_t *usage)
{
    ngx_http_dsa_usage_t  answer, summary;

    answer = *usage;
    summary = n->answer.summary_usage;

    if (n->answer.question) {

        /* there is nothing else */

        summary = *usage;
    }

    answer.prompt -= summary.prompt;
    answer.cached -= summary.cached;
    answer.completion -= ngx_min(summary.completion, answer.completion);

    ngx_http_dsa_anthropic_tokens(w, &answer);

    dsa_json_key(w, "output_tokens_details");
    dsa_json_object(w);
    dsa_json_key(w, "thinking_tokens");
    dsa_json_uint(w, answer.reasoning);
    dsa_json_object_end(w);
    dsa_json_key(w, "server_tool_use");
    dsa_json_null(w);

    if (!n->beta) {
        return;
    }

    dsa_json_key(w, "fallback_credit");
    dsa_json_null(w);
    dsa_json_key(w, "iterations");

    if (!n->compacts) {
        dsa_json_null(w);
        return;
    }

    dsa_json_array(w);

    if (summary.prompt != 0) {
        ngx_http_dsa_anthropic_iteration(n, w, "compaction", &summary);
    }

    if (!n->answer.question) {
        ngx_http_dsa_anthropic_iteration(n, w, "message", &answer);
    }

    dsa_json_array_end(w);
}


static void
ngx_http_dsa_anthropic_iteration(const ngx_http_dsa_anthropic_t *n,
    dsa_json_writer_t *w, const char *type, const ngx_http_dsa_usage_t *usage)
{
    dsa_json_object(w);
    dsa_json_key(w, "type");
    dsa_json_stringz(w, type);

    if (type[0] == 'm') {
        dsa_json_key(w, "model");
        dsa_json_string(w, dsa_str(n->answer.model.data,
                                   n->answer.model.len));
    }

    ngx_http_dsa_anthropic_tokens(w, usage);
    dsa_json_key(w, "cache_creation");
    dsa_json_null(w);
    dsa_json_object_end(w);
}


static void
ngx_http_dsa_anthropic_tokens(dsa_json_writer_t *w,
    const ngx_http_dsa_usage_t *usage)
{
    dsa_json_key(w, "input_tokens");
    dsa_json_uint(w, usage->prompt - usage->cached);
    dsa_json_key(w, "cache_creation_input_tokens");
    dsa_json_uint(w, 0);
    dsa_json_key(w, "cache_read_input_tokens");
    dsa_json_uint(w, usage->cached);
    dsa_json_key(w, "output_tokens");
    dsa_json_uint(w, usage->completion);
}


void
ngx_http_dsa_anthropic_management(const ngx_http_dsa_anthropic_t *n,
    dsa_json_writer_t *w)
{
    ngx_uint_t                      i;
    const ngx_http_dsa_api_edit_t  *edit;

    if (!n->beta) {
        return;
    }

    dsa_json_key(w, "context_management");

    if (!n->managed) {
        dsa_json_null(w);
        return;
    }

    dsa_json_object(w);
    dsa_json_key(w, "applied_edits");
    dsa_json_array(w);

    for (i = 0; i < n->answer.n_edits; i++) {
        edit = &n->answer.edits[i];

        dsa_json_object(w);
        dsa_json_key(w, "type");
        dsa_json_stringz(w, ngx_http_dsa_anthropic_edits[edit->type].type);
        dsa_json_key(w, ngx_http_dsa_anthropic_edits[edit->type].parts);
        dsa_json_uint(w, edit->parts);
        dsa_json_key(w, "cleared_input_tokens");
        dsa_json_uint(w, edit->tokens);
        dsa_json_object_end(w);
    }

    dsa_json_array_end(w);
    dsa_json_object_end(w);
}


void
ngx_http_dsa_anthropic_summary(const ngx_http_dsa_anthropic_t *n,
    dsa_json_writer_t *w)
{
    const dsa_buf_t  *end;

    end = &n->answer.summary;

    if (n->words.failed) {
        w->out->failed = 1;
    }

    dsa_json_key(w, "content");
    dsa_json_string_begin(w);
    dsa_json_escape(w->out, dsa_str(n->words.data, n->words.len));
    dsa_json_escape(w->out, dsa_str(end->data, end->len));
    dsa_json_string_end(w);
    dsa_json_key(w, "encrypted_content");
    dsa_json_null(w);
}
