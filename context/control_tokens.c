
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "context/control_tokens.h"


const dsa_str_t  dsa_control_tokens[DSA_CONTROL_TOKENS] = {
    [DSA_CONTROL_TOKEN_BOS] = dsa_string(DSA_CONTROL_BOS),
    [DSA_CONTROL_TOKEN_EOS] = dsa_string(DSA_CONTROL_EOS),
    [DSA_CONTROL_TOKEN_USER] = dsa_string(DSA_CONTROL_USER),
    [DSA_CONTROL_TOKEN_ASSISTANT] = dsa_string(DSA_CONTROL_ASSISTANT),
    [DSA_CONTROL_TOKEN_THINK] = dsa_string(DSA_CONTROL_THINK),
    [DSA_CONTROL_TOKEN_THINK_END] = dsa_string(DSA_CONTROL_THINK_END),
    [DSA_CONTROL_TOKEN_DSML] = dsa_string(DSA_CONTROL_DSML)
};
