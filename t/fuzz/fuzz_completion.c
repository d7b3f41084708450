
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The body of a text completion: JSON, fields, prompt.
 *
 * Prompt and suffix are text, and there are only the control tokens that the
 * form of the prompt has.
 */


#include <stdlib.h>

#include "context/completion.h"
#include "t/fuzz/request.h"


#define FUZZ_MEMORY   (8 * 1024 * 1024)
#define FUZZ_DEPTH    32


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_prompt(const dsa_prompt_t *prompt,
    const dsa_completion_t *completion);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dsa_err_t          err;
    dsa_chat_t         chat;
    dsa_json_t        *root;
    dsa_arena_t       *arena;
    dsa_prompt_t       prompt;
    dsa_refusal_t      refusal;

    static const dsa_chat_limits_t  limits = { 64, 8, 1 };

    memset(&refusal, 0, sizeof(dsa_refusal_t));

    arena = dsa_arena_create(FUZZ_MEMORY);

    if (arena == NULL) {
        return 0;
    }

    root = dsa_json_parse(arena, (const char *) data, size, FUZZ_DEPTH, &err);

    if (root == NULL) {
        goto done;
    }

    if (dsa_completion_read(&chat, arena, root, &limits, &refusal) != DSA_OK
        || dsa_chat_check(&chat, &refusal) != DSA_OK)
    {
        fuzz_refusal(&refusal);
        goto done;
    }

    if (dsa_completion_encode(&prompt, arena, chat.completion, &err) == DSA_OK)
    {
        fuzz_prompt(&prompt, chat.completion);

    } else if (!dsa_arena_exceeded(arena)) {
        abort();
    }

done:

    dsa_arena_destroy(arena);

    return 0;
}


static void
fuzz_prompt(const dsa_prompt_t *prompt, const dsa_completion_t *completion)
{
    size_t    text;
    uint32_t  i, control;

    text = 0;
    control = 0;

    for (i = 0; i < prompt->n; i++) {
        if (prompt->segments[i].kind == DSA_SEGMENT_CONTROL) {
            control++;

        } else {
            text += prompt->segments[i].text.len;
        }
    }

    if (control != (completion->suffix.len != 0 ? 4 : 1)
        || text != completion->prompt.len + completion->suffix.len)
    {
        abort();
    }
}
