
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BENCH_REPLAY_PROMPT_H_INCLUDED_
#define _DSA_BENCH_REPLAY_PROMPT_H_INCLUDED_


#include "base/buf.h"
#include "bench/replay_trace.h"


/*
 * The text of a prompt.  Each block number gets words that depend on the number
 * alone, so that prompts have equal prefixes where the trace has them.  Each
 * word, with the blank before it, is one token.
 *
 * A prompt is one message of the user, or several: then a message ends where
 * the prompts of the trace part, as it does where a conversation goes on or
 * several begin with one system prompt, which is the first message.  nginx
 * chooses replicas by the ends of messages, and hosts by the first one of the
 * user.  The last block of such a message, but for the system prompt, has as
 * many words less as the template adds tokens for a message, so that a block
 * has 512 tokens in either case.
 */

#define PROMPT_WORDS        256
#define PROMPT_WORD         16          /* most bytes of a word */
#define PROMPT_ONE          UINT32_MAX


typedef struct {
    uint32_t            len[PROMPT_WORDS];      /* bytes, with the blank */
    char                word[PROMPT_WORDS][PROMPT_WORD];
} prompt_words_t;


/*
 * Chooses the shortest PROMPT_WORDS words of lower-case letters that are a
 * token of this tokenizer.json, and checks that a text of all of them has as
 * many tokens.  DSA_ERROR with err.
 */
int prompt_words(prompt_words_t *words, const char *tokenizer, dsa_err_t *err);

/*
 * Appends the messages of a request, as JSON.  added is the number of tokens
 * that the template adds for a further message, below TRACE_BLOCK;
 * PROMPT_ONE: the prompt is one message.
 */
void prompt_messages(const prompt_words_t *words, const trace_t *t,
    const trace_request_t *r, uint32_t added, dsa_buf_t *out);


#endif /* _DSA_BENCH_REPLAY_PROMPT_H_INCLUDED_ */
