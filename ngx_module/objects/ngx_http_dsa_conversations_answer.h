
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_CONVERSATIONS_ANSWER_H_INCLUDED_
#define _NGX_HTTP_DSA_CONVERSATIONS_ANSWER_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "redis_schema/conversations.h"

#include "ngx_module/redis/ngx_http_dsa_redis.h"
#include "ngx_http_dsa_conversations_body.h"
#include "ngx_http_dsa_idempotency.h"
#include "ngx_http_dsa_object.h"
#include "ngx_http_dsa_responses_list.h"


/* What a URI names. */

typedef enum {
    NGX_HTTP_DSA_CONVERSATIONS_ALL = 0,
    NGX_HTTP_DSA_CONVERSATIONS_ONE,
    NGX_HTTP_DSA_CONVERSATIONS_ITEMS,
    NGX_HTTP_DSA_CONVERSATIONS_ITEM
} ngx_http_dsa_conversations_what_e;


typedef struct {
    ngx_http_dsa_object_t               object;     /* of the answer */
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
    ngx_http_dsa_redis_command_t       *command;    /* NULL: none waits */
    u_char                              new_id[DSA_SCHEMA_ID_LEN];
    dsa_schema_command_t                cmd;        /* in arena */
    ngx_str_t                           owner;      /* id of the request */
    ngx_str_t                           account;    /* tenant */
    ngx_http_dsa_idempotency_t         *idempotency;    /* of a POST; NULL:
                                                           none */
    unsigned                            executed:1; /* Redis may have executed
                                                       cmd without a reply */
    unsigned                            more:1;     /* cmd is to be sent */
    unsigned                            edited:1;   /* the reply is that of an
                                                       edit */
} ngx_http_dsa_conversations_t;


/*
 * Makes the answer to a request of the reply of Redis to its command.  data is
 * an ngx_http_dsa_conversations_t.  If more is set then, cmd is to be sent, and
 * its reply answers the request.  It is work of the object and may run in a
 * thread.
 */
void ngx_http_dsa_conversations_answer(void *data);


/* the text of the 507 while Redis has no memory */
extern const char  ngx_http_dsa_conversations_full[];


#endif /* _NGX_HTTP_DSA_CONVERSATIONS_ANSWER_H_INCLUDED_ */
