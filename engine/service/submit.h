
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SUBMIT_H_INCLUDED_
#define _DSA_SUBMIT_H_INCLUDED_


#include "base/error.h"
#include "base/str.h"
#include "engine/link_request.h"
#include "engine/link_ring.h"
#include "engine/tokenizer/tokenizer.h"


/*
 * A SUBMIT or COUNT record, read from a private copy of its payload.  The
 * worker that wrote it is not trusted, so every field is checked.
 */

typedef struct {
    dsa_link_type_e     type;           /* DSA_LINK_SUBMIT or _COUNT */
    dsa_link_submit_t   head;           /* zero for COUNT */
    dsa_str_t           fields;         /* part of the copy */
    uint32_t            n_fields;
    uint32_t            n_stop;
    uint32_t            n_query;
    uint32_t            n_resume;
    const uint32_t     *resume;         /* [n_resume], in the copy */
    dsa_biases_t        biases;         /* in the copy */
    dsa_str_t           grammar;        /* the spec; data is NULL: none */
    dsa_str_t           request;        /* its id; data is NULL: none */
    dsa_str_t           trace;          /* the client's traceparent; the same */
    dsa_str_t           client;         /* the client's id of the request */
    dsa_str_t           stop[DSA_LINK_MAX_STOP];
    dsa_str_t           query[DSA_LINK_MAX_QUERIES];
} dsa_submit_t;


/*
 * Reads and checks len bytes at copy, which is aligned to 8; out points into
 * it.  DSA_ERROR: err has the field, its value and the values that are
 * accepted.
 */
int dsa_submit_decode(dsa_submit_t *out, dsa_link_type_e type,
    const void *copy, size_t len, dsa_err_t *err);

/*
 * Appends the ids of the prompt to out.  Control tokens are found by their
 * names; text never becomes a control token.  DSA_AGAIN: there are more than
 * max; DSA_ERROR with err.
 */
int dsa_submit_tokenize(const dsa_submit_t *s, const dsa_tokenizer_t *t,
    dsa_tokenizer_work_t *w, uint32_t max, dsa_tokens_t *out, dsa_err_t *err);

/* Returns the vocabulary of ACCEPTED: a bit for each query. */
uint32_t dsa_submit_vocabulary(const dsa_submit_t *s,
    const dsa_tokenizer_t *t);


#endif /* _DSA_SUBMIT_H_INCLUDED_ */
