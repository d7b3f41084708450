
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_API_H_INCLUDED_
#define _NGX_HTTP_DSA_API_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/buf.h"
#include "base/json.h"
#include "context/chat.h"
#include "context/parse.h"
#include "engine/link.h"
#include "ngx_module/ngx_http_dsa_usage.h"
#include "redis_schema/responses.h"

#include "ngx_http_dsa_message.h"


/*
 * An API that clients speak: how a body becomes a chat, and how an answer
 * becomes text.  An API only makes text; nothing is sent here.
 *
 * The calls for one answer are, in this order:
 *
 *     create
 *     read         the body; the API notes the options of the answer
 *     history      if the answer continues a stored one
 *     choice       for each choice besides the first
 *     start        the engine has accepted the prompt, so its tokens are
 *                  known: events that stand before the first token
 *     delta        any number of times: reasoning, content, tool calls
 *     turn         if the answer belongs to a conversation
 *     node         if the answer itself is stored
 *     end          for each choice of a stream but the one that ends last
 *     finish       or fail, or error: the last events, or the whole object
 *     free         always
 *
 * start, delta, logprob and free are called for each choice.  close is called
 * before the text of another choice begins.  finish is called for the choice of
 * a stream that ends last, or for the first choice, which writes all of them.
 *
 * delta, close and ping are called for streams only.  An answer that is not
 * streamed is written by finish from the message that was collected; if the
 * API collects it itself, delta is called for it too.  An API with count set
 * has only create, read, finish or error, and free.
 */

typedef enum {
    NGX_HTTP_DSA_FINISH_STOP = 0,           /* end token, or a stop string */
    NGX_HTTP_DSA_FINISH_LENGTH,             /* max_tokens, context, timeout */
    NGX_HTTP_DSA_FINISH_TOOL_CALLS,
    NGX_HTTP_DSA_FINISHES
} ngx_http_dsa_finish_e;


typedef struct {
    ngx_uint_t                status;       /* of HTTP */
    const char               *code;         /* NULL: the one of the status */
    const char               *param;        /* the field at fault, or NULL */
    ngx_str_t                 id;           /* of the request */

    /* the prompt and the answer exceed the context; context 0: they do not */
    uint32_t                  prompt_tokens;
    uint32_t                  max_tokens;
    uint32_t                  context;
    const char               *message;      /* UTF-8 */
} ngx_http_dsa_api_error_t;


/* What a context strategy has left out of the prompt. */

typedef struct {
    const char               *strategy;
    uint32_t                  messages;
    uint32_t                  calls;        /* of tools, in these messages */

    /* with the strategy "summary" */
    const char               *summary;      /* "made", "remembered", "failed";
                                               NULL: none */
    const char               *failure;      /* why it failed, or NULL */
    ngx_http_dsa_usage_t      usage;        /* of making it; it is part of the
                                               usage of the answer */
} ngx_http_dsa_api_context_t;


#define NGX_HTTP_DSA_API_ID_PREFIX  16


typedef struct ngx_http_dsa_api_s  ngx_http_dsa_api_t;


typedef struct ngx_http_dsa_api_answer_s  ngx_http_dsa_api_answer_t;


/*
 * What all APIs need of an answer; the first member of each API's struct.  An
 * answer with several choices has one such struct for each of them.
 */

struct ngx_http_dsa_api_answer_s {
    const ngx_http_dsa_api_t *api;
    dsa_buf_t                *out;          /* where all text is appended */
    uint32_t                  index;        /* of the choice */
    ngx_http_dsa_api_answer_t *next;        /* the next choice, or NULL */

    /* set before read; an API may encrypt what its clients keep */
    const u_char             *secret;       /* the server's key, 32 bytes */
    const u_char             *digest;       /* of the tenant, 32 bytes */

    /* set before start */
    ngx_str_t                 id;
    ngx_str_t                 model;
    ngx_str_t                 fingerprint;
    time_t                    created;

    /* set before finish */
    ngx_http_dsa_finish_e     reason;
    uint32_t                  stop;         /* 1 and the number of the stop
                                               string that ended the answer;
                                               0: none, or not known */
    int64_t                   cost;         /* 10^-12 of a unit; -1: there are
                                               no prices */
    uint32_t                  counted;      /* tokens of the prompt, if the API
                                               has count set */
    ngx_str_t                 conversation; /* its id; empty: none */
    int64_t                   version;      /* with this turn */
    const char               *unsaved;      /* why the turn is not stored;
                                               NULL: it is */

    const ngx_http_dsa_api_context_t  *context;     /* NULL: nothing is left
                                                       out of the prompt */

    ngx_http_dsa_message_t   *message;      /* NULL: not collected */
    dsa_buf_t                 rows;         /* of the rollout, not yet
                                               written */
    char                      call_id[NGX_HTTP_DSA_CALL_ID_LEN + 1];
                                            /* of the call that began last */

    /* set by read */
    dsa_str_t                 previous;     /* the stored answer that this
                                               one continues; empty: none */
    unsigned                  stream:1;
    unsigned                  thinking:1;
    unsigned                  store:1;      /* the answer itself */
    unsigned                  store_given:1;    /* by the request */
    unsigned                  logprobs:1;
    unsigned                  rollout:1;
};


