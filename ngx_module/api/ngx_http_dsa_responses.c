
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/json_write.h"
#include "context/tool_name.h"

#include "ngx_http_dsa_openai_error.h"
#include "ngx_http_dsa_responses.h"
#include "ngx_http_dsa_seal.h"


static int ngx_http_dsa_responses_read(ngx_http_dsa_api_answer_t *a,
    dsa_chat_t *chat, dsa_arena_t *arena, const dsa_json_t *root,
    const dsa_chat_limits_t *limits, dsa_refusal_t *refusal);
static void ngx_http_dsa_responses_reader(ngx_http_dsa_api_answer_t *a,
    dsa_responses_reader_t *reader, const dsa_chat_limits_t *limits);
static int ngx_http_dsa_responses_open(void *data, dsa_arena_t *arena,
    dsa_str_t sealed, dsa_str_t *text);
static void ngx_http_dsa_responses_compact_add(ngx_http_dsa_responses_t *o,
    dsa_compact_e kind, dsa_str_t text);
static void ngx_http_dsa_responses_call(ngx_http_dsa_responses_t *o,
    dsa_str_t name);
static ngx_http_dsa_responses_item_t *ngx_http_dsa_responses_begin(
    ngx_http_dsa_responses_t *o, dsa_delta_e kind, ngx_uint_t custom);
static void ngx_http_dsa_responses_seal(ngx_http_dsa_responses_t *o,
    ngx_http_dsa_responses_item_t *item);
static void ngx_http_dsa_responses_close(ngx_http_dsa_api_answer_t *a);
static void ngx_http_dsa_responses_ping(ngx_http_dsa_api_answer_t *a);
static ngx_uint_t ngx_http_dsa_responses_cut(
    const ngx_http_dsa_api_answer_t *a, ngx_http_dsa_finish_e reason);
static ngx_int_t ngx_http_dsa_responses_node(ngx_http_dsa_api_answer_t *a,
    ngx_http_dsa_finish_e reason, const ngx_http_dsa_usage_t *usage,
    dsa_response_t *node);
static void ngx_http_dsa_responses_finish(ngx_http_dsa_api_answer_t *a,
    ngx_http_dsa_finish_e reason, const ngx_http_dsa_usage_t *usage);
static void ngx_http_dsa_responses_fail(ngx_http_dsa_api_answer_t *a,
    const ngx_http_dsa_api_error_t *error);


const ngx_http_dsa_api_t  ngx_http_dsa_responses = {
    .path = ngx_string("/responses"),
    .id_prefix = ngx_string(DSA_RESPONSE_ID_PREFIX),
    .prompt = "input",
    .stream_type = "text/event-stream",
    .finish_reason = { "stop", "length", "length", "tool_calls" },
    .create = ngx_http_dsa_responses_create,
    .read = ngx_http_dsa_responses_read,
    .start = ngx_http_dsa_responses_start,
    .delta = ngx_http_dsa_responses_delta,
    .close = ngx_http_dsa_responses_close,
    .logprob = ngx_http_dsa_responses_logprob,
    .ping = ngx_http_dsa_responses_ping,
    .finish = ngx_http_dsa_responses_finish,
    .error = ngx_http_dsa_responses_error,
    .free = ngx_http_dsa_responses_free,
    .history = ngx_http_dsa_responses_insert,
    .turn = ngx_http_dsa_responses_turn,
    .node = ngx_http_dsa_responses_node,
    .open = ngx_http_dsa_responses_open_progress,
    .queued = ngx_http_dsa_responses_queued,
    .fail = ngx_http_dsa_responses_fail,
    .references = 1,
    .collects = 1
};


ngx_http_dsa_api_answer_t *
ngx_http_dsa_responses_create(ngx_pool_t *pool)
{
    ngx_http_dsa_responses_t  *o;

    o = ngx_pcalloc(pool, sizeof(ngx_http_dsa_responses_t));
    if (o == NULL) {
        return NULL;
    }

    return &o->answer;
}


static int
ngx_http_dsa_responses_read(ngx_http_dsa_api_answer_t *a, dsa_chat_t *chat,
    dsa_arena_t *arena, const dsa_json_t *root,
    const dsa_chat_limits_t *limits, dsa_refusal_t *refusal)
{
    return ngx_http_dsa_responses_body(a, chat, arena, root, limits, 0,
                                       refusal);
}


