
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CLEAR_H_INCLUDED_
#define _DSA_CLEAR_H_INCLUDED_


#include "context/chat.h"


/*
 * Context editing as Anthropic's API has it (platform.claude.com, "Context
 * editing"): the oldest parts of a conversation leave the prompt, and the
 * client keeps its history as it is.  Such a part is
 *
 * - a tool use: the result of a call is replaced by DSA_CLEAR_RESULT and, if
 *   the edit has it so, the arguments of the call by {};
 * - the reasoning of a turn, that is of one question and all that answers it.
 *
 * Tool uses leave when the prompt exceeds the trigger: all but the most recent
 * ones, which stay, and those of excluded tools.  With at_least, they leave in
 * groups, so that the prompt does not change with each request: let cleared(k)
 * be the tokens that the prompt loses with the first k of them, and n those
 * that may leave; then the least k leaves for which
 *
 *     cleared(k) >= at_least * floor(cleared(n) / at_least)
 *
 * and nothing if cleared(n) < at_least.  cleared(k) does not depend on the
 * messages behind tool use k.  So k is the same in the requests of a growing
 * conversation until at_least more tokens can leave, and their prompts have a
 * common prefix.
 *
 * An engine counts a very long prompt up to some number of tokens only.  Then
 * tool uses leave by the same rule with bytes in place of tokens, at_least
 * times DSA_CLEAR_BYTES of them, and how many tokens leave is a lower bound.
 *
 * Only an engine can count tokens.  The caller counts the prompts that this
 * struct asks for, and few of them, because a search finds k.
 */

#define DSA_CLEAR_BYTES   8     /* more than most texts have in a token */

#define DSA_CLEAR_RESULT  "[This tool result was cleared to make room.]"


typedef struct {
    uint32_t               call;        /* tool use: the message with it */
    uint32_t               index;       /* of the call in this message */
    uint32_t               first;       /* tool use: the message with the
                                           result; reasoning: the question */
    uint32_t               end;         /* reasoning: the message after the
                                           turn */
    uint64_t               bytes;       /* that the prompt loses with this
                                           part and those before it, about */
} dsa_clear_part_t;


typedef struct {
    /* for the caller */
    uint32_t               n;           /* parts that may leave; 0: the edit
                                           changes nothing, and no prompt is
                                           to be counted */
    uint32_t               cut;         /* parts that the chat to be counted
                                           lacks; at the end, that leave */
    uint32_t               tokens;      /* that leave with them */
    uint32_t               left;        /* tokens of the prompt at the end; 0:
                                           not counted */

    const dsa_chat_t      *chat;
    const dsa_edit_t      *edit;
    dsa_clear_part_t      *parts;       /* [n], oldest first */

    uint32_t               whole;       /* tokens of the prompt with all
                                           parts */
    uint32_t               want;        /* tokens that leave, at least */
    uint32_t               low;         /* the search: k is in [low, high] */
    uint32_t               high;
    uint32_t               low_tokens;  /* that leave with low - 1 parts, */
    uint32_t               high_tokens; /* and with high parts */
    uint32_t               tries;
    unsigned               counted:1;   /* whole is set */
    unsigned               bound:1;     /* whole is a lower bound */
    unsigned               searching:1;
} dsa_clear_t;


/*
 * Begins an edit of a chat that dsa_chat_check() has accepted.  Both must
 * outlive it.  The parts are allocated from arena.  DSA_ERROR: out of memory.
 */
int dsa_clear_init(dsa_clear_t *c, dsa_arena_t *arena, const dsa_chat_t *chat,
    const dsa_edit_t *edit);

/*
 * The chat without the first c->cut parts: that whose prompt is to be counted
 * next and, at the end, the one to be answered.  It shares the texts of the
 * chat; its messages are allocated from arena.  DSA_ERROR: out of memory.
 */
int dsa_clear_chat(const dsa_clear_t *c, dsa_arena_t *arena, dsa_chat_t *out);

/*
 * A prompt of at most so many tokens need not be counted: an upper bound may
 * be passed to dsa_clear_counted().
 */
uint32_t dsa_clear_limit(const dsa_clear_t *c);

/*
 * Continues with the number of tokens of that prompt.  more: it has more than
 * these.  DSA_AGAIN: another prompt is to be
 * counted; DSA_OK: c->cut, c->tokens and c->left are final.
 */
int dsa_clear_counted(dsa_clear_t *c, uint32_t tokens, int more);


#endif /* _DSA_CLEAR_H_INCLUDED_ */
