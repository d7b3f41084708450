
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_CHAT_STAGE_H_INCLUDED_
#define _NGX_HTTP_DSA_CHAT_STAGE_H_INCLUDED_


#include "redis_schema/responses.h"
#include "ngx_module/redis/ngx_http_dsa_redis.h"
#include "ngx_module/store/ngx_http_dsa_save.h"
#include "ngx_http_dsa_request.h"


/*
 * The stages of a chat from its body to its submission.  ngx_http_dsa_chat.c
 * has the table; the files of the stages do not know which stage follows.
 */

/*
 * begin is called in the event loop; NULL: there is nothing to begin.  It
 * returns
 *
 *     NGX_OK         the stage goes on with run, or ends if run is NULL
 *     NGX_DECLINED   this chat does not need the stage
 *     NGX_AGAIN      the stage calls ngx_http_dsa_chat_next() when it ends, or
 *                    has called it, or ends the request; begin must not use
 *                    the request after that
 *     NGX_ERROR      with a failure, which ends the request
 *
 * run may be called in a thread, see ngx_http_dsa_work(); data is the request.
 * end is called in the event loop after run, and returns as begin does.
 */
typedef struct {
    const char               *name;         /* for the log */
    ngx_int_t               (*begin)(ngx_http_dsa_request_t *req);
    ngx_http_dsa_stage_e      work;         /* the stage of run */
    ngx_http_dsa_work_pt      run;
    ngx_int_t               (*end)(ngx_http_dsa_request_t *req);
} ngx_http_dsa_chat_stage_t;


/*
 * What stored answers add to a chat.  A chat of an API whose answers are not
 * stored uses none of it.
 */
typedef struct {

    /*
     * Replaces references in the items of a body by the stored items of the
     * tenant: begin of a stage, before the body is converted.
     */
    ngx_int_t               (*references)(ngx_http_dsa_request_t *req);

    /*
     * Decides whether the answer is stored, and inserts the stored answers
     * that the request continues into its chat: begin of a stage, after the
     * body is converted.
     */
    ngx_int_t               (*history)(ngx_http_dsa_request_t *req);

    /*
     * Stores an answer.  NGX_OK: the handler will be called within the timeout
     * of dsa_redis, never by this function itself, and not if the request ends
     * first.  NGX_DECLINED: the answer is not stored, *why is the reason, a
     * static string, and the handler is not called.
     */
    ngx_int_t               (*save)(ngx_http_request_t *r,
                                    ngx_http_dsa_redis_t *redis,
                                    const ngx_str_t *tenant,
                                    const dsa_response_t *node,
                                    ngx_http_dsa_save_pt handler,
                                    const char **why);
} ngx_http_dsa_chat_stored_t;


/* Set once, before the configuration is read. */
extern const ngx_http_dsa_chat_stored_t  *ngx_http_dsa_chat_stored;

/* What a chat may have; for all stages that add messages. */
extern const dsa_chat_limits_t  ngx_http_dsa_chat_limits;


/*
 * Ends the stage of a chat, and begins the next one that the chat needs.  The
 * request may have been finalized and freed when it returns.
 */
void ngx_http_dsa_chat_next(ngx_http_dsa_request_t *req);

/*
 * The stage that converts the body: run, and what follows in the event loop.
 */
void ngx_http_dsa_chat_read(void *data);
ngx_int_t ngx_http_dsa_chat_was_read(ngx_http_dsa_request_t *req);

/*
 * begin of the stage that loads the conversation of a chat, and inserts its
 * messages in front of those of the request.
 */
ngx_int_t ngx_http_dsa_chat_load(ngx_http_dsa_request_t *req);

/*
 * begin of the stages that apply the edits of the context which the request
 * has: those before its compaction, and those behind it.
 */
ngx_int_t ngx_http_dsa_chat_edit(ngx_http_dsa_request_t *req);
ngx_int_t ngx_http_dsa_chat_edit_rest(ngx_http_dsa_request_t *req);

/*
 * begin of the stage that compacts a conversation whose prompt exceeds the
 * threshold of its request.
 */
ngx_int_t ngx_http_dsa_chat_compact(ngx_http_dsa_request_t *req);

/*
 * begin of the stage that makes a response known, which is stored when it is
 * complete.
 */
ngx_int_t ngx_http_dsa_request_progress(ngx_http_dsa_request_t *req);

/* begin of the stage that shortens a long history. */
ngx_int_t ngx_http_dsa_chat_window(ngx_http_dsa_request_t *req);


#endif /* _NGX_HTTP_DSA_CHAT_STAGE_H_INCLUDED_ */