int
ngx_http_dsa_responses_body(ngx_http_dsa_api_answer_t *a, dsa_chat_t *chat,
    dsa_arena_t *arena, const dsa_json_t *root,
    const dsa_chat_limits_t *limits, ngx_uint_t compact,
    dsa_refusal_t *refusal)
{
    ngx_http_dsa_responses_t *o = (ngx_http_dsa_responses_t *) a;

    int                     exceeded;
    dsa_responses_t         request;
    dsa_responses_reader_t  reader;

    if (ngx_http_dsa_responses_request(a, &request, chat, arena, root, limits,
                                       compact, o->previous, refusal)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    ngx_http_dsa_responses_reader(a, &reader, limits);

    a->stream = chat->stream;
    a->question = chat->question;
    a->thinking = chat->thinking && !chat->question;
    a->logprobs = request.logprobs && !chat->question;
    a->store = request.store && !compact;
    a->store_given = request.store_given || request.background;
    a->background = request.background && !compact;

    o->encrypted = request.encrypted;
    o->one_call = request.one_call;
    o->instructions = request.instructions;

    if (dsa_responses_echo(&o->echo, root) != DSA_OK
        || dsa_responses_custom_names(&o->custom, root) != DSA_OK
        || ((a->store || request.conversation.len != 0)
            && dsa_responses_items(&o->input, arena, request.input, &reader,
                                   ngx_http_dsa_responses_id, o)
               != DSA_OK))
    {
        exceeded = dsa_arena_exceeded(arena);

        refusal->status = exceeded ? 413 : 503;
        (void) snprintf(refusal->message, sizeof(refusal->message), "%s",
                        exceeded ? "The request exceeds the memory limit of "
                                   "a request; send a shorter one."
                                 : "The server is out of memory; try again "
                                   "later.");
        return DSA_ERROR;
    }

    return DSA_OK;
}


int
ngx_http_dsa_responses_request(ngx_http_dsa_api_answer_t *a,
    dsa_responses_t *request, dsa_chat_t *chat, dsa_arena_t *arena,
    const dsa_json_t *root, const dsa_chat_limits_t *limits,
    ngx_uint_t compact, char *previous, dsa_refusal_t *refusal)
{
    dsa_responses_reader_t  reader;

    ngx_http_dsa_responses_reader(a, &reader, limits);

    reader.compact = compact;

    if (dsa_responses_read(request, chat, arena, root, &reader, refusal)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    /*
     * Copied, because the body is freed before the answer; a longer id is not
     * one of this server.
     */

    a->previous.len = ngx_min(request->previous.len, DSA_RESPONSE_ID_LEN + 1);
    a->previous.data = previous;

    if (a->previous.len != 0) {
        ngx_memcpy(previous, request->previous.data, a->previous.len);
    }

    return DSA_OK;
}


static void
ngx_http_dsa_responses_reader(ngx_http_dsa_api_answer_t *a,
    dsa_responses_reader_t *reader, const dsa_chat_limits_t *limits)
{
    reader->limits = *limits;
    reader->open = ngx_http_dsa_responses_open;
    reader->data = a;
    reader->compact = 0;
}


int
ngx_http_dsa_responses_insert(ngx_http_dsa_api_answer_t *a, dsa_chat_t *chat,
    dsa_arena_t *arena, const dsa_str_t *lists, uint32_t n,
    const dsa_chat_limits_t *limits, dsa_refusal_t *refusal)
{
    return dsa_responses_insert(chat, arena, lists, n, limits, refusal);
}


static int
ngx_http_dsa_responses_open(void *data, dsa_arena_t *arena, dsa_str_t sealed,
    dsa_str_t *text)
{
    ngx_http_dsa_api_answer_t *a = data;

    return ngx_http_dsa_seal_open(a->secret, a->digest, arena, sealed, text);
}


const char *
ngx_http_dsa_responses_id(void *answer, const char *prefix)
{
    ngx_http_dsa_responses_t *o = answer;

    return ngx_http_dsa_item_id(o->id, prefix,
                                o->answer.id.data + o->answer.id.len
                                - NGX_HTTP_DSA_ITEM_OWNER)
           == NGX_OK
           ? o->id : NULL;
}


ngx_int_t
ngx_http_dsa_responses_start(ngx_http_dsa_api_answer_t *a, ngx_pool_t *pool,
    const ngx_http_dsa_usage_t *usage)
{
    ngx_http_dsa_responses_t *o = (ngx_http_dsa_responses_t *) a;

    o->started = 1;
    ngx_http_dsa_responses_event_start(o);

    if (a->summary.len != 0 && !a->question) {
        ngx_http_dsa_responses_compact_add(o, DSA_COMPACT_ALL,
                                           dsa_str(a->summary.data,
                                                   a->summary.len));
        ngx_http_dsa_responses_end(o, "completed");
    }

    return NGX_OK;
}


void
ngx_http_dsa_responses_delta(ngx_http_dsa_api_answer_t *a, dsa_delta_e what,
    uint32_t call, dsa_str_t text)
{
    ngx_http_dsa_responses_t *o = (ngx_http_dsa_responses_t *) a;

    size_t                          len;
    ngx_http_dsa_responses_item_t  *item;

    if (what == DSA_DELTA_CALL || what == DSA_DELTA_ARGUMENTS) {
        o->pending.len = 0;

        /* with "parallel_tool_calls": false further calls are dropped */

        if (o->one_call && call != 0) {
            return;
        }
    }

    if (a->question) {
        ngx_http_dsa_responses_compact_add(o, DSA_COMPACT_USER, text);
        return;
    }

    item = o->opened ? &o->items[o->n_items - 1] : NULL;

    if (what == DSA_DELTA_CALL) {
        ngx_http_dsa_responses_call(o, text);
        return;
    }

    if (item == NULL || item->kind != what) {
        item = ngx_http_dsa_responses_begin(o, what, 0);

        if (item == NULL) {
            return;
        }

        ngx_http_dsa_responses_event_item(o);
    }

    ngx_http_dsa_responses_logprobs_take(o, item);

    len = item->text.len;

    if (item->custom) {
        dsa_tool_input(&item->input, text, &item->text);

    } else {
        dsa_json_escape(&item->text, text);
    }

    if (item->text.failed) {
        o->failed = 1;
        return;
    }

    if (item->text.len != len) {
        ngx_http_dsa_responses_event_delta(o, dsa_str(item->text.data + len,
                                                      item->text.len - len));
    }
}


/* Adds text to the compaction item that is open, or to a new one. */

static void
ngx_http_dsa_responses_compact_add(ngx_http_dsa_responses_t *o,
    dsa_compact_e kind, dsa_str_t text)
{
    ngx_http_dsa_responses_item_t  *item;

    item = o->opened ? &o->items[o->n_items - 1] : NULL;

    if (item == NULL) {
        item = ngx_http_dsa_responses_begin(o, DSA_DELTA_CONTENT, 0);

        if (item == NULL) {
            return;
        }

        item->compact = kind;
        ngx_memcpy(item->id, "cmp_", 4);

        dsa_json_escape(&item->text, dsa_compact_mark(kind));
        ngx_http_dsa_responses_event_item(o);
    }

    dsa_json_escape(&item->text, text);

    if (item->text.failed) {
        o->failed = 1;
    }
}


/* Begins the item of a call of the tool that the model reads as name. */

static void
ngx_http_dsa_responses_call(ngx_http_dsa_responses_t *o, dsa_str_t name)
{
    dsa_str_t                       space;
    ngx_http_dsa_responses_item_t  *item;

    item = ngx_http_dsa_responses_begin(o, DSA_DELTA_ARGUMENTS,
                                        dsa_responses_listed(&o->custom, name));
    if (item == NULL) {
        return;
    }

    ngx_memcpy(item->call_id, o->answer.call_id, sizeof(item->call_id));

    if (dsa_tool_name_split(&space, &name)) {
        dsa_json_escape(&item->space, space);
    }

    dsa_json_escape(&item->name, name);
    ngx_http_dsa_responses_event_item(o);
}


/* Ends the previous item, and adds one whose event is not written yet. */

static ngx_http_dsa_responses_item_t *
ngx_http_dsa_responses_begin(ngx_http_dsa_responses_t *o, dsa_delta_e kind,
    ngx_uint_t custom)
{
    const char                     *id;
    ngx_uint_t                      n;
    ngx_http_dsa_responses_item_t  *items, *item;

    static const char *const  prefixes[] = {
        NULL, "rs_", "msg_", NULL, "fc_"        /* as dsa_delta_e */
    };

    ngx_http_dsa_responses_end(o, "completed");

    n = o->n_items;

    if ((n & (n - 1)) == 0) {
        items = realloc(o->items, (n == 0 ? 1 : 2 * n) * sizeof(*items));
        if (items == NULL) {
            o->failed = 1;
            return NULL;
        }

        o->items = items;
    }

    id = ngx_http_dsa_responses_id(o, custom ? "ctc_" : prefixes[kind]);
    if (id == NULL) {
        o->failed = 1;
        return NULL;
    }

    item = &o->items[n];
    ngx_memzero(item, sizeof(ngx_http_dsa_responses_item_t));

    item->kind = kind;
    item->custom = custom;
    ngx_memcpy(item->id, id, ngx_strlen(id) + 1);

    o->n_items++;
    o->opened = 1;

    return item;
}


void
ngx_http_dsa_responses_end(ngx_http_dsa_responses_t *o, const char *status)
{
    ngx_http_dsa_responses_item_t  *item;

    if (!o->opened) {
        return;
    }

    item = &o->items[o->n_items - 1];

    if ((item->kind == DSA_DELTA_REASONING && o->encrypted)
        || item->compact != DSA_COMPACT_NONE)
    {
        ngx_http_dsa_responses_seal(o, item);
    }

    ngx_http_dsa_responses_event_item_done(o, status);

    o->opened = 0;
}


static void
ngx_http_dsa_responses_seal(ngx_http_dsa_responses_t *o,
    ngx_http_dsa_responses_item_t *item)
{
    dsa_buf_t  text;

    ngx_memzero(&text, sizeof(dsa_buf_t));

    if (dsa_json_unescape(&text, dsa_str(item->text.data, item->text.len))
        != DSA_OK
        || text.failed
        || ngx_http_dsa_seal(o->answer.secret, o->answer.digest,
                             dsa_str(text.data, text.len), &item->sealed)
           != NGX_OK)
    {
        o->failed = 1;
    }

    dsa_buf_free(&text);
}


static void
ngx_http_dsa_responses_close(ngx_http_dsa_api_answer_t *a)
{
    ngx_http_dsa_responses_event_close((ngx_http_dsa_responses_t *) a);
}


/* A comment of server-sent events, which clients ignore. */

static void
ngx_http_dsa_responses_ping(ngx_http_dsa_api_answer_t *a)
{
    dsa_buf_addz(a->out, ": keep-alive\n\n");
}


/*
 * Appends the items of the request and of the answer, each followed by a NUL.
 * They are stored without encrypted reasoning, which a list of items adds on
 * request, and without logprobs.
 */

ngx_int_t
ngx_http_dsa_responses_turn(ngx_http_dsa_api_answer_t *a,
    ngx_http_dsa_finish_e reason, dsa_buf_t *entries)
{
    ngx_http_dsa_responses_t *o = (ngx_http_dsa_responses_t *) a;

    unsigned            encrypted, logprobs;
    ngx_uint_t          i;
    const char         *status;
    dsa_json_writer_t   w;

    status = ngx_http_dsa_responses_cut(a, reason) ? "incomplete"
                                                   : "completed";

    ngx_http_dsa_responses_end(o, status);

    dsa_buf_add(entries, o->input.data, o->input.len);

    encrypted = o->encrypted;
    logprobs = a->logprobs;
    o->encrypted = 0;
    a->logprobs = 0;
    o->storing = 1;

    for (i = 0; i < o->n_items; i++) {
        dsa_json_writer(&w, entries);
        ngx_http_dsa_responses_item(o, &w, &o->items[i],
                                    i + 1 == o->n_items ? status
                                                        : "completed", 1);
        dsa_buf_add(entries, "", 1);
    }

    o->encrypted = encrypted;
    a->logprobs = logprobs;
    o->storing = 0;

    return o->failed || entries->failed || o->input.failed ? NGX_ERROR
                                                           : NGX_OK;
}


/* A summary that was cut off is used as it is. */

static ngx_uint_t
ngx_http_dsa_responses_cut(const ngx_http_dsa_api_answer_t *a,
    ngx_http_dsa_finish_e reason)
{
    return ngx_http_dsa_api_cut(reason) && !a->question;
}


static ngx_int_t
ngx_http_dsa_responses_node(ngx_http_dsa_api_answer_t *a,
    ngx_http_dsa_finish_e reason, const ngx_http_dsa_usage_t *usage,
    dsa_response_t *node)
{
    ngx_http_dsa_responses_t *o = (ngx_http_dsa_responses_t *) a;

    dsa_json_writer_t                 w;
    ngx_http_dsa_responses_status_e   status;
    ngx_http_dsa_responses_place_t    output;

    status = ngx_http_dsa_responses_cut(a, reason)
             ? NGX_HTTP_DSA_RESPONSES_INCOMPLETE
             : NGX_HTTP_DSA_RESPONSES_COMPLETED;

    ngx_http_dsa_responses_end(o, status == NGX_HTTP_DSA_RESPONSES_COMPLETED
                                  ? "completed" : "incomplete");

    o->storing = 1;

    dsa_json_writer(&w, &o->object);
    ngx_http_dsa_responses_object(o, &w, status, usage, NULL, NULL, &output);

    o->storing = 0;

    dsa_responses_array(&o->list, &o->input);

    if (o->failed || o->object.failed || o->list.failed) {
        return NGX_ERROR;
    }

    node->id = dsa_str(a->id.data, a->id.len);
    node->parent = a->previous;
    node->conversation = dsa_str(a->conversation.data, a->conversation.len);
    node->input = dsa_str(o->list.data, o->list.len);
    node->before = dsa_str(o->object.data, output.start);
    node->output = dsa_str(o->object.data + output.start,
                           output.end - output.start);
    node->after = dsa_str(o->object.data + output.end,
                          o->object.len - output.end);
    node->background = a->background;

    return NGX_OK;
}


static void
ngx_http_dsa_responses_finish(ngx_http_dsa_api_answer_t *a,
    ngx_http_dsa_finish_e reason, const ngx_http_dsa_usage_t *usage)
{
    ngx_http_dsa_responses_t *o = (ngx_http_dsa_responses_t *) a;

    dsa_json_writer_t                w;
    ngx_http_dsa_responses_status_e  status;

    status = ngx_http_dsa_responses_cut(a, reason)
             ? NGX_HTTP_DSA_RESPONSES_INCOMPLETE
             : NGX_HTTP_DSA_RESPONSES_COMPLETED;

    ngx_http_dsa_responses_end(o, status == NGX_HTTP_DSA_RESPONSES_COMPLETED
                                  ? "completed" : "incomplete");

    if (o->failed) {
        a->out->failed = 1;
        return;
    }

    if (a->stream) {
        ngx_http_dsa_responses_event_end(o, status, usage, NULL);
        return;
    }

    dsa_json_writer(&w, a->out);
    ngx_http_dsa_responses_object(o, &w, status, usage, NULL, NULL, NULL);
}


static void
ngx_http_dsa_responses_fail(ngx_http_dsa_api_answer_t *a,
    const ngx_http_dsa_api_error_t *error)
{
    ngx_http_dsa_responses_t *o = (ngx_http_dsa_responses_t *) a;

    if (!o->started) {
        ngx_http_dsa_responses_error(a->out, error, 1);
        return;
    }

    ngx_http_dsa_responses_event_close(o);
    ngx_http_dsa_responses_event_end(o, NGX_HTTP_DSA_RESPONSES_FAILED, NULL,
                                     error);
}


void
ngx_http_dsa_responses_error(dsa_buf_t *out,
    const ngx_http_dsa_api_error_t *error, ngx_uint_t event)
{
    if (event) {
        ngx_http_dsa_responses_event_error(out, error);

    } else {
        ngx_http_dsa_openai_error(out, error, 0);
    }
}


void
ngx_http_dsa_responses_free(ngx_http_dsa_api_answer_t *a)
{
    ngx_http_dsa_responses_t *o = (ngx_http_dsa_responses_t *) a;

    ngx_uint_t  i;

    for (i = 0; i < o->n_items; i++) {
        dsa_buf_free(&o->items[i].space);
        dsa_buf_free(&o->items[i].name);
        dsa_buf_free(&o->items[i].text);
        dsa_buf_free(&o->items[i].sealed);
        dsa_buf_free(&o->items[i].logprobs);
    }

    free(o->items);

    o->items = NULL;
    o->n_items = 0;

    dsa_buf_free(&o->echo);
    dsa_buf_free(&o->input);
    dsa_buf_free(&o->list);
    dsa_buf_free(&o->object);
    dsa_buf_free(&o->begun);
    dsa_buf_free(&o->custom);
    dsa_buf_free(&o->pending);
    dsa_buf_free(&o->kept);
    dsa_buf_free(&a->summary);
}


_Static_assert(offsetof(ngx_http_dsa_responses_t, answer) == 0,
               "an answer of the API is found by its common part");
_Static_assert(DSA_DELTA_REASONING == 1 && DSA_DELTA_CONTENT == 2
               && DSA_DELTA_ARGUMENTS == 4, "prefixes are in this order");
