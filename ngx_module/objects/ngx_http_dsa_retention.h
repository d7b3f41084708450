
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_RETENTION_H_INCLUDED_
#define _NGX_HTTP_DSA_RETENTION_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "context/chat.h"
#include "context/sampled.h"

#include "ngx_module/http/ngx_http_dsa_work.h"
#include "ngx_module/redis/ngx_http_dsa_redis.h"


/*
 * Reasoning retention.  The text of an answer with tool calls is stored in
 * Redis as the model sampled it.  If the client leaves reasoning out of this
 * answer when it sends the results of the calls, the answer is restored from
 * Redis.
 */

typedef enum {
    NGX_HTTP_DSA_RETENTION_OFF = 0,     /* nothing is stored or restored */
    NGX_HTTP_DSA_RETENTION_ON,          /* what cannot be restored stays
                                           missing */
    NGX_HTTP_DSA_RETENTION_STRICT       /* reasoning that cannot be restored
                                           is an error */
} ngx_http_dsa_retention_e;


/*
 * Called in the context of the request when its chat is complete.  rc: NGX_OK,
 * or NGX_ERROR with the failure that was passed to restore.
 */
typedef void (*ngx_http_dsa_retention_pt)(ngx_http_request_t *r,
    ngx_int_t rc);


/* The retention of one request.  Zero it and set the members up to id. */

typedef struct {
    ngx_uint_t                      mode;
    ngx_msec_t                      ttl;
    ngx_http_dsa_redis_t           *redis;  /* NULL: the same as mode off */
    ngx_str_t                       tenant; /* empty: the same */
    ngx_str_t                       id;     /* of the request, for logs */

    /* while messages are restored */
    ngx_http_dsa_work_t            *work;
    ngx_http_dsa_redis_command_t   *command;    /* NULL: no reply is expected */
    ngx_event_t                     timer;
    ngx_http_dsa_retention_pt       handler;
    dsa_chat_t                     *chat;
    const dsa_family_t             *family;
    size_t                          bytes;  /* of the chat */
    dsa_str_t                      *keys;   /* of the messages in Redis */
    uint32_t                       *wanted; /* indices of messages */
    uint32_t                        n_wanted;
    uint32_t                        max_wanted;
    struct ngx_http_dsa_retention_answers_s  *answers;

    dsa_arena_t                    *arena;  /* of what was restored */
    uint64_t                        restored;   /* restored messages */

    dsa_sampled_writer_t            sampled;    /* of the answer */
    unsigned                        writing:1;  /* sampled is used */
} ngx_http_dsa_retention_t;


/*
 * Restores messages of the current tool round of a chat of so many bytes, from
 * answers of models of this family.  The handler is called at once, or later
 * unless the request ends before; Redis has its timeout for the reply.  The
 * chat must live until then; restored texts are in rt->arena.
 */
void ngx_http_dsa_retention_restore(ngx_http_dsa_retention_t *rt,
    ngx_http_dsa_work_t *work, dsa_chat_t *chat, const dsa_family_t *family,
    size_t bytes, ngx_http_dsa_retention_pt handler);

/*
 * Returns 1 if the answer to this chat is to be recorded: then feed
 * rt->sampled with it.  Answers to chats without tools are not recorded.
 */
ngx_uint_t ngx_http_dsa_retention_record(ngx_http_dsa_retention_t *rt,
    const dsa_chat_t *chat);

/* Prepares other, which is zeroed, for another answer to the chat of rt. */
void ngx_http_dsa_retention_other(ngx_http_dsa_retention_t *other,
    const ngx_http_dsa_retention_t *rt);

/*
 * Call it when the answer is complete and has tool calls.  Stores it under
 * the id of a call, and does not wait for Redis.
 */
void ngx_http_dsa_retention_save(ngx_http_dsa_retention_t *rt,
    const char *call_id);

/* Frees the arena.  Call it when an engine has accepted the prompt. */
void ngx_http_dsa_retention_free_arena(ngx_http_dsa_retention_t *rt);

/* Frees the retention at the end of the request. */
void ngx_http_dsa_retention_free(ngx_http_dsa_retention_t *rt);


#endif /* _NGX_HTTP_DSA_RETENTION_H_INCLUDED_ */
