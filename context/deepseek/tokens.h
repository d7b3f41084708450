
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_DEEPSEEK_TOKENS_H_INCLUDED_
#define _DSA_DEEPSEEK_TOKENS_H_INCLUDED_


#include "context/control_tokens.h"


/*
 * The control tokens of DeepSeek-V3.2's prompt format.  Its tokenizer has each
 * of them as one token (tokenizer.json, added_tokens).
 */

#define DSA_DEEPSEEK_BOS        "<｜begin▁of▁sentence｜>"
#define DSA_DEEPSEEK_EOS        "<｜end▁of▁sentence｜>"
#define DSA_DEEPSEEK_USER       "<｜User｜>"
#define DSA_DEEPSEEK_ASSISTANT  "<｜Assistant｜>"
#define DSA_DEEPSEEK_THINK      "<think>"
#define DSA_DEEPSEEK_THINK_END  "</think>"
#define DSA_DEEPSEEK_DSML       "｜DSML｜"

/*
 * Those around the prompt and the suffix of a completion.  The model does not
 * write them, so they are not in a vocabulary.
 */

#define DSA_DEEPSEEK_FIM_BEGIN  "<｜fim▁begin｜>"
#define DSA_DEEPSEEK_FIM_HOLE   "<｜fim▁hole｜>"
#define DSA_DEEPSEEK_FIM_END    "<｜fim▁end｜>"


typedef enum {
    DSA_DEEPSEEK_TOKEN_BOS = 0,
    DSA_DEEPSEEK_TOKEN_EOS,
    DSA_DEEPSEEK_TOKEN_USER,
    DSA_DEEPSEEK_TOKEN_ASSISTANT,
    DSA_DEEPSEEK_TOKEN_THINK,
    DSA_DEEPSEEK_TOKEN_THINK_END,
    DSA_DEEPSEEK_TOKEN_DSML,

    DSA_DEEPSEEK_TOKENS                 /* their number */
} dsa_deepseek_token_e;


/* The tokens above, indexed by dsa_deepseek_token_e. */

extern const dsa_control_token_t  dsa_deepseek_tokens[DSA_DEEPSEEK_TOKENS];


#endif /* _DSA_DEEPSEEK_TOKENS_H_INCLUDED_ */
