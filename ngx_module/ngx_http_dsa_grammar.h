
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
 * is refused before the request is submitted.  The engine compiles it again to
 * enforce it, so the result is discarded here.  If an optional schema cannot
 * be enforced, the spec is replaced by the fallback.
 *
 * The digests of the specs that compiled last are kept, so that a client that
 * sends the same schema with every request costs one hash for each.
 *
 * NGX_ERROR: refusal is filled in.
 */
ngx_int_t ngx_http_dsa_grammar_check(dsa_format_t *format,
    dsa_refusal_t *refusal);


#endif /* _NGX_HTTP_DSA_GRAMMAR_H_INCLUDED_ */
