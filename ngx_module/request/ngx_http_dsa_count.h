
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_COUNT_H_INCLUDED_
#define _NGX_HTTP_DSA_COUNT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_module/core/ngx_http_dsa_failure.h"
#include "ngx_module/http/ngx_http_dsa_work.h"
#include "ngx_module/submission/ngx_http_dsa_engine_request.h"


/*
 * Counts the tokens of the prompt that a chat would have: one count at a time,
 * any number of them.  An engine counts, unless an upper bound is sufficient.
 */

typedef struct {
    /* set by the owner */
    ngx_http_request_t            *request;
    ngx_http_dsa_work_t           *work;
    ngx_http_dsa_submit_t         *submit;
    ngx_http_dsa_failure_t        *failure;

    /*
     * Makes the chat, in arena.  It is called in a run of the work.  DSA_ERROR:
     * out of memory.
     */
    int                          (*chat)(void *data, dsa_arena_t *arena,
                                         dsa_chat_t *chat);

    /*
     * Called once for each count, at once or later.  NGX_OK: the result is set;
     * NGX_ERROR with a failure.  It may finalize the request, or start another
     * count.
     */
    void                         (*handler)(void *data, ngx_int_t rc);
    void                          *data;    /* of both */

    /* the result */
    uint32_t                       tokens;
    unsigned                       more:1;  /* there are more than these */

    ngx_http_dsa_engine_request_t  er;      /* COUNT */
    ngx_http_dsa_submit_t          attempt;     /* of er */
    ngx_http_dsa_failure_t         refused;     /* of er */
    dsa_arena_t                   *arena;   /* of attempt; the owner may use it
                                               until the next count */
    dsa_chat_t                     whole;   /* the chat */
    uint32_t                       limit;
    unsigned                       counted:1;   /* by an engine */
} ngx_http_dsa_count_t;


/*
 * Starts a count.  limit: a prompt of so many bytes or fewer is not counted;
 * tokens is their number then, because a token has at least one byte.
 */
void ngx_http_dsa_count_start(ngx_http_dsa_count_t *cnt, uint32_t limit);

/*
 * Ensures that the handler is not called.  The memory is kept, because a thread
 * may use it.
 */
void ngx_http_dsa_count_detach(ngx_http_dsa_count_t *cnt);

/* Frees what is detached. */
void ngx_http_dsa_count_free(ngx_http_dsa_count_t *cnt);


#endif /* _NGX_HTTP_DSA_COUNT_H_INCLUDED_ */
