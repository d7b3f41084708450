
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The body of a text completion: JSON, fields, prompt.
 *
 * The segments of the prompt are those of the published form: prompt and suffix
 * are text, with the control tokens around them.
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

    if (dsa_deepseek.complete(&prompt, arena, chat.completion, &err) == DSA_OK)
    {
        fuzz_prompt(&prompt, chat.completion);

    } else if (!dsa_arena_exceeded(arena)) {
        abort();
    }

done:

    dsa_arena_destroy(arena);

    return 0;
}


/* BOS and the prompt, or the published form for text between two texts. */

static void
fuzz_prompt(const dsa_prompt_t *prompt, const dsa_completion_t *completion)
{
    size_t          bytes;
    uint32_t        i, n;
    dsa_segment_t   part[6];

    static const char *const  control[4] = {
        "<｜begin▁of▁sentence｜>", "<｜fim▁begin｜>", "<｜fim▁hole｜>",
        "<｜fim▁end｜>"
    };

    for (i = 0; i < 6; i++) {
        part[i].kind = i == 2 || i == 4 ? DSA_SEGMENT_TEXT
                                        : DSA_SEGMENT_CONTROL;
    }

    part[0].text = dsa_strz(control[0]);
    part[1].text = dsa_strz(control[1]);
    part[2].text = completion->prompt;
    part[3].text = dsa_strz(control[2]);
    part[4].text = completion->suffix;
    part[5].text = dsa_strz(control[3]);

    n = 0;
    bytes = 0;

    for (i = 0; i < 6; i++) {
        if (part[i].text.len == 0
            || (completion->suffix.len == 0 && i != 0 && i != 2))
        {
            continue;
        }

        if (n == prompt->n || prompt->segments[n].kind != part[i].kind
            || !dsa_str_eq(prompt->segments[n].text, part[i].text))
        {
            abort();
        }

        bytes += part[i].text.len;
        n++;
    }

    if (n != prompt->n || bytes != prompt->bytes) {
        abort();
    }
}
