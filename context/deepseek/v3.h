
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_DEEPSEEK_V3_H_INCLUDED_
#define _DSA_DEEPSEEK_V3_H_INCLUDED_


#include "context/deepseek/deepseek.h"
#include "context/deepseek/v3_tokens.h"


/*
 * The families of models that were published before DeepSeek-V3.2.  Completions
 * are those of V3.2.
 *
 * V3.1: chats as its chat template writes them, with the list of tools that its
 * model card has.  V3: text completions only, for models whose chat format is
 * another one.
 */

extern const dsa_family_t  dsa_deepseek_v3;
extern const dsa_family_t  dsa_deepseek_v3_1;


/* Inside this folder: the functions of V3.1, see context/family.h. */

int dsa_v3_1_apply(dsa_chat_t *chat, dsa_refusal_t *refusal);
int dsa_v3_1_encode(dsa_prompt_t *prompt, dsa_arena_t *arena,
    const dsa_chat_t *chat, dsa_err_t *err);

extern const dsa_parser_t  dsa_v3_1_parser;


/* v3_tools.c: the list of tools, behind the text of the system messages. */
void dsa_v3_1_write_tools(dsa_prompt_writer_t *w, const dsa_json_t *tools);

/* All calls of an answer, as one block. */
void dsa_v3_1_write_calls(dsa_prompt_writer_t *w, const dsa_message_t *m);


#endif /* _DSA_DEEPSEEK_V3_H_INCLUDED_ */
