
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "context/deepseek/v3.h"


#define DSA_V3_FIM  DSA_DEEPSEEK_FIM_BEGIN ", " DSA_DEEPSEEK_FIM_HOLE " or "   \
                    DSA_DEEPSEEK_FIM_END


_Static_assert((int) DSA_V3_1_TOKENS <= DSA_CONTROL_TOKENS_MAX,
               "a vocabulary has a bit for each token");


const dsa_family_t  dsa_deepseek_v3 = {
    .name = "deepseek-v3",
    .owner = "deepseek",
    .tokens = { dsa_deepseek_tokens, DSA_DEEPSEEK_TOKENS },
    .title = "DeepSeek-V3, R1 or a base model",
    .fim = DSA_V3_FIM,
    .parser = &dsa_deepseek_parser,
    .complete = dsa_deepseek_complete
};


const dsa_family_t  dsa_deepseek_v3_1 = {
    .name = "deepseek-v3.1",
    .owner = "deepseek",
    .tokens = { dsa_v3_1_tokens, DSA_V3_1_TOKENS },
    .modes = DSA_MODE_CHAT|DSA_MODE_THINKING,
    .syntax = "deepseek-v3.1",
    .fim = DSA_V3_FIM,
    .parser = &dsa_v3_1_parser,
    .apply = dsa_v3_1_apply,
    .encode = dsa_v3_1_encode,
    .complete = dsa_deepseek_complete,
    .ask = dsa_deepseek_ask
};
