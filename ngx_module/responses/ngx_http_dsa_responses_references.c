
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "context/references.h"
#include "redis_schema/resp.h"

#include "ngx_module/core/ngx_http_dsa_burst.h"
#include "ngx_module/http/ngx_http_dsa_body.h"
#include "ngx_module/store/ngx_http_dsa_responses_command.h"
#include "ngx_http_dsa_responses_stored.h"


/* memory for the words of the command */

#define NGX_HTTP_DSA_REFERENCES_ARENA  (128 * 1024)


/* Allocated from the request's pool. */

typedef struct {
    ngx_http_dsa_request_t           *req;
    redisReply                       *reply;
    dsa_arena_t                      *work;
    dsa_reference_t                  *refs;
    uint32_t                          n;
    dsa_str_t                         owners[DSA_RESPONSE_OWNERS];
    uint32_t                          n_owners;
    dsa_arena_t                      *keep;     /* until the request ends */
    int                               rc;       /* DSA_AGAIN: too large;
                                                   DSA_ERROR with err */
    dsa_err_t                         err;
} ngx_http_dsa_references_t;


static void ngx_http_dsa_references_find(void *data);
static void ngx_http_dsa_references_were_found(void *data);
static ngx_int_t ngx_http_dsa_references_permitted(
    ngx_http_dsa_request_t *req);
static ngx_int_t ngx_http_dsa_references_owners(ngx_http_dsa_request_t *req,
    ngx_http_dsa_references_t *references);
static ngx_int_t ngx_http_dsa_references_load(ngx_http_dsa_request_t *req,
    ngx_http_dsa_references_t *references);
static void ngx_http_dsa_references_loaded(ngx_http_request_t *r, void *data,
    redisReply *reply, const char *why);
static void ngx_http_dsa_references_resolve(void *data);
static int ngx_http_dsa_references_read(
    ngx_http_dsa_references_t *references);
static void ngx_http_dsa_references_resolved(void *data);
static void ngx_http_dsa_references_refused(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_references_free(
    ngx_http_dsa_references_t *references);
static void ngx_http_dsa_references_cleanup(void *data);


ngx_int_t
ngx_http_dsa_responses_references(ngx_http_dsa_request_t *req)
{
    ngx_pool_cleanup_t         *cln;
    ngx_http_dsa_references_t  *references;

    cln = ngx_pool_cleanup_add(req->http->pool,
                               sizeof(ngx_http_dsa_references_t));
    if (cln == NULL) {
        ngx_http_dsa_failure_memory(&req->failure);
        return NGX_ERROR;
    }

    references = cln->data;
    ngx_memzero(references, sizeof(ngx_http_dsa_references_t));

    cln->handler = ngx_http_dsa_references_cleanup;
    references->req = req;

    ngx_http_dsa_request_work(req, NGX_HTTP_DSA_STAGE_REFERENCES,
                              ngx_http_dsa_references_find,
                              ngx_http_dsa_references_were_found, references);
    return NGX_AGAIN;
}


/* A run: finds the references in the body. */

static void
ngx_http_dsa_references_find(void *data)
{
    ngx_http_dsa_references_t *references = data;

    ngx_http_dsa_request_t  *req;

    req = references->req;

    if (dsa_references_find(&references->refs, &references->n,
                            req->submit.arena, req->root, req->refusal)
        == DSA_OK)
    {
        req->refusal->status = 0;
    }
}


static void
ngx_http_dsa_references_were_found(void *data)
{
    ngx_http_dsa_references_t *references = data;

    ngx_http_dsa_request_t  *req;

    req = references->req;

    if (req->refusal->status != 0) {
        ngx_http_dsa_references_refused(req);
        ngx_http_dsa_request_fail(req);
        return;
    }

    if (references->n == 0) {
        ngx_http_dsa_chat_next(req);
        return;
    }

    if (ngx_http_dsa_references_permitted(req) != NGX_OK
        || ngx_http_dsa_references_owners(req, references) != NGX_OK
        || ngx_http_dsa_references_load(req, references) != NGX_OK)
    {
        ngx_http_dsa_request_fail(req);
    }
}


/* This function and the next two return NGX_ERROR with a failure. */

static ngx_int_t
ngx_http_dsa_references_permitted(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(req->http, ngx_http_dsa_module);

    if (mcf->redis == NULL) {
        ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_BAD_REQUEST, "input",
                                 "Items are not kept here, so that a request "
                                 "cannot refer to them: \"dsa_redis\" is not "
                                 "configured; expected the items themselves.");
        return NGX_ERROR;
    }

    if (req->tenant.len == 0) {
        ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_FORBIDDEN, "input",
                                 "Items are not kept for this request, "
                                 "because the server has identified no tenant "
                                 "for it; expected the items themselves.");
        return NGX_ERROR;
    }

    return NGX_OK;
}


