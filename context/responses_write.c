
/*
 * Copyright (C) The nginx-dsa authors
 *
 * What a response repeats of its request, and items as they are stored.
 */


#include "base/json_write.h"
#include "context/responses_items.h"
#include "context/tool_name.h"


static void dsa_responses_member(dsa_json_writer_t *w, const dsa_json_t *root,
    const char *name, const char *otherwise);
static void dsa_responses_write_text(dsa_json_writer_t *w,
    const dsa_json_t *root);
static void dsa_responses_write_tools(dsa_json_writer_t *w,
    const dsa_json_t *root);
static void dsa_responses_conversation(dsa_json_writer_t *w,
    const dsa_json_t *root);
static int dsa_responses_own_id(const dsa_json_t *v, dsa_str_t *id);
static void dsa_responses_called(dsa_json_writer_t *w,
    const dsa_item_t *item);
static void dsa_responses_arguments(dsa_json_writer_t *w,
    const dsa_json_t *call);
static void dsa_responses_part(dsa_json_writer_t *w, const char *name,
    const char *type, dsa_str_t text);


int
dsa_responses_echo(dsa_buf_t *b, const dsa_json_t *root)
{
    size_t              i;
    dsa_json_t         *reasoning, *v;
    dsa_json_writer_t   w;

    static const struct {
        const char  *name;
        const char  *otherwise;     /* JSON */
    } members[] = {
        { "access_programs", "null" },
        { "instructions", "null" },
        { "max_output_tokens", "null" },
        { "max_tool_calls", "null" },
        { "metadata", "{}" },
        { "moderation", "null" },
        { "parallel_tool_calls", "true" },
        { "previous_response_id", "null" },
        { "prompt", "null" },
        { "prompt_cache_key", "null" },
        { "prompt_cache_retention", "null" },
        { "safety_identifier", "null" },
        { "temperature", "null" },
        { "tool_choice", "\"auto\"" },
        { "top_logprobs", "0" },
        { "top_p", "null" },
        { "user", "null" }
    };

    dsa_json_writer(&w, b);
    w.comma = 1;

    for (i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        dsa_responses_member(&w, root, members[i].name, members[i].otherwise);
    }

    dsa_responses_write_text(&w, root);
    dsa_responses_write_tools(&w, root);
    dsa_responses_conversation(&w, root);

    reasoning = dsa_json_get(root, "reasoning");

    dsa_json_key(&w, "reasoning");
    dsa_json_object(&w);
    dsa_json_key(&w, "effort");

    if (reasoning != NULL && dsa_read_any(reasoning, "effort", &v)) {
        dsa_json_value(&w, v);

    } else {
        dsa_json_null(&w);
    }

    /* no summaries are made, whatever kind the request has */

    dsa_json_key(&w, "summary");
    dsa_json_null(&w);
    dsa_json_object_end(&w);

    dsa_responses_member(&w, root, "background", "false");
    dsa_json_key(&w, "service_tier");
    dsa_json_stringz(&w, "default");
    dsa_json_key(&w, "truncation");
    dsa_json_stringz(&w, "disabled");

    return b->failed ? DSA_ERROR : DSA_OK;
}


static void
dsa_responses_write_text(dsa_json_writer_t *w, const dsa_json_t *root)
{
    dsa_json_t        *text;
    const dsa_json_t  *from;

    static const dsa_json_t  none = { .type = DSA_JSON_OBJECT };

    from = dsa_read_any(root, "text", &text) ? text : &none;

    dsa_json_key(w, "text");
    dsa_json_object(w);
    dsa_responses_member(w, from, "format", "{\"type\":\"text\"}");
    dsa_responses_member(w, from, "verbosity", "\"medium\"");
    dsa_json_object_end(w);
}


/*
 * A function has the members that clients require, also if the request left
 * them out.
 */

static void
dsa_responses_write_tools(dsa_json_writer_t *w, const dsa_json_t *root)
{
    size_t             i;
    dsa_json_t        *v, function, members[2];
    const dsa_json_t  *tool;

    static const dsa_json_t  required[] = {
        { .key = { 10, "parameters" }, .type = DSA_JSON_NULL },
        { .key = { 6, "strict" }, .type = DSA_JSON_FALSE }
    };

    dsa_json_key(w, "tools");
    dsa_json_array(w);

    tool = dsa_read_any(root, "tools", &v) ? v->first : NULL;

    for ( /* void */ ; tool != NULL; tool = tool->next) {
        function = *tool;

        if (dsa_str_eqz(dsa_json_get(tool, "type")->text, "function")) {

            for (i = 0; i < sizeof(required) / sizeof(required[0]); i++) {
                if (dsa_json_get(tool, required[i].key.data) == NULL) {
                    members[i] = required[i];
                    members[i].next = function.first;
                    function.first = &members[i];
                }
            }
        }

        dsa_json_value(w, &function);
    }

    dsa_json_array_end(w);
}


