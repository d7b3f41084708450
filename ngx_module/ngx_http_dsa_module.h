
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_MODULE_H_INCLUDED_
#define _NGX_HTTP_DSA_MODULE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "base/json.h"
#include "context/encode.h"
#include "context/parse.h"

#include "ngx_http_dsa_conf.h"
#include "ngx_http_dsa_identity.h"
#include "ngx_http_dsa_metrics.h"
#include "api/ngx_http_dsa_openai.h"
#include "ngx_http_dsa_session.h"
#include "ngx_http_dsa_store.h"
#include "ngx_http_dsa_stream.h"


#define NGX_HTTP_DSA_ID_LEN       (sizeof("chatcmpl-") - 1 + 32)

/* ms after dsa_timeout, for the engine to report what it has computed */
#define NGX_HTTP_DSA_GRACE        1000


/*
 * What a request is charged with.  It lives outside of the request's memory,
 * because the engine reports on a request that its client has left, too.
 */

typedef struct {
    ngx_http_dsa_call_t       call;         /* data: the ctx, or NULL */
    ngx_event_t               linger;       /* without a ctx */
    ngx_http_dsa_redis_t     *redis;
    ngx_http_dsa_usage_t      usage;
    uint32_t                  prompt_tokens;    /* of ACCEPTED */
    uint32_t                  cached_tokens;
    size_t                    model_len;
    u_char                    model[64];
    u_char                    tenant[NGX_HTTP_DSA_TENANT_LEN];
    u_char                    id[NGX_HTTP_DSA_ID_LEN];
    unsigned                  recorded:1;   /* without a ctx: in the ledger */
} ngx_http_dsa_account_t;


struct ngx_http_dsa_ctx_s {
    ngx_http_request_t       *request;
    ngx_http_dsa_pool_t      *pool;
    ngx_http_dsa_account_t   *account;      /* NULL: it is finalized */
    ngx_http_dsa_usage_t      usage;        /* from then on */
    ngx_queue_t               waiting;      /* in pool->waiting */
    ngx_event_t               timer;        /* keep-alive and deadline */

    /* until the engine has accepted the prompt */

    dsa_arena_t              *arena;        /* the body's tree, the chat */
    dsa_arena_t              *work;         /* stored messages, the prompt */
    dsa_chat_t               *chat;         /* in arena */
    dsa_prompt_t              prompt;
    ngx_http_dsa_field_t     *fields;       /* of the submit; in work */
    uint32_t                  n_fields;
    uint64_t                  seed;         /* of the sampling noise */
    uint64_t                  tried;        /* a bit an engine of the pool */
    uint64_t                  needed;       /* tokens of context, at least */
    uint32_t                  max_tokens;
    uint32_t                  context;      /* of the engine asked last */
    uint32_t                  counted;      /* tokens of the prompt; 0: none
                                               of the engines has counted */
    int64_t                   version;      /* of the conversation */
    dsa_buf_t                 messages;     /* its new messages, as
                                               dsa_schema_split() reads them */

    dsa_parse_t              *parser;
    ngx_http_dsa_openai_t     openai;
    ngx_http_dsa_stream_t     stream;

    ngx_msec_t                start;
    ngx_msec_t                deadline;
    ngx_msec_t                first_token;
    ngx_msec_t                last_token;
    ngx_msec_t                last_write;

    u_char                    digest[NGX_HTTP_DSA_DIGEST_LEN];
    ngx_str_t                 tenant;       /* empty: it has none */
    ngx_str_t                 id;
    ngx_str_t                 model;
    ngx_str_t                 conversation;

    ngx_uint_t                status;       /* of the failure, 0: none */
    const char               *param;        /* the field at fault */
    const char               *code;         /* of the error; NULL: that of
                                               its status */
    const char               *finish;       /* finish_reason */
    char                      failure[400];
    ngx_uint_t                reason;       /* ngx_http_dsa_cancel_e */

    unsigned                  queued:1;     /* in pool->waiting */
    unsigned                  accepted:1;
    unsigned                  begun:1;      /* first_token is set */
    unsigned                  done:1;       /* the answer is complete */
    unsigned                  expired:1;    /* dsa_timeout is over, the wait
                                               of NGX_HTTP_DSA_GRACE runs */
    unsigned                  fitted:1;     /* max_tokens: what is left */
    unsigned                  more:1;       /* the prompt has more tokens than
                                               were counted */
    unsigned                  refused:1;    /* an engine has no room now */
    unsigned                  too_long:1;   /* for the ring of an engine */
    unsigned                  retry:1;      /* to be submitted elsewhere */
    unsigned                  saving:1;     /* the conversation is written */
    unsigned                  recorded:1;   /* in the ledger */
    unsigned                  ended:1;      /* its last words are pending */
};


/* ngx_http_dsa_handler.c */

ngx_int_t ngx_http_dsa_handler(ngx_http_request_t *r);

/* Goes on with a request that waited for a session. */
void ngx_http_dsa_resume(ngx_http_dsa_ctx_t *ctx);

/* Submits a prompt to the next engine; the request may be gone then. */
void ngx_http_dsa_submit(ngx_http_dsa_ctx_t *ctx);


/* ngx_http_dsa_answer.c */

/* What the link calls for each event of a request's call. */
void ngx_http_dsa_event_handler(ngx_http_dsa_call_t *call,
    ngx_http_dsa_event_e event, const void *data);

/* Brings out what has come for a request; finalizes it at the end. */
void ngx_http_dsa_flush(ngx_http_dsa_ctx_t *ctx);

/*
 * Notes why a request cannot go on, as an HTTP status, the field at fault (or
 * NULL; not copied) and a text.  The first one counts.
 */
void ngx_http_dsa_set_failure(ngx_http_dsa_ctx_t *ctx, ngx_uint_t status,
    const char *param, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Ends a request with its failure: as HTTP, or in the stream. */
void ngx_http_dsa_fail(ngx_http_dsa_ctx_t *ctx);

/* Keep-alives and the deadline. */
void ngx_http_dsa_set_timer(ngx_http_dsa_ctx_t *ctx);
void ngx_http_dsa_timer_handler(ngx_event_t *ev);

/* Of the request. */
void ngx_http_dsa_cleanup(void *data);


#endif /* _NGX_HTTP_DSA_MODULE_H_INCLUDED_ */
