
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_OPENAI_H_INCLUDED_
#define _NGX_HTTP_DSA_OPENAI_H_INCLUDED_


#include "ngx_http_dsa_api.h"


/* POST .../chat/completions */
extern const ngx_http_dsa_api_t  ngx_http_dsa_openai;

/* The body of GET .../models: names are ngx_str_t. */
void ngx_http_dsa_openai_models(dsa_buf_t *b, const ngx_array_t *names);


#endif /* _NGX_HTTP_DSA_OPENAI_H_INCLUDED_ */
