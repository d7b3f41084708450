
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_MODEL_INFO_H_INCLUDED_
#define _NGX_HTTP_DSA_MODEL_INFO_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/buf.h"


/*
 * The bodies of GET .../models and GET .../models/ID, in OpenAI's format and
 * in Anthropic's.  Engines do not report when a model was made, so its time is
 * the epoch, which Anthropic's API has for an unknown date.
 */

typedef struct {
    ngx_str_t                 name;
    const char               *owner;        /* who made it */
    uint32_t                  context;      /* tokens of prompt and answer */
} ngx_http_dsa_model_info_t;


/* A part of a list. */

typedef struct {
    ngx_http_dsa_model_info_t  *models;     /* the whole list */
    ngx_uint_t                  n;
    ngx_uint_t                  start;      /* of the part */
    ngx_uint_t                  end;        /* behind its last model */
    unsigned                    more:1;     /* there are models beyond it, in
                                               the direction of the client */
} ngx_http_dsa_model_page_t;


/*
 * The context length is written under the two names that clients read:
 * context_length (OpenRouter) and max_model_len (vLLM).
 */
void ngx_http_dsa_model_openai(dsa_buf_t *b,
    const ngx_http_dsa_model_info_t *model);
void ngx_http_dsa_model_openai_list(dsa_buf_t *b,
    const ngx_http_dsa_model_page_t *page);

void ngx_http_dsa_model_anthropic(dsa_buf_t *b,
    const ngx_http_dsa_model_info_t *model);
void ngx_http_dsa_model_anthropic_list(dsa_buf_t *b,
    const ngx_http_dsa_model_page_t *page);


#endif /* _NGX_HTTP_DSA_MODEL_INFO_H_INCLUDED_ */