/* The id alone may be in the request; the response has an object. */

static void
dsa_responses_conversation(dsa_json_writer_t *w, const dsa_json_t *root)
{
    dsa_json_t  *v;

    dsa_json_key(w, "conversation");

    if (dsa_read_any(root, "conversation", &v) == 0) {
        dsa_json_null(w);
        return;
    }

    if (v->type == DSA_JSON_OBJECT) {
        v = dsa_json_get(v, "id");
    }

    dsa_json_object(w);
    dsa_json_key(w, "id");
    dsa_json_string(w, v->text);
    dsa_json_object_end(w);
}


static void
dsa_responses_member(dsa_json_writer_t *w, const dsa_json_t *root,
    const char *name, const char *otherwise)
{
    dsa_json_t  *v;

    dsa_json_key(w, name);

    if (dsa_read_any(root, name, &v)) {
        dsa_json_value(w, v);

    } else {
        dsa_json_raw(w, dsa_strz(otherwise));
    }
}


int
dsa_responses_items(dsa_buf_t *b, dsa_arena_t *arena, const dsa_json_t *input,
    const dsa_responses_reader_t *reader,
    const char *(*make_id)(void *data, const char *prefix), void *data)
{
    dsa_at_t            at = { NULL, "input", 0 };
    dsa_str_t           own;
    dsa_item_t          item;
    dsa_json_t         *child;
    dsa_items_t         ctx;
    const char         *id;
    dsa_refusal_t       refusal;
    dsa_json_writer_t   w;

    memset(&ctx, 0, sizeof(dsa_items_t));

    ctx.reader = reader;
    ctx.may_ask = 1;
    ctx.r.arena = arena;
    ctx.r.refusal = &refusal;
    ctx.r.limits = reader->limits;

    memset(&item, 0, sizeof(dsa_item_t));

    if (input->type == DSA_JSON_STRING) {
        item.role = DSA_ROLE_USER;
        item.text = input->text;

        id = make_id(data, dsa_item_prefix(DSA_ITEM_MESSAGE));
        if (id == NULL) {
            return DSA_ERROR;
        }

        dsa_json_writer(&w, b);
        dsa_item_write(&w, &item, id);
        dsa_buf_add(b, "", 1);
    }

    for (child = input->first; child != NULL; child = child->next) {

        if (dsa_item_read(&ctx, &at, child, &item) != DSA_OK) {
            return DSA_ERROR;
        }

        if (item.type == DSA_ITEM_TRIGGER) {
            break;
        }

        id = dsa_responses_own_id(child, &own)
             ? dsa_arena_dup(arena, own)
             : make_id(data, dsa_item_prefix(item.type));

        if (id == NULL) {
            return DSA_ERROR;
        }

        dsa_json_writer(&w, b);
        dsa_item_write(&w, &item, id);
        dsa_buf_add(b, "", 1);
    }

    return b->failed ? DSA_ERROR : DSA_OK;
}


int
dsa_responses_message(dsa_buf_t *b, const dsa_message_t *m, const char *id)
{
    dsa_item_t         item;
    dsa_json_writer_t  w;

    memset(&item, 0, sizeof(dsa_item_t));

    item.role = m->role;
    item.text = m->content;

    dsa_json_writer(&w, b);
    dsa_item_write(&w, &item, id);
    dsa_buf_add(b, "", 1);

    return b->failed ? DSA_ERROR : DSA_OK;
}


/* Each item ends with a NUL.  JSON escapes this byte, so items have none. */

void
dsa_responses_array(dsa_buf_t *b, const dsa_buf_t *items)
{
    const char         *p, *last, *end;
    dsa_json_writer_t   w;

    p = items->data;
    last = p + items->len;

    dsa_json_writer(&w, b);
    dsa_json_array(&w);

    for ( /* void */ ; p != last; p = end + 1) {
        end = memchr(p, '\0', (size_t) (last - p));
        dsa_json_raw(&w, dsa_str(p, (size_t) (end - p)));
    }

    dsa_json_array_end(&w);

    if (items->failed) {
        b->failed = 1;
    }
}


/* An id is part of a URI, so one with other characters is replaced. */

