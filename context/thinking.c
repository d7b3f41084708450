
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The fields of a chat request that switch thinking on or off.
 */


#include <stdio.h>

#include "context/read.h"


static int dsa_thinking_template(dsa_reader_t *r, const dsa_json_t *root);
static int dsa_thinking_reasoning(dsa_reader_t *r, const dsa_json_t *root);
static int dsa_thinking_effort(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *obj, const char *name);
static int dsa_thinking_switch(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *obj, const char *name);
static int dsa_thinking_members(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *obj, const char *first, const char *second);


/*
 * The model has no degrees of thinking: it is on or off.  Clients use several
 * fields for it.  If a request has more than one of them, the last one in the
 * order of this function counts.
 */

int
dsa_read_thinking(dsa_reader_t *r, const dsa_json_t *root)
{
    dsa_at_t     at = { NULL, "thinking", 0 };
    dsa_at_t     type_at = { &at, "type", 0 };
    dsa_json_t  *v, *type;

    r->chat->thinking = dsa_str_eqz(r->chat->model, "deepseek-reasoner");

    if (dsa_thinking_switch(r, NULL, root, "enable_thinking") != DSA_OK
        || dsa_thinking_template(r, root) != DSA_OK
        || dsa_thinking_reasoning(r, root) != DSA_OK
        || dsa_thinking_effort(r, NULL, root, "reasoning_effort") != DSA_OK)
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

    /* above all budget_tokens: nothing here ends the reasoning early */

    if (dsa_thinking_members(r, &at, v, "type", NULL) != DSA_OK) {
        return DSA_ERROR;
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


/* vLLM and SGLang pass this object to the template of the prompt. */

static int
dsa_thinking_template(dsa_reader_t *r, const dsa_json_t *root)
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

    if (dsa_thinking_members(r, &at, v, "enable_thinking", "thinking")
        != DSA_OK
        || dsa_thinking_switch(r, &at, v, "enable_thinking") != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_thinking_switch(r, &at, v, "thinking");
}


static int
dsa_thinking_reasoning(dsa_reader_t *r, const dsa_json_t *root)
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

    if (dsa_thinking_members(r, &at, v, "effort", "enabled") != DSA_OK
        || dsa_thinking_effort(r, &at, v, "effort") != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_thinking_switch(r, &at, v, "enabled");
}


/* The effort "none" switches thinking off, any other switches it on. */

static int
dsa_thinking_effort(dsa_reader_t *r, const dsa_at_t *up,
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
dsa_thinking_switch(dsa_reader_t *r, const dsa_at_t *up,
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


/*
 * Rejects members other than these two, unless they are null.  second may be
 * NULL.
 */

static int
dsa_thinking_members(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *obj, const char *first, const char *second)
{
    char               name[64];
    dsa_at_t           at = { up, name, 0 };
    const dsa_json_t  *v;

    for (v = obj->first; v != NULL; v = v->next) {
        if (v->type == DSA_JSON_NULL || dsa_str_eqz(v->key, first)
            || (second != NULL && dsa_str_eqz(v->key, second)))
        {
            continue;
        }

        (void) snprintf(name, sizeof(name), "%.*s", dsa_read_shown(v->key),
                        v->key.data);

        return dsa_refuse_at(r->refusal, &at, "this member is not supported; "
                             "expected %s%s%s only%s", first,
                             second != NULL ? " or " : "",
                             second != NULL ? second : "",
                             dsa_str_eqz(v->key, "budget_tokens")
                             || dsa_str_eqz(v->key, "max_tokens")
                             ? "; max_tokens of the request limits reasoning "
                               "and answer together" : "");
    }

    return DSA_OK;
}
