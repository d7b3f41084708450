
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The fields of a chat request, as api-docs.deepseek.com ("Create Chat
 * Completion") has them, and those that OpenAI's clients send besides.
 */


#include "context/read.h"


#define DSA_CHAT_CONVERSATION   128     /* bytes of a conversation id */


static int dsa_chat_read_conversation(dsa_reader_t *r,
    const dsa_json_t *root);
static int dsa_chat_read_usage(dsa_reader_t *r, const dsa_json_t *root);
static int dsa_chat_read_stream_options(dsa_reader_t *r,
    const dsa_json_t *root);


int
dsa_chat_read(dsa_chat_t *chat, dsa_arena_t *arena, const dsa_json_t *root,
    const dsa_chat_limits_t *limits, dsa_refusal_t *refusal)
{
    dsa_reader_t  r;

    r.chat = chat;
    r.arena = arena;
    r.refusal = refusal;
    r.limits = *limits;
    r.values = DSA_CHAT_VALUES;
    r.namespaces = 0;

    return dsa_read_chat(&r, root);
}


int
dsa_read_chat(dsa_reader_t *r, const dsa_json_t *root)
{
    dsa_at_t     at = { NULL, "messages", 0 };
    dsa_chat_t  *chat;

    chat = r->chat;

    memset(chat, 0, sizeof(dsa_chat_t));

    chat->hosted = r->limits.hosted != 0;

    if (root->type != DSA_JSON_OBJECT) {
        return dsa_refuse_type(r->refusal, NULL, root,
                               "a chat request object");
    }

    if (dsa_read_model(r, root) != DSA_OK
        || dsa_chat_read_conversation(r, root) != DSA_OK
        || dsa_read_messages(r, &at, dsa_json_get(root, "messages"),
                             &chat->messages, &chat->n_messages)
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (chat->n_messages == 0) {
        return dsa_refuse_at(r->refusal, &at, "Empty input messages, at least "
                             "one message is required");
    }

    if (dsa_read_unsupported(r, root) != DSA_OK
        || dsa_read_tools(r, NULL, root, &chat->tools) != DSA_OK
        || dsa_read_thinking(r, root) != DSA_OK
        || dsa_read_rollout(r, root) != DSA_OK
        || dsa_read_sampling(r, root) != DSA_OK
        || dsa_read_window(r, root) != DSA_OK
        || dsa_read_bias(r, root) != DSA_OK
        || dsa_read_logprobs(r, root) != DSA_OK
        || dsa_read_stream(r, root) != DSA_OK
        || dsa_read_format(r, root) != DSA_OK
        || dsa_read_tool_choice(r, root) != DSA_OK)
    {
        return DSA_ERROR;
    }

    return DSA_OK;
}


int
dsa_chat_prepend(dsa_chat_t *chat, dsa_arena_t *arena,
    const dsa_json_t *messages, const dsa_chat_limits_t *limits,
    dsa_refusal_t *refusal)
{
    size_t          total;
    dsa_at_t        at = { NULL, "conversation", 0 };
    uint32_t        n;
    dsa_reader_t    r;
    dsa_message_t  *stored, *all;

    r.chat = chat;
    r.arena = arena;
    r.refusal = refusal;
    r.limits = *limits;
    r.values = DSA_CHAT_VALUES;
    r.namespaces = 0;

    if (dsa_read_messages(&r, &at, messages, &stored, &n) != DSA_OK) {
        return DSA_ERROR;
    }

    if (n == 0) {
        return DSA_OK;
    }

    total = (size_t) n + chat->n_messages;

    if (total > limits->max_messages) {
        return dsa_refuse_at(refusal, &at, "%zu messages together with those "
                             "of the request; at most %u are accepted", total,
                             limits->max_messages);
    }

    all = dsa_arena_alloc(arena, total * sizeof(dsa_message_t));
    if (all == NULL) {
        return dsa_refuse_memory(refusal, arena);
    }

    memcpy(all, stored, n * sizeof(dsa_message_t));

    if (chat->n_messages != 0) {
        memcpy(all + n, chat->messages,
               chat->n_messages * sizeof(dsa_message_t));
    }

    chat->messages = all;
    chat->n_messages += n;
    chat->n_stored += n;

    return DSA_OK;
}


/* The caller checks whether the model exists. */

int
dsa_read_model(dsa_reader_t *r, const dsa_json_t *root)
{
    dsa_at_t  at = { NULL, "model", 0 };

    if (dsa_read_string(r, NULL, root, "model", &r->chat->model)
        == DSA_ERROR)
    {
        return DSA_ERROR;
    }

    if (r->chat->model.len == 0 && r->limits.hosted) {
        return dsa_refuse_type(r->refusal, &at, dsa_json_get(root, "model"),
                               "the name of a model");
    }

    return DSA_OK;
}


/* The id becomes part of a Redis key, so its characters are restricted. */

static int
dsa_chat_read_conversation(dsa_reader_t *r, const dsa_json_t *root)
{
    int         rc;
    char        c;
    size_t      i;
    dsa_at_t    at = { NULL, "conversation", 0 };
    dsa_str_t  *id;

    id = &r->chat->conversation;
    rc = dsa_read_string(r, NULL, root, "conversation", id);

    if (rc != 1) {
        return rc;
    }

    for (i = 0; i < id->len; i++) {
        c = id->data[i];

        if ((c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
            && (c < '0' || c > '9') && c != '_' && c != '-')
        {
            break;
        }
    }

    if (i < id->len || id->len == 0 || id->len > DSA_CHAT_CONVERSATION) {
        return dsa_refuse_at(r->refusal, &at, "\"%.*s\" is not a "
                             "conversation id; expected 1 to %d letters, "
                             "digits, \"_\" and \"-\"", dsa_read_shown(*id),
                             id->data, DSA_CHAT_CONVERSATION);
    }

    return DSA_OK;
}


int
dsa_read_stream(dsa_reader_t *r, const dsa_json_t *root)
{
    int  stream, ignore_eos;

    stream = 0;
    ignore_eos = 0;

    if (dsa_read_bool(r, NULL, root, "stream", &stream) == DSA_ERROR
        || dsa_read_bool(r, NULL, root, "ignore_eos", &ignore_eos)
           == DSA_ERROR)
    {
        return DSA_ERROR;
    }

    r->chat->stream = stream;
    r->chat->ignore_eos = ignore_eos;

    if (dsa_chat_read_usage(r, root) != DSA_OK) {
        return DSA_ERROR;
    }

    return dsa_chat_read_stream_options(r, root);
}


/* The form in which OpenRouter's clients request the cost. */

static int
dsa_chat_read_usage(dsa_reader_t *r, const dsa_json_t *root)
{
    int          include;
    dsa_at_t     at = { NULL, "usage", 0 };
    dsa_json_t  *v;

    if (dsa_read_any(root, "usage", &v) == 0) {
        return DSA_OK;
    }

    if (v->type != DSA_JSON_OBJECT) {
        return dsa_refuse_type(r->refusal, &at, v,
                               "{\"include\": true or false}");
    }

    include = 0;

    if (dsa_read_bool(r, &at, v, "include", &include) == DSA_ERROR) {
        return DSA_ERROR;
    }

    r->chat->include_cost = include;

    return DSA_OK;
}


static int
dsa_chat_read_stream_options(dsa_reader_t *r, const dsa_json_t *root)
{
    int          include;
    dsa_at_t     at = { NULL, "stream_options", 0 };
    dsa_json_t  *v;

    if (dsa_read_any(root, "stream_options", &v) == 0) {
        return DSA_OK;
    }

    if (v->type != DSA_JSON_OBJECT) {
        return dsa_refuse_type(r->refusal, &at, v,
                               "{\"include_usage\": true or false}");
    }

    if (!r->chat->stream) {
        return dsa_refuse(r->refusal, &at, "stream_options should be set "
                          "along with stream = true");
    }

    include = 0;

    if (dsa_read_bool(r, &at, v, "include_usage", &include) == DSA_ERROR) {
        return DSA_ERROR;
    }

    r->chat->include_usage = include;

    return DSA_OK;
}
