
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_ANTHROPIC_H_INCLUDED_
#define _NGX_HTTP_DSA_ANTHROPIC_H_INCLUDED_


#include "ngx_http_dsa_api.h"


/* POST .../v1/messages */
extern const ngx_http_dsa_api_t  ngx_http_dsa_anthropic;

/* POST .../v1/messages/count_tokens */
extern const ngx_http_dsa_api_t  ngx_http_dsa_anthropic_count;

#endif /* _NGX_HTTP_DSA_ANTHROPIC_H_INCLUDED_ */
