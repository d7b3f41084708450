
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ANSWER_H_INCLUDED_
#define _DSA_ANSWER_H_INCLUDED_


#include "base/error.h"
#include "engine/link.h"
#include "engine/tokenizer/tokenizer.h"


/*
 * The text of an answer, built from its tokens: whole UTF-8 characters, and
 * only text that no stop string can remove any more.  The answer ends before
 * the stop string that is complete first; if two are complete with the same
 * byte, before the longer one.
 *
 * Tokens wait here until all of their text is ready.  Each stop string is
 * matched by Knuth, Morris and Pratt, so time is linear in the length of the
 * text and the number of stop strings.
 */

typedef struct {
    const char         *text;
    uint16_t           *fail;           /* [len] */
    uint16_t            len;
    uint16_t            matched;        /* bytes of it that end the text */
} dsa_stop_t;


typedef struct {
    dsa_detokenizer_t   detokenizer;
    char               *text;           /* text[0 .. ready-1] may be sent */
    uint32_t            ready;
    uint32_t            len;
    uint32_t            size;
    uint32_t            n_stop;
    uint32_t            stopped;        /* 1 and the number of the stop string
                                           that ended the text; 0: none */
    dsa_stop_t         *stop;           /* one block with the tables */

    dsa_link_token_t   *token;          /* not sent; ends are within text */
    dsa_link_logprob_t *logprob;        /* [n_tokens][row] */
    uint32_t            row;            /* logprob entries of each token */
    uint32_t            n_ready;        /* tokens with all of their text in
                                           text[0 .. ready-1] */
    uint32_t            n_tokens;
    uint32_t            tokens_size;
} dsa_answer_t;


/*
 * Stop strings, each of 1 .. DSA_LINK_MAX_STOP_LEN bytes of UTF-8, are
 * copied.  DSA_ERROR if memory is short; dsa_answer_free() is necessary in any
 * case.
 */
int dsa_answer_init(dsa_answer_t *a, const dsa_str_t *stop, uint32_t n_stop);
void dsa_answer_free(dsa_answer_t *a);

/*
 * Adds a token with its bytes; control: these are the name of a control token.
 * DSA_OK; DSA_AGAIN if a stop string is complete: all text before it is ready,
 * and nothing may be added; DSA_ERROR if memory is short.
 */
int dsa_answer_add(dsa_answer_t *a, uint32_t id, dsa_str_t bytes,
    int control);

/*
 * The logprob entries of the token that was added last, to be filled by the
 * caller.  row may be set before the first token only.
 */
dsa_link_logprob_t *dsa_answer_logprobs(dsa_answer_t *a);

/*
 * Drops all tokens and text: another replica has sent them.  Text that follows
 * continues their characters and their stop strings.
 */
void dsa_answer_resume(dsa_answer_t *a);

/* No token follows: text that was not ready becomes ready. */
int dsa_answer_end(dsa_answer_t *a);

/* Drops the first n ready tokens and the first len bytes, which are sent. */
void dsa_answer_sent(dsa_answer_t *a, uint32_t n, uint32_t len);


#endif /* _DSA_ANSWER_H_INCLUDED_ */
