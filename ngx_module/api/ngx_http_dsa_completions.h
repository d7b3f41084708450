
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_COMPLETIONS_H_INCLUDED_
#define _NGX_HTTP_DSA_COMPLETIONS_H_INCLUDED_


#include "ngx_http_dsa_openai_object.h"


/* POST .../completions, but not .../chat/completions: text completions. */
extern const ngx_http_dsa_api_t  ngx_http_dsa_completions;


/*
 * The state of an answer.  Its model, id and usage are written by the
 * functions for chat completions, so the struct begins with theirs.
 */

typedef struct {
    ngx_http_dsa_openai_t     chat;

    dsa_buf_t                 echo;         /* the prompt, escaped; empty: not
                                               requested, or written */

    /* elements of the arrays with commas, not written yet */

    dsa_buf_t                 tokens;
    dsa_buf_t                 token_logprobs;
    dsa_buf_t                 top_logprobs;
    dsa_buf_t                 text_offset;

    uint64_t                  offset;       /* characters of the text before
                                               the next token */

    unsigned                  open:1;       /* an event is open */
} ngx_http_dsa_completions_t;


/* Callback of the API's table. */
void ngx_http_dsa_completions_logprob(ngx_http_dsa_api_answer_t *a,
    const dsa_link_logprob_t *entry, const dsa_link_logprob_t *top,
    ngx_uint_t n_top, ngx_uint_t reasoning);

/* Writes the logprobs of a choice since the last event, or null. */
void ngx_http_dsa_completions_logprobs(ngx_http_dsa_completions_t *c,
    dsa_json_writer_t *w);


#endif /* _NGX_HTTP_DSA_COMPLETIONS_H_INCLUDED_ */
