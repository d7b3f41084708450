
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_CONVERSATIONS_BODY_H_INCLUDED_
#define _NGX_HTTP_DSA_CONVERSATIONS_BODY_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "base/arena.h"
#include "base/buf.h"


/*
 * Reads the body of POST conversations: {"messages": [...]}, {} or nothing.
 * messages: an empty buffer of the caller, which gets the text that
 * dsa_schema_split() reads.  arena: for the tree of the body.  NGX_AGAIN: the
 * request goes on; any other value: the result to finalize the request with.
 */
ngx_int_t ngx_http_dsa_conversations_read_body(ngx_http_request_t *r,
    dsa_arena_t *arena, dsa_buf_t *messages);


#endif /* _NGX_HTTP_DSA_CONVERSATIONS_BODY_H_INCLUDED_ */
