
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The fields of a request of Anthropic's Messages API, as platform.claude.com
 * ("Create a Message") has them.
 */



#include "context/anthropic.h"
#include "context/anthropic_read.h"


#define DSA_ANTHROPIC_BUDGET    1024    /* the least budget_tokens */


static int dsa_anthropic_model(dsa_reader_t *r, const dsa_json_t *root);
static int dsa_anthropic_thinking(dsa_reader_t *r, const dsa_json_t *root);
static int dsa_anthropic_budget(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *thinking, const dsa_json_t *root);
static int dsa_anthropic_max_tokens(dsa_reader_t *r, const dsa_json_t *root,
    int count);
static int dsa_anthropic_stop(dsa_reader_t *r, const dsa_json_t *root);
static int dsa_anthropic_metadata(dsa_reader_t *r, const dsa_json_t *root);
static int dsa_anthropic_unused(dsa_reader_t *r, const dsa_json_t *root);
static int dsa_anthropic_other(dsa_reader_t *r, const dsa_json_t *root);


/*
 * Fields that change nothing here.  A container serves only tools that the
 * server executes, which are refused.  DeepSeek's endpoint for this API ignores
 * container and top_k, too, so clients send them to servers of this kind.
 */

static const struct {
    const char       *name;
    dsa_json_type_e   type;
    dsa_json_type_e   other;
    const char       *expected;
} dsa_anthropic_unused_fields[] = {
    { "diagnostics", DSA_JSON_OBJECT, DSA_JSON_OBJECT, "an object" },
    { "container", DSA_JSON_STRING, DSA_JSON_OBJECT,
      "the id of a container, or an object" },
    { "top_k", DSA_JSON_INTEGER, DSA_JSON_FLOAT, "a number" }
};

/* There is one service tier, one speed and one place. */

static const dsa_field_t  dsa_anthropic_absent[] = {
    { "billing_policy", { NULL }, NULL },
    { "fallback_credit_token", { NULL }, NULL },
    { "inference_geo", { "\"global\"", "\"not_available\"" }, NULL },
    { "service_tier", { "\"auto\"", "\"standard_only\"" }, NULL },
    { "speed", { "\"standard\"" }, NULL }
};


/* Fields that OpenAI's API has in place of the ones of this API. */

static const struct {
    const char   *name;
    const char   *instead;
} dsa_anthropic_fields[] = {
    { "stop", "use stop_sequences" },
    { "max_completion_tokens", "use max_tokens" },
    { "max_thinking_tokens", "use thinking.budget_tokens" },
    { "response_format", "use output_config.format" },
    { "frequency_penalty", "use temperature and top_p" },
    { "presence_penalty", "use temperature and top_p" },
    { "logprobs", "use the OpenAI API" },
    { "n", "send one request for each answer" },
    { "rollout", "use chat completions" },
    { "conversation", "send all messages, or use the OpenAI API" },
    { "thread", "send all messages" }
};


int
dsa_anthropic_read(dsa_chat_t *chat, dsa_arena_t *arena,
    const dsa_json_t *root, const dsa_chat_limits_t *limits, int count,
    dsa_refusal_t *refusal)
{
    int           stream;
    dsa_reader_t  r;

    memset(chat, 0, sizeof(dsa_chat_t));

    chat->hosted = 1;

    r.chat = chat;
    r.arena = arena;
    r.refusal = refusal;
    r.limits = *limits;
    r.limits.hosted = 1;
    r.values = DSA_CHAT_VALUES;
    r.namespaces = 0;

    if (root->type != DSA_JSON_OBJECT) {
        return dsa_refuse_type(refusal, NULL, root, "a request object");
    }

    stream = 0;

    if (dsa_anthropic_model(&r, root) != DSA_OK
        || dsa_anthropic_max_tokens(&r, root, count) != DSA_OK
        || dsa_anthropic_thinking(&r, root) != DSA_OK
        || dsa_anthropic_messages(&r, root) != DSA_OK
        || dsa_anthropic_tools(&r, root) != DSA_OK
        || dsa_read_common_sampling(&r, root) != DSA_OK
        || dsa_anthropic_stop(&r, root) != DSA_OK
        || dsa_anthropic_output(&r, root) != DSA_OK
        || dsa_anthropic_management(&r, root) != DSA_OK
        || dsa_anthropic_summarize(&r, root) != DSA_OK
        || dsa_anthropic_metadata(&r, root) != DSA_OK
        || dsa_anthropic_other(&r, root) != DSA_OK
        || dsa_read_bool(&r, NULL, root, "stream", &stream) == DSA_ERROR)
    {
        return DSA_ERROR;
    }

    chat->stream = stream && !count;

    return DSA_OK;
}


