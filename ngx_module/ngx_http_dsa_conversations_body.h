
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

#include "ngx_http_dsa_item_id.h"


/*
 * The bodies of POST requests.  The functions return NGX_DECLINED if the body
 * is valid, or else the result to finalize the request with.  arena: for the
 * tree of the body.  entries and metadata are empty buffers of the caller;
 * entries is filled in the format of dsa_schema_split(), metadata with a JSON
 * object.
 */

/* What is needed to read the items of a body and to make their ids. */

typedef struct {
    const u_char             *secret;       /* key of the server */
    const u_char             *digest;       /* of the tenant */
    const u_char             *owner;        /* the NGX_HTTP_DSA_ITEM_OWNER
                                               digits of the conversation's
                                               id */
    char                      id[NGX_HTTP_DSA_ITEM_ID + 1];
                                            /* id that was made last */
} ngx_http_dsa_conversations_source_t;


/* {"items": [...]} or {"messages": [...]}, metadata; {} or nothing. */
ngx_int_t ngx_http_dsa_conversations_read_create(ngx_http_request_t *r,
    dsa_arena_t *arena, ngx_http_dsa_conversations_source_t *source,
    dsa_buf_t *entries, dsa_buf_t *metadata);

/* {"items": [...]} */
ngx_int_t ngx_http_dsa_conversations_read_items(ngx_http_request_t *r,
    dsa_arena_t *arena, ngx_http_dsa_conversations_source_t *source,
    dsa_buf_t *entries);

/* {"metadata": {...}} */
ngx_int_t ngx_http_dsa_conversations_read_update(ngx_http_request_t *r,
    dsa_arena_t *arena, dsa_buf_t *metadata);

/* Returns the list of entries, in the arena.  NULL: out of memory. */
dsa_str_t *ngx_http_dsa_conversations_split(dsa_arena_t *arena,
    const dsa_buf_t *entries, uint32_t *n);


#endif /* _NGX_HTTP_DSA_CONVERSATIONS_BODY_H_INCLUDED_ */
