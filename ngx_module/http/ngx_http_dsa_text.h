
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_TEXT_H_INCLUDED_
#define _NGX_HTTP_DSA_TEXT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/str.h"


/*
 * Copies text of an engine or a client for a log, a header or a label: control
 * characters become spaces, and bytes that are not UTF-8 become question
 * marks.  Returns the length, at most len and at most size.  A character that
 * does not fit is left out.  out may be text.
 */
size_t ngx_http_dsa_printable(u_char *out, size_t size, const u_char *text,
    size_t len);

/* Copies text to pool; empty text becomes a null string. */
ngx_int_t ngx_http_dsa_copy(ngx_pool_t *pool, ngx_str_t *to,
    const dsa_str_t *from);


#endif /* _NGX_HTTP_DSA_TEXT_H_INCLUDED_ */
