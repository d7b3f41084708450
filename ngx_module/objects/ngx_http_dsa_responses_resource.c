
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "base/json_write.h"

#include "ngx_module/account/ngx_http_dsa_access.h"
#include "ngx_module/api/ngx_http_dsa_responses.h"
#include "ngx_module/core/ngx_http_dsa_conf.h"
#include "ngx_module/http/ngx_http_dsa_reply.h"
#include "ngx_module/store/ngx_http_dsa_responses_command.h"
#include "ngx_http_dsa_object.h"
#include "ngx_http_dsa_responses_follow.h"
#include "ngx_http_dsa_responses_list.h"
#include "ngx_http_dsa_responses_resource.h"


/* memory for the words of a command */

#define NGX_HTTP_DSA_RESOURCE_ARENA  4096


typedef struct {
    ngx_http_dsa_object_t          object;
    ngx_http_dsa_redis_t          *redis;
    dsa_str_t                      tenant;
    dsa_str_t                      id;
    ngx_http_dsa_responses_page_t  page;    /* of input_items */
    int64_t                        after;   /* starting_after; -1: none */
    unsigned                       input:1;
    unsigned                       cancel:1;
    unsigned                       stream:1;
    unsigned                       progress:1;  /* it is not stored, and may be
                                                   in progress */
} ngx_http_dsa_resource_t;


static ngx_int_t ngx_http_dsa_resource_check(ngx_http_request_t *r,
    ngx_http_dsa_resource_t *resource, ngx_str_t *rest);
static ngx_int_t ngx_http_dsa_resource_arguments(ngx_http_request_t *r,
    ngx_http_dsa_resource_t *resource);
static ngx_int_t ngx_http_dsa_resource_send(ngx_http_request_t *r,
    ngx_http_dsa_resource_t *resource);
static ngx_int_t ngx_http_dsa_resource_command(ngx_http_request_t *r,
    ngx_http_dsa_resource_t *resource);
static void ngx_http_dsa_resource_reply(ngx_http_request_t *r, void *data,
    redisReply *reply, const char *why);
static void ngx_http_dsa_resource_answer(void *data);
static ngx_int_t ngx_http_dsa_resource_make(
    ngx_http_dsa_resource_t *resource, redisReply *reply);
static ngx_int_t ngx_http_dsa_resource_view(ngx_http_dsa_resource_t *resource,
    redisReply *reply);
static ngx_int_t ngx_http_dsa_resource_unreadable(
    ngx_http_dsa_resource_t *resource, const redisReply *reply);
static void ngx_http_dsa_resource_finish(void *data);


/* The same answer whether no tenant or another tenant has the id. */

static const char  ngx_http_dsa_resource_unknown[] =
    "There is no response with this id.";

static const char  ngx_http_dsa_resource_unstored[] =
    "There is no stored response with this id; one that runs, failed or was "
    "cancelled has no list of its input.";


ngx_uint_t
ngx_http_dsa_responses_resource_find(ngx_http_request_t *r, ngx_str_t *id,
    ngx_str_t *rest)
{
    u_char  *p, *last, *slash;

    static u_char  name[] = "/responses/";

    last = r->uri.data + r->uri.len;
    p = ngx_strlcasestrn(r->uri.data, last, name, sizeof(name) - 2);

    if (p == NULL) {
        return 0;
    }

    p += sizeof(name) - 1;

    slash = ngx_strlchr(p, last, '/');

    id->data = p;
    id->len = (slash != NULL ? slash : last) - p;

    rest->data = slash != NULL ? slash + 1 : last;
    rest->len = last - rest->data;

    return 1;
}


ngx_int_t
ngx_http_dsa_responses_resource_handler(ngx_http_request_t *r,
    ngx_http_complex_value_t *tenant, ngx_str_t *id, ngx_str_t *rest)
{
    u_char                     digest[NGX_HTTP_DSA_DIGEST_LEN];
    ngx_int_t                  rc;
    ngx_str_t                  name;
    const char                *why;
    ngx_http_dsa_resource_t   *resource;
    ngx_http_dsa_main_conf_t  *mcf;

    resource = ngx_pcalloc(r->pool, sizeof(ngx_http_dsa_resource_t));
    if (resource == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    resource->id = dsa_str(id->data, id->len);
    resource->after = -1;

    rc = ngx_http_dsa_resource_check(r, resource, rest);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    rc = ngx_http_dsa_access_tenant(r, tenant, &name, digest, &why);

    if (rc == NGX_DECLINED) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_BAD_REQUEST, NULL, why);
    }

    if (rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (name.len == 0) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_FORBIDDEN, NULL,
                   "Stored responses are not available to this request, "
                   "because the server has identified no tenant for it: the "
                   "value of dsa_tenant is empty.");
    }

    mcf = ngx_http_get_module_main_conf(r, ngx_http_dsa_module);

    if (mcf->redis == NULL) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_NOT_IMPLEMENTED, NULL,
                   "This server does not store responses, because dsa_redis "
                   "is not configured.");
    }

    if (!dsa_response_id_ok(resource->id)) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_NOT_FOUND, NULL,
                                       ngx_http_dsa_resource_unknown);
    }

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    resource->redis = mcf->redis;
    resource->tenant = dsa_str(name.data, name.len);

    if (resource->stream) {
        return ngx_http_dsa_responses_follow(r, mcf->redis, resource->tenant,
                                             resource->id, resource->after);
    }

    resource->page.secret = mcf->secret;
    ngx_memcpy(resource->page.digest, digest, NGX_HTTP_DSA_DIGEST_LEN);

    if (ngx_http_dsa_object_init(&resource->object, r, resource->page.digest)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_dsa_resource_send(r, resource);
}