struct ngx_http_dsa_api_s {
    ngx_str_t                 path;         /* the end of the URI */
    ngx_str_t                 id_prefix;    /* of an answer's id; at most
                                               NGX_HTTP_DSA_API_ID_PREFIX */
    const char               *id_header;    /* a response header for the id of
                                               a request, besides X-Request-Id;
                                               NULL: none */
    const char               *stream_type;  /* content type of a stream */
    const char               *finish_reason[NGX_HTTP_DSA_FINISHES];
    ngx_uint_t                count;        /* 1: the tokens of the prompt are
                                               counted, and that is all */

    /* A zeroed answer of the API's own size; NULL: no memory. */
    ngx_http_dsa_api_answer_t *
              (*create)(ngx_pool_t *pool);

    /*
     * Reads the tree of a body, which lies in arena, as dsa_chat_read() does.
     * DSA_OK, or DSA_ERROR with refusal.
     */
    int       (*read)(ngx_http_dsa_api_answer_t *a, dsa_chat_t *chat,
                      dsa_arena_t *arena, const dsa_json_t *root,
                      const dsa_chat_limits_t *limits,
                      dsa_refusal_t *refusal);

    /*
     * usage has prompt and cached as the engine reported them when it accepted
     * the prompt.  NGX_OK or NGX_ERROR (no memory).
     */
    ngx_int_t (*start)(ngx_http_dsa_api_answer_t *a, ngx_pool_t *pool,
                       const ngx_http_dsa_usage_t *usage);

    /*
     * A piece of the answer.  An API may leave its event open, so that the
     * next piece is added to it; close ends the event.
     */
    void      (*delta)(ngx_http_dsa_api_answer_t *a, dsa_delta_e what,
                       uint32_t call, dsa_str_t text);
    void      (*close)(ngx_http_dsa_api_answer_t *a);

    /* One token's logprob and its n_top alternatives. */
    void      (*logprob)(ngx_http_dsa_api_answer_t *a,
                         const dsa_link_logprob_t *entry,
                         const dsa_link_logprob_t *top, ngx_uint_t n_top,
                         ngx_uint_t reasoning);

    /*
     * What keeps a connection alive between two events.  It may be called
     * before start, because a prompt can wait for long.
     */
    void      (*ping)(ngx_http_dsa_api_answer_t *a);

    void      (*finish)(ngx_http_dsa_api_answer_t *a,
                        ngx_http_dsa_finish_e reason,
                        const ngx_http_dsa_usage_t *usage);

    /* The body of an error; event: as an event in a stream. */
    void      (*error)(dsa_buf_t *out, const ngx_http_dsa_api_error_t *error,
                       ngx_uint_t event);

    void      (*free)(ngx_http_dsa_api_answer_t *a);

    /*
     * Only of an API whose answers can be stored, otherwise NULL.  history
     * inserts what the answers before this one have stored into the chat; turn
     * appends what a conversation stores of the request and the answer, as
     * dsa_schema_split() reads it; node makes the texts of the answer before
     * finish, which live until free.
     */
    int       (*history)(ngx_http_dsa_api_answer_t *a, dsa_chat_t *chat,
                         dsa_arena_t *arena, const dsa_str_t *lists,
                         uint32_t n, const dsa_chat_limits_t *limits,
                         dsa_refusal_t *refusal);
    ngx_int_t (*turn)(ngx_http_dsa_api_answer_t *a,
                      ngx_http_dsa_finish_e reason, dsa_buf_t *entries);
    ngx_int_t (*node)(ngx_http_dsa_api_answer_t *a,
                      ngx_http_dsa_finish_e reason,
                      const ngx_http_dsa_usage_t *usage,
                      dsa_response_t *node);

    /*
     * Only of an API whose answers can have several choices, otherwise NULL.
     * choice copies the first one, which was only read; the caller sets what
     * differs.  NULL: no memory.  end writes the last event of a choice.
     */
    ngx_http_dsa_api_answer_t *
              (*choice)(const ngx_http_dsa_api_answer_t *a, ngx_pool_t *pool);
    void      (*end)(ngx_http_dsa_api_answer_t *a,
                     ngx_http_dsa_finish_e reason);

    /* The end of a stream that fails; NULL: that of error. */
    void      (*fail)(ngx_http_dsa_api_answer_t *a,
                      const ngx_http_dsa_api_error_t *error);

    unsigned    references:1;   /* items of a body may refer to stored ones */
    unsigned    collects:1;     /* delta is called for every answer, and the
                                   API needs no message */
};


/*
 * The callback of the parser; answer is an ngx_http_dsa_api_answer_t.  Collects
 * the piece in the message, and passes it to the API if the answer is a stream.
 */
int ngx_http_dsa_api_delta(void *answer, dsa_delta_e what, uint32_t call,
    dsa_str_t text);


#endif /* _NGX_HTTP_DSA_API_H_INCLUDED_ */