static int
dsa_anthropic_model(dsa_reader_t *r, const dsa_json_t *root)
{
    dsa_at_t  at = { NULL, "model", 0 };

    if (dsa_read_string(r, NULL, root, "model", &r->chat->model)
        == DSA_ERROR)
    {
        return DSA_ERROR;
    }

    if (r->chat->model.len == 0) {
        return dsa_refuse_type(r->refusal, &at, dsa_json_get(root, "model"),
                               "the name of a model");
    }

    return DSA_OK;
}


/* The upper limit is the model's context, which is not known here: chat.h. */

static int
dsa_anthropic_max_tokens(dsa_reader_t *r, const dsa_json_t *root, int count)
{
    dsa_at_t     at = { NULL, "max_tokens", 0 };
    dsa_json_t  *v;

    if (count) {
        return DSA_OK;
    }

    v = dsa_json_get(root, "max_tokens");

    if (v == NULL) {
        return dsa_refuse_type(r->refusal, &at, v, "an integer");
    }

    return dsa_read_tokens(r, &at, v, &r->chat->max_tokens);
}


/* The model has no degrees of thinking, so adaptive is the same as enabled. */

static int
dsa_anthropic_thinking(dsa_reader_t *r, const dsa_json_t *root)
{
    dsa_at_t     at = { NULL, "thinking", 0 };
    dsa_at_t     type_at = { &at, "type", 0 };
    dsa_at_t     display_at = { &at, "display", 0 };
    dsa_at_t     budget_at = { &at, "budget_tokens", 0 };
    dsa_json_t  *v, *type, *display, *budget;

    static const char  expected[] = "`enabled`, `adaptive` or `disabled`";

    r->chat->thinking = dsa_str_eqz(r->chat->model, "deepseek-reasoner");

    if (dsa_read_any(root, "thinking", &v) == 0) {
        return DSA_OK;
    }

    if (v->type != DSA_JSON_OBJECT) {
        return dsa_refuse_type(r->refusal, &at, v, "an object with type");
    }

    type = dsa_json_get(v, "type");

    if (type == NULL || type->type != DSA_JSON_STRING) {
        return dsa_refuse_type(r->refusal, &type_at, type, expected);
    }

    if (!dsa_str_eqz(type->text, "enabled")
        && !dsa_str_eqz(type->text, "adaptive")
        && !dsa_str_eqz(type->text, "disabled"))
    {
        return dsa_refuse_variant(r->refusal, &type_at, type, expected);
    }

    if (dsa_read_any(v, "display", &display) == 1
        && (display->type != DSA_JSON_STRING
            || !dsa_str_eqz(display->text, "summarized")))
    {
        return dsa_refuse_at(r->refusal, &display_at, "this value is not "
                             "supported, because the reasoning is always "
                             "returned in full; expected `summarized` or no "
                             "such field");
    }

    r->chat->thinking = !dsa_str_eqz(type->text, "disabled");
    r->chat->thinking_given = 1;

    if (dsa_str_eqz(type->text, "enabled")) {
        return dsa_anthropic_budget(r, &at, v, root);
    }

    if (dsa_read_any(v, "budget_tokens", &budget) == 1) {
        return dsa_refuse_at(r->refusal, &budget_at, "the type `%.*s` has no "
                             "budget; expected null or no such field",
                             (int) type->text.len, type->text.data);
    }

    return DSA_OK;
}


/* The engine ends the reasoning when it has so many tokens. */

static int
dsa_anthropic_budget(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *thinking, const dsa_json_t *root)
{
    int          rc;
    int64_t      n;
    dsa_at_t     at = { up, "budget_tokens", 0 };
    dsa_json_t  *v;

    v = dsa_json_get(thinking, "budget_tokens");

    if (v == NULL) {
        return dsa_refuse_type(r->refusal, &at, v, "an integer");
    }

    rc = dsa_read_whole(v, &n);

    if (rc == DSA_ERROR) {
        return dsa_refuse_type(r->refusal, &at, v, "an integer");
    }

    if (rc != DSA_OK || n < DSA_ANTHROPIC_BUDGET) {
        return dsa_refuse_at(r->refusal, &at, "Input should be greater than "
                             "or equal to %d", DSA_ANTHROPIC_BUDGET);
    }

    if (dsa_json_get(root, "max_tokens") != NULL
        && r->chat->max_tokens != 0 && n >= r->chat->max_tokens)
    {
        return dsa_refuse(r->refusal, &at, "`max_tokens` must be greater than "
                          "`thinking.budget_tokens`");
    }

    r->chat->thinking_budget = n < UINT32_MAX ? (uint32_t) n : 0;

    return DSA_OK;
}


