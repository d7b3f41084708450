
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_module/core/ngx_http_dsa_metrics.h"
#include "ngx_module/http/ngx_http_dsa_body.h"
#include "ngx_http_dsa_count.h"


static ngx_int_t ngx_http_dsa_count_prompt(ngx_http_dsa_count_t *cnt);
static void ngx_http_dsa_count_encode(void *data);
static void ngx_http_dsa_count_encoded(void *data);
static void ngx_http_dsa_count_go(ngx_http_dsa_count_t *cnt);
static void ngx_http_dsa_count_submit(ngx_http_dsa_count_t *cnt);
static void ngx_http_dsa_count_ended(ngx_http_dsa_engine_request_t *er,
    ngx_http_dsa_engine_end_e end);
static void ngx_http_dsa_count_flush(ngx_http_dsa_engine_request_t *er);


static const ngx_http_dsa_engine_owner_t  ngx_http_dsa_count_owner = {
    .name = "count",
    .end = ngx_http_dsa_count_ended,
    .flush = ngx_http_dsa_count_flush
};


void
ngx_http_dsa_count_start(ngx_http_dsa_count_t *cnt, uint32_t limit)
{
    ngx_int_t  rc;

    cnt->limit = limit;
    cnt->counted = 0;
    cnt->more = 0;

    rc = ngx_http_dsa_count_prompt(cnt);

    if (rc == NGX_OK) {
        ngx_http_dsa_count_go(cnt);

    } else if (rc == NGX_ERROR) {
        cnt->handler(cnt->data, NGX_ERROR);
    }
}


/*
 * Encodes the prompt.  NGX_OK: it is encoded, or the failure is set; NGX_AGAIN:
 * the same, later; NGX_ERROR with a failure.
 */

static ngx_int_t
ngx_http_dsa_count_prompt(ngx_http_dsa_count_t *cnt)
{
    size_t                  size;
    ngx_http_dsa_submit_t  *to;

    to = &cnt->attempt;
    size = dsa_arena_used(cnt->submit->arena)
           + dsa_arena_used(cnt->submit->work);

    dsa_arena_destroy(cnt->arena);

    cnt->arena = dsa_arena_create(NGX_HTTP_DSA_ARENA(size));

    if (cnt->arena == NULL) {
        ngx_http_dsa_failure_memory(cnt->failure);
        return NGX_ERROR;
    }

    ngx_http_dsa_submit_copy(to, cnt->submit);

    to->count = 1;
    to->chat = &cnt->whole;
    to->work = cnt->arena;

    /* a structure is refused before anything is computed for the request */

    to->format = cnt->submit->format;

    return ngx_http_dsa_work(cnt->work, NGX_HTTP_DSA_STAGE_WINDOW,
                             cnt->submit->bytes, ngx_http_dsa_count_encode,
                             ngx_http_dsa_count_encoded, cnt);
}


/* A run. */

static void
ngx_http_dsa_count_encode(void *data)
{
    ngx_http_dsa_count_t *cnt = data;

    dsa_err_t               err;
    ngx_http_dsa_submit_t  *to;

    to = &cnt->attempt;

    if (cnt->chat(cnt->data, cnt->arena, &cnt->whole) != DSA_OK) {
        ngx_http_dsa_failure_memory(cnt->failure);
        return;
    }

    /* what the answer may be does not matter for the count of its prompt */

    cnt->whole.max_tokens = 0;
    cnt->whole.others = 0;

    if (to->family->encode(&to->prompt, to->work, to->chat, &err) != DSA_OK) {
        ngx_http_dsa_submit_unencoded(to, &err, cnt->failure);
    }
}


static void
ngx_http_dsa_count_encoded(void *data)
{
    ngx_http_dsa_count_go(data);
}


/* The prompt is encoded, or the failure is set. */

static void
ngx_http_dsa_count_go(ngx_http_dsa_count_t *cnt)
{
    if (cnt->failure->status != 0) {
        cnt->handler(cnt->data, NGX_ERROR);
        return;
    }

    if (cnt->attempt.prompt.bytes <= cnt->limit) {
        cnt->tokens = cnt->attempt.prompt.bytes;
        cnt->handler(cnt->data, NGX_OK);
        return;
    }

    if (ngx_http_dsa_submit_prompt(&cnt->attempt, cnt->failure) != NGX_OK) {
        cnt->handler(cnt->data, NGX_ERROR);
        return;
    }

    ngx_memzero(&cnt->refused, sizeof(ngx_http_dsa_failure_t));

    ngx_http_dsa_engine_request_init(&cnt->er, &ngx_http_dsa_count_owner,
                                     cnt, cnt->request, &cnt->attempt,
                                     &cnt->refused);

    ngx_http_dsa_count_submit(cnt);
}


/* Submits the count to the next engine. */

static void
ngx_http_dsa_count_submit(ngx_http_dsa_count_t *cnt)
{
    ngx_int_t  rc;

    rc = ngx_http_dsa_engine_request_submit(&cnt->er, &cnt->refused);

    if (rc == NGX_OK) {
        ngx_http_dsa_metrics_add(context_counts, 1);
    }

    if (rc == NGX_ERROR) {
        *cnt->failure = cnt->refused;
        cnt->handler(cnt->data, NGX_ERROR);
    }
}


static void
ngx_http_dsa_count_ended(ngx_http_dsa_engine_request_t *er,
    ngx_http_dsa_engine_end_e end)
{
    ngx_http_dsa_count_t *cnt = er->data;

    if (end == NGX_HTTP_DSA_ENGINE_COUNTED) {
        cnt->tokens = er->counted;
        cnt->more = er->more;
        cnt->counted = 1;
    }
}


/* The request may be freed afterwards. */

static void
ngx_http_dsa_count_flush(ngx_http_dsa_engine_request_t *er)
{
    ngx_http_dsa_count_t *cnt = er->data;

    if (er->pending) {
        ngx_http_dsa_count_submit(cnt);
        return;
    }

    if (cnt->counted) {
        cnt->handler(cnt->data, NGX_OK);
        return;
    }

    *cnt->failure = cnt->refused;

    if (cnt->failure->status == 0) {
        ngx_http_dsa_failure_set(cnt->failure, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                 NULL, "The engine did not count the prompt.");
    }

    cnt->handler(cnt->data, NGX_ERROR);
}


void
ngx_http_dsa_count_detach(ngx_http_dsa_count_t *cnt)
{
    ngx_http_dsa_engine_request_abandon(&cnt->er);
    ngx_http_dsa_pool_leave(&cnt->attempt.waiter);
}


void
ngx_http_dsa_count_free(ngx_http_dsa_count_t *cnt)
{
    dsa_arena_destroy(cnt->arena);
    cnt->arena = NULL;
}
