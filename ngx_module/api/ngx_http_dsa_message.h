
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_MESSAGE_H_INCLUDED_
#define _NGX_HTTP_DSA_MESSAGE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/buf.h"
#include "base/json_write.h"
#include "context/parse.h"


/*
 * The whole message of an answer, collected from its pieces: for an answer that
 * is not streamed, and for the conversation.
 */

#define NGX_HTTP_DSA_CALL_RANDOM  22
#define NGX_HTTP_DSA_CALL_ID_LEN  (sizeof("call_") - 1 + 10 + 1               \
                                   + NGX_HTTP_DSA_CALL_RANDOM)


typedef struct {
    dsa_buf_t                 content;      /* escaped */
    dsa_buf_t                 reasoning;    /* escaped */
    dsa_buf_t                 calls;        /* JSON objects with commas; the
                                               last one is not closed */
} ngx_http_dsa_message_t;


/* Adds a piece; id is that of a call, for DSA_DELTA_CALL. */
void ngx_http_dsa_message_add(ngx_http_dsa_message_t *m, dsa_delta_e what,
    uint32_t call, dsa_str_t text, const char *id);

/* 1: memory failed, so the message is not whole. */
ngx_uint_t ngx_http_dsa_message_failed(const ngx_http_dsa_message_t *m);

/*
 * The message as the object that conversations store.  Without thinking it
 * has no reasoning_content.
 */
void ngx_http_dsa_message_write(const ngx_http_dsa_message_t *m,
    dsa_json_writer_t *w, ngx_uint_t thinking);

void ngx_http_dsa_message_free(ngx_http_dsa_message_t *m);

/*
 * Makes an id for a tool call in the form that DeepSeek's API has: "call_", two
 * digits of the index, "_", 22 alphanumerics.  These are random (130 bits), so
 * that no client can guess the id of another answer, and the same for all calls
 * of an answer, so that each of them leads to what is retained of the answer.
 * id has room for NGX_HTTP_DSA_CALL_ID_LEN bytes and a NUL, and has the id of
 * the call before, if there is one.  NGX_ERROR: no random bytes.
 */
ngx_int_t ngx_http_dsa_message_call_id(char *id, uint32_t call);


#endif /* _NGX_HTTP_DSA_MESSAGE_H_INCLUDED_ */
