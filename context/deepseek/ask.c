
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "context/deepseek/deepseek.h"


#define DSA_ASK_SEGMENTS  7             /* that dsa_deepseek_ask() adds */


static void dsa_ask_add(dsa_prompt_t *prompt, dsa_segment_kind_e kind,
    dsa_str_t text);
static void dsa_ask_control(dsa_prompt_t *prompt, const char *name);


/*
 * The conversation ends with the cue for an answer, which stays empty.  The
 * rule that reasoning leaves the prompt with a new message of the user is not
 * applied, because the KV cache has the conversation with its reasoning.
 */

int
dsa_deepseek_ask(dsa_prompt_t *prompt, dsa_arena_t *arena,
    dsa_str_t question, dsa_str_t answer, dsa_err_t *err)
{
    dsa_segment_t  *segments, *last;

    segments = dsa_arena_alloc(arena, ((size_t) prompt->n + DSA_ASK_SEGMENTS)
                                      * sizeof(dsa_segment_t));
    if (segments == NULL) {
        return dsa_error(err, "out of memory for a question behind a prompt");
    }

    memcpy(segments, prompt->segments, prompt->n * sizeof(dsa_segment_t));
    prompt->segments = segments;

    last = &segments[prompt->n - 1];

    if (last->kind == DSA_SEGMENT_CONTROL
        && dsa_str_eqz(last->text, DSA_DEEPSEEK_THINK))
    {
        dsa_ask_control(prompt, DSA_DEEPSEEK_THINK_END);
    }

    dsa_ask_control(prompt, DSA_DEEPSEEK_EOS);
    dsa_ask_control(prompt, DSA_DEEPSEEK_USER);
    dsa_ask_add(prompt, DSA_SEGMENT_TEXT, question);
    dsa_ask_control(prompt, DSA_DEEPSEEK_ASSISTANT);
    dsa_ask_control(prompt, DSA_DEEPSEEK_THINK_END);
    dsa_ask_add(prompt, DSA_SEGMENT_TEXT, answer);

    return DSA_OK;
}


static void
dsa_ask_control(dsa_prompt_t *prompt, const char *name)
{
    dsa_ask_add(prompt, DSA_SEGMENT_CONTROL, dsa_strz(name));
}


static void
dsa_ask_add(dsa_prompt_t *prompt, dsa_segment_kind_e kind, dsa_str_t text)
{
    dsa_segment_t  *segment;

    segment = &prompt->segments[prompt->n++];
    segment->kind = kind;
    segment->text = text;

    prompt->bytes += text.len;
}
