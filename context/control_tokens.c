
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "context/control_tokens.h"


uint32_t
dsa_control_token_find(const dsa_control_tokens_t *tokens, dsa_str_t name)
{
    uint32_t  i;

    for (i = 0; i < tokens->n; i++) {
        if (dsa_str_eq(tokens->elts[i].name, name)) {
            break;
        }
    }

    return i;
}
