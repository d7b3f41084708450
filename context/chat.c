
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The fields of a chat request: api-docs.deepseek.com, "Create Chat
 * Completion", and what OpenAI's clients send beside them.
 */


#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "context/read.h"


#define DSA_CHAT_CONVERSATION   128     /* bytes of a conversation's id */


static int dsa_chat_read_model(dsa_reader_t *r, const dsa_json_t *root);
static int dsa_chat_read_conversation(dsa_reader_t *r,
    const dsa_json_t *root);
static int dsa_chat_read_thinking(dsa_reader_t *r, const dsa_json_t *root);
static int dsa_chat_read_template(dsa_reader_t *r, const dsa_json_t *root);
static int dsa_chat_read_reasoning(dsa_reader_t *r, const dsa_json_t *root);
static int dsa_chat_read_effort(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *obj, const char *name);
static int dsa_chat_read_switch(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *obj, const char *name);
static int dsa_chat_read_members(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *obj, const char *first, const char *second);
static int dsa_chat_read_sampling(dsa_reader_t *r, const dsa_json_t *root);
static int dsa_chat_read_max_tokens(dsa_reader_t *r,
    const dsa_json_t *root);
static int dsa_chat_read_seed(dsa_reader_t *r, const dsa_json_t *root);
static int dsa_chat_read_stop(dsa_reader_t *r, const dsa_json_t *root);
static int dsa_chat_add_stop(dsa_reader_t *r, const dsa_at_t *at,
    const dsa_json_t *v);
static int dsa_chat_read_flags(dsa_reader_t *r, const dsa_json_t *root);
static int dsa_chat_read_stream_options(dsa_reader_t *r,
    const dsa_json_t *root);
static int dsa_chat_read_logprobs(dsa_reader_t *r, const dsa_json_t *root);
static int dsa_chat_read_format(dsa_reader_t *r, const dsa_json_t *root);
static int dsa_chat_read_tool_choice(dsa_reader_t *r,
    const dsa_json_t *root);


static const struct {
    const char   *name;
    size_t        offset;
    double        value;        /* the default */
    double        min;
    double        max;
    const char   *range;
} dsa_chat_numbers[] = {
    { "temperature", offsetof(dsa_chat_t, temperature),
      NAN, 0, 2, "[0, 2]" },
    { "top_p", offsetof(dsa_chat_t, top_p),
      NAN, DBL_TRUE_MIN, 1, "(0, 1.0]" },
    { "frequency_penalty", offsetof(dsa_chat_t, frequency_penalty),
      0, -2, 2, "[-2, 2]" },
    { "presence_penalty", offsetof(dsa_chat_t, presence_penalty),
      0, -2, 2, "[-2, 2]" }
};


