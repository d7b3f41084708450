
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_SUBMIT_H_INCLUDED_
#define _NGX_HTTP_DSA_SUBMIT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "context/chat.h"
#include "context/family.h"
#include "context/format.h"
#include "redis_schema/keys.h"

#include "ngx_module/core/ngx_http_dsa_failure.h"
#include "ngx_module/engine/ngx_http_dsa_slots.h"
#include "ngx_module/engine/ngx_http_dsa_pool.h"
#include "ngx_module/http/ngx_http_dsa_identity.h"


/*
 * The submission of a prompt: the engines of the pool are tried one after
 * another, until one accepts the prompt.  Then the prompt is freed.
 *
 * The prompt of a request with several choices is submitted for each choice.
 * The seed of a choice is that of the request plus the index of the choice, so
 * a client can repeat a single choice.
 */

typedef struct {
    /* set by the owner */
    ngx_http_dsa_pool_t      *pool;
    ngx_http_dsa_waiter_t     waiter;       /* for a first hello */
    ngx_str_t                 model;
    const char               *param;        /* the field with the prompt, for
                                               errors */
    ngx_str_t                 id;           /* for the engine's log; empty:
                                               none */
    ngx_str_t                 trace;        /* the client's names for it, */
    ngx_str_t                 client;       /*   for the same log; empty: none
                                                 (ngx_http_dsa_trace.h) */
    ngx_msec_t                deadline;     /* ngx_current_msec */
    uint64_t                  seed;         /* if the client gave none */
    u_char                    digest[NGX_HTTP_DSA_DIGEST_LEN];
    dsa_arena_t              *arena;        /* tree of the body, the chat */
    dsa_arena_t              *work;         /* stored messages, the prompt */
    dsa_chat_t               *chat;         /* in arena */
    const dsa_family_t       *family;       /* of the pool's engines, see
                                               ngx_http_dsa_submit_family() */
    size_t                    bytes;        /* of the body and of what was
                                               loaded for it */
    dsa_format_t              format;       /* of the answer; its spec is in
                                               arena */
    uint32_t                  weight;       /* of the key, in fair sharing */
    dsa_key_priority_e        priority;
    unsigned                  private:1;    /* the prefix is not shared */
    unsigned                  count:1;      /* COUNT is sent, not SUBMIT */
    unsigned                  whole:1;      /* an answer below max_tokens is
                                               useless: the request is refused
                                               if no context has room for all
                                               of them */
    unsigned                  reasons:1;    /* the answer begins with
                                               reasoning; set with the
                                               prompt */

    /* set by the owner for each choice */
    uint32_t                  index;        /* of the choice */
    uint64_t                  tried;        /* a bit for each engine */

    dsa_prompt_t              prompt;       /* in work */
    ngx_http_dsa_field_t     *fields;       /* in work */
    uint32_t                  n_fields;
    uint32_t                  n_count;      /* of them, also of a COUNT */

    dsa_prompt_keys_t           *keys;      /* in work; NULL if the pool has
                                               one engine, or private or count
                                               is set */
    ngx_http_dsa_route_e      result;       /* of the engine tried last */
    ngx_str_t                 route;        /* name of result; empty: no
                                               keys */

    dsa_link_submit_t         head;         /* as it was sent last */
    uint64_t                  needed;       /* tokens of context, at least */
    uint32_t                  max_tokens;   /* of the request, or the default */
    uint32_t                  context;      /* of the engine tried last */
    uint32_t                  largest;      /* context of an engine that has
                                               the model */
    uint32_t                  counted;      /* tokens of the prompt; 0: no
                                               engine has counted them */
    unsigned                  fitted:1;     /* any engine may reduce max_tokens
                                               to what the prompt leaves */
    unsigned                  more:1;       /* counted is a lower bound */
    unsigned                  refused:1;    /* some engine has no room now */
    unsigned                  crowded:1;    /* because of requests of this
                                               tenant */
    unsigned                  too_long:1;   /* for the ring of some engine */
} ngx_http_dsa_submit_t;


/* ms after the deadline in which the engine can still report its usage */
#define NGX_HTTP_DSA_GRACE        1000


/*
 * Sets the family, which is known since the first hello of an engine of the
 * pool.  NGX_OK; NGX_AGAIN: call it again when the waiter's handler is called;
 * NGX_ERROR: no engine is there, and the failure is set.
 */
ngx_int_t ngx_http_dsa_submit_family(ngx_http_dsa_submit_t *submit,
    ngx_http_dsa_failure_t *failure);

/*
 * Encodes the chat, which dsa_chat_check() has accepted.  NGX_OK, or NGX_ERROR
 * with a failure.  This and the next function may run in a thread.
 */
ngx_int_t ngx_http_dsa_submit_encode(ngx_http_dsa_submit_t *submit,
    ngx_http_dsa_failure_t *failure);

/*
 * The same for a prompt that is already encoded; the prompt and its texts are
 * in work.
 */
ngx_int_t ngx_http_dsa_submit_prompt(ngx_http_dsa_submit_t *submit,
    ngx_http_dsa_failure_t *failure);

/*
 * Sets the failure if the prompt could not be encoded because of err; work is
 * the arena that it was to be in.
 */
void ngx_http_dsa_submit_unencoded(const ngx_http_dsa_submit_t *submit,
    const dsa_err_t *err, ngx_http_dsa_failure_t *failure);

/*
 * Submits the prompt to the next engine.  NGX_OK: it has a session;
 * NGX_AGAIN: submit again when the waiter's handler is called; NGX_ERROR: no
 * engine can serve the request, and the failure is set.
 */
ngx_int_t ngx_http_dsa_submit(ngx_http_dsa_submit_t *submit,
    ngx_http_dsa_link_request_t *lr, ngx_http_dsa_failure_t *failure);

/*
 * Sets Retry-After for a failure that is set next, because the queues are full:
 * when the first of them will have begun what waits there now.
 */
void ngx_http_dsa_submit_later(const ngx_http_dsa_submit_t *submit,
    ngx_http_dsa_failure_t *failure);

/* Sets the failure of a request whose tenant fills its part of the queue. */
void ngx_http_dsa_submit_crowded(const ngx_http_dsa_submit_t *submit,
    ngx_http_dsa_failure_t *failure);

/*
 * Call it when an engine has ended a request with error before it accepted the
 * prompt.  NGX_OK: submit the prompt again, to another engine; NGX_DECLINED:
 * another engine would not help.
 */
ngx_int_t ngx_http_dsa_submit_rejected(ngx_http_dsa_submit_t *submit,
    const dsa_link_failure_t *error);

/*
 * Sets the failure after an engine has refused the prompt, if the client can
 * change the reason: the structure of the answer, its constraints, its rollout,
 * or a suffix, which needs control tokens that not every tokenizer has.  The
 * result would be the same from another engine.  error is the record's payload,
 * and text is its text for people; the names of fields are copied to pool.
 */
void ngx_http_dsa_submit_refused(const ngx_http_dsa_submit_t *submit,
    const u_char *error, dsa_str_t text, ngx_pool_t *pool,
    ngx_http_dsa_failure_t *failure);

/* Prepares another prompt of the same request. */
void ngx_http_dsa_submit_copy(ngx_http_dsa_submit_t *to,
    const ngx_http_dsa_submit_t *from);

/* Frees the prompt, and removes the waiter from its queue. */
void ngx_http_dsa_submit_free(ngx_http_dsa_submit_t *submit);


#endif /* _NGX_HTTP_DSA_SUBMIT_H_INCLUDED_ */
