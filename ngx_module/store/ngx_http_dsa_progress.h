
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_PROGRESS_H_INCLUDED_
#define _NGX_HTTP_DSA_PROGRESS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "base/buf.h"
#include "redis_schema/progress.h"

#include "ngx_module/redis/ngx_http_dsa_redis.h"


/*
 * A response that this worker computes, as others see it in Redis until it is
 * stored: its lease is renewed while the request lives, and expires if the
 * worker is killed.  The events of one in the background are stored in chunks,
 * one at a time: while a chunk waits for its reply, further text is collected.
 */

/*
 * The first command has ended; why: NULL, or the reason why it failed, a static
 * string.
 */
typedef void (*ngx_http_dsa_progress_begun_pt)(void *data, const char *why);

/* The response was cancelled or deleted.  The request may be finalized. */
typedef void (*ngx_http_dsa_progress_stopped_pt)(void *data);


typedef struct {
    dsa_progress_t                     id;  /* its texts are needed by begin
                                               only */
    ngx_http_dsa_redis_t              *redis;
    ngx_http_request_t                *request;
    ngx_http_dsa_progress_begun_pt     begun;
    ngx_http_dsa_progress_stopped_pt   stopped;
    void                              *data;    /* for both */

    ngx_event_t                        timer;   /* of the next chunk or
                                                   renewal */
    ngx_connection_t                   dumb;    /* its data; nginx logs it */
    ngx_http_dsa_redis_command_t      *command; /* NULL: none waits for its
                                                   reply */
    dsa_buf_t                          text;    /* events that are not
                                                   confirmed */
    size_t                             sent;    /* bytes of them that Redis may
                                                   have already, as chunk */
    uint32_t                           chunk;   /* the number of command, or of
                                                   the next one */
    unsigned                           open:1;  /* a command to begin was
                                                   sent */
    unsigned                           kept:1;  /* the client has the id, so a
                                                   failure is kept, too */
    unsigned                           stored:1;    /* the response is stored,
                                                   and not in progress */
    unsigned                           full:1;  /* no further events are
                                                   kept */
} ngx_http_dsa_progress_t;


/*
 * Begins.  id, redis, request, the handlers and data are set, and live as long
 * as the struct, which is zeroed otherwise.  In the background: NGX_OK, and
 * begun is called later, in the context of the request; or NGX_DECLINED with
 * *why, a static string.  Otherwise NGX_OK, and begun is not called: the
 * response is computed in any case.
 */
ngx_int_t ngx_http_dsa_progress_begin(ngx_http_dsa_progress_t *p,
    const char **why);

/* Adds whole events of a response whose events are kept; else does nothing. */
void ngx_http_dsa_progress_text(ngx_http_dsa_progress_t *p, const char *text,
    size_t len);

/*
 * Sends what is left of the events, in front of the command to store, which
 * also ends the lease: it is not renewed any more.
 */
void ngx_http_dsa_progress_flush(ngx_http_dsa_progress_t *p);

/*
 * Ends, however the request ends; it may be called more than once.  why: for
 * the reader of a response that is kept.
 */
void ngx_http_dsa_progress_end(ngx_http_dsa_progress_t *p, const char *why);


#endif /* _NGX_HTTP_DSA_PROGRESS_H_INCLUDED_ */
