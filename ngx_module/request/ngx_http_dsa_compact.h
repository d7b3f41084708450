
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_COMPACT_H_INCLUDED_
#define _NGX_HTTP_DSA_COMPACT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_module/core/ngx_http_dsa_failure.h"
#include "ngx_module/http/ngx_http_dsa_work.h"
#include "ngx_module/submission/ngx_http_dsa_engine_request.h"
#include "ngx_http_dsa_count.h"
#include "ngx_http_dsa_summary.h"


/*
 * Compacts a conversation whose prompt has more tokens than its threshold: the
 * model writes a summary, which replaces all messages but those of the system.
 * An engine counts the prompt, unless it has at most as many bytes as the
 * threshold has tokens.  A summary that fails is an error of the request,
 * because without it the client's next request would have the same length.
 */

typedef struct {
    /* set by the owner */
    ngx_http_request_t            *request;
    ngx_http_dsa_work_t           *work;
    ngx_http_dsa_submit_t         *submit;  /* its chat has a threshold */
    ngx_http_dsa_engine_requests_t  *requests;
    ngx_http_dsa_failure_t        *failure;

    /*
     * Called once, at once or later.  NGX_OK: the messages of submit->chat are
     * those to encode, and are valid until ngx_http_dsa_compact_free();
     * NGX_ERROR with a failure.  It may finalize the request.
     */
    void                         (*handler)(void *data, ngx_int_t rc);
    void                          *data;

    /*
     * The result: the summary; empty: the prompt is within the threshold.  If
     * the chat has become the question for the summary, only the end of it,
     * which follows the words of the model.
     */
    dsa_buf_t                      text;

    ngx_http_dsa_count_t           count;   /* its arena has the message of
                                               the summary */
    dsa_chat_t                     whole;   /* the chat with the question */
    ngx_http_dsa_summary_t         summary;
    uint32_t                       threshold;
} ngx_http_dsa_compact_t;


/* Starts a compaction. */
void ngx_http_dsa_compact_start(ngx_http_dsa_compact_t *cmp);

/*
 * Ensures that the handler is not called.  Its memory is kept, because a thread
 * may use it.
 */
void ngx_http_dsa_compact_detach(ngx_http_dsa_compact_t *cmp);

/* Frees a compaction that is detached. */
void ngx_http_dsa_compact_free(ngx_http_dsa_compact_t *cmp);


#endif /* _NGX_HTTP_DSA_COMPACT_H_INCLUDED_ */
