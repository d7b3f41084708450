
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "base/json_write.h"
#include "redis_schema/resp.h"

#include "ngx_module/core/ngx_http_dsa_burst.h"
#include "ngx_module/http/ngx_http_dsa_reply.h"
#include "ngx_http_dsa_object.h"


static void ngx_http_dsa_object_leave(void *data);
static void ngx_http_dsa_object_left(void *data);
static void ngx_http_dsa_object_cleanup(void *data);


ngx_int_t
ngx_http_dsa_object_init(ngx_http_dsa_object_t *o, ngx_http_request_t *r,
    const u_char *digest)
{
    ngx_http_cleanup_t  *end;
    ngx_pool_cleanup_t  *cln;

    o->work.request = r;
    o->work.digest = digest;
    o->work.failure = &o->failure;

    cln = ngx_pool_cleanup_add(r->pool, 0);
    end = ngx_http_cleanup_add(r, 0);

    if (cln == NULL || end == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_dsa_object_cleanup;
    cln->data = o;

    end->handler = ngx_http_dsa_object_leave;
    end->data = o;

    return NGX_OK;
}


/* The request ends.  What a thread uses is freed with the request's pool. */

static void
ngx_http_dsa_object_leave(void *data)
{
    ngx_http_dsa_object_t *o = data;

    (void) ngx_http_dsa_work_leave(&o->work, ngx_http_dsa_object_left, o);
}


static void
ngx_http_dsa_object_left(void *data)
{
    /* void */
}


static void
ngx_http_dsa_object_cleanup(void *data)
{
    ngx_http_dsa_object_t *o = data;

    dsa_buf_free(&o->body);

    if (o->reply != NULL) {
        freeReplyObject(o->reply);
        o->reply = NULL;
    }
}


size_t
ngx_http_dsa_object_keep(ngx_http_dsa_object_t *o, redisReply *reply)
{
    ngx_http_dsa_redis_keep(reply);

    if (o->reply != NULL) {
        freeReplyObject(o->reply);
    }

    o->reply = reply;

    return dsa_resp_bytes(reply);
}


void
ngx_http_dsa_object_work(ngx_http_dsa_object_t *o, size_t bytes,
    ngx_http_dsa_work_pt run, ngx_http_dsa_work_pt done, void *data)
{
    ngx_int_t  rc;

    rc = ngx_http_dsa_work(&o->work, NGX_HTTP_DSA_STAGE_OBJECT, bytes, run,
                           done, data);

    if (rc == NGX_OK) {
        done(data);

    } else if (rc == NGX_ERROR) {
        ngx_http_finalize_request(o->work.request,
                                  ngx_http_dsa_object_send(o));
    }
}


ngx_int_t
ngx_http_dsa_object_refuse(ngx_http_dsa_object_t *o, ngx_uint_t status,
    const char *param, const char *message)
{
    ngx_http_dsa_failure_set(&o->failure, status, param, "%s", message);

    return NGX_ERROR;
}


ngx_int_t
ngx_http_dsa_object_no_memory(ngx_http_dsa_object_t *o)
{
    ngx_http_dsa_failure_memory(&o->failure);

    return NGX_ERROR;
}


ngx_int_t
ngx_http_dsa_object_unreadable(ngx_http_dsa_object_t *o, const char *what,
    const redisReply *reply)
{
    dsa_err_t  text;

    o->unreadable = 1;

    if (reply != NULL && reply->type == REDIS_REPLY_ERROR
        && ngx_strncmp(reply->str, "WRONGTYPE", sizeof("WRONGTYPE") - 1) != 0)
    {
        (void) dsa_error(&text, "%s are not available now: Redis refused the "
                         "command.", what);
        return ngx_http_dsa_object_refuse(o, NGX_HTTP_SERVICE_UNAVAILABLE,
                                          NULL, text.text);
    }

    (void) dsa_error(&text, "%s: what is stored is damaged and cannot be "
                     "read.", what);

    return ngx_http_dsa_object_refuse(o, NGX_HTTP_INTERNAL_SERVER_ERROR, NULL,
                                      text.text);
}


void
ngx_http_dsa_object_deleted(ngx_http_dsa_object_t *o, dsa_str_t id,
    const char *type)
{
    dsa_json_writer_t  w;

    dsa_json_writer(&w, &o->body);
    dsa_json_object(&w);
    dsa_json_key(&w, "id");
    dsa_json_string(&w, id);
    dsa_json_key(&w, "object");
    dsa_json_stringz(&w, type);
    dsa_json_key(&w, "deleted");
    dsa_json_bool(&w, 1);
    dsa_json_object_end(&w);
}


ngx_int_t
ngx_http_dsa_object_send(ngx_http_dsa_object_t *o)
{
    ngx_http_request_t  *r;

    r = o->work.request;

    if (o->unreadable) {
        ngx_log_error(ngx_http_dsa_burst(o->err.text), r->connection->log, 0,
                      "dsa: %s", o->err.text);
    }

    return o->failure.status != 0
           ? ngx_http_dsa_send_failure(r, &o->failure)
           : ngx_http_dsa_send_json(r, NGX_HTTP_OK, &o->body);
}
