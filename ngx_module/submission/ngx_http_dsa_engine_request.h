
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_ENGINE_REQUEST_H_INCLUDED_
#define _NGX_HTTP_DSA_ENGINE_REQUEST_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "base/buf.h"
#include "engine/link_event.h"

#include "ngx_module/account/ngx_http_dsa_usage_record.h"
#include "ngx_module/core/ngx_http_dsa_failure.h"
#include "ngx_module/engine/ngx_http_dsa_slots.h"
#include "ngx_http_dsa_resume.h"
#include "ngx_http_dsa_submit.h"


/*
 * A request to an engine, and its only handler of the engine's events.  It is
 * submitted to one engine after another until one accepts it.  If that engine
 * is lost or is stopped, another one continues the answer; after a loss this
 * is done once only, so that a prompt that makes engines crash cannot end all
 * of them.  Each event is counted as usage before the owner gets it.
 *
 * While the ring of a session is read, an owner only changes its state:
 * nothing is sent and no HTTP request is finalized.  When the ring is empty,
 * flush is called once for each request that had an event.  It sends and
 * finalizes.  So one wake-up causes one write to each client, and no request
 * is freed while the ring is read.
 */

typedef struct ngx_http_dsa_engine_request_s   ngx_http_dsa_engine_request_t;
typedef struct ngx_http_dsa_engine_requests_s  ngx_http_dsa_engine_requests_t;


typedef enum {
    NGX_HTTP_DSA_ENGINE_STOP = 0,   /* the answer is complete */
    NGX_HTTP_DSA_ENGINE_LENGTH,     /* max_tokens ended it */
    NGX_HTTP_DSA_ENGINE_CONTEXT,    /* the end of the context did, before
                                       max_tokens */
    NGX_HTTP_DSA_ENGINE_COUNTED,    /* the prompt was counted */
    NGX_HTTP_DSA_ENGINE_LATE,       /* the deadline is over, or the owner has
                                       cancelled the request */
    NGX_HTTP_DSA_ENGINE_CANCELLED,  /* the engine has cancelled it, or has
                                       ended it before it accepted it */
    NGX_HTTP_DSA_ENGINE_FAILED,     /* the engine has refused it; the failure
                                       is set */
    NGX_HTTP_DSA_ENGINE_LOST        /* the engine is gone; the failure is
                                       set */
} ngx_http_dsa_engine_end_e;


/*
 * An answer moves after the deaths of so many engines, and no more if one dies
 * within so many tokens of the place where the last one died: a step has at
 * most 8 tokens of an answer, so two engines that die in the same step are at
 * most 7 tokens apart.
 */

#define NGX_HTTP_DSA_ENGINE_DEATHS  4
#define NGX_HTTP_DSA_ENGINE_PLACE   (DSA_LINK_DRAFTS + 1)


/* What an owner is called with; a callback that is not used is NULL. */

typedef struct {
    const char               *name;         /* for the debug log; NULL: nothing
                                               is logged there */
    const char               *refused;      /* what an engine refuses or ends,
                                               before the id of the request, in
                                               the log; NULL: this is not
                                               logged */
    unsigned                  moves:1;      /* another engine may continue the
                                               answer */

    /* The first engine that accepts the prompt; called once. */
    void                    (*accepted)(ngx_http_dsa_engine_request_t *er,
                                        const dsa_link_accepted_t *accepted);

    /* p is the payload behind the header of a checked record. */
    void                    (*tokens)(ngx_http_dsa_engine_request_t *er,
                                      const dsa_link_tokens_t *tokens,
                                      const u_char *p);

    void                    (*rollout)(ngx_http_dsa_engine_request_t *er,
                                       const dsa_str_t *rows);

    /*
     * The request has to be submitted to another engine.  Without this
     * callback, the error that caused it is not logged.
     */
    void                    (*retry)(ngx_http_dsa_engine_request_t *er);

    /* Called once; nothing but flush is called afterwards. */
    void                    (*end)(ngx_http_dsa_engine_request_t *er,
                                   ngx_http_dsa_engine_end_e end);

    /*
     * All records that were in the ring have been reported, or the first hello
     * for which the submission waited has arrived.  If pending is set, the
     * request has to be submitted.  Only this callback may write to the HTTP
     * request or finalize it.
     */
    void                    (*flush)(ngx_http_dsa_engine_request_t *er);
} ngx_http_dsa_engine_owner_t;


struct ngx_http_dsa_engine_request_s {
    ngx_http_dsa_link_request_t         link;
    ngx_http_dsa_usage_part_t           usage;  /* without a record, nothing is
                                                   counted */
    ngx_http_dsa_engine_requests_t     *set;    /* NULL: none */
    ngx_http_dsa_engine_request_t      *next;   /* of set */

    const ngx_http_dsa_engine_owner_t  *owner;
    void                               *data;   /* of the owner */
    ngx_http_request_t                 *request;
    ngx_str_t                          *id;     /* of request, for the log */
    ngx_http_dsa_submit_t              *submit;
    ngx_http_dsa_failure_t             *failure;
    uint32_t                            index;  /* of the choice */

