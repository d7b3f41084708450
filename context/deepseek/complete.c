
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The prompt of a text completion:
 *
 *     BOS prompt
 *     BOS fim_begin prompt fim_hole suffix fim_end
 */


#include "context/deepseek/deepseek.h"


#define DSA_COMPLETE_SEGMENTS  6


static void dsa_complete_add(dsa_prompt_t *prompt, dsa_segment_kind_e kind,
    dsa_str_t text);


int
dsa_deepseek_complete(dsa_prompt_t *prompt, dsa_arena_t *arena,
    const dsa_completion_t *completion, dsa_err_t *err)
{
    prompt->n = 0;
    prompt->bytes = 0;
    prompt->segments = dsa_arena_alloc(arena, DSA_COMPLETE_SEGMENTS
                                              * sizeof(dsa_segment_t));
    if (prompt->segments == NULL) {
        return dsa_error(err, "the prompt exceeds the memory limit of a "
                         "request");
    }

    dsa_complete_add(prompt, DSA_SEGMENT_CONTROL, dsa_strz(DSA_DEEPSEEK_BOS));

    if (completion->suffix.len == 0) {
        dsa_complete_add(prompt, DSA_SEGMENT_TEXT, completion->prompt);
        return DSA_OK;
    }

    dsa_complete_add(prompt, DSA_SEGMENT_CONTROL,
                     dsa_strz(DSA_DEEPSEEK_FIM_BEGIN));
    dsa_complete_add(prompt, DSA_SEGMENT_TEXT, completion->prompt);
    dsa_complete_add(prompt, DSA_SEGMENT_CONTROL,
                     dsa_strz(DSA_DEEPSEEK_FIM_HOLE));
    dsa_complete_add(prompt, DSA_SEGMENT_TEXT, completion->suffix);
    dsa_complete_add(prompt, DSA_SEGMENT_CONTROL,
                     dsa_strz(DSA_DEEPSEEK_FIM_END));

    return DSA_OK;
}


/* Text from outside stays text, even if it spells a control token. */

static void
dsa_complete_add(dsa_prompt_t *prompt, dsa_segment_kind_e kind,
    dsa_str_t text)
{
    dsa_segment_t  *segment;

    if (text.len == 0) {
        return;
    }

    segment = &prompt->segments[prompt->n++];
    segment->kind = kind;
    segment->text = text;

    prompt->bytes += text.len;
}
