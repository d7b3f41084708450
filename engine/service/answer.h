
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ANSWER_H_INCLUDED_
#define _DSA_ANSWER_H_INCLUDED_


#include "base/error.h"
#include "engine/link_event.h"
#include "engine/link_request.h"
#include "engine/tokenizer/tokenizer.h"


/*
 * The text of an answer, made from its tokens.  Text is ready when it consists
 * of whole UTF-8 characters and no stop string can remove it any more.  The
 * answer ends before the stop string that is complete first; if two end with
 * the same byte, before the longer one.
 *
 * Tokens are kept until all of their text is ready.  Each stop string is
 * matched by the algorithm of Knuth, Morris and Pratt, so the time is linear
 * in the length of the text and the number of stop strings.
 */

typedef struct {
    const char         *text;
    uint16_t           *fail;           /* [len] */
    uint16_t            len;
    uint16_t            matched;        /* length of its prefix at the end of
                                           the text */
} dsa_stop_t;


typedef struct {
    dsa_detokenizer_t   detokenizer;
    char               *text;           /* text[0 .. ready-1] may be sent */
    uint32_t            ready;
    uint32_t            len;
    uint32_t            size;
    uint32_t            n_stop;
    uint32_t            stopped;        /* 1 + the index of the stop string
                                           that ended the text; 0: none */
    dsa_stop_t         *stop;           /* one block with the tables */
    uint32_t            think_end;      /* id of the control token that ends
                                           the reasoning */
    unsigned            reasoning:1;    /* it has not come yet */

    dsa_link_token_t   *token;          /* not sent; ends are within text */
    dsa_link_logprob_t *logprob;        /* [n_tokens][row] */
    uint32_t            row;            /* logprob entries of each token */
    uint32_t            n_ready;        /* tokens with all of their text in
                                           text[0 .. ready-1] */
    uint32_t            n_tokens;
    uint32_t            tokens_size;
} dsa_answer_t;


/*
 * Prepares an answer.  The stop strings, each of 1 .. DSA_LINK_MAX_STOP_LEN
 * bytes of UTF-8, are copied.  DSA_ERROR: memory is short.  Call
 * dsa_answer_free() in any case.
 */
int dsa_answer_init(dsa_answer_t *a, const dsa_str_t *stop, uint32_t n_stop);
void dsa_answer_free(dsa_answer_t *a);

/*
 * The answer begins with reasoning, which this control token ends.  Stop
 * strings are those of the answer, and match behind it only: a client that
 * sends, for example, "Observation:" does not see the reasoning, and would get
 * an empty answer if it ended there.
 */
void dsa_answer_reasoning(dsa_answer_t *a, uint32_t think_end);

/*
 * Adds a token with its bytes; if control is set, they are the name of a
 * control token.  DSA_AGAIN: a stop string is complete, all text before it is
 * ready, and nothing more may be added; DSA_ERROR: memory is short.
 */
int dsa_answer_add(dsa_answer_t *a, uint32_t id, dsa_str_t bytes,
    int control);

/*
 * Returns the logprob entries of the token that was added last, which the
 * caller fills.  row may be set only before the first token.
 */
dsa_link_logprob_t *dsa_answer_logprobs(dsa_answer_t *a);

/*
 * Drops all tokens and text, because another replica has sent them.  Partial
 * characters and partial stop strings at their end are continued by the next
 * token.
 */
void dsa_answer_resume(dsa_answer_t *a);

/* Ends the answer: all remaining text becomes ready. */
int dsa_answer_end(dsa_answer_t *a);

/* Drops the first n ready tokens and the first len bytes, which were sent. */
void dsa_answer_sent(dsa_answer_t *a, uint32_t n, uint32_t len);


#endif /* _DSA_ANSWER_H_INCLUDED_ */
