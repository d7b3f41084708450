
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The fields of a Responses request that chat completions does not have.
 */


#include <stdio.h>

#include "context/responses_items.h"


#define DSA_RESPONSES_METADATA   16     /* pairs */
#define DSA_RESPONSES_KEY        64     /* bytes of a name */
#define DSA_RESPONSES_VALUE      512    /* bytes of a value */


static int dsa_responses_refused(dsa_items_t *ctx, const dsa_json_t *root);
static int dsa_responses_neutral(const dsa_json_t *v, const char *values);
static int dsa_responses_unused(dsa_items_t *ctx, const dsa_json_t *root);
static int dsa_responses_top_logprobs(dsa_items_t *ctx, dsa_responses_t *out,
    const dsa_json_t *root);
static int dsa_responses_include(dsa_items_t *ctx, dsa_responses_t *out,
    const dsa_json_t *root);
static int dsa_responses_read_conversation(dsa_items_t *ctx,
    dsa_responses_t *out, const dsa_json_t *root);
static int dsa_responses_management(dsa_items_t *ctx, dsa_responses_t *out,
    const dsa_json_t *root);
static int dsa_responses_stream_options(dsa_items_t *ctx,
    const dsa_json_t *root);


/*
 * Fields that request functions which this server does not have.  values: the
 * values that are accepted because they change nothing, separated by spaces;
 * null is always accepted.
 */

static const struct {
    const char  *name;
    const char  *values;
    const char  *instead;
} dsa_responses_absent[] = {
    { "access_programs", "", "" },
    { "image", "", "" },
    { "logprobs", "false", "" },
    { "max_completion_tokens", "", "; use max_output_tokens" },
    { "max_tokens", "", "; use max_output_tokens" },
    { "messages", "", "; use input" },
    { "moderation", "", "" },
    { "n", "1", "" },
    { "prompt", "", "; use instructions and input" },
    { "reasoning_effort", "", "; use reasoning.effort" },
    { "response_format", "", "; use text.format" },
    { "rollout", "", "; use chat completions" },
    { "service_tier", "auto default", "" },
    { "truncation", "disabled", "" }
};


/*
 * Fields that are read here, by the caller, or not at all.  The last ones
 * request nothing of a server that caches every prefix, runs no tools itself
 * and keeps no profile of a caller's users.
 */

static const char *const  dsa_responses_own[] = {
    "input", "instructions", "store", "background", "previous_response_id",
    "conversation", "include", "metadata", "parallel_tool_calls",
    "stream_options", "top_logprobs", "context_management",

    "max_tool_calls", "prompt_cache_key", "prompt_cache_options",
    "prompt_cache_retention", "safety_identifier", "user"
};


int
dsa_responses_own_field(dsa_str_t name)
{
    size_t  i;

    for (i = 0; i < sizeof(dsa_responses_own) / sizeof(dsa_responses_own[0]);
         i++)
    {
        if (dsa_str_eqz(name, dsa_responses_own[i])) {
            return 1;
        }
    }

    for (i = 0;
         i < sizeof(dsa_responses_absent) / sizeof(dsa_responses_absent[0]);
         i++)
    {
        if (dsa_str_eqz(name, dsa_responses_absent[i].name)) {
            return 1;
        }
    }

    return 0;
}


