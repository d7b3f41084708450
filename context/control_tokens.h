
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CONTROL_TOKENS_H_INCLUDED_
#define _DSA_CONTROL_TOKENS_H_INCLUDED_


#include "base/str.h"


/*
 * The control tokens of DeepSeek-V3.2's prompt format.  Its tokenizer has each
 * of them as one token (tokenizer.json, added_tokens).
 */

#define DSA_CONTROL_BOS         "<｜begin▁of▁sentence｜>"
#define DSA_CONTROL_EOS         "<｜end▁of▁sentence｜>"
#define DSA_CONTROL_USER        "<｜User｜>"
#define DSA_CONTROL_ASSISTANT   "<｜Assistant｜>"
#define DSA_CONTROL_THINK       "<think>"
#define DSA_CONTROL_THINK_END   "</think>"
#define DSA_CONTROL_DSML        "｜DSML｜"


typedef enum {
    DSA_CONTROL_TOKEN_BOS = 0,
    DSA_CONTROL_TOKEN_EOS,
    DSA_CONTROL_TOKEN_USER,
    DSA_CONTROL_TOKEN_ASSISTANT,
    DSA_CONTROL_TOKEN_THINK,
    DSA_CONTROL_TOKEN_THINK_END,
    DSA_CONTROL_TOKEN_DSML,

    DSA_CONTROL_TOKENS                  /* their number */
} dsa_control_token_e;


/* The names above, indexed by dsa_control_token_e. */

extern const dsa_str_t  dsa_control_tokens[DSA_CONTROL_TOKENS];


#endif /* _DSA_CONTROL_TOKENS_H_INCLUDED_ */
