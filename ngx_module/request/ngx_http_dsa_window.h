
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_WINDOW_H_INCLUDED_
#define _NGX_HTTP_DSA_WINDOW_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "context/window.h"
#include "ngx_module/api/ngx_http_dsa_api.h"

#include "ngx_module/core/ngx_http_dsa_failure.h"
#include "ngx_module/http/ngx_http_dsa_work.h"
#include "ngx_module/submission/ngx_http_dsa_engine_request.h"
#include "ngx_http_dsa_summary.h"
#include "ngx_http_dsa_window_memory.h"


/*
 * dsa_context_strategy: removes rounds from a prompt that exceeds its share of
 * the model's context, by the rules in context/window.h.  A token has at least
 * one byte, so a prompt with at most as many bytes as the threshold has tokens
 * is not counted.  Other prompts are counted by an engine of the pool, which
 * only tokenizes them.  If no engine can count a prompt, the chat is submitted
 * unchanged, and if it is too long the client gets the same error as without a
 * strategy.
 *
 * With the strategy summary, the removed rounds are replaced by a summary from
 * Redis, or by one that the model writes now.  If there is no summary that
 * fits, discard_75 is applied instead.  No summary is made for a request that
 * only counts its prompt.
 */

typedef struct {
    /* set by the owner */
    ngx_http_request_t         *request;
    ngx_http_dsa_work_t        *work;
    ngx_http_dsa_submit_t      *submit;     /* its chat was accepted by
                                               dsa_chat_check() */
    ngx_http_dsa_failure_t     *failure;
    ngx_uint_t                  percent;    /* of the context: the threshold */
    ngx_http_dsa_window_memory_t  stored;   /* redis and tenant */
    ngx_http_dsa_engine_requests_t  *requests;  /* for a summary */

    /*
     * Called once, at once or later.  NGX_OK: submit->chat is the chat to
     * encode; its messages are valid until ngx_http_dsa_window_free().
     * NGX_ERROR with a failure.  It may finalize the request.
     */
    void                      (*handler)(void *data, ngx_int_t rc);
    void                       *data;

    /* the result */
    ngx_str_t                   applied;    /* strategy that shortened the
                                               prompt; empty: none */
    ngx_http_dsa_api_context_t  report;     /* if applied is not empty */

    ngx_http_dsa_engine_request_t  er;      /* COUNT */
    ngx_http_dsa_submit_t       attempt;    /* of er; its prompt is in arena */
    ngx_http_dsa_failure_t      refused;    /* of er */
    dsa_arena_t                *memory;     /* of replay */
    dsa_window_t                replay;
    dsa_chat_t                  full;       /* as the client sent it */
    ngx_http_dsa_summary_t      summary;

    dsa_arena_t                *arena;      /* of left and attempt */
    dsa_chat_t                  left;

    uint32_t                    context;    /* tokens */
    uint32_t                    threshold;
    uint32_t                    tokens;     /* of COUNTED */
    uint32_t                    rest;       /* tokens of the prompt without its
                                               summary, upper bound */
    unsigned                    looked:1;   /* the lookup in Redis is done */
    unsigned                    encoded:1;  /* the prompt is set, or the
                                               failure */
    unsigned                    counted:1;  /* tokens is set */
    unsigned                    summarized:1;   /* the prompt has a summary,
                                                   and this count is the
                                                   last */
} ngx_http_dsa_window_t;


extern ngx_conf_enum_t  ngx_http_dsa_window_strategies[];

/*
 * The parameter threshold= of dsa_context_strategy, for example "80%"; it sets
 * an ngx_int_t.
 */
char *ngx_http_dsa_window_threshold(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


/* Starts a window, with a strategy that is not none. */
void ngx_http_dsa_window_start(ngx_http_dsa_window_t *win,
    dsa_window_e strategy);

/*
 * Adds headers to the answer that describe the cut, if applied is not empty.
 * NGX_OK, or NGX_ERROR with a failure.
 */
ngx_int_t ngx_http_dsa_window_headers(ngx_http_dsa_window_t *win);

/*
 * Ensures that the handler is not called.  Its memory is kept, because a thread
 * may use it.
 */
void ngx_http_dsa_window_detach(ngx_http_dsa_window_t *win);

/* Frees a window that is detached. */
void ngx_http_dsa_window_free(ngx_http_dsa_window_t *win);


#endif /* _NGX_HTTP_DSA_WINDOW_H_INCLUDED_ */
