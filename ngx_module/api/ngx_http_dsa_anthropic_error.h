
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_ANTHROPIC_ERROR_H_INCLUDED_
#define _NGX_HTTP_DSA_ANTHROPIC_ERROR_H_INCLUDED_


#include "ngx_http_dsa_api.h"


/*
 * Callback of the API's table: {"type":"error","error":{...},"request_id":...}
 */
void ngx_http_dsa_anthropic_error(dsa_buf_t *out,
    const ngx_http_dsa_api_error_t *error, ngx_uint_t event);


#endif /* _NGX_HTTP_DSA_ANTHROPIC_ERROR_H_INCLUDED_ */