static int
dsa_anthropic_stop(dsa_reader_t *r, const dsa_json_t *root)
{
    dsa_at_t           at = { NULL, "stop_sequences", 0 };
    dsa_at_t           el = { &at, NULL, 0 };
    dsa_json_t        *v;
    const dsa_json_t  *child;

    if (dsa_read_any(root, at.name, &v) == 0) {
        return DSA_OK;
    }

    if (v->type != DSA_JSON_ARRAY) {
        return dsa_refuse_type(r->refusal, &at, v, "an array of strings");
    }

    if (v->n > DSA_CHAT_STOP) {
        return dsa_refuse_at(r->refusal, &at, "%u stop sequences; at most %d "
                             "are accepted", v->n, DSA_CHAT_STOP);
    }

    if (v->n == 0) {
        return DSA_OK;
    }

    r->chat->stop = dsa_arena_calloc(r->arena, v->n * sizeof(dsa_str_t));
    if (r->chat->stop == NULL) {
        return dsa_refuse_memory(r->refusal, r->arena);
    }

    for (child = v->first; child != NULL; child = child->next) {
        if (child->type != DSA_JSON_STRING) {
            return dsa_refuse_type(r->refusal, &el, child, "a string");
        }

        if (child->text.len == 0 || child->text.len > DSA_CHAT_STOP_LEN) {
            return dsa_refuse_at(r->refusal, &el, "a stop sequence of %zu "
                                 "bytes; expected 1 to %d", child->text.len,
                                 DSA_CHAT_STOP_LEN);
        }

        r->chat->stop[r->chat->n_stop++] = child->text;
        el.index++;
    }

    return DSA_OK;
}


static int
dsa_anthropic_metadata(dsa_reader_t *r, const dsa_json_t *root)
{
    dsa_at_t     at = { NULL, "metadata", 0 };
    dsa_str_t    user;
    dsa_json_t  *v;

    if (dsa_read_any(root, at.name, &v) == 0) {
        return DSA_OK;
    }

    if (v->type != DSA_JSON_OBJECT) {
        return dsa_refuse_type(r->refusal, &at, v, "an object");
    }

    return dsa_read_string(r, &at, v, "user_id", &user) == DSA_ERROR
           ? DSA_ERROR : DSA_OK;
}


/* Fields without effect, and cache_control of the whole request. */

static int
dsa_anthropic_unused(dsa_reader_t *r, const dsa_json_t *root)
{
    size_t       i;
    dsa_at_t     at = { NULL, NULL, 0 };
    dsa_json_t  *v;

    for (i = 0; i < sizeof(dsa_anthropic_unused_fields)
                    / sizeof(dsa_anthropic_unused_fields[0]); i++)
    {
        at.name = dsa_anthropic_unused_fields[i].name;

        if (dsa_read_any(root, at.name, &v) == 1
            && v->type != dsa_anthropic_unused_fields[i].type
            && v->type != dsa_anthropic_unused_fields[i].other)
        {
            return dsa_refuse_type(r->refusal, &at, v,
                                   dsa_anthropic_unused_fields[i].expected);
        }
    }

    return dsa_anthropic_cache(r, NULL, root);
}


static int
dsa_anthropic_other(dsa_reader_t *r, const dsa_json_t *root)
{
    size_t       i;
    dsa_at_t     at = { NULL, "mcp_servers", 0 };
    dsa_json_t  *v;

    for (i = 0;
         i < sizeof(dsa_anthropic_fields) / sizeof(dsa_anthropic_fields[0]);
         i++)
    {
        at.name = dsa_anthropic_fields[i].name;

        if (dsa_read_any(root, at.name, &v) == 1) {
            return dsa_refuse_at(r->refusal, &at, "this field is not "
                                 "supported by the Messages API; %s",
                                 dsa_anthropic_fields[i].instead);
        }
    }

    at.name = "mcp_servers";

    if (dsa_read_any(root, at.name, &v) == 1
        && (v->type != DSA_JSON_ARRAY || v->n != 0))
    {
        return dsa_refuse_at(r->refusal, &at, "this server calls no other "
                             "servers; expected an empty array or no such "
                             "field");
    }

    if (dsa_anthropic_unused(r, root) != DSA_OK
        || dsa_read_neutral(r, root, dsa_anthropic_absent,
                            sizeof(dsa_anthropic_absent)
                            / sizeof(dsa_anthropic_absent[0]))
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    /* what other servers have */

    return dsa_read_unsupported(r, root);
}
