
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BENCH_REPLAY_PROMPT_H_INCLUDED_
#define _DSA_BENCH_REPLAY_PROMPT_H_INCLUDED_


#include "base/buf.h"
#include "bench/replay_trace.h"


/*
 * The text of a prompt.  Each block number gets 512 words, which depend on the
 * number alone, so that prompts have equal prefixes where the trace has them.
 * Each word, with the blank before it, is one token.
 */

#define PROMPT_WORDS        256
#define PROMPT_WORD         16          /* most bytes of a word */


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

/* Appends the prompt of a request: as many words as its input has tokens. */
void prompt_text(const prompt_words_t *words, const trace_t *t,
    const trace_request_t *r, dsa_buf_t *out);


#endif /* _DSA_BENCH_REPLAY_PROMPT_H_INCLUDED_ */