/* NGX_DECLINED: the request continues; otherwise the result. */

static ngx_int_t
ngx_http_dsa_resource_check(ngx_http_request_t *r,
    ngx_http_dsa_resource_t *resource, ngx_str_t *rest)
{
    if (rest->len == sizeof("cancel") - 1
        && ngx_memcmp(rest->data, "cancel", rest->len) == 0)
    {
        resource->cancel = 1;

        return r->method == NGX_HTTP_POST
               ? NGX_DECLINED
               : ngx_http_dsa_send_error(r, NGX_HTTP_NOT_ALLOWED, "POST",
                                         "Only POST is accepted here.");
    }

    if (rest->len != 0) {
        if (rest->len != sizeof("input_items") - 1
            || ngx_memcmp(rest->data, "input_items", rest->len) != 0)
        {
            return ngx_http_dsa_send_error(r, NGX_HTTP_NOT_FOUND, NULL,
                       "There is nothing at this path; expected "
                       "/responses/ID, /responses/ID/input_items or "
                       "/responses/ID/cancel.");
        }

        resource->input = 1;

        if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {
            return ngx_http_dsa_send_error(r, NGX_HTTP_NOT_ALLOWED,
                       "GET, HEAD", "Only GET and HEAD are accepted here.");
        }

        return ngx_http_dsa_responses_page(r, &resource->page);
    }

    if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD|NGX_HTTP_DELETE))) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_NOT_ALLOWED,
                   "GET, HEAD, DELETE", "A response can be read with GET and "
                   "deleted with DELETE.");
    }

    return ngx_http_dsa_resource_arguments(r, resource);
}


/* Reads stream and starting_after; the same results. */

static ngx_int_t
ngx_http_dsa_resource_arguments(ngx_http_request_t *r,
    ngx_http_dsa_resource_t *resource)
{
    ngx_str_t  v;

    if (ngx_http_arg(r, (u_char *) "stream", 6, &v) == NGX_OK) {

        if (v.len == 4 && ngx_memcmp(v.data, "true", 4) == 0
            && r->method == NGX_HTTP_GET)
        {
            resource->stream = 1;

        } else if (v.len != 5 || ngx_memcmp(v.data, "false", 5) != 0) {
            return ngx_http_dsa_send_error(r, NGX_HTTP_BAD_REQUEST, "stream",
                       "stream: this argument is not valid; expected true, "
                       "with GET, or false.");
        }
    }

    if (ngx_http_arg(r, (u_char *) "starting_after", 14, &v) != NGX_OK) {
        return NGX_DECLINED;
    }

    resource->after = v.len <= 9 ? ngx_atoi(v.data, v.len) : NGX_ERROR;

    if (resource->after == NGX_ERROR || !resource->stream) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_BAD_REQUEST,
                   "starting_after", "starting_after: this argument is not "
                   "valid; expected the sequence_number of an event, and "
                   "stream=true.");
    }

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_dsa_resource_send(ngx_http_request_t *r,
    ngx_http_dsa_resource_t *resource)
{
    r->main->count++;
    r->write_event_handler = ngx_http_request_empty_handler;

    if (!r->discard_body) {
        r->read_event_handler = ngx_http_test_reading;
    }

    if (ngx_http_dsa_resource_command(r, resource) != NGX_OK) {
        r->main->count--;
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return NGX_DONE;
}


static ngx_int_t
ngx_http_dsa_resource_command(ngx_http_request_t *r,
    ngx_http_dsa_resource_t *resource)
{
    int                    rc;
    dsa_str_t              owner;
    ngx_int_t              sent;
    dsa_arena_t           *arena;
    dsa_schema_command_t   cmd;

    owner = resource->tenant;

    arena = dsa_arena_create(NGX_HTTP_DSA_RESOURCE_ARENA);
    if (arena == NULL) {
        return NGX_ERROR;
    }

    if (r->method == NGX_HTTP_DELETE) {
        rc = dsa_response_delete(&cmd, arena, owner, resource->id);

    } else if (resource->cancel) {
        rc = dsa_progress_cancel(&cmd, arena, owner, resource->id);

    } else if (resource->progress) {
        rc = dsa_progress_read(&cmd, arena, owner, resource->id);

    } else if (resource->input) {
        rc = dsa_response_load_input(&cmd, arena, owner, resource->id);

    } else {
        rc = dsa_response_load(&cmd, arena, owner, resource->id);
    }

    sent = rc == DSA_OK
           ? ngx_http_dsa_responses_command(r, resource->redis, &cmd,
                                            ngx_http_dsa_resource_reply,
                                            resource)
           : NGX_ERROR;

    dsa_arena_destroy(arena);

    return sent;
}


static void
ngx_http_dsa_resource_reply(ngx_http_request_t *r, void *data,
    redisReply *reply, const char *why)
{
    ngx_http_dsa_resource_t *resource = data;

    size_t     bytes;
    dsa_err_t  err;
    dsa_str_t  field[3];

    if (why != NULL) {
        ngx_http_finalize_request(r,
                 ngx_http_dsa_send_unavailable(r, "Stored responses", why));
        return;
    }

    /* only a response that is not stored costs a second command */

    if ((r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD)) && !resource->input
        && !resource->progress
        && dsa_response_fields(field, 3, reply, &err) == DSA_AGAIN)
    {
        resource->progress = 1;

        if (ngx_http_dsa_resource_command(r, resource) != NGX_OK) {
            ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        }

        return;
    }

    bytes = ngx_http_dsa_object_keep(&resource->object, reply);

    ngx_http_dsa_object_work(&resource->object, bytes,
                             ngx_http_dsa_resource_answer,
                             ngx_http_dsa_resource_finish, resource);
}


