
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ANTHROPIC_H_INCLUDED_
#define _DSA_ANTHROPIC_H_INCLUDED_


#include "context/chat.h"


/*
 * Reads the tree of a request body of Anthropic's Messages API as a chat.  All
 * of it is allocated from arena, which is that of the tree.  count 1: the body
 * is one of count_tokens, which has no max_tokens.  DSA_ERROR: refusal is
 * filled in.
 *
 * Unknown fields are ignored.  Fields that would change the answer are honoured
 * or refused.  Parts that the prompt format cannot represent are left out:
 * cache_control, signatures, redacted thinking, is_error, and citations of the
 * client's own texts.
 *
 * The messages of the chat differ from those of the body:
 *
 * - system becomes a leading system message.  A block of it that begins with
 *   "x-anthropic-billing-header:" is left out, because it changes in every
 *   request, and no later request could use the cached prompt.
 *
 * - A user message becomes one tool message for each tool_result, in the order
 *   of the calls, and one user message for its text, if there is any.  Text
 *   that is a <system-reminder> belongs to the last result of the message,
 *   because a user message would remove the reasoning before it.
 *
 * - A system message is appended to the user or tool message before it.
 *
 * - Messages of one role that follow each other are one message.
 *
 * Text blocks of one message are joined as they are; texts that come from
 * different messages, or that are appended to a result, are separated by a
 * blank line.
 */
int dsa_anthropic_read(dsa_chat_t *chat, dsa_arena_t *arena,
    const dsa_json_t *root, const dsa_chat_limits_t *limits, int count,
    dsa_refusal_t *refusal);


#endif /* _DSA_ANTHROPIC_H_INCLUDED_ */
