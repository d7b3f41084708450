
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SUMMARY_H_INCLUDED_
#define _DSA_SUMMARY_H_INCLUDED_


#include "context/family.h"
#include "context/window.h"


/*
 * A summary of rounds of tool calls, which the model itself writes (paper,
 * section 4.4).  Its prompt is the conversation as the model has seen it, so
 * that the KV cache has nearly all of it, and an instruction behind it.
 *
 * The summary becomes a message of the user, behind a heading, so that it does
 * not pass for an answer of the model.  It is text like any other text from
 * outside, even if it spells control tokens.
 */

#define DSA_SUMMARY_HEAD                                                      \
    "The tool calls up to this point and their results have left the "       \
    "conversation to make room. This is a summary of them:\n\n"

#define DSA_SUMMARY_TOKENS  4096        /* of a summary, at most */
#define DSA_SUMMARY_BYTES   65536


/* How many tokens a summary may have with this threshold; at least 1. */
uint32_t dsa_summary_tokens(uint32_t threshold);

/* The same and the rest of its message, at most. */
uint32_t dsa_summary_reserve(uint32_t threshold);

/*
 * Makes the prompt for a summary of the rounds that left at the last overflow
 * of a replay.  The oldest "dropped" of them are missing, fewer than w->cut:
 * they are in the summary "previous", which is the content of a message, or do
 * not fit.  The prompt and its texts are allocated from arena.  DSA_ERROR with
 * err.
 */
int dsa_summary_prompt(const dsa_family_t *family, dsa_prompt_t *prompt,
    dsa_arena_t *arena, const dsa_window_t *w, uint32_t dropped,
    dsa_str_t previous, dsa_err_t *err);

/*
 * The prompt exceeds the context by "excess" of its tokens: how many of the
 * oldest rounds, more than "dropped", should be missing.  0: the summary
 * would have nothing left to be made of.
 */
uint32_t dsa_summary_drop(const dsa_window_t *w, const dsa_prompt_t *prompt,
    uint32_t dropped, uint32_t tokens, uint32_t excess);


#endif /* _DSA_SUMMARY_H_INCLUDED_ */
