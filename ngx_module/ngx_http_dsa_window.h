
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_WINDOW_H_INCLUDED_
#define _NGX_HTTP_DSA_WINDOW_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "api/ngx_http_dsa_api.h"
#include "context/encode.h"
#include "context/window.h"

#include "ngx_http_dsa_failure.h"
#include "ngx_http_dsa_submit.h"
#include "ngx_http_dsa_summary.h"
#include "ngx_http_dsa_window_memory.h"


/*
 * dsa_context_strategy: what leaves a prompt that exceeds its share of the
 * model's context.  context/window.h decides it.  A token has at least one
 * byte, so a prompt whose bytes are within the threshold is not counted; all
 * others are counted by an engine of the pool, which computes nothing for that.
 * If no engine can count a prompt, the chat is submitted as it is, and the
 * client gets the same error as without a strategy.
 *
 * With the strategy summary, the rounds that leave are replaced by a summary:
 * the one that Redis has, or one that the model writes now.  Without a summary
 * that fits, discard_75 is applied instead.  A request that only counts its
 * prompt has no summary made.
 */

typedef struct {
    /* set by the owner */
    ngx_http_request_t         *request;
    ngx_http_dsa_submit_t      *submit;     /* with a chat that
                                               dsa_chat_check() accepted */
    ngx_http_dsa_failure_t     *failure;
    ngx_uint_t                  percent;    /* of the context: the threshold */
    ngx_http_dsa_window_memory_t  stored;   /* redis and tenant */
    ngx_http_dsa_usage_record_t  *record;   /* for a summary */

    /*
     * Called once, at once or later.  NGX_OK: submit->chat is what is to be
     * encoded; its messages are valid until the detach.  NGX_ERROR with a
     * failure.  The request may be finalized in it.
     */
    void                      (*handler)(void *data, ngx_int_t rc);
    void                       *data;

    /* the result */
    ngx_str_t                   applied;    /* the strategy that has shortened
                                               the prompt; empty: none */
    ngx_http_dsa_api_context_t  report;     /* if applied is not empty */

    ngx_http_dsa_call_t         call;       /* COUNT */
    ngx_http_dsa_waiter_t       waiter;     /* for a first hello */
    dsa_arena_t                *memory;     /* of replay */
    dsa_window_t                replay;
    dsa_chat_t                  full;       /* as the client sent it */
    ngx_http_dsa_summary_t      summary;

    dsa_arena_t                *arena;      /* of left and prompt */
    dsa_chat_t                  left;
    dsa_prompt_t                prompt;

    uint64_t                    tried;      /* engines, for this count */
    uint32_t                    context;    /* tokens */
    uint32_t                    threshold;
    uint32_t                    tokens;     /* of COUNTED */
    uint32_t                    rest;       /* of the prompt without its
                                               summary, at most */
    unsigned                    looked:1;   /* in Redis */
    unsigned                    counted:1;  /* tokens is set */
    unsigned                    failed:1;   /* an engine cannot count it */
    unsigned                    retry:1;    /* another engine may */
    unsigned                    summarized:1;   /* the prompt has a summary,
                                               and is counted for the last
                                               time */
} ngx_http_dsa_window_t;


extern ngx_conf_enum_t  ngx_http_dsa_window_strategies[];

/* The directive dsa_context_threshold: "80%"; conf has an ngx_int_t. */
char *ngx_http_dsa_window_threshold(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


/* strategy: none calls the handler at once. */
void ngx_http_dsa_window_start(ngx_http_dsa_window_t *win,
    dsa_window_e strategy);

/*
 * Adds what was done to the headers of the answer, if applied is not empty.
 * NGX_OK, or NGX_ERROR with a failure.
 */
ngx_int_t ngx_http_dsa_window_headers(ngx_http_dsa_window_t *win);

/* Frees what a window has, and ensures that its handler is not called. */
void ngx_http_dsa_window_detach(ngx_http_dsa_window_t *win);


#endif /* _NGX_HTTP_DSA_WINDOW_H_INCLUDED_ */
