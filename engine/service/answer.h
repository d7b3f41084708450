
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ANSWER_H_INCLUDED_
#define _DSA_ANSWER_H_INCLUDED_


#include "base/error.h"
#include "engine/link.h"
#include "engine/tokenizer/tokenizer.h"


/*
 * The text of an answer as its tokens come: whole UTF-8 characters, and with
 * stop strings nothing that one of them may yet take back.  The answer ends
 * before the stop string that is complete first; of two that are complete
 * with the same byte, before the longer one.
 *
 * Each stop string is matched by Knuth, Morris and Pratt, so time is linear
 * in the text and their number, whatever they are.
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
    dsa_stop_t         *stop;           /* one block with all they need */
} dsa_answer_t;


/*
 * Stop strings, each of 1 .. DSA_LINK_MAX_STOP_LEN bytes of UTF-8, are
 * copied.  DSA_ERROR when out of memory; dsa_answer_free() is due in any
 * case.
 */
int dsa_answer_init(dsa_answer_t *a, const dsa_str_t *stop, uint32_t n_stop);
void dsa_answer_free(dsa_answer_t *a);

/*
 * Adds a token's bytes.  DSA_OK; DSA_AGAIN when a stop string is complete: all
 * text before it is ready then, and nothing may be added; DSA_ERROR when out
 * of memory.
 */
int dsa_answer_add(dsa_answer_t *a, dsa_str_t bytes);

/* No token follows: what was held back is ready. */
int dsa_answer_end(dsa_answer_t *a);

/* Drops the first n bytes of the ready text: they are sent. */
void dsa_answer_sent(dsa_answer_t *a, uint32_t n);


#endif /* _DSA_ANSWER_H_INCLUDED_ */
