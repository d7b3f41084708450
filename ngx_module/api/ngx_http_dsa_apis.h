
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_APIS_H_INCLUDED_
#define _NGX_HTTP_DSA_APIS_H_INCLUDED_


#include "ngx_http_dsa_api.h"


/* The API of which the path ends a URI; NULL: none has it. */
const ngx_http_dsa_api_t *ngx_http_dsa_apis_find(const ngx_str_t *uri);

/*
 * The API in which errors of a URI are written: that of its path, or OpenAI's
 * for paths of no API.
 */
const ngx_http_dsa_api_t *ngx_http_dsa_apis_errors(const ngx_str_t *uri);


#endif /* _NGX_HTTP_DSA_APIS_H_INCLUDED_ */
