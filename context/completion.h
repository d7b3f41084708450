
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_COMPLETION_H_INCLUDED_
#define _DSA_COMPLETION_H_INCLUDED_


#include "context/chat.h"


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
 * Reads the tree of a request body into chat, which gets no message and a
 * completion.  Otherwise as dsa_chat_read().
 */
int dsa_completion_read(dsa_chat_t *chat, dsa_arena_t *arena,
    const dsa_json_t *root, const dsa_chat_limits_t *limits,
    dsa_refusal_t *refusal);


#endif /* _DSA_COMPLETION_H_INCLUDED_ */