int
dsa_responses_fields(dsa_items_t *ctx, dsa_responses_t *out,
    const dsa_json_t *root)
{
    int       rc, store, parallel, background;
    dsa_at_t  at = { NULL, "previous_response_id", 0 };
    dsa_at_t  kept = { NULL, "background", 0 };

    store = 1;
    parallel = 1;
    background = 0;

    if (dsa_responses_refused(ctx, root) != DSA_OK
        || dsa_responses_unused(ctx, root) != DSA_OK
        || dsa_responses_top_logprobs(ctx, out, root) != DSA_OK)
    {
        return DSA_ERROR;
    }

    rc = dsa_read_bool(&ctx->r, NULL, root, "store", &store);

    if (rc == DSA_ERROR
        || dsa_read_bool(&ctx->r, NULL, root, "parallel_tool_calls", &parallel)
           == DSA_ERROR
        || dsa_read_bool(&ctx->r, NULL, root, "background", &background)
           == DSA_ERROR)
    {
        return DSA_ERROR;
    }

    if (background && !store) {
        return dsa_refuse_at(ctx->r.refusal, &kept, "true, but store is false; "
                             "a response in the background is read where it "
                             "is stored; expected false or no such field");
    }

    out->store = store;
    out->store_given = rc;
    out->background = background;
    out->one_call = !parallel;

    rc = dsa_read_string(&ctx->r, NULL, root, "previous_response_id",
                         &out->previous);

    if (rc == DSA_ERROR) {
        return DSA_ERROR;
    }

    if (rc == 1 && out->previous.len == 0) {
        return dsa_refuse_at(ctx->r.refusal, &at, "empty; expected the id of "
                             "a response or no such field");
    }

    if (dsa_responses_read_conversation(ctx, out, root) != DSA_OK
        || dsa_responses_include(ctx, out, root) != DSA_OK
        || dsa_responses_management(ctx, out, root) != DSA_OK
        || dsa_responses_metadata(ctx->r.refusal, root) != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_responses_stream_options(ctx, root);
}


/* The id, or an object with it. */

static int
dsa_responses_read_conversation(dsa_items_t *ctx, dsa_responses_t *out,
    const dsa_json_t *root)
{
    dsa_at_t     at = { NULL, "conversation", 0 };
    dsa_json_t  *v;

    if (dsa_read_any(root, "conversation", &v) == 0) {
        return DSA_OK;
    }

    if (v->type == DSA_JSON_OBJECT) {
        v = dsa_json_get(v, "id");
    }

    if (v == NULL || v->type != DSA_JSON_STRING || v->text.len == 0) {
        return dsa_refuse_at(ctx->r.refusal, &at, "expected the id of a "
                             "conversation, or an object with id");
    }

    if (out->previous.len != 0) {
        return dsa_refuse_at(ctx->r.refusal, &at, "previous_response_id is "
                             "given as well; expected only one of them");
    }

    out->conversation = v->text;

    return DSA_OK;
}


/* An array with one entry: {"type": "compaction", "compact_threshold": N}. */

static int
dsa_responses_management(dsa_items_t *ctx, dsa_responses_t *out,
    const dsa_json_t *root)
{
    int64_t      n;
    dsa_at_t     at = { NULL, "context_management", 0 };
    dsa_at_t     el = { &at, NULL, 0 };
    dsa_at_t     type_at = { &el, "type", 0 };
    dsa_json_t  *v, *type;

    if (dsa_read_any(root, "context_management", &v) == 0) {
        return DSA_OK;
    }

    if (v->type != DSA_JSON_ARRAY) {
        return dsa_refuse_type(ctx->r.refusal, &at, v,
                               "an array with one entry of type `compaction`");
    }

    if (v->first == NULL) {
        return DSA_OK;
    }

    if (v->n != 1) {
        return dsa_refuse_at(ctx->r.refusal, &at, "%u entries; expected at "
                             "most one", v->n);
    }

    v = v->first;
    type = v->type == DSA_JSON_OBJECT ? dsa_json_get(v, "type") : NULL;

    if (type == NULL || type->type != DSA_JSON_STRING
        || !dsa_str_eqz(type->text, "compaction"))
    {
        return dsa_refuse_at(ctx->r.refusal, &type_at, "this entry is not "
                             "supported; expected `compaction`");
    }

    n = DSA_COMPACT_DEFAULT;

    if (dsa_read_integer(&ctx->r, &el, v, "compact_threshold", 1,
                         DSA_COMPACT_DEFAULT - 1, "from 1 to 4294967294", &n)
        == DSA_ERROR)
    {
        return DSA_ERROR;
    }

    out->compact_threshold = (uint32_t) n;

    return DSA_OK;
}


static int
dsa_responses_refused(dsa_items_t *ctx, const dsa_json_t *root)
{
    size_t       i;
    dsa_at_t     at = { NULL, NULL, 0 };
    dsa_json_t  *v;
    const char  *values;

    for (i = 0;
         i < sizeof(dsa_responses_absent) / sizeof(dsa_responses_absent[0]);
         i++)
    {
        at.name = dsa_responses_absent[i].name;
        values = dsa_responses_absent[i].values;

        if (dsa_read_any(root, at.name, &v) == 0
            || dsa_responses_neutral(v, values))
        {
            continue;
        }

        return dsa_refuse_at(ctx->r.refusal, &at, "this value is not "
                             "supported; expected %s%sno such field%s",
                             values, values[0] != '\0' ? " or " : "",
                             dsa_responses_absent[i].instead);
    }

    return DSA_OK;
}


static int
dsa_responses_neutral(const dsa_json_t *v, const char *values)
{
    size_t       n;
    dsa_str_t    text;
    const char  *p;

    switch (v->type) {

    case DSA_JSON_FALSE:
        text = dsa_strz("false");
        break;

    case DSA_JSON_INTEGER:
    case DSA_JSON_STRING:
        text = v->text;
        break;

    default:
        return 0;
    }

    for (p = values; *p != '\0'; p += n + (p[n] == ' ')) {
        n = strcspn(p, " ");

        if (dsa_str_eq(text, dsa_str(p, n))) {
            return 1;
        }
    }

    return 0;
}


/* Members of any value; only the type is checked. */

static int
dsa_responses_unused(dsa_items_t *ctx, const dsa_json_t *root)
{
    size_t       i;
    int64_t      n;
    dsa_at_t     at = { NULL, "prompt_cache_options", 0 };
    dsa_str_t    text;
    dsa_json_t  *v;

    static const char *const  names[] = {
        "prompt_cache_key", "prompt_cache_retention", "safety_identifier",
        "user"
    };

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (dsa_read_string(&ctx->r, NULL, root, names[i], &text)
            == DSA_ERROR)
        {
            return DSA_ERROR;
        }
    }

    if (dsa_read_any(root, at.name, &v) == 1 && v->type != DSA_JSON_OBJECT) {
        return dsa_refuse_type(ctx->r.refusal, &at, v, "an object");
    }

    return dsa_read_integer(&ctx->r, NULL, root, "max_tool_calls", 0,
                            INT64_MAX, "[0, 9223372036854775807]", &n)
           == DSA_ERROR
           ? DSA_ERROR : DSA_OK;
}


