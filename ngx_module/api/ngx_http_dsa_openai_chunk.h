
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_OPENAI_CHUNK_H_INCLUDED_
#define _NGX_HTTP_DSA_OPENAI_CHUNK_H_INCLUDED_


#include "ngx_http_dsa_openai_object.h"


/* The events of a stream: chat.completion.chunk objects, and [DONE]. */

/* Writes what all chunks begin with; id, model and so on are set. */
ngx_int_t ngx_http_dsa_openai_chunk_start(ngx_http_dsa_openai_t *o,
    ngx_pool_t *pool);

/* Of the API's table. */
void ngx_http_dsa_openai_chunk_delta(ngx_http_dsa_api_answer_t *a,
    dsa_delta_e what, uint32_t call, dsa_str_t text);
void ngx_http_dsa_openai_chunk_close(ngx_http_dsa_api_answer_t *a);

/* The last chunk of a choice; of the API's table. */
void ngx_http_dsa_openai_chunk_choice(ngx_http_dsa_api_answer_t *a,
    ngx_http_dsa_finish_e reason);

/* The last chunk and [DONE]. */
void ngx_http_dsa_openai_chunk_finish(ngx_http_dsa_openai_t *o,
    ngx_http_dsa_finish_e reason, const ngx_http_dsa_usage_t *usage);


#endif /* _NGX_HTTP_DSA_OPENAI_CHUNK_H_INCLUDED_ */
