
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_DEEPSEEK_H_INCLUDED_
#define _DSA_DEEPSEEK_H_INCLUDED_


#include "context/completion.h"
#include "context/family.h"
#include "context/deepseek/tokens.h"


/*
 * The family of DeepSeek-V3.2: the prompt and output format that is published
 * with the model (encoding/ of its repository).
 */

extern const dsa_family_t  dsa_deepseek;


/* Inside this folder: the functions of the family, see context/family.h. */

int dsa_deepseek_encode(dsa_prompt_t *prompt, dsa_arena_t *arena,
    const dsa_chat_t *chat, dsa_err_t *err);
int dsa_deepseek_complete(dsa_prompt_t *prompt, dsa_arena_t *arena,
    const dsa_completion_t *completion, dsa_err_t *err);
int dsa_deepseek_ask(dsa_prompt_t *prompt, dsa_arena_t *arena,
    dsa_str_t question, dsa_str_t answer, dsa_err_t *err);

extern const dsa_parser_t  dsa_deepseek_parser;


#endif /* _DSA_DEEPSEEK_H_INCLUDED_ */
