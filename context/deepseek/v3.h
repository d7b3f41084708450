
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_DEEPSEEK_V3_H_INCLUDED_
#define _DSA_DEEPSEEK_V3_H_INCLUDED_


#include "context/deepseek/deepseek.h"


/*
 * The families of models that were published before DeepSeek-V3.2.  Control
 * tokens, completions and output are those of V3.2, without DSML.
 *
 * V3.1: chats as its chat template writes them.  The template has no list of
 * tools, which are refused.  V3: text completions only, for models whose chat
 * format is another one.
 */

extern const dsa_family_t  dsa_deepseek_v3;
extern const dsa_family_t  dsa_deepseek_v3_1;


/* Inside this folder: the chats of V3.1, see context/family.h. */

int dsa_deepseek_v3_1_encode(dsa_prompt_t *prompt, dsa_arena_t *arena,
    const dsa_chat_t *chat, dsa_err_t *err);


#endif /* _DSA_DEEPSEEK_V3_H_INCLUDED_ */
