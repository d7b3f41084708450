
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "context/deepseek/tokens.h"


const dsa_control_token_t  dsa_deepseek_tokens[DSA_DEEPSEEK_TOKENS] = {
    [DSA_DEEPSEEK_TOKEN_BOS] = { dsa_string(DSA_DEEPSEEK_BOS), 0 },
    [DSA_DEEPSEEK_TOKEN_EOS] = {
        dsa_string(DSA_DEEPSEEK_EOS), DSA_MARK_END|DSA_MARK_STOP
    },
    [DSA_DEEPSEEK_TOKEN_USER] = {
        dsa_string(DSA_DEEPSEEK_USER), DSA_MARK_BEGIN
    },
    [DSA_DEEPSEEK_TOKEN_ASSISTANT] = {
        dsa_string(DSA_DEEPSEEK_ASSISTANT), DSA_MARK_ANSWER
    },
    [DSA_DEEPSEEK_TOKEN_THINK] = {
        dsa_string(DSA_DEEPSEEK_THINK), DSA_MARK_BEGIN
    },
    [DSA_DEEPSEEK_TOKEN_THINK_END] = {
        dsa_string(DSA_DEEPSEEK_THINK_END), DSA_MARK_BEGIN|DSA_MARK_THINK_END
    },
    [DSA_DEEPSEEK_TOKEN_DSML] = { dsa_string(DSA_DEEPSEEK_DSML), 0 }
};
