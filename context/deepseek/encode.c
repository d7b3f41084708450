
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The prompt format that is published with DeepSeek-V3.2 (encoding/ of the
 * model's repository).
 */


#include <stdlib.h>

#include "base/json_write.h"
#include "context/arguments.h"
#include "context/sampled.h"
#include "context/deepseek/deepseek.h"


#define DSML                 DSA_DEEPSEEK_DSML


typedef struct {
    const dsa_chat_t    *chat;
    dsa_prompt_writer_t  w;
    uint32_t             last;       /* index of the last question, that is
                                        of a user or developer message */
    int                  has_last;   /* there is one */
    uint32_t             n_calls;    /* of the last assistant message */
    uint32_t             n_results;  /* how many of them have been written */
} dsa_encoder_t;


static void dsa_encode_last(dsa_encoder_t *e);
static uint32_t dsa_encode_head(dsa_encoder_t *e);
static int dsa_encode_message(dsa_encoder_t *e, uint32_t i, dsa_err_t *err);
static void dsa_encode_system(dsa_encoder_t *e, dsa_str_t content,
    const dsa_json_t *tools, const dsa_json_t *format);
static void dsa_encode_user(dsa_encoder_t *e, const dsa_message_t *m,
    uint32_t i);
static void dsa_encode_another(dsa_encoder_t *e, uint32_t i);
static void dsa_encode_assistant(dsa_encoder_t *e, const dsa_message_t *m,
    uint32_t i);
static int dsa_encode_sampled(dsa_encoder_t *e, const dsa_message_t *m,
    uint32_t i);
static void dsa_encode_call(dsa_encoder_t *e, const dsa_tool_call_t *call);
static void dsa_encode_raw(dsa_encoder_t *e, dsa_str_t raw);
static int dsa_encode_raw_param(dsa_encoder_t *e, const dsa_argument_t *arg);
static void dsa_encode_result(dsa_encoder_t *e, const dsa_message_t *m,
    uint32_t i);
static void dsa_encode_results_end(dsa_encoder_t *e, uint32_t i);
static void dsa_encode_tools(dsa_encoder_t *e, const dsa_json_t *tools);
static void dsa_encode_format(dsa_encoder_t *e, const dsa_json_t *format);
static int dsa_encode_after_last(const dsa_encoder_t *e, uint32_t i);


static const char  dsa_encode_tools_head[] =
    "## Tools\n"
    "\n"
    "You have access to a set of tools you can use to answer the user's "
    "question.\n"
    "You can invoke functions by writing a \"<" DSML "function_calls>\" "
    "block like the following as part of your reply to the user:\n"
    "<" DSML "function_calls>\n"
    "<" DSML "invoke name=\"$FUNCTION_NAME\">\n"
    "<" DSML "parameter name=\"$PARAMETER_NAME\" string=\"true|false\">"
    "$PARAMETER_VALUE</" DSML "parameter>\n"
    "...\n"
    "</" DSML "invoke>\n"
    "<" DSML "invoke name=\"$FUNCTION_NAME2\">\n"
    "...\n"
    "</" DSML "invoke>\n"
    "</" DSML "function_calls>\n"
    "\n"
    "String and scalar parameters should be specified as is without any "
    "escaping or quotes, while lists and objects should use JSON format. "
    "The \"string\" attribute should be set to \"true\" for string type "
    "parameters and \"false\" for other types (numbers, booleans, arrays, "
    "objects).\n"
    "\n"
    "If the thinking_mode is enabled, then after function results you "
    "should strongly consider outputting a thinking block. Here is an "
    "example:\n"
    "\n"
    "<" DSML "function_calls>\n"
    "...\n"
    "</" DSML "function_calls>\n"
    "\n"
    "<function_results>\n"
    "...\n"
    "</function_results>\n"
    "\n"
    "<think>...thinking about results</think>\n"
    "\n"
    "Here are the functions available in JSONSchema format:\n"
    "<functions>\n";


int
dsa_deepseek_encode(dsa_prompt_t *prompt, dsa_arena_t *arena,
    const dsa_chat_t *chat, dsa_err_t *err)
{
    int            rc;
    uint32_t       i;
    dsa_encoder_t  e;

    memset(&e, 0, sizeof(dsa_encoder_t));

    e.chat = chat;
    dsa_prompt_init(&e.w, &dsa_deepseek.tokens);

    dsa_encode_last(&e);
    dsa_prompt_template(&e.w, DSA_DEEPSEEK_BOS);

    rc = DSA_OK;

    for (i = dsa_encode_head(&e); i < chat->n_messages && rc == DSA_OK; i++) {
        rc = dsa_encode_message(&e, i, err);
    }

    if (rc == DSA_OK && e.n_results != 0 && e.n_results != e.n_calls) {
        rc = dsa_error(err, "messages[%u]: %u tool messages follow %u tool "
                       "calls; expected one for each call", i - 1,
                       e.n_results, e.n_calls);
    }

    dsa_encode_another(&e, i);

    if (rc == DSA_OK) {
        rc = dsa_prompt_finish(&e.w, prompt, arena, err);
    }

    dsa_prompt_free(&e.w);

    return rc;
}


/*
 * Tools and response format of the request belong to a leading system message,
 * and replace its own.  Returns how many messages have been encoded: 1 if the
 * chat begins with a system message to which they were added.
 */

static uint32_t
dsa_encode_head(dsa_encoder_t *e)
{
    const dsa_chat_t     *chat;
    const dsa_message_t  *m;

    chat = e->chat;
    m = chat->messages;

    if (chat->tools == NULL && chat->response_format == NULL) {
        return 0;
    }

    if (chat->n_messages == 0 || m->role != DSA_ROLE_SYSTEM) {
        dsa_encode_system(e, dsa_str(NULL, 0), chat->tools,
                          chat->response_format);
        return 0;
    }

    dsa_encode_system(e, m->content,
                      chat->tools != NULL ? chat->tools : m->tools,
                      chat->response_format != NULL
                      ? chat->response_format : m->response_format);

    return 1;
}


static int
dsa_encode_message(dsa_encoder_t *e, uint32_t i, dsa_err_t *err)
{
    const dsa_message_t  *m;

    m = &e->chat->messages[i];

    if (m->role != DSA_ROLE_TOOL && e->n_results != 0
        && e->n_results != e->n_calls)
    {
        /* the conversation has moved on without the other results */

        dsa_encode_results_end(e, i - 1);
        e->n_results = e->n_calls;
    }

    switch (m->role) {

    case DSA_ROLE_SYSTEM:
        dsa_encode_system(e, m->content, m->tools, m->response_format);
        break;

    case DSA_ROLE_USER:
    case DSA_ROLE_DEVELOPER:
        dsa_encode_user(e, m, i);
        break;

    case DSA_ROLE_ASSISTANT:
        dsa_encode_assistant(e, m, i);
        break;

    case DSA_ROLE_TOOL:
        if (e->n_results == e->n_calls) {
            return dsa_error(err, "messages[%u]: a tool message without a "
                             "tool call; expected a preceding assistant "
                             "message with a tool call that has no result "
                             "yet", i);
        }

        dsa_encode_result(e, m, i);
        break;
    }

    return DSA_OK;
}


/* Finds the last question. */

static void
dsa_encode_last(dsa_encoder_t *e)
{
    uint32_t    i;
    dsa_role_e  role;

    for (i = e->chat->n_messages; i-- > 0; /* void */) {
        role = e->chat->messages[i].role;

        if (role == DSA_ROLE_USER || role == DSA_ROLE_DEVELOPER) {
            e->last = i;
            e->has_last = 1;
            return;
        }
    }
}


static void
dsa_encode_system(dsa_encoder_t *e, dsa_str_t content,
    const dsa_json_t *tools, const dsa_json_t *format)
{
    dsa_prompt_text(&e->w, content);

    if (tools != NULL) {
        dsa_prompt_template(&e->w, "\n\n");
        dsa_encode_tools(e, tools);
    }

    if (format != NULL) {
        dsa_prompt_template(&e->w, "\n\n");
        dsa_encode_format(e, format);
    }
}


/*
 * The question ends with the cue for its answer.  As published, a developer
 * message is left out in thinking mode unless it is the last question.
 */

static void
dsa_encode_user(dsa_encoder_t *e, const dsa_message_t *m, uint32_t i)
{
    if (m->role == DSA_ROLE_DEVELOPER && e->chat->thinking && i != e->last) {
        return;
    }

    dsa_prompt_template(&e->w, DSA_DEEPSEEK_USER);

    if (m->role == DSA_ROLE_DEVELOPER) {
        dsa_encode_system(e, dsa_str(NULL, 0), m->tools, m->response_format);
        dsa_prompt_template(&e->w, "\n\n# The user's message is: ");
    }

    dsa_prompt_text(&e->w, m->content);
    dsa_prompt_template(&e->w, DSA_DEEPSEEK_ASSISTANT);
    dsa_prompt_template(&e->w, e->chat->thinking && i == e->last
                           ? DSA_DEEPSEEK_THINK : DSA_DEEPSEEK_THINK_END);
}


/*
 * The cue for an answer behind an answer that has ended.  The published code
 * has it only at the end of questions and results, and never asks the model for
 * such an answer; without it, reasoning would have no beginning.
 */

static void
dsa_encode_another(dsa_encoder_t *e, uint32_t i)
{
    const dsa_message_t  *before;

    before = i != 0 ? &e->chat->messages[i - 1] : NULL;

    if (!e->chat->hosted || before == NULL
        || before->role != DSA_ROLE_ASSISTANT || before->prefix)
    {
        return;
    }

    dsa_prompt_template(&e->w, DSA_DEEPSEEK_ASSISTANT);
    dsa_prompt_template(&e->w, e->chat->thinking && dsa_encode_after_last(e, i)
                               ? DSA_DEEPSEEK_THINK : DSA_DEEPSEEK_THINK_END);
}


/*
 * Reasoning is written only after the last question.  A prefix is left open,
 * and the model continues its content or, if it has none, its reasoning.
 */

static void
dsa_encode_assistant(dsa_encoder_t *e, const dsa_message_t *m, uint32_t i)
{
    uint32_t  k;

    dsa_encode_another(e, i);

    if (m->sampled != NULL && dsa_encode_sampled(e, m, i)) {
        return;
    }

    if (e->chat->thinking && dsa_encode_after_last(e, i)) {
        dsa_prompt_text(&e->w, m->reasoning);

        if (!m->prefix || m->content.len != 0) {
            dsa_prompt_template(&e->w, DSA_DEEPSEEK_THINK_END);
        }
    }

    dsa_prompt_text(&e->w, m->content);

    e->n_calls = m->n_calls;
    e->n_results = 0;

    if (m->n_calls != 0) {
        dsa_prompt_template(&e->w, "\n\n<" DSML "function_calls>\n");

        for (k = 0; k < m->n_calls; k++) {
            dsa_encode_call(e, &m->calls[k]);
        }

        dsa_prompt_template(&e->w, "</" DSML "function_calls>");
    }

    if (!m->prefix) {
        dsa_prompt_template(&e->w, DSA_DEEPSEEK_EOS);
    }
}


/*
 * Writes the text that the model sampled, with its reasoning or without it as
 * above.  0: the model did not end reasoning that must be dropped, so nothing
 * is written.
 */

static int
dsa_encode_sampled(dsa_encoder_t *e, const dsa_message_t *m, uint32_t i)
{
    int       thinking;
    uint32_t  k, behind;

    thinking = e->chat->thinking && dsa_encode_after_last(e, i);
    behind = dsa_sampled_behind_reasoning(m->sampled);

    if (!thinking && behind == UINT32_MAX) {
        return 0;
    }

    if (thinking && !m->sampled->thinking) {
        dsa_prompt_template(&e->w, DSA_DEEPSEEK_THINK_END);
    }

    for (k = thinking ? 0 : behind; k < m->sampled->n; k++) {
        dsa_prompt_copy(&e->w, &m->sampled->segments[k]);
    }

    e->n_calls = m->n_calls;
    e->n_results = 0;

    dsa_prompt_template(&e->w, DSA_DEEPSEEK_EOS);

    return 1;
}


/* String arguments are written without any escaping, all others as JSON. */

static void
dsa_encode_call(dsa_encoder_t *e, const dsa_tool_call_t *call)
{
    const dsa_json_t  *v;

    dsa_prompt_template(&e->w, "<" DSML "invoke name=\"");
    dsa_prompt_text(&e->w, call->name);
    dsa_prompt_template(&e->w, "\">\n");

    if (call->arguments == NULL) {
        dsa_encode_raw(e, call->raw);
        dsa_prompt_template(&e->w, "</" DSML "invoke>\n");
        return;
    }

    for (v = call->arguments->first; v != NULL; v = v->next) {
        dsa_prompt_template(&e->w, "<" DSML "parameter name=\"");
        dsa_prompt_text(&e->w, v->key);

        if (v->type == DSA_JSON_STRING) {
            dsa_prompt_template(&e->w, "\" string=\"true\">");
            dsa_prompt_text(&e->w, v->text);

        } else {
            dsa_prompt_template(&e->w, "\" string=\"false\">");
            dsa_prompt_json(&e->w, v);
        }

        dsa_prompt_template(&e->w, "</" DSML "parameter>\n");
    }

    if (call->arguments->first == NULL) {
        dsa_prompt_template(&e->w, "\n");
    }

    dsa_prompt_template(&e->w, "</" DSML "invoke>\n");
}


/*
 * Writes arguments that are not a JSON object as close as possible to what
 * the model sampled.  If they are an object that was cut, or one with values
 * that are not JSON, each member becomes a parameter: a string with its text,
 * any other value unchanged, and the cut value up to the cut.  Any other text
 * is written between the tags of the call unchanged, because that is where
 * the parser took it from.
 */

static void
dsa_encode_raw(dsa_encoder_t *e, dsa_str_t raw)
{
    int                 rc;
    dsa_argument_t      arg;
    dsa_arguments_t     args;
    dsa_prompt_place_t  place;

    place = dsa_prompt_place(&e->w);

    dsa_arguments_start(&args, raw);

    do {
        rc = dsa_arguments_next(&args, &arg);

        if (rc == 1 && dsa_encode_raw_param(e, &arg) != DSA_OK) {
            rc = DSA_ERROR;
        }
    } while (rc == 1);

    if (rc == DSA_OK) {
        return;
    }

    dsa_prompt_back(&e->w, place);

    dsa_prompt_text(&e->w, raw);

    if (raw.data[raw.len - 1] != '\n') {
        dsa_prompt_template(&e->w, "\n");
    }
}


/* DSA_ERROR: the name has an invalid escape. */

static int
dsa_encode_raw_param(dsa_encoder_t *e, const dsa_argument_t *arg)
{
    int        rc;
    dsa_buf_t  value;

    dsa_prompt_template(&e->w, "<" DSML "parameter name=\"");
    dsa_prompt_segment(&e->w, DSA_SEGMENT_TEXT);

    if (dsa_json_unescape(&e->w.text, arg->key) != DSA_OK) {
        return DSA_ERROR;
    }

    memset(&value, 0, sizeof(dsa_buf_t));

    rc = arg->string ? dsa_json_unescape(&value, arg->value) : DSA_ERROR;

    if (rc == DSA_OK) {
        dsa_prompt_template(&e->w, "\" string=\"true\">");
        dsa_prompt_text(&e->w, dsa_str(value.data, value.len));

    } else {
        dsa_prompt_template(&e->w, "\" string=\"false\">");
        dsa_prompt_text(&e->w, arg->json);
    }

    dsa_prompt_template(&e->w, "</" DSML "parameter>\n");

    if (value.failed) {
        e->w.text.failed = 1;
    }

    dsa_buf_free(&value);

    return DSA_OK;
}


static void
dsa_encode_result(dsa_encoder_t *e, const dsa_message_t *m, uint32_t i)
{
    if (e->n_results++ == 0) {
        dsa_prompt_template(&e->w, "\n\n<function_results>");
    }

    dsa_prompt_template(&e->w, "\n<result>");
    dsa_prompt_text(&e->w, m->content);
    dsa_prompt_template(&e->w, "</result>");

    if (e->n_results == e->n_calls) {
        dsa_encode_results_end(e, i);
    }
}


/* i is the index of the last result. */

static void
dsa_encode_results_end(dsa_encoder_t *e, uint32_t i)
{
    dsa_prompt_template(&e->w, "\n</function_results>\n\n");
    dsa_prompt_template(&e->w, e->chat->thinking && dsa_encode_after_last(e, i)
                           ? DSA_DEEPSEEK_THINK : DSA_DEEPSEEK_THINK_END);
}


static void
dsa_encode_tools(dsa_encoder_t *e, const dsa_json_t *tools)
{
    const dsa_json_t  *v;

    dsa_prompt_template(&e->w, dsa_encode_tools_head);

    for (v = tools->first; v != NULL; v = v->next) {
        dsa_prompt_json(&e->w, dsa_json_get(v, "function"));
        dsa_prompt_template(&e->w, "\n");
    }

    dsa_prompt_template(&e->w, "</functions>\n");
}


static void
dsa_encode_format(dsa_encoder_t *e, const dsa_json_t *format)
{
    dsa_prompt_template(&e->w, "## Response Format:\n\nYou MUST strictly "
                        "adhere to the following schema to reply:\n");
    dsa_prompt_json(&e->w, format);
}


static int
dsa_encode_after_last(const dsa_encoder_t *e, uint32_t i)
{
    return !e->has_last || i > e->last;
}
