
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_REQUEST_H_INCLUDED_
#define _NGX_HTTP_DSA_REQUEST_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_module/core/ngx_http_dsa_conf.h"
#include "ngx_module/core/ngx_http_dsa_ctx.h"
#include "ngx_module/core/ngx_http_dsa_failure.h"
#include "ngx_module/core/ngx_http_dsa_timer.h"
#include "ngx_module/http/ngx_http_dsa_stream.h"
#include "ngx_module/http/ngx_http_dsa_work.h"
#include "ngx_module/objects/ngx_http_dsa_idempotency.h"
#include "ngx_module/objects/ngx_http_dsa_retention.h"
#include "ngx_module/store/ngx_http_dsa_lease.h"
#include "ngx_module/store/ngx_http_dsa_progress.h"
#include "ngx_module/submission/ngx_http_dsa_engine_request.h"
#include "ngx_module/submission/ngx_http_dsa_submit.h"
#include "ngx_http_dsa_answer.h"
#include "ngx_http_dsa_choices.h"
#include "ngx_http_dsa_compact.h"
#include "ngx_http_dsa_edit.h"
#include "ngx_http_dsa_shutdown.h"
#include "ngx_http_dsa_window.h"


/*
 * The struct of a chat, and its end.  Its parts are structs of other files,
 * which do not include this one.  ngx_http_dsa_chat.c reads and submits a
 * chat, and ngx_http_dsa_events.c handles its events.
 */

typedef struct {
    ngx_str_t                 id;           /* empty: none */
    int64_t                   version;      /* as loaded */
    dsa_buf_t                 messages;     /* new ones, as
                                               dsa_schema_split() reads them */
    ngx_http_dsa_lease_t      lease;
} ngx_http_dsa_conversation_t;


typedef struct ngx_http_dsa_request_s  ngx_http_dsa_request_t;


struct ngx_http_dsa_request_s {
    ngx_http_dsa_ctx_t            ctx;
    ngx_http_request_t           *http;

    ngx_http_dsa_engine_requests_t  *requests;  /* NULL once it is finalized */
    ngx_http_dsa_usage_t          usage;    /* copied from there then */
    int64_t                       cost;     /* the same; -1: no prices */

    ngx_http_dsa_submit_t         submit;
    ngx_http_dsa_answer_t         answer;
    ngx_http_dsa_stream_t         stream;
    ngx_http_dsa_failure_t        failure;
    ngx_http_dsa_timer_t          timer;
    ngx_http_dsa_shutdown_t       shutdown;
    ngx_http_dsa_conversation_t   conversation;
    ngx_http_dsa_edit_t          *edit;     /* NULL: no edits */
    ngx_http_dsa_compact_t       *compact;  /* NULL: no threshold */
    ngx_http_dsa_window_t        *window;   /* NULL: no strategy */
    ngx_http_dsa_retention_t      retention;
    ngx_http_dsa_choices_t        choices;
    ngx_http_dsa_work_t           work;
    ngx_http_dsa_idempotency_t   *idempotency;  /* NULL: none */
    ngx_http_dsa_progress_t      *progress; /* NULL: the answer itself is not
                                               stored */
    size_t                        taken;    /* bytes of stream.pending that
                                               progress has */

    const dsa_json_t             *root;     /* of the body, in submit.arena */
    dsa_refusal_t                *refusal;  /* by the work; the same */
    struct ngx_http_dsa_request_end_s  *end;    /* NULL: not begun */

    ngx_str_t                     asked;    /* the name of the model in the
                                               body, which can be an alias; in
                                               submit.arena, then in the pool
                                               of the HTTP request */
    ngx_str_t                     tenant;   /* empty: none */
    ngx_str_t                     strategy; /* that shortened the prompt;
                                               empty: none */
    ngx_uint_t                    reason;   /* ngx_http_dsa_cancel_e */
    ngx_uint_t                    stage;    /* the next one of the chat */

