
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_BODY_H_INCLUDED_
#define _NGX_HTTP_DSA_BODY_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "base/json.h"

#include "ngx_http_dsa_failure.h"


#define NGX_HTTP_DSA_JSON_DEPTH     128

/*
 * Bytes of an arena for the tree of n bytes of JSON.  Nodes are larger than
 * their text: those of a short message or of a JSON schema about 11 times.
 */
#define NGX_HTTP_DSA_ARENA(n)       (1024 * 1024 + 12 * (size_t) (n))


/*
 * Whether the content type is application/json or application/...+json, with
 * any parameters.  A web page of another origin can make a browser send a body
 * without a preflight request, but only as text, as a form, or without a type.
 * If these were accepted, any page could use a server that listens on
 * loopback.
 */
ngx_uint_t ngx_http_dsa_body_is_json(ngx_http_request_t *r);

/* The answer to a body of another type. */
ngx_int_t ngx_http_dsa_body_not_json(ngx_http_request_t *r);

/*
 * Parses the body that nginx has read.  The tree is in *arena, which is created
 * here and freed by the caller, also after an error.  NULL with a failure.
 */
dsa_json_t *ngx_http_dsa_body_read(ngx_http_request_t *r, dsa_arena_t **arena,
    ngx_http_dsa_failure_t *failure);

/* Frees the buffer of the body, unless another module needs it ("mirror"). */
void ngx_http_dsa_body_free(ngx_http_request_t *r);


#endif /* _NGX_HTTP_DSA_BODY_H_INCLUDED_ */