/*
 * Collects the ids of the Redis keys that contain the items, without
 * duplicates.
 */

static ngx_int_t
ngx_http_dsa_references_owners(ngx_http_dsa_request_t *req,
    ngx_http_dsa_references_t *references)
{
    uint32_t   i, k;
    dsa_str_t  owner;

    for (i = 0; i < references->n; i++) {

        /*
         * An id of another form exists in no key; it is reported below as not
         * found.
         */

        if (!dsa_references_owner(references->refs[i].id, &owner)) {
            continue;
        }

        for (k = 0; k < references->n_owners; k++) {
            if (dsa_str_eq(references->owners[k], owner)) {
                break;
            }
        }

        if (k < references->n_owners) {
            continue;
        }

        if (k == DSA_RESPONSE_OWNERS) {
            ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_BAD_REQUEST,
                                     "input", "input: references to items of "
                                     "more than %d responses; send older "
                                     "items themselves",
                                     DSA_RESPONSE_OWNERS);
            return NGX_ERROR;
        }

        references->owners[references->n_owners++] = owner;
    }

    if (references->n_owners == 0) {
        (void) dsa_references_check(references->refs, references->n,
                                    req->refusal);
        ngx_http_dsa_references_refused(req);
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_references_load(ngx_http_dsa_request_t *req,
    ngx_http_dsa_references_t *references)
{
    ngx_int_t                  rc;
    dsa_arena_t               *arena;
    dsa_schema_command_t       cmd;
    ngx_http_dsa_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(req->http, ngx_http_dsa_module);

    arena = dsa_arena_create(NGX_HTTP_DSA_REFERENCES_ARENA);
    rc = NGX_ERROR;

    if (arena != NULL
        && dsa_response_items(&cmd, arena,
                              dsa_str(req->tenant.data, req->tenant.len),
                              references->owners, references->n_owners)
           == DSA_OK)
    {
        rc = ngx_http_dsa_responses_command(req->http, mcf->redis, &cmd,
                                            ngx_http_dsa_references_loaded,
                                            references);
    }

    dsa_arena_destroy(arena);

    if (rc != NGX_OK) {
        ngx_http_dsa_failure_memory(&req->failure);
    }

    return rc;
}


static void
ngx_http_dsa_references_loaded(ngx_http_request_t *r, void *data,
    redisReply *reply, const char *why)
{
    ngx_http_dsa_references_t *references = data;

    size_t                   bytes;
    ngx_http_dsa_request_t  *req;

    req = ngx_http_dsa_request_open(r);

    if (req == NULL) {
        return;
    }

    if (why != NULL) {
        ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_SERVICE_UNAVAILABLE,
                                 "input", "Stored items are not available "
                                 "now: %s.", why);
        ngx_http_dsa_request_fail(req);
        return;
    }

    bytes = dsa_resp_bytes(reply);

    /* a message of a chat is converted to items, which are parsed again */

    references->work = dsa_arena_create(NGX_HTTP_DSA_ARENA(2 * bytes));
    references->keep = dsa_arena_create(NGX_HTTP_DSA_ARENA(bytes));

    if (references->work == NULL || references->keep == NULL) {
        ngx_http_dsa_failure_memory(&req->failure);
        ngx_http_dsa_request_fail(req);
        return;
    }

    ngx_http_dsa_redis_keep(reply);

    references->reply = reply;
    req->submit.bytes += bytes;

    ngx_http_dsa_request_work(req, NGX_HTTP_DSA_STAGE_REFERENCES,
                              ngx_http_dsa_references_resolve,
                              ngx_http_dsa_references_resolved, references);
}


