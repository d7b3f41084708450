
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_OBJECT_H_INCLUDED_
#define _NGX_HTTP_DSA_OBJECT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "base/buf.h"
#include "base/error.h"

#include "ngx_module/http/ngx_http_dsa_work.h"
#include "ngx_module/redis/ngx_http_dsa_redis.h"


/*
 * The answer to a request for an object that Redis has, such as a conversation.
 * It is made of a body or a reply by work that may run in a thread, and then
 * sent.
 */

typedef struct {
    ngx_http_dsa_work_t      work;
    ngx_http_dsa_failure_t   failure;
    dsa_buf_t                body;      /* sent with 200 unless there is a
                                           failure */
    redisReply              *reply;     /* kept for the work; NULL: none */
    dsa_err_t                err;
    unsigned                 unreadable:1;  /* err is to be logged */
} ngx_http_dsa_object_t;


/*
 * Prepares a zeroed object in the pool of a request, whose tenant has this
 * digest.  NGX_OK, or NGX_ERROR: out of memory.
 */
ngx_int_t ngx_http_dsa_object_init(ngx_http_dsa_object_t *o,
    ngx_http_request_t *r, const u_char *digest);

/* Keeps the reply of a handler, for the work.  Returns its bytes. */
size_t ngx_http_dsa_object_keep(ngx_http_dsa_object_t *o, redisReply *reply);

/*
 * Runs run(data) on so many bytes, see ngx_http_dsa_work().  Then calls
 * done(data), at once or later, or finalizes the request with the failure.
 */
void ngx_http_dsa_object_work(ngx_http_dsa_object_t *o, size_t bytes,
    ngx_http_dsa_work_pt run, ngx_http_dsa_work_pt done, void *data);

/*
 * Functions of the work.  They set the failure and return NGX_ERROR.  param and
 * message as in ngx_http_dsa_send_error(); param lives as long as the request.
 */
ngx_int_t ngx_http_dsa_object_refuse(ngx_http_dsa_object_t *o,
    ngx_uint_t status, const char *param, const char *message);
ngx_int_t ngx_http_dsa_object_no_memory(ngx_http_dsa_object_t *o);

/*
 * What Redis has of these objects is not usable because of o->err, which is
 * logged.  The failure is 503 if Redis refused the command, and otherwise 500,
 * because each host would read the same damaged data.  reply: NULL if it was
 * usable, but not what it has.
 */
ngx_int_t ngx_http_dsa_object_unreadable(ngx_http_dsa_object_t *o,
    const char *what, const redisReply *reply);

/* Writes the answer to a DELETE: the id and the type of what was deleted. */
void ngx_http_dsa_object_deleted(ngx_http_dsa_object_t *o, dsa_str_t id,
    const char *type);

/* Sends the body or the failure.  Returns what the request ends with. */
ngx_int_t ngx_http_dsa_object_send(ngx_http_dsa_object_t *o);


#endif /* _NGX_HTTP_DSA_OBJECT_H_INCLUDED_ */
