
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
#include "engine/link_event.h"
#include "redis_schema/progress.h"
#include "ngx_module/core/ngx_http_dsa_usage.h"

#include "ngx_http_dsa_message.h"


/*
 * One HTTP API: its callbacks convert a body to a chat, and an answer to text.
 * They only produce text; the caller sends it.
 *
 * The calls for one answer are, in this order:
 *
 *     create
 *     read         the body; the API notes the options of the answer
 *     history      if the answer continues a stored one
 *     ready        the list of messages is complete and checked
 *     choice       for each choice besides the first
 *     start        the engine has accepted the prompt, so its tokens are
 *                  known: events that stand before the first token
 *     delta        any number of times: reasoning, content, tool calls
 *     turn if the answer belongs to a conversation
 *     node         if the answer itself is stored
 *     end          for each choice of a stream but the one that ends last
 *     finish       or fail, or error: the last events, or the whole object
 *     free         always
 *
 * start, delta, logprob and free are called for each choice.  close is called
 * before the text of another choice begins.  finish is called for the choice of
 * a stream that ends last, or for the first choice, which writes all of them.
 *
 * read, history, ready, turn, node and finish may run in a thread.  They use
 * only the memory of the answers and what they are passed; a->out is not sent
 * meanwhile.
 *
 * delta, close and ping are called for streams only.  finish writes an answer
 * that is not streamed from the collected message.  If collects is set, delta
 * is called for such an answer too.  If count is set, only create, read,
 * finish or error, and free are called.
 */

typedef enum {
    NGX_HTTP_DSA_FINISH_STOP = 0,           /* end token, or a stop string */
    NGX_HTTP_DSA_FINISH_LENGTH,             /* max_tokens, timeout */
    NGX_HTTP_DSA_FINISH_CONTEXT,            /* the context ended before
                                               max_tokens */
    NGX_HTTP_DSA_FINISH_TOOL_CALLS,
    NGX_HTTP_DSA_FINISHES
} ngx_http_dsa_finish_e;


typedef struct {
    ngx_uint_t                status;       /* HTTP status */
    const char               *code;         /* NULL: the default of the
                                               status */
    const char               *param;        /* the field at fault, or NULL */
    ngx_str_t                 id;           /* of the request */

    /* if the prompt exceeds the context; otherwise context is 0 */
    uint32_t                  prompt_tokens;
    uint32_t                  context;
    const char               *message;      /* UTF-8 */
} ngx_http_dsa_api_error_t;


/* What a context strategy has left out of the prompt. */

typedef struct {
    const char               *strategy;
    uint32_t                  messages;
    uint32_t                  calls;        /* tool calls in these messages */

    /* with the strategy "summary" */
    const char               *summary;      /* "made", "remembered", "failed";
                                               NULL: none */
    const char               *failure;      /* why it failed, or NULL */
    ngx_http_dsa_usage_t      usage;        /* of the call that made the
                                               summary; the usage of the answer
                                               includes it */
} ngx_http_dsa_api_context_t;


/* An edit of the request that has changed the prompt, see context/clear.h. */

typedef struct {
    dsa_edit_e                type;
    uint32_t                  parts;        /* tool uses, or turns with
                                               reasoning, that were cleared */
    uint32_t                  tokens;       /* of the prompt, in these parts */
} ngx_http_dsa_api_edit_t;


#define NGX_HTTP_DSA_API_ID_PREFIX  16


typedef struct ngx_http_dsa_api_s  ngx_http_dsa_api_t;


typedef struct ngx_http_dsa_api_answer_s  ngx_http_dsa_api_answer_t;


/*
 * The part of an answer that all APIs have; the first member of each API's
 * struct.  An answer with several choices has one such struct for each choice.
 */

struct ngx_http_dsa_api_answer_s {
    const ngx_http_dsa_api_t *api;
    dsa_buf_t                *out;          /* where all text is appended */
    uint32_t                  index;        /* of the choice */
    ngx_http_dsa_api_answer_t *next;        /* the next choice, or NULL */