int
dsa_chat_read(dsa_chat_t *chat, dsa_arena_t *arena, const dsa_json_t *root,
    const dsa_chat_limits_t *limits, dsa_refusal_t *refusal)
{
    dsa_at_t      at = { NULL, "messages", 0 };
    dsa_reader_t  r;

    memset(chat, 0, sizeof(dsa_chat_t));

    chat->hosted = limits->hosted != 0;

    r.chat = chat;
    r.arena = arena;
    r.refusal = refusal;
    r.limits = *limits;
    r.values = DSA_CHAT_VALUES;

    if (root->type != DSA_JSON_OBJECT) {
        return dsa_refuse_type(refusal, NULL, root, "a chat request object");
    }

    if (dsa_chat_read_model(&r, root) != DSA_OK
        || dsa_chat_read_conversation(&r, root) != DSA_OK
        || dsa_read_messages(&r, &at, dsa_json_get(root, "messages"),
                             &chat->messages, &chat->n_messages)
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (chat->n_messages == 0) {
        return dsa_refuse_at(refusal, &at, "Empty input messages, at least "
                             "one message is required");
    }

    if (dsa_read_unsupported(&r, root) != DSA_OK
        || dsa_read_tools(&r, NULL, root, &chat->tools) != DSA_OK
        || dsa_chat_read_thinking(&r, root) != DSA_OK
        || dsa_chat_read_sampling(&r, root) != DSA_OK
        || dsa_chat_read_seed(&r, root) != DSA_OK
        || dsa_chat_read_stop(&r, root) != DSA_OK
        || dsa_chat_read_flags(&r, root) != DSA_OK
        || dsa_chat_read_stream_options(&r, root) != DSA_OK
        || dsa_chat_read_logprobs(&r, root) != DSA_OK
        || dsa_chat_read_format(&r, root) != DSA_OK
        || dsa_chat_read_tool_choice(&r, root) != DSA_OK)
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

    if (dsa_read_messages(&r, &at, messages, &stored, &n) != DSA_OK) {
        return DSA_ERROR;
    }

    if (n == 0) {
        return DSA_OK;
    }

    total = (size_t) n + chat->n_messages;

    if (total > limits->max_messages) {
        return dsa_refuse_at(refusal, &at, "%zu messages with those of the "
                             "request, at most %u are accepted", total,
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


/* Whether there is such a model is for the caller to say. */

static int
dsa_chat_read_model(dsa_reader_t *r, const dsa_json_t *root)
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


/* The id becomes part of a key's name in Redis. */

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
        return dsa_refuse_at(r->refusal, &at, "no valid conversation id, "
                             "expected 1 to %d letters, digits, _ and -",
                             DSA_CHAT_CONVERSATION);
    }

    return DSA_OK;
}


/*
 * The model has no degrees of thinking: it is on or off.  Clients use several
 * fields for it.  If a request has more than one, the last one in this order
 * counts.
 */

static int
dsa_chat_read_thinking(dsa_reader_t *r, const dsa_json_t *root)
{
    dsa_at_t     at = { NULL, "thinking", 0 };
    dsa_at_t     type_at = { &at, "type", 0 };
    dsa_json_t  *v, *type;

    r->chat->thinking = dsa_str_eqz(r->chat->model, "deepseek-reasoner");

    if (dsa_chat_read_switch(r, NULL, root, "enable_thinking") != DSA_OK
        || dsa_chat_read_template(r, root) != DSA_OK
        || dsa_chat_read_reasoning(r, root) != DSA_OK
        || dsa_chat_read_effort(r, NULL, root, "reasoning_effort") != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (dsa_read_any(root, "thinking", &v) == 0) {
        return DSA_OK;
    }

    if (v->type != DSA_JSON_OBJECT) {
        return dsa_refuse_type(r->refusal, &at, v, "{\"type\": \"enabled\"} "
                               "or {\"type\": \"disabled\"}");
    }

    type = dsa_json_get(v, "type");

    if (type == NULL || type->type != DSA_JSON_STRING) {
        return dsa_refuse_type(r->refusal, &type_at, type,
                               "`enabled` or `disabled`");
    }

    if (dsa_str_eqz(type->text, "enabled")) {
        r->chat->thinking = 1;

    } else if (dsa_str_eqz(type->text, "disabled")) {
        r->chat->thinking = 0;

    } else {
        return dsa_refuse_variant(r->refusal, &type_at, type,
                                  "`enabled` or `disabled`");
    }

    r->chat->thinking_given = 1;

    return DSA_OK;
}


/* What vLLM and SGLang hand to the template of the prompt. */

static int
dsa_chat_read_template(dsa_reader_t *r, const dsa_json_t *root)
{
    dsa_at_t     at = { NULL, "chat_template_kwargs", 0 };
    dsa_json_t  *v;

    if (dsa_read_any(root, "chat_template_kwargs", &v) == 0) {
        return DSA_OK;
    }

    if (v->type != DSA_JSON_OBJECT) {
        return dsa_refuse_type(r->refusal, &at, v,
                               "{\"thinking\": true or false}");
    }

    if (dsa_chat_read_members(r, &at, v, "enable_thinking", "thinking")
        != DSA_OK
        || dsa_chat_read_switch(r, &at, v, "enable_thinking") != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_chat_read_switch(r, &at, v, "thinking");
}


static int
dsa_chat_read_reasoning(dsa_reader_t *r, const dsa_json_t *root)
{
    dsa_at_t     at = { NULL, "reasoning", 0 };
    dsa_json_t  *v;

    if (dsa_read_any(root, "reasoning", &v) == 0) {
        return DSA_OK;
    }

    if (v->type != DSA_JSON_OBJECT) {
        return dsa_refuse_type(r->refusal, &at, v, "{\"effort\": a string, "
                               "\"enabled\": true or false}");
    }

    if (dsa_chat_read_members(r, &at, v, "effort", "enabled") != DSA_OK
        || dsa_chat_read_effort(r, &at, v, "effort") != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_chat_read_switch(r, &at, v, "enabled");
}


/* An effort asks for thinking, none for no thinking. */

static int
dsa_chat_read_effort(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *obj, const char *name)
{
    size_t       i;
    dsa_at_t     at = { up, name, 0 };
    dsa_json_t  *v;

    static const char *const  efforts[] = {
        "none", "minimal", "low", "medium", "high", "xhigh", "max"
    };

    if (dsa_read_any(obj, name, &v) == 0) {
        return DSA_OK;
    }

    if (v->type != DSA_JSON_STRING) {
        return dsa_refuse_type(r->refusal, &at, v, "a string");
    }

    for (i = 0; i < sizeof(efforts) / sizeof(efforts[0]); i++) {
        if (dsa_str_eqz(v->text, efforts[i])) {
            r->chat->thinking = i != 0;
            r->chat->thinking_given = 1;
            return DSA_OK;
        }
    }

    return dsa_refuse_variant(r->refusal, &at, v, "one of `none`, `minimal`, "
                              "`low`, `medium`, `high`, `xhigh`, `max`");
}


static int
dsa_chat_read_switch(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *obj, const char *name)
{
    int  rc, on;

    rc = dsa_read_bool(r, up, obj, name, &on);

    if (rc == 1) {
        r->chat->thinking = on;
        r->chat->thinking_given = 1;
    }

    return rc == DSA_ERROR ? DSA_ERROR : DSA_OK;
}


/* An object has no member but these two, or null. */

static int
dsa_chat_read_members(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *obj, const char *first, const char *second)
{
    char               name[64];
    dsa_at_t           at = { up, name, 0 };
    const dsa_json_t  *v;

    for (v = obj->first; v != NULL; v = v->next) {
        if (v->type == DSA_JSON_NULL || dsa_str_eqz(v->key, first)
            || dsa_str_eqz(v->key, second))
        {
            continue;
        }

        (void) snprintf(name, sizeof(name), "%.*s", dsa_read_shown(v->key),
                        v->key.data);

        return dsa_refuse_at(r->refusal, &at, "not supported, expected %s or "
                             "%s", first, second);
    }

    return DSA_OK;
}


static int
dsa_chat_read_sampling(dsa_reader_t *r, const dsa_json_t *root)
{
    double    *value;
    size_t     i;
    int64_t    n;
    dsa_at_t   at = { NULL, "n", 0 };

    for (i = 0; i < sizeof(dsa_chat_numbers) / sizeof(dsa_chat_numbers[0]);
         i++)
    {
        value = (double *) (void *) ((char *) r->chat
                                     + dsa_chat_numbers[i].offset);

        *value = dsa_chat_numbers[i].value;

        if (dsa_read_number(r, NULL, root, dsa_chat_numbers[i].name,
                            dsa_chat_numbers[i].min, dsa_chat_numbers[i].max,
                            dsa_chat_numbers[i].range, value)
            == DSA_ERROR)
        {
            return DSA_ERROR;
        }

        if (r->chat->thinking) {
            *value = dsa_chat_numbers[i].value;
        }
    }

    if (dsa_chat_read_max_tokens(r, root) != DSA_OK) {
        return DSA_ERROR;
    }

    /* an answer of two choices must not come back as one */

    n = 1;

    if (dsa_read_integer(r, NULL, root, "n", INT64_MIN, INT64_MAX,
                         "[1, 1]", &n)
        == DSA_ERROR)
    {
        return DSA_ERROR;
    }

    if (n != 1) {
        return dsa_refuse(r->refusal, &at, "Invalid n value (currently only "
                          "n = 1 is supported)");
    }

    return DSA_OK;
}


/* How many there may be depends on the model's context: see chat.h. */

static int
dsa_chat_read_max_tokens(dsa_reader_t *r, const dsa_json_t *root)
{
    int          rc;
    int64_t      n;
    dsa_at_t     at = { NULL, "max_tokens", 0 };
    dsa_json_t  *v;

    if (dsa_read_any(root, at.name, &v) == 0) {
        at.name = "max_completion_tokens";

        if (dsa_read_any(root, at.name, &v) == 0) {
            return DSA_OK;
        }
    }

    rc = dsa_read_whole(v, &n);

    if (rc == DSA_ERROR) {
        return dsa_refuse_type(r->refusal, &at, v, "an integer");
    }

    r->chat->max_tokens_field = at.name;
    r->chat->max_tokens = rc == DSA_OK && n > 0 && n < UINT32_MAX
                          ? (uint32_t) n : UINT32_MAX;

    return DSA_OK;
}


/* Any 64 bits, signed as OpenAI's or not. */

static int
dsa_chat_read_seed(dsa_reader_t *r, const dsa_json_t *root)
{
    int          rc;
    int64_t      n;
    uint64_t     seed;
    dsa_str_t    text;
    dsa_json_t  *v;

    if (dsa_read_any(root, "seed", &v) == 0) {
        return DSA_OK;
    }

    if (v->type == DSA_JSON_INTEGER && v->text.len == 20
        && v->text.data[0] == '1')
    {
        seed = 0;

        for (text = v->text; text.len != 0; text.data++, text.len--) {
            if (__builtin_mul_overflow(seed, (uint64_t) 10, &seed)
                || __builtin_add_overflow(seed,
                                          (uint64_t) (text.data[0] - '0'),
                                          &seed))
            {
                break;
            }
        }

        if (text.len == 0) {
            r->chat->seed = seed;
            r->chat->has_seed = 1;
            return DSA_OK;
        }
    }

    rc = dsa_read_integer(r, NULL, root, "seed", INT64_MIN, INT64_MAX,
                          "[-9223372036854775808, 18446744073709551615]", &n);

    if (rc == 1) {
        r->chat->seed = (uint64_t) n;
        r->chat->has_seed = 1;
    }

    return rc == DSA_ERROR ? DSA_ERROR : DSA_OK;
}


static int
dsa_chat_read_stop(dsa_reader_t *r, const dsa_json_t *root)
{
    dsa_at_t           at = { NULL, "stop", 0 };
    dsa_at_t           el = { &at, NULL, 0 };
    dsa_json_t        *v;
    const dsa_json_t  *child;

    if (dsa_read_any(root, "stop", &v) == 0) {
        return DSA_OK;
    }

    if (v->type == DSA_JSON_ARRAY && v->n > DSA_CHAT_STOP) {
        return dsa_refuse_at(r->refusal, &at, "%u stop strings, at most %u "
                             "are accepted", v->n, DSA_CHAT_STOP);
    }

    r->chat->stop = dsa_arena_calloc(r->arena,
                                     DSA_CHAT_STOP * sizeof(dsa_str_t));
    if (r->chat->stop == NULL) {
        return dsa_refuse_memory(r->refusal, r->arena);
    }

    if (v->type != DSA_JSON_ARRAY) {
        return dsa_chat_add_stop(r, &at, v);
    }

    for (child = v->first; child != NULL; child = child->next) {
        if (dsa_chat_add_stop(r, &el, child) != DSA_OK) {
            return DSA_ERROR;
        }

        el.index++;
    }

    return DSA_OK;
}


static int
dsa_chat_add_stop(dsa_reader_t *r, const dsa_at_t *at, const dsa_json_t *v)
{
    if (v->type != DSA_JSON_STRING) {
        return dsa_refuse_type(r->refusal, at, v, at->name != NULL
                               ? "a string or an array of strings"
                               : "a string");
    }

    if (v->text.len > DSA_CHAT_STOP_LEN) {
        return dsa_refuse_at(r->refusal, at, "a stop string of %zu bytes, at "
                             "most %d are accepted", v->text.len,
                             DSA_CHAT_STOP_LEN);
    }

    /* clients send "" for none; it would stop every answer at once */

    if (v->text.len != 0) {
        r->chat->stop[r->chat->n_stop++] = v->text;
    }

    return DSA_OK;
}


static int
dsa_chat_read_flags(dsa_reader_t *r, const dsa_json_t *root)
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


static int
dsa_chat_read_logprobs(dsa_reader_t *r, const dsa_json_t *root)
{
    int        logprobs;
    int64_t    top;
    dsa_at_t   at = { NULL, "top_logprobs", 0 };

    logprobs = 0;
    top = 0;

    if (dsa_read_bool(r, NULL, root, "logprobs", &logprobs) == DSA_ERROR
        || dsa_read_integer(r, NULL, root, "top_logprobs", 0, 20, "[0, 20]",
                            &top)
           == DSA_ERROR)
    {
        return DSA_ERROR;
    }

    if (top != 0 && !logprobs) {
        return dsa_refuse(r->refusal, &at, "top_logprobs should be set along "
                          "with logprobs = true");
    }

    r->chat->logprobs = logprobs;
    r->chat->top_logprobs = top;

    return DSA_OK;
}


static int
dsa_chat_read_format(dsa_reader_t *r, const dsa_json_t *root)
{
    dsa_at_t     at = { NULL, "response_format", 0 };
    dsa_at_t     type_at = { &at, "type", 0 };
    dsa_json_t  *v, *type;

    if (dsa_read_any(root, "response_format", &v) == 0) {
        return DSA_OK;
    }

    if (v->type != DSA_JSON_OBJECT) {
        return dsa_refuse_type(r->refusal, &at, v, "{\"type\": \"text\"} or "
                               "{\"type\": \"json_object\"}");
    }

    type = dsa_json_get(v, "type");

    if (r->limits.hosted || (type != NULL && type->type != DSA_JSON_STRING)) {
        if (type == NULL || type->type != DSA_JSON_STRING) {
            return dsa_refuse_type(r->refusal, &type_at, type,
                                   "`text` or `json_object`");
        }

        if (dsa_str_eqz(type->text, "json_schema")) {
            return dsa_refuse(r->refusal, &type_at, "This response_format "
                              "type is unavailable now: expected `text` or "
                              "`json_object`");
        }

        if (!dsa_str_eqz(type->text, "text")
            && !dsa_str_eqz(type->text, "json_object"))
        {
            return dsa_refuse_variant(r->refusal, &type_at, type,
                                      "`text` or `json_object`");
        }
    }

    if (type != NULL && dsa_str_eqz(type->text, "text")) {
        return DSA_OK;
    }

    r->chat->json_object = type != NULL
                           && dsa_str_eqz(type->text, "json_object");
    r->chat->response_format = v;

    return dsa_read_finite(r, &at, v);
}


static int
dsa_chat_read_tool_choice(dsa_reader_t *r, const dsa_json_t *root)
{
    dsa_at_t     at = { NULL, "tool_choice", 0 };
    dsa_json_t  *v;

    r->chat->tool_choice = r->chat->tools != NULL ? DSA_TOOL_CHOICE_AUTO
                                                  : DSA_TOOL_CHOICE_NONE;

    if (dsa_read_any(root, "tool_choice", &v) == 0) {
        return DSA_OK;
    }

    if (v->type == DSA_JSON_OBJECT
        || (v->type == DSA_JSON_STRING && dsa_str_eqz(v->text, "required")))
    {
        return dsa_refuse(r->refusal, &at, "tool_choice: `required` and a "
                          "named function are not supported yet, expected "
                          "`none` or `auto`");
    }

    if (v->type != DSA_JSON_STRING) {
        return dsa_refuse_type(r->refusal, &at, v, "`none` or `auto`");
    }

    if (dsa_str_eqz(v->text, "none")) {
        r->chat->tool_choice = DSA_TOOL_CHOICE_NONE;
        return DSA_OK;
    }

    if (dsa_str_eqz(v->text, "auto")) {
        return DSA_OK;
    }

    return dsa_refuse_variant(r->refusal, &at, v, "`none` or `auto`");
}
