
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_ANTHROPIC_ANSWER_H_INCLUDED_
#define _NGX_HTTP_DSA_ANTHROPIC_ANSWER_H_INCLUDED_


#include "base/json_write.h"

#include "ngx_http_dsa_api.h"


/* The state of an answer of the Messages API, and the parts of its objects. */

typedef struct {
    ngx_http_dsa_api_answer_t answer;

    ngx_pool_t               *pool;
    ngx_str_t                *stop;         /* the request's stop_sequences */
    ngx_uint_t                n_stop;
    ngx_uint_t                index;        /* of the open block, or of the
                                               next one */
    uint32_t                  block;        /* dsa_delta_e of the open block,
                                               a call: DSA_DELTA_CALL; 0: none
                                               is open */
    unsigned                  event:1;      /* a delta of the block is open */
} ngx_http_dsa_anthropic_t;


/*
 * A signature is "dsa1" and 32 hexadecimal digits: those of the answer's id,
 * which are random.  Nothing is checked when a client sends a block back, so a
 * signature only shows from which answer the block is.  Its characters are
 * base64, as clients expect.
 */
#define NGX_HTTP_DSA_ANTHROPIC_SIGNATURE  "dsa1"

void ngx_http_dsa_anthropic_signature(const ngx_http_dsa_anthropic_t *n,
    dsa_json_writer_t *w);

/* Members of a message: id, type, role and model. */
void ngx_http_dsa_anthropic_head(const ngx_http_dsa_anthropic_t *n,
    dsa_json_writer_t *w);

/* Members of a message that has not ended, and of one that has. */
void ngx_http_dsa_anthropic_no_stop(dsa_json_writer_t *w);
void ngx_http_dsa_anthropic_stop(const ngx_http_dsa_anthropic_t *n,
    dsa_json_writer_t *w, ngx_http_dsa_finish_e reason);

/* The member usage; input_tokens are those that were not cached. */
void ngx_http_dsa_anthropic_usage(dsa_json_writer_t *w,
    const ngx_http_dsa_usage_t *usage);

/* The whole message, for an answer that is not streamed. */
void ngx_http_dsa_anthropic_object(ngx_http_dsa_anthropic_t *n,
    ngx_http_dsa_finish_e reason, const ngx_http_dsa_usage_t *usage);


/* ngx_http_dsa_anthropic_event.c: of the API's table, for streams. */

void ngx_http_dsa_anthropic_event_start(ngx_http_dsa_anthropic_t *n,
    const ngx_http_dsa_usage_t *usage);
void ngx_http_dsa_anthropic_event_delta(ngx_http_dsa_api_answer_t *a,
    dsa_delta_e what, uint32_t call, dsa_str_t text);
void ngx_http_dsa_anthropic_event_close(ngx_http_dsa_api_answer_t *a);
void ngx_http_dsa_anthropic_event_ping(ngx_http_dsa_api_answer_t *a);
void ngx_http_dsa_anthropic_event_finish(ngx_http_dsa_anthropic_t *n,
    ngx_http_dsa_finish_e reason, const ngx_http_dsa_usage_t *usage);


#endif /* _NGX_HTTP_DSA_ANTHROPIC_ANSWER_H_INCLUDED_ */
