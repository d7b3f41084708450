
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ENCODE_H_INCLUDED_
#define _DSA_ENCODE_H_INCLUDED_


#include "context/chat.h"


/*
 * The prompt of DeepSeek-V3.2 as segments: text, and control tokens by name.
 * Text from outside is in segments of text only, so that it never becomes a
 * control token, even if it spells one.  The text of an answer that the model
 * sampled (dsa_message_t.sampled) keeps the control tokens that it sampled.
 */

typedef enum {
    DSA_SEGMENT_TEXT = 1,           /* equal to dsa_link_kind_e */
    DSA_SEGMENT_CONTROL
} dsa_segment_kind_e;


typedef struct {
    dsa_segment_kind_e  kind;
    dsa_str_t           text;
} dsa_segment_t;


typedef struct {
    dsa_segment_t      *segments;       /* neighboring text segments are
                                           joined */
    uint32_t            n;
    size_t              bytes;          /* of all texts */
} dsa_prompt_t;


/*
 * Encodes a chat that dsa_chat_check() accepted.  The prompt and its texts
 * are allocated from arena.  DSA_ERROR with err: tool messages do not match
 * the calls before them, a number exceeds the range of a double, or there is
 * no memory.
 *
 * If the last message is an assistant message with prefix set, its end is left
 * open, and the model continues it.
 */
int dsa_encode(dsa_prompt_t *prompt, dsa_arena_t *arena,
    const dsa_chat_t *chat, dsa_err_t *err);


#endif /* _DSA_ENCODE_H_INCLUDED_ */
