
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_COMPLETION_H_INCLUDED_
#define _DSA_COMPLETION_H_INCLUDED_


#include "context/chat.h"
#include "context/encode.h"


/*
 * A text completion: the model continues a text, or writes the text between a
 * prompt and a suffix (fill in the middle).  It has no messages, no thinking
 * and no tools.  Sampling, stop strings and streaming are those of a chat.
 */

struct dsa_completion_s {
    dsa_str_t           prompt;
    dsa_str_t           suffix;         /* not empty: fill in the middle */
    unsigned            echo:1;         /* the answer begins with prompt */
};


/*
 * The control tokens around prompt and suffix.  The tokenizer of DeepSeek-V3.2
 * has each of them as one token.
 */

#define DSA_COMPLETION_FIM_BEGIN    "<｜fim▁begin｜>"
#define DSA_COMPLETION_FIM_HOLE     "<｜fim▁hole｜>"
#define DSA_COMPLETION_FIM_END      "<｜fim▁end｜>"


/*
 * Reads the tree of a request body into chat, which gets no message and a
 * completion.  Otherwise as dsa_chat_read().
 */
int dsa_completion_read(dsa_chat_t *chat, dsa_arena_t *arena,
    const dsa_json_t *root, const dsa_chat_limits_t *limits,
    dsa_refusal_t *refusal);

/*
 * Encodes a completion:
 *
 *     BOS prompt
 *     BOS fim_begin prompt fim_hole suffix fim_end
 *
 * The segments are allocated from arena; their texts are those of the
 * completion.  DSA_ERROR with err: the arena's limit is exceeded, or there is
 * no memory.
 */
int dsa_completion_encode(dsa_prompt_t *prompt, dsa_arena_t *arena,
    const dsa_completion_t *completion, dsa_err_t *err);


#endif /* _DSA_COMPLETION_H_INCLUDED_ */
