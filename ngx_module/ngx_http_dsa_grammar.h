
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_GRAMMAR_H_INCLUDED_
#define _NGX_HTTP_DSA_GRAMMAR_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "context/format.h"


/*
 * Compiles the spec of an answer, so that a schema that no engine can enforce
 * is refused before the request is submitted.  The engine compiles it again,
 * to enforce it; here only the result counts.  If a schema that is optional
 * cannot be enforced, the fallback becomes the spec.
 *
 * The specs that compiled last are remembered, so that a client with one schema
 * in every request costs a hash each time.
 *
 * NGX_ERROR: refusal is filled in.
 */
ngx_int_t ngx_http_dsa_grammar_check(dsa_format_t *format,
    dsa_refusal_t *refusal);


#endif /* _NGX_HTTP_DSA_GRAMMAR_H_INCLUDED_ */