    /* set before read; an API may encrypt data that its clients keep */
    const struct ngx_http_dsa_secret_s *secret;     /* the server's keys */
    const u_char             *digest;       /* of the tenant, 32 bytes */

    /* set before start */
    ngx_str_t                 id;
    ngx_str_t                 model;
    ngx_str_t                 fingerprint;
    time_t                    created;

    /* set before turn, node and finish */
    time_t                    ended;

    /* set before finish */
    ngx_http_dsa_finish_e     reason;
    uint32_t                  stop;         /* 1 + the index of the stop string
                                               that ended the answer; 0: none,
                                               or unknown */
    int64_t                   cost;         /* 10^-12 units of currency; -1: no
                                               price */
    uint32_t                  counted;      /* tokens of the prompt, if count
                                               is set */
    ngx_str_t                 conversation; /* its id; empty: none */
    int64_t                   version;      /* of the conversation after this
                                               turn */
    const char               *unsaved;      /* why the turn is not stored; NULL
                                               if it is stored */

    const ngx_http_dsa_api_context_t  *context;     /* NULL: the prompt is
                                                       complete */

    ngx_http_dsa_message_t   *message;      /* NULL: not collected */
    size_t                    collected;    /* bytes, about, that are kept
                                               until finish */
    dsa_buf_t                 rows;         /* of the rollout, not written
                                               yet */
    char                      call_id[NGX_HTTP_DSA_CALL_ID_LEN + 1];
                                            /* of the last tool call */

    /* set by read */
    dsa_str_t                 previous;     /* id of the stored answer that
                                               this one continues; empty:
                                               none */
    unsigned                  stream:1;
    unsigned                  thinking:1;
    unsigned                  store:1;      /* store the answer itself */
    unsigned                  store_given:1;    /* the request has "store" */
    unsigned                  background:1; /* it is computed without its
                                               client; with store only */
    unsigned                  logprobs:1;
    unsigned                  rollout:1;
    unsigned                  question:1;   /* the answer is a summary of the
                                               conversation, see
                                               context/compact.h */

    /*
     * Set before start: a summary that the model wrote for this request, which
     * replaces the conversation in front of the answer, and its usage, which
     * the usage of the answer includes.  If question is set, the end of the
     * summary, which is not of the model.  Otherwise empty.
     */
    dsa_buf_t                 summary;
    ngx_http_dsa_usage_t      summary_usage;

    /* set before start, and before finish if count is set */
    const ngx_http_dsa_api_edit_t  *edits;
    ngx_uint_t                n_edits;
};


struct ngx_http_dsa_api_s {
    ngx_str_t                 path;         /* of the endpoint: the end of a
                                               URI */
    ngx_str_t                 id_prefix;    /* of an answer's id; at most
                                               NGX_HTTP_DSA_API_ID_PREFIX */
    const char               *id_header;    /* a response header for the id of
                                               a request, besides X-Request-Id;
                                               NULL: none */
    const char               *prompt;       /* the field of a request with the
                                               prompt, for its errors */
    const char               *stream_type;  /* content type of a stream */
    const char               *finish_reason[NGX_HTTP_DSA_FINISHES];
    ngx_uint_t                count;        /* 1: only count the tokens of the
                                               prompt */

    /*
     * Allocates a zeroed answer of the API's own struct.  NULL: out of memory.
     */
    ngx_http_dsa_api_answer_t *
              (*create)(ngx_pool_t *pool);

    /*
     * Reads the tree of a body, which is in arena, as dsa_chat_read() does.
     * Returns DSA_OK, or DSA_ERROR with refusal set.
     */
    int       (*read)(ngx_http_dsa_api_answer_t *a, dsa_chat_t *chat,
                      dsa_arena_t *arena, const dsa_json_t *root,
                      const dsa_chat_limits_t *limits,
                      dsa_refusal_t *refusal);

    /* NULL unless the API needs the messages.  Sets a->out->failed. */
    void      (*ready)(ngx_http_dsa_api_answer_t *a, const dsa_chat_t *chat);

