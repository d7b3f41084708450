
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_PROMPT_KEYS_H_INCLUDED_
#define _DSA_PROMPT_KEYS_H_INCLUDED_


#include "context/prompt.h"


/*
 * Keys of a prompt's prefixes.  A replica that has computed a prompt can reuse
 * its beginning for another prompt.  Prompts of a conversation, and those with
 * the same system message and tools, share their beginning up to the end of a
 * message.  So a prefix has a key if it ends at such a boundary: behind the
 * system message and tools, behind a question, behind an answer, behind the
 * results of tool calls.
 *
 * The boundary behind a question is in front of the tag <think> or </think>,
 * because the next turn has another tag there.  Example, with | for
 * boundaries:
 *
 *     turn 1    system |<User> q1 <Assistant>|<think>
 *     turn 2    system |<User> q1 <Assistant>|</think> a1 <eos>|
 *               <User> q2 <Assistant>|<think>
 *
 * The key is a hash of tenant, model and all segments before the boundary.  It
 * is XXH3 with a secret of random bytes, so that a client cannot find texts
 * whose keys collide with those of another tenant.  Two prefixes with the same
 * key would only send a request to a replica that does not have its prefix.
 */

#define DSA_PROMPT_SECRET  192     /* bytes; XXH3 needs 136 */
#define DSA_PROMPT_TENANT  32      /* bytes of its digest */

/*
 * The shortest prefix that gets a key.  Replicas reuse full pages of 64
 * tokens, and a token has about 4 bytes, so a shorter prefix fills no page.
 */
#define DSA_PROMPT_MIN     256

/*
 * If a prompt has more boundaries, these are used: the last ones; the last
 * ends of questions, because a new question removes the reasoning behind the
 * previous question, which changes everything after it; and the first one,
 * because other conversations share it.  A long text, for example a document,
 * also has boundaries after each block of DSA_PROMPT_BLOCK bytes, of
 * which the last ones are used.
 */
#define DSA_PROMPT_LAST       8
#define DSA_PROMPT_QUESTIONS  4
#define DSA_PROMPT_BLOCKS     8
#define DSA_PROMPT_BLOCK      4096
#define DSA_PROMPT_KEYS       (DSA_PROMPT_LAST + DSA_PROMPT_QUESTIONS         \
                               + DSA_PROMPT_BLOCKS + 1)


typedef struct {
    uint64_t                     key;
    size_t                       bytes;     /* of the prefix */
} dsa_prompt_key_t;


typedef struct {
    uint32_t                     n;
    dsa_prompt_key_t             elts[DSA_PROMPT_KEYS];
                                            /* the longest prefix first */
} dsa_prompt_keys_t;


/*
 * Computes the keys of a prompt; the marks of its family's tokens are where
 * messages end.  secret has DSA_PROMPT_SECRET bytes, tenant
 * DSA_PROMPT_TENANT.  The prompt is hashed once.
 */
void dsa_prompt_keys(dsa_prompt_keys_t *keys,
    const dsa_prompt_t *prompt, const dsa_control_tokens_t *tokens,
    const uint8_t *secret, const uint8_t *tenant, dsa_str_t model);


#endif /* _DSA_PROMPT_KEYS_H_INCLUDED_ */
