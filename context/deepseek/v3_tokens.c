
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "context/deepseek/v3_tokens.h"


const dsa_control_token_t  dsa_v3_1_tokens[DSA_V3_1_TOKENS] = {
    [DSA_V3_1_TOKEN_BOS] = { dsa_string(DSA_DEEPSEEK_BOS), 0 },
    [DSA_V3_1_TOKEN_EOS] = {
        dsa_string(DSA_DEEPSEEK_EOS), DSA_MARK_END|DSA_MARK_STOP
    },
    [DSA_V3_1_TOKEN_USER] = {
        dsa_string(DSA_DEEPSEEK_USER), DSA_MARK_BEGIN
    },
    [DSA_V3_1_TOKEN_ASSISTANT] = {
        dsa_string(DSA_DEEPSEEK_ASSISTANT), DSA_MARK_ANSWER
    },
    [DSA_V3_1_TOKEN_THINK] = {
        dsa_string(DSA_DEEPSEEK_THINK), DSA_MARK_BEGIN
    },
    [DSA_V3_1_TOKEN_THINK_END] = {
        dsa_string(DSA_DEEPSEEK_THINK_END), DSA_MARK_BEGIN|DSA_MARK_THINK_END
    },
    [DSA_V3_1_TOKEN_CALLS] = { dsa_string(DSA_V3_1_CALLS), 0 },
    [DSA_V3_1_TOKEN_CALLS_END] = { dsa_string(DSA_V3_1_CALLS_END), 0 },
    [DSA_V3_1_TOKEN_CALL] = { dsa_string(DSA_V3_1_CALL), 0 },
    [DSA_V3_1_TOKEN_CALL_END] = { dsa_string(DSA_V3_1_CALL_END), 0 },
    [DSA_V3_1_TOKEN_SEPARATOR] = { dsa_string(DSA_V3_1_SEPARATOR), 0 },
    [DSA_V3_1_TOKEN_RESULT] = { dsa_string(DSA_V3_1_RESULT), DSA_MARK_BEGIN },
    [DSA_V3_1_TOKEN_RESULT_END] = {
        dsa_string(DSA_V3_1_RESULT_END), DSA_MARK_END
    },
    [DSA_V3_1_TOKEN_RESULTS] = { dsa_string(DSA_V3_1_RESULTS), 0 },
    [DSA_V3_1_TOKEN_RESULTS_END] = { dsa_string(DSA_V3_1_RESULTS_END), 0 }
};
