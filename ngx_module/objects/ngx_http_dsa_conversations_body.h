
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

#include "ngx_module/core/ngx_http_dsa_item_id.h"
#include "ngx_module/core/ngx_http_dsa_secret.h"
#include "ngx_http_dsa_object.h"


/*
 * The bodies of POST requests.  The functions run as work of the object, see
 * ngx_http_dsa_work(), and return NGX_OK, or NGX_ERROR with its failure.  bufs:
 * the body.  arena: for its tree.  entries and metadata are empty buffers of
 * the caller; entries is filled in the format of dsa_schema_split(), metadata
 * with a JSON object.
 */

/* What is needed to read the items of a body and to make their ids. */

typedef struct {
    const ngx_http_dsa_secret_t  *secret;   /* keys of the server */
    const u_char                 *digest;   /* of the tenant */
    const u_char                 *owner;    /* the NGX_HTTP_DSA_ITEM_OWNER
                                               digits of the conversation's
                                               id */
    char                          id[NGX_HTTP_DSA_ITEM_ID + 1];
                                            /* id that was made last */
} ngx_http_dsa_conversations_source_t;


typedef struct {
    ngx_http_dsa_object_t                *object;
    const ngx_chain_t                    *bufs;
    dsa_arena_t                          *arena;
    ngx_http_dsa_conversations_source_t  *source;
    dsa_buf_t                            *entries;
    dsa_buf_t                            *metadata;
} ngx_http_dsa_conversations_body_t;


/* {"items": [...]} or {"messages": [...]}, metadata; {} or nothing. */
ngx_int_t ngx_http_dsa_conversations_read_create(
    const ngx_http_dsa_conversations_body_t *body);

/* {"items": [...]} */
ngx_int_t ngx_http_dsa_conversations_read_items(
    const ngx_http_dsa_conversations_body_t *body);

/* {"metadata": {...}} */
ngx_int_t ngx_http_dsa_conversations_read_update(
    const ngx_http_dsa_conversations_body_t *body);

/* Returns the list of entries, in the arena.  NULL: out of memory. */
dsa_str_t *ngx_http_dsa_conversations_split(dsa_arena_t *arena,
    const dsa_buf_t *entries, uint32_t *n);


#endif /* _NGX_HTTP_DSA_CONVERSATIONS_BODY_H_INCLUDED_ */
