
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_APIS_H_INCLUDED_
#define _NGX_HTTP_DSA_APIS_H_INCLUDED_


#include "ngx_http_dsa_api.h"


/* Returns the API whose path is the end of the URI, or NULL. */
const ngx_http_dsa_api_t *ngx_http_dsa_apis_find(const ngx_str_t *uri);

/*
 * Returns the API whose format errors of a URI have: the API of its path, or
 * OpenAI's chat completions if the path belongs to no API.
 */
const ngx_http_dsa_api_t *ngx_http_dsa_apis_errors(const ngx_str_t *uri);


#endif /* _NGX_HTTP_DSA_APIS_H_INCLUDED_ */
