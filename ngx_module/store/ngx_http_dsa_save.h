
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_SAVE_H_INCLUDED_
#define _NGX_HTTP_DSA_SAVE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "base/buf.h"


/*
 * A turn that is being stored: the messages that a request adds to its
 * conversation.  They are in memory only.  The end of the answer is sent when
 * Redis has stored them.
 */

/*
 * Called in the context of the request that waits.  why is NULL if the turn is
 * stored.  Otherwise why is the reason, a static string for the developer of
 * the client.
 */
typedef void (*ngx_http_dsa_save_pt)(ngx_http_request_t *r, const char *why);


typedef struct ngx_http_dsa_save_waiter_s  ngx_http_dsa_save_waiter_t;


typedef struct {
    dsa_str_t                     conversation;
    int64_t                       version;      /* as loaded */
    dsa_str_t                    *messages;     /* JSON, pointers into text */
    uint32_t                      n_messages;
    dsa_buf_t                     text;

    ngx_http_dsa_save_waiter_t   *waiter;       /* NULL once the request has
                                                   ended */
    ngx_event_t                   timer;        /* data: the turn */
    void                         *data;         /* for the timer's handler */
} ngx_http_dsa_save_t;


/*
 * Creates a turn of the request r.  text has the messages in the format of
 * dsa_schema_split().  If the result is not NULL, the turn owns its bytes, and
 * text is empty.  conversation is copied.  NULL: out of memory.
 */
ngx_http_dsa_save_t *ngx_http_dsa_save_create(ngx_http_request_t *r,
    const ngx_str_t *conversation, int64_t version, dsa_buf_t *text,
    ngx_http_dsa_save_pt handler);

/*
 * Frees the turn, then calls the handler of the waiting request, which may end
 * the request and start another turn.
 */
void ngx_http_dsa_save_end(ngx_http_dsa_save_t *turn, const char *why);

/* Frees the turn and calls no handler. */
void ngx_http_dsa_save_free(ngx_http_dsa_save_t *turn);


#endif /* _NGX_HTTP_DSA_SAVE_H_INCLUDED_ */
