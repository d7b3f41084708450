
/*
 * Copyright (C) The nginx-dsa authors
 *
 * context_management and compaction of Anthropic's Messages API: what leaves
 * the prompt of a long conversation (clear.h), and what a summary replaces
 * (compact.h).  Fields, defaults and limits are those of platform.claude.com
 * ("Context editing").
 */


#include "context/anthropic_read.h"


#define DSA_ANTHROPIC_TRIGGER   100000  /* tokens */
#define DSA_ANTHROPIC_KEEP      3       /* tool uses */
#define DSA_ANTHROPIC_TURNS     1       /* turns with reasoning */


/* An object {"type": ..., "value": N}. */

typedef struct {
    const char   *types[2];             /* the second one may be NULL */
    int64_t       min;
    const char   *range;                /* of the value, for the error */
    const char   *expected;
} dsa_anthropic_amount_t;


static int dsa_anthropic_edit(dsa_reader_t *r, const dsa_at_t *at,
    const dsa_json_t *v);
static int dsa_anthropic_compact(dsa_reader_t *r, const dsa_at_t *at,
    const dsa_json_t *v);
static int dsa_anthropic_clear(dsa_reader_t *r, const dsa_at_t *at,
    const dsa_json_t *v, dsa_edit_t *edit);
static int dsa_anthropic_inputs(dsa_reader_t *r, const dsa_at_t *at,
    const dsa_json_t *v, dsa_edit_t *edit);
static int dsa_anthropic_names(dsa_reader_t *r, const dsa_at_t *at,
    const dsa_json_t *v, const char *expected, dsa_str_t **names,
    uint32_t *n);
static int dsa_anthropic_clear_thinking(dsa_reader_t *r, const dsa_at_t *at,
    const dsa_json_t *v, dsa_edit_t *edit);
static int dsa_anthropic_amount(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *edit, const char *name, const dsa_anthropic_amount_t *a,
    uint32_t *n);
static int dsa_anthropic_is(const dsa_json_t *v, const char *type);


static const dsa_anthropic_amount_t  dsa_anthropic_tokens = {
    { "input_tokens", NULL }, 1, "[1, 4294967294]",
    "an object of the type `input_tokens`"
};

static const dsa_anthropic_amount_t  dsa_anthropic_either = {
    { "input_tokens", "tool_uses" }, 1, "[1, 4294967294]",
    "an object of the type `input_tokens` or `tool_uses`"
};

static const dsa_anthropic_amount_t  dsa_anthropic_least = {
    { "input_tokens", NULL }, 0, "[0, 4294967294]",
    "an object of the type `input_tokens`"
};

static const dsa_anthropic_amount_t  dsa_anthropic_uses = {
    { "tool_uses", NULL }, 0, "[0, 4294967294]",
    "an object of the type `tool_uses`"
};

static const dsa_anthropic_amount_t  dsa_anthropic_turns = {
    { "thinking_turns", NULL }, 1, "[1, 4294967294]",
    "`all`, or an object of the type `thinking_turns` or `all`"
};


int
dsa_anthropic_management(dsa_reader_t *r, const dsa_json_t *root)
{
    dsa_at_t           at = { NULL, "context_management", 0 };
    dsa_at_t           edits_at = { &at, "edits", 0 };
    dsa_at_t           el = { &edits_at, NULL, 0 };
    dsa_json_t        *v, *edits;
    const dsa_json_t  *child;

    if (dsa_read_any(root, at.name, &v) == 0) {
        return DSA_OK;
    }

    if (v->type != DSA_JSON_OBJECT) {
        return dsa_refuse_type(r->refusal, &at, v, "an object");
    }

    r->chat->managed = 1;

    if (dsa_read_any(v, "edits", &edits) == 0) {
        return DSA_OK;
    }

    if (edits->type != DSA_JSON_ARRAY) {
        return dsa_refuse_type(r->refusal, &edits_at, edits, "an array");
    }

    if (edits->n > DSA_CHAT_EDITS) {
        return dsa_refuse_at(r->refusal, &edits_at, "%u edits; at most %d are "
                             "accepted", edits->n, DSA_CHAT_EDITS);
    }

    r->chat->edits = dsa_arena_calloc(r->arena, ((size_t) edits->n + 1)
                                                * sizeof(dsa_edit_t));
    if (r->chat->edits == NULL) {
        return dsa_refuse_memory(r->refusal, r->arena);
    }

    for (child = edits->first; child != NULL; child = child->next) {
        if (dsa_anthropic_edit(r, &el, child) != DSA_OK) {
            return DSA_ERROR;
        }

        el.index++;
    }

    if (r->chat->compact_threshold == 0) {
        r->chat->n_first = r->chat->n_edits;
    }

    return DSA_OK;
}