    uint32_t                            counted;    /* tokens of the prompt */
    uint32_t                            stop;   /* as in DONE */
    uint64_t                            tried;  /* a bit for each engine */
    dsa_buf_t                           ids;    /* uint32_t ids of the tokens
                                                   received, for another engine
                                                   to continue */
    size_t                              place;  /* tokens in ids when an
                                                   engine died last */
    uint32_t                            deaths; /* of engines after which it
                                                   moved */
    unsigned                            more:1; /* counted is a lower bound */
    unsigned                            pending:1;  /* it is to be submitted */
    unsigned                            accepted:1; /* by some engine */
    unsigned                            cancelled:1;    /* by the owner: it is
                                                   not submitted again */
    unsigned                            resumes:1;  /* ids has all tokens of
                                                   the answer */
    unsigned                            moved:1;    /* its first engine is
                                                   gone */
    unsigned                            stopped:1;  /* its last engine was
                                                   stopped */
};


/*
 * The requests to engines that a chat is charged with: one for each choice,
 * and their usage.  A set is allocated on its own, because an engine may not
 * end a request.
 */

struct ngx_http_dsa_engine_requests_s {
    ngx_http_dsa_engine_request_t       first;
    ngx_http_dsa_engine_request_t      *others; /* an array, or NULL */
    ngx_http_dsa_usage_record_t         record;
    ngx_http_dsa_resume_t              *resume; /* NULL if the pool has one
                                                   engine, or no request can
                                                   move */
    ngx_event_t                         drain;  /* the time until which the set
                                                   is drained */
    void                              (*drained)(void *data);
    void                               *data;   /* of drained */
    unsigned                            detached:1;
};


/*
 * Prepares a request that is to be submitted.  It has no session.  An owner
 * may follow another one.  r: the HTTP request of a chat.
 */
void ngx_http_dsa_engine_request_init(ngx_http_dsa_engine_request_t *er,
    const ngx_http_dsa_engine_owner_t *owner, void *data,
    ngx_http_request_t *r, ngx_http_dsa_submit_t *submit,
    ngx_http_dsa_failure_t *failure);

/*
 * Submits the request to the next engine.  NGX_OK; NGX_AGAIN: flush is called
 * when it has to be submitted again; NGX_ERROR: no engine can serve it, and the
 * failure is set.
 */
ngx_int_t ngx_http_dsa_engine_request_submit(ngx_http_dsa_engine_request_t *er,
    ngx_http_dsa_failure_t *failure);

/*
 * Cancels a request that may have a session.  The engine ends a cancelled
 * request within one step, and reports the tokens that it has computed.
 */
void ngx_http_dsa_engine_request_cancel(ngx_http_dsa_engine_request_t *er);

/*
 * Cancels a request that may have a session, and that is not charged.  It may
 * be freed then.
 */
void ngx_http_dsa_engine_request_abandon(ngx_http_dsa_engine_request_t *er);


/*
 * Creates the set of a chat, with one request; the parameters are those of
 * ngx_http_dsa_usage_record_init().  NULL: no memory.
 */
ngx_http_dsa_engine_requests_t *ngx_http_dsa_engine_requests_create(
    ngx_http_dsa_redis_t *redis, ngx_str_t *tenant, ngx_str_t *id,
    ngx_log_t *log);

/* Adds n requests for other choices, once.  NGX_OK, or NGX_ERROR. */
ngx_int_t ngx_http_dsa_engine_requests_add(ngx_http_dsa_engine_requests_t *set,
    ngx_uint_t n, ngx_log_t *log);

/* Returns how many requests have not ended. */
ngx_uint_t ngx_http_dsa_engine_requests_live(
    const ngx_http_dsa_engine_requests_t *set);

/*
 * Returns 1 if an engine will report what is charged.  A request that only
 * counts is not charged.
 */
ngx_uint_t ngx_http_dsa_engine_requests_charged(
    const ngx_http_dsa_engine_requests_t *set);

/* Cancels all requests. */
void ngx_http_dsa_engine_requests_cancel(ngx_http_dsa_engine_requests_t *set);

/*
 * Takes all requests from their owners: no callback is called any more, and
 * what the engines report is not charged.
 */
void ngx_http_dsa_engine_requests_leave(ngx_http_dsa_engine_requests_t *set);

/*
 * After the requests were cancelled: takes them from their owners, and writes
 * the usage when the engine has reported the end of the last one, or after ms
 * milliseconds, when tokens count that were received until then.  Then
 * drained(data) is called, which may finalize the HTTP request; never from
 * within this function.  At least one request is live.
 */
void ngx_http_dsa_engine_requests_drain(ngx_http_dsa_engine_requests_t *set,
    ngx_msec_t ms, void (*drained)(void *data), void *data);

/*
 * The chat leaves: usage that is not written is written as it is, and no
 * callback is called any more.  The set is freed when all requests have ended.
 */
void ngx_http_dsa_engine_requests_detach(ngx_http_dsa_engine_requests_t *set);


#endif /* _NGX_HTTP_DSA_ENGINE_REQUEST_H_INCLUDED_ */
