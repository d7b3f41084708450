
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_OPENAI_H_INCLUDED_
#define _NGX_HTTP_DSA_OPENAI_H_INCLUDED_


#include "ngx_http_dsa_api.h"


/* POST .../chat/completions */
extern const ngx_http_dsa_api_t  ngx_http_dsa_openai;

typedef struct {
    ngx_str_t                 name;
    uint32_t                  context;      /* tokens of prompt and answer */
} ngx_http_dsa_openai_model_t;


/*
 * Write the bodies of GET .../models/ID and of GET .../models.  models is an
 * array of ngx_http_dsa_openai_model_t.  The context length is written under
 * the two names that clients read: context_length (OpenRouter) and
 * max_model_len (vLLM).
 */
void ngx_http_dsa_openai_model(dsa_buf_t *b,
    const ngx_http_dsa_openai_model_t *model);
void ngx_http_dsa_openai_models(dsa_buf_t *b, const ngx_array_t *models);


#endif /* _NGX_HTTP_DSA_OPENAI_H_INCLUDED_ */
