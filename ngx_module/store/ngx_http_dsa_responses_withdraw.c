
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include <assert.h>

#include "redis_schema/responses.h"

#include "ngx_http_dsa_responses_withdraw.h"


/* withdrawals of a worker, prepared and pending, at most */

#define NGX_HTTP_DSA_WITHDRAW_MAX      4096

/* memory for the words of a command */

#define NGX_HTTP_DSA_WITHDRAW_ARENA    4096

#define NGX_HTTP_DSA_WITHDRAW_FIRST    50           /* milliseconds */
#define NGX_HTTP_DSA_WITHDRAW_BACKOFF  1000

/* milliseconds that a worker which shuts down waits for Redis */

#define NGX_HTTP_DSA_WITHDRAW_EXIT     60000


struct ngx_http_dsa_responses_withdrawal_s {
    ngx_http_dsa_redis_t    *redis;
    ngx_connection_t         dumb;      /* the data of the timer */
    ngx_event_t              timer;
    ngx_msec_t               start;
    ngx_str_t                tenant;
    ngx_str_t                id;
};


static void ngx_http_dsa_responses_withdraw_send(ngx_event_t *ev);
static void ngx_http_dsa_responses_withdraw_reply(void *data,
    redisReply *reply, const char *why);
static void ngx_http_dsa_responses_withdraw_again(
    ngx_http_dsa_responses_withdrawal_t *w, const char *why);


static ngx_uint_t  ngx_http_dsa_responses_withdrawals;


ngx_http_dsa_responses_withdrawal_t *
ngx_http_dsa_responses_withdraw_create(ngx_http_dsa_redis_t *redis,
    const ngx_str_t *tenant, dsa_str_t id, const char **why)
{
    u_char                               *p;
    ngx_http_dsa_responses_withdrawal_t  *w;

    if (ngx_http_dsa_responses_withdrawals >= NGX_HTTP_DSA_WITHDRAW_MAX) {
        *why = "too many responses wait for Redis";
        return NULL;
    }

    w = ngx_calloc(sizeof(ngx_http_dsa_responses_withdrawal_t) + tenant->len
                   + id.len, ngx_cycle->log);
    if (w == NULL) {
        *why = "nginx is out of memory";
        return NULL;
    }

    p = (u_char *) &w[1];

    w->redis = redis;
    w->tenant.data = p;
    w->tenant.len = tenant->len;

    p = ngx_cpymem(p, tenant->data, tenant->len);

    w->id.data = p;
    w->id.len = id.len;

    ngx_memcpy(p, id.data, id.len);

    w->dumb.fd = (ngx_socket_t) -1;
    w->dumb.data = w;

    w->timer.handler = ngx_http_dsa_responses_withdraw_send;
    w->timer.data = &w->dumb;
    w->timer.log = ngx_cycle->log;

    ngx_http_dsa_responses_withdrawals++;

    return w;
}


/*
 * The timer is not cancelable: a worker that shuts down waits for the
 * withdrawal.
 */

void
ngx_http_dsa_responses_withdraw_start(ngx_http_dsa_responses_withdrawal_t *w)
{
    w->start = ngx_current_msec;

    ngx_http_dsa_redis_retry_soon(w->redis);

    ngx_add_timer(&w->timer, NGX_HTTP_DSA_WITHDRAW_FIRST);
}


void
ngx_http_dsa_responses_withdraw_free(ngx_http_dsa_responses_withdrawal_t *w)
{
    assert(ngx_http_dsa_responses_withdrawals != 0 && !w->timer.timer_set);

    ngx_http_dsa_responses_withdrawals--;

    ngx_free(w);
}


static void
ngx_http_dsa_responses_withdraw_send(ngx_event_t *ev)
{
    const char                           *why;
    dsa_arena_t                          *arena;
    ngx_connection_t                     *dumb = ev->data;
    dsa_schema_command_t                  cmd;
    ngx_http_dsa_responses_withdrawal_t  *w = dumb->data;

    why = "nginx is out of memory";
    arena = dsa_arena_create(NGX_HTTP_DSA_WITHDRAW_ARENA);

    if (arena == NULL
        || dsa_response_withdraw(&cmd, arena,
                                 dsa_str(w->tenant.data, w->tenant.len),
                                 dsa_str(w->id.data, w->id.len))
           != DSA_OK
        || ngx_http_dsa_redis_command(w->redis, &cmd,
                                      ngx_http_dsa_responses_withdraw_reply,
                                      w, &why)
           == NULL)
    {
        ngx_http_dsa_responses_withdraw_again(w, why);
    }

    dsa_arena_destroy(arena);
}


static void
ngx_http_dsa_responses_withdraw_reply(void *data, redisReply *reply,
    const char *why)
{
    int64_t                               n;
    dsa_err_t                             err;
    ngx_http_dsa_responses_withdrawal_t  *w = data;

    if (why == NULL && dsa_schema_integer(reply, &n, &err) != DSA_OK) {
        why = err.text;
    }

    if (why != NULL) {
        ngx_http_dsa_responses_withdraw_again(w, why);
        return;
    }

    ngx_log_error(NGX_LOG_INFO, ngx_cycle->log, 0,
                  "dsa: the response \"%V\", which Redis did not confirm in "
                  "time, is withdrawn", &w->id);

    ngx_http_dsa_responses_withdraw_free(w);
}


static void
ngx_http_dsa_responses_withdraw_again(ngx_http_dsa_responses_withdrawal_t *w,
    const char *why)
{
    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "dsa response \"%V\" not yet withdrawn: %s", &w->id, why);

    if (ngx_exiting
        && ngx_current_msec - w->start > NGX_HTTP_DSA_WITHDRAW_EXIT)
    {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "dsa: the response \"%V\" may be stored, although the "
                      "answer reports that it is not: the worker exits "
                      "before Redis confirmed that it is withdrawn: %s",
                      &w->id, why);

        ngx_http_dsa_responses_withdraw_free(w);
        return;
    }

    ngx_add_timer(&w->timer, NGX_HTTP_DSA_WITHDRAW_BACKOFF);
}
