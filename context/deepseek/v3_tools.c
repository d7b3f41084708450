
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Tools and calls in a prompt of DeepSeek-V3.1.  The text around the tools is
 * that of the model card (deepseek-ai/DeepSeek-V3.1, MIT, "ToolCall"), because
 * the chat template does not write tools.  There are two editions of the card.
 * This is the later one, which has an empty line in front of the text, and
 * braces around additional_tool_calls once.
 */


#include "context/deepseek/v3.h"


static void dsa_v3_1_tool(dsa_prompt_writer_t *w, const dsa_json_t *function);
static void dsa_v3_1_call(dsa_prompt_writer_t *w,
    const dsa_tool_call_t *call);


static const char  dsa_v3_1_tools_head[] =
    "\n\n"
    "## Tools\n"
    "You have access to the following tools:\n"
    "\n";

static const char  dsa_v3_1_tools_tail[] =
    "IMPORTANT: ALWAYS adhere to this exact format for tool use:\n"
    DSA_V3_1_CALLS DSA_V3_1_CALL "tool_call_name" DSA_V3_1_SEPARATOR
    "tool_call_arguments" DSA_V3_1_CALL_END "{additional_tool_calls}"
    DSA_V3_1_CALLS_END "\n"
    "\n"
    "Where:\n"
    "- `tool_call_name` must be an exact match to one of the available tools\n"
    "- `tool_call_arguments` must be valid JSON that strictly follows the "
    "tool's Parameters Schema\n"
    "- For multiple tool calls, chain them directly without separators or "
    "spaces";


void
dsa_v3_1_write_tools(dsa_prompt_writer_t *w, const dsa_json_t *tools)
{
    const dsa_json_t  *v;

    dsa_prompt_template(w, dsa_v3_1_tools_head);

    for (v = tools->first; v != NULL; v = v->next) {
        dsa_v3_1_tool(w, dsa_json_get(v, "function"));
    }

    dsa_prompt_template(w, dsa_v3_1_tools_tail);
}


/* A tool without parameters has an empty object of them. */

static void
dsa_v3_1_tool(dsa_prompt_writer_t *w, const dsa_json_t *function)
{
    const dsa_json_t  *v;

    dsa_prompt_template(w, "### ");
    dsa_prompt_text(w, dsa_json_get(function, "name")->text);
    dsa_prompt_template(w, "\nDescription: ");

    v = dsa_json_get(function, "description");

    if (v != NULL && v->type == DSA_JSON_STRING) {
        dsa_prompt_text(w, v->text);
    }

    dsa_prompt_template(w, "\n\nParameters: ");

    v = dsa_json_get(function, "parameters");

    if (v != NULL && v->type != DSA_JSON_NULL) {
        dsa_prompt_json(w, v);

    } else {
        dsa_prompt_template(w, "{}");
    }

    dsa_prompt_template(w, "\n\n");
}


void
dsa_v3_1_write_calls(dsa_prompt_writer_t *w, const dsa_message_t *m)
{
    uint32_t  i;

    dsa_prompt_template(w, DSA_V3_1_CALLS);

    for (i = 0; i < m->n_calls; i++) {
        dsa_v3_1_call(w, &m->calls[i]);
    }

    dsa_prompt_template(w, DSA_V3_1_CALLS_END);
}


/*
 * Arguments are written as the client has them, also if they are not an object
 * or were cut, because the parser passes on what the model wrote unchanged.  An
 * API that has them as an object gives them no text.
 */

static void
dsa_v3_1_call(dsa_prompt_writer_t *w, const dsa_tool_call_t *call)
{
    dsa_prompt_template(w, DSA_V3_1_CALL);
    dsa_prompt_text(w, call->name);
    dsa_prompt_template(w, DSA_V3_1_SEPARATOR);

    if (call->text.len != 0) {
        dsa_prompt_text(w, call->text);

    } else if (call->arguments != NULL) {
        dsa_prompt_json(w, call->arguments);

    } else {
        dsa_prompt_text(w, call->raw);
    }

    dsa_prompt_template(w, DSA_V3_1_CALL_END);
}
