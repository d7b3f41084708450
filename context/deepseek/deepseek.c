
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "context/deepseek/deepseek.h"


_Static_assert((int) DSA_DEEPSEEK_TOKENS <= DSA_CONTROL_TOKENS_MAX,
               "a vocabulary has a bit for each token");


const dsa_family_t  dsa_deepseek = {
    .name = "deepseek",
    .owner = "deepseek",
    .tokens = { dsa_deepseek_tokens, DSA_DEEPSEEK_TOKENS },
    .modes = DSA_MODE_CHAT|DSA_MODE_THINKING,
    .syntax = "dsml",
    .fim = DSA_DEEPSEEK_FIM_BEGIN ", " DSA_DEEPSEEK_FIM_HOLE " or "
           DSA_DEEPSEEK_FIM_END,
    .parser = &dsa_deepseek_parser,
    .encode = dsa_deepseek_encode,
    .complete = dsa_deepseek_complete,
    .ask = dsa_deepseek_ask
};