/*
 * The alternatives beside each logprob.  Without logprobs in include there are
 * none.
 */

static int
dsa_responses_top_logprobs(dsa_items_t *ctx, dsa_responses_t *out,
    const dsa_json_t *root)
{
    int64_t  n;

    n = 0;

    if (dsa_read_integer(&ctx->r, NULL, root, "top_logprobs", 0,
                         DSA_SAMPLE_MAX_TOP, "[0, 20]", &n)
        == DSA_ERROR)
    {
        return DSA_ERROR;
    }

    out->top_logprobs = (uint32_t) n;

    return DSA_OK;
}


/*
 * Parts of answers that this server never has are accepted: an answer without
 * them has all that was requested.
 */

dsa_responses_include_e
dsa_responses_included(dsa_str_t name)
{
    size_t  i;

    static const char *const  names[] = {
        "code_interpreter_call.outputs",
        "computer_call_output.output.image_url",
        "file_search_call.results",
        "message.input_image.image_url",
        "web_search_call.action.sources",
        "web_search_call.results"
    };

    if (dsa_str_eqz(name, "reasoning.encrypted_content")) {
        return DSA_RESPONSES_INCLUDE_ENCRYPTED;
    }

    if (dsa_str_eqz(name, "message.output_text.logprobs")) {
        return DSA_RESPONSES_INCLUDE_LOGPROBS;
    }

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (dsa_str_eqz(name, names[i])) {
            return DSA_RESPONSES_INCLUDE_NOTHING;
        }
    }

    return DSA_RESPONSES_INCLUDE_UNKNOWN;
}