static int
dsa_responses_own_id(const dsa_json_t *v, dsa_str_t *id)
{
    char         c;
    size_t       i;
    dsa_json_t  *own;

    if (dsa_read_any(v, "id", &own) == 0 || own->type != DSA_JSON_STRING
        || own->text.len == 0 || own->text.len > DSA_RESPONSES_ITEM_ID)
    {
        return 0;
    }

    *id = own->text;

    for (i = 0; i < id->len; i++) {
        c = id->data[i];

        if ((c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
            && (c < '0' || c > '9') && c != '_' && c != '-')
        {
            return 0;
        }
    }

    return 1;
}


const char *
dsa_item_prefix(dsa_item_e type)
{
    static const char *const  prefixes[] = {
        "msg_", "rs_", "fc_", "fco_", "ctc_", "ctco_", "cmp_", ""
                                                        /* as dsa_item_e */
    };

    return prefixes[type];
}


/*
 * The scripts of Redis find the beginning of a turn by the role of a message,
 * so a message begins with it.
 */

void
dsa_item_write(dsa_json_writer_t *w, const dsa_item_t *item, const char *id)
{
    dsa_json_object(w);

    if (item->type == DSA_ITEM_MESSAGE) {
        dsa_json_key(w, "role");
        dsa_json_stringz(w, item->role == DSA_ROLE_ASSISTANT ? "assistant"
                            : item->role == DSA_ROLE_USER ? "user"
                            : "system");
    }

    dsa_json_key(w, "id");
    dsa_json_stringz(w, id);
    dsa_json_key(w, "type");

    switch (item->type) {

    case DSA_ITEM_MESSAGE:
        dsa_json_stringz(w, "message");
        dsa_json_key(w, "status");
        dsa_json_stringz(w, "completed");

        if (item->phase.len != 0) {
            dsa_json_key(w, "phase");
            dsa_json_string(w, item->phase);
        }

        dsa_responses_part(w, "content",
                           item->role == DSA_ROLE_ASSISTANT ? "output_text"
                                                            : "input_text",
                           item->text);
        break;

    case DSA_ITEM_REASONING:
        dsa_json_stringz(w, "reasoning");
        dsa_json_key(w, "summary");
        dsa_json_array(w);
        dsa_json_array_end(w);
        dsa_responses_part(w, "content", "reasoning_text", item->text);
        break;

    case DSA_ITEM_COMPACTION:
        dsa_json_stringz(w, "compaction");
        dsa_json_key(w, "text");
        dsa_json_string_begin(w);
        dsa_json_escape(w->out, dsa_compact_mark(item->compact));
        dsa_json_escape(w->out, item->text);
        dsa_json_string_end(w);
        break;

    case DSA_ITEM_CALL:
        dsa_json_stringz(w, "function_call");
        dsa_responses_called(w, item);
        dsa_json_key(w, "arguments");
        dsa_responses_arguments(w, item->object);
        break;

    case DSA_ITEM_CUSTOM:
        dsa_json_stringz(w, "custom_tool_call");
        dsa_responses_called(w, item);
        dsa_json_key(w, "input");
        dsa_json_string(w, item->text);
        break;

    case DSA_ITEM_OUTPUT:
    case DSA_ITEM_CUSTOM_OUTPUT:
    default:
        dsa_json_stringz(w, item->type == DSA_ITEM_OUTPUT
                            ? "function_call_output"
                            : "custom_tool_call_output");
        dsa_json_key(w, "status");
        dsa_json_stringz(w, "completed");
        dsa_json_key(w, "call_id");
        dsa_json_string(w, item->call_id);
        dsa_json_key(w, "output");
        dsa_json_string(w, item->text);
        break;
    }

    dsa_json_object_end(w);
}


/* What calls of functions and of custom tools have in common. */

static void
dsa_responses_called(dsa_json_writer_t *w, const dsa_item_t *item)
{
    dsa_str_t  name, space;

    name = item->name;

    dsa_json_key(w, "status");
    dsa_json_stringz(w, "completed");
    dsa_json_key(w, "call_id");
    dsa_json_string(w, item->call_id);

    if (dsa_tool_name_split(&space, &name)) {
        dsa_json_key(w, "namespace");
        dsa_json_string(w, space);
    }

    dsa_json_key(w, "name");
    dsa_json_string(w, name);
}


/* A string; a client may have sent the object itself. */

static void
dsa_responses_arguments(dsa_json_writer_t *w, const dsa_json_t *call)
{
    dsa_buf_t           text;
    dsa_json_t         *v;
    dsa_json_writer_t   object;

    if (dsa_read_any(call, "arguments", &v) == 0) {
        dsa_json_stringz(w, "");
        return;
    }

    if (v->type == DSA_JSON_STRING) {
        dsa_json_string(w, v->text);
        return;
    }

    memset(&text, 0, sizeof(dsa_buf_t));

    dsa_json_writer(&object, &text);
    dsa_json_value(&object, v);

    if (text.failed) {
        w->out->failed = 1;
    }

    dsa_json_string(w, dsa_str(text.data, text.len));
    dsa_buf_free(&text);
}


/* An array with one part of text. */

static void
dsa_responses_part(dsa_json_writer_t *w, const char *name, const char *type,
    dsa_str_t text)
{
    dsa_json_key(w, name);
    dsa_json_array(w);
    dsa_json_object(w);
    dsa_json_key(w, "type");
    dsa_json_stringz(w, type);
    dsa_json_key(w, "text");
    dsa_json_string(w, text);

    if (type[0] == 'o') {
        dsa_json_key(w, "annotations");
        dsa_json_array(w);
        dsa_json_array_end(w);
    }

    dsa_json_object_end(w);
    dsa_json_array_end(w);
}
