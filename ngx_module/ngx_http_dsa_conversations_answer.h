
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_CONVERSATIONS_ANSWER_H_INCLUDED_
#define _NGX_HTTP_DSA_CONVERSATIONS_ANSWER_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "redis_schema/conversations.h"

#include "ngx_http_dsa_conversations_body.h"
#include "ngx_http_dsa_redis.h"
#include "ngx_http_dsa_responses_list.h"


/* What a URI names. */

typedef enum {
    NGX_HTTP_DSA_CONVERSATIONS_ALL = 0,
    NGX_HTTP_DSA_CONVERSATIONS_ONE,
    NGX_HTTP_DSA_CONVERSATIONS_ITEMS,
    NGX_HTTP_DSA_CONVERSATIONS_ITEM
} ngx_http_dsa_conversations_what_e;


typedef struct {
    ngx_http_request_t                 *request;
    ngx_http_dsa_redis_t               *redis;
    ngx_http_dsa_conversations_what_e   what;
    dsa_str_t                           tenant;
    dsa_str_t                           id;         /* of a POST to the
                                                       collection: a new one */
    dsa_str_t                           item;
    ngx_http_dsa_responses_page_t       page;
    ngx_http_dsa_conversations_source_t source;
    time_t                              created;
    dsa_arena_t                        *arena;
    dsa_buf_t                           entries;    /* of a POST */
    dsa_buf_t                           metadata;   /* the same */
    ngx_http_dsa_redis_call_t          *call;       /* NULL: none waits */
    u_char                              new_id[DSA_SCHEMA_ID_LEN];
    unsigned                            edited:1;   /* the reply is that of an
                                                       edit */
} ngx_http_dsa_conversations_t;


/*
 * Answers a request by the reply of Redis to its command.  NGX_DECLINED: *cmd,
 * in the arena of ctx, is to be sent, and its reply answers the request.
 * Otherwise the result to finalize the request with, which is NGX_AGAIN if
 * a part of the answer could not be sent yet.
 */
ngx_int_t ngx_http_dsa_conversations_answer(
    ngx_http_dsa_conversations_t *ctx, redisReply *reply,
    dsa_schema_command_t *cmd);


#endif /* _NGX_HTTP_DSA_CONVERSATIONS_ANSWER_H_INCLUDED_ */
