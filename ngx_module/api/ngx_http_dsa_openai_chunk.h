
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_OPENAI_CHUNK_H_INCLUDED_
#define _NGX_HTTP_DSA_OPENAI_CHUNK_H_INCLUDED_


#include "ngx_http_dsa_openai_object.h"


/* The events of a stream: chat.completion.chunk objects, and [DONE]. */

/*
 * Prepares the beginning of all chunks.  The members that are set before start
 * have to be set.
 */
ngx_int_t ngx_http_dsa_openai_chunk_start(ngx_http_dsa_openai_t *o,
    ngx_pool_t *pool);

/* Callbacks of the API's table. */
void ngx_http_dsa_openai_chunk_delta(ngx_http_dsa_api_answer_t *a,
    dsa_delta_e what, uint32_t call, dsa_str_t text);
void ngx_http_dsa_openai_chunk_close(ngx_http_dsa_api_answer_t *a);

/* Callback of the API's table: writes the last chunk of a choice. */
void ngx_http_dsa_openai_chunk_choice(ngx_http_dsa_api_answer_t *a,
    ngx_http_dsa_finish_e reason);

/* Writes the last chunk and [DONE]. */
void ngx_http_dsa_openai_chunk_finish(ngx_http_dsa_openai_t *o,
    ngx_http_dsa_finish_e reason, const ngx_http_dsa_usage_t *usage);


#endif /* _NGX_HTTP_DSA_OPENAI_CHUNK_H_INCLUDED_ */
