
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_module/core/ngx_http_dsa_burst.h"
#include "ngx_module/core/ngx_http_dsa_metrics.h"
#include "ngx_module/store/ngx_http_dsa_responses_command.h"
#include "ngx_module/store/ngx_http_dsa_responses_withdraw.h"
#include "ngx_http_dsa_responses_stored.h"


/* memory for the words of the command, without the texts of the node */

#define NGX_HTTP_DSA_RESPONSES_SAVE_ARENA  4096


typedef struct {
    ngx_http_dsa_save_pt                  handler;
    const char                           *why;
    ngx_http_dsa_responses_withdrawal_t  *withdrawal;   /* NULL once it is not
                                                           needed, or is
                                                           started */
    unsigned                              later:1;  /* the command is sent */
} ngx_http_dsa_responses_save_t;


static void ngx_http_dsa_responses_save_cleanup(void *data);
static void ngx_http_dsa_responses_save_reply(ngx_http_request_t *r,
    void *data, redisReply *reply, const char *why);
static void ngx_http_dsa_responses_save_log(ngx_http_request_t *r,
    const char *why);


static const char  ngx_http_dsa_responses_nomem[] = "nginx is out of memory";


ngx_int_t
ngx_http_dsa_responses_save(ngx_http_request_t *r,
    ngx_http_dsa_redis_t *redis, const ngx_str_t *tenant,
    const dsa_response_t *node, ngx_http_dsa_save_pt handler,
    const char **why)
{
    ngx_int_t                       rc;
    const char                     *full;
    dsa_arena_t                    *arena;
    ngx_pool_cleanup_t             *cln;
    dsa_schema_command_t            cmd;
    ngx_http_dsa_responses_save_t  *save;

    *why = ngx_http_dsa_responses_nomem;

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_dsa_responses_save_t));
    if (cln == NULL) {
        return NGX_DECLINED;
    }

    save = cln->data;
    ngx_memzero(save, sizeof(ngx_http_dsa_responses_save_t));

    cln->handler = ngx_http_dsa_responses_save_cleanup;

    save->handler = handler;

    if (!dsa_response_fits(node)) {
        *why = "the response is larger than the 4 MB that are stored";
        goto failed;
    }

    full = ngx_http_dsa_redis_full(redis);

    if (full != NULL) {
        *why = full;
        goto failed;
    }

    save->withdrawal = ngx_http_dsa_responses_withdraw_create(redis, tenant,
                                                              node->id, why);
    if (save->withdrawal == NULL) {
        goto failed;
    }

    *why = ngx_http_dsa_responses_nomem;

    arena = dsa_arena_create(NGX_HTTP_DSA_RESPONSES_SAVE_ARENA);
    rc = NGX_ERROR;

    if (arena != NULL
        && dsa_response_save(&cmd, arena, dsa_str(tenant->data, tenant->len),
                             node, ngx_time(),
                             ngx_http_dsa_redis_storage(redis))
           == DSA_OK)
    {
        rc = ngx_http_dsa_responses_command(r, redis, &cmd,
                                            ngx_http_dsa_responses_save_reply,
                                            save);
    }

    dsa_arena_destroy(arena);

    if (rc == NGX_OK && save->why == NULL) {
        save->later = 1;
        *why = NULL;
        return NGX_OK;
    }

    if (rc == NGX_OK) {
        *why = save->why;
    }

failed:

    ngx_http_dsa_metrics_add(responses_unsaved, 1);

    ngx_http_dsa_responses_save_log(r, *why);

    return NGX_DECLINED;
}


/* A request that ends before Redis replies has not reported anything. */

static void
ngx_http_dsa_responses_save_cleanup(void *data)
{
    ngx_http_dsa_responses_save_t *save = data;

    if (save->withdrawal != NULL) {
        ngx_http_dsa_responses_withdraw_free(save->withdrawal);
    }
}


static void
ngx_http_dsa_responses_save_reply(ngx_http_request_t *r, void *data,
    redisReply *reply, const char *why)
{
    ngx_http_dsa_responses_save_t *save = data;

    int64_t    n, bytes;
    dsa_err_t  err;

    if (!save->later) {
        save->why = why;
        return;
    }

    if (why != NULL) {
        ngx_http_dsa_responses_withdraw_start(save->withdrawal);
        save->withdrawal = NULL;

    } else if (dsa_schema_over_quota(reply, &bytes, &n)) {
        why = DSA_SCHEMA_QUOTA_TEXT;

    } else if (dsa_schema_integer(reply, &n, &err) != DSA_OK) {
        ngx_log_error(ngx_http_dsa_burst(err.text), r->connection->log, 0,
                      "dsa: %s", err.text);
        why = "Redis refused the command";

    } else if (n == DSA_RESPONSE_LATE) {
        why = "it was cancelled or deleted";
    }

    if (why != NULL) {
        ngx_http_dsa_metrics_add(responses_unsaved, 1);

        ngx_http_dsa_responses_save_log(r, why);
    }

    save->handler(r, why);
}


static void
ngx_http_dsa_responses_save_log(ngx_http_request_t *r, const char *why)
{
    dsa_err_t  text;

    (void) dsa_error(&text, "the response is not stored: %s", why);

    ngx_log_error(ngx_http_dsa_burst(text.text), r->connection->log, 0,
                  "dsa: %s", text.text);
}
