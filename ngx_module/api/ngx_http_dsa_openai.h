
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_OPENAI_H_INCLUDED_
#define _NGX_HTTP_DSA_OPENAI_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/json.h"
#include "context/parse.h"
#include "engine/link.h"


/*
 * The JSON of the chat completions API: chunks, completions, errors.  Only
 * text is made here, nothing is sent.
 */

#define NGX_HTTP_DSA_CALL_ID_LEN  (sizeof("call_") - 1 + 10 + 1 + 22)


typedef struct {
    uint64_t                  prompt;
    uint64_t                  cached;
    uint64_t                  completion;
    uint64_t                  reasoning;
} ngx_http_dsa_usage_t;


typedef struct {
    dsa_buf_t                 content;      /* entries, with commas */
    dsa_buf_t                 reasoning;
} ngx_http_dsa_logprobs_t;


/* The whole message, for one that is not streamed and for a conversation. */

typedef struct {
    dsa_buf_t                 content;      /* escaped */
    dsa_buf_t                 reasoning;    /* escaped */
    dsa_buf_t                 calls;        /* JSON objects, with commas */
} ngx_http_dsa_message_t;


typedef struct {
    ngx_str_t                 id;
    ngx_str_t                 model;
    ngx_str_t                 fingerprint;
    time_t                    created;

    ngx_str_t                 conversation; /* id; empty: none */
    int64_t                   version;      /* with this turn */
    const char               *unsaved;      /* why it is not stored, or NULL */

    ngx_str_t                 head;         /* of every chunk */
    dsa_buf_t                *out;          /* the stream's pending text */
    ngx_http_dsa_logprobs_t  *logprobs;     /* NULL: not asked for */
    ngx_http_dsa_message_t   *message;      /* NULL: not collected */

    uint32_t                  open;         /* dsa_delta_e of the open chunk */
    uint32_t                  call;         /* the tool call it is about */

    unsigned                  stream:1;
    unsigned                  thinking:1;
    unsigned                  include_usage:1;
    unsigned                  role_sent:1;
    unsigned                  call_open:1;  /* in message->calls */
} ngx_http_dsa_openai_t;


/* Lays down what all chunks begin with; the fields above it are set. */
ngx_int_t ngx_http_dsa_openai_start(ngx_http_dsa_openai_t *o,
    ngx_pool_t *pool);

/* The parser's callback; ctx is the ngx_http_dsa_openai_t. */
int ngx_http_dsa_openai_delta(void *ctx, dsa_delta_e what, uint32_t call,
    dsa_str_t text);

/* One token's logprob and its n_top alternatives. */
void ngx_http_dsa_openai_logprob(ngx_http_dsa_openai_t *o,
    const dsa_link_logprob_t *entry, const dsa_link_logprob_t *top,
    ngx_uint_t n_top, ngx_uint_t reasoning);

/* Ends the chunk under construction, so that events can be sent. */
void ngx_http_dsa_openai_close(ngx_http_dsa_openai_t *o);

/* The end: last chunk and [DONE], or the whole completion. */
void ngx_http_dsa_openai_finish(ngx_http_dsa_openai_t *o, const char *finish,
    const ngx_http_dsa_usage_t *usage);

/* The collected message as conversations keep it. */
void ngx_http_dsa_openai_message(ngx_http_dsa_openai_t *o, dsa_buf_t *b);

void ngx_http_dsa_openai_free(ngx_http_dsa_openai_t *o);


/* {"error":{...}}; param NULL: null. */
void ngx_http_dsa_openai_error(dsa_buf_t *b, ngx_uint_t status,
    const char *param, const char *message);

/* The same with a code of its own; NULL: that of the status. */
void ngx_http_dsa_openai_failure(dsa_buf_t *b, ngx_uint_t status,
    const char *own, const char *param, const char *message);

/* One entry of GET models. */
void ngx_http_dsa_openai_model(dsa_buf_t *b, ngx_str_t *name);


#endif /* _NGX_HTTP_DSA_OPENAI_H_INCLUDED_ */
