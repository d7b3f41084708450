
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_RESPONSES_REFERENCES_H_INCLUDED_
#define _NGX_HTTP_DSA_RESPONSES_REFERENCES_H_INCLUDED_


#include "ngx_http_dsa_request.h"


/*
 * Replaces references in the items of a body by the stored items of the
 * tenant.  Then calls next, at once or later, or ends the request with its
 * failure.
 */
void ngx_http_dsa_responses_references(ngx_http_dsa_request_t *req,
    ngx_http_dsa_request_pt next);


#endif /* _NGX_HTTP_DSA_RESPONSES_REFERENCES_H_INCLUDED_ */