static int
dsa_anthropic_edit(dsa_reader_t *r, const dsa_at_t *at, const dsa_json_t *v)
{
    dsa_chat_t  *chat;

    chat = r->chat;

    if (dsa_anthropic_is(v, "compact_20260112")) {
        return dsa_anthropic_compact(r, at, v);
    }

    if (dsa_anthropic_is(v, "clear_tool_uses_20250919")) {
        return dsa_anthropic_clear(r, at, v, &chat->edits[chat->n_edits++]);
    }

    if (dsa_anthropic_is(v, "clear_thinking_20251015")) {
        return dsa_anthropic_clear_thinking(r, at, v,
                                            &chat->edits[chat->n_edits++]);
    }

    return dsa_refuse_at(r->refusal, at, "this edit is not supported; "
                         "expected one of the type "
                         "`clear_thinking_20251015`, "
                         "`clear_tool_uses_20250919` or `compact_20260112`");
}


static int
dsa_anthropic_compact(dsa_reader_t *r, const dsa_at_t *at,
    const dsa_json_t *v)
{
    int          pauses;
    dsa_chat_t  *chat;

    chat = r->chat;

    if (chat->compact_threshold != 0) {
        return dsa_refuse_at(r->refusal, at, "this is the second compaction; "
                             "expected at most one");
    }

    chat->compact_threshold = DSA_COMPACT_DEFAULT;
    chat->n_first = chat->n_edits;
    pauses = 0;

    if (dsa_read_bool(r, at, v, "pause_after_compaction", &pauses)
        == DSA_ERROR
        || dsa_read_string(r, at, v, "instructions",
                           &chat->compact_instructions)
           == DSA_ERROR)
    {
        return DSA_ERROR;
    }

    chat->compact_pauses = pauses != 0;

    return dsa_anthropic_amount(r, at, v, "trigger", &dsa_anthropic_tokens,
                                &chat->compact_threshold)
           == DSA_ERROR
           ? DSA_ERROR : DSA_OK;
}