/* A run. */

static void
ngx_http_dsa_resource_answer(void *data)
{
    ngx_http_dsa_resource_t *resource = data;

    (void) ngx_http_dsa_resource_make(resource, resource->object.reply);
}


/* NGX_OK, or NGX_ERROR with the failure of the object. */

static ngx_int_t
ngx_http_dsa_resource_make(ngx_http_dsa_resource_t *resource,
    redisReply *reply)
{
    int                     rc;
    int64_t                 n;
    uint32_t                i, fields;
    dsa_str_t               field[3];
    ngx_http_dsa_object_t  *o;

    o = &resource->object;

    if (o->work.request->method == NGX_HTTP_DELETE) {
        if (dsa_schema_integer(reply, &n, &o->err) != DSA_OK) {
            return ngx_http_dsa_resource_unreadable(resource, reply);
        }

        if (n == 0) {
            return ngx_http_dsa_object_refuse(o, NGX_HTTP_NOT_FOUND, NULL,
                                              ngx_http_dsa_resource_unknown);
        }

        ngx_http_dsa_object_deleted(o, resource->id, "response");

        return NGX_OK;
    }

    if (resource->cancel || resource->progress) {
        return ngx_http_dsa_resource_view(resource, reply);
    }

    fields = resource->input ? 1 : 3;
    rc = dsa_response_fields(field, fields, reply, &o->err);

    if (rc == DSA_AGAIN) {
        return ngx_http_dsa_object_refuse(o, NGX_HTTP_NOT_FOUND, NULL,
                                          resource->input
                                          ? ngx_http_dsa_resource_unstored
                                          : ngx_http_dsa_resource_unknown);
    }

    if (rc != DSA_OK) {
        return ngx_http_dsa_resource_unreadable(resource, reply);
    }

    if (resource->input) {
        return ngx_http_dsa_responses_list(&o->body, field[0],
                                           &resource->page, &o->err)
               == NGX_OK
               ? NGX_OK : ngx_http_dsa_resource_unreadable(resource, NULL);
    }

    for (i = 0; i < fields; i++) {
        dsa_buf_add(&o->body, field[i].data, field[i].len);
    }

    return NGX_OK;
}


/* The same for a response that may be in progress. */

static ngx_int_t
ngx_http_dsa_resource_view(ngx_http_dsa_resource_t *resource,
    redisReply *reply)
{
    dsa_progress_view_t     view;
    ngx_http_dsa_object_t  *o;

    o = &resource->object;

    if (dsa_progress_view(&view, reply, &o->err) != DSA_OK) {
        return ngx_http_dsa_resource_unreadable(resource, reply);
    }

    switch (view.state) {

    case DSA_PROGRESS_STORED:
        dsa_buf_add(&o->body, view.before.data, view.before.len);
        dsa_buf_add(&o->body, view.output.data, view.output.len);
        dsa_buf_add(&o->body, view.after.data, view.after.len);
        return NGX_OK;

    case DSA_PROGRESS_UNKNOWN:
        return ngx_http_dsa_object_refuse(o, NGX_HTTP_NOT_FOUND, NULL,
                                          ngx_http_dsa_resource_unknown);

    case DSA_PROGRESS_ATTACHED:
        return ngx_http_dsa_object_refuse(o, NGX_HTTP_BAD_REQUEST, NULL,
                   "Only a response that was created with background can be "
                   "cancelled; close the connection of any other one.");

    default:
        ngx_http_dsa_responses_progress(&o->body, &view);
        return NGX_OK;
    }
}


static ngx_int_t
ngx_http_dsa_resource_unreadable(ngx_http_dsa_resource_t *resource,
    const redisReply *reply)
{
    return ngx_http_dsa_object_unreadable(&resource->object,
                                          "Stored responses", reply);
}


static void
ngx_http_dsa_resource_finish(void *data)
{
    ngx_http_dsa_resource_t *resource = data;

    ngx_http_finalize_request(resource->object.work.request,
                              ngx_http_dsa_object_send(&resource->object));
}