    /*
     * usage->prompt and usage->cached are what the engine reported when it
     * accepted the prompt.  NGX_OK, or NGX_ERROR: out of memory.
     */
    ngx_int_t (*start)(ngx_http_dsa_api_answer_t *a, ngx_pool_t *pool,
                       const ngx_http_dsa_usage_t *usage);

    /*
     * Writes a piece of the answer.  An API may leave its event open, so that
     * the next piece is appended to it; close ends the event.
     */
    void      (*delta)(ngx_http_dsa_api_answer_t *a, dsa_delta_e what,
                       uint32_t call, dsa_str_t text);
    void      (*close)(ngx_http_dsa_api_answer_t *a);

    /* Adds the logprob of one token and its n_top alternatives. */
    void      (*logprob)(ngx_http_dsa_api_answer_t *a,
                         const dsa_link_logprob_t *entry,
                         const dsa_link_logprob_t *top, ngx_uint_t n_top,
                         ngx_uint_t reasoning);

    /*
     * Writes text that keeps a connection alive between two events.  It may be
     * called before start, because a prompt can be queued for a long time.
     */
    void      (*ping)(ngx_http_dsa_api_answer_t *a);

    void      (*finish)(ngx_http_dsa_api_answer_t *a,
                        ngx_http_dsa_finish_e reason,
                        const ngx_http_dsa_usage_t *usage);

    /*
     * Writes the body of an error.  If event is set, it is an event of a
     * stream.
     */
    void      (*error)(dsa_buf_t *out, const ngx_http_dsa_api_error_t *error,
                       ngx_uint_t event);

    void      (*free)(ngx_http_dsa_api_answer_t *a);

    /*
     * NULL unless the API can store its answers.  history inserts the stored
     * messages of earlier answers into the chat.  turn appends the messages of
     * the request and the answer that a conversation stores, in the format of
     * dsa_schema_split().  node creates the stored form of the answer before
     * finish; its texts are valid until free.
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
     * NULL unless the API can store its answers.  Before start: open creates
     * what is stored while the answer is in progress; its texts are valid until
     * free.  queued writes what the client gets of an answer in the background.
     */
    ngx_int_t (*open)(ngx_http_dsa_api_answer_t *a, dsa_progress_t *progress);
    void      (*queued)(ngx_http_dsa_api_answer_t *a, dsa_buf_t *out);

    /*
     * NULL unless answers of the API can have several choices.  choice copies
     * the first choice, for which only read was called; the caller sets the
     * members that differ.  It returns NULL if there is no memory.  end writes
     * the last event of a choice.
     */
    ngx_http_dsa_api_answer_t *
              (*choice)(const ngx_http_dsa_api_answer_t *a, ngx_pool_t *pool);
    void      (*end)(ngx_http_dsa_api_answer_t *a,
                     ngx_http_dsa_finish_e reason);

    /*
     * Writes the end of a stream that fails.  NULL: error is called instead.
     */
    void      (*fail)(ngx_http_dsa_api_answer_t *a,
                      const ngx_http_dsa_api_error_t *error);

    unsigned    references:1;   /* items of a body may refer to stored items */
    unsigned    collects:1;     /* delta is called for every answer, and
                                   message is not needed */
};


/* Returns 1 if an answer that ends for this reason is not complete. */

static inline ngx_uint_t
ngx_http_dsa_api_cut(ngx_http_dsa_finish_e reason)
{
    return reason == NGX_HTTP_DSA_FINISH_LENGTH
           || reason == NGX_HTTP_DSA_FINISH_CONTEXT;
}


/*
 * The callback of the output parser.  answer is an ngx_http_dsa_api_answer_t.
 * Adds the piece to the collected message, and passes it to the API if the
 * answer is a stream or the API collects its answers.
 */
int ngx_http_dsa_api_delta(void *answer, dsa_delta_e what, uint32_t call,
    dsa_str_t text);


#endif /* _NGX_HTTP_DSA_API_H_INCLUDED_ */
