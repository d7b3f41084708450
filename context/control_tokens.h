
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CONTROL_TOKENS_H_INCLUDED_
#define _DSA_CONTROL_TOKENS_H_INCLUDED_


#include "base/str.h"


/*
 * The control tokens with which a family of models writes its prompts and its
 * output.  The index of a token is its bit in a vocabulary: the set of those
 * that the tokenizer of a model has as one token.
 */

#define DSA_CONTROL_TOKENS_MAX      32  /* bits of a vocabulary */

/* What a token marks in a prompt. */

#define DSA_MARK_BEGIN      0x1U        /* a message ends in front of it, or a
                                           question ends in front of it */
#define DSA_MARK_END        0x2U        /* a message ends behind it */
#define DSA_MARK_ANSWER     0x4U        /* a question ends here, and an answer
                                           begins behind it */
#define DSA_MARK_THINK_END  0x8U        /* reasoning ends in front of it */
#define DSA_MARK_STOP       0x10U       /* the model ends its output with it */


typedef struct {
    dsa_str_t                   name;   /* as the tokenizer has it; it begins
                                           with "<", "[" or a byte above
                                           ASCII */
    uint32_t                    marks;
} dsa_control_token_t;


typedef struct {
    const dsa_control_token_t  *elts;
    uint32_t                    n;      /* at most DSA_CONTROL_TOKENS_MAX */
} dsa_control_tokens_t;


/* The index of the token with this name, or tokens->n if there is none. */
uint32_t dsa_control_token_find(const dsa_control_tokens_t *tokens,
    dsa_str_t name);


#endif /* _DSA_CONTROL_TOKENS_H_INCLUDED_ */