/* A run: puts the stored items in place of the references. */

static void
ngx_http_dsa_references_resolve(void *data)
{
    ngx_http_dsa_references_t *references = data;

    references->rc = ngx_http_dsa_references_read(references);

    if (references->rc == DSA_OK
        && dsa_references_check(references->refs, references->n,
                                references->req->refusal)
           == DSA_OK)
    {
        references->req->refusal->status = 0;
    }

    ngx_http_dsa_references_free(references);
}


static int
ngx_http_dsa_references_read(ngx_http_dsa_references_t *references)
{
    int                    rc;
    uint32_t               i, k;
    dsa_err_t             *err;
    dsa_str_t              lists[2];
    dsa_arena_t           *work;
    dsa_conversation_t     c;
    dsa_response_items_t  *items;

    work = references->work;
    err = &references->err;

    items = dsa_arena_alloc(work, (references->n_owners + 1)
                                  * sizeof(dsa_response_items_t));

    if (items == NULL) {
        return dsa_error(err, "out of memory for items");
    }

    rc = dsa_response_items_read(items, references->n_owners, work,
                                 references->reply, err);

    for (i = 0; i < references->n_owners && rc == DSA_OK; i++) {

        lists[0] = items[i].input;
        lists[1] = items[i].output;

        for (k = 0; k < 2 && rc == DSA_OK; k++) {
            if (lists[k].len != 0) {
                rc = dsa_references_list(references->refs, references->n, work,
                                         references->keep, lists[k], err);
            }
        }

        if (items[i].n != 0 && rc == DSA_OK) {
            c.owner = references->owners[i];
            c.entries = items[i].entries;
            c.numbers = items[i].numbers;
            c.n = items[i].n;

            rc = dsa_references_conversation(references->refs, references->n,
                                             work, references->keep, &c, err);
        }
    }

    return rc;
}


static void
ngx_http_dsa_references_resolved(void *data)
{
    ngx_http_dsa_references_t *references = data;

    ngx_http_dsa_request_t  *req;

    req = references->req;

    if (references->rc == DSA_AGAIN) {
        ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_BAD_REQUEST, "input",
                                 "input: the responses and conversations with "
                                 "the items that are referred to are larger "
                                 "than 4 MB; send the items themselves");

    } else if (references->rc != DSA_OK) {
        ngx_log_error(ngx_http_dsa_burst(references->err.text),
                      req->http->connection->log, 0, "dsa: %s",
                      references->err.text);
        ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_SERVICE_UNAVAILABLE,
                                 "input", "Stored items are not available "
                                 "now: Redis refused the command, or an item "
                                 "is damaged.");

    } else if (req->refusal->status != 0) {
        ngx_http_dsa_references_refused(req);
    }

    if (req->failure.status != 0) {
        ngx_http_dsa_request_fail(req);
        return;
    }

    ngx_http_dsa_chat_next(req);
}


static void
ngx_http_dsa_references_refused(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_failure_set(&req->failure, req->refusal->status, "input",
                             "%s", req->refusal->message);
}


/* Frees what is needed only to resolve the references. */

static void
ngx_http_dsa_references_free(ngx_http_dsa_references_t *references)
{
    dsa_arena_destroy(references->work);

    if (references->reply != NULL) {
        freeReplyObject(references->reply);
    }

    references->work = NULL;
    references->reply = NULL;
}


static void
ngx_http_dsa_references_cleanup(void *data)
{
    ngx_http_dsa_references_t *references = data;

    ngx_http_dsa_references_free(references);
    dsa_arena_destroy(references->keep);
}
