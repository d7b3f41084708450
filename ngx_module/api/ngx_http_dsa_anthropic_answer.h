
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

    ngx_str_t                *stop;         /* the request's stop_sequences */
    ngx_uint_t                n_stop;
    ngx_uint_t                index;        /* of the open block; if none is
                                               open, of the next one */
    uint32_t                  block;        /* dsa_delta_e of the open block,
                                               a call: DSA_DELTA_CALL; 0: none
                                               is open */
    dsa_buf_t                 words;        /* of the model, if the answer is
                                               a summary */
    unsigned                  event:1;      /* a delta of the block is open */
    unsigned                  managed:1;    /* the request has
                                               context_management */
    unsigned                  compacts:1;   /* it may be compacted */
    unsigned                  beta:1;       /* one of both: the answer has the
                                               members that only answers of the
                                               beta API have */
} ngx_http_dsa_anthropic_t;


/*
 * Writes the signature of a block of thinking: "dsa1" and the 32 random
 * hexadecimal digits of the answer's id.  These characters are valid base64,
 * which clients expect.  The server does not check the signature of a block
 * that a client sends back.  It only identifies the answer that the block
 * comes from.
 */
#define NGX_HTTP_DSA_ANTHROPIC_SIGNATURE  "dsa1"

void ngx_http_dsa_anthropic_signature(const ngx_http_dsa_anthropic_t *n,
    dsa_json_writer_t *w);

/* Writes the members id, type, role and model of a message. */
void ngx_http_dsa_anthropic_head(const ngx_http_dsa_anthropic_t *n,
    dsa_json_writer_t *w);

/*
 * Write the members stop_reason, stop_sequence, stop_details and container:
 * null while the message has not ended, and their values at its end.
 */
void ngx_http_dsa_anthropic_no_stop(dsa_json_writer_t *w);
void ngx_http_dsa_anthropic_stop(const ngx_http_dsa_anthropic_t *n,
    dsa_json_writer_t *w, ngx_http_dsa_finish_e reason);

/* Writes the member of a message that reports misses of a cache: null. */
void ngx_http_dsa_anthropic_diagnostics(dsa_json_writer_t *w);

/* Writes the member of a call that names its caller, which is the model. */
void ngx_http_dsa_anthropic_caller(dsa_json_writer_t *w);

/*
 * Write the member usage, the first one of a message and the second one of the
 * event message_delta, which has fewer members.  input_tokens counts prompt
 * tokens that were not cached.  Writing to a cache costs nothing here, so
 * tokens that were written are not counted.  The tokens of a compaction are in
 * iterations only.
 */
void ngx_http_dsa_anthropic_usage(const ngx_http_dsa_anthropic_t *n,
    dsa_json_writer_t *w, const ngx_http_dsa_usage_t *usage);
void ngx_http_dsa_anthropic_delta_usage(const ngx_http_dsa_anthropic_t *n,
    dsa_json_writer_t *w, const ngx_http_dsa_usage_t *usage);

/* Writes the member context_management of the beta API. */
void ngx_http_dsa_anthropic_management(const ngx_http_dsa_anthropic_t *n,
    dsa_json_writer_t *w);

/*
 * Writes the members content and encrypted_content of a block or delta of a
 * compaction.
 */
void ngx_http_dsa_anthropic_summary(const ngx_http_dsa_anthropic_t *n,
    dsa_json_writer_t *w);

/* Writes the whole message of an answer that is not streamed. */
void ngx_http_dsa_anthropic_object(ngx_http_dsa_anthropic_t *n,
    ngx_http_dsa_finish_e reason, const ngx_http_dsa_usage_t *usage);


/* Callbacks of the API's table for streams; ngx_http_dsa_anthropic_event.c. */

void ngx_http_dsa_anthropic_event_start(ngx_http_dsa_anthropic_t *n,
    const ngx_http_dsa_usage_t *usage);
void ngx_http_dsa_anthropic_event_delta(ngx_http_dsa_api_answer_t *a,
    dsa_delta_e what, uint32_t call, dsa_str_t text);
void ngx_http_dsa_anthropic_event_close(ngx_http_dsa_api_answer_t *a);
void ngx_http_dsa_anthropic_event_ping(ngx_http_dsa_api_answer_t *a);
void ngx_http_dsa_anthropic_event_finish(ngx_http_dsa_anthropic_t *n,
    ngx_http_dsa_finish_e reason, const ngx_http_dsa_usage_t *usage);


#endif /* _NGX_HTTP_DSA_ANTHROPIC_ANSWER_H_INCLUDED_ */