    unsigned                      queued:1; /* the client of an answer in the
                                               background has its id */
    unsigned                      cancelled:1;  /* by its client, with another
                                               request */
    unsigned                      saving:1; /* the turn or the answer is being
                                               made or stored */
    unsigned                      ended:1;  /* the end is in stream.pending */
    unsigned                      draining:1;   /* its requests to engines were
                                               cancelled, and it goes on when
                                               they have ended */
    unsigned                      freed:1;  /* what only the answer needs */
    unsigned                      leaving:1;    /* it is finalized then, with
                                               rc */
    ngx_int_t                     rc;
};


/*
 * Creates the chat of an HTTP request.  tenant and digest identify its caller.
 * NULL: no memory, or no random bytes.
 */
ngx_http_dsa_request_t *ngx_http_dsa_request_create(ngx_http_request_t *r,
    const ngx_http_dsa_api_t *api, ngx_str_t *tenant, u_char *digest);

/*
 * The chat of an HTTP request; NULL: none, or it is finalized, or will be when
 * its requests to engines have ended.
 */
ngx_http_dsa_request_t *ngx_http_dsa_request_open(ngx_http_request_t *r);

typedef void (*ngx_http_dsa_request_pt)(ngx_http_dsa_request_t *req);


/*
 * Does work on the chat, see ngx_http_dsa_work(): its bytes are those of the
 * chat.  Then calls done, at once or later, or ends the request with its
 * failure.
 */
void ngx_http_dsa_request_work(ngx_http_dsa_request_t *req,
    ngx_http_dsa_stage_e stage, ngx_http_dsa_work_pt run,
    ngx_http_dsa_work_pt done, void *data);

/* Sets the failure to req->refusal. */
void ngx_http_dsa_request_refuse(ngx_http_dsa_request_t *req);

/* Each of these functions may finalize and free the request. */

/* Sends the pending text; if last is set, it is the end of the answer. */
void ngx_http_dsa_request_output(ngx_http_dsa_request_t *req,
    ngx_uint_t last);

/* The handler of events of reading: ends the request when its client left. */
void ngx_http_dsa_request_reading(ngx_http_request_t *r);

/*
 * Ends a request whose client gets nothing more, with rc for
 * ngx_http_finalize_request().  The engine is cancelled at once.  The request
 * is finalized, and so logged, when the engine has reported what it is charged
 * with.
 */
void ngx_http_dsa_request_leave(ngx_http_dsa_request_t *req, ngx_int_t rc);

/*
 * Ends a request with its failure: as an HTTP error, or in the stream, after
 * its requests to engines have ended.
 */
void ngx_http_dsa_request_fail(ngx_http_dsa_request_t *req);

/* Ends a request with the answer of the one that it repeats. */
void ngx_http_dsa_request_replay(ngx_http_dsa_request_t *req,
    dsa_str_t answer);

/* Ends a request whose answer is complete: ledger, conversation, last text. */
void ngx_http_dsa_request_finish(ngx_http_dsa_request_t *req);


/*
 * A response that is stored, while it is in progress: what others can read of
 * it, and how it goes on without its client in the background.  A request
 * without such a response is not changed by these functions.
 */

/*
 * An engine has accepted the prompt.  A client that does not stream gets the
 * response as it is, and both kinds of clients may leave from then on.
 */
void ngx_http_dsa_request_queued(ngx_http_dsa_request_t *req);

/* Keeps the events that are pending; call it before they are sent. */
void ngx_http_dsa_request_events(ngx_http_dsa_request_t *req);

/* Call it before the response is stored, and when it is. */
void ngx_http_dsa_request_store(ngx_http_dsa_request_t *req);
void ngx_http_dsa_request_stored(ngx_http_dsa_request_t *req);

/* Call it however the request ends. */
void ngx_http_dsa_request_progress_end(ngx_http_dsa_request_t *req);


#endif /* _NGX_HTTP_DSA_REQUEST_H_INCLUDED_ */
