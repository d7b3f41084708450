
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_SUMMARY_H_INCLUDED_
#define _NGX_HTTP_DSA_SUMMARY_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "context/parse.h"
#include "context/summary.h"

#include "ngx_http_dsa_failure.h"
#include "ngx_http_dsa_submit.h"
#include "ngx_http_dsa_usage_record.h"


/*
 * Has the model write the summary of a long history, before the chat itself is
 * submitted.  The call is that of the request's usage record, one after the
 * other, so that its tokens are charged like those of the answer, and a client
 * that leaves cancels it.  The summary is greedy, without reasoning and without
 * what constrains the answer.  It may take half of the time that the request
 * has left.
 */

typedef struct {
    /* set by the owner */
    ngx_http_request_t           *request;
    ngx_http_dsa_submit_t        *submit;   /* of the chat */
    ngx_http_dsa_usage_record_t  *record;   /* its call has ended */
    ngx_http_dsa_failure_t       *failure;

    /*
     * Called once, at once or later.  NGX_OK: text is complete; NGX_DECLINED:
     * there is no summary because of why; NGX_ERROR with a failure: the
     * request has no time left.  The request may be finalized in it.
     */
    void                        (*handler)(void *data, ngx_int_t rc);
    void                         *data;

    /* the result */
    dsa_buf_t                     text;     /* the content of a message: the
                                               summary behind its heading */
    ngx_http_dsa_usage_t          usage;    /* what it was charged with */
    const char                   *why;      /* static */

    const dsa_window_t           *replay;
    dsa_str_t                     previous;
    uint32_t                      dropped;  /* rounds that its prompt lacks */

    ngx_http_dsa_submit_t         attempt;
    ngx_http_dsa_failure_t        refused;  /* of the attempt */
    dsa_parse_t                  *parser;   /* NULL: not accepted */
    ngx_http_dsa_call_pt          call_handler;     /* of the record's call, */
    void                         *call_data;        /* before and after this */
    ngx_event_t                   timer;
    unsigned                      cancelled:1;
    unsigned                      retry:1;  /* another engine may */
    unsigned                      ended:1;  /* the call has */
} ngx_http_dsa_summary_t;


/*
 * Makes a summary of the rounds that left at the last overflow of a replay.
 * previous: the content of the message with an earlier summary, which stands
 * for the first "dropped" rounds; both live until the handler is called.
 */
void ngx_http_dsa_summary_start(ngx_http_dsa_summary_t *sum,
    const dsa_window_t *replay, dsa_str_t previous, uint32_t dropped);

/*
 * Frees what a summary has, and ensures that its handler is not called.  The
 * owner of the record cancels the call.
 */
void ngx_http_dsa_summary_detach(ngx_http_dsa_summary_t *sum);


#endif /* _NGX_HTTP_DSA_SUMMARY_H_INCLUDED_ */
