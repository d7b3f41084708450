
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SUBMIT_H_INCLUDED_
#define _DSA_SUBMIT_H_INCLUDED_


#include "base/error.h"
#include "base/str.h"
#include "engine/link.h"
#include "engine/tokenizer/tokenizer.h"


/*
 * A SUBMIT record, read from a private copy of its payload and checked field
 * by field: whoever wrote it is not trusted.
 */

typedef struct {
    dsa_link_submit_t   head;
    dsa_str_t           runs;           /* of the copy */
    dsa_str_t           stop[DSA_LINK_MAX_STOP];
} dsa_submit_t;


/*
 * DSA_ERROR names the field, its value and what would be accepted.  Strings
 * of out live as long as copy, which is aligned to 8.
 */
int dsa_submit_decode(dsa_submit_t *out, const void *copy, size_t len,
    dsa_err_t *err);

/*
 * The prompt's ids, appended to out: text never becomes a special token, a
 * special token goes by its name.  DSA_AGAIN when there are more than max;
 * DSA_ERROR with err.
 */
int dsa_submit_tokenize(const dsa_submit_t *s, const dsa_tokenizer_t *t,
    dsa_tokenizer_work_t *w, uint32_t max, dsa_tokens_t *out, dsa_err_t *err);


#endif /* _DSA_SUBMIT_H_INCLUDED_ */