static int
dsa_responses_include(dsa_items_t *ctx, dsa_responses_t *out,
    const dsa_json_t *root)
{
    dsa_at_t           at = { NULL, "include", 0 };
    dsa_at_t           el = { &at, NULL, 0 };
    dsa_json_t        *v;
    const dsa_json_t  *child;

    if (dsa_read_any(root, "include", &v) == 0) {
        return DSA_OK;
    }

    if (v->type != DSA_JSON_ARRAY) {
        return dsa_refuse_type(ctx->r.refusal, &at, v, "an array of strings");
    }

    for (child = v->first; child != NULL; child = child->next) {

        if (child->type != DSA_JSON_STRING) {
            return dsa_refuse_type(ctx->r.refusal, &el, child, "a string");
        }

        switch (dsa_responses_included(child->text)) {

        case DSA_RESPONSES_INCLUDE_ENCRYPTED:
            out->encrypted = 1;
            break;

        case DSA_RESPONSES_INCLUDE_LOGPROBS:
            out->logprobs = 1;
            break;

        case DSA_RESPONSES_INCLUDE_NOTHING:
            break;

        default: /* DSA_RESPONSES_INCLUDE_UNKNOWN */
            return dsa_refuse_at(ctx->r.refusal, &el, "`%.*s` is not "
                                 "supported; expected "
                                 "`reasoning.encrypted_content` or "
                                 "`message.output_text.logprobs`",
                                 dsa_read_shown(child->text),
                                 child->text.data);
        }

        el.index++;
    }

    return DSA_OK;
}


int
dsa_responses_metadata(dsa_refusal_t *refusal, const dsa_json_t *root)
{
    dsa_at_t           at = { NULL, "metadata", 0 };
    dsa_json_t        *v;
    const dsa_json_t  *child;

    if (dsa_read_any(root, "metadata", &v) == 0) {
        return DSA_OK;
    }

    if (v->type != DSA_JSON_OBJECT) {
        return dsa_refuse_type(refusal, &at, v,
                               "an object with strings");
    }

    if (v->n > DSA_RESPONSES_METADATA) {
        return dsa_refuse_at(refusal, &at, "%u pairs; at most %d are "
                             "accepted", v->n, DSA_RESPONSES_METADATA);
    }

    for (child = v->first; child != NULL; child = child->next) {
        if (child->type != DSA_JSON_STRING
            || child->key.len > DSA_RESPONSES_KEY
            || child->text.len > DSA_RESPONSES_VALUE)
        {
            return dsa_refuse_at(refusal, &at, "the value of `%.*s` is "
                                 "not accepted; expected names of at most %d "
                                 "bytes and strings of at most %d bytes",
                                 dsa_read_shown(child->key), child->key.data,
                                 DSA_RESPONSES_KEY, DSA_RESPONSES_VALUE);
        }
    }

    return DSA_OK;
}


/* Events are not padded with random bytes. */

static int
dsa_responses_stream_options(dsa_items_t *ctx, const dsa_json_t *root)
{
    char               name[64];
    dsa_at_t           at = { NULL, "stream_options", 0 };
    dsa_at_t           member_at = { &at, name, 0 };
    dsa_json_t        *v, *stream;
    const dsa_json_t  *child;

    if (dsa_read_any(root, "stream_options", &v) == 0) {
        return DSA_OK;
    }

    if (v->type != DSA_JSON_OBJECT) {
        return dsa_refuse_type(ctx->r.refusal, &at, v,
                               "{\"include_obfuscation\": false}");
    }

    stream = dsa_json_get(root, "stream");

    if (stream == NULL || stream->type != DSA_JSON_TRUE) {
        return dsa_refuse(ctx->r.refusal, &at, "stream_options should be set "
                          "along with stream = true");
    }

    for (child = v->first; child != NULL; child = child->next) {

        if (child->type == DSA_JSON_NULL
            || (child->type == DSA_JSON_FALSE
                && dsa_str_eqz(child->key, "include_obfuscation")))
        {
            continue;
        }

        (void) snprintf(name, sizeof(name), "%.*s",
                        dsa_read_shown(child->key), child->key.data);

        return dsa_refuse_at(ctx->r.refusal, &member_at, "this value is not "
                             "supported; expected include_obfuscation false");
    }

    return DSA_OK;
}
