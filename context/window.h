
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_WINDOW_H_INCLUDED_
#define _DSA_WINDOW_H_INCLUDED_


#include "context/chat.h"


/*
 * Which part of a long history leaves the prompt.
 *
 * A round is an assistant message with tool calls and the tool messages after
 * it.  Rounds leave as a whole and oldest first; all other messages stay.  A
 * point is a place in the history at which a client had sent a request: behind
 * a user or tool message, in front of an answer; the end is the last point.
 *
 * A cut is defined by a replay: as if the client had sent one request at each
 * point, beginning with a cut of 0 rounds.  At the first point whose prompt
 * without these rounds exceeds the threshold, more rounds leave: of those that
 * are left, three quarters, rounded up (discard_75), or all (discard_all,
 * summary).
 * The replay goes on with the new cut, from the same point.  So the cut is a
 * pure function of the history: requests of a growing conversation have the
 * same cut until the prompt exceeds the threshold again, and their prompts
 * have a common prefix.
 *
 * The replay is not carried out step by step.  The size of a prompt grows from
 * point to point, so the next overflow is found by a search, which counts few
 * prompts.  For this, reasoning in front of the last user message, which is
 * not in the present prompt, counts as absent in the earlier prompts as well.
 *
 * With the strategy summary, a user message with a summary of the rounds that
 * left stands in the place of the last one of them (summary.h).  The replay
 * does not depend on its text: from the first cut on, the threshold is reduced
 * by as many tokens as this message may have.
 */

typedef struct {
    uint32_t               first;       /* the message with the calls */
    uint32_t               end;         /* the message after its results */
    uint64_t               bytes;       /* of this round and those before it */
} dsa_window_round_t;


typedef struct {
    uint32_t               end;         /* messages in front of the point */
    uint32_t               allowed;     /* rounds in front of it that may
                                           leave */
} dsa_window_point_t;


typedef struct {
    /* for the caller */
    uint32_t               cut;         /* rounds that leave */
    uint32_t               overflow;    /* the point at which they left, unless
                                           cut is 0 */
    uint32_t               point;       /* whose prompt is to be counted */
    uint32_t               last;        /* the last point */
    dsa_window_point_t    *points;      /* [last + 1] */
    dsa_str_t              summary;     /* set by the caller: the content of
                                           the message; empty: no summary */

    const dsa_chat_t      *chat;
    dsa_window_e           strategy;
    uint32_t               threshold;   /* tokens */
    uint32_t               reserve;     /* of them, for a summary */
    uint32_t               user;        /* the last user message; 0: none */
    uint32_t               n_rounds;
    dsa_window_round_t    *rounds;
    uint64_t              *bytes;       /* [n_messages + 1]: of the messages
                                           in front of each one */

    uint32_t               start;       /* no overflow in front of it with
                                           this cut */
    uint32_t               low;         /* the search: the overflow is in */
    uint32_t               high;        /* [low, high] */
    uint32_t               low_tokens;  /* of the point before low; 0: not
                                           counted */
    uint32_t               high_tokens;
    uint32_t               tries;
    unsigned               searching:1;
} dsa_window_t;


/*
 * Begins a replay for a chat that dsa_chat_check() has accepted, which must
 * outlive it.  strategy: not none.  threshold: tokens; a prompt may have as
 * many.  The arrays are allocated from arena.  DSA_ERROR: out of memory.
 */
int dsa_window_init(dsa_window_t *w, dsa_arena_t *arena,
    const dsa_chat_t *chat, dsa_window_e strategy, uint32_t threshold);

/*
 * The chat whose prompt is to be counted next: that of w->point without the
 * rounds that leave.  It shares the messages' texts; the array of messages is
 * allocated from arena.  For the last point it is the chat to be answered.
 * DSA_ERROR: out of memory.
 */
int dsa_window_chat(const dsa_window_t *w, dsa_arena_t *arena,
    dsa_chat_t *chat);

/* How many tokens that prompt may have without a summary. */
uint32_t dsa_window_limit(const dsa_window_t *w);

/*
 * Continues the replay with the number of tokens of that prompt; if it is at
 * most the limit, an upper bound may be passed.  DSA_AGAIN: another prompt is
 * to be counted; DSA_OK: w->cut is final, because the prompt is within the
 * limit or no more rounds may leave.
 */
int dsa_window_counted(dsa_window_t *w, uint32_t tokens);

/*
 * Continues a replay that is known up to the overflow at this point, and the
 * cut made there.  The prompt of the last point is to be counted next.  It may
 * be called after dsa_window_counted() returned DSA_AGAIN for the first time.
 * DSA_ERROR: the history has no such point, or
 * not so many rounds may leave there; nothing is changed.
 */
int dsa_window_resume(dsa_window_t *w, uint32_t point, uint32_t cut);

/* The numbers of messages and calls in the rounds that leave. */
void dsa_window_left(const dsa_window_t *w, uint32_t *messages,
    uint32_t *calls);

/* "none", "discard_75" and so on. */
const char *dsa_window_name(dsa_window_e strategy);

/* DSA_OK, or DSA_ERROR if there is no such strategy. */
int dsa_window_find(dsa_str_t name, dsa_window_e *strategy);


#endif /* _DSA_WINDOW_H_INCLUDED_ */