static int
dsa_anthropic_clear(dsa_reader_t *r, const dsa_at_t *at, const dsa_json_t *v,
    dsa_edit_t *edit)
{
    int          rc;
    dsa_at_t     excluded_at = { at, "exclude_tools", 0 };
    dsa_json_t  *excluded;

    edit->type = DSA_EDIT_TOOL_USES;
    edit->trigger = DSA_ANTHROPIC_TRIGGER;
    edit->keep = DSA_ANTHROPIC_KEEP;

    rc = dsa_anthropic_amount(r, at, v, "trigger", &dsa_anthropic_either,
                              &edit->trigger);

    if (rc == DSA_ERROR
        || dsa_anthropic_amount(r, at, v, "keep", &dsa_anthropic_uses,
                                &edit->keep)
           == DSA_ERROR
        || dsa_anthropic_amount(r, at, v, "clear_at_least",
                                &dsa_anthropic_least, &edit->at_least)
           == DSA_ERROR)
    {
        return DSA_ERROR;
    }

    edit->by_uses = rc == 2;

    if (dsa_read_any(v, "exclude_tools", &excluded) == 1
        && dsa_anthropic_names(r, &excluded_at, excluded,
                               "an array of names of tools", &edit->excluded,
                               &edit->n_excluded)
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_anthropic_inputs(r, at, v, edit);
}


/* clear_tool_inputs: a boolean, or names of tools. */

static int
dsa_anthropic_inputs(dsa_reader_t *r, const dsa_at_t *at, const dsa_json_t *v,
    dsa_edit_t *edit)
{
    dsa_at_t     inputs_at = { at, "clear_tool_inputs", 0 };
    dsa_json_t  *inputs;

    if (dsa_read_any(v, inputs_at.name, &inputs) == 0) {
        return DSA_OK;
    }

    if (inputs->type == DSA_JSON_TRUE || inputs->type == DSA_JSON_FALSE) {
        edit->all_inputs = inputs->type == DSA_JSON_TRUE;
        return DSA_OK;
    }

    return dsa_anthropic_names(r, &inputs_at, inputs,
                               "a boolean or an array of names of tools",
                               &edit->inputs, &edit->n_inputs);
}


static int
dsa_anthropic_names(dsa_reader_t *r, const dsa_at_t *at, const dsa_json_t *v,
    const char *expected, dsa_str_t **names, uint32_t *n)
{
    dsa_at_t           el = { at, NULL, 0 };
    const dsa_json_t  *child;

    if (v->type != DSA_JSON_ARRAY) {
        return dsa_refuse_type(r->refusal, at, v, expected);
    }

    if (v->n > DSA_CHAT_NAMES) {
        return dsa_refuse_at(r->refusal, at, "%u names; at most %d are "
                             "accepted", v->n, DSA_CHAT_NAMES);
    }

    *names = dsa_arena_alloc(r->arena, ((size_t) v->n + 1)
                                       * sizeof(dsa_str_t));
    if (*names == NULL) {
        return dsa_refuse_memory(r->refusal, r->arena);
    }

    for (child = v->first; child != NULL; child = child->next) {
        if (child->type != DSA_JSON_STRING) {
            return dsa_refuse_type(r->refusal, &el, child, "a string");
        }

        (*names)[(*n)++] = child->text;
        el.index++;
    }

    return DSA_OK;
}


/*
 * Without the edit, a family does what its model was trained on with reasoning
 * in front of the last question.  With it, such reasoning stays as far as the
 * family can keep it, but for what the edit clears.
 */

static int
dsa_anthropic_clear_thinking(dsa_reader_t *r, const dsa_at_t *at,
    const dsa_json_t *v, dsa_edit_t *edit)
{
    dsa_json_t  *keep;

    edit->type = DSA_EDIT_THINKING;
    edit->keep = DSA_ANTHROPIC_TURNS;

    r->chat->clear = 0;
    r->chat->clear_given = 1;

    if (dsa_read_any(v, "keep", &keep) == 1
        && ((keep->type == DSA_JSON_STRING && dsa_str_eqz(keep->text, "all"))
            || dsa_anthropic_is(keep, "all")))
    {
        edit->keep = DSA_EDIT_ALL;
        return DSA_OK;
    }

    return dsa_anthropic_amount(r, at, v, "keep", &dsa_anthropic_turns,
                                &edit->keep)
           == DSA_ERROR
           ? DSA_ERROR : DSA_OK;
}


/*
 * Reads a member that may be absent or null.  Returns 1 or 2 for the first or
 * second type and sets *n; 0 if there is none; or DSA_ERROR.
 */

static int
dsa_anthropic_amount(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *edit, const char *name, const dsa_anthropic_amount_t *a,
    uint32_t *n)
{
    int          rc, which;
    int64_t      number;
    dsa_at_t     at = { up, name, 0 };
    dsa_at_t     value_at = { &at, "value", 0 };
    dsa_json_t  *v, *value;

    if (dsa_read_any(edit, name, &v) == 0) {
        return 0;
    }

    which = dsa_anthropic_is(v, a->types[0]) ? 1 : 2;

    if (which == 2
        && (a->types[1] == NULL || !dsa_anthropic_is(v, a->types[1])))
    {
        return dsa_refuse_at(r->refusal, &at, "expected %s", a->expected);
    }

    if (dsa_read_any(v, value_at.name, &value) == 0) {
        return dsa_refuse_at(r->refusal, &value_at, "the number is required");
    }

    rc = dsa_read_whole(value, &number);

    if (rc == DSA_ERROR) {
        return dsa_refuse_type(r->refusal, &value_at, value, "an integer");
    }

    if (rc != DSA_OK || number < a->min || number >= UINT32_MAX) {
        return dsa_refuse_at(r->refusal, &value_at, "out of range; the valid "
                             "range is %s", a->range);
    }

    *n = (uint32_t) number;

    return which;
}


/* 1: v is an object of this type. */

static int
dsa_anthropic_is(const dsa_json_t *v, const char *type)
{
    const dsa_json_t  *name;

    name = v->type == DSA_JSON_OBJECT ? dsa_json_get(v, "type") : NULL;

    return name != NULL && name->type == DSA_JSON_STRING
           && dsa_str_eqz(name->text, type);
}


/*
 * compaction: the whole conversation is compacted, and the compaction is the
 * whole answer.
 */

int
dsa_anthropic_summarize(dsa_reader_t *r, const dsa_json_t *root)
{
    dsa_at_t     at = { NULL, "compaction", 0 };
    dsa_chat_t  *chat;
    dsa_json_t  *v;

    if (dsa_read_any(root, at.name, &v) == 0) {
        return DSA_OK;
    }

    chat = r->chat;

    if (!dsa_anthropic_is(v, "summarize")) {
        return dsa_refuse_at(r->refusal, &at, "expected an object of the type "
                             "`summarize`");
    }

    if (chat->managed) {
        return dsa_refuse_at(r->refusal, &at, "context_management is given as "
                             "well; expected only one of them");
    }

    /* every prompt has more tokens */

    chat->compact_threshold = 1;
    chat->compact_pauses = 1;

    return dsa_read_string(r, &at, v, "instructions",
                           &chat->compact_instructions)
           == DSA_ERROR
           ? DSA_ERROR : DSA_OK;
}
