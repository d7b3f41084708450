
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_DEEPSEEK_V3_TOKENS_H_INCLUDED_
#define _DSA_DEEPSEEK_V3_TOKENS_H_INCLUDED_


#include "context/deepseek/tokens.h"


/*
 * The control tokens of DeepSeek-V3.1's prompt format: those of V3.2 without
 * DSML, which its tokenizer does not have, and those of tool calls.  The last
 * two are in the tokenizer for older models; the format does not use them.
 */

#define DSA_V3_1_CALLS        "<｜tool▁calls▁begin｜>"
#define DSA_V3_1_CALLS_END    "<｜tool▁calls▁end｜>"
#define DSA_V3_1_CALL         "<｜tool▁call▁begin｜>"
#define DSA_V3_1_CALL_END     "<｜tool▁call▁end｜>"
#define DSA_V3_1_SEPARATOR    "<｜tool▁sep｜>"
#define DSA_V3_1_RESULT       "<｜tool▁output▁begin｜>"
#define DSA_V3_1_RESULT_END   "<｜tool▁output▁end｜>"
#define DSA_V3_1_RESULTS      "<｜tool▁outputs▁begin｜>"
#define DSA_V3_1_RESULTS_END  "<｜tool▁outputs▁end｜>"

#define DSA_V3_1_TOOL         "<｜tool▁"      /* all of them begin so */


typedef enum {
    DSA_V3_1_TOKEN_BOS = 0,
    DSA_V3_1_TOKEN_EOS,
    DSA_V3_1_TOKEN_USER,
    DSA_V3_1_TOKEN_ASSISTANT,
    DSA_V3_1_TOKEN_THINK,
    DSA_V3_1_TOKEN_THINK_END,
    DSA_V3_1_TOKEN_CALLS,
    DSA_V3_1_TOKEN_CALLS_END,
    DSA_V3_1_TOKEN_CALL,
    DSA_V3_1_TOKEN_CALL_END,
    DSA_V3_1_TOKEN_SEPARATOR,
    DSA_V3_1_TOKEN_RESULT,
    DSA_V3_1_TOKEN_RESULT_END,
    DSA_V3_1_TOKEN_RESULTS,
    DSA_V3_1_TOKEN_RESULTS_END,

    DSA_V3_1_TOKENS                     /* their number */
} dsa_v3_1_token_e;


/* The tokens above, indexed by dsa_v3_1_token_e. */

extern const dsa_control_token_t  dsa_v3_1_tokens[DSA_V3_1_TOKENS];


#endif /* _DSA_DEEPSEEK_V3_TOKENS_H_INCLUDED_ */
